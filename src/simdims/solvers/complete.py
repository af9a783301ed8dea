"""All pairs known: block coordinate descent with A_i = W^T W - w_i w_i^T and b_i = (S W)_i - S_ii w_i."""

from __future__ import annotations

import numpy as np

from simdims.solvers import kernels
from simdims.solvers.criterion import objective
from simdims.solvers.problem import MatrixProblem
from simdims.solvers.progress import N_PASSES, Descent, Report, descend, stopping_rule


def block_size(n_items: int, n_components: int) -> int:
    """Rows whose products with W share one BLAS call; 1 for small problems, which do without BLAS and its threads."""
    return 1 if n_items * n_items * n_components <= 2**21 else 128


def fit_complete(problem: MatrixProblem, W: np.ndarray, *, max_iter: int, tol: float, report: Report = None) -> Descent:
    """Minimise f over W >= 0 in place, all pairs of S known (its diagonal may be missing)."""
    n, rank = W.shape
    history = np.empty(max_iter + 1)
    history[0] = objective(problem, W)
    rule = stopping_rule(problem, tol)
    block = block_size(n, rank)

    def sweeps(first: int, last: int) -> tuple[int, bool]:
        return kernels.descend_matrix(
            problem.values,
            problem.diagonal,
            problem.diagonal_weights,
            W,
            N_PASSES,
            block,
            history,
            first,
            last,
            rule,
        )

    return descend(sweeps, history, work=n * n * rank, report=report)
