"""Bad input is refused before anything is done or written, by an error that names the argument and shows the value.

One table over everything public. A row is a function, its arguments, the type of the error, the argument it names and a
part of the value it shows. For every row: the arguments stay as they were, and no file is written.
"""

import copy
import inspect
import os

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import simdims
from simdims import (
    SRF,
    DimensionEncoder,
    Discovery,
    JointSRF,
    ParameterError,
    Similarity,
    SimilaritySet,
    _memory,
    align,
    as_similarity,
    bootstrap,
    calibrate,
    combined_test,
    compare_embeddings,
    datasets,
    detectable_dimensions,
    dimension_test,
    discover,
    fit_consensus,
    from_associations,
    from_comparisons,
    from_dissimilarity,
    from_features,
    from_ratings,
    from_triplets,
    label_dimensions,
    lineage,
    load_similarity,
    metrics,
    parallel_analysis,
    plan_study,
    plots,
    population_test,
    rsa_regression,
    rsa_test,
    scree_test,
    select_rank,
    simulate,
    split_half_reliability,
    weight_test,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

W = simulate.dirichlet(12, 3, random_state=0)
S = W @ W.T
S.flags.writeable = W.flags.writeable = False  # a write anywhere is an error at once
S_ONE = S
PEOPLE = SimilaritySet([S, S])
CROWD = SimilaritySet([S] * 6)
NAMES = [f"item {i}" for i in range(12)]
NAN, INF = float("nan"), float("inf")
ANSWERS = {"head": [0, 1, 2], "winner": [1, 2, 3], "loser": [2, 3, 0]}
TRIPLETS = np.array([np.random.RandomState(seed).permutation(12)[:3] for seed in range(40)])
PROPERTIES = pd.DataFrame(np.random.RandomState(0).rand(12, 2), columns=["size", "colour"])
RATINGS = pd.DataFrame({"a": ["cat", "dog", "car"], "b": ["dog", "car", "cat"], "rating": [1.0, 2.0, 3.0]})
WORDS = pd.DataFrame({"cue": ["cat", "dog"], "response": ["dog", "cat"], "count": [3, 2]})
LINKS = Similarity(sparse.csr_array(np.triu(S > 0.3, 1).astype(float)), absent="zero")
STUDY = pd.DataFrame({"snr": [0.1, 0.5], "power": [0.2, 0.9]})
COLUMNS = {"item1": "a", "item2": "b", "rating": "rating"}


def changed(matrix, place, value):
    """A symmetric matrix with one pair changed."""
    other = np.array(matrix, dtype=np.float64)
    other[place] = other[place[::-1]] = value
    return other


def asymmetric(value=0.9):
    other = S.copy()
    other[2, 7] = value
    return other


def without(item):
    """Similarities of which nothing is known about one item."""
    other = S.copy()
    other[item, :] = other[:, item] = NAN
    return other


def fitted():
    return SRF(3, random_state=0).fit(Similarity(S, labels=NAMES))


def transform(S):
    return fitted().transform(S)


def score(S):
    return fitted().score(S)


def fit(S=S, **parameters):
    return SRF(**parameters).fit(S)


def fit_jointly(S=None, **parameters):
    return JointSRF(**{"n_components": 2, **parameters}).fit(np.stack([S_ONE, S_ONE]) if S is None else S)


def weights_for(S):
    return JointSRF(2, alpha=0.0, shrinkage=0.1, random_state=0).fit([Similarity(S_ONE, NAMES)] * 2).weights_for(S)


def fit_encoder(X=W, y=W, **parameters):
    return DimensionEncoder(**parameters).fit(X, y)


def encode(X):
    return discovered().encode(X)


def with_encoder(X, encoder=None):
    return discovered().with_encoder(X, encoder)


def save_similarity(similarity, path):
    similarity.save(path)


def discovered():
    return discover(S, ranks=2, n_runs=2, random_state=0, progress=False)


def save_discovery(folder):
    discovered().save(folder)


def methods_text(tests):
    return discovered().methods_text(tests)


# Rows that call a method, and the public name that they stand for.
STANDS_FOR = {
    fit: "SRF", transform: "SRF", score: "SRF", save_similarity: "Similarity", Similarity.from_factors: "Similarity",
    fit_encoder: "DimensionEncoder", encode: "Discovery", with_encoder: "Discovery",
    fit_jointly: "JointSRF", weights_for: "JointSRF",
    Discovery.load: "Discovery", save_discovery: "Discovery", methods_text: "Discovery",
}  # fmt: skip

TABLE = [
    # A matrix of similarities.
    (as_similarity, {"x": S, "weights": pd.DataFrame(np.ones((12, 12))), "labels": 5}, TypeError, "labels", "5"),
    (as_similarity, {"x": np.ones((3, 4))}, ValueError, "values", "shape (3, 4)"),
    (as_similarity, {"x": np.ones(9)}, ValueError, "values", "(9,)"),
    (as_similarity, {"x": np.empty((0, 0))}, ValueError, "values", "(0, 0)"),
    (as_similarity, {"x": [[1.0], [1.0, 2.0]]}, ValueError, "values", "different lengths"),
    (as_similarity, {"x": "animals.csv"}, TypeError, "values", "str"),
    (as_similarity, {"x": S * 1j}, ValueError, "values", "dtype complex128"),
    (as_similarity, {"x": asymmetric(), "labels": NAMES}, ValueError, "values", "0.9 at ('item 2', 'item 7')"),
    (as_similarity, {"x": asymmetric()}, ValueError, "values", "0.9 at (2, 7)"),
    (as_similarity, {"x": changed(S, (1, 4), -0.25)}, ValueError, "values", "1 negative pair, the smallest -0.25"),
    (as_similarity, {"x": changed(S, (1, 4), INF)}, ValueError, "values", "inf at (1, 4)"),
    (as_similarity, {"x": without(5), "labels": NAMES}, ValueError, "values", "none for 1 item: 'item 5'"),
    (as_similarity, {"x": np.full((4, 4), NAN)}, ValueError, "values", "none"),
    (as_similarity, {"x": S, "labels": ["a", "b"] * 6}, ValueError, "labels", "'a', 'b' more than"),
    (as_similarity, {"x": S, "labels": ["a", "b"]}, ValueError, "labels", "2"),
    (as_similarity, {"x": S, "labels": "twelve names"}, TypeError, "labels", "'twelve names'"),
    (as_similarity, {"x": S, "labels": [None, *NAMES[1:]]}, ValueError, "labels", "none in place"),
    (as_similarity, {"x": S, "labels": [S, *NAMES[1:]]}, TypeError, "labels", "a ndarray"),
    (as_similarity, {"x": S, "labels": [pd.NA, *NAMES[1:]]}, ValueError, "labels", "none in place"),
    (as_similarity, {"x": S, "weights": -np.ones((12, 12))}, ValueError, "weights", "-1 at"),
    (as_similarity, {"x": S, "weights": np.ones((3, 3))}, ValueError, "weights", "(3, 3)"),
    (as_similarity, {"x": S, "weights": np.full((12, 12), NAN)}, ValueError, "weights", "nan at (0, 0)"),
    (as_similarity, {"x": S, "absent": "zero"}, ValueError, "absent", "'zero'"),
    (as_similarity, {"x": sparse.csr_array(S)}, ValueError, "absent", "None"),
    (as_similarity, {"x": sparse.csr_array(S), "absent": 1.5}, ValueError, "absent", "1.5"),
    (as_similarity, {"x": S, "symmetrize": "median"}, ValueError, "symmetrize", "'mean'"),
    (as_similarity, {"x": S, "symmetrize": S}, ValueError, "symmetrize", "an object of type ndarray"),
    (as_similarity, {"x": pd.DataFrame([["1", "x"], ["x", "1"]], index=["a", "b"], columns=["a", "b"])},
     ValueError, "values", "the text 'x' in row 'a', column 'b'"),
    (as_similarity, {"x": pd.DataFrame(S, index=NAMES, columns=NAMES[::-1])}, ValueError, "values", "('item"),
    (Similarity, {"values": pd.DataFrame(S)}, TypeError, "values", "DataFrame"),
    (Similarity, {"values": S, "labels": NAMES[:3]}, ValueError, "labels", "3"),
    (Similarity.from_factors, {"factors": -W}, ValueError, "factors", "36 negative"),
    (Similarity.from_factors, {"factors": W, "signed": "yes"}, TypeError, "signed", "'yes'"),
    (save_similarity, {"similarity": Similarity(S), "path": "S.docx"}, ValueError, "path", "'S.docx'"),
    (save_similarity, {"similarity": Similarity(S), "path": "no/S.npz"}, FileNotFoundError, "No such folder", "no'"),
    (save_similarity, {"similarity": LINKS, "path": "S.csv"}, ValueError, "absent", "'zero'"),
    (as_similarity, {"x": np.ones((2, 2, 2))}, ValueError, "values", "3 dimension(s)"),
    (as_similarity, {"x": pd.DataFrame(np.ones((3, 4)))}, ValueError, "values", "(3, 4)"),
    (as_similarity, {"x": []}, ValueError, "values", "(0,)"),
    (as_similarity, {"x": sparse.coo_array(np.ones((3, 4)))}, ValueError, "values", "(3, 4)"),
    (as_similarity, {"x": sparse.coo_array((0, 0)), "absent": "zero"}, ValueError, "values", "(0, 0)"),
    (as_similarity, {"x": sparse.eye_array(3, dtype=complex), "absent": "zero"}, ValueError, "values", "complex128"),
    (as_similarity, {"x": sparse.coo_array((3, 3)), "absent": "missing"},
     ValueError, "values", "everything is missing"),
    (as_similarity, {"x": None}, TypeError, "values", "NoneType"),
    (as_similarity, {"x": 3}, TypeError, "values", "int"),
    (as_similarity, {"x": {"a": 1}}, TypeError, "values", "dict"),
    (as_similarity, {"x": {1, 2}}, TypeError, "values", "set"),
    (as_similarity, {"x": np.zeros((2, 2), dtype="timedelta64[s]")}, TypeError, "values", "timedelta64"),
    (as_similarity, {"x": changed(S, (1, 4), -0.25), "negative": "ignore"}, ValueError, "negative", "'ignore'"),
    (as_similarity, {"x": [[1, -2], [-2, 1]], "negative": "shift"}, ValueError, "values", "-2"),
    (as_similarity, {"x": [[1, -1], [-1, 7]], "negative": "shift"}, ValueError, "values", "7"),
    (as_similarity, {"x": sparse.eye_array(3), "absent": "zero", "negative": "shift"}, ValueError, "negative", "0.5"),
    (as_similarity, {"x": Similarity(S), "negative": "clip"}, ValueError, "negative", ""),
    (as_similarity, {"x": Similarity(S), "labels": NAMES, "symmetrize": "mean"},
     ValueError, "labels and symmetrize", ""),
    (as_similarity, {"x": [["1", "1_000"], ["1_000", "1"]]}, ValueError, "values", "'1_000' in row 0, column 1"),
    (as_similarity, {"x": [[1.0, {}], [{}, 1.0]]}, TypeError, "values", "{} in row 0, column 1"),
    (as_similarity, {"x": pd.DataFrame(S, *[[*NAMES[:11], NAN]] * 2)}, ValueError, "the index of values", "place 11"),
    (as_similarity, {"x": np.eye(2), "labels": [1, "1"]}, ValueError, "labels", "'1' more than once"),
    (as_similarity, {"x": S, "copy": "no"}, TypeError, "copy", "'no'"),
    (as_similarity, {"x": S, "low": NAN}, ValueError, "low", "nan"),
    (as_similarity, {"x": S, "labels": []}, ValueError, "labels", "0"),
    (as_similarity, {"x": S, "labels": set(NAMES)}, TypeError, "labels", "{'item"),
    (as_similarity, {"x": S, "labels": 4}, TypeError, "labels", "4"),
    (as_similarity, {"x": S, "weights": np.triu(np.ones((12, 12)))}, ValueError, "weights", "66 pairs"),
    (as_similarity, {"x": S, "weights": np.triu(np.ones((12, 12))), "symmetrize": "max"},
     ValueError, "weights", "66 pairs"),
    (as_similarity, {"x": S, "weights": np.full((12, 12), INF)}, ValueError, "weights", "inf at (0, 0)"),
    (as_similarity, {"x": S, "weights": np.ones(4)}, ValueError, "weights", "1 dimension(s)"),
    (as_similarity, {"x": S, "weights": sparse.eye_array(12)}, ValueError, "weights", "dia_array"),
    (as_similarity, {"x": LINKS.values, "weights": S, "absent": "zero"}, ValueError, "weights", "ndarray"),
    (as_similarity, {"x": S, "weights": pd.DataFrame(S, NAMES, NAMES)}, ValueError, "weights", "a labelled DataFrame"),
    (as_similarity, {"x": LINKS.values, "absent": 0}, ValueError, "absent", "0"),
    (as_similarity, {"x": LINKS.values, "absent": 1.0}, ValueError, "absent", "1.0"),
    (as_similarity, {"x": LINKS.values, "absent": True}, ValueError, "absent", "True"),
    (as_similarity, {"x": LINKS.values, "absent": -0.5}, ValueError, "absent", "-0.5"),
    (as_similarity, {"x": LINKS.values, "absent": NAN}, ValueError, "absent", "nan"),
    (as_similarity, {"x": LINKS.values, "absent": "zeros"}, ValueError, "absent", "'zeros'"),
    (as_similarity, {"x": LINKS.values, "absent": [0.5]}, ValueError, "absent", "[0.5]"),
    (Similarity, {"values": S, "signed": True}, ValueError, "signed", "True"),
    (Similarity.from_factors, {"factors": np.ones(3)}, ValueError, "factors", "(3,)"),
    (Similarity.from_factors, {"factors": [["a"]]}, TypeError, "factors", "<U1"),
    (Similarity.from_factors, {"factors": [[1.0], [NAN]]}, ValueError, "factors", "row 1"),
    # Files.
    (load_similarity, {"path": "nowhere.csv"}, FileNotFoundError, "No such file", "nowhere.csv"),
    (load_similarity, {"path": "."}, ValueError, "'.'", "a folder"),
    (load_similarity, {"path": 3}, TypeError, "path", "int"),
    (load_similarity, {"path": "a\0b.csv"}, ValueError, "path", "'a\\x00b.csv'"),
    (load_similarity, {"path": "x" * 300 + ".csv"}, (ValueError, FileNotFoundError), "path", "xxx"),
    (load_similarity, {"path": "empty.csv"}, ValueError, "'empty.csv'", "0 bytes"),
    (load_similarity, {"path": "table.docx"}, ValueError, "Unsupported file type: 'table.docx'", "'.docx'"),
    (load_similarity, {"path": "text.csv"},
     ValueError, "text.csv:", "the text 'much' in row 2 ('cat'), column 3 ('dog')"),
    (load_similarity, {"path": "pickle.npy"}, ValueError, "pickle.npy:", ""),
    (load_similarity, {"path": "text.csv", "form": "wide"}, ValueError, "form", "'wide'"),
    (load_similarity, {"path": "text.csv", "key": "S"}, ValueError, "key", "'S'"),
    # Features.
    (from_features, {"X": np.full((4, 2), NAN)}, ValueError, "X", "row 0, column 0 and 3 other"),
    (from_features, {"X": np.ones(4)}, ValueError, "X", "shape (4,)"),
    (from_features, {"X": [["a", "b"]]}, TypeError, "X", "dtype <U1"),
    (from_features, {"X": sparse.csr_array(W)}, TypeError, "X", "a sparse matrix"),
    (from_features, {"X": W, "kernel": "gauss"}, ValueError, "kernel", "'gauss'"),
    (from_features, {"X": W, "kernel": W}, ValueError, "kernel", "an object of type ndarray"),
    (from_features, {"X": W, "kernel": "rbf", "bandwidth": -1}, ValueError, "bandwidth", "-1"),
    (from_features, {"X": W * 1e200}, ValueError, "X", "e+199"),
    (from_features, {"X": W * 1e-200}, ValueError, "X", "e-201"),
    (from_features, {"X": np.array([[1.7e308], [1.7e308], [-1.7e308]])}, ValueError, "X", "1.7e+308"),
    (from_features, {"X": np.ones((4, 2)), "kernel": "rbf"}, ValueError, "X", "median distance of 0"),
    (from_features, {"X": pd.DataFrame([[1.0], [INF]], index=["cat", "dog"])}, ValueError, "X", "in row 'dog', column"),
    (from_features, {"X": np.ma.masked_array(np.ones((2, 2)), [[0, 1], [0, 0]])}, ValueError, "X", "row 0"),
    (from_features, {"X": pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})}, ValueError, "X", "row 1"),
    (from_features, {"X": pd.DataFrame(W, index=[None, *NAMES[1:]])}, ValueError, "labels", "place 0"),
    (from_features, {"X": pd.DataFrame({"name": ["a", "b"], "x": [1.0, 2.0]})}, TypeError, "X", "column 'name'"),
    (from_features, {"X": pd.DataFrame(W, index=NAMES), "labels": NAMES[::-1]}, ValueError, "labels", "'item 11'"),
    (from_features, {"X": np.ones((3, 0))}, ValueError, "X", "(3, 0)"),
    (from_features, {"X": W, "bandwidth": 0.7}, ValueError, "bandwidth", "0.7 with kernel='linear'"),
    (from_features, {"X": W, "implicit": "no"}, TypeError, "implicit", "'no'"),
    (from_features, {"X": W, "random_state": "seed"}, ValueError, "random_state", "'seed'"),
    (from_features, {"X": W, "negative": "shift"}, ValueError, "negative", "'shift'"),
    (from_features, {"X": np.zeros((3, 2)), "kernel": "cosine"}, ValueError, "X", "row 0"),
    (from_features, {"X": W - 0.5, "kernel": "linear"}, ValueError, "X", "negative pairs"),
    (from_features, {"X": W, "kernel": lambda a, b: a}, ValueError, "kernel", "(12, 3)"),
    (from_features, {"X": W, "kernel": lambda a, b: 1j * a @ b.T}, ValueError, "kernel", "complex128"),
    (from_features, {"X": W, "implicit": True, "kernel": "cosine"}, ValueError, "implicit", "'cosine'"),
    (from_features, {"X": W - 0.5, "implicit": True, "kernel": "linear"}, ValueError, "implicit", "negative values"),
    (from_features, {"X": W - 0.5, "n_landmarks": 5}, ValueError, "n_landmarks", "implicit=False"),
    (from_features, {"X": W, "implicit": True, "n_landmarks": 5}, ValueError, "n_landmarks", "kernel='linear'"),
    (from_features, {"X": W - 0.5, "implicit": True, "n_landmarks": 0}, ValueError, "n_landmarks", "0"),
    (from_features, {"X": W - 0.5, "implicit": True, "n_landmarks": 5.0}, TypeError, "n_landmarks", "5.0"),
    (from_features, {"X": np.ones((3, 2)), "kernel": "rbf", "implicit": True},
     ValueError, "X", "a median distance of 0"),
    # Triplets.
    (from_triplets, {"triplets": [[0, 1, 1]]}, ValueError, "triplets", "[0, 1, 1] in row 0"),
    (from_triplets, {"triplets": [[0, 1, 9]], "n_items": 4}, ValueError, "triplets", "9 in row 0"),
    (from_triplets, {"triplets": [[0, 1, -2]]}, ValueError, "triplets", "-2 in row"),
    (from_triplets, {"triplets": [[0, 1, 2.5]]}, ValueError, "triplets", "2.5 in row 0, column 2"),
    (from_triplets, {"triplets": [[0, 1]]}, ValueError, "triplets", "shape (1, 2)"),
    (from_triplets, {"triplets": []}, ValueError, "triplets", "none"),
    (from_triplets, {"triplets": [[0, 1, {}]]}, TypeError, "triplets", ""),
    (from_triplets, {"triplets": TRIPLETS, "odd": 5}, ValueError, "odd", "5"),
    (from_triplets, {"triplets": TRIPLETS, "smoothing": -1}, ValueError, "smoothing", "-1"),
    (from_triplets, {"triplets": TRIPLETS, "weights": "all"}, ValueError, "weights", "'all'"),
    (from_triplets, {"triplets": np.zeros((0, 3), dtype=int)}, ValueError, "triplets", "none"),
    (from_triplets, {"triplets": pd.DataFrame({"a": [], "b": [], "c": []})}, ValueError, "triplets", "none"),
    (from_triplets, {"triplets": [0, 1, 2]}, ValueError, "triplets", "(3,)"),
    (from_triplets, {"triplets": pd.DataFrame(np.zeros((2, 5)))}, ValueError, "triplets", "the columns 0, 1, 2, 3, 4"),
    (from_triplets, {"triplets": [[0, 1, 2], [1, 2]]}, ValueError, "triplets", "[1, 2] in row 1"),
    (from_triplets, {"triplets": [[0, 1, 2], 5]}, ValueError, "triplets", "5 in row 1"),
    (from_triplets, {"triplets": [[0, 1, [2]], [0, 1, 2]]}, ValueError, "triplets", ""),
    (from_triplets, {"triplets": [[1, 1, 1], [0, 1, 2], [0, 3, 3]]},
     ValueError, "triplets", "[1, 1, 1] in row 0 (2 such rows)"),
    (from_triplets, {"triplets": [[0, 1, 2], [2, -4, 1]]}, ValueError, "triplets", "-4 in row 1, column 1"),
    (from_triplets, {"triplets": [[0, 1, 2], [2, 1, NAN]]}, ValueError, "triplets", "nan in row 1, column 2"),
    (from_triplets, {"triplets": [[0, 1, 2], [INF, 1, 0]]}, ValueError, "triplets", "inf in row 1, column 0"),
    (from_triplets, {"triplets": [[0, 1, 2], [1e300, 1, 0]]}, ValueError, "triplets", "1e+300 in row 1, column 0"),
    (from_triplets, {"triplets": [[0, 1, 2], [2**64, 1, 0]]}, ValueError, "triplets", "18446744073709551616 in row 1"),
    (from_triplets, {"triplets": [[0, 1, 2], [2, None, 0]]}, ValueError, "triplets", "None in row 1, column 1"),
    (from_triplets, {"triplets": [["a", "b", "c"], ["a", NAN, "b"]]}, ValueError, "triplets", "nan in row 1, column 1"),
    (from_triplets, {"triplets": [["a", "b", "c"], ["a", " ", "b"]]}, ValueError, "Column", "' ' in row 1"),
    (from_triplets, {"triplets": [["a", "b", "c"], ["a", "b", "a"]]},
     ValueError, "triplets", "['a', 'b', 'a'] in row 1"),
    (from_triplets, {"triplets": [[0, 1, 2], [2, "x", 0]]}, ValueError, "triplets", "'x' in row 1, column 1"),
    (from_triplets, {"triplets": [["a", "b", "c"], [7, "a", "b"]]}, ValueError, "triplets", "7 in row 1, column 0"),
    (from_triplets, {"triplets": np.ma.masked_array([[0, 1, 2], [1, 2, 3]], mask=[[0, 0, 0], [0, 1, 0]])},
     ValueError, "triplets", "None in row 1, column 1"),
    (from_triplets, {"triplets": pd.DataFrame([[0, 1, 2], [0, 5, 5]], index=["t1", "t2"])},
     ValueError, "triplets", "row 1 (index 't2')"),
    (from_triplets, {"triplets": pd.DataFrame([[0, 1, 2], [0, 5, 5]], index=[7, 8])},
     ValueError, "triplets", "row 1 (index 8)"),
    (from_triplets, {"triplets": pd.DataFrame([[0, 1, 2], [0, None, 5]], dtype="Int64")},
     ValueError, "triplets", "<NA> in row 1, column 1"),
    (from_triplets, {"triplets": None}, TypeError, "triplets", "NoneType"),
    (from_triplets, {"triplets": 3}, TypeError, "triplets", "int"),
    (from_triplets, {"triplets": "0 1 2"}, TypeError, "triplets", "str"),
    (from_triplets, {"triplets": {"a": 1}}, TypeError, "triplets", "dict"),
    (from_triplets, {"triplets": np.array([[b"a", b"b", b"c"]])}, TypeError, "triplets", "bytes"),
    (from_triplets, {"triplets": np.ones((1, 3), dtype=bool)}, TypeError, "triplets", "bool"),
    (from_triplets, {"triplets": [[1j, 2j, 3j]]}, TypeError, "triplets", "complex"),
    (from_triplets, {"triplets": TRIPLETS, "odd": "odd"}, ValueError, "odd", "'odd'"),
    (from_triplets, {"triplets": TRIPLETS, "odd": True}, ValueError, "odd", "True"),
    (from_triplets, {"triplets": TRIPLETS, "odd": 1.0}, ValueError, "odd", "1.0"),
    (from_triplets, {"triplets": TRIPLETS, "odd": None}, ValueError, "odd", "None"),
    (from_triplets, {"triplets": pd.DataFrame(TRIPLETS, columns=["a", "b", "c"]), "odd": "odd"},
     ValueError, "odd", "'a', 'b', 'c'"),
    (from_triplets, {"triplets": TRIPLETS, "smoothing": NAN}, ValueError, "smoothing", "nan"),
    (from_triplets, {"triplets": TRIPLETS, "smoothing": INF}, ValueError, "smoothing", "inf"),
    (from_triplets, {"triplets": TRIPLETS, "smoothing": "1"}, TypeError, "smoothing", "'1'"),
    (from_triplets, {"triplets": TRIPLETS, "weights": True}, ValueError, "weights", "True"),
    (from_triplets, {"triplets": TRIPLETS, "weights": S}, ValueError, "weights", "ndarray"),
    (from_triplets, {"triplets": TRIPLETS, "n_items": 2}, ValueError, "n_items", "2"),
    (from_triplets, {"triplets": TRIPLETS, "n_items": 4.0}, TypeError, "n_items", "4.0"),
    (from_triplets, {"triplets": TRIPLETS, "n_items": 11}, ValueError, "triplets", "11 in row"),
    (from_triplets, {"triplets": TRIPLETS, "labels": NAMES[:11]}, ValueError, "triplets", "11 in row"),
    (from_triplets, {"triplets": TRIPLETS, "labels": NAMES, "n_items": 13}, ValueError, "labels", "12"),
    (from_triplets, {"triplets": TRIPLETS, "labels": "twelve names"}, TypeError, "labels", "'twelve names'"),
    (from_triplets, {"triplets": [["cat", "dog", "car"]], "labels": ["cat", "dog", "bus"]},
     ValueError, "triplets", "'car' in row 0, column 2"),
    (from_triplets, {"triplets": [["cat", "dog", "car"]], "n_items": 4}, ValueError, "n_items", "4"),
    (from_comparisons, {"table": [[0, 1, 2]]}, TypeError, "table", "list"),
    (from_comparisons, {"table": "answers.csv"}, TypeError, "table", "str"),
    (from_comparisons, {"table": {"head": [], "winner": [], "loser": []}}, ValueError, "table", "none"),
    (from_comparisons, {"table": ANSWERS, "head": "anchor"}, ValueError, "head", "'anchor'"),
    (from_comparisons, {"table": ANSWERS, "winner": "head"}, ValueError, "winner", "'head' for both"),
    (from_comparisons, {"table": ANSWERS, "by": "who"}, ValueError, "by", "'who'"),
    (from_comparisons, {"table": ANSWERS, "by": "loser"}, ValueError, "by", "'loser' for both"),
    (from_comparisons, {"table": ANSWERS, "by": "loser", "diagonal": "one"}, ValueError, "diagonal", "'one'"),
    (from_comparisons, {"table": ANSWERS, "diagonal": "zero"}, ValueError, "diagonal", "'zero'"),
    (from_comparisons, {"table": ANSWERS, "smoothing": -1}, ValueError, "smoothing", "-1"),
    (from_comparisons, {"table": ANSWERS, "weights": "all"}, ValueError, "weights", "'all'"),
    (from_comparisons, {"table": ANSWERS, "n_items": 2}, ValueError, "n_items", "2"),
    (from_comparisons, {"table": ANSWERS, "labels": ["a", "b"]}, ValueError, "table", "in row"),
    (from_comparisons, {"table": {"head": [0, 1], "winner": [1, 1], "loser": [2, 3]}},
     ValueError, "table", "[1, 1, 3] in row 1"),
    (from_comparisons, {"table": {"head": [0, 1], "winner": [1, NAN], "loser": [2, 3]}},
     ValueError, "table", "nan in row 1, column 'winner'"),
    (from_comparisons, {"table": {"head": ["a", "b"], "winner": ["b", None], "loser": ["c", "a"]}},
     ValueError, "table", "in row 1, column 'winner'"),
    (from_comparisons, {"table": {"head": [0, 1], "winner": [1, -1], "loser": [2, 3]}},
     ValueError, "table", "-1 in row 1, column 'winner'"),
    (from_comparisons, {"table": {"head": ["a", "b"], "winner": ["b", 3], "loser": ["c", "a"]}},
     ValueError, "table", "3 in row 1, column 'winner'"),
    # Ratings.
    (from_ratings, {"table": RATINGS, **COLUMNS, "item1": "x"}, ValueError, "item1", "'x'"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "item1": S}, ValueError, "item1", "an object of type ndarray"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "item2": "a"}, ValueError, "item2", "'a'"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "low": 2}, ValueError, "Column 'rating'", "1 in"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "low": 7, "high": 1}, ValueError, "low", "low = 7 and high = 1"),
    (from_ratings, {"table": RATINGS[:0], **COLUMNS}, ValueError, "table", "none"),
    (from_ratings, {"table": RATINGS.assign(rating=["1", "much", "3"]), **COLUMNS},
     ValueError, "Column 'rating'", "the text 'much' in row 1 (1 of 3"),
    (from_ratings, {"table": RATINGS.assign(rating=[-1e308, 0.0, 1e308]), **COLUMNS},
     ValueError, "high - low", "low = -1e+308 and high = 1e+308 (found in the ratings)"),
    (from_ratings, {"table": RATINGS.assign(a=[[1], "x", "y"]), **COLUMNS},
     TypeError, "Column 'a'", "cells that hold lists or similar"),
    (from_ratings, {"table": RATINGS.assign(rating=[1, "100%", 3]), **COLUMNS},
     ValueError, "Column 'rating'", "'100%' in row 1"),
    (from_ratings, {"table": RATINGS.assign(rating=[1, "1,234", 3]), **COLUMNS},
     ValueError, "Column 'rating'", "'1,234' in row 1"),
    (from_ratings, {"table": RATINGS.assign(rating=[1, {}, 3]), **COLUMNS},
     ValueError, "Column 'rating'", "{} in row 1"),
    (from_ratings, {"table": RATINGS.assign(rating=pd.to_datetime(["2020", "2021", "2022"])), **COLUMNS},
     ValueError, "Column 'rating'", "Timestamp"),
    (from_ratings, {"table": RATINGS.assign(rating=[1, INF, 3]), **COLUMNS},
     ValueError, "Column 'rating'", "inf in row 1"),
    (from_ratings, {"table": RATINGS.assign(rating=NAN), **COLUMNS}, ValueError, "table", "none in 3 rows"),
    (from_ratings, {"table": RATINGS.assign(a=["a", None, "c"]), **COLUMNS},
     ValueError, "Column 'a'", "a missing cell"),
    (from_ratings, {"table": RATINGS.assign(b=["b", "c", " "]), **COLUMNS}, ValueError, "Column 'b'", "' ' in row 2"),
    (from_ratings, {"table": RATINGS.assign(b=RATINGS["a"]), **COLUMNS}, ValueError, "table", "none in 3 rows"),
    (from_ratings, {"table": {**RATINGS.to_dict("list"), "a": ["x", "y"]}, **COLUMNS}, ValueError, "table", ""),
    (from_ratings, {"table": pd.DataFrame([["a", "b", 1, 2]], columns=["a", "b", "rating", "rating"]), **COLUMNS},
     ValueError, "rating", "2 columns"),
    (from_ratings, {"table": RATINGS.assign(who=["x", None, "y"]).set_axis([4, 5, 6]), **COLUMNS, "participant": "who"},
     ValueError, "Column 'who'", "row 1 (index 5)"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "participant": "who"}, ValueError, "participant", "'who'"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "participant": "a"}, ValueError, "participant", "'a'"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "item1": ["a"]}, ValueError, "item1", "['a']"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "low": NAN}, ValueError, "low", "nan"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "high": "7"}, TypeError, "high", "'7'"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "high": 1}, ValueError, "low", "(found in the ratings)"),
    (from_ratings, {"table": RATINGS, **COLUMNS, "weights": "count"}, ValueError, "weights", "'count'"),
    (from_ratings, {"table": None, **COLUMNS}, TypeError, "table", "NoneType"),
    (from_ratings, {"table": "file.csv", **COLUMNS}, TypeError, "table", "str"),
    (from_ratings, {"table": [1, 2], **COLUMNS}, TypeError, "table", "list"),
    (from_ratings, {"table": np.ones((2, 3)), **COLUMNS}, TypeError, "table", "ndarray"),
    # Associations.
    (from_associations, {"table": WORDS, "cue": "word"}, ValueError, "cue", "'word'; the columns are"),
    (from_associations, {"table": WORDS.assign(count=-1)}, ValueError, "Column 'count'", "-1 in row 0"),
    (from_associations, {"table": WORDS, "absent": 7}, ValueError, "absent", "7"),
    (from_associations, {"table": WORDS[:1]}, ValueError, "table", "none among 2 words"),
    (from_associations, {"table": S}, TypeError, "table", "ndarray"),
    (from_associations, {"table": WORDS.assign(cue=["a", None])}, ValueError, "Column 'cue'", "a missing cell"),
    (from_associations, {"table": WORDS.assign(response=["b", ""])}, ValueError, "Column 'response'", "'' in row 1"),
    (from_associations, {"table": WORDS.assign(count=[1, NAN])},
     ValueError, "Column 'count'", "a missing cell in row 1"),
    (from_associations, {"table": WORDS.assign(count=[1, INF])}, ValueError, "Column 'count'", "inf in row 1"),
    (from_associations, {"table": WORDS.assign(count=[1, "many"])}, ValueError, "Column 'count'", "'many' in row 1"),
    (from_associations, {"table": WORDS.assign(count=0)}, ValueError, "table", "none among 2 words"),
    (from_associations, {"table": WORDS.assign(response=WORDS["cue"])}, ValueError, "table", "none among 2 words"),
    (from_associations, {"table": WORDS.assign(count=1e160)}, ValueError, "counts", "2e+160"),
    (from_associations, {"table": WORDS[:0]}, ValueError, "table", "none"),
    (from_associations, {"table": WORDS, "count": "n"}, ValueError, "count", "'n'"),
    (from_associations, {"table": WORDS, "cue": None}, ValueError, "cue", "None"),
    (from_associations, {"table": WORDS, "response": "cue"}, ValueError, "response", "'cue'"),
    (from_associations, {"table": WORDS, "absent": None}, ValueError, "absent", "None"),
    (from_associations, {"table": [["cat", "dog", 3]]}, TypeError, "table", "list"),
    # Dissimilarities.
    (from_dissimilarity, {"D": S}, ValueError, "D", "0.945599 at (0, 0)"),
    (from_dissimilarity, {"D": np.zeros((3, 3))}, ValueError, "D", "zeros only"),
    (from_dissimilarity, {"D": [1.0, 2.0]}, ValueError, "D", "shape (2,)"),
    (from_dissimilarity, {"D": [1.0, -2.0, 3.0]}, ValueError, "D", "-2 at"),
    (from_dissimilarity, {"D": [1.0, 1.5, 0.5], "method": "correlation"},
     ValueError, "D", "1 pair of negative similarity,"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "method": "min"}, ValueError, "method", "'min'"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "negative": "yes"}, ValueError, "negative", "'yes'"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "sigma": 1}, ValueError, "sigma", "1 with method='max'"),
    (from_dissimilarity, {"D": np.ones(4)}, ValueError, "D", "(4,)"),
    (from_dissimilarity, {"D": np.ones((2, 4))}, ValueError, "D", "(2, 4)"),
    (from_dissimilarity, {"D": np.ones((2, 3, 4))}, ValueError, "D[0]", "(3, 4)"),
    (from_dissimilarity, {"D": np.ones((0, 3, 3))}, ValueError, "D", "(0, 3, 3)"),
    (from_dissimilarity, {"D": np.ones((2, 2, 2, 2))}, ValueError, "D", "(2, 2, 2, 2)"),
    (from_dissimilarity, {"D": np.ones((10, 4))}, ValueError, "D", "(10, 4)"),
    (from_dissimilarity, {"D": []}, ValueError, "D", "(0,)"),
    (from_dissimilarity, {"D": pd.DataFrame(np.ones((2, 3)))}, ValueError, "D", "(2, 3)"),
    (from_dissimilarity, {"D": [[1, 2, 3], [1, 2]]}, ValueError, "D", "different lengths"),
    (from_dissimilarity, {"D": [np.zeros((3, 3)), np.zeros((4, 4))]}, ValueError, "D[1]", "(4, 4)"),
    (from_dissimilarity, {"D": [[0, 1], [2, 0]]}, ValueError, "D", "1 at (0, 1) and 2 at (1, 0)"),
    (from_dissimilarity, {"D": [np.zeros((2, 2)), np.array([[0, 9], [1, 0]])], "labels": ["cat", "dog"]},
     ValueError, "D[1]", "9 at ('cat', 'dog')"),
    (from_dissimilarity, {"D": [1, INF, 3]}, ValueError, "D", "inf at (0, 2)"),
    (from_dissimilarity, {"D": np.full((3, 3), NAN)}, ValueError, "D", "none"),
    (from_dissimilarity, {"D": [NAN]}, ValueError, "D", "none"),
    (from_dissimilarity, {"D": [[0]]}, ValueError, "D", "none"),
    (from_dissimilarity, {"D": [1, "x", 3]}, ValueError, "D", "'x' in row 0, column 1"),
    (from_dissimilarity, {"D": [[0, "x"], ["x", 0]]}, ValueError, "D", "'x' in row 0, column 1"),
    (from_dissimilarity, {"D": np.zeros((2, 2)) + 1j}, ValueError, "D", "complex128"),
    (from_dissimilarity, {"D": None}, TypeError, "D", "NoneType"),
    (from_dissimilarity, {"D": 3}, TypeError, "D", "int"),
    (from_dissimilarity, {"D": {"a": 1}}, TypeError, "D", "dict"),
    (from_dissimilarity, {"D": sparse.csr_array(S)}, TypeError, "D", "csr_array"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "method": None}, ValueError, "method", "None"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "method": "gaussian", "sigma": 0}, ValueError, "sigma", "0"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "method": "gaussian", "sigma": NAN}, ValueError, "sigma", "nan"),
    (from_dissimilarity, {"D": [0, 0, 1.0], "method": "gaussian"}, ValueError, "sigma", "None"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "negative": "clip"},
     ValueError, "negative", "'clip' with method='max'"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "method": "correlation", "negative": "clip"}, ValueError, "D", "3"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "clip": True, "negative": "shift"}, ValueError, "negative", "'shift'"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "weights": [1]}, ValueError, "weights", "[1]"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "labels": ["a", "b"]}, ValueError, "labels", "2"),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "key": "RDM"}, ValueError, "key", "'RDM'"),
    (from_dissimilarity, {"D": "nowhere.mat"}, FileNotFoundError, "No such file", "nowhere.mat"),
    # Fits.
    (fit, {"n_components": 0}, ValueError, "n_components", "0"),
    (fit, {"n_components": 13}, ValueError, "n_components", "13"),
    (fit, {"n_components": 2.0}, TypeError, "n_components", "2.0"),
    (fit, {"solver": "newton"}, ValueError, "solver", "'newton'"),
    (fit, {"solver": ["bcd"]}, ValueError, "solver", "['bcd']"),
    (fit, {"tol": -1.0}, ValueError, "tol", "-1.0"),
    (fit, {"tol": 10**400}, ValueError, "tol", "1000"),
    (fit, {"max_iter": "many"}, TypeError, "max_iter", "'many'"),
    (fit, {"rho": 2.0}, ValueError, "rho", "2.0"),
    (fit, {"bounds": (1, 0), "n_components": 2}, ValueError, "bounds", "(1, 0)"),
    (fit, {"init": np.ones((2, 2)), "n_components": 2}, ValueError, "init", "(2, 2)"),
    (fit, {"init": [["a"]], "n_components": 2}, TypeError, "init", "list"),
    (fit, {"verbose": "yes"}, TypeError, "verbose", "'yes'"),
    (fit, {"verbose": -1}, ValueError, "verbose", "-1"),
    (fit, {"device": "tpu"}, ValueError, "device", "'tpu'"),
    (fit, {"S": asymmetric(), "n_components": 2}, ValueError, "values", "0.9 at (2, 7)"),
    (transform, {"S": -S}, ValueError, "S", "144"),
    (transform, {"S": [["a"]]}, ValueError, "S", ""),
    (transform, {"S": S[:, :3]}, ValueError, "X", "3 features"),
    (transform, {"S": np.full((1, 12), NAN)}, ValueError, "S", "row 0"),
    (score, {"S": S[:3, :3]}, ValueError, "X", "3 features"),
    (score, {"S": [[1.0], [1.0, 2.0]]}, ValueError, "S", ""),
    (score, {"S": pd.DataFrame(S, index=["a"] * 12, columns=["a"] * 12)}, ValueError, "S", ""),
    # Many fits.
    (detectable_dimensions, {"S": S, "level": 0}, ValueError, "level", "0"),
    (detectable_dimensions, {"S": S, "n_flips": 10}, ValueError, "n_flips", "10"),
    (detectable_dimensions, {"S": S, "n_flips": 19, "level": 0.01}, ValueError, "n_flips", "19"),
    (detectable_dimensions, {"S": S, "max_rank": 0}, ValueError, "max_rank", "0"),
    (detectable_dimensions, {"S": S, "start": 2.5}, TypeError, "start", "2.5"),
    (detectable_dimensions, {"S": np.eye(2)}, ValueError, "S", "2"),
    (simulate.detectable_rank, {"W": W}, ValueError, "sigma", ""),
    (simulate.detectable_rank, {"W": W, "snr": 0.5, "sigma": 0.1}, ValueError, "sigma", "0.1"),
    (simulate.detectable_rank, {"W": W, "snr": 2}, ValueError, "snr", "2"),
    (simulate.detectable_rank, {"W": W, "sigma": -1}, ValueError, "sigma", "-1"),
    (simulate.detectable_rank, {"W": W, "snr": 0.5, "observed": 0}, ValueError, "observed", "0"),
    (simulate.detectable_rank, {"W": -W, "snr": 0.5}, ValueError, "W", "-"),
    (simulate.detectable_rank, {"W": np.ones((5, 1)), "snr": 0.5}, ValueError, "W", ""),
    (calibrate, {"S": S, "n_bootstraps": 0}, ValueError, "n_bootstraps", "0"),
    (calibrate, {"S": S, "tolerance": 2}, ValueError, "tolerance", "2"),
    (calibrate, {"S": S, "n_eigenpairs": 40}, ValueError, "n_eigenpairs", "40"),
    (calibrate, {"S": S, "grid": [0.5, 0.2]}, ValueError, "grid", "[0.5, 0.2]"),
    (calibrate, {"S": S * 1e200}, ValueError, "values", "e+"),
    (calibrate, {"S": S[:2, :2]}, ValueError, "S", "2"),
    (select_rank, {"S": S, "ranks": [0, 2]}, ValueError, "ranks", "0"),
    (select_rank, {"S": S, "ranks": [2.5]}, TypeError, "ranks", "2.5"),
    (select_rank, {"S": S, "sampling": 1.5}, ValueError, "sampling", "1.5"),
    (select_rank, {"S": S, "n_folds": 1}, ValueError, "n_folds", "1"),
    (select_rank, {"S": S, "protocol": ["paper"]}, ValueError, "protocol", "['paper']"),
    (select_rank, {"S": S, "estimator": "fast"}, TypeError, "estimator", "'fast'"),
    (select_rank, {"S": S, "checkpoint": 3}, TypeError, "checkpoint", "3"),
    (select_rank, {"S": S, "random_state": "seed"}, ValueError, "random_state", "'seed'"),
    (select_rank, {"S": S, "n_jobs": 0}, ValueError, "n_jobs", "0"),
    (scree_test, {"S": np.ones((1, 1))}, ValueError, "S", "1"),
    (scree_test, {"S": S * 1e-200}, ValueError, "values", "e-"),
    (parallel_analysis, {"S": S, "quantile": 1}, ValueError, "quantile", "1"),
    (parallel_analysis, {"S": S, "n_samples": 0}, ValueError, "n_samples", "0"),
    (fit_consensus, {"S": S, "n_components": 2, "n_runs": 1}, ValueError, "n_runs", "1"),
    (fit_consensus, {"S": S, "n_components": 20}, ValueError, "n_components", "20"),
    (fit_consensus, {"S": S, "n_components": 2, "progress": "bar"}, TypeError, "progress", "'bar'"),
    (align, {"W": W, "reference": W[:3]}, ValueError, "reference", "3"),
    (align, {"W": W, "reference": W, "method": "angle"}, ValueError, "method", "'angle'"),
    (split_half_reliability, {"embeddings": W}, ValueError, "embeddings", "(12, 3)"),
    (split_half_reliability, {"embeddings": [W, W], "n_splits": 0}, ValueError, "n_splits", "0"),
    (discover, {"S": S, "ranks": 12}, ValueError, "ranks", "12"),
    (discover, {"S": asymmetric()}, ValueError, "values", "0.9 at (2, 7)"),
    (discover, {"S": S, "device": "tpu"}, ValueError, "device", "'tpu'"),
    (discover, {"S": S, "checkpoint": "thesis"}, ValueError, "checkpoint", "'thesis'"),
    (discover, {"S": S, "checkpoint": "empty.csv"}, ValueError, "checkpoint", "'empty.csv', which is"),
    (Discovery.load, {"folder": "nowhere"}, FileNotFoundError, "No such folder", "'nowhere'"),
    (Discovery.load, {"folder": "thesis"}, ValueError, "folder", "'thesis'"),
    (Discovery.load, {"folder": 3}, TypeError, "folder", "3"),
    (save_discovery, {"folder": "thesis"}, ValueError, "folder", "thesis'"),
    (save_discovery, {"folder": "empty.csv"}, ValueError, "folder", "empty.csv'"),
    (methods_text, {"tests": PROPERTIES}, TypeError, "tests", "an object of type DataFrame"),
    (Similarity, {"values": S, "info": 3}, TypeError, "info", "3"),
    (Similarity.from_factors, {"factors": W, "info": "x"}, TypeError, "info", "'x'"),
    # Tests of hypotheses.
    (dimension_test, {"embedding": W, "hypotheses": PROPERTIES[:5]}, ValueError, "hypotheses", "5 rows"),
    (dimension_test, {"embedding": W, "hypotheses": np.ones((12, 1))}, ValueError, "hypotheses", "'hypothesis1'"),
    (dimension_test, {"embedding": W[:, :1], "hypotheses": PROPERTIES, "matching": "joint"},
     ValueError, "hypotheses", "2"),
    (dimension_test, {"embedding": W, "hypotheses": PROPERTIES, "alternative": "less"},
     ValueError, "alternative", "'less'"),
    (rsa_test, {"S": S, "hypotheses": PROPERTIES, "method": "kendall"}, ValueError, "method", "'kendall'"),
    (rsa_test, {"S": S, "hypotheses": PROPERTIES, "n_permutations": 0}, ValueError, "n_permutations", "0"),
    (rsa_test, {"S": S, "hypotheses": [np.ones((3, 3))]}, ValueError, "hypotheses", "(3, 3)"),
    (rsa_test, {"S": S, "hypotheses": S}, ValueError, "hypotheses", "(12, 12)"),
    (combined_test, {"S": S, "embedding": W, "hypotheses": PROPERTIES, "weighting": W},
     ValueError, "weighting", "an object of type ndarray"),
    (combined_test, {"S": S, "embedding": W[:4], "hypotheses": PROPERTIES}, ValueError, "embedding", "4 rows"),
    # Metrics.
    (metrics.explained_variance, {"S": S, "W": W[:4]}, ValueError, "W", "(4, 3)"),
    (metrics.explained_variance, {"S": np.ones((4, 4)), "W": W[:4]}, ValueError, "S", ""),
    (metrics.entropy, {"W": -W}, ValueError, "W", "36 negative"),
    (metrics.entropy, {"W": W, "of": "columns"}, ValueError, "of", "'columns'"),
    (metrics.hoyer_sparsity, {"W": np.full((3, 2), INF)}, ValueError, "W", "inf for item 0, column 0"),
    (metrics.hoyer_sparsity, {"W": "W"}, TypeError, "W", "str"),
    (metrics.factor_alignment, {"W": W, "W_true": W[:3]}, ValueError, "W_true", "3"),
    (metrics.link_auc, {"S": LINKS, "W": W[:3]}, ValueError, "W", "(3, 3)"),
    (metrics.link_auc, {"S": LINKS, "W": W, "pairs": [[0, 99]]}, ValueError, "pairs", "[0, 99]"),
    (metrics.hold_out_links, {"S": LINKS, "fraction": 1.5}, ValueError, "fraction", "1.5"),
    (metrics.noise_ceiling, {"triplets": TRIPLETS, "min_answers": 1}, ValueError, "min_answers", "1"),
    (metrics.noise_ceiling, {"triplets": TRIPLETS, "by": "who"}, ValueError, "by", "'who'"),
    (metrics.noise_ceiling, {"triplets": PEOPLE, "by": "who"}, ValueError, "by", "'who'"),
    (metrics.noise_ceiling, {"triplets": PEOPLE, "min_answers": 3}, ValueError, "min_answers", "3"),
    (metrics.noise_ceiling, {"triplets": PEOPLE, "method": "kendall"}, ValueError, "method", "'kendall'"),
    (metrics.noise_ceiling, {"triplets": TRIPLETS, "method": "pearson"}, ValueError, "method", "'pearson'"),
    (metrics.noise_ceiling, {"triplets": [[0, 1, 1]]}, ValueError, "triplets", "[0, 1, 1] in row 0"),
    (metrics.pair_correlation, {"W": W, "pairs": [[0, 1]], "ratings": [1, 2]}, ValueError, "ratings", "shape (2,)"),
    (metrics.pair_correlation, {"W": W, "pairs": [["cat", "dog"]], "ratings": [1]},
     ValueError, "pairs", "the text 'cat'"),
    (metrics.readout, {"W": W, "ratings": PROPERTIES, "alphas": [0]}, ValueError, "alphas", "[0]"),
    (metrics.readout, {"W": W, "ratings": PROPERTIES, "n_folds": 7}, ValueError, "ratings", "12 in 'size'"),
    (metrics.triplet_accuracy, {"W": W, "triplets": [[0, 1, 99]]}, ValueError, "triplets", "99 in row 0, column 2"),
    (metrics.triplet_accuracy, {"W": W, "triplets": TRIPLETS, "similarity": 1}, ValueError, "similarity", "1"),
    (metrics.comparison_accuracy, {"W": W, "table": TRIPLETS}, TypeError, "table", "ndarray"),
    (metrics.comparison_accuracy, {"W": W[:3, :2], "table": ANSWERS}, ValueError, "table", "3 in row 1, column"),
    (metrics.comparison_accuracy, {"W": W, "table": ANSWERS, "loser": "x"}, ValueError, "loser", "'x'"),
    (metrics.comparison_accuracy, {"W": W, "table": ANSWERS, "similarity": "l2"}, ValueError, "similarity", "'l2'"),
    (metrics.comparison_accuracy, {"W": W, "table": {"head": ["a"], "winner": ["b"], "loser": ["c"]}},
     ValueError, "table", "'a'"),
    (plan_study, {"source": W, "pairs": [0.01]}, ValueError, "pairs", "0.01"),
    (plan_study, {"source": W, "pairs": [1.5]}, ValueError, "pairs", "1.5"),
    (plan_study, {"source": W, "pairs": []}, ValueError, "pairs", "none"),
    (plan_study, {"source": W, "pairs": "half"}, TypeError, "pairs", "'half'"),
    (plan_study, {"source": W, "answers": 0}, ValueError, "answers", "0"),
    (plan_study, {"source": W, "answers": 1.5}, TypeError, "answers", "1.5"),
    (plan_study, {"source": W, "people": 10}, ValueError, "people", "10"),
    (plan_study, {"source": W, "people": 3, "spread": 0.5}, ValueError, "people", "3"),
    (plan_study, {"source": W, "snr": 0}, ValueError, "snr", "0"),
    (plan_study, {"source": W, "snr": 1.5}, ValueError, "snr", "1.5"),
    (plan_study, {"source": W, "spread": -1}, ValueError, "spread", "-1"),
    (plan_study, {"source": W, "target": 1}, ValueError, "target", "1"),
    (plan_study, {"source": W, "metric": "r"}, ValueError, "metric", "'r'"),
    (plan_study, {"source": W, "n_components": 3}, ValueError, "n_components", "3"),
    (plan_study, {"source": W, "n_repeats": 0}, ValueError, "n_repeats", "0"),
    (plan_study, {"source": W, "checkpoint": 3}, TypeError, "checkpoint", "3"),
    (plan_study, {"source": W, "checkpoint": "thesis"}, ValueError, "checkpoint", "'thesis'"),
    (plan_study, {"source": -W}, ValueError, "source", "smallest loading"),
    (plan_study, {"source": W[:3, :2]}, ValueError, "source", "(3, 2)"),
    (plan_study, {"source": np.ones((12, 2))}, ValueError, "source", "1 for every item in column 0"),
    (plan_study, {"source": np.hstack([W, np.zeros((12, 1))])}, ValueError, "source", "column 3"),
    (plan_study, {"source": np.ones((12, 12))}, ValueError, "source", "equal"),
    (plan_study, {"source": W, "answers": np.array(1.5)}, TypeError, "answers", "1.5"),
    (plan_study, {"source": S, "n_components": 40}, ValueError, "n_components", "40"),
    (plots.study_plan, {"plan": W}, TypeError, "plan", "ndarray"),
    (lineage, {"fits": W}, TypeError, "fits", "ndarray"),
    (lineage, {"fits": "found"}, TypeError, "fits", "str"),
    (lineage, {"fits": 3}, TypeError, "fits", "int"),
    (lineage, {"fits": [W]}, ValueError, "fits", "1"),
    (lineage, {"fits": []}, ValueError, "fits", "0"),
    (lineage, {"fits": [W, W]}, ValueError, "fits", "two with 3"),
    (lineage, {"fits": [W, W[:5, :2]]}, ValueError, "fits", "12 rows in the first and 5"),
    (lineage, {"fits": [W, np.full((12, 2), NAN)]}, ValueError, "fits", "nan"),
    (lineage, {"fits": [W, W[:, :2]], "S": S}, ValueError, "S", "ndarray"),
    (lineage, {"fits": [W, W[:, :2]], "ranks": [2, 3]}, ValueError, "ranks", "list"),
    (lineage, {"fits": [W, W[:, :2]], "threshold": 0.1}, ValueError, "threshold", "0.1"),
    (lineage, {"fits": [W, W[:, :2]], "threshold": "high"}, TypeError, "threshold", "'high'"),
    (plots.lineage, {"result": [W, W[:, :2]]}, TypeError, "result", "list"),
    (metrics.comparison_ceiling, {"table": ANSWERS}, ValueError, "table", "at most 1"),
    (metrics.comparison_ceiling, {"table": ANSWERS, "min_answers": 1}, ValueError, "min_answers", "1"),
    (metrics.comparison_ceiling, {"table": ANSWERS, "by": "x"}, ValueError, "by", "'x'"),
    (metrics.triplet_probabilities, {"W": W, "triplets": TRIPLETS, "temperature": 0}, ValueError, "temperature", "0"),
    # Simulated data.
    (simulate.dirichlet, {"n_items": 0, "n_components": 2}, ValueError, "n_items", "0"),
    (simulate.dirichlet, {"n_items": 5, "n_components": 2, "alpha": 0}, ValueError, "alpha", "0"),
    (simulate.dirichlet, {"n_items": 5, "n_components": 2, "alpha": [1]}, TypeError, "alpha", "[1]"),
    (simulate.dirichlet, {"n_items": 10**9, "n_components": 10**6}, MemoryError, "", ""),
    (simulate.factorial, {"levels": [3, 1]}, ValueError, "levels", "1"),
    (simulate.factorial, {"levels": 3}, TypeError, "levels", "int"),
    (simulate.sparse_correlated, {"n_items": 5, "n_components": 2, "density": 1}, ValueError, "density", "1"),
    (simulate.sparse_correlated, {"n_items": 5, "n_components": 2, "correlation": "r"},
     TypeError, "correlation", "'r'"),
    (simulate.from_embedding, {"W": W, "n_items": 99}, ValueError, "n_items", "99"),
    (simulate.from_embedding, {"W": [["a"]]}, TypeError, "W", "the text 'a' in row 0, column 0"),
    (simulate.add_noise, {"S": S, "snr": 2}, ValueError, "snr", "2"),
    (simulate.add_noise, {"S": S, "snr": None}, TypeError, "snr", "None"),
    (simulate.add_noise, {"S": without(5), "snr": 0.5}, ValueError, "values", "none for 1 item: 5"),
    (simulate.add_noise, {"S": changed(S, (1, 2), NAN), "snr": 0.5}, ValueError, "S", "2"),
    (simulate.add_feature_noise, {"X": -W, "snr": 0.5}, ValueError, "X", "-0.972023"),
    (simulate.add_feature_noise, {"X": "X", "snr": 0.5}, TypeError, "X", "str"),
    (simulate.mask_pairs, {"S": S, "observed": "half"}, TypeError, "observed", "'half'"),
    (simulate.triplet_answers, {"W": [[1.0], [2.0]], "n_answers": 5}, ValueError, "W", "shape (2, 1)"),
    (simulate.triplet_answers, {"W": [[1.0], [np.nan], [0.0]], "n_answers": 5}, ValueError, "W", ""),
    (simulate.triplet_answers, {"W": np.eye(3), "n_answers": 0}, ValueError, "n_answers", "0"),
    (simulate.mask_pairs, {"S": S, "observed": 0.5, "keep_diagonal": "y"}, TypeError, "keep_diagonal", "'y'"),
    (simulate.power_study, {"design": W, "snrs": [2.0]}, ValueError, "snrs", "2.0"),
    (simulate.power_study, {"design": W, "n_repeats": 0}, ValueError, "n_repeats", "0"),
    # Data sets.
    (datasets.fetch_peterson_animals, {"half": 3}, ValueError, "half", "3"),
    (datasets.fetch_peterson_animals, {"half": [1]}, ValueError, "half", "[1]"),
    (datasets.fetch_word_similarity, {"name": "men"}, ValueError, "name", "'men'"),
    (datasets.fetch_word_similarity, {"name": W}, ValueError, "name", "an object of type ndarray"),
    # Pictures.
    (plots.alignment, {"result": W}, (TypeError, ValueError), "reference", "None"),
    (plots.calibration, {"result": W}, TypeError, "result", "ndarray"),
    (plots.dimension_grid, {"result": W, "page": 9}, ValueError, "page", "9"),
    (plots.figure_panel, {"result": W}, TypeError, "result", "ndarray"),
    (plots.dimension_grid, {"result": W, "images": S}, ValueError, "images", "shape"),
    (plots.dimension_grid, {"result": W, "images": W[:2]}, ValueError, "images", "2"),
    (plots.dimension_grid, {"result": W, "common_scale": W}, TypeError, "common_scale", "an object of type ndarray"),
    (plots.embedding_map, {"result": W, "coordinates": W[:3]}, ValueError, "coordinates", "(3, 3)"),
    (plots.graph, {"result": S, "embedding": W, "positions": "circle"}, TypeError, "positions", "str"),
    (plots.graph, {"result": S, "embedding": W[:3]}, ValueError, "embedding", "shape (3, 3)"),
    (plots.hypothesis_tests, {"tests": W}, TypeError, "tests", "ndarray"),
    (plots.item_fingerprint, {"result": W, "item": 99}, ValueError, "item", "99"),
    (plots.item_fingerprint, {"result": W, "item": "cat"}, ValueError, "item", "'cat'"),
    (plots.power_curves, {"study": STUDY, "column": "size"}, ValueError, "column", "'size'"),
    (plots.rank_selection, {"result": W}, TypeError, "result", "ndarray"),
    # Several systems at once.
    (as_similarity, {"x": PEOPLE}, TypeError, "values", "SimilaritySet"),
    (discover, {"S": PEOPLE, "alpha": 0.0}, ValueError, "alpha", "0.0"),
    (discover, {"S": PEOPLE, "checkpoint": "thesis"}, ValueError, "checkpoint", "'thesis'"),
    (select_rank, {"S": PEOPLE, "protocol": "paper"}, ValueError, "protocol", "'paper'"),
    (select_rank, {"S": PEOPLE, "ranks": 12}, ValueError, "ranks", "12"),
    (SimilaritySet, {"similarities": []}, ValueError, "similarities", "none"),
    (SimilaritySet, {"similarities": S}, ValueError, "similarities", "(12, 12)"),
    (SimilaritySet, {"similarities": 3}, TypeError, "similarities", "int"),
    (SimilaritySet, {"similarities": [S, S], "names": ["a", "a"]}, ValueError, "names", "'a' more than once"),
    (SimilaritySet, {"similarities": [S], "info": {"age": [1, 2]}}, ValueError, "info", "2 in 'age'"),
    (SimilaritySet, {"similarities": [S, S[:5, :5]]}, ValueError, "similarities", "12 in 'system1' and 5 in 'system2'"),
    (fit_jointly, {"n_components": 0}, ValueError, "n_components", "0"),
    (fit_jointly, {"n_components": 13}, ValueError, "n_components", "13"),
    (fit_jointly, {"alpha": "some"}, ValueError, "alpha", "'some'"),
    (fit_jointly, {"alpha": -1.0}, ValueError, "alpha", "-1.0"),
    (fit_jointly, {"shrinkage": "some"}, ValueError, "shrinkage", "'some'"),
    (fit_jointly, {"shrinkage": -0.5}, ValueError, "shrinkage", "-0.5"),
    (fit_jointly, {"shrinkage": NAN}, ValueError, "shrinkage", "nan"),
    (fit_jointly, {"shrinkage": None}, TypeError, "shrinkage", "None"),
    (fit_jointly, {"l1_ratio": 2}, ValueError, "l1_ratio", "2"),
    (fit_jointly, {"init": "spectral"}, ValueError, "init", "'spectral'"),
    (fit_jointly, {"init": W}, ValueError, "init", "(12, 3)"),
    (fit_jointly, {"S": S}, ValueError, "similarities", "(12, 12)"),
    (weights_for, {"S": S[:5, :5]}, ValueError, "S", "5 items"),
    (weights_for, {"S": pd.DataFrame(S[:2, :2], list("xy"), list("xy"))}, ValueError, "S", "'x', 'y'"),
    (SimilaritySet.load, {"path": 3}, TypeError, "path", "int"),
    (SimilaritySet.load, {"path": "no-such-folder"}, FileNotFoundError, "No such file", "no-such-folder"),
    (weight_test, {"result": "weights", "by": [1]}, TypeError, "result", "'weights'"),
    (weight_test, {"result": W, "by": [1, 2]}, ValueError, "by", "2"),
    (weight_test, {"result": W, "by": "age"}, ValueError, "by", "'age'"),
    (plots.system_weights, {"result": W, "by": [1, 2]}, ValueError, "by", "2"),
    (bootstrap, {"found": PEOPLE}, ValueError, "n_components", "None"),
    (bootstrap, {"found": PEOPLE, "n_components": 2}, ValueError, "found", "2"),
    (bootstrap, {"found": PEOPLE, "n_components": 20, "over": "items"}, ValueError, "n_components", "20"),
    (bootstrap, {"found": S, "n_components": 2, "over": "people"}, ValueError, "over", "'people'"),
    (bootstrap, {"found": S, "n_components": 2, "over": "items", "n_resamples": 5}, ValueError, "n_resamples", "5"),
    (bootstrap, {"found": S, "n_components": 2, "over": "items", "threshold": 2}, ValueError, "threshold", "2"),
    (bootstrap, {"found": S, "n_components": 2, "over": "items", "ranks": [0]}, ValueError, "ranks", "0"),
    (bootstrap, {"found": S, "n_components": 2, "over": "items", "ranks": 3}, TypeError, "ranks", "3"),
    (bootstrap, {"found": S, "over": "items", "estimator": "SRF"}, TypeError, "estimator", "'SRF'"),
    (population_test, {"systems": S, "hypotheses": W}, TypeError, "systems", "ndarray"),
    (population_test, {"systems": PEOPLE, "hypotheses": W}, ValueError, "systems", "2"),
    (population_test, {"systems": CROWD, "hypotheses": W[:5]}, ValueError, "hypotheses", "5"),
    (population_test, {"systems": CROWD, "hypotheses": W, "generalize": "mice"}, ValueError, "generalize", "'mice'"),
    (population_test, {"systems": CROWD, "hypotheses": W, "embedding": W[:5]}, ValueError, "embedding", "5"),
    (compare_embeddings, {"W1": W, "W2": W[:10]}, ValueError, "W2", "10"),
    (compare_embeddings, {"W1": W, "W2": "brain"}, TypeError, "W2", "str"),
    (compare_embeddings, {"W1": W[:3], "W2": W[:3]}, ValueError, "W1", "3"),
    (compare_embeddings, {"W1": W, "W2": W, "alpha": 2}, ValueError, "alpha", "2"),
    (compare_embeddings, {"W1": W, "W2": W, "n_permutations": 0}, ValueError, "n_permutations", "0"),
    (compare_embeddings, {"W1": W, "W2": W, "S1": S[:10, :10]}, ValueError, "S1", "10"),
    (plots.uncertainty, {"result": W}, TypeError, "result", "ndarray"),
    (plots.embedding_comparison, {"result": W}, TypeError, "result", "ndarray"),
    (plots.system_weights, {"result": W, "kind": "pie"}, ValueError, "kind", "'pie'"),
    (plots.system_weights, {"result": W, "by": list(range(12))}, ValueError, "by", "12"),
    (plots.weight_courses, {"result": W, "order": [1, 2]}, ValueError, "order", "2"),
    (plots.weight_courses, {"result": W, "by": list(range(12))}, ValueError, "by", "12"),
    (plots.weight_courses, {"result": W, "within": "person"}, ValueError, "within", "'person'"),
    (plots.weight_courses, {"result": W, "axes": []}, ValueError, "axes", "0"),
    (plots.reconstruction, {"result": S}, (TypeError, ValueError), "embedding", "None"),
    (plots.reconstruction, {"result": S, "embedding": W, "max_pairs": 0}, ValueError, "max_pairs", "0"),
    (plots.reliability, {"result": "high"}, TypeError, "result", "str"),
    (plots.save_figure, {"axes": [], "path": "a.png"}, TypeError, "axes", "NoneType"),
    (plots.similarity_heatmap, {"result": S, "cmap": "rainbows"}, ValueError, "cmap", "'rainbows'"),
    # Tests with nuisance, and regressions on models.
    (dimension_test, {"embedding": W, "hypotheses": PROPERTIES, "nuisance": PROPERTIES[:5]}, ValueError, "nuisance",
     "5 rows"),
    (dimension_test, {"embedding": W, "hypotheses": PROPERTIES, "nuisance": NAN * PROPERTIES}, ValueError, "nuisance",
     "missing value"),
    (dimension_test, {"embedding": W, "hypotheses": PROPERTIES, "nuisance": np.ones((12, 1))}, ValueError, "nuisance",
     "1 for every item"),
    (dimension_test, {"embedding": W, "hypotheses": PROPERTIES, "nuisance": 2 * PROPERTIES + 1}, ValueError,
     "hypotheses", "'size'"),
    (dimension_test, {"embedding": W, "hypotheses": PROPERTIES, "nuisance": np.eye(12)}, ValueError, "nuisance",
     "11 independent ones for 12 items"),
    (dimension_test, {"embedding": W, "hypotheses": PROPERTIES[["size"]], "nuisance": W[:, :1], "matching": "joint"},
     ValueError, "matching", "'joint'"),
    (rsa_test, {"S": S, "hypotheses": PROPERTIES, "nuisance": [np.ones((3, 3))]}, ValueError, "nuisance", "(3, 3)"),
    (rsa_test, {"S": S, "hypotheses": [changed(S, (0, 1), NAN)], "nuisance": W[:, :1]}, ValueError, "hypotheses",
     "missing values"),
    (rsa_test, {"S": S, "hypotheses": PROPERTIES, "nuisance": [changed(S, (0, 1), NAN)]}, ValueError, "nuisance",
     "missing values"),
    (rsa_test, {"S": S, "hypotheses": PROPERTIES, "nuisance": "size"}, TypeError, "nuisance", "str"),
    (combined_test, {"S": S, "embedding": W, "hypotheses": PROPERTIES, "nuisance": PROPERTIES}, ValueError,
     "hypotheses", "'size'"),
    (rsa_regression, {"S": S, "models": PROPERTIES[:5]}, ValueError, "models", "5 rows"),
    (rsa_regression, {"S": S, "models": [changed(S, (0, 1), NAN)]}, ValueError, "models", "missing values"),
    (rsa_regression, {"S": S, "models": PROPERTIES, "nuisance": PROPERTIES}, ValueError, "models", "'size'"),
    (rsa_regression, {"S": S, "models": np.random.RandomState(1).rand(12, 11)}, ValueError, "models",
     "11 for 12 items"),
    (rsa_regression, {"S": S, "models": PROPERTIES, "n_folds": 7}, ValueError, "n_folds", "7"),
    (rsa_regression, {"S": S, "models": PROPERTIES, "signed": 1}, TypeError, "signed", "1"),
    (rsa_regression, {"S": np.ones((12, 12)), "models": PROPERTIES}, ValueError, "S", "few pairs"),
    # Encoders.
    (fit_encoder, {"kernel": "poly"}, ValueError, "kernel", "'poly'"),
    (fit_encoder, {"gamma": 1.0}, ValueError, "gamma", "1.0"),
    (fit_encoder, {"kernel": "rbf", "gamma": -1.0}, ValueError, "gamma", "-1"),
    (fit_encoder, {"n_folds": 1}, ValueError, "n_folds", "1"),
    (fit_encoder, {"n_folds": 13}, ValueError, "X", "n_samples = 12"),
    (fit_encoder, {"X": W[:5]}, ValueError, "X", "[5, 12]"),
    (fit_encoder, {"X": np.full((12, 2), NAN)}, ValueError, "X", "NaN"),
    (fit_encoder, {"X": np.full((12, 2), INF)}, ValueError, "X", "infinity"),
    (fit_encoder, {"X": [["much"]] * 12}, ValueError, "X", "much"),
    (fit_encoder, {"y": np.full((12, 2), NAN)}, ValueError, "y", "NaN"),
    (fit_encoder, {"y": Similarity(S)}, TypeError, "y", "a Similarity"),
    (fit_encoder, {"y": sparse.csr_array(W)}, TypeError, "y", "a sparse matrix"),
    (fit_encoder, {"X": PROPERTIES.set_axis(["a", "a"], axis=1)}, ValueError, "X", "'a' more than once"),
    (fit_encoder, {"y": PROPERTIES.set_axis(["a", "a"], axis=1)}, ValueError, "y", "'a' more than once"),
    (fit_encoder, {"X": PROPERTIES.mask(PROPERTIES > 0.9)}, ValueError, "X", "column 'size'"),
    (fit_encoder, {"X": pd.DataFrame(W, index=NAMES), "y": pd.DataFrame(W, index=[*NAMES[:-1], "unicorn"])}, ValueError,
     "X", "'unicorn'"),
    (fit_encoder, {"X": pd.DataFrame(W, index=NAMES), "y": pd.DataFrame(W[:11], index=NAMES[:11])}, ValueError,
     "X", "'item 11'"),
    (fit_encoder, {"X": pd.DataFrame(W, index=NAMES), "y": pd.DataFrame(W, index=["cat"] * 12)}, ValueError,
     "y", "'cat'"),
    # Properties that describe dimensions.
    (label_dimensions, {"W": W, "properties": np.ones((12, 2))}, TypeError, "properties", "ndarray"),
    (label_dimensions, {"W": W, "properties": PROPERTIES[:5]}, ValueError, "properties", "5 rows"),
    (label_dimensions, {"W": W, "properties": {"x": [1.0]}}, ValueError, "properties", "[1]"),
    (label_dimensions, {"W": W, "properties": pd.DataFrame({"x": np.ones(12)})}, ValueError, "properties", "1 column"),
    (label_dimensions, {"W": W, "properties": PROPERTIES * INF}, ValueError, "properties", "infinity in 'size'"),
    (label_dimensions, {"W": W, "properties": {"x": NAMES}}, ValueError, "properties", "12 different ones"),
    (label_dimensions, {"W": pd.DataFrame(W, index=NAMES), "properties": PROPERTIES.set_axis(list("abcdefghijkl"))},
     ValueError, "properties", "'item 0'"),
    (label_dimensions, {"W": W, "properties": PROPERTIES.set_axis([1, "1"], axis=1)}, ValueError, "properties",
     "'1' more than once"),
    (label_dimensions, {"W": NAN * W, "properties": PROPERTIES}, ValueError, "W", "nan"),
    (label_dimensions, {"W": W, "properties": PROPERTIES, "n_permutations": 0}, ValueError, "n_permutations", "0"),
    (label_dimensions, {"W": W, "properties": PROPERTIES, "alpha": 1.5}, ValueError, "alpha", "1.5"),
    (label_dimensions, {"W": W, "properties": PROPERTIES, "min_correlation": 2}, ValueError, "min_correlation", "2"),
    (encode, {"X": W}, ValueError, "encode", "none"),
    (with_encoder, {"X": W, "encoder": "linear"}, TypeError, "encoder", "str"),
    (plots.similarity_heatmap, {"result": S, "limits": (1, 0)}, ValueError, "limits", "(1, 0)"),
    (plots.similarity_heatmap, {"result": S, "order": 3}, ValueError, "order", ""),
    (plots.similarity_heatmap, {"result": S, "colorbar": W}, TypeError, "colorbar", "an object of type ndarray"),
    (plots.word_cloud, {"result": W, "dimension": 9}, ValueError, "dimension", "9"),
    (plots.word_cloud, {"result": W, "labels": NAMES[:3]}, ValueError, "labels", "3"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with some files, the working directory of every test; what is in it may not change."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "table.docx").write_text("words")
    (tmp_path / "text.csv").write_text("item,cat,dog\ncat,1,much\ndog,0.5,1\n")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("words")
    np.save(tmp_path / "pickle.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    before = contents(tmp_path)
    yield tmp_path
    assert contents(tmp_path) == before
    assert os.path.samefile(os.getcwd(), tmp_path)


def contents(folder):
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def same(one, other):
    """Whether two arguments are the same to the last bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Similarity):
        return all(same(getattr(one, name), getattr(other, name)) for name in ("values", "labels", "weights", "absent"))
    if isinstance(one, SimilaritySet):
        return one.names == other.names and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        is_same = one.dtype == other.dtype and one.shape == other.shape
        return is_same and (repr(one) == repr(other) if one.dtype == object else one.tobytes() == other.tobytes())
    if sparse.issparse(one):
        return one.format == other.format and same(one.toarray(), other.toarray())
    if isinstance(one, pd.DataFrame):
        return repr(one) == repr(other) and one.dtypes.equals(other.dtypes) and one.index.equals(other.index)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one is other or one == other or (one != one and other != other)


def name_of(row):
    return f"{row[0].__name__}({', '.join(row[1])})"


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_bad_input_is_refused_and_nothing_else_happens(row):
    function, arguments, error, name, value = row
    before = copy.deepcopy(arguments)
    with pytest.raises(error) as caught:
        function(**arguments)
    sentence = str(caught.value)
    assert (caught.value.name if isinstance(caught.value, ParameterError) else sentence).startswith(name)
    assert value in sentence
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    for argument in arguments:
        assert same(arguments[argument], before[argument]), argument


def test_the_table_is_long_and_has_a_row_for_everything_public():
    assert len(TABLE) >= 80
    covered = {STANDS_FOR.get(row[0], row[0].__name__) for row in TABLE}
    # Made by functions, never by users.
    results = {"Calibration", "Consensus", "DetectableDimensions", "HypothesisTests", "ParameterError", "RankSelection"}
    results |= {"Bootstrap", "EmbeddingComparison"}
    public = set(simdims.__all__) - results - {"datasets", "metrics", "plots", "simulate", "__version__"}
    for module in (metrics, plots, simulate):
        public |= {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    fetching = inspect.getmembers(datasets, inspect.isfunction)
    public |= {
        name for name, function in fetching if name.startswith("fetch_") and inspect.signature(function).parameters
    }
    assert not public - covered


# --- memory and names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: from_features(np.ones((3000, 2)) + np.eye(3000, 2)),
        lambda: from_triplets([[0, 1, 30_000]]),
        lambda: select_rank(Similarity.from_factors(np.ones((3000, 1)) + np.eye(3000, 1)), [1]),
        lambda: SRF(2, solver="admm").fit(Similarity.from_factors(np.ones((3000, 1)) + np.eye(3000, 1))),
        lambda: simulate.dirichlet(10_000, 1000),
    ],
    ids=["from_features", "from_triplets", "select_rank", "admm", "dirichlet"],
)
def test_more_memory_than_there_is_gets_an_estimate_and_the_ways_out(monkeypatch, call):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 2**26)
    with pytest.raises(MemoryError, match=r"would need [\d.]+ (GiB|MiB) of memory, but this machine has 64\.0 MiB"):
        call()


def test_names_are_only_names():
    """Labels and file names that a shell, a browser or a formula would take for more than that."""
    hostile = ["$(touch pwned)", "`touch pwned`", "<script>alert(1)</script>", "=1+1", "a;b", "'", '"']
    similarity = Similarity(np.eye(7) + 0.1, labels=hostile)
    assert similarity.labels == tuple(hostile)
    page = similarity._repr_html_()
    assert "<script>" not in page
    for name in hostile:
        with pytest.raises((ValueError, FileNotFoundError), match="No such file"):
            load_similarity(f"{name}.csv")
