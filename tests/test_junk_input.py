"""Any argument may be junk: the function itself refuses it, in a sentence of ours, or it is on a list of what is taken.

A function is called with one argument replaced by junk, all others as they should be. What it accepts is listed below,
with what has to come of it; anything else that is accepted fails, and so does anything on the list that is refused.
"""

import copy
import inspect
import re

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse

from simdims import (
    SRF,
    Similarity,
    align,
    as_similarity,
    dimension_test,
    from_associations,
    from_dissimilarity,
    from_features,
    from_ratings,
    from_triplets,
    load_similarity,
    metrics,
    rsa_test,
    scree_test,
    simulate,
    split_half_reliability,
)
from simdims._parameters import ParameterError, ParameterTypeError

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]

NAN, INF = float("nan"), float("inf")
W = simulate.dirichlet(12, 3, random_state=0)
S = W @ W.T
NAMES = [f"item {i}" for i in range(12)]
TRIPLETS = np.array([np.random.RandomState(seed).permutation(12)[:3] for seed in range(40)])
PROPERTIES = pd.DataFrame(np.random.RandomState(0).rand(12, 2), columns=["size", "colour"])
RATINGS = pd.DataFrame({"a": ["cat", "dog", "car"], "b": ["dog", "car", "cat"], "rating": [1.0, 2.0, 3.0]})
WORDS = pd.DataFrame({"cue": ["cat", "dog"], "response": ["dog", "cat"], "count": [3, 2]})
LINKS = Similarity(sparse.csr_array(np.triu(S > 0.3, 1).astype(float)), absent="zero")
COLUMNS = {"item1": "a", "item2": "b", "rating": "rating"}


def transform(S):
    return fitted().transform(S)


def score(S):
    return fitted().score(S)


def fitted():
    return SRF(3, random_state=0, max_iter=5).fit(Similarity(W @ W.T, labels=NAMES))


#: What hardly an argument takes.
JUNK = {
    "None": None, "text": "junk", "empty text": "", "-1": -1, "nan": NAN, "object": object(), "complex": 1j,
    "bytes": b"x", "empty list": [], "ragged": [[1], [1, 2]], "3-d": np.zeros((2, 2, 2)), "0-d": np.array(3),
    "nothing": np.zeros((0, 0)),
    "NaN": np.full((12, 3), NAN), "infinite": np.full((12, 12), INF), "texts": np.full((12, 12), "a"),
    "objects": np.full((12, 12), None), "dates": np.zeros((12, 12), dtype="M8[s]"),
    "records": np.zeros((12, 12), dtype=[("a", float)]), "sparse": sparse.csr_array(np.eye(12)),
    "frame": pd.DataFrame({"a": ["x", "y"]}), "empty frame": pd.DataFrame(),
    "same names": pd.DataFrame(np.eye(12), index=["a"] * 12, columns=["a"] * 12),
    "levels": pd.DataFrame(np.eye(12), index=pd.MultiIndex.from_product([range(3), range(4)])),
    "series": pd.Series([1, 2]), "dictionary": {"a": 1}, "set": {1, 2}, "huge": np.full((12, 12), 1e308),
}  # fmt: skip

