"""RankSelection: all fits of a selection, and the results derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simdims._parameters import plural
from simdims.selection.calibration import Calibration
from simdims.similarity import Similarity
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    import pandas as pd

    from simdims.selection.resampling import Resampled

#: "penalised": every dimension must explain at least this share of the explained variance of held-out pairs.
LEAST_SHARE = 3e-3
#: ... and one dimension is enough unless more of them lower its error by more than this many standard errors. The limit
#: depends on whether the residuals of one dimension have structure that noise does not have; None means unknown.
ONE_IS_ENOUGH = {True: 1.0, False: 4.0, None: 2.5}

#: "averaged": a rank is clearly worse than the best if its error is larger by more than this many standard errors ...
CLEARLY = 2.0
#: ... or by more than this share: a dimension of only a few items may double the error and be within its noise.
MOST_WORSE = 0.1
#: Differences of less than this share of the variance of the similarities are ignored: both ranks predict them all.
NEGLIGIBLE = 1e-3

#: Number of standard errors by which the held-out R2 must exceed 0 as evidence of structure.
_EVIDENCE = 2.0

#: Reason for a missing held-out R2.
DOES_NOT_VARY = "the similarities do not vary"
NOT_RECORDED = "the version of simdims that wrote this did not record it"


@dataclass(frozen=True, eq=False, repr=False)
class RankSelection:
    """The result of `select_rank`.

    Attributes
    ----------
    rank : int
        The chosen number of dimensions; see `select_rank` for the rule of each protocol.
    minimum : int
        The number of dimensions with the smallest error.
    one_standard_error_rank : int
        The smallest rank of the valley.
    valley : tuple of int
        All tried ranks whose error is within one standard error of the smallest. Standard errors are those of the
        paired differences from the best rank, and account for the dependence of pairs that share an item.
    scores : DataFrame
        One row per fit: rank, repeat, fold, error (mean squared error on the fold, used to compare ranks), error_alone
        (of this fit's unscaled predictions), iterations, converged, seconds.
    curve : DataFrame
        One row per rank: rank, error, explained_variance (held-out R2), standard_deviation and standard_error
        over fits, difference from the smallest error and its standard_error_of_difference, in_valley.
    resampled : Resampled or None
        The ranks chosen with the items resampled, and how often: ``ranks``, ``frequencies`` and ``interval()``. No fit
        is repeated. None if the result comes from an earlier version that did not record it.
    alpha : float
        The penalty for fits with the chosen number of dimensions; 0 means no penalty.
    comparison_alpha : float
        The penalty used to compare ranks.
    sampling : float
        The given share of the observed pairs; by default the largest that the folds allow, or p*.
    training_share : float
        The share that each fit was trained on: `sampling`, or less if the pool reaches its cap.
    calibration : Calibration or None
        How p* was found. None if `sampling` was given, or with protocol "penalised".
    tried : tuple of int
        The ranks in the order tried.
    largest : int
        The largest rank that the pairs of one fit determine: no more loadings than training similarities.
    n_items, n_folds, n_repeats : int
    protocol : str
        "penalised", "averaged" or "paper": how `error` is computed and `rank` chosen.
    held_out_r2, held_out_r2_standard_error : float or None
        How well the chosen number of dimensions predicts held-out similarities: 1 - E / B, with E the mean squared
        error of the predictions and B that of predicting every held-out pair by the mean of all observed pairs,
        weighted as in the fit. It is 1 for perfect predictions, 0 if they are no better than the mean, and negative if
        they are worse. For a SimilaritySet the mean is that of each system. The standard error is that of a ratio of
        means, and accounts for the dependence of pairs that share an item. None if the similarities do not vary, or an
        earlier version did not record it.
    evidence_of_structure : bool or None
        Whether `held_out_r2` is larger than two of its standard errors; None if it is None.
    shrinkage, comparison_shrinkage : float or None
        For a SimilaritySet: strength of the penalty that pulls weights towards 1 with the chosen number of dimensions,
        in fits to all pairs and in those that compare ranks; infinity means that all weights are 1. None for one
        system.
    systems : DataFrame or None
        For a SimilaritySet, one row per system at the chosen rank: its contribution to the held-out error (of
        predictions, and of predictions on a line that adjusts them to how the system uses the scale) and to the error
        of the mean, and its held-out r2, relative to its own mean. None for one system.
    seed : int or None
        The `random_state` that reproduces this result from the same data and settings. None if the run was started in a
        checkpoint of an earlier version without a `random_state`.
    similarity : Similarity, SimilaritySet or None
        The similarities, for `lineage`. They are neither saved nor pickled; None in a loaded selection.
    """

    rank: int
    minimum: int
    one_standard_error_rank: int
    valley: tuple[int, ...]
    sampling: float
    training_share: float
    tried: tuple[int, ...]
    largest: int
    n_items: int
    n_folds: int
    n_repeats: int
    protocol: str
    scores: pd.DataFrame
    curve: pd.DataFrame
    calibration: Calibration | None
    held_out_r2: float | None = None
    held_out_r2_standard_error: float | None = None
    seed: int | None = None
    alpha: float = 0.0
    comparison_alpha: float = 0.0
    resampled: Resampled | None = None
    shrinkage: float | None = None
    comparison_shrinkage: float | None = None
    systems: pd.DataFrame | None = None
    similarity: Similarity | SimilaritySet | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "similarity": None}

    @property
    def held_out(self) -> HeldOut | None:
        """R2 of held-out similarities at the chosen rank, if known."""
        return HeldOut.of(self.held_out_r2, self.held_out_r2_standard_error)

    @property
    def evidence_of_structure(self) -> bool | None:
        """Whether held-out similarities are predicted better than by their mean, by more than two standard errors."""
        return None if self.held_out is None else self.held_out.is_evidence

    @property
    def at_edge(self) -> bool:
        """Whether the largest rank tried is the best, so that larger ones may be better."""
        return self._best == max(self.tried) < self.n_items - 1 and len(self.tried) > 1

    @property
    def _best(self) -> int:
        """The rank from which the search extends; not the smallest penalised error, which may decrease forever."""
        return self.rank if self.protocol == "penalised" else self.minimum

    def resamples(self) -> str:
        """The ranks chosen with resampled items, in parentheses to follow the number; empty if there was no choice."""
        return "" if self.resampled is None or len(self.tried) == 1 else f" ({self.resampled.words()})"

    def choice(self) -> str:
        """The reason for this number of dimensions, as words that follow it: "the only number tried"."""
        if len(self.tried) == 1:
            most = self.largest == self.rank < self.n_items - 1
            return f"the only number tried{', and the most that the pairs of one fit can determine' if most else ''}"
        n_tried = f"of the {len(self.tried)} numbers tried"
        others = [rank for rank in self.valley if rank != self.minimum]
        if self.rank == self.minimum:
            words, it = f"the lowest held-out error {n_tried}", "it"
        elif self.protocol == "penalised" and self.rank > 1:
            words, it = f"further dimensions add less than {LEAST_SHARE:.1%} each to what is explained", "the lowest"
            words += f", although {self.minimum} have the lowest held-out error {n_tried}"
        else:
            words, it = f"the smallest number not clearly worse than {self.minimum}", "the lowest"
            words += f", which has the lowest held-out error {n_tried}"
        if not others:
            return f"{words}; no other is within one standard error of {it}"
        return f"{words}; {_listed(others)} {'is' if len(others) == 1 else 'are'} within one standard error of {it}"

    def edge(self) -> str:
        """A sentence on what it means if the largest number tried is the best; else empty."""
        if not self.at_edge:
            return ""
        if self._best < self.largest:
            return f"Numbers above {self._best} were not tried and may predict better."
        if self._best == self.largest:
            return (
                f"{self._best} is the highest number that the pairs of one fit can determine; more dimensions need "
                "more observed pairs."
            )
        return f"The pairs of one fit determine at most {self.largest} dimensions: errors of higher numbers say little."

    def summary(self) -> str:
        """Return the result in words."""
        n_fits, dimensions = self.n_folds * self.n_repeats, plural("dimension", self.rank)
        lines = [] if self.held_out is None or self.held_out.is_evidence else [self.held_out.verdict()]
        lines += [
            f"{self.rank} {dimensions} selected{self.resamples()}: {self.choice()}.",
            f"{held_out_words(self.held_out, self._reason())}.",
            f"Tried: {_listed(self.tried)}.",
            f"{n_fits} {plural('fit', n_fits)} each ({self.n_repeats} x {self.n_folds} folds), trained on "
            f"{self.training_share:.0%} of the observed pairs of {self.n_items} items{self._of_systems()}.",
        ]
        if self.comparison_alpha > 0:
            lines.append(
                f"Penalty on the loadings: alpha = {self.alpha:.3g} for {self.rank} {dimensions} "
                f"({self.comparison_alpha:.3g} while numbers of dimensions were compared)."
            )
        if self.shrinkage is not None:
            lines.append(
                "The weights of all systems are 1: weights do not help to predict held-out pairs."
                if np.isinf(self.shrinkage)
                else f"Weights of systems are shrunk towards 1 with shrinkage {self.shrinkage:.3g} "
                f"({self.comparison_shrinkage:.3g} while numbers of dimensions were compared)."
            )
        if self.calibration is not None:
            lines.append(f"Calibration: {self.calibration.summary()}")
        if self.at_edge:
            lines.append(self.edge())
        unsettled = 1 - self.scores["converged"].mean()
        if unsettled > 0.5:
            lines.append(f"{unsettled:.0%} of the fits did not converge: raise max_iter of the estimator.")
        return "\n".join(lines)

    def _of_systems(self) -> str:
        return "" if self.systems is None else f" in each of {len(self.systems)} systems"

    def _reason(self) -> str:
        """The reason for a missing held-out R2."""
        explained = self.curve.loc[self.curve["rank"] == self.rank, "explained_variance"]
        return DOES_NOT_VARY if explained.isna().any() else NOT_RECORDED

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers, lists and strings, for JSON."""
        others = {"resampled", "calibration", "curve", "scores", "similarity"}
        others |= {"shrinkage", "comparison_shrinkage", "systems"}
        return {
            **{name: value for name, value in vars(self).items() if name not in others},
            "valley": list(self.valley),
            "tried": list(self.tried),
            "resampled": None if self.resampled is None else self.resampled._asdict(),
            **self._systems_dict(),
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "curve": self.curve.to_dict(orient="records"),
            "scores": self.scores.to_dict(orient="records"),
        }

    def _systems_dict(self) -> dict[str, Any]:
        """The fields of a selection of several systems only."""
        if self.systems is None or self.shrinkage is None or self.comparison_shrinkage is None:
            return {}
        drawn = {"shrinkage": self.shrinkage, "comparison_shrinkage": self.comparison_shrinkage}
        plain = {name: value if np.isfinite(value) else "inf" for name, value in drawn.items()}
        return {**plain, "systems": self.systems.reset_index().to_dict(orient="records")}

    def __repr__(self) -> str:
        verdict = "no evidence of structure; " if self.evidence_of_structure is False else ""
        held_out = "" if self.held_out_r2 is None else f", held_out_r2={self.held_out_r2:.3f}"
        return (
            f"RankSelection({verdict}rank={self.rank}, valley={_listed(self.valley)}{held_out}, "
            f"sampling={self.sampling:.3f}, {len(self.tried)} ranks x {self.n_folds * self.n_repeats} fits)"
        )

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_selection

        return of_selection(self)

    def __str__(self) -> str:
        return self.summary()


def conclude(
    scores: Mapping[int, Score], of_mean: Score, rule: Rule, names: tuple[str, ...] = (), **known: Any
) -> RankSelection:
    """The result, derived from the errors of all fits; `known` are its other fields."""
    import pandas as pd

    protocol = rule.protocol
    fits = [fit for rank in sorted(scores) for fit in scores[rank].fits]
    if protocol == "paper":
        fits = [{**fit, "error": fit["error_alone"]} for fit in fits]
    minimum, chosen = choose(scores, rule)
    curve = _curve(scores, protocol, minimum, of_mean)
    held = held_out(scores[chosen], of_mean, protocol)
    valley = tuple(int(rank) for rank in curve.loc[curve["in_valley"], "rank"])
    return RankSelection(
        rank=chosen,
        minimum=minimum,
        scores=pd.DataFrame(fits),
        one_standard_error_rank=min(valley),
        valley=valley,
        curve=curve,
        protocol=protocol,
        held_out_r2=None if held is None else held.r2,
        held_out_r2_standard_error=None if held is None else held.standard_error,
        systems=_systems_frame(scores[chosen], of_mean, names),
        **known,
    )


class Rule(NamedTuple):
    """How a rank is chosen.

    `variance` is that of the similarities, and `structure_beyond_one` tells whether the residuals of one dimension have
    structure that noise does not have, if known.
    """

    protocol: str
    variance: float
    structure_beyond_one: bool | None = None

    def choose(self, ranks: np.ndarray, errors: np.ndarray, standard_errors: np.ndarray) -> np.ndarray:
        """The position of the chosen rank among ascending ranks, which are the last axis of `errors`.

        `standard_errors` are those of the differences from the smallest error.
        """
        smallest = errors.min(axis=-1, keepdims=True)
        if self.protocol == "paper":
            return errors.argmin(axis=-1)
        if self.protocol == "averaged":
            clearly = np.minimum(CLEARLY * standard_errors, MOST_WORSE * smallest)
            return np.argmax(errors - smallest <= np.maximum(clearly, NEGLIGIBLE * self.variance), axis=-1)
        explained = np.maximum(self.variance - smallest, 0.0)
        chosen = np.argmin(errors + LEAST_SHARE * explained * ranks, axis=-1)
        enough = ONE_IS_ENOUGH[self.structure_beyond_one] * standard_errors
        one = (ranks == 1) & (errors - smallest <= enough)
        return np.where(one.any(axis=-1), 0, chosen)


class Score(NamedTuple):
    """The errors of one rank: one row per fit with `error` and `error_alone`, and what standard errors need.

    `items` and `sample` have three rows: the contributions of the pairs of each item, or of each pair of a random
    sample, to the mean `error`, to the mean `error_alone`, and to the weight. The sample stands for `pairs_per_sampled`
    times as many pairs. `systems` has two rows: the contributions of each of several systems to the mean
    `error`, and to that of predictions adjusted to how the system uses the scale.
    """

    fits: list[dict[str, Any]]
    items: np.ndarray
    sample: np.ndarray
    pairs_per_sampled: float
    systems: np.ndarray | None = None

    def errors(self, protocol: str) -> np.ndarray:
        """One error per fit, as the protocol evaluates it."""
        return np.array([fit["error_alone" if protocol == "paper" else "error"] for fit in self.fits])

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        plain = {**self._asdict(), "items": self.items.tolist(), "sample": self.sample.tolist()}
        systems = plain.pop("systems")
        return plain if systems is None else {**plain, "systems": systems.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Score:
        """Restore a score from `to_dict`."""
        systems = np.array(values["systems"]) if "systems" in values else None
        items, sample = (np.array(values[name]) for name in ("items", "sample"))
        return cls(values["fits"], items, sample, float(values["pairs_per_sampled"]), systems)


def error_row(protocol: str) -> int:
    """The row of `items` and `sample` with the contributions to the errors that a protocol uses."""
    return 1 if protocol == "paper" else 0


def contributions(one: Score, other: Score, protocol: str) -> tuple[float, np.ndarray, np.ndarray]:
    """The difference of two errors, and what each item and each sampled pair adds to it, minus the mean."""
    gap = float(one.errors(protocol).mean() - other.errors(protocol).mean())
    row = error_row(protocol)
    of_items, of_pairs = (
        mine[row] - others[row] - gap * mine[2]
        for mine, others in ((one.items, other.items), (one.sample, other.sample))
    )
    return gap, of_items, of_pairs


def difference(one: Score, other: Score, protocol: str) -> tuple[float, float]:
    """The difference of two errors, and its standard error.

    All ranks are tested on the same pairs, so the difference is a mean over pairs e of their own differences. With u_e
    the contribution of a pair to it minus the mean, and pairs dependent if they share an item, its variance is
    sum_i (sum_{e at i} u_e)^2 - sum_e u_e^2: all products of pairs that share an item, and each pair with itself once.
    It is at least sum_e u_e^2, that of independent pairs.
    """
    gap, of_items, of_pairs = contributions(one, other, protocol)
    return gap, _standard_error(of_items, of_pairs, one.pairs_per_sampled)


def _standard_error(of_items: np.ndarray, of_pairs: np.ndarray, pairs_per_sampled: float) -> float:
    """Standard error of a sum over pairs, from contributions of items and of a sample of pairs; see `difference`."""
    independent = pairs_per_sampled * float(np.sum(of_pairs**2))
    return float(np.sqrt(max(np.sum(of_items**2) - independent, independent)))


class HeldOut(NamedTuple):
    """The prediction of held-out similarities relative to their mean: R2 and its standard error."""

    r2: float
    standard_error: float

    @property
    def is_evidence(self) -> bool:
        """Whether the prediction is better than the mean by more than two standard errors."""
        return self.r2 > _EVIDENCE * self.standard_error

    @classmethod
    def of(cls, r2: float | None, standard_error: float | None) -> HeldOut | None:
        """Both, if both are known."""
        return None if r2 is None or standard_error is None else cls(r2, standard_error)

    def verdict(self) -> str:
        """The interpretation if this is no evidence."""
        return (
            "No evidence of structure: held-out similarities are not predicted better than by their mean "
            f"({self.figures()}: at most two standard errors above zero)."
        )

    def figures(self) -> str:
        """The two numbers, named."""
        return f"held-out R2 {self.r2:.3f}, standard error {self.standard_error:.3f}"


def held_out_words(held: HeldOut | None, reason: str) -> str:
    """The held-out R2, or the reason why it is missing, as a sentence without its full stop."""
    if held is None:
        return f"Held-out R2 is not known: {reason}"
    return f"Held-out R2 {held.r2:.3f} (standard error {held.standard_error:.3f}), compared with predicting the mean"


def held_out(score: Score, of_mean: Score, protocol: str) -> HeldOut | None:
    """R2 = 1 - E / B with E the error of the predictions and B that of the mean; None if nothing varies.

    Both are over the same held-out pairs. With e and b the contributions of a pair to E and B, its contribution to R2
    minus the mean is u = ((1 - R2) b - e) / B, and the standard error is computed as in `difference`.
    """
    error, baseline = (float(one.errors(protocol).mean()) for one in (score, of_mean))
    if baseline <= 0:
        return None
    row, ratio = error_row(protocol), error / baseline
    of_items, of_pairs = (
        (ratio * means[row] - mine[row]) / baseline
        for mine, means in ((score.items, of_mean.items), (score.sample, of_mean.sample))
    )
    return HeldOut(1 - ratio, _standard_error(of_items, of_pairs, score.pairs_per_sampled))


def choose(scores: Mapping[int, Score], rule: Rule) -> tuple[int, int]:
    """The rank with the smallest error, and the chosen one."""
    ranks = np.array(sorted(scores))
    errors = np.array([scores[rank].errors(rule.protocol).mean() for rank in ranks])
    minimum = int(ranks[errors.argmin()])
    standard_errors = [difference(scores[rank], scores[minimum], rule.protocol)[1] for rank in ranks]
    return minimum, int(ranks[rule.choose(ranks, errors, np.array(standard_errors))])


def _curve(scores: Mapping[int, Score], protocol: str, minimum: int, of_mean: Score) -> pd.DataFrame:
    import pandas as pd

    baseline = float(of_mean.errors(protocol).mean())
    rows = []
    for rank in sorted(scores):
        errors = scores[rank].errors(protocol)
        gap, error_of_gap = difference(scores[rank], scores[minimum], protocol)
        spread = float(errors.std(ddof=1)) if len(errors) > 1 else 0.0
        rows.append(
            {
                "rank": rank,
                "error": float(errors.mean()),
                "explained_variance": 1 - float(errors.mean()) / baseline if baseline > 0 else np.nan,
                "standard_deviation": spread,
                "standard_error": spread / np.sqrt(len(errors)),
                "difference": gap,
                "standard_error_of_difference": error_of_gap,
                "in_valley": bool(gap <= error_of_gap),
            }
        )
    return pd.DataFrame(rows)


def _systems_frame(score: Score, of_mean: Score, names: tuple[str, ...]) -> pd.DataFrame | None:
    """The contribution of each system to the errors, and its R2."""
    import pandas as pd

    if score.systems is None or of_mean.systems is None:
        return None
    (error, on_line), of_mean_error = score.systems, of_mean.systems[0]
    r2 = 1.0 - np.divide(error, of_mean_error, out=np.full(len(names), np.nan), where=of_mean_error > 0)
    columns = {"error": error, "error_on_line": on_line, "error_of_mean": of_mean_error, "r2": r2}
    return pd.DataFrame(columns, index=pd.Index(names, name="system", dtype=object))


def _listed(ranks: Sequence[int]) -> str:
    """2, 4-6, 9: consecutive ranks as ranges."""
    ranks = sorted(ranks)
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
