"""similarity_heatmap: similarities as a picture, items ordered by their dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parameters import as_range, require_choice, require_count, require_flag
from simdims.plots._sources import Loadings, both_of
from simdims.plots._style import (
    PLAIN,
    colour_map,
    key,
    one_axes,
    root_figure,
    shown,
    small,
    tidy,
    tiny,
)
from simdims.similarity import Similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLOCK_ROWS = 256
#: Names beside the rows, up to so many.
_MOST_NAMES = 60
#: Ticks between groups, up to so many.
_MOST_GROUPS = 80
#: Values above this quantile of the positive ones share one colour: a few large ones would darken all others.
_BRIGHTEST = 0.99


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
    """Draw similarities as a heatmap in which items of one dimension stand together.

    Parameters
    ----------
    result : Discovery, Similarity, Consensus, fitted SRF, or anything `as_similarity` takes
        The similarities, or an embedding that predicts some.
    embedding : Discovery, Consensus, SRF, array or DataFrame, optional
        The embedding that orders the items and predicts; a Discovery, a Consensus and an SRF bring their own.
    values : {"observed", "predicted", "both"}, optional
        What to draw; "both" has the observed similarities below the diagonal and the predicted ones above. By default
        the observed ones where there are any.
    order : "dimensions", sequence of int or None, default="dimensions"
        Items by their largest dimension, and within it by their loading; or a permutation; or, with None and where
        there is no embedding, as they came.
    labels : sequence of str, optional
        Names of the items, in place of those of `result`; drawn for up to 60 items.
    max_items : int, default=400
        With more items than this, neighbouring ones are drawn together, as the mean of their observed pairs; the label
        of the x-axis says so.
    limits : (float, float), optional
        Values at the ends of the colour scale. By default those of pairs of two items, up to the 0.99 quantile of the
        positive ones.
    cmap : str, default="viridis"
        Name of a colour map.
    colorbar : bool, default=True
        Whether to draw the colour scale; it takes its place from `ax`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

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
        raise ValueError(f'values must be "predicted" where result holds no similarities, got {values!r}.')
    if loadings is None and values != "observed":
        raise ValueError(f'values must be "observed" where there is no embedding, got {values!r}.')
    require_count("max_items", max_items)
    require_flag("colorbar", colorbar)
    n_items = similarity.n_items if similarity is not None else len(loadings.W)  # type: ignore[union-attr]
    rows, is_grouped = _row_order(order, loadings, n_items)
    size = -(-n_items // max_items)
    block = np.empty(n_items, dtype=np.intp)
    block[rows] = np.arange(n_items) // size
    cells = _cells(similarity, loadings, values, block)
    ax = one_axes(ax, 3.0)
    _draw(ax, cells, limits, cmap, colorbar)
    if values == "both":
        ax.set_title("Below: observed. Above: predicted.", fontsize=small())
    what = f"{n_items:,} {'item' if n_items == 1 else 'items'}"
    if size > 1:
        what += f", means of blocks of {size} × {size}"
    tidy(ax, what)
    ax.spines[:].set_visible(False)
    ax.set_xticks([])
    ax.set_yticks([])
    if is_grouped and loadings is not None:
        _mark_dimensions(ax, loadings.dominant()[rows], size, loadings)
    if names is not None and n_items <= _MOST_NAMES and size == 1:
        _write_names(ax, [names[i] for i in rows])
    return ax


def _row_order(order: Any, loadings: Loadings | None, n_items: int) -> tuple[NDArray[np.intp], bool]:
    """The order of the items, and whether it groups them by dimension."""
    if order is None:
        return np.arange(n_items), False
    if isinstance(order, str):
        require_choice("order", order, ("dimensions",))
        return (np.arange(n_items), False) if loadings is None else (by_dimension(loadings), True)
    try:
        rows = np.asarray(order)
    except ValueError:
        rows = np.empty(0)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or sorted(rows.tolist()) != list(range(n_items)):
        raise ValueError(f"order must hold each row from 0 to {n_items - 1} once, got another sequence.")
    return rows.astype(np.intp), False


def by_dimension(loadings: Loadings) -> NDArray[np.intp]:
    """Items by their largest dimension, within it by their loading; those without any come last."""
    dominant = loadings.dominant()
    group = np.where(dominant < 0, loadings.W.shape[1], dominant)
    return np.lexsort((-loadings.W.max(axis=1), group))


def _cells(
    similarity: Similarity | None, loadings: Loadings | None, values: str, block: NDArray[np.intp]
) -> NDArray[np.float64]:
    predicted = None
    if values != "observed" and loadings is not None:
        predicted = _product_means(loadings.W, block)
        if values == "predicted":
            return predicted
    assert similarity is not None
    observed = observed_means(similarity, block)
    return observed if predicted is None else np.where(np.tri(len(observed), dtype=bool), observed, predicted)


def observed_means(similarity: Similarity, block: NDArray[np.intp]) -> NDArray[np.float64]:
    """Means of the observed entries of each pair of blocks; NaN where there is none."""
    if similarity.factors is not None:
        return _product_means(similarity.factors, block)
    sums, counts = (_stored_sums if sparse.issparse(similarity.values) else _dense_sums)(similarity, block)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _product_means(F: NDArray, block: NDArray[np.intp]) -> NDArray[np.float64]:
    """Means of f_i . f_j over blocks, from the means of the rows of each."""
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
    for start in range(0, similarity.n_items, _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
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


def _draw(ax: Axes, cells: NDArray, limits: tuple[float, float] | None, cmap: str, colorbar: bool) -> None:
    colours = colour_map(cmap).with_extremes(bad="white")
    low, high = _limits(cells) if limits is None else as_range(limits, "limits", "None")
    image = ax.imshow(
        np.ma.masked_invalid(cells), cmap=colours, vmin=low, vmax=high, interpolation="nearest", aspect="equal"
    )
    is_missing = bool(np.isnan(cells).any())
    figure: Any = ax.get_figure()
    if colorbar:
        above = "max" if np.nanmax(cells, initial=low) > high else "neither"
        bar = figure.colorbar(image, ax=ax, shrink=0.75, aspect=22, pad=0.02, extend=above)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=tiny(), width=0.6, length=2)
        bar.set_label("Similarity", fontsize=small())
    if is_missing and colorbar:
        _mark_missing(bar.ax, loc="upper left", bbox_to_anchor=(-0.4, -0.02))
    elif is_missing:
        _mark_missing(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0))


