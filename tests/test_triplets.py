"""from_triplets against counts by a dictionary, in every form in which triplets come."""

import itertools
import logging
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdims import SRF, _answers, _memory
from simdims.io.raw import read_triplets
from simdims.triplets import from_triplets

NAMES = ["cat", "dog", "car", "bus", "oak"]


def random_triplets(n_triplets=200, n_items=6, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n_items, 3, replace=False) for _ in range(n_triplets)])


def counts_by_dictionary(table, odd=2):
    """How often each unordered pair was kept, and how often it was shown, one triplet after the other."""
    kept, shown = Counter(), Counter()
    for row in table:
        others = [item for place, item in enumerate(row) if place != odd]
        kept[frozenset(others)] += 1
        for pair in itertools.combinations(row, 2):
            shown[frozenset(pair)] += 1
    return kept, shown


def expected_values(table, items, odd=2, smoothing=1.0):
    kept, shown = counts_by_dictionary(table, odd)
    S = np.full((len(items), len(items)), np.nan)
    for i, j in itertools.product(range(len(items)), repeat=2):
        pair = frozenset([items[i], items[j]])
        if i == j:
            S[i, j] = 1.0
        elif shown[pair]:
            S[i, j] = (kept[pair] + smoothing) / (shown[pair] + 2 * smoothing)
    return S


def quietly(*arguments, **keywords):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Observed on the diagonal")
        return from_triplets(*arguments, **keywords)


# Values


@pytest.mark.parametrize("smoothing", [0, 0.5, 1, 3.0])
@pytest.mark.parametrize("odd", [-3, -2, -1, 0, 1, 2])
def test_values_are_those_of_a_dictionary_count(odd, smoothing):
    table = random_triplets(20, 8)
    S = from_triplets(table, odd=odd, smoothing=smoothing)
    expected = expected_values(table.tolist(), range(8), odd % 3, smoothing)
    assert 0 < np.isnan(expected).sum() < 40  # some pairs were never shown
    np.testing.assert_allclose(S.values, expected, rtol=1e-15)


def test_a_pair_shown_once_is_pulled_to_a_third_or_two_thirds_and_an_unseen_one_nowhere():
    values = from_triplets([[0, 1, 2], [0, 1, 3]]).values
    assert values[0, 2] == values[1, 3] == pytest.approx(1 / 3)
    assert values[0, 1] == pytest.approx(3 / 4)
    assert np.isnan(values[2, 3])


def test_weights_are_the_counts_with_their_mean_over_shown_pairs_on_the_diagonal():
    table = random_triplets(30, 7)
    weights = from_triplets(table, weights="counts").weights
    _, shown = counts_by_dictionary(table.tolist())
    for i, j in itertools.combinations(range(7), 2):
        assert weights[i, j] == weights[j, i] == shown[frozenset([i, j])]
    np.testing.assert_allclose(weights.diagonal(), np.mean([count for count in shown.values() if count]))
    assert from_triplets(table).weights is None


def test_many_chunks_count_as_one_does(monkeypatch):
    table = random_triplets(100, 6)
    whole = from_triplets(table, weights="counts")
    monkeypatch.setattr(_answers, "_CHUNK", 7)
    chunked = from_triplets(table, weights="counts")
    np.testing.assert_array_equal(chunked.values, whole.values)
    np.testing.assert_array_equal(chunked.weights, whole.weights)


@given(data=st.data(), n_items=st.integers(3, 9), n_triplets=st.integers(1, 30), odd=st.integers(0, 2))
def test_every_table_gives_a_symmetric_matrix_between_0_and_1_whose_counts_add_up(data, n_items, n_triplets, odd):
    rows = [data.draw(st.permutations(range(n_items)))[:3] for _ in range(n_triplets)]
    S = quietly(rows, odd=odd, n_items=n_items, weights="counts")
    np.testing.assert_array_equal(S.values, S.values.T)
    np.testing.assert_array_equal(S.values.diagonal(), 1)
    observed = ~np.isnan(S.values)
    assert ((S.values[observed] >= 0) & (S.values[observed] <= 1)).all()
    upper = np.triu(np.ones((n_items, n_items), dtype=bool), 1)
    shown = S.weights[upper]
    assert shown.sum() == 3 * n_triplets
    np.testing.assert_array_equal(shown > 0, observed[upper])
    kept = np.nan_to_num(S.values[upper] * (shown + 2) - 1)  # undo the smoothing
    assert kept.sum() == pytest.approx(n_triplets)


