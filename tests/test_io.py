"""load_similarity and Similarity.save: every type of file, what is found in it, and what is refused."""

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

from simdims import (
    ParameterError,
    Similarity,
    _memory,
    as_similarity,
    from_dissimilarity,
    from_ratings,
    load_similarity,
)
from simdims.io import LOADED
from simdims.io import pairs as pairs_module
from simdims.io.tables import guarded, unguarded, write_csv

NAMES = ["cat", "dog", "car", "bus", "van"]
PAIRS = {("cat", "dog"): 0.5, ("dog", "car"): 0.25, ("car", "bus"): 0.75, ("bus", "van"): 0.125, ("van", "cat"): 0.0}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 100)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)


def complete(n_items=5, seed=0, dtype=np.float64):
    """A dense symmetric matrix with positive entries and ones on the diagonal."""
    S = np.random.default_rng(seed).uniform(0.1, 0.9, (n_items, n_items))
    S = np.triu(S) + np.triu(S, 1).T
    np.fill_diagonal(S, 1.0)
    return S.astype(dtype)


def range_of(S):
    pairs = S[np.triu_indices(len(S), 1)]
    return {"smallest": float(pairs.min()), "largest": float(pairs.max())}


def write(name, text, encoding="utf-8"):
    path = Path(name)
    path.write_bytes(text.encode(encoding))
    return path


def load_text(text, name="t.csv", **options):
    return load_similarity(write(name, text), **options)


def refused(path, *words, argument=None, error=ValueError, **options):
    """Check that a file is refused by its name, in words that include these, and because of this argument."""
    with pytest.raises(error, match=re.escape(str(path))) as caught:
        load_similarity(path, **options)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert getattr(caught.value, "name", None) == argument


def table_text(S, *, above=None, beside=None, corner="", separator=",", missing="", end="\n"):
    """A square table as text, with labels where they are given."""
    rows = [[missing if np.isnan(value) else repr(float(value)) for value in row] for row in S]
    if beside is not None:
        rows = [[name, *row] for name, row in zip(beside, rows, strict=True)]
    if above is not None:
        rows.insert(0, [*([corner] if beside is not None and corner is not None else []), *above])
    return "".join(separator.join(row) + end for row in rows)


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


def entries(matrix):
    """The stored entries of a sparse matrix as {(row, column): value}."""
    matrix = matrix.tocoo()
    return dict(zip(zip(matrix.row.tolist(), matrix.col.tolist(), strict=True), matrix.data.tolist(), strict=True))


def observed(similarity):
    """Values as a dense array with NaN for what is not observed."""
    if not sparse.issparse(similarity.values):
        return similarity.values
    dense = np.full(similarity.values.shape, np.nan)
    for place, value in entries(similarity.values).items():
        dense[place] = value
    return dense


def assert_same(one, other):
    """Equal to the last bit, in every part that an .npz keeps."""
    assert (one.labels, one.absent, dict(one.info)) == (other.labels, other.absent, dict(other.info))
    for name in ("weights", "factors") if one.factors is not None else ("values", "weights"):
        first, second = getattr(one, name), getattr(other, name)
        assert type(first) is type(second)
        if first is None:
            continue
        assert first.dtype == second.dtype
        parts = ("data", "indices", "indptr") if sparse.issparse(first) else ("T",)
        for part in parts:
            np.testing.assert_array_equal(getattr(first, part), getattr(second, part))


# Square tables


@pytest.mark.parametrize("n_items", [1, 2, 3, 4, 5, 30])
@pytest.mark.parametrize("named", ["nowhere", "above", "beside", "both", "both, no corner"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_square_table_is_read_with_labels_on_any_side(n_items, named, separator):
    S, names = complete(n_items), [f"item {i}" for i in range(n_items)]
    above = None if named in ("nowhere", "beside") else names
    beside = None if named in ("nowhere", "above") else names
    corner = None if named == "both, no corner" else ""
    loaded = load_text(table_text(S, above=above, beside=beside, corner=corner, separator=separator))
    np.testing.assert_array_equal(loaded.values, S)
    assert loaded.labels == (None if named == "nowhere" else tuple(names))
    assert f"a square table of {n_items} items" in loaded.info["found"]


@pytest.mark.parametrize("numbers", [["1", "2", "3", "4"], ["101", "7", "007", "12"]])
@pytest.mark.parametrize("n_items", [3, 4])
@pytest.mark.parametrize("corner", ["", "stimulus"])
def test_numbers_may_be_labels_and_keep_their_leading_zeros(numbers, n_items, corner):
    names = numbers[:n_items]
    assert load_text(table_text(complete(n_items), above=names, beside=names, corner=corner)).labels == tuple(names)


def test_a_table_that_pandas_numbered_has_no_labels():
    pd.DataFrame(complete()).to_csv("t.csv")
    assert load_similarity("t.csv").labels is None
    assert load_similarity("t.csv", labels=NAMES).labels == tuple(NAMES)


@pytest.mark.parametrize("n_items", [3, 5])
def test_an_empty_first_cell_is_a_missing_value_where_nothing_is_named(n_items):
    S = complete(n_items)
    S[0, 0] = np.nan
    np.testing.assert_array_equal(load_text(table_text(S)).values, S)
    whole = np.round(9 * S)
    np.fill_diagonal(whole, np.nan)
    np.testing.assert_array_equal(load_text(table_text(whole).replace(".0", "")).values, whole)


MISSING = ["", "NA", "nan", "NaN", " na ", "N/A", "n/a", "#N/A", "null", "NULL", "Null", "None", "-", ".", "#NV"]


@pytest.mark.parametrize("missing", MISSING)
def test_missing_values_are_the_same_words_in_squares_lists_edge_lists_and_parquet(missing):
    S = complete()
    S[0, 3] = S[3, 0] = np.nan
    np.testing.assert_array_equal(load_text(table_text(S, missing=missing)).values, S)
    text = f"cat,dog,0.5\ncat,car,{missing}\ndog,car,0.25\n"
    expected = as_similarity([[np.nan, 0.5, np.nan], [0.5, np.nan, 0.25], [np.nan, 0.25, np.nan]]).values
    np.testing.assert_array_equal(load_text("item1,item2,value\n" + text).values, expected)
    if missing.strip():
        assert load_text(text, "t.edgelist", absent="missing").density == pytest.approx(2 / 3)
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame([line.split(",") for line in text.splitlines()], columns=["one", "two", "value"])
    frame.to_parquet("t.parquet")
    np.testing.assert_array_equal(load_similarity("t.parquet").values, expected)


@pytest.mark.parametrize("word", ["null", "NA", "-", ".", "none"])
def test_any_word_may_name_an_item(word):
    names = [*NAMES[:4], word]
    for beside in (names, None):
        assert load_text(table_text(complete(), above=names, beside=beside)).labels == tuple(names)
    assert load_text(f"item1,item2,value\n{word},cat,0.5\ncat,dog,0.25\n").labels == (word, "cat", "dog")


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("names", [NAMES, None])
def test_one_triangle_is_enough(k, names):
    S = complete()
    np.fill_diagonal(S, np.nan if k else 1.0)
    lower = np.where(np.tri(5, k=-k), S, np.nan)
    np.testing.assert_array_equal(load_text(table_text(lower, above=names, beside=names)).values, S)


@pytest.mark.parametrize("above", [None, NAMES])
@pytest.mark.parametrize("beside", [None, NAMES])
def test_a_separator_at_the_end_of_every_line_is_no_column(above, beside):
    loaded = load_text(table_text(complete(), above=above, beside=beside, end=",\n"))
    np.testing.assert_array_equal(loaded.values, complete())
    assert loaded.labels == (None if above is None and beside is None else tuple(NAMES))


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("n_items", [2, 3, 5])
def test_decimal_commas_are_read_where_commas_do_not_separate(separator, n_items):
    for names in (NAMES[:n_items], None):
        text = table_text(complete(n_items), above=names, beside=names, separator=separator).replace(".", ",")
        loaded = load_text(text)
        np.testing.assert_array_equal(loaded.values, complete(n_items))
        assert "decimal commas" in loaded.info["found"]


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("100%", "%"),
        ("1,234", "thousands"),
        ("1,234.5", "thousands"),
        ("0,5", "decimal point"),
        ("no answer", "leave the cell empty"),
    ],
)
def test_a_cell_that_is_no_number_is_named_with_what_to_do(cell, advice):
    path = write("t.csv", f'item1,item2,value\ncat,dog,0.5\ncat,car,"{cell}"\ndog,car,0.25\n')
    refused(path, repr(cell), "row 3", "column 3", advice)


