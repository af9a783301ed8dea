"""Data sets: load_* come with other libraries, fetch_* are downloaded once, read_* read a local file.

A fetched file is the original from a public repository at a fixed commit. pooch downloads it into the user's cache
and checks its SHA-256; later calls read it from the cache. Two environment variables change the source:

SIMDIMS_DATA
    A folder of local copies, under the names in _downloads.py. Files found there are not downloaded.
SIMDIMS_DATA_URL
    The address of a mirror, in place of https://raw.githubusercontent.com.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simdims._dependencies import library
from simdims._downloads import FILES, find, local_path
from simdims._parameters import ParameterError, is_whole, require_choice, shown
from simdims.associations import from_associations
from simdims.construct import from_dissimilarity
from simdims.features import from_features
from simdims.similarity import Similarity
from simdims.similarity.ownership import frozen

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Digits:
    """Handwritten digits.

    Parameters
    ----------
    similarity : Similarity
        Cosines between the pixels of 1,797 images; labels are row and digit, such as "0017: 7".
    images : ndarray of shape (1797, 8, 8)
        The images, 0 (white) to 16 (black).
    target : ndarray of shape (1797,)
        The digit in each image.
    """

    similarity: Similarity
    images: NDArray[np.float64]
    target: NDArray[np.int_]


@dataclass(frozen=True, eq=False)
class ArrangedImages:
    """Sixteen people's arrangements of 92 images by similarity.

    Parameters
    ----------
    similarity : Similarity
        1 - d / max(d), where d are the mean dissimilarities.
    rdms : ndarray of shape (16, 92, 92)
        The dissimilarities of each person, as in the file.
    """

    similarity: Similarity
    rdms: NDArray[np.float64]


def load_digits_similarity() -> Digits:
    """Load scikit-learn's handwritten digits and the cosines between their pixels.

    Returns
    -------
    Digits

    Examples
    --------
    >>> from simdims.datasets import load_digits_similarity
    >>> digits = load_digits_similarity()
    >>> digits.similarity
    Similarity(1797 items, dense float64, 100.0% of pairs observed, labelled)
    >>> digits.similarity.labels[17], digits.images[17].shape
    ('0017: 7', (8, 8))
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    labels = [f"{row:04d}: {digit}" for row, digit in enumerate(bunch.target)]
    similarity = from_features(bunch.data, kernel="cosine", labels=labels)
    return Digits(_named(similarity, "sklearn.datasets.load_digits"), bunch.images, bunch.target)


def load_miserables() -> Similarity:
    """Load the co-occurrence counts of the characters of Les Misérables from networkx's weighted graph.

    Returns
    -------
    Similarity
        77 characters; sparse. Pairs that never appear together are observed zeros, and the diagonal is missing.

    References
    ----------
    D. E. Knuth (1993), The Stanford GraphBase.

    Examples
    --------
    >>> from simdims.datasets import load_miserables
    >>> S = load_miserables()
    >>> S
    Similarity(77 items, sparse float64, absent='zero', 100.0% of pairs observed, labelled)
    >>> valjean, cosette = S.labels.index("Valjean"), S.labels.index("Cosette")
    >>> print(S.values[valjean, cosette])
    31.0
    """
    networkx = library("networkx", "load_miserables", "networkx")
    graph = networkx.les_miserables_graph()
    counts = networkx.to_scipy_sparse_array(graph, weight="weight", dtype=np.float64)
    return Similarity(frozen(counts), list(graph), absent="zero", info={"dataset": "networkx.les_miserables_graph"})


