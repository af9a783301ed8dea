"""What the metrics say of real embeddings and real people."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.io import loadmat

from simdims import SRF, Similarity, from_associations
from simdims.metrics import (
    factor_alignment,
    hold_out_links,
    link_auc,
    pair_correlation,
    triplet_accuracy,
    triplet_probabilities,
)


@pytest.fixture(scope="module")
def spose(data_path):
    return np.loadtxt(data_path("things/spose_embedding_66d_sorted.txt")).clip(min=0)


def test_spose_predicts_how_people_judge_48_objects(spose, data_path):
    """Similarity is the mean probability that a pair is kept, over all third objects of the 48; published: r = 0.90."""
    human = 1 - loadmat(data_path("things/RDM48_triplet.mat"))["RDM48_triplet"]
    W = spose[np.loadtxt(data_path("things/idx48_in_1854.txt"), dtype=int)]
    triplets = np.array(list(itertools.combinations(range(48), 3)))
    odd = triplet_probabilities(W, triplets)
    predicted = np.zeros((48, 48))
    for column, kept in enumerate([[1, 2], [0, 2], [0, 1]]):
        np.add.at(predicted, tuple(triplets[:, kept].T), odd[:, column] / 46)
    pairs = np.triu_indices(48, 1)
    assert 0.88 < np.corrcoef(predicted[pairs], human[pairs])[0, 1] < 0.92


def test_spose_predicts_two_answers_in_three(spose, data_path):
    """Published for held-out answers: 64%; some of these 100,000 will have been trained on."""
    triplets = np.load(data_path("things/triplets_100k.npy"))
    accuracy = triplet_accuracy(spose, triplets)
    assert 0.63 < accuracy < 0.68
    assert triplet_accuracy(spose, triplets, odd=0) < 0.25
    assert np.mean(np.argmax(triplet_probabilities(spose, triplets), axis=1) == 2) == pytest.approx(accuracy, abs=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:SRF did not converge")
@pytest.mark.parametrize(("rank", "n_recovered"), [(66, 58), (40, 35)])
def test_srf_finds_the_dimensions_of_spose_in_its_similarities(spose, rank, n_recovered):
    W = SRF(rank, random_state=0).fit(Similarity.from_factors(spose)).embedding_
    alignment = factor_alignment(W, spose)
    assert len(alignment.correlations) == rank
    assert np.count_nonzero(alignment.correlations > 0.7) >= n_recovered


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:SRF did not converge")
@pytest.mark.parametrize("absent", [0.01, 0.03])
def test_usf_associations_predict_links_and_word_similarities(data_path, absent):
    norms = pd.read_csv(data_path("words/usf_appendixA.csv"), keep_default_na=False)
    simlex = pd.read_csv(data_path("words/SimLex-999.txt"), sep="\t")
    wordsim = pd.read_csv(data_path("words/wordsim353_combined.csv"))
    S = from_associations(norms, response="target", count="P", absent=absent)
    training, held_out = hold_out_links(S, 0.1, random_state=0)
    W = SRF(150, max_iter=30, random_state=0).fit(training).embedding_
    assert link_auc(S, W, pairs=held_out, random_state=0) >= 0.89

    words = [word.lower() for word in S.labels]
    similar = pair_correlation(W, simlex[["word1", "word2"]], simlex["SimLex999"], labels=words)
    lower = wordsim[["Word 1", "Word 2"]].apply(lambda column: column.str.lower())
    related = pair_correlation(W, lower, wordsim["Human (mean)"], labels=words)
    assert similar.correlation >= 0.53
    assert related.correlation >= 0.70
    assert (similar.n_found, related.n_found) == (920, 225)
