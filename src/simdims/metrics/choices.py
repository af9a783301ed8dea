"""Odd-one-out choices and comparisons: how well similarities predict them, and with what probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, require_choice, require_number, warn
from simdims.comparisons import read_comparisons
from simdims.metrics._embedding import Names, as_embedding, as_numbers, embedding_table, scaled_rows
from simdims.metrics._pairs import PairValues, known_values, pair_products, row_blocks
from simdims.similarity import Similarity, as_similarity, is_default_axis, is_frame
from simdims.triplets import read_triplets

#: Triplets looked up at a time.
_CHUNK = 2**16


def triplet_accuracy(
    W: Any, triplets: Any, *, odd: int | Hashable = -1, similarity: str = "dot", labels: Sequence[str] | None = None
) -> float:
    """Share of odd-one-out answers that similarities predict: the odd one out is not in the most similar pair.

    If two or three pairs of a triplet are equally similar, the answer counts 1/2 or 1/3, the expected score of a guess.
    Chance is therefore exactly 1/3.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus, fitted SRF, or similarities
        An embedding, a result that holds one, or similarities: anything `as_similarity` takes. A square array that is
        not symmetric is ambiguous and raises an error (see Similarity.from_factors).
    triplets : array-like or DataFrame of shape (n_triplets, 3)
        One answer per row: three different items, as positions in W or as text among its items' names.
    odd : int or column name, default=-1
        The column of the odd one out, as in `from_triplets`: its position, -3 to 2, or its name in a DataFrame.
    similarity : {"dot", "cosine"}, default="dot"
        The similarity of two items of an embedding: w_i . w_j, as SRF reconstructs it, or its cosine.
    labels : sequence, optional
        Names of the items, if W does not hold them (as the index of a DataFrame, or the labels of a Similarity).

    Returns
    -------
    float
        Between 0 and 1; 1/3 is chance.

    Warns
    -----
    UserWarning
        If similarities of some triplets are missing. Such triplets cannot be predicted and count 1/3, as guesses.

    See Also
    --------
    noise_ceiling : the highest accuracy that a model can reach.

    Notes
    -----
    Similarities that differ by rounding (1e-12 of the largest in a triplet) are tied. The standard error of an accuracy
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
    source, names = _similarities_or_embedding(W, labels, similarity)
    items, odd_column = read_triplets(triplets, odd, n_items=len(source), names=names)
    return _accuracy((support for _, support in _supports(source, items)), odd_column, len(items), "triplets")


def comparison_accuracy(
    W: Any,
    table: Any,
    head: Hashable = "head",
    winner: Hashable = "winner",
    loser: Hashable = "loser",
    *,
    similarity: str = "dot",
    labels: Sequence[str] | None = None,
) -> float:
    """Share of the answers "A is more like B than C" that similarities predict: s_AB is larger than s_AC.

    Ties count 1/2, the expected score of guessing. Chance is therefore exactly 1/2.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus, fitted SRF, or similarities
        An embedding, a result that holds one, or similarities; see `triplet_accuracy`.
    table : DataFrame, dictionary of columns or list of dictionaries
        One answer per row: three different items, as positions in W or as text among its items' names.
    head, winner, loser : column name, default="head", "winner", "loser"
        The columns of A, B and C, as in `from_comparisons`.
    similarity, labels
        As in `triplet_accuracy`.

    Returns
    -------
    float
        Between 0 and 1; 1/2 is chance.

    Warns
    -----
    UserWarning
        If similarities of some answers are missing. Such answers cannot be predicted and count 1/2, as guesses.

    See Also
    --------
    comparison_ceiling : the highest accuracy that a model can reach.
    triplet_accuracy : the same for odd-one-out answers.

    Examples
    --------
    >>> from simdims.metrics import comparison_accuracy
    >>> W = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> answers = {"head": [0, 2, 1, 3], "winner": [1, 3, 2, 2], "loser": [2, 0, 0, 1]}  # the third is not predicted
    >>> comparison_accuracy(W, answers)
    0.75
    """
    source, names = _similarities_or_embedding(W, labels, similarity)
    items = read_comparisons(table, head, winner, loser, n_items=len(source), names=names)
    values = _pair_values(source, 2 * len(items))
    chunks = (items[rows].T for rows in row_blocks(len(items), _CHUNK))
    return _accuracy((np.stack([values(a, b), values(a, c)], axis=1) for a, b, c in chunks), 0, len(items), "answers")


def _accuracy(supports: Iterable[NDArray[np.float64]], answer: int, n_answers: int, what: str) -> float:
    """The mean credit for the answers in one column over all chunks; a missing similarity counts as a guess."""
    credit, n_unknown, n_choices = 0.0, 0, 1
    for support in supports:
        shares, unknown = _credit(support, answer)
        credit, n_unknown, n_choices = credit + shares, n_unknown + unknown, support.shape[1]
    if n_unknown:
        found = f"W lacks a similarity of {n_unknown} of {n_answers} {what}, which count 1/{n_choices}, as guesses."
        warn(found, f"Leave these {what} out, or predict with an embedding, which has all similarities.")
    return (credit + n_unknown / n_choices) / n_answers


