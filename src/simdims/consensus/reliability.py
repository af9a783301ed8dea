"""split_half_reliability: how far one run's dimensions are found again in another, on items that did not match them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from simdims import _parallel, _threads
from simdims._parameters import require_count
from simdims.consensus.central import agreements, aligned_to, as_runs, most_central, pair_correlations, standard_runs
from simdims.consensus.result import Consensus

#: First word of the name of a split, from which its seed follows; runs are named by one number alone.
_SPLIT = 0

#: What a column gains by being the aligned one: decides between partners that a half cannot tell apart.
_TIE = 1e-9


def split_half_reliability(
    embeddings: Any,
    *,
    n_splits: int = 100,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """How reliably each dimension is found again by another run.

    The runs are aligned to the most central one. The items are split at random into two halves; for each pair of runs
    the dimensions are matched on one half (Hungarian algorithm, on correlations) and each is correlated with its
    partner on the other half, which had no say in who that is. These correlations are averaged over all pairs of runs
    and all splits, and corrected for the half length by the Spearman-Brown formula.

    Parameters
    ----------
    embeddings : Consensus, sequence of arrays or DataFrames, or array of shape (n_runs, n_items, n_components)
        At least two runs of one number of dimensions, in any order of columns, over at least four items.
    n_splits : int, default=100
        Random splits of the items.
    random_state : int, RandomState or None, default=None
        Seed of the splits; None is fresh entropy. `fit_consensus` with the same integer draws the same splits.
    n_jobs : int, optional
        Processes, as in joblib. Results do not depend on it.

    Returns
    -------
    ndarray of shape (n_components,)
        One value for each dimension of the most central run, in its order (`central_run` says which one it is; of a
        Consensus it is `embedding`): 1 where all runs have it, around 0 where it is an accident of its run.

    Notes
    -----
    The value of a pair belongs to the dimension of the earlier of its two runs, which bears the name of the central
    run's dimension that it is aligned with.

    The mean is a plain one. A mean of Fisher's z would be infinite as soon as one pair of runs has reached the same
    optimum, and would hide all pairs that have not.

    A constant dimension correlates 0 with every other. One that varies, but only on one half of the items, as one that
    few items have may do, cannot both be matched and correlated in that split, which then does not count for it. A
    dimension that no split can judge, because it belongs to a single item, has reliability 0.

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
            runs = aligned_to(runs, most_central(runs, agreements(runs)))
    check_halves(runs.shape[1])
    return conclude(list(judge_splits(runs, n_splits, _parallel.root_seed(random_state), n_jobs)))


def spearman_brown(correlation: ArrayLike) -> NDArray[np.float64]:
    """The reliability of the whole from the correlation between its halves, 2 r / (1 + r).

    Of a negative correlation it is -2 |r| / (1 + |r|): the formula itself falls without bound towards r = -1, where it
    says nothing about length any more, and one such value would decide every mean it enters.

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


def check_halves(n_items: int) -> None:
    """Refuse items that do not make two halves to correlate on."""
    if n_items < 4:
        raise ValueError(f"Reliability needs at least 4 items, 2 in each half, got {n_items}.")


def judge_splits(
    runs: NDArray[np.floating], n_splits: int, root: int, n_jobs: int | None
) -> Generator[tuple[int, NDArray[np.float64]], None, None]:
    """For each split, as they end, its number and what `judge_split` finds; the runs are aligned."""
    shared = (np.ascontiguousarray(runs), root)
    yield from _parallel.run_tasks(_judge_number, shared, range(n_splits), n_jobs=n_jobs)


def conclude(splits: list[tuple[int, NDArray[np.float64]]]) -> NDArray[np.float64]:
    """The reliability of each dimension, from all splits, in an order that does not depend on which ended first."""
    total, count = np.sum([sums for _, sums in sorted(splits, key=lambda split: split[0])], axis=0)
    return spearman_brown(np.divide(total, count, out=np.zeros_like(total), where=count > 0))


def _judge_number(runs: NDArray[np.floating], root: int, number: int) -> tuple[int, NDArray[np.float64]]:
    order = np.random.default_rng(_parallel.seed_of(root, _SPLIT, number)).permutation(runs.shape[1])
    half = len(order) // 2
    with _threads.one_blas_thread():
        return number, judge_split(runs, order[:half], order[half:])


def judge_split(runs: NDArray[np.floating], matching_items: NDArray, judging_items: NDArray) -> NDArray[np.float64]:
    """The sum over pairs of runs of each dimension's correlation with its partner, and the number of pairs in it."""
    n_runs, _, n_components = runs.shape
    matching, judging = standard_runs(runs, matching_items), standard_runs(runs, judging_items)
    counts = (matching.any(axis=0) == judging.any(axis=0)).reshape(n_runs, n_components)
    sums = np.zeros((2, n_components))
    columns = np.arange(n_components)
    pairs = zip(pair_correlations(matching, n_runs), pair_correlations(judging, n_runs), strict=True)
    for (run, scores), (_, correlations) in pairs:
        scores[:, columns, columns] += _TIE
        partners = np.array([linear_sum_assignment(C, maximize=True)[1] for C in scores])
        found = np.take_along_axis(correlations, partners[:, :, None], axis=2)[:, :, 0]
        sums[0] += np.where(counts[run], found.sum(axis=0), 0.0)
        sums[1] += counts[run] * len(found)
    return sums
