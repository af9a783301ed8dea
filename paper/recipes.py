"""The empirical data sets: their published values, required files, and construction of similarities.

File names are relative to the data folder; the first of several that exists is read.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import loadmat

from simdims import Similarity, from_dissimilarity, from_features, from_triplets, load_similarity
from simdims.consensus import spearman_brown
from simdims.datasets import read_swow, read_usf

#: Channels with a lower split-half reliability are excluded.
LEAST_RELIABILITY = 0.3

#: The default weight of absent pairs in from_associations.
SMALL_WEIGHT = 0.03

#: Short names of the scales in the Glasgow Norms.
SCALES = {
    "AROU": "arousal",
    "VAL": "valence",
    "DOM": "dominance",
    "CNC": "concreteness",
    "IMAG": "imageability",
    "FAM": "familiarity",
    "AOA": "age of acquisition",
    "SIZE": "size",
    "GEND": "gender",
}

_RATING_SCALE = 10.0


@dataclass(frozen=True)
class Published:
    """A row of the paper's table of data sets; coverage is a percentage of pairs, sampling is p*."""

    title: str
    n_items: int
    coverage: float
    sampling: float
    rank: int
    r2: float | None
    auc: float | None
    reliability: str

    @property
    def is_bound(self) -> bool:
        """Whether the reliability was published as a lower bound."""
        return self.reliability.startswith(">")

    @property
    def least_reliability(self) -> float:
        """The published reliability, or its lower bound."""
        return float(self.reliability.lstrip(">"))


@dataclass(frozen=True)
class Recipe:
    """How to run one data set: what its files contain and where to get them, how S is built, and the ranks to try.

    `other_data` is True if the published row was computed from other data. `n_runs` is set if 30 runs take too long.
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


def similarities_or_features(path: Path) -> Similarity:
    """Features if the file is named responses, otherwise a square matrix of similarities."""
    return features(path) if path.stem == "responses" else load_similarity(path)


def features(path: Path) -> Similarity:
    """Features, items x features, through the RBF kernel with 0.4 times the median distance."""
    return from_features(_require_array(np.load(path, allow_pickle=False), path.name, 2), kernel="rbf")


def ratings(path: Path) -> Similarity:
    """A square matrix of mean ratings from 0 to 10, divided by 10 unless they already are."""
    found = load_similarity(path, key="simMatrix" if path.suffix.lower() == ".mat" else None)
    largest = float(np.nanmax(found.values))
    if largest > _RATING_SCALE:
        raise ValueError(f"{path.name} must contain ratings between 0 and {_RATING_SCALE:g}, got {largest:g}.")
    return Similarity(found.values / _RATING_SCALE, found.labels) if largest > 1 else found


def arranged(path: Path) -> Similarity:
    """Mean dissimilarities of all people of Mur et al. (2013), as 1 - d / max(d)."""
    people = np.atleast_1d(loadmat(path, simplify_cells=True)["rdms_behav_92"])
    return from_dissimilarity(np.stack([person["RDM"] for person in people]), method="max")


def correlation_distances(path: Path) -> Similarity:
    """A square table of correlation distances 1 - r, as r with negative values set to 0."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # about the negative similarities
        return from_dissimilarity(np.loadtxt(path, delimiter=","), method="correlation", clip=True)


def recordings(path: Path) -> Similarity:
    """Responses of reliable channels, through the RBF kernel.

    An .npz file has `repeats` (repeats x stimuli x channels), single trials or two halves, from which reliabilities
    follow. It may have `responses` (stimuli x channels) to other stimuli, to compare instead of the means of repeats.
    An .npy file contains only the repeats.
    """
    found = np.load(path, allow_pickle=False)
    arrays = {"repeats": found} if isinstance(found, np.ndarray) else dict(found)
    if "repeats" not in arrays:
        raise ValueError(f"{path.name} must contain an array called repeats, got {', '.join(arrays) or 'none'}.")
    repeats = _require_array(arrays["repeats"], f"repeats of {path.name}", 3)
    responses = _require_array(arrays.get("responses", repeats.mean(axis=0)), f"responses of {path.name}", 2)
    if responses.shape[1] != repeats.shape[2]:
        raise ValueError(
            f"responses of {path.name} must have the {repeats.shape[2]} channels of repeats, got {responses.shape[1]}."
        )
    reliable = channel_reliability(repeats) > LEAST_RELIABILITY
    if not reliable.any():
        raise ValueError(f"{path.name} must contain a channel with a reliability above {LEAST_RELIABILITY}, got none.")
    S = from_features(np.ascontiguousarray(responses[:, reliable]), kernel="rbf")
    counts = {"n_channels": len(reliable), "n_reliable_channels": int(np.count_nonzero(reliable))}
    return Similarity(S.values, info={**S.info, **counts})