def test_a_point_among_decimal_commas_is_refused():
    path = write("t.csv", "1;0,5;1.234\n0,5;1;0\n1.234;0;1\n")
    refused(path, "'1.234' in row 1, column 3", "decimal commas", form="square")


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
def test_thousands_are_never_read_as_decimals(separator, cells):
    pairs = [("cat", "dog"), ("cat", "car"), ("dog", "car")]
    rows = [("item1", "item2", "value"), *((*pair, cell) for pair, cell in zip(pairs, cells, strict=True))]
    refused(write("t.csv", "".join(separator.join(row) + "\n" for row in rows)), cells[0], "thousands separators")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat;dog;2,333\ncat;car;3\ndog;car;1\n", [2.333, 3, 1]),
        ("cat\tdog\t1,234\ncat\tcar\t0,5\ndog\tcar\t7\n", [1.234, 0.5, 7]),
        ("cat;dog;1,234\ncat;car;0,5\ndog;car;7\n", [1.234, 0.5, 7]),
        ("cat;dog;1.234\ncat;car;0.5\ndog;car;7\n", [1.234, 0.5, 7]),
    ],
)
def test_decimals_are_read_where_other_cells_show_the_sign(text, expected):
    np.testing.assert_array_equal(load_text(text).values[np.triu_indices(3, 1)], expected)


def test_a_column_of_distances_or_times_is_pointed_out():
    text = "item1,item2,{}\ncat,dog,0.5\ncat,car,0.7\ndog,car,0.25\n"
    for name in ("distance", "Dissimilarity", "rated_dissimilarity", "RT", "reaction time", "responseTime", "latency"):
        with pytest.warns(UserWarning, match=f"olumn '{name}'"):
            load_text(text.format(name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("similarity", "rating", "strength", "sort order", "art"):
            load_text(text.format(name))
    refused(write("t.csv", "item1,item2,similarity,RT\ncat,dog,0.5,1.2\ncat,car,0.7,0.8\ndog,car,0.25,0.9\n"), "'RT'")


# Rating scales


def test_a_matrix_of_ratings_is_rescaled_as_a_table_of_ratings_is():
    ratings = {("cat", "dog"): 7, ("cat", "car"): 1, ("dog", "car"): 4}
    frame = pd.DataFrame([(*pair, value) for pair, value in ratings.items()], columns=["one", "other", "rating"])
    expected = from_ratings(frame, item1="one", item2="other", rating="rating", low=1, high=7)
    names = list(expected.labels)
    values = dense_from(ratings, names, rest=7.0)
    matrix = pd.DataFrame(values, index=names, columns=names)
    matrix.to_csv("m.csv")
    frame.to_csv("p.csv", index=False)
    by_file = load_similarity("m.csv", low=1, high=7)
    by_list = load_similarity("p.csv", labels=names, low=1, high=7)
    for S in (by_file, as_similarity(matrix, low=1, high=7)):
        np.testing.assert_array_equal(S.values, expected.values)
    pairs = np.triu_indices(3, 1)
    np.testing.assert_array_equal(by_list.values[pairs], expected.values[pairs])
    for S in (by_file, by_list, expected):
        assert (S.info["low"], S.info["high"]) == (1, 7)
    assert (by_file.info["smallest"], by_file.info["largest"]) == (1, 7)
    np.testing.assert_array_equal(load_similarity("m.csv").values, values)


def test_scales_below_zero_and_missing_ratings():
    S = as_similarity([[3, -3, np.nan], [-3, 3, 0], [np.nan, 0, 3]], low=-3, high=3)
    np.testing.assert_array_equal(S.values, [[1, 0, np.nan], [0, 1, 0.5], [np.nan, 0.5, 1]])
    single = as_similarity(np.array([[7, 4], [4, 7]], dtype=np.float32), low=1, high=7)
    assert single.values.dtype == np.float32
    stored = sparse.coo_array(([4.0, 7.0], ([0, 0], [1, 2])), shape=(3, 3))
    stored = as_similarity(stored, absent="missing", low=1, high=7)
    assert entries(stored.values) == {(0, 1): 0.5, (1, 0): 0.5, (0, 2): 1.0, (2, 0): 1.0}


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        ([[7, 4], [4, 7]], {"low": 1, "high": 5}, r"high = 5.*7 at \(0, 0\)"),
        ([[0, 4], [4, 0]], {"low": 1, "high": 7}, "diagonal"),
        ([[7, 4], [4, 7]], {"low": 7, "high": 1}, "low .*7.*1"),
        ([[7, 4], [4, 7]], {"low": "one"}, "low .*'one'"),
        (Similarity([[1, 0.5], [0.5, 1]]), {"low": 1}, "low .*Similarity"),
        (sparse.csr_array(np.eye(3) * 7), {"low": 1, "high": 7, "absent": "zero"}, "low .*0"),
    ],
)
def test_values_off_the_scale_are_refused(x, options, words):
    with pytest.raises(ValueError, match=words):
        as_similarity(x, **options)


def test_an_end_that_is_not_given_is_found_with_a_warning():
    with pytest.warns(UserWarning, match="high = 6"):
        S = as_similarity([[6, 3], [3, 6]], low=0)
    np.testing.assert_array_equal(S.values, [[1, 0.5], [0.5, 1]])


# Text, labels and the log


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".CSV", ".Txt"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blanks_separate_where_nothing_else_does(suffix, end):
    text = "".join("  ".join(map(repr, row)) + end for row in complete().tolist()) + end
    np.testing.assert_array_equal(load_text(text, f"t{suffix}").values, complete())


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("utf-8", "UTF-8"), ("utf-8-sig", "UTF-8"), ("latin-1", "Latin-1"), ("utf-16", "UTF-16")],
)
@pytest.mark.parametrize("form", ["square", "long"])
def test_text_of_every_encoding_keeps_its_labels(encoding, found, form, caplog):
    names = ["Bär", "Käse", "Öl", "être", "niño"]
    text = table_text(complete(), above=names, beside=names)
    if form == "long":
        text = "".join(f"{names[i]},{names[i - 1]},0.5\n" for i in range(1, 5))
    with caplog.at_level(logging.INFO, logger="simdims"):
        loaded = load_similarity(write("t.csv", text, encoding))
    assert set(loaded.labels) == set(names)
    assert f"{found} text" in loaded.info["found"]
    assert f"{found} text" in caplog.text


