"""All pairs known, as a matrix S or as factors with S = F F^T: A_i = W^T W - w_i w_i^T and b_i = (S W)_i - S_ii w_i."""

from __future__ import annotations

import zlib
from concurrent.futures import Executor
from functools import partial

import numpy as np

from simdims import _threads
from simdims.solvers import descents, kernels
from simdims.solvers.ahead import FactorProducts, MatrixProducts, Products, sweep_ahead
from simdims.solvers.criterion import objective
from simdims.solvers.problem import (
    MANY,
    CompleteProblem,
    FactorProblem,
    MatrixProblem,
    in_reach,
    matrix_problem,
    similarities_between,
)
from simdims.solvers.progress import N_PASSES, Descent, Report, Rule, descend, stopping_rule
from simdims.solvers.together import ShortDescent

#: Items of the sample that a fit starts from: for each dimension enough to see it more than once.
_SAMPLE_PER_COMPONENT = 10
_SMALLEST_SAMPLE = 100

#: Below so many items a further product costs little beside the row updates; above, extrapolation begins after so many
#: sweeps: most descents have ended by then, and those that have not are long.
_SMALL, _LONG = 500, 20

#: Every third row leads where the others follow: as good a start for all rows together as a sweep over all of them.
_EVERY = 3

#: Items placed at a time, so that their similarities to the sample stay a small matrix.
_PLACED_TOGETHER = 4096

#: A sample is fitted until its dimensions have found each other, or for so many iterations.
_SAMPLE_ITERATIONS, _SAMPLE_TOL = 60, 0.003


def block_size(n_items: int) -> int:
    """Rows whose products with W share one BLAS call."""
    return 32 if n_items < 500 else 128


def fit_complete(
    problem: CompleteProblem, W: np.ndarray, *, max_iter: int, tol: float, report: Report = None
) -> Descent:
    """Minimise f over W >= 0 in place, all pairs of S known (its diagonal may be missing)."""
    n, rank = W.shape
    history = np.empty(max_iter + 1)
    history[0] = objective(problem, W)
    rule = stopping_rule(problem, tol)
    width = problem.factors.shape[1] + block_size(n) if isinstance(problem, FactorProblem) else n
    settings = {
        "work": n * width * rank,
        "report": report,
        "measure": lambda: objective(problem, W),
        "floor": rule[2],
    }
    if isinstance(problem, MatrixProblem) and n < MANY:

        def in_turn(first: int, last: int, rule: Rule) -> tuple[int, bool]:
            data = problem.values, problem.squares, problem.diagonal, problem.diagonal_weights
            first_far = 0 if n < _SMALL else _LONG
            return descents.descend_matrix(*data, W, N_PASSES, block_size(n), history, first, last, rule, first_far)

        few_in_turn = partial(_move_some, problem, W)
        return descend(ShortDescent(problem, W, history, rule, in_turn, few_in_turn).sweeps, history, **settings)
    with _threads.second_thread() as second:
        return descend(_LongDescent(problem, W, history, rule, second).sweeps, history, **settings)


def _move_some(problem: MatrixProblem, W: np.ndarray) -> float:
    """Update some rows in turn; return the change of the objective."""
    some = slice(None, None, _EVERY)
    rows, moved = np.ascontiguousarray(problem.values[some]), W[some].copy()
    diagonal, weights = problem.diagonal[some].copy(), problem.diagonal_weights[some].copy()
    own, precise = np.ascontiguousarray(rows[:, some]), W.astype(np.float64, copy=False)
    workspace = np.empty((3, W.shape[1]))
    gram = precise.T @ precise
    change = kernels.update_block(own, rows @ W, diagonal, weights, moved, gram, 0, N_PASSES, workspace)
    W[some] = moved
    return float(change)


