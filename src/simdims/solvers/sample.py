"""Many items: replace a start that explains nothing by a fit to a sample of items, which then places the others.

A sweep over the sample costs a fraction of one over all items, and the other items are placed on its dimensions by
non-negative least squares.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from simdims import _threads
from simdims.solvers import criterion, kernels
from simdims.solvers.problem import (
    MANY,
    CompleteProblem,
    MatrixProblem,
    Penalty,
    in_reach,
    matrix_problem,
    similarities_among,
    similarities_between,
)

#: Items of the sample: enough per dimension to show it more than once.
_PER_COMPONENT, _SMALLEST = 10, 100

#: Items placed at a time, so that their similarities to the sample stay a small matrix.
_PLACED = 4096

#: Passes over the loadings of each placed item.
_PASSES = 8

#: Fits a problem in place from a start, like any other problem of its size.
Fit = Callable[[MatrixProblem, np.ndarray], object]


def start_from_sample(
    problem: CompleteProblem, W: np.ndarray, objective: float, fit: Fit, second: Executor | None
) -> float | None:
    """Replace W, whose objective is given, by a better start in place; return its objective, or None if none is found.

    The start determines which items are drawn, so runs from different starts use different samples.
    """
    n, rank = W.shape
    size = max(_PER_COMPONENT * rank, _SMALLEST)
    if n < max(3 * size, MANY):
        return None
    spread = 0.5 * (problem.squares - problem.total**2 / n**2)  # the objective of the best constant prediction
    if objective < 0.5 * spread:
        return None
    order = np.random.default_rng(zlib.crc32(W[:, 0].tobytes())).permutation(n)
    sample, rest = np.sort(order[:size]), np.sort(order[size:])
    penalty = problem.penalty.times(size / n)
    fitted = fit_sample(problem, sample, W[sample], penalty, fit)
    if fitted is None:
        return None
    candidate = np.empty_like(W)
    candidate[sample] = fitted
    for first in range(0, len(rest), _PLACED):
        items = rest[first : first + _PLACED]
        candidate[items] = _place(similarities_between(problem, items, sample), fitted, penalty, W[items], second)
    found = criterion.objective(problem, candidate)
    if not found < objective:
        return None
    W[:] = candidate
    return found


def fit_sample(
    problem: CompleteProblem, sample: np.ndarray, V: np.ndarray, penalty: Penalty, fit: Fit
) -> np.ndarray | None:
    """Fit the similarities within a sample of items from the start V; None if they are too small to be fitted."""
    S = similarities_among(problem, sample)
    if not in_reach(float(np.nanmax(S, initial=0.0)), S.dtype):  # items may be similar only to items outside the sample
        return None
    fit(replace(matrix_problem(S), penalty=penalty, limits=problem.limits[sample]), V)
    return V


def _place(
    similarities: np.ndarray, fitted: np.ndarray, penalty: Penalty, placed: np.ndarray, second: Executor | None
) -> np.ndarray:
    """Place items by their similarities to the fitted ones, in place, in two threads."""
    precise = fitted.astype(np.float64, copy=False)
    A, b, half = precise.T @ precise, (similarities @ fitted).astype(np.float64, copy=False), len(placed) // 2
    other = _threads.begin(second, kernels.embed_rows, A, b[half:], *penalty, placed[half:], _PASSES)
    kernels.embed_rows(A, b[:half], *penalty, placed[:half], _PASSES)
    other.result()
    return placed
