"""rsa_test and combined_test: against scipy on the triangle, and against Mantel tests in plain loops."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import pearsonr, spearmanr

from simdims import SRF, ParameterError, Similarity, from_features, metrics, simulate
from simdims.inference import HypothesisTests, collinearity, combined_test, dimension_test, rsa_test
from simdims.inference.hypotheses import Hypotheses
from simdims.inference.permutations import blocks_of

CORRELATIONS = {"pearson": pearsonr, "spearman": spearmanr}


def similarities(n_items=12, n_components=3, seed=0, observed=1.0):
    W = simulate.dirichlet(n_items, n_components, random_state=seed)
    S = simulate.add_noise(W @ W.T, 0.6, random_state=seed)
    return simulate.mask_pairs(S, observed, random_state=seed), W


def compare_with_loops(tests, S, models, method="pearson", seed=1, atol=1e-10):
    """Statistic, null distribution and p-values against Mantel tests in plain loops."""
    n_permutations = len(tests.null_distribution)
    orders = np.vstack([np.arange(len(S)), drawn(len(S), n_permutations, seed)])
    expected = np.array([[mantel(S, H, method, order) for H in models] for order in orders])
    np.testing.assert_allclose(tests.statistic, expected[0], atol=atol)
    np.testing.assert_allclose(tests.null_distribution, expected[1:], atol=atol)
    fold = np.abs if tests.alternative == "two-sided" else np.asarray
    as_large = (fold(expected[1:]) >= fold(expected[0]) - 1e-10).sum(axis=0)
    np.testing.assert_allclose(tests.pvalue, (1 + as_large) / (1 + n_permutations))


def mantel(S, H, method, order):
    """In plain loops: the observed pairs of S against the pairs of the permuted items in H."""
    s, h = [], []
    for i in range(len(S)):
        for j in range(i + 1, len(S)):
            model = H[order[i], order[j]]
            if not np.isnan(S[i, j]) and not np.isnan(model):
                s.append(S[i, j])
                h.append(model)
    return CORRELATIONS[method](s, h)[0]


def drawn(n_items, n_permutations, random_state):
    return np.concatenate([block.draw(n_items) for block in blocks_of(n_permutations, random_state)])


@pytest.mark.parametrize("method", ["pearson", "spearman"])
@pytest.mark.parametrize("observed", [1.0, 0.6])
@pytest.mark.parametrize("as_matrices", [False, True])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_the_test_is_a_mantel_test_in_plain_loops(method, observed, as_matrices, alternative):
    S, W = similarities(12, observed=observed)
    X = np.round(W, 1)  # ties
    models = [np.outer(x, x) for x in X.T]
    options = {"method": method, "alternative": alternative, "n_permutations": 45, "random_state": 3}
    compare_with_loops(rsa_test(S, models if as_matrices else X, **options), S, models, method, seed=3)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_pairs_that_a_model_does_not_know_are_left_out_on_both_sides(method):
    S, W = similarities(12, observed=0.8, seed=1)
    H = simulate.mask_pairs(W @ W.T, 0.7, random_state=5)
    compare_with_loops(rsa_test(S, [H], method=method, n_permutations=30, random_state=1), S, [H], method)


@pytest.mark.parametrize("offset", [1.0, 2e3, 1e6])
@pytest.mark.parametrize("storage", ["complete", "missing", "sparse", "implicit"])
def test_a_large_mean_of_a_property_costs_no_precision(offset, storage):
    """Years, or sizes in micrometres: x x^T then varies little about a large mean."""
    W = similarities(12)[1]
    x = offset + np.random.default_rng(0).integers(0, 3, 12)
    S = simulate.mask_pairs(W @ W.T, 0.7, random_state=0) if storage in ("missing", "sparse") else W @ W.T
    given = S
    if storage == "sparse":
        given = Similarity(sparse.csr_array(np.nan_to_num(S)), absent="missing")
    elif storage == "implicit":
        given = from_features(W, kernel="linear", implicit=True)
    tests = rsa_test(given, x, n_permutations=30, random_state=1)
    # Pearson's correlation does not change if a constant is left out of the model.
    z = x - offset
    compare_with_loops(tests, S, [offset * (z[:, None] + z) + np.outer(z, z)], atol=1e-11)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_no_side_over_or_underflows(scale, method):
    S, W = similarities(12, observed=0.8)
    H = W @ W.T
    options = {"method": method, "n_permutations": 20, "random_state": 1}
    vectors, model = rsa_test(S, W, **options), rsa_test(S, [H], **options)
    for same, tests in (
        (vectors, rsa_test(scale * S, W, **options)),
        (vectors, rsa_test(S, scale * W, **options)),
        (model, rsa_test(scale * S, [H], **options)),
        (model, rsa_test(S, [scale * H], **options)),
    ):
        np.testing.assert_allclose(tests.null_distribution, same.null_distribution, atol=1e-10)
        np.testing.assert_array_equal(tests.pvalue, same.pvalue)


def test_similarities_that_are_equal_where_a_model_is_known_are_refused():
    """The pairs of the first three items vary, the model knows only the others, and rounding must not count."""
    rng = np.random.default_rng(0)
    for value in (0.1, 0.3, 0.7, 1 / 3):
        for n_items in range(7, 13):
            S = np.full((n_items, n_items), value)
            S[:3] = S[:, :3] = 2.0
            H = rng.random((n_items, n_items))
            H += H.T
            H[:3] = H[:, :3] = np.nan
            with pytest.raises(ValueError, match=r"^hypotheses must vary .* 'hypothesis1'"):
                rsa_test(S, [H], n_permutations=2, random_state=0)


def rare_property(storage, n_items=20, seed=0):
    """A property of two items, whose pair is observed, in similarities most of whose pairs are not."""
    rng = np.random.default_rng(seed)
    S = rng.random((n_items, n_items))
    S += S.T
    gaps = np.triu(rng.random((n_items, n_items)) < 0.8, 1)
    S[gaps | gaps.T] = np.nan
    S[3, 7] = S[7, 3] = 1.9
    for i in range(n_items - 1):  # every item has a partner
        S[i, i + 1] = S[i + 1, i] = rng.random()
    x = np.isin(np.arange(n_items), [3, 7]).astype(float)
    if storage == "weighted":
        return Similarity(np.nan_to_num(S), weights=np.where(np.isnan(S), 0.0, 2.5)), S, x
    if storage == "sparse":
        return Similarity(sparse.csr_array(np.nan_to_num(S)), absent="missing"), S, x
    if storage == "sparse with gaps":
        stored = sparse.csr_array(np.where(np.isnan(S), -1.0, S))
        stored.data[stored.data < 0] = np.nan
        return Similarity(stored, absent="zero"), S, x
    return S, S, x


@pytest.mark.parametrize("storage", ["dense", "weighted", "sparse", "sparse with gaps"])
@pytest.mark.parametrize("method", ["pearson", "spearman"])
@pytest.mark.parametrize("scale", [1.0, 0.1, -3.0])
def test_permutations_without_a_correlation_are_left_out(storage, method, scale):
    if (storage, method) == ("weighted", "spearman"):
        pytest.skip("ranks cannot be weighted")
    given, S, x = rare_property(storage)
    tests = rsa_test(given, scale * x, method=method, n_permutations=400, random_state=5)
    places = [np.flatnonzero(x[order]) for order in drawn(20, 400, 5)]
    defined = np.array([not np.isnan(S[i, j]) for i, j in places])
    assert 40 < defined.sum() < 160
    np.testing.assert_array_equal(~np.isnan(tests.null_distribution[:, 0]), defined)
    # Of one pair the correlation is the larger, the larger its similarity.
    larger = sum(S[i, j] >= S[3, 7] for (i, j), known in zip(places, defined, strict=True) if known)
    assert tests.pvalue[0] == pytest.approx((1 + larger) / (1 + defined.sum()))
    assert tests.n_permutations.tolist() == [defined.sum()]
    assert tests.table["n_permutations"].tolist() == [defined.sum()]
    assert f"{defined.sum()} or more" in tests.summary()
    assert np.isfinite(tests.null_interval()).all()


def test_a_rare_property_among_many_items_leaves_no_rounding_error():
    """Two of 4,000 items: what cancels is a million times larger than what is left."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 4000, (2, 20_000))
    rows, columns = rows[rows != columns], columns[rows != columns]
    values = sparse.coo_array((0.1 + rng.random(len(rows)), (rows, columns)), shape=(4000, 4000)).tocsr()
    S = Similarity(values.maximum(values.T), absent="missing")
    x = np.zeros(4000)
    x[[rows[0], columns[0]]] = 1.0
    with pytest.warns(UserWarning, match="compared with"):
        tests = rsa_test(S, {"rare": x}, n_permutations=200, random_state=0)
    member_pairs = [np.flatnonzero(x[order]) for order in drawn(4000, 200, 0)]
    defined = [S.values[i, j] != 0 for i, j in member_pairs]
    np.testing.assert_array_equal(~np.isnan(tests.null_distribution[:, 0]), defined)


