"""`simdims demo`: discover on data that ship with a dependency."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simdims._parameters import warn
from simdims.cli import options as shared
from simdims.cli.discover import check_folder, finish, run
from simdims.cli.options import Findings, UsageError
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.similarity import Similarity

#: The default folder, in which an earlier demo is replaced without asking.
_FOLDER = Path("demo_output")


class Demo(NamedTuple):
    """Similarities, with a heading, pictures of the items if there are any, and a description."""

    similarity: Similarity
    title: str
    images: Any
    about: str


class Settings(NamedTuple):
    """How much work is done; None is the default of discover."""

    ranks: str | list[int]
    repeats: int | None
    runs: int | None


_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

#: About fifteen seconds on two cores once everything is compiled; the best number lies between those tried.
_QUICK = Settings([10, 15, 20, 25, 30], 1, 5)
_N_QUICK = 300
_QUICK_WORDS = Settings([2, 4, 6, 8, 10, 12], 2, 10)
_FULL = Settings("auto", None, None)


def add(commands: Any) -> None:
    parser = shared.add_command(
        commands,
        "demo",
        _demo,
        summary="run discover on handwritten digits or the characters of a novel, in a minute",
        example="simdims demo",
    )
    parser.add_argument("--words", action="store_true", help="Les Miserables: which characters appear together")
    parser.add_argument(
        "--full",
        action="store_true",
        help="all items and the default settings of discover (about 45 minutes on one core)",
    )
    shared.add_count(parser, "--items", None, f"number of digits (default {_N_QUICK})")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FOLDER", help=f"output folder (default {_FOLDER}/digits or /words)"
    )
    shared.add_overwrite(parser, "an earlier result in FOLDER")
    shared.add_running(parser, seed=0, jobs=-1)


def _demo(options: argparse.Namespace) -> Findings:
    if options.items is not None and (options.words or options.full):
        raise UsageError("--items does not apply with --words or --full, which use all items.")
    name = "words" if options.words else "digits"
    folder = _FOLDER / name if options.out is None else options.out
    check_folder(folder, options.overwrite or options.out is None)
    n_digits = None if options.full else _N_QUICK if options.items is None else options.items
    demo = _words() if options.words else _digits(n_digits)
    settings = _FULL if options.full else _fitting(_QUICK_WORDS if options.words else _QUICK, demo.similarity.n_items)
    say(demo.about)
    say(_described(settings))
    options = argparse.Namespace(
        **{**vars(options), **settings._asdict(), "sampling": None, "device": "cpu", "checkpoint": None}
    )
    found = run(demo.similarity, options)
    return finish(found, folder, images=demo.images, title=demo.title)


def _digits(n_items: int | None) -> Demo:
    import numpy as np

    from simdims.datasets import load_digits_similarity
    from simdims.features import from_features

    digits = load_digits_similarity()
    n_all = len(digits.images)
    if n_items is not None and not 40 <= n_items <= n_all:
        raise ValueError(f"--items must lie between 40 and {n_all}, got {n_items}.")
    rows = np.sort(np.random.default_rng(0).permutation(n_all)[:n_items])
    labels = [f"{_NAMES[digits.target[row]]} {row}" for row in rows]
    similarity = from_features(digits.images[rows].reshape(len(rows), -1), kernel="rbf", labels=labels)
    return Demo(
        similarity,
        f"{len(rows):,} handwritten digits",
        _inked(digits.images[rows]),
        f"{len(rows):,} of the {n_all:,} handwritten digits in scikit-learn, compared by an RBF kernel of their pixels",
    )


def _inked(images: Any) -> Any:
    """Pictures, dark on light; None, with a warning, without Pillow."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        warn('The page has no pictures, which need Pillow: pip install "simdims[report]".')
        return None
    return images.max() - images


def _words() -> Demo:
    from simdims.datasets import load_miserables

    similarity = load_miserables()
    return Demo(
        similarity,
        "The characters of Les Misérables",
        None,
        f"{similarity.n_items} characters of Les Miserables, compared by how often they appear together (networkx).",
    )


def _fitting(settings: Settings, n_items: int) -> Settings:
    """The settings without ranks that are too high for so few items."""
    return settings._replace(ranks=[rank for rank in settings.ranks if isinstance(rank, int) and rank <= n_items // 4])


def _described(settings: Settings) -> str:
    if isinstance(settings.ranks, str):
        return "Default settings of discover."
    ranks = ", ".join(map(str, settings.ranks))
    return (
        f"Demo settings: {ranks} dimensions, {settings.repeats} x 5 folds, {settings.runs} random starts (--full: all "
        "items and the default settings of discover)."
    )
