"""Shared options of the commands, and the files that they name."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simdims._parameters import ParameterError
from simdims.cli.outputs import check_target, check_writable
from simdims.cli.spelling import option_of
from simdims.cli.terminal import LoggedProgress, is_terminal, say

if TYPE_CHECKING:
    import pandas as pd

    from simdims.io.tables import Reading
    from simdims.similarity import Similarity
    from simdims.systems import SimilaritySet

#: Upper limit on numbers of fits and permutations.
_MOST = 1_000_000_000


class UsageError(ValueError):
    """Invalid combination of options."""


class Findings(NamedTuple):
    """The report of a command, as text and as plain values (--json), and the seed that reproduces random numbers."""

    words: str
    values: dict[str, Any]
    seed: int | None = None

    def text(self) -> str:
        return self.words if self.seed is None else f"{self.words}\nSeed: {self.seed}"

    def plain(self) -> dict[str, Any]:
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
    parser.add_argument("--verbose", action="store_true", help="print detailed messages")
    if has_findings:
        parser.add_argument("--json", action="store_true", help="print the result to stdout as one JSON object")
    return parser


def add_similarity(parser: argparse.ArgumentParser, *, beside_table: bool = False) -> None:
    source = "similarities: a file written by `simdims similarity`, a square table or a list of pairs"
    parser.add_argument("source", metavar="IN", type=Path, help=source)
    add_key(parser, "similarities")
    if not beside_table:
        add_sheet(parser)
        add_na_values(parser)
    add_label_file(parser)
    add_negative(parser)
    add_matrix_options(parser)
    add_scale(parser)


def add_matrix_options(parser: Any) -> None:
    """Add the options that apply only to similarity files."""
    parser.add_argument("--form", choices=["square", "long"], help="read a small table as a square or a list of pairs")
    absent = "how to treat pairs not listed in a sparse matrix, graph or pair list"
    parser.add_argument("--absent", type=number_or_text, metavar="missing|zero|WEIGHT", help=absent)
    symmetrize = "how to combine S[i,j] and S[j,i] where they differ"
    parser.add_argument("--symmetrize", choices=["mean", "max"], help=symmetrize)


def add_negative(parser: Any) -> None:
    negative = (
        "negative values: clip sets them to 0, shift rescales correlations r as (1 + r)/2 (default: an error; "
        "features: kept, and only clip applies)"
    )
    parser.add_argument("--negative", choices=["clip", "shift"], help=negative)
    parser.add_argument("--clip", action="store_const", const="clip", dest="negative", help="short for --negative clip")


def add_scale(parser: Any) -> None:
    parser.add_argument("--low", type=float, help="lower end of the rating scale, which becomes 0")
    parser.add_argument("--high", type=float, help="upper end of the rating scale, which becomes 1")


def add_label_file(parser: Any) -> None:
    parser.add_argument("--label-file", type=Path, metavar="FILE", help="a text file with one item label per line")


def add_key(parser: Any, what: str) -> None:
    parser.add_argument("--key", metavar="NAME", help=f"the variable with the {what}, if a file has several")


def add_sheet(parser: Any, dest: str = "sheet", table: str = "an .xlsx or .ods file") -> None:
    parser.add_argument("--sheet", metavar="NAME", dest=dest, help=f"the sheet of {table}, if several are not blank")


def add_na_values(parser: Any, dest: str = "na_values") -> None:
    about = "further marks of missing values, such as 999, in addition to NA, NaN and the like (not in labels)"
    parser.add_argument("--na-values", nargs="+", metavar="WORD", dest=dest, help=about)


def add_table(parser: Any, table: str, *, has_numbers: bool = True) -> None:
    """Add the options of a command's second file, a table."""
    add_sheet(parser, "table_sheet", f"{table}, an .xlsx or .ods file")
    if has_numbers:
        add_na_values(parser, "table_na_values")


def reading(options: argparse.Namespace) -> Reading:
    """How to read the first file of a command, according to its options."""
    from simdims.io import clean_na_values
    from simdims.io.tables import Reading

    given = vars(options)
    return Reading(given.get("sheet"), clean_na_values(given.get("na_values")), given.get("key"))


def table_reading(options: argparse.Namespace) -> Reading:
    """How to read the second file; see add_table."""
    from simdims.io import clean_na_values
    from simdims.io.tables import Reading

    return Reading(options.table_sheet, clean_na_values(vars(options).get("table_na_values")))


