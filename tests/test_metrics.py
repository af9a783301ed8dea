"""Explained variance against its definition."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from simdims import ParameterError, Similarity, simulate
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


@pytest.mark.parametrize(("n", "n_factors"), [(40, 3), (40, 90), (300, 5), (300, 400)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_implicit_similarities_are_their_dense_matrix(n, n_factors, dtype):
    F = np.random.default_rng(0).uniform(size=(n, n_factors)).astype(dtype)
    W = simulate.dirichlet(n, 3, random_state=0)
    dense = F.astype(np.float64) @ F.T.astype(np.float64)
    assert explained_variance(Similarity.from_factors(F), W) == pytest.approx(explained_variance(dense, W), rel=1e-9)


def sparse_case(n):
    rows = np.random.default_rng(0).integers(n - 1, size=5 * n)
    links = sparse.csr_array((np.ones(len(rows)), (rows, rows + 1)), shape=(n, n))
    return Similarity(links, absent=0.1)


@pytest.mark.parametrize(
    "make",
    [
        sparse_case,
        lambda n: Similarity.from_factors(np.random.default_rng(0).uniform(size=(n, 4))),
        lambda n: Similarity.from_factors(np.random.default_rng(0).uniform(size=(n, n + 1)).astype(np.float32)),
    ],
    ids=["sparse", "implicit", "implicit, more factors than items"],
)
def test_no_matrix_of_all_pairs_is_built(make):
    n = 2000
    S, W = make(n), simulate.dirichlet(n, 3, random_state=0)
    tracemalloc.start()
    explained_variance(S, W)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n**2 / 2


def test_a_labelled_embedding_must_be_of_the_same_items():
    S, _, W = case()
    names = [f"item{i}" for i in range(len(W))]
    labelled = Similarity(S, labels=names)
    assert explained_variance(labelled, pd.DataFrame(W, index=names)) == explained_variance(S, W)
    with pytest.raises(ValueError, match=r"index of W .* S.* 'item29'"):
        explained_variance(labelled, pd.DataFrame(W, index=names[::-1]))


def test_the_diagonal_does_not_count():
    S, _, W = case()
    other = S.copy()
    np.fill_diagonal(other, 5.0)
    assert explained_variance(other, W) == explained_variance(S, W)


def test_the_mean_explains_nothing_and_worse_is_negative():
    S = np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]])
    assert explained_variance(S, np.full((3, 1), np.sqrt(0.4))) == pytest.approx(0.0)
    assert explained_variance(S, np.full((3, 1), 3.0)) < -1


@pytest.mark.parametrize(
    ("W", "kind", "got"),
    [
        ([[1.0], [np.nan]], ValueError, "nan for item 1, column 0"),
        (np.ones((2, 0)), ValueError, "(2, 0)"),
        (np.ones(2), ValueError, "(2,)"),
        (np.ones((3, 1)), ValueError, "(3, 1)"),
        ([["a"], ["b"]], TypeError, "'a' in row 0, column 0"),
        ([[1.0], [1.0, 2.0]], TypeError, "list"),
        (np.ones((2, 1)) * 1j, TypeError, "complex128"),
        (sparse.csr_array(np.ones((2, 1))), TypeError, "sparse"),
        (np.ma.masked_equal([[1.0], [2.0]], 2.0), ValueError, "nan for item 1"),
    ],
)
def test_bad_embeddings_are_refused(W, kind, got):
    with pytest.raises(ParameterError) as caught:
        explained_variance([[1.0, 0.2], [0.2, 1.0]], W)
    assert isinstance(caught.value, kind)
    assert (caught.value.name, got in caught.value.got) == ("W", True)


@pytest.mark.filterwarnings("ignore:Observed on the diagonal")
@pytest.mark.parametrize("value", [0.2, np.nan, 1e200])
def test_similarities_without_a_variance_are_refused(value):
    with pytest.raises(ParameterError, match=r"^S "):
        explained_variance([[1.0, value], [value, 1.0]], np.ones((2, 1)))
