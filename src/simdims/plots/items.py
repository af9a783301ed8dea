"""item_fingerprint and embedding_map: one item by its dimensions, and all items on a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import require_count
from simdims.metrics._embedding import unit_rows
from simdims.plots._sources import Loadings, described, item_place, loadings_of, main_dimensions
from simdims.plots._style import (
    COLOURS,
    MAIN,
    OTHER,
    PLAIN,
    Box,
    bare,
    inner_size,
    key,
    one_axes,
    shown,
    small,
    text_size,
    tidy,
    tiny,
    write_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more items than this, dots are drawn as a picture, which keeps files small.
_MOST_VECTOR_DOTS = 5000
_ONE_THREAD = 2000


def item_fingerprint(
    result: Any,
    item: int | str,
    *,
    n_dimensions: int = 10,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the dimensions of one item, the largest loading first.

    Parameters
    ----------
    result : Discovery, Consensus, fitted SRF, array or DataFrame of shape (n_items, n_components)
        The embedding.
    item : int or str
        The item's label, or its row, counted from 0.
    n_dimensions : int, default=10
        Most dimensions that are drawn, none that the item has nothing of; the label of the axis says how much of the
        item they hold.
    labels : sequence of str, optional
        Names of the items, in place of those of `result`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes
        Each dimension is named, or described by the items that have most of it.

    Examples
    --------
    >>> from simdims import plots
    >>> ax = plots.item_fingerprint([[0.9, 0.1], [0.2, 0.8]], "cat", labels=["dog", "cat"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['2: cat, dog', '1: dog, cat']
    """
    loadings = loadings_of(result, labels)
    i = item_place(item, loadings)
    require_count("n_dimensions", n_dimensions)
    row = loadings.W[i]
    top = np.argsort(-row, kind="stable")[:n_dimensions]
    top = top[row[top] != 0] if row[top].any() else top[:1]
    ax = one_axes(ax, 0.55 + 0.17 * len(top))
    places = np.arange(len(top))
    ax.barh(places, row[top], height=0.7, color=MAIN, linewidth=0)
    texts = [shown(loadings.name(int(k)) if loadings.names else described(loadings, int(k)), 30) for k in top]
    xlabel = "Loading"
    if len(top) < len(row):
        held = row[top].sum() / (row.sum() or 1.0)
        xlabel += f"\n{len(top)} of {len(row)} dimensions, {held:.0%} of all loadings"
    tidy(ax, xlabel)
    ax.set_yticks(places, labels=texts, fontsize=tiny(), **PLAIN)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(top) - 0.5, -0.5)
    ax.set_xlim(min(0.0, 1.05 * float(row[top].min())), max(1.05 * float(row.max()), 1e-12))
    name = loadings.item(i) if loadings.labels is not None else f"Item {i}"
    ax.set_title(shown(name, 40), loc="left", fontsize=small(), fontweight="bold", pad=3, **PLAIN)
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
    """Draw all items on a plane, coloured by the dimension that is the largest one of each.

    Parameters
    ----------
    result : Discovery, Consensus, fitted SRF, array or DataFrame of shape (n_items, n_components)
        The embedding.
    coordinates : array-like of shape (n_items, 2), optional
        Where the items are, from any method. By default scikit-learn's t-SNE of the rows scaled to length 1, which
        keeps neighbours together; distances between groups mean little. It takes a minute or so for 10,000 items.
    labels : sequence of str, optional
        Names of the items, in place of those of `result`.
    n_labels : int, default=60
        Most names that are drawn, those of the items with the largest loadings first; a name that would lie over
        another one is left out.
    n_colours : int, default=7
        Dimensions with a colour of their own, at most 7: those that are the largest one of most items. The others are
        grey, and the key says how many they are.
    random_state : int, default=0
        Seed of t-SNE.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes
        The number of a coloured dimension stands in the middle of its items.

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
    require_count("n_colours", n_colours)
    if n_colours > len(COLOURS):
        raise ValueError(f"n_colours must be at most {len(COLOURS)}, as people can tell apart, got {n_colours}.")
    xy = _map(loadings.W, random_state) if coordinates is None else _checked(coordinates, len(loadings.W))
    ax = one_axes(ax, 3.4)
    dominant = loadings.dominant()
    coloured = main_dimensions(dominant, n_colours)
    others = ~np.isin(dominant, coloured)
    size = _dot_size(len(xy))
    picture = len(xy) > _MOST_VECTOR_DOTS
    style: dict[str, Any] = {"s": size, "linewidths": 0, "rasterized": picture}
    if others.any():
        n_others = len(np.unique(dominant[others & (dominant >= 0)]))
        label = f"{n_others} other{'s' if n_others != 1 else ''}" if n_others else "none"
        ax.scatter(*xy[others].T, color=OTHER, alpha=0.7, label=label, **style)
    for colour, k in zip(COLOURS, coloured, strict=False):
        members = dominant == k
        ax.scatter(*xy[members].T, color=colour, alpha=0.85, label=shown(described(loadings, k, 2), 26), **style)
    bare(ax)
    ax.margins(0.06)
    handles, texts = ax.get_legend_handles_labels()
    if others.any():  # drawn first, named last
        handles, texts = handles[1:] + handles[:1], texts[1:] + texts[:1]
    columns = 2 if max(map(len, texts)) > 14 else 4
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": columns}
    key(ax, handles=handles, labels=texts, markerscale=max(1.0, np.sqrt(14 / size)), handlelength=0.8, **place)
    _write_on_map(ax, xy, loadings, coloured, dominant, n_labels)
    return ax


def _dot_size(n_items: int) -> float:
    """Area of a dot in square points."""
    return float(np.clip(2400 / n_items, 2, 22))


def _map(W: NDArray[np.float64], random_state: int) -> NDArray[np.float64]:
    """t-SNE of unit rows, from a start that is the same every time."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    n, k = W.shape
    if n < 4:
        return np.column_stack([np.arange(n), np.zeros(n)]).astype(np.float64)
    rows = unit_rows(W) if k > 1 else W
    start = "pca" if min(n, k) >= 2 and np.ptp(rows, axis=0).any() else "random"
    tsne = TSNE(perplexity=min(30.0, (n - 1) / 3), init=start, random_state=random_state)
    # Threads wait for each other longer than they compute where there are few items.
    with threadpool_limits(1 if n <= _ONE_THREAD else None):
        return np.asarray(tsne.fit_transform(rows), dtype=np.float64)


