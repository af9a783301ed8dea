"""What bad input gets: a sentence that names the argument, the rule and the value, before anything is done or written.

One table over everything public. A row is a function, its arguments, the type of the error and a part of the sentence.
For every row: the arguments are as they were, and no file is.
"""

import copy
import inspect
import os
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import simdims
from simdims import (
    SRF,
    Discovery,
    Similarity,
    _memory,
    align,
    as_similarity,
    calibrate,
    combined_test,
    datasets,
    detectable_dimensions,
    dimension_test,
    discover,
    fit_consensus,
    from_associations,
    from_dissimilarity,
    from_features,
    from_ratings,
    from_triplets,
    load_similarity,
    metrics,
    parallel_analysis,
    plots,
    rsa_test,
    scree_test,
    select_rank,
    simulate,
    split_half_reliability,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

W = simulate.dirichlet(12, 3, random_state=0)
S = W @ W.T
S.flags.writeable = W.flags.writeable = False  # a write anywhere is an error at once
NAMES = [f"item {i}" for i in range(12)]
NAN, INF = float("nan"), float("inf")
TRIPLETS = np.array([np.random.RandomState(seed).permutation(12)[:3] for seed in range(40)])
PROPERTIES = pd.DataFrame(np.random.RandomState(0).rand(12, 2), columns=["size", "colour"])
RATINGS = pd.DataFrame({"a": ["cat", "dog", "car"], "b": ["dog", "car", "cat"], "rating": [1.0, 2.0, 3.0]})
WORDS = pd.DataFrame({"cue": ["cat", "dog"], "response": ["dog", "cat"], "count": [3, 2]})
LINKS = Similarity(sparse.csr_array(np.triu(S > 0.3, 1).astype(float)), absent="zero")
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


def study():
    """A table as power_study returns it, as far as plots need one."""
    return pd.DataFrame({"snr": [0.1, 0.5], "power": [0.2, 0.9]})


def transform(S):
    return fitted().transform(S)


def score(S):
    return fitted().score(S)


def fit(S=S, **parameters):
    return SRF(**parameters).fit(S)


def load_discovery(folder):
    return Discovery.load(folder)


def save_similarity(similarity, path):
    similarity.save(path)


def save_discovery(folder):
    settings = {"ranks": 2, "n_runs": 2, "random_state": 0, "progress": False}
    discover(S, **settings).save(folder)


def methods_text(tests):
    settings = {"ranks": 2, "n_runs": 2, "random_state": 0, "progress": False}
    return discover(S, **settings).methods_text(tests)


# Rows that call a method, and the public name that they stand for.
STANDS_FOR = {
    fit: "SRF", transform: "SRF", score: "SRF", save_similarity: "Similarity", Similarity.from_factors: "Similarity",
    load_discovery: "Discovery", save_discovery: "Discovery", methods_text: "Discovery",
}  # fmt: skip

TABLE = [
    # A matrix of similarities: every rule of the one gate.
    (as_similarity, {"x": np.ones((3, 4))}, ValueError, "values must be a square matrix, got shape (3, 4)."),
    (as_similarity, {"x": np.ones(9)}, ValueError, "values must be a square matrix, got 1 dimension(s), shape (9,)."),
    (as_similarity, {"x": np.empty((0, 0))}, ValueError, "values must have a row and a column for every item"),
    (as_similarity, {"x": [[1.0], [1.0, 2.0]]}, ValueError, "values must have rows of one length"),
    (as_similarity, {"x": "animals.csv"}, TypeError, "values must be a NumPy array, a list of lists or a scipy sparse"),
    (as_similarity, {"x": S * 1j}, ValueError, "values must be real, got dtype complex128"),
    (as_similarity, {"x": asymmetric(), "labels": NAMES}, ValueError, "at ('item 2', 'item 7')"),
    (as_similarity, {"x": asymmetric()}, ValueError, 'symmetrize="mean"'),
    (as_similarity, {"x": changed(S, (1, 4), -0.25)}, ValueError, "got 1 negative pair, the smallest -0.25"),
    (as_similarity, {"x": changed(S, (1, 4), -0.25)}, ValueError, 'negative="clip"'),
    (as_similarity, {"x": changed(S, (1, 4), -0.25)}, ValueError, "(1 + r) / 2"),
    (as_similarity, {"x": changed(S, (1, 4), INF)}, ValueError, "values must be finite, but contains infinity: inf at"),
    (as_similarity, {"x": without(5), "labels": NAMES}, ValueError, "got none for 1 item: 'item 5'"),
    (as_similarity, {"x": np.full((4, 4), NAN)}, ValueError, "at least one observed entry, got none: everything is"),
    (as_similarity, {"x": S, "labels": ["a", "b"] * 6}, ValueError, "labels must be distinct, got 'a', 'b' more than"),
    (as_similarity, {"x": S, "labels": ["a", "b"]}, ValueError, "one name for each of the 12 items, got 2."),
    (as_similarity, {"x": S, "labels": "twelve names"}, TypeError, "labels must be a sequence with one name an item"),
    (as_similarity, {"x": S, "labels": [None, *NAMES[1:]]}, ValueError, "labels must name every item, got none in pl"),
    (as_similarity, {"x": S, "labels": [S, *NAMES[1:]]}, TypeError, "labels must hold one name an item, got a ndarray"),
    (as_similarity, {"x": S, "labels": [pd.NA, *NAMES[1:]]}, ValueError, "labels must name every item, got none in pl"),
    (as_similarity, {"x": S, "weights": -np.ones((12, 12))}, ValueError, "weights must be non-negative, got -1 at"),
    (
        as_similarity,
        {"x": S, "weights": np.ones((3, 3))},
        ValueError,
        "weights must have the shape of values, (12, 12)",
    ),
    (
        as_similarity,
        {"x": S, "weights": np.full((12, 12), NAN)},
        ValueError,
        "weights must be finite, got nan at (0, 0)",
    ),
    (as_similarity, {"x": S, "absent": "zero"}, ValueError, "absent must be None for dense values"),
    (as_similarity, {"x": sparse.csr_array(S)}, ValueError, "absent must say what the pairs that sparse values do not"),
    (as_similarity, {"x": sparse.csr_array(S), "absent": 1.5}, ValueError, "a number between 0 and 1"),
    (as_similarity, {"x": S, "symmetrize": "median"}, ValueError, 'symmetrize must be None, "mean" or "max", got \'me'),
    (
        as_similarity,
        {"x": S, "symmetrize": S},
        ValueError,
        'symmetrize must be None, "mean" or "max", got an object of type ndarray.',
    ),
    (
        as_similarity,
        {"x": pd.DataFrame([["1", "x"], ["x", "1"]], index=["a", "b"], columns=["a", "b"])},
        ValueError,
        "row 'a', column 'b'",
    ),
    (as_similarity, {"x": pd.DataFrame(S, index=NAMES, columns=NAMES[::-1])}, ValueError, "must name the same items"),
    (Similarity, {"values": pd.DataFrame(S)}, TypeError, "as_similarity takes a pandas DataFrame"),
    (Similarity, {"values": S, "labels": NAMES[:3]}, ValueError, "one name for each of the 12 items, got 3."),
    (
        Similarity.from_factors,
        {"factors": -W},
        ValueError,
        "factors must be non-negative, so that the similarities are",
    ),
    (Similarity.from_factors, {"factors": W, "signed": "yes"}, TypeError, "signed must be True or False, got 'yes'."),
    (
        save_similarity,
        {"similarity": Similarity(S), "path": "S.docx"},
        ValueError,
        "path must end in .npz or .csv, got",
    ),
    (
        save_similarity,
        {"similarity": Similarity(S), "path": "no/S.npz"},
        FileNotFoundError,
        "No such folder: ",
    ),
    (save_similarity, {"similarity": LINKS, "path": "S.csv"}, ValueError, "absent must be 'missing' for sparse values"),
    # Files.
    (
        load_similarity,
        {"path": "nowhere.csv"},
        FileNotFoundError,
        "No such file: 'nowhere.cs",
    ),
    (load_similarity, {"path": "."}, ValueError, "'.' must be a file, got a folder."),
    (load_similarity, {"path": 3}, TypeError, "path must be the name of a file, got "),
    (load_similarity, {"path": "a\0b.csv"}, ValueError, "path must be a valid file name, got 'a\\x00b.csv'"),
    (load_similarity, {"path": "x" * 300 + ".csv"}, (ValueError, FileNotFoundError), "path must"),
    (load_similarity, {"path": "empty.csv"}, ValueError, "'empty.csv' must hold data, got an empty file (0 bytes)."),
    (load_similarity, {"path": "table.docx"}, ValueError, "'table.docx' must end in one of .npy,"),
    (load_similarity, {"path": "text.csv"}, ValueError, "got the text 'much' in row 2 ('cat'), column 3 ('dog')"),
    (load_similarity, {"path": "pickle.npy"}, ValueError, "which are stored as a pickle and never loaded"),
    (
        load_similarity,
        {"path": "text.csv", "form": "wide"},
        ValueError,
        "form must be one of None, 'square', 'long', got 'w",
    ),
    (load_similarity, {"path": "text.csv", "key": "S"}, ValueError, "key must be None for .csv files"),
    # Raw data.
    (
        from_features,
        {"X": np.full((4, 2), NAN)},
        ValueError,
        "X must be finite, got NaN or infinity in row 0 and 3 othe",
    ),
    (from_features, {"X": np.ones(4)}, ValueError, "X must have a row for each item and a column for each feature"),
    (from_features, {"X": [["a", "b"]]}, TypeError, "X must hold numbers, got dtype <U1."),
    (from_features, {"X": sparse.csr_array(W)}, TypeError, "X must be dense, got a sparse matrix"),
    (
        from_features,
        {"X": W, "kernel": "gauss"},
        ValueError,
        "kernel must be 'auto', 'linear', 'rbf', 'cosine' or a ca",
    ),
    (
        from_features,
        {"X": W, "kernel": W},
        ValueError,
        "kernel must be 'auto', 'linear', 'rbf', 'cosine' or a callable",
    ),
    (
        from_features,
        {"X": W, "kernel": "rbf", "bandwidth": -1},
        ValueError,
        "bandwidth must be a positive, finite numbe",
    ),
    (from_features, {"X": W * 1e200}, ValueError, "X must be small enough to be multiplied for kernel='linear', got"),
    (from_features, {"X": W * 1e-200}, ValueError, "X must be large enough to be multiplied for kernel='linear', got"),
    (
        from_features,
        {"X": np.array([[1.7e308], [1.7e308], [-1.7e308]])},
        ValueError,
        "X must be small enough to be subtracted, got",
    ),
    (
        from_features,
        {"X": np.ones((4, 2)), "kernel": "rbf"},
        ValueError,
        "got a median distance of 0: over half of them",
    ),
    (
        from_triplets,
        {"triplets": [[0, 1, 1]]},
        ValueError,
        "three different items in every row, got [0, 1, 1] in row 0",
    ),
    (
        from_triplets,
        {"triplets": [[0, 1, 9]], "n_items": 4},
        ValueError,
        "between 0 and n_items - 1 = 3, got 9 in row 0",
    ),
    (
        from_triplets,
        {"triplets": [[0, 1, -2]]},
        ValueError,
        "name items by positions from 0 (or as text), got -2 in ro",
    ),
    (
        from_triplets,
        {"triplets": [[0, 1, 2.5]]},
        ValueError,
        "hold whole numbers (or text), got 2.5 in row 0, column 2",
    ),
    (from_triplets, {"triplets": [[0, 1]]}, ValueError, "triplets must have 3 columns, one for each item of a triplet"),
    (from_triplets, {"triplets": []}, ValueError, "triplets must hold at least one triplet, got none."),
    (from_triplets, {"triplets": [[0, 1, {}]]}, TypeError, "triplets must hold whole numbers or text"),
    (
        from_triplets,
        {"triplets": TRIPLETS, "odd": 5},
        ValueError,
        "odd must be the position of a column, -3 to 2, got 5",
    ),
    (from_triplets, {"triplets": TRIPLETS, "smoothing": -1}, ValueError, "smoothing must be a finite number of at lea"),
    (
        from_triplets,
        {"triplets": TRIPLETS, "weights": "all"},
        ValueError,
        "weights must be one of None",
    ),
    (
        from_ratings,
        {"table": RATINGS, **COLUMNS, "item1": "x"},
        ValueError,
        "item1 must name a column of table, got 'x'",
    ),
    (
        from_ratings,
        {"table": RATINGS, **COLUMNS, "item1": S},
        ValueError,
        "item1 must name a column of table, got an object of type ndarray.",
    ),
    (from_ratings, {"table": RATINGS, **COLUMNS, "item2": "a"}, ValueError, "must name two different columns, got 'a'"),
    (
        from_ratings,
        {"table": RATINGS, **COLUMNS, "low": 2},
        ValueError,
        "must lie between low = 2 and high = 3, got 1 i",
    ),
    (
        from_ratings,
        {"table": RATINGS, **COLUMNS, "low": 7, "high": 1},
        ValueError,
        "low must be less than high, got lo",
    ),
    (from_ratings, {"table": RATINGS[:0], **COLUMNS}, ValueError, "table must have at least one row, got none."),
    (
        from_ratings,
        {"table": RATINGS.assign(rating=["1", "much", "3"]), **COLUMNS},
        ValueError,
        "Column 'rating' must hold numbers, got the text 'much' in row 1 (1 of 3",
    ),
    (
        from_ratings,
        {"table": RATINGS.assign(rating=[-1e308, 0.0, 1e308]), **COLUMNS},
        ValueError,
        "high - low must be finite, got low = -1e+308 and high = 1e+308 (found in the ratings).",
    ),
    (
        from_ratings,
        {"table": RATINGS.assign(a=[[1], "x", "y"]), **COLUMNS},
        TypeError,
        "Column 'a' must name items, got",
    ),
    (
        from_associations,
        {"table": WORDS, "cue": "word"},
        ValueError,
        "cue must name a column of table, got 'word', whic",
    ),
    (
        from_associations,
        {"table": WORDS.assign(count=-1)},
        ValueError,
        "'count' must hold non-negative numbers, got -1",
    ),
    (from_associations, {"table": WORDS, "absent": 7}, ValueError, 'absent must be absent="missing"'),
    (from_associations, {"table": WORDS[:1]}, ValueError, "table must hold words that lead to each other"),
    (from_associations, {"table": S}, TypeError, "table must be a pandas DataFrame, a dictionary of columns or a list"),
    (from_dissimilarity, {"D": S}, ValueError, "D must have a zero diagonal, as nothing differs from itself"),
    (
        from_dissimilarity,
        {"D": np.zeros((3, 3))},
        ValueError,
        "D must have at least one positive dissimilarity, got ze",
    ),
    (from_dissimilarity, {"D": [1.0, 2.0]}, ValueError, "D must be a square matrix, the vector of the n (n - 1) / 2"),
    (from_dissimilarity, {"D": [1.0, -2.0, 3.0]}, ValueError, "D must be non-negative (negative pairs: 1), got -2 at"),
    (
        from_dissimilarity,
        {"D": [1.0, 1.5, 0.5], "method": "correlation"},
        ValueError,
        'pass negative="clip" to set them to 0',
    ),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "method": "min"}, ValueError, 'method must be "max", "correlation" or'),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "negative": "yes"}, ValueError, "negative must be one of None"),
    (
        from_dissimilarity,
        {"D": [1.0, 2.0, 3.0], "sigma": 1},
        ValueError,
        'sigma must be None or, for method="gaussian"',
    ),
    # Fits.
    (fit, {"n_components": 0}, ValueError, "n_components must be at least 1, got 0."),
    (fit, {"n_components": 13}, ValueError, "n_components must be between 1 and n_items = 12, got 13."),
    (fit, {"n_components": 2.0}, TypeError, "n_components must be an integer, got 2.0."),
    (fit, {"solver": "newton"}, ValueError, "solver must be one of 'auto', 'bcd', 'admm', got 'newton'."),
    (fit, {"solver": ["bcd"]}, ValueError, "solver must be one of 'auto', 'bcd', 'admm', got ['bcd']."),
    (fit, {"tol": -1.0}, ValueError, "tol must be at least 0 and finite, got -1.0."),
    (fit, {"tol": 10**400}, ValueError, "tol must be at least 0 and finite, got 1000"),
    (fit, {"max_iter": "many"}, TypeError, "max_iter must be an integer, got 'many'."),
    (fit, {"rho": 2.0}, ValueError, "rho is used by solver='admm' only and must stay at 3.0 with solver='auto', got 2"),
    (fit, {"bounds": (1, 0), "n_components": 2}, ValueError, "bounds must be a pair with low < high, got (1, 0)."),
    (fit, {"init": np.ones((2, 2)), "n_components": 2}, ValueError, "init must have shape (n_items, n_components) = "),
    (fit, {"init": [["a"]], "n_components": 2}, TypeError, "init must be 'random', 'spectral' or an array of numbers"),
    (fit, {"device": "tpu"}, ValueError, "device must be 'cpu', 'cuda', 'cuda:<number>', 'mps' or 'torch-cpu', got 't"),
    (fit, {"S": asymmetric(), "n_components": 2}, ValueError, "values must be symmetric"),
    (transform, {"S": -S}, ValueError, "similarities must be non-negative, got 144."),
    (
        transform,
        {"S": [["a"]]},
        ValueError,
        "S must hold a row of similarities for each new item, got others: could no",
    ),
    (
        transform,
        {"S": S[:, :3]},
        ValueError,
        "SRF is expecting 12 features as input: one similarity to each fitted item",
    ),
    (
        transform,
        {"S": np.full((1, 12), NAN)},
        ValueError,
        "S must have an observed similarity in every row, got 1 with",
    ),
    (score, {"S": S[:3, :3]}, ValueError, "X has 3 features, but SRF is expecting 12 features as input"),
    (score, {"S": [[1.0], [1.0, 2.0]]}, ValueError, "S must have rows of one length, got lists of different lengths."),
    (
        score,
        {"S": pd.DataFrame(S, index=["a"] * 12, columns=["a"] * 12)},
        ValueError,
        "S must have a column for each fitted item, got columns of the same name.",
    ),
    # Many fits.
    (calibrate, {"S": S, "n_bootstraps": 0}, ValueError, "n_bootstraps must be at least 1, got 0."),
    (calibrate, {"S": S, "tolerance": 2}, ValueError, "tolerance must lie strictly between 0 and 1, got 2."),
    (calibrate, {"S": S, "n_eigenpairs": 40}, ValueError, "n_eigenpairs must be"),
    (calibrate, {"S": S, "grid": [0.5, 0.2]}, ValueError, "grid must"),
    (calibrate, {"S": S * 1e200}, ValueError, "values must be small enough to be squared and summed, got a largest of"),
    (calibrate, {"S": S[:2, :2]}, ValueError, "at least"),
    (
        select_rank,
        {"S": S, "ranks": [0, 2]},
        ValueError,
        "ranks must lie between 1 and 11",
    ),
    (select_rank, {"S": S, "ranks": [2.5]}, TypeError, "ranks must be integers, got 2.5."),
    (select_rank, {"S": S, "sampling": 1.5}, ValueError, "sampling must lie strictly between 0 and 1, got 1.5."),
    (select_rank, {"S": S, "n_folds": 1}, ValueError, "n_folds must be at least 2, got 1."),
    (select_rank, {"S": S, "protocol": ["paper"]}, ValueError, "protocol must be"),
    (select_rank, {"S": S, "estimator": "fast"}, TypeError, "estimator must be an SRF, got 'fast'."),
    (select_rank, {"S": S, "checkpoint": 3}, TypeError, "checkpoint must be a path, got 3."),
    (
        select_rank,
        {"S": S, "random_state": "seed"},
        ValueError,
        "random_state must be None, an integer from 0 to 2**32",
    ),
    (
        select_rank,
        {"S": S, "n_jobs": 0},
        ValueError,
        "n_jobs must be a number of workers, or -1 for one a core, got 0.",
    ),
    (scree_test, {"S": np.ones((1, 1))}, ValueError, "at least"),
    (
        scree_test,
        {"S": S * 1e-200},
        ValueError,
        "values must be large enough to be squared and summed, got a largest of",
    ),
    (detectable_dimensions, {"S": S, "level": 0}, ValueError, "level must lie strictly between 0 and 1, got 0."),
    (detectable_dimensions, {"S": S, "n_flips": 10}, ValueError, "n_flips must be at least 19, got 10."),
    (detectable_dimensions, {"S": S, "n_flips": 19, "level": 0.01}, ValueError, "n_flips must be at least 99, got 19."),
    (detectable_dimensions, {"S": S, "max_rank": 0}, ValueError, "max_rank must be at least 1, got 0."),
    (detectable_dimensions, {"S": S, "start": 2.5}, TypeError, "start must be"),
    (detectable_dimensions, {"S": np.eye(2)}, ValueError, "S must have at least 3 items"),
    (parallel_analysis, {"S": S, "quantile": 1}, ValueError, "quantile must lie strictly between 0 and 1, got 1."),
    (parallel_analysis, {"S": S, "n_samples": 0}, ValueError, "n_samples must be at least 1, got 0."),
    (
        fit_consensus,
        {"S": S, "n_components": 2, "n_runs": 1},
        ValueError,
        "n_runs must be at least 2",
    ),
    (
        fit_consensus,
        {"S": S, "n_components": 20},
        ValueError,
        "n_components must be between 1 and 12",
    ),
    (fit_consensus, {"S": S, "n_components": 2, "progress": "bar"}, TypeError, "progress must be"),
    (align, {"W": W, "reference": W[:3]}, ValueError, "reference must have one row for each of the 12 items, got 3."),
    (align, {"W": W, "reference": W, "method": "angle"}, ValueError, "method must be one of"),
    (split_half_reliability, {"embeddings": W}, ValueError, "embeddings must"),
    (split_half_reliability, {"embeddings": [W, W], "n_splits": 0}, ValueError, "n_splits must be at least 1, got 0."),
    (
        discover,
        {"S": S, "ranks": 12},
        ValueError,
        "ranks must lie between 1 and 11",
    ),
    (discover, {"S": asymmetric()}, ValueError, "values must be symmetric"),
    (discover, {"S": S, "device": "tpu"}, ValueError, "device must be 'cpu', 'cuda'"),
    (discover, {"S": S, "checkpoint": "thesis"}, ValueError, "which contains 'chapter.txt'."),
    (
        discover,
        {"S": S, "checkpoint": "empty.csv"},
        ValueError,
        "checkpoint must be a folder, got 'empty.csv', which is",
    ),
    (
        load_discovery,
        {"folder": "nowhere"},
        FileNotFoundError,
        "No such folder: 'nowhere'.",
    ),
    (load_discovery, {"folder": "thesis"}, ValueError, "which has no discovery.json."),
    (load_discovery, {"folder": 3}, TypeError, "folder must be a path, got 3."),
    (save_discovery, {"folder": "thesis"}, ValueError, "which contains other files."),
    (save_discovery, {"folder": "empty.csv"}, ValueError, "which is a file."),
    (methods_text, {"tests": PROPERTIES}, TypeError, "tests must be the result of a hypothesis test, or None, got"),
    (Similarity, {"values": S, "info": 3}, TypeError, "info must be a mapping, got 3."),
    (Similarity.from_factors, {"factors": W, "info": "x"}, TypeError, "info must be a mapping, got 'x'."),
    # Tests of hypotheses.
    (
        dimension_test,
        {"embedding": W, "hypotheses": PROPERTIES[:5]},
        ValueError,
        "hypotheses must have one row for each o",
    ),
    (
        dimension_test,
        {"embedding": W, "hypotheses": np.ones((12, 1))},
        ValueError,
        "hypotheses must vary over the items",
    ),
    (
        dimension_test,
        {"embedding": W[:, :1], "hypotheses": PROPERTIES, "matching": "joint"},
        ValueError,
        "hypotheses must not outnumber the 1 dimensions",
    ),
    (
        dimension_test,
        {"embedding": W, "hypotheses": PROPERTIES, "alternative": "less"},
        ValueError,
        "alternative must be one of",
    ),
    (
        rsa_test,
        {"S": S, "hypotheses": PROPERTIES, "method": "kendall"},
        ValueError,
        "method must be one of",
    ),
    (
        rsa_test,
        {"S": S, "hypotheses": PROPERTIES, "n_permutations": 0},
        ValueError,
        "n_permutations must be at least 1",
    ),
    (rsa_test, {"S": S, "hypotheses": [np.ones((3, 3))]}, ValueError, "(3, 3)"),
    (rsa_test, {"S": S, "hypotheses": S}, ValueError, "pass a list that contains it."),
    (
        combined_test,
        {"S": S, "embedding": W, "hypotheses": PROPERTIES, "weighting": W},
        ValueError,
        "weighting must be one of",
    ),
    (combined_test, {"S": S, "embedding": W[:4], "hypotheses": PROPERTIES}, ValueError, "12"),
    # Metrics.
    (metrics.explained_variance, {"S": S, "W": W[:4]}, ValueError, "got shape (4, 3)"),
    (metrics.explained_variance, {"S": np.ones((4, 4)), "W": W[:4]}, ValueError, "S must vary"),
    (metrics.entropy, {"W": -W}, ValueError, "W must be non-negative"),
    (metrics.entropy, {"W": W, "of": "columns"}, ValueError, "got 'columns'"),
    (metrics.hoyer_sparsity, {"W": np.full((3, 2), INF)}, ValueError, "got inf for item 0, column 0"),
    (metrics.hoyer_sparsity, {"W": "W"}, TypeError, "got str"),
    (metrics.factor_alignment, {"W": W, "W_true": W[:3]}, ValueError, "12"),
    (metrics.link_auc, {"S": LINKS, "W": W[:3]}, ValueError, "got shape (3, 3)"),
    (metrics.link_auc, {"S": LINKS, "W": W, "pairs": [[0, 99]]}, ValueError, "got [0, 99]"),
    (metrics.hold_out_links, {"S": LINKS, "fraction": 1.5}, ValueError, "got 1.5"),
    (metrics.noise_ceiling, {"triplets": TRIPLETS, "min_answers": 1}, ValueError, "min_answers must be"),
    (metrics.noise_ceiling, {"triplets": [[0, 1, 1]]}, ValueError, "three different items in every row"),
    (metrics.pair_correlation, {"W": W, "pairs": [[0, 1]], "ratings": [1, 2]}, ValueError, "got shape (2,)"),
    (metrics.pair_correlation, {"W": W, "pairs": [["cat", "dog"]], "ratings": [1]}, ValueError, "got the text 'cat'"),
    (metrics.readout, {"W": W, "ratings": PROPERTIES, "alphas": [0]}, ValueError, "got [0]"),
    (metrics.readout, {"W": W, "ratings": PROPERTIES, "n_folds": 7}, ValueError, "n_folds = 14"),
    (metrics.triplet_accuracy, {"W": W, "triplets": [[0, 1, 99]]}, ValueError, "got 99"),
    (metrics.triplet_accuracy, {"W": W, "triplets": TRIPLETS, "similarity": 1}, ValueError, "similarity must be"),
    (
        metrics.triplet_probabilities,
        {"W": W, "triplets": TRIPLETS, "temperature": 0},
        ValueError,
        "temperature must be",
    ),
    # Simulated data.
    (simulate.dirichlet, {"n_items": 0, "n_components": 2}, ValueError, "n_items must be at least 1"),
    (simulate.dirichlet, {"n_items": 5, "n_components": 2, "alpha": 0}, ValueError, "alpha must be positive"),
    (simulate.dirichlet, {"n_items": 5, "n_components": 2, "alpha": [1]}, TypeError, "got [1]."),
    (simulate.dirichlet, {"n_items": 10**9, "n_components": 10**6}, MemoryError, "would need"),
    (simulate.factorial, {"levels": [3, 1]}, ValueError, "levels must be at least 2, got 1."),
    (simulate.factorial, {"levels": 3}, TypeError, "levels must list"),
    (simulate.sparse_correlated, {"n_items": 5, "n_components": 2, "density": 1}, ValueError, "density must be"),
    (simulate.sparse_correlated, {"n_items": 5, "n_components": 2, "correlation": "r"}, TypeError, "got 'r'"),
    (simulate.from_embedding, {"W": W, "n_items": 99}, ValueError, "n_items must be at most 12, got 99."),
    (simulate.from_embedding, {"W": [["a"]]}, TypeError, "got the text 'a' in row 0, column 0"),
    (simulate.add_noise, {"S": S, "snr": 2}, ValueError, "snr must be between 0 and 1, got 2."),
    (simulate.add_noise, {"S": S, "snr": None}, TypeError, "snr must be a number, got None."),
    (simulate.add_noise, {"S": without(5), "snr": 0.5}, ValueError, "got none for 1 item: 5"),
    (simulate.add_noise, {"S": changed(S, (1, 2), NAN), "snr": 0.5}, ValueError, "got 2 missing"),
    (simulate.add_feature_noise, {"X": -W, "snr": 0.5}, ValueError, "X must be finite and non-negative, got -"),
    (simulate.add_feature_noise, {"X": "X", "snr": 0.5}, TypeError, "got str"),
    (simulate.mask_pairs, {"S": S, "observed": "half"}, TypeError, "observed must be a number, got 'half'."),
    (simulate.mask_pairs, {"S": S, "observed": 0.5, "keep_diagonal": "y"}, TypeError, "got 'y'"),
    (simulate.detectable_rank, {"W": W}, ValueError, "sigma must be given if snr= is not"),
    (simulate.detectable_rank, {"W": W, "snr": 0.5, "sigma": 0.1}, ValueError, "got 0.1"),
    (simulate.detectable_rank, {"W": W, "snr": 2}, ValueError, "snr must be between 0 and 1, got 2."),
    (simulate.detectable_rank, {"W": W, "sigma": -1}, ValueError, "sigma must be at least 0"),
    (simulate.detectable_rank, {"W": W, "snr": 0.5, "observed": 0}, ValueError, "observed must be above 0, got 0."),
    (simulate.detectable_rank, {"W": -W, "snr": 0.5}, ValueError, "W must be finite and non-negative, got -"),
    (simulate.detectable_rank, {"W": np.ones((5, 1)), "snr": 0.5}, ValueError, "W must give similarities that vary"),
    (simulate.triplet_answers, {"W": [[1.0], [2.0]], "n_answers": 5}, ValueError, "got shape (2, 1)"),
    (simulate.triplet_answers, {"W": [[1.0], [np.nan], [0.0]], "n_answers": 5}, ValueError, "W must be finite"),
    (simulate.triplet_answers, {"W": np.eye(3), "n_answers": 0}, ValueError, "n_answers must be"),
    (simulate.power_study, {"design": W, "snrs": [2.0]}, ValueError, "snrs must be"),
    (simulate.power_study, {"design": W, "n_repeats": 0}, ValueError, "n_repeats must be"),
    # Data sets.
    (datasets.fetch_peterson_animals, {"half": 3}, ValueError, "half must be 1, 2 or None (all ratings), got 3."),
    (datasets.fetch_peterson_animals, {"half": [1]}, ValueError, "half must be 1, 2 or None (all ratings), got [1]."),
    (
        datasets.fetch_word_similarity,
        {"name": "men"},
        ValueError,
        'name must be "simlex999" or "wordsim353", got \'men',
    ),
    (
        datasets.fetch_word_similarity,
        {"name": W},
        ValueError,
        'name must be "simlex999" or "wordsim353", got an object of type ndarray.',
    ),
    # Pictures.
    (plots.alignment, {"result": W}, ValueError, "reference must"),
    (plots.calibration, {"result": W}, TypeError, "result must"),
    (plots.dimension_grid, {"result": W, "page": 9}, ValueError, "page must be between 1 and 1"),
    (plots.dimension_grid, {"result": W, "images": S}, ValueError, "got shape (12,) for item"),
    (plots.dimension_grid, {"result": W, "images": W[:2]}, ValueError, "each of the 12 items, got 2"),
    (plots.dimension_grid, {"result": W, "common_scale": W}, TypeError, "got an object of type ndarray."),
    (plots.embedding_map, {"result": W, "coordinates": W[:3]}, ValueError, "coordinates must"),
    (plots.graph, {"result": S, "embedding": W, "positions": "circle"}, TypeError, "positions must"),
    (plots.graph, {"result": S, "embedding": W[:3]}, ValueError, "got shape (3, 3)"),
    (plots.hypothesis_tests, {"tests": W}, TypeError, "tests must"),
    (plots.item_fingerprint, {"result": W, "item": 99}, ValueError, "item must be a row between 0 and 11, got 99."),
    (plots.item_fingerprint, {"result": W, "item": "cat"}, ValueError, "got 'cat'"),
    (plots.power_curves, {"study": study(), "column": "size"}, ValueError, "column must"),
    (plots.rank_selection, {"result": W}, TypeError, "result must"),
    (plots.reconstruction, {"result": S}, ValueError, "embedding must"),
    (plots.reconstruction, {"result": S, "embedding": W, "max_pairs": 0}, ValueError, "max_pairs must be at least 1"),
    (plots.reliability, {"result": "high"}, TypeError, "result must"),
    (plots.save_figure, {"axes": [], "path": "a.png"}, TypeError, "axes must"),
    (plots.similarity_heatmap, {"result": S, "cmap": "rainbows"}, ValueError, "got 'rainbows'"),
    (plots.similarity_heatmap, {"result": S, "limits": (1, 0)}, ValueError, "got (1, 0)"),
    (plots.similarity_heatmap, {"result": S, "order": 3}, ValueError, "order must hold each row from 0 to 11 once"),
    (plots.similarity_heatmap, {"result": S, "colorbar": W}, TypeError, "got an object of type ndarray."),
    (plots.word_cloud, {"result": W, "dimension": 9}, ValueError, "dimension must be between 1 and n_components = 3"),
    (plots.word_cloud, {"result": W, "labels": NAMES[:3]}, ValueError, "each of the 12 items, got 3."),
]


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
    if isinstance(one, np.ndarray):
        is_same = one.dtype == other.dtype and one.shape == other.shape
        return is_same and (repr(one) == repr(other) if one.dtype == object else one.tobytes() == other.tobytes())
    if sparse.issparse(one):
        return all(same(getattr(one, part), getattr(other, part)) for part in ("data", "indices", "indptr"))
    if isinstance(one, pd.DataFrame):
        return repr(one) == repr(other) and one.dtypes.equals(other.dtypes) and one.index.equals(other.index)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one is other or one == other or (one != one and other != other)


