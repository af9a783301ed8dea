"""The ranks that "auto" tries: a coarse grid, then a refinement around the chosen rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

#: Each rank of the coarse grid is about this many times the one before.
_GRID_RATIO = 1.6

#: The grid extends to this multiple of the number of stable directions, and at least to this rank.
_GRID_REACH, _GRID_LEAST = 2.0, 12

#: Relative spacing of ranks tried around the smallest error, and below the chosen rank.
_NEAR_MINIMUM, _NEAR_CHOICE = 0.1, 0.02


def search_ranks(
    judge: Callable[[], tuple[int, int]], largest: int, n_stable: int | None = None
) -> Iterator[list[int]]:
    """Yield lists of ranks up to `largest` to try next, until the choice among those tried is settled.

    `judge` returns the one with the smallest error and the chosen one. The minimum is expected near `n_stable`.
    """
    reach = max(_GRID_LEAST, int(_GRID_REACH * n_stable) if n_stable else 0)
    tried = coarse_grid(min(reach, largest))
    yield tried
    while closer := _further(tried, largest, *judge()):
        tried = sorted({*tried, *closer})
        yield closer


def coarse_grid(largest: int) -> list[int]:
    """1, 2, 3, 5, 8, ... up to `largest`."""
    grid = [1]
    while grid[-1] < largest:
        grid.append(min(largest, max(grid[-1] + 1, round(grid[-1] * _GRID_RATIO))))
    return grid


def _further(tried: list[int], largest: int, minimum: int, chosen: int) -> list[int]:
    """Ranks beyond the end while the minimum is there, else the middles of gaps that could still change the choice."""
    if minimum == tried[-1] < largest:
        end = min(largest, int(np.ceil(minimum * _GRID_RATIO)))
        return sorted({(minimum + end + 1) // 2, end})
    at, step = tried.index(minimum), max(1, round(_NEAR_MINIMUM * minimum))
    gaps = [(tried[at - 1], minimum)] if at > 0 else []
    gaps += [(minimum, tried[at + 1])] if at + 1 < len(tried) else []
    middles = {(low + high) // 2 for low, high in gaps if high - low > step}
    at, step = tried.index(chosen), max(1, round(_NEAR_CHOICE * chosen))
    if at > 0 and chosen - tried[at - 1] > step:
        middles.add((tried[at - 1] + chosen) // 2)
    return sorted(middles)
