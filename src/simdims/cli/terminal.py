"""Write to a terminal or pipe, with invisible and control characters escaped."""

from __future__ import annotations

import json
import sys
import unicodedata

#: Control and format characters, lone surrogates, and line separators other than a line feed.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}

#: Format characters that occur in words of Persian and Indic scripts, and in emoji.
_OF_WORDS = "\u200c\u200d"


def write(text: str) -> None:
    """Write the result to stdout."""
    sys.stdout.write(f"{visible(text, getattr(sys.stdout, 'encoding', None) or 'utf-8')}\n")
    sys.stdout.flush()


def say(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"simdims: {visible(' '.join(message.splitlines()))}\n")


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
