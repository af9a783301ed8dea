"""Symmetric matrices, dense or sparse: comparing the two triangles and merging them into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy import sparse

from simdims._memory import require
from simdims._parameters import ParameterError, plural
from simdims.similarity.entries import (
    COPY_REMEDY,
    ROUNDING,
    Matrix,
    Mirrored,
    largest_entry,
    mirrored_entries,
    pair_keys,
    tiles,
)
from simdims.similarity.labels import entry_shown, name_of


def equal_triangles(
    values: Matrix,
    weights: Matrix | None,
    labels: Sequence[str] | None,
    *,
    symmetrize: str | None = None,
    unstored: float = np.nan,
    name: str = "values",
    remedy: str = "pass {symmetrize=mean} or {symmetrize=max}, or set the side that was not measured to NaN",
) -> tuple[Matrix, Matrix | None]:
    """Return values and weights with exactly equal triangles, without a copy if they already are.

    A pair measured in only one triangle takes the value and the weight of that side. Two sides that differ beyond
    rounding are an error, unless `symmetrize` says how to merge their values; `unstored` is then the value of a side
    that a sparse matrix does not store.
    """
    if weights is not None:
        _refuse_other_pairs(values, weights, labels)
        weights = _equal_weights(values, weights, labels)
    if is_symmetric(values):
        return values, weights
    pairs = mirrored_entries(values, unstored)
    if symmetrize is None:
        _refuse_unequal(name, pairs, ROUNDING[values.dtype] * largest_entry(values), labels, remedy)
    return _assembled(values, pairs, (_merged(tile, symmetrize) for tile in pairs)), weights


def is_symmetric(matrix: Matrix) -> bool:
    """Whether both triangles are bitwise equal."""
    if sparse.issparse(matrix):
        transposed = matrix.T.tocsr()
        return _same_pattern(matrix, transposed) and np.array_equal(matrix.data, transposed.data, equal_nan=True)
    return all(_are_equal(matrix[rows, columns], matrix[columns, rows].T) for rows, columns in tiles(matrix.shape[0]))


def _are_equal(here: np.ndarray, there: np.ndarray) -> bool:
    differs = here != there  # as NaN does from NaN
    return not differs.any() or bool((np.isnan(here[differs]) & np.isnan(there[differs])).all())


def people_first(stack: np.ndarray) -> np.ndarray:
    """Move people to the first axis of a stack of square matrices, if they are last, as in MATLAB's n x n x people.

    For n matrices of n items, symmetry identifies the axis; if a stack is symmetric either way, its mean is the same.
    """
    first, second, third = stack.shape
    turned = np.moveaxis(stack, -1, 0)
    if first != second or (second == third and (_are_symmetric(stack) or not _are_symmetric(turned))):
        return stack
    return turned


def _are_symmetric(stack: np.ndarray) -> bool:
    return stack.dtype.kind in "biuf" and bool(np.allclose(stack, stack.swapaxes(1, 2), equal_nan=True))


def n_items_of(n_pairs: int) -> int | None:
    """The number of items with this number of pairs, or None if there is none."""
    n_items = round((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    return n_items if n_items * (n_items - 1) // 2 == n_pairs else None


def _same_pattern(one: sparse.csr_array, other: sparse.csr_array) -> bool:
    return np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices)


def _refuse_other_pairs(values: Matrix, weights: Matrix, labels: Sequence[str] | None) -> None:
    if not sparse.issparse(values) or _same_pattern(values, weights):
        return
    in_one_only = np.setxor1d(pair_keys(values), pair_keys(weights))
    if in_one_only.size:
        first, second = divmod(int(in_one_only[0]), values.shape[0])
        rule = "must store exactly the pairs that values stores (an explicit 0 leaves a pair out)"
        pair = f"({name_of(first, labels)}, {name_of(second, labels)})"
        raise ParameterError("weights", rule, f"{in_one_only.size} stored in only one of the two, such as {pair}")


def _equal_weights(values: Matrix, weights: Matrix, labels: Sequence[str] | None) -> Matrix:
    if is_symmetric(weights):
        return weights
    value_pairs, weight_pairs = mirrored_entries(values), mirrored_entries(weights)

    def measured() -> Iterator[Mirrored]:
        return map(_weights_of_measured_sides, value_pairs, weight_pairs)

    rounding = ROUNDING[weights.dtype] * largest_entry(weights)
    _refuse_unequal("weights", measured(), rounding, labels, "give both sides of a pair the same weight")
    return _assembled(weights, weight_pairs, map(_merged, measured()))


def _weights_of_measured_sides(values: Mirrored, weights: Mirrored) -> Mirrored:
    """Copy the weight of a side with a value to one without; NaN is a weight that is not stored."""
    only_here = ~np.isnan(values.here) & np.isnan(values.there) & ~np.isnan(weights.here)
    only_there = np.isnan(values.here) & ~np.isnan(values.there) & ~np.isnan(weights.there)
    return weights._replace(
        here=np.where(only_there, weights.there, weights.here), there=np.where(only_here, weights.here, weights.there)
    )


def _refuse_unequal(
    name: str, pairs: Iterable[Mirrored], tolerance: float, labels: Sequence[str] | None, remedy: str
) -> None:
    n_unequal, widest, sides = 0, tolerance, None
    for tile in pairs:
        gap = np.abs(tile.here - tile.there)
        unequal = gap > tolerance  # never true for NaN: a pair may be measured on one side only
        if unequal.any():
            n_unequal += int(np.count_nonzero(unequal & (tile.rows < tile.columns)))
            place = np.unravel_index(np.nanargmax(gap), gap.shape)
            if gap[place] > widest:
                widest = gap[place]
                sides = tuple(np.broadcast_to(part, gap.shape)[place] for part in tile)
    if sides is not None:
        row, column, here, there = sides
        got = (
            f"{n_unequal} {plural('pair', n_unequal)} whose two sides differ, with the largest difference between "
            f"{entry_shown((row, column, here), labels)} and {entry_shown((column, row, there), labels)}"
        )
        raise ParameterError(name, "must be symmetric", got, remedy)


def _merged(tile: Mirrored, how: str | None = None) -> np.ndarray:
    """The mean of two sides or, for how="max", the larger; if one is NaN, the other."""
    larger = np.fmax(tile.here, tile.there)
    if how == "max":
        return larger
    mean = 0.5 * tile.here + 0.5 * tile.there  # the sum of two may overflow
    return np.where(np.isnan(mean), larger, mean)


def _assembled(matrix: Matrix, pairs: list[Mirrored], merged: Iterable[np.ndarray]) -> Matrix:
    """Assemble a symmetric matrix from merged entries of pairs, with the storage of `matrix`."""
    if sparse.issparse(matrix):
        return _symmetric_csr(matrix.shape, pairs[0], next(iter(merged)))
    require(matrix.nbytes, f"Making the two triangles of {matrix.shape[0]} items equal", COPY_REMEDY)
    whole = np.empty(matrix.shape, dtype=matrix.dtype)
    for (rows, columns), tile in zip(tiles(matrix.shape[0]), merged, strict=True):
        whole[rows, columns] = tile
        whole[columns, rows] = tile.T
    return whole


def _symmetric_csr(shape: tuple[int, int], pairs: Mirrored, merged: np.ndarray) -> sparse.csr_array:
    off_diagonal = pairs.rows != pairs.columns
    rows = np.concatenate([pairs.rows, pairs.columns[off_diagonal]])
    columns = np.concatenate([pairs.columns, pairs.rows[off_diagonal]])
    # Via lists of entries: adding two sparse matrices would drop stored zeros.
    entries = np.concatenate([merged, merged[off_diagonal]])
    return sparse.coo_array((entries, (rows, columns)), shape=shape).tocsr()
