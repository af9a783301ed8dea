"""The problems that solvers take: similarities as a dense matrix, as lists of pairs, or as factors.

Weights are divided by their largest value (`scale`): filling majorises the objective only if Omega <= 1, and ADMM's
threshold on rho assumes it. The solvers multiply the objective by `scale` at the end.

If the diagonal of an item is not observed, nothing keeps a loading of the item from growing while those of its partners
shrink: a hub and its spokes fit best at infinity. Then `limits` holds the largest loading allowed for the item, ten
times the root of the largest similarity. It is infinite for other items, and for all with a penalty (penalty.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from simdims import _memory
from simdims.solvers import kernels

#: Largest similarity, and inverse of the smallest allowed largest similarity, for floats of 4 and 8 bytes.
_REACH = {4: 1e15, 8: 1e100}

#: Limit on loadings of an item without an observed diagonal, in units of the root of the largest similarity.
LARGEST_LOADING = 10.0

#: From this many items on, a sweep takes milliseconds: blocks can be looped over in Python, and a second thread pays
#: off.
MANY = 1000


class Penalty(NamedTuple):
    """ridge |W|_F^2 + 2 lasso sum_ik W_ik, added to f; in the problem's weights."""

    ridge: float = 0.0
    lasso: float = 0.0

    def of(self, W: np.ndarray) -> float:
        """The penalty of W."""
        if not (self.ridge or self.lasso):
            return 0.0
        squares, total = np.sum(np.square(W, dtype=np.float64)), np.sum(W, dtype=np.float64)
        return float(self.ridge * squares + 2.0 * self.lasso * total)

    def times(self, factor: float) -> Penalty:
        """The penalty multiplied by a number."""
        return Penalty(self.ridge * factor, self.lasso * factor)


NO_PENALTY = Penalty()


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """What every storage has: the similarities of items to themselves, and the largest weight as `scale`.

    `unknown` lists the items whose self-similarity is not known. `noise` keeps what penalty.noise_scale has computed;
    `replace` drops it.
    """

    diagonal: np.ndarray
    diagonal_weights: np.ndarray
    limits: np.ndarray
    scale: float = 1.0
    penalty: Penalty = NO_PENALTY
    unknown: np.ndarray = field(init=False)
    noise: tuple[float, float] | None = field(init=False, default=None, compare=False)

    def __post_init__(self) -> None:
        # No cached_property: its lock is shared by all problems, and a forked process may inherit it locked.
        object.__setattr__(self, "unknown", np.flatnonzero(self.diagonal_weights == 0))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.diagonal)


@dataclass(frozen=True, kw_only=True)
class MatrixProblem(_Stored):
    """A dense symmetric matrix with NaN for missing pairs.

    `weights` is empty if every known pair has the same weight. `known` counts the known pairs of each item with others,
    and `shares` is their weight over the number of others; `total` and `squares` are sum Omega S and sum Omega S^2.
    `n_known` counts each known pair of different items twice, and `complete` tells whether all are known and have the
    same weight. Complete problems have no NaN: unknown entries of their diagonal are stored as zeros of weight zero.
    """

    values: np.ndarray
    weights: np.ndarray
    known: np.ndarray
    shares: np.ndarray
    total: float
    squares: float
    n_known: int = field(init=False)
    complete: bool = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        n_known = int(self.known.sum())
        object.__setattr__(self, "n_known", n_known)
        object.__setattr__(self, "complete", not self.weights.size and n_known == _all_pairs(self.n_items))

    @property
    def dtype(self) -> np.dtype:
        """Precision of the values and of the embedding."""
        return self.values.dtype


@dataclass(frozen=True, kw_only=True)
class PairProblem(_Stored):
    """Listed pairs in compressed rows: both triangles, no diagonal; unlisted pairs are zeros of weight `background`."""

    starts: np.ndarray
    partners: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    background: float

    @property
    def n_known(self) -> int:
        """Known pairs of different items, each counted from both sides."""
        unlisted = _all_pairs(self.n_items) - len(self.values)
        return int(np.count_nonzero(self.weights)) + (unlisted if self.background > 0 else 0)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the values and of the embedding."""
        return self.values.dtype


@dataclass(frozen=True, kw_only=True)
class FactorProblem(_Stored):
    """All pairs known through factors, S = F F^T, without the matrix; `total` and `squares` are sum S and sum S^2."""

    factors: np.ndarray
    total: float
    squares: float

    @property
    def n_known(self) -> int:
        """All pairs of different items, each counted from both sides."""
        return _all_pairs(self.n_items)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the factors and of the embedding."""
        return self.factors.dtype


CompleteProblem = MatrixProblem | FactorProblem
Problem = CompleteProblem | PairProblem


