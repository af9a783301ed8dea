"""Validity: where nothing is true, p-values are uniform; where something is, false discoveries stay rare."""

import numpy as np
import pytest
from scipy.stats import binom, kstest

from simdims import SRF, simulate
from simdims.inference import combined_test, dimension_test, rsa_test

N_ITEMS, N_COMPONENTS = 16, 3

# Hypotheses that share variance, and rare ones with few permutations, are the point of these tests.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Joint matching:UserWarning",
    "ignore:Some hypotheses are nearly:UserWarning",
    "ignore:.* could be compared with:UserWarning",
    "ignore:Observed on the diag:UserWarning",
)


def independent(rng):
    """Hypotheses that have nothing to do with each other."""
    return rng.random((N_ITEMS, 3))


def sharing(rng):
    """Levels of one factor, whose columns sum to one, and a degree that goes along with the first."""
    first = rng.permutation(np.repeat([0.0, 1.0], N_ITEMS // 2))
    return np.column_stack([first, 1 - first, first + rng.random(N_ITEMS)])


TESTS = {
    "dimension": lambda S, W, X, **options: dimension_test(W, X, matching="joint", **options),
    "dimension two-sided": lambda S, W, X, **options: dimension_test(
        W, X, matching="joint", alternative="two-sided", **options
    ),
    "dimension separate": lambda S, W, X, **options: dimension_test(W, X, matching="separate", **options),
    "rsa": lambda S, W, X, **options: rsa_test(S, X, **options),
    "rsa with missing pairs": lambda S, W, X, random_state, **options: rsa_test(
        simulate.mask_pairs(S, 0.6, random_state=random_state), X, random_state=random_state, **options
    ),
    "combined": combined_test,
}
HYPOTHESES = [independent, sharing]


def null_p_values(test, hypotheses, n_datasets, n_permutations, *, fitted):
    """The p-value of one hypothesis, a different one in turn, of each of many independent data sets."""
    result = []
    for seed in range(n_datasets):
        rng = np.random.default_rng([seed, 77])
        W = simulate.dirichlet(N_ITEMS, N_COMPONENTS, random_state=seed)
        S = simulate.add_noise(W @ W.T, 0.7, random_state=seed)
        if fitted:
            W = SRF(N_COMPONENTS, random_state=seed, tol=1e-3).fit(S).embedding_
        found = TESTS[test](S, W, hypotheses(rng), n_permutations=n_permutations, random_state=seed)
        result.append(found.pvalue[seed % 3])
    return np.array(result)


def assert_uniform(p, n_permutations):
    """Rejections at four levels within the central 99.9% of a binomial, each level one that the p-values can take."""
    for level in (0.05, 0.1, 0.25, 0.5):
        rejected = int((p <= level + 1e-12).sum())
        low, high = binom.interval(0.999, len(p), level)
        assert low <= rejected <= high, f"{rejected} of {len(p)} p-values at or below {level}: outside {low}-{high}"
    # Spread each p-value over the step below it, to compare with a continuous uniform distribution.
    spread = p - np.random.default_rng(0).random(len(p)) / (1 + n_permutations)
    assert kstest(spread, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("hypotheses", HYPOTHESES)
def test_p_values_are_uniform_under_the_null(test, hypotheses):
    assert_uniform(null_p_values(test, hypotheses, 150, 19, fitted=False), 19)


@pytest.mark.slow
@pytest.mark.parametrize("fitted", [False, True], ids=["given W", "W fitted to the same S"])
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("hypotheses", HYPOTHESES)
def test_p_values_are_uniform_over_thousands_of_data_sets(test, hypotheses, fitted):
    assert_uniform(null_p_values(test, hypotheses, 2000, 39, fitted=fitted), 39)


def false_discovery_share(matching, n_true, seed, n_permutations=199):
    """Of what is significant, the share that is false: some hypotheses are dimensions and noise, others only noise."""
    rng = np.random.default_rng([seed, 5])
    W = simulate.dirichlet(40, 6, random_state=seed)
    S = simulate.add_noise(W @ W.T, 0.5, random_state=seed)
    fitted = SRF(6, random_state=seed, tol=1e-3).fit(S).embedding_
    X = rng.random((40, 6))
    X[:, :n_true] += 2 * W[:, :n_true]
    tests = combined_test(S, fitted, X, n_permutations=n_permutations, matching=matching, random_state=seed)
    shares = []
    for part in (tests, *tests.parts.values()):
        found = part.significant
        shares.append(found[n_true:].sum() / max(found.sum(), 1))
    return shares


@pytest.mark.slow
@pytest.mark.parametrize("matching", ["joint", "separate"])
@pytest.mark.parametrize("n_true", [0, 2, 4])
def test_false_discoveries_stay_rare_among_true_and_false_hypotheses(matching, n_true):
    shares = np.array([false_discovery_share(matching, n_true, seed) for seed in range(400)])
    standard_error = shares.std(axis=0) / np.sqrt(len(shares))
    assert (shares.mean(axis=0) <= 0.05 + 2 * standard_error).all(), shares.mean(axis=0)


def suppressed(seed, matching):
    """The p-value of a hypothesis that is unrelated to W but is a part of three others that are related to it."""
    rng = np.random.default_rng([seed, 9])
    W = rng.standard_normal((50, 8))
    e = rng.standard_normal(50)
    X = np.column_stack([0.6 * W[:, :3] + 0.8 * e[:, None], e])
    return dimension_test(W, X, n_permutations=99, matching=matching, random_state=seed).pvalue[-1]


@pytest.mark.slow
def test_the_one_weakness_of_joint_matching_is_as_documented():
    """Rejections at 0.2, where the excess shows best: joint matching has too many, the others have not."""
    n_datasets = 2000
    joint = np.mean([suppressed(seed, "joint") <= 0.2 for seed in range(n_datasets)])
    limits = binom.interval(0.999, n_datasets, 0.2)
    assert limits[1] / n_datasets < joint < 0.35
    for matching in ("separate", "auto"):
        rejected = sum(suppressed(seed, matching) <= 0.2 for seed in range(n_datasets))
        assert limits[0] <= rejected <= limits[1], matching


# Rare properties and missing pairs: (items, items with the property, share of the pairs missing).
RARE = [(20, 2, 0.8), (30, 3, 0.9), (50, 4, 0.9), (20, 2, 0.5), (20, 2, 0.0)]


def rare_property(n_items, n_members, missing, seed):
    """Similarities with gaps, an embedding, and a property of a few random items, two of which have an observed pair.

    None where no two have: `rsa_test` refuses such a property, so that its level is that over the others.
    """
    rng = np.random.default_rng([seed, n_items, n_members])
    W = rng.gamma(0.5, size=(n_items, 4))
    noise = rng.random((n_items, n_items))
    S = W @ W.T + 0.2 * (noise + noise.T)
    gaps = np.triu(rng.random((n_items, n_items)) < missing, 1)
    S[gaps | gaps.T] = np.nan
    members = rng.permutation(n_items)[:n_members]
    if np.isnan(S[np.ix_(members, members)][np.triu_indices(n_members, 1)]).all():
        return None
    return S, W, np.isin(np.arange(n_items), members)


def rare_p_values(n_datasets, n_permutations, design, test, **options):
    result, seed = [], 0
    while len(result) < n_datasets:
        data = rare_property(*design, seed)
        if data is not None:
            result.append(TESTS[test](*data, n_permutations=n_permutations, random_state=seed, **options).pvalue[0])
        seed += 1
    return np.array(result)


def assert_level_is_held(p, levels=(0.05, 0.1, 0.25)):
    """At most as many rejections as 99.9% of binomials: few distinct statistics make p-values of a rare property coarse
    and the test conservative."""
    for level in levels:
        rejected, most = int((p <= level + 1e-12).sum()), binom.ppf(0.999, len(p), level)
        assert rejected <= most, f"{rejected} of {len(p)} p-values at or below {level}: more than {most}"


@pytest.mark.parametrize(("test", "design"), [("rsa", RARE[0]), ("rsa", RARE[1]), ("combined", RARE[0])])
def test_rare_properties_with_missing_pairs_are_not_found_by_chance(test, design):
    """A permutation without a member pair has no correlation; counted as 0 it made a fifth of tests significant."""
    assert_level_is_held(rare_p_values(150, 99, design, test))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "options"),
    [
        ("rsa", {}),
        ("rsa", {"alternative": "two-sided"}),
        ("rsa", {"method": "spearman"}),
        ("combined", {}),
        ("combined", {"alternative": "two-sided", "weighting": "equal"}),
    ],
)
@pytest.mark.parametrize("design", RARE)
def test_rare_properties_keep_their_level_over_a_thousand_data_sets(test, options, design):
    p = rare_p_values(1000, 199, design, test, **options)
    assert_level_is_held(p)
    assert np.mean(p <= 0.5) > 0.4  # and are not conservative out of all proportion


@pytest.mark.slow
@pytest.mark.parametrize("n_members", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"alternative": "two-sided"}, {"matching": "separate"}])
def test_dimensions_of_few_items_keep_the_level_of_rare_properties(n_members, options):
    """Sparse dimensions, one of them constant: a constant aligned column has a statistic, 0, in the data too."""
    result = []
    for seed in range(1000):
        rng = np.random.default_rng([seed, n_members])
        W = rng.gamma(0.5, size=(20, 4)) * (rng.random((20, 4)) < [0.1, 0.3, 0.1, 0.0])
        x = np.isin(np.arange(20), rng.permutation(20)[:n_members])
        result.append(dimension_test(W, x, n_permutations=99, random_state=seed, **options).pvalue[0])
    assert_level_is_held(np.array(result))
