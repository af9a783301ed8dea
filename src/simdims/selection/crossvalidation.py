"""select_rank: the number of dimensions that best predicts held-out similarities."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from simdims import _parallel, _threads
from simdims._journal import Work, fingerprint, working
from simdims._parameters import ParameterError, ParameterTypeError, require_choice, shown
from simdims._progress import Callback
from simdims.joint import JointSRF
from simdims.selection import calibration
from simdims.selection.calibration import require_share
from simdims.selection.checks import check_design, check_ranks, generous_rank, make_rule, settle_folds, warn_of_edges
from simdims.selection.detection import structure_beyond_one
from simdims.selection.fits import (
    ALPHA,
    BEYOND_ONE,
    Design,
    Fit,
    Splits,
    Task,
    fit_batch,
    fit_fold,
    fit_folds,
    most_dimensions,
    score_fits,
    score_mean,
    variance_of,
)
from simdims.selection.result import RankSelection, choose
from simdims.selection.splits import DEFAULT_FOLDS, FOLDS, most_training, plain, require_memory
from simdims.selection.systems import select_set
from simdims.selection.trials import Trials
from simdims.similarity import Similarity, as_similarity
from simdims.similarity.arrays import Arrays
from simdims.srf import SRF, on_devices, settings_of, settle_alpha, with_alpha
from simdims.systems import SimilaritySet

#: Looser than for a single fit: tighter tolerances mostly choose the same ranks (docs/selection.md) and take longer.
_DEFAULT_TOL, _DEFAULT_MAX_ITER = 1e-2, 300

#: The largest share of the pairs that a fit can train on with the default number of folds.
MOST_TRAINING = most_training(DEFAULT_FOLDS)

#: Threads that prepare and score fits on a device.
_MOST_THREADS = 8

#: Bytes of similarities of folds prepared at a time for a device.
_BYTES_TOGETHER = 2**32


def select_rank(
    S: Any,
    ranks: str | Iterable[int] = "auto",
    *,
    sampling: float | None = None,
    n_folds: int | None = None,
    n_repeats: int | None = None,
    protocol: str | None = None,
    alpha: float | str = "auto",
    estimator: SRF | JointSRF | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> RankSelection:
    """Choose the number of dimensions by cross-validation.

    A pool of the observed pairs is divided into k folds. With protocol "penalised" it has all of them; otherwise, or
    with `sampling`, each is in it with probability p_cv = min(0.95, p k / (k - 1)), where p is the share to train on.
    Each fold is predicted by a fit to the other folds and the diagonal, with predictions clipped to the range of the
    training pairs; everything outside the pool is missing. All ranks use the same splits, so that their mean squared
    errors over folds and repeats can be compared pair by pair.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, or SimilaritySet
        The similarities. A set is fitted jointly (see `JointSRF`), and pairs are held out within every system. If
        absent pairs of a sparse matrix are zeros, as many of them are drawn as pairs are stored; a held-out pair of
        either kind is missing in the fit, and in the score the drawn zeros stand for all of them.
    ranks : "auto" or iterable of int, default="auto"
        Numbers of dimensions to try. "auto" starts from a coarse grid, extends it while the minimum is at its end, and
        refines it around the minimum, up to the largest rank that the pairs of one fit determine.
    sampling : float, optional
        The share of the observed pairs that a fit is trained on. By default it is the largest that the folds allow, or
        with protocols "averaged" and "paper" p*, found by `calibrate`.
    n_folds, n_repeats : int, optional
        Folds per pool, and number of pools; by default 8 and 2 with protocol "penalised", otherwise (and for a
        SimilaritySet) 5 and 5.
    protocol : {"penalised", "averaged", "paper"}, optional
        How held-out pairs are predicted and a rank is chosen; by default "penalised", or "averaged" with ``alpha=0``.
        "penalised": by a + b w_i . w_j, with W from the fit of its fold, which has a penalty and is trained on as many
        pairs as the folds allow, and a and b from the other folds, to undo the effect of the penalty on the scale. The
        smallest error wins, after adding 0.3% of the explained variance per dimension. One dimension is chosen if its
        residuals cannot be distinguished from noise (`detectable_dimensions`) and its error is larger by less than four
        standard errors, or in any case by less than one. "averaged": by the mean of all fits of that rank in any repeat
        for which the pair was held out; the smallest rank is chosen whose error exceeds the smallest by at most two
        standard errors and a tenth, or by a thousandth of the variance. "paper": by the fit of its fold, without a
        penalty; the smallest mean error wins. A SimilaritySet supports only "penalised", with unscaled predictions.
    alpha : float or "auto", default="auto"
        Penalty on the loadings, see `SRF`; 0 is the paper's objective. "auto" chooses it by held-out pairs: once with a
        large number of dimensions, for the fits that compare ranks (`comparison_alpha`), and once at the chosen rank
        (`alpha`). Penalised fits hardly overfit, so weak dimensions can be detected.
    estimator : SRF or JointSRF, optional
        Settings of the fits; n_components and random_state are overridden, and its own alpha is used. By default
        ``SRF(tol=1e-2, max_iter=300)``. For a SimilaritySet it is a JointSRF. A shrinkage of "auto" is chosen with the
        penalty: with a large number of dimensions, and again at the chosen rank unless weights do not help.
    checkpoint : path, optional
        A folder in which every finished fit is saved. An interrupted run resumes from there if it is started again with
        the same data and settings, with the same result.
    random_state : int, RandomState or None, default=None
        Seed of splits and starts; None uses fresh entropy (or, with a checkpoint, that of its first run).
    n_jobs : int, optional
        Number of processes, as in joblib, which can also send the fits to a cluster; with ``device="cuda"``, the number
        of GPUs. Results do not depend on it (on a device, up to rounding).
    progress : bool or callable, optional
        Whether to show a progress bar; None shows one in terminals and notebooks. A function is called with a
        `Progress` after every fit.

    Returns
    -------
    RankSelection

    Warns
    -----
    UserWarning
        If p* is so large that the pool reaches its cap, or if the smallest error is at the end of the given ranks.

    References
    ----------
    SRF, Methods and Supplement "Cross-validation protocol".

    Examples
    --------
    >>> from simdims import select_rank, simulate
    >>> W = simulate.dirichlet(60, 3, random_state=0)
    >>> selection = select_rank(W @ W.T, range(1, 6), sampling=0.6, n_repeats=2, random_state=0)
    >>> selection.rank
    3
    """
    if isinstance(S, SimilaritySet):
        settings: dict[str, Any] = {"protocol": protocol, "alpha": alpha, "estimator": estimator, "n_jobs": n_jobs}
        settings |= {"checkpoint": checkpoint, "random_state": random_state, "progress": progress}
        return select_set(S, ranks, sampling=sampling, n_folds=n_folds, n_repeats=n_repeats, **settings)
    similarity = as_similarity(S, copy=False)
    n_items = similarity.n_items
    given: dict[str, Any] = {"n_folds": n_folds, "n_repeats": n_repeats, "protocol": protocol, "alpha": alpha}
    settled = settle_selection(similarity, ranks, sampling=sampling, estimator=estimator, n_jobs=n_jobs, **given)
    matrix, candidates, sampling, n_folds, n_repeats, protocol, estimator = settled
    described = partial(_settings, matrix, sampling, n_folds, n_repeats, estimator)
    with working("select_rank", described, checkpoint, random_state, n_jobs, progress) as work:
        found, n_stable = None, None
        if sampling is None and protocol == "penalised":
            n_stable = calibration.count_stable(matrix, work, estimator.device)
        elif sampling is None:
            k, grid = calibration.default_eigenpairs(n_items), calibration.check_grid(None)
            found = calibration.run(matrix, work, calibration.default_bootstraps(n_items), k, grid)
            n_stable = found.cutoff
        trained = sampling if found is None else found.sampling
        design = Design(trained, n_folds, n_repeats, work.root)
        splits = Splits(matrix, design, 1 if estimator.device == "cpu" else min(_threads.n_cores(), _MOST_THREADS))
        check_design(len(splits.pairs.rows), design, splits.folds)
        largest = most_dimensions(splits)
        generous = generous_rank(candidates, largest, n_stable)
        compared = _alpha_at(generous, matrix, estimator, work)
        fold_estimator = clone(estimator).set_params(alpha=compared)
        has_structure = partial(structure_beyond_one, matrix, _parallel.seed_of(work.root, BEYOND_ONE))
        rule = make_rule(protocol, variance_of(splits.pairs), candidates, has_structure)
        fit_tasks = partial(_fit_tasks, splits, fold_estimator, work)
        score = partial(score_fits, splits, rescaled=protocol == "penalised")
        trials = Trials(design, rule, compared, fit_tasks, score, work)
        tried = trials.search(candidates, largest, n_stable)
        chosen = choose(trials.scores, rule)[1]
        final = compared if chosen == generous else _alpha_at(chosen, matrix, estimator, work)
    facts: dict[str, Any] = {"sampling": trained or 1 - 1 / n_folds, "calibration": found, "tried": tried}
    selection = trials.conclude(score_mean(splits), **facts, n_items=n_items, largest=largest, alpha=final)
    warn_of_edges(selection)
    return replace(selection, similarity=similarity)


class Settled(NamedTuple):
    """The arguments of select_rank, checked and with defaults filled in, and the arrays of the similarities."""

    matrix: Arrays
    candidates: list[int] | None
    sampling: float | None
    n_folds: int
    n_repeats: int
    protocol: str
    estimator: SRF


def settle_selection(
    similarity: Similarity,
    ranks: str | Iterable[int] = "auto",
    *,
    sampling: float | None = None,
    n_folds: int | None = None,
    n_repeats: int | None = None,
    protocol: str | None = None,
    alpha: float | str = "auto",
    estimator: Any = None,
    n_jobs: int | None = None,
) -> Settled:
    """Check the arguments of select_rank, and the memory needed by its fits."""
    calibration.check_items(similarity.n_items)
    candidates = check_ranks(ranks, similarity.n_items)
    if sampling is not None:
        require_share("sampling", sampling)
        sampling = float(sampling)
    estimator, protocol = _check_estimator(estimator, alpha, protocol)
    n_folds, n_repeats = settle_folds(n_folds, n_repeats, *FOLDS[protocol])
    _parallel.check_n_jobs(n_jobs)
    matrix = plain(similarity)
    n_workers = _parallel.workers_here(n_jobs) if estimator.device == "cpu" else 1
    require_memory(matrix, similarity.density, estimator, n_workers)
    return Settled(matrix, candidates, sampling, n_folds, n_repeats, protocol, estimator)


def largest_rank(settled: Settled) -> int | None:
    """The largest rank that the pairs of one fit determine, after checking that every fold has pairs.

    None if the calibration has yet to determine how many pairs a fit is trained on.
    """
    if settled.protocol != "penalised" and settled.sampling is None:
        return None
    splits = Splits(settled.matrix, Design(settled.sampling, settled.n_folds, settled.n_repeats, 0))
    check_design(len(splits.pairs.rows), splits.design, splits.folds)
    return most_dimensions(splits)


def _fit_tasks(splits: Splits, estimator: SRF, work: Work, tasks: list[Task]) -> Generator[Fit, None, None]:
    """Fits in the order of completion; on devices, those of a rank are divided among them."""
    shared = (*splits.matrix, splits.design, estimator)
    if estimator.device == "cpu":
        yield from work.runner(fit_fold, shared)(tasks)
        return
    estimators = on_devices(estimator, work.n_jobs)
    is_here = _parallel.run_here()
    n_batches = len(estimators) if is_here else _parallel.n_workers(work.n_jobs)
    for some in _held_together(splits.matrix, tasks):
        batches = [some[first::n_batches] for first in range(min(n_batches, len(some)))]
        if is_here:
            pairs = list(zip(estimators, batches, strict=False))
            found: Iterable[list[Fit]] = _threads.mapped(lambda pair: fit_folds(splits, *pair), pairs, len(pairs))
        else:
            found = _parallel.run_tasks(fit_batch, shared, batches, n_jobs=work.n_jobs, one_by_one=True)
        yield from itertools.chain.from_iterable(found)


def _held_together(matrix: Arrays, tasks: list[Task]) -> Generator[list[Task], None, None]:
    """The tasks of each rank, as many at a time as this machine can hold."""
    of_pairs = 1 if matrix.starts is None else 3  # lists have partners and weights too
    most = max(1, _BYTES_TOGETHER // (of_pairs * matrix.values.nbytes))
    for _, of_rank in itertools.groupby(tasks, key=lambda task: task.rank):
        left = list(of_rank)
        yield from (left[first : first + most] for first in range(0, len(left), most))


def _alpha_at(rank: int, matrix: Arrays, estimator: SRF, work: Work) -> float:
    seed, record = _parallel.seed_of(work.root, ALPHA, rank), {"kind": "alpha", "rank": rank}
    return settle_alpha(estimator, matrix, rank, seed, work, record)


def default_estimator(device: str = "cpu") -> SRF:
    """The default settings of fits."""
    return SRF(tol=_DEFAULT_TOL, max_iter=_DEFAULT_MAX_ITER, device=device)


def _check_estimator(estimator: Any, alpha: Any, protocol: Any) -> tuple[SRF, str]:
    """The settings of fits and the protocol; each determines the default of the other."""
    require_choice("protocol", protocol, (None, "penalised", "averaged", "paper"))
    if not isinstance(estimator, SRF | None):
        raise ParameterTypeError("estimator", "must be an SRF", shown(estimator))
    if estimator is None and protocol == "paper" and isinstance(alpha, str):
        alpha = 0.0  # implied by the protocol
    estimator = with_alpha(estimator, alpha, "auto", default_estimator())
    is_penalised = estimator.alpha != 0.0
    protocol = protocol or ("penalised" if is_penalised else "averaged")
    if protocol == "paper" and is_penalised:
        raise ParameterError("alpha", "must be 0 with {protocol=paper}", shown(estimator.alpha))
    if protocol == "penalised" and not is_penalised:
        raise ParameterError("alpha", "must be positive or 'auto' with {protocol=penalised}", shown(estimator.alpha))
    if not isinstance(estimator.init, str):
        rule = "must have init='random' or 'spectral', because the number of dimensions varies"
        raise ParameterError("estimator", rule, "one with an array")
    estimator._check_parameters()
    return estimator, protocol


def _settings(matrix: Arrays, sampling: float | None, n_folds: int, n_repeats: int, estimator: SRF) -> dict[str, Any]:
    """The settings that a checkpoint must agree on; not the ranks, so that more can be tried later."""
    return {
        "data": fingerprint(*matrix),
        "estimator": settings_of(estimator),  # first, because it determines the defaults of the others
        "sampling": sampling,
        "n_folds": n_folds,
        "n_repeats": n_repeats,
    }
