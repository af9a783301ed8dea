"""load_similarity and Similarity.save: every type of file, what is found in it, and what is refused in words."""

import csv
import io
import json
import logging
import pickle
import re
import string
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from simdims import Similarity, _memory, as_similarity, from_dissimilarity, from_ratings, load_similarity
from simdims.io import pairs as pairs_module
from simdims.io.text import guarded, unguarded, write_csv

NAMES = ["cat", "dog", "car", "bus", "van"]
PAIRS = {("cat", "dog"): 0.5, ("dog", "car"): 0.25, ("car", "bus"): 0.75, ("bus", "van"): 0.125, ("van", "cat"): 0.0}


def complete(n_items=5, seed=0, dtype=np.float64):
    """A dense symmetric matrix with positive entries and ones on the diagonal."""
    S = np.random.default_rng(seed).uniform(0.1, 0.9, (n_items, n_items))
    S = np.triu(S) + np.triu(S, 1).T
    np.fill_diagonal(S, 1.0)
    return S.astype(dtype)


def range_of(S):
    pairs = S[np.triu_indices(len(S), 1)]
    return {"smallest": float(pairs.min()), "largest": float(pairs.max())}


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def table_text(S, *, above=None, beside=None, corner="", separator=",", missing="", end="\n"):
    """A square table as text, with labels where they are given."""
    rows = [[missing if np.isnan(value) else repr(float(value)) for value in row] for row in S]
    if beside is not None:
        rows = [[name, *row] for name, row in zip(beside, rows, strict=True)]
    if above is not None:
        rows.insert(0, [*([corner] if beside is not None and corner is not None else []), *above])
    return "".join(separator.join(row) + end for row in rows)


def entries(matrix):
    """The stored entries of a sparse matrix as {(row, column): value}."""
    matrix = matrix.tocoo()
    return dict(zip(zip(matrix.row.tolist(), matrix.col.tolist(), strict=True), matrix.data.tolist(), strict=True))


def assert_same(one, other):
    """Equal to the last bit, in every part that an .npz keeps."""
    assert one.labels == other.labels
    assert one.absent == other.absent
    assert dict(one.info) == dict(other.info)
    for name in ("weights", "factors") if one.factors is not None else ("values", "weights"):
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None)
        if first is None:
            continue
        assert first.dtype == second.dtype
        assert sparse.issparse(first) == sparse.issparse(second)
        parts = ("data", "indices", "indptr") if sparse.issparse(first) else (None,)
        for part in parts:
            np.testing.assert_array_equal(*((m if part is None else getattr(m, part)) for m in (first, second)))


def observed(similarity):
    """Values as a dense array with NaN for what is not observed."""
    if not sparse.issparse(similarity.values):
        return similarity.values
    dense = np.full(similarity.values.shape, np.nan)
    for place, value in entries(similarity.values).items():
        dense[place] = value
    return dense


# Square tables


