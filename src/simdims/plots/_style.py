"""The style of all plots: colours, text sizes, figures of column width, and literal labels.

matplotlib's own settings are never changed. Text is 0.7 or 0.6 times ``font.size``: 7 and 6 points by default, as in
print journals.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._dependencies import library
from simdims._parameters import ParameterError, ParameterTypeError, require_type

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The Okabe-Ito palette, safe for colour-blind readers, without yellow, which is too light on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MAIN, ACCENT, SECOND = COLOURS[:3]
OTHER = "#B0B0B0"
TINT = "#CFE3F1"
QUIET = "#595959"

#: Width of a journal's column, in inches.
COLUMN = 3.5
_DPI = 200
#: With more marks than this, names may cover marks, because otherwise none would fit.
_MOST_MARKS_AVOIDED = 250
#: Longest names beside marks, in characters: the second where the first does not fit.
_NAME_LENGTHS = (32, 20)

#: Left, bottom, right, top.
Box = tuple[float, float, float, float]

#: Labels are plain text: "$5" is not a formula.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}


def save_figure(axes: Any, path: str | os.PathLike[str], *, dpi: int = 300) -> None:
    """Save the figure of some Axes to a file; text in .pdf and .svg files remains editable and searchable.

    Parameters
    ----------
    axes : Axes, array of Axes or Figure
        The return value of a plot.
    path : path
        The file to write; its suffix selects the format: .pdf, .svg, .eps, .png, ...
    dpi : int, default=300
        Resolution of .png files and of images inside other formats.

    Examples
    --------
    >>> from simdims import plots
    >>> plots.save_figure(plots.reliability([0.9, 0.8]), "reliability.pdf")  # doctest: +SKIP
    """
    matplotlib = _loaded()
    first = axes if hasattr(axes, "savefig") else next(iter(np.ravel(np.asarray(axes, dtype=object))), None)
    figure = first if hasattr(first, "savefig") else getattr(first, "figure", None)
    if figure is None:
        raise ParameterTypeError("axes", "must be matplotlib Axes or a Figure", type(first).__name__)
    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"No such folder: {str(path.parent)!r}.")
    known = figure.canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        endings = ", ".join(f".{ending}" for ending in known)
        raise ParameterError("path", f"must end in one of {endings}", repr(str(path)))
    with matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "ps.fonttype": 42}):
        figure.savefig(path, dpi=dpi)


def colour_map(name: Any) -> Any:
    """The colour map that the argument `cmap` names."""
    maps = _loaded().colormaps
    if not isinstance(name, str) or name not in maps:
        raise ParameterError("cmap", "must be the name of a colour map of matplotlib", repr(name))
    return maps[name]


def new_figure(width: float, height: float) -> Any:
    """An empty pyplot figure, so that notebooks display it."""
    return _loaded("matplotlib.pyplot").figure(figsize=(width, height), dpi=_DPI, layout="constrained")


def one_axes(ax: Axes | None, height: float, width: float = COLUMN) -> Axes:
    """The given Axes, or those of a new figure."""
    if ax is None:
        return new_figure(width, height).subplots()
    _check_axes("ax", ax)
    return ax


def several_axes(axes: Any, n_needed: int, *, size: tuple[float, float], columns: int) -> NDArray[np.object_]:
    """Exactly `n_needed` Axes: the given ones, or those of a new figure with `columns` columns."""
    if axes is None:
        figure = new_figure(*size)
        grid = figure.add_gridspec(-(-n_needed // columns), columns)
        return np.array([figure.add_subplot(grid[divmod(k, columns)]) for k in range(n_needed)], dtype=object)
    given = np.ravel(np.asarray(axes, dtype=object))
    if len(given) != n_needed:
        raise ParameterError("axes", f"must hold {n_needed} Axes, one for each panel", str(len(given)))
    for ax in given:
        _check_axes("axes", ax)
    return given


def small() -> float:
    """Size of labels, in points."""
    return 0.7 * float(_loaded().rcParams["font.size"])


def tiny() -> float:
    """Size of text at ticks and inside panels, in points."""
    return 0.6 * float(_loaded().rcParams["font.size"])


def tidy(ax: Axes, xlabel: str = "", ylabel: str = "") -> None:
    """Set small text and thin lines, and remove the top and right spines."""
    ax.spines[["top", "right"]].set_visible(False)
    for spine in ax.spines.values():
        spine.set_linewidth(0.6)
    ax.tick_params(labelsize=tiny(), width=0.6, length=2.5, pad=2)
    ax.set_xlabel(xlabel, fontsize=small(), labelpad=2, **PLAIN)
    ax.set_ylabel(ylabel, fontsize=small(), labelpad=2, **PLAIN)


def bare(ax: Axes) -> None:
    """Remove frame and ticks."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def key(ax: Axes, **options: Any) -> Any:
    """A small legend without a frame, with plain text."""
    settings: dict[str, Any] = {"fontsize": tiny(), "frameon": False, "handlelength": 1.4, "borderaxespad": 0.3}
    legend = ax.legend(**{**settings, "handletextpad": 0.5, "labelspacing": 0.3, "columnspacing": 1.0, **options})
    for text in legend.get_texts():
        text.set(**PLAIN)
    return legend


