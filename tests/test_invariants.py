"""What holds for every storage, solver and precision: the same problem has the same answer."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, minimize

from simdims import SRF, Similarity, simulate
from simdims.solvers import filled

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_ITEMS, N_COMPONENTS = 48, 4


def objective(S, weights, W):
    """f(W) by its definition; NaN is weight zero."""
    residual = np.nan_to_num(S) - W @ W.T
    return 0.5 * np.sum(np.where(np.isnan(S), 0.0, weights) * residual**2)


def noisy(seed=0, n=N_ITEMS, r=N_COMPONENTS, snr=0.8):
    W = simulate.dirichlet(n, r, alpha=0.5, random_state=seed)
    return simulate.add_noise(W @ W.T, snr, random_state=seed)


def masked(seed=0, observed=0.6):
    return simulate.mask_pairs(noisy(seed), observed, random_state=seed)


def counts(n=N_ITEMS, largest=50):
    drawn = np.triu(np.random.default_rng(0).integers(1, largest + 1, size=(n, n)))
    return (drawn + np.triu(drawn, 1).T).astype(float)


def listed(S, absent, weights=None):
    """The known pairs of S as a sparse Similarity."""
    known = ~np.isnan(S)
    where = np.nonzero(known)
    values = sparse.csr_array((S[known], where), shape=S.shape)
    if weights is not None:
        weights = sparse.csr_array((weights[known], where), shape=S.shape)
    return Similarity(values, weights=weights, absent=absent)


def start(seed=0, n=N_ITEMS, r=N_COMPONENTS, scale=0.5):
    return scale * np.random.default_rng(seed).uniform(size=(n, r))


def fit(S, solver="bcd", **parameters):
    settings = {"init": start(), "tol": 1e-10, "max_iter": 5000, **parameters}
    return SRF(N_COMPONENTS, solver=solver, **settings).fit(S)


ABSENT_HALF = np.where(masked(1) > 0.25, masked(1), np.nan)  # what is left out could as well be zero
np.fill_diagonal(ABSENT_HALF, np.diag(noisy(1)))

STORAGES = {
    "complete": lambda: Similarity(noisy()),
    "complete, diagonal missing": lambda: Similarity(np.where(np.eye(N_ITEMS), np.nan, noisy())),
    "masked, filled": lambda: Similarity(masked(observed=0.9)),
    "masked, listed": lambda: Similarity(masked(observed=0.4)),
    "counts as weights": lambda: Similarity(masked(observed=0.9), weights=counts()),
    "few counts as weights": lambda: Similarity(masked(observed=0.3), weights=counts()),
    "sparse, missing": lambda: listed(masked(), "missing"),
    "sparse, zero": lambda: listed(ABSENT_HALF, "zero"),
    "sparse, 0.03": lambda: listed(ABSENT_HALF, 0.03),
    "sparse, counts, 0.5": lambda: listed(ABSENT_HALF, 0.5, counts()),
}

storages = pytest.mark.parametrize("storage", STORAGES)
solvers = pytest.mark.parametrize("solver", ["bcd", "admm"])


def as_dense(S):
    """Values and weights of any Similarity as dense arrays."""
    if not sparse.issparse(S.values):
        weights = np.ones(S.values.shape) if S.weights is None else S.weights
        return S.values, weights
    stored = S.values.tocoo()
    shape = S.values.shape
    values = np.zeros(shape) if S.absent_weight else np.full(shape, np.nan)
    weights = np.full(shape, S.absent_weight)
    np.fill_diagonal(weights, 0.0)
    values[stored.row, stored.col] = stored.data
    weights[stored.row, stored.col] = 1.0 if S.weights is None else S.weights.tocoo().data
    return values, weights


def dense_twin(S):
    values, weights = as_dense(S)
    return Similarity(values, weights=weights)


def scale_of_gradient(values, weights, W):
    known = np.where(np.isnan(values), 0.0, weights)
    return 2 * np.linalg.norm((known * np.nan_to_num(values)) @ W)


def gradient(values, weights, W):
    residual = np.where(np.isnan(values), 0.0, weights * (np.nan_to_num(values) - W @ W.T))
    return -2 * residual @ W


#: What rounding may add to the objective in one sweep, and to its record, as a part of f(0).
ROUNDING = {np.float64: 1e-13, np.float32: 1e-6}


def large(share=1.0):
    """Enough items for the solvers that work block by block, with a second thread."""
    return simulate.mask_pairs(noisy(n=1000, r=5, snr=0.9), share, random_state=0)


LARGE = {
    "complete": lambda: Similarity(large()),
    "complete, diagonal missing": lambda: Similarity(np.where(np.eye(1000), np.nan, large())),
    "gaps": lambda: Similarity(large(0.7)),
    "few pairs": lambda: Similarity(large(0.1)),
    "weights": lambda: Similarity(large(0.7), weights=counts(1000, 3)),
    "factors": lambda: Similarity.from_factors(np.random.default_rng(0).uniform(size=(1000, 8)) ** 3),
}


def with_dtype(S, dtype):
    if S.factors is not None:
        return Similarity.from_factors(S.factors.astype(dtype))
    return Similarity(S.values.astype(dtype), weights=S.weights, absent=S.absent)


def objectives_after_every_sweep(S, n_sweeps, n_components, **parameters):
    """The objective of W after 1, 2, ... sweeps, by its definition in float64, and what the longest fit recorded."""
    if S.factors is None:
        values, weights = as_dense(S)
    else:
        F = S.factors.astype(float)
        values, weights = F @ F.T, np.ones((len(F), len(F)))
    settings = {"tol": 0.0, "random_state": 0, **parameters}
    fits = [SRF(n_components, max_iter=t, **settings).fit(S) for t in range(1, n_sweeps + 1)]
    computed = [objective(values.astype(float), weights, srf.embedding_.astype(float)) for srf in fits]
    size = objective(values.astype(float), weights, np.zeros((len(values), 1)))
    return np.array(computed) / size, fits[-1].history_[1:] / size, fits[-1].n_iter_


def check_descent(S, dtype, n_sweeps, n_components, **parameters):
    computed, recorded, n_done = objectives_after_every_sweep(
        with_dtype(S, dtype), n_sweeps, n_components, **parameters
    )
    assert n_done > n_sweeps / 2  # or there was little to see
    assert computed[-1] < 0.5
    np.testing.assert_array_less(np.diff(computed), ROUNDING[dtype])
    np.testing.assert_allclose(recorded, computed[:n_done], rtol=0, atol=ROUNDING[dtype])


@pytest.mark.parametrize("dtype", ROUNDING)
@storages
def test_no_sweep_raises_the_objective_and_the_history_is_the_truth(storage, dtype):
    check_descent(STORAGES[storage](), dtype, 60, N_COMPONENTS, init=start())


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("storage", LARGE)
def test_no_sweep_over_many_items_raises_the_objective_and_the_history_is_the_truth(storage, dtype):
    check_descent(LARGE[storage](), dtype, 8, 5)


@pytest.mark.parametrize("n_items", [N_ITEMS, 1000])
def test_a_sweep_that_goes_too_far_is_undone(n_items, monkeypatch):
    """Over-relaxed far beyond what is stable, sweeps on the filled matrix rise; what is kept never does."""
    monkeypatch.setattr(filled, "over_relaxation", lambda problem, n_components: np.full(problem.n_items, 30.0))
    S = simulate.mask_pairs(noisy(n=n_items), 0.7, random_state=0)
    computed, recorded, _ = objectives_after_every_sweep(
        Similarity(S), 12, N_COMPONENTS, bounds=(-10.0, 10.0), init=start(n=n_items)
    )
    np.testing.assert_array_less(np.diff(computed), ROUNDING[np.float64])
    np.testing.assert_allclose(recorded, computed, rtol=0, atol=ROUNDING[np.float64])
    assert np.any(np.diff(recorded) == 0)  # a sweep was undone
    assert recorded[-1] < 0.9 * recorded[0]


@pytest.mark.parametrize("noise", [1e-5, 1e-4])
@pytest.mark.parametrize("kind", ["complete", "diagonal missing", "gaps", "weights", "bounds"])
def test_float32_data_with_hardly_any_noise_converge(kind, noise):
    """Rounding undoes what the last sweeps gain; that is the end, not a reason to sweep on."""
    rng = np.random.default_rng(60)
    W = rng.uniform(size=(60, 3)) ** 2 + 0.2
    S = simulate.mask_pairs(W @ W.T, 1.0 if kind in ("complete", "diagonal missing") else 0.8, random_state=0)
    E = rng.standard_normal(S.shape)
    S = (S * (1 + noise * (E + E.T))).astype(np.float32)
    if kind == "diagonal missing":
        np.fill_diagonal(S, np.nan)
    weights = counts(60, 3) if kind == "weights" else None
    bounds = (0.0, 100.0) if kind == "bounds" else None
    srf = SRF(3, bounds=bounds, random_state=0, max_iter=1000).fit(Similarity(S, weights=weights))
    assert srf.converged_
    assert srf.n_iter_ < 300
    assert srf.score(S) > 1 - 1e-6


@solvers
@storages
def test_the_objective_is_its_definition_and_ends_the_history(storage, solver):
    S = STORAGES[storage]()
    srf = fit(S, solver, max_iter=30, bounds=None)
    expected = objective(*as_dense(S), srf.embedding_)
    assert srf.objective_ == pytest.approx(expected, rel=1e-9)
    assert srf.history_[-1] == pytest.approx(expected, rel=1e-9)
    assert srf.history_[0] == pytest.approx(objective(*as_dense(S), start()), rel=1e-9)
    assert len(srf.history_) == srf.n_iter_ + 1


@storages
def test_a_converged_fit_is_a_kkt_point_that_lbfgs_cannot_improve(storage):
    S = STORAGES[storage]()
    values, weights = as_dense(S)
    srf = SRF(N_COMPONENTS, init=start(), max_iter=5000).fit(S)  # the default tolerance
    W = srf.embedding_
    assert srf.converged_
    slope = gradient(values, weights, W)
    projected = np.where(W > 0, slope, np.minimum(slope, 0))
    residual = np.linalg.norm(projected) / scale_of_gradient(values, weights, W)
    assert srf.kkt_residual_ == pytest.approx(residual, rel=1e-6, abs=1e-9)
    assert residual < 1e-3
    polished = minimize(
        lambda x: objective(values, weights, x.reshape(W.shape)),
        W.ravel(),
        jac=lambda x: gradient(values, weights, x.reshape(W.shape)).ravel(),
        method="L-BFGS-B",
        bounds=[(0, None)] * W.size,
        options={"maxiter": 2000},
    )
    assert polished.fun > (1 - 1e-3) * srf.objective_


@storages
def test_bcd_and_admm_agree(storage):
    S = STORAGES[storage]()
    bcd = fit(S)
    admm = fit(S, "admm", bounds=None, tol=1e-9, max_iter=4000)
    assert admm.objective_ == pytest.approx(bcd.objective_, rel=1e-3)


NEARLY_ONES = np.ones((N_ITEMS, N_ITEMS))
NEARLY_ONES[0, 1] = NEARLY_ONES[1, 0] = 1 - 1e-9  # not uniform: filled, with all pairs known

TWICE = {
    "complete, listed": (noisy(), listed(noisy(), "missing")),
    "complete, weighted": (noisy(), Similarity(noisy(), weights=NEARLY_ONES)),
    "gaps, listed": (masked(), listed(masked(), "missing")),
    "gaps, weights of zero and one": (masked(), Similarity(noisy(), weights=np.where(np.isnan(masked()), 0.0, 1.0))),
    **{f"absent {absent}": (dense_twin(listed(ABSENT_HALF, absent)), listed(ABSENT_HALF, absent))
       for absent in ("missing", 0.03, "zero")},
}  # fmt: skip


@solvers
@pytest.mark.parametrize("pair", TWICE)
def test_the_same_problem_has_the_same_answer_in_two_storages(pair, solver):
    one, other = (fit(S, solver, bounds=None) for S in TWICE[pair])
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)
    np.testing.assert_allclose(other.reconstruct(), one.reconstruct(), atol=1e-3)


@pytest.mark.parametrize("absent", [0.03, "zero"])
@solvers
def test_listed_pairs_of_weight_zero_are_neither_values_nor_zeros(solver, absent):
    rng = np.random.default_rng(5)
    held_out = np.triu(rng.random(ABSENT_HALF.shape) < 0.2, 1) & ~np.isnan(ABSENT_HALF)
    held_out |= held_out.T
    weights = np.where(held_out, 0.0, 1.0)
    by_weight = listed(ABSENT_HALF, absent, weights)
    poisoned = np.where(held_out, 0.999, ABSENT_HALF)
    expected = pytest.approx(fit(by_weight, solver).objective_, rel=1e-9)
    assert fit(listed(poisoned, absent, weights), solver).objective_ == expected
    as_nan = sparse.csr_array(by_weight.values)
    as_nan.data = np.where(by_weight.weights.data == 0, np.nan, as_nan.data)
    assert fit(Similarity(as_nan, absent=absent), solver).objective_ == expected
    dense = fit(dense_twin(by_weight), solver, bounds=None)
    assert fit(by_weight, solver, bounds=None).objective_ == pytest.approx(dense.objective_, rel=1e-6)


@solvers
@pytest.mark.parametrize("factor", [0.01, 7.0])
def test_scaling_the_weights_scales_the_objective(solver, factor):
    S = masked(observed=0.9)
    once, scaled = (fit(Similarity(S, weights=c * counts()), solver) for c in (1.0, factor))
    assert scaled.objective_ == pytest.approx(factor * once.objective_, rel=1e-6)
    np.testing.assert_allclose(scaled.history_, factor * once.history_, rtol=1e-6)
    np.testing.assert_allclose(scaled.embedding_, once.embedding_, atol=1e-5)


@solvers
@storages
def test_scaling_similarities_scales_the_embedding_by_the_root(storage, solver):
    S = STORAGES[storage]()
    scaled = Similarity(9.0 * S.values, weights=S.weights, absent=S.absent)
    once = fit(S, solver, max_iter=50)
    thrice = fit(scaled, solver, init=3.0 * start(), max_iter=50)
    np.testing.assert_allclose(thrice.embedding_, 3.0 * once.embedding_, atol=1e-5)


@solvers
@storages
def test_permuting_items_permutes_rows(storage, solver):
    S = STORAGES[storage]()
    order = np.random.default_rng(1).permutation(N_ITEMS)
    weights = None if S.weights is None else S.weights[order][:, order]
    permuted = Similarity(S.values[order][:, order], weights=weights, absent=S.absent)
    here = fit(S, solver)
    there = fit(permuted, solver, init=start()[order])
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-3)
    if storage == "complete":
        np.testing.assert_allclose(there.reconstruct(), here.reconstruct()[order][:, order], atol=2e-2)


@pytest.mark.parametrize("solver", ["bcd", "admm"])
@storages
def test_float32_in_is_float32_out_and_close_to_float64(storage, solver):
    S = STORAGES[storage]()
    single = Similarity(S.values.astype(np.float32), weights=S.weights, absent=S.absent)
    wide, narrow = fit(S, solver, tol=1e-5), fit(single, solver, tol=1e-5)
    assert wide.embedding_.dtype == np.float64
    assert narrow.embedding_.dtype == np.float32
    assert narrow.objective_ == pytest.approx(wide.objective_, rel=1e-3)


@solvers
@storages
def test_input_is_never_changed(storage, solver):
    S = STORAGES[storage]()
    W0 = start()
    values, weights = (x.copy() if x is not None else None for x in (S.values, S.weights))
    fit(S, solver, init=W0, max_iter=5)
    np.testing.assert_array_equal(W0, start())
    for now, then in ((S.values, values), (S.weights, weights)):
        if now is not None:
            np.testing.assert_array_equal(getattr(now, "data", now), getattr(then, "data", then))


@solvers
def test_the_same_seed_gives_the_same_result(solver):
    one, two = (SRF(N_COMPONENTS, solver=solver, random_state=3, max_iter=5).fit(masked()) for _ in range(2))
    np.testing.assert_allclose(one.embedding_, two.embedding_, atol=1e-9)
    other = SRF(N_COMPONENTS, solver=solver, random_state=4, max_iter=5).fit(masked())
    assert np.abs(one.embedding_ - other.embedding_).max() > 1e-3


def test_one_dimension_of_a_positive_matrix_is_the_perron_vector():
    S = np.random.default_rng(0).uniform(0.1, 1, size=(40, 40))
    S = (S + S.T) / 2
    eigenvalues, eigenvectors = np.linalg.eigh(S)
    expected = np.sqrt(eigenvalues[-1]) * np.abs(eigenvectors[:, -1])
    for solver in ("bcd", "admm"):
        W = SRF(1, solver=solver, random_state=0, tol=1e-12, max_iter=1000).fit(S).embedding_
        np.testing.assert_allclose(W[:, 0], expected, rtol=1e-4)


def matched_correlation(W, truth):
    r = W.shape[1]
    correlations = np.corrcoef(W.T, truth.T)[:r, r:]
    return correlations[linear_sum_assignment(-correlations)].mean()


@pytest.mark.parametrize(("observed", "least"), [(1.0, 0.99), (0.3, 0.95)])
@pytest.mark.parametrize("seed", range(3))
def test_ground_truth_is_recovered_from_noiseless_similarities(observed, least, seed):
    truth = simulate.dirichlet(200, 5, alpha=0.3, random_state=seed)
    S = simulate.mask_pairs(truth @ truth.T, observed, random_state=seed)
    fits = [SRF(5, random_state=k, max_iter=2000).fit(S) for k in range(3)]
    best = min(fits, key=lambda srf: srf.objective_)
    assert matched_correlation(best.embedding_, truth) > least


def test_the_start_from_a_sample_is_taken_for_large_problems_and_only_where_it_helps():
    """Its objective is the second entry of the history; a start that already explains the data is left alone."""
    W = simulate.dirichlet(1000, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.9, random_state=0)
    sampled = SRF(3, random_state=0, max_iter=200).fit(S)
    assert sampled.history_[1] < 1.5 * sampled.objective_ < 0.2 * sampled.history_[0]
    again = SRF(3, init=sampled.embedding_, max_iter=200).fit(S)
    assert again.history_[0] == pytest.approx(sampled.objective_)
    assert again.objective_ <= again.history_[0]
    reference = SRF(3, random_state=0, solver="admm", max_iter=100, tol=1e-8).fit(S)
    assert sampled.objective_ == pytest.approx(reference.objective_, rel=1e-3)
