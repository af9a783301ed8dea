"""detectable_rank: how many dimensions remain detectable in noise, for any method."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simdims._parameters import ParameterError, require_between, require_number
from simdims.metrics._embedding import as_embedding
from simdims.simulate.embeddings import require_non_negative


def detectable_rank(
    W: ArrayLike, *, snr: float | None = None, sigma: float | None = None, observed: float = 1.0
) -> int:
    """Count the dimensions of an embedding that can be distinguished from noise in its similarities.

    An eigenvalue theta of the true similarities S = W W^T is detectable in noisy ones only if

        theta > sigma sqrt(n_items / observed),

    with sigma the standard deviation of the noise and `observed` the share of the pairs that are known. Below that
    limit the leading eigenvectors of the noisy similarities are unrelated to the true one (the transition of Baik, Ben
    Arous and Péché). The count is a reference for simulations: no rule based on the spectrum can be expected to find
    more dimensions. Methods that use more knowledge of the loadings, such as sparsity, sometimes do.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components)
        The true embedding, non-negative.
    snr : float, optional
        The signal-to-noise ratio of `add_noise`: var(S) / (var(S) + sigma^2) over pairs of different items, after
        clipping. 1 is no noise, 0 is noise alone.
    sigma : float, optional
        The standard deviation of the noise, observed minus true similarities, over pairs of different items. Give
        either this or `snr`.
    observed : float, default=1.0
        The share of the pairs that are known, as in `mask_pairs`; above 0.

    Returns
    -------
    int
        Between 0 and n_components; without noise, the rank of W.

    References
    ----------
    Baik, J., Ben Arous, G., & Péché, S. (2005). Phase transition of the largest eigenvalue for nonnull complex sample
    covariance matrices. Annals of Probability 33, 1643-1697.

    Examples
    --------
    >>> from simdims.simulate import detectable_rank, dirichlet
    >>> W = dirichlet(150, 20, alpha=0.5, random_state=0)
    >>> [detectable_rank(W, snr=snr, observed=0.5) for snr in (0.3, 0.5, 0.7)]
    [13, 19, 20]
    """
    embedding, _ = as_embedding(W)
    require_non_negative("W", embedding)
    if (snr is None) == (sigma is None):
        raise ParameterError("sigma", "must be given if {snr} is not, and cannot be given beside it", str(sigma))
    require_between("observed", observed, 0, 1)
    if observed == 0:
        raise ParameterError("observed", "must be above 0", "0")
    if sigma is not None:
        require_number("sigma", sigma, "at least 0")
    deviation = _noise(embedding, snr) if sigma is None else float(sigma)
    eigenvalues = np.linalg.eigvalsh(embedding.T @ embedding)
    rounding = len(embedding) * np.finfo(np.float64).eps * eigenvalues[-1]
    return int(np.count_nonzero(eigenvalues > max(deviation * np.sqrt(len(embedding) / observed), rounding)))


def _noise(W: np.ndarray, snr: Any) -> float:
    """The standard deviation of noise at a signal-to-noise ratio, without computing W W^T."""
    require_between("snr", snr, 0, 1)
    if snr in (0, 1):
        return 0.0 if snr else np.inf
    own, sums, gram = np.einsum("ik,ik->i", W, W), W.sum(axis=0), W.T @ W
    n_pairs = len(W) * (len(W) - 1)
    mean_square = (np.sum(gram**2) - np.sum(own**2)) / max(n_pairs, 1)
    mean = (sums @ sums - own.sum()) / max(n_pairs, 1)
    if mean_square - mean**2 <= 1e-12 * mean_square:
        rule = "must give similarities that vary over pairs of different items, to have a signal-to-noise ratio"
        raise ParameterError("W", rule, "equal ones")
    return float(np.sqrt(mean_square - mean**2)) * np.sqrt((1 - snr) / snr)
