"""From pairwise judgements to similarities: ratings, and dissimilarities of one or several people."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import squareform

from simdims._checks import as_array, as_numbers, as_table, check_ends, clean_labels, find_scale, lift_negatives
from simdims._memory import require
from simdims._ownership import frozen
from simdims._parameters import plural, require_choice, require_flag, shown, warn
from simdims._tables import (
    as_frame,
    check_weights_option,
    count_weights,
    is_finite_number,
    read_items,
    read_numbers,
    report,
    row_name,
    warn_of_other_measure,
)
from simdims._triangles import ROUNDING, n_items_of, name_of, people_first
from simdims.similarity import Similarity, frame_cells, frame_labels, is_frame

if TYPE_CHECKING:
    import pandas as pd


def from_ratings(
    table: Any,
    *,
    item1: Hashable,
    item2: Hashable,
    rating: Hashable,
    participant: Hashable | None = None,
    low: float | None = None,
    high: float | None = None,
    weights: str | None = None,
) -> Similarity:
    """Similarities from pairwise ratings: the mean rating of each pair, on a scale from 0 to 1.

    Both orders of a pair are one pair, pairs without a rating are missing, and the diagonal is 1.

    Parameters
    ----------
    table : DataFrame, dictionary of columns or list of dictionaries
        One rating a row.
    item1, item2 : column name
        The columns that name the two items. Names are kept as text and sorted (by value if all are numbers).
    rating : column name
        The column of the ratings: the larger, the more similar. Rows without one are counted in a warning and left
        out, as are ratings of an item with itself.
    participant : column name, optional
        The column that says who gave the rating. The mean of a pair is then the mean of its participants' own means,
        so that nobody counts twice for having been asked twice.
    low, high : float, optional
        The ends of the rating scale, which become 0 and 1. An end that is not given is the smallest or the largest
        rating of the table, with a warning.
    weights : {"counts"}, optional
        "counts" weighs every pair by its number of participants, or of ratings where `participant` is not given, and
        each diagonal entry by the mean of these numbers over the pairs that were rated.

    Returns
    -------
    Similarity
        Dense. `info` holds the rows read and left out, the numbers of items, of pairs and of pairs rated, and the
        scale.

    Examples
    --------
    >>> from simdims.construct import from_ratings
    >>> trials = {"a": ["cat", "dog", "cat"], "b": ["dog", "cat", "car"], "similarity": [6, 7, 2]}
    >>> S = from_ratings(trials, item1="a", item2="b", rating="similarity", low=1, high=7)
    >>> S.labels
    ('car', 'cat', 'dog')
    >>> S.values.round(2)
    array([[1.  , 0.17,  nan],
           [0.17, 1.  , 0.92],
           [ nan, 0.92, 1.  ]])
    """
    check_weights_option(weights)
    check_ends(low, high)
    roles = {"item1": item1, "item2": item2, "rating": rating}
    frame = as_frame(table, **roles, **({} if participant is None else {"participant": participant}))
    warn_of_other_measure(rating)
    (first, second), names = read_items(frame, [item1, item2])
    ratings = read_numbers(frame, rating)
    rated = ratings[~np.isnan(ratings)]
    if not rated.size:
        raise ValueError(f"table must hold at least one rating, got none in {len(ratings)} rows.")
    low, high = find_scale(float(rated.min()), float(rated.max()), low, high)
    used, info = _used_rows(frame, rating, ratings, first == second, low, high)

    n = len(names)
    require(40 * n**2, f"A matrix of {n} items", "rate fewer items, or check that item1 and item2 name items")
    pairs = np.minimum(first, second)[used] * n + np.maximum(first, second)[used]
    scores = (ratings[used] - low) / (high - low)
    if participant is not None:
        (people,), persons = read_items(frame, [participant])
        info["n_participants"] = len(persons)
        answers, scores, _ = _means(pairs * len(persons) + people[used], scores)
        pairs = answers // len(persons)
    pairs, means, counts = _means(pairs, scores)
    info |= {"n_items": n, "n_pairs": n * (n - 1) // 2, "n_pairs_rated": len(pairs), "low": low, "high": high}
    report("from_ratings", info)
    values = _filled(n, pairs, np.minimum(means, 1.0), np.nan)
    np.fill_diagonal(values, 1.0)
    counted = frozen(count_weights(_filled(n, pairs, counts, 0.0))) if weights else None
    return Similarity(frozen(values), names, counted, info=info)


def from_dissimilarity(
    D: Any,
    *,
    method: str = "max",
    sigma: float | None = None,
    clip: bool = False,
    negative: str | None = None,
    labels: Sequence[str] | None = None,
    weights: str | None = None,
    key: str | None = None,
) -> Similarity:
    """Similarities from dissimilarities: one matrix, or several people's, averaged.

    Parameters
    ----------
    D : array-like, DataFrame, list of either, or path
        Dissimilarities, NaN where a pair is missing: a square matrix with a zero or missing diagonal, the vector of its
        upper triangle (row by row, as of scipy's pdist), or a stack of either, averaged over those who have the pair.
        People come first, or last where only that fits (n x n x people); n matrices of n items are told by their
        symmetry. Where a two-dimensional array is square it is one matrix. Index and columns of a DataFrame name the
        items. A path names a file of any type that load_similarity reads; MATLAB struct arrays with one matrix per
        element, as of rsatoolbox, are a stack.
    method : {"max", "correlation", "gaussian"}, default="max"
        "max" is 1 - d / max(d), "correlation" is r = 1 - d for distances d = 1 - r, and "gaussian" is
        exp(-d^2 / (2 sigma^2)).
    sigma : float, optional
        The width of "gaussian"; by default the median of the observed dissimilarities of two different items.
    clip : bool, default=False
        The same as ``negative="clip"``.
    negative : {"clip", "shift"}, optional
        What to do with the negative correlations that "correlation" gives where d > 1; by default they are an error.
        "clip" sets them to 0, with a warning that counts them; "shift" rescales all as (1 + r) / 2. See as_similarity.
    labels : sequence, optional
        One distinct name per item; those of a DataFrame must be the same.
    weights : {"counts"}, optional
        "counts" weighs every pair by the number of people who have it, and each diagonal entry by the number of people.
    key : str, optional
        Which variable of an .npz, .h5, .hdf5 or .mat file to read, where D is a path; "variable.field" of a MATLAB
        struct.

    Returns
    -------
    Similarity
        Dense, with a diagonal of 1; float32 where D is one float32 matrix, else float64. `info` holds the method and
        its scale, and the numbers of people, of items, of pairs and of pairs observed; of a file also its name, what
        was found in it, and the names of the people where it has them.

    Examples
    --------
    >>> from simdims.construct import from_dissimilarity
    >>> from_dissimilarity([1.0, 4.0, 3.0], labels=["cat", "dog", "car"]).values
    array([[1.  , 0.75, 0.  ],
           [0.75, 1.  , 0.25],
           [0.  , 0.25, 1.  ]])
    """
    check_weights_option(weights)
    require_flag("clip", clip)
    if clip and negative not in (None, "clip"):
        raise ValueError(f'negative must be "clip" or None beside clip=True, got {shown(negative)}.')
    negative = "clip" if clip else negative
    _check_method(method, sigma, negative)
    origin: dict[str, Any] = {}
    if isinstance(D, str | os.PathLike):
        from simdims.io.raw import read_dissimilarity

        D, labels, origin = read_dissimilarity(D, key, labels)
    elif key is not None:
        raise ValueError(f"key must be None unless D is the path of a file, got {shown(key)}.")
    return _from_people(D, method, sigma, negative, labels, weights, origin)


def _check_method(method: Any, sigma: Any, negative: Any) -> None:
    if not isinstance(method, str) or method not in ("max", "correlation", "gaussian"):
        raise ValueError(f'method must be "max", "correlation" or "gaussian", got {shown(method)}.')
    if sigma is not None and (method != "gaussian" or not is_finite_number(sigma) or sigma <= 0):
        raise ValueError(f'sigma must be None or, for method="gaussian", positive and finite, got {sigma!r}.')
    require_choice("negative", negative, (None, "clip", "shift"))
    if negative is not None and method != "correlation":
        raise ValueError(
            f'negative must be None unless method="correlation", got {negative!r} with method={method!r}, which has no '
            "negative similarities."
        )


def _from_people(
    D: Any,
    method: str,
    sigma: float | None,
    negative: str | None,
    labels: Sequence[str] | None,
    weights: str | None,
    origin: dict[str, Any],
) -> Similarity:
    """Similarities from the dissimilarities of one or several people."""
    is_listed = isinstance(labels, list | tuple) or getattr(labels, "ndim", 0) == 1
    people, n_items = _people(D, len(labels) if labels is not None and is_listed else None)
    names = clean_labels(labels, n_items)
    called = [f"D[{number}]" for number in range(len(people))] if len(people) > 1 else ["D"]
    for name, person in zip(called, people, strict=True):
        if np.shape(person) != np.shape(people[0]):
            raise ValueError(f"{name} must have the shape of D[0], {np.shape(people[0])}, got {np.shape(person)}.")
        if is_frame(person):
            names = frame_labels(person, name, names)
    squares = (_square(person, name, names) for name, person in zip(called, people, strict=True))
    distances, counts = mean_over_people(squares, len(people))

    pairs = ~np.isnan(distances)
    np.fill_diagonal(pairs, False)
    if not pairs.any():
        raise ValueError("D must hold at least one pair of two different items, got none.")
    info = {
        **origin,
        "source": "dissimilarity",
        "method": method,
        "n_people": len(people),
        "n_items": n_items,
        "n_pairs": n_items * (n_items - 1) // 2,
        "n_pairs_observed": int(np.count_nonzero(pairs)) // 2,
    }
    if method == "max":
        values, found = _relative_to_largest(distances)
    elif method == "correlation":
        values, found = _one_minus(distances, negative)
    else:
        values, found = _gaussian(
            distances, 2 * float(np.median(0.5 * distances[pairs])) if sigma is None else float(sigma)
        )
    np.fill_diagonal(values, 1.0)
    report("from_dissimilarity", info | found)
    return Similarity(frozen(values), names, frozen(counts) if weights else None, info=info | found)


def _used_rows(
    frame: pd.DataFrame,
    column: Hashable,
    ratings: NDArray[np.float64],
    is_self: NDArray[np.bool_],
    low: float,
    high: float,
) -> tuple[NDArray[np.bool_], dict[str, Any]]:
    """The rows that rate two different items, and how many rows there are of which kind."""
    outside = (ratings < low) | (ratings > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"Column {column!r} must lie between low = {low:g} and high = {high:g}, got {ratings[row]:g} in "
            f"{row_name(row, frame.index)} ({np.count_nonzero(outside)} outside in all)."
        )
    unrated = np.isnan(ratings)
    used = ~unrated & ~is_self
    n_unrated, n_self = int(np.count_nonzero(unrated)), int(np.count_nonzero(is_self & ~unrated))
    if not used.any():
        raise ValueError(f"table must rate at least one pair of two different items, got none in {len(frame)} rows.")
    if n_unrated:
        warn(f"Left out {n_unrated} of the {len(frame)} rows of table: no rating.")
    if n_self:
        warn(f"Left out {n_self} of the {len(frame)} rows of table: ratings of an item with itself, whose value is 1.")
    rows = {"rows_read": len(frame), "rows_without_rating": n_unrated, "rows_of_an_item_with_itself": n_self}
    return used, {"source": "ratings", **rows}


def _means(groups: NDArray[np.intp], scores: NDArray) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """The distinct groups in order, their mean scores and their sizes."""
    distinct, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member)
    return distinct, np.bincount(member, weights=scores) / sizes, sizes


def _filled(n_items: int, pairs: NDArray[np.intp], entries: NDArray, rest: float) -> NDArray[np.float64]:
    """The symmetric matrix with the given entries at the pairs i n + j, and `rest` everywhere else."""
    matrix = np.full((n_items, n_items), rest)
    i, j = np.divmod(pairs, n_items)
    matrix[i, j] = matrix[j, i] = entries
    return matrix


def _people(D: Any, n_labels: int | None) -> tuple[list[Any], int]:
    """One square table or vector of pairs per person, and the number of items of the first."""
    if is_frame(D):
        return [D], len(D)
    is_list = isinstance(D, (list, tuple))
    if not is_list and not hasattr(D, "__array__"):
        raise TypeError(
            f"D must be a NumPy array, a pandas DataFrame, a list of either or a path, got {type(D).__name__}."
        )
    if is_list and len(D) and all(is_frame(person) or getattr(person, "ndim", 0) == 2 for person in D):
        return list(D), len(D[0])
    table = as_array(D, "D")
    if table.ndim == 3 and table.size:
        stack = table if is_list else people_first(table)
        return list(stack), stack.shape[1]
    if table.ndim == 2 and table.shape[0] == table.shape[1]:
        return [table], len(table)
    by_column = None
    if table.ndim in (1, 2) and table.size:
        vectors = as_numbers(np.atleast_2d(table), "D", None)
        by_row, by_column = n_items_of(vectors.shape[1]), n_items_of(vectors.shape[0])
        if by_column is not None and by_column > 2 and by_column == n_labels != by_row:
            return list(vectors.T), by_column
        if by_row is not None:
            return list(vectors), by_row
    columns = (
        f" (if each column is one person's {by_column} items, pass labels or the transpose)"
        if by_column and by_column > 2
        else ""
    )
    raise ValueError(
        "D must be a square matrix, the vector of the n (n - 1) / 2 numbers above its diagonal, or a stack of either "
        f"with people first, got shape {table.shape}{columns}."
    )


def _square(person: Any, name: str, labels: Sequence[str] | None) -> NDArray[np.floating]:
    """One person's matrix, checked, exactly symmetric and with a diagonal of exactly 0."""
    table = frame_cells(person) if is_frame(person) else person
    if table.ndim == 1:
        table = squareform(table, checks=False)
    given = as_numbers(as_table(table, name), name, labels)
    _refuse(given, np.isinf(given), f"{name} must be finite (NaN is a missing pair)", labels)
    rounding = ROUNDING[given.dtype] * float(np.fmax.reduce(np.abs(given), axis=None, initial=0.0))
    _refuse(
        given,
        np.diag(np.abs(given.diagonal()) > rounding),
        f"{name} must have a zero diagonal, as nothing differs from itself (similarities go through as_similarity)",
        labels,
    )
    negative = given < -rounding
    n_negative = int(np.count_nonzero(negative | negative.T)) // 2
    _refuse(given, negative, f"{name} must be non-negative (negative pairs: {n_negative})", labels)
    gap = np.abs(given - given.T)
    if np.fmax.reduce(gap, axis=None, initial=0.0) > rounding:
        i, j = map(int, np.unravel_index(np.nanargmax(gap), gap.shape))
        first, second = name_of(i, labels), name_of(j, labels)
        raise ValueError(
            f"{name} must be symmetric, got {given[i, j]:.6g} at ({first}, {second}) against {given[j, i]:.6g} at "
            f"({second}, {first}): merge the two sides, as in (D + D.T) / 2, or set one that was not measured to NaN."
        )
    mean = 0.5 * given + 0.5 * given.T
    square = np.maximum(np.where(np.isnan(mean), np.fmax(given, given.T), mean), 0)
    np.fill_diagonal(square, 0)
    return square


def _refuse(matrix: NDArray, bad: NDArray[np.bool_], rule: str, labels: Sequence[str] | None) -> None:
    if bad.any():
        i, j = map(int, np.unravel_index(np.argmax(bad), bad.shape))
        raise ValueError(f"{rule}, got {matrix[i, j]:.6g} at ({name_of(i, labels)}, {name_of(j, labels)}).")


def mean_over_people(squares: Iterable[NDArray], n_people: int) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """The mean over the people who have a pair, NaN where nobody has, and how many they are."""
    total: Any = 0.0
    counts: Any = 0.0
    for square in squares:
        observed = ~np.isnan(square)
        if n_people == 1:
            return square, observed.astype(np.float64)
        counts = counts + observed
        with np.errstate(over="ignore"):
            total = total + np.where(observed, square, 0.0).astype(np.float64)
    if np.isinf(total).any():
        raise ValueError("D must be small enough to be summed over people, got sums beyond all floats: divide it.")
    with np.errstate(invalid="ignore"):
        return total / counts, counts


def _relative_to_largest(distances: NDArray) -> tuple[NDArray, dict[str, Any]]:
    largest = float(np.nanmax(distances))
    if largest == 0:
        raise ValueError("D must have at least one positive dissimilarity, got zeros only.")
    return 1 - distances / largest, {"max": largest}


def _one_minus(distances: NDArray, negative: str | None) -> tuple[NDArray, dict[str, Any]]:
    rounding, largest = ROUNDING[distances.dtype], float(np.nanmax(distances))
    if largest > 2 + rounding:
        raise ValueError(
            f'D must lie between 0 and 2 for method="correlation", got {largest:.6g}: use method="max" or "gaussian".'
        )
    values = 1 - distances
    values[(values < 0) & (values >= -rounding)] = 0
    n_negative = int(np.count_nonzero(values < 0)) // 2
    if negative is not None:
        return lift_negatives(values, negative)
    if n_negative:
        raise ValueError(
            f'D must not exceed 1 for method="correlation", got {n_negative:,} {plural("pair", n_negative)} of '
            f'negative similarity, the smallest {1 - largest:.6g}: pass negative="clip" to set them to 0, '
            'negative="shift" to rescale all correlations as (1 + r) / 2, or use method="max" or "gaussian".'
        )
    return values, {}


def _gaussian(distances: NDArray, sigma: float) -> tuple[NDArray, dict[str, Any]]:
    if sigma == 0:
        raise ValueError("sigma must be given where the median of D is 0, got None.")
    with np.errstate(over="ignore"):  # as far apart as this has similarity 0
        return np.exp(-0.5 * (distances / sigma) ** 2), {"sigma": sigma}
