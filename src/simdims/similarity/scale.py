"""Rescale values to similarities between 0 and 1: ratings on a scale, and correlations below zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from simdims._memory import require
from simdims._parameters import ParameterError, as_float, require_real, shown, warn
from simdims.similarity.entries import (
    COPY_REMEDY,
    ROUNDING,
    Matrix,
    blocks,
    count_pairs,
    first_entry,
    largest_entry,
    map_entries,
    smallest_entry,
    value_range,
)
from simdims.similarity.labels import entry_shown


def check_ends(low: Any, high: Any) -> None:
    """Refuse ends of a rating scale that are not numbers."""
    for name, end in (("low", low), ("high", high)):
        if end is not None:
            require_real(name, end)
            if not np.isfinite(as_float(end)):
                raise ParameterError(name, "must be finite", shown(end))


def find_scale(smallest: float, largest: float, low: float | None, high: float | None) -> tuple[float, float]:
    """The ends of a rating scale; a missing one is taken from the ratings, with a warning."""
    found = [f"low = {smallest:g}"] if low is None else []
    found += [f"high = {largest:g}"] if high is None else []
    low, high = float(smallest if low is None else low), float(largest if high is None else high)
    got = f"low = {low:g} and high = {high:g}{' (found in the ratings)' if found else ''}"
    if low >= high:
        raise ParameterError("low", "must be less than {high}", got)
    if not np.isfinite(high - low):
        raise ParameterError("high - low", "must be finite", got)
    if found:
        warn(
            f"The scale of the ratings was not given: took {' and '.join(found)} from the ratings found.",
            "Pass {low} and {high} if the scale is wider.",
        )
    return low, high


def rescale(
    values: Matrix, absent: object, labels: Sequence[str] | None, low: float | None, high: float | None
) -> tuple[Matrix, float, float]:
    """Rescale ratings between low and high to [0, 1]; also return both ends of the scale."""
    check_ends(low, high)
    ends = value_range(values, diagonal=True)
    if ends is None:
        raise ParameterError("values", "must hold at least one observed entry", "none: everything is missing")
    low, high = find_scale(*ends, low, high)
    if low != 0 and sparse.issparse(values) and absent != "missing":
        remedy = "pairs that are not stored count as 0, which is off the scale"
        raise ParameterError("low", "must be 0 unless {absent=missing}", f"{low:g}", remedy)
    outside = first_entry(values, lambda entries: (entries < low) | (entries > high))
    if outside is not None:
        n_outside = sum(int(np.count_nonzero((block < low) | (block > high))) for block in blocks(values))
        got = f"{entry_shown(outside, labels)} ({n_outside:,} outside in all)"
        advice = "set the diagonal to NaN if nobody rated it" if outside[0] == outside[1] else None
        raise ParameterError("values", f"must lie between low = {low:g} and high = {high:g}", got, advice)
    return map_entries(values, lambda entries: (entries - low) / (high - low)), low, high


def lift_negatives(values: Matrix, negative: str, absent: str | float | None = None) -> tuple[Matrix, dict[str, Any]]:
    """Symmetric values with negative ones as 0 ("clip") or all as (1 + r) / 2 ("shift"), and a description."""
    n_negative = count_pairs(values, lambda here, _: here < 0)
    share = n_negative / max(count_pairs(values, lambda here, _: ~np.isnan(here)), 1)
    smallest = smallest_entry(values)
    info = {"negative": negative, "n_pairs_negative": n_negative, "share_negative": share, "smallest": smallest}
    if not sparse.issparse(values):
        require(values.nbytes, "A copy of values without negative ones", COPY_REMEDY)
    if negative == "shift":
        if sparse.issparse(values) and absent != "missing":
            rule = "must be None or 'clip' where the pairs that are not stored are zeros"
            raise ParameterError("negative", rule, "'shift', which would make them 0.5", "pass a dense matrix")
        _require_correlations(values, smallest)
        return map_entries(values, lambda entries: np.clip(0.5 + 0.5 * entries, 0, 1)), info
    n_diagonal = int(np.count_nonzero(values.diagonal() < 0))
    if n_negative or n_diagonal:
        own = f" and {n_diagonal} on the diagonal" if n_diagonal else ""
        warn(
            f"Set {n_negative:,} negative {'similarity' if n_negative == 1 else 'similarities'} ({share:.2%} of the "
            f"observed pairs, the smallest {smallest:.3g}){own} to 0",
            "({negative=clip}).",
        )
    return map_entries(values, lambda entries: np.maximum(entries, 0)), info


def _require_correlations(values: Matrix, smallest: float) -> None:
    largest = largest_entry(values)
    extreme = smallest if -smallest > largest else largest
    if abs(extreme) > 1 + ROUNDING[values.dtype]:
        remedy = "divide them by their largest magnitude first, or pass {negative=clip}"
        raise ParameterError("values", "must lie between -1 and 1 for {negative=shift}", f"{extreme:.6g}", remedy)
