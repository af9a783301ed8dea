"""Link prediction: how well an embedding separates linked pairs from unlinked ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parallel import generator_of
from simdims._parameters import ParameterError, require_between
from simdims.metrics import _pairs
from simdims.metrics._embedding import as_embedding, below_one, check_fits
from simdims.metrics._pairs import Pairs, refuse_pair
from simdims.similarity import Similarity, as_similarity


def link_auc(S: Any, W: Any, *, pairs: Any = None, random_state: int | np.random.RandomState | None = None) -> float:
    """Area under the ROC curve of W W^T for separating linked pairs from unlinked ones.

    This is the probability that a link (a pair of two different items with a positive similarity) has a larger w_i .
    w_j than a pair whose similarity is zero (ties count 1/2). All links are compared with an equal number of zero
    pairs, drawn without replacement, or with all zero pairs if there are fewer.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities. Zero pairs are those observed as zero and, in a sparse S whose `absent` is "zero" or a weight,
        those not stored. With absent="missing" only stored zeros are zero pairs. Pairs that are missing or have weight
        0 are neither links nor zero pairs; other weights have no effect.
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding. If both S and W name their items, the names must be the same in the same order.
    pairs : array-like or DataFrame of shape (n_pairs, 2), optional
        The links to compare with the zero pairs, as positions or as text among S's labels; by default all links. Use it
        for links that were held out of the fit; see `hold_out_links`.
    random_state : int, RandomState or None, default=None
        Seed of the draw; None uses fresh entropy.

    Returns
    -------
    float
        1 if every link is above every zero pair, 1/2 for chance.

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
    embedding = below_one(embedding)  # only the order of products matters
    scores = [_pairs.pair_products(embedding, *pairs) for pairs in (links, zeros)]
    is_link = np.repeat([1, 0], [len(links[0]), len(zeros[0])])
    return float(roc_auc_score(is_link, np.concatenate(scores)))


