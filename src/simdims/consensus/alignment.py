"""align: the columns of one embedding in the order of another's, by the best one-to-one matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from simdims.metrics._embedding import as_embedding, embedding_table, unit_rows
from simdims.metrics.structure import standard_columns
from simdims.similarity import is_frame, refuse_other_names


@dataclass(frozen=True, eq=False)
class Alignment:
    """An embedding whose columns stand in the order of a reference.

    Attributes
    ----------
    embedding : ndarray or DataFrame of shape (n_items, n_components)
        The columns of W, none changed, made up or left out: those with a partner in the order of the reference, then
        the others as they came. A DataFrame where W is one or holds an embedding with names; its column names travel
        with the columns.
    permutation : ndarray of shape (n_components,)
        ``embedding`` is ``W[:, permutation]``.
    similarity : ndarray of shape (n_components,)
        The correlation or cosine of each column of `embedding` with its partner; NaN for one without.
    partners : ndarray of shape (n_components,)
        The column of the reference that each column of `embedding` is matched with; -1 for none. It counts 0, 1, 2, ...
        unless the reference has more columns than W.
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
    """Put the columns of an embedding in the order of a reference's.

    The order of the columns of W says nothing: W P fits as well for every permutation P. The matching (Hungarian
    algorithm) pairs columns one to one so that the sum of their similarities is as large as possible.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus or fitted SRF
        The embedding whose columns are to be ordered.
    reference : array-like or DataFrame of shape (n_items, n_reference), Discovery, Consensus or fitted SRF
        The embedding whose order they get. Where both name their items, they must be the same in the same order.
    method : {"correlation", "cosine"}, default="correlation"
        How similar two columns are: their Pearson correlation over items, or their cosine. A constant column
        correlates 0 with every other, and a column of zeros has cosine 0.

    Returns
    -------
    Alignment
        Where W has more columns than the reference, column k of `embedding` is the partner of column k of the
        reference, and the columns without a partner come last. Where it has fewer, some columns of the reference have
        no partner: `partners` says which ones have.

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
    if not isinstance(method, str) or method not in ("correlation", "cosine"):
        raise ValueError(f'method must be "correlation" or "cosine", got {method!r}.')
    W = embedding_table(W)
    columns, names = as_embedding(W)
    wanted, reference_names = as_embedding(reference, "reference")
    if len(columns) != len(wanted):
        raise ValueError(f"reference must have a row for each of W's {len(columns)} items, got {len(wanted)}.")
    if method == "correlation" and len(columns) < 2:
        raise ValueError("W must have at least 2 items to correlate its columns, got 1.")
    if names is not None and reference_names is not None:
        refuse_other_names("W", names, "reference", reference_names)
    unit = standard_columns if method == "correlation" else _unit_columns
    similarity = np.clip(unit(wanted).T @ unit(columns), -1.0, 1.0)
    partners, matched = linear_sum_assignment(similarity, maximize=True)
    n_alone = columns.shape[1] - len(matched)
    permutation = np.concatenate([matched, np.setdiff1d(np.arange(columns.shape[1]), matched)])
    return Alignment(
        embedding=W.iloc[:, permutation] if is_frame(W) else np.asarray(W)[:, permutation],
        permutation=permutation,
        similarity=np.concatenate([similarity[partners, matched], np.full(n_alone, np.nan)]),
        partners=np.concatenate([partners, np.full(n_alone, -1, dtype=np.intp)]),
    )


def _unit_columns(W: NDArray[np.float64]) -> NDArray[np.float64]:
    return unit_rows(W.T).T
