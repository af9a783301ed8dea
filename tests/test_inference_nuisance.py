"""Tests with nuisance variables, and regressions on several models, against slow definitions; calibration."""

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from report_examples import made, sorted_embedding
from scipy.optimize import nnls
from scipy.stats import rankdata

from simdims import Similarity, combined_test, dimension_test, plots, rsa_regression, rsa_test, simulate
from simdims._parallel import root_seed
from simdims.cli import main
from simdims.inference import nuisance as module
from simdims.inference.hypotheses import Hypotheses
from simdims.inference.permutations import Block

QUICK = {"n_permutations": 40, "random_state": 0, "progress": False}


def world(n_items, correlation, kind, rng, effect=0.0):
    """A nuisance that the dimensions depend on, and a hypothesis that depends on the nuisance."""
    z = rng.normal(size=n_items)
    x = correlation * z + np.sqrt(1 - correlation**2) * rng.normal(size=n_items)
    x = (x > 0.3).astype(float) if kind == "category" else x
    W = rng.gamma(0.5, size=(n_items, 4))
    W[:, 0] *= np.exp(z) / 2
    W[:, 1] += np.maximum(z, 0)
    W[:, 2] += effect * (x - x.min())
    return z, x, W


def similarities(W, rng):
    noise = rng.normal(size=(len(W), len(W)))
    S = W @ W.T
    return np.maximum(S + 0.3 * S.std() * (noise + noise.T), 0)


def residual(y, *columns, weights=None):
    """What a regression on a constant and columns leaves."""
    roots = np.ones(len(y)) if weights is None else np.sqrt(weights)
    D = np.column_stack([np.ones(len(y)), *columns])
    b = np.linalg.lstsq(D * roots[:, None], (y.T * roots).T, rcond=None)[0]
    return y - D @ b


# --- definitions ----------------------------------------------------------------------------------------------------


def test_the_dimension_statistic_is_the_correlation_of_residuals_with_the_matched_residual_dimension():
    rng = np.random.default_rng(0)
    z, x, W = world(30, 0.7, "number", rng, effect=0.5)
    other = rng.normal(size=30)
    found = dimension_test(W, {"x": x}, nuisance={"z": z, "other": other}, **QUICK)
    x, W = residual(x, z, other), residual(W, z, other)
    column = np.empty(30)
    for item in range(30):
        rest = np.arange(30) != item
        r = [np.corrcoef(x[rest], w[rest])[0, 1] for w in W.T]
        column[item] = W[item, np.argmax(r)]
    assert found.statistic[0] == pytest.approx(np.corrcoef(x, column)[0, 1], abs=1e-10)
    assert found.dimension == ("dimension3",)
    assert "given z, other" in found.method


def pair_models(*columns, pairs):
    first, second = pairs
    return [model for z in columns for model in (z[first] * z[second], z[first] + z[second])]


@pytest.mark.parametrize("case", ["complete", "missing", "weighted", "spearman"])
def test_the_rsa_statistic_is_a_partial_correlation_over_pairs(case):
    rng = np.random.default_rng(1)
    z, x, W = world(25, 0.7, "category", rng, effect=0.5)
    S, first, second = similarities(W, rng), *np.triu_indices(25, 1)
    omega = None
    if case == "missing":
        S = simulate.mask_pairs(S, 0.5, random_state=0)
    if case == "weighted":
        omega = rng.random((25, 25)) + 0.1
        omega = omega + omega.T
    method = "spearman" if case == "spearman" else "pearson"
    found = rsa_test(Similarity(S, weights=omega), {"x": x, "y": x + z}, nuisance={"z": z}, method=method, **QUICK)
    known = ~np.isnan(S[first, second])
    pairs = first[known], second[known]
    w = np.ones(known.sum()) if omega is None else omega[pairs]
    # Standardised columns have the same residuals as the columns themselves, but other ranks.
    z = (z - z.mean()) / np.linalg.norm(z - z.mean())
    scale = rankdata if method == "spearman" else np.asarray
    models = [scale(model) for model in pair_models(z, pairs=pairs)]
    s = residual(scale(S[pairs]), *models, weights=w)
    h = residual(scale(x[pairs[0]] * x[pairs[1]]), *models, weights=w)
    expected = (w * s) @ h / np.sqrt(((w * s) @ s) * ((w * h) @ h))
    assert found.statistic[0] == pytest.approx(expected, abs=1e-9)


