"""Read embeddings for metrics, tests and plots: checked numbers and the names of their items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._cells import advice, as_floats
from simdims._parameters import ParameterError, ParameterTypeError, require_choice
from simdims.similarity import Similarity, frame_cells, is_default_axis, is_frame, refuse_other_names
from simdims.similarity.labels import clean_labels

Names = tuple[str, ...] | None

_IS_TABLE = "must be an array or a DataFrame of numbers"


def embedding_table(result: Any, name: str = "W") -> Any:
    """The embedding of a Discovery, a Consensus or a fitted SRF as a DataFrame; anything else unchanged."""
    if isinstance(result, Similarity):
        remedy = "fit it with SRF, fit_consensus or discover"
        raise ParameterTypeError(name, "must hold an embedding", "a Similarity", remedy)
    is_result = hasattr(result, "embedding_frame") and not isinstance(result, type)
    return result.embedding_frame() if is_result else result


def as_embedding(W: Any, name: str = "W", labels: Sequence[str] | None = None) -> tuple[NDArray[np.float64], Names]:
    """Return an embedding as finite float64 numbers, and the names of its items or None."""
    W = embedding_table(W, name)
    array = as_numbers(W, name)
    require_table(array, name)
    names = names_of(W, name, len(array), labels)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        item = row if names is None else repr(names[row])
        raise ParameterError(name, "must be finite", f"{array[row, column]:g} for item {item}, column {column}")
    return array, names


def require_table(array: NDArray, name: str, columns: str = "dimension") -> None:
    if array.ndim != 2 or 0 in array.shape:
        rule = f"must have a row for every item and a column for every {columns}"
        raise ParameterError(name, rule, f"shape {array.shape}")


def as_numbers(table: Any, name: str) -> NDArray[np.float64]:
    """Return numbers of any kind as a float64 array, NaN if masked or missing."""
    if isinstance(table, Similarity):
        raise ParameterTypeError(name, _IS_TABLE, "a Similarity", "pass its values")
    if sparse.issparse(table):
        raise ParameterTypeError(name, "must be a dense array or a DataFrame", "a sparse matrix", "pass its .toarray()")
    try:
        if np.ma.isMaskedArray(table):
            cells = np.ma.filled(table.astype(np.float64), np.nan)
        else:
            cells = frame_cells(table) if hasattr(table, "to_numpy") else np.asarray(table)
    except (TypeError, ValueError, OverflowError):
        cells = None
    if cells is None or cells.dtype.kind not in ("biufOU" if cells.ndim else "biufO"):
        dtype = getattr(table, "dtype", None)
        raise ParameterTypeError(name, _IS_TABLE, type(table).__name__ + ("" if dtype is None else f" of {dtype}"))
    return as_floats(cells, lambda place, cell: _text_error(table, name, place, cell))


def _text_error(table: Any, name: str, place: tuple[int, ...], cell: Any) -> ParameterTypeError:
    if not place:
        return ParameterTypeError(name, _IS_TABLE, type(table).__name__)
    axes = [getattr(table, axis, None) if hasattr(table, "to_numpy") else None for axis in ("index", "columns")]
    names = [at if axis is None else axis[at] for axis, at in zip(axes, place, strict=False)]
    where = ", ".join(f"{axis} {name!r}" for axis, name in zip(("row", "column"), names, strict=False))
    text = f"the text {str(cell)!r}" if isinstance(cell, str) else repr(cell)
    return ParameterTypeError(name, _IS_TABLE, f"{text} in {where}", advice(str(cell), may_be_missing=False))


def names_of(table: Any, name: str, n_items: int, labels: Sequence[str] | None = None) -> Names:
    """The names of the items: the index of a DataFrame or Series, or `labels`, which must agree with it."""
    given = clean_labels(labels, n_items)
    index = getattr(table, "index", None)
    if index is None or not hasattr(table, "to_numpy") or is_default_axis(index):
        return given
    own = clean_labels(list(index), n_items)
    if given is not None and own is not None:
        refuse_other_names("labels", given, f"the index of {name}", own)
    return own


def check_fits(similarity: Similarity, W: NDArray, names: Names) -> None:
    """Refuse an embedding whose items differ from those of the similarities."""
    if len(W) != similarity.n_items:
        raise ParameterError("W", f"must have one row for each of {similarity.n_items} items", f"shape {W.shape}")
    if names is not None and similarity.labels is not None:
        refuse_other_names("S", tuple(similarity.labels), "the index of W", names)


def refuse_repeated(names: Sequence[Any], name: str, rule: str, where: str = "") -> None:
    """Refuse names of which one occurs more than once."""
    if len(set(names)) < len(names):
        repeated = next(one for one in names if list(names).count(one) > 1)
        raise ParameterError(name, rule, f"{str(repeated)!r} more than once{where}")


def dimension_names(table: Any, n_components: int) -> list[str]:
    """The columns of a DataFrame, or dimension1, dimension2, ..."""
    if is_frame(table) and not is_default_axis(table.columns):
        return [str(column) for column in table.columns]
    return [f"dimension{k + 1}" for k in range(n_components)]


def unit_rows(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows scaled to length 1, so that products are cosines; a zero row stays zero and has cosine 0 with all others."""
    largest = np.abs(W).max(axis=1, keepdims=True)
    scaled = np.divide(W, largest, out=np.zeros_like(W), where=largest > 0)  # squares of tiny numbers underflow
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, norms, out=np.zeros_like(W), where=norms > 0)


def below_one(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """W divided by a power of two so that its values are below 1: exact, and no product overflows."""
    return np.ldexp(W, -int(np.frexp(np.abs(W).max())[1]))


def scaled_rows(W: NDArray[np.float64], similarity: object) -> NDArray[np.float64]:
    """W, or its unit rows if `similarity` is "cosine", so that products are the requested similarities."""
    require_choice("similarity", similarity, ("dot", "cosine"))
    return unit_rows(W) if similarity == "cosine" else W
