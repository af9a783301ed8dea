"""graph: similarities as a network whose nodes show how much of each community they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from simdims._dependencies import library
from simdims._parameters import require_count
from simdims._threads import one_blas_thread
from simdims.metrics._embedding import as_numbers
from simdims.plots._sources import Labels, Loadings, both_of, described, main_dimensions
from simdims.plots._style import (
    COLOURS,
    OTHER,
    QUIET,
    bare,
    inner_size,
    key,
    one_axes,
    shown,
    tiny,
    write_names,
)
from simdims.similarity import Similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more items than this, nodes have the colour of their largest community instead of pies.
_MOST_PIES = 500
#: Layouts that look at all distances are made up to this number of items.
_MOST_EXACT = 200
_MOST_DENSE = 5000


def graph(
    result: Any,
    embedding: Any = None,
    *,
    n_neighbors: int = 3,
    positions: Any = None,
    labels: Sequence[str] | None = None,
    n_labels: int = 40,
    n_colours: int = 7,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw similarities as a weighted graph whose nodes are pies of the dimensions that an item has.

    Parameters
    ----------
    result : Discovery, Similarity, networkx graph, or anything `as_similarity` takes
        The similarities.
    embedding : Discovery, Consensus, SRF, array or DataFrame, optional
        The soft communities, a column each; a Discovery brings its own.
    n_neighbors : int, default=3
        Edges of each item that are drawn, the strongest ones, and that the layout is made of. A maximum spanning tree
        is added, so that what is connected stays connected.
    positions : array-like of shape (n_items, 2) or mapping from label, optional
        Where the items are, such as a layout of networkx. By default networkx's layout of the drawn edges: Kamada and
        Kawai's up to 200 connected items, a spring layout otherwise.
    labels : sequence of str, optional
        Names of the items, in place of those of `result`.
    n_labels : int, default=40
        Most names that are drawn, those of the items with the strongest edges first; a name that would lie over another
        one is left out.
    n_colours : int, default=7
        Communities with a colour of their own, at most 7; the others are grey.
    random_state : int, default=0
        Seed of the spring layout.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes
        Pies up to 500 items; beyond, dots in the colour of the largest community. The line at the bottom says how many
        of the edges are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import plots
    >>> W = np.repeat(np.eye(2), 3, axis=0)
    >>> ax = plots.graph(W @ W.T, W, positions=np.random.default_rng(0).random((6, 2)))
    >>> ax.get_xlabel()
    '6 items, all 6 edges'
    """
    similarity, loadings, names = both_of(result, embedding, labels)
    if similarity is None:
        raise TypeError(f"result must hold similarities, got {type(result).__name__}: pass S, embedding.")
    if loadings is None:
        raise ValueError("embedding must hold the communities of the items, got None.")
    for name, value in (("n_labels", n_labels), ("n_colours", n_colours)):
        require_count(name, value, 0 if name == "n_labels" else 1)
    if n_colours > len(COLOURS):
        raise ValueError(f"n_colours must be at most {len(COLOURS)}, as people can tell apart, got {n_colours}.")
    n = similarity.n_items
    require_count("n_neighbors", n_neighbors)
    first, second, weights, n_all = _backbone(similarity, n_neighbors)
    ax = one_axes(ax, 3.7)
    xy = _placed(positions, names, n, (first, second, weights), random_state)
    bare(ax)
    ax.set_aspect("equal")
    _draw_edges(ax, xy, first, second, weights)
    strength = np.bincount(first, weights, n) + np.bincount(second, weights, n)
    _draw_nodes(ax, xy, loadings, n_colours)
    n_drawn = f"all {n_all:,} edges" if len(first) == n_all else f"{len(first):,} of {n_all:,} edges"
    ax.set_xlabel(f"{n:,} items, {n_drawn}", fontsize=tiny(), color=QUIET, labelpad=1)
    if names is not None:
        radius = inner_size(ax)[0] * _radius(xy) / float(np.diff(ax.get_xlim())[0])
        by_strength = np.argsort(-strength, kind="stable")
        write_names(ax, xy, names, by_strength, most=n_labels, radius=radius, taken=[])
    return ax


def _backbone(similarity: Similarity, n_neighbors: int) -> tuple[NDArray, NDArray, NDArray[np.float64], int]:
    """Each item's strongest edges and a maximum spanning tree, and how many edges there are in all."""
    upper = _positive_pairs(similarity)
    n_all = upper.nnz
    # The tree of smallest lengths is the one of largest weights; older versions of scipy take 32-bit indices only.
    lengths = 1.0 + upper.data.max(initial=0.0) - upper.data
    places = upper.indices.astype(np.int32), upper.indptr.astype(np.int32)
    tree = sparse.coo_array(minimum_spanning_tree(sparse.csr_array((lengths, *places), shape=upper.shape)))
    full = sparse.csr_array(upper + upper.T)
    rows = np.repeat(np.arange(full.shape[0]), np.diff(full.indptr))
    order = np.lexsort((-full.data, rows))
    place_in_row = np.arange(full.nnz) - np.repeat(full.indptr[:-1], np.diff(full.indptr))
    nearest = order[place_in_row < n_neighbors]
    one = np.concatenate([tree.row, rows[nearest]]).astype(np.int64)
    other = np.concatenate([tree.col, full.indices[nearest]]).astype(np.int64)
    keys = np.unique(np.minimum(one, other) * full.shape[0] + np.maximum(one, other))
    first, second = np.divmod(keys, full.shape[0])
    weights = np.asarray(upper[first, second], dtype=np.float64).ravel() if len(first) else np.empty(0)
    return first, second, weights, n_all


