"""system_weights and weight_courses: how much each system (person, model, time point) uses each dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, require_choice
from simdims.inference.effects import mean_intervals
from simdims.inference.systems import values_of_systems, weights_of_systems
from simdims.plots import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of named rows in a heatmap.
_MOST_NAMES = 60

#: Maximum number of names along the axis of a course.
_MOST_TICKS = 8

#: Longest names of groups, in characters.
_GROUP_LENGTH = 32

#: Fewest systems for the interval of a mean: for two, it would be 25 standard errors wide.
_FEWEST = 3

#: Maximum number of groups with their own colour.
_MOST_GROUPS = len(style.COLOURS)


def system_weights(result: Any, *, by: Any = None, kind: str = "auto", ax: Axes | None = None) -> Axes:
    """Draw the weights of systems on the dimensions of a joint fit.

    Parameters
    ----------
    result : fitted JointSRF, Consensus of a SimilaritySet, or array-like or DataFrame (n_systems, n_components)
        The weights, or a result that contains them.
    by : column name, or sequence with one value per system, optional
        Groups of the systems: a column of `info` of the fitted set, or values. Systems without a value are not drawn.
    kind : {"auto", "strip", "heatmap"}, default="auto"
        "strip" draws one mark per system, with the mean of each group and, for three or more systems, its 95%
        confidence interval (t); "heatmap" draws one row per system, sorted by group. "auto" is a strip if groups are
        given or there are more than 60 systems, and a heatmap otherwise.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

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
    _check_groups(distinct)
    if kind == "strip" or (kind == "auto" and (by is not None or len(weights) > _MOST_NAMES)):
        return _strip(weights, groups, list(map(str, distinct)), dimensions, ax)
    return _heatmap(weights, groups, names, list(map(str, distinct)), dimensions, ax)


