"""DataFrames as matrices: cells, and names on the axes. pandas is used only where the caller has imported it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from simdims._parameters import ParameterError
from simdims.similarity.labels import refuse_other_names


def is_frame(x: Any) -> bool:
    """Whether `x` is a DataFrame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(x, pandas.DataFrame)


def frame_cells(frame: Any) -> np.ndarray:
    """The cells of a DataFrame as an array, NaN where one is missing."""
    cells = frame.to_numpy()
    # pandas' own marker of a missing cell is not a number, and only object arrays can hold it.
    return frame.to_numpy(dtype=object, na_value=np.nan) if cells.dtype == object else cells


def frame_labels(frame: Any, name: str, labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """`labels`, or the names on the axes of a DataFrame, after checking that all of them agree."""
    named = [] if labels is None else [("labels", labels)]
    for kind, axis in (("index", frame.index), ("columns", frame.columns)):
        if not is_default_axis(axis):
            what = f"the {kind} of {name}"
            named.append((what, axis_names(axis, what)))
    for other in named[1:]:
        refuse_other_names(*named[0], *other)
    return named[0][1] if named else None


def is_default_axis(axis: Any) -> bool:
    """Whether an axis is pandas' default 0, 1, 2, ..., which names nothing."""
    return isinstance(axis, sys.modules["pandas"].RangeIndex) and axis.start == 0 and axis.step == 1


def axis_names(axis: Any, what: str) -> tuple[str, ...]:
    """The names on an axis, one per item."""
    if getattr(axis, "nlevels", 1) == 1 and getattr(axis, "hasnans", False):
        raise ParameterError(what, "must name every item", f"none in place {int(np.argmax(axis.isna()))}")
    return tuple(map(str, axis))
