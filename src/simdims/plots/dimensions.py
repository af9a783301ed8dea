"""dimension_grid and word_cloud: the top items of each dimension as images, bars or a word cloud."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, ParameterTypeError, plural, require_count, require_flag, shown, warn
from simdims.plots import _style as style
from simdims.plots._sources import Loadings, check_images, loadings_of
from simdims.uncertainty.fits import shares_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Images are downsampled to about this many pixels per side.
_MOST_PIXELS = 160

#: Size of the smallest word of a cloud relative to the largest.
_SMALLEST = 0.35
#: Words with less than this share of the largest loading are not drawn: the smallest size would exaggerate them.
_LEAST_WORD = 0.05
#: Points between two words.
_GAP = 1.5
#: Positions on the spiral tried for each word.
_N_PLACES = 6000


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
    """Draw the top items of each dimension, one panel per dimension.

    Parameters
    ----------
    result : Discovery, Consensus, Bootstrap, fitted SRF, array or DataFrame of shape (n_items, n_components)
        The embedding. Column names of a DataFrame are the titles. The bars of a Bootstrap have 95% intervals.
    images : array or sequence with one image per item, optional
        Arrays (grey, RGB or RGBA) or file paths. By default labels are drawn on bars with lengths proportional to
        loadings.
    labels : sequence of str, optional
        Names of the items, which override those of `result`.
    n_items : int, optional
        Items per dimension: by default 8 images, or 6 labels. Items without a positive loading are never drawn.
    dimensions : sequence of int or str, optional
        The dimensions to draw, by number (from 1) or name; by default all.
    page : int, default=1
        The page to draw, counted from 1.
    per_page : int, default=12
        Dimensions per page.
    columns : int, optional
        Panels per row: by default 1 with images, 2 without.
    common_scale : bool, default=True
        Whether all bars share one scale; otherwise the longest bar of each dimension fills its panel.
    image_cmap : str, default="gray"
        Colour map of grey images, which share one grey scale.
    axes : sequence of matplotlib Axes, optional
        One per dimension on the page; by default a new figure of column width.

    Returns
    -------
    ndarray of matplotlib Axes
        One per dimension on the page, titled with its share of the squared loadings and, if known, its reliability or
        how often it came back. If dimensions are omitted, the label below the last one says so.

    Examples
    --------
    >>> from simdims import plots, simulate
    >>> W = simulate.dirichlet(40, 30, random_state=0)
    >>> axes = plots.dimension_grid(W, page=3, per_page=12)
    >>> len(axes), axes[0].get_title(loc="left")
    (6, 'Dimension 25')
    >>> print(axes[-1].get_xlabel())
    Loading
    Dimensions 25 to 30 of 30,
    page 3 of 3
    """
    loadings = loadings_of(result, labels)
    has_images = images is not None
    if has_images:
        check_images(images, len(loadings.W))
    n_shown = (8 if has_images else 6) if n_items is None else n_items
    require_count("n_items", n_shown)
    places, note = _places(dimensions, loadings, page, per_page)
    if columns is None:
        columns = 1 if has_images else min(2, len(places))
    require_count("columns", columns)
    require_flag("common_scale", common_scale)
    width = style.COLUMN if len(places) > 1 or has_images else style.COLUMN / 2
    panel = 0.22 + (min(width / columns / n_shown, 1.2) if has_images else 0.125 * n_shown)
    tops = [loadings.top(k, n_shown) for k in places]
    strips = [[_read_image(images, int(i)) for i in top] for top in tops] if has_images else []
    size = (width, -(-len(places) // columns) * panel + (0.05 if has_images else 0.3) + 0.12 * len(note.splitlines()))
    made = style.several_axes(axes, len(places), size=size, columns=columns)
    for place, (ax, k) in enumerate(zip(made, places, strict=True)):
        style.bare(ax)
        ax.set_title(" ", fontsize=style.small(), pad=2)
        if not has_images:  # before the panels are measured
            longest = loadings.W if loadings.interval is None else np.fmax(loadings.W, loadings.interval[1])
            ax.set_xlim(0, float(longest.max() if common_scale else longest[:, k].max()) or 1.0)
            is_lowest = place + columns >= len(places)
            if is_lowest or not common_scale:
                _draw_scale(ax, "Loading" if is_lowest else "")
    if note:
        label = f"{made[-1].get_xlabel()}\n{note}".strip()
        made[-1].set_xlabel(label, fontsize=style.small(), labelpad=2, **style.PLAIN)
    panel_width = style.inner_size(made[0])[0]
    for place, (ax, k) in enumerate(zip(made, places, strict=True)):
        _write_title(ax, loadings, k, panel_width)
        if has_images:
            _draw_images(ax, strips[place], n_shown, image_cmap, _grey_range(images))
        else:
            _draw_bars(ax, loadings, k, tops[place], n_shown, panel_width)
    return made


def word_cloud(
    result: Any,
    dimension: int | str = 1,
    *,
    n_words: int = 40,
    labels: Sequence[str] | None = None,
    cmap: str = "viridis",
    ax: Axes | None = None,
) -> Axes:
    """Draw the labels of a dimension's top items, with sizes that increase with their loadings.

    The largest word is in the middle, with the others on a spiral around it, without overlap, for the current size of
    the Axes. Sizes are linear in the loadings. The same input gives the same picture.

    Parameters
    ----------
    result : Discovery, Consensus, fitted SRF, array or DataFrame of shape (n_items, n_components)
        The embedding.
    dimension : int or str, default=1
        Its number (from 1) or name.
    n_words : int, default=40
        Maximum number of words; items with less than 5% of the largest loading are not drawn.
    labels : sequence of str, optional
        Names of the items, which override those of `result`; unnamed items are shown as row numbers.
    cmap : str, default="viridis"
        Colour map, of which the darker three quarters are used.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes

    Warns
    -----
    UserWarning
        If the Axes are too small for all words at a legible size.

    Examples
    --------
    >>> from simdims import plots
    >>> ax = plots.word_cloud([[0.9], [0.4], [0.0]], labels=["dog", "cat", "car"])
    >>> [text.get_text() for text in ax.texts]
    ['dog', 'cat']
    """
    loadings = loadings_of(result, labels)
    k = loadings.find_dimension(dimension)
    require_count("n_words", n_words)
    top = loadings.top(k, n_words)
    top = top[loadings.W[top, k] >= _LEAST_WORD * loadings.W[top, k].max(initial=0.0)]
    if not top.size:
        raise ParameterError("dimension", "must have an item with a positive loading", f"none in dimension {k + 1}")
    colours = style.colour_map(cmap)
    ax = style.one_axes(ax, 2.4)
    style.bare(ax)
    title = style.fitted(loadings.name(k), style.small(), 0.97 * style.outer_width(ax), "bold")
    ax.set_title(title, fontsize=style.small(), fontweight="bold", pad=3, **style.PLAIN)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    width, height = style.inner_size(ax)
    words = style.all_shown([loadings.item(i) for i in top], 30)
    drawn = loadings.W[top, k]  # in descending order
    relative = (drawn - drawn[-1]) / (drawn[0] - drawn[-1]) if drawn[0] > drawn[-1] else np.ones(len(drawn))
    sizes, places = arrange(words, relative, width, height, smallest=0.75 * style.tiny())
    if len(places) < len(words):
        warn(f"word_cloud draws {len(places)} of {len(words)} words: the Axes are too small for more.")
    for word, size, share, (x, y) in zip(words, sizes, relative, places, strict=False):
        colour = colours(0.75 * (1 - share))
        ax.text(x / width, y / height, word, fontsize=size, color=colour, va="baseline", **style.PLAIN)
    return ax


def _places(
    dimensions: Sequence[int | str] | None, loadings: Loadings, page: int, per_page: int
) -> tuple[list[int], str]:
    """The columns on one page, and a note on which they are if not all."""
    require_count("page", page)
    require_count("per_page", per_page)
    if dimensions is None:
        wanted = list(range(loadings.W.shape[1]))
    elif isinstance(dimensions, str) or not hasattr(dimensions, "__iter__") or getattr(dimensions, "ndim", 1) != 1:
        raise ParameterTypeError("dimensions", "must be a sequence of numbers or names", shown(dimensions))
    else:
        wanted = [loadings.find_dimension(dimension) for dimension in dimensions]
    if not wanted:
        raise ParameterError("dimensions", "must name at least one dimension", "none")
    n_pages = -(-len(wanted) // per_page)
    if page > n_pages:
        pages = "1" if n_pages == 1 else f"between 1 and {n_pages}"
        rule = f"must be {pages} ({len(wanted)} {plural('dimension', len(wanted))}, {per_page} per page)"
        raise ParameterError("page", rule, str(page))
    places, n_all = wanted[(page - 1) * per_page : page * per_page], loadings.W.shape[1]
    if len(places) == n_all:
        return places, ""
    first, last = places[0] + 1, places[-1] + 1
    is_run = len(places) > 1 and places == list(range(first - 1, last))
    which = f"Dimensions {first} to {last}" if is_run else f"{len(places)} {plural('dimension', len(places))}"
    return places, f"{which} of {n_all}" + (f",\npage {page} of {n_pages}" if n_pages > 1 else "")


def _write_title(ax: Axes, loadings: Loadings, k: int, width: float) -> None:
    about = f"{shares_of(loadings.W)[k]:.1%}"
    if loadings.reliability is not None:
        about += f", rel. {loadings.reliability[k]:.2f}"
    if loadings.came_back is not None:
        about += f", back {loadings.came_back[k]:.0%}"
    ax.set_title(about, loc="right", fontsize=style.tiny(), color=style.QUIET, pad=2)
    free_width = width - style.text_size(about, style.tiny())[0] - 1.5 * style.tiny()
    names = [loadings.name(other) for other in range(loadings.W.shape[1])]
    alike = style.shared_starts(names)[style.one_line(names[k])]
    name = style.fitted(names[k], style.small(), free_width, "bold", alike=0 if loadings.names is None else alike)
    ax.set_title(name, loc="left", fontsize=style.small(), fontweight="bold", pad=2, **style.PLAIN)


def _draw_scale(ax: Axes, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    style.tidy(ax, label)
    ax.spines["bottom"].set_visible(True)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=3))


def _draw_bars(ax: Axes, loadings: Loadings, k: int, top: NDArray[np.intp], n_rows: int, width: float) -> None:
    """Draw labels on pale bars: they need no margin, and are truncated only at the edge of the panel."""
    rows = np.arange(len(top))
    ax.barh(rows, loadings.W[top, k], height=0.86, color=style.TINT, linewidth=0)
    if loadings.interval is not None:
        ax.hlines(rows + 0.36, *loadings.interval[:, top, k], color=style.MAIN, linewidth=1.0)  # below the labels
    texts = style.all_fitted([loadings.item(i) for i in top], style.tiny(), width - 6, among=loadings.labels)
    for row, text in enumerate(texts):
        style.write_beside(ax, text, (0, row), (2, 0), va="center_baseline")
    ax.axvline(0, color="0.3", linewidth=0.6)
    ax.set_ylim(n_rows - 0.5, -0.5)


def _draw_images(
    ax: Axes, images: list[NDArray], n_places: int, cmap: str, limits: tuple[float | None, float | None]
) -> None:
    look: dict[str, Any] = {"cmap": cmap, "vmin": limits[0], "vmax": limits[1], "aspect": "equal"}
    for place, image in enumerate(images):
        height, width = image.shape[:2]
        across, down = (1.0, height / width) if width >= height else (width / height, 1.0)
        left, bottom = place + (1 - across) / 2, (1 - down) / 2
        inner = (left + 0.03 * across, left + 0.97 * across, bottom + 0.03 * down, bottom + 0.97 * down)
        ax.imshow(image, extent=inner, interpolation="antialiased", **look)
    ax.set(xlim=(0, n_places), ylim=(0, 1), anchor="W")


def _read_image(images: Any, item: int) -> NDArray:
    """The image of an item as a downsampled array."""
    image = images[item]
    if isinstance(image, str | os.PathLike):
        from matplotlib.image import imread

        if not os.path.exists(image):
            raise FileNotFoundError(f"No such file: {os.fspath(image)!r}, the image of item {item}.")
        image = imread(os.fspath(image))
    array = np.asarray(image)
    is_image = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    if not is_image or array.dtype.kind not in "buif":
        raise ParameterError("images", "must be grey, RGB or RGBA arrays", f"shape {array.shape} for item {item}")
    step = max(1, max(array.shape[:2]) // _MOST_PIXELS)
    return array[::step, ::step]


def _grey_range(images: Any) -> tuple[float | None, float | None]:
    """A common grey scale for all images of an array."""
    if not isinstance(images, np.ndarray) or images.ndim != 3 or images.dtype.kind not in "buif":
        return None, None
    return float(images.min()), float(images.max())


def arrange(
    words: Sequence[str], relative: NDArray, width: float, height: float, smallest: float
) -> tuple[NDArray[np.float64], list[tuple[float, float]]]:
    """Font sizes of words and positions of their left baselines; the last words are dropped if they do not fit."""
    unit = np.array([style.text_size(word, 100.0) for word in words]) / 100.0
    wanted = _SMALLEST + (1 - _SMALLEST) * np.asarray(relative, dtype=np.float64)
    area = float(np.sum(unit[:, 0] * unit[:, 1] * wanted**2))
    widest = float((unit[:, 0] * wanted).max())
    points = min(np.sqrt(0.75 * width * height / max(area, 1e-12)), 0.5 * height, width / widest)
    while True:
        sizes = np.maximum(points * wanted, smallest)
        places = _placed(unit * sizes[:, None], width, height)
        if len(places) == len(words) or points * wanted[0] <= smallest:
            return sizes, places
        points *= 0.93


def _placed(boxes: NDArray[np.float64], width: float, height: float) -> list[tuple[float, float]]:
    """Free positions on a spiral for boxes of (width, height, depth); stops at the first box that does not fit."""
    turn = np.sqrt(np.arange(_N_PLACES) / _N_PLACES)
    angle = np.arange(_N_PLACES) * np.pi * (3 - np.sqrt(5))  # the golden angle fills the plane evenly
    x, y = width / 2 * (1 + turn * np.cos(angle)), height / 2 * (1 + turn * np.sin(angle))
    taken: list[style.Box] = []
    places: list[tuple[float, float]] = []
    for w, h, depth in boxes:
        box = np.stack([x - w / 2 - _GAP, y - h / 2 - _GAP, x + w / 2 + _GAP, y + h / 2 + _GAP], axis=1)
        free = (box[:, 0] >= 0) & (box[:, 1] >= 0) & (box[:, 2] <= width) & (box[:, 3] <= height)
        for other in taken:
            free &= style.apart(box, other)
        if not free.any():
            break
        at = int(np.argmax(free))
        taken.append(tuple(box[at]))
        places.append((float(x[at] - w / 2), float(y[at] - h / 2 + depth)))
    return places
