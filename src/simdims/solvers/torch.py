"""Fits of matrices and factors on a GPU: all rows simultaneously, several fits per batch.

Row-by-row updates are slow on a GPU, so here all rows move together. Around Y the objective is modelled by

    f(Y + D) ~ f(Y) + <grad f(Y), D> + sum_i c_i d_i (Y^T Y) d_i^T,    grad f(Y) = -2 (Omega * (S - Y Y^T)) Y,

plus the penalty. The model is minimised over Y + D >= 0: non-negative least squares for every row, with one r x r
matrix for all. With c_i = 2 the model's curvature is at least that of |W W^T - Y Y^T|^2 to second order; with missing
pairs c_i is about twice the known share of row i, as in filling. Nesterov's extrapolation leads from one minimum to the
next point. If a point is higher than the last one, it is rejected and its momentum is reset; if it had none, c is
raised. Each iteration evaluates the gradient once: two products with an n x n matrix, or one if no pair is missing.

Computed in float32; sums and final figures are in float64 if the device supports it. `descend` is the outer loop, which
listed_torch.py uses too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from simdims.solvers.accelerated import SMALLEST, stalled
from simdims.solvers.criterion import Evaluation, Solution, evaluate, solution
from simdims.solvers.filled import over_relaxation
from simdims.solvers.loop import WINDOW, Report
from simdims.solvers.problem import FactorProblem, MatrixProblem, Problem

#: Problems that run here: all except lists of pairs.
DenseProblem = MatrixProblem | FactorProblem

#: Projected gradient steps on the model in one iteration: r x r work, cheap compared with the products.
_INNER_STEPS = 24

#: Relative increases of the objective that float32 rounding can cause.
_ROUNDING = 2e-6

#: Rounding error relative to f(0) if f is a difference of large sums.
CANCELLATION = 3e-8

#: Damping beyond which steps are too short for a stall to indicate convergence.
MOST_DAMPING = 100.0

#: Fraction of f(0) below which rounding the factors to float32 affects f, a difference of large sums.
_FEW_DIGITS = 0.01

#: Bytes of the float64 block in which the final figures are computed.
_BLOCK_BYTES = 2**28

#: Arrays of the size of W that one iteration holds.
COPIES = 12

#: Fraction of the free memory that fits may use; the rest is workspace of the library.
_USABLE = 0.85


def check_device(name: str) -> torch.device:
    """The device of this name, or an error that explains why it is not available."""
    device = torch.device(name.removeprefix("torch-"))
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r} needs a GPU that PyTorch {torch.__version__} can use, and it sees none.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device={name!r} is not there: PyTorch sees {torch.cuda.device_count()} GPU(s), from cuda:0.")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f"device={name!r} needs a Mac's GPU, and PyTorch {torch.__version__} sees none.")
    return device


def n_gpus() -> int:
    """The number of GPUs that "cuda:0", "cuda:1", ... name."""
    return torch.cuda.device_count()


def fit_together(
    problems: Sequence[DenseProblem],
    starts: Sequence[np.ndarray],
    *,
    device: str,
    max_iter: int,
    tol: float,
    report: Report = None,
) -> list[Solution]:
    """Fit problems of one kind and size, each from its start (not changed), as many at a time as fit into memory.

    Identical problem objects are stored on the device once.
    """
    place = check_device(device)
    shared = all(problem is problems[0] for problem in problems)
    at_once = _how_many(problems, starts[0].shape[1], place, shared=shared)
    found: list[Solution] = []
    try:
        for first in range(0, len(problems), at_once):
            some = slice(first, first + at_once)
            found += _fit_batch(problems[some], starts[some], place, shared, max_iter, tol, report)
    except torch.cuda.OutOfMemoryError:
        raise _too_large(problems[0], starts[0].shape[1], place) from None
    return found


class Batch(Protocol):
    """The data of a batch of fits on a device."""

    @property
    def sizes(self) -> torch.Tensor:
        """Sum Omega S^2 of each fit."""

    def take(self, which: list[int]) -> Batch:
        """The data of some of the fits."""

    def step(self, state: State) -> State:
        """One iteration of every fit."""


class _Data(NamedTuple):
    """The data of a batch of fits. The first axis of every tensor is the fit; its length is 1 if all share the data.

    `values` is S with NaN for missing pairs, or the factors F of S = F F^T. `roots` are the square roots of the
    weights, unless all are equal. `sizes` is sum Omega S^2. In `complete` problems the weight of the diagonal may be
    below 1: `lacking` is the difference, `own` the diagonal's values. `limits` holds the largest loading allowed for
    each item, if limited. `curvature` is c_i. `ridge` and `lasso` are the penalty's, None without one.
    """

    values: torch.Tensor
    roots: torch.Tensor | None
    sizes: torch.Tensor
    own: torch.Tensor
    lacking: torch.Tensor | None
    limits: torch.Tensor | None
    curvature: torch.Tensor
    ridge: torch.Tensor | None
    lasso: torch.Tensor | None
    complete: bool
    factored: bool

    def take(self, which: list[int]) -> _Data:
        """The data of some of the fits."""
        if len(self.values) == 1:
            return self
        tensors: dict[str, Any] = {
            name: part[which] for name, part in self._asdict().items() if isinstance(part, torch.Tensor)
        }
        return self._replace(**tensors)

    def step(self, state: State) -> State:
        """One iteration of every fit."""
        gram = state.Y.mT @ state.Y
        moved = minimise_model(state, gram, self.curvature, self.ridge, self.limits)
        rounding = CANCELLATION * self.sizes if self.complete else 0.0
        return advance(state, *moved, self.limits, partial(_objective_and_gradient, self), rounding)


class State(NamedTuple):
    """The state of a batch: the last minimum of a model X, and the point Y with f and the gradient G there.

    `t` is Nesterov's counter, `damping` multiplies c, and `direction` estimates the leading eigenvector of Y^T Y.
    """

    X: torch.Tensor
    Y: torch.Tensor
    f: torch.Tensor
    G: torch.Tensor
    t: torch.Tensor
    damping: torch.Tensor
    direction: torch.Tensor

    def take(self, which: list[int]) -> State:
        """The state of some of the fits."""
        return State(*(part[which] for part in self))


def _fit_batch(
    problems: Sequence[DenseProblem],
    starts: Sequence[np.ndarray],
    device: torch.device,
    shared: bool,
    max_iter: int,
    tol: float,
    report: Report,
) -> list[Solution]:
    units = [power_of_four(float(np.sqrt(problem.squares)) / problem.n_items) for problem in problems]
    some = slice(1) if shared else slice(None)
    data = _upload(problems[some], units[some], starts[0].shape[1], device)
    Y = torch.stack([to_device(W, device, unit**0.5) for W, unit in zip(starts, units, strict=True)])
    state, floor = first_state(Y, *_objective_and_gradient(data, Y)), smallest_share(cancels=data.complete)
    ends = descend(data, state, units, floor, max_iter=max_iter, tol=tol, report=report)
    found = []
    for at, (problem, end) in enumerate(zip(problems, ends, strict=True)):
        own = data.take([at])
        evaluate_there = partial(_evaluate_factors if data.factored else _evaluate_matrix, own)
        found.append(conclude(problem, end, units[at], evaluate_there))
    return found


class End(NamedTuple):
    """The end of a fit, in the units of the device."""

    W: torch.Tensor
    history: np.ndarray
    converged: bool


def descend(
    data: Batch, state: State, units: Sequence[float], floor: float, *, max_iter: int, tol: float, report: Report
) -> list[End]:
    """Iterate until every fit has converged, or f is the fraction `floor` of sum Omega S^2.

    Similarities were divided by `units`.
    """
    n_fits = len(state.f)
    floors = (floor * data.sizes).expand(n_fits).tolist()
    histories = np.empty((n_fits, max_iter + 1))
    histories[:, 0] = state.f.tolist()
    lowest = histories.copy()  # lowest so far: f wavers by rounding, which is not progress
    ended: dict[int, End] = {}
    active = list(range(n_fits))
    for iteration in range(1, max_iter + 1):
        state = data.step(state)
        histories[active, iteration] = state.f.tolist()
        lowest[active, iteration] = np.minimum(histories[active, iteration], lowest[active, iteration - 1])
        if report is not None:
            report(iteration, float(histories[active[0], iteration]) * units[active[0]] ** 2)
        tied = (state.damping > MOST_DAMPING).tolist()
        rules = [(WINDOW, float(tol), floors[at]) for at in active]
        ends = [stalled(lowest[at], iteration, rule) for at, rule in zip(active, rules, strict=True)]
        still = [place for place, end in enumerate(ends) if tied[place] or not end]
        if len(still) < len(active):
            for place in sorted(set(range(len(active))) - set(still)):
                at = active[place]
                ended[at] = End(state.Y[place], histories[at, : iteration + 1], True)
            active = [active[place] for place in still]
            if not active:
                break
            data, state = data.take(still), state.take(still)
    ended |= {at: End(state.Y[place], histories[at], False) for place, at in enumerate(active)}
    return [ended[at] for at in range(n_fits)]


def first_state(Y: torch.Tensor, f: torch.Tensor, G: torch.Tensor) -> State:
    """The state at the start, without momentum."""
    ones = torch.ones_like(f)
    return State(Y, Y, f, G, ones, ones, torch.ones_like(Y[:, :1].mT))


def power_of_four(size: float) -> float:
    """The power of four closest to the root mean square of similarities: dividing by it, or by its root, is exact."""
    return float(4.0 ** round(np.log2(size) / 2)) if size > 0 else 1.0


def advance(
    state: State,
    X: torch.Tensor,
    direction: torch.Tensor,
    limits: torch.Tensor | None,
    measure: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
    rounding: torch.Tensor | float = 0.0,
) -> State:
    """The state after a minimum X of the model: an extrapolated point, or the old one if f is higher there."""
    t = (1 + torch.sqrt(1 + 4 * state.t**2)) / 2
    momentum = (state.t - 1) / t
    Y = _feasible(torch.lerp(state.X, X, _per_fit(1 + momentum, X)), limits)
    f, G = measure(Y)
    worse = ~(f <= state.f * (1 + _ROUNDING) + rounding)
    stay = worse[:, None, None]
    raised = torch.where(momentum > 0, state.damping, 2 * state.damping)
    return State(
        X=torch.where(stay, state.Y, X),
        Y=torch.where(stay, state.Y, Y),
        f=torch.where(worse, state.f, f),
        G=torch.where(stay, state.G, G),
        t=torch.where(worse, torch.ones_like(t), t),
        damping=torch.where(worse, raised, (0.9 * state.damping).clamp_min(1)),
        direction=direction,
    )


def minimise_model(
    state: State, gram: torch.Tensor, curvature: torch.Tensor, ridge: torch.Tensor | None, limits: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Decrease the model over Y + D >= 0 by accelerated projected gradient steps; also the leading direction of Y^T Y.

    `gram` is Y^T Y or its replacement, and `curvature` is c_i. The step of each column is one over the largest
    eigenvalue of `gram` scaled to unit diagonal, divided by that diagonal, because dimensions may differ much in size.
    """
    Y = state.Y
    if ridge is not None:
        own = ridge / (curvature.mean(dim=1, keepdim=True) * _per_fit(state.damping, Y))
        gram = gram + own * torch.eye(Y.shape[2], dtype=Y.dtype, device=Y.device)
    sizes = gram.diagonal(dim1=1, dim2=2)[:, None, :]
    sizes = sizes + SMALLEST * sizes.amax(dim=2, keepdim=True) + torch.finfo(Y.dtype).tiny
    roots = sizes.sqrt()
    largest, direction = _largest_eigenvalue(gram / (roots * roots.mT), state.direction)
    steps = 1 / (largest * sizes)
    shrink = torch.eye(Y.shape[2], dtype=Y.dtype, device=Y.device) - gram * steps
    pull = (Y @ gram - state.G / (2 * curvature * _per_fit(state.damping, Y))) * steps
    X = ahead = Y
    t = 1.0
    for _ in range(_INNER_STEPS):
        moved = _feasible(torch.baddbmm(pull, ahead, shrink), limits)
        t_next = (1 + (1 + 4 * t * t) ** 0.5) / 2
        ahead = torch.lerp(X, moved, 1 + (t - 1) / t_next)
        X, t = moved, t_next
    return X, direction


