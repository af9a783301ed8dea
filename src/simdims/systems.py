"""SimilaritySet: similarities between the same items in several systems, such as people, brain regions or models."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from simdims import _memory
from simdims._parameters import ParameterError, ParameterTypeError, is_whole, plural, shortlist, shown, warn, warn_again
from simdims.similarity import Similarity, as_similarity, described, percent
from simdims.similarity.labels import aligned, frame_cells, frame_labels, is_default_axis, is_frame
from simdims.similarity.ownership import frozen
from simdims.similarity.subset import chosen_places
from simdims.similarity.validation import as_array, count_observed

if TYPE_CHECKING:
    import pandas as pd

#: A system whose largest similarity differs from the median by more than this factor is on another scale.
_MIXED_SCALES = 5.0

#: RDM descriptors that are not covariates: those of every RDM, and those that to_rsatoolbox adds.
_OF_RDMS = ("index", "largest_similarity", "self_similarity", "dtype")

#: With fewer pairs than this the scale of a system is unknown.
_PAIRS_FOR_SCALE = 10


class SimilaritySet:
    """The similarities of several systems between the same items: people, brain regions, models or moments in time.

    Each system is a Similarity with its own missing pairs, weights and meaning of absent pairs. Items are matched by
    label. Systems may lack items, but every item needs a pair in at least one system. Sparse similarities stay sparse.

    Parameters
    ----------
    similarities : sequence or mapping of similarities, array of shape (n_systems, n_items, n_items), DataArray or RDMs
        Similarities as `as_similarity` takes them; the keys of a mapping name the systems. An array has systems first
        and NaN for missing pairs, diagonal included; in an array or DataFrame, an item without any value is absent from
        that system. Without labels, all systems must have the same number of items, in the same order. rsatoolbox RDMs
        are converted by 1 - d / max(d), each separately, and their descriptors become `info`; the descriptor "name", or
        the first coordinate of an xarray DataArray, names the systems.
    names : sequence, optional
        One distinct name per system; by default the keys of the mapping, the index of `info`, or system1, system2, ...
    info : DataFrame or mapping of columns, optional
        Covariates of the systems (group, age, score, time), one row per system. Rows are matched by name if the index
        of a DataFrame or of a Series in a mapping has the names of the systems.

    Attributes
    ----------
    names : tuple of str
        The systems.
    labels : tuple of str or None
        The items: those of all systems, in the order in which they first appear.
    info : DataFrame
        One row per system, indexed by `names`; without columns if there are no covariates.
    n_systems, n_items : int

    Warns
    -----
    UserWarning
        If systems seem to be on different scales, or to be dissimilarities.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import SimilaritySet
    >>> anna = [[1.0, 0.8, 0.1], [0.8, 1.0, 0.2], [0.1, 0.2, 1.0]]
    >>> ben = [[1.0, 0.3, np.nan], [0.3, 1.0, 0.6], [np.nan, 0.6, 1.0]]
    >>> people = SimilaritySet({"Anna": anna, "Ben": ben}, info={"age": [31, 25]})
    >>> people
    SimilaritySet(2 systems, 3 items, 83.3% of pairs observed)
    >>> people["Ben"]
    Similarity(3 items, dense float64, 66.7% of pairs observed)
    >>> people[people.info["age"] > 30].names
    ('Anna',)
    """

    def __init__(self, similarities: Any, names: Sequence[str] | None = None, info: Any = None) -> None:
        given, own_names, own_info = _given_systems(similarities)
        n = len(given)
        names = own_names if names is None else names
        if names is None and is_frame(info) and not is_default_axis(info.index):
            names = list(info.index)
        self.names = tuple(f"system{m + 1}" for m in range(n)) if names is None else _clean_names(names, n)
        self.info = _clean_info(own_info if info is None else info, self.names)
        self._set(_as_systems(given, self.names))
        _check_connected(self)
        _check_items(self)
        warn_of_scales(self, usual_scale(self))

    def _set(self, systems: list[_System]) -> None:
        self.labels, self.n_items = labels, _ = _common_items(systems, self.names)
        place = None if labels is None else {label: at for at, label in enumerate(labels)}
        self._similarities = tuple(system.similarity for system in systems)
        self._positions = tuple(
            system.positions if place is None else np.array([place[label] for label in system.similarity.labels or ()])
            for system in systems
        )

    @classmethod
    def of_parts(
        cls,
        similarities: Sequence[Similarity],
        positions: Sequence[NDArray[np.intp]],
        names: Sequence[str],
        info: Any,
        labels: Sequence[str] | None,
        n_items: int,
        *,
        checked: bool = True,
    ) -> SimilaritySet:
        """A set of systems with the positions of their items among `n_items`; `checked` if taken from another set."""
        made = cls.__new__(cls)
        made.names = _clean_names(names, len(similarities))
        made.info = _clean_info(info, made.names)
        made.labels, made.n_items = None if labels is None else tuple(labels), n_items
        made._similarities, made._positions = tuple(similarities), tuple(positions)
        if not checked:
            _check_connected(made)
            warn_of_scales(made, usual_scale(made))
        return made

    @classmethod
    def of_new(cls, similarity: Any) -> SimilaritySet:
        """A set of one system whose items are known from elsewhere; some may have no pair."""
        made = cls.__new__(cls)
        made.names = ("new",)
        made.info = _clean_info(None, made.names)
        made._set(_as_systems([similarity], made.names))
        return made

    @property
    def n_systems(self) -> int:
        """The number of systems."""
        return len(self.names)

    @property
    def positions(self) -> tuple[NDArray[np.intp], ...]:
        """For each system, the positions of its items among all items."""
        return self._positions

    @property
    def density(self) -> float:
        """The observed share of the pairs of different items, over all systems."""
        n_pairs = self.n_items * (self.n_items - 1)
        observed = sum(one.density * one.n_items * (one.n_items - 1) for one in self._similarities)
        return observed / (n_pairs * self.n_systems)

    def __len__(self) -> int:
        return self.n_systems

    def __iter__(self) -> Iterator[Similarity]:
        return iter(self._similarities)

    def items(self) -> Iterator[tuple[str, Similarity]]:
        """Iterate over pairs of a system's name and its Similarity."""
        return zip(self.names, self._similarities, strict=True)

    def __getitem__(self, key: Any) -> Similarity | SimilaritySet:
        """One system by position or name, as a Similarity; or several, by a slice, a list or a mask, as a set."""
        if isinstance(key, str) or is_whole(key):
            return self._similarities[chosen_places([key], self.n_systems, self.names, "system")[0]]
        if str(getattr(key, "dtype", "")) == "bool" and set(getattr(key, "index", ())) == set(self.names):
            key = key.loc[list(self.names)]  # a pandas Series is matched by name
        key = list(key) if isinstance(key, tuple) else key
        places = chosen_places(key, self.n_systems, self.names, "system")
        chosen = SimilaritySet.__new__(SimilaritySet)
        chosen.names = tuple(self.names[m] for m in places)
        chosen.info = self.info.iloc[places]
        is_named = self.labels is not None
        chosen._set([_System(self._similarities[m], self._positions[m], self.n_items, is_named) for m in places])
        _check_connected(chosen)
        return chosen

    def mean(self) -> Similarity:
        """Average over the systems that have a pair, weighted by the pair's weight in each.

        Returns
        -------
        Similarity
            Weighted by the sum of the weights over the systems (relative to the number of systems) if this differs
            between pairs. Sparse if all systems are, unless a system in which absent pairs are zeros lacks items.

        Examples
        --------
        >>> from simdims import SimilaritySet
        >>> SimilaritySet([[[1.0, 0.8], [0.8, 1.0]], [[1.0, 0.4], [0.4, 1.0]]]).mean().values
        array([[1. , 0.6],
               [0.6, 1. ]])
        """
        n = self.n_items
        parts = list(zip(self._similarities, self._positions, strict=True))
        is_sparse = all(one.factors is None and sparse.issparse(one.values) for one, _ in parts)
        # Absent pairs of the mean have one weight, so systems with zeros must have all items.
        if is_sparse and all(len(at) == n or one.absent_weight == 0 for one, at in parts):
            return self._sparse_mean()
        _memory.require(24 * n * n, f"The mean of the similarities of {n} items", "average fewer items")
        total, weight = np.zeros((n, n)), np.zeros((n, n))
        for one, at in parts:
            values, omega = dense_parts(one)
            total[np.ix_(at, at)] += omega * values
            weight[np.ix_(at, at)] += omega
        with np.errstate(invalid="ignore"):
            values = total / weight
        differs = np.ptp(weight[weight > 0]) > 0
        return Similarity(frozen(values), self.labels, frozen(weight / self.n_systems) if differs else None)

    def _sparse_mean(self) -> Similarity:
        """The mean without a dense matrix: pairs that no system stores stay absent."""
        n, share = self.n_items, 1.0 / self.n_systems
        parts = [_entries(one, at) for one, at in zip(self._similarities, self._positions, strict=True)]
        rows, columns, values, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        background = np.array([one.absent_weight for one in self._similarities])
        absent = float(background.sum() * share)
        beyond = weights - np.repeat(background, [len(part[0]) for part in parts]) * (rows != columns)
        pattern, entry = np.unique(rows.astype(np.int64) * n + columns, return_inverse=True)
        own = pattern // n == pattern % n
        omega = np.bincount(entry, weights=beyond) * share + absent * ~own
        total = np.bincount(entry, weights=weights * values) * share
        with np.errstate(invalid="ignore"):
            mean = np.where(omega > 0, total / omega, np.nan)
        at = (pattern // n, pattern % n)
        known = omega[omega > 0]
        matrices = [sparse.csr_array((data, at), shape=(n, n)) for data in (mean, omega)]
        meaning = {0.0: "missing", 1.0: "zero"}.get(absent, absent)
        plain = np.ptp(known) == 0 and absent == 0
        return Similarity(matrices[0], self.labels, None if plain else matrices[1], meaning)

    def to_xarray(self) -> Any:
        """Return the values as an xarray DataArray with dimensions system, item1 and item2; missing pairs are NaN.

        Weights and `info` are not included. SimilaritySet reads it back.
        """
        from simdims.io.exchange import set_to_xarray

        return set_to_xarray(self)

    def to_rsatoolbox(self) -> Any:
        """Return rsatoolbox RDMs, one per system, whose dissimilarities are largest similarity - similarity.

        `info` and `names` (as "name") become RDM descriptors, the labels the pattern descriptor "labels". The largest
        similarity and the diagonal of each system are RDM descriptors too, from which SimilaritySet restores the
        similarities up to rounding. Weights raise an error: RDMs cannot hold them.
        """
        from simdims.io.exchange import set_to_rsatoolbox

        return set_to_rsatoolbox(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an .npz file that `SimilaritySet.load` reads, without pickle.

        Parameters
        ----------
        path : str or path
            Ends in .npz. An existing file is replaced once the new one is complete.
        """
        from simdims.io.systems import save_set

        save_set(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, info: Any = None, **options: Any) -> SimilaritySet:
        r"""Read what `save` wrote, or a folder with one file per system.

        Parameters
        ----------
        path : str or path
            An .npz file, or a folder. The files of a folder are of any type that `load_similarity` reads, and their
            names without suffix become the names of the systems, in natural order (2 before 10).
        info : str, path, DataFrame or mapping of columns, optional
            For a folder: covariates of the systems. The first column of a file, or the index of a DataFrame, names the
            files, with or without suffix. By default the table in the folder named info, participants, subjects,
            systems or covariates (.csv, .tsv, .txt or .parquet), if there is one.
        **options
            For a folder: keywords of `load_similarity` for all its files, such as `low` and `high`.

        Returns
        -------
        SimilaritySet

        Warns
        -----
        UserWarning
            If a folder holds other files, or its table has rows without a file.

        See Also
        --------
        simdims.from_dissimilarity : Reads a folder of dissimilarities, with `by`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from simdims import SimilaritySet
        >>> people = SimilaritySet([[[1.0, 0.8], [0.8, 1.0]], [[1.0, 0.4], [0.4, 1.0]]], names=["Anna", "Ben"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     people.save(f"{folder}/people.npz")
        ...     SimilaritySet.load(f"{folder}/people.npz").names
        ('Anna', 'Ben')

        A folder with one file per person and a table of their ages:

        >>> with tempfile.TemporaryDirectory() as folder:
        ...     people["Anna"].save(f"{folder}/Anna.csv")
        ...     people["Ben"].save(f"{folder}/Ben.csv")
        ...     _ = Path(folder, "participants.csv").write_text("person,age\nAnna,31\nBen,25\n")
        ...     SimilaritySet.load(folder).info
              age
        Anna   31
        Ben    25
        """
        from simdims.io.systems import load_set

        return load_set(path, info, **options)

    def __repr__(self) -> str:
        parts = [f"{n} {plural(noun, n)}" for n, noun in ((self.n_systems, "system"), (self.n_items, "item"))]
        parts.append(f"{percent(self.density)} of pairs observed")
        if self.labels is not None:
            parts.append("labelled")
        return f"SimilaritySet({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_set

        return of_set(self)


class _System(NamedTuple):
    """The similarities of a system, the positions of its items among those given, and whether the items have labels."""

    similarity: Similarity
    positions: NDArray[np.intp]
    n_items: int
    is_named: bool


def dense_parts(one: Similarity) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values, zero for missing pairs, and weights of a Similarity, as dense matrices."""
    n = one.n_items
    if one.factors is not None:
        return (one.factors @ one.factors.T).astype(np.float64), np.ones((n, n))
    if sparse.issparse(one.values):
        rows, columns, stored, weights = _entries(one, np.arange(n))
        values, omega = np.zeros((n, n)), np.full((n, n), one.absent_weight)
        np.fill_diagonal(omega, 0.0)
        values[rows, columns], omega[rows, columns] = stored, weights
        return values, omega
    known = ~np.isnan(one.values)
    omega = known * (np.ones((n, n)) if one.weights is None else one.weights.astype(np.float64))
    return np.where(known, one.values, 0.0).astype(np.float64), omega


def _entries(one: Similarity, at: NDArray[np.intp]) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Rows and columns among all items, values (zero if unknown) and weights of the stored entries of a Similarity."""
    stored = one.values.tocoo()
    weights = np.ones(stored.nnz) if one.weights is None else one.weights.tocoo().data.astype(np.float64)
    known = ~np.isnan(stored.data)
    return at[stored.row], at[stored.col], np.where(known, stored.data, 0.0).astype(np.float64), weights * known


def with_origins(systems: SimilaritySet, origins: Sequence[Mapping[str, Any]]) -> SimilaritySet:
    """The same systems, each with `info` on how its similarities were made."""
    similarities = [described(one, origin) for one, origin in zip(systems._similarities, origins, strict=True)]
    described_systems = (similarities, systems._positions, systems.names, systems.info)
    return SimilaritySet.of_parts(*described_systems, systems.labels, systems.n_items)


def _given_systems(similarities: Any) -> tuple[list[Any], list[Any] | None, dict[str, Any] | None]:
    """One object per system, and the names and covariates that come with them."""
    if isinstance(similarities, SimilaritySet):
        info = {str(key): column for key, column in similarities.info.items()}
        return list(similarities), list(similarities.names), info
    names: list[Any] | None = None
    package = type(similarities).__module__.partition(".")[0]
    if isinstance(similarities, Mapping):
        given, names = list(similarities.values()), list(similarities)
    elif package == "rsatoolbox":
        return _of_rdms(similarities)
    elif package == "xarray" or isinstance(similarities, np.ndarray):
        if similarities.ndim != 3 or similarities.shape[1] != similarities.shape[2]:
            got = f"{'a DataArray' if package == 'xarray' else 'an array'} of shape {similarities.shape}"
            raise ParameterError("similarities", "must have shape (n_systems, n_items, n_items)", got)
        given = list(similarities)
        if package == "xarray":
            systems, given = similarities.dims[0], [one.to_pandas() for one in given]
            names = similarities[systems].values.tolist() if systems in similarities.coords else None
    elif isinstance(similarities, Sequence) and not isinstance(similarities, str | bytes):
        given = list(similarities)
    else:
        rule = "must be a list, a mapping or an array of similarities, systems first, a DataArray or rsatoolbox RDMs"
        raise ParameterTypeError("similarities", rule, type(similarities).__name__)
    if not given:
        raise ParameterError("similarities", "must hold at least one system", "none")
    return given, names, None


def _of_rdms(rdms: Any) -> tuple[list[Any], list[Any] | None, dict[str, Any]]:
    """The similarities of each RDM, as a table if the patterns have names, and the descriptors."""
    import pandas as pd

    from simdims.io.exchange import from_rsatoolbox

    parts = [from_rsatoolbox(rdms[m]) for m in range(rdms.n_rdm)]
    given = [one.values if one.labels is None else pd.DataFrame(one.values, one.labels, one.labels) for one in parts]
    described = {key: list(column) for key, column in rdms.rdm_descriptors.items() if key not in _OF_RDMS}
    is_named = len(set(map(str, described.get("name", ())))) == len(given)
    return given, described.pop("name") if is_named else None, described


def _clean_names(names: Any, n_systems: int) -> tuple[str, ...]:
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        raise ParameterTypeError("names", "must be a sequence with one name per system", shown(names))
    names = list(names)
    if any(name is None or name != name or not str(name).strip() for name in names):
        raise ParameterError("names", "must name every system", "a missing name")
    cleaned = tuple(str(name) for name in names)
    if len(cleaned) != n_systems:
        raise ParameterError("names", f"must have one name for each of the {n_systems} systems", f"{len(cleaned)}")
    repeated = [repr(name) for name, count in Counter(cleaned).items() if count > 1]
    if repeated:
        raise ParameterError("names", "must be distinct", f"{shortlist(repeated)} more than once")
    return cleaned


def _clean_info(info: Any, names: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    if info is None:
        return pd.DataFrame(index=pd.Index(names, dtype=object))
    if not (is_frame(info) or isinstance(info, Mapping)):
        raise ParameterTypeError("info", "must be a DataFrame or a mapping of columns", type(info).__name__)
    columns = [str(column) for column in (info.columns if is_frame(info) else info)]
    repeated = [repr(column) for column, count in Counter(columns).items() if count > 1]
    if repeated:
        raise ParameterError("info", "must have columns with distinct names", f"{shortlist(repeated)} more than once")
    n = len(names)
    lengths = {column: np.size(values) for column, values in info.items()}
    wrong = [f"{length} in {column!r}" for column, length in lengths.items() if length != n]
    if wrong:
        raise ParameterError("info", f"must have one row for each of the {n} systems", shortlist(wrong))
    frame = info.copy() if is_frame(info) else pd.DataFrame({key: _in_order(info[key], names) for key in info})
    if is_frame(info) and not is_default_axis(frame.index):
        rows = [str(row) for row in frame.index]
        if set(rows) != set(names) or len(set(rows)) < n:
            other = [repr(row) for row in rows if row not in names] or ["repeated names"]
            raise ParameterError("info", "must be indexed by the names of the systems", shortlist(other))
        frame = frame.iloc[[rows.index(name) for name in names]]
    return frame.set_axis(pd.Index(names, dtype=object), axis=0).rename(columns=str)


def _in_order(values: Any, names: tuple[str, ...]) -> pd.Series:
    """A covariate without its index; a Series is matched by name if its index has the names of the systems."""
    import pandas as pd

    column = pd.Series(values)
    rows = [str(row) for row in column.index]
    if isinstance(values, pd.Series) and sorted(rows) == sorted(names):
        column = column.iloc[[rows.index(name) for name in names]]
    return column.reset_index(drop=True)


def _as_systems(given: list[Any], names: tuple[str, ...]) -> list[_System]:
    """Each system as a Similarity; errors name the system."""
    systems, suspects = [], []
    for name, one in zip(names, given, strict=True):
        _refuse_nothing(one, name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                system = _as_system(one)
            except ParameterError as error:
                error.file = error.file or f"system {name!r}"
                raise
            except (TypeError, ValueError) as error:
                error.add_note(f"This is about system {name!r}.")
                raise
        if system.similarity.density == 0 or system.similarity.n_items < 2:
            raise _no_pair(name)
        suspects += [name for one in caught if "dissimilarit" in str(one.message)]
        others = (one for one in caught if "dissimilarit" not in str(one.message))
        warn_again(one for one in others if not str(one.message).startswith("Observed on the diagonal"))
        systems.append(system)
    if 2 * len(suspects) > len(systems):
        warn(
            f"{len(suspects)} of {len(systems)} systems look like dissimilarities: {shortlist(suspects)}.",
            "Convert them with {from_dissimilarity()}.",
        )
    return systems


def _no_pair(name: str) -> ParameterError:
    return ParameterError("similarities", "must hold a pair of two different items in each system", f"none in {name!r}")


def _refuse_nothing(one: Any, name: str) -> None:
    """Refuse a matrix in which everything is missing."""
    values = frame_cells(one) if is_frame(one) else as_array(one, "values") if isinstance(one, np.ndarray) else one
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and np.isnan(values).all():
        raise _no_pair(name)


def _as_system(one: Any) -> _System:
    """A Similarity of the items that have a value, and their positions among those given."""
    if is_frame(one):
        one = aligned(one, "values")
        values, labels = frame_cells(one), frame_labels(one, "values", None)
    elif isinstance(one, np.ndarray | list):
        values, labels = as_array(one, "values"), None
    else:
        similarity = as_similarity(one)
        n = similarity.n_items
        return _System(similarity, np.arange(n), n, similarity.labels is not None)
    is_square = values.ndim == 2 and values.shape[0] == values.shape[1] and values.dtype.kind in "biuf"
    present = ~np.isnan(values).all(axis=0) if is_square else np.ones(len(values), dtype=bool)
    n, is_named = len(values), labels is not None
    if present.all() or not present.any():
        return _System(as_similarity(values, labels=labels), np.arange(n), n, is_named)
    at = np.flatnonzero(present)
    own = [str(i) if labels is None else labels[i] for i in at]
    return _System(as_similarity(frozen(values[np.ix_(at, at)]), labels=own), at, n, is_named)


def _common_items(systems: list[_System], names: tuple[str, ...]) -> tuple[tuple[str, ...] | None, int]:
    """The labels of the items of all systems, or None, and their number."""
    named = [system.is_named for system in systems]
    if not any(named):
        first = systems[0].n_items
        for name, system in zip(names, systems, strict=True):
            if system.n_items != first:
                got = f"{first} in {names[0]!r} and {system.n_items} in {name!r}"
                raise ParameterError("similarities", "must have labels unless all have the same items", got)
        return None, first
    if not all(named):
        got = f"labels in {names[named.index(True)]!r} and none in {names[named.index(False)]!r}"
        raise ParameterError("similarities", "must all have labels, or none of them", got)
    labels = tuple(dict.fromkeys(label for system in systems for label in system.similarity.labels or ()))
    return labels, len(labels)


def _check_connected(systems: SimilaritySet) -> None:
    """Refuse systems that share no items with the others: nothing relates their dimensions."""
    n = systems.n_systems
    at = np.concatenate(systems.positions)
    of = np.repeat(np.arange(n), [len(places) for places in systems.positions])
    size = n + systems.n_items
    graph = sparse.coo_array((np.ones(len(at)), (of, n + at)), shape=(size, size))
    groups = connected_components(graph, directed=False)[1][:n]
    apart = [repr(name) for name, group in zip(systems.names, groups, strict=True) if group != groups[0]]
    if apart:
        first = f"{systems.names[0]!r}"
        rule = "must share items, by which their dimensions are related"
        raise ParameterError("similarities", rule, f"none in common between {first} and {shortlist(apart)}")


def _check_items(systems: SimilaritySet) -> None:
    """Refuse items without a pair in any system."""
    n_partners = np.zeros(systems.n_items)
    for one, at in zip(systems, systems.positions, strict=True):
        implicit = one.factors is not None
        n_partners[at] += one.n_items - 1 if implicit else count_observed(one.values, one.weights, one.absent)[0]
    alone = np.flatnonzero(n_partners == 0)
    if alone.size:
        listed = [str(i) if systems.labels is None else repr(systems.labels[i]) for i in alone]
        got = f"none for {alone.size} {plural('item', alone.size)}: {shortlist(listed)}"
        raise ParameterError("similarities", "must hold a pair of every item in some system", got, "remove them")


def identical_systems(systems: SimilaritySet) -> list[tuple[str, ...]]:
    """The names of systems that share all their values, in groups."""
    groups: dict[bytes, list[str]] = {}
    for (name, one), at in zip(systems.items(), systems.positions, strict=True):
        values: Any = one.values if one.factors is None else one.factors
        stored = (values.indptr, values.indices, values.data) if sparse.issparse(values) else (values,)
        if stored[-1].size >= _PAIRS_FOR_SCALE:  # a few pairs may agree by chance
            digest = hashlib.blake2b(digest_size=16)
            for part in (at, *stored):
                digest.update(np.ascontiguousarray(part).tobytes())
            groups.setdefault(digest.digest(), []).append(name)
    return [tuple(names) for names in groups.values() if len(names) > 1]


def warn_of_identical(systems: SimilaritySet) -> None:
    """Warn of systems that share all their values, which are probably copies of one."""
    if groups := identical_systems(systems):
        listed = "; ".join(shortlist([repr(name) for name in names]) for names in groups[:3])
        more = f"; and {len(groups) - 3} more groups" if len(groups) > 3 else ""
        warn(
            f"Systems have identical similarities: {listed}{more}.",
            "If they are copies of one system, keep only one: tests and standard errors count each of them.",
        )


def usual_scale(systems: SimilaritySet) -> float | None:
    """The median of the systems' largest similarities, or None if all scales are unknown."""
    largest = list(_scales(systems).values())
    return float(np.quantile(largest, 0.5, method="lower")) if largest else None


def warn_of_scales(systems: SimilaritySet, usual: float | None, of: str = "") -> None:
    """Warn of systems whose largest similarity differs much from the usual one, `of` other systems if given."""
    if usual is None:
        return
    scales = _scales(systems)
    order = sorted(scales, key=lambda name: -abs(np.log(scales[name] / usual)))
    far = [name for name in order if abs(np.log(scales[name] / usual)) > np.log(_MIXED_SCALES)]
    if far:
        warn(
            f"Systems seem to be on different scales: the largest similarity{of} is usually {usual:.3g}, but "
            f"{shortlist([f'{scales[name]:.3g} in {name!r}' for name in far])}.",
            "Rescale them to one scale first, as with {low} and {high} of as_similarity.",
        )


def _scales(systems: SimilaritySet) -> dict[str, float]:
    """The largest similarity of each system with enough pairs, if it is positive."""
    largest = {}
    for name, one in systems.items():
        values = one.values if one.factors is None else one.factors
        stored = values.data if sparse.issparse(values) else values
        if 0.5 * one.density * one.n_items * (one.n_items - 1) >= _PAIRS_FOR_SCALE:
            largest[name] = float(np.nanmax(stored, initial=0.0)) ** (2 if one.factors is not None else 1)
    return {name: value for name, value in largest.items() if value > 0}