def add_header(parser: Any) -> None:
    header = "whether the first row of a text file names the columns (default: unless it holds numbers only)"
    parser.add_argument("--header", action=argparse.BooleanOptionalAction, help=header)


def read_similarity(options: argparse.Namespace) -> Similarity:
    """Read the similarities of IN, and report any rescaling."""
    S = load_matrix(options)
    say_changes(S)
    return S


def load_matrix(options: argparse.Namespace) -> Similarity:
    from simdims.io import load_similarity

    _refuse_settled(options)
    given = arguments(options, "key", "form", "absent", "symmetrize", "negative", "low", "high")
    how = reading(options)
    given |= {"sheet": how.sheet, "na_values": how.na_values}
    return load_similarity(options.source, labels=read_labels(options), **given)


def read_labels(options: argparse.Namespace) -> list[str] | None:
    from simdims.io import raw

    return None if options.label_file is None else raw.read_names(options.label_file)


def _refuse_settled(options: argparse.Namespace) -> None:
    """Refuse options that a file written by `simdims similarity` has already settled."""
    settled = ("key", "sheet", "na_values", "label_file", "absent", "symmetrize", "negative", "low", "high")
    given = [name for name in settled if getattr(options, name, None) is not None]
    if not given or options.source.suffix.lower() != ".npz" or not options.source.is_file():
        return
    from simdims import io
    from simdims.io.native import load_npz

    with io.named_in_errors(options.source):
        if load_npz(options.source) is not None:
            flag = option_of(options.command, given[0])
            raise ValueError(f"{flag} does not apply to a file written by simdims, in which this is settled.")


def say_changes(S: Similarity) -> None:
    """Report how values were rescaled; the library warns of clipping."""
    say_if_shifted(S)
    if "aligned" in S.info:
        say(f"Rows and columns are in different orders: {S.info['aligned']}.")
    if "file" in S.info:  # otherwise simdims wrote it, and reported the scale then
        say_scale(S)


def say_if_shifted(S: Similarity) -> None:
    if S.info.get("negative") == "shift":
        say(f"Rescaled all correlations r as (1 + r)/2; {S.info['share_negative']:.2%} of the pairs were negative.")


def say_scale(S: Similarity) -> None:
    """Report how ratings were rescaled, or that similarities above 1 were not."""
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


def described(S: Similarity | SimilaritySet) -> str:
    """A short description of similarities."""
    from simdims._parameters import plural
    from simdims.similarity import Similarity, percent

    if not isinstance(S, Similarity):
        words = [f"{n:,} {plural(noun, n)}" for n, noun in ((S.n_systems, "system"), (S.n_items, "item"))]
        words += [f"{percent(S.density)} of their pairs observed", *(["labelled"] if S.labels is not None else [])]
        return ", ".join(words)
    words = [f"{S.n_items:,} {plural('item', S.n_items)}", f"{percent(S.density)} of the pairs observed"]
    if S.absent == "missing":
        words += ["the others missing"]
    elif S.absent is not None:
        weight = "" if S.absent == "zero" else f" with weight {S.absent:g}"
        words += [f"pairs that are not listed counted as zeros{weight}"]
    words += ["kept as factors"] if S.factors is not None else []
    words += ["weighted"] if S.weights is not None else []
    words += [f"averaged over {S.info['n_people']} matrices"] if S.info.get("n_people", 1) > 1 else []
    words += ["labelled"] if S.labels is not None else []
    return ", ".join(words)


def add_embedding(parser: argparse.ArgumentParser, files: str = "EMBEDDING") -> None:
    source = "a file with one row per item, or a folder written by `simdims discover`"
    parser.add_argument("source", metavar="EMBEDDING", type=Path, help=source)
    parser.add_argument("--item", metavar="COLUMN", help=f"the column of {files} with the labels (default: item)")
    if files == "EMBEDDING":
        names = "a text file with the item labels of EMBEDDING, one per line, if it has none"
        parser.add_argument("--label-file", type=Path, metavar="FILE", help=names)
    add_key(parser, "embedding")


