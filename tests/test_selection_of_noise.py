"""Noise, and similarities in random places, have one dimension: their mean."""

import numpy as np
import pytest
from similarity_examples import similarities

from simdims import select_rank, simulate


def shuffled(S, rng):
    """The similarities of different items in random places."""
    pairs = np.triu_indices(len(S), 1)
    mixed = np.zeros_like(S)
    mixed[pairs] = rng.permutation(S[pairs])
    mixed += mixed.T
    np.fill_diagonal(mixed, np.diagonal(S))
    return mixed


def noise(kind, n, seed):
    """Similarities in which no pair says anything about another."""
    rng = np.random.default_rng(seed)
    if kind == "shuffled":
        return shuffled(similarities(n=n, r=4, snr=0.7, seed=seed), rng)
    values = {
        "uniform": rng.uniform(size=(n, n)),
        "clipped": np.maximum(rng.standard_normal((n, n)), 0),
        "counts": rng.poisson(0.5, size=(n, n)).astype(float),
        "half": rng.uniform(size=(n, n)),
    }[kind]
    S = np.triu(values) + np.triu(values, 1).T
    return np.asarray(simulate.mask_pairs(S, 0.5, random_state=seed)) if kind == "half" else S


KINDS = ["uniform", "clipped", "counts", "half", "shuffled"]


@pytest.mark.parametrize("kind", ["clipped", "shuffled"])
def test_one_dimension_is_selected(kind):
    found = [select_rank(noise(kind, 60, seed), random_state=seed, progress=False) for seed in range(3)]
    assert [one.rank for one in found] == [1, 1, 1]
    assert not any(one.evidence_of_structure for one in found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_one_dimension_is_selected_in_95_of_100_data_sets(kind):
    found = [select_rank(noise(kind, 60, seed), random_state=seed, progress=False).rank for seed in range(100)]
    assert np.mean(np.array(found) == 1) >= 0.95


@pytest.mark.slow
def test_shuffled_animals_have_one_dimension(data_path):
    S = np.load(data_path("peterson_animals/animals_similarity.npy"))
    found = [
        select_rank(shuffled(S, np.random.default_rng(seed)), random_state=seed, progress=False).rank
        for seed in range(20)
    ]
    assert np.mean(np.array(found) == 1) >= 0.95
