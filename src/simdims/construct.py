"""Similarities from pairwise judgements: ratings, and dissimilarities of one or several people."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import squareform

from simdims._by_system import covariates, listed_set, pair_columns, warn_of_left_out
from simdims._memory import require
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    plural,
    require_choice,
    require_flag,
    require_number,
    shown,
    warn,
)
from simdims._tables import (
    as_frame,
    check_weights_option,
    count_weights,
    own_similarity,
    read_items,
    read_numbers,
    read_systems,
    report,
    row_name,
    warn_of_other_measure,
    warn_of_rare_names,
    warn_of_similar_names,
)
from simdims.similarity import Similarity, aligned, frame_cells, frame_labels, is_frame, labelled
from simdims.similarity.entries import ROUNDING, count_pairs
from simdims.similarity.labels import clean_labels, entry_shown
from simdims.similarity.ownership import frozen
from simdims.similarity.scale import check_ends, find_scale, lift_negatives
from simdims.similarity.symmetry import equal_triangles, n_items_of, people_first
from simdims.similarity.validation import as_array, as_numbers, as_table, refuse_entries
from simdims.systems import SimilaritySet, with_origins

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]

#: What `info` says of each matrix that is not averaged with others.
_OF_ONE = ("source", "method", "max", "sigma", "negative", "n_pairs_negative", "share_negative", "smallest")


@overload
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
    diagonal: str | None = None,
    by: None = None,
) -> Similarity: ...


@overload
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
    diagonal: str | None = None,
    by: str | int,
) -> SimilaritySet: ...


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
    diagonal: str | None = None,
    by: str | int | None = None,
) -> Similarity | SimilaritySet:
    """Similarities from pairwise ratings: the mean rating of each pair, on a scale from 0 to 1.

    The two orders of a pair are treated alike; pairs without a rating are missing.

    Parameters
    ----------
    table : DataFrame, dictionary of columns or list of dictionaries
        One rating per row.
    item1, item2 : column name
        The columns that name the two items. Names are kept as text and sorted (numerically if all are numbers).
    rating : column name
        The column of the ratings; larger values mean more similar. Rows without a rating, and ratings of an item with
        itself, are excluded, and a warning reports how many.
    participant : column name, optional
        The column of participants, whose repeated ratings of a pair are averaged first, so that all count the same.
    low, high : float, optional
        The ends of the rating scale, which become 0 and 1. By default the extreme ratings found, with a warning.
    weights : {"counts"}, optional
        "counts" weights every pair by its number of participants (without `participant`, of ratings), and each diagonal
        entry by the mean of these numbers over the rated pairs.
    diagonal : {"one", "missing"}, optional
        The similarity of an item with itself, which nobody judged: 1, or missing, so that only pairs are fitted. The
        default is 1; with `by` it is missing, and "one" is an error.
    by : column name, optional
        The column of systems (persons, groups, sessions), each with its own similarities, all on the same scale.

    Returns
    -------
    Similarity
        Dense. `info` holds the numbers of rows read and excluded, of items, pairs and rated pairs, and the scale.
    SimilaritySet
        With `by`: one sparse system per value of that column, with a missing diagonal, which nobody rated. Columns of
        the table with one value per system become `info`.

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
    own = own_similarity(diagonal, by)
    check_ends(low, high)
    roles = {"item1": item1, "item2": item2, "rating": rating}
    frame = as_frame(table, **roles, **({} if participant is None else {"participant": participant}))
    if by is not None:
        as_frame(frame, **roles, by=by)
    warn_of_other_measure(rating)
    (first, second), names = read_items(frame, [item1, item2])
    warn_of_similar_names(names, "items")
    warn_of_rare_names(names, np.bincount(np.concatenate([first, second]), minlength=len(names)))
    ratings = read_numbers(frame, rating)
    rated = ratings[~np.isnan(ratings)]
    if not rated.size:
        raise ParameterError("table", "must hold at least one rating", f"none in {len(ratings)} rows")
    low, high = find_scale(float(rated.min()), float(rated.max()), low, high)
    used, info = _used_rows(frame, rating, ratings, first == second, low, high, own)

    n = len(names)
    pairs = np.minimum(first, second)[used] * n + np.maximum(first, second)[used]
    scores = (ratings[used] - low) / (high - low)
    if by is not None:
        groups, systems = read_systems(frame, by)
        person = None if participant == by else participant
        keys, means, counts = _mean_ratings(frame, person, used, groups[used] * n**2 + pairs, scores, info)
        of, pair = np.divmod(keys, n**2)
        known = covariates(frame, groups, systems, [*roles.values(), by, participant])
        judged = (np.divmod(pair, n), np.minimum(means, 1.0), counts if weights else None)
        made = [{"source": "ratings", "low": low, "high": high}] * len(systems)
        return listed_set(of, systems, *judged, names, n, known, made)
    require(40 * n**2, f"A matrix of {n} items", "rate fewer items, or check that item1 and item2 name items")
    pairs, means, counts = _mean_ratings(frame, participant, used, pairs, scores, info)
    info |= {"n_items": n, "n_pairs": n * (n - 1) // 2, "n_pairs_rated": len(pairs), "low": low, "high": high}
    report("from_ratings", info)
    values = _filled(n, pairs, np.minimum(means, 1.0), np.nan)
    np.fill_diagonal(values, own)
    counted = frozen(count_weights(_filled(n, pairs, counts, 0.0))) if weights else None
    return Similarity(frozen(values), names, counted, info=info)


@overload
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
    diagonal: str | None = None,
    item1: Hashable | None = None,
    item2: Hashable | None = None,
    dissimilarity: Hashable | None = None,
    participant: Hashable | None = None,
    sheet: str | None = None,
    na_values: Any = None,
    by: None = None,
) -> Similarity: ...


