"""Similarities of listed pairs of items, stored or predicted, in blocks: no matrix of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims.metrics._embedding import Names, as_embedding, as_numbers, check_choice, embedding_table, scaled_rows
from simdims.similarity import Similarity, as_similarity, is_default_axis, is_frame

# Numbers gathered together where rows of W are looked up pair by pair.
BLOCK = 2**18

PairValues = Callable[[NDArray, NDArray], NDArray[np.float64]]


def pair_products(W: NDArray, first: NDArray, second: NDArray) -> NDArray[np.float64]:
    """w_i . w_j for listed pairs."""
    products = np.empty(len(first))
    n_pairs = max(BLOCK // W.shape[1], 1)
    for start in range(0, len(first), n_pairs):
        e = slice(start, start + n_pairs)
        one, other = (W[items[e]].astype(np.float64, copy=False) for items in (first, second))
        np.einsum("ek,ek->e", one, other, out=products[e])
    return products


def stored_keys(values: sparse.csr_array) -> NDArray[np.int64]:
    """Row * n_items + column of every stored entry, ascending."""
    n_items = values.shape[0]
    rows = np.repeat(np.arange(n_items, dtype=np.int64), np.diff(values.indptr))
    return rows * n_items + values.indices


def known_values(similarity: Similarity) -> PairValues:
    """A function from listed pairs to their similarities: NaN where missing, 0 where an absent pair is a zero."""
    if similarity.factors is not None:
        factors = similarity.factors
        return lambda first, second: pair_products(factors, first, second)
    values, weights = similarity.values, similarity.weights
    if not sparse.issparse(values):
        return lambda first, second: _left_out(
            values[first, second], None if weights is None else weights[first, second]
        )
    keys, n_items = stored_keys(values), similarity.n_items
    absent = 0.0 if similarity.absent_weight else np.nan
    entries = _left_out(values.data, None if weights is None else weights.data)

    def look_up(first: NDArray, second: NDArray) -> NDArray[np.float64]:
        wanted = first.astype(np.int64) * n_items + second
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, entries[place], absent)

    return look_up


def given_or_predicted(
    W: Any, labels: Sequence[str] | None, similarity: object
) -> tuple[Similarity | NDArray[np.float64], Names]:
    """Similarities as a Similarity, or an embedding whose products they are, and the items' names."""
    check_choice(similarity)
    W = W if isinstance(W, Similarity) else embedding_table(W)
    if _is_embedding(W):
        embedding, names = as_embedding(W, labels=labels)
        return scaled_rows(embedding, similarity), names
    if similarity != "dot":
        raise ValueError(
            f'similarity must be "dot" where W holds similarities, which are taken as they are, got {similarity!r}.'
        )
    given = as_similarity(W, labels=labels, copy=False)
    return given, None if given.labels is None else tuple(given.labels)


def pair_values(source: Similarity | NDArray[np.float64], n_pairs: int) -> PairValues:
    """A function from listed pairs to their similarities, of which about `n_pairs` will be asked for."""
    if isinstance(source, Similarity):
        return known_values(source)
    if len(source) ** 2 <= n_pairs:  # all pairs are no more than those
        products = source @ source.T
        return lambda first, second: products[first, second]
    return lambda first, second: pair_products(source, first, second)


def _is_embedding(W: Any) -> bool:
    """Whether W is an embedding rather than similarities; a square array is one or the other by its symmetry."""
    if not (is_frame(W) or isinstance(W, (np.ndarray, list, tuple))):
        return False
    array = as_numbers(W, "W")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or 0 in array.shape:
        return True
    if is_frame(W) and not is_default_axis(W.columns) and list(W.columns) != list(W.index):
        return True
    if not np.isfinite(array).all() or np.allclose(array, array.T, rtol=1e-8, atol=1e-8 * np.abs(array).max()):
        return False
    raise ValueError(
        f"W must be symmetric where it is square, and is then taken as similarities, got shape {array.shape} with "
        'unequal triangles: pass as_similarity(W, symmetrize="mean") for similarities, or Similarity.from_factors(W) '
        "for an embedding with as many dimensions as items."
    )


def _left_out(values: NDArray, weights: NDArray | None) -> NDArray[np.float64]:
    """Values in float64, NaN where the weight is 0."""
    known = values.astype(np.float64, copy=False)
    return known if weights is None else np.where(weights > 0, known, np.nan)
