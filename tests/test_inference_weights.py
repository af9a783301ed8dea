"""weight_test: the statistic from its definition, exact p-values by enumeration, calibration, and real people."""

import warnings
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from simdims import JointSRF, ParameterError, SimilaritySet, from_dissimilarity, simulate, weight_test


def weights_of(n_systems=10, n_components=3, seed=0):
    return np.random.default_rng(seed).gamma(2.0, 0.5, size=(n_systems, n_components))


def test_two_groups_are_welchs_t_and_all_assignments_are_enumerated():
    weights = weights_of(9)
    group = np.array(list("aabababba"))
    tests = weight_test(weights, group)
    for k in range(3):
        everything = []
        for chosen in combinations(range(9), 4):
            is_b = np.isin(np.arange(9), chosen)
            t = stats.ttest_ind(weights[is_b, k], weights[~is_b, k], equal_var=False).statistic
            everything.append(t / np.sqrt(t**2 + 7))
            if np.array_equal(is_b, group == "b"):
                observed = everything[-1]
        assert tests.statistic[k] == pytest.approx(observed)
        assert len(tests.null_distribution) == len(everything) - 1
        expected = np.mean(np.abs(everything) >= abs(observed) - 1e-10)
        assert tests.pvalue[k] == pytest.approx(expected)
    np.testing.assert_allclose(tests.pvalue_adjusted, stats.false_discovery_control(tests.pvalue))


def test_a_group_of_one_is_compared_with_the_spread_of_the_others():
    weights = weights_of(8)
    tests = weight_test(weights, ["a"] + ["b"] * 7)
    assert len(tests.null_distribution) == 7
    assert np.isfinite(tests.statistic).all()
    assert tests.effect == pytest.approx(weights[1:].mean(axis=0) - weights[0])


def test_scores_are_a_correlation_and_few_systems_are_exact():
    weights = weights_of(6)
    score = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6])
    tests = weight_test(weights, score)
    assert len(tests.null_distribution) == 719
    for k in range(3):
        observed = abs(stats.pearsonr(weights[:, k], score).statistic)
        everything = [abs(stats.pearsonr(weights[:, k], order).statistic) for order in permutations(score)]
        assert tests.pvalue[k] == pytest.approx(np.mean(np.array(everything) >= observed - 1e-10))


def test_several_groups_are_the_root_of_the_share_of_variance_between_them():
    weights = weights_of(12)
    group = np.array(list("abcabcabcaab"))
    tests = weight_test(weights, group, random_state=0)
    for k in range(3):
        column = weights[:, k]
        between = sum((group == g).sum() * (column[group == g].mean() - column.mean()) ** 2 for g in "abc")
        assert tests.statistic[k] == pytest.approx(np.sqrt(between / np.sum((column - column.mean()) ** 2)))


def test_many_systems_are_compared_with_random_permutations():
    weights, group = weights_of(40), np.repeat(["a", "b"], 20)
    one, two = (weight_test(weights, group, n_permutations=500, random_state=0) for _ in range(2))
    assert len(one.null_distribution) == 500
    np.testing.assert_array_equal(one.pvalue, two.pvalue)
    expected = [stats.ttest_ind(weights[:20, k], weights[20:, k]).pvalue for k in range(3)]
    np.testing.assert_allclose(one.pvalue, expected, atol=0.07)


def test_pairs_are_permuted_within_and_differences_between_people_do_not_matter():
    rng = np.random.default_rng(0)
    person, session = np.repeat(np.arange(8), 2), np.tile(["first", "second"], 8)
    difference = rng.normal(0.3, 0.5, size=8)
    weights = rng.normal(size=8).repeat(2) * 100 + 500
    weights[1::2] += difference
    tests = weight_test(weights[:, None], session, within=person)
    assert len(tests.null_distribution) == 2**8 - 1
    flips = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    means = np.abs(flips @ difference)
    assert tests.pvalue[0] == pytest.approx(np.mean(means >= abs(difference.sum()) - 1e-9))
    alone = weight_test(weights[:, None], session, random_state=0)
    assert alone.pvalue[0] > 0.5


