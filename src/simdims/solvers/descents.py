"""Whole fits in compiled code: sweeps, the objective after each, and when to stop; no Python in between."""

import numpy as np
from numba import njit

from simdims.solvers.kernels import (
    _COMPILED,
    _FAST,
    _INSIDE,
    _gram,
    _multiply,
    _sum,
    fill_rows,
    sweep_matrix,
)

# The first sweeps on a filled matrix go far by themselves.
FIRST_FAR = 5

# Where a sweep on it may end: where extrapolation leads, where it led itself, or where it began.
BEYOND, SWEPT, KEPT = 0, 1, 2

# A relative rise of the objective that float32 storage can cause.
ROUNDING = 1e-5

# Passes over the dimensions of the model by which all rows move together: more did not pay.
TOGETHER_PASSES = 2

# Part of the largest dimension's square that a small one counts as in its steps: one near zero would go too far.
SMALLEST = 1e-4

# Part of |T|^2 below which f, as a difference of such sums, has too few digits to go by.
SMALL_PART = 1e-5


@njit(**_COMPILED)
def stalled(history, t, rule):
    """Whether the last `window` sweeps gained less than `tol` of the objective, or nothing is left to explain."""
    window, tol, floor = rule
    if history[t] <= floor:
        return True
    return t >= window and history[t - window] - history[t] <= tol * history[t]


@njit(**_COMPILED)
def record(history, s, change, rule):
    """Write the objective after sweep s, from the change that its row updates add up to; return whether to stop."""
    history[s + 1] = history[s] + change
    return stalled(history, s + 1, rule)


@njit(**_INSIDE)
def _copy(source, target):
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            target[i, k] = source[i, k]


@njit(**_COMPILED)
def next_momentum(t):
    """Nesterov's next counter and the part of the last step to go on by; a counter of 1 goes nowhere."""
    t_next = 0.5 + np.sqrt(0.25 + t * t)
    return t_next, (t - 1.0) / t_next


@njit(**_COMPILED)
def go_on(W, before, momentum, beyond):
    """Write max(W + momentum (W - before), 0) to `beyond`, and W to `before`."""
    for i in range(W.shape[0]):
        for k in range(W.shape[1]):
            x = W[i, k]
            beyond[i, k] = max(x + momentum * (x - before[i, k]), 0.0)
            before[i, k] = x


@njit(**_INSIDE, fastmath=_FAST)
def _transpose(A, transposed):
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            transposed[k, i] = A[i, k]


@njit(**_INSIDE, fastmath=_FAST)
def _inner(A, B):
    """<A, B> in float64."""
    sums = np.zeros(A.shape[1])
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            sums[i] += A[k, i] * B[k, i]
    return _sum(sums)


@njit(**_INSIDE, fastmath=_FAST)
def _leave_residuals(S, R):
    """Turn predictions R into S - R, zero where a pair is missing; return the sum of their squares."""
    squares = np.zeros(S.shape[1])
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            residual = S[i, j] - R[i, j]
            residual = 0.0 if np.isnan(residual) else residual
            squares[j] += residual * residual
            R[i, j] = residual
    return _sum(squares)


@njit(**_INSIDE, fastmath=_FAST)
def _evaluate(S, squares, V, W, room, products, slope):
    """Return f(W) for W = V^T, and W^T W; write the gradient to `slope`, and V^T to W.

    It is -2 V R with the residuals R, which need a matrix of `room`, or 2 (W^T W V - V S) where all pairs are known and
    there is none.
    """
    rank, n = V.shape
    _transpose(V, W)
    gram = np.empty((rank, rank), V.dtype)
    _multiply(V, W, gram)
    if room.size > 0:
        _multiply(W, V, room)
        total = _leave_residuals(S, room)
        _multiply(V, room, products)
    else:
        _multiply(V, S, products)
        total = squares - 2.0 * _inner(products, V) + _inner(gram, gram)
    for k in range(rank):
        for i in range(n):
            slope[k, i] = -2.0 * products[k, i]
        for m in range(rank if room.size == 0 else 0):
            x = 2.0 * gram[k, m]
            for i in range(n):
                slope[k, i] += x * V[m, i]
    return 0.5 * total, gram


