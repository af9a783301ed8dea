"""Joint fits of several systems: S_m ~ W diag(a_m) W^T with W >= 0, a_m >= 0 and mean weight 1 per dimension.

    F(W, a) = sum_m f_m(W diag(a_m)^1/2) + penalty(W) + mu/2 sum_mk (a_mk - 1)^2,    sum_m a_mk = M for each k.

A sweep updates every row of W over all systems, and then the weights, one dimension at a time over all systems. The
mean of 1 is a constraint of that step, not a later rescaling, so F never increases. With one system
the weights are 1, and F is the objective of SRF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from simdims import _memory
from simdims.solvers import joint_kernels, kernels
from simdims.solvers.complete import N_PASSES
from simdims.solvers.criterion import Determinacy, Evaluation, Solution, solution, undetermined
from simdims.solvers.devices import torch_module
from simdims.solvers.loop import WINDOW, Loop, Method, Report
from simdims.solvers.problem import (
    LARGEST_LOADING,
    NO_PENALTY,
    FactorProblem,
    MatrixProblem,
    PairProblem,
    Penalty,
    Problem,
    matrix_of,
    pairs_of,
    with_gaps,
)

#: Rows whose products share one BLAS call per system.
_BLOCK = 32

#: Passes over the dimensions in one update of the weights.
WEIGHT_PASSES = 10

#: Maximum passes over the weights of one system alone; a convex problem in r variables converges long before.
_ALONE_PASSES = 10_000

#: Dense systems with fewer entries than this are stored in one array, so that one call handles all of them.
_STACKED = 2**22

#: First sweep after which W is extrapolated.
_EXTRAPOLATE_FROM = 5


#: From this share of known pairs on, a system is stored as a matrix minus its missing pairs, not as a list of pairs.
_MOSTLY = 0.5

#: Pairs to list: system, rows, partners, values and weights, each pair in both orders.
_Part = tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Listed(NamedTuple):
    """Pairs of all systems in compressed rows, by item, then system, then partner; each in both orders, no diagonal."""

    starts: np.ndarray
    systems: np.ndarray
    partners: np.ndarray
    values: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, n_items: int, rows: np.ndarray, systems: np.ndarray, partners: np.ndarray, *numbers: np.ndarray
    ) -> Listed:
        """The lists of pairs given in any order, with their values and weights."""
        order = np.lexsort((partners, systems, rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_items))])
        return cls(starts, *(part[order] for part in (systems, partners, *numbers)))

    @property
    def rows(self) -> np.ndarray:
        """The first item of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))