def test_values_are_found_in_info_and_series_are_matched_by_name():
    stack = np.stack([simulate.dirichlet(12, 2, random_state=0) * a @ simulate.dirichlet(12, 2, random_state=0).T
                      for a in np.random.default_rng(0).uniform(0.5, 1.5, size=(6, 2))])  # fmt: skip
    info = pd.DataFrame({"group": list("xyxyxy"), "score": [1, 2, 3, 4, 5, 7]})
    joint = JointSRF(2, alpha=0.0, shrinkage=0.01, random_state=0).fit(SimilaritySet(stack, info=info))
    for name in ("group", "score"):
        expected = weight_test(joint.weights_, info[name].tolist())
        np.testing.assert_allclose(weight_test(joint, name).pvalue, expected.pvalue)
        shuffled = pd.Series(info[name].to_numpy(), index=joint.names_).iloc[[3, 1, 0, 5, 4, 2]]
        np.testing.assert_allclose(weight_test(joint, shuffled).pvalue, expected.pvalue)
    for by in ("score", info["score"]):
        assert "related to the scores.\nCorrelation of the weights with 'score' " in weight_test(joint, by).summary()
    assert "related to the groups." in weight_test(joint.weights_, ["scores", "others"] * 3).summary()
    assert "'y' rather than 'x'" in weight_test(joint, "group").summary()
    ordered = pd.Series(pd.Categorical(info["group"], categories=["y", "x"]))
    np.testing.assert_allclose(weight_test(joint, ordered).statistic, -weight_test(joint, "group").statistic)
    assert "'x' rather than 'y'" in weight_test(joint, ordered).method


def test_systems_without_a_value_are_left_out_with_a_warning():
    weights, score = weights_of(8), [1.0, 2.0, np.nan, 4.0, 3.0, 7.0, 5.0, 2.5]
    with pytest.warns(UserWarning, match="Left out 1 system without a value: system3"):
        found = weight_test(weights, score)
    kept = [m for m in range(8) if m != 2]
    np.testing.assert_allclose(found.pvalue, weight_test(weights[kept], [score[m] for m in kept]).pvalue)


def test_intervals_hold_the_effects_that_the_same_test_would_not_reject():
    weights, group = weights_of(11), np.array(list("aabababbaab"))
    score = np.random.default_rng(1).exponential(size=11)
    person, session = np.repeat(np.arange(7), 2), np.tile([0.0, 1.0], 7)
    for table, by, within in (
        (weights, group, None),
        (weights, score, None),
        (weights_of(14), session, person),
    ):
        x = (by == "b").astype(float) if by is group else by
        settings = {"within": within, "n_permutations": 500, "random_state": 0}
        tests = weight_test(table, by, **settings)
        low, high = tests.effect_interval
        for shift in np.linspace(-3, 3, 41):
            shifted = weight_test(table - shift * x[:, None], by, **settings)
            np.testing.assert_array_equal(shifted.pvalue > 0.05, (low < shift) & (shift < high))
        np.testing.assert_array_equal(tests.pvalue > 0.05, (low < 0) & (high > 0))
    assert weight_test(weights, group).effect == pytest.approx(
        weights[group == "b"].mean(axis=0) - weights[group == "a"].mean(axis=0)
    )
    assert weight_test(weights, score).effect == pytest.approx(np.polyfit(score, weights, 1)[0])


def test_too_few_permutations_have_no_interval():
    tests = weight_test(weights_of(6), list("aaabbb"))
    assert tests.effect_interval.tolist() == [[-np.inf] * 3, [np.inf] * 3]
    assert "too few permutations for an interval" in tests.summary()


def test_several_groups_have_the_interval_of_tukey_and_kramer():
    weights, group = weights_of(14), np.array(list("abcabcabcaabbb"))
    tests = weight_test(weights, group, n_permutations=99, random_state=0)
    for k in range(3):
        samples = {name: weights[group == name, k] for name in "abc"}
        means = {name: sample.mean() for name, sample in samples.items()}
        top, bottom = max(means, key=means.get), min(means, key=means.get)
        assert tests.contrast[k] == f"{top} - {bottom}"
        assert tests.effect[k] == pytest.approx(means[top] - means[bottom])
        expected = stats.tukey_hsd(*samples.values()).confidence_interval()
        at = "abc".index(top), "abc".index(bottom)
        assert tests.effect_interval[:, k] == pytest.approx([expected.low[at], expected.high[at]], rel=1e-3)


