"""Tables in files of every type: detect encoding, separator, decimal sign, header and missing values."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._cells import DECIMAL_COMMA, MISSING_SPELLINGS, could_be_thousands, is_missing, number, resembles_number
from simdims._parameters import ParameterError
from simdims._tables import FILE_ROW, not_numbers, read_numbers
from simdims.io.arrays import reading
from simdims.io.frames import FRAMES, read_frame
from simdims.io.sheets import SHEETS, Rows, read_cells

if TYPE_CHECKING:
    import pandas as pd

ENCODINGS = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "latin-1": "Latin-1"}
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", None: "blanks"}

# The separator of a sheet in .csv format: with a comma, numbers could not have decimal commas.
_SHEET_SEPARATOR = "\t"

# Rows used to distinguish separators, and square tables from lists of pairs.
N_HEAD = 8
# Rows of a sample. Tables of more than 20 columns are squares or features, for which a few rows suffice.
MOST_ROWS, MOST_COLUMNS, FEW_ROWS = 200_000, 20, 50
# Rows used to detect which columns below a header are numeric.
N_BELOW_HEADER = 1000
# Largest share of words in a numeric column, where they are taken for mistakes.
FEW_WORDS = 0.25

# Names of label columns, and of those that name items even if the names are numbers, such as years.
LABEL_WORDS = {"item", "items", "label", "labels", "name", "names", "id"}
NAMING_WORDS = LABEL_WORDS | {"word", "words", "concept", "object", "stimulus", "image", "category"}

# Text that spreadsheets run as a formula, and exceptions that are numbers; a leading apostrophe marks text.
FORMULA = re.compile(r"('*)[=+\-@\t\r]")
PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)

Row = tuple[int, list[str]]  # row number, from 1, and cells


class Reading(NamedTuple):
    """What to read of a file: the sheet or R object, and additional markers of missing values."""

    sheet: str | None = None
    na_values: tuple[str, ...] = ()
    key: str | None = None

    @property
    def missing(self) -> frozenset[str | float]:
        """The additional markers as text and, if numeric, also as numbers: -99 is -99.0."""
        numbers = {value for text in self.na_values if (value := number(text)) is not None}
        return frozenset({*self.na_values, *numbers})


PLAIN = Reading()


class Dialect(NamedTuple):
    """The text format of a table; `separator` None is any whitespace.

    `missing` are additional markers of missing values, as text and numbers. `cells` are the rows of a sheet.
    """

    encoding: str
    separator: str | None
    decimal: str = "."
    missing: frozenset[str | float] = frozenset()
    cells: Rows | None = None
    sheet: str = ""

    def is_missing(self, text: str) -> bool:
        """Whether a text marks a missing value."""
        if is_missing(text) or not self.missing:
            return is_missing(text)
        written = text.replace(",", ".") if self.decimal == "," else text
        return text.strip() in self.missing or number(written) in self.missing

    def __str__(self) -> str:
        if self.cells is not None:
            return self.sheet
        decimal = ", decimal commas" if self.decimal == "," else ""
        return f"{ENCODINGS[self.encoding]} text separated by {SEPARATORS[self.separator]}{decimal}"


class NotANumberError(Exception):
    """The cell at `place` in a row is neither a number nor missing."""

    def __init__(self, place: int) -> None:
        self.place = place


class DecimalCommaError(Exception):
    """Numbers have decimal commas."""


def find_dialect(path: Path, how: Reading) -> Dialect:
    """Detect encoding and separator, or read a sheet; decimal commas are detected only when numbers are read."""
    if path.suffix.lower() in SHEETS:
        sheet, cells = read_cells(path, how.sheet)
        return Dialect("utf-8-sig", _SHEET_SEPARATOR, missing=how.missing, cells=cells, sheet=sheet)
    encoding = find_encoding(path)
    return Dialect(encoding, _find_separator(path, encoding), missing=how.missing)


def find_encoding(path: Path) -> str:
    """Return UTF-16 if the file starts with a byte order mark, else UTF-8 if it is valid, else Latin-1."""
    decoder, encoding = codecs.getincrementaldecoder("utf-8")(), "utf-8-sig"
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        file.seek(0)
        while chunk := file.read(2**20):
            if b"\0" in chunk:
                raise ValueError("the file must be text, got NUL bytes: it has another type, or is damaged.")
            if encoding == "latin-1":
                continue
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                encoding = "latin-1"
    return "latin-1" if decoder.getstate()[0] else encoding  # the file ends within a character


def rows(path: Path, dialect: Dialect) -> Iterator[Row]:
    """Yield the nonblank rows."""
    if dialect.cells is not None:
        yield from dialect.cells
        return
    with path.open(encoding=dialect.encoding, newline="") as file:
        lines: Iterable[list[str]] = (
            (line.split() for line in file)
            if dialect.separator is None
            else csv.reader(file, delimiter=dialect.separator, skipinitialspace=True, strict=True)
        )
        number = 0
        try:
            for number, cells in enumerate(lines, start=1):
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield number, cells
        except csv.Error as error:
            raise ValueError(f"row {number + 1} must be valid CSV, got a row that is not ({error}).") from None
        except UnicodeError:
            raise ValueError(f"the file must be {ENCODINGS[dialect.encoding]} text, got other bytes.") from None


class Numbers:
    """Read cells as numbers, and track their format so that 1,234 is never misread.

    If commas separate cells, a comma is not part of a number. Otherwise it may be a decimal sign or a thousands
    separator, as may a point in a semicolon-separated file, which spreadsheets write if the comma is the decimal sign.
    If all numbers with a comma look like 1,234 and the rest are integers, the table is ambiguous.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._is_doubtful = dialect.separator != "," and (dialect.separator == ";" or dialect.decimal == ",")
        # With semicolons, a comma is usually the decimal sign: 2,333 is clear beside 3, but not beside 970.
        self._fewest_digits = 3 if dialect.separator == ";" and dialect.decimal == "," else 1
        self._grouped = ""
        self._has_whole = False

    def read(self, cells: Sequence[str]) -> list[float]:
        """Return cells as numbers, NaN if missing."""
        try:
            # Python reads 1_000 as a number, but in a table it is text.
            is_plain = self.dialect.decimal == "." and not self._is_doubtful and not self.dialect.missing
            if is_plain and "_" not in "".join(cells):
                return list(map(float, cells))
        except ValueError:
            pass
        found = []
        for place, cell in enumerate(cells):
            value = _number(cell, self.dialect)
            if value is None:
                raise NotANumberError(place)
            found.append(value)
            if self._is_doubtful and not self.dialect.is_missing(cell):
                self._note_format(cell.strip())
        return found

    def finish(self) -> None:
        """Refuse numbers that are still ambiguous after the last row."""
        is_sheet = self.dialect.cells is not None  # in which a comma is rarer than in a text file
        if self._is_doubtful and self._grouped and (self._has_whole or is_sheet):
            mark = self.dialect.decimal
            raise ValueError(
                f"numbers must be unambiguous, got {self._grouped!r}{' beside whole numbers' * self._has_whole}, where "
                f"{'the comma' if mark == ',' else 'the point'} could be a decimal sign or separate thousands: write "
                f"numbers without thousands separators, and all decimals with a decimal sign (2{mark}0)."
            )

    def _note_format(self, text: str) -> None:
        if could_be_thousands(text, self.dialect.decimal):
            self._grouped = self._grouped or text
        elif (digits := text.lstrip("+-")).isdigit():
            self._has_whole = self._has_whole or len(digits) >= self._fewest_digits
        else:
            self._is_doubtful = False  # other decimals resolve the ambiguity


