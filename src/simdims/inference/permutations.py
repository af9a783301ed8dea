"""Permutations of the items, drawn in blocks with their own seeds, and the resulting p-values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._memory import require
from simdims._parallel import check_n_jobs, root_seed, run_tasks
from simdims._parameters import require_between, require_choice, require_count, warn
from simdims._progress import Callback, reporting

# Permutations per block. Results depend on this number because each block has its own seed.
BLOCK = 20
# Tolerance for ties between statistics: a permutation that only swaps equal values must tie with the observed one.
TIE = 1e-10
# Warn if fewer permutations than this have a statistic.
FEWEST_DEFINED = 100

# Permutations of shape (number, n_items), or the output of `draw`, -> statistics of shape (number, ...).
Statistics = Callable[[NDArray], NDArray[np.float64]]


class Block(NamedTuple):
    """Permutations that share a seed."""

    root: int
    number: int
    size: int

    def draw(self, n_items: int) -> NDArray[np.intp]:
        """The permutations, one per row."""
        rng = np.random.default_rng(np.random.SeedSequence(self.root, spawn_key=(self.number,)))
        return rng.permuted(np.tile(np.arange(n_items), (self.size, 1)), axis=1)


def blocks_of(n_permutations: int, random_state: Any) -> list[Block]:
    """The blocks of `n_permutations` permutations."""
    root = root_seed(random_state)
    starts = range(0, n_permutations, BLOCK)
    return [Block(root, number, min(BLOCK, n_permutations - start)) for number, start in enumerate(starts)]


def permute(
    statistics: Statistics,
    n_items: int,
    n_permutations: int,
    random_state: Any,
    n_jobs: int | None,
    progress: bool | Callback | None,
    draw: Callable[[Block | None], NDArray] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The observed statistics, and those under permutation, one row each."""
    # `draw` returns the input of `statistics` for a block of permutations, and for None that of the observed order.
    draw = partial(permutations_of, n_items) if draw is None else draw
    observed = statistics(draw(None))[0]
    require(3 * observed.nbytes * n_permutations, "The null distributions", "ask for fewer permutations")
    blocks = blocks_of(n_permutations, random_state)
    null = {}
    with reporting(progress) as report:
        report.begin("permutations", len(blocks))
        # Blocks may arrive in any order; each depends only on its seed.
        for number, values in run_tasks(_block_statistics, (statistics, draw), blocks, n_jobs=n_jobs):
            null[number] = values
            report.step()
    return observed, np.concatenate([null[block.number] for block in blocks])


def stacked(parts: tuple[Statistics, ...], permutations: NDArray[np.integer]) -> NDArray[np.float64]:
    """Several statistics of the same permutations, of shape (number, n_parts, ...)."""
    return np.stack([statistics(permutations) for statistics in parts], axis=1)


def permutations_of(n_items: int, block: Block | None) -> NDArray[np.intp]:
    """The permutations of a block; for None the identity."""
    return np.arange(n_items)[None] if block is None else block.draw(n_items)


def _block_statistics(
    statistics: Statistics, draw: Callable[[Block | None], NDArray], block: Block
) -> tuple[int, NDArray[np.float64]]:
    return block.number, statistics(draw(block))


def pvalues(observed: NDArray, null: NDArray, alternative: str) -> NDArray[np.float64]:
    """(1 + #{null >= observed}) / (1 + number of permutations with a statistic) for each column: never zero."""
    # Excluding permutations without a statistic (NaN) is exact: the observed assignment is one of those with a
    # statistic, and under the null hypothesis each of them was equally likely.
    if alternative == "two-sided":
        observed, null = np.abs(observed), np.abs(null)
    return (1 + np.count_nonzero(null >= observed - TIE, axis=0)) / (1 + n_defined(null))


def n_defined(null: NDArray[np.float64]) -> NDArray[np.intp]:
    """The number of permutations with a statistic, per column."""
    return np.count_nonzero(~np.isnan(null), axis=0)


def pooled_ranks(observed: NDArray, null: NDArray, alternative: str) -> NDArray[np.float64]:
    """For each of the B + 1 values of a column (the observed one first), the share of values at least as large."""
    pooled = np.vstack([observed, null])
    if alternative == "two-sided":
        pooled = np.abs(pooled)
    n_values = 1 + n_defined(null)  # without permutations that have no statistic, NaN
    in_order = np.sort(pooled, axis=0)  # NaN last
    below = [np.searchsorted(column, values - TIE) for column, values in zip(in_order.T, pooled.T, strict=True)]
    return np.where(np.isnan(pooled), np.nan, (n_values - np.stack(below, axis=1)) / n_values)


def warn_of_few(null: NDArray[np.float64], names: tuple[str, ...], alpha: float) -> None:
    """Warn of hypotheses with too few valid permutations."""
    n_drawn = len(null)
    for name, n_left in zip(names, n_defined(null), strict=True):
        smallest = 1 / (1 + n_left)
        if n_left < n_drawn and (n_left < FEWEST_DEFINED or smallest > alpha / len(names)):
            n_needed = -(-1000 * n_drawn // max(n_left, 1))
            warn(
                f"{name!r} could be compared with only {n_left:,} of {n_drawn:,} permutations: in the others its model "
                "has the same value for every observed pair, so that it has no correlation. Its p-value cannot be "
                f"smaller than {smallest:.2g}.",
                f"For about 1,000 comparisons use {{n_permutations={n_needed}}} or more.",
            )


def check_settings(
    n_permutations: int,
    alternative: str,
    alpha: float,
    n_jobs: int | None,
    *,
    matching: str = "auto",
    method: str = "pearson",
    weighting: str = "fit",
) -> None:
    """Check the settings that all tests share."""
    require_count("n_permutations", n_permutations, at_most=2**63)  # the memory check limits the number
    require_choice("alternative", alternative, ("greater", "two-sided"))
    require_between("alpha", alpha, 0, 1, strictly=True)
    check_n_jobs(n_jobs)
    require_choice("matching", matching, ("auto", "joint", "separate"))
    require_choice("method", method, ("pearson", "spearman"))
    require_choice("weighting", weighting, ("fit", "equal"))
