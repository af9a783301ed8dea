"""Consensus over joint fits of several systems: runs from many starts, aligned with their weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from simdims import _memory, _parallel, _threads, solvers
from simdims._journal import working
from simdims._parameters import require_components, require_count
from simdims.consensus import reliability
from simdims.consensus.central import Run, keep_run, kept_runs
from simdims.consensus.result import Consensus, warn_of_unconverged
from simdims.joint import (
    JointSRF,
    fingerprint_of,
    fit_from_seed,
    joint_settings,
    problem_of_set,
    settle_penalties,
    warn_of_underdetermined_jointly,
)
from simdims.srf import settings_of, warn_of_nothing_left
from simdims.systems import SimilaritySet

#: As for fits of one system.
_DEFAULT_MAX_ITER = 2000

#: Second word of the name of the task that chooses the penalties, which determines its seed.
_CHOICE = 1


def fit_set(
    systems: SimilaritySet,
    n_components: int,
    *,
    n_runs: int,
    n_splits: int,
    alpha: float | str,
    estimator: Any,
    n_jobs: int | None,
    **running: Any,
) -> Consensus:
    """`fit_consensus` for a set: penalty and shrinkage are chosen once, weights are aligned with their dimensions."""
    model = joint_run_estimator(estimator, alpha, 0.0).set_params(n_components=n_components)
    require_components(n_components, systems.n_items)
    require_count("n_runs", n_runs, at_least=2)
    require_count("n_splits", n_splits)
    reliability.check_halves(systems.n_items)
    _parallel.check_n_jobs(n_jobs)
    n_numbers = n_runs * (systems.n_items + systems.n_systems) * n_components
    _memory.require(4 * 8 * n_numbers, f"{n_runs} joint runs", "fewer runs or dimensions need less")
    problem = problem_of_set(systems)
    described = partial(_settings, problem, model)
    with working("consensus", described, n_jobs=n_jobs, **running) as work:
        choice = _parallel.seed_of(work.root, 0, _CHOICE), work, {"kind": "penalties"}
        alpha, shrinkage = settle_penalties(problem, model, n_components, *choice)
        problem = solvers.penalised_jointly(problem, n_components, alpha, model.l1_ratio, shrinkage)
        model = clone(model).set_params(alpha=alpha, shrinkage=shrinkage)
        fit = work.runner(fit_run, (problem, model, work.root), model.device)
        runs = work.collect("consensus", n_runs, fit, kept_runs(work, problem.n_items, n_runs), keep_run, "run")
        settings: dict[str, Any] = {"labels": systems.labels, "alpha": alpha}
        settings |= {"systems": systems.names, "system_info": systems.info, "shrinkage": shrinkage}
        consensus = reliability.consensus_of(runs, n_splits, work, **settings)
    warn_of_unconverged(consensus, model.max_iter, model.tol)
    W = consensus.embedding
    warn_of_underdetermined_jointly(problem, W, float(model.shrinkage), systems.names, systems.labels)
    warn_of_nothing_left(W, consensus.alpha, problem.squares)
    return consensus


def joint_run_estimator(estimator: Any, alpha: Any, default: float | str, device: str = "cpu") -> JointSRF:
    """The settings of runs: those of an estimator, including its penalty, or the default ones."""
    fallback = JointSRF(max_iter=_DEFAULT_MAX_ITER)
    return joint_settings(estimator, alpha, default, fallback, device, "so that runs differ")


def fit_run(problem: solvers.JointProblem, model: JointSRF, root: int, number: int) -> Run:
    """One fit, with one BLAS thread, so that results do not depend on where it runs."""
    with _threads.one_blas_thread():
        found = fit_from_seed(model, problem, model.n_components, _parallel.seed_of(root, number))
    order = np.argsort(-np.square(found.W).sum(axis=0), kind="stable")
    W, weights = (np.ascontiguousarray(part[:, order]) for part in (found.W, found.weights))
    return Run(number, W, float(found.objective), int(found.n_iter), bool(found.converged), weights)


def _settings(problem: solvers.JointProblem, model: JointSRF) -> dict[str, Any]:
    data = fingerprint_of(problem)
    return {"data": data, "n_components": int(model.n_components), "estimator": settings_of(model)}