CALLS = [
    (Similarity, {"values": S, "labels": NAMES, "weights": None, "absent": None}),
    (as_similarity, {"x": S, "labels": NAMES, "weights": None, "absent": None, "symmetrize": None}),
    (Similarity.from_factors, {"factors": W, "labels": NAMES, "signed": False}),
    (transform, {"S": S}),
    (score, {"S": S}),
    (align, {"W": W, "reference": W, "method": "cosine"}),
    (scree_test, {"S": S}),
    (
        from_features,
        {"X": W, "kernel": "rbf", "bandwidth": 0.4, "labels": NAMES, "implicit": False, "n_landmarks": None},
    ),
    (from_ratings, {"table": RATINGS, **COLUMNS, "participant": None, "low": 0, "high": 5, "weights": None}),
    (from_associations, {"table": WORDS, "cue": "cue", "response": "response", "count": "count", "absent": 0.03}),
    (from_dissimilarity, {"D": [1.0, 2.0, 3.0], "method": "max", "sigma": None, "negative": None, "labels": None}),
    (
        from_triplets,
        {"triplets": TRIPLETS, "odd": -1, "n_items": 12, "smoothing": 1.0, "weights": None, "labels": None},
    ),
    (
        load_similarity,
        {"path": "S.csv", "key": None, "form": None, "labels": None, "absent": None, "symmetrize": None},
    ),
    (split_half_reliability, {"embeddings": [W, W], "n_splits": 2, "random_state": 0}),
    (
        dimension_test,
        {"embedding": W, "hypotheses": PROPERTIES, "n_permutations": 9, "matching": "joint", "alpha": 0.05},
    ),
    (rsa_test, {"S": S, "hypotheses": PROPERTIES, "n_permutations": 9, "method": "pearson", "random_state": 0}),
    (metrics.explained_variance, {"S": S, "W": W}),
    (metrics.hoyer_sparsity, {"W": W, "of": "items"}),
    (metrics.factor_alignment, {"W": W, "W_true": W}),
    (metrics.link_auc, {"S": LINKS, "W": W, "pairs": None, "random_state": 0}),
    (metrics.noise_ceiling, {"triplets": np.vstack([TRIPLETS, TRIPLETS]), "odd": -1, "min_answers": 2}),
    (metrics.pair_correlation, {"W": W, "pairs": [[0, 1], [1, 2], [2, 3]], "ratings": [1, 2, 3], "labels": None}),
    (metrics.triplet_accuracy, {"W": W, "triplets": TRIPLETS, "odd": -1, "similarity": "dot", "labels": None}),
    (metrics.triplet_probabilities, {"W": W, "triplets": TRIPLETS, "temperature": 1.0}),
    (simulate.dirichlet, {"n_items": 5, "n_components": 2, "alpha": 0.3, "random_state": 0}),
    (simulate.factorial, {"levels": [2, 2], "n_replicates": 1}),
    (simulate.sparse_correlated, {"n_items": 5, "n_components": 2, "density": 0.3, "correlation": 0.3}),
    (simulate.from_embedding, {"W": W, "n_items": 5, "n_components": 2, "random_state": 0}),
    (simulate.add_noise, {"S": S, "snr": 0.5, "random_state": 0}),
    (simulate.add_feature_noise, {"X": W, "snr": 0.5, "random_state": 0}),
    (simulate.mask_pairs, {"S": S, "observed": 0.5, "random_state": 0, "keep_diagonal": True}),
]


#: What an argument may be called in the sentence that refuses it: S is checked as the values of a Similarity, the names
#: of a table as labels, and scikit-learn has its own words for columns that were not fitted.
CALLED = {
    "S": "values|labels|X|feature names", "x": "values|labels", "X": "labels", "W": "values|labels", "W_true": "labels",
    "reference": "labels", "factors": "values", "embeddings": "Reliability",
}  # fmt: skip

EYE, HUGE = np.eye(12), 1e308

#: Errors of our own, not of a library.
REFUSALS = (ValueError, TypeError, FileNotFoundError, MemoryError, ParameterError, ParameterTypeError)


def has_values(value):
    return lambda found: np.array_equal(found.values, np.full((12, 12), value))


def has_weights(found):
    return np.array_equal(found.weights, np.full((12, 12), HUGE))


def has_columns_of(W):
    """The same columns, in whatever order."""
    return lambda found: np.array_equal(
        np.sort(np.asarray(found.embedding), axis=1), np.sort(np.asarray(W, dtype=float), axis=1)
    )


def is_least_squares(found):
    """Of rows of the identity, by an independent solver."""
    basis = fitted().embedding_
    return np.allclose(found, [optimize.nnls(basis, row)[0] for row in EYE], atol=1e-6)


def explains(found):
    """S has no pair in common with the identity: what is explained is the share of squares about the mean, and less."""
    pairs = S[np.triu_indices(12, 1)]
    return np.isclose(found, 1 - np.sum(pairs**2) / np.sum((pairs - pairs.mean()) ** 2))


def correlations_with_identity(found):
    r = np.corrcoef(EYE.T, W.T)[:12, 12:]
    rows, columns = optimize.linear_sum_assignment(-r)
    return np.allclose(np.sort(found.correlations), np.sort(r[rows, columns]))


def is_about_chance(found):
    """Dimensions that one item each has; with nine permutations no p-value is below 0.1."""
    return bool(found.table["statistic"].between(-1, 1).all() and found.table["pvalue"].between(0.1, 1).all())


def is_nothing(found):
    """Constant dimensions correlate with nothing."""
    return is_constant(0)(found.table["statistic"]) and is_constant(1)(found.table["pvalue"])


def rescaled_from_minus_1(found):
    cat, dog = found.labels.index("cat"), found.labels.index("dog")
    return np.isclose(found.values[cat, dog], (1 + 1) / (5 + 1))


def counts_rows(found):
    """Every row is one answer."""
    expected = from_associations(WORDS.assign(count=1), absent=0.03)
    return np.array_equal(found.values.toarray(), expected.values.toarray())


def is_constant(value):
    return lambda found: bool(np.allclose(found, value))


