"""The estimator: what it promises to scikit-learn, to users, and to those who make mistakes."""

import itertools
import logging
import os
import pickle
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from scipy.optimize import nnls
from similarity_examples import as_csr, similarities
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from simdims import SRF, Similarity, fit_consensus, metrics, simulate
from simdims.solvers import as_problem, random_start, spectral_start

# Two dimensions: the checks fit linear kernels of three features, and with more dimensions than the data have,
# non-negative least squares has many solutions, of which transform need not give the fitted one.
CHECKED = [SRF(2, random_state=0, max_iter=2000), SRF(2, solver="admm", random_state=0, max_iter=500)]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# --- results -----------------------------------------------------------------------------------------------------


def test_auto_is_bcd_and_dimensions_come_largest_first():
    S = similarities(observed=0.7)
    auto, bcd = (SRF(6, solver=solver, random_state=0).fit(S) for solver in ("auto", "bcd"))
    assert auto.solver_ == "bcd"
    np.testing.assert_allclose(auto.embedding_, bcd.embedding_, atol=1e-9)
    assert np.all(np.diff(np.sum(auto.embedding_**2, axis=0)) <= 0)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_groups_get_a_dimension_each_as_often_as_by_exact_steps_loading_after_loading(missing):
    """From the same random starts; steps that are bolder from the beginning end in poor minima much more often."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 6, 60)
    S = (groups[:, None] == groups).astype(float)
    gaps = np.triu(rng.random(S.shape) < missing, 1)
    S[gaps | gaps.T] = np.nan
    starts = rng.uniform(0, 0.3, size=(100, 60, 6))
    found = np.mean([SRF(6, init=start, max_iter=300).fit(S).objective_ < 1e-3 for start in starts])
    plain = np.mean([0.5 * np.nansum((S - W @ W.T) ** 2) < 1e-3 for W in exact_steps(S, starts, 40)])
    assert 0.2 < plain < 0.95  # some starts are good and some are not
    assert found >= plain - 2 * np.sqrt(2 * plain * (1 - plain) / len(starts))


def exact_steps(S, starts, n_sweeps):
    """Sweeps over items and dimensions, each loading set to its minimiser, for many starts side by side.

    A loading x of item i enters the objective as x^4 / 4 + p x^2 / 2 - b x, all others being fixed.
    """
    known, values, W = ~np.isnan(S), np.nan_to_num(S), starts.copy()
    for _, i in itertools.product(range(n_sweeps), range(len(S))):
        others = np.flatnonzero(known[i] & (np.arange(len(S)) != i))
        residual = values[i, others] - np.einsum("sjk,sk->sj", W[:, others], W[:, i])
        own = values[i, i] - np.sum(W[:, i] ** 2, axis=1)
        for k in range(W.shape[2]):
            x, column = W[:, i, k].copy(), W[:, others, k]
            squares = np.sum(column**2, axis=1)
            b = np.sum(residual * column, axis=1) + x * squares
            p = squares - (own + x**2)
            y = largest_root(p, b)
            y = np.where(y**4 / 4 + p * y**2 / 2 - b * y < 0, y, 0.0)
            residual -= (y - x)[:, None] * column
            own += x**2 - y**2
            W[:, i, k] = y
    return W


def largest_root(p, b):
    """Of x^3 + p x = b, or 0 if it is negative."""
    inner = (b / 2) ** 2 + (p / 3) ** 3
    root = np.sqrt(np.maximum(inner, 0))
    one = np.cbrt(b / 2 + root) + np.cbrt(b / 2 - root)
    size = np.sqrt(np.maximum(-p / 3, 1e-100))
    three = 2 * size * np.cos(np.arccos(np.clip(b / (2 * size**3), -1, 1)) / 3)
    return np.maximum(np.where(inner >= 0, one, three), 0)


@pytest.mark.parametrize("observed", [1.0, 0.7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-25, 1e-3, 1e2, 1e4, 1e10, 1e60])
def test_a_start_of_any_size_leads_to_the_same_fit(scale, dtype, observed):
    if dtype == np.float32 and scale > 1e10:
        pytest.skip("refused in float32")
    S = simulate.mask_pairs(similarities().astype(dtype), observed, random_state=0)
    start = np.random.default_rng(0).uniform(size=(len(S), 4))
    expected = SRF(4, init=start).fit(S)
    srf = SRF(4, init=scale * start).fit(S)
    assert np.diff(srf.history_).max() <= 1e-6 * srf.history_[0]
    assert srf.objective_ <= 1.05 * expected.objective_ + 1e-6 * np.nansum(S**2)


@pytest.mark.parametrize("seed", [2, 4, 9, 10])
@pytest.mark.parametrize("init", ["random", "spectral"])
def test_few_items_that_are_fitted_to_rounding_have_converged(init, seed):
    W = np.random.default_rng(seed).dirichlet(np.full(2, 0.3), 2)
    srf = SRF(2, init=init, random_state=0, max_iter=500).fit((W @ W.T).astype(np.float32))
    assert srf.converged_


def test_no_dimension_of_a_spectral_start_is_lost():
    S = np.maximum(np.corrcoef(np.random.default_rng(1).normal(size=(50, 10))), 0)
    srf = SRF(50, init="spectral", random_state=1).fit(S)
    assert np.all(srf.embedding_.any(axis=0))


def test_an_unfinished_fit_warns_with_what_the_last_iterations_gained():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=12 .*tol") as caught:
        srf = SRF(3, random_state=0, max_iter=12, tol=0.0).fit(similarities())
    assert not srf.converged_
    assert srf.n_iter_ == 12
    assert f"{1 - srf.history_[-1] / srf.history_[2]:.2g}" in str(caught[0].message)


@pytest.mark.parametrize(("is_complete", "window"), [(False, 10), (True, 25)])
def test_a_finished_fit_met_its_tolerance_and_not_earlier(is_complete, window):
    S = similarities()
    if not is_complete:  # rows in turn; with the diagonal they move together, and three sweeps follow
        np.fill_diagonal(S, np.nan)
    srf = SRF(4, random_state=0, tol=1e-3).fit(S)
    before, after = srf.history_[:-window], srf.history_[window:]
    relative = (before - after) / after
    assert srf.converged_
    assert relative[-1] <= 1e-3
    assert np.all(relative[: -4 if is_complete else -1] > 1e-3)


@pytest.mark.parametrize("observed", [1.0, 0.7, 0.15])
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_noiseless_data_are_explained_and_not_called_unfinished(observed):
    for seed in range(3):
        W = simulate.dirichlet(300, 6, random_state=seed)
        S = simulate.mask_pairs(W @ W.T, observed, random_state=seed)
        srf = SRF(6, random_state=seed).fit(S)
        assert srf.objective_ <= 1e-12 * 0.5 * np.nansum(S**2)
        assert srf.kkt_residual_ < 1e-6
    exact = SRF(6, random_state=0, tol=0.0, max_iter=5000).fit(W @ W.T)  # ends at the floor of rounding
    assert exact.converged_


@pytest.mark.parametrize("solver", ["bcd", "admm"])
@pytest.mark.parametrize("observed", [1.0, 0.8])
@pytest.mark.filterwarnings("ignore:values looks like a dissimilarity")
def test_all_zero_similarities_give_a_zero_embedding(solver, observed):
    S = simulate.mask_pairs(np.zeros((8, 8)), observed, random_state=0)
    srf = SRF(2, solver=solver, random_state=0).fit(S)
    np.testing.assert_array_equal(srf.embedding_, np.zeros((8, 2)))
    assert srf.objective_ == 0
    assert srf.converged_


@pytest.mark.parametrize("n_components", [1, 12])
@pytest.mark.parametrize("solver", ["bcd", "admm"])
@pytest.mark.parametrize("init", ["random", "spectral"])
def test_from_one_dimension_to_as_many_as_items(n_components, solver, init):
    srf = SRF(n_components, solver=solver, init=init, random_state=0, max_iter=300)
    assert np.isfinite(srf.fit(similarities(n=12, r=3, observed=0.8)).embedding_).all()


@pytest.mark.parametrize("solver", ["bcd", "admm"])
def test_a_single_item_is_the_root_of_its_similarity(solver):
    srf = SRF(1, solver=solver, random_state=0, tol=1e-10).fit(np.array([[4.0]]))
    np.testing.assert_allclose(srf.embedding_, [[2.0]], rtol=1e-3)


def test_score_is_r2_of_w_times_its_transpose_over_observed_off_diagonal_pairs():
    S = similarities(observed=0.6)
    srf = SRF(4, random_state=0).fit(S)
    np.testing.assert_allclose(srf.reconstruct(), srf.embedding_ @ srf.embedding_.T)
    pairs = ~np.isnan(S) & ~np.eye(len(S), dtype=bool)
    residual = (S - srf.reconstruct())[pairs]
    assert srf.score(S) == pytest.approx(1 - residual @ residual / np.sum((S[pairs] - S[pairs].mean()) ** 2))


# --- starts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [random_start, spectral_start])
@pytest.mark.parametrize("observed", [1.0, 0.5])
def test_the_first_reconstruction_has_the_mean_of_the_data(start, observed):
    S = similarities(observed=observed)
    W = start(as_problem(S), 5, np.random.RandomState(0))
    assert np.mean(W @ W.T) == pytest.approx(np.nanmean(S))
    assert W.min() >= 0


def test_the_spectral_start_is_closer_than_the_random_one():
    S = similarities(n=100)
    spectral, random = (SRF(4, init=init, random_state=0, max_iter=500).fit(S) for init in ("spectral", "random"))
    assert spectral.history_[0] < random.history_[0]
    assert spectral.objective_ == pytest.approx(random.objective_, rel=0.05)


def test_the_spectral_start_is_the_same_for_dense_and_sparse():
    S = similarities(n=40, observed=0.4)
    dense, listed = (spectral_start(as_problem(x), 3, np.random.RandomState(0)) for x in (S, as_csr(S)))
    np.testing.assert_allclose(listed, dense, atol=1e-8)


def test_an_array_is_the_start_as_it_is():
    S, W0 = similarities(), np.random.default_rng(0).uniform(size=(60, 3))
    srf = SRF(3, init=W0).fit(S)
    assert srf.history_[0] == pytest.approx(0.5 * np.sum((S - W0 @ W0.T) ** 2))


# --- new items ---------------------------------------------------------------------------------------------------


def test_transform_is_non_negative_least_squares_over_what_is_observed():
    srf = SRF(4, random_state=0).fit(similarities())
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(7, 60))
    rows[rng.random(rows.shape) < 0.5] = np.nan
    rows[0] = rng.uniform(size=60)
    expected = [nnls(srf.embedding_[~np.isnan(row)], row[~np.isnan(row)])[0] for row in rows]
    np.testing.assert_allclose(srf.transform(rows), expected, atol=1e-6)


@pytest.mark.parametrize("observed", [1.0, 0.7])
def test_the_fitted_items_own_rows_give_their_embedding_back(observed):
    W = simulate.dirichlet(80, 4, alpha=0.3, random_state=1)
    S = simulate.mask_pairs(W @ W.T, observed, random_state=1)
    srf = SRF(4, random_state=0, tol=1e-8, max_iter=3000).fit(S)
    difference = np.linalg.norm(srf.transform(S) - srf.embedding_)
    assert difference < 0.02 * np.linalg.norm(srf.embedding_)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_a_fresh_item_is_embedded_where_it_belongs(missing):
    W = simulate.dirichlet(230, 5, alpha=0.3, random_state=2)
    fitted, fresh = W[:200], W[200:]
    srf = SRF(5, random_state=0, max_iter=2000).fit(fitted @ fitted.T)
    rows = fresh @ fitted.T
    rows[np.random.default_rng(0).random(rows.shape) < missing] = np.nan
    embedded = srf.transform(rows)
    match = np.argmax(np.corrcoef(srf.embedding_.T, fitted.T)[:5, 5:], axis=1)
    for mine, true in zip(embedded, fresh[:, match], strict=True):
        assert np.corrcoef(mine, true)[0, 1] > 0.95


def test_a_new_item_without_a_similarity_is_named():
    srf = SRF(2, random_state=0).fit(similarities())
    rows = np.full((3, 60), np.nan)
    rows[1] = 0.5
    with pytest.raises(ValueError, match=r"2 .*0, 2"):
        srf.transform(rows)
    with pytest.raises(ValueError, match="zebra"):
        srf.transform(pd.DataFrame(rows[1:], index=["horse", "zebra"]))


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (np.ones((2, 59)), ValueError, "59 features, but SRF is expecting 60"),
        (np.where(np.arange(60) == 3, -1.0, 1.0)[None], ValueError, "S must be non-negative, got 1 negative value"),
        (sparse.csr_array(np.ones((2, 60))), TypeError, "sparse"),
        (np.full((2, 60), 10**400, dtype=object), ValueError, "S must"),
        (np.ones((2, 60)).astype("datetime64[s]"), TypeError, "datetime"),
        (pd.DataFrame(np.ones((2, 60)).astype("datetime64[s]")), TypeError, "datetime"),
        ([list(row) for row in np.ones((2, 60)).astype("timedelta64[s]")], TypeError, "timedelta"),
    ],
    ids=["columns", "negative", "sparse", "too large", "dates", "a table of dates", "times"],
)
def test_transform_refuses_what_it_cannot_read(rows, error, words):
    with pytest.raises(error, match=words):
        SRF(2, random_state=0).fit(similarities()).transform(rows)
    with pytest.raises(NotFittedError):
        SRF().transform(rows)


# --- labels and scikit-learn -------------------------------------------------------------------------------------


def test_labels_arrive_at_the_embedding():
    names = [f"item {i}" for i in range(60)]
    for S in (Similarity(similarities(), labels=names), pd.DataFrame(similarities(), names, names)):
        srf = SRF(2, random_state=0).fit(S)
        frame = srf.embedding_frame()
        assert list(frame.index) == names
        assert list(frame.columns) == ["dimension1", "dimension2"]
        np.testing.assert_array_equal(frame.to_numpy(), srf.embedding_)
    with pytest.raises(ValueError, match="feature names"):
        srf.transform(pd.DataFrame(similarities()[:2], columns=names[::-1]))
    refitted = srf.fit(similarities())
    assert not hasattr(refitted, "feature_names_in_")
    assert list(refitted.embedding_frame().index) == list(range(60))


def test_set_output_gives_named_frames():
    names = [f"item {i}" for i in range(60)]
    S = pd.DataFrame(similarities(), names, names)
    srf = SRF(2, random_state=0).set_output(transform="pandas")
    embedded = srf.fit_transform(S)
    assert list(embedded.columns) == list(srf.get_feature_names_out()) == ["dimension1", "dimension2"]
    assert list(embedded.index) == names
    assert list(srf.transform(S.iloc[:3]).index) == names[:3]


def test_clone_and_pickle_keep_everything():
    srf = SRF(3, solver="admm", rho=2.0, inner_iter=4, random_state=0, tol=1e-3).fit(similarities())
    assert clone(srf).get_params() == srf.get_params()
    copy = pickle.loads(pickle.dumps(srf))
    np.testing.assert_array_equal(copy.embedding_, srf.embedding_)
    rows = similarities()[:4]
    np.testing.assert_allclose(copy.transform(rows), srf.transform(rows), atol=1e-12)


# --- bounds ------------------------------------------------------------------------------------------------------


def outside(values, low, high):
    return np.sqrt(np.mean((values - np.clip(values, low, high)) ** 2))


def test_bounds_with_bcd_pull_predictions_of_missing_pairs_into_the_box():
    S = similarities(observed=0.5, n=40)
    missing = np.isnan(S)
    low, high = 0.25, 0.35
    free = SRF(4, random_state=0).fit(S).reconstruct()[missing]
    held = SRF(4, random_state=0, bounds=(low, high)).fit(S)
    assert outside(held.reconstruct()[missing], low, high) < 0.6 * outside(free, low, high)
    assert np.diff(held.history_).max() <= 0
    assert held.converged_
    assert held.kkt_residual_ < 1e-3


def test_bounds_data_is_the_observed_range():
    S = similarities(observed=0.7)
    for solver in ("bcd", "admm"):
        by_word = SRF(4, solver=solver, bounds="data", random_state=0).fit(S)
        by_pair = SRF(4, solver=solver, bounds=(np.nanmin(S), np.nanmax(S)), random_state=0).fit(S)
        np.testing.assert_allclose(by_word.embedding_, by_pair.embedding_, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_auto_bounds_are_the_papers_box_for_admm_with_missing_pairs_and_none_otherwise():
    def fit(S, solver, bounds):
        return SRF(10, solver=solver, bounds=bounds, random_state=0, max_iter=40).fit(S).embedding_

    S = similarities(observed=0.15, seed=3)  # so few that free predictions leave the observed range
    np.testing.assert_allclose(fit(S, "admm", "auto"), fit(S, "admm", "data"), atol=1e-9)
    assert np.abs(fit(S, "admm", "auto") - fit(S, "admm", None)).max() > 1e-3
    np.testing.assert_allclose(fit(S, "bcd", "auto"), fit(S, "bcd", None), atol=1e-9)
    complete = similarities()
    np.testing.assert_allclose(fit(complete, "admm", "auto"), fit(complete, "admm", None), atol=1e-9)


@pytest.mark.parametrize("bounds", ["data", (0.0, 1.0)])
def test_bounds_that_bcd_cannot_honour_are_refused(bounds):
    stored = as_csr(similarities(observed=0.5))
    for S in (similarities(), Similarity(stored, absent="missing"), Similarity(stored, absent=0.1)):
        with pytest.raises(ValueError, match="bounds"):
            SRF(2, bounds=bounds).fit(S)


# --- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "got"),
    [
        ("n_components", 0, "0"),
        ("n_components", 61, "61"),
        ("n_components", 2.5, r"2\.5"),
        ("solver", "als", "'als'"),
        ("device", "gpu", "'gpu'"),
        ("init", "nndsvd", "'nndsvd'"),
        ("init", np.ones((60, 3)), r"\(60, 3\)"),
        ("init", -np.ones((60, 2)), "-1"),
        ("init", np.ones((60, 2)) * 1j, ""),
        ("init", np.ma.masked_equal(np.eye(60, 2), 0), ""),
        ("init", np.ones((60, 2), "m8[s]"), ""),
        ("init", np.full((60, 2), 1e200), r"1e\+200"),
        ("max_iter", 0, "0"),
        ("max_iter", 10**20, "1000"),
        ("random_state", "a", "'a'"),
        ("random_state", -1, "-1"),
        ("tol", -1.0, r"-1\.0"),
        ("tol", "small", "'small'"),
        ("bounds", "wide", "'wide'"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_bad_parameter_is_named_with_its_value(name, value, got):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must .*got .*{got}"):
        SRF(**{"n_components": 2, name: value}).fit(similarities())


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("rho", {"solver": "admm", "rho": 0.0}),
        ("rho", {"rho": 2.0}),
        ("inner_iter", {"solver": "bcd", "inner_iter": 5}),
        ("bounds", {"solver": "admm", "bounds": (1, 0)}),
        ("bounds", {"solver": "admm", "bounds": 3}),
    ],
)
def test_parameters_that_a_solver_does_not_take_are_named(name, parameters):
    with pytest.raises(ValueError, match=f"^{name} "):
        SRF(2, **parameters).fit(similarities())


def test_a_bare_sparse_matrix_needs_absent():
    with pytest.raises(ValueError, match="absent"):
        SRF(2).fit(sparse.csr_array(similarities()))


# --- size and threads --------------------------------------------------------------------------------------------


def sparse_pairs(n, per_item, seed=0):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(n, size=(2, n * per_item // 2))
    values = rng.uniform(0.1, 1, size=len(i))
    upper = sparse.coo_array((values, (np.minimum(i, j), np.maximum(i, j))), shape=(n, n)).tocsr()
    upper.data = np.minimum(upper.data, 1.0)
    return sparse.csr_array(sparse.triu(upper, 1) + sparse.eye_array(n))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("absent", ["missing", 0.03, "zero"])
@pytest.mark.parametrize("init", ["random", "spectral"])
def test_a_sparse_fit_never_builds_a_dense_matrix(absent, init):
    n = 8000
    S = Similarity(sparse_pairs(n, 10), absent=absent)
    SRF(5, random_state=0, max_iter=2, tol=0.0).fit(S)  # compile
    tracemalloc.start()
    srf = SRF(5, init=init, random_state=0, max_iter=3, tol=0.0).fit(S)
    srf.score(S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * n * n  # bytes: an eighth of the smallest dense matrix of numbers


SCRIPT = """
    from simdims import SRF, simulate
    for observed in (1.0, 0.8, 0.05):
        W = simulate.dirichlet(600, 8, random_state=0)
        S = simulate.mask_pairs(simulate.add_noise(W @ W.T, 0.9, random_state=0), observed, random_state=0)
        for solver in ("bcd", "admm"):
            print(SRF(8, solver=solver, random_state=0, max_iter=25).fit(S).objective_)
