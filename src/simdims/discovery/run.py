"""discover: select the number of dimensions, fit them, and measure stability and fit, in one call."""

from __future__ import annotations

import logging
import os
import platform
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
from simdims.discovery.estimate import estimate_seconds, first_reach
from simdims.discovery.result import Discovery
from simdims.joint import JointSRF
from simdims.selection import (
    DetectableDimensions,
    RankSelection,
    crossvalidation,
    detectable_dimensions,
    select_rank,
)
from simdims.selection.calibration import require_share
from simdims.selection.checks import TooFewPairsError, check_ranks
from simdims.selection.crossvalidation import MOST_TRAINING, largest_rank, settle_selection
from simdims.selection.rank_search import coarse_grid
from simdims.selection.result import DOES_NOT_VARY
from simdims.selection.splits import DEFAULT_FOLDS
from simdims.similarity import Similarity, as_similarity
from simdims.srf import SRF, with_alpha
from simdims.systems import SimilaritySet

logger = logging.getLogger("simdims")

#: The first integer that identifies a task; its seed is derived from the root seed and these integers.
SELECT, CONSENSUS, _MEASURE, HELD_OUT, _DETECT = 0, 1, 2, 3, 4

#: Checkpoint key of the cross-validation of a given number of dimensions.
HELD_OUT_FOLDER = "held-out"

#: Checkpoint key of the comparison of systems, followed by the number of dimensions.
SYSTEMS_FOLDER = "systems-"

#: Checkpoint key of the test against noise, followed by the number selected.
_DETECTED = "detectable-"

#: The test against noise goes up to this multiple of the selected number, plus a constant.
_REACH, _REACH_BEYOND = 2, 10

#: Number of items (at least, and per dimension) of implicit similarities used for cross-validation if the number of
#: dimensions is given.
_MOST_IMPLICIT, _ITEMS_PER_DIMENSION = 2000, 4


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
    if isinstance(S, SimilaritySet):
        from simdims.discovery.systems import discover_set

        options: dict[str, Any] = {"checkpoint": checkpoint, "n_jobs": n_jobs, "progress": progress, "device": device}
        options |= {"alpha": alpha, "estimator": estimator, "n_repeats": n_repeats, "n_runs": n_runs}
        return discover_set(S, ranks=ranks, sampling=sampling, random_state=random_state, **options)
    similarity = as_similarity(S)
    single = is_single(ranks)
    candidates = check_ranks(ranks, similarity.n_items)
    fold_estimator, run_estimator = _estimators(estimator, alpha, device)
    n_repeats, n_runs = _settle_counts(similarity.n_items, single, fold_estimator, n_repeats, n_runs)
    _check_all(similarity.n_items, sampling, n_repeats, n_runs, run_estimator, n_jobs, progress)
    seed, root = settle_seeds(checkpoint, random_state)
    validated = _cross_validate(
        similarity,
        "auto" if candidates is None else candidates,
        single=single,
        root=root,
        sampling=sampling,
        n_repeats=n_repeats,
        estimator=fold_estimator,
        checkpoint=None if checkpoint is None else Path(checkpoint, HELD_OUT_FOLDER if single else "selection"),
        n_jobs=n_jobs,
        progress=progress,
    )
    selection = None if single else validated.selection
    rank = candidates[0] if selection is None and candidates else selection.rank  # type: ignore[union-attr]
    if run_estimator.alpha == "auto" and validated.selection is not None:
        run_estimator = clone(run_estimator).set_params(alpha=validated.selection.alpha)
    consensus = fit_consensus(
        similarity,
        rank,
        n_runs=n_runs,
        estimator=run_estimator,
        checkpoint=None if checkpoint is None else Path(checkpoint, f"consensus-{rank}"),
        random_state=_parallel.seed_of(root, CONSENSUS),
        n_jobs=n_jobs,
        progress=progress,
    )
    detectable = _detect(similarity, selection, root, checkpoint, progress)
    settings = describe_settings(ranks, sampling, n_repeats, n_runs, estimator, run_estimator.device, seed, selection)
    settings |= {"alpha": alpha if estimator is None else estimator.alpha, "l1_ratio": run_estimator.l1_ratio}
    return Discovery(
        similarity=similarity,
        selection=selection,
        consensus=consensus,
        metrics={**measure(similarity, consensus, _parallel.seed_of(root, _MEASURE)), **validated.metrics},
        settings={**settings, "held_out": validated.settings},
        detectable=detectable,
    )


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
    if isinstance(similarity, SimilaritySet):
        from simdims.discovery.systems import check_set

        candidates, n_repeats, n_runs = check_set(similarity, **amount, alpha=alpha, n_jobs=n_jobs, device=device)
        settled: dict[str, Any] = {"largest": None, "n_folds": DEFAULT_FOLDS, "n_repeats": n_repeats}
    else:
        n, single = similarity.n_items, is_single(ranks)
        candidates = check_ranks(ranks, n)
        fold_estimator, run_estimator = _estimators(None, alpha, device)
        n_repeats, n_runs = _settle_counts(n, single, fold_estimator, n_repeats, n_runs)
        _check_all(n, sampling, n_repeats, n_runs, run_estimator, n_jobs, False)
        try:
            settled = _planned_folds(similarity, candidates, single, sampling, n_repeats, fold_estimator, n_jobs)
        except (MemoryError, TooFewPairsError) as error:
            if not single:
                raise
            settled = {"largest": None, "n_folds": 0, "n_repeats": 0, "reason": str(error).rstrip(".")}
    reach = first_reach(similarity.n_items, is_set=isinstance(similarity, SimilaritySet))
    return Plan(
        candidates=tuple(candidates or coarse_grid(min(reach, settled["largest"] or reach))),
        is_search=candidates is None,
        n_runs=n_runs,
        seconds=expected_seconds(similarity, **amount, n_jobs=n_jobs, device=device),
        **settled,
    )


