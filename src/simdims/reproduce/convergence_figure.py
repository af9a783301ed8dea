"""The figure of `convergence`: the Lagrangian over iterations, its rises by rho, and the share of projected entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simdims.plots._style import ACCENT, COLOURS, MAIN, OTHER, QUIET, SECOND, key, several_axes, tidy, tiny
from simdims.reproduce.frame import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = 60
_PUBLISHED_RHO = 3.0


def draw(traces: list[Cell]) -> Figure:
    """Draw the three panels."""
    left, middle, right = several_axes(None, 3, size=(7.0, 2.4), columns=3)
    _over_iterations(left, traces)
    _rises(middle, traces)
    _projected(right, traces)
    return left.figure


def _over_iterations(ax: Axes, traces: list[Cell]) -> None:
    """One data set, without the box."""
    first = next(trace for trace in traces if trace["kind"] == "linear")
    same = [t for t in traces if not t["box"] and all(t[name] == first[name] for name in ("kind", "n_items", "seed"))]
    for trace, colour in zip(same, COLOURS, strict=False):
        values = np.array(trace["lagrangian"])[1 : _SHOWN + 1]
        ax.plot(np.arange(1, len(values) + 1), values, color=colour, linewidth=1, label=_name(trace["rho"]))
    tidy(ax, "Iteration", "Augmented Lagrangian")
    key(ax, title="rho", title_fontsize=tiny(), ncols=2)


def _rises(ax: Axes, traces: list[Cell]) -> None:
    """The share of steps that rise, over all data sets."""
    rhos = sorted({trace["rho"] for trace in traces})
    for box, colour, name in ((False, MAIN, "no box"), (True, ACCENT, "box")):
        shares = []
        for rho in rhos:
            runs = [trace for trace in traces if trace["rho"] == rho and trace["box"] == box]
            shares.append(100 * sum(t["n_rises"] for t in runs) / sum(len(t["lagrangian"]) - 2 for t in runs))
        ax.plot(rhos, shares, "o-" if not box else "s--", color=colour, markersize=3, linewidth=1, label=name)
    ax.axvline(np.sqrt(2), color=QUIET, linewidth=0.6, linestyle=":")
    ax.text(1.5, 0.75 * ax.get_ylim()[1], "sqrt 2", fontsize=tiny(), color=QUIET)
    ax.set_xscale("log")
    shown = [rho for rho in rhos if not 1 < rho < 2]
    ax.set_xticks(shown, [_name(rho) for rho in shown])
    ax.minorticks_off()
    tidy(ax, "rho", "Steps that rise (%)")
    key(ax)


def _projected(ax: Axes, traces: list[Cell]) -> None:
    """Mean share over data sets at the paper's rho; each data set as a pale line."""
    for kind, colour in (("linear", SECOND), ("RBF", MAIN)):
        runs = [t for t in traces if t["kind"] == kind and t["box"] and t["rho"] == _PUBLISHED_RHO]
        shares = 100 * np.array([trace["projected"] for trace in runs])
        places = np.arange(1, shares.shape[1] + 1)
        for share in shares:
            ax.plot(places, share, color=OTHER, linewidth=0.3)
        ax.plot(places, shares.mean(axis=0), color=colour, linewidth=1.2, label=f"{kind} kernel", zorder=3)
    ax.set_xscale("log")
    ticks = [place for place in (1, 3, 10, 30, 100) if place <= places[-1]]
    ax.set_xticks(ticks, [str(place) for place in ticks])
    ax.minorticks_off()
    tidy(ax, "Iteration", "Projected entries of Z (%)")
    key(ax)


def _name(rho: float) -> str:
    return "sqrt 2" if np.isclose(rho, np.sqrt(2)) else f"{rho:g}"
