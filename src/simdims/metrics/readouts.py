"""Predictions from an embedding: ratings of pairs, and ratings of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from simdims._parallel import root_seed
from simdims._parameters import ParameterError, require_count, shown
from simdims.metrics._embedding import Names, as_embedding, as_numbers, below_one, names_of, require_table, scaled_rows
from simdims.metrics._pairs import pair_products, read_pairs
from simdims.similarity import is_default_axis, is_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class PairCorrelation:
    """Correlation of an embedding's similarities of listed pairs with human ratings.

    Parameters
    ----------
    correlation : float
        Spearman's rank correlation over the pairs found; NaN if the embedding gives all of them the same similarity.
    n_found : int
        Number of pairs with both items in the embedding.
    n_pairs : int
        Number of pairs in the list.
    similarities : ndarray of shape (n_pairs,)
        The embedding's similarity of every pair, in the order of the list; NaN for pairs that were not found.
    not_found : tuple of str
        Names that are not in the embedding, in the order of the list.
    """

    correlation: float
    n_found: int
    n_pairs: int
    similarities: NDArray[np.float64]
    not_found: tuple[str, ...]

    def __str__(self) -> str:
        return f"Spearman correlation {self.correlation:.3f} over {self.n_found} of {self.n_pairs} pairs"


def pair_correlation(
    W: Any, pairs: Any, ratings: Any, *, similarity: str = "cosine", labels: Sequence[str] | None = None
) -> PairCorrelation:
    """Spearman correlation of an embedding's similarities with ratings of pairs, as for SimLex-999 or WordSim-353.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding.
    pairs : array-like or DataFrame of shape (n_pairs, 2)
        The items of each pair: names, which must match exactly, or positions in W. Pairs with an unknown name are
        skipped and counted in the result.
    ratings : array-like of shape (n_pairs,)
        The rated similarity of each pair.
    similarity : {"cosine", "dot"}, default="cosine"
        The similarity of two items: the cosine of their rows, or w_i . w_j. An item without loadings has cosine 0 with
        all others.
    labels : sequence, optional
        Names of the items, if W is not a DataFrame whose index names them.

    Returns
    -------
    PairCorrelation
        The correlation, the number of pairs found, and the similarities.

    Examples
    --------
    >>> from simdims.metrics import pair_correlation
    >>> W = [[1.0, 0.0], [0.9, 0.2], [0.5, 0.5], [0.0, 1.0]]
    >>> pairs = [["cat", "dog"], ["cat", "horse"], ["cat", "car"], ["dog", "unicorn"]]
    >>> result = pair_correlation(W, pairs, [9.1, 6.0, 0.5, 4.2], labels=["cat", "dog", "horse", "car"])
    >>> print(result)
    Spearman correlation 1.000 over 3 of 4 pairs
    >>> result.not_found
    ('unicorn',)
    """
    embedding, names = as_embedding(W, labels=labels)
    embedding = scaled_rows(embedding, similarity)
    positions = read_pairs(pairs, len(embedding), names, "W")
    rated = as_numbers(ratings, "ratings")
    if rated.shape != (len(positions),):
        rule = f"must hold one number for each of {len(positions)} pairs"
        raise ParameterError("ratings", rule, f"shape {rated.shape}")
    if not np.isfinite(rated).all():
        row = int(np.argmax(~np.isfinite(rated)))
        raise ParameterError("ratings", "must be finite", f"{rated[row]:g} in row {row}", "leave the pair out")
    found = positions.min(axis=1) >= 0
    cells = pairs.to_numpy() if is_frame(pairs) else np.asarray(pairs)
    not_found = tuple(dict.fromkeys(str(cell) for cell in cells[positions < 0]))
    if np.count_nonzero(found) < 3:
        raise _too_few_pairs(found, not_found, names)
    if np.ptp(rated[found]) == 0:
        raise ParameterError("ratings", "must vary over the pairs found", f"{rated[found][0]:g} for all of them")
    similarities = np.full(len(positions), np.nan)
    # Cosines that differ by rounding are equal, so that ranks do not depend on the order of the dimensions.
    similarities[found] = _rounded(pair_products(embedding, *positions[found].T))
    correlation = _pearson(rankdata(similarities[found]), rankdata(rated[found]))
    return PairCorrelation(correlation, int(np.count_nonzero(found)), len(found), similarities, not_found)


def _too_few_pairs(found: NDArray[np.bool_], not_found: tuple[str, ...], names: Names) -> ParameterError:
    got = f"{np.count_nonzero(found)} of {len(found)}"
    if not_found:
        got += f"; not among W's names: {not_found[0]!r}"
        same_but_for_case = [name for name in names or () if name.lower() == not_found[0].lower()]
        if same_but_for_case:
            got += f", but {same_but_for_case[0]!r} is (upper and lower case must match)"
    return ParameterError("pairs", "must hold at least 3 pairs of W's items", got)


@dataclass(frozen=True, eq=False)
class Readout:
    """How well ratings of items can be predicted from an embedding.

    Parameters
    ----------
    table : DataFrame
        One row per target: `target`, `correlation` (Spearman's, of out-of-fold predictions with ratings; NaN if all
        predictions are equal), `n_items` (rated items in the embedding) and `n_not_found` (rated items not in the
        embedding).
    predictions : DataFrame of shape (n_items, n_targets)
        The out-of-fold prediction for each rated item; NaN for items without a rating.
    """

    table: pd.DataFrame
    predictions: pd.DataFrame

    def __str__(self) -> str:
        return self.table.to_string(index=False, float_format=lambda value: f"{value:.3f}")


def readout(
    W: Any,
    ratings: Any,
    *,
    alphas: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0),
    n_folds: int = 5,
    labels: Sequence[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Readout:
    """Predict ratings of items from their embedding by ridge regression, with nested cross-validation.

    The rated items are split at random into `n_folds` folds. Each fold is predicted by a ridge regression on the
    others, whose alpha minimises the squared error of an inner cross-validation with as many folds. Dimensions are
    standardised within every training set, inner and outer, so that no information leaks into predictions.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding.
    ratings : array-like, Series or DataFrame of shape (n_items,) or (n_items, n_targets)
        What to predict, NaN for items without a rating: each target uses the items that it rates. If both W and
        `ratings` have an index that names their items, ratings are looked up by name and may cover other items in any
        order; otherwise rows are items in W's order.
    alphas : sequence of float, default=(0.01, 0.1, 1, 10, 100)
        Regularisation strengths to choose from, positive.
    n_folds : int, default=5
        Number of folds, outer and inner, at least 2. Each target needs at least 2 n_folds ratings.
    labels : sequence, optional
        Names of the items, if W is not a DataFrame whose index names them.
    random_state : int, RandomState or None, default=None
        Seed of the folds; None uses fresh entropy. Targets that rate the same items share their folds, and the result
        of one target does not depend on the others.

    Returns
    -------
    Readout
        A table with a Spearman correlation for each target, and the out-of-fold predictions.

    Notes
    -----
    If ratings and embedding are unrelated, the expected correlation is slightly below 0: leaving out an item with a
    high rating lowers the mean of its training set.

    References
    ----------
    SRF, Methods, "Empirical datasets" (SWOW).

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import simulate
    >>> from simdims.metrics import readout
    >>> W = simulate.dirichlet(100, 4, random_state=0)
    >>> size = W @ [1.0, 0.0, -1.0, 0.5]
    >>> size[:20] = np.nan  # nobody rated these
    >>> result = readout(W, size, random_state=0)
    >>> print(result)
    target  correlation  n_items  n_not_found
    rating        1.000       80            0
    """
    import pandas as pd

    embedding, names = as_embedding(W, labels=labels)
    embedding = below_one(embedding)  # columns are standardised anyway
    grid = as_numbers(alphas, "alphas")
    if grid.ndim != 1 or not len(grid) or not (np.isfinite(grid) & (grid > 0)).all():
        raise ParameterError("alphas", "must be a sequence of positive, finite numbers", shown(alphas))
    require_count("n_folds", n_folds, 2)
    targets, rated, n_not_found = _read_ratings(ratings, len(embedding), names)
    _check_targets(targets, rated, 2 * n_folds)
    seed = root_seed(random_state)
    predictions = np.full(rated.shape, np.nan)
    rows = []
    for k, target in enumerate(targets):
        known = ~np.isnan(rated[:, k])
        predicted = _out_of_fold(embedding[known], rated[known, k], grid, n_folds, seed)
        predictions[known, k] = predicted
        correlation = _pearson(rankdata(_rounded(predicted)), rankdata(rated[known, k]))
        rows.append((target, correlation, int(np.count_nonzero(known)), n_not_found[k]))
    table = pd.DataFrame(rows, columns=["target", "correlation", "n_items", "n_not_found"])
    return Readout(table, pd.DataFrame(predictions, index=names, columns=targets))


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values rounded to drop the last digits of the largest one, which hold rounding errors."""
    largest = float(np.abs(values).max())
    return values if largest == 0 else np.round(values / largest, 12) * largest


