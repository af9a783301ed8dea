"""item_fingerprint and embedding_map: the dimensions of one item, and a map of all items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import plural, require_count
from simdims.metrics._embedding import unit_rows
from simdims.plots import _style as style
from simdims.plots._sources import as_positions, loadings_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more items than this, dots are rasterized, which keeps files small.
_MOST_VECTOR_DOTS = 5000
#: Up to this many items, t-SNE is fastest on one thread.
_ONE_THREAD = 2000


#: Bars of at most this share of the longest one are left out.
_INVISIBLE = 1e-3


def item_fingerprint(
    result: Any, item: int | str, *, n_dimensions: int = 10, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the dimensions of one item, the largest loading first.

    Parameters
    ----------
    result : Discovery, Consensus, fitted SRF, array or DataFrame of shape (n_items, n_components)
        The embedding.
    item : int or str
        The item's label, or its row, counted from 0.
    n_dimensions : int, default=10
        Maximum number of dimensions whose bars are visible; the axis label gives their share of the item's loadings.
    labels : sequence of str, optional
        Names of the items, which override those of `result`.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        Each dimension is named, or described by its top items.

    Examples
    --------
    >>> from simdims import plots
    >>> ax = plots.item_fingerprint([[0.9, 0.1], [0.2, 0.8]], "cat", labels=["dog", "cat"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['2: cat, dog', '1: dog, cat']
    """
    loadings = loadings_of(result, labels)
    i = loadings.find_item(item)
    require_count("n_dimensions", n_dimensions)
    row = loadings.W[i]
    top = np.argsort(-row, kind="stable")[:n_dimensions]
    top = top[np.abs(row[top]) > _INVISIBLE * np.abs(row).max()] if row[top].any() else top[:1]
    ax = style.one_axes(ax, 0.55 + 0.17 * len(top))
    places = np.arange(len(top))
    ax.barh(places, row[top], height=0.7, color=style.MAIN, linewidth=0)
    width = 0.45 * style.outer_width(ax)
    texts = loadings.descriptions(top, 3, style.tiny(), width)
    xlabel = "Loading"
    if len(top) < len(row):
        held = row[top].sum() / (row.sum() or 1.0)
        xlabel += f"\n{len(top)} of {len(row)} dimensions,\n{held:.0%} of all loadings"
    style.tidy(ax, xlabel)
    ax.set_yticks(places, labels=texts, fontsize=style.tiny(), **style.PLAIN)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(top) - 0.5, -0.5)
    ax.set_xlim(min(0.0, 1.05 * float(row[top].min())), max(1.05 * float(row.max()), 1e-12))
    name = loadings.item(i) if loadings.labels is not None else f"Item {i}"
    ax.set_title(" ", fontsize=style.small(), pad=3)  # reserves the height in which the name has to fit
    beside = style.text_size(name, style.small(), "bold")[0] <= style.inner_size(ax)[0]
    alike = style.shared_starts(loadings.labels or [name])
    name = style.fitted(name, style.small(), 0.97 * style.outer_width(ax), "bold", alike=alike[style.one_line(name)])
    # a long name ends with the Axes and begins above the labels
    place: Literal["left", "right"] = "left" if beside else "right"
    ax.set_title(name, loc=place, fontsize=style.small(), fontweight="bold", pad=3, **style.PLAIN)
    return ax


