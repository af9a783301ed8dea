"""Noise ceilings: agreement between answers to the same questions, or between systems on the same pairs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from simdims import _memory
from simdims._parameters import ParameterError, require_between, require_choice, require_count, shortlist, shown, warn
from simdims._tables import as_frame, read_systems
from simdims.comparisons import read_comparisons
from simdims.similarity.ownership import read_only
from simdims.systems import SimilaritySet, dense_parts
from simdims.triplets import answers_by, read_triplets

if TYPE_CHECKING:
    import pandas as pd

#: Fewest pairs for a correlation to be computed.
_FEWEST_PAIRS = 3
#: With fewer answers per triplet, the share of the most frequent answer is biased upwards.
_FEW_ANSWERS = 10


@dataclass(frozen=True)
class NoiseCeiling:
    """How consistent answers to the same triplets, or to the same comparisons, are.

    Parameters
    ----------
    ceiling : float
        The share of the most frequent answer, averaged over triplets.
    standard_error : float
        Standard error of `ceiling` over triplets; NaN for a single triplet.
    lower : float
        How often an answer is predicted by the most frequent of the other answers, averaged over triplets.
    lower_standard_error : float
        Standard error of `lower` over triplets.
    n_triplets : int
        Triplets with at least `min_answers` answers.
    n_answers : int
        Answers to these triplets.
    n_left_out : int
        Answers to the other triplets.
    chance : float
        The accuracy of guessing: 1/3 for triplets, 1/2 for comparisons.
    """

    ceiling: float
    standard_error: float
    lower: float
    lower_standard_error: float
    n_triplets: int
    n_answers: int
    n_left_out: int
    chance: float = 1 / 3

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """95% confidence interval of `ceiling` over triplets: 1.96 standard errors on either side."""
        return self.ceiling - 1.96 * self.standard_error, self.ceiling + 1.96 * self.standard_error

    def fraction(self, accuracy: float) -> float:
        """An accuracy as a fraction of the distance from chance to the ceiling: (a - chance) / (ceiling - chance).

        Parameters
        ----------
        accuracy : float
            A `triplet_accuracy` or `comparison_accuracy`, between 0 and 1.

        Returns
        -------
        float
            0 at chance, 1 at the ceiling; negative below chance.

        Examples
        --------
        >>> from simdims.metrics import noise_ceiling
        >>> round(noise_ceiling([[0, 1, 2]] * 15 + [[1, 2, 0]] * 5).fraction(0.6), 3)
        0.64
        """
        require_between("accuracy", accuracy, 0, 1)
        if self.ceiling <= self.chance:
            chance = "1/2" if self.chance == 0.5 else "1/3"
            raise ValueError(
                f"The ceiling must be above chance for a fraction of it, got {chance}: there is no agreement."
            )
        return (float(accuracy) - self.chance) / (self.ceiling - self.chance)

    def __str__(self) -> str:
        ceiling = f"{self.ceiling:.2%} ± {1.96 * self.standard_error:.2%} (95%), at least {self.lower:.2%}"
        questions = "comparisons" if self.chance == 0.5 else "triplets"
        return f"noise ceiling {ceiling}; {self.n_answers} answers to {self.n_triplets} {questions}"


@dataclass(frozen=True, eq=False)
class SystemCeiling:
    """Agreement of each system's similarities with those of the others.

    Attributes
    ----------
    names : tuple of str
        The systems.
    lower : ndarray of shape (n_systems,)
        Agreement of each system with the mean of the others; NaN if they share fewer than 3 pairs.
    upper : ndarray of shape (n_systems,)
        Agreement of each system with the mean of all, including itself.
    method : {"pearson", "spearman", "cosine", "accuracy"}
        The measure of agreement; "accuracy" is for answers to triplets.
    n_pairs : ndarray of int, shape (n_systems,)
        Number of pairs, or answers, behind each `lower`.
    """

    names: tuple[str, ...]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    method: str
    n_pairs: NDArray[np.intp]

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "n_pairs"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def mean_lower(self) -> float:
        """The mean of `lower` over the systems for which it is defined."""
        return float(np.nanmean(self.lower))

    @property
    def mean_upper(self) -> float:
        """The mean of `upper` over the same systems."""
        return float(self.upper[~np.isnan(self.lower)].mean())

    @property
    def table(self) -> pd.DataFrame:
        """One row per system: system, lower, upper, n_pairs."""
        import pandas as pd

        columns = {"system": list(self.names), "lower": self.lower, "upper": self.upper, "n_pairs": self.n_pairs}
        return pd.DataFrame(columns)

    def __str__(self) -> str:
        means = f"noise ceiling between {self.mean_lower:.3f} and {self.mean_upper:.3f}"
        n_systems = np.count_nonzero(~np.isnan(self.lower))
        extremes = f"lower bound from {np.nanmin(self.lower):.3f} to {np.nanmax(self.lower):.3f}"
        return f"{means} ({self.method}; mean of {n_systems} systems, {extremes})"


@overload
def noise_ceiling(triplets: SimilaritySet, *, method: str = "pearson") -> SystemCeiling: ...


@overload
def noise_ceiling(triplets: Any, *, odd: int | Hashable = -1, min_answers: int = 2) -> NoiseCeiling: ...


@overload
def noise_ceiling(triplets: Any, *, odd: int | Hashable = -1, by: str | int) -> SystemCeiling: ...


def noise_ceiling(
    triplets: Any,
    *,
    odd: int | Hashable = -1,
    min_answers: int = 2,
    method: str | None = None,
    by: str | int | None = None,
) -> NoiseCeiling | SystemCeiling:
    """Estimate how well the best possible model can do, from repeated triplets or several systems.

    For a SimilaritySet, each system's similarities are compared with the mean of the other systems (`lower`) and with
    the mean of all (`upper`). A model of what systems have in common is expected to agree with a system no better than
    `upper`; a good one agrees at least as well as `lower`. Values are first scaled within each system, over its
    observed off-diagonal pairs: for "pearson" to mean 0 and standard deviation 1, for "cosine" to mean square 1, for
    "spearman" to ranks. Weights count in these moments, in the means over systems and in the agreement.

    For odd-one-out answers, the ceiling is the mean consistency over triplets, as published for THINGS and SPoSE: of n
    answers to a triplet, the share of the most frequent one, which is the accuracy of a model that predicts it.

    With few answers per triplet this is biased upwards: for two random answers it is 1 or 1/2, never 1/3. `lower` is
    biased downwards: each answer is predicted by the most frequent of the n - 1 others (ties share the credit, as in
    `triplet_accuracy`). In expectation the true ceiling lies between the two, and both approach it with more answers.

    Parameters
    ----------
    triplets : array-like or DataFrame of shape (n_answers, 3), or SimilaritySet
        The similarities of several systems, or one answer per row, as in `from_triplets`; rows with the same items, in
        any order, answer the same triplet.
    odd : int or column name, default=-1
        The column of the odd one out.
    min_answers : int, default=2
        Triplets with fewer answers are excluded; the result counts their answers.
    method : {"pearson", "spearman", "cosine"}, optional
        For a SimilaritySet: the measure of agreement, "pearson" by default. Weights do not change ranks.
    by : column name, optional
        For triplets in a DataFrame: the column of people. The ceiling is then per person: the share of their answers
        predicted by the most frequent answer of the others (`lower`) or of all (`upper`).

    Returns
    -------
    NoiseCeiling
        For triplets: the ceiling, its uncertainty and the lower estimate.
    SystemCeiling
        For a SimilaritySet, or with `by`: a lower and an upper bound per system or person.

    Warns
    -----
    UserWarning
        If triplets have few answers (a median below 10), so that the ceiling is biased upwards; or if systems share too
        few pairs with the others to have a ceiling.

    Notes
    -----
    The standard error treats triplets as a random sample and answers as independent; it is too small if few people
    answered many triplets each.

    References
    ----------
    SRF, Supplement (THINGS); M. N. Hebart et al. (2020), Revealing the multidimensional mental representations of
    natural objects underlying human similarity judgements, Nature Human Behaviour 4; H. Nili et al. (2014), A toolbox
    for representational similarity analysis, PLOS Computational Biology 10.

    Examples
    --------
    >>> from simdims.metrics import noise_ceiling
    >>> answers = [["cat", "dog", "car"]] * 8 + [["car", "dog", "cat"]] * 2 + [["bus", "car", "cat"]] * 10
    >>> ceiling = noise_ceiling(answers)
    >>> ceiling.ceiling, ceiling.lower, ceiling.n_triplets
    (0.9, 0.9, 2)
    >>> print(ceiling)
    noise ceiling 90.00% ± 19.60% (95%), at least 90.00%; 20 answers to 2 triplets

    >>> from simdims import SimilaritySet, simulate
    >>> W = simulate.dirichlet(30, 3, random_state=0)
    >>> people = SimilaritySet([simulate.add_noise(W @ W.T, 0.5, random_state=seed) for seed in range(5)])
    >>> ceiling = noise_ceiling(people)
    >>> bool((ceiling.lower < ceiling.upper).all())
    True
    """
    if isinstance(triplets, SimilaritySet):
        for name, given, default in (("odd", odd, -1), ("min_answers", min_answers, 2), ("by", by, None)):
            if given != default:
                raise ParameterError(name, "must not be given for a SimilaritySet", shown(given))
        return _ceiling_of_systems(triplets, "pearson" if method is None else method)
    if method is not None:
        raise ParameterError("method", "must be None for triplets", shown(method))
    require_count("min_answers", min_answers, 2)
    if by is not None and min_answers != 2:
        raise ParameterError("min_answers", "must not be given beside {by}", shown(min_answers))
    items, odd_column = read_triplets(triplets if by is None else answers_by(triplets, by), odd)
    ascending = np.sort(items, axis=1)
    choice = np.argmax(ascending == items[:, [odd_column]], axis=1)
    if by is not None:
        person, names = read_systems(triplets, by)
        return _ceiling_of_people(ascending, choice, person, names)
    return _ceiling(_count_answers(ascending, choice, 3)[0], min_answers, "triplets", "triplet")


def comparison_ceiling(
    table: Any,
    head: Hashable = "head",
    winner: Hashable = "winner",
    loser: Hashable = "loser",
    by: str | int | None = None,
    *,
    min_answers: int = 2,
) -> NoiseCeiling:
    """Estimate the highest accuracy that a model of comparisons can reach, from repeated comparisons.

    Like `noise_ceiling`, with two possible answers to each question "is the head more like this item or that one?".

    Parameters
    ----------
    table : DataFrame, dictionary of columns or list of dictionaries
        One answer per row, as in `from_comparisons`. Rows with the same head and the same two other items, in either
        order, answer the same question.
    head, winner, loser : column name, default="head", "winner", "loser"
        The columns of the items.
    by : column name, optional
        The column of people. Only answers of the same person are then compared, for models fitted per person; without
        it, answers of all people, for one common model.
    min_answers : int, default=2
        Questions with fewer answers are excluded; the result counts their answers.

    Returns
    -------
    NoiseCeiling
        `chance` is 1/2.

    Warns
    -----
    UserWarning
        If questions have few answers (a median below 10), so that the ceiling is biased upwards.

    Examples
    --------
    >>> import pandas as pd
    >>> from simdims.metrics import comparison_ceiling
    >>> answers = [["cat", "dog", "car"]] * 9 + [["cat", "car", "dog"]] * 3
    >>> ceiling = comparison_ceiling(pd.DataFrame(answers, columns=["head", "winner", "loser"]))
    >>> ceiling.ceiling, round(ceiling.fraction(0.7), 3)
    (0.75, 0.8)
    """
    require_count("min_answers", min_answers, 2)
    items = read_comparisons(table, head, winner, loser)
    question = np.column_stack([items[:, 0], np.sort(items[:, 1:], axis=1)])
    if by is not None:
        people, _ = read_systems(as_frame(table, head=head, winner=winner, loser=loser, by=by), by)
        question = np.column_stack([question, people])
    choice = (items[:, 1] > items[:, 2]).astype(np.intp)
    return _ceiling(_count_answers(question, choice, 2)[0], min_answers, "table", "comparison")


def _ceiling(counts: NDArray[np.intp], min_answers: int, argument: str, question: str) -> NoiseCeiling:
    """The ceiling from counts of answers, one row per question and one column per possible answer."""
    n_answers = counts.sum(axis=1)
    enough = n_answers >= min_answers
    if not enough.any():
        rule = f"must hold a {question} with at least min_answers = {min_answers} answers"
        raise ParameterError(argument, rule, f"at most {int(n_answers.max())}")
    counts, n_kept = counts[enough], n_answers[enough]
    if np.median(n_kept) < _FEW_ANSWERS:
        found = f"With few answers per {question} (median {np.median(n_kept):g}) the ceiling is biased upwards."
        warn(found, f"Report `lower` as well, or raise {{min_answers}} to {_FEW_ANSWERS} or more.")
    return NoiseCeiling(
        *_mean_and_error(counts.max(axis=1) / n_kept),
        *_mean_and_error(_predicted_by_others(counts) / n_kept),
        n_triplets=len(counts),
        n_answers=int(n_kept.sum()),
        n_left_out=int(n_answers.sum() - n_kept.sum()),
        chance=1 / counts.shape[1],
    )


def _ceiling_of_people(
    questions: NDArray[np.intp], choice: NDArray[np.intp], person: NDArray[np.intp], names: Any
) -> SystemCeiling:
    """How many answers of each person are predicted by the most frequent answer of the others, and of all."""
    counts, number = _count_answers(questions, choice, 3)
    own, own_number = _count_answers(np.column_stack([person, number]), choice, 3)
    from_all = counts[number]
    others = from_all - own[own_number]
    shared = others.any(axis=1)
    if not shared.any():
        raise ParameterError("triplets", "must hold triplets that several people answered", "none")
    n_answers = np.bincount(person[shared], minlength=len(names))
    bounds = []
    for predicting in (others, from_all):
        most = predicting == predicting.max(axis=1, keepdims=True)
        credit = most[np.arange(len(choice)), choice] / np.count_nonzero(most, axis=1)
        total = np.bincount(person[shared], weights=credit[shared], minlength=len(names))
        bounds.append(np.divide(total, n_answers, out=np.full(len(names), np.nan), where=n_answers > 0))
    without = [str(name) for name, count in zip(names, n_answers, strict=True) if not count]
    if without:
        who = "1 person has" if len(without) == 1 else f"{len(without)} people have"
        warn(f"{who} no ceiling, because nobody else answered the same triplets: {shortlist(without)}.")
    return SystemCeiling(tuple(map(str, names)), bounds[0], bounds[1], "accuracy", n_answers)


def _count_answers(
    questions: NDArray[np.intp], choice: NDArray[np.intp], n_choices: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """How often each answer to each distinct question (row) was chosen, and the number of the question in each row."""
    order = np.lexsort(questions.T)  # several times faster than np.unique(axis=0)
    number = np.empty_like(order)
    number[order] = np.cumsum(np.r_[False, (questions[order[1:]] != questions[order[:-1]]).any(axis=1)])
    counts = np.bincount(n_choices * number + choice, minlength=n_choices * (int(number.max()) + 1))
    return counts.reshape(-1, n_choices), number


def _predicted_by_others(counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Number of answers per triplet predicted by the most frequent of the others; ties share the credit."""
    predicted = np.zeros(len(counts))
    for answer in range(counts.shape[1]):
        others = counts - (np.arange(counts.shape[1]) == answer)
        most = others == others.max(axis=1, keepdims=True)
        predicted += counts[:, answer] * most[:, answer] / np.count_nonzero(most, axis=1)
    return predicted


