"""What the library says about its arguments, said in the words of the command line."""

from __future__ import annotations

import argparse
import re

from simdims.cli.options import option_of

#: What options are called in Python, where that is another name.
_PYTHON_NAMES = {
    "components": ("n_components",),
    "runs": ("n_runs",),
    "splits": ("n_splits",),
    "repeats": ("n_repeats",),
    "folds": ("n_folds",),
    "permutations": ("n_permutations",),
    "bootstraps": ("n_bootstraps",),
    "eigenpairs": ("n_eigenpairs",),
    "landmarks": ("n_landmarks",),
    "seed": ("random_state",),
    "jobs": ("n_jobs",),
    "source": ("path",),
    "folder": ("folder",),
    "out": ("folder", "path"),
}


def in_options(message: str, options: argparse.Namespace) -> str:
    """A sentence with the names of arguments replaced by those that this command has for them.

    Names with an underscore are no ordinary words and are replaced wherever they stand; others where a sentence begins
    with them, and where a value is given to them.
    """
    for name, option in _names(options).items():
        whole = rf"(?<![\w'\"/.-]){name}(?![\w'\"/-]|\.\w)"
        message = re.sub(rf"\w+\(\.\.\., {name}=\)", option, message)
        message = re.sub(rf"(?<![\w'\"/.-]){name}=(?:True\b)?(?![\w'\"(\[])", option, message)
        message = re.sub(rf"(?<![\w'\"/.-]){name}=['\"]?([\w.-]+?)['\"]?(?=[\s,.;:)]|$)", rf"{option} \1", message)
        if "_" in name:
            message = re.sub(whole, option, message)
        else:
            message = re.sub(rf"\A((?:[^:]*: )?){name}(?= (?:must|has|is|looks)\b)", rf"\g<1>{option}", message)
    return message


def _names(options: argparse.Namespace) -> dict[str, str]:
    """What Python calls the options of a command, and what the command calls them."""
    found: dict[str, str] = {}
    for action in options.command._actions:
        option = option_of(options.command, action.dest)
        if option is None or action.dest in ("help", "verbose", "json", "quiet"):
            continue
        for name in _PYTHON_NAMES.get(action.dest, (action.dest,)):
            found.setdefault(name, option)
    # Most sentences that speak of n_items mean how many there are, not the option that few commands have.
    if getattr(options, "n_items", None) is None:
        found.pop("n_items", None)
    # Names come from a file of their own or from a column; where from neither, no option is to blame.
    found.pop("labels", None)
    for name, option in (("labels", "--labels"), ("label_file", "--label-file")):
        if getattr(options, name, None) is not None:
            found["labels"] = option
    return found
