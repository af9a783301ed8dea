"""fit_consensus: fit the same similarities from many random starts and keep the most central run."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from simdims import _memory, _parallel, _threads, solvers
from simdims._journal import fingerprint, working
from simdims._parameters import ParameterError, ParameterTypeError, require_components, require_count, shown
from simdims._progress import Callback
from simdims.consensus import reliability
from simdims.consensus.central import Run, keep_run, kept_runs
from simdims.consensus.result import Consensus, warn_of_unconverged
from simdims.consensus.systems import fit_set
from simdims.joint import JointSRF
from simdims.similarity import Similarity, as_similarity
from simdims.similarity.arrays import Arrays, arrays_of, problem_of
from simdims.srf import (
    SRF,
    on_devices,
    settings_of,
    settle_alpha,
    solve_many,
    warn_of_nothing_left,
    warn_of_underdetermined,
    with_alpha,
)
from simdims.systems import SimilaritySet

#: Real similarities often need more sweeps than SRF's default of 500 to reach its tol (docs/consensus.md).
_DEFAULT_MAX_ITER = 2000

#: Second word of the name of the task that chooses the penalty, which determines its seed.
_ALPHA = 1

#: Number of runs that a device fits, and a checkpoint keeps, together.
_RUNS_PER_BATCH = 32


def fit_consensus(
    S: Any,
    n_components: int,
    *,
    n_runs: int = 30,
    n_splits: int = 100,
    alpha: float | str = 0.0,
    estimator: SRF | JointSRF | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> Consensus:
    """Fit many times from random starts, and keep the most central run.

    The objective is not convex, so that fits may end in different local minima. All runs are aligned; the one closest
    to their element-wise median is the embedding, and the agreement of the runs measures how reproducible each of its
    dimensions is across random starts.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, or SimilaritySet
        The similarities. A set is fitted jointly (see `JointSRF`): the dimensions of all runs are aligned, and the
        weights of the systems follow them.
    n_components : int
        Number of dimensions, between 1 and the number of items.
    n_runs : int, default=30
        Number of fits, at least 2.
    n_splits : int, default=100
        Number of random splits of the items for the reliabilities; see `split_half_reliability`.
    alpha : float or "auto", default=0.0
        Penalty on the loadings; see `SRF`. "auto" is chosen by held-out pairs, once for all runs.
    estimator : SRF or JointSRF, optional
        The settings of the fits, with ``init="random"``; n_components and random_state are overridden. By default
        ``SRF(max_iter=2000)``. Its own `alpha` is used. For a SimilaritySet it is a JointSRF; its penalty and
        shrinkage, where they are "auto", are chosen once for all runs.
    checkpoint : path, optional
        A folder for finished fits. An interrupted call resumes from there if it is repeated with the same data and
        settings, with the same result (on a device, up to rounding, which depends on the fits in a batch); a larger
        `n_runs` adds runs.
    random_state : int, RandomState or None, default=None
        Seed of starts and splits; None draws one, or takes that of the checkpoint.
    n_jobs : int, optional
        Number of processes, as in joblib, whose configuration can also send the fits to a cluster; with
        ``device="cuda"``, the number of GPUs. Results do not depend on it (on a device, up to rounding).
    progress : bool or callable, optional
        Whether to show a progress bar; None shows one in terminals and notebooks. A function is called with a
        `Progress` after each fit and split.

    Returns
    -------
    Consensus

    Warns
    -----
    ConvergenceWarning
        If runs did not converge.
    UserWarning
        If the observed pairs do not determine the loadings; see `SRF.fit`.

    See Also
    --------
    align : match the columns of two embeddings.
    split_half_reliability : reliabilities of existing runs.

    References
    ----------
    SRF, Methods, "Model fitting, dimensionality selection, and stability".

    Examples
    --------
    >>> from simdims import simulate
    >>> from simdims.consensus import fit_consensus
    >>> W = simulate.dirichlet(60, 3, random_state=0)
    >>> S = simulate.add_noise(W @ W.T, 0.9, random_state=0)
    >>> consensus = fit_consensus(S, 3, n_runs=5, random_state=0)
    >>> consensus.embedding.shape
    (60, 3)
    >>> consensus.mean_reliability > 0.99
    True
    """
    if isinstance(S, SimilaritySet):
        settings: dict[str, Any] = {"n_runs": n_runs, "n_splits": n_splits, "alpha": alpha, "estimator": estimator}
        settings |= {"checkpoint": checkpoint, "random_state": random_state, "n_jobs": n_jobs, "progress": progress}
        return fit_set(S, n_components, **settings)
    similarity = as_similarity(S, copy=False)
    require_components(n_components, similarity.n_items)
    if isinstance(estimator, JointSRF):
        raise ParameterTypeError("estimator", "must be an SRF unless S is a SimilaritySet", shown(estimator))
    estimator = check_runs(n_runs, with_alpha(estimator, alpha, 0.0, default_estimator()))
    require_count("n_splits", n_splits)
    reliability.check_halves(similarity.n_items)
    _parallel.check_n_jobs(n_jobs)
    n_workers = _parallel.workers_here(n_jobs) if estimator.device == "cpu" else 1
    _require_memory(similarity, n_components, n_runs, estimator, n_workers)
    arrays = arrays_of(similarity)
    described = partial(_settings, arrays, n_components, estimator)
    with working("consensus", described, checkpoint, random_state, n_jobs, progress) as work:
        choice = _parallel.seed_of(work.root, 0, _ALPHA), work, {"kind": "alpha"}
        settled = settle_alpha(estimator, arrays, n_components, *choice)
        estimator = clone(estimator).set_params(alpha=settled)
        fit = partial(_fit_runs, arrays, n_components, estimator, work.root, n_jobs)
        runs = work.collect("consensus", n_runs, fit, kept_runs(work, arrays.n_items, n_runs), keep_run, "run")
        labels = None if similarity.labels is None else tuple(similarity.labels)
        settings = {"labels": labels, "alpha": settled}
        consensus = reliability.consensus_of(runs, n_splits, work, **settings)
    warn_of_unconverged(consensus, estimator.max_iter, estimator.tol)
    problem = solvers.penalised(problem_of(arrays), consensus.alpha)
    warn_of_underdetermined(problem, consensus.embedding, similarity.labels)
    warn_of_nothing_left(consensus.embedding, consensus.alpha, 2.0 * solvers.size(problem))
    return consensus


def fit_runs(*arguments: Any) -> list[Run]:
    """Some fits, with one BLAS thread, so that results do not depend on where they run."""
    *parts, estimator, n_components, root, numbers = arguments
    seeds = [_parallel.seed_of(root, number) for number in numbers]
    with _threads.one_blas_thread():
        problem = problem_of(Arrays(*parts))
        solutions = solve_many(estimator, [problem] * len(numbers), n_components, seeds)
    runs = []
    for number, found in zip(numbers, solutions, strict=True):
        by_share = np.argsort(-np.sum(found.W.astype(np.float64) ** 2, axis=0), kind="stable")
        W = np.ascontiguousarray(found.W[:, by_share])
        runs.append(Run(number, W, float(found.objective), int(found.n_iter), bool(found.converged)))
    return runs


def _fit_runs(
    arrays: Arrays, n_components: int, estimator: SRF, root: int, n_jobs: int | None, numbers: list[int]
) -> Generator[Run, None, None]:
    """Runs one by one on processors, and divided among devices, in the order of completion."""
    is_cpu, is_here, estimators = estimator.device == "cpu", _parallel.run_here(), on_devices(estimator, n_jobs)
    n_parts = len(estimators) if is_here else _parallel.n_workers(n_jobs)
    size = 1 if is_cpu else max(1, min(_RUNS_PER_BATCH, -(-len(numbers) // n_parts)))
    tasks = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    rest = (n_components, root)
    if is_cpu or not is_here:
        # Fits take long, and about equally long: handing them out one by one avoids waiting for another worker's batch.
        shared = (*arrays, estimator, *rest)
        batches: Iterable[list[Run]] = _parallel.run_tasks(fit_runs, shared, tasks, n_jobs=n_jobs, one_by_one=True)
    else:
        pairs = list(zip(itertools.cycle(estimators), tasks, strict=False))
        batches = _threads.mapped(lambda pair: fit_runs(*arrays, pair[0], *rest, pair[1]), pairs, n_parts)
    yield from itertools.chain.from_iterable(batches)


def default_estimator(device: str = "cpu") -> SRF:
    """The default settings of runs."""
    return SRF(max_iter=_DEFAULT_MAX_ITER, device=device)


def check_runs(n_runs: Any, estimator: Any) -> SRF:
    """The estimator of each run, after checking it and the number of runs."""
    require_count("n_runs", n_runs, at_least=2)
    if estimator is None:
        return default_estimator()
    if not isinstance(estimator, SRF):
        raise ParameterTypeError("estimator", "must be an SRF", shown(estimator))
    if not isinstance(estimator.init, str) or estimator.init != "random":
        given = repr(estimator.init) if isinstance(estimator.init, str) else "an array"
        raise ParameterError("estimator", "must have init='random', so that runs differ", given)
    estimator._check_parameters()
    return estimator


def _require_memory(similarity: Similarity, n_components: int, n_runs: int, estimator: SRF, n_workers: int) -> None:
    # All runs as fitted, aligned, and twice more in float64 for the two halves.
    _memory.require(
        4 * 8 * n_runs * similarity.n_items * n_components,
        f"{n_runs} runs of {similarity.n_items} x {n_components} loadings",
        "fewer runs or dimensions need less",
    )
    is_dense = similarity.factors is None and not sparse.issparse(similarity.values)
    if is_dense and (similarity.density < 1 or similarity.weights is not None):
        squares = (2 if estimator.solver == "admm" else 1) + (0 if similarity.weights is None else 2)
        _memory.require_for_workers(
            squares * similarity.n_items**2 * similarity.values.dtype.itemsize,
            min(n_workers, n_runs),
            f"A fit of {similarity.n_items} items",
            "pass float32 values, or a sparse matrix with absent='missing' if few pairs are known",
        )


def _settings(arrays: Arrays, n_components: int, estimator: SRF) -> dict[str, Any]:
    data = fingerprint(*arrays)
    return {"data": data, "n_components": int(n_components), "estimator": settings_of(estimator)}
