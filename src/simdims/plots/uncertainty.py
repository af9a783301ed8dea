"""uncertainty: bootstrap intervals of dimensions, of items on one dimension, or of systems on one."""

from __future__ import annotations

from collections.abc import Sequence
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
        One row per value, in descending order (shares in the order of the dimensions). Open marks are values that are
        zero in more than 2.5% of the resamples, whose intervals are not calibrated.

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
    dimensions = [known.name(k) for k in range(result.n_components)]
    if of == "shares":
        if dimension is not None:
            raise ParameterError("dimension", "must be None for shares, which are of all dimensions", repr(dimension))
        names: Sequence[str] = dimensions
        values, is_open = result.shares, np.zeros(result.n_components, dtype=bool)
        xlabel, on, every = "Share of the reconstruction", [], "dimensions"
        rows = np.arange(min(n_rows, result.n_components))
    else:
        k = known.find_dimension(1 if dimension is None else dimension)
        names, values, is_open, what, every = _on_dimension(result, of, k)
        interval, xlabel = interval[..., k], f"{what} on "
        on = [dimensions[k] if known.names else f"dimension {k + 1}"]
        rows = np.argsort(-values, kind="stable")[:n_rows]
    ax = style.one_axes(ax, _REST + _ROW * max(len(rows), 3))
    at = np.arange(len(rows))
    ax.hlines(at, interval[0, rows], interval[1, rows], color=style.MAIN, linewidth=1.2)
    faces = np.where(is_open[rows], "white", style.MAIN)
    look: dict[str, Any] = {"s": 12, "edgecolors": style.MAIN, "linewidths": 0.8, "zorder": 3}
    ax.scatter(values[rows], at, c=faces, **look)
    if is_open[rows].any():
        ax.scatter([], [], c="white", label="at zero in some resamples: not calibrated", **look)
        style.key(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    width = style.outer_width(ax)
    texts = style.all_fitted([names[i] for i in rows.tolist()], style.tiny(), 0.4 * width, among=names)
    xlabel = style.fitted_list(on, style.small(), 0.55 * width, start=xlabel, among=[*dimensions, *on])
    ax.set_yticks(at, labels=texts, **style.PLAIN)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(left=0.0)
    style.tidy(ax, xlabel if len(rows) == len(values) else f"{xlabel}\n{len(rows)} of {len(values):,} {every}")
    ax.tick_params(axis="y", length=0)
    if of == "shares":
        quiet: dict[str, Any] = {"color": style.QUIET}
        for row, share in enumerate(result.came_back[rows]):
            style.write_beside(ax, f"{share:.0%}", (1, row), (4, 0), ("axes fraction", "data"), va="center", **quiet)
        style.write_beside(ax, "came back", (1, 1), (4, 3), "axes fraction", **quiet)
    return ax


def _on_dimension(
    result: Bootstrap, of: str, k: int
) -> tuple[Sequence[str], NDArray[np.float64], NDArray[np.bool_], str, str]:
    """Items or systems, their values on a dimension, which of these are at zero, and what the values and rows are."""
    if of == "loadings":
        labels = result.labels or [f"item {i}" for i in range(len(result.embedding))]
        return labels, result.embedding[:, k], result.at_zero[:, k], "Loading", "items"
    if result.systems is None:
        raise ParameterError("of", "must be 'shares' or 'loadings' for one system", "'weights'")
    return result.systems, result.weights[:, k], result.weights_at_zero[:, k], "Weight", "systems"
