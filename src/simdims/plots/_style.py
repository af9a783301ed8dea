"""How every plot looks: colours, sizes of text, a new figure of column width, and labels taken literally.

Nothing here changes matplotlib's own settings. Text is 0.7 or 0.6 of its ``font.size``: 7 and 6 points unless the user
wants it otherwise, as journals print it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._dependencies import library

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's colours, which most colour-blind people tell apart; their yellow is too light for a white page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MAIN, ACCENT, SECOND = COLOURS[:3]
OTHER = "#B0B0B0"
TINT = "#CFE3F1"
QUIET = "#595959"

#: Width of one column of a journal, in inches.
COLUMN = 3.5
_DPI = 200
#: With more marks than this, names may lie over marks, or there would be no room for any.
_MOST_MARKS_AVOIDED = 250
_ALWAYS_NAMED = 8

#: Left, bottom, right, top.
Box = tuple[float, float, float, float]

#: A label is text, whatever it holds: "$5" is no formula.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}


def save_figure(axes: Any, path: str | os.PathLike[str], *, dpi: int = 300) -> None:
    """Write the figure of some Axes to a file; in .pdf and .svg text stays text that can be edited and searched.

    Parameters
    ----------
    axes : Axes, array of Axes or Figure
        What a plot returned.
    path : path
        Its ending chooses the format: .pdf, .svg, .eps, .png, ...
    dpi : int, default=300
        Resolution of .png, and of pictures inside the others.

    Examples
    --------
    >>> from simdims import plots
    >>> plots.save_figure(plots.reliability([0.9, 0.8]), "reliability.pdf")  # doctest: +SKIP
    """
    matplotlib = library("matplotlib", "simdims.plots", "matplotlib")
    first = axes if hasattr(axes, "savefig") else next(iter(np.ravel(np.asarray(axes, dtype=object))), None)
    figure = first if hasattr(first, "savefig") else getattr(first, "figure", None)
    if figure is None:
        raise TypeError(f"axes must be matplotlib Axes or a Figure, got {type(first).__name__}.")
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"path must lie in a folder that is there, got {str(path)!r}.")
    known = figure.canvas.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in known:
        raise ValueError(f"path must end in one of {', '.join('.' + one for one in known)}, got {str(path)!r}.")
    with matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "ps.fonttype": 42}):
        figure.savefig(path, dpi=dpi)


def colour_map(name: Any, argument: str = "cmap") -> Any:
    """The colour map of a name."""
    matplotlib = library("matplotlib", "simdims.plots", "matplotlib")
    if not isinstance(name, str) or name not in matplotlib.colormaps:
        raise ValueError(f"{argument} must be the name of a colour map of matplotlib, got {name!r}.")
    return matplotlib.colormaps[name]


def one_axes(ax: Axes | None, height: float, width: float = COLUMN) -> Axes:
    """The given Axes, or those of a new figure."""
    pyplot = library("matplotlib.pyplot", "simdims.plots", "matplotlib")
    if ax is None:
        return pyplot.subplots(figsize=(width, height), dpi=_DPI, layout="constrained")[1]
    _check_axes(ax, "ax")
    return ax


def several_axes(axes: Any, n_needed: int, *, size: tuple[float, float], columns: int) -> NDArray[np.object_]:
    """Exactly `n_needed` Axes: the given ones, or those of a new figure with so many columns."""
    pyplot = library("matplotlib.pyplot", "simdims.plots", "matplotlib")
    if axes is not None:
        given = np.ravel(np.asarray(axes, dtype=object))
        if len(given) != n_needed:
            raise ValueError(f"axes must hold {n_needed} Axes, one for each panel, got {len(given)}.")
        for ax in given:
            _check_axes(ax, "axes")
        return given
    figure = pyplot.figure(figsize=size, dpi=_DPI, layout="constrained")
    rows = -(-n_needed // columns)
    grid = figure.add_gridspec(rows, columns)
    made = np.empty(n_needed, dtype=object)
    for place in range(n_needed):
        made[place] = figure.add_subplot(grid[place // columns, place % columns])
    return made


def small() -> float:
    """Size of labels, in points."""
    return 0.7 * _font_size()


def tiny() -> float:
    """Size of what stands at ticks and inside panels, in points."""
    return 0.6 * _font_size()


def tidy(ax: Axes, xlabel: str = "", ylabel: str = "") -> None:
    """Small text, thin lines, no frame above and to the right."""
    ax.spines[["top", "right"]].set_visible(False)
    for spine in ax.spines.values():
        spine.set_linewidth(0.6)
    ax.tick_params(labelsize=tiny(), width=0.6, length=2.5, pad=2)
    ax.set_xlabel(xlabel, fontsize=small(), labelpad=2, **PLAIN)
    ax.set_ylabel(ylabel, fontsize=small(), labelpad=2, **PLAIN)


def bare(ax: Axes) -> None:
    """No frame, no ticks: what is drawn is all there is."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)


