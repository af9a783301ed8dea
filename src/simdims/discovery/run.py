"""discover: select the number of dimensions, fit them, and measure stability and fit, in one call."""

from __future__ import annotations

import logging
import os
import platform
import warnings
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from simdims import __version__, _parallel, metrics
from simdims._journal import as_folder, lock_folder, replacing, sealed, unsealed
from simdims._parameters import ParameterError, ParameterTypeError, require_count, require_device, shown
from simdims._progress import Callback, reporting
from simdims.consensus import Consensus, fit_consensus, runs
from simdims.consensus.reliability import check_halves
from simdims.consensus.runs import check_runs
from simdims.consensus.systems import joint_run_estimator
from simdims.discovery.estimate import estimate_seconds, estimate_set_seconds, first_reach
from simdims.discovery.result import Discovery
from simdims.joint import JointSRF, problem_of_set
from simdims.selection import (
    DetectableDimensions,
    RankSelection,
    SystemsComparison,
    crossvalidation,
    detectable_dimensions,
    select_rank,
)
from simdims.selection.calibration import require_share
from simdims.selection.checks import TooFewPairsError, check_ranks
from simdims.selection.crossvalidation import MOST_TRAINING, largest_rank, settle_selection
from simdims.selection.joint_fits import about_means, draw_pairs, explained_variance
from simdims.selection.rank_search import coarse_grid
from simdims.selection.result import DOES_NOT_VARY
from simdims.selection.splits import DEFAULT_FOLDS, FOLDS
from simdims.selection.systems import compare_systems, joint_fold_estimator
from simdims.similarity import Similarity, as_similarity
from simdims.srf import SRF, with_alpha
from simdims.systems import SimilaritySet, warn_of_identical

logger = logging.getLogger("simdims")

#: The first integer that identifies a task; its seed is derived from the root seed and these integers.
_SELECT, _CONSENSUS, _MEASURE, _HELD_OUT, _DETECT = 0, 1, 2, 3, 4

#: Checkpoint keys of the cross-validation of several numbers of dimensions, and of a given one.
_SELECTION_FOLDER, _HELD_OUT_FOLDER = "selection", "held-out"

#: Checkpoint keys of the final fits, of the comparison of systems and of the test against noise, followed by the number
#: of dimensions.
_CONSENSUS_FOLDER, _SYSTEMS_FOLDER, _DETECTED = "consensus-", "systems-", "detectable-"

#: The test against noise goes up to this multiple of the selected number, plus a constant.
_REACH, _REACH_BEYOND = 2, 10

#: Number of items (at least, and per dimension) of implicit similarities used for cross-validation if the number of
#: dimensions is given.
_MOST_IMPLICIT, _ITEMS_PER_DIMENSION = 2000, 4

#: Numbers of observed pairs of a set up to which it has 5 and 2 repeats, and up to which it has 30 runs.
_FEW_PAIRS, _SOME_PAIRS = 20_000, 200_000