def _planned_folds(
    similarity: Similarity,
    candidates: list[int] | None,
    single: bool,
    sampling: float | None,
    n_repeats: int,
    estimator: SRF,
    n_jobs: int | None,
) -> dict[str, Any]:
    """The folds and repeats that `_cross_validate` will use, as far as they are known before the first fit."""
    options: dict[str, Any] = {"n_repeats": n_repeats, "estimator": estimator, "n_jobs": n_jobs}
    if single and candidates:
        similarity = held_out_items(similarity, candidates[0], 0)
        sampling, options["n_folds"] = MOST_TRAINING if sampling is None else sampling, DEFAULT_FOLDS
    settled = settle_selection(similarity, candidates or "auto", sampling=sampling, **options)
    return {"largest": largest_rank(settled), "n_folds": settled.n_folds, "n_repeats": settled.n_repeats}


class Validated(NamedTuple):
    """The cross-validation of the dimensions, its results, and how it was done or why it was not."""

    selection: RankSelection | None
    metrics: dict[str, float]
    settings: dict[str, Any]


def _cross_validate(
    similarity: Similarity,
    ranks: Any,
    *,
    single: bool,
    root: int,
    sampling: float | None,
    **options: Any,
) -> Validated:
    """Select a rank; for a single one, measure how well it predicts, if possible."""
    if single:
        similarity = held_out_items(similarity, ranks[0], _parallel.seed_of(root, HELD_OUT, 0))
        sampling, options["n_folds"] = MOST_TRAINING if sampling is None else sampling, DEFAULT_FOLDS
        options["random_state"] = _parallel.seed_of(root, HELD_OUT)
    else:
        options["random_state"] = _parallel.seed_of(root, SELECT)
    try:
        selection = select_rank(similarity, ranks, sampling=sampling, **options)
    except (MemoryError, TooFewPairsError) as error:
        if not single:
            raise
        logger.info("discover: no held-out R2: %s", error)
        return Validated(None, {}, {"reason": str(error).rstrip(".")})
    if selection.held_out is None:
        return Validated(selection, {}, {"reason": DOES_NOT_VARY})
    r2, standard_error = selection.held_out
    return Validated(
        selection,
        {"held_out_r2": r2, "held_out_r2_standard_error": standard_error},
        {name: getattr(selection, name) for name in ("n_items", "n_folds", "n_repeats", "training_share", "protocol")},
    )


