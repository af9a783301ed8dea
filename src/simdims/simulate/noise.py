"""What happens to similarities when they are measured: noise at a given signal-to-noise ratio, and missing pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from simdims._parallel import generator_of
from simdims._parameters import require_flag, require_real
from simdims.metrics._embedding import as_numbers
from simdims.similarity import as_similarity


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
    >>> from simdims.simulate import add_noise, dirichlet
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
    require_real("snr", snr)
    if not 0 <= snr <= 1:
        raise ValueError(f"snr must be between 0 and 1, got {snr}.")
    snr = float(snr)
    if snr == 1:
        return signal.copy()

    pairs = _off_diagonal_pairs(signal)
    signal_pairs = signal[pairs].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        signal_scale = signal_pairs.std() if signal_pairs.size else 0.0
    if not np.isfinite(signal_scale):
        largest = signal_pairs.max()
        raise ValueError(
            f"S must be small enough to be squared and summed, got a largest of {largest:g}: divide by it."
        )
    if signal_scale <= 1e-12 * np.abs(signal_pairs).max(initial=0.0):
        raise ValueError(
            "S must vary over its off-diagonal pairs for a signal-to-noise ratio to mean anything, "
            f"got the same value for all {signal_pairs.size} of them."
        )
    noise = _symmetric_normal(len(signal), generator_of(random_state))
    if snr == 0:
        result = np.maximum(noise, 0)
        if not result[pairs].any():
            raise _unreachable(snr, len(signal_pairs))
        result *= signal_scale / result[pairs].std()
    else:
        scale = _noise_scale(signal_pairs / signal_scale, noise[pairs], snr)
        result = np.maximum(signal + scale * signal_scale * noise, 0)
    return result.astype(signal.dtype, copy=False)


def add_feature_noise(
    X: ArrayLike, snr: float, *, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.float64]:
    """Add Gaussian noise to features, clip at zero, and meet a signal-to-noise ratio of the similarities X X^T.

    Every entry gets its own draw from N(0, sigma^2); negative results become zero. The scale sigma is chosen so that,
    with S = X X^T and the result in the place of X, over the off-diagonal entries,

        snr = var(S) / (var(S) + var(noisy S - S)).

    One error in a feature moves all similarities of an item together, so this noise does not average out over pairs as
    that of `add_noise` does.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features)
        The signal: non-negative and finite.
    snr : float
        Between 0 and 1. 1 is no noise: a copy of X. 0 is no signal: the clipped noise alone, scaled so that its
        similarities have the standard deviation of those of X.
    random_state : int, RandomState or None, default=None
        Seed of the noise; None is fresh entropy. The same seed gives the same noise, scaled, at every ratio.

    Returns
    -------
    ndarray of shape (n_items, n_features)
        The noisy features, non-negative; their similarities are ``noisy @ noisy.T``.

    Examples
    --------
    >>> from simdims.simulate import add_feature_noise, factorial
    >>> X = factorial([3, 3, 3])
    >>> noisy = add_feature_noise(X, 0.5, random_state=0)
    >>> pairs = np.triu_indices(27, 1)
    >>> signal, error = (X @ X.T)[pairs], (noisy @ noisy.T - X @ X.T)[pairs]
    >>> print(round(signal.var() / (signal.var() + error.var()), 6))
    0.5
    """
    signal = as_numbers(X, "X").copy()
    if signal.ndim != 2 or len(signal) < 2 or signal.shape[1] < 1:
        raise ValueError(f"X must have a row for each of at least 2 items, got shape {signal.shape}.")
    if not (signal >= 0).all() or np.isinf(signal).any():
        wrong = signal[~(signal >= 0) | np.isinf(signal)][0]
        raise ValueError(f"X must be finite and non-negative, got {wrong:g}.")
    require_real("snr", snr)
    if not 0 <= snr <= 1:
        raise ValueError(f"snr must be between 0 and 1, got {snr}.")
    snr = float(snr)
    if snr == 1:
        return signal
    # A power of two, which rounds nothing: the search for a scale stops at an absolute tolerance.
    exponent = int(np.frexp(signal.max())[1])
    signal = np.ldexp(signal, -exponent)
    pairs = np.triu_indices(len(signal), k=1)
    clean = (signal @ signal.T)[pairs]
    if clean.std() <= 1e-12 * clean.max():
        raise ValueError(
            "X must give similarities that vary for a signal-to-noise ratio to mean anything, got equal ones."
        )
    noise = generator_of(random_state).standard_normal(signal.shape)

    def error_variance(scale: float) -> float:
        noisy = np.maximum(signal + scale * noise, 0)
        return ((noisy @ noisy.T)[pairs] - clean).var()

    if snr == 0:
        result = np.maximum(noise, 0)
        spread = (result @ result.T)[pairs].std()
        if spread == 0:
            raise _unreachable(snr, len(clean))
        return np.ldexp(result * np.sqrt(clean.std() / spread), exponent)
    scale = _scale_reaching(error_variance, clean.var() * (1 - snr) / snr, signal.std())
    if scale is None:
        raise _unreachable(snr, len(clean))
    return np.ldexp(np.maximum(signal + scale * noise, 0), exponent)


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
    require_real("observed", observed)
    if not 0 <= observed <= 1:
        raise ValueError(f"observed must be between 0 and 1, got {observed}.")
    require_flag("keep_diagonal", keep_diagonal)
    result = _dense_values(S).copy()
    rng = generator_of(random_state)
    pairs = _off_diagonal_pairs(result)
    left_out = np.zeros_like(pairs)
    left_out[pairs] = rng.uniform(size=np.count_nonzero(pairs)) >= observed
    result[left_out | left_out.T] = np.nan
    if not keep_diagonal:
        np.fill_diagonal(result, np.nan)
    return result


def _dense_values(S: NDArray) -> NDArray[np.floating]:
    values = as_similarity(S, copy=False).values
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

    def error_variance(scale: float) -> float:
        # max(signal + scale * noise, 0) - signal
        return np.maximum(scale * noise, -signal).var()

    target = (1 - snr) / snr
    scale = _scale_reaching(error_variance, target, np.sqrt(target))
    if scale is None:
        raise _unreachable(snr, len(noise))
    return scale


def _scale_reaching(error_variance: Callable[[float], float], target: float, guess: float) -> float | None:
    """The scale at which a variance that grows with it reaches the target, or None where it never does."""
    upper = 2 * guess
    for _ in range(100):
        if error_variance(upper) > target:
            return brentq(lambda scale: error_variance(scale) - target, 0, upper, xtol=1e-12, rtol=1e-12)
        upper *= 2
    return None


def _unreachable(snr: float, n_pairs: int) -> ValueError:
    return ValueError(
        f"snr = {snr} cannot be reached: all {n_pairs} pairs drew negative noise, which clipping at zero "
        "bounds; use more items or another random_state."
    )
