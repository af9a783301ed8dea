"""Tests of hypotheses: against dimensions, against similarities, against both, and about the weights of systems."""

from simdims.inference.combined import combined_test
from simdims.inference.dimension import dimension_test
from simdims.inference.result import HypothesisTests
from simdims.inference.rsa import rsa_test
from simdims.inference.weights import weight_test

__all__ = ["HypothesisTests", "combined_test", "dimension_test", "rsa_test", "weight_test"]
