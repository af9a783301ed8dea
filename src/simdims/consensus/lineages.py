"""lineage: how dimensions split, persist and appear as their number grows."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._parallel import seed_of, settle_seed
from simdims._parameters import ParameterError, ParameterTypeError, is_whole, plural, require_between, require_count
from simdims._progress import Callback, reporting
from simdims.consensus.runs import default_estimator, fit_consensus
from simdims.consensus.systems import joint_run_estimator
from simdims.joint import JointSRF
from simdims.metrics._embedding import Names, as_embedding, below_one
from simdims.metrics.structure import standard_columns
from simdims.selection.result import RankSelection
from simdims.similarity import Similarity, as_similarity, refuse_other_names
from simdims.similarity.ownership import frozen
from simdims.srf import SRF
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    import pandas as pd

#: Dimensions whose correlations with all those of the previous rank are lower have no parent.
RELATED = 0.3

#: Runs per number of dimensions fitted here.
_N_RUNS = 10


class Node(NamedTuple):
    """One dimension of one fit: its rank, its number and its parent's number, from 1 (0: none), and its branch."""

    rank: int
    dimension: int
    parent: int
    correlation: float
    branch: int
    sameness: float
    share: float


@dataclass(frozen=True, eq=False, repr=False)
class Lineage:
    """The result of `lineage`: a tree over numbers of dimensions.

    Attributes
    ----------
    table : DataFrame
        One row per dimension of each fit: rank (the number of dimensions of the fit), dimension (from 1), parent (the
        dimension of the next smaller fit that it correlates with most; 0 for none), correlation (with the parent; NaN
        for none), branch (from 1), sameness (correlation with the first dimension of its branch), share (of the
        fit's squared loadings).
    branches : DataFrame
        One row per branch, the same dimension at successive ranks: branch, first_rank, last_rank, n_ranks, origin (the
        branch that it split from; 0 for none), fate ("last rank": it is in the largest fit; "split": two or more
        dimensions took its place; "changed": one did; "lost": none), sameness (the lowest of its dimensions), share (in
        the largest fit that has it) and stable.
    embeddings : tuple of ndarray
        The fits, by rank.
    ranks : tuple of int
    threshold : float
    labels : tuple of str or None

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import lineage
    >>> tree = lineage([np.kron(np.eye(2), np.ones((8, 1))), np.kron(np.eye(4), np.ones((4, 1)))])
    >>> tree.branches[["branch", "first_rank", "origin", "fate"]].to_numpy().tolist()[0]
    [1, 2, 0, 'split']
    """

    table: pd.DataFrame
    branches: pd.DataFrame
    embeddings: tuple[NDArray[np.float64], ...]
    ranks: tuple[int, ...]
    threshold: float
    labels: Names = None

    def ancestors(self, rank: int, dimension: int) -> list[tuple[int, int]]:
        """Return the dimensions from which one originates, as (rank, dimension), from the nearest to the first.

        Parameters
        ----------
        rank : int
            The number of dimensions of the fit.
        dimension : int
            The dimension, from 1.

        Returns
        -------
        list of (int, int)
        """
        self._column(rank, dimension)
        parents = self.table.set_index(["rank", "dimension"])["parent"]
        found, place = [], self.ranks.index(rank)
        while (parent := int(parents[self.ranks[place], dimension])) > 0:
            place, dimension = place - 1, parent
            found.append((self.ranks[place], dimension))
        return found

    def top_items(self, rank: int, dimension: int, n: int = 3) -> list[str]:
        """The items with the largest loadings on a dimension: labels, or rows counted from 0."""
        column = self._column(rank, dimension)
        require_count("n", n, at_least=0)
        top = [int(i) for i in np.argsort(-column, kind="stable")[:n] if column[i] > 0]
        return [str(i) if self.labels is None else self.labels[i] for i in top]

    def _column(self, rank: int, dimension: int) -> NDArray[np.float64]:
        """The loadings on a dimension."""
        if rank not in self.ranks:
            raise ParameterError("rank", f"must be one of {', '.join(map(str, self.ranks))}", f"{rank!r}")
        require_count("dimension", dimension, at_most=rank)
        return self.embeddings[self.ranks.index(rank)][:, dimension - 1]

    def summary(self) -> str:
        """Return the stable branches and the splits in words."""
        first, last = self.ranks[0], self.ranks[-1]
        stable = self.branches[self.branches["stable"]].sort_values("first_rank", kind="stable")
        lines = [
            f"{last} dimensions at the end of {len(self.ranks)} fits with {first} to {last}: {len(stable)} stable "
            f"(in the largest fit and in a third of all fits or more, correlation at least {self.threshold:g})."
        ]
        for branch, began in zip(stable["branch"], stable["first_rank"], strict=True):
            lines.append(f"  from {began} on: {self._named(last, branch)}")
        splits = self.branches[self.branches["fate"] == "split"].sort_values("last_rank", kind="stable")
        for origin, ended in zip(splits["branch"], splits["last_rank"], strict=True):
            lines.append(f"  split after {ended}: {self._named(ended, origin)}")
            later = self.ranks[self.ranks.index(ended) + 1]
            parts = self.branches[(self.branches["origin"] == origin) & (self.branches["first_rank"] == later)]
            lines += [f"    into {self._named(later, branch)}" for branch in parts["branch"]]
        return "\n".join(lines)

    def places(self) -> NDArray[np.float64]:
        """Vertical position of each row of `table`, from 0 at the top, such that no two lines of the tree cross."""
        children: dict[tuple[int, int], list[tuple[int, int]]] = {}
        roots = []
        nodes = [
            (self.ranks.index(rank), dimension)
            for rank, dimension in zip(self.table["rank"].tolist(), self.table["dimension"].tolist(), strict=True)
        ]
        for node, parent in zip(nodes, self.table["parent"].tolist(), strict=True):
            if parent > 0:
                children.setdefault((node[0] - 1, parent), []).append(node)
            else:
                roots.append(node)
        at: dict[tuple[int, int], float] = {}
        ends = itertools.count()

        def place(node: tuple[int, int]) -> float:
            below = [place(child) for child in children.get(node, [])]
            at[node] = float(np.mean(below)) if below else float(next(ends))
            return at[node]

        for root in roots:
            place(root)
        return np.array([at[node] for node in nodes])

    def _named(self, rank: int, branch: int) -> str:
        rows = self.table[(self.table["rank"] == rank) & (self.table["branch"] == branch)]
        dimension = int(rows["dimension"].iloc[0])
        items = "" if self.labels is None else f" ({', '.join(self.top_items(rank, dimension))})"
        return f"dimension {dimension} of {rank}{items}"

    def __repr__(self) -> str:
        n_stable, n = int(self.branches["stable"].sum()), len(self.branches)
        return f"Lineage({self.ranks[0]} to {self.ranks[-1]} dimensions, {n} branches, {n_stable} stable)"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_lineage

        return of_lineage(self)


