"""`simdims completion`: a script that lets a shell complete commands, options and their choices."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from simdims.cli.contents import subcommands
from simdims.cli.options import Findings, add_command

_HOW = {
    "bash": 'eval "$(simdims completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(simdims completion zsh)" in ~/.zshrc, after compinit',
    "fish": "simdims completion fish > ~/.config/fish/completions/simdims.fish",
}


class Option(NamedTuple):
    """An option as shells complete it; `choices` are the words that may follow, and `takes_value` says if any does."""

    strings: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    takes_value: bool


class Command(NamedTuple):
    """A command as shells complete it: `path` are the words that lead to it."""

    path: tuple[str, ...]
    commands: dict[str, str]
    options: tuple[Option, ...]
    words: tuple[str, ...]


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "completion",
        _completion,
        summary="print a script that lets bash, zsh or fish complete commands and options",
        details="; ".join(f"{shell}: {how}" for shell, how in _HOW.items()) + ".",
        example='eval "$(simdims completion bash)"',
        has_findings=False,
    )
    parser.add_argument("shell", metavar="SHELL", choices=list(_HOW), help="bash, zsh or fish")


def _completion(options: argparse.Namespace) -> Findings:
    from simdims.cli import parser

    return Findings(_WRITERS[options.shell](tree(parser())).rstrip("\n"), {})


def tree(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> list[Command]:
    """All commands, each with what may follow it."""
    below = subcommands(parser)
    options: list[Option] = []
    words: list[str] = []
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ())) if not isinstance(action, argparse._SubParsersAction) else ()
        if action.option_strings:
            takes_value = action.nargs != 0
            options.append(Option(tuple(action.option_strings), _plain(action.help), choices, takes_value))
        else:
            words += choices
    found = [
        Command(path, {name: _plain(summary) for name, (summary, _) in below.items()}, tuple(options), tuple(words))
    ]
    for name, (_, command) in below.items():
        found += tree(command, (*path, name))
    return found


def _plain(text: str | None) -> str:
    """Help without anything that means something to a shell."""
    return "".join(letter for letter in (text or "").split(";")[0] if letter.isalnum() or letter in " ,.()|-=/")


def _cases(commands: list[Command]) -> tuple[str, str]:
    """Two bodies of `case`: the words that may follow a command, and those that may follow an option."""
    after_command, after_option = [], []
    for command in commands:
        strings = [string for option in command.options for string in option.strings]
        following = " ".join([*command.commands, *command.words, *strings])
        after_command.append(f'    "{" ".join(command.path)}") words="{following}" ;;')
        for option in command.options:
            if option.takes_value:
                pattern = "|".join(f'"{" ".join([*command.path, string])}"' for string in option.strings)
                after_option.append(
                    f'    {pattern}) words="{" ".join(option.choices)}"; files={int(not option.choices)} ;;'
                )
    return "\n".join(after_command), "\n".join(after_option)


def _bash(commands: list[Command]) -> str:
    after_command, after_option = _cases(commands)
    names = " ".join(f'"{" ".join(command.path)}"' for command in commands if command.path)
    return f"""# bash completion of simdims: eval "$(simdims completion bash)"
_simdims() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" path="" word words="" files=1
  local commands=({names})
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    local longer="${{path:+$path }}$word" name
    for name in "${{commands[@]}}"; do
      [[ "$name" == "$longer" ]] && path="$longer" && break
    done
  done
  case "$path" in
{after_command}
  esac
  case "$path $previous" in
{after_option}
  esac
  # Options only where one is begun, and the choices of a command only right after it.
  local offered=""
  for word in $words; do
    if [[ "$word" == -* ]]; then
      [[ "$current" == -* ]] && offered+=" $word"
    elif [[ $files -eq 0 || -z "$path" || "$previous" == "${{path##* }}" ]]; then
      offered+=" $word"
    fi
  done
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  if [[ ${{#COMPREPLY[@]}} -eq 0 && $files -eq 1 ]]; then
    compopt -o filenames 2>/dev/null
    local IFS=$'\n'
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -F _simdims simdims
"""


def _zsh(commands: list[Command]) -> str:
    after_command, after_option = _cases(commands)
    names = " ".join(f'"{" ".join(command.path)}"' for command in commands if command.path)
    return f"""#compdef simdims
# zsh completion of simdims: eval "$(simdims completion zsh)", after compinit
_simdims() {{
  local previous="${{words[CURRENT-1]}}" current="${{words[CURRENT]}}" where="" word longer
  local line=("${{words[@]}}") files=1
  local -a commands=({names}) offered
  for word in "${{(@)line[2,CURRENT-1]}}"; do
    longer="${{where:+$where }}$word"
    (( ${{commands[(Ie)$longer]}} )) && where="$longer"
  done
  local words=""
  case "$where" in
{after_command}
  esac
  case "$where $previous" in
{after_option}
  esac
  offered=(${{=words}})
  [[ "$current" != -* && "$previous" != -* ]] && offered=(${{offered:#-*}})
  compadd -- $offered
  (( ! files )) || _files
}}
compdef _simdims simdims
"""


def _fish(commands: list[Command]) -> str:
    lines = ["# fish completion of simdims: simdims completion fish > ~/.config/fish/completions/simdims.fish"]
    for command in commands:
        seen = " and ".join(f"__fish_seen_subcommand_from {word}" for word in command.path)
        inner = f"not __fish_seen_subcommand_from {' '.join(command.commands)}" if command.commands else ""
        condition = "; and ".join(part for part in (seen.replace(" and ", "; and "), inner) if part)
        where = f"complete -c simdims -n '{condition}'"
        for name, summary in command.commands.items():
            lines.append(f"{where} -f -a {name} -d '{summary}'")
        if command.words:
            lines.append(f"{where} -f -a '{' '.join(command.words)}'")
        for option in command.options:
            spelled = " ".join(
                f"-l {string[2:]}" if string.startswith("--") else f"-s {string[1:]}" for string in option.strings
            )
            value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.takes_value else ""
            lines.append(f"{where} {spelled}{value} -d '{option.help}'")
    return "\n".join([*lines, ""])


_WRITERS: dict[str, Callable[[list[Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