def name_of(row):
    return f"{row[0].__name__}({', '.join(row[1])})"


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_bad_input_gets_a_sentence_and_nothing_else_happens(row):
    function, arguments, error, fragment = row
    before = copy.deepcopy(arguments)
    with pytest.raises(error, match=re.escape(fragment)) as caught:
        function(**arguments)
    assert str(caught.value).endswith((".", "?"))
    assert "\n" not in str(caught.value)
    for name in arguments:
        assert same(arguments[name], before[name]), name


def test_the_table_is_long_and_has_a_row_for_everything_public():
    assert len(TABLE) >= 80
    covered = {STANDS_FOR.get(row[0], row[0].__name__) for row in TABLE}
    # Made by functions, never by users.
    results = {"Calibration", "Consensus", "DetectableDimensions", "HypothesisTests", "ParameterError", "RankSelection"}
    rooms = {"datasets", "metrics", "plots", "simulate"}
    public = set(simdims.__all__) - results - rooms - {"__version__"}
    for room in (metrics, plots, simulate):
        public |= {name for name in room.__all__ if inspect.isfunction(getattr(room, name))}
    fetching = inspect.getmembers(datasets, inspect.isfunction)
    public |= {
        name for name, function in fetching if name.startswith("fetch_") and inspect.signature(function).parameters
    }
    assert not public - covered


# --- warnings, and what needs more than this machine has --------------------------------------------------------


@pytest.mark.filterwarnings("default::UserWarning")
def test_what_may_be_meant_so_is_a_warning():
    distances = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    with pytest.warns(UserWarning, match="values looks like a dissimilarity matrix: its diagonal is zero"):
        as_similarity(distances)
    alone = without(5)
    alone[5, 5] = 1.0
    with pytest.warns(UserWarning, match=r"Observed on the diagonal of values only: 'item 5' \(1 item\)"):
        as_similarity(alone, labels=NAMES)


def test_a_pair_in_one_triangle_is_enough_and_two_that_differ_are_not():
    one_sided = S.copy()
    one_sided[np.tril_indices(12, -1)] = NAN
    np.testing.assert_array_equal(as_similarity(one_sided).values, S)
    one_sided[7, 2] = 0.9
    with pytest.raises(ValueError, match=r"values must be symmetric, .* 0\.9"):
        as_similarity(one_sided)


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
