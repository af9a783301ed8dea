"""Similarities from comparisons with a head: "A is more like B than C"."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from simdims._answers import (
    Cells,
    cells_of,
    check_options,
    read_answers,
    read_questions,
    shares_by_system,
    shares_of_pairs,
)
from simdims._tables import as_frame, own_similarity
from simdims.similarity import Similarity
from simdims.systems import SimilaritySet

#: The columns of the head, winner and loser; an answer prefers the first pair to the second.
_KEPT, _PARTED = (0, 1), [(0, 2)]


@overload
def from_comparisons(
    table: Any,
    head: Hashable = "head",
    winner: Hashable = "winner",
    loser: Hashable = "loser",
    by: None = None,
    *,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
) -> Similarity: ...


@overload
def from_comparisons(
    table: Any,
    head: Hashable = "head",
    winner: Hashable = "winner",
    loser: Hashable = "loser",
    *,
    by: Hashable,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
) -> SimilaritySet: ...


def from_comparisons(
    table: Any,
    head: Hashable = "head",
    winner: Hashable = "winner",
    loser: Hashable = "loser",
    by: Hashable | None = None,
    *,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
) -> Similarity | SimilaritySet:
    """Similarities from answers to "which of two items is more like the head?": how often a pair won.

    s_ij = (c_ij + alpha) / (m_ij + 2 alpha), where m_ij answers compared the pair with another one, with either item as
    the head, and c_ij of them preferred it. 1/2 is chance. Pairs that were never compared are missing.

    Parameters
    ----------
    table : DataFrame, dictionary of columns or list of dictionaries
        One answer per row: three different items, all given as integers (positions from 0) or all as text (labels).
    head, winner, loser : column name, default="head", "winner", "loser"
        The columns of the reference item, of the item chosen as more similar to it, and of the other item.
    by : column name, optional
        The column of systems (persons, groups, sessions). Each system then has its own similarities.
    n_items : int, optional
        Number of items; by default that of `labels`, the largest position plus one, or the number of labels found.
    smoothing : float, default=1.0
        alpha, 0 or more: the wins and losses added to each pair. With alpha = 1, a pair compared once gets 1/3 or 2/3.
    weights : {"counts"}, optional
        "counts" weights every pair by m_ij, and each diagonal entry by the mean m_ij of the pairs compared. Recommended
        if pairs have fewer than about five answers.
    labels : sequence, optional
        One distinct name per item. Items given as text must be among them and take their order; by default they are
        sorted (numerically if all are numbers).
    diagonal : {"one", "missing"}, optional
        The similarity of an item with itself, which nobody judged: 1, or missing, so that only pairs are fitted. The
        default is 1; with `by` it is missing, and "one" is an error.

    Returns
    -------
    Similarity
        Dense. `info` holds the numbers of answers, items, pairs and pairs compared, and the mean answers per pair.
    SimilaritySet
        With `by`: one sparse system per value of that column, with a missing diagonal, which nobody judged. Columns of
        the table with one value per system become `info`.

    See Also
    --------
    from_triplets : similarities from odd-one-out judgements.
    metrics.comparison_accuracy : the share of answers that an embedding predicts.
    metrics.comparison_ceiling : the highest accuracy that a model can reach.

    Notes
    -----
    An odd-one-out answer judges three pairs: one is kept and two are rejected, with chance 1/3. A comparison judges
    only the two pairs that include the head, with chance 1/2; it provides no information about the winner and the
    loser. Pairs are thus only compared with pairs that share an item. Over all answers with head i, wins and losses are
    equally frequent, so an item similar to everything and one similar to nothing differ only in answers where they are
    not the head. Use every item as the head.

    Examples
    --------
    >>> from simdims import from_comparisons
    >>> answers = {"head": ["cat", "dog", "bus"], "winner": ["dog", "cat", "car"], "loser": ["car", "bus", "cat"]}
    >>> S = from_comparisons(answers)
    >>> S.labels
    ('bus', 'car', 'cat', 'dog')
    >>> S.values.round(2)
    array([[1.  , 0.67, 0.33, 0.33],
           [0.67, 1.  , 0.33,  nan],
           [0.33, 0.33, 1.  , 0.75],
           [0.33,  nan, 0.75, 1.  ]])
    """
    check_options(weights, smoothing, n_items)
    own = own_similarity(diagonal, by)
    judged = (read_answers(_cells(table, head, winner, loser), labels, n_items), _KEPT, _PARTED)
    if by is not None:
        frame = as_frame(table, head=head, winner=winner, loser=loser, by=by)
        columns = [head, winner, loser]
        return shares_by_system(*judged, frame, by, columns, "comparisons", smoothing=smoothing, weights=weights)
    return shares_of_pairs(*judged, own=own, smoothing=smoothing, weights=weights, source="comparisons")


def read_comparisons(
    table: Any,
    head: Hashable,
    winner: Hashable,
    loser: Hashable,
    *,
    n_items: int | None = None,
    names: tuple[str, ...] | None = None,
) -> NDArray[np.intp]:
    """The head, winner and loser of each answer as positions; see `read_questions`."""
    return read_questions(_cells(table, head, winner, loser), n_items, names)


def _cells(table: Any, head: Hashable, winner: Hashable, loser: Hashable) -> Cells:
    frame = as_frame(table, head=head, winner=winner, loser=loser)
    return cells_of(frame[[head, winner, loser]], "table")
