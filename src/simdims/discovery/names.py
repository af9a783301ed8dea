"""Check names of dimensions, and read them from files saved by the report page."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from simdims import io
from simdims._journal import fingerprint
from simdims._parameters import ParameterError, ParameterTypeError, is_whole, shown
from simdims.consensus.result import numbered_names
from simdims.discovery.result import Discovery
from simdims.io import raw

#: Names of the first column of tables, which no dimension may have.
_TAKEN = ("item", "system")

_WANTED = (
    "must be a file of names that the page of this result saved, or a table with columns dimension and name",
    "write one dimension per line, such as dimension1,animal below dimension,name",
)


def renamed(found: Discovery, names: Mapping[Any, str | None] | str | os.PathLike[str]) -> Discovery:
    """The result with names for some of its dimensions."""
    if isinstance(names, str | os.PathLike):
        names = read_names(io.as_path(names, "names"), found)
    if not isinstance(names, Mapping):
        raise ParameterTypeError("names", "must be a mapping of dimensions to names, or a file", shown(names))
    numbers, present = numbered_names(found.n_components), found.dimension_names
    new = list(present)
    for dimension, name in names.items():
        k = _place(dimension, present, numbers)
        new[k] = numbers[k] if name is None else _checked(name, k)
    _require_distinct(new, numbers)
    encoder = found.encoder
    if encoder is not None:
        encoder = copy.copy(encoder)
        encoder.dimension_names_ = np.array(new, dtype=object)
    return replace(found, consensus=replace(found.consensus, dimension_names=tuple(new)), encoder=encoder)


def read_names(path: Path, found: Discovery) -> dict[str, str | None]:
    """Read names from a file saved by the page, or from a table with columns dimension and name; None if empty."""
    io.check_file(path, (".json", *io.TABLES))
    with io.named_in_errors(path):
        if path.suffix.lower() == ".json":
            names = _names_of_json(path, found)
        else:
            table = raw.read_trials(path, ["dimension", "name"])
            if not {"dimension", "name"} <= set(table.columns):
                raise ParameterError("names", _WANTED[0], f"columns {', '.join(map(repr, table.columns))}", _WANTED[1])
            pairs = zip(table["dimension"], table["name"], strict=True)
            names = {str(dimension): str(name) for dimension, name in pairs}
        return {dimension: name.strip() or None for dimension, name in names.items()}


def identity(found: Discovery) -> str:
    """An identifier of items and dimensions regardless of names, under which the page stores names."""
    digest = hashlib.sha256(fingerprint(found.embedding).encode())
    for label in found.labels or ():
        digest.update(label.encode("utf-8", errors="surrogatepass") + b"\0")
    return digest.hexdigest()[:20]


def _names_of_json(path: Path, found: Discovery) -> dict[str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError:
        raise ParameterError("names", _WANTED[0], "text that is not JSON", _WANTED[1]) from None
    is_saved = isinstance(content, dict) and isinstance(content.get("names"), dict)
    names = content["names"] if is_saved else content
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ParameterError("names", _WANTED[0], "other JSON", _WANTED[1])
    if is_saved and content.get("fingerprint", identity(found)) != identity(found):
        rule = "must be names of these dimensions"
        remedy = "name them on their own page, or remove the fingerprint from the file if the dimensions are the same"
        raise ParameterError("names", rule, "names saved from the page of another result", remedy)
    if is_saved:  # the file has all names of the page: a dimension that is not listed has none
        return {**dict.fromkeys(numbered_names(found.n_components), ""), **names}
    return names


def _place(dimension: Any, present: tuple[str, ...], numbers: tuple[str, ...]) -> int:
    """The column of a dimension, given by its current name, its number, or as dimension1."""
    if isinstance(dimension, str):
        text = dimension.strip()
        text = f"dimension{text}" if re.fullmatch(r"[1-9]\d*", text) else text
        for known in (present, numbers):
            if text in known:
                return known.index(text)
    elif is_whole(dimension) and 1 <= dimension <= len(present):
        return int(dimension) - 1
    rule = f"must name dimensions by number, from 1 to {len(present)}, or by their present name"
    raise ParameterError("names", rule, repr(dimension))


def _checked(name: Any, k: int) -> str:
    if not isinstance(name, str):
        raise ParameterTypeError("names", "must be texts", f"{shown(name)} for dimension {k + 1}")
    text = " ".join(name.split())
    if not text:
        raise ParameterError("names", "must not be empty", f"{name!r} for dimension {k + 1}", "pass None to remove one")
    if text.lower() in _TAKEN:
        rule = f"must not be {' or '.join(_TAKEN)}, which tables call their first column"
        raise ParameterError("names", rule, f"{text!r} for dimension {k + 1}")
    return text


def _require_distinct(names: list[str], numbers: tuple[str, ...]) -> None:
    for k, name in enumerate(names):
        if name in names[:k]:
            both = f"{name!r} for dimensions {names.index(name) + 1} and {k + 1}"
            raise ParameterError("names", "must differ between dimensions", both, "change one of them")
        if name in numbers and name != numbers[k]:
            raise ParameterError("names", "must not be the number of another dimension", f"{name!r} for {numbers[k]}")
