"""Raw data in files, as the constructors take them: features, trials, dissimilarities."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy import sparse

from simdims import io
from simdims._journal import refuse_name
from simdims._parts import library
from simdims._tables import read_numbers
from simdims.io.arrays import read_npy, reading
from simdims.io.text import DECIMAL_COMMA, Dialect, find_dialect, find_encoding, is_text, rows, unguarded

if TYPE_CHECKING:
    import pandas as pd

TABLES = tuple(io.TABLES)
NAMED_ARRAYS = tuple(io.NAMED_ARRAYS)
MISSING = ("", "NA", "na", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A")
# Rows of a text file that are looked at to find out whether its numbers have decimal commas.
N_LOOKED_AT = 1000


def read_features(path: Path, labels: str | None, key: str | None, header: bool | None, namer: str = "--labels") -> Any:
    """Return the rows of features in a file, as a DataFrame whose index names the items where the file does.

    Parameters
    ----------
    path : Path
    labels : str or None
        The column of a table that names the items.
    key : str or None
        The variable of a file of several arrays.
    header : bool or None
        Whether the first row of a text file names the columns; None finds out.
    namer : str
        The option that says `labels`.
    """
    _check_file(path, (".npy", *NAMED_ARRAYS, *TABLES))
    suffix = path.suffix.lower()
    with io._named_in_errors(path):
        if suffix in TABLES:
            _refuse_option("--key", key, NAMED_ARRAYS, suffix)
            return _as_features(_read_frame(path, header, [] if labels is None else [labels]), labels, namer)
        _refuse_option(namer, labels, TABLES, suffix)
        if suffix == ".npy":
            _refuse_option("--key", key, NAMED_ARRAYS, suffix)
            return read_npy(path).values
        parts = io.NAMED_ARRAYS[suffix](path, _only_array(path) if key is None else key, None)
        return _labelled(parts.values, parts.labels, None)


def has_column(path: Path, name: str) -> bool:
    """Whether a table has a column of that name."""
    if path.suffix.lower() not in TABLES or not path.is_file() or path.stat().st_size == 0:
        return False
    with io._named_in_errors(path):
        return name in _read_frame(path, None, [name]).columns


def read_triplets(path: Path, columns: Sequence[str] | None, header: bool | None) -> Any:
    """Return the triplets in a file as a table of three columns: `columns`, or all there are."""
    _check_file(path, (".npy", *TABLES))
    with io._named_in_errors(path):
        if path.suffix.lower() == ".npy":
            _refuse_option("--columns", columns, TABLES, ".npy")
            return read_npy(path).values
        frame = _read_frame(path, header, None)
        if columns is None:
            return frame
        unknown = [column for column in columns if column not in frame.columns]
        if unknown:
            raise ValueError(
                f"--columns must name columns of this file, got {unknown[0]!r}: it has "
                f"{', '.join(map(repr, frame.columns))}."
            )
        return frame[list(columns)]


def read_trials(path: Path, names: Sequence[str]) -> pd.DataFrame:
    """Return a table whose columns called `names` are text as it stands, even if it spells a number or "NA"."""
    _check_file(path, TABLES)
    with io._named_in_errors(path):
        return _read_frame(path, True, names)


def read_dissimilarity(
    path: Path, key: str | None, labels: Sequence[str] | None
) -> tuple[Any, Sequence[str] | None, dict[str, Any]]:
    """Return the dissimilarities in a file (a DataFrame where it names the items), labels, and what was found."""
    refuse_name(path, "D")
    _check_file(path, (".npy", *NAMED_ARRAYS, *TABLES))
    with io._named_in_errors(path):
        io._refuse_options(path.suffix.lower(), key, None)
        parts = io._read(path, key, None, labels, None, None)
        if sparse.issparse(parts.values):
            raise ValueError("dissimilarities must be dense, got a sparse matrix, in which most pairs are not stored.")
        if parts.weights is not None:
            raise ValueError("dissimilarities must not have weights, got a column of them: leave it out.")
        info = {"file": path.name, **parts.info}
        if getattr(parts.values, "ndim", 2) != 2:
            return parts.values, parts.labels if labels is None else labels, info
        return _labelled(parts.values, parts.labels, parts.labels), labels, info


def read_names(path: Path) -> list[str]:
    """Return the lines of a text file."""
    _check_file(path, None)
    with io._named_in_errors(path):
        return path.read_text(encoding=find_encoding(path)).splitlines()


def _check_file(path: Path, endings: Sequence[str] | None) -> None:
    if path.is_dir():
        raise ValueError(f"{str(path)!r} must be a file, got a folder.")
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} must be a file that is there, got none of this name.")
    if endings is not None and path.suffix.lower() not in endings:
        raise ValueError(f"{str(path)!r} must end in one of {', '.join(endings)}, got {path.suffix or 'no ending'!r}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{str(path)!r} must hold data, got an empty file (0 bytes).")


def _refuse_option(option: str, value: object, endings: Sequence[str], suffix: str) -> None:
    if value is not None:
        raise ValueError(
            f"{option} must be left out for {suffix} files (it is for {', '.join(endings)}), got {value!r}."
        )


def _only_array(path: Path) -> str:
    """The name of the one array of a file, if it is easily told."""
    names = []
    if path.suffix.lower() == ".npz":
        with reading(".npz"), zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
        if len(names) == 1:
            return names[0]
    found = f": it holds {', '.join(names)}" if names else ""
    raise ValueError(f"--key must say which variable of this file holds the features, got none{found}.")


def _labelled(values: Any, index: Sequence[str] | None, columns: Sequence[str] | None) -> Any:
    if index is None:
        return values
    import pandas as pd

    return pd.DataFrame(values, index=list(index), columns=None if columns is None else list(columns))


def _as_features(frame: pd.DataFrame, labels: str | None, namer: str) -> pd.DataFrame:
    if labels is not None:
        if labels not in frame.columns:
            names = ", ".join(map(repr, frame.columns))
            raise ValueError(f"{namer} must name a column of this file, got {labels!r}: it has {names}.")
        frame = frame.set_index(labels)
    for column in frame.columns:
        if frame[column].dtype.kind not in "biuf":
            try:
                frame[column] = read_numbers(frame, column)
            except ValueError as error:
                raise ValueError(f"{error} If it names the items, pass {namer} {column}.") from None
    return frame


def _read_frame(path: Path, header: bool | None, names: Sequence[str] | None) -> pd.DataFrame:
    """A table; the columns called `names` are text, and with None any column may name items.

    A first column without a name, as pandas and R write it, becomes the index, unless it is 0, 1, 2, ...
    """
    import pandas as pd

    if path.suffix.lower() == ".parquet":
        library("pyarrow", "Reading .parquet files", '"simdims[io]"')
        with reading(".parquet"):
            return pd.read_parquet(path, engine="pyarrow")
    dialect = find_dialect(path)
    head = [cells for _, cells in islice(rows(path, dialect), N_LOOKED_AT)]
    if not head:
        raise ValueError("this must hold a table, got blank lines only.")
    has_header = _is_header(head[0], dialect) if header is None else header
    columns: list[Any] = head[0] if has_header else list(range(len(head[-1])))
    with reading("text"):
        frame = pd.read_csv(
            path,
            encoding=dialect.encoding,
            sep=dialect.separator or r"\s+",
            decimal="," if _has_decimal_commas(head, dialect) else ".",
            header=0 if has_header else None,
            # Any word may name an item, also one that says elsewhere that a cell is missing.
            keep_default_na=False,
            na_values={} if names is None else {column: MISSING for column in columns if column not in names},
            dtype=dict.fromkeys(names or (), str),
            skipinitialspace=True,
            low_memory=False,
        )
    for column in frame.columns[[dtype.kind not in "biuf" for dtype in frame.dtypes]]:
        frame[column] = frame[column].map(lambda cell: unguarded(cell) if isinstance(cell, str) else cell)
    if not has_header:
        return frame.rename(columns=str)
    if not head[0][0].strip():
        frame = frame.set_index(frame.columns[0])
    return frame.reset_index(drop=True) if frame.index.equals(pd.RangeIndex(len(frame))) else frame


def _is_header(first: list[str], dialect: Dialect) -> bool:
    """Whether the first row of a table holds names rather than numbers."""
    names_rows = not first[0].strip()
    cells = [cell.strip() for cell in first[names_rows:]]
    if any(is_text(cell, dialect) for cell in cells):
        return True
    if cells != [str(number) for number in range(len(cells))]:
        return False
    if names_rows:
        return True
    raise ValueError(
        f"the first row must be told to be a header or data, got the numbers 0 to {len(cells) - 1}, which could be "
        "either: pass --header or --no-header."
    )


def _has_decimal_commas(head: list[list[str]], dialect: Dialect) -> bool:
    return dialect.separator != "," and any(DECIMAL_COMMA.fullmatch(cell.strip()) for cells in head for cell in cells)
