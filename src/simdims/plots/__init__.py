"""Pictures of every result, fit for a paper: a result in, Axes in, Axes out.

Each function draws into the Axes it is given, or into a new figure as wide as a column of a journal, and returns the
Axes. Colours are safe for colour-blind people, labels are taken literally, and `save_figure` keeps text as text.
matplotlib is loaded when the first picture is drawn.
"""

from simdims.plots._style import save_figure
from simdims.plots.agreement import alignment, reliability
from simdims.plots.dimensions import dimension_grid, word_cloud
from simdims.plots.graphs import graph
from simdims.plots.inference import hypothesis_tests, power_curves
from simdims.plots.items import embedding_map, item_fingerprint
from simdims.plots.selection import calibration, rank_selection
from simdims.plots.similarities import reconstruction, similarity_heatmap

__all__ = [
    "alignment",
    "calibration",
    "dimension_grid",
    "embedding_map",
    "graph",
    "hypothesis_tests",
    "item_fingerprint",
    "power_curves",
    "rank_selection",
    "reconstruction",
    "reliability",
    "save_figure",
    "similarity_heatmap",
    "word_cloud",
]
