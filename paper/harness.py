"""Shared by all analyses: settings, claims, resumable tasks, and writing results."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from matplotlib import pyplot
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

from simdims import __version__, simulate
from simdims.plots import save_figure

#: The analyses and their places in the paper. Modules have the same names, with "_" for "-".
ANALYSES = {
    "recovery": "Fig. 2a, b: dimensions recovered from simulated similarities, by complexity and noise",
    "missing": "Fig. 2c: recovery from incomplete similarities, compared with imputation",
    "rank": "Fig. 2d: the number of dimensions found, compared with the scree test and parallel analysis",
    "power": "Fig. 3 and Supplement: power of the dimension test, compared with RSA",
    "datasets": "Fig. 4 and Supplementary Table: ranks, fit and reliability of the empirical data sets",
    "things": "Fig. S1: odd-one-out choices predicted from dimensions, compared with SPoSE",
    "words": "Fig. 5 and Supplement: dimensions of word associations, ratings, word similarity and links",
    "misspecified-rank": "Supplement: error of the dimensions when their number is wrong, and its lower bound",
    "leakage": "Supplement: why held-out similarities leak, and the plateau of entrywise cross-validation",
    "convergence": "Supplement: the augmented Lagrangian for rho below and above the square root of 2",
}

SIZES = ("smoke", "quick", "full")

#: One task of an analysis, or its result: JSON values by name.
Cell = dict[str, Any]
Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Settings:
    """How much of an analysis to run, and where; see `reproduce`."""

    size: str = "full"
    seed: int = 0
    data: Path | None = None
    checkpoint: Path | None = None
    only: tuple[str, ...] | None = None
    n_jobs: int | None = None
    progress: bool | None = None

    @property
    def is_smoke(self) -> bool:
        """Whether the run is too small to judge anything."""
        return self.size == "smoke"

    def pick(self, smoke: Choice, quick: Choice, full: Choice) -> Choice:
        """The value for this size."""
        return {"smoke": smoke, "quick": quick, "full": full}[self.size]

    def verdict(self, holds: Any) -> bool | None:
        """Whether a statement holds; None for a smoke run."""
        return None if self.is_smoke else bool(holds)

    def seeds(self, smoke: int, quick: int, full: int) -> list[int]:
        """One seed per data set, for the number of data sets at this size."""
        return [seed_of(self.seed, number) for number in range(self.pick(smoke, quick, full))]

    def folder(self, name: str) -> Path | None:
        """The checkpoint folder of one part of the analysis."""
        return None if self.checkpoint is None else self.checkpoint / name

    def options(self, name: str) -> dict[str, Any]:
        """Arguments for simdims functions that run many fits."""
        return {
            "checkpoint": self.folder(name),
            "random_state": self.seed,
            "n_jobs": self.n_jobs,
            "progress": self.progress,
        }

    def find_file(self, *names: str, what: str, where: str) -> Path:
        """The first of the named files that exists in the data folder."""
        for name in names:
            if self.data is not None and (self.data / name).exists():
                return self.data / name
        wanted = " or ".join(repr(name) for name in names)
        searched = "No data folder was given" if self.data is None else f"{os.fspath(self.data)!r} does not contain it"
        raise FileNotFoundError(f"No such file: {wanted} ({what}). {searched}. Get it from {where}.")


class Claim(NamedTuple):
    """A statement of the paper and the result of this run.

    `agrees` is None if this run cannot tell. `in_paper` is False for other references: a known truth, or an earlier
    measurement.
    """

    what: str
    published: str
    ours: str
    agrees: bool | None
    in_paper: bool = True

    @property
    def verdict(self) -> str:
        """`agrees` as text."""
        if self.agrees is None:
            return "undecided"
        return ("as published" if self.in_paper else "agrees, not in the paper") if self.agrees else "differs"


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of an analysis: claims, tables by heading, remarks, and a function that draws the figure."""

    claims: list[Claim]
    tables: dict[str, pd.DataFrame]
    remarks: list[str] = field(default_factory=list)
    draw: Callable[[], Figure] | None = None


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One finished run of an analysis; `seconds` does not include the figure or earlier runs of a checkpoint."""

    name: str
    settings: Settings
    outcome: Outcome
    seconds: float
    resumed: bool

    def to_dict(self) -> dict[str, Any]:
        """Everything except the figure, as JSON values."""
        return {
            "name": self.name,
            "title": ANALYSES[self.name],
            "version": __version__,
            "size": self.settings.size,
            "seed": self.settings.seed,
            "data": self.settings.data is not None,
            "only": self.settings.only,
            "seconds": round(self.seconds, 1),
            "resumed": self.resumed,
            "claims": [claim._asdict() for claim in self.outcome.claims],
            "tables": {
                name: json.loads(table.to_json(orient="records")) for name, table in self.outcome.tables.items()
            },
            "remarks": self.outcome.remarks,
        }

    def summary(self) -> str:
        """Claims, tables and remarks as text."""
        lines = [f"{self.name} ({self.settings.size}): {ANALYSES[self.name]}", ""]
        for claim in self.outcome.claims:
            lines += [
                claim.what,
                f"  published: {claim.published}",
                f"  here:      {claim.ours}",
                f"  {claim.verdict}",
                "",
            ]
        for heading, table in self.outcome.tables.items():
            lines += [heading, table.to_string(index=False, float_format=as_text), ""]
        return "\n".join(lines + self.outcome.remarks).rstrip()

    def save(self, folder: Path) -> list[Path]:
        """Write NAME.json, NAME.txt, NAME.png and NAME.pdf to a folder and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{self.name}.json", folder / f"{self.name}.txt"]
        write_text(paths[0], json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")
        write_text(paths[1], self.summary() + "\n")
        if self.outcome.draw is not None:
            figure = self.outcome.draw()
            for path in (folder / f"{self.name}.png", folder / f"{self.name}.pdf"):
                save_figure(figure, path, dpi=200)
                paths.append(path)
            pyplot.close(figure)
        return paths


def reproduce(
    name: str,
    *,
    size: str = "full",
    data: str | os.PathLike[str] | None = None,
    only: Sequence[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Reproduction:
    """Run one analysis of the paper; the arguments are those of ``python -m paper --help``.

    "smoke" checks in seconds that the analysis runs, "quick" shows the direction of the results in minutes, and "full"
    can be compared with the paper. `only` names data sets of "datasets". Results do not depend on `n_jobs`. `progress`
    says whether to show progress bars; None shows them in a terminal.
    """
    if name not in ANALYSES:
        raise ValueError(f"name must be one of {', '.join(ANALYSES)}, got {name!r}.")
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got {size!r}.")
    if only is not None and (name != "datasets" or isinstance(only, str)):
        raise ValueError(f'only must be a list of data sets, for name="datasets", got {only!r} for {name!r}.')
    if not 0 <= random_state < 2**32:
        raise ValueError(f"random_state must be between 0 and 2**32 - 1, got {random_state}.")
    data = data if data is not None else os.environ.get("SIMDIMS_DATA") or None
    if data is not None and not Path(data).is_dir():
        raise FileNotFoundError(
            f"No such folder: {os.fspath(data)!r}. Set data or SIMDIMS_DATA to a folder of data files."
        )
    settings = Settings(
        size,
        int(random_state),
        None if data is None else Path(data),
        None if checkpoint is None else Path(checkpoint),
        None if only is None else tuple(only),
        n_jobs,
        progress,
    )
    resumed = settings.checkpoint is not None and settings.checkpoint.is_dir() and any(settings.checkpoint.iterdir())
    began = time.perf_counter()
    outcome = import_module(f"paper.{name.replace('-', '_')}").run(settings)
    return Reproduction(name, settings, outcome, time.perf_counter() - began, resumed)


def run_each(settings: Settings, name: str, measure: Callable[[Cell], Cell], cells: Sequence[Cell]) -> list[Cell]:
    """Measure every cell and return {**cell, **measured}, in the order of the cells.

    With a checkpoint, each finished cell is one JSON file in the folder `name`; cells whose file exists are not
    measured again. `measure` is a module-level function, or a partial of one; cells and results are JSON values.
    """
    folder = settings.folder(name)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    results = Parallel(n_jobs=settings.n_jobs, return_as="generator", batch_size=1)(
        delayed(_measured)(measure, cell, folder) for cell in cells
    )
    hide = None if settings.progress is None else not settings.progress
    measured = list(tqdm(results, desc=name, total=len(cells), disable=hide))
    return [{**cell, **found} for cell, found in zip(cells, measured, strict=True)]


def _measured(measure: Callable[[Cell], Cell], cell: Cell, folder: Path | None) -> Cell:
    if folder is None:
        return measure(cell)
    path = folder / f"{hashlib.sha256(json.dumps(cell, sort_keys=True).encode()).hexdigest()[:32]}.json"
    if not path.exists():
        write_text(path, json.dumps(measure(cell)))
    return json.loads(path.read_text(encoding="utf-8"))


def write_text(path: Path, text: str) -> None:
    """Write a file that is complete or absent, even if the process is killed."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def seed_of(root: int, *task: int) -> int:
    """The seed of a task named by integers: independent of the order in which tasks run."""
    return int(np.random.SeedSequence(root, spawn_key=task).generate_state(1, np.uint32)[0])


def as_text(value: Any) -> str:
    """A table entry with three digits, or an integer from 100 on; empty if missing."""
    if value is None or value != value:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def is_positive(mean: float, standard_error: float) -> bool | None:
    """Whether a difference is positive; None if its 95% interval contains 0."""
    return None if abs(mean) <= 1.96 * standard_error else bool(mean > 0)


def design(settings: Settings, n_repeats: int, levels: Mapping[str, Iterable[Any]], **common: Any) -> list[Cell]:
    """One cell per combination of levels and repeat.

    Seeds differ between repeats and between embeddings (alpha and rank), but not between treatments of one embedding.
    """
    cells = [dict(zip(levels, values, strict=True)) for values in itertools.product(*levels.values())]
    return [
        {**common, **cell, "seed": seed_of(settings.seed, repeat, int(cell["rank"]), round(1000 * cell["alpha"]))}
        for repeat in range(n_repeats)
        for cell in cells
    ]


class Simulated(NamedTuple):
    """An embedding, its similarities W W^T, those with noise and missing pairs, and a seed for fits to them."""

    W: NDArray[np.float64]
    truth: NDArray[np.float64]
    S: NDArray[np.float64]
    fit_seed: int


def simulate_cell(cell: Cell) -> Simulated:
    """Rows of W from a Dirichlet distribution, noise on W W^T, and a share `observed` of its pairs."""
    W = simulate.dirichlet(cell["n_items"], cell["rank"], alpha=cell["alpha"], random_state=seed_of(cell["seed"], 0))
    truth = W @ W.T
    S = np.asarray(simulate.add_noise(truth, cell["snr"], random_state=seed_of(cell["seed"], 1)))
    if cell.get("observed", 1.0) < 1:
        S = np.asarray(simulate.mask_pairs(S, cell["observed"], random_state=seed_of(cell["seed"], 2)))
    return Simulated(W, truth, S, seed_of(cell["seed"], 3))
