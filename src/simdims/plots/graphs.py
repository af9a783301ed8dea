"""graph: similarities as a network whose nodes are pie charts of their communities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from simdims._dependencies import library
from simdims._parameters import ParameterError, plural, require_count
from simdims._threads import one_blas_thread
from simdims.metrics._embedding import Names
from simdims.metrics._pairs import is_sparse
from simdims.plots import _style as style
from simdims.plots._sources import Loadings, as_positions, require_both
from simdims.similarity import Similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more items than this, nodes have the colour of their largest community.
_MOST_PIES = 500
#: The Kamada-Kawai layout, which needs all distances, is used up to this number of items.
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
    """Draw similarities as a weighted graph whose nodes are pie charts of the items' loadings.

    Parameters
    ----------
    result : Discovery, Similarity, networkx graph, or anything `as_similarity` takes
        The similarities.
    embedding : Discovery, Consensus, SRF, array or DataFrame, optional
        The soft communities, one per column; by default the embedding of a Discovery.
    n_neighbors : int, default=3
        Number of strongest edges per item to draw and to compute the layout from. A maximum spanning tree is added to
        keep connected items connected.
    positions : array-like of shape (n_items, 2) or mapping from label, optional
        Positions of the items, such as a networkx layout. By default networkx computes a layout of the drawn edges:
        Kamada-Kawai for up to 200 connected items, a spring layout otherwise.
    labels : sequence of str, optional
        Names of the items, which override those of `result`.
    n_labels : int, default=40
        Maximum number of labels, starting with the items with the strongest edges; labels never overlap.
    n_colours : int, default=7
        Number of communities with their own colour, at most 7; the others are grey.
    random_state : int, default=0
        Seed of the spring layout.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        Pie charts for up to 500 items, else dots in the colour of the largest community. The label at the bottom gives
        the number of edges drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import plots
    >>> W = np.repeat(np.eye(2), 3, axis=0)
    >>> ax = plots.graph(W @ W.T, W, positions=np.random.default_rng(0).random((6, 2)))
    >>> ax.get_xlabel()
    '6 items, all 6 edges'
    """
    similarity, loadings, names = require_both(result, embedding, labels)
    require_count("n_labels", n_labels, 0)
    require_count("n_colours", n_colours, 1, len(style.COLOURS))
    require_count("n_neighbors", n_neighbors)
    n = similarity.n_items
    first, second, weights, n_all = _backbone(similarity, n_neighbors)
    given = None if positions is None else _read_positions(positions, names, n)
    ax = style.one_axes(ax, 3.7)
    xy = _layout(n, first, second, weights, random_state) if given is None else given
    style.bare(ax)
    ax.set_aspect("equal")
    _draw_edges(ax, xy, first, second, weights)
    _draw_nodes(ax, xy, loadings, n_colours)
    n_drawn = f"all {n_all:,} edges" if len(first) == n_all else f"{len(first):,} of {n_all:,} edges"
    ax.set_xlabel(f"{n:,} items, {n_drawn}", fontsize=style.tiny(), color=style.QUIET, labelpad=1)
    if names is not None:
        radius = style.inner_size(ax)[0] * _radius(xy) / float(np.diff(ax.get_xlim())[0])
        strength = np.bincount(first, weights, n) + np.bincount(second, weights, n)
        by_strength = np.argsort(-strength, kind="stable")
        style.write_names(ax, xy, names, by_strength, most=n_labels, radius=radius, taken=[])
    return ax


def _backbone(similarity: Similarity, n_neighbors: int) -> tuple[NDArray, NDArray, NDArray[np.float64], int]:
    """Each item's strongest edges and a maximum spanning tree, and the total number of edges."""
    upper = _positive_pairs(similarity)
    # The minimum spanning tree of lengths is the maximum one of weights; old scipy versions need 32-bit indices.
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
    return first, second, weights, upper.nnz


