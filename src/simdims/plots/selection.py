"""rank_selection and calibration: how the number of dimensions was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, require_choice, require_flag, require_number, require_type
from simdims.discovery import Discovery
from simdims.plots import _style as style
from simdims.selection import Calibration, DetectableDimensions, RankSelection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = (":", "-.", (0, (1, 1)), (0, (5, 1, 1, 1)))
#: If errors differ by more than this factor, their axis is logarithmic.
_WIDE = 10.0
#: Padding beyond the ends of a range of ranks.
_HALF = 0.35


def rank_selection(
    result: RankSelection | Discovery,
    *,
    relative: bool = False,
    bands: str | None = "both",
    baselines: Mapping[str, int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cross-validation error against the number of dimensions.

    Parameters
    ----------
    result : RankSelection or Discovery
        The selection. A Discovery also has the number of dimensions that can be distinguished from noise.
    relative : bool, default=False
        Whether to divide errors by the smallest one, as in the paper's supplement.
    bands : {"both", "deviation", "error"} or None, default="both"
        The pale band ("deviation") is the standard deviation over fits, as in the paper. The dark band ("error") is the
        standard error of the difference from the smallest error; it reaches the dashed line for the ranks of the
        valley.
    baselines : mapping of str to int, optional
        Ranks from other methods to mark, such as ``{"scree test": scree_test(S)}``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        Filled marks are the valley: ranks within one standard error of the best. The vertical line is the selected
        rank, and the band around it holds 90% of the selections in resamples of the items. The dotted line is the
        number of dimensions that can be distinguished from noise; the region beyond is grey, unless larger numbers were
        not tested. The y-axis is logarithmic if errors differ by more than a factor of ten.

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
    if baselines is not None:
        require_type("baselines", baselines, Mapping, "a mapping from names to numbers of dimensions")
        for rank in baselines.values():
            require_number("baselines", rank, "at least 0")
    ax = style.one_axes(ax, 2.3)
    curve = selection.curve
    ranks = curve["rank"].to_numpy()
    unit = float(curve["error"].min()) if relative and curve["error"].min() > 0 else 1.0
    error, deviation, standard_error = (
        curve[column].to_numpy(dtype=np.float64) / unit
        for column in ("error", "standard_deviation", "standard_error_of_difference")
    )
    if bands in ("both", "deviation"):
        _band(ax, ranks, error, deviation, 0.15, "s.d. over fits")
    if bands in ("both", "error"):
        _band(ax, ranks, error, standard_error, 0.35, "s.e. of difference to best")
    ax.axhline(error.min(), color=style.QUIET, linewidth=0.6, linestyle="--", zorder=1)
    ax.plot(ranks, error, color=style.MAIN, linewidth=1.0, zorder=3)
    valley = np.isin(ranks, selection.valley)
    ax.plot(ranks[~valley], error[~valley], "o", ms=3, mfc="white", mec=style.MAIN, mew=0.8, zorder=4)
    ax.plot(ranks[valley], error[valley], "o", ms=3.4, color=style.MAIN, zorder=4, label="within 1 s.e. of best")
    _mark_choice(ax, selection)
    known = baselines or {}
    for place, (name, rank) in enumerate(zip(style.all_shown(list(known), 24), known.values(), strict=True)):
        line: dict[str, Any] = {"color": style.COLOURS[2 + place % 5], "linestyle": _DASHES[place % len(_DASHES)]}
        ax.axvline(rank, linewidth=1.0, zorder=2, label=f"{name}: {rank}", **line)
    if isinstance(result, Discovery) and result.detectable is not None:
        _mark_noise(ax, result.detectable, int(ranks[-1]))
    style.tidy(ax, "Number of dimensions", "Error relative to the smallest" if relative else "Held-out squared error")
    if error.min() > 0 and error.max() > _WIDE * error.min():
        _use_logarithmic_axis(ax, error)
    ax.set_xticks(style.whole_numbers(int(ranks[0]), int(ax.get_xlim()[1])))  # lines may lie beyond the ranks
    if len(ranks) == 1:
        ax.set_xlim(ranks[0] - 1, ranks[0] + 1)
    style.key(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return ax


def calibration(result: Calibration | RankSelection | Discovery, *, axes: Any = None) -> NDArray[np.object_]:
    """Draw the calibration of the sampling fraction: the structure lost at each fraction, and leaking directions.

    Parameters
    ----------
    result : Calibration, RankSelection or Discovery
        The calibration.
    axes : sequence of two matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    ndarray of two matplotlib Axes
        The lost share of the leading structure against the share of pairs kept, with p*; and the leakage of each
        eigendirection, with the cutoff between stable and leaking ones.

    Examples
    --------
    >>> from simdims import calibrate, plots, simulate
    >>> W = simulate.dirichlet(60, 3, random_state=0)
    >>> axes = plots.calibration(calibrate(W @ W.T, n_bootstraps=5, random_state=0))
    >>> axes[1].get_xlabel()
    'Eigendirection'
    """
    kinds = Calibration | RankSelection | Discovery
    require_type("result", result, kinds, "a Calibration, a RankSelection or a Discovery")
    found = result if isinstance(result, Calibration) else _selection_of(result).calibration
    if found is None:
        remedy = "calibrate the similarities with {calibrate()}"
        raise ParameterError("result", "must hold a calibration", "a result without one", remedy)
    loss, leakage = style.several_axes(axes, 2, size=(style.COLUMN, 1.75), columns=2)
    loss.plot(found.grid, found.signal_loss, color=style.MAIN, linewidth=1.0, marker="o", ms=2.2)
    loss.axhline(found.tolerance, color=style.QUIET, linewidth=0.6, linestyle="--")
    loss.axvline(found.sampling, color=style.ACCENT, linewidth=1.0)
    loss.set(xlim=(0, 1), ylim=(0, None))
    style.tidy(loss, "Share of pairs kept", "Structure lost")
    x, side = (found.sampling - 0.03, "right") if found.sampling > 0.55 else (found.sampling + 0.03, "left")
    look: dict[str, Any] = {"fontsize": style.tiny(), "color": style.ACCENT, "ha": side, "va": "top"}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
    loss.text(x, 0.97, f"p* = {found.sampling:.2f}", transform=loss.get_xaxis_transform(), bbox=box, **look)
    numbers = np.arange(1, len(found.leakage) + 1)
    stable = numbers <= found.cutoff
    filled: dict[str, Any] = {"ms": 2.6, "color": style.MAIN, "label": f"stable: {found.cutoff}"}
    hollow: dict[str, Any] = {"ms": 2.4, "mfc": "white", "mec": style.QUIET, "mew": 0.7, "label": "leaking"}
    leakage.plot(numbers[stable], found.leakage[stable], "o", **filled)
    leakage.plot(numbers[~stable], found.leakage[~stable], "o", **hollow)
    leakage.axvline(found.cutoff + 0.5, color=style.ACCENT, linewidth=1.0)
    style.tidy(leakage, "Eigendirection", "Leakage")
    leakage.set_xticks(style.whole_numbers(1, len(numbers)))
    style.key(leakage, loc="best")
    return np.array([loss, leakage], dtype=object)


def _mark_choice(ax: Axes, selection: RankSelection) -> None:
    """Mark the selected rank, and the range of selections in resamples of the items."""
    if selection.resampled is not None and len(selection.tried) > 1:
        low, high = selection.resampled.interval()
        look: dict[str, Any] = {"color": style.ACCENT, "alpha": 0.15, "linewidth": 0, "zorder": 0.2}
        ax.axvspan(low - _HALF, high + _HALF, label=selection.resampled.words(), **look)
    ax.axvline(selection.rank, color=style.ACCENT, linewidth=1.0, zorder=2, label=f"chosen: {selection.rank}")


def _mark_noise(ax: Axes, detectable: DetectableDimensions, last: int) -> None:
    """Mark the number of dimensions that can be distinguished from noise, and the region beyond."""
    at = detectable.rank
    look: dict[str, Any] = {"color": style.QUIET, "linewidth": 1.0, "linestyle": (0, (1, 1.5)), "zorder": 2}
    ax.axvline(at, label=f"told from noise: {f'{at} or more' if at > 1 else 'no more than 1'}", **look)
    if not detectable.at_edge and at < last:
        shade: dict[str, Any] = {"color": style.QUIET, "alpha": 0.12, "linewidth": 0, "zorder": 0.1}
        ax.axvspan(at + _HALF, last + _HALF, label="not told from noise", **shade)


def _selection_of(result: Any) -> RankSelection:
    require_type("result", result, RankSelection | Discovery, "a RankSelection or a Discovery")
    selection = result.selection if isinstance(result, Discovery) else result
    if selection is None:
        got = "a result whose number of dimensions was given"
        raise ParameterError("result", "must hold a rank selection", got, "let {ranks} name several numbers")
    return selection


def _band(ax: Axes, x: NDArray, centre: NDArray, half: NDArray, alpha: float, label: str) -> None:
    look: dict[str, Any] = {"color": style.MAIN, "alpha": alpha, "linewidth": 0, "zorder": 0.5}
    ax.fill_between(x, centre - half, centre + half, label=label, **look)


def _use_logarithmic_axis(ax: Axes, error: NDArray) -> None:
    """Set logarithmic limits that show the errors; the lower end of a band may be zero."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    ax.set_ylim(0.7 * error.min(), 1.4 * error.max())
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if error.max() < 200 * error.min() else (1,)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(axis="y", which="minor", width=0.4, length=1.5)
