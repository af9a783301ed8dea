"""Simulated data with known dimensions: embeddings, noise at a given signal-to-noise ratio, missing pairs, and power.

A data set is simulated in three steps, each a function from arrays to an array: draw an embedding W, which gives the
similarities S = W W^T; add noise to S (or to W before); and leave out pairs. `detectable_rank` counts the dimensions
that can then still be detected.
"""

from simdims.simulate.answers import triplet_answers
from simdims.simulate.detectable import detectable_rank
from simdims.simulate.embeddings import dirichlet, factorial, from_embedding, sparse_correlated
from simdims.simulate.noise import add_feature_noise, add_noise, mask_pairs
from simdims.simulate.power import power_study

__all__ = [
    "add_feature_noise",
    "add_noise",
    "detectable_rank",
    "dirichlet",
    "factorial",
    "from_embedding",
    "mask_pairs",
    "power_study",
    "sparse_correlated",
    "triplet_answers",
]
