"""Inputs of plots: the embedding, similarities and labels of a result, or plain arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, ParameterTypeError, is_whole, shown
from simdims.consensus import Consensus
from simdims.consensus.result import numbered_names
from simdims.discovery import Discovery
from simdims.metrics._embedding import Names, as_embedding, as_numbers, embedding_table
from simdims.plots import _style as style
from simdims.similarity import Similarity, as_similarity, is_default_axis, is_frame
from simdims.srf import SRF
from simdims.uncertainty import Bootstrap


class Loadings(NamedTuple):
    """An embedding with optional names of its items and dimensions."""

    W: NDArray[np.float64]
    labels: Names
    names: Names
    reliability: NDArray[np.float64] | None = None
    came_back: NDArray[np.float64] | None = None
    interval: NDArray[np.float64] | None = None

    def name(self, k: int) -> str:
        """The title of a dimension."""
        return f"Dimension {k + 1}" if self.names is None or self.names[k] == f"dimension{k + 1}" else self.names[k]

    def item(self, i: int) -> str:
        """The label of an item, or its row number (from 0)."""
        return str(i) if self.labels is None else self.labels[i]

    def describe(self, k: int, n_items: int = 3) -> str:
        """A dimension by its number and its name, or its top items."""
        if self.names is not None and self.names[k] != f"dimension{k + 1}":
            return f"{k + 1}: {self.names[k]}"
        tops = "" if self.labels is None else ", ".join(self.item(i) for i in self.top(k, n_items))
        return f"{k + 1}: {tops}" if tops else f"Dimension {k + 1}"

    def descriptions(self, dimensions: Iterable[int], n_items: int, points: float, width: float) -> list[str]:
        """Like `describe`, but at most `width` points wide, with as many items as fit."""
        texts = []
        for k in dimensions:
            among, own = self.labels, [] if self.labels is None else [self.item(i) for i in self.top(k, n_items)]
            if self.names is not None and self.names[k] != f"dimension{k + 1}":
                among, own = self.names, [self.names[k]]
            is_described = among is not None and own
            line = style.fitted_list(own, points, width, start=f"{k + 1}: ", among=among) if is_described else ""
            texts.append(line or f"Dimension {k + 1}")
        return texts

    def top(self, k: int, n: int) -> NDArray[np.intp]:
        """The items with the largest positive loadings on a dimension, at most n."""
        order = np.argsort(-self.W[:, k], kind="stable")[:n]
        return order[self.W[order, k] > 0]

    def dominant(self) -> NDArray[np.intp]:
        """The largest dimension of each item; -1 for an item without loadings."""
        return np.where(self.W.max(axis=1) > 0, self.W.argmax(axis=1), -1)

    def main_dimensions(self, n: int) -> list[int]:
        """The dimensions that are most often an item's largest, at most n, in ascending order."""
        dominant = self.dominant()
        found, counts = np.unique(dominant[dominant >= 0], return_counts=True)
        return np.sort(found[np.argsort(-counts, kind="stable")][:n]).tolist()

    def find_dimension(self, dimension: Any) -> int:
        """The column of a dimension given by its number (from 1) or name."""
        n = self.W.shape[1]
        if isinstance(dimension, str):
            names = (*(self.names or ()), *numbered_names(n))
            if dimension not in names:
                rule = f"must be a number from 1 to {n} or the name of a dimension"
                raise ParameterError("dimension", rule, repr(dimension))
            return names.index(dimension) % n
        if not is_whole(dimension):
            raise ParameterTypeError("dimension", "must be a number or a name", shown(dimension))
        if not 1 <= dimension <= n:
            raise ParameterError("dimension", f"must be between 1 and n_components = {n}", str(dimension))
        return int(dimension) - 1

    def find_item(self, item: Any) -> int:
        """The row of an item given by its label or its row number (from 0)."""
        if not isinstance(item, str):
            if not is_whole(item):
                raise ParameterTypeError("item", "must be a label or a row", shown(item))
            if not 0 <= item < len(self.W):
                raise ParameterError("item", f"must be a row between 0 and {len(self.W) - 1}", str(item))
            return int(item)
        if self.labels is None:
            raise ParameterError("item", "must be a row where items have no labels", repr(item))
        n_found = self.labels.count(item)
        if n_found > 1:
            raise ParameterError("item", "must name one item", f"{item!r}, the label of {n_found}", "pass its row")
        if not n_found:
            near = [f" (the closest label is {label!r})" for label in get_close_matches(item, self.labels, n=1)]
            raise ParameterError("item", "must be the label of an item", repr(item) + "".join(near))
        return self.labels.index(item)


