"""The compiled part: the row update of block coordinate descent and the sweeps around it.

With every row of W but row i fixed, the objective f(W) = 1/2 sum_ij Omega_ij (S_ij - w_i . w_j)^2 is, up to a constant,

    phi_i(w) = w^T A w - 2 b^T w + 1/2 Omega_ii (S_ii - |w|^2)^2,
    A = sum_{j != i} Omega_ij w_j w_j^T,    b = sum_{j != i} Omega_ij S_ij w_j.

A penalty on the loadings adds `ridge` to the diagonal of A and subtracts `lasso` from each entry of b; see penalty.py.

`update_row` decreases phi_i and never sees the data; the storage determines how A and b are computed: products with a
matrix (`update_block`) or lists of pairs (`gather_pairs`, `update_listed`). Row workspaces are float64 whatever the
storage, so that the change of the objective is summed precisely while S and W stay float32.

`limits` holds the largest loading allowed for each item, infinite for most; see problem.py.
"""

from typing import Any

import numpy as np
from numba import njit

# Options for compiling all kernels. Kernels called only by others here need no Python entry point, and those called in
# one place are inlined: both save compile time.
COMPILED: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
INSIDE: dict[str, Any] = {**COMPILED, "no_cpython_wrapper": True}
ONCE: dict[str, Any] = {**INSIDE, "inline": "always"}

# No flag that lets the compiler reorder sums or fuse operations ("reassoc", "contract"): the effect depends on the code
# around a loop, so the last digits of a fit would depend on whether a kernel was compiled or loaded from the cache.
# Sums over a matrix go column by column instead, which vectorises in a fixed order. No "nnan": missing pairs are NaN.
FAST = {"nsz"}


@njit(**INSIDE)
def minimise_coordinate(x, gradient, curvature, s_ii, omega_ii, squared_norm, limit):
    """Minimise phi_i over its one coordinate w_k = x >= 0: the paper's scalar sBSUM step.

    The stationary point is a root of Omega_ii x^3 + p x + q with p = A_kk - Omega_ii (S_ii - |w|^2 + x^2) and
    q = (A w)_k - A_kk x - b_k. For p < 0 the quartic is not convex and its smallest convex majoriser is minimised.
    `gradient` is (A w - b)_k, `curvature` is A_kk. If the diagonal is not observed (Omega_ii = 0), x may not exceed
    `limit`.
    """
    p = curvature - omega_ii * (s_ii - squared_norm + x * x)
    q = gradient - curvature * x
    if omega_ii == 0.0:
        return min(-q / p, limit) if q < 0.0 and p > 0.0 else 0.0
    if p <= 0.0:
        cube = -(p * x + q) / omega_ii
        return np.cbrt(cube) if cube > 0.0 else 0.0
    if q >= 0.0:
        return 0.0
    # Newton on an increasing convex function: from any start it lands right of the root and then decreases towards it.
    linear_rules = p * p * p > q * q * omega_ii
    if x == 0.0 or not linear_rules:
        x = -q / p if linear_rules else np.cbrt(-q / omega_ii)
    for _ in range(100):
        cubic = omega_ii * x * x
        slope = 3.0 * cubic + p
        step = (x * (cubic + p) + q) / slope
        x -= step
        if 3.0 * omega_ii * step * step <= 1e-9 * slope:  # quadratic convergence: the relative error that remains
            break
    return x


@njit(**INSIDE, fastmath=FAST)
def update_row(A, b, s_ii, omega_ii, limit, ridge, lasso, w, gradient, n_passes):
    """Decrease phi_i by passes over the coordinates of w, in place; return the change of phi_i (never positive).

    `gradient` is workspace: A w - b, updated with one row of A for each coordinate that moves.
    """
    rank = w.size
    squared_norm = 0.0
    for k in range(rank):
        gradient[k] = lasso - b[k] + ridge * w[k]
        squared_norm += w[k] * w[k]
    for k in range(rank):
        if w[k] != 0.0:
            for m in range(rank):
                gradient[m] += w[k] * A[k, m]
    change = 0.0
    for _ in range(n_passes):
        largest = 0.0
        largest_step = 0.0
        for k in range(rank):
            x = w[k]
            if x == 0.0 and gradient[k] >= 0.0:
                continue
            curvature = A[k, k] + ridge
            new = minimise_coordinate(x, gradient[k], curvature, s_ii, omega_ii, squared_norm, limit)
            largest = max(largest, new)
            step = new - x
            if step == 0.0:
                continue
            largest_step = max(largest_step, abs(step))
            left = s_ii - squared_norm
            squared_norm += step * (x + new)
            right = s_ii - squared_norm
            change += step * (2.0 * gradient[k] + step * curvature) + 0.5 * omega_ii * (right * right - left * left)
            for m in range(rank):
                gradient[m] += step * A[k, m]
            gradient[k] += step * ridge
            w[k] = new
        if largest_step <= 1e-12 * largest:
            break
    return change


