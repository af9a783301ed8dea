"""Link prediction against scikit-learn on all pairs, and what is drawn for it."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from simdims import SRF, ParameterError, Similarity
from simdims.metrics import hold_out_links, link_auc
from simdims.metrics.links import _draw, _links_and_zeros


def graph(n=25, density=0.5, seed=0):
    """A symmetric matrix with zeros, and an embedding that knows something of it."""
    rng = np.random.default_rng(seed)
    S = np.triu(rng.uniform(0.1, 1, size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return S + S.T + np.eye(n), rng.uniform(size=(n, 3)) + S[:, :3] + S[:, 3:6]


def auc_over_all_pairs(S, W):
    """scikit-learn's AUC over every observed pair of two different items."""
    values, scores = (matrix[np.triu_indices(len(S), 1)] for matrix in (S, W @ W.T))
    known = ~np.isnan(values)
    return roc_auc_score(values[known] > 0, scores[known])


def storing(S, mask, absent):
    mask = mask | mask.T
    return Similarity(sparse.csr_array((S[mask], np.nonzero(mask)), shape=S.shape), absent=absent)


STORAGES = {
    "dense": Similarity,
    "float32": lambda S: Similarity(S.astype(np.float32)),
    "zeros absent": lambda S: storing(S, S > 0, "zero"),
    "zeros of a small weight": lambda S: storing(S, S > 0, 0.03),
    "zeros stored": lambda S: storing(S, np.ones_like(S, dtype=bool), "missing"),
    "some zeros stored": lambda S: storing(S, (S > 0) | (np.arange(len(S)) % 3 == 0), "zero"),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n", [25, 300])
def test_with_fewer_zero_pairs_than_links_it_is_scikit_learns_auc(storage, n):
    S, W = graph(n, density=0.7)
    assert (S == 0).sum() < (S > 0).sum() - n
    assert link_auc(STORAGES[storage](S), W, random_state=0) == pytest.approx(auc_over_all_pairs(S, W), abs=1e-12)


def test_implicit_similarities_are_their_dense_matrix():
    rng = np.random.default_rng(0)
    F = rng.uniform(size=(300, 4)) * (rng.uniform(size=(300, 4)) < 0.45)
    S, W = F @ F.T, rng.uniform(size=(300, 2)) + F[:, :2]
    assert 0 < (S == 0).sum() < (S > 0).sum() - 300
    assert link_auc(Similarity.from_factors(F), W, random_state=0) == pytest.approx(auc_over_all_pairs(S, W), abs=1e-12)


def test_pairs_that_are_missing_or_weigh_nothing_are_neither_links_nor_zeros():
    S, W = graph(density=0.7)
    gaps = np.triu(np.random.default_rng(1).uniform(size=S.shape) < 0.3, 1)
    holed = np.where(gaps | gaps.T, np.nan, S)
    expected = auc_over_all_pairs(holed, W)
    assert expected != auc_over_all_pairs(S, W)
    weights = np.where(np.isnan(holed), 0.0, 0.5)
    stored = (S > 0) | np.isnan(holed)
    kept = sparse.csr_array((weights[stored], np.nonzero(stored)), shape=S.shape)
    values = sparse.csr_array((S[stored], np.nonzero(stored)), shape=S.shape)
    for similarity in (
        Similarity(holed),
        Similarity(S, weights=weights),
        storing(holed, stored, "zero"),
        Similarity(values, weights=kept, absent="zero"),
    ):
        assert link_auc(similarity, W, random_state=0) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("density", [0.05, 0.25, 0.4])
def test_as_many_different_zero_pairs_as_links_are_drawn(storage, density):
    S, _ = graph(density=density)
    links, zeros = _links_and_zeros(STORAGES[storage](S), None, np.random.RandomState(0))
    upper = np.triu(S, 1)
    assert set(zip(*map(np.ndarray.tolist, links), strict=True)) == set(zip(*np.nonzero(upper), strict=True))
    drawn = list(zip(*map(np.ndarray.tolist, zeros), strict=True))
    assert len(drawn) == len(set(drawn)) == np.count_nonzero(upper)
    assert all(i < j and S[i, j] == 0 for i, j in drawn)


@pytest.mark.parametrize("storage", ["dense", "zeros absent", "some zeros stored"])
@pytest.mark.parametrize("n_links", [2, 20])
def test_every_zero_pair_is_equally_likely(storage, n_links):
    S = np.eye(12)
    S[0, 5] = S[5, 0] = S[3, 4] = S[4, 3] = S[10, 11] = S[11, 10] = 1.0
    similarity, rng, n_draws = STORAGES[storage](S), np.random.RandomState(0), 3000
    counts = np.zeros_like(S)
    for _ in range(n_draws):
        np.add.at(counts, _links_and_zeros(similarity, n_links, rng)[1], 1)
    pairs = counts[(S == 0) & np.triu(np.ones_like(S, dtype=bool), 1)]
    assert len(pairs) == 63
    share = n_links / 63
    assert np.abs(pairs / n_draws - share).max() < 4.5 * np.sqrt(share * (1 - share) / n_draws)


def test_numbers_are_drawn_without_replacement_from_huge_ranges():
    drawn = _draw(10**15, 1000, np.random.RandomState(0))
    assert len(np.unique(drawn)) == 1000
    assert drawn.min() >= 0
    assert 0.9e15 < drawn.max() < 10**15


def test_a_sampled_auc_is_near_the_exact_one_and_repeats_with_its_seed():
    S, W = graph(200, density=0.05)
    sampled = [link_auc(S, W, random_state=seed) for seed in (0, 0, 1)]
    assert sampled[0] == sampled[1] != sampled[2]
    assert np.mean([link_auc(S, W, random_state=seed) for seed in range(20)]) == pytest.approx(
        auc_over_all_pairs(S, W), abs=0.01
    )


def test_millions_of_pairs_need_no_matrix_of_all_of_them():
    n, n_links = 30_000, 200_000
    rng = np.random.default_rng(0)
    i, j = rng.integers(n, size=(2, n_links))
    cells = np.minimum(i, j), np.maximum(i, j) + (i == j)
    S = Similarity(sparse.csr_array((np.ones(n_links), cells), shape=(n + 1, n + 1)), absent=0.03)
    W = rng.uniform(size=(n + 1, 40))
    link_auc(S, W[:, :1], random_state=0)  # imports
    tracemalloc.start()
    auc = link_auc(S, W, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert auc == pytest.approx(0.5, abs=0.01)
    assert peak < 100e6  # all pairs in one bit each would be 112 MB


def test_listed_links_are_compared_with_as_many_zero_pairs():
    S, W = graph(density=0.7)
    labels = [f"item{i}" for i in range(len(S))]
    links = np.argwhere(np.triu(S, 1) > 0)[::2]
    products, zeros = W @ W.T, np.argwhere(np.triu(S == 0, 1))
    scores = [products[tuple(pairs.T)] for pairs in (links, zeros)]
    expected = roc_auc_score(np.repeat([1, 0], list(map(len, scores))), np.concatenate(scores))
    named = pd.DataFrame([[labels[j], labels[i]] for i, j in links])
    assert len(zeros) < len(links)
    assert link_auc(S, W, pairs=links, random_state=0) == pytest.approx(expected, abs=1e-12)
    assert link_auc(Similarity(S, labels), W, pairs=named, random_state=0) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
def test_held_out_links_are_missing_in_both_triangles_and_nothing_else_changes(storage):
    S, _ = graph(density=0.3)
    similarity = STORAGES[storage](S)
    before = similarity.values.copy()
    training, pairs = hold_out_links(similarity, 0.2, random_state=0)
    n_links = np.count_nonzero(np.triu(S, 1))
    assert len(pairs) == len(np.unique(pairs, axis=0)) == round(0.2 * n_links)
    assert all(S[i, j] > 0 and i < j for i, j in pairs)
    dense, old = (m.toarray() if sparse.issparse(m) else m for m in (training.values, before))
    expected = old.copy()
    for i, j in pairs:
        expected[i, j] = expected[j, i] = np.nan
    np.testing.assert_array_equal(dense, expected)
    unchanged = similarity.values.toarray() if sparse.issparse(before) else similarity.values
    np.testing.assert_array_equal(unchanged, old)
    assert training.absent == similarity.absent


def test_weights_and_labels_stay_with_what_is_held_out():
    S, _ = graph(10)
    labels = list("abcdefghij")
    weights = sparse.csr_array(np.where(S > 0, 2.0, 0.0))
    training, _ = hold_out_links(Similarity(sparse.csr_array(S), labels, weights, absent=0.1), random_state=0)
    assert training.labels == tuple(labels)
    assert (training.weights != weights).nnz == 0


def test_a_fit_predicts_links_that_it_never_saw():
    blocks = np.kron(np.eye(3), np.ones((15, 15))) * (np.random.default_rng(0).uniform(size=(45, 45)) < 0.7)
    S = Similarity(sparse.csr_array(np.triu(blocks, 1)), absent="zero")
    training, pairs = hold_out_links(S, 0.2, random_state=0)
    W = SRF(3, random_state=0, max_iter=2000).fit(training).embedding_
    assert link_auc(S, W, pairs=pairs, random_state=0) > 0.8
    shuffled = W[np.random.default_rng(0).permutation(45)]
    assert link_auc(S, shuffled, pairs=pairs, random_state=0) < 0.7


def small_graph(named=False):
    S, W = graph(6, 0.5)
    S[0, 1] = S[1, 0] = 0.5
    S[0, 2] = S[2, 0] = 0.0
    return Similarity(S, list("abcdef") if named else None), W


@pytest.mark.parametrize(
    ("pairs", "named", "got"),
    [
        ([[0, 1], [0, 2]], False, "[0, 2] in row 1"),  # not a link
        ([[0, 6]], False, "[0, 6]"),
        ([[1, 1]], False, "[1, 1] in row 0"),
        ([[0, 1], [1, 0]], False, "[1, 0] in row 1"),  # listed twice
        ([[0, 1.5]], False, "[0.0, 1.5]"),
        ([["a", "b"]], False, "'a'"),
        ([["a", "x"]], True, "['a', 'x'] in row 0"),
        ([["a", 1]], True, "['a', 1] in row 0"),
        ([[0, 1, 2]], False, "(1, 3)"),
        ([[0, 1], [2]], False, "other lengths"),
    ],
)
def test_pairs_that_are_no_links_are_refused(pairs, named, got):
    S, W = small_graph(named)
    with pytest.raises(ParameterError) as caught:
        link_auc(S, W, pairs=pairs)
    assert (caught.value.name, got in caught.value.got) == ("pairs", True)


def test_link_auc_needs_links_zero_pairs_and_an_embedding_of_the_same_items():
    S, W = small_graph(named=True)
    for no_contrast in (np.ones((6, 6)), np.eye(6)):
        with pytest.raises(ParameterError, match=r"^S .* got none"):
            link_auc(no_contrast, W)
    with pytest.raises(ParameterError, match="absent='zero'"):
        link_auc(storing(S.values, S.values > 0, "missing"), W)
    with pytest.raises(ParameterError, match=r"^W .*\(5, 3\)"):
        link_auc(S, W[:5])
    with pytest.raises(ValueError, match="'f'"):
        link_auc(S, pd.DataFrame(W, index=list("fedcba")))


@pytest.mark.parametrize("fraction", [0, 1, -0.1, np.nan, "half", True])
def test_hold_out_links_refuses_other_fractions(fraction):
    with pytest.raises(ParameterError) as caught:
        hold_out_links(graph()[0], fraction)
    assert (caught.value.name, caught.value.got) == ("fraction", repr(fraction))


@pytest.mark.parametrize("S", [np.eye(3), Similarity.from_factors(np.ones((3, 2)))])
def test_hold_out_links_needs_links_that_are_stored(S):
    with pytest.raises(ParameterError, match=r"^S "):
        hold_out_links(S)
