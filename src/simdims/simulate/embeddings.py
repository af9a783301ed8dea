"""Embeddings and features with known dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, softmax

from simdims._memory import require
from simdims._parallel import generator_of
from simdims._parameters import require_number, require_real
from simdims.metrics._embedding import as_numbers, embedding_table


def dirichlet(
    n_items: int,
    n_components: int,
    *,
    alpha: float = 0.3,
    random_state: int | np.random.RandomState | None = None,
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
        Seed of the draw; None is fresh entropy.

    Returns
    -------
    ndarray of shape (n_items, n_components)
        The embedding W: non-negative, every row sums to one.

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
    _require_count("n_items", n_items)
    _require_count("n_components", n_components)
    require_number("alpha", alpha, "positive")
    alpha = float(alpha)
    _require_memory(n_items, n_components)
    rng = generator_of(random_state)
    # G(a) = G(a + 1) U^(1/a) for gamma variables. In logarithms no row underflows to 0 / 0, as
    # RandomState.dirichlet does for small a; -log U is a standard exponential variable.
    shape = (n_items, n_components)
    log_gamma = np.log(rng.standard_gamma(alpha + 1, shape)) - rng.standard_exponential(shape) / alpha
    return softmax(log_gamma, axis=1)


def factorial(levels: Sequence[int], *, n_replicates: int = 1) -> NDArray[np.float64]:
    """Cross categorical factors and encode every level of every factor as a column of zeros and ones.

    Parameters
    ----------
    levels : sequence of int
        The number of levels of each factor, at least 2. The paper's design is [3, 3, 3, 3]: 81 items, 12 columns.
    n_replicates : int, default=1
        How many items have each combination of levels.

    Returns
    -------
    ndarray of shape (n_replicates * product of levels, sum of levels)
        X, the last factor changing fastest.

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
        raise TypeError(f"levels must be a list with the number of levels of each factor, got {levels!r}.")
    counts = list(levels)
    wrong = [n for n in counts if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 2]
    if wrong or not counts:
        got = repr(wrong[0]) if wrong else "no factor"
        raise ValueError(f"levels must be a whole number of at least 2 for each factor, got {got}.")
    _require_count("n_replicates", n_replicates)
    _require_memory(n_replicates * math.prod(map(int, counts)), sum(map(int, counts)))
    combinations = np.stack(np.unravel_index(np.arange(np.prod(counts)), counts), axis=1)
    one_hot = [np.eye(n)[combinations[:, factor]] for factor, n in enumerate(counts)]
    return np.tile(np.hstack(one_hot), (n_replicates, 1))


def sparse_correlated(
    n_items: int,
    n_components: int,
    *,
    density: float = 0.3,
    correlation: float = 0.3,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.float64]:
    """Draw an embedding as judgements give them: few items on a dimension, and dimensions that go together.

    Loadings are what normal variables, of equal correlation with each other, have above the quantile that leaves a
    share `density` of them. Columns shrink linearly, the last to a quarter of the first.

    Parameters
    ----------
    n_items : int
        Number of items (rows).
    n_components : int
        Number of dimensions (columns).
    density : float, default=0.3
        The expected share of loadings that are not zero, between 0 and 1.
    correlation : float, default=0.3
        The correlation between the normal variables of two dimensions, from 0 to less than 1.
    random_state : int, RandomState or None, default=None
        Seed of the draw; None is fresh entropy.

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
    _require_count("n_items", n_items)
    _require_count("n_components", n_components)
    require_real("density", density)
    require_real("correlation", correlation)
    if not 0 < density < 1:
        raise ValueError(f"density must be between 0 and 1, got {density}.")
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must be from 0 to less than 1, got {correlation}.")
    density, correlation = float(density), float(correlation)
    _require_memory(n_items, n_components)
    rng = generator_of(random_state)
    shared, own = rng.standard_normal((n_items, 1)), rng.standard_normal((n_items, n_components))
    normal = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    return np.maximum(normal - ndtri(1 - density), 0) * np.linspace(1, 0.25, n_components)


def from_embedding(
    W: ArrayLike,
    n_items: int = 50,
    n_components: int = 5,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.float64]:
    """Sample items and dimensions of an embedding, without replacement; no dimension is constant over the items.

    Parameters
    ----------
    W : array-like of shape (all items, all dimensions)
        The embedding to sample from: non-negative and finite.
    n_items : int, default=50
        Number of items (rows) to sample.
    n_components : int, default=5
        Number of dimensions (columns) to sample, in their order.
    random_state : int, RandomState or None, default=None
        Seed of the sample; None is fresh entropy.

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
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            f"W must have a row for every item and a column for every dimension, got shape {values.shape}."
        )
    if not (values >= 0).all() or np.isinf(values).any():
        wrong = values[~(values >= 0) | np.isinf(values)][0]
        raise ValueError(f"W must be finite and non-negative, got {wrong:g}: clip small negative values at 0.")
    for name, value, most in (("n_items", n_items, values.shape[0]), ("n_components", n_components, values.shape[1])):
        _require_count(name, value)
        if value > most:
            raise ValueError(f"{name} must be at most the {most} that W has, got {value}.")
    rng = generator_of(random_state)
    for _ in range(1000):
        rows = rng.permutation(values.shape[0])[:n_items]
        columns = np.sort(rng.permutation(values.shape[1])[:n_components])
        sample = values[np.ix_(rows, columns)]
        if (np.ptp(sample, axis=0) > 0).all():
            return sample
    raise ValueError(
        f"W must have dimensions that vary over {n_items} items, got a constant one in each of 1000 samples: sample "
        "more items."
    )


def _require_memory(n_items: int, n_components: int) -> None:
    # The result and what it is drawn from.
    what = f"An embedding of {n_items} x {n_components}"
    require(3 * 8 * int(n_items) * int(n_components), what, "draw fewer items or dimensions")


def _require_count(name: str, value: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
