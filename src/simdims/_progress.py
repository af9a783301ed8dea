"""Progress of long runs: a bar, or calls of a function."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from simdims._parameters import ParameterTypeError, shown


@dataclass(frozen=True)
class Progress:
    """Progress of a run; passed to a function given as ``progress=``.

    Attributes
    ----------
    stage : str
        The current stage.
    done, total : int
        Tasks of this stage; `total` may grow if later tasks depend on earlier ones.
    detail : str
        The task that ended last, such as "rank 12"; may be empty.
    seconds : float
        Time since the stage began.
    seconds_left : float or None
        Estimated from the tasks completed in this run; None before the first.
    """

    stage: str
    done: int
    total: int
    detail: str
    seconds: float
    seconds_left: float | None


Callback = Callable[[Progress], Any]


class Reporter:
    """Reports progress; call `step` after every task."""

    def __init__(self, tell: Callback | None, show_bar: bool) -> None:
        self._tell, self._show_bar = tell, show_bar
        self._bar: Any = None
        self._stage, self._done, self._total, self._found, self._began = "", 0, 0, 0, time.monotonic()

    def begin(self, stage: str, total: int, done: int = 0) -> None:
        """Start a stage of `total` tasks, of which `done` were completed in an earlier run."""
        self.close()
        self._stage, self._total, self._done, self._found = stage, total, done, done
        self._began = time.monotonic()
        if self._show_bar:
            self._bar = _bar(stage, total, done)

    def extend(self, n_tasks: int, done: int = 0) -> None:
        """Add tasks to the stage, of which `done` were completed in an earlier run."""
        self._total += n_tasks
        self._done += done
        self._found += done
        if self._bar is not None:
            self._bar.total = self._total
            self._bar.update(done)

    def step(self, detail: str = "") -> None:
        """Count one more completed task."""
        self._done += 1
        if self._bar is not None:
            if detail:
                self._bar.set_postfix_str(detail, refresh=False)
            self._bar.update(1)
        if self._tell is not None:
            self._tell(self._progress(detail))

    def close(self) -> None:
        """End the stage."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _progress(self, detail: str) -> Progress:
        seconds = time.monotonic() - self._began
        new = self._done - self._found
        left = seconds / new * (self._total - self._done) if new else None
        return Progress(self._stage, self._done, self._total, detail, seconds, left)


@contextmanager
def reporting(progress: bool | Callback | None) -> Iterator[Reporter]:
    """A Reporter for the argument `progress`; None shows a bar in notebooks and terminals."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ParameterTypeError("progress", "must be None, True, False or a function", shown(progress))
    tell = progress if callable(progress) else None
    reporter = Reporter(tell, show_bar=progress is True or (progress is None and _is_watched()))
    try:
        yield reporter
    finally:
        reporter.close()


def _is_watched() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _bar(stage: str, total: int, done: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm warns of notebooks without widgets
        from tqdm.auto import tqdm
    return tqdm(desc=stage, total=total, initial=done, unit="fit", dynamic_ncols=True, smoothing=0.1)
