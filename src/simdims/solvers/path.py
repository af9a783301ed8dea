"""Fits under a decreasing penalty, which lead to a good minimum and to the penalty that predicts best.

If few pairs are known, most random starts lead to poor minima. Under a strong penalty there are few minima, and as it
decreases the dimensions found there lead to good ones. `approach` starts a fit in this way. `choose_alpha` follows one
such path with some of the pairs held out, and takes the penalty that predicts them best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from simdims.solvers.criterion import objective
from simdims.solvers.penalty import noise_scale, penalised
from simdims.solvers.problem import (
    FactorProblem,
    MatrixProblem,
    PairProblem,
    Problem,
    has_missing,
    matrix_problem,
    misses_pairs,
    observed_range,
    similarities_among,
)

#: The first penalty of a path, which removes all dimensions of shuffled similarities, and the last, almost none.
_STRONGEST, _WEAKEST = 1.0, 3e-4

#: The steps towards a given penalty: the first penalty and the number of steps.
_FROM, _N_STEPS = 0.5, 6

#: Penalties up to this one are chosen for complete similarities with little noise.
_WEAK = 0.03

#: tol and max_iter of a step.
STEP_TOL, STEP_SWEEPS = 1e-3, 20

#: Ratios of neighbouring penalties, first along the whole path and then around the best of it.
_COARSE, _FINE = 1.6, 1.13

#: A path ends after this many consecutive penalties that do not lower the held-out error by this fraction, or when at
#: most this fraction of the variance is left to explain.
_PATIENCE, _GAIN, _EXPLAINED = 3, 1e-3, 1e-5

#: Width, in log(alpha), of the kernel that smooths held-out errors along the path, for up to 2 * _FEW_HELD_OUT held-out
#: pairs. It decreases with the root of their number: errors of many pairs have little noise, and smoothing would shift
#: their minimum, because they rise faster on one side of it than on the other.
_WIDTH = 0.4

#: What a weaker penalty than the best may lose, as a fraction of R2 (1 - R2), with predictions as they are: a stronger
#: penalty has to be worth its bias. The second is for complete similarities, which determine W without a penalty; there
#: it mixes dimensions that overlap. With rescaled predictions the fraction is one over the root of the number of pairs,
#: which is due to chance.
_NEARLY, _NEARLY_COMPLETE = 0.02, 0.04

#: The penalty for rescaled predictions may increase the error of predictions as they are by this factor. With little
#: noise they have to be right as they are.
_WORSE = 1.5

#: The share of the known pairs held out, and their maximum number.
_HELD_OUT, _MOST_HELD_OUT = 0.1, 1_000_000

#: Values that differ by less than this fraction of the largest are equal.
_EQUAL = 1e-9

#: Below this many held-out pairs further splits are added, and their maximum number.
_FEW_HELD_OUT, _MOST_SPLITS = 100, 5

#: Maximum number of draws to find enough splits whose held-out pairs differ; very few pairs may hold out one or none.
_MOST_DRAWS = 50

#: Maximum number of items of complete similarities among which pairs are held out, and the minimum per dimension.
_MOST_ITEMS, _ITEMS_PER_DIMENSION = 2000, 4

#: Fits penalised problems from starts with the accuracy of a path step.
Fit = Callable[[Sequence[Problem], Sequence[np.ndarray]], list[np.ndarray]]


class Held(NamedTuple):
    """Held-out pairs of different items: each once, with its weight."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weights: np.ndarray

    def varies(self) -> bool:
        """Whether the similarities vary, so that there is something to explain."""
        return bool(len(self.values) and self.values.min() < self.values.max())

    def judge(self, W: np.ndarray, low: float, high: float) -> tuple[float, float]:
        """The share of variance left unexplained by predictions clipped to the fitted range: as they are, and rescaled.

        The first is the mean squared error; the second is 1 - R2 of a regression on the predictions and on how similar
        both items are to all others. A penalty shrinks these two by different factors: it lowers the largest
        eigenvalue, which is mostly the second, by as much as each of the others.
        """
        W = W.astype(np.float64, copy=False)
        predicted = np.einsum("ek,ek->e", W[self.rows], W[self.columns]).clip(low, high)
        common = W @ W.mean(axis=0)
        share = self.weights / self.weights.sum()
        observed = self.values - share @ self.values
        deviation = np.sqrt(share @ observed**2)
        left = share @ ((predicted - self.values) / deviation) ** 2
        of_items = _standardised(common[self.rows] + common[self.columns], share)
        of_pairs = _standardised(predicted, share)
        of_pairs = _standardised(of_pairs - (share @ (of_pairs * of_items)) * of_items, share)
        # A negative coefficient explains nothing.
        explained = sum(max(share @ (observed / deviation * part), 0.0) ** 2 for part in (of_items, of_pairs))
        return float(left), float(1.0 - explained)


