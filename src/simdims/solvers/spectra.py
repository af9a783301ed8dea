"""Leading eigenpairs of a symmetric matrix, however it is stored."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

#: Up to here a dense matrix is quicker reduced to tridiagonal form than multiplied with vectors.
_REDUCED_SIZE = 4000

#: The largest eigenvalue alone is quicker found by products from here on; and how precisely it is found so.
_FEW, _TOLERANCE = 200, 1e-3

#: Whether ARPACK asks where to draw from when it has lost its direction; older versions of SciPy do not.
_DRAWS = "rng" in inspect.signature(eigsh).parameters


def leading_eigenpairs(S: Any, k: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, falling, and their eigenvectors as columns.

    S is an ndarray, a sparse matrix or a LinearOperator. Where only its products are used, the start vector is drawn
    from `rng`, so that the same seed gives the same numbers. Of a matrix whose products do not settle, those that were
    found come first, and zeros with zero vectors follow.
    """
    n = S.shape[0]
    dense = isinstance(S, np.ndarray)
    if k >= n // 2 or (dense and n <= _REDUCED_SIZE):
        matrix = S if dense else S @ np.eye(n)
        try:
            eigenvalues, eigenvectors = linalg.eigh(matrix, subset_by_index=[n - k, n - 1], check_finite=False)
        except linalg.LinAlgError:
            eigenvalues, eigenvectors = np.empty(0), np.empty((n, 0))
        if len(eigenvalues) < k:  # some of many equal eigenvalues were not found; to find all of them is safe
            eigenvalues, eigenvectors = linalg.eigh(matrix, driver="evd", check_finite=False)
            eigenvalues, eigenvectors = eigenvalues[n - k :], eigenvectors[:, n - k :]
        return eigenvalues[::-1], eigenvectors[:, ::-1]
    start = rng.uniform(size=n)
    if not np.any(S @ start):  # a non-negative matrix without an entry above zero
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
    except ArpackError:  # few different eigenvalues left it without a direction to go on: more vectors do not
        eigenvalues, eigenvectors = largest(ncv=min(n, 10 * k + 20))
    order = np.argsort(eigenvalues)[::-1]
    return eigenvalues[order], eigenvectors[:, order]


def largest_eigenvalue(S: Any, rng: np.random.Generator) -> float:
    """The largest eigenvalue of a symmetric matrix (or LinearOperator), to within a thousandth of it."""
    n = S.shape[0]
    if n <= _FEW:
        return float(
            linalg.eigvalsh(S if isinstance(S, np.ndarray) else S @ np.eye(n), subset_by_index=[n - 1, n - 1])[0]
        )
    start = rng.standard_normal(n)
    if not np.any(S @ start):
        return 0.0
    drawn = {"rng": np.random.default_rng(0)} if _DRAWS else {}
    found = eigsh(S, k=1, which="LA", v0=start, tol=_TOLERANCE, return_eigenvectors=False, **drawn)
    return float(found[0])
