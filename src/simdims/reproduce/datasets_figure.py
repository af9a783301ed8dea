"""The figure of `datasets`: published and found numbers of dimensions, and the errors by which they were chosen."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from simdims.plots import _style
from simdims.reproduce.recipes import TABLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simdims.reproduce.datasets import Found


def draw(found: list[Found]) -> Figure:
    """Draw Fig. 4a (numbers of dimensions) and the cross-validation curves of what was run."""
    from matplotlib import pyplot

    figure, (ranks, curves) = pyplot.subplots(
        1, 2, figsize=(7.0, 3.0), dpi=200, layout="constrained", width_ratios=(1.15, 1)
    )
    _draw_ranks(ranks, found)
    _draw_curves(curves, found)
    return figure


def _draw_ranks(ax: Axes, found: list[Found]) -> None:
    """One line a row of the paper's table; data that stand in for it beside it."""
    rows = list(TABLE.values())
    places = {row.title: place for place, row in enumerate(rows)}
    ax.scatter(
        [row.rank for row in rows],
        range(len(rows)),
        s=34,
        facecolors="white",
        edgecolors=_style.QUIET,
        linewidths=0.9,
        zorder=3,
        label="published",
    )
    labels = {False: "here", True: "here, other data"}
    beside: Counter[str] = Counter()
    for one in found:
        if one.recipe is None:
            continue
        other = one.recipe.other_data
        colour, marker = (_style.ACCENT, "D") if other else (_style.MAIN, "o")
        title = one.recipe.published.title
        beside[title] += other
        place = places[title] + (0.28 * beside[title] if other else 0.0)
        style: dict[str, Any] = {"color": colour, "linewidth": 1.0, "solid_capstyle": "butt", "zorder": 2}
        ax.plot([min(one.flat_stretch), max(one.flat_stretch)], [place, place], **style)
        ax.scatter(one.rank, place, s=13, color=colour, marker=marker, zorder=4, label=labels.pop(other, None))
        if other:
            right = max(one.rank, *one.flat_stretch)
            ax.text(1.15 * right, place, one.name, fontsize=0.9 * _style.tiny(), va="center", color=colour)
    _style.tidy(ax, "Number of dimensions")
    ax.set_xscale("log")
    ax.set_xlim(0.8, 900)
    ax.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    ax.minorticks_off()
    ax.set_yticks(range(len(rows)), [row.title for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.grid(axis="y", color="#E8E8E8", linewidth=0.5, zorder=0)
    ax.set_axisbelow(True)
    _style.key(ax, loc="upper right")


def _draw_curves(ax: Axes, found: list[Found]) -> None:
    """Error of single fits relative to the smallest, as in the paper's Supplement; rings mark published ranks."""
    for place, one in enumerate(found):
        colour = _style.COLOURS[place % len(_style.COLOURS)]
        relative = one.curve["error"] / one.curve["error"].min()
        spread = one.curve["standard_error"] / one.curve["error"].min()
        ax.fill_between(one.curve["rank"], relative - spread, relative + spread, color=colour, alpha=0.15, linewidth=0)
        ax.plot(one.curve["rank"], relative, color=colour, linewidth=0.9, marker="o", markersize=1.6, label=one.name)
        if one.published is not None and one.published.rank in set(one.curve["rank"]):
            at = one.curve["rank"].tolist().index(one.published.rank)
            ax.scatter(
                one.published.rank,
                relative.iloc[at],
                s=26,
                facecolors="none",
                edgecolors=colour,
                linewidths=0.9,
                zorder=4,
            )
    _style.tidy(ax, "Number of dimensions", "Held-out error, relative to the smallest")
    ax.set_xscale("log")
    ax.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    ax.minorticks_off()
    ax.set_ylim(0.95, 2.5)
    if found:
        _style.key(ax, loc="upper right")