def test_what_was_found_is_in_the_info_and_in_the_log(caplog):
    path = write("animals.csv", table_text(complete(), above=NAMES))
    with caplog.at_level(logging.INFO, logger="simdims"):
        loaded = load_similarity(path)
    found = "a square table of 5 items with labels in the first row; UTF-8 text separated by commas"
    assert dict(loaded.info) == {"file": "animals.csv", "found": found, **range_of(complete())}
    assert caplog.messages == [f"{path}: {found}"]


def test_a_square_is_symmetrised_on_request():
    confusions = np.array([[9.0, 4, 0], [2, 8, 1], [1, 0, 9]])
    loaded = load_text(table_text(confusions), symmetrize="mean")
    np.testing.assert_array_equal(loaded.values, (confusions + confusions.T) / 2)
    text = table_text(complete() + np.triu(np.full((5, 5), 0.25), 1), above=NAMES, beside=NAMES)
    with pytest.raises(ValueError, match=r"^t\.csv: .*symmetrize"):
        load_text(text)


def test_labels_may_be_given_and_must_agree_with_those_of_the_file():
    assert load_text(table_text(complete()), labels=NAMES).labels == tuple(NAMES)
    named = table_text(complete(), above=NAMES)
    assert load_text(named, labels=NAMES).labels == tuple(NAMES)
    with pytest.raises(ValueError, match=r"t\.csv: the first row must .*another order"):
        load_text(named, labels=NAMES[::-1])
    text = table_text(complete(), above=NAMES, beside=["cat", "dog", "auto", "bus", "van"])
    refused(write("t.csv", text), "'car' instead of 'auto' in place 3")


# Lists of pairs


@pytest.mark.parametrize("header", [None, ["i", "j", "value"], ["a", "b", "c"]])
@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
def test_a_list_of_pairs_is_read_with_unlisted_pairs_missing(header, separator, swap, suffix):
    loaded = load_text(list_text(PAIRS, header=header, separator=separator, swap=swap), f"pairs{suffix}")
    assert set(loaded.labels) == set(NAMES)
    np.testing.assert_array_equal(loaded.values, dense_from(PAIRS, loaded.labels))
    assert "a list of 5 pairs of 5 items" in loaded.info["found"]


def test_items_of_a_list_come_in_the_order_of_the_file_or_of_the_labels():
    path = write("pairs.csv", list_text(PAIRS))
    assert load_similarity(path).labels == tuple(NAMES)
    turned = load_similarity(path, labels=NAMES[::-1])
    assert turned.labels == tuple(NAMES[::-1])
    np.testing.assert_array_equal(turned.values, load_similarity(path).values[::-1, ::-1])
    refused(path, "'van'", argument="labels", labels=NAMES[:4])


def test_items_from_0_on_are_positions_which_labels_may_name():
    path = write("pairs.csv", "0,4,0.5\n4,3,0.25\n3,2,0.75\n2,1,0.5\n")
    expected = dense_from({(0, 4): 0.5, (4, 3): 0.25, (3, 2): 0.75, (2, 1): 0.5}, [0, 1, 2, 3, 4])
    for labels in (None, NAMES):
        loaded = load_similarity(path, labels=labels)
        assert loaded.labels == (None if labels is None else tuple(labels))
        np.testing.assert_array_equal(loaded.values, expected)
    assert load_similarity(path, labels=[*NAMES, "lonely"], absent="zero").n_items == 6
    other = load_text("007,7,0.5\n7,11,0.25\n11,007,1\n3,7,0.5\n3,11,0.5\n")
    assert other.labels == ("007", "7", "11", "3")


def test_repeated_pairs_may_repeat_their_value_and_nothing_else():
    assert load_text(list_text(PAIRS) + "cat,dog,0.5\ndog,cat,0.5\ncat,cat,1\n").values[0, 1] == 0.5
    refused(write("t.csv", list_text(PAIRS) + "cat,dog,0.7\n"), "0.5 and 0.7", "('cat', 'dog')", argument="path")
    path = write("t.csv", list_text(PAIRS) + "dog,cat,0.7\n")
    with pytest.raises(ValueError, match=r"0\.5 at \('cat', 'dog'\) .*0\.7 at \('dog', 'cat'\)"):
        load_similarity(path)
    assert load_similarity(path, symmetrize="max").values[0, 1] == 0.7


def test_a_fourth_column_holds_weights():
    text = list_text(PAIRS, header=["i", "j", "value", "n"], weights=[1, 2, 3, 4, 5])
    loaded = load_text(text)
    counts = dict(zip(PAIRS, [1, 2, 3, 4, 5], strict=True))
    np.testing.assert_array_equal(loaded.weights, dense_from(counts, loaded.labels, rest=0.0))
    assert "with weights" in loaded.info["found"]
    assert entries(load_text(text, absent=0.1).weights)[0, 1] == 1
    refused(write("t.csv", text + "cat,dog,0.5,9\n"), "weight", "1 and 9", argument="path")


def test_a_weight_must_be_there_beside_a_value():
    with pytest.raises(ValueError, match=r"weights .*nan at \('car', 'bus'\)"):
        load_text(list_text(PAIRS, weights=[1, 2, "", 4, 5]))
    assert np.isnan(load_text(list_text(PAIRS, weights=[1] * 5) + "cat,car,,\n").values[0, 2])


@pytest.mark.parametrize("absent", ["missing", "zero", 0.25])
def test_what_unlisted_pairs_mean_makes_a_list_sparse(absent):
    loaded = load_text(list_text(PAIRS) + "cat,car,NA\n", absent=absent)
    assert loaded.absent == absent
    stored = entries(loaded.values)
    assert stored[0, 4] == stored[4, 0] == 0.0
    # A listed pair without a value was left out on purpose, which only zeros elsewhere can tell from an absent one.
    assert ((0, 2) in stored) == (absent != "missing")


def test_large_lists_of_few_pairs_become_sparse(monkeypatch):
    path = write("pairs.csv", list_text(PAIRS))
    monkeypatch.setattr(pairs_module, "DENSE_ITEMS", 4)
    assert not sparse.issparse(load_similarity(path).values)  # half of all pairs
    monkeypatch.setattr(pairs_module, "DENSE_SHARE", 0.6)
    loaded = load_similarity(path)
    assert loaded.absent == "missing"
    np.testing.assert_array_equal(observed(loaded), dense_from(PAIRS, loaded.labels))


