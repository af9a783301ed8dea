"""`simdims discover --config run.toml`: read options from a file, and write the file that repeats a run."""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from simdims import __version__
from simdims.cli.terminal import say

#: The keys of FILE and of the simdims version in a config.
_SOURCE, _VERSION = "file", "version"

#: Options that a config omits: where results and messages go.
_LEFT_OUT = ("out", "checkpoint", "overwrite", "quiet", "verbose", "json", "config", "dry_run", "help", "random_state")


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config, from which required arguments may then come."""
    config = "a file of options, such as run.toml of an earlier result; the command line overrides it"
    parser.add_argument("--config", type=Path, metavar="TOML", help=config)
    for action in parser._actions:
        action.required = False  # checked in `require`


def apply(path: Path, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Make the values in a config the defaults of a command, and return them by argument name."""
    actions = _actions(parser)
    values: dict[str, Any] = {}
    for key, value in _read(path).items():
        if key == _VERSION:
            if value != __version__:
                say(f"warning: {path} was written by simdims {value}, this is {__version__}: results may differ.")
        elif key not in actions:
            close = get_close_matches(key, actions, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f" (see {parser.prog} --help)."
            raise _refused(path, key, f"is not an option of {parser.prog}{hint}")
        else:
            try:
                value = _converted(parser, actions[key], key, value)
            except (ValueError, argparse.ArgumentError) as error:
                message = error.message if isinstance(error, argparse.ArgumentError) else str(error)
                raise _refused(path, key, f"{message}.") from None
            if value is not None:
                values[actions[key].dest] = value
    parser.set_defaults(**values)
    return values


def require(options: argparse.Namespace) -> None:
    """Refuse a command without FILE or FOLDER, unless the config has them."""
    names = {"source": "FILE", "out": "-o/--out"}
    if missing := [shown for name, shown in names.items() if getattr(options, name) is None]:
        options.command.error(f"the following arguments are required: {', '.join(missing)}")


def run_file(options: argparse.Namespace, seed: int | None) -> str:
    """The config that repeats a run with another -o: its options, the seed and the version."""
    values: dict[str, Any] = {_VERSION: __version__}
    written = set(_LEFT_OUT)
    for key, action in _actions(options.command).items():
        value = getattr(options, action.dest)
        is_idle = value is None or (value is False and isinstance(action, argparse._StoreTrueAction))
        if action.dest not in written and not is_idle:
            values[key] = value
        written.add(action.dest)
    if seed is not None:
        values["seed"] = seed
    first = "# Repeats this run: simdims discover --config run.toml -o NEW"
    return "\n".join([first, *(f"{key} = {_as_toml(value)}" for key, value in values.items()), ""])


def _actions(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options of a command by config key: their names without dashes."""
    found = {}
    for action in parser._actions:
        if action.dest in ("help", "config"):
            continue
        long = [name.removeprefix("--") for name in action.option_strings if name.startswith("--")]
        found[long[0] if long else _SOURCE] = action
    return found


def _read(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"No such file: {str(path)!r}.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} is not a TOML file: {error}.") from None


def _refused(path: Path, key: str, what: str) -> ValueError:
    return ValueError(f"{path}: the key {key!r} {what}")


def _converted(parser: argparse.ArgumentParser, action: argparse.Action, key: str, value: Any) -> Any:
    """Convert a config value as the command line would; None for an option that is not set."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ValueError(f"must be true or false, got {_as_toml(value)}")
        return value if isinstance(action, argparse.BooleanOptionalAction) else action.const if value else None
    if value is False and f"--no-{key}" in parser._option_string_actions:
        return False
    several = isinstance(value, list)
    if several and action.dest == "ranks":
        value, several = ",".join(map(str, value)), False
    words = value if several else [value]
    if not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in words):
        raise ValueError(f"must be text or a number, got {_as_toml(value)}")
    if several != (action.nargs is not None) or (isinstance(action.nargs, int) and len(words) != action.nargs):
        wanted = "one value" if action.nargs is None else f"a list of {action.nargs} values"
        raise ValueError(f"must be {wanted.replace('+ ', '')}, got {_as_toml(value)}")
    found = [parser._get_value(action, str(word)) for word in words]
    if action.choices is not None and (others := [one for one in found if one not in action.choices]):
        raise ValueError(f"must be one of {', '.join(map(str, action.choices))}, got {_as_toml(others[0])}")
    return found if several else found[0]


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    text = str(value.absolute()) if isinstance(value, Path) else str(value)
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
