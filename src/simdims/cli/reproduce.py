"""`simdims reproduce`: the paper's analyses, published values beside ours."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simdims.cli.options import Findings, UsageError, add_command, add_running, progress_of
from simdims.cli.outputs import check_place


def add(commands: Any) -> None:
    """Add the command."""
    from simdims.reproduce import ANALYSES

    parser = add_command(
        commands,
        "reproduce",
        _reproduce,
        summary="run an analysis of the paper and hold the published values against ours",
        example="simdims reproduce recovery --quick -o reproduced",
        details=f"NAME is one of {', '.join(ANALYSES)}; `list` says what each one is.",
    )
    parser.add_argument("name", metavar="NAME", choices=["list", *ANALYSES], help="an analysis, or `list`")
    sizes = parser.add_mutually_exclusive_group()
    for size, what in (("smoke", "seconds: see that it runs"), ("quick", "minutes: see the direction of the results")):
        sizes.add_argument(f"--{size}", dest="size", action="store_const", const=size, help=what)
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="files that are not ours to ship (default: SIMDIMS_DATA)"
    )
    parser.add_argument("--only", nargs="+", metavar="SET", help="of `datasets`: the data sets to run")
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER", help="a folder for figure, tables and text")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="a folder for finished work; run again to continue"
    )
    add_running(parser)
    parser.set_defaults(size="full", seed=0)


def _reproduce(options: argparse.Namespace) -> Findings:
    from simdims.reproduce import ANALYSES, reproduce

    if options.name == "list":
        return Findings("\n".join(f"{name:<18}{title}" for name, title in ANALYSES.items()), dict(ANALYSES))
    if options.only and options.name != "datasets":
        raise UsageError("--only must be left out but with `simdims reproduce datasets`.")
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise ValueError(f"FOLDER must be a folder, got {str(options.out)!r}, which is a file.")
    if options.out is not None:
        check_place(options.out, "FOLDER", is_filled=True)
    found = reproduce(
        options.name,
        size=options.size,
        data=options.data,
        only=options.only,
        checkpoint=options.checkpoint,
        random_state=options.seed,
        n_jobs=options.jobs,
        progress=progress_of(options),
    )
    words = found.summary()
    files = [] if options.out is None else [str(path) for path in found.save(options.out)]
    if files:
        words += "\n\nWritten: " + ", ".join(files)
    return Findings(words, {**found.to_dict(), "files": files})
