"""discover: how many dimensions, which ones, how stable and how good, in one call."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from simdims import __version__, _parallel, metrics
from simdims._journal import as_folder, lock_folder, replacing, sealed, unsealed
from simdims._parameters import require_count, require_device
from simdims._progress import Callback, reporting
from simdims.consensus import Consensus, fit_consensus, runs
from simdims.consensus.reliability import check_halves
from simdims.consensus.runs import check_runs
from simdims.discovery.estimate import estimate_seconds, in_words
from simdims.discovery.result import Discovery
from simdims.selection import RankSelection, crossvalidation, select_rank
from simdims.selection.calibration import _require_share
from simdims.selection.crossvalidation import check_ranks
from simdims.similarity import Similarity, as_similarity
from simdims.srf import SRF

logger = logging.getLogger("simdims")

#: First word of the name of a task, from which its seed follows.
_SELECT, _CONSENSUS, _MEASURE = 0, 1, 2


def discover(
    S: Any,
    *,
    ranks: str | int | Iterable[int] = "auto",
    sampling: float | None = None,
    n_repeats: int | None = None,
    n_runs: int | None = None,
    estimator: SRF | None = None,
    device: str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> Discovery:
    """Find the dimensions behind similarities: calibrate, select their number, fit many times, measure.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes
        The similarities.
    ranks : "auto", int or iterable of int, default="auto"
        Numbers of dimensions to choose from; see `select_rank`. A single number is taken, and nothing is selected.
    sampling : float, optional
        The share of the pairs to train on in the selection; calibrated by default. Of no use without a selection.
    n_repeats : int, optional
        Repeats of the cross-validation: 5 up to 1,000 items, 2 up to 4,000, 1 beyond. Of no use without a selection.
    n_runs : int, optional
        Runs of the consensus: 30 up to 2,000 items, 10 beyond.
    estimator : SRF, optional
        Settings of the final fits, see `fit_consensus`; cross-validation uses them too if they are given.
    device : str, default="cpu"
        Where all fits are made, see `SRF`; of no use with an estimator, which says so itself.
    checkpoint : path, optional
        A folder in which every finished fit is kept; a call that is stopped in whatever way goes on from there.
    random_state : int, RandomState or None, default=None
        Seed of everything; None is fresh entropy (or, with a checkpoint, that of its first call).
    n_jobs : int, optional
        Processes, as in joblib. Results do not depend on it.
    progress : bool or callable, optional
        See `select_rank`. How long all will take, about, is logged before it starts (logger "simdims"), and is
        `estimated_seconds` of the result.

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
    similarity = as_similarity(S)
    n = similarity.n_items
    single = is_single(ranks)
    candidates = check_ranks(ranks, n)
    n_repeats = default_repeats(n) if n_repeats is None else n_repeats
    n_runs = default_runs(n) if n_runs is None else n_runs
    fold_estimator, run_estimator = _estimators(estimator, device)
    _check_all(n, sampling, n_repeats, n_runs, run_estimator, n_jobs, progress)
    root = _root(checkpoint, random_state)
    seconds = expected_seconds(
        similarity,
        ranks=ranks if single else candidates or "auto",
        sampling=sampling,
        n_repeats=n_repeats,
        n_runs=n_runs,
        n_jobs=n_jobs,
        device=run_estimator.device,
    )
    logger.info("discover: about %s", in_words(seconds))
    selection = None
    if not single:
        selection = select_rank(
            similarity,
            "auto" if candidates is None else candidates,
            sampling=sampling,
            n_repeats=n_repeats,
            estimator=fold_estimator,
            checkpoint=None if checkpoint is None else Path(checkpoint, "selection"),
            random_state=_parallel.seed_of(root, _SELECT),
            n_jobs=n_jobs,
            progress=progress,
        )
    rank = candidates[0] if selection is None and candidates else selection.rank  # type: ignore[union-attr]
    consensus = fit_consensus(
        similarity,
        rank,
        n_runs=n_runs,
        estimator=run_estimator,
        checkpoint=None if checkpoint is None else Path(checkpoint, f"consensus-{rank}"),
        random_state=_parallel.seed_of(root, _CONSENSUS),
        n_jobs=n_jobs,
        progress=progress,
    )
    return Discovery(
        similarity=similarity,
        selection=selection,
        consensus=consensus,
        metrics=measure(similarity, consensus, _parallel.seed_of(root, _MEASURE)),
        settings=_settings(ranks, sampling, n_repeats, n_runs, estimator, run_estimator.device, root, selection),
        estimated_seconds=seconds,
    )


