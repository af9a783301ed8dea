"""The figure of `rank`: found against true numbers of dimensions, a column a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simdims.plots import _style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = ("select_rank", "paper's protocol", "parallel 95%", "scree test")
_ROWS = (("alpha", "α {:g}"), ("snr", "SNR {:g}"), ("observed", "{:.0%} of pairs"))


def draw(runs: pd.DataFrame) -> Figure:
    """Draw Fig. 2d: one dot a data set, coloured by sparsity, by noise and by the share of pairs observed."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(7.2, 4.8), dpi=200, layout="constrained")
    axes = figure.subplots(len(_ROWS), len(_SHOWN), sharex=True, sharey=True)
    most = 1.08 * max(runs[list(_SHOWN)].max().max(), runs["rank"].max())
    for row, (factor, words) in zip(axes, _ROWS, strict=True):
        for ax, method in zip(row, _SHOWN, strict=True):
            _draw_panel(ax, runs, method, factor, words, most)
        _style.key(row[-1], loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.1)
        row[0].set_ylabel("Rank found", fontsize=_style.small())
    for ax, method in zip(axes[0], _SHOWN, strict=True):
        error = (runs[method] - runs["rank"]).abs().mean()
        ax.set_title(f"{method}\nMAE {error:.2f}", fontsize=_style.small(), pad=3)
    for ax in axes[-1]:
        ax.set_xlabel("True rank", fontsize=_style.small())
    return figure


def _draw_panel(ax: Axes, runs: pd.DataFrame, method: str, factor: str, words: str, most: float) -> None:
    """Dots beside each other where they would lie on one another: each level has its own place around the true rank."""
    levels = sorted(runs[factor].unique())
    width = 0.5 * np.diff(sorted({0, *runs["rank"]})).min()
    ax.plot([0, most], [0, most], color=_style.OTHER, linewidth=0.8, zorder=1)
    rng = np.random.default_rng(0)
    for place, (level, colour) in enumerate(zip(levels, _style.COLOURS, strict=False)):
        part = runs[runs[factor] == level]
        shift = width * ((place + rng.uniform(0.2, 0.8, len(part))) / len(levels) - 0.5)
        ax.scatter(
            part["rank"] + shift,
            part[method],
            s=7,
            color=colour,
            alpha=0.75,
            linewidths=0,
            label=words.format(level),
            zorder=2,
        )
    ax.set_xlim(0, 1.15 * runs["rank"].max())
    ax.set_xticks(sorted(runs["rank"].unique()))
    ax.set_ylim(0, most)
    _style.tidy(ax)
