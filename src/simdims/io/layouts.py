"""Similarities in tables: a square with or without labels, or a list of pairs. The layout is detected."""

from __future__ import annotations

import ast
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._cells import advice, is_missing
from simdims._memory import require
from simdims._parameters import ParameterError, plural
from simdims._tables import read_numbers, what_else
from simdims.io.frames import FRAMES, read_frame
from simdims.io.pairs import from_pairs
from simdims.io.tables import (
    LABEL_WORDS,
    N_HEAD,
    DecimalCommaError,
    Dialect,
    NotANumberError,
    Numbers,
    Reading,
    Row,
    find_dialect,
    find_encoding,
    is_text,
    mostly_text,
    rows,
    unguarded,
    without_missing,
)
from simdims.similarity import ALIGNED, Parts

VALUE_WORDS = {"value", "values", "similarity", "sim", "score", "rating", "weight"}
TWO_LAYOUTS = (
    "a square table has one row and one column per item, beside labels; a list of pairs has the 3 or 4 columns item, "
    "item, value[, weight]; raw data, such as one rating per row, must be converted first (from_ratings, "
    "`simdims similarity`)"
)


class Wanted(NamedTuple):
    """The arguments of load_similarity."""

    key: str | None = None
    form: str | None = None
    labels: Sequence[str] | None = None
    absent: str | float | None = None
    symmetrize: str | None = None
    sheet: str | None = None
    na_values: tuple[str, ...] = ()

    @property
    def how(self) -> Reading:
        """The arguments that apply to all tables."""
        return Reading(self.sheet, self.na_values, self.key)


def read_table(path: Path, wanted: Wanted) -> Parts:
    """Read a file with a square table or a list of pairs."""
    if path.suffix.lower() in FRAMES:
        frame = read_frame(path, wanted.key)
        is_long = _is_frame_long(frame, wanted) if wanted.form is None else wanted.form == "long"
        return _frame_pairs(frame, wanted) if is_long else _frame_square(frame, wanted)
    dialect = find_dialect(path, wanted.how)
    try:
        parts = _read_text(path, dialect, wanted)
    except DecimalCommaError:
        dialect = dialect._replace(decimal=",")
        parts = _read_text(path, dialect, wanted)
    return parts._replace(info={**parts.info, "found": f"{parts.info['found']}; {dialect}"})


def read_edge_list(path: Path, wanted: Wanted) -> Parts:
    """Read the edges of a graph as a list of pairs."""
    missing = wanted.how.missing
    dialect = Dialect(find_encoding(path), ",", missing=missing)  # commas in edge lists are never decimal signs
    return _read_pairs(_edges(path, dialect.encoding), Numbers(dialect), wanted)


def _edges(path: Path, encoding: str) -> Iterator[Row]:
    """Yield two nodes, a value (1 without one, "weight" of networkx's dictionaries) and any weight per edge."""
    separator: str | None = None
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(file, start=1):
            text, brace, rest = line.strip().partition("{")
            if not text or text[0] in "#%":
                continue
            separator = separator or next((mark for mark in "\t;," if mark in text), None)
            cells = [cell.strip() for cell in text.strip().strip(separator).split(separator)]
            if brace:
                cells.append(_edge_weight(number, brace + rest))
            if len(cells) not in (2, 3, 4):
                rule = "a line of an edge list must hold two nodes and, if there is one, a number"
                raise ValueError(f"{rule}, got {len(cells)} {plural('cell', len(cells))} in line {number}.")
            yield number, cells if len(cells) > 2 else [*cells, "1"]


def _edge_weight(number: int, attributes: str) -> str:
    try:
        return str(ast.literal_eval(attributes).get("weight", 1))
    except (ValueError, SyntaxError, AttributeError, TypeError, RecursionError, MemoryError):
        got = f"{attributes[:60]!r} in line {number}"
        raise ValueError(f"the attributes of an edge must be a dictionary of plain values, got {got}.") from None


def _read_text(path: Path, dialect: Dialect, wanted: Wanted) -> Parts:
    all_rows = rows(path, dialect)
    head = list(islice(all_rows, N_HEAD))
    if not head:
        raise ValueError("the file must contain a table, got blank lines only.")
    is_long = _is_text_long(head, dialect, wanted) if wanted.form is None else wanted.form == "long"
    all_rows, numbers = chain(head, all_rows), Numbers(dialect)
    parts = _read_pairs(all_rows, numbers, wanted) if is_long else _read_square(all_rows, numbers)
    numbers.finish()
    return parts


