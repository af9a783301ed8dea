"""HypothesisTests, what every test returns: a table, null distributions and a summary in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

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
        (1 + number of permutations that are at least as extreme) / (1 + number of permutations).
    dimension : tuple of str or None
        The dimension that is matched with each hypothesis over all items; None for RSA, which has none.
    null_distribution : ndarray of shape (n_permutations, n_hypotheses)
        The statistics under the permutations.
    alternative : {"greater", "two-sided"}
        The alternative.
    alpha : float
        The false discovery rate at which an adjusted p-value is significant.
    method : str
        What was correlated, in words.
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
    def pvalue_adjusted(self) -> NDArray[np.float64]:
        """The p-values, adjusted for the number of hypotheses after Benjamini and Hochberg."""
        return false_discovery_control(self.pvalue, method="bh")

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Whether each adjusted p-value is at most alpha."""
        return self.pvalue_adjusted <= self.alpha

    @property
    def table(self) -> pd.DataFrame:
        """One row a hypothesis: hypothesis, statistic, pvalue, pvalue_adjusted, significant, dimension.

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
            test, method, alternative, alpha, n_permutations, and `tests`: the rows of `table`.
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
            f"{self.method}; {len(self.null_distribution)} permutations of the items, {sides}; "
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
        subject = f"{found} of {n} {'property' if n == 1 else 'properties'} {'is' if found == 1 else 'are'}"
        if self.test == "dimension":
            own = " of its own" if found == 1 else " of their own"
            return f"{subject} carried by a dimension{own if 'joint' in self.method else ''}."
        if self.test == "rsa":
            return f"{subject} reflected in the similarities."
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
        return f"{subject} found in the representation{': ' if counts else ''}{', '.join(counts)}."

    def _verdict(self, place: int) -> str:
        if self.test == "dimension":
            return f"carried by {self.dimension[place]}"
        if self.test == "rsa":
            return "reflected in the similarities"
        words = {
            "dimension": f"carried by {self.dimension[place]}",
            "rsa": "reflected in the similarities",
            "both": f"carried by {self.dimension[place]} and reflected in the similarities",
        }
        return words[self.decided_by[place]]


def _p(value: float) -> str:
    return f"{value:.2g}" if value < 0.001 else f"{value:.3f}"
