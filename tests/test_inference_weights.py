"""weight_test: the statistic from its definition, exact p-values by enumeration, calibration, and real people."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from simdims import JointSRF, ParameterError, SimilaritySet, from_dissimilarity, simulate, weight_test


def weights_of(n_systems=10, n_components=3, seed=0):
    return np.random.default_rng(seed).gamma(2.0, 0.5, size=(n_systems, n_components))


def test_two_groups_are_a_correlation_and_all_assignments_are_enumerated():
    weights = weights_of(9)
    group = np.array(list("aabababba"))
    tests = weight_test(weights, group)
    is_b = (group == "b").astype(float)
    for k in range(3):
        observed = stats.pearsonr(weights[:, k], is_b).statistic
        assert tests.statistic[k] == pytest.approx(observed)
        everything = []
        for chosen in combinations(range(9), 4):
            other = np.zeros(9)
            other[list(chosen)] = 1.0
            everything.append(stats.pearsonr(weights[:, k], other).statistic)
        assert len(tests.null_distribution) == len(everything) - 1
        expected = np.mean(np.abs(everything) >= abs(observed) - 1e-10)
        assert tests.pvalue[k] == pytest.approx(expected)
    np.testing.assert_allclose(tests.pvalue_adjusted, stats.false_discovery_control(tests.pvalue))


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
    assert "scores" in weight_test(joint, "score").summary()
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


@pytest.mark.parametrize("kind", ["groups", "three groups", "scores", "pairs"])
def test_p_values_are_calibrated_under_the_null(kind):
    rng = np.random.default_rng(0)
    within, pvalues = None, []
    for _ in range(200):
        weights = rng.gamma(2.0, 0.5, size=(16, 2))
        if kind == "scores":
            by = rng.normal(size=16)
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
        ({"result": weights_of(4), "by": [1, 2, 3, 4], "n_permutations": 0}, "n_permutations must be at least 1"),
        ({"result": weights_of(4), "by": [1, 2, 3, 4], "alpha": 2}, "alpha must be between 0 and 1"),
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
