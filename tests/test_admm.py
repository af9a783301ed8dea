"""ADMM against the properties that the paper proves of it."""

import numpy as np
import pytest

from simdims import SRF, simulate
from simdims.solvers import admm
from simdims.solvers.problem import as_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WIDE = (-np.inf, np.inf)


def data(seed=0, observed=0.6, n=40, r=4):
    W = simulate.dirichlet(n, r, alpha=0.5, random_state=seed)
    S = simulate.add_noise(W @ W.T, 0.8, random_state=seed)
    rng = np.random.default_rng(seed)
    return simulate.mask_pairs(S, observed, random_state=seed), 0.6 * rng.uniform(size=(n, r))


def weights_of(S, seed=0):
    drawn = np.triu(np.random.default_rng(seed).uniform(0.1, 1, size=S.shape))
    return drawn + np.triu(drawn, 1).T


def augmented_lagrangian(S, omega, state):
    """L_rho(W, Z, dual) by its definition, for feasible W and Z."""
    known = np.where(np.isnan(S), 0.0, omega)
    gap = state.Z - state.W @ state.W.T
    misfit = 0.5 * np.sum(known * (np.nan_to_num(S) - state.Z) ** 2)
    return misfit + np.sum(state.dual * gap) + 0.5 * state.rho * np.sum(gap**2)


@pytest.mark.parametrize("rho", [np.sqrt(2), 3.0, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_augmented_lagrangian_never_rises_from_the_second_iteration_on(rho, weighted, seed):
    S, W = data(seed)
    omega = weights_of(S) if weighted else np.ones(S.shape)
    problem = as_problem(S, omega if weighted else None)
    omega = omega / problem.scale
    state = admm.initial_state(problem, W, rho=rho)
    values = []
    for _ in range(60):
        admm.iterate(problem, state, inner_iter=5, bounds=None)
        values.append(augmented_lagrangian(S, omega, state))
    assert np.all(np.diff(values) <= 1e-10 * abs(values[0]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_dual_is_the_weighted_residual_of_z(weighted):
    S, W = data()
    problem = as_problem(S, weights_of(S) if weighted else None)
    state = admm.initial_state(problem, W, rho=3.0)
    known = np.where(np.isnan(S), 0.0, weights_of(S) / problem.scale if weighted else 1.0)
    for _ in range(4):
        admm.iterate(problem, state, inner_iter=3, bounds=None)
        np.testing.assert_allclose(state.dual, known * (np.nan_to_num(S) - state.Z), atol=1e-10)


@pytest.mark.parametrize("bounds", [None, (0.1, 0.5)])
def test_the_z_update_is_its_closed_form(bounds):
    S, W = data()
    problem = as_problem(S)
    rho = 3.0
    state = admm.initial_state(problem, W, rho=rho)
    mask = ~np.isnan(S)
    for _ in range(3):
        dual = state.dual.copy()
        objective, gap, size = admm.iterate(problem, state, inner_iter=2, bounds=bounds)
        R = state.W @ state.W.T
        Z = (np.where(mask, S, 0.0) + rho * R - dual) / (rho + mask)
        Z = np.clip(Z, *(bounds or WIDE))
        np.testing.assert_allclose(state.Z, Z, atol=1e-10)
        np.testing.assert_allclose(state.dual, dual + rho * (Z - R), atol=1e-10)
        assert objective == pytest.approx(0.5 * np.nansum((S - R) ** 2))
        assert gap == pytest.approx(np.linalg.norm(Z - R))
        assert size == pytest.approx(np.linalg.norm(Z))


def test_the_w_update_is_sbsum_sweeps_on_the_target():
    """One pass over the entries, row by row, each entry set to the minimiser of its scalar majorizer."""
    S, W = data(n=12, r=3)
    problem = as_problem(S)
    state = admm.initial_state(problem, W.copy(), rho=3.0)
    target = state.target.copy()
    expected = W.copy()
    for _ in range(2):
        for i in range(12):
            for k in range(3):
                expected[i, k] = scalar_sbsum(target, expected, i, k)
    admm.iterate(problem, state, inner_iter=2, bounds=None)
    np.testing.assert_allclose(state.W, expected, atol=1e-7)


def scalar_sbsum(T, W, i, k):
    """The paper's closed form for entry (i, k)."""
    x = W[i, k]
    a, b = 4.0, 12.0 * x
    c = 4 * (W[i] @ W[i] - T[i, i] + W[:, k] @ W[:, k] + x * x)
    d = 4 * ((W @ W.T - T) @ W)[i, k]
    if c <= b**2 / (3 * a):
        return max(np.cbrt(b**3 / (27 * a**3) - d / a), 0.0)
    p, q = (3 * a * c - b**2) / (3 * a**2), (9 * a * b * c - 27 * a**2 * d - 2 * b**3) / (27 * a**3)
    root = np.sqrt(q**2 / 4 + p**3 / 27)
    return max(np.cbrt(q / 2 - root) + np.cbrt(q / 2 + root), 0.0)


def test_bounds_keep_z_inside():
    S, W = data()
    problem = as_problem(S)
    state = admm.initial_state(problem, W, rho=3.0)
    for _ in range(20):
        admm.iterate(problem, state, inner_iter=5, bounds=(0.2, 0.4))
        assert state.Z.min() >= 0.2 - 1e-12
        assert state.Z.max() <= 0.4 + 1e-12


def test_it_stops_when_z_and_w_agree_and_not_before():
    S, W = data()
    srf = SRF(4, solver="admm", init=W, tol=1e-3, max_iter=500).fit(S)
    assert srf.converged_
    problem = as_problem(S)
    state = admm.initial_state(problem, W.copy(), rho=3.0)
    bounds = (np.nanmin(S), np.nanmax(S))
    met = []
    previous = srf.history_[0]
    for _ in range(srf.n_iter_):
        objective, gap, size = admm.iterate(problem, state, inner_iter=10, bounds=bounds)
        met.append(gap <= 1e-3 * size and abs(previous - objective) <= 1e-3 * previous)
        previous = objective
    assert met == [False] * (srf.n_iter_ - 1) + [True]


def test_with_nothing_missing_and_no_bounds_it_is_plain_sweeps_on_s():
    S, W = data(observed=1.0)
    srf = SRF(4, solver="admm", init=W, max_iter=7, inner_iter=3, tol=0.0).fit(S)
    expected = W.copy()
    for _ in range(21):
        for i in range(len(S)):
            for k in range(4):
                expected[i, k] = scalar_sbsum(S, expected, i, k)
    order = np.argsort(-np.sum(expected**2, axis=0))
    np.testing.assert_allclose(srf.embedding_, expected[:, order], atol=1e-6)
    assert srf.n_iter_ == 7


def test_the_second_start_takes_the_data_with_zeros_for_what_is_missing():
    S, W = data()
    problem = as_problem(S)
    np.testing.assert_array_equal(admm.initial_state(problem, W, rho=3.0, start="data").Z, np.nan_to_num(S))
    np.testing.assert_allclose(admm.initial_state(problem, W, rho=3.0).Z, W @ W.T)
    with pytest.raises(ValueError, match=r"start .*'zero'"):
        admm.initial_state(problem, W, rho=3.0, start="zero")
