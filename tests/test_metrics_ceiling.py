"""noise_ceiling of several systems: its definition, weights, missing pairs, and rsatoolbox's numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy.io import loadmat
from scipy.stats import rankdata, spearmanr

from simdims import Similarity, SimilaritySet, simulate
from simdims._parameters import SimdimsWarning
from simdims.metrics import noise_ceiling

UPPER = np.triu_indices(20, 1)


def people(n_systems=5, n_items=20, seed=0):
    W = simulate.dirichlet(n_items, 3, random_state=seed)
    noise = [simulate.add_noise(W @ W.T, 0.5, random_state=seed + m) for m in range(n_systems)]
    return np.stack(noise)


def slow_ceiling(values, weights, compare):
    """Leave one out, and all: a loop over pairs, from the definition."""
    n_systems, n_pairs = values.shape
    z = np.empty_like(values)
    for m in range(n_systems):
        known = weights[m] > 0
        mean = np.sum(weights[m][known] * values[m][known]) / weights[m][known].sum()
        variance = np.sum(weights[m][known] * (values[m][known] - mean) ** 2) / weights[m][known].sum()
        z[m] = (values[m] - mean) / np.sqrt(variance)
    lower, upper = [], []
    for m in range(n_systems):
        for bounds, chosen in ((lower, [k for k in range(n_systems) if k != m]), (upper, range(n_systems))):
            pooled = np.full(n_pairs, np.nan)
            for p in range(n_pairs):
                has = [k for k in chosen if weights[k, p] > 0]
                if has and weights[m, p] > 0:
                    pooled[p] = sum(weights[k, p] * z[k, p] for k in has) / sum(weights[k, p] for k in has)
            kept = ~np.isnan(pooled)
            bounds.append(compare(values[m][kept], pooled[kept], weights[m][kept]))
    return lower, upper


def weighted_correlation(x, y, w):
    covariance = np.cov(x, y, aweights=w, ddof=0)
    return covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])


def test_bounds_with_weights_and_missing_pairs_are_those_of_the_definition():
    values = people()
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 5, size=values.shape).astype(float)
    weights = np.triu(weights, 1) + np.triu(weights, 1).transpose(0, 2, 1) + np.eye(20)
    missing = np.triu(rng.uniform(size=values.shape) < 0.3, 1)
    missing |= missing.transpose(0, 2, 1)
    values[missing] = np.nan
    systems = SimilaritySet([Similarity(S, weights=w) for S, w in zip(values, weights, strict=True)])
    ceiling = noise_ceiling(systems)
    x = values[:, UPPER[0], UPPER[1]]
    w = np.where(np.isnan(x), 0.0, weights[:, UPPER[0], UPPER[1]])
    lower, upper = slow_ceiling(np.nan_to_num(x), w, weighted_correlation)
    np.testing.assert_allclose(ceiling.lower, lower)
    np.testing.assert_allclose(ceiling.upper, upper)
    assert (ceiling.lower < ceiling.upper).all()
    assert ceiling.n_pairs.max() < 190 * 0.8


def test_rank_correlations_and_cosines_are_those_of_the_definition():
    values = people()
    x = values[:, UPPER[0], UPPER[1]]
    ranks = noise_ceiling(SimilaritySet(values), method="spearman")
    ranked = rankdata(x, axis=1)
    for m in range(5):
        np.testing.assert_allclose(ranks.lower[m], spearmanr(x[m], np.delete(ranked, m, axis=0).mean(axis=0))[0])
        np.testing.assert_allclose(ranks.upper[m], spearmanr(x[m], ranked.mean(axis=0))[0])
    cosines = noise_ceiling(SimilaritySet(values), method="cosine")
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    for m in range(5):
        others = np.delete(unit, m, axis=0).mean(axis=0)
        np.testing.assert_allclose(cosines.lower[m], unit[m] @ others / np.linalg.norm(others))


def test_the_bounds_enclose_what_the_true_similarities_reach():
    n_inside = 0
    for seed in range(20):
        W = simulate.dirichlet(40, 3, random_state=seed)
        rng = np.random.default_rng(seed)
        noise = np.triu(rng.normal(0, 0.2, size=(8, 40, 40)), 1)
        systems = 1.0 + W @ W.T + noise + noise.transpose(0, 2, 1)
        pairs = np.triu_indices(40, 1)
        reached = np.mean([np.corrcoef(S[pairs], (W @ W.T)[pairs])[0, 1] for S in systems])
        ceiling = noise_ceiling(SimilaritySet(systems))
        n_inside += ceiling.mean_lower < reached < ceiling.mean_upper
    assert n_inside == 20


def test_systems_with_other_items_and_a_system_apart():
    names = [f"item {i}" for i in range(20)]
    values = people()
    whole = SimilaritySet([Similarity(S, labels=names) for S in values])
    order = np.random.default_rng(0).permutation(20)
    shuffled = [Similarity(S[np.ix_(order, order)], labels=[names[i] for i in order]) for S in values[1:]]
    np.testing.assert_allclose(
        noise_ceiling(SimilaritySet([Similarity(values[0], labels=names), *shuffled])).lower, noise_ceiling(whole).lower
    )
    lonely = np.full((20, 20), np.nan)
    lonely[0, 1] = lonely[1, 0] = 0.5
    with pytest.warns(SimdimsWarning, match="1 system has no ceiling"):
        ceiling = noise_ceiling(SimilaritySet([*values, lonely]))
    assert np.isnan(ceiling.lower[-1])
    assert np.isfinite(ceiling.mean_lower)
    assert "mean of 5 systems" in str(ceiling)  # those that have one


@pytest.mark.parametrize(("ours", "theirs"), [("pearson", "corr"), ("spearman", "spearman")])
def test_sixteen_people_have_the_ceilings_of_rsatoolbox(data_path, ours, theirs):
    rdm = pytest.importorskip("rsatoolbox.rdm", reason="rsatoolbox is not installed")
    from rsatoolbox.inference.noise_ceiling import boot_noise_ceiling

    stored = loadmat(data_path("mur92/92_behavRDMs.mat"))["rdms_behav_92"]
    rdms = np.stack([np.asarray(person, dtype=float) for person in stored["RDM"].ravel()])
    both = rdm.RDMs(rdms)
    lower, upper = boot_noise_ceiling(both, method=theirs)
    found = noise_ceiling(SimilaritySet(both), method=ours)
    assert len(found.lower) == 16
    np.testing.assert_allclose([found.mean_lower, found.mean_upper], [lower, upper], rtol=1e-9)
    assert f"{lower:.3f}" in str(found)


def test_cosines_are_those_of_rsatoolbox_on_the_same_numbers():
    rdm = pytest.importorskip("rsatoolbox.rdm", reason="rsatoolbox is not installed")
    from rsatoolbox.inference.noise_ceiling import boot_noise_ceiling

    values = people(6)
    found = noise_ceiling(SimilaritySet(values), method="cosine")
    lower, upper = boot_noise_ceiling(rdm.RDMs(values[:, UPPER[0], UPPER[1]]), method="cosine")
    np.testing.assert_allclose([found.mean_lower, found.mean_upper], [lower, upper], rtol=1e-9)


def test_the_ceiling_of_a_person_follows_from_the_answers_of_the_others():
    rng = np.random.default_rng(0)
    rows = []
    for person in "abcde":
        for _ in range(60):
            items = [0, 1, 2 + int(rng.integers(4))]
            rows.append((*rng.permutation(items).tolist(), person))
    rows.append((7, 8, 9, "f"))  # a person whose triplet nobody else answered
    table = pd.DataFrame(rows, columns=["i", "j", "odd", "who"])
    with pytest.warns(SimdimsWarning, match="1 person has no ceiling.* f"):
        found = noise_ceiling(table, odd="odd", by="who")
    assert found.names == tuple("abcdef")
    for place, person in enumerate("abcde"):
        lower, upper = [], []
        for row in table[table.who == person].itertuples():
            same = table[[{a, b, c} == {row.i, row.j, row.odd} for a, b, c in table[["i", "j", "odd"]].to_numpy()]]
            for bounds, answers in ((lower, same[same.who != person]), (upper, same)):
                counts = answers["odd"].value_counts()
                best = counts[counts == counts.max()].index
                bounds.append((row.odd in best) / len(best))
        np.testing.assert_allclose([found.lower[place], found.upper[place]], [np.mean(lower), np.mean(upper)])
    assert np.isnan(found.lower[5])
    assert found.method == "accuracy"
