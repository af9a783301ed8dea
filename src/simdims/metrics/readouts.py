"""What else an embedding predicts: ratings of pairs, and ratings of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parallel import root_seed
from simdims._parameters import is_whole
from simdims.metrics._embedding import (
    Names,
    as_embedding,
    as_numbers,
    below_one,
    check_choice,
    names_of,
    scaled_rows,
)
from simdims.metrics._items import read_pairs
from simdims.metrics._pairs import pair_products
from simdims.similarity import is_default_axis, is_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class PairCorrelation:
    """How an embedding's similarities of listed pairs go with people's ratings of them.

    Parameters
    ----------
    correlation : float
        Spearman's rank correlation over the pairs found; NaN where the embedding gives all of them one similarity.
    n_found : int
        Pairs both of whose items are in the embedding.
    n_pairs : int
        Pairs in the list.
    similarities : ndarray of shape (n_pairs,)
        The embedding's similarity of every pair, in the order of the list; NaN for pairs that were not found.
    not_found : tuple of str
        The names that are not among the embedding's, in the order of the list.
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
        The items of each pair: names, which are compared exactly as they are written, or positions in W. Pairs with a
        name that W does not have are not found; such benchmarks always have some, so the result says how many.
    ratings : array-like of shape (n_pairs,)
        How similar people find each pair.
    similarity : {"cosine", "dot"}, default="cosine"
        The similarity of two items: the cosine of their rows, or w_i . w_j. An item without any loading has cosine 0
        with every other.
    labels : sequence, optional
        The items' names, where W is not a DataFrame whose index names them.

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
    from scipy.stats import rankdata

    check_choice(similarity)
    embedding, names = as_embedding(W, labels=labels)
    positions = read_pairs(pairs, len(embedding), names, "W")
    rated = as_numbers(ratings, "ratings")
    if rated.shape != (len(positions),):
        raise ValueError(f"ratings must hold one number for each of {len(positions)} pairs, got shape {rated.shape}.")
    if not np.isfinite(rated).all():
        row = int(np.argmax(~np.isfinite(rated)))
        raise ValueError(f"ratings must be finite, got {rated[row]:g} in row {row}: leave the pair out.")
    found = (positions[:, 0] >= 0) & (positions[:, 1] >= 0)
    n_found, not_found = int(np.count_nonzero(found)), _unknown_names(pairs, positions)
    if n_found < 3:
        example = f"; not among W's names: {not_found[0]!r}" if not_found else ""
        others = {name.lower(): name for name in names or ()}
        if not_found and not_found[0].lower() in others:
            example += f", but {others[not_found[0].lower()]!r} is (upper and lower case must match)"
        raise ValueError(f"pairs must hold at least 3 pairs of W's items, got {n_found} of {len(found)}{example}.")
    if np.ptp(rated[found]) == 0:
        raise ValueError(f"ratings must vary over the pairs found, got {rated[found][0]:g} for all of them.")
    similarities = np.full(len(positions), np.nan)
    # Cosines that differ by rounding are equal, so that ranks do not depend on the order of the dimensions.
    similarities[found] = _rounded(pair_products(scaled_rows(embedding, similarity), *positions[found].T))
    ranks = rankdata(similarities[found]), rankdata(rated[found])
    return PairCorrelation(_pearson(*ranks), n_found, len(found), similarities, not_found)


@dataclass(frozen=True, eq=False)
class Readout:
    """How well ratings of items can be read out of an embedding.

    Parameters
    ----------
    table : DataFrame
        One row a target: `target`, `correlation` (Spearman's, of out-of-fold predictions with ratings; NaN where all
        predictions are equal), `n_items` (rated items of the embedding) and `n_not_found` (rated items that are not in
        the embedding).
    predictions : DataFrame of shape (n_items, n_targets)
        What each rated item was predicted to have by a model that never saw it; NaN for items without a rating.
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

    The rated items are split at random into `n_folds` folds. Those of each fold are predicted by a ridge regression on
    the others, whose alpha has the least squared error in a cross-validation, again in `n_folds` folds, within them.
    Dimensions are standardised within every training set, inner and outer, so nothing is known of what is predicted.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding.
    ratings : array-like, Series or DataFrame of shape (n_items,) or (n_items, n_targets)
        What to predict, NaN where an item has no rating: each target uses the items that it has. Where both W and
        `ratings` name their items (in an index), ratings are looked up by name and may be of other items, in any order;
        otherwise rows are items in W's order.
    alphas : sequence of float, default=(0.01, 0.1, 1, 10, 100)
        Strengths of regularisation to choose from, positive.
    n_folds : int, default=5
        Number of folds, outer and inner, at least 2. Each target needs at least 2 n_folds ratings.
    labels : sequence, optional
        The items' names, where W is not a DataFrame whose index names them.
    random_state : int, RandomState or None, default=None
        Seed of the folds; None is fresh entropy. Targets that rate the same items share their folds, and a target's
        result does not depend on the others.

    Returns
    -------
    Readout
        A table with a Spearman correlation for each target, and the out-of-fold predictions.

    Notes
    -----
    Without any relation the correlation is about 0, on average a little below: an item that is high lowers the mean of
    the training sets that it is not in.

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
    from scipy.stats import rankdata

    embedding, names = as_embedding(W, labels=labels)
    embedding = below_one(embedding)  # columns are standardised, whatever their scale
    grid = _check_settings(alphas, n_folds)
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


def _unknown_names(pairs: Any, positions: NDArray[np.intp]) -> tuple[str, ...]:
    cells = pairs.to_numpy() if is_frame(pairs) else np.asarray(pairs)
    return tuple(dict.fromkeys(str(cell) for cell in cells[positions < 0]))


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values without the last digits of the largest one, where rounding errors are."""
    largest = float(np.abs(values).max())
    return values if largest == 0 else np.round(values / largest, 12) * largest


