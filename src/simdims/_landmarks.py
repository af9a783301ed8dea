"""Nystroem's approximation of the RBF kernel: factors from the similarities of all items to a few landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims import _memory, _threads
from simdims._parallel import generator_of

# Landmarks where no number is given: the error falls with their number, the cost of a sweep rises with it.
DEFAULT_LANDMARKS = 1000

# Rows of features that meet the landmarks at a time.
_BLOCK = 4096

# Up to this many items the median distance is that of all pairs, as for a matrix; beyond, that of a sample.
_ALL_PAIRS_UP_TO = 2000
_MEDIAN_PAIRS = 200_000

# Pairs on which the approximation is compared with the kernel itself.
_CHECKED_PAIRS = 10_000


def rbf_factors(
    X: NDArray[np.floating], bandwidth: float, n_landmarks: int | None, random_state: Any
) -> tuple[NDArray[np.floating], dict[str, Any]]:
    """Factors F with F F^T ~ exp(-|x - y|^2 / (2 sigma^2)), and what is known of them.

    Parameters
    ----------
    X : ndarray of shape (n_items, n_features)
    bandwidth : float
        sigma as a multiple of the median distance between two different items.
    n_landmarks : int or None
        Items whose similarities to all others are computed.
    random_state : int, RandomState or None
        Seed of the landmarks and of the sampled pairs.

    Returns
    -------
    factors : ndarray of shape (n_items, n_landmarks)
    info : dict
        sigma, the number of pairs that its median is of, the landmarks and the error of the approximation.
    """
    from sklearn.kernel_approximation import Nystroem

    rng = generator_of(random_state)
    n = len(X)
    m = min(n, DEFAULT_LANDMARKS if n_landmarks is None else int(n_landmarks))
    _memory.require(
        n * m * X.dtype.itemsize + 2 * 8 * _BLOCK * (m + X.shape[1]) + 4 * 8 * m * m,
        f"The similarities of {n} items to {m} landmarks",
        "pass float32 features or fewer n_landmarks",
    )
    centre, unit = centre_and_unit(X)
    median, n_median_pairs = _median_distance(X, unit, rng)
    if median == 0:
        raise ValueError(no_distance_sentence())
    gamma = 0.5 / (bandwidth * median) ** 2
    chosen = np.sort(rng.permutation(n)[:m])
    nystroem = Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=rng)
    with _threads.one_blas_thread():  # a decomposition of this size gains little from a second one
        nystroem.fit((X[chosen] - centre) / unit)  # in float64: the inverse square root of float32 numbers is noise
    factors = np.empty((n, m), X.dtype)
    for start in range(0, n, _BLOCK):
        factors[start : start + _BLOCK] = nystroem.transform((X[start : start + _BLOCK] - centre) / unit)
    return factors, {
        "sigma": bandwidth * median * unit,
        "sigma_pairs": n_median_pairs,
        "bandwidth": bandwidth,
        "approximation": "nystroem",
        "n_landmarks": m,
        "approximation_error": _sampled_error(X, unit, gamma, factors, rng),
    }


def centre_and_unit(X: NDArray[np.floating]) -> tuple[NDArray[np.float64], float]:
    """A point amid the items and the largest difference from it.

    Distances from such a point are the same and lose fewer digits; it is the median, because of outliers. In units of
    the largest difference their squares neither overflow nor vanish.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        centre = np.median(X[:: max(1, len(X) // 1000)].astype(np.float64), axis=0)
        unit = max(float(np.abs(X[start : start + _BLOCK] - centre).max()) for start in range(0, len(X), _BLOCK))
    if not np.isfinite(unit):
        largest = float(np.abs(X).max())
        raise ValueError(f"X must be small enough to be subtracted, got a largest of {largest:g}: divide by it.")
    return centre, unit or 1.0


def no_distance_sentence() -> str:
    """What is wrong where the median distance is zero."""
    return (
        "X must differ between most items for kernel='rbf', got a median distance of 0: over half of them are the "
        "same. Pass a callable with a bandwidth of your own."
    )


def _median_distance(X: NDArray[np.floating], unit: float, rng: np.random.RandomState) -> tuple[float, int]:
    """The median distance between two different items, of all pairs or of a sample, and the number of pairs."""
    n = len(X)
    if n == 1:
        return 1.0, 0
    first, second = np.triu_indices(n, 1) if n <= _ALL_PAIRS_UP_TO else draw_pairs(n, _MEDIAN_PAIRS, rng)
    return float(np.median(np.sqrt(_squared_distances(X, unit, first, second)))), len(first)


def draw_pairs(n_items: int, n_pairs: int, rng: np.random.RandomState) -> tuple[NDArray, NDArray]:
    """Pairs of two different items, each drawn from all with replacement."""
    first = rng.randint(n_items, size=n_pairs)
    second = (first + rng.randint(1, n_items, size=n_pairs)) % n_items
    return first, second


def _squared_distances(X: NDArray[np.floating], unit: float, first: NDArray, second: NDArray) -> NDArray[np.float64]:
    """|x - y|^2 of listed pairs, in blocks."""
    squared = np.empty(len(first))
    block = max(2**20 // X.shape[1], 1)
    for start in range(0, len(first), block):
        e = slice(start, start + block)
        difference = (X[first[e]].astype(np.float64) - X[second[e]]) / unit
        np.einsum("ed,ed->e", difference, difference, out=squared[e])
    return squared


def _sampled_error(
    X: NDArray[np.floating], unit: float, gamma: float, factors: NDArray[np.floating], rng: np.random.RandomState
) -> dict[str, Any]:
    """How far F F^T is from the kernel on a sample of pairs (all, where they are few) and on the diagonal."""
    n = len(X)
    n_pairs = n * (n - 1) // 2
    first, second = np.triu_indices(n, 1) if n_pairs <= _CHECKED_PAIRS else draw_pairs(n, _CHECKED_PAIRS, rng)
    exact = np.exp(-gamma * _squared_distances(X, unit, first, second))
    approximate = np.empty(len(first))
    block = max(2**20 // factors.shape[1], 1)
    for start in range(0, len(first), block):
        e = slice(start, start + block)
        np.einsum("ed,ed->e", factors[first[e]], factors[second[e]], out=approximate[e], dtype=np.float64)
    error = approximate - exact
    own = np.einsum("id,id->i", factors, factors, dtype=np.float64)
    return {
        "n_pairs": len(first),
        "rms": float(np.sqrt(np.mean(error**2))) if len(first) else 0.0,
        "largest": float(np.abs(error).max(initial=0.0)),
        "similarity_sd": float(exact.std()) if len(first) else 0.0,
        "share_below_zero": float(np.mean(approximate < 0)) if len(first) else 0.0,
        "smallest": float(approximate.min(initial=1.0)),
        "diagonal_rms": float(np.sqrt(np.mean((own - 1.0) ** 2))),
    }
