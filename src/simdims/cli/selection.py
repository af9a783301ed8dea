"""`simdims calibrate` and `simdims select-rank`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import check_target, write_result

if TYPE_CHECKING:
    from simdims.srf import SRF

#: More ranks than anyone tries.
_MOST_RANKS = 10_000


def add(commands: Any) -> None:
    parser = shared.add_command(
        commands,
        "calibrate",
        _calibrate,
        summary="find the fraction of pairs that cross-validation should train on",
        example="simdims calibrate animals.npz --seed 0",
    )
    shared.add_similarity(parser)
    shared.add_count(parser, "n_eigenpairs", None, "leading eigenpairs (default: a quarter of the items, at most 100)")
    shared.add_count(parser, "n_bootstraps", 50, "subsamples per sampling fraction")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.10,
        help="fraction of the stable spectral mass that may be lost (default 0.10)",
    )
    shared.add_running(parser)
    shared.add_out(parser, ".json (everything) or .csv (the curves)")

    parser = shared.add_command(
        commands,
        "select-rank",
        _select_rank,
        summary="find the number of dimensions by calibrated cross-validation",
        example="simdims select-rank animals.npz --ranks 2:30 --checkpoint animals-ranks --jobs 2 -o ranks.json",
    )
    shared.add_similarity(parser)
    parser.add_argument(
        "--ranks",
        type=ranks,
        default="auto",
        metavar="RANKS",
        help="auto (default), or numbers and ranges that include both ends: 2:30, 5:60:5, 2,4,8:12",
    )
    add_sampling(parser)
    shared.add_count(parser, "n_folds", 5, "number of folds")
    shared.add_count(parser, "n_repeats", 5, "number of repeats")
    parser.add_argument(
        "--protocol",
        choices=["averaged", "paper"],
        default="averaged",
        help="predict a held-out pair by the average of all fits not trained on it (averaged, default) or by one "
        "(paper)",
    )
    shared.add_solver(parser)
    shared.add_device(parser)
    shared.add_checkpoint(parser)
    shared.add_running(parser)
    shared.add_out(parser, ".json (everything) or .csv (every fit)")


def add_sampling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sampling", type=float, help="fraction of the pairs to train on (default: calibrated)")


def ranks(text: str) -> str | list[int]:
    """The candidates in a text such as 2:30 or 5:60:5 or 2,4,8:12; ranges include both ends."""
    if text == "auto":
        return text
    found: list[int] = []
    for part in text.split(","):
        try:
            first, *rest = map(int, part.split(":"))
            last, step = (*rest, 1) if len(rest) == 1 else rest or (first, 1)
            candidates = range(first, last + 1, step)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"must be auto, or numbers and ranges such as 2:30, got {text!r}"
            ) from None
        if not candidates or step < 1:
            raise argparse.ArgumentTypeError(f"must be ranges from low to high, got {part!r}")
        if len(found) + len(candidates) > _MOST_RANKS:
            raise argparse.ArgumentTypeError(f"must be at most {_MOST_RANKS:,} numbers, got {text!r}")
        found += candidates
    return found


def _calibrate(options: argparse.Namespace) -> Findings:
    check_target(options.out, (".json", ".csv"), [("IN", options.source)], overwrite=options.overwrite)
    S = shared.read_similarity(options)
    from simdims.selection import calibrate

    seed = shared.settled_seed(options)
    given = shared.arguments(options, "n_eigenpairs", "n_bootstraps", "tolerance", "n_jobs")
    found = calibrate(S, random_state=seed, **given)
    if options.out is not None:
        import pandas as pd

        table = pd.DataFrame({"share": found.grid, "signal_loss": found.signal_loss})
        write_result(options.out, {**found.to_dict(), "seed": seed}, table)
    return Findings(f"{found.summary()}\nsampling {found.sampling:.4f}\ncutoff {found.cutoff}", found.to_dict(), seed)


def _select_rank(options: argparse.Namespace) -> Findings:
    shared.check_solver(options)
    check_target(options.out, (".json", ".csv"), [("IN", options.source)], overwrite=options.overwrite)
    S = shared.read_similarity(options)
    from simdims.selection import select_rank

    names = ("sampling", "n_folds", "n_repeats", "protocol", "checkpoint", "random_state", "n_jobs", "progress")
    found = select_rank(S, options.ranks, estimator=_estimator(options), **shared.arguments(options, *names))
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
