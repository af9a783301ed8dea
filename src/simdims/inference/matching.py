"""Leave-one-out matching of dimensions to hypotheses, exactly, without solving an assignment for every item.

With columns x_j and w_k centred and of unit length over n items, C = X^T W holds their correlations, and without item i
they are a rank-one change of it,

    C^(-i)_jk = (C_jk - q x_ij w_ik) / (sqrt(1 - q x_ij^2) sqrt(1 - q w_ik^2)),   q = n / (n - 1).

The matching of item i maximises the sum of C^(-i)_j,sigma(j). The matching of all items is still optimal for it if, at
prices p that are dual to the problem of all items, no hypothesis prefers another dimension:
C^(-i)_jk - p_k <= C^(-i)_j,sigma(j) - p_sigma(j) for all j and k. Only where this fails is an assignment solved, and
from those prices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

# Two sums of correlations that differ by less are equal.
TIE = 1e-12
# Adding this and taking it away again rounds a correlation to a multiple of 2^-36, so that which of two equally good
# dimensions is chosen, as if both sides are zeros and ones, does not depend on rounding errors.
GRID = 1.5 * 2.0**16
# Scores computed at a time: small enough for a processor's cache, large enough to amortise a NumPy call.
BLOCK_SCORES = 2**17


@dataclass(frozen=True, eq=False)
class Columns:
    """Centred columns of unit length (a constant one is zero) and the factor that restores it without an item.

    The stretch is 1 / sqrt(1 - q x^2), or 0 where a column is constant over the other items.
    """

    values: NDArray[np.float64]
    stretch: NDArray[np.float64]


def standardise(X: NDArray[np.float64]) -> Columns:
    """Return the columns of X ready to be correlated without any one item."""
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
    """Correlate each hypothesis, its items permuted, with the column of W that leave-one-out matching composes for it.

    Returns one row per permutation. `joint` gives any two hypotheses different dimensions; `absolute` matches on
    absolute correlations.
    """
    result = np.empty((len(permutations), hypotheses.values.shape[1]))
    for place, permutation in enumerate(permutations):
        x = Columns(hypotheses.values[permutation], hypotheses.stretch[permutation])
        result[place] = aligned_correlation(x, dimensions, W, joint=joint, absolute=absolute)
    return result


def aligned_correlation(
    x: Columns, dimensions: Columns, W: NDArray[np.float64], *, joint: bool, absolute: bool
) -> NDArray[np.float64]:
    """The same for one arrangement of the hypotheses."""
    matched = leave_one_out_matching(x, dimensions, joint=joint, absolute=absolute)
    centred, length = _centre(W[np.arange(len(W))[:, None], matched])
    return np.einsum("ij,ij->j", x.values, centred) / length


def _centre(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scaled and centred columns and their lengths, infinite for a constant column, which so correlates 0."""
    scale = np.abs(X).max(axis=0)
    centred = X / np.where(scale > 0, scale, 1.0)
    centred -= centred.mean(axis=0)
    length = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    return centred, np.where(length > 1e-12 * np.sqrt(len(X)), length, np.inf)


def match(C: NDArray[np.float64], *, joint: bool, absolute: bool) -> NDArray[np.intp]:
    """The dimension (column) that a matrix of correlations assigns to each hypothesis (row)."""
    scores = _scores(C, absolute)
    if joint and len(C) > 1:
        return linear_sum_assignment(scores, maximize=True)[1]
    return scores.argmax(axis=1)


def leave_one_out_matching(x: Columns, w: Columns, *, joint: bool, absolute: bool) -> NDArray[np.intp]:
    """The dimension of each hypothesis (column) for each item (row), from the other items."""
    n_items, n_hypotheses = x.values.shape
    n_components = w.values.shape[1]
    C = x.values.T @ w.values
    joint = joint and n_hypotheses > 1
    of_all = match(C, joint=joint, absolute=absolute)
    prices = _prices(_scores(C, absolute), of_all) if joint else np.zeros(n_components)
    matched = np.empty((n_items, n_hypotheses), dtype=np.intp)
    step = max(BLOCK_SCORES // (n_hypotheses * n_components), 1)
    for start in range(0, n_items, step):
        rows = slice(start, start + step)
        net = _scores_without(C, x, w, rows, absolute) - prices
        matched[rows] = _rematch(net, prices, of_all) if joint else net.argmax(axis=2)
    return matched


def _scores_without(C: NDArray, x: Columns, w: Columns, rows: slice, absolute: bool) -> NDArray[np.float64]:
    """The matrices C^(-i), or their absolute values, for some items i."""
    q = len(x.values) / (len(x.values) - 1)
    scores = (q * x.values[rows])[:, :, None] * w.values[rows][:, None, :]
    np.subtract(C, scores, out=scores)
    scores *= x.stretch[rows][:, :, None]
    scores *= w.stretch[rows][:, None, :]
    return _scores(scores, absolute)


def _scores(correlations: NDArray, absolute: bool) -> NDArray[np.float64]:
    """What a matching maximises: correlations, or their absolute values, on a grid."""
    scores = correlations + GRID
    scores -= GRID
    return np.abs(scores, out=scores) if absolute else scores


def _rematch(net: NDArray, prices: NDArray, of_all: NDArray) -> NDArray[np.intp]:
    """An optimal matching for each matrix of scores less prices; that of all items wherever it is optimal."""
    n_hypotheses, n_components = net.shape[1:]
    best = net.max(axis=2)
    own = net[:, np.arange(n_hypotheses), of_all]
    matched = np.tile(of_all, (len(net), 1))
    for item in np.flatnonzero((best > own + TIE).any(axis=1)):
        # Prices shift the sum of every matching of all columns alike. Where columns stay free they do not.
        if n_hypotheses == n_components:
            cost = best[item][:, None] - net[item]
        else:
            cost = -(net[item] + prices)
        matched[item] = linear_sum_assignment(cost)[1]
    return matched


def _prices(scores: NDArray, matched: NDArray) -> NDArray[np.float64]:
    """Prices of the columns, zero for free ones, at which no row prefers another column to its own.

    They are potentials of the graph whose edges from a matched column to another one are what its row would gain by
    moving there. Longest paths to and from any column are such potentials; their mean lies in the interior of the
    feasible prices, and so tolerates the largest changes of the scores.
    """
    n_rows, n_columns = scores.shape
    own = scores[np.arange(n_rows), matched]
    gain = scores[:, matched] - own[:, None]
    free = np.ones(n_columns, dtype=bool)
    free[matched] = False
    if free.any():  # all free columns are one node: a row can move to the best of them, and any row can come from it
        gain = np.pad(gain, (0, 1))
        gain[:-1, -1] = scores[:, free].max(axis=1) - own
    longest = gain
    for via in range(len(longest)):
        longest = np.maximum(longest, longest[:, via, None] + longest[via])
    potential = (longest.mean(axis=0) - longest.mean(axis=1)) / 2
    prices = np.zeros(n_columns)
    prices[matched] = potential[:n_rows] - (potential[-1] if free.any() else 0.0)
    return prices