def test_few_permutations_are_a_warning_with_name_and_number():
    S, _, x = rare_property("dense")
    common = np.arange(20.0)
    with pytest.warns(UserWarning, match="'rare' could be compared with only .* of 100 permutations") as caught:
        tests = rsa_test(S, {"rare": x, "common": common}, n_permutations=100, random_state=0)
    assert len(caught) == 1
    left = int(tests.n_permutations[0])
    assert f"only {left} of 100" in str(caught[0].message)
    assert f"{1 / (1 + left):.2g}" in str(caught[0].message)
    assert tests.n_permutations[1] == 100


@pytest.mark.filterwarnings("ignore:.* could be compared with:UserWarning")
def test_no_permutation_to_compare_with_gives_a_p_value_of_one():
    S, _, x = rare_property("dense", seed=3)
    S[~np.eye(20, dtype=bool)] = np.nan
    S[3, 7] = S[7, 3] = 0.4
    S[0, 1] = S[1, 0] = 0.2
    with pytest.warns(UserWarning, match="diagonal"):
        tests = rsa_test(S, x, n_permutations=5, random_state=0)
    assert tests.n_permutations[0] == 0
    assert tests.pvalue[0] == 1
    assert np.isnan(tests.null_interval()).all()
    assert "not significant" in tests.summary()