class _LongDescent:
    """Sweeps over many items, block by block; what descents.descend_matrix does in compiled code."""

    def __init__(
        self, problem: CompleteProblem, W: np.ndarray, history: np.ndarray, rule: Rule, second: Executor | None
    ) -> None:
        self.problem, self.W, self.history, self.rule, self.second = problem, W, history, rule, second
        self.diagonal_weights = _diagonal_weights(problem)
        self.before, self.t = W.copy(), 1.0

    def sweeps(self, first: int, last: int) -> tuple[int, bool]:
        """Do sweeps first .. last - 1; return (sweeps done, converged)."""
        if first == 0 and _start_from_sample(self.problem, self.W, self.history, self.second):
            return 1, False
        for s in range(first, last):
            if descents.record(self.history, s, self._sweep(), self.rule):
                return s + 1, True
            if s >= _LONG:
                self._extrapolate(s)
        return last, False

    def _sweep(self) -> float:
        problem, W = self.problem, self.W
        if isinstance(problem, FactorProblem):
            products: Products = FactorProducts(problem.factors, W)
        else:
            products = MatrixProducts(problem.values, W)
        own = problem.diagonal, self.diagonal_weights
        return sweep_ahead(products, *own, W, N_PASSES, block_size(len(W)), self.second)

    def _extrapolate(self, s: int) -> None:
        self.t, momentum = descents.next_momentum(self.t)
        beyond = np.empty_like(self.W)
        descents.go_on(self.W, self.before, momentum, beyond)
        if momentum > 0:
            descents.hold(beyond, self.problem.diagonal, self.diagonal_weights)
            value = objective(self.problem, beyond)
            if value <= self.history[s]:
                self.history[s + 1] = value
                self.W[:] = beyond
            else:
                self.t = 1.0


def _start_from_sample(problem: CompleteProblem, W: np.ndarray, history: np.ndarray, second: Executor | None) -> bool:
    """Replace a start that explains nothing by a fit to a sample of the items; return whether it was done.

    A sweep over the sample costs a fraction of one over all items, and the dimensions it finds place the other items by
    non-negative least squares. Kept only if it lowers the objective, which it writes to history[1]. Which items it is
    follows from the start, so that runs from different starts see different samples.
    """
    n, rank = W.shape
    size = max(_SAMPLE_PER_COMPONENT * rank, _SMALLEST_SAMPLE)
    if n < 3 * size or n < MANY:
        return False
    spread = 0.5 * (problem.squares - problem.total**2 / n**2)  # the objective of the best constant prediction
    if history[0] < 0.5 * spread:
        return False
    order = np.random.default_rng(zlib.crc32(np.ascontiguousarray(W[:, 0]))).permutation(n)
    sample, rest = np.sort(order[:size]), np.sort(order[size:])
    fitted = _fit_sample(problem, sample, W[sample])
    if fitted is None:
        return False
    candidate = np.empty_like(W)
    candidate[sample] = fitted
    for start in range(0, len(rest), _PLACED_TOGETHER):
        items = rest[start : start + _PLACED_TOGETHER]
        candidate[items] = _place(similarities_between(problem, items, sample), fitted, W[items], second)
    history[1] = objective(problem, candidate)
    if not history[1] < history[0]:
        return False
    W[:] = candidate
    return True


def _fit_sample(problem: CompleteProblem, sample: np.ndarray, V: np.ndarray) -> np.ndarray | None:
    """Fit the similarities within a sample of items from the start V; None where they are too small to be fitted."""
    S = similarities_between(problem, sample, sample)
    unknown = np.flatnonzero(_diagonal_weights(problem)[sample] == 0)
    S[unknown, unknown] = np.nan
    if not in_reach(float(np.nanmax(S, initial=0.0)), S.dtype):  # similar items lie outside the sample
        return None
    fit_complete(matrix_problem(S), V, max_iter=_SAMPLE_ITERATIONS, tol=_SAMPLE_TOL)
    return V


def _place(similarities: np.ndarray, fitted: np.ndarray, placed: np.ndarray, second: Executor | None) -> np.ndarray:
    """Place items by their similarities to the fitted ones, in place, half of them in each thread."""
    half = len(placed) // 2
    parts = [(similarities[rows], fitted, placed[rows], 2 * N_PASSES) for rows in (slice(half, None), slice(half))]
    other = _threads.begin(second, kernels.embed_rows, *parts[0])
    kernels.embed_rows(*parts[1])
    other.result()
    return placed


def _diagonal_weights(problem: CompleteProblem) -> np.ndarray:
    return np.ones(problem.n_items) if isinstance(problem, FactorProblem) else problem.diagonal_weights
