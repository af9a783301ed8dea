"""What a user may give as hypotheses or as an embedding: numbers, with names, in the order of the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._cells import advice, as_floats
from simdims._parameters import is_whole
from simdims.metrics._embedding import embedding_table
from simdims.similarity import Similarity, axis_names, is_default_axis, is_frame
from simdims.similarity.labels import clean_labels
from simdims.similarity.validation import as_array

# One item is left out of every matching, and two points always lie on a line.
FEWEST_ITEMS = 4


@dataclass(frozen=True, eq=False)
class Items:
    """The items of a test, in order, and the argument that names them."""

    number: int
    labels: tuple[str, ...] | None
    named_by: str


@dataclass(frozen=True, eq=False)
class Table:
    """A row of numbers for each item, by name where there are names."""

    values: NDArray[np.float64]
    rows: tuple[str, ...] | None
    columns: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Named hypotheses: columns with one value per item, or matrices with one per pair (NaN = unknown)."""

    names: tuple[str, ...]
    vectors: NDArray[np.float64] | None
    matrices: tuple[NDArray[np.float64], ...] = ()


def clean_embedding(embedding: Any) -> tuple[Table, Items]:
    """Return an embedding as a table whose columns have names, and its items."""
    table = _read_table(embedding_table(embedding, "embedding"), "embedding")
    n_items, n_components = table.values.shape
    if n_items < FEWEST_ITEMS:
        raise ValueError(f"embedding must have at least {FEWEST_ITEMS} items (rows), got {n_items}.")
    names = table.columns or tuple(f"dimension{place + 1}" for place in range(n_components))
    return Table(table.values, table.rows, names), Items(n_items, table.rows, "embedding")


def clean_vectors(hypotheses: Any, items: Items) -> Hypotheses:
    """Return hypotheses with a value for each item, in the items' order."""
    if isinstance(hypotheses, Mapping):
        import pandas as pd

        for name, column in hypotheses.items():
            if np.ndim(column) != 1:
                raise ValueError(
                    f"hypotheses must have one value per item, got an array of shape {np.shape(column)} for {name!r}."
                )
            _check_rows(len(column), items, "hypotheses")
        indices = [column.index for column in hypotheses.values() if isinstance(column, pd.Series)]
        if any(not index.equals(indices[0]) for index in indices):
            raise ValueError("hypotheses must name the same items in the same order, got Series that differ in it.")
        columns = {name: np.asarray(column) for name, column in hypotheses.items()}
        hypotheses = pd.DataFrame(columns, index=indices[0] if indices else None)
    table = _read_table(hypotheses, "hypotheses")
    _check_rows(len(table.values), items, "hypotheses")
    values = table.values[_places(table.rows, items, "hypotheses")]
    names = _hypothesis_names(table.columns, values.shape[1])
    # A column is constant if it varies by no more than the rounding of its values.
    constant = np.ptp(values, axis=0) <= 1e-12 * np.abs(values).max(axis=0)
    if constant.any():
        place = int(np.argmax(constant))
        raise ValueError(
            f"hypotheses must vary over the items, got {values[0, place]:g} for every item in {names[place]!r}."
        )
    return Hypotheses(names, values)


def clean_hypotheses(hypotheses: Any, items: Items) -> Hypotheses:
    """Return hypotheses with a value for each item, or, where matrices are given, for each pair."""
    matrices = _as_matrices(hypotheses)
    if matrices is None:
        columns = clean_vectors(hypotheses, items)
        _refuse_one_matrix(hypotheses, columns)
        return columns
    given = _distinct(tuple(map(str, matrices)), "the names of hypotheses") if isinstance(hypotheses, Mapping) else None
    names = _hypothesis_names(given, len(matrices))
    cleaned = [_clean_matrix(matrix, name, items) for name, matrix in zip(names, matrices.values(), strict=True)]
    return Hypotheses(names, None, tuple(cleaned))


