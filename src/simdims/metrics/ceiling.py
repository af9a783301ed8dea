"""The noise ceiling of odd-one-out answers: how far people agree with each other on the same triplets."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, require_between, require_count, warn
from simdims.triplets import read_answers

_CHANCE = 1 / 3

#: With fewer answers per triplet, the share of the most frequent answer is biased upwards.
_FEW_ANSWERS = 10


@dataclass(frozen=True)
class NoiseCeiling:
    """How consistent answers to the same triplets are.

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
        Triplets that were answered often enough.
    n_answers : int
        Answers to these triplets.
    n_left_out : int
        Answers to the other triplets.
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
        """95% confidence interval of `ceiling` over triplets: 1.96 standard errors on either side."""
        return self.ceiling - 1.96 * self.standard_error, self.ceiling + 1.96 * self.standard_error

    def fraction(self, accuracy: float) -> float:
        """An accuracy as a fraction of the distance from chance to the ceiling: (a - 1/3) / (ceiling - 1/3).

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
        require_between("accuracy", accuracy, 0, 1)
        if self.ceiling <= _CHANCE:
            raise ValueError("The ceiling must be above chance for a fraction of it, got 1/3: there is no agreement.")
        return (float(accuracy) - _CHANCE) / (self.ceiling - _CHANCE)

    def __str__(self) -> str:
        return (
            f"noise ceiling {self.ceiling:.2%} ± {1.96 * self.standard_error:.2%} (95%), at least {self.lower:.2%}; "
            f"{self.n_answers} answers to {self.n_triplets} triplets"
        )


def noise_ceiling(triplets: Any, *, odd: int | Hashable = -1, min_answers: int = 2) -> NoiseCeiling:
    """Estimate the highest accuracy that a model of odd-one-out answers can reach, from repeated triplets.

    For a triplet with n answers, of which n_1 >= n_2 >= n_3 chose each of its items, the consistency is n_1 / n: the
    accuracy, on these answers, of a model that knows the most frequent one. The ceiling is the mean consistency over
    triplets, with the standard error of that mean, as published for THINGS and SPoSE.

    With few answers per triplet n_1 / n is biased upwards: for two random answers it is 1 or 1/2, never 1/3. `lower` is
    biased downwards: each answer is predicted by the most frequent of the n - 1 others (ties share the credit, as in
    `triplet_accuracy`); with two answers per triplet it is the share of pairs that agree. In expectation the true
    ceiling lies between the two, and both approach it as the number of answers grows.

    Parameters
    ----------
    triplets : array-like or DataFrame of shape (n_answers, 3)
        One answer per row, as in `from_triplets`; rows with the same items, in any order, answer the same triplet.
    odd : int or column name, default=-1
        Which column holds the odd one out.
    min_answers : int, default=2
        Triplets with fewer answers are left out; the result counts their answers.

    Returns
    -------
    NoiseCeiling
        The ceiling, its uncertainty and the lower estimate; `fraction(accuracy)` is the chance-corrected fraction of
        the ceiling that an accuracy reaches.

    Warns
    -----
    UserWarning
        If triplets have few answers (a median below 10), so that the ceiling is biased upwards.

    Notes
    -----
    The standard error treats triplets as a random sample and answers as independent; it is too small if few people
    answered many triplets each.

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
    require_count("min_answers", min_answers, 2)
    items, odd_column = read_answers(triplets, odd)
    counts = _count_answers(items, odd_column)
    n_answers = counts.sum(axis=1)
    enough = n_answers >= min_answers
    if not enough.any():
        rule = f"must hold a triplet with at least min_answers = {min_answers} answers"
        raise ParameterError("triplets", rule, f"at most {int(n_answers.max())}")
    counts, n_kept = counts[enough], n_answers[enough]
    if np.median(n_kept) < _FEW_ANSWERS:
        warn(
            f"With few answers per triplet (median {np.median(n_kept):g}) the ceiling is biased upwards.",
            f"Report `lower` as well, or raise {{min_answers}} to {_FEW_ANSWERS} or more.",
        )
    ceiling, standard_error = _mean_and_error(counts.max(axis=1) / n_kept)
    lower, lower_standard_error = _mean_and_error(_predicted_by_others(counts) / n_kept)
    n_left_out = int(n_answers.sum() - n_kept.sum())
    return NoiseCeiling(
        ceiling, standard_error, lower, lower_standard_error, len(counts), int(n_kept.sum()), n_left_out
    )


def _count_answers(items: NDArray[np.intp], odd_column: int) -> NDArray[np.intp]:
    """One row per set of three items: how often each of them, in ascending order, was the odd one out."""
    ascending = np.sort(items, axis=1)
    odd = np.argmax(ascending == items[:, [odd_column]], axis=1)
    order = np.lexsort(ascending.T)  # several times faster than np.unique(axis=0)
    ascending, odd = ascending[order], odd[order]
    triplet = np.cumsum(np.r_[False, (ascending[1:] != ascending[:-1]).any(axis=1)])
    return np.bincount(3 * triplet + odd, minlength=3 * (int(triplet[-1]) + 1)).reshape(-1, 3)


def _predicted_by_others(counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Number of answers per triplet that the most frequent of the others predicts, ties sharing the credit."""
    predicted = np.zeros(len(counts))
    for answer in range(3):
        others = counts - (np.arange(3) == answer)
        most = others == others.max(axis=1, keepdims=True)
        predicted += counts[:, answer] * most[:, answer] / np.count_nonzero(most, axis=1)
    return predicted


def _mean_and_error(shares: NDArray[np.float64]) -> tuple[float, float]:
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.nan
    return float(shares.mean()), float(error)
