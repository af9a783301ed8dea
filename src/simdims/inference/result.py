"""HypothesisTests, the result of every test: a table, null distributions and a summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from simdims._parameters import plural
from simdims.inference.permutations import n_defined, pvalues


@dataclass(frozen=True, eq=False, repr=False)
class HypothesisTests:
    """Tests of several hypotheses about one representation.

    Attributes
    ----------
    test : {"dimension", "rsa", "combined", "weights", "population", "regression"}
        The test.
    hypotheses : tuple of str
        Names of the hypotheses.
    statistic : ndarray of shape (n_hypotheses,)
        The correlation with the matched dimension or with the similarities; for the combined test the smaller of the
        weighted p-values of its parts; for weights their correlation with groups or scores; for a regression the unique
        share of the held-out variance.
    pvalue : ndarray of shape (n_hypotheses,)
        (1 + number of permutations at least as extreme) / (1 + `n_permutations`).
    dimension : tuple of str or None
        The dimension matched with each hypothesis over all items; None for RSA.
    null_distribution : ndarray of shape (n_permutations, n_hypotheses)
        Statistics under permutation; NaN if a permuted hypothesis has none (see `rsa_test`).
    n_permutations : ndarray of shape (n_hypotheses,)
        Number of permutations with a statistic.
    alternative : {"greater", "two-sided"}
        The alternative.
    alpha : float
        False discovery rate at which an adjusted p-value is significant.
    method : str
        The test statistic in words, including the matching.
    parts : mapping of str to HypothesisTests
        The two tests of a combined test, "dimension" and "rsa"; empty for other tests.
    decided_by : tuple of str
        Which part of a combined test has the smaller weighted p-value for each hypothesis: "dimension", "rsa" or
        "both"; empty for other tests.
    nuisance : tuple of str
        Names of the nuisance variables that were partialled out.
    coefficients : ndarray of shape (n_hypotheses,) or None
        Weights of the models of a regression; None for other tests.
    explained_variance : float or None
        Held-out R2 of all models of a regression together; None for other tests.
    effect : ndarray of shape (n_hypotheses,) or None
        Size of the relation to the weights, in their units: a difference between mean weights, or a slope; see
        `weight_test`. None for other tests.
    effect_interval : ndarray of shape (2, n_hypotheses) or None
        Its 95% confidence interval.
    contrast : tuple of str
        What the effect compares, such as "patients - controls" or "per unit"; empty for other tests.
    """

    test: str
    hypotheses: tuple[str, ...]
    statistic: NDArray[np.float64]
    pvalue: NDArray[np.float64]
    dimension: tuple[str | None, ...]
    null_distribution: NDArray[np.float64]
    alternative: str
    alpha: float
    method: str
    parts: Mapping[str, HypothesisTests] = field(default_factory=dict)
    decided_by: tuple[str, ...] = ()
    nuisance: tuple[str, ...] = ()
    coefficients: NDArray[np.float64] | None = None
    explained_variance: float | None = None
    effect: NDArray[np.float64] | None = None
    effect_interval: NDArray[np.float64] | None = None
    contrast: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("statistic", "pvalue", "null_distribution", "effect", "effect_interval"):
            if getattr(self, name) is not None:
                getattr(self, name).flags.writeable = False
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    def __reduce__(self) -> tuple[Any, ...]:
        # A MappingProxyType cannot be pickled.
        return partial(type(self), **{**vars(self), "parts": dict(self.parts)}), ()

    @property
    def n_permutations(self) -> NDArray[np.intp]:
        """The number of permutations with a statistic, per hypothesis."""
        return n_defined(self.null_distribution)

    def null_interval(self) -> NDArray[np.float64]:
        """The middle 95% of each null distribution.

        Returns
        -------
        ndarray of shape (2, n_hypotheses)
            The 2.5% and 97.5% quantiles; NaN if a hypothesis has no statistic under any permutation.
        """
        interval = np.full((2, len(self.hypotheses)), np.nan)
        some = self.n_permutations > 0
        if some.any():
            interval[:, some] = np.nanquantile(self.null_distribution[:, some], [0.025, 0.975], axis=0)
        return interval

    @property
    def pvalue_adjusted(self) -> NDArray[np.float64]:
        """The p-values, adjusted by the Benjamini-Hochberg procedure."""
        return false_discovery_control(self.pvalue, method="bh")

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Whether each adjusted p-value is at most alpha."""
        return self.pvalue_adjusted <= self.alpha

    @property
    def table(self) -> pd.DataFrame:
        """One row per hypothesis.

        Columns: hypothesis, statistic, pvalue, pvalue_adjusted, significant, dimension, n_permutations.

        A combined test adds statistic_dimension, pvalue_dimension, statistic_rsa, pvalue_rsa and decided_by; a
        regression adds coefficient; a test of weights adds contrast, effect, effect_low and effect_high.
        """
        columns: dict[str, Any] = {
            "hypothesis": list(self.hypotheses),
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted,
            "significant": self.significant,
            "dimension": list(self.dimension),
            "n_permutations": self.n_permutations,
        }
        for name, part in self.parts.items():
            columns |= {f"statistic_{name}": part.statistic, f"pvalue_{name}": part.pvalue}
        if self.parts:
            columns["decided_by"] = list(self.decided_by)
        if self.coefficients is not None:
            columns["coefficient"] = self.coefficients
        if self.effect is not None and self.effect_interval is not None:
            low, high = self.effect_interval
            columns |= {"contrast": list(self.contrast), "effect": self.effect, "effect_low": low, "effect_high": high}
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the null distributions as plain numbers, lists and strings for JSON.

        Returns
        -------
        dict
            test, method, alternative, alpha, n_permutations (the number drawn), nuisance (if any), and `tests`: the
            rows of `table`.
        """
        return {
            "test": self.test,
            "method": self.method,
            "alternative": self.alternative,
            "alpha": float(self.alpha),
            "n_permutations": len(self.null_distribution),
            **({"nuisance": list(self.nuisance)} if self.nuisance else {}),
            "tests": self.table.to_dict(orient="records"),
        }

    def summary(self, n_shown: int = 20) -> str:
        """The findings as text, with one line for each of the first `n_shown` hypotheses."""
        sides = "one-sided" if self.alternative == "greater" else "two-sided"
        what = "systems" if self.test == "weights" else "items"
        if self.test == "population" and self.method.endswith("generalised to systems"):
            what = "signs of the systems"
        what += " given the nuisance" if self.nuisance else ""
        how = f"{self.method[:1].upper()}{self.method[1:]}; {len(self.null_distribution):,} permutations of the {what}"
        lines = [self._headline(), f"{how}, {sides}; Benjamini-Hochberg at {self.alpha:g}."]
        width = max(map(len, self.hypotheses[:n_shown]))
        adjusted, significant = self.pvalue_adjusted, self.significant
        for place, name in enumerate(self.hypotheses[:n_shown]):
            verdict = self._verdict(place) if significant[place] else "not significant"
            numbers = f"p = {_p(self.pvalue[place])}, adjusted {_p(adjusted[place])}"
            if self.test == "regression":
                numbers = f"unique R2 = {self.statistic[place]:+.3f}, {numbers}"
            elif not self.parts:
                numbers = f"r = {self.statistic[place]:+.2f}, {self._effect(place)}{numbers}"
            lines.append(f"  {name:<{width}}  {numbers}: {verdict}")
        few = int(np.count_nonzero(self.n_permutations < len(self.null_distribution)))
        if few:
            fewer = f"fewer permutations ({self.n_permutations.min():,} or more)"
            those = "those in which the permuted property varies over the observed pairs"
            lines[1] += f" {few} of {len(self.hypotheses)} compared with {fewer}, {those}."
        if len(self.hypotheses) > n_shown:
            lines.append(f"  and {len(self.hypotheses) - n_shown} more in the table")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_tests

        return of_tests(self)

    def _headline(self) -> str:
        n, found = len(self.hypotheses), int(self.significant.sum())
        singular = 1 in (n, found)
        if self.test == "weights":
            subject = f"The weights of {found} of {n} {plural('dimension', n)}"
            return f"{subject} are significantly related to the {self._related_to()}."
        if self.test == "regression":
            subject = f"{found} of {n} {plural('model', n)} {'explains' if singular else 'explain'}"
            explained = f"Held-out R2 of the regression: {self.explained_variance:.3f}."
            return f"{subject} similarities that the others do not. {explained}"
        subject = f"{found} of {n} {'property' if n == 1 else 'properties'}"
        correlates = f"{subject} {'correlates' if singular else 'correlate'} significantly with"
        is_found = f"{subject} {'is' if singular else 'are'} found in the"
        if self.test == "dimension":
            return f"{correlates} {'its' if singular else 'their'} assigned dimension."
        if self.test == "rsa":
            return f"{correlates} the similarities."
        if self.test == "population":
            return f"{is_found} population of {self._population()}."
        deciders = list(np.array(self.decided_by)[self.significant])
        words = {"dimension": "more clearly in a dimension", "rsa": "more clearly in the similarities as a whole"}
        words["both"] = "equally in both"
        counts = [f"{deciders.count(part)} {words[part]}" for part in words if part in deciders]
        return f"{is_found} representation{': ' if counts else ''}{', '.join(counts)}."

    def _population(self) -> str:
        return self.method.rpartition("generalised to ")[2]

    def _effect(self, place: int) -> str:
        """The effect and its interval as text; empty for tests without an effect."""
        if self.effect is None or self.effect_interval is None:
            return ""
        low, high = self.effect_interval[:, place]
        is_bounded = np.isfinite([low, high]).all()
        interval = f"[{low:+.3g}, {high:+.3g}]" if is_bounded else "(too few permutations for an interval)"
        return f"{self.contrast[place]} = {self.effect[place]:+.3g} {interval}, "

    def _related_to(self) -> str:
        return "scores" if self.contrast[:1] in (("per unit",), ("per day",)) else "groups"

    def _verdict(self, place: int) -> str:
        words = {
            "weights": f"weights are related to the {self._related_to()}",
            "dimension": f"correlates with {self.dimension[place]}",
            "rsa": "correlates with the similarities",
            "population": f"holds for the population of {self._population()}",
            "regression": "explains what the others do not",
            "both": f"correlates with {self.dimension[place]} and with the similarities",
        }
        return words[self.decided_by[place] if self.decided_by else self.test]


def permutation_tests(
    test: str,
    hypotheses: tuple[str, ...],
    observed: NDArray[np.float64],
    null: NDArray[np.float64],
    alternative: str,
    alpha: float,
    method: str,
    dimension: tuple[str | None, ...] | None = None,
    p: NDArray[np.float64] | None = None,
    **others: Any,
) -> HypothesisTests:
    """The result of a test; p-values follow from the observed statistics and those under permutation by default."""
    p = pvalues(observed, null, alternative) if p is None else p
    dimension = (None,) * len(hypotheses) if dimension is None else dimension
    return HypothesisTests(test, hypotheses, observed, p, dimension, null, alternative, alpha, method, **others)


def _p(value: float) -> str:
    return f"{value:.2g}" if value < 0.001 else f"{value:.3f}"
