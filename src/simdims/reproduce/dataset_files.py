"""From the files of the empirical data sets to similarities (Methods, "Constructing similarity matrices")."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simdims.associations import from_associations
from simdims.consensus import spearman_brown
from simdims.construct import from_dissimilarity
from simdims.features import from_features
from simdims.io import load_similarity
from simdims.similarity import Similarity
from simdims.triplets import from_triplets

if TYPE_CHECKING:
    import pandas as pd

#: Channels whose split-half reliability is not above this are left out.
LEAST_RELIABILITY = 0.3

#: Random halves of the repeats over which a channel's reliability is averaged.
_N_SPLITS = 20

_RATING_SCALE = 10.0


def similarities(path: Path) -> Similarity:
    """A square matrix of similarities, in any file that `load_similarity` reads."""
    return load_similarity(path)


def ratings(path: Path) -> Similarity:
    """A square matrix of mean ratings from 0 to 10, which are divided by 10, or of ratings that already are."""
    found = load_similarity(path, key="simMatrix" if path.suffix.lower() == ".mat" else None)
    largest = float(np.nanmax(found.values))
    if largest > _RATING_SCALE:
        raise ValueError(f"{path.name} must hold ratings between 0 and {_RATING_SCALE:g}, got {largest:g}.")
    return Similarity(found.values / _RATING_SCALE, found.labels) if largest > 1 else found


def arranged(path: Path) -> Similarity:
    """Mean dissimilarities of all people of Mur et al. (2013), as 1 - d / max(d)."""
    from scipy.io import loadmat

    people = np.atleast_1d(loadmat(path, simplify_cells=True)["rdms_behav_92"])
    return from_dissimilarity(np.stack([person["RDM"] for person in people]), method="max")


def correlation_distances(path: Path) -> Similarity:
    """A square table of correlation distances 1 - r, as r with negative ones set to 0."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Set the negative similarities")
        return from_dissimilarity(np.loadtxt(path, delimiter=","), method="correlation", negative="clip")


def features(path: Path) -> Similarity:
    """Features, items x features, through the RBF kernel with 0.4 times the median distance."""
    return from_features(_array(path, 2), kernel="rbf")


def similarities_or_features(path: Path) -> Similarity:
    """Features where the file is called features or responses, else a square matrix of similarities."""
    return features(path) if path.stem in ("features", "responses") else similarities(path)


def recordings(path: Path) -> Similarity:
    """Responses of reliable channels, through the RBF kernel.

    An .npz file has `repeats` (repeats x stimuli x channels), from which reliabilities follow: single trials, or two
    halves of them. It may have `responses` (stimuli x channels) to be compared instead, of other stimuli and the same
    channels; without it, and in an .npy file, which holds the repeats alone, these are the means of the repeats.
    """
    if path.suffix.lower() == ".npz":
        with np.load(path, allow_pickle=False) as file:
            if "repeats" not in file:
                raise ValueError(f"{path.name} must hold an array called repeats, got {', '.join(file) or 'none'}.")
            repeats = file["repeats"]
            responses = file.get("responses")
    else:
        repeats, responses = _array(path, 3), None
    _check_array(repeats, f"repeats of {path.name}", 3)
    responses = repeats.mean(axis=0) if responses is None else responses
    _check_array(responses, f"responses of {path.name}", 2)
    if responses.shape[1] != repeats.shape[2]:
        raise ValueError(
            f"responses of {path.name} must have the {repeats.shape[2]} channels of repeats, got {responses.shape[1]}."
        )
    reliable = channel_reliability(repeats) > LEAST_RELIABILITY
    if not reliable.any():
        raise ValueError(f"{path.name} must hold a channel with a reliability above {LEAST_RELIABILITY}, got none.")
    found = from_features(np.ascontiguousarray(responses[:, reliable]), kernel="rbf")
    counts = {"n_channels": len(reliable), "n_reliable_channels": int(np.count_nonzero(reliable))}
    return Similarity(found.values, info={**found.info, **counts})


