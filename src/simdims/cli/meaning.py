"""`simdims encode`: the dimensions of new items, predicted from features."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def _encode(options: argparse.Namespace) -> Findings:
    read = [("EMBEDDING", options.source), ("FEATURES", options.features)]
    read += [] if options.new is None else [("--new", options.new)]
    check_target(options.out, (".csv",), read, overwrite=options.overwrite)
    from simdims.encoder import DimensionEncoder

    W, X = shared.read_embedding(options), _table(options.features, options.labels)
    known, new = _split(W, X) if options.new is None else (X, _table(options.new, options.labels))
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


def _table(path: Path, labels: str | None) -> pd.DataFrame:
    import pandas as pd

    from simdims.io import raw

    table = raw.read_features(path, labels, None, None)
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _split(W: Any, X: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features of the items of an embedding, and of others, if both tables name their items."""
    from simdims.similarity import is_default_axis, is_frame

    if not is_frame(W) or is_default_axis(W.index) or is_default_axis(X.index):
        return X, X.iloc[:0]
    items = set(map(str, W.index))
    is_known = [str(item) in items for item in X.index]
    return X[is_known], X[[not one for one in is_known]]
