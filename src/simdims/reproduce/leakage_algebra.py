"""Supplement, information leakage: when observed similarities determine the held-out ones, in exact arithmetic.

Nystroem completion from r columns, and the Jacobian of W -> (W W^T) on the observed pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simdims import _threads, simulate
from simdims.reproduce.frame import Cell

#: Observed values, in units of the degrees of freedom, at which patterns are tried.
MULTIPLES = (0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)
#: Rows with a density, as the lemma on invertible blocks asks for.
_ALPHA = 1.0


def degrees_of_freedom(n_items: int, rank: int) -> int:
    """Those of W W^T, n r - r (r - 1) / 2: the entries of W, less the rotations that change nothing."""
    return n_items * rank - rank * (rank - 1) // 2


def nystroem(S: NDArray[np.float64], items: NDArray[np.intp]) -> NDArray[np.float64]:
    """All similarities from the columns of some items: S_pI S_II^-1 S_Iq."""
    columns = S[:, items]
    return columns @ np.linalg.solve(S[np.ix_(items, items)], columns.T)


def jacobian(W: NDArray[np.float64], rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
    """One row for each pair (i, j): the derivative of w_i . w_j by all loadings, row by row of W; (i, i) is allowed."""
    n_items, rank = W.shape
    pairs = np.arange(len(rows))
    found = np.zeros((len(rows), n_items, rank))
    found[pairs, rows] += W[columns]
    found[pairs, columns] += W[rows]
    return found.reshape(len(rows), n_items * rank)


def measure_completion(cell: Cell) -> Cell:
    """Held-out pairs from the columns of r items drawn at random, and of r - 1: the largest errors, relative."""
    n_items, rank, seed = cell["n_items"], cell["rank"], cell["seed"]
    W = simulate.dirichlet(n_items, rank, alpha=_ALPHA, random_state=seed)
    S = W @ W.T
    items = np.random.default_rng(seed).permutation(n_items)[:rank]
    errors = []
    for observed in (items, items[:-1]):
        held_out = np.ones((n_items, n_items), dtype=bool)
        held_out[observed] = held_out[:, observed] = False
        errors.append(float(np.abs(nystroem(S, observed) - S)[held_out].max() / S.max()))
    condition = float(np.linalg.cond(S[np.ix_(items, items)]))
    return {"error": errors[0], "error_one_less": errors[1], "condition": condition}


def measure_identifiability(cell: Cell) -> Cell:
    """Pairs observed in a random order after the diagonal: the Jacobian's rank on the way, and when it is full."""
    n_items, rank, seed = cell["n_items"], cell["rank"], cell["seed"]
    W = simulate.dirichlet(n_items, rank, alpha=_ALPHA, random_state=seed)
    upper = np.stack(np.triu_indices(n_items, 1))
    diagonal = np.tile(np.arange(n_items), (2, 1))
    order = np.random.default_rng(seed).permutation(upper.shape[1])
    rows, columns = np.concatenate([diagonal, upper[:, order]], axis=1)
    full = degrees_of_freedom(n_items, rank)

    def rank_after(n_observed: int) -> int:
        with _threads.one_blas_thread():
            return int(np.linalg.matrix_rank(jacobian(W, rows[:n_observed], columns[:n_observed])))

    counts = [round(multiple * full) for multiple in MULTIPLES if round(multiple * full) <= len(rows)]
    low, high = full - 1, len(rows)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rank_after(middle) == full else (middle, high)
    return {
        "counts": counts,
        "ranks": [rank_after(count) for count in counts],
        "rank_of_all": rank_after(len(rows)),
        "first_full": high,
    }