def is_text(cell: str, dialect: Dialect) -> bool:
    """Whether a cell is neither a number nor missing."""
    try:
        return _number(cell, dialect) is None
    except DecimalCommaError:
        return False


def mostly_text(cells: Sequence[str], dialect: Dialect) -> bool:
    """Whether more than half of the cells are text and may be names."""
    return 2 * sum(is_text(cell, dialect) for cell in cells) > len(cells)


def _number(cell: str, dialect: Dialect) -> float | None:
    text = cell.strip()
    if dialect.is_missing(text):
        return math.nan
    comma = dialect.separator != "," and DECIMAL_COMMA.fullmatch(text)
    if dialect.decimal == "," and (comma or "." not in text):
        return number(text.replace(",", "."))
    if comma:
        raise DecimalCommaError
    # In a file with decimal commas, a point may separate thousands.
    return None if dialect.decimal == "," else number(text)


def _find_separator(path: Path, encoding: str) -> str | None:
    """The first of tab, semicolon and comma that gives rows of equal length ending in numbers, or else equal length."""

    def head(mark: str | None) -> list[list[str]]:
        try:
            return [cells for _, cells in islice(rows(path, Dialect(encoding, mark)), N_HEAD)]
        except ValueError:
            return []

    heads = {mark: head(mark) for mark in ("\t", ";", ",")}
    even = [mark for mark, found in heads.items() if _are_even(found)]
    for mark in even:
        if not any(is_text(cells[-1], Dialect(encoding, mark)) for cells in heads[mark][1:]):
            return mark
    splitting = even or [mark for mark, found in heads.items() if any(len(cells) > 1 for cells in found)]
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    if not splitting and sum(len(cells) > 1 for cells in head(None)) > 1:
        return None
    return usual if usual in splitting or not splitting else splitting[0]


