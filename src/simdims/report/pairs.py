"""Observed and predicted similarities on the page: of each dimension's top items, and of many pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims.metrics._pairs import PairValues, is_sparse, known_values, pair_products, stored_keys
from simdims.similarity import Similarity

#: All pairs are used up to this many, and samples of about this size beyond.
ALL_PAIRS_UP_TO, N_SAMPLED = 1_000_000, 300_000

#: Cells per side of the picture of observed against predicted similarities.
N_CELLS = 44

#: The axes start at 0 unless more than this share of them would be empty.
_WORTH_CUTTING = 0.25


def blocks(similarity: Similarity, tops: list[NDArray[np.intp]], n_top: int) -> NDArray[np.float64]:
    """Observed similarities between the top items of each dimension, padded with NaN."""
    look_up = _known_with_diagonal(similarity)
    found = np.full((len(tops), n_top, n_top), np.nan)
    for k, top in enumerate(tops):
        first, second = (side.ravel() for side in np.meshgrid(top, top, indexing="ij"))
        found[k, : len(top), : len(top)] = look_up(first, second).reshape(len(top), len(top))
    return found


def all_pairs(similarity: Similarity) -> NDArray[np.float64]:
    """Observed off-diagonal similarities in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    return known_values(similarity)(*np.triu_indices(similarity.n_items, 1))


def observed_against_predicted(similarity: Similarity, W: NDArray) -> dict[str, Any] | None:
    """Pairs per cell of observed (rows) x predicted similarity (columns); None if nothing is observed."""
    pairs = _pairs(similarity)
    observed = known_values(similarity)(pairs.first, pairs.second)
    predicted = pair_products(W, pairs.first, pairs.second)
    known = ~np.isnan(observed)
    if not known.any():
        return None
    observed, predicted, count = observed[known], predicted[known], pairs.stands_for[known]
    largest = float(max(observed.max(), predicted.max())) or 1.0
    smallest = float(min(observed.min(), predicted.min()))
    if smallest < _WORTH_CUTTING * largest:
        smallest = 0.0
    edges = np.linspace(smallest, largest, N_CELLS + 1)
    cells, _, _ = np.histogram2d(observed, predicted, bins=[edges, edges], weights=count)
    rows, columns = np.nonzero(cells)
    return {
        "smallest": smallest,
        "largest": largest,
        "n_cells": N_CELLS,
        "columns": columns.tolist(),
        "rows": rows.tolist(),
        "counts": np.rint(np.maximum(cells[rows, columns], 1)).astype(int).tolist(),
        "n_pairs": len(observed),
        "sampled": not pairs.complete,
        "correlation": _correlation(observed, predicted, count),
    }


class _Pairs(NamedTuple):
    """Off-diagonal pairs, and the number of pairs that each of them represents."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    stands_for: NDArray[np.float64]
    complete: bool


def _pairs(similarity: Similarity) -> _Pairs:
    n = similarity.n_items
    n_all = n * (n - 1) // 2
    if n_all <= ALL_PAIRS_UP_TO:
        return _Pairs(*np.triu_indices(n, 1), np.ones(n_all), True)
    rng = np.random.default_rng(0)
    if is_sparse(similarity):
        return _sparse_pairs(similarity, rng, n_all)
    n_drawn = int(min(N_SAMPLED / max(similarity.density, 0.1), n_all))
    return _Pairs(*_draw(n, n_drawn, rng), np.full(n_drawn, n_all / n_drawn), False)


def _sparse_pairs(similarity: Similarity, rng: np.random.Generator, n_all: int) -> _Pairs:
    """Stored pairs and, if absent pairs are zeros, some of those, sampled separately."""
    n, keys = similarity.n_items, stored_keys(similarity.values)
    listed = keys[keys // n < keys % n]
    chosen = listed if len(listed) <= N_SAMPLED else rng.choice(listed, N_SAMPLED, replace=False)
    first, second = np.divmod(chosen, n)
    stands_for = np.full(len(chosen), len(listed) / max(len(chosen), 1))
    n_absent = n_all - len(listed)
    if not similarity.absent_weight or n_absent == 0:
        return _Pairs(first, second, stands_for, len(chosen) == len(listed))
    i, j = _draw(n, N_SAMPLED, rng)
    absent = ~np.isin(i * n + j, listed)
    i, j = i[absent], j[absent]
    stands_for = np.concatenate([stands_for, np.full(len(i), n_absent / max(len(i), 1))])
    return _Pairs(np.concatenate([first, i]), np.concatenate([second, j]), stands_for, False)


def _draw(n_items: int, n_pairs: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first = rng.integers(0, n_items, n_pairs)
    second = (first + rng.integers(1, n_items, n_pairs)) % n_items
    return np.minimum(first, second), np.maximum(first, second)


def _known_with_diagonal(similarity: Similarity) -> PairValues:
    """Like `known_values`, but a diagonal entry that a sparse matrix does not store is missing, not zero."""
    look_up = known_values(similarity)
    if not is_sparse(similarity):
        return look_up
    first, second = np.divmod(stored_keys(similarity.values), similarity.n_items)
    stored = np.isin(np.arange(similarity.n_items), first[first == second])
    return lambda first, second: np.where((first == second) & ~stored[first], np.nan, look_up(first, second))


def _correlation(x: NDArray, y: NDArray, weight: NDArray) -> float | None:
    dx, dy = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
    spread = np.sqrt(np.sum(weight * dx**2) * np.sum(weight * dy**2))
    return float(np.sum(weight * dx * dy) / spread) if spread > 0 else None