"""


def test_the_number_of_threads_does_not_change_the_result():
    objectives = []
    for threads in ("1", "2", "4"):
        variables = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SCRIPT)],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        objectives.append(np.array(run.stdout.split(), dtype=float))
    np.testing.assert_allclose(objectives[1], objectives[0], rtol=1e-6)
    np.testing.assert_allclose(objectives[2], objectives[0], rtol=1e-6)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_fits_side_by_side_agree_and_leave_the_blas_threads_as_they_were():
    S = similarities(n=90, observed=0.7)
    alone = [SRF(5, random_state=seed).fit(S).objective_ for seed in range(12)]

    def fit(seed):
        return SRF(5, random_state=seed).fit(S).objective_

    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(6) as pool:
            np.testing.assert_allclose(list(pool.map(fit, range(12))), alone, rtol=1e-9)
        assert blas_threads() == before
    processes = Parallel(n_jobs=2)(delayed(fit)(seed) for seed in range(4))
    np.testing.assert_allclose(processes, alone[:4], rtol=1e-9)


def test_transform_leaves_out_what_is_masked():
    W = simulate.dirichlet(30, 3, random_state=0)
    S = W @ W.T
    srf = SRF(3, random_state=0).fit(S)
    masked = np.ma.masked_array(S, np.random.default_rng(0).uniform(size=S.shape) < 0.5)
    np.testing.assert_array_equal(srf.transform(masked), srf.transform(masked.filled(np.nan)))


@pytest.mark.parametrize("solver", ["bcd", "admm"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_history_ends_at_the_objective(solver, dtype):
    S = similarities().astype(dtype)
    srf = SRF(4, solver=solver, init=np.full((len(S), 4), 50.0) + np.eye(len(S), 4), max_iter=1000).fit(S)
    assert srf.history_[-1] == srf.objective_


# --- what the data leave open --------------------------------------------------------------------------------------


def warned(fit):
    """What a fit warns of, but for convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return " ".join(str(w.message) for w in caught if not issubclass(w.category, ConvergenceWarning))