def test_matrices_are_partialled_out_over_pairs():
    rng = np.random.default_rng(2)
    z, x, W = world(20, 0.7, "number", rng, effect=0.5)
    S, pairs = similarities(W, rng), np.triu_indices(20, 1)
    H, N = np.abs(x[:, None] - x), np.abs(z[:, None] - z)
    found = rsa_test(S, {"h": H}, nuisance={"n": N}, **QUICK)
    s, h = residual(S[pairs], N[pairs]), residual(H[pairs], N[pairs])
    assert found.statistic[0] == pytest.approx(s @ h / np.linalg.norm(s) / np.linalg.norm(h), abs=1e-10)
    # A column beside a matrix is x x^T.
    mixed = rsa_test(S, {"x": x}, nuisance={"n": N}, **QUICK)
    outer = rsa_test(S, {"x": np.outer(x, x)}, nuisance={"n": N}, **QUICK)
    np.testing.assert_allclose(mixed.null_distribution, outer.null_distribution, atol=1e-9)


def test_the_parts_of_the_combined_test_are_the_two_tests():
    rng = np.random.default_rng(3)
    z, x, W = world(30, 0.7, "number", rng, effect=0.3)
    S, b = similarities(W, rng), (x > 0).astype(float)
    arguments = {"hypotheses": {"x": x, "b": b}, "nuisance": {"z": z}, **QUICK}
    both = combined_test(S, W, **arguments)
    for part, one in (("dimension", dimension_test(W, **arguments)), ("rsa", rsa_test(S, **arguments))):
        np.testing.assert_allclose(both.parts[part].statistic, one.statistic)
        np.testing.assert_allclose(both.parts[part].pvalue, one.pvalue)
        assert both.parts[part].dimension == one.dimension


def test_the_result_depends_on_the_seed_only():
    rng = np.random.default_rng(4)
    z, x, W = world(30, 0.7, "category", rng)
    settings = {"n_permutations": 60, "progress": False}
    one, two, other = (
        dimension_test(W, {"x": x}, nuisance={"z": z}, random_state=seed, n_jobs=jobs, **settings)
        for seed, jobs in ((0, 1), (0, 2), (1, 1))
    )
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)
    assert not np.array_equal(one.null_distribution, other.null_distribution)


# --- resampling -----------------------------------------------------------------------------------------------------


def test_numbers_are_resampled_by_permuting_their_residuals_given_their_regression():
    rng = np.random.default_rng(5)
    z, x = rng.normal(size=(2, 20))
    x = x + z
    given = module.resampling(Hypotheses(("x",), x[:, None]), module.Nuisance(("z",), z[:, None], ()), 0)
    block = Block(0, 0, 5)
    drawn = given.draw(block)[:, :, 0] * np.abs(x).max()
    e = residual(x, z)
    for row, order in zip(drawn, block.draw(20), strict=True):
        left = residual(e[order], z)
        np.testing.assert_allclose(row, x - e + left * np.linalg.norm(e) / np.linalg.norm(left), atol=1e-12)
        # The regression has the estimates of the observed one.
        np.testing.assert_allclose(np.polyfit(z, row, 1), np.polyfit(z, x, 1))
        assert np.linalg.norm(residual(row, z)) == pytest.approx(np.linalg.norm(e))


def test_categories_are_permuted_with_their_odds():
    """Frequencies of all arrangements of a small category against their probabilities."""
    x = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    log_odds = np.array([0.0, 0.5, -1.0, 1.0, 0.3])
    arrangements = sorted(set(permutations(x)))
    p = np.array([np.exp(np.dot(one, log_odds)) for one in arrangements])
    rng = np.random.default_rng(6)
    drawn = x[module.swapped(np.tile(np.arange(5), (20_000, 1)), x, log_odds, rng)]
    counts = np.array([np.sum((drawn == one).all(axis=1)) for one in arrangements])
    np.testing.assert_allclose(counts / 20_000, p / p.sum(), atol=0.012)


