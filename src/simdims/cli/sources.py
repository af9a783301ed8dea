"""`simdims similarity ...`: one way to make similarities of raw data each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simdims.cli.options import (
    Findings,
    UsageError,
    add_command,
    add_header,
    add_key,
    add_label_file,
    add_negative,
    add_overwrite,
    add_scale,
    described,
    number_or_text,
    read_labels,
    say_if_shifted,
    whole_or_text,
)
from simdims.cli.outputs import check_target

if TYPE_CHECKING:
    from simdims.similarity import Similarity


#: What a data file may hold.
KINDS = ("matrix", "triplets", "ratings", "associations", "features", "dissimilarity")

#: Options that name columns, which then need not be found.
COLUMNS = ("item1", "item2", "rating", "participant", "cue", "response", "count", "columns", "odd")


class Source(NamedTuple):
    """A kind of raw data: what its command says, the options that are its own, and how similarities are made of it.

    `shared` are options that several kinds have: key, label_file, header, weights, negative, low, high.
    """

    summary: str
    reads: str
    example: str
    shared: tuple[str, ...]
    add_options: Callable[[Any], None]
    build: Callable[[argparse.Namespace], Similarity]


def add(commands: Any) -> None:
    """Add the command and its sources."""
    summary = "make similarities from raw data and store them in a file"
    similarity = commands.add_parser("similarity", help=summary, description=f"{summary.capitalize()}.")
    kinds = similarity.add_subparsers(metavar="SOURCE", required=True)
    for name, source in SOURCES.items():
        parser = add_command(kinds, name, _make, summary=source.summary, example=source.example)
        parser.add_argument("source", metavar="IN", type=Path, help=f"the file to read: {source.reads}")
        parser.add_argument(
            "target", metavar="OUT", type=Path, help="the file to write: .npz (keeps everything) or .csv"
        )
        source.add_options(parser)
        add_shared(parser, source.shared)
        add_overwrite(parser)
        parser.set_defaults(build=source.build)


def add_shared(parser: Any, names: Iterable[str]) -> None:
    """Add options that several sources have."""
    names = tuple(names)
    if "key" in names:
        add_key(parser, "data")
    if "label_file" in names:
        add_label_file(parser)
    if "header" in names:
        add_header(parser)
    if "low" in names:
        add_scale(parser)
    if "weights" in names:
        parser.add_argument(
            "--weights", choices=["counts"], help="weigh each pair by how many answers, ratings or people it has"
        )
    if "negative" in names:
        add_negative(parser)


def _add_features(parser: Any) -> None:
    parser.add_argument("--labels", metavar="COLUMN", help="the column of a table that names the items")
    parser.add_argument(
        "--kernel",
        choices=["auto", "linear", "rbf", "cosine"],
        default="auto",
        help="auto (default): linear where no feature is negative, else rbf",
    )
    parser.add_argument(
        "--bandwidth", type=float, default=0.4, help="sigma of rbf, in medians of all distances (default 0.4)"
    )
    parser.add_argument(
        "--implicit", action="store_true", help="never build the matrix (kernels linear and, approximately, rbf)"
    )
    parser.add_argument(
        "--landmarks", type=int, metavar="N", help="items that --implicit approximates rbf from (default 1000)"
    )


def _add_triplets(parser: Any) -> None:
    parser.add_argument(
        "--odd",
        type=whole_or_text,
        default=-1,
        metavar="COLUMN",
        help="name or position (from 0; -1, the default, is the last) of the column of the odd one out",
    )
    parser.add_argument("--columns", nargs=3, metavar="COLUMN", help="the three columns, where a table has more")
    parser.add_argument("--n-items", type=int, metavar="N", help="number of items, where some occur in no triplet")
    parser.add_argument("--smoothing", type=float, default=1.0, help="alpha in (c + alpha)/(m + 2 alpha) (default 1)")


def _add_ratings(parser: Any) -> None:
    parser.add_argument("--item1", required=True, metavar="COLUMN", help="the column of the first item")
    parser.add_argument("--item2", required=True, metavar="COLUMN", help="the column of the second item")
    parser.add_argument("--rating", required=True, metavar="COLUMN", help="the column of the ratings")
    parser.add_argument("--participant", metavar="COLUMN", help="the column that says who gave the rating")


def _add_associations(parser: Any) -> None:
    add_association_columns(parser)
    parser.add_argument(
        "--absent",
        type=number_or_text,
        default=0.03,
        metavar="missing|zero|WEIGHT",
        help=(
            "what a pair that nobody associated means: missing, zero, or a zero of this weight between 0 and 1 "
            "(default 0.03)"
        ),
    )


def add_association_columns(parser: Any) -> None:
    """Add the columns of a table of word associations."""
    for role in ("cue", "response", "count"):
        parser.add_argument(
            f"--{role}", default=role, metavar="COLUMN", help=f"the column of the {role}s (default {role})"
        )
    parser.add_argument("--no-count", action="store_const", const=False, dest="count", help="count every row once")


def _add_dissimilarity(parser: Any) -> None:
    parser.add_argument(
        "--method",
        choices=["max", "correlation", "gaussian"],
        default="max",
        help="max (default): 1 - d/max(d); correlation: 1 - d; gaussian: exp(-d^2 / 2 sigma^2)",
    )
    parser.add_argument("--sigma", type=float, help="width of gaussian (default: the median dissimilarity)")


def _make(options: argparse.Namespace) -> Findings:
    """Read IN, make similarities of it, write them to OUT, and say so."""
    _check_target(options)
    similarity = options.build(options)
    similarity.save(options.target)
    return Findings(
        f"Wrote {options.target}: {described(similarity)}",
        {"written": options.target, "n_items": similarity.n_items, "density": similarity.density}
        | {"labelled": similarity.labels is not None, "info": dict(similarity.info)},
    )


def _check_target(options: argparse.Namespace) -> None:
    """Refuse before the work what could not be saved after it."""
    from simdims.io import SAVED

    target, chosen = options.target, vars(options)
    check_target(target, tuple(SAVED), [("IN", options.source)], overwrite=options.overwrite)
    beyond_csv = {
        f"--weights {chosen.get('weights')}": chosen.get("weights") is not None,
        "--implicit": chosen.get("implicit", False),
        f"--absent {chosen.get('absent')}": chosen.get("absent", "missing") != "missing",
    }
    for option, is_chosen in beyond_csv.items():
        if is_chosen and target.suffix.lower() == ".csv":
            raise ValueError(f"OUT must end in .npz with {option}, which a .csv cannot hold, got {str(target)!r}.")


def _features(options: argparse.Namespace) -> Similarity:
    from simdims import _inputs
    from simdims.features import from_features

    if options.labels is not None and options.label_file is not None:
        raise UsageError("--labels and --label-file must not both be given: either names the items.")
    X = _inputs.read_features(options.source, options.labels, options.key, options.header)
    return from_features(
        X,
        kernel=options.kernel,
        bandwidth=options.bandwidth,
        labels=read_labels(options),
        negative=options.negative,
        implicit=options.implicit,
        n_landmarks=options.landmarks,
    )


def _triplets(options: argparse.Namespace) -> Similarity:
    from simdims import _inputs
    from simdims.triplets import from_triplets

    return from_triplets(
        _inputs.read_triplets(options.source, options.columns, options.header),
        odd=options.odd,
        n_items=options.n_items,
        smoothing=options.smoothing,
        weights=options.weights,
        labels=read_labels(options),
    )


def _ratings(options: argparse.Namespace) -> Similarity:
    from simdims import _inputs
    from simdims.construct import from_ratings

    names = [options.item1, options.item2, options.participant]
    return from_ratings(
        _inputs.read_trials(options.source, [name for name in names if name is not None], options.rating),
        item1=options.item1,
        item2=options.item2,
        rating=options.rating,
        participant=options.participant,
        low=options.low,
        high=options.high,
        weights=options.weights,
    )


def _associations(options: argparse.Namespace) -> Similarity:
    from simdims import _inputs
    from simdims.associations import from_associations

    return from_associations(
        _inputs.read_trials(options.source, [options.cue, options.response], options.count or None),
        cue=options.cue,
        response=options.response,
        count=None if options.count is False else options.count,
        absent=options.absent,
    )


def _dissimilarity(options: argparse.Namespace) -> Similarity:
    from simdims.construct import from_dissimilarity

    S = from_dissimilarity(
        options.source,
        method=options.method,
        sigma=options.sigma,
        negative=options.negative,
        labels=read_labels(options),
        weights=options.weights,
        key=options.key,
    )
    say_if_shifted(S)
    return S


SOURCES = {
    "features": Source(
        "from feature vectors (activations, brain responses, norms)",
        "one row an item: .npy, .npz, .h5, .mat, .csv, .tsv, .txt or .parquet",
        "simdims similarity features objects.csv objects.npz --labels name --kernel rbf",
        ("label_file", "key", "header", "negative"),
        _add_features,
        _features,
    ),
    "triplets": Source(
        "from odd-one-out judgements of three items",
        "one answer a row, of three positions (from 0) or names: .npy, .csv, .tsv, .txt or .parquet",
        "simdims similarity triplets answers.csv objects.npz --odd chosen --weights counts",
        ("label_file", "header", "weights"),
        _add_triplets,
        _triplets,
    ),
    "ratings": Source(
        "from ratings of how similar two items are",
        "a table with one rating a row: .csv, .tsv, .txt or .parquet",
        "simdims similarity ratings trials.csv animals.npz --item1 left --item2 right --rating answer --low 1 --high 7",
        ("weights", "low", "high"),
        _add_ratings,
        _ratings,
    ),
    "associations": Source(
        "from counts of word associations",
        "a table of cues, responses and counts: .csv, .tsv, .txt or .parquet",
        "simdims similarity associations norms.csv words.npz --cue cue --response target --count P",
        (),
        _add_associations,
        _associations,
    ),
    "dissimilarity": Source(
        "from dissimilarities (RDMs), of one or of several people",
        "a square matrix, its upper triangle as a vector, a stack of square matrices with people first or last, or a "
        "MATLAB struct array: .npy, .npz, .h5, .mat, .csv, .tsv, .txt or .parquet",
        "simdims similarity dissimilarity rdm.mat faces.npz --method correlation --negative clip",
        ("key", "label_file", "weights", "negative"),
        _add_dissimilarity,
        _dissimilarity,
    ),
}