def key(ax: Axes, **options: Any) -> Any:
    """A small legend without a frame, its texts taken literally."""
    settings: dict[str, Any] = {"fontsize": tiny(), "frameon": False, "handlelength": 1.4, "borderaxespad": 0.3}
    legend = ax.legend(**{**settings, "handletextpad": 0.5, "labelspacing": 0.3, "columnspacing": 1.0, **options})
    for text in legend.get_texts():
        text.set(**PLAIN)
    return legend


def whole_ticks(ax: Axes) -> None:
    """Whole numbers along x, few enough to be read."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))


def text_size(text: str, points: float, weight: str = "normal") -> tuple[float, float, float]:
    """Width, height and depth below the baseline of a text, in points; no renderer is needed."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points, weight=weight)
    width, height, depth = text_to_path.get_text_width_height_descent(text, font, False)
    return float(width), float(height), float(depth)


def fitted(text: str, points: float, width: float, weight: str = "normal") -> str:
    """A text, shortened with an ellipsis until it is no wider than `width` points."""
    text = one_line(text)
    if text_size(text, points, weight)[0] <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_size(text[:middle] + "…", points, weight)[0] <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"


def shown(text: str, most: int = 24) -> str:
    """A text on one line, of at most so many characters."""
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """A text without line breaks and characters that cannot be printed."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(text)).split())


def root_figure(ax: Axes) -> Any:
    """The figure that Axes stand in, also where they stand in a part of it."""
    figure: Any = ax.figure
    return figure.figure


def inner_size(ax: Axes) -> tuple[float, float]:
    """Width and height of Axes in points, after the figure's layout has settled."""
    figure = root_figure(ax)
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
    box = ax.get_window_extent()
    return 72 * box.width / figure.dpi, 72 * box.height / figure.dpi


def free_of(boxes: Sequence[Box], box: Box) -> bool:
    """Whether a box (left, bottom, right, top) overlaps none of the others."""
    if not len(boxes):
        return True
    others = np.asarray(boxes)
    apart = (others[:, 0] >= box[2]) | (others[:, 2] <= box[0]) | (others[:, 1] >= box[3]) | (others[:, 3] <= box[1])
    return bool(apart.all())


def write_names(
    ax: Axes, xy: NDArray, names: Sequence[str], order: NDArray, *, most: int, radius: float, taken: Sequence[Box]
) -> None:
    """Names beside their marks, in order, as many as have a place inside the Axes and over no other name.

    All but the first few stay off marks as well.
    """
    width, height = inner_size(ax)
    places = (ax.transData + ax.transAxes.inverted()).transform(xy) * (width, height)
    points = 0.9 * tiny()
    boxes, marks = list(taken), []
    if len(xy) <= _MOST_MARKS_AVOIDED:
        marks = [(x - radius, y - radius, x + radius, y + radius) for x, y in places]
    n_written = 0
    for rank, i in enumerate(order):
        if rank == _ALWAYS_NAMED:
            boxes += marks
        name = shown(names[i], 20)
        half = text_size(name, points)[0] / 2 + 0.5
        for dx, dy in ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)):
            away = radius + 0.5
            x = places[i, 0] + dx * (away + half)
            y = places[i, 1] + dy * (away + 0.6 * points)
            box = (x - half, y - 0.55 * points, x + half, y + 0.55 * points)
            if box[0] < 0 or box[1] < 0 or box[2] > width or box[3] > height or not free_of(boxes, box):
                continue
            boxes.append(box)
            n_written += 1
            middle: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": 5}
            text = ax.text(x / width, y / height, name, transform=ax.transAxes, fontsize=points, **middle, **PLAIN)
            text.set_in_layout(False)  # the layout is settled, and places depend on it
            break
        if n_written >= most:
            return


def _font_size() -> float:
    return float(library("matplotlib", "simdims.plots", "matplotlib").rcParams["font.size"])


def _check_axes(ax: Any, name: str) -> None:
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"{name} must be matplotlib Axes, got {type(ax).__name__}.")