def fetch_mur92_behaviour() -> ArrangedImages:
    """Fetch similarity arrangements of 92 images (faces, bodies, animals, plants and things) by 16 people.

    Returns
    -------
    ArrangedImages
        The mean similarities and each person's dissimilarities. The file has no names: for labels, put a table
        mur92/stimuli92.csv with a column `name` in the folder SIMDIMS_DATA.

    References
    ----------
    M. Mur et al. (2013), Human object-similarity judgments reflect and transcend the primate-IT object
    representation, Frontiers in Psychology 4:128.

    Examples
    --------
    >>> images = fetch_mur92_behaviour()  # doctest: +SKIP
    >>> images.rdms.shape  # doctest: +SKIP
    (16, 92, 92)
    """
    import pandas as pd
    from scipy.io import loadmat

    name, names = "mur92/92_behavRDMs.mat", local_path("mur92/stimuli92.csv")
    people = loadmat(find(name), simplify_cells=True)["rdms_behav_92"]
    rdms = np.stack([person["RDM"] for person in people])
    labels = None if names is None else pd.read_csv(names)["name"].tolist()
    similarity = from_dissimilarity(rdms, method="max", labels=labels)
    return ArrangedImages(_named(similarity, FILES[name].url()), rdms)


def fetch_peterson_animals(half: int | None = None) -> Similarity:
    """Fetch mean ratings of the similarity of 120 pictures of animals.

    Parameters
    ----------
    half : {1, 2}, optional
        The first or the second half of the ratings, for measuring agreement; by default all of them.

    Returns
    -------
    Similarity
        The mean ratings, from 0 to 10, divided by 10; the diagonal is 1. The file has no names, so there are no labels.

    References
    ----------
    J. C. Peterson, J. T. Abbott and T. L. Griffiths (2018), Evaluating (and improving) the correspondence between
    deep neural networks and human representations, Cognitive Science 42(8).

    Examples
    --------
    >>> from simdims.datasets import fetch_peterson_animals
    >>> fetch_peterson_animals()  # doctest: +SKIP
    Similarity(120 items, dense float64, 100.0% of pairs observed)
    """
    from scipy.io import loadmat

    variables = {None: "simMatrix", 1: "simMatrixFirstBatch", 2: "simMatrixSecondBatch"}
    if not (half is None or (is_whole(half) and half in (1, 2))):
        raise ParameterError("half", "must be 1, 2 or None (all ratings)", shown(half))
    name = "peterson_animals/turkResults_CogSci2016.mat"
    ratings = loadmat(find(name))[variables[half]]
    return Similarity(frozen(ratings / 10), info={"dataset": FILES[name].url()})


def fetch_things_spose() -> pd.DataFrame:
    """Fetch the SPoSE embedding of the 1,854 THINGS objects, learned from 4.7 million odd-one-out answers.

    Returns
    -------
    DataFrame of shape (1854, 66)
        One row per object and one column per dimension, both named. The 46 values in the file that are slightly
        negative are set to 0.

    References
    ----------
    M. N. Hebart et al. (2020), Revealing the multidimensional mental representations of natural objects underlying
    human similarity judgements, Nature Human Behaviour 4; M. N. Hebart et al. (2023), THINGS-data, eLife 12:e82580.

    Examples
    --------
    >>> from simdims.datasets import fetch_things_spose
    >>> fetch_things_spose().loc["aardvark"].nlargest(1)  # doctest: +SKIP
    animal-related    2.352855
    Name: aardvark, dtype: float64
    """
    import pandas as pd

    files = ("spose_embedding_66d_sorted.txt", "unique_id.txt", "labels_short.txt")
    values, objects, dimensions = (find(f"things/{file}") for file in files)
    return pd.DataFrame(np.loadtxt(values), index=_lines(objects), columns=_lines(dimensions)).clip(lower=0)


def fetch_things_48() -> Similarity:
    """Fetch the similarities of 48 THINGS objects for which every triplet was judged.

    Returns
    -------
    Similarity
        1 - d, where d is the dissimilarity in the file and 1 - d is how often people kept a pair together when a third
        object was the odd one out. The file has no names: for labels, put a file things/names48.txt with one name per
        line in the folder SIMDIMS_DATA.

    References
    ----------
    M. N. Hebart et al. (2020), Revealing the multidimensional mental representations of natural objects
    underlying human similarity judgements, Nature Human Behaviour 4.

    Examples
    --------
    >>> S = fetch_things_48()  # doctest: +SKIP
    """
    from scipy.io import loadmat

    name = "things/RDM48_triplet.mat"
    names = local_path("things/names48.txt")
    labels = None if names is None else _lines(names)
    similarity = from_dissimilarity(loadmat(find(name))["RDM48_triplet"], method="correlation", labels=labels)
    return _named(similarity, FILES[name].url())


