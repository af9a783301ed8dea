"""`simdims --help`: the commands, grouped by purpose."""

from __future__ import annotations

import argparse
import textwrap

#: Groups of commands, in the order in which a reader needs them.
CHAPTERS = {
    "From a data file to a page": ("discover", "check", "demo", "report", "plot", "export"),
    "Similarities from raw data": ("similarity",),
    "Before a study": ("plan",),
    "Step by step": ("calibrate", "select-rank", "fit", "consensus"),
    "Evaluate the dimensions": ("evaluate", "test", "rsa", "bootstrap", "compare", "weights", "label", "encode"),
    "Shell integration": ("completion",),
}

_INTRODUCTION = "Find the dimensions behind similarities: how many, which ones, how stable, and what they are about."

_EXAMPLES = """examples:
  simdims demo                                    a demonstration in one minute
  simdims check animals.csv                       what a file holds, before any fit
  simdims discover animals.csv -o animals         find dimensions; open animals/report.html
  simdims discover answers.csv -o objects --as triplets --jobs -1 --checkpoint objects-work
  simdims discover people.csv -o people --by participant    one set of dimensions, weights for each person"""

_REST = """Results go to stdout, progress and warnings to stderr; --json prints results as one JSON object.

exit status:
  0    done
  1    the data, a file or a value was refused; stderr says why
  2    the command was not understood; stderr says why
  130  interrupted; with --checkpoint, run the same command again to resume"""


def contents(parser: argparse.ArgumentParser) -> str:
    """The help of the complete command line."""
    commands = subcommands(parser)
    lines = [f"usage: {parser.prog} COMMAND ...   ({parser.prog} COMMAND --help explains one)", "", _INTRODUCTION]
    for chapter, names in CHAPTERS.items():
        lines += ["", f"{chapter}:"]
        for name in names:
            summary, command = commands[name]
            lines += _entry(name, summary)
            lines += [line for inner, (what, _) in subcommands(command).items() for line in _entry(f"  {inner}", what)]
    return "\n".join([*lines, "", _EXAMPLES, "", _REST, ""])


def subcommands(parser: argparse.ArgumentParser) -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """The commands below a parser, each with its one-line help and its own parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: str(choice.help) for choice in action._choices_actions}
            return {name: (summaries.get(name, ""), command) for name, command in action.choices.items()}
    return {}


def _entry(name: str, summary: str) -> list[str]:
    first, *rest = textwrap.wrap(summary, 88)
    return [f"  {name:<16}{first}", *(" " * 18 + line for line in rest)]
