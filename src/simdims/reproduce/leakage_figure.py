"""The figure of `leakage`: random patterns that determine the rest, and the curves of both cross-validations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simdims.plots._style import ACCENT, COLOURS, MAIN, QUIET, key, several_axes, tidy, tiny, whole_ticks
from simdims.reproduce.frame import Cell
from simdims.reproduce.leakage_algebra import degrees_of_freedom

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"entrywise": ACCENT, "restricted": MAIN}


def draw(patterns: list[Cell], validated: list[Cell]) -> Figure:
    """Draw the three panels."""
    left, middle, right = several_axes(None, 3, size=(7.0, 2.4), columns=3)
    _patterns(left, patterns)
    _without_noise(middle, [cell for cell in validated if cell["snr"] == 1])
    noisy = [cell for cell in validated if cell["snr"] < 1]
    snr = max(cell["snr"] for cell in noisy)
    n_items = max(cell["n_items"] for cell in noisy if cell["snr"] == snr)
    _with_noise(right, [cell for cell in noisy if (cell["snr"], cell["n_items"]) == (snr, n_items)])
    return left.figure


def _patterns(ax: Axes, patterns: list[Cell]) -> None:
    """The share of patterns with a Jacobian of full rank, by the number of observed values."""
    for rank, colour in zip(sorted({cell["rank"] for cell in patterns}), COLOURS, strict=False):
        same = [cell for cell in patterns if cell["rank"] == rank]
        full = degrees_of_freedom(same[0]["n_items"], rank)
        reached = 100 * np.mean([np.array(cell["ranks"]) == full for cell in same], axis=0)
        counts = np.array(same[0]["counts"]) / full
        ax.plot(counts, reached, "o-", color=colour, markersize=2.5, linewidth=1, label=f"{rank} dimensions")
    ax.axvline(1, color=QUIET, linewidth=0.6, linestyle=":")
    tidy(ax, "Observed values per degree of freedom", "Patterns that determine S locally (%)")
    key(ax, loc="lower right")


def _without_noise(ax: Axes, cells: list[Cell]) -> None:
    """Geometric means over data sets; each data set as a pale line."""
    for scheme, colour in _COLOURS.items():
        errors = np.maximum([cell[scheme]["errors"] for cell in cells], 1e-16)
        for error in errors:
            ax.plot(cells[0]["ranks"], error, color=colour, linewidth=0.3, alpha=0.5)
        middle = np.exp(np.log(errors).mean(axis=0))
        ax.plot(cells[0]["ranks"], middle, "o-", color=colour, markersize=2.5, linewidth=1, label=scheme)
    ax.set_yscale("log")
    _finish(ax, cells, "Held-out error / variance", "no noise")


def _with_noise(ax: Axes, cells: list[Cell]) -> None:
    """Errors relative to the smallest of each data set: mean and standard deviation."""
    true = cells[0]["ranks"].index(cells[0]["true_rank"])
    highest = 0.0
    for scheme, colour in _COLOURS.items():
        errors = np.array([cell[scheme]["errors"] for cell in cells])
        errors /= errors.min(axis=1, keepdims=True)
        mean, spread = errors.mean(axis=0), errors.std(axis=0)
        ax.plot(cells[0]["ranks"], mean, "o-", color=colour, markersize=2.5, linewidth=1, label=scheme)
        ax.fill_between(cells[0]["ranks"], mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        highest = max(highest, float((mean + spread)[true:].max()))
    ax.set_ylim(1 - 0.1 * (highest - 1), 1 + 1.6 * (highest - 1))
    _finish(ax, cells, "Held-out error / smallest", f"SNR {cells[0]['snr']:g}")


def _finish(ax: Axes, cells: list[Cell], ylabel: str, noise: str) -> None:
    ax.axvline(cells[0]["true_rank"], color=QUIET, linewidth=0.6, linestyle=":")
    ax.set_title(f"{cells[0]['n_items']} items, {noise}", fontsize=tiny())
    tidy(ax, "Number of dimensions", ylabel)
    whole_ticks(ax)
    key(ax, loc="upper right")
