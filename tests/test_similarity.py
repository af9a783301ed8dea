"""Similarity and as_similarity: what they accept, and what they make of it."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import no_warnings, refused, traced_memory
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import loadmat
from sklearn.utils import check_array

from simdims import (
    SRF,
    Discovery,
    _memory,
    align,
    combined_test,
    dimension_test,
    discover,
    from_dissimilarity,
    from_features,
    from_ratings,
    metrics,
    rsa_test,
    simulate,
)
from simdims.metrics import explained_variance
from simdims.similarity import Similarity, as_similarity
from simdims.similarity.dissimilarity import transitivity

FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]
FORMATS_THAT_STORE_ZEROS = ["csr", "csc", "coo"]
CONTAINERS = {"array": sparse.coo_array, "matrix": sparse.coo_matrix}
NAMES = ["cat", "dog", "car", "bus"]


def complete(n_items=4, seed=0, dtype=np.float64):
    """A dense symmetric matrix with positive entries, the largest of them on the diagonal."""
    S = np.random.default_rng(seed).uniform(0.1, 0.9, (n_items, n_items))
    S = np.triu(S) + np.triu(S, 1).T
    np.fill_diagonal(S, 1.0)
    return S.astype(dtype)


def with_nan(S, *pairs):
    """A copy in which both sides of the given pairs are missing."""
    S = S.copy()
    for i, j in pairs:
        S[i, j] = S[j, i] = np.nan
    return S


def stored(entries, n_items=4, container="array", kind="coo", dtype=np.float64):
    """A sparse matrix with exactly the given {(row, column): value} stored."""
    rows, columns = zip(*entries, strict=True)
    data = np.array(list(entries.values()), dtype=dtype)
    return CONTAINERS[container]((data, (rows, columns)), shape=(n_items, n_items)).asformat(kind)


def stored_entries(matrix):
    """The stored entries of a sparse matrix as {(row, column): value}."""
    matrix = matrix.tocoo()
    return dict(zip(zip(matrix.row.tolist(), matrix.col.tolist(), strict=True), matrix.data.tolist(), strict=True))


def both_sides(entries):
    return {**entries, **{(j, i): value for (i, j), value in entries.items()}}


def given_as(S, storage, absent="missing"):
    """Dense values, or sparse ones that store all but NaN, as the arguments of Similarity."""
    if storage == "dense":
        return {"values": S}
    known = ~np.isnan(S)
    return {"values": sparse.csr_array((S[known], np.nonzero(known)), shape=S.shape), "absent": absent}


def with_rounding():
    return complete() + np.triu(np.full((4, 4), 1e-12))


RING = {(0, 1): 0.5, (1, 2): 0.25, (2, 3): 0.75, (0, 3): 0.125}


# What is kept, and how


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetric_float_arrays_that_are_read_only_are_held_without_a_copy(dtype):
    S, weights = complete(dtype=dtype), complete(seed=1, dtype=dtype)
    S.flags.writeable = weights.flags.writeable = False
    similarity = Similarity(S, weights=weights)
    for held, given_array in ((similarity.values, S), (similarity.weights, weights)):
        assert np.shares_memory(held, given_array)
        assert held.dtype == dtype
        assert not held.flags.writeable


def test_a_file_that_is_mapped_to_be_read_is_not_copied(tmp_path):
    np.save(tmp_path / "S.npy", complete(300))
    mapped = np.load(tmp_path / "S.npy", mmap_mode="r")
    assert np.shares_memory(Similarity(mapped).values, mapped)
    writeable = np.load(tmp_path / "S.npy", mmap_mode="r+")
    assert not np.shares_memory(Similarity(writeable).values, writeable)


SHARING = {
    "values": (Similarity, complete),
    "float32": (Similarity, lambda: complete(dtype=np.float32)),
    "as_similarity": (as_similarity, complete),
    "weights": (lambda weights: Similarity(complete(), weights=weights), complete),
    "factors": (Similarity.from_factors, lambda: complete()[:, :2].copy()),
    "features": (lambda X: from_features(X, implicit=True), lambda: complete()[:, :2].copy()),
    "frame": (lambda values: as_similarity(pd.DataFrame(values, copy=False)), complete),
    "read-only view": (lambda values: Similarity(np.broadcast_to(values, values.shape)), complete),
    "view": (lambda values: Similarity(values.T), complete),
}


@pytest.mark.parametrize("name", SHARING)
def test_what_happens_to_the_given_array_later_changes_nothing(name):
    make, given = SHARING[name]
    array = given()
    similarity = make(array)
    held = [getattr(similarity, name, None) for name in ("values", "weights", "factors")]
    before = [None if one is None else one.copy() for one in held]
    assert array.flags.writeable
    array *= 10
    for one, other in zip(held, before, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one is None or not one.flags.writeable


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "coo_array"])
def test_what_happens_to_a_given_sparse_matrix_later_changes_nothing(kind):
    values = getattr(sparse, kind)(complete())
    weights = values.copy()
    similarity = Similarity(values, weights=weights, absent="missing")
    for matrix in (values, weights):
        matrix.data *= 10
        if hasattr(matrix, "indices"):
            matrix.indices[:] = 0
    np.testing.assert_array_equal(similarity.values.toarray(), complete())
    np.testing.assert_array_equal(similarity.weights.toarray(), complete())


def test_without_a_copy_the_array_is_shared_and_stays_the_callers():
    S, weights = complete(), complete(seed=1)
    similarity = as_similarity(S, weights=weights, copy=False)
    assert np.shares_memory(similarity.values, S)
    assert np.shares_memory(similarity.weights, weights)
    assert S.flags.writeable
    assert not similarity.values.flags.writeable


def test_a_discovery_saves_what_was_fitted(tmp_path):
    W = np.random.default_rng(0).random((20, 2))
    S = W @ W.T
    fitted = S.copy()
    found = discover(S, ranks=2, n_runs=2, random_state=0, progress=False)
    S *= 10
    found.save(tmp_path / "found")
    np.testing.assert_array_equal(Discovery.load(tmp_path / "found").similarity.values, fitted)
    assert found.metrics["explained_variance"] == explained_variance(found.similarity, found.embedding)


def test_a_fit_does_not_copy():
    W = np.random.default_rng(0).random((1500, 3))
    S = W @ W.T
    SRF(3, max_iter=1, random_state=0).fit(S)  # compile
    with traced_memory() as peak:
        SRF(3, max_iter=3, tol=0.0, random_state=0).fit(S)
        assert peak() < 0.5 * S.nbytes


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_items", [3, 256, 300, 513])
def test_values_survive_unchanged_at_every_size_and_order(n_items, order):
    S = np.asarray(with_nan(complete(n_items), (0, n_items - 1)), order=order)
    np.testing.assert_array_equal(Similarity(S).values, S)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.longdouble, ">f8", object])
def test_other_numbers_become_float64(dtype):
    similarity = Similarity(np.array([[1, 0], [0, 1]], dtype=dtype))
    assert similarity.values.dtype == np.dtype(np.float64)
    np.testing.assert_array_equal(similarity.values, np.eye(2))
    assert Similarity(complete().astype(">f4")).values.dtype == np.dtype(np.float32)


def test_arrays_made_by_us_are_read_only_too():
    assert not Similarity([[1, 0.5], [0.5, 1]]).values.flags.writeable
    upper = Similarity([[1, 0.5], [np.nan, 1]], weights=[[1, 2], [0, 1]])
    assert not upper.values.flags.writeable
    assert not upper.weights.flags.writeable


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_sparse_format_becomes_the_same_read_only_canonical_csr(kind, container, dtype):
    S = stored({**both_sides(RING), **{(i, i): 1.0 for i in range(4)}}, 4, container, kind, dtype)
    similarity = Similarity(S, absent="missing")
    assert type(similarity.values) is sparse.csr_array
    assert similarity.values.dtype == dtype
    assert similarity.values.has_canonical_format
    for part in (similarity.values.data, similarity.values.indices, similarity.values.indptr):
        assert not part.flags.writeable
    # bsr also stores the zeros that fill its blocks; they are stored, hence observed.
    expected = {key: value for key, value in stored_entries(similarity.values).items() if value}
    assert expected == {**both_sides(RING), **{(i, i): 1.0 for i in range(4)}}


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_both_index_dtypes_are_accepted(index_dtype):
    S = stored(both_sides(RING), kind="csr")
    S.indices, S.indptr = S.indices.astype(index_dtype), S.indptr.astype(index_dtype)
    similarity = Similarity(S, absent="missing")
    assert stored_entries(similarity.values) == both_sides(RING)
    assert not similarity.values.indices.flags.writeable


def test_duplicates_are_summed_and_indices_sorted_in_a_copy():
    S = sparse.coo_array(([0.25, 0.25, 1.0], ([0, 0, 0], [1, 1, 0])), shape=(2, 2))
    assert stored_entries(Similarity(S, absent="missing").values) == {(0, 0): 1.0, (0, 1): 0.5, (1, 0): 0.5}
    indices, data = np.array([2, 1, 1, 0, 0]), np.array([0.2, 0.25, 0.25, 0.5, 0.2])
    S = sparse.csr_array((data, indices, np.array([0, 3, 4, 5])), shape=(3, 3))
    indices_before, data_before = S.indices.copy(), S.data.copy()
    similarity = Similarity(S, absent="missing")
    assert stored_entries(similarity.values) == {(0, 1): 0.5, (0, 2): 0.2, (1, 0): 0.5, (2, 0): 0.2}
    np.testing.assert_array_equal(S.indices, indices_before)
    np.testing.assert_array_equal(S.data, data_before)


@pytest.mark.parametrize("kind", FORMATS_THAT_STORE_ZEROS)
@pytest.mark.parametrize("symmetrize", [None, "mean", "max"])
@pytest.mark.parametrize("sides", ["upper", "both"])
def test_stored_zeros_and_stored_nans_are_kept(kind, symmetrize, sides):
    entries = {(0, 1): 0.0, (0, 2): np.nan, (1, 2): 0.5, (2, 3): 0.5, (0, 0): 0.0, (1, 1): 1.0}
    given_entries = both_sides(entries) if sides == "both" else entries
    similarity = as_similarity(stored(given_entries, kind=kind), absent="missing", symmetrize=symmetrize)
    np.testing.assert_equal(stored_entries(similarity.values), both_sides(entries))


def test_a_pair_stored_as_nan_stays_left_out_when_absent_pairs_are_zeros():
    similarity = as_similarity(stored({(0, 1): np.nan, (1, 2): 0.5}), absent="zero", symmetrize="mean")
    np.testing.assert_equal(stored_entries(similarity.values), both_sides({(0, 1): np.nan, (1, 2): 0.25}))


def test_sparse_input_never_becomes_a_dense_matrix():
    n_items = 3000
    rows, columns = np.arange(n_items - 1), np.arange(1, n_items)
    S = sparse.coo_array((np.full(n_items - 1, 0.5), (rows, columns)), shape=(n_items, n_items))
    with traced_memory() as peak:
        for symmetrize in (None, "mean", "max"):
            as_similarity(S, weights=S, absent="zero", symmetrize=symmetrize)
        assert peak() < n_items**2 / 4  # bytes: a quarter even of a dense matrix of booleans


def test_checking_a_dense_matrix_needs_no_second_one():
    S = complete(2000)
    with traced_memory() as peak:
        as_similarity(S, weights=S, copy=False)
        assert peak() < S.nbytes / 4


def test_masked_cells_are_missing():
    S = np.ma.masked_array([[4, 2, 9], [2, 4, 1], [9, 1, 4]], mask=np.eye(3)[::-1] * (1 - np.eye(3)))
    np.testing.assert_array_equal(Similarity(S).values, [[4, 2, np.nan], [2, 4, 1], [np.nan, 1, 4]])


# The caller's own data


@pytest.mark.parametrize(
    "S",
    [complete(), np.where(np.tri(4, k=-1, dtype=bool), np.nan, complete()), with_rounding(), np.eye(4, dtype=int)],
    ids=["symmetric", "upper", "rounding", "integers"],
)
@pytest.mark.parametrize("symmetrize", [None, "mean", "max"])
def test_dense_input_is_never_changed(S, symmetrize):
    S, weights = S.copy(), np.ones((4, 4))
    S_before, weights_before = S.copy(), weights.copy()
    as_similarity(S, weights=weights, symmetrize=symmetrize)
    np.testing.assert_array_equal(S, S_before)
    np.testing.assert_array_equal(weights, weights_before)
    assert S.flags.writeable
    assert weights.flags.writeable


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("symmetrize", [None, "mean"])
@pytest.mark.parametrize("entries", [RING, both_sides(RING)], ids=["upper", "both"])
def test_sparse_input_is_never_changed(kind, symmetrize, entries):
    S = stored(entries, kind=kind)
    parts = ("data", "row", "col") if kind == "coo" else ("data", "indices", "indptr")
    before = {part: getattr(S, part).copy() for part in parts}
    as_similarity(S, weights=S, absent=0.1, symmetrize=symmetrize)
    for part in parts:
        np.testing.assert_array_equal(getattr(S, part), before[part])
        assert getattr(S, part).flags.writeable


def test_a_frame_is_never_changed():
    frame = pd.DataFrame(np.where(np.tri(4, k=-1), np.nan, complete()), index=NAMES, columns=NAMES)
    before = frame.copy(deep=True)
    as_similarity(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_a_similarity_cannot_be_reassigned_or_written_to():
    similarity = Similarity(complete(), info={"source": "made up"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        similarity.values = np.eye(4)
    with pytest.raises(ValueError, match="read-only"):
        similarity.values[0, 0] = 2.0
    with pytest.raises(TypeError):
        similarity.info["source"] = "changed"


# Triangles


@settings(max_examples=60, deadline=None)
@given(data=st.data(), n_items=st.integers(2, 7), storage=st.sampled_from(["dense", "missing", "zero", 0.25]))
def test_upper_lower_and_both_triangles_give_the_same_similarity(data, n_items, storage):
    S, observed, kept = draw_matrix(data, n_items)
    upper = np.triu(np.ones_like(observed))
    sides = {"both": observed, "upper": observed & upper, "lower": observed & upper.T}
    # Each pair in the triangle that its own coin chose.
    coin = np.triu(kept)
    sides["mixed"] = observed & (coin | ~coin.T & ~upper | np.eye(n_items, dtype=bool))
    assert np.array_equal(sides["mixed"] | sides["mixed"].T, observed)
    made = [make(S, side, storage) for side in sides.values()]
    for other in made[1:]:
        assert_same(other, made[0])
    expected = observed if storage in ("dense", "missing") else np.ones_like(observed)
    n_pairs = n_items * (n_items - 1)
    assert made[0].density == pytest.approx((expected.sum() - np.trace(expected)) / n_pairs)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), n_items=st.integers(2, 7), storage=st.sampled_from(["dense", "missing", "zero", 0.25]))
def test_permuting_the_items_permutes_the_similarity(data, n_items, storage):
    S, observed, _ = draw_matrix(data, n_items)
    order = np.array(data.draw(st.permutations(range(n_items))))
    labels = [f"item {i}" for i in range(n_items)]
    direct = make(S, observed, storage, labels)
    permuted = make(S[np.ix_(order, order)], observed[np.ix_(order, order)], storage, [labels[i] for i in order])
    assert permuted.labels == tuple(labels[i] for i in order)
    assert permuted.density == direct.density
    np.testing.assert_array_equal(as_nan(permuted.values), as_nan(direct.values)[np.ix_(order, order)])


def draw_matrix(data, n_items):
    """Symmetric values, a symmetric pattern of observed entries with a full diagonal, and a free pattern."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    S = np.round(complete(n_items, rng) * 4) / 4  # zeros among them
    observed = np.triu(rng.random((n_items, n_items)) < data.draw(st.sampled_from([0.2, 0.6, 1.0])), 1)
    observed = observed | observed.T | np.eye(n_items, dtype=bool)
    return S, observed, rng.random((n_items, n_items)) < 0.5


