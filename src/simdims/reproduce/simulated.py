"""The paper's simulated data sets: a Dirichlet embedding, its similarities, noise on them, and pairs left out."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims import simulate
from simdims._parallel import seed_of
from simdims.reproduce.frame import Cell, Settings

#: Seeds are named by whole numbers: alpha in thousandths.
_STEPS = 1000


class Simulated(NamedTuple):
    """The embedding behind a data set, its similarities without noise, and the similarities that are given."""

    W: NDArray[np.float64]
    truth: NDArray[np.float64]
    S: NDArray[np.float64]


def design(settings: Settings, n_repeats: int, levels: Mapping[str, Iterable[Any]], **common: Any) -> list[Cell]:
    """One cell for each combination of levels and each repeat; `common` is the same in all of them.

    The seed differs between repeats and between embeddings (alpha and rank), and not between what is done to one.
    """
    cells = [dict(zip(levels, values, strict=True)) for values in itertools.product(*levels.values())]
    return [
        {
            **common,
            **cell,
            "seed": seed_of(settings.seed, repeat, int(cell["rank"]), round(_STEPS * cell["alpha"])),
        }
        for repeat in range(n_repeats)
        for cell in cells
    ]


def simulate_cell(cell: Cell) -> Simulated:
    """W with rows from a Dirichlet distribution, S = W W^T with noise, and of its pairs the share `observed`."""
    W = simulate.dirichlet(cell["n_items"], cell["rank"], alpha=cell["alpha"], random_state=seed_of(cell["seed"], 0))
    truth = W @ W.T
    S = np.asarray(simulate.add_noise(truth, cell["snr"], random_state=seed_of(cell["seed"], 1)))
    if cell.get("observed", 1.0) < 1:
        S = np.asarray(simulate.mask_pairs(S, cell["observed"], random_state=seed_of(cell["seed"], 2)))
    return Simulated(W, truth, S)


def fit_seed(cell: Cell) -> int:
    """Seed of what is fitted to a cell."""
    return seed_of(cell["seed"], 3)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Fits that stop at their limit, and items with nothing but a diagonal, are part of these designs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def verdict(settings: Settings, holds: bool) -> bool | None:
    """Whether a statement holds, or None at the size that only shows that the analysis runs."""
    return None if settings.size == "smoke" else bool(holds)
