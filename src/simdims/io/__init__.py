"""Similarities in files: load_similarity reads what people have, save writes what loses nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scipy import sparse

from simdims._dependencies import library
from simdims._journal import refuse_name
from simdims._parameters import spelled
from simdims._tables import warn_of_other_measure, what_else
from simdims.io.arrays import read_hdf5, read_mat, read_npy, read_npz, reading
from simdims.io.exchange import from_networkx
from simdims.io.frames import read_parquet
from simdims.io.layouts import read_edge_list, read_table
from simdims.io.native import load_npz, save_csv, save_npz
from simdims.similarity import Parts, Similarity, as_similarity
from simdims.similarity.entries import value_range
from simdims.similarity.validation import ABSENT_OPTIONS

logger = logging.getLogger("simdims")

NAMED_ARRAYS = {".npz": read_npz, ".h5": read_hdf5, ".hdf5": read_hdf5, ".mat": read_mat}
TABLES = {".csv": read_table, ".tsv": read_table, ".txt": read_table, ".parquet": read_parquet}
LOADED = (".npy", *NAMED_ARRAYS, *TABLES, ".edgelist", ".edges", ".graphml")
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
) -> Similarity:
    r"""Load similarities from a file of any of the types that people keep them in.

    What was found is in the `info` of the result and, at level INFO, in the log named "simdims".

    Parameters
    ----------
    path : str or path
        The type is told by the ending, in small or capital letters.

        - .npy: a square array. .npz: what `Similarity.save` wrote, a square array, or a sparse matrix of scipy.
        - .csv, .tsv, .txt: a square table with labels in the first row, the first column, both or neither; or a list
          of pairs, one a row, with the columns item, item, value and perhaps weight, with or without a header. Labels
          and items that are 0, 1, 2, ... are positions and name nothing. Tabs, semicolons, commas or blanks separate
          cells; empty cells, NA, N/A, #N/A, NaN, null, None, - and . (in any case) are missing; decimal commas are
          read where commas do not separate; text is UTF-8, UTF-16 or else Latin-1.
        - .parquet: the same two forms.
        - .h5, .hdf5, .mat (of any version): a square matrix; the one list of as many texts in the file, if there is
          just one, becomes the labels. Of a MATLAB struct array the field of square matrices is read.
        - .edgelist, .edges: a list of pairs separated by blanks, tabs, semicolons or commas, of value 1 where there
          is no number; lines that start with # or % are comments.
        - .graphml: a graph, as as_similarity takes it.

        A stack of square matrices in .npy, .npz, .h5, .hdf5 or .mat, with people on the first or the last axis or in a
        MATLAB struct array, is averaged over the people who have a pair; `info` says how many they are, and who.
    key : str, optional
        Which variable of an .npz, .h5, .hdf5 or .mat file to read; needed where several are square. "variable.field"
        names a field of a MATLAB struct.
    form : {"square", "long"}, optional
        Whether a table is a square or a list of pairs, by default found out; needed only for lists of few pairs.
    labels : sequence, optional
        One name an item. Where a table or graph names its items they must be the same, in the same order; a list of
        pairs takes its order from them, and one whose items are numbers may count them by position, from 0.
    absent : {"missing", "zero"} or float, optional
        What pairs mean that a sparse matrix, a graph or a list of pairs does not hold; see Similarity. Needed for
        sparse matrices and graphs. Where it is None, unlisted pairs are missing, and the result is dense up to 2,000
        items or from 5 % of all pairs on; where it is given, the result is sparse.
    symmetrize : {"mean", "max"}, optional
        How to combine S[i, j] and S[j, i] where they differ; see as_similarity.
    negative : {"clip", "shift"}, optional
        What to do with negative values, by default an error; see as_similarity.
    low, high : float, optional
        The ends of a rating scale, which become 0 and 1; see as_similarity. By default values stay as they are. The
        smallest and the largest value found, of two different items, are in `info`.

    Returns
    -------
    Similarity

    Warns
    -----
    UserWarning
        If the file seems to hold dissimilarities, by its name, its values or its diagonal; see Similarity.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If the type needs a library that is not installed; the sentence names it.
    ValueError
        If the file is empty, damaged or of another type, or holds no similarities; the sentence says where. Nothing
        is ever unpickled.

    See Also
    --------
    from_ratings : Repeated judgements of pairs, averaged.
    from_dissimilarity : Distances.

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
    path = as_path(path)
    suffix = path.suffix.lower()
    check_file(path)
    refuse_options(suffix, key, form)
    changes: dict[str, Any] = {"symmetrize": symmetrize, "negative": negative, "low": low, "high": high}
    with named_in_errors(path):
        if suffix == ".npz" and (own := load_npz(path)) is not None:
            if key is not None:
                raise ValueError(
                    f"key must be None for a file that Similarity.save wrote, which is read whole, got {key!r}."
                )
            # All keywords are settled in it, which as_similarity says.
            return as_similarity(own, labels=labels, absent=absent, **changes)
        parts = _mean_over_people(read_parts(path, key, form, labels, absent, symmetrize))
        if absent is None and parts.absent is None and sparse.issparse(parts.values):
            raise ValueError(
                "absent must say what the pairs that are not stored mean, got None: pass load_similarity(..., absent=) "
                f"{spelled(ABSENT_OPTIONS)}."
            )
        if what_else(parts.info.get("column")) == "response times":  # of dissimilarities Similarity warns
            warn_of_other_measure(parts.info["column"])
        logger.info("%s: %s", path, parts.info["found"])
        parts = parts._replace(info={"file": path.name, **parts.info, **_range_of(parts.values)})
        return as_similarity(parts, labels=labels, absent=absent, **changes)


