"""Minimise f(W) = 1/2 sum_ij Omega_ij (S_ij - w_i . w_j)^2 over W >= 0: arrays in, arrays out.

`solve` is the one place where a solver is picked. Two problems, many storages: with all pairs known the products S W
are enough (complete.py); with some pairs known or weighted, lists of pairs or a filled matrix serve (observed.py).
admm.py is the paper's algorithm, the reference. torch.py fits on a GPU; `solve_on` goes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from simdims import _threads
from simdims.solvers import kernels
from simdims.solvers.admm import fit_admm
from simdims.solvers.complete import block_size, fit_complete
from simdims.solvers.criterion import Bounds, evaluate
from simdims.solvers.filled import fit_filled
from simdims.solvers.observed import fit_pairs, prefers_pairs
from simdims.solvers.problem import (
    FactorProblem,
    MatrixProblem,
    PairProblem,
    Problem,
    as_problem,
    factor_problem,
    has_missing,
    matrix_of,
    misses_pairs,
    observed_range,
    pairs_of,
    require_scale,
)
from simdims.solvers.progress import Descent, Report, settle
from simdims.solvers.spectra import leading_eigenpairs
from simdims.solvers.start import given_start, random_start, spectral_start
from simdims.solvers.together import are_better_listed, can_move_together

__all__ = [
    "Problem",
    "Solution",
    "as_problem",
    "can_fill",
    "embed",
    "factor_problem",
    "given_start",
    "has_missing",
    "leading_eigenpairs",
    "observed_range",
    "random_start",
    "require_scale",
    "solve",
    "solve_on",
    "spectral_start",
]

#: Multiply-adds in the products of one block below which further BLAS threads cost more than they help: they spin
#: between calls, on cores that the row updates or other fits need.
_THREADED_WORK = 2**25

#: Coordinate descent on a convex problem of r numbers ends long before.
_EMBED_PASSES = 10_000


@dataclass(frozen=True)
class Solution:
    """An embedding and what is true of it; `objective` and `history` are in the units of the caller's weights."""

    W: np.ndarray
    objective: float
    history: np.ndarray
    n_iter: int
    converged: bool
    kkt_residual: float


def solve(
    problem: Problem,
    W0: np.ndarray,
    *,
    solver: str,
    bounds: Bounds,
    max_iter: int,
    inner_iter: int,
    tol: float,
    rho: float,
    report: Report = None,
) -> Solution:
    """Fit `problem` from W0 (not changed) with solver "bcd" or "admm".

    `bounds` with bcd asks for filling, which needs a dense problem with missing pairs.
    """
    W = np.array(W0, dtype=problem.dtype, order="C")
    small = W.size * block_size(len(W)) < _THREADED_WORK
    with _threads.one_blas_thread(for_one_fit=True) if small else nullcontext():
        scale = problem.scale
        if solver == "admm":
            dense = matrix_of(problem)
            scale = dense.scale
            descent = fit_admm(
                dense,
                W,
                max_iter=max_iter,
                inner_iter=inner_iter,
                tol=tol,
                rho=rho,
                bounds=bounds,
                report=report,
            )
            bounds = None  # a constraint on Z, not a part of f
        else:
            if bounds is None:
                problem = _in_best_storage(problem, W.shape[1])
            descent = _fit_bcd(problem, W, max_iter=max_iter, tol=tol, bounds=bounds, report=report)
        objective, kkt_residual = evaluate(problem, W, bounds)
        if solver == "bcd":
            settle(descent.history, objective)
    objective *= problem.scale
    history = descent.history * scale
    history[-1] = objective
    return Solution(
        W=W,
        objective=objective,
        history=history,
        n_iter=descent.n_iter,
        converged=descent.converged,
        kkt_residual=kkt_residual,
    )


def solve_on(
    device: str,
    problems: Sequence[Problem],
    starts: Sequence[np.ndarray],
    *,
    max_iter: int,
    tol: float,
    report: Report = None,
) -> list[Solution]:
    """Fit problems of one kind and size on a device of torch, several at a time."""
    try:
        from simdims.solvers.torch import fit_together
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f'device={device!r} needs PyTorch, which is not installed: pip install "simdims[gpu]", or see '
            "pytorch.org for the build that suits your GPU.",
            name="torch",
        ) from None
    dense = [problem for problem in problems if not isinstance(problem, PairProblem)]
    if len(dense) < len(problems):
        raise ValueError(
            f"device={device!r} fits dense and implicit similarities, got sparse ones: fit them with device='cpu', or "
            "pass a dense matrix with NaN where a pair is missing."
        )
    fits = fit_together(dense, starts, device=device, max_iter=max_iter, tol=tol, report=report)
    return [
        Solution(
            W=fit.W,
            objective=fit.objective * problem.scale,
            history=fit.descent.history * problem.scale,
            n_iter=fit.descent.n_iter,
            converged=fit.descent.converged,
            kkt_residual=fit.kkt_residual,
        )
        for problem, fit in zip(dense, fits, strict=True)
    ]


def can_fill(problem: Problem) -> bool:
    """Whether bcd can hold predictions of missing pairs to bounds: a dense problem that misses some."""
    return isinstance(problem, MatrixProblem) and misses_pairs(problem)


def embed(similarities: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Rows of non-negative least squares: the embedding of items from their similarities to the rows of W."""
    if similarities.shape[1] != len(W):
        raise ValueError(f"similarities must have a column for each of {len(W)} items, got {similarities.shape[1]}.")
    embedding = np.zeros((len(similarities), W.shape[1]), W.dtype)
    kernels.embed_rows(np.ascontiguousarray(similarities, dtype=W.dtype), W, embedding, _EMBED_PASSES)
    return embedding


def _in_best_storage(problem: Problem, n_components: int) -> Problem:
    """The same problem, as lists of pairs or as a matrix, whichever is fitted faster."""
    if isinstance(problem, PairProblem):
        is_better_dense = can_move_together(problem, n_components) and not are_better_listed(problem, n_components)
        return matrix_of(problem) if is_better_dense else problem
    if isinstance(problem, MatrixProblem) and prefers_pairs(problem, n_components):
        return pairs_of(problem)
    return problem


def _fit_bcd(problem: Problem, W: np.ndarray, *, max_iter: int, tol: float, bounds: Bounds, report: Report) -> Descent:
    if isinstance(problem, PairProblem):
        return fit_pairs(problem, W, max_iter=max_iter, tol=tol, report=report)
    if isinstance(problem, FactorProblem) or problem.complete:
        return fit_complete(problem, W, max_iter=max_iter, tol=tol, report=report)
    return fit_filled(problem, W, max_iter=max_iter, tol=tol, bounds=bounds, report=report)