@njit(**INSIDE, fastmath=FAST)
def add_outer(A, w, sign):
    """A += sign w w^T, skipping zeros of w."""
    for k in range(w.size):
        if w[k] != 0.0:
            x = sign * w[k]
            for m in range(w.size):
                A[k, m] += x * w[m]


@njit(**INSIDE, fastmath=FAST)
def settle_columns(A, W, w, i, background, partners, weights, first, last):
    """Recompute the columns of A that consist mostly of row i, where subtracting w_i w_i^T leaves only rounding error.

    Without an observed diagonal only A bounds such a coordinate, and rounding error is no bound.
    """
    rank = w.size
    for k in range(rank):
        if A[k, k] > 1e-6 * w[k] * w[k]:
            continue
        for m in range(rank):
            A[k, m] = 0.0
        e = first
        for j in range(W.shape[0]):
            omega = background
            if e < last and partners[e] == j:
                omega = weights[e]
                e += 1
            if j == i or omega == 0.0 or W[j, k] == 0.0:
                continue
            x = omega * W[j, k]
            for m in range(rank):
                A[k, m] += x * W[j, m]
        for m in range(rank):
            A[m, k] = A[k, m]


@njit(**COMPILED, fastmath=FAST)
def update_block(own, products, diagonal, diagonal_weights, limits, ridge, lasso, W, gram, start, n_passes):
    """Update the rows of one block in turn, in place; return the change of the objective.

    `own` holds the similarities within the block and `products` its rows of S W: A_i = W^T W - w_i w_i^T and
    b_i = (S W)_i - S_ii w_i, plus the changes of earlier rows in the block. `gram` is W^T W, kept up to date. S need
    not be symmetric: only its row i enters the update of row i.
    """
    rank = W.shape[1]
    w, b, gradient = np.empty(rank), np.empty(rank), np.empty(rank)
    moves = np.empty((own.shape[0], rank))
    change = 0.0
    for e in range(own.shape[0]):
        i = start + e
        for k in range(rank):
            w[k] = W[i, k]
            b[k] = products[e, k] - own[e, e] * w[k]
        whole = e // 4 * 4
        for before in range(0, whole, 4):
            s0, s1, s2, s3 = own[e, before], own[e, before + 1], own[e, before + 2], own[e, before + 3]
            for k in range(rank):
                x = b[k] + s0 * moves[before, k] + s1 * moves[before + 1, k]
                b[k] = x + s2 * moves[before + 2, k] + s3 * moves[before + 3, k]
        for before in range(whole, e):
            for k in range(rank):
                b[k] += own[e, before] * moves[before, k]
        add_outer(gram, w, -1.0)
        if diagonal_weights[i] == 0.0:
            settle_columns(gram, W, w, i, 1.0, np.empty(0, np.int32), np.empty(0, W.dtype), 0, 0)
        omega, limit = diagonal_weights[i], limits[i]
        change += update_row(gram, b, diagonal[i], omega, limit, ridge[i], lasso[i], w, gradient, n_passes)
        for k in range(rank):
            moves[e, k] = -W[i, k]
            W[i, k] = w[k]
            w[k] = W[i, k]  # as rounded by the storage's precision
            moves[e, k] += w[k]
        add_outer(gram, w, 1.0)
    return change


@njit(**INSIDE, fastmath=FAST)
def sum_up(values):
    """Sum in the order of the values."""
    total = 0.0
    for value in values:
        total += value
    return total


@njit(**COMPILED, fastmath=FAST)
def fill_rows(S, weights, relaxation, low, high, T, first, last):
    """Turn rows first .. last - 1 of T from R = W W^T to R + omega_i Omega * (S - R); return their part of f(W).

    Missing pairs (NaN) are filled with R clipped to [low, high], which adds 1/2 dist(R, [low, high])^2 to f. `weights`
    of shape (0, 0) stand for ones. The bounds do not apply to the diagonal: a missing entry of it adds nothing.
    """
    n = S.shape[1]
    squares = np.zeros(n)
    for i in range(first, last):
        omega = relaxation[i]
        own = T[i, i]
        if weights.size == 0:
            for j in range(n):
                residual = S[i, j] - T[i, j]
                if np.isnan(residual):
                    residual = min(max(T[i, j], low), high) - T[i, j]
                squares[j] += residual * residual
                T[i, j] += omega * residual
        else:
            for j in range(n):
                residual = S[i, j] - T[i, j]
                weight = weights[i, j]
                if np.isnan(residual):
                    residual = min(max(T[i, j], low), high) - T[i, j]
                    weight = 1.0
                squares[j] += weight * residual * residual
                T[i, j] += omega * weight * residual
        if np.isnan(S[i, i]):
            own -= min(max(own, low), high)
            squares[i] -= own * own
        T[i, i] = 0.0  # has its own term in the row update
    return 0.5 * sum_up(squares)


