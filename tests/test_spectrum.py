"""The two older counts: the elbow of the eigenvalues, and eigenvalues that random similarities do not reach."""

from functools import partial

import numpy as np
import pytest
import similarity_examples
from similarity_examples import as_csr

from simdims import Similarity, parallel_analysis, scree_test
from simdims.selection import spectrum

similarities = partial(similarity_examples.similarities, snr=1.0, alpha=0.1)


# --- scree -------------------------------------------------------------------------------------------------------


def slow_scree(S):
    """Where the curve of eigenvalues lies furthest below the line between its ends."""
    n = len(S)
    eigenvalues = sorted(np.linalg.eigvalsh(np.nan_to_num(S)), reverse=True)
    depths = []
    for k in range(n):
        line = eigenvalues[0] + (eigenvalues[-1] - eigenvalues[0]) * k / (n - 1)
        depths.append(line - eigenvalues[k])
    return max(1, int(np.argmax(depths)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("observed", [1.0, 0.5])
def test_the_scree_test_is_its_definition(seed, observed):
    S = similarities(snr=0.6, observed=observed, seed=seed, alpha=0.5)
    assert scree_test(S) == slow_scree(S)


def test_of_many_items_only_the_leading_eigenvalues_are_needed(monkeypatch):
    S = similarities(n=120, r=5)
    monkeypatch.setattr(spectrum, "_MOST_EIGENVALUES", 40)
    assert scree_test(S) == 5
    assert scree_test(Similarity(as_csr(S), absent="missing")) == 5
    assert parallel_analysis(S, n_samples=5, random_state=0) == 5


# --- parallel analysis -------------------------------------------------------------------------------------------


def slow_parallel_analysis(S, n_samples, quantile, seed):
    """Horn's comparison by plain loops, with the same random numbers."""
    rng = np.random.RandomState(seed)
    n = len(S)
    places = [(i, j) for i in range(n) for j in range(i + 1, n) if not np.isnan(S[i, j])]

    def eigenvalues(matrix):
        return np.array(sorted(np.linalg.eigvalsh(matrix), reverse=True))

    own = eigenvalues(np.nan_to_num(S))
    random = []
    for _ in range(n_samples):
        values = rng.permutation(np.array([S[place] for place in places]))
        shuffled = np.diag(np.nan_to_num(np.diag(S)))
        for (i, j), value in zip(places, values, strict=True):
            shuffled[i, j] = shuffled[j, i] = value
        random.append(eigenvalues(shuffled))
    count = 1
    while count < n and own[count] > np.quantile([each[count] for each in random], quantile):
        count += 1
    return count


@pytest.mark.parametrize("r", [1, 2, 3, 5, 8])
def test_both_count_clean_dimensions(r):
    S = similarities(n=100, r=r) if r > 1 else np.ones((100, 100))
    assert scree_test(S) == parallel_analysis(S, n_samples=10, random_state=0) == r


@pytest.mark.parametrize("quantile", [0.5, 0.95])
@pytest.mark.parametrize(("observed", "seed"), [(1.0, 0), (1.0, 1), (0.5, 2), (0.5, 3)])
def test_parallel_analysis_is_its_definition(observed, seed, quantile):
    S = similarities(n=40, snr=0.5, observed=observed, seed=seed, alpha=0.5)
    found = parallel_analysis(S, n_samples=12, quantile=quantile, random_state=seed)
    assert found == slow_parallel_analysis(S, 12, quantile, seed)


def test_noise_has_one_dimension():
    counts = []
    for seed in range(10):
        noise = np.random.default_rng(seed).uniform(0.2, 0.8, (50, 50))
        counts.append(parallel_analysis((noise + noise.T) / 2, n_samples=30, random_state=0))
    # At the 0.95 quantile one matrix of twenty has a second eigenvalue above it by chance.
    assert np.mean(np.array(counts) == 1) >= 0.8


def test_both_are_the_same_for_sparse_similarities():
    S = similarities(snr=0.6, observed=0.6, alpha=0.4)
    missing, light = Similarity(as_csr(S), absent="missing"), Similarity(as_csr(S), absent=0.1)
    assert scree_test(missing) == scree_test(light) == scree_test(S)
    dense = parallel_analysis(S, n_samples=10, random_state=0)
    assert parallel_analysis(missing, n_samples=10, random_state=0) == dense


def test_stored_pairs_that_are_not_observed_are_no_places():
    S = similarities(n=12, observed=0.6)
    stored = as_csr(np.nan_to_num(S, nan=0.9))
    weights = stored.copy()
    weights.data = np.where(np.isnan(S[stored.nonzero()]), 0.0, 1.0)
    matrices = [
        spectrum.plain(Similarity(S)),
        spectrum.plain(Similarity(stored, weights=weights, absent="missing")),
        spectrum.plain(Similarity(np.nan_to_num(S, nan=0.9), weights=weights.toarray())),
    ]
    dense, *others = (spectrum._shuffled(matrix, np.random.RandomState(0)) for matrix in matrices)
    for other in others:
        np.testing.assert_array_equal(other if isinstance(other, np.ndarray) else other.toarray(), dense)


@pytest.mark.parametrize("absent", [None, "missing", "zero", 0.1])
def test_random_similarities_have_the_values_of_the_observed_ones(absent):
    S = similarities(n=30, observed=0.4)
    similarity = Similarity(S if absent is None else as_csr(S), absent=absent)
    shuffled = spectrum._shuffled(spectrum.plain(similarity), np.random.RandomState(0))
    shuffled = shuffled if isinstance(shuffled, np.ndarray) else shuffled.toarray()
    upper = np.triu_indices(30, 1)
    known = ~np.isnan(S[upper])
    np.testing.assert_array_equal(shuffled, shuffled.T)
    np.testing.assert_array_equal(np.diagonal(shuffled), np.diagonal(S))
    np.testing.assert_array_equal(np.sort(shuffled[upper])[-known.sum() :], np.sort(S[upper][known]))
    stays = np.all(shuffled[upper][~known] == 0)
    assert stays == (similarity.absent_weight == 0)  # zeros that are not stored are places like others
    assert not np.array_equal(shuffled[upper], np.nan_to_num(S[upper]))


def test_random_places_in_a_large_matrix_are_distinct_pairs():
    rows, columns = spectrum._random_pairs(50, 900, np.random.RandomState(0))  # of 1225
    assert np.all(rows < columns)
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == 900
    assert columns.max() < 50


def test_the_seed_decides():
    # A count that chance decides: noise, and a quantile near the middle.
    noise = np.random.default_rng(0).uniform(0.2, 0.8, (20, 20))
    S = (noise + noise.T) / 2

    def counts(seeds):
        return [parallel_analysis(S, n_samples=1, quantile=0.5, random_state=seed) for seed in seeds]

    assert counts(range(20)) == counts(range(20))
    assert len(set(counts(range(20)))) > 1


def test_the_input_is_not_changed():
    S = similarities(observed=0.5)
    before = S.copy()
    scree_test(S)
    parallel_analysis(S, n_samples=2, random_state=0)
    np.testing.assert_array_equal(S, before)


# --- corner cases -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("make", [np.eye, lambda n: np.ones((n, n)), lambda n: np.outer(range(n), range(n)) / n**2])
@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:values looks like")
def test_small_and_degenerate_similarities_have_a_count(make, n):
    for count in (scree_test, partial(parallel_analysis, n_samples=3, random_state=0)):
        assert 1 <= count(make(n)) <= n
        assert count(np.zeros((n, n))) == 1
