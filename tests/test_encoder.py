"""DimensionEncoder: ridge regressions from features to dimensions, scored on items that they have not seen."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from simdims import DimensionEncoder, Discovery, discover, simulate
from simdims.cli import main
from simdims.encoder import PENALTIES, scores_with_intervals

CHECKED = [DimensionEncoder(random_state=0), DimensionEncoder("rbf", random_state=0)]


@pytest.mark.filterwarnings("ignore:Some loadings are negative")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def linear_world(n_items, n_features, seed, *, noise=0.5, n_components=5):
    """Features that are linear in the dimensions, and the best linear map for an unlimited number of items."""
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(n_items, n_components, alpha=0.3, random_state=seed)
    mixing = rng.normal(size=(n_components, n_features))
    X = W @ mixing + noise * rng.normal(size=(n_items, n_features))
    # Moments of the symmetric Dirichlet distribution with parameter 0.3.
    total = 0.3 * n_components
    covariance = (np.eye(n_components) / n_components - 1 / n_components**2) / (total + 1)
    oracle = np.linalg.solve(mixing.T @ covariance @ mixing + noise**2 * np.eye(n_features), mixing.T @ covariance)
    mean = np.full(n_components, 1 / n_components)
    return X, W, lambda X: np.maximum(mean + (X - mean @ mixing) @ oracle, 0.0)


def correlations(A, B):
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(A.T, B.T, strict=True)])


def oracle_penalties(X, W, X_new, W_new):
    """Correlations on new items of ridge regressions whose penalties are chosen on these items, per dimension."""
    scaler = StandardScaler().fit(X)
    Z, Z_new = scaler.transform(X), scaler.transform(X_new)
    ridges = [Ridge(alpha=len(X) * alpha).fit(Z, W) for alpha in np.logspace(-6, 5, 34)]
    return np.max([correlations(W_new, np.maximum(ridge.predict(Z_new), 0)) for ridge in ridges], axis=0)


HARD = [(50, 10, 2.0), (50, 100, 4.0), (100, 100, 4.0), (300, 100, 4.0)]
GRID = [(n, d, noise) for n in (50, 100, 300, 1000) for d in (10, 100, 400) for noise in (0.5, 2.0, 4.0)]


@pytest.mark.parametrize(
    ("n_items", "n_features", "noise"), [*HARD, *(pytest.param(*one, marks=pytest.mark.slow) for one in GRID)]
)
def test_predictions_correlate_nearly_as_highly_as_with_the_best_penalties(n_items, n_features, noise):
    """The best penalties are chosen with knowledge of the loadings of 4,000 new items, for the same few items."""
    differences = []
    for seed in range(5):
        X, W, _ = linear_world(n_items + 4000, n_features, seed, noise=noise)
        X, W, X_new, W_new = X[:n_items], W[:n_items], X[n_items:], W[n_items:]
        encoder = DimensionEncoder(random_state=seed).fit(X, W)
        found = correlations(W_new, encoder.predict(X_new))
        differences.append(found - oracle_penalties(X, W, X_new, W_new))
    assert np.mean(differences) > (-0.02 if n_items >= 300 else -0.03)


@pytest.mark.parametrize(("n_items", "n_features", "noise"), [(300, 20, 0.5), (500, 60, 1.0), (1500, 30, 2.0)])
def test_with_enough_items_scores_are_within_two_hundredths_of_the_best_linear_map(n_items, n_features, noise):
    differences = []
    for seed in range(5):
        X, W, oracle = linear_world(n_items, n_features, seed, noise=noise)
        encoder = DimensionEncoder(random_state=seed).fit(X, W)
        differences.append(encoder.scores_ - correlations(W, oracle(X)))
    assert np.mean(differences) > -0.02
    assert np.mean(differences) < 0.005  # more than the oracle would be a leak


@pytest.mark.parametrize(("n_items", "n_features"), [(60, 10), (30, 50)])
def test_the_linear_encoder_is_scikit_learns_ridge(n_items, n_features):
    X, W, _ = linear_world(n_items, n_features, 0)
    Z = StandardScaler().fit_transform(X)
    penalties = PENALTIES * n_items * n_features / min(n_items - 1, n_features)
    encoder = DimensionEncoder().fit(X, W)
    for k, alpha in enumerate(encoder.alpha_):
        assert np.isclose(penalties, alpha).any()
        ridge = Ridge(alpha=alpha).fit(Z, W[:, k])
        np.testing.assert_allclose(encoder.predict(X)[:, k], np.maximum(ridge.predict(Z), 0), atol=1e-8)
        one = DimensionEncoder().fit(X, W[:, k])
        np.testing.assert_allclose(one.alpha_, RidgeCV(alphas=penalties).fit(Z, W[:, k]).alpha_)


def test_penalties_minimise_own_and_mean_log_errors_of_items_left_out():
    X, W, _ = linear_world(25, 8, 1, noise=1.5)
    W[:, 0] = np.maximum(X[:, 0], 0)
    W[:, 1] = 3.0
    encoder = DimensionEncoder().fit(X, W)
    Z = StandardScaler().fit_transform(X)
    penalties, everyone = PENALTIES * 25, np.arange(25)  # the mean eigenvalue of Z^T Z is 25
    errors = np.zeros((len(penalties), W.shape[1]))
    for a, penalty in enumerate(penalties):
        for i in everyone:
            ridge = Ridge(alpha=penalty).fit(Z[everyone != i], W[everyone != i])
            errors[a] += (ridge.predict(Z[[i]])[0] - W[i]) ** 2
    varying = [0, 2, 3, 4]
    relative = errors[:, varying] / np.sum((W - W.mean(axis=0))[:, varying] ** 2, axis=0)
    criterion = np.log(relative) + np.log(np.maximum(relative, 0.01)).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.alpha_[varying], penalties[criterion.argmin(axis=0)])


def test_the_kernel_encoder_is_kernel_ridge_regression_with_an_intercept():
    X, W, _ = linear_world(50, 8, 1)
    new = linear_world(20, 8, 2)[0]
    encoder = DimensionEncoder("rbf", gamma=0.05).fit(X, W)
    Z, Z_new = (StandardScaler().fit(X).transform(one) for one in (X, new))

    def kernel(one, other):
        return np.exp(-0.05 * np.sum((one[:, None] - other) ** 2, axis=2))

    K, K_new = kernel(Z, Z), kernel(Z_new, Z)
    K_new = K_new - K_new.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    K = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    for k, alpha in enumerate(encoder.alpha_):
        ridge = KernelRidge(alpha=alpha, kernel="precomputed").fit(K, W[:, k] - W[:, k].mean())
        expected = np.maximum(ridge.predict(K_new) + W[:, k].mean(), 0)
        np.testing.assert_allclose(encoder.predict(new)[:, k], expected, atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_item_is_scored_by_an_encoder_that_has_seen_it(kernel):
    X, W, _ = linear_world(60, 12, 3)
    encoder = DimensionEncoder(kernel, random_state=3).fit(X, W)
    held = next(iter(KFold(5, shuffle=True, random_state=np.random.RandomState(0)).split(X)))[1]
    for item in held[:5]:
        poisoned = W.copy()
        poisoned[item] = 1e3
        again = DimensionEncoder(kernel, random_state=3).fit(X, poisoned)
        # Its own prediction does not change, and predictions of items outside of its fold do.
        np.testing.assert_array_equal(again.held_out_predictions_[item], encoder.held_out_predictions_[item])
        assert (again.held_out_predictions_ != encoder.held_out_predictions_).any(axis=1).sum() >= 40


def test_scores_are_correlations_relative_to_the_means_of_training_items():
    X, W, _ = linear_world(40, 6, 2)
    encoder = DimensionEncoder(random_state=2).fit(X, W)
    held_out = encoder.held_out_predictions_
    again = [DimensionEncoder(random_state=2).fit(X, W), DimensionEncoder(random_state=3).fit(X, W)]
    np.testing.assert_array_equal(again[0].scores_, encoder.scores_)
    assert (again[1].scores_ != encoder.scores_).all()
    # Folds are those that make all means consistent with the predictions of constant features.
    means = DimensionEncoder(random_state=2).fit(np.ones((40, 1)), W).held_out_predictions_
    np.testing.assert_allclose(encoder.scores_, correlations(W, held_out - means), atol=1e-12)


def test_scores_of_noise_are_not_positive_on_average():
    rng = np.random.default_rng(0)
    scores = [DimensionEncoder(random_state=s).fit(rng.normal(size=(60, 100)), rng.random((60, 6))).scores_
              for s in range(20)]  # fmt: skip
    assert -0.15 < np.mean(scores) < 0.02


def test_scores_of_weak_relations_are_closer_to_the_truth_than_plain_correlations():
    """Predictions of a fold contain the mean of the other folds, which is low where held-out loadings are high."""
    plain, scores, true = [], [], []
    for seed in range(10):
        X, W, _ = linear_world(3100, 30, seed, noise=3.0)
        encoder = DimensionEncoder(random_state=seed).fit(X[:100], W[:100])
        plain.append(correlations(W[:100], encoder.held_out_predictions_))
        scores.append(encoder.scores_)
        true.append(correlations(W[100:], encoder.predict(X[100:])))
    assert np.mean(plain) + 0.03 < np.mean(scores) < np.mean(true)


def test_intervals_contain_the_true_correlation():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(300):
        latent = rng.normal(size=(150, 2))
        W, predicted = np.exp(latent / 2), np.exp((0.7 * latent + np.sqrt(1 - 0.49) * rng.normal(size=(150, 2))) / 2)
        true = (np.exp(0.7 / 4) - 1) / (np.exp(1 / 4) - 1)  # of two log-normal variables
        interval = scores_with_intervals(W, predicted, rng)[1]
        inside.append((interval[0] <= true) & (true <= interval[1]))
    assert 0.9 <= np.mean(inside) <= 0.98


def test_features_that_are_constant_few_single_precision_or_sparse():
    X, W, _ = linear_world(60, 12, 4)
    plain = DimensionEncoder(random_state=0).fit(X, W)
    constant = np.column_stack([X, np.full(60, 7.0), np.zeros(60)])
    with_constants = DimensionEncoder(random_state=0).fit(constant, W)
    np.testing.assert_allclose(with_constants.held_out_predictions_, plain.held_out_predictions_, atol=1e-9)
    np.testing.assert_allclose(with_constants.predict(constant), plain.predict(X), atol=1e-9)
    single = DimensionEncoder(random_state=0).fit(X.astype(np.float32), W.astype(np.float32))
    np.testing.assert_allclose(single.scores_, plain.scores_, atol=1e-4)
    wide = np.hstack([X] * 10)  # fewer items than features
    np.testing.assert_allclose(DimensionEncoder(random_state=0).fit(wide, W).scores_, plain.scores_, atol=0.02)
    only_constant = DimensionEncoder(random_state=0).fit(np.ones((60, 3)), W)
    np.testing.assert_allclose(only_constant.predict(np.ones((2, 3))), np.tile(W.mean(axis=0), (2, 1)))
    assert np.isnan(only_constant.scores_).all()
    counts = X * (X > 0.5)
    for kernel in ("linear", "rbf"):
        dense = DimensionEncoder(kernel, random_state=0).fit(counts, W)
        sparsely = DimensionEncoder(kernel, random_state=0).fit(sparse.csr_array(counts), W)
        np.testing.assert_allclose(sparsely.scores_, dense.scores_, atol=1e-7)
        np.testing.assert_allclose(sparsely.predict(sparse.csr_array(counts)), dense.predict(counts), atol=1e-7)


def test_a_constant_dimension_has_no_score_and_predicts_itself():
    X, W, _ = linear_world(40, 5, 5)
    W[:, 1] = 0.0
    encoder = DimensionEncoder(random_state=0).fit(X, W)
    assert np.isnan(encoder.scores_[1])
    assert np.isnan(encoder.scores_interval_[:, 1]).all()
    assert np.isfinite(np.delete(encoder.scores_, 1)).all()
    assert (encoder.predict(X)[:, 1] == 0).all()


def test_predictions_are_never_negative_and_keep_labels():
    X, W, _ = linear_world(60, 12, 6, noise=2.0)
    items = [f"item {i}" for i in range(60)]
    features = pd.DataFrame(X, index=items, columns=[f"unit {j}" for j in range(12)])
    loadings = pd.DataFrame(W, index=items, columns=list("abcde"))
    encoder = DimensionEncoder(random_state=0).fit(features.iloc[::-1], loadings)  # matched by name
    predicted = encoder.predict(features.iloc[:7])
    assert list(predicted.index) == items[:7]
    assert list(predicted.columns) == list("abcde")
    assert list(encoder.scores_frame().index) == list("abcde")
    plain = DimensionEncoder(random_state=0).fit(X, W)
    np.testing.assert_allclose(encoder.scores_, plain.scores_)
    assert isinstance(plain.predict(X), np.ndarray)
    assert plain.predict(-100 * X).min() >= 0
    one = clone(encoder).fit(features, loadings["b"])
    assert one.predict(features).name == "b"


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_units_of_features_and_loadings_do_not_matter(kernel):
    X, W, _ = linear_world(40, 6, 8)
    plain = DimensionEncoder(kernel, random_state=0).fit(X, W)
    units = np.array([1e-200, 1e200, 1e300, 1.0, 1e-5, 1e5])
    for scale in (1e-200, 1e200):
        scaled = DimensionEncoder(kernel, random_state=0).fit(X * units, W * scale)
        np.testing.assert_allclose(scaled.scores_, plain.scores_, atol=1e-6)
        np.testing.assert_allclose(scaled.scores_interval_, plain.scores_interval_, atol=1e-6)
        np.testing.assert_allclose(scaled.predict(X * units) / scale, plain.predict(X), atol=1e-6)
    tiny = DimensionEncoder(kernel, random_state=0).fit(sparse.csr_array(X * units), W)
    np.testing.assert_allclose(tiny.scores_, plain.scores_, atol=1e-6)


def test_masked_values_are_missing():
    X, W, _ = linear_world(40, 5, 5)
    for name, pair in (("X", (np.ma.array(X, mask=X > 1), W)), ("y", (X, np.ma.array(W, mask=W > 0.9)))):
        with pytest.raises(ValueError, match=f"^{name} must .*NaN"):
            DimensionEncoder().fit(*pair)
    encoder = DimensionEncoder().fit(X, np.ma.array(W, mask=False))
    with pytest.raises(ValueError, match=r"^X must .*NaN"):
        encoder.predict(np.ma.array(X, mask=X > 1))


def test_an_index_that_numbers_the_items_in_another_order_is_refused():
    X, W, _ = linear_world(40, 5, 5)
    shuffled = pd.DataFrame(X).sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match=r"X must list the items in order.*sort_index"):
        DimensionEncoder().fit(shuffled, W)
    with pytest.raises(ValueError, match="y must list the items in order"):
        DimensionEncoder().fit(X, pd.DataFrame(W).sample(frac=1, random_state=0))
    both = DimensionEncoder(random_state=0).fit(shuffled, pd.DataFrame(W).iloc[::-1])  # matched by number
    expected = DimensionEncoder(random_state=0).fit(X[::-1], W[::-1])
    np.testing.assert_allclose(both.scores_, expected.scores_)


def test_negative_loadings_are_worth_a_warning():
    X, W, _ = linear_world(40, 5, 5)
    with pytest.warns(UserWarning, match="negative"):
        DimensionEncoder().fit(X, W - 0.5)


@pytest.fixture(scope="module")
def found():
    X, W, _ = linear_world(60, 8, 7)
    S = pd.DataFrame(W @ W.T, index=[f"item {i}" for i in range(60)], columns=[f"item {i}" for i in range(60)])
    features = pd.DataFrame(X, index=S.index, columns=[f"unit {j}" for j in range(8)])
    return discover(S.iloc[:50, :50], ranks=3, n_runs=2, random_state=0, progress=False), features


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_saved_result_encodes_new_items(found, tmp_path, kernel):
    result, features = found
    encoded = result.with_encoder(features.iloc[:50], DimensionEncoder(kernel, random_state=0))
    assert result.encoder is None
    encoded.save(tmp_path / "found")
    again = Discovery.load(tmp_path / "found")
    expected = DimensionEncoder(kernel, random_state=0).fit(features.iloc[:50], result).predict(features.iloc[50:])
    pd.testing.assert_frame_equal(again.encode(features.iloc[50:]), expected)
    pd.testing.assert_frame_equal(again.encoder.scores_frame(), encoded.encoder.scores_frame())
    with pytest.raises(ValueError, match="feature names"):
        again.encode(features.iloc[50:, ::-1])
    result.save(tmp_path / "found")  # without an encoder
    assert Discovery.load(tmp_path / "found").encoder is None


def test_the_command_line_encodes_items_that_have_no_loadings(found, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    result, features = found
    result.save("found")
    features.rename_axis("name").to_csv("features.csv")
    features.iloc[:50].rename_axis("name").to_csv("known.csv")
    features.iloc[50:].rename_axis("name").to_csv("new.csv")
    usual = ["--labels", "name", "--seed", "0"]
    assert main(["encode", "found", "features.csv", *usual, "-o", "out.csv"]) == 0
    assert main(["encode", "found", "known.csv", "--new", "new.csv", *usual, "-o", "out2.csv", "--json"]) == 0
    values = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert values["n_new_items"] == 10
    expected = DimensionEncoder(random_state=0).fit(features.iloc[:50], result)
    assert values["scores"][0]["correlation"] == pytest.approx(expected.scores_[0])
    features.iloc[50:, ::-1].rename_axis("name").to_csv("turned.csv")
    assert main(["encode", "found", "known.csv", "--new", "turned.csv", *usual, "-o", "out3.csv"]) == 0
    assert "matched by name" in capsys.readouterr().err
    assert main(["encode", "found", "features.csv"]) == 1
    assert "pass its name as --labels" in capsys.readouterr().err
    for name in ("out.csv", "out2.csv", "out3.csv"):
        written = pd.read_csv(name, index_col="item")
        np.testing.assert_allclose(written.to_numpy(), expected.predict(features.iloc[50:]).to_numpy(), rtol=1e-6)
        assert list(written.index) == list(features.index[50:])