@dataclass(frozen=True)
class JointProblem:
    """The problem of a joint fit, with weights relative to the largest of all systems, `scale`.

    `dense` maps numbers of systems with most pairs known to their matrices. `zeros` is the weight c_m of the zeros that
    the lists leave out; in dense systems, of all pairs except the listed ones, which are zero in the matrix. `diagonal`
    and `diagonal_weights` have one row per system. `limits`, `squares`, `largest` and `noise` are derived from these by
    `measured`.
    """

    n_items: int
    dense: dict[int, np.ndarray]
    listed: Listed
    zeros: np.ndarray
    diagonal: np.ndarray
    diagonal_weights: np.ndarray
    scale: float
    limits: np.ndarray = field(default_factory=lambda: np.empty(0))
    squares: float = 0.0
    largest: float = 0.0
    noise: tuple[float, float] = (0.0, 0.0)
    penalty: Penalty = NO_PENALTY
    mu: float = 0.0

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return len(self.zeros)

    @cached_property
    def stacked(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The numbers of the dense systems and their matrices, with zeros on the diagonals; None for large ones."""
        if not self.dense or len(self.dense) * self.n_items**2 > _STACKED:
            return None
        stack = np.array(list(self.dense.values()), dtype=np.float64)
        own = np.arange(self.n_items)
        stack[:, own, own] = 0.0
        return np.array(list(self.dense), dtype=np.intp), stack

    @property
    def n_known(self) -> int:
        """Known pairs of two different items over all systems, each counted from both sides."""
        return 2 * int(pairs_per_system(self).sum())


@dataclass(frozen=True)
class JointSolution(Solution):
    """A solution with the weights of the systems; the KKT residual is the larger of those of W and of the weights."""

    weights: np.ndarray


def joint_problem(problems: Sequence[Problem], positions: Sequence[np.ndarray], n_items: int) -> JointProblem:
    """The problem of several systems, each with the positions of its items among all `n_items`."""
    scale = max(problem.scale for problem in problems)
    n_systems = len(problems)
    zeros, dense, parts = np.zeros(n_systems), {}, []
    diagonal, diagonal_weights = np.zeros((n_systems, n_items)), np.zeros((n_systems, n_items))
    for m, (problem, at) in enumerate(zip(problems, positions, strict=True)):
        relative = problem.scale / scale
        diagonal[m, at], diagonal_weights[m, at] = problem.diagonal, relative * problem.diagonal_weights
        matrix = matrix_of(problem) if isinstance(problem, FactorProblem) else problem
        whole = len(at) == n_items
        in_order = whole and np.array_equal(at, np.arange(n_items))
        if isinstance(matrix, MatrixProblem) and in_order and _mostly_known(matrix):
            dense[m], zeros[m] = matrix.values if matrix.complete else np.nan_to_num(matrix.values), relative
            parts += _missing_pairs(matrix, m)
        else:
            pairs = _as_pairs(matrix, whole)
            zeros[m] = relative * pairs.background
            rows = np.repeat(at, np.diff(pairs.starts))
            parts.append((m, rows, at[pairs.partners], pairs.values, relative * pairs.weights))
    joint = JointProblem(
        n_items=n_items,
        dense=dense,
        listed=_listed(parts, n_items),
        zeros=zeros,
        diagonal=diagonal,
        diagonal_weights=diagonal_weights,
        scale=scale,
    )
    return measured(joint)


def measured(problem: JointProblem) -> JointProblem:
    """The problem with quantities derived from its similarities: squares, largest value, noise, limits of loadings.

    With mean_m and the sums of system m over its pairs of different items, the edge of the spectrum of shuffled
    similarities is 2 sqrt(sum_m sum_ij Omega_mij^2 (S_mij - mean_m)^2 / n).
    """
    listed, c, n = problem.listed, problem.zeros, problem.n_items

    def summed(part: np.ndarray) -> np.ndarray:
        return np.bincount(listed.systems, part, minlength=problem.n_systems).astype(np.float64)

    omega, values = listed.weights, listed.values
    n_listed = np.bincount(listed.systems, minlength=problem.n_systems)
    n_unlisted = n * (n - 1) - n_listed
    first, weight = summed(omega * values), summed(omega) + c * n_unlisted
    for m, S in problem.dense.items():
        first[m] += c[m] * (S.sum(dtype=np.float64) - np.trace(S, dtype=np.float64))
    means = np.divide(first, weight, out=np.zeros_like(first), where=weight > 0)
    about_mean = omega * (values - means[listed.systems]) ** 2
    unlisted = n_unlisted * means**2
    squares = float(omega @ values**2 + np.sum(problem.diagonal_weights * problem.diagonal**2))
    known = values[omega > 0]
    largest = max(float(known.max(initial=0.0)), float(problem.diagonal.max(initial=0.0)))
    others = ~np.eye(n, dtype=bool)
    for m, S in problem.dense.items():
        pairs = S[others].astype(np.float64)  # zero if the pair is listed instead
        unlisted[m] = max(np.sum((pairs - means[m]) ** 2) - n_listed[m] * means[m] ** 2, 0.0)
        squares += c[m] * float(pairs @ pairs)
        largest = max(largest, float(pairs.max(initial=0.0)))
    deviation = np.sqrt(np.sum(summed(about_mean) + c * unlisted) / weight.sum()) if weight.any() else 0.0
    edge = 2.0 * np.sqrt(np.sum(summed(omega * about_mean) + c**2 * unlisted) / n)
    unknown = ~(problem.diagonal_weights > 0).any(axis=0)
    return replace(
        problem,
        squares=squares,
        largest=largest,
        noise=(float(edge), float(deviation)),
        limits=np.where(unknown & (largest > 0), LARGEST_LOADING * np.sqrt(largest), np.inf),
    )


def _mostly_known(matrix: MatrixProblem) -> bool:
    """Whether enough pairs have equal weight that a matrix product minus the missing pairs is fastest."""
    n = matrix.n_items
    return not matrix.weights.size and matrix.n_known > _MOSTLY * n * (n - 1)


def _missing_pairs(matrix: MatrixProblem, m: int) -> list[_Part]:
    """The missing pairs, which are zeros in the matrix, with weight zero."""
    if matrix.complete:
        return []
    missing = np.isnan(matrix.values)
    np.fill_diagonal(missing, False)
    rows, partners = np.nonzero(missing)
    nothing = np.zeros(len(rows))
    return [(m, rows, partners, nothing, nothing)]


def _as_pairs(problem: MatrixProblem | PairProblem, whole: bool) -> PairProblem:
    """Lists of pairs; in a system with few of the items, the unstored zeros are listed too."""
    if isinstance(problem, PairProblem) and (whole or problem.background == 0.0):
        return problem
    return pairs_of(with_gaps(matrix_of(problem)))


def _listed(parts: list[_Part], n_items: int) -> Listed:
    n_pairs = sum(len(part[1]) for part in parts)
    _memory.require(2 * 32 * n_pairs, f"Lists of the {n_pairs // 2} pairs of all systems", "fit fewer systems or items")
    rows, partners = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32)
    systems, values, weights = np.empty(n_pairs, np.int32), np.empty(n_pairs), np.empty(n_pairs)
    first = 0
    for m, own_rows, own_partners, own_values, own_weights in parts:
        part = slice(first, first + len(own_rows))
        systems[part], rows[part], partners[part] = m, own_rows, own_partners
        values[part], weights[part] = own_values, own_weights
        first = part.stop
    return Listed.of(n_items, rows, systems, partners, values, weights)


def penalised_jointly(
    problem: JointProblem, rank: int, alpha: float, l1_ratio: float = 0.0, shrinkage: float = 0.0
) -> JointProblem:
    """The problem with a penalty on W and a penalty on differences between systems.

    lambda/2 = alpha times the edge of the spectrum of sum_m Omega_m o S_m with the similarities of each system
    shuffled: the squares of the systems' own edges add up. mu = shrinkage sum Omega S^2 / (M r).
    """
    edge, deviation = problem.noise
    half = alpha * edge
    penalty = Penalty((1.0 - l1_ratio) * half, l1_ratio * half * np.sqrt(deviation))
    limits = problem.limits if alpha == 0.0 else np.full(problem.n_items, np.inf)
    mu = shrinkage if np.isinf(shrinkage) else shrinkage * problem.squares / (problem.n_systems * rank)
    return replace(problem, penalty=penalty, limits=limits, mu=mu)


def joint_start(problem: JointProblem, rank: int, rng: np.random.RandomState) -> np.ndarray:
    """W ~ U(0, 1), scaled to the mean of the known similarities of all systems."""
    W = rng.uniform(size=(problem.n_items, rank))
    sums = W.sum(axis=0)
    return W * np.sqrt(max(_mean_similarity(problem), 0.0) * problem.n_items**2 / (sums @ sums))


def pairs_per_system(problem: JointProblem) -> np.ndarray:
    """Number of known pairs of different items in each system."""
    listed = np.bincount(problem.listed.systems, minlength=problem.n_systems)
    known = np.bincount(problem.listed.systems[problem.listed.weights > 0], minlength=problem.n_systems)
    unlisted = problem.n_items * (problem.n_items - 1) - listed
    return (known + np.where(problem.zeros > 0, unlisted, 0)) // 2


def determinacy_jointly(problem: JointProblem, W: np.ndarray, n_weights: int) -> Determinacy:
    """What the observed pairs of all systems do not determine about W, if they also have to determine the weights.

    Predicted self-similarities are those of the average system.
    """
    n, listed = problem.n_items, problem.listed
    rows = np.repeat(np.arange(n), np.diff(listed.starts))
    has_others = problem.zeros > 0  # systems in which pairs are known unless they are listed
    n_listed = np.bincount(rows[has_others[listed.systems]], minlength=n)
    n_pairs = np.bincount(rows[listed.weights > 0], minlength=n) + np.count_nonzero(has_others) * (n - 1) - n_listed
    n_own = np.count_nonzero(problem.diagonal_weights, axis=0)
    return undetermined(W, n_pairs, n_own, W.size + n_weights, problem.largest, problem.limits)


def _mean_similarity(problem: JointProblem) -> float:
    listed = problem.listed
    counts = np.bincount(listed.systems, minlength=problem.n_systems)
    n_unlisted = problem.n_items * (problem.n_items - 1) - counts
    total = float(listed.weights @ listed.values + np.sum(problem.diagonal_weights * problem.diagonal))
    total += sum(problem.zeros[m] * (S.sum() - np.trace(S)) for m, S in problem.dense.items())
    weight = float(listed.weights.sum() + problem.diagonal_weights.sum() + problem.zeros @ n_unlisted)
    return total / weight


def solve_jointly(
    problem: JointProblem,
    W0: np.ndarray,
    weights0: np.ndarray | None = None,
    *,
    max_iter: int,
    tol: float,
    report: Report = None,
    device: str = "cpu",
) -> JointSolution:
    """Minimise F from W0 and weights of mean 1 per dimension (ones by default), which are not changed."""
    if device == "cpu":
        W = np.array(W0, dtype=np.float64, order="C")
        sweeps = JointSweeps(problem, W.shape[1], weights0)
        floor = max(1e-14, 1e-8 * tol) * 0.5 * problem.squares
        loop = Loop(sweeps, W, max_iter, (WINDOW, float(tol), floor), report)
        loop.run()
        weights, descent = sweeps.weights, loop.descent()
    else:
        fit = torch_module("joint_torch", device).fit_jointly_on
        W, weights, descent = fit(device, problem, W0, weights0, max_iter=max_iter, tol=tol, report=report)
    found = evaluate_jointly(problem, W, weights)
    end = solution(W, found, problem.scale, descent.history * problem.scale, descent.converged)
    return JointSolution(**vars(end), weights=weights)


class JointSweeps(Method):
    """Sweeps over the rows of W and the weights; they never raise F and return its change."""

    extrapolate_from = _EXTRAPOLATE_FROM

    def __init__(self, problem: JointProblem, rank: int, weights: np.ndarray | None = None) -> None:
        self.problem, self.limits = problem, problem.limits
        ones = np.ones((problem.n_systems, rank))
        self.weights = ones if weights is None else np.array(weights, dtype=np.float64, order="C")

    def objective(self, W: np.ndarray) -> float:
        """F(W) with the current weights."""
        problem, a = self.problem, self.weights
        return data_objective(problem, W, a) + problem.penalty.of(W) + shrinkage_term(problem, a)

    def sweep(self, W: np.ndarray) -> float:
        """Update every row of W and then all weights once, in place; return the change of F."""
        change = self._sweep_rows(W)
        if self.problem.n_systems > 1 and np.isfinite(self.problem.mu):
            G, y = weight_equations(self.problem, W)
            change += joint_kernels.update_weights(G, y, self.problem.mu, self.weights, WEIGHT_PASSES)
        return change

    def _sweep_rows(self, W: np.ndarray) -> float:
        problem, a = self.problem, self.weights
        n, rank = W.shape
        cross = (a * problem.zeros[:, None]).T @ a
        gram = W.T @ W
        penalty = problem.penalty
        size = _BLOCK if problem.dense else n
        products, within = np.empty((0, rank)), np.empty((0, 0, rank))
        change = 0.0
        for first in range(0, n, size):
            rows = slice(first, min(first + size, n))
            if problem.dense:
                products, within = self._products(rows, W)
            change += joint_kernels.update_joint_rows(
                *problem.listed, problem.zeros, a, cross, problem.diagonal, problem.diagonal_weights, problem.limits,
                penalty.ridge, penalty.lasso, products, within, W, gram, rows.start, rows.stop, N_PASSES,
            )  # fmt: skip
        return change

    def _products(self, rows: slice, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """sum_m c_m D_m (S_m W), without the diagonal of S_m, and sum_m c_m S_m a_m within the rows."""
        problem = self.problem
        if problem.stacked is not None:
            numbers, stack = problem.stacked
            part, scaled = stack[:, rows], problem.zeros[numbers, None] * self.weights[numbers]
            each = part.reshape(-1, stack.shape[1]) @ W
            products = np.einsum("mik,mk->ik", each.reshape(len(numbers), -1, W.shape[1]), scaled)
            return products, np.tensordot(part[:, :, rows], scaled, axes=(0, 0))
        n_rows = rows.stop - rows.start
        products, within = np.zeros((n_rows, W.shape[1])), np.zeros((n_rows, n_rows, W.shape[1]))
        own = np.arange(n_rows)
        for m, S in problem.dense.items():
            block, scaled = S[rows].astype(np.float64, copy=False), problem.zeros[m] * self.weights[m]
            products += (block @ W - block[own, rows.start + own][:, None] * W[rows]) * scaled
            within += block[:, rows][:, :, None] * scaled
        return products, within


def weight_equations(problem: JointProblem, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """G_m = sum_ij Omega_mij z z^T and y_m = sum_ij Omega_mij S_mij z with z = w_i o w_j, for each system."""
    n_systems, rank = problem.n_systems, W.shape[1]
    G, y = np.zeros((n_systems, rank, rank)), np.zeros((n_systems, rank))
    joint_kernels.weight_sums(*problem.listed, problem.zeros, W, G, y)
    U = W * W
    if problem.zeros.any():
        gram = W.T @ W
        G += problem.zeros[:, None, None] * (gram * gram - U.T @ U)
    if problem.stacked is not None:
        numbers, stack = problem.stacked
        each = (stack.reshape(-1, stack.shape[1]) @ W).reshape(len(numbers), len(W), rank)
        y[numbers] += problem.zeros[numbers, None] * np.einsum("mik,ik->mk", each, W)
    for m, S in problem.dense.items() if problem.stacked is None else ():
        stored = np.diagonal(S).astype(np.float64)
        y[m] += problem.zeros[m] * (np.einsum("ik,ik->k", S.astype(np.float64, copy=False) @ W, W) - stored @ U)
    outer = (U[:, :, None] * U[:, None, :]).reshape(len(U), -1)
    G += (problem.diagonal_weights @ outer).reshape(G.shape)
    y += (problem.diagonal_weights * problem.diagonal) @ U
    return G, y


def weights_of(problem: JointProblem, W: np.ndarray) -> np.ndarray:
    """The weights of each system alone with W fixed, without the constraint on their mean."""
    G, y = weight_equations(problem, W)
    weights = np.ones((problem.n_systems, W.shape[1]))
    if np.isfinite(problem.mu):
        for m in range(problem.n_systems):
            kernels.embed_rows(G[m], y[m : m + 1] + problem.mu, problem.mu, 0.0, weights[m : m + 1], _ALONE_PASSES)
    return weights


def data_objective(problem: JointProblem, W: np.ndarray, a: np.ndarray) -> float:
    """sum_m f_m, from the residuals."""
    if problem.stacked is None or len(problem.dense) < problem.n_systems or len(problem.listed.values):
        return gradient(problem, W, a)[0]
    residual = _stacked_residuals(problem, W, a)
    total = float(problem.zeros[problem.stacked[0]] @ np.einsum("mij,mij->m", residual, residual))
    return 0.5 * (total + float(np.sum(problem.diagonal_weights * (problem.diagonal - a @ (W * W).T) ** 2)))


def shrinkage_term(problem: JointProblem, a: np.ndarray) -> float:
    """mu/2 sum_mk (a_mk - 1)^2; zero if all weights are 1."""
    deviation = float(np.sum((a - 1.0) ** 2))
    return 0.5 * problem.mu * deviation if deviation else 0.0


def gradient(problem: JointProblem, W: np.ndarray, a: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The data part of F, its gradient in W, and the gradient's data part (Omega * S) W D summed over systems."""
    slope, pull = np.zeros_like(W), np.zeros_like(W)
    total = joint_kernels.joint_gradient(*problem.listed, problem.zeros, a, W, slope, pull)
    U, gram = W * W, W.T @ W
    if problem.stacked is not None:
        total += _add_stacked(problem, W, a, slope, pull)
    for m in range(problem.n_systems):
        scaled = W * a[m]
        if m in problem.dense and problem.stacked is not None:
            continue
        if m in problem.dense:
            S = problem.dense[m].astype(np.float64, copy=False)
            residual = S - scaled @ W.T
            np.fill_diagonal(residual, 0.0)
            total += problem.zeros[m] * float(np.vdot(residual, residual))
            slope += problem.zeros[m] * (residual @ scaled)
            pull += problem.zeros[m] * (S @ scaled - np.diagonal(S)[:, None] * scaled)
        elif problem.zeros[m]:
            own = U @ a[m]
            total += problem.zeros[m] * float(a[m] @ (gram * gram) @ a[m] - own @ own)
            slope -= problem.zeros[m] * ((W @ (gram * np.outer(a[m], a[m]))) - own[:, None] * scaled)
    residual = problem.diagonal - a @ U.T
    total += float(np.sum(problem.diagonal_weights * residual**2))
    slope += W * ((problem.diagonal_weights * residual).T @ a)
    pull += W * ((problem.diagonal_weights * problem.diagonal).T @ a)
    return 0.5 * total, -2.0 * slope, pull


def _add_stacked(problem: JointProblem, W: np.ndarray, a: np.ndarray, slope: np.ndarray, pull: np.ndarray) -> float:
    """Add the dense systems to the gradient and its data part; return their part of 2 f."""
    assert problem.stacked is not None
    numbers, stack = problem.stacked
    n, shape = len(W), (len(numbers), *W.shape)
    scaled = problem.zeros[numbers, None] * a[numbers]
    residual = _stacked_residuals(problem, W, a)
    slope += np.einsum("mik,mk->ik", residual.reshape(-1, n).dot(W).reshape(shape), scaled)
    pull += np.einsum("mik,mk->ik", stack.reshape(-1, n).dot(W).reshape(shape), scaled)
    return float(problem.zeros[numbers] @ np.einsum("mij,mij->m", residual, residual))


def _stacked_residuals(problem: JointProblem, W: np.ndarray, a: np.ndarray) -> np.ndarray:
    """S_m - W D_m W^T of the dense systems, zero on the diagonals."""
    assert problem.stacked is not None
    numbers, stack = problem.stacked
    residual = stack - (W * a[numbers, None]).reshape(-1, W.shape[1]).dot(W.T).reshape(stack.shape)
    own = np.arange(len(W))
    residual[:, own, own] = 0.0
    return residual


def evaluate_jointly(problem: JointProblem, W: np.ndarray, a: np.ndarray) -> Evaluation:
    """Objective and KKT residual at the end of a fit; residuals are projected gradients relative to their data part."""
    value, slope, pull = gradient(problem, W, a)
    penalty = problem.penalty
    slope += 2.0 * penalty.ridge * W + 2.0 * penalty.lasso
    np.minimum(slope, 0.0, out=slope, where=W == 0)
    at_limit = ((1 - 5e-7) * problem.limits[:, None] <= W) & (slope < 0)
    slope[at_limit] = 0.0
    scale = 2.0 * float(np.linalg.norm(pull))
    residual = float(np.linalg.norm(slope)) / (scale or 1.0)
    if problem.n_systems > 1 and np.isfinite(problem.mu):
        residual = max(residual, _weight_residual(problem, W, a))
    total = value + penalty.of(W) + shrinkage_term(problem, a)
    return Evaluation(total, value, residual)


def _weight_residual(problem: JointProblem, W: np.ndarray, a: np.ndarray) -> float:
    """The gradient in the weights minus its multiplier (its mean over positive weights), relative to |y|."""
    G, y = weight_equations(problem, W)
    slope = np.einsum("mkh,mh->mk", G, a) - y + problem.mu * (a - 1.0)
    diagonal = np.einsum("mkk->mk", G) + problem.mu
    known = diagonal > joint_kernels.SMALLEST * diagonal.max(axis=0)
    free = known & (a > 0)
    slope -= np.sum(slope * free, axis=0) / np.maximum(free.sum(axis=0), 1)
    slope = np.where(known, np.where(free, slope, np.minimum(slope, 0.0)), 0.0)
    return float(np.linalg.norm(slope)) / (float(np.linalg.norm(y)) or 1.0)
