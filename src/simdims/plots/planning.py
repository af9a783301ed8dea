"""Learning curves of simulated studies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simdims._parameters import ParameterError, require_choice, require_type
from simdims.planning.result import AXES, METRICS, StudyPlan
from simdims.plots import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of curves with their own colour.
_MOST_CURVES = len(style.COLOURS)
#: Smallest distance between two labels along x, as a share of the axis.
_CLOSEST = 0.09


def study_plan(plan: StudyPlan, *, metric: str | None = None, against: str = "pairs", ax: Axes | None = None) -> Axes:
    """Draw learning curves: a measure against the number of pairs, answers per pair or people, and the target.

    Bars are 95% confidence intervals over repeats, clipped to the range of the curves. Marks on the target line are the
    numbers needed.

    Parameters
    ----------
    plan : StudyPlan
        The output of `plan_study`.
    metric : {"alignment", "held_out_r2", "reported_r2", "triplet_accuracy"}, optional
        The measure; by default that of the plan. The target is drawn only for that one.
    against : {"pairs", "answers", "people"}, default="pairs"
        The x axis; there is one curve per combination of the others.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from simdims import plan_study, plots, simulate
    >>> W = simulate.dirichlet(30, 3, alpha=0.3, random_state=0)
    >>> plan = plan_study(W, pairs=[0.2, 0.6, 1.0], answers=[1, 3], n_repeats=2, random_state=0)
    >>> ax = plots.study_plan(plan)
    """
    require_type("plan", plan, StudyPlan, "a StudyPlan")
    metric = plan.metric if metric is None else metric
    require_choice("metric", metric, tuple(METRICS))
    require_choice("against", against, tuple(AXES))
    column, label = AXES[against]
    if plan.table[column].nunique() < 2:
        raise ParameterError("against", "must be something that the plan varies", repr(against))
    others = [axis for axis in AXES if axis != against]
    names = [AXES[axis][0] for axis in others]
    curves = list(plan.table.groupby(names, dropna=False, sort=True))
    if len(curves) > _MOST_CURVES:
        rule = f"must leave at most {_MOST_CURVES} curves"
        raise ParameterError("against", rule, f"{against!r}, which leaves {len(curves)}")
    ax = style.one_axes(ax, 2.4)
    varied = [place for place, name in enumerate(names) if plan.table[name].nunique() > 1]
    needed = plan.needed(metric, of=against) if metric == plan.metric else None
    for number, (key, curve) in enumerate(curves):
        values: Any = key
        curve = curve.sort_values(column)
        texts = [_said(others[place], float(values[place])) for place in varied]
        colour = style.COLOURS[number]
        errors = plan.half_widths(metric)[curve.index]
        look: dict[str, Any] = {"color": colour, "marker": "o", "ms": 3, "linewidth": 1.2, "elinewidth": 0.7}
        ax.errorbar(curve[column], curve[metric], errors, label=", ".join(texts) or None, **look)
        reached = np.nan if needed is None else float(needed[column].iloc[number])
        if not np.isnan(reached):
            ax.plot(reached, plan.target, "D", ms=4, mec=colour, mfc="white", mew=1.0, zorder=4)
    if needed is not None:
        ax.axhline(plan.target, color=style.QUIET, linewidth=0.7, linestyle="--", zorder=0)
    shown = [*plan.table[metric], *([] if needed is None else [plan.target])]
    margin = 0.08 * (max(shown) - min(shown)) or 0.05
    ax.set_ylim(min(shown) - margin, max(shown) + margin)
    ax.set_xscale("log")
    sizes = sorted(plan.table[column].unique())
    ax.set_xticks(sizes, labels=_apart(sizes), **style.PLAIN)
    ax.set_xticks([], minor=True)
    style.tidy(ax, f"Number of {label}" if against != "answers" else "Answers per pair", METRICS[metric])
    if len(curves) > 1:
        style.key(ax, loc="lower right")
    return ax


def _apart(sizes: list[float]) -> list[str]:
    """Tick labels of a logarithmic axis, without those that would overlap the previous one."""
    closest = _CLOSEST * np.log(sizes[-1] / sizes[0])
    labels = [f"{sizes[-1]:,.0f}"]
    last = sizes[-1]
    for size in sizes[-2::-1]:
        is_apart = np.log(last / size) >= closest
        labels.append(f"{size:,.0f}" if is_apart else "")
        last = size if is_apart else last
    return labels[::-1]


def _said(axis: str, value: float) -> str:
    if axis == "pairs":
        return f"{value:,.0f} pairs"
    if axis == "answers":
        return f"{value:.0f} {'answer' if value == 1 else 'answers'} per pair"
    return "everybody once" if np.isnan(value) else f"{value:.0f} people"
