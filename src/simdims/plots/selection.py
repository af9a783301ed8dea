"""rank_selection and calibration: how the number of dimensions was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import require_choice, require_flag
from simdims.discovery import Discovery
from simdims.plots._style import (
    ACCENT,
    COLOURS,
    COLUMN,
    MAIN,
    QUIET,
    key,
    one_axes,
    several_axes,
    shown,
    tidy,
    tiny,
    whole_ticks,
)
from simdims.selection import Calibration, RankSelection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = (":", "-.", (0, (1, 1)), (0, (5, 1, 1, 1)))
#: Errors that span more than this factor get a logarithmic axis.
_WIDE = 10.0


def rank_selection(
    result: RankSelection | Discovery,
    *,
    relative: bool = False,
    bands: str | None = "both",
    baselines: Mapping[str, int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the error of held-out similarities against the number of dimensions.

    Parameters
    ----------
    result : RankSelection or Discovery
        The selection.
    relative : bool, default=False
        Whether errors are divided by the smallest one, as in the paper's supplement.
    bands : {"both", "deviation", "error"} or None, default="both"
        The pale band is the standard deviation over fits (the paper's); the darker one is the standard error of the
        difference to the smallest error, so that the ranks of the valley are those whose dark band reaches the dashed
        line.
    baselines : mapping of str to int, optional
        Other answers to draw beside, such as ``{"scree test": scree_test(S)}``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes
        Filled marks are the valley: ranks within one standard error of the best. The y-axis is logarithmic where errors
        span more than a factor of ten.

    Examples
    --------
    >>> from simdims import plots, select_rank, simulate
    >>> W = simulate.dirichlet(40, 3, random_state=0)
    >>> S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
    >>> selection = select_rank(S, range(1, 6), sampling=0.6, n_repeats=1, random_state=0)
    >>> ax = plots.rank_selection(selection, relative=True, baselines={"scree test": 3})
    >>> ax.get_ylabel()
    'Error relative to the smallest'
    """
    selection = _selection_of(result)
    require_choice("bands", bands, ("both", "deviation", "error", None))
    require_flag("relative", relative)
    others = _checked_baselines(baselines)
    ax = one_axes(ax, 2.3)
    curve = selection.curve
    ranks = curve["rank"].to_numpy()
    unit = float(curve["error"].min()) if relative else 1.0
    unit = unit if unit > 0 else 1.0
    error, deviation, standard_error = (
        curve[column].to_numpy(dtype=np.float64) / unit
        for column in ("error", "standard_deviation", "standard_error_of_difference")
    )
    if bands in ("both", "deviation"):
        _band(ax, ranks, error, deviation, 0.15, "s.d. over fits")
    if bands in ("both", "error"):
        _band(ax, ranks, error, standard_error, 0.35, "s.e. of difference to best")
    ax.axhline(error.min(), color=QUIET, linewidth=0.6, linestyle="--", zorder=1)
    ax.plot(ranks, error, color=MAIN, linewidth=1.0, zorder=3)
    valley = np.isin(ranks, selection.valley)
    ax.plot(ranks[~valley], error[~valley], "o", ms=3, mfc="white", mec=MAIN, mew=0.8, zorder=4)
    ax.plot(ranks[valley], error[valley], "o", ms=3.4, color=MAIN, zorder=4, label="within 1 s.e. of best")
    ax.axvline(selection.rank, color=ACCENT, linewidth=1.0, zorder=2, label=f"chosen: {selection.rank}")
    for place, (name, rank) in enumerate(others.items()):
        style: dict[str, Any] = {"color": COLOURS[2 + place % 5], "linestyle": _DASHES[place % len(_DASHES)]}
        ax.axvline(rank, linewidth=1.0, zorder=2, label=f"{shown(name)}: {rank}", **style)
    tidy(ax, "Number of dimensions", "Error relative to the smallest" if relative else "Held-out squared error")
    if error.min() > 0 and error.max() > _WIDE * error.min():
        _logarithmic(ax, error)
    whole_ticks(ax)
    if len(ranks) == 1:
        ax.set_xlim(ranks[0] - 1, ranks[0] + 1)
    key(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return ax


def calibration(result: Calibration | RankSelection | Discovery, *, axes: Any = None) -> NDArray[np.object_]:
    """Draw how many pairs a fit may see: what is lost when pairs are left out, and which directions leak.

    Parameters
    ----------
    result : Calibration, RankSelection or Discovery
        The calibration.
    axes : sequence of two matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    ndarray of two matplotlib Axes
        The share of the leading structure that is lost against the share of the pairs that is kept, with p*; and the
        leakage of each eigendirection, with the cut between stable and leaking ones.

    Examples
    --------
    >>> from simdims import calibrate, plots, simulate
    >>> W = simulate.dirichlet(60, 3, random_state=0)
    >>> axes = plots.calibration(calibrate(W @ W.T, n_bootstraps=5, random_state=0))
    >>> axes[1].get_xlabel()
    'Eigendirection'
    """
    found = _calibration_of(result)
    loss, leakage = several_axes(axes, 2, size=(COLUMN, 1.75), columns=2)
    loss.plot(found.grid, found.signal_loss, color=MAIN, linewidth=1.0, marker="o", ms=2.2)
    loss.axhline(found.tolerance, color=QUIET, linewidth=0.6, linestyle="--")
    loss.axvline(found.sampling, color=ACCENT, linewidth=1.0)
    loss.set_xlim(0, 1)
    loss.set_ylim(bottom=0)
    tidy(loss, "Share of pairs kept", "Structure lost")
    is_right = found.sampling > 0.55
    loss.text(
        found.sampling + (-0.03 if is_right else 0.03),
        0.97,
        f"p* = {found.sampling:.2f}",
        transform=loss.get_xaxis_transform(),
        fontsize=tiny(),
        color=ACCENT,
        ha="right" if is_right else "left",
        va="top",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
    )
    numbers = np.arange(1, len(found.leakage) + 1)
    stable = numbers <= found.cutoff
    leakage.plot(numbers[stable], found.leakage[stable], "o", ms=2.6, color=MAIN, label=f"stable: {found.cutoff}")
    leakage.plot(
        numbers[~stable], found.leakage[~stable], "o", ms=2.4, mfc="white", mec=QUIET, mew=0.7, label="leaking"
    )
    leakage.axvline(found.cutoff + 0.5, color=ACCENT, linewidth=1.0)
    tidy(leakage, "Eigendirection", "Leakage")
    whole_ticks(leakage)
    key(leakage, loc="best")
    return np.array([loss, leakage], dtype=object)


def _selection_of(result: Any) -> RankSelection:
    if isinstance(result, Discovery):
        if result.selection is None:
            raise ValueError("result must hold a rank selection, got a Discovery whose rank was given.")
        return result.selection
    if not isinstance(result, RankSelection):
        raise TypeError(f"result must be a RankSelection or a Discovery, got {type(result).__name__}.")
    return result


def _calibration_of(result: Any) -> Calibration:
    if isinstance(result, Calibration):
        return result
    if not isinstance(result, RankSelection | Discovery):
        raise TypeError(f"result must be a Calibration, a RankSelection or a Discovery, got {type(result).__name__}.")
    found = _selection_of(result).calibration
    if found is None:
        raise ValueError("result must hold a calibration, got one whose sampling was given.")
    return found


def _checked_baselines(baselines: Any) -> dict[str, float]:
    if baselines is None:
        return {}
    if not isinstance(baselines, Mapping):
        raise TypeError(f"baselines must map names to numbers of dimensions, got {type(baselines).__name__}.")
    for name, rank in baselines.items():
        if isinstance(rank, bool) or not isinstance(rank, Real) or not np.isfinite(float(rank)):
            raise TypeError(f"baselines must map names to numbers of dimensions, got {rank!r} for {name!r}.")
    return {str(name): rank for name, rank in baselines.items()}


def _band(ax: Axes, x: NDArray, centre: NDArray, half: NDArray, alpha: float, label: str) -> None:
    ax.fill_between(x, centre - half, centre + half, color=MAIN, alpha=alpha, linewidth=0, zorder=0.5, label=label)


def _logarithmic(ax: Axes, error: NDArray) -> None:
    """A logarithmic axis that shows the errors; the lower end of a band may reach zero."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    ax.set_ylim(0.7 * error.min(), 1.4 * error.max())
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if error.max() < 200 * error.min() else (1,)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(axis="y", which="minor", width=0.4, length=1.5)
