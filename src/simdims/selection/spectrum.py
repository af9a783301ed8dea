"""Two classic ways to count dimensions from eigenvalues alone: the scree test and Horn's parallel analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from simdims import _threads, solvers
from simdims._parallel import generator_of
from simdims._parameters import require_count
from simdims.selection.calibration import check_items, require_share
from simdims.selection.splits import observed_pairs, plain, zero_filled
from simdims.similarity import as_similarity
from simdims.similarity.arrays import Arrays

#: All eigenvalues are used up to this many items, and this many leading ones for larger matrices.
_MOST_EIGENVALUES = 500


def scree_test(S: Any) -> int:
    """The number of dimensions before the eigenvalues of S level off.

    The elbow of the decreasing curve of eigenvalues is the point furthest below the straight line between its ends; the
    eigenvalues before it count.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes
        Missing pairs count as zeros. With more than 500 items, the curve consists of the 500 leading eigenvalues.

    Returns
    -------
    int

    References
    ----------
    Cattell, R. B. (1966). The scree test for the number of factors. Multivariate Behavioral Research 1, 245-276.

    Examples
    --------
    >>> from simdims import scree_test, simulate
    >>> W = simulate.dirichlet(100, 5, alpha=0.1, random_state=0)
    >>> scree_test(W @ W.T)
    5
    """
    similarity = as_similarity(S, copy=False)
    check_items(similarity.n_items)
    eigenvalues = _eigenvalues(zero_filled(plain(similarity)), np.random.RandomState(0))
    fall = eigenvalues[0] - eigenvalues[-1]
    if fall <= 0:
        return 1
    line = np.linspace(eigenvalues[0], eigenvalues[-1], len(eigenvalues))
    return max(1, int(np.argmax(line - eigenvalues)))


def parallel_analysis(
    S: Any, *, n_samples: int = 100, quantile: float = 0.95, random_state: int | np.random.RandomState | None = None
) -> int:
    """The number of leading eigenvalues of S that exceed those of random similarities of the same scale (Horn).

    Random similarities have the values of S: its observed pairs are permuted at random, while the diagonal and the
    pattern of missing pairs stay (pairs that a sparse matrix does not store, and that are zeros, are permuted too).
    They have the mean, the variance and the distribution of S and no dimensions. The k-th eigenvalue is compared with
    the `quantile` of the k-th random ones; counting stops at the first that does not exceed it. The first eigenvalue of
    non-negative similarities is about their mean times the number of items, in random ones as well; it is not
    informative and always counts.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes
        Missing pairs count as zeros.
    n_samples : int, default=100
        Number of random matrices.
    quantile : float, default=0.95
        Quantile of the random eigenvalues.
    random_state : int, RandomState or None, default=None
        Seed; None uses fresh entropy.

    Returns
    -------
    int

    References
    ----------
    Horn, J. L. (1965). A rationale and test for the number of factors in factor analysis. Psychometrika 30, 179-185.

    Examples
    --------
    >>> from simdims import parallel_analysis, simulate
    >>> W = simulate.dirichlet(100, 5, alpha=0.1, random_state=0)
    >>> parallel_analysis(W @ W.T, n_samples=20, random_state=0)
    5
    """
    similarity = as_similarity(S, copy=False)
    check_items(similarity.n_items)
    require_count("n_samples", n_samples)
    require_share("quantile", quantile)
    rng = generator_of(random_state)
    matrix = plain(similarity)
    eigenvalues = _eigenvalues(zero_filled(matrix), rng)
    random = np.array([_eigenvalues(_shuffled(matrix, rng), rng) for _ in range(n_samples)])
    falls_short = eigenvalues[1:] <= np.quantile(random, quantile, axis=0)[1:]
    return 1 + int(np.argmax(falls_short) if falls_short.any() else len(falls_short))


def _eigenvalues(S: np.ndarray | sparse.csr_array, rng: np.random.RandomState) -> np.ndarray:
    n = S.shape[0]
    with _threads.one_blas_thread():
        if n <= _MOST_EIGENVALUES:
            return np.linalg.eigvalsh(S if isinstance(S, np.ndarray) else S.toarray())[::-1]
        return solvers.leading_eigenpairs(S, _MOST_EIGENVALUES, rng)[0]


def _shuffled(matrix: Arrays, rng: np.random.RandomState) -> np.ndarray | sparse.csr_array:
    """The observed similarities, with those of different items randomly permuted."""
    S = zero_filled(matrix)
    n = matrix.n_items
    rows, columns, values, _ = observed_pairs(matrix)
    if isinstance(S, np.ndarray):
        shuffled = np.zeros_like(S)
        shuffled[rows, columns] = rng.permutation(values)
        shuffled += shuffled.T
        np.fill_diagonal(shuffled, np.diagonal(S))
        return shuffled
    if matrix.absent_weight:
        if n < 3000:
            places = np.sort(rng.choice(n * (n - 1) // 2, size=len(values), replace=False))
            rows, columns = (items[places] for items in np.triu_indices(n, 1))
        else:
            rows, columns = _random_pairs(n, len(values), rng)
    moved = sparse.csr_array((rng.permutation(values), (rows, columns)), shape=(n, n))
    return sparse.csr_array(moved + moved.T + sparse.diags_array(S.diagonal()))


def _random_pairs(n_items: int, n_pairs: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs i < j, drawn uniformly, of a matrix that is too large to list its pairs."""
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < n_pairs:
        i, j = rng.randint(n_items, size=(2, n_pairs))
        drawn = (np.minimum(i, j).astype(np.int64) * n_items + np.maximum(i, j))[i != j]
        keys = np.unique(np.concatenate([keys, drawn]))
    keys = rng.permutation(keys)[:n_pairs]
    return keys // n_items, keys % n_items
