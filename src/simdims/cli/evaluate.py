"""`simdims evaluate ...`: what an embedding predicts."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from simdims.cli.options import (
    Findings,
    add_command,
    add_header,
    add_key,
    add_overwrite,
    read_embedding,
    settled_seed,
    whole_or_text,
)
from simdims.cli.outputs import check_target, write_result


def add(commands: Any) -> None:
    """Add the command and what it can evaluate by."""
    summary = "measure what an embedding predicts: choices, ratings of pairs, ratings of items"
    parser = commands.add_parser("evaluate", help=summary, description=f"{summary.capitalize()}.")
    kinds = parser.add_subparsers(metavar="KIND", required=True)

    parser = add_command(
        kinds,
        "triplets",
        _triplets,
        summary="the share of odd-one-out choices that an embedding predicts",
        example="simdims evaluate triplets embedding.csv answers.csv --odd chosen",
    )
    _add_embedding(parser)
    parser.add_argument("answers", metavar="TRIPLETS", type=Path, help="one answer a row: .npy, .csv, .tsv, .parquet")
    parser.add_argument(
        "--odd",
        type=whole_or_text,
        default=-1,
        metavar="COLUMN",
        help="name or position (from 0; -1, the default, is the last) of the column of the odd one out",
    )
    parser.add_argument("--columns", nargs=3, metavar="COLUMN", help="the three columns, where a table has more")
    parser.add_argument("--similarity", choices=["dot", "cosine"], default="dot", help="dot (default) or cosine")
    add_header(parser)

    parser = add_command(
        kinds,
        "pairs",
        _pairs,
        summary="the rank correlation of an embedding's similarities with ratings of pairs",
        example="simdims evaluate pairs words.csv simlex.tsv --item1 word1 --item2 word2 --rating SimLex999",
    )
    _add_embedding(parser)
    parser.add_argument("ratings", metavar="PAIRS", type=Path, help="a table with one pair a row: .csv, .tsv, .parquet")
    parser.add_argument("--item1", required=True, metavar="COLUMN", help="the column of the first item")
    parser.add_argument("--item2", required=True, metavar="COLUMN", help="the column of the second item")
    parser.add_argument("--rating", required=True, metavar="COLUMN", help="the column of the ratings")
    parser.add_argument("--similarity", choices=["cosine", "dot"], default="cosine", help="cosine (default) or dot")

    parser = add_command(
        kinds,
        "readout",
        _readout,
        summary="how well ratings of items can be read out of an embedding (ridge, nested cross-validation)",
        example="simdims evaluate readout embedding.csv norms.csv --labels word --seed 0 -o readout.csv",
    )
    _add_embedding(parser)
    parser.add_argument("ratings", metavar="RATINGS", type=Path, help="one row an item, one column a rating")
    parser.add_argument("--labels", metavar="COLUMN", help="the column of RATINGS that names the items")
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: drawn afresh and printed)")
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help="a file for the table: .json or .csv")
    add_overwrite(parser)


def _add_embedding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="EMBEDDING",
        type=Path,
        help="a file with one row an item, or a folder that `simdims discover` wrote",
    )
    parser.add_argument("--item", metavar="COLUMN", help="the column of EMBEDDING that names the items (default item)")
    add_key(parser, "embedding")


def _apart_from_similarities(W: Any) -> Any:
    """An embedding, or similarities; a square that is not symmetric could be neither."""
    import numpy as np

    values = np.asarray(W)
    if values.ndim == 2 and len(values) == values.shape[1] and not np.allclose(values, values.T, equal_nan=True):
        raise ValueError(
            f"EMBEDDING must have fewer dimensions than items, or be symmetric similarities, got {len(values)} rows "
            f"and {len(values)} columns that are not symmetric."
        )
    return W


def _triplets(options: argparse.Namespace) -> Findings:
    from simdims import _inputs, metrics

    W = _apart_from_similarities(read_embedding(options))
    answers = _inputs.read_triplets(options.answers, options.columns, options.header)
    accuracy = metrics.triplet_accuracy(W, answers, odd=options.odd, similarity=options.similarity)
    words = f"{len(answers)} triplets: {accuracy:.1%} predicted (chance 33.3%)\naccuracy {accuracy:.6f}"
    return Findings(words, {"accuracy": accuracy, "n_triplets": len(answers), "chance": 1 / 3})


def _pairs(options: argparse.Namespace) -> Findings:
    from simdims import _inputs, io, metrics
    from simdims._tables import read_numbers

    W = _apart_from_similarities(read_embedding(options))
    table = _inputs.read_trials(options.ratings, [options.item1, options.item2], options.rating)
    for role in ("item1", "item2", "rating"):
        if (name := getattr(options, role)) not in table.columns:
            has = ", ".join(map(repr, table.columns))
            raise ValueError(f"--{role} must name a column of PAIRS, got {name!r}: it has {has}.")
    with io.named_in_errors(options.ratings):
        ratings = read_numbers(table, options.rating)
    found = metrics.pair_correlation(W, table[[options.item1, options.item2]], ratings, similarity=options.similarity)
    if math.isnan(found.correlation):
        raise ValueError(
            f"PAIRS must vary to correlate with anything, got {found.n_found} pairs of one rating or one similarity."
        )
    return Findings(
        f"{found.n_found} of {found.n_pairs} pairs found; Spearman correlation {found.correlation:.3f}\n"
        f"correlation {found.correlation:.6f}",
        {"correlation": found.correlation, "n_found": found.n_found, "n_pairs": found.n_pairs},
    )


def _readout(options: argparse.Namespace) -> Findings:
    read = [("EMBEDDING", options.source), ("RATINGS", options.ratings)]
    check_target(options.out, (".json", ".csv"), read, overwrite=options.overwrite)
    from simdims import _inputs, metrics

    W = read_embedding(options)
    ratings = _inputs.read_features(options.ratings, options.labels, None, None)
    seed = settled_seed(options)
    found = metrics.readout(W, ratings, random_state=seed)
    values = {"readout": found.table, "seed": seed}
    if options.out is not None:
        write_result(options.out, values, found.table)
    return Findings(found.table.to_string(index=False), values, seed)
