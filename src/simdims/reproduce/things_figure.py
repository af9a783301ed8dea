"""The figure of `things`: accuracy on held-out answers, the similarities of 48 objects, and what more answers give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simdims.plots import _style
from simdims.reproduce.things import CEILING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simdims.metrics import NoiseCeiling


def draw(
    table: pd.DataFrame,
    shares: pd.DataFrame,
    *,
    n_simulated: int,
    ceiling: NoiseCeiling | None,
    predicted: NDArray[np.float64],
    human: NDArray[np.float64],
) -> Figure:
    """Draw Fig. S1c and b, and accuracy by the number of answers."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(7.0, 2.5), dpi=200, layout="constrained", width_ratios=(1.25, 1, 1))
    _draw_accuracies(axes[0], table, ceiling)
    _draw_48(axes[1], predicted, human)
    _draw_shares(axes[2], table, shares, n_simulated)
    return figure


def _draw_accuracies(ax: Axes, table: pd.DataFrame, ceiling: NoiseCeiling | None) -> None:
    chance, ours, simulated, _, spose = table.itertuples(index=False)
    bars = ((ours, "SRF", _style.MAIN), (simulated, "SRF,\nsimulated", _style.TINT), (spose, "SPoSE", _style.OTHER))
    for place, (row, _, colour) in enumerate(bars):
        ax.bar(place, 100 * row[2], 0.62, color=colour)
        ax.text(place, 100 * row[2] + 0.6, f"{100 * row[2]:.1f}", ha="center", va="bottom", fontsize=_style.tiny())
    names = [f"{label}\n{row[1]} dim." for row, label, _ in bars]
    _style.tidy(ax, "", "Held-out answers predicted (%)")
    ax.set_xticks(range(len(bars)), names)
    top = 100 * (ceiling.ceiling if ceiling else CEILING)
    ax.axhline(top, color=_style.ACCENT, linewidth=0.9, linestyle="--")
    label = "noise ceiling" if ceiling else "noise ceiling (published)"
    ax.text(-0.3, top + 0.6, label, fontsize=_style.tiny(), color=_style.ACCENT, va="bottom")
    ax.axhline(100 * chance[2], color=_style.QUIET, linewidth=0.9, linestyle=":")
    ax.text(2.45, 100 * chance[2] + 0.5, "chance", fontsize=_style.tiny(), color=_style.QUIET, va="bottom", ha="right")
    ax.set_ylim(30, max(top, 100 * spose[2]) + 5)


def _draw_48(ax: Axes, predicted: NDArray[np.float64], human: NDArray[np.float64]) -> None:
    pairs = np.triu_indices(len(human), 1)
    x, y = predicted[pairs], human[pairs]
    ax.scatter(x, y, s=2, color=_style.MAIN, alpha=0.5, linewidths=0)
    ax.text(0.04, 0.96, f"r = {np.corrcoef(x, y)[0, 1]:.2f}", transform=ax.transAxes, fontsize=_style.small(), va="top")
    _style.tidy(ax, "Predicted similarity, 48 objects", "Human similarity")


def _draw_shares(ax: Axes, table: pd.DataFrame, shares: pd.DataFrame, n_simulated: int) -> None:
    _, _, simulated, _, spose = table.itertuples(index=False)
    ax.plot(shares["answers"], 100 * shares["accuracy"], color=_style.MAIN, marker="o", markersize=3, linewidth=1)
    ax.scatter(n_simulated, 100 * simulated[2], s=14, color=_style.TINT, edgecolors=_style.MAIN, linewidths=0.7)
    ax.axhline(100 * spose[2], color=_style.OTHER, linewidth=0.9)
    ax.text(
        0.03, 100 * spose[2] + 0.3, "SPoSE", transform=ax.get_yaxis_transform(), fontsize=_style.tiny(), va="bottom"
    )
    _style.tidy(ax, "Answers that were fitted", "Held-out answers predicted (%)")
    ax.set_xscale("log")
    ax.set_xticks([10**power for power in range(3, 8)], ["1,000", "10,000", "100,000", "1 million", "10 million"])
    ax.minorticks_off()
    least, most = min(shares["answers"].min(), n_simulated), max(shares["answers"].max(), n_simulated)
    ax.set_xlim(least / 2, 2 * most)
