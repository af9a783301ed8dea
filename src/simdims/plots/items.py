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
#: The number of a dimension is written beside its items if it would hide more than this share of them.
_MOST_HIDDEN = 0.2
#: Up to this many items, t-SNE is fastest on one thread.
_ONE_THREAD = 2000


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
        Maximum number of dimensions with nonzero loadings; the axis label gives their share of the item's loadings.
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
    top = top[row[top] != 0] if row[top].any() else top[:1]
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
        The number of each coloured dimension is at the centre of its items, or beside them if they are few.

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
    taken = _write_numbers(ax, xy, coloured, dominant)
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


def _write_numbers(ax: Axes, xy: NDArray, coloured: list[int], dominant: NDArray[np.intp]) -> list[style.Box]:
    """Write the number of each coloured dimension at the centre of its items, or beside them; return the boxes used."""
    taken: list[style.Box] = []
    look: dict[str, Any] = {"fontsize": style.small(), "fontweight": "bold", "ha": "center", "va": "center"}
    box: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0.6, "alpha": 0.9}
    places, size = style.in_points(ax, xy)
    for colour, k in zip(style.COLOURS, coloured, strict=False):
        width, height, _ = style.text_size(str(k + 1), style.small())
        taken.append(_place_of_number(places, dominant == k, (width / 2 + 2, height / 2 + 2), size, taken))
        left, bottom, right, top = taken[-1]
        at = ((left + right) / 2 / size[0], (bottom + top) / 2 / size[1])
        ax.text(*at, str(k + 1), color=colour, transform=ax.transAxes, bbox={**box, "edgecolor": colour}, **look)
    return taken


def _place_of_number(
    places: NDArray,
    own: NDArray[np.bool_],
    half: tuple[float, float],
    size: tuple[float, float],
    taken: list[style.Box],
) -> style.Box:
    """The box at the centre of a dimension's items, unless it hides many of them and there is room beside them."""
    group = places[own]
    middle = group[np.argmin(np.linalg.norm(group - np.median(group, axis=0), axis=1))]
    directions = [(np.cos(angle), np.sin(angle)) for angle in np.arange(8) * np.pi / 4]
    shifts = [(0.0, 0.0), *((r * c, r * s) for r in (1.5, 2.0, 2.5, 3.0, 4.0) for c, s in directions)]
    boxes = []
    for across, up in shifts:
        x, y = middle[0] + 2 * half[0] * across, middle[1] + 2 * half[1] * up
        boxes.append((x - half[0], y - half[1], x + half[0], y + half[1]))
    if _n_hidden(boxes[0], group) <= _MOST_HIDDEN * len(group):
        return boxes[0]
    for box in boxes[1:]:
        is_inside = min(box[:2]) >= 0 and box[2] <= size[0] and box[3] <= size[1]
        if is_inside and not _n_hidden(box, places) and (not taken or style.apart(np.asarray(taken), box).all()):
            return box
    return boxes[0]


def _n_hidden(box: style.Box, places: NDArray) -> int:
    left, bottom, right, top = box
    x, y = places.T
    return int(np.count_nonzero((x > left) & (x < right) & (y > bottom) & (y < top)))