def read_embedding(options: argparse.Namespace) -> Any:
    """Read EMBEDDING, labelled if the file has labels."""
    from simdims.io import raw

    if options.source.is_dir():
        from simdims.discovery import Discovery

        refuse(options, ("item", "key", "label_file"), "does not apply if EMBEDDING is a folder")
        return Discovery.load(options.source).embedding_frame()
    name = options.item
    how = reading(options)
    if name is None and raw.has_column(options.source, "item", how):
        name = "item"
    W = raw.read_features(options.source, name, None, how, "item")
    if name is not None and list(W.index) == [str(position) for position in range(len(W))]:
        W = W.reset_index(drop=True)  # an embedding without labels
    if hasattr(W, "columns") and list(W.columns) == [str(place) for place in range(W.shape[1])]:
        W.columns = [f"dimension{place + 1}" for place in range(W.shape[1])]  # a table without names of columns
    return W if getattr(options, "label_file", None) is None else _labelled(W, options)


def _labelled(W: Any, options: argparse.Namespace) -> pd.DataFrame:
    """An embedding with the labels of --label-file."""
    import pandas as pd

    from simdims.similarity import is_default_axis, is_frame
    from simdims.similarity.labels import clean_labels

    if options.item is not None:
        raise UsageError("--item and --label-file must not both be given: either names the items.")
    if is_frame(W) and not is_default_axis(W.index):
        raise UsageError("--label-file only applies to an EMBEDDING without labels.")
    names = read_labels(options) or []
    if len(names) != len(W):
        raise ParameterError("label_file", f"must have one label for each of the {len(W)} items", f"{len(names)}")
    labels = list(clean_labels(names, len(W)) or names)
    if is_frame(W):
        return W.set_axis(labels)
    return pd.DataFrame(W, labels, [f"dimension{k + 1}" for k in range(W.shape[1])])


def warn_of_order(W: Any, labels: str | None, what: str) -> None:
    """Warn that items were matched by their order, if only the column `labels` of the other table names them."""
    from simdims._parameters import warn
    from simdims.similarity import is_default_axis

    index = getattr(W, "index", None)
    if labels is not None and (index is None or is_default_axis(index)):
        warn(f"EMBEDDING has no labels, so its rows were matched with those of {what} by their order.")


def add_triplet_columns(parser: Any) -> None:
    odd = "name or position (from 0; -1, the default, is the last) of the column with the odd one out"
    parser.add_argument("--odd", type=whole_or_text, default=-1, metavar="COLUMN", help=odd)
    parser.add_argument("--columns", nargs=3, metavar="COLUMN", help="the three columns, if a table has more")


def add_rated_pairs(parser: Any) -> None:
    for role, what in (("item1", "first items"), ("item2", "second items"), ("rating", "ratings")):
        parser.add_argument(f"--{role}", required=True, metavar="COLUMN", help=f"the column with the {what}")


def add_running(parser: argparse.ArgumentParser, *, seed: int | None = None, jobs: int | None = None) -> None:
    add_seed(parser, seed)
    add_jobs(parser, jobs)
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def add_jobs(parser: argparse.ArgumentParser, jobs: int | None = None) -> None:
    help_text = f"parallel processes (-1: all cores; default {1 if jobs is None else jobs})"
    parser.add_argument("--jobs", type=int, metavar="N", dest="n_jobs", default=jobs, help=help_text)


def add_seed(parser: argparse.ArgumentParser, seed: int | None = None, of: str = "") -> None:
    drawn = "drawn afresh and printed" if seed is None else seed
    help_text = f"random seed{of} (default: {drawn})"
    parser.add_argument("--seed", type=int, metavar="N", dest="random_state", default=seed, help=help_text)


def settled_seed(options: argparse.Namespace) -> int:
    """--seed, or a random seed."""
    from simdims._parallel import settle_seed

    return settle_seed(options.random_state)