def loadings_of(result: Any, labels: Any = None, name: str = "result") -> Loadings:
    """The embedding of a Discovery, a Consensus, a Bootstrap, a fitted SRF, an array or a DataFrame."""
    table = embedding_table(result, name)
    W, own = as_embedding(table, name)
    names = given_names(table.columns) if is_frame(table) and not is_default_axis(table.columns) else None
    runs = getattr(result, "consensus", result)
    reliability = runs.reliability if isinstance(runs, Consensus) else None
    shown_labels = _labels(labels, own, len(W))
    if isinstance(result, Bootstrap):
        return Loadings(W, shown_labels, names, came_back=result.came_back, interval=result.interval("loadings"))
    return Loadings(W, shown_labels, names, reliability)


def given_names(names: Iterable[Any]) -> Names:
    """The names of dimensions; None if there are none."""
    texts = tuple(map(str, names))
    return None if texts == numbered_names(len(texts)) else texts


def both_of(result: Any, embedding: Any, labels: Any) -> tuple[Similarity | None, Loadings | None, Names]:
    """The similarities and the embedding of a result, or of a matrix and a separate embedding."""
    similarity, loadings = None, None
    if isinstance(result, Consensus | SRF):
        if embedding is not None:
            raise ParameterError("embedding", "must be None where result holds one", "a second one")
        loadings = loadings_of(result)
    else:
        similarity = as_similarity(result, copy=False)  # that of a Discovery is returned unchanged
        embedding = result if embedding is None and isinstance(result, Discovery) else embedding
        loadings = None if embedding is None else loadings_of(embedding, name="embedding")
    n_items = similarity.n_items if similarity is not None else len(loadings.W)  # type: ignore[union-attr]
    if loadings is not None and len(loadings.W) != n_items:
        rule = f"must have one row for each of {n_items} items"
        raise ParameterError("embedding", rule, f"shape {loadings.W.shape}")
    own = None if similarity is None else similarity.labels
    if own is None and loadings is not None:
        own = loadings.labels
    return similarity, loadings, _labels(labels, own, n_items)


def require_both(result: Any, embedding: Any, labels: Any = None) -> tuple[Similarity, Loadings, Names]:
    """Like `both_of`, for plots that need both the similarities and the embedding."""
    similarity, loadings, names = both_of(result, embedding, labels)
    if similarity is None:
        remedy = "pass the similarities first, and this as {embedding}"
        raise ParameterTypeError("result", "must hold similarities", type(result).__name__, remedy)
    if loadings is None:
        raise ParameterError("embedding", "must be an embedding of the items of result", "None")
    return similarity, loadings, names


def as_positions(values: Any, name: str, n_items: int) -> NDArray[np.float64]:
    """Validate positions of items on a plane."""
    xy = as_numbers(values, name)
    if xy.shape != (n_items, 2):
        raise ParameterError(name, f"must have shape ({n_items}, 2), one row per item", f"shape {xy.shape}")
    if not np.isfinite(xy).all():
        raise ParameterError(name, "must be finite", str(xy[~np.isfinite(xy)][0]))
    return xy


def _labels(given: Any, own: Iterable[Any] | None, n_items: int) -> Names:
    """The labels to show: the given ones, which may have duplicates, or those of the result."""
    if given is None:
        return None if own is None else tuple(map(str, own))
    is_sequence = isinstance(given, Iterable) and not isinstance(given, str | bytes | set | frozenset)
    if not is_sequence or getattr(given, "ndim", 1) != 1:
        raise ParameterTypeError("labels", "must be a sequence with one name per item", shown(given))
    labels = tuple(map(str, given))
    if len(labels) != n_items:
        raise ParameterError("labels", f"must have one name for each of the {n_items} items", str(len(labels)))
    return labels


def check_images(images: Any, n_items: int) -> None:
    """Refuse images that are not a sequence with one image per item."""
    is_sequence = hasattr(images, "__len__") and hasattr(images, "__getitem__") and getattr(images, "ndim", 1) > 0
    if not is_sequence or isinstance(images, str | bytes | os.PathLike):
        raise ParameterTypeError("images", "must be a sequence with one image per item", type(images).__name__)
    if len(images) != n_items:
        raise ParameterError("images", f"must have one image for each of the {n_items} items", str(len(images)))
