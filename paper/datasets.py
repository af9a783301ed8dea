"""Fig. 4 and Supplementary Table: number of dimensions, fit and reliability of the empirical data sets."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from paper.figures import ACCENT, COLOURS, MAIN, QUIET, TINY, legend, log_ticks, new_figure, tidy
from paper.harness import Claim, Outcome, Settings
from paper.recipes import RECIPES, TABLE, Published, Recipe, densest_items, standard_columns
from simdims import Consensus, Discovery, Similarity, as_similarity, discover, fit_consensus, simulate
from simdims.consensus import spearman_brown
from simdims.metrics import explained_variance

#: The data set that needs no file, and its number of dimensions.
SIMULATED, SIMULATED_RANK = "simulated", 6

#: Largest difference from the published value that counts as equal.
SAMPLING_MARGIN, R2_MARGIN, AUC_MARGIN, RELIABILITY_MARGIN = 0.05, 0.05, 0.03, 0.02
#: Published: a lower bound on the mean reliability of every data set, and the median R2 of dense ones.
LEAST_RELIABILITY, MEDIAN_R2 = 0.82, 0.88
#: Percentage of pairs above which a data set is dense, and the share above which it counts as complete.
DENSE, NEARLY_ALL = 90.0, 0.99

_SMOKE_RANKS = (1, 2, 4, 6)
#: Larger data sets are skipped in a smoke run, unless requested.
_SMOKE_ITEMS = 200


@dataclass(frozen=True, eq=False)
class Found:
    """The result for one data set; `recipe` is None for the simulated one.

    `curve` has the columns rank, error (mean of single fits over folds and repeats) and standard_error. Values with
    `published_rank` are None unless nearly all pairs are observed.
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
    r2_published_rank: float | None = None
    reliability_published_rank: float | None = None
    fisher_published_rank: float | None = None

    @property
    def published(self) -> Published | None:
        """The row of the paper's table."""
        return None if self.recipe is None else self.recipe.published

    @property
    def is_comparable(self) -> bool:
        """Whether all of the paper's data were used."""
        return self.recipe is not None and not self.recipe.other_data and self.is_whole

    @property
    def paper_rank(self) -> int:
        """The rank with the smallest error of single fits, which is the paper's rule."""
        return int(self.curve["rank"].to_numpy()[self.curve["error"].to_numpy().argmin()])

    @property
    def flat_ranks(self) -> list[int]:
        """Ranks whose error is within one standard error of the smallest."""
        errors = self.curve["error"].to_numpy()
        best = int(errors.argmin())
        most = errors[best] + self.curve["standard_error"].to_numpy()[best]
        return [int(rank) for rank in self.curve["rank"].to_numpy()[errors <= most]]

    @property
    def note(self) -> str:
        """How the data differ from the paper's."""
        if self.recipe is None:
            return ""
        notes = [f"other data than {self.recipe.published.title}"] if self.recipe.other_data else []
        notes += [] if self.is_whole else [f"{self.n_items} of its items"]
        return f" ({', '.join(notes)})" if notes else ""


def run(settings: Settings) -> Outcome:
    """Run every data set whose file exists, or those that ``settings.only`` names."""
    found, missing, left_out = [], {}, []
    for name in chosen(settings):
        if name == SIMULATED:
            found.append(_analyse(settings, name, _simulated(settings), None))
            continue
        recipe = RECIPES[name]
        try:
            path = settings.find_file(*recipe.files, what=recipe.what, where=recipe.where)
        except FileNotFoundError:
            if settings.only is not None:
                raise
            missing[name] = recipe
            continue
        if settings.is_smoke and settings.only is None and recipe.published.n_items > _SMOKE_ITEMS:
            left_out.append(name)
            continue
        found.append(_analyse(settings, name, recipe.build(path), recipe))
    return Outcome(
        claims(settings, found), tables(found, missing), remarks(found, missing, left_out), partial(draw, found)
    )