def _standardised(values: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Values with mean 0 and variance 1, weighted by `share`; zeros if they hardly differ."""
    centred = values - share @ values
    size = np.sqrt(share @ centred**2)
    return centred / size if size > _EQUAL * np.abs(values).max() else np.zeros_like(centred)


def approach(problems: Sequence[Problem], starts: Sequence[np.ndarray], alpha: float, fit: Fit) -> Sequence[np.ndarray]:
    """Starts for problems with penalty `alpha`, found through stronger ridge penalties, the strongest first.

    If all pairs are known, random starts are as good. A strong l1 penalty would end at W = 0, which is a minimum.
    """
    if not 0.0 < alpha < _FROM or not misses_pairs(problems[0]):
        return starts
    ridges = {id(one): penalised(one, 1.0) for one in problems}
    for stronger in np.geomspace(_FROM, alpha, _N_STEPS + 1)[:-1]:
        steeper = {key: replace(one, penalty=one.penalty.times(stronger)) for key, one in ridges.items()}
        starts = fit([steeper[id(one)] for one in problems], starts)
    return starts


def has_many_minima(problem: Problem, alpha: float) -> bool:
    """Whether starts should compete for a penalised fit.

    If only the diagonal is unknown, and a weak penalty shows that there is little noise, one start is as good as
    another, and that of a fit without a penalty leads to nearly the same W.
    """
    return misses_pairs(problem) or (has_missing(problem) and alpha > _WEAK)


def choose_alpha(
    problem: Problem, W: np.ndarray, l1_ratio: float, fit: Fit, rng: np.random.RandomState
) -> tuple[float, np.ndarray]:
    """The penalty whose fits best predict held-out pairs, along a path that starts at W; and W there."""
    if noise_scale(problem)[0] == 0.0:
        return 0.0, W
    n_items, start = problem.n_items, W
    problem, W = _some_items(problem, W, rng)
    n_splits = int(np.clip(2 * _FEW_HELD_OUT / (_HELD_OUT * problem.n_known), 1, _MOST_SPLITS))
    splits = _varying_splits(problem, n_splits, rng)
    if not splits:
        return 0.0, start
    path = _Path(splits, W, l1_ratio, fit)
    alpha, n_idle = _STRONGEST, 0
    lowest = np.inf
    while alpha > _WEAKEST and n_idle < _PATIENCE and lowest > _EXPLAINED:
        n_idle = 0 if path.follow(alpha) < (1 - _GAIN) * lowest else n_idle + 1
        lowest = min(lowest, path.errors[alpha])
        alpha /= _COARSE
    best = min(path.errors, key=lambda alpha: path.errors[alpha])
    n_fine = round(np.log(_COARSE) / np.log(_FINE))
    for step in range(n_fine - 1, -n_fine, -1):
        path.follow(best * _COARSE ** (step / n_fine))
    if misses_pairs(problem):
        chosen = path.best(_NEARLY)
    else:
        path.follow(_WEAKEST)  # where the path ended, the penalty may still be stronger than it need be
        chosen = path.best(_NEARLY_COMPLETE)
    return chosen, path.fits[chosen][0] if problem.n_items == n_items else start


def best_start(problem: Problem, starts: Sequence[np.ndarray], fit: Fit) -> np.ndarray:
    """The start with the lowest objective after one step with the penalty of the problem."""
    found = fit([problem] * len(starts), starts)
    return min(found, key=lambda W: objective(problem, W))


class _Path:
    """Fits along penalties, each started from that of the next stronger one; the same for several splits."""

    def __init__(self, splits: list[tuple[Problem, Held]], W: np.ndarray, l1_ratio: float, fit: Fit) -> None:
        self.splits, self.start, self.l1_ratio, self.fit = splits, W, l1_ratio, fit
        self.ranges = [observed_range(training) for training, _ in splits]
        self.fits: dict[float, list[np.ndarray]] = {np.inf: [W] * len(splits)}
        self.errors: dict[float, float] = {}
        self.rescaled: dict[float, float] = {}

    def follow(self, alpha: float) -> float:
        """Fit all splits with a penalty, unless already done; return the error on the held-out pairs."""
        if alpha in self.errors:
            return self.errors[alpha]
        stronger = self.fits[min(other for other in self.fits if other > alpha)]
        problems = [penalised(training, alpha, self.l1_ratio) for training, _ in self.splits]
        self.fits[alpha] = self.fit(problems, [revived(W, self.start) for W in stronger])
        parts = zip(self.splits, self.fits[alpha], self.ranges, strict=True)
        judged = np.mean([held.judge(W, *ends) for (_, held), W, ends in parts], axis=0)
        self.errors[alpha], self.rescaled[alpha] = map(float, judged)
        return self.errors[alpha]

    def best(self, nearly: float) -> float:
        """The weakest penalty that explains nearly as much as the best, by errors smoothed along the path.

        Of the penalties for predictions as they are and for rescaled ones, it returns the stronger: in mostly noisy
        data the first is too weak, because it compensates for the shrinkage of W.
        """
        alphas = np.array(list(self.errors))
        n_held_out = sum(len(held.values) for _, held in self.splits)
        width = _WIDTH * min(1.0, np.sqrt(2 * _FEW_HELD_OUT / n_held_out))
        kernel = np.exp(-0.5 * ((np.log(alphas)[:, None] - np.log(alphas)) / width) ** 2)
        kernel /= kernel.sum(axis=1, keepdims=True)
        errors, rescaled = (kernel @ np.array(list(found.values())) for found in (self.errors, self.rescaled))
        rescaled = np.where(errors <= _WORSE * errors.min(), rescaled, np.inf)
        return max(
            float(alphas[values <= _nearly_least(values.min(), allowed)].min())
            for values, allowed in ((errors, nearly), (rescaled, 1 / np.sqrt(n_held_out)))
        )


def _nearly_least(least: float, nearly: float) -> float:
    """What counts as nearly the least unexplained share; rounding may make that share negative, or more than 1."""
    return least + nearly * max(1.0 - least, 0.0) * max(least, 0.0)


def revived(W: np.ndarray, start: np.ndarray) -> np.ndarray:
    """W with dimensions that vanished replaced by the start: no weaker penalty revives zeros."""
    gone = np.square(W).sum(axis=0) < 1e-6 * np.square(start).sum(axis=0)
    return np.where(gone, start, W) if gone.any() else W


def _some_items(problem: Problem, W: np.ndarray, rng: np.random.RandomState) -> tuple[Problem, np.ndarray]:
    """Complete similarities of many items reduced to a sample, which has the same best penalty."""
    n_chosen = min(max(_MOST_ITEMS, _ITEMS_PER_DIMENSION * W.shape[1]), problem.n_items)
    if isinstance(problem, PairProblem):
        return problem, W
    if isinstance(problem, MatrixProblem) and not (problem.complete and n_chosen < problem.n_items):
        return problem, W
    items = np.sort(rng.permutation(problem.n_items)[:n_chosen])
    return matrix_problem(similarities_among(problem, items)), W[items]


def _varying_splits(problem: Problem, n_splits: int, rng: np.random.RandomState) -> list[tuple[Problem, Held]]:
    """Up to `n_splits` splits whose held-out pairs vary."""
    splits: list[tuple[Problem, Held]] = []
    for _ in range(_MOST_DRAWS):
        split = hold_out(problem, rng)
        splits += [split] if split[1].varies() else []
        if len(splits) == n_splits:
            break
    return splits


def hold_out(problem: Problem, rng: np.random.RandomState) -> tuple[Problem, Held]:
    """The problem without some of its pairs, and the held-out pairs."""
    if isinstance(problem, FactorProblem):
        raise TypeError("pairs of factors cannot be held out")
    if isinstance(problem, PairProblem):
        return _hold_out_listed(problem, rng)
    values = problem.values.copy()
    values[problem.unknown, problem.unknown] = np.nan
    rows, columns = np.nonzero(np.triu(~np.isnan(values), 1))
    drawn = _drawn(len(rows), rng)
    rows, columns = rows[drawn], columns[drawn]
    held, weights = values[rows, columns].astype(np.float64), np.ones(len(rows))
    values[rows, columns] = values[columns, rows] = np.nan
    if problem.weights.size:
        weights = problem.weights[rows, columns].astype(np.float64)
    return matrix_problem(values, problem.weights if problem.weights.size else None), Held(rows, columns, held, weights)


def _hold_out_listed(problem: PairProblem, rng: np.random.RandomState) -> tuple[Problem, Held]:
    """Listed pairs lose their weight; weighted zeros that are not listed are listed with weight zero."""
    n = problem.n_items
    rows = np.repeat(np.arange(n), np.diff(problem.starts))
    upper = np.flatnonzero((rows < problem.partners) & (problem.weights > 0))
    drawn = upper[_drawn(len(upper), rng)]
    i, j = rows[drawn], problem.partners[drawn].astype(np.int64)
    held = Held(i, j, problem.values[drawn].astype(np.float64), problem.weights[drawn].astype(np.float64))
    mirrored = sparse.csr_array((np.arange(len(rows)), problem.partners, problem.starts), shape=(n, n)).T.tocsr().data
    weights = problem.weights.copy()
    weights[drawn] = weights[mirrored[drawn]] = 0.0
    training = replace(problem, weights=weights)
    if problem.background == 0.0:
        return training, held
    # As many zeros as pairs; each stands for the same share of all zeros as the pairs do of the listed ones.
    zeros = _absent_pairs(problem, rows, len(drawn), rng)
    n_absent = (n * (n - 1) - len(rows)) / 2
    each = problem.background * n_absent * len(drawn) / max(len(upper), 1) / max(len(zeros[0]), 1)
    n_zeros = len(zeros[0])
    parts = zip(held, (*zeros, np.zeros(n_zeros), np.full(n_zeros, each)), strict=True)
    return _listing(training, rows, *zeros), Held(*map(np.concatenate, parts))


def _absent_pairs(
    problem: PairProblem, rows: np.ndarray, n_wanted: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct unlisted pairs, up to a given number."""
    n = problem.n_items
    i, j = rng.randint(n, size=(2, 3 * n_wanted + 16))
    keys = np.unique((np.minimum(i, j) * n + np.maximum(i, j))[i != j])
    keys = rng.permutation(np.setdiff1d(keys, rows.astype(np.int64) * n + problem.partners))[:n_wanted]
    return keys // n, keys % n


def _listing(problem: PairProblem, rows: np.ndarray, i: np.ndarray, j: np.ndarray) -> PairProblem:
    """The problem with further pairs listed with weight zero, which have no effect."""
    all_rows, partners = np.concatenate([rows, i, j]), np.concatenate([problem.partners, j, i])
    order = np.lexsort((partners, all_rows))
    zeros = np.zeros(2 * len(i), problem.dtype)
    return replace(
        problem,
        starts=np.concatenate([[0], np.cumsum(np.bincount(all_rows, minlength=problem.n_items))]),
        partners=partners[order].astype(np.int32),
        values=np.concatenate([problem.values, zeros])[order],
        weights=np.concatenate([problem.weights, zeros])[order],
    )


def _drawn(n_pairs: int, rng: np.random.RandomState) -> np.ndarray:
    """Positions of the held-out pairs."""
    return np.flatnonzero(rng.uniform(size=n_pairs) < min(_HELD_OUT, _MOST_HELD_OUT / max(n_pairs, 1)))
