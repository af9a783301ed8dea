"""The penalty on the loadings, in units that do not depend on the scale of the similarities or of their weights.

    F(W) = f(W) + lambda [(1 - l1_ratio)/2 |W|_F^2 + l1_ratio s sum_ik W_ik],    s = sqrt(sd(S)),
    lambda/2 = alpha * 2 sqrt(mean_i sum_{j != i} Omega_ij^2 (S_ij - m)^2),

with m and sd(S) the weighted mean and standard deviation over pairs of different items. The ridge part is the nuclear
norm of W W^T: it lowers every eigenvalue by lambda/2. With alpha = 1 this is the largest eigenvalue of shuffled
similarities after removing their mean, the edge of the noise spectrum.
"""

from __future__ import annotations

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
    return replace(problem, penalty=penalty, limits=np.full(problem.n_items, np.inf))


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

    Both are over pairs of different items, in the problem's weights; zero if all similarities are the same.
    """
    weight, first, squares, spread = _moments(problem, 0.0)
    if weight == 0.0:
        return 0.0, 0.0
    mean = first / weight
    _, _, squares, spread = _moments(problem, mean)
    return 2.0 * np.sqrt(spread / problem.n_items), float(np.sqrt(squares / weight))


def _moments(problem: Problem, mean: float) -> tuple[float, float, float, float]:
    """The sums of Omega, Omega S, Omega (S - mean)^2 and Omega^2 (S - mean)^2 over pairs of different items."""
    if isinstance(problem, FactorProblem):
        return _factor_moments(problem, mean)
    if isinstance(problem, MatrixProblem):
        return _matrix_moments(problem, mean)
    return _listed_moments(problem, mean)


def _matrix_moments(problem: MatrixProblem, mean: float) -> tuple[float, float, float, float]:
    weight = first = squares = spread = 0.0
    for rows in row_blocks(0, problem.n_items):
        values = problem.values[rows].astype(np.float64)
        known = ~np.isnan(values)
        known[np.arange(len(known)), np.arange(rows.start, rows.stop)] = False
        omega = known * problem.weights[rows] if problem.weights.size else known.astype(np.float64)
        values[~known] = 0.0
        part = omega * (values - mean) ** 2
        weight += float(omega.sum())
        first += float((omega * values).sum())
        squares += float(part.sum())
        spread += float((omega * part).sum())
    return weight, first, squares, spread


def _listed_moments(problem: PairProblem, mean: float) -> tuple[float, float, float, float]:
    omega = problem.weights.astype(np.float64)
    part = omega * (problem.values - mean) ** 2
    n_unlisted = problem.n_items * (problem.n_items - 1) - len(omega)
    zeros = problem.background * n_unlisted
    weight, squares = float(omega.sum()) + zeros, float(part.sum()) + zeros * mean**2
    spread = float((omega * part).sum()) + problem.background * zeros * mean**2
    return weight, float((omega * problem.values).sum()), squares, spread


def _factor_moments(problem: FactorProblem, mean: float) -> tuple[float, float, float, float]:
    """Sums over all of S = F F^T except its diagonal; centred by `mean`, with F^T F and the sums of F."""
    n, own = problem.n_items, problem.diagonal
    first = problem.total - float(own.sum())
    gram = sum(block.T @ block for block in float_blocks(problem.factors))
    centred = float(np.sum(gram**2)) - 2.0 * mean * problem.total + (n * mean) ** 2 - float(np.sum((own - mean) ** 2))
    centred = max(centred, 0.0)
    return float(n * (n - 1)), first, centred, centred