@pytest.mark.parametrize("n_items", [1, 2, 3, 4, 5, 30])
@pytest.mark.parametrize("named", ["nowhere", "above", "beside", "both", "both, no corner"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_square_table_is_read_with_labels_on_any_side(tmp_path, n_items, named, separator):
    S, names = complete(n_items), [f"item {i}" for i in range(n_items)]
    above = names if named in ("above", "both", "both, no corner") else None
    beside = names if named in ("beside", "both", "both, no corner") else None
    corner = None if named == "both, no corner" else ""
    text = table_text(S, above=above, beside=beside, corner=corner, separator=separator)
    loaded = load_similarity(write(tmp_path / "table.csv", text))
    np.testing.assert_array_equal(loaded.values, S)
    assert loaded.labels == (None if named == "nowhere" else tuple(names))
    assert f"a square table of {n_items} items" in loaded.info["found"]


@pytest.mark.parametrize("numbers", [["1", "2", "3", "4"], ["101", "7", "007", "12"]])
@pytest.mark.parametrize("n_items", [3, 4])
@pytest.mark.parametrize("corner", ["", "stimulus"])
def test_numbers_may_be_labels_and_keep_their_leading_zeros(tmp_path, numbers, n_items, corner):
    names = numbers[:n_items]
    text = table_text(complete(n_items), above=names, beside=names, corner=corner)
    assert load_similarity(write(tmp_path / "table.csv", text)).labels == tuple(names)


def test_a_table_that_pandas_numbered_has_no_labels(tmp_path):
    pd.DataFrame(complete()).to_csv(tmp_path / "table.csv")
    assert load_similarity(tmp_path / "table.csv").labels is None
    assert load_similarity(tmp_path / "table.csv", labels=NAMES).labels == tuple(NAMES)


@pytest.mark.parametrize("n_items", [3, 5])
def test_an_empty_first_cell_is_a_missing_value_where_nothing_is_named(tmp_path, n_items):
    S = complete(n_items)
    S[0, 0] = np.nan
    loaded = load_similarity(write(tmp_path / "table.csv", table_text(S)))
    np.testing.assert_array_equal(loaded.values, S)
    whole = np.round(9 * S)
    np.fill_diagonal(whole, np.nan)
    text = table_text(whole).replace(".0", "")
    np.testing.assert_array_equal(load_similarity(write(tmp_path / "whole.csv", text)).values, whole)


MISSING = ["", "NA", "nan", "NaN", " na ", "N/A", "n/a", "#N/A", "null", "NULL", "Null", "None", "-", ".", "#NV"]


@pytest.mark.parametrize("missing", MISSING)
def test_missing_cells_are_empty_or_say_so(tmp_path, missing):
    S = complete()
    S[0, 3] = S[3, 0] = np.nan
    loaded = load_similarity(write(tmp_path / "table.csv", table_text(S, missing=missing)))
    np.testing.assert_array_equal(loaded.values, S)


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("labelled", [True, False])
def test_one_triangle_is_enough(tmp_path, k, labelled):
    S = complete()
    np.fill_diagonal(S, np.nan if k else 1.0)
    lower = np.where(np.tri(5, k=-k), S, np.nan)
    text = table_text(lower, above=NAMES if labelled else None, beside=NAMES if labelled else None)
    np.testing.assert_array_equal(load_similarity(write(tmp_path / "table.csv", text)).values, S)


@pytest.mark.parametrize("above", [None, NAMES])
@pytest.mark.parametrize("beside", [None, NAMES])
def test_a_separator_at_the_end_of_every_line_is_no_column(tmp_path, above, beside):
    text = table_text(complete(), above=above, beside=beside, end=",\n")
    loaded = load_similarity(write(tmp_path / "table.csv", text))
    np.testing.assert_array_equal(loaded.values, complete())
    assert loaded.labels == (None if above is None and beside is None else tuple(NAMES))


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("n_items", [2, 3, 5])
def test_decimal_commas_are_read_where_commas_do_not_separate(tmp_path, separator, n_items):
    S = complete(n_items)
    text = table_text(S, above=NAMES[:n_items], beside=NAMES[:n_items], separator=separator).replace(".", ",")
    loaded = load_similarity(write(tmp_path / "table.csv", text))
    np.testing.assert_array_equal(loaded.values, S)
    assert "decimal commas" in loaded.info["found"]
    unnamed = table_text(S, separator=separator).replace(".", ",")
    np.testing.assert_array_equal(load_similarity(write(tmp_path / "unnamed.csv", unnamed)).values, S)


def test_a_point_among_decimal_commas_is_refused(tmp_path):
    text = "1;0,5;1.234\n0,5;1;0\n1.234;0;1\n"
    with pytest.raises(ValueError, match=r"got the text '1\.234' in row 1, column 3: other cells have decimal commas"):
        load_similarity(write(tmp_path / "table.csv", text), form="square")


@pytest.mark.parametrize("missing", MISSING)
def test_missing_values_are_the_same_words_in_lists_edge_lists_and_parquet(tmp_path, missing):
    text = f"item1,item2,value\ncat,dog,0.5\ncat,car,{missing}\ndog,car,0.25\n"
    expected = as_similarity([[np.nan, 0.5, np.nan], [0.5, np.nan, 0.25], [np.nan, 0.25, np.nan]]).values
    np.testing.assert_array_equal(load_similarity(write(tmp_path / "t.csv", text)).values, expected)
    if missing.strip():
        text = "\n".join(text.split("\n")[1:])
        loaded = load_similarity(write(tmp_path / "t.edgelist", text), absent="missing")
        assert loaded.density == pytest.approx(2 / 3)
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {"one": ["cat", "cat", "dog"], "two": ["dog", "car", "car"], "value": ["0.5", missing, "0.25"]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(load_similarity(tmp_path / "t.parquet").values, expected)


@pytest.mark.parametrize("word", ["null", "NA", "-", ".", "none"])
def test_any_word_may_name_an_item(tmp_path, word):
    names = [*NAMES[:4], word]
    for beside in (names, None):
        loaded = load_similarity(write(tmp_path / "t.csv", table_text(complete(), above=names, beside=beside)))
        assert loaded.labels == tuple(names)
    loaded = load_similarity(write(tmp_path / "p.csv", f"item1,item2,value\n{word},cat,0.5\ncat,dog,0.25\n"))
    assert loaded.labels == (word, "cat", "dog")


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("100%", "without the % sign"),
        ("1,234", "without thousands separators"),
        ("1,234.5", "without thousands separators"),
        ("0,5", "a decimal point"),
        ("no answer", "leave the cell empty"),
    ],
)
def test_a_cell_that_is_no_number_is_named_with_what_to_do(tmp_path, cell, advice):
    text = f'item1,item2,value\ncat,dog,0.5\ncat,car,"{cell}"\ndog,car,0.25\n'
    with pytest.raises(ValueError, match=rf"got the text '{re.escape(cell)}' in row 3 .*column 3 .*{advice}"):
        load_similarity(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize(
    ("separator", "cells"),
    [
        ("\t", ["1,234", "12", "7"]),
        (";", ["1.234", "12", "7"]),
        ("\t", ["1.234,5", "0,5", "1"]),
        (";", ["1.234,5", "2", "1"]),
        (";", ["1,234", "970", "7"]),
    ],
)
def test_thousands_are_never_read_as_decimals(tmp_path, separator, cells):
    pairs = [("cat", "dog"), ("cat", "car"), ("dog", "car")]
    rows = [("item1", "item2", "value"), *((*pair, cell) for pair, cell in zip(pairs, cells, strict=True))]
    text = "".join(separator.join(row) + "\n" for row in rows)
    with pytest.raises(ValueError, match=f"{re.escape(cells[0])}.*thousands separators"):
        load_similarity(write(tmp_path / "t.csv", text))


def test_decimal_commas_of_three_digits_are_read_beside_small_whole_numbers(tmp_path):
    text = "item1;item2;value\ncat;dog;2,333\ncat;car;3\ndog;car;1\n"
    S = load_similarity(write(tmp_path / "t.csv", text))
    np.testing.assert_array_equal(S.values[np.triu_indices(3, 1)], [2.333, 3, 1])


def test_decimals_are_read_where_other_cells_show_the_sign(tmp_path):
    for separator, sign in (("\t", ","), (";", ","), (";", ".")):
        text = "cat|dog|1%234\ncat|car|0%5\ndog|car|7\n".replace("|", separator).replace("%", sign)
        loaded = load_similarity(write(tmp_path / "t.csv", text))
        assert sorted(loaded.values[np.triu_indices(3, 1)]) == [0.5, 1.234, 7.0]


def test_a_column_of_distances_or_times_is_pointed_out(tmp_path):
    text = "item1,item2,{}\ncat,dog,0.5\ncat,car,0.7\ndog,car,0.25\n"
    for name in ("distance", "Dissimilarity", "rated_dissimilarity", "RT", "reaction time", "responseTime", "latency"):
        with pytest.warns(UserWarning, match=f"olumn '{name}' (is read as similarities, but|says so)"):
            load_similarity(write(tmp_path / "t.csv", text.format(name)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("similarity", "rating", "strength", "sort order", "art"):
            load_similarity(write(tmp_path / "t.csv", text.format(name)))
    text = "item1,item2,similarity,RT\ncat,dog,0.5,1.2\ncat,car,0.7,0.8\ndog,car,0.25,0.9\n"
    with pytest.raises(ValueError, match=r"must be item, item, value.*'RT'"):
        load_similarity(write(tmp_path / "t.csv", text))


# Rating scales


def test_a_matrix_of_ratings_is_rescaled_as_a_table_of_ratings_is(tmp_path):
    ratings = {("cat", "dog"): 7, ("cat", "car"): 1, ("dog", "car"): 4}
    frame = pd.DataFrame([(*pair, value) for pair, value in ratings.items()], columns=["one", "other", "rating"])
    expected = from_ratings(frame, item1="one", item2="other", rating="rating", low=1, high=7)
    names = list(expected.labels)
    matrix = pd.DataFrame(7.0, index=names, columns=names)
    for (one, other), value in ratings.items():
        matrix.loc[one, other] = matrix.loc[other, one] = value
    matrix.to_csv(tmp_path / "m.csv")
    frame.to_csv(tmp_path / "p.csv", index=False)
    by_file = load_similarity(tmp_path / "m.csv", low=1, high=7)
    by_list = load_similarity(tmp_path / "p.csv", labels=names, low=1, high=7)
    for S in (by_file, as_similarity(matrix, low=1, high=7)):
        np.testing.assert_array_equal(S.values, expected.values)
    pairs = np.triu_indices(3, 1)
    np.testing.assert_array_equal(by_list.values[pairs], expected.values[pairs])
    for S in (by_file, by_list, expected):
        assert (S.info["low"], S.info["high"]) == (1, 7)
    assert (by_file.info["smallest"], by_file.info["largest"]) == (1, 7)
    np.testing.assert_array_equal(load_similarity(tmp_path / "m.csv").values, matrix.to_numpy())


def test_scales_below_zero_and_missing_ratings(tmp_path):
    S = as_similarity([[3, -3, np.nan], [-3, 3, 0], [np.nan, 0, 3]], low=-3, high=3)
    np.testing.assert_array_equal(S.values, [[1, 0, np.nan], [0, 1, 0.5], [np.nan, 0.5, 1]])
    single = as_similarity(np.array([[7, 4], [4, 7]], dtype=np.float32), low=1, high=7)
    assert single.values.dtype == np.float32
    stored = as_similarity(
        sparse.coo_array(([4.0, 7.0], ([0, 0], [1, 2])), shape=(3, 3)), absent="missing", low=1, high=7
    )
    assert entries(stored.values) == {(0, 1): 0.5, (1, 0): 0.5, (0, 2): 1.0, (2, 0): 1.0}


@pytest.mark.parametrize(
    ("x", "options", "sentence"),
    [
        ([[7, 4], [4, 7]], {"low": 1, "high": 5}, r"between low = 1 and high = 5, got 7 at \(0, 0\)"),
        ([[0, 4], [4, 0]], {"low": 1, "high": 7}, "set the diagonal to NaN if nobody rated it"),
        ([[7, 4], [4, 7]], {"low": 7, "high": 1}, "low must be less than high"),
        ([[7, 4], [4, 7]], {"low": "one"}, "low must .*'one'"),
        (Similarity([[1, 0.5], [0.5, 1]]), {"low": 1}, "low must be None where x is a Similarity"),
        (sparse.csr_array(np.eye(3) * 7), {"low": 1, "high": 7, "absent": "zero"}, "low must be 0 unless"),
    ],
)
def test_values_off_the_scale_are_refused(x, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_similarity(x, **options)


def test_an_end_that_is_not_given_is_found_with_a_warning():
    with pytest.warns(UserWarning, match="took high = 6 from the ratings found"):
        S = as_similarity([[6, 3], [3, 6]], low=0)
    np.testing.assert_array_equal(S.values, [[1, 0.5], [0.5, 1]])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".CSV", ".Txt"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blanks_separate_where_nothing_else_does(tmp_path, suffix, end):
    text = "".join("  ".join(map(repr, row)) + end for row in complete().tolist()) + end
    np.testing.assert_array_equal(load_similarity(write(tmp_path / f"t{suffix}", text)).values, complete())


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("utf-8", "UTF-8"), ("utf-8-sig", "UTF-8"), ("latin-1", "Latin-1"), ("utf-16", "UTF-16")],
)
@pytest.mark.parametrize("form", ["square", "long"])
def test_text_of_every_encoding_keeps_its_labels(tmp_path, encoding, said, form, caplog):
    names = ["Bär", "Käse", "Öl", "être", "niño"]
    text = table_text(complete(), above=names, beside=names)
    if form == "long":
        text = "".join(f"{names[i]},{names[i - 1]},0.5\n" for i in range(1, 5))
    with caplog.at_level(logging.INFO, logger="simdims"):
        loaded = load_similarity(write(tmp_path / "table.csv", text, encoding))
    assert set(loaded.labels) == set(names)
    assert f"{said} text" in loaded.info["found"]
    assert f"{said} text" in caplog.text


def test_what_was_found_is_in_the_info_and_in_the_log(tmp_path, caplog):
    path = write(tmp_path / "animals.csv", table_text(complete(), above=NAMES))
    with caplog.at_level(logging.INFO, logger="simdims"):
        loaded = load_similarity(path)
    found = "a square table of 5 items with labels in the first row; UTF-8 text separated by commas"
    assert dict(loaded.info) == {"file": "animals.csv", "found": found, **range_of(complete())}
    assert caplog.messages == [f"{path}: {found}"]


def test_a_square_is_symmetrised_on_request(tmp_path):
    confusions = np.array([[9.0, 4, 0], [2, 8, 1], [1, 0, 9]])
    path = write(tmp_path / "confusions.csv", table_text(confusions))
    np.testing.assert_array_equal(load_similarity(path, symmetrize="mean").values, (confusions + confusions.T) / 2)
    text = table_text(complete() + np.triu(np.full((5, 5), 0.25), 1), above=NAMES, beside=NAMES)
    with pytest.raises(ValueError, match=r"^t\.csv: values must be symmetric.*0\.25.*'cat'|symmetrize"):
        load_similarity(write(tmp_path / "t.csv", text))


def test_labels_may_be_given_and_must_agree_with_those_of_the_file(tmp_path):
    plain = write(tmp_path / "plain.csv", table_text(complete()))
    assert load_similarity(plain, labels=NAMES).labels == tuple(NAMES)
    named = write(tmp_path / "named.csv", table_text(complete(), above=NAMES))
    assert load_similarity(named, labels=NAMES).labels == tuple(NAMES)
    with pytest.raises(
        ValueError, match=r"named\.csv: the first row must name the same items as labels.*another order"
    ):
        load_similarity(named, labels=NAMES[::-1])


def test_a_row_and_a_column_of_labels_that_disagree_are_refused(tmp_path):
    text = table_text(complete(), above=NAMES, beside=["cat", "dog", "auto", "bus", "van"])
    with pytest.raises(ValueError, match=r"t\.csv: the first row .* got 'car' instead of 'auto' in place 3"):
        load_similarity(write(tmp_path / "t.csv", text))


# Lists of pairs


def list_text(pairs, *, header=None, separator=",", swap=False, weights=None):
    rows = [] if header is None else [header]
    for number, ((one, other), value) in enumerate(pairs.items()):
        names = [other, one] if swap and number % 2 else [one, other]
        rows.append([*names, repr(value), *([] if weights is None else [str(weights[number])])])
    return "".join(separator.join(row) + "\n" for row in rows)


def dense_from(pairs, labels, rest=np.nan):
    S = np.full((len(labels), len(labels)), rest)
    for (one, other), value in pairs.items():
        S[labels.index(one), labels.index(other)] = S[labels.index(other), labels.index(one)] = value
    return S


@pytest.mark.parametrize("header", [None, ["i", "j", "value"], ["a", "b", "c"]])
@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
def test_a_list_of_pairs_is_read_with_unlisted_pairs_missing(tmp_path, header, separator, swap, suffix):
    text = list_text(PAIRS, header=header, separator=separator, swap=swap)
    loaded = load_similarity(write(tmp_path / f"pairs{suffix}", text))
    assert set(loaded.labels) == set(NAMES)
    np.testing.assert_array_equal(loaded.values, dense_from(PAIRS, loaded.labels))
    assert "a list of 5 pairs of 5 items" in loaded.info["found"]


def test_the_items_of_a_list_come_in_the_order_in_which_they_are_met_or_in_that_of_the_labels(tmp_path):
    path = write(tmp_path / "pairs.csv", list_text(PAIRS))
    assert load_similarity(path).labels == tuple(NAMES)
    turned = load_similarity(path, labels=NAMES[::-1])
    assert turned.labels == tuple(NAMES[::-1])
    np.testing.assert_array_equal(turned.values, load_similarity(path).values[::-1, ::-1])
    with pytest.raises(ValueError, match=r"pairs\.csv: labels must name every item that is listed, got none for 'van'"):
        load_similarity(path, labels=NAMES[:4])


def test_items_from_0_on_are_positions_which_labels_may_name(tmp_path):
    path = write(tmp_path / "pairs.csv", "0,4,0.5\n4,3,0.25\n3,2,0.75\n2,1,0.5\n")
    expected = dense_from({(0, 4): 0.5, (4, 3): 0.25, (3, 2): 0.75, (2, 1): 0.5}, [0, 1, 2, 3, 4])
    assert load_similarity(path).labels is None
    np.testing.assert_array_equal(load_similarity(path).values, expected)
    named = load_similarity(path, labels=NAMES)
    assert named.labels == tuple(NAMES)
    np.testing.assert_array_equal(named.values, expected)
    sparse_one = load_similarity(path, labels=[*NAMES, "lonely"], absent="zero")
    assert sparse_one.n_items == 6


def test_other_numbers_are_names_and_keep_their_leading_zeros(tmp_path):
    path = write(tmp_path / "pairs.csv", "007,7,0.5\n7,11,0.25\n11,007,1\n3,7,0.5\n3,11,0.5\n")
    assert load_similarity(path).labels == ("007", "7", "11", "3")


def test_repeated_pairs_may_repeat_their_value_and_nothing_else(tmp_path):
    path = write(tmp_path / "pairs.csv", list_text(PAIRS) + "cat,dog,0.5\ndog,cat,0.5\ncat,cat,1\n")
    assert load_similarity(path).values[0, 1] == 0.5
    path = write(tmp_path / "pairs.csv", list_text(PAIRS) + "cat,dog,0.7\n")
    with pytest.raises(
        ValueError, match=r"each pair must have one value, got 0\.5 and 0\.7 for the pair \('cat', 'dog'\)"
    ):
        load_similarity(path)
    path = write(tmp_path / "pairs.csv", list_text(PAIRS) + "dog,cat,0.7\n")
    with pytest.raises(ValueError, match=r"0\.5 at \('cat', 'dog'\) against 0\.7 at \('dog', 'cat'\)"):
        load_similarity(path)
    assert load_similarity(path, symmetrize="max").values[0, 1] == 0.7


def test_a_fourth_column_holds_weights(tmp_path):
    text = list_text(PAIRS, header=["i", "j", "value", "n"], weights=[1, 2, 3, 4, 5])
    loaded = load_similarity(write(tmp_path / "pairs.csv", text))
    counts = dict(zip(PAIRS, [1, 2, 3, 4, 5], strict=True))
    np.testing.assert_array_equal(loaded.weights, dense_from(counts, loaded.labels, rest=0.0))
    assert "with weights" in loaded.info["found"]
    sparse_one = load_similarity(tmp_path / "pairs.csv", absent=0.1)
    assert entries(sparse_one.weights)[0, 1] == 1
    repeated = write(tmp_path / "pairs.csv", text + "cat,dog,0.5,9\n")
    with pytest.raises(ValueError, match="each pair must have one weight, got 1 and 9"):
        load_similarity(repeated)


def test_a_weight_must_be_there_beside_a_value(tmp_path):
    text = list_text(PAIRS, weights=[1, 2, "", 4, 5])
    with pytest.raises(ValueError, match=r"weights must be finite .*nan at \('car', 'bus'\)"):
        load_similarity(write(tmp_path / "pairs.csv", text))
    loaded = load_similarity(write(tmp_path / "missing.csv", list_text(PAIRS, weights=[1] * 5) + "cat,car,,\n"))
    assert np.isnan(loaded.values[0, 2])


@pytest.mark.parametrize("absent", ["missing", "zero", 0.25])
def test_what_unlisted_pairs_mean_makes_a_list_sparse(tmp_path, absent):
    loaded = load_similarity(write(tmp_path / "pairs.csv", list_text(PAIRS) + "cat,car,NA\n"), absent=absent)
    assert loaded.absent == absent
    stored = entries(loaded.values)
    assert stored[0, 4] == stored[4, 0] == 0.0
    # A listed pair without a value was left out on purpose, which only zeros elsewhere can tell from an absent one.
    assert ((0, 2) in stored) == (absent != "missing")


def test_large_lists_of_few_pairs_become_sparse(tmp_path, monkeypatch):
    path = write(tmp_path / "pairs.csv", list_text(PAIRS))
    monkeypatch.setattr(pairs_module, "DENSE_ITEMS", 4)
    assert not sparse.issparse(load_similarity(path).values)  # half of all pairs
    monkeypatch.setattr(pairs_module, "DENSE_SHARE", 0.6)
    loaded = load_similarity(path)
    assert loaded.absent == "missing"
    np.testing.assert_array_equal(observed(loaded), dense_from(PAIRS, loaded.labels))


def test_a_list_too_large_for_a_dense_matrix_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 100)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)
    with pytest.raises(MemoryError, match=r"5 items listed would need 200 bytes.*pass absent=\"missing\""):
        load_similarity(write(tmp_path / "pairs.csv", list_text(PAIRS)))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_column_that_numbers_the_rows_of_a_list_is_not_taken_for_an_item(tmp_path, suffix):
    frame = pd.DataFrame({"n": range(6), "i": 1, "j": [0, 2, 3, 4, 5, 6], "value": 0.5})
    path = tmp_path / f"pairs{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        frame.to_parquet(path)
    with pytest.raises(ValueError, match=r"must be item, item, value.*got the header 'n', 'i', 'j', 'value'"):
        load_similarity(path)
    if suffix == ".csv":
        frame[["i", "j", "n"]].to_csv(path)
        with pytest.raises(ValueError, match="got the header '', 'i', 'j', 'n'"):
            load_similarity(path)


# Tables of so few rows that they could be either


@pytest.mark.parametrize("header", [None, "i,j,value\n", "item1,item2,similarity\n"])
def test_a_list_of_two_text_pairs_is_a_list(tmp_path, header):
    path = write(tmp_path / "pairs.csv", (header or "") + "cat,dog,0.5\ndog,car,0.25\n")
    assert load_similarity(path).labels == ("cat", "dog", "car")


def test_a_header_that_names_values_makes_numbers_a_list(tmp_path):
    loaded = load_similarity(write(tmp_path / "pairs.csv", "i,j,value\n0,1,0.5\n0,2,0.25\n1,2,0.75\n"))
    np.testing.assert_array_equal(loaded.values, dense_from({(0, 1): 0.5, (0, 2): 0.25, (1, 2): 0.75}, [0, 1, 2]))


def test_what_could_be_either_is_refused_until_form_says_which(tmp_path):
    path = write(tmp_path / "pairs.csv", "0,1,0.5\n0,2,0.25\n1,2,0.75\n")
    with pytest.raises(ValueError, match=r'pairs\.csv: form must say whether this is "square", .* or "long"'):
        load_similarity(path)
    assert load_similarity(path, form="long").values[0, 1] == 0.5
    with pytest.raises(ValueError, match="values must be symmetric"):
        load_similarity(path, form="square")


def test_a_square_of_fractions_is_not_mistaken_for_a_list(tmp_path):
    path = write(tmp_path / "t.csv", "0.9,0.4,0.1\n0.2,0.8,0.1\n0.1,0.3,0.9\n")
    with pytest.raises(ValueError, match="values must be symmetric"):
        load_similarity(path)


# Edge lists and graphs


@pytest.mark.parametrize("suffix", [".edgelist", ".edges"])
@pytest.mark.parametrize("separator", [" ", "\t", ","])
def test_an_edge_list_is_a_list_of_pairs_with_comments(tmp_path, suffix, separator):
    text = "# made up\n% by hand\n\n" + list_text(PAIRS, separator=separator)
    loaded = load_similarity(write(tmp_path / f"graph{suffix}", text))
    np.testing.assert_array_equal(loaded.values, dense_from(PAIRS, loaded.labels))
    zeros = load_similarity(tmp_path / f"graph{suffix}", absent="zero")
    assert zeros.absent == "zero"
    assert zeros.density == 1.0


def test_edges_without_a_number_count_one(tmp_path):
    loaded = load_similarity(write(tmp_path / "g.edges", "cat dog\ndog car\ncar cat\n"), absent="zero")
    assert set(entries(loaded.values).values()) == {1.0}


def test_edge_lists_of_networkx_are_read_with_and_without_attributes(tmp_path):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.Graph()
    graph.add_weighted_edges_from([(*pair, value) for pair, value in PAIRS.items()])
    networkx.write_edgelist(graph, tmp_path / "all.edgelist")
    networkx.write_weighted_edgelist(graph, tmp_path / "weighted.edgelist")
    networkx.write_edgelist(networkx.path_graph(4), tmp_path / "empty.edgelist")
    for name in ("all", "weighted"):
        loaded = load_similarity(tmp_path / f"{name}.edgelist")
        np.testing.assert_array_equal(loaded.values, dense_from(PAIRS, loaded.labels))
    assert load_similarity(tmp_path / "empty.edgelist").values[0, 1] == 1.0


@pytest.mark.parametrize(
    ("line", "fragment"),
    [
        ("cat", "got 1 cell in line 1"),
        ("a b c d e", "got 5 cells in line 1"),
        ("a b {'weight': __import__('os')}", "must be a dictionary of plain values"),
        ("a b {", "must be a dictionary of plain values"),
        ("a b 0.5\na c much", "got the text 'much' in row 2"),
    ],
)
def test_other_edge_lists_are_refused(tmp_path, line, fragment):
    with pytest.raises(ValueError, match=fragment):
        load_similarity(write(tmp_path / "g.edges", line + "\n"))


@pytest.mark.parametrize("directed", [False, True])
def test_graphml_is_read_through_networkx(tmp_path, directed):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.DiGraph() if directed else networkx.Graph()
    graph.add_weighted_edges_from([("cat", "dog", 0.5), ("dog", "car", 0.25)])
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    loaded = load_similarity(tmp_path / "g.graphml", absent="zero")
    assert loaded.labels == ("cat", "dog", "car")
    assert entries(loaded.values) == {(0, 1): 0.5, (1, 0): 0.5, (1, 2): 0.25, (2, 1): 0.25}
    assert "a graph of 3 nodes and 2 edges" in loaded.info["found"]
    halved = load_similarity(tmp_path / "g.graphml", absent="zero", symmetrize="mean")
    assert entries(halved.values)[0, 1] == (0.25 if directed else 0.5)
    with pytest.raises(ValueError, match=r"g\.graphml: absent must say .* load_similarity\(\.\.\., absent=\)"):
        load_similarity(tmp_path / "g.graphml")


def test_graphml_that_numbers_its_nodes_gives_their_labels(tmp_path):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.Graph()
    graph.add_nodes_from([("n0", {"label": "cat"}), ("n1", {"label": "dog"})])
    graph.add_edge("n0", "n1", weight=0.5)
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    assert load_similarity(tmp_path / "g.graphml", absent="missing").labels == ("cat", "dog")


def test_a_saved_graph_comes_back_without_a_word(tmp_path):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    similarity = Similarity(complete(), NAMES)
    networkx.write_graphml(similarity.to_networkx(), tmp_path / "g.graphml")
    loaded = load_similarity(tmp_path / "g.graphml")
    assert loaded.absent == "missing"
    np.testing.assert_array_equal(observed(loaded), complete())


# Arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npy_keeps_every_bit(tmp_path, dtype):
    np.save(tmp_path / "s.npy", complete(dtype=dtype))
    loaded = load_similarity(str(tmp_path / "s.npy"), labels=NAMES)
    assert loaded.values.dtype == dtype
    np.testing.assert_array_equal(loaded.values, complete(dtype=dtype))
    assert loaded.labels == tuple(NAMES)
    assert dict(loaded.info) == {"file": "s.npy", "found": "an array of 5 x 5", **range_of(complete(dtype=dtype))}


def test_other_shapes_are_refused_by_the_name_of_the_file(tmp_path):
    np.save(tmp_path / "s.npy", np.ones(10))
    with pytest.raises(ValueError, match=r"s\.npy: values must be a square matrix, got 1 dimension"):
        load_similarity(tmp_path / "s.npy")


@pytest.mark.parametrize("compressed", [False, True])
def test_the_one_square_array_of_an_npz_is_found_with_its_labels(tmp_path, compressed):
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "s.npz", S=complete(), names=NAMES, scores=np.ones((5, 3)), n=5)
    loaded = load_similarity(tmp_path / "s.npz")
    np.testing.assert_array_equal(loaded.values, complete())
    assert loaded.labels == tuple(NAMES)
    assert loaded.info["found"] == "S, an array of 5 x 5, labels in names"


