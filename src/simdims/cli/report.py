"""`simdims report`: a page to explore, out of a folder that `simdims discover` wrote."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli.options import add_command

if TYPE_CHECKING:
    from simdims.discovery import Discovery


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "report",
        _report,
        summary="write a page to explore what discover found: one HTML file that needs no network",
        example="simdims report animals -o animals.html --images pictures",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a folder that `simdims discover` wrote")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="the file to write: .html (default report.html in FOLDER)"
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="a folder with a picture of each item, named as its label (without labels: in the order of the names)",
    )
    parser.add_argument("--title", metavar="TEXT", help="the heading")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE even if it is not an earlier report")


def _report(options: argparse.Namespace) -> None:
    from simdims.discovery import Discovery
    from simdims.report.writer import check_target

    target = options.folder / "report.html" if options.out is None else options.out
    if options.out is not None:
        check_target(target, options.overwrite)
    found = Discovery.load(options.folder)
    images = None if options.images is None else _pictures(options.images, found)
    path = found.report(target, images=images, title=options.title, overwrite=options.overwrite)
    sys.stdout.write(f"Wrote {path}\n")


def _pictures(folder: Path, found: Discovery) -> list[Path]:
    """The picture of each item, by label where there are labels."""
    if not folder.is_dir():
        raise FileNotFoundError(f"DIR must be a folder of pictures, got {str(folder)!r}.")
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if found.labels is None:
        return files
    by_stem = {path.stem: path for path in files}
    missing = [label for label in found.labels if label not in by_stem]
    if missing:
        raise ValueError(
            f"DIR must hold a picture of each item, named as its label, got none of {missing[0]!r}"
            f"{f' and {len(missing) - 1} others' if len(missing) > 1 else ''} in {str(folder)!r}."
        )
    return [by_stem[label] for label in found.labels]
