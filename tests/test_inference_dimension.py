"""dimension_test: leave-one-out matching against recomputation, permutations against enumeration."""

import pickle
import warnings
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import NotFittedError

from simdims import SRF, ParameterError
from simdims.inference import HypothesisTests, collinearity, dimension_test, matching
from simdims.inference.permutations import blocks_of


def correlation(x, w):
    """From the definition; 0 where a side is constant."""
    x, w = x - x.mean(), w - w.mean()
    if np.abs(x).max() < 1e-9 or np.abs(w).max() < 1e-9:
        return 0.0
    return (x @ w) / np.sqrt((x @ x) * (w @ w))


def matching_by_hand(X, W, *, joint=True, absolute=False):
    """Every item's matching, solved from scratch."""
    rows = []
    for item in range(len(X)):
        others = np.arange(len(X)) != item
        C = np.array([[correlation(x[others], w[others]) for w in W.T] for x in X.T])
        C = np.abs(C) if absolute else C
        rows.append(linear_sum_assignment(C, maximize=True)[1] if joint else C.argmax(axis=1))
    return np.array(rows)


def fast_matching(X, W, *, joint=True, absolute=False):
    return matching.leave_one_out_matching(
        matching.standardise(X), matching.standardise(W), joint=joint, absolute=absolute
    )


def statistic_by_hand(X, W, **options):
    matched = matching_by_hand(X, W, **options)
    return np.array([correlation(x, np.array([W[i, matched[i, j]] for i in range(len(W))])) for j, x in enumerate(X.T)])


def draw(n_items, n_hypotheses, n_components, seed, signal=0.0):
    rng = np.random.default_rng(seed)
    W = rng.gamma(0.5, size=(n_items, n_components))
    X = rng.standard_normal((n_items, n_hypotheses))
    X += signal * W[:, rng.permutation(n_components)[:n_hypotheses]]
    return X, W


@given(
    n_items=st.integers(4, 25),
    n_components=st.integers(1, 7),
    missing=st.integers(0, 6),
    seed=st.integers(0, 2**32 - 1),
    signal=st.sampled_from([0.0, 1.0]),
    joint=st.booleans(),
    absolute=st.booleans(),
)
def test_leave_one_out_matching_is_that_of_every_item_solved_from_scratch(
    n_items, n_components, missing, seed, signal, joint, absolute
):
    X, W = draw(n_items, max(n_components - missing, 1), n_components, seed, signal)
    fast = fast_matching(X, W, joint=joint, absolute=absolute)
    by_hand = matching_by_hand(X, W, joint=joint, absolute=absolute)
    # Where two matchings are equally good to rounding, either may be chosen: with few items correlations are +-1.
    if n_items > 5:
        np.testing.assert_array_equal(fast, by_hand)
    for item in range(n_items):
        others = np.arange(n_items) != item
        C = np.array([[correlation(x[others], w[others]) for w in W.T] for x in X.T])
        C = np.abs(C) if absolute else C
        best = C[np.arange(len(C)), by_hand[item]].sum()
        assert C[np.arange(len(C)), fast[item]].sum() == pytest.approx(best, abs=1e-9)
        if joint:
            assert len(set(fast[item])) == len(fast[item])


def test_correlations_without_an_item_are_a_rank_one_change():
    X, W = draw(15, 3, 4, 0)
    x, w = matching.standardise(X), matching.standardise(W)
    downdated = matching._scores_without(x.values.T @ w.values, x, w, slice(0, 15), False)
    for item in range(15):
        others = np.arange(15) != item
        recomputed = np.corrcoef(X[others].T, W[others].T)[:3, 3:]
        np.testing.assert_allclose(downdated[item], recomputed, atol=1e-12)


def test_blocks_of_items_do_not_change_the_matching(monkeypatch):
    X, W = draw(40, 4, 6, 1)
    whole = fast_matching(X, W)
    monkeypatch.setattr(matching, "BLOCK_SCORES", 24 * 7)
    np.testing.assert_array_equal(whole, fast_matching(X, W))