def _are_even(head: list[list[str]]) -> bool:
    """Whether rows have equal length; a header may lack the cell above the labels."""
    width = len(head[-1]) if head else 0
    return width > 1 and all(len(cells) == width for cells in head[1:]) and len(head[0]) in (width, width - 1)


class Table(NamedTuple):
    """The cells of a table as text: all rows of a narrow table, a few of a wide one.

    `n_rows` counts all rows. `n_given`, `n_text` and `n_words` count, per column, the cells that are not missing, those
    that cannot be read as numbers, and those that do not even resemble a number (unlike 100%).
    """

    header: list[str] | None
    numbered: list[Row]
    n_rows: int
    n_given: list[int]
    n_text: list[int]
    n_words: list[int]
    dialect: Dialect

    @property
    def body(self) -> list[list[str]]:
        """The cells, row by row."""
        return [cells for _, cells in self.numbered]

    @property
    def columns(self) -> list[str]:
        """The names of the columns, or their positions if there is no header."""
        return self.header or [str(place) for place in range(self.width)]

    @property
    def lower(self) -> list[str]:
        """The names of the columns in lower case; empty if there is no header."""
        return [name.strip().lower() for name in self.header or ()]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.n_given)

    @property
    def is_number(self) -> list[bool]:
        """Which columns are numeric, except for a few cells."""
        return [n_words <= FEW_WORDS * n for n_words, n in zip(self.n_words, self.n_given, strict=True)]

    def column(self, place: int) -> list[str]:
        """The cells of a column."""
        return [cells[place].strip() for _, cells in self.numbered]

    def has_numbers(self, place: int) -> bool:
        """Whether any cell of a column is a number."""
        return self.n_given[place] > self.n_words[place]

    def texts(self, place: int) -> list[tuple[str, str]]:
        """The cells of a column that are not numbers, and their rows."""
        found = ((cells[place], number) for number, cells in self.numbered)
        return [(cell, f"row {number}") for cell, number in found if is_text(cell, self.dialect)]

    def refuse_texts(self, place: int) -> None:
        """Refuse a numeric column in which some cells are text."""
        if self.n_text[place]:
            raise not_numbers(self.columns[place], self.texts(place), len(self.numbered))


def sample_table(path: Path, header: bool | None, how: Reading) -> Table:
    """Return the cells of a file; `header` says whether the first row names the columns, and None detects it."""
    if path.suffix.lower() in FRAMES:
        frame = read_frame(path, how.key)
        named = frame.reset_index() if frame.index.dtype.kind not in "iu" else frame
        head = named.head(_n_sampled(named.shape[1]))
        body = head.astype(object).where(head.notna(), "").astype(str).to_numpy().tolist()
        columns, dialect = list(map(str, named.columns)), Dialect("", ",", missing=how.missing)
        return _counted(columns, list(enumerate(body)), len(named), dialect)
    dialect = find_dialect(path, how)
    top, below, n_rows, width = _head(path, dialect)
    if not (_is_header(top[1], below, dialect) if header is None else header):
        whole = [row for row in (top, *below) if len(row[1]) == width]
        return _counted(None, whole, n_rows, dialect, width)
    return _counted(top[1] if len(top[1]) == width else ["", *top[1]], below, n_rows - 1, dialect, width)


def _counted(
    header: list[str] | None, numbered: list[Row], n_rows: int, dialect: Dialect, width: int | None = None
) -> Table:
    width = len(header or ()) if width is None else width
    n_given, n_text, n_words = [0] * width, [0] * width, [0] * width
    for place in range(width):
        for cell, count in Counter(cells[place] for _, cells in numbered).items():
            n_given[place] += 0 if dialect.is_missing(cell) else count
            if is_text(cell, dialect):
                n_text[place] += count
                n_words[place] += 0 if resembles_number(cell) else count
    return Table(header, numbered, n_rows, n_given, n_text, n_words, dialect)


