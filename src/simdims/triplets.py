"""From odd-one-out judgements of triplets to similarities."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from simdims._by_system import listed_set, refuse_diagonal_beside
from simdims._memory import require
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    as_float,
    is_whole,
    plural,
    require_count,
    require_number,
    shown,
)
from simdims._tables import check_weights_option, count_weights, own_similarity, read_items, report, row_name
from simdims.similarity import Similarity, is_frame
from simdims.similarity.labels import clean_labels
from simdims.similarity.ownership import frozen
from simdims.systems import SimilaritySet

# Triplets that are counted at a time, unless there are more pairs: every chunk needs a count of all pairs.
_CHUNK = 2**21


@overload
def from_triplets(
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
    by: None = None,
) -> Similarity: ...


@overload
def from_triplets(
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
    by: str | int,
) -> SimilaritySet: ...


def from_triplets(
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
    by: str | int | None = None,
) -> Similarity | SimilaritySet:
    """Similarities from odd-one-out judgements: how often a pair was kept when it was shown.

    s_ij = (c_ij + alpha) / (m_ij + 2 alpha), where m_ij triplets showed the pair and in c_ij of them the third item was
    the odd one out. Pairs that were never shown are missing.

    Parameters
    ----------
    triplets : array-like or DataFrame of shape (n_triplets, 3)
        One answer per row: three different items, all of them either whole numbers (positions from 0, of any integer
        type) or text (labels).
    odd : int or column name, default=-1
        Which column holds the odd one out: its position, -3 to 2, or its name in a DataFrame.
    n_items : int, optional
        Number of items; by default that of `labels`, else the largest position plus one, or the number of labels found.
    smoothing : float, default=1.0
        alpha, 0 or more. With alpha = 1 a pair that was shown once gets 1/3 or 2/3.
    weights : {"counts"}, optional
        "counts" weights every pair by m_ij, and each diagonal entry by the mean m_ij of the pairs that were shown.
        Recommended if pairs have few answers (fewer than about five).
    labels : sequence, optional
        One distinct name per item. Items given as text must be among them and take their order; by default they are
        sorted (by value if all of them are numbers).
    diagonal : {"one", "missing"}, optional
        The similarity of an item with itself, which nobody judged: 1, or missing, so that only pairs are fitted. By
        default 1, and missing with `by`, where "one" is refused.
    by : column name, optional
        The column of a DataFrame, beside the three of the items, that says which system (person, group, session) an
        answer belongs to. The systems are then kept apart. `odd` is a position among the other three columns.

    Returns
    -------
    Similarity
        Dense. `info` holds the numbers of triplets, items, pairs and pairs shown, and the mean number of answers per
        pair that was shown.
    SimilaritySet
        With `by`: one sparse system for each value of that column, without a diagonal, which nobody judged.

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
    own = own_similarity("one" if diagonal is None else diagonal)
    refuse_diagonal_beside(by, diagonal)
    require_number("smoothing", smoothing, "at least 0")
    if n_items is not None:
        require_count("n_items", n_items, at_least=3)
    frame = triplets
    if by is not None:
        triplets = _without_column(frame, by)
    names = None
    if labels is not None:
        names = clean_labels(labels, len(labels) if n_items is None and hasattr(labels, "__len__") else n_items or 0)
    table, odd_place, items, names = _read_triplets(triplets, odd, names)
    if names is not None and n_items is not None and len(names) != n_items:
        rule = f"must be the number of labels found, {len(names)}"
        raise ParameterError("n_items", rule, str(n_items), "pass {labels}")
    n = len(names) if names is not None else int(n_items or int(items.max()) + 1)
    _check_items(items, table, n)

    if by is not None:
        (groups,), systems = read_items(frame, [by])
        counted = _count_by_system(items.astype(np.int64), odd_place, n, groups)
        return _triplets_by_system(*counted, systems, names, n, float(smoothing), bool(weights))
    require(40 * n**2, f"Counting the pairs of {n} items", "number the items from 0 without gaps, or leave some out")
    kept, n_shown = _count_pairs(items, odd_place, n)
    unseen = n_shown == 0
    values = kept + float(smoothing)
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing was shown and nothing is smoothed
        values /= n_shown + 2 * float(smoothing)
    values[unseen] = np.nan
    np.fill_diagonal(values, own)
    n_pairs_shown = (n**2 - int(np.count_nonzero(unseen))) // 2
    info = {
        "source": "triplets",
        "n_triplets": len(items),
        "n_items": n,
        "n_pairs": n * (n - 1) // 2,
        "n_pairs_shown": n_pairs_shown,
        "answers_per_shown_pair": 3 * len(items) / n_pairs_shown,
        "smoothing": float(smoothing),
    }
    report("from_triplets", info)
    return Similarity(frozen(values), names, frozen(count_weights(n_shown)) if weights else None, info=info)


