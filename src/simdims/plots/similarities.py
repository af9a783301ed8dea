"""similarity_heatmap and reconstruction: similarities as an image, and observed against predicted ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parameters import ParameterError, as_range, require_choice, require_count, require_flag
from simdims.discovery import Discovery
from simdims.metrics import explained_variance
from simdims.metrics._pairs import Pairs, is_sparse, known_values, pair_products, pairs_of_ranks, row_blocks
from simdims.plots import _style as style
from simdims.plots._sources import Loadings, both_of, require_both
from simdims.similarity import Similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of items with row labels.
_MOST_LABELS = 60
#: The same in a figure of column width.
_MOST_NARROW = 30
#: Largest share of the width for row labels.
_NAMES = 0.28
#: Smallest size of labels, relative to tick labels.
_SMALLEST = 0.65
#: Maximum number of groups with ticks between them.
_MOST_GROUPS = 80
#: Positive values above this quantile share one colour, so that outliers do not darken the others.
_BRIGHTEST = 0.99
#: More pairs than this are drawn as counts in hexagons.
_MOST_DOTS = 2000


def similarity_heatmap(
    result: Any,
    embedding: Any = None,
    *,
    values: str | None = None,
    order: str | Sequence[int] | None = "dimensions",
    labels: Sequence[str] | None = None,
    max_items: int = 400,
    limits: tuple[float, float] | None = None,
    cmap: str = "viridis",
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw similarities as a heatmap, with items grouped by dimension.

    Parameters
    ----------
    result : Discovery, Similarity, Consensus, fitted SRF, or anything `as_similarity` takes
        The similarities, or an embedding that predicts them.
    embedding : Discovery, Consensus, SRF, array or DataFrame, optional
        The embedding for the order of the items and the predictions; by default that of a Discovery, a Consensus or an
        SRF.
    values : {"observed", "predicted", "both"}, optional
        What to draw; "both" has the observed similarities below the diagonal and the predicted ones above. The default
        is "observed" if there are any observed similarities.
    order : "dimensions", sequence of int or None, default="dimensions"
        "dimensions" sorts items by their largest dimension, and within it by their loading; a sequence is a permutation
        of the rows; None, or a result without an embedding, keeps their order.
    labels : sequence of str, optional
        Names of the items, which override those of `result`; drawn for up to 60 items if rows are tall enough to be
        legible. From 31 items on, a new figure is two columns wide to make room for them.
    max_items : int, default=400
        With more items, blocks of neighbouring items are drawn as the mean of their observed pairs; the x-axis label
        says so.
    limits : (float, float), optional
        Values at the ends of the colour scale. By default the range of the off-diagonal pairs, up to the 0.99 quantile
        of the positive ones.
    cmap : str, default="viridis"
        Name of a colour map.
    colorbar : bool, default=True
        Whether to draw the colour bar, which takes its space from `ax`.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        Missing pairs are white.

    Examples
    --------
    >>> from simdims import SRF, plots, simulate
    >>> W = simulate.dirichlet(40, 3, random_state=0)
    >>> srf = SRF(3, random_state=0).fit(W @ W.T)
    >>> ax = plots.similarity_heatmap(W @ W.T, srf, values="both")
    >>> ax.get_title()
    'Below: observed. Above: predicted.'
    """
    similarity, loadings, names = both_of(result, embedding, labels)
    if values is None:
        values = "predicted" if similarity is None else "observed"
    require_choice("values", values, ("observed", "predicted", "both"))
    if similarity is None and values != "predicted":
        raise ParameterError("values", 'must be "predicted" where result holds no similarities', repr(values))
    if loadings is None and values != "observed":
        raise ParameterError("values", 'must be "observed" where there is no embedding', repr(values))
    require_count("max_items", max_items)
    require_flag("colorbar", colorbar)
    n_items = similarity.n_items if similarity is not None else len(loadings.W)  # type: ignore[union-attr]
    rows = _row_order(order, loadings, n_items)
    cells, size = block_means(similarity, loadings, values, rows, max_items)
    is_named = names is not None and n_items <= _MOST_LABELS and size == 1
    ax = style.one_axes(ax, *((5.8, 2 * style.COLUMN) if is_named and n_items > _MOST_NARROW else (3.0,)))
    _draw_cells(ax, cells, limits, cmap, colorbar)
    if values == "both":
        ax.set_title("Below: observed. Above: predicted.", fontsize=style.small())
    blocks = f", means of blocks of {size} × {size}" if size > 1 else ""
    style.tidy(ax, f"{n_items:,} {'item' if n_items == 1 else 'items'}{blocks}")
    style.bare(ax)
    if isinstance(order, str) and loadings is not None:
        _mark_dimensions(ax, loadings.dominant()[rows], size)
    if names is not None and is_named:
        _write_labels(ax, [names[i] for i in rows])
    return ax


