"""Signs that values are dissimilarities: a zero diagonal, the name of their file, the order of the values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from simdims._parameters import warn
from simdims.similarity.entries import Matrix, is_observed, largest_entry
from simdims.similarity.validation import on_diagonal

# Number of items for the transitivity test, and its threshold in standard errors.
N_TRANSITIVE = 300
CLEARLY_TRANSITIVE = 5.0
DISTANCE_WORDS = re.compile(r"(?i:rdm|dissim|distance)|(?<![A-Za-z])(?i:dist|dsm)(?![a-z])")
SIMILARITY_WORDS = re.compile(r"(?<!dis)(?<!Dis)(?i:simil)|(?<![A-Za-z])(?i:sim)(?![a-z])")


class Signs(NamedTuple):
    """Signs of dissimilarities, if no item has a positive similarity to itself; see also `transitivity`."""

    has_zero_diagonal: bool = False
    name: str | None = None
    transitivity: float = 0.0

    def __bool__(self) -> bool:
        return self.has_zero_diagonal or self.name is not None or self.transitivity < -CLEARLY_TRANSITIVE

    @property
    def are_clear(self) -> bool:
        """Whether values clearly are dissimilarities: by two signs, or by a name without contradicting signs."""
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
        order = (
            f"pairs (i, k) have {size} values where (i, j) and (j, k) do, as in {kind} (z = {self.transitivity:.1f})"
        )
        return joint.join([", ".join(said), order] if said else [order])


def signs_of_dissimilarity(values: Matrix, weights: Matrix | None, info: Mapping[str, Any]) -> Signs:
    """The signs of dissimilarities in the diagonal, the names in `info` and the transitivity of the values."""
    diagonal = values.diagonal()[on_diagonal(values, weights)]
    # The diagonal of computed distances may hold rounding errors.
    is_zero = diagonal.size > 0 and 1e-8 * largest_entry(values) > diagonal.max()
    if diagonal.size and not is_zero:
        return Signs()
    names = {kind: name for kind, name in _names(info).items() if not SIMILARITY_WORDS.search(name)}
    name = next((f"{kind} {name!r}" for kind, name in names.items() if DISTANCE_WORDS.search(name)), None)
    return Signs(bool(is_zero), name, 0.0 if sparse.issparse(values) else transitivity(values, weights))


def is_undecided(values: Matrix, weights: Matrix | None, info: Mapping[str, Any]) -> bool:
    """Whether neither diagonal, names nor values show if these are similarities or dissimilarities."""
    if sparse.issparse(values) or on_diagonal(values, weights).any():
        return False
    patterns = (DISTANCE_WORDS, SIMILARITY_WORDS)
    is_named = any(pattern.search(name) for name in _names(info).values() for pattern in patterns)
    return not is_named and abs(transitivity(values, weights)) <= CLEARLY_TRANSITIVE


def _names(info: Mapping[str, Any]) -> dict[str, str]:
    return {kind: str(info[kind]) for kind in ("column", "variable", "file") if info.get(kind) is not None}


def warn_of_dissimilarity(values: Matrix, weights: Matrix | None, info: Mapping[str, Any]) -> None:
    """Warn if values seem to be dissimilarities."""
    signs = signs_of_dissimilarity(values, weights, info)
    if signs:
        is_graph = signs.has_zero_diagonal and not signs.are_clear
        graph = ", or set the diagonal to NaN if, as in a graph, it means nothing" if is_graph else ""
        use = f"Use {{from_dissimilarity()}} for distances{graph}."
        warn(f"values looks like a dissimilarity matrix: {signs}.", use)


def transitivity(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """How transitive large off-diagonal values are (small ones, if negative), in standard errors.

    With e the residuals after removing additive item effects, the sum of e_ij e_jk e_ik over triples is positive if
    large values imply large ones, negative if small values imply small ones; random signs of e give it the variance sum
    e_ij^2 e_jk^2 e_ik^2. Additive effects require the values themselves, skewed values their ranks: the smaller of the
    two results is returned, and 0 if they disagree in sign. Large matrices are subsampled.
    """
    chosen = np.unique(np.linspace(0, len(values) - 1, min(len(values), N_TRANSITIVE)).astype(int))
    block = np.ix_(chosen, chosen)
    known = is_observed(values[block], None if weights is None else weights[block])
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
    # If item effects explain everything, only rounding errors remain.
    is_rounding = np.abs(rest).max() <= 1e-9 * spread
    return 0.0 if is_rounding or variance == 0 else float((rest * (rest @ rest)).sum()) / 6 / np.sqrt(variance)
