"""Exact leave-one-out matching of dimensions to hypotheses, without solving an assignment for every item.

With columns x_j and w_k centred and of unit length over n items, C = X^T W holds their correlations. Leaving out item
i changes them by a rank-one update,

    C^(-i)_jk = (C_jk - q x_ij w_ik) / (sqrt(1 - q x_ij^2) sqrt(1 - q w_ik^2)),   q = n / (n - 1).

The matching for item i maximises the sum of C^(-i)_j,sigma(j). With dual prices p of the assignment over all items,
that assignment remains optimal without item i if no hypothesis prefers another dimension: C^(-i)_jk - p_k <=
C^(-i)_j,sigma(j) - p_sigma(j) for all j and k. Only if this fails is an assignment solved, starting from those prices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from simdims.metrics._pairs import row_blocks

# Sums of correlations that differ by less count as equal.
TIE = 1e-12
# Adding and subtracting this rounds a correlation to a multiple of 2^-36, so that rounding errors do not decide
# between equally good dimensions, for example if both sides are binary.
GRID = 1.5 * 2.0**16
# Scores per block: small enough for the cache, large enough to amortise a NumPy call.
BLOCK_SCORES = 2**17


@dataclass(frozen=True, eq=False)
class Columns:
    """Centred columns of unit length (zero if constant) and the factor that renormalises them without an item."""

    values: NDArray[np.float64]
    stretch: NDArray[np.float64]  # 1 / sqrt(1 - q x^2), or 0 if a column is constant over the other items


def standardise(X: NDArray[np.float64]) -> Columns:
    """Centre and normalise the columns of X for leave-one-out correlations."""
    centred, length = _centre(X)
    values = centred / length
    left = 1.0 - len(X) / (len(X) - 1) * values**2
    stretch = np.where(left > TIE, 1.0 / np.sqrt(np.maximum(left, TIE)), 0.0)
    return Columns(values, stretch)


def aligned_correlations(
    hypotheses: Columns,
    dimensions: Columns,
    W: NDArray[np.float64],
    permutations: NDArray[np.integer],
    *,
    joint: bool,
    absolute: bool,
) -> NDArray[np.float64]:
    """Correlations of hypotheses with composite columns of W from leave-one-out matching, one row per permutation."""
    result = np.empty((len(permutations), hypotheses.values.shape[1]))
    for place, permutation in enumerate(permutations):
        x = Columns(hypotheses.values[permutation], hypotheses.stretch[permutation])
        result[place] = aligned_correlation(x, dimensions, W, joint=joint, absolute=absolute)
    return result


def aligned_correlation(
    x: Columns, dimensions: Columns, W: NDArray[np.float64], *, joint: bool, absolute: bool
) -> NDArray[np.float64]:
    """The same for a single arrangement of the hypotheses."""
    matched = leave_one_out_matching(x, dimensions, joint=joint, absolute=absolute)
    centred, length = _centre(W[np.arange(len(W))[:, None], matched])
    return np.einsum("ij,ij->j", x.values, centred) / length


def _centre(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scaled and centred columns and their lengths; infinite for a constant column, so that it correlates 0."""
    scale = np.abs(X).max(axis=0)
    centred = X / np.where(scale > 0, scale, 1.0)
    centred -= centred.mean(axis=0)
    length = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    return centred, np.where(length > 1e-12 * np.sqrt(len(X)), length, np.inf)


def match(C: NDArray[np.float64], *, joint: bool, absolute: bool) -> NDArray[np.intp]:
    """The dimension (column) assigned to each hypothesis (row) of a correlation matrix."""
    scores = _scores(C, absolute)
    if joint and len(C) > 1:
        return linear_sum_assignment(scores, maximize=True)[1]
    return scores.argmax(axis=1)


def leave_one_out_matching(x: Columns, w: Columns, *, joint: bool, absolute: bool) -> NDArray[np.intp]:
    """The dimension of each hypothesis (column) for each item (row), matched on the other items."""
    n_items, n_hypotheses = x.values.shape
    n_components = w.values.shape[1]
    C = x.values.T @ w.values
    joint = joint and n_hypotheses > 1
    of_all = match(C, joint=joint, absolute=absolute)
    prices = _prices(_scores(C, absolute), of_all) if joint else np.zeros(n_components)
    matched = np.empty((n_items, n_hypotheses), dtype=np.intp)
    for rows in row_blocks(n_items, max(BLOCK_SCORES // (n_hypotheses * n_components), 1)):
        net = _scores_without(C, x, w, rows, absolute) - prices
        matched[rows] = _rematch(net, prices, of_all) if joint else net.argmax(axis=2)
    return matched


def _scores_without(C: NDArray, x: Columns, w: Columns, rows: slice, absolute: bool) -> NDArray[np.float64]:
    """The matrices C^(-i), or their absolute values, for a block of items i."""
    q = len(x.values) / (len(x.values) - 1)
    scores = (q * x.values[rows])[:, :, None] * w.values[rows][:, None, :]
    np.subtract(C, scores, out=scores)
    scores *= x.stretch[rows][:, :, None]
    scores *= w.stretch[rows][:, None, :]
    return _scores(scores, absolute)


def _scores(correlations: NDArray, absolute: bool) -> NDArray[np.float64]:
    """The objective of a matching: correlations or their absolute values, rounded to a grid."""
    scores = correlations + GRID
    scores -= GRID
    return np.abs(scores, out=scores) if absolute else scores


def _rematch(net: NDArray, prices: NDArray, of_all: NDArray) -> NDArray[np.intp]:
    """An optimal matching for each matrix of scores less prices; the one over all items wherever it is optimal."""
    n_hypotheses, n_components = net.shape[1:]
    best = net.max(axis=2)
    own = net[:, np.arange(n_hypotheses), of_all]
    matched = np.tile(of_all, (len(net), 1))
    for item in np.flatnonzero((best > own + TIE).any(axis=1)):
        # If all columns are matched, prices shift the sum of every matching equally; with free columns they do not.
        if n_hypotheses == n_components:
            cost = best[item][:, None] - net[item]
        else:
            cost = -(net[item] + prices)
        matched[item] = linear_sum_assignment(cost)[1]
    return matched


def _prices(scores: NDArray, matched: NDArray) -> NDArray[np.float64]:
    """Prices of the columns, zero for free ones, at which no row prefers another column."""
    # They are potentials of a graph whose edge from a matched column to another is what its row would gain by moving
    # there. The longest paths to and from any column are such potentials; their mean lies in the interior of the
    # feasible prices and tolerates the largest changes of the scores.
    n_rows, n_columns = scores.shape
    own = scores[np.arange(n_rows), matched]
    gain = scores[:, matched] - own[:, None]
    free = np.ones(n_columns, dtype=bool)
    free[matched] = False
    if free.any():  # free columns form one node: a row can move to the best of them, and any row can come from it
        gain = np.pad(gain, (0, 1))
        gain[:-1, -1] = scores[:, free].max(axis=1) - own
    longest = gain
    for via in range(len(longest)):
        longest = np.maximum(longest, longest[:, via, None] + longest[via])
    potential = (longest.mean(axis=0) - longest.mean(axis=1)) / 2
    prices = np.zeros(n_columns)
    prices[matched] = potential[:n_rows] - (potential[-1] if free.any() else 0.0)
    return prices
