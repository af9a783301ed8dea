"""Some pairs known, or known with different weights: lists of pairs."""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial

import numpy as np

from simdims import _threads
from simdims.solvers import descents, kernels
from simdims.solvers.criterion import objective
from simdims.solvers.problem import MatrixProblem, PairProblem, row_blocks
from simdims.solvers.progress import N_PASSES, Descent, Report, descend, stopping_rule
from simdims.solvers.together import are_better_listed, can_move_together

#: Mean square of the weights over the square of their mean from which they count as uneven; trial counts have 1 to 1.5.
_UNEVEN = 2.0

#: Numbers in the sums of one block of rows: a megabyte.
_SUMS_PER_BLOCK = 2**17

#: Multiply-adds of a sweep over lists from which a second thread is worth waking.
_WORTH_A_THREAD = 2e7

#: Share of the pairs up to which they are listed: 20 bytes a pair are then no more than 1.5 matrices.
_MOST_LISTED = 0.6


def prefers_pairs(problem: MatrixProblem, n_components: int) -> bool:
    """Whether lists are the better way: they cost known pairs x r^2 a sweep, filling n^2 r and a few sweeps more.

    Lists of nearly all pairs are larger than the filled matrix, whatever r is. Filling crawls where a few weights dwarf
    the others, because no pair may count for more than 1 of it. Where all rows can move together, lists are for few.
    """
    if problem.complete:
        return False
    if can_move_together(problem, n_components):
        return are_better_listed(problem, n_components)
    n, known = problem.n_items, problem.n_known
    if known * n_components < 3.0 * n**2 and known < _MOST_LISTED * n**2:
        return True
    if not problem.weights.size:
        return False
    count, total, squares = 0, 0.0, 0.0
    for rows in row_blocks(0, problem.n_items):
        weights = problem.weights[rows][~np.isnan(problem.values[rows])].astype(np.float64)
        count += int(np.count_nonzero(weights))
        total += float(weights.sum())
        squares += float(weights @ weights)
    return squares * count > _UNEVEN * total**2


def fit_pairs(problem: PairProblem, W: np.ndarray, *, max_iter: int, tol: float, report: Report = None) -> Descent:
    """Minimise f over W >= 0 in place from listed pairs: O(pairs r^2 + n r^2) a sweep, never n^2."""
    n, rank = W.shape
    history = np.empty(max_iter + 1)
    history[0] = objective(problem, W)
    rule = stopping_rule(problem, tol)
    work = (len(problem.values) + n) * rank**2
    with _threads.second_thread(work > _WORTH_A_THREAD) as second:

        def sweeps(first: int, last: int) -> tuple[int, bool]:
            for t in range(first, last):
                if descents.record(history, t, _sweep_pairs(problem, W, second), rule):
                    return t + 1, True
            return last, False

        measure = partial(objective, problem, W)
        return descend(sweeps, history, work=work, report=report, measure=measure, floor=rule[2])


def _sweep_pairs(problem: PairProblem, W: np.ndarray, second: Executor | None) -> float:
    """Update every row once, block by block; return the change of the objective.

    Two threads share the sums over partners of a block; its rows then move in turn. The numbers are the same with one.
    """
    n, rank = W.shape
    size = min(max(_SUMS_PER_BLOCK // rank**2, 8), 128, n)
    pairs = (problem.starts, problem.partners, problem.values, problem.weights, problem.background)
    own = (problem.diagonal, problem.diagonal_weights)
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
        change += kernels.update_listed(*pairs, *own, W, gram, first, last, A, b, N_PASSES)
    return change
