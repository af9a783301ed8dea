"""`simdims evaluate ...`: what an embedding predicts."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import write_result
from simdims.cli.sources import add_comparison_columns


def add(commands: Any) -> None:
    summary = "measure how well an embedding predicts choices, ratings of pairs or ratings of items"
    parser = commands.add_parser("evaluate", help=summary, description=f"{summary.capitalize()}.")
    kinds = parser.add_subparsers(metavar="KIND", required=True)

    summary = "proportion of odd-one-out choices that an embedding predicts"
    example = "simdims evaluate triplets embedding.csv answers.csv --odd chosen"
    parser = shared.add_command(kinds, "triplets", _triplets, summary=summary, example=example)
    shared.add_embedding(parser)
    parser.add_argument("answers", metavar="TRIPLETS", type=Path, help="one answer per row: .npy or a table")
    shared.add_triplet_columns(parser)
    shared.add_choice(parser, "--similarity", "dot", "cosine")
    shared.add_header(parser)
    shared.add_table(parser, "TRIPLETS", has_numbers=False)

    summary = 'proportion of answers "A is more like B than C" that an embedding predicts'
    example = "simdims evaluate comparisons embedding.csv answers.csv --by participant"
    parser = shared.add_command(kinds, "comparisons", _comparisons, summary=summary, example=example)
    shared.add_embedding(parser)
    parser.add_argument("answers", metavar="ANSWERS", type=Path, help="a table with one answer per row")
    add_comparison_columns(parser)
    by = "the column of people, for the accuracy of each, also with the weights of a result of several people"
    parser.add_argument("--by", metavar="COLUMN", help=by)
    shared.add_table(parser, "ANSWERS", has_numbers=False)
    shared.add_choice(parser, "--similarity", "dot", "cosine")

    summary = "rank correlation of an embedding's similarities with ratings of pairs"
    example = "simdims evaluate pairs words.csv simlex.tsv --item1 word1 --item2 word2 --rating SimLex999"
    parser = shared.add_command(kinds, "pairs", _pairs, summary=summary, example=example)
    shared.add_embedding(parser)
    parser.add_argument("ratings", metavar="PAIRS", type=Path, help="a table with one pair per row")
    shared.add_rated_pairs(parser)
    shared.add_table(parser, "PAIRS")
    shared.add_choice(parser, "--similarity", "cosine", "dot")

    summary = "how well an embedding predicts ratings of items (ridge regression, nested cross-validation)"
    example = "simdims evaluate readout embedding.csv norms.csv --labels word --seed 0 -o readout.csv"
    parser = shared.add_command(kinds, "readout", _readout, summary=summary, example=example)
    shared.add_embedding(parser)
    parser.add_argument("ratings", metavar="RATINGS", type=Path, help="one row per item, one column per rating")
    shared.add_label_column(parser, "RATINGS")
    shared.add_seed(parser)
    shared.add_out(parser, ".json or .csv")


def _embedding_or_similarities(options: argparse.Namespace) -> Any:
    """EMBEDDING, which may also be similarities; a square array that is not symmetric is refused."""
    import numpy as np

    W = shared.read_embedding(options)
    values = np.asarray(W)
    if values.ndim == 2 and len(values) == values.shape[1] and not np.allclose(values, values.T, equal_nan=True):
        got = f"{len(values)} rows and {len(values)} columns that are not symmetric"
        raise ValueError(f"EMBEDDING must have fewer dimensions than items, or hold symmetric similarities, got {got}.")
    return W


def _triplets(options: argparse.Namespace) -> Findings:
    from simdims import metrics
    from simdims.io import raw

    W = _embedding_or_similarities(options)
    answers = raw.read_triplets(options.answers, options.columns, options.header, None, shared.table_reading(options))
    accuracy = metrics.triplet_accuracy(W, answers, odd=options.odd, similarity=options.similarity)
    words = f"{len(answers)} triplets: {accuracy:.1%} predicted (chance 33.3%)\naccuracy {accuracy:.6f}"
    return Findings(words, {"accuracy": accuracy, "n_triplets": len(answers), "chance": 1 / 3})


def _comparisons(options: argparse.Namespace) -> Findings:
    from simdims import metrics
    from simdims._tables import as_frame
    from simdims.io import raw

    W = _embedding_or_similarities(options)
    columns = shared.arguments(options, "head", "winner", "loser")
    answers = raw.read_comparisons(options.answers, list(columns.values()), shared.table_reading(options))
    accuracy = metrics.comparison_accuracy(W, answers, **columns, similarity=options.similarity)
    lines = [f"{len(answers):,} answers: {accuracy:.1%} predicted (chance 50.0%)"]
    values: dict[str, Any] = {"accuracy": accuracy, "n_answers": len(answers), "chance": 0.5}
    if options.by is not None:
        answers = as_frame(answers, **columns, by=options.by)
        weights = _weights(options)
        shared_by_all, weighted = {}, {}
        for name, own in answers.groupby(options.by, sort=True):
            shared_by_all[str(name)] = metrics.comparison_accuracy(W, own, **columns, similarity=options.similarity)
            if str(name) in weights:
                mine = W * weights[str(name)] ** 0.5
                weighted[str(name)] = metrics.comparison_accuracy(mine, own, **columns, similarity=options.similarity)
        values["accuracies"] = shared_by_all
        if weighted:
            values["weighted_accuracies"] = weighted
        width = max(map(len, [*shared_by_all, options.by]), default=0) + 2
        if weighted:
            lines.append(f"{options.by:<{width}}shared  own weights")
        lines += [
            f"{name:<{width}}{own:6.1%}" + (f"  {weighted[name]:11.1%}" if name in weighted else "")
            for name, own in shared_by_all.items()
        ]
        means = [sum(those.values()) / len(those) for those in (shared_by_all, weighted) if those]
        lines.append(f"{'mean':<{width}}{means[0]:6.1%}" + "".join(f"  {mean:11.1%}" for mean in means[1:]))
    return Findings("\n".join([*lines, f"accuracy {accuracy:.6f}"]), values)


def _weights(options: argparse.Namespace) -> dict[str, Any]:
    """The weights of each system, if EMBEDDING is a result of several systems."""
    if not options.source.is_dir():
        return {}
    from simdims.discovery import Discovery

    found = Discovery.load(options.source)
    return {} if found.weights is None else dict(zip(found.weights_frame().index, found.weights, strict=True))


def _pairs(options: argparse.Namespace) -> Findings:
    from simdims import io, metrics
    from simdims._parameters import listed_columns
    from simdims._tables import read_numbers
    from simdims.io import raw

    W = _embedding_or_similarities(options)
    how = shared.table_reading(options)
    table = raw.read_trials(options.ratings, [options.item1, options.item2], options.rating, how)
    for role in ("item1", "item2", "rating"):
        if (name := getattr(options, role)) not in table.columns:
            raise ValueError(f"--{role} must name a column of PAIRS, got {listed_columns(name, list(table.columns))}.")
    with io.named_in_errors(options.ratings):
        ratings = read_numbers(table, options.rating)
    found = metrics.pair_correlation(W, table[[options.item1, options.item2]], ratings, similarity=options.similarity)
    if math.isnan(found.correlation):
        got = f"the same value for all {found.n_found} pairs"
        raise ValueError(f"PAIRS must differ in rating and in similarity to be correlated, got {got}.")
    words = f"{found.n_found} of {found.n_pairs} pairs found; Spearman correlation {found.correlation:.3f}"
    values = {"correlation": found.correlation, "n_found": found.n_found, "n_pairs": found.n_pairs}
    return Findings(f"{words}\ncorrelation {found.correlation:.6f}", values)


def _readout(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".json", ".csv"), "source", "ratings")
    from simdims import metrics
    from simdims.io import raw

    W = shared.read_embedding(options)
    ratings = raw.read_features(options.ratings, options.labels, None, shared.table_reading(options))
    seed = shared.settled_seed(options)
    found = metrics.readout(W, ratings, random_state=seed)
    values = {"readout": found.table, "seed": seed}
    write_result(options.out, values, found.table)
    return Findings(found.table.to_string(index=False), values, seed)
