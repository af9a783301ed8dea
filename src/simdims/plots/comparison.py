"""embedding_comparison: shared dimensions of two embeddings side by side, and unmatched ones below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simdims._parameters import ParameterError, require_count, require_type
from simdims.inference import EmbeddingComparison
from simdims.plots import _style as style
from simdims.plots._sources import Loadings, given_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Height in inches of one row of the figure, and of the remaining parts.
_ROW, _REST = 0.17, 0.5
#: Maximum share of the width for the text on one side.
_BESIDE = 0.3


def embedding_comparison(
    result: EmbeddingComparison,
    *,
    names: tuple[str, str] = ("First embedding", "Second embedding"),
    n_items: int = 3,
    ax: Axes | None = None,
) -> Axes:
    """Draw which dimensions two embeddings share.

    Parameters
    ----------
    result : EmbeddingComparison
        The output of `compare_embeddings`.
    names : pair of str, default=("First embedding", "Second embedding")
        Names of the embeddings, such as "Human IT" and "Monkey IT".
    n_items : int, default=3
        Number of top items that describe an unnamed dimension.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
        One row per shared pair, by descending correlation, with a bar for the correlation over the middle 95% of its
        null distribution (grey). Unmatched dimensions are below, in grey, on the side of their embedding.

    Examples
    --------
    >>> from simdims import compare_embeddings, plots, simulate
    >>> W = simulate.dirichlet(60, 4, random_state=0)
    >>> ax = plots.embedding_comparison(compare_embeddings(W, W[:, [2, 0]], random_state=0))
    >>> ax.get_xlabel()
    'Correlation (grey: 95% null interval)'
    """
    require_type("result", result, EmbeddingComparison, "what compare_embeddings returned")
    if isinstance(names, str) or len(names) != 2:
        raise ParameterError("names", "must be two names", repr(names))
    require_count("n_items", n_items, at_least=0)
    shared = result.pairs[result.is_shared]
    correlations = result.correlation[result.is_shared]
    sides = ((result.embedding1, result.dimensions1), (result.embedding2, result.dimensions2))
    alone = [np.setdiff1d(np.arange(W.shape[1]), shared[:, side]) for side, (W, _) in enumerate(sides)]
    n_rows = len(shared) + (1 if any(map(len, alone)) else 0) + max(map(len, alone))
    ax = style.one_axes(ax, _REST + _ROW * max(n_rows, 3), 2 * style.COLUMN)
    width = _BESIDE * style.outer_width(ax)
    texts = [_describe(Loadings(W, result.labels, given_names(names)), n_items, width) for W, names in sides]
    rows = np.arange(len(shared))
    if len(shared):
        low, high = np.nanquantile(result.null_distribution[:, result.is_shared], [0.025, 0.975], axis=0)
        ax.barh(rows, high - low, left=low, height=0.9, color="0.85", linewidth=0)
    ax.barh(rows, correlations, height=0.6, color=style.MAIN)
    for row, (pair, value) in enumerate(zip(shared, correlations, strict=True)):
        _write(ax, row, value, f"{value:.2f}", "right" if value > 0.2 else "left", style.tiny())
        _beside(ax, row, [texts[side][pair[side]] for side in (0, 1)], "black")
    first_alone = len(shared) + 1
    for place in range(max(map(len, alone))):
        both = [texts[side][alone[side][place]] if place < len(alone[side]) else "" for side in (0, 1)]
        _beside(ax, first_alone + place, both, style.QUIET)
    if any(map(len, alone)):
        _beside(
            ax, len(shared), [f"only here ({len(own)}):" if len(own) else "" for own in alone], style.QUIET, "italic"
        )
    heads = [style.fitted(name, style.small(), width, "bold") for name in names]
    _beside(ax, -1.1, heads, "black", weight="bold")
    ax.set_xlim(0, 1)
    ax.set_ylim(n_rows - 0.5, -0.5)
    style.tidy(ax, "Correlation (grey: 95% null interval)" if len(shared) else "Correlation")
    ax.spines["left"].set_visible(False)
    ax.set_yticks([])
    return ax


def _describe(loadings: Loadings, n_items: int, width: float) -> list[str]:
    """Each dimension by its number and its name or top items, at most `width` points wide."""
    described = [loadings.describe(k, n_items) for k in range(loadings.W.shape[1])]
    return [style.fitted(text, style.small(), width) for text in described]


def _write(ax: Axes, row: float, x: float, text: str, side: str, points: float) -> None:
    shift = (-2 if side == "right" else 2, 0)
    colour = "white" if side == "right" else "black"
    ax.annotate(
        text, (x, row), xytext=shift, textcoords="offset points", ha=side, va="center", fontsize=points, color=colour
    )


def _beside(ax: Axes, row: float, texts: list[str], colour: str, look: str = "normal", weight: str = "normal") -> None:
    """Write a text on either side of a row."""
    for x, text, side, shift in ((0.0, texts[0], "right", -4), (1.0, texts[1], "left", 4)):
        options: dict[str, Any] = {"fontsize": style.small(), "color": colour, "style": look, "weight": weight}
        ax.annotate(
            text,
            (x, row),
            xycoords=("axes fraction", "data"),
            xytext=(shift, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            annotation_clip=False,
            **style.PLAIN,
            **options,
        )
