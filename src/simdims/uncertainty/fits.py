"""One resample: draw systems, items or pairs, fit them as the reference was fitted, and match its dimensions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims import _threads, solvers
from simdims.consensus.alignment import align
from simdims.solvers import joint_resampling

#: Resamples differ little from the reference, so fits have to be more precise than usual.
TOL = 1e-5

#: A fit from a random start is kept if its objective is lower than that of the fit from the reference by this fraction.
_GAIN = 1e-4
_RANDOM_TOL = 1e-4


class Reference(NamedTuple):
    """The fit that is resampled: its problem, the same problem with all pairs in lists, and its solution.

    `threshold` is the correlation from which a dimension of a resample matches one of the reference.
    """

    problem: solvers.JointProblem
    lists: solvers.JointProblem
    W: NDArray[np.float64]
    weights: NDArray[np.float64]
    alpha: float
    max_iter: int
    threshold: float


class Resample(NamedTuple):
    """A fit to a resample, with dimensions in the order and on the scale of the reference.

    `correlations` are those of the dimensions with the reference's, over items.
    """

    number: int
    W: NDArray[np.float64]
    weights: NDArray[np.float64]
    shares: NDArray[np.float64]
    correlations: NDArray[np.float64]
    r2: float
    converged: bool


def fit_resample(reference: Reference, over: str, root: int, number: int) -> Resample:
    """Draw and fit one resample, with one BLAS thread, so that results do not depend on where it runs."""
    rng = np.random.default_rng(np.random.SeedSequence(root, spawn_key=(number,)))
    with _threads.one_blas_thread():
        if over == "systems":
            return _of_systems(reference, number, rng)
        counts, factor = draw_weights(reference.lists, over, rng)
        problem = joint_resampling.reweighted(reference.lists, factor, counts)
        found = _fit(reference, problem, reference.W, reference.weights, rng)
        W, a = found.W, found.weights
        if counts is not None:
            W = joint_resampling.place_items(reference.lists, W, a, np.flatnonzero(counts == 0), counts)
        r2 = mean_of_known(joint_resampling.variance_explained_jointly(problem, W, a))
        aligned = align(W, reference.W)
        W, a = W[:, aligned.permutation], a[:, aligned.permutation]
        return Resample(number, W, a, shares_of(W, counts), aligned.similarity, r2, found.converged)


def draw_weights(
    lists: solvers.JointProblem, over: str, rng: np.random.Generator
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64]]:
    """How often each item is drawn, if items are resampled, and the factor for the weight of each listed pair."""
    if over == "pairs":
        return None, joint_resampling.pair_counts(lists, rng)
    n, listed = lists.n_items, lists.listed
    while True:
        counts = rng.multinomial(n, np.full(n, 1.0 / n)).astype(np.float64)
        factor = np.repeat(counts, np.diff(listed.starts)) * counts[listed.partners]
        if np.any(factor * listed.weights > 0):  # copies of few items may not include a pair
            return counts, factor


def draw_systems(n_systems: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Systems drawn with replacement, sorted; at least two different ones."""
    while True:
        chosen = np.sort(rng.integers(n_systems, size=n_systems))
        if chosen[0] != chosen[-1]:
            return chosen


def _of_systems(reference: Reference, number: int, rng: np.random.Generator) -> Resample:
    """A fit to resampled systems, on the scale of the reference, followed by the weights of all systems.

    In a resample, weights have mean 1 over other systems. To remove this variation from the loadings, each dimension is
    scaled such that the mean weight of the drawn systems is their mean in the reference; dimensions that match none of
    the reference are not scaled. The weights of a system given W vary with the noise in its own pairs, which are
    therefore drawn again; so does their mean over systems, and with it the scale of the dimension. Items that only
    other systems have are placed by the pairs of those systems.
    """
    n_systems = len(reference.weights)
    chosen = draw_systems(n_systems, rng)
    means = reference.weights[chosen].mean(axis=0)
    scale = np.where(means > 0, means, 1.0)
    start = reference.weights[chosen] / scale
    start[:, means == 0] = 1.0
    problem = joint_resampling.resampled_systems(reference.problem, chosen)
    found = _fit(reference, problem, reference.W * np.sqrt(means), start, rng)
    drawn, first = np.unique(chosen, return_index=True)
    has_pairs = _items_of(reference.lists, drawn)
    aligned = align(found.W[has_pairs], reference.W[has_pairs])
    order, correlations = aligned.permutation, aligned.similarity
    scale = np.where(correlations >= reference.threshold, scale, 1.0)
    W, fitted = found.W[:, order] / np.sqrt(scale), found.weights[:, order] * scale
    own = reference.weights.copy()
    own[drawn] = fitted[first]
    W = joint_resampling.place_items(reference.lists, W, own, np.flatnonzero(~has_pairs), has_pairs.astype(np.float64))
    explained = joint_resampling.variance_explained_jointly(reference.lists, W, own)[chosen]
    noisy = joint_resampling.reweighted(reference.lists, joint_resampling.pair_counts(reference.lists, rng))
    weights = solvers.weights_of(noisy, W)
    strength = np.where(weights.any(axis=0), weights.mean(axis=0), 1.0)
    W, weights = W * np.sqrt(strength), weights / strength
    r2 = mean_of_known(explained)
    return Resample(number, W, weights, shares_of(W), correlations, r2, found.converged)


def _items_of(lists: solvers.JointProblem, systems: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which items have a pair in any of these systems."""
    listed, n = lists.listed, lists.n_items
    known = np.isin(listed.systems, systems) & (listed.weights > 0)
    return np.bincount(listed.partners[known], minlength=n) > 0


def _fit(
    reference: Reference, problem: solvers.JointProblem, W: NDArray, a: NDArray, rng: np.random.Generator
) -> solvers.JointSolution:
    """The better of two fits: from the reference, and from a random start.

    A fit from the reference alone would recover its dimensions in a nearby local minimum, however badly they fit the
    resample.
    """
    found = solvers.solve_jointly(problem, W, a, max_iter=reference.max_iter, tol=TOL)
    random = np.random.RandomState(int(rng.integers(2**31 - 1)))
    start = solvers.joint_start(problem, W.shape[1], random)
    if not solvers.knows_all_pairs(reference.problem):
        start = solvers.approach_jointly(problem, start, reference.alpha)
    other = solvers.solve_jointly(problem, start, max_iter=reference.max_iter, tol=_RANDOM_TOL)
    if other.objective < (1.0 - _GAIN) * found.objective:
        other = solvers.solve_jointly(problem, other.W, other.weights, max_iter=reference.max_iter, tol=TOL)
        return other
    return found


def shares_of(W: NDArray[np.float64], counts: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """The share of each dimension in the squared loadings, with items counted as often as they were drawn."""
    squares = np.sum(W**2 if counts is None else counts[:, None] * W**2, axis=0)
    return squares / (squares.sum() or 1.0)


def mean_of_known(values: NDArray[np.float64]) -> float:
    """The mean of the defined values; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan
