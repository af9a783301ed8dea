"""The two triangles of a symmetric matrix, dense or sparse: set side by side, compared, made one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from simdims._memory import require

Matrix: TypeAlias = Any  # a float ndarray or a canonical csr_array; scipy ships no types to say so

# A tile and its mirror image fit into a core's cache together; rows and columns of the whole do not.
TILE = 256
ROUNDING = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-8}
COPY_WAYS_OUT = (
    "pass a float32 or float64 array whose two triangles are equal (if it is read-only it is not copied), "
    "or a scipy sparse matrix if most pairs are missing or zero"
)


class Facing(NamedTuple):
    """Entries (i, j) of a matrix beside their mirror images (j, i); rows and columns broadcast to them."""

    rows: np.ndarray
    columns: np.ndarray
    here: np.ndarray
    mirrored: np.ndarray


def equal_triangles(
    values: Matrix,
    weights: Matrix | None,
    labels: Sequence[str] | None,
    *,
    symmetrize: str | None = None,
    unstored: float = np.nan,
) -> tuple[Matrix, Matrix | None]:
    """Return values and weights with exactly equal triangles: the very ones given where they have them.

    A pair measured in one triangle only takes the value and the weight of that side. Two sides that differ
    beyond rounding are an error, or, for values, become what `symmetrize` says; `unstored` is what the side
    that a sparse matrix does not store counts as then.
    """
    if weights is not None:
        _refuse_other_pairs(values, weights, labels)
        weights = _equal_weights(values, weights, labels)
    if is_symmetric(values):
        return values, weights
    pairs = facing(values, unstored)
    if symmetrize is None:
        _refuse_unequal(
            "values",
            pairs,
            _rounding(values),
            labels,
            'pass symmetrize="mean" or "max" to as_similarity, or set the side that was not measured to NaN',
        )
    return _assembled(values, pairs, (_merged(tile, symmetrize) for tile in pairs)), weights


def is_symmetric(matrix: Matrix) -> bool:
    """Say whether both triangles hold the same entries, to the last bit."""
    if sparse.issparse(matrix):
        transposed = matrix.T.tocsr()
        return _same_pattern(matrix, transposed) and np.array_equal(matrix.data, transposed.data, equal_nan=True)
    return all(np.array_equal(tile.here, tile.mirrored, equal_nan=True) for tile in facing(matrix))


def people_first(stack: np.ndarray) -> np.ndarray:
    """Return a stack of square matrices with people on the first axis, which MATLAB's n x n x people have last.

    n matrices of n items are told by their symmetry; a stack that is symmetric either way has one mean.
    """
    first, second, third = stack.shape
    turned = np.moveaxis(stack, -1, 0)
    if first != second or (second == third and (_are_symmetric(stack) or not _are_symmetric(turned))):
        return stack
    return turned


def _are_symmetric(stack: np.ndarray) -> bool:
    if stack.dtype.kind not in "biuf":
        return False
    return bool(np.allclose(stack, stack.swapaxes(1, 2), equal_nan=True))


def n_items_of(n_pairs: int) -> int | None:
    """Return the number of items with this number of pairs, or None if there is none."""
    n_items = round((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    return n_items if n_items * (n_items - 1) // 2 == n_pairs else None


def facing(matrix: Matrix, unstored: float = np.nan) -> list[Facing]:
    """List the entries (i, j), i <= j, beside the entries (j, i).

    A dense matrix gives views of its tiles, of which those on the diagonal hold i > j as well; a sparse one
    gives its stored pairs, all at once.
    """
    if sparse.issparse(matrix):
        return [_facing_entries(matrix, unstored)]
    index = np.arange(matrix.shape[0])
    return [
        Facing(index[rows, None], index[None, columns], matrix[rows, columns], matrix[columns, rows].T)
        for rows, columns in _tiles(matrix.shape[0])
    ]


def name_of(item: int, labels: Sequence[str] | None) -> str:
    """Return an item as sentences name it: by its label, or by its position."""
    return repr(labels[item]) if labels is not None else str(int(item))


def _tiles(n_items: int) -> Iterator[tuple[slice, slice]]:
    starts = range(0, n_items, TILE)
    for first in starts:
        for second in starts:
            if second >= first:
                yield slice(first, first + TILE), slice(second, second + TILE)


def _facing_entries(matrix: sparse.csr_array, unstored: float) -> Facing:
    stored = matrix.tocoo()
    keys, pair = np.unique(_pair_keys(matrix), return_inverse=True)
    here = np.full(keys.size, np.nan, dtype=matrix.dtype)
    mirrored = here.copy()
    upper, lower = stored.row <= stored.col, stored.row >= stored.col
    here[pair[upper]] = stored.data[upper]
    mirrored[pair[lower]] = stored.data[lower]
    if not np.isnan(unstored):
        # A pair whose only stored side is NaN was left out on purpose and stays so.
        one_sided = (np.bincount(pair) == 1) & ~(np.isnan(here) & np.isnan(mirrored))
        here[one_sided & np.isnan(here)] = unstored
        mirrored[one_sided & np.isnan(mirrored)] = unstored
    return Facing(keys // matrix.shape[0], keys % matrix.shape[0], here, mirrored)


def _pair_keys(matrix: sparse.csr_array) -> np.ndarray:
    """One integer for every stored entry, the same for (i, j) and (j, i): i n + j with i <= j."""
    stored = matrix.tocoo()
    first = np.minimum(stored.row, stored.col).astype(np.int64)
    return first * matrix.shape[0] + np.maximum(stored.row, stored.col)


def _same_pattern(one: sparse.csr_array, other: sparse.csr_array) -> bool:
    return np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices)


def _refuse_other_pairs(values: Matrix, weights: Matrix, labels: Sequence[str] | None) -> None:
    if not sparse.issparse(values) or _same_pattern(values, weights):
        return
    in_one_only = np.setxor1d(_pair_keys(values), _pair_keys(weights))
    if in_one_only.size:
        first, second = divmod(int(in_one_only[0]), values.shape[0])
        raise ValueError(
            "weights must store exactly the pairs that values stores (an explicit 0 leaves a pair out), got "
            f"{in_one_only.size} stored in only one of the two, the first of them "
            f"({name_of(first, labels)}, {name_of(second, labels)})."
        )


def _equal_weights(values: Matrix, weights: Matrix, labels: Sequence[str] | None) -> Matrix:
    if is_symmetric(weights):
        return weights
    value_pairs, weight_pairs = facing(values), facing(weights)

    def measured() -> Iterator[Facing]:
        return map(_weights_of_measured_sides, value_pairs, weight_pairs)

    _refuse_unequal("weights", measured(), _rounding(weights), labels, "give both sides of a pair the same weight")
    return _assembled(weights, weight_pairs, map(_merged, measured()))


def _weights_of_measured_sides(values: Facing, weights: Facing) -> Facing:
    """Let the weight of a side with a value hold for one without; NaN is a weight that is not stored."""
    only_here = ~np.isnan(values.here) & np.isnan(values.mirrored) & ~np.isnan(weights.here)
    only_mirrored = np.isnan(values.here) & ~np.isnan(values.mirrored) & ~np.isnan(weights.mirrored)
    return weights._replace(
        here=np.where(only_mirrored, weights.mirrored, weights.here),
        mirrored=np.where(only_here, weights.here, weights.mirrored),
    )


def _rounding(matrix: Matrix) -> float:
    """The largest difference between two triangles that counts as rounding."""
    data = matrix.data if sparse.issparse(matrix) else matrix
    largest = float(np.fmax.reduce(data, axis=None, initial=0.0))
    return ROUNDING[matrix.dtype] * largest


def _refuse_unequal(
    name: str, pairs: Iterable[Facing], tolerance: float, labels: Sequence[str] | None, way_out: str
) -> None:
    n_unequal, widest, sides = 0, tolerance, None
    for tile in pairs:
        gap = np.abs(tile.here - tile.mirrored)
        unequal = gap > tolerance  # never where a side is NaN: a pair may be measured on one side only
        if unequal.any():
            n_unequal += int(np.count_nonzero(unequal & (tile.rows < tile.columns)))
            place = np.unravel_index(np.nanargmax(gap), gap.shape)
            if gap[place] > widest:
                widest = gap[place]
                rows, columns = np.broadcast_arrays(tile.rows, tile.columns)
                sides = rows[place], columns[place], tile.here[place], tile.mirrored[place]
    if sides is not None:
        first, second = name_of(sides[0], labels), name_of(sides[1], labels)
        raise ValueError(
            f"{name} must be symmetric, got {n_unequal} {'pair' if n_unequal == 1 else 'pairs'} whose two "
            f"sides differ, the most {sides[2]:.6g} at ({first}, {second}) against {sides[3]:.6g} at "
            f"({second}, {first}): {way_out}."
        )


def _merged(tile: Facing, how: str | None = None) -> np.ndarray:
    """The mean, or for how="max" the larger, of two sides; the one that is not NaN where only one is."""
    larger = np.fmax(tile.here, tile.mirrored)
    if how == "max":
        return larger
    mean = 0.5 * (tile.here + tile.mirrored)
    return np.where(np.isnan(mean), larger, mean)


def _assembled(matrix: Matrix, pairs: list[Facing], merged: Iterable[np.ndarray]) -> Matrix:
    """Build the symmetric matrix whose pairs have the merged entries, stored as `matrix` is."""
    if sparse.issparse(matrix):
        return _mirrored_csr(matrix.shape, pairs[0], next(iter(merged)))
    require(matrix.nbytes, f"Making the two triangles of {matrix.shape[0]} items equal", COPY_WAYS_OUT)
    whole = np.empty(matrix.shape, dtype=matrix.dtype)
    for (rows, columns), tile in zip(_tiles(matrix.shape[0]), merged, strict=True):
        whole[rows, columns] = tile
        whole[columns, rows] = tile.T
    return whole


def _mirrored_csr(shape: tuple[int, int], pairs: Facing, merged: np.ndarray) -> sparse.csr_array:
    off_diagonal = pairs.rows != pairs.columns
    rows = np.concatenate([pairs.rows, pairs.columns[off_diagonal]])
    columns = np.concatenate([pairs.columns, pairs.rows[off_diagonal]])
    # Through lists of entries: a sum of two sparse matrices would drop the zeros they store.
    entries = np.concatenate([merged, merged[off_diagonal]])
    return sparse.coo_array((entries, (rows, columns)), shape=shape).tocsr()