def make(S, given_entries, storage, labels=None):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Observed on the diagonal")
        if storage == "dense":
            return as_similarity(np.where(given_entries, S, np.nan), labels=labels)
        rows, columns = np.nonzero(given_entries)
        matrix = sparse.coo_array((S[rows, columns], (rows, columns)), shape=S.shape)
        return as_similarity(matrix, labels=labels, absent=storage)


def as_nan(values):
    """Dense values, with NaN for what a sparse matrix does not store."""
    if not sparse.issparse(values):
        return values
    dense = np.full(values.shape, np.nan)
    for (i, j), value in stored_entries(values).items():
        dense[i, j] = value
    return dense


def assert_same(one, other):
    assert one.labels == other.labels
    assert one.absent == other.absent
    assert one.density == other.density
    assert sparse.issparse(one.values) == sparse.issparse(other.values)
    np.testing.assert_array_equal(as_nan(one.values), as_nan(other.values))


@pytest.mark.parametrize(("dtype", "gap"), [(np.float64, 5e-9), (np.float32, 5e-6)])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_rounding_is_averaged_away_and_more_is_refused(dtype, gap, scale, storage):
    S = (scale * complete()).astype(dtype)
    S[0, 1] = S[1, 0] + dtype(gap * scale)
    assert S[0, 1] != S[1, 0]
    similarity = Similarity(**given_as(S, storage))
    values = as_nan(similarity.values)
    np.testing.assert_array_equal(values, values.T)
    assert values[0, 1] == dtype(0.5) * (S[0, 1] + S[1, 0])
    assert similarity.values.dtype == dtype
    S[0, 1] = S[1, 0] + dtype(4 * gap * scale)
    with refused("values", "1 pair"):
        Similarity(**given_as(S, storage))


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize(("how", "expected"), [("mean", [0.5, 0.4]), ("max", [0.8, 0.4])])
def test_symmetrize_merges_two_sides_and_takes_the_only_one(storage, how, expected):
    arguments = given_as(np.array([[1, 0.2, 0.4], [0.8, 1, np.nan], [np.nan, np.nan, 1]]), storage)
    values = as_nan(as_similarity(arguments.pop("values"), **arguments, symmetrize=how).values)
    first, second = expected
    np.testing.assert_array_equal(values, [[1, first, second], [first, 1, np.nan], [second, np.nan, 1]])


