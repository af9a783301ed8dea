"""What a matrix of similarities must be: a sentence for every rule that one can break."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from simdims._cells import advice, as_floats
from simdims._memory import require
from simdims._parameters import as_float
from simdims._triangles import COPY_WAYS_OUT, Matrix, facing, name_of

# Rows of a dense matrix that are looked at together, so that no check makes a second n x n array.
BLOCK_ROWS = 256
N_NAMED = 5

ABSENT_OPTIONS = (
    'absent="missing" (nobody measured the pairs that are not stored), absent="zero" (they were measured '
    "and are 0) or a number between 0 and 1 (they are zeros believed with that weight)"
)


def as_table(x: Any, name: str) -> Any:
    """Return `x` as a square 2-d ndarray or scipy sparse matrix of any dtype."""
    table = x if sparse.issparse(x) else as_array(x, name)
    if table.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got dtype {table.dtype} (Complex data not supported).")
    if table.ndim != 2:
        raise ValueError(f"{name} must be a square matrix, got {table.ndim} dimension(s), shape {table.shape}.")
    if table.shape[1] == 0:
        raise ValueError(
            f"{name} must have a row and a column for every item, got 0 feature(s) (shape={table.shape}) "
            "while a minimum of 1 is required."
        )
    if table.shape[0] != table.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {table.shape}.")
    return table


def as_numbers(table: Any, name: str, labels: Sequence[str] | None) -> Matrix:
    """Return a table as floats, float64 unless it is float32, and as canonical CSR if it is sparse."""
    kind = table.dtype.kind
    if kind not in ("biuf" if sparse.issparse(table) else "biufOUS"):
        raise TypeError(f"{name} must hold numbers, got dtype {table.dtype}.")
    dtype = np.dtype(np.float32 if table.dtype.newbyteorder("=") == np.float32 else np.float64)
    if sparse.issparse(table):
        return _canonical_csr(table).astype(dtype, copy=False)
    if table.dtype != dtype:
        require(table.size * dtype.itemsize, f"A copy of {name} in {dtype}", COPY_WAYS_OUT)
    if kind in "biuf":
        return table.astype(dtype, copy=False)
    return as_floats(table, lambda place, cell: _cell_error(place, cell, name, labels))


def clean_labels(labels: Iterable[object] | None, n_items: int) -> tuple[str, ...] | None:
    """Return one distinct str an item, or None."""
    if labels is None:
        return None
    is_sequence = isinstance(labels, Iterable) and not isinstance(labels, (str, bytes, set, frozenset))
    if not is_sequence or getattr(labels, "ndim", 1) != 1:
        raise TypeError(f"labels must be a sequence with one name an item, got {labels!r}.")
    given = list(labels)
    nested = [label for label in given if getattr(label, "ndim", 0)]
    if nested:
        raise TypeError(f"labels must hold one name an item, got a {type(nested[0]).__name__} for one.")
    unnamed = [place for place, label in enumerate(given) if _is_no_name(label)]
    if unnamed:
        raise ValueError(f"labels must name every item, got none in place {unnamed[0]}.")
    names = tuple(str(label) for label in given)
    if len(names) != n_items:
        raise ValueError(f"labels must have one name for each of the {n_items} items, got {len(names)}.")
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"labels must be distinct, got {_some(repeated)} more than once.")
    return names


def _is_no_name(label: object) -> bool:
    different = label != label
    # pandas' NA is neither equal to itself nor different.
    return label is None or not isinstance(different, bool | np.bool_) or bool(different)


def clean_factors(factors: Any, *, signed: bool = False) -> np.ndarray:
    """Return factors F with S = F F^T as a finite and, unless signed, non-negative array of floats, so that S is."""
    if not isinstance(signed, bool | np.bool_):
        raise TypeError(f"signed must be True or False, got {signed!r}.")
    table = as_array(factors, "factors")
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"factors must have a row for every item and a column for every factor, got shape {table.shape}."
        )
    if table.dtype.kind not in "biuf":
        raise TypeError(f"factors must hold numbers, got dtype {table.dtype}.")
    table = np.ascontiguousarray(table, dtype=np.float32 if table.dtype == np.float32 else np.float64)
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise ValueError(f"factors must be finite, got NaN or infinity in row {row}.")
    if not signed and table.min() < 0:
        raise ValueError(
            f"factors must be non-negative, so that the similarities are, got {np.count_nonzero(table < 0)} negative "
            f"values, the smallest {table.min():g}."
        )
    return table


def clean_absent(absent: object, values: Any) -> str | float | None:
    """Return what an unstored pair means, which sparse values must say and dense values cannot."""
    if not sparse.issparse(values):
        if absent is not None:
            raise ValueError(
                f"absent must be None for dense values, which store every pair (NaN is a missing one), got {absent!r}."
            )
        return None
    if absent is None:
        raise ValueError(
            "absent must say what the pairs that sparse values do not store mean, got None: pass "
            f"Similarity(..., absent=) or as_similarity(..., absent=) {ABSENT_OPTIONS}."
        )
    if isinstance(absent, str) and absent in ("missing", "zero"):
        return absent
    if isinstance(absent, Real) and not isinstance(absent, bool):
        weight = float(absent)
        if 0 < weight < 1:
            return weight
        if weight in (0, 1):
            word = "zero" if weight else "missing"
            raise ValueError(f'absent must be strictly between 0 and 1 as a number, got {absent!r}: say "{word}".')
    raise ValueError(f"absent must be {ABSENT_OPTIONS}, got {absent!r}.")


def check_values(values: Matrix, labels: Sequence[str] | None) -> None:
    """Refuse infinite and negative similarities."""
    infinite = _first_entry(values, np.isinf)
    if infinite is not None:
        raise ValueError(
            f"values must be finite, but contains infinity: {_entry_in_words(infinite, labels)} (NaN is a "
            "missing pair)."
        )
    smallest = min(float(np.fmin.reduce(chunk, axis=None, initial=0.0)) for chunk in _chunks(values))
    if smallest < 0:
        n_pairs = _count_negative_pairs(values)
        raise ValueError(
            f"Negative values in data passed to Similarity: values must be non-negative, got {n_pairs} "
            f"negative {_plural('pair', n_pairs)}, the smallest {smallest:.6g}; distances go through "
            'from_dissimilarity, features through from_features(..., kernel="rbf") (an RBF kernel is never '
            "negative), and rounding errors can be set to 0."
        )


def check_ends(low: Any, high: Any) -> None:
    """Refuse ends of a rating scale that are no numbers."""
    for name, end in (("low", low), ("high", high)):
        is_number = isinstance(end, Real) and not isinstance(end, bool) and np.isfinite(as_float(end))
        if end is not None and not is_number:
            raise ValueError(f"{name} must be a finite number or None, got {end!r}.")


def find_scale(smallest: float, largest: float, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the ends of a rating scale; an end that is not given is found in the ratings, with a warning."""
    found = [f"low = {smallest:g}"] if low is None else []
    found += [f"high = {largest:g}"] if high is None else []
    low, high = float(smallest if low is None else low), float(largest if high is None else high)
    given = " (found in the ratings)" if found else ""
    if low >= high:
        raise ValueError(f"low must be less than high, got low = {low:g} and high = {high:g}{given}.")
    if not np.isfinite(high - low):
        raise ValueError(f"high - low must be finite, got low = {low:g} and high = {high:g}{given}.")
    if found:
        _warn(
            f"The scale of the ratings was not given: took {' and '.join(found)} from the ratings found; pass low= and "
            "high= if the scale is wider."
        )
    return low, high