@njit(**_INSIDE, fastmath=_FAST)
def _lower_model(V, slope, gram, curvature):
    """Lower <slope, D> + c <D, W^T W D> over V + D >= 0, in place, dimension by dimension, each for all items.

    `slope` is used up.
    """
    rank, n = V.shape
    largest = 0.0
    for k in range(rank):
        largest = max(largest, gram[k, k])
    step = np.empty(n)
    for later_passes in range(TOGETHER_PASSES - 1, -1, -1):
        for k in range(rank):
            scale = 0.5 / (curvature * (gram[k, k] + SMALLEST * largest))
            for i in range(n):
                x = V[k, i] - scale * slope[k, i]
                x = x if x > 0.0 else 0.0
                step[i] = x - V[k, i]
                V[k, i] = x
            for m in range(0 if later_passes else k + 1, rank):  # whose slopes are still needed
                x = 2.0 * curvature * gram[k, m]
                for i in range(n):
                    slope[m, i] += x * step[i]


@njit(**_COMPILED)
def descend_together(S, squares, over, room, W, smallest_curvature, history, first, last, rule):
    """Iterations first .. last - 1 that move all rows at once; return (done, stalled).

    Around Y the objective is modelled by f(Y + D) ~ f(Y) + <grad f(Y), D> + c sum_i d_i Y^T Y d_i^T / over_i, the model
    is lowered over Y + D >= 0, and Nesterov's extrapolation leads on to the next Y. Where the last step leads uphill
    its momentum is forgotten, and what is higher than before is given up; if it had no momentum, c is raised. Items lie
    side by side in memory, so that this costs little beside the products with S: for small matrices a tenth of a sweep
    over the rows in turn, for half of its gain.

    Row i sees 1 / over_i of Y^T Y through its known pairs. `over` and `room` are empty where all pairs are known.
    """
    n, rank = W.shape
    V, products, slope = np.empty((rank, n), W.dtype), np.empty((rank, n), W.dtype), np.empty((rank, n))
    _transpose(W, V)
    lowered_before, beyond, target = V.copy(), V.copy(), V.copy()
    slope_beyond, working = slope.copy(), slope.copy()
    f, gram = np.inf, np.empty((rank, rank), W.dtype)
    least = SMALL_PART * squares if room.size == 0 else 0.0
    t, t_next, momentum, curvature = 1.0, 1.0, 0.0, smallest_curvature
    done, ended = first, False
    while True:
        f_beyond, gram_beyond = _evaluate(S, squares, beyond, W, room, products, slope_beyond)
        if f_beyond <= f:
            V, beyond = beyond, V
            slope, slope_beyond = slope_beyond, slope
            lowered_before, target = target, lowered_before
            f, gram, t = f_beyond, gram_beyond, t_next
            curvature = max(smallest_curvature, 0.9 * curvature)
        else:
            if momentum == 0.0:
                curvature *= 2.0
            t = 1.0
            _copy(V, lowered_before)
        if done > first:
            history[done] = f
            ended = f <= least or stalled(history, done, rule)
        if ended or done == last:
            break
        done += 1
        for k in range(rank):
            for i in range(n):
                target[k, i] = V[k, i]
                working[k, i] = slope[k, i] * (over[i] if room.size > 0 else 1.0)
        _lower_model(target, working, gram, curvature)
        for k in range(rank):
            for i in range(n):
                working[k, i] = target[k, i] - lowered_before[k, i]
        t_next, momentum = next_momentum(t if _inner(slope, working) <= 0.0 else 1.0)
        for k in range(rank):
            for i in range(n):
                x = target[k, i] + momentum * working[k, i]
                beyond[k, i] = x if x > 0.0 else 0.0
    _transpose(V, W)
    return done, ended


@njit(**_INSIDE, fastmath=_FAST)
def _product_objective(T, squares, diagonal_weights, W):
    """Return f(W) = 1/2 (|T|^2 - 2 <T W, W> + |W^T W|^2) on a complete matrix; `squares` is |T|^2."""
    n, rank = W.shape
    gram = _gram(W)
    products = np.empty_like(W)
    _multiply(T, W, products)
    total = squares
    for k in range(rank):
        for m in range(rank):
            total += gram[k, m] * gram[k, m]
    for i in range(n):
        norm = 0.0
        for k in range(rank):
            total -= 2.0 * products[i, k] * W[i, k]
            norm += W[i, k] * W[i, k]
        if diagonal_weights[i] != 1.0:
            total += (diagonal_weights[i] - 1.0) * (T[i, i] - norm) ** 2
    return 0.5 * total


