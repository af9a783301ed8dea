"""The compiled row update against slow, obvious versions of the functions it minimises."""

import numpy as np
import pytest
from numba import njit
from scipy.optimize import minimize, nnls

from simdims.solvers import accelerated, kernels, sweeps
from simdims.solvers.sweeps import MatrixProducts, RowTerms, sweep

SEEDS = range(40)


@njit
def minimise_coordinate(*arguments):
    """A way in from Python, which the kernel itself has no need of."""
    return kernels.minimise_coordinate(*arguments)


@njit
def update_row(*arguments):
    return kernels.update_row(*arguments)


def plain_terms(diagonal):
    """Row terms of an observed diagonal, without limits and penalty."""
    ones = np.ones(len(diagonal))
    return RowTerms(diagonal, ones, np.inf * ones, 0.0 * ones, 0.0 * ones)


def phi(w, A, b, s_ii, omega_ii):
    """The objective as a function of one row, by its definition."""
    return w @ A @ w - 2 * b @ w + 0.5 * omega_ii * (s_ii - w @ w) ** 2


def phi_slope(w, A, b, s_ii, omega_ii):
    return 2 * (A @ w - b) - 2 * omega_ii * (s_ii - w @ w) * w


def random_row(seed, omega_ii):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 7))
    others = rng.uniform(size=(rng.integers(1, 12), rank)) * rng.choice([0.1, 1.0])
    A = others.T @ others
    b = others.T @ rng.uniform(size=len(others))
    s_ii = rng.uniform(0, 3)
    return A, b, s_ii, omega_ii, rng.uniform(size=rank) * (rng.random(rank) < 0.7)


def coordinate_function(row, k):
    """The coordinate's function of the candidate value, and the majorizer's where it is not convex."""
    A, b, s_ii, omega_ii, w = row
    x0 = w[k]

    def exact(x):
        moved = w.copy()
        moved[k] = x
        return phi(moved, A, b, s_ii, omega_ii)

    # The second derivative in x is 2 A_kk + Omega (6 x^2 + 2 |w|^2 - 2 x0^2 - 2 s): convex on x >= 0 if it is so at
    # x = 0; else the smallest quadratic c (x - x0)^2 that makes it so is added.
    at_zero = 2 * A[k, k] + omega_ii * (2 * (w @ w - x0**2) - 2 * s_ii)
    c = max(-at_zero, 0.0) / 2
    return lambda x: exact(x) + c * (x - x0) ** 2


