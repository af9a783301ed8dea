"""`simdims export`: export the tables of a discover result as a BIDS derivative."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simdims.cli.options import Findings, add_command, add_folder, add_overwrite
from simdims.cli.outputs import check_writable


def add(commands: Any) -> None:
    summary = "write the tables of a discover result as a BIDS derivative: .tsv, with .json files of descriptions"
    example = "simdims export animals -o derivatives/simdims"
    parser = add_command(commands, "export", _export, summary=summary, example=example)
    add_folder(parser, "RESULT")
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER", required=True, help="output folder")
    add_overwrite(parser, "an earlier export in FOLDER")


def _export(options: argparse.Namespace) -> Findings:
    from simdims.discovery import Discovery, bids

    if bids.is_export(options.out) and not options.overwrite:
        taken = f"{str(options.out)!r} holds an earlier export"
        raise FileExistsError(f"{taken}: choose another name, or pass --overwrite.")
    if not (bids.is_free(options.out) or bids.is_export(options.out)):
        raise FileExistsError(f"{str(options.out)!r} is not an earlier export: choose another FOLDER.")
    check_writable(options.out)
    Discovery.load(options.folder).to_bids(options.out)
    files = sorted(one.name for one in options.out.iterdir())
    return Findings(f"Wrote {', '.join(files)} to {options.out}", {"folder": options.out, "files": files})
