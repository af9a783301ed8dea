"""Joint problems without some pairs, or of one system, for cross-validation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simdims.solvers.joint import JointProblem, Listed, measured


def without_pairs(problem: JointProblem, systems: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> JointProblem:
    """The problem in which some pairs of systems, each given once, count neither as values nor as zeros."""
    n, listed = problem.n_items, problem.listed
    stored = _keys(problem, listed.systems, listed.rows, listed.partners)
    both = [_keys(problem, systems, *ends) for ends in ((rows, columns), (columns, rows))]
    keys = np.sort(np.concatenate(both))
    at = np.searchsorted(stored, keys)
    is_listed = np.append(stored, -1)[at] == keys
    values, weights = listed.values.copy(), listed.weights.copy()
    values[at[is_listed]] = weights[at[is_listed]] = 0.0
    # Others are weighted zeros or entries of a matrix: they have to be listed with weight zero.
    added, before = keys[~is_listed], at[~is_listed]
    new_rows, rest = np.divmod(added, n * problem.n_systems)
    starts = listed.starts + np.concatenate([[0], np.cumsum(np.bincount(new_rows, minlength=n))])
    parts = zip((listed.systems, listed.partners, values, weights), (rest // n, rest % n, 0.0, 0.0), strict=True)
    left = Listed(starts, *(np.insert(part, before, new) for part, new in parts))
    dense = {}
    for m, S in problem.dense.items():
        own = systems == m
        dense[m] = S.copy()
        dense[m][rows[own], columns[own]] = dense[m][columns[own], rows[own]] = 0.0
    return measured(replace(problem, listed=left, dense=dense))


def one_system(problem: JointProblem, m: int) -> JointProblem:
    """The problem of one system."""
    listed = problem.listed
    own = listed.systems == m
    rows, partners, values, weights = (part[own] for part in (listed.rows, *listed[2:]))
    return measured(
        replace(
            problem,
            dense={0: problem.dense[m]} if m in problem.dense else {},
            listed=Listed.of(problem.n_items, rows, np.zeros(len(rows), np.int32), partners, values, weights),
            zeros=problem.zeros[[m]],
            diagonal=problem.diagonal[[m]],
            diagonal_weights=problem.diagonal_weights[[m]],
        )
    )


def known_range(problem: JointProblem) -> tuple[float, float]:
    """The smallest and the largest known similarity of all systems; zeros if nothing is known."""
    listed, rows, n = problem.listed, problem.listed.rows, problem.n_items
    parts = [listed.values[listed.weights > 0], problem.diagonal[problem.diagonal_weights > 0]]
    parts += [np.zeros(1)] if any(m not in problem.dense for m in np.flatnonzero(problem.zeros)) else []
    for m, S in problem.dense.items():
        known, own = ~np.eye(n, dtype=bool), listed.systems == m
        known[rows[own], listed.partners[own]] = False
        parts.append(S[known])
    known_ones = np.concatenate(parts)
    return (float(known_ones.min()), float(known_ones.max())) if known_ones.size else (0.0, 0.0)


def _keys(problem: JointProblem, systems: np.ndarray, rows: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """Keys that sort as the lists do: by item, then system, then partner."""
    of_rows = rows.astype(np.int64) * problem.n_systems + systems
    return of_rows * problem.n_items + partners