def _mark_missing(ax: Axes, **place: Any) -> None:
    from matplotlib.patches import Patch

    patch = Patch(facecolor="white", edgecolor="0.4", linewidth=0.6, label="missing")
    key(ax, handles=[patch], handlelength=0.9, handleheight=0.9, **place)


def _limits(cells: NDArray) -> tuple[float, float]:
    others = cells[~np.eye(len(cells), dtype=bool)]
    others = others[np.isfinite(others)]
    if not others.size:
        others = cells[np.isfinite(cells)]
    low = float(others.min(initial=0.0))
    positive = others[others > 0]
    high = float(np.quantile(positive, _BRIGHTEST)) if positive.size else low + 1.0
    return low, max(high, low + 1e-12)


def _mark_dimensions(ax: Axes, dominant: NDArray[np.intp], size: int, loadings: Loadings) -> None:
    """Ticks between groups, and as many numbers of groups as there is room for."""
    n_blocks = -(-len(dominant) // size)
    starts = np.flatnonzero(np.diff(dominant, prepend=dominant[0] - 1))
    ends = np.append(starts[1:], len(dominant))
    room = (0.01 + 0.022 * len(str(dominant.max() + 1))) * n_blocks
    centres: list[float] = []
    texts: list[str] = []
    for start, end in zip(starts, ends, strict=True):
        centre = (start + end) / 2 / size - 0.5
        if not centres or centre - centres[-1] >= room:
            centres.append(centre)
            texts.append("none" if dominant[start] < 0 else str(dominant[start] + 1))
    inner = starts[1:] / size - 0.5 if len(starts) <= _MOST_GROUPS else np.empty(0)
    ax.set_xticks(centres, labels=texts, minor=False)
    ax.set_xticks(inner, minor=True)
    ax.set_yticks(centres, labels=texts, minor=False)
    ax.set_yticks(inner, minor=True)
    ax.tick_params(which="major", length=0, labelsize=tiny())
    ax.tick_params(which="minor", length=3, width=0.5)
    ax.set_ylabel("Largest dimension of each item", fontsize=small())
    ax.set_xlim(-0.5, n_blocks - 0.5)
    ax.set_ylim(n_blocks - 0.5, -0.5)


def _write_names(ax: Axes, names: list[str]) -> None:
    """A name at every row, as large as the rows allow."""
    row_points = 72 * 0.72 * root_figure(ax).get_size_inches()[1] * ax.get_position().height / len(names)
    points = float(np.clip(1.25 * row_points, 0.35 * tiny(), tiny()))
    ax.set_yticks(range(len(names)), labels=[shown(name, 22) for name in names], fontsize=points, **PLAIN)
    ax.set_yticks([], minor=True)
    ax.set_ylabel("")
