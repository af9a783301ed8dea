"""StudyPlan: learning curves, and the study sizes that reach a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from simdims._parameters import plural, require_between, require_choice

#: The measures and their names in figures.
METRICS = {
    "alignment": "Alignment with the true dimensions",
    "held_out_r2": "R2 of pairs not judged",
    "reported_r2": "R2 of held-out judgements",
    "triplet_accuracy": "Triplets predicted",
}

#: What can be varied, the column that counts it, and its name.
AXES = {"pairs": ("n_pairs", "pairs"), "answers": ("answers", "answers per pair"), "people": ("people", "people")}


@dataclass(frozen=True, eq=False, repr=False)
class StudyPlan:
    """The result of `plan_study`.

    Attributes
    ----------
    table : DataFrame
        One row per study size: pairs (share of all pairs), n_pairs, answers (per pair), people (missing if each person
        answers once), n_answers (total), and the means over repeats of alignment (mean correlation with the true
        dimensions), held_out_r2 (of the true similarities of pairs that were not judged; if fewer than a tenth are
        left, of a held-out tenth), reported_r2 (the same for the noisy judgements, as the study itself would report)
        and triplet_accuracy (share of random triplets with the same odd one out as by the true similarities), each with
        its standard error (alignment_se, ...).
    metric, target
        As passed to `plan_study`.
    n_items, n_components : int
    snr : float
        Signal-to-noise ratio of one answer: given, or estimated from the pilot.
    spread : float
        Standard deviation of people's weights: given, or estimated from the pilot.
    pilot : dict or None
        The pilot's share of pairs, mean number of answers per pair, and held-out R2.
    n_repeats : int
        Simulated studies per size.
    seed : int
        The `random_state` that reproduces this plan.

    Examples
    --------
    >>> from simdims import plan_study, simulate
    >>> W = simulate.dirichlet(30, 3, alpha=0.3, random_state=0)
    >>> plan = plan_study(W, pairs=[0.2, 0.6, 1.0], answers=[1, 3], n_repeats=2, random_state=0)
    >>> plan.needed("triplet_accuracy", 0.8)["answers"].tolist()
    [1, 3]
    """

    table: pd.DataFrame
    metric: str
    target: float
    n_items: int
    n_components: int
    snr: float
    spread: float
    pilot: dict[str, float] | None
    n_repeats: int
    seed: int

    def half_widths(self, metric: str) -> pd.Series:
        """Half-width of a measure's 95% confidence interval over repeats (Student's t); NaN with a single repeat."""
        return stats.t.ppf(0.975, self.n_repeats - 1) * self.table[f"{metric}_se"]

    def needed(self, metric: str | None = None, target: float | None = None, *, of: str = "pairs") -> pd.DataFrame:
        """The number of pairs, answers per pair or people needed to reach a target.

        Curves are made monotone (isotonic regression) and interpolated linearly between the logarithms of the simulated
        sizes; nothing is extrapolated.

        Parameters
        ----------
        metric : str, optional
            The measure; by default that of the plan.
        target : float, optional
            The value to reach; by default that of the plan.
        of : {"pairs", "answers", "people"}, default="pairs"
            The quantity to find, for each combination of the others.

        Returns
        -------
        DataFrame
            One row per combination of the others, with the number (rounded up), its 95% confidence interval (low, high;
            missing with a single repeat), and the total number of answers (n_answers). A number is missing if even the
            largest size misses the target. If the smallest size already reaches it, the number is the smallest size.
        """
        metric, target = self.metric if metric is None else metric, self.target if target is None else target
        require_choice("metric", metric, tuple(METRICS))
        require_between("target", target, 0, 1, strictly=True)
        require_choice("of", of, tuple(AXES))
        column = AXES[of][0]
        others = [name for axis, (name, _) in AXES.items() if axis != of]
        rows = []
        table = self.table.assign(half=self.half_widths(metric))
        for values, curve in table.groupby(others, dropna=False, sort=True):
            curve = curve.sort_values(column)
            sizes = curve[column].to_numpy(dtype=np.float64)
            means, half = curve[metric].to_numpy(), curve["half"].to_numpy()
            best, low, high = (_reached(sizes, line, target) for line in (means, means + half, means - half))
            row: dict[str, Any] = {**dict(zip(others, values, strict=True)), column: best, "low": low, "high": high}
            row["n_answers"] = row["n_pairs"] * row["answers"]
            rows.append(row)
        return pd.DataFrame(rows)[[*others, column, "low", "high", "n_answers"]]

    def summary(self) -> str:
        """The numbers needed, as text."""
        whose = "a simulated design" if self.pilot is None else "the pilot"
        source = f"{self.n_items} items, {self.n_components} {plural('dimension', self.n_components)} ({whose})"
        spread = f", people differ with a spread of {self.spread:.2f}" if self.spread else ""
        lines = [f"{source}; signal-to-noise ratio of one answer {self.snr:.2f}{spread}."]
        if self.pilot is not None:
            answers = f"{self.pilot['answers']:.3g} {'answer' if self.pilot['answers'] == 1 else 'answers'} per pair"
            r2 = f"a held-out R2 of {self.pilot['held_out_r2']:.2f}"
            lines.append(f"The pilot has {self.pilot['pairs']:.0%} of the pairs, {answers}, and {r2}.")
        lines.append(f"To reach {self.metric} {self.target:g}:")
        n_pairs = self.n_items * (self.n_items - 1) // 2
        least, most = int(self.table["n_pairs"].min()), int(self.table["n_pairs"].max())
        for row in self.needed().to_dict("records"):
            who = "" if np.isnan(row["people"]) else f" of {row['people']:.0f} people"
            asked = f"  {row['answers']:.0f} {plural('answer', int(row['answers']))} per pair{who}: "
            if np.isnan(row["n_pairs"]):
                lines.append(f"{asked}not reached with {most:,} pairs")
                continue
            high = "more than tried" if np.isnan(row["high"]) else f"{row['high']:,.0f}"
            interval = f" (95%: {row['low']:,.0f} to {high})" if self.n_repeats > 1 else ""
            at_most = " or fewer" if row["n_pairs"] == least else ""
            n_asked = f"{row['n_pairs']:,.0f} of {n_pairs:,} pairs{at_most}{interval}"
            lines.append(f"{asked}{n_asked}, {row['n_answers']:,.0f} answers in all")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = f"{len(self.table)} sizes of a study"
        return f"StudyPlan({sizes}, {self.n_items} items, {self.n_components} dimensions, snr={self.snr:.2f})"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_plan

        return of_plan(self)


def learning_curves(rows: list[dict[str, Any]], n_items: int) -> pd.DataFrame:
    """Means and standard errors over repeats, by size."""
    frame = pd.DataFrame(rows).astype({"people": "float64"})
    grouped = frame.groupby(["people", "answers", "pairs"], dropna=False, sort=True)[list(METRICS)]
    means, errors = grouped.mean(), grouped.sem().add_suffix("_se")
    table = pd.concat([means, errors], axis=1).reset_index()
    n_pairs = np.array([round(share * (n_items * (n_items - 1) // 2)) for share in table["pairs"]])
    table = table.assign(n_pairs=n_pairs, n_answers=n_pairs * table["answers"])
    columns = ["pairs", "n_pairs", "answers", "people", "n_answers"]
    return table[[*columns, *(name for metric in METRICS for name in (metric, f"{metric}_se"))]]


def _reached(sizes: NDArray[np.float64], values: NDArray[np.float64], target: float) -> float:
    """The size at which a curve, made monotone, reaches the target; NaN if it does not."""
    if np.isnan(values).any():  # one repeat has no interval
        return np.nan
    curve = IsotonicRegression().fit_transform(np.arange(len(sizes)), values)
    if curve[-1] < target:
        return np.nan
    after = int(np.argmax(curve >= target))
    if after == 0:
        return float(sizes[0])
    share = (target - curve[after - 1]) / (curve[after] - curve[after - 1])
    at = np.exp(np.log(sizes[after - 1]) + share * np.log(sizes[after] / sizes[after - 1]))
    return float(np.ceil(at - 1e-9))
