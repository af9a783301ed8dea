"""Read and write SimilaritySets: .npz files of plain arrays without pickle, or folders."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simdims._journal import replacing_file
from simdims._parameters import ParameterError, shown
from simdims.io import as_path, check_file
from simdims.io.arrays import npz_variables, reading, require_all
from simdims.io.folders import load_folder
from simdims.io.native import MEMBERS, SET_MARK, csr, plain_value
from simdims.similarity import Similarity
from simdims.similarity.arrays import arrays_of
from simdims.similarity.ownership import frozen
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    import pandas as pd

#: Format version.
FORMAT = 1


def save_set(systems: SimilaritySet, path: str | os.PathLike[str]) -> None:
    """Write a set; all systems are concatenated into a few arrays."""
    target = Path(path)
    if target.suffix.lower() != ".npz":
        raise ParameterError("path", "must end in .npz", f"{target.name!r}")
    heads, data, weights, indices, starts, labels = [], [], [], [], [], []
    for one in systems:
        own = arrays_of(one)
        kind = "factors" if own.implicit else "dense" if own.starts is None else "sparse"
        head = {"n_items": one.n_items, "signed": one.signed, "absent": one.absent, "info": _plain(one.info)}
        heads.append({**head, "kind": kind, "dtype": str(own.values.dtype), "size": own.values.size})
        data.append(own.values.ravel())
        if own.indices is not None:
            indices.append(own.indices)
            starts.append(own.starts)
        if own.weights is not None:
            heads[-1] |= {"weights": own.weights.size, "weights_dtype": str(own.weights.dtype)}
            weights.append(own.weights.ravel())
        labels.append(None if one.labels is None else list(one.labels))
    shared = {"labels": None if systems.labels is None else list(systems.labels), "n_items": systems.n_items}
    text = {"names": list(systems.names), "systems": heads, "own_labels": labels, **shared}
    arrays: dict[str, Any] = {
        SET_MARK: np.array(FORMAT),
        "text": np.array(json.dumps(text)),
        "info": np.array(_frame_as_json(systems.info)),
        "data": _joined(data, np.float64),
        "weights": _joined(weights, np.float64),
        "indices": _joined(indices, np.int64),
        "starts": _joined(starts, np.int64),
        "positions": _joined(systems.positions, np.int64),
    }
    with replacing_file(target.resolve()) as file:
        np.savez(file, **{MEMBERS: np.array(list(arrays)), **arrays})


def load_set(path: str | os.PathLike[str], info: Any = None, **options: Any) -> SimilaritySet:
    """Read a set written by save_set, or the files of a folder."""
    target = as_path(path)
    if target.is_dir():
        return load_folder(target, info, **options)
    check_file(target)
    for name, value in {"info": info, **options}.items():
        if value is not None:
            raise ParameterError(name, "must be None unless {path} is a folder", shown(value))
    if target.suffix.lower() != ".npz":
        rule = "must be a folder, or a file that SimilaritySet.save wrote"
        raise ParameterError("path", rule, f"{target.name!r}", "see {load_similarity()} for one matrix")
    variables = npz_variables(target)
    if SET_MARK not in variables:
        raise ParameterError("path", "must be a file that SimilaritySet.save wrote", f"{target.name!r}")
    require_all(variables)
    with reading(".npz"), np.load(target, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file}
        if int(arrays[SET_MARK]) != FORMAT:
            raise ValueError(f"format {int(arrays[SET_MARK])}, which a newer simdims wrote")
    with reading("saved SimilaritySet"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings were given when the set was made
        text = json.loads(str(arrays["text"]))
        parts = {name: _Reader(arrays[name]) for name in ("data", "weights", "indices", "starts", "positions")}
        heads = zip(text["systems"], text["own_labels"], strict=True)
        made = [_read(head, own, text["n_items"], parts) for head, own in heads]
        info = _frame_of(json.loads(str(arrays["info"])))
    return SimilaritySet.of_parts(
        [one for one, _ in made], [at for _, at in made], text["names"], info, text["labels"], text["n_items"]
    )


class _Reader:
    """Read an array sequentially."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.at = array, 0

    def next(self, n: int, dtype: Any = None) -> np.ndarray:
        """The next `n` numbers, as a new array."""
        if self.at + n > len(self.array):
            raise ValueError("arrays that end too early")
        part = self.array[self.at : self.at + n].astype(dtype or self.array.dtype)
        self.at += n
        return part


def _read(
    head: dict[str, Any], labels: list[str] | None, n_items: int, parts: dict[str, _Reader]
) -> tuple[Similarity, np.ndarray]:
    n = int(head["n_items"])
    data = parts["data"].next(head["size"], head["dtype"])
    weights = parts["weights"].next(head["weights"], head["weights_dtype"]) if "weights" in head else None
    at = parts["positions"].next(n).astype(np.intp)
    if len(np.unique(at)) < n or at.min(initial=0) < 0 or at.max(initial=0) >= n_items:
        raise ValueError("items in places that do not exist")
    if head["kind"] == "factors":
        made = Similarity.from_factors(frozen(data.reshape(n, -1)), labels, signed=head["signed"], info=head["info"])
        return made, at
    if head["kind"] == "dense":
        values, omega = (None if part is None else part.reshape(n, n) for part in (data, weights))
    else:
        stored = {"indices": parts["indices"].next(len(data)), "indptr": parts["starts"].next(n + 1)}
        values, omega = (None if part is None else csr(part, stored) for part in (data, weights))
    return Similarity(frozen(values), labels, frozen(omega), head["absent"], info=head["info"]), at


def _joined(parts: Any, dtype: Any) -> np.ndarray:
    return np.concatenate([np.asarray(part, dtype=dtype) for part in parts]) if len(parts) else np.empty(0, dtype)


def _plain(info: Any) -> dict[str, Any]:
    return json.loads(json.dumps(dict(info), default=_plain_value))


def _frame_as_json(frame: pd.DataFrame) -> str:
    columns: dict[str, dict[str, Any]] = {}
    for name, column in frame.items():
        values = [None if _is_na(cell) else cell for cell in column.tolist()]
        columns[str(name)] = {"dtype": str(column.dtype), "values": values}
        if str(column.dtype) == "category":
            columns[str(name)] |= {"categories": column.cat.categories.tolist(), "ordered": bool(column.cat.ordered)}
    return json.dumps(columns, default=_plain_value)


def _frame_of(columns: dict[str, Any]) -> dict[str, Any]:
    import pandas as pd

    made = {}
    for name, column in columns.items():
        dtype = column["dtype"]
        if "categories" in column:
            dtype = pd.CategoricalDtype(column["categories"], column["ordered"])
        made[name] = pd.Series(column["values"], dtype=object).astype(dtype)
    return made


def _is_na(cell: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(cell)) if np.ndim(cell) == 0 else False


def _plain_value(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else plain_value(value)
