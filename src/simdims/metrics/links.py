"""Link prediction: whether an embedding tells pairs that are linked from pairs that are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parallel import generator_of
from simdims.metrics._embedding import as_embedding, below_one, check_fits
from simdims.metrics._items import read_pairs, refuse_pair
from simdims.metrics._pairs import known_values, pair_products, stored_keys
from simdims.similarity import Similarity, as_similarity

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

# Rows of a matrix of all pairs that are looked at together.
_BLOCK_ROWS = 256


def link_auc(S: Any, W: Any, *, pairs: Any = None, random_state: int | np.random.RandomState | None = None) -> float:
    """Area under the ROC curve of W W^T for telling linked pairs from unlinked ones.

    The probability that a link, a pair of two different items with a positive similarity, gets a larger w_i . w_j than
    a pair whose similarity is zero (ties count 1/2). All links are compared with as many zero pairs, drawn without
    replacement, or with all zero pairs where there are fewer.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities. Zero pairs are those observed as zero; in a sparse S also those that it does not store, where
        its `absent` calls them zeros of any weight ("zero", or a number). With absent="missing" nobody measured them,
        so only stored zeros are zero pairs. Pairs that are missing, or of weight 0, are neither links nor zero pairs;
        other weights make no difference.
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding. Where both S and W name their items, they must be the same in the same order.
    pairs : array-like or DataFrame of shape (n_pairs, 2), optional
        The links to compare with the zero pairs, instead of all: positions, or text among S's labels. For links that
        were held out of the fit; see `hold_out_links`.
    random_state : int, RandomState or None, default=None
        Seed of the draw; None is fresh entropy.

    Returns
    -------
    float
        1 where every link is above every zero pair, 1/2 for chance.

    Notes
    -----
    Time and memory grow with the stored pairs of a sparse S; a matrix of all pairs is never built.

    References
    ----------
    SRF, Methods, "Empirical datasets" (SWOW).

    Examples
    --------
    >>> from simdims import SRF
    >>> from simdims.datasets import load_miserables
    >>> from simdims.metrics import link_auc
    >>> S = load_miserables()
    >>> W = SRF(n_components=8, random_state=0, max_iter=2000).fit(S).embedding_
    >>> link_auc(S, W, random_state=0) > 0.9
    True
    """
    from sklearn.metrics import roc_auc_score

    similarity = as_similarity(S, copy=False)
    embedding, names = as_embedding(W)
    check_fits(similarity, embedding, names)
    chosen = None if pairs is None else _read_links(pairs, similarity)
    rng = generator_of(random_state)
    links, zeros = _links_and_zeros(similarity, None if chosen is None else len(chosen[0]), rng)
    links = links if chosen is None else chosen
    embedding = below_one(embedding)  # the order of products is what counts
    scores = [pair_products(embedding, *kind) for kind in (links, zeros)]
    is_link = np.repeat([1, 0], [len(kind) for kind in scores])
    return float(roc_auc_score(is_link, np.concatenate(scores)))


def hold_out_links(
    S: Any, fraction: float = 0.1, *, random_state: int | np.random.RandomState | None = None
) -> tuple[Similarity, NDArray[np.int64]]:
    """Leave some links out of S, to predict them from a fit to the others.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities, sparse or dense.
    fraction : float, default=0.1
        The share of the links (pairs of two different items with a positive similarity) to hold out.
    random_state : int, RandomState or None, default=None
        Seed of the draw; None is fresh entropy.

    Returns
    -------
    training : Similarity
        S in which the links held out are missing: a stored NaN, which is neither a value nor a zero to a fit.
    pairs : ndarray of shape (n_held_out, 2)
        The links held out, as positions; for `link_auc(S, W, pairs=pairs)`, with S as it was.

    Examples
    --------
    >>> from simdims import SRF
    >>> from simdims.datasets import load_miserables
    >>> from simdims.metrics import hold_out_links, link_auc
    >>> S = load_miserables()
    >>> training, pairs = hold_out_links(S, 0.1, random_state=0)
    >>> len(pairs)
    25
    >>> W = SRF(n_components=8, random_state=0, max_iter=2000).fit(training).embedding_
    >>> link_auc(S, W, pairs=pairs, random_state=0) > 0.8
    True
    """
    similarity = as_similarity(S, copy=False)
    if not isinstance(fraction, Real) or isinstance(fraction, bool) or not 0 < fraction < 1:
        raise ValueError(f"fraction must be a number between 0 and 1, both excluded, got {fraction!r}.")
    if similarity.factors is not None:
        raise ValueError(
            "S must store its pairs to hold some out, got implicit similarities: pass Similarity(F @ F.T)."
        )
    first, second = _links(similarity)
    n_held_out = max(round(float(fraction) * len(first)), 1)
    if n_held_out >= len(first):
        raise ValueError(f"S must have more links than are held out, {n_held_out}, got {len(first)}.")
    chosen = np.sort(_draw(len(first), n_held_out, generator_of(random_state)))
    first, second = first[chosen], second[chosen]
    return replace(similarity, values=_without(similarity.values, first, second)), np.stack([first, second], axis=1)


def _read_links(pairs: Any, similarity: Similarity) -> Pairs:
    """Listed pairs as positions, the smaller one first, after checking that each is a link and is listed once."""
    names = None if similarity.labels is None else tuple(similarity.labels)
    positions = np.sort(read_pairs(pairs, similarity.n_items, names, "S").astype(np.int64), axis=1)
    refuse_pair(pairs, positions < 0, "name items of S")
    refuse_pair(pairs, positions[:, 0] == positions[:, 1], "name two different items")
    first, second = np.ascontiguousarray(positions.T)
    known = known_values(similarity)(first, second)
    refuse_pair(pairs, ~(known > 0), "be links, with a positive similarity in S (as it was before pairs were held out)")
    keys = first * similarity.n_items + second
    repeated = np.ones(len(keys), dtype=bool)
    repeated[np.unique(keys, return_index=True)[1]] = False
    refuse_pair(pairs, repeated, "list every pair once")
    return first, second


def _links_and_zeros(similarity: Similarity, n_links: int | None, rng: np.random.RandomState) -> tuple[Pairs, Pairs]:
    """All links, and as many zero pairs as `n_links` or, where that is None, as there are links."""
    if similarity.factors is None and sparse.issparse(similarity.values):
        links, zeros = _of_stored(similarity, n_links, rng)
    else:
        links, zeros = _of_blocks(similarity, n_links, rng)
    if not len(links[0]):
        raise ValueError("S must have a positive similarity of two different items, got none.")
    if not len(zeros[0]):
        unstored = ', or say absent="zero" (or a weight) where pairs that are not stored are zeros'
        way_out = unstored if similarity.absent == "missing" else ""
        raise ValueError(f"S must have a zero pair to compare links with, got none: use explained_variance{way_out}.")
    return links, zeros


def _of_stored(similarity: Similarity, n_links: int | None, rng: np.random.RandomState) -> tuple[Pairs, Pairs]:
    """Zero pairs are drawn by their rank among all pairs, row by row, without those that are stored."""
    n, values = similarity.n_items, similarity.values
    first, second = np.divmod(stored_keys(values), n)
    upper = first < second
    first, second = first[upper], second[upper]
    stored = values.data[upper]
    counts = np.ones(len(stored), dtype=bool) if similarity.weights is None else similarity.weights.data[upper] > 0
    links, zeros = counts & (stored > 0), np.flatnonzero(counts & (stored == 0))

    row_starts = np.arange(n, dtype=np.int64) * (2 * n - np.arange(n, dtype=np.int64) - 1) // 2
    taken = row_starts[first] + second - first - 1
    n_unstored = n * (n - 1) // 2 - len(taken) if similarity.absent_weight else 0
    wanted = int(np.count_nonzero(links)) if n_links is None else n_links
    drawn = _draw(n_unstored + len(zeros), wanted, rng)

    from_stored = zeros[drawn[drawn >= n_unstored] - n_unstored]
    unstored = drawn[drawn < n_unstored]
    # The t-th rank that is not taken has as many taken ones below as there are k with taken[k] - k <= t.
    ranks = unstored + np.searchsorted(taken - np.arange(len(taken)), unstored, side="right")
    row = np.searchsorted(row_starts, ranks, side="right") - 1
    column = ranks - row_starts[row] + row + 1
    return (first[links], second[links]), (
        np.concatenate([row, first[from_stored]]),
        np.concatenate([column, second[from_stored]]),
    )


def _of_blocks(similarity: Similarity, n_links: int | None, rng: np.random.RandomState) -> tuple[Pairs, Pairs]:
    """Zero pairs are counted, drawn by their place among them, and found in a second pass over blocks of rows."""
    first, second = _links(similarity)
    n_zeros = sum(int(np.count_nonzero(values == 0)) for _, values in _upper_blocks(similarity))
    drawn = np.sort(_draw(n_zeros, len(first) if n_links is None else n_links, rng))
    found: list[NDArray[np.int64]] = []
    n_before = 0
    for start, values in _upper_blocks(similarity):
        places = np.flatnonzero(values == 0)
        low, high = np.searchsorted(drawn, [n_before, n_before + len(places)])
        found.append(start * similarity.n_items + places[drawn[low:high] - n_before])
        n_before += len(places)
    row, column = np.divmod(np.concatenate(found), similarity.n_items)
    return (first, second), (row, column)


def _links(similarity: Similarity) -> Pairs:
    """The pairs of two different items that are observed and positive, the smaller position first."""
    if similarity.factors is None and sparse.issparse(similarity.values):
        first, second = np.divmod(stored_keys(similarity.values), similarity.n_items)
        positive = (first < second) & (similarity.values.data > 0)
        if similarity.weights is not None:
            positive &= similarity.weights.data > 0
        return first[positive], second[positive]
    keys = [start * similarity.n_items + np.flatnonzero(values > 0) for start, values in _upper_blocks(similarity)]
    first, second = np.divmod(np.concatenate(keys), similarity.n_items)
    return first, second


def _upper_blocks(similarity: Similarity) -> Iterator[tuple[int, NDArray]]:
    """Blocks of rows of dense or implicit similarities, NaN where missing, on the diagonal and below it."""
    n = similarity.n_items
    for start in range(0, n, _BLOCK_ROWS):
        rows = slice(start, min(start + _BLOCK_ROWS, n))
        factors = similarity.factors
        block = similarity.values[rows].copy() if factors is None else factors[rows] @ factors.T
        if similarity.weights is not None:
            block[similarity.weights[rows] == 0] = np.nan
        block[np.arange(n) <= np.arange(rows.start, rows.stop)[:, None]] = np.nan
        yield start, block


def _draw(n_available: int, n_wanted: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Different whole numbers below `n_available`: all of them, or a random choice, in memory of the choice's size."""
    if n_available <= n_wanted:
        return np.arange(n_available, dtype=np.int64)
    if n_available <= 4 * n_wanted:
        return rng.permutation(n_available)[:n_wanted].astype(np.int64)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < n_wanted:
        more = rng.randint(n_available, size=n_wanted + n_wanted // 2, dtype=np.int64)
        drawn = np.unique(np.concatenate([drawn, more]))
    return rng.permutation(drawn)[:n_wanted]


def _without(values: Any, first: NDArray[np.int64], second: NDArray[np.int64]) -> Any:
    """Values with NaN for listed pairs, on both sides."""
    if not sparse.issparse(values):
        left = values.copy()
        left[first, second] = left[second, first] = np.nan
        return left
    n = values.shape[0]
    data = values.data.copy()
    data[np.searchsorted(stored_keys(values), np.concatenate([first * n + second, second * n + first]))] = np.nan
    return sparse.csr_array((data, values.indices, values.indptr), shape=values.shape)
