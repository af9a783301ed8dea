"""Tests given nuisance variables: hypotheses are resampled given the nuisance, which is partialled out of both sides.

Under the null hypothesis, a hypothesis x is related to the representation only through the nuisance Z. The test needs
only the distribution of x given Z (a conditional randomisation test):

- numeric x: x = Z b + e with exchangeable e. Residuals of the regression of x on Z are permuted, and what Z explains of
  the permuted residuals is removed, so that the estimates of b and of the variance of e are the observed ones;
- binary x: the odds are exp(Z b). Permutations of x are drawn with probabilities proportional to exp(sum_i x_i Z_i b)
  (a conditional permutation test), by Berrett's sampler of swaps between disjoint pairs of items.

Nothing is assumed about the representation. Model matrices have no such distribution: the rows and columns of their
residuals are permuted together (double semi-partialling).

References: Berrett, T. B., et al. (2020). JRSS B 82, 175-197. Candes, E., et al. (2018). JRSS B 80, 551-577. Dekker,
D., Krackhardt, D. & Snijders, T. A. B. (2007). Psychometrika 72, 563-581.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from simdims._memory import require
from simdims._parameters import ParameterError
from simdims._progress import Callback
from simdims.inference import mantel
from simdims.inference.hypotheses import Hypotheses, Items, clean_hypotheses, clean_vectors
from simdims.inference.matching import aligned_correlation, standardise
from simdims.inference.permutations import Block, Statistics, permute
from simdims.similarity import Similarity

#: Rounds of swaps between an observed hypothesis and a resampled one.
N_ROUNDS = 50
#: Inverse strength of the penalty of the logistic regressions, which keeps odds finite.
LOGISTIC_C = 100.0
#: The nuisance explains a hypothesis if at most this share of its variance remains.
EXPLAINED = 1e-8


class Nuisance(Hypotheses):
    """Nuisance variables: columns with one value per item, or matrices with one per pair."""

    def describe(self, method: str) -> str:
        """A method, given the nuisance, in words."""
        listed = ", ".join(self.names) if len(self.names) <= 3 else f"{len(self.names)} nuisance variables"
        return f"{method}, given {listed}" if self.names else method


def clean_nuisance(nuisance: Any, items: Items, *, matrices: bool = False) -> Nuisance:
    """Read nuisance variables, if any, like hypotheses; errors name them."""
    if nuisance is None:
        return Nuisance((), np.empty((items.number, 0)))
    try:
        found = (clean_hypotheses if matrices else clean_vectors)(nuisance, items, "nuisance")
    except ParameterError as error:
        raise type(error)("nuisance", error.rule, error.got, error.remedy) from None
    return Nuisance(found.names, found.vectors, found.matrices)


# Resampling of columns


@dataclass(frozen=True, eq=False)
class Resampling:
    """Resamples hypotheses given the nuisance."""

    observed: NDArray[np.float64]  # (n_items, n_hypotheses)
    residuals: NDArray[np.float64]
    basis: NDArray[np.float64]  # orthonormal: a constant and the nuisance
    is_binary: NDArray[np.bool_]
    log_odds: NDArray[np.float64]  # of the larger value; zeros for numeric hypotheses
    hub: NDArray[np.intp]  # per binary hypothesis, the arrangement that all others are drawn from

    def draw(self, block: Block | None) -> NDArray[np.float64]:
        """Resampled hypotheses of shape (number, n_items, n_hypotheses); for None the observed ones."""
        X = self.observed
        if block is None:
            return X[None]
        drawn = (X - self.residuals) + self._redrawn(block.draw(len(X)))
        rng = np.random.default_rng(np.random.SeedSequence(block.root, spawn_key=(block.number, 1)))
        for j in np.flatnonzero(self.is_binary):
            start = np.tile(self.hub[:, j], (block.size, 1))
            drawn[:, :, j] = X[swapped(start, X[:, j], self.log_odds[:, j], rng), j]
        return drawn

    def _redrawn(self, permutations: NDArray[np.intp]) -> NDArray[np.float64]:
        """Permuted residuals, made uncorrelated with the nuisance and rescaled to the same length."""
        permuted = self.residuals[permutations]
        drawn = permuted - np.einsum("iq,bqj->bij", self.basis, np.einsum("iq,bij->bqj", self.basis, permuted))
        length, left = np.linalg.norm(self.residuals, axis=0), np.linalg.norm(drawn, axis=1, keepdims=True)
        return drawn * np.divide(length, left, out=np.zeros_like(left), where=left > 1e-7 * length)

    def without_nuisance(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Residuals of columns after regression on the nuisance."""
        return X - self.basis @ (self.basis.T @ X)

    def scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Deviations of draws in their products (number, n_nuisance, n_hypotheses) with the nuisance; 0 if numeric."""
        difference = np.where(self.is_binary, X - self.observed, 0.0)
        return np.einsum("iq,bij->bqj", self.basis[:, 1:], difference)


def resampling(hypotheses: Hypotheses, nuisance: Nuisance, seed: int) -> Resampling:
    """Fit the distribution of each hypothesis given the nuisance."""
    from sklearn.linear_model import LogisticRegression

    X = hypotheses.vectors / np.abs(hypotheses.vectors).max(axis=0)
    n_items = len(X)
    # A constant and the nuisance, without linearly dependent columns.
    left, sizes, _ = np.linalg.svd(standardise(nuisance.vectors).values, full_matrices=False)
    basis = np.hstack([np.full((n_items, 1), 1 / np.sqrt(n_items)), left[:, sizes > 1e-8 * sizes.max()]])
    if basis.shape[1] > n_items - 3:
        got = f"{basis.shape[1] - 1} independent ones for {n_items} items"
        raise ParameterError("nuisance", "must have at most n_items - 4 independent columns", got)
    residuals = X - basis @ (basis.T @ X)
    left = np.sum(residuals**2, axis=0) / np.sum((X - X.mean(axis=0)) ** 2, axis=0)
    if (left <= EXPLAINED).any():
        name = hypotheses.names[int(np.argmax(left <= EXPLAINED))]
        raise ParameterError("hypotheses", "must not be linear combinations of the {nuisance}", repr(name))
    is_binary = np.array([len(np.unique(x)) == 2 for x in X.T])
    log_odds = np.zeros_like(X)
    hub = np.tile(np.arange(n_items)[:, None], X.shape[1])
    predictors = basis[:, 1:] * np.sqrt(n_items)
    for j in np.flatnonzero(is_binary):
        low, high = np.unique(X[:, j])
        model = LogisticRegression(C=LOGISTIC_C, max_iter=1000).fit(predictors, X[:, j] == high)
        log_odds[:, j] = predictors @ model.coef_[0] / (high - low)  # up to a constant
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, int(j))))
        hub[:, j] = swapped(hub[None, :, j].copy(), X[:, j], log_odds[:, j], rng)[0]
    return Resampling(X, residuals, basis, is_binary, log_odds, hub)


def swapped(
    orders: NDArray[np.intp], x: NDArray[np.float64], log_odds: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Orders (one per row) after rounds of swaps that preserve P(order) ~ exp(sum_i x[order_i] log_odds_i)."""
    half = orders.shape[1] // 2
    places = np.tile(np.arange(orders.shape[1]), (len(orders), 1))
    for _ in range(N_ROUNDS):
        pairing = rng.permuted(places, axis=1)
        one, other = pairing[:, :half], pairing[:, half : 2 * half]
        at_one, at_other = (np.take_along_axis(orders, where, axis=1) for where in (one, other))
        gain = (x[at_other] - x[at_one]) * (log_odds[one] - log_odds[other])
        swaps = rng.random(gain.shape) < 1.0 / (1.0 + np.exp(-gain))
        np.put_along_axis(orders, one, np.where(swaps, at_other, at_one), axis=1)
        np.put_along_axis(orders, other, np.where(swaps, at_one, at_other), axis=1)
    return orders


