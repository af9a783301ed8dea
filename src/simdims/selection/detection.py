"""detectable_dimensions: how many dimensions can be distinguished from noise, using residuals with random signs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims import _parallel, _threads, solvers
from simdims._parameters import require_count
from simdims._progress import Callback, Reporter, reporting
from simdims.selection.calibration import check_items, require_share
from simdims.selection.residuals import compare_matrix, compare_with_noise, summed_residuals
from simdims.selection.splits import plain
from simdims.similarity import as_similarity
from simdims.similarity.arrays import Arrays, problem_of
from simdims.solvers.problem import mean_similarity

if TYPE_CHECKING:
    import pandas as pd

#: Precision of fits (tol, max_iter): by default, and if almost nothing is left to explain.
_FIT, _CLOSE_FIT = (1e-3, 300), (1e-5, 1000)

#: The level of tests of one dimension.
_LEVEL = 0.05

#: Residuals below the first share of the variance of the similarities are rounding errors; those below the second need
#: a more precise fit.
_ROUNDING, _NEARLY_EXACT = 1e-6, 1e-2

#: Draws of random signs per test, up to this many items and above: with more items draws differ less.
_FLIPS, _MANY_ITEMS, _FLIPS_OF_MANY = 99, 1000, 19

#: Default maximum number of dimensions tested.
_MOST_DIMENSIONS = 200

#: If a number is too few, the next one tested is this many times as large.
_STEP = 1.6


@dataclass(frozen=True, eq=False, repr=False)
class DetectableDimensions:
    """The result of `detectable_dimensions`.

    Attributes
    ----------
    rank : int
        The number of dimensions that can be distinguished from noise: with one less, the residuals still have structure
        that noise does not have. It is a lower bound, because weak dimensions may not be detectable. The first
        dimension always counts, because non-negative similarities have a positive mean: 1 means that nothing beyond it
        is detectable.
    at_edge : bool
        Whether the largest number that was tested, ``rank - 1``, is still too few.
    table : DataFrame
        One row per number tested: rank, unexplained (the unexplained share of the variation of the similarities),
        eigenvalue (the largest of the residuals), null_mean, null_standard_deviation and null_quantile (of residuals
        with random signs; the 1 - level quantile), pvalue, and too_few (whether structure is left). If almost nothing
        is left to explain, residuals are rounding errors and the null columns are NaN.
    null_distribution : ndarray of shape (n_tested, n_flips)
        The largest eigenvalues of residuals with random signs, one row per row of `table`.
    level : float
        The level of each test.
    n_items, n_flips : int
    seed : int
        The `random_state` that reproduces this result from the same data and settings.
    """

    rank: int
    at_edge: bool
    table: pd.DataFrame
    null_distribution: NDArray[np.float64]
    level: float
    n_items: int
    seed: int

    @property
    def n_flips(self) -> int:
        """Random draws of signs per test."""
        return self.null_distribution.shape[1]

    def words(self) -> str:
        """The number as the end of a sentence: "at least 14 can be told from noise"."""
        return f"{'no more than one' if self.rank == 1 else f'at least {self.rank}'} can be told from noise"

    def summary(self) -> str:
        """Return the result in words."""
        found, row = self.rank, {int(row["rank"]): row for row in self.table.to_dict("records")}

        def compared(rank: int, verb: str) -> str:
            return (
                f"With {rank}, the largest eigenvalue of the residuals ({row[rank]['eigenvalue']:.3g}) {verb} "
                f"{1 - self.level:.0%} of those with random signs ({row[rank]['null_quantile']:.3g}"
            )

        number = "No more than one dimension" if found == 1 else f"At least {found} dimensions"
        lines = [f"{number} can be told from noise."]
        if found > 1:
            lines.append(f"{compared(found - 1, 'exceeds')}).")
        if self.at_edge:
            lines.append(f"{found - 1} was the largest number tested.")
        elif np.isnan(row[found]["pvalue"]):
            lines.append(f"With {found}, the residuals are rounding errors.")
        else:
            lines.append(f"{compared(found, 'does not exceed')}; p = {row[found]['pvalue']:.2g}).")
        lines.append(f"Numbers tested: {', '.join(map(str, sorted(row)))}, with {self.n_flips} draws of signs each.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers and lists, for JSON; missing numbers are null."""
        plain_values = {name: getattr(self, name) for name in ("rank", "at_edge", "level", "n_items", "seed")}
        records = [
            {name: None if value != value else value for name, value in record.items()}
            for record in self.table.to_dict("records")
        ]
        null = [[None if value != value else value for value in draws] for draws in self.null_distribution.tolist()]
        return {**plain_values, "table": records, "null_distribution": null}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DetectableDimensions:
        """Restore a result from `to_dict`."""
        import pandas as pd

        table = pd.DataFrame(values["table"])
        numbers = [name for name in table if name not in ("rank", "too_few")]
        return cls(
            **{name: values[name] for name in ("rank", "at_edge", "level", "n_items", "seed")},
            table=table.astype(dict.fromkeys(numbers, np.float64)),
            null_distribution=np.array(values["null_distribution"], dtype=np.float64),
        )

    def __repr__(self) -> str:
        more = ", at_edge" if self.at_edge else ""
        return (
            f"DetectableDimensions(rank={self.rank}{more}, {len(self.table)} numbers x {self.n_flips} draws of signs)"
        )

    def __str__(self) -> str:
        return self.summary()


