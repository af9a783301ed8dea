"""Where a fit starts: a random or spectral W whose reconstruction has the mean of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from simdims.solvers.problem import FactorProblem, MatrixProblem, Problem, mean_similarity


def random_start(problem: Problem, n_components: int, rng: np.random.RandomState) -> np.ndarray:
    """W ~ U(0, 1), scaled to the data's mean."""
    W = rng.uniform(size=(problem.n_items, n_components))
    return scale_to_mean(problem, W)


def spectral_start(problem: Problem, n_components: int, rng: np.random.RandomState) -> np.ndarray:
    """For each leading eigenpair (lambda, u) of S, sqrt(lambda) times the heavier of u's positive and negative parts.

    Missing pairs enter as zeros. A dimension without a positive eigenvalue starts at random.
    """
    eigenvalues, eigenvectors = _leading_eigenpairs(_zero_filled(problem), n_components, rng)
    W = rng.uniform(size=(problem.n_items, n_components))
    for k in np.flatnonzero(eigenvalues > 0):
        u = eigenvectors[:, k]
        positive, negative = np.maximum(u, 0), np.maximum(-u, 0)
        heavier = positive if positive @ positive >= negative @ negative else negative
        W[:, k] = np.sqrt(eigenvalues[k]) * heavier
    return scale_to_mean(problem, W)


def scale_to_mean(problem: Problem, W: np.ndarray) -> np.ndarray:
    """W times the constant that gives W W^T the weighted mean of the known similarities."""
    column_sums = W.sum(axis=0)
    mean = column_sums @ column_sums / problem.n_items**2
    factor = np.sqrt(max(mean_similarity(problem), 0.0) / mean) if mean > 0 else 0.0
    return np.ascontiguousarray(W * factor, dtype=problem.dtype)


def _zero_filled(problem: Problem) -> Any:
    """The known similarities, zero where a pair is missing."""
    if isinstance(problem, FactorProblem):
        F = problem.factors
        return LinearOperator((len(F), len(F)), matvec=lambda x: F @ (F.T @ x), dtype=F.dtype)
    if isinstance(problem, MatrixProblem):
        return np.nan_to_num(problem.values)
    n = problem.n_items
    listed = sparse.csr_array((problem.values * (problem.weights > 0), problem.partners, problem.starts), shape=(n, n))
    return sparse.csr_array(listed + sparse.diags_array(problem.diagonal * (problem.diagonal_weights > 0)))


def _leading_eigenpairs(S: Any, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, falling, and their eigenvectors; the start vector is seeded, so they repeat."""
    n = S.shape[0]
    if k < n // 2:
        try:
            eigenvalues, eigenvectors = eigsh(S, k=k, which="LA", v0=rng.uniform(size=n))
        except ArpackError:  # zero or of very low rank: whatever is found is a start, and what is not is random
            return np.zeros(k), np.zeros((n, k))
        order = np.argsort(eigenvalues)[::-1]
        return eigenvalues[order], eigenvectors[:, order]
    dense = S if isinstance(S, np.ndarray) else S @ np.eye(n)
    eigenvalues, eigenvectors = linalg.eigh(dense, subset_by_index=[n - k, n - 1])
    return eigenvalues[::-1], eigenvectors[:, ::-1]
