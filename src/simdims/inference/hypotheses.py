"""Read the user's hypotheses and embeddings as named numbers in the order of the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from simdims._cells import advice, as_floats
from simdims._parameters import ParameterError, ParameterTypeError, is_whole, plural, shortlist
from simdims.metrics._embedding import embedding_table
from simdims.similarity import Similarity, axis_names, frame_cells, is_default_axis, is_frame, refuse_other_numbers
from simdims.similarity.labels import clean_labels
from simdims.similarity.validation import as_array

# Matching leaves one item out, and two points always lie on a line.
FEWEST_ITEMS = 4


@dataclass(frozen=True, eq=False)
class Items:
    """The items of a test, in order, and the argument they come from."""

    number: int
    labels: tuple[str, ...] | None
    named_by: str


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers with one row per item, the names of the rows if the user gave them, and the names of the columns."""

    values: NDArray[np.float64]
    rows: tuple[str, ...] | None
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Named hypotheses: columns with one value per item, or matrices with one value per pair (NaN = unknown)."""

    names: tuple[str, ...]
    vectors: NDArray[np.float64]
    matrices: tuple[NDArray[np.float64], ...] = ()


def clean_embedding(embedding: Any, name: str = "embedding") -> tuple[Table, Items]:
    """Return an embedding as a table with named columns, and its items."""
    table = _read_table(embedding_table(embedding, name), name, "dimension")  # which refuses similarities
    n_items = len(table.values)
    if n_items < FEWEST_ITEMS:
        raise ParameterError(name, f"must have at least {FEWEST_ITEMS} items (rows)", f"{n_items}")
    return table, Items(n_items, table.rows, name)


def clean_vectors(hypotheses: Any, items: Items, noun: str = "hypothesis", *, or_matrices: bool = False) -> Hypotheses:
    """Return hypotheses with one value per item, in the items' order; those without names are numbered."""
    if isinstance(hypotheses, Mapping):
        hypotheses = _side_by_side(hypotheses, items)
    table = _read_table(hypotheses, "hypotheses", noun, items)
    values = in_order_of(items, table, "hypotheses")
    _refuse_one_matrix(hypotheses, values, or_matrices)
    # A column is constant if it varies by no more than rounding error.
    constant = np.ptp(values, axis=0) <= 1e-12 * np.abs(values).max(axis=0)
    if constant.any():
        place = int(np.argmax(constant))
        got = f"{values[0, place]:g} for every item in {table.columns[place]!r}"
        raise ParameterError("hypotheses", "must vary over the items", got)
    return Hypotheses(table.columns, values)


def clean_hypotheses(hypotheses: Any, items: Items, noun: str = "hypothesis") -> Hypotheses:
    """Return hypotheses with one value per item or, if matrices are given, one per pair."""
    matrices = _as_matrices(hypotheses, noun)
    if matrices is None:
        return clean_vectors(hypotheses, items, noun, or_matrices=True)
    names = _distinct(tuple(map(str, matrices)), "the names of hypotheses")
    cleaned = [_clean_matrix(matrix, name, items) for name, matrix in zip(names, matrices.values(), strict=True)]
    return Hypotheses(names, np.empty((items.number, 0)), tuple(cleaned))


def in_order_of(items: Items, table: Table, name: str) -> NDArray[np.float64]:
    """The rows of a table in the items' order."""
    if table.rows is None or items.labels is None:
        _check_rows(len(table.values), items, name)
        return table.values[_places(table.rows, items, name)]
    places = _places(table.rows, items, name)
    if len(table.values) != items.number:
        others = shortlist([repr(row) for row in sorted(set(table.rows) - set(items.labels))])
        raise ParameterError(name, f"must name the same items as {items.named_by}", f"also {others}", "leave these out")
    return table.values[places]


def _side_by_side(hypotheses: Mapping[Any, Any], items: Items) -> Any:
    """The columns of a mapping as a DataFrame."""
    for name, column in hypotheses.items():
        if np.ndim(column) != 1:
            got = f"an array of shape {np.shape(column)} for {name!r}"
            raise ParameterError("hypotheses", "must have one value per item", got)
        _check_rows(len(column), items, "hypotheses")
    indices = [column.index for column in hypotheses.values() if isinstance(column, pd.Series)]
    if any(not index.equals(indices[0]) for index in indices):
        raise ParameterError("hypotheses", "must list the items in one order", "Series with different indices")
    columns = {name: np.asarray(column) for name, column in hypotheses.items()}
    return pd.DataFrame(columns, index=indices[0] if indices else None)