def test_a_category_keeps_its_number_of_items():
    rng = np.random.default_rng(7)
    z, x, _ = world(40, 0.7, "category", rng)
    given = module.resampling(Hypotheses(("x",), x[:, None]), module.Nuisance(("z",), z[:, None], ()), 0)
    drawn = given.draw(Block(0, 0, 50))
    assert (drawn.sum(axis=1) == x.sum()).all()
    # Drawn categories depend on the nuisance as the observed one does.
    slopes = [np.corrcoef(one[:, 0], z)[0, 1] for one in drawn]
    assert np.mean(slopes) == pytest.approx(np.corrcoef(x, z)[0, 1], abs=0.1)


# --- calibration ----------------------------------------------------------------------------------------------------


def rejections(n_datasets, n_items, correlation, kind, first_seed, n_permutations, nuisance=True, effect=0.0):
    found = []
    for seed in range(first_seed, first_seed + n_datasets):
        rng = np.random.default_rng(seed)
        z, x, W = world(n_items, correlation, kind, rng, effect)
        S = similarities(W, rng)
        tests = combined_test(S, W, {"x": x}, nuisance={"z": z} if nuisance else None, n_permutations=n_permutations,
                              random_state=seed, progress=False)  # fmt: skip
        found.append([tests.pvalue[0], tests.parts["dimension"].pvalue[0], tests.parts["rsa"].pvalue[0]])
    return np.mean(np.array(found) <= 0.05, axis=0)


@pytest.mark.parametrize("kind", ["number", "category"])
def test_nuisance_explains_away_what_it_causes(kind):
    with_nuisance = rejections(100, 40, 0.7, kind, 0, 39)
    without = rejections(60, 40, 0.7, kind, 0, 39, nuisance=False)
    assert (with_nuisance <= 0.13).all()
    assert (without >= 0.25).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "category"])
@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_five_percent_of_true_null_hypotheses_are_rejected(kind, correlation):
    shares = rejections(2000, 40, correlation, kind, 10_000, 99)
    assert (shares >= 0.04).all()
    assert (shares <= 0.06).all()


def test_an_effect_beyond_the_nuisance_is_found():
    assert (rejections(20, 40, 0.7, "number", 500, 39, effect=1.0)[:2] >= 0.8).all()


def test_a_hypothesis_without_a_partial_correlation_is_refused():
    rng = np.random.default_rng(8)
    z, x, W = world(30, 0.0, "number", rng)
    S, far = similarities(W, rng), {"x": x + 1e9}  # its products are sums, up to rounding
    with pytest.raises(ValueError, match=r"hypotheses must vary .*'x'.*subtract the mean"):
        rsa_test(S, far, nuisance={"z": z}, **QUICK)
    with pytest.raises(ValueError, match="hypotheses must vary"):
        combined_test(S, W, far, nuisance={"z": z}, **QUICK)
    rare = np.zeros(30)
    rare[:2] = 1
    S[:2, :2] = np.nan  # the only pair of items that have the property
    with pytest.raises(ValueError, match=r"hypotheses must vary .*'rare'.*observed pairs of items that have it"):
        rsa_test(S, {"x": x, "rare": rare}, nuisance={"z": z}, **QUICK)
    with pytest.raises(ValueError, match="hypotheses must vary"):
        rsa_test(S, {"rare": np.outer(rare, rare)}, nuisance={"z": z}, **QUICK)


# --- regression -----------------------------------------------------------------------------------------------------


