"""`simdims similarity SOURCE`: similarities from raw data, one subcommand per kind of data."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simdims.cli import options as shared
from simdims.cli.options import Findings, UsageError
from simdims.cli.outputs import check_target

if TYPE_CHECKING:
    from simdims.similarity import Similarity
    from simdims.systems import SimilaritySet

#: Options that name columns, which are otherwise detected.
COLUMNS = (
    "item1", "item2", "rating", "participant", "cue", "response", "count", "columns", "odd", "head", "winner", "loser",
    "dissimilarity",
)  # fmt: skip

_TABLES = "a table (.csv, .tsv, .xlsx, .ods, .parquet, .feather, .rds, ...)"


class Source(NamedTuple):
    """A kind of raw data: the help of its command, its options (some shared), and the function that reads it."""

    summary: str
    reads: str
    example: str
    shared: tuple[str, ...]
    add_options: Callable[[Any], None]
    build: Callable[[argparse.Namespace], Similarity | SimilaritySet]


def add(commands: Any) -> None:
    """Add the command and its sources."""
    summary = "make similarities from raw data and save them to a file"
    similarity = commands.add_parser("similarity", help=summary, description=f"{summary.capitalize()}.")
    parsers = similarity.add_subparsers(metavar="SOURCE", required=True)
    for name, source in SOURCES.items():
        parser = shared.add_command(parsers, name, _make, summary=source.summary, example=source.example)
        parser.add_argument("source", metavar="IN", type=Path, help=f"the file to read: {source.reads}")
        target = "the file to write: .npz (keeps everything) or .csv (one matrix without weights)"
        parser.add_argument("target", metavar="OUT", type=Path, help=target)
        source.add_options(parser)
        add_shared(parser, source.shared)
        shared.add_overwrite(parser)
        parser.set_defaults(build=source.build)


def add_shared(parser: Any, names: tuple[str, ...]) -> None:
    """Add options that several sources share."""
    if "key" in names:
        shared.add_key(parser, "data")
    if "sheet" in names:
        shared.add_sheet(parser)
    if "na_values" in names:
        shared.add_na_values(parser)
    if "label_file" in names:
        shared.add_label_file(parser)
    if "header" in names:
        shared.add_header(parser)
    if "low" in names:
        shared.add_scale(parser)
    if "weights" in names:
        weights = "weight each pair by its number of answers, ratings or people"
        parser.add_argument("--weights", choices=["counts"], help=weights)
        own = "similarity of an item with itself, which nobody judged: one (default) or missing"
        parser.add_argument("--diagonal", choices=["one", "missing"], help=own)
    if "smoothing" in names:
        parser.add_argument("--n-items", type=int, metavar="N", help="number of items, if some occur in no answer")
        smoothing = "alpha in (c + alpha)/(m + 2 alpha) (default 1)"
        parser.add_argument("--smoothing", type=float, metavar="ALPHA", help=smoothing)
    if "by" in names:
        by = "the column that names people or other systems, whose similarities are kept apart (for a stack of "
        by += "matrices, a word for what they are, such as person)"
        is_file = any(action.dest == "target" for action in parser._actions)
        parser.add_argument("--by", metavar="COLUMN", help=f"{by}; OUT must end in .npz" if is_file else by)
    if "negative" in names:
        shared.add_negative(parser)


def _make(options: argparse.Namespace) -> Findings:
    _check_target(options)
    similarity = options.build(options)
    similarity.save(options.target)
    values = {"written": options.target, "n_items": similarity.n_items, "density": similarity.density}
    values["labelled"] = similarity.labels is not None
    is_one = getattr(options, "by", None) is None
    about = {"info": dict(similarity.info)} if is_one else {"systems": list(similarity.names)}
    return Findings(f"Wrote {options.target}: {shared.described(similarity)}", values | about)


def _check_target(options: argparse.Namespace) -> None:
    """Check before the run that the result can be saved."""
    from simdims.io import SAVED

    target, chosen = options.target, vars(options)
    check_target(target, tuple(SAVED), [("IN", options.source)], overwrite=options.overwrite)
    beyond_csv = {
        f"--weights {chosen.get('weights')}": chosen.get("weights") is not None,
        f"--by {chosen.get('by')}": chosen.get("by") is not None,
        "--implicit": chosen.get("implicit", False),
        f"--absent {chosen.get('absent')}": chosen.get("absent", "missing") != "missing",
    }
    for option, is_chosen in beyond_csv.items():
        if is_chosen and target.suffix.lower() == ".csv":
            raise ValueError(f"OUT must end in .npz with {option}, which a .csv cannot hold, got {str(target)!r}.")


def _add_features(parser: Any) -> None:
    parser.add_argument("--labels", metavar="COLUMN", help="the column with the labels of the items")
    kernels = ["auto", "linear", "rbf", "cosine"]
    kernel = "auto (default): linear if no feature is negative, else rbf"
    parser.add_argument("--kernel", choices=kernels, default="auto", help=kernel)
    bandwidth = "RBF bandwidth as a multiple of the median pairwise distance (default 0.4)"
    parser.add_argument("--bandwidth", type=float, default=0.4, help=bandwidth)
    implicit = "never build the matrix (kernels linear and, approximately, rbf)"
    parser.add_argument("--implicit", action="store_true", help=implicit)
    landmarks = "number of items from which --implicit approximates rbf (default 1000)"
    parser.add_argument("--landmarks", type=int, metavar="N", help=landmarks)


def _features(options: argparse.Namespace) -> Similarity:
    from simdims.features import from_features
    from simdims.io import raw

    if options.labels is not None and options.label_file is not None:
        raise UsageError("--labels and --label-file must not both be given: either names the items.")
    X = raw.read_features(options.source, options.labels, options.header, shared.reading(options), "label_column")
    given = shared.arguments(options, "kernel", "bandwidth", "negative", "implicit")
    return from_features(X, labels=shared.read_labels(options), n_landmarks=options.landmarks, **given)


def _triplets(options: argparse.Namespace) -> Similarity | SimilaritySet:
    from simdims.io import raw
    from simdims.triplets import from_triplets

    how = shared.reading(options)
    triplets = raw.read_triplets(options.source, options.columns, options.header, options.by, how)
    return from_triplets(triplets, odd=options.odd, labels=shared.read_labels(options), **_answer_options(options))


def _answer_options(options: argparse.Namespace) -> dict[str, Any]:
    smoothing = 1.0 if options.smoothing is None else options.smoothing
    given = shared.arguments(options, "n_items", "weights", "by")
    return {**given, "smoothing": smoothing, "diagonal": _diagonal(options)}


def _diagonal(options: argparse.Namespace) -> str | None:
    """1 unless --diagonal or --by is given: separate systems have no diagonal."""
    return options.diagonal or ("one" if options.by is None else None)


def add_comparison_columns(parser: Any) -> None:
    """Add the column options of a table of comparisons."""
    roles = {"head": "item that two others were compared with", "winner": "more similar item", "loser": "other item"}
    for role, what in roles.items():
        about = f"the column with the {what} (default {role})"
        parser.add_argument(f"--{role}", default=role, metavar="COLUMN", help=about)


def _comparisons(options: argparse.Namespace) -> Similarity | SimilaritySet:
    from simdims.comparisons import from_comparisons
    from simdims.io import raw

    columns = shared.arguments(options, "head", "winner", "loser")
    table = raw.read_comparisons(options.source, list(columns.values()), shared.reading(options))
    return from_comparisons(table, **columns, labels=shared.read_labels(options), **_answer_options(options))


def _add_ratings(parser: Any) -> None:
    shared.add_rated_pairs(parser)
    parser.add_argument("--participant", metavar="COLUMN", help="the column with the person who gave the rating")


def _ratings(options: argparse.Namespace) -> Similarity | SimilaritySet:
    from simdims.construct import from_ratings
    from simdims.io import raw

    columns = [name for name in (options.item1, options.item2, options.participant, options.by) if name is not None]
    table = raw.read_trials(options.source, columns, options.rating, shared.reading(options))
    names = ["item1", "item2", "rating", "participant", "low", "high", "weights", "by"]
    return from_ratings(table, **shared.arguments(options, *names), diagonal=_diagonal(options))


def _add_associations(parser: Any) -> None:
    add_association_columns(parser)
    absent = "how to treat pairs without an association: missing, zero, or zeros with a weight in (0, 1) (default 0.03)"
    parser.add_argument(
        "--absent", type=shared.number_or_text, default=0.03, metavar="missing|zero|WEIGHT", help=absent
    )


def add_association_columns(parser: Any) -> None:
    """Add the column options of a table of word associations."""
    for role in ("cue", "response", "count"):
        about = f"the column with the {role}s (default {role})"
        parser.add_argument(f"--{role}", default=role, metavar="COLUMN", help=about)
    parser.add_argument("--no-count", action="store_const", const=False, dest="count", help="count each row once")


def _associations(options: argparse.Namespace) -> Similarity:
    from simdims.associations import from_associations
    from simdims.io import raw

    count = None if options.count is False else options.count
    words = [options.cue, options.response]
    table = raw.read_trials(options.source, words, options.count or None, shared.reading(options))
    return from_associations(table, count=count, **shared.arguments(options, "cue", "response", "absent"))


def _add_dissimilarity(parser: Any) -> None:
    """Add the options of dissimilarities; the first ones are for lists of pairs."""
    for role, what in (("item1", "first items"), ("item2", "second items"), ("participant", "participants")):
        parser.add_argument(f"--{role}", metavar="COLUMN", help=f"the column of a list of pairs with the {what}")
    add_distances(parser)


def add_distances(parser: Any) -> None:
    """Add the options that apply only to dissimilarities."""
    parser.add_argument("--dissimilarity", metavar="COLUMN", help="the column of a list of pairs with the values")
    method = "max (default): 1 - d/max(d); correlation: 1 - d; gaussian: exp(-d^2 / 2 sigma^2)"
    parser.add_argument("--method", choices=["max", "correlation", "gaussian"], default="max", help=method)
    parser.add_argument("--sigma", type=float, help="width of gaussian (default: the median dissimilarity)")


def _dissimilarity(options: argparse.Namespace) -> Similarity | SimilaritySet:
    from simdims.construct import from_dissimilarity

    given = shared.arguments(options, "method", "sigma", "negative", "weights", "key", "by", "sheet", "na_values")
    given |= shared.arguments(options, "item1", "item2", "dissimilarity", "participant")
    if given["by"] is not None and given["by"] == given["participant"]:
        given["participant"] = None
    given |= {"labels": shared.read_labels(options), "diagonal": _diagonal(options)}
    S: Any = from_dissimilarity(options.source, **given)
    if options.by is None:
        shared.say_if_shifted(S)
    return S


SOURCES = {
    "features": Source(
        "from feature vectors (activations, brain responses, norms)",
        f"one row per item: .npy, .npz, .h5, .mat or {_TABLES}",
        "simdims similarity features objects.csv objects.npz --labels name --kernel rbf",
        ("label_file", "key", "sheet", "na_values", "header", "negative"),
        _add_features,
        _features,
    ),
    "triplets": Source(
        "from odd-one-out judgements of three items",
        f"one answer per row, as three positions (from 0) or names: .npy or {_TABLES}",
        "simdims similarity triplets answers.csv objects.npz --odd chosen --weights counts",
        ("label_file", "key", "sheet", "header", "weights", "diagonal", "by", "n_items", "smoothing"),
        shared.add_triplet_columns,
        _triplets,
    ),
    "comparisons": Source(
        "from answers to which of two items is more like a third one, the head",
        f"one answer per row, as three positions (from 0) or names, in {_TABLES}",
        "simdims similarity comparisons answers.csv faces.npz --head head --winner winner --loser loser",
        ("label_file", "key", "sheet", "weights", "diagonal", "by", "n_items", "smoothing"),
        add_comparison_columns,
        _comparisons,
    ),
    "ratings": Source(
        "from ratings of how similar two items are",
        f"one rating per row, in {_TABLES}",
        "simdims similarity ratings trials.csv animals.npz --item1 left --item2 right --rating answer --low 1 --high 7",
        ("key", "sheet", "na_values", "weights", "diagonal", "by", "low", "high"),
        _add_ratings,
        _ratings,
    ),
    "associations": Source(
        "from counts of word associations",
        f"cues, responses and counts, in {_TABLES}",
        "simdims similarity associations norms.csv words.npz --cue cue --response target --count P",
        ("key", "sheet", "na_values"),
        _add_associations,
        _associations,
    ),
    "dissimilarity": Source(
        "from dissimilarities (RDMs), of one or of several people",
        "a square matrix, its upper triangle as a vector, a stack of square matrices with people first or last, a "
        "MATLAB struct array, an export of Meadows (.mat, .json) or a list of pairs: .npy, .npz, .h5, .mat or "
        f"{_TABLES}",
        "simdims similarity dissimilarity rdm.mat faces.npz --method correlation --negative clip",
        ("key", "sheet", "na_values", "label_file", "weights", "diagonal", "by", "negative"),
        _add_dissimilarity,
        _dissimilarity,
    ),
}

#: What a data file may contain.
KINDS = ("matrix", *SOURCES)
