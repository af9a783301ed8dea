"""The outer loop of block coordinate descent, one for all storages.

Sweep; extrapolate; reject steps that raise the objective; record it; stop when progress stalls. A method only provides
the sweep and the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simdims.solvers.accelerated import next_momentum, stalled
from simdims.solvers.criterion import size
from simdims.solvers.problem import Problem

#: Sweeps over which the decrease of the objective is judged.
WINDOW = 10

#: A rise of the objective that float32 storage can cause, as a fraction of sqrt(f f_0) with f_0 the objective of the
#: start: rounding of residuals is relative to the similarities, not to the residuals.
_ROUNDING = 1e-5

#: The objective, kept as a sum of changes, is recomputed once it has fallen to this fraction of the last value
#: computed: by then the sum has lost three digits.
_MEASURE_AGAIN = 1e-3

#: In float32, below this fraction of the objective of the start, the objective is recomputed after every sweep:
#: rounding W cancels the gain of the last sweeps, and the sum of changes would decrease forever.
_MEASURE_ALWAYS = 1e-4

#: Called with the number of iterations and the objective.
Report = Callable[[int, float], None] | None

#: (window, tol, floor): see stopping_rule.
Rule = tuple[int, float, float]


class Method(Protocol):
    """One way of sweeping over the rows of W."""

    #: The first sweep after which W is extrapolated.
    extrapolate_from: float = np.inf
    #: Whether a sweep may raise f, so that f has to be recomputed after each sweep.
    may_rise: bool = False
    #: The largest loading allowed for each item.
    limits: np.ndarray

    def objective(self, W: np.ndarray) -> float:
        """f(W)."""

    def sweep(self, W: np.ndarray) -> float | None:
        """Update every row of W once, in place; return the change of f, or None if `objective` has to compute it."""

    def shorten(self) -> bool:
        """Take shorter steps after a sweep that raised f; return False if they cannot get shorter."""
        return False


@dataclass(frozen=True)
class Descent:
    """The record of a fit: the objective at the start and after each iteration, and whether it met `tol`."""

    history: np.ndarray
    converged: bool


def stopping_rule(problem: Problem, tol: float) -> Rule:
    """(window, tol, floor): stop when `window` sweeps gain less than `tol` of f, or when nothing is left to explain.

    Nothing is left to explain when f is at rounding error, or at 1e-8 `tol` of its value without any dimension: data
    without noise can gain forever.
    """
    precision = 100.0 * float(np.finfo(problem.dtype).eps)
    return WINDOW, float(tol), max(1e-14, precision**2, 1e-8 * tol) * size(problem)


class Loop:
    """Iterations of a method on W, in place, and the objective after each one."""

    def __init__(self, method: Method, W: np.ndarray, max_iter: int, rule: Rule, report: Report) -> None:
        self.method, self.W, self.rule, self.report = method, W, rule, report
        self.history = np.empty(max_iter + 1)
        self.history[0] = self.measured = method.objective(W)
        self.done, self.converged, self.stuck = 0, False, False
        self.momentum_counter, self.last_swept = 1.0, W
        self.is_limited = bool(np.isfinite(method.limits).any())

    def descent(self) -> Descent:
        """The record of the finished fit."""
        return Descent(self.history[: self.done + 1].copy(), self.converged)

    def measure(self) -> None:
        """Recompute the objective after W was changed by other means than sweeps."""
        self.history[self.done] = self.measured = self.method.objective(self.W)

    def record(self, objective: float) -> None:
        """Record the objective of one more iteration."""
        self.done += 1
        self.history[self.done] = objective
        if self.report is not None:
            self.report(self.done, objective)

    def run(self, n_sweeps: int | None = None) -> None:
        """Sweep until converged; with `n_sweeps`, that often regardless of `tol`, unless nothing is left to explain."""
        method, W = self.method, self.W
        window, tol, floor = self.rule
        last = len(self.history) - 1 if n_sweeps is None else min(self.done + n_sweeps, len(self.history) - 1)
        rule = (window, tol if n_sweeps is None else -1.0, floor)
        self.momentum_counter = 1.0
        while self.done < last and not (self.converged or self.stuck):
            before = self.history[self.done]
            start = W.copy() if method.may_rise else W
            change = method.sweep(W)
            objective = self._extrapolate(before) if self.done >= method.extrapolate_from else None
            if objective is None:
                objective = method.objective(W) if change is None else self._add(before, change)
            if method.may_rise and not objective <= before:
                self._reject(start, objective - before)
                continue
            self.record(objective)
            if stalled(self.history, self.done, rule):
                self.converged = method.may_rise or self._is_confirmed(floor)

    def _extrapolate(self, before: float) -> float | None:
        """Move W beyond the end of the sweep (Nesterov); return f there, or restore W and return None if f rose."""
        W, swept = self.W, self.W.copy()
        last_swept, self.last_swept = self.last_swept, swept
        self.momentum_counter, momentum = next_momentum(self.momentum_counter)
        if momentum == 0.0:
            return None
        step = np.subtract(W, last_swept, out=last_swept)
        step *= momentum
        W += step
        np.maximum(W, 0.0, out=W)
        if self.is_limited:
            np.minimum(W, self.method.limits[:, None], out=W)
        self.measured = self.method.objective(W)
        if self.measured <= before:
            return self.measured
        W[:], self.momentum_counter = swept, 1.0
        return None

    def _add(self, before: float, change: float) -> float:
        """The objective after a sweep that returned its change, recomputed if the sum has lost digits."""
        is_rounded = self.W.dtype == np.float32 and before < _MEASURE_ALWAYS * self.history[0]
        if is_rounded or before + change < _MEASURE_AGAIN * self.measured:
            self.measured = self.method.objective(self.W)
            return self.measured
        return before + change

    def _reject(self, start: np.ndarray, rise: float) -> None:
        """Undo a sweep that raised the objective; stop if steps cannot be shorter, as the next would do the same."""
        self.W[:] = start
        self.last_swept, self.momentum_counter = start, 1.0
        self.stuck = not self.method.shorten()
        rounding = _ROUNDING * np.sqrt(self.history[self.done] * self.history[0])
        self.converged = bool(self.stuck and rise <= rounding)
        self.record(self.method.objective(self.W))

    def _is_confirmed(self, floor: float) -> bool:
        """Whether the recomputed objective agrees with the sum of changes; rounding errors do not matter."""
        summed = self.history[self.done]
        if summed != self.measured:
            self.measure()
        return bool(self.measured <= max(1.01 * summed, floor))
