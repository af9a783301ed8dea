"""Consensus over many fits: aligned runs, the most central one, and the reliability of its dimensions."""

from simdims._progress import Progress
from simdims.consensus.alignment import Alignment, align
from simdims.consensus.central import central_run
from simdims.consensus.lineages import Lineage, lineage
from simdims.consensus.reliability import spearman_brown, split_half_reliability
from simdims.consensus.result import Consensus
from simdims.consensus.runs import fit_consensus

__all__ = [
    "Alignment",
    "Consensus",
    "Lineage",
    "Progress",
    "align",
    "central_run",
    "fit_consensus",
    "lineage",
    "spearman_brown",
    "split_half_reliability",
]
