"""Correlations of similarities with permuted model matrices over the observed pairs (the Mantel test).

Pearson's correlation with models x x^T uses quadratic forms: with weights Omega (0 for a missing pair), m the median
of x and z the permuted x - m, the model is m^2 + m (z_i + z_j) + z_i z_j. The constant is dropped to avoid
cancellation if m is large. All sums over pairs are then forms in z and z^2 with zero-diagonal matrices: no model
matrix is built, and a block of permutations is one matrix product. Other models, and ranks, use lists of pairs.

A correlation is NaN, not 0, if one side is constant over the observed pairs, for example if no two items with a rare
property form an observed pair. Such a permutation has no statistic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._memory import require
from simdims.similarity import Similarity
from simdims.similarity.entries import Matrix
from simdims.systems import dense_parts

# Relative tolerance for constant values: of the sum of squares about the mean, or of the range.
CONSTANT = 1e-12
WAYS_OUT = "use Pearson's correlation with hypotheses as columns, which needs no list of pairs, or fewer items"


@dataclass(frozen=True, eq=False)
class Forms:
    """Scaled similarities and weights as matrices with zero diagonals; sums are over unordered pairs."""

    values: Matrix | None  # Omega_ij (S_ij - shift)
    factors: NDArray[np.float64] | None  # instead of values: F of a complete S = F F^T
    weight_of_all: float  # Omega = weight_of_all + extra
    extra: Matrix | None
    weight: float  # sum of Omega
    total: float  # sum of Omega (S - shift)
    squares: float  # sum of Omega (S - shift)^2


@dataclass(frozen=True, eq=False)
class Pairs:
    """The observed off-diagonal pairs, first < second."""

    n_items: int
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    values: NDArray[np.float64]  # similarities, or their ranks
    weights: NDArray[np.float64] | None
    codes: NDArray[np.int64] | None  # for ranks: indices into the sorted distinct similarities
    scale: float = 1.0  # divisor of the similarities


@dataclass(frozen=True, eq=False)
class Model:
    """A model matrix prepared for permutation."""

    table: NDArray  # values or ranks, NaN if unknown; codes, -1 if unknown, if ranks depend on the permutation
    spread: float | None  # sum of squares about the mean, if no permutation changes it


def as_forms(similarity: Similarity) -> Forms:
    """Prepare similarities for quadratic forms."""
    n_items = similarity.n_items
    all_pairs = n_items * (n_items - 1) / 2
    if similarity.factors is not None:
        F = near_one(similarity.factors.astype(np.float64))
        own = np.einsum("id,id->i", F, F)
        total = (np.sum(F.sum(axis=0) ** 2) - own.sum()) / 2
        squares = (np.sum((F.T @ F) ** 2) - own @ own) / 2
        return Forms(None, F, 1.0, None, all_pairs, float(total), float(squares))
    if sparse.issparse(similarity.values):
        return _sparse_forms(similarity, all_pairs)
    require(3 * 8 * n_items**2, "Correlating similarities with hypotheses", "leave items out")
    S, omega = dense_parts(similarity)
    np.fill_diagonal(S, 0.0)
    np.fill_diagonal(omega, 0.0)
    weight = omega.sum() / 2
    S = near_one(S)
    shift = np.vdot(omega, S) / (2 * weight) if weight > 0 else 0.0
    S -= shift
    values = omega * S
    total, squares = float(values.sum() / 2), float(np.vdot(values, S) / 2)
    complete = similarity.weights is None and weight == all_pairs
    return Forms(values, None, float(complete), None if complete else omega, float(weight), total, squares)


def _sparse_forms(similarity: Similarity, all_pairs: float) -> Forms:
    S = similarity.values.astype(np.float64)
    rows = np.repeat(np.arange(similarity.n_items), np.diff(S.indptr))
    others = rows != S.indices
    known = others & ~np.isnan(S.data)
    weights = np.ones(S.nnz) if similarity.weights is None else similarity.weights.data.astype(np.float64)
    omega = np.where(known, weights, 0.0)
    data = near_one(np.where(known, S.data, 0.0))
    absent = similarity.absent_weight
    if absent == 0 and omega.any():
        data -= np.average(data, weights=omega)

    def matrix(entries: NDArray) -> sparse.csr_array:
        return sparse.csr_array((entries, S.indices, S.indptr), shape=S.shape)

    # A stored pair has its own weight (0 if it is NaN) instead of the weight of absent pairs.
    extra = matrix(np.where(others, omega - absent, 0.0))
    weight = absent * all_pairs + extra.data.sum() / 2
    total, squares = np.dot(omega, data) / 2, np.dot(omega, data**2) / 2
    return Forms(matrix(omega * data), None, absent, extra, float(weight), float(total), float(squares))


def is_weighted(similarity: Similarity) -> bool:
    """Whether some pairs have weights other than 0 and 1."""
    return similarity.weights is not None or 0 < similarity.absent_weight < 1


def as_pairs(similarity: Similarity, *, ranks: bool) -> Pairs:
    """Return the list of observed pairs."""
    n_items = similarity.n_items
    if similarity.absent == "missing":
        upper = sparse.triu(similarity.values, k=1, format="coo")
        first, second, values, weights = upper.row, upper.col, upper.data.astype(np.float64), np.ones(upper.nnz)
        if similarity.weights is not None:
            weights = sparse.triu(similarity.weights, k=1, format="coo").data.astype(np.float64)
    else:
        require(8 * 8 * n_items**2 // 2, "A list of all pairs", WAYS_OUT)
        if similarity.factors is None:
            S, omega = dense_parts(similarity)
        else:
            F = similarity.factors.astype(np.float64)
            S, omega = F @ F.T, np.ones((n_items, n_items))
        first, second = np.triu_indices(n_items, k=1)
        values, weights = S[first, second], omega[first, second]
    known = ~np.isnan(values) & (weights > 0)
    first, second, given, weights = first[known], second[known], values[known], weights[known]
    values = near_one(given)
    peak = int(np.argmax(np.abs(given))) if given.size else 0
    scale = float(given[peak] / values[peak]) if given.any() else 1.0
    codes = as_codes(values) if ranks else None
    values = values if codes is None else midranks(codes)
    return Pairs(n_items, first, second, values, weights if is_weighted(similarity) else None, codes, scale)


def form_correlations(forms: Forms, X: NDArray[np.float64], permutations: NDArray[np.integer]) -> NDArray[np.float64]:
    """Pearson correlations of the similarities with x x^T for each column x of X, one row per permutation."""
    middle = _lower_median(X)
    # (n_items, n_permutations * n_hypotheses)
    Z = (X - middle)[permutations].transpose(1, 0, 2).reshape(len(X), -1)
    middle = np.tile(middle, len(permutations))
    total, spread, varies = _model_sums(Z, middle, forms)
    covariance = _values_sum(Z, middle, forms) - forms.total * total / forms.weight
    return _ratio(covariance, _spread(forms), spread, varies).reshape(len(permutations), X.shape[1])


def form_spreads(forms: Forms, X: NDArray[np.float64]) -> tuple[bool, NDArray[np.bool_]]:
    """Whether the similarities and each x x^T vary over the observed pairs."""
    if forms.weight <= 0:
        return False, np.ones(X.shape[1], dtype=bool)
    middle = _lower_median(X)
    return _spread(forms) > CONSTANT * forms.squares, _model_sums(X - middle, middle, forms)[2]


def _lower_median(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """A median that occurs in its column, so that most z of a rare property are exactly zero."""
    return np.quantile(X, 0.5, axis=0, method="lower")


def _spread(forms: Forms) -> float:
    return forms.squares - forms.total**2 / forms.weight


def _model_sums(Z: NDArray, middle: NDArray, forms: Forms) -> tuple[NDArray, NDArray, NDArray]:
    """Sum of h = m (z_i + z_j) + z_i z_j over pairs, its sum of squares about the mean, and whether h varies."""
    Z2 = Z**2
    z_sums, z2_sums = _weight_sums(Z, forms), _weight_sums(Z2, forms)
    zz, z2z = np.einsum("ic,ic->c", Z, z_sums), np.einsum("ic,ic->c", Z2, z_sums)
    total = middle * z_sums.sum(axis=0) + zz / 2
    squares = middle**2 * (z2_sums.sum(axis=0) + zz) + 2 * middle * z2z + np.einsum("ic,ic->c", Z2, z2_sums) / 2
    spread = squares - total**2 / forms.weight
    return total, spread, spread > CONSTANT * squares


def _values_sum(Z: NDArray, middle: NDArray, forms: Forms) -> NDArray[np.float64]:
    """The sum of Omega (S - shift) h over pairs."""
    if forms.factors is not None:
        F = forms.factors
        own = np.einsum("id,id->i", F, F)
        projected = F.T @ Z
        linear, form = F.sum(axis=0) @ projected - own @ Z, np.sum(projected**2, axis=0) - own @ Z**2
    else:
        assert forms.values is not None
        sums = forms.values @ Z
        linear, form = sums.sum(axis=0), np.einsum("ic,ic->c", Z, sums)
    return middle * linear + form / 2


def _weight_sums(Y: NDArray, forms: Forms) -> NDArray[np.float64]:
    """Omega Y."""
    sums = forms.weight_of_all * (Y.sum(axis=0) - Y)
    return sums if forms.extra is None else sums + forms.extra @ Y


def as_model(matrix: NDArray[np.float64], pairs: Pairs) -> Model:
    """Prepare a model matrix for permutations against these pairs."""
    upper = np.triu_indices(len(matrix), k=1)
    values = matrix[upper]
    # If all pairs are observed with equal weight, a permutation only reorders the values.
    if pairs.weights is not None or len(pairs.values) < len(values) or np.isnan(values).any():
        return Model(matrix if pairs.codes is None else as_codes(matrix), None)
    if pairs.codes is not None:
        values = midranks(as_codes(values))
    values = values - values.mean()
    return Model(symmetric(values, upper, len(matrix)), float(np.dot(values, values)))


def symmetric(values: NDArray[np.float64], pairs: tuple[NDArray, NDArray], n_items: int) -> NDArray[np.float64]:
    """Values of pairs (i, j), i < j, as a symmetric matrix, zero for all others."""
    table = np.zeros((n_items, n_items))
    table[pairs] = values
    return table + table.T


def pair_spreads(pairs: Pairs, matrices: tuple[NDArray[np.float64], ...]) -> tuple[bool, NDArray[np.bool_]]:
    """Whether the similarities vary over the observed pairs, and both sides over the pairs that each model covers."""
    both_vary = []
    for matrix in matrices:
        model = matrix[pairs.first, pairs.second]
        known = ~np.isnan(model)
        both_vary.append(_varies(model[known]) and _varies(pairs.values[known]))
    return _varies(pairs.values), np.array(both_vary)


def pair_correlations(
    pairs: Pairs, models: tuple[Model, ...], permutations: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Correlations, one row per permutation, over the pairs that are observed and covered by the permuted model."""
    result = np.empty((len(permutations), len(models)))
    values = pairs.values - np.average(pairs.values, weights=pairs.weights)
    spread = float(np.dot(values, values))
    for place, permutation in enumerate(permutations):
        where = permutation[pairs.first] * pairs.n_items + permutation[pairs.second]
        for column, model in enumerate(models):
            h = model.table.ravel()[where]
            if model.spread is not None:
                r = float(_ratio(np.dot(values, h), spread, model.spread, True))
            elif pairs.codes is not None:
                known = h >= 0
                r = _correlation(midranks(pairs.codes[known]), midranks(h[known]), None)
            else:
                known = ~np.isnan(h)
                r = _correlation(values[known], h[known], None if pairs.weights is None else pairs.weights[known])
            result[place, column] = r
    return result


