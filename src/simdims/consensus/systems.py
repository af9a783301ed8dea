"""Consensus over joint fits of several systems: runs from many starts, aligned with their weights."""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from simdims import _memory, _parallel, _threads, solvers
from simdims._parameters import ParameterError, ParameterTypeError, require_count, shown
from simdims._progress import Callback, reporting
from simdims.consensus import reliability
from simdims.consensus.alignment import align
from simdims.consensus.central import agreements, most_central
from simdims.consensus.result import Consensus, warn_of_unconverged
from simdims.joint import JointSRF, problem_of_set
from simdims.srf import check_alpha
from simdims.systems import SimilaritySet

#: As for fits of one system.
_DEFAULT_MAX_ITER = 2000

#: Second word of the name of the task that chooses the penalties, from which its seed follows.
_CHOICE = 1


class JointRun(NamedTuple):
    """One fit."""

    number: int
    W: np.ndarray
    weights: np.ndarray
    objective: float
    n_iter: int
    converged: bool


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
    """What fit_consensus does with a set: penalty and shrinkage are chosen once, weights follow their dimensions."""
    model = joint_estimator(estimator, alpha).set_params(n_components=n_components)
    model._check_parameters()
    if n_components > systems.n_items:
        rule = f"must be between 1 and {systems.n_items}, the number of items"
        raise ParameterError("n_components", rule, f"{n_components}")
    require_count("n_runs", n_runs, at_least=2)
    require_count("n_splits", n_splits)
    reliability.check_halves(systems.n_items)
    _parallel.check_n_jobs(n_jobs)
    if checkpoint is not None:
        raise ParameterError("checkpoint", "must be None for a SimilaritySet", shown(checkpoint))
    n_numbers = n_runs * (systems.n_items + systems.n_systems) * n_components
    _memory.require(4 * 8 * n_numbers, f"{n_runs} joint runs", "fewer runs or dimensions need less")
    seed = _parallel.settle_seed(random_state)
    root = _parallel.root_seed(seed)
    with reporting(progress) as reporter:
        problem, model = _settled(systems, model, _parallel.generator_of(_parallel.seed_of(root, 0, _CHOICE)))
        reporter.begin("consensus", n_runs)
        shared = (problem, model.alpha, n_components, root)
        runs: dict[int, JointRun] = {}
        with closing(
            _parallel.run_tasks(fit_run, (*shared, model.max_iter, model.tol), range(n_runs), n_jobs=n_jobs)
        ) as found:
            for run in found:
                runs[run.number] = run
                reporter.step(f"run {run.number + 1}")
        in_order = [runs[number] for number in range(n_runs)]
        embeddings = np.stack([run.W for run in in_order])
        with _threads.one_blas_thread():
            agreement = agreements(embeddings)
            selected = most_central(embeddings, agreement)
            orders = [align(W, embeddings[selected]).permutation for W in embeddings]
        aligned = np.stack([W[:, order] for W, order in zip(embeddings, orders, strict=True)])
        reporter.begin("reliability", n_splits)
        reliabilities = reliability.reliability_of(aligned, n_splits, root, n_jobs, reporter.step)
    consensus = Consensus(
        embeddings=aligned,
        selected=selected,
        reliability=reliabilities,
        agreement=agreement,
        objectives=np.array([run.objective for run in in_order]),
        converged=np.array([run.converged for run in in_order]),
        n_iter=np.array([run.n_iter for run in in_order]),
        seeds=np.array([_parallel.seed_of(root, number) for number in range(n_runs)]),
        n_splits=int(n_splits),
        seed=seed,
        labels=systems.labels,
        alpha=float(model.alpha),
        weights=np.stack([run.weights[:, order] for run, order in zip(in_order, orders, strict=True)]),
        systems=systems.names,
        system_info=systems.info,
        shrinkage=float(model.shrinkage),
    )
    warn_of_unconverged(consensus, model.max_iter, model.tol)
    return consensus


def joint_estimator(estimator: Any, alpha: Any) -> JointSRF:
    """The settings of joint fits: those of an estimator, whose own penalty holds, or the default ones."""
    check_alpha(alpha)
    if estimator is None:
        return JointSRF(alpha=alpha, max_iter=_DEFAULT_MAX_ITER)
    if not isinstance(estimator, JointSRF):
        raise ParameterTypeError("estimator", "must be a JointSRF for a SimilaritySet", shown(estimator))
    if alpha != 0.0:
        raise ParameterError("alpha", "cannot be given beside an {estimator}, whose own alpha is used", shown(alpha))
    if not isinstance(estimator.init, str):
        raise ParameterError("estimator", "must have init='random', so that runs differ", "an array")
    return clone(estimator)


def fit_run(
    problem: solvers.JointProblem, alpha: float, rank: int, root: int, max_iter: int, tol: float, number: int
) -> JointRun:
    """One fit, with one BLAS thread, so that results do not depend on where it runs."""
    rng = _parallel.generator_of(_parallel.seed_of(root, number))
    with _threads.one_blas_thread():
        start = solvers.approach_jointly(problem, solvers.joint_start(problem, rank, rng), alpha)
        found = solvers.solve_jointly(problem, start, max_iter=max_iter, tol=tol)
    order = np.argsort(-np.square(found.W).sum(axis=0), kind="stable")
    W, weights = (np.ascontiguousarray(part[:, order]) for part in (found.W, found.weights))
    return JointRun(number, W, weights, float(found.objective), int(found.n_iter), bool(found.converged))


def _settled(
    systems: SimilaritySet, model: JointSRF, rng: np.random.RandomState
) -> tuple[solvers.JointProblem, JointSRF]:
    """The problem with its penalties, and the settings with numbers for them."""
    problem = problem_of_set(systems)
    rank = model.n_components
    start = solvers.joint_start(problem, rank, rng)
    alpha, shrinkage = (None if isinstance(one, str) else float(one) for one in (model.alpha, model.shrinkage))
    with _threads.one_blas_thread():
        alpha, shrinkage = solvers.choose_jointly(problem, start, alpha, shrinkage, model.l1_ratio, rng)
    model = clone(model).set_params(alpha=alpha, shrinkage=shrinkage)
    return solvers.penalised_jointly(problem, rank, alpha, model.l1_ratio, shrinkage), model