def reconstruction(
    result: Any,
    embedding: Any = None,
    *,
    max_pairs: int = 200_000,
    gridsize: int = 40,
    cmap: str = "viridis",
    ax: Axes | None = None,
) -> Axes:
    """Draw observed against predicted similarities, as one point per pair or as counts of pairs in hexagons.

    Parameters
    ----------
    result : Discovery, Similarity, or anything `as_similarity` takes
        The observed similarities.
    embedding : Discovery, Consensus, SRF, array or DataFrame, optional
        The embedding that predicts them; by default that of a Discovery.
    max_pairs : int, default=200000
        With more pairs, a fixed random sample of them is drawn, and the title says so.
    gridsize : int, default=40
        Number of hexagons along x, if there are more than 2,000 pairs.
    cmap : str, default="viridis"
        Colour map of the counts, on a logarithmic scale.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        Observed off-diagonal pairs, or the stored pairs of sparse similarities. R2 is over all observed pairs. For
        several systems, both are of the average over systems.

    Examples
    --------
    >>> from simdims import SRF, plots, simulate
    >>> W = simulate.dirichlet(40, 3, random_state=0)
    >>> S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
    >>> ax = plots.reconstruction(S, SRF(3, random_state=0).fit(S))
    >>> ax.get_xlabel()
    'Predicted similarity'
    """
    similarity, loadings, _ = require_both(result, embedding)
    require_count("max_pairs", max_pairs)
    require_count("gridsize", gridsize)
    (first, second), n_pairs = _some_pairs(similarity, max_pairs)
    observed = known_values(similarity)(first, second)
    predicted = pair_products(loadings.W, first, second)
    known = np.isfinite(observed)
    if not known.any():
        raise ParameterError("result", "must hold an observed pair of two different items", "none")
    ax = style.one_axes(ax, 2.9, 3.2)
    _draw_pairs(ax, predicted[known], observed[known], gridsize, cmap)
    n_systems = 1 if not isinstance(result, Discovery) or result.weights is None else len(result.weights)
    some_stored = is_sparse(similarity) and n_pairs < similarity.n_items * (similarity.n_items - 1) // 2
    of = f", mean of {n_systems} systems" if n_systems > 1 else " (stored pairs)" if some_stored else ""
    style.tidy(ax, "Predicted similarity", f"Observed similarity{of}")
    # The R2 of a joint result is that of single systems, which vary more around the predictions than their average.
    is_own = isinstance(result, Discovery) and embedding is None and n_systems == 1
    own = result.metrics.get("explained_variance") if is_own else None
    R2 = explained_variance(similarity, loadings.W) if own is None else own
    random = "" if len(first) == n_pairs else "random "
    ax.set_title(f"In-sample R² = {R2:.2f}, {known.sum():,} {random}pairs", fontsize=style.tiny(), pad=3)
    return ax


def _row_order(order: Any, loadings: Loadings | None, n_items: int) -> NDArray[np.intp]:
    if isinstance(order, str):
        require_choice("order", order, ("dimensions",))
        return np.arange(n_items) if loadings is None else order_by_dimension(loadings)
    if order is None:
        return np.arange(n_items)
    try:
        rows = np.asarray(order)
    except ValueError:
        rows = np.empty(0)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or sorted(rows.tolist()) != list(range(n_items)):
        raise ParameterError("order", f"must hold each row from 0 to {n_items - 1} once", "another sequence")
    return rows.astype(np.intp)


def order_by_dimension(loadings: Loadings) -> NDArray[np.intp]:
    """Sort items by their largest dimension, and within it by their loading; items without loadings come last."""
    dominant = loadings.dominant()
    group = np.where(dominant < 0, loadings.W.shape[1], dominant)
    return np.lexsort((-loadings.W.max(axis=1), group))