@pytest.mark.parametrize("n_components", [4, 7])
def test_prices_certify_the_matching_they_come_from(n_components):
    rng = np.random.default_rng(2)
    for _ in range(50):
        scores = rng.standard_normal((4, n_components))
        matched = linear_sum_assignment(scores, maximize=True)[1]
        prices = matching._prices(scores, matched)
        net = scores - prices
        own = net[np.arange(4), matched]
        assert (net <= own[:, None] + 1e-12).all()
        free = np.setdiff1d(np.arange(n_components), matched)
        assert (prices[free] == 0).all()
        if free.size:
            assert (prices >= -1e-12).all()


def test_few_assignments_are_solved_if_dimensions_are_clear(monkeypatch):
    """The certificate works: all items but a few keep the matching of all."""
    X, W = draw(200, 6, 6, 3, signal=3.0)
    solved = []

    def counting(cost, *arguments, **options):
        solved.append(1)
        return linear_sum_assignment(cost, *arguments, **options)

    monkeypatch.setattr(matching, "linear_sum_assignment", counting)
    fast_matching(X, W)
    assert len(solved) == 1


JOINT_TWO_SIDED = {"matching": "joint", "alternative": "two-sided"}


@pytest.mark.filterwarnings("ignore:Joint matching:UserWarning")
@pytest.mark.parametrize("options", [{"matching": "joint"}, JOINT_TWO_SIDED, {"matching": "separate"}])
def test_statistic_and_null_are_those_by_hand_and_inputs_stay_as_they_are(options):
    X, W = draw(12, 3, 4, 4, signal=0.5)
    before = X.copy(), W.copy()
    tests = dimension_test(W, X, n_permutations=25, random_state=7, **options)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(W, before[1])
    by_hand = {"joint": options["matching"] == "joint", "absolute": "alternative" in options}
    np.testing.assert_allclose(tests.statistic, statistic_by_hand(X, W, **by_hand), atol=1e-12)
    drawn = np.concatenate([block.draw(12) for block in blocks_of(25, 7)])
    expected = np.array([statistic_by_hand(X[permutation], W, **by_hand) for permutation in drawn])
    np.testing.assert_allclose(tests.null_distribution, expected, atol=1e-12)
    fold = np.abs if "alternative" in options else np.asarray
    larger = (fold(expected) >= fold(tests.statistic) - 1e-10).sum(axis=0)
    np.testing.assert_allclose(tests.pvalue, (1 + larger) / 26)


@pytest.mark.filterwarnings("ignore:Joint matching:UserWarning")
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_p_values_approach_those_of_all_permutations(alternative):
    X, W = draw(6, 2, 3, 5, signal=0.7)
    options = {"absolute": alternative == "two-sided"}
    everything = np.array([statistic_by_hand(X[list(order)], W, **options) for order in permutations(range(6))])
    observed = everything[0]
    fold = np.abs if alternative == "two-sided" else np.asarray
    exact = (fold(everything) >= fold(observed) - 1e-10).mean(axis=0)
    tests = dimension_test(W, X, n_permutations=4_000, alternative=alternative, matching="joint", random_state=0)
    standard_error = np.sqrt(exact * (1 - exact) / 4_000)
    assert (np.abs(tests.pvalue - exact) <= 4 * standard_error + 1e-4).all()


def test_permutations_are_uniform():
    drawn = np.concatenate([block.draw(4) for block in blocks_of(24_000, 3)])
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert ((counts - 1000) ** 2 / 1000).sum() < 60  # chi-squared with 23 degrees of freedom, p < 1e-4


def test_p_is_never_zero_and_the_best_is_one_over_all():
    W = np.random.default_rng(0).random((60, 4))
    tests = dimension_test(W, W, n_permutations=99, random_state=0)
    np.testing.assert_allclose(tests.pvalue, 0.01)
    assert tests.dimension == ("dimension1", "dimension2", "dimension3", "dimension4")
    np.testing.assert_allclose(tests.statistic, 1)


