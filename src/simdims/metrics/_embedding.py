"""What the metrics share about embeddings: numbers, checked, and the names of their items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._cells import advice, as_floats
from simdims.similarity import Similarity, is_default_axis, refuse_other_names
from simdims.similarity.labels import clean_labels

Names = tuple[str, ...] | None


def embedding_table(result: Any, name: str = "W") -> Any:
    """The embedding that a Discovery, a Consensus or a fitted SRF holds, as a DataFrame; anything else as it is."""
    if isinstance(result, Similarity):
        raise TypeError(f"{name} must hold an embedding, got a Similarity: fit it with SRF, fit_consensus or discover.")
    is_result = hasattr(result, "embedding_frame") and not isinstance(result, type)
    return result.embedding_frame() if is_result else result


def as_embedding(W: Any, name: str = "W", labels: Sequence[str] | None = None) -> tuple[NDArray[np.float64], Names]:
    """Return an embedding as finite float64 numbers, and the names of its items where there are any."""
    W = embedding_table(W, name)
    array = as_numbers(W, name)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must have a row for every item and a column for every dimension, got shape {array.shape}."
        )
    names = names_of(W, name, len(array), labels)
    if not np.isfinite(array).all():
        row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(array)))
        item = row if names is None else repr(names[row])
        raise ValueError(f"{name} must be finite, got {array[row, column]:g} for item {item}, column {column}.")
    return array, names


def as_numbers(table: Any, name: str) -> NDArray[np.float64]:
    """Return numbers of any kind as a float64 array; what is masked or missing in it is NaN."""
    if isinstance(table, Similarity):
        raise TypeError(f"{name} must be an array or a DataFrame of numbers, got a Similarity: pass its values.")
    if sparse.issparse(table):
        raise TypeError(f"{name} must be a dense array or a DataFrame, got a sparse matrix: pass its toarray().")
    try:
        if np.ma.isMaskedArray(table):
            raw = np.ma.filled(table.astype(np.float64), np.nan)
        elif hasattr(table, "to_numpy"):
            raw = table.to_numpy()
            raw = table.to_numpy(dtype=object, na_value=np.nan) if raw.dtype == object else raw
        else:
            raw = np.asarray(table)
        if raw.dtype.kind not in ("biufOU" if raw.ndim else "biufO"):
            raise TypeError
        return as_floats(raw, lambda place, cell: TypeError(_text_in(table, place, cell)))
    except (TypeError, ValueError, OverflowError) as error:
        kind = getattr(table, "dtype", None)
        got = type(table).__name__ if kind is None else f"{type(table).__name__} of {kind}"
        cell = str(error) if str(error).startswith(": ") else ""
        raise TypeError(f"{name} must be an array or a DataFrame of numbers, got {got}{cell}.") from None


def _text_in(table: Any, place: tuple[int, ...], cell: Any) -> str:
    """What stands where in a table, as the end of a sentence that begins with the table."""
    row, *column = place
    where = f"row {list(getattr(table, 'index', range(row + 1)))[row]!r}"
    if column:
        where += f", column {list(getattr(table, 'columns', range(column[0] + 1)))[column[0]]!r}"
    return f": {'the text ' if isinstance(cell, str) else ''}{cell!r} in {where}; {advice(str(cell))}"


def names_of(table: Any, name: str, n_items: int, labels: Sequence[str] | None = None) -> Names:
    """The items' names: those of a DataFrame's or a Series' index, or `labels`; both, if there, must agree."""
    given = clean_labels(labels, n_items)
    index = getattr(table, "index", None)
    if index is None or not hasattr(table, "to_numpy") or is_default_axis(index):
        return given
    own = clean_labels(list(index), n_items)
    if given is not None and own is not None:
        refuse_other_names("labels", given, f"the index of {name}", own)
    return own


def check_fits(similarity: Similarity, W: NDArray, names: Names) -> None:
    """Refuse an embedding of other items than the similarities'."""
    if len(W) != similarity.n_items:
        raise ValueError(f"W must have one row for each of {similarity.n_items} items, got shape {W.shape}.")
    if names is not None and similarity.labels is not None:
        refuse_other_names("S", tuple(similarity.labels), "the index of W", names)


def unit_rows(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of length 1, so that products are cosines; a row of zeros stays, and has cosine 0 with every other."""
    largest = np.abs(W).max(axis=1, keepdims=True)
    scaled = np.divide(W, largest, out=np.zeros_like(W), where=largest > 0)  # squares of tiny numbers underflow
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, norms, out=np.zeros_like(W), where=norms > 0)


def below_one(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """W times the power of two that takes its largest number below 1: no digit changes, and no product overflows."""
    return np.ldexp(W, -int(np.frexp(np.abs(W).max())[1]))


def check_choice(similarity: object) -> None:
    """Refuse similarities of items that are neither "dot" nor "cosine"."""
    if not isinstance(similarity, str) or similarity not in ("dot", "cosine"):
        raise ValueError(f'similarity must be "dot" or "cosine", got {similarity!r}.')


def scaled_rows(W: NDArray[np.float64], similarity: object) -> NDArray[np.float64]:
    """W, or its unit rows where similarity is "cosine", so that products are what was asked for."""
    check_choice(similarity)
    return unit_rows(W) if similarity == "cosine" else W
