"""Joint fits on a GPU: all rows of W at once, as in torch.py, and the weights of all systems every few iterations.

With H = (Y^T Y) o sum_m p_m a_m a_m^T and p_m the mean weight of the pairs of system m, the model around Y is

    f(Y + D) ~ f(Y) + <grad f(Y), D> + sum_i c_i d_i H d_i^T,
    grad f(Y) = -2 sum_m (Omega_m * (S_m - Y D_m Y^T)) Y D_m.

The weights minimise sum_m 1/2 a_m^T G_m a_m - y_m^T a_m as in joint.py, with G_m and y_m from products with Omega_m.
All systems are on the device as matrices, in float32, whatever their storage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from simdims.solvers import joint_kernels
from simdims.solvers.accelerated import stalled
from simdims.solvers.joint import WEIGHT_PASSES, JointProblem, shrinkage_term
from simdims.solvers.loop import WINDOW, Descent, Report
from simdims.solvers.torch import (
    MOST_DAMPING,
    State,
    advance,
    check_device,
    first_state,
    free_bytes,
    minimise_model,
    power_of_four,
    precise_type,
    to_device,
    usable_bytes,
)

#: Iterations between two updates of the weights, which need products with all pairs of dimensions.
_WEIGHTS_EVERY = 5

#: Bytes of the residual matrices that are computed at a time.
_BLOCK_BYTES = 2**28


class _Data(NamedTuple):
    """Systems on the device: similarities, zero if unknown; square roots of weights, unless all are 1; blocks of them.

    `curvature` is c_i and `shares` are the p_m of the model.
    """

    values: torch.Tensor
    roots: torch.Tensor | None
    shares: torch.Tensor
    curvature: torch.Tensor
    limits: torch.Tensor | None
    ridge: torch.Tensor
    lasso: torch.Tensor
    size: float
    blocks: list[slice]


def fit_jointly_on(
    device: str,
    problem: JointProblem,
    W0: np.ndarray,
    weights0: np.ndarray | None = None,
    *,
    max_iter: int,
    tol: float,
    report: Report = None,
) -> tuple[np.ndarray, np.ndarray, Descent]:
    """Minimise F on a device from W0 and weights (ones by default), not changed; return both and the record."""
    place = check_device(device)
    free = free_bytes(place)
    if free is not None and _bytes_of(problem, W0.shape[1]) > usable_bytes(free):
        raise _too_large(problem, place)
    unit = power_of_four(float(np.sqrt(problem.squares / max(problem.n_known, 1))))
    try:
        data = _upload(problem, unit, place)
        fit = _Descent(data, problem, W0, weights0, unit)
        histories = np.empty(max_iter + 1)
        histories[0] = fit.objective()
        lowest = histories.copy()  # lowest so far: F wavers by rounding, which is not progress
        rule = (WINDOW, float(tol), max((100.0 * torch.finfo(torch.float32).eps) ** 2, 1e-8 * tol) * 0.5 * data.size)
        done, converged = 0, False
        while done < max_iter and not converged:
            done += 1
            fit.step()
            if done % _WEIGHTS_EVERY == 0:
                fit.update_weights()
            histories[done] = fit.objective()
            lowest[done] = min(histories[done], lowest[done - 1])
            if report is not None:
                report(done, histories[done] * unit**2)
            converged = stalled(lowest, done, rule) and fit.damping <= MOST_DAMPING
        W = fit.state.Y[0].cpu().numpy().astype(np.float64) * np.sqrt(unit)
    except torch.cuda.OutOfMemoryError:
        raise _too_large(problem, place) from None
    return W, fit.weights, Descent(histories[: done + 1] * unit**2, converged)


class _Descent:
    """The state of a fit: that of W, and the weights."""

    def __init__(
        self, data: _Data, problem: JointProblem, W0: np.ndarray, weights0: np.ndarray | None, unit: float
    ) -> None:
        self.data, self.n_systems, self.mu = data, problem.n_systems, problem.mu / unit**2
        ones = np.ones((problem.n_systems, W0.shape[1]))
        self.weights = ones if weights0 is None else np.array(weights0, dtype=np.float64)
        self.moves = problem.n_systems > 1 and np.isfinite(problem.mu)
        self.shrinkage = shrinkage_term(problem, self.weights) / unit**2
        self._place_weights()
        Y = to_device(W0, data.values.device, unit**0.5)[None]
        self.state: State = first_state(Y, *self._measure(Y))

    @property
    def damping(self) -> float:
        return float(self.state.damping[0])

    def objective(self) -> float:
        """F, in the units of the device."""
        return float(self.state.f[0]) + self.shrinkage

    def step(self) -> None:
        """One iteration over W."""
        data, Y = self.data, self.state.Y
        cross = (self.a * data.shares[:, None]).mT @ self.a
        gram = (Y.mT @ Y) * cross
        moved = minimise_model(self.state, gram, data.curvature, data.ridge, data.limits)
        self.state = advance(self.state, *moved, data.limits, self._measure)

    def update_weights(self) -> None:
        """Minimise over the weights at Y; measure F at Y again."""
        if not self.moves:
            return
        G, y = self._weight_equations()
        joint_kernels.update_weights(G, y, self.mu, self.weights, WEIGHT_PASSES)
        self._place_weights()
        self.shrinkage = 0.5 * self.mu * float(np.sum((self.weights - 1.0) ** 2))
        f, gradient = self._measure(self.state.Y)
        self.state = self.state._replace(f=f, G=gradient)

    def _place_weights(self) -> None:
        self.a = to_device(self.weights, self.data.values.device)

    def _measure(self, Y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The data part of F, the penalty on W, and the gradient of both."""
        data, W = self.data, Y[0]
        precise = precise_type(W.device)
        G, f = torch.zeros_like(W), torch.zeros((), dtype=precise, device=W.device)
        for block in data.blocks:
            scaled = W * self.a[block][:, None, :]
            residuals = torch.baddbmm(data.values[block], scaled, W.mT.expand(len(scaled), -1, -1), alpha=-1)
            if data.roots is not None:
                residuals *= data.roots[block]
            norms = torch.linalg.vector_norm(residuals, dim=(1, 2)).to(precise)
            f += 0.5 * torch.sum(norms**2)
            if data.roots is not None:
                residuals *= data.roots[block]
            G -= 2 * torch.sum(residuals @ scaled, dim=0)
        G += 2 * (data.ridge[0] * W + data.lasso[0])
        own = W.to(precise)
        f += torch.sum(data.ridge[0].to(precise) * own**2 + 2 * data.lasso[0].to(precise) * own)
        return f[None], G[None]

    def _weight_equations(self) -> tuple[np.ndarray, np.ndarray]:
        """G_m = sum_ij Omega_mij z z^T and y_m = sum_ij Omega_mij S_mij z with z = w_i o w_j, for each system."""
        data, W = self.data, self.state.Y[0]
        rank = W.shape[1]
        k, h = np.triu_indices(rank)
        G, y = np.empty((self.n_systems, rank, rank)), np.empty((self.n_systems, rank))
        products = W[:, k] * W[:, h]
        for block in data.blocks:
            values = data.values[block]
            omega = None if data.roots is None else data.roots[block] ** 2
            weighted = values if omega is None else values * omega
            y[block] = torch.sum((weighted @ W) * W, dim=1).double().cpu().numpy()
            if omega is None:
                sums = (products.sum(dim=0) ** 2).expand(len(values), -1)
            else:
                sums = torch.sum((omega @ products) * products, dim=1)
            G[block][:, k, h] = G[block][:, h, k] = sums.double().cpu().numpy()
        return G, y