def channel_reliability(repeats: NDArray, *, n_splits: int = 20, random_state: int = 0) -> NDArray[np.float64]:
    """Split-half reliability of each channel of repeats x stimuli x channels; 0 for a constant channel.

    The mean responses to the stimuli are correlated between two random halves of the repeats. The mean over splits is
    corrected for the half length by the Spearman-Brown formula. Two repeats have only one split.
    """
    rng = np.random.RandomState(random_state)
    half = len(repeats) // 2
    total = np.zeros(repeats.shape[2])
    n_splits = n_splits if len(repeats) > 2 else 1
    for _ in range(n_splits):
        order = rng.permutation(len(repeats))
        first, second = (standard_columns(repeats[part].mean(axis=0)) for part in (order[:half], order[half:]))
        total += np.einsum("sc,sc->c", first, second)
    return spearman_brown(total / n_splits)


def standard_columns(values: NDArray) -> NDArray[np.float64]:
    """Columns (of the last two axes) with mean 0 and length 1, or all zeros if they do not vary."""
    centred = values.astype(np.float64) - values.mean(axis=-2, dtype=np.float64, keepdims=True)
    length = np.linalg.norm(centred, axis=-2, keepdims=True)
    varies = length > 1e-12 * np.abs(values).max(axis=-2, keepdims=True)
    return np.divide(centred, length, out=np.zeros_like(centred), where=varies)


def triplets(path: Path) -> Similarity:
    """Odd-one-out answers, smoothed by 1; pairs that were never shown are missing."""
    return from_triplets(read_triplets(path))


def few_triplets(path: Path) -> Similarity:
    """The same for few answers per pair, with pairs weighted by their answers."""
    return from_triplets(read_triplets(path), weights="counts")


def read_triplets(path: Path) -> NDArray[np.int64]:
    """Answers from an .npy or text file, one per row: three items counted from 0, the last one the odd one out."""
    if path.suffix.lower() == ".npy":
        found = np.load(path, allow_pickle=False)
    else:
        with path.open() as file:
            separator = "," if "," in file.readline() else None
        found = np.loadtxt(path, dtype=np.int64, delimiter=separator, ndmin=2)
    if found.ndim != 2 or found.shape[1] != 3 or found.dtype.kind not in "iu":
        raise ValueError(
            f"{path.name} must contain three integers per row, got shape {found.shape} and type {found.dtype}."
        )
    return found.astype(np.int64)


def read_associations(path: Path) -> tuple[str, Similarity]:
    """The source and the similarities of a file of SWOW or of the USF norms, identified by its name."""
    source, read = ("SWOW", read_swow) if path.name.startswith("strength.") else ("USF", read_usf)
    S = read(path)
    return source, replace(S, labels=lower_names(S.labels), absent=SMALL_WEIGHT)


def read_benchmark(path: Path, separator: str, columns: list[str]) -> pd.DataFrame:
    """Pairs of words in lower case, and their ratings."""
    table = pd.read_csv(path, sep=separator, keep_default_na=False, encoding="utf-8-sig")
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise ValueError(f"{path.name} must have a column {absent[0]!r}, got {', '.join(map(str, table.columns[:8]))}.")
    table = table[columns].set_axis(["one", "other", "rating"], axis=1)
    return table.assign(one=table["one"].str.lower(), other=table["other"].str.lower())


