"""Spreadsheets (.xlsx, .ods): read the cells of one sheet as text, like an exported .csv file."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from simdims._dependencies import library
from simdims._memory import require
from simdims._parameters import ParameterError, plural
from simdims.io.arrays import reading

Rows = list[tuple[int, list[str]]]  # row numbers, from 1, and cells

SHEETS = (".xlsx", ".ods")

# Beyond a spreadsheet's limits of rows and columns, the file is damaged.
_MOST_ROWS, _MOST_COLUMNS = 2**20, 2**14
_CELL_BYTES = 60

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"


def read_cells(path: Path, sheet: str | None) -> tuple[str, Rows]:
    """Return a description of a sheet and its nonblank rows: the sheet asked for, or the only one with cells."""
    kind = path.suffix.lower()
    openpyxl = library("openpyxl", "Reading .xlsx files", '"simdims[io]"') if kind == ".xlsx" else None
    with reading(kind):
        sheets = dict(_ods_sheets(path) if openpyxl is None else _xlsx_sheets(path, openpyxl))
    filled = [name for name, rows in sheets.items() if rows]
    listed = ", ".join(map(repr, sheets)) or "none"
    if sheet is not None and sheet not in sheets:
        raise ParameterError("sheet", "must name a sheet of this file", f"{sheet!r}; the sheets are {listed}")
    if sheet is None and len(filled) > 1:
        remedy = f"pass {{sheet={filled[0]}}}, for example"
        raise ParameterError("sheet", f"must be given for a file with {len(filled)} sheets", listed, remedy)
    chosen = sheet if sheet is not None else next(iter(filled), None)
    if chosen is None or not sheets[chosen]:
        raise ValueError(f"the sheet must contain a table, got {'blank sheets' if chosen is None else 'a blank one'}.")
    return f"sheet {chosen!r}", _rectangle(sheets[chosen])


def _rectangle(rows: Rows) -> Rows:
    """Pad rows to equal length, without blank columns on the left."""
    start = min(next(place for place, cell in enumerate(cells) if cell.strip()) for _, cells in rows)
    width = max(len(cells) for _, cells in rows)
    require(_CELL_BYTES * len(rows) * width, f"A sheet of {len(rows)} rows and {width} columns", "save it as .csv")
    return [(number, (cells + [""] * (width - len(cells)))[start:]) for number, cells in rows]


def _filled(numbered: Iterable[tuple[int, Iterable[Any]]]) -> Rows:
    """The nonblank rows, as text up to their last cell."""
    found = []
    for number, values in numbered:
        if number > _MOST_ROWS:
            raise ValueError(f"row {number}, which no spreadsheet has")
        cells = [_as_text(value) for value in values]
        while cells and not cells[-1].strip():
            cells.pop()
        if cells:
            found.append((number, cells))
    return found


def _as_text(value: Any) -> str:
    """A value as spreadsheets export it to .csv: 1 rather than 1.0, TRUE, 2024-05-31."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, date | datetime):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value)


def _xlsx_sheets(path: Path, openpyxl: Any) -> Iterator[tuple[str, Rows]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles, which are irrelevant
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            for sheet in book.worksheets:
                sheet.reset_dimensions()  # some programs write wrong dimensions
                yield sheet.title, _filled(enumerate(sheet.iter_rows(values_only=True), start=1))
        finally:
            book.close()


def _ods_sheets(path: Path) -> Iterator[tuple[str, Rows]]:
    with zipfile.ZipFile(path) as archive, archive.open("content.xml") as file:
        name: str | None = None
        rows: list[tuple[int, list[Any]]] = []
        number, n_cells = 1, 0
        for event, element in ElementTree.iterparse(file, ("start", "end")):
            if event == "start" and element.tag == f"{_TABLE}table":
                name, rows, number = element.get(f"{_TABLE}name", ""), [], 1
            elif event == "end" and element.tag == f"{_TABLE}table" and name is not None:
                yield name, _filled(rows)
                name = None
            elif event == "end" and element.tag == f"{_TABLE}table-row":
                repeats, cells = _repeats(element, "rows"), _ods_cells(element)
                n_cells += repeats * len(cells)
                require(_CELL_BYTES * n_cells, f"A file of {n_cells} {plural('cell', n_cells)}", "save it as .csv")
                rows += [(number + repeat, cells) for repeat in range(repeats if cells else 0)]
                number += repeats
                element.clear()


def _ods_cells(row: ElementTree.Element) -> list[Any]:
    """The values of a row up to the last nonblank one; runs of equal cells are stored once."""
    cells: list[Any] = []
    blanks = 0
    for cell in row:
        if cell.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            continue
        repeats, value = _repeats(cell, "columns"), _ods_value(cell)
        if value is None:
            blanks += repeats
            continue
        if len(cells) + blanks + repeats > _MOST_COLUMNS:
            raise ValueError(f"more than {_MOST_COLUMNS} columns")
        cells += [None] * blanks + [value] * repeats
        blanks = 0
    return cells


def _repeats(element: ElementTree.Element, what: str) -> int:
    return max(int(element.get(f"{_TABLE}number-{what}-repeated", "1")), 1)


def _ods_value(cell: ElementTree.Element) -> Any:
    """The value of a cell: a number or the displayed text; None if it is blank."""
    kind = cell.get(f"{_OFFICE}value-type")
    if kind in ("float", "percentage", "currency"):
        return float(cell.get(f"{_OFFICE}value", ""))
    if kind == "boolean":
        return cell.get(f"{_OFFICE}boolean-value") == "true"
    if kind == "date":
        return cell.get(f"{_OFFICE}date-value")
    # Paragraphs of comments are nested deeper, not children of the cell.
    return "\n".join(map(_paragraph, cell.findall(f"{_TEXT}p"))) or None


def _paragraph(element: ElementTree.Element) -> str:
    """The text of a paragraph, in which repeated blanks are encoded as an element."""
    blanks = int(element.get(f"{_TEXT}c", "1")) if element.tag == f"{_TEXT}s" else 0
    inner = "".join(_paragraph(child) + (child.tail or "") for child in element)
    return " " * min(blanks, 1000) + (element.text or "") + inner
