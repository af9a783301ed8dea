"""What a matrix of similarities must be: a sentence for every rule that one can break."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from simdims._cells import advice, as_floats
from simdims._memory import require
from simdims._parameters import as_float, plural, shortlist, warn
from simdims._triangles import COPY_WAYS_OUT, ROUNDING, Matrix, facing, name_of

# Rows of a dense matrix that are looked at together, so that no check makes a second n x n array.
BLOCK_ROWS = 256

# Items that transitivity is measured on, and how many standard errors from 0 leave no doubt.
N_TRANSITIVE = 300
CLEARLY_TRANSITIVE = 5.0
DISTANCE_WORDS = re.compile(r"(?i:rdm|dissim|distance)|(?<![A-Za-z])(?i:dist|dsm)(?![a-z])")
SIMILARITY_WORDS = re.compile(r"(?<!dis)(?<!Dis)(?i:simil)|(?<![A-Za-z])(?i:sim)(?![a-z])")
# Halves of characters, as of file names in another encoding, and NUL.
UNWRITABLE = re.compile("[\ud800-\udfff\x00]")

ABSENT_OPTIONS = (
    'absent="missing" (nobody measured the pairs that are not stored), absent="zero" (they were measured '
    "and are 0) or a number between 0 and 1 (they are zeros believed with that weight)"
)


def as_table(x: Any, name: str) -> Any:
    """Return `x` as a square 2-d ndarray or scipy sparse matrix of any dtype."""
    table = x if sparse.issparse(x) else as_array(x, name)
    if table.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got dtype {table.dtype} (Complex data not supported).")
    if table.ndim != 2:
        raise ValueError(f"{name} must be a square matrix, got {table.ndim} dimension(s), shape {table.shape}.")
    if table.shape[1] == 0:
        raise ValueError(
            f"{name} must have a row and a column for every item, got 0 feature(s) (shape={table.shape}) "
            "while a minimum of 1 is required."
        )
    if table.shape[0] != table.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {table.shape}.")
    return table


def as_numbers(table: Any, name: str, labels: Sequence[str] | None) -> Matrix:
    """Return a table as floats, float64 unless it is float32, and as canonical CSR if it is sparse."""
    kind = table.dtype.kind
    if kind not in ("biuf" if sparse.issparse(table) else "biufOUS"):
        raise TypeError(f"{name} must hold numbers, got dtype {table.dtype}.")
    dtype = np.dtype(np.float32 if table.dtype.newbyteorder("=") == np.float32 else np.float64)
    if sparse.issparse(table):
        return _canonical_csr(table).astype(dtype, copy=False)
    if table.dtype != dtype:
        require(table.size * dtype.itemsize, f"A copy of {name} in {dtype}", COPY_WAYS_OUT)
    if kind in "biuf":
        return table.astype(dtype, copy=False)
    return as_floats(table, lambda place, cell: _cell_error(place, cell, name, labels))


def clean_labels(labels: Iterable[object] | None, n_items: int) -> tuple[str, ...] | None:
    """Return one distinct str an item, or None."""
    if labels is None:
        return None
    is_sequence = isinstance(labels, Iterable) and not isinstance(labels, (str, bytes, set, frozenset))
    if not is_sequence or getattr(labels, "ndim", 1) != 1:
        raise TypeError(f"labels must be a sequence with one name an item, got {labels!r}.")
    given = list(labels)
    nested = [label for label in given if getattr(label, "ndim", 0)]
    if nested:
        raise TypeError(f"labels must hold one name an item, got a {type(nested[0]).__name__} for one.")
    unnamed = [place for place, label in enumerate(given) if _is_no_name(label)]
    if unnamed:
        raise ValueError(f"labels must name every item, got none in place {unnamed[0]}.")
    names = tuple(str(label) for label in given)
    for place, name in enumerate(names):
        _refuse_unwritable(name, place)
    if len(names) != n_items:
        raise ValueError(f"labels must have one name for each of the {n_items} items, got {len(names)}.")
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"labels must be distinct, got {shortlist(repeated)} more than once.")
    return names


def _refuse_unwritable(name: str, place: int) -> None:
    """Refuse a label that could not be written to a file, or not be read again, after all the work."""
    bad = UNWRITABLE.search(name)
    if bad is None:
        return
    if "\udc80" <= bad[0] <= "\udcff":  # what Python makes of such bytes in file names
        why, way_out = "bytes that are not UTF-8", "os.fsencode(label).decode('latin-1')"
    elif bad[0] >= "\ud800":
        why, way_out = "half a character", "label.encode('utf-8', 'replace').decode()"
    else:
        why, way_out = "a control character", f"label.replace({bad[0]!r}, ' ')"
    raise ValueError(
        f"labels must be text that can be written to files, got {why} in {name!a} in place {place}: change it, as "
        f"in {way_out}."
    )


def _is_no_name(label: object) -> bool:
    different = label != label
    # pandas' NA is neither equal to itself nor different.
    return label is None or not isinstance(different, bool | np.bool_) or bool(different)


def clean_factors(factors: Any, *, signed: bool = False) -> np.ndarray:
    """Return factors F with S = F F^T as a finite and, unless signed, non-negative array of floats, so that S is."""
    if not isinstance(signed, bool | np.bool_):
        raise TypeError(f"signed must be True or False, got {signed!r}.")
    table = as_array(factors, "factors")
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"factors must have a row for every item and a column for every factor, got shape {table.shape}."
        )
    if table.dtype.kind not in "biuf":
        raise TypeError(f"factors must hold numbers, got dtype {table.dtype}.")
    table = np.ascontiguousarray(table, dtype=np.float32 if table.dtype == np.float32 else np.float64)
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise ValueError(f"factors must be finite, got NaN or infinity in row {row}.")
    if not signed and table.min() < 0:
        raise ValueError(
            f"factors must be non-negative, so that the similarities are, got {np.count_nonzero(table < 0)} negative "
            f"values, the smallest {table.min():g}."
        )
    return table


def clean_absent(absent: object, values: Any) -> str | float | None:
    """Return what an unstored pair means, which sparse values must say and dense values cannot."""
    if not sparse.issparse(values):
        if absent is not None:
            raise ValueError(
                f"absent must be None for dense values, which store every pair (NaN is a missing one), got {absent!r}."
            )
        return None
    if absent is None:
        raise ValueError(
            "absent must say what the pairs that sparse values do not store mean, got None: pass "
            f"Similarity(..., absent=) or as_similarity(..., absent=) {ABSENT_OPTIONS}."
        )
    if isinstance(absent, str) and absent in ("missing", "zero"):
        return absent
    if isinstance(absent, Real) and not isinstance(absent, bool):
        weight = float(absent)
        if 0 < weight < 1:
            return weight
        if weight in (0, 1):
            word = "zero" if weight else "missing"
            raise ValueError(f'absent must be strictly between 0 and 1 as a number, got {absent!r}: say "{word}".')
    raise ValueError(f"absent must be {ABSENT_OPTIONS}, got {absent!r}.")


def check_finite(values: Matrix, labels: Sequence[str] | None) -> None:
    """Refuse infinite similarities."""
    infinite = _first_entry(values, np.isinf)
    if infinite is not None:
        raise ValueError(
            f"values must be finite, but contains infinity: {_entry_in_words(infinite, labels)} (NaN is a "
            "missing pair)."
        )


def check_non_negative(values: Matrix) -> None:
    """Refuse negative similarities."""
    smallest = _smallest(values)
    if smallest < 0:
        n_pairs = _count_pairs(values, lambda here, mirrored: (here < 0) | (mirrored < 0), diagonal=True)
        raise ValueError(
            f"Negative values in data passed to Similarity: values must be non-negative, got {n_pairs:,} negative "
            f'{plural("pair", n_pairs)}, the smallest {smallest:.6g}. For correlations r, pass negative="clip" to '
            'as_similarity to set them to 0, or negative="shift" to rescale all pairs as (1 + r) / 2; or go back to '
            "the features and use an RBF kernel, which is never negative."
        )


def lift_negatives(values: Matrix, negative: str, absent: str | float | None = None) -> tuple[Matrix, dict[str, Any]]:
    """Return symmetric values without negative ones, in memory of their own, and what was done as plain values.

    "clip" sets negative values to 0 and warns how many they were; "shift" is (1 + r) / 2 for all values.
    """
    n_negative = _count_pairs(values, lambda here, _: here < 0)
    share = n_negative / max(_count_pairs(values, lambda here, _: ~np.isnan(here)), 1)
    smallest = _smallest(values)
    info = {"negative": negative, "n_pairs_negative": n_negative, "share_negative": share, "smallest": smallest}
    if not sparse.issparse(values):
        require(values.nbytes, "A copy of values without negative ones", COPY_WAYS_OUT)
    if negative == "shift":
        if sparse.issparse(values) and absent != "missing":
            raise ValueError(
                'negative must be None or "clip" where the pairs that are not stored are zeros, got "shift", which '
                "would make them 0.5: pass a dense matrix."
            )
        _refuse_no_correlations(values, smallest)
        return _changed(values, lambda entries: np.clip(0.5 + 0.5 * entries, 0, 1)), info
    n_diagonal = int(np.count_nonzero(values.diagonal() < 0))
    if n_negative or n_diagonal:
        own = f" and {n_diagonal} on the diagonal" if n_diagonal else ""
        warn(
            f"Set {n_negative:,} negative {'similarity' if n_negative == 1 else 'similarities'} ({share:.2%} of the "
            f'observed pairs, the smallest {smallest:.3g}){own} to 0 (negative="clip").'
        )
    return _changed(values, lambda entries: np.maximum(entries, 0)), info


def check_ends(low: Any, high: Any) -> None:
    """Refuse ends of a rating scale that are no numbers."""
    for name, end in (("low", low), ("high", high)):
        is_number = isinstance(end, Real) and not isinstance(end, bool) and np.isfinite(as_float(end))
        if end is not None and not is_number:
            raise ValueError(f"{name} must be a finite number or None, got {end!r}.")


def find_scale(smallest: float, largest: float, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the ends of a rating scale; an end that is not given is found in the ratings, with a warning."""
    found = [f"low = {smallest:g}"] if low is None else []
    found += [f"high = {largest:g}"] if high is None else []
    low, high = float(smallest if low is None else low), float(largest if high is None else high)
    given = " (found in the ratings)" if found else ""
    if low >= high:
        raise ValueError(f"low must be less than high, got low = {low:g} and high = {high:g}{given}.")
    if not np.isfinite(high - low):
        raise ValueError(f"high - low must be finite, got low = {low:g} and high = {high:g}{given}.")
    if found:
        warn(
            f"The scale of the ratings was not given: took {' and '.join(found)} from the ratings found; pass low= and "
            "high= if the scale is wider."
        )
    return low, high


