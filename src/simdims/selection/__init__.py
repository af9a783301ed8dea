"""How many dimensions the similarities support: calibrated cross-validation, and the two older ways to count."""

from simdims._progress import Progress
from simdims.selection.calibration import Calibration, calibrate
from simdims.selection.crossvalidation import select_rank
from simdims.selection.result import RankSelection
from simdims.selection.spectrum import parallel_analysis, scree_test

__all__ = ["Calibration", "Progress", "RankSelection", "calibrate", "parallel_analysis", "scree_test", "select_rank"]
