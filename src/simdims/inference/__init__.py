"""Tests of hypotheses: about dimensions, similarities or both, weights, populations, and pairs of embeddings."""

from simdims.inference.combined import combined_test
from simdims.inference.comparison import EmbeddingComparison, compare_embeddings
from simdims.inference.dimension import dimension_test
from simdims.inference.population import population_test
from simdims.inference.regression import rsa_regression
from simdims.inference.result import HypothesisTests
from simdims.inference.rsa import rsa_test
from simdims.inference.weights import weight_test

__all__ = [
    "EmbeddingComparison",
    "HypothesisTests",
    "combined_test",
    "compare_embeddings",
    "dimension_test",
    "population_test",
    "rsa_regression",
    "rsa_test",
    "weight_test",
]
