"""Few items, all in compiled code: rows in turn bring W near, all rows together go on, rows in turn end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from simdims.solvers import descents
from simdims.solvers.problem import MANY, MatrixProblem, PairProblem, mean_similarity, misses_pairs
from simdims.solvers.progress import Rule

#: Iterations over which the gain of all rows together is judged, which is about half of what rows gain in turn, and
#: the largest part of f that is too little: iterations are cheap, and plateaus on the way long.
_WINDOW, _MOST_TOL = 25, 1e-3


class _Together(NamedTuple):
    """How all rows move together, and when it pays: where n + items_for_each r < largest.

    A sweep costs about 1 + 2000 / n products of S and W, an iteration of all rows together 1 + 13 r / n, and gains
    half. Where pairs are missing both need two products, and rows differ more: they overshoot more easily, by the
    curvature of the model that moves them. Where so many iterations are not enough, rows in turn have to do it.
    """

    items_for_each: float
    largest: float
    curvature: float
    most: int


_COMPLETE = _Together(items_for_each=26, largest=2000, curvature=1.65, most=100)
_MISSING = _Together(items_for_each=6.5, largest=800, curvature=2.2, most=200)

#: Known pairs of an item, for each dimension or for so many of n^2, below which they are better listed.
_PAIRS_FOR_EACH, _ITEMS_SQUARED_FOR_EACH = 3, 5000

#: Sweeps of rows in turn that come first, from a start near and far. In the first, rows follow those that have moved
#: before them: without it, groups of items share dimensions at the end twice as often. Near is where W W^T is about as
#: large as S, within a factor of two, as a random start is; from far all rows together would go too far and leave whole
#: dimensions at zero, for good.
_SWEEPS_FROM_NEAR, _SWEEPS_FROM_FAR = 1, 2

#: Sweeps that follow before one may be the last: where moving together ends, f has settled, but not yet its slope.
_SETTLING = 2


def can_move_together(problem: MatrixProblem | PairProblem, n_components: int) -> bool:
    """Whether moving all rows together pays, and is possible: all known pairs count the same, the diagonal among them.

    With as many dimensions as items there is too much to overshoot into.
    """
    n = problem.n_items
    how = _MISSING if misses_pairs(problem) else _COMPLETE
    if n >= MANY or 2 * n_components > n or n + how.items_for_each * n_components >= how.largest:
        return False
    if isinstance(problem, PairProblem):
        weights = np.concatenate([problem.weights, problem.diagonal_weights, [problem.background]])
        count_alike = bool(np.isin(weights, (0.0, 1.0)).all())
    else:
        count_alike = not problem.weights.size
    return count_alike and not problem.unknown.size


def are_better_listed(problem: MatrixProblem | PairProblem, n_components: int) -> bool:
    """Whether so few pairs are known that lists of them win, though all rows could move together.

    A pass over a small matrix costs little, but less than three pairs for each dimension say too little of W^T W.
    """
    n = problem.n_items
    return problem.n_known < n * max(_PAIRS_FOR_EACH * n_components, n**2 / _ITEMS_SQUARED_FOR_EACH)


def _is_near(problem: MatrixProblem, W: np.ndarray) -> bool:
    """Whether W W^T is about as large as S."""
    sums = W.sum(axis=0, dtype=np.float64)
    size_of_data = mean_similarity(problem) * len(W) ** 2
    return bool(0.5 * size_of_data < sums @ sums < 2.0 * size_of_data)


class InTurn(Protocol):
    """Rows in turn, in compiled code."""

    def __call__(self, first: int, last: int, rule: Rule) -> tuple[int, bool]:
        """Do sweeps first .. last - 1; return (sweeps done, converged)."""


class ShortDescent:
    """The iterations of a fit to few items.

    `few_in_turn`, where there is one, updates some rows in place of a first sweep, and returns the change of f.
    Where pairs are missing, row i sees 1 / over_i of W^T W through its known ones; `room` is a matrix for residuals.
    Without `together` rows only move in turn.
    """

    def __init__(
        self,
        problem: MatrixProblem,
        W: np.ndarray,
        history: np.ndarray,
        rule: Rule,
        in_turn: InTurn,
        few_in_turn: Callable[[], float] | None = None,
        over: np.ndarray | None = None,
        room: np.ndarray | None = None,
        *,
        together: bool = True,
    ) -> None:
        self.problem, self.W, self.history, self.rule, self.in_turn = problem, W, history, rule, in_turn
        self.few_in_turn = few_in_turn
        self.over = np.empty(0) if over is None else over
        self.room = np.empty((0, 0), W.dtype) if room is None else room
        self.how = _COMPLETE if problem.complete else _MISSING
        self.together = together and can_move_together(problem, W.shape[1])
        self.before = _SWEEPS_FROM_NEAR if self.together and _is_near(problem, W) else _SWEEPS_FROM_FAR
        self.settled = 0

    def sweeps(self, first: int, last: int) -> tuple[int, bool]:
        """Do iterations first .. last - 1; return (iterations done, converged)."""
        window, _, floor = self.rule
        whatever_it_gains = (window, -1.0, floor)
        if self.together and first == 0 and self.before == _SWEEPS_FROM_NEAR and self.few_in_turn is not None:
            self.history[1] = self.history[0] + self.few_in_turn()
            first = 1
        if self.together and first < self.before:
            first, converged = self.in_turn(first, min(self.before, last), whatever_it_gains)
            if converged:
                return first, True
        if self.together and first < last:
            first = self._move_together(first, min(last, self.how.most))
        for until, rule in ((min(self.settled, last), whatever_it_gains), (last, self.rule)):
            if first < until:
                first, converged = self.in_turn(first, until, rule)
                if converged:
                    return first, True
        return first, False

    def _move_together(self, first: int, last: int) -> int:
        problem, W = self.problem, self.W
        _, tol, floor = self.rule
        first, ended = descents.descend_together(
            problem.values,
            problem.squares,
            self.over,
            self.room,
            W,
            self.how.curvature,
            self.history,
            first,
            last,
            (_WINDOW, min(tol, _MOST_TOL), floor),
        )
        self.together = not ended and first < self.how.most
        self.settled = first + _SETTLING
        return first