def lineage(
    fits: Any,
    S: Any = None,
    *,
    ranks: Iterable[int] | None = None,
    threshold: float = 0.9,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> Lineage:
    """Follow dimensions through fits with increasing numbers of them: which persist, which split, which are new.

    Each dimension of a fit is linked to its parent: the dimension of the next smaller fit with which it correlates most
    over items, if that is at least 0.3. A dimension that correlates with the first one of its parent's branch by at
    least `threshold` is the same dimension and continues the branch (of several such, the one that correlates most).
    Other dimensions start branches of their own. A branch is stable if it is in the largest fit and in at least a
    third of all fits (and in 2 or more).

    Parameters
    ----------
    fits : mapping, sequence, Discovery or RankSelection
        Embeddings of the same items with different numbers of dimensions (arrays, DataFrames, fitted SRF, Consensus),
        as a sequence or as the values of a mapping. From a Discovery or a RankSelection, each number of dimensions is
        fitted to the same similarities from 10 random starts with its penalties, and the most central run is taken.
    S : Similarity or anything `as_similarity` takes, optional
        The similarities, for a RankSelection that was loaded or unpickled and so does not hold them. Must be None for
        embeddings and for a Discovery.
    ranks : iterable of int, optional
        For a Discovery or a RankSelection: the numbers of dimensions to fit. By default all that were tried, up to
        twice the selected one.
    threshold : float, default=0.9
        Correlation from which a dimension is the same as an earlier one, between 0.3 and 1.
    random_state : int, RandomState or None, default=None
        Seed of the fits.
    n_jobs : int, optional
        Number of processes for the fits; results do not depend on it.
    progress : bool or callable, optional
        Whether to show a progress bar; see `fit_consensus`.

    Returns
    -------
    Lineage
        The tree as a table, and its branches.

    See Also
    --------
    simdims.plots.lineage : the tree as a figure.

    Notes
    -----
    Numbers of dimensions may have gaps. Continuing a branch depends on its first dimension, not on the previous one, so
    that small changes at each step cannot add up to a different dimension under the same name.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import lineage
    >>> halves = np.kron(np.eye(2), np.ones((8, 1)))
    >>> quarters = np.kron(np.eye(4), np.ones((4, 1)))[:, [0, 2, 1, 3]]
    >>> tree = lineage([halves, quarters])
    >>> tree.table[["rank", "dimension", "parent"]].tail(4).to_numpy().tolist()
    [[4, 1, 1], [4, 2, 2], [4, 3, 1], [4, 4, 2]]
    >>> tree.ancestors(4, 3)
    [(2, 1)]
    """
    require_between("threshold", threshold, RELATED, 1)
    selection = fits if isinstance(fits, RankSelection) else getattr(fits, "selection", None)
    if isinstance(fits, RankSelection) or hasattr(fits, "consensus"):
        embeddings, labels = _fitted(fits, selection, S, ranks, random_state, n_jobs, progress)
    else:
        for name, value in (("S", S), ("ranks", ranks), ("random_state", random_state), ("n_jobs", n_jobs)):
            if value is not None:
                raise ParameterError(name, "must be None where {fits} are embeddings", type(value).__name__)
        embeddings, labels = _given(fits)
    nodes = _nodes(embeddings, float(threshold))
    table, branches = _tables(nodes, [W.shape[1] for W in embeddings])
    fitted = tuple(frozen(W.copy()) for W in embeddings)
    return Lineage(table, branches, fitted, tuple(W.shape[1] for W in fitted), float(threshold), labels)


def _given(fits: Any) -> tuple[list[NDArray[np.float64]], Names]:
    """The embeddings of fits, by number of dimensions, and the labels of the items."""
    is_list = isinstance(fits, Iterable) and not isinstance(fits, str | bytes) and not hasattr(fits, "to_numpy")
    if not (is_list or isinstance(fits, Mapping)) or getattr(fits, "ndim", 3) < 3:
        rule = "must be a list or dictionary of embeddings, a Discovery or a RankSelection"
        raise ParameterTypeError("fits", rule, type(fits).__name__)
    found: dict[int, NDArray[np.float64]] = {}
    labels: Names = None
    for number, fit in enumerate(fits.values() if isinstance(fits, Mapping) else fits):
        W, names = as_embedding(fit, "fits")
        n_items = len(next(iter(found.values()), W))
        if len(W) != n_items:
            rule = "must be embeddings of the same items"
            raise ParameterError("fits", rule, f"{n_items} rows in the first and {len(W)} in number {number + 1}")
        if W.shape[1] in found:
            rule = "must have one embedding for each number of dimensions"
            raise ParameterError("fits", rule, f"two with {W.shape[1]}")
        if names is not None and labels is not None:
            refuse_other_names("fits", labels, f"number {number + 1} of them", names)
        labels = labels if names is None else names
        found[W.shape[1]] = W
    if len(found) < 2:
        raise ParameterError("fits", "must hold at least 2 embeddings", f"{len(found)}")
    if n_items < 3:
        raise ParameterError("fits", "must have at least 3 items to correlate dimensions", f"{n_items}")
    return [found[rank] for rank in sorted(found)], labels


def _fitted(
    source: Any,
    selection: RankSelection | None,
    S: Any,
    ranks: Iterable[int] | None,
    random_state: Any,
    n_jobs: int | None,
    progress: Any,
) -> tuple[list[NDArray[np.float64]], Names]:
    """The most central run for each number of dimensions; for the number of a Discovery, its own run."""
    own = getattr(source, "consensus", None)
    if own is not None and S is not None:
        raise ParameterError("S", "must be None where {fits} is a Discovery, which holds it", type(S).__name__)
    held = source.similarity if S is None else S
    if held is None:
        rule, remedy = "must be the similarities where {fits} is a loaded RankSelection", "pass lineage(selection, S)"
        raise ParameterError("S", rule, "None", remedy)
    similarity = held if isinstance(held, SimilaritySet) else as_similarity(held, copy=False)
    wanted = _ranks(ranks, selection, similarity.n_items)
    if selection is not None and selection.n_items != similarity.n_items:
        rule = f"must have the {selection.n_items} items of the selection"
        raise ParameterError("S", rule, f"{similarity.n_items}")
    estimator = _run_estimator(similarity, selection if own is None else own, getattr(source, "settings", {}))
    seed = settle_seed(random_state)
    embeddings = []
    with reporting(progress) as reporter, warnings.catch_warnings():
        # No warnings about large numbers of dimensions, which are fitted here on purpose.
        warnings.simplefilter("ignore")
        reporter.begin("lineage", len(wanted))
        for rank in wanted:
            if own is not None and rank == own.n_components:
                W = np.asarray(own.embedding, dtype=np.float64)
            else:
                settings: dict[str, Any] = {"n_runs": _N_RUNS, "n_splits": 1, "estimator": estimator, "n_jobs": n_jobs}
                found = fit_consensus(similarity, rank, random_state=seed_of(seed, rank), progress=False, **settings)
                W = np.asarray(found.embedding, dtype=np.float64)
            embeddings.append(W)
            reporter.step(f"{rank} {plural('dimension', rank)}")
    return embeddings, None if similarity.labels is None else tuple(similarity.labels)


def _run_estimator(similarity: Similarity | SimilaritySet, chosen: Any, settings: Mapping[str, Any]) -> SRF | JointSRF:
    """The settings of runs, with the penalties of a Consensus or a RankSelection, and the `settings` of a Discovery."""
    penalties = {"alpha": chosen.alpha, "l1_ratio": settings.get("l1_ratio", 0.0)}
    if isinstance(similarity, Similarity):
        return default_estimator().set_params(**penalties)
    shrinkage = "auto" if chosen.shrinkage is None else chosen.shrinkage
    return joint_run_estimator(None, 0.0, 0.0).set_params(**penalties, shrinkage=shrinkage)


def _ranks(ranks: Iterable[int] | None, selection: RankSelection | None, n_items: int) -> list[int]:
    if ranks is None:
        tried = () if selection is None else selection.tried
        if selection is None or len(tried) < 2:
            raise ParameterError("ranks", "must be given where the number of dimensions was not selected", "None")
        return sorted(rank for rank in tried if rank <= max(2 * selection.rank, sorted(tried)[1]))
    if isinstance(ranks, str | bytes) or not isinstance(ranks, Iterable):
        raise ParameterTypeError("ranks", "must be several numbers of dimensions", repr(ranks))
    wanted = list(ranks)
    for rank in wanted:
        if not is_whole(rank) or not 1 <= rank <= n_items:
            raise ParameterError("ranks", f"must be whole numbers between 1 and {n_items}", repr(rank))
    if len(set(wanted)) < 2:
        raise ParameterError("ranks", "must hold at least 2 different numbers", repr(wanted))
    return sorted({int(rank) for rank in wanted})


def _nodes(embeddings: list[NDArray[np.float64]], threshold: float) -> list[list[Node]]:
    """The dimensions of each fit, linked to those of the fit before."""
    levels: list[list[Node]] = []
    first: dict[int, NDArray[np.float64]] = {}  # the first dimension of each branch
    before = np.empty((len(embeddings[0]), 0))
    for W in embeddings:
        rank, columns = W.shape[1], standard_columns(W)
        squares = below_one(W) ** 2
        shares = np.sum(squares, axis=0) / (np.sum(squares) or 1.0)
        correlations = np.vstack([before.T @ columns, np.full(rank, -1.0)])  # the last row stands for "no parent"
        parents = np.where(correlations.max(axis=0) >= RELATED, correlations.argmax(axis=0), -1)
        sameness = np.array(
            [first[levels[-1][p].branch] @ columns[:, j] if p >= 0 else -1.0 for j, p in enumerate(parents)]
        )
        level = []
        for j, p in enumerate(parents):
            siblings = sameness[parents == p]
            is_same = p >= 0 and sameness[j] >= threshold and sameness[j] == siblings.max()
            branch = levels[-1][p].branch if is_same else len(first) + 1
            if not is_same:
                first[branch] = columns[:, j]
            correlation = float(correlations[p, j]) if p >= 0 else np.nan
            like = float(sameness[j]) if is_same else 1.0
            level.append(Node(rank, j + 1, int(p) + 1, min(correlation, 1.0), branch, min(like, 1.0), float(shares[j])))
        levels.append(level)
        before = columns
    return levels


def _tables(levels: list[list[Node]], ranks: list[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The dimensions and the branches as tables."""
    import pandas as pd

    table = pd.DataFrame([node for level in levels for node in level], columns=Node._fields)
    branch_of = table.set_index(["rank", "dimension"])["branch"].to_dict()
    rows = []
    for branch, own in table.groupby("branch", sort=True):
        start, end = own.iloc[0], own.iloc[-1]
        earlier = ranks[max(ranks.index(start["rank"]) - 1, 0)]
        origin = branch_of[earlier, start["parent"]] if start["parent"] > 0 else 0
        rows.append(
            {
                "branch": branch,
                "first_rank": int(start["rank"]),
                "last_rank": int(end["rank"]),
                "n_ranks": len(own),
                "origin": int(origin),
                "fate": _fate(table, ranks, end),
                "sameness": float(own["sameness"].min()),
                "share": float(end["share"]),
            }
        )
    branches = pd.DataFrame(rows)
    lasts = branches["last_rank"] == ranks[-1]
    return table, branches.assign(stable=lasts & (branches["n_ranks"] >= max(2, len(ranks) / 3)))


def _fate(table: pd.DataFrame, ranks: list[int], end: Any) -> str:
    if end["rank"] == ranks[-1]:
        return "last rank"
    later = ranks[ranks.index(end["rank"]) + 1]
    n_children = int(((table["rank"] == later) & (table["parent"] == end["dimension"])).sum())
    return "lost" if n_children == 0 else "changed" if n_children == 1 else "split"