def group_key(ax: Axes, handles: list[Any], texts: list[str], *, below: float = 0.0, **options: Any) -> None:
    """A legend of coloured groups below the Axes, in as many columns as fit."""
    columns = key_columns(texts, outer_width(ax), most=4)
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -below), "ncols": columns}
    key(ax, handles=handles, labels=texts, handlelength=0.8, **place, **options)


def shared_key(axes: NDArray[np.object_], *, is_new: bool, columns: int, handlelength: float) -> None:
    """One legend for all panels, below a new figure or in the last of given Axes."""
    if not is_new:
        key(axes[-1], loc="best")
        return
    look: dict[str, Any] = {"fontsize": tiny(), "frameon": False, "columnspacing": 1.0, "handlelength": handlelength}
    handles, texts = axes[0].get_legend_handles_labels()
    legend = axes[0].figure.legend(handles, texts, loc="outside lower center", ncols=columns, **look)
    for text in legend.get_texts():
        text.set(**PLAIN)


def key_width(ax: Axes) -> float:
    """Width in points of a text in a legend with two columns below the Axes."""
    return outer_width(ax) / 2 - 4 * tiny()


def key_columns(texts: Sequence[str], width: float, most: int = 3) -> int:
    """The number of legend columns that fit into a width in points."""
    widest = max(text_size(text, tiny())[0] for text in texts) + 4 * tiny()  # the handle and the gaps
    return max(1, min(most, len(texts), int(width / widest)))


def colour_bar(image: Any, ax: Axes, label: str, **options: Any) -> Any:
    """A thin colour bar, which takes its space from the Axes."""
    figure: Any = ax.get_figure()
    bar = figure.colorbar(image, ax=ax, shrink=0.75, aspect=22, pad=0.02, **options)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=tiny(), width=0.6, length=2, which="both")
    bar.set_label(label, fontsize=small())
    return bar


def whole_numbers(first: int, last: int, most: int = 12) -> list[int]:
    """Integers from first to last: all, or the first and multiples of 5, 10, 20, 50, ..., fewer than `most`."""
    if last - first < most:
        return list(range(first, last + 1))
    step = next(
        step for step in (base * 10**power for power in range(18) for base in (5, 10, 20)) if last < step * most
    )
    return [first, *(number for number in range(step, last + 1, step) if number >= first + step / 2)]


def text_size(text: str, points: float, weight: str = "normal") -> tuple[float, float, float]:
    """Width, height and depth below the baseline of a text, in points; needs no renderer."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points, weight=weight)
    width, height, depth = text_to_path.get_text_width_height_descent(text, font, False)
    return float(width), float(height), float(depth)


def fitted(text: str, points: float, width: float, weight: str = "normal", *, alike: int = 0) -> str:
    """Shorten a text with an ellipsis to at most `width` points; see `_cut` for `alike`."""
    text = one_line(text)
    if text_size(text, points, weight)[0] <= width:
        return text
    lengths = range(1, len(text) + 1)
    n_kept = bisect_right(lengths, width, key=lambda n: text_size(_cut(text, n, alike), points, weight)[0])
    return _cut(text, n_kept, alike)


def all_fitted(
    texts: Sequence[str], points: float, width: float, weight: str = "normal", *, among: Sequence[str] | None = None
) -> list[str]:
    """Shorten texts to at most `width` points, so that they can be told apart from each other or from those `among`."""
    alike = shared_starts(texts if among is None else among)
    return [fitted(text, points, width, weight, alike=alike[one_line(text)]) for text in texts]


def all_shown(texts: Sequence[str], most: int) -> list[str]:
    """Shorten texts to at most `most` characters, so that they can be told apart."""
    alike = shared_starts(texts)
    return [shown(text, most, alike=alike[one_line(text)]) for text in texts]


def fitted_list(
    texts: Sequence[str], points: float, width: float, *, start: str = "", among: Sequence[str] | None = None
) -> str:
    """A start and a list of texts: as many of them as fit, but at least the first one, shortened."""
    width -= text_size(start, points)[0]
    lines = [one_line(text) for text in texts]
    for n in range(len(lines), 0, -1):
        text = ", ".join([*lines[:n], "…"] if n < len(lines) else lines)
        if text_size(text, points)[0] <= width:
            return start + text
    return start + "".join(all_fitted(lines[:1], points, width, among=among))


def shared_starts(texts: Sequence[str]) -> dict[str, int]:
    """How many characters each text, on one line, has in common with the start of another one."""
    return _shared_starts(tuple(texts))


@lru_cache(maxsize=4)  # of all labels of a result, for each of its panels
def _shared_starts(texts: tuple[str, ...]) -> dict[str, int]:
    ordered = sorted({one_line(text) for text in texts})
    n_alike = (len(list(takewhile(lambda a: a[0] == a[1], zip(*two, strict=False)))) for two in pairwise(ordered))
    shared = [0, *n_alike, 0]
    return {text: max(both) for text, both in zip(ordered, pairwise(shared), strict=False)}


def _cut(text: str, n_kept: int, alike: int) -> str:
    """The first `n_kept` characters; if they are `alike` in another text, fewer of them and the first that differ."""
    if n_kept > alike:
        return text[:n_kept].rstrip() + "…"
    n_last = n_kept // 2
    first = min(len(text) - n_last, alike - n_last // 2)
    more = "…" if first + n_last < len(text) else ""
    return text[: n_kept - n_last].rstrip() + "…" + text[first : first + n_last].strip() + more


def shown(text: str, most: int = 24, *, alike: int = 0) -> str:
    """A text on one line, with at most `most` characters; see `_cut` for `alike`."""
    text = one_line(text)
    return text if len(text) <= most else _cut(text, most - 1 if most > alike + 1 else most - 2, alike)


def one_line(text: str) -> str:
    """A text without line breaks and unprintable characters."""
    text = str(text)
    if text.isprintable() and "  " not in text:  # almost all of them, and there may be many
        return text.strip()
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def root_figure(ax: Axes) -> Any:
    """The figure of Axes, including those in a subfigure."""
    figure: Any = ax.figure
    return figure.figure


def outer_width(ax: Axes) -> float:
    """Width in points of the figure cell that contains Axes and their labels, for any layout."""
    figure: Any = ax.figure
    spec = ax.get_subplotspec()
    share = ax.get_position().width
    if spec is not None:
        share = spec.get_position(figure).width / (figure.subplotpars.right - figure.subplotpars.left)
    return float(72 * share * figure.bbox.width / figure.dpi)


def inner_size(ax: Axes) -> tuple[float, float]:
    """Width and height of Axes in points, once the figure's layout has settled."""
    figure = root_figure(ax)
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
    box = ax.get_window_extent()
    return 72 * box.width / figure.dpi, 72 * box.height / figure.dpi


