"""system_weights: how much each system, as a person or a model, uses each dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simdims._parameters import ParameterError, require_choice
from simdims.inference.systems import values_of_systems, weights_of_systems
from simdims.plots import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Systems up to which the rows of a heat map have names.
_MOST_NAMES = 60

#: Groups up to which each has a colour of its own.
_MOST_GROUPS = len(style.COLOURS)


def system_weights(result: Any, *, by: Any = None, kind: str = "auto", ax: Axes | None = None) -> Axes:
    """Draw the weights of systems on the dimensions of a joint fit.

    Parameters
    ----------
    result : fitted JointSRF, Consensus of a SimilaritySet, or array-like or DataFrame (n_systems, n_components)
        The weights, or a result that contains them.
    by : column name, or sequence with one value per system, optional
        Groups of the systems: a column of `info` of the set that was fitted, or values. Systems without a value are
        not drawn.
    kind : {"auto", "strip", "heatmap"}, default="auto"
        "strip" draws one mark per system, with the mean of each group and its 95% confidence interval (t); "heatmap"
        draws one row per system, sorted by group. "auto" is a strip where groups are given, or there are more than 60
        systems, and a heat map otherwise.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from simdims import plots
    >>> weights = [[1.5, 0.2], [1.4, 0.4], [0.6, 1.8], [0.5, 1.6]]
    >>> ax = plots.system_weights(weights, by=["a", "a", "b", "b"])
    >>> ax.get_ylabel()
    'Weight'
    """
    require_choice("kind", kind, ("auto", "strip", "heatmap"))
    weights, names, dimensions, info = weights_of_systems(result)
    if by is None:
        groups, distinct = np.zeros(len(weights), dtype=np.intp), [""]
    else:
        values = values_of_systems("by", by, names, info)
        known = ~values.missing()
        if not known.any():
            raise ParameterError("by", "must have a value for some system", "none")
        weights, names = weights[known], [name for name, one in zip(names, known, strict=True) if one]
        groups, distinct = values.at(known).codes()
    if len(distinct) > _MOST_GROUPS:
        raise ParameterError("by", f"must have at most {_MOST_GROUPS} groups", f"{len(distinct)}")
    if kind == "strip" or (kind == "auto" and (by is not None or len(weights) > _MOST_NAMES)):
        return _strip(weights, groups, list(map(str, distinct)), dimensions, ax)
    return _heatmap(weights, groups, names, dimensions, ax)


def _strip(
    weights: NDArray[np.float64],
    groups: NDArray[Any],
    distinct: list[str],
    dimensions: tuple[str, ...],
    ax: Axes | None,
) -> Axes:
    """One mark per system, next to the mean of its group and the interval of that."""
    n_components = weights.shape[1]
    width = max(style.COLUMN, 0.4 * n_components * max(len(distinct), 1) * 0.5)
    ax = style.one_axes(ax, 2.1, width)
    ax.axhline(1.0, color="0.6", linewidth=0.6, linestyle="--", zorder=0)
    step = 0.8 / len(distinct)
    for number, group in enumerate(distinct):
        own, colour = weights[groups == number], style.COLOURS[number]
        at = np.arange(n_components) - 0.4 + step * (number + 0.5)
        spread = 0.22 * step * _offsets(len(own))
        for place, column in zip(at, own.T, strict=True):
            look: dict[str, Any] = {"ms": 2, "mec": "none", "mfc": colour, "alpha": 0.55}
            ax.plot(place - 0.18 * step + spread, np.sort(column), "o", **look)
        low, high = _interval(own)
        label = f"{style.shown(group, 20)} ({len(own)})" if group else None
        means = own.mean(axis=0)
        errors = np.stack([means - low, high - means])
        ax.errorbar(at + 0.22 * step, means, errors, fmt="_", ms=5, color=colour, linewidth=1.0, label=label)
    ax.set_xticks(np.arange(n_components), labels=[_short(name) for name in dimensions], **style.PLAIN)
    ax.set_xlim(-0.55, n_components - 0.45)
    ax.set_ylim(bottom=min(0.0, float(weights.min())) - 0.03 * float(weights.max()))
    style.tidy(ax, "Dimension", "Weight")
    if distinct != [""]:
        style.key(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(distinct), 3))
    return ax


def _heatmap(
    weights: NDArray[np.float64],
    groups: NDArray[np.intp],
    names: list[str],
    dimensions: tuple[str, ...],
    ax: Axes | None,
) -> Axes:
    """One row per system, sorted by group and, within groups, as they come; lines between groups."""
    order = np.argsort(groups, kind="stable")
    n_systems, n_components = weights.shape
    height = 0.6 + 0.11 * min(n_systems, _MOST_NAMES)
    ax = style.one_axes(ax, height, min(style.COLUMN, 1.7 + 0.28 * n_components))
    top = max(2.0, float(np.quantile(weights, 0.98)))
    image = ax.imshow(weights[order], aspect="auto", cmap="PuOr_r", vmin=2.0 - top, vmax=top, interpolation="nearest")
    style.colour_bar(image, ax, "Weight").ax.set_ylim(0.0, top)
    for edge in np.flatnonzero(groups[order][1:] != groups[order][:-1]):
        ax.axhline(edge + 0.5, color="black", linewidth=0.6)
    if n_systems <= _MOST_NAMES:
        labels = [style.shown(names[m], 18) for m in order]
        ax.set_yticks(np.arange(n_systems), labels=labels, **style.PLAIN)
    ax.set_xticks(np.arange(n_components), labels=[_short(name) for name in dimensions], **style.PLAIN)
    style.tidy(ax, "Dimension", "" if n_systems <= _MOST_NAMES else "System")
    ax.tick_params(length=0)
    return ax


def _offsets(n: int) -> NDArray[np.float64]:
    """Places from -1 to 1, so that marks with neighbouring values lie apart."""
    return np.zeros(1) if n == 1 else np.resize([-1.0, 0.0, 1.0, -0.5, 0.5], n)


def _interval(own: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The 95% confidence interval of the mean of each column, by Student's t; none for one system."""
    means, n = own.mean(axis=0), len(own)
    if n < 2:
        return means, means
    half = stats.t.ppf(0.975, n - 1) * own.std(axis=0, ddof=1) / np.sqrt(n)
    return means - half, means + half


def _short(name: str) -> str:
    """dimension7 as 7; another name as it is."""
    number = name.removeprefix("dimension")
    return number if number.isdigit() else style.shown(name, 12)
