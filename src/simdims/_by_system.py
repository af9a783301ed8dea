"""Judgements of several systems, kept separate: implements `by=` in the functions that compute similarities."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parameters import ParameterError, plural, shortlist, warn
from simdims._tables import read_systems
from simdims.similarity import Similarity
from simdims.similarity.ownership import frozen
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    import pandas as pd

#: Share of the systems up to which several values of a column are reported as probable mistakes.
_MOST_EXCEPTIONS = 0.2


def listed_set(
    groups: NDArray[np.intp],
    names: Sequence[str],
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    values: NDArray[np.float64],
    counts: NDArray | None,
    labels: Sequence[str] | None,
    n_items: int,
    info: dict[str, Any] | None = None,
    made: Sequence[dict[str, Any]] | None = None,
) -> SimilaritySet:
    """A set of sparse systems from lists: the system of each pair, its two items, its value and its weight.

    `made` says of each system how its similarities were made; it becomes the `info` of the system.
    """
    if labels is not None:
        pairs, labels, n_items = _without_unjudged(pairs, labels)
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(len(names) + 1))
    similarities, positions, kept = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few pairs of one system do not show what kind of values they are
        for g in range(len(names)):
            rows = order[ends[g] : ends[g + 1]]
            if not len(rows):
                continue
            i, j = pairs[0][rows], pairs[1][rows]
            items, place = np.unique(np.concatenate([i, j]), return_inverse=True)
            at, shape = (place[: len(i)], place[len(i) :]), (len(items), len(items))
            own = [str(item) if labels is None else labels[item] for item in items]
            stored = sparse.csr_array((values[rows], at), shape=shape)
            weights = None if counts is None else sparse.csr_array((counts[rows].astype(np.float64), at), shape=shape)
            about = {} if made is None else made[g]
            similarities.append(Similarity(frozen(stored), own, weights, "missing", info=about))
            positions.append(items)
            kept.append(g)
    if len(kept) < len(names):
        warn_of_left_out([names[g] for g in range(len(names)) if g not in kept])
    info = None if info is None else {key: [column[g] for g in kept] for key, column in info.items()}
    return SimilaritySet.of_parts(
        similarities, positions, [names[g] for g in kept], info, labels, n_items, checked=False
    )


def _without_unjudged(
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]], labels: Sequence[str]
) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], list[str], int]:
    """The pairs, labels and number of the items that some system has judged, with a warning about others."""
    is_judged = np.zeros(len(labels), dtype=bool)
    is_judged[pairs[0]] = is_judged[pairs[1]] = True
    if not is_judged.all():
        left_out = [repr(labels[int(item)]) for item in np.flatnonzero(~is_judged)]
        warn(f"Left out {len(left_out)} {plural('item', len(left_out))} without a judged pair: {shortlist(left_out)}.")
    place = np.cumsum(is_judged) - 1
    kept = [labels[int(item)] for item in np.flatnonzero(is_judged)]
    return (place[pairs[0]], place[pairs[1]]), kept, len(kept)


def warn_of_left_out(names: Sequence[str]) -> None:
    """Warn of systems without a judged pair."""
    warn(f"Left out {len(names)} {plural('system', len(names))} without a judged pair: {shortlist(list(names))}.")


def covariates(
    frame: pd.DataFrame, groups: NDArray[np.intp], names: Sequence[str], left_out: Sequence[Hashable]
) -> dict[str, Any]:
    """The columns of a table that have one value per system, apart from missing cells, as one value per system."""
    columns: dict[str, Any] = {}
    n_systems = len(names)
    for name in frame.columns[~frame.columns.duplicated(keep=False)]:
        if any(name is other or name == other for other in left_out):
            continue
        by_group = frame[name].groupby(groups)
        try:
            n_values = by_group.nunique()
        except TypeError:  # cells that hold lists or similar
            continue
        if n_values.max() == 1:
            columns[str(name)] = by_group.first().reindex(range(n_systems)).tolist()
        elif frame[name].nunique() < n_systems and 0 < (several := n_values > 1).sum() <= _MOST_EXCEPTIONS * n_systems:
            _warn_of_exceptions(name, {group: by_group.get_group(group) for group in n_values.index[several]}, names)
    return columns


def _warn_of_exceptions(name: Hashable, exceptions: Mapping[Any, pd.Series], names: Sequence[str]) -> None:
    """Warn of a column that has one value in most systems, but several in a few."""
    listed = []
    for group, cells in exceptions.items():
        counts = cells.value_counts().head(3).items()
        values = ", ".join(f"{value!r} in {count:,} {plural('row', count)}" for value, count in counts)
        listed.append(f"{names[group]} ({values})")
    warn(f"Column {name!r} is not used to describe systems: it has several values in {shortlist(listed)}.",
         "If they are typing errors, correct them.")  # fmt: skip


def split_columns(frame: pd.DataFrame, by: Hashable) -> tuple[list[Any], list[Any]]:
    """The columns with judgements beside that of the systems, and their covariates if there are more than three."""
    others = [column for column in frame.columns if column != by]
    if len(others) <= 3:
        return others, []
    groups, names = read_systems(frame, by)
    constant = covariates(frame, groups, names, [by])
    judged = [column for column in others if str(column) not in constant]
    return judged, [column for column in others if column not in judged]


def pair_columns(frame: pd.DataFrame, by: Hashable) -> list[Any]:
    """The columns of a list of pairs that hold two items and their dissimilarity."""
    judged, _ = split_columns(frame, by)
    if len(judged) != 3:
        rule = f"must have three columns that vary within {by!r}, for two items and their dissimilarity"
        raise ParameterError("D", rule, f"{len(judged)}", "pass {item1}, {item2} and {dissimilarity}")
    return judged
