"""The figure of `recovery`: examples of embeddings, their properties, and how much of them is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simdims import simulate
from simdims.plots import _style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EXAMPLES = (0.1, 1.0, 100.0)


def draw(runs: pd.DataFrame, *, n_items: int, rank: int, seed: int) -> Figure:
    """Draw Fig. 2a (three embeddings and their similarities) and 2b (properties, recovery, reconstruction)."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(7.2, 2.5), dpi=200, layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1, 2.15), wspace=0.03)
    examples, curves = parts
    _draw_examples(examples, n_items, rank, seed)
    axes = curves.subplots(1, 3)
    _draw_properties(axes[0], runs)
    _draw_by_snr(axes[1], runs, "alignment", "Factor alignment")
    _draw_by_snr(axes[2], runs, "explained_variance", "Explained variance of true S")
    rotated = runs.groupby("alpha")["rotated"].mean()
    axes[1].plot(
        rotated.index, rotated, color=_style.QUIET, linewidth=0.8, linestyle=":", label="any rotation", zorder=1
    )
    _style.key(axes[1], loc="lower left")
    return figure


def _draw_examples(part: Any, n_items: int, rank: int, seed: int) -> None:
    """Factors above and similarities below, items in the order of their largest dimension."""
    axes = part.subplots(2, len(_EXAMPLES))
    for column, alpha in zip(axes.T, _EXAMPLES, strict=True):
        W = simulate.dirichlet(n_items, rank, alpha=alpha, random_state=seed)
        W = W[np.lexsort((-W.max(axis=1), W.argmax(axis=1)))]
        column[0].imshow(W, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        column[1].imshow(W @ W.T, cmap="Greys", vmin=0, vmax=1, aspect="equal", interpolation="nearest")
        column[0].set_title(f"α = {alpha:g}", fontsize=_style.small(), pad=3)
        for ax in column:
            _style.tidy(ax)
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_visible(True)
    axes[0, 0].set_ylabel("W", fontsize=_style.small())
    axes[1, 0].set_ylabel("S = W Wᵀ", fontsize=_style.small())


def _draw_properties(ax: Axes, runs: pd.DataFrame) -> None:
    mean = runs.groupby("alpha")[["hoyer_sparsity", "entropy"]].mean()
    for name, label, colour in (
        ("hoyer_sparsity", "Hoyer sparsity", _style.MAIN),
        ("entropy", "entropy", _style.ACCENT),
    ):
        ax.plot(mean.index, mean[name], color=colour, marker="o", markersize=2.5, linewidth=1, label=label)
    _finish(ax, "Property of the true W")
    _style.key(ax, loc="center right")


def _draw_by_snr(ax: Axes, runs: pd.DataFrame, what: str, label: str) -> None:
    """A curve a ratio, with the spread over data sets (one standard deviation)."""
    for snr, colour in zip(sorted(runs["snr"].unique(), reverse=True), _style.COLOURS, strict=False):
        grouped = runs[runs["snr"] == snr].groupby("alpha")[what]
        mean, spread = grouped.mean(), grouped.std(ddof=0)
        ax.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        ax.plot(mean.index, mean, color=colour, marker="o", markersize=2.5, linewidth=1, label=f"SNR {snr:g}")
    _finish(ax, label)


def _finish(ax: Axes, label: str) -> None:
    _style.tidy(ax, "Dirichlet α", label)
    ax.set_xscale("log")
    ax.set_xticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1000"])
    ax.minorticks_off()
    ax.set_ylim(0, 1.04)
