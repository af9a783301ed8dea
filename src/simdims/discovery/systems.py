"""discover for a SimilaritySet: common dimensions of several systems, their weights, and their predictive value."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from simdims import _parallel, metrics
from simdims._parameters import require_count
from simdims._progress import Callback, reporting
from simdims.consensus import Consensus, fit_consensus
from simdims.consensus.reliability import check_halves
from simdims.consensus.systems import joint_run_estimator
from simdims.discovery.estimate import estimate_set_seconds
from simdims.discovery.result import Discovery
from simdims.discovery.run import (
    CONSENSUS,
    HELD_OUT,
    HELD_OUT_FOLDER,
    SELECT,
    SYSTEMS_FOLDER,
    describe_settings,
    is_single,
    settle_seeds,
)
from simdims.joint import JointSRF, problem_of_set
from simdims.selection import RankSelection, SystemsComparison, select_rank
from simdims.selection.calibration import require_share
from simdims.selection.checks import TooFewPairsError, check_ranks
from simdims.selection.joint_fits import about_means, draw_pairs, explained_variance
from simdims.selection.result import DOES_NOT_VARY
from simdims.selection.splits import DEFAULT_FOLDS
from simdims.selection.systems import compare_systems, joint_fold_estimator
from simdims.systems import SimilaritySet

logger = logging.getLogger("simdims")

#: Numbers of observed pairs up to which the cross-validation has 5 and 2 repeats, and up to which there are 30 runs.
_FEW_PAIRS, _SOME_PAIRS = 20_000, 200_000


def discover_set(
    systems: SimilaritySet,
    *,
    ranks: Any,
    sampling: Any,
    n_repeats: Any,
    n_runs: Any,
    alpha: Any,
    estimator: Any,
    device: Any,
    checkpoint: str | os.PathLike[str] | None,
    random_state: Any,
    n_jobs: int | None,
    progress: bool | Callback | None,
) -> Discovery:
    """Select the rank of a set, compare fits with and without weights, and fit repeatedly."""
    single = is_single(ranks)
    fold_model = joint_fold_estimator(estimator, alpha, device=device)
    run_model = joint_run_estimator(estimator, alpha, "auto", device=device)
    candidates, n_repeats, n_runs = _settled(systems, ranks, sampling, n_repeats, n_runs, n_jobs, progress)
    seed, root = settle_seeds(checkpoint, random_state)

    def folder(name: str) -> Path | None:
        return None if checkpoint is None else Path(checkpoint, name)

    common: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    selection, held_out = _cross_validate(
        systems,
        "auto" if candidates is None else candidates,
        single=single,
        sampling=sampling,
        n_folds=DEFAULT_FOLDS,
        n_repeats=n_repeats,
        estimator=fold_model,
        checkpoint=folder(HELD_OUT_FOLDER if single else "selection"),
        random_state=_parallel.seed_of(root, HELD_OUT if single else SELECT),
        **common,
    )
    rank = selection.rank if selection is not None else candidates[0]  # type: ignore[index]
    compared = None
    if selection is not None:
        compared = _compare(systems, selection, fold_model, folder(f"{SYSTEMS_FOLDER}{rank}"), common)
        run_model = clone(run_model).set_params(alpha=selection.alpha, shrinkage=selection.shrinkage)
    consensus = fit_consensus(
        systems,
        rank,
        n_runs=n_runs,
        estimator=run_model,
        checkpoint=folder(f"consensus-{rank}"),
        random_state=_parallel.seed_of(root, CONSENSUS),
        **common,
    )
    chosen = None if single else selection
    settings = describe_settings(ranks, sampling, n_repeats, n_runs, estimator, run_model.device, seed, chosen)
    given = estimator or JointSRF(alpha=alpha)
    penalties = {"alpha": given.alpha, "l1_ratio": run_model.l1_ratio, "shrinkage": given.shrinkage}
    return Discovery(
        similarity=systems,
        selection=chosen,
        consensus=consensus,
        metrics={**measure(systems, consensus), **_held_out_metrics(selection), **measure_ceiling(systems)},
        settings={**settings, **penalties, "held_out": held_out},
        systems=compared,
    )


def check_set(
    systems: SimilaritySet,
    *,
    ranks: Any,
    sampling: Any,
    n_repeats: Any,
    n_runs: Any,
    alpha: Any,
    n_jobs: Any,
    device: Any,
) -> tuple[list[int] | None, int, int]:
    """Check the arguments of discover_set; return the candidates, repeats and runs."""
    joint_fold_estimator(None, alpha, device=device)
    joint_run_estimator(None, alpha, "auto", device=device)
    return _settled(systems, ranks, sampling, n_repeats, n_runs, n_jobs, False)


def _settled(
    systems: SimilaritySet, ranks: Any, sampling: Any, n_repeats: Any, n_runs: Any, n_jobs: Any, progress: Any
) -> tuple[list[int] | None, int, int]:
    candidates = check_ranks(ranks, systems.n_items)
    n_repeats = default_repeats(systems) if n_repeats is None else n_repeats
    n_runs = default_runs(systems) if n_runs is None else n_runs
    _check(systems.n_items, sampling, n_repeats, n_runs, n_jobs, progress)
    return candidates, n_repeats, n_runs


def _check(n_items: int, sampling: Any, n_repeats: Any, n_runs: Any, n_jobs: Any, progress: Any) -> None:
    """Check the settings before the first step."""
    if sampling is not None:
        require_share("sampling", sampling)
    require_count("n_repeats", n_repeats)
    require_count("n_runs", n_runs, at_least=2)
    check_halves(n_items)
    _parallel.check_n_jobs(n_jobs)
    with reporting(progress):
        pass


def default_repeats(systems: SimilaritySet) -> int:
    """Default repeats of the cross-validation: with more pairs, another split changes less."""
    n_pairs = _count_pairs(systems)
    return 5 if n_pairs <= _FEW_PAIRS else 2 if n_pairs <= _SOME_PAIRS else 1


def default_runs(systems: SimilaritySet) -> int:
    """Default runs of the consensus."""
    return 30 if _count_pairs(systems) <= _SOME_PAIRS else 10


def expected_set_seconds(
    systems: SimilaritySet, ranks: Any, n_repeats: int | None, n_runs: int | None, n_jobs: int | None, device: str
) -> float:
    """Estimate how long discover will take, from a short trial."""
    return estimate_set_seconds(
        systems,
        check_ranks(ranks, systems.n_items),
        default_repeats(systems) if n_repeats is None else n_repeats,
        default_runs(systems) if n_runs is None else n_runs,
        n_jobs,
        device,
    )


def _count_pairs(systems: SimilaritySet) -> float:
    return 0.5 * systems.density * systems.n_systems * systems.n_items * (systems.n_items - 1)


def _cross_validate(
    systems: SimilaritySet, ranks: Any, *, single: bool, **options: Any
) -> tuple[RankSelection | None, dict[str, Any]]:
    """The cross-validation, and how it was done or, for a single rank, why it was not."""
    try:
        selection = select_rank(systems, ranks, **options)
    except (MemoryError, TooFewPairsError) as error:
        if not single:
            raise
        logger.info("discover: no held-out R2: %s", error)
        return None, {"reason": str(error).rstrip(".")}
    if selection.held_out is None:
        return selection, {"reason": DOES_NOT_VARY}
    names = ("n_items", "n_folds", "n_repeats", "training_share", "protocol")
    return selection, {name: getattr(selection, name) for name in names}


def _held_out_metrics(selection: RankSelection | None) -> dict[str, float]:
    if selection is None or selection.held_out is None:
        return {}
    r2, standard_error = selection.held_out
    return {"held_out_r2": r2, "held_out_r2_standard_error": standard_error}


def _compare(
    systems: SimilaritySet, selection: RankSelection, model: JointSRF, checkpoint: Path | None, common: dict[str, Any]
) -> SystemsComparison | None:
    """Compare predictions with and without weights; None if the similarities are constant."""
    if selection.held_out is None:
        return None
    return compare_systems(systems, selection, estimator=model, checkpoint=checkpoint, **common)


def measure(systems: SimilaritySet, consensus: Consensus) -> dict[str, float]:
    """Metrics of dimensions and weights; those that are undefined for the data are omitted."""
    W, weights = consensus.embedding, consensus.weights_frame().to_numpy()
    asked: dict[str, Callable[[], float]] = {
        "hoyer_sparsity": lambda: metrics.hoyer_sparsity(W),
        "entropy": lambda: metrics.entropy(W),
        "explained_variance": lambda: explained_variance(problem_of_set(systems), W, weights),
    }
    found = {"mean_reliability": consensus.mean_reliability}
    for name, metric in asked.items():
        try:
            value = metric()
        except ValueError as error:  # sparsity of one dimension
            logger.info("discover: no %s: %s", name, error)
            continue
        if np.isfinite(value):  # constant similarities have no variance
            found[name] = value
    return found


def measure_ceiling(systems: SimilaritySet) -> dict[str, float]:
    """Noise ceilings in R2 over all systems: of the mean of the others, and of the mean of all; {} if unknown.

    The R2 of a system is that of a regression on the mean with a slope of at least 0: its squared correlation.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about systems without a ceiling, which are excluded
        try:
            ceiling = metrics.noise_ceiling(systems)
        except (ValueError, MemoryError) as error:
            logger.info("discover: no noise ceiling: %s", error)
            return {}
    problem = problem_of_set(systems)
    pairs = draw_pairs(problem, 0)
    squares = about_means(pairs, problem.n_systems)
    spread = np.bincount(pairs.systems, pairs.weights * squares, minlength=problem.n_systems)
    known = ~np.isnan(ceiling.lower) & (spread > 0)
    if not known.any():
        return {}
    bounds = {"noise_ceiling_lower": ceiling.lower, "noise_ceiling_upper": ceiling.upper}
    return {
        name: float(np.average(np.maximum(bound[known], 0.0) ** 2, weights=spread[known]))
        for name, bound in bounds.items()
    }
