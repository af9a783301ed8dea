"""Consensus over joint fits of several systems: runs from many starts, aligned with their weights."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np
from sklearn.base import clone

from simdims import __version__, _memory, _parallel, _threads, solvers
from simdims._journal import Journal, open_journal
from simdims._parameters import require_components, require_count
from simdims._progress import Callback, Reporter, reporting
from simdims.consensus import reliability
from simdims.consensus.central import Run, keep_run, kept_runs
from simdims.consensus.result import Consensus, warn_of_unconverged
from simdims.joint import (
    JointSRF,
    fingerprint_of,
    joint_settings,
    problem_of_set,
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
    checkpoint: Any,
    random_state: Any,
    n_jobs: int | None,
    progress: bool | Callback | None,
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
    with ExitStack() as stack:
        reporter = stack.enter_context(reporting(progress))
        described = {} if checkpoint is None else _settings(problem, model)
        journal, seed, root = open_journal(stack, checkpoint, described, random_state)
        problem, model = _settled(problem, model, root, journal)
        in_order = _fit_runs(problem, model, n_runs, root, n_jobs, journal, reporter)
        settings: dict[str, Any] = {"seed": seed, "labels": systems.labels, "alpha": float(model.alpha)}
        settings |= {"systems": systems.names, "system_info": systems.info, "shrinkage": float(model.shrinkage)}
        consensus = reliability.consensus_of(in_order, n_splits, root, n_jobs, reporter, **settings)
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
    rng = _parallel.generator_of(_parallel.seed_of(root, number))
    with _threads.one_blas_thread():
        start = solvers.joint_start(problem, model.n_components, rng)
        start = solvers.approach_jointly(problem, start, float(model.alpha), model.device)
        limits: dict[str, Any] = {"max_iter": model.max_iter, "tol": model.tol}
        found = solvers.solve_jointly(problem, start, device=model.device, **limits)
    order = np.argsort(-np.square(found.W).sum(axis=0), kind="stable")
    W, weights = (np.ascontiguousarray(part[:, order]) for part in (found.W, found.weights))
    return Run(number, W, float(found.objective), int(found.n_iter), bool(found.converged), weights)


def _settled(
    problem: solvers.JointProblem, model: JointSRF, root: int, journal: Journal | None
) -> tuple[solvers.JointProblem, JointSRF]:
    """The problem with its penalties, and the settings with numeric penalties: those of the checkpoint, or chosen."""
    rank = model.n_components
    records = [one for one in (journal.records if journal else []) if one["kind"] == "penalties"]
    if records:
        alpha, shrinkage = float(records[0]["alpha"]), float(records[0]["shrinkage"])
    else:
        rng = _parallel.generator_of(_parallel.seed_of(root, 0, _CHOICE))
        own, drawn = (None if isinstance(one, str) else float(one) for one in (model.alpha, model.shrinkage))
        with _threads.one_blas_thread():
            start = solvers.joint_start(problem, rank, rng)
            alpha, shrinkage = solvers.choose_jointly(problem, start, own, drawn, model.l1_ratio, rng)
        if journal is not None:
            journal.append({"kind": "penalties", "alpha": alpha, "shrinkage": repr(float(shrinkage))})
    model = clone(model).set_params(alpha=alpha, shrinkage=shrinkage)
    return solvers.penalised_jointly(problem, rank, alpha, model.l1_ratio, shrinkage), model


def _fit_runs(
    problem: solvers.JointProblem,
    model: JointSRF,
    n_runs: int,
    root: int,
    n_jobs: int | None,
    journal: Journal | None,
    reporter: Reporter,
) -> list[Run]:
    """All runs in order, those in the checkpoint included."""
    runs = {} if journal is None else kept_runs(journal, problem.n_items, n_runs)
    reporter.begin("consensus", n_runs, done=len(runs))
    left = [number for number in range(n_runs) if number not in runs]
    shared, one_by_one = (problem, model, root), journal is not None
    n_jobs = n_jobs if model.device == "cpu" else 1
    with closing(_parallel.run_tasks(fit_run, shared, left, n_jobs=n_jobs, one_by_one=one_by_one)) as found:
        for run in found:
            runs[run.number] = run
            if journal is not None:
                keep_run(journal, run)
            reporter.step(f"run {run.number + 1}")
    return [runs[number] for number in range(n_runs)]


def _settings(problem: solvers.JointProblem, model: JointSRF) -> dict[str, Any]:
    """The settings that a checkpoint must agree on; not the number of runs, so that more can be added."""
    return {
        "work": "consensus",
        "version": __version__,
        "data": fingerprint_of(problem),
        "n_components": int(model.n_components),
        "estimator": settings_of(model),
    }
