"""from_ratings and from_dissimilarity: pairwise judgements against slow, obvious versions."""

import itertools
import logging

import numpy as np
import pandas as pd
import pytest
from helpers import no_warnings, refused
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import loadmat
from scipy.spatial.distance import pdist, squareform

from simdims import SRF, _memory
from simdims.construct import from_dissimilarity, from_ratings

NAMES = ["cat", "dog", "car", "bus"]
COLUMNS = {"item1": "first", "item2": "second", "rating": "rating"}
SCALE = {**COLUMNS, "low": 1, "high": 7}


# Ratings


def random_ratings(n_rows=40, n_items=6, n_people=3, seed=0):
    """A long table, repeats and both orders among its rows."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n_rows)])
    names = np.array([f"item {i}" for i in range(n_items)])
    return pd.DataFrame(
        {
            "first": names[pairs[:, 0]],
            "second": names[pairs[:, 1]],
            "rating": rng.integers(1, 8, n_rows),
            "person": rng.integers(n_people, size=n_rows),
        }
    )


def means_by_dictionary(table, low, high, by_person):
    """Scaled mean and count of each pair, one row after the other."""
    answers = {}
    for row in table.itertuples():
        people = answers.setdefault(frozenset([row.first, row.second]), {})
        people.setdefault(row.person if by_person else row.Index, []).append((row.rating - low) / (high - low))
    return {
        pair: (np.mean([np.mean(ratings) for ratings in people.values()]), len(people))
        for pair, people in answers.items()
    }


@pytest.mark.parametrize("participant", [None, "person"])
def test_ratings_are_the_scaled_means_of_a_dictionary(participant):
    table = random_ratings()
    S = from_ratings(table, **SCALE, participant=participant, weights="counts")
    expected = means_by_dictionary(table, 1, 7, participant is not None)
    assert S.labels == tuple(f"item {i}" for i in range(6))
    for (i, one), (j, other) in itertools.combinations(enumerate(S.labels), 2):
        mean, count = expected.get(frozenset([one, other]), (np.nan, 0))
        np.testing.assert_allclose([S.values[i, j], S.values[j, i]], mean)
        assert S.weights[i, j] == S.weights[j, i] == count
    np.testing.assert_array_equal(S.values.diagonal(), 1)
    np.testing.assert_allclose(S.weights.diagonal(), np.mean([count for _, count in expected.values()]))
    assert len(expected) < 15  # some pairs are unrated
    assert from_ratings(table, **SCALE).weights is None


def test_a_participant_asked_twice_counts_once():
    table = pd.DataFrame(
        {"first": list("aab"), "second": list("bba"), "rating": [0, 0, 1], "person": ["ann", "ann", "bob"]}
    )
    scale = {**COLUMNS, "low": 0, "high": 1, "weights": "counts"}
    by_person, by_row = from_ratings(table, participant="person", **scale), from_ratings(table, **scale)
    assert (by_person.values[0, 1], by_person.weights[0, 1]) == (0.5, 2)
    assert (by_row.values[0, 1], by_row.weights[0, 1]) == (pytest.approx(1 / 3), 3)


@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(1, 40),
    n_items=st.integers(2, 7),
    participant=st.sampled_from([None, "person"]),
)
def test_shuffled_rows_and_swapped_items_give_the_same_valid_similarity(seed, n_rows, n_items, participant):
    table = random_ratings(n_rows, n_items, seed=seed)
    S = from_ratings(table, **SCALE, participant=participant, weights="counts")
    np.testing.assert_array_equal(S.values, S.values.T)
    np.testing.assert_array_equal(S.values.diagonal(), 1)
    observed = ~np.isnan(S.values)
    assert ((S.values[observed] >= 0) & (S.values[observed] <= 1)).all()
    if participant is None:
        assert np.triu(S.weights, 1).sum() == n_rows
    rng = np.random.default_rng(seed)
    other = table.sample(frac=1, random_state=seed)
    swap = rng.random(n_rows) < 0.5
    other.loc[swap, ["first", "second"]] = other.loc[swap, ["second", "first"]].to_numpy()
    again = from_ratings(other, **SCALE, participant=participant, weights="counts")
    assert again.labels == S.labels
    np.testing.assert_allclose(again.values, S.values, rtol=1e-14)
    np.testing.assert_array_equal(again.weights, S.weights)


@pytest.mark.parametrize("rating", [0.1, 0.7, 0.30000000000000004])
@pytest.mark.parametrize("n_rows", [3, 7, 10])
def test_means_at_the_ends_of_the_scale_stay_inside_it(rating, n_rows):
    table = {"first": ["a"] * n_rows, "second": ["b"] * n_rows, "rating": [rating] * n_rows}
    assert from_ratings(table, **COLUMNS, low=rating, high=9.1).values[0, 1] == 0
    assert from_ratings(table, **COLUMNS, low=-3.3, high=rating).values[0, 1] == pytest.approx(1, abs=1e-15)
    assert from_ratings(table, **COLUMNS, low=-3.3, high=rating).values.max() <= 1


@pytest.mark.parametrize(
    ("given_ends", "sentence"),
    [({}, "low = 2 and high = 6 from"), ({"low": 1}, "took high = 6 from"), ({"high": 7}, "took low = 2 from")],
)
def test_a_scale_that_is_not_given_is_found_with_a_warning_that_says_so(given_ends, sentence):
    table = {"first": list("abc"), "second": list("bca"), "rating": [2, 6, 4]}
    with pytest.warns(UserWarning, match=sentence) as caught:
        S = from_ratings(table, **COLUMNS, **given_ends)
    assert caught[0].filename == __file__
    low, high = given_ends.get("low", 2), given_ends.get("high", 6)
    assert (S.info["low"], S.info["high"]) == (low, high)
    np.testing.assert_allclose(S.values[[0, 1, 2], [1, 2, 0]], [(x - low) / (high - low) for x in (2, 6, 4)])


def test_rows_without_a_rating_and_of_an_item_with_itself_are_excluded_and_counted(caplog):
    table = pd.DataFrame(
        {"first": list("abccc"), "second": list("bacad"), "rating": [1.0, 2, 7, np.nan, np.nan], "person": 1}
    )
    with caplog.at_level(logging.INFO, "simdims"), pytest.warns(UserWarning, match="2 of the 5 rows") as caught:
        S = from_ratings(table, **SCALE, participant="person")
    sentences = " ".join(str(warning.message) for warning in caught)
    assert "1 of the 5 rows" in sentences
    assert "'c', 'd'" in sentences
    rows = {"rows_read": 5, "rows_without_rating": 2, "rows_of_an_item_with_itself": 1}
    counts = {"n_participants": 1, "n_items": 4, "n_pairs": 6, "n_pairs_rated": 1}
    assert dict(S.info) == {"source": "ratings", **rows, **counts, "low": 1.0, "high": 7.0}
    assert "from_ratings: source = ratings, rows_read = 5, rows_without_rating = 2" in caplog.text


@pytest.mark.parametrize(
    ("first", "second", "labels"),
    [
        ([10, 9, 2], [9, 2, 10], ("2", "9", "10")),
        ([10, 9, 2], [9.0, 2.0, 10.0], ("2", "9", "10")),
        ([10, 9, 2], ["9", "2", "10"], ("2", "9", "10")),
        (["10", "b", "2"], ["b", "2", "10"], ("10", "2", "b")),
        ([1.5, 10.0, 2.0], [10.0, 2.0, 1.5], ("1.5", "2", "10")),
        (["b", "B", "é"], ["B", "é", "b"], ("B", "b", "é")),
        (["inf", "2", "10"], ["2", "10", "inf"], ("10", "2", "inf")),
        (pd.Categorical(["b", "a", "c"]), ["a", "c", "b"], ("a", "b", "c")),
    ],
)
def test_items_are_text_in_the_order_of_numbers_if_all_are(first, second, labels):
    S = from_ratings(pd.DataFrame({"first": first, "second": second, "rating": [1, 4, 7]}), **SCALE)
    assert S.labels == labels
    assert S.density == 1


@pytest.mark.parametrize(
    "ratings",
    [
        [1, 4, 7],
        ["1", "4.0", "7"],
        [True, 4, "7"],
        pd.array([1, 4, 7], dtype="Int64"),
        pd.array(["1", "4", "7"], dtype="string"),
        pd.Categorical([1, 4, 7]),
        np.array([1, 4, 7], dtype=np.uint8),
        np.array([1, 4, 7], dtype=np.float16),
    ],
)
def test_ratings_of_every_type_of_column_are_numbers(ratings):
    S = from_ratings({"first": list("abc"), "second": list("bca"), "rating": ratings}, **SCALE)
    np.testing.assert_array_equal(S.values[[0, 1, 0], [1, 2, 2]], [0, 0.5, 1])


def test_a_table_may_be_a_dictionary_or_records_and_is_not_changed():
    table = random_ratings()
    before = table.copy(deep=True)
    expected = from_ratings(table, **SCALE).values
    for same in (table.to_dict("list"), table.to_dict("records"), tuple(table.to_dict("records"))):
        np.testing.assert_array_equal(from_ratings(same, **SCALE).values, expected)
    pd.testing.assert_frame_equal(table, before)


def test_labels_of_ratings_reach_the_embedding_of_a_fit():
    frame = SRF(2, random_state=0).fit(from_ratings(random_ratings(), **SCALE, weights="counts")).embedding_frame()
    assert list(frame.index) == [f"item {i}" for i in range(6)]


def test_ratings_of_more_items_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 1000)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)
    with pytest.raises(MemoryError, match="A matrix of 6 items would need 1440 bytes"):
        from_ratings(random_ratings(), **SCALE)


# Dissimilarities


def distances(n_items=5, seed=0, n_features=3):
    return squareform(pdist(np.random.default_rng(seed).normal(size=(n_items, n_features))))


def with_nan(D, *pairs):
    D = D.copy()
    for i, j in pairs:
        D[i, j] = D[j, i] = np.nan
    return D


def test_max_is_one_minus_the_share_of_the_largest_and_correlation_one_minus_the_distance():
    D = distances()
    S = from_dissimilarity(D)
    np.testing.assert_allclose(S.values, 1 - D / D.max(), rtol=1e-15)
    assert S.values.min() == 0
    assert S.info["max"] == D.max()
    X = np.random.default_rng(0).uniform(size=(5, 4)).cumsum(axis=1)
    S = from_dissimilarity(pdist(X, "correlation"), method="correlation")
    np.testing.assert_allclose(S.values, np.corrcoef(X), atol=1e-12)


@pytest.mark.parametrize("sigma", [None, 0.5, 3])
def test_gaussian_takes_the_median_of_the_observed_pairs_unless_told(sigma):
    D = with_nan(distances(), (0, 1), (2, 3))
    S = from_dissimilarity(D, method="gaussian", sigma=sigma)
    width = np.nanmedian(D[np.triu_indices(5, 1)]) if sigma is None else sigma
    assert S.info["sigma"] == width
    np.testing.assert_allclose(S.values, np.exp(-(D**2) / (2 * width**2)), rtol=1e-14)


@pytest.mark.parametrize("method", ["max", "correlation", "gaussian"])
def test_missing_pairs_stay_missing_and_the_diagonal_is_1(method):
    D = with_nan(distances() / 10, (0, 1))
    D[2, 2] = np.nan
    values = from_dissimilarity(D, method=method).values
    assert np.isnan(values).sum() == 2
    assert np.isnan(values[0, 1])
    np.testing.assert_array_equal(values.diagonal(), 1)


@pytest.mark.parametrize(
    "convert",
    [
        lambda D: D.tolist(),
        lambda D: squareform(D),
        lambda D: squareform(D).tolist(),
        lambda D: pd.Series(squareform(D)),
        lambda D: D[None],
        lambda D: squareform(D)[None],
        lambda D: [D],
        lambda D: [D, D, D],
        lambda D: np.stack([D, D]),
        lambda D: np.stack([squareform(D)] * 3),
        lambda D: [squareform(D)] * 3,
        lambda D: [D.tolist()] * 3,
        lambda D: np.where(np.tri(5, k=-1), np.nan, D),
        lambda D: D + np.triu(np.full((5, 5), 1e-10)),
        lambda D: D.astype(object),
        pd.DataFrame,
    ],
)
def test_vectors_squares_and_stacks_of_the_same_are_the_same(convert):
    D = distances()
    S = from_dissimilarity(convert(D))
    np.testing.assert_allclose(S.values, 1 - D / D.max(), atol=1e-9)
    np.testing.assert_array_equal(S.values, S.values.T)
    assert S.labels is None


@pytest.mark.parametrize(
    "form", [np.stack, list, lambda people: np.stack([squareform(D, checks=False) for D in people])]
)
def test_a_stack_is_averaged_over_those_who_have_the_pair(form):
    people = [with_nan(distances(seed=k), *pairs) for k, pairs in enumerate([[(0, 1), (3, 4)], [(0, 1)], [(2, 3)]])]
    S = from_dissimilarity(form(people), weights="counts")
    expected, counts = np.zeros((5, 5)), np.zeros((5, 5))
    for i, j in itertools.product(range(5), repeat=2):
        seen = [D[i, j] for D in people if not np.isnan(D[i, j])]
        expected[i, j], counts[i, j] = np.mean(seen) if seen else np.nan, len(seen)
    np.testing.assert_allclose(S.values, 1 - expected / np.nanmax(expected), rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(S.weights, counts)
    np.testing.assert_array_equal(S.weights.diagonal(), 3)
    assert S.info["n_people"] == 3


def test_a_pair_that_nobody_has_is_missing_without_a_warning_of_numpy():
    D = with_nan(distances(), (0, 1))
    with no_warnings():
        S = from_dissimilarity([D, D], weights="counts")
    assert np.isnan(S.values[0, 1])
    assert S.weights[0, 1] == 0
    assert S.info["n_pairs_observed"] == 9


def test_float32_stays_and_an_average_is_float64():
    D = distances().astype(np.float32)
    for method in ("max", "gaussian"):
        assert from_dissimilarity(D, method=method).values.dtype == np.float32
        assert from_dissimilarity(squareform(D), method=method).values.dtype == np.float32
    average = from_dissimilarity([D, D])
    assert average.values.dtype == np.float64
    assert from_dissimilarity(np.array([[0, 1], [1, 0]], dtype=np.uint8)).values.dtype == np.float64


@given(
    seed=st.integers(0, 1000),
    n_items=st.integers(2, 7),
    n_people=st.integers(1, 3),
    method=st.sampled_from(["max", "correlation", "gaussian"]),
)
def test_permuted_items_give_the_permuted_similarity_and_it_is_valid(seed, n_items, n_people, method):
    rng = np.random.default_rng(seed)
    people = np.stack([squareform(rng.uniform(0.01, 1, n_items * (n_items - 1) // 2)) for _ in range(n_people)])
    for person in people:
        i, j = rng.choice(n_items, 2, replace=False)
        if n_items > 2:
            person[i, j] = person[j, i] = np.nan
    names = np.array([f"item {i}" for i in range(n_items)])
    S = from_dissimilarity(people, method=method, labels=names, weights="counts")
    np.testing.assert_array_equal(S.values, S.values.T)
    np.testing.assert_array_equal(S.values.diagonal(), 1)
    observed = ~np.isnan(S.values)
    assert ((S.values[observed] >= 0) & (S.values[observed] <= 1)).all()
    np.testing.assert_array_equal(S.weights, (~np.isnan(people)).sum(axis=0))
    order = rng.permutation(n_items)
    shuffled = people[rng.permutation(n_people)][:, order[:, None], order[None]]
    again = from_dissimilarity(shuffled, method=method, labels=names[order])
    assert again.labels == tuple(names[order])
    np.testing.assert_allclose(again.values, S.values[np.ix_(order, order)], rtol=1e-13, atol=1e-15)


def test_negative_correlations_can_be_clipped_or_shifted():
    D = squareform([0.5, 1.2, 1.0, 0.2, 1.7, 1.0 + 1e-12])
    with refused("D", "2 pairs", "-0.7", "negative='clip'"):
        from_dissimilarity(D, method="correlation")
    with pytest.warns(UserWarning, match=r"Set 2 negative similarities \(33.33%") as caught:
        S = from_dissimilarity(D, method="correlation", negative="clip")
    assert caught[0].filename == __file__
    np.testing.assert_allclose(squareform(S.values, checks=False), [0.5, 0, 0, 0.8, 0, 0])
    assert S.info["n_pairs_negative"] == 2
    S = from_dissimilarity(D, method="correlation", negative="shift")
    np.testing.assert_allclose(S.values, (1 + (1 - D)) / 2)
    assert S.info["negative"] == "shift"


def test_columns_of_vectors_are_people_where_labels_say_so_and_asked_about_otherwise():
    vectors = np.abs(np.random.default_rng(0).normal(size=(10, 4)))  # 5 items, 4 people
    with refused("D", "(10, 4)", "5 items", "labels="):
        from_dissimilarity(vectors)
    np.testing.assert_array_equal(
        from_dissimilarity(vectors, labels=list("abcde")).values, from_dissimilarity(vectors.T).values
    )
    wide = vectors[:6, :3]  # 3 people of 4 items by columns, 6 people of 3 items by rows
    assert from_dissimilarity(wide).n_items == 3
    assert from_dissimilarity(wide, labels=list("abcd")).n_items == 4


def test_rounding_below_zero_and_on_the_diagonal_is_no_error():
    X = np.random.default_rng(0).uniform(size=(4, 50))
    X[1] = X[0] * 3
    D = 1 - np.corrcoef(X)
    D[0, 1] = D[1, 0] = -2e-16
    D[3, 3] = 4e-16
    with pytest.warns(UserWarning, match="Set 1 negative similarity"):
        S = from_dissimilarity(D, method="correlation", negative="clip")
    assert S.values[0, 1] == S.values[3, 3] == 1


def test_input_is_never_changed():
    D = with_nan(distances(), (0, 1))
    D[2, 2] = np.nan
    stack = np.stack([D, D])
    for given_array in (D, stack, distances().astype(np.float32)):
        before = given_array.copy()
        from_dissimilarity(given_array)
        np.testing.assert_array_equal(given_array, before)


def test_masked_cells_are_missing():
    S = from_dissimilarity(np.ma.masked_array([1, 2, 4], mask=[0, 1, 0]))
    np.testing.assert_array_equal(squareform(S.values, checks=False), [0.75, np.nan, 0])
    square = np.ma.masked_array(distances(3), mask=np.isin(np.arange(9).reshape(3, 3), [1, 3]))
    assert from_dissimilarity([square, square]).info["n_pairs_observed"] == 2


def test_frames_name_the_items_through_to_the_embedding():
    frame = pd.DataFrame(distances(4), index=NAMES, columns=NAMES)
    for D in (frame, [frame, frame], [pd.DataFrame(distances(4)), frame]):
        S = from_dissimilarity(D)
        assert S.labels == tuple(NAMES)
        assert list(SRF(2, random_state=0).fit(S).embedding_frame().index) == NAMES
    assert from_dissimilarity(frame, labels=NAMES).labels == tuple(NAMES)
    other = pd.DataFrame(distances(4), index=NAMES[::-1], columns=NAMES[::-1])
    with refused("the index of D[1]", "'van' instead of 'cat'"):
        from_dissimilarity([frame, other.rename({"bus": "van"}).rename(columns={"bus": "van"})])


def test_people_whose_tables_name_the_items_in_other_orders_are_aligned():
    frame = pd.DataFrame(distances(4), index=NAMES, columns=NAMES)
    shuffled = frame.iloc[[2, 0, 3, 1], [1, 3, 0, 2]]
    expected = from_dissimilarity([frame, frame**2])
    np.testing.assert_array_equal(from_dissimilarity([frame, shuffled**2]).values, expected.values)
    assert from_dissimilarity([frame, shuffled]).labels == tuple(NAMES)


def test_info_and_the_log_say_what_was_done(caplog):
    with caplog.at_level(logging.INFO, "simdims"):
        S = from_dissimilarity([1.0, 2.0, np.nan])
    expected = {"source": "dissimilarity", "method": "max", "n_people": 1, "n_items": 3, "n_pairs": 3}
    assert dict(S.info) == {**expected, "n_pairs_observed": 2, "max": 2.0}
    assert "from_dissimilarity: source = dissimilarity, method = max, n_people = 1" in caplog.text


def test_sixteen_people_of_mur_92_are_averaged(data_path):
    stored = loadmat(data_path("mur92/92_behavRDMs.mat"))["rdms_behav_92"]
    people = [person["RDM"] for person in stored.ravel()]
    S = from_dissimilarity(people, weights="counts")
    assert (S.n_items, S.density, S.info["n_people"]) == (92, 1.0, 16)
    mean = np.mean(people, axis=0)
    np.testing.assert_allclose(S.values, 1 - mean / mean.max(), atol=1e-12)
    np.testing.assert_array_equal(S.weights, 16)
    as_vectors = from_dissimilarity(np.stack([squareform(person) for person in people]))
    np.testing.assert_allclose(as_vectors.values, S.values, rtol=1e-14)
