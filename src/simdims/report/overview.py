"""Two overviews of the result: similarities ordered by dimension, and a map of the items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims.metrics._embedding import unit_rows
from simdims.plots._sources import Loadings
from simdims.plots.items import map_positions
from simdims.plots.similarities import block_means, colour_limits, order_by_dimension
from simdims.similarity import Similarity

#: Cells per side of the similarity image; with more items, a cell is the mean of a block of pairs.
N_CELLS = 300

#: Code of a cell without an observed pair; the other codes are multiples of 1/254 of the colour scale.
MISSING = 255

#: Number of items placed by t-SNE (largest loadings first); others are placed between their nearest neighbours.
N_PLACED, N_NEAREST = 1000, 5

#: Number of items on the map (largest loadings first); positions are multiples of 1/65535 of its width.
N_MAPPED = 5000

_SEED = 0


def similarity_image(similarity: Similarity, loadings: Loadings) -> tuple[dict[str, Any], NDArray[np.uint8]]:
    """Similarities of items in the order of their dimensions, observed below and predicted above: facts and cells."""
    order = order_by_dimension(loadings)
    cells, size = block_means(similarity, loadings, "both", order, N_CELLS)
    low, high = colour_limits(cells)
    steps = np.rint(np.clip((np.nan_to_num(cells) - low) / (high - low), 0, 1) * (MISSING - 1))
    dominant = loadings.dominant()[order]
    starts = np.flatnonzero(np.diff(dominant, prepend=-2))
    facts = {
        "side": len(cells),
        "block": size,
        "low": float(f"{low:.4g}"),
        "high": float(f"{high:.4g}"),
        "is_cut": bool(np.nanmax(cells, initial=low) > high),
        "order": order.tolist() if size == 1 else None,
        "groups": [[int(dominant[start]), int(start)] for start in starts],
        "has_missing": bool(np.isnan(cells[~np.eye(len(cells), dtype=bool)]).any()),
    }
    return facts, np.where(np.isnan(cells), MISSING, steps).astype(np.uint8)


def item_map(loadings: Loadings) -> tuple[dict[str, Any], NDArray[np.uint16]]:
    """A map of the items: facts and positions."""
    n_items = len(loadings.W)
    shown = _largest(loadings.W, N_MAPPED)
    places = _places(loadings.W)[shown]
    spread = np.ptp(places, axis=0)
    aspect = float(np.clip(spread[1] / spread[0], 0.4, 0.8)) if spread[0] > 0 else 0.6
    scaled = (places - places.min(axis=0)) / np.where(spread > 0, spread, 1.0)
    facts = {
        "items": None if len(shown) == n_items else shown.tolist(),
        "places": len(shown),
        "aspect": round(aspect, 3),
        "coloured": loadings.main_dimensions(7),
        "largest": loadings.dominant()[shown].tolist(),
        "strength": [float(f"{one:.3g}") for one in loadings.W[shown].max(axis=1)],
        "n_between": max(n_items - N_PLACED, 0),
    }
    return facts, np.rint(scaled * 65535).astype(np.uint16)


def _largest(W: NDArray[np.float64], wanted: int) -> NDArray[np.intp]:
    """The items with the largest loadings, in their original order."""
    return np.sort(np.argsort(-W.max(axis=1), kind="stable")[:wanted])


def _places(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positions of all items: by t-SNE or, beyond a limit, by the nearest neighbours among those that t-SNE placed."""
    placed = _largest(W, N_PLACED)
    found = np.empty((len(W), 2))
    found[placed] = map_positions(W[placed], _SEED)
    others = np.setdiff1d(np.arange(len(W)), placed)
    rows = unit_rows(W)
    for some in np.array_split(others, -(-len(others) // 2000) or 1):
        alike = rows[some] @ rows[placed].T
        near = np.argpartition(-alike, N_NEAREST - 1, axis=1)[:, :N_NEAREST] if len(some) else np.empty((0, 1), int)
        weight = np.take_along_axis(alike, near, axis=1) ** 8 + 1e-12
        found[some] = np.einsum("ij,ijk->ik", weight / weight.sum(axis=1, keepdims=True), found[placed][near])
    return found
