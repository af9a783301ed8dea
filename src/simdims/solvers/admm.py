"""The paper's Algorithm 1: ADMM over an auxiliary Z in a box, with scalar sBSUM sweeps for W.

The reference for the other solvers, and the only one that keeps every entry of Z within `bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simdims import _memory
from simdims.solvers import kernels
from simdims.solvers.criterion import Bounds, objective
from simdims.solvers.loop import Descent, Report
from simdims.solvers.problem import MatrixProblem, with_gaps
from simdims.solvers.sweeps import MatrixProducts, RowTerms, row_terms, sweep

#: sBSUM visits each entry of W once per sweep.
_ONE_PASS = 1


@dataclass
class State:
    """Iterates: W, the target T = Z + dual / rho of the next W-update, and the dual."""

    W: np.ndarray
    target: np.ndarray
    dual: np.ndarray
    rho: float

    @property
    def Z(self) -> np.ndarray:
        """The auxiliary matrix."""
        return self.target - self.dual / self.rho


def fit_admm(
    problem: MatrixProblem,
    W: np.ndarray,
    *,
    max_iter: int,
    inner_iter: int,
    tol: float,
    rho: float,
    bounds: Bounds,
    report: Report = None,
) -> Descent:
    """Run Algorithm 1 in place on W: at most `max_iter` outer iterations of `inner_iter` sBSUM sweeps each.

    Stops when an outer iteration changes f by less than the fraction `tol` and |Z - W W^T| < `tol` |Z|. Without missing
    pairs, weights and box, no Z is needed: the iterations are plain sBSUM sweeps on S.
    """
    if bounds is None and problem.complete and not problem.unknown.size:
        terms = row_terms(problem)

        def step(value: float) -> tuple[float, bool]:
            before = value
            for _ in range(inner_iter):
                value += sweep(MatrixProducts(problem.values, W), terms, W, _ONE_PASS)
            return value, before - value <= tol * before
    else:
        problem = with_gaps(problem)
        state = initial_state(problem, W, rho=rho)

        def step(value: float) -> tuple[float, bool]:
            before = value
            value, gap, size = iterate(problem, state, inner_iter=inner_iter, bounds=bounds)
            return value, abs(before - value) <= tol * before and gap <= tol * size

    history, settled = [objective(problem, W)], False
    while len(history) <= max_iter and not settled:
        value, settled = step(history[-1])
        if report is not None:
            report(len(history), value)
        history.append(value)
    return Descent(np.array(history), bool(settled))


def initial_state(problem: MatrixProblem, W: np.ndarray, *, rho: float, start: str = "product") -> State:
    """Z = W W^T and a zero dual (Algorithm 1), or, with start="data", Z = the data with zeros for missing pairs."""
    n = problem.n_items
    _memory.require(
        2 * n * n * problem.dtype.itemsize,
        f"The auxiliary matrix and the dual of ADMM for {n} items",
        "pass float32 values, or solver='bcd', which needs half of it or less",
    )
    if start not in ("product", "data"):
        raise ValueError(f"start must be 'product' or 'data', got {start!r}.")
    target = W @ W.T if start == "product" else np.nan_to_num(problem.values)
    return State(W=W, target=target, dual=np.zeros((n, n), problem.dtype), rho=rho)


def iterate(problem: MatrixProblem, state: State, *, inner_iter: int, bounds: Bounds) -> tuple[float, float, float]:
    """One outer iteration in place: W, then Z, then the dual; returns F(W), |Z - W W^T| and |Z|."""
    n = len(state.W)
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    penalty, ones = problem.penalty.times(1.0 / state.rho), np.ones(n)
    own = np.diagonal(state.target).astype(np.float64)
    terms = RowTerms(own, ones, np.inf * ones, penalty.ridge * ones, penalty.lasso * ones)
    for _ in range(inner_iter):
        sweep(MatrixProducts(state.target, state.W), terms, state.W, _ONE_PASS)
    np.matmul(state.W, state.W.T, out=state.target)
    value, gap, size = kernels.split_step(
        problem.values, problem.weights, state.rho, low, high, state.target, state.dual
    )
    return value + problem.penalty.of(state.W), np.sqrt(gap), np.sqrt(size)
