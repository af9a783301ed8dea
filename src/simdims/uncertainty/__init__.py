"""Uncertainty of the dimensions: fits to resampled systems, items and pairs."""

from simdims.uncertainty.result import Bootstrap
from simdims.uncertainty.run import bootstrap

__all__ = ["Bootstrap", "bootstrap"]
