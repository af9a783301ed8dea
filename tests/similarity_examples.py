"""Similarities that tests share: simulated ones of known dimensions, with noise and gaps, dense and sparse."""

import numpy as np
from scipy import sparse

from simdims import Similarity, simulate


def similarities(n=60, r=4, *, snr=0.9, observed=1.0, seed=0, alpha=0.3):
    """W W^T of Dirichlet loadings with noise, NaN for missing pairs."""
    W = simulate.dirichlet(n, r, alpha=alpha, random_state=seed)
    S = W @ W.T if snr == 1 else simulate.add_noise(W @ W.T, snr, random_state=seed)
    return simulate.mask_pairs(S, observed, random_state=seed)


def as_csr(S):
    """The entries that are not NaN, zeros included."""
    known = np.nonzero(~np.isnan(S))
    return sparse.csr_array((S[known], known), shape=S.shape)


def half_stored(S, absent, keep=0.5):
    """About half of the pairs of a complete matrix, and its diagonal, as sparse similarities."""
    upper = np.triu(np.random.default_rng(0).random(S.shape) < keep, 1)
    return Similarity(sparse.csr_array(np.where(upper | upper.T | np.eye(len(S), dtype=bool), S, 0.0)), absent=absent)
