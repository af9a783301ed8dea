"""The cells of a table as they stand, to tell what it holds."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

#: Rows that are looked at, and columns beyond which a table is a square or features.
MOST_ROWS, _MOST_LONG = 200_000, 20


class Table(NamedTuple):
    """The cells of a table, as text: all rows of a narrow one, a few of a wide one; `n_rows` counts all."""

    header: list[str] | None
    body: list[list[str]]
    n_rows: int
    is_number: list[bool]

    @property
    def spelled(self) -> list[str]:
        """The names of the columns, or their places where they have none."""
        return self.header or [str(place) for place in range(self.width)]

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.is_number)

    def column(self, place: int) -> list[str]:
        """The cells of a column."""
        return [row[place].strip() for row in self.body]


def text_table(path: Path, header: bool | None) -> Table:
    """The table of a text file; `header` says whether its first row names the columns, and None finds out."""
    from simdims.io.text import find_dialect, is_text, rows

    dialect = find_dialect(path)
    all_rows = (cells for _, cells in rows(path, dialect))
    kept = list(islice(all_rows, 2))
    if not kept:
        raise ValueError("this must hold a table, got blank lines only.")
    width = len(kept[-1])
    kept += islice(all_rows, MOST_ROWS if width <= _MOST_LONG else 50)
    n_rows = len(kept) + sum(1 for _ in all_rows)
    top, below = kept[0], [row for row in kept[1:] if len(row) == width]
    is_number = [not any(is_text(row[place], dialect) for row in below[:1000]) for place in range(width)]
    if header is None:
        header = len(top) == width - 1 or _is_header(top, below, is_number, dialect)
    if not header:
        is_number = [number and not is_text(cell, dialect) for number, cell in zip(is_number, top, strict=False)]
        return Table(None, [top, *below], n_rows, is_number)
    return Table(top if len(top) == width else ["", *top], below, n_rows - 1, is_number)


def _is_header(top: list[str], below: list[list[str]], is_number: list[bool], dialect: Any) -> bool:
    """Whether the first row names the columns: by text above numbers, or by words that do not come again."""
    from simdims.io.text import is_text

    if not below or len(top) != len(is_number):
        return False
    above = [cell.strip() for cell, number in zip(top, is_number, strict=True) if number and cell.strip()]
    if above:
        numbered = not top[0].strip() and above == [str(number) for number in range(len(above))]
        return numbered or all(is_text(cell, dialect) for cell in above)
    words = {cell.strip() for row in below for cell in row}
    return not all(cell.strip() in words for cell in top)


def parquet_table(path: Path) -> Table:
    """The table of a .parquet file, with its index as a column where that names the rows."""
    from simdims import _inputs

    frame = _inputs._read_frame(path, None, None)
    named = frame.reset_index() if frame.index.dtype.kind not in "iu" else frame
    body = named.head(MOST_ROWS if named.shape[1] <= _MOST_LONG else 50).astype(str).to_numpy().tolist()
    return Table(
        [str(name) for name in named.columns], body, len(named), [dtype.kind in "biuf" for dtype in named.dtypes]
    )
