"""reliability and alignment: how far runs agree, and how far two embeddings do, dimension by dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims.consensus import Consensus, align
from simdims.consensus.alignment import Alignment
from simdims.discovery import Discovery
from simdims.metrics import FactorAlignment
from simdims.plots._sources import loadings_of, numbers_of
from simdims.plots._style import ACCENT, MAIN, QUIET, key, one_axes, tidy, tiny, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more dimensions than this, marks stand without stems.
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
        Where to draw; a new figure of column width otherwise.

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
    values = runs.reliability if isinstance(runs, Consensus) else numbers_of(runs, "result")
    if threshold is not None:
        _require_correlation("threshold", threshold)
    ax = one_axes(ax, 1.9)
    numbers = np.arange(1, len(values) + 1)
    low = np.zeros(len(values), dtype=bool) if threshold is None else values < threshold
    _dots(ax, numbers[~low], values[~low], len(values), MAIN, "o", None)
    if low.any():
        _dots(ax, numbers[low], values[low], len(values), ACCENT, "o", f"below {threshold:g}", hollow=True)
    _mean_line(ax, float(np.nanmean(values)))
    _finish(ax, values, len(values), "Dimension", "Reliability across starts")
    return ax


def alignment(result: Any, reference: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw the correlations of the matched dimensions of two embeddings.

    Parameters
    ----------
    result : Alignment, FactorAlignment, Discovery, Consensus, fitted SRF, array or DataFrame
        What `align` or `factor_alignment` returned; or an embedding, which is then aligned to `reference`.
    reference : Discovery, Consensus, fitted SRF, array or DataFrame, optional
        The other embedding, of the same items; required where `result` is an embedding.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes
        One mark for each dimension of the reference, in its order; a cross at the bottom for one without a partner.

    Examples
    --------
    >>> from simdims import plots, simulate
    >>> W = simulate.dirichlet(50, 3, random_state=0)
    >>> ax = plots.alignment(W[:, [2, 0, 1]], W)
    >>> ax.get_ylabel()
    'Matched correlation'
    """
    places, values, n_reference = _matched(result, reference)
    ax = one_axes(ax, 1.9)
    _dots(ax, places + 1, values, n_reference, MAIN, "o", None)
    alone = np.setdiff1d(np.arange(n_reference), places)
    _mean_line(ax, float(values.mean()))
    _finish(ax, values, n_reference, "Dimension of the reference", "Matched correlation")
    if alone.size:
        bottom = np.full(len(alone), ax.get_ylim()[0])
        ax.plot(alone + 1, bottom, "x", ms=3.5, color=ACCENT, clip_on=False, label="no partner")
        _key_above(ax)
    return ax


def _matched(result: Any, reference: Any) -> tuple[NDArray, NDArray[np.float64], int]:
    """Dimensions of the reference that have a partner, their correlations, and how many it has at least."""
    if isinstance(result, Alignment | FactorAlignment):
        if reference is not None:
            raise ValueError("reference must be None where result is an alignment already, got an embedding.")
        if isinstance(result, FactorAlignment):
            places, values = result.true_columns, result.correlations
        else:
            has_partner = result.partners >= 0
            places, values = result.partners[has_partner], result.similarity[has_partner]
        return places, values, int(places.max()) + 1
    if reference is None:
        raise ValueError("reference must be the embedding to compare with, got None.")
    wanted = loadings_of(reference, name="reference")
    found = align(loadings_of(result).W, wanted.W)
    has_partner = found.partners >= 0
    return found.partners[has_partner], found.similarity[has_partner], wanted.W.shape[1]


def _dots(
    ax: Axes, x: NDArray, y: NDArray, n_all: int, colour: str, mark: str, label: str | None, hollow: bool = False
) -> None:
    if n_all <= _MOST_STEMS:
        ax.vlines(x, np.minimum(0.0, y), np.maximum(0.0, y), color=colour, linewidth=0.8, alpha=0.5)
    size = 3.6 if n_all <= _MOST_STEMS else 2.2
    face = "white" if hollow else colour
    ax.plot(x, y, mark, ms=size, mfc=face, mec=colour, mew=0.8, label=label, clip_on=False, zorder=3)


def _mean_line(ax: Axes, mean: float) -> None:
    ax.axhline(mean, color=QUIET, linewidth=0.7, linestyle="--", zorder=1)
    ax.annotate(
        f"mean {mean:.2f}",
        (1, mean),
        xycoords=("axes fraction", "data"),
        xytext=(3, 0),
        textcoords="offset points",
        fontsize=tiny(),
        color=QUIET,
        va="center",
        annotation_clip=False,
    )


def _finish(ax: Axes, values: NDArray, n: int, xlabel: str, ylabel: str) -> None:
    tidy(ax, xlabel, ylabel)
    whole_ticks(ax)
    ax.set_xlim(0.5 - 0.01 * n, n + 0.5 + 0.01 * n)
    lowest = float(np.nanmin(values))
    ax.set_ylim(min(0.0, 1.1 * lowest), 1.0)
    if lowest < 0:
        ax.axhline(0, color="0.3", linewidth=0.6)
    if ax.get_legend_handles_labels()[0]:
        _key_above(ax)


def _key_above(ax: Axes) -> None:
    key(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0))


def _require_correlation(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number or None, got {value!r}.")
    if not -1 <= value <= 1:
        raise ValueError(f"{name} must be between -1 and 1, got {value}.")