def held_out_r2(S, models, free, fold, signed):
    """The definition, pair by pair."""
    first, second = np.triu_indices(len(S), 1)
    known = ~np.isnan(S[first, second])
    first, second = first[known], second[known]
    y = S[first, second]
    F = np.column_stack([np.ones(len(y)), *(m[first, second] for m in free)])
    H = np.column_stack([m[first, second] for m in models]) if models else np.empty((len(y), 0))
    errors = spread = 0.0
    for one in range(fold.max() + 1):
        held = (fold[first] == one) | (fold[second] == one)
        train = ~held
        if signed or not models:
            b = np.linalg.lstsq(np.hstack([F, H])[train], y[train], rcond=None)[0]
        else:  # a free weight is the difference of two non-negative ones
            b = nnls(np.hstack([F, -F, H])[train], y[train], maxiter=10_000)[0]
            b = np.concatenate([b[: F.shape[1]] - b[F.shape[1] : 2 * F.shape[1]], b[2 * F.shape[1] :]])
        errors += np.sum((y[held] - np.hstack([F, H])[held] @ b) ** 2)
        spread += np.sum((y[held] - y[train].mean()) ** 2)
    return 1 - errors / spread


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("as_matrices", [False, True])
def test_unique_contributions_are_differences_of_held_out_r2(signed, as_matrices):
    rng = np.random.default_rng(8)
    X = rng.gamma(0.5, size=(30, 3))
    z = X[:, 0] + rng.gamma(0.5, size=30)
    S = simulate.mask_pairs(similarities(X[:, :2], rng), 0.8, random_state=0)
    outer = [np.outer(x, x) for x in X.T]
    models = dict(zip("abc", outer if as_matrices else X.T, strict=True))
    found = rsa_regression(S, models, nuisance={"z": z}, signed=signed, n_folds=4, **QUICK)
    seeded = np.random.default_rng(np.random.SeedSequence(root_seed(0), spawn_key=(3,)))
    fold = seeded.permutation(np.arange(30) % 4)
    free = [np.outer(z, z), z[:, None] + z]
    full = held_out_r2(S, outer, free, fold, signed)
    assert found.explained_variance == pytest.approx(full, abs=1e-7)
    for j in range(3):
        rest = [outer[k] for k in range(3) if k != j]
        assert found.statistic[j] == pytest.approx(full - held_out_r2(S, rest, free, fold, signed), abs=1e-7)
    assert found.significant[0]
    assert not found.significant[2]
    assert found.coefficients[:2] == pytest.approx([1.0, 1.0], abs=0.3)
    assert "coefficient" in found.table


def test_a_regression_has_one_model_or_several_and_copes_with_labels():
    rng = np.random.default_rng(9)
    W = rng.gamma(0.5, size=(20, 3))
    items = [f"item {i}" for i in range(20)]
    S = pd.DataFrame(W @ W.T, index=items, columns=items)
    models = pd.DataFrame(W, index=items, columns=["a", "b", "c"])
    in_order = rsa_regression(S, models, **QUICK)
    shuffled = rsa_regression(S, models.sample(frac=1, random_state=0), **QUICK)
    np.testing.assert_allclose(in_order.statistic, shuffled.statistic)
    assert in_order.explained_variance == pytest.approx(1.0)
    one = rsa_regression(S, models["a"], **QUICK)
    assert one.pvalue[0] == pytest.approx(1 / 41)
    assert "1 of 1 model explains" in str(one)
    large = rsa_regression(S, models * [1e200, 1.0, 1.0], **QUICK)  # squares are out of range
    np.testing.assert_allclose(large.statistic, in_order.statistic, rtol=1e-6)
    matrices = [np.outer(x, x) for x in W.T]
    plain = rsa_regression(S, matrices, **QUICK)
    scaled = rsa_regression(S, [matrices[0] * 2.0**900, matrices[1], matrices[2] * 2.0**-900], **QUICK)
    np.testing.assert_allclose(scaled.statistic, plain.statistic, rtol=1e-6)
    np.testing.assert_allclose(scaled.coefficients * [2.0**900, 1, 2.0**-900], plain.coefficients, rtol=1e-6)


def regressions(n_datasets, n_items, kind, first_seed, n_permutations):
    found = []
    for seed in range(first_seed, first_seed + n_datasets):
        rng = np.random.default_rng(seed)
        z, x, W = world(n_items, 0.7, kind, rng)
        settings = {"n_permutations": n_permutations, "random_state": seed, "progress": False}
        found.append(rsa_regression(similarities(W, rng), {"x": x, "z": z}, **settings).pvalue[0])
    return np.mean(np.array(found) <= 0.05)


def test_a_model_that_correlates_with_a_true_one_is_rarely_found():
    assert regressions(80, 30, "number", 0, 39) <= 0.13


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "category"])
def test_five_percent_of_models_without_a_contribution_are_found(kind):
    assert 0.035 <= regressions(2000, 40, kind, 20_000, 99) <= 0.06


