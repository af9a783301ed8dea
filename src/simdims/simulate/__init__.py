"""Ground truth for simulations: embeddings, noise at a given signal-to-noise ratio, missing pairs, and power.

A simulated data set is made in three steps, each a function from arrays to an array: an embedding W gives the
similarities S = W W^T, noise is added to S (or to W before), and pairs are left out.
"""

from simdims.simulate.answers import triplet_answers
from simdims.simulate.embeddings import dirichlet, factorial, from_embedding, sparse_correlated
from simdims.simulate.noise import add_feature_noise, add_noise, mask_pairs
from simdims.simulate.power import power_study

__all__ = [
    "add_feature_noise",
    "add_noise",
    "dirichlet",
    "factorial",
    "from_embedding",
    "mask_pairs",
    "power_study",
    "sparse_correlated",
    "triplet_answers",
]