def read_ratings(path: Path) -> pd.DataFrame:
    """Mean ratings of words, in the layout of the Glasgow Norms or with one header row."""
    cells = pd.read_csv(path, header=None, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    cells = cells.apply(lambda column: column.str.strip())
    names, body = cells.iloc[0], cells.iloc[1:]
    columns = [k for k in range(1, cells.shape[1]) if names[k].lower() != "length"]
    if len(body) and "M" in set(body.iloc[0]):
        names = names.where(names != "").ffill()
        columns, body = [k for k in columns if body.iat[0, k] == "M"], body.iloc[1:]
    if not columns or not len(body):
        raise ValueError(f"{path.name} must contain words and columns of mean ratings, got {cells.shape[1]} columns.")
    words = pd.Index(lower_names(body[0]))
    if words.has_duplicates:
        raise ValueError(f"{path.name} must contain every word once, got {words[words.duplicated()][0]!r} again.")
    ratings = {}
    for k in columns:
        numbers = pd.to_numeric(body[k], errors="coerce")
        wrong = body[k][numbers.isna() & ~body[k].isin(["", "NA"])]
        if len(wrong):
            where = f"row {wrong.index[0] + 1}, column {names[k]!r}"
            raise ValueError(f"{path.name} must contain numbers, got {wrong.iloc[0]!r} in {where}.")
        ratings[SCALES.get(names[k], names[k])] = numbers.to_numpy(dtype=float)
    return pd.DataFrame(ratings, index=words)


def lower_names(names: Iterable[str] | None) -> list[str]:
    """Names in lower case, except those that would then duplicate another name."""
    given = list(names or ()) if not isinstance(names, pd.Series) else names.tolist()
    times = Counter(name.lower() for name in given)
    return [name.lower() if times[name.lower()] == 1 else name for name in given]


def densest_items(S: Similarity, most: int) -> Similarity:
    """The `most` items with the most observed pairs (stored pairs of a sparse matrix), in their original order."""
    if S.n_items <= most:
        return S
    values: Any = S.values
    counts = np.diff(values.indptr) if sparse.issparse(values) else np.count_nonzero(np.isfinite(values), axis=1)
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    labels = None if S.labels is None else [S.labels[item] for item in kept]
    weights = None if S.weights is None else S.weights[kept][:, kept]
    return Similarity(values[kept][:, kept], labels, weights, absent=S.absent, info=S.info)


def _require_array(array: NDArray, name: str, ndim: int) -> NDArray:
    if array.ndim != ndim or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must be numbers in {ndim} dimensions, got shape {array.shape} and type {array.dtype}."
        )
    return array


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
_TRIPLETS = "three objects per row, counted from 0 in the order of unique_id.txt, the last one the odd one out"
_THINGS_IMAGES = "in the order of the 1,854 THINGS objects (unique_id.txt)"

