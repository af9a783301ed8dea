"""The outer loop of block coordinate descent, one for all storages.

Sweep; extrapolate; reject what raises the objective; record it; stop when progress stalls. A method knows how to sweep
and what the objective is, and nothing of all this.
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

#: A rise of the objective that float32 storage can cause, as a part of sqrt(f f_0) with f_0 the objective of the start:
#: residuals are rounded to a part of the similarities, not of themselves.
_ROUNDING = 1e-5

#: A sum of changes is measured afresh once the objective has fallen to this part of the last value measured: by then it
#: has lost three digits.
_MEASURE_AGAIN = 1e-3

#: Below this part of the objective of the start it is measured after every sweep in float32: rounding W takes back what
#: the last sweeps gain, and a sum of changes would fall for ever.
_MEASURE_ALWAYS = 1e-4

#: Called with the iterations done and the objective there.
Report = Callable[[int, float], None] | None

#: (window, tol, floor): see stopping_rule.
Rule = tuple[int, float, float]


class Method(Protocol):
    """One way of sweeping over the rows of W."""

    #: The first sweep after which W is extrapolated.
    extrapolate_from: float
    #: Whether a sweep may raise f, so that it has to be measured after each.
    may_rise: bool
    #: The largest loading that each item may have.
    limits: np.ndarray

    def objective(self, W: np.ndarray) -> float:
        """f(W)."""

    def sweep(self, W: np.ndarray) -> float | None:
        """Update every row of W once, in place; return the change of f, or None where `objective` has to tell."""

    def shorten(self) -> bool:
        """Take shorter steps, after a sweep that raised f; return False where they are the shortest already."""


@dataclass(frozen=True)
class Descent:
    """What a fit leaves besides W: the objective at the start and after each iteration, and whether it met `tol`."""

    history: np.ndarray
    converged: bool

    @property
    def n_iter(self) -> int:
        """Iterations done."""
        return len(self.history) - 1


def stopping_rule(problem: Problem, tol: float) -> Rule:
    """(window, tol, floor): stop when `window` sweeps gain less than `tol` of f, or when nothing is left to explain.

    That is where f is down at rounding, or at a hundred-millionth of `tol` of what it is without any dimension: data
    without noise can gain forever.
    """
    precision = 100.0 * float(np.finfo(problem.dtype).eps)
    return WINDOW, float(tol), max(1e-14, precision**2, 1e-8 * tol) * size(problem)


class Loop:
    """Iterations of a method on W, in place, and the objective after each."""

    def __init__(self, method: Method, W: np.ndarray, max_iter: int, rule: Rule, report: Report) -> None:
        self.method, self.W, self.rule, self.report = method, W, rule, report
        self.history = np.empty(max_iter + 1)
        self.history[0] = self.measured = method.objective(W)
        self.done, self.converged, self.stuck = 0, False, False
        self.momentum_counter, self.last_swept = 1.0, W

    def descent(self) -> Descent:
        """What there is to tell when it has ended."""
        return Descent(self.history[: self.done + 1].copy(), self.converged)

    def measure(self) -> None:
        """Compute the objective afresh, after W was moved by other means than sweeps."""
        self.history[self.done] = self.measured = self.method.objective(self.W)

    def record(self, objective: float) -> None:
        """One more iteration."""
        self.done += 1
        self.history[self.done] = objective
        if self.report is not None:
            self.report(self.done, objective)

    def run(self, n_sweeps: int | None = None) -> None:
        """Sweep until converged; with `n_sweeps`, so often whatever it gains, unless nothing is left to explain."""
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
        """Move W beyond the end of the sweep (Nesterov); return f there, or None, with W back, where it is higher."""
        W, swept = self.W, self.W.copy()
        last_swept, self.last_swept = self.last_swept, swept
        self.momentum_counter, momentum = next_momentum(self.momentum_counter)
        if momentum == 0.0:
            return None
        W += momentum * (W - last_swept)
        np.clip(W, 0.0, self.method.limits[:, None], out=W)
        self.measured = self.method.objective(W)
        if self.measured <= before:
            return self.measured
        W[:], self.momentum_counter = swept, 1.0
        return None

    def _add(self, before: float, change: float) -> float:
        """The objective after a sweep that knows its change, measured afresh where the sum has lost digits."""
        is_rounded = self.W.dtype == np.float32 and before < _MEASURE_ALWAYS * self.history[0]
        if is_rounded or before + change < _MEASURE_AGAIN * self.measured:
            self.measured = self.method.objective(self.W)
            return self.measured
        return before + change

    def _reject(self, start: np.ndarray, rise: float) -> None:
        """Undo a sweep that raised the objective; where steps cannot be shorter, the next would do the same."""
        self.W[:] = start
        self.last_swept, self.momentum_counter = start, 1.0
        self.stuck = not self.method.shorten()
        rounding = _ROUNDING * np.sqrt(self.history[self.done] * self.history[0])
        self.converged = bool(self.stuck and rise <= rounding)
        self.record(self.method.objective(self.W))

    def _is_confirmed(self, floor: float) -> bool:
        """Whether the objective, measured afresh, is what the sum of changes says; at rounding that does not matter."""
        summed = self.history[self.done]
        self.measure()
        return bool(self.measured <= max(1.01 * summed, floor))
