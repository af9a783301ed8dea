"""A dense matrix with gaps: what is missing is filled with the current W W^T before every sweep."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from simdims import _memory, _threads
from simdims.solvers import descents, kernels
from simdims.solvers.ahead import MatrixProducts, sweep_ahead
from simdims.solvers.complete import block_size
from simdims.solvers.criterion import Bounds
from simdims.solvers.problem import MANY, MatrixProblem
from simdims.solvers.progress import Descent, Report, Rule, descend, stopping_rule
from simdims.solvers.together import ShortDescent

#: Passes over a row of a filled matrix: what a row aims at is itself a guess, and not worth a closer look.
_PASSES = 3


def fit_filled(
    problem: MatrixProblem,
    W: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    bounds: Bounds = None,
    report: Report = None,
) -> Descent:
    """Minimise f over W >= 0 in place by filling what is missing with the current W W^T before every sweep.

    With `bounds`, missing pairs are filled with predictions clipped to them, which adds 1/2 dist(prediction, bounds)^2
    for each to f: a soft constraint.
    """
    n, rank = W.shape
    _memory.require(
        n * n * problem.dtype.itemsize,
        f"The filled copy of {n} x {n} similarities",
        "pass float32 values, or a sparse matrix with absent='missing', which is fitted from its stored pairs alone",
    )
    rule = stopping_rule(problem, tol)
    filling = _Filling(problem, W, max_iter, rule, bounds or (-np.inf, np.inf))
    with _threads.second_thread(n >= MANY) as second:
        filling.second = second
        sweeps = filling.sweeps_of_many
        if n < MANY:
            given = problem, W, filling.history, rule, filling.sweep_few, None, filling.over, filling.filled
            sweeps = ShortDescent(*given, together=bounds is None).sweeps
        return descend(sweeps, filling.history, work=2 * n * n * rank, report=report)


class _Filling:
    """A matrix that is filled, and how far its rows go beyond that; between sweeps `filled` is the filling of W."""

    def __init__(
        self, problem: MatrixProblem, W: np.ndarray, max_iter: int, rule: Rule, box: tuple[float, float]
    ) -> None:
        self.problem, self.W, self.rule, self.box = problem, W, rule, box
        self.second: Executor | None = None
        self.history = np.empty(max_iter + 1)
        self.filled = np.empty((len(W), len(W)), problem.dtype)
        self.over = over_relaxation(problem, W.shape[1])
        self.relaxation, self.scaled_weights = np.empty(len(W)), np.empty(len(W))
        self.before, self.t = W.copy(), 1.0
        self.damping = 1.0
        self._damp(1.0)

    def sweep_few(self, first: int, last: int, rule: Rule) -> tuple[int, bool]:
        """Do sweeps first .. last - 1 in compiled code; return (sweeps done, converged)."""
        problem = self.problem
        done, converged, self.damping = descents.descend_filled(
            problem.values,
            problem.weights,
            problem.diagonal,
            problem.diagonal_weights,
            self.box,
            self.over,
            self.damping,
            self.filled,
            self.W,
            _PASSES,
            block_size(len(self.W)),
            self.history,
            first,
            last,
            rule,
        )
        return done, converged

    def sweeps_of_many(self, first: int, last: int) -> tuple[int, bool]:
        """What descents.descend_filled does, with a second thread beside this one; the numbers are the same without."""
        history, W = self.history, self.W
        if first == 0:
            history[0] = self._fill()
        for s in range(first, last):
            kept = W.copy()
            self._sweep()
            self.t, momentum = descents.next_momentum(self.t) if s >= descents.FIRST_FAR else (1.0, 0.0)
            swept = W.copy()
            descents.go_on(swept, self.before, momentum, W)
            descents.hold(W, self.problem.diagonal, self.problem.diagonal_weights)
            history[s + 1] = self._fill()
            if momentum > 0.0 and not history[s + 1] <= history[s]:
                self.t = 1.0
                W[:] = swept
                history[s + 1] = self._fill()
            rise = history[s + 1] - history[s]
            if not rise <= 0.0:
                W[:] = kept
                self.before, self.t = kept, 1.0
                history[s + 1] = history[s]
                if self.damping == 0.0 and rise <= descents.ROUNDING * history[s]:
                    return s + 1, True
                self._damp(0.5 * self.damping if self.damping > 0.1 else 0.0)
                history[s + 1] = self._fill()
            elif descents.stalled(history, s + 1, self.rule):
                return s + 1, True
        return last, False

    def _damp(self, damping: float) -> None:
        """Set how much of the over-relaxation is used."""
        self.damping = damping
        descents.relax(self.over, damping, self.problem.diagonal_weights, self.relaxation, self.scaled_weights)

    def _sweep(self) -> None:
        products = MatrixProducts(self.filled, self.W)
        block = block_size(len(self.W))
        sweep_ahead(products, self.problem.diagonal, self.scaled_weights, self.W, _PASSES, block, self.second)

    def _fill(self) -> float:
        """Fill the matrix, half of its rows in each thread; return f(W)."""
        problem, W, half = self.problem, self.W, len(self.W) // 2
        given = (problem.values, problem.weights, W, np.ascontiguousarray(W.T), self.relaxation, *self.box, self.filled)
        other = _threads.begin(self.second, kernels.fill_rows, *given, half, len(W))
        return kernels.fill_rows(*given, 0, half) + other.result()


def over_relaxation(problem: MatrixProblem, n_components: int) -> np.ndarray:
    """For each row, how much further than its filling a sweep may go.

    The known part of W^T W that row i sees is about its share p_i of the whole, so 1 / p_i is right on average; its
    largest relative eigenvalue is about (1 + sqrt(r / known_i))^2 times that, and a step stays stable below twice the
    inverse of it.
    """
    known = np.maximum(problem.known, 1)
    stable = np.minimum(1.0, 1.8 / (1.0 + np.sqrt(n_components / known)) ** 2)
    return np.maximum(1.0, stable / np.where(problem.shares > 0, problem.shares, 1.0))