def chosen(settings: Settings) -> list[str]:
    """All data sets, or those requested."""
    known = [SIMULATED, *RECIPES]
    if settings.only is None:
        return known
    unknown = [name for name in settings.only if name not in known]
    if unknown or not settings.only:
        raise ValueError(f"only must name data sets among {', '.join(known)}, got {', '.join(unknown) or 'none'}.")
    return [name for name in known if name in settings.only]


def _simulated(settings: Settings) -> Similarity:
    W = simulate.dirichlet(settings.pick(60, 120, 120), SIMULATED_RANK, alpha=0.3, random_state=settings.seed)
    return as_similarity(simulate.add_noise(W @ W.T, 0.7, random_state=settings.seed))


def _analyse(settings: Settings, name: str, whole: Similarity, recipe: Recipe | None) -> Found:
    """Select the number of dimensions, fit, and measure."""
    S = whole if name == SIMULATED else densest_items(whole, settings.pick(40, 400, whole.n_items))
    n_runs = recipe.n_runs if recipe else None
    # Remarks report if the largest rank is the best; subsets of a data set may have items without pairs.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        discovery = discover(
            S,
            alpha=0.0,
            ranks=_ranks(settings, recipe, S.n_items),
            n_repeats=settings.pick(1, 2, None),
            n_runs=settings.pick(3, min(n_runs or 10, 10), n_runs),
            **settings.options(f"datasets-{name}-{settings.size}-{settings.seed}"),
        )
        published = _at_published_rank(settings, name, discovery, recipe)
    selection = discovery.selection
    assert selection is not None  # several ranks were given
    errors = selection.scores.groupby("rank")["error_alone"].agg(["mean", "sem"]).reset_index()
    return Found(
        name,
        recipe,
        S.n_items,
        100 * _coverage(S),
        S.n_items == whole.n_items,
        selection.sampling,
        selection.rank,
        errors.set_axis(["rank", "error", "standard_error"], axis=1),
        selection.at_edge,
        None if sparse.issparse(S.values) else discovery.metrics.get("explained_variance"),
        discovery.metrics.get("link_auc"),
        discovery.metrics["mean_reliability"],
        explained_variance(S, published.embedding) if published else None,
        published.mean_reliability if published else None,
        fisher_reliability(published.embeddings, settings.seed) if published else None,
    )