@pytest.mark.parametrize("absent", ["zero", 0.25])
@pytest.mark.parametrize(("how", "factor"), [("mean", 0.5), ("max", 1.0)])
def test_a_link_of_a_directed_graph_without_its_return_counts_as_zero_there(absent, how, factor):
    graph = stored({(0, 1): 0.5, (1, 2): 0.25, (2, 1): 0.25, (3, 2): 0.75})
    values = as_similarity(graph, absent=absent, symmetrize=how).values
    expected = {(0, 1): 0.5 * factor, (1, 2): 0.25, (2, 3): 0.75 * factor}
    assert stored_entries(values) == both_sides(expected)


@pytest.mark.parametrize("absent", ["missing", "zero", 0.25])
def test_one_triangle_of_a_sparse_matrix_is_mirrored_whatever_absent_pairs_mean(absent):
    assert stored_entries(as_similarity(stored(RING), absent=absent).values) == both_sides(RING)


@pytest.mark.parametrize("absent", ["missing", "zero"])
@pytest.mark.parametrize("symmetrize", [None, "mean"])
def test_a_value_beside_a_stored_nan_is_taken(absent, symmetrize):
    entries = {**both_sides(RING), (1, 0): np.nan, (3, 2): np.nan}
    values = as_similarity(stored(entries), absent=absent, symmetrize=symmetrize).values
    assert stored_entries(values) == both_sides(RING)


