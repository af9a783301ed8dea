"""The structure of an embedding: sparsity, entropy, and alignment with a known embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from simdims._parameters import ParameterError, require_choice
from simdims.metrics._embedding import as_embedding, below_one
from simdims.similarity import refuse_other_names


def hoyer_sparsity(W: Any, *, of: str = "items") -> float:
    """Mean Hoyer sparsity: 0 if all loadings are equal, 1 if only one differs from zero.

    The sparsity of a vector x of length m is (sqrt(m) - |x|_1 / |x|_2) / (sqrt(m) - 1); it does not depend on the scale
    of x.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding.
    of : {"items", "dimensions"}, default="items"
        Sparsity of the rows (does an item load on one dimension or on many?) or of the columns (does a dimension apply
        to few items or to all?). The paper's simulations vary that of the rows.

    Returns
    -------
    float
        The mean over items or dimensions with any loading.

    See Also
    --------
    entropy : the same for loadings as shares.

    References
    ----------
    SRF, Results, "Recovering dimensions from simulated data"; P. O. Hoyer (2004), Non-negative matrix factorization
    with sparseness constraints, Journal of Machine Learning Research 5.

    Examples
    --------
    >>> from simdims.metrics import hoyer_sparsity
    >>> W = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]
    >>> round(hoyer_sparsity(W), 3)
    0.667
    >>> round(hoyer_sparsity([[1.0], [0.0], [1.0]], of="dimensions"), 3)  # one dimension of it
    0.434
    """
    vectors = _vectors(W, of)
    length = np.sqrt(vectors.shape[1])
    scaled = np.abs(vectors) / np.abs(vectors).max(axis=1, keepdims=True)
    ratio = scaled.sum(axis=1) / np.linalg.norm(scaled, axis=1)
    return float(np.clip(np.mean((length - ratio) / (length - 1)), 0.0, 1.0))


def entropy(W: Any, *, of: str = "items") -> float:
    """Mean normalised entropy: 0 if only one loading differs from zero, 1 if all loadings are equal.

    The entropy of a vector of length m is -sum_k p_k log(p_k) / log(m), where p are the loadings divided by their sum.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding, non-negative.
    of : {"items", "dimensions"}, default="items"
        Entropy of the rows (over how many dimensions is an item spread?) or of the columns (over how many items is a
        dimension spread?). The paper's simulations vary that of the rows.

    Returns
    -------
    float
        The mean over items or dimensions with any loading.

    See Also
    --------
    hoyer_sparsity : a measure based on norms.

    References
    ----------
    SRF, Results, "Recovering dimensions from simulated data".

    Examples
    --------
    >>> from simdims.metrics import entropy
    >>> round(entropy([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), 3)
    0.333
    """
    vectors = _vectors(W, of)
    n_negative = int(np.count_nonzero(vectors < 0))
    if n_negative:
        raise ParameterError("W", "must be non-negative to have an entropy", f"{n_negative} negative loadings")
    scaled = vectors / vectors.max(axis=1, keepdims=True)
    shares = scaled / scaled.sum(axis=1, keepdims=True)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return float(np.clip(np.mean(-np.sum(shares * logs, axis=1)) / np.log(vectors.shape[1]), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class FactorAlignment:
    """One-to-one alignment of an embedding's dimensions with known ones.

    Parameters
    ----------
    correlations : ndarray of shape (n_matched,)
        Pearson correlation of each matched pair of dimensions, in the order of the true ones.
    columns, true_columns : ndarray of shape (n_matched,)
        The matched columns of W and of W_true. All columns of the smaller embedding are matched.
    """

    correlations: NDArray[np.float64]
    columns: NDArray[np.intp]
    true_columns: NDArray[np.intp]

    @property
    def mean(self) -> float:
        """Mean correlation of the matched pairs, which the paper calls factor alignment."""
        return float(self.correlations.mean())

    def __str__(self) -> str:
        n_good = int(np.count_nonzero(self.correlations > 0.7))
        mean = f"{len(self.correlations)} matched dimensions: mean correlation {self.mean:.3f}"
        return f"{mean}, {n_good} above 0.7, lowest {self.correlations.min():.3f}"


def factor_alignment(W: Any, W_true: Any) -> FactorAlignment:
    """Match the dimensions of an embedding one to one with the true ones, and correlate them.

    The matching (Hungarian algorithm) maximises the sum of the Pearson correlations over items.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components)
        The embedding.
    W_true : array-like or DataFrame of shape (n_items, n_true)
        The embedding to recover. If both name their items, the names must be the same in the same order.

    Returns
    -------
    FactorAlignment
        The matching and its correlations. If the numbers of columns differ, some columns of the larger embedding are
        unmatched. The correlations of a constant column are 0.

    References
    ----------
    SRF, Methods, "Simulated data".

    Examples
    --------
    >>> from simdims import simulate
    >>> from simdims.metrics import factor_alignment
    >>> W_true = simulate.dirichlet(50, 3, random_state=0)
    >>> alignment = factor_alignment(W_true[:, [2, 0, 1]], W_true)
    >>> alignment.columns, round(alignment.mean, 6)
    (array([1, 2, 0]), 1.0)
    """
    found, names = as_embedding(W)
    true, true_names = as_embedding(W_true, "W_true")
    if len(found) != len(true):
        raise ParameterError("W_true", f"must have a row for each of W's {len(found)} items", str(len(true)))
    if len(true) < 2:
        raise ParameterError("W", "must have at least 2 items to correlate its dimensions", "1")
    if names is not None and true_names is not None:
        refuse_other_names("W", names, "W_true", true_names)
    correlations = standard_columns(true).T @ standard_columns(found)
    true_columns, columns = linear_sum_assignment(correlations, maximize=True)
    matched = np.clip(correlations[true_columns, columns], -1.0, 1.0)
    return FactorAlignment(matched, columns, true_columns)


def _vectors(W: Any, of: object) -> NDArray[np.float64]:
    """The rows or columns of an embedding with any loading, as rows."""
    require_choice("of", of, ("items", "dimensions"))
    embedding, _ = as_embedding(W)
    vectors, over = (embedding, "dimensions") if of == "items" else (embedding.T, "items")
    if vectors.shape[1] < 2:
        raise ParameterError("W", f"must have at least 2 {over} to spread {of} over", f"shape {embedding.shape}")
    loaded = vectors.any(axis=1)
    if not loaded.any():
        raise ParameterError("W", "must have a loading that is not zero", "none")
    return vectors[loaded]


def standard_columns(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean 0 and length 1; constant columns become 0."""
    W = below_one(W)
    centred = W - W.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    varies = lengths > 1e-12 * np.linalg.norm(W, axis=0)  # otherwise only rounding errors remain
    return np.divide(centred, lengths, out=np.zeros_like(W), where=varies)
