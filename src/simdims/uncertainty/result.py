"""Bootstrap: resampled fits, their intervals, and how often each dimension was found again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, require_between, require_choice
from simdims.consensus.result import numbered_names
from simdims.similarity.ownership import read_only
from simdims.uncertainty.fits import shares_of
from simdims.uncertainty.intervals import FEWEST, METHODS, interval_of

if TYPE_CHECKING:
    import pandas as pd

#: What was resampled, in words.
_RESAMPLED = {"systems": "groups of systems", "items": "sets of items", "pairs": "sets of pairs"}

#: Dimensions named in a summary.
_N_NAMED = 12

#: Minimal cosine between a dimension of the reference (fitted to a stricter tolerance) and the one in the result.
SAME = 0.9

QUANTITIES = ("loadings", "shares", "weights", "r2")


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """The result of `bootstrap`. All arrays are read-only.

    Attributes
    ----------
    over : {"systems", "items", "pairs"}
        What was resampled.
    embedding : ndarray of shape (n_items, n_components)
        The reference: the embedding that is resampled, converged further than usual.
    weights : ndarray of shape (n_systems, n_components)
        The weights of the systems in the reference; ones for a single system.
    r2 : float
        Share of the variance that the reference explains in sample: the mean over systems. The in-sample R2 of a
        Discovery is over all pairs of all systems, so it may differ.
    embeddings : ndarray of shape (n_resamples, n_items, n_components)
        The resampled embeddings, with dimensions in the order and on the scale of the reference.
    resampled_weights : ndarray of shape (n_resamples, n_systems, n_components)
    resampled_shares : ndarray of shape (n_resamples, n_components)
        Shares of the dimensions in the reconstruction of each resample, with items counted as often as they are drawn.
    resampled_r2 : ndarray of shape (n_resamples,)
    correlations : ndarray of shape (n_resamples, n_components)
        Correlation over items of each dimension of the reference with the one that is matched with it.
    threshold : float
        The correlation from which a dimension counts as found in a resample. Values of dimensions that were not found
        are not part of any interval.
    selected_ranks : ndarray of int, shape (n_resamples,), or None
        The number of dimensions that `select_rank` chose in each resample, if requested.
    alpha, shrinkage : float
        The penalties of all fits.
    n_units : int
        Number of systems, items or pairs in the data.
    pairs_per_system : int
        The median number of observed pairs of a system.
    labels, systems : tuple of str or None
        The names of the items and of the systems.
    seed : int
        The `random_state` that reproduces this result.
    converged : ndarray of bool, shape (n_resamples,)
    dimension_names : tuple of str
        The names of the dimensions.
    """

    over: str
    embedding: NDArray[np.float64]
    weights: NDArray[np.float64]
    r2: float
    embeddings: NDArray[np.float64]
    resampled_weights: NDArray[np.float64]
    resampled_shares: NDArray[np.float64]
    resampled_r2: NDArray[np.float64]
    correlations: NDArray[np.float64]
    threshold: float
    alpha: float
    shrinkage: float
    n_units: int
    pairs_per_system: int
    converged: NDArray[np.bool_]
    seed: int
    labels: tuple[str, ...] | None = None
    systems: tuple[str, ...] | None = None
    selected_ranks: NDArray[np.intp] | None = None
    dimension_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))
        if not self.dimension_names:
            object.__setattr__(self, "dimension_names", numbered_names(self.n_components))

    @property
    def n_resamples(self) -> int:
        """The number of resamples."""
        return len(self.embeddings)

    @property
    def n_components(self) -> int:
        """The number of dimensions."""
        return self.embedding.shape[1]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Whether each dimension was found in each resample, of shape (n_resamples, n_components)."""
        return self.correlations >= self.threshold

    @property
    def came_back(self) -> NDArray[np.float64]:
        """The share of resamples in which each dimension was found."""
        return self.found.mean(axis=0)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each dimension in the average reconstruction."""
        return shares_of(self.embedding)

    @property
    def at_zero(self) -> NDArray[np.bool_]:
        """Loadings whose intervals are not calibrated, of shape (n_items, n_components).

        Loadings that are zero in more than 2.5% of the resamples. The distribution of the estimate has a point mass at
        zero there, which the bootstrap does not reproduce: the interval describes the resamples but does not have its
        nominal coverage.
        """
        return self._zero(self.embedding, self.embeddings)

    @property
    def weights_at_zero(self) -> NDArray[np.bool_]:
        """`at_zero` for weights, of shape (n_systems, n_components)."""
        return self._zero(self.weights, self.resampled_weights)

    def _zero(self, estimate: NDArray, resampled: NDArray) -> NDArray[np.bool_]:
        zeros = np.sum((resampled <= 0) & self.found[:, None], axis=0)
        return (estimate <= 0) | (zeros > 0.025 * np.maximum(self.found.sum(axis=0), 1))

    def interval(self, of: str = "loadings", *, level: float = 0.95, method: str = "percentile") -> NDArray[np.float64]:
        """Compute confidence intervals.

        Parameters
        ----------
        of : {"loadings", "shares", "weights", "r2"}, default="loadings"
            The quantity: the embedding, the shares of the dimensions, the weights of the systems, or R2.
        level : float, default=0.95
            Nominal coverage, between 0 and 1.
        method : {"percentile", "bias-corrected"}, default="percentile"
            Percentiles, widened for the number of units (see Notes of `bootstrap`), or bias-corrected ones.

        Returns
        -------
        ndarray of shape (2, ...)
            Lower and upper limits; NaN for dimensions that fewer than 20 resamples found.
        """
        require_choice("of", of, QUANTITIES)
        require_choice("method", method, METHODS)
        require_between("level", level, 0, 1, strictly=True)
        missing = np.where(self.found, 0.0, np.nan)
        estimate, resampled = {
            "loadings": lambda: (self.embedding, self.embeddings + missing[:, None]),
            "shares": lambda: (self.shares, self.resampled_shares + missing),
            "weights": lambda: (self.weights, self.resampled_weights + missing[:, None]),
            "r2": lambda: (np.asarray(self.r2), self.resampled_r2),
        }[of]()
        # With resampled systems, weights vary mostly with the pairs of their own system, which are drawn again.
        n_units = self.pairs_per_system if of == "weights" and self.over == "systems" else self.n_units
        return interval_of(estimate, resampled, level, method, max(n_units, 2))

    def embedding_frame(self) -> pd.DataFrame:
        """Return the reference with a row per item and a named column per dimension."""
        import pandas as pd

        index = None if self.labels is None else list(self.labels)
        return pd.DataFrame(self.embedding.copy(), index=index, columns=list(self.dimension_names))

    def dimensions_frame(self, *, level: float = 0.95, method: str = "percentile") -> pd.DataFrame:
        """Return one row per dimension: dimension, share, share_low, share_high, came_back, median_correlation."""
        import pandas as pd

        low, high = self.interval("shares", level=level, method=method)
        columns: dict[str, Any] = {
            "dimension": list(self.dimension_names),
            "share": self.shares,
            "share_low": low,
            "share_high": high,
            "came_back": self.came_back,
            "median_correlation": np.median(self.correlations, axis=0),
        }
        return pd.DataFrame(columns)

    def loadings_frame(self, *, level: float = 0.95, method: str = "percentile") -> pd.DataFrame:
        """Return one row per item and dimension: item, dimension, loading, low, high, at_zero."""
        interval = self.interval("loadings", level=level, method=method)
        items = [str(i) for i in range(len(self.embedding))] if self.labels is None else list(self.labels)
        return self._long("item", items, "loading", self.embedding, interval, self.at_zero)

    def weights_frame(self, *, level: float = 0.95, method: str = "percentile") -> pd.DataFrame:
        """Return one row per system and dimension: system, dimension, weight, low, high, at_zero."""
        if self.systems is None:
            raise ParameterError("weights_frame", "needs several systems", "one")
        interval = self.interval("weights", level=level, method=method)
        return self._long("system", list(self.systems), "weight", self.weights, interval, self.weights_at_zero)

    def _long(
        self, kind: str, names: list[str], what: str, values: NDArray, interval: NDArray, at_zero: NDArray
    ) -> pd.DataFrame:
        import pandas as pd

        columns: dict[str, Any] = {
            kind: np.repeat(names, self.n_components),
            "dimension": np.tile(self.dimension_names, len(names)),
            what: values.ravel(),
            "low": interval[0].ravel(),
            "high": interval[1].ravel(),
            "at_zero": at_zero.ravel(),
        }
        return pd.DataFrame(columns)

    @property
    def rank_counts(self) -> dict[int, int]:
        """Return how often each number of dimensions was selected; empty if not requested."""
        if self.selected_ranks is None:
            return {}
        ranks, counts = np.unique(self.selected_ranks, return_counts=True)
        return {int(rank): int(count) for rank, count in zip(ranks, counts, strict=True)}

    def words(self, k: int) -> str:
        """How often a dimension, counted from 0, came back, as in "came back in 93% of resampled groups of systems"."""
        return f"came back in {self.came_back[k]:.0%} of resampled {self.resampled_words}"

    @property
    def resampled_words(self) -> str:
        """What was resampled, as in "groups of systems"."""
        return _RESAMPLED[self.over]

    def methods_text(self) -> str:
        """A sentence or two for the Methods and Results of a paper, with the numbers of this run."""
        back = self.came_back
        low, high = f"{back.min():.0%}", f"{back.max():.0%}"
        share = low if low == high else f"{low} to {high}"
        return (
            f"We fitted {self.n_resamples} resampled {self.resampled_words} with the penalties of the original fit, "
            f"and matched their dimensions with the original ones. Dimensions came back (r >= {self.threshold:g} over "
            f"items) in {share} of the resamples. Intervals are 95% percentile intervals, widened for the number of "
            f"{self.over}; those of loadings at zero ({self.at_zero.mean():.0%}) are not calibrated."
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an .npz file that `Bootstrap.load` reads, without pickle.

        Parameters
        ----------
        path : str or path
            Ends in .npz. An existing file is replaced once the new one is complete.

        Examples
        --------
        >>> sure.save("people-bootstrap.npz")  # doctest: +SKIP
        """
        from simdims.uncertainty.storage import save_bootstrap

        save_bootstrap(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bootstrap:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Bootstrap

        Examples
        --------
        >>> Bootstrap.load("people-bootstrap.npz")  # doctest: +SKIP
        """
        from simdims.uncertainty.storage import load_bootstrap

        return load_bootstrap(path)

    def summary(self) -> str:
        """Return the result in words."""
        low, high = self.interval("r2")
        r2 = f"{self.r2:.1%}" if self.systems is None else f"{self.r2:.1%} (mean of {len(self.systems)} systems)"
        lines = [
            f"{self.n_resamples} resampled {self.resampled_words}; 95% intervals; a dimension came back if it "
            f"correlates {self.threshold:g} or more with the one that is matched with it.",
            "R2 is not defined, because the similarities do not vary."
            if np.isnan(self.r2)
            else f"R2 in sample {r2}; {low:.1%} to {high:.1%} in resamples, which are fitted more closely.",
        ]
        lows, highs = self.interval("shares")
        for k, name in enumerate(self.dimension_names[:_N_NAMED]):
            has_limits = np.isfinite(lows[k])
            limits = f" ({lows[k]:.1%} to {highs[k]:.1%})" if has_limits else ""
            rarely = "" if has_limits else f" (fewer than {FEWEST} resamples: no intervals)"
            lines.append(f"  {name}: share {self.shares[k]:.1%}{limits}, came back in {self.came_back[k]:.0%}{rarely}")
        if self.n_components > _N_NAMED:
            lines.append(f"  and {self.n_components - _N_NAMED} more: see dimensions_frame()")
        lines.append(f"{self.at_zero.mean():.0%} of the loadings are at zero, where intervals are not calibrated.")
        if self.selected_ranks is not None:
            listed = ", ".join(f"{rank} ({count})" for rank, count in self.rank_counts.items())
            lines.append(f"Selected number of dimensions (resamples): {listed}.")
        if not self.converged.all():
            lines.append(f"{np.count_nonzero(~self.converged)} fits did not converge: raise max_iter of the estimator.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_bootstrap

        return of_bootstrap(self)


def cosines(W: NDArray[np.floating], reference: NDArray[np.floating]) -> NDArray[np.float64]:
    """The cosine between each column of W and that of the reference; 1 where either is zero."""
    products = np.einsum("ik,ik->k", W, reference)
    sizes = np.linalg.norm(W, axis=0) * np.linalg.norm(reference, axis=0)
    return np.divide(products, sizes, out=np.ones(W.shape[1]), where=sizes > 0)
