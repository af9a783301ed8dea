"""Find the dimensions behind similarities.

simdims takes similarities between items, complete or with most pairs missing, and returns a small
non-negative embedding W with S ~ W W^T whose columns people can read. The method is Similarity-Based
Representation Factorization (SRF).

Public names are resolved on first use, so that ``import simdims`` is quick whatever they need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simdims import datasets, metrics, plots, simulate
    from simdims._parameters import ParameterError
    from simdims.associations import from_associations
    from simdims.comparisons import from_comparisons
    from simdims.consensus import Consensus, align, fit_consensus, lineage, split_half_reliability
    from simdims.construct import from_dissimilarity, from_ratings
    from simdims.discovery import Discovery, discover
    from simdims.encoder import DimensionEncoder
    from simdims.features import from_features
    from simdims.inference import (
        EmbeddingComparison,
        HypothesisTests,
        combined_test,
        compare_embeddings,
        dimension_test,
        population_test,
        rsa_regression,
        rsa_test,
        weight_test,
    )
    from simdims.io import load_similarity
    from simdims.joint import JointSRF
    from simdims.naming import label_dimensions
    from simdims.planning import plan_study
    from simdims.selection import (
        Calibration,
        DetectableDimensions,
        RankSelection,
        calibrate,
        detectable_dimensions,
        parallel_analysis,
        scree_test,
        select_rank,
    )
    from simdims.similarity import Similarity, as_similarity
    from simdims.srf import SRF
    from simdims.systems import SimilaritySet
    from simdims.triplets import from_triplets
    from simdims.uncertainty import Bootstrap, bootstrap

__version__ = "0.1.0"

__all__ = [
    "SRF",
    "Bootstrap",
    "Calibration",
    "Consensus",
    "DetectableDimensions",
    "DimensionEncoder",
    "Discovery",
    "EmbeddingComparison",
    "HypothesisTests",
    "JointSRF",
    "ParameterError",
    "RankSelection",
    "Similarity",
    "SimilaritySet",
    "__version__",
    "align",
    "as_similarity",
    "bootstrap",
    "calibrate",
    "combined_test",
    "compare_embeddings",
    "datasets",
    "detectable_dimensions",
    "dimension_test",
    "discover",
    "fit_consensus",
    "from_associations",
    "from_comparisons",
    "from_dissimilarity",
    "from_features",
    "from_ratings",
    "from_triplets",
    "label_dimensions",
    "lineage",
    "load_similarity",
    "metrics",
    "parallel_analysis",
    "plan_study",
    "plots",
    "population_test",
    "rsa_regression",
    "rsa_test",
    "scree_test",
    "select_rank",
    "simulate",
    "split_half_reliability",
    "weight_test",
]

# Public name -> the module that defines it; a public module is its own name.
_DEFINED_IN = {
    "SRF": "srf",
    "Bootstrap": "uncertainty",
    "Calibration": "selection",
    "Consensus": "consensus",
    "DetectableDimensions": "selection",
    "DimensionEncoder": "encoder",
    "Discovery": "discovery",
    "EmbeddingComparison": "inference",
    "HypothesisTests": "inference",
    "JointSRF": "joint",
    "ParameterError": "_parameters",
    "RankSelection": "selection",
    "Similarity": "similarity",
    "SimilaritySet": "systems",
    "align": "consensus",
    "as_similarity": "similarity",
    "bootstrap": "uncertainty",
    "calibrate": "selection",
    "combined_test": "inference",
    "compare_embeddings": "inference",
    "datasets": "datasets",
    "detectable_dimensions": "selection",
    "dimension_test": "inference",
    "discover": "discovery",
    "fit_consensus": "consensus",
    "from_associations": "associations",
    "from_comparisons": "comparisons",
    "from_dissimilarity": "construct",
    "from_features": "features",
    "from_ratings": "construct",
    "from_triplets": "triplets",
    "label_dimensions": "naming",
    "lineage": "consensus",
    "load_similarity": "io",
    "metrics": "metrics",
    "parallel_analysis": "selection",
    "plan_study": "planning",
    "plots": "plots",
    "population_test": "inference",
    "rsa_regression": "inference",
    "rsa_test": "inference",
    "scree_test": "selection",
    "select_rank": "selection",
    "simulate": "simulate",
    "split_half_reliability": "consensus",
    "weight_test": "inference",
}


def __getattr__(name: str) -> object:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'simdims' has no attribute {name!r}")
    module = import_module(f"simdims.{_DEFINED_IN[name]}")
    value = module if _DEFINED_IN[name] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