def in_points(ax: Axes, xy: NDArray) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Positions in points from the lower left corner of Axes, and the size of the Axes."""
    size = inner_size(ax)  # settles the layout, so it must come first
    return (ax.transData + ax.transAxes.inverted()).transform(xy) * size, size


def apart(boxes: NDArray, box: Box) -> NDArray[np.bool_]:
    """Which of some boxes (left, bottom, right, top) do not overlap another one."""
    return (boxes[:, 0] >= box[2]) | (boxes[:, 2] <= box[0]) | (boxes[:, 1] >= box[3]) | (boxes[:, 3] <= box[1])


def write_beside(
    ax: Axes, text: str, xy: tuple[float, float], shift: tuple[float, float], coordinates: Any = "data", **look: Any
) -> None:
    """Write a text at a distance, in points, from a position."""
    options: dict[str, Any] = {"fontsize": tiny(), "annotation_clip": False, **PLAIN, **look}
    ax.annotate(text, xy, shift, coordinates, textcoords="offset points", **options)


def write_names(
    ax: Axes, xy: NDArray, names: Sequence[str], order: NDArray, *, most: int, radius: float, taken: Sequence[Box]
) -> None:
    """Write names beside their marks, in order, as many as fit into the Axes without covering names or marks."""
    places, (width, height) = in_points(ax, xy)
    points, away = 0.9 * tiny(), radius + 0.5
    boxes = list(taken)
    if len(xy) <= _MOST_MARKS_AVOIDED:
        boxes += [(x - radius, y - radius, x + radius, y + radius) for x, y in places]
    look: dict[str, Any] = {"fontsize": points, "ha": "center", "va": "center_baseline", "zorder": 5, **PLAIN}
    alike = shared_starts(names)
    n_written = 0
    for i in order:
        for name in dict.fromkeys(shown(names[i], n, alike=alike[one_line(names[i])]) for n in _NAME_LENGTHS):
            half = text_size(name, points)[0] / 2 + 0.5
            box = _free_box(places[i], (half, 0.55 * points), away, boxes, (width, height))
            if box is not None:
                boxes.append(box)
                n_written += 1
                x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
                text = ax.text(x / width, y / height, name, transform=ax.transAxes, **look)
                text.set_in_layout(False)  # the layout is final, and positions depend on it
                break
        if n_written >= most:
            return


def _free_box(
    mark: NDArray, half: tuple[float, float], away: float, taken: Sequence[Box], size: tuple[float, float]
) -> Box | None:
    """A box above, below, right or left of a mark, or between, that is inside the Axes and overlaps no other box."""
    for dx, dy in [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)]:
        x, y = mark + (dx * (away + half[0]), dy * (away + 1.1 * half[1]))
        box = (x - half[0], y - half[1], x + half[0], y + half[1])
        is_inside = box[0] >= 0 and box[1] >= 0 and box[2] <= size[0] and box[3] <= size[1]
        if is_inside and (not taken or apart(np.asarray(taken), box).all()):
            return box
    return None


def _loaded(module: str = "matplotlib") -> Any:
    return library(module, "simdims.plots", "matplotlib")


def _check_axes(name: str, ax: Any) -> None:
    from matplotlib.axes import Axes

    require_type(name, ax, Axes, "matplotlib Axes")