def _is_text_long(head: list[Row], dialect: Dialect, wanted: Wanted) -> bool:
    top, below = head[0][1], head[min(1, len(head) - 1)][1]
    width = len(below)
    if width not in (3, 4) or len(head) > width + 1:
        return width in (3, 4)
    square = _attempt(lambda: _read_square(iter(head), Numbers(dialect)))
    pairs = _attempt(lambda: _read_pairs(iter(head), Numbers(dialect), Wanted()))
    if square is None and pairs is None:
        return is_text(below[1], dialect)  # then the error about pairs is more helpful
    if square is not None and square.labels is not None and tuple(top[1:]) == square.labels:
        return False
    names = [cell.strip() for _, cells in head[1:] for cell in cells[:2]]
    names_value = _names_value(top)
    names_items = names_value or all(is_text(name, dialect) or name.isdigit() for name in names)
    n_pairs = len(head) if pairs is not None and names_items else None
    return _is_long(None if square is None else square.values, n_pairs, names_value, wanted)


def _is_frame_long(frame: Any, wanted: Wanted) -> bool:
    n_rows, n_columns = frame.shape
    if n_columns not in (3, 4):
        return False
    square = _with_label_index(frame)
    is_square = square.shape[0] == square.shape[1] and all(dtype.kind in "biuf" for dtype in square.dtypes)
    values = square.to_numpy(dtype=np.float64) if is_square else None
    return _is_long(values, n_rows, _names_value(list(map(str, frame.columns))), wanted)


def _is_long(square: NDArray[np.float64] | None, n_pairs: int | None, names_value: bool, wanted: Wanted) -> bool:
    """Whether a short table is a list of `n_pairs` pairs rather than the given square."""
    if square is None or n_pairs is None:
        return square is None
    if names_value:
        return True
    # Differences are NaN if one side is missing.
    if wanted.symmetrize is not None or not np.any(np.abs(square - square.T) > 0):
        return False
    rule = "must be given for a table that could be a square or a list of pairs"
    got = f"{len(square)} rows that could be an asymmetric matrix or a list of {n_pairs} pairs"
    raise ParameterError("form", rule, got, "pass {form=square} or {form=long}")


def _names_value(header: Sequence[str]) -> bool:
    return len(header) > 2 and header[2].strip().lower() in VALUE_WORDS


def _attempt(read: Callable[[], Parts]) -> Parts | None:
    try:
        return read()
    except ValueError:
        return None


def _read_pairs(all_rows: Iterator[Row], numbers: Numbers, wanted: Wanted) -> Parts:
    """Read rows of item, item, value[, weight]; a first row whose value is text is a header."""
    places: dict[str, int] = {}
    first, second = array("q"), array("q")
    values, weights = array("d"), array("d")
    header: list[str] | None = None
    width = top_number = 0
    for number, cells in all_rows:
        width = width or len(cells)
        if width not in (3, 4):
            raise ValueError(f"the table must be a square or a list of pairs, got {width} columns: {TWO_LAYOUTS}.")
        _refuse_width(number, cells, width)
        try:
            found = numbers.read(cells[2:])
        except NotANumberError as error:
            if not values and header is None:
                header, top_number = cells, number
                _check_header(header)
                continue
            raise _text_error(number, cells, 2 + error.place, header, numbers.dialect) from None
        for place in (0, 1):
            if not cells[place].strip():
                raise _nameless(number, place)
        first.append(places.setdefault(cells[0], len(places)))
        second.append(places.setdefault(cells[1], len(places)))
        values.append(found[0])
        weights.extend(found[1:])
    if not values:
        raise ValueError("the file must list at least one pair, got a header only.")
    if header is not None and not _names_value(header) and not places.keys().isdisjoint(header[:2]):
        # Its items also occur in other rows, so it is a pair and not a header.
        raise _text_error(top_number, header, 2, None, numbers.dialect)
    names, column = list(map(unguarded, places)), None if header is None else header[2].strip()
    pairs = (np.array(first, dtype=np.intp), np.array(second, dtype=np.intp))
    given = (np.array(values), np.array(weights) if weights else None)
    return from_pairs(names, *pairs, *given, labels=wanted.labels, absent=wanted.absent, column=column)