def rescale(
    values: Matrix, absent: object, labels: Sequence[str] | None, low: float | None, high: float | None
) -> tuple[Matrix, float, float]:
    """Return ratings between low and high as similarities between 0 and 1, and both ends of the scale."""
    check_ends(low, high)
    ends = value_range(values, diagonal=True)
    if ends is None:
        raise ValueError("values must hold at least one observed entry, got none: everything is missing.")
    low, high = find_scale(*ends, low, high)
    if low != 0 and sparse.issparse(values) and absent != "missing":
        raise ValueError(
            f'low must be 0 unless absent="missing", got {low:g}: pairs that are not stored count as 0, which is off '
            "the scale."
        )
    outside = _first_entry(values, lambda entries: (entries < low) | (entries > high))
    if outside is not None:
        n_outside = sum(int(np.count_nonzero((chunk < low) | (chunk > high))) for chunk in _chunks(values))
        on_diagonal = ": set the diagonal to NaN if nobody rated it" if outside[0] == outside[1] else ""
        raise ValueError(
            f"values must lie between low = {low:g} and high = {high:g}, got {_entry_in_words(outside, labels)} "
            f"({n_outside} outside in all){on_diagonal}."
        )
    if not sparse.issparse(values):
        return (values - low) / (high - low), low, high
    scaled = values.copy()
    scaled.data = (scaled.data - low) / (high - low)
    return scaled, low, high


