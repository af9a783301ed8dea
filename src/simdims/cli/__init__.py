"""The command line: `simdims ...`, one subcommand for one public function.

What a subcommand needs is imported when it runs, so that `--help` is quick. A command returns what it found, and `main`
alone writes it: to stdout, in words or (--json) as one JSON object. Everything else that is said goes to stderr.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from simdims import __version__
from simdims.cli import completion, demo, discover, evaluate, fits, inference, report, reproduce, selection, sources
from simdims.cli.contents import contents
from simdims.cli.options import UsageError, as_json
from simdims.cli.sentences import in_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after `simdims`; by default those of this process.

    Returns
    -------
    int
        0; or, after one line on stderr, 1 where the data, a file or a value was refused and 2 where the command was not
        understood; or 130 after an interrupt.

    Examples
    --------
    >>> from simdims.cli import main
    >>> main(["--version"])
    simdims 0.1.0
    0
    """
    options = argparse.Namespace()
    try:
        parser().parse_args(arguments, options)
        with _reporting(options):
            found = options.run(options)
            _write(as_json(found.values) if options.json else found.words)
    except SystemExit as end:  # --help and --version have done their work
        return int(end.code or 0)
    except KeyboardInterrupt:
        if getattr(options, "checkpoint", None) is not None:
            _say(f"interrupted; the same command goes on from {options.checkpoint}")
        return 130
    except UsageError as error:
        _say(f"error: {error}")
        return 2
    except BrokenPipeError:  # whoever was reading has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
        _say(f"error: {in_options(str(error), options)}")
        return 1
    return 0


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a command as main says everything that is wrong."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


class _Top(_Parser):
    """The parser of the whole line, whose help is a table of contents."""

    def format_help(self) -> str:
        return contents(self)


def parser() -> argparse.ArgumentParser:
    """The parser of the command line, with all its commands."""
    top = _Top(prog="simdims")
    top.add_argument("--version", action="version", version=f"simdims {__version__}", help="say the version")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for room in (discover, demo, report, sources, selection, fits, evaluate, inference, reproduce, completion):
        room.add(commands)
    return top


@contextmanager
def _reporting(options: argparse.Namespace) -> Iterator[None]:
    """Say warnings, and with --verbose what is logged, in one line each."""
    handler = _Log(logging.INFO)
    logger = logging.getLogger("simdims")
    level = logger.level
    if options.verbose:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *rest, **more: _say(f"warning: {in_options(str(message), options)}")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Log(logging.Handler):
    """Says what is logged as main says everything."""

    def emit(self, record: logging.LogRecord) -> None:
        _say(self.format(record))


def _write(text: str) -> None:
    """Write what was found to stdout."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _say(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"simdims: {' '.join(message.splitlines())}\n")
