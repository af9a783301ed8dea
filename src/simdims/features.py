"""Similarities from feature vectors (brain responses, activations, pixels), with non-negative kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import squareform

from simdims import _memory, _threads
from simdims._parallel import generator_of
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    plural,
    require_count,
    require_flag,
    require_number,
    shown,
    warn,
)
from simdims._tables import read_numbers, report
from simdims.similarity import Similarity, is_anndata, is_default_axis, is_frame, labelled
from simdims.similarity.entries import blocks
from simdims.similarity.labels import clean_labels, refuse_other_names
from simdims.similarity.ownership import frozen
from simdims.similarity.validation import as_array

Kernel = Callable[[NDArray, NDArray], NDArray]

_DEFAULT_BANDWIDTH = 0.4
_DEFAULT_LANDMARKS = 1000

# Rows of features multiplied at a time: with each other, and with landmarks.
_BLOCK = 1024
_LANDMARK_BLOCK = 4096

# Landmarks: largest number of items for an exact median distance, pairs sampled beyond, and pairs on which the
# approximation error is measured.
_ALL_PAIRS_UP_TO = 2000
_MEDIAN_PAIRS = 200_000
_CHECKED_PAIRS = 10_000

# Warn if the error of an approximate kernel exceeds this share of the standard deviation of the kernel's values and is
# not explained by rounding (the values of an exact kernel may all be alike).
_LARGE_ERROR = 0.1
_ROUNDING = 1e-5

# Negative features may be rounding errors if they are below this share of the largest, and this share of all.
_TINY, _FEW_NEGATIVE = 0.01, 0.1


def from_features(
    X: Any,
    *,
    kernel: str | Kernel = "auto",
    bandwidth: float = _DEFAULT_BANDWIDTH,
    labels: Sequence[str] | None = None,
    negative: str | None = None,
    implicit: bool = False,
    n_landmarks: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Similarity:
    """Similarities between items from their features.

    Parameters
    ----------
    X : array-like, DataFrame, DataArray or AnnData of shape (n_items, n_features)
        One row of finite numbers per item. Labels come from the index of a pandas DataFrame, the first coordinate of an
        xarray DataArray or the observation names of AnnData; the default index 0, 1, 2, ... is ignored.
    kernel : {"auto", "linear", "rbf", "cosine"} or callable, default="auto"
        "linear" is x . y, "rbf" is exp(-|x - y|^2 / (2 sigma^2)), "cosine" is x . y / (|x| |y|) with negative values
        clipped to zero and a warning with their number. "auto" is "linear" if no feature is negative, else "rbf", with
        a warning if negative values are few and tiny. A callable takes two arrays of rows and returns the matrix of
        their similarities, like those of ``sklearn.metrics.pairwise``.
    bandwidth : float, default=0.4
        Only for the RBF kernel: sigma as a multiple of the median distance between two items, which must not be 0. With
        `implicit` and more than 2,000 items, the median is estimated from 200,000 random pairs.
    labels : sequence, optional
        One distinct name per item.
    negative : {"clip"}, optional
        "clip" sets negative features, which may be rounding errors, to 0 and warns how many; by default they are kept.
    implicit : bool, default=False
        Store factors F with S = F F^T instead of the n_items x n_items matrix. For the linear kernel (of non-negative
        features), F = X. The RBF kernel is approximated from `n_landmarks` items (Nystroem): similarities near zero may
        be slightly negative, and items unlike any landmark have a self-similarity below 1. Only for these two kernels.
    n_landmarks : int, optional
        Number of randomly drawn items from which the implicit RBF kernel is approximated; by default 1,000, or all
        items if there are fewer, which is exact. More landmarks increase accuracy and cost: each sweep of a fit takes
        O(n_items n_landmarks n_components).
    random_state : int, RandomState or None, default=0
        Seed for the landmarks and for the pairs on which the error is measured.

    Returns
    -------
    Similarity
        float32 if X is, else float64. `info` holds the kernel, and sigma for "rbf"; if features were clipped, or "auto"
        chose "rbf", also the number and share of negative features and the smallest. For an approximate kernel,
        ``approximation_error`` holds the root mean square (``rms``) and ``largest`` difference from the kernel over
        ``n_pairs`` random pairs, the standard deviation of the kernel's values (``similarity_sd``), the
        ``share_below_zero`` and the ``smallest`` of the approximate similarities, and the root mean square difference
        on the diagonal (``diagonal_rms``).

    Warns
    -----
    UserWarning
        If the approximation error exceeds a tenth of the standard deviation of the kernel's values.

    References
    ----------
    SRF, Methods, "Constructing similarity matrices". C. Williams and M. Seeger, "Using the Nystroem method to speed up
    kernel machines", NIPS 2000.

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
    labels = clean_labels(labels, len(features))
    if labels is not None and index is not None:
        refuse_other_names("the index of X", index, "labels", labels)
    labels = labels or index
    require_number("bandwidth", bandwidth, "positive")
    require_flag("implicit", implicit)
    if not callable(kernel) and not (isinstance(kernel, str) and kernel in ("auto", "linear", "rbf", "cosine")):
        raise ParameterError("kernel", "must be 'auto', 'linear', 'rbf', 'cosine' or a callable", shown(kernel))
    features, found_negative = _negatives(features, negative, kernel)
    if kernel == "auto":
        kernel = "linear" if features.min() >= 0 else "rbf"
    _check_options(kernel, bandwidth, implicit, n_landmarks, features)
    rng = generator_of(random_state)
    name = getattr(kernel, "__name__", "callable") if callable(kernel) else kernel
    info: dict[str, Any] = {"source": "features", "kernel": name, "n_features": features.shape[1], **found_negative}
    if implicit:
        factors = features
        if kernel == "rbf":
            factors, found = _rbf_factors(features, bandwidth, n_landmarks, rng)
            info |= found
        report("from_features", info)
        return Similarity.from_factors(factors, labels, signed=kernel == "rbf", info=info)
    n = len(features)
    n_matrices = 1.5 if kernel == "rbf" else 1.0  # the distances of all pairs, for their median
    n_bytes = int(n_matrices * n * n * features.dtype.itemsize)
    remedy = "pass float32 features, fewer items, or implicit=True with kernel='linear' or 'rbf'"
    _memory.require(n_bytes, f"A matrix of {n} x {n} similarities", remedy)
    if kernel == "rbf":
        values, info["sigma"] = _rbf(features, bandwidth)
        info["bandwidth"] = bandwidth
    elif kernel == "cosine":
        values, info["clipped_pairs"] = _cosine(features)
    elif kernel == "linear":
        values = _products(features)
    else:
        values = _called(kernel, features)
    report("from_features", info)
    return Similarity(frozen(values), labels, info=info)


