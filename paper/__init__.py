"""Reproduction of the analyses in the SRF paper with simdims: published and reproduced values, tables and a figure.

Each module is one analysis. Its docstring says what is simulated or read and what to look for, and opens its section of
docs/reproduction.md. Run one from the root of the repository with ``python -m paper NAME``; see ``python -m paper
--help``. Only the public names of simdims are used.
"""

from paper.harness import ANALYSES, Claim, Outcome, Reproduction, Settings, reproduce

__all__ = ["ANALYSES", "Claim", "Outcome", "Reproduction", "Settings", "reproduce"]
