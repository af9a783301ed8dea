"""HypothesisTests, what every test returns: a table, null distributions and a summary in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from simdims.inference.permutations import n_defined

if TYPE_CHECKING:
    import pandas as pd

# Lines of a summary that name a hypothesis.
N_SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class HypothesisTests:
    """Tests of several hypotheses about one representation.

    Attributes
    ----------
    test : {"dimension", "rsa", "combined"}
        The test that was made.
    hypotheses : tuple of str
        Their names.
    statistic : ndarray of shape (n_hypotheses,)
        The correlation with the aligned dimension, or with the similarities; for the combined test the smaller of both
        parts' weighted p-values.
    pvalue : ndarray of shape (n_hypotheses,)
        (1 + number of permutations that are at least as extreme) / (1 + `n_permutations`).
    dimension : tuple of str or None
        The dimension that is matched with each hypothesis over all items; None for RSA, which has none.
    null_distribution : ndarray of shape (n_permutations, n_hypotheses)
        The statistics under the permutations; NaN where a permuted hypothesis has none (see `rsa_test`).
    n_permutations : ndarray of shape (n_hypotheses,)
        How many permutations have a statistic, with which the observed one is compared.
    alternative : {"greater", "two-sided"}
        The alternative.
    alpha : float
        The false discovery rate at which an adjusted p-value is significant.
    method : str
        The test statistic in words, with the matching that was used.
    parts : mapping of str to HypothesisTests
        The two tests that a combined test is made of, "dimension" and "rsa"; empty for the others.
    decided_by : tuple of str
        Which part of a combined test has the smaller weighted p-value for each hypothesis: "dimension", "rsa" or
        "both"; empty for the others.
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

    def __post_init__(self) -> None:
        for name in ("statistic", "pvalue", "null_distribution"):
            getattr(self, name).flags.writeable = False
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    def __getstate__(self) -> dict[str, Any]:
        # A MappingProxyType cannot be pickled.
        return {**self.__dict__, "parts": dict(self.parts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "parts": MappingProxyType(state["parts"])}.items():
            object.__setattr__(self, name, value)

    @property
    def n_permutations(self) -> NDArray[np.intp]:
        """How many permutations each hypothesis is compared with: those in which it has a statistic."""
        return n_defined(self.null_distribution)

    def null_interval(self) -> NDArray[np.float64]:
        """The middle 95% of each null distribution, to draw a statistic beside.

        Returns
        -------
        ndarray of shape (2, n_hypotheses)
            The 2.5% and 97.5% quantiles; NaN for a hypothesis that has no statistic under any permutation.
        """
        interval = np.full((2, len(self.hypotheses)), np.nan)
        some = self.n_permutations > 0
        if some.any():
            interval[:, some] = np.nanquantile(self.null_distribution[:, some], [0.025, 0.975], axis=0)
        return interval

    @property
    def pvalue_adjusted(self) -> NDArray[np.float64]:
        """The p-values, adjusted for the number of hypotheses after Benjamini and Hochberg."""
        return false_discovery_control(self.pvalue, method="bh")

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Whether each adjusted p-value is at most alpha."""
        return self.pvalue_adjusted <= self.alpha

    @property
    def table(self) -> pd.DataFrame:
        """One row per hypothesis.

        Columns: hypothesis, statistic, pvalue, pvalue_adjusted, significant, dimension, n_permutations.

        A combined test adds statistic_dimension, pvalue_dimension, statistic_rsa, pvalue_rsa and decided_by.
        """
        import pandas as pd

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
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the null distributions as plain numbers, lists and texts, as JSON takes them.

        Returns
        -------
        dict
            test, method, alternative, alpha, n_permutations (as many as were drawn), and `tests`: the rows of `table`.
        """
        return {
            "test": self.test,
            "method": self.method,
            "alternative": self.alternative,
            "alpha": float(self.alpha),
            "n_permutations": len(self.null_distribution),
            "tests": self.table.to_dict(orient="records"),
        }

    def summary(self) -> str:
        """What was found, in plain words, and a line for each hypothesis."""
        sides = "one-sided" if self.alternative == "greater" else "two-sided"
        lines = [
            self._headline(),
            f"{self.method[:1].upper()}{self.method[1:]}; {len(self.null_distribution)} permutations of the items, "
            f"{sides}; "
            f"Benjamini-Hochberg at {self.alpha:g}.",
        ]
        width = max(map(len, self.hypotheses[:N_SHOWN]))
        adjusted, significant = self.pvalue_adjusted, self.significant
        for place, name in enumerate(self.hypotheses[:N_SHOWN]):
            verdict = self._verdict(place) if significant[place] else "not significant"
            numbers = f"p = {_p(self.pvalue[place])}, adjusted {_p(adjusted[place])}"
            if not self.parts:
                numbers = f"r = {self.statistic[place]:+.2f}, {numbers}"
            lines.append(f"  {name:<{width}}  {numbers}: {verdict}")
        few = int(np.count_nonzero(self.n_permutations < len(self.null_distribution)))
        if few:
            lines[1] += (
                f" {few} of {len(self.hypotheses)} compared with fewer permutations ({self.n_permutations.min():,} or "
                "more), those in which the permuted property varies over the observed pairs."
            )
        if len(self.hypotheses) > N_SHOWN:
            lines.append(f"  and {len(self.hypotheses) - N_SHOWN} more: see .table")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_tests

        return of_tests(self)

    def _headline(self) -> str:
        n, found = len(self.hypotheses), int(self.significant.sum())
        subject = f"{found} of {n} {'property' if n == 1 else 'properties'}"
        verb, their = ("correlates", "its") if found == 1 else ("correlate", "their")
        if self.test == "dimension":
            return f"{subject} {verb} significantly with {their} assigned dimension."
        if self.test == "rsa":
            return f"{subject} {verb} significantly with the similarities."
        voices = [voice for voice, found in zip(self.decided_by, self.significant, strict=True) if found]
        counts = [
            f"{voices.count(voice)} {words}"
            for voice, words in (
                ("dimension", "more clearly in a dimension"),
                ("rsa", "more clearly in the similarities as a whole"),
                ("both", "equally in both"),
            )
            if voice in voices
        ]
        verb = "is" if found == 1 else "are"
        return f"{subject} {verb} found in the representation{': ' if counts else ''}{', '.join(counts)}."

    def _verdict(self, place: int) -> str:
        words = {
            "dimension": f"correlates with {self.dimension[place]}",
            "rsa": "correlates with the similarities",
            "both": f"correlates with {self.dimension[place]} and with the similarities",
        }
        return words[self.decided_by[place] if self.parts else self.test]


def _p(value: float) -> str:
    return f"{value:.2g}" if value < 0.001 else f"{value:.3f}"