@pytest.mark.parametrize("absent", [None, "missing"])
def test_fewer_pairs_than_loadings_are_a_warning_with_numbers(absent):
    S = similarities(n=40, observed=0.1)
    n_values = np.count_nonzero(~np.isnan(S[np.triu_indices(40)]))
    counts = np.count_nonzero(~np.isnan(S), axis=1)
    labels = [f"item {i}" for i in range(40)]
    given = Similarity(as_csr(S) if absent else S, labels=labels, absent=absent)
    for fit in (SRF(8, random_state=0).fit, lambda S: fit_consensus(S, 8, n_runs=2, random_state=0, progress=False)):
        said = warned(lambda fit=fit: fit(given))
        assert f"320 loadings from {n_values} observed" in said
        short = np.flatnonzero(counts < 8)
        assert f"{len(short)} items" in said
        assert f"'item {short[0]}' ({counts[short[0]]})" in said


def test_predictions_far_beyond_the_data_are_a_warning_with_items():
    """Few pairs, noise and no diagonal: loadings grow without bound while the fit looks perfect."""
    W = simulate.dirichlet(150, 10, alpha=0.3, random_state=0)
    S = simulate.mask_pairs(simulate.add_noise(W @ W.T, 0.7, random_state=0), 0.2, random_state=0)
    np.fill_diagonal(S, np.nan)
    srf = SRF(10, random_state=0, max_iter=2000)
    said = warned(lambda: srf.fit(S))
    norms = np.sum(srf.embedding_**2, axis=1) / np.nanmax(S)
    worst = np.argmax(norms)
    assert norms[worst] > 10
    assert f"For {np.count_nonzero(norms > 3)} items" in said
    assert f"{worst} ({norms[worst]:.0f} times)" in said


