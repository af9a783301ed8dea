"""The style of the figures: colours, small text, thin lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

#: The Okabe-Ito palette for colour-blind readers, without yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MAIN, ACCENT, SECOND = COLOURS[:3]
OTHER, TINT, QUIET = "#B0B0B0", "#CFE3F1", "#595959"

#: Font sizes of labels, and of ticks and text inside a panel.
SMALL, TINY = 7.0, 6.0

MARKS: dict[str, Any] = {"markersize": 2.5, "linewidth": 1}


def new_figure(width: float, height: float) -> Any:
    """An empty figure."""
    return pyplot.figure(figsize=(width, height), dpi=200, layout="constrained")


def tidy(ax: Axes, xlabel: str = "", ylabel: str = "") -> None:
    """Set small text and thin lines, and remove the top and right spines."""
    ax.spines[["top", "right"]].set_visible(False)
    for spine in ax.spines.values():
        spine.set_linewidth(0.6)
    ax.tick_params(labelsize=TINY, width=0.6, length=2.5, pad=2)
    ax.set_xlabel(xlabel, fontsize=SMALL, labelpad=2)
    ax.set_ylabel(ylabel, fontsize=SMALL, labelpad=2)


def legend(ax: Axes, **options: Any) -> None:
    """A small legend without a frame."""
    settings: dict[str, Any] = {"fontsize": TINY, "frameon": False, "handlelength": 1.4, "borderaxespad": 0.3}
    ax.legend(**{**settings, "handletextpad": 0.5, "labelspacing": 0.3, "columnspacing": 1.0, **options})


def log_ticks(ax: Axes, ticks: Sequence[float], labels: Sequence[str] | None = None) -> None:
    """A logarithmic x axis with only these ticks."""
    ax.set_xscale("log")
    ax.set_xticks(list(ticks), labels or [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def whole_ticks(ax: Axes) -> None:
    """A few integer ticks along x."""
    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))


def mean_and_spread(ax: Axes, runs: pd.DataFrame, x: str, y: str, *, color: str, label: str, marker: str = "o") -> None:
    """The mean of y at each x, with one standard deviation on either side."""
    grouped = runs.groupby(x)[y]
    mean, spread = grouped.mean(), grouped.std(ddof=0)
    ax.fill_between(mean.index, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0)
    ax.plot(mean.index, mean, color=color, marker=marker, label=label, **MARKS)


def noise_name(snr: float) -> str:
    """A signal-to-noise ratio as text."""
    return "no noise" if snr == 1 else f"SNR {snr:g}"
