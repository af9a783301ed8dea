"""The objective F(W) = f(W) + penalty, f(W) = 1/2 sum_ij Omega_ij (S_ij - w_i . w_j)^2, and its KKT residual.

Solvers track F while they run; these functions compute it independently at the start and end of a fit. With `bounds`,
each missing off-diagonal pair adds 1/2 dist(w_i . w_j, bounds)^2 to f. Weights are relative to the largest one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from simdims import _threads
from simdims.solvers import kernels
from simdims.solvers.accelerated import SMALL_PART
from simdims.solvers.problem import (
    MANY,
    FactorProblem,
    MatrixProblem,
    PairProblem,
    Problem,
    float_blocks,
    observed_range,
    partner_counts,
    row_blocks,
)

Bounds = tuple[float, float] | None
T = TypeVar("T")

#: A predicted self-similarity above this multiple of the largest observed similarity is implausible. Of 41 simulated
#: fits that predicted unseen pairs worse than their mean did, 37 exceeded it; of 245 fits with R2 above 0.5, one did.
_IMPLAUSIBLE = 3.0


@dataclass(frozen=True)
class Determinacy:
    """What the data do not determine about an embedding.

    `n_values` counts the observed pairs, self-similarities included, and `n_free` the loadings (and weights of systems)
    fitted to them. `short` lists the items with fewer observed pairs than dimensions, and `counts` their numbers of
    pairs. `excessive` lists items without an observed self-similarity whose predicted one is more than three times
    `largest`, the largest observed similarity, and `excess` the ratios; `capped` lists items with a loading at its
    limit, the largest of which is `limit`.
    """

    n_values: int
    n_free: int
    short: np.ndarray
    counts: np.ndarray
    excessive: np.ndarray
    excess: np.ndarray
    largest: float
    capped: np.ndarray
    limit: float


class Evaluation(NamedTuple):
    """F(W), its data part f(W), and the KKT residual of W."""

    objective: float
    data_objective: float
    kkt_residual: float


@dataclass(frozen=True)
class Solution:
    """An embedding and its properties; objectives are in the units of the caller's weights."""

    W: np.ndarray
    objective: float
    data_objective: float
    history: np.ndarray
    n_iter: int
    converged: bool
    kkt_residual: float


def solution(W: np.ndarray, found: Evaluation, scale: float, history: np.ndarray, converged: bool) -> Solution:
    """The result of a fit: final figures multiplied by `scale`; the objective becomes the last entry of the history."""
    objective = found.objective * scale
    history[-1] = objective
    data = found.data_objective * scale
    return Solution(W, objective, data, history, len(history) - 1, converged, found.kkt_residual)


def objective(problem: Problem, W: np.ndarray, bounds: Bounds = None) -> float:
    """F(W)."""
    return data_objective(problem, W, bounds) + problem.penalty.of(W)


def data_objective(problem: Problem, W: np.ndarray, bounds: Bounds = None, *, is_small: bool = False) -> float:
    """f(W); `is_small` if products with a complete matrix are known to be too imprecise for it."""
    if isinstance(problem, PairProblem):
        return gradient(problem, W)[0]
    if isinstance(problem, FactorProblem):
        return _factor_gradient(problem, W.astype(np.float64, copy=False))[0]
    if problem.complete and not is_small:
        value = _products(problem, W.astype(np.float64, copy=False))[0]
        if value > SMALL_PART * problem.squares:
            return value

    def of_rows(first: int, last: int) -> float:
        blocks = _residual_blocks(problem, W, bounds, first, last)
        return 0.5 * sum(float(residual.ravel() @ weighted.ravel()) for _, residual, weighted in blocks)

    return sum(_in_halves(of_rows, problem.n_items))


def size(problem: Problem) -> float:
    """f(0), the objective of predicting nothing."""
    if not isinstance(problem, PairProblem):
        return 0.5 * problem.squares
    return data_objective(problem, np.zeros((problem.n_items, 1)))


