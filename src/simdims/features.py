"""From feature vectors (brain responses, activations, pixels) to similarities: kernels that cannot be negative."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims import _memory
from simdims.similarity import Similarity

Kernel = Callable[[NDArray, NDArray], NDArray]

# Rows of features that are multiplied with each other at a time.
_BLOCK = 1024

# The search for the median: bins of a histogram, how many entries are few enough to sort, and most rounds (ties).
_BINS = 1024
_FEW = 1_000_000
_NARROWINGS = 5


def from_features(
    X: Any,
    *,
    kernel: str | Kernel = "auto",
    bandwidth: float = 0.4,
    labels: Sequence[str] | None = None,
    implicit: bool = False,
) -> Similarity:
    """Similarities between items from their features.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_items, n_features)
        One row of finite numbers an item. The index of a DataFrame becomes the labels.
    kernel : {"auto", "linear", "rbf", "cosine"} or callable, default="auto"
        "linear" is x . y, "rbf" is exp(-|x - y|^2 / (2 sigma^2)), "cosine" is x . y / (|x| |y|) with negative values
        clipped to zero and a warning that counts them. "auto" is "linear" where no feature is negative, else "rbf". A
        callable gets two arrays of rows and returns the matrix of their similarities, like those of
        ``sklearn.metrics.pairwise``.
    bandwidth : float, default=0.4
        sigma of the RBF kernel as a multiple of the median distance between two different items. The median is exact.
    labels : sequence, optional
        One distinct name an item.
    implicit : bool, default=False
        Keep the features as factors and never build the n_items x n_items matrix; for the linear kernel of non-negative
        features.

    Returns
    -------
    Similarity
        float32 where X is, else float64. `info` holds the kernel, and sigma for "rbf".

    References
    ----------
    SRF, Methods, "Constructing similarity matrices".

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import from_features
    >>> from_features(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])).values
    array([[1. , 0.6, 0. ],
           [0.6, 1. , 0.8],
           [0. , 0.8, 1. ]])
    """
    features, index = _clean_features(X)
    labels = index if labels is None else labels
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, int | float) or not 0 < bandwidth < np.inf:
        raise ValueError(f"bandwidth must be a positive, finite number, got {bandwidth!r}.")
    if not callable(kernel) and kernel not in ("auto", "linear", "rbf", "cosine"):
        raise ValueError(f"kernel must be 'auto', 'linear', 'rbf', 'cosine' or a callable, got {kernel!r}.")
    if kernel == "auto":
        kernel = "linear" if features.min() >= 0 else "rbf"
    info: dict[str, Any] = {
        "source": "features",
        "kernel": getattr(kernel, "__name__", "callable") if callable(kernel) else kernel,
        "n_features": features.shape[1],
    }
    if implicit:
        _refuse_implicit(kernel, features)
        return Similarity.from_factors(features, labels, info=info)
    n = len(features)
    _memory.require(
        n * n * features.dtype.itemsize,
        f"A matrix of {n} x {n} similarities",
        "pass float32 features, fewer items, or implicit=True with a linear kernel",
    )
    if kernel == "rbf":
        values, info["sigma"] = _rbf(features, bandwidth)
        info["bandwidth"] = bandwidth
    elif kernel == "cosine":
        values, info["clipped_pairs"] = _cosine(features)
    elif kernel == "linear":
        values = features @ features.T
    else:
        values = _called(kernel, features)
    return Similarity(values, labels, info=info)


def _clean_features(X: Any) -> tuple[NDArray[np.floating], tuple[str, ...] | None]:
    """Features as floats, and the names that a DataFrame gives its rows."""
    if sparse.issparse(X):
        raise TypeError(
            "X must be dense, got a sparse matrix: pass X.toarray(), or Similarity(X @ X.T, absent='zero')."
        )
    pandas = sys.modules.get("pandas")
    index = None
    if pandas is not None and isinstance(X, pandas.DataFrame):
        if not isinstance(X.index, pandas.RangeIndex):
            index = tuple(map(str, X.index))
        _refuse_text(X)
    features = np.asarray(X)
    if features.ndim != 2 or 0 in features.shape:
        raise ValueError(f"X must have a row for each item and a column for each feature, got shape {features.shape}.")
    if features.dtype.kind not in "biufO":
        raise TypeError(f"X must hold numbers, got dtype {features.dtype}.")
    kept = features.dtype in (np.float32, np.float64)
    features = features if kept else _as_floats(features)
    known = np.isfinite(features).all(axis=1)
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        name = f"row {row}" if index is None else f"row {row} ({index[row]!r})"
        raise ValueError(
            f"X must be finite, got NaN or infinity in {name} and {np.count_nonzero(~known) - 1} other rows: leave "
            "those items out, or fill the gaps first."
        )
    return features, index


def _as_floats(features: NDArray) -> NDArray[np.floating]:
    try:
        return features.astype(np.float32 if features.dtype == np.float16 else np.float64)
    except (TypeError, ValueError):
        raise TypeError("X must hold numbers, got an array of objects that are not.") from None


def _refuse_text(frame: Any) -> None:
    for column in frame.columns:
        if frame[column].dtype.kind not in "biuf":
            raise TypeError(
                f"X must hold numbers, got dtype {frame[column].dtype} in column {str(column)!r}: make it the index if "
                "it names the items."
            )


def _refuse_implicit(kernel: Any, features: NDArray) -> None:
    if kernel != "linear":
        raise ValueError(
            f"implicit=True needs the linear kernel, whose factors the features are, got kernel={kernel!r}: pass "
            "non-negative features with kernel='linear'."
        )
    if features.min() < 0:
        raise ValueError(
            f"implicit=True needs non-negative features, so that the similarities are, got "
            f"{np.count_nonzero(features < 0)} negative values."
        )


def _rbf(X: NDArray, bandwidth: float) -> tuple[NDArray, float]:
    """exp(-|x - y|^2 / (2 sigma^2)) with sigma = bandwidth x the median distance, in the memory of the result."""
    values = np.empty((len(X), len(X)), X.dtype)
    # Distances from a point amid the items are the same and lose fewer digits; the median, because of outliers.
    centre = np.median(X[:: max(1, len(X) // 1000)].astype(np.float64), axis=0)
    for rows, columns, block in _products(X, centre):
        own, others = (np.einsum("id,id->i", part, part) for part in block[1:])
        squared = np.maximum(own[:, None] + others - 2 * block[0], 0)
        values[rows, columns] = squared
        values[columns, rows] = squared.T
    np.fill_diagonal(values, 0)
    median = _median_distance(values)
    if median == 0:
        raise ValueError(
            "X must differ between most items for kernel='rbf', got a median distance of 0: over half of them are "
            "the same. Pass a callable with a bandwidth of your own."
        )
    sigma = bandwidth * median
    for start in range(0, len(X), _BLOCK):
        rows_of = values[start : start + _BLOCK]
        np.exp(np.multiply(rows_of, -0.5 / sigma**2, out=rows_of), out=rows_of)
    return values, sigma


def _products(X: NDArray, centre: NDArray | float) -> Iterator[tuple[slice, slice, tuple[NDArray, NDArray, NDArray]]]:
    """Blocks of the upper triangle of X X^T in float64, with the rows they were made of."""
    for start in range(0, len(X), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(X)))
        mine = X[rows] - np.asarray(centre, dtype=np.float64)
        for other in range(start, len(X), _BLOCK):
            columns = slice(other, min(other + _BLOCK, len(X)))
            theirs = mine if other == start else X[columns] - np.asarray(centre, dtype=np.float64)
            yield rows, columns, (mine @ theirs.T, mine, theirs)


def _median_distance(squared: NDArray) -> float:
    """Exact median of the distances between two different items, from a symmetric matrix of squared ones.

    The matrix holds every pair twice and n zeros, so that the pair of rank k stands at position n + 2 k of its sorted
    entries. Histograms close in on the middle positions, and only what is left between two bin edges is sorted: the
    distances are never copied as a whole.
    """
    n = len(squared)
    n_pairs = n * (n - 1) // 2
    if n_pairs == 0:
        return 1.0
    positions = [n + 2 * rank for rank in ((n_pairs - 1) // 2, n_pairs // 2)]
    low, high = 0.0, float(squared.max())
    for _ in range(_NARROWINGS):
        counts = np.zeros(_BINS, dtype=np.int64)
        below = 0
        for block in _row_blocks(squared):
            counts += np.histogram(block, bins=_BINS, range=(low, high))[0]
            below += int(np.count_nonzero(block < low))
        edges = np.linspace(low, high, _BINS + 1)
        reached = below + np.cumsum(counts)
        first, last = (int(np.searchsorted(reached, position, side="right")) for position in positions)
        # One bin more on either side: rounding may put a value on an edge into the bin beside it.
        low, high = float(edges[max(first - 1, 0)]), float(edges[min(last + 2, _BINS)])
        if counts[max(first - 1, 0) : last + 2].sum() <= _FEW:
            break
    inside = np.concatenate([block[(block >= low) & (block <= high)] for block in _row_blocks(squared)])
    inside.sort()
    below = sum(int(np.count_nonzero(block < low)) for block in _row_blocks(squared))
    return float(np.mean([np.sqrt(np.float64(inside[position - below])) for position in positions]))


def _row_blocks(matrix: NDArray) -> Iterator[NDArray]:
    for start in range(0, len(matrix), 256):
        yield matrix[start : start + 256]


def _cosine(X: NDArray) -> tuple[NDArray, int]:
    """Cosines, those below zero clipped, and the number of pairs that were."""
    norms = np.sqrt(np.einsum("id,id->i", X, X, dtype=np.float64))
    if not norms.all():
        row = int(np.flatnonzero(norms == 0)[0])
        raise ValueError(f"X must have a non-zero feature in every row for kernel='cosine', got none in row {row}.")
    unit = (X / norms[:, None]).astype(X.dtype, copy=False)
    values = unit @ unit.T
    np.fill_diagonal(values, 1)
    clipped = int(np.count_nonzero(values < 0)) // 2
    if clipped:
        share = clipped / (len(X) * (len(X) - 1) / 2)
        warnings.warn(
            f"kernel='cosine' gave negative similarities for {clipped} pairs ({share:.1%}), which were clipped to 0; "
            "kernel='rbf' keeps their differences.",
            stacklevel=3,
        )
        np.maximum(values, 0, out=values)
    return values, clipped


def _called(kernel: Any, X: NDArray) -> NDArray:
    """What a callable makes of all rows, in blocks of rows."""
    values = np.empty((len(X), len(X)), X.dtype)
    for start in range(0, len(X), _BLOCK):
        rows = X[start : start + _BLOCK]
        block = np.asarray(kernel(rows, X))
        if block.shape != (len(rows), len(X)):
            raise ValueError(
                f"kernel must return a matrix of shape {(len(rows), len(X))} for that many rows, got {block.shape}."
            )
        values[start : start + _BLOCK] = block
    return values