@given(seed=st.integers(0, 1000), n_items=st.integers(3, 8))
def test_shuffled_rows_swapped_partners_and_renamed_items_change_nothing_but_order(seed, n_items):
    rng = np.random.default_rng(seed)
    table = random_triplets(25, n_items, seed)
    S = quietly(table, n_items=n_items)
    shuffled = rng.permutation(table)
    swap = rng.random(len(shuffled)) < 0.5
    shuffled[swap, :2] = shuffled[swap, 1::-1]
    np.testing.assert_array_equal(quietly(shuffled, n_items=n_items).values, S.values)
    order = rng.permutation(n_items)
    np.testing.assert_array_equal(quietly(order[table], n_items=n_items).values[np.ix_(order, order)], S.values)


# Shapes and types


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint64, ">i2", np.float32, object]
)
def test_every_type_of_whole_number_gives_the_same(dtype):
    table = random_triplets(60, 100)
    expected = quietly(table, n_items=100).values
    given_table = table.astype(dtype)
    before = given_table.copy()
    np.testing.assert_array_equal(quietly(given_table, n_items=100).values, expected)
    np.testing.assert_array_equal(given_table, before)
    np.testing.assert_array_equal(quietly(pd.DataFrame(given_table), n_items=100).values, expected)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
def test_short_integers_do_not_overflow(dtype):
    # The number of the last pair, 300 x 300 - 2, does not fit into 16 bits.
    table = np.array([[299, 298, 297], [299, 297, 0]], dtype=dtype)
    values = quietly(table).values
    assert values.shape == (300, 300)
    np.testing.assert_allclose(
        values[np.ix_([297, 298, 299], [297, 298, 299])],
        [[1, 1 / 3, 1 / 2], [1 / 3, 1, 2 / 3], [1 / 2, 2 / 3, 1]],
    )


def test_items_are_counted_beyond_the_largest_number_of_a_type():
    assert quietly(np.array([[253, 254, 255]], dtype=np.uint8)).n_items == 256
    assert quietly(np.array([[125, 126, 127]], dtype=np.int8)).n_items == 128


@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        lambda table: table[::-1][::-1],
        lambda table: table.tolist(),
        lambda table: [tuple(row) for row in table],
        lambda table: tuple(table),
        pd.DataFrame,
        lambda table: pd.DataFrame(table).astype({0: "int16", 1: "uint8", 2: "float64"}),
        lambda table: pd.DataFrame(table).astype("Int64"),
        lambda table: pd.DataFrame(table).astype("category"),
        lambda table: pd.DataFrame(table, index=np.arange(len(table)) + 500),
        lambda table: np.ma.masked_array(table, mask=False),
    ],
)
def test_every_container_gives_the_same(convert):
    table = random_triplets(50, 7)
    S = from_triplets(convert(table))
    np.testing.assert_array_equal(S.values, from_triplets(table).values)
    assert S.labels is None


@pytest.mark.parametrize(
    "convert",
    [
        lambda table: table,
        lambda table: table.astype(object),
        lambda table: table.tolist(),
        pd.DataFrame,
        lambda table: pd.DataFrame(table, dtype=object),
        lambda table: pd.DataFrame(table).astype("category"),
        lambda table: pd.DataFrame(table).astype("string"),
    ],
)
def test_text_names_the_items_in_sorted_order(convert):
    table = np.array(NAMES)[random_triplets(50, 5)]
    S = from_triplets(convert(table))
    assert S.labels == tuple(sorted(NAMES))
    np.testing.assert_allclose(S.values, expected_values(table.tolist(), sorted(NAMES)))


def test_numbers_spelt_as_text_are_sorted_by_value():
    assert from_triplets([["10", "9", "2"], ["9", "2", "10"]]).labels == ("2", "9", "10")


def test_labels_order_text_and_name_positions():
    positions = random_triplets(50, 5)
    by_position = from_triplets(positions, labels=NAMES)
    by_name = from_triplets(np.array(NAMES)[positions], labels=NAMES)
    assert by_position.labels == by_name.labels == tuple(NAMES)
    np.testing.assert_array_equal(by_name.values, by_position.values)


