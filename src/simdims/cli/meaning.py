"""`simdims encode` and `simdims label`: predict dimensions of new items, and describe dimensions by properties."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._parameters import ParameterError
from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import check_target, write_result

if TYPE_CHECKING:
    import pandas as pd


def add(commands: Any) -> None:
    parser = shared.add_command(
        commands,
        "encode",
        _encode,
        summary="predict the dimensions of new items from features",
        details="Fits ridge regressions to the items of EMBEDDING, prints how well they predict items left out, and "
        "writes the loadings of the items that only FEATURES or --new has.",
        example="simdims encode animals activations.csv --labels name -o new-animals.csv",
    )
    shared.add_embedding(parser)
    parser.add_argument("features", metavar="FEATURES", type=Path, help="one row per item, one column per feature")
    shared.add_label_column(parser, "FEATURES")
    parser.add_argument(
        "--new",
        type=Path,
        metavar="FILE",
        help="the same features of new items (default: the items of FEATURES that EMBEDDING does not have)",
    )
    shared.add_choice(parser, "--kernel", "linear", "rbf")
    shared.add_count(parser, "n_folds", 5, "number of cross-validation folds")
    shared.add_seed(parser)
    shared.add_out(parser, ".csv, one row per new item")

    parser = shared.add_command(
        commands,
        "label",
        _label,
        summary="suggest a name for each dimension from properties of the items",
        details="Properties may be numbers, 0 and 1, or words for categories. `simdims report --suggestions` shows the "
        ".csv file in a report.",
        example="simdims label animals properties.csv --labels name --seed 0 -o names.csv",
    )
    shared.add_embedding(parser)
    parser.add_argument("properties", metavar="PROPERTIES", type=Path, help="one row per item, one column per property")
    shared.add_label_column(parser, "PROPERTIES")
    parser.add_argument(
        "--min-correlation",
        type=float,
        default=0.2,
        metavar="R",
        help="smallest cross-validated correlation of a suggestion (default 0.2)",
    )
    shared.add_count(parser, "n_permutations", 1000, "number of permutations")
    level = "significance level, adjusted over properties and dimensions (default 0.05)"
    parser.add_argument("--fdr", type=float, default=0.05, dest="alpha", metavar="RATE", help=level)
    shared.add_seed(parser)
    shared.add_out(parser, ".json or .csv")


def _encode(options: argparse.Namespace) -> Findings:
    read = [("EMBEDDING", options.source), ("FEATURES", options.features)]
    read += [] if options.new is None else [("--new", options.new)]
    check_target(options.out, (".csv",), read, overwrite=options.overwrite)
    from simdims.encoder import DimensionEncoder

    W, X = shared.read_embedding(options), _table(options, options.features)
    known, new = _split(W, X) if options.new is None else (X, _table(options, options.new))
    if options.out is not None and not len(new):
        raise ValueError(
            "FEATURES has no items that EMBEDDING does not have: add new items, or a file of them as --new."
        )
    seed = shared.settled_seed(options)
    encoder = DimensionEncoder(options.kernel, n_folds=options.n_folds, random_state=seed).fit(known, W)
    scores = encoder.scores_frame().reset_index()
    values: dict[str, Any] = {"scores": scores, "n_items": len(known), "n_new_items": len(new)}
    words = [
        f"Cross-validated correlation of predicted with fitted loadings, {len(known)} items: mean "
        f"{scores['correlation'].mean():.2f}",
        scores.to_string(index=False, float_format=lambda value: f"{value:.3g}"),
    ]
    if len(new):
        predicted = encoder.predict(new).rename_axis("item").reset_index()
        values["loadings"] = predicted
        words.append(f"Predicted the loadings of {len(new)} new {'item' if len(new) == 1 else 'items'}.")
        if options.out is None:
            words.append("Use -o to write them.")
        else:
            write_result(options.out, values, predicted)
            words.append(f"Wrote {options.out}")
    return Findings("\n".join(words), values, seed)


def _label(options: argparse.Namespace) -> Findings:
    read = [("EMBEDDING", options.source), ("PROPERTIES", options.properties)]
    check_target(options.out, (".json", ".csv"), read, overwrite=options.overwrite)
    from simdims import naming
    from simdims.io import raw

    how = shared.table_reading(options)
    W, properties = shared.read_embedding(options), raw.read_properties(options.properties, options.labels, how)
    shared.warn_of_order(W, options.labels, "PROPERTIES")
    seed = shared.settled_seed(options)
    given = shared.arguments(options, "min_correlation", "n_permutations", "alpha")
    try:
        table = naming.label_dimensions(W, properties, random_state=seed, **given)
    except ParameterError as error:
        if error.name != "properties" or options.labels is not None:
            raise
        remedy = "if a column names the items, pass its name as {labels}"
        raise ParameterError(error.name, error.rule, error.got, remedy) from None
    names = naming.suggested_names(table)
    n_dimensions = W.shape[1]
    words = [
        f"Properties describe {len(names)} of {n_dimensions} {'dimension' if n_dimensions == 1 else 'dimensions'}."
    ]
    words += [f"  {dimension}: {name}" for dimension, name in names.items()]
    values = {"n_dimensions": n_dimensions, "suggestions": names, "properties": table}
    found = Findings("\n".join(words), values, seed)
    if options.out is not None:
        write_result(options.out, found.plain(), table)
    return found


def _table(options: argparse.Namespace, path: Path) -> pd.DataFrame:
    import pandas as pd

    from simdims.io import raw

    table = raw.read_features(path, options.labels, None, shared.table_reading(options))
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _split(W: Any, X: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features of the embedding's items and of other items, if both tables name their items."""
    from simdims.similarity import is_default_axis, is_frame

    if not is_frame(W) or is_default_axis(W.index) or is_default_axis(X.index):
        return X, X.iloc[:0]
    items = set(map(str, W.index))
    is_known = [str(item) in items for item in X.index]
    return X[is_known], X[[not one for one in is_known]]