def test_a_list_too_large_for_a_dense_matrix_is_refused(little_memory):
    with pytest.raises(MemoryError, match=r"5 items .*200 bytes.*absent"):
        load_text(list_text(PAIRS))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_column_that_numbers_the_rows_of_a_list_is_not_taken_for_an_item(suffix):
    frame, path = pd.DataFrame({"n": range(6), "i": 1, "j": [0, 2, 3, 4, 5, 6], "value": 0.5}), f"pairs{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        frame[["i", "j", "n"]].to_csv(path)
        refused(path, "'', 'i', 'j', 'n'")
        frame.to_csv(path, index=False)
    refused(path, "'n', 'i', 'j', 'value'")


# Tables of so few rows that they could be either


@pytest.mark.parametrize("header", ["", "i,j,value\n", "item1,item2,similarity\n"])
def test_a_list_of_two_text_pairs_is_a_list(header):
    assert load_text(header + "cat,dog,0.5\ndog,car,0.25\n").labels == ("cat", "dog", "car")


def test_what_could_be_either_is_refused_until_form_or_a_header_says_which():
    text = "0,1,0.5\n0,2,0.25\n1,2,0.75\n"
    refused(write("t.csv", text), "3 pairs", argument="form")
    expected = dense_from({(0, 1): 0.5, (0, 2): 0.25, (1, 2): 0.75}, [0, 1, 2])
    np.testing.assert_array_equal(load_text(text, form="long").values, expected)
    np.testing.assert_array_equal(load_text("i,j,value\n" + text).values, expected)
    with pytest.raises(ValueError, match="symmetric"):
        load_text(text, form="square")
    with pytest.raises(ValueError, match="symmetric"):  # fractions name no items
        load_text("0.9,0.4,0.1\n0.2,0.8,0.1\n0.1,0.3,0.9\n")


# Edge lists and graphs


@pytest.mark.parametrize("suffix", [".edgelist", ".edges"])
@pytest.mark.parametrize("separator", [" ", "\t", ","])
def test_an_edge_list_is_a_list_of_pairs_with_comments(suffix, separator):
    text = "# made up\n% by hand\n\n" + list_text(PAIRS, separator=separator)
    loaded = load_text(text, f"graph{suffix}")
    np.testing.assert_array_equal(loaded.values, dense_from(PAIRS, loaded.labels))
    zeros = load_text(text, f"graph{suffix}", absent="zero")
    assert (zeros.absent, zeros.density) == ("zero", 1.0)


def test_edges_without_a_number_count_one():
    loaded = load_text("cat dog\ndog car\ncar cat\n", "g.edges", absent="zero")
    assert set(entries(loaded.values).values()) == {1.0}


def test_edge_lists_of_networkx_are_read_with_and_without_attributes():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_weighted_edges_from([(*pair, value) for pair, value in PAIRS.items()])
    networkx.write_edgelist(graph, "all.edgelist")
    networkx.write_weighted_edgelist(graph, "weighted.edgelist")
    networkx.write_edgelist(networkx.path_graph(4), "empty.edgelist")
    for name in ("all", "weighted"):
        loaded = load_similarity(f"{name}.edgelist")
        np.testing.assert_array_equal(loaded.values, dense_from(PAIRS, loaded.labels))
    assert load_similarity("empty.edgelist").values[0, 1] == 1.0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cat", "1 cell in line 1"),
        ("a b c d e", "5 cells in line 1"),
        ("a b {'weight': __import__('os')}", "dictionary"),
        ("a b {", "dictionary"),
        ("a b 0.5\na c much", "'much' in row 2"),
    ],
)
def test_other_edge_lists_are_refused(line, words):
    refused(write("g.edges", line + "\n"), words)


@pytest.mark.parametrize("directed", [False, True])
def test_graphml_is_read_through_networkx(directed):
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph() if directed else networkx.Graph()
    graph.add_weighted_edges_from([("cat", "dog", 0.5), ("dog", "car", 0.25)])
    networkx.write_graphml(graph, "g.graphml")
    loaded = load_similarity("g.graphml", absent="zero")
    assert loaded.labels == ("cat", "dog", "car")
    assert entries(loaded.values) == {(0, 1): 0.5, (1, 0): 0.5, (1, 2): 0.25, (2, 1): 0.25}
    assert "a graph of 3 nodes and 2 edges" in loaded.info["found"]
    halved = load_similarity("g.graphml", absent="zero", symmetrize="mean")
    assert entries(halved.values)[0, 1] == (0.25 if directed else 0.5)
    refused("g.graphml", argument="absent")


def test_graphml_that_numbers_its_nodes_gives_their_labels():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from([("n0", {"label": "cat"}), ("n1", {"label": "dog"})])
    graph.add_edge("n0", "n1", weight=0.5)
    networkx.write_graphml(graph, "g.graphml")
    assert load_similarity("g.graphml", absent="missing").labels == ("cat", "dog")
    networkx.write_graphml(Similarity(complete(), NAMES).to_networkx(), "own.graphml")
    loaded = load_similarity("own.graphml")
    assert loaded.absent == "missing"
    np.testing.assert_array_equal(observed(loaded), complete())


# Arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npy_keeps_every_bit(dtype):
    np.save("s.npy", complete(dtype=dtype))
    loaded = load_similarity("s.npy", labels=NAMES)
    assert loaded.values.dtype == dtype
    np.testing.assert_array_equal(loaded.values, complete(dtype=dtype))
    assert loaded.labels == tuple(NAMES)
    assert dict(loaded.info) == {"file": "s.npy", "found": "an array of 5 x 5", **range_of(complete(dtype=dtype))}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_one_square_array_of_an_npz_is_found_with_its_labels(save):
    save("s.npz", S=complete(), names=NAMES, scores=np.ones((5, 3)), n=5)
    loaded = load_similarity("s.npz")
    np.testing.assert_array_equal(loaded.values, complete())
    assert loaded.labels == tuple(NAMES)
    assert loaded.info["found"] == "S, an array of 5 x 5, labels in names"
    save("s.npz", S=complete(), one=NAMES, other=NAMES[::-1], third=["cat"] * 5)  # neither list is the labels
    assert load_similarity("s.npz").labels is None
    assert load_similarity("s.npz", labels=NAMES).labels == tuple(NAMES)


def test_key_says_which_of_several_squares():
    np.savez("s.npz", first=complete(), second=complete(4), scores=np.ones((5, 3)))
    refused("s.npz", "first (5 x 5)", "scores (5 x 3)", argument="key")
    np.testing.assert_array_equal(load_similarity("s.npz", key="second").values, complete(4))
    refused("s.npz", "'third'", "first (5 x 5)", argument="key", key="third")
    np.savez("none.npz", scores=np.ones((5, 3)))
    refused("none.npz", "scores (5 x 3)")
    np.save("flat.npy", np.ones(10))
    with pytest.raises(ValueError, match=r"flat\.npy: values must be a square matrix"):
        load_similarity("flat.npy")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("container", [sparse.coo_array, sparse.coo_matrix])
def test_sparse_matrices_of_scipy_are_read_and_must_say_what_absent_pairs_mean(kind, container):
    matrix = container(np.where(complete(6) > 0.4, complete(6), 0)).asformat(kind)
    sparse.save_npz("s.npz", matrix)
    refused("s.npz", argument="absent")
    loaded = load_similarity("s.npz", absent="zero")
    np.testing.assert_array_equal(loaded.values.toarray(), matrix.toarray())
    assert "sparse" in loaded.info["found"]