def _upload(problem: JointProblem, unit: float, device: torch.device) -> _Data:
    """All systems as matrices on the device, with similarities divided by `unit`."""
    n, n_systems = problem.n_items, problem.n_systems
    values = torch.zeros((n_systems, n, n), dtype=torch.float32, device=device)
    weighs_alike = bool(np.all(problem.zeros == 1.0) and np.all(problem.diagonal_weights == 1.0))
    weighs_alike &= not len(problem.listed.values) and len(problem.dense) == n_systems
    roots = None if weighs_alike else torch.zeros_like(values)
    rows = problem.listed.rows
    shares, of_items = np.empty(n_systems), np.zeros(n)
    order = np.argsort(problem.listed.systems, kind="stable")
    ends = np.searchsorted(problem.listed.systems[order], np.arange(n_systems + 1))
    for m in range(n_systems):
        own = order[ends[m] : ends[m + 1]]
        at = (rows[own], problem.listed.partners[own])
        S = problem.dense[m].astype(np.float64) if m in problem.dense else np.zeros((n, n))
        omega = np.full((n, n), problem.zeros[m])
        S[at], omega[at] = problem.listed.values[own], problem.listed.weights[own]
        np.fill_diagonal(S, problem.diagonal[m])
        np.fill_diagonal(omega, problem.diagonal_weights[m])
        values[m] = to_device(S, device, unit)
        if roots is not None:
            roots[m] = to_device(np.sqrt(omega), device)
        shares[m] = omega.mean()
        of_items += omega.mean(axis=1)
    curvature = 2.0 * np.maximum(of_items / of_items.mean(), 0.1) if of_items.any() else np.full(n, 2.0)
    limited = np.isfinite(problem.limits).any()
    size = max(1, _BLOCK_BYTES // (4 * n * n))
    ridge, lasso = (np.full((1, 1), one) for one in problem.penalty)
    return _Data(
        values=values,
        roots=roots,
        shares=to_device(shares, device),
        curvature=to_device(curvature[:, None], device)[None],
        limits=to_device(problem.limits[:, None], device, unit**0.5)[None] if limited else None,
        ridge=to_device(ridge, device, unit)[None],
        lasso=to_device(lasso, device, unit**1.5)[None],
        size=problem.squares / unit**2,
        blocks=[slice(start, min(start + size, n_systems)) for start in range(0, n_systems, size)],
    )


def _bytes_of(problem: JointProblem, rank: int) -> int:
    """Bytes on the device: values and weights, residuals of a block twice, and products of pairs of dimensions."""
    matrix = 4 * problem.n_items**2
    block = max(matrix, min(_BLOCK_BYTES, problem.n_systems * matrix))
    n_in_block = max(1, block // matrix)
    return 2 * problem.n_systems * matrix + 3 * block + 4 * n_in_block * problem.n_items * rank * (rank + 1)


def _too_large(problem: JointProblem, device: torch.device) -> MemoryError:
    needed = 8 * problem.n_systems * problem.n_items**2
    usable = usable_bytes(free_bytes(device) or 0)
    return MemoryError(
        f"A joint fit of {problem.n_systems} systems and {problem.n_items} items needs about {needed / 2**30:.1f} GiB "
        f"of the memory of {device}, which has {usable / 2**30:.1f} GiB to use. Fit fewer systems or items, or use "
        "device='cpu'."
    )
