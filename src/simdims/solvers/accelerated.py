"""For few items: iterations that move all rows simultaneously, using a model of the objective, in one compiled loop.

With few items, a sweep over the rows costs many times as much as its matrix products. Instead, the objective is
modelled around Y by

    F(Y + D) ~ F(Y) + <grad F(Y), D> + c sum_i d_i (Y^T Y + ridge I) d_i^T / over_i,

the model is decreased subject to Y + D >= 0, and Nesterov's extrapolation gives the next Y. A fit this small takes a
millisecond, so these iterations, unlike sweeps, stay in compiled code.
"""

import math

import numpy as np
from numba import njit

from simdims.solvers.kernels import COMPILED, FAST, INSIDE, ONCE, sum_up

# Passes over the dimensions of the model per iteration; more passes did not make fits faster.
PASSES = 2

# Lower bound on a dimension's square in its step, relative to the largest; steps near zero would be too long.
SMALLEST = 1e-4

# Below this fraction of |S|^2, f is a difference of large sums with too few digits left.
SMALL_PART = 1e-5


def stalled(history, t, rule):
    """Whether the last `window` sweeps gained less than `tol` of the objective, or nothing is left to explain."""
    window, tol, floor = rule
    if history[t] <= floor:
        return True
    return t >= window and history[t - window] - history[t] <= tol * history[t]


def next_momentum(t):
    """Nesterov's next counter and the momentum, zero for a counter of 1."""
    t_next = 0.5 + math.sqrt(0.25 + t * t)
    return t_next, (t - 1.0) / t_next


_stalled, _next_momentum = njit(**INSIDE)(stalled), njit(**INSIDE)(next_momentum)


@njit(**ONCE)
def _copy(source, target):
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            target[i, k] = source[i, k]


@njit(**INSIDE)
def _multiply(A, B, product):
    """Matrix product by BLAS; in one place and for one layout, because it is slow to compile."""
    np.dot(A, B, product)


@njit(**INSIDE, fastmath=FAST)
def _transpose(A, transposed):
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            transposed[k, i] = A[i, k]


@njit(**INSIDE, fastmath=FAST)
def _inner(A, B):
    """<A, B> in float64."""
    sums = np.zeros(A.shape[1])
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            sums[i] += A[k, i] * B[k, i]
    return sum_up(sums)


@njit(**ONCE, fastmath=FAST)
def _leave_residuals(S, R):
    """Turn predictions R into S - R, zero where a pair is missing; return the sum of their squares."""
    squares = np.zeros(S.shape[1])
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            residual = S[i, j] - R[i, j]
            residual = 0.0 if np.isnan(residual) else residual
            squares[j] += residual * residual
            R[i, j] = residual
    return sum_up(squares)


@njit(**INSIDE, fastmath=FAST)
def _evaluate(S, squares, penalty, V, W, residuals, products, slope):
    """Return F(W) for W = V^T, and W^T W; write the gradient to `slope`, and V^T to W.

    Without missing pairs the gradient of f is 2 (W^T W V - V S). With missing pairs it is -2 V R with the residuals R,
    for which `residuals` is an n x n buffer, empty otherwise.
    """
    rank, n = V.shape
    ridge, lasso = penalty
    _transpose(V, W)
    gram = np.empty((rank, rank), V.dtype)
    _multiply(V, W, gram)
    if residuals.size > 0:
        _multiply(W, V, residuals)
        total = _leave_residuals(S, residuals)
        _multiply(V, residuals, products)
    else:
        _multiply(V, S, products)
        total = squares - 2.0 * _inner(products, V) + _inner(gram, gram)
    for k in range(rank):
        total += 2.0 * ridge * gram[k, k]
        for i in range(n):
            slope[k, i] = -2.0 * products[k, i] + 2.0 * (ridge * V[k, i] + lasso)
        if lasso != 0.0:
            total += 4.0 * lasso * sum_up(V[k])
        for m in range(rank if residuals.size == 0 else 0):
            x = 2.0 * gram[k, m]
            for i in range(n):
                slope[k, i] += x * V[m, i]
    return 0.5 * total, gram


