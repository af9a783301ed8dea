"""Files of DataFrames: Parquet, Feather, and tables, matrices and distances saved by R (.rds, .rda)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import squareform

from simdims._dependencies import library
from simdims._parameters import ParameterError
from simdims.io.arrays import reading

if TYPE_CHECKING:
    import pandas as pd

R_OBJECTS = (".rda", ".rdata")
FRAMES = (".parquet", ".feather", ".rds", *R_OBJECTS)


def read_frame(path: Path, key: str | None) -> pd.DataFrame:
    """Return the DataFrame in a file; `key` names one of several objects saved by R."""
    kind = path.suffix.lower()
    if kind in (".parquet", ".feather"):
        import pandas as pd

        library("pyarrow", f"Reading {kind} files", '"simdims[io]"')
        try:
            with reading(kind):
                return pd.read_parquet(path, engine="pyarrow") if kind == ".parquet" else pd.read_feather(path)
        except MemoryError:  # Arrow raises its own
            raise MemoryError("Reading this file would need more memory than this machine has available.") from None
    return _read_r(path, kind, key)


def _read_r(path: Path, kind: str, key: str | None) -> pd.DataFrame:
    rdata = library("rdata", f"Reading {kind} files", '"simdims[io]"')
    with reading(kind), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about unknown R classes
        parsed = rdata.parser.parse_file(path)
        found = rdata.conversion.convert(parsed, {**rdata.conversion.DEFAULT_CLASS_MAP, "dist": _distances})
    objects = {str(name): one for name, one in found.items()} if kind in R_OBJECTS else {"the object": found}
    tables = {name: table for name, one in objects.items() if (table := _as_frame(one)) is not None}
    listed = ", ".join(f"{name} ({type(one).__name__})" for name, one in objects.items()) or "nothing"
    if key is not None and key not in tables:
        raise ParameterError("key", "must name a table or matrix of this file", f"{key!r}; the file contains {listed}")
    if key is None and len(tables) > 1:
        raise ParameterError("key", f"must name one of the {len(tables)} tables in this file", ", ".join(tables))
    if not tables:
        raise ValueError(f"the file must contain a data frame, a matrix or a dist of R, got {listed}.")
    return tables[next(iter(tables)) if key is None else key]


def _distances(values: Any, attributes: Any) -> pd.DataFrame:
    """An R `dist` object: the lower triangle by columns, which equals scipy's upper triangle by rows."""
    import pandas as pd

    square = squareform(np.asarray(values, dtype=np.float64), checks=False)
    labels = attributes.get("Labels")
    return pd.DataFrame(square, index=labels, columns=labels)


def _as_frame(found: Any) -> pd.DataFrame | None:
    """Convert a data frame or matrix from R to a DataFrame; None for anything else."""
    import pandas as pd

    if hasattr(found, "to_pandas") and getattr(found, "ndim", 0) == 2:  # a matrix with names
        found = found.to_pandas()
    elif isinstance(found, np.ndarray) and found.ndim == 2:
        found = pd.DataFrame(found)
    if not isinstance(found, pd.DataFrame):
        return None
    found = found.rename_axis(index=None, columns=None).rename(columns=str)
    for place, dtype in enumerate(found.dtypes):
        if isinstance(dtype, pd.CategoricalDtype):  # a factor
            found.isetitem(place, found.iloc[:, place].astype(object))
        elif dtype.kind in "iu":  # integers, possibly with missing values
            found.isetitem(place, found.iloc[:, place].astype(float if found.iloc[:, place].hasnans else int))
    return found.reset_index(drop=True) if found.index.dtype.kind in "iu" else found