def _ranks(settings: Settings, recipe: Recipe | None, n_items: int) -> list[int]:
    """Ranks to try: all, or every second one plus the published one, up to a third of the items."""
    if recipe is None:
        return list(settings.pick(_SMOKE_RANKS, range(1, 13), range(1, 16)))
    published = () if recipe.other_data else (recipe.published.rank,)
    tried = settings.pick({*_SMOKE_RANKS}, {*recipe.ranks[::2], *published}, {*recipe.ranks, *published})
    most = max(n_items // 3, 2)
    return sorted({min(rank, most) for rank in tried})


def _coverage(S: Similarity) -> float:
    """Share of off-diagonal pairs that a dense matrix observes, or a sparse one stores."""
    values: Any = S.values
    if sparse.issparse(values):
        stored = values.tocoo()
        known = np.count_nonzero(stored.row != stored.col)
    else:
        known = np.count_nonzero(np.isfinite(values)) - np.count_nonzero(np.isfinite(values.diagonal()))
    return float(known) / (S.n_items * (S.n_items - 1))


def _at_published_rank(settings: Settings, name: str, discovery: Discovery, recipe: Recipe | None) -> Consensus | None:
    """Fits with the published number of dimensions; None for incomplete data or subsets."""
    S = discovery.mean_similarity
    if recipe is None or recipe.published.r2 is None or settings.is_smoke:
        return None
    if sparse.issparse(S.values) or _coverage(S) < NEARLY_ALL or S.n_items != recipe.published.n_items:
        return None
    if discovery.n_components == recipe.published.rank:
        return discovery.consensus
    return fit_consensus(
        S,
        recipe.published.rank,
        n_runs=discovery.consensus.n_runs,
        **settings.options(f"datasets-{name}-{settings.size}-{settings.seed}-published"),
    )


def fisher_reliability(embeddings: NDArray[np.floating], seed: int, n_splits: int = 10) -> float:
    """Mean split-half reliability, with correlations between runs averaged as Fisher's z.

    Dimensions of two runs are matched on half of the items and correlated on the other half, as in
    `split_half_reliability`. Correlations are limited to 0.999999, because z is infinite at 1.
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


def claims(settings: Settings, found: list[Found]) -> list[Claim]:
    """The paper's statements about each data set, and about all."""
    return [claim for one in found for claim in _claims_of_one(settings, one)] + _claims_of_all(settings, found)


def _claims_of_one(settings: Settings, one: Found) -> list[Claim]:
    """The number of dimensions and, for the paper's data, all other columns of its table."""
    ranks = (
        f"{one.rank} by select_rank, {one.paper_rank} by the smallest error, {_range(one.flat_ranks)} within one "
        "standard error of it"
    )
    row = one.published
    if row is None:
        truth = f"{SIMULATED_RANK} (the truth)"
        agrees = settings.verdict(one.rank == SIMULATED_RANK)
        return [Claim("Simulated: number of dimensions", truth, ranks, agrees, in_paper=False)]

    def verdict(holds: bool) -> bool | None:
        return settings.verdict(holds) if one.is_comparable else None

    is_found = row.rank in {one.rank, *one.flat_ranks}
    made = [Claim(f"{one.name}: number of dimensions{one.note}", str(row.rank), ranks, verdict(is_found))]
    if not one.is_comparable:
        return made
    is_near = abs(one.sampling - row.sampling) <= SAMPLING_MARGIN
    made.append(Claim(f"{one.name}: p*", f"{row.sampling:.2f}", f"{one.sampling:.2f}", verdict(is_near)))
    has_published_rank = one.r2_published_rank is not None
    at = f" at rank {row.rank if has_published_rank else one.rank}"
    if row.r2 is not None:
        r2 = one.r2_published_rank if has_published_rank else one.r2
        is_near = r2 is not None and abs(r2 - row.r2) <= R2_MARGIN
        made.append(Claim(f"{one.name}: R2", f"{row.r2:.2f}", f"{_number(r2)}{at}", verdict(is_near)))
    if row.auc is not None:
        is_near = one.auc is not None and abs(one.auc - row.auc) <= AUC_MARGIN
        made.append(Claim(f"{one.name}: link AUC", f"{row.auc:.2f}", _number(one.auc), verdict(is_near)))
    again = one.reliability_published_rank
    reliability = one.reliability if again is None else again
    above = reliability - row.least_reliability
    is_near = above >= -RELIABILITY_MARGIN if row.is_bound else abs(above) <= RELIABILITY_MARGIN
    fisher = f" ({one.fisher_published_rank:.3f} by Fisher's z)" if one.fisher_published_rank is not None else ""
    ours = f"{reliability:.3f}{at}{fisher}"
    return [*made, Claim(f"{one.name}: reliability", row.reliability, ours, verdict(is_near))]


def _claims_of_all(settings: Settings, found: list[Found]) -> list[Claim]:
    """The paper's statements about all data sets together; undecided unless all were run."""
    real = [one for one in found if one.published is not None]
    if not real:
        return []
    comparable = [one for one in real if one.is_comparable]
    is_complete = {one.name for one in comparable} == {name for name in RECIPES if not RECIPES[name].other_data}
    # Data that differ from the paper's must not decide.
    real = comparable if is_complete and not settings.is_smoke else real

    def verdict(holds: bool) -> bool | None:
        return settings.verdict(holds) if is_complete else None

    least = min(one.reliability for one in real)
    ours = f"at least {least:.3f} in {len(real)} data sets"
    is_above = verdict(least >= LEAST_RELIABILITY)
    made = [Claim("Reliability of every data set", f"above {LEAST_RELIABILITY}", ours, is_above)]
    dense = [one.r2 for one in real if one.r2 is not None and one.coverage > DENSE]
    if dense:
        median = float(np.median(dense))
        is_near = verdict(abs(median - MEDIAN_R2) <= R2_MARGIN)
        ours = f"{median:.2f} of {len(dense)}"
        made.append(Claim("Median R2 of densely sampled data sets", f"{MEDIAN_R2}", ours, is_near))
    return made


def tables(found: list[Found], missing: dict[str, Recipe]) -> dict[str, pd.DataFrame]:
    """Ranks, fits, and data sets that were not run."""

    def published(one: Found, name: str) -> Any:
        return "-" if one.published is None else _or_dash(getattr(one.published, name))

    ranks = [
        {
            "data set": one.name,
            "row of the table": published(one, "title"),
            "other data": "yes" if one.recipe is None or one.recipe.other_data else "",
            "items (published)": published(one, "n_items"),
            "items": one.n_items,
            "coverage % (published)": published(one, "coverage"),
            "coverage %": one.coverage,
            "p* (published)": published(one, "sampling"),
            "p*": one.sampling,
            "rank (published)": published(one, "rank"),
            "rank": one.rank,
            "smallest error": one.paper_rank,
            "within one standard error": _range(one.flat_ranks),
        }
        for one in found
    ]
    fits = [
        {
            "data set": one.name,
            "R2 (published)": published(one, "r2"),
            "R2": _or_dash(one.r2),
            "R2 at the published rank": _or_dash(one.r2_published_rank),
            "AUC (published)": published(one, "auc"),
            "AUC": _or_dash(one.auc),
            "reliability (published)": published(one, "reliability"),
            "reliability": one.reliability,
            "at the published rank": _or_dash(one.reliability_published_rank),
            "by Fisher's z": _or_dash(one.fisher_published_rank),
        }
        for one in found
    ]
    made = {"Number of dimensions": pd.DataFrame(ranks), "Fit and reliability": pd.DataFrame(fits)}
    if missing:
        rows = [{"data set": name, "file": " or ".join(recipe.files)} for name, recipe in missing.items()]
        made["Not run, because no file was found in the data folder"] = pd.DataFrame(rows)
    return made


def remarks(found: list[Found], missing: dict[str, Recipe], left_out: list[str]) -> list[str]:
    """What was run, where it differs, and which files to get."""
    made = [
        "R2, AUC and reliability are those of the rank that select_rank chose, except in columns that name another."
    ]
    for one in found:
        tried = one.curve["rank"].tolist()
        if one.recipe is not None:
            is_gapless = len(tried) == tried[-1] - tried[0] + 1
            listed = _range(tried) if is_gapless else ", ".join(map(str, tried))
            made.append(f"{one.name}{one.note}: {one.recipe.how}; ranks tried: {listed}.")
        if one.at_edge:
            made.append(
                f"{one.name}: the smallest error is at the largest rank tried, {max(tried)}; more may be better."
            )
    made += _on_mur92({one.name: one for one in found})
    if left_out:
        made.append(f"Left out in a smoke run, because they are large: {', '.join(left_out)}.")
    made += [
        f"{name} was not run. It needs {' or '.join(recipe.files)}: {recipe.what}. Get it from {recipe.where}."
        for name, recipe in missing.items()
    ]
    return made


def _on_mur92(found: dict[str, Found]) -> list[str]:
    """Whether the row called Mur-92 looks like judgements, as the paper calls it, or like brain responses."""
    people, brains = found.get("mur92-behaviour"), found.get("human-it-92")
    row = TABLE["mur-92"]
    if people is None or brains is None or people.r2_published_rank is None or brains.r2_published_rank is None:
        return []
    assert row.r2 is not None
    is_brain = abs(brains.rank - row.rank) < abs(people.rank - row.rank)
    is_brain &= abs(brains.r2_published_rank - row.r2) < abs(people.r2_published_rank - row.r2)
    nearer = "the responses of human IT" if is_brain else "the judgements"
    return [
        f"The paper's text calls Mur-92 judgements of people who arranged images. Its row has {row.rank} dimensions "
        f"and an R2 of {row.r2}. The judgements have {people.rank} dimensions, of which {row.rank} explain "
        f"{people.r2_published_rank:.2f}; the responses of human IT to the same images have {brains.rank}, and "
        f"{row.rank} explain {brains.r2_published_rank:.2f}. The row looks more like {nearer}."
    ]


def _or_dash(value: Any) -> Any:
    return "-" if value is None else value


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _range(ranks: list[int]) -> str:
    return str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]} to {ranks[-1]}"