def hold_out_links(
    S: Any, fraction: float = 0.1, *, random_state: int | np.random.RandomState | None = None
) -> tuple[Similarity, NDArray[np.int64]]:
    """Hold some links out of S, to predict them from a fit to the rest.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities, sparse or dense.
    fraction : float, default=0.1
        The share of the links (pairs of two different items with a positive similarity) to hold out.
    random_state : int, RandomState or None, default=None
        Seed of the draw; None uses fresh entropy.

    Returns
    -------
    training : Similarity
        S in which the held-out links are missing: stored as NaN, which a fit ignores.
    pairs : ndarray of shape (n_held_out, 2)
        The held-out links, as positions, for `link_auc(S, W, pairs=pairs)` with the original S.

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
    require_between("fraction", fraction, 0, 1, strictly=True)
    if similarity.factors is not None:
        remedy = "pass Similarity(F @ F.T)"
        raise ParameterError("S", "must store its pairs to hold some out", "implicit similarities", remedy)
    first, second = _links(similarity)
    n_held_out = max(round(float(fraction) * len(first)), 1)
    if n_held_out >= len(first):
        raise ParameterError("S", f"must have more links than are held out, {n_held_out}", str(len(first)))
    chosen = np.sort(_draw(len(first), n_held_out, generator_of(random_state)))
    first, second = first[chosen], second[chosen]
    return replace(similarity, values=_without(similarity.values, first, second)), np.stack([first, second], axis=1)


def _read_links(pairs: Any, similarity: Similarity) -> Pairs:
    """Listed links as positions, the smaller one first; each must be a link and be listed once."""
    names = None if similarity.labels is None else tuple(similarity.labels)
    positions = np.sort(_pairs.read_pairs(pairs, similarity.n_items, names, "S").astype(np.int64), axis=1)
    refuse_pair(pairs, positions < 0, "name items of S")
    refuse_pair(pairs, positions[:, 0] == positions[:, 1], "name two different items")
    first, second = np.ascontiguousarray(positions.T)
    known = _pairs.known_values(similarity)(first, second)
    refuse_pair(pairs, ~(known > 0), "be links, with a positive similarity in S (the original, with all links)")
    first_listed = np.unique(positions, axis=0, return_index=True)[1]
    refuse_pair(pairs, ~np.isin(np.arange(len(positions)), first_listed), "list every pair once")
    return first, second


def _links_and_zeros(similarity: Similarity, n_links: int | None, rng: np.random.RandomState) -> tuple[Pairs, Pairs]:
    """All links, and `n_links` zero pairs (if None, as many as there are links)."""
    links = _links(similarity)
    draw_zeros = _zeros_of_stored if _pairs.is_sparse(similarity) else _zeros_of_blocks
    zeros = draw_zeros(similarity, len(links[0]) if n_links is None else n_links, rng)
    if not len(links[0]):
        raise ParameterError("S", "must have a positive similarity of two different items", "none")
    if not len(zeros[0]):
        unstored = ", or {absent=zero} (or a weight) if pairs that are not stored are zeros"
        remedy = "use explained_variance" + (unstored if similarity.absent == "missing" else "")
        raise ParameterError("S", "must have a zero pair to compare links with", "none", remedy)
    return links, zeros


def _zeros_of_stored(similarity: Similarity, n_wanted: int, rng: np.random.RandomState) -> Pairs:
    """Zero pairs of sparse similarities: drawn by rank among all pairs that are not stored, then stored zeros."""
    n = similarity.n_items
    first, second, values = _pairs.stored_pairs(similarity)
    zeros = np.flatnonzero(values == 0)
    taken = _pairs.ranks_of_rows(n)[first] + second - first - 1
    n_unstored = n * (n - 1) // 2 - len(taken) if similarity.absent_weight else 0
    drawn = _draw(n_unstored + len(zeros), n_wanted, rng)
    from_stored = zeros[drawn[drawn >= n_unstored] - n_unstored]
    unstored = drawn[drawn < n_unstored]
    # The t-th free rank is preceded by as many taken ranks as there are k with taken[k] - k <= t.
    ranks = unstored + np.searchsorted(taken - np.arange(len(taken)), unstored, side="right")
    row, column = _pairs.pairs_of_ranks(ranks, n)
    return np.concatenate([row, first[from_stored]]), np.concatenate([column, second[from_stored]])


def _zeros_of_blocks(similarity: Similarity, n_wanted: int, rng: np.random.RandomState) -> Pairs:
    """Zero pairs of other similarities: counted, sampled by index, and located in a second pass over blocks of rows."""
    n_zeros = sum(int(np.count_nonzero(values == 0)) for _, values in _upper_blocks(similarity))
    drawn = np.sort(_draw(n_zeros, n_wanted, rng))
    found: list[NDArray[np.int64]] = []
    n_before = 0
    for start, values in _upper_blocks(similarity):
        places = np.flatnonzero(values == 0)
        low, high = np.searchsorted(drawn, [n_before, n_before + len(places)])
        found.append(start * similarity.n_items + places[drawn[low:high] - n_before])
        n_before += len(places)
    row, column = np.divmod(np.concatenate(found), similarity.n_items)
    return row, column


def _links(similarity: Similarity) -> Pairs:
    """Off-diagonal pairs with a positive similarity, the smaller index first."""
    if _pairs.is_sparse(similarity):
        first, second, values = _pairs.stored_pairs(similarity)
        return first[values > 0], second[values > 0]
    keys = [start * similarity.n_items + np.flatnonzero(values > 0) for start, values in _upper_blocks(similarity)]
    first, second = np.divmod(np.concatenate(keys), similarity.n_items)
    return first, second


def _upper_blocks(similarity: Similarity) -> Iterator[tuple[int, NDArray]]:
    """Blocks of rows of dense or implicit similarities, NaN where missing, on the diagonal and below it."""
    factors, columns = similarity.factors, np.arange(similarity.n_items)
    for rows in _pairs.row_blocks(similarity.n_items):
        block = similarity.values[rows].copy() if factors is None else factors[rows] @ factors.T
        if similarity.weights is not None:
            block[similarity.weights[rows] == 0] = np.nan
        block[columns <= columns[rows, None]] = np.nan
        yield rows.start, block


def _draw(n_available: int, n_wanted: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Distinct integers below `n_available`: all, or a random sample, without memory for all of them."""
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
    """Values with NaN for listed pairs, in both triangles."""
    if not sparse.issparse(values):
        left = values.copy()
        left[first, second] = left[second, first] = np.nan
        return left
    n = values.shape[0]
    data = values.data.copy()
    data[np.searchsorted(_pairs.stored_keys(values), np.concatenate([first * n + second, second * n + first]))] = np.nan
    return sparse.csr_array((data, values.indices, values.indptr), shape=values.shape)
