"""Translate library arguments and functions in errors and warnings to command line options and commands."""

from __future__ import annotations

import argparse
from typing import Any

from simdims._parameters import ParameterError, SimdimsWarning, in_python
from simdims.cli.contents import subcommands

#: Options are stored under the names of arguments, except these.
_IN_PYTHON = {
    "landmarks": ("n_landmarks",),
    "labels": ("label_column",),
    "source": ("path", "S", "W", "D", "X", "table", "embedding", "triplets", "y", "W1", "S1"),
    "other": ("W2", "S2"),
    "folder": ("result", "embedding", "found"),
    "answers": ("triplets", "table"),
    "ratings": ("pairs",),
    "lineage": ("ranks",),
    "dimensions": ("n_components",),
    "tests": ("hypotheses",),
    "features": ("X",),
    "table_sheet": ("sheet",),
    "table_na_values": ("na_values",),
}

_COMMANDS = {
    "as_similarity": "discover",
    "load_similarity": "discover",
    "Similarity.save": "similarity",
    "discover": "discover",
    "Discovery.save": "discover",
    "calibrate": "calibrate",
    "select_rank": "select-rank",
    "plan_study": "plan",
    "fit_consensus": "consensus",
    "dimension_test": "test",
    "rsa_test": "rsa",
    "bootstrap": "bootstrap",
    "weight_test": "weights",
    "compare_embeddings": "compare",
    "Bootstrap.save": "bootstrap",
}


def in_options(said: Exception, top: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """The text of an error or warning, with arguments as options of the current command and functions as commands."""
    if not isinstance(said, ParameterError | SimdimsWarning) or "command" not in options:
        return str(said)
    spelling = Spelling(top, options)
    if isinstance(said, SimdimsWarning):
        return said.sentence(spelling)
    # The value of an option that was not given is not shown.
    return said.sentence(spelling.subject(said.name), spelling, shows_none=False)


class Spelling:
    """How names are written in messages of a command; see `simdims._parameters.spelled`."""

    def __init__(self, top: argparse.ArgumentParser, options: argparse.Namespace) -> None:
        self._top, self._command = top, options.command
        self._config = getattr(options, "config", None)
        self._from_config = {option_of(options.command, name) for name in getattr(options, "from_config", ())}
        self._names = _names(options.command)
        # Labels come from a column, a separate file or the data; in the last case no option is involved.
        namers = [name for name in ("labels", "label_file", "item") if option_of(options.command, name) is not None]
        given = [name for name in namers if getattr(options, name, None) is not None]
        self._labels = option_of(options.command, given[0]) if given else None
        self._names.pop("labels", None)
        if namers:
            # With --item, it and --label-file name the items of the embedding, and --labels those of another table.
            of_embeddings = ("item", "label_file") if {"item", "labels"} <= {*namers} else ("item",)
            of_tables = [name for name in namers if name not in of_embeddings] or namers
            namer = ([name for name in given if name in of_tables] or of_tables[::-1])[0]
            self._names["labels"] = str(option_of(options.command, namer))

    def subject(self, name: str) -> str:
        """The argument that an error is about."""
        option = (self._labels or name) if name == "labels" else self._names.get(name, name)
        key = option.removeprefix("--")
        return f"{self._config}: the key {key!r}" if option in self._from_config and key != option else option

    def __call__(self, name: str, value: str | None = None) -> str:
        if name.endswith("()"):
            return self._function(name.removesuffix("()"))
        option = self._names.get(name) or self._of_others(name)
        if option is None:
            return in_python(name, value)
        if value in ("None", "False"):
            negated = option.replace("--", "--no-", 1)
            return negated if negated in self._command._option_string_actions else f"no {option}"
        return option if value in (None, "True") else f"{option} {value}"

    def _function(self, name: str) -> str:
        is_discover = self._command.prog == "simdims discover"
        if name.startswith("from_"):
            kind = name.removeprefix("from_")
            return f"--as {kind}" if is_discover else f"`simdims similarity {kind}`"
        if is_discover and name in ("as_similarity", "load_similarity"):
            return "--as matrix"
        return f"`simdims {_COMMANDS[name]}`" if name in _COMMANDS else name

    def _of_others(self, name: str) -> str | None:
        """The option of another command, as advice to run that command."""
        commands = [command for _, command in subcommands(self._top).values()]
        commands += [inner for command in commands for _, inner in subcommands(command).values()]
        options = (_names(command).get(name, "") for command in commands)
        return next((option for option in options if option.startswith("--")), None)


def option_of(command: argparse.ArgumentParser, name: str) -> str | None:
    """The option or argument in the help of a command, if it has it: --ranks, or IN."""
    return next((_shown(action) for action in command._actions if action.dest == name), None)


def _shown(action: Any) -> str:
    is_place = not action.option_strings or "--out" in action.option_strings
    return str(action.metavar) if is_place else next(s for s in action.option_strings if s.startswith("--"))


def _names(command: argparse.ArgumentParser) -> dict[str, str]:
    """The Python names of a command's options, and their names on the command line."""
    found: dict[str, str] = {}
    # The file that most arguments stand for comes last.
    for action in sorted(command._actions, key=lambda action: action.dest == "source"):
        for name in (action.dest, *_IN_PYTHON.get(action.dest, ())):
            found.setdefault(name, _shown(action))
    out, source = found.get("out"), found.get("source")
    folder = out if out == "FOLDER" else source  # a folder may replace a file
    others = {"folder": folder, "path": out}
    return {name: option for name, option in others.items() if option is not None} | found
