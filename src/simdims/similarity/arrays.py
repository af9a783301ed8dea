"""Similarities as plain arrays, which are sent to each worker once, regardless of the number of fits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from simdims import solvers
from simdims.similarity.container import Similarity


class Arrays(NamedTuple):
    """Dense `values`; or CSR data with `indices` and `starts`; or, if `implicit`, factors."""

    values: np.ndarray
    weights: np.ndarray | None = None
    indices: np.ndarray | None = None
    starts: np.ndarray | None = None
    absent_weight: float = 0.0
    implicit: bool = False

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.values) if self.starts is None else len(self.starts) - 1


def arrays_of(similarity: Similarity) -> Arrays:
    """The arrays of a Similarity, without a copy."""
    if similarity.factors is not None:
        return Arrays(similarity.factors, implicit=True)
    values, weights = similarity.values, similarity.weights
    if not sparse.issparse(values):
        return Arrays(values, weights)
    own = None if weights is None else weights.data
    return Arrays(values.data, own, values.indices, values.indptr, similarity.absent_weight)


def problem_of(arrays: Arrays) -> solvers.Problem:
    """The optimisation problem of a fit to these arrays."""
    if arrays.implicit:
        return solvers.factor_problem(arrays.values)
    if arrays.starts is None:
        return solvers.as_problem(arrays.values, arrays.weights)
    shape = (arrays.n_items, arrays.n_items)
    values, weights = (
        None if data is None else sparse.csr_array((data, arrays.indices, arrays.starts), shape=shape)
        for data in (arrays.values, arrays.weights)
    )
    return solvers.as_problem(values, weights, arrays.absent_weight)