@pytest.mark.parametrize("seed", [0, 4])  # predicted self-similarities 100 and 8 times the largest observed similarity
def test_a_fit_that_predicts_unseen_pairs_worse_than_their_mean_does_not_pass_in_silence(seed):
    rng = np.random.default_rng(seed)
    n, rank = 60, 2
    W = rng.uniform(size=(n, rank)) ** 3
    S = simulate.add_noise(W @ W.T / (W @ W.T).max(), 0.8, random_state=seed)
    given = simulate.mask_pairs(S, 0.1, random_state=seed)
    np.fill_diagonal(given, np.nan)
    items = np.flatnonzero(np.count_nonzero(~np.isnan(given), axis=1) >= rank)
    S, given = S[np.ix_(items, items)], given[np.ix_(items, items)]
    srf = SRF(rank, random_state=0, max_iter=2000)
    said = warned(lambda: srf.fit(given))
    unseen = np.isnan(given) & ~np.eye(len(S), dtype=bool)
    error, spread = np.mean((S - srf.reconstruct())[unseen] ** 2), np.var(S[unseen])
    assert error > 1.5 * spread
    assert "without an observed self-similarity" in said


def test_data_that_determine_a_fit_are_no_reason_to_warn():
    S = similarities(n=60)
    without_diagonal = S.copy()
    np.fill_diagonal(without_diagonal, np.nan)
    for given in (S, simulate.mask_pairs(S, 0.7, random_state=0), without_diagonal):
        assert warned(lambda given=given: SRF(4, random_state=0).fit(given)) == ""
    listed = sparse.csr_array(np.where(S > 0.4, S, 0.0))
    assert warned(lambda: SRF(4, random_state=0).fit(Similarity(listed, absent=0.03))) == ""


