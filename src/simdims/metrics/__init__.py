"""Evaluating an embedding.

Each function takes an embedding W and the data to compare it with. W has one row per item and one column per dimension:
an array, a DataFrame whose index names the items, or a result that holds one (a Discovery, Consensus or fitted SRF).
"""

from simdims.metrics.ceiling import NoiseCeiling, SystemCeiling, comparison_ceiling, noise_ceiling
from simdims.metrics.choices import comparison_accuracy, triplet_accuracy, triplet_probabilities
from simdims.metrics.links import hold_out_links, link_auc
from simdims.metrics.readouts import PairCorrelation, Readout, pair_correlation, readout
from simdims.metrics.structure import FactorAlignment, entropy, factor_alignment, hoyer_sparsity
from simdims.metrics.variance import explained_variance

__all__ = [
    "FactorAlignment",
    "NoiseCeiling",
    "PairCorrelation",
    "Readout",
    "SystemCeiling",
    "comparison_accuracy",
    "comparison_ceiling",
    "entropy",
    "explained_variance",
    "factor_alignment",
    "hold_out_links",
    "hoyer_sparsity",
    "link_auc",
    "noise_ceiling",
    "pair_correlation",
    "readout",
    "triplet_accuracy",
    "triplet_probabilities",
]