def value_range(values: Matrix, *, diagonal: bool = False) -> tuple[float, float] | None:
    """Return the smallest and the largest value observed, None without any; `diagonal` counts the diagonal too."""
    smallest, largest = np.inf, -np.inf
    if sparse.issparse(values):
        stored = values.tocoo()
        entries = [stored.data if diagonal else stored.data[stored.coords[0] != stored.coords[1]]]
    else:
        entries = _chunks(values)
    for number, chunk in enumerate(entries):
        if not diagonal and not sparse.issparse(values):
            chunk = chunk.astype(np.float64)
            place = np.arange(len(chunk))
            chunk[place, place + number * BLOCK_ROWS] = np.nan
        smallest = min(smallest, float(np.fmin.reduce(chunk, axis=None, initial=np.inf)))
        largest = max(largest, float(np.fmax.reduce(chunk, axis=None, initial=-np.inf)))
    return (smallest, largest) if smallest <= largest else None


def check_same_storage(weights: Any, values: Any) -> None:
    """Refuse weights that are not stored as values are, or not of their shape."""
    if sparse.issparse(weights) != sparse.issparse(values):
        stored = "sparse" if sparse.issparse(values) else "dense"
        raise ValueError(f"weights must be {stored} as values is, got {type(weights).__name__}.")
    if weights.shape != values.shape:
        raise ValueError(f"weights must have the shape of values, {values.shape}, got {weights.shape}.")


def check_weights(weights: Matrix, labels: Sequence[str] | None) -> None:
    """Refuse infinite, missing and negative weights."""
    bad = _first_entry(weights, lambda entries: ~np.isfinite(entries))
    if bad is not None:
        raise ValueError(f"weights must be finite, got {_entry_in_words(bad, labels)} (0 leaves a pair out).")
    negative = _first_entry(weights, lambda entries: entries < 0)
    if negative is not None:
        raise ValueError(f"weights must be non-negative, got {_entry_in_words(negative, labels)}.")


