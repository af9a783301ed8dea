"""DimensionEncoder: predict the loadings of items without similarities from their features.

With standardised features Z and loadings y of the items that have both, each dimension is a ridge regression

    minimise |y - Z b - c|^2 + alpha |b|^2,

with its own alpha, or a kernel ridge regression on the same features. Negative predictions are set to zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from simdims._parallel import root_seed
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    require_choice,
    require_count,
    require_number,
    require_type,
    warn,
)
from simdims.metrics._embedding import dimension_names, embedding_table, refuse_repeated
from simdims.similarity import is_default_axis, is_frame, refuse_other_numbers

#: Candidate penalties, relative to the mean eigenvalue of the features' products.
PENALTIES = np.logspace(-6, 3, 19)
#: Relative errors of other dimensions below this are equally good when a penalty is chosen.
SMALL_ERROR = 0.01
#: Differences from the mean below this share of it are rounding errors.
ROUNDING = 1e-10
#: Warn of negative loadings beyond this share of the largest one; SPoSE's are smaller.
NEGLIGIBLE = 1e-3
#: Number of bootstrap resamples of the items.
N_RESAMPLES = 1000

#: A dense array, or a sparse matrix in CSR format.
Features = Any


class Ridge(NamedTuple):
    """Fitted regressions of all dimensions, as plain arrays."""

    mean: NDArray[np.float64]  # zeros for sparse features, which are not centred
    scale: NDArray[np.float64]
    support: Features | None  # standardised features of the fitted items, for kernels
    gamma: float
    coef: NDArray[np.float64]  # weights of the features, or of kernels with the fitted items
    intercept: NDArray[np.float64]
    alpha: NDArray[np.float64]

    def predict(self, X: Features) -> NDArray[np.float64]:
        """Non-negative loadings of items."""
        Z = _standardised(X, self.mean, self.scale)
        if self.support is not None:
            Z = rbf_kernel(Z, self.support, gamma=self.gamma)
        return np.maximum(Z @ self.coef + self.intercept, 0.0)


class DimensionEncoder(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Predict the loadings of items on dimensions from features of the items.

    The encoder is fitted to items that have both features (activations of a network, embeddings, norms) and loadings;
    it then predicts the loadings of items without similarities. Features are standardised, each dimension is a ridge
    regression with its own penalty, and predictions are non-negative.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="linear"
        Linear in the features, or Gaussian kernel ridge regression on them.
    gamma : float, optional
        Rate of the Gaussian kernel exp(-gamma |x - z|^2) on standardised features; by default 1 / n_features.
    n_folds : int, default=5
        Number of folds for `scores_`.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the intervals. Predictions do not depend on it.

    Attributes
    ----------
    scores_ : ndarray of shape (n_components,)
        Correlation of each dimension with its cross-validated predictions, relative to the mean loading of the items
        that the prediction was fitted to; NaN if either is constant.
    scores_interval_ : ndarray of shape (2, n_components)
        95% confidence interval of `scores_`, from a bootstrap over items.
    held_out_predictions_ : ndarray of shape (n_items, n_components)
        Cross-validated predictions: each item is predicted by an encoder that was fitted and tuned without it.
    alpha_ : ndarray of shape (n_components,)
        Penalty of each dimension.
    dimension_names_ : ndarray of str
        Columns of the loadings, or dimension1, dimension2, ...
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the features, if X is a DataFrame.

    Notes
    -----
    Penalties are chosen among 19 values by leave-one-out errors of the items that the encoder is fitted to; an outer
    cross-validation gives `scores_`. The penalty of a dimension minimises the logarithm of its own error plus the mean
    logarithm over all dimensions (relative to predicting the mean, and at least 0.01), because the error of a single
    dimension is a noisy guide if there are few items.

    Predictions contain the mean loading of the training items, which is low where the loadings of the held-out items
    are high; scores leave it out, because it lowers correlations. Weak relations are still underestimated: if features
    and loadings are unrelated, the expected score is slightly below 0.

    Standardised features have equal weight. Sparse features are scaled but not centred, which keeps them sparse and
    does not change predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import DimensionEncoder, simulate
    >>> W = simulate.dirichlet(200, 4, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> X = W @ rng.normal(size=(4, 30)) + rng.normal(size=(200, 30))
    >>> encoder = DimensionEncoder(random_state=0).fit(X[:150], W[:150])
    >>> encoder.scores_.round(2)
    array([0.88, 0.91, 0.82, 0.85])
    >>> encoder.predict(X[150:]).shape
    (50, 4)
    """

    def __init__(
        self,
        kernel: str = "linear",
        *,
        gamma: float | None = None,
        n_folds: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DimensionEncoder:
        """Fit the encoder, and cross-validate it.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_items, n_features)
            Features of the items.
        y : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus or fitted SRF
            W, the loadings of the same items, or a result that contains it. Rows are matched by name if both sides have
            an index that names the items; otherwise they must be in the same order.

        Returns
        -------
        DimensionEncoder
            The fitted encoder.
        """
        self._check_parameters()
        table = embedding_table(y, "y")
        X, table = _matched(X, table)
        features, loadings = _validated(self, X, table, multi_output=True, y_numeric=True)
        self._check_data(features, loadings)
        self._is_single = loadings.ndim == 1
        W = np.asarray(loadings, dtype=np.float64).reshape(len(loadings), -1)
        series_name = None if is_frame(table) else getattr(table, "name", None)
        names = dimension_names(table, W.shape[1]) if series_name is None else [str(series_name)]
        self.dimension_names_ = np.array(names, dtype=object)
        seed = root_seed(self.random_state)
        held_out, means = np.empty_like(W), np.empty_like(W)
        for training, held in KFold(self.n_folds, shuffle=True, random_state=seed).split(W):
            ridge = fit_ridge(features[training], W[training], self.kernel, self.gamma)
            held_out[held] = ridge.predict(features[held])
            means[held] = W[training].mean(axis=0)
        self.held_out_predictions_ = held_out
        gains = np.where(abs(held_out - means) > ROUNDING * abs(means), held_out - means, 0.0)
        self.scores_, self.scores_interval_ = scores_with_intervals(W, gains, np.random.default_rng(seed))
        self.ridge_ = fit_ridge(features, W, self.kernel, self.gamma)
        self.alpha_ = self.ridge_.alpha
        return self

    def predict(self, X: Any) -> Any:
        """Predict the loadings of items.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_items, n_features)
            The features that the encoder was fitted to, for any items.

        Returns
        -------
        ndarray or DataFrame of shape (n_items, n_components)
            Non-negative loadings. For a DataFrame, a DataFrame with the same index and one column per dimension. An
            encoder that was fitted to a vector predicts a vector, or a Series.
        """
        check_is_fitted(self)
        features = _validated(self, X, reset=False)
        predicted = self.ridge_.predict(features)
        if is_frame(X):
            frame = pd.DataFrame(predicted, index=X.index, columns=self.dimension_names_)
            return frame.iloc[:, 0] if self._is_single else frame
        return predicted[:, 0] if self._is_single else predicted

    def scores_frame(self) -> pd.DataFrame:
        """One row per dimension: correlation (`scores_`), low and high (its 95% interval), and alpha.

        Returns
        -------
        pandas.DataFrame
        """
        check_is_fitted(self)
        low, high = self.scores_interval_
        columns = {"correlation": self.scores_, "low": low, "high": high, "alpha": self.alpha_}
        return pd.DataFrame(columns, index=pd.Index(self.dimension_names_, name="dimension"))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = True
        return tags

    def _check_parameters(self) -> None:
        require_choice("kernel", self.kernel, ("linear", "rbf"))
        if self.gamma is not None:
            require_number("gamma", self.gamma, "positive")
            if self.kernel == "linear":
                raise ParameterError("gamma", "must be None for a linear kernel", f"{self.gamma}", "use {kernel=rbf}")
        require_count("n_folds", self.n_folds, 2)

    def _check_data(self, features: Features, loadings: NDArray) -> None:
        n_items = features.shape[0]
        if n_items < max(self.n_folds, 3):
            rule = f"must have at least {max(self.n_folds, 3)} items for {self.n_folds} folds"
            raise ParameterError("X", rule, f"n_samples = {n_items}", "use more items, or smaller {n_folds}")
        if loadings.min() < -NEGLIGIBLE * abs(loadings).max():
            found = f"Some loadings are negative (the smallest is {loadings.min():.3g}), but predictions never are."
            warn(found, "Pass the dimensions of a non-negative factorization as {y}.")


def fit_ridge(X: Features, W: NDArray[np.float64], kernel: str, gamma: float | None) -> Ridge:
    """Ridge regressions of the columns of W, with penalties chosen by leave-one-out errors."""
    mean, scale = _moments(X)
    Z = _standardised(X, mean, scale)
    unit = powers_of_two(W)
    W = W / unit
    intercept = W.mean(axis=0)
    if kernel == "linear":
        middle = np.asarray(Z.mean(axis=0)).ravel()
        if len(W) > X.shape[1]:
            axes, values = _eigenpairs(_as_dense(Z.T @ Z) - len(W) * np.outer(middle, middle))
        else:
            vectors, values = _eigenpairs(_centred(_as_dense(Z @ Z.T)))
            axes = (Z.T @ vectors - np.outer(middle, vectors.sum(axis=0))) / np.sqrt(values)
        weights, alpha = best_penalties(Z @ axes - middle @ axes, values, W - intercept)
        coef = axes @ weights
        return Ridge(mean, scale, None, 0.0, unit * coef, unit * (intercept - middle @ coef), alpha)
    gamma = 1.0 / X.shape[1] if gamma is None else gamma
    K = rbf_kernel(Z, gamma=gamma)
    means = K.mean(axis=0)
    vectors, values = _eigenpairs(_centred(K))
    weights, alpha = best_penalties(vectors * np.sqrt(values), values, W - intercept)
    dual = (vectors / np.sqrt(values)) @ weights
    # The weights and the intercept absorb the centring of new items' kernels.
    intercept = intercept + means.mean() * dual.sum(axis=0) - means @ dual
    return Ridge(mean, scale, Z, gamma, unit * (dual - dual.mean(axis=0)), unit * intercept, alpha)


def best_penalties(
    scores: NDArray[np.float64], eigenvalues: NDArray[np.float64], W: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of principal components for each column of W, and the penalties."""
    # `scores` are the component scores T of the items, with T^T T = diag(eigenvalues); W is centred, with columns of
    # similar size. The leave-one-out error of item i is (w_i - fitted_i) / (1 - h_i), with h_i its leverage.
    n_items = len(scores)
    penalties = PENALTIES * (eigenvalues.mean() if len(eigenvalues) else 1.0)
    products, squares = scores.T @ W, scores**2
    errors = np.empty((len(penalties), W.shape[1]))
    for place, penalty in enumerate(penalties):
        left = 1.0 - 1.0 / n_items - squares @ (1.0 / (eigenvalues + penalty))
        residuals = W - scores @ (products / (eigenvalues + penalty)[:, None])
        errors[place] = np.sum((residuals / np.maximum(left, 1e-12)[:, None]) ** 2, axis=0)
    alpha = penalties[_criterion(errors, np.sum(W**2, axis=0)).argmin(axis=0)]
    return products / (eigenvalues[:, None] + alpha), alpha


def _criterion(errors: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the penalties (n_penalties, n_columns) minimise: log errors of each column plus their mean over columns."""
    varies = spread > 1e-24 * spread.max()
    relative = np.maximum(errors / np.where(varies, spread, 1.0), 1e-300)
    shared = np.log(np.maximum(relative[:, varies], SMALL_ERROR)).mean(axis=1) if varies.any() else 0.0
    return np.log(relative) + np.reshape(shared, (-1, 1))


def _eigenpairs(gram: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvectors and eigenvalues, without those at rounding level."""
    values, vectors = linalg.eigh(gram, driver="evd")
    kept = values > 1e-12 * len(values) * max(values[-1], 1e-300)
    return vectors[:, kept], values[kept]


def _centred(K: NDArray[np.float64]) -> NDArray[np.float64]:
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean()


def _as_dense(x: Any) -> NDArray[np.float64]:
    return x.toarray() if sparse.issparse(x) else x


def _moments(X: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means (zero for sparse features) and standard deviations (1 for constant features)."""
    sizes = powers_of_two(X)
    scaler = StandardScaler(with_mean=not sparse.issparse(X)).fit(_standardised(X, np.zeros(X.shape[1]), sizes))
    return np.zeros(X.shape[1]) if sparse.issparse(X) else scaler.mean_ * sizes, scaler.scale_ * sizes


def powers_of_two(X: Features) -> NDArray[np.float64]:
    """The power of two just below the largest value of each column, so that squares of scaled values stay in range."""
    largest = abs(X).max(axis=0)
    largest = largest.toarray().ravel() if sparse.issparse(largest) else np.asarray(largest)
    return np.ldexp(1.0, np.frexp(largest)[1] - 1)


def _standardised(X: Features, mean: NDArray[np.float64], scale: NDArray[np.float64]) -> Features:
    if sparse.issparse(X):
        return sparse.csr_array(X.multiply(1.0 / scale)) if not mean.any() else (X.toarray() - mean) / scale
    return (X - mean) / scale


def scores_with_intervals(
    W: NDArray[np.float64], predicted: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Correlations between the columns of two tables, and 95% bootstrap intervals over rows (2, n_columns)."""
    n_items = len(W)
    W, predicted = (_near_unit(table) for table in (W, predicted))
    counts = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=N_RESAMPLES) / n_items
    counts = np.vstack([np.full(n_items, 1 / n_items), counts])
    means, predicted_means = counts @ W, counts @ predicted
    covariance = counts @ (W * predicted) - means * predicted_means
    spreads = (counts @ W**2 - means**2) * (counts @ predicted**2 - predicted_means**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.where(spreads > 1e-20, covariance / np.sqrt(np.maximum(spreads, 1e-300)), np.nan)
    interval = np.full((2, W.shape[1]), np.nan)
    known = ~np.isnan(r[0])
    if known.any():
        interval[:, known] = np.nanquantile(r[1:, known], [0.025, 0.975], axis=0)
    return r[0], interval


def _near_unit(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centred columns with standard deviation 1; zeros for constant columns."""
    table = table / powers_of_two(table)
    centred = table - table.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > 1e-12 * np.abs(table).max(axis=0)
    return np.where(varies, centred / np.where(varies, spread, 1.0), 0.0)


def _validated(encoder: DimensionEncoder, *tables: Any, **options: Any) -> Any:
    """Tables validated by scikit-learn, with its error messages on one line."""
    for name, table in zip("Xy", tables, strict=False):
        if is_frame(table):
            refuse_repeated(table.columns, name, "must have distinct columns")
        if name == "y" and sparse.issparse(table):
            rule = "must be a dense array or a DataFrame"
            raise ParameterTypeError(name, rule, "a sparse matrix", "pass its .toarray()")
    tables = tuple(np.ma.filled(one.astype(np.float64), np.nan) if np.ma.isMaskedArray(one) else one for one in tables)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # in sums that only look for NaN
            return validate_data(encoder, *tables, accept_sparse="csr", dtype=np.float64, **options)
    except (TypeError, ValueError) as error:
        if str(error).startswith("The feature names"):  # lists them, one per line
            raise
        first, *rest = str(error).splitlines() or [""]
        reason = " ".join([first, *(line for line in rest if line.startswith("Reshape"))]).rstrip(".")
        kind = ParameterTypeError if isinstance(error, TypeError) else ParameterError
        is_y = re.search(r"\by\b", reason) is not None
        name, held = ("y", "loadings") if is_y else ("X", "features")
        table = tables[1] if is_y and len(tables) > 1 else tables[0]
        missing = _first_missing(table) if is_frame(table) and "NaN" in reason else None
        rule = f"must hold {held}, finite numbers with one row per item"
        if missing is not None:
            raise kind(name, rule, missing, "leave out such rows or columns, or impute their values") from None
        raise kind(name, f"{rule} ({reason})") from None


def _first_missing(frame: pd.DataFrame) -> str | None:
    """Where a DataFrame has its first missing value, if any."""
    rows, columns = np.nonzero(frame.isna().to_numpy())
    if not len(rows):
        return None
    return f"a missing value in row {str(frame.index[rows[0]])!r}, column {str(frame.columns[columns[0]])!r}"


def _matched(X: Any, table: Any) -> tuple[Any, Any]:
    """Features and loadings in the order of the loadings, matched by name if both name their items."""
    indices = [getattr(one, "index", None) if hasattr(one, "to_numpy") else None for one in (X, table)]
    features, items = (None if one is None or is_default_axis(one) else list(map(str, one)) for one in indices)
    if features is None or items is None:
        refuse_other_numbers(features, "X")
        refuse_other_numbers(items, "y")
        return X, table
    refuse_repeated(features, "X", "must name each item once", " in its index")
    refuse_repeated(items, "y", "must name each item once", " in its index")
    if set(features) == set(items):
        return X.set_axis(features).loc[items], table
    if missing := [item for item in items if item not in set(features)]:
        raise ParameterError("X", "must have features of all items of {y}", f"none of {missing[0]!r}")
    extra = next(item for item in features if item not in set(items))
    remedy = "leave out such items, and predict them afterwards"
    raise ParameterError("X", "must have the items of {y} only", f"{extra!r}, which has no loadings", remedy)


def fitted_encoder(X: Any, W: pd.DataFrame, encoder: DimensionEncoder | None) -> DimensionEncoder:
    """Fit a new encoder with the settings of a given one."""
    require_type("encoder", encoder, DimensionEncoder | None, "a DimensionEncoder or None")
    return clone(DimensionEncoder() if encoder is None else encoder).fit(X, W)


def as_arrays(encoder: DimensionEncoder) -> dict[str, NDArray]:
    """The arrays of a fitted encoder for `from_arrays`, without pickle."""
    check_is_fitted(encoder)
    gamma = np.nan if encoder.gamma is None else encoder.gamma
    arrays = {
        "settings": np.array([encoder.kernel, str(encoder.n_folds), repr(float(gamma)), str(int(encoder._is_single))]),
        "scores": encoder.scores_,
        "scores_interval": encoder.scores_interval_,
        "held_out_predictions": encoder.held_out_predictions_,
        "dimension_names": encoder.dimension_names_.astype(str),
        **{name: np.asarray(_as_dense(part)) for name, part in encoder.ridge_._asdict().items() if part is not None},
    }
    if hasattr(encoder, "feature_names_in_"):
        arrays["feature_names"] = encoder.feature_names_in_.astype(str)
    return arrays


def from_arrays(arrays: Mapping[str, NDArray]) -> DimensionEncoder:
    """Rebuild an encoder from `as_arrays`; its seed is not kept."""
    kernel, n_folds, gamma, is_single = map(str, arrays["settings"])
    encoder = DimensionEncoder(kernel, gamma=None if gamma == "nan" else float(gamma), n_folds=int(n_folds))
    parts = {name: arrays[name] for name in ("mean", "scale", "coef", "intercept", "alpha")}
    encoder.ridge_ = Ridge(support=arrays.get("support"), gamma=float(arrays["gamma"]), **parts)
    encoder._is_single = bool(int(is_single))
    encoder.n_features_in_ = len(arrays["scale"])
    if "feature_names" in arrays:
        encoder.feature_names_in_ = arrays["feature_names"].astype(object)
    encoder.dimension_names_ = arrays["dimension_names"].astype(object)
    encoder.scores_, encoder.scores_interval_ = arrays["scores"], arrays["scores_interval"]
    encoder.held_out_predictions_, encoder.alpha_ = arrays["held_out_predictions"], encoder.ridge_.alpha
    return encoder
