"""Embeddings and features with known dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, softmax

from simdims._memory import require
from simdims._parallel import generator_of
from simdims._parameters import ParameterError, ParameterTypeError, require_between, require_count, require_number
from simdims.metrics._embedding import as_numbers, embedding_table, require_table


def dirichlet(
    n_items: int, n_components: int, *, alpha: float = 0.3, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.float64]:
    """Draw an embedding whose rows are independent and Dirichlet distributed.

    Parameters
    ----------
    n_items : int
        Number of items (rows).
    n_components : int
        Number of dimensions (columns).
    alpha : float, default=0.3
        Concentration, positive. Small values give sparse, cluster-like dimensions; large ones give diffuse,
        overlapping dimensions.
    random_state : int, RandomState or None, default=None
        Seed of the draw; None uses fresh entropy.

    Returns
    -------
    ndarray of shape (n_items, n_components)
        The embedding W: non-negative, with rows that sum to one.

    References
    ----------
    SRF, Methods, "Simulated data": w_i ~ Dir(alpha, ..., alpha).

    Examples
    --------
    >>> W = dirichlet(4, 3, random_state=0)
    >>> W.shape
    (4, 3)
    >>> W.sum(axis=1).round(6)
    array([1., 1., 1., 1.])
    """
    _check_size(n_items, n_components)
    require_number("alpha", alpha, "positive")
    alpha = float(alpha)
    rng = generator_of(random_state)
    # G(a) = G(a + 1) U^(1/a) for gamma variables. In logarithms no row underflows to 0 / 0, as
    # RandomState.dirichlet does for small a; -log U is a standard exponential variable.
    shape = (n_items, n_components)
    log_gamma = np.log(rng.standard_gamma(alpha + 1, shape)) - rng.standard_exponential(shape) / alpha
    return softmax(log_gamma, axis=1)


def factorial(levels: Sequence[int], *, n_replicates: int = 1) -> NDArray[np.float64]:
    """Cross categorical factors, and encode each level of each factor as a column of zeros and ones.

    Parameters
    ----------
    levels : sequence of int
        The number of levels of each factor, at least 2. The paper's design is [3, 3, 3, 3]: 81 items, 12 columns.
    n_replicates : int, default=1
        Number of items per combination of levels.

    Returns
    -------
    ndarray of shape (n_replicates * product of levels, sum of levels)
        X, with the last factor changing fastest.

    References
    ----------
    SRF, Methods, "Statistical power comparison".

    Examples
    --------
    >>> factorial([2, 2])
    array([[1., 0., 1., 0.],
           [1., 0., 0., 1.],
           [0., 1., 1., 0.],
           [0., 1., 0., 1.]])
    """
    if not isinstance(levels, Iterable) or isinstance(levels, bytes) or getattr(levels, "ndim", 1) != 1:
        raise ParameterTypeError("levels", "must list the number of levels of each factor", type(levels).__name__)
    counts = list(levels)
    if not counts:
        raise ParameterError("levels", "must have at least one factor", "none")
    for n in counts:
        require_count("levels", n, 2)
    require_count("n_replicates", n_replicates)
    _require_memory(n_replicates * math.prod(map(int, counts)), sum(map(int, counts)))
    combinations = np.unravel_index(np.arange(np.prod(counts)), counts)
    one_hot = [np.eye(n)[of_factor] for n, of_factor in zip(counts, combinations, strict=True)]
    return np.tile(np.hstack(one_hot), (n_replicates, 1))


def sparse_correlated(
    n_items: int,
    n_components: int,
    *,
    density: float = 0.3,
    correlation: float = 0.3,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.float64]:
    """Draw an embedding like those of human judgements: sparse, with correlated dimensions.

    Loadings are equicorrelated normal variables, thresholded so that a share `density` of them is positive. The scale
    of the columns falls linearly, to a quarter for the last one.

    Parameters
    ----------
    n_items, n_components, random_state
        As in `dirichlet`.
    density : float, default=0.3
        The expected share of loadings that are not zero, between 0 and 1.
    correlation : float, default=0.3
        The correlation between the normal variables of two dimensions, at least 0 and below 1.

    Returns
    -------
    ndarray of shape (n_items, n_components)
        W, non-negative.

    Examples
    --------
    >>> W = sparse_correlated(1000, 5, random_state=0)
    >>> print(round((W > 0).mean(), 1))
    0.3
    """
    _check_size(n_items, n_components)
    require_between("density", density, 0, 1, strictly=True)
    require_between("correlation", correlation, 0, 1)
    if correlation == 1:
        raise ParameterError("correlation", "must be below 1", str(correlation))
    density, correlation = float(density), float(correlation)
    rng = generator_of(random_state)
    shared, own = rng.standard_normal((n_items, 1)), rng.standard_normal((n_items, n_components))
    normal = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    return np.maximum(normal - ndtri(1 - density), 0) * np.linspace(1, 0.25, n_components)


def from_embedding(
    W: ArrayLike, n_items: int = 50, n_components: int = 5, *, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.float64]:
    """Sample items and dimensions of an embedding without replacement, such that no dimension is constant.

    Parameters
    ----------
    W : array-like of shape (all items, all dimensions)
        The embedding to sample from: non-negative and finite.
    n_items : int, default=50
        Number of items (rows) to sample.
    n_components : int, default=5
        Number of dimensions (columns) to sample; they keep their order.
    random_state : int, RandomState or None, default=None
        Seed of the sample; None uses fresh entropy.

    Returns
    -------
    ndarray of shape (n_items, n_components)

    References
    ----------
    SRF, Methods, "Statistical power comparison": 50 objects and 5 dimensions of SPoSE.

    Examples
    --------
    >>> from_embedding(dirichlet(100, 10, random_state=0), 20, 3, random_state=0).shape
    (20, 3)
    """
    values = as_numbers(embedding_table(W), "W")
    require_table(values, "W")
    require_non_negative("W", values)
    require_count("n_items", n_items, 1, values.shape[0])
    require_count("n_components", n_components, 1, values.shape[1])
    rng = generator_of(random_state)
    for _ in range(1000):
        rows = rng.permutation(values.shape[0])[:n_items]
        columns = np.sort(rng.permutation(values.shape[1])[:n_components])
        sample = values[np.ix_(rows, columns)]
        if (np.ptp(sample, axis=0) > 0).all():
            return sample
    rule = f"must have dimensions that vary over {n_items} items"
    raise ParameterError("W", rule, "a constant one in each of 1000 samples", "sample more items")


def require_non_negative(name: str, values: NDArray) -> None:
    """Refuse negative, missing and infinite numbers."""
    wrong = values[~(values >= 0) | np.isinf(values)]
    if wrong.size:
        remedy = "clip small negative values at 0" if wrong[0] < 0 else None
        raise ParameterError(name, "must be finite and non-negative", f"{wrong[0]:g}", remedy)


def _check_size(n_items: Any, n_components: Any) -> None:
    require_count("n_items", n_items)
    require_count("n_components", n_components)
    _require_memory(n_items, n_components)


def _require_memory(n_items: int, n_components: int) -> None:
    # The result and what it is drawn from.
    what = f"An embedding of {n_items} x {n_components}"
    require(3 * 8 * int(n_items) * int(n_components), what, "draw fewer items or dimensions")
