"""From odd-one-out judgements of triplets to similarities."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims._checks import clean_labels
from simdims._memory import require
from simdims._ownership import frozen
from simdims._parameters import as_float, is_whole, plural
from simdims._tables import (
    check_weights_option,
    count_weights,
    is_finite_number,
    read_items,
    report,
    row_name,
)
from simdims.similarity import Similarity, is_frame

# Triplets that are counted together, unless there are more pairs than that: every chunk makes a tally of all pairs.
_CHUNK = 2**21


def from_triplets(
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
) -> Similarity:
    """Similarities from odd-one-out judgements: how often a pair was kept when it was shown.

    s_ij = (c_ij + alpha) / (m_ij + 2 alpha), where m_ij triplets showed the pair and in c_ij of them the third item was
    the odd one out. Pairs that were never shown are missing, and the diagonal is 1.

    Parameters
    ----------
    triplets : array-like or DataFrame of shape (n_triplets, 3)
        One answer a row: three different items, all of them either whole numbers (positions from 0, in any integer
        type) or text (labels).
    odd : int or column name, default=-1
        Which column holds the odd one out: its position, -3 to 2, or its name in a DataFrame.
    n_items : int, optional
        Number of items; by default that of `labels`, else the largest position plus one, or the number of labels found.
    smoothing : float, default=1.0
        alpha, 0 or more. With alpha = 1 a pair that was shown once gets 1/3 or 2/3.
    weights : {"counts"}, optional
        "counts" weighs every pair by m_ij, and each diagonal entry by the mean m_ij of the pairs that were shown, so
        that the diagonal keeps its share. Recommended where pairs have few answers (under about five).
    labels : sequence, optional
        One distinct name an item. Items given as text must be among them and take their order; by default they are
        sorted (by value if all of them are numbers).

    Returns
    -------
    Similarity
        Dense. `info` holds the numbers of triplets, of items, of pairs and of pairs shown, and the mean number of
        answers to a pair that was shown.

    References
    ----------
    SRF, Methods, "Constructing similarity matrices".

    Examples
    --------
    >>> from simdims.triplets import from_triplets
    >>> answers = [["cat", "dog", "car"], ["dog", "cat", "bus"], ["car", "bus", "cat"]]
    >>> S = from_triplets(answers)
    >>> S.labels
    ('bus', 'car', 'cat', 'dog')
    >>> S.values.round(2)
    array([[1.  , 0.67, 0.25, 0.33],
           [0.67, 1.  , 0.25, 0.33],
           [0.25, 0.25, 1.  , 0.75],
           [0.33, 0.33, 0.75, 1.  ]])
    """
    check_weights_option(weights)
    if not is_finite_number(smoothing) or smoothing < 0:
        raise ValueError(f"smoothing must be a finite number of at least 0, got {smoothing!r}.")
    if n_items is not None and not (is_whole(n_items) and n_items >= 3):
        raise ValueError(f"n_items must be a whole number of at least 3, got {n_items!r}.")
    odd_place = odd_column(triplets, odd)
    names = None
    if labels is not None:
        names = clean_labels(labels, len(labels) if n_items is None and hasattr(labels, "__len__") else n_items or 0)
    table = triplet_table(triplets)
    items, names = read_triplet_table(table, names)
    if names is not None and n_items is not None and len(names) != n_items:
        raise ValueError(f"n_items must be the number of labels found, {len(names)}, got {n_items}: pass labels=.")
    if items.dtype.kind == "f":
        items = items.astype(np.float64, copy=False)  # half floats do not reach as far as what they are compared with
        is_position = (np.abs(items) <= 2**53) & (items == np.floor(items))  # beyond, floats skip whole numbers
        refuse_cells(table, ~is_position, "hold whole numbers (or text)")
    n = len(names) if names is not None else int(n_items or int(items.max()) + 1)
    check_triplet_items(items, table, n)

    require(40 * n**2, f"Counting the pairs of {n} items", "number the items from 0 without gaps, or leave some out")
    kept, shown = _count_pairs(items, odd_place, n)
    unseen = shown == 0
    values = kept + float(smoothing)
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing was shown and nothing is smoothed
        values /= shown + 2 * float(smoothing)
    values[unseen] = np.nan
    np.fill_diagonal(values, 1.0)
    n_shown = (n**2 - int(np.count_nonzero(unseen))) // 2
    info = {
        "source": "triplets",
        "n_triplets": len(items),
        "n_items": n,
        "n_pairs": n * (n - 1) // 2,
        "n_pairs_shown": n_shown,
        "answers_per_shown_pair": 3 * len(items) / n_shown,
        "smoothing": float(smoothing),
    }
    report("from_triplets", info)
    return Similarity(frozen(values), names, frozen(count_weights(shown)) if weights else None, info=info)


def odd_column(triplets: Any, odd: Any) -> int:
    """The position, 0 to 2, of the column that holds the odd one out."""
    if is_whole(odd) and -3 <= odd <= 2:
        return int(odd) % 3
    names = list(triplets.columns) if is_frame(triplets) else []
    if names.count(odd) == 1:
        return names.index(odd)
    named = f" or the name of a column ({', '.join(map(repr, names))})" if names else ""
    raise ValueError(f"odd must be the position of a column, -3 to 2{named}, got {odd!r}.")


def triplet_table(triplets: Any) -> Any:
    """The triplets as a DataFrame or, where they are numbers in an array, as that, with 3 columns."""
    table = triplets
    if isinstance(triplets, np.ma.MaskedArray):
        table = triplets.data.astype(object)
        table[np.ma.getmaskarray(triplets)] = None
    elif not is_frame(triplets):
        try:
            table = np.asarray(triplets)
        except ValueError as error:
            uneven = (
                f"{row!r} in row {k}" for k, row in enumerate(triplets) if not hasattr(row, "__len__") or len(row) != 3
            )
            raise ValueError(f"triplets must have 3 items in every row, got {next(uneven, 'others')}.") from error
        if table.dtype.kind == "U" and not isinstance(triplets, np.ndarray):
            table = np.asarray(triplets, dtype=object)  # NumPy made text of the numbers and gaps beside text
    if table.ndim == 0:
        raise TypeError(f"triplets must be an array, a DataFrame or a list of rows, got {type(triplets).__name__}.")
    if table.size == 0:
        raise ValueError("triplets must hold at least one triplet, got none.")
    if table.ndim != 2 or table.shape[1] != 3:
        raise ValueError(f"triplets must have 3 columns, one for each item of a triplet, got shape {table.shape}.")
    if is_frame(table):
        return table.set_axis(range(3), axis=1)
    if table.dtype.kind in "iuf":
        return table
    import pandas as pd

    return pd.DataFrame(table, dtype=object)


def read_triplet_table(table: Any, names: tuple[str, ...] | None) -> tuple[NDArray, tuple[str, ...] | None]:
    """The items as numbers: as they are, or, where they are text, as positions among `names` or the names found."""
    if not is_frame(table):
        return table, names
    import pandas as pd

    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in table.dtypes):
        return table.to_numpy(), names
    try:
        codes, distinct = zip(*(pd.factorize(table[column]) for column in table), strict=True)
    except TypeError:  # a list or a dictionary in a cell
        raise TypeError("triplets must hold whole numbers or text, got cells that hold something else.") from None
    objects = [np.asarray(values, dtype=object) for values in distinct]
    refuse_cells(table, np.stack(codes, axis=1) < 0, "name an item in every cell")
    kind = pd.api.types.infer_dtype(np.concatenate(objects))
    if kind in ("integer", "floating", "mixed-integer-float"):
        # Whole numbers beyond the floats are refused as infinity is.
        floats = [np.array([as_float(value) for value in values]) for values in objects]
        columns = [values[code] for values, code in zip(floats, codes, strict=True)]
        return np.stack(columns, axis=1), names
    if kind == "string":
        return _positions(table, names)
    is_text = [np.array([isinstance(value, str) for value in values]) for values in objects]
    texts = np.stack([flags[code] for flags, code in zip(is_text, codes, strict=True)], axis=1)
    first = _cells_of(table, 0)[0]
    refuse_cells(table, texts != texts[0, 0], f"hold either text or whole numbers, and begin with {first!r}")
    raise TypeError(f"triplets must hold whole numbers or text, got {type(first).__name__}.")


def _positions(table: Any, names: tuple[str, ...] | None) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Labels as positions among `names`, or among the sorted labels where there are none."""
    columns, found = read_items(table, range(3))
    positions = np.stack(columns, axis=1)
    if names is None:
        return positions, tuple(found)
    place = {name: position for position, name in enumerate(names)}
    unknown = np.array([name not in place for name in found])
    refuse_cells(table, unknown[positions], "name items that are in labels")
    return np.array([place[name] for name in found])[positions], names


