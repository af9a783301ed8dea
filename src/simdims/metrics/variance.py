"""R2: the share of the variance of similarities that an embedding explains."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from simdims._parameters import ParameterError
from simdims.metrics._embedding import as_embedding, check_fits
from simdims.metrics._pairs import BLOCK, row_blocks
from simdims.similarity import Similarity, as_similarity


def explained_variance(S: Any, W: ArrayLike) -> float:
    """Share of the variance of the observed similarities that W W^T explains.

    R2 = 1 - sum (S_ij - w_i . w_j)^2 / sum (S_ij - mean)^2 over the observed pairs of two different items. The sums and
    the mean use the weights of the fit.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The observed similarities.
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding. If both S and W name their items, the names must be the same in the same order.

    Returns
    -------
    float
        1 for a perfect reconstruction, 0 if no better than the mean, negative if worse than the mean.

    Notes
    -----
    No matrix of all pairs is built: the cost for sparse similarities grows with the stored pairs, implicit ones F F^T
    need only products with F, and dense ones are read in blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims.metrics import explained_variance
    >>> W = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> explained_variance(W @ W.T, W)
    1.0
    """
    similarity = as_similarity(S, copy=False)
    embedding, names = as_embedding(W)
    check_fits(similarity, embedding, names)
    share = share_explained(similarity, embedding)
    if np.isnan(share):
        raise ParameterError("S", "must vary over its observed pairs to have a variance", "equal values")
    return share


def share_explained(similarity: Similarity, embedding: NDArray) -> float:
    """`explained_variance` of arguments that fit together; NaN if the similarities do not vary."""
    with np.errstate(over="ignore", invalid="ignore"):
        weight, total, squares, residual = _sums_over_pairs(similarity, embedding)
        overflows = not (np.isfinite(total**2) and np.isfinite(squares))
    if overflows:
        raise ParameterError("S", "must be small enough to be squared and summed", "sums that overflow", "divide it")
    if weight == 0:
        raise ParameterError("S", "must have an observed pair of two different items", "none")
    spread = squares - total**2 / weight
    if spread <= 1e-12 * squares:
        return np.nan
    return float(1.0 - residual / spread) if residual < np.inf else -np.inf


def _sums_over_pairs(similarity: Similarity, W: NDArray) -> NDArray[np.float64]:
    """Weighted count, sum, sum of squares and residual sum of squares over the observed pairs, each in both orders."""
    if similarity.factors is not None:
        return _factor_sums(similarity.factors, W)
    return (_sparse_sums if sparse.issparse(similarity.values) else _dense_sums)(similarity, W)


def _factor_sums(F: NDArray[np.floating], W: NDArray) -> NDArray[np.float64]:
    """From |F F^T|^2, F^T W and W^T W."""
    n, n_factors = F.shape
    own, column_sums, products = np.zeros(n), np.zeros(n_factors), np.zeros((n_factors, W.shape[1]))
    for rows in row_blocks(n):
        block = _as_double(F, rows)
        own[rows] = np.einsum("id,id->i", block, block)
        column_sums += block.sum(axis=0)
        products += block.T @ W[rows]
    norms = np.einsum("ik,ik->i", W, W)
    squares = _squared_norm(F)
    residual = squares - 2 * np.sum(products**2) + np.sum((W.T @ W) ** 2) - np.sum((own - norms) ** 2)
    return np.array([n * (n - 1), np.sum(column_sums**2) - own.sum(), squares - own @ own, max(residual, 0.0)])


def _squared_norm(F: NDArray[np.floating]) -> float:
    """|F F^T|^2 = |F^T F|^2, from the smaller of the two; F F^T is computed tile by tile."""
    n, n_factors = F.shape
    blocks = list(row_blocks(n))
    if n_factors > n:
        tiles = (_as_double(F, rows) @ _as_double(F, others).T for rows in blocks for others in blocks)
        return float(sum(np.sum(tile**2) for tile in tiles))
    gram = np.zeros((n_factors, n_factors))
    for rows in blocks:
        block = _as_double(F, rows)
        gram += block.T @ block
    return float(np.sum(gram**2))


def _as_double(matrix: NDArray, rows: slice) -> NDArray[np.float64]:
    """Rows in float64, so that a float32 matrix is never copied whole."""
    return matrix[rows].astype(np.float64, copy=False)


def _dense_sums(similarity: Similarity, W: NDArray) -> NDArray[np.float64]:
    sums = np.zeros(4)
    for rows in row_blocks(similarity.n_items):
        values = _as_double(similarity.values, rows)
        weights = np.ones_like(values) if similarity.weights is None else similarity.weights[rows]
        weights = np.where(np.isnan(values), 0.0, weights)
        np.fill_diagonal(weights[:, rows], 0.0)
        sums += _sums(np.nan_to_num(values), weights, W[rows] @ W.T)
    return sums


def _sparse_sums(similarity: Similarity, W: NDArray) -> NDArray[np.float64]:
    """From the stored pairs; the predictions of the absent pairs follow from norms of W."""
    values, n = similarity.values, similarity.n_items
    rows = np.repeat(np.arange(n), np.diff(values.indptr))
    sums, listed, listed_squares = np.zeros(4), 0, 0.0
    for e in row_blocks(values.nnz, max(BLOCK // W.shape[1], 1)):
        others = rows[e] != values.indices[e]
        i, j, stored = rows[e][others], values.indices[e][others], values.data[e][others].astype(np.float64)
        weights = np.ones(len(i)) if similarity.weights is None else similarity.weights.data[e][others]
        weights = np.where(np.isnan(stored), 0.0, weights)
        predicted = np.einsum("ek,ek->e", W[i], W[j])
        sums += _sums(np.nan_to_num(stored), weights, predicted)
        listed += len(i)
        listed_squares += float(predicted @ predicted)
    norms = np.einsum("ik,ik->i", W, W)
    all_squares = float(np.sum((W.T @ W) ** 2) - norms @ norms)
    zeros = np.array([n * (n - 1) - listed, 0.0, 0.0, max(all_squares - listed_squares, 0.0)])
    return sums + similarity.absent_weight * zeros


def _sums(values: NDArray, weights: NDArray, predicted: NDArray) -> NDArray[np.float64]:
    residual = values - predicted
    terms = (weights, weights * values, weights * values**2, weights * residual**2)
    return np.array([term.sum() for term in terms])
