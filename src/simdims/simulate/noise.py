"""Noise at a given signal-to-noise ratio, and missing pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from simdims._parallel import generator_of
from simdims._parameters import ParameterError, ParameterTypeError, require_between, require_flag
from simdims.metrics._embedding import as_numbers
from simdims.similarity import as_similarity
from simdims.simulate.embeddings import require_non_negative


def add_noise(
    S: NDArray, snr: float, *, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.floating]:
    """Add symmetric Gaussian noise to similarities at a signal-to-noise ratio, and clip at zero.

    Every unordered pair and every diagonal entry gets its own draw from N(0, sigma^2); negative results become zero.
    The scale sigma is chosen such that, over the off-diagonal entries and after clipping,

        snr = var(S) / (var(S) + var(result - S)).

    Parameters
    ----------
    S : array-like of shape (n_items, n_items)
        The signal: symmetric, non-negative, complete. Leave pairs out after adding noise, with `mask_pairs`.
    snr : float
        Signal-to-noise ratio between 0 and 1. 1 is a copy of S without noise; 0 is the clipped noise alone, with the
        standard deviation of S over the off-diagonal entries.
    random_state : int, RandomState or None, default=None
        Seed of the noise; None uses fresh entropy. The same seed gives the same noise, scaled, at every ratio.

    Returns
    -------
    ndarray of shape (n_items, n_items)
        The noisy similarities: symmetric and non-negative; float32 where S is, else float64.

    Notes
    -----
    Clipping makes the error smaller than the noise, but its variance still grows with sigma without bound, so every
    ratio has a sigma. The exception are a few items whose pairs all draw negative noise: the error is then bounded by
    S, and ratios beyond that bound raise an error.

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
        got = f"{np.count_nonzero(np.isnan(signal))} missing entries"
        raise ParameterError("S", "must be complete to add noise", got, "leave pairs out afterwards, with mask_pairs")
    require_between("snr", snr, 0, 1)
    snr = float(snr)
    if snr == 1:
        return signal.copy()
    pairs = np.triu(np.ones(signal.shape, dtype=bool), k=1)
    signal_pairs = signal[pairs].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        signal_scale = signal_pairs.std() if signal_pairs.size else 0.0
    if not np.isfinite(signal_scale):
        got = f"a largest of {signal_pairs.max():g}"
        raise ParameterError("S", "must be small enough to be squared and summed", got, "divide by it")
    if signal_scale <= 1e-12 * np.abs(signal_pairs).max(initial=0.0):
        rule = "must vary over its off-diagonal pairs to have a signal-to-noise ratio"
        raise ParameterError("S", rule, f"the same value for all {signal_pairs.size} of them")
    noise = np.triu(generator_of(random_state).standard_normal(signal.shape))
    noise += np.triu(noise, k=1).T
    if snr == 0:
        result = np.maximum(noise, 0)
        if not result[pairs].any():
            raise _unreachable(snr, len(signal_pairs))
        result *= signal_scale / result[pairs].std()
    else:
        relative, noise_pairs = signal_pairs / signal_scale, noise[pairs]
        noise_to_signal = (1 - snr) / snr

        def excess(scale: float) -> float:  # of the variance of max(signal + scale * noise, 0) - signal
            return np.maximum(scale * noise_pairs, -relative).var() - noise_to_signal

        scale = _scale_of_noise(excess, np.sqrt(noise_to_signal), snr, len(signal_pairs))
        result = np.maximum(signal + scale * signal_scale * noise, 0)
    return result.astype(signal.dtype, copy=False)


