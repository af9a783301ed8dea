"""`simdims completion`: commands, options and their choices completed by the shell, through argcomplete."""

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


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Write completions and exit, where the script of `simdims completion` asks for them."""
    if "_ARGCOMPLETE" in os.environ:
        _argcomplete().autocomplete(parser)


def _completion(options: argparse.Namespace) -> Findings:
    return Findings(str(_argcomplete().shellcode(["simdims"], shell=options.shell)).rstrip("\n"), {})


def _argcomplete() -> Any:
    return library("argcomplete", "Completion in a shell", '"simdims[completion]"')
