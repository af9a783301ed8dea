"""Checks, rules and warnings of select_rank, for one system and for several."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from simdims._parameters import ParameterError, ParameterTypeError, is_whole, require_count, shown, warn
from simdims.selection.fits import Design
from simdims.selection.result import RankSelection, Rule
from simdims.selection.splits import MOST_SAMPLING, pool_sampling

logger = logging.getLogger("simdims")

#: Rank at which the penalty is chosen: twice the stable directions of the calibration, within these limits.
_LEAST_GENEROUS, _MOST_GENEROUS = 20, 60


class TooFewPairsError(ValueError):
    """There are too few observed pairs to hold some of them out."""


def check_ranks(ranks: Any, n_items: int) -> list[int] | None:
    """The candidates in increasing order, or None for "auto"."""
    if isinstance(ranks, str):
        if ranks != "auto":
            raise ParameterError("ranks", "must be 'auto' or numbers of dimensions", shown(ranks))
        return None
    ranks = [ranks] if is_whole(ranks) else ranks
    if not isinstance(ranks, Iterable) or getattr(ranks, "ndim", 1) == 0:
        raise ParameterTypeError("ranks", "must be 'auto' or numbers of dimensions", shown(ranks))
    found = list(ranks)
    if not found:
        raise ParameterError("ranks", "must list at least one number of dimensions", "none")
    for rank in found:
        if not is_whole(rank):
            raise ParameterTypeError("ranks", "must be integers", shown(rank))
        if not 1 <= rank <= n_items - 1:
            rule = f"must lie between 1 and {n_items - 1}, the number of items minus 1"
            raise ParameterError("ranks", rule, f"{rank}")
    return sorted({int(rank) for rank in found})


def settle_folds(n_folds: Any, n_repeats: Any, *defaults: int) -> tuple[int, int]:
    """The folds and repeats asked for, or the defaults."""
    n_folds = defaults[0] if n_folds is None else n_folds
    n_repeats = defaults[1] if n_repeats is None else n_repeats
    require_count("n_folds", n_folds, at_least=2)
    require_count("n_repeats", n_repeats)
    return int(n_folds), int(n_repeats)


def generous_rank(candidates: list[int] | None, largest: int, n_stable: int | None) -> int:
    """A rank large enough for all dimensions, at which the penalty for comparing ranks is chosen.

    It does not depend on the candidates, so that more can be tried later, unless there is only one candidate.
    """
    if candidates is not None and len(candidates) == 1:
        return candidates[0]
    reach = _LEAST_GENEROUS if n_stable is None else max(_LEAST_GENEROUS, 2 * n_stable)
    return min(reach, _MOST_GENEROUS, largest)


def make_rule(protocol: str, variance: float, candidates: list[int] | None, has_structure: Callable[[], bool]) -> Rule:
    """How ranks are chosen; if one of them is 1, the residuals of one dimension are tested for structure first."""
    structure = None
    if protocol == "penalised" and (candidates is None or (1 in candidates and len(candidates) > 1)):
        try:
            structure = has_structure()
        except MemoryError:
            logger.info("select_rank: not enough memory to compare the residuals of one dimension with noise")
    return Rule(protocol, variance, structure)


def check_design(n_pairs: int, design: Design, draw_folds: Callable[[int], np.ndarray]) -> None:
    """Refuse folds with too few pairs; `draw_folds` gives the fold of every pair in a repeat."""
    for repeat in range(design.n_repeats):
        n_pool = np.count_nonzero(draw_folds(repeat) >= 0)
        if n_pool < design.n_folds:
            raise TooFewPairsError(
                f"S must have at least one observed pair per fold, got {n_pairs}, of which {n_pool} "
                f"({pool_sampling(design.sampling, design.n_folds):.0%}) are divided among {design.n_folds} folds."
            )
    if design.sampling is not None and design.sampling * design.n_folds / (design.n_folds - 1) > MOST_SAMPLING:
        trained = MOST_SAMPLING * (design.n_folds - 1) / design.n_folds
        warn(
            f"The share of pairs to train on, {design.sampling:.2f}, is not reached with {design.n_folds} folds of "
            f"{MOST_SAMPLING:.0%} of the pairs: each fit trains on {trained:.0%} of them. More folds come closer."
        )


def warn_of_edges(selection: RankSelection) -> None:
    """Warn if the smallest error is at the end of the ranks, or beyond what the pairs of a fit determine."""
    if selection.minimum > selection.largest:
        warn(
            f"A fit to {selection.training_share:.0%} of the pairs determines at most {selection.largest} dimensions, "
            f"but {selection.minimum} {'were asked for' if len(selection.tried) == 1 else 'have the lowest error'}: "
            "beyond that the held-out error says little. Leave larger ranks out."
        )
    elif selection.at_edge:
        way_out = (
            f"Try ranks up to {min(selection.largest, 2 * selection.minimum)} too."
            if selection.minimum < selection.largest
            else "It is the highest that the pairs of one fit can determine; more dimensions need more observed pairs."
        )
        warn(f"The lowest held-out error is at the largest rank that was tried, {selection.minimum}. {way_out}")
