"""Fig. 4 and Supplementary Table: number of dimensions, fit and reliability of the empirical data sets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from simdims import simulate
from simdims.consensus import Consensus, fit_consensus, spearman_brown
from simdims.discovery import Discovery, discover
from simdims.metrics import explained_variance
from simdims.reproduce.dataset_files import densest_items, standard_columns
from simdims.reproduce.frame import Outcome, Settings, need_file
from simdims.reproduce.recipes import RECIPES, Published, Recipe
from simdims.similarity import Similarity, as_similarity

if TYPE_CHECKING:
    import pandas as pd

#: The data set that needs no file, and the dimensions behind it.
SIMULATED, SIMULATED_RANK = "simulated", 6

_SMOKE_RANKS = (1, 2, 4, 6)

#: Share of pairs from which on data are as good as complete: the published 99.9% of THINGS are.
_NEARLY_ALL = 0.99

#: Data sets with more items are left out at the smallest size, unless they are asked for.
_SMOKE_ITEMS = 200


@dataclass(frozen=True, eq=False)
class Found:
    """What came out for one data set.

    Parameters
    ----------
    name : str
    recipe : Recipe or None
        None of the simulated one.
    n_items, coverage : int, float
        Items, and percentage of their pairs that were observed.
    is_whole : bool
        Whether these are all items of the file.
    sampling : float
        p*.
    rank : int
        What `select_rank` chose.
    curve : DataFrame
        One row a rank: rank, error (mean over folds and repeats, each predicted by its one fit) and standard_error.
    at_edge : bool
        Whether more dimensions than were tried may be better.
    r2, auc, reliability : float or None
        At `rank`.
    r2_published_rank, reliability_published_rank, fisher_published_rank : float or None
        At the published rank, where nearly all pairs are observed; the last one is `fisher_reliability`.
    """

    name: str
    recipe: Recipe | None
    n_items: int
    coverage: float
    is_whole: bool
    sampling: float
    rank: int
    curve: pd.DataFrame
    at_edge: bool
    r2: float | None
    auc: float | None
    reliability: float
    r2_published_rank: float | None
    reliability_published_rank: float | None
    fisher_published_rank: float | None

    @property
    def published(self) -> Published | None:
        """The row of the paper's table."""
        return None if self.recipe is None else self.recipe.published

    @property
    def is_comparable(self) -> bool:
        """Whether all of the data that the paper had were run."""
        return self.recipe is not None and not self.recipe.other_data and self.is_whole

    @property
    def paper_rank(self) -> int:
        """The rank with the smallest error of single fits, which is the paper's rule."""
        return int(self.curve["rank"].to_numpy()[self.curve["error"].to_numpy().argmin()])

    @property
    def flat_stretch(self) -> list[int]:
        """Ranks whose error is within one standard error of the smallest."""
        errors = self.curve["error"].to_numpy()
        best = int(errors.argmin())
        most = errors[best] + self.curve["standard_error"].to_numpy()[best]
        return [int(rank) for rank in self.curve["rank"].to_numpy()[errors <= most]]


def run(settings: Settings) -> Outcome:
    """Run every data set whose file is there, or those that ``settings.only`` names."""
    from simdims.reproduce.datasets_claims import claims, remarks, tables
    from simdims.reproduce.datasets_figure import draw

    found, missing, left_out = [], {}, []
    for name in chosen(settings):
        if name == SIMULATED:
            found.append(_analyse(settings, name, _simulated(settings), None))
            continue
        recipe = RECIPES[name]
        try:
            path = need_file(settings, *recipe.files, what=recipe.what, where=recipe.where)
        except FileNotFoundError:
            if settings.only is not None:
                raise
            missing[name] = recipe
            continue
        if settings.size == "smoke" and settings.only is None and recipe.published.n_items > _SMOKE_ITEMS:
            left_out.append(name)
            continue
        found.append(_analyse(settings, name, recipe.build(path), recipe))
    return Outcome(
        claims(settings, found),
        tables(found, missing),
        remarks(settings, found, missing, left_out),
        partial(draw, found),
    )


def chosen(settings: Settings) -> list[str]:
    """All data sets, or those that are asked for."""
    known = [SIMULATED, *RECIPES]
    if settings.only is None:
        return known
    unknown = [name for name in settings.only if name not in known]
    if unknown or not settings.only:
        raise ValueError(f"only must name data sets among {', '.join(known)}, got {', '.join(unknown) or 'none'}.")
    return [name for name in known if name in settings.only]


def _simulated(settings: Settings) -> Similarity:
    """Six dimensions behind some items, with noise."""
    W = simulate.dirichlet(settings.pick(60, 120, 120), SIMULATED_RANK, alpha=0.3, random_state=settings.seed)
    return as_similarity(simulate.add_noise(W @ W.T, 0.7, random_state=settings.seed))


