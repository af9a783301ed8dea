"""dimension_grid: the items that have most of each dimension, as pictures or as names with bars."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import require_count, require_flag
from simdims.plots._sources import Loadings, dimension_place, loadings_of
from simdims.plots._style import (
    COLUMN,
    PLAIN,
    QUIET,
    TINT,
    bare,
    fitted,
    inner_size,
    several_axes,
    small,
    text_size,
    tiny,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Pictures are thinned to about so many pixels a side.
_MOST_PIXELS = 160


def dimension_grid(
    result: Any,
    *,
    images: Sequence[Any] | NDArray | None = None,
    labels: Sequence[str] | None = None,
    n_items: int | None = None,
    dimensions: Sequence[int | str] | None = None,
    page: int = 1,
    per_page: int = 12,
    columns: int | None = None,
    common_scale: bool = True,
    image_cmap: str = "gray",
    axes: Any = None,
) -> NDArray[np.object_]:
    """Draw the items that have most of each dimension, a panel for each.

    Parameters
    ----------
    result : Discovery, Consensus, fitted SRF, array or DataFrame of shape (n_items, n_components)
        The embedding. A DataFrame's columns, where they have names, are the titles.
    images : array or sequence with one picture an item, optional
        Arrays (grey, RGB or RGBA) or paths of files. Without them, names are drawn on bars as long as the loadings.
    labels : sequence of str, optional
        Names of the items, in place of those of `result`.
    n_items : int, optional
        Items a dimension: 8 pictures, or 6 names. Items that have nothing of a dimension are never drawn.
    dimensions : sequence of int or str, optional
        Only these, by number (from 1) or name; all by default.
    page : int, default=1
        Which page of them, counted from 1.
    per_page : int, default=12
        Dimensions on a page.
    columns : int, optional
        Panels side by side: 1 of pictures, 2 of names.
    common_scale : bool, default=True
        Whether bars of all dimensions have one scale; otherwise the longest bar of each fills its panel.
    image_cmap : str, default="gray"
        Colour map of grey pictures, which share one scale.
    axes : sequence of matplotlib Axes, optional
        One for each dimension of the page; a new figure of column width otherwise.

    Returns
    -------
    ndarray of matplotlib Axes
        One for each dimension of the page. Beside a title stand its share of the squared loadings and, where it is
        known, its reliability.

    Examples
    --------
    >>> from simdims import plots, simulate
    >>> W = simulate.dirichlet(40, 30, random_state=0)
    >>> axes = plots.dimension_grid(W, page=3, per_page=12)
    >>> len(axes), axes[0].get_title(loc="left")
    (6, 'Dimension 25')
    """
    loadings = loadings_of(result, labels)
    pictures = None if images is None else _checked_images(images, len(loadings.W))
    n_shown = (6 if pictures is None else 8) if n_items is None else n_items
    require_count("n_items", n_shown)
    places = _places(dimensions, loadings, page, per_page)
    if columns is None:
        columns = min(2, len(places)) if pictures is None else 1
    require_count("columns", columns)
    require_flag("common_scale", common_scale)
    width = COLUMN if len(places) > 1 or pictures is not None else COLUMN / 2
    panel = (0.22 + 0.125 * n_shown) if pictures is None else (0.22 + min(width / columns / n_shown, 1.2))
    rows = -(-len(places) // columns)
    tops = [loadings.top(k, n_shown) for k in places]
    strips = None if pictures is None else [[pictures[int(i)] for i in top] for top in tops]
    made = several_axes(axes, len(places), size=(width, rows * panel + 0.05), columns=columns)
    longest = float(loadings.W.max())
    for ax in made:
        bare(ax)
        ax.set_title(" ", fontsize=small(), pad=2)
    panel_width = inner_size(made[0])[0]
    for place, (ax, k) in enumerate(zip(made, places, strict=True)):
        _write_title(ax, loadings, k, panel_width)
        if strips is None or pictures is None:
            scale = longest if common_scale else float(loadings.W[:, k].max())
            _draw_bars(ax, loadings, k, tops[place], scale, n_shown, panel_width)
        else:
            _draw_pictures(ax, strips[place], n_shown, image_cmap, _grey_range(pictures))
    return made


def _places(dimensions: Sequence[int | str] | None, loadings: Loadings, page: int, per_page: int) -> list[int]:
    """The columns on one page."""
    require_count("page", page)
    require_count("per_page", per_page)
    if dimensions is None:
        wanted = list(range(loadings.W.shape[1]))
    elif isinstance(dimensions, str) or not hasattr(dimensions, "__iter__") or getattr(dimensions, "ndim", 1) != 1:
        raise TypeError(f"dimensions must be a sequence of numbers or names, got {dimensions!r}.")
    else:
        wanted = [dimension_place(dimension, loadings) for dimension in dimensions]
    if not wanted:
        raise ValueError("dimensions must name at least one dimension, got none.")
    n_pages = -(-len(wanted) // per_page)
    if page > n_pages:
        raise ValueError(
            f"page must be between 1 and {n_pages} ({len(wanted)} dimensions, {per_page} each), got {page}."
        )
    return wanted[(page - 1) * per_page : page * per_page]


def _write_title(ax: Axes, loadings: Loadings, k: int, width: float) -> None:
    about = f"{loadings.shares()[k]:.1%}"
    if loadings.reliability is not None:
        about += f", rel. {loadings.reliability[k]:.2f}"
    ax.set_title(about, loc="right", fontsize=tiny(), color=QUIET, pad=2)
    room = width - text_size(about, tiny())[0] - 4
    name = fitted(loadings.name(k), small(), room, "bold")
    ax.set_title(name, loc="left", fontsize=small(), fontweight="bold", pad=2, **PLAIN)


def _draw_bars(
    ax: Axes, loadings: Loadings, k: int, top: NDArray[np.intp], scale: float, n_rows: int, width: float
) -> None:
    """Names on pale bars: they need no margin, and a long one is cut only where the panel ends."""
    rows = np.arange(len(top))
    ax.barh(rows, loadings.W[top, k], height=0.86, color=TINT, linewidth=0)
    for row, item in zip(rows, top, strict=True):
        ax.annotate(
            fitted(loadings.item(int(item)), tiny(), width - 4),
            (0, row),
            xytext=(2, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=tiny(),
            **PLAIN,
        )
    ax.axvline(0, color="0.3", linewidth=0.6)
    ax.set_xlim(0, scale if scale > 0 else 1.0)
    ax.set_ylim(n_rows - 0.5, -0.5)


def _draw_pictures(
    ax: Axes, pictures: list[NDArray], n_places: int, cmap: str, grey_range: tuple[float, float] | None
) -> None:
    low, high = grey_range or (None, None)
    for place, picture in enumerate(pictures):
        height, width = picture.shape[:2]
        across, down = (1.0, height / width) if width >= height else (width / height, 1.0)
        left, bottom = place + (1 - across) / 2, (1 - down) / 2
        inner = (left + 0.03 * across, left + 0.97 * across, bottom + 0.03 * down, bottom + 0.97 * down)
        ax.imshow(picture, cmap=cmap, vmin=low, vmax=high, extent=inner, interpolation="antialiased", aspect="equal")
    ax.set_xlim(0, n_places)
    ax.set_ylim(0, 1)
    ax.set_anchor("W")


class _Pictures:
    """One picture an item, read and thinned when it is asked for."""

    def __init__(self, images: Sequence[Any] | NDArray) -> None:
        self.images = images

    def __getitem__(self, item: int) -> NDArray:
        picture = self.images[item]
        if isinstance(picture, str | os.PathLike):
            from matplotlib.image import imread

            if not os.path.exists(picture):
                raise FileNotFoundError(f"images must be files that exist, got {os.fspath(picture)!r} for item {item}.")
            picture = imread(os.fspath(picture))
        array = np.asarray(picture)
        if (
            array.ndim not in (2, 3)
            or (array.ndim == 3 and array.shape[2] not in (3, 4))
            or array.dtype.kind not in "buif"
        ):
            raise ValueError(f"images must be grey, RGB or RGBA arrays, got shape {array.shape} for item {item}.")
        step = max(1, max(array.shape[:2]) // _MOST_PIXELS)
        return array[::step, ::step]


def _checked_images(images: Any, n_items: int) -> _Pictures:
    is_array = isinstance(images, np.ndarray) and images.ndim
    if not is_array and (isinstance(images, str | bytes) or not isinstance(images, Sequence)):
        raise TypeError(f"images must be a sequence with one picture an item, got {type(images).__name__}.")
    if len(images) != n_items:
        raise ValueError(f"images must have one picture for each of the {n_items} items, got {len(images)}.")
    return _Pictures(images)


def _grey_range(pictures: _Pictures) -> tuple[float, float] | None:
    """One scale of grey for all pictures of an array, so that they can be compared."""
    images = pictures.images
    if not isinstance(images, np.ndarray) or images.ndim != 3 or images.dtype.kind not in "buif":
        return None
    return float(images.min()), float(images.max())