@overload
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
    diagonal: str | None = None,
    item1: Hashable | None = None,
    item2: Hashable | None = None,
    dissimilarity: Hashable | None = None,
    participant: Hashable | None = None,
    sheet: str | None = None,
    na_values: Any = None,
    by: str | Sequence[str],
) -> SimilaritySet: ...


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
    diagonal: str | None = None,
    item1: Hashable | None = None,
    item2: Hashable | None = None,
    dissimilarity: Hashable | None = None,
    participant: Hashable | None = None,
    sheet: str | None = None,
    na_values: Any = None,
    by: str | Sequence[str] | None = None,
) -> Similarity | SimilaritySet:
    """Similarities from dissimilarities: one matrix, or the average of several people's.

    Parameters
    ----------
    D : array-like, DataFrame, DataArray, list of these, or path
        Dissimilarities, NaN for missing pairs: a square matrix with a zero or missing diagonal, the vector of its upper
        triangle (row by row, as from scipy's pdist), or a stack of either, averaged over the people with a value for
        the pair. People are the first axis, or the last if only that fits (n x n x people); for n matrices of n items,
        symmetry decides. A square two-dimensional array is one matrix. The index and columns of a DataFrame, or the
        coordinates of an xarray DataArray, name the items, and their order may differ. A table with columns for two
        items and their dissimilarity is a list of pairs: see `item1`. A path names a file of any type that
        load_similarity reads or, with `by`, a folder of such files. A MATLAB struct array with one matrix per element,
        as from rsatoolbox, and a Meadows export are stacks.
    method : {"max", "correlation", "gaussian"}, default="max"
        "max": 1 - d / max(d); "correlation": r = 1 - d for distances d = 1 - r; "gaussian": exp(-d^2 / (2 sigma^2)).
    sigma : float, optional
        The width of "gaussian"; by default the median of the observed off-diagonal dissimilarities.
    clip : bool, default=False
        The same as ``negative="clip"``.
    negative : {"clip", "shift"}, optional
        How to treat the negative correlations that "correlation" gives for d > 1; by default they are an error. "clip"
        sets them to 0 and warns how many; "shift" rescales all values as (1 + r) / 2. See as_similarity.
    labels : sequence, optional
        One distinct name per item; must match the names in a DataFrame.
    weights : {"counts"}, optional
        "counts" weights every pair by the number of people with a value for it, and the diagonal by that of all.
    diagonal : {"one", "missing"}, optional
        The similarity of an item with itself, which nobody judged: 1, or missing, so that only pairs are fitted. The
        default is 1; with `by` it is missing, and "one" is an error.
    key : str, optional
        If D is a path: the variable of an .npz, .h5, .hdf5, .h5ad, .mat or .rda file, or "variable.field" of a struct.
    item1, item2, dissimilarity : column name, optional
        The columns of a list of pairs with one dissimilarity per row, if D is a DataFrame, a dictionary of columns or
        the path of a table. Rows of the same pair, in either order, are averaged.
    participant : column name, optional
        In a list of pairs, the column of participants; values are averaged per participant first.
    sheet, na_values : optional
        For the path of a table, as in load_similarity.
    by : str or sequence, optional
        Keep the matrices of a stack as separate systems, each on its own scale. Either one name per matrix or a word
        for what they are: "person" gives the names person1, person2, ..., unless the file has names. DataFrames in a
        list may then have different items. If D is a DataFrame or a table in a file with a column of this name, D is a
        list of pairs and this column names the system; `item1`, `item2` and `dissimilarity`, or the three other columns
        that vary within systems, hold the rest. Columns with one value per system become `info`. If D is a folder, each
        file is a system named after the file; a table beside them becomes `info`, as in `SimilaritySet.load`. `weights`
        must be None.

    Returns
    -------
    Similarity
        Dense; float32 if D is one float32 matrix, else float64. `info` holds the method, its scale, and the numbers of
        people, items, pairs and observed pairs; for a file also its name, what was found in it, and the names of the
        people, if any.
    SimilaritySet
        With `by`: one system per matrix, with a missing diagonal, which nobody judged.

    Examples
    --------
    >>> from simdims.construct import from_dissimilarity
    >>> from_dissimilarity([1.0, 4.0, 3.0], labels=["cat", "dog", "car"]).values
    array([[1.  , 0.75, 0.  ],
           [0.75, 1.  , 0.25],
           [0.  , 0.25, 1.  ]])
    """
    check_weights_option(weights)
    own = own_similarity(diagonal, by)
    require_flag("clip", clip)
    if clip and negative not in (None, "clip"):
        raise ParameterError("negative", "must be None or 'clip' with {clip=True}", shown(negative))
    negative = "clip" if clip else negative
    _check_method(method, sigma, negative)
    origin: dict[str, Any] = {}
    columns = {"item1": item1, "item2": item2, "dissimilarity": dissimilarity}
    settings: dict[str, Any] = {"method": method, "sigma": sigma, "negative": negative}
    if isinstance(D, str | os.PathLike):
        from simdims.io import as_path, clean_na_values
        from simdims.io.raw import read_dissimilarity
        from simdims.io.tables import Reading

        how = Reading(sheet, clean_na_values(na_values), key)
        if as_path(D, "D").is_dir():
            settings |= {"labels": labels, "key": key, "sheet": sheet, "na_values": na_values}
            return _folder_apart(Path(D), by, weights, settings)
        D, labels, origin = read_dissimilarity(D, labels, how, columns, by if participant is None else participant)
    else:
        for name, value in {"key": key, "sheet": sheet, "na_values": na_values}.items():
            if value is not None:
                raise ParameterError(name, "must be None unless D is the path of a file", shown(value))
    if by is not None:
        _refuse_counts_beside(by, weights)
        return _people_apart(D, by, origin.get("people"), columns, {**settings, "labels": labels})
    if any(column is not None for column in columns.values()) or participant is not None:
        D = _squares_of_list(D, columns, participant, labels).people
    people, names = _people(D, labels)
    squares = (_square(person, name, names) for name, person in people.items())
    distances, counts = mean_over_people(squares, len(people))
    n = len(distances)
    pairs = ~np.isnan(distances)
    np.fill_diagonal(pairs, False)
    if not pairs.any():
        raise ParameterError("D", "must hold at least one pair of two different items", "none")
    values, found = _convert(distances, pairs, method, sigma, negative)
    np.fill_diagonal(values, own)
    info = {**origin, "source": "dissimilarity", "method": method, "n_people": len(people), "n_items": n}
    info |= {"n_pairs": n * (n - 1) // 2, "n_pairs_observed": int(np.count_nonzero(pairs)) // 2, **found}
    report("from_dissimilarity", info)
    return Similarity(frozen(values), names, frozen(counts) if weights else None, info=info)


def _people_apart(
    D: Any, by: Any, own_names: Sequence[str] | None, columns: dict[str, Any], settings: dict[str, Any]
) -> SimilaritySet:
    """The similarities of each person in a stack or list of pairs, without a diagonal."""
    names: Any
    info = None
    is_named = any(column is not None for column in columns.values())
    if is_named or (is_frame(D) and isinstance(by, str) and by in list(D.columns)):
        people, names, info = _judged(_squares_of_list(D, columns, by, settings["labels"]))
    elif is_frame(D) and isinstance(by, str) and D.shape[0] != D.shape[1]:
        got = f"{by!r}: it has {', '.join(map(repr, D.columns))}"
        raise ParameterError("by", "must name a column of a list of pairs", got)
    else:
        is_frames = isinstance(D, (list, tuple)) and len(D) > 0 and all(map(is_frame, D))
        # Tables may have different items and are matched by label.
        people = list(D) if is_frames else list(_people(D, settings["labels"])[0].values())
        numbered = own_names or [f"{by}{m + 1}" for m in range(len(people))]
        names = numbered if isinstance(by, str) else list(by)
    systems = []
    for m, person in enumerate(people):
        try:
            systems.append(_without_diagonal(person, settings))
        except ParameterError as error:
            error.file = error.file or f"system {str(names[m])!r}" if m < len(names) else error.file
            raise
    found = SimilaritySet([values for values, _ in systems], names=names, info=info)
    return with_origins(found, [made for _, made in systems])


def _folder_apart(folder: Path, by: Any, weights: Any, settings: dict[str, Any]) -> SimilaritySet:
    """The similarities in each file of a folder, without a diagonal."""
    from simdims.io import named_in_errors
    from simdims.io.folders import read_folder

    if not isinstance(by, str):
        rule = "must say what the files of a folder are"
        raise ParameterError("by", rule, shown(by), "pass {by=person}, for example; the files give the names")
    _refuse_counts_beside(by, weights)
    found = read_folder(folder)
    systems = {}
    for name, file in found.files.items():
        with named_in_errors(file):
            systems[name] = _without_diagonal(file, settings)
    people = SimilaritySet({name: values for name, (values, _) in systems.items()}, info=found.info)
    return with_origins(people, [made for _, made in systems.values()])


def _refuse_counts_beside(by: Any, weights: Any) -> None:
    if by is not None and weights is not None:
        raise ParameterError("weights", "must be None beside {by}, as no pair is averaged", shown(weights))


def _without_diagonal(person: Any, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The similarities of one person, without a diagonal, and how they were made."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Observed on the diagonal")  # about items that this person did not judge
        own = from_dissimilarity(person, **settings)
    values = own.values.copy()
    np.fill_diagonal(values, np.nan)
    items = None if own.labels is None else list(own.labels)
    made = {key: value for key, value in own.info.items() if key in _OF_ONE}
    return values if items is None else pd.DataFrame(values, index=items, columns=items), made


class _Squares(NamedTuple):
    """A square table per person, and the names and covariates of the people."""

    people: list[pd.DataFrame]
    names: list[str]
    info: dict[str, Any] | None


def _judged(squares: _Squares) -> _Squares:
    """The people with a value, and a warning about others."""
    kept = [g for g, square in enumerate(squares.people) if square.notna().to_numpy().any()]
    if len(kept) == len(squares.people) or not kept:
        return squares
    warn_of_left_out([name for g, name in enumerate(squares.names) if g not in kept])
    info = {key: [column[g] for g in kept] for key, column in (squares.info or {}).items()}
    return _Squares([squares.people[g] for g in kept], [squares.names[g] for g in kept], info)


def _squares_of_list(D: Any, columns: dict[str, Any], by: Hashable | None, labels: Sequence[str] | None) -> _Squares:
    """A square table of all items per person (without `by`, one for all people) from a list of pairs."""
    import pandas as pd

    if all(column is None for column in columns.values()) and is_frame(D):
        columns = dict(zip(columns, pair_columns(D, by), strict=True))
    if missing := [name for name, column in columns.items() if column is None]:
        raise ParameterError(missing[0], "must be given for a list of pairs", "None")
    frame = as_frame(D, **columns, **({} if by is None else {"by": by}))
    (first, second), items = read_items(frame, [columns["item1"], columns["item2"]])
    warn_of_similar_names(items, "items")
    values = read_numbers(frame, columns["dissimilarity"])
    groups, names = (np.zeros(len(values), dtype=np.intp), [""]) if by is None else read_systems(frame, by)
    known = None if labels is None else clean_labels(labels, len(list(labels)))
    order = list(known) if known is not None and set(items) <= set(known) else items
    require(8 * len(items) ** 2 * len(names), f"{len(names)} matrices of {len(items)} items", "read fewer people")
    squares = []
    for g in range(len(names)):
        rows = np.flatnonzero((groups == g) & ~np.isnan(values))
        keys = np.minimum(first, second)[rows] * len(items) + np.maximum(first, second)[rows]
        pairs, means, _ = _means(keys, values[rows])
        square = _filled(len(items), pairs, means, np.nan)
        squares.append(pd.DataFrame(square, index=items, columns=items).reindex(index=order, columns=order))
    info = None if by is None else covariates(frame, groups, names, [*columns.values(), by])
    return _Squares(squares, names, info)


def _check_method(method: Any, sigma: Any, negative: Any) -> None:
    require_choice("method", method, ("max", "correlation", "gaussian"))
    if sigma is not None:
        require_number("sigma", sigma, "positive")
        if method != "gaussian":
            raise ParameterError("sigma", "must be None unless {method=gaussian}", f"{sigma!r} with method={method!r}")
    require_choice("negative", negative, (None, "clip", "shift"))
    if negative is not None and method != "correlation":
        got = f"{negative!r} with method={method!r}, which has no negative similarities"
        raise ParameterError("negative", "must be None unless {method=correlation}", got)


def _used_rows(
    frame: pd.DataFrame, column: Hashable, ratings: Floats, is_self: Flags, low: float, high: float, own: float
) -> tuple[Flags, dict[str, Any]]:
    """The rows that rate two different items, and the numbers of rows read and excluded."""
    outside = (ratings < low) | (ratings > high)
    if outside.any():
        row = int(np.argmax(outside))
        got = f"{ratings[row]:g} in {row_name(row, frame.index)} ({np.count_nonzero(outside):,} outside in all)"
        raise ParameterError(f"Column {column!r}", f"must lie between low = {low:g} and high = {high:g}", got)
    unrated = np.isnan(ratings)
    used = ~unrated & ~is_self
    n_unrated, n_self = int(np.count_nonzero(unrated)), int(np.count_nonzero(is_self & ~unrated))
    if not used.any():
        rule = "must rate at least one pair of two different items"
        raise ParameterError("table", rule, f"none in {len(frame)} rows")
    if n_unrated:
        warn(f"Excluded {n_unrated:,} of the {len(frame):,} rows: no rating.")
    if n_self:
        kept = "whose value is 1" if own == 1.0 else "which is left missing"
        warn(f"Excluded {n_self:,} of the {len(frame):,} rows: ratings of an item with itself, {kept}.")
    rows = {"rows_read": len(frame), "rows_without_rating": n_unrated, "rows_of_an_item_with_itself": n_self}
    return used, {"source": "ratings", **rows}


def _mean_ratings(
    frame: pd.DataFrame, participant: Hashable | None, used: Flags, pairs: Places, scores: Floats, info: dict[str, Any]
) -> tuple[Places, Floats, Places]:
    """The distinct pairs, the means of their participants' mean scores, and the numbers of participants or scores."""
    if participant is not None:
        (people,), persons = read_items(frame, [participant])
        warn_of_similar_names(persons, "participants")
        info["n_participants"] = len(persons)
        answers, scores, _ = _means(pairs * len(persons) + people[used], scores)
        pairs = answers // len(persons)
    return _means(pairs, scores)


def _means(groups: Places, scores: NDArray) -> tuple[Places, Floats, Places]:
    """The distinct groups in order, their mean scores and their sizes."""
    distinct, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member)
    return distinct, np.bincount(member, weights=scores) / sizes, sizes


