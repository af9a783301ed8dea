"""What the library says about its arguments, said in the words of the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from simdims.cli.options import option_of

#: What options and arguments are called in Python, where that is another name.
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
    "source": ("path", "S", "W", "D", "X", "table", "embedding"),
    "folder": ("folder", "result", "embedding"),
    "out": ("folder", "path"),
    "answers": ("triplets",),
    "ratings": ("ratings", "pairs"),
    "tests": ("tests", "hypotheses"),
}

#: What does on the command line what functions, methods and classes do in Python.
_COMMANDS = {
    "from_features": "similarity features",
    "from_triplets": "similarity triplets",
    "from_ratings": "similarity ratings",
    "from_associations": "similarity associations",
    "from_dissimilarity": "similarity dissimilarity",
    "as_similarity": "discover",
    "load_similarity": "discover",
    "Similarity.save": "similarity",
    "Discovery.save": "discover",
    "select_rank": "select-rank",
    "fit_consensus": "consensus",
    "dimension_test": "test",
    "rsa_test": "rsa",
}

#: What things are called by those who do not see the objects that hold them.
_THINGS = {
    "None": "left out",
    "False": "left out",
    "Discovery": "result",
    "Similarity": "file of similarities",
    "DataFrame": "table",
    "pandas DataFrame": "table",
}

_QUOTED = re.compile(r"""(?<![\w=])(['"])(?:\\.|(?!\1).)*\1(?!\w)""")


def in_options(message: str, options: argparse.Namespace) -> str:
    """A sentence of the library in the words of the command that called it; what stands in quotes stays as it is.

    Arguments become the options that this command has for them, functions the commands that do the same, and values
    that nobody can type (None, False) what they mean: an option that is left out.
    """
    command = getattr(options, "command", None)
    if command is None:  # the words of the command were not read to their end
        return message
    names = _names(options)
    # In symmetrize="mean" or "max" both are words to type, neither is data.
    message = re.sub(r"(\w=(['\"])\w+\2 or )(['\"])(\w+)\3", r"\1\4", message)

    def translated(text: str) -> str:
        text = re.sub(r" (?:passed )?to (?:Similarity|as_similarity|load_similarity)\b(?![.(])", "", text)
        for name, option in ({"labels": _namer(command)} | names).items():
            text = _values_given(text, name, option)
        return _in_words(_with_commands(_with_options(text, names), command))

    return _unquoted(message, translated)


def _values_given(message: str, name: str, option: str) -> str:
    """A sentence in which an argument with a value, as absent="zero", is the option with it: --absent zero."""
    start = rf"(?<![\w'\"/.-]){name}"
    message = re.sub(rf"(?:\w+\(\.\.\., {name}=\)(?: or )?)+", option, message)
    message = re.sub(rf"{start}=(?:True\b)?(?![\w'\"(\[])", option, message)
    message = re.sub(rf"{start}=False\b", f"no {option}", message)
    message = re.sub(rf"{start}=['\"]?([\w.-]+?)['\"]?(?=[\s,.;:)]|$)", rf"{option} \1", message)
    message = re.sub(rf"{start} = (?=-?\d)", f"{option} ", message)
    # An option that is spoken of need not be named before each of its values.
    message = message.replace(f"{option} {option} ", f"{option} ")
    subject, is_rule, rest = message.partition(" must be ")
    if is_rule and subject.rpartition(": ")[2] in (name, option):
        rule, got, value = rest.partition(", got ")
        message = f"{subject}{is_rule}{rule.replace(f'{option} ', '')}{got}{value}"
    return message


def _with_options(text: str, names: dict[str, str]) -> str:
    """A text with names of arguments as options.

    Names that are no ordinary words, with an underscore or of one capital, are replaced wherever they stand; others
    where they are what a sentence speaks of, and after a preposition, as in "a column of table".
    """
    for name, option in names.items():
        if "_" in name or re.fullmatch("[A-Z]", name):
            text = re.sub(rf"(?<![\w/.-]){name}(?![\w/-]|\.\w| \(\d)", option, text)
            continue
        text = re.sub(rf"\A((?:[^:]*: )?){name}(?= (?:must|has|is|looks|and \S+ must)\b)", rf"\g<1>{option}", text)
        text = re.sub(rf"\A((?:[^:]*: )?\S+ and ){name}(?= must\b)", rf"\g<1>{option}", text)
        text = re.sub(
            rf"\b(as|in|of|than|where|raise) {name}(?=[,.;:]|\Z| (?:holds|names|if)\b)", rf"\1 {option}", text
        )
    return text


def _with_commands(text: str, command: argparse.ArgumentParser) -> str:
    """A text with functions, and what is called on them, as commands."""

    def said(match: re.Match[str]) -> str:
        words, options = _COMMANDS[match["name"]], _as_options(match["arguments"] or "")
        if command.prog == f"simdims {words}" and options:
            return options.strip()  # of the very command that is running
        if command.prog == "simdims discover" and match["name"] in ("as_similarity", "load_similarity"):
            return "--as matrix"
        if command.prog == "simdims discover" and words.startswith("similarity "):
            return f"--as {words.removeprefix('similarity ')}{options}"
        return f"`simdims {words}{options}`"

    functions = "|".join(map(re.escape, _COMMANDS))
    return re.sub(rf"(?<![\w.])(?P<name>{functions})\b(?:\(\.\.\.(?P<arguments>[^()]*)\))?", said, text)


def _as_options(arguments: str) -> str:
    """Arguments of a call, as `, kernel="rbf"` or `, --kernel rbf`, as options."""
    words = [re.sub(r"(\w+)=['\"]?([\w.-]+)['\"]?", r"--\1 \2", part.strip()) for part in arguments.split(",")]
    return "".join(f" {word}" for word in words if word)


def _in_words(text: str) -> str:
    """A text without the values and objects of Python."""
    text = re.sub(r"\bn_items(?: - (\d+))? = (\d+)", _number_of_items, text)
    text = re.sub(r"\bgot None\b", "got none", text)
    text = re.sub(r"\bgot True\b", "got it", text)
    for thing, words in sorted(_THINGS.items(), key=lambda pair: -len(pair[0])):
        text = re.sub(rf"(?<![\w.]){thing}(?![\w.(])|(?<![\w.]){thing}(?=\.(?:\s|$))", words, text)
    return text


def _number_of_items(match: re.Match[str]) -> str:
    return f"{match[2]}, the number of items" + (f" less {match[1]}" if match[1] else "")


def _unquoted(message: str, change: Callable[[str], str]) -> str:
    """Change a sentence but for its quotations, which are data and names of files."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"'\0{len(kept) - 1}\0'"

    changed = change(_QUOTED.sub(keep, message))
    return re.sub(r"'\0(\d+)\0'", lambda match: kept[int(match[1])], changed)


def _names(options: argparse.Namespace) -> dict[str, str]:
    """What Python calls the options of a command, and what the command calls them."""
    found: dict[str, str] = {}
    for action in options.command._actions:
        option = option_of(options.command, action.dest)
        if option is None or action.dest in ("help", "verbose", "json", "quiet"):
            continue
        for name in _PYTHON_NAMES.get(action.dest, (action.dest,)):
            if name != "folder" or action.metavar == "FOLDER":
                found.setdefault(name, option)
    if "source" in vars(options):  # where there is no FOLDER, it is a folder that stands for a file
        found.setdefault("folder", str(option_of(options.command, "source")))
    # Most sentences that speak of n_items mean how many there are, not the option that few commands have.
    if getattr(options, "n_items", None) is None:
        found.pop("n_items", None)
    # Names come from a file of their own or from a column; where from neither, no option is to blame.
    found.pop("labels", None)
    for name in ("labels", "label_file"):
        if getattr(options, name, None) is not None:
            found["labels"] = str(option_of(options.command, name))
    return found


def _namer(command: argparse.ArgumentParser) -> str:
    """The option of a command that names items, given or not."""
    found = (option_of(command, name) for name in ("label_file", "item", "labels"))
    return next((option for option in found if option is not None), "names of the items")