def _detect(
    similarity: Similarity,
    selection: RankSelection | None,
    root: int,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool | Callback | None,
) -> DetectableDimensions | None:
    """How many dimensions can be distinguished from noise, if a number was selected."""
    if selection is None or len(selection.tried) == 1:
        return None
    file = None if checkpoint is None else Path(checkpoint, f"{_DETECTED}{selection.rank}")
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
            random_state=_parallel.seed_of(root, _DETECT),
            progress=progress,
        )
    except MemoryError as error:
        logger.info("discover: dimensions could not be tested against noise: %s", error)
        return None
    if file is not None:
        with replacing(file) as part:
            part.write_text(sealed(found.to_dict()))
    return found


def held_out_items(similarity: Similarity, rank: int, seed: int) -> Similarity:
    """The similarities for cross-validating a given number of dimensions: for implicit ones, a subset of the items.

    Leaving out pairs of S = F F^T requires building S, which factors are meant to avoid.
    """
    n_chosen = max(_MOST_IMPLICIT, _ITEMS_PER_DIMENSION * rank)
    if similarity.factors is None or similarity.n_items <= n_chosen:
        return similarity
    chosen = np.sort(np.random.default_rng(seed).permutation(similarity.n_items)[:n_chosen])
    return Similarity.from_factors(similarity.factors[chosen], signed=similarity.signed)


def _settle_counts(
    n_items: int, single: bool, estimator: Any, n_repeats: int | None, n_runs: int | None
) -> tuple[int, int]:
    """Default repeats of the cross-validation and runs of the consensus."""
    penalised = getattr(estimator, "alpha", 0) != 0  # other values are refused later
    return (
        default_repeats(n_items, single, penalised) if n_repeats is None else n_repeats,
        default_runs(n_items) if n_runs is None else n_runs,
    )


def _estimators(estimator: SRF | JointSRF | None, alpha: Any, device: Any) -> tuple[SRF, SRF]:
    """The settings of cross-validation and of the final fits."""
    if isinstance(estimator, JointSRF):
        raise ParameterTypeError("estimator", "must be an SRF unless S is a SimilaritySet", shown(estimator))
    if not isinstance(estimator, SRF | None):
        raise ParameterTypeError("estimator", "must be an SRF", shown(estimator))
    found = [
        with_alpha(estimator, alpha, "auto", default(device))
        for default in (crossvalidation.default_estimator, runs.default_estimator)
    ]
    if estimator is None:
        found[0]._check_parameters()
        return found[0], found[1]
    if device != "cpu" and device != getattr(estimator, "device", device):
        raise ParameterError("device", f"must be that of the estimator, {estimator.device!r}", f"{device!r}")
    return estimator, estimator


def _check_all(
    n_items: int, sampling: Any, n_repeats: Any, n_runs: Any, estimator: Any, n_jobs: Any, progress: Any
) -> None:
    """Check all arguments before the first step."""
    if sampling is not None:
        require_share("sampling", sampling)
    require_count("n_repeats", n_repeats)
    check_runs(n_runs, estimator)
    check_halves(n_items)
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
    n_jobs: int | None = None,
    device: str = "cpu",
) -> float:
    """Estimate how long discover will take with these arguments, from a short trial."""
    require_device(device)
    if isinstance(similarity, SimilaritySet):
        from simdims.discovery.systems import expected_set_seconds

        return expected_set_seconds(similarity, ranks, n_repeats, n_runs, n_jobs, device)
    n = similarity.n_items
    selects, candidates = not is_single(ranks), check_ranks(ranks, n)
    return estimate_seconds(
        similarity,
        similarity if selects or candidates is None else held_out_items(similarity, candidates[0], 0),
        candidates,
        default_repeats(n, not selects) if n_repeats is None else n_repeats,
        default_runs(n) if n_runs is None else n_runs,
        n_jobs,
        device,
        calibrates=sampling is None,
        selects=selects,
    )