@pytest.mark.parametrize("n_items", [256, 257, 600])
def test_one_triangle_of_a_large_matrix_is_the_whole_of_it(n_items):
    S = complete(n_items)
    below = np.tri(n_items, k=-1, dtype=bool)
    for missing in (below, below.T):
        np.testing.assert_array_equal(Similarity(np.where(missing, np.nan, S)).values, S)


@pytest.mark.parametrize("n_items", [4, 300])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_widest_difference_is_named_with_its_labels_values_and_count(n_items, is_first):
    S = complete(n_items)
    wide, narrow = ((0, 1), (2, n_items - 1)) if is_first else ((2, n_items - 1), (0, 1))
    S[narrow], S[narrow[::-1]] = 0.3, 0.2
    S[wide], S[wide[::-1]] = 0.1, 0.9
    labels = [f"item {i}" for i in range(n_items)]
    first, second = (repr(labels[item]) for item in wide)
    with refused("values", "2 pairs", f"0.1 at ({first}, {second}) and 0.9 at ({second}, {first})"):
        as_similarity(S, labels=labels)


def test_sparse_triangles_that_differ_are_refused_by_position():
    with refused("values", "1 pair", "0.5 at (0, 1)"):
        as_similarity(stored({**RING, (1, 0): 0.4}), absent="missing")


# Labels


def test_labels_become_a_tuple_of_text():
    assert Similarity(complete(3), labels=np.array([7, 8, 9])).labels == ("7", "8", "9")
    assert Similarity(complete(3)).labels is None


def frame(S=None, index=NAMES, columns=NAMES):
    return pd.DataFrame(complete() if S is None else S, index=index, columns=columns)


def test_a_frame_gives_its_labels_and_its_float32_values():
    similarity = as_similarity(frame(complete(dtype=np.float32)))
    assert similarity.labels == tuple(NAMES)
    assert similarity.values.dtype == np.float32
    np.testing.assert_array_equal(similarity.values, complete(dtype=np.float32))


def test_one_axis_of_a_frame_may_name_the_items_or_none():
    assert as_similarity(pd.DataFrame(complete())).labels is None
    assert as_similarity(pd.DataFrame(complete()), labels=NAMES).labels == tuple(NAMES)
    assert as_similarity(pd.DataFrame(complete(), columns=NAMES)).labels == tuple(NAMES)
    assert as_similarity(pd.DataFrame(complete(), index=NAMES)).labels == tuple(NAMES)
    assert as_similarity(frame(index=range(1, 5), columns=range(1, 5))).labels == ("1", "2", "3", "4")
    assert as_similarity(frame(index=[3, 1, 4, 2], columns=list("3142"))).labels == ("3", "1", "4", "2")


def test_names_that_disagree_are_refused_at_the_first_difference():
    assert as_similarity(frame(), labels=NAMES).labels == tuple(NAMES)
    with refused("the index of values", "'cat' instead of 'a' in place 0"):
        as_similarity(frame(), labels=["a", "b", "c", "d"])
    with refused("the columns of values", "'cat' instead of 'a' in place 0"):
        as_similarity(frame(index=range(4)), labels=["a", "b", "c", "d"])
    with refused("the columns of values", "'van' instead of 'car' in place 2"):
        as_similarity(frame(columns=["cat", "dog", "van", "bus"]))
    with refused("the columns of values", "'dog' instead of 'cat' in place 0"):
        as_similarity(frame(columns=["dog", "dog", "car", "bus"]))
    with refused("the index of values", "another order"):
        as_similarity(frame(), labels=NAMES[::-1])


