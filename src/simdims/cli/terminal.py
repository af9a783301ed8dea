"""Write to a terminal or pipe, with invisible and control characters escaped."""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simdims._progress import Progress

#: Control and format characters, lone surrogates, and line separators other than a line feed.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}

#: Seconds before the first line about a run, and at least between two.
_FIRST_LINE = 60.0

#: Format characters that occur in words of Persian and Indic scripts, and in emoji.
_OF_WORDS = "\u200c\u200d"


def write(text: str) -> None:
    """Write the result to stdout."""
    sys.stdout.write(f"{visible(text, getattr(sys.stdout, 'encoding', None) or 'utf-8')}\n")
    sys.stdout.flush()


def say(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"simdims: {visible(' '.join(message.splitlines()))}\n")


class LoggedProgress:
    """Lines on stderr about a long run, for log files: one after a minute, and then fewer the longer the run lasts."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._next = self._began + _FIRST_LINE

    def __call__(self, progress: Progress) -> None:
        """Write a line if it is time for one."""
        now = time.monotonic()
        if now < self._next:
            return
        from simdims.discovery.estimate import in_words

        self._next = now + max(_FIRST_LINE, 0.1 * (now - self._began))
        left = "" if progress.seconds_left is None else f", about {in_words(progress.seconds_left)} left of this stage"
        last = f" (last: {progress.detail})" if progress.detail else ""
        say(f"{progress.stage}: {progress.done:,} of {progress.total:,} done{last}{left}")


def is_terminal() -> bool:
    """Whether stderr is a terminal, which can show a bar."""
    return sys.stderr is not None and sys.stderr.isatty()


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""Escape, as JSON does, characters that are invisible or cannot be encoded: a right-to-left override is \u202e."""
    return "".join(
        letter if letter == "\n" or _is_visible(letter, encoding) else json.dumps(letter)[1:-1] for letter in text
    )


def _is_visible(letter: str, encoding: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return letter in _OF_WORDS or unicodedata.category(letter) not in _UNSEEN