def test_p_values_approach_those_of_all_permutations():
    S, W = similarities(6, seed=4)
    H = np.outer(W[:, 0], W[:, 0])
    everything = np.array([mantel(S, H, "pearson", order) for order in permutations(range(6))])
    exact = np.mean(everything >= everything[0] - 1e-10)
    tests = rsa_test(S, W[:, 0], n_permutations=4000, random_state=0)
    assert abs(tests.pvalue[0] - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000) + 1e-3


def weighted_correlation(S, omega, x, order):
    upper = np.triu_indices(len(S), 1)
    weights, s, h = omega[upper], S[upper], np.outer(x[order], x[order])[upper]
    s, h = s - np.average(s, weights=weights), h - np.average(h, weights=weights)
    return np.sum(weights * s * h) / np.sqrt(np.sum(weights * s**2) * np.sum(weights * h**2))


@pytest.mark.parametrize("kind", ["dense", "missing", "zero", "weight", "weighted sparse", "held out"])
def test_weights_and_absent_pairs_count_as_they_do_in_a_fit(kind):
    S, W = similarities(20)
    S = S + 0.01  # a zero would not be stored
    rng = np.random.default_rng(0)
    stored = np.triu(rng.random((20, 20)) < 0.5, 1)
    stored |= stored.T
    counts = np.triu(rng.integers(1, 9, size=(20, 20)), 1)
    counts = (counts + counts.T).astype(float)
    sparse_values = sparse.csr_array(np.where(stored, S, 0.0))
    if kind == "dense":
        given, omega, full = Similarity(S, weights=counts), counts, S
    elif kind == "weighted sparse":
        omega, full = np.where(stored, counts, 0.0), S
        given = Similarity(sparse_values, weights=sparse.csr_array(omega), absent="missing")
    elif kind == "held out":
        values = sparse_values.copy()
        values.data[(values.tocoo().row + values.tocoo().col) % 5 == 0] = np.nan
        left_out = np.isnan(values.toarray())
        given = Similarity(values, absent="zero")
        omega, full = np.where(left_out, 0.0, 1.0), np.where(stored & ~left_out, S, 0.0)
    else:
        absent, weight = {"missing": ("missing", 0.0), "zero": ("zero", 1.0), "weight": (0.1, 0.1)}[kind]
        given = Similarity(sparse_values, absent=absent)
        omega, full = np.where(stored, 1.0, weight), np.where(stored, S, 0.0)
    tests = rsa_test(given, W[:, :2], n_permutations=20, random_state=2)
    as_models = rsa_test(given, [np.outer(w, w) for w in W[:, :2].T], n_permutations=20, random_state=2)
    orders = np.vstack([np.arange(20), drawn(20, 20, 2)])
    expected = np.array([[weighted_correlation(full, omega, W[:, k], order) for k in range(2)] for order in orders])
    np.testing.assert_allclose(tests.statistic, expected[0], atol=1e-10)
    np.testing.assert_allclose(tests.null_distribution, expected[1:], atol=1e-10)
    np.testing.assert_allclose(as_models.null_distribution, expected[1:], atol=1e-10)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_implicit_similarities_give_what_the_matrix_gives(method):
    F = np.random.default_rng(0).random((25, 4))
    options = {"method": method, "n_permutations": 15, "random_state": 0}
    implicit = rsa_test(from_features(F, kernel="linear", implicit=True), F[:, :2], **options)
    dense = rsa_test(F @ F.T, F[:, :2], **options)
    np.testing.assert_allclose(implicit.null_distribution, dense.null_distribution, atol=1e-10)


