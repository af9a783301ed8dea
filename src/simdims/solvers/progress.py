"""How a descent is run and when it stops: compiled sweeps in calls short enough to interrupt and to report between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simdims.solvers.criterion import size
from simdims.solvers.problem import Problem

#: Passes over the coordinates of a row before the next row: extra ones cost little beside the products.
N_PASSES = 4

#: Sweeps over which the decrease of the objective is judged.
WINDOW = 10

#: Multiply-adds between two looks at Python: well under a second.
_WORK_PER_CALL = 2e9

#: Called with the iterations done and the objective there.
Report = Callable[[int, float], None] | None

#: (window, tol, floor): see stopping_rule.
Rule = tuple[int, float, float]


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


def descend(
    sweeps: Callable[[int, int], tuple[int, bool]],
    history: np.ndarray,
    *,
    work: float,
    report: Report,
    measure: Callable[[], float] | None = None,
    floor: float = 0.0,
) -> Descent:
    """Call `sweeps(first, last)` until it has converged or filled `history`; `work` is the cost of one sweep.

    Where sweeps add up the changes of the objective, `measure` computes it afresh before convergence is believed;
    at the `floor` of rounding there is nothing to doubt.
    """
    most = len(history) - 1
    step = int(min(max(_WORK_PER_CALL / work, 1), most))
    done, converged = 0, False
    while done < most and not converged:
        done, converged = sweeps(done, min(done + step, most))
        if measure is not None and converged:
            measured = measure()
            converged = measured <= max(1.01 * history[done], floor)
            history[done] = measured
        if report is not None:
            report(done, history[done])
    return Descent(history[: done + 1].copy(), bool(converged))
