"""Access to the entries of dense and sparse matrices: in blocks, and paired with their mirror images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

Matrix: TypeAlias = Any  # a float ndarray or a canonical csr_array; scipy has no type stubs

# Rows of a dense matrix checked at a time, so that no check allocates a second n x n array.
BLOCK_ROWS = 256
# A tile and its mirror image fit into a core's cache together; rows and columns of the whole matrix do not.
TILE = 256
# Relative tolerance for rounding errors.
ROUNDING = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-8}
COPY_REMEDY = (
    "pass a float32 or float64 array whose two triangles are equal (if it is read-only it is not copied), "
    "or a scipy sparse matrix if most pairs are missing or zero"
)


def blocks(matrix: Matrix) -> list[np.ndarray]:
    """All entries: the stored ones of a sparse matrix, blocks of rows of a dense one."""
    if sparse.issparse(matrix):
        return [matrix.data]
    return [matrix[start : start + BLOCK_ROWS] for start in range(0, matrix.shape[0], BLOCK_ROWS)]


def first_entry(matrix: Matrix, is_bad: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int, float] | None:
    """The first bad entry, as row, column and value."""
    for number, block in enumerate(blocks(matrix)):
        bad = is_bad(block)
        if not bad.any():
            continue
        place = np.unravel_index(np.argmax(bad), block.shape)
        if sparse.issparse(matrix):
            row = int(np.searchsorted(matrix.indptr, place[0], side="right")) - 1
            return row, int(matrix.indices[place[0]]), float(block[place])
        return number * BLOCK_ROWS + int(place[0]), int(place[1]), float(block[place])
    return None


def smallest_entry(matrix: Matrix) -> float:
    """The smallest entry, or 0 if none is negative."""
    return min(float(np.fmin.reduce(block, axis=None, initial=0.0)) for block in blocks(matrix))


def largest_entry(matrix: Matrix) -> float:
    """The largest entry, or 0 if none is positive."""
    return max(float(np.fmax.reduce(block, axis=None, initial=0.0)) for block in blocks(matrix))


def value_range(values: Matrix, *, diagonal: bool = False) -> tuple[float, float] | None:
    """The smallest and the largest observed value, or None if there are none; `diagonal` includes the diagonal."""
    parts: Iterable[np.ndarray] = blocks(values)
    if sparse.issparse(values):
        stored = values.tocoo()
        parts = [stored.data if diagonal else stored.data[stored.row != stored.col]]
    elif not diagonal:
        parts = (
            np.where(np.eye(len(block), len(values), k=number * BLOCK_ROWS, dtype=bool), np.nan, block)
            for number, block in enumerate(blocks(values))
        )
    smallest, largest = np.inf, -np.inf
    for part in parts:
        smallest = min(smallest, float(np.fmin.reduce(part, axis=None, initial=np.inf)))
        largest = max(largest, float(np.fmax.reduce(part, axis=None, initial=-np.inf)))
    return (smallest, largest) if smallest <= largest else None


def map_entries(matrix: Matrix, change: Callable[[np.ndarray], np.ndarray]) -> Matrix:
    """Apply a function to all entries of a matrix; the storage stays the same."""
    if not sparse.issparse(matrix):
        return change(matrix)
    return sparse.csr_array((change(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def is_observed(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Which entries have a value and a positive weight."""
    known = ~np.isnan(values)
    return known if weights is None else known & (weights > 0)


class Mirrored(NamedTuple):
    """Entries (i, j) of a matrix and their mirror images (j, i), with broadcastable rows and columns."""

    rows: np.ndarray
    columns: np.ndarray
    here: np.ndarray
    there: np.ndarray


def mirrored_entries(matrix: Matrix, unstored: float = np.nan) -> list[Mirrored]:
    """The entries (i, j), i <= j, with (j, i): views of tiles (on the diagonal with i > j), or all stored pairs."""
    if sparse.issparse(matrix):
        return [_stored_pairs(matrix, unstored)]
    index = np.arange(matrix.shape[0])
    return [
        Mirrored(index[rows, None], index[None, columns], matrix[rows, columns], matrix[columns, rows].T)
        for rows, columns in tiles(matrix.shape[0])
    ]


def count_pairs(
    matrix: Matrix, is_counted: Callable[[np.ndarray, np.ndarray], np.ndarray], *, diagonal: bool = False
) -> int:
    """The number of pairs, with or without the diagonal, whose two sides are counted."""
    return sum(
        int(np.count_nonzero(is_counted(tile.here, tile.there) & (tile.rows < tile.columns + diagonal)))
        for tile in mirrored_entries(matrix)
    )


def tiles(n_items: int) -> Iterator[tuple[slice, slice]]:
    """The rows and columns of the tiles on and above the diagonal."""
    for first in range(0, n_items, TILE):
        for second in range(first, n_items, TILE):
            yield slice(first, first + TILE), slice(second, second + TILE)


def pair_keys(matrix: sparse.csr_array) -> np.ndarray:
    """One integer per stored entry, the same for (i, j) and (j, i): i n + j with i <= j."""
    stored = matrix.tocoo()
    first = np.minimum(stored.row, stored.col).astype(np.int64)
    return first * matrix.shape[0] + np.maximum(stored.row, stored.col)


def _stored_pairs(matrix: sparse.csr_array, unstored: float) -> Mirrored:
    stored = matrix.tocoo()
    keys, pair = np.unique(pair_keys(matrix), return_inverse=True)
    here = np.full(keys.size, np.nan, dtype=matrix.dtype)
    there = here.copy()
    upper, lower = stored.row <= stored.col, stored.row >= stored.col
    here[pair[upper]] = stored.data[upper]
    there[pair[lower]] = stored.data[lower]
    if not np.isnan(unstored):
        # A pair whose only stored side is NaN was deliberately excluded and stays so.
        one_sided = (np.bincount(pair) == 1) & ~(np.isnan(here) & np.isnan(there))
        here[one_sided & np.isnan(here)] = unstored
        there[one_sided & np.isnan(there)] = unstored
    return Mirrored(keys // matrix.shape[0], keys % matrix.shape[0], here, there)