def _checked(coordinates: Any, n_items: int) -> NDArray[np.float64]:
    try:
        xy = np.asarray(coordinates, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"coordinates must hold numbers, got {type(coordinates).__name__}.") from None
    if xy.shape != (n_items, 2):
        raise ValueError(f"coordinates must have shape ({n_items}, 2), a row an item, got {xy.shape}.")
    if not np.isfinite(xy).all():
        raise ValueError(f"coordinates must be finite, got {xy[~np.isfinite(xy)][0]}.")
    return xy


def _write_on_map(
    ax: Axes, xy: NDArray, loadings: Loadings, coloured: list[int], dominant: NDArray[np.intp], n_labels: int
) -> None:
    """Numbers of dimensions, then as many names as fit without lying over each other."""
    width, height = inner_size(ax)
    to_points = ax.transData + ax.transAxes.inverted()
    taken: list[Box] = []
    for colour, k in zip(COLOURS, coloured, strict=False):
        members = xy[dominant == k]
        centre = members[np.argmin(np.linalg.norm(members - np.median(members, axis=0), axis=1))]
        number = shown(str(k + 1))
        at = to_points.transform(centre) * (width, height)
        w, h, _ = text_size(number, small())
        taken.append((at[0] - w / 2 - 2, at[1] - h / 2 - 2, at[0] + w / 2 + 2, at[1] + h / 2 + 2))
        box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": colour, "linewidth": 0.6, "alpha": 0.9}
        ax.text(
            centre[0],
            centre[1],
            number,
            fontsize=small(),
            fontweight="bold",
            color=colour,
            ha="center",
            va="center",
            bbox=box,
        )
    if loadings.labels is not None:
        by_loading = np.argsort(-loadings.W.max(axis=1), kind="stable")
        radius = np.sqrt(_dot_size(len(xy))) / 2
        write_names(ax, xy, loadings.labels, by_loading, most=n_labels, radius=radius, taken=taken)