def _frame_pairs(frame: Any, wanted: Wanted) -> Parts:
    import pandas as pd

    n_rows, n_columns = frame.shape
    if n_columns not in (3, 4) or not n_rows:
        got = f"{n_rows} rows and {n_columns} columns"
        raise ValueError(f"the table must be a list of pairs, got {got}: {TWO_LAYOUTS}.")
    _check_header([str(column) for column in frame.columns])
    items = pd.concat([frame.iloc[:, 0], frame.iloc[:, 1]], ignore_index=True)
    if (nameless := items.isna().to_numpy()).any():
        place, row = divmod(int(np.argmax(nameless)), n_rows)
        raise _nameless(row + 1, place)
    # Rows first, then columns: the order of first appearance.
    codes, names = pd.factorize(items.map(str).to_numpy(dtype=object).reshape(2, n_rows).T.ravel())
    frame = without_missing(frame, frame.columns[2:], wanted.how)
    values, *weights = (read_numbers(frame, column) for column in frame.columns[2:])
    pairs, column = (codes[0::2].astype(np.intp), codes[1::2].astype(np.intp)), str(frame.columns[2])
    given = (values, weights[0] if weights else None)
    return from_pairs(list(names), *pairs, *given, labels=wanted.labels, absent=wanted.absent, column=column)


def _check_header(header: Sequence[str]) -> None:
    """Refuse a list of pairs whose column names show that they are not item, item, value and weight."""
    if len(header) != 4:
        return
    has_value_last = header[3].strip().lower() in VALUE_WORDS - {"weight"} and not _names_value(header)
    if not header[0].strip() or has_value_last or what_else(header[3]) is not None:
        got = f"the header {', '.join(map(repr, header))}"
        remedy = "remove other columns, such as row numbers or response times"
        raise ValueError(f"the columns of a list of pairs must be item, item, value[, weight], got {got}: {remedy}.")


def _nameless(number: int, place: int) -> ValueError:
    return ValueError(f"each row must name two items, got none in row {number}, column {place + 1}.")


def _read_square(all_rows: Iterator[Row], numbers: Numbers) -> Parts:
    """Read a square of numbers with labels in the first row, the first column, both or neither."""
    dialect = numbers.dialect
    (number, top), following = next(all_rows), next(all_rows, None)
    width = len(top) if following is None else len(following[1])
    top = ["item", *top] if len(top) == width - 1 > 0 else top  # without a cell above the labels
    _refuse_width(number, top, width)
    header = top if mostly_text(top[1:], dialect) else None
    require(8 * width**2, f"A table of {width} columns", "save it as .npy in float32, or list its pairs")
    table = np.empty((width + 1, width))
    side, numbered = [top[0]], [number]

    def read(number: int, cells: Sequence[str], start: int, header: Sequence[str] | None) -> list[float]:
        try:
            return numbers.read(cells[start:])
        except NotANumberError as error:
            raise _text_error(number, cells, start + error.place, header, dialect) from None

    for number, cells in () if following is None else chain([following], all_rows):
        _refuse_width(number, cells, width)
        if len(side) > width:
            raise _shape_error(len(side) + 1 + sum(1 for _ in all_rows), width)
        table[len(side), 1:] = read(number, cells, 1, header)
        side.append(cells[0])
        numbered.append(number)
    table = table[: len(side)]
    if _ends_empty(table, top, side, dialect):
        table, top = table[:, :-1], top[:-1]
    above, beside = _named_sides(table, top, side, dialect)
    if not above:
        table[0, beside:] = read(numbered[0], top, beside, None)
    if not beside:
        for row in range(above, len(side)):
            table[row, 0] = read(numbered[row], [side[row]], 0, header)[0]
    return _square_parts(table, top, side, above, beside)


def _ends_empty(table: NDArray[np.float64], top: list[str], side: list[str], dialect: Dialect) -> bool:
    """Whether the last column is empty only because every line ends in a separator."""
    n_rows, width = table.shape
    if width == 1 or top[-1].strip() or not np.isnan(table[1:, -1]).all():
        return False
    excess = mostly_text(top[1:-1], dialect) - mostly_text(side[1:], dialect)  # of rows over columns, by the labels
    return n_rows == width - 1 + excess


def _named_sides(table: NDArray[np.float64], top: list[str], side: list[str], dialect: Dialect) -> tuple[bool, bool]:
    """Whether the first row and the first column are labels, so that the rest is square."""
    n_rows, width = table.shape
    both_text = mostly_text(top[1:], dialect) and mostly_text(side[1:], dialect)
    if both_text and n_rows != width:
        raise _shape_error(n_rows - 1, width - 1)
    if n_rows != width:
        if abs(n_rows - width) > 1 or not _may_be_names(top if n_rows > width else side, dialect):
            raise _shape_error(n_rows, width)
        return n_rows > width, n_rows < width
    named = both_text or (n_rows > 1 and top[0].strip().lower() in LABEL_WORDS)
    if n_rows > 1 and not named and top[1:] == side[1:] and _may_be_names(side[1:], dialect):
        inner = table[1:, 1:]
        # Integers beside an empty first cell are similarities if the rest is integer too, with an empty diagonal.
        continues = np.isnan(inner.diagonal()).all() and np.array_equal(inner, np.round(inner), equal_nan=True)
        is_corner = is_text(top[0], dialect) or (not top[0].strip() and not continues)
        named = is_corner or any(is_text(name, dialect) for name in side[1:])
    return named, named


