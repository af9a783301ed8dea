"""Validation of similarity matrices, with an error that says which rule is violated and where."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from simdims._cells import advice, as_floats
from simdims._memory import require
from simdims._parameters import ParameterError, ParameterTypeError, plural, require_flag, shortlist, shown, warn
from simdims.similarity.entries import (
    BLOCK_ROWS,
    COPY_REMEDY,
    Matrix,
    count_pairs,
    first_entry,
    is_observed,
    smallest_entry,
)
from simdims.similarity.labels import clean_labels, entry_shown, name_of
from simdims.similarity.symmetry import equal_triangles

# A template: see `simdims._parameters.spelled`.
ABSENT_OPTIONS = (
    "{absent=missing} (pairs that are not stored were not measured), {absent=zero} (they were measured and are 0) or a "
    "number between 0 and 1 (they are zeros with that weight)"
)


def clean_parts(
    values: Any, labels: Any, weights: Any, absent: Any, symmetrize: str | None = None, negative: str | None = None
) -> tuple[Matrix, tuple[str, ...] | None, Matrix | None, str | float | None]:
    """Check the parts of a Similarity and their consistency, and make the triangles equal."""
    table = as_table(values, "values")
    names = clean_labels(labels, table.shape[0])
    meaning = clean_absent(absent, table)
    numbers = as_numbers(table, "values", names)
    _check_values(numbers, names, may_be_negative=negative is not None)
    if weights is not None:
        weights = _clean_weights(weights, numbers, names)
    unstored = np.nan if symmetrize is None or meaning in (None, "missing") else 0.0
    numbers, weights = equal_triangles(numbers, weights, names, symmetrize=symmetrize, unstored=unstored)
    return numbers, names, weights, meaning


def as_table(x: Any, name: str) -> Any:
    """Return `x` as a square 2-d ndarray or scipy sparse matrix of any dtype."""
    table = x if sparse.issparse(x) else as_array(x, name)
    # scikit-learn's estimator checks look for the phrases in parentheses.
    if table.dtype.kind == "c":
        raise ParameterError(name, "must be real", f"dtype {table.dtype} (Complex data not supported)")
    if table.ndim != 2:
        remedy = "for several systems, pass a SimilaritySet" if table.ndim == 3 else None
        got = f"{table.ndim} dimension(s), shape {table.shape}"
        raise ParameterError(name, "must be a square matrix", got, remedy)
    if table.shape[1] == 0:
        got = f"0 feature(s) (shape={table.shape}) while a minimum of 1 is required"
        raise ParameterError(name, "must have a row and a column for every item", got)
    if table.shape[0] != table.shape[1]:
        raise ParameterError(name, "must be a square matrix", f"shape {table.shape}")
    return table


def as_array(x: Any, name: str) -> np.ndarray:
    """Return lists, masked arrays and array-likes as an ndarray; refuse what only as_similarity can convert."""
    from simdims.similarity.container import Similarity  # imports this module

    # np.asarray of a Similarity would drop its labels.
    if any(isinstance(part, Similarity) for part in (x if isinstance(x, (list, tuple)) else (x,))):
        raise ParameterTypeError(name, "must be a NumPy array or a list of lists", "a Similarity", "pass its values")
    if isinstance(x, np.ma.MaskedArray):
        fillable = x.astype(np.float64) if x.dtype.kind in "biu" else x
        return np.ma.filled(fillable, np.nan)
    if isinstance(x, (list, tuple)):
        try:
            return np.asarray(x)
        except ValueError as error:
            raise ParameterError(name, "must have rows of one length", "lists of different lengths") from error
    if not hasattr(x, "__array__") or hasattr(x, "columns"):
        rule = (
            "must be a NumPy array, a list of lists or a scipy sparse matrix (as_similarity also takes a pandas "
            "DataFrame, a networkx graph, rsatoolbox RDMs and a Similarity)"
        )
        remedy = "read a file with {load_similarity()}" if isinstance(x, str | os.PathLike) else None
        raise ParameterTypeError(name, rule, type(x).__name__, remedy)
    return np.asarray(x)


def as_numbers(table: Any, name: str, labels: Sequence[str] | None) -> Matrix:
    """Return a table as float64, or as float32 if it already is, and as canonical CSR if it is sparse."""
    kind = table.dtype.kind
    if kind not in ("biuf" if sparse.issparse(table) else "biufOUS"):
        raise ParameterTypeError(name, "must hold numbers", f"dtype {table.dtype}")
    dtype = np.dtype(np.float32 if table.dtype.newbyteorder("=") == np.float32 else np.float64)
    if sparse.issparse(table):
        return _canonical_csr(table).astype(dtype, copy=False)
    if table.dtype != dtype:
        require(table.size * dtype.itemsize, f"A copy of {name} in {dtype}", COPY_REMEDY)
    if kind in "biuf":
        return table.astype(dtype, copy=False)
    return as_floats(table, lambda place, cell: _cell_error(place, cell, name, labels))


def _canonical_csr(table: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(table)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # sorting is in place, and these may be the caller's arrays
        matrix.sum_duplicates()
    return matrix


def _cell_error(place: tuple[int, ...], cell: Any, name: str, labels: Sequence[str] | None) -> Exception:
    where = f"row {name_of(place[0], labels)}, column {name_of(place[1], labels)}"
    if isinstance(cell, str):
        return ParameterError(name, "must hold numbers", f"the text {str(cell)!r} in {where}", advice(cell))
    remedy = "the argument must be a number, or a string that spells a number"
    return ParameterTypeError(name, "must hold numbers", f"{cell!r} in {where}", remedy)


def clean_factors(factors: Any, *, signed: bool = False) -> np.ndarray:
    """Return factors F with S = F F^T as a finite and, unless signed, non-negative array of floats."""
    require_flag("signed", signed)
    table = as_array(factors, "factors")
    if table.ndim != 2 or 0 in table.shape:
        rule = "must have a row for every item and a column for every factor"
        raise ParameterError("factors", rule, f"shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise ParameterTypeError("factors", "must hold numbers", f"dtype {table.dtype}")
    table = np.ascontiguousarray(table, dtype=np.float32 if table.dtype == np.float32 else np.float64)
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise ParameterError("factors", "must be finite", f"NaN or infinity in row {row}")
    if not signed and table.min() < 0:
        got = f"{np.count_nonzero(table < 0)} negative values, the smallest {table.min():g}"
        raise ParameterError("factors", "must be non-negative, so that the similarities are", got)
    return table


def clean_absent(absent: object, values: Any) -> str | float | None:
    """Return the meaning of unstored pairs, which is required for sparse values and not allowed for dense ones."""
    if not sparse.issparse(values):
        if absent is not None:
            rule = "must be None for dense values, which store every pair (NaN is a missing one)"
            raise ParameterError("absent", rule, shown(absent))
        return None
    if absent is None:
        rule = "must say what the pairs that sparse values do not store mean"
        raise ParameterError("absent", rule, "None", f"pass {ABSENT_OPTIONS} to {{as_similarity()}}")
    if isinstance(absent, str) and absent in ("missing", "zero"):
        return absent
    if isinstance(absent, Real) and not isinstance(absent, bool):
        weight = float(absent)
        if 0 < weight < 1:
            return weight
        if weight in (0, 1):
            remedy = "pass {absent=zero}" if weight else "pass {absent=missing}"
            raise ParameterError("absent", "must be strictly between 0 and 1 as a number", shown(absent), remedy)
    rule = "must be 'missing', 'zero' or a number between 0 and 1"
    raise ParameterError("absent", rule, shown(absent), f"pass {ABSENT_OPTIONS}")


def _check_values(values: Matrix, labels: Sequence[str] | None, *, may_be_negative: bool) -> None:
    refuse_entries(values, np.isinf, "values", "must be finite (NaN is a missing pair)", labels)
    smallest = 0.0 if may_be_negative else smallest_entry(values)
    if smallest < 0:
        n_pairs = count_pairs(values, lambda here, there: (here < 0) | (there < 0), diagonal=True)
        # scikit-learn's estimator checks look for "Negative values in data".
        shown = f"{n_pairs:,} negative {plural('pair', n_pairs)}, the smallest {smallest:.6g}"
        got = f"{shown}. Negative values in data need a decision"
        remedy = (
            "for correlations r, pass {negative=clip} to set them to 0, or {negative=shift} to rescale all pairs as "
            "(1 + r) / 2; or go back to the features and use an RBF kernel, which is never negative"
        )
        raise ParameterError("values", "must be non-negative", got, remedy)


def _clean_weights(weights: Any, values: Matrix, labels: Sequence[str] | None) -> Matrix:
    table = as_table(weights, "weights")
    if sparse.issparse(table) != sparse.issparse(values):
        stored = "sparse" if sparse.issparse(values) else "dense"
        raise ParameterError("weights", f"must be {stored} as values is", type(table).__name__)
    if table.shape != values.shape:
        raise ParameterError("weights", f"must have the shape of values, {values.shape}", str(table.shape))
    numbers = as_numbers(table, "weights", labels)
    bad = "must be finite (0 leaves a pair out)"
    refuse_entries(numbers, lambda entries: ~np.isfinite(entries), "weights", bad, labels)
    refuse_entries(numbers, lambda entries: entries < 0, "weights", "must be non-negative", labels)
    return numbers


def refuse_entries(
    matrix: Matrix, is_bad: Callable[[np.ndarray], np.ndarray], name: str, rule: str, labels: Sequence[str] | None
) -> None:
    """Refuse a matrix with an invalid entry, showing the first one."""
    entry = first_entry(matrix, is_bad)
    if entry is not None:
        raise ParameterError(name, rule, entry_shown(entry, labels))


def count_observed(values: Matrix, weights: Matrix | None, absent: str | float | None) -> tuple[np.ndarray, np.ndarray]:
    """The number of partners that each item is observed with, and whether its diagonal entry is observed."""
    if sparse.issparse(values):
        return _count_observed_stored(values, weights, absent)
    n_items = values.shape[0]
    n_partners, observed_self = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=bool)
    for start in range(0, n_items, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        observed = is_observed(values[rows], None if weights is None else weights[rows])
        observed_self[rows] = observed.diagonal(offset=start)
        n_partners[rows] = np.count_nonzero(observed, axis=1) - observed_self[rows]
    return n_partners, observed_self


def on_diagonal(values: Matrix, weights: Matrix | None) -> np.ndarray:
    """Which items have an observed diagonal entry."""
    if sparse.issparse(values):
        return _count_observed_stored(values, weights, "missing")[1]
    return is_observed(values.diagonal(), None if weights is None else weights.diagonal())


def _count_observed_stored(
    values: sparse.csr_array, weights: sparse.csr_array | None, absent: str | float | None
) -> tuple[np.ndarray, np.ndarray]:
    n_items = values.shape[0]
    rows = np.repeat(np.arange(n_items), np.diff(values.indptr))
    is_diagonal = rows == values.indices
    observed = is_observed(values.data, None if weights is None else weights.data)
    observed_self = np.zeros(n_items, dtype=bool)
    observed_self[rows[is_diagonal & observed]] = True
    if absent == "missing":
        return np.bincount(rows[~is_diagonal & observed], minlength=n_items), observed_self
    return n_items - 1 - np.bincount(rows[~is_diagonal & ~observed], minlength=n_items), observed_self


def check_observed(n_partners: np.ndarray, observed_self: np.ndarray, labels: Sequence[str] | None) -> None:
    """Refuse items without any observed entry; warn of those observed only on the diagonal."""
    alone = n_partners == 0
    if not alone.any():
        return
    if not (~alone | observed_self).any():
        raise ParameterError("values", "must hold at least one observed entry", "none: everything is missing")
    unobserved = np.flatnonzero(alone & ~observed_self)
    if unobserved.size:
        got = f"none for {unobserved.size} {plural('item', unobserved.size)}: {_listed(unobserved, labels)}"
        remedy = "remove it" if unobserved.size == 1 else "remove them"
        raise ParameterError("values", "must hold an observed similarity of every item", got, remedy)
    only_self = np.flatnonzero(alone)
    if only_self.size and n_partners.size > 1:
        warn(
            f"Observed on the diagonal only: {_listed(only_self, labels)} ({only_self.size} "
            f"{plural('item', only_self.size)}). No similarity relates them to other items: consider removing them."
        )


def _listed(items: np.ndarray, labels: Sequence[str] | None) -> str:
    return shortlist([name_of(item, labels) for item in items])
