"""`simdims encode` and `simdims label`: predict dimensions of new items, and describe dimensions by properties."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._parameters import ParameterError, plural
from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import write_result
from simdims.cli.terminal import say

if TYPE_CHECKING:
    import pandas as pd


def add(commands: Any) -> None:
    summary = "predict the dimensions of new items from features"
    details = (
        "Fits ridge regressions to the items of EMBEDDING, prints how well they predict items left out, and "
        "writes the loadings of the items that only FEATURES or --new has."
    )
    example = "simdims encode animals activations.csv --labels name -o new-animals.csv"
    parser = shared.add_command(commands, "encode", _encode, summary=summary, details=details, example=example)
    shared.add_embedding(parser)
    parser.add_argument("features", metavar="FEATURES", type=Path, help="one row per item, one column per feature")
    shared.add_label_column(parser, "FEATURES")
    new = "the same features of new items (default: the items of FEATURES that EMBEDDING does not have)"
    parser.add_argument("--new", type=Path, metavar="FILE", help=new)
    shared.add_choice(parser, "--kernel", "linear", "rbf")
    shared.add_count(parser, "n_folds", 5, "number of cross-validation folds")
    shared.add_seed(parser)
    shared.add_out(parser, ".csv, one row per new item")

    summary = "suggest a name for each dimension from properties of the items"
    details = (
        "Properties may be numbers, 0 and 1, or words for categories. `simdims report --suggestions` shows the "
        ".csv file in a report."
    )
    example = "simdims label animals properties.csv --labels name --seed 0 -o names.csv"
    parser = shared.add_command(commands, "label", _label, summary=summary, details=details, example=example)
    shared.add_embedding(parser)
    parser.add_argument("properties", metavar="PROPERTIES", type=Path, help="one row per item, one column per property")
    shared.add_label_column(parser, "PROPERTIES")
    min_correlation = "smallest cross-validated correlation of a suggestion (default 0.2)"
    parser.add_argument("--min-correlation", type=float, default=0.2, metavar="R", help=min_correlation)
    shared.add_count(parser, "n_permutations", 1000, "number of permutations")
    shared.add_fdr(parser, "significance level, adjusted over properties and dimensions")
    shared.add_seed(parser)
    shared.add_out(parser, ".json or .csv")


def _encode(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".csv",), "source", "features", "new")
    from simdims.encoder import DimensionEncoder

    W, X = shared.read_embedding(options), _table(options, options.features)
    known, new = _split(W, X) if options.new is None else (X, _in_order(_table(options, options.new), X))
    if options.out is not None and not len(new):
        lack = "FEATURES has no items that EMBEDDING does not have"
        raise ValueError(f"{lack}: add new items, or a file of them as --new.")
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
        write_result(options.out, values, predicted)
        words.append(f"Predicted the loadings of {len(new)} new {plural('item', len(new))}.")
        words.append("Use -o to write them." if options.out is None else f"Wrote {options.out}")
    return Findings("\n".join(words), values, seed)


def _label(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".json", ".csv"), "source", "properties")
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
        remedy = "if a column names the items, pass its name as {label_column}"
        raise ParameterError(error.name, error.rule, error.got, remedy) from None
    names = naming.suggested_names(table)
    n_dimensions = W.shape[1]
    words = [f"Properties describe {len(names)} of {n_dimensions} {plural('dimension', n_dimensions)}."]
    words += [f"  {dimension}: {name}" for dimension, name in names.items()]
    found = Findings("\n".join(words), {"n_dimensions": n_dimensions, "suggestions": names, "properties": table}, seed)
    write_result(options.out, found.plain(), table)
    return found


def _table(options: argparse.Namespace, path: Path) -> pd.DataFrame:
    import pandas as pd

    from simdims.io import raw

    table = raw.read_features(path, options.labels, None, shared.table_reading(options))
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _in_order(new: pd.DataFrame, X: pd.DataFrame) -> pd.DataFrame:
    """The features of --new in the order of FEATURES, if they are the same."""
    names, wanted = list(new.columns), list(X.columns)
    if names == wanted or sorted(names) != sorted(wanted) or len({*names}) < len(names):
        return new
    say("The columns of --new are in another order than those of FEATURES and were matched by name.")
    return new[wanted]


def _split(W: Any, X: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features of the embedding's items and of other items, if both tables name their items."""
    from simdims.similarity import is_default_axis, is_frame

    if not is_frame(W) or is_default_axis(W.index) or is_default_axis(X.index):
        return X, X.iloc[:0]
    items = set(map(str, W.index))
    is_known = [str(item) in items for item in X.index]
    return X[is_known], X[[not one for one in is_known]]
