"""`simdims test` and `simdims rsa`: test properties of items against dimensions and similarities."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._parameters import ParameterError, shortlist
from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import write_result
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.inference import HypothesisTests

_NAMES = ("n_permutations", "alternative", "alpha", "n_jobs", "progress")


def add(commands: Any) -> None:
    summary = "test which item properties the dimensions encode"
    example = "simdims test embedding.csv properties.csv --labels name --seed 0 -o tests.csv"
    parser = shared.add_command(commands, "test", _test, summary=summary, example=example)
    shared.add_embedding(parser)
    _add_hypotheses(parser)
    matching = (
        "joint: one-to-one assignment of properties to dimensions; separate: each property takes its best "
        "dimension, which may be shared; auto (default): joint, unless properties share much of their variance"
    )
    parser.add_argument("--matching", choices=["auto", "joint", "separate"], default="auto", help=matching)
    _add_testing(parser)

    summary = "test which item properties the similarities reflect (Mantel test)"
    example = "simdims rsa animals.npz properties.csv --labels name --method spearman --seed 0"
    parser = shared.add_command(commands, "rsa", _rsa, summary=summary, example=example)
    shared.add_similarity(parser, beside_table=True)
    _add_hypotheses(parser)
    shared.add_choice(parser, "--method", "pearson", "spearman")
    _add_testing(parser)


def _add_hypotheses(parser: argparse.ArgumentParser) -> None:
    properties = "one row per item, one column per property: numbers, or words for categories"
    parser.add_argument("hypotheses", metavar="PROPERTIES", type=Path, help=properties)
    shared.add_label_column(parser, "PROPERTIES")
    nuisance = "nuisance columns of PROPERTIES, controlled for when the others are tested"
    parser.add_argument("--nuisance", nargs="+", metavar="COLUMN", help=nuisance)


def _add_testing(parser: argparse.ArgumentParser) -> None:
    shared.add_choice(parser, "--alternative", "greater", "two-sided")
    shared.add_count(parser, "n_permutations", 1000, "number of permutations")
    shared.add_fdr(parser, "false discovery rate at which properties are significant")
    parser.add_argument("--alpha", type=float, action=_Deprecated, help=argparse.SUPPRESS)
    shared.add_running(parser)
    shared.add_out(parser, ".json or .csv")


class _Deprecated(argparse.Action):
    """The former name of --fdr; elsewhere, --alpha is the penalty on the loadings."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        say("warning: --alpha is deprecated here; use --fdr.")
        namespace.alpha = values


def _test(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".json", ".csv"), "source", "hypotheses")
    from simdims.inference import dimension_test

    W, seed = shared.read_embedding(options), shared.settled_seed(options)
    shared.warn_of_order(W, options.labels, "PROPERTIES")
    given = shared.arguments(options, "matching", *_NAMES)
    return tests_found(options, dimension_test(W, **_properties(options), random_state=seed, **given), seed)


def _rsa(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".json", ".csv"), "source", "hypotheses")
    S = shared.read_similarity(options)
    from simdims.inference import rsa_test

    seed = shared.settled_seed(options)
    tests = rsa_test(S, **_properties(options), random_state=seed, **shared.arguments(options, "method", *_NAMES))
    return tests_found(options, tests, seed)


def read_properties(options: argparse.Namespace, path: Path) -> Any:
    """A table of properties, in which a category of several words may be a column."""
    from simdims.io import raw

    return raw.read_features(path, options.labels, None, shared.table_reading(options), "label_column", categories=True)


def with_levels(table: Any) -> Any:
    """The properties with one 0/1 column for each level of a category, without rare levels."""
    import pandas as pd

    from simdims.naming import FEWEST, levels_of

    words = (
        [] if not isinstance(table, pd.DataFrame) else [name for name in table if table[name].dtype.kind not in "biuf"]
    )
    if not words:
        return table
    columns: list[pd.Series | pd.DataFrame] = []
    for name in table:
        if name not in words:
            columns.append(table[name])
            continue
        try:
            levels = levels_of(table[name], str(name))
        except ParameterError as error:
            remedy = "if it names the items, pass its name as {label_column}; otherwise remove it"
            raise ParameterError("hypotheses", error.rule, error.got, remedy) from None
        if not levels:
            got = f"none in {str(name)!r}"
            raise ParameterError("hypotheses", f"must have categories with at least {FEWEST} items", got)
        n_rare = table[name].nunique() - len(levels)
        rare = f"; left out {n_rare} with fewer" if n_rare else ""
        say(f"Column {str(name)!r} is a category: {len(levels)} levels with {FEWEST} or more items{rare}.")
        columns.append(pd.DataFrame(levels, index=table.index))
    return pd.concat(columns, axis=1)


def _properties(options: argparse.Namespace) -> dict[str, Any]:
    """The hypotheses and, if any, the nuisance columns."""
    import pandas as pd

    table = read_properties(options, options.hypotheses)
    if options.nuisance is None:
        return {"hypotheses": with_levels(table)}
    columns = [str(name) for name in table.columns] if isinstance(table, pd.DataFrame) else []
    if missing := [name for name in options.nuisance if name not in columns]:
        has = f"it has {shortlist([repr(name) for name in columns])}" if columns else "its columns have no names"
        raise ValueError(f"--nuisance must name columns of PROPERTIES, got {missing[0]!r}: {has}.")
    table = table.set_axis(columns, axis=1)
    tested = [name for name in columns if name not in options.nuisance]
    if not tested:
        raise ValueError("--nuisance must leave columns of PROPERTIES to test, got all of them.")
    return {"hypotheses": with_levels(table[tested]), "nuisance": with_levels(table[options.nuisance])}


def tests_found(options: argparse.Namespace, tests: HypothesisTests, seed: int) -> Findings:
    """Report hypothesis tests, and write them to OUT."""
    found = Findings(tests.summary(n_shown=len(tests.hypotheses)), tests.to_dict(), seed)
    write_result(options.out, found.plain(), tests.table)
    return found