def _credit(support: NDArray[np.float64], answer: int) -> tuple[float, int]:
    """The credit for the answers in one column (ties share it), and the number of rows with missing similarities."""
    unknown = np.isnan(support).any(axis=1)
    known = support[~unknown]
    best = known.max(axis=1, keepdims=True)
    tied = known >= best - 1e-12 * np.abs(known).max(axis=1, keepdims=True)
    return float(np.sum(tied[:, answer] / np.count_nonzero(tied, axis=1))), int(np.count_nonzero(unknown))


def triplet_probabilities(
    W: Any, triplets: Any, *, similarity: str = "dot", temperature: float = 1.0, labels: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Probability that each item of a triplet is chosen as the odd one out.

    The softmax over the three pairs: p(k is odd) = exp(s_ij / T) / (exp(s_ij / T) + exp(s_ik / T) + exp(s_jk / T)).

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components), or similarities
        An embedding or similarities; see `triplet_accuracy`.
    triplets : array-like or DataFrame of shape (n_triplets, 3)
        Three different items per row, as positions in W or as text among its items' names, in any order.
    similarity, labels
        As in `triplet_accuracy`.
    temperature : float, default=1.0
        T, positive: high temperatures make choices random, low ones deterministic. Similarities between 0 and 1 need a
        temperature below 1; an embedding that was fitted to choices, such as SPoSE's, is already scaled.

    Returns
    -------
    ndarray of shape (n_triplets, 3)
        The probability of each item, in the order of the columns; rows sum to 1. Triplets with a missing similarity
        are NaN.

    Examples
    --------
    >>> from simdims.metrics import triplet_probabilities
    >>> W = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    >>> triplet_probabilities(W, [[0, 1, 2]]).round(3)
    array([[0.212, 0.212, 0.576]])
    """
    require_number("temperature", temperature, "positive")
    source, names = _similarities_or_embedding(W, labels, similarity)
    items, _ = read_triplets(triplets, n_items=len(source), names=names)
    probabilities = np.empty((len(items), 3))
    for rows, support in _supports(source, items):
        scaled = np.exp((support - support.max(axis=1, keepdims=True)) / float(temperature))
        probabilities[rows] = scaled / scaled.sum(axis=1, keepdims=True)
    return probabilities


def _similarities_or_embedding(
    W: Any, labels: Sequence[str] | None, similarity: object
) -> tuple[Similarity | NDArray[np.float64], Names]:
    """A Similarity, or an embedding whose products are the similarities, and the names of the items."""
    require_choice("similarity", similarity, ("dot", "cosine"))
    W = W if isinstance(W, Similarity) else embedding_table(W)
    if is_embedding(W):
        embedding, names = as_embedding(W, labels=labels)
        return scaled_rows(embedding, similarity), names
    if similarity != "dot":
        raise ParameterError("similarity", 'must be "dot" where W holds similarities', repr(similarity))
    given = as_similarity(W, labels=labels, copy=False)
    return given, None if given.labels is None else tuple(given.labels)


def is_embedding(W: Any, name: str = "W") -> bool:
    """Whether W is an embedding rather than similarities; a symmetric square array holds similarities."""
    if not (is_frame(W) or isinstance(W, np.ndarray | list | tuple)):
        return False
    array = as_numbers(W, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or 0 in array.shape:
        return True
    if is_frame(W) and not is_default_axis(W.columns) and list(W.columns) != list(W.index):
        return True
    if not np.isfinite(array).all() or np.allclose(array, array.T, rtol=1e-8, atol=1e-8 * np.abs(array).max()):
        return False
    rule = "must be symmetric if it is square, because a square array is read as similarities"
    embedding = "Similarity.from_factors(W) for an embedding with as many dimensions as items"
    remedy = f'pass as_similarity(W, symmetrize="mean") for similarities, or {embedding}'
    raise ParameterError(name, rule, f"shape {array.shape} with unequal triangles", remedy)


def _supports(source: Similarity | NDArray, items: NDArray[np.intp]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """For chunks of triplets, the support for each item as the odd one out: the similarity of the other two."""
    values = _pair_values(source, 3 * len(items))
    for rows in row_blocks(len(items), _CHUNK):
        a, b, c = items[rows].T
        yield rows, np.stack([values(b, c), values(a, c), values(a, b)], axis=1)


def _pair_values(source: Similarity | NDArray[np.float64], n_pairs: int) -> PairValues:
    """A function from listed pairs, about `n_pairs` in all, to their similarities."""
    if isinstance(source, Similarity):
        return known_values(source)
    if len(source) ** 2 <= n_pairs:  # then computing all pairs is no more work
        products = source @ source.T
        return lambda first, second: products[first, second]
    return lambda first, second: pair_products(source, first, second)
