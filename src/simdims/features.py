"""From feature vectors (brain responses, activations, pixels) to similarities: kernels that cannot be negative."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims import _landmarks, _memory
from simdims._checks import as_array, clean_labels
from simdims._ownership import frozen
from simdims._parallel import generator_of
from simdims._parameters import plural, require_count, shown, warn
from simdims._tables import is_finite_number, read_numbers, report
from simdims.similarity import Similarity, is_default_axis, is_frame

Kernel = Callable[[NDArray, NDArray], NDArray]

# Rows of features that are multiplied with each other at a time.
_BLOCK = 1024

_DEFAULT_BANDWIDTH = 0.4

# Error of an approximate kernel, relative to the standard deviation of its values, that is worth a warning.
_LARGE_ERROR = 0.1

# Error that rounding explains: an exact kernel whose values are all alike is no case for a warning.
_ROUNDING = 1e-5

# Negative features may be rounding errors where they are below this share of the largest, and this share of all.
_TINY, _FEW_NEGATIVE = 0.01, 0.1

# The search for the median: bins of a histogram, how many entries are few enough to sort, and most rounds (ties).
_BINS = 1024
_FEW = 1_000_000
_NARROWINGS = 5


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
    X : array-like or DataFrame of shape (n_items, n_features)
        One row of finite numbers an item. The index of a DataFrame becomes the labels, unless it is pandas' default.
    kernel : {"auto", "linear", "rbf", "cosine"} or callable, default="auto"
        "linear" is x . y, "rbf" is exp(-|x - y|^2 / (2 sigma^2)), "cosine" is x . y / (|x| |y|) with negative values
        clipped to zero and a warning that counts them. "auto" is "linear" where no feature is negative, else "rbf",
        with a warning where negative values are few and tiny. A callable gets two arrays of rows and returns the matrix
        of their similarities, like those of ``sklearn.metrics.pairwise``.
    bandwidth : float, default=0.4
        sigma of the RBF kernel as a multiple of the median distance between two different items, which must not be 0:
        that of all pairs or, with `implicit` and over 2,000 items, of 200,000 pairs drawn at random. Refused with
        other kernels.
    labels : sequence, optional
        One distinct name an item.
    negative : {"clip"}, optional
        "clip" sets negative features to 0, with a warning that counts them: for rounding errors in features that
        cannot be negative. By default they stay as they are.
    implicit : bool, default=False
        Keep factors F with S = F F^T and never build the n_items x n_items matrix. Of the linear kernel (of
        non-negative features) they are the features. The RBF kernel is approximated from its values at `n_landmarks`
        items (Nystroem), so that similarities near zero may dip below it, and items that are like no landmark are less
        than 1 similar to themselves. Refused with other kernels.
    n_landmarks : int, optional
        Items from which the implicit RBF kernel is approximated, drawn at random; by default 1,000, or all where there
        are fewer, which is exact. More are closer to the kernel and cost more: a fit takes O(n_items n_landmarks
        n_components) a sweep.
    random_state : int, RandomState or None, default=0
        Seed of the landmarks and of the pairs that the error is measured on; None is fresh entropy.

    Returns
    -------
    Similarity
        float32 where X is, else float64. `info` holds the kernel, and sigma for "rbf". Where features were clipped, or
        "auto" chose "rbf", it holds how many were negative, their share and the smallest. Where the kernel is
        approximated it holds ``approximation_error`` too: the root mean square (``rms``) and the ``largest`` difference
        from the kernel over ``n_pairs`` pairs drawn at random, beside the standard deviation of the kernel's values
        (``similarity_sd``); of the approximate similarities the ``share_below_zero`` and the ``smallest``; and the root
        mean square difference on the diagonal (``diagonal_rms``), over all items.

    Warns
    -----
    UserWarning
        If the approximation error is over a tenth of the standard deviation of the kernel's values.

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
    labels = _agreed_labels(labels, index, len(features))
    if not (is_finite_number(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth must be a positive, finite number, got {bandwidth!r}.")
    if not isinstance(implicit, bool | np.bool_):
        raise TypeError(f"implicit must be True or False, got {implicit!r}.")
    if not callable(kernel) and not (isinstance(kernel, str) and kernel in ("auto", "linear", "rbf", "cosine")):
        raise ValueError(f"kernel must be 'auto', 'linear', 'rbf', 'cosine' or a callable, got {shown(kernel)}.")
    features, found_negative = _negatives(features, negative, kernel)
    if kernel == "auto":
        kernel = "linear" if features.min() >= 0 else "rbf"
    if kernel != "rbf" and bandwidth != _DEFAULT_BANDWIDTH:
        raise ValueError(f"bandwidth is used by kernel='rbf' only, got {bandwidth!r} with kernel={kernel!r}.")
    if n_landmarks is not None:
        _check_landmarks(n_landmarks, kernel, implicit)
    rng = generator_of(random_state)
    info: dict[str, Any] = {
        "source": "features",
        "kernel": getattr(kernel, "__name__", "callable") if callable(kernel) else kernel,
        "n_features": features.shape[1],
        **found_negative,
    }
    if implicit and kernel == "rbf":
        factors, found = _landmarks.rbf_factors(features, bandwidth, n_landmarks, rng)
        info |= found
        report("from_features", info)
        _warn_of_error(info["approximation_error"], info["n_landmarks"])
        return Similarity.from_factors(frozen(factors), labels, signed=True, info=info)
    if implicit:
        _refuse_implicit(kernel, features)
        report("from_features", info)
        return Similarity.from_factors(features, labels, info=info)
    n = len(features)
    _memory.require(
        n * n * features.dtype.itemsize,
        f"A matrix of {n} x {n} similarities",
        "pass float32 features, fewer items, or implicit=True with kernel='linear' or 'rbf'",
    )
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


def _negatives(features: NDArray, negative: Any, kernel: Any) -> tuple[NDArray, dict[str, Any]]:
    """Features without negative values if they are to be clipped, and how many there were where that matters."""
    if not (negative is None or (isinstance(negative, str) and negative == "clip")):
        shift = ": (1 + r) / 2 is for correlations, not for features" if negative == "shift" else ""
        raise ValueError(f'negative must be None or "clip" for features, got {shown(negative)}{shift}.')
    smallest = float(features.min())
    if negative is None and (kernel != "auto" or smallest >= 0):
        return features, {}
    n_negative = int(np.count_nonzero(features < 0))
    share = n_negative / features.size
    found = {"n_values_negative": n_negative, "share_negative": share, "smallest": min(smallest, 0.0)}
    counted = f"{n_negative:,} negative {'value' if n_negative == 1 else 'values'} ({share:.2%}"
    if negative is not None:
        if n_negative:
            warn(f'Set {counted}, the smallest {smallest:.3g}) of X to 0 (negative="clip").')
        return np.maximum(features, 0), {"negative": negative, **found}
    if share <= _FEW_NEGATIVE and -smallest <= _TINY * float(features.max()):
        warn(
            f'kernel="auto" takes the RBF kernel because X has {counted}), though none below {smallest:.3g} where the '
            f'largest value is {features.max():.3g}. If these are rounding errors, pass negative="clip" to set them to '
            '0 and take dot products; if not, pass kernel="rbf".'
        )
    return features, found


def _clean_features(X: Any) -> tuple[NDArray[np.floating], tuple[str, ...] | None]:
    """Features as floats, and the names that a DataFrame gives its rows."""
    if sparse.issparse(X):
        raise TypeError("X must be dense, got a sparse matrix: pass X.toarray() or Similarity(X @ X.T, absent='zero').")
    index = None
    if is_frame(X):
        index = None if is_default_axis(X.index) else clean_labels(X.index, len(X))
        X = _frame_numbers(X)
    features = as_array(X, "X")
    if features.ndim != 2 or 0 in features.shape:
        raise ValueError(f"X must have a row for each item and a column for each feature, got shape {features.shape}.")
    if features.dtype.kind not in "biufO":
        raise TypeError(f"X must hold numbers, got dtype {features.dtype}.")
    if features.dtype not in (np.float32, np.float64):
        features = _as_floats(features)
    known = np.isfinite(features).all(axis=1)
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        name = f"row {row}" if index is None else f"row {row} ({index[row]!r})"
        n_more = int(np.count_nonzero(~known)) - 1
        more = f" and {n_more} other {plural('row', n_more)}" if n_more else ""
        raise ValueError(
            f"X must be finite, got NaN or infinity in {name}{more}: remove such items, or impute their features."
        )
    return features, index


def _agreed_labels(labels: Sequence[str] | None, index: tuple[str, ...] | None, n_items: int) -> tuple[str, ...] | None:
    given = clean_labels(labels, n_items)
    if given is None or index is None:
        return given or index
    for place, (one, other) in enumerate(zip(index, given, strict=True)):
        if one != other:
            raise ValueError(
                f"labels must be the names of X's index where it has them, got {other!r} instead of {one!r} in place "
                f"{place}."
            )
    return given


def _frame_numbers(frame: Any) -> NDArray[np.floating]:
    if all(dtype.kind in "biuf" for dtype in frame.dtypes):
        single = all(dtype == np.float32 for dtype in frame.dtypes)
        return frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    columns = []
    for place, (column, dtype) in enumerate(zip(map(str, frame.columns), frame.dtypes, strict=True)):
        one = frame.iloc[:, [place]].set_axis([column], axis="columns")  # names may come twice
        try:
            columns.append(read_numbers(one, column))
        except ValueError as error:
            raise TypeError(
                f"X must hold numbers, got dtype {dtype} in column {column!r}: make it the index if it names the "
                f"items. {error}"
            ) from None
    return np.stack(columns, axis=1)


def _as_floats(features: NDArray) -> NDArray[np.floating]:
    try:
        return features.astype(np.float32 if features.dtype == np.float16 else np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError("X must hold numbers, got an array of objects that are not.") from None


def _check_landmarks(n_landmarks: Any, kernel: Any, implicit: bool) -> None:
    require_count("n_landmarks", n_landmarks)
    if not (implicit and kernel == "rbf"):
        raise ValueError(
            f"n_landmarks is used by kernel='rbf' with implicit=True only, got {n_landmarks} with kernel={kernel!r} "
            f"and implicit={bool(implicit)}."
        )


def _warn_of_error(error: dict[str, Any], n_landmarks: int) -> None:
    if error["rms"] > max(_LARGE_ERROR * error["similarity_sd"], _ROUNDING):
        warn(
            f"The RBF kernel is approximated from {n_landmarks} landmarks with an error of {error['rms']:.2g} (root "
            f"mean square over {error['n_pairs']} pairs), where its values have a standard deviation of "
            f"{error['similarity_sd']:.2g}: raise n_landmarks, or build the matrix with implicit=False if it fits."
        )


def _refuse_implicit(kernel: Any, features: NDArray) -> None:
    if kernel != "linear":
        raise ValueError(f"implicit=True needs kernel='linear' or 'rbf', which have factors, got kernel={kernel!r}.")
    if features.min() < 0:
        raise ValueError(
            f"implicit=True needs non-negative features, so that the similarities are, got "
            f"{np.count_nonzero(features < 0)} negative values."
        )


def _products(X: NDArray) -> NDArray:
    with np.errstate(over="ignore"):
        values = X @ X.T
    largest = values.max()
    if not np.isfinite(largest) or (largest == 0 and X.any()):
        rule = "large" if largest == 0 else "small"
        raise ValueError(
            f"X must be {rule} enough to be multiplied for kernel='linear', got a largest of {np.abs(X).max():g}: "
            "divide by it."
        )
    if values.min() < 0:
        n_negative = int(np.count_nonzero(values < 0)) // 2
        raise ValueError(
            f"kernel='linear' must not give negative similarities, got {n_negative:,} negative "
            f"{'pair' if n_negative == 1 else 'pairs'}, the smallest {values.min():.3g}: use kernel='rbf', which is "
            "never negative, or negative='clip' if features below 0 are rounding errors."
        )
    return values


def _rbf(X: NDArray, bandwidth: float) -> tuple[NDArray, float]:
    """exp(-|x - y|^2 / (2 sigma^2)) with sigma = bandwidth x the median distance, in the memory of the result."""
    values = np.empty((len(X), len(X)), X.dtype)
    centre, unit = _landmarks.centre_and_unit(X)
    for start in range(0, len(X), _BLOCK):
        mine = (X[start : start + _BLOCK] - centre) / unit
        for other in range(start, len(X), _BLOCK):
            theirs = mine if other == start else (X[other : other + _BLOCK] - centre) / unit
            squared = _squared_distances(mine, theirs)
            values[start : start + len(mine), other : other + len(theirs)] = squared
            values[other : other + len(theirs), start : start + len(mine)] = squared.T
    np.fill_diagonal(values, 0)
    median = _median_distance(values)
    if median == 0:
        raise ValueError(_landmarks.no_distance_sentence())
    sigma = bandwidth * median
    for block in _row_blocks(values):
        np.exp(np.multiply(block, -0.5 / sigma**2, out=block), out=block)
    return values, sigma * unit


def _squared_distances(mine: NDArray, theirs: NDArray) -> NDArray[np.float64]:
    """|x|^2 + |y|^2 - 2 x . y, and directly for pairs so close together that it has lost its digits."""
    own, others = (np.einsum("id,id->i", part, part) for part in (mine, theirs))
    sums = own[:, None] + others
    squared = np.maximum(sums - 2 * (mine @ theirs.T), 0)
    i, j = np.nonzero(squared < 1e-8 * sums)
    few = max(2**20 // mine.shape[1], 1)
    for start in range(0, len(i), few):
        e = slice(start, start + few)
        difference = mine[i[e]] - theirs[j[e]]
        squared[i[e], j[e]] = np.einsum("ed,ed->e", difference, difference)
    return squared


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
    largest = np.abs(X).max(axis=1, keepdims=True)
    if not largest.all():
        row = int(np.flatnonzero(largest == 0)[0])
        raise ValueError(f"X must have a non-zero feature in every row for kernel='cosine', got none in row {row}.")
    unit = X / largest  # so that squares neither overflow nor vanish
    unit /= np.sqrt(np.einsum("id,id->i", unit, unit, dtype=np.float64))[:, None].astype(X.dtype)
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
    given = X.view()
    given.flags.writeable = False
    for start in range(0, len(X), _BLOCK):
        rows = given[start : start + _BLOCK]
        block = np.asarray(kernel(rows, given))
        if block.shape != (len(rows), len(X)) or block.dtype.kind not in "biuf":
            raise ValueError(
                f"kernel must return a matrix of numbers of shape {(len(rows), len(X))} for that many rows, got dtype "
                f"{block.dtype} and shape {block.shape}."
            )
        values[start : start + _BLOCK] = block
    return values
