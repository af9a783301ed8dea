"""Rows of similarities of new items to fitted ones: what `SRF.transform` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from simdims._checks import as_array
from simdims.similarity import is_frame


def as_rows(S: Any, estimator: Any) -> NDArray[np.floating]:
    """The rows as floats, NaN where a pair is missing."""
    if sparse.issparse(S):
        raise TypeError(
            "S must be dense for transform, got a sparse matrix: pass an array with NaN where a pair is missing."
        )
    if isinstance(S, np.ma.MaskedArray | list | tuple):  # check_array takes what is masked for known
        S = as_array(S, "S")
    for dtype in S.dtypes if is_frame(S) else [getattr(S, "dtype", None)]:
        if getattr(dtype, "kind", "f") in "mMV":  # check_array takes dates for numbers
            raise TypeError(f"S must hold numbers, got dtype {dtype}.")
    try:
        return check_array(
            S,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            order="C",
            estimator=estimator,
            input_name="S",
        )
    except (TypeError, ValueError, OverflowError) as error:
        # Without the lines that print the data.
        lines = [line for line in str(error).splitlines() if not line.startswith(("array=", "[", " "))]
        reason = " ".join(lines).rstrip(".")
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"S must hold a row of similarities for each new item, got others: {reason}.") from None


def check_rows(rows: NDArray[np.floating], names: Sequence[object] | NDArray) -> None:
    """Refuse negative similarities, and rows without any, by their names."""
    negative = np.count_nonzero(rows < 0)
    if negative:
        raise ValueError(
            f"Negative values in data passed to SRF.transform: similarities must be non-negative, got {negative}."
        )
    empty = np.flatnonzero(np.isnan(rows).all(axis=1))
    if empty.size:
        listed = ", ".join(str(names[i]) for i in empty[:5])
        raise ValueError(
            f"S must have an observed similarity in every row, got {empty.size} without any: row {listed}"
            f"{', ...' if empty.size > 5 else ''}."
        )
