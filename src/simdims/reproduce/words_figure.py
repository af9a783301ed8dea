"""The figure of `words`: word clouds, ratings of pairs and of words, the weight of absent pairs, and ADMM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simdims.plots import _style, word_cloud
from simdims.reproduce.frame import Cell
from simdims.reproduce.words_data import SMALL_WEIGHT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colour and line of each solver by its start and the weight of absent pairs.
_LINES = {
    ("data", 0.0): (_style.ACCENT, "-"),
    ("product", 0.0): (_style.COLOURS[3], "-"),
    (None, 0.0): (_style.QUIET, "--"),
    (None, SMALL_WEIGHT): (_style.MAIN, "-"),
    (None, 1.0): (_style.SECOND, "-"),
}


#: As many scales as the paper shows.
_MOST_SCALES = 9


def draw(fit: Cell, tables: dict[str, pd.DataFrame], iterations: list[Cell], source: str) -> Figure:
    """Draw Fig. 5b, c, the benchmarks of the Supplement, and what the weight of absent pairs and ADMM's start do."""
    from matplotlib import pyplot

    heights = [1.35, 2.0] + [1.35] * (len(fit["ratings"]) > 0)
    figure = pyplot.figure(figsize=(7.2, sum(heights) + 0.2), dpi=200, layout="constrained")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_clouds(parts[0].subplots(1, len(fit["clouds"]), squeeze=False)[0], fit["clouds"], source)
    n_scatters = len(fit["scatter"])
    axes = parts[1].subplots(1, n_scatters + 2, width_ratios=[1.0] * n_scatters + [1.3, 1.3])
    for ax, name in zip(axes, fit["scatter"], strict=False):
        found = fit["benchmarks"][name]
        _draw_scatter(
            ax, *fit["scatter"][name], title=f"{name}: ρ = {found['correlation']:.2f} (n = {found['n_pairs']})"
        )
        _style.tidy(ax, "human rating", "cosine" if ax is axes[0] else "")
        ax.set_ylim(-0.03, 1.03)
    _draw_weights(axes[-2], next(table for heading, table in tables.items() if "held out" in heading))
    _draw_iterations(axes[-1], iterations)
    if fit["ratings"]:
        shown = fit["ratings"][:_MOST_SCALES]
        panels = np.atleast_1d(parts[2].subplots(1, len(shown)))
        for ax, found in zip(panels, shown, strict=True):
            _draw_scatter(
                ax,
                found["rated"],
                found["predicted"],
                title=f"{_brief(found['scale'])}\nρ = {found['correlation']:.2f}",
            )
            _style.tidy(ax, "rating", "predicted" if ax is panels[0] else "")
            ax.set(xticks=[], yticks=[])
    return figure


def _draw_clouds(axes: Any, clouds: list[dict[str, Any]], source: str) -> None:
    for ax, cloud in zip(axes, clouds, strict=True):
        loadings = np.array(cloud["loadings"])[:, None]
        word_cloud(loadings, n_words=len(loadings), labels=cloud["words"], ax=ax)
        made_up = " (made-up words)" if source == "made up" else ""
        ax.set_title(f"dimension {cloud['dimension']}{made_up}", fontsize=_style.small(), pad=3)


def _draw_scatter(ax: Axes, x: list[float], y: list[float], *, title: str) -> None:
    """Points and the line of least squares."""
    alpha = 0.35 if len(x) > 1000 else 0.6
    ax.plot(x, y, ".", color=_style.MAIN, markersize=2.2, alpha=alpha, markeredgewidth=0, rasterized=True)
    slope, intercept = np.polyfit(x, y, 1)
    ends = np.array([min(x), max(x)])
    ax.plot(ends, intercept + slope * ends, color=_style.QUIET, linewidth=0.8, linestyle="--")
    ax.set_title(title, fontsize=_style.tiny(), pad=3, **_style.PLAIN)


def _draw_weights(ax: Axes, table: pd.DataFrame) -> None:
    weights = table["weight of absent pairs"]
    places = np.arange(len(weights))
    columns = [name for name in table.columns if name not in ("weight of absent pairs", "link AUC")]
    ax.axhline(0.5, color=_style.OTHER, linewidth=0.6, linestyle=":")
    for name, colour in zip(columns, (_style.MAIN, _style.SECOND, _style.COLOURS[4]), strict=False):
        label = name if name == "held-out AUC" else f"{name}, ρ"
        ax.plot(places, table[name], "o-", color=colour, linewidth=1.0, markersize=2.5, label=label)
    ax.set_xticks(places, [{0.0: "0\n(missing)", 1.0: "1\n(zero)"}.get(weight, f"{weight:g}") for weight in weights])
    ax.set_ylim(0, 1)
    _style.tidy(ax, "weight of absent pairs", "one link in ten held out")
    _style.key(ax, loc="lower right")


def _draw_iterations(ax: Axes, cells: list[Cell]) -> None:
    followed = [cell for cell in cells if not cell["all_words"]]
    ax.axhline(0.5, color=_style.OTHER, linewidth=0.6, linestyle=":")
    for cell in followed:
        colour, line = _LINES[cell["start"], cell["weight"]]
        x = [at["iteration"] for at in cell["trace"]]
        y = [at["held_out_auc"] for at in cell["trace"]]
        ax.plot(x, y, line, marker="o", color=colour, linewidth=1.0, markersize=2.0, label=cell["solver"])
    ax.set_xscale("log")
    ax.set_ylim(0, 1)
    _style.tidy(ax, "iteration or sweep", f"held-out AUC, {followed[0]['n_words']:,} words")
    _style.key(ax, loc="lower left", labelspacing=0.12)


def _brief(scale: str) -> str:
    return "AoA" if scale == "age of acquisition" else _style.shown(scale, 16)
