"""The command line: `simdims ...`, one subcommand for one public function.

What a subcommand needs is imported when it runs, so that `--help` is quick.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from simdims import __version__
from simdims.cli import evaluate, fits, inference, report, selection, sources


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after `simdims`; by default those of this process.

    Returns
    -------
    int
        0, or 2 after one line on stderr that says what is wrong with the input, or 130 after an interrupt.

    Examples
    --------
    >>> from simdims.cli import main
    >>> main(["--version"])
    simdims 0.1.0
    0
    """
    try:
        options = _parser().parse_args(arguments)
        with _reporting(options.verbose):
            options.run(options)
    except SystemExit as end:  # --help and --version have done their work
        return int(end.code or 0)
    except KeyboardInterrupt:
        return 130
    except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
        _say(f"error: {error}")
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a command as main says everything that is wrong."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="simdims", description="Find the dimensions behind similarities.")
    parser.add_argument("--version", action="version", version=f"simdims {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for room in (sources, selection, fits, report, evaluate, inference):
        room.add(commands)
    return parser


@contextmanager
def _reporting(verbose: bool) -> Iterator[None]:
    """Say warnings, and with `verbose` what is logged, in one line each."""
    handler = _Log(logging.INFO)
    logger = logging.getLogger("simdims")
    level = logger.level
    if verbose:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *rest, **more: _say(f"warning: {message}")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Log(logging.Handler):
    """Says what is logged as main says everything."""

    def emit(self, record: logging.LogRecord) -> None:
        _say(self.format(record))


def _say(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"simdims: {' '.join(message.splitlines())}\n")
