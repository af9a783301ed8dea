"""Names of items: checked, compared, and written in sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from simdims._checks import shortlist
from simdims._parameters import ParameterError, ParameterTypeError, shown

# Surrogates, as in file names of another encoding, and NUL.
UNWRITABLE = re.compile("[\ud800-\udfff\x00]")


def clean_labels(labels: Iterable[object] | None, n_items: int) -> tuple[str, ...] | None:
    """Return labels as distinct texts, one per item, or None."""
    if labels is None:
        return None
    is_sequence = isinstance(labels, Iterable) and not isinstance(labels, (str, bytes, set, frozenset))
    if not is_sequence or getattr(labels, "ndim", 1) != 1:
        raise ParameterTypeError("labels", "must be a sequence with one name per item", shown(labels))
    given = list(labels)
    for place, label in enumerate(given):
        if getattr(label, "ndim", 0):
            raise ParameterTypeError(
                "labels", "must be a sequence with one name per item", f"a {type(label).__name__} in place {place}"
            )
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


def _is_missing(label: object) -> bool:
    different = label != label
    # pandas' NA is neither equal to itself nor different.
    return label is None or not isinstance(different, bool | np.bool_) or bool(different)


def _refuse_unwritable(name: str, place: int) -> None:
    """Refuse a label that no file could hold, before any work is done."""
    bad = UNWRITABLE.search(name)
    if bad is None:
        return
    if "\udc80" <= bad[0] <= "\udcff":  # what Python makes of such bytes in file names
        why, remedy = "bytes that are not UTF-8", "os.fsencode(label).decode('latin-1')"
    elif bad[0] >= "\ud800":
        why, remedy = "half a character", "label.encode('utf-8', 'replace').decode()"
    else:
        why, remedy = "a control character", f"label.replace({bad[0]!r}, ' ')"
    raise ParameterError(
        "labels",
        "must be text that can be written to files",
        f"{why} in {name!a} in place {place}",
        f"change it, as in {remedy}",
    )


def refuse_other_names(one: str, names: tuple[str, ...], other: str, other_names: tuple[str, ...]) -> None:
    """Refuse two lists of names that differ, showing the first place where they do."""
    # Lists of different lengths belong to matrices of different shapes, which have an error of their own.
    for place, (first, second) in enumerate(zip(names, other_names, strict=False)):
        if first != second:
            raise ParameterError(
                other,
                f"must name the same items as {one}, in the same order",
                f"{second!r} instead of {first!r} in place {place}",
                "the names are the same in another order; reorder one of the two"
                if set(names) == set(other_names)
                else None,
            )


def name_of(item: int, labels: Sequence[str] | None) -> str:
    """An item in a sentence: its label, or its position."""
    return repr(labels[item]) if labels is not None else str(int(item))


def entry_shown(entry: tuple[int, int, float], labels: Sequence[str] | None) -> str:
    """An entry (row, column, value) in a sentence."""
    row, column, value = entry
    return f"{value:.6g} at ({name_of(row, labels)}, {name_of(column, labels)})"
