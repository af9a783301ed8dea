"""The penalty on the loadings, in units that do not depend on the scale of the similarities or of their weights.

    F(W) = f(W) + lambda [(1 - l1_ratio)/2 |W|_F^2 + l1_ratio s sum_ik W_ik],    s = sqrt(sd(S)),
    lambda/2 = alpha * 2 sqrt(mean_i sum_{j != i} Omega_ij^2 (S_ij - m)^2),

with m and sd(S) the weighted mean and standard deviation over pairs of different items. The ridge part is the nuclear
norm of W W^T: it lowers every eigenvalue by lambda/2. With alpha = 1 this is the largest eigenvalue of shuffled
similarities after removing their mean, the edge of the noise spectrum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simdims.solvers.problem import (
    NO_PENALTY,
    FactorProblem,
    MatrixProblem,
    PairProblem,
    Penalty,
    Problem,
    float_blocks,
    row_blocks,
)


def penalised(problem: Problem, alpha: float, l1_ratio: float = 0.0) -> Problem:
    """The problem with a penalty, which makes limits on loadings unnecessary.

    If all similarities are the same, every penalty is zero, and the limits stay.
    """
    if alpha == 0.0:
        return problem
    edge, deviation = noise_scale(problem)
    if edge == 0.0:
        return problem
    half = alpha * edge
    penalty = Penalty((1.0 - l1_ratio) * half, l1_ratio * half * np.sqrt(deviation))
    found = replace(problem, penalty=penalty, limits=np.full(problem.n_items, np.inf))
    object.__setattr__(found, "noise", (edge, deviation))
    return found


def penalty_of_rows(problem: Problem, alpha: float, l1_ratio: float) -> Penalty:
    """The penalty of new rows, whose known pairs all have weight 1: that of the problem without weights."""
    if alpha == 0.0:
        return NO_PENALTY
    if isinstance(problem, PairProblem):
        ones = (problem.weights > 0).astype(problem.dtype)
        problem = replace(problem, weights=ones, background=float(problem.background > 0))
    elif isinstance(problem, MatrixProblem) and problem.weights.size:
        problem = replace(problem, weights=np.empty((0, 0), problem.dtype))
    return penalised(replace(problem, penalty=NO_PENALTY), alpha, l1_ratio).penalty


def noise_scale(problem: Problem) -> tuple[float, float]:
    """The edge of the spectrum of shuffled similarities, and the standard deviation of the similarities.

    Both are over pairs of different items, in the problem's weights; zero if all similarities are the same. The problem
    keeps them, because paths of penalties ask again.
    """
    if problem.noise is None:
        object.__setattr__(problem, "noise", _noise_scale(problem))
    return problem.noise  # type: ignore[return-value]


def _noise_scale(problem: Problem) -> tuple[float, float]:
    weight, total = _sums(problem)
    if weight == 0.0:
        return 0.0, 0.0
    squares, spread = _squares(problem, total / weight)
    return 2.0 * np.sqrt(spread / problem.n_items), float(np.sqrt(squares / weight))


def _sums(problem: Problem) -> tuple[float, float]:
    """The sums of Omega and Omega S over pairs of different items."""
    n = problem.n_items
    if isinstance(problem, FactorProblem):
        return float(n * (n - 1)), problem.total - float(problem.diagonal.sum())
    if isinstance(problem, PairProblem):
        weights = problem.weights.astype(np.float64)
        zeros = problem.background * (n * (n - 1) - len(weights))
        return float(weights.sum()) + zeros, float((weights * problem.values).sum())
    weight = total = 0.0
    for values, unknown, omega in _others(problem):
        _clear(values, unknown)
        weight += float(omega.sum() if omega is not None else unknown.size - np.count_nonzero(unknown))
        total += float((values if omega is None else omega * values).sum())
    return weight, total


def _squares(problem: Problem, mean: float) -> tuple[float, float]:
    """The sums of Omega (S - mean)^2 and Omega^2 (S - mean)^2 over pairs of different items."""
    if isinstance(problem, FactorProblem):
        return (_factor_squares(problem, mean),) * 2
    if isinstance(problem, PairProblem):
        weights = problem.weights.astype(np.float64)
        part = weights * (problem.values - mean) ** 2
        zeros = problem.background * (problem.n_items * (problem.n_items - 1) - len(weights))
        squares, spread = float(part.sum()) + zeros * mean**2, float((weights * part).sum())
        return squares, spread + problem.background * zeros * mean**2
    squares = spread = 0.0
    for values, unknown, omega in _others(problem):
        values -= mean
        _clear(values, unknown)
        values *= values
        part = values if omega is None else omega * values
        squares += float(part.sum())
        spread += float(part.sum() if omega is None else (omega * part).sum())
    return squares, spread


def _others(problem: MatrixProblem) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Blocks of rows of a matrix: a copy of its values, the entries that do not count, and weights unless all are 1."""
    for rows in row_blocks(0, problem.n_items):
        values = problem.values[rows].astype(np.float64)
        unknown = np.isnan(values)
        unknown[np.arange(len(unknown)), np.arange(rows.start, rows.stop)] = True
        omega = None
        if problem.weights.size:
            omega = problem.weights[rows].copy()
            _clear(omega, unknown)
        yield values, unknown, omega


def _clear(values: np.ndarray, unknown: np.ndarray) -> None:
    """Set entries to zero by masking their bits, five times as fast as an assignment if they are scattered."""
    bits = np.dtype(f"i{values.itemsize}")
    values.view(bits)[...] &= np.subtract(unknown, 1, dtype=bits)


def _factor_squares(problem: FactorProblem, mean: float) -> float:
    """The sum of (S - mean)^2 over all of S = F F^T except its diagonal, with F^T F and the sums of F."""
    n, own = problem.n_items, problem.diagonal
    gram = sum(block.T @ block for block in float_blocks(problem.factors))
    centred = float(np.sum(gram**2)) - 2.0 * mean * problem.total + (n * mean) ** 2 - float(np.sum((own - mean) ** 2))
    return max(centred, 0.0)