def _refuse_one_matrix(hypotheses: Any, cleaned: Hypotheses) -> None:
    """Refuse a square table that says of pairs what its columns would say of items."""
    X = cleaned.vectors
    assert X is not None
    if len(X) != X.shape[1]:
        return
    same_names = is_frame(hypotheses) and set(map(str, hypotheses.index)) == set(map(str, hypotheses.columns))
    if np.array_equal(X, X.T) or (same_names and not is_default_axis(hypotheses.index)):
        raise ValueError(
            "hypotheses must be columns with a value for each item, or model matrices in a list or a mapping, got one "
            f"matrix of shape {X.shape} that looks like a model of pairs: pass a list with this matrix in it."
        )


def in_order_of(items: Items, table: Table, name: str) -> NDArray[np.float64]:
    """The rows of a table in the items' order."""
    _check_rows(len(table.values), items, name)
    return table.values[_places(table.rows, items, name)]


def _read_table(x: Any, name: str) -> Table:
    rows = columns = None
    if type(x).__name__ == "Series" and hasattr(x, "to_frame"):
        x = x.to_frame(name="hypothesis1" if x.name is None else x.name)
    if is_frame(x):
        if not is_default_axis(x.index):
            rows = _row_names(x.index, f"the index of {name}")
        if not is_default_axis(x.columns):
            columns = _distinct(tuple(map(str, x.columns)), f"the columns of {name}")
        cells = x.to_numpy()
        cells = x.to_numpy(dtype=object, na_value=np.nan) if cells.dtype == object else cells
    elif isinstance(x, (list, tuple)) or (hasattr(x, "__array__") and not sparse.issparse(x)):
        cells = as_array(x, name)
    else:
        raise TypeError(f"{name} must be an array or a pandas DataFrame, got {type(x).__name__}.")
    if cells.ndim == 1:
        cells = cells[:, None]
    if cells.ndim != 2 or 0 in cells.shape:
        raise ValueError(
            f"{name} must have a row for every item and at least one column of numbers, got shape {cells.shape}."
        )
    values = _as_floats(cells, name, rows, columns)
    if not np.isfinite(values).all():
        place = tuple(np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name} must be finite, got {values[place]} in {_where(place, rows, columns)}.")
    return Table(values, rows, columns)


def _as_floats(
    cells: NDArray, name: str, rows: Sequence[str] | None, columns: Sequence[str] | None
) -> NDArray[np.float64]:
    if cells.dtype.kind not in "biufOUS":
        raise TypeError(f"{name} must hold real numbers, got dtype {cells.dtype}.")

    def refusal(place: tuple[int, ...], cell: Any) -> ValueError:
        where = _where(place, rows, columns)
        if is_whole(cell):
            return ValueError(f"{name} must be finite, got a number too large in {where}.")
        return ValueError(
            f"{name} must hold numbers, got {str(cell)!r} in {where}: {advice(str(cell))}. For a category, use one 0/1 "
            "column per value (pandas.get_dummies)."
        )

    return as_floats(cells, refusal)


def _as_matrices(hypotheses: Any) -> dict[Any, Any] | None:
    """The model matrices among what may be hypotheses, or None where it holds values of items."""
    if isinstance(hypotheses, Mapping):
        entries = dict(hypotheses)
    elif isinstance(hypotheses, (list, tuple)) or getattr(hypotheses, "ndim", 0) == 3:
        entries = dict(enumerate(hypotheses))
    else:
        return None
    square = [_is_matrix(entry) for entry in entries.values()]
    if any(square) and not all(square):
        raise ValueError(
            f"hypotheses must be matrices throughout or vectors throughout, got {sum(square)} matrices among "
            f"{len(square)} entries."
        )
    return entries if square and all(square) else None


def _is_matrix(entry: Any) -> bool:
    if isinstance(entry, Similarity) or sparse.issparse(entry):
        return True
    try:
        return np.ndim(entry) == 2
    except ValueError:  # lists of different lengths
        return False


