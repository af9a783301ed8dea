"""Minimise f(W) = 1/2 sum_ij Omega_ij (S_ij - w_i . w_j)^2 and a penalty over W >= 0: arrays in, arrays out.

`solve` fits on the CPU: by block coordinate descent (planned in plan.py, bcd.py, outer loop in loop.py) or by the
paper's algorithm (admm.py), the reference. Each storage has its own sweeps: products with a complete matrix
(complete.py), a matrix whose missing pairs are filled in (filled.py), lists of pairs (listed.py). `solve_on` fits on a
GPU (torch.py, listed_torch.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from simdims import _threads
from simdims.solvers import kernels
from simdims.solvers.admm import fit_admm
from simdims.solvers.bcd import fit_bcd
from simdims.solvers.criterion import Bounds, Determinacy, Solution, determinacy, evaluate, size, solution
from simdims.solvers.devices import torch_module
from simdims.solvers.joint import (
    JointProblem,
    JointSolution,
    determinacy_jointly,
    joint_problem,
    joint_start,
    pairs_per_system,
    penalised_jointly,
    solve_jointly,
    weights_of,
)
from simdims.solvers.joint_path import approach_jointly, as_lists, choose_jointly, knows_all_pairs
from simdims.solvers.loop import Report
from simdims.solvers.penalty import noise_scale, penalised, penalty_of_rows
from simdims.solvers.plan import make_plan, needs_one_blas_thread
from simdims.solvers.problem import (
    NO_PENALTY,
    MatrixProblem,
    PairProblem,
    Penalty,
    Problem,
    as_problem,
    factor_problem,
    has_missing,
    matrix_of,
    misses_pairs,
    observed_range,
    partner_counts,
    require_scale,
    row_blocks,
)
from simdims.solvers.spectra import largest_eigenvalue, leading_eigenpairs
from simdims.solvers.start import given_start, random_start, spectral_start

__all__ = [
    "NO_PENALTY",
    "Determinacy",
    "JointProblem",
    "JointSolution",
    "Penalty",
    "Problem",
    "Solution",
    "approach_jointly",
    "as_lists",
    "as_problem",
    "can_fill",
    "choose_jointly",
    "determinacy",
    "determinacy_jointly",
    "devices_for",
    "embed",
    "factor_problem",
    "given_start",
    "has_missing",
    "joint_problem",
    "joint_start",
    "knows_all_pairs",
    "largest_eigenvalue",
    "leading_eigenpairs",
    "noise_scale",
    "observed_range",
    "pairs_per_system",
    "partner_counts",
    "penalised",
    "penalised_jointly",
    "penalty_of_rows",
    "random_start",
    "require_scale",
    "size",
    "solve",
    "solve_jointly",
    "solve_on",
    "spectral_start",
    "weights_of",
]

#: Coordinate descent on a convex problem in r variables converges long before this.
_EMBED_PASSES = 10_000


def solve(
    problem: Problem,
    W0: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    solver: str = "bcd",
    bounds: Bounds = None,
    inner_iter: int = 1,
    rho: float = 1.0,
    report: Report = None,
) -> Solution:
    """Fit `problem` from W0 (not changed) with solver "bcd" or "admm".

    `bounds` with bcd requires a dense problem with missing pairs.
    """
    W = np.array(W0, dtype=problem.dtype, order="C")
    how: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "bounds": bounds, "report": report}
    with _threads.one_blas_thread(for_one_fit=True) if needs_one_blas_thread(*W.shape) else nullcontext():
        if solver == "admm":
            dense = matrix_of(problem)
            descent = fit_admm(dense, W, inner_iter=inner_iter, rho=rho, **how)
            history = descent.history * dense.scale
            found = evaluate(problem, W)  # bounds constrain Z and are not part of f
        else:
            plan = make_plan(problem, W.shape[1], bounded=bounds is not None)
            problem = plan.problem
            descent = fit_bcd(plan, W, **how)
            history = descent.history * problem.scale
            found = evaluate(problem, W, bounds)
    return solution(W, found, problem.scale, history, descent.converged)


def solve_on(
    device: str,
    problems: Sequence[Problem],
    starts: Sequence[np.ndarray],
    *,
    max_iter: int,
    tol: float,
    report: Report = None,
) -> list[Solution]:
    """Fit several problems of one kind and size on a torch device."""
    lists = [problem for problem in problems if isinstance(problem, PairProblem)]
    dense = [problem for problem in problems if not isinstance(problem, PairProblem)]
    how: dict[str, Any] = {"device": device, "max_iter": max_iter, "tol": tol, "report": report}
    if lists:
        return torch_module("listed_torch", device).fit_lists(lists, starts, **how)
    return torch_module("torch", device).fit_together(dense, starts, **how)


def devices_for(device: str, most: int) -> list[str]:
    """The devices that fits are divided among: with "cuda" up to `most` GPUs, and otherwise `device` alone."""
    if device != "cuda" or most == 1:
        return [device]
    n_gpus = torch_module("torch", device).n_gpus()
    return [f"cuda:{number}" for number in range(min(most, n_gpus))] or [device]


def can_fill(problem: Problem) -> bool:
    """Whether bcd can keep predictions of missing pairs within bounds: only in a dense problem with such pairs."""
    return isinstance(problem, MatrixProblem) and misses_pairs(problem)


def embed(similarities: np.ndarray, W: np.ndarray, penalty: Penalty = NO_PENALTY) -> np.ndarray:
    """Embed items, given their similarities to the rows of W, by non-negative least squares."""
    if similarities.shape[1] != len(W):
        raise ValueError(f"similarities must have a column for each of {len(W)} items, got {similarities.shape[1]}.")
    precise = W.astype(np.float64, copy=False)
    gram, embedding = precise.T @ precise, np.zeros((len(similarities), W.shape[1]))
    for rows in row_blocks(0, len(similarities)):
        block = similarities[rows].astype(np.float64, copy=False)
        known = ~np.isnan(block)
        complete = np.flatnonzero(known.all(axis=1))
        embedded = np.zeros((len(complete), W.shape[1]))
        with np.errstate(over="ignore"):  # the caller checks the result for overflow
            b = block[complete] @ precise
        kernels.embed_rows(gram, b, *penalty, embedded, _EMBED_PASSES)
        embedding[rows.start + complete] = embedded
        for i in np.flatnonzero(~known.all(axis=1)):
            partners, row = precise[known[i]], slice(rows.start + i, rows.start + i + 1)
            b = block[i : i + 1, known[i]] @ partners
            kernels.embed_rows(partners.T @ partners, b, *penalty, embedding[row], _EMBED_PASSES)
    return embedding.astype(W.dtype, copy=False)
