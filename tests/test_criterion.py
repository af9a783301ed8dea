"""The objective, its gradient and its scale against the definition, for every storage."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from simdims.solvers import criterion
from simdims.solvers.problem import as_problem, has_missing, matrix_of, mean_similarity, observed_range, pairs_of


def definition(S, omega, W):
    """f(W) by the double sum, NaN for unknown pairs."""
    total = 0.0
    for i in range(len(S)):
        for j in range(len(S)):
            if not np.isnan(S[i, j]):
                total += 0.5 * omega[i, j] * (S[i, j] - W[i] @ W[j]) ** 2
    return total


def numeric_gradient(function, W, h=1e-6):
    slope = np.empty_like(W)
    for index in np.ndindex(W.shape):
        up, down = W.copy(), W.copy()
        up[index] += h
        down[index] -= h
        slope[index] = (function(up) - function(down)) / (2 * h)
    return slope


def symmetric(rng, n, low=0.0, high=1.0):
    upper = np.triu(rng.uniform(low, high, size=(n, n)))
    return upper + np.triu(upper, 1).T


@pytest.fixture
def case():
    """A matrix with missing pairs, one missing diagonal entry, counts as weights, and an embedding."""
    rng = np.random.default_rng(3)
    S, omega = symmetric(rng, 9), np.round(symmetric(rng, 9, 0, 5))
    hidden = symmetric(rng, 9) < 0.3
    S[hidden] = np.nan
    S[4, 4] = np.nan
    return S, omega, rng.uniform(size=(9, 3))


def test_the_dense_objective_is_its_definition(case):
    S, omega, W = case
    problem = as_problem(S, omega)
    assert criterion.objective(problem, W) * problem.scale == pytest.approx(definition(S, omega, W))
    assert criterion.size(problem) * problem.scale == pytest.approx(definition(S, omega, np.zeros((9, 1))))


@pytest.mark.parametrize("background", [0.0, 0.03, 1.0])
def test_the_sparse_objective_is_the_dense_one_with_the_background_as_weight(case, background):
    S, omega, W = case
    listed = ~np.isnan(S)
    values = sparse.csr_array((S[listed], np.nonzero(listed)), shape=S.shape)
    weights = sparse.csr_array((omega[listed], np.nonzero(listed)), shape=S.shape)
    problem = as_problem(values, weights, background)
    full = np.where(listed, S, 0.0)
    full_weights = np.where(listed, omega, background)
    full_weights[np.eye(9, dtype=bool) & ~listed] = 0.0  # not stored: unobserved, whatever the background
    assert criterion.objective(problem, W) * problem.scale == pytest.approx(definition(full, full_weights, W))
    dense = matrix_of(problem)
    assert criterion.objective(dense, W) * dense.scale == pytest.approx(definition(full, full_weights, W))


@pytest.mark.parametrize("bounds", [None, (0.4, 0.6)])
@pytest.mark.parametrize("storage", ["matrix", "pairs", "background"])
def test_the_gradient_is_that_of_the_objective(case, storage, bounds):
    S, omega, W = case
    problem = as_problem(S, omega)
    if storage != "matrix":
        if bounds is not None:
            pytest.skip("bounds need a dense matrix")
        problem = pairs_of(problem)
    if storage == "background":
        problem = replace(problem, background=0.2)
    value, slope, pull = criterion.gradient(problem, W, bounds)
    assert value == pytest.approx(criterion.objective(problem, W, bounds))
    np.testing.assert_allclose(
        slope, numeric_gradient(lambda V: criterion.objective(problem, V, bounds), W), rtol=1e-5, atol=1e-6
    )
    known = np.where(np.isnan(S) | (omega == 0), 0.0, omega * np.nan_to_num(S)) / problem.scale
    np.testing.assert_allclose(pull, known @ W)


def test_bounds_add_the_squared_distance_of_missing_pairs_and_of_nothing_else(case):
    S, omega, W = case
    omega = np.maximum(omega, 1)
    problem = as_problem(S, omega)
    predicted = W @ W.T
    beyond = predicted - np.clip(predicted, 0.4, 0.6)
    beyond[~np.isnan(S)] = 0.0
    np.fill_diagonal(beyond, 0.0)
    expected = definition(S, omega / problem.scale, W) + 0.5 * np.sum(beyond**2)
    assert criterion.objective(problem, W, (0.4, 0.6)) == pytest.approx(expected)


def test_mean_range_and_missingness_describe_the_known_pairs(case):
    S, omega, _ = case
    known = ~np.isnan(S) & (omega > 0)
    for problem in (as_problem(S, omega), pairs_of(as_problem(S, omega))):
        assert mean_similarity(problem) == pytest.approx(np.sum((omega * S)[known]) / omega[known].sum())
        assert observed_range(problem) == (S[known].min(), S[known].max())
        assert has_missing(problem)


def test_a_matrix_that_misses_only_its_diagonal_is_complete():
    rng = np.random.default_rng(0)
    S = symmetric(rng, 6, 0.5, 1.0)
    np.fill_diagonal(S, np.nan)
    S[2, 2] = 0.9
    problem = as_problem(S)
    W = rng.uniform(size=(6, 2))
    assert problem.complete
    assert has_missing(problem)
    assert observed_range(problem) == (np.nanmin(S), np.nanmax(S))
    assert mean_similarity(problem) == pytest.approx(np.nanmean(S))
    assert criterion.objective(problem, W) == pytest.approx(definition(S, np.ones((6, 6)), W))
