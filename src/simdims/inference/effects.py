"""Relations of weights to groups or scores under permutation, with effect sizes and 95% intervals."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simdims.inference.permutations import pvalues

#: Confidence level of the intervals.
LEVEL = 0.95
#: Bisection steps for the end of an interval: to a millionth of the bracket's width.
_HALVINGS = 24
#: Doublings after which the end of an interval is taken as infinite.
_DOUBLINGS = 40

#: Slopes (one per dimension) -> relations to the weights less these slopes, of observed and of permuted scores.
Relations = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]


class Effects(NamedTuple):
    """One effect per dimension, its interval and the contrast."""

    size: NDArray[np.float64]
    interval: NDArray[np.float64]
    contrast: tuple[str, ...]


def correlations(weights: NDArray[np.float64], scores: NDArray[np.float64], drawn: NDArray[np.float64]) -> Relations:
    """Correlations of centred weights with centred observed scores and, one row each, with permuted ones."""
    products, own = drawn @ weights, drawn @ scores
    norm = np.linalg.norm(scores)

    def at(slope: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        left = weights - scores[:, None] * slope
        lengths = np.linalg.norm(left, axis=0)
        lengths = norm * np.where(lengths > 1e-12 * np.linalg.norm(weights, axis=0), lengths, np.inf)
        return scores @ left / lengths, (products - own[:, None] * slope) / lengths

    return at


def welch(weights: NDArray[np.float64], members: NDArray[np.float64], drawn: NDArray[np.float64]) -> Relations:
    """Welch's t between the members of a group and the others, as t / sqrt(t^2 + n - 2) instead of a correlation."""
    # Unlike a correlation, it remains comparable under permutation if the groups differ in spread.
    n, n_members = len(members), float(members.sum())
    parts = [
        (rows @ weights, rows @ weights**2, rows @ (weights * members[:, None]), rows @ members[:, None])
        for rows in (members[None], drawn, np.ones((1, n)))
    ]

    def at(slope: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sums = [total - slope * shared for total, _, _, shared in parts]
        squares = [square - 2 * slope * cross + slope**2 * shared for _, square, cross, shared in parts]
        found = []
        for total, square in zip(sums[:2], squares[:2], strict=True):
            own = _mean_and_error(total, square, n_members)
            others = _mean_and_error(sums[2] - total, squares[2] - square, n - n_members)
            difference = own[0] - others[0]
            length = np.sqrt(difference**2 + (n - 2) * (own[1] + others[1]))
            found.append(difference / np.where(length > 0, length, np.inf))
        return found[0][0], found[1]

    return at


def _mean_and_error(
    total: NDArray[np.float64], square: NDArray[np.float64], n: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and their squared standard errors (zero for a single value), from sums and sums of squares."""
    mean = total / n
    squares = np.maximum(square - n * mean**2, 0.0)  # rounding may make it negative
    return mean, squares / (n * max(n - 1, 1))


def slopes(weights: NDArray[np.float64], scores: NDArray[np.float64], relations: Relations, contrast: str) -> Effects:
    """Slopes of centred weights on centred scores, with intervals of slopes that permutations do not reject."""
    total = float(scores @ scores)
    estimate = scores @ weights / total
    n_components = weights.shape[1]
    _, null = relations(estimate)
    if (1 - LEVEL) * (len(null) + 1) < 1 - 1e-9:
        interval = np.tile([[-np.inf], [np.inf]], n_components)
    else:
        spread = np.linalg.norm(weights - scores[:, None] * estimate, axis=0) / np.sqrt(total * len(scores))
        interval = np.stack([_end(relations, estimate, side * spread) for side in (-1.0, 1.0)])
    return Effects(estimate, interval, (contrast,) * n_components)


def _end(relations: Relations, estimate: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
    """The end of an interval in the direction of `step`: where the p-value falls to 1 - LEVEL."""

    def is_rejected(slope: NDArray[np.float64]) -> NDArray[np.bool_]:
        return pvalues(*relations(slope), "two-sided") <= 1 - LEVEL + 1e-12

    inside, outside = estimate, estimate + step
    for _ in range(_DOUBLINGS):
        rejected = is_rejected(outside) | (step == 0)
        if rejected.all():
            break
        inside = np.where(rejected, inside, outside)
        step = np.where(rejected, step, 2 * step)
        outside = np.where(rejected, outside, estimate + step)
    never = ~(is_rejected(outside) | (step == 0))
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        rejected = is_rejected(middle)
        inside, outside = np.where(rejected, inside, middle), np.where(rejected, middle, outside)
    return np.where(never, np.sign(step) * np.inf, (inside + outside) / 2)


def largest_differences(
    weights: NDArray[np.float64], indicators: NDArray[np.float64], n_free: int, groups: list[str]
) -> Effects:
    """The largest difference between the means of two groups, with the Tukey-Kramer simultaneous interval."""
    # `n_free` is the number of systems less that of the means removed from weights and indicators by centring.
    inverse = np.linalg.pinv(indicators.T @ indicators)
    means = inverse @ indicators.T @ weights
    n_left = n_free - (len(groups) - 1)
    squares = np.sum((weights - indicators @ means) ** 2, axis=0)
    top, bottom = means.argmax(axis=0), means.argmin(axis=0)
    size = means.max(axis=0) - means.min(axis=0)
    spread = inverse[top, top] + inverse[bottom, bottom] - 2 * inverse[top, bottom]
    half = (
        _range(len(groups), n_left) * np.sqrt(squares / n_left * spread / 2) if n_left else np.full(len(size), np.inf)
    )
    contrast = tuple(f"{groups[one]} - {groups[two]}" for one, two in zip(top, bottom, strict=True))
    return Effects(size, np.stack([size - half, size + half]), contrast)


@cache
def _range(n_groups: int, n_left: int) -> float:
    """The quantile of the studentized range distribution (0.1 s to compute)."""
    return float(stats.studentized_range.ppf(LEVEL, n_groups, n_left))


def mean_intervals(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean of each column and its confidence interval by Student's t; for a single row, the mean itself."""
    means, n = weights.mean(axis=0), len(weights)
    if n < 2:
        return means, means
    half = stats.t.ppf(0.5 + LEVEL / 2, n - 1) * weights.std(axis=0, ddof=1) / np.sqrt(n)
    return means - half, means + half
