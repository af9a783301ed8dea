"""Estimate the run time: time a short trial of each kind of fit, and multiply by the number of fits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from simdims import _threads, solvers
from simdims.joint import JointSRF, problem_of_set
from simdims.selection.calibration import default_eigenpairs, n_spectra
from simdims.selection.fits import Design
from simdims.selection.joint_fits import fit_alone
from simdims.selection.rank_search import coarse_grid
from simdims.selection.splits import (
    DEFAULT_FOLDS,
    draw_pairs,
    most_training,
    plain,
    require_memory,
    training_problem,
    zero_filled,
)
from simdims.similarity import Similarity
from simdims.similarity.arrays import Arrays, arrays_of, problem_of
from simdims.srf import SRF, solve_many
from simdims.systems import SimilaritySet

#: Typical sweeps of cross-validation fits and of final fits (which differ in tolerance), without and with a penalty.
_SWEEPS_OF_FOLD, _SWEEPS_OF_RUN = {False: 40, True: 60}, {False: 250, True: 100}

#: Typical sweeps of joint fits: in cross-validation, of a final fit, and of all fits along penalties and shrinkages.
_SWEEPS_OF_JOINT_FOLD, _SWEEPS_OF_JOINT_RUN, _SWEEPS_OF_CHOICE = 40, 80, 250

_SWEEPS_OF_TRIAL = 3

#: Seconds for which trials are repeated.
_TRIALS = 0.1

#: Seconds to draw and score a fit, and for all that follows the fits.
_AROUND_FIT, _AFTERWARDS = 0.004, 0.5

#: "auto" refines its grid by about this many ranks.
_REFINED = 5

#: Typical share of the pairs in a training set, without and with a penalty.
_TRAINED = {False: 0.5, True: 0.85}


def estimate_seconds(
    similarity: Similarity,
    validated: Similarity,
    candidates: list[int] | None,
    n_fits: int,
    n_runs: int,
    n_jobs: int | None,
    device: str,
    *,
    penalised: bool,
    calibrates: bool,
    selects: bool,
) -> float:
    """Estimate the seconds that discover will take on this machine, usually to within a factor of two.

    `validated` are the similarities that are cross-validated, with `n_fits` of each number of dimensions.
    """
    n = similarity.n_items
    grid = candidates or coarse_grid(first_reach(n))
    tried = grid if candidates else grid + [round(float(np.mean(grid)))] * _REFINED
    typical = int(np.median(tried))
    total = _AFTERWARDS + seconds_of_runs(similarity, typical, n_runs, None, device, penalised) if n_runs else 0.0
    rng = np.random.default_rng(0)
    try:
        matrix = plain(validated)
        require_memory(matrix, validated.density, SRF(), 1)
        pairs = draw_pairs(matrix, rng)
        fold = training_problem(matrix, pairs, rng.random(len(pairs.values)) < _TRAINED[penalised])
    except MemoryError:
        if selects:
            raise
        return total / _processes(n_jobs)  # with a given number of dimensions, nothing is cross-validated
    sweep = _seconds_of_sweep(fold, typical, device)
    # The time of a sweep grows about linearly with the rank.
    total += n_fits * (_SWEEPS_OF_FOLD[penalised] * sweep * sum(tried) / typical + _AROUND_FIT * len(tried))
    if selects and calibrates:
        total += n_spectra(n, whole=not penalised) * _seconds_of_spectrum(matrix)
    return total / _processes(n_jobs)


def seconds_of_runs(
    similarity: Similarity, rank: int, n_runs: int, n_jobs: int | None, device: str, penalised: bool
) -> float:
    """Estimate the seconds that the fits of a consensus will take, including for implicit similarities."""
    sweep = _seconds_of_sweep(problem_of(arrays_of(similarity)), rank, device)
    return n_runs * _SWEEPS_OF_RUN[penalised] * sweep / _processes(n_jobs)


def estimate_set_seconds(
    systems: SimilaritySet, candidates: list[int] | None, n_repeats: int, n_runs: int, n_jobs: int | None, device: str
) -> float:
    """The same for several systems: penalties, folds with weights and of the average, single systems, and runs."""
    n = systems.n_items
    grid = candidates or coarse_grid(first_reach(n, is_set=True))
    tried = grid if candidates else grid + [round(float(np.mean(grid)))] * _REFINED
    typical = int(np.median(tried))
    problem = problem_of_set(systems)
    model = JointSRF(alpha=0.05, shrinkage=0.1, tol=1e-2, max_iter=300, device=device)
    sweep = _seconds_of_joint_sweep(problem, typical, device)
    fits = (
        DEFAULT_FOLDS * n_repeats * _SWEEPS_OF_JOINT_FOLD * (sum(tried) / typical + 1) + n_runs * _SWEEPS_OF_JOINT_RUN
    )
    design = Design(most_training(DEFAULT_FOLDS), DEFAULT_FOLDS, 1, 0)
    chosen_alone = clone(model).set_params(alpha="auto")
    alone = _seconds_of(lambda: fit_alone(problem, design, chosen_alone, typical, 0))
    total = sweep * fits + alone * systems.n_systems * (1 + n_repeats) / 2
    return _SWEEPS_OF_CHOICE * sweep * (1 + min(n - 1, 20) / typical) + total / _processes(n_jobs)


def first_reach(n_items: int, *, is_set: bool = False) -> int:
    """Approximate largest number of dimensions with which "auto" begins; the calibration is more accurate."""
    return min(n_items - 1, 12 if is_set else max(12, n_items // 10))


def in_words(seconds: float) -> str:
    """The time in words."""
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = round(seconds / size)
            return f"{number} {name}{'' if number == 1 else 's'}"
    return f"{max(1, round(seconds))} seconds" if seconds >= 1.5 else "a second"


def _seconds_of_sweep(problem: solvers.Problem, rank: int, device: str) -> float:
    trial = SRF(max_iter=_SWEEPS_OF_TRIAL, tol=0, device=device)
    return _seconds_of_trial(lambda: solve_many(trial, [problem], rank, [0]))


def _seconds_of_joint_sweep(problem: solvers.JointProblem, rank: int, device: str) -> float:
    penalised = solvers.penalised_jointly(problem, rank, 0.05, 0.0, 0.1)
    start = solvers.joint_start(problem, rank, np.random.RandomState(0))
    options: dict[str, Any] = {"max_iter": _SWEEPS_OF_TRIAL, "tol": 0.0, "device": device}
    return _seconds_of_trial(lambda: solvers.solve_jointly(penalised, start, **options))


def _seconds_of_trial(sweeps: Callable[[], Any]) -> float:
    """The seconds per sweep of a trial."""
    with _threads.one_blas_thread():
        sweeps()  # compile, or load from the cache
        return _seconds_of(sweeps) / _SWEEPS_OF_TRIAL


def _seconds_of_spectrum(matrix: Arrays) -> float:
    S = zero_filled(matrix)
    k = default_eigenpairs(matrix.n_items)
    with _threads.one_blas_thread():
        return _seconds_of(lambda: solvers.leading_eigenpairs(S, k, np.random.RandomState(0)))


def _seconds_of(work: Callable[[], Any]) -> float:
    """The shortest of several times if they are short, because other programs may interrupt one."""
    seconds: list[float] = []
    while sum(seconds) < _TRIALS:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _processes(n_jobs: int | None) -> int:
    n_cores = os.cpu_count() or 1
    if n_jobs is None:
        return 1
    return min(n_cores, n_jobs) if n_jobs > 0 else max(1, n_cores + 1 + n_jobs)
