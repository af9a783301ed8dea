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

#: Iterations over which the gain of moving all rows simultaneously is judged, about half of what sweeps gain, and the
#: largest part of f that is too little: iterations are cheap, and plateaus on the way long.
_WINDOW, _MOST_TOL = 25, 1e-3

#: Sweeps that come first, from a start near and far. In the first, rows follow those that have moved before them:
#: without it, groups of items share dimensions at the end twice as often. Near is where W W^T is about as large as S,
#: within a factor of two, as a random start is; from far all rows together would go too far and leave whole dimensions
#: at zero, for good.
_SWEEPS_FROM_NEAR, _SWEEPS_FROM_FAR = 1, 2

#: Sweeps that follow before one may be the last: where moving all rows together ends, f has settled, but not its slope.
_SETTLING = 2

#: Multiply-adds between two looks at Python, so that a fit can be interrupted: well under a second.
_WORK_PER_CALL = 2e9

#: A sample is fitted until its dimensions have found each other, or for this many iterations.
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
    """Bring W near by a sweep or two, move all rows at once until that stalls, and settle by two more sweeps."""
    W = loop.W
    if not _is_near(problem, W):
        loop.run(_SWEEPS_FROM_FAR)
    elif problem.complete:
        loop.record(loop.history[loop.done] + update_some_rows(problem, W))
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
