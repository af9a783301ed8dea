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
# dimensions is chosen, as where both sides hold zeros and ones, does not hang on rounding errors.
GRID = 1.5 * 2.0**16
# Scores held at a time: small enough for a processor's cache, large enough to amortise a NumPy call.
BLOCK_SCORES = 2**17


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns that are centred and of unit length, a constant one zero, and the factor that repairs their length.

    Attributes
    ----------
    values : ndarray of shape (n_items, n_columns)
    stretch : ndarray of shape (n_items, n_columns)
        1 / sqrt(1 - q x^2), or 0 where the column is constant over the other items.
    """

    values: NDArray[np.float64]
    stretch: NDArray[np.float64]


def standardise(X: NDArray[np.float64]) -> Columns:
    """Return the columns of X ready to be correlated without any one item."""
    n_items = len(X)
    scale = np.abs(X).max(axis=0)
    values = X / np.where(scale > 0, scale, 1.0)
    values = values - values.mean(axis=0)
    length = np.sqrt(np.einsum("ij,ij->j", values, values))
    varies = length > 1e-12 * np.sqrt(n_items)
    values = np.where(varies, values / np.where(varies, length, 1.0), 0.0)
    left = 1.0 - n_items / (n_items - 1) * values**2
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
    """Correlate each hypothesis, its items permuted, with the column that leave-one-out matching aligns with it.

    Parameters
    ----------
    hypotheses, dimensions : Columns
        The standardised columns of both sides.
    W : ndarray of shape (n_items, n_components)
        The embedding as it is, from which the aligned columns are read.
    permutations : ndarray of shape (n_permutations, n_items)
        The row of the hypotheses that each item gets.
    joint : bool
        Whether two hypotheses must have different dimensions.
    absolute : bool
        Whether to match on absolute correlations.

    Returns
    -------
    ndarray of shape (n_permutations, n_hypotheses)
    """
    items = np.arange(len(W))[:, None]
    result = np.empty((len(permutations), hypotheses.values.shape[1]))
    for place, permutation in enumerate(permutations):
        x = Columns(hypotheses.values[permutation], hypotheses.stretch[permutation])
        matched = leave_one_out_matching(x, dimensions, joint=joint, absolute=absolute)
        aligned = W[items, matched]
        result[place] = _correlate(x.values, aligned)
    return result


def match(C: NDArray[np.float64], *, joint: bool, absolute: bool) -> NDArray[np.intp]:
    """The dimension (column) of each hypothesis (row) that a matrix of correlations gives it."""
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
    """What a matching is to make large: correlations, or their absolute values, on a grid."""
    scores = correlations + GRID
    scores -= GRID
    return np.abs(scores, out=scores) if absolute else scores


def _rematch(net: NDArray, prices: NDArray, of_all: NDArray) -> NDArray[np.intp]:
    """An optimal matching for each matrix of scores less prices, which is the one of all items wherever it can be."""
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
    """Prices of the columns, zero for free ones, at which no row prefers a column to the one it is matched with.

    They are potentials of the graph whose edge from a matched column to another one is what its row would gain by
    moving there. Longest paths to and from any one column are such potentials; their mean lies inside of what is
    possible, and so stands the most change.
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


def _correlate(x: NDArray, aligned: NDArray) -> NDArray[np.float64]:
    """Correlations of centred columns of unit length with others; 0 for a constant one."""
    scale = np.abs(aligned).max(axis=0)
    centred = aligned / np.where(scale > 0, scale, 1.0)
    centred -= centred.mean(axis=0)
    length = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    varies = length > 1e-12 * np.sqrt(len(x))
    return np.where(varies, np.einsum("ij,ij->j", x, centred) / np.where(varies, length, 1.0), 0.0)