def rescale(
    values: Matrix, absent: object, labels: Sequence[str] | None, low: float | None, high: float | None
) -> tuple[Matrix, float, float]:
    """Return ratings between low and high as similarities between 0 and 1, and both ends of the scale."""
    check_ends(low, high)
    ends = value_range(values, diagonal=True)
    if ends is None:
        raise ValueError("values must hold at least one observed entry, got none: everything is missing.")
    low, high = find_scale(*ends, low, high)
    if low != 0 and sparse.issparse(values) and absent != "missing":
        raise ValueError(
            f'low must be 0 unless absent="missing", got {low:g}: pairs that are not stored count as 0, which is off '
            "the scale."
        )
    outside = _first_entry(values, lambda entries: (entries < low) | (entries > high))
    if outside is not None:
        n_outside = sum(int(np.count_nonzero((chunk < low) | (chunk > high))) for chunk in _chunks(values))
        on_diagonal = ": set the diagonal to NaN if nobody rated it" if outside[0] == outside[1] else ""
        raise ValueError(
            f"values must lie between low = {low:g} and high = {high:g}, got {_entry_in_words(outside, labels)} "
            f"({n_outside} outside in all){on_diagonal}."
        )
    if not sparse.issparse(values):
        return (values - low) / (high - low), low, high
    scaled = values.copy()
    scaled.data = (scaled.data - low) / (high - low)
    return scaled, low, high


