"""Publication-ready figures of all results.

Each function draws a result into the given Axes, or into a new figure of column width, and returns the Axes. Colours
are safe for colour-blind readers, labels are plain text, and text in saved files remains editable. matplotlib is
imported when the first figure is drawn.
"""

from simdims.plots._style import save_figure
from simdims.plots.agreement import alignment, embedding_comparison, reliability
from simdims.plots.dimensions import dimension_grid, word_cloud
from simdims.plots.graphs import graph
from simdims.plots.inference import hypothesis_tests, power_curves
from simdims.plots.items import embedding_map, item_fingerprint
from simdims.plots.panel import figure_panel
from simdims.plots.planning import study_plan
from simdims.plots.selection import calibration, rank_selection
from simdims.plots.similarities import reconstruction, similarity_heatmap
from simdims.plots.systems import system_weights, weight_courses
from simdims.plots.trees import lineage
from simdims.plots.uncertainty import uncertainty

__all__ = [
    "alignment",
    "calibration",
    "dimension_grid",
    "embedding_comparison",
    "embedding_map",
    "figure_panel",
    "graph",
    "hypothesis_tests",
    "item_fingerprint",
    "lineage",
    "power_curves",
    "rank_selection",
    "reconstruction",
    "reliability",
    "save_figure",
    "similarity_heatmap",
    "study_plan",
    "system_weights",
    "uncertainty",
    "weight_courses",
    "word_cloud",
]
