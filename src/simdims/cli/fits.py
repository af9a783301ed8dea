"""`simdims fit` and `simdims consensus`: a given number of dimensions."""

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
    import pandas as pd


def add(commands: Any) -> None:
    """Add both commands."""
    parser = add_command(
        commands,
        "fit",
        _fit,
        summary="fit a given number of dimensions once",
        example="simdims fit animals.npz -n 10 -o embedding.csv",
    )
    add_similarity(parser)
    _add_components(parser)
    parser.add_argument("--solver", choices=["bcd", "admm"], default="bcd", help="bcd (default) or the paper's admm")
    parser.add_argument("--max-iter", type=int, default=500, metavar="N", help="most sweeps (default 500)")
    parser.add_argument("--tol", type=float, default=1e-4, help="relative tolerance (default 1e-4)")
    add_device(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: drawn afresh and printed)")
    _add_embedding_out(parser)

    parser = add_command(
        commands,
        "consensus",
        _consensus,
        summary="fit a given number of dimensions many times and keep the most central run",
        example="simdims consensus animals.npz -n 10 --runs 30 --jobs 2 -o embedding.csv",
    )
    add_similarity(parser)
    _add_components(parser)
    parser.add_argument("--runs", type=int, default=30, metavar="N", help="fits (default 30)")
    parser.add_argument("--splits", type=int, default=100, metavar="N", help="splits of the items (default 100)")
    add_device(parser)
    add_checkpoint(parser)
    add_running(parser)
    _add_embedding_out(parser)


def _add_components(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--components", type=int, required=True, metavar="N", dest="components", help="number of dimensions"
    )


def _add_embedding_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="OUT",
        required=True,
        help="the file of the embedding, a row for each item: .csv",
    )
    add_overwrite(parser)


def _fit(options: argparse.Namespace) -> Findings:
    check_solver(options)
    check_target(options.out, (".csv",), [("IN", options.source)], overwrite=options.overwrite)
    S = read_similarity(options)
    from simdims._parameters import plural
    from simdims.srf import SRF

    seed = settled_seed(options)
    srf = SRF(
        options.components,
        solver="auto" if options.solver == "bcd" else options.solver,
        device=options.device,
        max_iter=options.max_iter,
        tol=options.tol,
        random_state=seed,
    ).fit(S)
    _write_embedding(options.out, srf.embedding_frame())
    explained, score = "", None
    try:
        score = srf.score(S)
        they = "they explain" if options.components > 1 else "it explains"
        explained = (
            f" In sample, {they} {score:.1%} of the variance; a single fit has no held-out R2 (`simdims discover "
            f"--ranks {options.components}` computes it)."
        )
    except ValueError:  # equal similarities have none
        pass
    return Findings(
        f"{options.components} {plural('dimension', options.components)} of {S.n_items} items in {srf.n_iter_} "
        f"{plural('iteration', srf.n_iter_)}."
        f"{explained}\n"
        f"Wrote {options.out}",
        {
            "written": options.out,
            "n_items": S.n_items,
            "n_components": options.components,
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
    S = read_similarity(options)
    from simdims.consensus import fit_consensus
    from simdims.consensus.runs import default_estimator

    found = fit_consensus(
        S,
        options.components,
        n_runs=options.runs,
        n_splits=options.splits,
        estimator=default_estimator(options.device),
        checkpoint=options.checkpoint,
        random_state=options.seed,
        n_jobs=options.jobs,
        progress=progress_of(options),
    )
    _write_embedding(options.out, found.embedding_frame())
    return Findings(
        f"{found.summary()}\nWrote {options.out}",
        {
            "written": options.out,
            "n_items": found.n_items,
            "n_components": found.n_components,
            "n_runs": found.n_runs,
            "selected": found.selected,
            "mean_reliability": found.mean_reliability,
            "reliability": found.reliability,
            "objectives": found.objectives,
            "converged": found.converged,
        },
        found.seed,
    )


def _write_embedding(target: Path, frame: pd.DataFrame) -> None:
    write_result(target, {}, frame.rename_axis("item").reset_index())
