"""Cells of tables: numbers, missing values and text, for every reader."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Common ways to write a missing value, in any case. (#NV is the #N/A of German spreadsheets.)
MISSING = frozenset({"", "na", "n/a", "#n/a", "#na", "#nv", "<na>", "nan", "null", "none", "-", "–", "—", "."})

#: The same words in their usual spellings, for readers that compare exactly.
MISSING_SPELLINGS = tuple(sorted({form for word in MISSING for form in (word, word.upper(), word.title())} | {"NaN"}))

DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?P<mark>[.,' \u00a0\u202f’])\d{3})(?:(?P=mark)\d{3})*(?:[.,]\d+)?")
_PERCENT = re.compile(r"[+-]?[\d.,]+\s*%")
_N_SHOWN = 3


def number(text: str) -> float | None:
    """Return a text as a number, NaN if it marks a missing value, None if it is neither."""
    text = text.strip()
    if text.lower() in MISSING:
        return math.nan
    try:
        return None if "_" in text else float(text)  # Python reads 1_000 as 1000; in a table it is no number
    except ValueError:
        return None


def is_missing(text: str) -> bool:
    """Return whether a text marks a missing value."""
    return text.strip().lower() in MISSING


def could_be_thousands(text: str, mark: str) -> bool:
    """Return whether a text such as 1,234 could be a whole number whose thousands are separated by `mark`."""
    return re.fullmatch(rf"[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+", text) is not None


def resembles_number(text: str) -> bool:
    """Return whether a text looks like a number but cannot be read as one: 100%, 1,234 or 0,5."""
    return any(form.fullmatch(text.strip()) for form in (_PERCENT, _GROUPED, DECIMAL_COMMA))


def as_floats(cells: NDArray, refusal: Callable[[tuple[int, ...], Any], Exception]) -> NDArray[np.float64]:
    """Return numbers, texts or objects as floats, NaN if missing; `refusal` makes the error about any other cell."""
    try:
        found = cells.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        found = None
    texts = (cell for cell in cells.flat if isinstance(cell, str | bytes)) if cells.dtype.kind in "OUS" else ()
    if found is not None and not any("_" in str(text) for text in texts):
        return found
    found = np.empty(cells.shape)
    for place, cell in np.ndenumerate(cells):
        value = cell_value(cell)
        if value is None:
            raise refusal(place, cell)
        found[place] = value
    return found


def cell_value(cell: Any) -> float | None:
    """Return a cell of any type as a number, NaN if it is missing, None if it is not a number."""
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, str):
        return number(cell)
    if cell is None:
        return math.nan
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def text_cells(cells: Sequence[tuple[str, str]], n_cells: int) -> str:
    """Return texts and their positions ("row 7") as part of a message; `n_cells` is the number of all cells."""
    listed = "; ".join(f"{text!r} in {where}" for text, where in cells[:_N_SHOWN])
    rest = len(cells) - _N_SHOWN
    more = f" and {rest:,} more" if rest > 0 else ""
    share = f" ({len(cells):,} of {n_cells:,} cells)" if n_cells > 1 else ""
    return f"the text{'' if len(cells) == 1 else 's'} {listed}{more}{share}"


def advice(text: str, decimal: str = ".", *, may_be_missing: bool = True) -> str:
    """Return what to do about a text among numbers whose decimal sign is `decimal`."""
    text = text.strip()
    if _PERCENT.fullmatch(text):
        return "write percentages as plain numbers, without the % sign"
    if decimal == "," and number(text) is not None:
        return "other cells have decimal commas, so write a comma here too, and no thousands separators"
    if _GROUPED.fullmatch(text):
        return f"write numbers without thousands separators{'' if decimal == ',' else ', and with a decimal point'}"
    if DECIMAL_COMMA.fullmatch(text):
        return "write a decimal point instead of the comma"
    if not may_be_missing:
        return "correct it, or leave out the item or the column"
    return "correct it, or leave the cell empty (or write NA) if the value is missing"