@pytest.mark.parametrize("strings", ["variable", "fixed"])
def test_hdf5_is_read_with_its_labels(strings):
    h5py = pytest.importorskip("h5py")
    names = ["Bär", *NAMES[1:]]
    dtype = h5py.string_dtype() if strings == "variable" else h5py.string_dtype("utf-8", 8)
    with h5py.File("s.h5", "w") as file:
        file["group/S"] = complete(dtype=np.float32)
        file.create_dataset("names", data=[name.encode() for name in names], dtype=dtype)
        file["n"] = 5
    loaded = load_similarity("s.h5")
    assert loaded.values.dtype == np.float32
    np.testing.assert_array_equal(loaded.values, complete(dtype=np.float32))
    assert loaded.labels == tuple(names)
    assert load_similarity("s.h5", key="/group/S").n_items == 5
    with h5py.File("s.h5", "a") as file:
        file["T"] = complete()
    refused("s.h5", "T (5 x 5)", "group/S (5 x 5)", argument="key")


@pytest.mark.parametrize("names", [np.array(NAMES), np.array(NAMES, dtype=object), np.array([NAMES], dtype=object).T])
def test_matlab_files_up_to_version_7_are_read_with_their_labels(names):
    scipy.io.savemat("s.mat", {"S": complete(), "names": names, "n": 5.0, "about": "made up"})
    loaded = load_similarity("s.mat")
    np.testing.assert_array_equal(loaded.values, complete())
    assert loaded.labels == tuple(NAMES)


def test_matlab_variables_of_other_kinds():
    cells = np.array(["cat", 2.0, "car", "bus", "van"], dtype=object)
    scipy.io.savemat("s.mat", {"S": complete(), "cells": cells, "other": {"field": 1}})
    assert load_similarity("s.mat").labels is None  # cells that are not all texts
    scipy.io.savemat("s.mat", {"S": complete(), "T": complete(4), "about": {"n": 1}})
    refused("s.mat", "S (5 x 5); T (4 x 4); about (1 x 1, struct)", argument="key")
    assert load_similarity("s.mat", key="T").n_items == 4
    people = np.empty(3, dtype=object)
    people[:] = [complete(4)] * 3
    scipy.io.savemat("s.mat", {"people": people})
    refused("s.mat", "people (1 x 3, a cell array)")
    scipy.io.savemat("s.mat", {"S": sparse.csc_array(complete())})
    np.testing.assert_array_equal(load_similarity("s.mat", absent="zero").values.toarray(), complete())
    refused("s.mat", argument="absent")


