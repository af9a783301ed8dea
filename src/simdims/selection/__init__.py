"""Choose the number of dimensions: by cross-validation, by comparison with noise, or from eigenvalues."""

from simdims._progress import Progress
from simdims.selection.calibration import Calibration, calibrate
from simdims.selection.comparison import SystemsComparison
from simdims.selection.crossvalidation import select_rank
from simdims.selection.detection import DetectableDimensions, detectable_dimensions
from simdims.selection.resampling import Resampled
from simdims.selection.result import RankSelection
from simdims.selection.spectrum import parallel_analysis, scree_test

__all__ = [
    "Calibration",
    "DetectableDimensions",
    "Progress",
    "RankSelection",
    "Resampled",
    "SystemsComparison",
    "calibrate",
    "detectable_dimensions",
    "parallel_analysis",
    "scree_test",
    "select_rank",
]