def _n_sampled(width: int) -> int:
    return MOST_ROWS if width <= MOST_COLUMNS else FEW_ROWS


def _head(path: Path, dialect: Dialect) -> tuple[Row, list[Row], int, int]:
    """The first row, the rows below it of the same length as the second, the number of all rows, and that length."""
    all_rows = rows(path, dialect)
    kept = list(islice(all_rows, 2))
    if not kept:
        raise ValueError("the file must contain a table, got blank lines only.")
    width = len(kept[-1][1])
    kept += islice(all_rows, _n_sampled(width))
    below = [row for row in kept[1:] if len(row[1]) == width]
    return kept[0], below, len(kept) + sum(1 for _ in all_rows), width


def _is_header(top: list[str], below: list[Row], dialect: Dialect) -> bool | None:
    """Whether the first row names the columns; None if it is 0, 1, 2, ..., which may be pandas' default names."""
    if not below:
        return any(is_text(cell, dialect) for cell in top)
    width = len(below[0][1])
    if len(top) != width:
        return len(top) == width - 1
    is_number = _counted(None, below[:N_BELOW_HEADER], len(below), dialect, width).is_number
    above = [cell.strip() for cell, number in zip(top, is_number, strict=True) if number and cell.strip()]
    if not above:
        words = {cell.strip() for _, row in below for cell in row}
        return not all(cell.strip() in words for cell in top)
    if above == [str(number) for number in range(len(above))]:
        return None if len(above) == width else True
    named = {cell.strip().lower() for cell, number in zip(top, is_number, strict=True) if not number}
    return not named.isdisjoint(NAMING_WORDS) or all(is_text(cell, dialect) for cell in above)


class Sheet(NamedTuple):
    """A table as a DataFrame, and the file that it came from."""

    frame: pd.DataFrame
    path: Path
    dialect: Dialect | None  # of text files
    n_above: int = 0  # rows above the first row of the frame

    def numbers(self, column: Any) -> NDArray[np.float64]:
        """Return a column as finite floats, NaN if a cell is missing."""
        cells = self.frame[column]
        if self.dialect is None:
            return read_numbers(self.frame, column)
        if cells.dtype.kind in "biuf" or not all(isinstance(cell, str) for cell in cells.dropna()):
            return read_numbers(self.frame, column, self.row)
        texts = cells.where(cells.notna(), "").tolist()
        dialect = self.dialect
        if dialect.cells is not None and any("." in text and number(text) is not None for text in texts):
            dialect = dialect._replace(separator=",")  # numbers of a sheet have points, so commas are mistakes
        has_commas = dialect.separator != "," and any(DECIMAL_COMMA.fullmatch(text.strip()) for text in texts)
        dialect = dialect._replace(decimal="," if has_commas else ".")
        reader = Numbers(dialect)
        try:
            values = np.array(reader.read(texts))
        except NotANumberError:
            places = [place for place, _ in rows(self.path, self.dialect)][self.n_above :]
            mistakes = [(text, f"row {n}") for text, n in zip(texts, places, strict=False) if is_text(text, dialect)]
            raise not_numbers(column, mistakes, len(texts), dialect.decimal) from None
        reader.finish()
        return read_numbers(self.frame.assign(**{column: values}), column, self.row)

    def with_rows(self) -> Sheet:
        """The sheet with the rows of the file as the index of its frame, for messages."""
        import pandas as pd

        if self.dialect is None or self.frame.index.name is not None or not isinstance(self.frame.index, pd.RangeIndex):
            return self
        first, n = self.n_above + 1, len(self.frame)
        index: pd.Index = pd.RangeIndex(first, first + n)
        if (
            self.dialect.cells is not None or _n_lines(self.path) != self.n_above + n
        ):  # blank lines, or cells with breaks
            index = pd.Index([number for number, _ in rows(self.path, self.dialect)][self.n_above :][:n])
        return self._replace(frame=self.frame.set_axis(index.rename(FILE_ROW)))

    def row(self, place: int) -> str:
        """A row number in the file: from 1, counting header and blank lines."""
        assert self.dialect is not None
        number, _ = next(islice(rows(self.path, self.dialect), place + self.n_above, None))
        return f"row {number}"


