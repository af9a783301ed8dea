"""Explained variance against its definition."""

import numpy as np
import pytest
from scipy import sparse

from simdims import Similarity, simulate
from simdims.metrics import explained_variance


def definition(S, weights, W):
    """R2 over the observed pairs of two different items, by loops."""
    pairs = [
        (S[i, j], weights[i, j], W[i] @ W[j])
        for i in range(len(S))
        for j in range(len(S))
        if i != j and not np.isnan(S[i, j])
    ]
    values, omega, predicted = np.array(pairs).T
    mean = np.sum(omega * values) / np.sum(omega)
    return 1 - np.sum(omega * (values - predicted) ** 2) / np.sum(omega * (values - mean) ** 2)


def case(seed=0, n=30):
    W = simulate.dirichlet(n, 3, random_state=seed)
    S = simulate.mask_pairs(simulate.add_noise(W @ W.T, 0.7, random_state=seed), 0.5, random_state=seed)
    weights = np.triu(np.random.default_rng(seed).uniform(size=(n, n)))
    return S, weights + np.triu(weights, 1).T, W


def test_dense_with_missing_pairs_is_the_definition():
    S, weights, W = case()
    assert explained_variance(S, W) == pytest.approx(definition(S, np.ones_like(S), W))
    assert explained_variance(Similarity(S, weights=weights), W) == pytest.approx(definition(S, weights, W))


def test_blocks_of_rows_change_nothing():
    S, _, W = case(n=300)
    known = ~np.isnan(S) & ~np.eye(300, dtype=bool)
    residual = (S - W @ W.T)[known]
    assert explained_variance(S, W) == pytest.approx(
        1 - residual @ residual / np.sum((S[known] - S[known].mean()) ** 2)
    )


@pytest.mark.parametrize("absent", ["missing", 0.2, "zero"])
def test_sparse_is_the_dense_definition_with_the_background_as_weight(absent):
    S, weights, W = case()
    known = ~np.isnan(S)
    stored = sparse.csr_array((S[known], np.nonzero(known)), shape=S.shape)
    stored_weights = sparse.csr_array((weights[known], np.nonzero(known)), shape=S.shape)
    similarity = Similarity(stored, weights=stored_weights, absent=absent)
    background = similarity.absent_weight
    full = S if absent == "missing" else np.nan_to_num(S)
    assert explained_variance(similarity, W) == pytest.approx(definition(full, np.where(known, weights, background), W))


def test_the_diagonal_does_not_count():
    S, _, W = case()
    other = S.copy()
    np.fill_diagonal(other, 5.0)
    assert explained_variance(other, W) == explained_variance(S, W)


def test_the_mean_explains_nothing_and_worse_is_negative():
    S = np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]])
    assert explained_variance(S, np.full((3, 1), np.sqrt(0.4))) == pytest.approx(0.0)
    assert explained_variance(S, np.full((3, 1), 3.0)) < -1


def test_bad_input_gets_a_sentence():
    S = np.array([[1.0, 0.2], [0.2, 1.0]])
    with pytest.raises(ValueError, match=r"W must have one row for each of 2 items, got shape \(3, 1\)"):
        explained_variance(S, np.ones((3, 1)))
    with pytest.raises(ValueError, match="S must vary over its observed pairs"):
        explained_variance(S, np.ones((2, 1)))
    with (
        pytest.warns(UserWarning, match="Observed on the diagonal of values only"),
        pytest.raises(ValueError, match="must have an observed pair"),
    ):
        explained_variance(np.array([[1.0, np.nan], [np.nan, 1.0]]), np.ones((2, 1)))
