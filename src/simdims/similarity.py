"""Similarity, the one currency between raw data and fits, and as_similarity, the gate that makes one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._checks import (
    as_numbers,
    as_table,
    check_finite,
    check_non_negative,
    check_observed,
    check_same_storage,
    check_weights,
    clean_absent,
    clean_factors,
    clean_labels,
    count_observed,
    lift_negatives,
    rescale,
    warn_of_dissimilarity,
)
from simdims._ownership import frozen, held, may_share, read_only
from simdims._parameters import require_choice, require_flag, shown
from simdims._parts import Parts
from simdims._triangles import Matrix, equal_triangles

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Similarity:
    """Similarities between items: a symmetric, non-negative matrix in which pairs may be missing.

    Whatever is given is checked, so that every Similarity is valid. The caller's arrays are never changed, and what
    the caller does to them later does not change the Similarity: arrays that can be written to are copied. A symmetric
    array of float32 or float64 that is read-only (``array.flags.writeable = False``, or a file mapped with
    ``mmap_mode="r"``) is used without a copy.

    Parameters
    ----------
    values : array-like or scipy sparse matrix, shape (n_items, n_items)
        Dense values mark a missing pair with NaN. Sparse values may be of any format; a stored zero is an
        observed zero, and a stored NaN a pair of weight zero. A pair may be given in both triangles or in
        either one. Triangles that differ by rounding (1e-8 of the largest value in float64, 1e-5 in float32)
        are averaged; as_similarity merges those that differ by more.
    labels : sequence, optional
        One distinct name an item, kept as text.
    weights : array-like or scipy sparse matrix, shape (n_items, n_items), optional
        How much each pair counts: finite, non-negative and symmetric; 0 leaves a pair out. They are dense
        where values are; where values are sparse they store exactly the same pairs. A pair without a value
        is missing whatever its weight, and one with a value on one side only takes that side's weight.
    absent : {"missing", "zero"} or float, optional
        What the pairs that sparse values do not store mean: "missing" (nobody measured them), "zero" (they
        were measured and are zero), or a number strictly between 0 and 1, a zero believed with that weight.
        Required for sparse values and refused for dense ones. A diagonal entry that is not stored is
        unobserved in every case.
    info : mapping, optional
        Where the similarities came from, as plain values.

    Attributes
    ----------
    values : ndarray or csr_array
        Exactly symmetric, read-only; float32 stays float32, everything else is float64.
    labels : tuple of str or None
    weights : ndarray or csr_array or None
        Exactly symmetric, read-only; the stored pairs of sparse weights are those of values.
    absent : str, float or None
    factors : ndarray of shape (n_items, n_features) or None
        Read-only. Where it is not None the similarities are implicit, S = F F^T, and `values` raises; see
        `from_factors`.
    signed : bool
        Whether factors may be negative, so that similarities may dip below zero.
    info : mapping of str to plain values
        Read-only.
    n_items : int
    density : float
        The share of the pairs of two different items that are observed.

    Warns
    -----
    UserWarning
        If an item is observed on the diagonal only, or if values look like dissimilarities: by a zero diagonal or,
        where there is none, by the name of their file, variable or column (in `info`) or the order of their values.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims.similarity import Similarity
    >>> S = Similarity([[1.0, 0.8, np.nan], [0.8, 1.0, 0.3], [np.nan, 0.3, 1.0]], labels=["cat", "dog", "car"])
    >>> S
    Similarity(3 items, dense float64, 66.7% of pairs observed, labelled)
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
        """Similarities S = F F^T that are never built: all pairs are observed, and n x n numbers are never stored.

        Parameters
        ----------
        factors : array-like of shape (n_items, n_features)
            F, finite, and non-negative unless `signed`.
        labels : sequence, optional
            One distinct name an item.
        signed : bool, default=False
            Take factors of either sign, whose products are similarities but for an error, as those that approximate a
            kernel. That no product is far below zero is for the caller to know: all pairs are too many to look at.
        info : mapping, optional
            Where the similarities came from.

        Returns
        -------
        Similarity
            With `factors`; its `values` raise.

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
        """The same as the constructor where copy is True; else, arrays of others are looked at, and not copied."""
        made = cls.__new__(cls)
        made._set(**parts, factors=None, signed=False)
        made._settle(copy)
        return made

    def _settle(self, copy: bool) -> None:
        """Check what was given, and hold it."""
        if self.factors is not None:
            self._hold_factors()
            return
        if self.signed:
            raise ValueError("signed must be False for values, which cannot be negative: it is for factors.")
        values, labels, weights, absent = _clean(self.values, self.labels, self.weights, self.absent)
        info = _read_only_info(self.info)
        n_partners, on_diagonal = count_observed(values, weights, absent)
        check_observed(n_partners, on_diagonal, labels)
        warn_of_dissimilarity(values, weights, info)
        n_sides = n_partners.size * (n_partners.size - 1)
        self._set(
            values=held(values, self.values, "values", copy),
            labels=labels,
            weights=None if weights is None else held(weights, self.weights, "weights", copy),
            absent=absent,
            info=info,
            density=float(n_partners.sum() / n_sides) if n_sides else 1.0,
        )

    def _hold_factors(self) -> None:
        if not (self.values is None and self.weights is None and self.absent is None):
            raise ValueError("values, weights and absent must be None where factors are given.")
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
        """The weight of the zero that an absent pair stands for: 1 for "zero", 0 for "missing" and for dense values."""
        if isinstance(self.absent, float):
            return self.absent
        return 1.0 if self.absent == "zero" else 0.0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the values of a dense Similarity without weights, NaN where a pair is missing; others are refused."""
        from simdims.io.exchange import to_array

        return to_array(self, dtype, copy)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that load_similarity reads; an existing one is replaced once the new one is complete.

        Parameters
        ----------
        path : str or path
            Ends in .npz, which keeps everything (info as JSON does), or in .csv, which keeps labels and values, every
            one exactly: a square for dense values, and a list of pairs for sparse ones whose absent pairs are
            missing. What a .csv cannot hold (weights, other absent pairs, factors) is an error; `info` and the
            difference between float32 and float64, and between sparse and dense, are not kept in one. There, labels
            that a spreadsheet would run as a formula begin with an apostrophe, which load_similarity removes.

        Examples
        --------
        >>> Similarity([[1.0, 0.8], [0.8, 1.0]]).save("animals.npz")  # doctest: +SKIP
        """
        from simdims.io import save

        save(self, path)

    def to_frame(self) -> pd.DataFrame:
        """Return the values as a dense DataFrame with labels on both axes.

        Missing pairs are NaN, and absent ones that are zeros of any weight are 0; weights are not part of it.
        """
        from simdims.io.exchange import to_frame

        return to_frame(self)

    def to_networkx(self) -> Any:
        """Return the observed pairs as a networkx Graph, which as_similarity takes back (as sparse values).

        Nodes are the labels, or 0, 1, 2, ... where there are none. Edges are the observed pairs of two different
        items, zeros included (of a sparse matrix the stored ones), with attributes ``weight``, the similarity, and
        ``pair_weight``, how much it counts, where there are weights. An item's similarity to itself is its node's
        ``self_similarity`` (and ``self_weight``), not a loop, which would disturb what is computed on graphs. The
        graph's attribute ``simdims_absent`` says what a pair without an edge means.
        """
        from simdims.io.exchange import to_networkx

        return to_networkx(self)

    def to_rsatoolbox(self) -> Any:
        """Return rsatoolbox RDMs with one RDM, whose dissimilarities are largest similarity - similarity.

        The largest similarity (over all entries) is the descriptor ``largest_similarity`` of the RDM; ``labels`` and
        ``self_similarity``, the diagonal, are descriptors of its patterns. As as_similarity reads these, it gives the
        same similarities back, to the rounding of the largest one. Weights are an error: an RDM cannot hold them.
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
        # Arrays come out of a pickle writeable.
        matrices = {name: state[name] for name in ("values", "weights", "factors") if state.get(name) is not None}
        frozen = {name: read_only(matrix) for name, matrix in matrices.items()}
        self._set(**{**state, **frozen, "info": MappingProxyType(state["info"])})

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


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
    x : array-like, pandas DataFrame, scipy sparse matrix, networkx graph, rsatoolbox RDMs, Similarity or Discovery
        Similarities between items, as Similarity describes them. The index and the columns of a DataFrame
        must name the same items in the same order, and become the labels; an axis that is pandas' default 0,
        1, 2, ... names nothing. A Similarity, or the one that a Discovery holds, is returned unchanged, and is then
        the only argument.

        A graph gives sparse values: the attribute ``weight`` of its edges, 1 where there is none, and on the
        diagonal its self-loops or the ``self_similarity`` of its nodes. Nodes become labels, unless they are 0,
        1, 2, ...; where each has a text of its own as attribute ``label``, that does. A single RDM becomes
        1 - d / max(d) (see from_dissimilarity), and one that to_rsatoolbox made the similarities it was made of.
    labels : sequence, optional
        One name an item. Beside a DataFrame with names of its own they must be the same.
    weights : array-like, pandas DataFrame or scipy sparse matrix, optional
        How much each pair counts; see Similarity. Where a DataFrame names its items, they must be those of
        `x`.
    absent : {"missing", "zero"} or float, optional
        What the pairs that a sparse matrix does not store mean; see Similarity.
    symmetrize : {"mean", "max"}, optional
        What to make of the two sides of a pair that differ, as in a confusion matrix or a directed graph; by
        default they are an error. A side that is missing leaves the other one as it is; but in a sparse
        matrix whose absent pairs are zeros, of any weight, a side that is not stored counts as 0 beside one
        that is. Weights are not merged: they must be symmetric.
    negative : {"clip", "shift"}, optional
        What to do with negative values; by default they are an error. "clip" sets them to 0, with a warning that
        counts them; "shift" rescales all correlations r as (1 + r) / 2. `info` says what was done.
    low, high : float, optional
        The ends of a rating scale, which become 0 and 1: values are rescaled as (x - low) / (high - low), as
        from_ratings does, and `info` holds both ends. An end that is not given beside the other is the smallest or the
        largest value, with a warning. By default values stay as they are.
    copy : bool, default=True
        Whether arrays that can be written to are copied. False saves their memory: they must then stay as they are for
        as long as the Similarity is used.

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
    if not (symmetrize is None or (isinstance(symmetrize, str) and symmetrize in ("mean", "max"))):
        raise ValueError(f'symmetrize must be None, "mean" or "max", got {shown(symmetrize)}.')
    require_choice("negative", negative, (None, "clip", "shift"))
    require_flag("copy", copy)
    of_result = getattr(x, "similarity", None)
    x = of_result if isinstance(of_result, Similarity) else x  # a Discovery's
    if isinstance(x, Similarity):
        settled = {"weights": weights, "absent": absent, "symmetrize": symmetrize, "negative": negative}
        _refuse_keywords(labels=labels, low=low, high=high, **settled)
        return x
    info: Mapping[str, Any] = {}
    if (parts := _foreign_parts(x)) is not None:
        copy = False  # nobody else has what was read from a file or made of a graph
        x, info, labels = parts.values, parts.info, _agreed_labels(parts, labels)
        weights, absent = (
            own if given is None else given for own, given in ((parts.weights, weights), (parts.absent, absent))
        )
    table = as_table(frame_cells(x) if is_frame(x) else x, "values")
    if isinstance(x, list | tuple):
        table = frozen(table)
    labels = clean_labels(labels, table.shape[0])
    if is_frame(x):
        labels = frame_labels(x, "values", labels)
    if is_frame(weights):
        if frame_labels(weights, "weights", labels) is not None and labels is None:
            raise ValueError(
                "weights must not name items where values does not, got a labelled DataFrame: pass labels=."
            )
        weights = frame_cells(weights)
    given = table
    if low is not None or high is not None:
        table, low, high = rescale(as_numbers(table, "values", labels), absent, labels, low, high)
        info = {**info, "low": low, "high": high}
    if symmetrize is not None or negative is not None:
        table, labels, weights, absent = _clean(table, labels, weights, absent, symmetrize, negative)
    if negative is not None:
        table, found = lift_negatives(table, negative, absent)
        info = {**info, **found}
    if table is not given and not may_share(table, given):
        table = frozen(table)
    return Similarity._of(values=table, labels=labels, weights=weights, absent=absent, info=info, copy=copy)