def discover(
    S: Any,
    *,
    ranks: str | int | Iterable[int] = "auto",
    sampling: float | None = None,
    n_repeats: int | None = None,
    n_runs: int | None = None,
    alpha: float | str = "auto",
    estimator: SRF | JointSRF | None = None,
    device: str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> Discovery:
    """Find the dimensions underlying similarities: select their number, fit repeatedly, and evaluate.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, or SimilaritySet
        The similarities. A set is fitted jointly (see `JointSRF`): the result has weights of its systems, and
        ``systems`` reports whether these predict held-out pairs better than the average does.
    ranks : "auto", int or iterable of int, default="auto"
        Candidate numbers of dimensions; see `select_rank`. A single number is used as given, but is still
        cross-validated: ``metrics["held_out_r2"]`` measures how well it predicts held-out similarities.
    sampling : float, optional
        Share of the pairs in a training set of the cross-validation. By default as large as the folds allow; without a
        penalty (``alpha=0``) it is calibrated for a selection.
    n_repeats : int, optional
        Repeats of the cross-validation. By default 2 of 8 folds up to 1,000 items and 1 beyond. For a single number of
        dimensions 5 of 5 folds up to 1,000 items, 1 beyond; without a penalty 5, 2 up to 4,000 items, 1 beyond. For a
        SimilaritySet 5 up to 20,000 observed pairs, 2 up to 200,000, 1 beyond.
    n_runs : int, optional
        Runs of the consensus: 30 up to 2,000 items (of a SimilaritySet, 200,000 observed pairs), 10 beyond.
    alpha : float or "auto", default="auto"
        Penalty on the loadings; see `SRF` and `select_rank`. "auto" chooses it by cross-validation; 0 is the paper's
        method, which supports only one system.
    estimator : SRF or JointSRF, optional
        Settings of the final fits, see `fit_consensus`; if given, they are also used in cross-validation. Its own alpha
        is used. For a SimilaritySet it is a JointSRF.
    device : str, default="cpu"
        Device for all fits, see `SRF`; an estimator has its own.
    checkpoint : path, optional
        A folder in which every finished fit is saved; an interrupted call resumes from there.
    random_state : int, RandomState, Generator or None, default=None
        Random seed. None draws one (or, with a checkpoint, reuses that of its first call). To reproduce a result, pass
        ``settings["seed"]`` as `random_state`.
    n_jobs : int, optional
        Number of processes, as in joblib; with ``device="cuda"``, also the number of GPUs. Results do not depend on it
        (on a device, up to rounding).
    progress : bool or callable, optional
        See `select_rank`.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> from simdims import discover, simulate
    >>> W = simulate.dirichlet(60, 3, alpha=0.3, random_state=0)
    >>> S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
    >>> found = discover(S, ranks=range(1, 6), sampling=0.6, n_repeats=2, n_runs=5, random_state=0)
    >>> found.n_components
    3
    >>> found.embedding.shape
    (60, 3)
    """
    similarity = S if isinstance(S, SimilaritySet) else as_similarity(S)
    single = is_single(ranks)
    fold_model, run_model = _estimators(similarity, estimator, alpha, device)
    candidates, n_repeats, n_runs = _settle_counts(similarity, ranks, n_repeats, n_runs, fold_model.alpha != 0)
    _check_settings(similarity, sampling, n_repeats, n_runs, run_model, n_jobs, progress)
    if isinstance(similarity, SimilaritySet):
        warn_of_identical(similarity)
    seed, root = _settle_seeds(checkpoint, random_state)
    work = _Work(root, checkpoint, n_jobs, progress)
    held, folds = _held_out(similarity, candidates, single, sampling, _parallel.seed_of(root, _HELD_OUT, 0))
    validated = _cross_validate(held, candidates, single, work, n_repeats=n_repeats, estimator=fold_model, **folds)
    selection, rank = None if single else validated.selection, validated.rank
    compared = _compare_systems(similarity, validated.selection, fold_model, work)
    run_model = _with_chosen_penalties(run_model, validated.selection)
    step = work.of_step(f"{_CONSENSUS_FOLDER}{rank}", _CONSENSUS)
    consensus = fit_consensus(similarity, rank, n_runs=n_runs, estimator=run_model, **step)
    detectable = _detect(similarity, selection, work)
    asked = {"sampling": sampling, "n_repeats": int(n_repeats), "n_runs": int(n_runs), "seed": seed}
    settings = _describe_settings(ranks, selection, estimator, alpha, run_model, **asked, held_out=validated.settings)
    measured = {**measure(similarity, consensus, root), **validated.metrics, **_measure_ceiling(similarity)}
    parts: dict[str, Any] = {"selection": selection, "systems": compared, "detectable": detectable}
    return Discovery(similarity=similarity, consensus=consensus, metrics=measured, settings=settings, **parts)


class Plan(NamedTuple):
    """What discover would do: candidates, folds and repeats, runs, and estimated time.

    With `ranks` "auto", `candidates` are those with which the search begins, and `largest` bounds it. `n_folds` and
    `n_repeats` are 0 if no pairs can be held out, for the `reason` given.
    """

    candidates: tuple[int, ...]
    is_search: bool
    largest: int | None
    n_folds: int
    n_repeats: int
    n_runs: int
    seconds: float
    reason: str | None = None

    @property
    def n_fits(self) -> int:
        """Number of fits, for the candidates known in advance."""
        return len(self.candidates) * self.n_folds * self.n_repeats + self.n_runs


def plan_discovery(
    similarity: Similarity | SimilaritySet,
    *,
    ranks: Any = "auto",
    sampling: float | None = None,
    n_repeats: int | None = None,
    n_runs: int | None = None,
    alpha: float | str = "auto",
    n_jobs: int | None = None,
    device: str = "cpu",
) -> Plan:
    """Check all arguments and return what discover would do; the time comes from a short trial."""
    amount: dict[str, Any] = {"ranks": ranks, "sampling": sampling, "n_repeats": n_repeats, "n_runs": n_runs}
    n, single = similarity.n_items, is_single(ranks)
    fold_model, run_model = _estimators(similarity, None, alpha, device)
    candidates, n_repeats, n_runs = _settle_counts(similarity, ranks, n_repeats, n_runs, fold_model.alpha != 0)
    _check_settings(similarity, sampling, n_repeats, n_runs, run_model, n_jobs, False)
    settled: dict[str, Any] = {"largest": None, "n_folds": DEFAULT_FOLDS, "n_repeats": n_repeats}
    if isinstance(similarity, Similarity):
        given: dict[str, Any] = {"n_repeats": n_repeats, "estimator": fold_model, "n_jobs": n_jobs}
        settled = _planned_folds(similarity, candidates, single, sampling, given)
    reach = first_reach(n, is_set=isinstance(similarity, SimilaritySet))
    return Plan(
        candidates=tuple(candidates or coarse_grid(min(reach, settled["largest"] or reach))),
        is_search=candidates is None,
        n_runs=n_runs,
        seconds=expected_seconds(similarity, **amount, alpha=alpha, n_jobs=n_jobs, device=device),
        **settled,
    )


def _planned_folds(
    similarity: Similarity, candidates: list[int] | None, single: bool, sampling: float | None, options: dict[str, Any]
) -> dict[str, Any]:
    """The folds and repeats of the cross-validation, as far as they are known before the first fit."""
    try:
        held, folds = _held_out(similarity, candidates, single, sampling, 0)
        settled = settle_selection(held, candidates or "auto", **options, **folds)
        return {"largest": largest_rank(settled), "n_folds": settled.n_folds, "n_repeats": settled.n_repeats}
    except (MemoryError, TooFewPairsError) as error:
        if not single:
            raise
        return {"largest": None, "n_folds": 0, "n_repeats": 0, "reason": _reason(error)}


class _Work(NamedTuple):
    """What the steps of a run share: the seed of all, the folder of finished fits, processes and progress."""

    root: int
    checkpoint: str | os.PathLike[str] | None
    n_jobs: int | None
    progress: bool | Callback | None

    def folder(self, name: str) -> Path | None:
        """The checkpoint of a step."""
        return None if self.checkpoint is None else Path(self.checkpoint, name)

    def of_step(self, name: str, task: int) -> dict[str, Any]:
        """The arguments of a step that do not depend on its data."""
        running = {"n_jobs": self.n_jobs, "progress": self.progress}
        return {"checkpoint": self.folder(name), "random_state": _parallel.seed_of(self.root, task), **running}


class _Validated(NamedTuple):
    """The cross-validation of the dimensions, its results, and how it was done or why it was not."""

    selection: RankSelection | None
    rank: int
    metrics: dict[str, float]
    settings: dict[str, Any]


def _cross_validate(
    S: Similarity | SimilaritySet, candidates: list[int] | None, single: bool, work: _Work, **options: Any
) -> _Validated:
    """Select a rank; for a single one, measure how well it predicts, if possible."""
    step = work.of_step(_HELD_OUT_FOLDER, _HELD_OUT) if single else work.of_step(_SELECTION_FOLDER, _SELECT)
    try:
        selection = select_rank(S, candidates or "auto", **options, **step)
    except (MemoryError, TooFewPairsError) as error:
        if not single or candidates is None:
            raise
        logger.info("discover: no held-out R2: %s", error)
        return _Validated(None, candidates[0], {}, {"reason": _reason(error)})
    if selection.held_out is None:
        return _Validated(selection, selection.rank, {}, {"reason": DOES_NOT_VARY})
    r2, standard_error = selection.held_out
    measured = {"held_out_r2": r2, "held_out_r2_standard_error": standard_error}
    names = ("n_items", "n_folds", "n_repeats", "training_share", "protocol")
    return _Validated(selection, selection.rank, measured, {name: getattr(selection, name) for name in names})


def _reason(error: Exception) -> str:
    return str(error).rstrip(".")


def _compare_systems(
    S: Similarity | SimilaritySet, selection: RankSelection | None, model: Any, work: _Work
) -> SystemsComparison | None:
    """How much the weights of several systems improve predictions; None if the similarities are constant."""
    if isinstance(S, Similarity) or selection is None or selection.held_out is None:
        return None
    options: dict[str, Any] = {"n_jobs": work.n_jobs, "progress": work.progress}
    folder = work.folder(f"{_SYSTEMS_FOLDER}{selection.rank}")
    return compare_systems(S, selection, estimator=model, checkpoint=folder, **options)


def _with_chosen_penalties(model: SRF | JointSRF, selection: RankSelection | None) -> SRF | JointSRF:
    if selection is None:
        return model
    if isinstance(model, JointSRF):
        return clone(model).set_params(alpha=selection.alpha, shrinkage=selection.shrinkage)
    return clone(model).set_params(alpha=selection.alpha) if model.alpha == "auto" else model


def _detect(
    similarity: Similarity | SimilaritySet, selection: RankSelection | None, work: _Work
) -> DetectableDimensions | None:
    """How many dimensions of one system can be distinguished from noise, if a number was selected."""
    if isinstance(similarity, SimilaritySet) or selection is None or len(selection.tried) == 1:
        return None
    file = work.folder(f"{_DETECTED}{selection.rank}")
    if file is not None and file.exists():
        try:
            return DetectableDimensions.from_dict(unsealed(file.read_bytes()))
        except (ValueError, KeyError, TypeError):
            logger.info("discover: %s is damaged and computed again", file)
    try:
        found = detectable_dimensions(
            similarity,
            start=selection.rank,
            max_rank=_REACH * selection.rank + _REACH_BEYOND,
            random_state=_parallel.seed_of(work.root, _DETECT),
            progress=work.progress,
        )
    except MemoryError as error:
        logger.info("discover: dimensions could not be tested against noise: %s", error)
        return None
    if file is not None:
        with replacing(file) as part:
            part.write_text(sealed(found.to_dict()))
    return found


def _held_out(
    S: Similarity | SimilaritySet, candidates: list[int] | None, single: bool, sampling: float | None, seed: int
) -> tuple[Any, dict[str, Any]]:
    """What is cross-validated, and with which folds: a given number of dimensions has its own.

    For implicit similarities it is a subset of the items: leaving out pairs of S = F F^T requires building S, which
    factors are meant to avoid.
    """
    if isinstance(S, SimilaritySet):
        return S, {"sampling": sampling, "n_folds": DEFAULT_FOLDS}
    if not single or candidates is None:
        return S, {"sampling": sampling}
    n_chosen = max(_MOST_IMPLICIT, _ITEMS_PER_DIMENSION * candidates[0])
    if S.factors is not None and S.n_items > n_chosen:
        chosen = np.sort(np.random.default_rng(seed).permutation(S.n_items)[:n_chosen])
        S = Similarity.from_factors(S.factors[chosen], signed=S.signed)
    return S, {"sampling": MOST_TRAINING if sampling is None else sampling, "n_folds": DEFAULT_FOLDS}


def _settle_counts(
    S: Similarity | SimilaritySet, ranks: Any, n_repeats: int | None, n_runs: int | None, penalised: bool = True
) -> tuple[list[int] | None, int, int]:
    """The candidates, and the repeats of the cross-validation and runs of the consensus: those given, or defaults."""
    candidates = check_ranks(ranks, S.n_items)
    defaults = _default_counts(S, is_single(ranks), penalised)
    return candidates, defaults[0] if n_repeats is None else n_repeats, defaults[1] if n_runs is None else n_runs


def _default_counts(S: Similarity | SimilaritySet, single: bool, penalised: bool) -> tuple[int, int]:
    """Default repeats and runs: with more pairs, another split or start changes less."""
    n = S.n_items
    if isinstance(S, SimilaritySet):
        n_pairs = 0.5 * S.density * S.n_systems * n * (n - 1)
        return 5 if n_pairs <= _FEW_PAIRS else 2 if n_pairs <= _SOME_PAIRS else 1, 30 if n_pairs <= _SOME_PAIRS else 10
    n_runs = 30 if n <= 2000 else 10
    if penalised and not single:
        return 2 if n <= 1000 else 1, n_runs
    return 5 if n <= 1000 else 2 if n <= 4000 and not single else 1, n_runs


def _estimators(
    S: Similarity | SimilaritySet, estimator: SRF | JointSRF | None, alpha: Any, device: Any
) -> tuple[SRF | JointSRF, SRF | JointSRF]:
    """The settings of cross-validation and of the final fits."""
    if isinstance(S, SimilaritySet):
        folds = joint_fold_estimator(estimator, alpha, device=device)
        return folds, joint_run_estimator(estimator, alpha, "auto", device=device)
    if isinstance(estimator, JointSRF):
        raise ParameterTypeError("estimator", "must be an SRF unless S is a SimilaritySet", shown(estimator))
    if not isinstance(estimator, SRF | None):
        raise ParameterTypeError("estimator", "must be an SRF", shown(estimator))
    defaults = crossvalidation.default_estimator(device), runs.default_estimator(device)
    fold_model, run_model = (with_alpha(estimator, alpha, "auto", default) for default in defaults)
    if estimator is None:
        fold_model._check_parameters()
        return fold_model, run_model
    if device != "cpu" and device != getattr(estimator, "device", device):
        raise ParameterError("device", f"must be that of the estimator, {estimator.device!r}", f"{device!r}")
    return estimator, estimator


def _check_settings(
    S: Similarity | SimilaritySet, sampling: Any, n_repeats: Any, n_runs: Any, model: Any, n_jobs: Any, progress: Any
) -> None:
    """Check arguments before the first step."""
    if sampling is not None:
        require_share("sampling", sampling)
    require_count("n_repeats", n_repeats)
    if isinstance(S, Similarity):
        check_runs(n_runs, model)
    require_count("n_runs", n_runs, at_least=2)
    check_halves(S.n_items)
    _parallel.check_n_jobs(n_jobs)
    with reporting(progress):
        pass


def is_single(ranks: Any) -> bool:
    """Whether a single number of dimensions is given."""
    return isinstance(ranks, int | np.integer) and not isinstance(ranks, bool)


def expected_seconds(
    similarity: Similarity | SimilaritySet,
    *,
    ranks: Any = "auto",
    sampling: float | None = None,
    n_repeats: int | None = None,
    n_runs: int | None = None,
    alpha: Any = "auto",
    n_jobs: int | None = None,
    device: str = "cpu",
) -> float:
    """Estimate how long discover will take with these arguments, from a short trial."""
    require_device(device)
    candidates, n_repeats, n_runs = _settle_counts(similarity, ranks, n_repeats, n_runs, alpha != 0)
    if isinstance(similarity, SimilaritySet):
        return estimate_set_seconds(similarity, candidates, n_repeats, n_runs, n_jobs, device)
    selects = not is_single(ranks)
    held, _ = _held_out(similarity, candidates, not selects, sampling, 0)
    n_folds = FOLDS["penalised"][0] if selects and alpha != 0 else DEFAULT_FOLDS
    how = {"penalised": alpha != 0, "calibrates": sampling is None, "selects": selects}
    return estimate_seconds(similarity, held, candidates, n_folds * n_repeats, n_runs, n_jobs, device, **how)


def measure(S: Similarity | SimilaritySet, consensus: Consensus, root: int) -> dict[str, float]:
    """Metrics of an embedding; those that are undefined for the data are omitted."""
    W = consensus.embedding
    asked: dict[str, Callable[[], float]] = {
        "hoyer_sparsity": lambda: metrics.hoyer_sparsity(W),
        "entropy": lambda: metrics.entropy(W),
        "explained_variance": lambda: _explained_variance(S, consensus),
    }
    if isinstance(S, Similarity) and S.absent_weight:
        asked["link_auc"] = lambda: metrics.link_auc(S, W, random_state=_parallel.seed_of(root, _MEASURE))
    found = {"mean_reliability": consensus.mean_reliability}
    for name, metric in asked.items():
        try:
            found[name] = metric()
        except ValueError as error:  # sparsity of one dimension, or no variance
            logger.info("discover: no %s: %s", name, error)
    return found


def _explained_variance(S: Similarity | SimilaritySet, consensus: Consensus) -> float:
    if isinstance(S, Similarity):
        return metrics.explained_variance(S, consensus.embedding)
    weights = consensus.weights_frame().to_numpy()
    share = explained_variance(problem_of_set(S), consensus.embedding, weights)
    if not np.isfinite(share):
        raise ValueError(DOES_NOT_VARY)
    return share


def _measure_ceiling(systems: Similarity | SimilaritySet) -> dict[str, float]:
    """Noise ceilings in R2 over all systems: of the mean of the others, and of the mean of all; {} if unknown.

    The R2 of a system is that of a regression on the mean with a slope of at least 0: its squared correlation.
    """
    if isinstance(systems, Similarity):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about systems without a ceiling, which are excluded
        try:
            ceiling = metrics.noise_ceiling(systems)
        except (ValueError, MemoryError) as error:
            logger.info("discover: no noise ceiling: %s", error)
            return {}
    problem = problem_of_set(systems)
    pairs = draw_pairs(problem, 0)
    squares = about_means(pairs, problem.n_systems)
    spread = np.bincount(pairs.systems, pairs.weights * squares, minlength=problem.n_systems)
    known = ~np.isnan(ceiling.lower) & (spread > 0)
    if not known.any():
        return {}
    bounds = {"noise_ceiling_lower": ceiling.lower, "noise_ceiling_upper": ceiling.upper}
    return {
        name: float(np.average(np.maximum(bound[known], 0.0) ** 2, weights=spread[known]))
        for name, bound in bounds.items()
    }


def _settle_seeds(checkpoint: str | os.PathLike[str] | None, random_state: Any) -> tuple[int | None, int]:
    """The `random_state` that reproduces everything and the seed derived from it, from an earlier call's folder if any.

    The former is None if the folder is from a version that recorded only the derived seed.
    """
    if checkpoint is None:
        seed = _parallel.settle_seed(random_state)
        return seed, _parallel.root_seed(seed)
    folder = as_folder(checkpoint, "checkpoint")
    known = {"seed", _SELECTION_FOLDER, _HELD_OUT_FOLDER, "lock"}
    own = (_CONSENSUS_FOLDER, _SYSTEMS_FOLDER, _DETECTED)
    names = {path.name for path in (folder.iterdir() if folder.is_dir() else ())}
    strangers = [name for name in names - known if not (name.startswith(own) or Path(name).suffix == ".part")]
    if strangers:
        rule = "must be a new or empty folder, or that of an earlier run"
        raise ParameterError("checkpoint", rule, f"{str(folder)!r}, which contains {min(strangers)!r}")
    handle = lock_folder(folder)
    try:
        return _settled_seeds(folder, random_state)
    finally:
        os.close(handle)


def _settled_seeds(folder: Path, random_state: Any) -> tuple[int | None, int]:
    file = folder / "seed"
    if not file.exists():
        seed = _parallel.settle_seed(random_state)
        root = _parallel.root_seed(seed)
        with replacing(file) as part:
            part.write_text(sealed({"seed": root, "random_state": seed}))
        return seed, root
    root, number = _read_seeds(file)
    if random_state is None:
        return number, root
    seed = _parallel.settle_seed(random_state)
    if _parallel.root_seed(seed) != root:
        got = f"{str(folder)!r}, {'where it was different' if number is None else f'whose seed is {number}'}"
        remedy = "repeat the earlier {random_state}, omit it to resume that run, or use another folder"
        raise ParameterError("checkpoint", "must be that of a run with the same seed", got, remedy)
    return seed, root


def _read_seeds(file: Path) -> tuple[int, int | None]:
    """The seed, and the number it derives from, which earlier versions did not record."""
    text = file.read_bytes()
    if text.strip().isdigit():  # from an earlier simdims without checksums
        return int(text), None
    try:
        found = unsealed(text)
        number = found["random_state"]
        return int(found["seed"]), None if number is None else int(number)
    except (ValueError, KeyError, TypeError):
        what = f"{str(file)!r} is damaged. Restore it from a backup or use another checkpoint folder."
        raise ValueError(what) from None


def _describe_settings(
    ranks: Any, selection: RankSelection | None, estimator: SRF | JointSRF | None, alpha: Any, model: Any, **more: Any
) -> dict[str, Any]:
    """The settings, with penalties as they were given, and the versions of libraries."""
    from importlib.metadata import version

    given = type(model)(alpha=alpha) if estimator is None else estimator
    return {
        "ranks": ranks if isinstance(ranks, str) else list(selection.tried) if selection else int(ranks),
        "estimator": None if estimator is None else repr(estimator),
        "device": model.device,
        "alpha": given.alpha,
        "l1_ratio": model.l1_ratio,
        "bounded": isinstance(model, SRF) and model.bounds not in ("auto", None),
        **({"shrinkage": given.shrinkage} if isinstance(given, JointSRF) else {}),
        **more,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {
            "simdims": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
        },
    }