def read_sheet(path: Path, header: bool | None, names: Sequence[str] | None, how: Reading = PLAIN) -> Sheet:
    """Read a table; the columns `names` are read as text, and with None any column may name items.

    An unnamed first column, as pandas and R write it, becomes the index, unless it is 0, 1, 2, ...
    """
    import pandas as pd

    if path.suffix.lower() in FRAMES:
        frame = read_frame(path, how.key)
        others = [] if names is None else [column for column in frame.columns if column not in names]
        return Sheet(without_missing(frame, others, how), path, None)
    dialect = find_dialect(path, how)
    top, below, _, width = _head(path, dialect)
    if header is None:
        header = not set(top[1]).isdisjoint(names or ()) or _is_header(top[1], below, dialect)
    if header is None:
        rule = "must be given where the first row could be a header or data"
        got = f"a first row of the numbers 0 to {len(top[1]) - 1}"
        raise ParameterError("header", rule, got, "pass {header=True} or {header=False}")
    columns: list[Any] = top[1] if header else list(range(width))
    marks = [*MISSING_SPELLINGS, *how.na_values]
    missing = {} if names is None else {column: marks for column in columns if column not in names}
    with reading("text"):
        frame = pd.read_csv(
            path if dialect.cells is None else _as_csv(dialect.cells),
            encoding=dialect.encoding,
            sep=dialect.separator or r"\s+",
            header=0 if header else None,
            # Any word may name an item, even one that marks a missing value elsewhere.
            keep_default_na=False,
            na_values=missing,
            # With semicolons, 1.234 may be a thousand, which `Sheet.numbers` can only detect in the text.
            dtype=str if dialect.separator == ";" else dict.fromkeys(names or (), str),
            skipinitialspace=True,
            low_memory=False,
        )
    for column in frame.columns[[dtype.kind not in "biuf" for dtype in frame.dtypes]]:
        frame[column] = frame[column].map(lambda cell: unguarded(cell) if isinstance(cell, str) else cell)
    if not header:
        return Sheet(frame.rename(columns=str), path, dialect)
    if not top[1][0].strip():
        frame = frame.set_index(frame.columns[0])
    is_counted = frame.index.astype(str).equals(pd.Index([str(place) for place in range(len(frame))]))
    return Sheet(frame.reset_index(drop=True) if is_counted else frame, path, dialect, 1)


def _n_lines(path: Path) -> int:
    """The number of lines of a file."""
    n_lines, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(2**20):
            n_lines, last = n_lines + block.count(b"\n"), block[-1:]
    return n_lines + (last not in b"\n\0")


def _as_csv(cells: Rows) -> io.StringIO:
    """The rows of a sheet in .csv format."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=_SHEET_SEPARATOR).writerows(row for _, row in cells)
    text.seek(0)
    return text


def without_missing(frame: pd.DataFrame, columns: Iterable[Any], how: Reading) -> pd.DataFrame:
    """The frame with the markers in `how` replaced by missing values in the given `columns`."""
    marks = how.missing
    if marks:
        for column in columns:
            cells = frame[column]
            frame = frame.assign(**{column: cells.mask(cells.isin(marks) | cells.astype(str).isin(marks))})
    return frame


def guarded(text: str) -> str:
    """Escape a cell of a .csv file: add an apostrophe if a spreadsheet would read it as a formula."""
    return f"'{text}" if FORMULA.match(text) and not PLAIN_NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The original text of a cell escaped by `guarded`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def write_csv(table: pd.DataFrame, path: Path, encoding: str = "utf-8") -> None:
    """Write a table without its index; text is escaped, and quoted if a reader could split or strip it."""

    def guarded_cell(cell: Any) -> Any:
        return guarded(cell) if isinstance(cell, str) else cell

    cells = table.rename(columns=guarded_cell)
    is_delicate = False
    for column in cells.columns[[dtype.kind not in "biuf" for dtype in cells.dtypes]]:
        is_delicate |= any("\r" in cell or cell[:1].isspace() for cell in map(str, cells[column]))
        cells[column] = cells[column].map(guarded_cell)
    quoting: Any = csv.QUOTE_NONNUMERIC if is_delicate else csv.QUOTE_MINIMAL
    cells.to_csv(path, index=False, encoding=encoding, quoting=quoting)