# Items that were not fitted


def test_new_items_are_scored_by_similarities_that_did_not_embed_them():
    """In plain loops: every fifth observed similarity of a row is predicted from the others by least squares."""
    W = simulate.dirichlet(40, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.7, random_state=0)
    srf = SRF(3, random_state=0).fit(S[:30, :30])
    rows = S[30:, :30].copy()
    rows[0, ::3] = np.nan
    rows[1, 1:] = np.nan  # one observed similarity: nothing to predict it from
    rows[2] = np.nan
    values, predicted = [], []
    for row in rows:
        known = np.flatnonzero(~np.isnan(row))
        for part in range(5):
            held_out = known[part::5]
            others = np.setdiff1d(known, held_out)
            if len(known) > 1:
                w = nnls(srf.embedding_[others], row[others])[0]
                values += row[held_out].tolist()
                predicted += (srf.embedding_[held_out] @ w).tolist()
    values, predicted = np.array(values), np.array(predicted)
    expected = 1 - np.sum((values - predicted) ** 2) / np.sum((values - values.mean()) ** 2)
    assert srf.score(rows) == pytest.approx(expected, abs=1e-6)
    assert srf.score(pd.DataFrame(rows)) == pytest.approx(expected, abs=1e-6)


def test_similarities_of_the_fitted_items_are_scored_as_before():
    S = similarities()
    srf = SRF(4, random_state=0).fit(S)
    gaps = np.triu(np.ones_like(S, dtype=bool), 1)
    for given in (S, np.where(gaps, np.nan, S), S + 1e-12 * gaps, S.tolist(), Similarity(S)):
        assert srf.score(given) == pytest.approx(metrics.explained_variance(S, srf.embedding_))


