"""Simulation model of a study: true dimensions, noisy answers and individual differences, given or from a pilot.

An answer of person u about the pair (i, j) is sum_k a_uk w_ik w_jk + e, with weights a_uk of mean 1 and standard
deviation `spread` (gamma) and noise e of standard deviation `noise`. The judgement of a pair is the mean of its
answers, with negative means set to 0.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._parallel import seed_of
from simdims._parameters import ParameterError, plural
from simdims.joint import JointSRF
from simdims.metrics._pairs import pair_products, row_blocks
from simdims.selection import select_rank
from simdims.similarity import Similarity
from simdims.srf import SRF
from simdims.systems import SimilaritySet, dense_parts

#: Pairs whose answers are drawn at a time.
_CHUNK = 2**16
#: Number of folds of the pilot; the first ones are held out in turn.
_N_FOLDS, _N_HELD_OUT = 5, 3
#: Bisection steps of the search for the noise.
_N_STEPS = 10
#: First elements of task names, from which seeds are derived.
SELECT, MATCH, STUDY = 0, 1, 2

Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]


class World(NamedTuple):
    """The true embedding and the standard deviations of the noise of one answer and of people's weights."""

    W: NDArray[np.float64]
    noise: float
    spread: float

    @property
    def variance(self) -> float:
        """The variance of the true similarities of all pairs."""
        S = self.W @ self.W.T
        return float(S[np.triu_indices(len(S), 1)].var())

    @property
    def snr(self) -> float:
        """The share of the signal in the variance of one answer."""
        return self.variance / (self.variance + self.noise**2)

    def truth(self, pairs: Pairs) -> NDArray[np.float64]:
        """The true similarities of pairs."""
        return pair_products(self.W, *pairs)

    def judgements(
        self, pairs: Pairs, answers: Any, people: int | None, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """The mean answer per pair, each from a different person; of anyone, or of a given number of people."""
        n_answers = np.broadcast_to(np.asarray(answers, dtype=np.float64), pairs[0].shape)
        means = self.truth(pairs)
        if self.spread > 0:
            shape = self.spread**-2
            group = None if people is None else rng.gamma(shape, 1 / shape, (people, self.W.shape[1]))
            for e in row_blocks(len(means), _CHUNK):
                each = n_answers[e, None] * shape
                if group is None:  # a mean of gamma variables with the same scale is also gamma
                    weights = rng.gamma(each, 1 / each, (len(each), self.W.shape[1]))
                else:
                    asked = rng.random((len(each), len(group))).argpartition(int(n_answers[0]) - 1, axis=1)
                    weights = group[asked[:, : int(n_answers[0])]].mean(axis=1)
                means[e] = np.einsum("ek,ek,ek->e", weights, self.W[pairs[0][e]], self.W[pairs[1][e]])
        means += self.noise / np.sqrt(n_answers) * rng.standard_normal(len(means))
        return np.maximum(means, 0.0)


class Pilot(NamedTuple):
    """The judged pairs of a pilot, their values, and their numbers of answers."""

    pairs: Pairs
    values: NDArray[np.float64]
    answers: NDArray[np.float64]
    n_items: int

    @property
    def share(self) -> float:
        """The share of all pairs that were judged."""
        return 2 * len(self.values) / (self.n_items * (self.n_items - 1))


def designed(W: NDArray[np.float64], snr: float, spread: float) -> World:
    """A world with a given embedding, and noise that gives one answer the requested signal-to-noise ratio."""
    silent = World(W, 0.0, spread)
    if silent.variance <= 1e-24 * np.abs(W).max() ** 4:
        raise ParameterError("source", "must give similarities that vary", "equal ones")
    return World(W, float(np.sqrt(silent.variance * (1 - snr) / snr)), spread)


def pilot_of(S: Similarity | SimilaritySet) -> Pilot:
    """The judged pairs of a pilot; weights are numbers of answers, summed over the systems of a set."""
    if isinstance(S, SimilaritySet):
        values, answers = dense_parts(S.mean())[0], np.zeros((S.n_items, S.n_items))
        for one, at in zip(S, S.positions, strict=True):
            answers[np.ix_(at, at)] += dense_parts(one)[1]
    else:
        values, answers = dense_parts(S)
    rows, columns = np.triu_indices(len(values), 1)
    judged = answers[rows, columns] > 0
    pairs = (rows[judged], columns[judged])
    return Pilot(pairs, values[pairs], answers[pairs], len(values))


def estimated(
    S: Similarity | SimilaritySet, pilot: Pilot, n_components: int | None, spread: float | None, root: int
) -> tuple[World, float]:
    """The world that a pilot comes from, with the dimensions fitted to it, and the R2 of the pilot's held-out pairs."""
    if np.ptp(pilot.values) <= 1e-12 * np.abs(pilot.values).max():
        raise ParameterError("source", "must give similarities that vary", "equal ones")
    mean = S.mean() if isinstance(S, SimilaritySet) else S
    seed = seed_of(root, SELECT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what a small pilot cannot determine
        chosen = n_components or select_rank(mean, n_repeats=2, random_state=seed, progress=False).rank
        W = SRF(chosen, alpha="auto", max_iter=2000, random_state=seed).fit(_matrix(pilot)).embedding_
        if spread is None:
            spread = 0.0
            if isinstance(S, SimilaritySet) and S.n_systems > 1:
                spread = float(np.std(JointSRF(chosen, random_state=seed).fit(S).weights_))
    W = np.asarray(W, dtype=np.float64)
    found = _held_out_r2(pilot, pilot.values, chosen, root)
    if not found > 0:
        got = f"R2 = {found:.2f} for {chosen} {plural('dimension', chosen)}"
        remedy = "collect more pairs, or plan from an embedding"
        raise ParameterError("source", "must be a pilot whose held-out pairs can be predicted", got, remedy)
    return World(W, _matching_noise(pilot, W, spread, found, root), spread), found


def _matching_noise(pilot: Pilot, W: NDArray[np.float64], spread: float, wanted: float, root: int) -> float:
    """The noise at which simulated pilots have the held-out R2 of the real one, by bisection."""
    n_components = W.shape[1]

    def simulated(noise: float) -> float:
        rng = np.random.default_rng(seed_of(root, MATCH))
        values = World(W, noise, spread).judgements(pilot.pairs, pilot.answers, None, rng)
        return _held_out_r2(pilot, values, n_components, root)

    low, high = 0.0, float(np.sqrt(World(W, 0.0, spread).variance * pilot.answers.mean()))
    if simulated(low) <= wanted:
        return 0.0
    while simulated(high) > wanted:
        low, high = high, 2 * high
    for _ in range(_N_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if simulated(middle) > wanted else (low, middle)
    return (low + high) / 2


def _held_out_r2(pilot: Pilot, values: NDArray[np.float64], n_components: int, root: int) -> float:
    """R2 of held-out pairs, weighted by their answers; no item loses all of its pairs."""
    rng = np.random.default_rng(seed_of(root, SELECT, 1))
    fold = rng.permutation(np.arange(len(values)) % _N_FOLDS)
    scores = []
    for k in range(_N_HELD_OUT):
        held_out = fold == k
        left = np.bincount(np.concatenate([side[~held_out] for side in pilot.pairs]), minlength=pilot.n_items)
        held_out &= (left[pilot.pairs[0]] > 0) & (left[pilot.pairs[1]] > 0)
        fit = fitted(pilot, values, ~held_out, n_components, seed_of(root, SELECT, 2, k))
        test = (pilot.pairs[0][held_out], pilot.pairs[1][held_out])
        scores.append(r_squared(values[held_out], pair_products(fit, *test), pilot.answers[held_out]))
    return float(np.mean(scores))


def fitted(
    pilot: Pilot, values: NDArray[np.float64], used: NDArray[np.bool_], n_components: int, seed: int
) -> NDArray[np.float64]:
    """The embedding fitted to given pairs, weighted by their answers, with a penalty chosen by cross-validation."""
    part = Pilot((pilot.pairs[0][used], pilot.pairs[1][used]), values[used], pilot.answers[used], pilot.n_items)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few pairs are intended
        return SRF(n_components, alpha="auto", random_state=seed).fit(_matrix(part)).embedding_


def _matrix(pilot: Pilot) -> Similarity:
    """The judged pairs as a matrix without a diagonal, with weights if the numbers of answers differ."""
    matrix, weights = (np.full((pilot.n_items, pilot.n_items), empty) for empty in (np.nan, 0.0))
    for one, other in (pilot.pairs, pilot.pairs[::-1]):
        matrix[one, other], weights[one, other] = pilot.values, pilot.answers
    return Similarity(matrix, weights=weights if np.ptp(pilot.answers) > 0 else None)


def r_squared(values: NDArray[np.float64], predicted: NDArray[np.float64], weights: Any = None) -> float:
    """1 - E / B, with the weighted squared errors of predictions and of the mean; NaN if values are all equal."""
    mean = np.average(values, weights=weights)
    error, spread = (np.average((values - other) ** 2, weights=weights) for other in (predicted, mean))
    return float(1 - error / spread) if spread > 0 else np.nan