def _pearson(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    one, other = one - one.mean(), other - other.mean()
    length = np.sqrt((one @ one) * (other @ other))
    return float(np.clip(one @ other / length, -1.0, 1.0)) if length > 0 else float("nan")


def _read_ratings(ratings: Any, n_items: int, names: Names) -> tuple[list[Any], NDArray[np.float64], list[int]]:
    """The names of the targets, their ratings of W's items, and how many other items each rates."""
    rated = as_numbers(ratings, "ratings")
    rated = rated[:, None] if rated.ndim == 1 else rated
    require_table(rated, "ratings", "target")
    if is_frame(ratings) and not is_default_axis(ratings.columns):
        targets = list(ratings.columns)
    elif rated.shape[1] == 1:
        name = getattr(ratings, "name", None)
        targets = ["rating" if name is None else name]
    else:
        targets = [f"target{k + 1}" for k in range(rated.shape[1])]
    own = names_of(ratings, "ratings", len(rated)) if names is not None else None
    if own is not None and names is not None:
        place = {item: row for row, item in enumerate(own)}
        rows = np.array([place.get(item, -1) for item in names])
        looked_up = np.where((rows >= 0)[:, None], rated[rows], np.nan)
        lost = np.count_nonzero(~np.isnan(rated), axis=0) - np.count_nonzero(~np.isnan(looked_up), axis=0)
        return targets, looked_up, lost.tolist()
    if len(rated) != n_items:
        remedy = "name the items of both in an index to look them up"
        raise ParameterError("ratings", f"must have a row for each of W's {n_items} items", str(len(rated)), remedy)
    return targets, rated, [0] * len(targets)


def _check_targets(targets: list[Any], rated: NDArray[np.float64], n_needed: int) -> None:
    for target, column in zip(targets, rated.T, strict=True):
        known = column[~np.isnan(column)]
        if np.isinf(column).any():
            raise ParameterError("ratings", "must be finite, or NaN for no rating", f"infinity in {target!r}")
        if len(known) < n_needed:
            rule = f"must rate at least 2 n_folds = {n_needed} of W's items"
            raise ParameterError("ratings", rule, f"{len(known)} in {target!r}")
        if np.ptp(known) == 0:
            raise ParameterError("ratings", "must vary", f"{known[0]:g} for every item in {target!r}")


def _out_of_fold(
    X: NDArray[np.float64], y: NDArray[np.float64], alphas: NDArray[np.float64], n_folds: int, seed: int
) -> NDArray[np.float64]:
    """Out-of-fold predictions of y, each from a model that was fitted and tuned without it."""
    from sklearn.model_selection import KFold

    folds = KFold(n_folds, shuffle=True, random_state=seed)
    predicted = np.empty(len(y))
    for training, held_out in folds.split(X):
        inner = np.empty((len(training), len(alphas)))
        for inner_training, validation in folds.split(training):
            fitted, validated = training[inner_training], training[validation]
            inner[validation] = _ridge(X[fitted], y[fitted], X[validated], alphas)
        errors = np.sum((inner - y[training, None]) ** 2, axis=0)
        best = alphas[[np.argmin(errors)]]
        predicted[held_out] = _ridge(X[training], y[training], X[held_out], best)[:, 0]
    return predicted


def _ridge(
    X: NDArray[np.float64], y: NDArray[np.float64], X_new: NDArray[np.float64], alphas: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Predictions for new rows, one column per alpha, with columns standardised by the training rows."""
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    # One target per alpha, so that all share the products of X.
    model = Ridge(alpha=alphas).fit(scaler.transform(X), np.repeat(y[:, None], len(alphas), axis=1))
    return model.predict(scaler.transform(X_new)).reshape(len(X_new), len(alphas))