def default_repeats(n_items: int, single: bool = False, penalised: bool = True) -> int:
    """Default repeats of the cross-validation, of several numbers of dimensions or of a single one."""
    if penalised and not single:
        return 2 if n_items <= 1000 else 1
    return 5 if n_items <= 1000 else 2 if n_items <= 4000 and not single else 1


def default_runs(n_items: int) -> int:
    """Default runs of the consensus."""
    return 30 if n_items <= 2000 else 10


def measure(similarity: Similarity, consensus: Consensus, seed: int) -> dict[str, float]:
    """Metrics of an embedding; those that are undefined for the data are omitted."""
    W = consensus.embedding
    asked: dict[str, Callable[[], float]] = {
        "hoyer_sparsity": lambda: metrics.hoyer_sparsity(W),
        "entropy": lambda: metrics.entropy(W),
        "explained_variance": lambda: metrics.explained_variance(similarity, W),
    }
    if similarity.absent_weight:
        asked["link_auc"] = lambda: metrics.link_auc(similarity, W, random_state=seed)
    found = {"mean_reliability": consensus.mean_reliability}
    for name, metric in asked.items():
        try:
            found[name] = metric()
        except ValueError as error:  # sparsity of one dimension, or no variance
            logger.info("discover: no %s: %s", name, error)
    return found


def settle_seeds(checkpoint: str | os.PathLike[str] | None, random_state: Any) -> tuple[int | None, int]:
    """The `random_state` that reproduces everything and the seed derived from it, from an earlier call's folder if any.

    The former is None if the folder is from a version that recorded only the derived seed.
    """
    if checkpoint is None:
        seed = _parallel.settle_seed(random_state)
        return seed, _parallel.root_seed(seed)
    folder = as_folder(checkpoint, "checkpoint")
    known = {"seed", "selection", HELD_OUT_FOLDER, "lock"}
    strangers = [
        path.name
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name not in known
        and not path.name.startswith(("consensus-", SYSTEMS_FOLDER, _DETECTED))
        and path.suffix != ".part"
    ]
    if strangers:
        raise ParameterError(
            "checkpoint",
            "must be a new or empty folder, or that of an earlier run",
            f"{str(folder)!r}, which contains {sorted(strangers)[0]!r}",
        )
    handle = lock_folder(folder)
    try:
        return _settled_seeds(folder, random_state)
    finally:
        os.close(handle)


def _settled_seeds(folder: Path, random_state: Any) -> tuple[int | None, int]:
    file = folder / "seed"
    seed = None if random_state is None and file.exists() else _parallel.settle_seed(random_state)
    root = None if seed is None else _parallel.root_seed(seed)
    if file.exists():
        earlier, number = _read_seeds(file)
        if root not in (None, earlier):
            raise ParameterError(
                "checkpoint",
                "must be that of a run with the same seed",
                f"{str(folder)!r}, {'where it was different' if number is None else f'whose seed is {number}'}",
                "repeat the earlier {random_state}, omit it to resume that run, or use another folder",
            )
        return number if seed is None else seed, earlier
    assert root is not None
    with replacing(file) as part:
        part.write_text(sealed({"seed": root, "random_state": seed}))
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
        raise ValueError(
            f"{str(file)!r} is damaged. Restore it from a backup or use another checkpoint folder."
        ) from None


def describe_settings(
    ranks: Any,
    sampling: float | None,
    n_repeats: int,
    n_runs: int,
    estimator: SRF | JointSRF | None,
    device: str,
    seed: int | None,
    selection: RankSelection | None,
) -> dict[str, Any]:
    """The settings, the seed, and the versions of libraries."""
    from importlib.metadata import version

    import scipy
    import sklearn

    return {
        "ranks": ranks if isinstance(ranks, str) else list(selection.tried) if selection else int(ranks),
        "sampling": sampling,
        "n_repeats": int(n_repeats),
        "n_runs": int(n_runs),
        "estimator": None if estimator is None else repr(estimator),
        "device": device,
        "seed": seed,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {
            "simdims": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "numba": version("numba"),
        },
    }
