"""Words that sentences share, and warnings at the caller's line."""

from __future__ import annotations

import sys
import warnings

N_NAMED = 5


def shortlist(names: list[str]) -> str:
    rest = len(names) - N_NAMED
    return ", ".join(names[:N_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def warn(sentence: str) -> None:
    """Warn at the first line above that is not simdims' own."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "simdims":
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, UserWarning, stacklevel=level)