def test_names_of_matrices_and_items_are_used():
    S, W = similarities(12)
    items = [f"i{k}" for k in range(12)]
    order = np.random.default_rng(0).permutation(12)
    H = pd.DataFrame(np.outer(W[:, 0], W[:, 0]), index=items, columns=items)
    labelled = Similarity(S, labels=items)
    shuffled = rsa_test(labelled, {"round": H.iloc[order, order]}, n_permutations=20, random_state=0)
    plain = rsa_test(S, W[:, 0], n_permutations=20, random_state=0)
    assert shuffled.hypotheses == ("round",)
    np.testing.assert_allclose(shuffled.null_distribution, plain.null_distribution, atol=1e-10)
    as_similarity = rsa_test(labelled, [Similarity(H.to_numpy(), labels=items)], n_permutations=20, random_state=0)
    np.testing.assert_allclose(as_similarity.null_distribution, plain.null_distribution, atol=1e-10)


def test_the_same_seed_gives_the_same_p_values_whatever_n_jobs():
    S, W = similarities(20, observed=0.7)
    alone = rsa_test(S, W, n_permutations=90, random_state=5)
    together = rsa_test(S, W, n_permutations=90, random_state=5, n_jobs=2)
    np.testing.assert_array_equal(alone.null_distribution, together.null_distribution)


@pytest.mark.parametrize("kind", ["columns", "matrices", "matrices with gaps"])
def test_models_that_are_nearly_the_same_are_named(kind):
    S, W = similarities(20)
    x, y = 3 + W[:, 0], 3 + W[:, 1]
    X = {"one": x, "opposite": -x, "other": y}  # x x^T and (-x) (-x)^T are the same model
    if kind != "columns":
        X = {name: np.outer(column, column) for name, column in X.items()}
    if kind == "matrices with gaps":
        X["one"][3, 5] = X["one"][5, 3] = np.nan
    with pytest.warns(UserWarning, match="nearly the same") as caught:
        rsa_test(S, X, n_permutations=5, random_state=0)
    assert len(caught) == 1
    assert "'one', 'opposite' (r = 1.00)." in str(caught[0].message)


def test_correlations_between_models_are_those_of_their_pairs():
    rng = np.random.default_rng(0)
    H = rng.random((3, 9, 9))
    H += H.swapaxes(1, 2) + 5
    H[0, 2, 3] = H[0, 3, 2] = np.nan
    H[1, 2, 7] = H[1, 7, 2] = np.nan
    upper = np.triu_indices(9, 1)
    pairs = [matrix[upper] for matrix in H]
    found = collinearity.model_correlations(Hypotheses(tuple("abc"), np.empty((9, 0)), tuple(H)))
    for one, other in permutations(range(3), 2):
        known = ~np.isnan(pairs[one] + pairs[other])
        assert found[one, other] == pytest.approx(pearsonr(pairs[one][known], pairs[other][known])[0])
    X = np.column_stack([1e6 + rng.random(9), rng.random(9) - 0.5])
    found = collinearity.model_correlations(Hypotheses(tuple("ab"), X))
    assert found[0, 1] == pytest.approx(pearsonr(*(np.outer(x, x)[upper] for x in X.T))[0])


S6 = similarities(6)[0]


WEIGHTED = Similarity(S6, weights=np.ones((6, 6)))


