"""discover for a SimilaritySet: common dimensions of several systems, their weights, and their predictive value."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from simdims import metrics
from simdims._progress import Callback
from simdims.consensus import fit_consensus
from simdims.consensus.systems import joint_run_estimator
from simdims.discovery.result import Discovery
from simdims.discovery.run import (
    CONSENSUS,
    SYSTEMS_FOLDER,
    Work,
    check_settings,
    cross_validate,
    describe_settings,
    is_single,
    measure,
    settle_counts,
    settle_seeds,
)
from simdims.joint import JointSRF, problem_of_set
from simdims.selection.joint_fits import about_means, draw_pairs
from simdims.selection.splits import DEFAULT_FOLDS
from simdims.selection.systems import compare_systems, joint_fold_estimator
from simdims.systems import SimilaritySet

logger = logging.getLogger("simdims")


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
    candidates, n_repeats, n_runs = settle_counts(systems, ranks, n_repeats, n_runs)
    check_settings(systems.n_items, sampling, n_repeats, n_runs, n_jobs, progress)
    seed, root = settle_seeds(checkpoint, random_state)
    work = Work(root, checkpoint, n_jobs, progress)
    folds = {"sampling": sampling, "n_folds": DEFAULT_FOLDS, "n_repeats": n_repeats}
    validated = cross_validate(systems, candidates, single, work, estimator=fold_model, **folds)
    selection, rank = validated.selection, validated.rank
    compared = None
    if selection is not None:
        run_model = clone(run_model).set_params(alpha=selection.alpha, shrinkage=selection.shrinkage)
        if selection.held_out is not None:  # otherwise the similarities are constant
            options: dict[str, Any] = {"checkpoint": work.folder(f"{SYSTEMS_FOLDER}{rank}"), "n_jobs": n_jobs}
            compared = compare_systems(systems, selection, estimator=fold_model, progress=progress, **options)
    step = work.of_step(f"consensus-{rank}", CONSENSUS)
    consensus = fit_consensus(systems, rank, n_runs=n_runs, estimator=run_model, **step)
    chosen = None if single else selection
    settings = describe_settings(ranks, sampling, n_repeats, n_runs, estimator, run_model.device, seed, chosen)
    given = estimator or JointSRF(alpha=alpha)
    penalties = {"alpha": given.alpha, "l1_ratio": run_model.l1_ratio, "shrinkage": given.shrinkage}
    return Discovery(
        similarity=systems,
        selection=chosen,
        consensus=consensus,
        metrics={**measure(systems, consensus, root), **validated.metrics, **measure_ceiling(systems)},
        settings={**settings, **penalties, "held_out": validated.settings},
        systems=compared,
    )


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
