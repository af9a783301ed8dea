"""Read similarities with load_similarity from many formats; save writes .npz and .csv."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._dependencies import library
from simdims._journal import refuse_name
from simdims._parameters import ParameterError, ParameterTypeError, require_choice, shown
from simdims._tables import warn_of_other_measure, what_else
from simdims.io.arrays import read_named_arrays, read_npy, reading
from simdims.io.exchange import from_networkx
from simdims.io.frames import FRAMES, R_OBJECTS
from simdims.io.layouts import Wanted, read_edge_list, read_table
from simdims.io.meadows import read_json
from simdims.io.native import load_npz, save_csv, save_npz
from simdims.io.sheets import SHEETS
from simdims.similarity import Parts, Similarity, as_similarity
from simdims.similarity.entries import value_range

logger = logging.getLogger("simdims")

NAMED_ARRAYS = (".npz", ".h5", ".hdf5", ".h5ad", ".mat")
TABLES = (".csv", ".tsv", ".txt", *SHEETS, *FRAMES)
EDGES = (".edgelist", ".edges")
LOADED = (".npy", *NAMED_ARRAYS, *TABLES, *EDGES, ".graphml", ".json")
#: Options that apply only to some file types.
OPTIONS = {"form": TABLES, "key": (*NAMED_ARRAYS, *R_OBJECTS), "sheet": SHEETS, "na_values": (*TABLES, *EDGES)}
SAVED = {".npz": save_npz, ".csv": save_csv}


def load_similarity(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    form: str | None = None,
    labels: Sequence[str] | None = None,
    absent: str | float | None = None,
    symmetrize: str | None = None,
    negative: str | None = None,
    low: float | None = None,
    high: float | None = None,
    sheet: str | None = None,
    na_values: Any = None,
) -> Similarity:
    r"""Load similarities from a file.

    What was found is in `info` of the result and, at level INFO, in the log "simdims".

    Parameters
    ----------
    path : str or path
        The suffix determines the file type, in lower or upper case.

        - .npy: a square array. .npz: a file written by `Similarity.save`, a square array, or a scipy sparse matrix.
        - .csv, .tsv, .txt: a square table with labels in the first row, the first column, both or neither; or a list of
          pairs, one per row, with the columns item, item, value and optionally weight, with or without a header. Labels
          and items 0, 1, 2, ... are positions, not names. Cells are separated by tabs, semicolons, commas or blanks.
          Empty cells, NA, N/A, #N/A, NaN, null, None, - and . (in any case) are missing. Decimal commas are accepted
          unless commas separate cells. Text is UTF-8, UTF-16 or else Latin-1.
        - .xlsx, .ods: a sheet with one of these layouts.
        - .parquet, .feather, and R's .rds, .rda, .rdata: the same two layouts, as a data frame or, from R, a matrix or
          a `dist` object.
        - .h5, .hdf5, .mat (of any version): a square matrix. If the file has exactly one list of text of matching
          length, it becomes the labels. From a MATLAB struct array, the field of square matrices is read.
        - .h5ad: a matrix in `obsp` of AnnData, labelled by the observation names.
        - .mat and .json exported from Meadows: the multiple arrangements of one or several participants, which are
          dissimilarities (see from_dissimilarity).
        - .edgelist, .edges: a list of pairs separated by blanks, tabs, semicolons or commas, with value 1 if there is
          no number; lines that start with # or % are comments.
        - .graphml: a graph; see as_similarity.

        A stack of square matrices in .npy, .npz, .h5, .hdf5 or .mat, with people on the first or the last axis or in a
        MATLAB struct array, is averaged over the people with a value for the pair; `info` holds their number and names.
    key : str, optional
        The variable of an .npz, .h5, .hdf5, .h5ad or .mat file, or object of an .rda file, to read; required if several
        are square. "variable.field" names a field of a MATLAB struct.
    form : {"square", "long"}, optional
        Whether a table is a square or a list of pairs. Detected by default; needed only for short lists of pairs.
    labels : sequence, optional
        One name per item. If a table or graph names its items, the names must be the same, in the same order. The items
        of a list of pairs are sorted in the order of the labels, and may be positions among them, from 0.
    absent : {"missing", "zero"} or float, optional
        How to treat pairs that a sparse matrix, a graph or a list of pairs does not contain; see Similarity. Required
        for sparse matrices and graphs. In a list of pairs, None means that unlisted pairs are missing; the result is
        then dense for up to 2,000 items or if at least 5% of all pairs are listed. Otherwise it is sparse.
    symmetrize : {"mean", "max"}, optional
        How to combine S[i, j] and S[j, i] if they differ; see as_similarity.
    negative : {"clip", "shift"}, optional
        How to treat negative values, by default an error; see as_similarity.
    low, high : float, optional
        The ends of a rating scale, which become 0 and 1; see as_similarity. By default values are not rescaled. `info`
        holds the smallest and the largest off-diagonal value.
    sheet : str, optional
        The sheet of an .xlsx or .ods file; required if several are not blank.
    na_values : str, number or list of these, optional
        Additional markers of missing values in a table. Labels and items are not affected.

    Returns
    -------
    Similarity

    Warns
    -----
    UserWarning
        If the name, values or diagonal of the file suggest dissimilarities; see Similarity.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If the type needs a library that is not installed.
    ValueError
        If the file is empty, damaged or of another type, or does not hold similarities. Nothing is unpickled.

    See Also
    --------
    from_ratings : Averages of repeated judgements of pairs.
    from_dissimilarity : Similarities from distances.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from simdims import load_similarity
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.csv")
    ...     _ = path.write_text("item1,item2,similarity\ncat,dog,0.8\ndog,car,0.1\n")
    ...     S = load_similarity(path)
    >>> S.labels
    ('cat', 'dog', 'car')
    >>> S.values
    array([[nan, 0.8, nan],
           [0.8, nan, 0.1],
           [nan, 0.1, nan]])
    >>> S.info["found"]
    'a list of 2 pairs of 3 items; UTF-8 text separated by commas'
    """
    changes: dict[str, Any] = {"symmetrize": symmetrize, "negative": negative, "low": low, "high": high}
    wanted = Wanted(key, form, labels, absent, symmetrize, sheet, clean_na_values(na_values))
    return read_similarity(as_path(path), wanted, changes)[0]


def read_similarity(
    path: Path, wanted: Wanted, changes: dict[str, Any], *, may_lack: bool = False
) -> tuple[Similarity, NDArray[np.bool_] | None]:
    """Like load_similarity; `may_lack` drops items without a value, and the mask of those kept is also returned."""
    suffix = path.suffix.lower()
    check_file(path)
    refuse_options(suffix, wanted)
    with named_in_errors(path):
        if suffix == ".npz" and (own := load_npz(path)) is not None:
            if wanted.key is not None:
                raise ParameterError("key", "must be None for a file that Similarity.save wrote", repr(wanted.key))
            # as_similarity refuses the other keywords, which the file determines.
            return as_similarity(own, labels=wanted.labels, absent=wanted.absent, **changes), None
        parts = _mean_over_people(read_parts(path, wanted))
        if wanted.absent is None and parts.absent is None and sparse.issparse(parts.values):
            raise ParameterError(
                "absent",
                "must be given for a sparse matrix or a graph, whose other pairs are not stored",
                remedy="pass {absent=missing} if nobody measured them, {absent=zero} if they are zeros, or a number "
                "between 0 and 1 for zeros with that weight",
            )
        if what_else(parts.info.get("column")) == "response times":  # Similarity itself warns of dissimilarities
            warn_of_other_measure(parts.info["column"])
        logger.info("%s: %s", path, parts.info["found"])
        parts = parts._replace(info={"file": path.name, **parts.info, **_range_of(parts.values)})
        present = _present(parts.values) if may_lack else None
        if present is None:
            return as_similarity(parts, labels=wanted.labels, absent=wanted.absent, **changes), None
        names: Sequence[str] | None = parts.labels if wanted.labels is None else wanted.labels
        at = np.flatnonzero(present)
        kept = [str(i) if names is None else names[int(i)] for i in at]
        return as_similarity(parts.values[np.ix_(at, at)], labels=kept, absent=wanted.absent, **changes), present


def _present(values: Any) -> NDArray[np.bool_] | None:
    """Which items of a matrix have an off-diagonal value; None if all have."""
    is_matrix = isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[0] == values.shape[1]
    if not is_matrix or values.dtype.kind != "f":
        return None
    known = ~np.isnan(values)
    np.fill_diagonal(known, False)
    present = known.any(axis=0) | known.any(axis=1)
    return None if present.all() or not present.any() else present


def _range_of(values: Any) -> dict[str, float]:
    """The smallest and the largest off-diagonal value in a file."""
    table = values.to_numpy() if hasattr(values, "to_numpy") else values
    is_matrix = getattr(table, "ndim", 0) == 2 and table.shape[0] == table.shape[1] and table.dtype.kind in "biuf"
    ends = value_range(table) if is_matrix else None
    return {} if ends is None else {"smallest": ends[0], "largest": ends[1]}


def save(S: Similarity, path: str | os.PathLike[str]) -> None:
    """Write a Similarity to an .npz or .csv file; see Similarity.save."""
    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix not in SAVED:
        raise ParameterError("path", f"must end in {' or '.join(SAVED)}", repr(str(path)))
    if path.is_dir():
        raise ParameterError("path", "must name a file", f"{str(path)!r}, which is a folder")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"No such folder: {str(folder)!r}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ParameterError("path", "must lie in a folder that can be written to", repr(str(path)))
    SAVED[suffix](S, path)


def as_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the argument `name` as a path."""
    try:
        found = Path(path)
    except TypeError:
        got = f"an object of type {type(path).__name__}"
        raise ParameterTypeError(name, "must be the name of a file", got) from None
    if not os.fspath(path):
        raise ParameterError(name, "must be the name of a file", "an empty text")
    refuse_name(found, name)
    return found