def test_columns_in_another_order_than_rows_are_aligned_and_this_is_said(caplog):
    S = as_similarity(frame())
    shuffled = frame()[[NAMES[place] for place in (2, 0, 3, 1)]]
    with caplog.at_level("INFO", "simdims"):
        found = as_similarity(shuffled, weights=frame(np.arange(16.0).reshape(4, 4) + np.arange(16.0).reshape(4, 4).T))
    np.testing.assert_array_equal(found.values, S.values)
    assert found.labels == S.labels
    assert "columns" in found.info["aligned"]
    assert "the columns of values" in caplog.text.lower()
    assert "aligned" not in S.info


def test_weights_in_a_frame_must_name_the_items_of_the_values():
    ones = np.ones((4, 4))
    assert as_similarity(frame(), weights=frame(ones)).weights[0, 1] == 1
    assert as_similarity(frame(), weights=pd.DataFrame(ones)).labels == tuple(NAMES)
    assert as_similarity(complete(), labels=NAMES, weights=frame(ones)).labels == tuple(NAMES)
    with refused("the index of weights", "'van' instead of 'bus'"):
        as_similarity(frame(), weights=frame(ones, [*NAMES[:3], "van"], [*NAMES[:3], "van"]))
    weights = frame(np.outer(range(1, 5), range(1, 5)))
    S = as_similarity(frame(), weights=weights)
    again = as_similarity(frame(), weights=weights.iloc[[3, 1, 0, 2], [1, 0, 2, 3]])
    np.testing.assert_array_equal(again.weights, S.weights)
    with refused("weights", "(4, 4)", "(3, 3)"):
        as_similarity(frame(), weights=frame(np.ones((3, 3)), NAMES[:3], NAMES[:3]))


def test_missing_cells_of_every_pandas_kind_are_missing():
    expected = [[1, np.nan, 0.5], [np.nan, 1, 0.25], [0.5, 0.25, 1]]
    nullable = pd.DataFrame(expected, dtype="Float64")
    objects = nullable.astype(object)
    for given_frame in (nullable, objects, objects.to_numpy(na_value=None).tolist()):
        np.testing.assert_array_equal(as_similarity(given_frame).values, expected)


def test_pandas_is_not_imported_for_those_who_do_not_use_it():
    script = "import sys, simdims.similarity as s; s.as_similarity([[1.0]]); sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("label", "words"),
    [(os.fsdecode(b"caf\xe9.png"), "os.fsencode"), ("a\ud800", "half a character"), ("a\0b", "control character")],
)
def test_labels_that_no_file_can_hold_are_refused_at_once(label, words):
    for make in (
        lambda: Similarity(complete(2), ["x", label]),
        lambda: as_similarity(pd.DataFrame(complete(2), *2 * [pd.Index(["x", label], dtype=object)])),
        lambda: Similarity.from_factors(complete(2), ["x", label]),
        lambda: from_features(complete(2), labels=["x", label]),
    ):
        with refused("labels", f"{label!a} in place 1", words):
            make()
    with pytest.raises(ValueError, match=r"text that can be written to files, got (bytes that are not|a control)"):
        from_ratings({"a": ["0"], "b": [label], "r": [1]}, item1="a", item2="b", rating="r", low=0, high=1)


def test_labels_may_hold_line_ends_and_any_script():
    labels = ("a\nb", "a\rb", "tab\t\x1b[2J", "日本語😀")
    assert Similarity(complete(), labels).labels == labels


# Weights and density


def test_a_pair_measured_on_one_side_takes_the_weight_of_that_side():
    S = np.array([[1, 0.5, np.nan], [np.nan, 1, 0.25], [0.75, np.nan, 1]])
    weights = [[1, 2, 0], [0, 1, 3], [4, 0, 1]]
    similarity = Similarity(S, weights=weights)
    np.testing.assert_array_equal(similarity.values, [[1, 0.5, 0.75], [0.5, 1, 0.25], [0.75, 0.25, 1]])
    np.testing.assert_array_equal(similarity.weights, [[1, 2, 4], [2, 1, 3], [4, 3, 1]])


@pytest.mark.parametrize("value_sides", ["upper", "lower", "both"])
@pytest.mark.parametrize("weight_sides", ["upper", "lower", "both"])
def test_sparse_weights_are_mirrored_like_their_values(value_sides, weight_sides):
    def sides(entries):
        lower = {(j, i): value for (i, j), value in entries.items()}
        return {"upper": entries, "lower": lower, "both": both_sides(entries)}

    counts = {pair: number for number, pair in enumerate(RING, start=1)}
    S, given_counts = stored(sides(RING)[value_sides]), sides(counts)[weight_sides]
    similarity = Similarity(S, weights=stored(given_counts, dtype=int), absent="missing")
    assert stored_entries(similarity.weights) == both_sides(counts)
    np.testing.assert_array_equal(similarity.weights.indices, similarity.values.indices)


def test_a_sparse_weight_beside_a_stored_nan_is_that_of_the_value():
    S = stored({**both_sides(RING), (1, 0): np.nan})
    weights = stored({**dict.fromkeys(both_sides(RING), 1.0), (0, 1): 3.0, (1, 0): 0.0})
    similarity = Similarity(S, weights=weights, absent="missing")
    assert stored_entries(similarity.weights)[0, 1] == stored_entries(similarity.weights)[1, 0] == 3.0


