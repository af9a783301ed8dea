"""Ground truth for simulations: embeddings, noise at a given signal-to-noise ratio, and missing pairs.

A simulated data set is made in three steps, each a function from arrays to an array: an embedding W gives the
similarities S = W W^T, noise is added to S, and pairs are left out.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.utils import check_random_state

from simdims.similarity import as_similarity


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
    if not (np.isfinite(alpha) and alpha > 0):
        raise ValueError(f"alpha must be positive and finite, got {alpha}.")
    rng = check_random_state(random_state)
    # G(a) = G(a + 1) U^(1/a) for gamma variables. In logarithms no row underflows to 0 / 0, as
    # RandomState.dirichlet does for small a; -log U is a standard exponential variable.
    shape = (n_items, n_components)
    log_gamma = np.log(rng.standard_gamma(alpha + 1, shape)) - rng.standard_exponential(shape) / alpha
    return softmax(log_gamma, axis=1)


def add_noise(
    S: NDArray, snr: float, *, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.floating]:
    """Add symmetric Gaussian noise to similarities, clip at zero, and meet a signal-to-noise ratio.

    Every unordered pair and every diagonal entry gets its own draw from N(0, sigma^2); negative results
    become zero. The scale sigma is chosen so that, over the off-diagonal entries and after clipping,

        snr = var(S) / (var(S) + var(result - S)).

    Parameters
    ----------
    S : array-like of shape (n_items, n_items)
        The signal: symmetric, non-negative, complete. Leave pairs out after adding noise, with `mask_pairs`.
    snr : float
        Between 0 and 1. 1 is no noise: a copy of S. 0 is no signal: the clipped noise alone, with the
        standard deviation of S over the off-diagonal entries.
    random_state : int, RandomState or None, default=None
        Seed of the noise; None is fresh entropy. The same seed gives the same noise, scaled, at every ratio.

    Returns
    -------
    ndarray of shape (n_items, n_items)
        The noisy similarities: symmetric and non-negative; float32 where S is, else float64.

    Notes
    -----
    Clipping makes the error smaller than the noise, and still its variance grows with sigma, from zero
    without bound, so every ratio has its sigma. The exception is a handful of items whose pairs all happen to
    draw negative noise: the error is then bounded by S itself, and a ratio beyond that bound is an error.

    References
    ----------
    SRF, Methods, "Simulated data".

    Examples
    --------
    >>> W = dirichlet(100, 4, random_state=0)
    >>> S = W @ W.T
    >>> noisy = add_noise(S, 0.5, random_state=0)
    >>> pairs = np.triu_indices(100, 1)
    >>> signal, error = S[pairs], (noisy - S)[pairs]
    >>> print(round(signal.var() / (signal.var() + error.var()), 6))
    0.5
    """
    signal = _dense_values(S)
    if np.isnan(signal).any():
        raise ValueError(
            f"S must be complete to add noise, got {np.count_nonzero(np.isnan(signal))} missing entries; "
            "leave pairs out afterwards, with mask_pairs."
        )
    if not 0 <= snr <= 1:
        raise ValueError(f"snr must be between 0 and 1, got {snr}.")
    if snr == 1:
        return signal.copy()

    pairs = _off_diagonal_pairs(signal)
    signal_pairs = signal[pairs].astype(np.float64)
    signal_scale = signal_pairs.std() if signal_pairs.size else 0.0
    if signal_scale <= 1e-12 * np.abs(signal_pairs).max(initial=0.0):
        raise ValueError(
            "S must vary over its off-diagonal pairs for a signal-to-noise ratio to mean anything, "
            f"got the same value for all {signal_pairs.size} of them."
        )
    noise = _symmetric_normal(len(signal), check_random_state(random_state))
    if snr == 0:
        result = np.maximum(noise, 0)
        if not result[pairs].any():
            raise _unreachable(snr, len(signal_pairs))
        result *= signal_scale / result[pairs].std()
    else:
        scale = _noise_scale(signal_pairs / signal_scale, noise[pairs], snr)
        result = np.maximum(signal + scale * signal_scale * noise, 0)
    return result.astype(signal.dtype, copy=False)


def mask_pairs(
    S: NDArray,
    observed: float,
    *,
    random_state: int | np.random.RandomState | None = None,
    keep_diagonal: bool = True,
) -> NDArray[np.floating]:
    """Leave out pairs at random: each unordered pair stays with probability `observed`.

    Parameters
    ----------
    S : array-like of shape (n_items, n_items)
        Similarities. Pairs that are missing already (NaN) stay missing.
    observed : float
        Between 0 and 1: the probability with which a pair stays, independently of all others.
    random_state : int, RandomState or None, default=None
        Seed of the choice; None is fresh entropy. With the same seed the pairs that stay at a lower
        probability are among those that stay at a higher one.
    keep_diagonal : bool, default=True
        Whether the diagonal stays as it is; if not, all of it is left out.

    Returns
    -------
    ndarray of shape (n_items, n_items)
        S with NaN in both triangles of the pairs left out; float32 where S is, else float64.

    Examples
    --------
    >>> S = np.ones((200, 200))
    >>> masked = mask_pairs(S, 0.3, random_state=0)
    >>> share = 1 - np.isnan(masked[np.triu_indices(200, 1)]).mean()
    >>> print(round(share, 1), np.isnan(masked.diagonal()).any())
    0.3 False
    """
    if not 0 <= observed <= 1:
        raise ValueError(f"observed must be between 0 and 1, got {observed}.")
    result = _dense_values(S).copy()
    rng = check_random_state(random_state)
    pairs = _off_diagonal_pairs(result)
    left_out = np.zeros_like(pairs)
    left_out[pairs] = rng.uniform(size=np.count_nonzero(pairs)) >= observed
    result[left_out | left_out.T] = np.nan
    if not keep_diagonal:
        np.fill_diagonal(result, np.nan)
    return result


def _require_count(name: str, value: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")


def _dense_values(S: NDArray) -> NDArray[np.floating]:
    values = as_similarity(S).values
    if not isinstance(values, np.ndarray):
        raise TypeError(f"S must be a dense array, got {type(values).__name__}; convert it with .toarray().")
    return values


def _off_diagonal_pairs(S: NDArray) -> NDArray[np.bool_]:
    return np.triu(np.ones(S.shape, dtype=bool), k=1)


def _symmetric_normal(n_items: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    draws = np.triu(rng.standard_normal((n_items, n_items)))
    return draws + np.triu(draws, k=1).T


def _noise_scale(signal: NDArray, noise: NDArray, snr: float) -> float:
    """The scale of the noise that gives a signal of unit variance this ratio after clipping at zero."""
    target = (1 - snr) / snr

    def excess(scale: float) -> float:
        # max(signal + scale * noise, 0) - signal
        return np.maximum(scale * noise, -signal).var() - target

    upper = 2 * np.sqrt(target)
    for _ in range(100):
        if excess(upper) > 0:
            return brentq(excess, 0, upper, xtol=1e-12, rtol=1e-12)
        upper *= 2
    raise _unreachable(snr, len(noise))


def _unreachable(snr: float, n_pairs: int) -> ValueError:
    return ValueError(
        f"snr = {snr} cannot be reached: all {n_pairs} pairs drew negative noise, which clipping at zero "
        "bounds; use more items or another random_state."
    )
