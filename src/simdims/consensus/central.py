"""central_run: the most central of many runs, and the pairwise comparison and alignment of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from simdims import _threads
from simdims._journal import Journal, Work
from simdims._parameters import ParameterError, ParameterTypeError
from simdims.consensus.alignment import align
from simdims.metrics._embedding import as_embedding
from simdims.metrics.structure import standard_columns
from simdims.similarity import is_frame, refuse_other_names


class Run(NamedTuple):
    """One fit; in a joint fit, `weights` are those of the systems."""

    number: int
    W: np.ndarray
    objective: float
    n_iter: int
    converged: bool
    weights: np.ndarray | None = None


def keep_run(journal: Journal, run: Run) -> None:
    """Add a run to a checkpoint; the rows of its array are items and, below them, systems."""
    journal.keep(f"run-{run.number}", run.W if run.weights is None else np.vstack([run.W, run.weights]))
    record = {name: value for name, value in run._asdict().items() if name not in ("W", "weights")}
    journal.append({"kind": "run", **record})


def kept_runs(work: Work, n_items: int, n_runs: int) -> dict[int, Run]:
    """The runs of a checkpoint, by number."""
    found = {}
    for record in work.records("run"):
        rows = work.kept(f"run-{record['number']}") if record["number"] < n_runs else None
        if rows is not None:
            others = {name: value for name, value in record.items() if name != "kind"}
            weights = rows[n_items:] if len(rows) > n_items else None
            found[record["number"]] = Run(W=rows[:n_items], weights=weights, **others)
    return found


def central_run(embeddings: Any) -> int:
    """Find the most central of many runs: the one closest to their element-wise median.

    All runs are aligned to the one that agrees best with the others; distances are Frobenius norms.

    Parameters
    ----------
    embeddings : sequence of arrays or DataFrames, or array of shape (n_runs, n_items, n_components)
        The runs, in any order of columns.

    Returns
    -------
    int
        The index of the run; the first of equally close ones.

    See Also
    --------
    fit_consensus : makes the runs, and keeps this one.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import simulate
    >>> from simdims.consensus import central_run
    >>> W = simulate.dirichlet(50, 3, random_state=0)
    >>> stranger = simulate.dirichlet(50, 3, random_state=1)
    >>> central_run([stranger, W + 0.1, W, W - 0.1])
    2
    """
    runs = as_runs(embeddings, at_least=1)
    with _threads.one_blas_thread():
        return most_central(runs, agreements(runs))


def as_runs(embeddings: Any, *, at_least: int) -> NDArray[np.floating]:
    """The checked runs as one array (n_runs, n_items, n_components)."""
    if is_frame(embeddings) or not isinstance(embeddings, Iterable):
        got = f"an object of type {type(embeddings).__name__}"
        raise ParameterTypeError("embeddings", "must be a sequence or an array of several embeddings", got)
    if isinstance(embeddings, np.ndarray) and embeddings.ndim != 3:
        raise ParameterError("embeddings", "must have shape (n_runs, n_items, n_components)", f"{embeddings.shape}")
    given = list(embeddings)
    if len(given) < at_least:
        raise ParameterError("embeddings", f"must have at least {at_least} runs", f"{len(given)}")
    known = None
    runs: list[NDArray[np.float64]] = []
    for place, embedding in enumerate(given):
        run, names = as_embedding(embedding, f"embeddings[{place}]")
        if runs and run.shape != runs[0].shape:
            got = f"{run.shape} for run {place} and {runs[0].shape} for run 0"
            raise ParameterError("embeddings", "must all have the same shape", got)
        if known is not None and names is not None:
            refuse_other_names(known[0], known[1], f"embeddings[{place}]", names)
        elif names is not None:
            known = (f"embeddings[{place}]", names)
        runs.append(run)
    if len(runs[0]) < 2:
        raise ParameterError("embeddings", "must have at least 2 items, so that columns can be correlated", "1")
    return np.stack(runs)


def standard_runs(runs: NDArray[np.floating], items: Any = slice(None)) -> NDArray[np.float64]:
    """The columns of all runs over some items, with mean 0 and length 1, of shape (n_items, n_runs x n_components)."""
    n_runs, _, n_components = runs.shape
    side_by_side = runs[:, items].transpose(1, 0, 2).reshape(-1, n_runs * n_components)
    return standard_columns(side_by_side.astype(np.float64, copy=False))


def pair_correlations(standard: NDArray[np.float64], n_runs: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """For each run but the last, its index and the correlations of its columns with those of each later run.

    The correlations have shape (n_later, n_components, n_components); one product gives all of them.
    """
    n_components = standard.shape[1] // n_runs
    for run in range(n_runs - 1):
        end = (run + 1) * n_components
        products = standard[:, end - n_components : end].T @ standard[:, end:]
        yield run, products.reshape(n_components, -1, n_components).swapaxes(0, 1).clip(-1.0, 1.0)


def agreements(runs: NDArray[np.floating]) -> NDArray[np.float64]:
    """The mean correlation of the matched columns for each pair of runs."""
    n_runs = len(runs)
    agreement = np.eye(n_runs)
    for run, correlations in pair_correlations(standard_runs(runs), n_runs):
        for later, C in enumerate(correlations, start=run + 1):
            matched = linear_sum_assignment(C, maximize=True)
            agreement[run, later] = agreement[later, run] = C[matched].mean()
    return agreement


def most_central(runs: NDArray[np.floating], agreement: NDArray[np.float64]) -> int:
    """The run closest to the element-wise median of all, aligned to the one that agrees best with the others."""
    aligned, _ = aligned_to(runs, int(agreement.sum(axis=0).argmax()))
    median = np.median(aligned, axis=0)
    return int(np.argmin([np.linalg.norm(run - median) for run in aligned]))


def aligned_to(runs: NDArray[np.floating], reference: int) -> tuple[NDArray[np.floating], list[NDArray[np.intp]]]:
    """All runs aligned to one of them, and the order of the columns of each."""
    orders = [align(run, runs[reference]).permutation for run in runs]
    orders[reference] = np.arange(runs.shape[2])
    # In one memory layout, so that the sums of equally central runs do not depend on how their columns were selected.
    aligned = [np.ascontiguousarray(run[:, order]) for run, order in zip(runs, orders, strict=True)]
    return np.stack(aligned), orders
