"""Sparsity and entropy against their formulas, and the matching of dimensions against all permutations."""

import itertools

import numpy as np
import pandas as pd
import pytest

from simdims import ParameterError, simulate
from simdims.metrics import entropy, factor_alignment, hoyer_sparsity


def hoyer(x):
    return (np.sqrt(len(x)) - np.abs(x).sum() / np.sqrt((x**2).sum())) / (np.sqrt(len(x)) - 1)


def normalised_entropy(x):
    shares = x[x > 0] / x.sum()
    return -sum(p * np.log(p) for p in shares) / np.log(len(x))


@pytest.mark.parametrize(("metric", "formula"), [(hoyer_sparsity, hoyer), (entropy, normalised_entropy)])
def test_the_mean_over_rows_or_columns_is_the_formula(metric, formula):
    W = simulate.dirichlet(20, 5, random_state=0)
    W[W < 0.05] = 0.0
    assert metric(W) == pytest.approx(np.mean([formula(row) for row in W]))
    assert metric(W, of="items") == metric(W)
    assert metric(W, of="dimensions") == pytest.approx(np.mean([formula(column) for column in W.T]))
    assert metric(pd.DataFrame(W)) == metric(W)


@pytest.mark.parametrize("of", ["items", "dimensions"])
def test_one_loading_and_equal_loadings_are_the_extremes(of):
    assert hoyer_sparsity(np.eye(7), of=of) == pytest.approx(1)
    assert entropy(np.eye(7), of=of) == 0
    assert hoyer_sparsity(np.full((7, 7), 0.1), of=of) == pytest.approx(0, abs=1e-12)
    assert entropy(np.full((7, 7), 0.1), of=of) == pytest.approx(1)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scale_does_not_matter(scale):
    W = simulate.dirichlet(20, 5, random_state=0)
    assert hoyer_sparsity(W * scale) == pytest.approx(hoyer_sparsity(W))
    assert entropy(W * scale) == pytest.approx(entropy(W))


def test_sparsity_falls_and_entropy_rises_with_alpha():
    embeddings = [simulate.dirichlet(300, 5, alpha=alpha, random_state=0) for alpha in (0.05, 0.3, 1.0, 5.0)]
    assert np.all(np.diff([hoyer_sparsity(W) for W in embeddings]) < -0.05)
    assert np.all(np.diff([entropy(W) for W in embeddings]) > 0.05)


def test_rows_and_columns_without_loadings_do_not_count():
    W = simulate.dirichlet(20, 5, random_state=0)
    empty_row = np.vstack([W, np.zeros(5)])
    empty_column = np.column_stack([W, np.zeros(20)])
    for metric in (hoyer_sparsity, entropy):
        assert metric(empty_row) == pytest.approx(metric(W))
        assert metric(empty_column, of="dimensions") == pytest.approx(metric(W, of="dimensions"))


@pytest.mark.parametrize(
    ("metric", "W", "of", "name", "got"),
    [
        (hoyer_sparsity, np.eye(3), 0, "of", "0"),
        (hoyer_sparsity, np.ones((3, 1)), "items", "W", "(3, 1)"),
        (entropy, np.ones((1, 3)), "dimensions", "W", "(1, 3)"),
        (entropy, np.zeros((3, 3)), "items", "W", "none"),
        (entropy, [[1.0, -1.0], [1.0, -2.0]], "items", "W", "2 negative"),
        (hoyer_sparsity, [[1.0, np.nan]], "items", "W", "nan"),
    ],
)
def test_sparsity_and_entropy_refuse_bad_arguments(metric, W, of, name, got):
    with pytest.raises(ParameterError) as caught:
        metric(W, of=of)
    assert (caught.value.name, got in caught.value.got) == (name, True)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("r", "r_true"), [(4, 4), (3, 5), (5, 3)])
def test_the_matching_is_the_best_of_all(seed, r, r_true):
    rng = np.random.default_rng(seed)
    W, W_true = rng.uniform(size=(15, r)), rng.uniform(size=(15, r_true))
    C = np.corrcoef(W_true.T, W.T)[:r_true, r_true:]
    if r_true <= r:
        best = max(C[range(r_true), order].sum() for order in itertools.permutations(range(r), r_true))
    else:
        best = max(C[order, range(r)].sum() for order in itertools.permutations(range(r_true), r))
    alignment = factor_alignment(W, W_true)
    assert alignment.correlations.sum() == pytest.approx(best)
    np.testing.assert_allclose(alignment.correlations, C[alignment.true_columns, alignment.columns], atol=1e-12)
    assert alignment.mean == pytest.approx(best / min(r, r_true))
    assert len(set(alignment.columns)) == len(set(alignment.true_columns)) == min(r, r_true)
    assert np.all(np.diff(alignment.true_columns) > 0)


def test_a_permuted_scaled_noisy_copy_is_recognised():
    W_true = simulate.dirichlet(200, 6, random_state=0)
    order = np.random.default_rng(0).permutation(6)
    copy = 3 * W_true[:, order] + 0.01 * np.random.default_rng(1).normal(size=(200, 6)) + 1
    alignment = factor_alignment(copy, W_true)
    np.testing.assert_array_equal(order[alignment.columns], np.arange(6))
    assert alignment.correlations.min() > 0.99
    assert str(alignment).startswith("6 matched dimensions: mean correlation ")


def test_a_constant_column_correlates_with_nothing():
    W_true = simulate.dirichlet(50, 3, random_state=0)
    W = W_true.copy()
    W[:, 1] = 0.1
    assert factor_alignment(W, W_true).correlations == pytest.approx([1, 0, 1])


def test_factor_alignment_refuses_embeddings_that_cannot_be_compared():
    W = simulate.dirichlet(5, 3, random_state=0)
    for found, true, name in ((W, W[:4], "W_true"), (W[:1], W[:1], "W"), (W, W * np.nan, "W_true")):
        with pytest.raises(ParameterError) as caught:
            factor_alignment(found, true)
        assert caught.value.name == name
    names = list("abcde")
    with pytest.raises(ValueError, match=r"W_true .* W, .*'e'"):
        factor_alignment(pd.DataFrame(W, index=names), pd.DataFrame(W, index=names[::-1]))
