"""Training and test pairs: the outer pool, its folds, and the problem that is fitted.

The pool keeps every observed pair of different items with probability p_cv and is divided into k folds. For each fold,
the other k - 1 and the diagonal are used for training, and everything else is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from simdims import _memory, solvers
from simdims.similarity import Similarity
from simdims.similarity.arrays import Arrays, arrays_of
from simdims.srf import SRF

#: The largest share of the observed pairs that the pool keeps.
MOST_SAMPLING = 0.95

DEFAULT_FOLDS = 5
#: Folds and repeats of each protocol. With a penalty, fits to more training pairs find more dimensions, and few fits
#: are needed.
FOLDS = {"penalised": (8, 2), "averaged": (DEFAULT_FOLDS, 5), "paper": (DEFAULT_FOLDS, 5)}

OUTSIDE_POOL = -1

#: Bytes per pair that may be held out: its items, value and weight, as drawn and as assigned to folds.
_PAIR_BYTES = 40


class Pairs(NamedTuple):
    """Unordered pairs of different items (rows < columns) that a fold may hold out, and their weight in a score.

    The first `n_stored` were observed; the rest are sampled from the zeros that a sparse matrix does not store, and
    stand for all of those.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    n_stored: int


def plain(similarity: Similarity) -> Arrays:
    """The arrays of a Similarity; implicit ones become a matrix, since a fold of S = F F^T has no factors."""
    if similarity.factors is not None:
        F = similarity.factors
        _memory.require(
            len(F) ** 2 * F.dtype.itemsize,
            f"A matrix of {len(F)} x {len(F)} similarities (cross-validation leaves pairs out, which factors cannot)",
            "a random subset of the items gives the number of dimensions of the others too",
        )
        with np.errstate(over="ignore"):
            products = F @ F.T
        solvers.require_scale(float(products.max()), F.dtype, "factors")
        return Arrays(products)
    arrays = arrays_of(similarity)
    solvers.require_scale(float(np.fmax.reduce(arrays.values, axis=None, initial=0.0)), arrays.values.dtype)
    return arrays


def require_memory(matrix: Arrays, density: float, estimator: SRF, n_workers: int) -> None:
    """Refuse fits that exceed the memory: each needs the pairs, its training values, and workspace."""
    item = matrix.values.dtype.itemsize
    if matrix.starts is None:
        n_pairs = density * matrix.n_items * (matrix.n_items - 1) / 2
        squares = (3 if estimator.solver == "admm" else 2) + (0 if matrix.weights is None else 2)
        needed = _PAIR_BYTES * n_pairs + squares * item * matrix.n_items**2
    else:
        n_listed = len(matrix.values) * (2 if matrix.absent_weight else 1)
        needed = _PAIR_BYTES * n_listed / 2 + n_listed * (12 + 6 * item)
    _memory.require_for_workers(
        int(needed),
        n_workers,
        f"A fit of {matrix.n_items} items with pairs left out",
        "pass float32 values, a sparse matrix with absent='missing' if few pairs are known, or fewer items",
    )


def zero_filled(matrix: Arrays) -> np.ndarray | sparse.csr_array:
    """The observed similarities as a float64 matrix, with zeros for missing pairs."""
    known = np.isfinite(matrix.values)
    if matrix.weights is not None:
        known &= matrix.weights > 0
    values = np.where(known, matrix.values, 0.0).astype(np.float64)
    if matrix.starts is None:
        return values
    return sparse.csr_array((values, matrix.indices, matrix.starts), shape=(matrix.n_items, matrix.n_items))