def test_equal_permutations_tie_with_what_was_observed():
    """Two of four items have the property: a third of all permutations give the same two, and count."""
    W = np.array([[0.3, 0.1], [0.9, 0.7], [0.1, 0.5], [0.8, 0.2]]) * np.pi
    x = np.array([0.0, 1.0, 0.0, 1.0])
    everything = np.array([statistic_by_hand(x[list(order), None], W)[0] for order in permutations(range(4))])
    exact = np.mean(everything >= everything[0] - 1e-10)
    tests = dimension_test(W, x, n_permutations=6000, random_state=0)
    assert tests.pvalue[0] == pytest.approx(exact, abs=0.03)
    assert exact >= 1 / 6


def test_one_sided_matching_never_prefers_a_complement():
    """A dimension and its opposite: the property goes to the one it agrees with."""
    rng = np.random.default_rng(1)
    x = (rng.random(40) < 0.5).astype(float)
    W = np.column_stack([1 - x + 0.01 * rng.random(40), x + 0.5 * rng.random(40)])
    one_sided = dimension_test(W, x, n_permutations=99, random_state=0)
    two_sided = dimension_test(W, x, n_permutations=99, alternative="two-sided", random_state=0)
    assert one_sided.dimension == ("dimension2",)
    assert two_sided.dimension == ("dimension1",)
    assert one_sided.statistic[0] > 0 > two_sided.statistic[0]
    assert two_sided.pvalue[0] == 0.01


def test_the_same_seed_gives_the_same_p_values_whatever_n_jobs():
    X, W = draw(30, 3, 4, 6, signal=0.5)
    alone = dimension_test(W, X, n_permutations=150, random_state=5)
    together = dimension_test(W, X, n_permutations=150, random_state=5, n_jobs=2)
    np.testing.assert_array_equal(alone.null_distribution, together.null_distribution)
    np.testing.assert_array_equal(alone.pvalue, together.pvalue)
    other = dimension_test(W, X, n_permutations=150, random_state=6)
    assert (other.null_distribution != alone.null_distribution).any()
    fewer = dimension_test(W, X, n_permutations=20, random_state=5)
    np.testing.assert_array_equal(fewer.null_distribution, alone.null_distribution[:20])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e6, 1e160, 1e300])