def as_codes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Index of each value among the sorted distinct values; -1 for NaN."""
    codes = np.full(values.shape, -1, dtype=np.int64)
    known = ~np.isnan(values)
    codes[known] = np.unique(values[known], return_inverse=True)[1]
    return codes


def midranks(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Ranks of values given as codes, from 1, with ties averaged."""
    counts = np.bincount(codes)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]


def _correlation(s: NDArray, h: NDArray, weights: NDArray | None) -> float:
    if len(s) == 0:
        return np.nan
    varies = _varies(s) and _varies(h)
    s, h = s - np.average(s, weights=weights), h - np.average(h, weights=weights)
    weighted = h if weights is None else weights * h
    s_spread = np.dot(s, s if weights is None else weights * s)
    return float(_ratio(np.dot(s, weighted), s_spread, np.dot(h, weighted), varies))


def near_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide by a power of two, which is exact, so that no square overflows or underflows."""
    largest = max(np.fmax.reduce(values, axis=None, initial=0.0), -np.fmin.reduce(values, axis=None, initial=0.0))
    return np.ldexp(values, -int(np.frexp(largest)[1])) if largest > 0 else values


def _varies(values: NDArray) -> bool:
    """Whether values differ by more than rounding error."""
    return bool(values.size and np.ptp(values) > CONSTANT * np.abs(values).max())


def _ratio(covariance: Any, s_spread: float, h_spread: Any, varies: Any) -> NDArray[np.float64]:
    """Covariance / sqrt(variances), between -1 and 1; NaN if one side is constant."""
    varies = varies & (h_spread > 0) & (s_spread > 0)
    scale = np.sqrt(np.where(varies, s_spread * np.maximum(h_spread, 0.0), 1.0))
    return np.where(varies, np.clip(covariance / scale, -1.0, 1.0), np.nan)
