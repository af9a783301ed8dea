"""reconstruction: observed similarities against predicted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims._parameters import ParameterError, require_count
from simdims.discovery import Discovery
from simdims.metrics import explained_variance
from simdims.metrics._pairs import Pairs, is_stored, known_values, pair_products, pairs_of_ranks
from simdims.plots import _style as style
from simdims.plots._sources import require_both
from simdims.similarity import Similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More pairs than this are drawn as counts in hexagons.
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
    """Draw observed similarities against predicted ones, as one point per pair or as counts of pairs in hexagons.

    Parameters
    ----------
    result : Discovery, Similarity, or anything `as_similarity` takes
        The observed similarities.
    embedding : Discovery, Consensus, SRF, array or DataFrame, optional
        The embedding that predicts them; by default that of a Discovery.
    max_pairs : int, default=200000
        If there are more pairs, a fixed random sample of them is drawn, and the title says so.
    gridsize : int, default=40
        Number of hexagons along x, if there are more than 2,000 pairs.
    cmap : str, default="viridis"
        Colour map of the counts, on a logarithmic scale.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of column width otherwise.

    Returns
    -------
    matplotlib Axes
        Observed pairs of two different items, or the stored pairs of sparse similarities. R2 is that of all observed
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
    similarity, loadings, _ = require_both(result, embedding)
    require_count("max_pairs", max_pairs)
    require_count("gridsize", gridsize)
    (first, second), n_pairs = _some_pairs(similarity, max_pairs)
    observed = known_values(similarity)(first, second)
    predicted = pair_products(loadings.W, first, second)
    known = np.isfinite(observed)
    if not known.any():
        raise ParameterError("result", "must hold an observed pair of two different items", "none")
    ax = style.one_axes(ax, 2.9, 3.2)
    _draw(ax, predicted[known], observed[known], gridsize, cmap)
    stored = " (stored pairs)" if is_stored(similarity) else ""
    style.tidy(ax, "Predicted similarity", f"Observed similarity{stored}")
    own = result.metrics.get("explained_variance") if isinstance(result, Discovery) and embedding is None else None
    R2 = explained_variance(similarity, loadings.W) if own is None else own
    random = "" if len(first) == n_pairs else "random "
    ax.set_title(f"In-sample R² = {R2:.2f}, {known.sum():,} {random}pairs", fontsize=style.tiny(), pad=3)
    return ax


def _some_pairs(similarity: Similarity, most: int) -> tuple[Pairs, int]:
    """Pairs of two items, each once: all, or a random sample; and how many there are."""
    n = similarity.n_items
    if is_stored(similarity):
        above = sparse.triu(similarity.values, 1, format="coo")
        chosen = _sample(above.nnz, most)
        return (above.row[chosen].astype(np.int64), above.col[chosen].astype(np.int64)), above.nnz
    n_pairs = n * (n - 1) // 2
    # Missing pairs cannot be drawn: the fewer are observed, the more must be sampled.
    n_drawn = n_pairs if n_pairs <= most else int(most / max(similarity.density, most / n_pairs))
    return pairs_of_ranks(_sample(n_pairs, n_drawn), n), n_pairs


def _sample(n: int, most: int) -> NDArray[np.int64]:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False, shuffle=False))


def _draw(ax: Axes, predicted: NDArray, observed: NDArray, gridsize: int, cmap: str) -> None:
    low = float(min(predicted.min(), observed.min(), 0.0))
    high = float(max(predicted.max(), observed.max()))
    high = high if high > low else low + 1.0
    if len(predicted) <= _MOST_DOTS:
        ax.plot(predicted, observed, "o", ms=2.2, color=style.MAIN, alpha=0.45, mew=0)
    else:
        bins: dict[str, Any] = {"gridsize": gridsize, "extent": (low, high, low, high), "bins": "log", "mincnt": 1}
        style.colour_bar(ax.hexbin(predicted, observed, cmap=cmap, linewidths=0.1, **bins), ax, "Pairs")
    ax.axline((low, low), (high, high), color=style.ACCENT, linewidth=0.8, linestyle="--")
    margin = 0.03 * (high - low)
    limits = (low - margin, high + margin)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
