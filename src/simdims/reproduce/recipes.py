"""The empirical data sets: for each the file it needs, how similarities are built from it, and what was published.

All file names are relative to the data folder. Where several are given, the first one that is there is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simdims._downloads import FILES
from simdims.reproduce import dataset_files

if TYPE_CHECKING:
    from simdims.similarity import Similarity


@dataclass(frozen=True)
class Published:
    """A row of the paper's table of data sets.

    Parameters
    ----------
    title : str
        As the paper calls it.
    n_items : int
    coverage : float
        Percentage of the pairs that were observed.
    sampling : float
        p*.
    rank : int
    r2, auc : float or None
        Quality of the reconstruction, by the one or the other.
    reliability : str
        Mean split-half reliability, perhaps as ">0.99".
    """

    title: str
    n_items: int
    coverage: float
    sampling: float
    rank: int
    r2: float | None
    auc: float | None
    reliability: str

    @property
    def is_least(self) -> bool:
        """Whether the reliability was published as what it exceeds."""
        return self.reliability.startswith(">")

    @property
    def least_reliability(self) -> float:
        """The published reliability, or what it exceeds."""
        return float(self.reliability.lstrip(">"))


@dataclass(frozen=True)
class Recipe:
    """How to run one data set.

    Parameters
    ----------
    published : Published
        The row to hold it against.
    files : tuple of str
        Names, the preferred one first.
    what, where : str
        What the file holds, and where it is from; without the last full stop.
    how : str
        How similarities are made of it, in words.
    build : function
        Makes them.
    ranks : sequence of int
        Numbers of dimensions to try.
    other_data : bool, default=False
        Whether the row was computed from other data than this.
    n_runs : int, optional
        Runs of the consensus, where 30 take too long.
    """

    published: Published
    files: tuple[str, ...]
    what: str
    where: str
    how: str
    build: Callable[[Path], Similarity]
    ranks: Sequence[int]
    other_data: bool = False
    n_runs: int | None = None


#: Supplementary Table "Overview of datasets used for SRF evaluation", row by row.
TABLE = {
    "mur-92": Published("Mur-92", 92, 100, 0.31, 2, 0.67, None, ">0.99"),
    "peterson-animals": Published("Peterson Animals", 120, 100, 0.70, 10, 0.90, None, ">0.99"),
    "peterson-various": Published("Peterson Various", 120, 100, 0.76, 6, 0.86, None, ">0.99"),
    "clip": Published("CLIP ViT-L/14", 1854, 100, 0.71, 40, 0.88, None, "0.94"),
    "macaque-it": Published("Macaque IT", 1854, 100, 0.73, 78, 0.98, None, "0.91"),
    "things": Published("THINGS odd-one-out", 1854, 99.9, 0.65, 35, 0.61, None, "0.96"),
    "swow": Published("SWOW", 8647, 1.27, 0.53, 268, None, 0.95, "0.94"),
    "nsd": Published("NSD (subj01)", 9841, 100, 0.62, 78, 0.99, None, "0.82"),
}

_FEW = tuple(range(1, 31))
_RBF = "RBF kernel, sigma 0.4 times the median distance"
_PPMI = "largest strongly connected component, PPMI, absent pairs as zeros of weight 0.03"
_TRIPLETS = "three objects a row, counted from 0 in the order of unique_id.txt, the last one the odd one out"
_THINGS_IMAGES = "in the order of the 1,854 THINGS objects (unique_id.txt)"

RECIPES = {
    "mur-92": Recipe(
        TABLE["mur-92"],
        ("mur92/similarity.npy", "mur92/similarity.csv", "mur92/responses.npy"),
        "the 92 x 92 similarities of this row, or the responses, 92 images x voxels, that they are made from",
        "the authors of the paper: the judgements that Mur et al. (2013) published are the data set mur92-behaviour "
        "here, and give other values",
        f"as given; responses by {_RBF}",
        dataset_files.similarities_or_features,
        _FEW,
    ),
    "mur92-behaviour": Recipe(
        TABLE["mur-92"],
        ("mur92/92_behavRDMs.mat",),
        "dissimilarities of 16 people who arranged 92 images, in rdms_behav_92",
        FILES["mur92/92_behavRDMs.mat"].url(),
        "1 - d / max(d) of the mean over people",
        dataset_files.arranged,
        _FEW,
        other_data=True,
    ),
    "human-it-92": Recipe(
        TABLE["mur-92"],
        ("mur92/rdm_humanIT_2008.csv",),
        "correlation distances 1 - r between responses of human IT to the same 92 images, 92 x 92, with commas",
        "Kriegeskorte et al. (2008), Neuron 60; demos/92imageData of https://github.com/rsagroup/rsatoolbox holds them",
        "r, negative ones set to 0",
        dataset_files.correlation_distances,
        _FEW,
        other_data=True,
    ),
    "peterson-animals": Recipe(
        TABLE["peterson-animals"],
        ("peterson_animals/turkResults_CogSci2016.mat", "peterson_animals/animals_similarity.npy"),
        "mean ratings from 0 to 10 of 120 animals (simMatrix), or those divided by 10",
        FILES["peterson_animals/turkResults_CogSci2016.mat"].url(),
        "ratings divided by 10",
        dataset_files.ratings,
        _FEW,
    ),
    "peterson-various": Recipe(
        TABLE["peterson-various"],
        ("peterson_various/various_similarity.npy", "peterson_various/various_similarity.csv"),
        "mean ratings from 0 to 10 of 120 images of various categories, 120 x 120, or those divided by 10",
        "the authors of Peterson, Abbott and Griffiths (2018), Cognitive Science 42(8); "
        "https://github.com/jcpeterson/percept2vec holds the animals alone",
        "ratings divided by 10",
        dataset_files.ratings,
        _FEW,
    ),
    "clip": Recipe(
        TABLE["clip"],
        ("clip/features.npy",),
        f"outputs of the image encoder of CLIP ViT-L/14 for one image an object, 1,854 x 768, {_THINGS_IMAGES}",
        "the model from https://github.com/openai/CLIP (encode_image) and the THINGS-plus images from https://osf.io/jum2f",
        _RBF,
        dataset_files.features,
        (5, 10, 20, 30, 35, 40, 45, 50, 60, 80),
    ),
    "macaque-it": Recipe(
        TABLE["macaque-it"],
        ("macaque_it/recordings.npz", "macaque_it/recordings.npy"),
        "repeats (repeats x stimuli x channels: single trials or two halves) and, where these are not the stimuli to "
        "compare, responses (stimuli x channels); an .npy file holds the repeats alone",
        "https://gin.g-node.org/paolo_papale/TVSD (Papale et al., 2025): of THINGS_normMUA.mat the channels of IT, "
        "test_MUA_reps as repeats, and train_MUA averaged over the images of each of the 1,854 objects as responses",
        f"channels with a split-half reliability above 0.3, {_RBF}",
        dataset_files.recordings,
        (10, 20, 40, 60, 70, 78, 85, 100, 120),
    ),
    "things": Recipe(
        TABLE["things"],
        ("things/trainset.txt", "things/triplets.npy"),
        f"4.1 million odd-one-out answers (4.7 million with those held out), {_TRIPLETS}",
        "https://osf.io/f5rn6, data/triplet_dataset (Hebart et al., 2023)",
        "(kept + 1) / (shown + 2), pairs never shown missing",
        dataset_files.triplets,
        (5, 10, 15, 20, 25, 30, 35, 40, 50, 66),
    ),
    "things-100k": Recipe(
        TABLE["things"],
        ("things/triplets_100k.npy",),
        f"100,000 odd-one-out answers, {_TRIPLETS}",
        "https://osf.io/f5rn6, data/triplet_dataset: any 100,000 of its rows",
        "(kept + 1) / (shown + 2), pairs never shown missing, weighted by their answers",
        dataset_files.few_triplets,
        (1, 2, 3, 4, 5, 6, 8, 10, 15),
        other_data=True,
    ),
    "swow": Recipe(
        TABLE["swow"],
        ("words/strength.SWOW-EN.R123.csv", "words/strength.SWOW-EN.R123.20180827.csv"),
        "the strength file R123 of Small World of Words, with the columns cue, response and R123 between tabs",
        "https://smallworldofwords.org/en/project/research (De Deyne et al., 2019)",
        _PPMI,
        dataset_files.swow,
        (50, 100, 150, 200, 268, 320),
        n_runs=5,
    ),
    "usf-words": Recipe(
        TABLE["swow"],
        ("words/usf_appendixA.csv",),
        "free association norms of the University of South Florida, with the columns cue, target and P between commas",
        "Appendix A of Nelson, McEvoy and Schreiber (2004), http://w3.usf.edu/FreeAssociation",
        _PPMI,
        dataset_files.usf,
        (25, 50, 100, 150, 200),
        other_data=True,
        n_runs=5,
    ),
    "nsd": Recipe(
        TABLE["nsd"],
        ("nsd/subj01_responses.npy",),
        "mean responses of subject 1 over the repeats of an image, 9,841 images x voxels, in float32",
        "https://naturalscenesdataset.org, after its data access agreement (Allen et al., 2022); the paper does not "
        "say which voxels it used",
        _RBF,
        dataset_files.features,
        (10, 20, 40, 60, 78, 100, 120),
    ),
}
