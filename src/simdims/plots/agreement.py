"""reliability, alignment and embedding_comparison: agreement between runs or embeddings, per dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, require_between, require_count, require_type
from simdims.consensus import Consensus, align
from simdims.consensus.alignment import Alignment
from simdims.discovery import Discovery
from simdims.inference import EmbeddingComparison
from simdims.metrics import FactorAlignment
from simdims.metrics._embedding import as_numbers
from simdims.plots import _style as style
from simdims.plots._sources import Loadings, given_names, loadings_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more dimensions than this, marks have no stems.
_MOST_STEMS = 80
#: A comparison: height in inches of one row and of the remaining parts, and the maximum share of the width for the text
#: on one side.
_ROW, _REST, _BESIDE = 0.17, 0.5, 0.3


def reliability(result: Any, *, threshold: float | None = 0.8, ax: Axes | None = None) -> Axes:
    """Draw the split-half reliability of each dimension across random starts.

    Parameters
    ----------
    result : Consensus, Discovery or array of shape (n_components,)
        The reliabilities, such as those of `split_half_reliability`.
    threshold : float or None, default=0.8
        Dimensions below it are drawn as open marks in another colour.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from simdims import plots
    >>> ax = plots.reliability([0.98, 0.95, 0.6])
    >>> ax.get_xlabel()
    'Dimension'
    """
    runs = result.consensus if isinstance(result, Discovery) else result
    values = runs.reliability if isinstance(runs, Consensus) else as_numbers(runs, "result")
    if values.ndim != 1 or not values.size:
        raise ParameterError("result", "must hold one number for each dimension", f"shape {values.shape}")
    if threshold is not None:
        require_between("threshold", threshold, -1, 1)
    ax = style.one_axes(ax, 1.9)
    numbers = np.arange(1, len(values) + 1)
    low = np.zeros(len(values), dtype=bool) if threshold is None else values < threshold
    _dots(ax, numbers[~low], values[~low], len(values))
    if low.any():
        _dots(ax, numbers[low], values[low], len(values), label=f"below {threshold:g}")
    _finish(ax, values, len(values), "Dimension", "Reliability across starts")
    return ax


def alignment(result: Any, reference: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw the correlations of the matched dimensions of two embeddings.

    Parameters
    ----------
    result : Alignment, FactorAlignment, Discovery, Consensus, fitted SRF, array or DataFrame
        The output of `align` or `factor_alignment`, or an embedding to align with `reference`.
    reference : Discovery, Consensus, fitted SRF, array or DataFrame, optional
        The other embedding, of the same items; required if `result` is an embedding.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        One mark per dimension of the reference, in its order; unmatched dimensions have a cross at the bottom.

    Examples
    --------
    >>> from simdims import plots, simulate
    >>> W = simulate.dirichlet(50, 3, random_state=0)
    >>> ax = plots.alignment(W[:, [2, 0, 1]], W)
    >>> ax.get_ylabel()
    'Matched correlation'
    """
    places, values, n_reference = _matched(result, reference)
    ax = style.one_axes(ax, 1.9)
    _dots(ax, places + 1, values, n_reference)
    alone = np.setdiff1d(np.arange(n_reference), places)
    _finish(ax, values, n_reference, "Dimension of the reference", "Matched correlation")
    if alone.size:
        bottom = np.full(len(alone), ax.get_ylim()[0])
        ax.plot(alone + 1, bottom, "x", ms=3.5, color=style.ACCENT, clip_on=False, label="no partner")
        style.key(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return ax


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
    loadings = [Loadings(W, result.labels, given_names(own)) for W, own in sides]
    texts = [one.descriptions(range(one.W.shape[1]), n_items, style.small(), width) for one in loadings]
    rows = np.arange(len(shared))
    if len(shared):
        low, high = np.nanquantile(result.null_distribution[:, result.is_shared], [0.025, 0.975], axis=0)
        ax.barh(rows, high - low, left=low, height=0.9, color="0.85", linewidth=0)
    ax.barh(rows, correlations, height=0.6, color=style.MAIN)
    for row, (pair, value) in enumerate(zip(shared, correlations, strict=True)):
        shift, look = (-2, {"ha": "right", "color": "white"}) if value > 0.2 else (2, {"ha": "left", "color": "black"})
        style.write_beside(ax, f"{value:.2f}", (value, row), (shift, 0), va="center", **look)
        _write_both(ax, row, [texts[side][pair[side]] for side in (0, 1)])
    if any(map(len, alone)):
        heads = [f"only here ({len(own)}):" if len(own) else "" for own in alone]
        _write_both(ax, len(shared), heads, color=style.QUIET, style="italic")
    below = ([texts[side][k] for k in own] for side, own in enumerate(alone))
    for row, both in enumerate(zip_longest(*below, fillvalue=""), start=len(shared) + 1):
        _write_both(ax, row, both, color=style.QUIET)
    _write_both(ax, -1.1, [style.fitted(name, style.small(), width, "bold") for name in names], weight="bold")
    ax.set_xlim(0, 1)
    ax.set_ylim(n_rows - 0.5, -0.5)
    style.tidy(ax, "Correlation (grey: 95% null interval)" if len(shared) else "Correlation")
    ax.spines["left"].set_visible(False)
    ax.set_yticks([])
    return ax


def _matched(result: Any, reference: Any) -> tuple[NDArray, NDArray[np.float64], int]:
    """The matched dimensions of the reference, their correlations, and the number of its dimensions, if known."""
    n_reference = 0
    if not isinstance(result, Alignment | FactorAlignment):
        if reference is None:
            raise ParameterError("reference", "must be the embedding to compare with", "None")
        wanted = loadings_of(reference, name="reference")
        result, n_reference = align(loadings_of(result).W, wanted.W), wanted.W.shape[1]
    elif reference is not None:
        raise ParameterError("reference", "must be None where result is an alignment", "an embedding")
    if isinstance(result, FactorAlignment):
        places, values = result.true_columns, result.correlations
    else:
        has_partner = result.partners >= 0
        places, values = result.partners[has_partner], result.similarity[has_partner]
    return places, values, n_reference or int(places.max()) + 1


def _dots(ax: Axes, x: NDArray, y: NDArray, n_all: int, *, label: str | None = None) -> None:
    """Draw marks with stems; those with a label are open and in another colour."""
    colour, face = (style.MAIN, style.MAIN) if label is None else (style.ACCENT, "white")
    if n_all <= _MOST_STEMS:
        ax.vlines(x, np.minimum(0.0, y), np.maximum(0.0, y), color=colour, linewidth=0.8, alpha=0.5)
    size = 3.6 if n_all <= _MOST_STEMS else 2.2
    ax.plot(x, y, "o", ms=size, mfc=face, mec=colour, mew=0.8, label=label, clip_on=False, zorder=3)


def _finish(ax: Axes, values: NDArray, n: int, xlabel: str, ylabel: str) -> None:
    """Draw the mean, and set labels and limits."""
    mean = float(np.nanmean(values))
    ax.axhline(mean, color=style.QUIET, linewidth=0.7, linestyle="--", zorder=1)
    look: dict[str, Any] = {"color": style.QUIET, "va": "center"}
    style.write_beside(ax, f"mean {mean:.2f}", (1, mean), (3, 0), ("axes fraction", "data"), **look)
    style.tidy(ax, xlabel, ylabel)
    ax.set_xticks(style.whole_numbers(1, n))
    ax.set_xlim(0.5 - 0.01 * n, n + 0.5 + 0.01 * n)
    lowest = float(np.nanmin(values))
    ax.set_ylim(min(0.0, 1.1 * lowest), 1.0)
    if lowest < 0:
        ax.axhline(0, color="0.3", linewidth=0.6)
    if ax.get_legend_handles_labels()[0]:
        style.key(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0))


def _write_both(ax: Axes, row: float, texts: Sequence[str], **look: Any) -> None:
    """Write a text on either side of a row."""
    for x, text, side, shift in ((0.0, texts[0], "right", -4), (1.0, texts[1], "left", 4)):
        options = {"fontsize": style.small(), "ha": side, "va": "center", **look}
        style.write_beside(ax, text, (x, row), (shift, 0), ("axes fraction", "data"), **options)
