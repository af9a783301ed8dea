"""One fit of a cross-validation, and the errors of all fits of one rank, as functions of arrays and seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from simdims import _parallel, _threads, solvers
from simdims.selection.result import Score
from simdims.selection.splits import Pairs, assign_folds, draw_pairs, pool_sampling, training_problem
from simdims.similarity.arrays import Arrays
from simdims.srf import SRF, solve_many

#: First word of the name of a task, which determines its seed (calibration uses 0 and 1).
_PAIRS, _SPLIT, _FIT, _SAMPLE, ALPHA, RESAMPLES, BEYOND_ONE = 2, 3, 4, 5, 6, 7, 8

#: Loadings gathered at a time for products of pairs; they should fit into the processor's cache.
_CHUNK = 2**18

#: Size of W W^T up to which predictions come from it, and its entries per prediction.
_MOST_PRODUCTS, _FEW_UNUSED = 2**22, 10

#: Pairs and their folds are stored up to this many bytes, and otherwise drawn again for every use.
_MOST_KEPT = 2**28

#: Training data of folds are kept for further ranks up to this many bytes, and otherwise prepared again.
_MOST_KEPT_FOR_RANKS = 2**30

#: Pairs whose individual errors are stored, for standard errors.
_MOST_SAMPLED = 20_000

#: Similarities count as constant if their variance is less than this share of their squared mean.
_CONSTANT = 1e-12


class Design(NamedTuple):
    """What all fits of a selection share besides the similarities."""

    sampling: float | None
    n_folds: int
    n_repeats: int
    root: int


class Task(NamedTuple):
    """One fit."""

    rank: int
    repeat: int
    fold: int

    @property
    def name(self) -> str:
        """The name of the file with its embedding."""
        return f"fit-{self.rank}-{self.repeat}-{self.fold}"


class Fit(NamedTuple):
    """The stored part of one fit: its embedding, and the range for clipping predictions."""

    task: Task
    W: np.ndarray
    low: float
    high: float
    iterations: int
    converged: bool
    seconds: float

    def row(self, error: float, error_alone: float) -> dict[str, Any]:
        """A row of `RankSelection.scores`."""
        how = {"iterations": self.iterations, "converged": self.converged, "seconds": self.seconds}
        return {**self.task._asdict(), "error": error, "error_alone": error_alone, **how}


class Training(NamedTuple):
    """The problem of a fold, and the range of its similarities."""

    problem: solvers.Problem
    low: float
    high: float


class Splits:
    """The pairs of a matrix that may be held out, and their folds in each repeat, derived from the seed.

    `n_threads` prepare and score the fits that a device runs together.
    """

    def __init__(self, matrix: Arrays, design: Design, n_threads: int = 1) -> None:
        self.matrix, self.design, self.n_threads = matrix, design, n_threads
        self._pairs: Pairs | None = None
        self._folds: dict[int, np.ndarray] = {}
        self._trainings: dict[tuple[int, int], Training] = {}

    @property
    def pairs(self) -> Pairs:
        """The pairs that may be held out, the same in every repeat."""
        if self._pairs is not None:
            return self._pairs
        pairs = draw_candidates(self.matrix, self.design.root)
        n_bytes = sum(part.nbytes for part in pairs[:4]) + 4 * self.design.n_repeats * len(pairs.rows)
        if n_bytes <= _MOST_KEPT:
            self._pairs = pairs
        return pairs

    def folds(self, repeat: int) -> np.ndarray:
        """The fold of every pair in a repeat."""
        if repeat in self._folds:
            return self._folds[repeat]
        folds = draw_folds(len(self.pairs.rows), self.design, repeat)
        if self._pairs is not None:
            self._folds[repeat] = folds
        return folds

    @cached_property
    def sample(self) -> tuple[np.ndarray, int]:
        """`sample_of_pairs`."""
        return sample_of_pairs(len(self.pairs.rows), self.design.root)

    def trainings(self, tasks: Sequence[Task], *, is_penalised: bool) -> list[Training]:
        """The training data of tasks, the same for every rank."""
        places = [(task.repeat, task.fold) for task in tasks]
        new = [place for place in dict.fromkeys(places) if place not in self._trainings]
        pairs, folds = self.pairs, {repeat: self.folds(repeat) for repeat, _ in new}

        def prepare(place: tuple[int, int]) -> Training:
            own = folds[place[0]]
            problem = training_problem(self.matrix, pairs, (own >= 0) & (own != place[1]))
            if is_penalised:
                solvers.noise_scale(problem)  # the problem keeps it: here it is computed in several threads
            return Training(problem, *solvers.observed_range(problem))

        found = self._trainings | dict(zip(new, _threads.mapped(prepare, new, self.n_threads), strict=True))
        n_fits = self.design.n_folds * self.design.n_repeats
        if new and n_fits * _bytes_of(found[new[0]].problem) <= _MOST_KEPT_FOR_RANKS:
            self._trainings = found
        return [found[place] for place in places]


def fit_fold(*arguments: Any) -> Fit:
    """One fit, possibly in another process; see `fit_batch`."""
    *shared, task = arguments
    return fit_batch(*shared, (task,))[0]


def fit_batch(*arguments: Any) -> list[Fit]:
    """Fits in another process: splits are redrawn from their seeds, so only the similarities are sent."""
    *parts, design, estimator, tasks = arguments
    return fit_folds(Splits(Arrays(*parts), design), estimator, tasks)


def fit_folds(splits: Splits, estimator: SRF, tasks: Sequence[Task]) -> list[Fit]:
    """Fits of one rank; all together if the estimator uses a device."""
    start = time.perf_counter()
    with _threads.one_blas_thread():
        trainings = splits.trainings(tasks, is_penalised=estimator.alpha != 0.0)
        found = fit_trainings(splits.matrix, trainings, estimator, splits.design.root, tasks)
    seconds = (time.perf_counter() - start) / len(tasks)
    return [
        Fit(task, solution.W, training.low, training.high, solution.n_iter, solution.converged, seconds)
        for task, training, solution in zip(tasks, trainings, found, strict=True)
    ]


def draw_candidates(matrix: Arrays, root: int) -> Pairs:
    """The pairs that may be held out, the same in every repeat."""
    return draw_pairs(matrix, np.random.default_rng(_parallel.seed_of(root, _PAIRS)))


def draw_folds(n_pairs: int, design: Design, repeat: int) -> np.ndarray:
    """The fold of every pair in a repeat."""
    rng = np.random.default_rng(_parallel.seed_of(design.root, _SPLIT, repeat))
    return assign_folds(n_pairs, design.sampling, design.n_folds, rng)


def variance_of(pairs: Pairs) -> float:
    """The variance of the similarities that may be held out, weighted as in a score."""
    total = pairs.weights.sum()
    mean = pairs.weights @ pairs.values / total
    return float(pairs.weights @ (pairs.values - mean) ** 2 / total)


def fit_trainings(
    matrix: Arrays, trainings: Sequence[Training], estimator: SRF, root: int, tasks: Sequence[Task]
) -> list[solvers.Solution]:
    """Fit the training pairs and the diagonal for each task."""
    problems = [training.problem for training in trainings]
    seeds = [_parallel.seed_of(root, _FIT, *task) for task in tasks]
    solutions = solve_many(estimator, problems, tasks[0].rank, seeds)
    if not matrix.absent_weight:
        # For items without any training pair, W still holds the initial values.
        for problem, solution in zip(problems, solutions, strict=True):
            unseen = (solvers.partner_counts(problem) == 0) & (problem.diagonal_weights == 0)
            solution.W[unseen] = 0.0
    return solutions


def _bytes_of(problem: solvers.Problem) -> int:
    return sum(part.nbytes for part in vars(problem).values() if isinstance(part, np.ndarray))


def predict(W: np.ndarray, rows: np.ndarray, columns: np.ndarray, low: float, high: float) -> np.ndarray:
    """w_i . w_j of every pair, clipped; from W W^T if that is small and many of its entries are needed."""
    n = len(W)
    if n * n <= min(_MOST_PRODUCTS, _FEW_UNUSED * len(rows)):
        return (W @ W.T).ravel().take(rows * n + columns).astype(np.float64, copy=False).clip(low, high)
    predicted = np.empty(len(rows))
    chunk = max(_CHUNK // W.shape[1], 1)
    for start in range(0, len(rows), chunk):
        e = slice(start, start + chunk)
        np.einsum("ek,ek->e", W.take(rows[e], axis=0), W.take(columns[e], axis=0), out=predicted[e])
    return predicted.clip(low, high)


@_threads.one_blas_thread()
def score_fits(splits: Splits, fits: Sequence[Fit], *, rescaled: bool = False) -> Score:
    """The errors of all fits of one rank on their folds: of the combined predictions, and of each fit alone.

    The combined predictions are the means of all fits for which the pair was held out, or if `rescaled` those of the
    fit of its fold after a linear transformation (see `_lines`). Also returns what standard errors need: the
    contribution of each item, and of each pair of a sample, to both mean errors.
    """
    pairs, n_threads = splits.pairs, splits.n_threads
    n_pairs = len(pairs.rows)
    folds = {repeat: splits.folds(repeat) for repeat in {fit.task.repeat for fit in fits}}
    total, count = np.zeros(n_pairs), np.zeros(n_pairs, dtype=np.int32)
    held = []

    def of_unseen(fit: Fit) -> tuple[np.ndarray, np.ndarray, _Held]:
        own = folds[fit.task.repeat]
        in_fold = own == fit.task.fold
        unseen = np.flatnonzero(in_fold if rescaled else in_fold | (own < 0))
        predicted = predict(fit.W, pairs.rows[unseen], pairs.columns[unseen], fit.low, fit.high)
        is_held = in_fold[unseen]
        those = unseen[is_held]
        return unseen, predicted, _Held(those, predicted[is_held], pairs.values[those], pairs.weights[those])

    for unseen, predicted, own_pairs in _threads.mapped(of_unseen, fits, n_threads):
        if not rescaled:
            total[unseen] += predicted
            count[unseen] += 1
        held.append(own_pairs)
    repeats = np.array([fit.task.repeat for fit in fits])
    lines = _lines(held, repeats, n_threads) if rescaled else []
    place, n_sampled = splits.sample

    def of_fold(number: int) -> tuple[list[np.ndarray], tuple[np.ndarray, np.ndarray], np.ndarray]:
        those, alone, values, weights = held[number]
        if rescaled:
            mean_y, slope, mean_x = lines[number]
            judged = mean_y + slope * (alone - mean_x)
        else:
            judged = total[those] / count[those]
        share = weights / weights.sum()
        squares = [share * (predicted - values) ** 2 for predicted in (judged, alone)]
        return [*squares, share], (pairs.rows[those], pairs.columns[those]), place[those]

    rows = []
    items, sample = np.zeros((3, splits.matrix.n_items)), np.zeros((3, n_sampled))
    for fit, (parts, ends, sampled) in zip(fits, _threads.mapped(of_fold, range(len(fits)), n_threads), strict=True):
        add_parts(items, sample, ends, sampled, parts)
        rows.append(fit.row(float(parts[0].sum()), float(parts[1].sum())))
    return Score(rows, items / len(fits), sample / len(fits), n_pairs / n_sampled)


class _Held(NamedTuple):
    """The pairs of a fold, their predictions by its fit, their similarities and weights."""

    those: np.ndarray
    predicted: np.ndarray
    values: np.ndarray
    weights: np.ndarray


def _lines(held: Sequence[_Held], repeats: np.ndarray, n_threads: int) -> list[tuple[float, float, float]]:
    """For every fold, the line a + b w_i . w_j with b >= 0 from the other folds of its repeat.

    A line is its mean of y, its slope and its mean of x. A penalty makes all predictions too small and shifts the mean;
    with strong noise, that costs more than a weak dimension gains. After a linear transformation only differences
    between pairs count.
    """

    def sums_of(fold: _Held) -> list[float]:
        _, x, y, weights = fold
        return [np.sum(weights * part) for part in (1.0, x, y, x * x, x * y)]

    # Sums of 1, x, y, x^2 and x y over the pairs of each fold determine the line for any union of folds.
    sums = np.array(list(_threads.mapped(sums_of, held, n_threads)))
    lines = []
    for fold, repeat in enumerate(repeats):
        n, sx, sy, sxx, sxy = sums[repeats == repeat].sum(axis=0) - sums[fold]
        spread = sxx - sx * sx / n
        slope = max(0.0, (sxy - sx * sy / n) / spread) if spread > _CONSTANT * sxx else 0.0
        lines.append((sy / n, slope, sx / n))
    return lines


def score_mean(splits: Splits) -> Score:
    """`score_fits` if every held-out pair is predicted by the mean of all observed pairs.

    Errors are 0 if the similarities do not vary beyond rounding.
    """
    pairs, design = splits.pairs, splits.design
    n_pairs = len(pairs.rows)
    mean = np.average(pairs.values, weights=pairs.weights)
    squares = (pairs.values - mean) ** 2 if variance_of(pairs) > _CONSTANT * mean**2 else np.zeros(n_pairs)
    place, n_sampled = splits.sample
    items, sample = np.zeros((2, splits.matrix.n_items)), np.zeros((2, n_sampled))
    rows = []
    for repeat in range(design.n_repeats):
        folds = splits.folds(repeat)

        def of_fold(fold: int, folds: np.ndarray = folds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            those = np.flatnonzero(folds == fold)
            weights = pairs.weights[those]
            share = weights / weights.sum()
            return those, share * squares[those], share

        for those, errors, share in _threads.mapped(of_fold, range(design.n_folds), splits.n_threads):
            ends = (pairs.rows[those], pairs.columns[those])
            add_parts(items, sample, ends, place[those], [errors, share])
            rows.append({"error": float(errors.sum()), "error_alone": float(errors.sum())})
    both_errors = [0, 0, 1]
    return Score(rows, items[both_errors] / len(rows), sample[both_errors] / len(rows), n_pairs / n_sampled)


def add_parts(
    items: np.ndarray,
    sample: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray],
    place: np.ndarray,
    parts: list[np.ndarray],
) -> None:
    """Add the contributions of some pairs to those of their items and, for sampled pairs, to their own."""
    sampled = place >= 0
    for row, part in enumerate(parts):
        for end in ends:
            items[row] += np.bincount(end, part, minlength=items.shape[1])
        sample[row] += np.bincount(place[sampled], part[sampled], minlength=sample.shape[1])


def sample_of_pairs(n_pairs: int, root: int) -> tuple[np.ndarray, int]:
    """The position of every pair in a sample that is the same for all ranks, or -1; and the size of the sample."""
    n_sampled = min(n_pairs, _MOST_SAMPLED)
    place = np.full(n_pairs, -1, dtype=np.int32)
    chosen = np.random.default_rng(_parallel.seed_of(root, _SAMPLE)).permutation(n_pairs)[:n_sampled]
    place[chosen] = np.arange(n_sampled)
    return place, n_sampled


def most_dimensions(splits: Splits) -> int:
    """The largest rank with no more loadings than training similarities, the diagonal included.

    Beyond it the training pairs do not determine a fit, and its error reflects the start rather than the number of
    dimensions.
    """
    matrix, design = splits.matrix, splits.design
    if matrix.absent_weight:
        return matrix.n_items - 1  # unlisted zeros are training values too
    n_pairs = len(splits.pairs.rows)
    trained = pool_sampling(design.sampling, design.n_folds) * (1 - 1 / design.n_folds) * n_pairs
    return int(min(matrix.n_items - 1, max(1, 1 + trained // matrix.n_items)))