@pytest.mark.parametrize("rows", [np.full((2, 4), np.nan), np.ones((3, 4))])
def test_new_items_without_variance_have_no_score(rows):
    srf = SRF(2, random_state=0).fit(np.eye(4) + 0.1)
    with pytest.raises(ValueError, match="new items"):
        srf.score(rows)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cv", [2, 5])  # with two folds the held-out rows are square
@pytest.mark.parametrize("observed", [1.0, 0.8])
def test_a_grid_search_holds_items_out_and_finds_the_number_of_dimensions(cv, observed):
    W = simulate.dirichlet(80, 4, alpha=0.3, random_state=1)
    S = simulate.mask_pairs(simulate.add_noise(W @ W.T, 0.8, random_state=1), observed, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(SRF(random_state=0), {"n_components": [1, 2, 4, 9]}, cv=cv).fit(S)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"n_components": 4}
    assert search.best_score_ > 0.5
    assert cross_val_score(SRF(4, random_state=0), S, cv=cv).mean() == pytest.approx(search.best_score_)


def test_a_grid_search_over_similarities_that_are_no_array_raises():
    S = similarities()
    assert GridSearchCV(SRF(random_state=0), {"n_components": [2]}, cv=2).fit(Similarity(S)).best_score_ <= 1
    with pytest.raises(TypeError, match="weights"):
        GridSearchCV(SRF(random_state=0), {"n_components": [2]}).fit(Similarity(S, weights=np.ones_like(S)))


@pytest.mark.parametrize("observed", [1.0, 0.8])
@pytest.mark.parametrize("solver", ["bcd", "admm"])
def test_progress_is_logged_with_the_iteration_and_the_objective(solver, observed, caplog):
    settings = {"solver": solver, "random_state": 0, "max_iter": 5, "tol": 0.0}
    with caplog.at_level(logging.INFO, logger="simdims"):
        SRF(2, **settings).fit(similarities(observed=observed))
        assert not caplog.records
        srf = SRF(2, **settings, verbose=1).fit(similarities(observed=observed))
    assert caplog.records[-1].args[0] == srf.n_iter_
    assert caplog.records[-1].args[1] == pytest.approx(srf.objective_)