def _clean_matrix(matrix: Any, name: str, items: Items) -> NDArray[np.float64]:
    """A model matrix in the items' order, NaN on the diagonal, which no test looks at."""
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    if isinstance(matrix, Similarity):
        if matrix.weights is not None:
            raise ValueError(
                f"hypotheses must be matrices without weights, got a Similarity with weights for {name!r}."
            )
        rows = columns = None if matrix.labels is None else tuple(matrix.labels)
        matrix = matrix.values if matrix.factors is None else matrix.factors @ matrix.factors.T
    elif is_frame(matrix):
        rows, columns = (
            None if is_default_axis(axis) else _row_names(axis, f"the items of {name!r} in hypotheses")
            for axis in (matrix.index, matrix.columns)
        )
        matrix = matrix.to_numpy(dtype=object, na_value=np.nan)
    if sparse.issparse(matrix):
        raise TypeError(f"hypotheses must be dense matrices, got a sparse one for {name!r}.")
    values = as_array(matrix, "hypotheses")
    if values.shape != (items.number, items.number):
        raise ValueError(
            f"hypotheses must have a row and a column for each of {items.number} items as matrices, got shape "
            f"{values.shape} for {name!r}."
        )
    values = _as_floats(values, f"{name!r} in hypotheses", rows, columns)
    order = (_places(rows, items, "hypotheses"), _places(columns, items, "hypotheses"))
    values = values[np.ix_(*order)]
    np.fill_diagonal(values, np.nan)
    if np.isinf(values).any():
        raise ValueError(f"hypotheses must be finite (NaN is an unknown pair), got infinity in {name!r}.")
    largest = np.nanmax(np.abs(values), initial=0.0)
    symmetric = np.isclose(values, values.T, rtol=1e-8, atol=1e-8 * largest, equal_nan=True)
    if not symmetric.all():
        place = tuple(np.argwhere(~symmetric)[0])
        raise ValueError(
            f"hypotheses must be symmetric matrices, got {values[place]:.10g} at {_place(place)} and "
            f"{values[place[::-1]]:.10g} at {_place(place[::-1])} in {name!r}."
        )
    return (values + values.T) / 2


def _places(rows: tuple[str, ...] | None, items: Items, name: str) -> NDArray[np.intp]:
    """Where each item is among the rows: by name where both have names, else in its own place."""
    if rows is None or items.labels is None:
        for names, numbered in ((rows, name), (items.labels, items.named_by)):
            _refuse_other_numbers(names, numbered, items.number)
        return np.arange(items.number)
    place_of = {row: place for place, row in enumerate(rows)}
    missing = [label for label in items.labels if label not in place_of]
    if missing:
        unknown = sorted(set(rows) - set(items.labels))
        instead = f", which has {unknown[0]!r} instead" if unknown else ""
        raise ValueError(
            f"{name} must name the same items as {items.named_by}, got no {missing[0]!r} in {name}{instead}."
        )
    return np.array([place_of[label] for label in items.labels], dtype=np.intp)


def _refuse_other_numbers(names: tuple[str, ...] | None, numbered: str, n_items: int) -> None:
    """Refuse rows that bear the numbers of all items in another order, where nothing else names the items."""
    numbers = [str(place) for place in range(n_items)]
    if names is not None and list(names) != numbers and set(names) == set(numbers):
        place = next(place for place in range(n_items) if names[place] != numbers[place])
        raise ValueError(
            f"{numbered} must be in the order of the items where only one side names them, got the number "
            f"{names[place]} in place {place} of its index: sort it (sort_index), or number its rows anew "
            "(reset_index(drop=True))."
        )


def _check_rows(n_rows: int, items: Items, name: str) -> None:
    if n_rows != items.number:
        raise ValueError(
            f"{name} must have a row for each of the {items.number} items of {items.named_by}, got {n_rows} rows."
        )


def _hypothesis_names(names: tuple[str, ...] | None, number: int) -> tuple[str, ...]:
    return names or tuple(f"hypothesis{place + 1}" for place in range(number))


def _row_names(axis: Any, what: str) -> tuple[str, ...]:
    return _distinct(axis_names(axis, what), what)


def _distinct(names: tuple[str, ...], what: str) -> tuple[str, ...]:
    try:
        clean_labels(names, len(names))
    except ValueError as error:
        raise ValueError(str(error).replace("labels", what, 1)) from None
    return names


def _where(place: Sequence[int], rows: Sequence[str] | None, columns: Sequence[str] | None) -> str:
    row, column = (
        repr(names[number]) if names else str(number) for number, names in zip(place, (rows, columns), strict=True)
    )
    return f"row {row}, column {column}"


def _place(place: Sequence[int]) -> str:
    return f"({', '.join(str(int(number)) for number in place)})"
