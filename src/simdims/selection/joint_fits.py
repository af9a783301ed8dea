"""Cross-validation of several systems: pairs held out within each, joint and separate fits, and their errors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from simdims import _parallel, _threads, solvers
from simdims._journal import Work
from simdims.joint import JointSRF, fit_from_seed, settle_penalties
from simdims.selection.fits import ALPHA, Design, Fit, Task, add_parts, sample_of_pairs
from simdims.selection.result import Score
from simdims.selection.splits import OUTSIDE_POOL, pool_sampling, sample_absent
from simdims.solvers.joint_pairs import known_range, one_system, without_pairs

#: First word of the name of a task, which determines its seed (fits.py and calibration.py use those before).
_PAIRS, _SPLIT, _FIT, _ALONE = 10, 11, 12, 13

#: Products of pairs computed at a time.
_CHUNK = 2**21

#: Number of pairs of a system at which the line from predictions to similarities is half that of its own pairs.
_PAIRS_FOR_A_LINE = 10

#: Similarities count as constant if their variance is less than this share of their squared mean.
_CONSTANT = 1e-12


class JointPairs(NamedTuple):
    """Pairs of different items (rows < columns) of a system that a fold may hold out, and their weight in a score.

    If a system does not store zeros, as many of them are drawn as it has pairs, and stand for all of them.
    """

    systems: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weights: np.ndarray


def draw_pairs(problem: solvers.JointProblem, root: int) -> JointPairs:
    """The pairs that may be held out, the same in every repeat."""
    n, listed, rows = problem.n_items, problem.listed, problem.listed.rows
    upper = rows < listed.partners
    known = upper & (listed.weights > 0)
    parts = [(listed.systems[known], rows[known], listed.partners[known], listed.values[known], listed.weights[known])]
    for m in np.flatnonzero(problem.zeros).tolist():
        own = upper & (listed.systems == m)
        taken = np.sort(rows[own].astype(np.int64) * n + listed.partners[own])
        n_absent = n * (n - 1) // 2 - len(taken)
        is_dense = m in problem.dense
        n_drawn = n_absent if is_dense else min(int(np.count_nonzero(known & (listed.systems == m))), n_absent)
        rng = np.random.default_rng(_parallel.seed_of(root, _PAIRS, m))
        i, j = np.divmod(sample_absent(n, taken, n_drawn, rng), n)
        values = problem.dense[m][i, j].astype(np.float64) if is_dense else np.zeros(n_drawn)
        each = problem.zeros[m] * n_absent / max(n_drawn, 1)
        parts.append((np.full(n_drawn, m, np.int32), i, j, values, np.full(n_drawn, each)))
    return JointPairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def draw_folds(pairs: JointPairs, n_systems: int, design: Design, repeat: int) -> np.ndarray:
    """The fold of every pair in a repeat, or OUTSIDE_POOL; the pairs of each system are split separately."""
    rng = np.random.default_rng(_parallel.seed_of(design.root, _SPLIT, repeat))
    pool = np.flatnonzero(rng.random(len(pairs.rows)) < pool_sampling(design.sampling, design.n_folds))
    order = pool[np.lexsort((rng.random(len(pool)), pairs.systems[pool]))]
    counts = np.bincount(pairs.systems[order], minlength=n_systems)
    within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    # Systems start with different folds, so that if each has few pairs, they do not all fall into the first folds.
    first = rng.integers(design.n_folds, size=n_systems)[pairs.systems[order]]
    folds = np.full(len(pairs.rows), OUTSIDE_POOL, dtype=np.int32)
    folds[order] = (within + first) % design.n_folds
    return folds


def most_dimensions(problem: solvers.JointProblem, n_pairs: int, design: Design) -> int:
    """The largest rank with no more loadings and weights than training similarities."""
    n = problem.n_items
    if any(m not in problem.dense for m in np.flatnonzero(problem.zeros)):
        return n - 1  # unlisted zeros are training values too
    trained = pool_sampling(design.sampling, design.n_folds) * (1 - 1 / design.n_folds) * n_pairs
    n_weights = problem.n_systems if problem.n_systems > 1 else 0
    return int(min(n - 1, max(1, 1 + trained // (n + n_weights))))


def settle_at(
    problem: solvers.JointProblem, estimator: JointSRF, rank: int, work: Work, shrinkage: float | None = None
) -> tuple[float, float]:
    """`settle_penalties` with the seed and the record of a rank."""
    seed, record = _parallel.seed_of(work.root, ALPHA, rank), {"kind": "penalties", "rank": rank}
    return settle_penalties(problem, estimator, rank, seed, work, record, shrinkage)


def shrinkage_at(shrinkage: float, rank: int, chosen_at: int | None) -> float:
    """The shrinkage at a rank that pulls each weight towards 1 as strongly as the one chosen at another rank.

    mu = shrinkage sum Omega S^2 / (M r), and further dimensions that explain nothing should not change mu.
    """
    return shrinkage if chosen_at is None else shrinkage * rank / chosen_at


def fit_fold(
    problem: solvers.JointProblem, design: Design, estimator: JointSRF, chosen_at: int | None, task: Task
) -> Fit:
    """One joint fit, possibly in another process; the weights of the systems are rows below those of the items.

    `chosen_at` is the rank at which the shrinkage was chosen; None if it was given, which holds for every rank.
    """
    start = time.perf_counter()
    with _threads.one_blas_thread():
        pairs = draw_pairs(problem, design.root)
        folds = draw_folds(pairs, problem.n_systems, design, task.repeat)
        training = leave_out(problem, pairs, (folds < 0) | (folds == task.fold))
        seed = _parallel.seed_of(design.root, _FIT, *task)
        drawn = shrinkage_at(float(estimator.shrinkage), task.rank, chosen_at)
        found = _fit(training, clone(estimator).set_params(shrinkage=drawn), task.rank, seed)
    low, high = known_range(training)
    seconds = time.perf_counter() - start
    return Fit(task, np.vstack([found.W, found.weights]), low, high, found.n_iter, found.converged, seconds)


def fit_alone(
    problem: solvers.JointProblem, design: Design, estimator: JointSRF, rank: int, m: int
) -> tuple[int, float]:
    """A system and its contribution to the mean error of all folds if it is fitted separately."""
    with _threads.one_blas_thread():
        pairs = draw_pairs(problem, design.root)
        mine = pairs.systems == m
        own = JointPairs(*(column[mine] for column in pairs))._replace(systems=np.zeros(mine.sum(), np.int32))
        alone = one_system(problem, m)
        seed = _parallel.seed_of(design.root, _ALONE, rank, m)
        alpha, _ = settle_at(alone, estimator, rank, Work.unsaved(seed, None), np.inf)
        settled = clone(estimator).set_params(alpha=alpha, shrinkage=np.inf)
        error = 0.0
        for repeat in range(design.n_repeats):
            folds = draw_folds(pairs, problem.n_systems, design, repeat)
            for fold in range(design.n_folds):
                held = folds[mine] == fold
                training = leave_out(alone, own, (folds[mine] < 0) | held)
                weight = pairs.weights[folds == fold].sum()
                squares = _errors_alone(training, own, np.flatnonzero(held), settled, rank, seed)
                error += float(own.weights[held] @ squares) / weight
    return m, error / (design.n_repeats * design.n_folds)


def _errors_alone(
    training: solvers.JointProblem, pairs: JointPairs, those: np.ndarray, estimator: JointSRF, rank: int, seed: int
) -> np.ndarray:
    """Squared errors of a system fitted separately; without training pairs it predicts zeros."""
    if training.n_known == 0 or not len(those):
        return pairs.values[those] ** 2
    found = _fit(training, estimator, rank, seed)
    predicted = predict(found.W, found.weights, pairs, those).clip(*known_range(training))
    return (predicted - pairs.values[those]) ** 2


def leave_out(problem: solvers.JointProblem, pairs: JointPairs, held: np.ndarray) -> solvers.JointProblem:
    """The problem without the held-out pairs."""
    return without_pairs(problem, pairs.systems[held], pairs.rows[held], pairs.columns[held])


def _fit(problem: solvers.JointProblem, estimator: JointSRF, rank: int, seed: int) -> solvers.JointSolution:
    alpha, shrinkage = float(estimator.alpha), float(estimator.shrinkage)
    penalised = solvers.penalised_jointly(problem, rank, alpha, estimator.l1_ratio, shrinkage)
    return fit_from_seed(estimator, penalised, rank, seed)


def predict(W: np.ndarray, a: np.ndarray, pairs: JointPairs, those: np.ndarray) -> np.ndarray:
    """sum_k a_mk w_ik w_jk of the pairs at `those`."""
    predicted = np.empty(len(those))
    chunk = max(_CHUNK // W.shape[1], 1)
    for start in range(0, len(those), chunk):
        e = those[start : start + chunk]
        products = np.einsum("ek,ek,ek->e", W[pairs.rows[e]], a[pairs.systems[e]], W[pairs.columns[e]])
        predicted[start : start + chunk] = products
    return predicted


def score_fits(problem: solvers.JointProblem, design: Design, fits: Sequence[Fit]) -> Score:
    """The errors of all fits of one rank on their folds, each pair predicted by the fit of its fold.

    `systems` has the errors of these predictions, and of the same predictions on the line of their system (see
    `_on_lines`). Pairs are dependent if they share an item, in any system: standard errors need the contributions of
    pairs of items, summed over systems.
    """
    pairs = draw_pairs(problem, design.root)
    rows = []
    parts = _Parts(problem, pairs, design)
    held = [parts.of_fold(fit.task.repeat, fit.task.fold) for fit in fits]
    predicted = [
        predict(fit.W[: problem.n_items], fit.W[problem.n_items :], pairs, those).clip(fit.low, fit.high)
        for fit, those in zip(fits, held, strict=True)
    ]
    on_lines = _on_lines(pairs, problem.n_systems, held, predicted, np.array([fit.task.repeat for fit in fits]))
    for fit, those, x, on_line in zip(fits, held, predicted, on_lines, strict=True):
        error = parts.add(those, *((values - pairs.values[those]) ** 2 for values in (x, on_line)))
        rows.append(fit.row(error, error))
    return parts.score(rows)


def _on_lines(
    pairs: JointPairs, n_systems: int, held: Sequence[np.ndarray], predicted: Sequence[np.ndarray], repeats: np.ndarray
) -> list[np.ndarray]:
    """Predictions of every fold, adjusted to how their system uses the scale: on a line fitted to its other folds.

    With n pairs in those folds of the repeat, a prediction x becomes x + n / (n + 10) (a + b x - x), b >= 0: few pairs
    say little about a line.
    """
    # Sums over the pairs of each fold and system determine the line for any union of folds.
    sums = np.zeros((len(held), 6, n_systems))
    for fold, (those, x) in enumerate(zip(held, predicted, strict=True)):
        w, y, m = pairs.weights[those], pairs.values[those], pairs.systems[those]
        for place, part in enumerate((np.ones(len(x)), w, w * x, w * y, w * x * x, w * x * y)):
            sums[fold, place] = np.bincount(m, part, minlength=n_systems)
    on_lines = []
    for fold, x in enumerate(predicted):
        n_pairs, total, *moments = sums[repeats == repeats[fold]].sum(axis=0) - sums[fold]
        known = n_pairs > 0
        mx, my, mxx, mxy = np.divide(moments, total, out=np.zeros((4, n_systems)), where=known)
        spread = mxx - mx**2
        slope = np.zeros(n_systems)
        np.divide(np.maximum(mxy - mx * my, 0.0), spread, out=slope, where=spread > _CONSTANT * mxx)
        share = n_pairs / (n_pairs + _PAIRS_FOR_A_LINE)
        m = pairs.systems[held[fold]]
        on_lines.append(x + share[m] * (my[m] + slope[m] * (x - mx[m]) - x))
    return on_lines


def score_mean(problem: solvers.JointProblem, design: Design) -> Score:
    """`score_fits` if every pair is predicted by the mean of all observed pairs of its system.

    Errors are 0 if the similarities do not vary beyond rounding.
    """
    pairs = draw_pairs(problem, design.root)
    about = about_means(pairs, problem.n_systems)
    parts = _Parts(problem, pairs, design)
    rows = []
    for repeat in range(design.n_repeats):
        for fold in range(design.n_folds):
            those = parts.of_fold(repeat, fold)
            error = parts.add(those, about[those], about[those])
            rows.append({"error": error, "error_alone": error})
    return parts.score(rows)


def explained_variance(problem: solvers.JointProblem, W: np.ndarray, a: np.ndarray) -> float:
    """In-sample R2 over all systems, each relative to its own mean; unstored zeros are represented by a sample."""
    pairs = draw_pairs(problem, 0)
    squares = (predict(W, a, pairs, np.arange(len(pairs.rows))) - pairs.values) ** 2
    spread = float(pairs.weights @ about_means(pairs, problem.n_systems))
    return 1.0 - float(pairs.weights @ squares) / spread if spread > 0 else np.nan


def variance_of(problem: solvers.JointProblem, pairs: JointPairs) -> float:
    """The variance of the similarities of each system that may be held out, weighted as in a score."""
    return float(np.average(about_means(pairs, problem.n_systems), weights=pairs.weights))


def about_means(pairs: JointPairs, n_systems: int) -> np.ndarray:
    """Squared differences from the mean of the pair's system; zeros if nothing varies."""
    total = np.bincount(pairs.systems, pairs.weights, minlength=n_systems)
    first = np.bincount(pairs.systems, pairs.weights * pairs.values, minlength=n_systems)
    means = np.divide(first, total, out=np.zeros(n_systems), where=total > 0)
    about = (pairs.values - means[pairs.systems]) ** 2
    varies = np.average(about, weights=pairs.weights) > _CONSTANT * np.max(means) ** 2
    return about if varies else np.zeros(len(about))


