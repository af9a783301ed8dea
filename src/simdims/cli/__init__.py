"""The command line: `simdims ...`, one subcommand for one public function.

What a subcommand needs is imported when it runs, so that `--help` is quick. A command returns what it found, and `main`
alone writes it: to stdout, in words or (--json) as one JSON object. Everything else that is said goes to stderr.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from simdims import __version__
from simdims.cli import completion, demo, discover, evaluate, fits, inference, report, selection, sources
from simdims.cli.contents import contents
from simdims.cli.options import UsageError, check_running, number, whole
from simdims.cli.outputs import as_json
from simdims.cli.sentences import in_options
from simdims.cli.terminal import say, write

#: Errors that are sentences about data, files and values.
_REFUSALS = (ValueError, TypeError, OSError, MemoryError, ImportError, ArithmeticError)


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
    with _noticing_interrupts() as interrupts:
        try:
            return _run(arguments, options)
        except KeyboardInterrupt:
            return _interrupted(options)
        except Exception as error:
            if interrupts:  # compiled code may turn an interrupt into an error of its own
                return _interrupted(options)
            if isinstance(error, BrokenPipeError):  # whoever was reading has read enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 1
            if isinstance(error, UsageError):
                say(f"error: {error}")
                return 2
            if isinstance(error, _REFUSALS):
                say(f"error: {in_options(_sentence(error), options)}")
                return 1
            raise


def _run(arguments: Sequence[str] | None, options: argparse.Namespace) -> int:
    """Do what the words ask for, and write what was found."""
    top = parser()
    completion.answer_shell(top)
    try:
        _, strangers = top.parse_known_args(arguments, options)
    except SystemExit as end:  # --help and --version have done their work
        return int(end.code or 0)
    if strangers:
        options.command.error(f"unrecognized arguments: {' '.join(strangers)}")
    with _reporting(options):
        check_running(options)
        found = options.run(options)
        write(as_json(found.plain()) if options.json else found.text())
    return 0


def _interrupted(options: argparse.Namespace) -> int:
    if getattr(options, "checkpoint", None) is not None:
        say(f"interrupted; the same command goes on from {options.checkpoint}")
    return 130


@contextmanager
def _noticing_interrupts() -> Iterator[list[int]]:
    """A list that holds something once Ctrl-C was pressed, whatever became of the KeyboardInterrupt."""
    interrupts: list[int] = []
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield interrupts
        return

    def notice(number: int, frame: Any) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, notice)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _sentence(error: Exception) -> str:
    """What is wrong, where the system or Python says it in a sentence of ours."""
    if isinstance(error, OSError) and error.strerror:
        place = "a file" if error.filename is None else repr(os.fsdecode(error.filename))
        return f"{place} could not be read or written: {error.strerror.lower()}."
    if isinstance(error, MemoryError) and not str(error):
        return "this must fit into memory, and does not."
    if isinstance(error, ArithmeticError):
        return "numbers must be of a size that can be computed with, got one that is too large or too small."
    return str(error)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a command as main says everything that is wrong."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.register("type", int, whole)
        self.register("type", float, number)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # -1e3 is a number too

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
    for room in (discover, demo, report, sources, selection, fits, evaluate, inference, completion):
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
            warnings.showwarning = lambda message, *rest, **more: say(f"warning: {in_options(str(message), options)}")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Log(logging.Handler):
    """Says what is logged as main says everything."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))