def draw(found: list[Found]) -> Figure:
    """Fig. 4a (numbers of dimensions) and the cross-validation curves of this run."""
    figure = new_figure(7.0, 3.0)
    ranks, curves = figure.subplots(1, 2, width_ratios=(1.15, 1))
    _draw_ranks(ranks, found)
    _draw_curves(curves, found)
    for ax in (ranks, curves):
        log_ticks(ax, [1, 3, 10, 30, 100, 300])
    return figure


def _draw_ranks(ax: Axes, found: list[Found]) -> None:
    """One line per row of the paper's table, with other data just below it."""
    rows = list(TABLE.values())
    places = {row.title: place for place, row in enumerate(rows)}
    ring: dict[str, Any] = {"s": 34, "facecolors": "white", "edgecolors": QUIET, "linewidths": 0.9, "zorder": 3}
    ax.scatter([row.rank for row in rows], range(len(rows)), label="published", **ring)
    labels = {False: "here", True: "here, other data"}
    below: Counter[str] = Counter()
    for one in found:
        if one.recipe is None:
            continue
        is_other, title = one.recipe.other_data, one.recipe.published.title
        colour, marker = (ACCENT, "D") if is_other else (MAIN, "o")
        below[title] += is_other
        place = places[title] + (0.28 * below[title] if is_other else 0.0)
        ends = [min(one.flat_ranks), max(one.flat_ranks)]
        ax.plot(ends, [place, place], color=colour, linewidth=1.0, solid_capstyle="butt", zorder=2)
        ax.scatter(one.rank, place, s=13, color=colour, marker=marker, zorder=4, label=labels.pop(is_other, None))
        if is_other:
            ax.text(1.15 * max(one.rank, *ends), place, one.name, fontsize=0.9 * TINY, va="center", color=colour)
    tidy(ax, "Number of dimensions")
    ax.set_xlim(0.8, 900)
    ax.set_yticks(range(len(rows)), [row.title for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.grid(axis="y", color="#E8E8E8", linewidth=0.5, zorder=0)
    ax.set_axisbelow(True)
    legend(ax, loc="upper right")


def _draw_curves(ax: Axes, found: list[Found]) -> None:
    """Error of single fits relative to the smallest, as in the paper's Supplement; rings mark published ranks."""
    for place, one in enumerate(found):
        colour = COLOURS[place % len(COLOURS)]
        curve = one.curve.set_index("rank") / one.curve["error"].min()
        low, high = curve["error"] - curve["standard_error"], curve["error"] + curve["standard_error"]
        ax.fill_between(curve.index, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(curve.index, curve["error"], color=colour, linewidth=0.9, marker="o", markersize=1.6, label=one.name)
        if one.published is not None and one.published.rank in curve.index:
            at = curve["error"][one.published.rank]
            ax.scatter(one.published.rank, at, s=26, facecolors="none", edgecolors=colour, linewidths=0.9, zorder=4)
    tidy(ax, "Number of dimensions", "Held-out error, relative to the smallest")
    ax.set_ylim(0.95, 2.5)
    if found:
        legend(ax, loc="upper right")
