"""align puts columns in the order of a reference; central_run finds the run that stands for all."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from simdims import simulate
from simdims.consensus import align, central_run


def loadings(n_items=40, n_components=5, seed=0):
    return simulate.dirichlet(n_items, n_components, random_state=seed)


def column_similarity(W, reference, method):
    """Rows: columns of the reference; by the definitions."""
    if method == "correlation":
        W, reference = W - W.mean(axis=0), reference - reference.mean(axis=0)
    return np.array([[w @ v / np.linalg.norm(w) / np.linalg.norm(v) for w in W.T] for v in reference.T])


@pytest.mark.parametrize("method", ["correlation", "cosine"])
@pytest.mark.parametrize("seed", range(5))
def test_align_undoes_a_permutation_and_small_noise(method, seed):
    rng = np.random.default_rng(seed)
    W = loadings(seed=seed)
    shuffle = rng.permutation(5)
    noisy = np.maximum(W + rng.normal(scale=0.01, size=W.shape), 0)
    found = align(noisy[:, shuffle], W, method=method)
    np.testing.assert_array_equal(found.embedding, noisy)
    np.testing.assert_array_equal(shuffle[found.permutation], np.arange(5))
    np.testing.assert_array_equal(found.partners, np.arange(5))
    assert found.similarity.min() > 0.99


@pytest.mark.parametrize("method", ["correlation", "cosine"])
@pytest.mark.parametrize(("n_columns", "n_reference"), [(4, 4), (5, 3), (3, 5), (1, 1), (1, 4)])
def test_the_matching_is_the_best_of_all(method, n_columns, n_reference):
    W, reference = loadings(30, 5, seed=1)[:, :n_columns], loadings(30, 5, seed=2)[:, :n_reference]
    C = column_similarity(W, reference, method)
    wide = C if n_reference <= n_columns else C.T
    best = max(sum(wide[i, order[i]] for i in range(len(wide))) for order in permutations(range(wide.shape[1])))
    found = align(W, reference, method=method)
    matched = found.partners >= 0
    assert found.similarity[matched].sum() == pytest.approx(best)
    np.testing.assert_allclose(found.similarity[matched], C[found.partners[matched], found.permutation[matched]])
    np.testing.assert_array_equal(found.embedding, W[:, found.permutation])
    assert found.mean == pytest.approx(best / min(n_columns, n_reference))


def test_columns_without_a_partner_come_last_in_their_own_order():
    W = loadings(40, 5)
    found = align(W, W[:, [3, 1]])
    np.testing.assert_array_equal(found.permutation, [3, 1, 0, 2, 4])
    np.testing.assert_array_equal(found.partners, [0, 1, -1, -1, -1])
    np.testing.assert_allclose(found.similarity, [1, 1, np.nan, np.nan, np.nan])


def test_a_reference_with_more_columns_leaves_some_of_its_own_alone():
    W = loadings(40, 5)
    found = align(W[:, [4, 0, 2]], W)
    np.testing.assert_array_equal(found.partners, [0, 2, 4])
    np.testing.assert_array_equal(found.permutation, [1, 2, 0])
    np.testing.assert_array_equal(found.embedding, W[:, [0, 2, 4]])


@pytest.mark.parametrize("method", ["correlation", "cosine"])
@pytest.mark.parametrize("fill", [0.0, 0.3])
def test_constant_columns_take_what_is_left(method, fill):
    W = loadings(40, 4)
    W[:, 1] = fill
    found = align(W[:, [1, 3, 0, 2]], W, method=method)
    np.testing.assert_array_equal(found.embedding, W)
    expected = 0.0 if fill == 0 or method == "correlation" else 1.0
    np.testing.assert_allclose(found.similarity, [1, expected, 1, 1])


def test_a_frame_stays_a_frame_and_names_travel_with_their_columns():
    frame = pd.DataFrame(loadings(6, 3), index=list("abcdef"), columns=["x", "y", "z"])
    found = align(frame[["z", "x", "y"]], frame).embedding
    pd.testing.assert_frame_equal(found, frame)
    assert isinstance(align(frame.to_numpy(), frame).embedding, np.ndarray)


def test_align_keeps_the_precision_and_changes_nothing():
    W = loadings().astype(np.float32)
    reference = W[:, ::-1].copy()
    before = W.copy(), reference.copy()
    found = align(W, reference).embedding
    assert found.dtype == np.float32
    found[:] = 0
    np.testing.assert_array_equal(W, before[0])
    np.testing.assert_array_equal(reference, before[1])


NAMED = pd.DataFrame(loadings(4, 2), index=list("abcd"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("method", {"method": "cosines"}),
        ("method", {"method": None}),
        ("reference", {"reference": loadings(5, 2)}),
        ("reference", {"reference": loadings(4, 2) * np.nan}),
        ("reference", {"W": NAMED, "reference": NAMED.iloc[::-1]}),
        ("W", {"W": loadings(4, 2)[0]}),
        ("W", {"W": loadings(1, 2), "reference": loadings(1, 2)}),
        ("W", {"W": [["a", "b"]]}),
    ],
)
def test_align_names_a_bad_argument(name, arguments):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must"):
        align(**{"W": loadings(4, 2), "reference": loadings(4, 2), **arguments})


def slow_central_run(runs, reference):
    """Closest to the element-wise median, all runs aligned to `reference`; orders by trying all."""
    aligned = []
    for run in runs:
        C = column_similarity(run, reference, "correlation")
        orders = permutations(range(C.shape[1]))
        order = max(orders, key=lambda order: sum(C[k, order[k]] for k in range(len(C))))
        aligned.append(run[:, list(order)])
    median = np.median(aligned, axis=0)
    return int(np.argmin([np.sqrt(np.sum((run - median) ** 2)) for run in aligned]))


@pytest.mark.parametrize("seed", range(5))
def test_the_central_run_is_the_closest_to_the_median(seed):
    rng = np.random.default_rng(seed)
    W = loadings(30, 4, seed=seed)
    runs = [(W + rng.normal(scale=0.05, size=W.shape))[:, rng.permutation(4)] for _ in range(7)]
    assert central_run(runs) == slow_central_run(runs, W)
    shuffled = [run[:, rng.permutation(4)] for run in runs]
    assert central_run(np.stack(shuffled)) == central_run(runs)


@pytest.mark.parametrize("place", range(5))
def test_a_run_that_differs_is_not_the_central_one(place):
    rng = np.random.default_rng(place)
    W = loadings(30, 4)
    runs = [(W + rng.normal(scale=0.02, size=W.shape))[:, rng.permutation(4)] for _ in range(4)]
    runs.insert(place, loadings(30, 4, seed=99))
    assert central_run(runs) != place


def test_one_run_is_its_own_centre():
    assert central_run([loadings()]) == 0
