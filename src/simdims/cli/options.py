"""Options that several commands share."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simdims.cli.outputs import check_place
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.similarity import Similarity


#: More than anyone can wait for, and what arrays can be counted by.
_MOST = 1_000_000_000


class UsageError(ValueError):
    """The words of a command do not go together."""


class Findings(NamedTuple):
    """What a command has to say: words for people, and the same as plain values for programs (--json).

    The seed is the --seed that gives the same again, of commands that draw random numbers.
    """

    words: str
    values: dict[str, Any]
    seed: int | None = None

    def text(self) -> str:
        """All that is said to people."""
        return self.words if self.seed is None else f"{self.words}\nSeed: {self.seed}"

    def plain(self) -> dict[str, Any]:
        """All that is said to programs."""
        return self.values if self.seed is None else {**self.values, "seed": self.seed}


def add_command(
    commands: Any, name: str, run: Any, *, summary: str, example: str, details: str = "", has_findings: bool = True
) -> argparse.ArgumentParser:
    """Add a command with its help; `run` takes the options and returns Findings."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=textwrap.fill(f"{summary[0].upper()}{summary[1:]}.{details and ' ' + details}", 100),
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, command=parser, json=False)
    parser.add_argument("--verbose", action="store_true", help="say what is found and done")
    if has_findings:
        parser.add_argument("--json", action="store_true", help="write what is found to stdout as one JSON object")
    return parser


def option_of(command: argparse.ArgumentParser, name: str) -> str | None:
    """What the help of a command calls an option or argument, if it has it: --ranks, or IN."""
    for action in command._actions:
        if action.dest == name:
            is_output = not action.option_strings or "--out" in action.option_strings
            return str(action.metavar) if is_output else next(s for s in action.option_strings if s.startswith("--"))
    return None


def add_similarity(parser: argparse.ArgumentParser) -> None:
    """Add IN, a file of similarities, and what may have to be said about it."""
    parser.add_argument(
        "source",
        metavar="IN",
        type=Path,
        help="similarities: a file that `simdims similarity` wrote, a square table or a list of pairs",
    )
    add_key(parser, "similarities")
    add_label_file(parser)
    add_negative(parser)
    add_matrix_options(parser)
    add_scale(parser)


def add_matrix_options(parser: Any) -> None:
    """Add what may have to be said about a file of similarities alone."""
    parser.add_argument(
        "--form", choices=["square", "long"], help="whether a small table is a square or a list of pairs"
    )
    parser.add_argument(
        "--absent",
        type=number_or_text,
        metavar="missing|zero|WEIGHT",
        help="what a pair means that a sparse matrix, a graph or a list of pairs does not hold",
    )
    parser.add_argument(
        "--symmetrize", choices=["mean", "max"], help="what to make of the two sides of a pair that differ"
    )


def add_negative(parser: Any) -> None:
    """Add what to do with negative values."""
    parser.add_argument(
        "--negative",
        choices=["clip", "shift"],
        help="negative values: clip sets them to 0, shift rescales correlations r as (1 + r)/2 (default: an error; "
        "features: kept, and only clip applies)",
    )
    parser.add_argument(
        "--clip", action="store_const", const="clip", dest="negative", help="the same as --negative clip"
    )


def add_scale(parser: Any) -> None:
    """Add the ends of a rating scale."""
    parser.add_argument("--low", type=float, help="lowest end of a rating scale, which becomes 0")
    parser.add_argument("--high", type=float, help="highest end of a rating scale, which becomes 1")


def say_scale(S: Similarity) -> None:
    """Say how ratings were rescaled, or that similarities were not though they exceed 1."""
    from simdims.similarity.entries import value_range

    if "low" in S.info:
        say(f"Ratings on a scale from {S.info['low']:g} to {S.info['high']:g} were rescaled to 0-1.")
        return
    ends = None if "source" in S.info or S.factors is not None else value_range(S.values)
    if ends is not None and ends[1] > 1 + 1e-6:
        say(
            f"Similarities range from {ends[0]:.3g} to {ends[1]:.3g} and are not rescaled; for a rating scale, pass "
            "its ends as --low and --high."
        )


def read_similarity(options: argparse.Namespace) -> Similarity:
    """The similarities of IN, after saying what was done to them."""
    S = load_matrix(options)
    say_changes(S)
    return S


def load_matrix(options: argparse.Namespace) -> Similarity:
    """The similarities of IN."""
    from simdims.io import load_similarity

    _refuse_settled(options)
    return load_similarity(
        options.source,
        key=options.key,
        form=options.form,
        labels=read_labels(options),
        absent=options.absent,
        symmetrize=options.symmetrize,
        negative=options.negative,
        low=options.low,
        high=options.high,
    )


def say_changes(S: Similarity) -> None:
    """Say how values were rescaled; of clipping, the library warns."""
    say_if_shifted(S)
    if "file" in S.info:  # not one that simdims wrote, whose scale was settled then
        say_scale(S)


def say_if_shifted(S: Similarity) -> None:
    """Say that correlations were rescaled, which unlike clipping is nothing to warn of."""
    if S.info.get("negative") == "shift":
        share = S.info["share_negative"]
        say(f"Rescaled all correlations r as (1 + r)/2; {share:.2%} of the pairs were negative.")


def _refuse_settled(options: argparse.Namespace) -> None:
    """Refuse what there is to say about other files where `simdims similarity` wrote this one."""
    settled = ("key", "label_file", "absent", "symmetrize", "negative", "low", "high")
    given = [name for name in settled if getattr(options, name) is not None]
    if not given or options.source.suffix.lower() != ".npz" or not options.source.is_file():
        return
    from simdims import io
    from simdims.io.native import load_npz

    with io.named_in_errors(options.source):
        if load_npz(options.source) is not None:
            flag, value = option_of(options.command, given[0]), str(getattr(options, given[0]))
            raise ValueError(f"{flag} must be left out for a file that simdims wrote, which settles it, got {value!r}.")