def _without_column(frame: Any, by: str | int) -> Any:
    """The columns of the items."""
    if not is_frame(frame):
        rule = "must be None unless triplets are a DataFrame with a column of this name"
        raise ParameterError("by", rule, shown(by))
    if list(frame.columns).count(by) != 1:
        raise ParameterError("by", "must name a column of triplets", f"{by!r}: it has {list(frame.columns)}")
    return frame.drop(columns=by)


def _count_by_system(
    items: NDArray[np.int64], odd: int, n_items: int, groups: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
    """Keys g n^2 + i n + j (i < j) of the pairs that system g saw, how often it kept each, and how often it saw it."""
    a, b = (items[:, column] for column in range(3) if column != odd)
    c = items[:, odd]
    keys = [
        groups.astype(np.int64) * n_items**2 + np.minimum(one, two) * n_items + np.maximum(one, two)
        for one, two in ((a, b), (a, c), (b, c))
    ]
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    return pairs, np.bincount(place[: len(items)], minlength=len(pairs)), np.bincount(place)


def _triplets_by_system(
    keys: NDArray[np.int64],
    kept: NDArray[np.intp],
    shown_pairs: NDArray[np.intp],
    systems: list[str],
    names: tuple[str, ...] | None,
    n_items: int,
    smoothing: float,
    weighted: bool,
) -> SimilaritySet:
    values = (kept + smoothing) / (shown_pairs + 2 * smoothing)
    of, pair = np.divmod(keys, n_items**2)
    both = (pair // n_items, pair % n_items)
    return listed_set(of, systems, both, values, shown_pairs if weighted else None, names, n_items)


def read_answers(
    triplets: Any, odd: Any = -1, *, n_items: int | None = None, names: tuple[str, ...] | None = None
) -> tuple[NDArray[np.intp], int]:
    """The items of every triplet as positions, and the column of the odd one out.

    With `n_items` the items are those of an embedding, and text must be among its `names`; otherwise items are numbered
    as they are found.
    """
    table, odd_place, items, found = _read_triplets(triplets, odd, names)
    if n_items is not None and names is None and found is not None:
        rule, remedy = "must hold positions where W does not name its items", "pass {labels} or a labelled DataFrame"
        raise ParameterError("triplets", rule, f"the text {found[0]!r}", remedy)
    _check_items(items, table, int(items.max()) + 1 if n_items is None else n_items)
    return items.astype(np.intp, copy=False), odd_place


def _read_triplets(
    triplets: Any, odd: Any, names: tuple[str, ...] | None
) -> tuple[Any, int, NDArray, tuple[str, ...] | None]:
    """The table, the column of the odd one out, the items as whole numbers, and `names` or the names found."""
    odd_place = _odd_column(triplets, odd)
    table = _as_table(triplets)
    items, names = _positions(table, names)
    if items.dtype.kind == "f":
        items = items.astype(np.float64, copy=False)  # n_items may be beyond the range of half floats
        is_position = (np.abs(items) <= 2**53) & (items == np.floor(items))  # beyond, floats skip whole numbers
        _refuse_cells(table, ~is_position, "hold whole numbers (or text)")
    return table, odd_place, items, names


def _odd_column(triplets: Any, odd: Any) -> int:
    if is_whole(odd) and -3 <= odd <= 2:
        return int(odd) % 3
    names = list(triplets.columns) if is_frame(triplets) else []
    if names.count(odd) == 1:
        return names.index(odd)
    rule = f"must be the position of a column, -3 to 2{', or the name of one' if names else ''}"
    listed = f"; the columns are {', '.join(map(repr, names))}" if names else ""
    raise ParameterError("odd", rule, f"{shown(odd)}{listed}")


def _as_table(triplets: Any) -> Any:
    """The triplets with 3 columns: as an array if they are numbers, as a DataFrame otherwise."""
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
            raise ParameterError("triplets", "must have 3 items in every row", next(uneven, "others")) from error
        if table.dtype.kind == "U" and not isinstance(triplets, np.ndarray):
            table = np.asarray(triplets, dtype=object)  # NumPy made text of the numbers and gaps beside text
    if table.ndim == 0:
        raise ParameterTypeError("triplets", "must be an array, a DataFrame or a list of rows", type(triplets).__name__)
    if table.size == 0:
        raise ParameterError("triplets", "must hold at least one triplet", "none")
    if table.ndim != 2 or table.shape[1] != 3:
        raise ParameterError("triplets", "must have 3 columns, one for each item of a triplet", f"shape {table.shape}")
    if is_frame(table):
        return table.set_axis(range(3), axis=1)
    if table.dtype.kind in "iuf":
        return table
    import pandas as pd

    return pd.DataFrame(table, dtype=object)


def _positions(table: Any, names: tuple[str, ...] | None) -> tuple[NDArray, tuple[str, ...] | None]:
    """Items as numbers: as they are or, if they are text, as positions among `names` or the sorted names found."""
    if not is_frame(table):
        return table, names
    import pandas as pd

    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in table.dtypes):
        return table.to_numpy(), names
    try:
        codes, distinct = zip(*(pd.factorize(table[column]) for column in table), strict=True)
    except TypeError:  # a list or a dictionary in a cell
        raise ParameterTypeError("triplets", "must hold whole numbers or text", "other objects in cells") from None
    objects = [np.asarray(values, dtype=object) for values in distinct]
    _refuse_cells(table, np.stack(codes, axis=1) < 0, "name an item in every cell")
    kind = pd.api.types.infer_dtype(np.concatenate(objects))
    if kind in ("integer", "floating", "mixed-integer-float"):
        # Whole numbers beyond the floats become infinite, and are refused as such.
        floats = [np.array([as_float(value) for value in values]) for values in objects]
        return np.stack([values[code] for values, code in zip(floats, codes, strict=True)], axis=1), names
    if kind == "string":
        return _text_positions(table, names)
    is_text = [np.array([isinstance(value, str) for value in values]) for values in objects]
    texts = np.stack([flags[code] for flags, code in zip(is_text, codes, strict=True)], axis=1)
    _refuse_cells(table, texts != texts[0, 0], "hold either text or whole numbers, not both")
    raise ParameterTypeError("triplets", "must hold whole numbers or text", type(_cells_of(table, 0)[0]).__name__)


def _text_positions(table: Any, names: tuple[str, ...] | None) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    columns, found = read_items(table, range(3))
    positions = np.stack(columns, axis=1)
    if names is None:
        return positions, tuple(found)
    place = {name: position for position, name in enumerate(names)}
    unknown = np.array([name not in place for name in found])
    _refuse_cells(table, unknown[positions], "name items that are in labels")
    return np.array([place[name] for name in found])[positions], names


def _check_items(items: NDArray, table: Any, n_items: int) -> None:
    """Refuse positions out of range and rows that name an item twice."""
    _refuse_cells(table, items < 0, "name items by positions from 0 (or as text)")
    _refuse_cells(table, items >= n_items, f"name items between 0 and n_items - 1 = {n_items - 1}")
    a, b, c = items.T
    repeated = (a == b) | (a == c) | (b == c)
    if repeated.any():
        row, n_rows = int(np.argmax(repeated)), int(np.count_nonzero(repeated))
        got = f"{_cells_of(table, row)} in {_row_shown(table, row)} ({n_rows} such {plural('row', n_rows)})"
        raise ParameterError("triplets", "must name three different items in every row", got)


def _refuse_cells(table: Any, bad: NDArray[np.bool_], rule: str) -> None:
    """Refuse the first bad cell of a table, by its row and column."""
    if bad.any():
        row, column = map(int, np.unravel_index(np.argmax(bad), bad.shape))
        got = f"{_cells_of(table, row)[column]!r} in {_row_shown(table, row)}, column {column}"
        raise ParameterError("triplets", f"must {rule}", got)


def _cells_of(table: Any, row: int) -> list[Any]:
    cells = (table.iloc[row] if is_frame(table) else table[row]).tolist()
    return [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]


def _row_shown(table: Any, row: int) -> str:
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
