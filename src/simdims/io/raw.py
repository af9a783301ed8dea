"""Read raw data for the constructors: features, trials, dissimilarities."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from simdims import io
from simdims._by_system import pair_columns, split_columns
from simdims._cells import cell_value, resembles_number
from simdims._memory import require
from simdims._parameters import ParameterError, listed_columns
from simdims.io.arrays import npz_variables, read_named_arrays, read_npy
from simdims.io.layouts import Wanted
from simdims.io.tables import PLAIN, Reading, Sheet, find_encoding, read_sheet

if TYPE_CHECKING:
    import pandas as pd


def read_features(
    path: Path,
    labels: str | None,
    header: bool | None = None,
    how: Reading = PLAIN,
    namer: str = "labels",
    *,
    categories: bool = False,
) -> Any:
    """Return the rows of features in a file, as a DataFrame whose index names the items if the file does.

    `labels` is the column that names the items, and `namer` the argument that it came from. `header` says whether the
    first row of a text file names the columns; None detects it. With `categories`, columns of words are kept as text.
    """
    with _opened(path, (".npy", *io.NAMED_ARRAYS, *io.TABLES), how) as suffix:
        if suffix in io.TABLES:
            sheet = read_sheet(path, header, [] if labels is None else [labels], how)
            return _as_features(sheet, labels, namer, categories)
        _refuse_option(namer, labels, io.TABLES, suffix)
        if suffix == ".npy":
            return read_npy(path).values
        parts = read_named_arrays(path, _only_array(path) if how.key is None else how.key, None)
        return _labelled(_dense(parts.values), parts.labels, None)


def read_properties(path: Path, labels: str | None, how: Reading = PLAIN) -> pd.DataFrame:
    """Return item properties from a table: numbers, or text for categories; `labels` names the items."""
    with _opened(path, io.TABLES, how):
        sheet = read_sheet(path, None, [] if labels is None else [labels], how)
        frame = sheet.frame.copy()
        if labels is not None:
            _require_column("labels", labels, frame)
        for column in frame.columns:
            if column != labels and frame[column].dtype.kind not in "biuf":
                with suppress(ValueError):  # text is a category
                    frame[column] = sheet.numbers(column)
        return frame if labels is None else frame.set_index(labels)


def has_column(path: Path, name: str, how: Reading = PLAIN) -> bool:
    """Whether a file is a table with a column of that name."""
    if path.suffix.lower() not in io.TABLES or not path.is_file() or path.stat().st_size == 0:
        return False
    with io.named_in_errors(path):
        return name in read_sheet(path, None, [name], how).frame.columns


def read_triplets(
    path: Path, columns: Sequence[str] | None, header: bool | None, by: str | None = None, how: Reading = PLAIN
) -> Any:
    """Return triplets as a table of three columns: `columns`, or all but `by` and covariates, which are kept."""
    with _opened(path, (".npy", *io.TABLES), how) as suffix:
        if suffix == ".npy":
            _refuse_option("columns", columns, io.TABLES, ".npy")
            _refuse_option("by", by, io.TABLES, ".npy")
            return read_npy(path).values
        sheet = read_sheet(path, header, None, how).with_rows()
        for name, column in [*(("columns", column) for column in columns or ()), *([] if by is None else [("by", by)])]:
            _require_column(name, column, sheet.frame)
        if by is None:
            shown = list(sheet.frame.columns if columns is None else columns)
            return _numbered_triplets(sheet._replace(frame=sheet.frame[shown]))
        judged, known = split_columns(sheet.frame, by)
        triplets = _numbered_triplets(sheet._replace(frame=sheet.frame[list(columns or judged)]))
        known = [column for column in known if column not in triplets]
        return triplets.join(sheet.frame[known]).assign(**{by: sheet.frame[by].astype(str)})


def read_comparisons(path: Path, columns: Sequence[str], how: Reading = PLAIN) -> pd.DataFrame:
    """Return a table of comparisons, whose `columns` hold the head, the winner and the loser."""
    with _opened(path, io.TABLES, how):
        sheet = read_sheet(path, True, None, how).with_rows()
        items = [column for column in dict.fromkeys(columns) if list(sheet.frame.columns).count(column) == 1]
        if len(items) < len(columns):
            return sheet.frame  # refused later, when the columns are needed
        numbered = _numbered_triplets(sheet._replace(frame=sheet.frame[items]))
        return sheet.frame.assign(**{column: numbered[column] for column in items})


def _numbered_triplets(sheet: Sheet) -> pd.DataFrame:
    """Triplets as given, or as positions if nearly all cells are integers: then every cell must be one."""
    frame = sheet.frame
    texts = [column for column in frame.columns if frame[column].dtype.kind not in "biuf"]
    items = [str(item).strip() for column in texts for item in frame[column].unique()]
    if not texts or 4 * sum(item.isdigit() for item in items) < 3 * len(items):
        return frame
    numbers = {column: sheet.numbers(column) for column in texts}
    for column, values in numbers.items():
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            got = f"the text {str(frame[column].iloc[row])!r} in {sheet.row(row)}, which marks a missing value"
            raise ValueError(f"Column {column!r} must name an item in every row, got {got}: remove the row.")
    return frame.assign(**numbers)


def read_trials(path: Path, names: Sequence[str], number: str | None = None, how: Reading = PLAIN) -> pd.DataFrame:
    """Return a table with the columns `names` as text, even if it is "NA" or a number, and `number` as numbers."""
    with _opened(path, io.TABLES, how):
        sheet = read_sheet(path, True, names, how).with_rows()
        if number is None or list(sheet.frame.columns).count(number) != 1 or number in names:
            return sheet.frame
        return sheet.frame.assign(**{number: sheet.numbers(number)})


def read_dissimilarity(
    path: str | os.PathLike[str], labels: Sequence[str] | None, how: Reading, columns: Mapping[str, Any], person: Any
) -> tuple[Any, Sequence[str] | None, dict[str, Any]]:
    """Return dissimilarities (a DataFrame if the file names the items), labels, and a description of the file.

    If any of the `columns` item1, item2 and dissimilarity are given, or `person` is the name of a column, the file is a
    list of pairs, and its table is returned.
    """
    path = io.as_path(path, "D")
    io.check_file(path, (".npy", *io.NAMED_ARRAYS, *io.TABLES, ".json"))
    with io.named_in_errors(path):
        wanted = Wanted(labels=labels, **how._asdict())
        io.refuse_options(path.suffix.lower(), wanted)
        given = [column for column in columns.values() if column is not None]
        if given or (isinstance(person, str) and has_column(path, person, how)):
            return _pair_list(path, how, columns, person), labels, {"file": path.name}
        parts = io.read_parts(path, wanted)
        if sparse.issparse(parts.values):
            raise ValueError("dissimilarities must be dense, got a sparse matrix, in which most pairs are not stored.")
        if parts.weights is not None:
            raise ValueError("dissimilarities must not have weights, got a column of them: remove it.")
        info = {"file": path.name, **parts.info}
        if getattr(parts.values, "ndim", 2) != 2:
            return parts.values, parts.labels if labels is None else labels, info
        return _labelled(parts.values, parts.labels, parts.labels), labels, info


def _pair_list(path: Path, how: Reading, columns: Mapping[str, Any], person: Any) -> pd.DataFrame:
    """A list of pairs with the `columns` item1, item2 and dissimilarity, by default those of `pair_columns`."""
    table = read_sheet(path, True, [person] if isinstance(person, str) else None, how).frame
    named = {name: str(column) for name, column in columns.items() if column is not None}
    if not named:
        named = dict(zip(columns, map(str, pair_columns(table, person)), strict=True))
    value = named.pop("dissimilarity", None)
    return read_trials(path, [*named.values(), *([person] if person in table.columns else [])], value, how)


def read_names(path: Path) -> list[str]:
    """Return the lines of a text file."""
    io.check_file(path, None)
    with io.named_in_errors(path):
        return path.read_text(encoding=find_encoding(path)).splitlines()


@contextmanager
def _opened(path: Path, endings: Sequence[str], how: Reading) -> Iterator[str]:
    """Check a file and the options for it, yield its suffix, and name the file in errors about its content."""
    io.check_file(path, endings)
    suffix = path.suffix.lower()
    with io.named_in_errors(path):
        for name in Reading._fields:
            if suffix not in io.OPTIONS[name]:
                _refuse_option(name, getattr(how, name) or None, io.OPTIONS[name], suffix)
        yield suffix


def _refuse_option(name: str, value: object, endings: Iterable[str], suffix: str) -> None:
    if value is not None:
        raise ParameterError(name, f"must be left out for {suffix} files (it is for {', '.join(endings)})", repr(value))


def _require_column(name: str, column: str, frame: pd.DataFrame) -> None:
    if column not in frame.columns:
        raise ParameterError(name, "must name a column of this file", listed_columns(column, list(frame.columns)))


def _only_array(path: Path) -> str:
    """The name of the only array of an .npz file."""
    if path.suffix.lower() == ".h5ad":
        return "X"
    names = list(npz_variables(path)) if path.suffix.lower() == ".npz" else []
    if len(names) == 1:
        return names[0]
    found = f"; the file contains {', '.join(names)}" if names else ""
    raise ParameterError("key", "must name the variable that holds the features", f"None{found}")


def _dense(values: Any) -> Any:
    if not sparse.issparse(values):
        return values
    require(values.dtype.itemsize * values.shape[0] * values.shape[1], "A dense table of the features", "choose some")
    return values.toarray()


def _labelled(values: Any, index: Sequence[str] | None, columns: Sequence[str] | None) -> Any:
    if index is None:
        return values
    import pandas as pd

    return pd.DataFrame(values, index=list(index), columns=None if columns is None else list(columns))


def _as_features(sheet: Sheet, labels: str | None, namer: str, categories: bool) -> pd.DataFrame:
    frame = sheet.frame
    if labels is not None:
        _require_column(namer, labels, frame)
    for column in frame.columns:
        if column != labels and frame[column].dtype.kind not in "biuf":
            try:
                frame[column] = sheet.numbers(column)
            except ParameterError as error:
                are_words = _are_words(frame[column])
                if are_words and categories:
                    continue
                remedy = f"{error.remedy}{_advice(labels, namer) if are_words else ''}"
                raise ParameterError(error.name, error.rule, error.got, remedy) from None
    return frame if labels is None else frame.set_index(labels)


def _are_words(cells: pd.Series) -> bool:
    """Whether a text column holds words rather than numbers with a few mistakes."""
    n_words = sum(cell_value(cell) is None and not resembles_number(str(cell)) for cell in cells.dropna())
    return 2 * n_words >= cells.count() > 0


def _advice(labels: str | None, namer: str) -> str:
    """Advice for a column of words among features."""
    if labels is None:
        return f". If it names the items, pass its name as {{{namer}}}"
    return ". If it is categorical, use one 0/1 column per category, or remove it"
