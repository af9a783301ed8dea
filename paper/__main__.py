"""`python -m paper NAME`: run one analysis, print the published values next to ours, and write figure and tables."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from paper.harness import ANALYSES, reproduce


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = parser().parse_args(arguments)
    if options.name == "list":
        print(json.dumps(ANALYSES) if options.json else "\n".join(f"{n:<18}{t}" for n, t in ANALYSES.items()))
        return 0
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        parser().error(f"-o must be a folder, got the file {str(options.out)!r}.")
    try:
        found = reproduce(
            options.name,
            size=options.size,
            data=options.data,
            only=options.only,
            checkpoint=options.checkpoint,
            random_state=options.seed,
            n_jobs=options.jobs,
            progress=False if options.quiet else None,
        )
    except (ValueError, OSError) as error:
        print(f"paper: {error}", file=sys.stderr)
        return 1
    files = [] if options.out is None else [str(path) for path in found.save(options.out)]
    print(json.dumps({**found.to_dict(), "files": files}, ensure_ascii=False) if options.json else found.summary())
    if files and not options.json:
        print("\nWritten: " + ", ".join(files))
    return 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m paper", description="Run an analysis of the SRF paper with simdims.")
    made.add_argument("name", metavar="NAME", choices=["list", *ANALYSES], help=f"list, {', '.join(ANALYSES)}")
    sizes = made.add_mutually_exclusive_group()
    for size, words in (
        ("smoke", "check in seconds that it runs"),
        ("quick", "show the direction of results in minutes"),
    ):
        sizes.add_argument(f"--{size}", dest="size", action="store_const", const=size, help=words)
    made.add_argument("--data", type=Path, metavar="DIR", help="folder of data files (default: SIMDIMS_DATA)")
    made.add_argument("--only", nargs="+", metavar="SET", help="for datasets: the data sets to run")
    made.add_argument("-o", "--out", type=Path, metavar="DIR", help="write figure, tables and text to this folder")
    made.add_argument("--checkpoint", type=Path, metavar="DIR", help="folder for finished work; run again to resume")
    made.add_argument("--seed", type=int, metavar="N", help="seed of all random numbers (default: 0)")
    made.add_argument("--jobs", type=int, metavar="N", help="number of processes; -1 uses all cores (default: 1)")
    made.add_argument("--json", action="store_true", help="print the result as JSON")
    made.add_argument("--quiet", action="store_true", help="hide progress bars")
    made.set_defaults(size="full", seed=0)
    return made


if __name__ == "__main__":
    sys.exit(main())
