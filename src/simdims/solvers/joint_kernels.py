"""The compiled part of joint fits S_m ~ W diag(a_m) W^T: rows of W over all systems, and weights over all systems.

With every row of W but row i fixed, the objective is, up to a constant,

    phi_i(w) = w^T A w - 2 b^T w + 1/2 u^T P u - q^T u,    u = w o w,
    A = sum_m D_m (sum_{j != i} Omega_mij w_j w_j^T) D_m,    b = sum_m D_m sum_{j != i} Omega_mij S_mij w_j,
    P = sum_m Omega_mii a_m a_m^T,    q = sum_m Omega_mii S_mii a_m,

with D_m = diag(a_m). With one system this is phi_i of kernels.py. With W fixed, the objective of the weights is
sum_m 1/2 a_m^T G_m a_m - y_m^T a_m, minimised over all systems, one dimension after the other.

Zeros that the lists leave out have weight c_m in system m: they enter through W^T W, and listed pairs minus c_m.
"""

import numpy as np
from numba import njit

from simdims.solvers.kernels import COMPILED, FAST, INSIDE, add_outer, minimise_coordinate, settle_columns

#: Curvature of a system along a dimension, relative to the largest, below which its pairs do not determine its weight.
SMALLEST = 1e-12


@njit(**COMPILED, fastmath=FAST)
def update_joint_row(A, b, P, q, limit, ridge, lasso, w, gradient, own, n_passes):
    """Decrease phi_i by passes over the coordinates of w, in place; return the change of phi_i (never positive).

    `gradient` and `own` are workspace: A w - b and P u, kept up to date.
    """
    rank = w.size
    for k in range(rank):
        gradient[k] = lasso - b[k] + ridge * w[k]
        own[k] = 0.0
    for k in range(rank):
        if w[k] != 0.0:
            for m in range(rank):
                gradient[m] += w[k] * A[k, m]
                own[m] += w[k] * w[k] * P[k, m]
    change = 0.0
    for _ in range(n_passes):
        largest = 0.0
        largest_step = 0.0
        for k in range(rank):
            x = w[k]
            if x == 0.0 and gradient[k] >= 0.0:
                continue
            curvature, omega = A[k, k] + ridge, P[k, k]
            s_ii = q[k] / omega if omega > 0.0 else 0.0
            norm = own[k] / omega if omega > 0.0 else 0.0
            new = minimise_coordinate(x, gradient[k], curvature, s_ii, omega, norm, limit)
            largest = max(largest, new)
            step = new - x
            if step == 0.0:
                continue
            largest_step = max(largest_step, abs(step))
            square = step * (x + new)
            change += step * (2.0 * gradient[k] + step * curvature) + square * (own[k] - q[k] + 0.5 * omega * square)
            for m in range(rank):
                gradient[m] += step * A[k, m]
                own[m] += square * P[k, m]
            gradient[k] += step * ridge
            w[k] = new
        if largest_step <= 1e-12 * largest:
            break
    return change


@njit(**COMPILED, fastmath=FAST)
def update_joint_rows(
    starts, systems, partners, values, weights, zeros, a, cross, diagonal, diagonal_weights, limits,
    ridge, lasso, products, within, W, gram, first, last, n_passes,
):  # fmt: skip
    """Update rows first .. last - 1 of W in turn, in place; return the change of the objective.

    `cross` is sum_m c_m a_m a_m^T. `products` holds sum_m c_m D_m (S_m W)_i, without the diagonal of S, over systems
    with all pairs known, for W before the first of these rows moved. `within` holds what row e of them adds to row f:
    sum_m c_m S_mef a_m. Both are empty without such systems.
    """
    rank = W.shape[1]
    w, b, gradient, own, v = np.empty(rank), np.empty(rank), np.empty(rank), np.empty(rank), np.empty(rank)
    A, P, q = np.empty((rank, rank)), np.empty((rank, rank)), np.empty(rank)
    moves = np.zeros((last - first, rank))
    has_zeros = np.any(cross != 0.0)
    change = 0.0
    for i in range(first, last):
        for k in range(rank):
            w[k] = W[i, k]
            b[k] = products[i - first, k] if products.size > 0 else 0.0
        if products.size > 0:
            for before in range(i - first):
                for k in range(rank):
                    b[k] += within[i - first, before, k] * moves[before, k]
        _listed_terms(systems, partners, values, weights, zeros, a, W, starts[i], starts[i + 1], A, b, v)
        if has_zeros:
            add_outer(gram, w, -1.0)
            settle_columns(gram, W, w, i, 1.0, np.empty(0, np.int32), np.empty(0, W.dtype), 0, 0)
            A += cross * gram
        _diagonal_terms(a, diagonal[:, i], diagonal_weights[:, i], P, q)
        change += update_joint_row(A, b, P, q, limits[i], ridge, lasso, w, gradient, own, n_passes)
        for k in range(rank):
            moves[i - first, k] = w[k] - W[i, k]
            W[i, k] = w[k]
        if has_zeros:
            add_outer(gram, w, 1.0)
    return change


