"""The figure of `missing`: prediction and recovery by observed similarities per parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simdims.plots import _style
from simdims.reproduce.missing import MEASURES, METHODS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOWEST = -0.6
_MARKS = ("o", "s", "^", "D")
_COLOURS = (_style.MAIN, _style.COLOURS[5], _style.ACCENT, _style.QUIET)


def draw(runs: pd.DataFrame) -> Figure:
    """Draw Fig. 2c, a row for each signal-to-noise ratio; grey where parameters outnumber observations."""
    from matplotlib import pyplot

    snrs = sorted(runs["snr"].unique(), reverse=True)
    figure = pyplot.figure(figsize=(7.2, 0.5 + 1.9 * len(snrs)), dpi=200, layout="constrained")
    axes = figure.subplots(len(snrs), len(MEASURES), sharex=True, squeeze=False)
    for row, snr in zip(axes, snrs, strict=True):
        for ax, (key, words) in zip(row, MEASURES.items(), strict=True):
            _draw_panel(ax, runs[runs["snr"] == snr], key)
            _style.tidy(ax, ylabel=words)
        row[0].set_title("no noise" if snr == 1 else f"SNR {snr:g}", fontsize=_style.small(), loc="left", pad=3)
    for ax in axes[-1]:
        ax.set_xlabel("Observed similarities per parameter", fontsize=_style.small(), labelpad=2)
    _style.key(axes[0, 1], loc="upper left")
    return figure


def _draw_panel(ax: Axes, runs: pd.DataFrame, key: str) -> None:
    lowest = _LOWEST if key == "explained_variance" else -0.05
    densities = np.array(sorted(runs["density"].unique()))
    ax.axvspan(0.8 * densities[0], 1, color="0.92", linewidth=0, zorder=0)
    ax.axhline(0, color=_style.OTHER, linewidth=0.6, zorder=1)
    for method, mark, colour in zip(METHODS, _MARKS, _COLOURS, strict=True):
        grouped = runs[runs["method"] == method].groupby("density")[key]
        mean, spread = grouped.mean(), grouped.std(ddof=0)
        ax.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        ax.plot(mean.index, mean, color=colour, marker=mark, markersize=2.8, linewidth=1, label=method)
    ax.set_xscale("log")
    ax.set_xlim(0.8 * densities[0], 1.2 * densities[-1])
    ax.set_xticks([0.2, 0.5, 1, 2, 5, 10, 20], ["0.2", "0.5", "1", "2", "5", "10", "20"])
    ax.minorticks_off()
    ax.set_ylim(lowest, 1.05)