def embedding_map(
    result: Any,
    *,
    coordinates: Any = None,
    labels: Sequence[str] | None = None,
    n_labels: int = 60,
    n_colours: int = 7,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw all items on a plane, coloured by their largest dimension.

    Parameters
    ----------
    result : Discovery, Consensus, fitted SRF, array or DataFrame of shape (n_items, n_components)
        The embedding.
    coordinates : array-like of shape (n_items, 2), optional
        Positions of the items, from any method. By default t-SNE (scikit-learn) of the rows scaled to length 1, which
        preserves neighbourhoods; distances between groups mean little. It takes about a minute for 10,000 items.
    labels : sequence of str, optional
        Names of the items, which override those of `result`.
    n_labels : int, default=60
        Maximum number of labels, starting with the items with the largest loadings; labels never overlap.
    n_colours : int, default=7
        Number of dimensions with their own colour, at most 7: those that are most often an item's largest. The others
        are grey.
    random_state : int, default=0
        Seed of t-SNE.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        The number of each coloured dimension is near the centre of its items, if possible beside their marks.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import plots
    >>> W = np.repeat(np.eye(2), 3, axis=0)
    >>> ax = plots.embedding_map(W, coordinates=np.arange(12).reshape(6, 2))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['Dimension 1', 'Dimension 2']
    """
    loadings = loadings_of(result, labels)
    require_count("n_labels", n_labels, 0)
    require_count("n_colours", n_colours, 1, len(style.COLOURS))
    n = len(loadings.W)
    xy = map_positions(loadings.W, random_state) if coordinates is None else as_positions(coordinates, "coordinates", n)
    ax = style.one_axes(ax, 3.4)
    dominant = loadings.dominant()
    coloured = loadings.main_dimensions(n_colours)
    others = ~np.isin(dominant, coloured)
    size = float(np.clip(2400 / n, 2, 22))  # square points
    look: dict[str, Any] = {"s": size, "linewidths": 0, "rasterized": n > _MOST_VECTOR_DOTS}
    if others.any():
        n_others = len(np.unique(dominant[others & (dominant >= 0)]))
        label = f"{n_others} {plural('other', n_others)}" if n_others else "none"
        ax.scatter(*xy[others].T, color=style.OTHER, alpha=0.7, label=label, **look)
    texts = loadings.descriptions(coloured, 2, style.tiny(), style.key_width(ax))
    for colour, k, label in zip(style.COLOURS, coloured, texts, strict=False):
        ax.scatter(*xy[dominant == k].T, color=colour, alpha=0.85, label=label, **look)
    style.bare(ax)
    ax.margins(0.06)
    handles, texts = ax.get_legend_handles_labels()
    if others.any():  # drawn first, listed last
        handles, texts = handles[1:] + handles[:1], texts[1:] + texts[:1]
    style.group_key(ax, handles, texts, markerscale=max(1.0, np.sqrt(14 / size)))
    taken = _write_numbers(ax, xy, coloured, dominant, np.sqrt(size) / 2)
    if loadings.labels is not None:
        by_loading = np.argsort(-loadings.W.max(axis=1), kind="stable")
        style.write_names(ax, xy, loadings.labels, by_loading, most=n_labels, radius=np.sqrt(size) / 2, taken=taken)
    return ax


def map_positions(W: NDArray[np.float64], random_state: int) -> NDArray[np.float64]:
    """Positions of items on a plane: t-SNE of unit rows, from a fixed initialisation."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    n, k = W.shape
    if n < 4:
        return np.column_stack([np.arange(n), np.zeros(n)]).astype(np.float64)
    rows = unit_rows(W) if k > 1 else W
    start = "pca" if min(n, k) >= 2 and np.ptp(rows, axis=0).any() else "random"
    tsne = TSNE(perplexity=min(30.0, (n - 1) / 3), init=start, random_state=random_state)
    with threadpool_limits(1 if n <= _ONE_THREAD else None):
        return np.asarray(tsne.fit_transform(rows), dtype=np.float64)


def _write_numbers(
    ax: Axes, xy: NDArray, coloured: list[int], dominant: NDArray[np.intp], radius: float
) -> list[style.Box]:
    """Write the number of each coloured dimension at the centre of its items, if possible without covering marks.

    Returns the boxes used.
    """
    look: dict[str, Any] = {"fontsize": style.small(), "fontweight": "bold", "ha": "center", "va": "center"}
    box: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0.6, "alpha": 0.9}
    places, (width, height) = style.in_points(ax, xy)
    marks = np.column_stack([places - radius, places + radius])
    taken: list[style.Box] = []
    for colour, k in zip(style.COLOURS, coloured, strict=False):
        own = places[dominant == k]
        middle = own[np.argmin(np.linalg.norm(own - np.median(own, axis=0), axis=1))]
        half = np.array(style.text_size(str(k + 1), style.small())[:2]) / 2 + 2
        around = [middle + at for at in _offsets(half)]
        inside = [at for at in around if (at >= half).all() and (at <= [width - half[0], height - half[1]]).all()]
        covered = [_n_covered(at, half, marks, taken) for at in inside or [middle]]
        x, y = (inside or [middle])[int(np.argmin(covered))]
        taken.append((x - half[0], y - half[1], x + half[0], y + half[1]))
        frame = {**box, "edgecolor": colour}
        ax.text(x / width, y / height, str(k + 1), color=colour, bbox=frame, transform=ax.transAxes, **look)
    return taken


def _offsets(half: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shifts of a box of this half size: none, then around it, nearest first."""
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) * (half + 2)
    return np.vstack([np.zeros((1, 2)), *(ring * step for step in (1.0, 1.5, 2.0))])


def _n_covered(at: NDArray, half: NDArray[np.float64], marks: NDArray, taken: list[style.Box]) -> float:
    """The number of marks that a box covers; other boxes count as many."""
    box = (*(at - half), *(at + half))
    over = [boxes[~style.apart(boxes, box)].shape[0] for boxes in (marks, np.array(taken).reshape(-1, 4))]
    return over[0] + len(marks) * over[1]
