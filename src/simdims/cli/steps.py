"""`simdims calibrate`, `select-rank`, `fit` and `consensus`: the steps of `simdims discover`."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import FIGURES, write_figure, write_result

if TYPE_CHECKING:
    import pandas as pd

    from simdims.similarity import Similarity
    from simdims.srf import SRF

#: Upper limit on the number of candidate ranks.
_MOST_RANKS = 10_000


def add(commands: Any) -> None:
    summary = "find the fraction of pairs that cross-validation should train on"
    example = "simdims calibrate animals.npz --seed 0"
    calibrate = shared.add_command(commands, "calibrate", _calibrate, summary=summary, example=example)
    summary = "find the number of dimensions by cross-validation"
    example = "simdims select-rank animals.npz --ranks 2:30 --checkpoint animals-ranks --jobs 2 -o ranks.json"
    select_rank = shared.add_command(commands, "select-rank", _select_rank, summary=summary, example=example)
    summary = "fit a given number of dimensions once"
    example = "simdims fit animals.npz -n 10 -o embedding.csv"
    fit = shared.add_command(commands, "fit", _fit, summary=summary, example=example)
    summary = "fit a given number of dimensions from many random starts and keep the most representative run"
    example = "simdims consensus animals.npz -n 10 --runs 30 --jobs 2 -o embedding.csv"
    consensus = shared.add_command(commands, "consensus", _consensus, summary=summary, example=example)
    for parser in (calibrate, select_rank, fit, consensus):
        shared.add_similarity(parser)
    _add_calibrate(calibrate)
    _add_select_rank(select_rank)
    for parser in (fit, consensus):
        number = {"dest": "n_components", "metavar": "N", "help": "number of dimensions"}
        parser.add_argument("-n", "--components", type=int, required=True, **number)
        shared.add_alpha(parser, 0.0)
        shared.add_device(parser)
        shared.add_out(parser, ".csv, one row per item", required=True)
    shared.add_choice(fit, "--solver", "bcd", "admm")
    shared.add_count(fit, "max_iter", 500, "maximum number of sweeps")
    fit.add_argument("--tol", type=float, default=1e-4, help="relative tolerance (default 1e-4)")
    shared.add_seed(fit)
    shared.add_count(consensus, "n_runs", 30, "number of random starts")
    shared.add_count(consensus, "n_splits", 100, "random split halves of the items, for reliability")
    shared.add_checkpoint(consensus)
    shared.add_running(consensus)
    shared.add_dry_run(consensus)


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    shared.add_count(parser, "n_eigenpairs", None, "leading eigenpairs (default: a quarter of the items, at most 100)")
    shared.add_count(parser, "n_bootstraps", 50, "subsamples per sampling fraction")
    lost = "fraction of the stable spectral mass that may be lost (default 0.10)"
    parser.add_argument("--tolerance", type=float, default=0.10, help=lost)
    shared.add_running(parser)
    shared.add_out(parser, f".json (everything), .csv (the curves), or a figure: {', '.join(FIGURES)}")


def _add_select_rank(parser: argparse.ArgumentParser) -> None:
    add_ranks(parser)
    shared.add_count(parser, "n_folds", None, "number of folds (default: 8 with a penalty, 5 without)")
    shared.add_count(parser, "n_repeats", None, "number of repeats (default: 2 with a penalty, 5 without)")
    protocol = (
        "predict a held-out pair by one fit with a penalty (penalised, the default), by the average of all fits "
        "not trained on it (averaged, the default with --alpha 0), or by one fit without a penalty (paper)"
    )
    parser.add_argument("--protocol", choices=["penalised", "averaged", "paper"], help=protocol)
    shared.add_alpha(parser, "auto")
    shared.add_choice(parser, "--solver", "bcd", "admm")
    shared.add_device(parser)
    shared.add_checkpoint(parser)
    shared.add_running(parser)
    shared.add_dry_run(parser)
    shared.add_out(parser, ".json (everything) or .csv (every fit)")


def add_ranks(parser: argparse.ArgumentParser) -> None:
    candidates = "auto (default), or numbers and ranges that include both ends: 7, 2:30, 5:60:5, 2,4,8:12"
    parser.add_argument("--ranks", type=ranks, default="auto", metavar="RANKS", help=candidates)
    share = "fraction of the pairs to train on (default: as many as the folds allow; calibrated with --alpha 0)"
    parser.add_argument("--sampling", type=float, help=share)


def ranks(text: str) -> str | list[int]:
    """Parse candidates such as 2:30 or 5:60:5 or 2,4,8:12; ranges include both ends."""
    if text == "auto":
        return text
    found: list[int] = []
    for part in text.split(","):
        try:
            first, *rest = map(int, part.split(":"))
            last, step = (*rest, 1) if len(rest) == 1 else rest or (first, 1)
            candidates = range(first, last + 1, step)
        except ValueError:
            rule = "must be auto, or numbers and ranges such as 2:30"
            raise argparse.ArgumentTypeError(f"{rule}, got {text!r}") from None
        if not candidates or step < 1:
            raise argparse.ArgumentTypeError(f"must be ranges from low to high, got {part!r}")
        if len(found) + len(candidates) > _MOST_RANKS:
            raise argparse.ArgumentTypeError(f"must be at most {_MOST_RANKS:,} numbers, got {text!r}")
        found += candidates
    return found


def _calibrate(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".json", ".csv", *FIGURES), "source")
    S = shared.read_similarity(options)
    from simdims.selection import calibrate

    seed = shared.settled_seed(options)
    given = shared.arguments(options, "n_eigenpairs", "n_bootstraps", "tolerance", "n_jobs")
    found = calibrate(S, random_state=seed, **given)
    if options.out is not None and options.out.suffix.lower() in FIGURES:
        from simdims import plots

        write_figure(options.out, plots.calibration(found))
    elif options.out is not None:
        import pandas as pd

        table = pd.DataFrame({"share": found.grid, "signal_loss": found.signal_loss})
        write_result(options.out, {**found.to_dict(), "seed": seed}, table)
    return Findings(f"{found.summary()}\nsampling {found.sampling:.4f}\ncutoff {found.cutoff}", found.to_dict(), seed)


def _select_rank(options: argparse.Namespace) -> Findings:
    shared.check_solver(options)
    shared.check_out(options, (".json", ".csv"), "source")
    S = shared.read_similarity(options)
    from simdims.selection import select_rank

    names = ("sampling", "n_folds", "n_repeats", "protocol", "checkpoint", "random_state", "n_jobs", "progress")
    estimator = _estimator(options)
    if options.dry_run:
        return _planned_selection(options, S, estimator)
    found = select_rank(S, options.ranks, estimator=estimator, **shared.arguments(options, *names))
    write_result(options.out, found.to_dict(), found.scores)
    values = {**found.to_dict(), "evidence_of_structure": found.evidence_of_structure}
    return Findings(f"{found.summary()}\nrank {found.rank}", values, found.seed)


def _planned_selection(options: argparse.Namespace, S: Similarity, estimator: SRF) -> Findings:
    """Check the arguments as select_rank does, and return what it would do."""
    from simdims.discovery.estimate import estimate_seconds, in_words
    from simdims.selection.crossvalidation import largest_rank, settle_selection

    given = shared.arguments(options, "sampling", "n_folds", "n_repeats", "protocol", "n_jobs")
    settled = settle_selection(S, options.ranks, estimator=estimator, **given)
    largest, folds = largest_rank(settled), settled.n_repeats * settled.n_folds
    fits, how = (settled.candidates, folds, 0), (options.n_jobs, options.device)
    is_penalised, calibrates = settled.estimator.alpha != 0, options.sampling is None
    seconds = estimate_seconds(S, S, *fits, *how, penalised=is_penalised, calibrates=calibrates, selects=True)
    ranks = "a search" if settled.candidates is None else ", ".join(map(str, settled.candidates))
    values: dict[str, Any] = {"n_items": S.n_items, "largest": largest}
    values |= {name: getattr(settled, name) for name in ("n_folds", "n_repeats", "candidates", "protocol")}
    tried = f"select-rank would try these numbers of dimensions: {ranks}; with {folds} fits each"
    return Findings(f"{tried}. Estimated time: {in_words(seconds)}.", {**values, "estimated_seconds": seconds})


def _planned_consensus(options: argparse.Namespace, S: Similarity, estimator: SRF) -> Findings:
    from simdims._parameters import require_components
    from simdims.consensus.reliability import check_halves
    from simdims.consensus.runs import check_runs
    from simdims.discovery.estimate import in_words, seconds_of_runs

    require_components(options.n_components, S.n_items)
    check_runs(options.n_runs, estimator)
    check_halves(S.n_items)
    running = options.n_runs, options.n_jobs, options.device
    seconds = seconds_of_runs(S, options.n_components, *running, penalised=options.alpha != 0)
    values = {"n_items": S.n_items, **shared.arguments(options, "n_components", "n_runs"), "estimated_seconds": seconds}
    fits = f"{options.n_components} dimensions of {S.n_items:,} items from {options.n_runs} random starts"
    return Findings(f"consensus would fit {fits}. Estimated time: {in_words(seconds)}.", values)


def _estimator(options: argparse.Namespace) -> SRF:
    from simdims.selection.crossvalidation import default_estimator
    from simdims.srf import SRF

    alpha = 0.0 if options.protocol == "paper" and options.alpha == "auto" else options.alpha
    if options.solver == "admm":
        return SRF(solver="admm", max_iter=200, inner_iter=50, alpha=alpha, device=options.device)
    return default_estimator(options.device).set_params(alpha=alpha)


def _fit(options: argparse.Namespace) -> Findings:
    shared.check_solver(options)
    shared.check_out(options, (".csv",), "source")
    S = shared.read_similarity(options)
    from simdims._parameters import plural
    from simdims.srf import SRF

    seed, n = shared.settled_seed(options), options.n_components
    given = shared.arguments(options, "alpha", "device", "max_iter", "tol")
    srf = SRF(n, solver="auto" if options.solver == "bcd" else options.solver, random_state=seed, **given).fit(S)
    _write_embedding(options.out, srf.embedding_frame())
    explained, score = "", None
    with suppress(ValueError):  # equal similarities have no variance
        score = srf.score(S)
        they = "they explain" if n > 1 else "it explains"
        explained = (
            f" In sample, {they} {score:.1%} of the variance; a single fit has no held-out R2 (`simdims discover "
            f"--ranks {n}` computes it)."
        )
    penalty = "" if srf.alpha_ == 0 else f", with a penalty of {srf.alpha_:.3g}"
    iterations = f"{srf.n_iter_} {plural('iteration', srf.n_iter_)}"
    words = (
        f"{n} {plural('dimension', n)} of {S.n_items} items in {iterations}{penalty}.{explained}\nWrote {options.out}"
    )
    values = {"written": options.out, "n_items": S.n_items, "n_components": n, "explained_variance": score}
    fitted = {name: getattr(srf, f"{name}_") for name in ("alpha", "objective", "n_iter", "converged", "kkt_residual")}
    return Findings(words, {**values, "held_out_r2": None, **fitted}, seed)


def _consensus(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".csv",), "source")
    S = shared.read_similarity(options)
    from simdims.consensus import fit_consensus
    from simdims.consensus.runs import default_estimator

    names = ("n_runs", "n_splits", "checkpoint", "random_state", "n_jobs", "progress")
    estimator = default_estimator(options.device).set_params(alpha=options.alpha)
    if options.dry_run:
        return _planned_consensus(options, S, estimator)
    found = fit_consensus(S, options.n_components, estimator=estimator, **shared.arguments(options, *names))
    _write_embedding(options.out, found.embedding_frame())
    reported = (
        "n_items", "n_components", "n_runs", "selected", "alpha", "mean_reliability", "reliability", "objectives",
        "converged",
    )  # fmt: skip
    values = {"written": options.out, **{name: getattr(found, name) for name in reported}}
    return Findings(f"{found.summary()}\nWrote {options.out}", values, found.seed)


def _write_embedding(target: Path, frame: pd.DataFrame) -> None:
    write_result(target, {}, frame.rename_axis("item").reset_index())