def _mean_and_error(shares: NDArray[np.float64]) -> tuple[float, float]:
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.nan
    return float(shares.mean()), float(error)


def _ceiling_of_systems(systems: SimilaritySet, method: str) -> SystemCeiling:
    """Agreement of each system with the mean of the others, and of all."""
    require_choice("method", method, ("pearson", "spearman", "cosine"))
    if systems.n_systems < 2:
        raise ParameterError("triplets", "must hold at least two systems for a noise ceiling", f"{systems.n_systems}")
    n = systems.n_items
    _memory.require(40 * n * n, f"The noise ceiling of {n} items", "use fewer items")
    total, weight, count = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n), dtype=np.intp)
    for m in range(systems.n_systems):
        pairs, own, omega = _standard_pairs(systems, m, method)
        total[pairs] += omega * own
        weight[pairs] += omega
        count[pairs] += 1
    lower, upper, n_pairs = (np.full(systems.n_systems, np.nan) for _ in range(3))
    for m in range(systems.n_systems):
        pairs, own, omega = _standard_pairs(systems, m, method)
        upper[m] = _agreement(own, total[pairs] / weight[pairs], omega, method)
        common = count[pairs] > 1
        n_pairs[m] = np.count_nonzero(common)
        if n_pairs[m] >= _FEWEST_PAIRS:
            others = (total[pairs] - omega * own)[common] / (weight[pairs] - omega)[common]
            lower[m] = _agreement(own[common], others, omega[common], method)
    without = [name for name, value in zip(systems.names, lower, strict=True) if np.isnan(value)]
    if len(without) == systems.n_systems:
        raise ParameterError("triplets", "must hold systems that share pairs, with values that vary", "none")
    if without:
        who = "1 system has" if len(without) == 1 else f"{len(without)} systems have"
        why = "too few pairs in common with the others, or values that do not vary"
        warn(f"{who} no ceiling, because of {why}: {shortlist(without)}.")
    return SystemCeiling(systems.names, lower, upper, method, n_pairs.astype(np.intp))


