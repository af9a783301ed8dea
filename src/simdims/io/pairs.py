"""Convert a list of pairs with values to the parts of a Similarity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._memory import require
from simdims._parameters import ParameterError, shortlist
from simdims.similarity import Parts
from simdims.similarity.labels import clean_labels

# Use a dense matrix if it is small or not much larger than the list of pairs.
DENSE_ITEMS = 2000
DENSE_SHARE = 0.05


def from_pairs(
    names: Sequence[str],
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    values: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    *,
    labels: Sequence[str] | None,
    absent: str | float | None,
    column: str | None,
) -> Parts:
    """Return the parts of a Similarity from positions in `names`; pairs may be in either order.

    The result is dense, with unlisted pairs missing, for up to DENSE_ITEMS items or at least DENSE_SHARE of all pairs;
    otherwise, or if `absent` is given, it is sparse. Names that are exactly 0 to n - 1 are positions and not labels.
    """
    weighted = "" if weights is None else " with weights"
    info = {"found": f"a list of {len(values)} pairs of {len(names)} items{weighted}"}
    info |= {} if column is None else {"column": column}
    order, clean = _order(names, labels)
    first, second = order[first], order[second]
    n_items = len(names) if clean is None else len(clean)
    if weights is not None:
        # A pair without a value is missing whatever its weight.
        weights = np.where(np.isnan(values) & np.isnan(weights), 0.0, weights)
    kept = _distinct(first, second, values, weights, n_items, clean)
    is_dense = absent is None and (
        n_items <= DENSE_ITEMS or _share(first[kept], second[kept], values[kept], n_items) >= DENSE_SHARE
    )
    if not is_dense and absent in (None, "missing"):
        absent, kept = "missing", kept[~np.isnan(values[kept])]

    def matrix(numbers: NDArray[np.float64], rest: float) -> NDArray[np.float64] | sparse.coo_array:
        place = first[kept], second[kept]
        if not is_dense:
            return sparse.coo_array((numbers[kept], place), shape=(n_items, n_items))
        require(
            8 * n_items**2, f"A dense matrix of the {n_items} items listed", 'set absent to "missing" for a sparse one'
        )
        filled = np.full((n_items, n_items), rest)
        filled[place[::-1]] = numbers[kept]
        filled[place] = numbers[kept]  # a pair listed in both orders keeps both values, which as_similarity compares
        return filled

    found = None if weights is None else matrix(weights, 0.0)
    return Parts(matrix(values, np.nan), clean, found, absent, named_by="the list of pairs", info=info)


def is_position(name: str) -> bool:
    """Whether a name is an integer in canonical form: 7, not 07 or 7.0."""
    return name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")


def are_positions(names: Sequence[str]) -> bool:
    """Whether names are the numbers 0 to n - 1, in any order."""
    return all(is_position(name) for name in names) and {int(name) for name in names} == set(range(len(names)))


def _order(names: Sequence[str], labels: Sequence[str] | None) -> tuple[NDArray[np.intp], tuple[str, ...] | None]:
    """The index of each name among the items, and the items' labels."""
    if labels is None:
        if are_positions(names):
            return np.array([int(name) for name in names], dtype=np.intp), None
        return np.arange(len(names)), tuple(names)
    given = clean_labels(labels, len(tuple(labels)))
    assert given is not None
    places = {label: place for place, label in enumerate(given)}
    unknown = [name for name in names if name not in places]
    if not unknown:
        return np.array([places[name] for name in names], dtype=np.intp), given
    if all(is_position(name) and int(name) < len(given) for name in names):
        return np.array([int(name) for name in names], dtype=np.intp), given
    got = (
        f"no label for {shortlist([repr(name) for name in unknown])} (items that are numbers may be positions among "
        f"the labels, 0 to {len(given) - 1})"
    )
    raise ParameterError("labels", "must name every listed item", got)


def _distinct(
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    values: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    n_items: int,
    labels: tuple[str, ...] | None,
) -> NDArray[np.intp]:
    """One row per ordered pair, after checking that repeated pairs have equal values."""
    _, kept, pair = np.unique(first.astype(np.int64) * n_items + second, return_index=True, return_inverse=True)
    for name, numbers in (("value", values), ("weight", weights)):
        if numbers is None:
            continue
        before = numbers[kept][pair]
        differs = (numbers != before) & ~(np.isnan(numbers) & np.isnan(before))
        if differs.any():
            row = int(np.argmax(differs))
            one, other = (repr(labels[item]) if labels else str(item) for item in (first[row], second[row]))
            got = f"{before[row]:.6g} and {numbers[row]:.6g} for the pair ({one}, {other})"
            remedy = "{from_ratings()} averages repeated judgements"
            raise ParameterError("path", f"must give each pair one {name}", got, remedy)
    return kept


def _share(first: NDArray[np.intp], second: NDArray[np.intp], values: NDArray[np.float64], n_items: int) -> float:
    listed = (first != second) & ~np.isnan(values)
    low, high = np.minimum(first, second)[listed], np.maximum(first, second)[listed]
    return 2 * np.unique(low.astype(np.int64) * n_items + high).size / (n_items * (n_items - 1))