def check_triplet_items(items: NDArray, table: Any, n_items: int) -> None:
    """Refuse positions out of range and rows that name an item twice."""
    refuse_cells(table, items < 0, "name items by positions from 0 (or as text)")
    refuse_cells(table, items >= n_items, f"name items between 0 and n_items - 1 = {n_items - 1}")
    a, b, c = items.T
    repeated = (a == b) | (a == c) | (b == c)
    if repeated.any():
        row, n_rows = int(np.argmax(repeated)), int(np.count_nonzero(repeated))
        raise ValueError(
            f"triplets must name three different items in every row, got {_cells_of(table, row)} in "
            f"{_named(table, row)} ({n_rows} such {plural('row', n_rows)})."
        )


def refuse_cells(table: Any, bad: NDArray[np.bool_], rule: str) -> None:
    """Refuse the first bad cell of a table, by its row and column."""
    if bad.any():
        row, column = map(int, np.unravel_index(np.argmax(bad), bad.shape))
        got = repr(_cells_of(table, row)[column])
        raise ValueError(f"triplets must {rule}, got {got} in {_named(table, row)}, column {column}.")


def _cells_of(table: Any, row: int) -> list[Any]:
    cells = (table.iloc[row] if is_frame(table) else table[row]).tolist()
    return [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]


def _named(table: Any, row: int) -> str:
    return row_name(row, table.index if is_frame(table) else None)


def _count_pairs(items: NDArray, odd: int, n_items: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """How often each pair was kept, and how often it was shown, as symmetric matrices."""
    first, second = (column for column in range(3) if column != odd)
    n_entries = n_items**2
    kept, parted = np.zeros(n_entries, dtype=np.intp), np.zeros(n_entries, dtype=np.intp)
    chunk = max(_CHUNK, n_entries // 4)
    for start in range(0, len(items), chunk):
        # In 64 bits before anything is multiplied.
        column = np.ascontiguousarray(items[start : start + chunk].T, dtype=np.int64)
        kept += np.bincount(column[first] * n_items + column[second], minlength=n_entries)
        for other in (first, second):
            parted += np.bincount(column[other] * n_items + column[odd], minlength=n_entries)
    kept_pairs, shown_pairs = kept.reshape(n_items, n_items), parted.reshape(n_items, n_items)
    kept_pairs += kept_pairs.T
    shown_pairs += shown_pairs.T
    shown_pairs += kept_pairs
    return kept_pairs, shown_pairs