def permute_given(
    given: Resampling,
    statistics: Statistics,
    n_permutations: int,
    seed: int,
    n_jobs: int | None,
    progress: bool | Callback | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Like `permute`, with hypotheses resampled given the nuisance instead of permuted items."""
    shape = statistics(given.draw(None)).shape[1:]
    both, n_parts = partial(_with_scores, statistics, given), math.prod(shape[:-1])
    observed, null = permute(both, len(given.observed), n_permutations, seed, n_jobs, progress, given.draw)
    return observed[:n_parts].reshape(shape), _adjusted(null, n_parts).reshape(len(null), *shape)


def _with_scores(statistics: Any, given: Resampling, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Statistics of shape (number, parts, n_hypotheses), followed by the scores that `_adjusted` needs."""
    values = statistics(X)
    return np.concatenate([values.reshape(len(X), -1, X.shape[2]), given.scores(X)], axis=1)


def _adjusted(null: NDArray[np.float64], n_parts: int) -> NDArray[np.float64]:
    """Null distributions conditional on the observed products of hypothesis and nuisance."""
    # Logistic regression makes these products equal to their expectations, so the observed hypothesis shows no
    # deviation in them, unlike the resampled ones. What a quadratic function of the deviations explains is removed.
    statistics, scores = null[:, :n_parts], null[:, n_parts:]
    result = statistics.copy()
    for j in range(null.shape[2]):
        U = np.hstack([scores[:, :, j], scores[:, :, j] ** 2])
        if not U.any() or len(U) <= 3 * U.shape[1]:
            continue
        centred = U - U.mean(axis=0)
        for part in range(n_parts):
            known = ~np.isnan(statistics[:, part, j])
            slopes = np.linalg.lstsq(centred[known], statistics[known, part, j], rcond=None)[0]
            result[:, part, j] -= U @ slopes
    return result


# Statistics of resampled columns


def dimension_correlations(
    given: Resampling, W: NDArray[np.float64], absolute: bool, X: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Partial correlations of hypotheses with matched columns of W, with the nuisance partialled out of both."""
    dimensions = standardise(W)
    columns = (standardise(given.without_nuisance(x)) for x in X)
    return np.stack([aligned_correlation(x, dimensions, W, joint=False, absolute=absolute) for x in columns])


class Pairs(NamedTuple):
    """Observed pairs, and similarities with the models of the nuisance partialled out."""

    n_items: int
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    roots: NDArray[np.float64]  # square roots of the weights
    values: NDArray[np.float64]  # residuals times roots, scaled to length 1
    basis: NDArray[np.float64]  # orthonormal columns: models of the nuisance times roots
    ranks: bool

    def correlations(self, H: NDArray[np.float64]) -> NDArray[np.float64]:
        """Partial correlations of the similarities with models, one per column."""
        H = H * self.roots[:, None]
        length = np.linalg.norm(H, axis=0)
        H = H - self.basis @ (self.basis.T @ H)
        left = np.linalg.norm(H, axis=0)
        varies = left > 1e-7 * length
        return np.where(varies, self.values @ H / np.where(varies, left, 1.0), np.nan)


def partial_pairs(similarity: Similarity, models: list[NDArray[np.float64]], *, ranks: bool) -> Pairs:
    """Observed pairs with nuisance models (matrices) and a constant partialled out."""
    require(8 * (6 + 3 * len(models)) * similarity.n_items**2, "Partial correlations over pairs", mantel.WAYS_OUT)
    pairs = mantel.as_pairs(similarity, ranks=ranks)
    columns = [model[pairs.first, pairs.second] for model in models]
    if any(np.isnan(column).any() for column in columns):
        raise ParameterError("nuisance", "must be known for all observed pairs", "missing values")
    roots = np.ones(len(pairs.values)) if pairs.weights is None else np.sqrt(pairs.weights)
    design = [rankdata(column) if ranks else column for column in columns]
    centred = [column - np.average(column, weights=roots**2) for column in design]
    D = np.column_stack([np.ones(len(roots)), *(c / (np.abs(c).max() or 1.0) for c in centred)]) * roots[:, None]
    left, sizes, _ = np.linalg.svd(D / np.maximum(np.linalg.norm(D, axis=0), 1e-300), full_matrices=False)
    basis = left[:, sizes > 1e-8 * sizes.max()]
    values = pairs.values * roots
    residual = values - basis @ (basis.T @ values)
    length = np.linalg.norm(residual)
    if not length > 1e-7 * np.linalg.norm(values):
        raise ParameterError("S", "must vary over its observed pairs beyond the {nuisance}", "equal values or none")
    return Pairs(similarity.n_items, pairs.first, pairs.second, roots, residual / length, basis, ranks)


def models_of(nuisance: Nuisance) -> list[NDArray[np.float64]]:
    """Models of pairs for nuisance variables: z_i z_j and z_i + z_j for a column z, which covers any shift of z."""
    models = list(nuisance.matrices)
    for z in standardise(nuisance.vectors).values.T if nuisance.vectors.size else ():
        models += [np.outer(z, z), z[:, None] + z]
    return models


def pair_statistics(similarity: Similarity, nuisance: Nuisance, method: str) -> Statistics:
    """The function from resampled hypotheses to partial correlations with the similarities."""
    return partial(pair_correlations, partial_pairs(similarity, models_of(nuisance), ranks=method == "spearman"))


def pair_correlations(pairs: Pairs, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Partial correlations of the similarities with x x^T for resampled columns, one row per draw."""
    if not pairs.ranks:
        return form_correlations(pairs, X)
    result = np.empty((len(X), X.shape[2]))
    for place, columns in enumerate(X):
        H = columns[pairs.first] * columns[pairs.second]
        result[place] = pairs.correlations(rankdata(H, axis=0))
    return result


def form_correlations(pairs: Pairs, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for Pearson's correlation, where all sums over pairs are quadratic forms in x and x^2."""
    Z = X.transpose(1, 0, 2).reshape(pairs.n_items, -1)

    def form(values: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
        matrix = mantel.symmetric(values, (pairs.first, pairs.second), pairs.n_items)
        return np.einsum("ic,ic->c", z, matrix @ z) / 2

    squares = form(pairs.roots**2, Z**2)
    left = squares - sum(form(column * pairs.roots, Z) ** 2 for column in pairs.basis.T)
    varies = left > 1e-13 * squares
    r = form(pairs.values * pairs.roots, Z) / np.sqrt(np.where(varies, left, 1.0))
    return np.where(varies, np.clip(r, -1.0, 1.0), np.nan).reshape(len(X), X.shape[2])


# Permutation of matrices


def residual_correlations(
    pairs: Pairs, matrices: list[NDArray[np.float64]], permutations: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Partial correlations with residuals whose rows and columns are permuted together, one row per permutation."""
    result = np.empty((len(permutations), len(matrices)))
    for place, order in enumerate(permutations):
        H = np.column_stack([matrix[order[pairs.first], order[pairs.second]] for matrix in matrices])
        result[place] = pairs.correlations(H)
    return result


def residual_matrices(
    hypotheses: Hypotheses, nuisance: list[NDArray[np.float64]], pairs: Pairs
) -> list[NDArray[np.float64]]:
    """Residuals of models of pairs regressed on nuisance models over all pairs."""
    upper = np.triu_indices(pairs.n_items, k=1)
    models = hypotheses.matrices or tuple(np.outer(x, x) for x in map(mantel.near_one, hypotheses.vectors.T))
    columns = [mantel.near_one(model)[upper] for model in models]
    others = [model[upper] for model in nuisance]
    for name, column in zip(hypotheses.names, columns, strict=True):
        if np.isnan(column).any():
            rule = "must be known for all pairs if there is {nuisance}"
            raise ParameterError("hypotheses", rule, f"missing values in {name!r}")
    if any(np.isnan(column).any() for column in others):
        raise ParameterError("nuisance", "must be known for all pairs", "missing values")
    if pairs.ranks:
        columns, others = [rankdata(column) for column in columns], [rankdata(column) for column in others]
    D = np.column_stack([np.ones(len(upper[0])), *others])
    H = np.column_stack(columns)
    residuals = H - D @ np.linalg.lstsq(D, H, rcond=None)[0]
    left = np.sum(residuals**2, axis=0) / np.maximum(np.sum((H - H.mean(axis=0)) ** 2, axis=0), 1e-300)
    if (left <= EXPLAINED).any():
        name = hypotheses.names[int(np.argmax(left <= EXPLAINED))]
        raise ParameterError("hypotheses", "must vary, and not be linear combinations of the {nuisance}", repr(name))
    return [mantel.symmetric(column, upper, pairs.n_items) for column in residuals.T]


def permute_pairs_given(
    similarity: Similarity, hypotheses: Hypotheses, nuisance: Nuisance, method: str, settings: tuple[Any, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Partial correlations of similarities with observed hypotheses and with resampled or permuted ones."""
    if not (hypotheses.matrices or nuisance.matrices):
        given = resampling(hypotheses, nuisance, settings[1])
        observed, null = permute_given(given, pair_statistics(similarity, nuisance, method), *settings)
    else:
        models = models_of(nuisance)
        pairs = partial_pairs(similarity, models, ranks=method == "spearman")
        correlations = partial(residual_correlations, pairs, residual_matrices(hypotheses, models, pairs))
        observed, null = permute(correlations, similarity.n_items, *settings)
    check_observed(observed, hypotheses.names)
    return observed, null


def check_observed(correlations: NDArray[np.float64], names: tuple[str, ...]) -> None:
    """Refuse hypotheses without a partial correlation with the similarities."""
    undefined = np.isnan(correlations)
    if undefined.any():
        rule = "must vary over the observed pairs as model matrices (x x^T for a property x) beyond the {nuisance}"
        remedy = (
            "a property of few items needs observed pairs of items that have it; of large numbers that differ little, "
            "subtract the mean"
        )
        raise ParameterError("hypotheses", rule, repr(names[int(np.argmax(undefined))]), remedy)
