"""Some pairs known, or known with different weights: lists of pairs. O(pairs r^2 + n r^2) per sweep, never n^2."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from simdims import _threads
from simdims.solvers import criterion, kernels
from simdims.solvers.complete import N_PASSES
from simdims.solvers.loop import Method
from simdims.solvers.problem import PairProblem
from simdims.solvers.sweeps import row_terms

#: Entries in the sums of one block of rows: a megabyte.
_SUMS_PER_BLOCK = 2**17


class ListedSweeps(Method):
    """Sweeps over lists of pairs; they never raise the objective and return its change."""

    def __init__(self, problem: PairProblem, second: Executor | None = None) -> None:
        self.problem, self.limits, self.second = problem, problem.limits, second
        self.terms = row_terms(problem)

    def objective(self, W: np.ndarray) -> float:
        """F(W)."""
        return criterion.objective(self.problem, W)

    def sweep(self, W: np.ndarray) -> float:
        """Update every row of W once, block by block, in place; return the change of F.

        Two threads share the sums over partners of a block; its rows then move in turn. The result is the same with one
        thread.
        """
        problem, second = self.problem, self.second
        n, rank = W.shape
        size = min(max(_SUMS_PER_BLOCK // rank**2, 8), 128, n)
        pairs = (problem.starts, problem.partners, problem.values, problem.weights, problem.background)
        A, b = np.empty((size, rank, rank)), np.empty((size, rank))
        precise = W.astype(np.float64, copy=False)
        gram = precise.T @ precise if problem.background else np.empty((rank, rank))
        change = 0.0
        for first in range(0, n, size):
            last = min(first + size, n)
            bounds = problem.starts[first : last + 1]
            middle = first + int(np.searchsorted(bounds, (bounds[0] + bounds[-1]) // 2)) if second else last
            rest = _threads.begin(second, kernels.gather_pairs, *pairs, W, first, middle, last, A, b)
            kernels.gather_pairs(*pairs, W, first, first, middle, A, b)
            rest.result()
            change += kernels.update_listed(*pairs, *self.terms, W, gram, first, last, A, b, N_PASSES)
        return change
