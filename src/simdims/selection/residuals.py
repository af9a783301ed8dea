"""Residuals of a fit, and copies with random signs, which show whether the residuals have structure.

The residuals are the symmetric matrix E_ij = Omega_ij (S_ij - w_i . w_j) for observed pairs of different items, 0
elsewhere, with the weights of the fit; inverse-variance weights make missed structure most visible. Random signs
remove all structure and keep the size of every residual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from simdims import _memory, solvers
from simdims.metrics._pairs import pair_products
from simdims.solvers.problem import MatrixProblem, PairProblem, matrix_of, row_blocks

#: Up to this many items, sparse similarities whose absent pairs are zeros are converted to a dense matrix.
_DENSE = 2000

#: With more items, the number of absent pairs sampled per item, at least as many in total as there are listed pairs.
_DRAWN_PER_ITEM = 50


class Comparison(NamedTuple):
    """Square root of the sum of squared residuals, their largest eigenvalue, and those with random signs."""

    norm: float
    eigenvalue: float
    flipped: np.ndarray


def compare_with_noise(
    problem: solvers.Problem, W: np.ndarray, n_flips: int, rng: np.random.Generator, *, negligible: float = 0.0
) -> Comparison:
    """The largest eigenvalue of the residuals, and of `n_flips` copies with random signs.

    No copies are drawn if the norm is at most `negligible`.
    """
    if isinstance(problem, PairProblem) and not (problem.background and problem.n_items <= _DENSE):
        return _compare_listed(problem, W, n_flips, rng, negligible)
    return compare_matrix(_residual_matrix(matrix_of(problem), W), n_flips, rng, negligible)


def compare_matrix(E: np.ndarray, n_flips: int, rng: np.random.Generator, negligible: float) -> Comparison:
    """`compare_with_noise` for a matrix of residuals, whose signs are changed in place."""
    norm = float(np.sqrt(sum(np.sum(np.square(E[rows], dtype=np.float64)) for rows in row_blocks(0, len(E)))))
    eigenvalue = solvers.largest_eigenvalue(E, rng)
    null = []
    for _ in range(n_flips if norm > negligible else 0):
        _flip(E, rng)  # in place: earlier random signs do not matter
        null.append(solvers.largest_eigenvalue(E, rng))
    return Comparison(norm, eigenvalue, np.array(null))


def summed_residuals(problem: solvers.JointProblem, W: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The sum of the residuals Omega_m o (S_m - W D_m W^T) of all systems, with zeros on the diagonal."""
    n, listed, c = problem.n_items, problem.listed, problem.zeros
    _memory.require(8 * n * n, f"A matrix of {n} x {n} residuals", "pass a random subset of the items")
    E = -(W * (c @ a)) @ W.T
    for m, S in problem.dense.items():
        E += c[m] * S
    rows = listed.rows
    predicted = np.einsum("ek,ek,ek->e", W[rows], a[listed.systems], W[listed.partners])
    values = listed.weights * (listed.values - predicted) + c[listed.systems] * predicted
    E += sparse.coo_array((values, (rows, listed.partners)), shape=(n, n)).toarray()
    np.fill_diagonal(E, 0.0)
    return E


def _residual_matrix(problem: MatrixProblem, W: np.ndarray) -> np.ndarray:
    n = problem.n_items
    _memory.require(
        n * n * problem.dtype.itemsize,
        f"A matrix of {n} x {n} residuals",
        "pass float32 values, or a random subset of the items",
    )
    E = np.empty((n, n), problem.dtype)
    for rows in row_blocks(0, n):
        block = np.nan_to_num(problem.values[rows] - W[rows] @ W.T, copy=False)
        E[rows] = block * problem.weights[rows] if problem.weights.size else block
    np.fill_diagonal(E, 0.0)
    return E


def _flip(E: np.ndarray, rng: np.random.Generator) -> None:
    """Give every pair a random sign, by blocks of rows of the upper triangle, which are then mirrored."""
    for rows in row_blocks(0, len(E)):
        upper = E[rows, rows.start :]
        upper *= 1 - 2 * rng.integers(2, size=upper.shape, dtype=np.int8)
        square = np.triu(E[rows, rows])
        E[rows, rows] = square + square.T  # the diagonal is zero
        E[rows.stop :, rows] = E[rows, rows.stop :].T


def _compare_listed(
    problem: PairProblem, W: np.ndarray, n_flips: int, rng: np.random.Generator, negligible: float
) -> Comparison:
    n, background = problem.n_items, problem.background
    rows = np.repeat(np.arange(n), np.diff(problem.starts))
    upper = rows < problem.partners
    i, j = rows[upper], problem.partners[upper].astype(np.int64)
    predicted = pair_products(W, i, j)
    values = problem.weights[upper] * (problem.values[upper] - predicted)
    squares, operator = 2.0 * float(values @ values), symmetric(n, i, j, values)
    if background:
        # Subtract background w_i . w_j from all pairs; add it back for listed pairs and the diagonal.
        own = np.einsum("ik,ik->i", W, W, dtype=np.float64)
        listed = symmetric(n, i, j, values + background * predicted) + sparse.diags_array(background * own)
        unlisted = float(np.sum((W.T @ W) ** 2) - own @ own - 2.0 * (predicted @ predicted))
        squares, operator = squares + background**2 * max(unlisted, 0.0), _less_products(listed, W, background)
        drawn = _draw_unlisted(problem, i * n + j, rng)
        # The edge of the spectrum depends on the sums of squares of rows, which a scaled sample preserves.
        scale = background * np.sqrt((n * (n - 1) / 2 - len(i)) / max(len(drawn), 1))
        i, j = np.concatenate([i, drawn // n]), np.concatenate([j, drawn % n])
        values = np.concatenate([values, scale * pair_products(W, drawn // n, drawn % n)])
    norm = float(np.sqrt(squares))
    eigenvalue = solvers.largest_eigenvalue(operator, rng)
    flipped = symmetric(n, i, j, values)
    places = symmetric(n, i, j, np.arange(1, len(i) + 1)).data - 1
    null = []
    for _ in range(n_flips if norm > negligible else 0):
        flipped.data = (values * (1 - 2 * rng.integers(2, size=len(values), dtype=np.int8)))[places]
        null.append(solvers.largest_eigenvalue(flipped, rng))
    return Comparison(norm, eigenvalue, np.array(null))


def symmetric(n_items: int, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> sparse.csr_array:
    """A symmetric matrix from its upper triangle."""
    at = (np.concatenate([i, j]), np.concatenate([j, i]))
    return sparse.csr_array((np.concatenate([values, values]), at), shape=(n_items, n_items))


def _less_products(listed: Any, W: np.ndarray, background: float) -> LinearOperator:
    shape = (len(W), len(W))
    return LinearOperator(shape, matvec=lambda x: listed @ x - background * (W @ (W.T @ x)), dtype=np.float64)


def _draw_unlisted(problem: PairProblem, listed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Keys i n + j (i < j) of distinct unlisted pairs, drawn uniformly."""
    n = problem.n_items
    wanted = min(max(len(listed), _DRAWN_PER_ITEM * n // 2), (n * (n - 1) // 2 - len(listed)) // 2)
    i, j = rng.integers(n, size=(2, 3 * wanted + 16))
    keys = np.unique((np.minimum(i, j) * n + np.maximum(i, j))[i != j])
    return rng.permutation(np.setdiff1d(keys, listed))[:wanted]