def test_of_two_lists_of_names_neither_is_the_labels(tmp_path):
    np.savez(tmp_path / "s.npz", S=complete(), one=NAMES, other=NAMES[::-1], third=["cat"] * 5)
    assert load_similarity(tmp_path / "s.npz").labels is None
    assert load_similarity(tmp_path / "s.npz", labels=NAMES).labels == tuple(NAMES)


def test_key_says_which_of_several_squares(tmp_path):
    np.savez(tmp_path / "s.npz", first=complete(), second=complete(4), scores=np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"s\.npz: key must say which of the 2 .* first \(5 x 5\).*scores \(5 x 3\)"):
        load_similarity(tmp_path / "s.npz")
    np.testing.assert_array_equal(load_similarity(tmp_path / "s.npz", key="second").values, complete(4))
    with pytest.raises(
        ValueError, match=r"key must name a variable of this file, got 'third': it holds first \(5 x 5\)"
    ):
        load_similarity(tmp_path / "s.npz", key="third")
    np.savez(tmp_path / "none.npz", scores=np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"must hold a square matrix of numbers, got none: it holds scores \(5 x 3\)"):
        load_similarity(tmp_path / "none.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("container", [sparse.coo_array, sparse.coo_matrix])
def test_sparse_matrices_of_scipy_are_read_and_must_say_what_absent_pairs_mean(tmp_path, kind, container):
    matrix = container(np.where(complete(6) > 0.4, complete(6), 0)).asformat(kind)
    sparse.save_npz(tmp_path / "s.npz", matrix)
    with pytest.raises(ValueError, match=r"s\.npz: absent must say what.*load_similarity\(\.\.\., absent=\)"):
        load_similarity(tmp_path / "s.npz")
    loaded = load_similarity(tmp_path / "s.npz", absent="zero")
    np.testing.assert_array_equal(loaded.values.toarray(), matrix.toarray())
    assert "sparse" in loaded.info["found"]


@pytest.mark.parametrize("strings", ["variable", "fixed"])
def test_hdf5_is_read_with_its_labels(tmp_path, strings):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    names = ["Bär", *NAMES[1:]]
    dtype = h5py.string_dtype() if strings == "variable" else h5py.string_dtype("utf-8", 8)
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["group/S"] = complete(dtype=np.float32)
        file.create_dataset("names", data=[name.encode() for name in names], dtype=dtype)
        file["n"] = 5
    loaded = load_similarity(tmp_path / "s.h5")
    assert loaded.values.dtype == np.float32
    np.testing.assert_array_equal(loaded.values, complete(dtype=np.float32))
    assert loaded.labels == tuple(names)
    assert load_similarity(tmp_path / "s.h5", key="/group/S").n_items == 5
    with h5py.File(tmp_path / "s.h5", "a") as file:
        file["T"] = complete()
    with pytest.raises(ValueError, match=r"key must say which of the 2.*T \(5 x 5\).*group/S \(5 x 5\)"):
        load_similarity(tmp_path / "s.h5")


@pytest.mark.parametrize("names", [np.array(NAMES), np.array(NAMES, dtype=object), np.array([NAMES], dtype=object).T])
def test_matlab_files_up_to_version_7_are_read_with_their_labels(tmp_path, names):
    scipy.io.savemat(tmp_path / "s.mat", {"S": complete(), "names": names, "n": 5.0, "about": "made up"})
    loaded = load_similarity(tmp_path / "s.mat")
    np.testing.assert_array_equal(loaded.values, complete())
    assert loaded.labels == tuple(NAMES)


def test_cells_that_are_no_texts_are_no_labels(tmp_path):
    cells = np.array(["cat", 2.0, "car", "bus", "van"], dtype=object)
    scipy.io.savemat(tmp_path / "s.mat", {"S": complete(), "cells": cells, "other": {"field": 1}})
    assert load_similarity(tmp_path / "s.mat").labels is None


def test_matlab_variables_are_listed_where_several_are_square(tmp_path):
    scipy.io.savemat(tmp_path / "s.mat", {"S": complete(), "T": complete(4), "about": {"n": 1}})
    with pytest.raises(
        ValueError, match=r"key must say which of the 2 .*S \(5 x 5\); T \(4 x 4\); about \(1 x 1, struct\)"
    ):
        load_similarity(tmp_path / "s.mat")
    assert load_similarity(tmp_path / "s.mat", key="T").n_items == 4


def test_sparse_matlab_matrices_are_read(tmp_path):
    scipy.io.savemat(tmp_path / "s.mat", {"S": sparse.csc_array(complete())})
    np.testing.assert_array_equal(load_similarity(tmp_path / "s.mat", absent="zero").values.toarray(), complete())
    with pytest.raises(ValueError, match="absent must say"):
        load_similarity(tmp_path / "s.mat")


def write_mat73(path, S, names, *, sparse_values=False):
    """A file as MATLAB's save -v7.3 writes it: HDF5 behind a block of text, arrays turned, texts as UTF-16 codes."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(path, "w", userblock_size=512) as file:
        if sparse_values:
            matrix = sparse.csc_array(S)
            group = file.create_group("S")
            group.attrs["MATLAB_class"] = np.bytes_("double")
            group.attrs["MATLAB_sparse"] = np.uint64(len(S))
            group["data"], group["ir"], group["jc"] = (
                matrix.data, matrix.indices.astype(np.uint64), matrix.indptr.astype(np.uint64),
            )  # fmt: skip
        else:
            file["S"] = S.T
            file["S"].attrs["MATLAB_class"] = np.bytes_("double")
        file["label"] = np.array([[ord(letter)] for letter in "square"], dtype=np.uint16)
        file["label"].attrs["MATLAB_class"] = np.bytes_("char")
        cells = []
        for number, name in enumerate(names):
            codes = np.frombuffer(name.encode("utf-16-le"), dtype="<u2")
            file[f"#refs#/{number}"] = codes[:, None]
            file[f"#refs#/{number}"].attrs["MATLAB_class"] = np.bytes_("char")
            cells.append(file[f"#refs#/{number}"].ref)
        file.create_dataset("names", data=np.array([cells], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
        file["names"].attrs["MATLAB_class"] = np.bytes_("cell")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))


def write_struct(path, elements, *, version, **others):
    """A MATLAB file with the struct array `people`: by scipy up to version 7, as -v7.3 writes it by h5py."""
    fields = list(elements[0])
    if version == 7:
        array = np.zeros((1, len(elements)), dtype=[(name, object) for name in fields])
        for place, element in enumerate(elements):
            array[0, place] = tuple(element[name] for name in fields)
        scipy.io.savemat(path, {"people": array, **others})
        return
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(path, "w", userblock_size=512) as file:

        def written(place, content):
            if isinstance(content, str):
                file[place] = np.frombuffer(content.encode("utf-16-le"), dtype="<u2")[:, None]
                file[place].attrs["MATLAB_class"] = np.bytes_("char")
            elif isinstance(content, np.ndarray) and content.dtype == object:
                cells = [written(f"{place}_{number}", text) for number, text in enumerate(content.ravel())]
                file.create_dataset(place, data=np.array([cells], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
                file[place].attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                file[place] = np.atleast_2d(content).T
                file[place].attrs["MATLAB_class"] = np.bytes_("double")
            return file[place].ref

        group = file.create_group("people")
        group.attrs["MATLAB_class"] = np.bytes_("struct")
        for name in fields:
            if len(elements) == 1:
                written(f"people/{name}", elements[0][name])
                continue
            references = [[written(f"#refs#/{name}{i}", element[name])] for i, element in enumerate(elements)]
            group.create_dataset(name, data=np.array(references, dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
        for name, content in others.items():
            written(name, content)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))


@pytest.mark.parametrize("version", [7, 7.3])
@pytest.mark.parametrize("form", ["square", "vector"])
def test_matlab_struct_arrays_are_read_and_averaged(tmp_path, version, form):
    squares = [complete(6, seed=seed) for seed in range(3)]
    squares[1][0, 1] = squares[1][1, 0] = np.nan  # one person lacks a pair
    matrices = squares if form == "square" else [square[np.triu_indices(6, 1)][None] for square in squares]
    elements = [
        {"RDM": matrix, "name": f"person {place}", "color": np.array([[0.1, 0.2, 0.3]])}
        for place, matrix in enumerate(matrices)
    ]
    path = tmp_path / "s.mat"
    write_struct(path, elements, version=version, labels=np.array([f"item {i}" for i in range(6)], dtype=object))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="values looks like a dissimilarity")  # by the name of the field
        loaded = load_similarity(path)
    expected = np.nanmean(squares, axis=0)
    if form == "vector":
        np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(loaded.values, expected, rtol=1e-15)
    assert loaded.labels == tuple(f"item {i}" for i in range(6))
    assert loaded.info["people"] == ["person 0", "person 1", "person 2"]
    assert loaded.info["n_people"] == 3
    for square, matrix in zip(squares, matrices, strict=True):
        if form == "square":
            np.fill_diagonal(matrix, 0)
        np.fill_diagonal(square, 0)
    write_struct(path, elements, version=version)
    from_file, from_stack = from_dissimilarity(path), from_dissimilarity(np.stack(squares))
    np.testing.assert_array_equal(from_file.values, from_stack.values)
    assert from_file.info["people"] == loaded.info["people"]
    assert from_file.info["file"] == "s.mat"


@pytest.mark.parametrize("version", [7, 7.3])
def test_a_matlab_struct_with_a_stack_is_read_with_its_labels(tmp_path, version):
    stack = np.stack([complete(4, seed=seed) for seed in range(3)], axis=-1)
    element = {"similarity": stack, "items": np.array(["a", "b", "c", "d"], dtype=object)}
    write_struct(tmp_path / "s.mat", [element], version=version)
    loaded = load_similarity(tmp_path / "s.mat")
    np.testing.assert_allclose(loaded.values, stack.mean(axis=-1), rtol=1e-15)
    assert loaded.labels == ("a", "b", "c", "d")


@pytest.mark.parametrize("version", [7, 7.3])
@pytest.mark.parametrize(
    ("elements", "key", "fragment"),
    [
        ([{"S": complete(4)}, {"S": complete(5)}], None, r"people\.S must hold matrices of one size, got 4 x 4, 5 x 5"),
        ([{"name": "a"}, {"name": "b"}], None, "which field of the struct people .*square matrices in none"),
        ([{"A": complete(4), "B": complete(4)}] * 2, None, "which field of the struct people .*in A and B"),
        ([{"A": complete(4), "B": complete(4)}] * 2, "people.C", "key must name a field of people, got 'C'"),
        ([{"A": complete(4), "B": "text"}] * 2, "people.B", r"people\.B must hold numbers"),
        ([{"name": "a"}], None, "got the field name, with square matrices in none"),
    ],
)
def test_bad_matlab_structs_are_a_sentence(tmp_path, version, elements, key, fragment):
    write_struct(tmp_path / "s.mat", elements, version=version)
    with pytest.raises(ValueError, match=rf"s\.mat: .*{fragment}"):
        load_similarity(tmp_path / "s.mat", key=key)


def test_matlab_cell_arrays_are_called_so(tmp_path):
    cells = np.empty(3, dtype=object)
    cells[:] = [complete(4)] * 3
    scipy.io.savemat(tmp_path / "s.mat", {"people": cells})
    with pytest.raises(ValueError, match=r"people \(1 x 3, a cell array\)"):
        load_similarity(tmp_path / "s.mat")


def test_key_names_a_field_of_a_matlab_struct(tmp_path):
    elements = [{"A": complete(4), "B": complete(5, seed=seed)} for seed in range(2)]
    write_struct(tmp_path / "s.mat", elements, version=7)
    loaded = load_similarity(tmp_path / "s.mat", key="people.B")
    np.testing.assert_allclose(loaded.values, (elements[0]["B"] + elements[1]["B"]) / 2, rtol=1e-15)


@pytest.mark.parametrize("n_people", [2, 5, 7])  # 5 people and 5 items are told by symmetry
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mat", ".h5"])
def test_stacks_are_read_with_people_first_or_last(tmp_path, n_people, axis, suffix):
    people = [complete(5, seed=seed) for seed in range(n_people)]
    stack, path = np.stack(people, axis=axis), tmp_path / f"s{suffix}"
    if suffix == ".npy":
        np.save(path, stack)
    elif suffix == ".npz":
        np.savez(path, S=stack, names=np.array(NAMES))
    elif suffix == ".mat":
        scipy.io.savemat(path, {"S": stack, "names": np.array(NAMES, dtype=object)})
    else:
        h5py = pytest.importorskip("h5py", reason="h5py is not installed")
        with h5py.File(path, "w") as file:
            file["S"], file["names"] = stack, NAMES
    loaded = load_similarity(path)
    np.testing.assert_allclose(loaded.values, np.mean(people, axis=0), rtol=1e-14)
    assert loaded.info["n_people"] == n_people
    assert loaded.labels == (None if suffix == ".npy" else tuple(NAMES))
    for person in people:
        np.fill_diagonal(person, 0)
    np.testing.assert_allclose(
        from_dissimilarity(np.stack(people, axis=axis)).values, from_dissimilarity(people).values, rtol=1e-14
    )


@pytest.mark.parametrize(
    ("name", "header", "is_distance"),
    [
        ("my_rdm.csv", "value", True),
        ("pairs.csv", "dissimilarity", True),
        ("DistMatrix.csv", "value", True),
        ("pairs.csv", "similarity", False),
        ("rdm_similarity.csv", "value", False),
        ("distribution.csv", "value", False),
    ],
)
def test_names_that_say_distance_are_a_warning(tmp_path, name, header, is_distance):
    pairs = [f"{i},{j},{complete(5)[i, j]}" for i in range(5) for j in range(i)]
    (tmp_path / name).write_text("\n".join([f"item1,item2,{header}", *pairs]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_similarity(tmp_path / name)
    said = [str(warning.message) for warning in caught if "looks like a dissimilarity" in str(warning.message)]
    assert len(said) == is_distance
    assert all(repr(name if header == "value" else header) in sentence for sentence in said)


def test_negative_values_in_a_file_are_clipped_or_shifted(tmp_path):
    R = np.corrcoef(np.random.default_rng(0).normal(size=(6, 4)))
    np.save(tmp_path / "r.npy", R)
    with pytest.raises(ValueError, match=r"r\.npy: .*negative pairs.*negative='clip'"):
        load_similarity(tmp_path / "r.npy")
    with pytest.warns(UserWarning, match="negative similarities"):
        clipped = load_similarity(tmp_path / "r.npy", negative="clip")
    np.testing.assert_allclose(clipped.values, np.maximum(R, 0), rtol=1e-15)
    np.testing.assert_allclose(load_similarity(tmp_path / "r.npy", negative="shift").values, (1 + R) / 2, rtol=1e-14)


def test_matlab_files_of_version_7_3_are_read_with_their_labels(tmp_path):
    names = ["Bär", "🐕", *NAMES[2:]]
    upper = np.where(np.tri(5, k=-1), np.nan, complete())
    upper[0, 1] = 0.25
    write_mat73(tmp_path / "s.mat", upper, names)
    loaded = load_similarity(tmp_path / "s.mat")
    assert loaded.labels == tuple(names)
    assert loaded.values[0, 1] == 0.25
    write_mat73(tmp_path / "sparse.mat", complete(), names, sparse_values=True)
    loaded = load_similarity(tmp_path / "sparse.mat", absent="missing")
    assert loaded.labels == tuple(names)
    np.testing.assert_array_equal(loaded.values.toarray(), complete())


# Parquet


@pytest.mark.parametrize("named", ["nowhere", "index", "column"])
@pytest.mark.parametrize("n_items", [3, 4, 5])
def test_a_square_parquet_table_is_read_with_its_labels(tmp_path, named, n_items):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    names = NAMES[:n_items]
    frame = pd.DataFrame(complete(n_items), index=names, columns=names)
    if named == "column":
        frame = frame.reset_index(names="item")
    if named == "nowhere":
        frame = pd.DataFrame(complete(n_items), columns=list(map(str, range(n_items))))
    frame.to_parquet(tmp_path / "s.parquet")
    loaded = load_similarity(tmp_path / "s.parquet")
    np.testing.assert_array_equal(loaded.values, complete(n_items))
    assert loaded.labels == (None if named == "nowhere" else tuple(names))


@pytest.mark.parametrize("n_pairs", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_parquet_list_of_pairs_is_read(tmp_path, n_pairs, weighted):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pairs = dict(list(PAIRS.items())[:n_pairs])
    frame = pd.DataFrame([(*pair, value) for pair, value in pairs.items()], columns=["a", "b", "c"])
    if weighted:
        frame["count"] = range(1, n_pairs + 1)
    frame.to_parquet(tmp_path / "s.parquet")
    loaded = load_similarity(tmp_path / "s.parquet")
    assert loaded.labels == tuple(NAMES[: n_pairs + 1 if n_pairs < 5 else 5])
    np.testing.assert_array_equal(loaded.values, dense_from(pairs, loaded.labels))
    assert (loaded.weights is not None) == weighted


def test_bad_parquet_lists_are_refused(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame({"a": ["cat", None], "b": ["dog", "car"], "value": [0.5, 0.5]})
    frame.to_parquet(tmp_path / "s.parquet")
    with pytest.raises(ValueError, match="each row must name two items, got none in row 2, column 1"):
        load_similarity(tmp_path / "s.parquet")
    frame.assign(a="cat", value=["0.5", "much"]).to_parquet(tmp_path / "s.parquet")
    with pytest.raises(ValueError, match="'value' must hold numbers, got the text 'much' in row 1"):
        load_similarity(tmp_path / "s.parquet")
    pd.DataFrame(np.ones((6, 5)), columns=NAMES).to_parquet(tmp_path / "s.parquet")
    with pytest.raises(ValueError, match=r"s\.parquet: this must be square, got 6 rows and 5 columns"):
        load_similarity(tmp_path / "s.parquet")


# Bad files


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match=r"No such file: 'nowhere/s\.npy'"):
        load_similarity("nowhere/s.npy")


def test_a_folder_is_no_file(tmp_path):
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(ValueError, match="must be a file, got a folder"):
        load_similarity(folder)
    with pytest.raises(ValueError, match="which is a folder"):
        Similarity(complete()).save(folder)


@pytest.mark.parametrize("path", [3, None, ["s.npy"], b"s.npy"])
def test_what_is_no_path_is_a_type_error(path):
    with pytest.raises(TypeError, match="path must be the name of a file, got"):
        load_similarity(path)


SUFFIXES = [
    ".npy",
    ".npz",
    ".h5",
    ".hdf5",
    ".mat",
    ".csv",
    ".tsv",
    ".txt",
    ".parquet",
    ".edgelist",
    ".edges",
    ".graphml",
]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_file_is_refused(tmp_path, suffix):
    path = tmp_path / f"s{suffix}"
    path.touch()
    with pytest.raises(ValueError, match=r"got an empty file \(0 bytes\)"):
        load_similarity(path)


@pytest.mark.parametrize("suffix", ["", ".xlsx", ".pkl", ".gz"])
def test_an_unknown_type_lists_the_known_ones(tmp_path, suffix):
    with pytest.raises(ValueError, match=r"must end in one of \.npy, .*\.graphml, got"):
        load_similarity(write(tmp_path / f"s{suffix}", "1"))
    with pytest.raises(ValueError, match=r"path must end in \.npz or \.csv, got"):
        Similarity(complete()).save(tmp_path / f"s{suffix}")


def example_files(folder):
    """A sound file of every binary type."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    S = complete(40)
    np.save(folder / "s.npy", S)
    np.savez(folder / "plain.npz", S=S)
    Similarity(S, weights=S).save(folder / "own.npz")
    scipy.io.savemat(folder / "s.mat", {"S": S}, do_compression=True)
    write_mat73(folder / "new.mat", S, [])
    with h5py.File(folder / "s.h5", "w") as file:
        file["S"] = S
    pd.DataFrame(S, columns=[f"item {i}" for i in range(40)]).to_parquet(folder / "s.parquet")


FILES = ["s.npy", "plain.npz", "own.npz", "s.mat", "new.mat", "s.h5", "s.parquet"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95, 0.999])
def test_a_file_that_is_cut_short_is_one_sentence(tmp_path, name, share):
    example_files(tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    path.write_bytes(whole[: max(1, int(share * len(whole)))])
    with pytest.raises(
        ValueError, match=rf"^{name}: this must be a \S+ file, got one that is damaged, cut short"
    ) as caught:
        load_similarity(path)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_type_is_one_sentence(tmp_path, name):
    with pytest.raises(ValueError, match=rf"^{name}: this must be a "):
        load_similarity(write(tmp_path / name, "cat,dog\n1,0.5\n0.5,1\n" * 100))


@pytest.mark.parametrize("seed", range(30))
def test_damaged_bytes_never_end_in_anything_but_a_sentence(tmp_path, seed):
    example_files(tmp_path)
    rng = np.random.default_rng(seed)
    refused = []
    for name in FILES:
        damaged = bytearray((tmp_path / name).read_bytes())
        for place in rng.integers(0, min(len(damaged), 2000), 20):
            damaged[place] = rng.integers(256)
        (tmp_path / name).write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = load_similarity(tmp_path / name)
        except (ValueError, TypeError, MemoryError) as error:
            refused.append(str(error))
        else:
            stored = found.values.data if sparse.issparse(found.values) else found.values
            assert (stored[~np.isnan(stored)] >= 0).all()
    assert refused
    assert not any("\n" in text for text in refused)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_refused_and_never_loaded(tmp_path):
    harmful = np.array([[Harmful()]], dtype=object)
    np.save(tmp_path / "s.npy", harmful, allow_pickle=True)
    np.savez(tmp_path / "s.npz", S=harmful)
    (tmp_path / "raw.npy").write_bytes(pickle.dumps(Harmful()))
    for name in ("s.npy", "s.npz"):
        with pytest.raises(
            ValueError, match=rf"{name}: .*Python objects, which are stored as a pickle and never loaded"
        ):
            load_similarity(tmp_path / name)
    with pytest.raises(ValueError, match="S must hold an array of numbers, got Python objects"):
        load_similarity(tmp_path / "s.npz", key="S")
    with pytest.raises(ValueError, match=r"raw\.npy: this must be a \.npy file"):
        load_similarity(tmp_path / "raw.npy")
    np.savez(tmp_path / "mixed.npz", S=complete(), names=np.array(NAMES, dtype=object), extra=harmful)
    assert load_similarity(tmp_path / "mixed.npz").labels is None


def test_a_pickle_inside_a_saved_similarity_is_refused(tmp_path):
    Similarity(complete()).save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "s.npz", **{**arrays, "labels": np.array([Harmful()] * 5, dtype=object)})
    with pytest.raises(ValueError, match=r"s\.npz: .*damaged"):
        load_similarity(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("nowhere", "got the text 'oops' in row 3, column 4"),
        ("above", r"got the text 'oops' in row 4, column 4 \('bus'\)"),
        ("beside", r"got the text 'oops' in row 3 \('car'\), column 5"),
        ("both", r"got the text 'oops' in row 4 \('car'\), column 5 \('bus'\)"),
    ],
)
def test_one_text_cell_is_named_by_row_and_column(tmp_path, named, sentence):
    lines = table_text(
        complete(),
        above=NAMES if named in ("above", "both") else None,
        beside=NAMES if named in ("beside", "both") else None,
    )
    rows = list(csv.reader(lines.splitlines()))
    rows[2 + (named in ("above", "both"))][3 + (named in ("beside", "both"))] = "oops"
    text = "".join(",".join(row) + "\n" for row in rows)
    with pytest.raises(ValueError, match=f"t.csv: cells must hold numbers, {sentence}"):
        load_similarity(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize("place", [(0, 0), (0, 3), (2, 0), (4, 4)])
def test_one_text_cell_anywhere_in_a_table_without_labels_is_no_label(tmp_path, place):
    cells = complete().astype(str).astype(object)
    cells[place] = "oops"
    text = "".join(",".join(row) + "\n" for row in cells)
    with pytest.raises(ValueError, match=f"got the text 'oops' in row {place[0] + 1}, column {place[1] + 1}"):
        load_similarity(write(tmp_path / "t.csv", text))


def test_one_text_cell_in_a_list_of_pairs_is_named(tmp_path):
    text = "one,other,strength\n" + list_text(PAIRS) + "cat,car,strong\n"
    with pytest.raises(ValueError, match=r"got the text 'strong' in row 7 \('cat'\), column 3 \('strength'\)"):
        load_similarity(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("\n\n \n", "got blank lines only"),
        ("i,j,value\n", "got a header only"),
        ("1,0.5,0.2,0.1,0\n0.5,1\n", "all rows must have one length, got"),
        (table_text(complete())[:-25], "all rows must have one length, got 3 cells in row 5 and 5 in others"),
        (table_text(complete(6)[:4]), "must be square, got 4 rows and 6 columns"),
        (table_text(complete(6)[:, :5]) * 3, "must be square, got 18 rows and 5 columns"),
        (table_text(complete(6)[:4], above=[*NAMES, "lorry"], beside=NAMES[:4]), "square, got 4 rows and 6 columns"),
        ("cat,dog\ndog,car\ncar,bus\nbus,van\n", "got the text 'car' in row 2"),
        ("cat,dog,oops\n" + list_text(PAIRS), "got the text 'oops' in row 1"),
        ("cat,dog,0.5\n,car,0.5\nbus,van,0.5\nvan,cat,0.5\ncat,van,0.5\n", "got none in row 2, column 1"),
        ('"cat,dog,0.5\ndog,car,0.5\n', "row 1 must be proper CSV"),
        ("cat,dog,1_0\ndog,car,0.5\ncar,cat,1\nbus,van,1\nbus,cat,1\n", "got the text '1_0' in row 1"),
        ("a,b,0.5,1,2,3\nb,c,0.5,1,2,3\n", "a list of pairs has the 3 or 4 columns"),
    ],
)
def test_text_that_is_no_table_of_similarities_is_refused(tmp_path, text, fragment):
    with pytest.raises(ValueError, match=rf"^t\.csv: .*({fragment})"):
        load_similarity(write(tmp_path / "t.csv", text))


