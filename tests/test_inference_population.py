"""population_test: effects from their definition, calibration with effects in single people, and power."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls

from simdims import JointSRF, SimilaritySet, population_test, rsa_test
from simdims._parallel import root_seed
from simdims.inference.population import versions_of

PAIRS = np.triu_indices(30, 1)


def people(seed, n_systems=12, own=0.4, shared=0.0, n_items=30):
    """Dimensions, a property, and systems that encode it to degrees of their own, with a given mean."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(4, 0.5), size=n_items)
    h = rng.normal(size=n_items)
    spread = (W @ W.T)[np.triu_indices(n_items, 1)].std()
    degree = spread * (shared + own * rng.normal(size=n_systems))
    noise = np.triu(rng.normal(0, 0.5 * spread, (n_systems, n_items, n_items)), 1)
    S = W @ W.T + degree[:, None, None] * np.outer(h, h) + noise + noise.transpose(0, 2, 1)
    S = S - S.min() + 0.01
    S[:, np.arange(n_items), np.arange(n_items)] = np.nan
    return W, h, S


def test_the_statistic_is_the_mean_of_the_systems_correlations():
    _, h, S = people(0)
    S[2, 3, 4] = S[2, 4, 3] = np.nan
    tests = population_test(SimilaritySet(S), {"h": h}, n_permutations=50, random_state=0)
    model = np.outer(h, h)[PAIRS]
    each = []
    for one in S:
        known = ~np.isnan(one[PAIRS])
        each.append(np.corrcoef(one[PAIRS][known], model[known])[0, 1])
    assert tests.statistic[0] == pytest.approx(np.mean(each))
    flipped = population_test(SimilaritySet(S), {"h": h}, generalize="systems", n_permutations=500, random_state=0)
    assert np.abs(flipped.null_distribution).max() <= np.mean(np.abs(each)) + 1e-12
    assert flipped.pvalue[0] == (1 + np.sum(flipped.null_distribution >= np.mean(each) - 1e-10)) / 501


def test_permuted_items_give_the_mean_of_the_systems_null_distributions():
    _, h, S = people(1, n_systems=6)
    tests = population_test(SimilaritySet(S), h, generalize="items", n_permutations=40, random_state=3)
    each = [rsa_test(one, h, n_permutations=40, random_state=root_seed(3)).null_distribution for one in S]
    np.testing.assert_allclose(tests.null_distribution, np.mean(each, axis=0), atol=1e-10)


def test_versions_of_dimensions_are_regressions_on_the_others():
    W, _, S = people(2, n_systems=6)
    versions = versions_of(SimilaritySet(S), W)
    assert versions.shape == (6, 30, 4)
    pairs = (W[PAIRS[0]] * W[PAIRS[1]], S[3][PAIRS])
    a = nnls(*pairs)[0]
    others = np.delete(np.arange(30), 7)
    np.testing.assert_allclose(versions[3, 7], nnls(W[others] * a, S[3, 7, others])[0], atol=1e-3)


def test_a_property_of_all_people_is_found_and_named_with_its_dimension():
    W, _, S = people(3, own=0.0)
    names = [f"item {i}" for i in range(30)]
    systems = SimilaritySet([pd.DataFrame(one, index=names, columns=names) for one in S])
    embedding = pd.DataFrame(W, index=names).sample(frac=1.0, random_state=0)
    properties = pd.DataFrame({"second": W[:, 1], "nothing": np.random.default_rng(0).normal(size=30)}, index=names)
    for generalize in ("both", "systems", "items"):
        tests = population_test(
            systems, properties, embedding=embedding, generalize=generalize, n_permutations=200, random_state=0
        )
        assert tests.significant[0]
        assert tests.dimension[0] == "dimension2"
        assert "population of" in str(tests)
    joint = JointSRF(4, alpha=0.0, shrinkage=0.0, random_state=0).fit(systems)
    assert population_test(systems, properties, embedding=joint, n_permutations=100, random_state=0).significant[0]


def test_systems_may_lack_items():
    _, h, S = people(4, shared=1.5, own=0.2)
    names = [f"item {i}" for i in range(30)]
    frames = [pd.DataFrame(one, index=names, columns=names) for one in S]
    frames[0] = frames[0].iloc[:25, :25]
    tests = population_test(SimilaritySet(frames), pd.Series(h, index=names), n_permutations=100, random_state=0)
    assert tests.pvalue[0] < 0.05


def rejections(seeds, **settings):
    found = {}
    for seed in seeds:
        _, h, S = people(seed, **settings)
        systems = SimilaritySet(S)
        for generalize in ("both", "items"):
            test = population_test(systems, h, generalize=generalize, n_permutations=99, random_state=seed)
            found.setdefault(generalize, []).append(test.pvalue[0] <= 0.05)
    return {name: np.mean(values) for name, values in found.items()}


def test_effects_of_single_people_are_no_effect_of_the_population():
    rates = rejections(range(60))
    assert rates["both"] < 0.12
    assert rates["items"] > rates["both"]
    assert rejections(range(100, 115), shared=1.0)["both"] > 0.8


@pytest.mark.slow
def test_rejections_are_as_frequent_as_the_level_in_the_long_run():
    rates = rejections(range(2000, 3500))
    assert 0.035 <= rates["both"] <= 0.065
    assert rates["items"] > 0.1


@pytest.mark.slow
def test_flipped_signs_are_calibrated_where_the_mean_effect_is_zero():
    found = []
    for seed in range(1500):
        _, h, S = people(seed)
        x = np.outer(h, h)[PAIRS]
        x = (x - x.mean()) / x.std()
        base = np.zeros((30, 30))
        rng = np.random.default_rng(seed)
        y = rng.uniform(size=len(x))
        base[PAIRS] = y - np.mean(x * y) * x  # no correlation with the model at all
        degrees = rng.normal(size=12)
        S = base + base.T + 0.2 * degrees[:, None, None] * np.outer(h, h)
        S = S - S.min()
        test = population_test(SimilaritySet(S), h, generalize="systems", n_permutations=199, random_state=seed)
        found.append(test.pvalue[0] <= 0.05)
    assert 0.035 <= np.mean(found) <= 0.065


def test_few_systems_are_refused():
    _, h, S = people(0, n_systems=4)
    with pytest.raises(ValueError, match="systems must be at least 6, got 4"):
        population_test(SimilaritySet(S), h)
