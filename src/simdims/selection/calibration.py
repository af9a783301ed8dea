"""calibrate: how many pairs a fit needs to predict the others (SRF, Supplement, "Calibration").

Leaving single entries out of a low-rank matrix tests little if the remaining ones imply them. The calibration finds the
smallest share p* of the pairs that still preserves the leading structure of S, from S alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import isotonic_regression

from simdims import _parallel, _threads, solvers
from simdims._journal import Journal, Work
from simdims._parameters import ParameterError, ParameterTypeError, require_count, require_real, shown, warn
from simdims.selection.splits import plain, zero_filled
from simdims.similarity import as_similarity
from simdims.similarity.arrays import Arrays

_MANY_ITEMS = 1000

#: Leakage is measured at the dense end of the grid: shares at or above this quantile.
_DENSE_QUANTILE = 0.85

#: Eigenvalues below this, relative to the largest, are rounding errors.
_ROUNDING = 1e-12

_SMALLEST_CUTOFF = 2
_SHORTEST_SEGMENT = 2

#: First word of the name of a task, which determines its seed.
_REFERENCE, _BOOTSTRAP = 0, 1


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """The result of `calibrate`.

    Attributes
    ----------
    sampling : float
        p*: the smallest share of the pairs that keeps 1 - `tolerance` of the leading structure.
    cutoff : int
        k_cut: the number of leading eigenvectors of S that are stable when pairs are left out.
    floor : float
        g^2 / (1 + g^2) with g = lambda_{k+1} / lambda_k, the lower limit of `sampling`.
    grid : ndarray of shape (n_grid,)
        The shares that were tried.
    signal_loss : ndarray of shape (n_grid,)
        Share of the mass of the leading `cutoff` directions lost at each share; decreases along the grid.
    leakage : ndarray of shape (n_eigenpairs,)
        For each eigenvector, the odds-scaled loss of its coherence at the dense end of the grid.
    eigenvalues : ndarray of shape (n_eigenpairs,)
        The leading eigenvalues of S.
    tolerance : float
        The share of the mass that may be lost.
    n_bootstraps : int
        Random subsamples per share.
    """

    sampling: float
    cutoff: int
    floor: float
    grid: NDArray[np.float64]
    signal_loss: NDArray[np.float64]
    leakage: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    tolerance: float
    n_bootstraps: int

    def summary(self) -> str:
        """Return the result in words."""
        return (
            f"Training on {self.sampling:.1%} of the observed pairs preserves {1 - self.tolerance:.0%} of the spectral "
            f"mass of the {self.cutoff} stable {'eigenvector' if self.cutoff == 1 else 'eigenvectors'} "
            f"({self.n_bootstraps} random subsamples at each of {len(self.grid)} shares)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers and lists, for JSON."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    def __repr__(self) -> str:
        return f"Calibration(sampling={self.sampling:.3f}, cutoff={self.cutoff}, floor={self.floor:.3f})"

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_calibration

        return of_calibration(self)


def calibrate(
    S: Any,
    *,
    n_eigenpairs: int | None = None,
    grid: ArrayLike | None = None,
    tolerance: float = 0.10,
    n_bootstraps: int = 50,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Calibration:
    """Find the share of the pairs that cross-validation should train on, from the similarities alone.

    At each share p of a grid, random subsamples of the observed pairs (divided by p, the diagonal unchanged) are
    compared with S: the coherence of eigenvector k is sum_{j <= k} (u^_j . u_k)^2. Leaking eigenvectors are separated
    from stable ones at the split of the leakage profile with the largest F statistic; p* is the smallest share at which
    the leading eigenvectors of the subsample keep 1 - `tolerance` of the mass of the stable ones.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes
        Missing pairs count as zeros. A sparse matrix stays sparse.
    n_eigenpairs : int, optional
        Number of leading eigenpairs; by default a quarter of the items, at least 2 and at most 100.
    grid : array-like, optional
        Increasing shares, strictly between 0 and 1; by default 20 from 0.05 to 0.95.
    tolerance : float, default=0.10
        Share of the leading structure that may be lost.
    n_bootstraps : int, default=50
        Random subsamples per share.
    random_state : int, RandomState or None, default=None
        Seed of the subsamples; None uses fresh entropy.
    n_jobs : int, optional
        Number of processes, as in joblib; results do not depend on it.

    Returns
    -------
    Calibration

    Warns
    -----
    UserWarning
        If no share of the grid keeps enough; `sampling` is then the largest one.

    References
    ----------
    SRF, Supplement "Cross-validation protocol".

    Examples
    --------
    >>> from simdims import calibrate, simulate
    >>> W = simulate.dirichlet(60, 3, random_state=0)
    >>> calibrate(W @ W.T, n_bootstraps=5, random_state=0).cutoff
    3
    """
    similarity = as_similarity(S, copy=False)
    n = similarity.n_items
    check_items(n)
    k = default_eigenpairs(n) if n_eigenpairs is None else n_eigenpairs
    require_count("n_eigenpairs", k, at_least=2)
    if k > n:
        raise ParameterError("n_eigenpairs", f"must be at most {n}, the number of items", f"{k}")
    require_count("n_bootstraps", n_bootstraps)
    require_share("tolerance", tolerance)
    shares = check_grid(grid)
    _parallel.check_n_jobs(n_jobs)
    work = Work.unsaved(_parallel.root_seed(random_state), n_jobs)
    return run(plain(similarity), work, n_bootstraps, k, shares, tolerance)


def run(
    matrix: Arrays, work: Work, n_bootstraps: int, k: int, grid: np.ndarray, tolerance: float = 0.10
) -> Calibration:
    """`calibrate` for checked arguments, saving each bootstrap in the checkpoint."""
    eigenvalues, bootstraps = _bootstraps(matrix, work, n_bootstraps, k, grid, np.arange(len(grid)))
    return conclude(bootstraps, eigenvalues, grid, tolerance)


def count_stable(matrix: Arrays, work: Work, device: str = "cpu") -> int:
    """The `cutoff` of `run` with the default grid, from the shares on which it depends and fewer bootstraps.

    If there are many items, one of these shares is enough.
    """
    n_items, grid = matrix.n_items, check_grid(None)
    dense = _dense_of(n_items, grid)
    n_bootstraps, k = few_bootstraps(n_items), default_eigenpairs(n_items)
    _, bootstraps = _bootstraps(matrix, work, n_bootstraps, k, grid, dense, device)
    return best_split(_leakage(np.median([one for one, _ in bootstraps], axis=0), grid[dense]))


def _bootstraps(
    matrix: Arrays, work: Work, n_bootstraps: int, k: int, grid: np.ndarray, places: np.ndarray, device: str = "cpu"
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """The eigenvalues of S, and the curves of all bootstraps at some places of the grid.

    Fits on a device leave the cores to the eigenvalues.
    """
    kind = "bootstrap" if len(places) == len(grid) else "dense"
    with _threads.one_blas_thread():
        eigenvalues, eigenvectors = reference(matrix, k, work.root)
    found = {
        record["number"]: (record["number"], (np.array(record["coherence"]), np.array(record["mass"])))
        for record in work.records(kind)
    }
    shared = (*matrix, eigenvectors, grid, places, work.root)
    run_all = work.runner(bootstrap, shared)
    if device != "cpu":
        run_all = partial(_threads.mapped, partial(_bootstrap, *shared), n_threads=1)
    results = work.collect("calibrate", n_bootstraps, run_all, found, partial(_save, kind))
    return eigenvalues, [curves for _, curves in results]


def _save(kind: str, journal: Journal, result: tuple[int, tuple[np.ndarray, np.ndarray]]) -> None:
    number, (coherence, mass) = result
    journal.append({"kind": kind, "number": number, "coherence": coherence.tolist(), "mass": mass.tolist()})


def default_bootstraps(n_items: int) -> int:
    """Bootstraps of the calibration; fewer for many items, where they differ less and take longer."""
    return 50 if n_items <= _MANY_ITEMS else 20 if n_items <= 4000 else 5


def few_bootstraps(n_items: int) -> int:
    """Bootstraps to count the stable directions, which only determines where a search begins."""
    return 50 if n_items <= 200 else 10 if n_items <= _MANY_ITEMS else 5


def n_spectra(n_items: int, *, whole: bool) -> int:
    """The number of spectra of the calibration or, if not the `whole` of it, of counting the stable directions."""
    grid = check_grid(None)
    if whole:
        return default_bootstraps(n_items) * len(grid)
    return few_bootstraps(n_items) * len(_dense_of(n_items, grid))


def default_eigenpairs(n_items: int) -> int:
    """A quarter of the items, at least 2 and at most 100."""
    return max(2, min(n_items // 4, 100))


def reference(matrix: Arrays, k: int, root: int) -> tuple[np.ndarray, np.ndarray]:
    """The k leading eigenpairs of S, with zeros for missing pairs."""
    rng = np.random.RandomState(_parallel.seed_of(root, _REFERENCE))
    eigenvalues, eigenvectors = solvers.leading_eigenpairs(zero_filled(matrix), k, rng)
    # Rounding in products depends on the memory layout; workers receive this one.
    return eigenvalues, np.ascontiguousarray(eigenvectors)


def bootstrap(*arguments: Any) -> tuple[int, tuple[np.ndarray, np.ndarray]]:
    """`_bootstrap` with one BLAS thread, so that results do not depend on the number of processes."""
    with _threads.one_blas_thread():
        return _bootstrap(*arguments)


def _bootstrap(*arguments: Any) -> tuple[int, tuple[np.ndarray, np.ndarray]]:
    """Leave pairs out in one random order; return coherence and recovered mass, each n_places x k.

    A pair is kept at share p if its own uniform number is below p, so the subsamples of one bootstrap are nested: each
    is a random sample at its share, and the curves are smooth.
    """
    *parts, eigenvectors, grid, places, root, number = arguments
    matrix = Arrays(*parts)
    rng = np.random.default_rng(_parallel.seed_of(root, _BOOTSTRAP, number))
    S = zero_filled(matrix)
    chances = rng.random(n_draws(S))
    coherence, mass = np.empty((2, len(places), eigenvectors.shape[1]))
    for row, at in enumerate(places):
        start = np.random.RandomState(_parallel.seed_of(root, _BOOTSTRAP, number, at))
        _, found = solvers.leading_eigenpairs(subsample(S, chances, grid[at]), eigenvectors.shape[1], start)
        coherence[row] = np.diagonal(np.cumsum((found.T @ eigenvectors) ** 2, axis=0))
        mass[row] = np.einsum("ij,ij->j", found, S @ found)
    return number, (coherence, mass)


def n_draws(S: np.ndarray | sparse.csr_array) -> int:
    """Number of uniform draws per subsample: one per position above the diagonal, or per stored one."""
    if isinstance(S, np.ndarray):
        return len(S) * (len(S) - 1) // 2
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    return int(np.count_nonzero(rows < S.indices))


def subsample(S: np.ndarray | sparse.csr_array, chances: np.ndarray, share: float) -> np.ndarray | sparse.csr_array:
    """S with the pairs whose draw is below `share`, divided by it, and the diagonal unchanged."""
    if isinstance(S, np.ndarray):
        kept = np.zeros_like(S)
        above = np.tri(len(S), k=-1, dtype=bool).T
        kept[above] = S[above] / share * (chances < share)
        kept += kept.T
        np.fill_diagonal(kept, np.diagonal(S))
        return kept
    upper = sparse.csr_array(sparse.triu(S, 1))
    upper.data = np.where(chances < share, upper.data / share, 0.0)
    return sparse.csr_array(upper + upper.T + sparse.diags_array(S.diagonal()))


def conclude(
    bootstraps: Sequence[tuple[np.ndarray, np.ndarray]], eigenvalues: np.ndarray, grid: np.ndarray, tolerance: float
) -> Calibration:
    """k_cut and p* from the curves of all bootstraps."""
    coherence = np.median([one for one, _ in bootstraps], axis=0)
    dense = _dense(grid)
    leakage = _leakage(coherence[dense], grid[dense])
    cutoff = best_split(leakage)
    all_mass = eigenvalues[:cutoff].sum()
    recovered = np.median([mass[:, :cutoff].sum(axis=1) for _, mass in bootstraps], axis=0) / (all_mass or 1.0)
    recovered = np.asarray(isotonic_regression(recovered).x)
    gap = _gap(eigenvalues, cutoff)
    floor = gap**2 / (1 + gap**2)
    return Calibration(
        sampling=max(_first_share(grid, recovered, 1 - tolerance), floor),
        cutoff=cutoff,
        floor=floor,
        grid=grid,
        signal_loss=1 - recovered,
        leakage=leakage,
        eigenvalues=eigenvalues,
        tolerance=float(tolerance),
        n_bootstraps=len(bootstraps),
    )


def _dense(grid: np.ndarray) -> np.ndarray:
    """The places of the grid at which leakage is measured."""
    return np.flatnonzero(grid >= np.quantile(grid, _DENSE_QUANTILE))


def _dense_of(n_items: int, grid: np.ndarray) -> np.ndarray:
    """These places, or only the middle one if there are many items."""
    dense = _dense(grid)
    return dense if n_items <= _MANY_ITEMS else dense[[len(dense) // 2]]


def _leakage(coherence: np.ndarray, shares: np.ndarray) -> np.ndarray:
    odds = shares / (1 - shares)
    return np.median((1 - coherence) * odds[:, None], axis=0)


def _gap(eigenvalues: np.ndarray, cutoff: int) -> float:
    """Ratio g = lambda_{k+1} / lambda_k; 0 if there is no further eigenvalue, or both are rounding errors."""
    if cutoff >= len(eigenvalues) or eigenvalues[cutoff - 1] <= _ROUNDING * abs(eigenvalues[0]):
        return 0.0
    return float(max(eigenvalues[cutoff], 0.0) / eigenvalues[cutoff - 1])


def best_split(profile: np.ndarray) -> int:
    """Length of the first of two segments with the largest F statistic of the difference of their means."""
    k = len(profile)
    candidates = range(max(_SHORTEST_SEGMENT, _SMALLEST_CUTOFF), k - _SHORTEST_SEGMENT + 1)
    if not candidates:
        return min(_SMALLEST_CUTOFF, k)
    return max(candidates, key=lambda first: (_f_statistic(profile[:first], profile[first:]), -first))


def _f_statistic(one: np.ndarray, other: np.ndarray) -> float:
    mean = (one.sum() + other.sum()) / (len(one) + len(other))
    between = len(one) * (one.mean() - mean) ** 2 + len(other) * (other.mean() - mean) ** 2
    within = np.sum((one - one.mean()) ** 2) + np.sum((other - other.mean()) ** 2)
    if within == 0:
        return np.inf if between > 0 else 0.0
    return float(between / (within / (len(one) + len(other) - 2)))


def _first_share(grid: np.ndarray, recovered: np.ndarray, wanted: float) -> float:
    """The smallest share at which an increasing curve reaches `wanted`, by linear interpolation on the grid."""
    reached = np.flatnonzero(recovered >= wanted)
    if not reached.size:
        warn(
            f"No share of the pairs in the grid keeps {wanted:.0%} of the leading structure: the largest, "
            f"{grid[-1]:.2f}, keeps {recovered[-1]:.1%} and is taken. The similarities may be mostly noise, or too few "
            "pairs may be observed."
        )
        return float(grid[-1])
    at = int(reached[0])
    if at == 0:
        return float(grid[0])
    rise = recovered[at] - recovered[at - 1]
    return float(grid[at - 1] + (grid[at] - grid[at - 1]) * (wanted - recovered[at - 1]) / rise)


def check_items(n_items: int) -> None:
    """Refuse too few items for leaving pairs out."""
    if n_items < 3:
        raise ParameterError("S", "must have at least 3 items, so that pairs can be held out", f"{n_items}")


def check_grid(grid: ArrayLike | None) -> np.ndarray:
    """The checked shares of a grid, or the default ones."""
    if grid is None:
        return np.linspace(0.05, 0.95, 20)
    try:
        shares = np.array(grid if not isinstance(grid, Iterable) else list(grid), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterTypeError("grid", "must be a sequence of numbers", shown(grid)) from None
    if shares.ndim != 1 or shares.size < 2:
        raise ParameterError("grid", "must be a list of at least 2 numbers", f"an array of shape {shares.shape}")
    if not (np.all(np.isfinite(shares)) and shares[0] > 0 and shares[-1] < 1 and np.all(np.diff(shares) > 0)):
        raise ParameterError("grid", "must increase strictly and lie between 0 and 1", f"{shares.tolist()}")
    return shares


def require_share(name: str, value: Any) -> None:
    """Refuse a value outside of (0, 1)."""
    require_real(name, value)
    if not 0 < value < 1:
        raise ParameterError(name, "must lie strictly between 0 and 1", f"{value}")
