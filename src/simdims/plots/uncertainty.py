"""uncertainty: bootstrap intervals of dimensions, of items on one dimension, or of systems on one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, require_choice, require_count, require_type
from simdims.plots import _style as style
from simdims.plots._sources import Loadings, given_names
from simdims.uncertainty import Bootstrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Height in inches of one row, and of the remaining parts.
_ROW, _REST = 0.15, 0.5


def uncertainty(
    result: Bootstrap,
    of: str = "shares",
    *,
    dimension: int | str | None = None,
    n_rows: int = 15,
    level: float = 0.95,
    method: str = "percentile",
    ax: Axes | None = None,
) -> Axes:
    """Draw the intervals of a bootstrap.

    Parameters
    ----------
    result : Bootstrap
        The output of `bootstrap`.
    of : {"shares", "loadings", "weights"}, default="shares"
        "shares" of all dimensions, with how often each came back; "loadings" of the top items on one dimension; or
        "weights" of the systems on it.
    dimension : int or str, optional
        The dimension, by number (from 1) or name; for loadings and weights.
    n_rows : int, default=15
        Maximum number of rows.
    level : float, default=0.95
        Nominal coverage of the intervals.
    method : {"percentile", "bias-corrected"}, default="percentile"
        The kind of interval.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        One row per value, in descending order (shares in the order of the dimensions). Open marks are values at zero,
        whose intervals are not calibrated.

    Examples
    --------
    >>> from simdims import bootstrap, plots, simulate
    >>> W = simulate.dirichlet(20, 2, random_state=0)
    >>> sure = bootstrap(W @ W.T + 0.01, "items", n_components=2, n_resamples=100, random_state=0)
    >>> print(plots.uncertainty(sure, "loadings", dimension=1).get_xlabel())
    Loading on dimension 1
    15 of 20 items
    """
    require_type("result", result, Bootstrap, "what bootstrap returned")
    require_choice("of", of, ("shares", "loadings", "weights"))
    require_count("n_rows", n_rows)
    interval = result.interval(of, level=level, method=method)
    known = Loadings(result.embedding, result.labels, given_names(result.dimension_names))
    if of == "shares":
        if dimension is not None:
            raise ParameterError("dimension", "must be None for shares, which are of all dimensions", repr(dimension))
        names, open_marks = [known.name(k) for k in range(result.n_components)], np.zeros(result.n_components)
        rows = np.arange(min(n_rows, result.n_components))
        ax = _draw(ax, rows, names, result.shares, interval, open_marks, "Share of the reconstruction")
        for row, share in enumerate(result.came_back[rows]):
            _beside(ax, row, f"{share:.0%}")
        look: dict[str, Any] = {"fontsize": style.tiny(), "color": style.QUIET, "annotation_clip": False}
        ax.annotate("came back", (1.0, 1.0), (4, 3), "axes fraction", textcoords="offset points", **look)
        _say_how_many(ax, rows, result.n_components, "dimensions")
        return ax
    k = known.find_dimension(1 if dimension is None else dimension)
    if of == "loadings":
        labels = result.labels or tuple(f"item {i}" for i in range(len(result.embedding)))
        values, marked, what = result.embedding[:, k], result.at_zero[:, k], "Loading"
    elif result.systems is None:
        raise ParameterError("of", "must be 'shares' or 'loadings' for one system", "'weights'")
    else:
        labels, values, marked, what = result.systems, result.weights[:, k], result.weights_at_zero[:, k], "Weight"
    rows = np.argsort(-values, kind="stable")[:n_rows]
    name = known.name(k) if known.names else f"dimension {k + 1}"
    ax = _draw(ax, rows, list(labels), values, interval[..., k], marked, f"{what} on {name}")
    _say_how_many(ax, rows, len(values), "items" if of == "loadings" else "systems")
    return ax


def _draw(
    ax: Axes | None,
    rows: NDArray[np.intp],
    names: list[str],
    values: NDArray[np.float64],
    interval: NDArray[np.float64],
    open_marks: NDArray[Any],
    xlabel: str,
) -> Axes:
    """Draw one row per value: its name, its interval and a mark."""
    ax = style.one_axes(ax, _REST + _ROW * max(len(rows), 3))
    at = np.arange(len(rows))
    ax.hlines(at, interval[0, rows], interval[1, rows], color=style.MAIN, linewidth=1.2)
    faces = np.where(open_marks[rows].astype(bool), "white", style.MAIN)
    ax.scatter(values[rows], at, s=12, c=faces, edgecolors=style.MAIN, linewidths=0.8, zorder=3)
    ax.set_yticks(at, labels=style.all_shown([names[i] for i in rows], 22), **style.PLAIN)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(left=0.0)
    style.tidy(ax, xlabel)
    ax.tick_params(axis="y", length=0)
    return ax


def _say_how_many(ax: Axes, rows: NDArray[np.intp], n_all: int, what: str) -> None:
    if len(rows) < n_all:
        ax.set_xlabel(f"{ax.get_xlabel()}\n{len(rows)} of {n_all:,} {what}")


def _beside(ax: Axes, row: float, text: str) -> None:
    where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (4, 0), "textcoords": "offset points"}
    ax.annotate(text, (1.0, row), va="center", fontsize=style.tiny(), color=style.QUIET, annotation_clip=False, **where)
