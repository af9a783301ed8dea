"""The table of a text or Parquet file: its header, which of its columns hold numbers, and those numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._cells import DECIMAL_COMMA, MISSING_SPELLINGS, is_missing, resembles_number, text_cells
from simdims._dependencies import library
from simdims._tables import read_numbers
from simdims.io.arrays import reading
from simdims.io.layouts import CORNER_WORDS
from simdims.io.text import Dialect, NotANumberError, Numbers, Row, find_dialect, is_text, rows, unguarded

if TYPE_CHECKING:
    import pandas as pd

#: Rows that are looked at, and columns beyond which a table is a square or features, of which a few rows will do.
MOST_ROWS, _MOST_LONG, _FEW_ROWS = 200_000, 20, 50

#: Rows that are looked at to tell which columns hold numbers below a header.
_N_LOOKED_AT = 1000

#: What columns that name items are called, also above numbers that are names, such as years.
_NAMERS = CORNER_WORDS | {"word", "words", "concept", "object", "stimulus", "image", "category"}

#: The share of texts up to which a column is one of numbers with mistakes in it.
_FEW = 0.25


class Table(NamedTuple):
    """The cells of a table, as text: all rows of a narrow one, a few of a wide one.

    `n_rows` counts all rows. `n_given`, `n_text` and `n_words` count, for each column, the cells that are not missing,
    those of them that cannot be read as numbers, and those that do not even resemble one, as 100% does.
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
    def spelled(self) -> list[str]:
        """The names of the columns, or their positions where they have none."""
        return self.header or [str(place) for place in range(self.width)]

    @property
    def names(self) -> list[str]:
        """The names of the columns in small letters; none where there is no header."""
        return [name.strip().lower() for name in self.header or ()]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.n_given)

    @property
    def is_number(self) -> list[bool]:
        """Which columns hold numbers, but for a few cells perhaps."""
        return [n_words <= _FEW * n for n_words, n in zip(self.n_words, self.n_given, strict=True)]

    def column(self, place: int) -> list[str]:
        """The cells of a column."""
        return [cells[place].strip() for _, cells in self.numbered]

    def has_numbers(self, place: int) -> bool:
        """Say whether any cell of a column is a number."""
        return self.n_given[place] > self.n_words[place]

    def texts(self, place: int) -> list[tuple[str, str]]:
        """The cells of a column that are no numbers, and their rows."""
        found = ((cells[place], number) for number, cells in self.numbered)
        return [(cell, f"row {number}") for cell, number in found if is_text(cell, self.dialect)]

    def refuse_texts(self, place: int) -> None:
        """Refuse a column of numbers in which some cells are text."""
        if self.n_text[place]:
            raise not_numbers(self.spelled[place], self.texts(place), len(self.numbered))


def not_numbers(column: str, texts: Sequence[tuple[str, str]], n_cells: int, decimal: str = ".") -> ValueError:
    """What is wrong with a column of numbers, of whose cells some are text."""
    return ValueError(f"Column {column!r} must hold numbers, got {text_cells(texts, n_cells, decimal)}.")


def look_at(path: Path, header: bool | None) -> Table:
    """Return the cells of a file; `header` says whether its first row names the columns, and None finds out."""
    if path.suffix.lower() == ".parquet":
        return _of_frame(_read_parquet(path))
    dialect = find_dialect(path)
    top, below, n_rows = _head(path, dialect)
    width = len(below[0][1]) if below else len(top[1])
    if header is None:
        header = bool(_is_header(top[1], below, dialect))
    if header:
        names = top[1] if len(top[1]) == width else ["", *top[1]]
        return _table(names, below, n_rows - 1, width, dialect)
    return _table(None, [top, *below], n_rows, width, dialect)


class Sheet(NamedTuple):
    """A table as a DataFrame, and the file that it came from."""

    frame: pd.DataFrame
    path: Path
    dialect: Dialect | None  # of a text file
    n_above: int = 0  # rows above the first of the frame

    def numbers(self, column: Any) -> NDArray[np.float64]:
        """Return a column as finite floats, NaN where a cell is missing."""
        cells = self.frame[column]
        if self.dialect is None:
            return read_numbers(self.frame, column)
        if cells.dtype.kind in "biuf" or not all(isinstance(cell, str) for cell in cells.dropna()):
            return read_numbers(self.frame, column, self.row)
        texts = cells.where(cells.notna(), "").tolist()
        has_commas = self.dialect.separator != "," and any(DECIMAL_COMMA.fullmatch(text.strip()) for text in texts)
        dialect = self.dialect._replace(decimal="," if has_commas else ".")
        reader = Numbers(dialect)
        try:
            values = np.array(reader.read(texts))
        except NotANumberError:
            numbers = [number for number, _ in rows(self.path, self.dialect)][self.n_above :]
            mistakes = [(text, f"row {n}") for text, n in zip(texts, numbers, strict=False) if is_text(text, dialect)]
            raise not_numbers(column, mistakes, len(texts), dialect.decimal) from None
        reader.finish()
        return read_numbers(self.frame.assign(**{column: values}), column, self.row)

    def row(self, place: int) -> str:
        """A row as people count it: from 1, with header and blank lines."""
        assert self.dialect is not None
        number, _ = next(islice(rows(self.path, self.dialect), place + self.n_above, None))
        return f"row {number}"