def _estimators(estimator: SRF | None, device: Any) -> tuple[SRF, SRF]:
    """The settings of cross-validation and of the final fits."""
    if estimator is None:
        found = (crossvalidation.default_estimator(device), runs.default_estimator(device))
        found[0]._check_parameters()
        return found
    if device != "cpu" and device != getattr(estimator, "device", device):
        raise ValueError(f"device must be that of the estimator, {estimator.device!r}, got {device!r}.")
    return estimator, estimator


def _check_all(
    n_items: int, sampling: Any, n_repeats: Any, n_runs: Any, estimator: Any, n_jobs: Any, progress: Any
) -> None:
    """Refuse before the first step what a later one would refuse."""
    if sampling is not None:
        _require_share("sampling", sampling)
    require_count("n_repeats", n_repeats)
    check_runs(n_runs, estimator)
    check_halves(n_items)
    _parallel.check_n_jobs(n_jobs)
    with reporting(progress):
        pass


def is_single(ranks: Any) -> bool:
    """Whether the number of dimensions is given."""
    return isinstance(ranks, int | np.integer) and not isinstance(ranks, bool)


def expected_seconds(
    similarity: Similarity,
    *,
    ranks: Any = "auto",
    sampling: float | None = None,
    n_repeats: int | None = None,
    n_runs: int | None = None,
    n_jobs: int | None = None,
    device: str = "cpu",
) -> float:
    """About how long discover will take with these arguments, from a short trial."""
    require_device(device)
    n = similarity.n_items
    return estimate_seconds(
        similarity,
        check_ranks(ranks, n),
        default_repeats(n) if n_repeats is None else n_repeats,
        default_runs(n) if n_runs is None else n_runs,
        n_jobs,
        device,
        calibrates=sampling is None,
        selects=not is_single(ranks),
    )


def default_repeats(n_items: int) -> int:
    """Repeats of the cross-validation."""
    return 5 if n_items <= 1000 else 2 if n_items <= 4000 else 1


def default_runs(n_items: int) -> int:
    """Runs of the consensus."""
    return 30 if n_items <= 2000 else 10


def measure(similarity: Similarity, consensus: Consensus, seed: int) -> dict[str, float]:
    """The numbers by which an embedding is judged; those that the data do not allow are left out."""
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
        except ValueError as error:  # one dimension has no sparsity, equal similarities have no variance
            logger.info("discover: no %s: %s", name, error)
    return found


def _root(checkpoint: str | os.PathLike[str] | None, random_state: Any) -> int:
    """The seed of everything; the folder of an earlier call knows the one that was drawn there."""
    if checkpoint is None:
        return _parallel.root_seed(random_state)
    folder = as_folder(checkpoint, "checkpoint")
    known = {"seed", "selection", "lock"}
    strangers = [
        path.name
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name not in known and not path.name.startswith("consensus-") and not path.name.endswith(".part")
    ]
    if strangers:
        raise ValueError(
            f"checkpoint must be a new or empty folder, or one of an earlier call, got {str(folder)!r}, which holds "
            f"{sorted(strangers)[0]!r}."
        )
    handle = lock_folder(folder)
    try:
        return _settled_seed(folder, random_state)
    finally:
        os.close(handle)


def _settled_seed(folder: Path, random_state: Any) -> int:
    file = folder / "seed"
    if file.exists():
        earlier = _read_seed(file)
        if random_state is not None and _parallel.root_seed(random_state) != earlier:
            raise ValueError(
                f"checkpoint must be of the same random_state, got {str(folder)!r}, where it was another: use another "
                "folder, the same random_state, or None to go on with the earlier one."
            )
        return earlier
    root = _parallel.root_seed(random_state)
    with replacing(file) as part:
        part.write_text(sealed({"seed": root}))
    return root


def _read_seed(file: Path) -> int:
    text = file.read_bytes()
    if text.strip().isdigit():  # of an earlier simdims, which kept no checksums
        return int(text)
    try:
        return int(unsealed(text)["seed"])
    except (ValueError, KeyError):
        raise ValueError(
            f"checkpoint must be readable, got {str(file)!r}, which is damaged: use a copy of it from a backup, or "
            "another folder."
        ) from None


def _settings(
    ranks: Any,
    sampling: float | None,
    n_repeats: int,
    n_runs: int,
    estimator: SRF | None,
    device: str,
    root: int,
    selection: RankSelection | None,
) -> dict[str, Any]:
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
        "seed": root,
        "versions": {
            "simdims": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "numba": version("numba"),
        },
    }