def arguments(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Keyword arguments for the library, from options stored under the same names.

    `progress` is a bar on a terminal, lines in a log file, and nothing with --quiet.
    """
    progress = None if is_terminal() else LoggedProgress()
    given = {**vars(options), "progress": False if getattr(options, "quiet", False) else progress}
    return {name: given[name] for name in names}


def say_if_resumed(options: argparse.Namespace) -> None:
    """Tell the user that finished fits are read from the checkpoint, so that estimated times are too long."""
    folder = getattr(options, "checkpoint", None)
    if folder is None or getattr(options, "dry_run", False) or not folder.is_dir() or not any(folder.iterdir()):
        return
    say(f"Resuming from {folder}: fits saved there are not repeated, but are part of estimated times.")


def check_running(options: argparse.Namespace) -> None:
    """Check options before the run that would fail in the middle of it or make it endless."""
    from simdims._parallel import check_n_jobs
    from simdims._parameters import require_count

    for action in options.command._actions:
        given = getattr(options, action.dest, None)
        if action.type is int and given is not None:
            ends = (0, 2**32 - 1) if action.dest == "random_state" else (-_MOST, _MOST)
            for value in given if isinstance(given, list) else [given]:
                require_count(action.dest, value, *ends)
    check_n_jobs(getattr(options, "n_jobs", None))
    if getattr(options, "checkpoint", None) is not None:
        check_writable(options.checkpoint, is_filled=True)


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    dry_run = "check the input and the options, describe the run, and stop"
    parser.add_argument("--dry-run", action="store_true", help=dry_run)


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    checkpoint = "a folder for completed fits, which makes the run resumable"
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help=checkpoint)


def add_device(parser: argparse.ArgumentParser) -> None:
    device = "where to compute: cpu (default), or with PyTorch on a GPU (cuda, mps) or the CPU (torch-cpu)"
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda|cuda:N|mps|torch-cpu", help=device)


def add_alpha(parser: Any, default: float | str) -> None:
    """Add the penalty on the loadings."""
    alpha = (
        "penalty on the loadings, for few or noisy pairs: auto is chosen by held-out pairs, 0 is none (default "
        f"{default if isinstance(default, str) else 0})"
    )
    parser.add_argument("--alpha", type=number_or_text, default=default, metavar="auto|NUMBER", help=alpha)


def check_solver(options: argparse.Namespace) -> None:
    if options.solver == "admm" and options.device != "cpu":
        raise UsageError(f"--solver admm runs on --device cpu only, got --device {options.device}.")


def add_count(parser: Any, name: str, default: int | None, what: str) -> None:
    """Add --runs for the argument n_runs, and so on."""
    shown = "" if default is None else f" (default {default})"
    flag = f"--{name.removeprefix('n_').replace('_', '-')}"
    parser.add_argument(flag, type=int, default=default, metavar="N", dest=name, help=f"{what}{shown}")


def add_choice(parser: Any, flag: str, default: str, other: str) -> None:
    parser.add_argument(flag, choices=[default, other], default=default, help=f"{default} (default) or {other}")


def add_fdr(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--fdr", type=float, default=0.05, dest="alpha", metavar="RATE", help=f"{what} (default 0.05)")


def add_folder(parser: argparse.ArgumentParser, metavar: str = "FOLDER", of: str = "") -> None:
    parser.add_argument("folder", metavar=metavar, type=Path, help=f"a folder written by `simdims discover`{of}")


def add_label_column(parser: Any, table: str) -> None:
    parser.add_argument("--labels", metavar="COLUMN", help=f"the column of {table} with the labels")
    add_table(parser, table)


def add_out(parser: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", required=required, help=f"output file: {what}")
    add_overwrite(parser)


def refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    """Refuse options that were given but have no effect."""
    for name in names:
        if getattr(options, name, None) is not None:
            raise UsageError(f"{option_of(options.command, name)} {why}.")


def check_out(options: argparse.Namespace, endings: tuple[str, ...], *inputs: str) -> None:
    """Check --out before the run; `inputs` are the options of the files that are read."""
    read = [(str(option_of(options.command, name)), path) for name in inputs if (path := getattr(options, name))]
    check_target(options.out, endings, read, overwrite=options.overwrite)


def add_overwrite(parser: argparse.ArgumentParser, what: str = "OUT") -> None:
    parser.add_argument("--overwrite", action="store_true", help=f"replace {what} if it exists")


def _value(convert: Callable[[str], Any], rule: str | None = None) -> Callable[[str], Any]:
    """A converter for argparse; without a rule, text that cannot be converted is kept."""

    def converted(word: str) -> Any:
        try:
            return convert(word)
        except ValueError:
            if rule is None:
                return word
            raise argparse.ArgumentTypeError(f"{rule}, got {word!r}") from None

    return converted


whole, whole_or_text = _value(int, "must be an integer"), _value(int)
number, number_or_text = _value(float, "must be a number"), _value(float)
