"""`Similarity`, the input of every analysis, and `as_similarity`, which makes one from arrays, tables and graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy as shallow_copy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parameters import ParameterError, ParameterTypeError, require_choice, require_flag, shown
from simdims.similarity.dissimilarity import warn_of_dissimilarity
from simdims.similarity.entries import Matrix
from simdims.similarity.labels import (
    aligned,
    axis_names,
    clean_labels,
    frame_cells,
    frame_labels,
    is_default_axis,
    is_frame,
    labelled,
    list_of_labels,
    refuse_other_names,
)
from simdims.similarity.ownership import frozen, held, may_share, read_only
from simdims.similarity.scale import lift_negatives, rescale
from simdims.similarity.subset import chosen_places, part_of
from simdims.similarity.validation import (
    as_numbers,
    as_table,
    check_observed,
    clean_factors,
    clean_parts,
    count_observed,
)

if TYPE_CHECKING:
    import pandas as pd


#: Note in `info` on a table whose columns were reordered to match its rows.
ALIGNED = "the columns were put in the order of the rows"


class Parts(NamedTuple):
    """The parts of a Similarity as read from a source, which as_similarity checks; `named_by` is that of the labels."""

    values: Any
    labels: tuple[str, ...] | None = None
    weights: Any = None
    absent: str | float | None = None
    named_by: str = "the file"
    info: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False)
class Similarity:
    """Similarities between items: a symmetric, non-negative matrix in which pairs may be missing.

    All input is checked, so every Similarity is valid. The caller's arrays are never changed, and later changes to them
    do not affect the Similarity: writeable arrays are copied. A symmetric, read-only array of float32 or float64
    (``array.flags.writeable = False``, or a file mapped with ``mmap_mode="r"``) is used without a copy.

    Parameters
    ----------
    values : array-like or scipy sparse matrix, shape (n_items, n_items)
        In dense values, NaN marks a missing pair. Sparse values may be of any format; a stored zero is an observed
        zero, and a stored NaN a pair of weight zero. A pair may be given in either triangle or in both. Triangles that
        differ by rounding (1e-8 of the largest value in float64, 1e-5 in float32) are averaged; as_similarity can merge
        those that differ by more.
    labels : sequence, optional
        One distinct name per item, kept as text.
    weights : array-like or scipy sparse matrix, shape (n_items, n_items), optional
        Weight of each pair in the loss: finite, non-negative and symmetric; 0 excludes a pair. Dense if values are
        dense; if values are sparse, weights must store exactly the same pairs. A pair without a value is missing
        whatever its weight, and a pair with a value on only one side takes that side's weight.
    absent : {"missing", "zero"} or float, optional
        The meaning of pairs that sparse values do not store: "missing" (not measured), "zero" (measured and zero), or a
        number strictly between 0 and 1 (zeros with that weight). Required for sparse values and refused for dense ones.
        A diagonal entry that is not stored is always unobserved.
    info : mapping, optional
        Where the similarities came from, as plain values.

    Attributes
    ----------
    values, weights : ndarray or csr_array
        Exactly symmetric, read-only; float32 stays float32, everything else is float64. Weights may be None.
    labels : tuple of str or None
    factors : ndarray of shape (n_items, n_features) or None
        Read-only. If not None, the similarities are implicit, S = F F^T, and `values` raises; see `from_factors`.
    signed : bool
        Whether factors may be negative, so that some similarities may be slightly below zero.
    n_items : int
    density : float
        Share of off-diagonal pairs that are observed.

    Warns
    -----
    UserWarning
        If an item is observed only on the diagonal, or if values look like dissimilarities: by a zero diagonal or, if
        it is missing, by the name of their file, variable or column (in `info`) or the order of their values.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims.similarity import Similarity
    >>> S = Similarity([[1.0, 0.8, np.nan], [0.8, 1.0, 0.3], [np.nan, 0.3, 1.0]], labels=["cat", "dog", "car"])
    >>> S
    Similarity(3 items, dense float64, 66.7% of pairs observed, labelled)
    >>> S[["dog", "car"]].values
    array([[1. , 0.3],
           [0.3, 1. ]])
    """

    values: Matrix
    labels: Sequence[str] | None = None
    weights: Matrix | None = None
    absent: str | float | None = None
    info: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    factors: NDArray[np.floating] | None = field(default=None, kw_only=True)
    signed: bool = field(default=False, kw_only=True)
    density: float = field(init=False)

    @classmethod
    def from_factors(
        cls,
        factors: Any,
        labels: Sequence[str] | None = None,
        *,
        signed: bool = False,
        info: Mapping[str, Any] | None = None,
    ) -> Similarity:
        """Similarities S = F F^T that store only the factors F, not the n x n matrix; all pairs are observed.

        Parameters
        ----------
        factors : array-like of shape (n_items, n_features)
            F, finite, and non-negative unless `signed`.
        labels : sequence, optional
            One distinct name per item.
        signed : bool, default=False
            Accept factors of either sign, such as those of an approximate kernel. The caller must ensure that no
            product is far below zero: there are too many pairs to check.
        info : mapping, optional
            Where the similarities came from.

        Returns
        -------
        Similarity
            With `factors`; accessing `values` raises AttributeError.

        Examples
        --------
        >>> from simdims.similarity import Similarity
        >>> Similarity.from_factors([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]])
        Similarity(3 items, implicit float64, 2 factors, 100.0% of pairs observed)
        """
        return cls(None, labels, factors=factors, signed=signed, info={} if info is None else info)

    def __post_init__(self) -> None:
        self._settle(copy=True)

    @classmethod
    def _of(cls, *, copy: bool, **parts: Any) -> Similarity:
        """The constructor, optionally without copying writeable arrays."""
        made = cls.__new__(cls)
        made._set(**parts, factors=None, signed=False)
        made._settle(copy)
        return made

    def _settle(self, copy: bool) -> None:
        """Check all parts and store them read-only."""
        if self.factors is not None:
            self._hold_factors()
            return
        if self.signed:
            raise ParameterError("signed", "must be False without factors", shown(self.signed))
        values, labels, weights, absent = clean_parts(self.values, self.labels, self.weights, self.absent)
        info = _read_only_info(self.info)
        n_partners, observed_self = count_observed(values, weights, absent)
        check_observed(n_partners, observed_self, labels)
        warn_of_dissimilarity(values, weights, info)
        n_sides = n_partners.size * (n_partners.size - 1)
        density = float(n_partners.sum() / n_sides) if n_sides else 1.0
        values = held(values, self.values, "values", copy)
        weights = None if weights is None else held(weights, self.weights, "weights", copy)
        self._set(values=values, labels=labels, weights=weights, absent=absent, info=info, density=density)

    def _hold_factors(self) -> None:
        if not (self.values is None and self.weights is None and self.absent is None):
            raise ParameterError("factors", "must be None where values, weights or absent are given")
        factors = clean_factors(self.factors, signed=self.signed)
        labels = clean_labels(self.labels, len(factors))
        own = held(factors, self.factors, "factors")
        self._set(factors=own, labels=labels, info=_read_only_info(self.info), density=1.0)
        object.__delattr__(self, "values")

    def __getattr__(self, name: str) -> Any:
        if name == "values":
            raise AttributeError(
                "values are implicit in this Similarity, which holds factors F with S = F F^T: use factors, or build "
                "the matrix with Similarity(F @ F.T)."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def n_items(self) -> int:
        """The number of items."""
        return int((self.values if self.factors is None else self.factors).shape[0])

    @property
    def absent_weight(self) -> float:
        """The weight of absent pairs as zeros: 1 for "zero", 0 for "missing" and for dense values."""
        if isinstance(self.absent, float):
            return self.absent
        return 1.0 if self.absent == "zero" else 0.0

    def __len__(self) -> int:
        return self.n_items

    #: Items are selected with [], as in a matrix; iteration is disabled.
    __iter__ = None

    @property
    def shape(self) -> tuple[int, int]:
        """(n_items, n_items), as of a matrix."""
        return self.n_items, self.n_items

    def __getitem__(self, key: Any) -> Any:
        """The similarities of some items, by a list of labels or positions, a slice or a mask, in the order given.

        A pair of arrays from `numpy.ix_` gives an array of the values, as in scikit-learn's cross-validation.
        """
        if isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, np.ndarray) for part in key):
            return np.asarray(self)[key]
        return part_of(self, chosen_places(key, self.n_items, self.labels))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The values of a dense Similarity without weights, NaN for missing pairs; others raise TypeError."""
        from simdims.io.exchange import to_array

        return to_array(self, dtype, copy)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that load_similarity can read; an existing file is replaced once the new one is complete.

        Parameters
        ----------
        path : str or path
            A .npz file stores everything (`info` as JSON). A .csv file stores labels and exact values: as a square
            table if values are dense, as a list of pairs if they are sparse and absent pairs are missing. Weights,
            other absent pairs and factors raise an error for .csv; `info`, the dtype and the storage are lost. Labels
            that a spreadsheet would run as a formula get an apostrophe, which load_similarity removes.

        Examples
        --------
        >>> Similarity([[1.0, 0.8], [0.8, 1.0]]).save("animals.npz")  # doctest: +SKIP
        """
        from simdims.io import save

        save(self, path)

    def to_frame(self) -> pd.DataFrame:
        """Return the values as a dense DataFrame with labels on both axes.

        Missing pairs are NaN, absent pairs treated as zeros are 0, and weights are not included.
        """
        from simdims.io.exchange import to_frame

        return to_frame(self)

    def to_xarray(self) -> Any:
        """Return the values as an xarray DataArray with dimensions item1 and item2, whose coordinates are the labels.

        Missing pairs are NaN, absent pairs treated as zeros are 0, and weights are left out. as_similarity reads it.
        """
        from simdims.io.exchange import to_xarray

        return to_xarray(self)

    def to_anndata(self) -> Any:
        """Return an AnnData object without features, whose observations are the items; as_similarity reads it.

        The matrix, sparse or dense, is ``obsp["similarity"]``, weights are ``obsp["weights"]``, and the meaning of
        absent pairs is ``uns["simdims_absent"]``.
        """
        from simdims.io.exchange import to_anndata

        return to_anndata(self)

    def to_networkx(self) -> Any:
        """Return the observed pairs as a networkx Graph, which as_similarity converts back (to sparse values).

        Nodes are the labels, or 0, 1, 2, ... without labels. Edges are the observed off-diagonal pairs, including zeros
        (of a sparse matrix, the stored pairs). The edge attribute ``weight`` is the similarity, and ``pair_weight`` its
        weight, if there are weights. The similarity of an item to itself is the node attribute ``self_similarity`` (and
        ``self_weight``), because loops would affect graph measures. The graph attribute ``simdims_absent`` is the
        meaning of a pair without an edge.
        """
        from simdims.io.exchange import to_networkx

        return to_networkx(self)

    def to_rsatoolbox(self) -> Any:
        """Return rsatoolbox RDMs with one RDM, whose dissimilarities are largest similarity - similarity.

        The largest similarity (over all entries) is the RDM descriptor ``largest_similarity``; ``labels`` and
        ``self_similarity``, the diagonal, are pattern descriptors. as_similarity reads them and restores the
        similarities up to rounding. Weights raise an error: an RDM cannot hold them.
        """
        from simdims.io.exchange import to_rsatoolbox

        return to_rsatoolbox(self)

    def __repr__(self) -> str:
        parts = [f"{self.n_items} {'item' if self.n_items == 1 else 'items'}"]
        if self.factors is not None:
            kind = "signed factors" if self.signed else "factors"
            parts += [f"implicit {self.factors.dtype}", f"{self.factors.shape[1]} {kind}"]
        else:
            parts.append(f"{'sparse' if sparse.issparse(self.values) else 'dense'} {self.values.dtype}")
        if self.absent is not None:
            parts.append(f"absent={self.absent!r}")
        parts.append(f"{percent(self.density)} of pairs observed")
        if self.labels is not None:
            parts.append("labelled")
        if self.weights is not None:
            parts.append("weighted")
        return f"Similarity({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_similarity

        return of_similarity(self)

    def __getstate__(self) -> dict[str, Any]:
        # A MappingProxyType cannot be pickled.
        return {**self.__dict__, "info": dict(self.info)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays are writeable after unpickling.
        matrices = {name: state[name] for name in ("values", "weights", "factors") if state.get(name) is not None}
        frozen = {name: read_only(matrix) for name, matrix in matrices.items()}
        self._set(**{**state, **frozen, "info": MappingProxyType(state["info"])})

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


def described(S: Similarity, info: Mapping[str, Any]) -> Similarity:
    """The same similarities with other `info`; nothing is checked again."""
    made = shallow_copy(S)
    made._set(info=_read_only_info(info))
    return made


def as_similarity(
    x: Any,
    *,
    labels: Sequence[str] | None = None,
    weights: Any = None,
    absent: str | float | None = None,
    symmetrize: str | None = None,
    negative: str | None = None,
    low: float | None = None,
    high: float | None = None,
    copy: bool = True,
) -> Similarity:
    """Return `x` as a checked Similarity.

    Parameters
    ----------
    x : array-like, DataFrame, DataArray, scipy sparse matrix, graph, RDMs, AnnData, Similarity or Discovery
        Similarities between items, as described in Similarity. The index and the columns of a pandas DataFrame, or the
        coordinates of an xarray DataArray, must name the same items, and become the labels; columns in a different
        order are sorted like the rows (recorded in `info`). pandas' default axis 0, 1, 2, ... is ignored. A Similarity,
        or that of a Discovery, is returned unchanged, and must be the only argument.

        A networkx graph gives sparse values: the edge attribute ``weight``, or 1 without it, and on the diagonal
        self-loops or the node attribute ``self_similarity``. Nodes become labels, unless they are 0, 1, 2, ...; if the
        node attribute ``label`` is a distinct text for each node, it is used instead. A single rsatoolbox RDM becomes
        1 - d / max(d) (see from_dissimilarity), and `info` holds its descriptors; one made by to_rsatoolbox becomes its
        similarities again. An AnnData object gives the only matrix in its `obsp`, labelled by the observations.
    labels : sequence, optional
        One name per item. They must agree with those of a DataFrame or graph.
    weights : array-like, pandas DataFrame or scipy sparse matrix, optional
        Weight of each pair in the loss; see Similarity. The names on a DataFrame must be those of `x`.
    absent : {"missing", "zero"} or float, optional
        The meaning of pairs that a sparse matrix does not store; see Similarity.
    symmetrize : {"mean", "max"}, optional
        How to merge the two sides of a pair that differ, as in a confusion matrix or a directed graph; by default they
        are an error. If one side is missing, the other one is used; but in a sparse matrix whose absent pairs are
        zeros, of any weight, a side that is not stored counts as 0. Weights are not merged: they must be symmetric.
    negative : {"clip", "shift"}, optional
        How to treat negative values; by default they are an error. "clip" sets them to 0 and warns how many; "shift"
        rescales all correlations r as (1 + r) / 2. `info` records it.
    low, high : float, optional
        The ends of a rating scale, which become 0 and 1: values are rescaled as (x - low) / (high - low), as in
        from_ratings, and `info` holds both ends. If only one end is given, the other is the smallest or the largest
        value, with a warning. By default values are not rescaled.
    copy : bool, default=True
        Whether to copy writeable arrays. False saves memory, but the arrays must then not be changed.

    Returns
    -------
    Similarity

    Examples
    --------
    >>> from simdims.similarity import as_similarity
    >>> as_similarity([[7, 4], [4, 7]], low=1, high=7).values
    array([[1. , 0.5],
           [0.5, 1. ]])
    >>> confusions = [[9, 4, 0], [2, 8, 1], [1, 0, 9]]
    >>> as_similarity(confusions, symmetrize="mean").values
    array([[9. , 3. , 0.5],
           [3. , 8. , 0.5],
           [0.5, 0.5, 9. ]])
    """
    require_choice("symmetrize", symmetrize, (None, "mean", "max"))
    require_choice("negative", negative, (None, "clip", "shift"))
    require_flag("copy", copy)
    if hasattr(x, "n_systems"):
        remedy = "pass one of its systems or its mean(), or use JointSRF"
        raise ParameterTypeError("values", "must be the similarities of one system", f"a {type(x).__name__}", remedy)
    of_result = getattr(x, "mean_similarity", getattr(x, "similarity", None))  # of a Discovery
    x = of_result if isinstance(of_result, Similarity) else x
    if isinstance(x, Similarity):
        options = {"weights": weights, "absent": absent, "symmetrize": symmetrize, "negative": negative}
        _refuse_options(labels=labels, low=low, high=high, **options)
        return x
    info: Mapping[str, Any] = {}
    if (parts := _foreign_parts(x)) is not None:
        copy = False  # the arrays were just created from a file or graph
        x, info, labels = parts.values, parts.info, _agreed_labels(parts, labels)
        weights = parts.weights if weights is None else weights
        absent = parts.absent if absent is None else absent
    x, weights, found = _aligned_tables(x, weights, labels)
    info = {**info, **found}
    table = as_table(frame_cells(x) if is_frame(x) else x, "values")
    if isinstance(x, list | tuple):
        table = frozen(table)
    labels = clean_labels(labels, table.shape[0])
    if is_frame(x):
        labels = frame_labels(x, "values", labels)
    if is_frame(weights):
        if frame_labels(weights, "weights", labels) is not None and labels is None:
            rule = "must not name items where values does not"
            raise ParameterError("weights", rule, "a labelled DataFrame", "pass {labels}")
        weights = frame_cells(weights)
    given = table
    if low is not None or high is not None:
        table, low, high = rescale(as_numbers(table, "values", labels), absent, labels, low, high)
        info = {**info, "low": low, "high": high}
    if symmetrize is not None or negative is not None:
        table, labels, weights, absent = clean_parts(table, labels, weights, absent, symmetrize, negative)
    if negative is not None:
        table, found = lift_negatives(table, negative, absent)
        info = {**info, **found}
    if table is not given and not may_share(table, given):
        table = frozen(table)
    return Similarity._of(values=table, labels=labels, weights=weights, absent=absent, info=info, copy=copy)


def _aligned_tables(x: Any, weights: Any, labels: Any) -> tuple[Any, Any, dict[str, str]]:
    """Align the columns of tables with their rows, and weights with values; return a note on what changed."""
    x, weights = labelled(x), labelled(weights)
    ordered = aligned(x, "values") if is_frame(x) else x
    if is_frame(ordered) and not is_default_axis(ordered.index):
        labels = axis_names(ordered.index, "the index of values")
    if is_frame(weights):
        weights = aligned(weights, "weights", None if labels is None else tuple(map(str, list_of_labels(labels))))
    return ordered, weights, {} if ordered is x else {"aligned": ALIGNED}


def _refuse_options(**options: Any) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        rule = "must be None where x is a Similarity, which has its own"
        raise ParameterError(" and ".join(given), rule, remedy="make a new Similarity from its values instead")


def _foreign_parts(x: Any) -> Parts | None:
    """The parts read from a file or from another library's object."""
    if isinstance(x, Parts):
        return x
    if isinstance(x, np.ndarray | list | tuple) or sparse.issparse(x) or is_frame(x):
        return None
    from simdims.io.exchange import parts_of

    return parts_of(x)


def _agreed_labels(parts: Parts, labels: Sequence[str] | None) -> Sequence[str] | None:
    if labels is None or parts.labels is None:
        return parts.labels if labels is None else labels
    names = clean_labels(labels, len(parts.labels))
    assert names is not None
    refuse_other_names("labels", names, parts.named_by, parts.labels)
    return names


def _read_only_info(info: Any) -> Mapping[str, Any]:
    if not isinstance(info, Mapping):
        raise ParameterTypeError("info", "must be a mapping", shown(info))
    return MappingProxyType(dict(info))


def percent(share: float) -> str:
    """A share in percent, shown as 0.0% or 100.0% only if exact."""
    if 0.9995 <= share < 1:
        return "over 99.9%"
    if 0 < share < 0.0005:
        return "under 0.1%"
    return f"{share:.1%}"