def _positive_pairs(similarity: Similarity) -> sparse.csr_array:
    """The observed positive pairs of two items, above the diagonal."""
    is_sparse = similarity.factors is None and sparse.issparse(similarity.values)
    if not is_sparse and similarity.n_items > _MOST_DENSE:
        raise ValueError(f"result must have at most {_MOST_DENSE} items where it is dense, got {similarity.n_items}.")
    if similarity.factors is not None:
        factors = similarity.factors.astype(np.float64)
        upper = sparse.csr_array(np.triu(factors @ factors.T, 1))
    elif is_sparse:
        upper = sparse.csr_array(sparse.triu(similarity.values, 1), dtype=np.float64)
        upper.data = np.nan_to_num(upper.data)
    else:
        upper = sparse.csr_array(np.triu(np.nan_to_num(similarity.values.astype(np.float64)), 1))
    if similarity.weights is not None:
        upper = sparse.csr_array(upper.multiply(sparse.csr_array(similarity.weights) > 0))
    upper.eliminate_zeros()
    return upper


def _placed(
    positions: Any, names: Labels, n: int, edges: tuple[NDArray, NDArray, NDArray], random_state: int
) -> NDArray[np.float64]:
    if positions is None:
        networkx = library("networkx", "plots.graph without positions", "networkx")
        network = networkx.Graph()
        network.add_nodes_from(range(n))
        scaled = edges[2] / (edges[2].max(initial=0.0) or 1.0)
        network.add_weighted_edges_from(zip(edges[0].tolist(), edges[1].tolist(), scaled.tolist(), strict=True))
        if n <= _MOST_EXACT and networkx.is_connected(network):
            for _, _, edge in network.edges(data=True):
                edge["length"] = 1 / np.sqrt(max(edge["weight"], 0.1))
            with one_blas_thread():
                layout = networkx.kamada_kawai_layout(network, weight="length")
        else:
            layout = networkx.spring_layout(network, k=2.2 / np.sqrt(n), iterations=150, seed=random_state)
        return np.array([layout[i] for i in range(n)])
    if isinstance(positions, Mapping):
        keys: Sequence[Any] = range(n) if names is None else names
        lost = [key for key in keys if key not in positions]
        if lost:
            raise ValueError(f"positions must have a place for every item, got none for {lost[0]!r}.")
        positions = [positions[key] for key in keys]
    xy = as_numbers(positions, "positions")
    if xy.shape != (n, 2) or not np.isfinite(xy).all():
        raise ValueError(f"positions must be finite numbers of shape ({n}, 2), got shape {xy.shape}.")
    return xy


def _draw_edges(ax: Axes, xy: NDArray, first: NDArray, second: NDArray, weights: NDArray) -> None:
    from matplotlib.collections import LineCollection

    relative = weights / weights.max(initial=1e-300)
    lines = LineCollection(
        np.stack([xy[first], xy[second]], axis=1).tolist(),
        linewidths=0.25 + 1.6 * relative,
        colors=[(0.35, 0.35, 0.35, 0.18 + 0.4 * share) for share in relative],
        zorder=1,
        capstyle="round",
    )
    ax.add_collection(lines)


def _span(xy: NDArray) -> float:
    return float(np.ptp(xy, axis=0).max()) or 1.0


def _radius(xy: NDArray) -> float:
    """Radius of a node, in the units of positions."""
    return _span(xy) * float(np.clip(0.15 / np.sqrt(len(xy)), 0.004, 0.03))


def _draw_nodes(ax: Axes, xy: NDArray, loadings: Loadings, n_colours: int) -> None:
    """A pie for each item: its loadings, those without a colour together in grey."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch, Wedge

    W = np.maximum(loadings.W, 0.0)
    dominant = loadings.dominant()
    coloured = main_dimensions(dominant, n_colours) or [0]
    parts = np.column_stack([W[:, coloured], np.delete(W, coloured, axis=1).sum(axis=1)])
    parts[dominant < 0, -1] = 1.0
    colours = [*COLOURS[: len(coloured)], OTHER]
    span, radius = _span(xy), _radius(xy)
    wedges, fills = [], []
    for centre, row in zip(xy, parts, strict=True):
        if len(xy) > _MOST_PIES:
            row = (np.arange(len(row)) == row.argmax()).astype(np.float64)
        ends = 90 - 360 * np.concatenate([[0.0], np.cumsum(row / row.sum())])
        for place in np.flatnonzero(row > 0.01 * row.sum()):
            wedges.append(Wedge((float(centre[0]), float(centre[1])), radius, ends[place + 1], ends[place]))
            fills.append(colours[place])
    rims = [Wedge((float(x), float(y)), 1.16 * radius, 0, 360) for x, y in xy]
    ax.add_collection(PatchCollection(rims, facecolor="white", edgecolor="none", zorder=2))
    ax.add_collection(PatchCollection(wedges, facecolor=fills, edgecolor="none", zorder=3))
    low, high = xy.min(axis=0), xy.max(axis=0)
    pad = 0.04 * span + 2 * radius
    ax.set_xlim(low[0] - pad, high[0] + pad)
    ax.set_ylim(low[1] - pad, high[1] + pad)
    handles = [
        Patch(facecolor=c, label=shown(described(loadings, k, 2), 26)) for c, k in zip(colours, coloured, strict=False)
    ]
    n_others = W.shape[1] - len(coloured)
    if n_others:
        handles.append(Patch(facecolor=OTHER, label=f"{n_others} other{'s' if n_others > 1 else ''}"))
    columns = 2 if max(len(str(handle.get_label())) for handle in handles) > 14 else 4
    beside: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.05), "ncols": columns}
    key(ax, handles=handles, handlelength=0.8, handleheight=0.8, **beside)