@pytest.mark.parametrize("omega_ii", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_scalar_step_is_the_minimiser_on_a_fine_grid(seed, omega_ii):
    row = A, b, s_ii, _, w = random_row(seed, omega_ii)
    k = seed % len(w)
    if A[k, k] == 0 and omega_ii == 0:
        pytest.skip("the coordinate does not enter the objective")
    step = minimise_coordinate(w[k], (A @ w - b)[k], A[k, k], s_ii, omega_ii, w @ w, np.inf)
    function = coordinate_function(row, k)
    grid = np.linspace(0, max(4.0, 2 * step), 40_001)
    values = np.array([function(x) for x in grid[::40]])
    near = grid[::40][np.argmin(values)] + np.linspace(-1, 1, 2001) * 2 * grid[40]
    near = np.append(near[near >= 0], 0.0)
    best = near[np.argmin([function(x) for x in near])]
    assert step == pytest.approx(best, abs=2e-3)
    assert function(step) <= function(best) + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_the_scalar_step_is_the_papers_closed_form(seed):
    """Equation sbsum: a = 4, b = 12 x, c, d by their definitions, cube roots of q / 2 -+ sqrt(Delta)."""
    A, b_vector, s_ii, _, w = random_row(seed, 1.0)
    k = seed % len(w)
    x = w[k]
    a, b = 4.0, 12.0 * x
    c = 4 * (w @ w - s_ii + (A[k, k] + x * x) + x * x)
    d = 4 * ((A @ w - b_vector)[k] + (w @ w - s_ii) * x)
    p = (3 * a * c - b**2) / (3 * a**2)
    q = (9 * a * b * c - 27 * a**2 * d - 2 * b**3) / (27 * a**3)
    if c > b**2 / (3 * a):
        root = np.sqrt(q**2 / 4 + p**3 / 27)
        expected = np.cbrt(q / 2 - root) + np.cbrt(q / 2 + root)
    else:
        expected = np.cbrt(b**3 / (27 * a**3) - d / a)
    step = minimise_coordinate(x, (A @ w - b_vector)[k], A[k, k], s_ii, 1.0, w @ w, np.inf)
    assert step == pytest.approx(max(expected, 0.0), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("omega_ii", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_update_never_raises_phi_reports_its_change_and_ends_at_a_kkt_point(seed, omega_ii):
    A, b, s_ii, _, w = random_row(seed, omega_ii)
    before = phi(w, A, b, s_ii, omega_ii)
    for n_passes in (1, 3, 20_000):
        moved = w.copy()
        change = update_row(A, b, s_ii, omega_ii, np.inf, 0.0, 0.0, moved, np.empty(len(w)), n_passes)
        assert change <= 0
        assert before + change == pytest.approx(phi(moved, A, b, s_ii, omega_ii), abs=1e-10)
    slope = phi_slope(moved, A, b, s_ii, omega_ii)
    scale = 1 + np.abs(b).max()
    assert np.all(np.abs(slope[moved > 0]) < 1e-5 * scale)
    assert np.all(slope[moved == 0] > -1e-5 * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_update_finds_the_global_minimum_where_phi_is_convex(seed):
    A, b, _, omega_ii, w = random_row(seed, 1.0)
    A = A + 0.1 * np.eye(len(A))
    s_ii = 0.05  # A - Omega S_ii I >= 0, so phi is convex
    update_row(A, b, s_ii, omega_ii, np.inf, 0.0, 0.0, w, np.empty(len(w)), 20_000)
    starts = np.random.default_rng(seed).uniform(size=(5, len(w)))
    others = [
        minimize(phi, x0, (A, b, s_ii, omega_ii), jac=phi_slope, method="L-BFGS-B", bounds=[(0, None)] * len(w)).fun
        for x0 in starts
    ]
    assert phi(w, A, b, s_ii, omega_ii) <= min(others) + 1e-7


@pytest.mark.parametrize("seed", range(10))
def test_without_a_diagonal_a_row_is_non_negative_least_squares(seed):
    rng = np.random.default_rng(seed)
    others, similarities = rng.uniform(size=(20, 4)), rng.uniform(size=20)
    w = np.zeros(4)
    update_row(others.T @ others, others.T @ similarities, 0.0, 0.0, np.inf, 0.0, 0.0, w, np.empty(4), 20_000)
    np.testing.assert_allclose(w, nnls(others, similarities)[0], atol=1e-6)


def test_a_coordinate_that_no_partner_shares_is_zero():
    """With nothing observed of a dimension any value fits; zero is the one that claims nothing."""
    w = np.array([0.5, 0.5])
    update_row(np.diag([1.0, 0.0]), np.array([0.7, 0.0]), 0.0, 0.0, np.inf, 0.0, 0.0, w, np.empty(2), 5)
    np.testing.assert_allclose(w, [0.7, 0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sweep_reports_the_change_of_the_objective(dtype):
    rng = np.random.default_rng(0)
    S = rng.uniform(size=(70, 70))
    S = ((S + S.T) / 2).astype(dtype)
    W = rng.uniform(size=(70, 4)).astype(dtype)

    def f(W):
        return 0.5 * np.sum((S.astype(float) - W.astype(float) @ W.astype(float).T) ** 2)

    before = f(W)
    diagonal = plain_terms(np.diag(S).astype(float))
    change = sweep(MatrixProducts(S, W), diagonal, W, 3)
    assert before + change == pytest.approx(f(W), rel=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("omega_ii", [0.0, 1.0])
def test_a_limit_holds_the_loadings_of_an_item_without_a_diagonal(omega_ii):
    w = np.array([0.1])
    update_row(np.array([[0.01]]), np.array([1.0]), 4.0, omega_ii, 2.5, 0.0, 0.0, w, np.empty(1), 50)
    if omega_ii == 0.0:
        assert w[0] == 2.5  # and not 100
    else:
        assert phi_slope(w, np.array([[0.01]]), np.array([1.0]), 4.0, omega_ii) == pytest.approx(0.0, abs=1e-6)


def test_any_block_size_gives_the_same_sweep(monkeypatch):
    rng = np.random.default_rng(1)
    T = rng.uniform(size=(50, 50))  # not symmetric: only row i may enter the update of row i
    start = rng.uniform(size=(50, 3))
    swept = []
    diagonal = plain_terms(np.diag(T).copy())
    for block in (1, 7, 32, 128):
        monkeypatch.setattr(sweeps, "BLOCK", block)
        for many in (1, 1000):  # products ahead of the rows that move, and when they are needed
            monkeypatch.setattr(sweeps, "MANY", many)
            W = start.copy()
            sweep(MatrixProducts(T, W), diagonal, W, 2)
            swept.append(W)
    for W in swept[1:]:
        np.testing.assert_allclose(W, swept[0], atol=1e-12)


def slow_step(S, W, over, curvature, n_passes):
    """One step of all rows from W without momentum: the model's coordinates in turn, by its definition."""
    gram = W.T @ W
    slope = -2 * np.where(np.isnan(S), 0, S - W @ W.T) @ W
    moved = W.copy()
    for _ in range(n_passes):
        for k in range(W.shape[1]):
            # The derivative of <slope, D> + c sum_i d_i (W^T W) d_i^T / over_i in column k of D = moved - W.
            at = slope[:, k] + 2 * curvature * ((moved - W) @ gram[:, k]) / over
            size = (gram[k, k] + accelerated.SMALLEST * gram.diagonal().max()) / over
            moved[:, k] = np.maximum(moved[:, k] - at / (2 * curvature * size), 0)
    return moved


def given(S, over=None):
    """What `descend` is given of a matrix: its values, sum S^2, the factors `over` and a buffer for residuals."""
    if over is None:
        return S, float(np.sum(S**2)), (0.0, 0.0), np.empty(0), np.empty((0, 0), S.dtype)
    return S, float(np.nansum(S**2)), (0.0, 0.0), over, np.empty_like(S)


def with_gaps(S, share, seed=7):
    missing = np.triu(np.random.default_rng(seed).random(S.shape) > share, 1)
    gaps = np.where(missing | missing.T, np.nan, S).astype(S.dtype)
    return gaps, (len(S) - 1) / np.maximum(np.sum(~np.isnan(gaps), axis=1) - 1, 1)


@pytest.mark.parametrize("share", [None, 0.9, 0.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_first_step_of_all_rows_is_the_slow_one(dtype, share):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(4, 0.5), 30)
    S = (truth @ truth.T).astype(dtype)
    S, over = (S, None) if share is None else with_gaps(S, share)
    start = (truth + 0.2 * rng.uniform(size=(30, 4)) * (rng.random((30, 4)) < 0.5)).astype(dtype)
    W, history = start.copy(), np.full(2, np.inf)
    done, ended = accelerated.descend(*given(S, over), W, 1.7, history, 0, 1, (25, 0.0, 0.0))
    factors = np.ones(30) if over is None else over
    expected = slow_step(S.astype(float), start.astype(float), factors, 1.7, accelerated.PASSES)
    np.testing.assert_allclose(W, expected, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-5)
    assert (done, ended) == (1, False)


@pytest.mark.parametrize("share", [None, 0.7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(5))
def test_all_rows_together_lower_the_objective_and_say_what_it_is(seed, dtype, share):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(5, 0.3), 60)
    S = truth @ truth.T + 0.05 * rng.uniform(size=(60, 60))
    S = ((S + S.T) / 2).astype(dtype)
    S, over = (S, None) if share is None else with_gaps(S, share)
    W = rng.uniform(size=(60, 5)).astype(dtype) * 0.3
    history = np.empty(81)
    history[0] = 0.5 * np.nansum((S - W @ W.T) ** 2, dtype=float)
    for last in range(10, 90, 10):  # in several calls, as a long fit is
        accelerated.descend(*given(S, over), W, 2.0, history, last - 10, last, (25, -1.0, 0.0))
        exact = 0.5 * np.nansum((S.astype(float) - W.astype(float) @ W.T.astype(float)) ** 2)
        assert history[last] == pytest.approx(exact, rel=1e-10 if dtype == np.float64 else 1e-3)
    assert np.all(np.diff(history) <= 0)
    assert np.all(W >= 0)
    assert history[-1] < 0.2 * history[0]
    slope = -2 * np.nan_to_num(S - W @ W.T) @ W
    size = np.abs(np.nan_to_num(S) @ W).max()
    assert np.all(np.abs(np.where(W > 0, slope, np.minimum(slope, 0))) < 0.02 * size)


def test_all_rows_together_leave_a_minimum_where_it_is():
    W = np.kron(np.eye(3), np.ones((8, 1)))
    S = W @ W.T + np.where(W @ W.T > 0, 0.0, 0.01)
    at = W * np.sqrt(0.99)
    history = np.full(41, np.inf)
    swept = at.copy()
    diagonal = plain_terms(S.diagonal().copy())
    for _ in range(50):
        sweep(MatrixProducts(S, swept), diagonal, swept, 4)
    moved = swept.copy()
    accelerated.descend(*given(S), moved, 1.65, history, 0, 40, (50, 0.0, 0.0))
    np.testing.assert_allclose(moved, swept, atol=1e-6)