def test_several_groups_within_people_compare_people_with_themselves():
    rng = np.random.default_rng(0)
    person, task = np.repeat(np.arange(8), 3), np.tile(list("xyz"), 8)
    effects = rng.normal(size=(8, 3))
    weights = (100 * rng.normal(size=(8, 1)) + effects).reshape(24, 1)
    tests = weight_test(weights, task, within=person, n_permutations=99, random_state=0)
    means = effects.mean(axis=0)
    assert tests.effect[0] == pytest.approx(means.max() - means.min())
    residual = effects - effects.mean(axis=1, keepdims=True) - means + means.mean()
    half = stats.studentized_range.ppf(0.95, 3, 14) * np.sqrt(np.sum(residual**2) / 14 / 8)
    assert np.diff(tests.effect_interval[:, 0]) / 2 == pytest.approx(half, rel=1e-3)


def test_sessions_of_one_person_in_one_group_count_as_one():
    rng = np.random.default_rng(0)
    person, task = np.repeat(np.arange(6), 4), np.tile(list("xxyy"), 6)
    weights = rng.normal(size=(24, 2))
    tests = weight_test(weights, task, within=person)
    assert len(tests.null_distribution) == 2**6 - 1
    means = weights.reshape(6, 2, 2, 2).mean(axis=2).reshape(12, 2)
    averaged = weight_test(means, np.tile(list("xy"), 6), within=np.repeat(np.arange(6), 2))
    np.testing.assert_allclose(tests.pvalue, averaged.pvalue)
    np.testing.assert_allclose(tests.effect, averaged.effect)
    task[:4] = "x"  # the first person has one task only
    with pytest.warns(UserWarning, match="Left out 1 of 6 sets of systems with one value only: 0"):
        fewer = weight_test(weights, task, within=person)
    expected = weight_test(weights[4:], task[4:], within=person[4:])
    np.testing.assert_allclose(fewer.pvalue, expected.pvalue)


def test_dates_are_scores_in_days():
    weights = weights_of(8)
    days = np.array([0, 3, 4, 10, 11, 20, 22, 31])
    dates = pd.Timestamp("2024-02-27") + pd.to_timedelta(days, unit="D")
    for given in (dates, list(dates.date), days.astype("timedelta64[D]").astype("timedelta64[s]")):
        found = weight_test(weights, given, random_state=0)
        expected = weight_test(weights, days, random_state=0)
        np.testing.assert_allclose(found.effect, expected.effect)
        np.testing.assert_allclose(found.pvalue, expected.pvalue)
        assert found.contrast[0] == "per day"


def test_moments_of_one_series_are_pointed_out():
    rng = np.random.default_rng(0)
    series = np.cumsum(rng.normal(size=(100, 2)), axis=0)
    with pytest.warns(UserWarning, match="not independent"):
        weight_test(series, np.arange(100), n_permutations=99, random_state=0)


def test_a_small_group_that_varies_more_is_pointed_out():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(36, 2))
    group = np.array(["patients"] * 6 + ["controls"] * 20 + ["parents"] * 10)
    weight_test(weights, group, n_permutations=99, random_state=0)
    weights[:6, 1] *= 4
    with pytest.warns(UserWarning, match=r"'patients' \(6 systems\) vary more than those of 'controls'"):
        weight_test(weights, group, n_permutations=99, random_state=0)


def test_two_groups_may_differ_in_size_and_spread():
    """Five systems that vary three times as much as eleven others: a correlation would reject 18% of true nulls."""
    rng, group = np.random.default_rng(0), np.array(list("aaaaabbbbbbbbbbb"))
    spread = np.where(group == "a", 3.0, 1.0)[:, None]
    rejected = [weight_test(spread * rng.normal(size=(16, 2)), group, n_permutations=199, random_state=0).pvalue <= 0.05
                for _ in range(300)]  # fmt: skip
    assert np.mean(rejected) < 0.12


