"""Options and outputs that several commands share."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from simdims.similarity import Similarity


def add_command(
    commands: Any, name: str, run: Any, *, summary: str, example: str, details: str = ""
) -> argparse.ArgumentParser:
    """Add a command with its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.{details and ' ' + details}",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--verbose", action="store_true", help="say what is found and done")
    parser.set_defaults(run=run)
    return parser


def add_similarity(parser: argparse.ArgumentParser) -> None:
    """Add IN, a file of similarities, and what may have to be said about it."""
    parser.add_argument(
        "source",
        metavar="IN",
        type=Path,
        help="similarities: a file that `simdims similarity` wrote, a square table or a list of pairs",
    )
    add_key(parser, "similarities")
    add_label_file(parser)
    parser.add_argument(
        "--absent",
        type=number_or_text,
        metavar="missing|zero|WEIGHT",
        help="what a pair means that a sparse matrix, a graph or a list of pairs does not hold",
    )
    parser.add_argument(
        "--symmetrize", choices=["mean", "max"], help="what to make of the two sides of a pair that differ"
    )


def read_similarity(options: argparse.Namespace) -> Similarity:
    """The similarities of IN."""
    from simdims.io import load_similarity

    return load_similarity(
        options.source,
        key=options.key,
        labels=read_labels(options),
        absent=options.absent,
        symmetrize=options.symmetrize,
    )


def read_embedding(options: argparse.Namespace) -> Any:
    """The embedding of EMBEDDING, by name where it has names."""
    from simdims import _inputs

    if options.source.is_dir():
        from simdims.discovery import Discovery

        return Discovery.load(options.source).embedding_frame()
    name = options.item
    if name is None and _inputs.has_column(options.source, "item"):
        name = "item"
    W = _inputs.read_features(options.source, name, options.key, None)
    if name is not None and list(W.index) == [str(position) for position in range(len(W))]:
        W = W.reset_index(drop=True)  # an embedding without names, which are then positions
    return W


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add what every command with many tasks takes."""
    parser.add_argument("--seed", type=int, metavar="N", help="seed of all that is random (default: a new one)")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes; -1 is one a core (default 1)")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")


def progress_of(options: argparse.Namespace) -> bool | None:
    """The argument `progress` that was asked for: a bar where a person is looking, or none."""
    return False if options.quiet else None


def add_label_file(parser: Any) -> None:
    """Add a file of names."""
    parser.add_argument("--label-file", type=Path, metavar="FILE", help="a text file with the name of one item a line")


def add_key(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the name of a variable."""
    parser.add_argument("--key", metavar="NAME", help=f"the variable of the {what}, where IN holds several")


def add_header(parser: argparse.ArgumentParser) -> None:
    """Add whether the first row names the columns."""
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row of a text file names the columns (default: unless it holds numbers only)",
    )


def read_labels(options: argparse.Namespace) -> list[str] | None:
    """The names of --label-file."""
    from simdims import _inputs

    return None if options.label_file is None else _inputs.read_names(options.label_file)


def check_target(target: Path | None, endings: tuple[str, ...], source: Path | None = None) -> None:
    """Refuse before the work what could not be written after it."""
    if target is None:
        return
    if endings and target.suffix.lower() not in endings:
        raise ValueError(f"OUT must end in {' or '.join(endings)}, got {str(target)!r}.")
    if target.is_dir():
        raise ValueError(f"OUT must be a file, got {str(target)!r}, which is a folder.")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"OUT must lie in a folder that is there, got {str(target)!r}.")
    if source is not None and os.path.realpath(source) == os.path.realpath(target):
        raise ValueError(f"OUT must be another file than IN, got {str(target)!r} for both.")


def write_result(
    target: Path, values: dict[str, Any], table: pd.DataFrame | None = None, *, index: bool = False
) -> None:
    """Write a result as .json (everything) or .csv (its table); an existing file is replaced once the new is whole."""
    from simdims._journal import replacing

    with replacing(target) as part:
        if target.suffix.lower() == ".json":
            part.write_text(json.dumps(values, indent=1, allow_nan=True) + "\n", encoding="utf-8")
        elif table is not None:
            table.to_csv(part, index=index)


def whole_or_text(word: str) -> int | str:
    """A word as the whole number that it is, or itself."""
    try:
        return int(word)
    except ValueError:
        return word


def number_or_text(word: str) -> float | str:
    """A word as the number that it is, or itself."""
    try:
        return float(word)
    except ValueError:
        return word
