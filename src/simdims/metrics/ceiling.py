"""The noise ceiling of odd-one-out answers: how far people agree with each other on the same triplets."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims._checks import warn
from simdims._parameters import is_whole
from simdims.triplets import read_answers

_CHANCE = 1 / 3

# With fewer answers a triplet, the share of the most frequent one says more about their number than about people.
_FEW_ANSWERS = 10


@dataclass(frozen=True)
class NoiseCeiling:
    """How consistent answers to the same triplets are.

    Parameters
    ----------
    ceiling : float
        The share of the most frequent answer, averaged over triplets.
    standard_error : float
        Of `ceiling`, over triplets; NaN for a single one.
    lower : float
        How often the others' most frequent answer predicts the one that is left out, averaged over triplets.
    lower_standard_error : float
        Of `lower`, over triplets.
    n_triplets : int
        The triplets that were answered often enough.
    n_answers : int
        Their answers.
    n_left_out : int
        Answers to triplets that were not.
    """

    ceiling: float
    standard_error: float
    lower: float
    lower_standard_error: float
    n_triplets: int
    n_answers: int
    n_left_out: int

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """95% confidence interval of `ceiling`, over triplets: 1.96 standard errors to both sides."""
        return self.ceiling - 1.96 * self.standard_error, self.ceiling + 1.96 * self.standard_error

    def fraction(self, accuracy: float) -> float:
        """The part of the way from chance to the ceiling that an accuracy goes: (a - 1/3) / (ceiling - 1/3).

        Parameters
        ----------
        accuracy : float
            A `triplet_accuracy`, between 0 and 1.

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
        if not isinstance(accuracy, Real) or isinstance(accuracy, bool) or not 0 <= accuracy <= 1:
            raise ValueError(f"accuracy must be a number between 0 and 1, got {accuracy!r}.")
        if self.ceiling <= _CHANCE:
            raise ValueError("ceiling must be above chance for a fraction of it, got 1/3: nobody agrees with anybody.")
        return (float(accuracy) - _CHANCE) / (self.ceiling - _CHANCE)

    def __str__(self) -> str:
        return (
            f"noise ceiling {self.ceiling:.2%} ± {1.96 * self.standard_error:.2%} (95%), at least {self.lower:.2%}; "
            f"{self.n_answers} answers to {self.n_triplets} triplets"
        )


def noise_ceiling(triplets: Any, *, odd: int | Hashable = -1, min_answers: int = 2) -> NoiseCeiling:
    """How well odd-one-out answers can be predicted at all, from triplets that were answered more than once.

    For a triplet with n answers, of which n_1 >= n_2 >= n_3 chose each of its items, the consistency is n_1 / n: the
    accuracy, on these answers, of a model that knows the most frequent one. The ceiling is its mean over triplets and
    its standard error is that of this mean (standard deviation over triplets / sqrt(number of triplets)), as published
    for THINGS and SPoSE.

    With few answers a triplet n_1 / n is too high: two random answers have 1 or 1/2, never 1/3. `lower` errs to the
    other side: each answer is predicted by the most frequent one of the n - 1 others (ties share the credit, as in
    `triplet_accuracy`), which a model that knows people's probabilities beats, or equals, on average. With two
    answers a triplet it is the share of pairs that agree. On average the true ceiling lies between the two, and both
    approach it as answers get more.

    Parameters
    ----------
    triplets : array-like or DataFrame of shape (n_answers, 3)
        One answer a row, as in `from_triplets`; rows with the same three items, in any order, answer the same triplet.
    odd : int or column name, default=-1
        Which column holds the odd one out.
    min_answers : int, default=2
        Triplets with fewer answers are left out; how many answers that are is in the result.

    Returns
    -------
    NoiseCeiling
        The ceiling, its uncertainty and lower estimate; `fraction(accuracy)` is the chance-corrected part of it that an
        accuracy reaches.

    Warns
    -----
    UserWarning
        If triplets have few answers (a median below 10), so that the ceiling is much too high.

    Notes
    -----
    The standard error takes triplets as a random sample and their answers as independent; answers of few people, each
    to many triplets, are less certain than it says.

    References
    ----------
    SRF, Supplement (THINGS); M. N. Hebart et al. (2020), Revealing the multidimensional mental representations of
    natural objects underlying human similarity judgements, Nature Human Behaviour 4.

    Examples
    --------
    >>> from simdims.metrics import noise_ceiling
    >>> answers = [["cat", "dog", "car"]] * 8 + [["car", "dog", "cat"]] * 2 + [["bus", "car", "cat"]] * 10
    >>> ceiling = noise_ceiling(answers)
    >>> ceiling.ceiling, ceiling.lower, ceiling.n_triplets
    (0.9, 0.9, 2)
    >>> print(ceiling)
    noise ceiling 90.00% ± 19.60% (95%), at least 90.00%; 20 answers to 2 triplets
    """
    if not is_whole(min_answers) or min_answers < 2:
        raise ValueError(f"min_answers must be a whole number of at least 2, got {min_answers!r}.")
    items, odd_column = read_answers(triplets, odd)
    counts = _count_answers(items, odd_column)
    n_answers = counts.sum(axis=1)
    enough = n_answers >= min_answers
    if not enough.any():
        raise ValueError(
            f"triplets must hold a triplet with at least min_answers = {min_answers} answers, got at most "
            f"{int(n_answers.max())}."
        )
    counts, n_kept = counts[enough], n_answers[enough]
    if np.median(n_kept) < _FEW_ANSWERS:
        warn(
            f"The most frequent of few answers (median {np.median(n_kept):g} a triplet) overstates how people agree: "
            f"report `lower` beside the ceiling, or raise min_answers to {_FEW_ANSWERS} or more."
        )
    ceiling, standard_error = _mean(counts.max(axis=1) / n_kept)
    lower, lower_standard_error = _mean(_predicted_by_others(counts) / n_kept)
    return NoiseCeiling(
        ceiling=ceiling,
        standard_error=standard_error,
        lower=lower,
        lower_standard_error=lower_standard_error,
        n_triplets=len(counts),
        n_answers=int(n_kept.sum()),
        n_left_out=int(n_answers.sum() - n_kept.sum()),
    )


def _count_answers(items: NDArray[np.intp], odd_column: int) -> NDArray[np.intp]:
    """One row for every set of three items: how often each of them, in ascending order, was the odd one out."""
    ascending = np.sort(items, axis=1)
    place = np.argmax(ascending == items[:, [odd_column]], axis=1)
    order = np.lexsort(ascending.T)
    ascending, place = ascending[order], place[order]
    is_new = np.r_[False, (ascending[1:] != ascending[:-1]).any(axis=1)]
    triplet = np.cumsum(is_new)
    return np.bincount(3 * triplet + place, minlength=3 * (int(triplet[-1]) + 1)).reshape(-1, 3)


def _predicted_by_others(counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """How many of a triplet's answers the most frequent one of the others predicts, ties sharing the credit."""
    predicted = np.zeros(len(counts))
    for answer in range(3):
        others = counts - (np.arange(3) == answer)
        most = others == others.max(axis=1, keepdims=True)
        predicted += counts[:, answer] * most[:, answer] / np.count_nonzero(most, axis=1)
    return predicted


def _mean(shares: NDArray[np.float64]) -> tuple[float, float]:
    """The mean, and its standard error."""
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.nan
    return float(shares.mean()), float(error)
