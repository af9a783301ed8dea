"""Any argument may be junk: it is refused by the function itself, in a sentence of ours, whatever it is."""

import copy
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

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
    return SRF(3, random_state=0, max_iter=5).fit(Similarity(W @ W.T, labels=NAMES)).transform(S)


def score(S):
    return SRF(3, random_state=0, max_iter=5).fit(Similarity(W @ W.T, labels=NAMES)).score(S)


#: What no argument takes, or, where it does, may well take.
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
        {"path": "nowhere.csv", "key": None, "form": None, "labels": None, "absent": None, "symmetrize": None},
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


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=[call[0].__name__ for call in CALLS])
def test_any_argument_may_be_junk_and_is_then_refused_by_the_function_itself(function, arguments):
    """Not by NumPy or pandas, that is, which know nothing of what it was meant to be."""
    for name, (kind, value) in product(arguments, JUNK.items()):
        given = copy.deepcopy({**arguments, name: value})
        try:
            function(**given)
        except (ValueError, TypeError, FileNotFoundError, MemoryError) as error:
            refusal = error
        else:
            continue
        what = f"{name} = {kind}: {refusal!r}"
        assert type(refusal) in (ValueError, TypeError, FileNotFoundError, MemoryError), what
        words = ("must", "need", "cannot", "is used by", "is expecting", "should match")
        assert any(word in str(refusal) for word in words), what
        if isinstance(value, np.ndarray | pd.DataFrame):
            assert repr(given[name]) == repr(value), what
