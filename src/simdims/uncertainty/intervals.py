"""Confidence intervals from resampled values: percentile and bias-corrected, widened for few units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

METHODS = ("percentile", "bias-corrected")

#: Below this number of resampled values there is no interval.
FEWEST = 20


def interval_of(
    estimate: NDArray[np.float64], resampled: NDArray[np.float64], level: float, method: str, n_units: int
) -> NDArray[np.float64]:
    """Lower and upper limits, of shape (2, ...); the first axis of `resampled` is the resample, NaN is a missing value.

    Percentile intervals of n units are too short: resampled means vary by (n - 1) / n of the variance of the mean, and
    their quantiles are those of a normal rather than of a t distribution. The tails are therefore those at which an
    interval for a mean is exact (the expanded percentiles of Hesterberg, 2015). Bias-corrected intervals move both
    tails by twice the normal quantile of the share of resampled values below the estimate (Efron, 1981).
    """
    tail = (1.0 - level) / 2.0
    z = -stats.t.ppf(tail, n_units - 1) * np.sqrt(n_units / (n_units - 1))
    in_order = np.sort(resampled, axis=0)  # NaN are sorted to the end
    n_found = np.count_nonzero(~np.isnan(resampled), axis=0)
    shift = np.zeros(np.shape(estimate))
    if method == "bias-corrected":
        below = np.sum(resampled < estimate, axis=0) + 0.5 * np.sum(resampled == estimate, axis=0)
        shift = 2.0 * stats.norm.ppf((below + 0.5) / (n_found + 1.0))
    limits = [_quantile(in_order, n_found, stats.norm.cdf(shift + side * z)) for side in (-1.0, 1.0)]
    return np.where(n_found >= FEWEST, np.stack(limits), np.nan)


def _quantile(in_order: NDArray, n_found: NDArray, share: NDArray) -> NDArray[np.float64]:
    """Quantiles at position share * (n + 1) of n ordered values, interpolated; at most the extremes."""
    last = np.maximum(n_found - 1, 0)
    place = np.clip(share * (n_found + 1) - 1.0, 0.0, last)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, last)
    low, high = (np.take_along_axis(in_order, at[None], axis=0)[0] for at in (below, above))
    return low + (place - below) * (high - low)