def channel_reliability(repeats: NDArray, *, n_splits: int = _N_SPLITS, random_state: int = 0) -> NDArray[np.float64]:
    """Split-half reliability of each channel.

    The repeats are split at random into two halves, and a channel's mean responses to the stimuli are correlated
    between them. The mean over splits is corrected for the half length by the Spearman-Brown formula.

    Parameters
    ----------
    repeats : ndarray of shape (n_repeats, n_stimuli, n_channels)
        Responses; at least two repeats, of which there is but one split.
    n_splits : int, default=20
        Random splits.
    random_state : int, default=0
        Seed of the splits.

    Returns
    -------
    ndarray of shape (n_channels,)
        1 where all repeats agree; 0 for a channel that does not vary.
    """
    if repeats.ndim != 3 or len(repeats) < 2 or repeats.shape[1] < 2:
        raise ValueError(
            f"repeats must be repeats x stimuli x channels, with two of the first two at least, got {repeats.shape}."
        )
    if not np.isfinite(repeats).all():
        raise ValueError(f"repeats must be finite, got {np.count_nonzero(~np.isfinite(repeats))} that are not.")
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
    """Columns (of the last two axes) with mean 0 and length 1, or 0 throughout where they do not vary."""
    centred = values.astype(np.float64) - values.mean(axis=-2, dtype=np.float64, keepdims=True)
    length = np.linalg.norm(centred, axis=-2, keepdims=True)
    varies = length > 1e-12 * np.abs(values).max(axis=-2, keepdims=True)
    return np.divide(centred, length, out=np.zeros_like(centred), where=varies)


def triplets(path: Path) -> Similarity:
    """Odd-one-out answers, smoothed by 1; pairs that were never shown are missing."""
    return from_triplets(read_triplets(path))


def few_triplets(path: Path) -> Similarity:
    """The same where pairs have few answers: each counts as much as it has answers."""
    return from_triplets(read_triplets(path), weights="counts")


def read_triplets(path: Path) -> NDArray[np.int64]:
    """Answers, one a row: three items counted from 0, the last one the odd one out; .npy, or text."""
    if path.suffix.lower() == ".npy":
        found = np.load(path, allow_pickle=False)
    else:
        with path.open() as file:
            separator = "," if "," in file.readline() else None
        found = np.loadtxt(path, dtype=np.int64, delimiter=separator, ndmin=2)
    if found.ndim != 2 or found.shape[1] != 3 or found.dtype.kind not in "iu":
        raise ValueError(
            f"{path.name} must hold three whole numbers a row, got shape {found.shape} and type {found.dtype}."
        )
    return found.astype(np.int64)


def swow(path: Path) -> Similarity:
    """The strength file of Small World of Words: columns cue, response and R123, separated by tabs."""
    return from_associations(_words(path, "\t"), cue="cue", response="response", count="R123")


def usf(path: Path) -> Similarity:
    """The University of South Florida norms: columns cue, target and P, the people who said it."""
    return from_associations(_words(path, ","), cue="cue", response="target", count="P")


def densest_items(S: Similarity, most: int) -> Similarity:
    """The `most` items with most observed pairs (stored ones of a sparse matrix), in their order."""
    if S.n_items <= most:
        return S
    values: Any = S.values
    is_sparse = sparse.issparse(values)
    counts = np.diff(values.indptr) if is_sparse else np.count_nonzero(np.isfinite(values), axis=1)
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    weights: Any = S.weights
    return Similarity(
        values[kept][:, kept],
        None if S.labels is None else [S.labels[item] for item in kept],
        None if weights is None else weights[kept][:, kept],
        absent=S.absent,
        info=S.info,
    )


def _array(path: Path, ndim: int) -> NDArray:
    """The array of an .npy file."""
    found = np.load(path, allow_pickle=False)
    _check_array(found, path.name, ndim)
    return found


def _check_array(array: NDArray, name: str, ndim: int) -> None:
    if array.ndim != ndim or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must hold numbers in {ndim} dimensions, got shape {array.shape} and type {array.dtype}."
        )


def _words(path: Path, separator: str) -> pd.DataFrame:
    """A table in which "null" and "NA" are words."""
    import pandas as pd

    return pd.read_csv(path, sep=separator, keep_default_na=False)