def write_mat(path, version, **variables):
    """A MATLAB file: by scipy up to version 7, by h5py as -v7.3 writes it; a list of mappings is a struct array."""
    if version == 7:
        for name, elements in variables.items():
            if isinstance(elements, list):
                array = np.zeros((1, len(elements)), dtype=[(field, object) for field in elements[0]])
                array[0] = [tuple(element.values()) for element in elements]
                variables[name] = array
        scipy.io.savemat(path, variables)
        return
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:

        def put(place, content):
            """Arrays are turned, texts are UTF-16 codes, cells and the fields of struct arrays are references."""
            kind = "double"
            if isinstance(content, str):
                kind, file[place] = "char", np.frombuffer(content.encode("utf-16-le"), dtype="<u2")[:, None]
            elif isinstance(content, list):
                kind = "struct"
                file.create_group(place)
                for field in content[0]:
                    if len(content) == 1:
                        put(f"{place}/{field}", content[0][field])
                        continue
                    cells = [[put(f"#refs#/{field}{i}", element[field])] for i, element in enumerate(content)]
                    file[place].create_dataset(field, data=np.array(cells, dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
            elif sparse.issparse(content):
                file.create_group(place).attrs["MATLAB_sparse"] = np.uint64(content.shape[0])
                file[place]["data"] = content.data
                file[place]["ir"], file[place]["jc"] = (a.astype(np.uint64) for a in (content.indices, content.indptr))
            elif content.dtype == object:
                kind = "cell"
                cells = [put(f"#refs#/{place}_{number}", text) for number, text in enumerate(content.ravel())]
                file.create_dataset(place, data=np.array([cells], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
            else:
                file[place] = np.atleast_2d(content).T
            file[place].attrs["MATLAB_class"] = np.bytes_(kind)
            return file[place].ref

        for name, content in variables.items():
            put(name, content)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))


MAT = Path("s.mat")


def test_matlab_files_of_version_7_3_are_read_with_their_labels():
    names = ["Bär", "🐕", *NAMES[2:]]
    upper = np.where(np.tri(5, k=-1), np.nan, complete())
    upper[0, 1] = 0.25
    cells = np.array(names, dtype=object)
    write_mat(MAT, 7.3, S=upper, label="square", names=cells)
    loaded = load_similarity(MAT)
    assert loaded.labels == tuple(names)
    assert loaded.values[0, 1] == 0.25
    write_mat(MAT, 7.3, S=sparse.csc_array(complete()), names=cells)
    loaded = load_similarity(MAT, absent="missing")
    assert loaded.labels == tuple(names)
    np.testing.assert_array_equal(loaded.values.toarray(), complete())


@pytest.mark.parametrize("version", [7, 7.3])
@pytest.mark.parametrize("form", ["square", "vector"])
def test_matlab_struct_arrays_are_read_and_averaged(version, form):
    squares = [complete(6, seed=seed) for seed in range(3)]
    squares[1][0, 1] = squares[1][1, 0] = np.nan  # one person lacks a pair
    matrices = squares if form == "square" else [square[np.triu_indices(6, 1)][None] for square in squares]
    elements = [
        {"RDM": matrix, "name": f"person {place}", "color": np.array([[0.1, 0.2, 0.3]])}
        for place, matrix in enumerate(matrices)
    ]
    write_mat(MAT, version, people=elements, labels=np.array([f"item {i}" for i in range(6)], dtype=object))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="values looks like a dissimilarity")  # by the name of the field
        loaded = load_similarity(MAT)
    expected = np.nanmean(squares, axis=0)
    if form == "vector":
        np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(loaded.values, expected, rtol=1e-15)
    assert loaded.labels == tuple(f"item {i}" for i in range(6))
    assert loaded.info["people"] == ["person 0", "person 1", "person 2"]
    assert loaded.info["n_people"] == 3
    for square in squares:
        np.fill_diagonal(square, 0)
    write_mat(MAT, version, people=elements)
    from_file, from_stack = from_dissimilarity(MAT), from_dissimilarity(np.stack(squares))
    np.testing.assert_array_equal(from_file.values, from_stack.values)
    assert from_file.info["people"] == loaded.info["people"]
    assert from_file.info["file"] == "s.mat"


@pytest.mark.parametrize("version", [7, 7.3])
def test_a_matlab_struct_with_a_stack_or_several_fields(version):
    stack = np.stack([complete(4, seed=seed) for seed in range(3)], axis=-1)
    element = {"similarity": stack, "items": np.array(["a", "b", "c", "d"], dtype=object)}
    write_mat(MAT, version, people=[element])
    loaded = load_similarity(MAT)
    np.testing.assert_allclose(loaded.values, stack.mean(axis=-1), rtol=1e-15)
    assert loaded.labels == ("a", "b", "c", "d")
    elements = [{"A": complete(4), "B": complete(5, seed=seed)} for seed in range(2)]
    write_mat(MAT, version, people=elements)
    loaded = load_similarity(MAT, key="people.B")
    np.testing.assert_allclose(loaded.values, (elements[0]["B"] + elements[1]["B"]) / 2, rtol=1e-15)


@pytest.mark.parametrize("version", [7, 7.3])
@pytest.mark.parametrize(
    ("elements", "key", "argument", "words"),
    [
        ([{"S": complete(4)}, {"S": complete(5)}], None, None, "4 x 4, 5 x 5"),
        ([{"name": "a"}, {"name": "b"}], None, "key", "in none"),
        ([{"A": complete(4), "B": complete(4)}] * 2, None, "key", "in A and B"),
        ([{"A": complete(4), "B": complete(4)}] * 2, "people.C", "key", "people.C"),
        ([{"A": complete(4), "B": "text"}] * 2, "people.B", None, "people.B must hold numbers"),
        ([{"name": "a"}], None, "key", "the field name"),
    ],
)
def test_bad_matlab_structs_are_refused(version, elements, key, argument, words):
    write_mat(MAT, version, people=elements)
    refused(MAT, words, argument=argument, key=key)


@pytest.mark.parametrize("n_people", [2, 5, 7])  # 5 people and 5 items are told by symmetry
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mat", ".h5"])
def test_stacks_are_read_with_people_first_or_last(n_people, axis, suffix):
    people = [complete(5, seed=seed) for seed in range(n_people)]
    stack, path = np.stack(people, axis=axis), Path(f"s{suffix}")
    if suffix == ".npy":
        np.save(path, stack)
    elif suffix == ".npz":
        np.savez(path, S=stack, names=np.array(NAMES))
    elif suffix == ".mat":
        write_mat(path, 7, S=stack, names=np.array(NAMES, dtype=object))
    else:
        with pytest.importorskip("h5py").File(path, "w") as file:
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
def test_names_that_say_distance_are_a_warning(name, header, is_distance):
    pairs = {(str(i), str(j)): float(complete(5)[i, j]) for i in range(5) for j in range(i)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_text(list_text(pairs, header=["item1", "item2", header]), name)
    found = [str(warning.message) for warning in caught if "dissimilarity matrix" in str(warning.message)]
    assert len(found) == is_distance
    assert all(repr(name if header == "value" else header) in sentence for sentence in found)


def test_negative_values_in_a_file_are_clipped_or_shifted():
    R = np.corrcoef(np.random.default_rng(0).normal(size=(6, 4)))
    np.save("r.npy", R)
    with pytest.raises(ValueError, match=r"r\.npy: .*negative"):
        load_similarity("r.npy")
    with pytest.warns(UserWarning, match="negative"):
        clipped = load_similarity("r.npy", negative="clip")
    np.testing.assert_allclose(clipped.values, np.maximum(R, 0), rtol=1e-15)
    np.testing.assert_allclose(load_similarity("r.npy", negative="shift").values, (1 + R) / 2, rtol=1e-14)


# Parquet


@pytest.mark.parametrize("named", ["nowhere", "index", "column"])
@pytest.mark.parametrize("n_items", [3, 4, 5])
def test_a_square_parquet_table_is_read_with_its_labels(named, n_items):
    pytest.importorskip("pyarrow")
    names = NAMES[:n_items]
    frame = pd.DataFrame(complete(n_items), index=names, columns=names)
    if named == "column":
        frame = frame.reset_index(names="item")
    if named == "nowhere":
        frame = pd.DataFrame(complete(n_items), columns=list(map(str, range(n_items))))
    frame.to_parquet("s.parquet")
    loaded = load_similarity("s.parquet")
    np.testing.assert_array_equal(loaded.values, complete(n_items))
    assert loaded.labels == (None if named == "nowhere" else tuple(names))


@pytest.mark.parametrize("n_pairs", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_parquet_list_of_pairs_is_read(n_pairs, weighted):
    pytest.importorskip("pyarrow")
    pairs = dict(list(PAIRS.items())[:n_pairs])
    frame = pd.DataFrame([(*pair, value) for pair, value in pairs.items()], columns=["a", "b", "c"])
    if weighted:
        frame["count"] = range(1, n_pairs + 1)
    frame.to_parquet("s.parquet")
    loaded = load_similarity("s.parquet")
    assert loaded.labels == tuple(NAMES[: n_pairs + 1 if n_pairs < 5 else 5])
    np.testing.assert_array_equal(loaded.values, dense_from(pairs, loaded.labels))
    assert (loaded.weights is not None) == weighted


def test_bad_parquet_tables_are_refused():
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": ["cat", None], "b": ["dog", "car"], "value": [0.5, 0.5]})
    frame.to_parquet("s.parquet")
    refused("s.parquet", "row 2, column 1")
    frame.assign(a="cat", value=["0.5", "much"]).to_parquet("s.parquet")
    refused("s.parquet", "'much' in row 1", argument="Column 'value'")
    pd.DataFrame(np.ones((6, 5)), columns=NAMES).to_parquet("s.parquet")
    refused("s.parquet", "6 rows and 5 columns")


# Bad files


def test_paths_that_are_no_files_are_refused():
    refused("nowhere/s.npy", "No such file", error=FileNotFoundError)
    Path("folder.csv").mkdir()
    refused("folder.csv", "folder")
    S = Similarity(complete())
    for path in ("folder.csv", "s.xlsx", "s"):
        with pytest.raises(ParameterError, match=repr(path)) as caught:
            S.save(path)
        assert caught.value.name == "path"
    with pytest.raises(FileNotFoundError, match="nowhere"):
        S.save("nowhere/s.npz")


@pytest.mark.parametrize("path", [3, None, ["s.npy"], b"s.npy"])
def test_what_is_no_path_is_a_type_error(path):
    with pytest.raises(TypeError, match=r"path .*name of a file"):
        load_similarity(path)


@pytest.mark.parametrize("suffix", LOADED)
def test_an_empty_file_is_refused(suffix):
    refused(write(f"s{suffix}", ""), "0 bytes")


@pytest.mark.parametrize("suffix", ["", ".xls", ".pkl", ".gz"])
def test_an_unknown_type_lists_the_known_ones(suffix):
    refused(write(f"s{suffix}", "1"), ".npy, ", ".graphml")


def example_files():
    """A sound file of every binary type."""
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("pyarrow")
    S = complete(40)
    np.save("s.npy", S)
    np.savez("plain.npz", S=S)
    Similarity(S, weights=S).save("own.npz")
    scipy.io.savemat("s.mat", {"S": S}, do_compression=True)
    write_mat(Path("new.mat"), 7.3, S=S)
    with h5py.File("s.h5", "w") as file:
        file["S"] = S
    pd.DataFrame(S, columns=[f"item {i}" for i in range(40)]).to_parquet("s.parquet")


FILES = ["s.npy", "plain.npz", "own.npz", "s.mat", "new.mat", "s.h5", "s.parquet"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95, 0.999])
def test_a_file_that_is_cut_short_is_refused_in_one_line(name, share):
    example_files()
    whole = Path(name).read_bytes()
    Path(name).write_bytes(whole[: max(1, int(share * len(whole)))])
    with pytest.raises(ValueError, match=rf"^{name}: .*damaged, cut short") as caught:
        load_similarity(name)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    refused(write(name, "cat,dog\n1,0.5\n0.5,1\n" * 100), "another type")


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_refused_and_never_loaded():
    harmful = np.array([[Harmful()]], dtype=object)
    np.save("s.npy", harmful, allow_pickle=True)
    np.savez("s.npz", S=harmful)
    Path("raw.npy").write_bytes(pickle.dumps(Harmful()))
    refused("s.npy", "pickle")
    refused("s.npz", "pickle")
    refused("s.npz", "pickle", key="S")
    refused("raw.npy", ".npy file")
    np.savez("mixed.npz", S=complete(), names=np.array(NAMES, dtype=object), extra=harmful)
    assert load_similarity("mixed.npz").labels is None


@pytest.mark.parametrize(
    ("above", "beside", "where"),
    [
        (None, None, "row 3, column 4"),
        (NAMES, None, "row 4, column 4 ('bus')"),
        (None, NAMES, "row 3 ('car'), column 5"),
        (NAMES, NAMES, "row 4 ('car'), column 5 ('bus')"),
    ],
)
def test_one_text_cell_is_named_by_row_and_column(above, beside, where):
    rows = list(csv.reader(table_text(complete(), above=above, beside=beside).splitlines()))
    rows[2 + (above is not None)][3 + (beside is not None)] = "oops"
    refused(write("t.csv", "".join(",".join(row) + "\n" for row in rows)), f"'oops' in {where}")


@pytest.mark.parametrize("place", [(0, 0), (0, 3), (2, 0), (4, 4)])
def test_one_text_cell_anywhere_in_a_table_without_labels_is_no_label(place):
    cells = complete().astype(str).astype(object)
    cells[place] = "oops"
    path = write("t.csv", "".join(",".join(row) + "\n" for row in cells))
    refused(path, f"'oops' in row {place[0] + 1}, column {place[1] + 1}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n\n \n", "blank lines"),
        ("i,j,value\n", "header only"),
        ("1,0.5,0.2,0.1,0\n0.5,1\n", "2 in others"),
        (table_text(complete())[:-25], "3 cells in row 5 and 5 in others"),
        (table_text(complete(6)[:4]), "4 rows and 6 columns"),
        (table_text(complete(6)[:, :5]) * 3, "18 rows and 5 columns"),
        (table_text(complete(6)[:4], above=[*NAMES, "lorry"], beside=NAMES[:4]), "4 rows and 6 columns"),
        ("cat,dog\ndog,car\ncar,bus\nbus,van\n", "'car' in row 2"),
        ("cat,dog,oops\n" + list_text(PAIRS), "'oops' in row 1"),
        ("one,other,strength\n" + list_text(PAIRS) + "cat,car,strong\n", "row 7 ('cat'), column 3 ('strength')"),
        ("cat,dog,0.5\n,car,0.5\nbus,van,0.5\nvan,cat,0.5\ncat,van,0.5\n", "row 2, column 1"),
        ('"cat,dog,0.5\ndog,car,0.5\n', "row 1 must be valid CSV"),
        ("cat,dog,1_0\ndog,car,0.5\ncar,cat,1\nbus,van,1\nbus,cat,1\n", "'1_0' in row 1"),
        ("a,b,0.5,1,2,3\nb,c,0.5,1,2,3\n", "3 or 4 columns"),
        ("PK\x03\x04\0\0binary", "NUL bytes"),
    ],
)
def test_text_that_is_no_table_of_similarities_is_refused(text, words):
    refused(write("t.csv", text), words)


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("s.npy", "key", "S"),
        ("s.npz", "key", 3),
        ("s.npy", "form", "long"),
        ("t.csv", "form", "round"),
        ("t.csv", "absent", "zero"),
        ("t.csv", "symmetrize", "min"),
        ("t.csv", "labels", ["a"]),
    ],
)
def test_options_that_do_not_fit_are_refused(name, argument, value):
    np.save("s.npy", complete())
    np.savez("s.npz", complete())
    write("t.csv", table_text(complete()))
    with pytest.raises(ValueError, match=rf"\b{argument} must "):
        load_similarity(name, **{argument: value})


