"""Listed pairs of items, as positions or names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import is_whole
from simdims.metrics._embedding import Names
from simdims.similarity import is_frame


def read_pairs(pairs: Any, n_items: int, names: Names, holder: str) -> NDArray[np.intp]:
    """Return listed pairs as positions, -1 for names that are not among `names`."""
    cells = _cells(pairs)
    if cells.dtype.kind in "iuf":
        if cells.dtype.kind == "f":
            refuse_pair(pairs, cells != np.floor(cells), "hold whole numbers (or text)")
        refuse_pair(pairs, (cells < 0) | (cells >= n_items), f"name items between 0 and n_items - 1 = {n_items - 1}")
        return cells.astype(np.intp)
    is_text = np.array([[isinstance(cell, str) for cell in row] for row in cells])
    refuse_pair(pairs, ~is_text, "hold text in every cell (or whole numbers in every one)")
    if names is None:
        raise ValueError(
            f"pairs must hold positions where {holder} does not name its items, got the text {str(cells[0, 0])!r}: "
            "pass labels=, or a DataFrame or Similarity that names them."
        )
    place = {name: position for position, name in enumerate(names)}
    return np.array([[place.get(str(cell), -1) for cell in row] for row in cells], dtype=np.intp)


def refuse_pair(pairs: Any, bad: NDArray[np.bool_], rule: str) -> None:
    """Raise for the first row that is bad, or has a bad cell."""
    if bad.any():
        rows = np.unique(np.nonzero(bad)[0])
        row, n_bad = int(rows[0]), len(rows)
        more = f" ({n_bad} such rows)" if n_bad > 1 else ""
        raise ValueError(f"pairs must {rule}, got {_cells(pairs)[row].tolist()} in row {row}{more}.")


def _cells(pairs: Any) -> NDArray:
    try:
        cells = pairs.to_numpy() if is_frame(pairs) else np.asarray(pairs)
    except ValueError as error:
        raise ValueError("pairs must have 2 items in every row, got rows of other lengths.") from error
    if cells.dtype.kind == "U" and not isinstance(pairs, np.ndarray):
        cells = np.asarray(pairs, dtype=object)  # NumPy made text of the numbers and gaps beside text
    if cells.ndim != 2 or cells.shape[1] != 2 or not len(cells):
        raise ValueError(f"pairs must have 2 columns and at least one row, got shape {cells.shape}.")
    if cells.dtype.kind == "O" and all(is_whole(cell) for cell in cells.flat):
        return cells.astype(np.int64)
    if cells.dtype.kind not in "iufOU":
        raise TypeError(f"pairs must hold whole numbers or text, got dtype {cells.dtype}.")
    return cells
