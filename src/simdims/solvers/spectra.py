"""Leading eigenpairs of a symmetric matrix in any storage."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

#: Up to this size, reducing a dense matrix to tridiagonal form is faster than products with vectors.
_REDUCED_SIZE = 4000

#: From this size on, the largest eigenvalue alone is found faster by products; and their relative tolerance.
_FEW, _TOLERANCE = 200, 1e-3

#: Whether ARPACK restarts with a given random generator; older versions of SciPy cannot.
_DRAWS = "rng" in inspect.signature(eigsh).parameters


def leading_eigenpairs(S: Any, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, in decreasing order, and their eigenvectors as columns.

    S is an ndarray, a sparse matrix or a LinearOperator. If only products are used, the start vector is drawn from
    `rng`, so the same seed gives the same result. If the iteration does not converge, the eigenpairs found come first,
    followed by zeros with zero vectors.
    """
    n = S.shape[0]
    dense = isinstance(S, np.ndarray)
    if k >= n // 2 or (dense and n <= _REDUCED_SIZE):
        matrix = S if dense else S @ np.eye(n)
        try:
            eigenvalues, eigenvectors = linalg.eigh(matrix, subset_by_index=[n - k, n - 1], check_finite=False)
        except linalg.LinAlgError:
            eigenvalues, eigenvectors = np.empty(0), np.empty((n, 0))
        if len(eigenvalues) < k:  # some of several equal eigenvalues may be missing; compute all of them
            eigenvalues, eigenvectors = linalg.eigh(matrix, driver="evd", check_finite=False)
            eigenvalues, eigenvectors = eigenvalues[n - k :], eigenvectors[:, n - k :]
        return eigenvalues[::-1], eigenvectors[:, ::-1]
    start = rng.uniform(size=n)
    if not np.any(S @ start):  # a non-negative matrix without positive entries
        return np.zeros(k), np.zeros((n, k))
    drawn = {"rng": np.random.default_rng(0)} if _DRAWS else {}
    largest = partial(eigsh, S, k=k, which="LA", v0=start, **drawn)
    try:
        eigenvalues, eigenvectors = largest()
    except ArpackNoConvergence as error:
        found = len(error.eigenvalues)
        eigenvalues = np.concatenate([error.eigenvalues, np.zeros(k - found)])
        eigenvectors = np.hstack([error.eigenvectors, np.zeros((n, k - found))])
        order = np.concatenate([np.argsort(error.eigenvalues)[::-1], np.arange(found, k)])
        return eigenvalues[order], eigenvectors[:, order]
    except ArpackError:  # too few distinct eigenvalues to continue; more vectors help
        eigenvalues, eigenvectors = largest(ncv=min(n, 10 * k + 20))
    order = np.argsort(eigenvalues)[::-1]
    return eigenvalues[order], eigenvectors[:, order]


def largest_eigenvalue(S: Any, rng: np.random.Generator) -> float:
    """The largest eigenvalue of a symmetric matrix (or LinearOperator), to a relative precision of 0.001."""
    n = S.shape[0]
    if n <= _FEW:
        matrix = S if isinstance(S, np.ndarray) else S @ np.eye(n)
        return float(linalg.eigvalsh(matrix, subset_by_index=[n - 1, n - 1])[0])
    start = rng.standard_normal(n)
    if not np.any(S @ start):
        return 0.0
    drawn = {"rng": np.random.default_rng(0)} if _DRAWS else {}
    found = eigsh(S, k=1, which="LA", v0=start, tol=_TOLERANCE, return_eigenvectors=False, **drawn)
    return float(found[0])
