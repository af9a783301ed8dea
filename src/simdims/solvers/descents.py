"""Whole fits in compiled code: sweeps, the objective after each, and when to stop; no Python in between."""

import numpy as np
from numba import njit

from simdims.solvers.kernels import fill, sweep_factors, sweep_matrix, sweep_pairs

# A relative rise of the objective that float32 storage can cause.
_ROUNDING = 1e-5


@njit(cache=True, nogil=True, error_model="numpy")
def _stalled(history, t, rule):
    """Whether the last `window` sweeps gained less than `tol` of the objective, or nothing is left to explain."""
    window, tol, floor = rule
    if history[t] <= floor:
        return True
    return t >= window and history[t - window] - history[t] <= tol * history[t]


@njit(cache=True, nogil=True, error_model="numpy")
def descend_matrix(T, diagonal, diagonal_weights, W, n_passes, block, history, first, last, rule):
    """Sweeps first .. last - 1 on a complete matrix; return (sweeps done, converged)."""
    for t in range(first, last):
        change = sweep_matrix(T, diagonal, diagonal_weights, W, n_passes, block)
        history[t + 1] = min(max(history[t] + change, 0.0), history[t])
        if _stalled(history, t + 1, rule):
            return t + 1, True
    return last, False


@njit(cache=True, nogil=True, error_model="numpy")
def descend_factors(F, diagonal, W, n_passes, block, history, first, last, rule):
    """Sweeps first .. last - 1 on S = F F^T; return (sweeps done, converged)."""
    for t in range(first, last):
        change = sweep_factors(F, diagonal, W, n_passes, block)
        history[t + 1] = min(max(history[t] + change, 0.0), history[t])
        if _stalled(history, t + 1, rule):
            return t + 1, True
    return last, False


@njit(cache=True, nogil=True, error_model="numpy")
def descend_pairs(pairs, background, diagonal, diagonal_weights, W, n_passes, history, first, last, rule):
    """Sweeps first .. last - 1 on listed pairs; return (sweeps done, converged)."""
    starts, partners, values, weights = pairs
    for t in range(first, last):
        change = sweep_pairs(starts, partners, values, weights, background, diagonal, diagonal_weights, W, n_passes)
        history[t + 1] = min(max(history[t] + change, 0.0), history[t])
        if _stalled(history, t + 1, rule):
            return t + 1, True
    return last, False


@njit(cache=True, nogil=True, error_model="numpy")
def _relax(over, damping, diagonal_weights, relaxation, scaled_weights):
    """The over-relaxation of each row, and the weight of its diagonal term relative to the rest of the row."""
    for i in range(over.size):
        relaxation[i] = 1.0 + damping * (over[i] - 1.0)
        scaled_weights[i] = relaxation[i] * diagonal_weights[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _copy(source, target):
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            target[i, k] = source[i, k]


@njit(cache=True, nogil=True, error_model="numpy")
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
    halved; without over-relaxation filling majorises f, and only rounding can raise it. Between calls T holds the
    filling of W.
    """
    low, high = box
    relaxation = np.empty(over.size)
    scaled_weights = np.empty(over.size)
    kept = np.empty_like(W)
    _relax(over, damping, diagonal_weights, relaxation, scaled_weights)
    if first == 0:
        history[0] = fill(S, weights, W, relaxation, low, high, T)
    for t in range(first, last):
        _copy(W, kept)
        sweep_matrix(T, diagonal, scaled_weights, W, n_passes, block)
        history[t + 1] = fill(S, weights, W, relaxation, low, high, T)
        rise = history[t + 1] - history[t]
        if not rise <= 0.0:
            _copy(kept, W)
            history[t + 1] = history[t]
            if damping == 0.0 and rise <= _ROUNDING * history[t]:
                return t + 1, True, damping
            damping = 0.5 * damping if damping > 0.1 else 0.0
            _relax(over, damping, diagonal_weights, relaxation, scaled_weights)
            fill(S, weights, W, relaxation, low, high, T)
        elif _stalled(history, t + 1, rule):
            return t + 1, True, damping
    return last, False, damping
