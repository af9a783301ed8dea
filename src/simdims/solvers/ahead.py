"""Sweeps over many items: a second thread computes the products of the next block while the rows of this one move.

It computes them from W as it was when this block began, and what the block has moved is added afterwards: a product of
two blocks instead of one with all of W. The numbers are the same with and without the second thread.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Protocol

import numpy as np

from simdims._threads import begin
from simdims.solvers import kernels


class Products(Protocol):
    """Products of rows of S with a copy of W that follows W block by block."""

    def of(self, rows: slice) -> np.ndarray:
        """S[rows] times the copy."""

    def within(self, rows: slice) -> np.ndarray:
        """S[rows, rows]."""

    def follow(self, rows: slice, move: np.ndarray, later: slice | None) -> np.ndarray | None:
        """Move rows of the copy; return what that changes in the products of later ones."""


class MatrixProducts:
    """The products of a matrix."""

    def __init__(self, matrix: np.ndarray, W: np.ndarray) -> None:
        self.matrix, self.copy = matrix, W.copy()

    def of(self, rows: slice) -> np.ndarray:
        """S[rows] times the copy; BLAS is a fifth faster with its many rows where it expects columns."""
        return np.ascontiguousarray((self.copy.T @ self.matrix[rows].T).T)

    def within(self, rows: slice) -> np.ndarray:
        """S[rows, rows]."""
        return np.ascontiguousarray(self.matrix[rows, rows])

    def follow(self, rows: slice, move: np.ndarray, later: slice | None) -> np.ndarray | None:
        """Move rows of the copy; return what that changes in the products of later ones."""
        self.copy[rows] += move
        return None if later is None else self.matrix[later, rows] @ move


class FactorProducts:
    """The products of F F^T, which is never built: (S W)_i = F_i (F^T W), with F^T W kept current."""

    def __init__(self, factors: np.ndarray, W: np.ndarray) -> None:
        self.factors, self.projection = factors, factors.T @ W

    def of(self, rows: slice) -> np.ndarray:
        """S[rows] times the copy."""
        return self.factors[rows] @ self.projection

    def within(self, rows: slice) -> np.ndarray:
        """S[rows, rows]."""
        return self.factors[rows] @ self.factors[rows].T

    def follow(self, rows: slice, move: np.ndarray, later: slice | None) -> np.ndarray | None:
        """Move rows of the copy; return what that changes in the products of later ones."""
        change = self.factors[rows].T @ move
        self.projection += change
        return None if later is None else self.factors[later] @ change


def sweep_ahead(
    products: Products,
    diagonal: np.ndarray,
    diagonal_weights: np.ndarray,
    W: np.ndarray,
    n_passes: int,
    block: int,
    second: Executor | None,
) -> float:
    """Update every row of W once, in place; return the change of the objective. `products` has W as it is."""
    n, rank = W.shape
    gram = W.T.astype(np.float64) @ W.astype(np.float64)
    workspace = np.empty((3, rank))
    blocks = [slice(start, min(start + block, n)) for start in range(0, n, block)]
    change = 0.0
    pending = begin(second, products.of, blocks[0])
    for rows, later in zip(blocks, [*blocks[1:], None], strict=True):
        own, known = products.within(rows), pending.result()
        before = W[rows].copy()
        if later is not None:
            pending = begin(second, products.of, later)
        change += kernels.update_block(own, known, diagonal, diagonal_weights, W, gram, rows.start, n_passes, workspace)
        if later is not None:
            pending.result()  # nothing may move while it is being computed
        move = products.follow(rows, W[rows] - before, later)
        if move is not None:
            pending.result()[:] += move
    return change