@pytest.mark.parametrize(
    ("name", "arguments", "got"),
    [
        ("hypotheses", {"hypotheses": np.eye(6)[0]}, "all of them in 'hypothesis1'"),
        ("hypotheses", {"hypotheses": [np.ones((6, 6))]}, "all of them in 'hypothesis1'"),
        ("hypotheses", {"hypotheses": [np.arange(36.0).reshape(6, 6)]}, r"1 at \(0, 1\) and 6"),
        ("hypotheses", {"hypotheses": [1e-12 * np.arange(36.0).reshape(6, 6)]}, r"1e-12 at \(0, 1\) and 6e-12"),
        ("hypotheses", {"hypotheses": S6}, r"one matrix of shape \(6, 6\)"),
        ("hypotheses", {"hypotheses": pd.DataFrame(S6, list("abcdef"), list("abcdef")).iloc[::-1]}, r"\(6, 6\)"),
        ("hypotheses", {"hypotheses": [WEIGHTED]}, "weights for 'hypothesis1'"),
        ("the names of hypotheses", {"hypotheses": {1: S6, "1": S6}}, "'1' more than"),
        ("hypotheses", {"hypotheses": [pd.DataFrame(S6).map(lambda cell: f"x{cell}")]}, "'x.* of 'hypothesis1'"),
        ("hypotheses", {"hypotheses": [np.eye(5)]}, r"shape \(5, 5\)"),
        ("hypotheses", {"hypotheses": [np.eye(6), np.arange(6)]}, "1 matri"),
        ("hypotheses", {"hypotheses": [sparse.csr_array(np.eye(6))]}, "sparse"),
        ("hypotheses", {"hypotheses": [np.full((6, 6), np.inf)]}, "infinity in 'hypothesis1'"),
        ("hypotheses", {"hypotheses": np.arange(5)}, "5 rows"),
        ("S", {"S": np.ones((6, 6))}, "equal"),
        ("S", {"S": np.eye(3)}, "3"),
        ("method", {"method": "kendall"}, "'kendall'"),
        ("method", {"method": "spearman", "S": WEIGHTED}, "'spearman'"),
    ],
)
def test_bad_input_is_named(name, arguments, got):
    with pytest.raises(ValueError, match=f"^{name} must .*{got}"):
        rsa_test(**{"S": S6, "hypotheses": np.arange(6.0), **arguments})


# combined_test


@pytest.fixture(scope="module")
def fitted():
    S, W = similarities(30, 4, seed=2)
    X = W[:, :3] + 0.2 * np.random.default_rng(1).random((30, 3))
    return S, SRF(4, random_state=0).fit(S).embedding_, X


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_the_parts_are_the_two_tests(fitted, alternative):
    S, W, X = fitted
    options = {"n_permutations": 60, "alternative": alternative, "random_state": 4}
    combined = combined_test(S, W, X, **options)
    for name, alone in (("dimension", dimension_test(W, X, **options)), ("rsa", rsa_test(S, X, **options))):
        part = combined.parts[name]
        np.testing.assert_allclose(part.null_distribution, alone.null_distribution, atol=1e-12)
        np.testing.assert_allclose(part.pvalue, alone.pvalue)
        assert part.dimension == alone.dimension
    assert combined.dimension == combined.parts["dimension"].dimension


@pytest.mark.parametrize("weighting", ["equal", "fit"])
def test_the_smaller_p_value_is_referred_to_its_own_distribution(fitted, weighting):
    S, W, X = fitted
    combined = combined_test(S, W, X, n_permutations=60, weighting=weighting, random_state=4)
    share = 0.5 if weighting == "equal" else min(max(metrics.explained_variance(S, W), 0.2), 0.8)
    for column in range(3):
        smaller = []
        for b in range(61):
            ps = []
            for name in ("dimension", "rsa"):
                part = combined.parts[name]
                values = np.append(part.statistic[column], part.null_distribution[:, column])
                ps.append(np.mean(values >= values[b] - 1e-10))
            smaller.append(min(ps[0] / (2 * share), ps[1] / (2 * (1 - share))))
        assert combined.statistic[column] == pytest.approx(smaller[0])
        assert combined.pvalue[column] == pytest.approx(np.mean(np.array(smaller) <= smaller[0] + 1e-12))
        parts = (combined.parts["dimension"].pvalue[column], combined.parts["rsa"].pvalue[column])
        assert combined.pvalue[column] >= min(parts)