def _filled(n_items: int, pairs: Places, entries: NDArray, rest: float) -> Floats:
    """The symmetric matrix with the given entries at the pairs i n + j, and `rest` elsewhere."""
    matrix = np.full((n_items, n_items), rest)
    i, j = np.divmod(pairs, n_items)
    matrix[i, j] = matrix[j, i] = entries
    return matrix


def _people(D: Any, labels: Sequence[str] | None) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    """Each person's table, keyed by its name in error messages, and the labels."""
    is_listed = isinstance(labels, list | tuple) or getattr(labels, "ndim", 0) == 1
    tables, n_items = _tables(D, len(labels) if labels is not None and is_listed else None)
    names = clean_labels(labels, n_items)
    people = {f"D[{number}]": table for number, table in enumerate(tables)} if len(tables) > 1 else {"D": tables[0]}
    for name, person in people.items():
        if np.shape(person) != np.shape(tables[0]):
            raise ParameterError(name, f"must have the shape of D[0], {np.shape(tables[0])}", str(np.shape(person)))
        if is_frame(person):
            people[name] = person = aligned(person, name, names if labels is None else None)
            names = frame_labels(person, name, names)
    return people, names


def _tables(D: Any, n_labels: int | None) -> tuple[list[Any], int]:
    """One square table or vector of pairs per person, and the number of items of the first."""
    D = [labelled(person) for person in D] if isinstance(D, (list, tuple)) else labelled(D)
    if is_frame(D):
        return [D], len(D)
    is_list = isinstance(D, (list, tuple))
    if not is_list and not hasattr(D, "__array__"):
        rule = "must be a NumPy array, a pandas DataFrame, a list of either or a path"
        raise ParameterTypeError("D", rule, type(D).__name__)
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
    rule = "must be a square matrix, the vector of the n (n - 1) / 2 numbers above its diagonal, or a stack of either"
    remedy = f"if each column is one person's {by_column} items, pass {{labels}} or the transpose"
    raise ParameterError("D", rule, f"shape {table.shape}", remedy if by_column and by_column > 2 else None)


