"""Columns of tables as items and numbers, checked row by row, and other code shared by the constructors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._cells import advice, as_floats, number, text_cells
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    columns_in_words,
    listed_columns,
    require_choice,
    shortlist,
    shown,
    warn,
)

if TYPE_CHECKING:
    import pandas as pd

#: The name of an index that holds the rows of a file, from 1; see `simdims.io.tables.Sheet`.
FILE_ROW = "row of the file"

#: Items are rare if they occur at most twice, and frequent if at least 10 times; and the most rare ones compared.
_RARE, _FREQUENT, _MOST_RARE = 2, 10, 50

logger = logging.getLogger("simdims")

# Words in the names of columns that do not hold similarities.
_TIMES = {"rt", "rts", "time", "times", "timestamp", "latency", "latencies", "duration", "ms", "msec"}
_TIMES |= {f"{kind}{time}" for kind in ("reaction", "response") for time in ("time", "times")}
_DISTANCES = {"distance", "distances", "dist", "dissimilarity", "dissimilarities", "dissim"}
_DISTANCES |= {"difference", "differences"}


def as_frame(table: Any, **columns: Hashable) -> pd.DataFrame:
    """Return a table as a DataFrame, after checking that each argument names one column of its own."""
    import pandas as pd

    is_records = isinstance(table, (list, tuple)) and all(isinstance(row, Mapping) for row in table)
    if not (isinstance(table, (pd.DataFrame, Mapping)) or is_records):
        rule = "must be a pandas DataFrame, a dictionary of columns or a list of dictionaries, one per row"
        raise ParameterTypeError("table", rule, type(table).__name__)
    try:
        frame = pd.DataFrame(table)
    except UnicodeEncodeError as error:
        got = f"bytes that are not UTF-8 in {error.object!a}"
        remedy = "change it, as in os.fsencode(text).decode('latin-1')"
        raise ParameterError("table", "must hold text that can be written to files", got, remedy) from None
    except ValueError as error:
        raise ParameterError("table", "must have columns of one length", f"a dictionary of others ({error})") from error
    present: list[Hashable] = list(frame.columns)
    roles: dict[Hashable, str] = {}
    for argument, column in columns.items():
        if not isinstance(column, Hashable) or getattr(column, "ndim", False) or column is pd.NA:
            raise ParameterError(argument, "must name a column of the table", shown(column))
        found = sum(_is_same(name, column) for name in present)
        if found != 1:
            if found == 0 and column == argument:  # the default, which the user did not write
                got = f"a table with the columns {columns_in_words(present)}" if present else "a table without columns"
                raise ParameterError(argument, f"must be given, as no column is called {column!r}", got)
            got = listed_columns(column, present) if found == 0 else f"{column!r}, the name of {found} columns"
            raise ParameterError(argument, "must name a column of the table", got)
        if column in roles:
            rule = f"and {{{roles[column]}}} must name two different columns"
            raise ParameterError(argument, rule, f"{column!r} for both")
        roles[column] = argument
    if not len(frame):
        raise ParameterError("table", "must have at least one row", "none")
    return frame


def _is_same(name: Hashable, other: Hashable) -> bool:
    same = name == other
    return isinstance(same, bool | np.bool_) and bool(same)  # pandas' NA is neither equal nor different


def read_items(
    frame: pd.DataFrame, columns: Sequence[Hashable], key: Callable[[str], Any] | None = None
) -> tuple[list[NDArray[np.intp]], list[str]]:
    """Return the items of several columns as positions in one sorted list of distinct texts, and that list.

    Numbers become text (a whole one without a decimal point), so that 1, 1.0 and "1" are one item. The list is
    sorted by value where every text is a number, and otherwise by `key`, as text by default.
    """
    import pandas as pd

    codes, texts = [], []
    for column in columns:
        try:
            numbered, distinct = pd.factorize(frame[column])
        except TypeError:
            raise TypeError(f"Column {column!r} must name items, got cells that hold lists or similar.") from None
        text = [_as_text(item) for item in distinct]
        no_item = np.array([not item.strip() for item in text] + [True])[numbered]  # missing cells are numbered -1
        if no_item.any():
            row = int(np.argmax(no_item))
            if numbered[row] < 0:
                got = 'a missing cell (as pandas reads the words "NA" and "null", unless keep_default_na=False)'
            else:
                got = f"the text {text[numbered[row]]!r}"
            where = row_name(row, frame.index)
            raise ValueError(f"Column {column!r} must have a name in every row, got {got} in {where}.")
        codes.append(numbered)
        texts.append(text)
    items = _sorted_items({item for text in texts for item in text}, key)
    place = {item: position for position, item in enumerate(items)}
    places = [np.array([place[item] for item in text], dtype=np.intp) for text in texts]
    return [positions[numbered] for positions, numbered in zip(places, codes, strict=True)], items


def read_systems(frame: pd.DataFrame, by: Hashable) -> tuple[NDArray[np.intp], list[str]]:
    """Return the systems of a column as positions in a list of their names, and that list in natural order."""
    (groups,), names = read_items(frame, [by], natural_order)
    warn_of_similar_names(names, "systems")
    return groups, names


def warn_of_similar_names(names: Sequence[str], what: str) -> None:
    """Warn of names that differ only in case or spaces, which are often one name with a typing error."""
    first: dict[str, str] = {}
    similar = []
    for name in names:
        other = first.setdefault(" ".join(name.split()).casefold(), name)
        if other is not name:
            similar.append(f"{other!r} and {name!r}")
    if similar:
        found = f"Names of {what} that differ only in case or spaces are kept apart: {shortlist(similar)}."
        warn(found, "If they are typing errors, correct them.")


def warn_of_rare_names(names: Sequence[str], counts: NDArray[np.intp]) -> None:
    """Warn of items that occur once or twice and are nearly named like a frequent one."""
    if np.median(counts) < _FREQUENT:
        return
    frequent = [name for name, count in zip(names, counts, strict=True) if count >= _FREQUENT]
    similar = []
    for place in np.flatnonzero(counts <= _RARE)[:_MOST_RARE]:
        name, times = names[place], "once" if counts[place] == 1 else f"{counts[place]} times"
        if close := get_close_matches(name, frequent, 1, cutoff=0.8):
            similar.append(f"{name!r} ({times}; {close[0]!r} is frequent)")
    if similar:
        warn(f"Rare items have nearly the name of a frequent one: {shortlist(similar)}.",
             "If they are typing errors, correct them.")  # fmt: skip


def natural_order(text: str) -> list[tuple[int, str]]:
    """Return a sort key that compares numbers in texts as numbers: P2 before P10."""
    parts = re.split(r"([0-9]+)", text)
    return [(int(part), "") if place % 2 else (-1, part) for place, part in enumerate(parts) if part]


def read_numbers(
    frame: pd.DataFrame, column: Hashable, where: Callable[[int], str] | None = None
) -> NDArray[np.float64]:
    """Return a column as finite floats, NaN if missing; numbers may be text. `where` names a row in messages."""
    where = where or (lambda row: row_name(row, frame.index))
    cells = frame[column]
    if cells.dtype.kind in "biuf":
        numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        raw = cells.to_numpy(dtype=object, na_value=np.nan)
        numbers = as_floats(raw, lambda place, cell: _column_error(column, raw, place[0], where))
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise ParameterError(f"Column {column!r}", "must hold finite numbers", f"{numbers[row]:g} in {where(row)}")
    return numbers


def _column_error(column: Hashable, cells: NDArray, row: int, where: Callable[[int], str]) -> ParameterError:
    if not isinstance(cells[row], str):
        return ParameterError(f"Column {column!r}", "must hold numbers", f"{cells[row]!r} in {where(row)}")
    texts = [(cell, where(place)) for place, cell in enumerate(cells) if isinstance(cell, str) and number(cell) is None]
    return not_numbers(column, texts, len(cells))


def not_numbers(column: Hashable, texts: Sequence[tuple[str, str]], n_cells: int, decimal: str = ".") -> ParameterError:
    """The error about a column with texts among its numbers, whose decimal sign is `decimal`; see text_cells."""
    remedy = advice(texts[0][0], decimal)
    return ParameterError(f"Column {column!r}", "must hold numbers", text_cells(texts, n_cells), remedy)


def what_else(column: Hashable) -> str | None:
    """Return what a column holds, judging by its name, if not similarities: "response times" or "dissimilarities"."""
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", str(column))}
    if words & _TIMES:
        return "response times"
    return "dissimilarities" if words & _DISTANCES else None


def warn_of_other_measure(column: Hashable | None) -> None:
    """Warn if a column that is read as similarities holds something else, judging by its name."""
    kind = None if column is None else what_else(column)
    if kind is not None:
        reverse = "If large values mean dissimilar, replace each value by low + high - value first."
        found = f"Column {column!r} is read as similarities, but its name suggests {kind}."
        warn(found, reverse if kind == "dissimilarities" else None)


def row_name(row: int, index: Any = None) -> str:
    """Return a row as named in messages: by its row in the file, or its position, from 0, and its name in the index."""
    if getattr(index, "name", None) == FILE_ROW:
        return f"row {index[row]}"
    name = row if index is None else index[row]
    same = name == row
    if not isinstance(same, bool | np.bool_) or same:  # pandas' NA is neither equal nor different
        return f"row {row}"
    return f"row {row} (index {repr(name) if isinstance(name, str) else name})"


def check_weights_option(weights: object) -> None:
    """Refuse weights that are neither None nor "counts"."""
    require_choice("weights", weights, (None, "counts"))


def own_similarity(diagonal: object, by: object) -> float:
    """Return the similarity of an item with itself, which nobody judged: 1, or NaN; NaN for separate systems."""
    require_choice("diagonal", "one" if diagonal is None else diagonal, ("one", "missing"))
    if by is not None and diagonal == "one":  # ones would outweigh the few pairs that each system judged
        raise ParameterError("diagonal", "must be None or 'missing' beside {by}", "'one'")
    return 1.0 if diagonal != "missing" and by is None else np.nan


def count_weights(counts: NDArray) -> NDArray[np.float64]:
    """Return counts of pairs as weights, with the mean of the positive ones on the diagonal."""
    weights = counts.astype(np.float64)
    np.fill_diagonal(weights, counts[counts > 0].mean())
    return weights


def report(function: str, info: Mapping[str, Any]) -> None:
    """Log the `info` of the Similarity that a constructor returns."""
    logger.info("%s: %s", function, ", ".join(f"{name} = {value}" for name, value in info.items()))


def _as_text(item: Any) -> str:
    if isinstance(item, (float, np.floating)) and float(item).is_integer():
        return str(int(item))
    return str(item)


def _sorted_items(items: set[str], key: Callable[[str], Any] | None) -> list[str]:
    try:
        values = {item: float(item) for item in items}
    except ValueError:
        return sorted(sorted(items), key=key)
    if not all(np.isfinite(value) for value in values.values()):
        return sorted(sorted(items), key=key)
    return sorted(items, key=lambda item: (values[item], item))