def detectable_dimensions(
    S: Any,
    *,
    start: int = 1,
    max_rank: int | None = None,
    level: float = 0.05,
    n_flips: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    progress: bool | Callback | None = False,
) -> DetectableDimensions:
    """Count the dimensions that can be distinguished from noise, whether or not they help to predict held-out pairs.

    With too few dimensions, the residuals of a fit still contain a dimension, and with it an eigenvalue that noise does
    not have. Giving every residual a random sign keeps its size and removes all structure. A number of dimensions is
    too few if the largest eigenvalue of the residuals S - W W^T exceeds the `1 - level` quantile of those with random
    signs. The result is the smallest number that is not too few, found by bisection: larger numbers are tested until
    one is not too few, then those between it and the largest that is.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes
        The similarities. Missing pairs have no residual, and residuals are weighted as in the fit. Sparse similarities
        stay sparse; with more than 2,000 items, absent pairs that are zeros are represented by a random sample.
    start : int, default=1
        The first number to test. A good guess saves time.
    max_rank : int, optional
        The largest number to test. By default 200, or less with few items or pairs.
    level : float, default=0.05
        The probability per test of detecting a dimension in noise alone.
    n_flips : int, optional
        Random draws of signs per number tested; 99 up to 1,000 items, 19 beyond.
    random_state : int, RandomState or None, default=None
        Seed of signs and starts; None uses fresh entropy.
    progress : bool or callable, optional
        Whether to show a progress bar; None shows one in terminals and notebooks. A function is called with a
        `Progress` after every number tested.

    Returns
    -------
    DetectableDimensions

    Notes
    -----
    A fit absorbs a part of the noise, and its residuals lie in fewer directions than there are items. Random signs
    spread them over all directions, which lowers their largest eigenvalue. The eigenvalues with random signs are
    therefore divided by (1 - L / n_pairs)^(1/4), with L the number of positive loadings and n_pairs = n (n - 1) / 2.
    Without this correction about a third of all tests with the true number of dimensions find one more.

    The noise must be independent between pairs, as in ratings. Noise in features is not: it is shared by all pairs of
    an item, and counts as dimensions. So does any structure that a product of loadings cannot express.

    Examples
    --------
    >>> from simdims import detectable_dimensions, simulate
    >>> W = simulate.dirichlet(80, 5, alpha=0.3, random_state=0)
    >>> S = simulate.add_noise(W @ W.T, 0.6, random_state=0)
    >>> detectable_dimensions(S, random_state=0).rank
    5
    """
    similarity = as_similarity(S, copy=False)
    n = similarity.n_items
    check_items(n)
    require_share("level", level)
    flips = default_flips(n) if n_flips is None else n_flips
    require_count("n_flips", flips, at_least=int(np.ceil(round(1 / level - 1, 9))))
    problem = problem_of(plain(similarity))
    largest = largest_testable(problem)
    if max_rank is not None:
        require_count("max_rank", max_rank)
        largest = min(largest, int(max_rank))
    else:
        largest = min(largest, _MOST_DIMENSIONS)
    require_count("start", start)
    seed = _parallel.settle_seed(random_state)
    with _threads.one_blas_thread(), reporting(progress) as reporter:
        reporter.begin("tell from noise", 0)
        test = _Test(problem, level, int(flips), _parallel.root_seed(seed), reporter)
        rank = smallest_sufficient(test.is_too_few, min(int(start), largest), largest)
    return test.conclude(rank, rank > largest, seed)


def structure_beyond_one(matrix: Arrays, seed: int) -> bool:
    """Whether the residuals of one dimension have structure that noise does not have, at the 5% level."""
    problem = problem_of(matrix)
    with _threads.one_blas_thread(), reporting(False) as reporter:
        return _Test(problem, _LEVEL, default_flips(matrix.n_items), seed, reporter).is_too_few(1)


def joint_structure_beyond_one(problem: solvers.JointProblem, shrinkage: float, seed: int) -> bool:
    """`structure_beyond_one` for the summed residuals of several systems, whose differences weights absorb."""
    problem = solvers.penalised_jointly(problem, 1, 0.0, 0.0, shrinkage)
    rng = np.random.default_rng(seed)
    with _threads.one_blas_thread():
        start = solvers.joint_start(problem, 1, np.random.RandomState(seed))
        found = solvers.solve_jointly(problem, start, tol=_CLOSE_FIT[0], max_iter=_CLOSE_FIT[1])
        E = summed_residuals(problem, found.W, found.weights)
        scale = problem.noise[0] / 2.0 * problem.n_items**0.5
        negligible = max(_ROUNDING**0.5 * scale, _ROUNDING * problem.squares**0.5)
        compared = compare_matrix(E, default_flips(problem.n_items), rng, negligible)
    null = compared.flipped / spread_by_signs(found.W)
    return bool(len(null)) and float(np.mean(np.append(null, np.inf) >= compared.eigenvalue)) <= _LEVEL


