"""Text on its way to a terminal or a program: nothing in it is invisible, turns the writing or steers the terminal."""

from __future__ import annotations

import json
import sys
import unicodedata

#: Control and format characters, lone surrogates, and separators of lines other than a line feed.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}

#: Format characters that belong to words: Persian and Indic scripts and emoji are spelled with them.
_OF_WORDS = "\u200c\u200d"


def write(text: str) -> None:
    """Write what was found to stdout."""
    sys.stdout.write(f"{visible(text, getattr(sys.stdout, 'encoding', None) or 'utf-8')}\n")
    sys.stdout.flush()


def say(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"simdims: {visible(' '.join(message.splitlines()))}\n")


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""A text with all that cannot be seen, or not be encoded, as JSON escapes it: a right-to-left override is \u202e.

    JSON stays the same JSON.
    """
    return "".join(
        letter if letter == "\n" or (_is_seen(letter) and _has(encoding, letter)) else json.dumps(letter)[1:-1]
        for letter in text
    )


def _is_seen(letter: str) -> bool:
    return letter in _OF_WORDS or unicodedata.category(letter) not in _UNSEEN


def _has(encoding: str, letter: str) -> bool:
    if letter.isascii():
        return True
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
