"""Listed pairs of items: read from tables, looked up in similarities or predicted, without a matrix of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parameters import ParameterError, ParameterTypeError, is_whole
from simdims.metrics._embedding import Names
from simdims.similarity import Similarity, is_frame

#: Numbers gathered at a time when looking up rows of W pair by pair.
BLOCK = 2**18
#: Rows of the matrix of all pairs computed at a time.
BLOCK_ROWS = 256

#: The positions of the first and of the second item of each pair.
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
PairValues = Callable[[NDArray, NDArray], NDArray[np.float64]]


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices of a few hundred rows, or of `size` rows."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def pair_products(W: NDArray, first: NDArray, second: NDArray) -> NDArray[np.float64]:
    """w_i . w_j for listed pairs."""
    products = np.empty(len(first))
    for e in row_blocks(len(first), max(BLOCK // W.shape[1], 1)):
        one, other = (W[items[e]].astype(np.float64, copy=False) for items in (first, second))
        np.einsum("ek,ek->e", one, other, out=products[e])
    return products


def is_sparse(similarity: Similarity) -> bool:
    """Whether similarities are a sparse matrix rather than dense or implicit."""
    return similarity.factors is None and sparse.issparse(similarity.values)


def stored_keys(values: sparse.csr_array) -> NDArray[np.int64]:
    """Row * n_items + column of every stored entry, ascending."""
    n_items = values.shape[0]
    rows = np.repeat(np.arange(n_items, dtype=np.int64), np.diff(values.indptr))
    return rows * n_items + values.indices


def stored_pairs(similarity: Similarity) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Stored off-diagonal pairs, the smaller index first, and their values, NaN if missing."""
    first, second = np.divmod(stored_keys(similarity.values), similarity.n_items)
    upper = first < second
    return first[upper], second[upper], _stored_values(similarity)[upper]


def ranks_of_rows(n_items: int) -> NDArray[np.int64]:
    """The rank of (i, i + 1) among the pairs (0, 1), (0, 2), ..., (1, 2), ... for each item i."""
    i = np.arange(n_items, dtype=np.int64)
    return i * (2 * n_items - i - 1) // 2


def pairs_of_ranks(ranks: NDArray[np.int64], n_items: int) -> Pairs:
    """The pairs with these ranks among (0, 1), (0, 2), ..., (1, 2), ..."""
    starts = ranks_of_rows(n_items)
    first = np.searchsorted(starts, ranks, side="right") - 1
    return first, ranks - starts[first] + first + 1


def known_values(similarity: Similarity) -> PairValues:
    """A function from listed pairs to their similarities: NaN if missing, 0 if absent pairs are zeros."""
    if similarity.factors is not None:
        factors = similarity.factors
        return lambda first, second: pair_products(factors, first, second)
    values, weights = similarity.values, similarity.weights
    if not sparse.issparse(values):
        return lambda first, second: _unless_weightless(
            values[first, second], None if weights is None else weights[first, second]
        )
    keys, n_items, entries = stored_keys(values), similarity.n_items, _stored_values(similarity)
    absent = 0.0 if similarity.absent_weight else np.nan

    def look_up(first: NDArray, second: NDArray) -> NDArray[np.float64]:
        wanted = first.astype(np.int64) * n_items + second
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, entries[place], absent)

    return look_up


def read_pairs(pairs: Any, n_items: int, names: Names, holder: str) -> NDArray[np.intp]:
    """Return listed pairs as positions, -1 for names that are not among `names`."""
    cells = _cells(pairs)
    if cells.dtype.kind in "iuf":
        if cells.dtype.kind == "f":
            refuse_pair(pairs, cells != np.floor(cells), "hold whole numbers (or text)")
        refuse_pair(pairs, (cells < 0) | (cells >= n_items), f"name items between 0 and n_items - 1 = {n_items - 1}")
        return cells.astype(np.intp)
    is_text = np.array([[isinstance(cell, str) for cell in row] for row in cells])
    refuse_pair(pairs, ~is_text, "hold text in every cell (or whole numbers in every one)")
    if names is None:
        rule = f"must hold positions where {holder} does not name its items"
        remedy = "pass {labels}, or a DataFrame or Similarity that names them"
        raise ParameterError("pairs", rule, f"the text {str(cells[0, 0])!r}", remedy)
    place = {name: position for position, name in enumerate(names)}
    return np.array([[place.get(str(cell), -1) for cell in row] for row in cells], dtype=np.intp)


def refuse_pair(pairs: Any, bad: NDArray[np.bool_], rule: str) -> None:
    """Raise for the first row that is invalid or has an invalid cell."""
    if bad.any():
        rows = np.unique(np.nonzero(bad)[0])
        more = f" ({len(rows)} such rows)" if len(rows) > 1 else ""
        raise ParameterError("pairs", f"must {rule}", f"{_cells(pairs)[rows[0]].tolist()} in row {rows[0]}{more}")


def _cells(pairs: Any) -> NDArray:
    try:
        cells = pairs.to_numpy() if is_frame(pairs) else np.asarray(pairs)
    except ValueError:
        raise ParameterError("pairs", "must have 2 items in every row", "rows of other lengths") from None
    if cells.dtype.kind == "U" and not isinstance(pairs, np.ndarray):
        cells = np.asarray(pairs, dtype=object)  # NumPy converts numbers and missing values beside text to text
    if cells.ndim != 2 or cells.shape[1] != 2 or not len(cells):
        raise ParameterError("pairs", "must have 2 columns and at least one row", f"shape {cells.shape}")
    if cells.dtype.kind == "O" and all(is_whole(cell) for cell in cells.flat):
        return cells.astype(np.int64)
    if cells.dtype.kind not in "iufOU":
        raise ParameterTypeError("pairs", "must hold whole numbers or text", f"dtype {cells.dtype}")
    return cells


def _stored_values(similarity: Similarity) -> NDArray[np.float64]:
    weights = similarity.weights
    return _unless_weightless(similarity.values.data, None if weights is None else weights.data)


def _unless_weightless(values: NDArray, weights: NDArray | None) -> NDArray[np.float64]:
    """Values in float64, NaN where the weight is 0."""
    known = values.astype(np.float64, copy=False)
    return known if weights is None else np.where(weights > 0, known, np.nan)