def default_flips(n_items: int) -> int:
    """Random draws of signs per number of dimensions."""
    return _FLIPS if n_items <= _MANY_ITEMS else _FLIPS_OF_MANY


def largest_testable(problem: solvers.Problem) -> int:
    """The largest number of dimensions whose fits leave enough noise for the comparison.

    A third of the items, and no more loadings than three quarters of the observed pairs.
    """
    n = problem.n_items
    return int(max(1, min((n - 1) // 3, 3 * problem.n_known // 8 // n)))


def smallest_sufficient(is_too_few: Callable[[int], bool], start: int, largest: int) -> int:
    """The smallest number that is not too few, by bisection, or `largest` + 1; each number is tested once."""
    low, high, rank, down = 0, largest + 1, start, 1
    while high - low > 1:
        if is_too_few(rank):
            low = rank
        else:
            high = rank
        if high > largest:  # all tested numbers are too few
            rank = min(max(low + 1, round(_STEP * low)), largest)
        elif low == 0:  # no tested number is too few
            rank, down = max(1, high - down), 2 * down
        else:
            rank = (low + high) // 2
    return high


class _Test:
    """Fits numbers of dimensions, compares their residuals with noise, and stores the results."""

    def __init__(self, problem: solvers.Problem, level: float, n_flips: int, root: int, reporter: Reporter) -> None:
        self.problem, self.level, self.n_flips, self.root = problem, float(level), n_flips, root
        self.reporter = reporter
        # The scale of the residuals: the norm of S - mean with the same weights.
        self.scale = solvers.noise_scale(problem)[0] / 2.0 * problem.n_items**0.5
        size = mean_similarity(problem) * problem.n_known**0.5
        self.negligible = max(_ROUNDING**0.5 * self.scale, _ROUNDING * size)
        self.found: dict[int, tuple[dict[str, Any], np.ndarray]] = {}

    def is_too_few(self, rank: int) -> bool:
        """Whether the residuals of a fit have structure that noise does not have."""
        self.reporter.extend(1)
        row, null = self._compare(rank, *_FIT)
        if row["too_few"] and row["unexplained"] < _NEARLY_EXACT:
            row, null = self._compare(rank, *_CLOSE_FIT)
        self.found[rank] = row, null
        self.reporter.step(f"rank {rank}")
        return bool(row["too_few"])

    def _compare(self, rank: int, tol: float, max_iter: int) -> tuple[dict[str, Any], np.ndarray]:
        seed = _parallel.seed_of(self.root, rank)
        start = solvers.spectral_start(self.problem, rank, np.random.RandomState(seed))
        W = solvers.solve(self.problem, start, tol=tol, max_iter=max_iter).W
        rng = np.random.default_rng(seed)
        found = compare_with_noise(self.problem, W, self.n_flips, rng, negligible=self.negligible)
        null = found.flipped / spread_by_signs(W) if len(found.flipped) else np.full(self.n_flips, np.nan)
        pvalue = (1 + np.count_nonzero(null >= found.eigenvalue)) / (1 + len(null)) if len(found.flipped) else np.nan
        return {
            "rank": rank,
            "unexplained": (found.norm / self.scale) ** 2 if self.scale > 0 else 0.0,
            "eigenvalue": found.eigenvalue,
            "null_mean": null.mean(),
            "null_standard_deviation": null.std(ddof=1) if len(null) > 1 else 0.0,
            "null_quantile": np.quantile(null, 1 - self.level),
            "pvalue": pvalue,
            "too_few": bool(pvalue <= self.level),
        }, null

    def conclude(self, rank: int, at_edge: bool, seed: int) -> DetectableDimensions:
        """The result, in the order of the numbers tested."""
        import pandas as pd

        rows, null = zip(*(self.found[tested] for tested in sorted(self.found)), strict=True)
        return DetectableDimensions(
            rank=rank,
            at_edge=at_edge,
            table=pd.DataFrame(rows),
            null_distribution=np.array(null),
            level=self.level,
            n_items=self.problem.n_items,
            seed=seed,
        )


def spread_by_signs(W: np.ndarray) -> float:
    """The factor by which random signs lower the largest eigenvalue of the residuals when fitting noise.

    A fit with r dimensions of n items leaves noise in n - r directions, with a largest eigenvalue proportional to
    sqrt(n - r). Random signs spread its sum of squares, which is lowered by ((n - r) / n)^2, over n directions: that
    eigenvalue is sqrt(1 - r / n) times as large. Zero loadings absorb nothing, so r is the mean number of positive
    loadings per item, and sqrt(1 - r / n) is about (1 - L / n_pairs)^(1/4).
    """
    n, n_loadings = len(W), np.count_nonzero(W)
    return float((1.0 - min(n_loadings / (n * (n - 1) / 2), 1.0)) ** 0.25)