def _positive_pairs(similarity: Similarity) -> sparse.csr_array:
    """The observed positive pairs above the diagonal."""
    if is_sparse(similarity):
        upper = sparse.csr_array(sparse.triu(similarity.values, 1), dtype=np.float64)
        upper.data = np.nan_to_num(upper.data)
    elif similarity.n_items > _MOST_DENSE:
        rule = f"must have at most {_MOST_DENSE} items where it is dense"
        raise ParameterError("result", rule, str(similarity.n_items))
    elif similarity.factors is not None:
        factors = similarity.factors.astype(np.float64)
        upper = sparse.csr_array(np.triu(factors @ factors.T, 1))
    else:
        upper = sparse.csr_array(np.triu(np.nan_to_num(similarity.values.astype(np.float64)), 1))
    if similarity.weights is not None:
        upper = sparse.csr_array(upper.multiply(sparse.csr_array(similarity.weights) > 0))
    upper.eliminate_zeros()
    return upper


def _layout(
    n: int, first: NDArray, second: NDArray, weights: NDArray[np.float64], random_state: int
) -> NDArray[np.float64]:
    networkx = library("networkx", "plots.graph without positions", "networkx")
    network = networkx.Graph()
    network.add_nodes_from(range(n))
    scaled = weights / (weights.max(initial=0.0) or 1.0)
    network.add_weighted_edges_from(zip(first.tolist(), second.tolist(), scaled.tolist(), strict=True))
    if n <= _MOST_EXACT and networkx.is_connected(network):
        for _, _, edge in network.edges(data=True):
            edge["length"] = 1 / np.sqrt(max(edge["weight"], 0.1))
        with one_blas_thread():
            layout = networkx.kamada_kawai_layout(network, weight="length")
    else:
        layout = networkx.spring_layout(network, k=2.2 / np.sqrt(n), iterations=150, seed=random_state)
    return np.array([layout[i] for i in range(n)])


def _read_positions(positions: Any, names: Names, n: int) -> NDArray[np.float64]:
    if isinstance(positions, Mapping):
        keys: Sequence[Any] = range(n) if names is None else names
        missing = [key for key in keys if key not in positions]
        if missing:
            raise ParameterError("positions", "must have a position for every item", f"none for {missing[0]!r}")
        positions = [positions[key] for key in keys]
    return as_positions(positions, "positions", n)


def _draw_edges(ax: Axes, xy: NDArray, first: NDArray, second: NDArray, weights: NDArray) -> None:
    from matplotlib.collections import LineCollection

    relative = weights / weights.max(initial=1e-300)
    colours = [(0.35, 0.35, 0.35, 0.18 + 0.4 * share) for share in relative]
    ends = np.stack([xy[first], xy[second]], axis=1).tolist()
    widths = 0.25 + 1.6 * relative
    ax.add_collection(LineCollection(ends, linewidths=widths, colors=colours, zorder=1, capstyle="round"))


def _span(xy: NDArray) -> float:
    return float(np.ptp(xy, axis=0).max()) or 1.0


def _radius(xy: NDArray) -> float:
    """Radius of a node, in data units."""
    return _span(xy) * float(np.clip(0.15 / np.sqrt(len(xy)), 0.004, 0.03))


def _draw_nodes(ax: Axes, xy: NDArray, loadings: Loadings, n_colours: int) -> None:
    """Draw each item as a pie chart of its loadings; dimensions without a colour are grey."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch, Wedge

    W = np.maximum(loadings.W, 0.0)
    coloured = loadings.main_dimensions(n_colours) or [0]
    parts = np.column_stack([W[:, coloured], np.delete(W, coloured, axis=1).sum(axis=1)])
    parts[loadings.dominant() < 0, -1] = 1.0
    colours = [*style.COLOURS[: len(coloured)], style.OTHER]
    radius = _radius(xy)
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
    pad = 0.04 * _span(xy) + 2 * radius
    low, high = xy.min(axis=0) - pad, xy.max(axis=0) + pad
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    texts = loadings.descriptions(coloured, 2, style.tiny(), style.key_width(ax))
    n_others = W.shape[1] - len(coloured)
    texts += [f"{n_others} {plural('other', n_others)}"] if n_others else []
    handles = [Patch(facecolor=colour) for colour, _ in zip(colours, texts, strict=False)]
    style.group_key(ax, handles, texts, below=0.05, handleheight=0.8)
