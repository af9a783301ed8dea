"""compare_embeddings: matched dimensions, calibrated p-values, and what only one embedding has."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment, nnls

from simdims import Similarity, SimilaritySet, compare_embeddings, plots, simulate
from simdims._parameters import SimdimsWarning


def independent(seed, n_items=60, sizes=(6, 6)):
    rng = np.random.default_rng(seed)
    return [rng.gamma(0.5, size=(n_items, size)) for size in sizes]


def half_shared(seed, noise=0.7, n_items=100):
    """Two embeddings of ten dimensions of which five are shared, up to noise."""
    rng = np.random.default_rng(seed)
    one, other = (simulate.dirichlet(n_items, 10, random_state=2 * seed + side) for side in (0, 1))
    other[:, :5] = np.maximum(one[:, :5] + noise * one.std() * rng.standard_normal((n_items, 5)), 0.0)
    order = rng.permutation(10)
    return one, other[:, order], order


def test_pairs_and_pvalues_are_those_of_a_slow_version():
    one, other = independent(3, sizes=(3, 4))
    compared = compare_embeddings(one, other, n_permutations=99, random_state=0)
    C = np.corrcoef(one.T, other.T)[:3, 3:]
    rows, columns = linear_sum_assignment(-C)
    assert {tuple(pair) for pair in compared.pairs.tolist()} == set(zip(rows.tolist(), columns.tolist(), strict=True))
    np.testing.assert_allclose(compared.correlation, [C[i, j] for i, j in compared.pairs])
    assert np.all(np.diff(compared.correlation) <= 0)
    # each p-value from the partners that the same dimension finds under the permutations
    n_better = (compared.null_distribution >= compared.correlation - 1e-10).sum(axis=0)
    np.testing.assert_allclose(compared.pvalue, (1 + n_better) / 100)
    np.testing.assert_allclose(
        compared.pvalue_adjusted, stats.false_discovery_control(compared.pvalue), err_msg="Benjamini-Hochberg"
    )


def test_each_permutation_has_its_own_matching():
    one, other = independent(4)
    compared = compare_embeddings(one, other, n_permutations=60, random_state=1)
    # A dimension whose partner was fixed would have correlations around zero; the best partner is above.
    assert compared.null_distribution.mean() > 0.1


def test_the_embedding_with_more_dimensions_may_come_first_or_second():
    one, other = independent(5, sizes=(7, 4))
    forth = compare_embeddings(one, other, n_permutations=50, random_state=0)
    back = compare_embeddings(other, one, n_permutations=50, random_state=0)
    assert forth.pairs.tolist() == back.pairs[:, ::-1].tolist()
    np.testing.assert_allclose(forth.pvalue, back.pvalue)
    assert len(forth.only1) >= 3
    assert forth.only1 == back.only2


def test_pvalues_are_uniform_for_independent_embeddings():
    found = np.array(
        [compare_embeddings(*independent(seed), n_permutations=99, random_state=seed).pvalue for seed in range(100)]
    )
    assert 0.02 < np.mean(found <= 0.05) < 0.09
    assert 0.45 < found.mean() < 0.55


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(10, 10), (4, 12), (12, 4)])
def test_pvalues_are_uniform_in_the_long_run(sizes):
    found = [
        compare_embeddings(*independent(seed, 80, sizes), n_permutations=199, random_state=seed)
        for seed in range(5000, 6000)
    ]
    # One p-value per data set, of a dimension that does not depend on how good its partner is.
    side = int(sizes[0] > sizes[1])
    first = np.array([c.pvalue[np.argmax(c.pairs[:, side] == 0)] for c in found])
    spread = first - np.random.default_rng(0).uniform(0, 1 / 200, len(first))  # p-values are multiples of 1/200
    assert stats.kstest(spread, "uniform").pvalue > 0.001
    rejected = np.mean(np.concatenate([c.pvalue for c in found]) <= 0.05)
    assert 0.04 < rejected < 0.06


def test_half_of_ten_dimensions_are_found_to_be_shared():
    numbers = []
    for seed in range(12):
        one, other, order = half_shared(seed)
        compared = compare_embeddings(one, other, n_permutations=500, random_state=seed)
        numbers.append(compared.n_shared)
        pairs = compared.pairs[compared.is_shared]
        assert np.sum(order[pairs[:, 1]] == pairs[:, 0]) >= 5
        assert len(compared.only1) == len(compared.only2) == 10 - compared.n_shared
    assert min(numbers) >= 4
    assert max(numbers) <= 6


def test_items_are_matched_by_name_and_others_left_out_with_a_warning():
    W = simulate.dirichlet(30, 3, random_state=0)
    names = [f"item {i}" for i in range(30)]
    one = pd.DataFrame(W, index=names)
    shuffled = one.sample(frac=1.0, random_state=1)
    compared = compare_embeddings(one, shuffled, n_permutations=20, random_state=0)
    np.testing.assert_allclose(compared.correlation, 1.0)
    with pytest.warns(SimdimsWarning, match="left out 10 of the first and 5 of the second"):
        part = compare_embeddings(one[:25], one[10:], n_permutations=20, random_state=0)
    assert part.labels == tuple(names[10:25])
    with pytest.raises(ValueError, match="W2 must share at least 4 items"):
        compare_embeddings(one[:10], one[8:], n_permutations=20)


def test_the_variance_that_shared_dimensions_explain_is_that_of_a_regression():
    rng = np.random.default_rng(0)
    W = simulate.dirichlet(40, 4, random_state=0)
    other = np.column_stack([W[:, [1, 0]], rng.gamma(0.5, size=(40, 2))])
    S = simulate.add_noise(W @ W.T, 0.7, random_state=0)
    np.fill_diagonal(S, np.nan)
    S[3, 5] = S[5, 3] = np.nan
    compared = compare_embeddings(W, other, S1=Similarity(S), n_permutations=200, random_state=0)
    assert compared.n_shared == 2
    i, j = np.triu_indices(40, 1)
    known = ~np.isnan(S[i, j])
    y = S[i, j][known]

    def slow(columns):
        X = (columns[i] * columns[j])[known]
        a = nnls(np.column_stack([X, np.ones(len(X)), -np.ones(len(X))]), y)[0]
        fitted = X @ a[:-2] + a[-2] - a[-1]
        return 1 - np.sum((y - fitted) ** 2) / np.sum((y - y.mean()) ** 2)

    row = compared.explained.loc["S1"]
    np.testing.assert_allclose(row["all"], slow(W), atol=1e-8)
    np.testing.assert_allclose(row["shared"], slow(W[:, [0, 1]]), atol=1e-8)
    np.testing.assert_allclose(row["counterparts"], slow(other[:, [1, 0]]), atol=1e-8)
    assert "explained by its own dimensions" in str(compared)
    people = SimilaritySet([S, S**2])
    of_set = compare_embeddings(W, other, S1=people, n_permutations=20, random_state=0)
    of_mean = compare_embeddings(W, other, S1=people.mean(), n_permutations=20, random_state=0)
    assert of_set.explained.equals(of_mean.explained)
    with pytest.raises(ValueError, match="S2 must have the 40 items of its embedding, got 39"):
        compare_embeddings(W, other, S2=S[:39, :39], n_permutations=20)


def test_a_constant_dimension_has_no_counterpart():
    W = simulate.dirichlet(30, 3, random_state=0)
    flat = np.column_stack([W[:, :2], np.ones(30)])
    compared = compare_embeddings(W, flat, n_permutations=100, random_state=0)
    assert "dimension3" in compared.only2


def test_the_picture_has_a_bar_per_shared_pair_and_all_dimensions():
    one, other, _ = half_shared(0)
    compared = compare_embeddings(one, other, n_permutations=200, random_state=0)
    ax = plots.embedding_comparison(compared, names=("People", "Brain"))
    assert len(ax.patches) == 2 * compared.n_shared  # a null interval and a bar for each
    texts = [text.get_text() for text in ax.texts]
    assert {f"Dimension {k + 1}" for k in range(10)} <= set(texts)
    assert "People" in texts