def _clean(
    values: Any, labels: Any, weights: Any, absent: Any, symmetrize: str | None = None, negative: str | None = None
) -> tuple[Matrix, tuple[str, ...] | None, Matrix | None, str | float | None]:
    """Check the parts of a Similarity on their own and against each other, and make the triangles equal."""
    table = as_table(values, "values")
    names = clean_labels(labels, table.shape[0])
    meaning = clean_absent(absent, table)
    numbers = as_numbers(table, "values", names)
    check_finite(numbers, names)
    if negative is None:
        check_non_negative(numbers)
    if weights is not None:
        table = as_table(weights, "weights")
        check_same_storage(table, numbers)
        weights = as_numbers(table, "weights", names)
        check_weights(weights, names)
    unstored = np.nan if symmetrize is None or meaning in (None, "missing") else 0.0
    numbers, weights = equal_triangles(numbers, weights, names, symmetrize=symmetrize, unstored=unstored)
    return numbers, names, weights, meaning


def _read_only_info(info: Any) -> Mapping[str, Any]:
    if not isinstance(info, Mapping):
        raise TypeError(f"info must be a mapping, got {shown(info)}.")
    return MappingProxyType(dict(info))


def percent(share: float) -> str:
    """A share in percent that reads 0.0% and 100.0% only where it is."""
    if 0.9995 <= share < 1:
        return "over 99.9%"
    if 0 < share < 0.0005:
        return "under 0.1%"
    return f"{share:.1%}"