def value_range(values: Matrix, *, diagonal: bool = False) -> tuple[float, float] | None:
    """Return the smallest and the largest value observed, None without any; `diagonal` counts the diagonal too."""
    smallest, largest = np.inf, -np.inf
    if sparse.issparse(values):
        stored = values.tocoo()
        entries = [stored.data if diagonal else stored.data[stored.coords[0] != stored.coords[1]]]
    else:
        entries = _chunks(values)
    for number, chunk in enumerate(entries):
        if not diagonal and not sparse.issparse(values):
            chunk = chunk.astype(np.float64)
            place = np.arange(len(chunk))
            chunk[place, place + number * BLOCK_ROWS] = np.nan
        smallest = min(smallest, float(np.fmin.reduce(chunk, axis=None, initial=np.inf)))
        largest = max(largest, float(np.fmax.reduce(chunk, axis=None, initial=-np.inf)))
    return (smallest, largest) if smallest <= largest else None


def check_same_storage(weights: Any, values: Any) -> None:
    """Refuse weights that are not stored as values are, or not of their shape."""
    if sparse.issparse(weights) != sparse.issparse(values):
        stored = "sparse" if sparse.issparse(values) else "dense"
        raise ValueError(f"weights must be {stored} as values is, got {type(weights).__name__}.")
    if weights.shape != values.shape:
        raise ValueError(f"weights must have the shape of values, {values.shape}, got {weights.shape}.")