def _square(person: Any, name: str, labels: Sequence[str] | None) -> NDArray[np.floating]:
    """One person's matrix, checked and made exactly symmetric with a zero diagonal."""
    table = frame_cells(person) if is_frame(person) else person
    if table.ndim == 1:
        table = squareform(table, checks=False)
    given = as_numbers(as_table(table, name), name, labels)
    refuse_entries(given, np.isinf, name, "must be finite (NaN is a missing pair)", labels)
    rounding = ROUNDING[given.dtype] * float(np.fmax.reduce(np.abs(given), axis=None, initial=0.0))
    is_nonzero = np.abs(given.diagonal()) > rounding
    if is_nonzero.any():
        item = int(np.argmax(is_nonzero))
        rule = "must have a zero diagonal, as nothing differs from itself (for similarities, use {as_similarity()})"
        raise ParameterError(name, rule, entry_shown((item, item, given[item, item]), labels))
    n_negative = count_pairs(given, lambda here, there: (here < -rounding) | (there < -rounding))
    rule = f"must be non-negative (negative pairs: {n_negative})"
    refuse_entries(given, lambda entries: entries < -rounding, name, rule, labels)
    remedy = "merge the two sides, as in (D + D.T) / 2, or set one that was not measured to NaN"
    square = np.maximum(equal_triangles(given, None, labels, name=name, remedy=remedy)[0], 0)
    np.fill_diagonal(square, 0)
    return square