def _refuse_keywords(**keywords: Any) -> None:
    given = [name for name, value in keywords.items() if value is not None]
    if given:
        raise ValueError(
            f"{' and '.join(given)} must be None where x is a Similarity, which has settled them already: "
            "make a new Similarity from its values instead."
        )


def _foreign_parts(x: Any) -> Parts | None:
    """What a file, a networkx graph or rsatoolbox's RDMs hold."""
    if isinstance(x, Parts):
        return x
    libraries = {str(kind.__module__).partition(".")[0] for kind in type(x).__mro__}
    if libraries.isdisjoint(("networkx", "rsatoolbox")):
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


def is_frame(x: Any) -> bool:
    """Whether `x` is a DataFrame, without importing pandas for those who do not use it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(x, pandas.DataFrame)


def frame_cells(frame: Any) -> np.ndarray:
    """The cells of a DataFrame as an array, NaN where one is missing."""
    cells = frame.to_numpy()
    # pandas' own marker of a missing cell is not a number, and only object arrays can hold it.
    return frame.to_numpy(dtype=object, na_value=np.nan) if cells.dtype == object else cells


def frame_labels(frame: Any, name: str, labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The items a DataFrame names, or `labels` where given, after checking that all names there are agree."""
    named = [
        (what := f"the {kind} of {name}", axis_names(axis, what))
        for kind, axis in (("index", frame.index), ("columns", frame.columns))
        if not is_default_axis(axis)
    ]
    if labels is not None:
        named.insert(0, ("labels", labels))
    if not named:
        return None
    for other in named[1:]:
        refuse_other_names(*named[0], *other)
    return named[0][1]


def is_default_axis(axis: Any) -> bool:
    """Whether an axis is the 0, 1, 2, ... that pandas makes up where no names are given."""
    return isinstance(axis, sys.modules["pandas"].RangeIndex) and axis.start == 0 and axis.step == 1


def axis_names(axis: Any, what: str) -> tuple[str, ...]:
    """The names on an axis, one for every item."""
    if getattr(axis, "nlevels", 1) == 1 and getattr(axis, "hasnans", False):
        raise ValueError(f"{what} must name every item, got none in place {int(np.argmax(axis.isna()))}.")
    return tuple(map(str, axis))


def refuse_other_names(one: str, names: tuple[str, ...], other: str, other_names: tuple[str, ...]) -> None:
    """Refuse two sets of names that differ, naming the first place where they do."""
    # Names of another number of items belong to a matrix of another shape, which has a sentence of its own.
    for place, (first, second) in enumerate(zip(names, other_names, strict=False)):
        if first != second:
            reordered = " (the same names in another order)" if set(names) == set(other_names) else ""
            raise ValueError(
                f"{other} must name the same items as {one}, in the same order, got {second!r} instead of "
                f"{first!r} in place {place}{reordered}."
            )