def _may_be_names(cells: list[str], dialect: Dialect) -> bool:
    """Whether cells are distinct words (including "NA") or integers without a decimal sign."""
    are_names = all(is_text(cell, dialect) or is_missing(cell) or cell.strip().isdigit() for cell in cells)
    return are_names and len(set(cells)) == len(cells)


def _square_parts(table: NDArray[np.float64], top: list[str], side: list[str], above: bool, beside: bool) -> Parts:
    names_above, names_beside = top[beside:], side[above:]
    values = np.ascontiguousarray(table[above:, beside:])
    info = {}
    if above and beside and names_above != names_beside:
        names_above, names_beside = ([name.strip() for name in names] for names in (names_above, names_beside))
        if names_above != names_beside and sorted(names_above) == sorted(set(names_beside)):
            columns = {name: place for place, name in enumerate(names_above)}
            values = np.ascontiguousarray(values[:, [columns[name] for name in names_beside]])
            names_above, info = names_beside, {"aligned": ALIGNED}
        for place, (one, other) in enumerate(zip(names_above, names_beside, strict=True)):
            if one != other:
                got = f"{one!r} instead of {other!r} in place {place + 1}"
                raise ValueError(f"the first row must name the same items as the first column, got {got}.")
    named_by = {(1, 1): "the first row and column", (1, 0): "the first row", (0, 1): "the first column"}
    where = named_by.get((above, beside), "nothing")
    labels = tuple(map(unguarded, names_above if above else names_beside)) if above or beside else None
    if above and beside and not top[0].strip() and labels == tuple(map(str, range(len(values)))):
        labels = None  # pandas' default names of rows and columns
    kind = "no labels" if labels is None else f"labels in {where}"
    info = {"found": f"a square table of {len(values)} items with {kind}", **info}
    return Parts(values, labels, named_by=where, info=info)


def _frame_square(frame: Any, wanted: Wanted) -> Parts:
    frame = _with_label_index(frame)
    frame = without_missing(frame, frame.columns, wanted.how)
    n_rows, n_columns = frame.shape
    if n_rows != n_columns:
        raise _shape_error(n_rows, n_columns)
    # Parquet stores column names as text, so unnamed columns are "0", "1", "2", ...
    if list(map(str, frame.columns)) == list(map(str, range(n_columns))):
        frame = frame.set_axis(range(n_columns), axis="columns")
    return Parts(frame, info={"found": f"a square table of {n_rows} items"})


def _with_label_index(frame: Any) -> Any:
    """Use the first column as the index if that makes the frame square."""
    n_rows, n_columns = frame.shape
    return frame.set_index(frame.columns[0]) if n_rows == n_columns - 1 else frame


def _refuse_width(number: int, cells: Sequence[str], width: int) -> None:
    if len(cells) != width:
        got = f"{len(cells)} {plural('cell', len(cells))} in row {number} and {width} in others"
        remedy = "the file may be cut short, or text that contains a separator may lack quotes"
        raise ValueError(f"all rows must have equal length, got {got}: {remedy}.")


def _shape_error(n_rows: int, n_columns: int) -> ValueError:
    shape = f"{n_rows} {plural('row', n_rows)} and {n_columns} {plural('column', n_columns)}"
    return ValueError(f"the table must be square, got {shape}: {TWO_LAYOUTS}.")


def _text_error(
    number: int, cells: Sequence[str], place: int, header: Sequence[str] | None, dialect: Dialect
) -> ValueError:
    row = f" ({cells[0]!r})" if place > 0 and is_text(cells[0], dialect) else ""
    column = f" ({header[place]!r})" if header is not None else ""
    return ValueError(
        f"cells must hold numbers, got the text {cells[place]!r} in row {number}{row}, column {place + 1}{column}: "
        f"{advice(cells[place], dialect.decimal)}. {TWO_LAYOUTS[0].upper()}{TWO_LAYOUTS[1:]}."
    )
