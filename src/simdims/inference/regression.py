"""rsa_regression: the unique contribution of each of several models to the similarities.

Similarities are regressed on models h_m, S_ij ~ c + sum_m b_m h_m,ij, with or without b >= 0. Fits and held-out
errors need only sums of products over blocks of pairs (one block per pair of folds of items).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from simdims._memory import require
from simdims._parallel import root_seed
from simdims._parameters import ParameterError, require_count, require_flag
from simdims._progress import Callback
from simdims.inference import mantel
from simdims.inference.collinearity import model_correlations, warn_of_duplicates
from simdims.inference.hypotheses import Hypotheses, clean_hypotheses
from simdims.inference.nuisance import Nuisance, Resampling, clean_nuisance, models_of, permute_given, resampling
from simdims.inference.permutations import check_settings, permute
from simdims.inference.result import HypothesisTests, permutation_tests
from simdims.inference.rsa import check_similarity
from simdims.similarity import Similarity, as_similarity

#: Numbers held in memory at a time for resampled models.
MOST_NUMBERS = 4_000_000


def rsa_regression(
    S: Any,
    models: Any,
    *,
    nuisance: Any = None,
    signed: bool = False,
    n_folds: int = 5,
    n_permutations: int = 1000,
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> HypothesisTests:
    """Test what each model explains of the similarities that the other models do not.

    The similarities are regressed on all models together. The unique contribution of a model is the held-out R2 of
    all models minus that of all others, cross-validated over items: models are fitted to the pairs of training items
    and predict all pairs with at least one test item.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities, or a Discovery; weights are used.
    models : array-like, Series or DataFrame of shape (n_items, n_models), or list, stack or mapping of matrices
        As the hypotheses of `rsa_test`: a matrix, or a column x for the model x x^T, such as a property of the items
        or a dimension of another system. A Discovery, Consensus or fitted SRF stands for its dimensions.
    nuisance : columns or matrices in the same form, optional
        Known influences. They are included in all regressions, with weights of any sign, and are not tested.
    signed : bool, default=False
        Whether weights of models may be negative.
    n_folds : int, default=5
        Number of folds of the items.
    n_permutations, alpha, random_state, n_jobs, progress
        As in `dimension_test`.

    Returns
    -------
    HypothesisTests
        `statistic` is the unique contribution, `coefficients` the weights in a fit to all pairs (for the models as
        given), and `explained_variance` the held-out R2 of models and nuisance together.

    Notes
    -----
    If all models and nuisances are columns, each model is resampled given the others and the nuisance, as in
    `dimension_test`. If some are matrices, the rows and columns of a model's residuals are permuted together, with
    the limits described in `rsa_test`.

    Held-out R2 can be negative, as can the contributions of models that explain nothing.

    Examples
    --------
    >>> from simdims import rsa_regression, simulate
    >>> W = simulate.dirichlet(40, 4, random_state=0)
    >>> S = W[:, :3] @ W[:, :3].T
    >>> tests = rsa_regression(S, {"first": W[:, 0], "last": W[:, 3]}, n_permutations=200, random_state=0)
    >>> tests.significant.tolist()
    [True, False]
    """
    check_settings(n_permutations, "greater", alpha, n_jobs)
    require_flag("signed", signed)
    similarity = as_similarity(S, copy=False)
    items = check_similarity(similarity, "pearson")
    require_count("n_folds", n_folds, 2, items.number // 2)
    try:
        cleaned = clean_hypotheses(models, items)
    except ParameterError as error:
        raise type(error)("models", error.rule, error.got, error.remedy) from None
    warn_of_duplicates(cleaned, model_correlations(cleaned), "model of the similarities", absolute=signed)
    # Powers of two, so that no product of columns overflows.
    if cleaned.matrices:
        exponents = np.array([np.frexp(np.nanmax(np.abs(matrix)))[1] for matrix in cleaned.matrices])
        scaled = (np.ldexp(matrix, -one) for matrix, one in zip(cleaned.matrices, exponents, strict=True))
        cleaned = replace(cleaned, matrices=tuple(scaled))
    else:
        exponents = 2 * np.frexp(np.abs(cleaned.vectors).max(axis=0))[1]
        cleaned = replace(cleaned, vectors=np.ldexp(cleaned.vectors, -(exponents // 2)))
    known = clean_nuisance(nuisance, items, matrices=True)
    seed = root_seed(random_state)
    regression = as_regression(similarity, cleaned, known, n_folds, seed, signed=signed)
    settings = (n_permutations, seed, n_jobs, progress)
    results = [_test(regression, cleaned, known, place, settings) for place in range(len(cleaned.names))]
    observed, null = np.array([one for one, _ in results]), np.column_stack([values for _, values in results])
    kind = f"{'signed' if signed else 'non-negative'} regression on all models"
    method = known.describe(f"unique share of the held-out variance of the similarities in a {kind}")
    weights, explained = np.ldexp(regression.coefficients(), -exponents), regression.explained()
    fit = {"nuisance": known.names, "coefficients": weights, "explained_variance": explained}
    return permutation_tests("regression", cleaned.names, observed, null, "greater", alpha, method, **fit)


@dataclass(frozen=True, eq=False)
class Regression:
    """Similarities and models of pairs, sorted by block, with the sums of products of each block."""

    n_items: int
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    roots: NDArray[np.float64]
    design: NDArray[np.float64]  # constant, nuisance, models and similarities, times roots
    blocks: list[slice]  # of pairs whose items are in the same two folds
    in_fold: NDArray[np.bool_]  # (n_folds, n_blocks): whether pairs of a block have an item of the fold
    sums: NDArray[np.float64]  # (n_blocks, n_columns, n_columns)
    n_free: int  # columns with unconstrained weights
    scales: NDArray[np.float64]  # divisors of the models
    unit: float  # divisor of the similarities
    signed: bool

    def explained(self, sums: NDArray[np.float64] | None = None, without: int | None = None) -> float:
        """Held-out R2 with all models or without one."""
        sums = self.sums if sums is None else sums
        if without is not None:
            sums = np.delete(np.delete(sums, self.n_free + without, axis=1), self.n_free + without, axis=2)
        errors = spread = 0.0
        for held in self.in_fold:
            training, test = sums[~held].sum(axis=0), sums[held].sum(axis=0)
            weights = np.append(self.weights(training), -1.0)
            errors += weights @ test @ weights
            mean = training[0, -1] / training[0, 0]
            spread += test[-1, -1] - 2 * mean * test[0, -1] + mean**2 * test[0, 0]
        return float(1.0 - errors / spread)

    def weights(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of all columns in the prediction of the last one."""
        G, g = sums[:-1, :-1], sums[:-1, -1]
        if self.signed or len(G) == self.n_free:
            return np.asarray(np.linalg.lstsq(G, g, rcond=1e-12)[0], dtype=np.float64)
        free = slice(0, self.n_free)
        solved = np.linalg.lstsq(G[free, free], np.column_stack([G[free, self.n_free :], g[free]]), rcond=1e-12)[0]
        left = G[self.n_free :, self.n_free :] - G[self.n_free :, free] @ solved[:, :-1]
        target = g[self.n_free :] - G[self.n_free :, free] @ solved[:, -1]
        found = nonnegative_weights((left + left.T) / 2, target)
        return np.concatenate([solved[:, -1] - solved[:, :-1] @ found, found])

    def coefficients(self) -> NDArray[np.float64]:
        """The weights of the models in a fit to all pairs."""
        return self.weights(self.sums.sum(axis=0))[self.n_free :] * self.unit / self.scales

    def with_models(self, H: NDArray[np.float64], place: int) -> NDArray[np.float64]:
        """Held-out R2 with each column of H (n_pairs, number) in place of one of the models."""
        column = self.n_free + place
        H = H * self.roots[:, None] / self.scales[place]
        products = np.stack([self.design[rows].T @ H[rows] for rows in self.blocks])
        squares = np.stack([np.einsum("pc,pc->c", H[rows], H[rows]) for rows in self.blocks])
        result = np.empty(H.shape[1])
        for number in range(H.shape[1]):
            sums = self.sums.copy()
            sums[:, column, :] = sums[:, :, column] = products[:, :, number]
            sums[:, column, column] = squares[:, number]
            result[number] = self.explained(sums)
        return result

    def contributions(self, place: int, models: Iterator[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Unique contributions of models in place of one of them, of shape (number, 1)."""
        step, found = max(MOST_NUMBERS // len(self.first), 1), []
        while some := list(islice(models, step)):
            found.append(self.with_models(np.column_stack(some), place))
        return (np.concatenate(found) - self.explained(without=place))[:, None]


def nonnegative_weights(G: NDArray[np.float64], g: NDArray[np.float64]) -> NDArray[np.float64]:
    """The a >= 0 that minimises a^T G a - 2 g^T a, for a positive semidefinite G."""
    values, vectors = np.linalg.eigh(G)
    kept = values > 1e-12 * max(values[-1], 1e-300)
    if not kept.any():
        return np.zeros(len(g))
    roots = np.sqrt(values[kept])
    return nnls(roots[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ g) / roots)[0]


def as_regression(
    similarity: Similarity, models: Hypotheses, nuisance: Nuisance, n_folds: int, seed: int, *, signed: bool
) -> Regression:
    """Sort the observed pairs by the folds of their items, and sum products within each block."""
    matrices = models_of(nuisance)
    n_columns = len(matrices) + len(models.names) + 2
    require(8 * 3 * n_columns * similarity.n_items**2 // 2, "A regression on models of all pairs", "leave items out")
    pairs = mantel.as_pairs(similarity, ranks=False)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    fold = rng.permutation(np.arange(similarity.n_items) % n_folds)
    low, high = np.sort([fold[pairs.first], fold[pairs.second]], axis=0)
    order = np.argsort(low * n_folds + high, kind="stable")
    first, second = pairs.first[order], pairs.second[order]
    codes, counts = np.unique((low * n_folds + high)[order], return_counts=True)
    in_fold = np.stack([(codes // n_folds == one) | (codes % n_folds == one) for one in range(n_folds)])
    roots = np.ones(len(order)) if pairs.weights is None else np.sqrt(pairs.weights[order])
    columns = [matrix[first, second] for matrix in matrices]
    columns += [_pair_values(models, place, first, second) for place in range(len(models.names))]
    values = pairs.values[order]
    if any(np.isnan(column).any() for column in columns):
        raise ParameterError("models", "must be known for all observed pairs, as {nuisance} must", "missing values")
    varies = np.ptp(values) > mantel.CONSTANT * np.abs(values).max()
    if not (varies and in_fold.any(axis=1).all() and (~in_fold).any(axis=1).all()):
        rule = "must have pairs that vary within and between folds of items"
        raise ParameterError("S", rule, "equal values or too few pairs")
    scales = np.array([np.abs(column).max() or 1.0 for column in columns])
    design = np.column_stack([np.ones(len(order)), *(c / s for c, s in zip(columns, scales, strict=True)), values])
    design *= roots[:, None]
    blocks = [slice(end - count, end) for end, count in zip(np.cumsum(counts), counts, strict=True)]
    sums = np.stack([design[rows].T @ design[rows] for rows in blocks])
    n_free = 1 + len(matrices)
    return Regression(similarity.n_items, first, second, roots, design, blocks, in_fold, sums, n_free,
                      scales[len(matrices) :], pairs.scale, signed)  # fmt: skip


def _pair_values(models: Hypotheses, place: int, first: NDArray, second: NDArray) -> NDArray[np.float64]:
    if models.matrices:
        return models.matrices[place][first, second]
    x = models.vectors[:, place]
    return x[first] * x[second]


def _test(
    regression: Regression, models: Hypotheses, nuisance: Nuisance, place: int, settings: tuple[Any, ...]
) -> tuple[float, NDArray[np.float64]]:
    """The unique contribution of a model, observed and resampled."""
    others = [k for k in range(len(models.names)) if k != place]
    if models.matrices or nuisance.matrices:
        matrix, fitted = _residual_matrix(models, others, nuisance, place, regression.n_items)
        contributions = partial(_of_permutations, regression, place, matrix, fitted)
        observed, null = permute(contributions, regression.n_items, *settings)
    elif not others and not nuisance.names:
        x = models.vectors[:, place]
        contributions = partial(_of_permutations, regression, place, np.outer(x, x), None)
        observed, null = permute(contributions, regression.n_items, *settings)
    else:
        columns = [models.vectors[:, others], *([nuisance.vectors] if nuisance.names else [])]
        known = Nuisance(tuple(models.names[k] for k in others), np.hstack(columns), ())
        given = _resampling(Hypotheses((models.names[place],), models.vectors[:, [place]]), known, settings[1])
        contributions = partial(_of_draws, regression, place, np.abs(models.vectors[:, place]).max())
        observed, null = permute_given(given, contributions, *settings)
    return float(observed[0]), null[:, 0]


def _resampling(model: Hypotheses, others: Nuisance, seed: int) -> Resampling:
    try:
        return resampling(model, others, seed)
    except ParameterError as error:
        if error.name == "nuisance":
            rule = "must number at most n_items - 3, together with the {nuisance}"
            n_items, n_others = others.vectors.shape
            raise ParameterError("models", rule, f"{n_others + 1} for {n_items} items") from None
        rule = "must not be linear combinations of other models and the {nuisance}"
        raise ParameterError("models", rule, error.got, "of all levels of a category, leave one out") from None


def _residual_matrix(
    models: Hypotheses, others: list[int], nuisance: Nuisance, place: int, n_items: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Residuals of a model of pairs given the others, and its fitted values, as matrices."""
    upper = np.triu_indices(n_items, k=1)
    known = [_pair_values(models, k, *upper) for k in others]
    known += [matrix[upper] for matrix in models_of(nuisance)]
    h = _pair_values(models, place, *upper)
    D = np.column_stack([np.ones(len(h)), *(column / (np.nanmax(np.abs(column)) or 1.0) for column in known)])
    if np.isnan(D).any() or np.isnan(h).any():
        raise ParameterError("models", "must be known for all pairs, as {nuisance} must", "missing values")
    fitted = D @ np.linalg.lstsq(D, h, rcond=None)[0]
    if np.sum((h - fitted) ** 2) <= 1e-8 * np.sum((h - h.mean()) ** 2):
        rule = "must vary, and not be linear combinations of other models and the {nuisance}"
        raise ParameterError("models", rule, repr(models.names[place]))
    return mantel.symmetric(h - fitted, upper, n_items), mantel.symmetric(fitted, upper, n_items)


def _of_permutations(
    regression: Regression,
    place: int,
    matrix: NDArray[np.float64],
    fitted: NDArray[np.float64] | None,
    permutations: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Unique contributions after permuting the rows and columns of a matrix."""
    first, second = regression.first, regression.second
    rest = 0.0 if fitted is None else fitted[first, second]
    return regression.contributions(place, (rest + matrix[order[first], order[second]] for order in permutations))


def _of_draws(regression: Regression, place: int, scale: float, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unique contributions of resampled columns."""
    columns = scale * X[:, :, 0]
    return regression.contributions(place, (x[regression.first] * x[regression.second] for x in columns))