#: function, argument -> junk that is accepted, and what to hold the result to. None where it is the default, and -1 for
#: `odd`, the last column, are not junk; see IS_DEFAULT.
ACCEPTED = {
    ("Similarity", "values"): {"huge": has_values(HUGE)},
    ("Similarity", "weights"): {"huge": has_weights},
    ("as_similarity", "x"): {"huge": has_values(HUGE)},
    ("as_similarity", "weights"): {"huge": has_weights},
    ("from_factors", "factors"): {"huge": lambda found: np.array_equal(found.factors, np.full((12, 12), HUGE))},
    ("transform", "S"): {"levels": is_least_squares},
    ("align", "W"): {"levels": has_columns_of(EYE), "huge": has_columns_of(np.full((12, 12), HUGE))},
    ("align", "reference"): {"levels": has_columns_of(W), "huge": has_columns_of(W)},
    ("scree_test", "S"): {"levels": is_constant(1)},
    ("from_ratings", "low"): {"-1": rescaled_from_minus_1},
    ("from_associations", "count"): {"None": counts_rows},
    ("dimension_test", "embedding"): {"levels": is_about_chance, "huge": is_nothing},
    ("explained_variance", "W"): {"levels": explains, "huge": is_constant(-np.inf)},
    ("hoyer_sparsity", "W"): {"levels": is_constant(1), "huge": is_constant(0)},
    ("factor_alignment", "W"): {
        "levels": correlations_with_identity,
        "huge": lambda found: is_constant(0)(found.correlations),
    },
    ("factor_alignment", "W_true"): {
        "levels": correlations_with_identity,
        "huge": lambda found: is_constant(0)(found.correlations),
    },
    ("link_auc", "W"): {"levels": is_constant(0.5), "huge": is_constant(0.5)},
    ("pair_correlation", "W"): {
        "levels": lambda found: np.isnan(found.correlation),
        "huge": lambda found: np.isnan(found.correlation),
    },
    ("triplet_accuracy", "W"): {"levels": is_constant(1 / 3), "huge": is_constant(1 / 3)},
    ("triplet_probabilities", "W"): {"levels": is_constant(1 / 3), "huge": is_constant(1 / 3)},
    ("from_embedding", "W"): {
        kind: lambda found: found.shape == (5, 2) and set(np.unique(found)) == {0.0, 1.0}
        for kind in ("same names", "levels")
    },
    ("mask_pairs", "S"): {
        "levels": lambda found: np.array_equal(found[~np.isnan(found)], EYE[~np.isnan(found)]),
        "huge": lambda found: np.nanmin(found) == HUGE,
    },
}

#: What means the same as leaving the argument out.
IS_DEFAULT = {"None": None, "-1": -1}


def is_default(function, name, kind):
    default = inspect.signature(function).parameters[name].default
    return kind in IS_DEFAULT and default is not inspect.Parameter.empty and default == IS_DEFAULT[kind]


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=[call[0].__name__ for call in CALLS])
def test_any_argument_may_be_junk_and_is_then_refused_by_the_function_itself(
    function, arguments, tmp_path, monkeypatch
):
    """Not by NumPy or pandas, that is, which know nothing of what it was meant to be."""
    monkeypatch.chdir(tmp_path)
    np.savetxt("S.csv", S, delimiter=",")
    function(**copy.deepcopy(arguments))  # nothing is refused but for the junk
    for name in arguments:
        accepted = ACCEPTED.get((function.__name__, name), {})
        for kind, value in JUNK.items():
            what = f"{name} = {kind}"
            given = copy.deepcopy({**arguments, name: value})
            if is_default(function, name, kind):
                left_out = {other: value for other, value in arguments.items() if other != name}
                if name != "random_state":
                    assert repr(function(**given)) == repr(function(**copy.deepcopy(left_out))), what
            elif kind in accepted:
                assert accepted[kind](function(**given)), what
            else:
                assert_refused(function, given, name, what)
            if isinstance(value, np.ndarray | pd.DataFrame):
                assert repr(given[name]) == repr(value), what


def assert_refused(function, given, name, what):
    try:
        function(**given)
    except (ValueError, TypeError, FileNotFoundError, MemoryError) as error:
        refusal = error
    else:
        pytest.fail(f"{what} was accepted")
    assert type(refusal) in REFUSALS, f"{what}: {refusal!r}"
    called = repr(given[name]) if isinstance(refusal, FileNotFoundError) else rf"\b({name}|{CALLED.get(name, name)})\b"
    assert re.search(called, str(refusal)), f"{what}: {refusal!r}"


def test_what_is_accepted_is_asked_for():
    """Every entry of the list is a call of the test above."""
    asked = {(function.__name__, name) for function, arguments in CALLS for name in arguments}
    assert set(ACCEPTED) <= asked
    assert {kind for kinds in ACCEPTED.values() for kind in kinds} <= set(JUNK)
