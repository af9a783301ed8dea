"""Folders with one file per system, and an optional table with information about the systems."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simdims import io
from simdims._parameters import ParameterError, ParameterTypeError, plural, shortlist, shown, warn, warn_again
from simdims._tables import natural_order
from simdims.io.layouts import Wanted
from simdims.io.tables import read_sheet
from simdims.similarity import is_default_axis, is_frame
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    import pandas as pd

#: Base names of tables with information about the systems.
INFO_NAMES = ("info", "participants", "subjects", "systems", "covariates")

#: Keywords of load_similarity that change the values read from a file.
_CHANGES = ("symmetrize", "negative", "low", "high")

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Folder(NamedTuple):
    """The files of a folder by system name, and the information about the systems."""

    files: dict[str, Path]
    info: pd.DataFrame | None


def load_folder(path: Path, info: Any = None, **options: Any) -> SimilaritySet:
    """Read each file of a folder with load_similarity, and return a set."""
    unknown = sorted(set(options) - {*Wanted._fields, *_CHANGES})
    if unknown:
        raise TypeError(f"SimilaritySet.load() got an unexpected keyword argument {unknown[0]!r}")
    folder = read_folder(path, info)
    loaded, suspects = {}, []
    for name, file in folder.files.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded[name] = _load(file, options)
        suspects += [file.name for one in caught if "dissimilarit" in str(one.message)]
        warn_again(one for one in caught if "dissimilarit" not in str(one.message))
    if 2 * len(suspects) > len(loaded):
        warn(
            f"{len(suspects)} of {len(loaded)} files look like dissimilarities: {shortlist(suspects)}.",
            "Read the folder with {from_dissimilarity()} and {by=person}.",
        )
    return SimilaritySet(loaded, info=folder.info)


def _load(file: Path, options: dict[str, Any]) -> Any:
    """Load one system, as a matrix with missing values for items that it lacks."""
    given: dict[str, Any] = {name: options.get(name) for name in Wanted._fields}
    wanted = Wanted(**{**given, "na_values": io.clean_na_values(options.get("na_values"))})
    found, present = io.read_similarity(file, wanted, {name: options.get(name) for name in _CHANGES}, may_lack=True)
    if present is None or wanted.labels is not None or found.labels != tuple(map(str, np.flatnonzero(present))):
        return found  # without missing items, or with names
    values = np.full((len(present), len(present)), np.nan)
    values[np.ix_(present, present)] = found.values
    return values


def read_folder(path: Path, info: Any = None) -> Folder:
    """The files of a folder in natural order (2 before 10); `info` is a table, its path, or None to look for one."""
    visible = (one for one in path.iterdir() if not one.name.startswith("."))
    found = sorted(visible, key=lambda one: natural_order(one.name))
    tables = [one for one in found if one.stem.lower() in INFO_NAMES and one.suffix.lower() in io.TABLES]
    files = [one for one in found if one not in tables and one.is_file() and one.suffix.lower() in io.LOADED]
    others = [one.name for one in found if one not in tables and one not in files]
    if not files:
        rule = f"must hold one file of similarities per system ({', '.join(io.LOADED)})"
        raise ParameterError("path", rule, f"no such file in {str(path)!r}")
    if others:
        warn(f"Left out of {path.name!r}, as their type holds no similarities: {shortlist(others)}.")
    by_name: dict[str, Path] = {}
    for file in files:
        if file.stem in by_name:
            got = f"{by_name[file.stem].name!r} and {file.name!r}"
            raise ParameterError("path", "must hold files that differ in more than their suffix", got, "remove one")
        by_name[file.stem] = file
    if info is None and len(tables) > 1:
        rule = "must be given where a folder has several tables of systems"
        raise ParameterError("info", rule, shortlist([repr(one.name) for one in tables]))
    return Folder(by_name, _info_of(tables[0] if info is None and tables else info, by_name))


def _info_of(given: Any, files: dict[str, Path]) -> Any:
    """One row per file, from a table whose index (in a file, the first column) names the files."""
    if given is None or isinstance(given, dict) or (is_frame(given) and is_default_axis(given.index)):
        return given
    if not is_frame(given):
        if not isinstance(given, str | os.PathLike):
            rule = "must be a DataFrame, a mapping of columns or the name of a file"
            raise ParameterTypeError("info", rule, shown(given))
        path = io.as_path(given, "info")
        io.check_file(path, io.TABLES)
        with io.named_in_errors(path):
            return _rows_of(read_info(path), files)
    return _rows_of(given, files)


def read_info(path: Path) -> pd.DataFrame:
    """A table of systems, indexed by its first column as text; ISO dates are parsed."""
    import pandas as pd

    frame = read_sheet(path, True, []).frame
    if is_default_axis(frame.index):
        first = str(frame.columns[0])
        frame = read_sheet(path, True, [first]).frame.set_index(first)
    for name, column in frame.items():
        known = column.dropna()
        if len(known) and known.map(lambda cell: isinstance(cell, str) and bool(_DATE.match(cell))).all():
            dates = pd.to_datetime(column, errors="coerce", format="ISO8601")
            if dates.notna().sum() == len(known):
                frame[name] = dates
    return frame


def _rows_of(table: pd.DataFrame, files: dict[str, Path]) -> pd.DataFrame:
    """The rows of the files, which the table names with or without suffix."""
    named = {file.name: name for name, file in files.items()}
    rows = [named.get(str(row).strip(), str(row).strip()) for row in table.index]
    repeated = sorted({row for row in rows if rows.count(row) > 1})
    if repeated:
        got = f"several for {shortlist(list(map(repr, repeated)))}"
        raise ParameterError("info", "must have one row per system", got)
    missing = [repr(file.name) for name, file in files.items() if name not in rows]
    if missing:
        got = f"none for {shortlist(missing)}"
        raise ParameterError("info", "must have a row for each file, named in the first column", got)
    unused = [row for row in rows if row not in files]
    if unused:
        left_out = f"{len(unused)} {plural('row', len(unused))} without a file: {shortlist(unused)}"
        warn(f"Left out {left_out}.", "This is about {info}.")
    return table.set_axis(rows, axis=0).loc[list(files)]