def _analyse(settings: Settings, name: str, whole: Similarity, recipe: Recipe | None) -> Found:
    """Select the number of dimensions, fit, and measure."""
    S = whole if name == SIMULATED else densest_items(whole, settings.pick(40, 400, whole.n_items))
    n_runs = recipe.n_runs if recipe else None
    with warnings.catch_warnings():
        # That the best is the largest rank tried is in the remarks; small parts of data may leave items alone.
        warnings.simplefilter("ignore", UserWarning)
        discovery = discover(
            S,
            ranks=_ranks(settings, recipe, S.n_items),
            n_repeats=settings.pick(1, 2, None),
            n_runs=settings.pick(3, min(n_runs or 10, 10), n_runs),
            checkpoint=settings.folder(f"datasets-{name}-{settings.size}-{settings.seed}"),
            random_state=settings.seed,
            n_jobs=settings.n_jobs,
            progress=settings.progress,
        )
        published = _at_published_rank(settings, name, discovery, recipe)
    selection = discovery.selection
    assert selection is not None  # several ranks were given
    errors = selection.scores.groupby("rank")["error_alone"].agg(["mean", "sem"]).reset_index()
    return Found(
        name=name,
        recipe=recipe,
        n_items=S.n_items,
        coverage=100 * _coverage(S),
        is_whole=S.n_items == whole.n_items,
        sampling=selection.sampling,
        rank=selection.rank,
        curve=errors.set_axis(["rank", "error", "standard_error"], axis=1),
        at_edge=selection.at_edge,
        r2=None if sparse.issparse(S.values) else discovery.metrics.get("explained_variance"),
        auc=discovery.metrics.get("link_auc"),
        reliability=discovery.metrics["mean_reliability"],
        r2_published_rank=explained_variance(S, published.embedding) if published else None,
        reliability_published_rank=published.mean_reliability if published else None,
        fisher_published_rank=fisher_reliability(published.embeddings, settings.seed) if published else None,
    )


def _ranks(settings: Settings, recipe: Recipe | None, n_items: int) -> list[int]:
    """Ranks to try: all, or every second one and the published one; no more than a third of the items."""
    if recipe is None:
        return list(settings.pick(_SMOKE_RANKS, range(1, 13), range(1, 16)))
    published = () if recipe.other_data else (recipe.published.rank,)
    tried = settings.pick({*_SMOKE_RANKS}, {*recipe.ranks[::2], *published}, {*recipe.ranks, *published})
    most = max(n_items // 3, 2)
    return sorted({min(rank, most) for rank in tried})


def _coverage(S: Similarity) -> float:
    """Share of the pairs of two different items that a dense matrix knows, or a sparse one stores."""
    n_pairs = S.n_items * (S.n_items - 1)
    if sparse.issparse(S.values):
        rows = np.repeat(np.arange(S.n_items), np.diff(S.values.indptr))
        return float(np.count_nonzero(rows != S.values.indices)) / n_pairs
    known = np.isfinite(S.values)
    return float(np.count_nonzero(known) - np.count_nonzero(known.diagonal())) / n_pairs


def _at_published_rank(settings: Settings, name: str, discovery: Discovery, recipe: Recipe | None) -> Consensus | None:
    """Fits with as many dimensions as the paper has; of incomplete or cut data they would mean something else."""
    S = discovery.similarity
    if recipe is None or recipe.published.r2 is None or settings.size == "smoke":
        return None
    if sparse.issparse(S.values) or _coverage(S) < _NEARLY_ALL or S.n_items != recipe.published.n_items:
        return None
    if discovery.n_components == recipe.published.rank:
        return discovery.consensus
    return fit_consensus(
        S,
        recipe.published.rank,
        n_runs=discovery.consensus.n_runs,
        checkpoint=settings.folder(f"datasets-{name}-{settings.size}-{settings.seed}-published"),
        random_state=settings.seed,
        n_jobs=settings.n_jobs,
        progress=settings.progress,
    )


def fisher_reliability(embeddings: NDArray[np.floating], seed: int, n_splits: int = 10) -> float:
    """Mean split-half reliability whose correlations between runs are averaged as Fisher's z, not as they are.

    Dimensions of two runs are matched on half of the items and correlated on the other half, as in
    `split_half_reliability`. Correlations are cut at 0.999999, where z would be infinite.
    """
    n_runs, n_items, n_components = embeddings.shape
    rng = np.random.RandomState(seed)
    total = np.zeros(n_components)
    pairs = list(combinations(range(n_runs), 2))
    for _ in range(n_splits):
        order = rng.permutation(n_items)
        matching, judging = (standard_columns(embeddings[:, part]) for part in np.array_split(order, 2))
        for one, other in pairs:
            partner = linear_sum_assignment(matching[one].T @ matching[other], maximize=True)[1]
            r = np.einsum("ik,ik->k", judging[one], judging[other][:, partner])
            total += np.arctanh(np.clip(r, -0.999999, 0.999999))
    return float(spearman_brown(np.tanh(total / (n_splits * len(pairs)))).mean())
