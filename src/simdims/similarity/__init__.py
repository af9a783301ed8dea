"""Similarities between items: the container `Similarity`, and `as_similarity`, which checks and converts input."""

from simdims.similarity.container import ALIGNED, Parts, Similarity, as_similarity, described, percent
from simdims.similarity.labels import (
    aligned,
    axis_names,
    frame_cells,
    frame_labels,
    is_anndata,
    is_default_axis,
    is_frame,
    labelled,
    refuse_other_names,
    refuse_other_numbers,
)

__all__ = [
    "ALIGNED", "Parts", "Similarity", "aligned", "as_similarity", "axis_names", "described", "frame_cells",
    "frame_labels", "is_anndata", "is_default_axis", "is_frame", "labelled", "percent",
    "refuse_other_names", "refuse_other_numbers",
]  # fmt: skip
