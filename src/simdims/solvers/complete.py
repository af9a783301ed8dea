"""All pairs known, as a matrix S or as factors with S = F F^T: A_i = W^T W - w_i w_i^T and b_i = (S W)_i - S_ii w_i."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from simdims.solvers import criterion, kernels
from simdims.solvers.accelerated import SMALL_PART
from simdims.solvers.loop import Method
from simdims.solvers.problem import CompleteProblem, FactorProblem, MatrixProblem
from simdims.solvers.sweeps import FactorProducts, MatrixProducts, Products, RowTerms, row_terms, sweep

#: Passes over the coordinates of a row before the next row; further passes cost little compared with the products.
N_PASSES = 4

#: Updating every third row gives as good a start for simultaneous updates as sweeping over all rows.
_EVERY = 3


class CompleteSweeps(Method):
    """Sweeps over a complete problem; they never raise the objective and return its change."""

    def __init__(
        self, problem: CompleteProblem, extrapolate_from: float = np.inf, second: Executor | None = None
    ) -> None:
        self.problem, self.extrapolate_from, self.second = problem, extrapolate_from, second
        self.limits = problem.limits
        self.terms = row_terms(problem)
        self.is_small = False

    def objective(self, W: np.ndarray) -> float:
        """F(W)."""
        data = criterion.data_objective(self.problem, W, is_small=self.is_small)
        self.is_small = data <= SMALL_PART * self.problem.squares
        return data + self.problem.penalty.of(W)

    def sweep(self, W: np.ndarray) -> float:
        """Update every row of W once, in place; return the change of F."""
        if isinstance(self.problem, FactorProblem):
            products: Products = FactorProducts(self.problem.factors, W)
        else:
            products = MatrixProducts(self.problem.values, W)
        return sweep(products, self.terms, W, N_PASSES, self.second)


def update_some_rows(problem: MatrixProblem, terms: RowTerms, W: np.ndarray) -> float:
    """Update every third row in turn, in place; return the change of the objective."""
    some = slice(None, None, _EVERY)
    rows, moved = np.ascontiguousarray(problem.values[some]), W[some].copy()
    own, precise = np.ascontiguousarray(rows[:, some]), W.astype(np.float64, copy=False)
    change = kernels.update_block(own, rows @ W, *terms.at(some), moved, precise.T @ precise, 0, N_PASSES)
    W[some] = moved
    return float(change)
