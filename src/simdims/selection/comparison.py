"""SystemsComparison: how much system weights improve the prediction of held-out pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

#: The models that are compared, and their names in sentences.
MODELS = {
    "average": "the average for everyone",
    "scale": "the average adjusted to how each system uses the scale",
    "weights": "shared dimensions with weights",
    "alone": "each system alone",
}

#: Level of the one-sided test that one model is better than another.
_LEVEL = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class SystemsComparison:
    """How well four models predict held-out pairs of several systems, at the same number of dimensions.

    average: the same dimensions and weights for all systems, the fit to their average. scale: its predictions x,
    adjusted to how each system uses the scale by a line a + b x, which is fitted to its pairs in the other folds.
    weights: the same dimensions, with weights for each system. alone: each system fitted separately. All models are
    trained and tested on the same pairs.

    Attributes
    ----------
    comparison : DataFrame
        One row per model: r2, the held-out R2 over all systems, relative to the mean of each system; gain, the increase
        of R2 with weights, which for "scale" get the same adjustment; and its standard_error over systems.
    r2 : DataFrame
        Held-out R2 of each system (rows) for each model (columns), relative to the mean of that system. NaN if the
        similarities of a system do not vary.
    n_components : int
        The number of dimensions.
    shrinkage : float
        Strength of the penalty that pulls weights towards 1 in the compared fits; infinity is "average" itself.
    worthwhile : bool
        Whether weights predict better than "average" and "scale", each by a one-sided t test of the gain over systems
        at 5%. If they are only better than "average", systems may merely use the scale differently.
    n_systems : int
    """

    comparison: pd.DataFrame
    r2: pd.DataFrame
    n_components: int
    shrinkage: float

    @property
    def n_systems(self) -> int:
        """The number of systems."""
        return len(self.r2)

    @property
    def worthwhile(self) -> bool:
        """Whether weights predict held-out pairs better than the average, also if adjusted to the use of the scale."""
        return self._verdict() is True

    def _verdict(self) -> bool | None:
        """Whether weights are better than both models without them (True), or worse than one of them (False)."""
        both = {self.better_than(model) for model in ("average", "scale")}
        return False if False in both else None if None in both else True

    def better_than(self, model: str) -> bool | None:
        """Whether weights are better (True) or worse (False) than another model; None if undecided.

        Parameters
        ----------
        model : {"average", "scale", "alone"}

        Returns
        -------
        bool or None
        """
        from scipy import stats

        gain, error = (float(self.comparison[name][model]) for name in ("gain", "standard_error"))
        if self.n_systems < 2 or not np.isfinite(error):
            return None
        half = float(stats.t.ppf(1 - _LEVEL, self.n_systems - 1)) * error
        return True if gain > half else False if gain < -half else None

    def verdict(self) -> str:
        """Return whether weights improve predictions, as one sentence."""
        if self.n_systems == 1:
            return "There is one system, and all its weights are 1."
        if np.isinf(self.shrinkage):
            return "Weights do not improve the prediction of held-out similarities, so all of them are 1."
        improve = {True: "improve", None: "do not clearly improve", False: "do not improve"}[self._verdict()]
        return f"Weights of systems {improve} predictions."

    def limits(self) -> str:
        """Return, as one sentence, that single systems are predicted better than with weights; empty otherwise."""
        is_worse = self.n_systems > 1 and self.better_than("alone") is False
        return "Systems differ in more than the weights of common dimensions." if is_worse else ""

    def summary(self) -> str:
        """Return the result in words, with one line per model."""
        rows = self.rows()
        wide = max((len(model) for model, _, _ in rows), default=0)
        lines = [f"  {model:<{wide}}  {r2:>6}  {against}".rstrip() for model, r2, against in rows]
        return "\n".join([self.headline(), *lines])

    def headline(self) -> str:
        """Return whether weights improve predictions, and what else the comparison shows."""
        verdict = self.verdict()
        if self.n_systems == 1:
            return verdict
        more = f" {self.limits()}" if self.limits() else ""
        errors = f"standard errors (±) over {self.n_systems} systems"
        if not np.isinf(self.shrinkage):
            return f"{verdict}{more} Held-out R2, with {errors}:"
        average = f"held-out R2 {self.comparison['r2']['average']:.3f} with {MODELS['average']}"
        return f"{verdict[:-1]} ({average}). That is {self._against('alone')}, with {errors}.{more}"

    def rows(self) -> list[tuple[str, str, str]]:
        """Return each model, its held-out R2, and how weights compare with it; empty if weights are not used."""
        if self.n_systems == 1 or np.isinf(self.shrinkage):
            return []
        r2 = {model: f"{value:.3f}" for model, value in self.comparison["r2"].items()}
        others = [(MODELS[model], r2[model], self._difference(model)) for model in ("average", "scale", "alone")]
        return [(MODELS["weights"], r2["weights"], ""), *others]

    def _difference(self, model: str) -> str:
        better = {True: "weights are better by", None: "not clearly different:", False: "weights are worse by"}
        verdict = self.better_than(model)
        gain, error = (float(self.comparison[name][model]) for name in ("gain", "standard_error"))
        gain = gain if verdict is None else abs(gain)
        adjusted = ", adjusted in the same way" if model == "scale" else ""
        return f"{better[verdict]} {gain:.3f} ± {error:.3f}{adjusted}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers, lists and strings; non-finite numbers become strings."""
        return {
            "n_components": self.n_components,
            "shrinkage": self.shrinkage if np.isfinite(self.shrinkage) else "inf",
            "models": list(self.comparison.index),
            "comparison": {str(name): _plain(column) for name, column in self.comparison.items()},
            "r2": {str(name): _plain(column) for name, column in self.r2.items()},
            "systems": list(self.r2.index),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> SystemsComparison:
        """Restore a result from `to_dict`."""
        import pandas as pd

        comparison, r2 = (
            pd.DataFrame({name: [float(value) for value in column] for name, column in values[table].items()})
            for table in ("comparison", "r2")
        )
        return cls(
            comparison=comparison.set_axis(pd.Index(values["models"], name="model", dtype=object), axis=0),
            r2=r2.set_axis(pd.Index(values["systems"], name="system", dtype=object), axis=0),
            n_components=int(values["n_components"]),
            shrinkage=float(values["shrinkage"]),
        )

    def _against(self, model: str) -> str:
        row = self.comparison.loc[model]
        better = {True: "better than", None: "not clearly different from", False: "worse than"}[self.better_than(model)]
        difference = f"{row['gain']:.3f} ± {row['standard_error']:.3f}"
        return f"{better} {MODELS[model]} ({row['r2']:.3f}; difference {difference})"

    def __repr__(self) -> str:
        r2 = ", ".join(f"{model} {value:.3f}" for model, value in self.comparison["r2"].items())
        return f"SystemsComparison({self.n_systems} systems, {self.n_components} dimensions, held-out R2: {r2})"

    def __str__(self) -> str:
        return self.summary()


def compare(
    errors: dict[str, NDArray[np.float64]],
    baseline: NDArray[np.float64],
    names: tuple[str, ...],
    n_components: int,
    shrinkage: float,
) -> SystemsComparison:
    """The comparison, from the squared errors of each system: with each model, and of its own mean.

    `errors` also has those of predictions with weights on the lines of "scale" ("weights on line"). With d_m the
    difference of two models' errors in system m and b_m the baseline, the gain is sum d / sum b. As for any ratio, its
    standard error over systems is that of the mean of (d_m - gain b_m) / mean(b).
    """
    import pandas as pd

    rows = []
    for model in MODELS:
        difference = errors[model] - errors["weights on line" if model == "scale" else "weights"]
        gain = difference.sum() / baseline.sum()
        parts = (difference - gain * baseline) / baseline.mean()
        error = parts.std(ddof=1) / np.sqrt(len(parts)) if len(parts) > 1 else np.nan
        rows.append({"r2": 1.0 - errors[model].sum() / baseline.sum(), "gain": gain, "standard_error": error})
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = {model: np.where(baseline > 0, 1.0 - errors[model] / baseline, np.nan) for model in MODELS}
    return SystemsComparison(
        comparison=pd.DataFrame(rows, index=pd.Index(MODELS, name="model")),
        r2=pd.DataFrame(r2, index=pd.Index(names, name="system", dtype=object)),
        n_components=n_components,
        shrinkage=float(shrinkage),
    )


def _plain(column: Any) -> list[float | str]:
    return [float(value) if np.isfinite(value) else str(float(value)) for value in column]
