"""Fits of lists of pairs on a GPU: all rows simultaneously, as in torch.py, but with a matrix for each row.

Around Y the objective is modelled by

    f(Y + D) ~ f(Y) + <grad f(Y), D> + 2 sum_i d_i A_i d_i^T,    A_i = sum_j Omega_ij y_j y_j^T,

plus the penalty, because 1/2 |Y D^T + D Y^T|^2 <= 2 |Y D^T|^2 for any weights. The diagonal is listed like other pairs,
and unlisted zeros of weight `background` enter f, its gradient and A_i through Y^T Y. Rows are sorted by their number
of partners and padded to blocks of equal length with an item whose loadings are zero, so that every sum over partners
is a batched product. Memory is proportional to the pairs, plus one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from simdims.solvers.criterion import Evaluation, Solution
from simdims.solvers.loop import Report
from simdims.solvers.problem import PairProblem
from simdims.solvers.torch import (
    CANCELLATION,
    COPIES,
    State,
    advance,
    check_device,
    conclude,
    descend,
    evaluation,
    first_state,
    free_bytes,
    minimise_model,
    penalty_of,
    power_of_four,
    precise_type,
    smallest_share,
    to_device,
    usable_bytes,
)

#: Bytes of the loadings of partners and of the matrices A_i that are held at a time.
_BLOCK_BYTES = 2**29

#: Arrays of the size of the partners' loadings, and of the A_i, that a block needs.
_GATHERED, _MATRICES = 3, 4

#: Rows share a block if the longest has at most this many times the partners of the shortest, and a few more.
_LONGEST, _MORE = 1.25, 4

#: Bytes per listed pair: partner, value and weight, as listed and as padded.
_PAIR_BYTES = 24


def fit_lists(
    problems: Sequence[PairProblem],
    starts: Sequence[np.ndarray],
    *,
    device: str,
    max_iter: int,
    tol: float,
    report: Report = None,
) -> list[Solution]:
    """Fit lists of pairs one after the other, each from its start (not changed); identical objects are sent once."""
    place = check_device(device)
    rank = starts[0].shape[1]
    found: list[Solution] = []
    sent: tuple[PairProblem, _Lists] | None = None
    try:
        for problem, W in zip(problems, starts, strict=True):
            if sent is None or sent[0] is not problem:
                sent = None  # frees its memory before the next one is sent
                free = free_bytes(place)
                if free is not None and _bytes_of(problem, rank) > usable_bytes(free):
                    raise _too_large(problem, rank, place)
                sent = problem, _upload(problem, rank, place)
            found.append(_fit(problem, sent[1], W, max_iter, tol, report))
    except torch.cuda.OutOfMemoryError:
        raise _too_large(problems[0], rank, place) from None
    return found


def _fit(problem: PairProblem, data: _Lists, W: np.ndarray, max_iter: int, tol: float, report: Report) -> Solution:
    Y = to_device(W, data.order.device, data.unit**0.5)[data.order][None]
    state = first_state(Y, *data.measure(Y))._replace(direction=torch.ones_like(Y))
    floor = smallest_share(cancels=data.background > 0)
    end = descend(data, state, [data.unit], floor, max_iter=max_iter, tol=tol, report=report)[0]
    as_given = end._replace(W=end.W[torch.argsort(data.order)])
    return conclude(problem, as_given, data.unit, lambda W: data.evaluate(W[data.order]))


class _Block(NamedTuple):
    """Consecutive rows: the partners of each, the row itself last, and their similarities and weights.

    Rows with fewer partners than the longest are padded with item n, with weights of zero.
    """

    rows: slice
    partners: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor

    def gather(self, padded: torch.Tensor) -> torch.Tensor:
        """The loadings of all partners, from those of all items and a last row of zeros."""
        return padded.index_select(0, self.partners.flatten()).unflatten(0, self.partners.shape)


class _Lists(NamedTuple):
    """Lists on the device, in blocks, with items in the given `order`; see `torch.Batch`.

    Similarities are divided by `unit`. `limits`, `ridge` and `lasso` are None if there are none.
    """

    blocks: list[_Block]
    order: torch.Tensor
    unit: float
    sizes: torch.Tensor
    background: float
    limits: torch.Tensor | None
    ridge: torch.Tensor | None
    lasso: torch.Tensor | None

    def take(self, which: list[int]) -> _Lists:
        """The data of some of the fits: there is only one."""
        return self

    def step(self, state: State) -> State:
        """One iteration."""
        W = state.Y[0]
        padded = _padded(W)
        zeros = self.background * (W.mT @ W)
        X, direction = torch.empty_like(state.Y), torch.empty_like(state.Y)
        curvature = torch.full((1, 1, 1), 2.0, device=W.device)
        for block in self.blocks:
            rows = block.rows
            partners = block.gather(padded)
            A = (partners * (block.weights - self.background)[:, :, None]).mT @ partners
            A += zeros
            A.clamp_(min=0)  # sums of non-negative products, but for the rounding of the difference
            A += (A.amax(dim=(1, 2), keepdim=True) == 0) * torch.eye(A.shape[1], device=A.device)  # rows without pairs
            own = state._replace(
                Y=W[rows][:, None], G=state.G[0, rows][:, None], direction=state.direction[0, rows][:, :, None]
            )
            limits = None if self.limits is None else self.limits[0, rows][:, None]
            moved, leading = minimise_model(own, A, curvature, self.ridge, limits)
            X[0, rows], direction[0, rows] = moved[:, 0], leading[:, :, 0]
        rounding = CANCELLATION * self.sizes if self.background else 0.0
        return advance(state, X, direction, self.limits, self.measure, rounding)

    def measure(self, Y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The objective and its gradient."""
        f, G, _ = self._sums(Y[0])
        if self.ridge is not None and self.lasso is not None:
            G = G + 2 * (self.ridge[0] * Y[0] + self.lasso[0])
            f = f + penalty_of(self.ridge, self.lasso, Y.to(precise_type(Y.device)))[0]
        return f[None], G[None]

    def evaluate(self, W: torch.Tensor) -> Evaluation:
        """The final figures, in float64."""
        value, slope, pull = self._sums(W, with_pull=True)
        return evaluation(W, max(float(value), 0.0), slope, pull, self.ridge, self.lasso, self.limits)

    def _sums(self, W: torch.Tensor, *, with_pull: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """f(W), its gradient and, if needed, (Omega * S) W, in the precision of W."""
        precise, background = precise_type(W.device), self.background
        padded = _padded(W)
        f, G, pull = torch.zeros((), dtype=precise, device=W.device), torch.empty_like(W), torch.empty_like(W[:0])
        pull = torch.empty_like(W) if with_pull else pull
        for block in self.blocks:
            partners = block.gather(padded)
            predicted = torch.bmm(partners, W[block.rows][:, :, None])[:, :, 0]
            residuals = block.values - predicted
            weighted = block.weights * residuals
            f += 0.5 * torch.sum(weighted * residuals, dtype=precise)
            if background:
                f -= 0.5 * background * torch.sum(predicted**2, dtype=precise)
                weighted += background * predicted
            G[block.rows] = -2 * torch.bmm(weighted[:, None], partners)[:, 0]
            if with_pull:
                known = (block.weights * block.values).to(W.dtype)
                pull[block.rows] = torch.bmm(known[:, None], partners)[:, 0]
        if background:
            gram = W.to(precise).mT @ W.to(precise)
            f += 0.5 * background * torch.sum(gram**2)
            G += 2 * background * (W @ gram.to(W.dtype))
        return f, G, pull


def _padded(W: torch.Tensor) -> torch.Tensor:
    return torch.cat([W, torch.zeros_like(W[:1])])


def _upload(problem: PairProblem, rank: int, device: torch.device) -> _Lists:
    """The problem on the device in float32."""
    own_squares = float(np.sum(problem.diagonal_weights * problem.diagonal**2))
    squares = own_squares + float(np.sum(problem.weights * np.square(problem.values), dtype=np.float64))
    weight = float(np.sum(problem.weights, dtype=np.float64)) + float(np.sum(problem.diagonal_weights))
    unit = power_of_four(float(np.sqrt(squares / weight)) if squares > 0 else 1.0)
    order = np.argsort(np.diff(problem.starts), kind="stable")
    limits = problem.limits[order, None]

    def number(value: float) -> torch.Tensor:
        return to_device(np.full((1, 1, 1), value), device)

    penalised = any(problem.penalty)
    return _Lists(
        blocks=_blocks(problem, order, unit, rank, device),
        order=torch.from_numpy(order).to(device),
        unit=unit,
        sizes=torch.tensor([squares / unit**2], dtype=precise_type(device), device=device),
        background=problem.background,
        limits=to_device(limits[None], device, unit**0.5) if np.isfinite(limits).any() else None,
        ridge=number(problem.penalty.ridge / unit) if penalised else None,
        lasso=number(problem.penalty.lasso / unit**1.5) if penalised else None,
    )


def _blocks(problem: PairProblem, order: np.ndarray, unit: float, rank: int, device: torch.device) -> list[_Block]:
    """All rows in the given order, with the row itself as its last partner."""
    n = problem.n_items
    counts = np.diff(problem.starts)[order]
    listed, values = torch.from_numpy(problem.partners).to(device), to_device(problem.values, device, unit)
    weights = to_device(problem.weights, device)
    own_values, own_weights = (
        to_device(of_items[order, None], device, by)
        for of_items, by in ((problem.diagonal, unit), (problem.diagonal_weights, 1.0))
    )
    place = torch.from_numpy(np.argsort(order).astype(np.int32)).to(device)
    blocks = []
    for rows in _row_slices(counts, rank):
        length = torch.from_numpy(counts[rows]).to(device)[:, None]
        begin = torch.from_numpy(problem.starts[order[rows]]).to(device)[:, None]
        steps = torch.arange(int(counts[rows][-1]), device=device)
        is_listed = steps < length
        at = torch.where(is_listed, begin + steps, begin.clamp(max=max(len(listed) - 1, 0)))
        others = torch.where(is_listed, place[listed[at].long()], n)
        own = torch.arange(rows.start, rows.stop, dtype=others.dtype, device=device)[:, None]
        blocks.append(
            _Block(
                rows,
                torch.cat([others, own], dim=1),
                torch.cat([values[at] * is_listed, own_values[rows]], dim=1),
                torch.cat([weights[at] * is_listed, own_weights[rows]], dim=1),
            )
        )
    return blocks


def _row_slices(counts: np.ndarray, rank: int) -> list[slice]:
    """Slices of rows, sorted by their counts of partners, that fit into a block and do not differ much."""
    slices, first = [], 0
    while first < len(counts):
        last = int(np.searchsorted(counts, _LONGEST * counts[first] + _MORE, side="right"))
        row_bytes = 4 * rank * (_GATHERED * (int(counts[last - 1]) + 1) + _MATRICES * rank)
        last = min(last, first + max(1, _BLOCK_BYTES // row_bytes))
        slices.append(slice(first, last))
        first = last
    return slices


def _bytes_of(problem: PairProblem, rank: int) -> int:
    """Bytes of a fit on the device."""
    n = problem.n_items
    most = int(np.diff(problem.starts).max(initial=0)) + 1
    row = 4 * rank * (_GATHERED * most + _MATRICES * rank)
    return _PAIR_BYTES * (len(problem.values) + n) + 4 * COPIES * n * rank + max(row, min(n * row, _BLOCK_BYTES))


def _too_large(problem: PairProblem, rank: int, device: torch.device) -> MemoryError:
    needed, usable = _bytes_of(problem, rank), usable_bytes(free_bytes(device) or 0)
    return MemoryError(
        f"A fit of {problem.n_items} items with {len(problem.values) // 2} pairs and {rank} dimensions needs "
        f"{needed / 2**30:.1f} GiB of the memory of {device}, which has {usable / 2**30:.1f} GiB to use. Leave items "
        "out, or use device='cpu'."
    )
