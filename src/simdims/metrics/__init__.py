"""What an embedding is worth: the numbers by which it is judged.

Each function takes an embedding W, items in rows and dimensions in columns, as an array or as a DataFrame whose index
names the items, and the data to hold it against.
"""

from simdims.metrics.ceiling import NoiseCeiling, noise_ceiling
from simdims.metrics.choices import triplet_accuracy, triplet_probabilities
from simdims.metrics.links import hold_out_links, link_auc
from simdims.metrics.readouts import PairCorrelation, Readout, pair_correlation, readout
from simdims.metrics.structure import FactorAlignment, entropy, factor_alignment, hoyer_sparsity
from simdims.metrics.variance import explained_variance

__all__ = [
    "FactorAlignment",
    "NoiseCeiling",
    "PairCorrelation",
    "Readout",
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