def mean_over_people(squares: Iterable[NDArray], n_people: int) -> tuple[NDArray[np.floating], Floats]:
    """The mean over the people who have each pair (NaN if nobody has), and the number of these people."""
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
        rule = "must be small enough to be summed over people"
        raise ParameterError("D", rule, "sums beyond all floats", "divide it")
    with np.errstate(invalid="ignore"):
        return total / counts, counts


def _convert(
    distances: NDArray, pairs: NDArray[np.bool_], method: str, sigma: float | None, negative: str | None
) -> tuple[NDArray, dict[str, Any]]:
    """Dissimilarities as similarities, with the scale or how negative values were treated."""
    if method == "correlation":
        return _correlations(distances, negative)
    if method == "max":
        largest = float(np.nanmax(distances))
        if largest == 0:
            raise ParameterError("D", "must have at least one positive dissimilarity", "zeros only")
        return 1 - distances / largest, {"max": largest}
    width = 2 * float(np.median(0.5 * distances[pairs])) if sigma is None else float(sigma)
    if width == 0:
        raise ParameterError("sigma", "must be given if the median of D is 0", "None")
    with np.errstate(over="ignore"):  # overflow means similarity 0
        return np.exp(-0.5 * (distances / width) ** 2), {"sigma": width}


def _correlations(distances: NDArray, negative: str | None) -> tuple[NDArray, dict[str, Any]]:
    rounding, largest = ROUNDING[distances.dtype], float(np.nanmax(distances))
    if largest > 2 + rounding:
        rule, remedy = "must lie between 0 and 2 for {method=correlation}", "use {method=max} or {method=gaussian}"
        raise ParameterError("D", rule, f"{largest:.6g}", remedy)
    values = 1 - distances
    values[(values < 0) & (values >= -rounding)] = 0
    n_negative = int(np.count_nonzero(values < 0)) // 2
    if negative is not None:
        return lift_negatives(values, negative)
    if n_negative:
        got = f"{n_negative:,} {plural('pair', n_negative)} of negative similarity, the smallest {1 - largest:.6g}"
        remedy = (
            "pass {negative=clip} to set them to 0, {negative=shift} to rescale all correlations as (1 + r) / 2, or "
            "use {method=max} or {method=gaussian}"
        )
        raise ParameterError("D", "must not exceed 1 for {method=correlation}", got, remedy)
    return values, {}