def described(S: Similarity) -> str:
    """Similarities in a few words."""
    from simdims.similarity import percent

    words = [f"{S.n_items:,} {'item' if S.n_items == 1 else 'items'}", f"{percent(S.density)} of the pairs observed"]
    if S.absent in ("zero", "missing"):
        words += ["the others missing" if S.absent == "missing" else "0 where a pair is not listed"]
    elif S.absent is not None:
        words += [f"0 of weight {S.absent:g} where a pair is not listed"]
    words += ["kept as factors"] if S.factors is not None else []
    words += ["weighted"] if S.weights is not None else []
    words += [f"averaged over {S.info['n_people']} matrices"] if S.info.get("n_people", 1) > 1 else []
    words += ["with names"] if S.labels is not None else []
    return ", ".join(words)


def read_embedding(options: argparse.Namespace) -> Any:
    """The embedding of EMBEDDING, by name where it has names."""
    from simdims import _inputs

    if options.source.is_dir():
        from simdims.discovery import Discovery

        for name in ("item", "key"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} must be left out where EMBEDDING is a folder, which says it itself.")
        return Discovery.load(options.source).embedding_frame()
    name = options.item
    if name is None and _inputs.has_column(options.source, "item"):
        name = "item"
    W = _inputs.read_features(options.source, name, options.key, None, "--item")
    if name is not None and list(W.index) == [str(position) for position in range(len(W))]:
        W = W.reset_index(drop=True)  # an embedding without names, which are then positions
    return W


def add_running(parser: argparse.ArgumentParser, *, seed: int | None = None, jobs: int | None = None) -> None:
    """Add what every command with many tasks takes, with its defaults."""
    drawn = "drawn afresh and printed" if seed is None else seed
    parser.add_argument("--seed", type=int, metavar="N", default=seed, help=f"random seed (default: {drawn})")
    usual = 1 if jobs is None else jobs
    parser.add_argument(
        "--jobs", type=int, metavar="N", default=jobs, help=f"parallel processes; -1: all cores (default {usual})"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")


def settled_seed(options: argparse.Namespace) -> int:
    """--seed, or where there is none a number that is drawn."""
    from simdims._parallel import settle_seed

    return settle_seed(options.seed)


def check_running(options: argparse.Namespace) -> None:
    """Refuse before the work what every command with many tasks would refuse in it, or never be done with."""
    for action in options.command._actions:
        given = getattr(options, action.dest, None)
        if action.type is int and action.dest != "seed" and given is not None and abs(given) > _MOST:
            option = option_of(options.command, action.dest)
            raise ValueError(f"{option} must be at most {_MOST:,}, got {given}.")
    seed, jobs = getattr(options, "seed", None), getattr(options, "jobs", None)
    if seed is not None and not 0 <= seed < 2**32:
        raise ValueError(f"--seed must lie between 0 and {2**32 - 1}, got {seed}.")
    if jobs == 0:
        raise ValueError("--jobs must be a number of processes, or -1 for one a core, got 0.")
    checkpoint = getattr(options, "checkpoint", None)
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise ValueError(f"--checkpoint must be a folder, got {str(checkpoint)!r}, which is a file.")
    if checkpoint is not None:
        check_place(checkpoint, "--checkpoint", is_filled=True)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add where to compute."""
    parser.add_argument(
        "--device",
        default="cpu",
        metavar="cpu|cuda|cuda:N|mps|torch-cpu",
        help="where to compute: cpu (default), or by PyTorch on a GPU (cuda, mps) or the processor (torch-cpu)",
    )


def check_solver(options: argparse.Namespace) -> None:
    """Refuse a solver where it does not run."""
    if options.solver == "admm" and options.device != "cpu":
        raise UsageError(f"--solver admm must run on --device cpu, got --device {options.device}.")


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add where finished work is kept."""
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="a folder for finished fits; run again to continue"
    )


def add_overwrite(parser: argparse.ArgumentParser, what: str = "OUT") -> None:
    """Add the word that lets a command replace what is there."""
    parser.add_argument("--overwrite", action="store_true", help=f"replace {what} if it is there already")


def progress_of(options: argparse.Namespace) -> bool | None:
    """The argument `progress` that was asked for: a bar where a person is looking, or none."""
    return False if options.quiet else None


def add_label_file(parser: Any) -> None:
    """Add a file of names."""
    parser.add_argument("--label-file", type=Path, metavar="FILE", help="a text file with the name of one item a line")


def add_key(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the name of a variable."""
    parser.add_argument("--key", metavar="NAME", help=f"the variable of the {what}, where a file holds several")


def add_header(parser: argparse.ArgumentParser) -> None:
    """Add whether the first row names the columns."""
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row of a text file names the columns (default: unless it holds numbers only)",
    )


def read_labels(options: argparse.Namespace) -> list[str] | None:
    """The names of --label-file."""
    from simdims import _inputs

    return None if options.label_file is None else _inputs.read_names(options.label_file)


def whole(word: str) -> int:
    """A word as a whole number."""
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {word!r}") from None


def number(word: str) -> float:
    """A word as a number."""
    try:
        return float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {word!r}") from None


def whole_or_text(word: str) -> int | str:
    """A word as the whole number that it is, or itself."""
    try:
        return int(word)
    except ValueError:
        return word


def number_or_text(word: str) -> float | str:
    """A word as the number that it is, or itself."""
    try:
        return float(word)
    except ValueError:
        return word
