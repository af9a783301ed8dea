"""align: reorder the columns of an embedding to match a reference, by the best one-to-one matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from simdims._parameters import ParameterError, require_choice
from simdims.metrics._embedding import as_embedding, embedding_table, unit_rows
from simdims.metrics.structure import standard_columns
from simdims.similarity import is_frame, refuse_other_names


@dataclass(frozen=True, eq=False)
class Alignment:
    """An embedding with its columns in the order of a reference.

    Attributes
    ----------
    embedding : ndarray or DataFrame of shape (n_items, n_components)
        The unchanged columns of W: first those with a partner, in the order of the reference, then the others. A
        DataFrame if W is one or is a result with names.
    permutation : ndarray of shape (n_components,)
        ``embedding`` is ``W[:, permutation]``.
    similarity : ndarray of shape (n_components,)
        The correlation or cosine of each column of `embedding` with its partner; NaN without a partner.
    partners : ndarray of shape (n_components,)
        The matching column of the reference for each column of `embedding`; -1 for none. 0, 1, 2, ... unless the
        reference has more columns than W.
    """

    embedding: Any
    permutation: NDArray[np.intp]
    similarity: NDArray[np.float64]
    partners: NDArray[np.intp]

    @property
    def mean(self) -> float:
        """The mean similarity of the matched columns."""
        return float(self.similarity[self.partners >= 0].mean())


def align(W: Any, reference: Any, *, method: str = "correlation") -> Alignment:
    """Reorder the columns of an embedding to match a reference.

    The order of the columns of W is arbitrary: W P fits as well for every permutation P. Columns are matched one to one
    (Hungarian algorithm) such that the sum of their similarities is largest.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus or fitted SRF
        The embedding to reorder.
    reference : array-like or DataFrame of shape (n_items, n_reference), Discovery, Consensus or fitted SRF
        The embedding to match. If both name their items, the names must be the same, in the same order.
    method : {"correlation", "cosine"}, default="correlation"
        The similarity of two columns: their Pearson correlation over items, or their cosine. A constant column has
        correlation 0, and a column of zeros cosine 0, with every other column.

    Returns
    -------
    Alignment
        If W has more columns than the reference, those without a partner come last. If it has fewer, `partners` lists
        the columns of the reference that have one.

    See Also
    --------
    simdims.metrics.factor_alignment : how well an embedding recovers known dimensions.

    References
    ----------
    SRF, Methods, "Model fitting, dimensionality selection, and stability".

    Examples
    --------
    >>> from simdims import simulate
    >>> from simdims.consensus import align
    >>> W = simulate.dirichlet(50, 3, random_state=0)
    >>> alignment = align(W[:, [2, 0, 1]], W)
    >>> alignment.permutation
    array([1, 2, 0])
    >>> bool((alignment.embedding == W).all())
    True
    """
    require_choice("method", method, ("correlation", "cosine"))
    W = embedding_table(W)
    columns, names = as_embedding(W)
    wanted, reference_names = as_embedding(reference, "reference")
    if len(columns) != len(wanted):
        raise ParameterError("reference", f"must have one row for each of the {len(columns)} items", f"{len(wanted)}")
    if method == "correlation" and len(columns) < 2:
        raise ParameterError("W", "must have at least 2 items, so that columns can be correlated", "1")
    if names is not None and reference_names is not None:
        refuse_other_names("W", names, "reference", reference_names)
    if method == "correlation":
        products = standard_columns(wanted).T @ standard_columns(columns)
    else:
        products = unit_rows(wanted.T) @ unit_rows(columns.T).T
    similarity = np.clip(products, -1.0, 1.0)
    partners, matched = linear_sum_assignment(similarity, maximize=True)
    n_alone = columns.shape[1] - len(matched)
    permutation = np.concatenate([matched, np.setdiff1d(np.arange(columns.shape[1]), matched)])
    return Alignment(
        embedding=W.iloc[:, permutation] if is_frame(W) else np.asarray(W)[:, permutation],
        permutation=permutation,
        similarity=np.concatenate([similarity[partners, matched], np.full(n_alone, np.nan)]),
        partners=np.concatenate([partners, np.full(n_alone, -1, dtype=np.intp)]),
    )