def test_the_table_says_which_part_decided(fitted):
    S, W, X = fitted
    combined = combined_test(S, W, X, n_permutations=60, weighting="equal", random_state=4)
    table = combined.table
    sign = np.sign(table["pvalue_dimension"] - table["pvalue_rsa"])
    assert table["decided_by"].tolist() == sign.map({-1: "dimension", 0: "both", 1: "rsa"}).tolist()


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_both_parts_are_compared_with_permutations_in_which_the_similarities_have_a_correlation(alternative):
    S, _, x = rare_property("dense")
    W = np.random.default_rng(2).random((20, 3))
    X = {"rare": x, "common": np.random.default_rng(3).random(20)}
    options = {"n_permutations": 600, "alternative": alternative, "random_state": 1}
    combined = combined_test(S, W, X, weighting="equal", matching="separate", **options)
    rsa = rsa_test(S, X, **options)
    defined = ~np.isnan(rsa.null_distribution)
    assert 0 < defined[:, 0].sum() < 300
    assert defined[:, 1].all()
    for part in (combined, *combined.parts.values()):
        np.testing.assert_array_equal(~np.isnan(part.null_distribution), defined)
    fold = np.abs if alternative == "two-sided" else np.asarray
    for column in range(2):
        ps = []
        for part in combined.parts.values():
            values = fold(np.append(part.statistic[column], part.null_distribution[defined[:, column], column]))
            ps.append(np.array([np.mean(values >= value - 1e-10) for value in values]))
            assert part.pvalue[column] == pytest.approx(ps[-1][0])
        smaller = np.minimum(*ps)
        assert combined.pvalue[column] == pytest.approx(np.mean(smaller <= smaller[0] + 1e-12))
    assert combined.parts["rsa"].pvalue == pytest.approx(rsa.pvalue)


@pytest.mark.parametrize("scale", [1e-200, 1e100, 1e200])
def test_an_embedding_far_from_the_similarities_has_the_smallest_weight(fitted, scale):
    S, W, X = fitted
    options = {"n_permutations": 30, "random_state": 0}
    far, farther = combined_test(S, 1e3 * W, X, **options), combined_test(S, scale * W, X, **options)
    assert (farther.pvalue > 0).all()
    if scale > 1:
        assert "weight 0.20" in farther.method
        np.testing.assert_array_equal(farther.pvalue, far.pvalue)
    np.testing.assert_array_equal(farther.parts["dimension"].pvalue, far.parts["dimension"].pvalue)


def test_names_link_similarities_embedding_and_hypotheses(fitted):
    S, W, X = fitted
    items = [f"i{k}" for k in range(30)]
    rng = np.random.default_rng(0)
    embedding = pd.DataFrame(W, index=items).iloc[rng.permutation(30)]
    hypotheses = pd.DataFrame(X, index=items).iloc[rng.permutation(30)]
    named = combined_test(Similarity(S, labels=items), embedding, hypotheses, n_permutations=20, random_state=0)
    plain = combined_test(S, W, X, n_permutations=20, random_state=0)
    np.testing.assert_array_equal(named.pvalue, plain.pvalue)


@pytest.mark.parametrize(
    ("name", "value", "got"), [("embedding", np.ones((5, 2)), "5 rows"), ("weighting", "none", "'none'")]
)
def test_bad_input_of_the_combined_test_is_named(name, value, got):
    embedding = np.random.default_rng(1).random((6, 2))
    with pytest.raises(ParameterError, match=f"^{name} must .*{got}"):
        combined_test(**{"S": S6, "embedding": embedding, "hypotheses": np.arange(6.0), name: value})


def test_a_summary_gives_the_correlations_of_single_tests_and_the_pvalues_of_both(fitted):
    S, W, X = fitted
    one = rsa_test(S, X, n_permutations=19, random_state=0)
    assert one.dimension == (None, None, None)
    assert f"r = {one.statistic[0]:+.2f}, p = " in one.summary()
    both = combined_test(S, W, X, n_permutations=19, random_state=0).summary()
    assert "p = " in both
    assert "r = " not in both


@pytest.mark.parametrize(
    ("test", "n_found", "n", "words"),
    [
        ("combined", 0, 1, "0 of 1 property is found in the representation."),
        ("combined", 1, 3, "1 of 3 properties is found in the representation: 1 equally in both."),
        ("combined", 0, 2, "0 of 2 properties are found in the representation."),
        ("dimension", 0, 1, "0 of 1 property correlates significantly with its assigned dimension."),
        ("rsa", 2, 2, "2 of 2 properties correlate significantly with the similarities."),
    ],
)
def test_the_headline_counts_in_grammatical_english(test, n_found, n, words):
    tests = HypothesisTests(
        test=test,
        hypotheses=tuple("abcdef"[:n]),
        statistic=np.zeros(n),
        pvalue=np.where(np.arange(n) < n_found, 0.001, 1.0),
        dimension=("dimension1",) * n,
        null_distribution=np.zeros((9, n)),
        alternative="greater",
        alpha=0.05,
        method="correlation",
        decided_by=("both",) * n if test == "combined" else (),
    )
    assert tests.summary().splitlines()[0] == words
