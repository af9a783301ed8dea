"""Fig. 2d: the number of dimensions found by cross-validation, the scree test and parallel analysis."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper.figures import COLOURS, OTHER, SMALL, legend, new_figure, tidy
from paper.harness import Cell, Claim, Outcome, Settings, design, is_positive, run_each, simulate_cell
from simdims import parallel_analysis, scree_test, select_rank

OURS, PAPERS = "select_rank", "paper's protocol"
PARALLEL, MEDIAN, SCREE = "parallel 95%", "parallel median", "scree test"
METHODS = (OURS, PAPERS, PARALLEL, MEDIAN, SCREE)

#: Factors of the design, and how their levels are written in tables and in the figure.
_FACTORS = {
    "alpha": ("alpha {:g}", "α {:g}"),
    "snr": ("SNR {:g}", "SNR {:g}"),
    "observed": ("observed {:.0%}", "{:.0%} of pairs"),
    "rank": ("rank {:g}", ""),
}
_SHOWN = (OURS, PAPERS, PARALLEL, SCREE)


def run(settings: Settings) -> Outcome:
    """Let every method find the rank of data sets that differ in rank, sparsity, noise and observed pairs."""
    n_items = settings.pick(30, 150, 150)
    levels = {
        "rank": settings.pick((3,), (3, 6), (3, 6, 10, 15)),
        "alpha": settings.pick((0.1,), (0.1, 2.0), (0.1, 0.5, 2.0)),
        "snr": settings.pick((0.5, 0.7), (0.3, 0.7), (0.3, 0.5, 0.7, 1.0)),
        "observed": settings.pick((1.0,), (1.0, 0.5), (1.0, 0.5)),
    }
    cells = design(settings, 1, levels, n_items=n_items, cv_repeats=settings.pick(2, 5, 5))
    runs = pd.DataFrame(run_each(settings, "rank", measure, cells))
    tables = {"Mean absolute error of the number of dimensions": errors_by_level(runs)}
    return Outcome(_claims(settings, runs), tables, _remarks(runs, n_items), partial(_draw, runs))


def measure(cell: Cell) -> Cell:
    """The rank that each method finds in one data set."""
    *_, S, seed = simulate_cell(cell)
    with warnings.catch_warnings(action="ignore"):
        selection = select_rank(S, alpha=0.0, n_repeats=cell["cv_repeats"], random_state=seed, n_jobs=1, progress=False)
        return {
            OURS: selection.rank,
            PAPERS: rank_of_single_fits(selection.scores),
            PARALLEL: parallel_analysis(S, random_state=seed),
            MEDIAN: parallel_analysis(S, quantile=0.5, random_state=seed),
            SCREE: scree_test(S),
        }


def rank_of_single_fits(scores: pd.DataFrame) -> int:
    """The rank with the smallest mean error of single fits: the paper's choice."""
    errors = scores.groupby("rank")["error_alone"].mean()
    return int(errors.index[int(errors.to_numpy().argmin())])


def errors_by_level(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute error of every method, over all data sets and by level of each factor."""
    rows = [{"data sets": "all", "n": len(runs), **_mean_errors(runs)}]
    for factor, (words, _) in _FACTORS.items():
        for level, part in runs.groupby(factor):
            rows.append({"data sets": words.format(level), "n": len(part), **_mean_errors(part)})
    return pd.DataFrame(rows)


def _errors(runs: pd.DataFrame, method: str) -> pd.Series:
    return (runs[method] - runs["rank"]).abs()


def _mean_errors(runs: pd.DataFrame) -> dict[str, float]:
    return {method: float(_errors(runs, method).mean()) for method in METHODS}


def _claims(settings: Settings, runs: pd.DataFrame) -> list[Claim]:
    claims = []
    for method in (OURS, PAPERS):
        for other in (SCREE, PARALLEL, MEDIAN):
            gain = _errors(runs, other) - _errors(runs, method)
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            claims.append(
                Claim(
                    f"Mean absolute error, {method} against {other}",
                    "cross-validation identified the true dimensionality more accurately",
                    f"{_errors(runs, method).mean():.2f} against {_errors(runs, other).mean():.2f} (difference "
                    f"{gain.mean():.2f}, standard error {error:.2f})",
                    None if settings.is_smoke else is_positive(gain.mean(), error),
                )
            )
    return claims


def _remarks(runs: pd.DataFrame, n_items: int) -> list[str]:
    remarks = [
        f"{n_items} items, one data set per combination of true rank, alpha, signal-to-noise ratio and share of "
        "observed pairs. The paper does not report the number of items or the ranks."
    ]
    lost = []
    for factor in ("alpha", "snr", "observed"):
        for level, part in runs.groupby(factor):
            errors = _mean_errors(part)
            best = min(errors, key=lambda method: errors[method])
            if errors[best] < errors[OURS]:
                name = _FACTORS[factor][0].format(level)
                lost.append(f"{name} ({best}: {errors[best]:.2f} against {errors[OURS]:.2f})")
    if lost:
        remarks.append("Another method has a smaller error than select_rank at " + ", ".join(lost) + ".")
    return remarks


def _draw(runs: pd.DataFrame) -> Figure:
    """Fig. 2d: found against true rank, one column per method, one dot per data set, coloured by one factor per row."""
    factors = ("alpha", "snr", "observed")
    figure = new_figure(7.2, 4.8)
    axes = figure.subplots(len(factors), len(_SHOWN), sharex=True, sharey=True)
    most = 1.08 * max(runs[list(_SHOWN)].max().max(), runs["rank"].max())
    for row, factor in zip(axes, factors, strict=True):
        for ax, method in zip(row, _SHOWN, strict=True):
            _draw_panel(ax, runs, method, factor, most)
        legend(row[-1], loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.1)
        row[0].set_ylabel("Rank found", fontsize=SMALL)
    for ax, method in zip(axes[0], _SHOWN, strict=True):
        ax.set_title(f"{method}\nMAE {_errors(runs, method).mean():.2f}", fontsize=SMALL, pad=3)
    for ax in axes[-1]:
        ax.set_xlabel("True rank", fontsize=SMALL)
    return figure


def _draw_panel(ax: Axes, runs: pd.DataFrame, method: str, factor: str, most: float) -> None:
    """Levels are offset around the true rank, so that dots do not overlap."""
    levels = sorted(runs[factor].unique())
    width = 0.5 * np.diff(sorted({0, *runs["rank"]})).min()
    ax.plot([0, most], [0, most], color=OTHER, linewidth=0.8, zorder=1)
    rng = np.random.default_rng(0)
    for place, (level, colour) in enumerate(zip(levels, COLOURS, strict=False)):
        part = runs[runs[factor] == level]
        x = part["rank"] + width * ((place + rng.uniform(0.2, 0.8, len(part))) / len(levels) - 0.5)
        label = _FACTORS[factor][1].format(level)
        ax.scatter(x, part[method], s=7, color=colour, alpha=0.75, linewidths=0, label=label, zorder=2)
    tidy(ax)
    ax.set(xlim=(0, 1.15 * runs["rank"].max()), xticks=sorted(runs["rank"].unique()), ylim=(0, most))
