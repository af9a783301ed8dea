"""Joint problems with resampled systems, items or pairs; what is drawn twice counts twice.

A resample of items has c_i copies of item i. Two copies of an item do not form a pair, so they do not interact: given
the other items they minimise the same function and have the same loadings. Fitting the copies is therefore the same as
fitting each item once, with weights c_i c_j Omega_ij for pairs and c_i Omega_ii for the diagonal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simdims.solvers import kernels
from simdims.solvers.joint import JointProblem, Listed

#: Passes over the loadings of a single item.
_PASSES = 10_000


def resampled_systems(problem: JointProblem, chosen: np.ndarray) -> JointProblem:
    """The problem of these systems, with repeats; penalties do not change."""
    listed = problem.listed
    entries = [np.flatnonzero(listed.systems == m) for m in chosen]
    systems = np.repeat(np.arange(len(chosen), dtype=np.int32), [len(one) for one in entries])
    picked = np.concatenate(entries)
    rows, partners, values, weights = (part[picked] for part in (listed.rows, *listed[2:]))
    return replace(
        problem,
        dense={new: problem.dense[old] for new, old in enumerate(chosen.tolist()) if old in problem.dense},
        listed=Listed.of(problem.n_items, rows, systems, partners, values, weights),
        zeros=problem.zeros[chosen],
        diagonal=problem.diagonal[chosen],
        diagonal_weights=problem.diagonal_weights[chosen],
    )


def reweighted(lists: JointProblem, pairs: np.ndarray, items: np.ndarray | None = None) -> JointProblem:
    """A problem of lists with weights multiplied by `pairs` for listed pairs, and by `items` for the diagonal."""
    diagonal = lists.diagonal_weights if items is None else lists.diagonal_weights * items
    return replace(lists, listed=lists.listed._replace(weights=lists.listed.weights * pairs), diagonal_weights=diagonal)


def pair_counts(lists: JointProblem, rng: np.random.Generator) -> np.ndarray:
    """How often each listed pair is drawn if each system draws as many of its pairs as it has, with replacement."""
    listed, rows = lists.listed, lists.listed.rows
    mirrored = np.lexsort((rows, listed.systems, listed.partners))  # the order of the mirrored pairs
    upper = np.flatnonzero((rows < listed.partners) & (listed.weights > 0))
    counts = np.zeros(len(rows))
    for m in range(lists.n_systems):
        own = upper[listed.systems[upper] == m]
        if len(own):
            counts[own] = np.bincount(rng.integers(len(own), size=len(own)), minlength=len(own))
    counts[mirrored[upper]] = counts[upper]
    return counts


def place_items(lists: JointProblem, W: np.ndarray, a: np.ndarray, items: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """W with refitted loadings for some items: the best fit to their pairs, each counted as often as its partner."""
    listed, penalty = lists.listed, lists.penalty
    placed = np.array(W, dtype=np.float64)
    for i in items:
        e = slice(listed.starts[i], listed.starts[i + 1])
        z = W[listed.partners[e]] * a[listed.systems[e]]
        weighted = z * (listed.weights[e] * counts[listed.partners[e]])[:, None]
        w = np.zeros((1, W.shape[1]))
        b = (listed.values[e] @ weighted)[None]
        kernels.embed_rows(weighted.T @ z, b, penalty.ridge, penalty.lasso, w, _PASSES)
        placed[i] = w[0]
    return placed


def variance_explained_jointly(lists: JointProblem, W: np.ndarray, a: np.ndarray) -> np.ndarray:
    """R2 over the pairs of different items, for each system; NaN if its pairs do not vary."""
    listed, n = lists.listed, lists.n_systems
    predicted = np.einsum("ek,ek,ek->e", W[listed.rows], a[listed.systems], W[listed.partners])
    weight, total, squares, residual = (
        np.bincount(listed.systems, weights=listed.weights * part, minlength=n)
        for part in (1.0, listed.values, listed.values**2, (listed.values - predicted) ** 2)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = squares - total**2 / weight
        return np.where(spread > 1e-12 * squares, 1.0 - residual / spread, np.nan)
