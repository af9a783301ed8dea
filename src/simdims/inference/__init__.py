"""Tests of hypotheses: against dimensions, similarities or both, beside other models, and about weights of systems."""

from simdims.inference.combined import combined_test
from simdims.inference.dimension import dimension_test
from simdims.inference.regression import rsa_regression
from simdims.inference.result import HypothesisTests
from simdims.inference.rsa import rsa_test
from simdims.inference.weights import weight_test

__all__ = ["HypothesisTests", "combined_test", "dimension_test", "rsa_regression", "rsa_test", "weight_test"]
