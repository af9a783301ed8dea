"""How well an embedding explains similarities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from simdims.similarity import Similarity, as_similarity


def explained_variance(S: Any, W: ArrayLike) -> float:
    """Share of the variance of the observed similarities that W W^T explains.

    R2 = 1 - sum (S_ij - w_i . w_j)^2 / sum (S_ij - mean)^2 over the observed pairs of two different items; weights
    count as they do in the fit, in both sums and in the mean.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The observed similarities.
    W : array-like of shape (n_items, n_components)
        The embedding.

    Returns
    -------
    float
        1 for a perfect reconstruction, 0 for one no better than the mean; negative ones are worse than the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims.metrics import explained_variance
    >>> W = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> explained_variance(W @ W.T, W)
    1.0
    """
    similarity = as_similarity(S)
    W = np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or len(W) != similarity.n_items:
        raise ValueError(f"W must have one row for each of {similarity.n_items} items, got shape {W.shape}.")
    weight, total, squares, residual = _sums_over_pairs(similarity, W)
    if weight == 0:
        raise ValueError("S must have an observed pair of two different items, got none.")
    spread = squares - total**2 / weight
    if spread <= 1e-12 * squares:
        raise ValueError("S must vary over its observed pairs to have a share of variance explained, got equal values.")
    return float(1.0 - residual / spread)


def _sums_over_pairs(similarity: Similarity, W: NDArray) -> NDArray[np.float64]:
    """Weighted count, sum, sum of squares and residual sum of squares over the observed pairs, each in both orders."""
    if similarity.factors is not None:
        return _factor_sums(similarity.factors.astype(np.float64, copy=False), W)
    if sparse.issparse(similarity.values):
        return _sparse_sums(similarity, W)
    return _dense_sums(similarity, W)


def _factor_sums(F: NDArray, W: NDArray) -> NDArray[np.float64]:
    """From F^T F, F^T W and W^T W."""
    n = len(F)
    own, norms = np.einsum("id,id->i", F, F), np.einsum("ik,ik->i", W, W)
    squares = np.sum((F.T @ F) ** 2)
    residual = squares - 2 * np.sum((F.T @ W) ** 2) + np.sum((W.T @ W) ** 2) - np.sum((own - norms) ** 2)
    total = np.sum(F.sum(axis=0) ** 2) - own.sum()
    return np.array([n * (n - 1), total, squares - own @ own, max(residual, 0.0)])


def _dense_sums(similarity: Similarity, W: NDArray) -> NDArray[np.float64]:
    """From blocks of rows."""
    sums = np.zeros(4)
    for start in range(0, similarity.n_items, 256):
        rows = slice(start, start + 256)
        values = similarity.values[rows].astype(np.float64)
        weights = np.ones_like(values) if similarity.weights is None else similarity.weights[rows]
        weights = np.where(np.isnan(values), 0.0, weights)
        weights[np.arange(len(values)), np.arange(start, start + len(values))] = 0.0
        sums += _sums(np.nan_to_num(values), weights, W[rows] @ W.T)
    return sums


def _sparse_sums(similarity: Similarity, W: NDArray) -> NDArray[np.float64]:
    """From the stored pairs, and the zeros from norms of W: no matrix of all pairs."""
    values, n = similarity.values, similarity.n_items
    rows = np.repeat(np.arange(n), np.diff(values.indptr))
    sums = np.zeros(4)
    chunk = max(2**18 // W.shape[1], 1)
    listed = 0
    listed_squares = 0.0
    for start in range(0, values.nnz, chunk):
        e = slice(start, start + chunk)
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
    return np.array(
        [weights.sum(), (weights * values).sum(), (weights * values**2).sum(), (weights * residual**2).sum()]
    )
