"""Similarities of new items to fitted ones: the input rows of `SRF.transform` and `SRF.score`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from simdims import solvers
from simdims._parameters import ParameterError, ParameterTypeError, plural
from simdims.similarity.labels import is_frame
from simdims.similarity.validation import as_array

# Number of parts of the columns, each predicted from the others.
N_FOLDS = 5


def as_rows(S: Any, estimator: Any) -> NDArray[np.floating]:
    """The rows as floats, NaN for missing pairs."""
    if sparse.issparse(S):
        remedy = "pass an array with NaN where a pair is missing"
        raise ParameterTypeError("S", "must be dense for transform", "a sparse matrix", remedy)
    if isinstance(S, np.ma.MaskedArray | list | tuple):  # check_array ignores the mask
        S = as_array(S, "S")
    for dtype in S.dtypes if is_frame(S) and S.ndim == 2 else [getattr(S, "dtype", None)]:
        if getattr(dtype, "kind", "f") in "mMV":  # check_array converts dates to numbers
            raise ParameterTypeError("S", "must hold numbers", f"dtype {dtype}")
    kinds = [np.float64, np.float32]
    try:
        return check_array(
            S, dtype=kinds, ensure_all_finite="allow-nan", order="C", estimator=estimator, input_name="S"
        )
    except (TypeError, ValueError, OverflowError) as error:
        # Omit the lines that print the data.
        lines = [line for line in str(error).splitlines() if not line.startswith(("array=", "[", " "))]
        kind = ParameterTypeError if isinstance(error, TypeError) else ParameterError
        reason = " ".join(lines).rstrip(".")
        raise kind("S", "must hold a row of similarities for each new item", f"others: {reason}") from None


def check_rows(rows: NDArray[np.floating], names: Sequence[object] | NDArray, *, allow_empty: bool) -> None:
    """Refuse negative similarities and, unless `allow_empty`, rows without any similarity."""
    negative = int(np.count_nonzero(rows < 0))
    if negative:
        remedy = "set them to 0 or rescale them, as for the fit"
        raise ParameterError("S", "must be non-negative", f"{negative:,} negative {plural('value', negative)}", remedy)
    empty = np.flatnonzero(np.isnan(rows).all(axis=1))
    if empty.size and not allow_empty:
        listed = ", ".join(str(names[i]) for i in empty[:5]) + (", ..." if empty.size > 5 else "")
        rule = "must have an observed similarity in every row"
        raise ParameterError("S", rule, f"{empty.size} without any: row {listed}")


def holds_new_items(S: Any) -> bool:
    """Whether rows are different items than the columns: the array is not square, or not symmetric."""
    if not (isinstance(S, np.ndarray) or hasattr(S, "iloc")) or len(S.shape) != 2:
        return False
    if S.shape[0] != S.shape[1]:
        return True
    try:
        values = np.asarray(S, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False  # non-numeric input raises its own error
    with np.errstate(invalid="ignore"):
        difference = np.abs(values - values.T)
        return bool(np.nanmax(difference, initial=0.0) > 1e-5 * np.nanmax(np.abs(values), initial=0.0))


def held_out_variance(
    rows: NDArray[np.floating], W: NDArray[np.floating], penalty: solvers.Penalty = solvers.NO_PENALTY
) -> float:
    """R2 of similarities of new items, each predicted from others in its row."""
    observed = ~np.isnan(rows)
    observed[observed.sum(axis=1) < 2] = False  # nothing to predict from
    part = (np.cumsum(observed, axis=1) - 1) % N_FOLDS
    predicted = np.full(rows.shape, np.nan)
    for k in range(N_FOLDS):
        held_out = observed & (part == k)
        new = solvers.embed(np.where(held_out, np.nan, rows), W, penalty)
        predicted[held_out] = (new.astype(np.float64) @ W.T.astype(np.float64))[held_out]
    values = rows[observed].astype(np.float64)
    spread = np.sum((values - values.mean()) ** 2) if values.size else 0.0
    if not spread > 0:
        rule = "must have new items with two or more observed similarities that are not all equal"
        raise ParameterError("S", rule, f"{values.size} similarities of such items")
    return float(1.0 - np.sum((values - predicted[observed]) ** 2) / spread)
