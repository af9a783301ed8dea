"""Data that break descents which only mean well: no diagonal, uneven weights, starts and samples that mislead."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from simdims import SRF, ParameterError, Similarity, simulate
from simdims.solvers import criterion, filled, sample, solve
from simdims.solvers.bcd import _fit_sample
from simdims.solvers.loop import Loop
from simdims.solvers.problem import NO_PENALTY, _pair_problem, as_problem, has_missing, mean_similarity, observed_range
from simdims.solvers.start import random_start, spectral_start

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def noisy(n=60, r=4, seed=0, snr=0.8):
    W = simulate.dirichlet(n, r, random_state=seed)
    return simulate.add_noise(W @ W.T, snr, random_state=seed)


def uneven_weights(n, seed=0, sigma=2.0):
    drawn = np.exp(sigma * np.random.default_rng(seed).normal(size=(n, n)))
    return np.triu(drawn) + np.triu(drawn, 1).T


# --- no diagonal -------------------------------------------------------------------------------------------------


def clusters(seed, n=40):
    labels = np.random.default_rng(seed).integers(0, 4, n)
    S = 0.9 * (labels[:, None] == labels)
    np.fill_diagonal(S, np.nan)
    return S


def as_matrix(S):
    """The similarities as a dense matrix, NaN where a pair or the diagonal is not known."""
    if not isinstance(S, Similarity):
        return S
    dense = S.values.toarray()
    np.fill_diagonal(dense, np.nan)
    return dense


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["matrix", "gaps", "sparse"])
def test_without_a_diagonal_nothing_explodes_and_the_history_is_true(storage, dtype):
    """More dimensions than clusters: columns that one item has for itself, where rounding must not be a loading."""
    for seed in range(15):
        S = clusters(seed).astype(dtype)
        if storage == "gaps":
            S = simulate.mask_pairs(S, 0.9, random_state=seed, keep_diagonal=False)
        if storage == "sparse":
            S = Similarity(sparse.csr_array(np.triu(np.nan_to_num(S), 1)), absent="zero")
        srf = SRF(8, random_state=seed).fit(S)
        assert srf.embedding_.max() <= 10 * np.sqrt(0.9) * (1 + 1e-6)
        residual = np.nan_to_num(as_matrix(S) - srf.embedding_.astype(float) @ srf.embedding_.T.astype(float))
        assert srf.objective_ == pytest.approx(0.5 * np.sum(residual**2), rel=1e-4, abs=1e-6 * srf.history_[0])
        assert srf.history_[-1] == srf.objective_
        assert np.diff(srf.history_).max() <= (1e-6 if dtype == np.float32 else 1e-13) * srf.history_[0]


def test_a_hub_and_its_spokes_stop_at_the_limit_which_is_a_kkt_point():
    """The best fit of a star without a diagonal is at infinity; loadings of such items stay below 10 sqrt(max S)."""
    S = np.zeros((12, 12))
    S[0, 1:] = S[1:, 0] = 1.0
    np.fill_diagonal(S, np.nan)
    srf = SRF(1, random_state=0, tol=1e-12, max_iter=20_000).fit(S)
    assert srf.embedding_.max() == pytest.approx(10.0)
    assert srf.kkt_residual_ < 1e-3
    assert srf.score(S) > 0.99


# --- weights -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_uneven_weights_reach_the_minimum_that_lists_reach(seed):
    S = simulate.mask_pairs(noisy(seed=seed), 0.5, random_state=seed)
    weights = uneven_weights(60, seed)
    known = ~np.isnan(S)
    where = np.nonzero(known)
    listed = Similarity(
        sparse.csr_array((S[known], where), shape=S.shape),
        weights=sparse.csr_array((weights[known], where), shape=S.shape),
        absent="missing",
    )
    dense = SRF(4, random_state=0, max_iter=3000).fit(Similarity(S, weights=weights))
    assert dense.objective_ == pytest.approx(SRF(4, random_state=0, max_iter=3000).fit(listed).objective_, rel=1e-6)


def test_one_huge_weight_does_not_hide_the_rest():
    S, weights = noisy(), np.ones((60, 60))
    weights[0, 1] = weights[1, 0] = 1e3
    srf = SRF(4, random_state=0, max_iter=3000).fit(Similarity(S, weights=weights))
    assert srf.converged_
    assert srf.kkt_residual_ < 1e-3
    assert srf.objective_ < 1.1 * SRF(4, random_state=0).fit(S).objective_ + 1.0


@pytest.mark.parametrize("solver", ["bcd", "admm"])
@pytest.mark.parametrize("weights", [[[0.5, 0.25], [0.25, 0.5]], [[3.0, 7.0], [7.0, 5.0]]])
def test_history_and_objective_share_their_scale(solver, weights):
    values = sparse.csr_array(np.array([[1.0, 0.5], [0.5, 1.0]]))
    for absent in ("zero", "missing"):
        S = Similarity(values, weights=sparse.csr_array(np.array(weights)), absent=absent)
        srf = SRF(1, solver=solver, random_state=0, bounds=None).fit(S)
        expected = 0.5 * np.sum(np.array(weights) * (values.toarray() - srf.reconstruct()) ** 2)
        assert srf.objective_ == pytest.approx(expected)
        assert srf.history_[-1] == pytest.approx(expected)


# --- filling -----------------------------------------------------------------------------------------------------


def test_over_relaxation_is_bounded_by_what_stays_stable():
    few = as_problem(simulate.mask_pairs(noisy(), 0.2, random_state=0))
    over = filled.over_relaxation(few, 10)
    assert np.all(over >= 1)
    assert np.all(over * few.shares <= 1 + 1e-12)
    assert np.all(over * few.shares * (1 + np.sqrt(10 / few.known)) ** 2 <= 2)


# --- convergence -------------------------------------------------------------------------------------------------


def test_the_kkt_residual_sees_a_zero_that_should_grow():
    S = np.array([[1.0, 0.9], [0.9, 1.0]])
    problem = as_problem(S)
    assert criterion.evaluate(problem, np.array([[1.0], [0.0]])).kkt_residual > 0.1


def test_the_kkt_residual_counts_no_slope_that_leads_beyond_the_limit():
    """At its limit a loading of an item without a diagonal may want to grow: that is no step it could take."""
    S = np.zeros((12, 12))
    S[0, 1:] = S[1:, 0] = 1.0
    np.fill_diagonal(S, np.nan)
    W = np.full((12, 1), 0.05)
    W[0] = 10.0  # the limit, 10 sqrt(max S); the hub predicts 0.5 where it should predict 1
    slope = -2 * np.nan_to_num(S - W @ W.T) @ W
    assert slope[0, 0] < -0.5
    pull = 2 * np.linalg.norm(np.nan_to_num(S) @ W)
    slope[0, 0] = 0.0
    assert criterion.evaluate(as_problem(S), W).kkt_residual == pytest.approx(np.linalg.norm(slope) / pull)
    W[0] = 9.9
    slope = -2 * np.nan_to_num(S - W @ W.T) @ W
    pull = 2 * np.linalg.norm(np.nan_to_num(S) @ W)
    assert criterion.evaluate(as_problem(S), W).kkt_residual == pytest.approx(np.linalg.norm(slope) / pull)


class _Astray:
    """Sweeps that claim to lower the objective by one each, and do not."""

    may_rise, extrapolate_from, limits = False, np.inf, np.full(1, np.inf)

    def objective(self, W):
        return 5.0

    def sweep(self, W):
        return -1.0

    def shorten(self):
        return False


def test_convergence_is_not_believed_before_the_objective_is_measured():
    """A sum of changes that has gone astray is put right, and the fit continues."""
    loop = Loop(_Astray(), np.zeros((1, 1)), 4, (2, 1.0, 0.0), None)
    loop.run()
    np.testing.assert_array_equal(loop.descent().history, [5, 4, 5, 5, 5])
    assert not loop.descent().converged


def test_a_sum_of_changes_that_has_lost_its_digits_is_measured_afresh():
    """From a start a million times too large, f falls by 24 digits in one sweep, more than a sum can hold."""
    S = noisy(n=1000, seed=1)
    np.fill_diagonal(S, np.nan)
    srf = SRF(4, init=1e6 * np.random.default_rng(0).uniform(size=(1000, 4)), max_iter=3, tol=0.0).fit(S)
    values = np.nan_to_num(S)
    for t in (1, 2):
        W = SRF(4, init=1e6 * np.random.default_rng(0).uniform(size=(1000, 4)), max_iter=t, tol=0.0).fit(S).embedding_
        exact = 0.5 * np.sum(np.where(np.eye(1000), 0.0, values - W @ W.T) ** 2)
        assert srf.history_[t] == pytest.approx(exact, rel=1e-9)


def test_float32_data_are_fitted_as_closely_as_their_precision_allows():
    W = simulate.dirichlet(150, 5, random_state=0).astype(np.float32)
    srf = SRF(5, random_state=0, tol=1e-6, max_iter=5000).fit(W @ W.T)
    assert srf.objective_ < 1e-8 * srf.history_[0]


def test_the_objective_of_admm_has_no_soft_constraint():
    S = simulate.mask_pairs(noisy(), 0.5, random_state=0)
    srf = SRF(3, solver="admm", bounds=(0.3, 0.4), random_state=0, max_iter=20).fit(S)
    residual = np.nan_to_num(S - srf.reconstruct())
    assert srf.objective_ == pytest.approx(0.5 * np.sum(residual**2))


# --- samples -----------------------------------------------------------------------------------------------------


@pytest.fixture
def large():
    return as_problem(noisy(1000, 3))


def start_from_sample(problem, W):
    return sample.start_from_sample(problem, W, criterion.objective(problem, W), _fit_sample, None)


def test_a_sample_that_does_not_help_is_dropped(large, monkeypatch):
    W = np.random.default_rng(0).uniform(size=(1000, 3))
    before = W.copy()
    monkeypatch.setattr(sample, "fit_sample", lambda problem, items, V, penalty, fit: 100.0 * V)
    assert start_from_sample(large, W) is None
    np.testing.assert_array_equal(W, before)


def test_a_start_that_explains_the_data_is_not_replaced(large):
    good = SRF(3, random_state=0).fit(large.values).embedding_ * 1.05
    assert start_from_sample(large, good.copy()) is None


def test_a_sample_replaces_a_start_that_explains_nothing(large):
    W = random_start(large, 3, np.random.RandomState(0))
    found = start_from_sample(large, W)
    assert found == pytest.approx(criterion.objective(large, W))
    assert found < 0.5 * criterion.objective(large, random_start(large, 3, np.random.RandomState(0)))


def test_runs_from_different_starts_see_different_samples(large, monkeypatch):
    drawn = []
    monkeypatch.setattr(sample, "fit_sample", lambda problem, items, V, penalty, fit: drawn.append(tuple(items)))
    for seed in (0, 1, 0):
        start_from_sample(large, random_start(large, 3, np.random.RandomState(seed)))
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2]


def test_an_error_in_the_fit_of_a_sample_is_not_swallowed(large, monkeypatch):
    def fail(*arguments):
        raise ValueError("something is wrong")

    monkeypatch.setattr(sample, "matrix_problem", fail)
    with pytest.raises(ValueError, match="something is wrong"):
        SRF(3, random_state=0).fit(large.values)


def test_a_sample_of_similarities_too_small_to_fit_is_passed_over():
    S = np.full((1000, 1000), 1e-120)
    S[:3, :3] = 1.0
    assert sample.fit_sample(as_problem(S), np.arange(100, 200), np.ones((100, 2)), NO_PENALTY, _fit_sample) is None
    assert SRF(2, random_state=0).fit(S).score(S) > 0.99


def test_a_sample_leaves_an_unknown_diagonal_out():
    S = noisy(1000, 3).copy()
    np.fill_diagonal(S, np.nan)
    problem = as_problem(S)
    V = sample.fit_sample(problem, np.arange(100), np.full((100, 1), 0.5), NO_PENALTY, _fit_sample)
    start = np.full((100, 1), 0.5)
    settings = {"solver": "bcd", "bounds": None, "max_iter": 60, "inner_iter": 1, "tol": 1e-4, "rho": 3.0}
    expected = solve(as_problem(S[:100, :100]), start, **settings).W
    np.testing.assert_allclose(V, expected, rtol=0.02)


# --- problems and starts -----------------------------------------------------------------------------------------


def test_the_zeros_that_a_background_stands_for_count():
    values = sparse.csr_array(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    values.eliminate_zeros()
    problem = as_problem(values, None, 0.5)
    assert mean_similarity(problem) == pytest.approx((3 * 1.0 + 2 * 0.5) / (3 + 2 + 4 * 0.5))
    assert observed_range(problem) == (0.0, 1.0)
    assert not has_missing(problem)
    held_out = values.copy()
    held_out.data = np.where(held_out.data == 0.5, np.nan, held_out.data)
    assert has_missing(as_problem(held_out, None, 0.5))


def test_weights_of_missing_pairs_do_not_scale_the_others():
    S = np.array([[1.0, np.nan, 0.2], [np.nan, 1.0, 0.3], [0.2, 0.3, 1.0]])
    weights = np.array([[2.0, 99.0, 1.0], [99.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    assert as_problem(S, weights).scale == 2.0


def test_the_spectral_start_takes_the_heavier_part_and_ignores_pairs_of_weight_zero():
    rng = np.random.RandomState(0)
    S = np.kron(np.eye(2), np.ones((4, 4))) * 0.5 + 0.4
    S[:3, :3] += 0.3
    W = spectral_start(as_problem(S), 2, rng)
    vectors = np.linalg.eigh(S)[1]
    second = vectors[:, -2]
    parts = np.maximum(second, 0), np.maximum(-second, 0)
    heavier = max(parts, key=np.linalg.norm)
    assert np.corrcoef(W[:, 1], heavier)[0, 1] == pytest.approx(1)
    poisoned, weights = S.copy(), np.ones_like(S)
    poisoned[0, 7] = poisoned[7, 0] = 50.0
    weights[0, 7] = weights[7, 0] = 0.0
    left_out = S.copy()
    left_out[0, 7] = left_out[7, 0] = np.nan
    np.testing.assert_allclose(
        spectral_start(as_problem(poisoned, weights), 2, np.random.RandomState(0)),
        spectral_start(as_problem(left_out), 2, np.random.RandomState(0)),
    )


def test_the_spectral_start_of_nothing_is_no_crash():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        np.testing.assert_array_equal(SRF(1, init="spectral").fit(np.zeros((30, 30))).embedding_, 0)


@pytest.mark.parametrize("size", [7e-31, 7e-11, 0.7])
def test_the_spectral_start_of_equal_eigenvalues_is_no_crash(size):
    S = np.full((26, 26), size)
    np.fill_diagonal(S, np.nan)
    assert np.isfinite(SRF(12, init="spectral", random_state=0, max_iter=5).fit(S).embedding_).all()


@pytest.mark.parametrize(
    ("dtype", "size", "rule"),
    [
        (np.float32, 1e15, "small"),
        (np.float32, 1e-25, "large"),
        (np.float64, 1e80, "small"),
        (np.float64, 1e-170, "large"),
    ],
)
def test_factors_whose_products_leave_the_range_of_floats_are_refused(dtype, size, rule):
    F = (size * np.random.default_rng(0).random((20, 4))).astype(dtype)
    with pytest.raises(ValueError, match=f"factors must be {rule} enough"):
        SRF(2).fit(Similarity.from_factors(F))


# --- the estimator between fits ----------------------------------------------------------------------------------


def test_a_refit_that_fails_leaves_the_fitted_estimator_whole():
    srf = SRF(3, random_state=0).fit(noisy(60))
    srf.set_params(bounds=(0, 1))
    with pytest.raises(ValueError, match="bounds"):
        srf.fit(noisy(30))
    assert srf.n_features_in_ == len(srf.embedding_) == 60
    with pytest.raises(ValueError, match="expecting 60 features"):
        srf.transform(noisy(30)[:2])


def test_names_in_another_order_are_refused_everywhere():
    names = [f"item {i}" for i in range(60)]
    srf = SRF(3, random_state=0).fit(Similarity(noisy(), labels=names))
    other = Similarity(noisy(), labels=names[::-1])
    for use in (srf.score, srf.transform):
        with pytest.raises(ValueError, match=r"S must .*'item 59' instead of 'item 0'"):
            use(other)
    with pytest.raises(ValueError, match="feature names"):
        srf.score(pd.DataFrame(noisy(), index=names[::-1], columns=names[::-1]))
    numbers = list(range(100, 160))
    srf.fit(pd.DataFrame(noisy(), index=numbers, columns=numbers))
    with pytest.raises(ValueError, match="got '159' instead of '100'"):
        srf.transform(pd.DataFrame(noisy(), columns=numbers[::-1]))


def test_transform_leaves_out_pairs_of_weight_zero_and_refuses_other_weights():
    srf = SRF(3, random_state=0).fit(noisy())
    rows, weights = noisy().copy(), np.ones((60, 60))
    weights[0, 5] = weights[5, 0] = 0.0
    poisoned = rows.copy()
    poisoned[0, 5] = poisoned[5, 0] = 9.0
    np.testing.assert_allclose(
        srf.transform(Similarity(poisoned, weights=weights)), srf.transform(Similarity(rows, weights=weights))
    )
    with pytest.raises(ValueError, match=r"weights .* got 1 to 3"):
        srf.transform(Similarity(rows, weights=np.where(np.eye(60), 3.0, 1.0)))


def test_bounds_are_refused_where_only_the_diagonal_is_missing():
    S = noisy().copy()
    np.fill_diagonal(S, np.nan)
    weights = np.where(np.eye(60), 1.0, 2.0)
    weights[0, 1] = weights[1, 0] = 1.0
    with pytest.raises(ParameterError, match="bounds must be None unless"):
        SRF(2, bounds=(0, 1)).fit(Similarity(S, weights=weights))


def test_pairs_may_be_listed_in_any_order():
    """Some versions of scipy leave the entries of a row as they came; the kernels look them up in order."""
    rng = np.random.default_rng(0)
    dense = np.triu(rng.random((12, 12)) * (rng.random((12, 12)) < 0.5), 1)
    ordered = sparse.csr_array(dense + dense.T + np.eye(12))
    rows = [slice(*ends) for ends in zip(ordered.indptr[:-1], ordered.indptr[1:], strict=True)]
    backwards = np.concatenate([np.arange(ordered.nnz)[row][::-1] for row in rows])
    parts = (ordered.data[backwards], ordered.indices[backwards], ordered.indptr)
    disordered = sparse.csr_array(parts, shape=ordered.shape)
    problems = [_pair_problem(one, one.copy(), 0.1) for one in (ordered, disordered)]
    for name in ("starts", "partners", "values", "weights", "diagonal"):
        np.testing.assert_array_equal(*(getattr(problem, name) for problem in problems))
