"""How a table lays out similarities: a square with or without labels, or a list of pairs, found out by its shape."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simdims._cells import advice, is_missing
from simdims._checks import plural
from simdims._memory import require
from simdims._tables import what_else
from simdims.io.pairs import from_pairs
from simdims.io.text import (
    N_HEAD,
    DecimalCommaError,
    Dialect,
    NotANumberError,
    Numbers,
    Row,
    edges,
    find_dialect,
    find_encoding,
    is_text,
    mostly_text,
    rows,
    unguarded,
)
from simdims.similarity import Parts

# What a column of labels and one of values are called wherever they are called anything.
CORNER_WORDS = {"item", "items", "label", "labels", "name", "names", "id"}
VALUE_WORDS = {"value", "values", "similarity", "sim", "score", "rating", "weight"}
TWO_FORMS = (
    "a square table has one row and one column per item, beside labels; a list of pairs has the 3 or 4 columns item, "
    "item, value[, weight]"
)


def read_table(
    path: Path,
    *,
    form: str | None,
    labels: Sequence[str] | None,
    absent: str | float | None,
    symmetrize: str | None,
) -> Parts:
    """Read a text file that holds a square table or a list of pairs; with `form` None, find out which."""
    dialect = find_dialect(path)
    try:
        parts = _read(path, dialect, form, labels, absent, symmetrize)
    except DecimalCommaError:
        dialect = dialect._replace(decimal=",")
        parts = _read(path, dialect, form, labels, absent, symmetrize)
    return parts._replace(info={**parts.info, "found": f"{parts.info['found']}; {dialect}"})


def read_edge_list(path: Path, *, labels: Sequence[str] | None, absent: str | float | None) -> Parts:
    """Read the edges of a graph as a list of pairs."""
    dialect = Dialect(find_encoding(path), ",")  # the commas of edge lists are never decimal signs
    return _read_pairs(edges(path, dialect.encoding), Numbers(dialect), labels, absent)


def is_long(
    square: NDArray[np.float64] | None, n_pairs: int | None, *, names_value: bool, symmetrize: str | None
) -> bool:
    """Say whether a table of few rows that could be a list of `n_pairs` pairs is one, rather than the square given."""
    if square is None or n_pairs is None:
        return square is None
    if names_value:
        return True
    other = square.T
    if symmetrize is not None or not np.any(np.abs(square - other) > 0):  # NaN where one side is missing
        return False
    raise ValueError(
        f'form must say whether this is "square", a matrix of {len(square)} items that is not symmetric, or "long", a '
        f"list of {n_pairs} pairs, got None: it could be either."
    )


def check_header(header: Sequence[str]) -> None:
    """Refuse a list of pairs whose columns are, by their names, other ones than item, item, value and weight."""
    is_numbered = not header[0].strip()
    has_value_last = len(header) == 4 and header[3].strip().lower() in VALUE_WORDS - {"weight"}
    has_other_last = len(header) == 4 and what_else(header[3]) is not None
    if len(header) == 4 and (is_numbered or has_other_last or (has_value_last and not _names_value(header))):
        raise ValueError(
            "the columns of a list of pairs must be item, item, value[, weight], got the header "
            f"{', '.join(map(repr, header))}: leave out other columns, such as row numbers or response times."
        )


def _read(
    path: Path,
    dialect: Dialect,
    form: str | None,
    labels: Sequence[str] | None,
    absent: str | float | None,
    symmetrize: str | None,
) -> Parts:
    all_rows = rows(path, dialect)
    head = list(islice(all_rows, N_HEAD))
    if not head:
        raise ValueError("this must hold a table, got blank lines only.")
    if form is None:
        form = "long" if _looks_long(head, dialect, symmetrize) else "square"
    all_rows, numbers = chain(head, all_rows), Numbers(dialect)
    parts = _read_pairs(all_rows, numbers, labels, absent) if form == "long" else _read_square(all_rows, numbers)
    numbers.finish()
    return parts


def _looks_long(head: list[Row], dialect: Dialect, symmetrize: str | None) -> bool:
    top, below = head[0][1], head[min(1, len(head) - 1)][1]
    width = len(below)
    if width not in (3, 4) or len(head) > width + 1:
        return width in (3, 4)
    square = _attempt(lambda: _read_square(iter(head), Numbers(dialect)))
    pairs = _attempt(lambda: _read_pairs(iter(head), Numbers(dialect), None, None))
    if square is None and pairs is None:
        return is_text(below[1], dialect)  # the sentence about pairs is then more to the point
    if square is not None and square.labels is not None and tuple(top[1:]) == square.labels:
        return False
    names = [cell.strip() for _, cells in head[1:] for cell in cells[:2]]
    names_value = _names_value(top)
    names_items = names_value or all(is_text(name, dialect) or name.isdigit() for name in names)
    return is_long(
        None if square is None else square.values,
        len(head) if pairs is not None and names_items else None,
        names_value=names_value,
        symmetrize=symmetrize,
    )


def _names_value(header: Sequence[str]) -> bool:
    return len(header) > 2 and header[2].strip().lower() in VALUE_WORDS


def _attempt(read: Callable[[], Parts]) -> Parts | None:
    try:
        return read()
    except ValueError:
        return None


def _read_pairs(
    all_rows: Iterator[Row], numbers: Numbers, labels: Sequence[str] | None, absent: str | float | None
) -> Parts:
    """Read rows of item, item, value[, weight]; a first row whose value is text is a header."""
    places: dict[str, int] = {}
    first, second = array("q"), array("q")
    values, weights = array("d"), array("d")
    header: list[str] | None = None
    width = top_number = 0
    for number, cells in all_rows:
        width = width or len(cells)
        if width not in (3, 4):
            raise ValueError(f"this must be a square table or a list of pairs, got {width} columns: {TWO_FORMS}.")
        _refuse_width(number, cells, width)
        try:
            found = numbers.read(cells[2:])
        except NotANumberError as error:
            if not values and header is None:
                header, top_number = cells, number
                check_header(header)
                continue
            raise _text_error(number, cells, 2 + error.place, header, numbers.dialect) from None
        for place in (0, 1):
            if not cells[place].strip():
                raise ValueError(f"each row must name two items, got none in row {number}, column {place + 1}.")
        first.append(places.setdefault(cells[0], len(places)))
        second.append(places.setdefault(cells[1], len(places)))
        values.append(found[0])
        weights.extend(found[1:])
    if not values:
        raise ValueError("this must hold at least one pair, got a header only.")
    if header is not None and not _names_value(header) and not places.keys().isdisjoint(header[:2]):
        # It names items that others name too, so it is a pair and not a header.
        raise _text_error(top_number, header, 2, None, numbers.dialect)
    parts = from_pairs(
        list(map(unguarded, places)),
        np.array(first, dtype=np.intp),
        np.array(second, dtype=np.intp),
        np.array(values),
        np.array(weights) if weights else None,
        labels=labels,
        absent=absent,
    )
    weighted = " with weights" if weights else ""
    column = {} if header is None else {"column": header[2].strip()}
    return parts._replace(
        named_by="the list of pairs",
        info={"found": f"a list of {len(values)} pairs of {len(places)} items{weighted}", **column},
    )


def _read_square(all_rows: Iterator[Row], numbers: Numbers) -> Parts:
    """Read a square of numbers with labels above it, beside it, on both sides or nowhere."""
    dialect = numbers.dialect
    (number, top), following = next(all_rows), next(all_rows, None)
    width = len(top) if following is None else len(following[1])
    lacks_corner = len(top) == width - 1 > 0
    top = ["item", *top] if lacks_corner else top
    _refuse_width(number, top, width)
    header = top if mostly_text(top[1:], dialect) else None
    require(8 * width**2, f"A table of {width} columns", "save it as .npy in float32, or list its pairs")
    table = np.empty((width + 1, width))
    side, numbered = [top[0]], [number]
    for number, cells in () if following is None else chain([following], all_rows):
        _refuse_width(number, cells, width)
        if len(side) > width:
            raise _shape_error(len(side) + 1 + sum(1 for _ in all_rows), width)
        try:
            table[len(side), 1:] = numbers.read(cells[1:])
        except NotANumberError as error:
            raise _text_error(number, cells, 1 + error.place, header, dialect) from None
        side.append(cells[0])
        numbered.append(number)
    table = table[: len(side)]
    if _ends_empty(table, top, side, dialect):
        table, top = table[:, :-1], top[:-1]
    above, beside = _named_sides(table, top, side, dialect)
    try:
        if not above:
            table[0, beside:] = numbers.read(top[beside:])
    except NotANumberError as error:
        raise _text_error(numbered[0], top, beside + error.place, None, dialect) from None
    try:
        if not beside:
            table[above:, 0] = numbers.read(side[above:])
    except NotANumberError as error:
        raise _text_error(numbered[above + error.place], side[above + error.place :], 0, header, dialect) from None
    return _square_parts(table, top, side, above, beside)


def _ends_empty(table: NDArray[np.float64], top: list[str], side: list[str], dialect: Dialect) -> bool:
    """Whether the last column is there only because every line ends in a separator."""
    n_rows, width = table.shape
    if width == 1 or top[-1].strip() or not np.isnan(table[1:, -1]).all():
        return False
    excess = mostly_text(top[1:-1], dialect) - mostly_text(side[1:], dialect)  # of rows over columns, by the labels
    return n_rows == width - 1 + excess


def _named_sides(table: NDArray[np.float64], top: list[str], side: list[str], dialect: Dialect) -> tuple[bool, bool]:
    """Whether the first row and the first column are labels, which makes the rest square."""
    n_rows, width = table.shape
    both_text = mostly_text(top[1:], dialect) and mostly_text(side[1:], dialect)
    if both_text and n_rows != width:
        raise _shape_error(n_rows - 1, width - 1)
    if n_rows != width:
        if abs(n_rows - width) > 1 or not _may_be_names(top if n_rows > width else side, dialect):
            raise _shape_error(n_rows, width)
        return n_rows > width, n_rows < width
    named = both_text or (n_rows > 1 and top[0].strip().lower() in CORNER_WORDS)
    if n_rows > 1 and not named and top[1:] == side[1:] and _may_be_names(side[1:], dialect):
        inner = table[1:, 1:]
        # Whole numbers beside an empty first cell are similarities where they and an empty diagonal go on.
        goes_on = np.isnan(inner.diagonal()).all() and np.array_equal(inner, np.round(inner), equal_nan=True)
        is_corner = is_text(top[0], dialect) or (not top[0].strip() and not goes_on)
        named = is_corner or any(is_text(name, dialect) for name in side[1:])
    return named, named


def _may_be_names(cells: list[str], dialect: Dialect) -> bool:
    """Whether cells are distinct words, "NA" among them, or whole numbers without a decimal sign."""
    are_names = all(is_text(cell, dialect) or is_missing(cell) or cell.strip().isdigit() for cell in cells)
    return are_names and len(set(cells)) == len(cells)


def _square_parts(table: NDArray[np.float64], top: list[str], side: list[str], above: bool, beside: bool) -> Parts:
    names_above, names_beside = top[beside:], side[above:]
    if above and beside and names_above != names_beside:
        names_above, names_beside = ([name.strip() for name in names] for names in (names_above, names_beside))
        for place, (one, other) in enumerate(zip(names_above, names_beside, strict=True)):
            if one != other:
                raise ValueError(
                    "the first row must name the same items as the first column, in the same order, got "
                    f"{one!r} instead of {other!r} in place {place + 1}."
                )
    named_by = {(1, 1): "the first row and column", (1, 0): "the first row", (0, 1): "the first column"}
    where = named_by.get((above, beside), "nothing")
    values = np.ascontiguousarray(table[above:, beside:])
    labels = tuple(map(unguarded, names_above if above else names_beside)) if above or beside else None
    if above and beside and not top[0].strip() and labels == tuple(map(str, range(len(values)))):
        labels = None  # as pandas numbers rows and columns that have no names
    kind = "no labels" if labels is None else f"labels in {where}"
    return Parts(values, labels, named_by=where, info={"found": f"a square table of {len(values)} items with {kind}"})


def _refuse_width(number: int, cells: Sequence[str], width: int) -> None:
    if len(cells) != width:
        got = f"{len(cells)} {plural('cell', len(cells))} in row {number} and {width} in others"
        raise ValueError(
            f"all rows must have one length, got {got}: the file may be cut short, or a text with a separator in it "
            "may lack its quotes."
        )


def _shape_error(n_rows: int, n_columns: int) -> ValueError:
    shape = f"{n_rows} {plural('row', n_rows)} and {n_columns} {plural('column', n_columns)}"
    return ValueError(f"this must be square, got {shape}: {TWO_FORMS}.")


def _text_error(
    number: int, cells: Sequence[str], place: int, header: Sequence[str] | None, dialect: Dialect
) -> ValueError:
    row = f" ({cells[0]!r})" if place > 0 and is_text(cells[0], dialect) else ""
    column = f" ({header[place]!r})" if header is not None else ""
    return ValueError(
        f"cells must hold numbers, got the text {cells[place]!r} in row {number}{row}, column {place + 1}{column}: "
        f"{advice(cells[place], dialect.decimal)}. {TWO_FORMS[0].upper()}{TWO_FORMS[1:]}."
    )