# --- the command line -----------------------------------------------------------------------------------------------


def test_columns_are_nuisance_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(10)
    z, x, W = world(30, 0.7, "number", rng)
    frame = pd.DataFrame({"x": x, "z": z})
    frame.to_csv("properties.csv", index=False)
    pd.DataFrame(W).to_csv("W.csv", index=False, header=[f"d{k}" for k in range(4)])
    np.save("S.npy", similarities(W, rng))
    usual = ["--nuisance", "z", "--permutations", "40", "--seed", "0", "--quiet", "--json"]
    assert main(["test", "W.csv", "properties.csv", *usual]) == 0
    assert main(["rsa", "S.npy", "properties.csv", *usual]) == 0
    test, rsa = map(json.loads, capsys.readouterr().out.splitlines())
    expected = dimension_test(W, frame[["x"]], nuisance=frame[["z"]], **QUICK)
    assert test["tests"][0]["pvalue"] == pytest.approx(expected.pvalue[0])
    expected = rsa_test(np.load("S.npy"), frame[["x"]], nuisance=frame[["z"]], **QUICK)
    assert rsa["tests"][0]["statistic"] == pytest.approx(expected.statistic[0])
    assert main(["test", "W.csv", "properties.csv", "--nuisance", "size"]) == 1
    assert "'size'" in capsys.readouterr().err
    assert main(["test", "W.csv", "properties.csv", "--nuisance", "x", "z"]) == 1


def test_models_may_be_the_dimensions_of_another_result():
    rng = np.random.default_rng(13)
    W = rng.gamma(0.5, size=(30, 3)) * [3, 2, 1]
    found, S = made(W), W @ W.T + 0.1
    expected = rsa_regression(S, found.embedding_frame(), **QUICK)
    tests = rsa_regression(S, found, **QUICK)
    assert tests.hypotheses == found.dimension_names
    np.testing.assert_array_equal(tests.statistic, expected.statistic)
    given = dimension_test(rng.random((30, 2)), {"x": rng.normal(size=30)}, nuisance=found.consensus, **QUICK)
    assert given.nuisance == found.dimension_names


@pytest.mark.parametrize("as_matrices", [False, True])
def test_nuisance_keeps_its_names(as_matrices):
    rng = np.random.default_rng(12)
    W, z = sorted_embedding(20, 3), rng.normal(size=20)
    test, data, z = (rsa_test, W @ W.T, np.outer(z, z)) if as_matrices else (dimension_test, W, z)
    hypotheses = {"x": rng.normal(size=20)}
    named = test(data, hypotheses, nuisance={"my hypothesis": z}, **QUICK)
    assert named.nuisance == ("my hypothesis",)
    numbered = test(data, hypotheses, nuisance=[z] if as_matrices else pd.Series(z), **QUICK)
    assert numbered.nuisance == ("nuisance1",)
    with pytest.raises(ValueError, match=r"^nuisance must vary .* in 'nuisance2'"):
        dimension_test(W, hypotheses, nuisance=np.column_stack([rng.normal(size=20), np.ones(20)]), **QUICK)
    with pytest.raises(ValueError, match=r"^nuisance must be columns .* one matrix .* use rsa_test"):
        dimension_test(W, hypotheses, nuisance=W @ W.T, **QUICK)


def test_results_are_shown_everywhere(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(11)
    W = sorted_embedding(30, 3)
    found = made(W)
    z, x = W[:, 0] + rng.normal(size=30), rng.normal(size=30)
    for tests in (
        dimension_test(found, {"x": x}, nuisance={"z": z}, **QUICK),
        rsa_regression(found, {"x": x, "first": W[:, 0]}, nuisance={"z": z}, **QUICK),
    ):
        assert tests.nuisance == ("z",)
        assert tests.to_dict()["nuisance"] == ["z"]
        assert "conditional permutations of the items given z" in found.methods_text(tests)
        assert "given the nuisance" in tests.summary()
        found.report(tmp_path / "page.html", tests=tests)
        assert plots.hypothesis_tests(tests).get_xlabel()