def test_items_that_no_triplet_shows_are_kept_with_a_warning_that_names_them():
    for keywords in ({"n_items": 5}, {"labels": NAMES}):
        with pytest.warns(UserWarning, match="Observed on the diagonal only: (3, 4|'bus', 'oak')"):
            S = from_triplets([[0, 1, 2]], **keywords)
        assert S.n_items == 5
    with pytest.warns(UserWarning, match="'bus', 'oak'"):
        assert from_triplets([["cat", "dog", "car"]], labels=NAMES, n_items=5).labels == tuple(NAMES)


def test_the_odd_column_may_be_named():
    table = pd.DataFrame(random_triplets(30, 5), columns=["left", "chosen", "right"])
    for odd in ("chosen", 1, -2, np.int64(1)):
        np.testing.assert_array_equal(
            from_triplets(table, odd=odd).values, from_triplets(table[["left", "right", "chosen"]]).values
        )


def test_labels_reach_the_embedding_of_a_fit():
    table = np.array(NAMES)[random_triplets(100, 5)]
    for weights in (None, "counts"):
        frame = SRF(2, random_state=0).fit(from_triplets(table, weights=weights)).embedding_frame()
        assert list(frame.index) == sorted(NAMES)


def test_info_and_the_log_say_what_was_counted(caplog):
    with caplog.at_level(logging.INFO, "simdims"):
        S = from_triplets([[0, 1, 2], [0, 1, 3]], smoothing=2)
    counts = {"n_triplets": 2, "n_items": 4, "n_pairs": 6, "n_pairs_shown": 5}
    assert dict(S.info) == {"source": "triplets", **counts, "answers_per_shown_pair": 1.2, "smoothing": 2.0}
    assert "from_triplets: source = triplets, n_triplets = 2, n_items = 4" in caplog.text


def test_the_things_triplets_cover_the_pairs_they_show(data_path):
    table = np.load(data_path("things/triplets_100k.npy"))
    S = from_triplets(table, weights="counts")
    assert S.n_items == 1854
    pairs = np.sort(np.concatenate([table[:, [0, 1]], table[:, [0, 2]], table[:, [1, 2]]]), axis=1)
    n_shown = len(np.unique(pairs, axis=0))
    assert S.info["n_pairs_shown"] == n_shown
    assert S.density == pytest.approx(n_shown / (1854 * 1853 / 2))
    assert np.triu(S.weights, 1).sum() == 300_000
    # Chance is a third of the answers; smoothing pulls each pair towards one half.
    assert 1 / 3 < np.nanmean(S.values[np.triu_indices(1854, 1)]) < 1 / 2


def test_more_items_than_memory_are_refused_before_they_are_counted(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 10**9)
    with pytest.raises(MemoryError, match=r"Counting the pairs of 5000001 items would need .* number the items from 0"):
        from_triplets([[0, 1, 5_000_000]])


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("a,b,odd\ncat,dog,cow\ncat,dog,dog\n", 3),
        ("a,b,odd\n\ncat,dog,cow\n\ncat,dog,dog", 5),  # blank lines are rows of the file
        ("a b odd\ncat dog dog\n", 2),
    ],
)
def test_errors_in_a_file_name_its_row(text, row, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"three different items .* in row {row} "):
        from_triplets(read_triplets(tmp_path / "t.csv", None, None))


def test_an_item_that_is_rare_and_nearly_another_one_is_reported():
    rng = np.random.default_rng(0)
    names = np.array(["elephant", "giraffe", "zebra", "lion", "tiger"])
    table = np.array([rng.permutation(names)[:3] for _ in range(60)], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_triplets(table)
    table[7] = ["elehpant", "lion", "zebra"]
    table[9] = ["hippo", "lion", "zebra"]  # rare, but like no other
    with pytest.warns(UserWarning, match=r"'elehpant' \(once; 'elephant' is frequent\)\."):
        from_triplets(table)


def test_a_table_with_further_columns_is_refused_by_its_columns():
    table = pd.DataFrame({"trial": [1, 2], "a": ["x", "y"], "b": ["y", "z"], "odd": ["z", "x"], "who": ["p", "q"]})
    for options in ({}, {"by": "who"}):
        with pytest.raises(ValueError, match=r"must have 3 columns, .* got the columns 'trial', 'a', 'b', 'odd'"):
            from_triplets(table, odd="odd", **options)