@njit(**INSIDE)
def _first_from(item, partners, low, high):
    """Binary search: the first of the sorted partners[low:high] that is not before `item`."""
    while low < high:
        middle = (low + high) // 2
        if partners[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**COMPILED, fastmath=FAST)
def gather_pairs(starts, partners, values, weights, background, W, block, first, last, A, b):
    """Add listed partners to A and b of rows first .. last - 1 of the block of rows that begins at `block`.

    Partners in the block that come before the row are left out: they move first, and `update_listed` adds them then.
    Rows do not depend on each other, so threads may share them.
    """
    rank = W.shape[1]
    for i in range(first, last):
        e = i - block
        for k in range(rank):
            b[e, k] = 0.0
            for m in range(k + 1):
                A[e, k, m] = 0.0
        before = _first_from(block, partners, starts[i], starts[i + 1])
        after = _first_from(i, partners, starts[i], starts[i + 1])
        _add_partners(A[e], b[e], W, partners, values, weights, background, starts[i], before)
        _add_partners(A[e], b[e], W, partners, values, weights, background, after, starts[i + 1])


@njit(**COMPILED, fastmath=FAST)
def update_listed(
    starts, partners, values, weights, background, diagonal, diagonal_weights, limits, ridge, lasso, W, gram,
    block, last, A, b, n_passes,
):  # fmt: skip
    """Update rows block .. last - 1 of W in turn, in place, after `gather_pairs`; return the change of the objective.

    A_i = a (W^T W - w_i w_i^T) + sum_{listed j} (Omega_ij - a) w_j w_j^T and b_i = sum_{listed j} Omega_ij S_ij w_j,
    where a is the weight of the zeros that the lists leave out. The diagonal is not in the lists. `gram` is W^T W, kept
    up to date and not used if a is zero.
    """
    rank = W.shape[1]
    w = np.empty(rank)
    gradient = np.empty(rank)
    change = 0.0
    for i in range(block, last):
        A_i, b_i = A[i - block], b[i - block]
        before = _first_from(block, partners, starts[i], starts[i + 1])
        after = _first_from(i, partners, starts[i], starts[i + 1])
        _add_partners(A_i, b_i, W, partners, values, weights, background, before, after)
        for k in range(rank):
            w[k] = W[i, k]
            for m in range(k):
                A_i[m, k] = A_i[k, m]
        if background != 0.0:
            add_outer(gram, w, -1.0)
            for k in range(rank):
                for m in range(rank):
                    A_i[k, m] += background * gram[k, m]
        if diagonal_weights[i] == 0.0:
            settle_columns(A_i, W, w, i, background, partners, weights, starts[i], starts[i + 1])
        omega, limit = diagonal_weights[i], limits[i]
        change += update_row(A_i, b_i, diagonal[i], omega, limit, ridge[i], lasso[i], w, gradient, n_passes)
        for k in range(rank):
            W[i, k] = w[k]
            w[k] = W[i, k]  # as rounded by the storage's precision
        if background != 0.0:
            add_outer(gram, w, 1.0)
    return change


@njit(**INSIDE, fastmath=FAST)
def _add_partners(A, b, W, partners, values, weights, background, first, last):
    """Over a part of a list: A += sum (Omega_ij - a) w_j w_j^T, its lower triangle, b += sum Omega_ij S_ij w_j."""
    rank = W.shape[1]
    whole = first + (last - first) // 4 * 4
    for e in range(first, whole, 4):
        j0, j1, j2, j3 = partners[e], partners[e + 1], partners[e + 2], partners[e + 3]
        c0, c1 = weights[e] - background, weights[e + 1] - background
        c2, c3 = weights[e + 2] - background, weights[e + 3] - background
        if c0 == 0.0 and c1 == 0.0 and c2 == 0.0 and c3 == 0.0:
            continue
        for k in range(rank):
            x0, x1, x2, x3 = c0 * W[j0, k], c1 * W[j1, k], c2 * W[j2, k], c3 * W[j3, k]
            for m in range(k + 1):
                A[k, m] += x0 * W[j0, m] + x1 * W[j1, m] + x2 * W[j2, m] + x3 * W[j3, m]
    for e in range(whole, last):
        j = partners[e]
        c = weights[e] - background
        for k in range(rank):
            x = c * W[j, k]
            for m in range(k + 1):
                A[k, m] += x * W[j, m]
    for e in range(first, last):
        pull = weights[e] * values[e]
        if pull != 0.0:
            for k in range(rank):
                b[k] += pull * W[partners[e], k]