@njit(**_COMPILED)
def descend_matrix(
    T, squares, diagonal, diagonal_weights, W, n_passes, block, history, first, last, rule, extrapolates
):
    """Sweeps first .. last - 1 on a complete matrix; return (sweeps done, converged).

    Between sweeps W goes on in the direction of the last step (Nesterov), unless that would lead higher than the last
    sweep began; to know, one more product with T is needed, so that it is for small matrices, or for long descents.
    """
    before, beyond = np.empty_like(W), np.empty_like(W)
    t = 1.0
    _copy(W, before)
    for s in range(first, last):
        change = sweep_matrix(T, diagonal, diagonal_weights, W, n_passes, block)
        if record(history, s, change, rule):
            return s + 1, True
        if extrapolates <= s:
            t, momentum = next_momentum(t)
            go_on(W, before, momentum, beyond)
            if momentum > 0.0:
                hold(beyond, diagonal, diagonal_weights)
                value = _product_objective(T, squares, diagonal_weights, beyond)
                if value <= history[s]:
                    history[s + 1] = value
                    _copy(beyond, W)
                else:
                    t = 1.0
    return last, False


@njit(**_COMPILED)
def hold(W, diagonal, diagonal_weights):
    """Keep loadings of items without an observed diagonal at their limit."""
    for i in range(W.shape[0]):
        if diagonal_weights[i] == 0.0 and diagonal[i] > 0.0:
            most = np.sqrt(diagonal[i])
            for k in range(W.shape[1]):
                W[i, k] = min(W[i, k], most)


@njit(**_COMPILED)
def relax(over, damping, diagonal_weights, relaxation, scaled_weights):
    """The over-relaxation of each row, and the weight of its diagonal term relative to the rest of the row."""
    for i in range(over.size):
        relaxation[i] = 1.0 + damping * (over[i] - 1.0)
        scaled_weights[i] = relaxation[i] * diagonal_weights[i]


@njit(**_INSIDE)
def _fill(S, weights, W, relaxation, low, high, T):
    """Fill all rows; return f(W)."""
    transposed = np.empty((W.shape[1], W.shape[0]), W.dtype)
    _transpose(W, transposed)
    return fill_rows(S, weights, W, transposed, relaxation, low, high, T, np.int64(0), W.shape[0])


@njit(**_COMPILED)
def descend_filled(
    S,
    weights,
    diagonal,
    diagonal_weights,
    box,
    over,
    damping,
    T,
    W,
    n_passes,
    block,
    history,
    first,
    last,
    rule,
):
    """Sweeps first .. last - 1 on the filled matrix; return (sweeps done, converged, damping).

    Row i is over-relaxed by omega_i = 1 + damping (over_i - 1), where over_i is one over the observed share of row i:
    the observed part of W^T W is about that share of it. A sweep that raises the objective is undone and the damping
    halved; without over-relaxation filling majorises f, and only rounding can raise it. Sweeps begin where Nesterov's
    extrapolation leads from the last one, unless that is higher than where it began. T is the filling of W.
    """
    low, high = box
    relaxation = np.empty(over.size)
    scaled_weights = np.empty(over.size)
    kept, before, swept = np.empty_like(W), np.empty_like(W), np.empty_like(W)
    t = 1.0
    _copy(W, before)
    relax(over, damping, diagonal_weights, relaxation, scaled_weights)
    f = _fill(S, weights, W, relaxation, low, high, T)
    if first == 0:
        history[0] = f
    for s in range(first, last):
        _copy(W, kept)
        sweep_matrix(T, diagonal, scaled_weights, W, n_passes, block)
        t, momentum = next_momentum(t) if s >= FIRST_FAR else (1.0, 0.0)
        _copy(W, swept)
        go_on(swept, before, momentum, W)
        hold(W, diagonal, diagonal_weights)
        place = BEYOND if momentum > 0.0 else SWEPT
        while True:
            f = _fill(S, weights, W, relaxation, low, high, T)
            if place == KEPT or f <= history[s]:
                break
            t = 1.0
            if place == BEYOND:
                _copy(swept, W)
                place = SWEPT
                continue
            _copy(kept, W)
            _copy(kept, before)
            place = KEPT
            if damping == 0.0 and f - history[s] <= ROUNDING * history[s]:
                history[s + 1] = history[s]
                return s + 1, True, damping
            damping = 0.5 * damping if damping > 0.1 else 0.0
            relax(over, damping, diagonal_weights, relaxation, scaled_weights)
        history[s + 1] = f
        if place != KEPT and stalled(history, s + 1, rule):
            return s + 1, True, damping
    return last, False, damping