def block_means(
    similarity: Similarity | None, loadings: Loadings | None, values: str, order: NDArray[np.intp], most: int
) -> tuple[NDArray[np.float64], int]:
    """Mean similarity for each pair of blocks of neighbouring items (at most so many), and the size of the blocks.

    With "both" values, the observed ones are below the diagonal and the predicted ones above.
    """
    size = -(-len(order) // most)
    block = np.empty(len(order), dtype=np.intp)
    block[order] = np.arange(len(order)) // size
    predicted = None
    if values != "observed" and loadings is not None:
        predicted = _product_means(loadings.W, block)
        if values == "predicted":
            return predicted, size
    assert similarity is not None
    observed = observed_means(similarity, block)
    return observed if predicted is None else np.where(np.tri(len(observed), dtype=bool), observed, predicted), size


def observed_means(similarity: Similarity, block: NDArray[np.intp]) -> NDArray[np.float64]:
    """Mean of the observed entries for each pair of blocks; NaN if there are none."""
    if similarity.factors is not None:
        return _product_means(similarity.factors, block)
    sums, counts = (_stored_sums if sparse.issparse(similarity.values) else _dense_sums)(similarity, block)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _product_means(F: NDArray, block: NDArray[np.intp]) -> NDArray[np.float64]:
    """Block means of f_i . f_j, from the block means of rows."""
    means = (_indicator(block) @ F.astype(np.float64)) / np.bincount(block)[:, None]
    return means @ means.T


def _indicator(block: NDArray[np.intp]) -> sparse.csr_array:
    """Blocks x items: 1 where an item is in a block."""
    n = len(block)
    return sparse.csr_array((np.ones(n), (block, np.arange(n))), shape=(int(block.max()) + 1, n))


def _dense_sums(similarity: Similarity, block: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    members = _indicator(block)
    n_blocks = members.shape[0]
    sums, counts = np.zeros((n_blocks, n_blocks)), np.zeros((n_blocks, n_blocks))
    for rows in row_blocks(similarity.n_items):
        part = similarity.values[rows].astype(np.float64)
        known = ~np.isnan(part)
        if similarity.weights is not None:
            known &= similarity.weights[rows] > 0
        np.add.at(sums, block[rows], (members @ np.where(known, part, 0.0).T).T)
        np.add.at(counts, block[rows], (members @ known.T.astype(np.float64)).T)
    return sums, counts


def _stored_sums(similarity: Similarity, block: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    values, n = similarity.values, similarity.n_items
    rows = np.repeat(np.arange(n), np.diff(values.indptr))
    known = ~np.isnan(values.data)
    if similarity.weights is not None:
        known &= similarity.weights.data > 0

    def per_block(amounts: NDArray) -> NDArray:
        shape = (int(block.max()) + 1,) * 2
        return sparse.coo_array((amounts, (block[rows], block[values.indices])), shape=shape).toarray()

    sums = per_block(np.where(known, values.data, 0.0).astype(np.float64))
    if not similarity.absent_weight:
        return sums, per_block(known.astype(np.float64))
    sizes = np.bincount(block).astype(np.float64)
    has_diagonal = np.zeros(n, dtype=bool)
    has_diagonal[rows[rows == values.indices]] = True
    counts = np.outer(sizes, sizes) - per_block((~known).astype(np.float64))
    return sums, counts - np.diag(np.bincount(block, weights=~has_diagonal))


def _draw_cells(ax: Axes, cells: NDArray, limits: tuple[float, float] | None, cmap: str, colorbar: bool) -> None:
    from matplotlib.patches import Patch

    colours = style.colour_map(cmap).with_extremes(bad="white")
    low, high = colour_limits(cells) if limits is None else as_range(limits, "limits", "None")
    look: dict[str, Any] = {"cmap": colours, "vmin": low, "vmax": high, "interpolation": "nearest", "aspect": "equal"}
    image = ax.imshow(np.ma.masked_invalid(cells), **look)
    key_ax, place = ax, {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    if colorbar:
        above = "max" if np.nanmax(cells, initial=low) > high else "neither"
        key_ax = style.colour_bar(image, ax, "Similarity", extend=above).ax
        place = {"loc": "upper left", "bbox_to_anchor": (-0.4, -0.02)}
    if np.isnan(cells).any():
        patch = Patch(facecolor="white", edgecolor="0.4", linewidth=0.6, label="missing")
        style.key(key_ax, handles=[patch], handlelength=0.9, handleheight=0.9, **place)


def colour_limits(cells: NDArray) -> tuple[float, float]:
    """The ends of the colour scale: the range of off-diagonal pairs, without the largest positive ones."""
    others = cells[~np.eye(len(cells), dtype=bool)]
    others = others[np.isfinite(others)]
    if not others.size:
        others = cells[np.isfinite(cells)]
    low = float(others.min(initial=0.0))
    positive = others[others > 0]
    high = float(np.quantile(positive, _BRIGHTEST)) if positive.size else low + 1.0
    return low, max(high, low + 1e-12)


def _mark_dimensions(ax: Axes, dominant: NDArray[np.intp], size: int) -> None:
    """Draw ticks between groups, and as many dimension numbers as fit."""
    n_blocks = -(-len(dominant) // size)
    starts = np.flatnonzero(np.diff(dominant, prepend=dominant[0] - 1))
    ends = np.append(starts[1:], len(dominant))
    closest = (0.01 + 0.022 * len(str(dominant.max() + 1))) * n_blocks
    centres: list[float] = []
    texts: list[str] = []
    for start, end in zip(starts, ends, strict=True):
        centre = (start + end) / 2 / size - 0.5
        if not centres or centre - centres[-1] >= closest:
            centres.append(centre)
            texts.append("none" if dominant[start] < 0 else str(dominant[start] + 1))
    inner = starts[1:] / size - 0.5 if len(starts) <= _MOST_GROUPS else np.empty(0)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(centres, labels=texts)
        axis.set_ticks(inner, minor=True)
    ax.tick_params(which="major", length=0, labelsize=style.tiny())
    ax.tick_params(which="minor", length=3, width=0.5)
    ax.set_ylabel("Largest dimension of each item", fontsize=style.small())
    ax.set(xlim=(-0.5, n_blocks - 0.5), ylim=(n_blocks - 0.5, -0.5))


def _write_labels(ax: Axes, labels: list[str]) -> None:
    """Label every row in the largest size that fits; none if illegible."""
    texts = style.all_fitted(labels, style.tiny(), _NAMES * style.outer_width(ax))
    before = ax.get_yticks(), [text.get_text() for text in ax.get_yticklabels()], ax.get_ylabel()
    ax.set_ylabel("")
    ax.set_yticks(range(len(labels)), labels=texts, fontsize=style.tiny(), **style.PLAIN)
    points = min(style.tiny(), 0.9 * style.inner_size(ax)[1] / len(labels))
    if points < _SMALLEST * style.tiny():
        ax.set_yticks(before[0], labels=before[1], fontsize=style.tiny())
        ax.set_ylabel(before[2])
        return
    ax.set_yticks(range(len(labels)), labels=texts, fontsize=points, **style.PLAIN)
    ax.set_yticks([], minor=True)


def _some_pairs(similarity: Similarity, most: int) -> tuple[Pairs, int]:
    """Off-diagonal pairs, each once: all, or a random sample; and their total number."""
    n = similarity.n_items
    if is_sparse(similarity):
        above = sparse.triu(similarity.values, 1, format="coo")
        chosen = _sample(above.nnz, most)
        return (above.row[chosen].astype(np.int64), above.col[chosen].astype(np.int64)), above.nnz
    n_pairs = n * (n - 1) // 2
    # Missing pairs cannot be drawn: the fewer are observed, the more must be sampled.
    n_drawn = n_pairs if n_pairs <= most else int(most / max(similarity.density, most / n_pairs))
    return pairs_of_ranks(_sample(n_pairs, n_drawn), n), n_pairs


def _sample(n: int, most: int) -> NDArray[np.int64]:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False, shuffle=False))


def _draw_pairs(ax: Axes, predicted: NDArray, observed: NDArray, gridsize: int, cmap: str) -> None:
    low = float(min(predicted.min(), observed.min(), 0.0))
    high = float(max(predicted.max(), observed.max()))
    high = high if high > low else low + 1.0
    if len(predicted) <= _MOST_DOTS:
        ax.plot(predicted, observed, "o", ms=2.2, color=style.MAIN, alpha=0.45, mew=0)
    else:
        bins: dict[str, Any] = {"gridsize": gridsize, "extent": (low, high, low, high), "bins": "log", "mincnt": 1}
        style.colour_bar(ax.hexbin(predicted, observed, cmap=cmap, linewidths=0.1, **bins), ax, "Pairs")
    ax.axline((low, low), (high, high), color=style.ACCENT, linewidth=0.8, linestyle="--")
    margin = 0.03 * (high - low)
    limits = (low - margin, high + margin)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