def read_sheet(path: Path, header: bool | None, names: Sequence[str] | None) -> Sheet:
    """Read a table; the columns called `names` are text as it stands, and with None any column may name items.

    A first column without a name, as pandas and R write it, becomes the index, unless it is 0, 1, 2, ...
    """
    import pandas as pd

    if path.suffix.lower() == ".parquet":
        return Sheet(_read_parquet(path), path, None)
    dialect = find_dialect(path)
    top, below, _ = _head(path, dialect)
    width = len(below[0][1]) if below else len(top[1])
    if header is None:
        header = not set(top[1]).isdisjoint(names or ()) or _is_header(top[1], below, dialect)
    if header is None:
        raise ValueError(
            "Cannot tell whether the first row is a header or data: it holds the numbers 0 to "
            f"{len(top[1]) - 1}. Pass --header or --no-header."
        )
    columns: list[Any] = top[1] if header else list(range(width))
    missing = {} if names is None else {column: MISSING_SPELLINGS for column in columns if column not in names}
    with reading("text"):
        frame = pd.read_csv(
            path,
            encoding=dialect.encoding,
            sep=dialect.separator or r"\s+",
            header=0 if header else None,
            # Any word may name an item, also one that says elsewhere that a cell is missing.
            keep_default_na=False,
            na_values=missing,
            # Beside semicolons 1.234 may be a thousand; `Sheet.numbers` sees that in the text only.
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


def _head(path: Path, dialect: Dialect) -> tuple[Row, list[Row], int]:
    """The first row of a file, those below it that are as long as the second, and how many there are in all."""
    all_rows = rows(path, dialect)
    kept = list(islice(all_rows, 2))
    if not kept:
        raise ValueError("this must hold a table, got blank lines only.")
    width = len(kept[-1][1])
    kept += islice(all_rows, MOST_ROWS if width <= _MOST_LONG else _FEW_ROWS)
    n_rows = len(kept) + sum(1 for _ in all_rows)
    return kept[0], [row for row in kept[1:] if len(row[1]) == width], n_rows


def _is_header(top: list[str], below: list[Row], dialect: Dialect) -> bool | None:
    """Whether the first row names the columns: by text above numbers, or by words that do not come again.

    None where it holds the numbers 0, 1, 2, ... alone, which could be names that pandas made up.
    """
    if not below:
        return any(is_text(cell, dialect) for cell in top)
    width = len(below[0][1])
    if len(top) != width:
        return len(top) == width - 1
    is_number = _table(None, below[:_N_LOOKED_AT], len(below), width, dialect).is_number
    above = [cell.strip() for cell, number in zip(top, is_number, strict=True) if number and cell.strip()]
    if not above:
        words = {cell.strip() for _, row in below for cell in row}
        return not all(cell.strip() in words for cell in top)
    if above == [str(number) for number in range(len(above))]:
        return None if len(above) == width else True
    named = {cell.strip().lower() for cell, number in zip(top, is_number, strict=True) if not number}
    return not named.isdisjoint(_NAMERS) or all(is_text(cell, dialect) for cell in above)


def _table(header: list[str] | None, numbered: list[Row], n_rows: int, width: int, dialect: Dialect) -> Table:
    """A table of rows, with what its columns hold."""
    n_given, n_text, n_words = [0] * width, [0] * width, [0] * width
    for place in range(width):
        for cell, count in Counter(cells[place] for _, cells in numbered).items():
            n_given[place] += 0 if is_missing(cell) else count
            if is_text(cell, dialect):
                n_text[place] += count
                n_words[place] += 0 if resembles_number(cell) else count
    return Table(header, numbered, n_rows, n_given, n_text, n_words, dialect)


def _of_frame(frame: pd.DataFrame) -> Table:
    """A DataFrame as a table, with its index as a column where that names the rows."""
    named = frame.reset_index() if frame.index.dtype.kind not in "iu" else frame
    head = named.head(MOST_ROWS if named.shape[1] <= _MOST_LONG else _FEW_ROWS)
    body = head.astype(object).where(head.notna(), "").astype(str).to_numpy().tolist()
    return _table(list(map(str, named.columns)), list(enumerate(body)), len(named), named.shape[1], Dialect("", ","))


def _read_parquet(path: Path) -> pd.DataFrame:
    library("pyarrow", "Reading .parquet files", '"simdims[io]"')
    import pandas as pd

    with reading(".parquet"):
        return pd.read_parquet(path, engine="pyarrow")
