"""Tables in Parquet files: a square frame, or a list of pairs in 3 or 4 columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simdims._dependencies import library
from simdims._tables import read_numbers
from simdims.io.arrays import reading
from simdims.io.layouts import TWO_FORMS, VALUE_WORDS, check_header, is_long
from simdims.io.pairs import from_pairs
from simdims.similarity import Parts


def read_parquet(
    path: Path,
    *,
    form: str | None,
    labels: Sequence[str] | None,
    absent: str | float | None,
    symmetrize: str | None,
) -> Parts:
    """Read a square table or a list of pairs; with `form` None, find out which."""
    library("pyarrow", "Reading .parquet files", '"simdims[io]"')
    import pandas as pd

    with reading(".parquet"):
        frame = pd.read_parquet(path, engine="pyarrow")
    if form is None:
        form = "long" if _looks_long(frame, symmetrize) else "square"
    return _read_pairs(frame, labels, absent) if form == "long" else _read_square(frame)


def _looks_long(frame: Any, symmetrize: str | None) -> bool:
    n_rows, n_columns = frame.shape
    if n_columns not in (3, 4):
        return False
    square = _as_square(frame)
    is_numeric = all(dtype.kind in "biuf" for dtype in square.dtypes)
    is_square = is_numeric and square.shape[0] == square.shape[1]
    return is_long(
        square.to_numpy(dtype=np.float64) if is_square else None,
        n_rows,
        names_value=str(frame.columns[2]).lower() in VALUE_WORDS,
        symmetrize=symmetrize,
    )


def _as_square(frame: Any) -> Any:
    """The frame with its first column as its index, where that makes it square."""
    n_rows, n_columns = frame.shape
    return frame.set_index(frame.columns[0]) if n_rows == n_columns - 1 else frame


def _read_square(frame: Any) -> Parts:
    frame = _as_square(frame)
    n_rows, n_columns = frame.shape
    if n_rows != n_columns:
        raise ValueError(f"this must be square, got {n_rows} rows and {n_columns} columns: {TWO_FORMS}.")
    # Parquet names columns by text, so that columns without names are called "0", "1", "2", ...
    if list(map(str, frame.columns)) == list(map(str, range(n_columns))):
        frame = frame.set_axis(range(n_columns), axis="columns")
    return Parts(frame, info={"found": f"a square table of {n_rows} items"})


def _read_pairs(frame: Any, labels: Sequence[str] | None, absent: str | float | None) -> Parts:
    n_rows, n_columns = frame.shape
    if n_columns not in (3, 4) or not n_rows:
        raise ValueError(f"this must be a list of pairs, got {n_rows} rows and {n_columns} columns: {TWO_FORMS}.")
    check_header([str(column) for column in frame.columns])
    import pandas as pd

    items = pd.concat([frame.iloc[:, 0], frame.iloc[:, 1]], ignore_index=True)
    nameless = items.isna().to_numpy()
    if nameless.any():
        place, column = int(np.argmax(nameless)) % n_rows, int(np.argmax(nameless)) // n_rows
        raise ValueError(f"each row must name two items, got none in row {place + 1}, column {column + 1}.")
    # Rows first, then columns: the order in which a reader meets the items.
    texts = items.map(str).to_numpy(dtype=object).reshape(2, n_rows).T.ravel()
    codes, names = pd.factorize(texts)
    values, *weights = (read_numbers(frame, column) for column in frame.columns[2:])
    parts = from_pairs(
        list(names),
        codes[0::2].astype(np.intp),
        codes[1::2].astype(np.intp),
        values,
        weights[0] if weights else None,
        labels=labels,
        absent=absent,
    )
    weighted = " with weights" if weights else ""
    return parts._replace(
        named_by="the list of pairs",
        info={
            "found": f"a list of {n_rows} pairs of {len(names)} items{weighted}",
            "column": str(frame.columns[2]),
        },
    )
