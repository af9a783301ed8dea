"""Consensus: all runs in one order of columns, the one that stands for them, and how far they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simdims.similarity.ownership import read_only

if TYPE_CHECKING:
    import pandas as pd

#: Reliabilities below this are worth a word.
LOW = 0.8
_N_NAMED = 8


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """What `fit_consensus` found.

    Attributes
    ----------
    embedding : ndarray of shape (n_items, n_components)
        The most central run, exactly as it was fitted; never an average, which need not be a solution. Its dimensions
        are sorted by their share of the reconstruction, the largest first. Like all arrays here it is read-only: copy
        it to change it.
    embeddings : ndarray of shape (n_runs, n_items, n_components)
        All runs, their columns in the order of `embedding`.
    selected : int
        Which run is `embedding`.
    reliability : ndarray of shape (n_components,)
        Split-half reliability of each dimension across random starts; see `split_half_reliability`. It says nothing
        about other people or other items.
    mean_reliability : float
    agreement : ndarray of shape (n_runs, n_runs)
        For each pair of runs the mean correlation of their matched columns.
    objectives : ndarray of shape (n_runs,)
        f(W) of each run.
    converged : ndarray of bool, shape (n_runs,)
    n_iter : ndarray of int, shape (n_runs,)
    seeds : ndarray of int, shape (n_runs,)
        With ``random_state=seeds[i]`` and the same settings, SRF makes run i alone.
    n_splits : int
        Splits behind `reliability`.
    labels : tuple of str or None
        The names of the items.
    seed : int or None
        The number that, passed as `random_state` with the same data and settings, gives this result again. None where
        the runs began in a checkpoint of an earlier version without a `random_state`.
    n_runs, n_items, n_components : int
    """

    embeddings: NDArray[np.floating]
    selected: int
    reliability: NDArray[np.float64]
    agreement: NDArray[np.float64]
    objectives: NDArray[np.float64]
    converged: NDArray[np.bool_]
    n_iter: NDArray[np.int_]
    seeds: NDArray[np.int64]
    n_splits: int
    labels: tuple[str, ...] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        # So that what is saved or reported later is what was fitted.
        for name in ("embeddings", "reliability", "agreement", "objectives", "converged", "n_iter", "seeds"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def embedding(self) -> NDArray[np.floating]:
        """The most central run."""
        return self.embeddings[self.selected]

    @property
    def mean_reliability(self) -> float:
        """The mean of the dimensions' reliabilities."""
        return float(self.reliability.mean())

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return len(self.embeddings)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.embeddings.shape[1]

    @property
    def n_components(self) -> int:
        """The number of dimensions."""
        return self.embeddings.shape[2]

    def embedding_frame(self) -> pd.DataFrame:
        """The embedding with a row for each item, by label where there are labels, and dimension1, dimension2, ...

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        index = None if self.labels is None else list(self.labels)
        return pd.DataFrame(self.embedding.copy(), index=index, columns=self._names())

    def summary(self) -> str:
        """What was found, in words."""
        between = self.agreement[np.triu_indices(self.n_runs, 1)]
        place = int(np.sum(self.objectives < self.objectives[self.selected])) + 1
        lines = [
            f"{_count(self.n_components, 'dimension')} of {self.n_items} items: run {self.selected + 1} of "
            f"{self.n_runs}, the most central one.",
            f"Reliability across random starts: mean {self.mean_reliability:.2f}, from {self.reliability.min():.2f} to "
            f"{self.reliability.max():.2f} ({_count(self.n_splits, 'split')} of the items).{self._unreliable()}",
            f"Two runs agree with a mean correlation of {between.mean():.2f} (from {between.min():.2f} to "
            f"{between.max():.2f}).",
            f"Objective {self.objectives[self.selected]:.6g} ({_ordinal(place)} of {self.n_runs} runs; range "
            f"{self.objectives.min():.6g} to {self.objectives.max():.6g}).",
        ]
        if not self.converged.all():
            n_unsettled = int(np.count_nonzero(~self.converged))
            lines.append(f"{n_unsettled} of {self.n_runs} runs did not converge: raise max_iter of the estimator.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Consensus({_count(self.n_components, 'dimension')} of {self.n_items} items, run {self.selected + 1} of "
            f"{self.n_runs}, mean reliability across random starts {self.mean_reliability:.3f})"
        )

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_consensus

        return of_consensus(self)

    def __str__(self) -> str:
        return self.summary()

    def _names(self) -> list[str]:
        return [f"dimension{k + 1}" for k in range(self.n_components)]

    def _unreliable(self) -> str:
        low = low_values(self.reliability)
        if not low:
            return ""
        names = self._names()
        listed = ", ".join(f"{names[k]} ({shown})" for k, shown in list(low.items())[:_N_NAMED])
        return f" Below {LOW}: {listed}{', ...' if len(low) > _N_NAMED else ''}."


def low_values(reliability: NDArray[np.float64]) -> dict[int, str]:
    """The dimensions whose reliability is below LOW, lowest first, each with as many digits as show that it is."""
    found = {}
    for k in np.argsort(reliability, kind="stable"):
        if reliability[k] < LOW:
            n_digits = next((digits for digits in range(2, 17) if round(float(reliability[k]), digits) < LOW), 17)
            found[int(k)] = f"{reliability[k]:.{n_digits}f}"
    return found


def _ordinal(place: int) -> str:
    """The first is the lowest, the others the 2nd lowest and so on."""
    if place == 1:
        return "lowest"
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending} lowest"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