def _pearson(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    one, other = one - one.mean(), other - other.mean()
    length = np.sqrt((one @ one) * (other @ other))
    return float(np.clip(one @ other / length, -1.0, 1.0)) if length > 0 else float("nan")


def _check_settings(alphas: Any, n_folds: object) -> NDArray[np.float64]:
    grid = as_numbers(alphas, "alphas")
    if grid.ndim != 1 or not len(grid) or not (np.isfinite(grid) & (grid > 0)).all():
        raise ValueError(f"alphas must be a sequence of positive, finite numbers, got {alphas!r}.")
    if not is_whole(n_folds) or n_folds < 2:  # type: ignore[operator]
        raise ValueError(f"n_folds must be a whole number of at least 2, got {n_folds!r}.")
    return grid


def _read_ratings(ratings: Any, n_items: int, names: Names) -> tuple[list[Any], NDArray[np.float64], list[int]]:
    """The targets' names, their ratings of W's items, and how many ratings each has of others."""
    rated = as_numbers(ratings, "ratings")
    if rated.ndim not in (1, 2) or 0 in rated.shape:
        raise ValueError(
            f"ratings must have a row for every item and a column for every target, got shape {rated.shape}."
        )
    rated = rated.reshape(len(rated), -1)
    if is_frame(ratings) and not is_default_axis(ratings.columns):
        targets = list(ratings.columns)
    else:
        name = getattr(ratings, "name", None)
        one = "rating" if name is None else name
        targets = [one] if rated.shape[1] == 1 else [f"target{k + 1}" for k in range(rated.shape[1])]
    own = names_of(ratings, "ratings", len(rated)) if names is not None else None
    if own is not None and names is not None:
        place = {item: row for row, item in enumerate(own)}
        rows = np.array([place.get(item, -1) for item in names])
        looked_up = np.where((rows >= 0)[:, None], rated[rows], np.nan)
        lost = np.count_nonzero(~np.isnan(rated), axis=0) - np.count_nonzero(~np.isnan(looked_up), axis=0)
        return targets, looked_up, lost.tolist()
    if len(rated) != n_items:
        raise ValueError(
            f"ratings must have a row for each of W's {n_items} items, got {len(rated)}: name the items of both in an "
            "index to look them up."
        )
    return targets, rated, [0] * len(targets)


def _check_targets(targets: list[Any], rated: NDArray[np.float64], n_needed: int) -> None:
    for target, column in zip(targets, rated.T, strict=True):
        if np.isinf(column).any():
            raise ValueError(f"ratings must be finite (NaN is no rating), got infinity in {target!r}.")
        known = column[~np.isnan(column)]
        if len(known) < n_needed:
            raise ValueError(
                f"ratings must rate at least 2 n_folds = {n_needed} of W's items, got {len(known)} in {target!r}."
            )
        if np.ptp(known) == 0:
            raise ValueError(f"ratings must vary, got {known[0]:g} for every item in {target!r}.")


def _out_of_fold(
    X: NDArray[np.float64], y: NDArray[np.float64], alphas: NDArray[np.float64], n_folds: int, seed: int
) -> NDArray[np.float64]:
    """Predictions of all of y, each by a model that was fitted, and whose alpha was chosen, without it."""
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
    """Predictions for new rows, one column an alpha, with columns standardised by the training rows."""
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    # One target for each alpha, so that all of them share the products of X.
    model = Ridge(alpha=alphas).fit(scaler.transform(X), np.repeat(y[:, None], len(alphas), axis=1))
    return model.predict(scaler.transform(X_new)).reshape(len(X_new), len(alphas))
