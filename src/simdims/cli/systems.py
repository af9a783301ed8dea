"""Several systems on the command line: reading them, and `simdims weights`."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._parameters import warn_again
from simdims.cli import options as shared
from simdims.cli.inference import tests_found
from simdims.cli.options import Findings, UsageError
from simdims.cli.outputs import check_target, write_result
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.discovery import Discovery
    from simdims.io.tables import Reading
    from simdims.systems import SimilaritySet

#: Options of a folder of similarities; additional and replaced ones for a folder of dissimilarities.
_MATRIX = ("key", "sheet", "na_values", "form", "absent", "symmetrize", "negative", "low", "high")
_DISSIMILARITY = ("key", "sheet", "na_values", "method", "sigma", "negative", "by")


def add(commands: Any) -> None:
    summary = "list the weights of people or other systems, and test if they differ between groups or follow a score"
    example = "simdims weights people --by group --seed 0 -o tests.csv"
    parser = shared.add_command(commands, "weights", _weights, summary=summary, example=example)
    shared.add_folder(parser, "RESULT", " for several systems")
    by = "test if weights differ between the groups, or follow the scores or times, in this column of the systems' info"
    parser.add_argument("--by", metavar="COLUMN", help=by)
    within = "the column that groups repeated measurements, such as the sessions of one person"
    parser.add_argument("--within", metavar="COLUMN", help=within)
    add_info(parser, "RESULT")
    shared.add_count(parser, "n_permutations", 10_000, "number of permutations; all of them if there are no more")
    shared.add_fdr(parser, "false discovery rate at which dimensions are significant")
    shared.add_seed(parser)
    shared.add_out(parser, ".json or .csv")


def add_info(parser: argparse.ArgumentParser, result: str, only: str = "") -> None:
    """Add the option of a table that describes the systems."""
    info = f"a table with one row per system, named in its first column (default: the table stored in {result}){only}"
    parser.add_argument("--info", type=Path, metavar="TABLE", help=info)


def holds_set(source: Path) -> bool:
    """Whether FILE is a folder, or a file written by SimilaritySet.save or `simdims similarity --by`."""
    if source.is_dir():
        return True
    if source.suffix.lower() != ".npz" or not source.is_file() or source.stat().st_size == 0:
        return False
    from simdims import io
    from simdims.io.arrays import npz_variables
    from simdims.io.native import SET_MARK

    with io.named_in_errors(source):
        return SET_MARK in npz_variables(source)


def kind_of_list(source: Path, by: str | None, how: Reading) -> str | None:
    """Dissimilarity, if --by separates a list of pairs with a column of that name; else None."""
    from simdims import io
    from simdims._tables import what_else
    from simdims.io.tables import sample_table

    if by is None or source.suffix.lower() not in io.TABLES or not source.is_file() or source.stat().st_size == 0:
        return None
    with io.named_in_errors(source):
        columns = list(sample_table(source, True, how).columns)
    others = [column for column in columns if column != by]
    is_list = by in columns and len(others) == 3 and what_else(others[-1]) == "dissimilarities"
    return "dissimilarity" if is_list else None


def read_set(options: argparse.Namespace) -> SimilaritySet:
    """Read the systems of a folder or a saved set; files that clearly hold dissimilarities are converted."""
    from simdims.construct import from_dissimilarity
    from simdims.systems import SimilaritySet

    if options.kind not in (None, "matrix", "dissimilarity"):
        raise UsageError(f"--as {options.kind} does not apply to a folder or a set, whose files hold matrices.")
    if not options.source.is_dir():
        others: tuple[str, ...] = (*_MATRIX, *_DISSIMILARITY, "label_file", "weights", "diagonal", "header")
        shared.refuse(options, others, "does not apply to a saved set")
        return SimilaritySet.load(options.source)
    if (options.source / "discovery.json").exists():
        raise ValueError(
            f"FILE must hold data, got {str(options.source)!r}, a result of `simdims discover`: pass the file that it "
            "was made from, or another command, such as `simdims report`."
        )
    labels = shared.read_labels(options)
    if options.kind != "dissimilarity":
        others = ("weights", "diagonal", "header", "method", "sigma")
        shared.refuse(options, others, "does not apply to a folder of similarities")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = SimilaritySet.load(options.source, labels=labels, **shared.arguments(options, *_MATRIX))
        look_like_distances = any("look like dissimilarities" in str(one.message) for one in caught)
        if options.kind == "matrix" or not look_like_distances:
            warn_again(caught)
            say(f"Read {options.source.name} as similarities, one file per system.")
            return found
    say(f"Read {options.source.name} as dissimilarities d, one file per system, which become 1 - d/max(d).")
    others = ("weights", "header", "form", "absent", "symmetrize", "low", "high")
    shared.refuse(options, others, "does not apply to a folder of dissimilarities")
    given = {**shared.arguments(options, *_DISSIMILARITY), "by": options.by or "system"}
    given["method"] = options.method or "max"
    return from_dissimilarity(options.source, labels=labels, diagonal=options.diagonal, **given)


def _weights(options: argparse.Namespace) -> Findings:
    from simdims.discovery import Discovery

    read = [] if options.info is None else [("TABLE", options.info)]
    check_target(options.out, (".json", ".csv"), read, overwrite=options.overwrite)
    found = Discovery.load(options.folder)
    if found.weights is None:
        raise ValueError(
            f"RESULT must be of several systems, got {str(options.folder)!r}, which is of one: pass --by to "
            "`simdims discover` to keep systems apart."
        )
    return _listed(options, found) if options.by is None else _tested(options, found)


def _listed(options: argparse.Namespace, found: Discovery) -> Findings:
    """The weights, their predictive value, outliers, and the columns by which they can be tested."""
    from simdims.report.systems import outliers_in_words, unusual_systems

    shared.refuse(options, ("within", "info"), "only applies with --by")
    weights = found.weights_frame().rename_axis("system").reset_index()
    info = found.consensus.system_info
    columns = [] if info is None else [str(column) for column in info.columns]
    words = [] if found.systems is None else [found.systems.summary()]
    words.append(weights.to_string(index=False, float_format=lambda value: f"{value:.3f}"))
    words += outliers_in_words(unusual_systems(found))
    words.append(f"Columns for --by: {', '.join(columns) or 'none; pass a table as --info'}.")
    compared = None if found.systems is None else found.systems.to_dict()
    values = {"systems": compared, "weights": weights, "columns": columns}
    write_result(options.out, values, weights)
    return Findings("\n".join(words), values)


def _tested(options: argparse.Namespace, found: Discovery) -> Findings:
    from simdims.inference import weight_test

    seed = shared.settled_seed(options)
    by, within = (column_of_systems(options, found, name) for name in (options.by, options.within))
    given = shared.arguments(options, "n_permutations", "alpha")
    tests = weight_test(found, by, within=within, random_state=seed, **given)
    return tests_found(options, tests, seed)


def column_of_systems(options: argparse.Namespace, found: Discovery, name: str | None) -> Any:
    """A column of --info, matched by system name; without --info, the column's name."""
    if name is None or found.weights is None or options.info is None:
        return name
    from simdims import io
    from simdims._parameters import ParameterError, shortlist
    from simdims.io.folders import read_info

    io.check_file(options.info, io.TABLES)
    with io.named_in_errors(options.info):
        table = read_info(options.info)
        if name not in table.columns:
            there = shortlist([repr(str(column)) for column in table.columns]) or "none"
            raise ParameterError("info", f"must have the column {name!r}", f"the columns {there}")
        column = table[name].set_axis([str(row).strip() for row in table.index])
        repeated = [repr(system) for system in found.weights_frame().index if list(column.index).count(system) > 1]
        if repeated:
            raise ParameterError("info", "must have one row per system", f"several for {shortlist(repeated)}")
        missing = [repr(system) for system in found.weights_frame().index if system not in column.index]
        if missing:
            got = f"none for {shortlist(missing)}; the first column has {shortlist(list(map(repr, column.index)))}"
            raise ParameterError("info", "must have a row for each system, named in the first column", got)
        return column.loc[list(found.weights_frame().index)]