@njit(**INSIDE, fastmath=FAST)
def _listed_terms(systems, partners, values, weights, zeros, a, W, first, last, A, b, v):
    """A = sum over a part of the list of (Omega_mij - c_m) v v^T with v = a_m o w_j, and b += sum Omega_mij S_mij v."""
    rank = b.size
    A[:] = 0.0
    for e in range(first, last):
        m, j = systems[e], partners[e]
        c = weights[e] - zeros[m]
        pull = weights[e] * values[e]
        for k in range(rank):
            v[k] = a[m, k] * W[j, k]
            b[k] += pull * v[k]
        for k in range(rank):
            x = c * v[k]
            if x != 0.0:
                for h in range(k + 1):
                    A[k, h] += x * v[h]
    for k in range(rank):
        for h in range(k):
            A[h, k] = A[k, h]


@njit(**INSIDE, fastmath=FAST)
def _diagonal_terms(a, values, weights, P, q):
    """P = sum_m Omega_mii a_m a_m^T and q = sum_m Omega_mii S_mii a_m."""
    rank = q.size
    P[:] = 0.0
    q[:] = 0.0
    for m in range(a.shape[0]):
        if weights[m] == 0.0:
            continue
        for k in range(rank):
            x = weights[m] * a[m, k]
            q[k] += x * values[m]
            for n in range(rank):
                P[k, n] += x * a[m, n]


@njit(**COMPILED, fastmath=FAST)
def weight_sums(starts, systems, partners, values, weights, zeros, W, G, y):
    """Add the listed pairs to G_m = sum_ij Omega_mij z z^T and y_m = sum_ij Omega_mij S_mij z, z = w_i o w_j."""
    n, rank = W.shape
    z = np.empty(rank)
    for i in range(n):
        for e in range(starts[i], starts[i + 1]):
            j, m = partners[e], systems[e]
            if j < i:
                continue
            c, pull = 2.0 * (weights[e] - zeros[m]), 2.0 * weights[e] * values[e]
            for k in range(rank):
                z[k] = W[i, k] * W[j, k]
                y[m, k] += pull * z[k]
            for k in range(rank):
                x = c * z[k]
                if x != 0.0:
                    for h in range(k + 1):
                        G[m, k, h] += x * z[h]
                        if h != k:
                            G[m, h, k] += x * z[h]


@njit(**COMPILED)
def share_out(curvature, pull, total, x):
    """Minimise sum_m 1/2 d_m x_m^2 - t_m x_m over x >= 0 with sum_m x_m = total: a continuous quadratic knapsack.

    x_m = max(0, t_m - nu) / d_m with the nu that gives the sum, from the breakpoints t in order.
    """
    order = np.argsort(-pull)
    inverse, weighted, nu = 0.0, 0.0, 0.0
    for place in range(order.size):
        m = order[place]
        inverse += 1.0 / curvature[m]
        weighted += pull[m] / curvature[m]
        nu = (weighted - total) / inverse
        if place + 1 == order.size or pull[order[place + 1]] <= nu:
            break
    for m in range(order.size):
        x[m] = max(0.0, pull[m] - nu) / curvature[m]


@njit(**COMPILED)
def update_weights(G, y, mu, a, n_passes):
    """Minimise over the weights, one dimension after the other, in place; return the change of the objective.

    A system whose pairs do not determine its weight on a dimension keeps that weight.
    """
    n_systems, rank = a.shape
    change = 0.0
    curvature, pull, found = np.empty(n_systems), np.empty(n_systems), np.empty(n_systems)
    for _ in range(n_passes):
        largest_step = 0.0
        for k in range(rank):
            most = 0.0
            for m in range(n_systems):
                most = max(most, G[m, k, k] + mu)
            count, total = 0, 0.0
            for m in range(n_systems):
                d = G[m, k, k] + mu
                if d > SMALLEST * most:
                    t = y[m, k] + mu + G[m, k, k] * a[m, k]
                    for h in range(rank):
                        t -= G[m, k, h] * a[m, h]
                    curvature[count], pull[count] = d, t
                    total += a[m, k]
                    count += 1
            if count < 2:
                continue
            share_out(curvature[:count], pull[:count], total, found[:count])
            count = 0
            for m in range(n_systems):
                if G[m, k, k] + mu > SMALLEST * most:
                    old, new = a[m, k], found[count]
                    change += 0.5 * curvature[count] * (new - old) * (new + old) - pull[count] * (new - old)
                    largest_step = max(largest_step, abs(new - old))
                    a[m, k] = new
                    count += 1
        if largest_step <= 1e-10:
            break
    return change


@njit(**COMPILED, fastmath=FAST)
def joint_gradient(starts, systems, partners, values, weights, zeros, a, W, slope, pull):
    """Listed pairs' part of twice f; adds minus half the gradient of f in each row of W, and its data part."""
    n, rank = W.shape
    v = np.empty(rank)
    total = 0.0
    for i in range(n):
        for e in range(starts[i], starts[i + 1]):
            m, j = systems[e], partners[e]
            product = 0.0
            for k in range(rank):
                v[k] = a[m, k] * W[j, k]
                product += v[k] * W[i, k]
            residual = values[e] - product
            force = weights[e] * residual + zeros[m] * product
            data = weights[e] * values[e]
            total += weights[e] * residual * residual - zeros[m] * product * product
            for k in range(rank):
                slope[i, k] += force * v[k]
                pull[i, k] += data * v[k]
    return total