@njit(**ONCE, fastmath=FAST)
def _dot(W, i, j):
    """w_i . w_j, in four independent sums."""
    rank = W.shape[1]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(0, rank - 3, 4):
        a += W[i, k] * W[j, k]
        b += W[i, k + 1] * W[j, k + 1]
        c += W[i, k + 2] * W[j, k + 2]
        d += W[i, k + 3] * W[j, k + 3]
    for k in range(rank - rank % 4, rank):
        a += W[i, k] * W[j, k]
    return (a + b) + (c + d)


@njit(**COMPILED, fastmath=FAST)
def pair_gradient(starts, partners, values, weights, background, W, slope, pull):
    """Listed pairs' part of twice f(W); writes minus half the gradient of f in each row, and its data part.

    Each pair contributes Omega_ij (S_ij - w_i . w_j) + a w_i . w_j; the second term removes the listed pairs from the
    zeros of weight `background` (a).
    """
    n, rank = W.shape
    total = 0.0
    for i in range(n):
        for k in range(rank):
            slope[i, k] = 0.0
            pull[i, k] = 0.0
        for e in range(starts[i], starts[i + 1]):
            j = partners[e]
            product = _dot(W, i, j)
            residual = values[e] - product
            force = weights[e] * residual + background * product
            data = weights[e] * values[e]
            total += weights[e] * residual * residual - background * product * product
            for k in range(rank):
                slope[i, k] += force * W[j, k]
                pull[i, k] += data * W[j, k]
    return total


@njit(**COMPILED, fastmath=FAST)
def split_step(S, weights, rho, low, high, T, dual):
    """One Z-update and dual update of ADMM; T holds R = W W^T on entry and the next target Z + dual / rho on return.

    Z = clip((Omega S + rho R - dual) / (rho + Omega)), dual += rho (Z - R). `weights` of shape (0, 0) stand for ones on
    the pairs that are not NaN. Returns (f(W), |Z - R|^2, |Z|^2).
    """
    objective, gap, size = np.zeros(S.shape[1]), np.zeros(S.shape[1]), np.zeros(S.shape[1])
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            value = S[i, j]
            product = T[i, j]
            weight = 1.0
            if weights.size > 0:
                weight = weights[i, j]
            if np.isnan(value):
                weight = 0.0
                value = 0.0
            residual = value - product
            z = (weight * value + rho * product - dual[i, j]) / (rho + weight)
            z = min(max(z, low), high)
            dual[i, j] += rho * (z - product)
            T[i, j] = z + dual[i, j] / rho
            objective[j] += weight * residual * residual
            gap[j] += (z - product) * (z - product)
            size[j] += z * z
    return 0.5 * sum_up(objective), sum_up(gap), sum_up(size)


@njit(**COMPILED)
def embed_rows(A, b, ridge, lasso, embedding, n_passes):
    """Minimise w^T A w - 2 b_i^T w and the penalty over w >= 0 for every row of `embedding`, in place."""
    w, gradient = np.empty(A.shape[0]), np.empty(A.shape[0])
    for i in range(b.shape[0]):
        for k in range(w.size):
            w[k] = embedding[i, k]
        update_row(A, b[i], 0.0, 0.0, np.inf, ridge, lasso, w, gradient, n_passes)
        for k in range(w.size):
            embedding[i, k] = w[k]


@njit(**COMPILED, fastmath=FAST)
def survey(S, weights):
    """Known pairs and their weight in each row, off the diagonal; sum Omega S, sum Omega S^2, the largest S or zero.

    One pass without branches, limited by memory bandwidth. S and its weights are symmetric: sums over rows are computed
    over columns.
    """
    n = S.shape[0]
    known, weight, linear, quadratic = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    largest = np.zeros(n)
    for i in range(n):
        for j in range(n):
            value = S[i, j]
            omega = 1.0 if weights.size == 0 else weights[i, j]
            known[j] += 0.0 if np.isnan(value) else 1.0
            omega = 0.0 if np.isnan(value) else omega
            value = 0.0 if np.isnan(value) else value
            weight[j] += omega
            linear[j] += omega * value
            quadratic[j] += omega * value * value
            largest[j] = value if value > largest[j] else largest[j]
        if not np.isnan(S[i, i]):
            known[i] -= 1.0
            weight[i] -= 1.0 if weights.size == 0 else weights[i, i]
    most = 0.0
    for value in largest:
        most = max(most, value)
    return known, weight, sum_up(linear), sum_up(quadratic), most