def count_observed(values: Matrix, weights: Matrix | None, absent: str | float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return how many partners each item is observed with, and whether its own diagonal entry is observed."""
    if sparse.issparse(values):
        return _count_observed_stored(values, weights, absent)
    n_items = values.shape[0]
    n_partners, on_diagonal = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=bool)
    for start in range(0, n_items, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        observed = _is_observed(values[rows], None if weights is None else weights[rows])
        on_diagonal[rows] = observed.diagonal(offset=start)
        n_partners[rows] = np.count_nonzero(observed, axis=1) - on_diagonal[rows]
    return n_partners, on_diagonal


def check_observed(n_partners: np.ndarray, on_diagonal: np.ndarray, labels: Sequence[str] | None) -> None:
    """Refuse items without any observed entry; warn of those observed on the diagonal only."""
    alone = n_partners == 0
    if not (~alone | on_diagonal).any():
        raise ValueError("values must hold at least one observed entry, got none: everything is missing.")
    unobserved = np.flatnonzero(alone & ~on_diagonal)
    if unobserved.size:
        them = "it" if unobserved.size == 1 else "them"
        raise ValueError(
            f"values must hold an observed similarity of every item, got none for {unobserved.size} "
            f"{_plural('item', unobserved.size)}: {_named(unobserved, labels)}; remove {them}."
        )
    only_diagonal = np.flatnonzero(alone)
    if only_diagonal.size and n_partners.size > 1:
        _warn(
            f"Observed on the diagonal of values only: {_named(only_diagonal, labels)} ({only_diagonal.size} "
            f"{_plural('item', only_diagonal.size)}); nothing relates them to the others: consider leaving "
            "them out."
        )


def warn_of_dissimilarity(values: Matrix, on_diagonal: np.ndarray) -> None:
    """Warn where no item is similar to itself but some are to others."""
    diagonal = values.diagonal()[on_diagonal]
    # Distances that were computed have a diagonal of rounding errors.
    if diagonal.size and any((1e-8 * chunk > diagonal.max()).any() for chunk in _chunks(values)):
        _warn(
            "values looks like a dissimilarity matrix: its diagonal is zero and its largest values lie off "
            "it; use from_dissimilarity for distances, or set the diagonal to NaN if, as in a graph, it "
            "means nothing."
        )


def as_array(x: Any, name: str) -> np.ndarray:
    if isinstance(x, np.ma.MaskedArray):
        fillable = x.astype(np.float64) if x.dtype.kind in "biu" else x
        return np.ma.filled(fillable, np.nan)
    if isinstance(x, (list, tuple)):
        try:
            return np.asarray(x)
        except ValueError as error:
            raise ValueError(f"{name} must have rows of one length, got lists of different lengths.") from error
    if not hasattr(x, "__array__") or hasattr(x, "columns"):
        raise TypeError(
            f"{name} must be a NumPy array, a list of lists or a scipy sparse matrix (as_similarity takes a pandas "
            f"DataFrame, a networkx graph, rsatoolbox RDMs and a Similarity as well), got {type(x).__name__}."
        )
    return np.asarray(x)


def _canonical_csr(table: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(table)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # sorting is done in place, and these may be the caller's arrays
        matrix.sum_duplicates()
    return matrix


def _cell_error(place: tuple[int, ...], cell: Any, name: str, labels: Sequence[str] | None) -> Exception:
    where = f"row {name_of(place[0], labels)}, column {name_of(place[1], labels)}"
    if isinstance(cell, str):
        return ValueError(f"{name} must hold numbers, got the text {str(cell)!r} in {where}: {advice(cell)}.")
    return TypeError(
        f"{name} must hold numbers, got {cell!r} in {where}: the argument must be a number, or a string that spells a "
        "number."
    )


def _chunks(matrix: Matrix) -> list[np.ndarray]:
    """All entries: the stored ones of a sparse matrix, blocks of rows of a dense one."""
    if sparse.issparse(matrix):
        return [matrix.data]
    return [matrix[start : start + BLOCK_ROWS] for start in range(0, matrix.shape[0], BLOCK_ROWS)]


def _first_entry(matrix: Matrix, is_bad: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int, float] | None:
    """The first entry that is bad, as row, column and value."""
    for number, chunk in enumerate(_chunks(matrix)):
        bad = is_bad(chunk)
        if not bad.any():
            continue
        place = np.unravel_index(np.argmax(bad), chunk.shape)
        if sparse.issparse(matrix):
            row = int(np.searchsorted(matrix.indptr, place[0], side="right")) - 1
            return row, int(matrix.indices[place[0]]), float(chunk[place])
        return number * BLOCK_ROWS + int(place[0]), int(place[1]), float(chunk[place])
    return None


def _count_negative_pairs(matrix: Matrix) -> int:
    """How many pairs, diagonal included, are negative on either side."""
    return sum(
        int(np.count_nonzero(((tile.here < 0) | (tile.mirrored < 0)) & (tile.rows <= tile.columns)))
        for tile in facing(matrix)
    )


def _is_observed(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    known = ~np.isnan(values)
    return known if weights is None else known & (weights > 0)


def _count_observed_stored(
    values: sparse.csr_array, weights: sparse.csr_array | None, absent: str | float | None
) -> tuple[np.ndarray, np.ndarray]:
    n_items = values.shape[0]
    rows = np.repeat(np.arange(n_items), np.diff(values.indptr))
    is_diagonal = rows == values.indices
    observed = _is_observed(values.data, None if weights is None else weights.data)
    on_diagonal = np.zeros(n_items, dtype=bool)
    on_diagonal[rows[is_diagonal & observed]] = True
    if absent == "missing":
        return np.bincount(rows[~is_diagonal & observed], minlength=n_items), on_diagonal
    n_left_out = np.bincount(rows[~is_diagonal & ~observed], minlength=n_items)
    return n_items - 1 - n_left_out, on_diagonal


def _entry_in_words(entry: tuple[int, int, float], labels: Sequence[str] | None) -> str:
    row, column, value = entry
    return f"{value:.6g} at ({name_of(row, labels)}, {name_of(column, labels)})"


def _named(items: np.ndarray, labels: Sequence[str] | None) -> str:
    return _some([name_of(item, labels) for item in items])


def _some(names: list[str]) -> str:
    rest = len(names) - N_NAMED
    return ", ".join(names[:N_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _warn(sentence: str) -> None:
    """Warn at the first line above that is not simdims' own."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "simdims":
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, UserWarning, stacklevel=level)
