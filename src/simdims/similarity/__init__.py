"""Similarities between items: the container `Similarity`, and `as_similarity`, which checks and converts input."""

from simdims.similarity.container import Parts, Similarity, as_similarity, percent
from simdims.similarity.labels import (
    axis_names,
    frame_cells,
    frame_labels,
    is_default_axis,
    is_frame,
    refuse_other_names,
    refuse_other_numbers,
)

__all__ = [
    "Parts",
    "Similarity",
    "as_similarity",
    "axis_names",
    "frame_cells",
    "frame_labels",
    "is_default_axis",
    "is_frame",
    "percent",
    "refuse_other_names",
    "refuse_other_numbers",
]