def _range_of(values: Any) -> dict[str, float]:
    """The smallest and the largest value that a file holds for two different items."""
    table = values.to_numpy() if hasattr(values, "to_numpy") else values
    is_matrix = getattr(table, "ndim", 0) == 2 and table.shape[0] == table.shape[1] and table.dtype.kind in "biuf"
    ends = value_range(table) if is_matrix else None
    return {} if ends is None else {"smallest": ends[0], "largest": ends[1]}


def save(S: Similarity, path: str | os.PathLike[str]) -> None:
    """Write a Similarity to a file; see Similarity.save.

    Parameters
    ----------
    S : Similarity
    path : str or path
        Ends in .npz or .csv.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from simdims import Similarity, load_similarity
    >>> S = Similarity([[1.0, 0.8], [0.8, 1.0]], labels=["cat", "dog"])
    >>> with TemporaryDirectory() as folder:
    ...     S.save(Path(folder, "animals.npz"))
    ...     load_similarity(Path(folder, "animals.npz"))
    Similarity(2 items, dense float64, 100.0% of pairs observed, labelled)
    """
    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix not in SAVED:
        raise ValueError(f"path must end in {' or '.join(SAVED)}, got {str(path)!r}.")
    if path.is_dir():
        raise ValueError(f"path must name a file, got {str(path)!r}, which is a folder.")
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"path must lie in a folder that is there, got {str(path)!r}.")
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        raise ValueError(f"path must lie where files may be written, got {str(path)!r}.")
    SAVED[suffix](S, path)


def as_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """The path that an argument is, called `name` in sentences."""
    try:
        found = Path(path)
    except TypeError:
        raise TypeError(f"{name} must be the name of a file, got {type(path).__name__}.") from None
    if not os.fspath(path):
        raise ValueError(f"{name} must name a file, got an empty text.")
    refuse_name(found, name)
    return found


def check_file(path: Path, endings: Sequence[str] | None = LOADED) -> None:
    """Refuse a file that does not exist, is a folder or empty, or has none of these endings (None: any)."""
    if path.is_dir():
        raise ValueError(f"{str(path)!r} must be a file, got a folder.")
    if not path.exists():
        raise FileNotFoundError(f"No such file: {str(path)!r}.")
    suffix = path.suffix.lower()
    if endings is not None and suffix not in endings:
        is_sheet = suffix in (".xlsx", ".xls", ".ods") and ".csv" in endings
        way = "save the sheet as .csv, or pass a DataFrame from pandas.read_excel" if is_sheet else "convert it"
        raise ValueError(
            f"{str(path)!r} must end in one of {', '.join(endings)}, got {path.suffix or 'no ending'!r}: {way}."
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{str(path)!r} must hold data, got an empty file (0 bytes).")


def refuse_options(suffix: str, key: str | None, form: str | None) -> None:
    """Refuse options that a type of file does not have."""
    if not (form is None or (isinstance(form, str) and form in ("square", "long"))):
        raise ValueError(f'form must be None, "square" or "long", got {form!r}.')
    if form is not None and suffix not in TABLES:
        raise ValueError(f"form must be None for {suffix} files (it is for {', '.join(TABLES)}), got {form!r}.")
    if key is not None and suffix not in NAMED_ARRAYS:
        raise ValueError(f"key must be None for {suffix} files (it is for {', '.join(NAMED_ARRAYS)}), got {key!r}.")


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Begin sentences about what is wrong with a file by its name."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{path.name}: {error}").with_traceback(error.__traceback__) from None


def read_parts(
    path: Path,
    key: str | None,
    form: str | None,
    labels: Sequence[str] | None,
    absent: str | float | None,
    symmetrize: str | None,
) -> Parts:
    """Read a file with the reader of its type."""
    suffix = path.suffix.lower()
    if suffix in NAMED_ARRAYS:
        return NAMED_ARRAYS[suffix](path, key, labels)
    if suffix in TABLES:
        return TABLES[suffix](path, form=form, labels=labels, absent=absent, symmetrize=symmetrize)
    if suffix == ".npy":
        return read_npy(path)
    if suffix == ".graphml":
        return _read_graphml(path)
    return read_edge_list(path, labels=labels, absent=absent)


def _mean_over_people(parts: Parts) -> Parts:
    """One matrix of a stack with people first."""
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
