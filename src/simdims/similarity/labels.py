"""Names of items, from labels or the axes of a DataFrame: validation, comparison and display in errors."""

from __future__ import annotations

import logging
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from simdims._parameters import ParameterError, ParameterTypeError, shortlist, shown

logger = logging.getLogger("simdims")

# Surrogates, as in file names of another encoding, and NUL.
UNWRITABLE = re.compile("[\ud800-\udfff\x00]")

_RULE = "must be a sequence with one name per item"


def clean_labels(labels: Iterable[object] | None, n_items: int) -> tuple[str, ...] | None:
    """Return labels as distinct texts, one per item, or None."""
    if labels is None:
        return None
    given = list_of_labels(labels)
    for place, label in enumerate(given):
        if getattr(label, "ndim", 0):
            raise ParameterTypeError("labels", _RULE, f"a {type(label).__name__} in place {place}")
        if _is_missing(label):
            raise ParameterError("labels", "must name every item", f"none in place {place}")
    names = tuple(map(str, given))
    for place, name in enumerate(names):
        _refuse_unwritable(name, place)
    if len(names) != n_items:
        raise ParameterError("labels", f"must have one name for each of the {n_items} items", str(len(names)))
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ParameterError("labels", "must be distinct", f"{shortlist(repeated)} more than once")
    return names


def list_of_labels(labels: Iterable[object]) -> list[object]:
    """Return labels as a list, after checking that they are a sequence."""
    is_sequence = isinstance(labels, Iterable) and not isinstance(labels, (str, bytes, set, frozenset))
    if not is_sequence or getattr(labels, "ndim", 1) != 1:
        raise ParameterTypeError("labels", _RULE, shown(labels))
    return list(labels)


def _is_missing(label: object) -> bool:
    different = label != label
    # Comparisons with pandas' NA are neither true nor false.
    return label is None or not isinstance(different, bool | np.bool_) or bool(different)


def _refuse_unwritable(name: str, place: int) -> None:
    """Refuse a label that no file could store, before any work is done."""
    bad = UNWRITABLE.search(name)
    if bad is None:
        return
    if "\udc80" <= bad[0] <= "\udcff":  # Python's placeholders for undecodable bytes in file names
        why, remedy = "bytes that are not UTF-8", "os.fsencode(label).decode('latin-1')"
    elif bad[0] >= "\ud800":
        why, remedy = "half a character", "label.encode('utf-8', 'replace').decode()"
    else:
        why, remedy = "a control character", f"label.replace({bad[0]!r}, ' ')"
    got = f"{why} in {name!a} in place {place}"
    raise ParameterError("labels", "must be text that can be written to files", got, f"change it, as in {remedy}")


def refuse_other_names(one: str, names: tuple[str, ...], other: str, other_names: tuple[str, ...]) -> None:
    """Refuse two lists of names that differ, showing the first difference."""
    # Lists of different lengths belong to matrices of different shapes, which raise their own error.
    for place, (first, second) in enumerate(zip(names, other_names, strict=False)):
        if first != second:
            rule, got = f"must name the same items as {one}, in the same order", f"{second!r} instead of {first!r}"
            remedy = "reorder them: these are the same names in another order"
            is_reordered = set(names) == set(other_names)
            raise ParameterError(other, rule, f"{got} in place {place}", remedy if is_reordered else None)


def is_frame(x: Any) -> bool:
    """Whether `x` is a DataFrame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(x, pandas.DataFrame)


def labelled(x: Any) -> Any:
    """Convert a two-dimensional xarray DataArray to a DataFrame; return anything else unchanged."""
    xarray = sys.modules.get("xarray")
    is_table = xarray is not None and isinstance(x, xarray.DataArray) and x.ndim == 2
    return x.to_pandas() if is_table else x


def is_anndata(x: Any) -> bool:
    """Whether `x` is an AnnData object, without importing anndata."""
    anndata = sys.modules.get("anndata")
    return anndata is not None and isinstance(x, anndata.AnnData)


def aligned(frame: Any, name: str, order: tuple[str, ...] | None = None) -> Any:
    """Sort the columns of a frame like its index, or both like `order`, if these name the same items."""
    if is_default_axis(frame.index) or is_default_axis(frame.columns):
        return frame
    index = axis_names(frame.index, f"the index of {name}")
    columns = axis_names(frame.columns, f"the columns of {name}")
    order = index if order is None else order
    moved = [axis for axis, names in (("rows", index), ("columns", columns)) if names != order]
    if not moved or any(sorted(names) != sorted(set(order)) for names in (index, columns)):
        return frame
    what = f"The {' and '.join(moved)} of {name}"
    logger.info("%s were in another order than the other labels, and were aligned.", what)
    rows, places = ({item: at for at, item in enumerate(names)} for names in (index, columns))
    return frame.iloc[[rows[item] for item in order], [places[item] for item in order]]


def frame_cells(frame: Any) -> np.ndarray:
    """The cells of a DataFrame as an array, NaN if missing."""
    cells = frame.to_numpy()
    # pandas' NA is not a number and requires an object array.
    return frame.to_numpy(dtype=object, na_value=np.nan) if cells.dtype == object else cells


def frame_labels(frame: Any, name: str, labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """`labels`, or the names on the axes of a DataFrame, after checking that they agree."""
    named = [] if labels is None else [("labels", labels)]
    for kind, axis in (("index", frame.index), ("columns", frame.columns)):
        if not is_default_axis(axis):
            what = f"the {kind} of {name}"
            named.append((what, axis_names(axis, what)))
    for other in named[1:]:
        refuse_other_names(*named[0], *other)
    return named[0][1] if named else None


def is_default_axis(axis: Any) -> bool:
    """Whether an axis is pandas' default 0, 1, 2, ..., which names nothing."""
    return isinstance(axis, sys.modules["pandas"].RangeIndex) and axis.start == 0 and axis.step == 1


def axis_names(axis: Any, what: str) -> tuple[str, ...]:
    """The names on an axis, one per item."""
    if getattr(axis, "nlevels", 1) == 1 and getattr(axis, "hasnans", False):
        raise ParameterError(what, "must name every item", f"none in place {int(np.argmax(axis.isna()))}")
    return tuple(map(str, axis))


def refuse_other_numbers(names: Sequence[str] | None, what: str) -> None:
    """Refuse an index that numbers the items in another order, if nothing else names them."""
    numbers = [] if names is None else [str(place) for place in range(len(names))]
    if names is not None and list(names) != numbers and set(names) == set(numbers):
        place = next(place for place, number in enumerate(numbers) if names[place] != number)
        rule = "must list the items in order if the other table does not name them"
        remedy = "sort it (sort_index), or renumber its rows (reset_index(drop=True))"
        raise ParameterError(what, rule, f"the number {names[place]} in row {place} of its index", remedy)


def name_of(item: int, labels: Sequence[str] | None) -> str:
    """An item in an error message: its label, or its position."""
    return repr(labels[item]) if labels is not None else str(int(item))


def entry_shown(entry: tuple[int, int, float], labels: Sequence[str] | None) -> str:
    """An entry (row, column, value) in an error message."""
    row, column, value = entry
    return f"{value:.6g} at ({name_of(row, labels)}, {name_of(column, labels)})"
