"""How a problem is fitted: storage, threads, extrapolation and acceleration, decided here from one table of constants.

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

#: Below this many items a further product costs little beside the row updates; above, extrapolation begins after this
#: many sweeps: most descents have ended by then, and those that have not are long.
_SMALL, _LONG = 500, 20

#: Multiply-adds in the products of one block below which further BLAS threads cost more than they help: they spin
#: between calls, on cores that the row updates or other fits need.
_BLAS_THREADS_FROM = 2**25
_SMALL_BLOCK = 32

#: Multiply-adds of a sweep over lists from which a second thread is worth waking.
_SECOND_THREAD_FROM = 2e7

#: Mean square of the weights over the square of their mean from which they count as uneven; trial counts have 1 to 1.5.
_UNEVEN = 2.0

#: Share of the pairs up to which they are listed: 20 bytes per pair are then no more than 1.5 matrices.
_LARGEST_LISTED_SHARE = 0.6

#: Lists cost known pairs x r^2 per sweep, a filled matrix n^2 r and a few sweeps more.
_FILLED_COST = 3.0

#: Known pairs of an item, per dimension or per this many of n^2, below which they are better listed where the items are
#: few: less than three pairs per dimension say too little of W^T W to move all rows at once.
_PAIRS_PER_DIMENSION, _ITEMS_SQUARED_PER_PAIR = 3, 5000


class Acceleration(NamedTuple):
    """Iterations that move all rows at once, and when they pay: where n + items_per_dimension r < largest.

    A sweep costs about 1 + 2000 / n products of S and W, such an iteration 1 + 13 r / n, and gains half. Where pairs
    are missing both need two products, and rows differ more: they overshoot more easily, hence the larger curvature of
    the model that moves them. Where `most` iterations are not enough, sweeps have to do it.
    """

    items_per_dimension: float
    largest: float
    curvature: float
    most: int


_COMPLETE = Acceleration(items_per_dimension=26, largest=2000, curvature=1.65, most=100)
_MISSING = Acceleration(items_per_dimension=6.5, largest=800, curvature=2.2, most=200)


@dataclass(frozen=True)
class Plan:
    """How a problem is fitted: the problem in the storage that is fitted fastest, and what helps there."""

    problem: Problem
    second_thread: bool
    extrapolate_from: float = _LONG
    acceleration: Acceleration | None = None


def make_plan(problem: Problem, n_components: int, *, bounded: bool = False) -> Plan:
    """How to fit a problem; with `bounded`, predictions of missing pairs are held to bounds, which filling can do."""
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
    """Whether further BLAS threads cost more than they help."""
    block = BLOCK if n_items >= _SMALL else _SMALL_BLOCK
    return n_items * n_components * block < _BLAS_THREADS_FROM


def can_accelerate(problem: MatrixProblem | PairProblem, n_components: int) -> bool:
    """Whether moving all rows at once pays, and is possible: all known pairs count the same, the diagonal among them.

    With as many dimensions as items there is too much to overshoot into.
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
    """Whether so few pairs are known that lists of them win, though all rows could move at once."""
    n = problem.n_items
    return problem.n_known < n * max(_PAIRS_PER_DIMENSION * n_components, n**2 / _ITEMS_SQUARED_PER_PAIR)


def _is_better_listed(problem: MatrixProblem, n_components: int) -> bool:
    """Whether a matrix with gaps is fitted faster as lists.

    Lists of nearly all pairs are larger than the filled matrix, whatever r is. Filling crawls where a few weights dwarf
    the others, because no pair may count for more than 1 of it. Where all rows can move at once, lists are for few
    pairs.
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