@pytest.mark.parametrize(
    "pairs",
    [{**RING, (1, 3): 1.0}, dict.fromkeys(list(RING)[1:], 1.0)],
    ids=["one more", "one less"],
)
def test_sparse_weights_must_store_the_pairs_of_their_values(pairs):
    with refused("weights", "1 stored in only one"):
        Similarity(stored(RING), weights=stored(pairs), absent="missing")


def test_dense_density_counts_pairs_with_a_value_and_a_weight():
    S = with_nan(complete(), (0, 1), (2, 2))
    assert Similarity(S).density == pytest.approx(5 / 6)
    weights = np.ones((4, 4))
    weights[0, 1] = weights[1, 0] = 7.0  # on a missing value: still missing
    weights[2, 3] = weights[3, 2] = 0.0
    assert Similarity(S, weights=weights).density == pytest.approx(4 / 6)


@pytest.mark.parametrize(("absent", "expected"), [("missing", 2 / 6), ("zero", 4 / 6), (0.25, 4 / 6)])
def test_sparse_density_leaves_out_listed_pairs_without_a_value_or_a_weight(absent, expected):
    S = stored({**RING, (0, 1): np.nan, (0, 0): 1.0, (3, 3): np.nan})
    weights = stored({**dict.fromkeys(RING, 2.0), (1, 2): 0.0, (0, 0): 1.0, (3, 3): 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if absent == "missing":  # item 1 is left without a pair
            S, weights = (stored({**stored_entries(matrix), (1, 1): 1.0}) for matrix in (S, weights))
        assert Similarity(S, weights=weights, absent=absent).density == pytest.approx(expected)


@pytest.mark.parametrize("absent", ["missing", "zero", 0.03, np.float32(0.5)])
def test_the_meaning_of_absent_pairs_is_kept(absent):
    similarity = Similarity(stored(RING), absent=absent)
    assert similarity.absent == absent
    assert type(similarity.absent) in (str, float)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 270])
def test_infinities_are_refused_where_they_are(storage, value, column):
    S = complete(300)
    S[260, column] = value
    with refused("values", f"{value} at ('item 260', 'item {column}')"):
        Similarity(**given_as(S, storage, "zero"), labels=[f"item {i}" for i in range(300)])


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("symmetrize", [None, "max"])
@pytest.mark.parametrize("n_items", [4, 300])
def test_negative_values_are_counted_and_ways_out_are_named(storage, symmetrize, n_items):
    S = complete(n_items)
    S[0, 1] = S[1, 0] = -0.8
    S[n_items - 1, 2] = -0.2  # on one side only, where "max" would have hidden it
    S[0, 0] = -0.1
    arguments = given_as(S, storage, "zero")
    with refused("values", "3 negative pairs, the smallest -0.8", "negative='clip'", "negative='shift'", "RBF"):
        as_similarity(arguments.pop("values"), **arguments, symmetrize=symmetrize)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_negative_values_are_clipped_with_a_count(storage, dtype):
    S = np.array([[1.0, -0.5, 0.25], [-0.5, 1.0, np.nan], [0.25, np.nan, 1.0]], dtype=dtype)
    before = S.copy()
    arguments = given_as(S, storage, "zero")
    with pytest.warns(UserWarning, match=r"Set 1 negative similarity \(50\.00% .*-0\.5\)") as caught:
        clipped = as_similarity(arguments.pop("values"), **arguments, negative="clip")
    assert caught[0].filename == __file__
    values = as_nan(clipped.values)
    assert values[0, 1] == values[1, 0] == 0
    assert values[0, 2] == 0.25
    assert clipped.info == {"negative": "clip", "n_pairs_negative": 1, "share_negative": 0.5, "smallest": -0.5}
    np.testing.assert_array_equal(S, before)


def test_correlations_are_shifted_whether_or_not_one_is_negative():
    R = np.array([[1.0, -0.5, 0.25], [-0.5, 1.0, np.nan], [0.25, np.nan, 1.0]])
    shifted = as_similarity(R, negative="shift")
    np.testing.assert_array_equal(shifted.values, (1 + R) / 2)
    assert shifted.info["n_pairs_negative"] == 1
    np.testing.assert_array_equal(as_similarity(np.abs(R), negative="shift").values, (1 + np.abs(R)) / 2)
    both = as_similarity([[1, -0.6], [0.2, 1]], negative="shift", symmetrize="mean")
    np.testing.assert_allclose(both.values[0, 1], 0.4)
    stored_only = as_similarity(stored({(0, 1): -0.5, (1, 2): 1.0, (2, 3): 1.0}), absent="missing", negative="shift")
    np.testing.assert_array_equal(np.sort(stored_only.values.data), [0.25, 0.25, 1, 1, 1, 1])


def test_sides_are_merged_before_negative_values_are_clipped():
    with no_warnings():
        S = as_similarity([[1, -0.2], [0.4, 1]], negative="clip", symmetrize="mean")
    np.testing.assert_allclose(S.values[0, 1], 0.1)
    assert S.info["n_pairs_negative"] == 0


def test_text_is_named_by_row_column_and_content():
    cells = complete().astype(object)
    cells[1, 2] = "much"
    with refused("values", "'much' in row 1, column 2"):
        as_similarity(cells)
    with refused("values", "'much' in row 'dog', column 'car'"):
        as_similarity(frame(cells))
    with refused("weights", "'much' in row 'dog', column 'car'"):
        as_similarity(frame(), weights=frame(cells))


@pytest.mark.parametrize("missing", ["", "N/A", "#N/A", "null", "NA", "nan", "None", "-", ".", None])
def test_words_for_missing_values_are_missing_in_frames_of_objects(missing):
    cells, expected = complete().astype(object), with_nan(complete(), (1, 2))
    cells[1, 2] = cells[2, 1] = missing
    for x in (cells, frame(cells), cells.tolist()):
        np.testing.assert_array_equal(as_similarity(x).values, expected)


