"""Observed and predicted similarities that the page shows: of each dimension's top items, and of many pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims.metrics._pairs import PairValues, known_values, pair_products, stored_keys
from simdims.similarity import Similarity

#: All pairs are looked at up to this many, and samples of that size beyond.
ALL_PAIRS_UP_TO, N_SAMPLED = 1_000_000, 300_000

#: Cells of the picture of observed against predicted, on each side.
N_CELLS = 44

#: The picture starts at 0 unless more than this share of it would be empty.
_WORTH_CUTTING = 0.25


def top_items(W: NDArray, n_top: int) -> list[NDArray[np.intp]]:
    """For each dimension the items that have most of it, the largest first; none that has nothing of it."""
    tops = []
    for column in W.T:
        order = np.argsort(-column, kind="stable")[:n_top]
        tops.append(order[column[order] > 0])
    return tops


def blocks(similarity: Similarity, tops: list[NDArray[np.intp]], n_top: int) -> NDArray[np.float64]:
    """Observed similarities between the top items of each dimension, filled up with NaN."""
    look_up = _known_with_diagonal(similarity)
    found = np.full((len(tops), n_top, n_top), np.nan)
    for k, top in enumerate(tops):
        first, second = (side.ravel() for side in np.meshgrid(top, top, indexing="ij"))
        found[k, : len(top), : len(top)] = look_up(first, second).reshape(len(top), len(top))
    return found


def all_pairs(similarity: Similarity) -> NDArray[np.float64]:
    """Observed similarities of all pairs of two different items: (0, 1), (0, 2), ..., (1, 2), ..."""
    first, second = np.triu_indices(similarity.n_items, 1)
    return known_values(similarity)(first, second)


def observed_against_predicted(similarity: Similarity, W: NDArray) -> dict[str, Any] | None:
    """How many pairs lie in each cell of observed x predicted similarity; None where nothing is observed."""
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
    columns, rows = np.nonzero(cells)
    return {
        "smallest": smallest,
        "largest": largest,
        "n_cells": N_CELLS,
        "columns": columns.tolist(),
        "rows": rows.tolist(),
        "counts": np.rint(np.maximum(cells[columns, rows], 1)).astype(int).tolist(),
        "n_pairs": len(observed),
        "sampled": not pairs.complete,
        "correlation": _correlation(observed, predicted, count),
    }


@dataclass(frozen=True)
class _Pairs:
    """Pairs of two different items, and how many of all pairs each one stands for."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    stands_for: NDArray[np.float64]
    complete: bool


def _pairs(similarity: Similarity) -> _Pairs:
    n = similarity.n_items
    n_all = n * (n - 1) // 2
    if n_all <= ALL_PAIRS_UP_TO:
        first, second = np.triu_indices(n, 1)
        return _Pairs(first, second, np.ones(n_all), True)
    rng = np.random.default_rng(0)
    if similarity.factors is None and sparse.issparse(similarity.values):
        return _sparse_pairs(similarity, rng, n_all)
    n_drawn = int(min(N_SAMPLED / max(similarity.density, 0.1), n_all))
    first, second = _draw(n, n_drawn, rng)
    return _Pairs(first, second, np.full(n_drawn, n_all / n_drawn), False)


def _sparse_pairs(similarity: Similarity, rng: np.random.Generator, n_all: int) -> _Pairs:
    """The stored pairs and, where absent ones are zeros, some of those, each sampled on its own."""
    n, keys = similarity.n_items, stored_keys(similarity.values)
    listed = keys[keys // n < keys % n]
    chosen = listed if len(listed) <= N_SAMPLED else rng.choice(listed, N_SAMPLED, replace=False)
    first, second = chosen // n, chosen % n
    stands_for = np.full(len(chosen), len(listed) / max(len(chosen), 1))
    n_absent = n_all - len(listed)
    if not similarity.absent_weight or n_absent == 0:
        return _Pairs(first, second, stands_for, len(chosen) == len(listed))
    i, j = _draw(n, N_SAMPLED, rng)
    absent = ~np.isin(i * n + j, listed)
    i, j = i[absent], j[absent]
    return _Pairs(
        np.concatenate([first, i]),
        np.concatenate([second, j]),
        np.concatenate([stands_for, np.full(len(i), n_absent / max(len(i), 1))]),
        False,
    )


def _draw(n_items: int, n_pairs: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first = rng.integers(0, n_items, n_pairs)
    second = (first + rng.integers(1, n_items, n_pairs)) % n_items
    return np.minimum(first, second), np.maximum(first, second)


def _known_with_diagonal(similarity: Similarity) -> PairValues:
    """As `known_values`; but a diagonal that a sparse matrix does not store is unobserved, not a zero."""
    look_up = known_values(similarity)
    if similarity.factors is not None or not sparse.issparse(similarity.values):
        return look_up
    keys, n = stored_keys(similarity.values), similarity.n_items
    stored = np.zeros(n, dtype=bool)
    stored[keys[keys // n == keys % n] // n] = True
    return lambda first, second: np.where((first == second) & ~stored[first], np.nan, look_up(first, second))


def _correlation(x: NDArray, y: NDArray, weight: NDArray) -> float | None:
    dx, dy = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
    spread = np.sqrt(np.sum(weight * dx**2) * np.sum(weight * dy**2))
    return float(np.sum(weight * dx * dy) / spread) if spread > 0 else None
