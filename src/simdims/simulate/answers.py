"""Simulated odd-one-out answers, drawn from an embedding."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simdims._parallel import generator_of, root_seed
from simdims._parameters import ParameterError, require_count
from simdims.metrics._embedding import as_numbers

#: Triplets drawn at a time.
_CHUNK = 500_000


def triplet_answers(
    W: ArrayLike, n_answers: int, *, random_state: int | np.random.Generator | np.random.RandomState | None = None
) -> NDArray[np.int64]:
    """Draw odd-one-out answers to random triplets from the choice probabilities of an embedding.

    All triplets of different items are equally likely. Item k of the triplet i, j, k is the odd one out with
    probability exp(w_i . w_j) / (exp(w_i . w_j) + exp(w_i . w_k) + exp(w_j . w_k)), as in
    `metrics.triplet_probabilities`.

    Parameters
    ----------
    W : array-like of shape (n_items, n_components)
        The embedding, finite, with at least 3 items. Its scale determines how consistent the answers are: 0 is
        guessing, large loadings are certain choices.
    n_answers : int
        Number of answers.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw; None uses fresh entropy.

    Returns
    -------
    ndarray of shape (n_answers, 3)
        Positions of the items, one answer per row, with the odd one out in the last column, as `from_triplets` and
        `metrics.triplet_accuracy` expect them.

    References
    ----------
    C. Y. Zheng et al. (2019), Revealing interpretable object representations from human behavior (SPoSE), ICLR.

    Examples
    --------
    >>> from simdims import from_triplets
    >>> from simdims.simulate import dirichlet, triplet_answers
    >>> W = 3 * dirichlet(20, 3, random_state=0)
    >>> answers = triplet_answers(W, 1000, random_state=0)
    >>> answers.shape
    (1000, 3)
    >>> from_triplets(answers).n_items
    20
    """
    loadings = as_numbers(W, "W")
    if loadings.ndim != 2 or len(loadings) < 3:
        raise ParameterError("W", "must have one row for each of at least 3 items", f"shape {loadings.shape}")
    n_infinite = np.count_nonzero(~np.isfinite(loadings))
    if n_infinite:
        raise ParameterError("W", "must be finite", f"{n_infinite} values that are not")
    require_count("n_answers", n_answers)
    if isinstance(random_state, np.random.RandomState):
        random_state = root_seed(random_state)
    elif not isinstance(random_state, np.random.Generator):
        generator_of(random_state)  # checks the seed
    rng = np.random.default_rng(random_state)
    products = loadings @ loadings.T
    drawn = []
    n_left = int(n_answers)
    while n_left > 0:
        items = rng.integers(len(loadings), size=(min(n_left, _CHUNK), 3))
        a, b, c = items.T
        items = items[(a != b) & (a != c) & (b != c)]
        a, b, c = items.T
        # Adding Gumbel noise to the log-odds and taking the largest draws from their softmax.
        support = np.stack([products[b, c], products[a, c], products[a, b]], axis=1)
        odd = np.argmax(support + rng.gumbel(size=support.shape), axis=1)
        order = np.array([[1, 2, 0], [0, 2, 1], [0, 1, 2]])[odd]
        drawn.append(np.take_along_axis(items, order, axis=1))
        n_left -= len(items)
    return np.concatenate(drawn)
