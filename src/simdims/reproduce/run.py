"""reproduce: one of the paper's analyses, run and held against what was published."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from simdims import __version__
from simdims._journal import replacing
from simdims._parallel import check_n_jobs, root_seed
from simdims._progress import Callback
from simdims.reproduce import ANALYSES
from simdims.reproduce.frame import SIZES, Outcome, Settings


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One analysis, run: see `reproduce`.

    Parameters
    ----------
    name, title : str
        Which one, and the part of the paper it is in.
    settings : Settings
        How much of it was run.
    outcome : Outcome
        What came out: claims, tables, remarks, and the function that draws the figure.
    seconds : float
        How long it took, without the figure; with a checkpoint, what earlier runs took of it is counted too.
    """

    name: str
    title: str
    settings: Settings
    outcome: Outcome
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Everything but the figure, as plain values and tables."""
        return {
            "name": self.name,
            "title": self.title,
            "version": __version__,
            "size": self.settings.size,
            "seed": self.settings.seed,
            "data": self.settings.data is not None,
            "only": self.settings.only,
            "seconds": round(self.seconds, 1),
            "claims": [claim._asdict() for claim in self.outcome.claims],
            "tables": self.outcome.tables,
            "remarks": self.outcome.remarks,
        }

    def summary(self) -> str:
        """Published values beside ours, the tables, and remarks, in words."""
        from simdims.reproduce import writing

        return writing.summary(self)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the figure, the tables and the claims into a folder, and return the files."""
        from simdims.reproduce import writing

        return writing.save(self, Path(folder))


def reproduce(
    name: str,
    *,
    size: str = "full",
    data: str | os.PathLike[str] | None = None,
    only: Sequence[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> Reproduction:
    """Run one of the paper's analyses and hold the published values against ours.

    Parameters
    ----------
    name : str
        One of `ANALYSES`.
    size : {"smoke", "quick", "full"}, default="full"
        "smoke" shows that it runs (seconds), "quick" shows the direction of the results (minutes), "full" is
        what to hold against the paper.
    data : path, optional
        A folder with files that are not ours to ship; an analysis that needs one says which, and where it is from. By
        default the environment variable SIMDIMS_DATA.
    only : sequence of str, optional
        Of "datasets": those to run, as ["peterson-animals"]. By default all.
    checkpoint : path, optional
        A folder for finished work. A run that was stopped goes on from there.
    random_state : int, default=0
        Seed of everything.
    n_jobs : int or None, default=None
        Processes; the result does not depend on it.
    progress : bool, function or None, default=None
        As in `simdims.select_rank`.

    Returns
    -------
    Reproduction
        `summary` in words; `save` writes it with its figure.

    Examples
    --------
    >>> from simdims.reproduce import reproduce
    >>> found = reproduce("convergence", size="smoke", progress=False)
    >>> found.outcome.claims[0].agrees
    True
    """
    if name not in ANALYSES:
        raise ValueError(f"name must be one of {', '.join(ANALYSES)}, got {name!r}.")
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got {size!r}.")
    if only is not None and (name != "datasets" or isinstance(only, str)):
        raise ValueError(f'only must be a list of data sets, and name "datasets", got {only!r} and {name!r}.')
    root_seed(random_state)
    check_n_jobs(n_jobs)
    folder = data if data is not None else os.environ.get("SIMDIMS_DATA") or None
    if folder is not None and not Path(folder).is_dir():
        source = "data" if data is not None else "SIMDIMS_DATA"
        raise FileNotFoundError(f"{source} must be a folder, got {os.fspath(folder)!r}, which is not there.")
    settings = Settings(
        size=size,
        seed=int(random_state),
        data=None if folder is None else Path(folder),
        checkpoint=None if checkpoint is None else Path(checkpoint),
        only=None if only is None else tuple(only),
        n_jobs=n_jobs,
        progress=progress,
    )
    module = import_module(f"simdims.reproduce.{name.replace('-', '_')}")
    with _timed(settings, name) as seconds:
        outcome = module.run(settings)
    return Reproduction(name, ANALYSES[name], settings, outcome, seconds[0])


@contextmanager
def _timed(settings: Settings, name: str) -> Iterator[list[float]]:
    """The seconds that the body takes, in a list that is filled at its end, with those of earlier runs.

    They are kept in the checkpoint, also where the run is stopped; those of a run that is killed are lost.
    """
    seconds: list[float] = []
    began = time.perf_counter()
    try:
        yield seconds
    finally:
        seconds.append(time.perf_counter() - began)
        if settings.checkpoint is not None and settings.checkpoint.is_dir():
            path = settings.checkpoint / f"{name}-{settings.size}-{settings.seed}.seconds"
            seconds[0] += float(path.read_text()) if path.exists() else 0.0
            with replacing(path) as part:
                part.write_text(f"{seconds[0]:.3f}")
