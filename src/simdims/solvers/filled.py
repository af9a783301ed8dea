"""A dense matrix with gaps: missing pairs are filled in with the current W W^T before every sweep.

T = R + omega_i Omega * (S - R) with R = W W^T. Row i is over-relaxed by omega_i = 1 + damping (over_i - 1), where
over_i is one over the observed fraction of row i, because the observed part of W^T W is about that fraction of it.
Without over-relaxation, filling majorises f, and only rounding can raise f.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from simdims import _memory, _threads
from simdims.solvers import kernels
from simdims.solvers.criterion import Bounds
from simdims.solvers.loop import Method
from simdims.solvers.problem import MANY, MatrixProblem
from simdims.solvers.sweeps import MatrixProducts, row_terms, sweep

#: Passes over a row of a filled matrix; its target is partly a guess, so more passes would not help.
_PASSES = 3

#: The first sweeps on a filled matrix make large steps without extrapolation.
_EXTRAPOLATE_FROM = 5

#: Rows of W W^T that still fit in the cache when they are filled.
_ROWS = 96


class FilledSweeps(Method):
    """Sweeps over the filled matrix; `objective(W)` refills it, and a sweep uses it as is.

    With `bounds`, missing pairs are filled with predictions clipped to the bounds, which adds 1/2 dist(prediction,
    bounds)^2 to f for each: a soft constraint.
    """

    may_rise = True
    extrapolate_from = _EXTRAPOLATE_FROM

    def __init__(
        self, problem: MatrixProblem, n_components: int, bounds: Bounds = None, second: Executor | None = None
    ) -> None:
        n = problem.n_items
        _memory.require(
            n * n * problem.dtype.itemsize,
            f"The filled copy of {n} x {n} similarities",
            "pass float32 values, or a sparse matrix with absent='missing', fitted from its stored pairs alone",
        )
        self.problem, self.limits, self.second = problem, problem.limits, second
        self.low, self.high = bounds or (-np.inf, np.inf)
        self.filled = np.empty((n, n), problem.dtype)
        self.over = over_relaxation(problem, n_components)
        self._damp(1.0)

    def objective(self, W: np.ndarray) -> float:
        """Fill the matrix, many items in two threads; return F(W)."""
        n, transposed, penalty = len(W), np.ascontiguousarray(W.T), self.problem.penalty.of(W)
        if n < MANY:
            return self._fill(W, transposed, 0, n) + penalty
        rest = _threads.begin(self.second, self._fill, W, transposed, n // 2, n)
        return self._fill(W, transposed, 0, n // 2) + rest.result() + penalty

    def sweep(self, W: np.ndarray) -> None:
        """Update every row of W once, in place."""
        sweep(MatrixProducts(self.filled, W), self.terms, W, _PASSES, self.second)

    def shorten(self) -> bool:
        """Halve the over-relaxation; return False if there is none left."""
        if self.damping == 0.0:
            return False
        self._damp(0.5 * self.damping if self.damping > 0.1 else 0.0)
        return True

    def _damp(self, damping: float) -> None:
        """Set the fraction of the over-relaxation that is used."""
        self.damping = damping
        self.relaxation = 1.0 + damping * (self.over - 1.0)
        self.terms = row_terms(self.problem, self.relaxation)

    def _fill(self, W: np.ndarray, transposed: np.ndarray, first: int, last: int) -> float:
        problem, total = self.problem, 0.0
        for start in range(first, last, _ROWS):
            stop = min(start + _ROWS, last)
            np.dot(W[start:stop], transposed, out=self.filled[start:stop])
            total += kernels.fill_rows(
                problem.values, problem.weights, self.relaxation, self.low, self.high, self.filled, start, stop
            )
        return total


def over_relaxation(problem: MatrixProblem, n_components: int) -> np.ndarray:
    """The over-relaxation of each row.

    The known pairs of row i cover about a fraction p_i of W^T W, so 1 / p_i is right on average; the largest relative
    eigenvalue of that part is about (1 + sqrt(r / known_i))^2 times p_i, and steps below twice its inverse are stable.
    """
    known = np.maximum(problem.known, 1)
    stable = np.minimum(1.0, 1.8 / (1.0 + np.sqrt(n_components / known)) ** 2)
    return np.maximum(1.0, stable / np.where(problem.shares > 0, problem.shares, 1.0))
