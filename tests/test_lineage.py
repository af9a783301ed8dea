"""lineage: the tree of dimensions over their number, from given fits, a selection and a discovery."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from simdims import (
    SRF,
    JointSRF,
    ParameterError,
    SimilaritySet,
    as_similarity,
    discover,
    fit_consensus,
    lineage,
    plots,
    select_rank,
    simulate,
)
from simdims._parallel import seed_of
from simdims.discovery import Discovery

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N_PER_GROUP = 10


def nested_similarities(seed, snr=0.7):
    """Noisy similarities of 4 groups that split into 8, and the group of each item among the 4 and among the 8."""
    rng = np.random.default_rng(seed)
    of_eight = np.repeat(np.arange(8), N_PER_GROUP)
    of_four = of_eight // 2
    W = np.zeros((len(of_eight), 12))
    items = np.arange(len(of_eight))
    W[items, of_four] = rng.uniform(0.6, 1.2, len(items))
    W[items, 4 + of_eight] = rng.uniform(0.6, 1.2, len(items))
    return simulate.add_noise(W @ W.T, snr, random_state=seed), of_four, of_eight


def group_of(W, groups):
    """The most frequent group among the top items of each dimension."""
    return [int(np.bincount(groups[np.argsort(-column)[:N_PER_GROUP]]).argmax()) for column in W.T]


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_four_groups_that_split_into_eight_are_found(seed):
    S, of_four, of_eight = nested_similarities(seed)
    fits = {rank: fit_consensus(S, rank, n_runs=10, alpha="auto", random_state=seed) for rank in (3, 4, 5, 6, 7, 8)}
    tree = lineage(fits)
    four, eight = (group_of(fits[rank].embedding, groups) for rank, groups in ((4, of_four), (8, of_eight)))
    assert sorted(four) == list(range(4))
    assert sorted(eight) == list(range(8))
    for dimension, group in enumerate(eight, start=1):
        ancestor = dict(tree.ancestors(8, dimension))[4]
        assert four[ancestor - 1] == group // 2
    # Another branch has come from each of the four that ended, and the parts of the first ones are stable.
    at_four = tree.table.loc[tree.table["rank"] == 4, "branch"]
    at_eight = set(tree.table.loc[tree.table["rank"] == 8, "branch"])
    gone = [branch for branch in at_four if branch not in at_eight]
    assert len(gone) >= 3
    assert set(gone) <= set(tree.branches["origin"])
    assert tree.branches["stable"].sum() >= 4


def test_parents_are_the_most_correlated_dimensions_by_definition():
    rng = np.random.default_rng(0)
    fits = [rng.random((30, rank)) for rank in (5, 2, 3)]
    tree = lineage(fits)
    assert tree.ranks == (2, 3, 5)
    ordered = sorted(fits, key=lambda W: W.shape[1])
    for before, W in pairwise(ordered):
        rows = tree.table[tree.table["rank"] == W.shape[1]].set_index("dimension")
        for j in range(W.shape[1]):
            correlations = [np.corrcoef(before[:, i], W[:, j])[0, 1] for i in range(before.shape[1])]
            if max(correlations) < 0.3:
                assert rows.loc[j + 1, "parent"] == 0
                assert np.isnan(rows.loc[j + 1, "correlation"])
            else:
                assert rows.loc[j + 1, "parent"] == np.argmax(correlations) + 1
                assert rows.loc[j + 1, "correlation"] == pytest.approx(max(correlations))
    for W in ordered:
        own = tree.table.loc[tree.table["rank"] == W.shape[1], "share"]
        np.testing.assert_allclose(own, (W**2).sum(axis=0) / (W**2).sum())


def test_slow_changes_do_not_pass_as_the_same_dimension():
    # Each step correlates 0.95 or more, the ends do not.
    rng = np.random.default_rng(0)
    one, other = rng.random((2, 200))
    fits = {}
    for step, share in enumerate(np.linspace(0, 1, 6)):
        extra = np.eye(200)[:, : step + 1] * 5
        fits[step] = np.column_stack([(1 - share) * one + share * other, extra])
    tree = lineage(fits)
    of_first = tree.table[tree.table["dimension"] == 1]
    assert of_first["correlation"].iloc[1:].min() > 0.9
    assert of_first["branch"].nunique() > 1
    assert "changed" in set(tree.branches["fate"])


def test_the_same_dimensions_are_one_branch_and_new_ones_have_no_parent():
    W = np.kron(np.eye(5), np.ones((6, 1))) + 0.01 * np.random.default_rng(1).random((30, 5))
    tree = lineage([W[:, [2, 0, 1]], W[:, :4], W])
    assert len(tree.branches) == 5
    assert (tree.branches["fate"] == "last rank").all()
    assert tree.branches["origin"].tolist() == [0] * 5
    assert tree.branches["first_rank"].tolist() == [3, 3, 3, 4, 5]
    assert tree.branches["stable"].tolist() == [True] * 4 + [False]
    assert tree.table.loc[tree.table["rank"] == 4, "parent"].tolist() == [2, 3, 1, 0]


def test_a_dimension_without_successor_is_lost():
    blocks = np.kron(np.eye(6), np.ones((5, 1)))
    tree = lineage([blocks[:, [0, 1]], blocks[:, [0, 2, 3]]])
    assert tree.branches["fate"].tolist() == ["last rank", "lost", "last rank", "last rank"]


def test_the_scale_and_the_order_of_the_fits_do_not_matter_and_nothing_is_changed():
    rng = np.random.default_rng(0)
    fits = [rng.random((20, rank)) for rank in (2, 3, 4)]
    copies = [W.copy() for W in fits]
    one, other = lineage(fits), lineage({"c": 7 * fits[2], "a": 3 * fits[0], "b": fits[1]})
    pd.testing.assert_frame_equal(one.table, other.table)
    for W, copy in zip(fits, copies, strict=True):
        np.testing.assert_array_equal(W, copy)


def test_a_tree_keeps_its_own_embeddings_and_answers_about_its_dimensions_only():
    halves, quarters = np.kron(np.eye(2), np.ones((8, 1))), np.kron(np.eye(4), np.ones((4, 1)))
    tree = lineage([halves * 1e200, quarters * 1e-200])
    halves[:] = 0
    assert tree.top_items(2, 2, 1) == ["8"]
    assert tree.table["share"].tolist() == [0.5] * 2 + [0.25] * 4  # whatever the units
    with pytest.raises(ValueError, match="read-only"):
        tree.embeddings[0][0] = 1
    for ask in (tree.top_items, tree.ancestors):
        with pytest.raises(ValueError, match="rank must be one of 2, 4, got 3"):
            ask(3, 1)
        for dimension in (0, 5):
            with pytest.raises(ValueError, match="dimension must be"):
                ask(4, dimension)


def test_lines_of_the_tree_do_not_cross():
    rng = np.random.default_rng(3)
    tree = lineage([rng.random((12, rank)) for rank in range(1, 9)])
    places = pd.Series(tree.places(), index=pd.MultiIndex.from_frame(tree.table[["rank", "dimension"]]))
    assert (tree.table["parent"] > 0).sum() > 10
    for before, rank in pairwise(tree.ranks):
        own = tree.table[(tree.table["rank"] == rank) & (tree.table["parent"] > 0)]
        lines = sorted((places[rank, row.dimension], places[before, row.parent]) for row in own.itertuples())
        assert (np.diff([start for _, start in lines]) >= 0).all()
    for rank in tree.ranks:
        assert places[rank].is_unique


# From a selection or a discovery


def test_a_selection_and_a_discovery_are_fitted_at_each_number():
    S, *_ = nested_similarities(5, snr=0.9)
    S = as_similarity(S, labels=[f"item{i}" for i in range(len(S))])
    selection = select_rank(S, [2, 4, 6, 8], n_repeats=1, random_state=0)
    tree = lineage(selection, random_state=0)
    assert tree.ranks == tuple(rank for rank in (2, 4, 6, 8) if rank <= 2 * selection.rank)
    assert tree.labels == S.labels
    again = lineage(selection, S, random_state=0)
    pd.testing.assert_frame_equal(tree.table, again.table)
    unpickled = pickle.loads(pickle.dumps(selection))
    assert unpickled.similarity is None
    with pytest.raises(ParameterError, match="lineage\\(selection, S\\)"):
        lineage(unpickled)
    pd.testing.assert_frame_equal(lineage(unpickled, S, random_state=0).table, tree.table)


def test_the_dimensions_of_a_discovery_are_in_its_tree(tmp_path):
    S, *_ = nested_similarities(5, snr=0.9)
    found = discover(S, ranks=8, n_runs=5, n_repeats=1, random_state=0)
    with pytest.raises(ParameterError, match="ranks"):
        lineage(found)
    tree = lineage(found, ranks=[4, 8], random_state=0)
    np.testing.assert_array_equal(tree.embeddings[1], found.embedding)
    found.save(tmp_path / "found")
    loaded = lineage(Discovery.load(tmp_path / "found"), ranks=[4, 8], random_state=0)
    pd.testing.assert_frame_equal(loaded.table, tree.table)


def test_a_discovery_is_fitted_with_its_penalties():
    S, *_ = nested_similarities(5, snr=0.9)
    settings = {"n_runs": 3, "n_repeats": 1, "random_state": 0}
    one = SRF(alpha=0.3, l1_ratio=1.0, max_iter=2000)
    many = JointSRF(alpha=0.2, l1_ratio=0.5, shrinkage=0.3, max_iter=2000)
    for data, estimator in ((S, one), (SimilaritySet([S, 2 * S]), many)):
        tree = lineage(discover(data, ranks=8, estimator=estimator, **settings), ranks=[4, 8], random_state=0)
        runs = fit_consensus(data, 4, n_runs=10, n_splits=1, estimator=estimator, random_state=seed_of(0, 4))
        np.testing.assert_array_equal(tree.embeddings[0], runs.embedding)


def test_words_name_the_splits():
    halves = pd.DataFrame(np.kron(np.eye(2), np.ones((4, 1))), index=list("abcdefgh"))
    quarters = pd.DataFrame(np.kron(np.eye(4), np.ones((2, 1))), index=list("abcdefgh"))
    tree = lineage([halves, quarters])
    assert "split after 2: dimension 1 of 2 (a, b, c)" in str(tree)
    assert "into dimension 2 of 4 (c, d)" in str(tree)
    assert "stable" in repr(tree)


# The figure


def test_the_figure_has_a_mark_per_dimension_and_a_line_per_parent():
    halves = pd.DataFrame(np.kron(np.eye(2), np.ones((4, 1))), index=list("abcdefgh"))
    quarters = pd.DataFrame(np.kron(np.eye(4), np.ones((2, 1))), index=list("abcdefgh"))
    ax = plots.lineage(lineage([halves, quarters]), n_items=2)
    assert len(ax.collections) == 6
    assert len(ax.lines) == 4
    assert {text.get_text() for text in ax.texts} == {"1: a, b", "2: c, d", "3: e, f", "4: g, h"}
    assert [text.get_text() for text in ax.get_xticklabels()] == ["2", "4"]
    assert {text.get_text() for text in plots.lineage(lineage([halves, quarters]), n_items=0).texts} == set("1234")


def test_stable_branches_have_colours_and_others_are_grey():
    W = np.kron(np.eye(5), np.ones((6, 1)))
    ax = plots.lineage(lineage([W[:, :2], W[:, :3], W[:, :4], W]))
    from matplotlib.colors import to_hex

    colours = [to_hex(marks.get_facecolor()[0]).upper() for marks in ax.collections]
    assert colours.count("#B0B0B0") == 1  # found in the largest fit only
    assert len(set(colours)) == 5


def test_a_selection_among_one_number_needs_others():
    S, *_ = nested_similarities(5, snr=0.9)
    selection = select_rank(S, [4], n_repeats=1, random_state=0)
    with pytest.raises(ParameterError, match="ranks"):
        lineage(selection)
    assert lineage(selection, ranks=[2, 4], random_state=0).ranks == (2, 4)


def test_several_people_have_a_tree_of_shared_dimensions():
    rng = np.random.default_rng(0)
    W = simulate.dirichlet(25, 3, alpha=0.3, random_state=0)
    people = SimilaritySet([(W * rng.gamma(4, 0.25, 3)) @ W.T for _ in range(3)])
    found = discover(people, ranks=[2, 3], n_runs=3, n_repeats=1, random_state=0)
    tree = lineage(found, random_state=0)
    assert tree.ranks == (2, 3)
    np.testing.assert_array_equal(tree.embeddings[tree.ranks.index(found.n_components)], found.embedding)