def as_problem(values: Any, weights: Any = None, background: float = 0.0) -> Problem:
    """The problem of a checked, symmetric similarity matrix: an ndarray, or a csr_array.

    NaN is a missing pair; if it is stored, a listed pair of weight zero. `weights` have the type and shape of `values`,
    and `background` is the weight of the zeros that sparse values do not store.
    """
    if sparse.issparse(values):
        return _pair_problem(values, weights, background)
    return matrix_problem(values, weights)


def float_blocks(matrix: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of rows in float64."""
    for start in range(0, len(matrix), 4096):
        yield matrix[start : start + 4096].astype(np.float64)


def factor_problem(factors: np.ndarray) -> FactorProblem:
    """The problem of similarities S = F F^T."""
    factors = _plain(factors)
    sums = factors.sum(axis=0, dtype=np.float64)
    with np.errstate(over="ignore"):  # overflow is refused below
        gram = sum(block.T @ block for block in float_blocks(factors))
        problem = FactorProblem(
            factors=factors,
            diagonal=np.einsum("id,id->i", factors, factors, dtype=np.float64),
            diagonal_weights=np.ones(len(factors)),
            limits=np.full(len(factors), np.inf),
            total=float(sums @ sums),
            squares=float(np.sum(gram**2)),
        )
    # No similarity exceeds the largest self-similarity.
    largest = float(problem.diagonal.max())
    if largest == 0 and factors.any():
        largest = float(np.finfo(np.float64).tiny)
    require_scale(largest, factors.dtype, "factors")
    return problem


def similarities_among(problem: CompleteProblem, items: np.ndarray) -> np.ndarray:
    """The matrix of some items of a complete problem, NaN if an item's self-similarity is unknown."""
    values = similarities_between(problem, items, items)
    unknown = np.flatnonzero(problem.diagonal_weights[items] == 0)
    values[unknown, unknown] = np.nan
    return values


def similarities_between(problem: CompleteProblem, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A block of the matrix of a complete problem."""
    if isinstance(problem, FactorProblem):
        return problem.factors[rows] @ problem.factors[columns].T
    return problem.values[np.ix_(rows, columns)]


def pairs_of(problem: MatrixProblem) -> PairProblem:
    """The known pairs of a dense problem as lists, gathered block by block of rows."""
    n = problem.n_items
    starts = np.concatenate([[0], np.cumsum(problem.known)])
    _memory.require(
        int(starts[-1]) * (4 + 2 * problem.dtype.itemsize),
        f"Lists of the {starts[-1] // 2} known pairs of {n} items",
        "pass float32 values, or a sparse matrix with absent='missing'",
    )
    partners = np.empty(starts[-1], np.int32)
    values, weights = np.empty(starts[-1], problem.dtype), np.empty(starts[-1], problem.dtype)
    for rows in row_blocks(0, n):
        known = ~np.isnan(problem.values[rows])
        known[np.arange(len(known)), np.arange(rows.start, rows.stop)] = False
        listed = slice(starts[rows.start], starts[rows.stop])
        partners[listed] = np.nonzero(known)[1]
        values[listed] = problem.values[rows][known]
        weights[listed] = problem.weights[rows][known] if problem.weights.size else 1.0
    same = {name: getattr(problem, name) for name in ("diagonal", "diagonal_weights", "limits", "scale", "penalty")}
    return PairProblem(starts=starts, partners=partners, values=values, weights=weights, background=0.0, **same)


def row_blocks(first: int, last: int) -> Iterator[slice]:
    """Blocks of rows first .. last - 1, small enough to keep temporary arrays small."""
    for start in range(first, last, 64):
        yield slice(start, min(start + 64, last))


def matrix_of(problem: Problem) -> MatrixProblem:
    """Any problem as a dense one, for a solver that needs every entry."""
    if isinstance(problem, MatrixProblem):
        return problem
    n = problem.n_items
    if isinstance(problem, FactorProblem):
        _require_dense(n, n * n * problem.dtype.itemsize)
        return replace(matrix_problem(problem.factors @ problem.factors.T, None), penalty=problem.penalty)
    own = problem.diagonal_weights[problem.diagonal_weights > 0]
    weights_differ = not np.isin(problem.weights, (0.0, 1.0)).all() or bool(np.any(own != 1.0))
    weighted = weights_differ or problem.background not in (0.0, 1.0)
    _require_dense(n, (2 if weighted else 1) * n * n * problem.dtype.itemsize)
    rows = np.repeat(np.arange(n), np.diff(problem.starts))
    values = np.full((n, n), 0.0 if problem.background else np.nan, problem.dtype)
    values[rows, problem.partners] = np.where(problem.weights > 0, problem.values, np.nan)
    np.fill_diagonal(values, np.where(problem.diagonal_weights > 0, problem.diagonal, np.nan))
    weights = None
    if weighted:
        weights = np.full((n, n), problem.background, problem.dtype)
        weights[rows, problem.partners] = problem.weights
        np.fill_diagonal(weights, problem.diagonal_weights)
    dense = matrix_problem(values, weights)
    penalty, limits = problem.penalty.times(1.0 / dense.scale), problem.limits
    return replace(dense, scale=dense.scale * problem.scale, penalty=penalty, limits=limits)


def with_gaps(problem: MatrixProblem) -> MatrixProblem:
    """The problem with NaN for every unknown entry; complete problems store zeros on an unknown diagonal."""
    unknown = problem.unknown
    if not (problem.complete and unknown.size):
        return problem
    values = problem.values.copy()
    values[unknown, unknown] = np.nan
    return replace(problem, values=values)


def mean_similarity(problem: Problem) -> float:
    """Weighted mean of the known similarities, the diagonal included."""
    if isinstance(problem, FactorProblem):
        return problem.total / problem.n_items**2
    own = problem.diagonal_weights
    n_others = problem.n_items - 1
    if isinstance(problem, MatrixProblem):
        return float(problem.total / (problem.shares.sum() * n_others + own.sum()))
    unlisted = problem.n_items * n_others - len(problem.values)
    weight = problem.weights.sum() + problem.background * unlisted + own.sum()
    # No BLAS product: its last digits depend on the number of threads.
    total = np.sum(problem.weights * problem.values, dtype=np.float64)
    return float((total + np.sum(own * problem.diagonal)) / weight)


def _all_pairs(n_items: int) -> int:
    return n_items * (n_items - 1)


def partner_counts(problem: Problem) -> np.ndarray:
    """Known pairs of each item with other items."""
    n = problem.n_items
    if isinstance(problem, FactorProblem):
        return np.full(n, n - 1)
    if isinstance(problem, MatrixProblem):
        return problem.known.copy()
    known = np.add.reduceat(np.append(problem.weights > 0, False), problem.starts[:-1], dtype=np.int64)
    known[np.diff(problem.starts) == 0] = 0
    return known + (n - 1 - np.diff(problem.starts) if problem.background > 0 else 0)


def misses_pairs(problem: Problem) -> bool:
    """Whether any pair of different items is unknown."""
    return problem.n_known < _all_pairs(problem.n_items)


def has_missing(problem: Problem) -> bool:
    """Whether any pair, the diagonal included, is unknown."""
    return misses_pairs(problem) or problem.unknown.size > 0


def observed_range(problem: Problem) -> tuple[float, float]:
    """The smallest and the largest known similarity."""
    if isinstance(problem, FactorProblem):
        problem = matrix_of(problem)
    parts = [problem.diagonal[problem.diagonal_weights > 0]]
    if isinstance(problem, PairProblem):
        parts += [problem.values[problem.weights > 0], np.zeros(1 if problem.background > 0 else 0)]
    else:
        n = problem.n_items
        # Exclude the diagonal, where zeros may stand for unknown values: n entries lie between two of its entries.
        parts.append(problem.values.ravel()[:-1].reshape(n - 1, n + 1)[:, 1:])
    ends = [(np.fmin.reduce(part, axis=None), np.fmax.reduce(part, axis=None)) for part in parts if part.size]
    low, high = np.nanmin([low for low, _ in ends]), np.nanmax([high for _, high in ends])
    return float(low), float(high)


def matrix_problem(values: np.ndarray, weights: np.ndarray | None = None) -> MatrixProblem:
    """The problem of a dense matrix."""
    scale = 1.0
    if weights is not None:
        values = _without_weightless(values, weights)
        scale, uniform = _largest_weight(values, weights)
        weights = None if uniform else _scaled(weights, scale, values.dtype)
    n = len(values)
    values = _plain(values)
    weights = np.empty((0, 0), values.dtype) if weights is None else _plain(weights)
    diagonal = np.diagonal(values).astype(np.float64)
    own = np.where(np.isnan(diagonal), 0.0, np.diagonal(weights) if weights.size else 1.0)
    known, weight, total, squares, largest = kernels.survey(values, weights)
    require_scale(largest, values.dtype)
    if not own.all() and not weights.size and np.all(known == n - 1):
        _require_copy(values.nbytes, n)
        values = values.copy()  # products with a complete matrix must not contain NaN
        np.fill_diagonal(values, np.nan_to_num(diagonal))
    return MatrixProblem(
        values=values,
        weights=weights,
        diagonal=np.where(own > 0, diagonal, 0.0),
        diagonal_weights=own.astype(np.float64, copy=False),
        limits=_limits(own, largest),
        known=known.astype(np.int64),
        shares=weight / max(n - 1, 1),
        total=total,
        squares=squares,
        scale=scale,
    )


def _limits(diagonal_weights: np.ndarray, largest: float) -> np.ndarray:
    """The largest loading allowed for each item; without positive similarities there is no limit."""
    limited = (diagonal_weights == 0) & (largest > 0)
    return np.where(limited, LARGEST_LOADING * np.sqrt(largest), np.inf)


def _without_weightless(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Values with NaN where the weight is zero; not copied if there are none."""
    blocks = list(row_blocks(0, len(values)))
    if not any(np.any((weights[rows] == 0) & ~np.isnan(values[rows])) for rows in blocks):
        return values
    _require_copy(values.nbytes, len(values))
    kept = np.empty_like(values)
    for rows in blocks:
        kept[rows] = np.where(weights[rows] > 0, values[rows], np.nan)
    return kept


def _largest_weight(values: np.ndarray, weights: np.ndarray) -> tuple[float, bool]:
    """The largest weight of a known pair, and whether all pairs have it."""
    low, high = np.inf, 0.0
    for rows in row_blocks(0, len(values)):
        known = weights[rows][~np.isnan(values[rows])]
        low, high = min(low, float(known.min(initial=np.inf))), max(high, float(known.max(initial=0.0)))
    return high, low == high


def _scaled(weights: np.ndarray, scale: float, dtype: np.dtype) -> np.ndarray:
    if scale == 1.0 and weights.dtype == dtype:
        return weights
    _require_copy(weights.size * dtype.itemsize, len(weights))
    return np.divide(weights, scale, out=np.empty(weights.shape, dtype), casting="same_kind")


def _require_copy(n_bytes: int, n_items: int) -> None:
    _memory.require(
        n_bytes,
        f"A copy of the weighted similarities of {n_items} items",
        "pass float32 values and weights, or a sparse matrix with absent='missing' if few pairs are known",
    )


def in_reach(largest: float, dtype: np.dtype) -> bool:
    """Whether similarities up to `largest` can be squared and summed in this floating-point type."""
    reach = _REACH[dtype.itemsize]
    return largest == 0 or 1 / reach <= largest <= reach


def require_scale(largest: float, dtype: np.dtype, what: str = "values") -> None:
    """Refuse similarities whose squares or products overflow or underflow."""
    if not in_reach(largest, dtype):
        rule = "small" if largest > 1 else "large"
        other = " or pass them as float64" if dtype.itemsize < 8 else ""
        of = "similarity of" if what == "factors" else "of"
        by = "its root" if what == "factors" else "it"
        raise ValueError(
            f"{what} must be {rule} enough to be squared and summed, got a largest {of} {largest:g} in {dtype}: "
            f"divide them by {by}{other}."
        )


def _require_dense(n_items: int, n_bytes: int) -> None:
    _memory.require(
        n_bytes,
        f"A dense matrix of {n_items} x {n_items} similarities (solver='admm' and small fits use every entry)",
        "solver='bcd' fits large ones from the stored pairs or factors alone, and float32 halves it",
    )


def _plain(array: np.ndarray) -> np.ndarray:
    """A contiguous view without the read-only flag, which is part of the type for which kernels are compiled.

    No kernel writes to the similarities or their weights.
    """
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else np.asarray(_Unmarked(array))


class _Unmarked:
    """The memory of an array, without the read-only flag."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        described = array.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}


def _pair_problem(values: sparse.csr_array, weights: sparse.csr_array | None, background: float) -> PairProblem:
    n = values.shape[0]
    _memory.require(
        values.nnz * (12 + 4 * values.dtype.itemsize),
        f"Lists of the {values.nnz} entries that S stores",
        "pass float32 values, or leave items out",
    )
    # The kernels find partners by binary search.
    values, weights = (
        one if one is None or one.has_sorted_indices else one.sorted_indices() for one in (values, weights)
    )
    omega = np.ones_like(values.data) if weights is None else weights.data.copy()
    omega[np.isnan(values.data)] = 0
    stored = np.nan_to_num(values.data)
    largest = float(stored.max(initial=0.0))
    require_scale(largest, stored.dtype)
    # Unlisted zeros keep their weight relative to the listed pairs.
    scale = float(max(omega.max(initial=0.0), background)) or 1.0
    omega = (omega / scale).astype(values.dtype, copy=False)  # cast only now: the weights may exceed float32
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(values.indptr))
    own = rows == values.indices
    others = ~own
    diagonal, diagonal_weights = np.zeros(n), np.zeros(n)
    diagonal[rows[own]] = stored[own]
    diagonal_weights[rows[own]] = omega[own]
    diagonal[diagonal_weights == 0] = 0.0
    return PairProblem(
        starts=np.concatenate([[0], np.cumsum(np.bincount(rows[others], minlength=n))]),
        partners=values.indices[others].astype(np.int32, copy=False),
        values=stored[others],
        weights=omega[others],
        background=background / scale,
        diagonal=diagonal,
        diagonal_weights=diagonal_weights,
        limits=_limits(diagonal_weights, largest),
        scale=scale,
    )
