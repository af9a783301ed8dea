"""Some pairs known, or known with different weights: lists of pairs, or a dense matrix whose gaps are filled."""

from __future__ import annotations

import numpy as np

from simdims import _memory
from simdims.solvers import descents, kernels
from simdims.solvers.complete import block_size
from simdims.solvers.criterion import Bounds, objective
from simdims.solvers.problem import MatrixProblem, PairProblem, row_blocks
from simdims.solvers.progress import N_PASSES, Descent, Report, descend, stopping_rule

#: Passes over a row of a filled matrix: what a row aims at is itself a guess, and not worth a closer look.
_FILLED_PASSES = 3

#: Mean square of the weights over the square of their mean from which they count as uneven; trial counts have 1 to 1.5.
_UNEVEN = 2.0

#: Share of the pairs up to which they are listed: 20 bytes a pair are then no more than 1.5 matrices.
_MOST_LISTED = 0.6


def prefers_pairs(problem: MatrixProblem, n_components: int) -> bool:
    """Whether lists are the better way: they cost known pairs x r^2 a sweep, filling n^2 r and a few sweeps more.

    Lists of nearly all pairs are larger than the filled matrix, whatever r is. Filling crawls where a few weights dwarf
    the others, because no pair may count for more than 1 of it.
    """
    if problem.complete:
        return False
    known = problem.known.sum()
    if known * n_components < 3.0 * problem.n_items**2 and known < _MOST_LISTED * problem.n_items**2:
        return True
    if not problem.weights.size:
        return False
    count, total, squares = 0, 0.0, 0.0
    for rows in row_blocks(problem.n_items):
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
    pairs = (problem.starts, problem.partners, problem.values, problem.weights, problem.background)

    def sweeps(first: int, last: int) -> tuple[int, bool]:
        for t in range(first, last):
            change = kernels.sweep_pairs(*pairs, problem.diagonal, problem.diagonal_weights, W, N_PASSES)
            if descents.lowered(history, t, change, rule):
                return t + 1, True
        return last, False

    work = (len(problem.values) + n) * rank**2
    return descend(sweeps, history, work=work, report=report, measure=lambda: objective(problem, W))


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
    over = over_relaxation(problem, rank)
    filled = np.empty((n, n), problem.dtype)
    history = np.empty(max_iter + 1)
    rule = stopping_rule(problem, tol)
    block = block_size(n)
    damping = 1.0

    def sweeps(first: int, last: int) -> tuple[int, bool]:
        nonlocal damping
        done, converged, damping = descents.descend_filled(
            problem.values,
            problem.weights,
            problem.diagonal,
            problem.diagonal_weights,
            bounds or (-np.inf, np.inf),
            over,
            damping,
            filled,
            W,
            _FILLED_PASSES,
            block,
            history,
            first,
            last,
            rule,
        )
        return done, converged

    return descend(sweeps, history, work=2 * n * n * rank, report=report)


def over_relaxation(problem: MatrixProblem, n_components: int) -> np.ndarray:
    """For each row, how much further than its filling a sweep may go.

    The known part of W^T W that row i sees is about its share p_i of the whole, so 1 / p_i is right on average; its
    largest relative eigenvalue is about (1 + sqrt(r / known_i))^2 times that, and a step stays stable below twice the
    inverse of it.
    """
    known = np.maximum(problem.known, 1)
    stable = np.minimum(1.0, 1.8 / (1.0 + np.sqrt(n_components / known)) ** 2)
    return np.maximum(1.0, stable / np.where(problem.shares > 0, problem.shares, 1.0))
