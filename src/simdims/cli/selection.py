"""`simdims calibrate` and `simdims select-rank`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli.options import (
    Findings,
    add_checkpoint,
    add_command,
    add_device,
    add_overwrite,
    add_running,
    add_similarity,
    check_solver,
    progress_of,
    read_similarity,
    settled_seed,
)
from simdims.cli.outputs import check_target, write_result

if TYPE_CHECKING:
    from simdims.srf import SRF

#: More numbers than anyone tries, and few enough to write down.
_MOST_RANKS = 10_000


def add(commands: Any) -> None:
    """Add both commands."""
    parser = add_command(
        commands,
        "calibrate",
        _calibrate,
        summary="find the share of the pairs that cross-validation should train on",
        example="simdims calibrate animals.npz --seed 0",
    )
    add_similarity(parser)
    parser.add_argument(
        "--eigenpairs", type=int, metavar="N", help="leading eigenpairs (default: a quarter, at most 100)"
    )
    parser.add_argument("--bootstraps", type=int, default=50, metavar="N", help="subsamples a share (default 50)")
    parser.add_argument("--tolerance", type=float, default=0.10, help="share of the structure to lose (default 0.10)")
    add_running(parser)
    _add_out(parser, "the curves")

    parser = add_command(
        commands,
        "select-rank",
        _select_rank,
        summary="find the number of dimensions by calibrated cross-validation",
        example="simdims select-rank animals.npz --ranks 2:30 --checkpoint animals-ranks --jobs 2 -o ranks.json",
    )
    add_similarity(parser)
    parser.add_argument(
        "--ranks",
        type=ranks,
        default="auto",
        metavar="RANKS",
        help="auto (default), or numbers and ranges, both ends included: 2:30, 5:60:5, 2,4,8:12",
    )
    parser.add_argument("--sampling", type=float, help="share of the pairs to train on (default: calibrated)")
    parser.add_argument("--folds", type=int, default=5, metavar="N", help="folds (default 5)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="repeats (default 5)")
    parser.add_argument(
        "--protocol",
        choices=["averaged", "paper"],
        default="averaged",
        help="averaged (default): predict by all fits that have not seen a pair; paper: by one",
    )
    parser.add_argument("--solver", choices=["bcd", "admm"], default="bcd", help="bcd (default) or the paper's admm")
    add_device(parser)
    add_checkpoint(parser)
    add_running(parser)
    _add_out(parser, "every fit")


def ranks(text: str) -> str | list[int]:
    """The candidates that a text such as 2:30 or 5:60:5 or 2,4,8:12 names; the ends of ranges are included."""
    if text == "auto":
        return text
    found: list[int] = []
    for part in text.split(","):
        try:
            ends = [int(number) for number in part.split(":")]
            if len(ends) > 3:
                raise ValueError
            first, last, step = ends[0], ends[1] if len(ends) > 1 else ends[0], ends[2] if len(ends) > 2 else 1
            those = range(first, last + 1, step)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"must be auto, or numbers and ranges such as 2:30, got {text!r}"
            ) from None
        if not those or step < 1:
            raise argparse.ArgumentTypeError(f"must hold ranges that rise, got {part!r}")
        if len(found) + len(those) > _MOST_RANKS:
            raise argparse.ArgumentTypeError(f"must name at most {_MOST_RANKS:,} numbers, got {text!r}")
        found += those
    return found


def _add_out(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "-o", "--out", type=Path, metavar="OUT", help=f"a file for the result: .json (everything) or .csv ({what})"
    )
    add_overwrite(parser)


def _calibrate(options: argparse.Namespace) -> Findings:
    check_target(options.out, (".json", ".csv"), [("IN", options.source)], overwrite=options.overwrite)
    S = read_similarity(options)
    from simdims.selection import calibrate

    seed = settled_seed(options)
    found = calibrate(
        S,
        n_eigenpairs=options.eigenpairs,
        n_bootstraps=options.bootstraps,
        tolerance=options.tolerance,
        random_state=seed,
        n_jobs=options.jobs,
    )
    if options.out is not None:
        import pandas as pd

        table = pd.DataFrame({"share": found.grid, "signal_loss": found.signal_loss})
        write_result(options.out, {**found.to_dict(), "seed": seed}, table)
    return Findings(f"{found.summary()}\nsampling {found.sampling:.4f}\ncutoff {found.cutoff}", found.to_dict(), seed)


def _select_rank(options: argparse.Namespace) -> Findings:
    check_solver(options)
    check_target(options.out, (".json", ".csv"), [("IN", options.source)], overwrite=options.overwrite)
    S = read_similarity(options)
    from simdims.selection import select_rank

    found = select_rank(
        S,
        options.ranks,
        sampling=options.sampling,
        n_folds=options.folds,
        n_repeats=options.repeats,
        protocol=options.protocol,
        estimator=_estimator(options),
        checkpoint=options.checkpoint,
        random_state=options.seed,
        n_jobs=options.jobs,
        progress=progress_of(options),
    )
    if options.out is not None:
        write_result(options.out, found.to_dict(), found.scores)
    values = {**found.to_dict(), "evidence_of_structure": found.evidence_of_structure}
    return Findings(f"{found.summary()}\nrank {found.rank}", values, found.seed)


def _estimator(options: argparse.Namespace) -> SRF:
    from simdims.selection.crossvalidation import default_estimator
    from simdims.srf import SRF

    if options.solver == "admm":
        return SRF(solver="admm", max_iter=200, inner_iter=50, device=options.device)
    return default_estimator(options.device)
