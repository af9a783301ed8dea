"""What plots take: the embedding, the similarities and the names that a result holds, or plain arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims.consensus import Consensus
from simdims.discovery import Discovery
from simdims.metrics._embedding import as_embedding, embedding_table
from simdims.similarity import Similarity, as_similarity, is_default_axis, is_frame
from simdims.srf import SRF

Labels = tuple[str, ...] | None


class Loadings(NamedTuple):
    """An embedding with the names of its items and of its dimensions, where there are any."""

    W: NDArray[np.float64]
    labels: Labels
    names: Labels
    reliability: NDArray[np.float64] | None = None

    def name(self, k: int) -> str:
        """A dimension as titles name it."""
        return f"Dimension {k + 1}" if self.names is None else self.names[k]

    def item(self, i: int) -> str:
        """An item as plots name it: its label, or its row, counted from 0."""
        return str(i) if self.labels is None else self.labels[i]

    def top(self, k: int, n: int) -> NDArray[np.intp]:
        """The items with most of a dimension, at most n; none that has nothing of it."""
        order = np.argsort(-self.W[:, k], kind="stable")[:n]
        return order[self.W[order, k] > 0]

    def dominant(self) -> NDArray[np.intp]:
        """The largest dimension of each item; -1 for an item that has none."""
        return np.where(self.W.max(axis=1) > 0, self.W.argmax(axis=1), -1)

    def shares(self) -> NDArray[np.float64]:
        """Squared length of each dimension, as a share of all."""
        squares = np.sum(self.W**2, axis=0)
        return squares / (squares.sum() or 1.0)


def loadings_of(result: Any, labels: Any = None, name: str = "result") -> Loadings:
    """The embedding of a Discovery, a Consensus, a fitted SRF, an array or a DataFrame."""
    table = embedding_table(result, name)
    W, own = as_embedding(table, name)
    columns = table.columns if is_frame(table) and not is_default_axis(table.columns) else None
    names = None if columns is None else tuple(str(column) for column in columns)
    if names == tuple(f"dimension{k + 1}" for k in range(W.shape[1])):
        names = None
    runs = getattr(result, "consensus", result)
    reliability = runs.reliability if isinstance(runs, Consensus) else None
    return Loadings(W, chosen_labels(labels, own, len(W)), names, reliability)


def both_of(result: Any, embedding: Any, labels: Any) -> tuple[Similarity | None, Loadings | None, Labels]:
    """The similarities and the embedding that a result holds, or a matrix and an embedding beside it."""
    if isinstance(result, Discovery):
        similarity: Similarity | None = result.similarity
        loadings: Loadings | None = loadings_of(result if embedding is None else embedding, name="embedding")
    elif isinstance(result, Consensus | SRF):
        if embedding is not None:
            raise ValueError("embedding must be None where result holds one, got a second one.")
        similarity, loadings = None, loadings_of(result)
    else:
        similarity = as_similarity(result, copy=False)
        loadings = None if embedding is None else loadings_of(embedding, name="embedding")
    n_items = similarity.n_items if similarity is not None else len(loadings.W)  # type: ignore[union-attr]
    if loadings is not None and len(loadings.W) != n_items:
        raise ValueError(f"embedding must have one row for each of {n_items} items, got shape {loadings.W.shape}.")
    own = None if similarity is None else similarity.labels
    if own is None and loadings is not None:
        own = loadings.labels
    return similarity, loadings, chosen_labels(labels, own, n_items)


def chosen_labels(given: Any, own: Iterable[Any] | None, n_items: int) -> Labels:
    """The names to show: those that are given, which need not be distinct, or the result's own."""
    if given is None:
        return None if own is None else tuple(map(str, own))
    is_sequence = isinstance(given, Iterable) and not isinstance(given, str | bytes | set | frozenset)
    if not is_sequence or getattr(given, "ndim", 1) != 1:
        raise TypeError(f"labels must be a sequence with one name per item, got {given!r}.")
    names = tuple(map(str, given))
    if len(names) != n_items:
        raise ValueError(f"labels must have one name for each of the {n_items} items, got {len(names)}.")
    return names


def dimension_place(dimension: Any, loadings: Loadings) -> int:
    """The column of a dimension that is given by its number, counted from 1, or by its name."""
    n = loadings.W.shape[1]
    if isinstance(dimension, str):
        names = loadings.names or tuple(f"dimension{k + 1}" for k in range(n))
        if dimension not in names:
            raise ValueError(f"dimension must be a number from 1 to {n} or a dimension's name, got {dimension!r}.")
        return names.index(dimension)
    if isinstance(dimension, bool) or not isinstance(dimension, Integral):
        raise TypeError(f"dimension must be a number or a name, got {dimension!r}.")
    if not 1 <= int(dimension) <= n:
        raise ValueError(f"dimension must be between 1 and n_components = {n}, got {dimension}.")
    return int(dimension) - 1


def item_place(item: Any, loadings: Loadings) -> int:
    """The row of an item that is given by its label or by its row, counted from 0."""
    n = len(loadings.W)
    if isinstance(item, str):
        found = [] if loadings.labels is None else [i for i, label in enumerate(loadings.labels) if label == item]
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(f"item must name one item, got {item!r}, the label of {len(found)}: pass its row.")
        if loadings.labels is None:
            raise ValueError(f"item must be a row where items have no labels, got {item!r}.")
        near = get_close_matches(item, loadings.labels, n=1)
        raise ValueError(f"No item named {item!r}.{f' Did you mean {near[0]!r}?' if near else ''}")
    if isinstance(item, bool) or not isinstance(item, Integral):
        raise TypeError(f"item must be a label or a row, got {item!r}.")
    if not 0 <= int(item) < n:
        raise ValueError(f"item must be a row between 0 and {n - 1}, got {item}.")
    return int(item)


def described(loadings: Loadings, k: int, n_items: int = 3) -> str:
    """A dimension by its number and its own name, or the items that have most of it."""
    if loadings.names is not None:
        return f"{k + 1}: {loadings.names[k]}"
    tops = ", ".join(loadings.item(int(i)) for i in loadings.top(k, n_items)) if loadings.labels is not None else ""
    return f"{k + 1}: {tops}" if tops else f"Dimension {k + 1}"


def numbers_of(values: Any, name: str) -> NDArray[np.float64]:
    """A sequence of numbers; NaN may stand for none."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must hold numbers, got {type(values).__name__}.") from None
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must hold one number for each dimension, got shape {array.shape}.")
    return array


def main_dimensions(dominant: Sequence[int] | NDArray[np.intp], n_colours: int) -> list[int]:
    """The dimensions that are the largest one for most items, in ascending order, at most so many."""
    found, counts = np.unique([k for k in dominant if k >= 0], return_counts=True)
    most = found[np.argsort(-counts, kind="stable")][:n_colours]
    return sorted(int(k) for k in most)
