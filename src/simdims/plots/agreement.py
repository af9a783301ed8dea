"""reliability and alignment: agreement between runs or embeddings, per dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, require_between
from simdims.consensus import Consensus, align
from simdims.consensus.alignment import Alignment
from simdims.discovery import Discovery
from simdims.metrics import FactorAlignment
from simdims.metrics._embedding import as_numbers
from simdims.plots import _style as style
from simdims.plots._sources import loadings_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more dimensions than this, marks have no stems.
_MOST_STEMS = 80


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
        _key_above(ax)
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
    beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (3, 0), "textcoords": "offset points"}
    look: dict[str, Any] = {"fontsize": style.tiny(), "color": style.QUIET, "va": "center", "annotation_clip": False}
    ax.annotate(f"mean {mean:.2f}", (1, mean), **beside, **look)
    style.tidy(ax, xlabel, ylabel)
    style.whole_ticks(ax, 1, n)
    ax.set_xlim(0.5 - 0.01 * n, n + 0.5 + 0.01 * n)
    lowest = float(np.nanmin(values))
    ax.set_ylim(min(0.0, 1.1 * lowest), 1.0)
    if lowest < 0:
        ax.axhline(0, color="0.3", linewidth=0.6)
    if ax.get_legend_handles_labels()[0]:
        _key_above(ax)


def _key_above(ax: Axes) -> None:
    style.key(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0))