def shifted_groups(rng):
    group = np.array(list("aaaaabbbbbbbbbbb"))
    return rng.gamma(2.0, 0.5, size=(16, 2)) + 0.8 * (group == "b")[:, None], group, None, 0.8


def related_scores(rng):
    score = rng.exponential(size=20)
    return rng.gamma(2.0, 0.5, size=(20, 2)) + 0.3 * score[:, None], score, None, 0.3


def shifted_pairs(rng):
    person, session = np.repeat(np.arange(10), 2), np.tile(["first", "second"], 10)
    people = rng.normal(size=(10, 2)).repeat(2, axis=0)
    return rng.gamma(2.0, 0.5, size=(20, 2)) + people + 0.5 * (session == "second")[:, None], session, person, 0.5


def random_slopes(rng):
    """Time courses of people who differ in their slopes, with errors that drift."""
    time, person = np.tile(np.arange(6.0), 12), np.repeat(np.arange(12), 6)
    slopes = rng.normal(0.2, 0.3, size=(12, 2)).repeat(6, axis=0)
    drift = 0.3 * np.cumsum(rng.normal(size=(12, 6, 2)), axis=1).reshape(72, 2)
    return slopes * time[:, None] + drift, time, person, 0.2


def three_groups(rng):
    """Every difference that could turn out the largest one is the truth that an interval may have to cover."""
    group = rng.permutation(list("aaaaabbbbbbbcccc"))
    means = {"a": 0.0, "b": 0.3, "c": 0.5}
    weights = rng.normal(size=(16, 2)) + np.array([means[one] for one in group])[:, None]
    return weights, group, None, lambda contrast: means[contrast[0]] - means[contrast[-1]]


DESIGNS = [shifted_groups, related_scores, shifted_pairs, random_slopes, three_groups]


def covered(design, n, seed):
    rng, hits = np.random.default_rng(seed), []
    for _ in range(n):
        weights, by, within, truth = design(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some samples of a group vary more by chance
            tests = weight_test(weights, by, within=within, n_permutations=399, random_state=rng.integers(2**31))
        low, high = tests.effect_interval
        truths = np.array([truth(one) for one in tests.contrast]) if callable(truth) else truth
        hits += list((low <= truths) & (truths <= high))
    return np.mean(hits), len(hits)


@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_cover_the_truth(design):
    share, n = covered(design, 150, seed=0)
    assert share == pytest.approx(0.95, abs=3.5 * np.sqrt(0.05 * 0.95 / n))


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_cover_the_truth_in_many_studies(design):
    share, _ = covered(design, 2000, seed=1)
    assert 0.93 < share < 0.97


@pytest.mark.parametrize("kind", ["groups", "three groups", "scores", "pairs", "courses"])
def test_p_values_are_calibrated_under_the_null(kind):
    rng = np.random.default_rng(0)
    within, pvalues = None, []
    for _ in range(200):
        weights = rng.gamma(2.0, 0.5, size=(16, 2))
        if kind == "scores":
            by = rng.normal(size=16)
        elif kind == "courses":  # people with trends of their own, none on average
            within, by = np.repeat(np.arange(16), 4), np.tile(np.arange(4.0), 16)
            trends = rng.normal(size=(16, 2)).repeat(4, axis=0)
            weights = rng.gamma(2.0, 0.5, size=(64, 2)) + trends * by[:, None]
        elif kind == "pairs":
            weights += rng.normal(size=(8, 2)).repeat(2, axis=0)
            within, by = np.repeat(np.arange(8), 2), np.tile(["a", "b"], 8)
        else:
            by = rng.permutation(np.resize(list("ab" if kind == "groups" else "abc"), 16))
        pvalues += list(weight_test(weights, by, within=within, n_permutations=199, random_state=rng).pvalue)
    for level in (0.05, 0.2, 0.5):
        share, error = np.mean(np.array(pvalues) <= level), np.sqrt(level * (1 - level) / len(pvalues))
        assert abs(share - level) < 3.5 * error


@pytest.mark.slow
def test_p_values_of_fitted_weights_are_calibrated_under_the_null():
    """Groups that have nothing to do with the systems; weights from fits, and two dimensions of one fit are related."""
    pvalues = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        W = simulate.dirichlet(20, 3, alpha=0.3, random_state=seed)
        stack = [simulate.add_noise((W * a) @ W.T, 0.6, random_state=100 * seed + m)
                 for m, a in enumerate(rng.uniform(0, 2, size=(12, 3)))]  # fmt: skip
        joint = JointSRF(3, alpha=0.1, shrinkage=0.1, random_state=0).fit(np.stack(stack))
        pvalues += list(weight_test(joint, rng.permutation(list("aaaaaabbbbbb"))).pvalue)
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(np.array(pvalues) <= level) - level) < 3.5 * np.sqrt(level * (1 - level) / 120)


