"""The figure of `power`: power by signal-to-noise ratio, and by quartile of the columns' variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(study: pd.DataFrame, quartiles: pd.DataFrame) -> Figure:
    """A column a design and a row a kind of noise; in the last column the quartiles, one panel a ratio."""
    from matplotlib import pyplot

    from simdims.plots import power_curves
    from simdims.plots._style import PLAIN, small, tidy, tiny
    from simdims.plots.inference import NOISES

    designs = list(dict.fromkeys(study["design"]))
    figure = pyplot.figure(figsize=(7.2, 3.5), dpi=200, layout="constrained")
    axes = figure.subplots(len(NOISES), len(designs) + 1, width_ratios=[1] * len(designs) + [1.05])
    for column, design in enumerate(designs):
        panels = axes[:, column]
        power_curves(_by_data_set(study[study["design"] == design]), axes=panels)
        panels[-1].get_legend().remove()
        for ax, (noise, words) in zip(panels, NOISES.items(), strict=True):
            ax.axhline(0.05, color="0.6", linewidth=0.6, linestyle=":", zorder=0)
            ax.set_xlim(0, 1.03)
            ax.set_xticks([0, 0.5, 1])
            ax.set_title(design if noise == "features" else "", fontsize=small(), pad=3, **PLAIN)
            tidy(ax, "Signal-to-noise ratio" if ax is panels[-1] else "", f"{words}\nPower" if column == 0 else "")
    for ax, (snr, rows) in zip(axes[:, -1], quartiles.groupby("SNR", sort=False), strict=True):
        _draw_quartiles(ax, rows)
        words = "no noise" if snr == 1 else f"features, SNR {snr:g}"
        ax.set_title(f"{designs[-1]}: {words}", fontsize=tiny(), pad=3, **PLAIN)
        tidy(ax, "Quartile of column variance" if ax is axes[-1, -1] else "")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=3, fontsize=tiny(), frameon=False, handlelength=2.2
    )  # fmt: skip
    return figure


def _by_data_set(study: pd.DataFrame) -> pd.DataFrame:
    """Shares of each data set, in the order of the panels, as `power_curves` takes them."""
    from simdims.plots.inference import NOISES

    groups = study.groupby(["noise", "snr", "repeat", "test"], sort=False)["significant"]
    shares = groups.mean().rename("power").reset_index()
    return shares.sort_values("noise", key=lambda noise: noise.map(list(NOISES).index), kind="stable")


def _draw_quartiles(ax: Axes, rows: pd.DataFrame) -> None:
    from simdims.plots._style import ACCENT, MAIN, SECOND

    looks = {"dimension": (MAIN, "o"), "rsa": (ACCENT, "s"), "combined": (SECOND, "D")}
    for place, (test, of_test) in enumerate(rows.groupby("test", sort=False)):
        colour, mark = looks[str(test)]
        x = of_test["quartile"].to_numpy() + 0.16 * (place - 1)
        power = of_test["power"].to_numpy()
        ends = np.abs(of_test[["95% from", "95% to"]].to_numpy().T - power)
        options: dict[str, Any] = {"fmt": mark, "ms": 3, "capsize": 1.5, "elinewidth": 0.8, "capthick": 0.8}
        ax.errorbar(x, power, yerr=ends, color=colour, **options)
    ax.set_xticks([1, 2, 3, 4], labels=["lowest", "2", "3", "highest"])
    ax.set_xlim(0.5, 4.5)
    ax.set_ylim(-0.03, 1.03)
    ax.set_yticks([0, 0.5, 1])
