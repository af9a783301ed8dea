"""What goes between the tags of the page: JSON that no label can break out of, and arrays as base64."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Loadings up to this many are kept as float32; more are kept as 16-bit steps of each dimension's largest.
EXACT_UP_TO = 500_000

#: The code of a similarity that is missing; the others are steps of 1/65534 of the largest.
MISSING = 65535


def script_json(value: Any) -> str:
    """JSON that is safe inside a script element: no text in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate is no text that a file could hold.
    return text.encode("utf-8", errors="replace").decode("utf-8")


def base64_of(array: NDArray) -> str:
    """The bytes of an array, little-endian, row by row."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return base64.b64encode(plain.tobytes()).decode("ascii")


@dataclass(frozen=True)
class PackedLoadings:
    """An embedding as lines of base64, one a dimension, and how to read them.

    Attributes
    ----------
    lines : str
    kind : {"float32", "uint16"}
    scales : list of float
        What a step is in each dimension; 1 for float32.
    precision : str
        How exact the numbers are, in words.
    """

    lines: str
    kind: str
    scales: list[float]
    precision: str


def pack_loadings(W: NDArray) -> PackedLoadings:
    """An embedding, a column at a time, so that the page reads only the dimensions that it shows."""
    n_components = W.shape[1]
    if W.size <= EXACT_UP_TO:
        lines = "\n".join(base64_of(W[:, k].astype(np.float32)) for k in range(n_components))
        return PackedLoadings(lines, "float32", [1.0] * n_components, "as 32-bit numbers, about 7 digits")
    scales, columns = [], []
    for k in range(n_components):
        column = W[:, k].astype(np.float64)
        scale = float(column.max()) / 65535 or 1.0
        scales.append(scale)
        columns.append(base64_of(np.rint(column / scale).astype(np.uint16)))
    words = "in 65,535 steps from 0 to the largest loading of each dimension, so to within 0.001% of that"
    return PackedLoadings("\n".join(columns), "uint16", scales, words)


def pack_similarities(values: NDArray, largest: float) -> str:
    """Similarities between 0 and `largest` as 16-bit steps; NaN is missing."""
    steps = np.rint(np.nan_to_num(values) * ((MISSING - 1) / (largest or 1.0)))
    return base64_of(np.where(np.isnan(values), MISSING, steps).astype(np.uint16))