def test_differences_between_groups_are_found():
    rng = np.random.default_rng(0)
    weights = rng.gamma(4.0, 0.25, size=(24, 3))
    weights[:12, 1] *= 0.3
    tests = weight_test(weights, np.repeat(["a", "b"], 12), random_state=0)
    assert tests.significant.tolist() == [False, True, False]
    assert tests.statistic[1] > 0
    assert tests.test == "weights"
    assert tests.table["hypothesis"].tolist() == ["dimension1", "dimension2", "dimension3"]
    assert tests.summary().startswith("The weights of 1 of 3 dimensions are significantly related to the groups.")


def test_red_green_deficient_people_weigh_red_purple_less(data_path):
    people = from_dissimilarity(data_path("helm/helm_1959.csv"), by="subject")
    joint = JointSRF(4, random_state=0).fit(people)
    tests = weight_test(joint, ["deficient" if name.startswith("CD") else "normal" for name in people.names])
    assert len(tests.null_distribution) == 4367  # all assignments of 5 of 16, less the observed one
    items = joint.embedding_frame()
    red_purple = int(np.argmax((items.loc["RPur"] * items.loc["Red"]).to_numpy()))
    assert tests.significant[red_purple]
    assert tests.statistic[red_purple] > 0.5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"result": "weights", "by": [1]}, "result must be a fitted JointSRF"),
        ({"result": JointSRF(2), "by": [1]}, "result must be fitted"),
        ({"result": weights_of(4) * np.nan, "by": [1, 2, 3, 4]}, "result must hold finite weights"),
        ({"result": weights_of(4), "by": [1, 2, 3]}, "by must have one value for each of the 4 systems, got 3"),
        ({"result": weights_of(4), "by": "group"}, "by must name a column of the info of the systems, got 'group'"),
        ({"result": weights_of(4), "by": ["a"] * 4}, "by must have at least two different values"),
        ({"result": weights_of(4), "by": list("abcd")}, "by must have groups of more than one system"),
        ({"result": weights_of(2), "by": [1, 2]}, "at least three systems"),
        ({"result": weights_of(4), "by": list("aabb"), "within": list("xxyy")}, "within must leave differences in by="),
        ({"result": weights_of(4), "by": [1, 2, 3, np.inf]}, "by must hold finite scores"),
        (
            {"result": weights_of(4), "by": [["a"], ["a"], ["b"], ["b"]]},
            "by must hold text, booleans, numbers or dates",
        ),
        ({"result": weights_of(4), "by": [1j, 2j, 3j, 4j]}, "by must hold text, booleans, numbers or dates"),
        ({"result": weights_of(4), "by": [1, 2, 3, 4], "n_permutations": 0}, "n_permutations must be at least 1"),
        ({"result": weights_of(4), "by": [1, 2, 3, 4], "alpha": 2}, "alpha must be"),
    ],
)
def test_bad_input_is_refused(arguments, words):
    with pytest.raises((ParameterError, TypeError), match=words):
        weight_test(**arguments)


def test_equal_weights_cannot_be_tested():
    W = simulate.dirichlet(12, 2, random_state=0)
    joint = JointSRF(2, alpha=0.0, shrinkage=np.inf, random_state=0).fit([W @ W.T] * 4)
    with pytest.raises(ParameterError, match="must have weights that differ between systems"):
        weight_test(joint, list("aabb"))
