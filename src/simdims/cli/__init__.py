"""The command line: `simdims ...`, one subcommand per public function.

Imports are deferred to the commands, so that `--help` is fast. Commands return their findings, and only `main` writes
them to stdout, as text or (--json) as one JSON object. Everything else goes to stderr.
"""

from __future__ import annotations

import argparse
import difflib
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
from simdims.cli import (
    check,
    completion,
    config,
    demo,
    discover,
    evaluate,
    export,
    inference,
    meaning,
    plan,
    report,
    sources,
    steps,
    systems,
    uncertainty,
)
from simdims.cli.contents import contents
from simdims.cli.options import UsageError, check_running, number, say_if_resumed, whole
from simdims.cli.outputs import as_json
from simdims.cli.spelling import in_options
from simdims.cli.terminal import say, write

#: Errors in data, files and values, which are reported on one line.
_REPORTED = (ValueError, TypeError, OSError, MemoryError, ImportError, ArithmeticError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after `simdims`; by default those of this process.

    Returns
    -------
    int
        0 for success; 1 if the data, a file or a value is invalid and 2 if the command is, both with one line on
        stderr; 130 after an interrupt, and 143 after a request to end (SIGTERM), as clusters send it.

    Examples
    --------
    >>> from simdims.cli import main
    >>> main(["--version"])
    simdims 0.1.0
    0
    """
    top, options = parser(), argparse.Namespace()
    with _noticing_interrupts() as interrupts:
        try:
            return _run(top, arguments, options)
        except KeyboardInterrupt:
            return _interrupted(options, interrupts)
        except Exception as error:
            if interrupts:  # compiled code may turn an interrupt into another error
                return _interrupted(options, interrupts)
            if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 1
            if isinstance(error, _REPORTED):
                say(f"error: {_of_the_system(error) or in_options(error, top, options)}")
                return 2 if isinstance(error, UsageError) else 1
            raise


def _run(top: argparse.ArgumentParser, arguments: Sequence[str] | None, options: argparse.Namespace) -> int:
    completion.answer_shell(top)
    if not (sys.argv[1:] if arguments is None else arguments):
        arguments = ["--help"]
    try:
        _, unknown = top.parse_known_args(arguments, options)
        if getattr(options, "config", None) is not None:
            values = config.apply(options.config, options.command)
            top.parse_known_args(arguments, options)
            options.from_config = [name for name, value in values.items() if getattr(options, name) == value]
    except SystemExit as end:  # --help and --version exit
        return int(end.code or 0)
    if unknown:
        close = difflib.get_close_matches(unknown[0], options.command._option_string_actions, 1, cutoff=0.75)
        meant = f"; did you mean {close[0]}?" if close else ""
        options.command.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    if "config" in options:
        config.require(options)
    with _reporting(top, options):
        check_running(options)
        say_if_resumed(options)
        found = options.run(options)
        write(as_json(found.plain()) if options.json else found.text())
    return 0


def _interrupted(options: argparse.Namespace, interrupts: list[int]) -> int:
    if getattr(options, "checkpoint", None) is not None:
        say(f"interrupted; run the same command again to resume from {options.checkpoint}")
    return 128 + (interrupts or [signal.SIGINT])[0]


@contextmanager
def _noticing_interrupts() -> Iterator[list[int]]:
    """Yield a list of the signals to end that arrive (Ctrl-C is one), even if the KeyboardInterrupt is lost."""
    interrupts: list[int] = []
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    is_main = threading.current_thread() is threading.main_thread()
    noticed = [one for one in usual if is_main and signal.getsignal(one) is usual[one]]

    def notice(one: int, frame: Any) -> None:
        interrupts.append(one)
        signal.default_int_handler(one, frame)

    for one in noticed:
        signal.signal(one, notice)
    try:
        yield interrupts
    finally:
        for one in noticed:
            signal.signal(one, usual[one])


def _of_the_system(error: Exception) -> str | None:
    """A sentence for Python and system errors that have no readable message."""
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f": {os.fsdecode(error.filename)!r}"
        return f"{error.strerror}{place}."
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return re.sub(r"^device='(.+?)'", r"--device \1", str(error))
    if isinstance(error, MemoryError) and not str(error):
        return "Not enough memory."
    if isinstance(error, ArithmeticError):
        return "The numbers are too large or too small to compute with."
    return None


class _Parser(argparse.ArgumentParser):
    """Raise errors for `main` to report."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.register("type", int, whole)
        self.register("type", float, number)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # accept -1e3 as a number

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [] if action.choices is None or value in action.choices else list(map(str, action.choices))
        if close := difflib.get_close_matches(str(value), choices, 1):
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {close[0]!r}?")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


class _Top(_Parser):
    """The top-level parser, whose help is a table of contents."""

    def format_help(self) -> str:
        return contents(self)


def parser() -> argparse.ArgumentParser:
    """The complete parser with all commands."""
    top = _Top(prog="simdims")
    top.add_argument("--version", action="version", version=f"simdims {__version__}", help="print the version")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    of_results = (evaluate, inference, uncertainty, meaning, systems)
    for module in (discover, check, demo, report, export, sources, plan, steps, *of_results, completion):
        module.add(commands)
    return top


@contextmanager
def _reporting(top: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[None]:
    """Print warnings and, with --verbose, log messages, on one line each; repeated warnings once."""
    said: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = in_options(message, top, options)
        if text not in said:
            say(f"warning: {text}")
        said.add(text)

    handler = _Log(logging.INFO)
    logger = logging.getLogger("simdims")
    level = logger.level
    if options.verbose:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Log(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))
