"""`simdims demo`: data that ship with a dependency, through discover to a page."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simdims.cli.discover import check_folder, finish, run
from simdims.cli.options import Findings, UsageError, add_command, add_overwrite, add_running
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.similarity import Similarity

#: Where results go unless -o says otherwise; there, and only there, an earlier demo is replaced without asking.
_FOLDER = Path("demo_output")


class Demo(NamedTuple):
    """Similarities to show the package on, with a heading and pictures of the items where there are any."""

    similarity: Similarity
    title: str
    images: Any
    about: str


class Settings(NamedTuple):
    """How much work is done; None is what discover does by itself."""

    ranks: str | list[int]
    repeats: int | None
    runs: int | None


_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

#: About fifteen seconds on two cores, after a first run that also compiles; the best number lies between those tried.
_QUICK = Settings([10, 15, 20, 25, 30], 1, 5)
_N_QUICK = 300
_QUICK_WORDS = Settings([2, 4, 6, 8, 10, 12], 2, 10)
_FULL = Settings("auto", None, None)


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "demo",
        _demo,
        summary="handwritten digits, or characters of a novel, through discover to a page, in a minute",
        example="simdims demo",
    )
    parser.add_argument("--words", action="store_true", help="Les Miserables: who appears together with whom")
    parser.add_argument(
        "--full", action="store_true", help="all items, and the settings of discover (about 45 minutes of one core)"
    )
    parser.add_argument("--items", type=int, metavar="N", help=f"how many digits (default {_N_QUICK})")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FOLDER", help=f"the folder to write (default {_FOLDER}/digits or /words)"
    )
    add_overwrite(parser, "an earlier result in FOLDER")
    add_running(parser, seed=0, jobs=-1)


def _demo(options: argparse.Namespace) -> Findings:
    if options.items is not None and (options.words or options.full):
        raise UsageError("--items must be left out with --words and --full, which take all items.")
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
        f"{len(rows):,} of the {n_all:,} handwritten digits of scikit-learn, similar where their pixels are (an RBF "
        "kernel); which digit each one shows is not used",
    )


def _inked(images: Any) -> Any:
    """Pictures, dark on light; None, with a warning, where the library that packs them is missing."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        warnings.warn('The page has no pictures without Pillow: pip install "simdims[report]".', stacklevel=2)
        return None
    return images.max() - images


def _words() -> Demo:
    from simdims.datasets import load_miserables

    similarity = load_miserables()
    return Demo(
        similarity,
        "The characters of Les Misérables",
        None,
        f"{similarity.n_items} characters of Les Miserables, as similar as they often appear together (networkx)",
    )


def _fitting(settings: Settings, n_items: int) -> Settings:
    """The settings without numbers of dimensions that so few items cannot have."""
    return settings._replace(ranks=[rank for rank in settings.ranks if isinstance(rank, int) and rank <= n_items // 4])


def _described(settings: Settings) -> str:
    if isinstance(settings.ranks, str):
        return "the settings of discover"
    ranks = ", ".join(map(str, settings.ranks))
    return (
        f"a demo's settings: {ranks} dimensions tried, {settings.repeats} x 5 folds, {settings.runs} runs "
        "(--full takes all items and the settings of discover)"
    )
