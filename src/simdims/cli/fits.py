"""`simdims fit`, `simdims consensus` and `simdims discover`: from a file of similarities to dimensions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli.options import (
    add_command,
    add_running,
    add_similarity,
    check_target,
    progress_of,
    read_similarity,
    write_result,
)
from simdims.cli.selection import ranks

if TYPE_CHECKING:
    import pandas as pd


def add(commands: Any) -> None:
    """Add the three commands."""
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
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the start (default: a new one)")
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
    _add_checkpoint(parser)
    add_running(parser)
    _add_embedding_out(parser)

    parser = add_command(
        commands,
        "discover",
        _discover,
        summary="find the number of dimensions, the dimensions, and how stable they are",
        example="simdims discover animals.npz -o animals --checkpoint animals-work --jobs 2",
    )
    add_similarity(parser)
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER", required=True, help="the folder to write")
    parser.add_argument(
        "--ranks", type=ranks, default="auto", metavar="RANKS", help="auto (default), one number, or as 2:30 or 5:60:5"
    )
    parser.add_argument("--sampling", type=float, help="share of the pairs to train on (default: calibrated)")
    parser.add_argument("--repeats", type=int, metavar="N", help="repeats of the cross-validation (default by size)")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of the consensus (default by size)")
    _add_checkpoint(parser)
    add_running(parser)


def _add_components(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--components", type=int, required=True, metavar="N", dest="components", help="number of dimensions"
    )


def _add_checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="a folder for finished fits; run again to continue"
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


def _fit(options: argparse.Namespace) -> None:
    check_target(options.out, (".csv",), options.source)
    S = read_similarity(options)
    from simdims.consensus.result import _count
    from simdims.srf import SRF

    srf = SRF(
        options.components,
        solver=options.solver,
        max_iter=options.max_iter,
        tol=options.tol,
        random_state=options.seed,
    ).fit(S)
    _write_embedding(options.out, srf.embedding_frame())
    try:
        explained = (
            f" {'They explain' if options.components > 1 else 'It explains'} {srf.score(S):.1%} of the variance."
        )
    except ValueError:  # equal similarities have none
        explained = ""
    sys.stdout.write(
        f"{_count(options.components, 'dimension')} of {S.n_items} items in {_count(srf.n_iter_, 'iteration')}."
        f"{explained}\n"
        f"Wrote {options.out}\n"
    )


def _consensus(options: argparse.Namespace) -> None:
    check_target(options.out, (".csv",), options.source)
    S = read_similarity(options)
    from simdims.consensus import fit_consensus

    found = fit_consensus(
        S,
        options.components,
        n_runs=options.runs,
        n_splits=options.splits,
        checkpoint=options.checkpoint,
        random_state=options.seed,
        n_jobs=options.jobs,
        progress=progress_of(options),
    )
    _write_embedding(options.out, found.embedding_frame())
    sys.stdout.write(f"{found.summary()}\nWrote {options.out}\n")


def _discover(options: argparse.Namespace) -> None:
    from simdims.discovery.storage import check_folder

    check_folder(options.out)
    _check_apart(options.out, options.checkpoint)
    S = read_similarity(options)
    from simdims.discovery import discover
    from simdims.discovery.estimate import in_words
    from simdims.discovery.run import expected_seconds

    one = options.ranks[0] if not isinstance(options.ranks, str) and len(options.ranks) == 1 else None
    arguments = {
        "ranks": options.ranks if one is None else one,
        "sampling": options.sampling,
        "n_repeats": options.repeats,
        "n_runs": options.runs,
        "n_jobs": options.jobs,
    }
    sys.stdout.write(f"{S!r}: this will take about {in_words(expected_seconds(S, **arguments))}.\n")
    sys.stdout.flush()
    found = discover(
        S,
        **arguments,
        checkpoint=options.checkpoint,
        random_state=options.seed,
        progress=progress_of(options),
    )
    found.save(options.out)
    sys.stdout.write(f"{found.summary()}\nWrote {options.out}\n")


def _check_apart(out: Path, checkpoint: Path | None) -> None:
    if checkpoint is None:
        return
    one, other = out.resolve(), checkpoint.resolve()
    if one == other or one in other.parents or other in one.parents:
        raise ValueError(f"FOLDER must lie apart from the checkpoint, got {str(out)!r} and {str(checkpoint)!r}.")


def _write_embedding(target: Path, frame: pd.DataFrame) -> None:
    write_result(target, {}, frame.rename_axis("item").reset_index())
