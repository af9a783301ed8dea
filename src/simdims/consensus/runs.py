"""fit_consensus: the same similarities fitted from many random starts."""

from __future__ import annotations

import itertools
import os
import warnings
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from simdims import __version__, _memory, _parallel, _threads, solvers
from simdims._journal import Journal, fingerprint
from simdims._parameters import require_count
from simdims._progress import Callback, Reporter, reporting
from simdims.consensus import reliability
from simdims.consensus.central import agreements, aligned_to, most_central
from simdims.consensus.result import Consensus
from simdims.similarity import Similarity, as_similarity
from simdims.similarity.arrays import Arrays, arrays_of, problem_of
from simdims.srf import SRF, solve_many, warn_of_underdetermined

#: Real similarities often need more sweeps than the 500 of SRF to its tol; docs/consensus.md has the evidence.
_DEFAULT_MAX_ITER = 2000

#: Runs that a device fits together and that are kept together.
_RUNS_TOGETHER = 32


class Run(NamedTuple):
    """What is kept of one fit."""

    number: int
    W: np.ndarray
    objective: float
    n_iter: int
    converged: bool


def fit_consensus(
    S: Any,
    n_components: int,
    *,
    n_runs: int = 30,
    n_splits: int = 100,
    estimator: SRF | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> Consensus:
    """Fit many times from random starts, and keep the run that stands for all.

    The objective is not convex, so that one fit may end where another does not. All runs are put in one order of
    columns; the one closest to their element-wise median is the embedding, and what the runs share says how
    reproducible each of its dimensions is across random starts.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes
        The similarities.
    n_components : int
        Number of dimensions, between 1 and the number of items.
    n_runs : int, default=30
        Fits, at least 2.
    n_splits : int, default=100
        Random splits of the items behind the reliabilities; see `split_half_reliability`.
    estimator : SRF, optional
        The fits' settings, with ``init="random"``; its n_components and random_state are set for each. By default
        ``SRF(max_iter=2000)``: the precision of a single fit, and room to reach it.
    checkpoint : path, optional
        A folder in which every finished fit is kept. A call that is stopped in whatever way continues from there when
        it is made again with the same data and settings, and ends with the same result (on a device, where what is
        fitted together decides the last digits, to rounding); one with a larger `n_runs` adds runs.
    random_state : int, RandomState or None, default=None
        Seed of starts and splits; None is fresh entropy (or, with a checkpoint, that of its first call).
    n_jobs : int, optional
        Processes, as in joblib, whose configuration also sends the fits to a cluster. Results do not depend on it.
    progress : bool or callable, optional
        A bar (True), none (False), a function that is called with a Progress after every fit and split, or (None) a bar
        where the standard error is a terminal or a notebook.

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
    align : the order of columns of one embedding for another.
    split_half_reliability : the reliabilities of runs made elsewhere.

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
    similarity = as_similarity(S, copy=False)
    require_count("n_components", n_components)
    if n_components > similarity.n_items:
        raise ValueError(f"n_components must be between 1 and n_items = {similarity.n_items}, got {n_components}.")
    estimator = check_runs(n_runs, estimator)
    require_count("n_splits", n_splits)
    reliability.check_halves(similarity.n_items)
    _parallel.check_n_jobs(n_jobs)
    n_workers = _parallel.workers_here(n_jobs) if estimator.device == "cpu" else 1
    _require_memory(similarity, n_components, n_runs, estimator, n_workers)
    arrays = arrays_of(similarity)
    with ExitStack() as stack:
        reporter = stack.enter_context(reporting(progress))
        seed = None if random_state is None and checkpoint is not None else _parallel.settle_seed(random_state)
        journal = None
        if checkpoint is not None:
            journal = stack.enter_context(Journal(checkpoint, _settings(arrays, n_components, estimator, seed)))
            seed, root = journal.settings["random_state"], journal.settings["seed"]
        else:
            root = _parallel.root_seed(seed)
        runs = _fit_runs(arrays, n_components, n_runs, estimator, root, n_jobs, journal, reporter)
        embeddings = np.stack([run.W for run in runs])
        with _threads.one_blas_thread():
            agreement = agreements(embeddings)
            selected = most_central(embeddings, agreement)
            aligned = aligned_to(embeddings, selected)
        values = _reliability(aligned, n_splits, root, n_jobs, reporter)
    consensus = Consensus(
        embeddings=aligned,
        selected=selected,
        reliability=values,
        agreement=agreement,
        objectives=np.array([run.objective for run in runs]),
        converged=np.array([run.converged for run in runs]),
        n_iter=np.array([run.n_iter for run in runs]),
        seeds=np.array([_parallel.seed_of(root, number) for number in range(n_runs)]),
        n_splits=int(n_splits),
        seed=seed,
        labels=None if similarity.labels is None else tuple(similarity.labels),
    )
    _warn_of_unsettled(consensus, estimator)
    warn_of_underdetermined(problem_of(arrays), consensus.embedding, similarity.labels)
    return consensus


def fit_runs(*arguments: Any) -> list[Run]:
    """Some fits, wherever they run; with one BLAS thread everywhere, so that it does not matter where."""
    *parts, estimator, n_components, root, numbers = arguments
    seeds = [_parallel.seed_of(root, number) for number in numbers]
    with _threads.one_blas_thread():
        problem = problem_of(Arrays(*parts))
        solutions = solve_many(estimator, [problem] * len(numbers), n_components, seeds)
    return [_as_run(number, solution) for number, solution in zip(numbers, solutions, strict=True)]


def _as_run(number: int, solution: solvers.Solution) -> Run:
    by_share = np.argsort(-np.sum(solution.W.astype(np.float64) ** 2, axis=0), kind="stable")
    W = np.ascontiguousarray(solution.W[:, by_share])
    return Run(number, W, float(solution.objective), int(solution.n_iter), bool(solution.converged))


def _fit_runs(
    arrays: Arrays,
    n_components: int,
    n_runs: int,
    estimator: SRF,
    root: int,
    n_jobs: int | None,
    journal: Journal | None,
    reporter: Reporter,
) -> list[Run]:
    """All runs by number, those of an earlier call among them."""
    runs = _earlier_runs(journal, n_runs)
    reporter.begin("consensus", n_runs, done=len(runs))
    left = [number for number in range(n_runs) if number not in runs]
    on_device = estimator.device != "cpu"
    together = _RUNS_TOGETHER if on_device else 1
    tasks = [left[start : start + together] for start in range(0, len(left), together)]
    shared = (*arrays, estimator, n_components, root)
    n_jobs = 1 if on_device else n_jobs
    # Long ones each, and all alike: handed out one by one no worker waits for another's batch.
    with closing(_parallel.run_tasks(fit_runs, shared, tasks, n_jobs=n_jobs, one_by_one=True)) as results:
        for run in itertools.chain.from_iterable(results):
            runs[run.number] = run
            if journal is not None:
                journal.keep(_file_of(run.number), run.W)
                record = {name: value for name, value in run._asdict().items() if name != "W"}
                journal.append({"kind": "run", **record})
            reporter.step(f"run {run.number + 1}")
    return [runs[number] for number in range(n_runs)]


def _earlier_runs(journal: Journal | None, n_runs: int) -> dict[int, Run]:
    if journal is None:
        return {}
    found = {}
    for record in journal.records:
        if record["kind"] != "run" or record["number"] >= n_runs:
            continue
        W = journal.kept(_file_of(record["number"]))
        if W is not None:
            found[record["number"]] = Run(W=W, **{name: value for name, value in record.items() if name != "kind"})
    return found


def _reliability(aligned: np.ndarray, n_splits: int, root: int, n_jobs: int | None, reporter: Reporter) -> np.ndarray:
    reporter.begin("reliability", n_splits)
    splits = []
    with closing(reliability.judge_splits(aligned, n_splits, root, n_jobs)) as results:
        for split in results:
            splits.append(split)
            reporter.step()
    return reliability.conclude(splits)


def _file_of(number: int) -> str:
    return f"run-{number}"


def default_estimator(device: str = "cpu") -> SRF:
    """The settings of runs where none are given."""
    return SRF(max_iter=_DEFAULT_MAX_ITER, device=device)


def check_runs(n_runs: Any, estimator: Any) -> SRF:
    """Refuse runs that there would be nothing to compare of; returns the estimator of each."""
    require_count("n_runs", n_runs)
    if n_runs < 2:
        raise ValueError(f"n_runs must be at least 2, so that there are runs to compare, got {n_runs}.")
    if estimator is None:
        return default_estimator()
    if not isinstance(estimator, SRF):
        raise TypeError(f"estimator must be an SRF, got {estimator!r}.")
    if not isinstance(estimator.init, str) or estimator.init != "random":
        given = repr(estimator.init) if isinstance(estimator.init, str) else "an array"
        raise ValueError(
            f"estimator must start from init='random', got {given}: from there every run would be the same one."
        )
    estimator._check_parameters()
    return estimator


def _require_memory(similarity: Similarity, n_components: int, n_runs: int, estimator: SRF, n_workers: int) -> None:
    # All runs as they end, aligned, and twice more in float64 while halves of them are compared.
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


def _settings(arrays: Arrays, n_components: int, estimator: SRF, seed: int | None) -> dict[str, Any]:
    """What a checkpoint must agree on; the number of runs is not part of it, so that more can be added later."""
    parameters = estimator.get_params()
    for name in ("n_components", "random_state", "verbose"):
        del parameters[name]
    return {
        "work": "consensus",
        "version": __version__,
        "data": fingerprint(*arrays),
        "n_components": int(n_components),
        "estimator": {name: repr(value) for name, value in parameters.items()},
        "seed": None,
        "random_state": seed,
    }


def _warn_of_unsettled(consensus: Consensus, estimator: SRF) -> None:
    n_unsettled = int(np.count_nonzero(~consensus.converged))
    if n_unsettled:
        warnings.warn(
            f"{n_unsettled} of {consensus.n_runs} runs did not converge in max_iter={estimator.max_iter} iterations "
            f"(tol={estimator.tol:g}): raise max_iter of the estimator, or its tol if that is precise enough.",
            ConvergenceWarning,
            stacklevel=3,
        )