def _largest_eigenvalue(matrices: torch.Tensor, direction: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """An upper bound of the largest eigenvalue of non-negative matrices (Collatz), close to it after a few calls."""
    for _ in range(2):
        image = matrices @ direction
        bound = (image / direction).amax(dim=1, keepdim=True)
        direction = image / image.amax(dim=1, keepdim=True) + 1e-3
    return bound, direction


def _feasible(W: torch.Tensor, limits: torch.Tensor | None) -> torch.Tensor:
    """Clip W in place to be non-negative and within the limits of its items."""
    W.clamp_(min=0)
    return W if limits is None else torch.minimum(W, limits)


def _objective_and_gradient(data: _Data, W: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    f, G = _from_products(data, W) if data.complete else _from_residuals(data, W)
    if data.ridge is not None and data.lasso is not None:
        G += 2 * (data.ridge * W + data.lasso)
        f += penalty_of(data.ridge, data.lasso, W.to(precise_type(W.device)))
    return f, G


def penalty_of(ridge: torch.Tensor, lasso: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
    """The penalty of every fit: ridge |W|^2 + 2 lasso sum W."""
    return torch.sum(ridge * W**2 + 2 * lasso * W, dim=(1, 2))


def _from_residuals(data: _Data, W: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The objective and its gradient from Omega * (S - W W^T)."""
    n = W.shape[1]
    residuals = torch.baddbmm(data.values.expand(len(W), n, n), W, W.mT, alpha=-1)
    residuals.nan_to_num_(nan=0.0)
    if data.roots is not None:
        residuals *= data.roots
    f = 0.5 * torch.linalg.vector_norm(residuals, dim=(1, 2)).to(precise_type(W.device)) ** 2
    if data.roots is not None:
        residuals *= data.roots
    return f, -2 * (residuals @ W)


def _from_products(data: _Data, W: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Without missing pairs: f = 1/2 (|S|^2 - 2 <S W, W> + |W^T W|^2), and its gradient 2 (W W^T W - S W)."""
    precise = precise_type(W.device)
    products = _products(data, W)
    gram = W.to(precise).mT @ W.to(precise)
    inner = torch.sum(products.to(precise) * W, dim=(1, 2))
    f = 0.5 * (data.sizes - 2 * inner + torch.sum(gram**2, dim=(1, 2)))
    G = torch.baddbmm(products, W, gram.to(W.dtype), beta=-2, alpha=2)
    if data.lacking is not None:
        residuals = data.own - W.square().sum(dim=2)
        f -= 0.5 * torch.sum(data.lacking * residuals**2, dim=1)
        G += 2 * (data.lacking * residuals)[:, :, None] * W
    return f, G


def _products(data: _Data, W: torch.Tensor) -> torch.Tensor:
    """S W; all fits of the same S share one product."""
    if len(data.values) < len(W):
        n = W.shape[1]
        side_by_side = W.transpose(0, 1).reshape(1, n, -1)
        return _products(data, side_by_side).reshape(n, len(W), -1).transpose(0, 1)
    return data.values @ (data.values.mT @ W) if data.factored else data.values @ W


def _upload(problems: Sequence[DenseProblem], units: Sequence[float], rank: int, device: torch.device) -> _Data:
    """The problems on the device in float32, with similarities divided by their units."""
    one = problems[0]
    factored = isinstance(one, FactorProblem)
    complete = isinstance(one, FactorProblem) or one.complete
    own, own_weights, limits, known = zip(*(_of_items(problem, rank) for problem in problems), strict=True)
    limited = any(np.isfinite(limit).any() for limit in limits)
    lacks = complete and any((weights < 1).any() for weights in own_weights)
    both = [(problem.values, problem.weights) for problem in problems if isinstance(problem, MatrixProblem)]
    weighted = any(weights.size for _, weights in both)
    roots = [unit**0.5 for unit in units]
    penalised = any(any(problem.penalty) for problem in problems)
    ridge, lasso = ([np.full((1, 1), problem.penalty[at]) for problem in problems] for at in (0, 1))

    def stacked(arrays: Sequence[np.ndarray], by: Sequence[float] | None = None) -> torch.Tensor:
        return torch.stack([to_device(array, device, 1.0 if by is None else by[at]) for at, array in enumerate(arrays)])

    return _Data(
        values=stacked(
            [one.factors if isinstance(one, FactorProblem) else one.values for one in problems],
            roots if factored else units,
        ),
        # A fold may hold out the only pair with a different weight; it then has no weights while others do.
        roots=stacked([w if w.size else np.broadcast_to(1.0, v.shape) for v, w in both]).sqrt_() if weighted else None,
        sizes=torch.tensor([problem.squares for problem in problems], dtype=precise_type(device), device=device)
        / torch.tensor(units, dtype=precise_type(device), device=device) ** 2,
        own=stacked(own, units),
        lacking=stacked([1.0 - weights for weights in own_weights]) if lacks else None,
        limits=stacked([limit[:, None] for limit in limits], roots) if limited else None,
        curvature=stacked([share[:, None] for share in known]),
        ridge=stacked(ridge, units) if penalised else None,
        lasso=stacked(lasso, [unit**1.5 for unit in units]) if penalised else None,
        complete=complete,
        factored=factored,
    )


def _of_items(problem: DenseProblem, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For each item its self-similarity and the weight of it, the limit of its loadings, and c_i."""
    shares = np.ones(problem.n_items) if isinstance(problem, FactorProblem) else 1.0 / over_relaxation(problem, rank)
    return problem.diagonal, problem.diagonal_weights, problem.limits, 2.0 * shares


def to_device(array: np.ndarray, device: torch.device, unit: float = 1.0) -> torch.Tensor:
    """An array divided by `unit`, copied to the device in float32 in blocks of rows."""
    target = torch.empty(array.shape, dtype=torch.float32, device=device)
    n_rows = max(1, _BLOCK_BYTES // max(array[:1].nbytes, 1))
    for start in range(0, len(array), n_rows):
        block = torch.from_numpy(np.ascontiguousarray(array[start : start + n_rows]))
        if device.type == "mps":  # has no float64
            target[start : start + n_rows] = (block / unit).float().to(device)
        else:
            target[start : start + n_rows] = block.to(device) / unit
    return target


def conclude(problem: Problem, end: End, unit: float, evaluate_there: Callable[[torch.Tensor], Evaluation]) -> Solution:
    """The result of a fit, with final figures in float64 from `evaluate_there` if the device supports that."""
    result = (end.W.cpu().numpy().astype(np.float64) * np.sqrt(unit)).astype(problem.dtype)
    if end.W.device.type == "mps":  # has no float64
        figures = evaluate(problem, result)
    else:
        objective, data_objective, residual = evaluate_there(end.W.double())
        figures = Evaluation(objective * unit**2, data_objective * unit**2, residual)
    return solution(result, figures, problem.scale, end.history * unit**2 * problem.scale, end.converged)


def _evaluate_matrix(data: _Data, W: torch.Tensor) -> Evaluation:
    """The objective and the KKT residual in float64; see criterion.evaluate."""
    n = len(W)
    objective, slope, pull = 0.0, torch.empty_like(W), torch.empty_like(W)
    n_rows = max(1, _BLOCK_BYTES // (8 * n))
    for start in range(0, n, n_rows):
        rows = slice(start, min(start + n_rows, n))
        values = data.values[0, rows].double()
        residuals = (values - W[rows] @ W.mT).nan_to_num_(nan=0.0)
        if data.lacking is not None:
            block = torch.arange(rows.start, rows.stop, device=W.device)
            residuals[block - start, block] *= 1 - data.lacking[0, rows].double()
        weighted = residuals if data.roots is None else residuals * data.roots[0, rows].double() ** 2
        objective += 0.5 * float(torch.sum(residuals * weighted))
        slope[rows] = -2 * (weighted @ W)
        known = values.nan_to_num_(nan=0.0)
        pull[rows] = (known if data.roots is None else known * data.roots[0, rows].double() ** 2) @ W
    return evaluation(W, objective, slope, pull, data.ridge, data.lasso, data.limits)


def _evaluate_factors(data: _Data, W: torch.Tensor) -> Evaluation:
    """`_evaluate_matrix` for S = F F^T."""
    factors = data.values[0]
    n_rows = max(1, _BLOCK_BYTES // (8 * factors.shape[1]))
    blocks = [slice(start, start + n_rows) for start in range(0, len(W), n_rows)]
    gram = W.mT @ W
    projection = torch.stack([factors[rows].double().mT @ W[rows] for rows in blocks]).sum(dim=0)
    explained = torch.sum(gram**2) - 2 * torch.sum(projection**2)
    objective = 0.5 * float(data.sizes[0] + explained)
    if objective < _FEW_DIGITS * float(data.sizes[0]):  # recompute |F^T F|^2 from the same factors as the other sums
        own = torch.stack([factors[rows].double().mT @ factors[rows].double() for rows in blocks]).sum(dim=0)
        objective = 0.5 * float(torch.sum(own**2) + explained)
    pull = torch.cat([factors[rows].double() @ projection for rows in blocks])
    slope = -2 * (pull - W @ gram)
    return evaluation(W, max(objective, 0.0), slope, pull, data.ridge, data.lasso, data.limits)


def evaluation(
    W: torch.Tensor,
    value: float,
    slope: torch.Tensor,
    pull: torch.Tensor,
    ridge: torch.Tensor | None,
    lasso: torch.Tensor | None,
    limits: torch.Tensor | None,
) -> Evaluation:
    """The figures of one fit from f(W), its gradient and (Omega * S) W, with the penalty and limits of its data."""
    penalty = 0.0
    if ridge is not None and lasso is not None:
        slope = slope + 2 * (ridge[0].double() * W + lasso[0].double())
        penalty = float(penalty_of(ridge.double(), lasso.double(), W[None])[0])
    slope = torch.where(W > 0, slope, slope.clamp(max=0))
    if limits is not None:
        slope = torch.where((1 - 1e-6) * limits[0].double() > W, slope, slope.clamp(min=0))
    projected, scale = float(torch.linalg.norm(slope)), 2.0 * float(torch.linalg.norm(pull))
    return Evaluation(value + penalty, value, projected / scale if scale > 0 else projected)


def smallest_share(*, cancels: bool) -> float:
    """The fraction of sum Omega S^2 at which f is rounding error; more if f is a difference of large sums."""
    return max((100.0 * torch.finfo(torch.float32).eps) ** 2, CANCELLATION if cancels else 0.0)


def _bytes_of(problem: DenseProblem, rank: int) -> tuple[int, int]:
    """Bytes of a problem on the device, and of one fit in addition to it."""
    n, loadings = problem.n_items, 4 * COPIES * problem.n_items * rank
    if isinstance(problem, FactorProblem):
        return 4 * problem.factors.size, loadings
    matrix = 4 * n * n
    if problem.complete:
        return matrix, loadings
    return (2 if problem.weights.size else 1) * matrix, loadings + matrix


def _how_many(problems: Sequence[DenseProblem], rank: int, device: torch.device, shared: bool) -> int:
    """Number of fits that the device can hold at a time; an error if it cannot hold one."""
    free = free_bytes(device)
    if free is None:
        return len(problems)
    data, work = max(_bytes_of(problem, rank) for problem in problems)
    usable = usable_bytes(free)
    if data + work > usable:
        raise _too_large(problems[0], rank, device)
    # If each fit has its own data, the data of those still running are copied when others end.
    at_once = (usable - data) // work if shared else usable // (2 * data + work)
    return int(min(max(at_once, 1), len(problems)))


def free_bytes(device: torch.device) -> int | None:
    """Free memory on a GPU, including memory that torch holds but does not use."""
    if device.type != "cuda":
        return None
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + held


def usable_bytes(free: int) -> float:
    """The part of free memory that fits may use."""
    return max(_USABLE * free - 6 * _BLOCK_BYTES, 0.0)


def _too_large(problem: DenseProblem, rank: int, device: torch.device) -> MemoryError:
    needed, usable = sum(_bytes_of(problem, rank)), usable_bytes(free_bytes(device) or 0)
    n = problem.n_items
    if isinstance(problem, FactorProblem):
        fitting = int(n * usable / needed)
    else:  # solve a m^2 + b m = usable
        b = 4.0 * COPIES * rank
        a = (needed - b * n) / n**2
        fitting = int((np.sqrt(b * b + 4 * a * usable) - b) / (2 * a))
    return MemoryError(
        f"A fit of {n} items and {rank} dimensions needs {needed / 2**30:.1f} GiB of the memory of {device}, which has "
        f"{usable / 2**30:.1f} GiB to use: about {fitting} items would fit. Leave items out, pass factors "
        "(from_features with implicit=True), or use device='cpu'."
    )


def precise_type(device: torch.device) -> torch.dtype:
    """The type for sums: float64 if the device supports it."""
    return torch.float32 if device.type == "mps" else torch.float64


def _per_fit(numbers: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return numbers.to(like.dtype)[:, None, None]