@njit(**ONCE, fastmath=FAST)
def _lower_model(V, slope, gram, ridge, curvature):
    """Decrease <slope, D> + c <D, (W^T W + ridge I) D> over V + D >= 0, in place, one dimension after the other.

    `slope` is overwritten.
    """
    rank, n = V.shape
    largest = 0.0
    for k in range(rank):
        largest = max(largest, gram[k, k])
    step = np.empty(n)
    for later_passes in range(PASSES - 1, -1, -1):
        for k in range(rank):
            scale = 0.5 / (curvature * (gram[k, k] + ridge + SMALLEST * largest))
            for i in range(n):
                x = V[k, i] - scale * slope[k, i]
                x = x if x > 0.0 else 0.0
                step[i] = x - V[k, i]
                V[k, i] = x
            for m in range(0 if later_passes else k + 1, rank):  # dimensions whose slopes are still needed
                x = 2.0 * curvature * (gram[k, m] + ridge if m == k else gram[k, m])
                for i in range(n):
                    slope[m, i] += x * step[i]


@njit(**COMPILED)
def descend(S, squares, penalty, over, residuals, W, smallest_curvature, history, first, last, rule):
    """Iterations first .. last - 1 on W, in place; return (iterations done, whether the objective has stalled).

    A step that raises the objective is rejected and loses its momentum; if it had none, c is doubled. Items are
    contiguous in memory, so an iteration costs little beyond its products with S: for small matrices, a tenth of a
    sweep over the rows in turn, for half the gain.

    The known pairs of row i cover about 1 / over_i of Y^T Y. `over` and `residuals` are empty if all pairs are known.
    """
    n, rank = W.shape
    mean_over = sum_up(over) / n if residuals.size > 0 else 1.0
    V, products, slope = np.empty((rank, n), W.dtype), np.empty((rank, n), W.dtype), np.empty((rank, n))
    _transpose(W, V)
    previous, candidate, target = V.copy(), V.copy(), V.copy()  # previous, target: minima of the last two models
    candidate_slope, working = slope.copy(), slope.copy()
    f, gram = np.inf, np.empty((rank, rank), W.dtype)
    least = SMALL_PART * squares if residuals.size == 0 else 0.0
    t, t_next, momentum, curvature = 1.0, 1.0, 0.0, smallest_curvature
    done, ended = first, False
    while True:
        candidate_f, candidate_gram = _evaluate(S, squares, penalty, candidate, W, residuals, products, candidate_slope)
        if candidate_f <= f:
            V, candidate = candidate, V
            slope, candidate_slope = candidate_slope, slope
            previous, target = target, previous
            f, gram, t = candidate_f, candidate_gram, t_next
            curvature = max(smallest_curvature, 0.9 * curvature)
        else:
            if momentum == 0.0:
                curvature *= 2.0
            t = 1.0
            _copy(V, previous)
        if done > first:
            history[done] = f
            ended = f <= least or _stalled(history, done, rule)
        if ended or done == last:
            break
        done += 1
        for k in range(rank):
            for i in range(n):
                target[k, i] = V[k, i]
                working[k, i] = slope[k, i] * (over[i] if residuals.size > 0 else 1.0)
        _lower_model(target, working, gram, penalty[0] * mean_over, curvature)
        for k in range(rank):
            for i in range(n):
                working[k, i] = target[k, i] - previous[k, i]
        t_next, momentum = _next_momentum(t if _inner(slope, working) <= 0.0 else 1.0)
        for k in range(rank):
            for i in range(n):
                x = target[k, i] + momentum * working[k, i]
                candidate[k, i] = x if x > 0.0 else 0.0
    _transpose(V, W)
    return done, ended
