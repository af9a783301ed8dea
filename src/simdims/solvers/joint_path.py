"""Choose the penalty and the shrinkage of a joint fit by holding out pairs within every system."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from simdims.solvers.joint import JointProblem, Listed, penalised_jointly, solve_jointly
from simdims.solvers.path import STEP_SWEEPS, STEP_TOL, revived
from simdims.solvers.problem import Penalty

#: The share of the known pairs held out; further splits are added below this many held-out pairs, up to this number.
_HELD_OUT, _FEW_HELD_OUT, _MOST_SPLITS = 0.1, 2500, 5

#: Above this many known pairs of all systems times squared dimensions (the work of a sweep), only the pairs between a
#: sample of the items are used.
_MOST_WORK = 4e7

#: Minimum number of sampled items per dimension.
_ITEMS_PER_DIMENSION = 4

#: Penalties of the path, strongest first, and of the steps towards a given penalty: the first one and their number.
_ALPHAS = 1.6 ** -np.arange(18.0)
_FROM, _N_STEPS = 0.5, 6

#: Width, in log(alpha), of the kernel that smooths held-out errors along the path, and the part of what the best
#: penalty explains that a weaker one may lose: a stronger penalty has to be worth its bias.
_WIDTH, _MAY_LOSE = 0.4, 0.001

#: The shrinkage at which the penalty is chosen, and the values that are then compared, strongest first.
_WHILE_CHOOSING_ALPHA = 1.0
_SHRINKAGES = (np.inf, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)

#: Fraction of the gain of the best shrinkage over equal weights that a weaker one has to keep: a stronger shrinkage has
#: to be worth its bias, which hides that a system lacks a dimension.
_NEARLY = 0.9

#: A path ends after this many consecutive values that do not lower the held-out error by this fraction.
_PATIENCE, _GAIN = 3, 1e-3

Fit = tuple[np.ndarray, np.ndarray]


def approach_jointly(problem: JointProblem, W: np.ndarray, alpha: float, device: str = "cpu") -> np.ndarray:
    """A start for a problem with penalty `alpha`: fits under decreasing penalties if pairs are missing.

    The ridge penalty and the shrinkage decrease together: free weights have poor minima of their own. If all systems
    know all pairs, random starts are nearly as good and much faster.
    """
    if not 0.0 < alpha < _FROM or knows_all_pairs(problem):
        return W
    start, unit = W, problem.squares / (problem.n_systems * W.shape[1])  # mu of a shrinkage of 1
    last = max(problem.mu, _SHRINKAGES[-1] * unit)
    mus = np.geomspace(max(last, unit), last, _N_STEPS + 1) if np.isfinite(last) else np.full(_N_STEPS + 1, last)
    for stronger, mu in zip(np.geomspace(_FROM, alpha, _N_STEPS + 1)[:-1], mus[:-1], strict=True):
        steeper = replace(problem, penalty=Penalty(stronger * problem.noise[0], 0.0), mu=float(mu))
        W = revived(solve_jointly(steeper, W, max_iter=STEP_SWEEPS, tol=STEP_TOL, device=device).W, start)
    return W


def choose_jointly(
    problem: JointProblem,
    W: np.ndarray,
    alpha: float | None,
    shrinkage: float | None,
    l1_ratio: float,
    rng: np.random.RandomState,
) -> tuple[float, float]:
    """The penalty and the shrinkage whose fits best predict held-out pairs; given values are kept.

    The penalty is chosen first, at a moderate shrinkage. Then all systems get the same weights unless differing weights
    gain more than one standard error in held-out prediction. If they do, the weakest shrinkage that keeps nine tenths
    of the gain is chosen.
    """
    if shrinkage is None and problem.n_systems == 1:
        shrinkage = np.inf
    if alpha is not None and shrinkage is not None:
        return alpha, shrinkage
    if problem.noise[0] == 0.0:
        return alpha or 0.0, np.inf if shrinkage is None else shrinkage
    search = _Search(problem, W, l1_ratio, rng)
    if alpha is None:
        alpha = search.best_alpha(_WHILE_CHOOSING_ALPHA if shrinkage is None else shrinkage)
    if shrinkage is None:
        shrinkage = search.best_shrinkage(alpha)
    return alpha, shrinkage


class Held(NamedTuple):
    """Held-out pairs: each once, with its system and weight."""

    systems: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weights: np.ndarray

    def squares(self, W: np.ndarray, a: np.ndarray, low: float, high: float) -> np.ndarray:
        """Squared errors of the predictions, clipped to the range of the fitted similarities."""
        predicted = np.einsum("ek,ek,ek->e", W[self.rows], a[self.systems], W[self.columns]).clip(low, high)
        return (predicted - self.values) ** 2


class _Search:
    """Fits to the remaining pairs along penalties and shrinkages, each started from the one before."""

    def __init__(self, problem: JointProblem, W: np.ndarray, l1_ratio: float, rng: np.random.RandomState) -> None:
        problem, self.start = _some_items(problem, W, rng)
        known = problem.listed.values[problem.listed.weights > 0]
        self.range = (float(known.min()), float(known.max()))
        n_splits = int(np.clip(2 * _FEW_HELD_OUT / (_HELD_OUT * max(len(known), 1)), 1, _MOST_SPLITS))
        splits = [hold_out_jointly(problem, rng) for _ in range(n_splits)]
        self.splits = [split for split in splits if len(split[1].rows)]
        self.l1_ratio = l1_ratio
        self.weights = np.concatenate([held.weights for _, held in self.splits]) if self.splits else np.empty(0)

    def best_alpha(self, shrinkage: float) -> float:
        """The weakest penalty that predicts nearly as well as the best."""
        if not self.splits:
            return 0.0
        errors: dict[float, float] = {}
        fits, n_idle = self._starts(), 0
        for alpha in _ALPHAS:
            fits, squares = self._follow(fits, float(alpha), shrinkage)
            error = float(np.average(squares, weights=self.weights))
            n_idle = 0 if error < (1 - _GAIN) * min(errors.values(), default=np.inf) else n_idle + 1
            errors[float(alpha)] = error
            if n_idle >= _PATIENCE:
                break
        values = np.concatenate([held.values for _, held in self.splits])
        mean = np.average(values, weights=self.weights)
        return _weakest_nearly_best(errors, float(np.average((values - mean) ** 2, weights=self.weights)))

    def best_shrinkage(self, alpha: float) -> float:
        """The weakest shrinkage that gains nearly as much as the best, or infinity if that gain is within its error."""
        if not self.splits:
            return np.inf
        errors: dict[float, np.ndarray] = {}
        fits = self._starts()
        for shrinkage in _SHRINKAGES:
            fits, errors[shrinkage] = self._follow(fits, alpha, shrinkage)
        gains = {one: self.weights * (errors[np.inf] - squares) for one, squares in errors.items()}
        best = max(gains, key=lambda one: float(gains[one].sum()))
        if not gains[best].sum() > np.sqrt(len(self.weights)) * gains[best].std():
            return np.inf
        return min(one for one in gains if gains[one].sum() >= _NEARLY * gains[best].sum())

    def _starts(self) -> list[Fit]:
        return [(self.start, np.ones((training.n_systems, self.start.shape[1]))) for training, _ in self.splits]

    def _follow(self, fits: list[Fit], alpha: float, shrinkage: float) -> tuple[list[Fit], np.ndarray]:
        """Fits of all splits started from the given fits, and their squared errors."""
        found, squares = [], []
        for (training, held), (W, a) in zip(self.splits, fits, strict=True):
            problem = penalised_jointly(training, W.shape[1], alpha, self.l1_ratio, shrinkage)
            weights = np.ones_like(a) if np.isinf(shrinkage) else a
            solution = solve_jointly(problem, revived(W, self.start), weights, max_iter=STEP_SWEEPS, tol=STEP_TOL)
            found.append((solution.W, solution.weights))
            squares.append(held.squares(solution.W, solution.weights, *self.range))
        return found, np.concatenate(squares)


def _weakest_nearly_best(errors: dict[float, float], variance: float) -> float:
    """The weakest penalty that explains nearly as much as the best; `variance` is the error of predicting the mean."""
    alphas, raw = np.array(list(errors)), np.array(list(errors.values()))
    kernel = np.exp(-0.5 * ((np.log(alphas)[:, None] - np.log(alphas)) / _WIDTH) ** 2)
    smoothed = kernel @ raw / kernel.sum(axis=1)
    explained = max(variance - smoothed.min(), 0.0)
    return float(alphas[smoothed <= smoothed.min() + _MAY_LOSE * explained].min())


def hold_out_jointly(problem: JointProblem, rng: np.random.RandomState) -> tuple[JointProblem, Held]:
    """A problem of listed pairs without some of them, and the held-out pairs."""
    listed, rows = problem.listed, problem.listed.rows
    upper = np.flatnonzero((rows < listed.partners) & (listed.weights > 0))
    drawn = upper[rng.uniform(size=len(upper)) < _HELD_OUT]
    mirrored = np.lexsort((rows, listed.systems, listed.partners))  # the order of the mirrored pairs
    weights = listed.weights.copy()
    weights[drawn] = weights[mirrored[drawn]] = 0.0
    held = Held(listed.systems[drawn], rows[drawn], listed.partners[drawn], listed.values[drawn], listed.weights[drawn])
    return replace(problem, listed=listed._replace(weights=weights)), held


def _some_items(problem: JointProblem, W: np.ndarray, rng: np.random.RandomState) -> tuple[JointProblem, np.ndarray]:
    """All pairs as lists, between few enough items, and the start of these items."""
    n = problem.n_items
    share = min(np.sqrt(_MOST_WORK / (problem.n_known / 2 * W.shape[1] ** 2)), 1.0)
    if not problem.zeros.any() and share == 1.0:
        return problem, W
    n_chosen = min(max(int(share * n), _ITEMS_PER_DIMENSION * W.shape[1]), n)
    items = np.sort(rng.permutation(n)[:n_chosen])
    return as_lists(problem, items), W[items]


def as_lists(problem: JointProblem, items: np.ndarray) -> JointProblem:
    """The problem of some items, with all their pairs in lists."""
    n, n_chosen = problem.n_items, len(items)
    place = np.full(n, -1)
    place[items] = np.arange(n_chosen)
    listed = problem.listed
    rows, columns = place[listed.rows], place[listed.partners]
    inside = (rows >= 0) & (columns >= 0)
    own = [(rows[inside], listed.systems[inside], columns[inside], listed.values[inside], listed.weights[inside])]
    for m in np.flatnonzero(problem.zeros):
        stored = own[0][1] == m
        own.append(_all_pairs(problem, int(m), items, own[0][0][stored], own[0][2][stored]))
    rows, systems, columns, values, weights = (np.concatenate(part) for part in zip(*own, strict=True))
    return replace(
        problem,
        n_items=n_chosen,
        dense={},
        listed=Listed.of(n_chosen, rows, systems.astype(np.int32), columns.astype(np.int32), values, weights),
        zeros=np.zeros(problem.n_systems),
        diagonal=np.ascontiguousarray(problem.diagonal[:, items]),
        diagonal_weights=np.ascontiguousarray(problem.diagonal_weights[:, items]),
        limits=problem.limits[items],
    )


def _all_pairs(
    problem: JointProblem, m: int, items: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of a system that its lists leave out: those of a dense matrix, or weighted zeros."""
    n = len(items)
    unlisted = ~np.eye(n, dtype=bool)
    unlisted[rows, columns] = False
    i, j = np.nonzero(unlisted)
    values = problem.dense[m][items[i], items[j]].astype(np.float64) if m in problem.dense else np.zeros(len(i))
    return i, np.full(len(i), m), j, values, np.full(len(i), problem.zeros[m])


def knows_all_pairs(problem: JointProblem) -> bool:
    """Whether every system knows all pairs."""
    return problem.n_known == problem.n_systems * problem.n_items * (problem.n_items - 1)
