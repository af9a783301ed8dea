"""Options and outputs that several commands share."""

from __future__ import annotations

import argparse
import json
import math
import os
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

    from simdims.similarity import Similarity


class UsageError(ValueError):
    """The words of a command do not go together."""


class Findings(NamedTuple):
    """What a command has to say: words for people, and the same as plain values for programs (--json)."""

    words: str
    values: dict[str, Any]


def add_command(
    commands: Any, name: str, run: Any, *, summary: str, example: str, details: str = "", has_findings: bool = True
) -> argparse.ArgumentParser:
    """Add a command with its help; `run` takes the options and returns Findings."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=textwrap.fill(f"{summary[0].upper()}{summary[1:]}.{details and ' ' + details}", 100),
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, command=parser, json=False)
    parser.add_argument("--verbose", action="store_true", help="say what is found and done")
    if has_findings:
        parser.add_argument("--json", action="store_true", help="write what is found to stdout as one JSON object")
    return parser


def option_of(command: argparse.ArgumentParser, name: str) -> str | None:
    """What the help of a command calls an option or argument, if it has it: --ranks, or IN."""
    for action in command._actions:
        if action.dest == name:
            is_output = not action.option_strings or "--out" in action.option_strings
            return str(action.metavar) if is_output else next(s for s in action.option_strings if s.startswith("--"))
    return None


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
    add_matrix_options(parser)


def add_matrix_options(parser: Any) -> None:
    """Add what may have to be said about a file of similarities alone."""
    parser.add_argument(
        "--form", choices=["square", "long"], help="whether a small table is a square or a list of pairs"
    )
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
        form=options.form,
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


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add where to compute."""
    parser.add_argument(
        "--device",
        default="cpu",
        metavar="cpu|cuda|cuda:N|mps|torch-cpu",
        help="where to compute: cpu (default), or by PyTorch on a GPU (cuda, mps) or the processor (torch-cpu)",
    )


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add where finished work is kept."""
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="a folder for finished fits; run again to continue"
    )


def add_overwrite(parser: argparse.ArgumentParser, what: str = "OUT") -> None:
    """Add the word that lets a command replace what is there."""
    parser.add_argument("--overwrite", action="store_true", help=f"replace {what} if it is there already")


def progress_of(options: argparse.Namespace) -> bool | None:
    """The argument `progress` that was asked for: a bar where a person is looking, or none."""
    return False if options.quiet else None


def add_label_file(parser: Any) -> None:
    """Add a file of names."""
    parser.add_argument("--label-file", type=Path, metavar="FILE", help="a text file with the name of one item a line")


def add_key(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the name of a variable."""
    parser.add_argument("--key", metavar="NAME", help=f"the variable of the {what}, where a file holds several")


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


def check_target(
    target: Path | None, endings: tuple[str, ...], sources: Iterable[tuple[str, Path]] = (), *, overwrite: bool
) -> None:
    """Refuse before the work what could not, or should not, be written after it.

    Parameters
    ----------
    target : Path or None
        What is to be written, if anything.
    endings : tuple of str
    sources : iterable of (name, path)
        The files that the command reads, which it must not write over, and what its help calls them.
    overwrite : bool
        Whether a file that is there may be replaced.
    """
    if target is None:
        return
    if endings and target.suffix.lower() not in endings:
        raise ValueError(f"OUT must end in {' or '.join(endings)}, got {str(target)!r}.")
    if target.is_dir():
        raise ValueError(f"OUT must be a file, got {str(target)!r}, which is a folder.")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"OUT must lie in a folder that is there, got {str(target)!r}.")
    for name, source in sources:
        if os.path.realpath(source) == os.path.realpath(target):
            raise ValueError(f"OUT must be another file than {name}, got {str(target)!r} for both.")
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"OUT must be new, got {str(target)!r}, which is there already: choose another name, or pass --overwrite."
        )


def write_result(target: Path, values: dict[str, Any], table: pd.DataFrame | None = None) -> None:
    """Write a result as .json (everything) or .csv (its table); an existing file is replaced once the new is whole."""
    from simdims._journal import replacing

    with replacing(target) as part:
        if target.suffix.lower() == ".json":
            part.write_text(as_json(values, indent=1) + "\n", encoding="utf-8")
        elif table is not None:
            table.to_csv(part, index=False)


def as_json(values: Any, indent: int | None = None) -> str:
    """Plain values as JSON that every program reads: a number that is none, as NaN, becomes null."""
    return json.dumps(_plain(values), indent=indent, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "to_dict"):  # a table
        return _plain(value.to_dict(orient="records"))
    if hasattr(value, "tolist"):  # an array, or one of its numbers
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


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
