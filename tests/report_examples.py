"""Discoveries for the tests of the report, made without fits."""

import numpy as np
import pandas as pd

from simdims import Bootstrap, Discovery, RankSelection, Similarity, simulate
from simdims.consensus import Consensus
from simdims.metrics import explained_variance

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "<!--",
    "a&b",
    '"quoted"',
    "{{script}}",
]


def made(W, similarity=None, labels=None):
    """A Discovery of a given embedding, without the fits."""
    W = np.asarray(W)
    k = W.shape[1]
    consensus = Consensus(
        embeddings=W[None], selected=0, reliability=np.linspace(1, 0.5, k), agreement=np.ones((1, 1)),
        objectives=np.zeros(1), converged=np.ones(1, bool), n_iter=np.ones(1, int), seeds=np.zeros(1, int), n_splits=10,
        labels=labels,
    )  # fmt: skip
    similarity = Similarity(W @ W.T, labels=labels) if similarity is None else similarity
    metrics = {"mean_reliability": 0.75, "explained_variance": explained_variance(similarity, W)}
    return Discovery(similarity=similarity, selection=None, consensus=consensus, metrics=metrics, settings={},
                     estimated_seconds=1.0)  # fmt: skip


def selection_of(rank, minimum, valley, tried):
    """A RankSelection that chose a number, without the fits."""
    curve = pd.DataFrame({"rank": tried, "explained_variance": 0.5})
    return RankSelection(
        rank=rank, minimum=minimum, scores=pd.DataFrame({"converged": [True]}), sampling=0.5, calibration=None,
        one_standard_error_rank=min(valley), valley=valley, curve=curve, training_share=0.5, tried=tried, largest=99,
        n_items=100, n_folds=5, n_repeats=1, protocol="averaged",
    )  # fmt: skip


def sorted_embedding(n, k, seed=0):
    W = simulate.dirichlet(n, k, alpha=0.3, random_state=seed)
    return W[:, np.argsort(-np.sum(W**2, axis=0))]


def resampled(W, labels=None, n_resamples=40, seed=0):
    """A Bootstrap without the fits: the embedding with noise; its last dimension is found in three of four."""
    rng = np.random.default_rng(seed)
    embeddings = np.maximum(W + rng.normal(0, 0.02, (n_resamples, *W.shape)), 0.0)
    correlations = np.ones((n_resamples, W.shape[1]))
    correlations[::4, -1] = 0.5
    shares = np.sum(embeddings**2, axis=1)
    return Bootstrap(
        over="systems", embedding=W, weights=np.ones((6, W.shape[1])), r2=0.5, embeddings=embeddings,
        resampled_weights=np.ones((n_resamples, 6, W.shape[1])), correlations=correlations, threshold=0.8,
        resampled_shares=shares / shares.sum(axis=1, keepdims=True), resampled_r2=np.full(n_resamples, 0.5),
        alpha=0.1, shrinkage=0.1, n_units=6, pairs_per_system=100, converged=np.ones(n_resamples, bool), seed=0,
        labels=labels, systems=tuple("abcdef"),
    )  # fmt: skip