@pytest.mark.parametrize(
    ("name", "library"),
    [("s.h5", "h5py"), ("new.mat", "h5py"), ("s.parquet", "pyarrow"), ("g.graphml", "networkx")],
)
def test_a_library_that_is_not_installed_is_named(monkeypatch, name, library):
    example_files()
    write("g.graphml", "<graphml/>")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{Path(name).suffix} files .*needs {library}, .*pip install"):
        load_similarity(name)


def test_arrays_too_large_for_the_machine_are_refused_before_they_are_read(request):
    example_files()
    request.getfixturevalue("little_memory")
    for name in ("s.npy", "plain.npz", "s.mat", "new.mat", "s.h5"):
        with pytest.raises(MemoryError, match=r"40 x 40 .*(12\.\d KiB|12800 bytes)"):
            load_similarity(name)


# Saving


def all_kinds():
    S, W = complete(), complete(seed=1)
    S[0, 3] = S[3, 0] = np.nan
    ring = sparse.coo_array(([0.5, 0.0, np.nan, 0.25, 1.0], ([0, 1, 2, 3, 4], [1, 2, 3, 4, 0])), shape=(5, 5))
    stored, counts = sparse.csr_array(complete()), sparse.csr_array(complete(seed=2))
    info = {"source": "made up", "n": 3, "share": 0.5, "steps": ["a", "b"], "nested": {"deep": None}}
    return {
        "dense": Similarity(S),
        "float32": Similarity(S.astype(np.float32), NAMES),
        "weighted": Similarity(S, ["Bär", "🐕", "", "a\nb", '"'], weights=W, info=info),
        "missing": Similarity(ring, NAMES, absent="missing"),
        "zero": Similarity(ring.astype(np.float32), absent="zero", info=info),
        "believed": Similarity(ring, absent=0.03),
        "sparse weights": Similarity(stored, NAMES, counts, "zero"),
        "implicit": Similarity.from_factors(complete()[:, :2], NAMES, info=info),
        "implicit float32": Similarity.from_factors(np.ones((3, 2), dtype=np.float32)),
    }


