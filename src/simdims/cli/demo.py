"""`simdims demo`: run discover on data that come with a dependency."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._parameters import warn
from simdims.cli import options as shared
from simdims.cli.discover import check_folder, finish, run
from simdims.cli.options import Findings, UsageError
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.similarity import Similarity

#: The default folder, in which an earlier demo is replaced without --overwrite.
_FOLDER = Path("demo_output")

_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

#: Takes about fifteen seconds on two cores after compilation; the best rank is inside the range.
_QUICK: dict[str, Any] = {"ranks": [20], "n_repeats": 1, "n_runs": 5}
_QUICK_WORDS: dict[str, Any] = {"ranks": [2, 4, 6, 8, 10, 12], "n_repeats": 2, "n_runs": 10}
_N_QUICK = 300
_FULL: dict[str, Any] = {"ranks": "auto", "n_repeats": None, "n_runs": None}


def add(commands: Any) -> None:
    summary = "run discover on handwritten digits or the characters of a novel, in a minute"
    example = "simdims demo"
    parser = shared.add_command(commands, "demo", _demo, summary=summary, example=example)
    parser.add_argument("--words", action="store_true", help="Les Miserables: which characters appear together")
    parser.add_argument("--full", action="store_true", help="all items, default settings (45 minutes on one core)")
    shared.add_count(parser, "n_items", None, f"number of digits (default {_N_QUICK})")
    out = f"output folder (default {_FOLDER}/digits or /words)"
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER", help=out)
    shared.add_overwrite(parser, "an earlier result in FOLDER")
    shared.add_running(parser, seed=0, jobs=-1)


def _demo(options: argparse.Namespace) -> Findings:
    if options.n_items is not None and (options.words or options.full):
        raise UsageError("--items does not apply with --words or --full, which use all items.")
    folder = options.out or _FOLDER / ("words" if options.words else "digits")
    check_folder(folder, options.overwrite or options.out is None)
    n_digits = None if options.full else _N_QUICK if options.n_items is None else options.n_items
    S, title, images = _words() if options.words else _digits(n_digits)
    settings = _FULL
    if not options.full:
        settings = dict(_QUICK_WORDS if options.words else _QUICK)
        settings["ranks"] = sorted({min(rank, S.n_items // 4) for rank in settings["ranks"]})
        from simdims.selection.splits import DEFAULT_FOLDS, FOLDS

        ranks = ", ".join(map(str, settings["ranks"]))
        n_folds = DEFAULT_FOLDS if len(settings["ranks"]) == 1 else FOLDS["penalised"][0]
        say(
            f"Demo settings: {ranks} dimensions, {settings['n_repeats']} x {n_folds} folds, "
            f"{settings['n_runs']} random starts (--full: all items and the default settings of discover)."
        )
    rest = {"sampling": None, "alpha": "auto", "device": "cpu", "checkpoint": None}
    found = run(S, argparse.Namespace(**{**vars(options), **settings, **rest}))
    return finish(found, folder, images=images, title=title)


def _digits(n_items: int | None) -> tuple[Similarity, str, Any]:
    """Similarities of handwritten digits, a title, and their images."""
    import numpy as np

    from simdims.datasets import load_digits_similarity
    from simdims.features import from_features

    digits = load_digits_similarity()
    n_all = len(digits.images)
    if n_items is not None and not 40 <= n_items <= n_all:
        raise ValueError(f"--items must lie between 40 and {n_all}, got {n_items}.")
    rows = np.sort(np.random.default_rng(0).permutation(n_all)[:n_items])
    labels = [f"{_NAMES[digits.target[row]]} {row}" for row in rows]
    images = digits.images[rows]
    S = from_features(images.reshape(len(rows), -1), kernel="rbf", labels=labels)
    say(
        f"{len(rows):,} of the {n_all:,} handwritten digits in scikit-learn, compared by an RBF kernel of their pixels."
    )
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        warn('The page has no pictures, which need Pillow: pip install "simdims[report]".')
        return S, f"{len(rows):,} handwritten digits", None
    return S, f"{len(rows):,} handwritten digits", images.max() - images  # dark on light


def _words() -> tuple[Similarity, str, None]:
    from simdims.datasets import load_miserables

    S = load_miserables()
    say(f"{S.n_items} characters of Les Miserables, compared by how often they appear together (networkx).")
    return S, "The characters of Les Misérables", None
