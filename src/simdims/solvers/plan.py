"""How to fit a problem: storage, threads, extrapolation and acceleration, chosen here with one table of constants.

The numbers come from benchmarks/bench_rivals.py, bench_small.py and bench_fit.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simdims.solvers.problem import (
    MANY,
    FactorProblem,
    MatrixProblem,
    PairProblem,
    Problem,
    matrix_of,
    misses_pairs,
    pairs_of,
    row_blocks,
)
from simdims.solvers.sweeps import BLOCK

#: Below this many items a further product costs little compared with the row updates; above, extrapolation begins after
#: this many sweeps: by then most descents have ended, and the others are long.
_SMALL, _LONG = 500, 20

#: Multiply-adds in the products of one block below which further BLAS threads cost more than they gain: they spin
#: between calls, on cores that the row updates or other fits need.
_BLAS_THREADS_FROM = 2**25
_SMALL_BLOCK = 32

#: Multiply-adds of a sweep over lists above which a second thread pays off.
_SECOND_THREAD_FROM = 2e7

#: Mean squared weight over squared mean weight above which weights count as uneven; trial counts have 1 to 1.5.
_UNEVEN = 2.0

#: Share of the pairs up to which they are listed: at 20 bytes per pair that takes at most 1.5 matrices.
_LARGEST_LISTED_SHARE = 0.6

#: Lists cost known pairs x r^2 per sweep, a filled matrix n^2 r and a few sweeps more.
_FILLED_COST = 3.0

#: With few items, lists are faster if items have fewer known pairs than this per dimension, or than n^2 over the second
#: number: with less than three pairs per dimension too little of W^T W is known to update all rows together.
_PAIRS_PER_DIMENSION, _ITEMS_SQUARED_PER_PAIR = 3, 5000


class Acceleration(NamedTuple):
    """Settings of iterations that update all rows simultaneously, used if n + items_per_dimension r < largest.

    A sweep costs about 1 + 2000 / n products of S and W; such an iteration costs 1 + 13 r / n, and gains half as much.
    With missing pairs both need two products, and rows differ more and overshoot more easily, hence the larger
    curvature of the model. If `most` iterations are not enough, sweeps finish the fit.
    """

    items_per_dimension: float
    largest: float
    curvature: float
    most: int


_COMPLETE = Acceleration(items_per_dimension=26, largest=2000, curvature=1.65, most=100)
_MISSING = Acceleration(items_per_dimension=6.5, largest=800, curvature=2.2, most=200)


@dataclass(frozen=True)
class Plan:
    """How to fit a problem: the problem in its fastest storage, and the settings that speed it up."""

    problem: Problem
    second_thread: bool
    extrapolate_from: float = _LONG
    acceleration: Acceleration | None = None


def make_plan(problem: Problem, n_components: int, *, bounded: bool = False) -> Plan:
    """Plan a fit; with `bounded`, predictions of missing pairs are kept within bounds, which requires filling."""
    n = problem.n_items
    if not bounded:
        problem = _in_best_storage(problem, n_components)
    if isinstance(problem, PairProblem):
        work = (len(problem.values) + n) * n_components**2
        return Plan(problem, second_thread=work > _SECOND_THREAD_FROM)
    many = n >= MANY
    if isinstance(problem, FactorProblem):
        return Plan(problem, second_thread=many)
    accelerated = not bounded and can_accelerate(problem, n_components)
    return Plan(
        problem,
        second_thread=many,
        extrapolate_from=0 if n < _SMALL else _LONG,
        acceleration=(_COMPLETE if problem.complete else _MISSING) if accelerated else None,
    )


def needs_one_blas_thread(n_items: int, n_components: int) -> bool:
    """Whether further BLAS threads cost more than they gain."""
    block = BLOCK if n_items >= _SMALL else _SMALL_BLOCK
    return n_items * n_components * block < _BLAS_THREADS_FROM


def can_accelerate(problem: MatrixProblem | PairProblem, n_components: int) -> bool:
    """Whether all rows can move at once, and whether it pays: all known pairs, diagonal included, need equal weight.

    With as many dimensions as items it overshoots too much.
    """
    n = problem.n_items
    how = _MISSING if misses_pairs(problem) else _COMPLETE
    if n >= MANY or 2 * n_components > n or n + how.items_per_dimension * n_components >= how.largest:
        return False
    if isinstance(problem, PairProblem):
        weights = np.concatenate([problem.weights, problem.diagonal_weights, [problem.background]])
        count_alike = bool(np.isin(weights, (0.0, 1.0)).all())
    else:
        count_alike = not problem.weights.size
    return count_alike and not problem.unknown.size


def _in_best_storage(problem: Problem, n_components: int) -> Problem:
    """The same problem, as lists of pairs or as a matrix, whichever is fitted faster."""
    if isinstance(problem, PairProblem):
        is_better_dense = can_accelerate(problem, n_components) and not _has_few_pairs(problem, n_components)
        return matrix_of(problem) if is_better_dense else problem
    if isinstance(problem, MatrixProblem) and _is_better_listed(problem, n_components):
        return pairs_of(problem)
    return problem


def _has_few_pairs(problem: MatrixProblem | PairProblem, n_components: int) -> bool:
    """Whether so few pairs are known that lists are faster, although all rows could move at once."""
    n = problem.n_items
    return problem.n_known < n * max(_PAIRS_PER_DIMENSION * n_components, n**2 / _ITEMS_SQUARED_PER_PAIR)


def _is_better_listed(problem: MatrixProblem, n_components: int) -> bool:
    """Whether a matrix with gaps is fitted faster as lists.

    Lists of nearly all pairs are larger than the filled matrix for any r. Filling is slow if a few weights are much
    larger than the others, because the largest relative weight is 1. If all rows can move at once, lists are used only
    for few pairs.
    """
    if problem.complete:
        return False
    if can_accelerate(problem, n_components):
        return _has_few_pairs(problem, n_components)
    n, known = problem.n_items, problem.n_known
    if known * n_components < _FILLED_COST * n**2 and known < _LARGEST_LISTED_SHARE * n**2:
        return True
    return bool(problem.weights.size) and _are_uneven(problem)


def _are_uneven(problem: MatrixProblem) -> bool:
    count, total, squares = 0, 0.0, 0.0
    for rows in row_blocks(0, problem.n_items):
        weights = problem.weights[rows][~np.isnan(problem.values[rows])].astype(np.float64)
        count += int(np.count_nonzero(weights))
        total += float(weights.sum())
        squares += float(weights @ weights)
    return squares * count > _UNEVEN * total**2
