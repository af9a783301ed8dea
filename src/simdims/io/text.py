"""Text files as rows of cells, and cells as numbers: encoding, separator and decimal sign are found out."""

from __future__ import annotations

import ast
import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simdims._cells import DECIMAL_COMMA, could_be_thousands, is_missing, number
from simdims._parameters import plural

if TYPE_CHECKING:
    import pandas as pd

ENCODINGS = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "latin-1": "Latin-1"}
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", None: "blanks"}
# What a spreadsheet runs as a formula, and what is a number all the same; apostrophes before it are text everywhere.
FORMULA = re.compile(r"('*)[=+\-@\t\r]")
PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
# Rows that are looked at to tell separators apart, and square tables from lists of pairs.
N_HEAD = 8

Row = tuple[int, list[str]]  # the number that a person gives it, from 1, and its cells


class Dialect(NamedTuple):
    """How a text file spells a table; `separator` None is any blanks."""

    encoding: str
    separator: str | None
    decimal: str = "."

    def __str__(self) -> str:
        decimal = ", decimal commas" if self.decimal == "," else ""
        return f"{ENCODINGS[self.encoding]} text separated by {SEPARATORS[self.separator]}{decimal}"


class NotANumberError(Exception):
    """A cell, by its place in a row, is neither a number nor missing."""

    def __init__(self, place: int) -> None:
        self.place = place


class DecimalCommaError(Exception):
    """The numbers are written with a decimal comma."""


def guarded(text: str) -> str:
    """A text as a cell of a .csv file: one more apostrophe before what a spreadsheet would take for a formula."""
    return f"'{text}" if FORMULA.match(text) and not PLAIN_NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The text that `guarded` made a cell of."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def write_csv(table: pd.DataFrame, path: Path, encoding: str = "utf-8") -> None:
    """Write a table without its index; texts are guarded, and quoted where a reader could split or strip them."""
    cells = table.rename(columns=_guarded_cell)
    is_delicate = False
    for column in cells.columns[[dtype.kind not in "biuf" for dtype in cells.dtypes]]:
        is_delicate |= any("\r" in cell or cell[:1].isspace() for cell in map(str, cells[column]))
        cells[column] = cells[column].map(_guarded_cell)
    quoting: Any = csv.QUOTE_NONNUMERIC if is_delicate else csv.QUOTE_MINIMAL
    cells.to_csv(path, index=False, encoding=encoding, quoting=quoting)


def _guarded_cell(cell: Any) -> Any:
    return guarded(cell) if isinstance(cell, str) else cell


def find_dialect(path: Path) -> Dialect:
    """Return how a file spells a table; a decimal comma is found only where numbers are read."""
    encoding = find_encoding(path)
    return Dialect(encoding, _separator(path, encoding))


def find_encoding(path: Path) -> str:
    """Return UTF-16 where the file says so, else UTF-8 if all of it is, else Latin-1, in which anything is text."""
    decoder, encoding = codecs.getincrementaldecoder("utf-8")(), "utf-8-sig"
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        file.seek(0)
        while chunk := file.read(2**20):
            if b"\0" in chunk:
                raise ValueError("this must be a text file, got NUL bytes: it is of another type, or damaged.")
            if encoding == "latin-1":
                continue
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                encoding = "latin-1"
    if decoder.getstate()[0]:  # ends within a character
        return "latin-1"
    return encoding


def rows(path: Path, dialect: Dialect) -> Iterator[Row]:
    """Give the rows that are not blank."""
    with path.open(encoding=dialect.encoding, newline="") as file:
        lines: Iterable[list[str]]
        if dialect.separator is None:
            lines = (line.split() for line in file)
        else:
            lines = csv.reader(file, delimiter=dialect.separator, skipinitialspace=True, strict=True)
        number = 0
        try:
            for number, cells in enumerate(lines, start=1):
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield number, cells
        except csv.Error as error:
            raise ValueError(f"row {number + 1} must be proper CSV, got one that is not ({error}).") from None
        except UnicodeError:
            raise ValueError(f"this must be {ENCODINGS[dialect.encoding]} text, got other bytes.") from None


def edges(path: Path, encoding: str) -> Iterator[Row]:
    """Give the edges of an edge list as two nodes, a value and, if there is one, a weight.

    An edge without a number has the value 1; one with a dictionary, as networkx writes it, the one of its "weight".
    """
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
                raise ValueError(
                    "a line of an edge list must hold two nodes and, if there is one, a number, got "
                    f"{len(cells)} {plural('cell', len(cells))} in line {number}."
                )
            yield number, cells if len(cells) > 2 else [*cells, "1"]


