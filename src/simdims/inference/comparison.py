"""compare_embeddings: which dimensions two embeddings of the same items share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import false_discovery_control

from simdims._parameters import ParameterError, plural, shortlist, warn
from simdims.inference.hypotheses import FEWEST_ITEMS, Table, clean_embedding
from simdims.inference.mantel import CONSTANT
from simdims.inference.permutations import check_settings, permute, pvalues
from simdims.inference.regression import nonnegative_weights
from simdims.metrics.structure import standard_columns
from simdims.similarity import as_similarity
from simdims.similarity.ownership import read_only
from simdims.systems import SimilaritySet, dense_parts


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingComparison:
    """Two embeddings of the same items, dimension by dimension.

    Attributes
    ----------
    dimensions1, dimensions2 : tuple of str
        Names of the dimensions of each embedding.
    pairs : ndarray of int, shape (n_pairs, 2)
        Matched columns of the two embeddings, by descending correlation.
    correlation : ndarray of shape (n_pairs,)
        Correlation of each pair over items.
    pvalue : ndarray of shape (n_pairs,)
        Share of permutations in which the dimension finds a partner at least as good.
    null_distribution : ndarray of shape (n_permutations, n_pairs)
        Correlations of the same dimensions with their partners under permutation.
    alpha : float
        False discovery rate for calling a pair shared.
    explained : DataFrame or None
        If similarities were given, the share of their variance that dimensions explain, one row per system: all (its
        own), shared (its own that have a counterpart) and counterparts (those of the other system).
    embedding1, embedding2 : ndarray of shape (n_items, n_components)
        The embeddings, restricted to the items that were compared.
    labels : tuple of str or None
        Names of these items.
    """

    dimensions1: tuple[str, ...]
    dimensions2: tuple[str, ...]
    pairs: NDArray[np.intp]
    correlation: NDArray[np.float64]
    pvalue: NDArray[np.float64]
    null_distribution: NDArray[np.float64]
    alpha: float
    embedding1: NDArray[np.float64]
    embedding2: NDArray[np.float64]
    labels: tuple[str, ...] | None
    explained: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        for name in ("pairs", "correlation", "pvalue", "null_distribution", "embedding1", "embedding2"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def pvalue_adjusted(self) -> NDArray[np.float64]:
        """The p-values, adjusted over pairs by the Benjamini-Hochberg procedure."""
        return false_discovery_control(self.pvalue, method="bh")

    @property
    def is_shared(self) -> NDArray[np.bool_]:
        """Whether the adjusted p-value of each pair is at most alpha."""
        return self.pvalue_adjusted <= self.alpha

    @property
    def n_shared(self) -> int:
        """How many dimensions the embeddings share."""
        return int(self.is_shared.sum())

    @property
    def only1(self) -> tuple[str, ...]:
        """Dimensions of the first embedding without a counterpart in the second."""
        return self._only(self.dimensions1, 0)

    @property
    def only2(self) -> tuple[str, ...]:
        """Dimensions of the second embedding without a counterpart in the first."""
        return self._only(self.dimensions2, 1)

    def _only(self, names: tuple[str, ...], side: int) -> tuple[str, ...]:
        shared = set(self.pairs[self.is_shared, side].tolist())
        return tuple(name for k, name in enumerate(names) if k not in shared)

    @property
    def table(self) -> pd.DataFrame:
        """One row per matched pair, by descending correlation, with its dimensions, correlation and p-values."""
        dimensions1 = [self.dimensions1[k] for k in self.pairs[:, 0]]
        dimensions2 = [self.dimensions2[k] for k in self.pairs[:, 1]]
        table = pd.DataFrame({"dimension1": dimensions1, "dimension2": dimensions2, "correlation": self.correlation})
        return table.assign(pvalue=self.pvalue, pvalue_adjusted=self.pvalue_adjusted)

    def summary(self) -> str:
        """The comparison as text."""
        n1, n2, n = len(self.dimensions1), len(self.dimensions2), self.n_shared
        tested = f"{len(self.embedding1)} items; {len(self.null_distribution)} permutations"
        shared = f"{n} {plural('dimension', n)} shared by embeddings of {n1} and {n2} dimensions"
        lines = [f"{shared} ({tested}; Benjamini-Hochberg at {self.alpha:g})."]
        for row in self.table[self.is_shared].itertuples(index=False):
            numbers = f"r = {row.correlation:.2f}, p = {row.pvalue:.2g}, adjusted {row.pvalue_adjusted:.2g}"
            lines.append(f"  {row.dimension1} and {row.dimension2}: {numbers}")
        for which, names in (("first", self.only1), ("second", self.only2)):
            if names:
                lines.append(f"Only in the {which}: {shortlist(list(names))}.")
        if self.explained is not None:
            for system, *parts in self.explained.itertuples():
                own, shared, others = (f"{part:.0%}" for part in parts)
                behind = f"the similarities behind the {'first' if system == 'S1' else 'second'} embedding"
                by_others = f"by the shared ones: {shared}; by their counterparts: {others}"
                lines.append(f"Variance of {behind} explained by its own dimensions: {own}; {by_others}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_comparison

        return of_comparison(self)


def compare_embeddings(
    W1: Any,
    W2: Any,
    *,
    S1: Any = None,
    S2: Any = None,
    n_permutations: int = 1000,
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
) -> EmbeddingComparison:
    """Find the dimensions that two embeddings of the same items share, and those unique to one.

    Dimensions are matched one to one (Hungarian algorithm) to maximise the sum of their correlations over items.
    Items are then permuted and dimensions matched again. The p-value of a pair is the share of permutations in which
    the dimension finds a partner at least as good.

    Parameters
    ----------
    W1, W2 : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus, fitted SRF or JointSRF
        The embeddings; the numbers of dimensions may differ. If both name their items, rows are matched by name, and
        items found in only one of them are excluded with a warning.
    S1, S2 : similarities as `as_similarity` takes them, or SimilaritySet, optional
        The similarities behind each embedding, for the items of W1 and W2 in the same order; a set is averaged. With
        them, the result also reports how much of their variance the shared dimensions explain.
    alpha : float, default=0.05
        False discovery rate for calling two dimensions counterparts.
    n_permutations, random_state
        As in `dimension_test`.

    Returns
    -------
    EmbeddingComparison
        `table` has one row per matched pair; `only1` and `only2` name the dimensions without a counterpart.

    Notes
    -----
    The p-value refers to a dimension of the smaller embedding (W1 if both have equally many), because all of its
    dimensions have a partner in every permutation. It is exact if no dimensions are shared. Otherwise it is
    conservative for the remaining dimensions, because the partners of the shared ones are taken.

    The variance explained is that of a regression of the observed off-diagonal similarities on the products w_ik w_jk
    of the dimensions, with an intercept and non-negative weights.

    See Also
    --------
    align : reorder the columns of an embedding to match a reference.

    Examples
    --------
    >>> from simdims import compare_embeddings, simulate
    >>> people = simulate.dirichlet(60, 4, random_state=0)
    >>> brain = people[:, [2, 0]]
    >>> compared = compare_embeddings(people, brain, random_state=0)
    >>> sorted(zip(compared.table["dimension1"], compared.table["dimension2"]))
    [('dimension1', 'dimension2'), ('dimension3', 'dimension1')]
    >>> compared.only1
    ('dimension2', 'dimension4')
    """
    check_settings(n_permutations, "greater", alpha, None)
    one, other = (clean_embedding(W, name)[0] for W, name in ((W1, "W1"), (W2, "W2")))
    rows1, rows2, labels = _common_items(one, other)
    A, B = one.values[rows1], other.values[rows2]
    swapped = A.shape[1] > B.shape[1]
    first, second = (standard_columns(W) for W in ((B, A) if swapped else (A, B)))
    statistics = partial(_matched_correlations, first, second)
    observed, null = permute(statistics, len(A), n_permutations, random_state, None, False)
    partners = linear_sum_assignment(first.T @ second, maximize=True)[1]
    order = np.argsort(-observed, kind="stable")
    pairs = np.stack([order, partners[order]], axis=1)
    compared = EmbeddingComparison(
        dimensions1=one.columns,
        dimensions2=other.columns,
        pairs=pairs[:, ::-1].copy() if swapped else pairs,
        correlation=observed[order],
        pvalue=pvalues(observed, null, "greater")[order],
        null_distribution=null[:, order],
        alpha=alpha,
        embedding1=A,
        embedding2=B,
        labels=labels,
    )
    _warn_of_too_few(compared)
    return compared if S1 is None and S2 is None else _with_explained(compared, (S1, S2), (one, other), (rows1, rows2))


def _warn_of_too_few(compared: EmbeddingComparison) -> None:
    """Warn of pairs that beat all permutations and cannot be called shared, because there are too few permutations."""
    n_pairs, n_drawn = compared.null_distribution.shape[::-1]
    beaten = compared.pvalue * (1 + n_drawn) < 1.5
    n_missed = int((beaten & ~compared.is_shared).sum())
    if n_missed:
        n_needed = -(-n_pairs // compared.alpha)
        above = f"The correlation of {n_missed} of the {n_pairs} matched pairs is above all {n_drawn:,} permutations"
        found = f"{above}, but so few permutations cannot show that at a false discovery rate of {compared.alpha:g}."
        warn(found, f"Use {{n_permutations={n_needed:.0f}}} or more.")


def _common_items(one: Table, other: Table) -> tuple[NDArray[np.intp], NDArray[np.intp], tuple[str, ...] | None]:
    """Row indices of the items in both embeddings, in the order of the first, and their names."""
    if one.rows is None or other.rows is None:
        if len(one.values) != len(other.values):
            rule = f"must have one row for each of the {len(one.values)} items of the first embedding"
            raise ParameterError("W2", rule, f"{len(other.values)}", "name the items of both to match them by name")
        rows = np.arange(len(one.values))
        return rows, rows, one.rows or other.rows
    place = {name: at for at, name in enumerate(other.rows)}
    kept = [at for at, name in enumerate(one.rows) if name in place]
    labels = tuple(one.rows[at] for at in kept)
    if len(kept) < FEWEST_ITEMS:
        others = shortlist([repr(name) for name in other.rows if name not in labels])
        got = f"{len(kept)} in common, and others such as {others}" if others else f"{len(kept)}"
        raise ParameterError("W2", f"must share at least {FEWEST_ITEMS} items with the first embedding", got)
    left1, left2 = len(one.rows) - len(kept), len(other.rows) - len(kept)
    if left1 or left2:
        left_out = f"left out {left1} of the first and {left2} of the second embedding"
        warn(f"Compared the {len(kept)} common items; {left_out}.")
    return np.array(kept, dtype=np.intp), np.array([place[name] for name in labels], dtype=np.intp), labels


def _matched_correlations(
    first: NDArray[np.float64], second: NDArray[np.float64], permutations: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Correlation of each dimension of the first with its partner, for each permutation of the items."""
    found = np.empty((len(permutations), first.shape[1]))
    for place, permutation in enumerate(permutations):
        correlations = first[permutation].T @ second
        rows, columns = linear_sum_assignment(correlations, maximize=True)
        found[place] = correlations[rows, columns]
    return found


