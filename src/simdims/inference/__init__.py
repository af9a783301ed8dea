"""Tests of hypotheses about a representation: against the dimensions, against the similarities, against both."""

from simdims.inference.combined import combined_test
from simdims.inference.dimension import dimension_test
from simdims.inference.result import HypothesisTests
from simdims.inference.rsa import rsa_test

__all__ = ["HypothesisTests", "combined_test", "dimension_test", "rsa_test"]