def check_file(path: Path, endings: Sequence[str] | None = LOADED) -> None:
    """Refuse a file that does not exist, is a folder or empty, or has none of these suffixes (None: any)."""
    if path.is_dir():
        inside = path / "similarity.npz"  # of a folder that discover wrote
        remedy = f": pass {str(inside)!r} for its similarities" if inside.is_file() else ""
        raise ValueError(f"{str(path)!r} must be a file, got a folder{remedy}.")
    if not path.exists():
        raise FileNotFoundError(f"No such file: {str(path)!r}.")
    suffix = path.suffix.lower()
    if endings is not None and suffix not in endings:
        is_sheet = suffix in (".xls", ".xlsb", ".numbers") and ".csv" in endings
        way = "save the sheet as .xlsx or .csv" if is_sheet else "convert it"
        wanted = endings[0] if len(endings) == 1 else f"one of {', '.join(endings)}"
        raise ValueError(f"Unsupported file type: {str(path)!r} must end in {wanted}, got {path.suffix!r}: {way}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{str(path)!r} must hold data, got an empty file (0 bytes).")


def refuse_options(suffix: str, wanted: Wanted) -> None:
    """Refuse options that do not apply to a file type."""
    require_choice("form", wanted.form, (None, "square", "long"))
    for name, what in (("key", "variable"), ("sheet", "sheet")):
        if not isinstance(getattr(wanted, name), str | None):
            raise ParameterTypeError(name, f"must be the name of a {what}", shown(getattr(wanted, name)))
    for name, suffixes in OPTIONS.items():
        value = getattr(wanted, name)
        if value not in (None, ()) and suffix not in suffixes:
            rule = f"must not be given for {suffix} files (it is for {', '.join(suffixes)})"
            raise ParameterError(name, rule, shown(list(value) if isinstance(value, tuple) else value))


