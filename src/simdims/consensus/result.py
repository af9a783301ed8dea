"""Consensus: the aligned runs, the most central one, and how well they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import plural, warn
from simdims.similarity.ownership import read_only

if TYPE_CHECKING:
    import pandas as pd

#: Summaries list dimensions with a lower reliability.
LOW = 0.8
_N_NAMED = 8


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """The result of `fit_consensus`. All arrays are read-only.

    Attributes
    ----------
    embedding : ndarray of shape (n_items, n_components)
        The most central run as it was fitted, not an average, which need not be a solution. Its dimensions are sorted
        by their share of the reconstruction, largest first.
    embeddings : ndarray of shape (n_runs, n_items, n_components)
        All runs, aligned to `embedding`.
    selected : int
        The index of the run that is `embedding`.
    reliability : ndarray of shape (n_components,)
        Split-half reliability of each dimension across random starts; see `split_half_reliability`. It does not measure
        generalisation to other participants or items.
    mean_reliability : float
    agreement : ndarray of shape (n_runs, n_runs)
        The mean correlation of the matched columns for each pair of runs.
    objectives : ndarray of shape (n_runs,)
        The objective of each run, the penalty included.
    converged : ndarray of bool, shape (n_runs,)
    n_iter : ndarray of int, shape (n_runs,)
    seeds : ndarray of int, shape (n_runs,)
        SRF with ``random_state=seeds[i]`` and the same settings reproduces run i.
    n_splits : int
        Number of splits behind `reliability`.
    labels : tuple of str or None
        The names of the items.
    seed : int or None
        The `random_state` that reproduces this result from the same data and settings. None if the runs were started in
        a checkpoint of an earlier version without a `random_state`.
    alpha : float
        The penalty on the loadings; 0 is none.
    weights : ndarray of shape (n_runs, n_systems, n_components) or None
        For a SimilaritySet: the weights of each run, in the order of its aligned dimensions. The others are None.
    systems : tuple of str or None
        The names of the systems.
    system_info : DataFrame or None
        What is known about the systems.
    shrinkage : float or None
        How strongly weights were shrunk towards 1.
    dimension_names : tuple of str
        The names of the dimensions: dimension1, dimension2, ... unless `Discovery.rename` gave others.
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
    alpha: float = 0.0
    weights: NDArray[np.float64] | None = None
    systems: tuple[str, ...] | None = None
    system_info: pd.DataFrame | None = None
    shrinkage: float | None = None
    dimension_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))
        if not self.dimension_names:
            object.__setattr__(self, "dimension_names", numbered_names(self.n_components))

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
        """The embedding as a DataFrame, with the labels as index and columns named as the dimensions."""
        import pandas as pd

        index = None if self.labels is None else list(self.labels)
        return pd.DataFrame(self.embedding.copy(), index=index, columns=list(self.dimension_names))

    def weights_frame(self) -> pd.DataFrame:
        """The weights of the systems in the most central run, a row per system; for a SimilaritySet only."""
        import pandas as pd

        if self.weights is None or self.systems is None:
            raise ValueError(
                "weights_frame needs a consensus of several systems: pass a SimilaritySet to fit_consensus."
            )
        weights = self.weights[self.selected].copy()
        return pd.DataFrame(weights, index=list(self.systems), columns=list(self.dimension_names))

    def summary(self) -> str:
        """Return the result in words."""
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
            f"{self.objectives.min():.6g} to {self.objectives.max():.6g}){penalty_words(self.alpha)}.",
        ]
        if self.systems is not None:
            drawn = "all weights are 1" if np.isinf(self.shrinkage or 0.0) else f"shrinkage {self.shrinkage:.3g}"
            lines.append(f"{_count(len(self.systems), 'system')} with weights on these dimensions ({drawn}).")
        if not self.converged.all():
            n_unconverged = int(np.count_nonzero(~self.converged))
            lines.append(f"{n_unconverged} of {self.n_runs} runs did not converge: raise max_iter of the estimator.")
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

    def _unreliable(self) -> str:
        low = low_values(self.reliability)
        if not low:
            return ""
        names = self.dimension_names
        listed = ", ".join(f"{names[k]} ({shown})" for k, shown in list(low.items())[:_N_NAMED])
        return f" Below {LOW}: {listed}{', ...' if len(low) > _N_NAMED else ''}."


def numbered_names(n_components: int) -> tuple[str, ...]:
    """The default names of dimensions: dimension1, dimension2, ..."""
    return tuple(f"dimension{k + 1}" for k in range(n_components))


def warn_of_unconverged(consensus: Consensus, max_iter: int, tol: float) -> None:
    """Warn of runs that did not converge."""
    n_unconverged = int(np.count_nonzero(~consensus.converged))
    if n_unconverged:
        from simdims.srf import UnconvergedWarning

        warn(
            f"{n_unconverged} of {consensus.n_runs} runs did not converge in max_iter={max_iter} iterations "
            f"(tol={tol:g}).",
            "Raise max_iter of the estimator, or its tol if that is precise enough.",
            UnconvergedWarning,
        )


def penalty_words(alpha: float) -> str:
    """The penalty in words that end a sentence; empty without one."""
    return f", with a penalty alpha = {alpha:.3g} on the loadings" if alpha > 0 else ""


def low_values(reliability: NDArray[np.float64]) -> dict[int, str]:
    """The dimensions with a reliability below LOW, lowest first, with enough digits to show that it is below."""
    found = {}
    for k in np.argsort(reliability, kind="stable"):
        if reliability[k] < LOW:
            n_digits = next((digits for digits in range(2, 17) if round(float(reliability[k]), digits) < LOW), 17)
            found[int(k)] = f"{reliability[k]:.{n_digits}f}"
    return found


def _ordinal(place: int) -> str:
    if place == 1:
        return "lowest"
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending} lowest"


def _count(number: int, what: str) -> str:
    return f"{number} {plural(what, number)}"
