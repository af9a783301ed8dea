"""Odd-one-out answers as positions, read as from_triplets reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims.metrics._embedding import Names


def read_answers(
    triplets: Any, odd: Any = -1, *, n_items: int | None = None, names: Names = None
) -> tuple[NDArray[np.intp], int]:
    """Return the items of every triplet as positions, and which column holds the odd one out.

    Where `n_items` is given the items are those of an embedding, and text must be among its `names`; otherwise items
    are numbered as they are found.
    """
    # These lie to the right of the metrics.
    from simdims.triplets import check_triplet_items, odd_column, read_triplet_table, refuse_cells, triplet_table

    odd_place = odd_column(triplets, odd)
    table = triplet_table(triplets)
    items, found = read_triplet_table(table, names)
    if n_items is not None and names is None and found is not None:
        raise ValueError(
            f"triplets must hold positions where W does not name its items, got the text {found[0]!r}: pass labels=, "
            "or a DataFrame whose index names them."
        )
    if items.dtype.kind == "f":
        items = items.astype(np.float64, copy=False)  # half floats do not reach as far as what they are compared with
        is_position = (np.abs(items) <= 2**53) & (items == np.floor(items))  # beyond, floats skip whole numbers
        refuse_cells(table, ~is_position, "hold whole numbers (or text)")
    check_triplet_items(items, table, int(items.max()) + 1 if n_items is None else n_items)
    return items.astype(np.intp, copy=False), odd_place