def observed_pairs(matrix: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns, values and weights of the stored pairs (rows < columns) that were observed, row by row."""
    rows, columns, values, weights = _upper_entries(matrix)
    known = np.isfinite(values) & (weights > 0)
    return rows[known], columns[known], values[known], weights[known]


def draw_pairs(matrix: Arrays, rng: np.random.Generator) -> Pairs:
    """The observed pairs and, if unstored zeros have a weight, as many of those."""
    stored = observed_pairs(matrix)
    n, n_stored = matrix.n_items, len(stored[0])
    if not matrix.absent_weight:
        return Pairs(*stored, n_stored)
    rows, columns, *_ = _upper_entries(matrix)
    taken = rows.astype(np.int64) * n + columns
    n_absent = n * (n - 1) // 2 - len(taken)
    keys = sample_absent(n, taken, min(n_stored, n_absent), rng)
    each = matrix.absent_weight * n_absent / max(len(keys), 1)
    drawn = (keys // n, keys % n, np.zeros(len(keys)), np.full(len(keys), each))
    rows, columns, values, weights = map(np.concatenate, zip(stored, drawn, strict=True))
    return Pairs(rows, columns, values, weights, n_stored)


def pool_sampling(sampling: float | None, n_folds: int) -> float:
    """p_cv = min(0.95, p* k / (k - 1)): below the cap, the training share is p* for any k.

    Without `sampling`, the pool has all pairs.
    """
    return 1.0 if sampling is None else min(MOST_SAMPLING, sampling * n_folds / (n_folds - 1))


def most_training(n_folds: int) -> float:
    """The largest share of the observed pairs that a fit can be trained on."""
    return MOST_SAMPLING * (n_folds - 1) / n_folds


def assign_folds(n_pairs: int, sampling: float | None, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """The fold of every pair, or OUTSIDE_POOL; fold sizes differ by at most one pair."""
    pool = np.flatnonzero(rng.random(n_pairs) < pool_sampling(sampling, n_folds))
    folds = np.full(n_pairs, OUTSIDE_POOL, dtype=np.int32)
    folds[pool] = rng.permutation(np.arange(len(pool), dtype=np.int32) % n_folds)
    return folds


def training_problem(matrix: Arrays, pairs: Pairs, trains: np.ndarray) -> solvers.Problem:
    """The problem of a fold: the training pairs and the diagonal; the others are missing."""
    if matrix.starts is not None:
        return _sparse_training(matrix, pairs, trains)
    seen = np.eye(matrix.n_items, dtype=bool)
    seen[pairs.rows, pairs.columns] = trains
    seen |= seen.T
    values = seen.astype(matrix.values.dtype)
    with np.errstate(invalid="ignore"):
        values /= values  # 0 / 0 is NaN; several times faster than np.where
    values *= matrix.values
    return solvers.as_problem(values, matrix.weights)


def _sparse_training(matrix: Arrays, pairs: Pairs, trains: np.ndarray) -> solvers.Problem:
    """`training_problem` for lists: pairs left out are listed without a value if they would count as zeros."""
    rows, columns, values, weights = _upper_entries(matrix)
    n, n_stored = matrix.n_items, pairs.n_stored
    listed = np.flatnonzero(np.isfinite(values) & (weights > 0))[trains[:n_stored]]
    upper = [rows[listed], columns[listed], values[listed], weights[listed]]
    if matrix.absent_weight:
        silent = np.ones(len(rows), dtype=bool)
        silent[listed] = False
        held = n_stored + np.flatnonzero(~trains[n_stored:])
        silent_rows = np.concatenate([rows[silent], pairs.rows[held]])
        silent_columns = np.concatenate([columns[silent], pairs.columns[held]])
        missing = np.full(len(silent_rows), np.nan)
        parts = zip(upper, [silent_rows, silent_columns, missing, np.zeros(len(missing))], strict=True)
        upper = [np.concatenate(part) for part in parts]
    own, _, own_values, own_weights = _stored_entries(matrix, np.equal)
    i, j, v, w = upper
    at = (np.concatenate([i, j, own]), np.concatenate([j, i, own]))
    both = (np.concatenate([v, v, own_values]), np.concatenate([w, w, own_weights]))
    as_csr = [sparse.csr_array((data.astype(matrix.values.dtype), at), shape=(n, n)) for data in both]
    return solvers.as_problem(as_csr[0], as_csr[1], matrix.absent_weight)


def _upper_entries(matrix: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns, values and weights of the upper triangle: all known entries if dense, else all stored ones."""
    if matrix.starts is None:
        known = ~np.isnan(matrix.values)
        if matrix.weights is not None:
            known &= matrix.weights > 0
        rows, columns = np.nonzero(np.triu(known, 1))
        values = matrix.values[rows, columns].astype(np.float64)
        weights = np.ones(len(rows)) if matrix.weights is None else matrix.weights[rows, columns].astype(np.float64)
        return rows, columns, values, weights
    return _stored_entries(matrix, np.less)


def _stored_entries(
    matrix: Arrays, chosen: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns, values and weights of the stored entries that are `chosen` by row and column."""
    assert matrix.starts is not None
    assert matrix.indices is not None
    rows = np.repeat(np.arange(matrix.n_items), np.diff(matrix.starts))
    these = chosen(rows, matrix.indices)
    values = matrix.values[these].astype(np.float64)
    weights = np.ones(len(values)) if matrix.weights is None else matrix.weights[these].astype(np.float64)
    return rows[these], matrix.indices[these], values, weights


def sample_absent(n_items: int, taken: np.ndarray, n_sampled: int, rng: np.random.Generator) -> np.ndarray:
    """Keys i n + j (i < j) of `n_sampled` distinct pairs that are not `taken` (sorted), drawn uniformly."""
    n_pairs = n_items * (n_items - 1) // 2
    if n_sampled > (n_pairs - len(taken)) // 2:
        # If most pairs are needed, list them all: at most twice as many as needed.
        rows, columns = np.triu_indices(n_items, 1)
        return np.sort(rng.permutation(np.setdiff1d(rows * n_items + columns, taken))[:n_sampled])
    found = np.empty(0, dtype=np.int64)
    while len(found) < n_sampled:
        i, j = rng.integers(n_items, size=(2, 2 * (n_sampled - len(found)) + 16))
        keys = (np.minimum(i, j) * n_items + np.maximum(i, j))[i != j]
        place = np.searchsorted(taken, keys).clip(max=max(len(taken) - 1, 0))
        keys = keys[taken[place] != keys] if len(taken) else keys
        drawn = np.concatenate([found, keys])
        # Keep the order of drawing, so that dropping surplus pairs is not biased towards small keys.
        found = drawn[np.sort(np.unique(drawn, return_index=True)[1])][:n_sampled]
    return np.sort(found)
