"""`simdims test` and `simdims rsa`: test properties of items against dimensions and similarities."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._parameters import shortlist
from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import check_target, write_result
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.inference import HypothesisTests

_NAMES = ("n_permutations", "alternative", "alpha", "n_jobs", "progress")


def add(commands: Any) -> None:
    parser = shared.add_command(
        commands,
        "test",
        _test,
        summary="test which item properties the dimensions encode",
        example="simdims test embedding.csv properties.csv --labels name --seed 0 -o tests.csv",
    )
    shared.add_embedding(parser)
    _add_hypotheses(parser)
    parser.add_argument(
        "--matching",
        choices=["auto", "joint", "separate"],
        default="auto",
        help="joint: one-to-one assignment of properties to dimensions; separate: each property takes its best "
        "dimension, which may be shared; auto (default): joint, unless properties share much of their variance",
    )
    _add_testing(parser)

    parser = shared.add_command(
        commands,
        "rsa",
        _rsa,
        summary="test which item properties the similarities reflect (Mantel test)",
        example="simdims rsa animals.npz properties.csv --labels name --method spearman --seed 0",
    )
    shared.add_similarity(parser, beside_table=True)
    _add_hypotheses(parser)
    shared.add_choice(parser, "--method", "pearson", "spearman")
    _add_testing(parser)


def _add_hypotheses(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("hypotheses", metavar="PROPERTIES", type=Path, help="one row per item, one column per property")
    shared.add_label_column(parser, "PROPERTIES")
    parser.add_argument(
        "--nuisance",
        nargs="+",
        metavar="COLUMN",
        help="nuisance columns of PROPERTIES, controlled for when the others are tested",
    )


def _add_testing(parser: argparse.ArgumentParser) -> None:
    shared.add_choice(parser, "--alternative", "greater", "two-sided")
    shared.add_count(parser, "n_permutations", 1000, "number of permutations")
    level = "false discovery rate at which properties are significant (default 0.05)"
    parser.add_argument("--fdr", type=float, default=0.05, dest="alpha", metavar="RATE", help=level)
    parser.add_argument("--alpha", type=float, action=_Deprecated, help=argparse.SUPPRESS)
    shared.add_running(parser)
    shared.add_out(parser, ".json or .csv")


class _Deprecated(argparse.Action):
    """The former name of --fdr; elsewhere, --alpha is the penalty on the loadings."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        say("warning: --alpha is deprecated here; use --fdr.")
        namespace.alpha = values


def _test(options: argparse.Namespace) -> Findings:
    _check_target(options, "EMBEDDING")
    from simdims.inference import dimension_test

    W, seed = shared.read_embedding(options), shared.settled_seed(options)
    shared.warn_of_order(W, options.labels, "PROPERTIES")
    tests = dimension_test(
        W, **_properties(options), random_state=seed, **shared.arguments(options, "matching", *_NAMES)
    )
    return _findings(options, tests, seed)


def _rsa(options: argparse.Namespace) -> Findings:
    _check_target(options, "IN")
    S = shared.read_similarity(options)
    from simdims.inference import rsa_test

    seed = shared.settled_seed(options)
    tests = rsa_test(S, **_properties(options), random_state=seed, **shared.arguments(options, "method", *_NAMES))
    return _findings(options, tests, seed)


def _check_target(options: argparse.Namespace, source: str) -> None:
    read = [(source, options.source), ("PROPERTIES", options.hypotheses)]
    check_target(options.out, (".json", ".csv"), read, overwrite=options.overwrite)


def _properties(options: argparse.Namespace) -> dict[str, Any]:
    """The hypotheses and, if any, the nuisance columns."""
    import pandas as pd

    from simdims.io import raw

    table = raw.read_features(options.hypotheses, options.labels, None, shared.table_reading(options))
    if options.nuisance is None:
        return {"hypotheses": table}
    columns = [str(name) for name in table.columns] if isinstance(table, pd.DataFrame) else []
    if missing := [name for name in options.nuisance if name not in columns]:
        has = f"it has {shortlist([repr(name) for name in columns])}" if columns else "its columns have no names"
        raise ValueError(f"--nuisance must name columns of PROPERTIES, got {missing[0]!r}: {has}.")
    table = table.set_axis(columns, axis=1)
    tested = [name for name in columns if name not in options.nuisance]
    if not tested:
        raise ValueError("--nuisance must leave columns of PROPERTIES to test, got all of them.")
    return {"hypotheses": table[tested], "nuisance": table[options.nuisance]}


def _findings(options: argparse.Namespace, tests: HypothesisTests, seed: int) -> Findings:
    found = Findings(f"{tests.summary()}\n{tests.table.to_string(index=False)}", tests.to_dict(), seed)
    if options.out is not None:
        write_result(options.out, found.plain(), tests.table)
    return found
