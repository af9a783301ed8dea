"""Select some items of a Similarity, or some systems of a SimilaritySet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parameters import ParameterError, is_whole, shortlist, shown
from simdims.similarity.ownership import frozen

if TYPE_CHECKING:
    from simdims.similarity.container import Similarity


def chosen_places(key: Any, n: int, labels: Sequence[str] | None, noun: str = "item") -> NDArray[np.intp]:
    """The positions of the items selected by a slice, a mask, or a list of labels or positions."""
    if isinstance(key, slice):
        places = np.arange(n)[key]
    elif isinstance(key, Iterable) and not isinstance(key, str | bytes | tuple):
        chosen = list(key)
        if chosen and all(isinstance(one, bool | np.bool_) for one in chosen):
            if len(chosen) != n:
                raise ParameterError("mask", f"must have one value for each of the {n} {noun}s", f"{len(chosen)}")
            places = np.flatnonzero(chosen)
        else:
            named = {label: place for place, label in enumerate(labels or ())}
            places = np.array([_place_of(one, n, named, noun) for one in chosen], dtype=np.intp)
    else:
        raise TypeError(f"{noun}s are chosen by a list of labels or positions, a slice or a mask, got {shown(key)}.")
    if not len(places):
        raise ParameterError(f"{noun}s", "must be at least one", "none")
    if len(np.unique(places)) < len(places):
        raise ParameterError(f"{noun}s", "must be different ones", shortlist([repr(one) for one in key]))
    return places


def _place_of(one: Any, n: int, named: dict[str, int], noun: str) -> int:
    if isinstance(one, str):
        if one not in named:
            there = f"there are {shortlist(list(map(repr, named)))}" if named else f"{noun}s have no labels"
            raise KeyError(f"no {noun} is called {one!r}: {there}")
        return named[one]
    if not is_whole(one):
        raise TypeError(f"{noun}s are chosen by label or position, got {shown(one)}.")
    if not -n <= one < n:
        raise IndexError(f"{noun} {one} does not exist: there are {n}")
    return int(one) % n


def part_of(S: Similarity, places: NDArray[np.intp]) -> Similarity:
    """The similarities of the items at `places`, in the same storage."""
    labels = None if S.labels is None else [S.labels[place] for place in places]
    info = {**S.info, "chosen": f"{len(places)} of {S.n_items} items"}
    if S.factors is not None:
        return type(S).from_factors(frozen(S.factors[places]), labels, signed=S.signed, info=info)
    block = np.ix_(places, places)

    def part(matrix: Any) -> Any:
        return matrix.tocsr()[places][:, places] if sparse.issparse(matrix) else frozen(matrix[block])

    return type(S)(part(S.values), labels, None if S.weights is None else part(S.weights), S.absent, info=info)