def test_binary_content_in_a_text_file_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"PK\x03\x04\x00\x00binary")
    with pytest.raises(ValueError, match=r"t\.csv: this must be a text file, got NUL bytes"):
        load_similarity(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("name", "options", "fragment"),
    [
        ("s.npy", {"key": "S"}, r"key must be None for \.npy files"),
        ("s.npy", {"form": "long"}, r"form must be None for \.npy files"),
        ("t.csv", {"form": "round"}, 'form must be None, "square" or "long", got \'round\''),
        ("t.csv", {"absent": "zero"}, r"t\.csv: absent must be None for dense values"),
        ("t.csv", {"symmetrize": "min"}, "symmetrize must be"),
        ("t.csv", {"labels": ["a"]}, "labels must have one name for each of the 5 items, got 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, name, options, fragment):
    np.save(tmp_path / "s.npy", complete())
    write(tmp_path / "t.csv", table_text(complete()))
    with pytest.raises(ValueError, match=fragment):
        load_similarity(tmp_path / name, **options)


@pytest.mark.parametrize(
    ("name", "library", "sentence"),
    [
        ("s.h5", "h5py", r"Reading \.h5 files needs h5py, .*: pip install \"simdims\[io\]\""),
        ("new.mat", "h5py", r"Reading \.mat files of version 7\.3 needs h5py"),
        ("s.parquet", "pyarrow", r"Reading \.parquet files needs pyarrow, .*: pip install \"simdims\[io\]\""),
        ("g.graphml", "networkx", r"Reading \.graphml files needs networkx, .*: pip install networkx"),
    ],
)
def test_a_library_that_is_not_there_is_named(tmp_path, monkeypatch, name, library, sentence):
    example_files(tmp_path)
    write(tmp_path / "g.graphml", "<graphml/>")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=sentence):
        load_similarity(tmp_path / name)


def test_arrays_too_large_for_the_machine_are_refused_before_they_are_read(tmp_path, monkeypatch):
    example_files(tmp_path)
    monkeypatch.setattr(_memory, "available_bytes", lambda: 100)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)
    for name in ("s.npy", "plain.npz", "s.mat", "new.mat", "s.h5"):
        with pytest.raises(MemoryError, match=r"An array of 40 x 40 would need 12\.\d KiB|12800 bytes"):
            load_similarity(tmp_path / name)


# Saving


def all_kinds():
    S, W = complete(), complete(seed=1)
    S[0, 3] = S[3, 0] = np.nan
    ring = sparse.coo_array(([0.5, 0.0, np.nan, 0.25, 1.0], ([0, 1, 2, 3, 4], [1, 2, 3, 4, 0])), shape=(5, 5))
    info = {"source": "made up", "n": 3, "share": 0.5, "steps": ["a", "b"], "nested": {"deep": None}}
    return {
        "dense": Similarity(S),
        "float32": Similarity(S.astype(np.float32), NAMES),
        "weighted": Similarity(S, ["Bär", "🐕", "", "a\nb", '"'], weights=W, info=info),
        "missing": Similarity(ring, NAMES, absent="missing"),
        "zero": Similarity(ring.astype(np.float32), absent="zero", info=info),
        "believed": Similarity(ring, absent=0.03),
        "sparse weights": Similarity(
            sparse.csr_array(np.abs(complete())), NAMES, sparse.csr_array(complete(seed=2)), "zero"
        ),
        "implicit": Similarity.from_factors(np.abs(complete())[:, :2], NAMES, info=info),
        "implicit float32": Similarity.from_factors(np.ones((3, 2), dtype=np.float32)),
    }


@pytest.mark.parametrize("kind", all_kinds())
def test_npz_keeps_everything(tmp_path, kind):
    similarity = all_kinds()[kind]
    similarity.save(tmp_path / "s.npz")
    loaded = load_similarity(tmp_path / "s.npz")
    assert_same(loaded, similarity)
    assert repr(loaded) == repr(similarity)


def test_info_of_numpy_is_kept_as_plain_values_and_objects_are_refused(tmp_path):
    info = {"n": np.int64(3), "share": np.float64(0.5), "grid": np.arange(3)}
    Similarity(complete(), info=info).save(tmp_path / "s.npz")
    assert dict(load_similarity(tmp_path / "s.npz").info) == {"n": 3, "share": 0.5, "grid": [0, 1, 2]}
    with pytest.raises(TypeError, match="info must hold plain values to be saved, got object"):
        Similarity(complete(), info={"what": object()}).save(tmp_path / "t.npz")
    assert not (tmp_path / "t.npz").exists()


def test_a_saved_similarity_holds_no_pickle_and_names_its_format(tmp_path):
    all_kinds()["weighted"].save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz", allow_pickle=False) as file:
        assert int(file["simdims_format"]) == 1
        assert list(file["labels"]) == ["Bär", "🐕", "", "a\nb", '"']
        assert json.loads(str(file["info"]))["source"] == "made up"
        assert all(not file[name].dtype.hasobject for name in file)


def test_a_later_format_is_refused(tmp_path):
    np.savez(tmp_path / "s.npz", simdims_format=2, values=complete())
    with pytest.raises(ValueError, match="this must be of format 1, got 2: a newer simdims wrote it"):
        load_similarity(tmp_path / "s.npz")


def test_a_saved_similarity_is_settled(tmp_path):
    Similarity(complete()).save(tmp_path / "s.npz")
    with pytest.raises(ValueError, match=r"s\.npz: labels must be None where x is a Similarity"):
        load_similarity(tmp_path / "s.npz", labels=NAMES)


@pytest.mark.parametrize(
    "parts", [("indices", [9] * 10), ("indptr", [0, 2, 4, 6, 8, 99]), ("info", "{"), ("data", [1.0])]
)
def test_a_saved_similarity_whose_parts_do_not_fit_is_refused(tmp_path, parts):
    all_kinds()["missing"].save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "s.npz", **{**arrays, parts[0]: np.array(parts[1])})
    with pytest.raises(ValueError, match=r"s\.npz: .*damaged"):
        load_similarity(tmp_path / "s.npz")


