"""Answers about three items: read from tables, and converted to the share of answers that keep each pair.

Odd-one-out judgements and comparisons are both answers that keep one pair of items together and separate others. The
similarity of a pair is the share of its answers that kept it: s_ij = (c_ij + alpha) / (m_ij + 2 alpha).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._by_system import covariates, listed_set
from simdims._memory import require
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    as_float,
    plural,
    require_count,
    require_number,
    shortlist,
)
from simdims._tables import (
    check_weights_option,
    count_weights,
    read_items,
    read_systems,
    report,
    row_name,
    warn_of_rare_names,
    warn_of_similar_names,
)
from simdims.similarity import Similarity, is_frame
from simdims.similarity.labels import clean_labels
from simdims.similarity.ownership import frozen
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    import pandas as pd

# Answers counted at a time, unless there are more pairs: every chunk needs a count of all pairs.
_CHUNK = 2**21

#: Two columns of the items of an answer.
Pair = tuple[int, int]
Names = tuple[str, ...] | None


class Answers(NamedTuple):
    """The items of every answer as positions, three per row, and their names, if they have any."""

    items: NDArray[np.int64]
    names: Names
    n_items: int


class Cells(NamedTuple):
    """Three columns of cells, an array or a DataFrame, and the name of the argument."""

    table: Any
    argument: str

    def refuse(self, bad: NDArray[np.bool_], rule: str) -> None:
        """Refuse the first bad cell, by its row and column."""
        if bad.any():
            row, place = map(int, np.unravel_index(np.argmax(bad), bad.shape))
            column = repr(self.table.columns[place]) if is_frame(self.table) else place
            got = f"{self.row(row)[place]!r} in {self.row_shown(row)}, column {column}"
            raise ParameterError(self.argument, f"must {rule}", got)

    def row(self, row: int) -> list[Any]:
        """The cells of a row, as Python numbers and strings."""
        cells = (self.table.iloc[row] if is_frame(self.table) else self.table[row]).tolist()
        return [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]

    def row_shown(self, row: int) -> str:
        """A row as shown in messages."""
        return row_name(row, self.table.index if is_frame(self.table) else None)


def check_options(weights: str | None, smoothing: float, n_items: int | None) -> None:
    """Refuse bad values of the options shared by all kinds of answers."""
    check_weights_option(weights)
    require_number("smoothing", smoothing, "at least 0")
    if n_items is not None:
        require_count("n_items", n_items, at_least=3)


def read_answers(cells: Cells, labels: Sequence[str] | None, n_items: int | None) -> Answers:
    """The items of answers, to compute similarities."""
    names: Names = None
    if labels is not None:
        names = clean_labels(labels, len(labels) if n_items is None and hasattr(labels, "__len__") else n_items or 0)
    items, names = _positions(cells, names)
    if names is not None and n_items is not None and len(names) != n_items:
        rule = f"must be the number of labels found, {len(names)}"
        raise ParameterError("n_items", rule, str(n_items), "pass {labels}")
    n = len(names) if names is not None else int(n_items or int(items.max()) + 1)
    _check_items(items, cells, n)
    return Answers(items, names, n)


def read_questions(cells: Cells, n_items: int | None = None, names: Names = None) -> NDArray[np.intp]:
    """The items of answers, to predict them: with `n_items` those of an embedding, whose text must be in `names`."""
    items, found = _positions(cells, names)
    if n_items is not None and names is None and found is not None:
        rule, remedy = "must hold positions where W does not name its items", "pass {labels} or a labelled DataFrame"
        raise ParameterError(cells.argument, rule, f"the text {found[0]!r}", remedy)
    _check_items(items, cells, int(items.max()) + 1 if n_items is None else n_items)
    return items.astype(np.intp, copy=False)


def cells_of(answers: Any, argument: str) -> Cells:
    """Three columns of cells: as an array if they are numbers, as a DataFrame otherwise."""
    table = answers
    if isinstance(answers, np.ma.MaskedArray):
        table = answers.data.astype(object)
        table[np.ma.getmaskarray(answers)] = None
    elif not is_frame(answers):
        try:
            table = np.asarray(answers)
        except ValueError as error:
            uneven = (
                f"{row!r} in row {k}" for k, row in enumerate(answers) if not hasattr(row, "__len__") or len(row) != 3
            )
            raise ParameterError(argument, "must have 3 items in every row", next(uneven, "others")) from error
        if table.dtype.kind == "U" and not isinstance(answers, np.ndarray):
            table = np.asarray(answers, dtype=object)  # NumPy converts numbers and gaps to text in a mixed array
    if table.ndim == 0:
        raise ParameterTypeError(argument, "must be an array, a DataFrame or a list of rows", type(answers).__name__)
    if table.size == 0:
        raise ParameterError(argument, "must hold at least one triplet", "none")
    if table.ndim != 2 or table.shape[1] != 3:
        rule = "must have 3 columns, one for each item of a triplet"
        listed = (
            f"the columns {shortlist(list(map(repr, table.columns)))}" if is_frame(table) else f"shape {table.shape}"
        )
        raise ParameterError(argument, rule, listed, "select the columns of the items")
    if is_frame(table) and not table.columns.is_unique:
        table = table.set_axis(range(3), axis=1)
    if not is_frame(table) and table.dtype.kind not in "iuf":
        import pandas as pd

        table = pd.DataFrame(table, dtype=object)
    return Cells(table, argument)


def _positions(cells: Cells, names: Names) -> tuple[NDArray, Names]:
    """Items as whole numbers, and `names` or the names found."""
    items, names = _numbered(cells, names)
    if items.dtype.kind == "f":
        items = items.astype(np.float64, copy=False)  # n_items may exceed the range of half floats
        is_position = (np.abs(items) <= 2**53) & (items == np.floor(items))  # beyond this, floats skip integers
        cells.refuse(~is_position, "hold whole numbers (or text)")
    return items, names


def _numbered(cells: Cells, names: Names) -> tuple[NDArray, Names]:
    """Items as numbers: as they are or, if they are text, as positions among `names` or the sorted names found."""
    table = cells.table
    if not is_frame(table):
        return table, names
    import pandas as pd

    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in table.dtypes):
        return table.to_numpy(), names
    try:
        codes, distinct = zip(*(pd.factorize(table[column]) for column in table), strict=True)
    except TypeError:  # a list or a dictionary in a cell
        raise ParameterTypeError(cells.argument, "must hold whole numbers or text", "other objects in cells") from None
    objects = [np.asarray(values, dtype=object) for values in distinct]
    cells.refuse(np.stack(codes, axis=1) < 0, "name an item in every cell")
    kind = pd.api.types.infer_dtype(np.concatenate(objects))
    if kind in ("integer", "floating", "mixed-integer-float"):
        # Integers beyond the range of floats become infinite, and are refused as such.
        floats = [np.array([as_float(value) for value in values]) for values in objects]
        return np.stack([values[code] for values, code in zip(floats, codes, strict=True)], axis=1), names
    if kind == "string":
        return _text_positions(cells, names)
    is_text = [np.array([isinstance(value, str) for value in values]) for values in objects]
    texts = np.stack([flags[code] for flags, code in zip(is_text, codes, strict=True)], axis=1)
    cells.refuse(texts != texts[0, 0], "hold either text or whole numbers, not both")
    raise ParameterTypeError(cells.argument, "must hold whole numbers or text", type(cells.row(0)[0]).__name__)


def _text_positions(cells: Cells, names: Names) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    columns, found = read_items(cells.table, list(cells.table.columns))
    positions = np.stack(columns, axis=1)
    if names is None:
        warn_of_similar_names(found, "items")
        warn_of_rare_names(found, np.bincount(positions.ravel(), minlength=len(found)))
        return positions, tuple(found)
    place = {name: position for position, name in enumerate(names)}
    unknown = np.array([name not in place for name in found])
    cells.refuse(unknown[positions], "name items of the embedding or of labels")
    return np.array([place[name] for name in found])[positions], names


def _check_items(items: NDArray, cells: Cells, n_items: int) -> None:
    """Refuse positions out of range and rows that name an item twice."""
    cells.refuse(items < 0, "name items by positions from 0 (or as text)")
    cells.refuse(items >= n_items, f"name items between 0 and n_items - 1 = {n_items - 1}")
    a, b, c = items.T
    repeated = (a == b) | (a == c) | (b == c)
    if repeated.any():
        row, n_rows = int(np.argmax(repeated)), int(np.count_nonzero(repeated))
        got = f"{cells.row(row)} in {cells.row_shown(row)} ({n_rows} such {plural('row', n_rows)})"
        raise ParameterError(cells.argument, "must name three different items in every row", got)


def shares_of_pairs(
    answers: Answers,
    kept: Pair,
    parted: Sequence[Pair],
    *,
    own: float,
    smoothing: float,
    weights: str | None,
    source: str,
) -> Similarity:
    """How often each pair was kept when it was judged; `kept` and `parted` are the pairs of columns of an answer."""
    items, names, n = answers
    require(40 * n**2, f"Counting the pairs of {n} items", "number the items from 0 without gaps, or leave some out")
    n_kept, n_judged = _count_pairs(items, kept, parted, n)
    unseen = n_judged == 0
    values = n_kept + float(smoothing)
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing was shown and nothing is smoothed
        values /= n_judged + 2 * float(smoothing)
    values[unseen] = np.nan
    np.fill_diagonal(values, own)
    n_pairs_shown = (n**2 - int(np.count_nonzero(unseen))) // 2
    info = {"source": source, f"n_{source}": len(items), "n_items": n, "n_pairs": n * (n - 1) // 2}
    mean = (1 + len(parted)) * len(items) / n_pairs_shown
    info |= {"n_pairs_shown": n_pairs_shown, "answers_per_shown_pair": mean, "smoothing": float(smoothing)}
    S = Similarity(frozen(values), names, frozen(count_weights(n_judged)) if weights else None, info=info)
    report(f"from_{source}", S.info)
    return S


def shares_by_system(
    answers: Answers,
    kept: Pair,
    parted: Sequence[Pair],
    frame: pd.DataFrame,
    by: Hashable,
    columns: Sequence[Hashable],
    source: str,
    *,
    smoothing: float,
    weights: str | None,
) -> SimilaritySet:
    """`shares_of_pairs` for each system in the column `by` of a table, whose other `columns` hold the items."""
    groups, systems = read_systems(frame, by)
    info = covariates(frame, groups, systems, [*columns, by])
    items, names, n = answers.items.astype(np.int64), answers.names, answers.n_items
    sides = [(items[:, one], items[:, other]) for one, other in (kept, *parted)]
    own = groups.astype(np.int64) * n**2
    keys = [own + np.minimum(one, other) * n + np.maximum(one, other) for one, other in sides]
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    n_kept, n_judged = np.bincount(place[: len(items)], minlength=len(pairs)), np.bincount(place)
    values = (n_kept + float(smoothing)) / (n_judged + 2 * float(smoothing))
    of, pair = np.divmod(pairs, n**2)
    counts = np.bincount(groups, minlength=len(systems))
    made = [{"source": source, f"n_{source}": int(count), "smoothing": float(smoothing)} for count in counts]
    judged = (values, n_judged if weights else None)
    return listed_set(of, systems, np.divmod(pair, n), *judged, names, n, info, made)


def _count_pairs(
    items: NDArray, kept: Pair, parted: Sequence[Pair], n_items: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """How often each pair was kept, and how often it was judged, as symmetric matrices."""
    n_entries = n_items**2
    n_kept, n_parted = np.zeros(n_entries, dtype=np.intp), np.zeros(n_entries, dtype=np.intp)
    chunk = max(_CHUNK, n_entries // 4)
    for start in range(0, len(items), chunk):
        # Cast to 64 bits before multiplying.
        column = np.ascontiguousarray(items[start : start + chunk].T, dtype=np.int64)
        n_kept += np.bincount(column[kept[0]] * n_items + column[kept[1]], minlength=n_entries)
        for one, other in parted:
            n_parted += np.bincount(column[one] * n_items + column[other], minlength=n_entries)
    kept_pairs, judged = n_kept.reshape(n_items, n_items), n_parted.reshape(n_items, n_items)
    kept_pairs += kept_pairs.T
    judged += judged.T
    judged += kept_pairs
    return kept_pairs, judged