def test_numbers_spelt_as_text_are_numbers():
    np.testing.assert_array_equal(as_similarity([["1", "0.5"], ["0.5", "1"]]).values, [[1, 0.5], [0.5, 1]])
    np.testing.assert_array_equal(from_features(pd.DataFrame({"a": ["1", "2"], "b": [0, 1]})).values, [[1, 2], [2, 5]])


def test_items_with_nothing_observed_are_named_up_to_five():
    S = complete(9)
    S[:7] = S[:, :7] = np.nan
    with refused("values", "none for 7 items: 0, 1, 2, 3, 4 and 2 more"):
        Similarity(S)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_weights_of_zero_leave_an_item_unobserved(storage):
    weights = np.ones((4, 4))
    weights[1] = weights[:, 1] = 0
    arguments = given_as(complete(), storage)
    with refused("values", "none for 1 item: 'dog'"):
        Similarity(**arguments, labels=NAMES, weights=given_as(weights, storage)["values"])


def test_an_item_without_a_stored_pair_is_unobserved_only_if_absent_pairs_are_missing():
    S = stored({(0, 1): 0.5, (1, 2): 0.5, (3, 3): np.nan})
    with refused("values", "none for 1 item: 3"):
        Similarity(S, absent="missing")
    with no_warnings():
        for absent in ("zero", 0.1):
            assert Similarity(S, absent=absent).density == 1.0


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_an_item_observed_on_its_diagonal_only_is_a_warning_at_the_callers_line(storage):
    arguments = given_as(with_nan(complete(), (0, 1), (0, 2), (0, 3)), storage)
    for make in (Similarity, lambda values, **others: as_similarity(values, **others)):
        with pytest.warns(UserWarning, match=r"on the diagonal only: 'cat' \(1 item\)") as caught:
            make(**arguments, labels=NAMES)
        assert caught[0].filename == __file__


@pytest.mark.parametrize("diagonal", [0.0, 1e-17])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_dissimilarity_is_a_warning_that_names_the_ways_out(storage, diagonal):
    D = complete()
    np.fill_diagonal(D, diagonal)
    with pytest.warns(UserWarning, match=r"looks like a dissimilarity .*from_dissimilarity.*diagonal to NaN"):
        Similarity(**given_as(D, storage, "zero"))


def no_diagonal(matrix):
    return np.where(np.eye(len(matrix)) > 0, np.nan, matrix)


def share_missing(matrix, share, rng):
    known = np.triu(rng.random(matrix.shape) >= share, 1)
    return np.where(known | known.T, matrix, np.nan)


def random_matrices(rng, n):
    """Matrices without structure: flat, skewed to either side, coarse, with popular items, a graph, half missing."""
    u = rng.random((n, n))
    popular = rng.exponential(size=n)
    matrices = [u, np.exp(2 * rng.normal(size=(n, n))), np.floor(7 * u), u + popular[:, None] + popular, u < 0.1]
    matrices += [matrices[1].max() - matrices[1], share_missing(u, 0.5, rng)]
    return [no_diagonal(np.triu(matrix, 1) + np.triu(matrix, 1).T) for matrix in matrices]


@pytest.mark.parametrize("n", [6, 12, 40, 120])
def test_random_matrices_are_not_called_dissimilarities(n):
    rng = np.random.default_rng(n)
    scores = [transitivity(matrix) for _ in range(40) for matrix in random_matrices(rng, n)]
    assert min(scores) > -5


@pytest.mark.parametrize(("n", "rank", "snr"), [(40, 2, 0.5), (40, 5, 0.8), (100, 10, 0.5)])
def test_the_direction_of_structured_values_is_told_without_a_diagonal(n, rank, snr):
    for seed in range(10):
        W = simulate.dirichlet(n, rank, alpha=0.3, random_state=seed)
        values = no_diagonal(simulate.add_noise(W @ W.T, snr, random_state=seed))
        assert transitivity(values) > 5
        assert transitivity(np.nanmax(values) - values) == pytest.approx(-transitivity(values), rel=1e-6)
        points = np.random.default_rng(seed).normal(size=(n, rank))
        assert transitivity(np.linalg.norm(points[:, None] - points, axis=-1)) < -5


def test_distances_without_a_diagonal_are_a_warning_that_says_what_was_seen():
    points = np.random.default_rng(0).normal(size=(30, 2))
    D = no_diagonal(np.linalg.norm(points[:, None] - points, axis=-1))
    with pytest.warns(UserWarning, match=r"looks like a dissimilarity .*small values .*from_dissimilarity"):
        as_similarity(D)
    with no_warnings():
        as_similarity(np.exp(-D))
        as_similarity(np.where(np.isnan(D), 9.0, D))  # items are most similar to themselves


def test_real_rdms_are_told_from_their_similarities_without_a_diagonal(data_path):
    rdms = [person["RDM"] for person in loadmat(data_path("mur92/92_behavRDMs.mat"))["rdms_behav_92"].ravel()]
    rdms += [np.loadtxt(data_path(f"mur92/rdm_{who}IT_2008.csv"), delimiter=",") for who in ("human", "monkey")]
    rdms += [loadmat(data_path("things/RDM48_triplet.mat"))["RDM48_triplet"]]
    rdms += [1 - np.load(data_path("peterson_animals/animals_similarity.npy"))]
    for D in map(no_diagonal, rdms):
        assert transitivity(D) < -20
        assert transitivity(1 - D / np.nanmax(D)) > 20


def test_ordinary_matrices_are_taken_without_a_warning():
    graph = complete()
    np.fill_diagonal(graph, np.nan)
    one_self_similar = np.where(np.eye(4), np.diag([0, 0, 0, 0.1]), complete())
    with no_warnings():
        for S in (complete(), graph, one_self_similar, np.zeros((3, 3)), [[1.0]], [[0.0]]):
            Similarity(S)
        Similarity(stored(RING), absent="zero")