def _refuse_one_matrix(hypotheses: Any, X: NDArray[np.float64], or_matrices: bool) -> None:
    """Refuse a square table that is probably one model of pairs rather than columns of item values."""
    if len(X) != X.shape[1] or np.array_equal(X, np.diag(np.diag(X))):
        return
    same_names = is_frame(hypotheses) and set(map(str, hypotheses.index)) == set(map(str, hypotheses.columns))
    if np.array_equal(X, X.T) or (same_names and not is_default_axis(hypotheses.index)):
        rule = "must be columns with one value per item"
        rule += ", or model matrices in a list or a mapping" if or_matrices else ""
        remedy = "pass a list that contains it" if or_matrices else "for models of pairs, use {rsa_test()}"
        got = f"one matrix of shape {X.shape} that looks like a model of pairs"
        raise ParameterError("hypotheses", rule, got, remedy)


def _read_table(x: Any, name: str, noun: str, items: Items | None = None) -> Table:
    """Columns of numbers; those without names are numbered after the noun. Rows must name the items, if given."""
    rows = columns = None
    x = x if isinstance(x, Similarity) else embedding_table(x, name)
    if isinstance(x, pd.Series):
        x = x.to_frame()
    if is_frame(x):
        rows = _axis(x.index, f"the index of {name}")
        if items is not None:
            _places(rows, items, name)  # before the cells: those of other items do not matter
        if not is_default_axis(x.columns):
            columns = _distinct(tuple(map(str, x.columns)), f"the columns of {name}")
        cells = frame_cells(x)
    elif isinstance(x, (list, tuple)) or (hasattr(x, "__array__") and not sparse.issparse(x)):
        cells = as_array(x, name)
    else:
        raise ParameterTypeError(name, "must be an array or a DataFrame", f"an object of type {type(x).__name__}")
    if cells.ndim == 1:
        cells = cells[:, None]
    if cells.ndim != 2 or 0 in cells.shape:
        rule = "must have one row per item and at least one column of numbers"
        raise ParameterError(name, rule, f"an array of shape {cells.shape}")
    values = _as_floats(cells, name, rows, columns)
    named = columns or _numbered(noun, values.shape[1])
    _refuse_gaps(values, name, rows, named)
    return Table(values, rows, named)


def _refuse_gaps(values: NDArray[np.float64], name: str, rows: Sequence[str] | None, columns: Sequence[str]) -> None:
    """Refuse missing and infinite values, and name the columns that have them."""
    odd = ~np.isfinite(values)
    if not odd.any():
        return
    place = tuple(map(int, np.argwhere(odd)[0]))
    is_missing = bool(np.isnan(values[place]))
    got = f"{'a missing value' if is_missing else values[place]} in {_where(place, rows, columns)}"
    if (n_odd := int(odd.sum())) > 1:
        got += f" ({n_odd:,} such {plural('cell', n_odd)} in {int(odd.any(axis=0).sum())} of {odd.shape[1]} columns)"
    remedy = "fill in the values, or leave out the columns or items without them" if is_missing else None
    raise ParameterError(name, "must have a finite value for each item", got, remedy)


def _as_floats(
    cells: NDArray, name: str, rows: Sequence[str] | None, columns: Sequence[str] | None, part: str = ""
) -> NDArray[np.float64]:
    if cells.dtype.kind not in "biufOUS":
        raise ParameterTypeError(name, "must be real numbers", f"dtype {cells.dtype}{part}")

    def refusal(place: tuple[int, ...], cell: Any) -> ParameterError:
        where = f"{_where(place, rows, columns)}{part}"
        if is_whole(cell):
            return ParameterError(name, "must be finite", f"a number that is too large in {where}")
        dummies = "for a category, use one 0/1 column per value (pandas.get_dummies)"
        remedy = advice(str(cell), may_be_missing=bool(part))
        return ParameterError(name, "must be numbers", f"{str(cell)!r} in {where}", f"{remedy}; {dummies}")

    return as_floats(cells, refusal)


def _as_matrices(hypotheses: Any, noun: str) -> dict[Any, Any] | None:
    """The model matrices that the hypotheses consist of, or None if they are item values."""
    if isinstance(hypotheses, Mapping):
        entries = dict(hypotheses)
    elif isinstance(hypotheses, (list, tuple)) or getattr(hypotheses, "ndim", 0) == 3:
        entries = dict(zip(_numbered(noun, len(hypotheses)), hypotheses, strict=True))
    else:
        return None
    square = [_is_matrix(entry) for entry in entries.values()]
    if any(square) and not all(square):
        got = f"{sum(square)} matrices among {len(square)} entries"
        raise ParameterError("hypotheses", "must be either all matrices or all vectors", got)
    return entries if square and all(square) else None


