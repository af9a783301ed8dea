"""What `things` reads and builds: answers of people, SPoSE, the 48 objects, and answers drawn from an embedding.

The data folder holds, under things/, spose_embedding_66d_sorted.txt, RDM48_triplet.mat (1 minus the similarities of 48
objects), idx48_in_1854.txt (their rows, from 0), and answers: either the whole release, trainset.txt with
validationset.txt (to be predicted) and testset1.txt (triplets answered many times), or triplets_100k.npy, of which a
tenth is held out. A row of answers is three objects counted from 0, the last one the odd one out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simdims._parallel import seed_of
from simdims.reproduce.dataset_files import read_triplets
from simdims.reproduce.frame import Settings, need_file
from simdims.similarity import Similarity
from simdims.triplets import from_triplets

#: From so many answers on they are as many as the paper's.
_ALL_ANSWERS = 4_000_000
#: With fewer answers a pair, the construction weighs pairs by them.
_FEW_ANSWERS = 5.0

_HELD_OUT = 0.1
_RELEASE = "https://osf.io/f5rn6 (data/triplet_dataset; Hebart et al., 2023)"
_SPLIT = 0  # first word of the name of a seed


@dataclass(frozen=True, eq=False)
class Data:
    """What people answered, and what SPoSE makes of it.

    Parameters
    ----------
    train, test : ndarray of shape (n, 3)
        Answers to fit and to predict.
    repeated : ndarray of shape (n, 3)
        Answers among which some triplets come more than once.
    spose : ndarray of shape (n_items, 66)
        SPoSE's embedding.
    rows_48, human_48 : ndarray
        Which items the 48 are, and their similarities.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    repeated: NDArray[np.int64]
    spose: NDArray[np.float64]
    rows_48: NDArray[np.int64]
    human_48: NDArray[np.float64]

    @property
    def is_all(self) -> bool:
        """Whether there are as many answers as the paper had."""
        return len(self.train) >= _ALL_ANSWERS


def read(settings: Settings) -> Data:
    """All files, or a sentence that says which one is not there."""
    what = "odd-one-out answers, three objects a row counted from 0, the last one the odd one out"
    answers = need_file(settings, "things/trainset.txt", "things/triplets_100k.npy", what=what, where=_RELEASE)
    spose = need_file(
        settings,
        "things/spose_embedding_66d_sorted.txt",
        what="the SPoSE embedding, a row of 66 numbers for each of 1,854 objects",
        where=_RELEASE.replace("/triplet_dataset", ""),
    )
    rdm = need_file(
        settings,
        "things/RDM48_triplet.mat",
        what="dissimilarities of 48 objects, in RDM48_triplet",
        where="https://osf.io/z2784 (Hebart et al., 2020)",
    )
    rows = need_file(
        settings,
        "things/idx48_in_1854.txt",
        what="the rows of the 48 objects among the 1,854, from 0, one a line",
        where="the names in words48.mat of https://osf.io/z2784, looked up in unique_id.txt",
    )
    from scipy.io import loadmat

    train, test, repeated = split(answers, seed_of(settings.seed, _SPLIT))
    return Data(
        train,
        test,
        repeated,
        np.loadtxt(spose).clip(min=0),
        np.loadtxt(rows, dtype=np.int64),
        1 - np.asarray(loadmat(rdm)["RDM48_triplet"], dtype=np.float64),
    )


def split(path: Path, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Answers to fit, to predict, and to see how far people agree: as released, or a tenth held out at random."""
    answers = read_triplets(path)
    released, repeated = path.with_name("validationset.txt"), path.with_name("testset1.txt")
    if path.name == "trainset.txt" and released.exists():
        return answers, read_triplets(released), read_triplets(repeated) if repeated.exists() else answers
    order = np.random.RandomState(seed).permutation(len(answers))
    n_test = max(1, round(_HELD_OUT * len(answers)))
    return answers[order[n_test:]], answers[order[:n_test]], answers


def build(train: NDArray[np.int64], n_items: int) -> Similarity:
    """(kept + 1) / (shown + 2); pairs count by their answers where these are few."""
    S = from_triplets(train, n_items=n_items)
    if S.info["answers_per_shown_pair"] >= _FEW_ANSWERS:
        return S
    return from_triplets(train, n_items=n_items, weights="counts")


def choice_similarity(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often a model leaves two of its items together, over all third ones: the mean of its choice probabilities."""
    n = len(W)
    products = W @ W.T
    kept = np.zeros((n, n))
    for i in range(n):
        # For this i: rows are partners j, columns third items k; the largest is taken off before exp.
        pair, own, others = products[i][:, None], products[i][None, :], products
        largest = np.maximum(np.maximum(pair, own), others)
        chosen = np.exp(pair - largest) / (np.exp(pair - largest) + np.exp(own - largest) + np.exp(others - largest))
        chosen[:, i] = 0
        np.fill_diagonal(chosen, 0)
        kept[i] = chosen.sum(axis=1) / (n - 2)
    np.fill_diagonal(kept, 1)
    return kept


def simulated_answers(W: NDArray[np.float64], n_answers: int, seed: int) -> NDArray[np.int64]:
    """Answers to random triplets, drawn from the choice probabilities of an embedding (Gumbel's trick)."""
    rng = np.random.default_rng(seed)
    products = W @ W.T
    drawn = []
    while n_answers > 0:
        items = rng.integers(len(W), size=(min(n_answers, 500_000), 3))
        a, b, c = items.T
        items = items[(a != b) & (a != c) & (b != c)]
        a, b, c = items.T
        support = np.stack([products[b, c], products[a, c], products[a, b]], axis=1)
        odd = np.argmax(support + rng.gumbel(size=support.shape), axis=1)
        rest = np.array([[1, 2], [0, 2], [0, 1]])[odd]
        each = np.arange(len(items))
        drawn.append(np.column_stack([items[each, rest[:, 0]], items[each, rest[:, 1]], items[each, odd]]))
        n_answers -= len(items)
    return np.concatenate(drawn)
