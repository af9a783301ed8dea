"""Read-only arrays: a Similarity copies only what its caller could still change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from simdims._memory import require
from simdims.similarity.entries import Matrix


def frozen(matrix: Matrix) -> Matrix:
    """Make a new matrix read-only, so that Similarity uses it without a copy."""
    for part in _arrays_in(matrix):
        for array in _with_bases(part):
            array.flags.writeable = False
    return matrix


def held(matrix: Matrix, given: Any, name: str, copy: bool = True) -> Matrix:
    """A read-only matrix made from `given`: a copy if the caller could still write to its memory."""
    is_writeable = any(array.flags.writeable for part in _arrays_in(matrix) for array in _with_bases(part))
    if not copy or not is_writeable or not may_share(matrix, given):
        return read_only(matrix)
    n_bytes = sum(part.nbytes for part in _arrays_in(matrix))
    remedy = f"make it read-only ({name}.flags.writeable = False), or pass as_similarity(..., copy=False)"
    require(n_bytes, f"A copy of {name}, which could be changed later,", f"{remedy} and leave it as it is")
    return read_only(frozen(matrix.copy() if sparse.issparse(matrix) else matrix.copy(order="K")))


def may_share(matrix: Matrix, given: Any) -> bool:
    """Whether a matrix may share memory with its source."""
    if isinstance(given, list | tuple):
        return False
    if not (isinstance(given, np.ndarray) or sparse.issparse(given)):
        return True  # an arbitrary object may return a view as its array
    return any(np.may_share_memory(one, other) for one in _arrays_in(matrix) for other in _arrays_in(given))


def read_only(matrix: Matrix) -> Matrix:
    """A read-only view; the caller's own array stays writeable."""
    if sparse.issparse(matrix):
        parts = (matrix.data.view(), matrix.indices.view(), matrix.indptr.view())
        views = sparse.csr_array(parts, shape=matrix.shape)
        # Only now: the constructor may have replaced a view with a copy of smaller indices.
        for part in (views.data, views.indices, views.indptr):
            part.flags.writeable = False
        return views
    view = matrix.view()
    view.flags.writeable = False
    return view


def _arrays_in(matrix: Any) -> list[np.ndarray]:
    """The arrays that store a dense or sparse matrix of any format."""
    if not sparse.issparse(matrix):
        return [matrix]
    attributes = [value if isinstance(value, tuple) else (value,) for value in vars(matrix).values()]
    return [part for parts in attributes for part in parts if isinstance(part, np.ndarray)]


def _with_bases(array: Any) -> Iterator[np.ndarray]:
    """An array, the array that it is a view of, and so on."""
    while isinstance(array, np.ndarray):
        yield array
        array = array.base