RECIPES = {
    "mur-92": Recipe(
        TABLE["mur-92"],
        ("mur92/similarity.npy", "mur92/similarity.csv", "mur92/responses.npy"),
        "the 92 x 92 similarities of this row, or the responses, 92 images x voxels, from which they were computed",
        "the authors of the paper: the judgements that Mur et al. (2013) published are the data set mur92-behaviour "
        "here, and give other values",
        f"as given; responses by {_RBF}",
        similarities_or_features,
        _FEW,
    ),
    "mur92-behaviour": Recipe(
        TABLE["mur-92"],
        ("mur92/92_behavRDMs.mat",),
        "dissimilarities of 16 people who arranged 92 images, in rdms_behav_92",
        "demos/92imageData of https://github.com/rsagroup/rsatoolbox",
        "1 - d / max(d) of the mean over people",
        arranged,
        _FEW,
        other_data=True,
    ),
    "human-it-92": Recipe(
        TABLE["mur-92"],
        ("mur92/rdm_humanIT_2008.csv",),
        "correlation distances 1 - r between responses of human IT to the same 92 images, 92 x 92, with commas",
        "Kriegeskorte et al. (2008), Neuron 60; demos/92imageData of https://github.com/rsagroup/rsatoolbox has them",
        "r, negative values set to 0",
        correlation_distances,
        _FEW,
        other_data=True,
    ),
    "peterson-animals": Recipe(
        TABLE["peterson-animals"],
        ("peterson_animals/turkResults_CogSci2016.mat", "peterson_animals/animals_similarity.npy"),
        "mean ratings from 0 to 10 of 120 animals (simMatrix), or the same divided by 10",
        "https://github.com/jcpeterson/percept2vec",
        "ratings divided by 10",
        ratings,
        _FEW,
    ),
    "peterson-various": Recipe(
        TABLE["peterson-various"],
        ("peterson_various/various_similarity.npy", "peterson_various/various_similarity.csv"),
        "mean ratings from 0 to 10 of 120 images of various categories, 120 x 120, or the same divided by 10",
        "the authors of Peterson, Abbott and Griffiths (2018), Cognitive Science 42(8); "
        "https://github.com/jcpeterson/percept2vec has only the animals",
        "ratings divided by 10",
        ratings,
        _FEW,
    ),
    "clip": Recipe(
        TABLE["clip"],
        ("clip/features.npy",),
        f"outputs of the image encoder of CLIP ViT-L/14 for one image per object, 1,854 x 768, {_THINGS_IMAGES}",
        "the model from https://github.com/openai/CLIP (encode_image) and the THINGS-plus images from https://osf.io/jum2f",
        _RBF,
        features,
        (5, 10, 20, 30, 35, 40, 45, 50, 60, 80),
    ),
    "macaque-it": Recipe(
        TABLE["macaque-it"],
        ("macaque_it/recordings.npz", "macaque_it/recordings.npy"),
        "repeats (repeats x stimuli x channels: single trials or two halves) and, if other stimuli are to be compared, "
        "responses (stimuli x channels); an .npy file contains only the repeats",
        "https://gin.g-node.org/paolo_papale/TVSD (Papale et al., 2025): from THINGS_normMUA.mat the channels of IT, "
        "test_MUA_reps as repeats, and train_MUA averaged over the images of each of the 1,854 objects as responses",
        f"channels with a split-half reliability above 0.3, {_RBF}",
        recordings,
        (10, 20, 40, 60, 70, 78, 85, 100, 120),
    ),
    "things": Recipe(
        TABLE["things"],
        ("things/trainset.txt", "things/triplets.npy"),
        f"4.1 million odd-one-out answers (4.7 million with those held out), {_TRIPLETS}",
        "https://osf.io/f5rn6, data/triplet_dataset (Hebart et al., 2023)",
        "(kept + 1) / (shown + 2), pairs never shown missing",
        triplets,
        (5, 10, 15, 20, 25, 30, 35, 40, 50, 66),
    ),
    "things-100k": Recipe(
        TABLE["things"],
        ("things/triplets_100k.npy",),
        f"100,000 odd-one-out answers, {_TRIPLETS}",
        "https://osf.io/f5rn6, data/triplet_dataset: any 100,000 of its rows",
        "(kept + 1) / (shown + 2), pairs never shown missing, weighted by their answers",
        few_triplets,
        (1, 2, 3, 4, 5, 6, 8, 10, 15),
        other_data=True,
    ),
    "swow": Recipe(
        TABLE["swow"],
        ("words/strength.SWOW-EN.R123.csv", "words/strength.SWOW-EN.R123.20180827.csv"),
        "the strength file R123 of Small World of Words, with the tab-separated columns cue, response and R123",
        "https://smallworldofwords.org/en/project/research (De Deyne et al., 2019)",
        _PPMI,
        read_swow,
        (50, 100, 150, 200, 268, 320),
        n_runs=5,
    ),
    "usf-words": Recipe(
        TABLE["swow"],
        ("words/usf_appendixA.csv",),
        "free association norms of the University of South Florida, with the comma-separated columns cue, target and P",
        "Appendix A of Nelson, McEvoy and Schreiber (2004), http://w3.usf.edu/FreeAssociation",
        _PPMI,
        read_usf,
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
        features,
        (10, 20, 40, 60, 78, 100, 120),
    ),
}