def saved(kind):
    """The arrays in the .npz file of a Similarity."""
    all_kinds()[kind].save("s.npz")
    with np.load("s.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.mark.parametrize("kind", all_kinds())
def test_npz_keeps_everything(kind):
    similarity = all_kinds()[kind]
    similarity.save("s.npz")
    loaded = load_similarity("s.npz")
    assert_same(loaded, similarity)
    assert repr(loaded) == repr(similarity)


def test_info_of_numpy_is_kept_as_plain_values_and_objects_are_refused():
    info = {"n": np.int64(3), "share": np.float64(0.5), "grid": np.arange(3)}
    Similarity(complete(), info=info).save("s.npz")
    assert dict(load_similarity("s.npz").info) == {"n": 3, "share": 0.5, "grid": [0, 1, 2]}
    with pytest.raises(TypeError, match=r"info .*object"):
        Similarity(complete(), info={"what": object()}).save("t.npz")
    assert not Path("t.npz").exists()


def test_a_saved_similarity_holds_no_pickle_and_names_its_format():
    arrays = saved("weighted")
    assert int(arrays["simdims_format"]) == 1
    assert list(arrays["labels"]) == ["Bär", "🐕", "", "a\nb", '"']
    assert json.loads(str(arrays["info"]))["source"] == "made up"
    assert all(not array.dtype.hasobject for array in arrays.values())


def test_a_saved_similarity_of_an_earlier_version_is_read_and_of_a_later_one_refused():
    arrays = saved("weighted")
    del arrays["simdims_members"]
    np.savez("earlier.npz", **arrays)
    assert_same(load_similarity("earlier.npz"), all_kinds()["weighted"])
    np.savez("later.npz", simdims_format=2, values=complete())
    refused("later.npz", "format 1", "newer")


def test_a_saved_similarity_is_settled_and_read_whole():
    saved("dense")
    with pytest.raises(ValueError, match=r"s\.npz: labels must"):
        load_similarity("s.npz", labels=NAMES)
    refused("s.npz", "'values'", argument="key", key="values")


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("indices", [9] * 10),
        ("indptr", [0, 2, 4, 6, 8, 99]),
        ("info", "{"),
        ("data", [1.0]),
        ("labels", np.array([Harmful()] * 5, dtype=object)),
    ],
)
def test_a_saved_similarity_whose_parts_do_not_fit_is_refused(part, content):
    np.savez("s.npz", **{**saved("missing"), part: np.array(content)})
    refused("s.npz", "damaged")


@pytest.mark.parametrize("kind", ["dense", "float32", "missing"])
def test_csv_keeps_every_value_and_label(kind):
    similarity = all_kinds()[kind]
    similarity.save("s.CSV")
    loaded = load_similarity("s.CSV")
    assert loaded.labels == similarity.labels
    np.testing.assert_array_equal(loaded.values, observed(similarity))


@pytest.mark.parametrize(
    ("kind", "labels", "argument"),
    [
        ("weighted", None, "weights"),
        ("zero", None, "absent"),
        ("believed", None, "absent"),
        ("implicit", None, "values"),
        ("missing", ["1", "0", "4", "3", "2"], "labels"),  # positions, which a list of pairs does not take for names
        ("missing", ["a", " ", "b", "c", "d"], "labels"),
    ],
)
def test_what_a_csv_cannot_hold_is_refused(kind, labels, argument):
    similarity = all_kinds()[kind]
    if labels is not None:
        similarity = Similarity(similarity.values, labels, absent="missing")
    with pytest.raises(ParameterError, match=rf"{argument} .*\.npz") as caught:
        similarity.save("s.csv")
    assert caught.value.name == argument
    assert not Path("s.csv").exists()


DELICATE = ["=1+1", "+x", "-y", "@z", "\tq", "\rr", "a\rb", "a\r\nb", "'=s", "''@", "'tis", "-1", " lead"]
DELICATE += ['qu"o,te', "é"]


@pytest.mark.parametrize("form", ["square", "long"])
def test_no_label_of_a_csv_is_a_formula_or_splits_a_row_and_all_come_back(form):
    S = complete(len(DELICATE))
    values, absent = (S, None) if form == "square" else (sparse.csr_array(S), "missing")
    Similarity(values, DELICATE, absent=absent).save("s.csv")
    assert load_similarity("s.csv").labels == tuple(DELICATE)
    with Path("s.csv").open(newline="", encoding="utf-8") as file:
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


@pytest.mark.parametrize("more", [None, {}, {"simdims_format": np.array(1), "info": np.array("{}")}])
def test_a_file_that_claims_more_than_it_holds_is_refused_before_it_is_read(monkeypatch, more):
    monkeypatch.setattr(_memory, "available_bytes", lambda: None)
    content = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (200_000, 200_000)}
    np.lib.format.write_array_header_1_0(content, header)
    content.write(b"\0" * 800)
    path = Path("s.npy" if more is None else "s.npz")
    if more is None:
        path.write_bytes(content.getvalue())
    else:
        np.savez(path, **more)
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("values.npy", content.getvalue())
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    refused(path, "320000000000 bytes")


def test_a_saved_similarity_that_does_not_fit_is_refused_by_estimate(request, monkeypatch):
    saved("dense")
    request.getfixturevalue("little_memory")
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(MemoryError, match="Reading this file"):
        load_similarity("s.npz")


@pytest.mark.parametrize("kind", ["float32", "weighted", "missing", "implicit"])
def test_a_saved_similarity_with_a_flipped_bit_is_the_same_or_refused(kind):
    similarity = all_kinds()[kind]
    similarity.save("s.npz")
    content = Path("s.npz").read_bytes()
    rng = np.random.default_rng(0)
    # The list of members, which no checksum covers, more often than the rest.
    start = content.index(b"PK\x01\x02")
    places = [*rng.integers(start, len(content), size=80), *rng.integers(0, start, size=40)]
    extra = [place + 31 for place in range(start, len(content)) if content[place : place + 4] == b"PK\x01\x02"]
    n_refused = 0
    for place in (*places, *extra, *(place - 1 for place in extra)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8)) if place in places else 128
        Path("s.npz").write_bytes(damaged)
        try:
            found = load_similarity("s.npz")
        except ValueError as error:
            assert "s.npz" in str(error)  # noqa: PT017
            n_refused += 1
        else:
            assert_same(found, similarity)
    assert n_refused > 60


def test_saving_replaces_a_file_only_once_it_is_complete(monkeypatch):
    saved("dense")
    before = Path("s.npz").read_bytes()

    def broken(file, **arrays):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match="no space left"):
        Similarity(complete(seed=1)).save("s.npz")
    assert Path("s.npz").read_bytes() == before
    assert list(Path().iterdir()) == [Path("s.npz")]


def test_saving_through_a_link_writes_the_file_it_points_to():
    real, link = Path("real.npz"), Path("link.npz")
    real.touch()
    link.symlink_to(real)
    Similarity(complete()).save(link)
    assert link.is_symlink()
    assert load_similarity(real).n_items == 5


def test_file_names_are_only_names():
    path = Path("$(touch hacked); `x` 'é\n.npz")
    Similarity(complete()).save(path)
    assert load_similarity(path).n_items == 5
    assert list(Path().iterdir()) == [path]


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
        except ParameterError as error:
            assert error.name in ("weights", "labels")  # noqa: PT017
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
    with pytest.raises(ParameterError, match=r"key .*simMatrix \(120 x 120\)"):
        load_similarity(mat)


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
    with pytest.raises(ParameterError, match=r"9\.15 and 9\.08 .*\('money', 'cash'\): from_ratings"):
        load_similarity(path)
    table = pd.read_csv(path, keep_default_na=False)
    with pytest.warns(UserWarning, match="item with itself"):  # tiger, tiger
        averaged = from_ratings(table, item1="Word 1", item2="Word 2", rating="Human (mean)", low=0, high=10)
    assert averaged.n_items == 437


def test_a_similarity_from_a_file_is_one_like_any_other():
    loaded = load_text(table_text(complete(), above=NAMES))
    assert as_similarity(loaded) is loaded
    assert not loaded.values.flags.writeable
