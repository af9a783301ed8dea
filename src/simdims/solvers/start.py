"""Initial values: a random or spectral W whose reconstruction has the mean of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from simdims._parameters import ParameterError, ParameterTypeError
from simdims.solvers.problem import FactorProblem, MatrixProblem, Problem, mean_similarity
from simdims.solvers.spectra import leading_eigenpairs

#: Loadings whose cubes (float32) and fourth powers (float64) can be summed over many items.
_LARGEST = {4: 1e10, 8: 1e70}


def given_start(init: Any, shape: tuple[int, int], dtype: Any, others: str = "'random', 'spectral'") -> np.ndarray:
    """A given W, in a precision; `others` names the alternatives."""
    try:
        if sparse.issparse(init) or np.ma.is_masked(init) or np.asarray(init).dtype.kind not in "biufOU":
            raise TypeError
        W = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        got = f"an object of type {type(init).__name__}"
        raise ParameterTypeError("init", f"must be {others} or an array of numbers", got) from None
    if W.shape != shape:
        raise ParameterError("init", f"must have shape (n_items, n_components) = {shape}", f"{W.shape}")
    largest = W.max()
    if not (W.min() >= 0 and 0 < largest < np.inf):  # False for NaN
        got = f"values from {W.min():g} to {largest:g}"  # nan if any value is
        raise ParameterError("init", "must be non-negative, finite and not all zero", got)
    dtype = np.dtype(dtype)
    most = _LARGEST[dtype.itemsize]
    if largest > most:
        raise ParameterError("init", f"must be at most {most:g} in {dtype}", f"{largest:g}")
    return W.astype(dtype)


def random_start(problem: Problem, n_components: int, rng: np.random.RandomState) -> np.ndarray:
    """W ~ U(0, 1), scaled to the data's mean."""
    W = rng.uniform(size=(problem.n_items, n_components))
    return scale_to_mean(problem, W)


def spectral_start(problem: Problem, n_components: int, rng: np.random.RandomState) -> np.ndarray:
    """For each leading eigenpair (lambda, u) of S, sqrt(lambda) times the larger of u's positive and negative parts.

    Missing pairs enter as zeros. A dimension without a positive eigenvalue starts at random.
    """
    eigenvalues, eigenvectors = leading_eigenpairs(_zero_filled(problem), n_components, rng)
    W = rng.uniform(size=(problem.n_items, n_components)) * np.sqrt(max(eigenvalues[0], 0.0) / problem.n_items or 1.0)
    for k in np.flatnonzero(eigenvalues > 0):
        u = eigenvectors[:, k]
        positive, negative = np.maximum(u, 0), np.maximum(-u, 0)
        heavier = positive if positive @ positive >= negative @ negative else negative
        W[:, k] = np.sqrt(eigenvalues[k]) * heavier
    return scale_to_mean(problem, W)


def scale_to_mean(problem: Problem, W: np.ndarray) -> np.ndarray:
    """W scaled so that W W^T has the weighted mean of the known similarities."""
    column_sums = W.sum(axis=0)
    mean = column_sums @ column_sums / problem.n_items**2
    factor = np.sqrt(max(mean_similarity(problem), 0.0) / mean) if mean > 0 else 0.0
    return np.ascontiguousarray(W * factor, dtype=problem.dtype)


def _zero_filled(problem: Problem) -> Any:
    """The known similarities, with zeros for missing pairs."""
    if isinstance(problem, FactorProblem):
        F = problem.factors
        return LinearOperator((len(F), len(F)), matvec=lambda x: F @ (F.T @ x), dtype=F.dtype)
    if isinstance(problem, MatrixProblem):
        return np.nan_to_num(problem.values)
    n = problem.n_items
    listed = sparse.csr_array((problem.values * (problem.weights > 0), problem.partners, problem.starts), shape=(n, n))
    return sparse.csr_array(listed + sparse.diags_array(problem.diagonal * (problem.diagonal_weights > 0)))
