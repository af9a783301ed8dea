"""The formats of Similarity.save: .npz stores everything, .csv only values and labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from simdims._journal import replacing_file
from simdims._parameters import ParameterError, ParameterTypeError, shortlist
from simdims.io.arrays import checked, npz_variables, reading, require_all
from simdims.io.pairs import are_positions
from simdims.io.tables import guarded
from simdims.similarity import Similarity
from simdims.similarity.ownership import frozen

# The format version, and the array of an .npz file that stores it.
FORMAT, MARK = 1, "simdims_format"
# The array that lists all arrays: members of a zip file have checksums, but the list of members has none.
MEMBERS = "simdims_members"
# An array that identifies files written by SimilaritySet.save.
SET_MARK = "simdims_set"

USE_NPZ = "save it as .npz, which keeps everything"


def save_npz(S: Similarity, path: Path) -> None:
    """Write a Similarity as plain arrays, without a pickle; `info` becomes JSON."""
    arrays: dict[str, Any] = {MARK: np.array(FORMAT), "info": np.array(json.dumps(dict(S.info), default=plain_value))}
    if S.labels is not None:
        arrays["labels"] = np.array(S.labels, dtype=np.str_)
    if S.factors is not None:
        arrays |= {"factors": S.factors, "signed": np.array(S.signed)}
    elif sparse.issparse(S.values):
        # Weights and values store the same pairs and share one sparsity pattern.
        arrays |= {"data": S.values.data, "indices": S.values.indices, "indptr": S.values.indptr}
        arrays["absent"] = np.array(S.absent)
    else:
        arrays["values"] = S.values
    if S.weights is not None:
        arrays["weights"] = S.weights.data if sparse.issparse(S.weights) else S.weights
    with replacing_file(path.resolve()) as file:
        np.savez(file, **{MEMBERS: np.array(list(arrays)), **arrays})


def load_npz(path: Path) -> Similarity | None:
    """Return the Similarity that save_npz wrote, or None for any other file."""
    variables = npz_variables(path)
    if SET_MARK in variables:
        remedy = "read it with SimilaritySet.load, or pass it to `simdims discover`"
        raise ParameterError("path", "must hold the similarities of one system", "a saved SimilaritySet", remedy)
    if MARK not in variables and MEMBERS not in variables:
        return None
    require_all(variables)
    with reading(".npz"), np.load(path, allow_pickle=False) as file:
        # Earlier versions have no list of arrays.
        lost = {str(name) for name in file.get(MEMBERS, ())} - set(file)
        if lost:
            raise ValueError(f"without {', '.join(sorted(lost))}")
        version = int(file[MARK])
        arrays = {name: file[name] for name in file} if version == FORMAT else {}
    if version != FORMAT:
        remedy = "a newer simdims wrote it; update simdims"
        raise ValueError(f"the file must have format {FORMAT}, got {version}: {remedy}.")
    with reading("saved Similarity"):
        labels = [str(label) for label in arrays["labels"]] if "labels" in arrays else None
        info = json.loads(str(arrays["info"]))
        factors, values, weights = (arrays.get(name) for name in ("factors", "values", "weights"))
        absent = arrays["absent"].item() if "absent" in arrays else None
        if "indptr" in arrays:
            values = csr(arrays["data"], arrays)
            weights = None if weights is None else csr(weights, arrays)
    if factors is not None:
        return Similarity.from_factors(frozen(factors), labels, signed=bool(arrays.get("signed", False)), info=info)
    return Similarity(frozen(values), labels, frozen(weights), absent, info=info)


def save_csv(S: Similarity, path: Path) -> None:
    """Write dense values as a square with labels, and sparse ones as a list of pairs."""
    if S.weights is not None:
        raise ParameterError("weights", "must be None to be saved as .csv", "an array", USE_NPZ)
    if S.factors is not None:
        raise ParameterError("values", "must not be implicit to be saved as .csv", "factors", USE_NPZ)
    lines = _pair_lines(S) if sparse.issparse(S.values) else _square_lines(S)
    with replacing_file(path.resolve()) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def plain_value(value: Any) -> Any:
    """A NumPy value in `info` as JSON can store it; refuse other objects."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ParameterTypeError("info", "must hold plain values to be saved", f"an object of type {type(value).__name__}")


def csr(data: np.ndarray, arrays: Mapping[str, np.ndarray]) -> sparse.csr_array:
    """A sparse matrix from its stored entries and the arrays `indices` and `indptr`, after checking them."""
    n_items = len(arrays["indptr"]) - 1
    return checked(sparse.csr_array((data, arrays["indices"], arrays["indptr"]), shape=(n_items, n_items)))


def _square_lines(S: Similarity) -> Iterator[str]:
    labels = None if S.labels is None else [_quoted(label) for label in S.labels]
    if labels is not None:
        yield ",".join(["item", *labels])
    for item, row in enumerate(S.values):
        cells = [_cell(value) for value in row.tolist()]
        yield ",".join(cells if labels is None else [labels[item], *cells])


def _pair_lines(S: Similarity) -> Iterator[str]:
    """The list of pairs, starting with each item paired with itself to preserve the item order."""
    if S.absent != "missing":
        rule = "must be 'missing' for sparse values to be saved as .csv"
        raise ParameterError("absent", rule, repr(S.absent), USE_NPZ)
    names = list(map(str, range(S.n_items)))
    if S.labels is not None:
        blank = [repr(label) for label in S.labels if not label.strip()]
        if blank or are_positions(S.labels):
            got = shortlist(blank or [repr(label) for label in S.labels])
            rule = "must be names, not blank or positions, to be saved as a list of pairs"
            raise ParameterError("labels", rule, got, USE_NPZ)
        names = [_quoted(label) for label in S.labels]
    yield "item1,item2,value"
    stored = S.values.tocoo()
    diagonal = np.full(S.n_items, np.nan)
    diagonal[stored.row[stored.row == stored.col]] = stored.data[stored.row == stored.col]
    for name, value in zip(names, diagonal.tolist(), strict=True):
        yield f"{name},{name},{_cell(value)}"
    upper = stored.row < stored.col
    for row, column, value in zip(stored.row[upper], stored.col[upper], stored.data[upper].tolist(), strict=True):
        yield f"{names[row]},{names[column]},{_cell(value)}"


def _quoted(label: str) -> str:
    doubled = guarded(label).replace('"', '""')
    return f'"{doubled}"'


def _cell(value: float) -> str:
    """The shortest text that is read as exactly this number; empty for NaN."""
    return repr(value) if value == value else ""
