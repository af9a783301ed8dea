"""Similarities from odd-one-out judgements of triplets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from simdims._answers import cells_of, check_options, read_answers, read_questions, shares_by_system, shares_of_pairs
from simdims._by_system import split_columns
from simdims._parameters import ParameterError, is_whole, shown
from simdims._tables import own_similarity
from simdims.similarity import Similarity, is_frame
from simdims.systems import SimilaritySet


@overload
def from_triplets(
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
    by: None = None,
) -> Similarity: ...


@overload
def from_triplets(
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
    by: str | int,
) -> SimilaritySet: ...


def from_triplets(
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    n_items: int | None = None,
    smoothing: float = 1.0,
    weights: str | None = None,
    labels: Sequence[str] | None = None,
    diagonal: str | None = None,
    by: str | int | None = None,
) -> Similarity | SimilaritySet:
    """Similarities from odd-one-out judgements: how often a pair was kept together when it was shown.

    s_ij = (c_ij + alpha) / (m_ij + 2 alpha), where m_ij triplets showed the pair and the third item was chosen as the
    odd one out in c_ij of them. Pairs that were never shown are missing.

    Parameters
    ----------
    triplets : array-like or DataFrame of shape (n_triplets, 3)
        One answer per row: three different items, all given as integers (positions from 0) or all as text (labels).
    odd : int or column name, default=-1
        The column of the odd one out: its position, -3 to 2, or its name in a DataFrame.
    n_items : int, optional
        Number of items; by default that of `labels`, the largest position plus one, or the number of labels found.
    smoothing : float, default=1.0
        alpha, 0 or more. With alpha = 1, a pair that was shown once gets 1/3 or 2/3.
    weights : {"counts"}, optional
        "counts" weights every pair by m_ij, and each diagonal entry by the mean m_ij of the pairs shown. Recommended if
        pairs have fewer than about five answers.
    labels : sequence, optional
        One distinct name per item. Items given as text must be among them and take their order; by default they are
        sorted (numerically if all are numbers).
    diagonal : {"one", "missing"}, optional
        The similarity of an item with itself, which nobody judged: 1, or missing, so that only pairs are fitted. The
        default is 1; with `by` it is missing, and "one" is an error.
    by : column name, optional
        The column of systems (persons, groups, sessions) in a DataFrame, in addition to the three item columns. Each
        system then has its own similarities. `odd` is a position among the three item columns.

    Returns
    -------
    Similarity
        Dense. `info` holds the numbers of triplets, items, pairs and pairs shown, and the mean answers per pair.
    SimilaritySet
        With `by`: one sparse system per value of that column, with a missing diagonal, which nobody judged. Further
        columns must have one value per system, and become `info`.

    References
    ----------
    SRF, Methods, "Constructing similarity matrices".

    Examples
    --------
    >>> from simdims.triplets import from_triplets
    >>> answers = [["cat", "dog", "car"], ["dog", "cat", "bus"], ["car", "bus", "cat"]]
    >>> S = from_triplets(answers)
    >>> S.labels
    ('bus', 'car', 'cat', 'dog')
    >>> S.values.round(2)
    array([[1.  , 0.67, 0.25, 0.33],
           [0.67, 1.  , 0.25, 0.33],
           [0.25, 0.25, 1.  , 0.75],
           [0.33, 0.33, 0.75, 1.  ]])
    """
    check_options(weights, smoothing, n_items)
    own = own_similarity(diagonal, by)
    frame = triplets
    if by is not None:
        triplets = answers_by(frame, by)
    cells = cells_of(triplets, "triplets")
    odd_place = _odd_column(triplets, odd)
    first, second = (column for column in range(3) if column != odd_place)
    answers = read_answers(cells, labels, n_items)
    judged = (answers, (first, second), [(first, odd_place), (second, odd_place)])
    if by is not None:
        columns = triplets.columns
        return shares_by_system(*judged, frame, by, columns, "triplets", smoothing=smoothing, weights=weights)
    return shares_of_pairs(*judged, own=own, smoothing=smoothing, weights=weights, source="triplets")


def read_triplets(
    triplets: Any, odd: Any = -1, *, n_items: int | None = None, names: tuple[str, ...] | None = None
) -> tuple[NDArray[np.intp], int]:
    """The items of each triplet as positions (see `read_questions`), and the column of the odd one out."""
    odd_place = _odd_column(triplets, odd)
    return read_questions(cells_of(triplets, "triplets"), n_items, names), odd_place


def answers_by(frame: Any, by: str | int) -> Any:
    """The item columns, without those of the systems and their covariates."""
    if not is_frame(frame):
        raise ParameterError("by", "must be None unless triplets are a DataFrame with a column of this name", shown(by))
    if list(frame.columns).count(by) != 1:
        raise ParameterError("by", "must name a column of triplets", f"{by!r}: it has {list(frame.columns)}")
    items, known = split_columns(frame, by)
    return frame[items if len(items) == 3 else [*items, *known]]


def _odd_column(triplets: Any, odd: Any) -> int:
    if is_whole(odd) and -3 <= odd <= 2:
        return int(odd) % 3
    names = list(triplets.columns) if is_frame(triplets) else []
    if names.count(odd) == 1:
        return names.index(odd)
    rule = f"must be the position of a column, -3 to 2{', or the name of one' if names else ''}"
    listed = f"; the columns are {', '.join(map(repr, names))}" if names else ""
    raise ParameterError("odd", rule, f"{shown(odd)}{listed}")
