"""What `words` fits and measures: all links, some held out, and the paper's ADMM over its iterations."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from simdims import solvers
from simdims._arrays import arrays_of, problem_of
from simdims.metrics import PairCorrelation, hold_out_links, link_auc, pair_correlation, readout
from simdims.reproduce.dataset_files import densest_items
from simdims.reproduce.frame import Cell
from simdims.reproduce.words_data import Words
from simdims.similarity import Similarity
from simdims.solvers.admm import initial_state, iterate
from simdims.solvers.problem import matrix_of
from simdims.srf import SRF

#: Share of the links that are held out.
HELD_OUT = 0.1

#: The paper's penalty.
RHO = 3.0

#: Fewer pairs of a benchmark among the words say nothing.
_FEWEST_PAIRS = 10

_N_CLOUD_WORDS = 18


def measure(words: Words, cell: Cell) -> Cell:
    """Measure a cell of any kind."""
    kinds = {"all links": measure_all, "held out": measure_held_out, "iterations": measure_iterations}
    with warnings.catch_warnings():
        # How many sweeps are done is part of the cell.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kinds[cell["kind"]](words, cell)


def measure_all(words: Words, cell: Cell) -> Cell:
    """Fit all links: AUC as in the paper, ratings of pairs and of words, and the words of some dimensions."""
    S = words.similarity
    srf = _fit(S, cell["weight"], cell["rank"], cell["sweeps"], cell["seed"])
    W = srf.embedding_frame()
    found = _known_pairs(words, W)
    measured: Cell = {
        "auc": link_auc(S, W, random_state=cell["seed"]),
        "benchmarks": _correlations(found),
        "scatter": {name: [_short(rated), _short(one.similarities)] for name, (rated, one) in found.items()},
        "ratings": [],
        "clouds": _clouds(srf.embedding_, list(W.index), cell["n_clouds"]),
    }
    if words.ratings is not None:
        read = readout(W, words.ratings, random_state=cell["seed"])
        for row in read.table.itertuples():
            predicted = read.predictions[row.target].dropna()
            rated = words.ratings[row.target].reindex(predicted.index)
            measured["ratings"].append(
                {
                    "scale": row.target,
                    "correlation": row.correlation,
                    "n_words": row.n_items,
                    "rated": _short(rated),
                    "predicted": _short(predicted),
                }
            )
    return measured


def measure_held_out(words: Words, cell: Cell) -> Cell:
    """Fit nine links in ten, and predict the others."""
    S = words.similarity
    training, pairs = hold_out_links(S, HELD_OUT, random_state=cell["hold_out"])
    W = _fit(training, cell["weight"], cell["rank"], cell["sweeps"], cell["seed"]).embedding_frame()
    return {
        "auc": link_auc(S, W, random_state=cell["seed"]),
        "held_out_auc": link_auc(S, W, pairs=pairs, random_state=cell["seed"]),
        "benchmarks": _correlations(_known_pairs(words, W)),
    }


def measure_iterations(words: Words, cell: Cell) -> Cell:
    """Follow a solver on the words with most links: AUC, misfit of the links it sees, and what it predicts for pairs.

    `misfit` is sum (S_ij - w_i . w_j)^2 / sum S_ij^2 over the stored pairs, the diagonal included, that are not held
    out: what is minimised where absent pairs are missing.
    """
    S = densest_items(words.similarity, cell["n_words"])
    if cell["all_words"]:
        # Half the memory of the matrices that ADMM needs.
        S = replace(S, values=S.values.astype(np.float32))
    training, pairs = hold_out_links(S, HELD_OUT, random_state=cell["hold_out"])
    trace = []
    for iteration, W in _embeddings(training, cell):
        trace.append(
            {
                "iteration": iteration,
                "auc": link_auc(S, W, random_state=cell["seed"]),
                "held_out_auc": link_auc(S, W, pairs=pairs, random_state=cell["seed"]),
                **predictions(S, training, pairs, W),
            }
        )
    n = S.n_items
    return {"n_words": n, "linked": (S.values.nnz - n) / (n * (n - 1)), "trace": trace}


def predictions(S: Similarity, training: Similarity, pairs: NDArray[np.int64], W: NDArray[np.floating]) -> Cell:
    """Misfit of the pairs seen, and the mean of w_i . w_j over links seen, links held out and absent pairs."""
    W = W.astype(np.float64)
    n = len(W)
    stored = training.values.tocoo()
    product = np.einsum("ir,ir->i", W[stored.row], W[stored.col])
    seen = ~np.isnan(stored.data)
    links = seen & (stored.row != stored.col)
    held_out = np.einsum("ir,ir->i", W[pairs[:, 0]], W[pairs[:, 1]])
    # All pairs but the stored ones: the sum of all products without that of the stored.
    column_sums = W.sum(axis=0)
    n_absent = n * n - S.values.nnz
    absent = (column_sums @ column_sums - product.sum()) / n_absent
    return {
        "misfit": float(np.sum((stored.data[seen] - product[seen]) ** 2) / np.sum(stored.data[seen] ** 2)),
        "of_links": float(product[links].mean()),
        "of_held_out": float(held_out.mean()),
        "of_absent": float(absent),
    }


def absent_of(weight: float) -> str | float:
    """What Similarity calls an absent pair of that weight."""
    return {0.0: "missing", 1.0: "zero"}.get(weight, weight)


def _known_pairs(words: Words, W: pd.DataFrame) -> dict[str, tuple[pd.Series, PairCorrelation]]:
    """For each benchmark with enough pairs among the words: their ratings, and how the embedding goes with them."""
    found = {}
    for name, pairs in words.benchmarks.items():
        known = pairs[pairs["one"].isin(W.index) & pairs["other"].isin(W.index)]
        if len(known) >= _FEWEST_PAIRS:
            found[name] = known["rating"], pair_correlation(W, known[["one", "other"]], known["rating"])
    return found


def _correlations(found: dict[str, tuple[pd.Series, PairCorrelation]]) -> dict[str, Cell]:
    return {name: {"correlation": one.correlation, "n_pairs": one.n_found} for name, (_, one) in found.items()}


def _embeddings(training: Similarity, cell: Cell) -> Iterator[tuple[int, NDArray[np.floating]]]:
    """The embedding after each of the iterations that the cell lists."""
    if cell["start"] is None:
        for sweeps in cell["iterations"]:
            yield sweeps, _fit(training, cell["weight"], cell["rank"], sweeps, cell["seed"], tol=0.0).embedding_
        return
    problem = matrix_of(problem_of(arrays_of(replace(training, absent=absent_of(cell["weight"])))))
    W = solvers.random_start(problem, min(cell["rank"], training.n_items), np.random.RandomState(cell["seed"]))
    state = initial_state(problem, W, rho=RHO, start=cell["start"])
    bounds = solvers.observed_range(problem)
    for iteration in range(1, max(cell["iterations"]) + 1):
        iterate(problem, state, inner_iter=cell["inner"], bounds=bounds)
        if iteration in cell["iterations"]:
            yield iteration, state.W


def _fit(S: Similarity, weight: float, rank: int, sweeps: int, seed: int, tol: float = 1e-4) -> SRF:
    srf = SRF(min(rank, S.n_items), max_iter=sweeps, tol=tol, random_state=seed)
    return srf.fit(replace(S, absent=absent_of(weight)))


def _clouds(W: NDArray[np.floating], names: list[str], n_clouds: int) -> list[dict[str, Any]]:
    """The words with most of some dimensions, at even steps from the largest dimension to the smallest."""
    used = np.flatnonzero(W.any(axis=0))
    clouds = []
    for k in used[np.unique(np.linspace(0, len(used) - 1, n_clouds).astype(int))]:
        top = np.argsort(-W[:, k], kind="stable")[:_N_CLOUD_WORDS]
        top = top[W[top, k] > 0]
        clouds.append({"dimension": int(k) + 1, "words": [names[i] for i in top], "loadings": _short(W[top, k])})
    return clouds


def _short(values: Any) -> list[float]:
    """Numbers with as many digits as a figure shows."""
    return [float(f"{value:.4g}") for value in values]