class _Parts:
    """Sums of the contributions of pairs to a mean error over folds: by item, by sampled pair and by system."""

    def __init__(self, problem: solvers.JointProblem, pairs: JointPairs, design: Design) -> None:
        keys = pairs.rows.astype(np.int64) * problem.n_items + pairs.columns
        distinct, number = np.unique(keys, return_inverse=True)
        place, n_sampled = sample_of_pairs(len(distinct), design.root)
        self.pairs, self.place, self.pairs_per_sampled = pairs, place[number], len(distinct) / n_sampled
        self.folds = [draw_folds(pairs, problem.n_systems, design, repeat) for repeat in range(design.n_repeats)]
        self.items, self.sample = np.zeros((3, problem.n_items)), np.zeros((3, n_sampled))
        self.systems = np.zeros((2, problem.n_systems))

    def of_fold(self, repeat: int, fold: int) -> np.ndarray:
        """The pairs that the fold holds out."""
        return np.flatnonzero(self.folds[repeat] == fold)

    def add(self, those: np.ndarray, squares: np.ndarray, squares_on_line: np.ndarray) -> float:
        """Add the squared errors of a fold; return its mean error."""
        share = self.pairs.weights[those] / self.pairs.weights[those].sum()
        errors = share * squares
        ends = (self.pairs.rows[those], self.pairs.columns[those])
        add_parts(self.items, self.sample, ends, self.place[those], [errors, errors, share])
        for row, part in enumerate((errors, share * squares_on_line)):
            self.systems[row] += np.bincount(self.pairs.systems[those], part, minlength=self.systems.shape[1])
        return float(errors.sum())

    def score(self, rows: list[dict]) -> Score:
        """The sums as contributions to the mean over all folds."""
        n = len(rows)
        return Score(rows, self.items / n, self.sample / n, self.pairs_per_sampled, self.systems / n)
