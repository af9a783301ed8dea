"""The implicit RBF kernel: Nystroem's factors against the matrix that they stand for."""

import pickle

import numpy as np
import pytest
from helpers import no_warnings, refused, traced_memory

from simdims import SRF, Similarity, _memory, features, from_features, load_similarity, select_rank
from simdims.metrics import explained_variance

pytestmark = pytest.mark.filterwarnings("ignore:The RBF kernel is approximated")


def clustered(n=1500, d=20, n_clusters=12, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.normal(size=(n_clusters, d))
    return (centres[rng.integers(n_clusters, size=n)] + rng.normal(size=(n, d))).astype(dtype)


def off_diagonal(matrix):
    return matrix[~np.eye(len(matrix), dtype=bool)]


def product(S):
    F = S.factors.astype(np.float64)
    return F @ F.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_landmarks", [None, 300, 5000])
def test_with_all_items_as_landmarks_the_kernel_is_exact(n_landmarks, dtype):
    X = clustered(300, dtype=dtype)
    S = from_features(X, implicit=True, n_landmarks=n_landmarks)
    dense = from_features(X)
    assert S.factors.dtype == dtype
    assert S.info["n_landmarks"] == 300
    assert S.info["sigma"] == pytest.approx(dense.info["sigma"], rel=1e-6)
    assert S.info["sigma_pairs"] == 300 * 299 // 2
    tolerance = 1e-5 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(product(S), dense.values, atol=tolerance)
    assert S.info["approximation_error"]["largest"] < tolerance
    assert S.info["approximation_error"]["diagonal_rms"] < tolerance


def test_few_landmarks_are_close_and_more_are_closer():
    X = clustered()
    K = from_features(X).values
    errors = []
    for n_landmarks in (100, 300, 1000):
        S = from_features(X, implicit=True, n_landmarks=n_landmarks)
        assert S.factors.shape == (len(X), n_landmarks)
        errors.append(np.sqrt(np.mean(off_diagonal(product(S) - K) ** 2)))
    assert errors[2] < errors[1] / 2 < errors[0] / 4
    assert errors[2] < 0.05 * off_diagonal(K).std()


@pytest.mark.parametrize("n_landmarks", [100, 400])
def test_the_reported_error_is_that_of_all_pairs(n_landmarks):
    X = clustered()
    K = from_features(X).values
    S = from_features(X, implicit=True, n_landmarks=n_landmarks)
    gap, reported = product(S) - K, S.info["approximation_error"]
    assert reported["n_pairs"] == 10_000
    assert reported["rms"] == pytest.approx(np.sqrt(np.mean(off_diagonal(gap) ** 2)), rel=0.1)
    assert reported["largest"] <= np.abs(off_diagonal(gap)).max() + 1e-12
    assert reported["largest"] > 0.3 * np.abs(off_diagonal(gap)).max()
    assert reported["similarity_sd"] == pytest.approx(off_diagonal(K).std(), rel=0.1)
    assert reported["diagonal_rms"] == pytest.approx(np.sqrt(np.mean(np.diagonal(gap) ** 2)), rel=1e-9)
    assert reported["smallest"] >= off_diagonal(product(S)).min() - 1e-12
    assert reported["share_below_zero"] == pytest.approx(np.mean(off_diagonal(product(S)) < 0), abs=0.02)


def test_the_error_of_few_items_is_that_of_every_pair():
    X = clustered(100)
    with pytest.warns(UserWarning, match="approximated from 20 landmarks with an error of .* Raise n_landmarks"):
        S = from_features(X, implicit=True, n_landmarks=20)
    gap = off_diagonal(product(S) - from_features(X).values)
    assert S.info["approximation_error"]["n_pairs"] == 4950
    assert S.info["approximation_error"]["rms"] == pytest.approx(np.sqrt(np.mean(gap**2)))
    assert S.info["approximation_error"]["largest"] == pytest.approx(np.abs(gap).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_good_approximations_do_not_warn_even_if_all_items_are_equally_far_apart(dtype):
    with no_warnings():
        from_features(clustered(dtype=dtype), implicit=True)
        for n_items in (2, 30):
            from_features(1.7 * np.eye(n_items, dtype=dtype), kernel="rbf", implicit=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_to_the_factors_explains_the_matrix_as_well_as_a_fit_to_it(dtype):
    X = clustered(dtype=dtype)
    dense = from_features(X)
    direct = SRF(12, random_state=0).fit(dense)
    S = from_features(X, implicit=True, n_landmarks=700)
    implicit = SRF(12, random_state=0).fit(S)
    assert implicit.converged_
    assert implicit.kkt_residual_ < 1e-2
    assert np.all(np.diff(implicit.history_) <= 1e-6 * implicit.history_[0])
    assert explained_variance(dense, implicit.embedding_) > direct.score(dense) - 0.01
    W = implicit.embedding_.astype(np.float64)
    assert implicit.objective_ == pytest.approx(0.5 * np.sum((product(S) - W @ W.T) ** 2), rel=1e-3)
    assert 0.5 * np.sum((dense.values - W @ W.T) ** 2) < 1.05 * direct.objective_


def test_the_median_of_many_items_is_estimated_from_a_sample():
    X = clustered(2500)
    S = from_features(X, implicit=True, n_landmarks=800)
    assert S.info["sigma_pairs"] == 200_000
    assert S.info["sigma"] == pytest.approx(from_features(X).info["sigma"], rel=2e-3)


def test_the_same_seed_gives_the_same_factors_and_another_one_others():
    X = clustered(500)
    options = {"implicit": True, "n_landmarks": 200}
    first, again = from_features(X, **options), from_features(X, **options)
    np.testing.assert_array_equal(first.factors, again.factors)
    other = from_features(X, **options, random_state=1)
    assert not np.array_equal(first.factors, other.factors)


def test_duplicate_and_constant_rows_are_fine():
    X = np.repeat(clustered(60), 3, axis=0)
    X[:10] = 0.0
    for dtype in (np.float32, np.float64):
        S = from_features(X.astype(dtype), kernel="rbf", implicit=True)
        np.testing.assert_allclose(product(S), from_features(X, kernel="rbf").values, atol=1e-5)
    SRF(3, random_state=0, max_iter=2000).fit(S)


def test_one_item_and_two_are_enough():
    assert product(from_features([[-1.0, 2.0]], implicit=True)) == pytest.approx(1)
    S = from_features([[-1.0, 2.0], [0.5, 1.0]], implicit=True)
    np.testing.assert_allclose(product(S), from_features([[-1.0, 2.0], [0.5, 1.0]]).values, atol=1e-12)


def test_the_scale_and_the_place_of_the_features_do_not_matter():
    X = clustered(400)
    reference = product(from_features(X, implicit=True, n_landmarks=150, random_state=3))
    for changed in (1e-150 * X, 1e150 * X, X + 1e6):
        S = from_features(changed, kernel="rbf", implicit=True, n_landmarks=150, random_state=3)
        np.testing.assert_allclose(product(S), reference, atol=1e-6)


def test_what_is_made_says_so_and_survives_saving(tmp_path):
    S = from_features(clustered(200), implicit=True, n_landmarks=150)
    assert S.signed
    assert repr(S) == "Similarity(200 items, implicit float64, 150 signed factors, 100.0% of pairs observed)"
    assert S.info["approximation"] == "nystroem"
    S.save(tmp_path / "s.npz")
    for twin in (load_similarity(tmp_path / "s.npz"), pickle.loads(pickle.dumps(S))):
        np.testing.assert_array_equal(twin.factors, S.factors)
        assert twin.signed
        assert dict(twin.info)["approximation_error"] == S.info["approximation_error"]


def test_signed_factors_must_be_asked_for():
    F = [[1.0, -0.5], [0.5, 1.0]]
    with refused("factors", "-0.5"):
        Similarity.from_factors(F)
    assert Similarity.from_factors(F, signed=True).signed
    assert not Similarity.from_factors(np.abs(F)).signed


def test_ranks_can_be_selected_from_them():
    S = from_features(clustered(150, n_clusters=3), implicit=True, n_landmarks=100)
    selection = select_rank(S, [1, 3, 5], sampling=0.6, n_repeats=1, random_state=0)
    assert selection.rank in (3, 5)


def test_the_matrix_is_never_built():
    n, n_landmarks = 12_000, 200
    X = clustered(n)
    from_features(X[:50], implicit=True)  # imports
    with traced_memory() as peak:
        from_features(X, implicit=True, n_landmarks=n_landmarks)
        assert peak() < n * n  # bytes: an eighth of the matrix


def test_too_little_memory_is_said_before_the_work(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 2**20)
    monkeypatch.setattr(features, "_centre_and_unit", lambda X: pytest.fail("work was done"))
    with pytest.raises(MemoryError, match=r"similarities of 20000 items to 1000 landmarks .* fewer n_landmarks"):
        from_features(np.random.default_rng(0).normal(size=(20_000, 2)), implicit=True)