def fetch_word_similarity(name: str) -> pd.DataFrame:
    """Fetch ratings of the similarity of pairs of words.

    Parameters
    ----------
    name : {"simlex999", "wordsim353"}
        SimLex-999: similarity alone (coast and shore). WordSim-353: any relatedness (coffee and cup).

    Returns
    -------
    DataFrame
        Columns word1, word2 and rating (a mean, 0 to 10), then the other columns of the file. Pairs are as in the file:
        a few occur twice, and WordSim-353 includes "tiger" paired with itself.

    References
    ----------
    F. Hill, R. Reichart and A. Korhonen (2015), SimLex-999, Computational Linguistics 41(4). L. Finkelstein et al.
    (2002), Placing search in context, ACM Transactions on Information Systems 20(1).

    Examples
    --------
    >>> from simdims.datasets import fetch_word_similarity
    >>> fetch_word_similarity("wordsim353").head(2)  # doctest: +SKIP
       word1 word2  rating
    0   love   sex    6.77
    1  tiger   cat    7.35
    """
    import pandas as pd

    require_choice("name", name, ("simlex999", "wordsim353"))
    if name == "simlex999":
        table = pd.read_csv(find("words/SimLex-999.txt"), sep="\t").rename(columns={"SimLex999": "rating"})
    else:
        table = pd.read_csv(find("words/wordsim353_combined.csv"))
        table = table.rename(columns={"Word 1": "word1", "Word 2": "word2", "Human (mean)": "rating"})
    first = ["word1", "word2", "rating"]
    return table[first + [column for column in table.columns if column not in first]]


def read_swow(path: str | os.PathLike[str]) -> Similarity:
    """Read the association strengths of Small World of Words as similarities of words.

    Parameters
    ----------
    path : path
        A strength file such as strength.SWOW-EN.R123.csv, from https://smallworldofwords.org/en/project/research, with
        the tab-separated columns cue, response and R123.

    Returns
    -------
    Similarity
        What `from_associations` returns for the file.

    References
    ----------
    S. De Deyne et al. (2019), The "Small World of Words" English word association norms for over 12,000 cue words,
    Behavior Research Methods 51.

    Examples
    --------
    >>> S = read_swow("strength.SWOW-EN.R123.csv")  # doctest: +SKIP
    """
    return _read_associations(path, "\t", cue="cue", response="response", count="R123")


def read_usf(path: str | os.PathLike[str]) -> Similarity:
    """Read the free association norms of the University of South Florida as similarities of words.

    Parameters
    ----------
    path : path
        Appendix A of the norms, from http://w3.usf.edu/FreeAssociation, as one table with the comma-separated columns
        cue, target and P (the number of people who gave the target).

    Returns
    -------
    Similarity
        What `from_associations` returns for the file.

    References
    ----------
    D. L. Nelson, C. L. McEvoy and T. A. Schreiber (2004), The University of South Florida free association, rhyme, and
    word fragment norms, Behavior Research Methods, Instruments, & Computers 36.

    Examples
    --------
    >>> S = read_usf("usf_appendixA.csv")  # doctest: +SKIP
    """
    return _read_associations(path, ",", cue="cue", response="target", count="P")


def _read_associations(path: str | os.PathLike[str], separator: str, **columns: str) -> Similarity:
    """A table of associations, keeping "null" and "NA" as words."""
    import pandas as pd

    table = pd.read_csv(path, sep=separator, keep_default_na=False)
    return _named(from_associations(table, **columns), Path(path).name)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _named(similarity: Similarity, dataset: str) -> Similarity:
    return replace(similarity, info={**similarity.info, "dataset": dataset})
