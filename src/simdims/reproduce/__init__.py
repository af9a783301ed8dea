"""The paper's simulations and analyses, one module each: published values beside ours, and the figure.

``simdims reproduce NAME`` on the command line; `reproduce` here. What is behind these names loads when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simdims.reproduce.frame import Claim, Outcome, Settings
    from simdims.reproduce.run import Reproduction, reproduce

__all__ = ["ANALYSES", "Claim", "Outcome", "Reproduction", "Settings", "reproduce"]

#: What can be reproduced, with the part of the paper it is in. The module has the name with "_" for "-".
ANALYSES = {
    "recovery": "Fig. 2a, b: dimensions recovered from simulated similarities, by complexity and noise",
    "missing": "Fig. 2c: recovery from incomplete similarities, against imputation",
    "rank": "Fig. 2d: how often the number of dimensions is found, against scree test and parallel analysis",
    "power": "Fig. 3 and Supplement: power of the dimension test against RSA",
    "datasets": "Fig. 4 and Supplementary Table: ranks, fit and reliability of the empirical data sets",
    "things": "Fig. S1: odd-one-out choices predicted from dimensions, against SPoSE",
    "words": "Fig. 5 and Supplement: dimensions of word associations, ratings, word similarity, links",
    "misspecified-rank": "Supplement: error of the dimensions where their number is wrong, and its lower bound",
    "leakage": "Supplement: why held-out similarities leak, and the plateau of entrywise cross-validation",
    "convergence": "Supplement: the augmented Lagrangian for rho below and above the square root of 2",
}

_DEFINED_IN = {"Claim": "frame", "Outcome": "frame", "Settings": "frame", "Reproduction": "run", "reproduce": "run"}


def __getattr__(name: str) -> object:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'simdims.reproduce' has no attribute {name!r}")
    return getattr(import_module(f"simdims.reproduce.{_DEFINED_IN[name]}"), name)
