"""reconstruction: observed similarities against those that the dimensions predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parameters import require_count
from simdims.discovery import Discovery
from simdims.metrics import explained_variance
from simdims.metrics._pairs import known_values, pair_products
from simdims.plots._sources import both_of
from simdims.plots._style import ACCENT, MAIN, one_axes, small, tidy, tiny
from simdims.similarity import Similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More pairs than this are counted in hexagons.
_MOST_DOTS = 2000


def reconstruction(
    result: Any,
    embedding: Any = None,
    *,
    max_pairs: int = 200_000,
    gridsize: int = 40,
    cmap: str = "viridis",
    ax: Axes | None = None,
) -> Axes:
    """Draw observed similarities against predicted ones, one point a pair, or counts of pairs in hexagons.

    Parameters
    ----------
    result : Discovery, Similarity, or anything `as_similarity` takes
        The observed similarities.
    embedding : Discovery, Consensus, SRF, array or DataFrame, optional
        The embedding that predicts; a Discovery brings its own.
    max_pairs : int, default=200000
        Of more pairs a fixed random sample is drawn, and the plot says so.
    gridsize : int, default=40
        Hexagons along x, for more than 2,000 pairs.
    cmap : str, default="viridis"
        Colour map of the counts, which is logarithmic.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes
        Observed pairs of two different items; of sparse similarities those that are stored. R2 is over all observed
        pairs.

    Examples
    --------
    >>> from simdims import SRF, plots, simulate
    >>> W = simulate.dirichlet(40, 3, random_state=0)
    >>> S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
    >>> ax = plots.reconstruction(S, SRF(3, random_state=0).fit(S))
    >>> ax.get_xlabel()
    'Predicted similarity'
    """
    similarity, loadings, _ = both_of(result, embedding, None)
    if similarity is None:
        raise TypeError(f"result must hold observed similarities, got {type(result).__name__}: pass S, embedding.")
    if loadings is None:
        raise ValueError("embedding must be the embedding that predicts result, got None.")
    require_count("max_pairs", max_pairs)
    require_count("gridsize", gridsize)
    first, second, n_pairs = _some_pairs(similarity, max_pairs)
    observed = known_values(similarity)(first, second)
    predicted = pair_products(loadings.W, first, second)
    known = np.isfinite(observed)
    if not known.any():
        raise ValueError("result must hold an observed pair of two different items, got none.")
    ax = one_axes(ax, 2.9, 3.2)
    _draw(ax, predicted[known], observed[known], gridsize, cmap)
    is_stored = sparse.issparse(similarity.values) if similarity.factors is None else False
    tidy(ax, "Predicted similarity", "Observed similarity" + (" (stored pairs)" if is_stored else ""))
    own = result.metrics.get("explained_variance") if isinstance(result, Discovery) and embedding is None else None
    R2 = explained_variance(similarity, loadings.W) if own is None else own
    drawn = f"{known.sum():,} pairs" if len(first) == n_pairs else f"{known.sum():,} random pairs"
    ax.set_title(f"In-sample R² = {R2:.2f}, {drawn}", fontsize=tiny(), pad=3)
    return ax


def _some_pairs(similarity: Similarity, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Pairs of two items, each once: all, or a random sample; and how many there are."""
    n = similarity.n_items
    rng = np.random.default_rng(0)
    if similarity.factors is None and sparse.issparse(similarity.values):
        above = sparse.triu(similarity.values, 1, format="coo")
        chosen = _sample(rng, above.nnz, most)
        return above.row[chosen].astype(np.int64), above.col[chosen].astype(np.int64), above.nnz
    n_pairs = n * (n - 1) // 2
    if n_pairs <= most:
        first, second = np.triu_indices(n, 1)
        return first, second, n_pairs
    # Missing pairs are no use: with few observed, more must be drawn to have enough.
    n_drawn = min(n_pairs, int(most / max(similarity.density, most / n_pairs)))
    places = _sample(rng, n_pairs, n_drawn)
    first = (n - 2 - np.floor(np.sqrt(4.0 * n * (n - 1) - 8.0 * places - 7) / 2.0 - 0.5)).astype(np.int64)
    second = (places + first + 1 - n * (n - 1) // 2 + (n - first) * (n - first - 1) // 2).astype(np.int64)
    return first, second, n_pairs


def _sample(rng: np.random.Generator, n: int, most: int) -> NDArray[np.int64]:
    if n <= most:
        return np.arange(n)
    return np.sort(rng.choice(n, most, replace=False, shuffle=False))


def _draw(ax: Axes, predicted: NDArray, observed: NDArray, gridsize: int, cmap: str) -> None:
    low = float(min(predicted.min(), observed.min(), 0.0))
    high = float(max(predicted.max(), observed.max()))
    high = high if high > low else low + 1.0
    if len(predicted) <= _MOST_DOTS:
        ax.plot(predicted, observed, "o", ms=2.2, color=MAIN, alpha=0.45, mew=0)
    else:
        hexagons = ax.hexbin(
            predicted,
            observed,
            gridsize=gridsize,
            extent=(low, high, low, high),
            bins="log",
            mincnt=1,
            cmap=cmap,
            linewidths=0.1,
        )
        figure: Any = ax.get_figure()
        bar = figure.colorbar(hexagons, ax=ax, shrink=0.75, aspect=22, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=tiny(), width=0.6, length=2, which="both")
        bar.set_label("Pairs", fontsize=small())
    ax.axline((low, low), (high, high), color=ACCENT, linewidth=0.8, linestyle="--")
    margin = 0.03 * (high - low)
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(low - margin, high + margin)
    ax.set_aspect("equal")