@pytest.mark.parametrize("kind", ["dense", "float32", "missing"])
def test_csv_keeps_every_value_and_label(tmp_path, kind):
    similarity = all_kinds()[kind]
    similarity.save(tmp_path / "s.CSV")
    loaded = load_similarity(tmp_path / "s.CSV")
    assert loaded.labels == similarity.labels
    np.testing.assert_array_equal(loaded.values, observed(similarity))


@pytest.mark.parametrize(
    ("kind", "fragment"),
    [
        ("weighted", r"weights must be None .* use \.npz"),
        ("zero", r"absent must be \"missing\" .* got 'zero': use \.npz"),
        ("believed", r"absent must be \"missing\" .* got 0\.03: use \.npz"),
        ("implicit", r"values must not be implicit .* use \.npz"),
    ],
)
def test_what_a_csv_cannot_hold_is_refused(tmp_path, kind, fragment):
    with pytest.raises(ValueError, match=fragment):
        all_kinds()[kind].save(tmp_path / "s.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("labels", [["1", "0", "4", "3", "2"], ["a", " ", "b", "c", "d"]])
def test_labels_that_a_list_of_pairs_cannot_tell_are_refused(tmp_path, labels):
    similarity = Similarity(all_kinds()["missing"].values, labels, absent="missing")
    with pytest.raises(ValueError, match=r"labels must be names, not blank or positions.*use \.npz"):
        similarity.save(tmp_path / "s.csv")


DELICATE = [
    "=1+1",
    "+x",
    "-y",
    "@z",
    "\tq",
    "\rr",
    "a\rb",
    "a\r\nb",
    "'=s",
    "''@",
    "'tis",
    "-1",
    " lead",
    'qu"o,te',
    "é",
]


@pytest.mark.parametrize("form", ["square", "long"])
def test_no_label_of_a_csv_is_a_formula_or_splits_a_row_and_all_come_back(tmp_path, form):
    S = complete(len(DELICATE))
    values, absent = (S, None) if form == "square" else (sparse.csr_array(S), "missing")
    Similarity(values, DELICATE, absent=absent).save(tmp_path / "s.csv")
    assert load_similarity(tmp_path / "s.csv").labels == tuple(DELICATE)
    with (tmp_path / "s.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {len(DELICATE) + 1 if form == "square" else 3}
    texts = [cell for row in rows for cell in row if not re.fullmatch(r"[-+]?[\d.]+(e-?\d+)?", cell)]
    assert not [text for text in texts if text[:1] in "=+-@\t\r"]


def test_numbers_are_no_formulas():
    frame = pd.DataFrame({"name": ["-1", "-1+1", "+2.5e-3"], "value": [-1.5, -2.0, 3.0]})
    target = io.BytesIO()
    write_csv(frame, target)
    assert target.getvalue().decode() == "name,value\n-1,-1.5\n'-1+1,-2.0\n+2.5e-3,3.0\n"


@given(st.lists(st.text(st.sampled_from("ab'=+-@\t\r\n1 ,\"")), min_size=1, max_size=4, unique=True))
def test_guards_are_undone_exactly(texts):
    assert [unguarded(guarded(text)) for text in texts] == texts
    assert len({guarded(text) for text in texts}) == len(texts)


# What files claim, and what is damaged


def claiming(n_items, names=("values",), **more):
    """An .npz file of a few hundred bytes whose arrays claim to be n_items x n_items."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (n_items, n_items)})
    content = io.BytesIO()
    np.savez(content, **more)
    with zipfile.ZipFile(content, "a", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(f"{name}.npy", header.getvalue() + b"\0" * 800)
    return content.getvalue()


@pytest.mark.parametrize("more", [{}, {"simdims_format": 1, "info": "{}"}], ids=["array", "saved"])
def test_an_npz_that_claims_more_than_it_holds_is_refused_before_it_is_read(tmp_path, monkeypatch, more):
    monkeypatch.setattr(_memory, "available_bytes", lambda: None)
    (tmp_path / "s.npz").write_bytes(claiming(200_000, **{name: np.array(value) for name, value in more.items()}))
    assert (tmp_path / "s.npz").stat().st_size < 10_000
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ValueError, match=r"s\.npz: .* said to need 320000000000 bytes"):
        load_similarity(tmp_path / "s.npz")


def test_an_npy_that_claims_more_than_it_holds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: None)
    with (tmp_path / "s.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (200_000, 200_000)}
        )
        file.write(b"\0" * 800)
    with pytest.raises(ValueError, match=r"s\.npy: .* said to need 320000000000 bytes"):
        load_similarity(tmp_path / "s.npy")


def test_a_saved_similarity_that_does_not_fit_is_refused_by_estimate(tmp_path, monkeypatch):
    Similarity(complete(40)).save(tmp_path / "s.npz")
    monkeypatch.setattr(_memory, "available_bytes", lambda: 1000)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(MemoryError, match="Reading this file would need"):
        load_similarity(tmp_path / "s.npz")


@pytest.mark.parametrize("kind", ["float32", "weighted", "missing", "implicit"])
def test_a_saved_similarity_with_a_flipped_bit_is_the_same_or_refused(tmp_path, kind):
    similarity = all_kinds()[kind]
    similarity.save(tmp_path / "s.npz")
    content = (tmp_path / "s.npz").read_bytes()
    rng = np.random.default_rng(0)
    # The list of members, which no checksum covers, more often than the rest.
    start = content.index(b"PK\x01\x02")
    places = [*rng.integers(start, len(content), size=80), *rng.integers(0, start, size=40)]
    extra = [place + 31 for place in range(start, len(content)) if content[place : place + 4] == b"PK\x01\x02"]
    n_refused = 0
    for place in (*places, *extra, *(place - 1 for place in extra)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8)) if place in places else 128
        (tmp_path / "s.npz").write_bytes(damaged)
        try:
            found = load_similarity(tmp_path / "s.npz")
        except ValueError as error:
            assert "s.npz" in str(error)  # noqa: PT017
            n_refused += 1
        else:
            assert_same(found, similarity)
    assert n_refused > 60


def test_a_saved_similarity_of_an_earlier_version_is_read(tmp_path):
    similarity = all_kinds()["weighted"]
    similarity.save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as file:
        arrays = {name: file[name] for name in file if name != "simdims_members"}
    assert len(arrays) > 2
    np.savez(tmp_path / "earlier.npz", **arrays)
    assert_same(load_similarity(tmp_path / "earlier.npz"), similarity)


def test_saving_replaces_a_file_only_once_it_is_complete(tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    Similarity(complete()).save(path)
    before = path.read_bytes()

    def broken(file, **arrays):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match="no space left"):
        Similarity(complete(seed=1)).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_saving_through_a_link_writes_the_file_it_points_to(tmp_path):
    real, link = tmp_path / "real.npz", tmp_path / "link.npz"
    real.touch()
    link.symlink_to(real)
    Similarity(complete()).save(link)
    assert link.is_symlink()
    assert load_similarity(real).n_items == 5


def test_saving_into_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="path must lie in a folder that is there"):
        Similarity(complete()).save(tmp_path / "nowhere" / "s.npz")


def test_file_names_are_only_names(tmp_path):
    path = tmp_path / "$(touch hacked); `x` 'é\n.npz"
    Similarity(complete()).save(path)
    assert load_similarity(path).n_items == 5
    assert list(tmp_path.iterdir()) == [path]


# Round trips over all that can be

label_characters = st.sampled_from(string.ascii_letters + string.digits + " ,;\t\r\n\"'äß🐕\ufeff#%_-.=+@\\{}")
label_texts = st.one_of(
    st.text(label_characters, max_size=6),
    st.sampled_from(["007", "0", "1", "2", "NA", "nan", "", "1e5", "0,5", "value", "item", "i", "j", "1_0"]),
)


@st.composite
def similarities(draw, storages):
    n_items = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    S = (complete(n_items, rng) * draw(st.sampled_from([1.0, 1e-300, 1e10, 7.0]))).astype(dtype)
    S[rng.random(S.shape) < 0.1] = 0.0
    S = np.maximum(S, S.T)
    known = np.triu(rng.random(S.shape) < draw(st.sampled_from([0.3, 0.7, 1.0])))
    known = known | known.T
    alone = ~known.any(axis=1)
    known[alone, alone] = True
    labels = draw(st.none() | st.lists(label_texts, min_size=n_items, max_size=n_items, unique=True))
    storage = draw(st.sampled_from(storages))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if storage == "dense":
            weights = draw(st.sampled_from([None, S + 1]))
            return Similarity(np.where(known, S, np.nan), labels, weights)
        matrix = sparse.coo_array((S[known], np.nonzero(known)), shape=S.shape)
        weights = sparse.coo_array((matrix.data + 1, matrix.coords), shape=S.shape)
        return Similarity(matrix, labels, draw(st.sampled_from([None, weights])), storage)


@given(similarity=similarities(["dense", "missing", "zero", 0.25]))
def test_any_similarity_survives_npz(similarity):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        similarity.save(Path(folder, "s.npz"))
        assert_same(load_similarity(Path(folder, "s.npz")), similarity)


@given(similarity=similarities(["dense", "missing"]))
def test_any_similarity_that_csv_accepts_survives_it(similarity):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "s.csv")
        try:
            similarity.save(path)
        except ValueError as error:
            refused = ("weights must be None", "labels must be names")
            assert str(error).startswith(refused)  # noqa: PT017
            assert similarity.weights is not None or similarity.labels is not None
            return
        loaded = load_similarity(path)
        assert loaded.labels == similarity.labels
        np.testing.assert_array_equal(observed(loaded), observed(similarity))
        if similarity.absent == "missing":
            kept = load_similarity(path, absent="missing")
            assert sparse.issparse(kept.values)
            np.testing.assert_array_equal(observed(kept), observed(similarity))


# Real data


def test_peterson_animals_are_the_same_from_mat_and_from_npy(data_path):
    mat = data_path("peterson_animals/turkResults_CogSci2016.mat")
    ratings = load_similarity(mat, key="simMatrix")
    shares = load_similarity(data_path("peterson_animals/animals_similarity.npy"))
    assert ratings.n_items == 120
    np.testing.assert_array_equal(ratings.values / 10, shares.values)
    assert len(ratings.labels) == 120
    with pytest.raises(ValueError, match=r"key must say which of the 3 .*simMatrix \(120 x 120\)"):
        load_similarity(mat)


def test_brain_rdms_load_with_the_warning_that_they_are_dissimilarities(data_path):
    with pytest.warns(UserWarning, match="looks like a dissimilarity matrix"):
        loaded = load_similarity(data_path("mur92/rdm_humanIT_2008.csv"))
    assert loaded.n_items == 92
    assert loaded.labels is None


@pytest.mark.parametrize(
    ("name", "n_people", "first"),
    [("92_behavRDMs.mat", 16, "simJudge | subject1"), ("92_brainRDMs.mat", 8, "hIT | BE | Session: 1")],
)
def test_rsatoolbox_struct_arrays_are_read(data_path, name, n_people, first):
    path = data_path(f"mur92/{name}")
    S = from_dissimilarity(path)
    (records,) = (value for key, value in scipy.io.loadmat(path).items() if not key.startswith("__"))
    expected = from_dissimilarity(np.stack([record["RDM"] for record in records.ravel()]))
    np.testing.assert_array_equal(S.values, expected.values)
    assert S.info["people"][0] == first
    assert S.info["n_people"] == len(S.info["people"]) == n_people
    with pytest.warns(UserWarning, match="looks like a dissimilarity matrix"):
        assert load_similarity(path).n_items == 92


def test_wordsim_lists_one_pair_twice_which_is_refused_and_averaged_by_from_ratings(data_path):
    path = data_path("words/wordsim353_combined.csv")
    with pytest.raises(
        ValueError, match=r"got 9\.15 and 9\.08 for the pair \('money', 'cash'\): from_ratings averages"
    ):
        load_similarity(path)
    table = pd.read_csv(path, keep_default_na=False)
    with pytest.warns(UserWarning, match="item with itself"):  # tiger, tiger
        averaged = from_ratings(table, item1="Word 1", item2="Word 2", rating="Human (mean)", low=0, high=10)
    assert averaged.n_items == 437


def test_a_similarity_from_a_file_is_one_like_any_other(tmp_path):
    path = write(tmp_path / "t.csv", table_text(complete(), above=NAMES))
    loaded = load_similarity(path)
    assert as_similarity(loaded) is loaded
    assert not loaded.values.flags.writeable


def test_a_file_of_our_own_is_read_whole(tmp_path):
    S = Similarity(np.eye(3) + 0.5, weights=np.ones((3, 3)))
    S.save(tmp_path / "own.npz")
    with pytest.raises(ValueError, match=r"key must be None for a file that Similarity.save wrote"):
        load_similarity(tmp_path / "own.npz", key="values")