def evaluate(problem: Problem, W: np.ndarray, bounds: Bounds = None) -> Evaluation:
    """Objective and KKT residual at the end of a fit.

    The KKT residual is the norm of the projected gradient relative to that of its data part, 2 |(Omega * S) W|: 0 at a
    KKT point. The projection drops infeasible directions: at W_ik = 0 only a negative slope counts, and at the limit
    of an item whose diagonal is not observed only a positive one.
    """
    value, slope, pull = gradient(problem, W, bounds)
    penalty = problem.penalty
    slope += 2.0 * penalty.ridge * W + 2.0 * penalty.lasso
    np.minimum(slope, 0.0, out=slope, where=W == 0)
    unknown = problem.unknown
    if unknown.size:
        at_limit = _at_limit(W[unknown], problem.limits[unknown])
        slope[unknown] = np.where(at_limit, np.maximum(slope[unknown], 0.0), slope[unknown])
    projected, scale = _norm(slope), 2.0 * _norm(pull)
    return Evaluation(value + penalty.of(W), value, projected / scale if scale > 0 else projected)


def determinacy(problem: Problem, W: np.ndarray) -> Determinacy:
    """What the observed pairs do not determine about W."""
    unknown = problem.unknown
    largest = observed_range(problem)[1] if unknown.size else 0.0
    own = np.ones(problem.n_items, dtype=np.intp)
    own[unknown] = 0
    return undetermined(W, partner_counts(problem), own, W.size, largest, problem.limits)


def undetermined(
    W: np.ndarray, n_pairs: np.ndarray, n_own: np.ndarray, n_free: int, largest: float, limits: np.ndarray
) -> Determinacy:
    """What each item's numbers of observed pairs and self-similarities leave undetermined about W."""
    observed, unknown = n_pairs + n_own, np.flatnonzero(n_own == 0)
    short = np.flatnonzero(observed < W.shape[1])
    norms = np.sum(np.square(W[unknown], dtype=np.float64), axis=1)
    excess = norms / largest if largest > 0 else np.zeros(unknown.size)
    beyond = excess > _IMPLAUSIBLE
    capped = unknown[_at_limit(W[unknown], limits[unknown]).any(axis=1)]
    return Determinacy(
        n_values=int(observed.sum() + n_own.sum()) // 2,
        n_free=n_free,
        short=short,
        counts=observed[short],
        excessive=unknown[beyond],
        excess=excess[beyond],
        largest=largest,
        capped=capped,
        limit=float(limits[capped].max(initial=0.0)),
    )