def check_weights(weights: Matrix, labels: Sequence[str] | None) -> None:
    """Refuse infinite, missing and negative weights."""
    bad = _first_entry(weights, lambda entries: ~np.isfinite(entries))
    if bad is not None:
        raise ValueError(f"weights must be finite, got {_entry_in_words(bad, labels)} (0 leaves a pair out).")
    negative = _first_entry(weights, lambda entries: entries < 0)
    if negative is not None:
        raise ValueError(f"weights must be non-negative, got {_entry_in_words(negative, labels)}.")


def count_observed(values: Matrix, weights: Matrix | None, absent: str | float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return how many partners each item is observed with, and whether its own diagonal entry is observed."""
    if sparse.issparse(values):
        return _count_observed_stored(values, weights, absent)
    n_items = values.shape[0]
    n_partners, on_diagonal = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=bool)
    for start in range(0, n_items, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        observed = _is_observed(values[rows], None if weights is None else weights[rows])
        on_diagonal[rows] = observed.diagonal(offset=start)
        n_partners[rows] = np.count_nonzero(observed, axis=1) - on_diagonal[rows]
    return n_partners, on_diagonal


def check_observed(n_partners: np.ndarray, on_diagonal: np.ndarray, labels: Sequence[str] | None) -> None:
    """Refuse items without any observed entry; warn of those observed on the diagonal only."""
    alone = n_partners == 0
    if not (~alone | on_diagonal).any():
        raise ValueError("values must hold at least one observed entry, got none: everything is missing.")
    unobserved = np.flatnonzero(alone & ~on_diagonal)
    if unobserved.size:
        them = "it" if unobserved.size == 1 else "them"
        raise ValueError(
            f"values must hold an observed similarity of every item, got none for {unobserved.size} "
            f"{plural('item', unobserved.size)}: {_named(unobserved, labels)}; remove {them}."
        )
    only_diagonal = np.flatnonzero(alone)
    if only_diagonal.size and n_partners.size > 1:
        warn(
            f"Observed on the diagonal of values only: {_named(only_diagonal, labels)} ({only_diagonal.size} "
            f"{plural('item', only_diagonal.size)}); nothing relates them to the others: consider leaving "
            "them out."
        )


class Signs(NamedTuple):
    """What speaks for dissimilarities where no item has a positive similarity to itself.

    `transitivity` is positive where large values are transitive, as similarities are, and negative where small ones
    are, as distances are; see `transitivity`.
    """

    has_zero_diagonal: bool = False
    name: str | None = None
    transitivity: float = 0.0

    def __bool__(self) -> bool:
        return self.has_zero_diagonal or self.name is not None or self.transitivity < -CLEARLY_TRANSITIVE

    @property
    def are_clear(self) -> bool:
        """Whether values are dissimilarities without doubt: by two signs, or by a name that nothing contradicts."""
        if self.name is not None:
            return self.transitivity <= CLEARLY_TRANSITIVE
        return self.has_zero_diagonal and self.transitivity < -CLEARLY_TRANSITIVE

    def __str__(self) -> str:
        said = ["its diagonal is zero and its largest values lie off it"] if self.has_zero_diagonal else []
        said += [] if self.name is None else [f"the name of the {self.name} says so"]
        if abs(self.transitivity) <= CLEARLY_TRANSITIVE:
            return " and ".join(said)
        size, kind = ("small", "distances") if self.transitivity < 0 else ("large", "similarities")
        joint = ", but " if self.transitivity > 0 else ", and " if len(said) > 1 else " and "
        return joint.join(
            [
                *([", ".join(said)] if said else []),
                f"pairs (i, k) have {size} values where (i, j) and (j, k) do, as in {kind} "
                f"(z = {self.transitivity:.1f})",
            ]
        )


def signs_of_dissimilarity(values: Matrix, weights: Matrix | None, info: Mapping[str, Any]) -> Signs:
    """Return what speaks for dissimilarities: the diagonal, names in `info`, and the transitivity of the values."""
    diagonal = values.diagonal()[_on_diagonal(values, weights)]
    # Distances that were computed have a diagonal of rounding errors.
    is_zero = diagonal.size > 0 and any((1e-8 * chunk > diagonal.max()).any() for chunk in _chunks(values))
    if diagonal.size and not is_zero:
        return Signs()
    names = {kind: str(info[kind]) for kind in ("column", "variable", "file") if info.get(kind) is not None}
    name = next((f"{kind} {name!r}" for kind, name in names.items() if _names_distances(name)), None)
    return Signs(bool(is_zero), name, 0.0 if sparse.issparse(values) else transitivity(values, weights))


def is_undecided(values: Matrix, weights: Matrix | None, info: Mapping[str, Any]) -> bool:
    """Say whether neither a diagonal, nor a name, nor the values show that these are similarities or the opposite."""
    if sparse.issparse(values) or _on_diagonal(values, weights).any():
        return False
    names = [str(info[kind]) for kind in ("column", "variable", "file") if info.get(kind) is not None]
    is_told = any(pattern.search(name) for name in names for pattern in (DISTANCE_WORDS, SIMILARITY_WORDS))
    return not is_told and abs(transitivity(values, weights)) <= CLEARLY_TRANSITIVE


def _names_distances(name: str) -> bool:
    return DISTANCE_WORDS.search(name) is not None and SIMILARITY_WORDS.search(name) is None


def warn_of_dissimilarity(values: Matrix, weights: Matrix | None, info: Mapping[str, Any]) -> None:
    """Warn where values seem to be dissimilarities."""
    signs = signs_of_dissimilarity(values, weights, info)
    if signs:
        is_graph = signs.has_zero_diagonal and not signs.are_clear
        graph = ", or set the diagonal to NaN if, as in a graph, it means nothing" if is_graph else ""
        warn(f"values looks like a dissimilarity matrix: {signs}; use from_dissimilarity for distances{graph}.")


def transitivity(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return, in standard errors, how far large values off the diagonal (rather than small ones) are transitive.

    With e the values less the effects of their items, the sum of e_ij e_jk e_ik over triples is positive where large
    values imply large ones, negative where small values imply small ones; random signs of e give it the variance
    sum e_ij^2 e_jk^2 e_ik^2. Effects that add up need the values themselves, skewed values their ranks: the smaller of
    the two is returned, and 0 where they disagree. Of many items a sample is taken.
    """
    chosen = np.unique(np.linspace(0, len(values) - 1, min(len(values), N_TRANSITIVE)).astype(int))
    block = np.ix_(chosen, chosen)
    known = _is_observed(values[block], None if weights is None else weights[block])
    np.fill_diagonal(known, False)
    observed = values[block][known].astype(np.float64)
    if not observed.size or not observed.min() < observed.max():
        return 0.0
    _, place, n_tied = np.unique(observed, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(n_tied) - 0.5 * n_tied)[place]
    plain, ranked = (_transitivity_of(numbers, known) for numbers in (observed / observed.max(), ranks))
    return float(np.sign(plain) * min(abs(plain), abs(ranked))) if plain * ranked > 0 else 0.0


def _transitivity_of(numbers: np.ndarray, known: np.ndarray) -> float:
    n_partners = np.maximum(known.sum(axis=1), 1)
    rest = np.zeros(known.shape)
    rest[known] = numbers - numbers.mean()
    spread = np.abs(rest).max()
    for _ in range(10):
        effects = rest.sum(axis=1) / n_partners
        rest -= np.where(known, 0.5 * (effects[:, None] + effects), 0.0)
    squares = rest**2
    variance = float((squares * (squares @ squares)).sum()) / 6
    # What is left where items explain everything is rounding.
    is_rounding = np.abs(rest).max() <= 1e-9 * spread
    return 0.0 if is_rounding or variance == 0 else float((rest * (rest @ rest)).sum()) / 6 / np.sqrt(variance)


def as_array(x: Any, name: str) -> np.ndarray:
    from simdims.similarity import Similarity  # lies to the right

    # np.asarray of a Similarity is its values, which here would be taken for something else, without its labels.
    if any(isinstance(part, Similarity) for part in (x if isinstance(x, (list, tuple)) else (x,))):
        raise TypeError(f"{name} must be a NumPy array or a list of lists, got a Similarity: pass its values.")
    if isinstance(x, np.ma.MaskedArray):
        fillable = x.astype(np.float64) if x.dtype.kind in "biu" else x
        return np.ma.filled(fillable, np.nan)
    if isinstance(x, (list, tuple)):
        try:
            return np.asarray(x)
        except ValueError as error:
            raise ValueError(f"{name} must have rows of one length, got lists of different lengths.") from error
    if not hasattr(x, "__array__") or hasattr(x, "columns"):
        raise TypeError(
            f"{name} must be a NumPy array, a list of lists or a scipy sparse matrix (as_similarity takes a pandas "
            f"DataFrame, a networkx graph, rsatoolbox RDMs and a Similarity as well), got {type(x).__name__}."
        )
    return np.asarray(x)


def _canonical_csr(table: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(table)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # sorting is done in place, and these may be the caller's arrays
        matrix.sum_duplicates()
    return matrix


def _cell_error(place: tuple[int, ...], cell: Any, name: str, labels: Sequence[str] | None) -> Exception:
    where = f"row {name_of(place[0], labels)}, column {name_of(place[1], labels)}"
    if isinstance(cell, str):
        return ValueError(f"{name} must hold numbers, got the text {str(cell)!r} in {where}: {advice(cell)}.")
    return TypeError(
        f"{name} must hold numbers, got {cell!r} in {where}: the argument must be a number, or a string that spells a "
        "number."
    )


def _chunks(matrix: Matrix) -> list[np.ndarray]:
    """All entries: the stored ones of a sparse matrix, blocks of rows of a dense one."""
    if sparse.issparse(matrix):
        return [matrix.data]
    return [matrix[start : start + BLOCK_ROWS] for start in range(0, matrix.shape[0], BLOCK_ROWS)]


def _first_entry(matrix: Matrix, is_bad: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int, float] | None:
    """The first entry that is bad, as row, column and value."""
    for number, chunk in enumerate(_chunks(matrix)):
        bad = is_bad(chunk)
        if not bad.any():
            continue
        place = np.unravel_index(np.argmax(bad), chunk.shape)
        if sparse.issparse(matrix):
            row = int(np.searchsorted(matrix.indptr, place[0], side="right")) - 1
            return row, int(matrix.indices[place[0]]), float(chunk[place])
        return number * BLOCK_ROWS + int(place[0]), int(place[1]), float(chunk[place])
    return None


def _smallest(matrix: Matrix) -> float:
    """The smallest entry, 0 where none is negative."""
    return min(float(np.fmin.reduce(chunk, axis=None, initial=0.0)) for chunk in _chunks(matrix))


def _count_pairs(
    matrix: Matrix, is_counted: Callable[[np.ndarray, np.ndarray], np.ndarray], *, diagonal: bool = False
) -> int:
    """How many pairs of two different items, or of an item with itself too, have two sides that are counted."""
    return sum(
        int(np.count_nonzero(is_counted(tile.here, tile.mirrored) & (tile.rows < tile.columns + diagonal)))
        for tile in facing(matrix)
    )


def _changed(matrix: Matrix, change: Callable[[np.ndarray], np.ndarray]) -> Matrix:
    """A matrix of the same storage with all entries changed."""
    if not sparse.issparse(matrix):
        return change(matrix)
    return sparse.csr_array((change(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def _refuse_no_correlations(values: Matrix, smallest: float) -> None:
    largest = max(float(np.fmax.reduce(chunk, axis=None, initial=0.0)) for chunk in _chunks(values))
    extreme = smallest if -smallest > largest else largest
    if abs(extreme) > 1 + ROUNDING[values.dtype]:
        raise ValueError(
            f'values must lie between -1 and 1 for negative="shift", which is (1 + r) / 2, got {extreme:.6g}: divide '
            'them by their largest magnitude first, or pass negative="clip".'
        )


def _on_diagonal(values: Matrix, weights: Matrix | None) -> np.ndarray:
    """Which items have an observed diagonal entry."""
    if sparse.issparse(values):
        return _count_observed_stored(values, weights, "missing")[1]
    return _is_observed(values.diagonal(), None if weights is None else weights.diagonal())


def _is_observed(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    known = ~np.isnan(values)
    return known if weights is None else known & (weights > 0)


def _count_observed_stored(
    values: sparse.csr_array, weights: sparse.csr_array | None, absent: str | float | None
) -> tuple[np.ndarray, np.ndarray]:
    n_items = values.shape[0]
    rows = np.repeat(np.arange(n_items), np.diff(values.indptr))
    is_diagonal = rows == values.indices
    observed = _is_observed(values.data, None if weights is None else weights.data)
    on_diagonal = np.zeros(n_items, dtype=bool)
    on_diagonal[rows[is_diagonal & observed]] = True
    if absent == "missing":
        return np.bincount(rows[~is_diagonal & observed], minlength=n_items), on_diagonal
    n_left_out = np.bincount(rows[~is_diagonal & ~observed], minlength=n_items)
    return n_items - 1 - n_left_out, on_diagonal


def _entry_in_words(entry: tuple[int, int, float], labels: Sequence[str] | None) -> str:
    row, column, value = entry
    return f"{value:.6g} at ({name_of(row, labels)}, {name_of(column, labels)})"


def _named(items: np.ndarray, labels: Sequence[str] | None) -> str:
    return shortlist([name_of(item, labels) for item in items])