def add_feature_noise(
    X: ArrayLike, snr: float, *, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.float64]:
    """Add Gaussian noise to features at a signal-to-noise ratio of the similarities X X^T, and clip at zero.

    The ratio is that of `add_noise`, with S = X X^T and the similarities of the noisy features. An error in one feature
    changes all similarities of an item, so unlike that of `add_noise` this noise does not average out over pairs.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features)
        The signal: non-negative and finite.
    snr : float
        Signal-to-noise ratio between 0 and 1. 1 is a copy of X without noise; 0 is the clipped noise alone, scaled such
        that its similarities have the standard deviation of those of X.
    random_state
        As in `add_noise`.

    Returns
    -------
    ndarray of shape (n_items, n_features)
        The noisy features, non-negative; their similarities are ``noisy @ noisy.T``.

    Examples
    --------
    >>> from simdims.simulate import add_feature_noise, factorial
    >>> noisy = add_feature_noise(factorial([3, 3, 3]), 0.5, random_state=0)
    >>> noisy.shape, bool(noisy.min() >= 0)
    ((27, 9), True)
    """
    signal = as_numbers(X, "X").copy()
    if signal.ndim != 2 or len(signal) < 2 or signal.shape[1] < 1:
        raise ParameterError("X", "must have a row for each of at least 2 items", f"shape {signal.shape}")
    require_non_negative("X", signal)
    require_between("snr", snr, 0, 1)
    snr = float(snr)
    if snr == 1:
        return signal
    # The search for a scale has an absolute tolerance; scaling by a power of two is exact.
    exponent = int(np.frexp(signal.max())[1])
    signal = np.ldexp(signal, -exponent)
    pairs = np.triu_indices(len(signal), k=1)
    clean = (signal @ signal.T)[pairs]
    if clean.std() <= 1e-12 * clean.max():
        raise ParameterError("X", "must give similarities that vary, to have a signal-to-noise ratio", "equal ones")
    noise = generator_of(random_state).standard_normal(signal.shape)
    if snr == 0:
        result = np.maximum(noise, 0)
        spread = (result @ result.T)[pairs].std()
        if spread == 0:
            raise _unreachable(snr, len(clean))
        return np.ldexp(result * np.sqrt(clean.std() / spread), exponent)

    target = clean.var() * (1 - snr) / snr

    def excess(scale: float) -> float:
        noisy = np.maximum(signal + scale * noise, 0)
        return ((noisy @ noisy.T)[pairs] - clean).var() - target

    scale = _scale_of_noise(excess, signal.std(), snr, len(clean))
    return np.ldexp(np.maximum(signal + scale * noise, 0), exponent)


def mask_pairs(
    S: NDArray, observed: float, *, random_state: int | np.random.RandomState | None = None, keep_diagonal: bool = True
) -> NDArray[np.floating]:
    """Leave out pairs at random: each unordered pair is kept with probability `observed`.

    Parameters
    ----------
    S : array-like of shape (n_items, n_items)
        Similarities. Missing pairs (NaN) stay missing.
    observed : float
        The probability, between 0 and 1, with which each pair is kept, independently of the others.
    random_state : int, RandomState or None, default=None
        Seed of the choice; None uses fresh entropy. With the same seed, the pairs that are kept at a lower probability
        are among those that are kept at a higher one.
    keep_diagonal : bool, default=True
        Whether to keep the diagonal; otherwise all of it is left out.

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
    require_between("observed", observed, 0, 1)
    require_flag("keep_diagonal", keep_diagonal)
    result = _dense_values(S).copy()
    rng = generator_of(random_state)
    pairs = np.triu(np.ones(result.shape, dtype=bool), k=1)
    left_out = np.zeros_like(pairs)
    left_out[pairs] = rng.uniform(size=np.count_nonzero(pairs)) >= observed
    result[left_out | left_out.T] = np.nan
    if not keep_diagonal:
        np.fill_diagonal(result, np.nan)
    return result


def _dense_values(S: NDArray) -> NDArray[np.floating]:
    values = as_similarity(S, copy=False).values
    if not isinstance(values, np.ndarray):
        raise ParameterTypeError("S", "must be a dense array", type(values).__name__, "convert it with .toarray()")
    return values


def _scale_of_noise(excess: Callable[[float], float], guess: float, snr: float, n_pairs: int) -> float:
    """The scale of the noise at which the excess of its variance over the required one, which grows with it, is 0."""
    for upper in np.ldexp(guess, range(1, 101)):
        if excess(upper) > 0:
            return brentq(excess, 0, upper, xtol=1e-12, rtol=1e-12)
    raise _unreachable(snr, n_pairs)


def _unreachable(snr: float, n_pairs: int) -> ParameterError:
    rule = f"must be higher where all {n_pairs} pairs draw negative noise, which clipping at zero bounds"
    return ParameterError("snr", rule, str(snr), "use more items or another {random_state}")