def _with_explained(
    compared: EmbeddingComparison, similarities: tuple[Any, Any], tables: tuple[Table, Table], rows: tuple[Any, Any]
) -> EmbeddingComparison:
    """Add the variance of the similarities that the dimensions explain."""
    shared, found = compared.pairs[compared.is_shared], {}
    embeddings = (compared.embedding1, compared.embedding2)
    for side, (S, table, own_rows) in enumerate(zip(similarities, tables, rows, strict=True)):
        if S is None:
            continue
        name = f"S{side + 1}"
        similarity = as_similarity(S.mean() if isinstance(S, SimilaritySet) else S, copy=False)
        if similarity.n_items != len(table.values):
            rule = f"must have the {len(table.values)} items of its embedding"
            raise ParameterError(name, rule, f"{similarity.n_items}")
        if similarity.labels is not None and table.rows is not None and tuple(similarity.labels) != table.rows:
            raise ParameterError(name, "must list its items in the order of its embedding", "another order")
        values, weights = (part[np.ix_(own_rows, own_rows)] for part in dense_parts(similarity))
        own, others = embeddings[side], embeddings[1 - side]
        parts = {"all": own, "shared": own[:, shared[:, side]], "counterparts": others[:, shared[:, 1 - side]]}
        found[name] = {part: variance_explained(name, values, weights, W) for part, W in parts.items()}
    return replace(compared, explained=pd.DataFrame.from_dict(found, orient="index"))


def variance_explained(
    name: str, values: NDArray[np.float64], weights: NDArray[np.float64], W: NDArray[np.float64]
) -> float:
    """R2 of a regression of similarities on the products w_ik w_jk, with non-negative weights and an intercept."""
    n, rank = W.shape
    if not rank:
        return 0.0
    # Sums over pairs of z z^T with z = (1, w_i o w_j, s_ij).
    sums = np.zeros((rank + 2, rank + 2))
    for i in range(n - 1):
        others = slice(i + 1, n)
        z = np.column_stack([np.ones(n - 1 - i), W[others] * W[i], values[i, others]])
        sums += z.T @ (weights[i, others, None] * z)
    if sums[0, 0] == 0:
        raise ParameterError(name, "must have an observed pair of two different items", "none")
    centred = sums[1:, 1:] - np.outer(sums[0, 1:], sums[0, 1:]) / sums[0, 0]
    G, y, spread = centred[:-1, :-1], centred[:-1, -1], centred[-1, -1]
    if spread <= CONSTANT * sums[-1, -1]:
        raise ParameterError(name, "must vary over its observed pairs to have a variance", "equal values")
    a = nonnegative_weights(G, y)
    return float((2 * y @ a - a @ G @ a) / spread)