def _standard_pairs(systems: SimilaritySet, m: int, method: str) -> tuple[Any, NDArray, NDArray]:
    """The observed pairs of a system, their values on a common scale, and their weights."""
    values, omega = dense_parts(systems[m])  # type: ignore[arg-type]
    i, j = np.nonzero(np.triu(omega > 0, 1))
    own, omega, at = values[i, j], omega[i, j], systems.positions[m]
    first, second = np.minimum(at[i], at[j]), np.maximum(at[i], at[j])
    if method == "spearman":
        return (first, second), rankdata(own), omega
    centred = own - np.average(own, weights=omega) if method == "pearson" else own
    size = np.sqrt(np.average(centred**2, weights=omega))
    return (first, second), centred / size if size > 0 else centred, omega


def _agreement(x: NDArray, y: NDArray, weights: NDArray, method: str) -> float:
    """The weighted correlation, rank correlation or cosine of two lists; NaN if either is constant."""
    if method == "spearman":
        x, y = rankdata(x), rankdata(y)
    if method != "cosine":
        x, y = x - np.average(x, weights=weights), y - np.average(y, weights=weights)
    squares = np.sum(weights * x**2) * np.sum(weights * y**2)
    return float(np.sum(weights * x * y) / np.sqrt(squares)) if squares > 0 else np.nan
