"""How dimensions split as their number grows, as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simdims._parameters import require_count, require_type
from simdims.consensus import Lineage
from simdims.plots import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Width of the names of dimensions, in points.
_NAMES = 150.0


def lineage(result: Lineage, *, n_items: int = 3, ax: Axes | None = None) -> Axes:
    """Draw a tree of dimensions: one column per fit, and lines from each dimension to those derived from it.

    Stable branches are coloured, others grey. Thick lines connect a dimension with itself in the next fit; thin ones
    connect it with the dimensions that it splits into. Mark sizes show the dimensions' shares. Marks without a line
    from the left are new.

    Parameters
    ----------
    result : Lineage
        The output of `simdims.lineage`.
    n_items : int, default=3
        Number of top items that name each dimension of the largest fit; 0 shows only numbers.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import lineage, plots
    >>> halves = np.kron(np.eye(2), np.ones((8, 1)))
    >>> quarters = np.kron(np.eye(4), np.ones((4, 1)))
    >>> ax = plots.lineage(lineage([halves, quarters]))
    """
    require_type("result", result, Lineage, "a Lineage")
    require_count("n_items", n_items, at_least=0)
    table = result.table.assign(place=result.places())
    n_ends = int(np.ceil(table["place"].max())) + 1
    width = max(style.COLUMN, 1.5 + 0.28 * len(result.ranks))
    ax = style.one_axes(ax, 0.6 + 0.16 * n_ends, width)
    stable = result.branches.loc[result.branches["stable"], "branch"].tolist()
    colours = {branch: style.COLOURS[k % (len(style.COLOURS) - 1)] for k, branch in enumerate(stable)}
    steps = np.linspace(0, 1, 20)  # along the smooth line from a dimension to one derived from it
    at: dict[tuple[int, int], Any] = {(row["rank"], row["dimension"]): row for row in table.to_dict("records")}
    for (rank, _), node in at.items():
        colour, x = colours.get(node["branch"], style.OTHER), result.ranks.index(rank)
        if node["parent"] > 0:
            parent = at[result.ranks[x - 1], node["parent"]]
            width = 2.2 if parent["branch"] == node["branch"] else 0.7
            places = parent["place"] + (node["place"] - parent["place"]) * (3 * steps**2 - 2 * steps**3)
            ax.plot(x - 1 + steps, places, color=colour, linewidth=width, zorder=2)
        ax.scatter(x, node["place"], s=5 + 60 * node["share"], color=colour, zorder=3, linewidth=0)
        if rank == result.ranks[-1]:
            items = result.top_items(rank, node["dimension"], n_items) if result.labels is not None else []
            text, start = str(node["dimension"]), f"{node['dimension']}: "
            if items:
                text = style.fitted_list(items, style.tiny(), _NAMES, start=start, among=result.labels)
            look = {"va": "center", "color": style.QUIET if colour == style.OTHER else "black"}
            style.write_beside(ax, text, (x, node["place"]), (6, 0), **look)
    ax.set_xticks(range(len(result.ranks)), labels=list(map(str, result.ranks)), **style.PLAIN)
    ax.set_xlim(-0.4, len(result.ranks) - 1 + 0.4)
    ax.set_ylim(n_ends - 0.4, -0.6)
    style.tidy(ax, "Number of dimensions")
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    return ax
