"""Block coordinate descent: a plan, a good start, then sweeps until the objective stalls."""

from __future__ import annotations

import numpy as np

from simdims import _threads
from simdims.solvers import accelerated
from simdims.solvers.complete import CompleteSweeps, update_some_rows
from simdims.solvers.criterion import Bounds
from simdims.solvers.filled import FilledSweeps
from simdims.solvers.listed import ListedSweeps
from simdims.solvers.loop import Descent, Loop, Method, Report, stopping_rule
from simdims.solvers.plan import Acceleration, Plan, make_plan
from simdims.solvers.problem import FactorProblem, MatrixProblem, PairProblem, mean_similarity
from simdims.solvers.sample import start_from_sample

#: Window over which the gain of simultaneous iterations is judged (each gains about half of a sweep), and an upper
#: limit on their `tol`: iterations are cheap, and plateaus are long.
_WINDOW, _MOST_TOL = 25, 1e-3

#: Number of initial sweeps, from a start near and far. In the first sweep each row uses the rows updated before it:
#: without that, groups of items share dimensions twice as often in the result. Near means that W W^T is within a factor
#: of two of the size of S, as for a random start; from far, moving all rows together would overshoot and set whole
#: dimensions to zero for good.
_SWEEPS_FROM_NEAR, _SWEEPS_FROM_FAR = 1, 2

#: Sweeps before convergence may be declared: after the simultaneous updates f has settled, but its slope has not.
_SETTLING = 2

#: Multiply-adds between returns to Python, so that a fit can be interrupted: well under a second.
_WORK_PER_CALL = 2e9

#: Maximum number of iterations and tolerance of the fit to a sample, which only has to find the dimensions.
_SAMPLE_ITERATIONS, _SAMPLE_TOL = 60, 0.003


def fit_bcd(
    plan: Plan, W: np.ndarray, *, max_iter: int, tol: float, bounds: Bounds = None, report: Report = None
) -> Descent:
    """Minimise F over W >= 0 in place."""
    problem = plan.problem
    with _threads.second_thread(plan.second_thread) as second:
        if isinstance(problem, PairProblem):
            method: Method = ListedSweeps(problem, second)
        elif isinstance(problem, FactorProblem) or problem.complete:
            method = CompleteSweeps(problem, plan.extrapolate_from, second)
        else:
            method = FilledSweeps(problem, W.shape[1], bounds, second)
        loop = Loop(method, W, max_iter, stopping_rule(problem, tol), report)
        if isinstance(method, CompleteSweeps):
            sampled = start_from_sample(method.problem, W, loop.history[0], _fit_sample, second)
            if sampled is not None:
                loop.record(sampled)
                loop.measured = sampled
        if isinstance(problem, MatrixProblem) and plan.acceleration is not None:
            _accelerate(loop, problem, plan.acceleration)
        loop.run()
    return loop.descent()


def _fit_sample(problem: MatrixProblem, W: np.ndarray) -> None:
    fit_bcd(make_plan(problem, W.shape[1]), W, max_iter=_SAMPLE_ITERATIONS, tol=_SAMPLE_TOL)


def _accelerate(loop: Loop, problem: MatrixProblem, how: Acceleration) -> None:
    """Start with a sweep or two, update all rows simultaneously until that stalls, and settle with two more sweeps."""
    W = loop.W
    if not _is_near(problem, W):
        loop.run(_SWEEPS_FROM_FAR)
    elif isinstance(loop.method, CompleteSweeps):
        loop.record(loop.history[loop.done] + update_some_rows(problem, loop.method.terms, W))
    else:
        loop.run(_SWEEPS_FROM_NEAR)
    over, residuals = np.empty(0), np.empty((0, 0), W.dtype)
    if isinstance(loop.method, FilledSweeps):
        over, residuals = loop.method.over, loop.method.filled
    _, tol, floor = loop.rule
    rule = (_WINDOW, min(tol, _MOST_TOL), floor)
    last = min(how.most, len(loop.history) - 1)
    step = max(1, int(_WORK_PER_CALL / (2 * len(W) * W.size)))
    stalled = loop.converged
    while loop.done < last and not stalled:
        until = min(loop.done + step, last)
        data = (problem.values, problem.squares, tuple(problem.penalty), over, residuals)
        done, stalled = accelerated.descend(*data, W, how.curvature, loop.history, loop.done, until, rule)
        loop.done = done - 1
        loop.record(loop.history[done])
    if not loop.converged:
        loop.measure()
        loop.run(_SETTLING)


def _is_near(problem: MatrixProblem, W: np.ndarray) -> bool:
    """Whether W W^T is about as large as S."""
    sums = W.sum(axis=0, dtype=np.float64)
    size_of_data = mean_similarity(problem) * len(W) ** 2
    return bool(0.5 * size_of_data < sums @ sums < 2.0 * size_of_data)