def test_results_do_not_depend_on_the_scale_of_hypotheses_or_dimensions(scale):
    X, W = draw(25, 3, 3, 8, signal=0.5)
    options = {"n_permutations": 50, "random_state": 0}
    tests = dimension_test(W, X, **options)
    for scaled in (dimension_test(scale * W, X, **options), dimension_test(W, scale * X, **options)):
        np.testing.assert_allclose(tests.null_distribution, scaled.null_distribution, atol=1e-9)
        np.testing.assert_array_equal(tests.pvalue, scaled.pvalue)
    shifted = dimension_test(W, 1e-9 * X + 3, **options)
    np.testing.assert_allclose(tests.null_distribution, shifted.null_distribution, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Joint matching:UserWarning")
@pytest.mark.parametrize("options", [{"matching": "joint"}, JOINT_TWO_SIDED, {"matching": "separate"}])
def test_rounding_does_not_choose_between_equally_good_dimensions(options):
    """Zeros and ones on both sides: many matchings are equally good, and an affine change of X must not choose."""
    rng = np.random.default_rng(18)
    W, X = (rng.random((2, 30, 6)) < 0.5).astype(float)
    tests = dimension_test(W, X, n_permutations=100, random_state=0, **options)
    changed = dimension_test(W, 3 * X + 0.1, n_permutations=100, random_state=0, **options)
    np.testing.assert_allclose(tests.null_distribution, changed.null_distribution, atol=1e-10)


def test_too_many_permutations_for_the_memory_are_refused():
    X, W = draw(20, 2, 3, 12)
    with pytest.raises(MemoryError, match=r"null distributions would need .* ask for fewer permutations"):
        dimension_test(W, X, n_permutations=10**13, random_state=0)


@pytest.mark.filterwarnings("ignore:Joint matching:UserWarning", "ignore:Some hypotheses:UserWarning")
def test_tied_constant_and_single_item_columns_have_finite_statistics():
    rng = np.random.default_rng(9)
    one = rng.random(20)
    W = np.column_stack([one, one, np.zeros(20), np.eye(20)[0], np.full(20, 0.1)])
    X = np.column_stack([one, one, np.eye(20)[0], np.eye(20)[1]])
    for options in ({"matching": "joint"}, JOINT_TWO_SIDED, {"matching": "separate"}):
        tests = dimension_test(W, X, n_permutations=40, random_state=0, **options)
        assert np.isfinite(tests.statistic).all()
        assert np.isfinite(tests.null_distribution).all()
        assert tests.statistic[0] == pytest.approx(1)


# names


def test_rows_are_matched_by_name():
    X, W = draw(20, 2, 3, 11, signal=1.0)
    items = [f"item{i}" for i in range(20)]
    order = np.random.default_rng(0).permutation(20)
    embedding = pd.DataFrame(W, index=items, columns=["round", "red", "sharp"])
    hypotheses = pd.DataFrame(X, index=items, columns=["a", "b"]).iloc[order]
    named = dimension_test(embedding, hypotheses, n_permutations=30, random_state=0)
    plain = dimension_test(W, X, n_permutations=30, random_state=0)
    np.testing.assert_array_equal(named.pvalue, plain.pvalue)
    assert named.hypotheses == ("a", "b")
    assert set(named.dimension) <= {"round", "red", "sharp"}


def test_other_items_are_reported_before_their_missing_values():
    W = pd.DataFrame(np.random.default_rng(0).random((8, 2)), index=list("abcdefgh"))
    properties = pd.DataFrame({"x": [np.nan, *range(7)]}, index=list("stuvwxyz"))
    with pytest.raises(ParameterError, match=r"must name the same items.*no 'a', but 's'"):
        dimension_test(W, properties)


@pytest.mark.parametrize("form", ["series", "unnamed series", "mapping", "bools", "list"])
def test_hypotheses_come_in_many_forms(form):
    X, W = draw(20, 1, 3, 12)
    flags = X[:, 0] > 0
    given = {
        "series": pd.Series(flags, name="hypothesis1"),
        "unnamed series": pd.Series(flags),
        "mapping": {"hypothesis1": flags},
        "bools": flags,
        "list": flags.astype(int).tolist(),
    }[form]
    tests = dimension_test(W, given, n_permutations=10, random_state=0)
    plain = dimension_test(W, flags.astype(float)[:, None], n_permutations=10, random_state=0)
    assert tests.hypotheses == ("hypothesis1",)
    np.testing.assert_array_equal(tests.pvalue, plain.pvalue)


@pytest.mark.parametrize("shuffled", ["hypotheses", "embedding"])
@pytest.mark.parametrize("other", [np.asarray, pd.DataFrame])
def test_numbers_of_rows_in_another_order_are_not_ignored(shuffled, other):
    X, W = draw(20, 2, 3, 11)
    tables = {"hypotheses": other(X), "embedding": other(W)}
    tables[shuffled] = pd.DataFrame(tables[shuffled]).iloc[::-1]
    with pytest.raises(ValueError, match=f"^{shuffled} must list the items in order .* got the number 19 in row 0"):
        dimension_test(**tables, n_permutations=10)
    tables[shuffled] = tables[shuffled].reset_index(drop=True)
    dimension_test(**tables, n_permutations=10)


def named(index):
    return pd.DataFrame({"x": range(6)}, index=list(index))


@pytest.mark.parametrize(
    ("name", "value", "got"),
    [
        ("hypotheses", np.ones((6, 1)), "1 for every item in 'hypothesis1'"),
        ("hypotheses", np.arange(5.0), "5 rows"),
        ("hypotheses", [1, 2, 3, 4, 5, np.nan], "a missing value in row 5, column 'hypothesis1'"),
        ("hypotheses", list("abcdef"), "'a' in row 0, column 0"),
        ("hypotheses", np.eye(6) + 1, "one value per item, got one matrix .* for models of pairs, use rsa_test"),
        ("hypotheses", np.ones((6, 2, 2)), r"\(6, 2, 2\)"),
        ("hypotheses", {"a": np.eye(6)}, r"\(6, 6\) for 'a'"),
        ("hypotheses", {"a": pd.Series(range(6)), "b": pd.Series(range(6), list("abcdef"))}, "different indices"),
        ("hypotheses", named("abcdeg"), "no 'f', but 'g'"),
        ("hypotheses", pd.Series(range(7), list("abcdefg")), "also 'g'"),
        ("hypotheses", pd.Series([np.nan, 2, 3, 4, 5, 6], list("tuvwxy")), "no 'a', but 't'"),
        ("hypotheses", pd.Series(range(7), list("tuvwxyz")), "no 'a', but 't'"),
        ("hypotheses", [[1, 2], [3, np.nan], [np.nan, 5], [3, 2], [1, 2], [4, 5]], "2 such cells in 2 of 2 columns"),
        ("the index of hypotheses", named("abcdee"), "'e' more than once"),
        ("the index of hypotheses", named(["a", "b", None, "d", "e", "f"]), "none in place 2"),
        ("hypotheses", [10**400, 1, 2, 3, 4, 5], "too large in row 0"),
        ("embedding", np.ones((3, 2)), "3"),
        ("embedding", np.full((6, 2), np.inf), "inf in row 0, column 'dimension1'"),
        ("embedding", np.ones((6, 0)), r"\(6, 0\)"),
        ("n_permutations", 0, "0"),
        ("alternative", "less", "'less'"),
        ("matching", "both", "'both'"),
        ("alpha", 1.5, r"1\.5"),
        ("n_jobs", 0, "0"),
    ],
)
def test_bad_input_is_named(name, value, got):
    embedding = pd.DataFrame(np.random.default_rng(0).random((6, 2)), index=list("abcdef"))
    argument = name.removeprefix("the index of ")
    with pytest.raises(ValueError, match=f"^{name} must .*{got}"):
        dimension_test(**{"embedding": embedding, "hypotheses": np.arange(6.0), argument: value})


def test_joint_matching_needs_as_many_dimensions_as_hypotheses():
    with pytest.raises(ParameterError, match=r"2 dimensions.*got 6.*matching='separate'") as caught:
        dimension_test(np.random.default_rng(0).random((6, 2)), np.eye(6), matching="joint")
    assert caught.value.name == "hypotheses"


@pytest.mark.parametrize("embedding", ["W.csv", None, SRF])
def test_an_embedding_is_an_array_or_a_table(embedding):
    with pytest.raises(TypeError, match="embedding must "):
        dimension_test(embedding, np.arange(6.0))


def test_an_embedding_is_not_taken_from_a_fit_that_was_not_made():
    with pytest.raises(NotFittedError, match="SRF instance is not fitted"):
        dimension_test(SRF(2), np.arange(6.0))


def test_progress_is_shown_on_request(capsys):
    X, W = draw(20, 2, 3, 17)
    dimension_test(W, X, n_permutations=40, random_state=0)
    assert capsys.readouterr().err == ""
    dimension_test(W, X, n_permutations=40, random_state=0, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_more_hypotheses_than_dimensions_are_matched_separately():
    rng = np.random.default_rng(13)
    X, W = rng.random((30, 5)), rng.random((30, 2))
    tests = dimension_test(W, X, n_permutations=20, random_state=0)
    assert len(tests.pvalue) == 5
    assert "separate" in tests.method
    assert "5 hypotheses and 2 dimensions" in tests.method
    assert set(tests.dimension) <= {"dimension1", "dimension2"}


# hypotheses that overlap


def overlapping(seed=0):
    """An embedding, and properties of which some are the same, opposite, or sums of others."""
    rng = np.random.default_rng(seed)
    W = rng.gamma(0.5, size=(60, 8))
    animal, size = (W[:, 1] > 0.3).astype(float), W[:, 0]
    return W, pd.DataFrame({"animal": animal, "animate": animal, "size": size, "round": W[:, 4]})


def warnings_of(*arguments, test=dimension_test, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tests = test(*arguments, n_permutations=99, random_state=0, **options)
    return tests, [str(one.message) for one in caught]


def test_identical_hypotheses_are_named_and_share_a_dimension():
    W, X = overlapping()
    tests, said = warnings_of(W, X)
    assert len(said) == 1
    assert "'animal', 'animate' (r = 1.00)" in said[0]
    assert tests.dimension[0] == tests.dimension[1] == "dimension2"
    assert tests.statistic[0] == tests.statistic[1]
    assert "separate" in tests.method
    assert "'animal'" in tests.method
    assert "own" not in tests.summary()
    # Each p-value is the one that the hypothesis has alone.
    alone = dimension_test(W, X[["animal"]], n_permutations=99, random_state=0)
    assert tests.pvalue[0] == alone.pvalue[0]


def test_joint_matching_is_kept_on_request_with_a_warning():
    W, X = overlapping()
    tests, said = warnings_of(W, X, matching="joint")
    assert len(set(tests.dimension)) == 4
    assert "joint" in tests.method
    assert any("not exact" in text and "'animal'" in text for text in said)
    assert not any("not exact" in text for text in warnings_of(W, X, matching="separate")[1])


def test_hypotheses_without_shared_variance_are_matched_jointly_without_a_warning():
    W, X = overlapping()
    tests, said = warnings_of(W, X[["animate", "size", "round"]])
    assert said == []
    assert "joint" in tests.method
    joint = dimension_test(W, X[["animate", "size", "round"]], matching="joint", n_permutations=99, random_state=0)
    np.testing.assert_array_equal(tests.null_distribution, joint.null_distribution)


@pytest.mark.parametrize("correlation", [0.94, 0.96])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_duplicates_begin_at_a_correlation_of_095(correlation, sign, alternative):
    rng = np.random.default_rng(0)
    x, e = np.linalg.qr(np.column_stack([np.ones(60), rng.standard_normal((60, 2))]))[0].T[1:]
    X = pd.DataFrame({"one": x, "other": sign * (correlation * x + np.sqrt(1 - correlation**2) * e)})
    said = warnings_of(rng.random((60, 4)), X, alternative=alternative)[1]
    expected = correlation > 0.95 and (sign > 0 or alternative == "two-sided")
    assert any(f"'one', 'other' (r = {sign * correlation:.2f})" in text for text in said) == expected


def test_linear_combinations_are_named_and_the_levels_of_a_category_are_not():
    rng = np.random.default_rng(1)
    W = rng.random((60, 9))
    X = pd.get_dummies(pd.Series(rng.integers(0, 3, 60), name="colour"), prefix="colour").astype(float)
    X["living"] = (rng.random(60) < 0.5).astype(float)
    X["lifeless"] = 1 - X["living"]
    assert warnings_of(W, X)[1] == []  # one-sided: opposite levels do not compete
    X["width"], X["height"] = rng.random(60), rng.random(60)
    X["area"] = 2 * X["width"] + 1.5 * X["height"] + 7
    tests, said = warnings_of(W, X)
    assert [text for text in said if "linear combination" in text] == said
    assert len(said) == 1
    assert "'area' is a linear combination of 'width', 'height'" in said[0]
    assert "separate" in tests.method
    opposite = warnings_of(W, pd.DataFrame({"size": X["width"], "smallness": -X["width"]}))[1]
    assert any("'smallness' is a linear combination of 'size'" in text for text in opposite)
    two_sided = warnings_of(W, X[["living", "lifeless"]], alternative="two-sided")
    assert any("'living', 'lifeless' (r = -1.00)" in text for text in two_sided[1])
    assert "separate" in two_sided[0].method


def test_shared_variance_is_that_of_a_regression():
    """One-sided without negative weights: minimised by brute force over the active set."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 4)) + 0.7 * rng.standard_normal((40, 1)) * [1, 1, -1, 1]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for place in range(4):
        others = np.delete(Z, place, axis=1)
        shares = []
        for chosen in product([False, True], repeat=3):
            weights = np.linalg.lstsq(others[:, chosen], Z[:, place], rcond=None)[0]
            residual = Z[:, place] - others[:, chosen] @ weights
            shares.append((1 - residual.var(), bool((weights >= 0).all())))
        signed = collinearity.shared_variance(X, absolute=False)[place]
        assert signed == pytest.approx(max(share for share, allowed in shares if allowed), abs=1e-10)
        assert collinearity.shared_variance(X, absolute=True)[place] == pytest.approx(shares[-1][0], abs=1e-10)


# results


def test_the_table_has_a_row_per_hypothesis():
    X, W = draw(40, 4, 4, 14, signal=0.6)
    tests = dimension_test(W, X, n_permutations=200, random_state=0)
    table = tests.table
    assert len(table) == 4
    assert list(table.columns) == [
        "hypothesis", "statistic", "pvalue", "pvalue_adjusted", "significant", "dimension",
        "n_permutations",
    ]  # fmt: skip
    np.testing.assert_array_equal(table["pvalue_adjusted"], tests.pvalue_adjusted)
    np.testing.assert_array_equal(table["significant"], tests.pvalue_adjusted <= 0.05)


def test_significance_is_that_of_adjusted_p_values():
    tests = HypothesisTests(
        test="rsa",
        hypotheses=tuple("abcd"),
        statistic=np.zeros(4),
        pvalue=np.array([0.01, 0.04, 0.045, 0.5]),
        dimension=(None,) * 4,
        null_distribution=np.zeros((1, 4)),
        alternative="greater",
        alpha=0.05,
        method="",
    )
    # 4/1 x 0.01, and 4/3 x 0.045 for the next two
    np.testing.assert_allclose(tests.pvalue_adjusted, [0.04, 0.06, 0.06, 0.5])
    assert tests.significant.tolist() == [True, False, False, False]


def test_the_summary_says_what_was_found():
    rng = np.random.default_rng(15)
    W = rng.random((50, 3))
    X = pd.DataFrame({"animate": W[:, 1], "large": W[:, 2], "noise": rng.random(50)})
    text = dimension_test(W, X, n_permutations=99, random_state=3).summary()
    assert text.startswith("2 of 3 properties")
    for words in ("correlates with dimension2", "not significant", "99 permutations"):
        assert words in text


def test_results_cannot_be_changed_and_can_be_pickled():
    X, W = draw(20, 2, 2, 16)
    tests = dimension_test(W, X, n_permutations=10, random_state=0)
    with pytest.raises(AttributeError):
        tests.pvalue = 0
    with pytest.raises(ValueError, match="read-only"):
        tests.pvalue[0] = 0
    again = pickle.loads(pickle.dumps(tests))
    pd.testing.assert_frame_equal(again.table, tests.table)


@pytest.mark.parametrize(("shared", "matching"), [(0.22, "joint assignment"), (0.28, "separate matching")])
def test_a_quarter_of_the_variance_in_common_ends_joint_matching(shared, matching):
    rng = np.random.default_rng(0)
    W = rng.uniform(size=(50, 4))
    Q = np.linalg.qr(np.column_stack([np.ones(50), rng.standard_normal((50, 2))]))[0]
    properties = np.column_stack([Q[:, 1], np.sqrt(shared) * Q[:, 1] + np.sqrt(1 - shared) * Q[:, 2]])
    assert matching in dimension_test(W, properties, n_permutations=19, random_state=0).method