def clean_na_values(na_values: Any) -> tuple[str, ...]:
    """Return markers of missing values as text."""
    marks = [] if na_values is None else na_values if isinstance(na_values, list | tuple) else [na_values]
    if not all(isinstance(mark, str | int | float) for mark in marks):
        raise ParameterTypeError("na_values", "must be a text, a number or a list of these", shown(na_values))
    return tuple(str(mark).strip() for mark in marks)


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Prefix error messages about a file with its name."""
    try:
        yield
    except ParameterError as error:
        error.file = error.file or path.name
        raise
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{path.name}: {error}").with_traceback(error.__traceback__) from None


def read_parts(path: Path, wanted: Wanted) -> Parts:
    """Read a file with the reader of its type."""
    suffix = path.suffix.lower()
    if suffix in NAMED_ARRAYS:
        return read_named_arrays(path, wanted.key, wanted.labels)
    if suffix in TABLES:
        return read_table(path, wanted)
    if suffix == ".npy":
        return read_npy(path)
    if suffix == ".json":
        return read_json(path)
    if suffix == ".graphml":
        return _read_graphml(path)
    return read_edge_list(path, wanted)


def _mean_over_people(parts: Parts) -> Parts:
    """Average a stack of matrices (people first); other parts are unchanged."""
    if getattr(parts.values, "ndim", 2) != 3:
        return parts
    from simdims.construct import mean_over_people

    n_people = len(parts.values)
    if n_people == 1:
        return parts._replace(values=parts.values[0])
    found = f"{parts.info['found']}, averaged over {n_people} people"
    values, _ = mean_over_people(iter(parts.values), n_people)
    return parts._replace(values=values, info={**parts.info, "found": found, "n_people": n_people})


def _read_graphml(path: Path) -> Parts:
    networkx = library("networkx", "Reading .graphml files", "networkx")
    with reading(".graphml"):
        graph = networkx.read_graphml(path)
    found = f"a graph of {graph.number_of_nodes()} nodes and {graph.number_of_edges()} edges"
    parts = from_networkx(graph)
    return parts._replace(info={"found": f"{found}, {'directed' if graph.is_directed() else 'undirected'}"})
