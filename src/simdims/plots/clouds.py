"""word_cloud: the names of the items that have most of a dimension, as large as their loadings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import require_count, warn
from simdims.plots._sources import dimension_place, loadings_of
from simdims.plots._style import (
    PLAIN,
    bare,
    colour_map,
    inner_size,
    one_axes,
    shown,
    small,
    text_size,
    tiny,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Size of the last word relative to the first.
_SMALLEST = 0.35
#: Points between two words.
_GAP = 1.5
_N_PLACES = 6000


def word_cloud(
    result: Any,
    dimension: int | str = 1,
    *,
    n_words: int = 40,
    labels: Sequence[str] | None = None,
    cmap: str = "viridis",
    ax: Axes | None = None,
) -> Axes:
    """Draw the names of the items that have most of a dimension, as large as their loadings.

    The largest word is in the middle, the others around it on a spiral, none over another, for the size that the Axes
    have now. Sizes fall in proportion to loadings, from the largest to the smallest that is drawn. The same input gives
    the same picture.

    Parameters
    ----------
    result : Discovery, Consensus, fitted SRF, array or DataFrame of shape (n_items, n_components)
        The embedding.
    dimension : int or str, default=1
        Its number, counted from 1, or its name.
    n_words : int, default=40
        Most words; items that have nothing of the dimension are never drawn.
    labels : sequence of str, optional
        Names of the items, in place of those of `result`; where there are none, rows are drawn as their numbers.
    cmap : str, default="viridis"
        Colour map, of which the darker three quarters are used.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes

    Warns
    -----
    UserWarning
        If the Axes are too small for all words in a size that can be read.

    Examples
    --------
    >>> from simdims import plots
    >>> ax = plots.word_cloud([[0.9], [0.4], [0.0]], labels=["dog", "cat", "car"])
    >>> [text.get_text() for text in ax.texts]
    ['dog', 'cat']
    """
    loadings = loadings_of(result, labels)
    k = dimension_place(dimension, loadings)
    require_count("n_words", n_words)
    top = loadings.top(k, n_words)
    if not top.size:
        raise ValueError(f"dimension must have an item with a positive loading, got none in dimension {k + 1}.")
    colours = colour_map(cmap)
    ax = one_axes(ax, 2.4)
    bare(ax)
    ax.set_title(shown(loadings.name(k), 40), fontsize=small(), fontweight="bold", pad=3, **PLAIN)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    width, height = inner_size(ax)
    words = [shown(loadings.item(int(i)), 30) for i in top]
    relative = _relative(loadings.W[top, k])
    sizes, places = arranged(words, relative, width, height, smallest=0.75 * tiny())
    if len(places) < len(words):
        warn(f"word_cloud draws {len(places)} of {len(words)} words: the Axes are too small for more.")
    for word, size, share, (x, y) in zip(words, sizes, relative, places, strict=False):
        ax.text(x / width, y / height, word, fontsize=size, color=colours(0.75 * (1 - share)), va="baseline", **PLAIN)
    return ax


def _relative(loadings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loadings from 1, the largest, to 0, the smallest; all 1 where they are one."""
    span = loadings.max() - loadings.min()
    return (loadings - loadings.min()) / span if span > 0 else np.ones(len(loadings))


def arranged(
    words: Sequence[str], relative: NDArray, width: float, height: float, smallest: float
) -> tuple[NDArray[np.float64], list[tuple[float, float]]]:
    """Sizes of words, in points, and the left end of the baseline of each; the last ones are left out if they must."""
    unit = np.array([text_size(word, 100.0) for word in words]) / 100.0
    wanted = _SMALLEST + (1 - _SMALLEST) * np.asarray(relative, dtype=np.float64)
    area = float(np.sum(unit[:, 0] * unit[:, 1] * wanted**2))
    points = min(
        np.sqrt(0.75 * width * height / max(area, 1e-12)), 0.5 * height, width / float((unit[:, 0] * wanted).max())
    )
    while True:
        sizes = np.maximum(points * wanted, smallest)
        places = _placed(unit * sizes[:, None], width, height)
        if len(places) == len(words) or points * wanted[0] <= smallest:
            return sizes, places
        points *= 0.93


def _placed(boxes: NDArray[np.float64], width: float, height: float) -> list[tuple[float, float]]:
    """For boxes of a width, height and depth the first free places on a spiral; stops at the first without one."""
    turn = np.sqrt(np.arange(_N_PLACES) / _N_PLACES)
    angle = np.arange(_N_PLACES) * np.pi * (3 - np.sqrt(5))  # the golden angle fills the plane evenly
    x, y = width / 2 * (1 + turn * np.cos(angle)), height / 2 * (1 + turn * np.sin(angle))
    taken = np.empty((0, 4))
    places: list[tuple[float, float]] = []
    for w, h, depth in boxes:
        box = np.stack([x - w / 2 - _GAP, y - h / 2 - _GAP, x + w / 2 + _GAP, y + h / 2 + _GAP], axis=1)
        free = (box[:, 0] >= 0) & (box[:, 1] >= 0) & (box[:, 2] <= width) & (box[:, 3] <= height)
        for left, bottom, right, top in taken:
            free &= (box[:, 0] >= right) | (box[:, 2] <= left) | (box[:, 1] >= top) | (box[:, 3] <= bottom)
        if not free.any():
            break
        at = int(np.argmax(free))
        taken = np.vstack([taken, box[at]])
        places.append((float(x[at] - w / 2), float(y[at] - h / 2 + depth)))
    return places