def test_a_single_item_is_a_matrix():
    similarity = Similarity([[1.0]])
    assert similarity.n_items == 1
    assert similarity.density == 1.0


# The object itself


def test_a_similarity_passes_through_unchanged():
    similarity = Similarity(complete())
    assert as_similarity(similarity) is similarity


def test_info_is_a_read_only_copy():
    source = {"kernel": "linear"}
    similarity = Similarity(complete(), info=source)
    source["kernel"] = "changed"
    assert dict(similarity.info) == {"kernel": "linear"}
    assert isinstance(similarity.info, types.MappingProxyType)
    assert dict(Similarity(complete()).info) == {}


@pytest.mark.parametrize(
    "copied",
    [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy, copy.copy, dataclasses.replace],
    ids=["pickle", "deepcopy", "copy", "replace"],
)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_copies_are_equal_and_read_only(copied, storage):
    info = {"source": "made up"}
    if storage == "dense":
        similarity = Similarity(complete(), NAMES, complete(seed=1), info=info)
    else:
        similarity = Similarity(stored(RING), NAMES, stored(RING), 0.1, info=info)
    twin = copied(similarity)
    assert_same(twin, similarity)
    np.testing.assert_array_equal(as_nan(twin.weights), as_nan(similarity.weights))
    assert twin.info == info
    for matrix in (twin.values, twin.weights):
        assert not (matrix.data if sparse.issparse(matrix) else matrix).flags.writeable


def test_the_representation_is_one_readable_line():
    weighted = Similarity(stored(RING, dtype=np.float32), weights=stored(RING), absent=0.03)
    for similarity, expected in [
        (Similarity(complete(), NAMES), "4 items, dense float64, 100.0% of pairs observed, labelled"),
        (weighted, "4 items, sparse float32, absent=0.03, 100.0% of pairs observed, weighted"),
        (Similarity([[1.0]]), "1 item, dense float64, 100.0% of pairs observed"),
        (Similarity(with_nan(complete(100), (0, 1))), "100 items, dense float64, over 99.9% of pairs observed"),
    ]:
        assert repr(similarity) == f"Similarity({expected})"


# Memory


def test_a_copy_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 1000)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)
    S = complete(100)
    with pytest.raises(MemoryError, match=r"A copy of values.* would need 80000 bytes .*: make it read-only"):
        Similarity(S)
    as_similarity(S, copy=False)
    S.flags.writeable = False
    Similarity(S)
    for S in (
        np.eye(100, dtype=int),
        np.triu(np.ones((100, 100))) + np.tril(np.full((100, 100), np.nan), -1),
    ):
        with pytest.raises(MemoryError, match=r"would need 80000 bytes .* has 1000 bytes available: pass a float"):
            as_similarity(S)


def test_the_weight_of_an_absent_pair():
    assert Similarity(complete()).absent_weight == 0
    weights = [Similarity(stored(RING), absent=absent).absent_weight for absent in ("missing", 0.25, "zero")]
    assert weights == [0, 0.25, 1]


# As an array


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_dense_similarity_is_an_array_with_nan_for_missing_pairs(dtype):
    values = np.array([[1.0, 0.8, np.nan], [0.8, 1.0, 0.3], [np.nan, 0.3, 1.0]], dtype=dtype)
    S = Similarity(values, labels=["a", "b", "c"])
    array = np.asarray(S)
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, values)
    np.testing.assert_array_equal(np.nanmax(S), np.nanmax(values))
    other = np.float32 if dtype == np.float64 else np.float64
    assert np.asarray(S, dtype=other).dtype == other


def test_an_array_of_a_similarity_gives_no_access_to_its_values():
    S = Similarity(np.eye(3) + 0.1)
    array = np.asarray(S)
    with pytest.raises(ValueError, match="read-only"):
        array[0, 1] = 5.0
    copies = [np.array(S), np.asarray(S, dtype=np.float32), S.__array__(copy=True)]
    for copied in copies:
        copied[0, 1] = 5.0
    assert S.values[0, 1] == 0.1
    with pytest.raises(ValueError, match="without a copy"):
        S.__array__(np.float32, copy=False)
    assert np.shares_memory(S.__array__(copy=False), S.values)


@pytest.mark.parametrize(
    ("similarity", "word"),
    [
        (lambda: Similarity(stored(RING), absent="missing"), "sparse"),
        (lambda: Similarity(stored(RING), absent="zero"), "sparse"),
        (lambda: Similarity(complete(), weights=np.ones((4, 4))), "weights"),
        (lambda: Similarity.from_factors(np.eye(3)), "factors"),
    ],
)
def test_a_similarity_that_is_more_than_an_array_is_refused_as_one(similarity, word):
    for call in (np.asarray, np.array, np.linalg.eigvalsh, check_array):
        with pytest.raises(TypeError, match=word):
            call(similarity())


@pytest.mark.parametrize(
    "call",
    [
        Similarity,
        Similarity.from_factors,
        from_dissimilarity,
        lambda S: from_dissimilarity([S, S]),
        from_features,
        lambda S: Similarity(S.values, weights=S),
        lambda S: dimension_test(S.values, S),
        lambda S: dimension_test(S, np.arange(6)),
        lambda S: rsa_test(S, S),
        lambda S: combined_test(S, S, np.arange(6)),
        lambda S: align(S, S.values),
        metrics.hoyer_sparsity,
        lambda S: metrics.readout(S.values, S),
        lambda S: simulate.add_feature_noise(S, 0.5),
        lambda S: SRF(6, init=S).fit(S),
    ],
)
def test_a_similarity_is_not_taken_for_another_table(call):
    """np.asarray of it works, so that functions that want features, loadings or distances have to look."""
    with pytest.raises(TypeError, match="Similarity"):
        call(Similarity(np.eye(6) + 0.1))
