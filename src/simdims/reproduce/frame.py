"""What every analysis is made of: how much to run, what came out, and a loop over data sets that can be killed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from simdims._journal import Journal
from simdims._parallel import run_tasks
from simdims._progress import Callback, reporting

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SIZES = ("smoke", "quick", "full")

#: One data set of an analysis: plain values under names.
Cell = dict[str, Any]
Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Settings:
    """How much of an analysis is run, and where.

    Parameters
    ----------
    size : {"smoke", "quick", "full"}, default="full"
        Seconds, minutes, or what the paper did.
    seed : int, default=0
        Seed of everything.
    data : path, optional
        A folder with the files that the analysis reads; None where it has to do without.
    checkpoint : path, optional
        A folder for finished work; see `run_each`.
    only : tuple of str, optional
        Of "datasets" alone: those to run.
    n_jobs : int or None, default=None
        Processes.
    progress : bool, function or None, default=None
        As in `simdims.select_rank`.
    """

    size: str = "full"
    seed: int = 0
    data: Path | None = None
    checkpoint: Path | None = None
    only: tuple[str, ...] | None = None
    n_jobs: int | None = None
    progress: bool | Callback | None = None

    def pick(self, smoke: Choice, quick: Choice, full: Choice) -> Choice:
        """What belongs to this size."""
        return {"smoke": smoke, "quick": quick, "full": full}[self.size]

    def folder(self, name: str) -> Path | None:
        """Where the part of that name keeps its finished work."""
        return None if self.checkpoint is None else self.checkpoint / name


class Claim(NamedTuple):
    """Something the paper says, and what this run says to it.

    `agrees` is None where this run cannot tell: too small, or other data. `in_paper` is False of what somebody else
    said: a known truth, or an earlier measurement.
    """

    what: str
    published: str
    ours: str
    agrees: bool | None
    in_paper: bool = True

    @property
    def verdict(self) -> str:
        """`agrees` in words."""
        if self.agrees is None:
            return "cannot be told from this run"
        return ("as published" if self.in_paper else "agrees, not in the paper") if self.agrees else "differs"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an analysis found.

    Parameters
    ----------
    claims : list of Claim
        Published values beside ours.
    tables : dict of DataFrame
        The numbers behind the figure, under their headings.
    remarks : list of str
        Sentences: what was run, where it differs from the paper, and why.
    draw : function
        Draws the figure and returns it; None where there is nothing to draw.
    """

    claims: list[Claim]
    tables: dict[str, pd.DataFrame]
    remarks: list[str] = field(default_factory=list)
    draw: Callable[[], Figure] | None = None


def run_each(
    settings: Settings, name: str, measure: Callable[[Cell], Cell], cells: Sequence[Cell], stage: str = "data sets"
) -> list[Cell]:
    """Measure every cell and return {**cell, **measured}, in the order of the cells.

    `measure` is a function at the top of a module; cells and what it returns are plain values (text, numbers, lists).
    With ``settings.checkpoint`` every finished cell is on disk before the next one ends, in the folder `name` there; a
    run that was stopped goes on from it, and a larger one takes over what is there. Results do not depend on
    ``settings.n_jobs``.
    """
    done: dict[str, Cell] = {}
    with ExitStack() as stack:
        report = stack.enter_context(reporting(settings.progress))
        journal = None
        if settings.checkpoint is not None:
            journal = stack.enter_context(Journal(settings.checkpoint / name, {"analysis": name}))
            done = {_key(record["cell"]): record["measured"] for record in journal.records}
        missing = [cell for cell in cells if _key(cell) not in done]
        report.begin(stage, len(cells), done=len(cells) - len(missing))
        for cell, measured in run_tasks(_measured, (measure,), missing, n_jobs=settings.n_jobs, one_by_one=True):
            done[_key(cell)] = measured
            if journal is not None:
                journal.append({"cell": cell, "measured": measured})
            report.step()
    return [{**cell, **done[_key(cell)]} for cell in cells]


def _measured(measure: Callable[[Cell], Cell], cell: Cell) -> tuple[Cell, Cell]:
    return cell, measure(cell)


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)


def need_file(settings: Settings, *names: str, what: str, where: str) -> Path:
    """The first of some files that the data folder holds; where there is none, say what to get and from where."""
    for name in names:
        if settings.data is not None and (settings.data / name).exists():
            return settings.data / name
    wanted = " or ".join(repr(name) for name in names)
    looked = "no folder was given" if settings.data is None else f"{os.fspath(settings.data)!r} does not hold it"
    raise FileNotFoundError(f"data must be a folder with {wanted}: {what}. {looked}; get it from {where}.")
