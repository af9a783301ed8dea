"""`simdims test` and `simdims rsa`: properties of items against dimensions and against similarities."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli.options import (
    Findings,
    add_command,
    add_key,
    add_overwrite,
    add_running,
    add_similarity,
    progress_of,
    read_embedding,
    read_similarity,
    settled_seed,
)
from simdims.cli.outputs import check_target, write_result

if TYPE_CHECKING:
    from simdims.inference import HypothesisTests


def add(commands: Any) -> None:
    """Add both commands."""
    parser = add_command(
        commands,
        "test",
        _test,
        summary="test which item properties the dimensions encode",
        example="simdims test embedding.csv properties.csv --labels name --seed 0 -o tests.csv",
    )
    parser.add_argument(
        "source",
        metavar="EMBEDDING",
        type=Path,
        help="a file with one row per item, or a folder that `simdims discover` wrote",
    )
    parser.add_argument("--item", metavar="COLUMN", help="the column of EMBEDDING that names the items (default item)")
    add_key(parser, "embedding")
    _add_hypotheses(parser)
    parser.add_argument(
        "--matching",
        choices=["auto", "joint", "separate"],
        default="auto",
        help="joint: one-to-one assignment of properties to dimensions; separate: each property takes its best "
        "dimension, which may be shared; auto (default): joint, unless properties share much of their variance",
    )
    _add_testing(parser)

    parser = add_command(
        commands,
        "rsa",
        _rsa,
        summary="test which properties of the items the similarities reflect (Mantel test)",
        example="simdims rsa animals.npz properties.csv --labels name --method spearman --seed 0",
    )
    add_similarity(parser)
    _add_hypotheses(parser)
    parser.add_argument(
        "--method", choices=["pearson", "spearman"], default="pearson", help="pearson (default) or spearman"
    )
    _add_testing(parser)


def _add_hypotheses(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("hypotheses", metavar="PROPERTIES", type=Path, help="one row per item, one column per property")
    parser.add_argument("--labels", metavar="COLUMN", help="the column of PROPERTIES that names the items")


def _add_testing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--alternative", choices=["greater", "two-sided"], default="greater", help="greater (default) or two-sided"
    )
    parser.add_argument("--permutations", type=int, default=1000, metavar="N", help="permutations (default 1000)")
    parser.add_argument("--alpha", type=float, default=0.05, help="level of significance (default 0.05)")
    add_running(parser)
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help="a file for the table: .json or .csv")
    add_overwrite(parser)


def _test(options: argparse.Namespace) -> Findings:
    _check_target(options)
    from simdims.inference import dimension_test

    W, seed = read_embedding(options), settled_seed(options)
    tests = dimension_test(W, _properties(options), matching=options.matching, **_testing(options, seed))
    return _findings(options, tests, seed)


def _rsa(options: argparse.Namespace) -> Findings:
    _check_target(options)
    S = read_similarity(options)
    from simdims.inference import rsa_test

    seed = settled_seed(options)
    tests = rsa_test(S, _properties(options), method=options.method, **_testing(options, seed))
    return _findings(options, tests, seed)


def _check_target(options: argparse.Namespace) -> None:
    read = [("IN" if options.run is _rsa else "EMBEDDING", options.source), ("PROPERTIES", options.hypotheses)]
    check_target(options.out, (".json", ".csv"), read, overwrite=options.overwrite)


def _properties(options: argparse.Namespace) -> Any:
    from simdims import _inputs

    return _inputs.read_features(options.hypotheses, options.labels, None, None)


def _testing(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    return {
        "n_permutations": options.permutations,
        "alternative": options.alternative,
        "alpha": options.alpha,
        "random_state": seed,
        "n_jobs": options.jobs,
        "progress": progress_of(options),
    }


def _findings(options: argparse.Namespace, tests: HypothesisTests, seed: int) -> Findings:
    found = Findings(f"{tests.summary()}\n{tests.table.to_string(index=False)}", tests.to_dict(), seed)
    if options.out is not None:
        write_result(options.out, found.plain(), tests.table)
    return found
