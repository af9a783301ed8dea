"""from_features against scikit-learn's kernels and plain loops; implicit similarities through SRF."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers import no_warnings, traced_memory
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel, rbf_kernel

from simdims import SRF, ParameterError, Similarity, features, from_features, simulate


def signed(n=30, d=5, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def test_auto_is_linear_for_non_negative_features_and_rbf_for_signed_ones():
    X = np.abs(signed())
    linear = from_features(X)
    np.testing.assert_allclose(linear.values, X @ X.T)
    assert linear.info["kernel"] == "linear"
    assert from_features(signed()).info["kernel"] == "rbf"


@pytest.mark.parametrize("n", [2, 3, 4, 31])
@pytest.mark.parametrize("bandwidth", [0.4, 1.5])
def test_rbf_is_scikit_learns_with_sigma_from_the_median_distance(n, bandwidth):
    X = signed(n)
    sigma = bandwidth * np.median(pdist(X))
    S = from_features(X, bandwidth=bandwidth)
    np.testing.assert_allclose(S.values, rbf_kernel(X, gamma=1 / (2 * sigma**2)), atol=1e-12)
    assert S.info["sigma"] == pytest.approx(sigma)
    np.testing.assert_array_equal(np.diag(S.values), 1)


@pytest.mark.parametrize("n", [5, 6, 40, 41])
def test_the_median_is_exact_with_ties_and_outliers(n):
    rng = np.random.default_rng(1)
    for X in (
        rng.integers(0, 3, size=(n, 2)) - 1.0,
        np.where(np.arange(n) < n // 2, -1.0, 1.0)[:, None],
        np.append(rng.normal(size=(n - 1, 2)), [[1e6, -1e6]], axis=0),
    ):
        expected = np.median(pdist(X))
        assert expected > 0
        assert from_features(X, kernel="rbf").info["sigma"] == pytest.approx(0.4 * expected, rel=1e-6)


def test_blocks_change_nothing(monkeypatch):
    X = signed(50)
    whole = from_features(X).values
    monkeypatch.setattr(features, "_BLOCK", 7)
    np.testing.assert_allclose(from_features(X).values, whole, atol=1e-12)
    np.testing.assert_allclose(from_features(X, kernel=laplacian_kernel).values, laplacian_kernel(X))


def test_distances_far_from_the_origin_keep_their_digits():
    X = signed(20).astype(np.float32)
    shifted = (X + np.float32(1000.0)).astype(np.float32)
    exact = rbf_kernel(shifted.astype(float), gamma=1 / (2 * (0.4 * np.median(pdist(shifted.astype(float)))) ** 2))
    np.testing.assert_allclose(from_features(shifted, kernel="rbf").values, exact, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e155])
@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_the_scale_of_the_features_does_not_matter(kernel, scale):
    X = np.abs(signed())
    expected = from_features(X, kernel=kernel).values
    np.testing.assert_allclose(from_features(scale * X, kernel=kernel).values, expected, rtol=1e-6, atol=1e-9)
    if 1e-30 < scale < 1e30:
        single = from_features((scale * X).astype(np.float32), kernel=kernel).values
        np.testing.assert_allclose(single, expected, atol=1e-5)


def test_close_pairs_far_from_the_others_keep_their_distance():
    X = np.append(np.random.default_rng(0).uniform(size=(8, 2)), [[1e8, 0.0], [1e8, 0.3]], axis=0)
    S = from_features(X, kernel="rbf")
    assert S.values[8, 9] == pytest.approx(np.exp(-(0.3**2) / (2 * S.info["sigma"] ** 2)), rel=1e-6)


def test_a_callable_cannot_change_the_callers_features():
    X = np.ones((3, 2))
    with pytest.raises(ValueError, match="read-only"):
        from_features(X, kernel=lambda a, b: a.fill(0))
    np.testing.assert_array_equal(X, 1)


def test_columns_of_the_same_name_are_columns():
    frame = pd.DataFrame(np.ones((2, 2), np.float32), columns=["a", "a"])
    assert from_features(frame).values.dtype == np.float32


def test_what_was_done_is_logged(caplog):
    with caplog.at_level("INFO", logger="simdims"):
        from_features(signed())
    assert "from_features: source = features, kernel = rbf" in caplog.text


def test_why_auto_takes_rbf_is_in_info_and_a_warning_where_negative_values_may_be_rounding():
    X = np.abs(signed(100))
    X[0, 0], X[1, 1] = -1e-5, -2e-5
    with pytest.warns(UserWarning, match="2 negative values .*-2e-05.*negative='clip'") as caught:
        S = from_features(X)
    assert caught[0].filename == __file__
    assert S.info["kernel"] == "rbf"
    assert (S.info["n_values_negative"], S.info["smallest"]) == (2, -2e-5)
    with no_warnings():
        assert from_features(signed()).info["n_values_negative"] == np.count_nonzero(signed() < 0)
        assert "n_values_negative" not in from_features(X, kernel="rbf").info


@pytest.mark.parametrize("implicit", [False, True])
def test_negative_features_are_clipped_with_a_count(implicit):
    X = np.abs(signed())
    X[0, 0] = -1e-5
    before = X.copy()
    with pytest.warns(UserWarning, match=r"Set 1 negative value \(.*-1e-05\) of X to 0"):
        S = from_features(X, negative="clip", implicit=implicit)
    np.testing.assert_array_equal(X, before)
    assert S.info["kernel"] == "linear"
    assert (S.info["negative"], S.info["n_values_negative"], S.info["smallest"]) == ("clip", 1, -1e-5)
    expected = np.maximum(X, 0)
    np.testing.assert_allclose(S.factors @ S.factors.T if implicit else S.values, expected @ expected.T)


def test_real_spose_features_say_why_they_get_an_rbf_kernel(data_path):
    X = np.loadtxt(data_path("things/spose_embedding_66d_sorted.txt"))[:300]
    n_negative = np.count_nonzero(X < 0)
    with pytest.warns(UserWarning, match=rf"RBF kernel is used because X has {n_negative} negative value"):
        from_features(X)
    with pytest.warns(UserWarning, match=f"Set {n_negative} negative value"):
        assert from_features(X, negative="clip").info["kernel"] == "linear"


def test_cosine_clips_and_counts():
    X = signed()
    expected = cosine_similarity(X)
    negative = np.count_nonzero(np.triu(expected, 1) < 0)
    with pytest.warns(UserWarning, match=rf"negative similarities for {negative} pairs .* clipped to 0"):
        S = from_features(X, kernel="cosine")
    np.testing.assert_allclose(S.values, np.maximum(expected, 0), atol=1e-12)
    assert S.info["clipped_pairs"] == negative
    assert from_features(np.abs(X), kernel="cosine").info["clipped_pairs"] == 0


@pytest.mark.parametrize("kernel", ["linear", "rbf", "cosine", laplacian_kernel])
def test_float32_stays_float32(kernel):
    X = np.abs(signed(dtype=np.float32))
    assert from_features(X, kernel=kernel).values.dtype == np.float32
    assert from_features(X.astype(np.float16), kernel=kernel).values.dtype == np.float32
    assert from_features((10 * X).astype(int), kernel="linear").values.dtype == np.float64


@pytest.mark.parametrize("kernel", ["linear", "rbf", "cosine"])
def test_permuting_items_permutes_the_similarities(kernel):
    X = np.abs(signed())
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(
        from_features(X[order], kernel=kernel).values, from_features(X, kernel=kernel).values[np.ix_(order, order)]
    )


def test_labels_come_from_the_index_and_arrive_at_the_embedding():
    names = [f"item {i}" for i in range(30)]
    frame = pd.DataFrame(np.abs(signed()), index=names)
    S = from_features(frame)
    assert S.labels == tuple(names)
    assert list(SRF(2, random_state=0).fit(S).embedding_frame().index) == names
    assert from_features(frame, labels=names).labels == tuple(names)
    unnamed = frame.reset_index(drop=True)
    assert from_features(unnamed).labels is None
    assert from_features(unnamed.iloc[4:6]).labels == ("4", "5")


def test_constant_and_duplicate_rows_are_fine():
    X = np.ones((6, 3))
    np.testing.assert_array_equal(from_features(X).values, np.full((6, 6), 3.0))
    twice = np.repeat(signed(10), 2, axis=0)
    S = from_features(twice).values
    assert S[0, 1] == pytest.approx(1)
    assert S[0, 2] < 1


# --- implicit ----------------------------------------------------------------------------------------------------


def factors(n=60, d=8, seed=0, dtype=np.float64):
    return simulate.dirichlet(n, d, alpha=0.5, random_state=seed).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [60, 1200])  # the larger one starts from a sample
@pytest.mark.parametrize("init", ["random", "spectral"])
def test_an_implicit_fit_is_the_fit_of_the_matrix(n, dtype, init):
    F = factors(n, dtype=dtype)
    settings = {"init": init, "random_state": 0, "max_iter": 400, "tol": 1e-5}
    implicit = SRF(4, **settings).fit(from_features(F, implicit=True))
    matrix = SRF(4, **settings).fit(from_features(F))
    assert implicit.embedding_.dtype == dtype
    rel = 1e-3 if dtype == np.float32 else 1e-6
    assert implicit.objective_ == pytest.approx(matrix.objective_, rel=rel)
    assert implicit.history_[-1] == pytest.approx(implicit.objective_, rel=rel)
    assert np.all(np.diff(implicit.history_) <= 1e-6 * implicit.history_[0])
    assert implicit.kkt_residual_ < 1e-3
    S = from_features(F, implicit=True)
    assert implicit.score(S) == pytest.approx(implicit.score(F @ F.T), rel=1e-4)


def test_a_float32_objective_is_computed_in_float64():
    F = np.random.default_rng(0).random((300, 4)).astype(np.float32)
    srf = SRF(4, random_state=1, max_iter=3000).fit(Similarity.from_factors(F))
    W = srf.embedding_.astype(float)
    exact = 0.5 * np.sum((F.astype(float) @ F.astype(float).T - W @ W.T) ** 2)
    assert srf.objective_ == pytest.approx(exact, rel=1e-3, abs=1e-9)


def test_admm_builds_the_matrix_and_agrees():
    F = factors()
    admm = SRF(4, solver="admm", random_state=0, max_iter=300, tol=1e-7).fit(from_features(F, implicit=True))
    bcd = SRF(4, random_state=0, max_iter=2000, tol=1e-7).fit(from_features(F, implicit=True))
    assert admm.objective_ == pytest.approx(bcd.objective_, rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_matrix_is_never_built():
    n = 6000
    S = from_features(factors(n, 5), implicit=True)
    SRF(3, random_state=0, max_iter=1).fit(S)  # compile
    with traced_memory() as peak:
        SRF(3, random_state=0, max_iter=3).fit(S).score(S)
        assert peak() < n * n  # bytes: an eighth of the matrix


def test_an_implicit_similarity_says_so():
    S = from_features(pd.DataFrame(factors(4, 3), index=list("abcd")), implicit=True)
    assert repr(S) == "Similarity(4 items, implicit float64, 3 factors, 100.0% of pairs observed, labelled)"
    assert S.n_items == 4
    assert S.density == 1
    assert not S.factors.flags.writeable
    with pytest.raises(AttributeError, match=r"values are implicit .* use factors"):
        S.values  # noqa: B018
    twin = pickle.loads(pickle.dumps(S))
    np.testing.assert_array_equal(twin.factors, S.factors)
    assert twin.labels == S.labels


def test_bounds_are_refused_where_no_pair_is_missing():
    with pytest.raises(ParameterError, match="bounds must be None unless"):
        SRF(2, bounds=(0, 1)).fit(from_features(factors(), implicit=True))