def weight_courses(
    result: Any, order: Any = None, *, by: Any = None, within: Any = None, axes: Any = None
) -> NDArray[np.object_]:
    """Draw the weights of ordered systems, such as time points or network layers, one panel per dimension.

    Parameters
    ----------
    result : fitted JointSRF, Consensus or Discovery of a SimilaritySet, or array-like or DataFrame
        The weights (n_systems, n_components), or a result that contains them.
    order : column name, or sequence with one value per system, optional
        Position of each system along the x axis: numbers, dates, or names, in the order of their categories or else of
        the systems. A column of `info` of the fitted set, or values. By default systems are equally spaced in their
        order.
    by : column name, or sequence with one value per system, optional
        Groups, each with its own line.
    within : column name, or sequence with one value per system, optional
        Which systems belong together, such as the time points of one person; each person has a thin line.
    axes : sequence of matplotlib Axes, optional
        One per dimension; by default a new figure.

    Returns
    -------
    ndarray of matplotlib Axes
        Lines through the mean weight of the systems at each position, with the 95% confidence interval of the mean (t)
        as a band for three or more systems. Systems without a value are not drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import plots
    >>> weights = np.random.default_rng(0).uniform(0.5, 1.5, size=(12, 3))
    >>> axes = plots.weight_courses(weights, np.repeat([0, 50, 100], 4))
    >>> [ax.get_title() for ax in axes]
    ['Dimension 1', 'Dimension 2', 'Dimension 3']
    """
    weights, names, dimensions, info = weights_of_systems(result)
    given = {"order": np.arange(1, len(names) + 1) if order is None else order, "by": by, "within": within}
    columns = {name: values_of_systems(name, one, names, info) for name, one in given.items() if one is not None}
    known = ~np.any([column.missing() for column in columns.values()], axis=0)
    if not known.any():
        raise ParameterError("order", "must have a value for some system", "none")
    weights, columns = weights[known], {name: column.at(known) for name, column in columns.items()}
    scores, (codes, places) = columns["order"].scores(), columns["order"].codes_as_they_come()
    at, ticks = (codes.astype(np.float64), list(map(str, places))) if scores is None else (scores, [])
    groups, distinct = columns["by"].codes() if "by" in columns else (np.zeros(len(at), dtype=np.intp), [""])
    _check_groups(distinct)
    persons = columns["within"].codes()[0] if "within" in columns else None
    n = len(dimensions)
    across = n if n <= 3 else 3 if n <= 6 else 4 if n <= 12 else 5
    size = (style.COLUMN if across <= 3 else 2 * style.COLUMN, 0.6 + 1.2 * -(-n // across))
    made = style.several_axes(axes, n, size=size, columns=across)
    label = order if isinstance(order, str) else "" if order is not None else "System"
    groups_shown = style.all_shown(list(map(str, distinct)), _GROUP_LENGTH)
    for k, ax in enumerate(made):
        ax.axhline(1.0, color="0.6", linewidth=0.6, linestyle="--", zorder=0)
        for number, group in enumerate(groups_shown):
            own = groups == number
            of_person = None if persons is None else persons[own]
            _course(ax, at[own], weights[own, k], of_person, style.COLOURS[number], group)
        is_lowest, is_first = k + across >= n, k % across == 0
        style.tidy(ax, style.shown(label, 24) if is_lowest else "", "Weight" if is_first else "")
        ax.set_title(" ", fontsize=style.tiny(), pad=2)
        _set_scales(ax, weights, at, ticks)
        if axes is None:  # all panels have the same scales
            ax.tick_params(labelbottom=is_lowest, labelleft=is_first)
    if distinct != [""]:
        n_columns = style.key_columns(made[0].get_legend_handles_labels()[1], 72 * made[0].figure.get_figwidth())
        style.shared_key(made, is_new=axes is None, columns=n_columns, handlelength=1.6)
    titles = [f"Dimension {short}" if (short := _number(name)).isdigit() else name for name in dimensions]
    width = max(0.97 * style.inner_size(made[0])[0], style.text_size("Dimension 10", style.tiny())[0])
    for ax, title in zip(made, style.all_fitted(titles, style.tiny(), width), strict=True):
        ax.set_title(title, fontsize=style.tiny(), pad=2, **style.PLAIN)
    return made


def _course(
    ax: Axes,
    at: NDArray[np.float64],
    weights: NDArray[np.float64],
    of_person: NDArray[np.intp] | None,
    colour: str,
    label: str,
) -> None:
    """Draw the mean at each position, its interval for several systems, and a thin line per person."""
    for person in [] if of_person is None else np.unique(of_person):
        own = np.flatnonzero(of_person == person)
        own = own[np.argsort(at[own], kind="stable")]
        ax.plot(at[own], weights[own], color=colour, linewidth=0.4, alpha=0.35, zorder=1)
    places, number = np.unique(at, return_inverse=True)
    samples = [weights[number == place] for place in range(len(places))]
    means = np.array([sample.mean() for sample in samples])
    low, high = np.array([mean_intervals(sample[:, None]) for sample in samples])[:, :, 0].T
    is_few = np.array([len(sample) < _FEWEST for sample in samples])
    low, high = np.where(is_few, means, low), np.where(is_few, means, high)
    if np.any(high > low):
        ax.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0, zorder=2)
    marks: dict[str, Any] = {"marker": "o", "ms": 2} if len(places) <= 20 else {}
    ax.plot(places, means, color=colour, linewidth=1.0 if len(places) <= 60 else 0.5, label=label, zorder=3, **marks)


def _set_scales(ax: Axes, weights: NDArray[np.float64], at: NDArray[np.float64], ticks: list[str]) -> None:
    """Set the same limits in all panels, and write names along the axis if they fit."""
    top, bottom = float(weights.max()), min(0.0, float(weights.min()))
    ax.set_ylim(bottom - 0.03 * (top - bottom), top + 0.05 * (top - bottom))
    pad = 0.03 * (float(np.ptp(at)) or 1.0)
    ax.set_xlim(float(at.min()) - pad, float(at.max()) + pad)
    if ticks:
        shown = np.unique(np.linspace(0, len(ticks) - 1, min(len(ticks), _MOST_TICKS)).round().astype(int))
        labels = style.all_shown([ticks[place] for place in shown], 16)
        look: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(shown, labels=labels, **look, **style.PLAIN)


def _check_groups(distinct: list[Any]) -> None:
    if len(distinct) > _MOST_GROUPS:
        remedy = "divide a score into groups to draw it, or test it as it is with {weight_test()}"
        raise ParameterError("by", f"must have at most {_MOST_GROUPS} groups", f"{len(distinct)}", remedy)


def _strip(
    weights: NDArray[np.float64],
    groups: NDArray[Any],
    distinct: list[str],
    dimensions: tuple[str, ...],
    ax: Axes | None,
) -> Axes:
    """Draw one mark per system, beside the mean of its group and its interval."""
    n_components = weights.shape[1]
    width = min(max(style.COLUMN, 0.2 * n_components * len(distinct)), 2 * style.COLUMN)
    ax = style.one_axes(ax, 2.1 + 0.4 * _is_tilted(dimensions), width)
    ax.axhline(1.0, color="0.6", linewidth=0.6, linestyle="--", zorder=0)
    step = 0.8 / len(distinct)
    for number, group in enumerate(style.all_shown(distinct, _GROUP_LENGTH)):
        own, colour = weights[groups == number], style.COLOURS[number]
        at = np.arange(n_components) - 0.4 + step * (number + 0.5)
        # neighbouring values are drawn side by side
        spread = 0.22 * step * (np.resize([-1.0, 0.0, 1.0, -0.5, 0.5], len(own)) if len(own) > 1 else np.zeros(1))
        for place, column in zip(at, own.T, strict=True):
            look: dict[str, Any] = {"ms": 2, "mec": "none", "mfc": colour, "alpha": 0.55}
            ax.plot(place - 0.18 * step + spread, np.sort(column), "o", **look)
        low, high = mean_intervals(own)
        label = f"{group} ({len(own)})" if group else None
        means = own.mean(axis=0)
        errors = np.stack([means - low, high - means]) if len(own) >= _FEWEST else None
        ax.errorbar(at + 0.22 * step, means, errors, fmt="_", ms=5, color=colour, linewidth=1.0, label=label)
    _name_dimensions(ax, dimensions)
    ax.set_xlim(-0.55, n_components - 0.45)
    ax.set_ylim(bottom=min(0.0, float(weights.min())) - 0.03 * float(weights.max()))
    style.tidy(ax, "Dimension", "Weight")
    if distinct != [""]:
        columns = style.key_columns(ax.get_legend_handles_labels()[1], style.outer_width(ax))
        style.key(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
    return ax


def _heatmap(
    weights: NDArray[np.float64],
    groups: NDArray[np.intp],
    names: list[str],
    distinct: list[str],
    dimensions: tuple[str, ...],
    ax: Axes | None,
) -> Axes:
    """Draw one row per system, sorted by group and, within groups, in the given order; lines separate groups."""
    order = np.argsort(groups, kind="stable")
    n_systems, n_components = weights.shape
    has_names, has_groups = n_systems <= _MOST_NAMES, distinct != [""]
    height = 0.7 + 0.11 * min(n_systems, _MOST_NAMES) + 0.5 * _is_tilted(dimensions) + 0.2 * has_groups
    ax = style.one_axes(ax, height, min(2 * style.COLUMN, max(3.0, 1.9 + 0.2 * n_components)))
    top = max(2.0, float(np.quantile(weights, 0.98)))
    image = ax.imshow(weights[order], aspect="auto", cmap="PuOr_r", vmin=2.0 - top, vmax=top, interpolation="nearest")
    above = "max" if weights.max() > top else "neither"
    style.colour_bar(image, ax, "Weight", extend=above).ax.set_ylim(0.0, top)
    in_order = groups[order]
    for edge in np.flatnonzero(in_order[1:] != in_order[:-1]):
        ax.axhline(edge + 0.5, color="black", linewidth=0.6)
    says_system = all(name.isdigit() for name in names) if has_names else not has_groups
    style.tidy(ax, "Dimension", "System" if says_system else "")
    if has_names:
        texts = style.all_fitted([names[m] for m in order], style.tiny(), 0.35 * style.outer_width(ax))
        ax.set_yticks(np.arange(n_systems), labels=texts, **style.PLAIN)
    elif has_groups:
        middles = [float(np.flatnonzero(in_order == number).mean()) for number in range(len(distinct))]
        labels = style.all_shown(distinct, _GROUP_LENGTH)
        ax.set_yticks(middles, labels=labels, rotation=90, va="center", **style.PLAIN)
    if has_names and has_groups:
        _colour_names(ax, in_order, distinct)
    _name_dimensions(ax, dimensions)
    ax.tick_params(length=0)
    return ax


def _colour_names(ax: Axes, groups: NDArray[np.intp], distinct: list[str]) -> None:
    """Colour the names of systems by group, and draw a legend above."""
    from matplotlib.patches import Patch

    for label, group in zip(ax.get_yticklabels(), groups, strict=True):
        label.set_color(style.COLOURS[group])
    handles = [Patch(color=colour) for colour, _ in zip(style.COLOURS, distinct, strict=False)]
    texts = style.all_shown(distinct, _GROUP_LENGTH)
    columns = style.key_columns(texts, style.outer_width(ax))
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": columns}
    style.key(ax, handles=handles, labels=texts, handlelength=0.8, **place)


def _name_dimensions(ax: Axes, dimensions: tuple[str, ...]) -> None:
    """Write numbers below the columns, or tilted names."""
    n, texts = len(dimensions), style.all_shown([_number(name) for name in dimensions], 24)
    if _is_tilted(dimensions):
        tilt: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(np.arange(n), labels=texts, **tilt, **style.PLAIN)
        return
    most = int(0.7 * style.outer_width(ax) / (2 * style.tiny()))
    at = np.array(style.whole_numbers(1, n, most)) - 1
    ax.set_xticks(at, labels=[texts[k] for k in at], **style.PLAIN)


def _is_tilted(dimensions: tuple[str, ...]) -> bool:
    """Whether the names of dimensions are too long to fit side by side."""
    return max(len(_number(name)) for name in dimensions) > 3


def _number(name: str) -> str:
    """Abbreviate dimension7 as 7; other names are unchanged."""
    number = name.removeprefix("dimension")
    return number if number.isdigit() else name
