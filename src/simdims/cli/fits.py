"""`simdims fit` and `simdims consensus`: a given number of dimensions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import check_target, write_result

if TYPE_CHECKING:
    import pandas as pd


def add(commands: Any) -> None:
    fit = shared.add_command(
        commands,
        "fit",
        _fit,
        summary="fit a given number of dimensions once",
        example="simdims fit animals.npz -n 10 -o embedding.csv",
    )
    consensus = shared.add_command(
        commands,
        "consensus",
        _consensus,
        summary="fit a given number of dimensions from many random starts and keep the most representative run",
        example="simdims consensus animals.npz -n 10 --runs 30 --jobs 2 -o embedding.csv",
    )
    for parser in (fit, consensus):
        shared.add_similarity(parser)
        help_text = "number of dimensions"
        parser.add_argument(
            "-n", "--components", type=int, required=True, metavar="N", dest="n_components", help=help_text
        )
        shared.add_device(parser)
        shared.add_out(parser, ".csv, one row per item", required=True)
    shared.add_solver(fit)
    shared.add_count(fit, "max_iter", 500, "maximum number of sweeps")
    fit.add_argument("--tol", type=float, default=1e-4, help="relative tolerance (default 1e-4)")
    shared.add_seed(fit)
    shared.add_count(consensus, "n_runs", 30, "number of random starts")
    shared.add_count(consensus, "n_splits", 100, "random split halves of the items, for reliability")
    shared.add_checkpoint(consensus)
    shared.add_running(consensus)


def _fit(options: argparse.Namespace) -> Findings:
    shared.check_solver(options)
    check_target(options.out, (".csv",), [("IN", options.source)], overwrite=options.overwrite)
    S = shared.read_similarity(options)
    from simdims._parameters import plural
    from simdims.srf import SRF

    seed, n = shared.settled_seed(options), options.n_components
    given = shared.arguments(options, "device", "max_iter", "tol")
    srf = SRF(n, solver="auto" if options.solver == "bcd" else options.solver, random_state=seed, **given).fit(S)
    _write_embedding(options.out, srf.embedding_frame())
    explained, score = "", None
    try:
        score = srf.score(S)
        they = "they explain" if n > 1 else "it explains"
        explained = (
            f" In sample, {they} {score:.1%} of the variance; a single fit has no held-out R2 (`simdims discover "
            f"--ranks {n}` computes it)."
        )
    except ValueError:  # equal similarities have none
        pass
    return Findings(
        f"{n} {plural('dimension', n)} of {S.n_items} items in {srf.n_iter_} "
        f"{plural('iteration', srf.n_iter_)}.{explained}\n"
        f"Wrote {options.out}",
        {
            "written": options.out,
            "n_items": S.n_items,
            "n_components": n,
            "explained_variance": score,
            "held_out_r2": None,
            "objective": srf.objective_,
            "n_iter": srf.n_iter_,
            "converged": srf.converged_,
            "kkt_residual": srf.kkt_residual_,
        },
        seed,
    )


def _consensus(options: argparse.Namespace) -> Findings:
    check_target(options.out, (".csv",), [("IN", options.source)], overwrite=options.overwrite)
    S = shared.read_similarity(options)
    from simdims.consensus import fit_consensus
    from simdims.consensus.runs import default_estimator

    names = ("n_runs", "n_splits", "checkpoint", "random_state", "n_jobs", "progress")
    given = shared.arguments(options, *names)
    found = fit_consensus(S, options.n_components, estimator=default_estimator(options.device), **given)
    _write_embedding(options.out, found.embedding_frame())
    reported = ("n_items", "n_components", "n_runs", "selected", "mean_reliability", "reliability", "objectives")
    values = {"written": options.out, **{name: getattr(found, name) for name in (*reported, "converged")}}
    return Findings(f"{found.summary()}\nWrote {options.out}", values, found.seed)


def _write_embedding(target: Path, frame: pd.DataFrame) -> None:
    write_result(target, {}, frame.rename_axis("item").reset_index())