class Numbers:
    """Reads cells as numbers, and remembers how they are written, so that 1,234 is never misread.

    Where commas separate cells a comma is no part of a number. Elsewhere it may be a decimal sign or separate
    thousands, and so may a point beside semicolons, as spreadsheets write them where the comma is the decimal sign.
    Numbers that all look like 1,234 beside whole numbers could be either.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._is_doubtful = dialect.separator != "," and (dialect.separator == ";" or dialect.decimal == ",")
        # Beside semicolons the comma is the usual decimal sign: 2,333 beside 3 is plain, beside 970 it is not.
        self._fewest_digits = 3 if dialect.separator == ";" and dialect.decimal == "," else 1
        self._grouped = ""
        self._has_whole = False

    def read(self, cells: Sequence[str]) -> list[float]:
        """Return cells as numbers, NaN where one is missing."""
        try:
            # Python reads 1_000 as a number; a table that holds it means something else.
            if self.dialect.decimal == "." and not self._is_doubtful and "_" not in "".join(cells):
                return list(map(float, cells))
        except ValueError:
            pass
        found = []
        for place, cell in enumerate(cells):
            value = _number(cell, self.dialect)
            if value is None:
                raise NotANumberError(place)
            found.append(value)
            if self._is_doubtful and not is_missing(cell):
                self._look_at(cell.strip())
        return found

    def finish(self) -> None:
        """Refuse numbers that, when all are read, could still be either."""
        if self._is_doubtful and self._grouped and self._has_whole:
            mark = self.dialect.decimal
            raise ValueError(
                f"numbers must be unambiguous, got {self._grouped!r} beside whole numbers, where "
                f"{'the comma' if mark == ',' else 'the point'} could be a decimal sign or separate thousands: write "
                f"numbers without thousands separators, and all decimals with a decimal sign (2{mark}0)."
            )

    def _look_at(self, text: str) -> None:
        if could_be_thousands(text, self.dialect.decimal):
            self._grouped = self._grouped or text
        elif (digits := text.lstrip("+-")).isdigit():
            self._has_whole = self._has_whole or len(digits) >= self._fewest_digits
        else:
            self._is_doubtful = False  # other decimals show what the sign means


def is_text(cell: str, dialect: Dialect) -> bool:
    """Say whether a cell is neither a number nor missing."""
    try:
        return _number(cell, dialect) is None
    except DecimalCommaError:
        return False


def mostly_text(cells: Sequence[str], dialect: Dialect) -> bool:
    """Say whether more than half of some cells are text, so that they may be names."""
    return 2 * sum(is_text(cell, dialect) for cell in cells) > len(cells)


def _number(cell: str, dialect: Dialect) -> float | None:
    text = cell.strip()
    if is_missing(text):
        return number(text)
    comma = dialect.separator != "," and DECIMAL_COMMA.fullmatch(text)
    if dialect.decimal == "," and (comma or "." not in text):
        return number(text.replace(",", "."))
    if comma:
        raise DecimalCommaError
    # A point in a file of decimal commas may well separate thousands.
    return None if dialect.decimal == "," else number(text)


def _separator(path: Path, encoding: str) -> str | None:
    """The first of tab, semicolon and comma that makes rows of one length which end in numbers, or of one length."""
    heads = {mark: _head(path, Dialect(encoding, mark)) for mark in ("\t", ";", ",")}
    even = [mark for mark, head in heads.items() if _is_even(head)]
    for mark in even:
        if not any(is_text(cells[-1], Dialect(encoding, mark)) for cells in heads[mark][1:]):
            return mark
    splitting = even or [mark for mark, head in heads.items() if any(len(cells) > 1 for cells in head)]
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    if not splitting and sum(len(cells) > 1 for cells in _head(path, Dialect(encoding, None))) > 1:
        return None
    return usual if usual in splitting or not splitting else splitting[0]


def _head(path: Path, dialect: Dialect) -> list[list[str]]:
    try:
        return [cells for _, cells in islice(rows(path, dialect), N_HEAD)]
    except ValueError:
        return []


def _is_even(head: list[list[str]]) -> bool:
    """Whether rows have one length; a header may lack the cell above the labels."""
    width = len(head[-1]) if head else 0
    return width > 1 and all(len(cells) == width for cells in head[1:]) and len(head[0]) in (width, width - 1)


def _edge_weight(number: int, attributes: str) -> str:
    try:
        return str(ast.literal_eval(attributes).get("weight", 1))
    except (ValueError, SyntaxError, AttributeError, TypeError, RecursionError, MemoryError):
        raise ValueError(
            f"the attributes of an edge must be a dictionary of plain values, got {attributes[:60]!r} in line {number}."
        ) from None