def _is_matrix(entry: Any) -> bool:
    if isinstance(entry, Similarity) or sparse.issparse(entry):
        return True
    try:
        return np.ndim(entry) == 2
    except ValueError:  # lists of different lengths
        return False


def _clean_matrix(matrix: Any, name: str, items: Items) -> NDArray[np.float64]:
    """A model matrix in the items' order, with a NaN diagonal, which no test uses."""
    rows = columns = None
    if isinstance(matrix, Similarity):
        if matrix.weights is not None:
            raise ParameterError("hypotheses", "must not have weights", f"a Similarity with weights for {name!r}")
        rows = columns = None if matrix.labels is None else tuple(matrix.labels)
        matrix = matrix.values if matrix.factors is None else matrix.factors @ matrix.factors.T
    elif is_frame(matrix):
        rows, columns = (_axis(axis, f"the items of {name!r} in hypotheses") for axis in (matrix.index, matrix.columns))
        matrix = frame_cells(matrix)
    if sparse.issparse(matrix):
        raise ParameterTypeError("hypotheses", "must be dense matrices", f"a sparse one for {name!r}")
    cells = as_array(matrix, "hypotheses")
    if cells.shape != (items.number, items.number):
        rule = f"must have a row and a column for each of the {items.number} items"
        raise ParameterError("hypotheses", rule, f"a matrix of shape {cells.shape} for {name!r}")
    values = _as_floats(cells, "hypotheses", rows, columns, f" of {name!r}")
    values = values[np.ix_(_places(rows, items, "hypotheses"), _places(columns, items, "hypotheses"))]
    np.fill_diagonal(values, np.nan)
    if np.isinf(values).any():
        raise ParameterError("hypotheses", "must be finite (NaN for an unknown pair)", f"infinity in {name!r}")
    largest = np.nanmax(np.abs(values), initial=0.0)
    symmetric = np.isclose(values, values.T, rtol=1e-8, atol=1e-8 * largest, equal_nan=True)
    if not symmetric.all():
        i, j = map(int, np.argwhere(~symmetric)[0])
        got = f"{values[i, j]:.10g} at ({i}, {j}) and {values[j, i]:.10g} at ({j}, {i}) in {name!r}"
        raise ParameterError("hypotheses", "must be symmetric matrices", got)
    return (values + values.T) / 2


def _places(rows: tuple[str, ...] | None, items: Items, name: str) -> NDArray[np.intp]:
    """The row of each item: by name if both sides have names, else by position."""
    if rows is None or items.labels is None:
        for names, numbered in ((rows, name), (items.labels, items.named_by)):
            refuse_other_numbers(names, numbered)
        return np.arange(items.number)
    place_of = {row: place for place, row in enumerate(rows)}
    missing = [label for label in items.labels if label not in place_of]
    if missing:
        unknown = sorted(set(rows) - set(items.labels))
        instead = f", but {shortlist([repr(row) for row in unknown])}" if unknown else ""
        raise ParameterError(name, f"must name the same items as {items.named_by}", f"no {missing[0]!r}{instead}")
    return np.array([place_of[label] for label in items.labels], dtype=np.intp)


def _check_rows(n_rows: int, items: Items, name: str) -> None:
    if n_rows != items.number:
        rule = f"must have one row for each of the {items.number} items"
        raise ParameterError(name, rule, f"{n_rows} rows", "name the items in both, with the same labels")


def _numbered(noun: str, number: int) -> tuple[str, ...]:
    return tuple(f"{noun}{place + 1}" for place in range(number))


def _axis(axis: Any, what: str) -> tuple[str, ...] | None:
    """The names on an axis of a DataFrame, or None for a default integer index."""
    return None if is_default_axis(axis) else _distinct(axis_names(axis, what), what)


def _distinct(names: tuple[str, ...], what: str) -> tuple[str, ...]:
    try:
        clean_labels(names, len(names))
    except ParameterError as error:
        raise ParameterError(what, error.rule, error.got, error.remedy) from None
    return names


def _where(place: Sequence[int], rows: Sequence[str] | None, columns: Sequence[str] | None) -> str:
    row, column = (repr(names[at]) if names else str(at) for at, names in zip(place, (rows, columns), strict=True))
    return f"row {row}, column {column}"