def _at_limit(W: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Which loadings are at the limit of their item."""
    return (1 - 5e-7) * limits[:, None] <= W


def _norm(A: np.ndarray) -> float:
    return math.sqrt(np.vdot(A, A))


def gradient(problem: Problem, W: np.ndarray, bounds: Bounds = None) -> tuple[float, np.ndarray, np.ndarray]:
    """f(W), its gradient -2 (Omega * (S - W W^T)) W, and the gradient's data part (Omega * S) W."""
    W = W.astype(np.float64, copy=False)
    if isinstance(problem, MatrixProblem):
        if problem.complete:
            value, pull, gram = _products(problem, W)
            if value > SMALL_PART * problem.squares:
                return value, _slope(problem, W, pull, gram), pull
        return _matrix_gradient(problem, W, bounds)
    if isinstance(problem, FactorProblem):
        return _factor_gradient(problem, W)
    slope, pull = np.empty_like(W), np.empty_like(W)
    listed = kernels.pair_gradient(
        problem.starts, problem.partners, problem.values, problem.weights, problem.background, W, slope, pull
    )
    norms, gram = np.einsum("ik,ik->i", W, W), W.T @ W
    total = listed + problem.background * float(np.sum(gram**2) - norms @ norms)
    total += float(problem.diagonal_weights @ (problem.diagonal - norms) ** 2)
    own = problem.diagonal_weights[:, None] * W
    zeros = problem.background * (W @ gram - norms[:, None] * W)
    slope = -2.0 * (slope - zeros + (problem.diagonal - norms)[:, None] * own)
    return 0.5 * max(total, 0.0), slope, pull + problem.diagonal[:, None] * own


def _products(problem: MatrixProblem, W: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """f(W) with all pairs known, from S W and W^T W, which are also returned: a third of the work."""
    if problem.n_items < MANY:
        pull = problem.values.astype(np.float64, copy=False).dot(W)
    else:
        pull = np.empty_like(W)

        def multiply(first: int, last: int) -> None:
            for rows in row_blocks(first, last):
                np.matmul(problem.values[rows].astype(np.float64, copy=False), W, out=pull[rows])

        _in_halves(multiply, problem.n_items)
    gram = W.T.dot(W)
    total = problem.squares - 2.0 * float(np.vdot(pull, W)) + float(np.vdot(gram, gram))
    unknown = problem.unknown  # stored as zeros in S, but not part of f
    if unknown.size:
        total -= float(np.sum(np.einsum("ik,ik->i", W[unknown], W[unknown]) ** 2))
    return 0.5 * total, pull, gram


def _slope(problem: MatrixProblem, W: np.ndarray, pull: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """The gradient of f from the same products."""
    slope = -2.0 * (pull - W @ gram)
    unknown = problem.unknown
    if unknown.size:
        slope[unknown] -= 2.0 * np.einsum("ik,ik->i", W[unknown], W[unknown])[:, None] * W[unknown]
    return slope


def _matrix_gradient(problem: MatrixProblem, W: np.ndarray, bounds: Bounds) -> tuple[float, np.ndarray, np.ndarray]:
    """`gradient` from the residuals."""
    slope, pull = np.empty_like(W), np.empty_like(W)

    def of_rows(first: int, last: int) -> float:
        value = 0.0
        for rows, residual, weighted in _residual_blocks(problem, W, bounds, first, last):
            value += 0.5 * float(residual.ravel() @ weighted.ravel())
            slope[rows] = -2.0 * (weighted @ W)
            data = problem.values[rows]
            if not problem.complete:
                data = np.where(np.isnan(data), 0.0, data)
            pull[rows] = (data * problem.weights[rows] if problem.weights.size else data) @ W
        return value

    return sum(_in_halves(of_rows, problem.n_items)), slope, pull


def _in_halves(of_rows: Callable[[int, int], T], n_items: int) -> list[T]:
    """Call `of_rows(first, last)` for all rows; with many rows, one half in each of two threads."""
    if n_items < MANY:
        return [of_rows(0, n_items)]
    half = n_items // 2
    with _threads.second_thread() as second:
        rest = _threads.begin(second, of_rows, half, n_items)
        return [of_rows(0, half), rest.result()]


def _factor_gradient(problem: FactorProblem, W: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """`gradient` from F^T F, F^T W and W^T W, without computing S."""
    gram = W.T @ W
    projection = np.zeros((problem.factors.shape[1], W.shape[1]))
    start = 0
    for block in float_blocks(problem.factors):
        projection += block.T @ W[start : start + len(block)]
        start += len(block)
    value = 0.5 * (problem.squares - 2.0 * float(np.sum(projection**2)) + float(np.sum(gram**2)))
    pull = np.concatenate([block @ projection for block in float_blocks(problem.factors)])
    return max(value, 0.0), -2.0 * (pull - W @ gram), pull


def _residual_blocks(
    problem: MatrixProblem, W: np.ndarray, bounds: Bounds, first: int, last: int
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Blocks of rows first .. last - 1: residuals and weighted residuals in float64."""
    W = W.astype(np.float64, copy=False)
    for rows in row_blocks(first, last):
        predicted = W[rows].dot(W.T)
        weighted = residual = problem.values[rows] - predicted
        if not problem.complete:
            missing = np.isnan(residual)
            np.putmask(residual, missing, 0.0 if bounds is None else np.clip(predicted, *bounds) - predicted)
            if problem.weights.size:
                weighted = residual * np.where(missing, 1.0, problem.weights[rows])
        if problem.unknown.size:
            unknown = np.flatnonzero(problem.diagonal_weights[rows] == 0)
            residual[unknown, rows.start + unknown] = weighted[unknown, rows.start + unknown] = 0.0
        yield rows, residual, weighted
