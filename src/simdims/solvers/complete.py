"""All pairs known, as a matrix S or as factors with S = F F^T: A_i = W^T W - w_i w_i^T and b_i = (S W)_i - S_ii w_i."""

from __future__ import annotations

import numpy as np

from simdims.solvers import descents, kernels
from simdims.solvers.criterion import objective
from simdims.solvers.problem import CompleteProblem, FactorProblem, similarities_between
from simdims.solvers.progress import N_PASSES, Descent, Report, descend, stopping_rule

#: Items of the sample that a fit starts from: for each dimension enough to see it more than once.
_SAMPLE_PER_COMPONENT = 10
_SMALLEST_SAMPLE = 100

#: Items placed at a time, so that their similarities to the sample stay a small matrix.
_PLACED_TOGETHER = 4096

#: A sample is fitted until its dimensions have found each other: until five sweeps gain less than 0.3%, or this many.
_SAMPLE_SWEEPS = 60
_SAMPLE_RULE = (5, 0.003, 0.0)


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
    block = block_size(n)

    def sweeps(first: int, last: int) -> tuple[int, bool]:
        if first == 0 and _start_from_sample(problem, W, history):
            return 1, False
        if isinstance(problem, FactorProblem):
            return descents.descend_factors(
                problem.factors, problem.diagonal, W, N_PASSES, block, history, first, last, rule
            )
        own = problem.diagonal, problem.diagonal_weights
        return descents.descend_matrix(problem.values, *own, W, N_PASSES, block, history, first, last, rule)

    width = problem.factors.shape[1] + block if isinstance(problem, FactorProblem) else n
    return descend(sweeps, history, work=n * width * rank, report=report, measure=lambda: objective(problem, W))


def _start_from_sample(problem: CompleteProblem, W: np.ndarray, history: np.ndarray) -> bool:
    """Replace a start that explains nothing by a fit to a sample of the items; return whether it was done.

    A sweep over the sample costs a fraction of one over all items, and the dimensions it finds place the other items by
    non-negative least squares. Kept only if it lowers the objective, which it writes to history[1].
    """
    n, rank = W.shape
    size = max(_SAMPLE_PER_COMPONENT * rank, _SMALLEST_SAMPLE)
    if n < 3 * size or n < 1000:
        return False
    spread = 0.5 * (problem.squares - problem.total**2 / n**2)  # the objective of the best constant prediction
    if history[0] < 0.5 * spread:
        return False
    order = np.random.default_rng(0).permutation(n)
    sample, rest = order[:size], order[size:]
    fitted = _fit_sample(problem, sample, W[sample])
    candidate = np.empty_like(W)
    candidate[sample] = fitted
    for start in range(0, len(rest), _PLACED_TOGETHER):
        items = rest[start : start + _PLACED_TOGETHER]
        placed = W[items]
        kernels.embed_rows(similarities_between(problem, items, sample), fitted, placed, 2 * N_PASSES)
        candidate[items] = placed
    history[1] = objective(problem, candidate)
    if not history[1] < history[0]:
        return False
    W[:] = candidate
    return True


def _fit_sample(problem: CompleteProblem, sample: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Fit the similarities within a sample of items from the start V."""
    S = similarities_between(problem, sample, sample)
    weights = np.ones(len(sample)) if isinstance(problem, FactorProblem) else problem.diagonal_weights[sample]
    history = np.empty(_SAMPLE_SWEEPS + 1)
    history[0] = 0.5 * float(np.sum((S - V @ V.T) ** 2, dtype=np.float64))
    descents.descend_matrix(
        S,
        problem.diagonal[sample],
        weights,
        V,
        N_PASSES,
        block_size(len(V)),
        history,
        0,
        _SAMPLE_SWEEPS,
        _SAMPLE_RULE,
    )
    return V
