"""`simdims completion`: tab completion of commands, options and choices, by argcomplete."""

from __future__ import annotations

import argparse
import os
from typing import Any

from simdims._dependencies import library
from simdims.cli.options import Findings, add_command

_HOW = {
    "bash": 'eval "$(simdims completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(simdims completion zsh)" in ~/.zshrc, after compinit',
    "fish": "simdims completion fish > ~/.config/fish/completions/simdims.fish",
}


def add(commands: Any) -> None:
    summary = "print the script for tab completion in bash, zsh or fish"
    details = "; ".join(f"{shell}: {how}" for shell, how in _HOW.items()) + "."
    given = {"summary": summary, "details": details, "example": 'eval "$(simdims completion bash)"'}
    parser = add_command(commands, "completion", _completion, **given, has_findings=False)
    parser.add_argument("shell", metavar="SHELL", choices=list(_HOW), help="bash, zsh or fish")


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Write completions and exit, if the completion script asks for them."""
    if "_ARGCOMPLETE" in os.environ:
        _argcomplete().autocomplete(parser)


def _completion(options: argparse.Namespace) -> Findings:
    return Findings(str(_argcomplete().shellcode(["simdims"], shell=options.shell)).rstrip("\n"), {})


def _argcomplete() -> Any:
    return library("argcomplete", "Tab completion", '"simdims[completion]"')