def _clean_features(X: Any) -> tuple[NDArray[np.floating], tuple[str, ...] | None]:
    """Features as floats, and the names on the index of a DataFrame."""
    if sparse.issparse(X):
        remedy = "pass X.toarray() or Similarity(X @ X.T, absent='zero')"
        raise ParameterTypeError("X", "must be dense", "a sparse matrix", remedy)
    index = columns = None
    X = X.to_df() if is_anndata(X) else labelled(X)
    if is_frame(X):
        index, columns = None if is_default_axis(X.index) else clean_labels(X.index, len(X)), X.columns
        X = _frame_numbers(X)
    features = as_array(X, "X")
    if features.ndim != 2 or 0 in features.shape:
        rule = "must have a row for each item and a column for each feature"
        got = "columns without rows" if features.ndim == 2 and not len(features) else f"shape {features.shape}"
        raise ParameterError("X", rule, got)
    if features.dtype.kind not in "biufO":
        raise ParameterTypeError("X", "must hold numbers", f"dtype {features.dtype}")
    if features.dtype not in (np.float32, np.float64):
        try:
            features = features.astype(np.float32 if features.dtype == np.float16 else np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ParameterTypeError("X", "must hold numbers", "an array of other objects") from None
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if bad.size:
        place = int(np.argmin(np.isfinite(features[bad[0]])))
        row = f"row {bad[0] if index is None else repr(index[bad[0]])}"
        column = place if columns is None else repr(str(columns[place]))
        more = f" and {bad.size - 1} other {plural('row', bad.size - 1)}" if bad.size > 1 else ""
        what = "a missing value" if np.isnan(features[bad[0], place]) else "infinity"
        remedy = "remove such items, or impute their features"
        raise ParameterError("X", "must be finite", f"{what} in {row}, column {column}{more}", remedy)
    return features, index


def _frame_numbers(frame: Any) -> NDArray[np.floating]:
    if all(dtype.kind in "biuf" for dtype in frame.dtypes):
        single = all(dtype == np.float32 for dtype in frame.dtypes)
        return frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    columns = []
    for place, (column, dtype) in enumerate(zip(map(str, frame.columns), frame.dtypes, strict=True)):
        one = frame.iloc[:, [place]].set_axis([column], axis="columns")  # names may be duplicated
        try:
            columns.append(read_numbers(one, column))
        except ValueError as error:
            got = f"dtype {dtype} in column {column!r} ({str(error).rstrip('.')})"
            raise ParameterTypeError("X", "must hold numbers", got, "make it the index if it names the items") from None
    return np.stack(columns, axis=1)


def _negatives(features: NDArray, negative: Any, kernel: Any) -> tuple[NDArray, dict[str, Any]]:
    """The features, clipped if requested, and counts of negative values if relevant."""
    if not (negative is None or (isinstance(negative, str) and negative == "clip")):
        shift = "(1 + r) / 2 is for correlations, not for features" if shown(negative) == "'shift'" else None
        raise ParameterError("negative", "must be None or 'clip' for features", shown(negative), shift)
    smallest = float(features.min())
    if negative is None and (kernel != "auto" or smallest >= 0):
        return features, {}
    n_negative = int(np.count_nonzero(features < 0))
    share = n_negative / features.size
    found = {"n_values_negative": n_negative, "share_negative": share, "smallest": min(smallest, 0.0)}
    counted = f"{n_negative:,} negative {plural('value', n_negative)} ({share:.2%}"
    if negative is not None:
        if n_negative:
            warn(f"Set {counted}, the smallest {smallest:.3g}) of X to 0", "({negative=clip}).")
        return np.maximum(features, 0), {"negative": negative, **found}
    if share <= _FEW_NEGATIVE and -smallest <= _TINY * float(features.max()):
        warn(
            f"The RBF kernel is used because X has {counted}), though none is below {smallest:.3g} and the largest "
            f"value is {features.max():.3g}.",
            "If these are rounding errors, pass {negative=clip} to set them to 0 and use dot products; if not, pass "
            "{kernel=rbf}.",
        )
    return features, found


def _check_options(kernel: Any, bandwidth: float, implicit: bool, n_landmarks: Any, features: NDArray) -> None:
    """Refuse options that the kernel does not use."""
    with_kernel = f"with kernel={kernel!r}"
    if kernel != "rbf" and bandwidth != _DEFAULT_BANDWIDTH:
        raise ParameterError("bandwidth", "is used by {kernel=rbf} only", f"{bandwidth!r} {with_kernel}")
    if n_landmarks is not None:
        require_count("n_landmarks", n_landmarks)
        if not (implicit and kernel == "rbf"):
            got = f"{n_landmarks} {with_kernel} and implicit={bool(implicit)}"
            raise ParameterError("n_landmarks", "is used by {kernel=rbf} with {implicit=True} only", got)
    if implicit and kernel not in ("linear", "rbf"):
        rule = "must be False unless {kernel=linear} or {kernel=rbf}, which have factors"
        raise ParameterError("implicit", rule, f"True {with_kernel}")
    if implicit and kernel == "linear" and features.min() < 0:
        n_negative = np.count_nonzero(features < 0)
        rule = "must be False with {kernel=linear} where features are negative"
        raise ParameterError("implicit", rule, f"True with {n_negative} negative values")


def _products(X: NDArray) -> NDArray:
    with np.errstate(over="ignore"):
        values = X @ X.T
    largest = values.max()
    if not np.isfinite(largest) or (largest == 0 and X.any()):
        rule = f"must be {'large' if largest == 0 else 'small'} enough to be multiplied for {{kernel=linear}}"
        raise ParameterError("X", rule, f"a largest of {np.abs(X).max():g}", "divide by it")
    if values.min() < 0:
        n_negative = int(np.count_nonzero(values < 0)) // 2
        got = f"{n_negative:,} negative {plural('pair', n_negative)}, the smallest {values.min():.3g}"
        remedy = "use {kernel=rbf}, which is never negative, or {negative=clip} if features below 0 are rounding errors"
        raise ParameterError("X", "must not give negative similarities with {kernel=linear}", got, remedy)
    return values


def _cosine(X: NDArray) -> tuple[NDArray, int]:
    """Cosines clipped at zero, and the number of clipped pairs."""
    largest = np.abs(X).max(axis=1, keepdims=True)
    if not largest.all():
        row = int(np.flatnonzero(largest == 0)[0])
        raise ParameterError("X", "must have a non-zero feature in every row for {kernel=cosine}", f"none in row {row}")
    unit = X / largest  # so that squares neither overflow nor underflow
    unit /= np.sqrt(np.einsum("id,id->i", unit, unit, dtype=np.float64))[:, None].astype(X.dtype)
    values = unit @ unit.T
    np.fill_diagonal(values, 1)
    clipped = int(np.count_nonzero(values < 0)) // 2
    if clipped:
        share = clipped / (len(X) * (len(X) - 1) / 2)
        warn(
            f"The cosine kernel gave negative similarities for {clipped} pairs ({share:.1%}), which were clipped to 0.",
            "With {kernel=rbf} their differences are kept.",
        )
        np.maximum(values, 0, out=values)
    return values, clipped


def _called(kernel: Any, X: NDArray) -> NDArray:
    """Apply a callable to blocks of rows."""
    values = np.empty((len(X), len(X)), X.dtype)
    given = X.view()
    given.flags.writeable = False
    for start in range(0, len(X), _BLOCK):
        rows = given[start : start + _BLOCK]
        block = np.asarray(kernel(rows, given))
        if block.shape != (len(rows), len(X)) or block.dtype.kind not in "biuf":
            rule = f"must return a matrix of numbers of shape {(len(rows), len(X))} for that many rows"
            raise ParameterError("kernel", rule, f"dtype {block.dtype} and shape {block.shape}")
        values[start : start + _BLOCK] = block
    return values


def _rbf(X: NDArray, bandwidth: float) -> tuple[NDArray, float]:
    """exp(-|x - y|^2 / (2 sigma^2)) with sigma = bandwidth x the median distance, computed in place."""
    values = np.empty((len(X), len(X)), X.dtype)
    centre, unit = _centre_and_unit(X)
    for start in range(0, len(X), _BLOCK):
        mine = (X[start : start + _BLOCK] - centre) / unit
        for other in range(start, len(X), _BLOCK):
            theirs = mine if other == start else (X[other : other + _BLOCK] - centre) / unit
            squared = _squared_distances(mine, theirs)
            values[start : start + len(mine), other : other + len(theirs)] = squared
            values[other : other + len(theirs), start : start + len(mine)] = squared.T
    np.fill_diagonal(values, 0)
    sigma = bandwidth * _require_distance(_median_distance(values))
    for block in blocks(values):
        np.exp(np.multiply(block, -0.5 / sigma**2, out=block), out=block)
    return values, sigma * unit


def _centre_and_unit(X: NDArray[np.floating]) -> tuple[NDArray[np.float64], float]:
    """A central point (the median, because of outliers) and the largest difference from it."""
    # Centring preserves distances and loses fewer digits; in this unit, squares neither overflow nor underflow.
    with np.errstate(over="ignore", invalid="ignore"):
        centre = np.median(X[:: max(1, len(X) // 1000)].astype(np.float64), axis=0)
        unit = max(float(np.abs(block - centre).max()) for block in blocks(X))
    if not np.isfinite(unit):
        largest = float(np.abs(X).max())
        raise ParameterError("X", "must be small enough to be subtracted", f"a largest of {largest:g}", "divide by it")
    return centre, unit or 1.0


def _require_distance(median: float) -> float:
    if median == 0:
        remedy = "most items are the same, so pass a callable as {kernel} with a bandwidth of your own"
        raise ParameterError("X", "must differ between items for {kernel=rbf}", "a median distance of 0", remedy)
    return median


def _squared_distances(mine: NDArray, theirs: NDArray) -> NDArray[np.float64]:
    """|x|^2 + |y|^2 - 2 x . y, or |x - y|^2 for pairs so close that the former loses precision."""
    own, others = (np.einsum("id,id->i", part, part) for part in (mine, theirs))
    sums = own[:, None] + others
    squared = np.maximum(sums - 2 * (mine @ theirs.T), 0)
    i, j = np.nonzero(squared < 1e-8 * sums)
    for e in _pair_blocks(len(i), mine.shape[1]):
        difference = mine[i[e]] - theirs[j[e]]
        squared[i[e], j[e]] = np.einsum("ed,ed->e", difference, difference)
    return squared


def _median_distance(squared: NDArray) -> float:
    """The median distance between two different items, from the matrix of squared distances."""
    pairs = squareform(squared, checks=False)
    if not pairs.size:
        return 1.0
    middle = [(pairs.size - 1) // 2, pairs.size // 2]
    pairs.partition(middle)
    return float(np.mean(np.sqrt(pairs[middle].astype(np.float64))))


def _rbf_factors(
    X: NDArray[np.floating], bandwidth: float, n_landmarks: int | None, rng: np.random.RandomState
) -> tuple[NDArray[np.floating], dict[str, Any]]:
    """Nystroem factors F with F F^T ~ exp(-|x - y|^2 / (2 sigma^2)), and their description for `info`."""
    from sklearn.kernel_approximation import Nystroem

    n = len(X)
    m = min(n, _DEFAULT_LANDMARKS if n_landmarks is None else int(n_landmarks))
    n_bytes = n * m * X.dtype.itemsize + 2 * 8 * _LANDMARK_BLOCK * (m + X.shape[1]) + 4 * 8 * m * m
    what = f"The similarities of {n} items to {m} landmarks"
    _memory.require(n_bytes, what, "pass float32 features or fewer n_landmarks")
    centre, unit = _centre_and_unit(X)
    median, n_median_pairs = _sampled_median(X, unit, rng)
    gamma = 0.5 / (bandwidth * _require_distance(median)) ** 2
    chosen = np.sort(rng.permutation(n)[:m])
    nystroem = Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=rng)
    with _threads.one_blas_thread():  # a decomposition of this size gains little from a second thread
        nystroem.fit((X[chosen] - centre) / unit)  # float64: the inverse square root is too inaccurate in float32
    factors = np.empty((n, m), X.dtype)
    for start in range(0, n, _LANDMARK_BLOCK):
        rows = slice(start, start + _LANDMARK_BLOCK)
        factors[rows] = nystroem.transform((X[rows] - centre) / unit)
    error = _sampled_error(X, unit, gamma, factors, rng)
    _warn_of_error(error, m)
    info = {"sigma": bandwidth * median * unit, "sigma_pairs": n_median_pairs, "bandwidth": bandwidth}
    return frozen(factors), {**info, "approximation": "nystroem", "n_landmarks": m, "approximation_error": error}


def _sampled_median(X: NDArray[np.floating], unit: float, rng: np.random.RandomState) -> tuple[float, int]:
    """The median distance between two different items, over all pairs or a sample, and the number of pairs."""
    n = len(X)
    if n == 1:
        return 1.0, 0
    first, second = np.triu_indices(n, 1) if n <= _ALL_PAIRS_UP_TO else _draw_pairs(n, _MEDIAN_PAIRS, rng)
    return float(np.median(np.sqrt(_listed_distances(X, unit, first, second)))), len(first)


def _draw_pairs(n_items: int, n_pairs: int, rng: np.random.RandomState) -> tuple[NDArray, NDArray]:
    """Pairs of two different items, drawn with replacement."""
    first = rng.randint(n_items, size=n_pairs)
    return first, (first + rng.randint(1, n_items, size=n_pairs)) % n_items


def _listed_distances(X: NDArray[np.floating], unit: float, first: NDArray, second: NDArray) -> NDArray[np.float64]:
    """|x - y|^2 of listed pairs."""
    squared = np.empty(len(first))
    for e in _pair_blocks(len(first), X.shape[1]):
        difference = (X[first[e]].astype(np.float64) - X[second[e]]) / unit
        np.einsum("ed,ed->e", difference, difference, out=squared[e])
    return squared


def _pair_blocks(n_pairs: int, n_columns: int) -> Iterator[slice]:
    """Blocks of pairs whose rows fit into 8 MB of float64."""
    size = max(2**20 // n_columns, 1)
    return (slice(start, start + size) for start in range(0, n_pairs, size))


def _sampled_error(
    X: NDArray[np.floating], unit: float, gamma: float, factors: NDArray[np.floating], rng: np.random.RandomState
) -> dict[str, Any]:
    """The error of F F^T on a sample of pairs (all, if there are few) and on the diagonal."""
    n = len(X)
    n_pairs = n * (n - 1) // 2
    first, second = np.triu_indices(n, 1) if n_pairs <= _CHECKED_PAIRS else _draw_pairs(n, _CHECKED_PAIRS, rng)
    exact = np.exp(-gamma * _listed_distances(X, unit, first, second))
    approximate = np.empty(len(first))
    for e in _pair_blocks(len(first), factors.shape[1]):
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


def _warn_of_error(error: dict[str, Any], n_landmarks: int) -> None:
    if error["rms"] > max(_LARGE_ERROR * error["similarity_sd"], _ROUNDING):
        warn(
            f"The RBF kernel is approximated from {n_landmarks} landmarks with an error of {error['rms']:.2g} (root "
            f"mean square over {error['n_pairs']} pairs), where its values have a standard deviation of "
            f"{error['similarity_sd']:.2g}.",
            "Raise {n_landmarks}, or build the matrix with {implicit=False} if it fits.",
        )
