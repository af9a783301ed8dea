"""Odd-one-out choices: how often similarities predict them, and with what probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims._checks import warn
from simdims.metrics._pairs import given_or_predicted, pair_values
from simdims.similarity import Similarity
from simdims.triplets import read_answers

# Triplets that are looked at together.
_CHUNK = 2**16


def triplet_accuracy(
    W: Any,
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    similarity: str = "dot",
    labels: Sequence[str] | None = None,
) -> float:
    """Share of odd-one-out answers that similarities predict: the odd one out is not in the most similar pair.

    Ties share the credit: a triplet whose two or three most similar pairs are equally similar counts 1/2 or 1/3 where
    the answer is among them, which is what guessing between them earns on average. So chance is 1/3 exactly.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus, fitted SRF, or similarities
        An embedding, or what holds one; or similarities: a Similarity, anything `as_similarity` takes, or a symmetric
        array. A square array that is not symmetric could be either, and is refused (see Similarity.from_factors).
    triplets : array-like or DataFrame of shape (n_triplets, 3)
        One answer per row: three different items, as positions in W or as text among its items' names.
    odd : int or column name, default=-1
        Which column holds the odd one out, as in `from_triplets`: its position, -3 to 2, or its name in a DataFrame.
    similarity : {"dot", "cosine"}, default="dot"
        The similarity of two items of an embedding: w_i . w_j, as SRF reconstructs it, or its cosine.
    labels : sequence, optional
        The items' names, where W does not hold them (as the index of a DataFrame, or a Similarity's labels).

    Returns
    -------
    float
        Between 0 and 1; 1/3 is chance.

    Warns
    -----
    UserWarning
        If similarities miss a pair of some triplet. Such a triplet cannot be predicted and counts 1/3, as a guess.

    See Also
    --------
    noise_ceiling : the accuracy that can be reached at all.

    Notes
    -----
    Similarities that differ by rounding (1e-12 of the largest of a triplet) are tied. The standard error of an accuracy
    a over m independent answers is about sqrt(a (1 - a) / m).

    References
    ----------
    SRF, Methods, "Empirical datasets" (THINGS).

    Examples
    --------
    >>> from simdims.metrics import triplet_accuracy
    >>> W = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> triplet_accuracy(W, [[0, 1, 2], [2, 3, 0], [1, 2, 3]])  # the last answer is not predicted
    0.6666666666666666
    >>> triplet_accuracy(W, [["cat", "dog", "bus"]], labels=["cat", "dog", "car", "bus"])
    1.0
    """
    source, names = given_or_predicted(W, labels, similarity)
    items, odd_column = read_answers(triplets, odd, n_items=_n_items(source), names=names)
    credit, n_unknown = 0.0, 0
    for _, support in _supports(source, items):
        unknown = np.isnan(support).any(axis=1)
        known = support[~unknown]
        best = known.max(axis=1, keepdims=True)
        tied = known >= best - 1e-12 * np.abs(known).max(axis=1, keepdims=True)
        credit += float(np.sum(tied[:, odd_column] / np.count_nonzero(tied, axis=1)))
        n_unknown += int(np.count_nonzero(unknown))
    if n_unknown:
        warn(
            f"W misses a pair of {n_unknown} of {len(items)} triplets, which count 1/3 as guesses do: leave these "
            "triplets out, or predict with an embedding, which misses no pair."
        )
    return (credit + n_unknown / 3) / len(items)


def triplet_probabilities(
    W: Any,
    triplets: Any,
    *,
    similarity: str = "dot",
    temperature: float = 1.0,
    labels: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Probability of each item of a triplet to be chosen as the odd one out.

    The softmax over the three pairs: p(k is odd) = exp(s_ij / T) / (exp(s_ij / T) + exp(s_ik / T) + exp(s_jk / T)).

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components), or similarities
        An embedding or similarities; see `triplet_accuracy`.
    triplets : array-like or DataFrame of shape (n_triplets, 3)
        Three different items a row, as positions in W or as text among its items' names, in any order.
    similarity : {"dot", "cosine"}, default="dot"
        The similarity of two items of an embedding.
    temperature : float, default=1.0
        T, positive: high ones make choices random, low ones certain. An embedding that was fitted to choices, such as
        SPoSE's, has its scale in its loadings and needs none; similarities between 0 and 1 need one below 1.
    labels : sequence, optional
        The items' names, where W does not hold them.

    Returns
    -------
    ndarray of shape (n_triplets, 3)
        One probability for each item, in the order of the columns; rows sum to 1. Where similarities miss a pair of a
        triplet, its row is NaN.

    Examples
    --------
    >>> from simdims.metrics import triplet_probabilities
    >>> W = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    >>> triplet_probabilities(W, [[0, 1, 2]]).round(3)
    array([[0.212, 0.212, 0.576]])
    """
    is_number = isinstance(temperature, Real) and not isinstance(temperature, bool)
    if not (is_number and np.isfinite(float(temperature)) and temperature > 0):
        raise ValueError(f"temperature must be a positive, finite number, got {temperature!r}.")
    source, names = given_or_predicted(W, labels, similarity)
    items, _ = read_answers(triplets, n_items=_n_items(source), names=names)
    probabilities = np.empty((len(items), 3))
    for rows, support in _supports(source, items):
        scaled = np.exp((support - support.max(axis=1, keepdims=True)) / float(temperature))
        probabilities[rows] = scaled / scaled.sum(axis=1, keepdims=True)
    return probabilities


def _n_items(source: Similarity | NDArray) -> int:
    return source.n_items if isinstance(source, Similarity) else len(source)


def _supports(source: Similarity | NDArray, items: NDArray[np.intp]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """For chunks of triplets, what speaks for each item to be the odd one out: the similarity of the other two."""
    values = pair_values(source, 3 * len(items))
    for start in range(0, len(items), _CHUNK):
        rows = slice(start, start + _CHUNK)
        a, b, c = items[rows].T
        yield rows, np.stack([values(b, c), values(a, c), values(a, b)], axis=1)
