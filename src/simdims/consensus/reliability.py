"""split_half_reliability: how well dimensions replicate across runs, measured on held-out items."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from simdims import _parallel, _threads
from simdims._journal import Work
from simdims._parameters import ParameterError, require_count
from simdims.consensus.central import (
    Run,
    agreements,
    aligned_to,
    as_runs,
    most_central,
    pair_correlations,
    standard_runs,
)
from simdims.consensus.result import Consensus

#: Seeds of splits are derived from (_SPLIT, number); those of runs from a single number.
_SPLIT = 0

#: Bonus for the aligned column, which breaks ties between partners with equal correlations on one half.
_TIE = 1e-9


def split_half_reliability(
    embeddings: Any,
    *,
    n_splits: int = 100,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Measure how reliably each dimension is recovered by other runs.

    The runs are aligned to the most central one, and the items are split at random into two halves. For each pair of
    runs, the dimensions are matched on one half (Hungarian algorithm, on correlations) and correlated with their
    partners on the held-out half. These correlations are averaged over all pairs of runs and all splits, and corrected
    for the half length by the Spearman-Brown formula.

    Parameters
    ----------
    embeddings : Consensus, sequence of arrays or DataFrames, or array of shape (n_runs, n_items, n_components)
        At least two runs with the same number of dimensions, in any order of columns, over at least four items.
    n_splits : int, default=100
        Number of random splits of the items.
    random_state : int, RandomState or None, default=None
        Seed of the splits; None draws one. `fit_consensus` with the same integer uses the same splits.
    n_jobs : int, optional
        Number of processes, as in joblib. Results do not depend on it.

    Returns
    -------
    ndarray of shape (n_components,)
        One value per dimension of the most central run (see `central_run`; for a Consensus, `embedding`): 1 if all runs
        have the dimension, around 0 if only this one has.

    Notes
    -----
    The value of a pair of runs is attributed to the dimension of the earlier one, which is named after the dimension of
    the central run that it is aligned with.

    Correlations are averaged without Fisher's z transform, which would be infinite for any pair of runs that reached
    the same optimum.

    A constant dimension has correlation 0 with every other. Splits in which a dimension varies only on one half, as may
    happen if few items load on it, do not count for that dimension. A dimension without any valid split, because only
    one item loads on it, has reliability 0.

    References
    ----------
    SRF, Methods, "Model fitting, dimensionality selection, and stability" and Supplementary Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import simulate
    >>> from simdims.consensus import split_half_reliability
    >>> W = simulate.dirichlet(60, 3, random_state=0)
    >>> other = W[:, [1, 2, 0]]  # the same dimensions in another order, but for one
    >>> other[:, 0] = np.random.default_rng(0).permutation(other[:, 0])
    >>> split_half_reliability([W, other], random_state=0) > 0.9
    array([ True, False,  True])
    """
    require_count("n_splits", n_splits)
    _parallel.check_n_jobs(n_jobs)
    if isinstance(embeddings, Consensus):
        runs = embeddings.embeddings
    else:
        runs = as_runs(embeddings, at_least=2)
        with _threads.one_blas_thread():
            runs, _ = aligned_to(runs, most_central(runs, agreements(runs)))
    check_halves(runs.shape[1], "embeddings")
    return reliability_of(runs, n_splits, Work.unsaved(_parallel.root_seed(random_state), n_jobs))


def spearman_brown(correlation: ArrayLike) -> NDArray[np.float64]:
    """The reliability of the whole from the correlation between its halves, 2 r / (1 + r).

    For a negative correlation it is -2 |r| / (1 + |r|), because the formula itself is unbounded near r = -1.

    Parameters
    ----------
    correlation : array-like
        Correlations between -1 and 1.

    Returns
    -------
    ndarray
        Between -1 and 1.

    Examples
    --------
    >>> from simdims.consensus import spearman_brown
    >>> spearman_brown([1.0, 0.5, 0.0, -0.5]).round(3)
    array([ 1.   ,  0.667,  0.   , -0.667])
    """
    r = np.asarray(correlation, dtype=np.float64)
    return 2.0 * r / (1.0 + np.abs(r))


def check_halves(n_items: int, name: str = "S") -> None:
    """Refuse too few items for two halves."""
    if n_items < 4:
        raise ParameterError(name, "must have at least 4 items, 2 in each half", f"{n_items}")


def reliability_of(runs: NDArray[np.floating], n_splits: int, work: Work) -> NDArray[np.float64]:
    """The reliability of each dimension of aligned runs."""
    run = partial(_parallel.run_tasks, _correlate_halves, (np.ascontiguousarray(runs), work.root), n_jobs=work.n_jobs)
    # Add in the order of the splits, so that rounding does not depend on which process finished first.
    splits: list[tuple[int, NDArray[np.float64]]] = work.collect("reliability", n_splits, run)
    total, count = np.sum([sums for _, sums in splits], axis=0)
    return spearman_brown(np.divide(total, count, out=np.zeros_like(total), where=count > 0))


def consensus_of(runs: Sequence[Run], n_splits: int, work: Work, **settings: Any) -> Consensus:
    """The Consensus of runs, with weights, aligned to the most central one and compared by split halves."""
    embeddings = np.stack([run.W for run in runs])
    with _threads.one_blas_thread():
        agreement = agreements(embeddings)
        selected = most_central(embeddings, agreement)
        aligned, orders = aligned_to(embeddings, selected)
    weights = [run.weights[:, order] for run, order in zip(runs, orders, strict=True) if run.weights is not None]
    return Consensus(
        embeddings=aligned,
        selected=selected,
        reliability=reliability_of(aligned, n_splits, work),
        agreement=agreement,
        objectives=np.array([run.objective for run in runs]),
        converged=np.array([run.converged for run in runs]),
        n_iter=np.array([run.n_iter for run in runs]),
        seeds=np.array([_parallel.seed_of(work.root, run.number) for run in runs]),
        n_splits=int(n_splits),
        seed=work.seed,
        weights=np.stack(weights) if weights else None,
        **settings,
    )


def _correlate_halves(runs: NDArray[np.floating], root: int, number: int) -> tuple[int, NDArray[np.float64]]:
    """The sum over pairs of runs of each dimension's correlation with its partner in one split, and their number."""
    n_runs, n_items, n_components = runs.shape
    order = np.random.default_rng(_parallel.seed_of(root, _SPLIT, number)).permutation(n_items)
    sums = np.zeros((2, n_components))
    columns = np.arange(n_components)
    with _threads.one_blas_thread():
        matching, held_out = (standard_runs(runs, half) for half in (order[: n_items // 2], order[n_items // 2 :]))
        counts = (matching.any(axis=0) == held_out.any(axis=0)).reshape(n_runs, n_components)
        pairs = zip(pair_correlations(matching, n_runs), pair_correlations(held_out, n_runs), strict=True)
        for (run, scores), (_, correlations) in pairs:
            scores[:, columns, columns] += _TIE
            partners = np.array([linear_sum_assignment(C, maximize=True)[1] for C in scores])
            found = np.take_along_axis(correlations, partners[:, :, None], axis=2)[:, :, 0]
            sums[0] += np.where(counts[run], found.sum(axis=0), 0.0)
            sums[1] += counts[run] * len(found)
    return number, sums
