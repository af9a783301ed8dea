"""Fig. S1: held-out odd-one-out answers predicted from dimensions, compared with SPoSE.

The data folder contains, under things/, spose_embedding_66d_sorted.txt, RDM48_triplet.mat (1 minus the similarities of
48 objects), idx48_in_1854.txt (their rows, counted from 0), and answers: trainset.txt with validationset.txt and
testset1.txt, or triplets_100k.npy. Each row of answers is three objects counted from 0, the last one the odd one out.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.io import loadmat

from paper.figures import ACCENT, MAIN, OTHER, QUIET, SMALL, TINT, TINY, log_ticks, new_figure, tidy
from paper.harness import Claim, Outcome, Settings, seed_of
from paper.recipes import read_triplets
from simdims import SRF, Discovery, Similarity, discover, from_triplets, simulate
from simdims.metrics import NoiseCeiling, noise_ceiling, triplet_accuracy, triplet_probabilities

#: Published: dimensions, accuracy of SRF and of SPoSE, agreement of people, and the correlation for 48 objects.
RANK, ACCURACY, SPOSE_ACCURACY, CEILING, CORRELATION_48 = 35, 0.6397, 0.6412, 0.6767, 0.90
#: Published: the part of the way from chance to the ceiling.
REACHED = 0.8923

#: From this many answers on, the data set is as large as in the paper.
_ALL_ANSWERS = 4_000_000
#: Below this number of answers per shown pair, pairs are weighted by their answers.
_FEW_ANSWERS = 5.0
#: A ceiling requires this many triplets with this many answers.
_CEILING_TRIPLETS, _CEILING_ANSWERS = 20, 10
#: Largest differences from the published values: accuracy of SRF on the paper's answers, SPoSE's accuracy on other
#: answers, and its correlation with another measure of the 48 objects.
_SRF_MARGIN, _ACCURACY_MARGIN, _CORRELATION_MARGIN = 0.005, 0.015, 0.03

_HELD_OUT = 0.1
_SPLIT, _SHARES, _ANSWERS = 0, 1, 2  # first elements of task names, from which seeds are derived
_OSF = "https://osf.io/f5rn6 (data{}; Hebart et al., 2023)"


@dataclass(frozen=True, eq=False)
class Data:
    """Answers to fit, to predict and to estimate the ceiling from, SPoSE, and rows and similarities of 48 objects."""

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

    def correlation_48(self, similarities: NDArray[np.floating]) -> float:
        """Correlation of similarities of the 48 objects with people's, over pairs."""
        pairs = np.triu_indices(len(self.rows_48), 1)
        return float(np.corrcoef(similarities[pairs], self.human_48[pairs])[0, 1])

    def products_48(self, W: NDArray[np.floating]) -> NDArray[np.floating]:
        """Products of the loadings of the 48 objects."""
        return W[self.rows_48] @ W[self.rows_48].T


def run(settings: Settings) -> Outcome:
    """Choose the rank and fit on training answers; predict the others, and the similarities of 48 objects."""
    data = read(settings)
    S = build(data.train, len(data.spose))
    # Ranks at the end of those tried, fits at their limit and triplets with few answers are all in the tables.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        found = _discover(settings, S)
        simulated = _fit_simulated(settings, data)
        shares = _by_answers(settings, data, found.n_components)
        ceiling = find_ceiling(data.repeated)
    accuracies = [triplet_accuracy(each.astype(np.float64), data.test) for each in found.consensus.embeddings]
    W = found.embedding.astype(np.float64)
    table = _table(data, W, float(np.mean(accuracies)), simulated)
    curve = _curve(found)
    tables = {
        "Held-out answers, and similarities of 48 objects": table,
        "Accuracy by the number of training answers": shares,
        "Rank selection on the training answers": curve,
    }
    claims = _claims(settings, data, table, float(np.std(accuracies)), ceiling)
    draw = partial(_draw, data, table, shares, simulated[0], ceiling, data.products_48(W))
    return Outcome(claims, tables, _remarks(data, S, curve, found.n_components, ceiling), draw)


def read(settings: Settings) -> Data:
    """Read all files; raise FileNotFoundError, with where to get it, for the first that is missing."""
    answers = settings.find_file(
        "things/trainset.txt",
        "things/triplets_100k.npy",
        what="odd-one-out answers, three objects per row counted from 0, the last one the odd one out",
        where=_OSF.format("/triplet_dataset"),
    )
    spose = settings.find_file(
        "things/spose_embedding_66d_sorted.txt",
        what="the SPoSE embedding, 66 numbers for each of 1,854 objects",
        where=_OSF.format(""),
    )
    rdm = settings.find_file(
        "things/RDM48_triplet.mat",
        what="dissimilarities of 48 objects, in RDM48_triplet",
        where="https://osf.io/z2784 (Hebart et al., 2020)",
    )
    rows = settings.find_file(
        "things/idx48_in_1854.txt",
        what="the rows of the 48 objects among the 1,854, counted from 0, one per line",
        where="the names in words48.mat of https://osf.io/z2784, looked up in unique_id.txt",
    )
    return Data(
        *split(answers, seed_of(settings.seed, _SPLIT)),
        np.loadtxt(spose).clip(min=0),
        np.loadtxt(rows, dtype=np.int64),
        1 - np.asarray(loadmat(rdm)["RDM48_triplet"], dtype=np.float64),
    )


def split(path: Path, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Answers to fit, to predict, and to estimate the ceiling from: as released, or a tenth held out at random."""
    answers = read_triplets(path)
    released, repeated = path.with_name("validationset.txt"), path.with_name("testset1.txt")
    if path.name == "trainset.txt" and released.exists():
        return answers, read_triplets(released), read_triplets(repeated) if repeated.exists() else answers
    order = np.random.RandomState(seed).permutation(len(answers))
    n_test = max(1, round(_HELD_OUT * len(answers)))
    return answers[order[n_test:]], answers[order[:n_test]], answers


def build(train: NDArray[np.int64], n_items: int) -> Similarity:
    """(kept + 1) / (shown + 2); pairs are weighted by their answers if these are few."""
    S = from_triplets(train, n_items=n_items)
    if S.info["answers_per_shown_pair"] >= _FEW_ANSWERS:
        return S
    return from_triplets(train, n_items=n_items, weights="counts")


def choice_similarity(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often a model keeps two of its items together: the mean choice probability over all third items."""
    n = len(W)
    triplets = np.array(list(itertools.combinations(range(n), 3)))
    odd = triplet_probabilities(W, triplets)
    kept = np.zeros((n, n))
    for column, pair in enumerate(((1, 2), (0, 2), (0, 1))):
        np.add.at(kept, (triplets[:, pair[0]], triplets[:, pair[1]]), odd[:, column])
    return (kept + kept.T) / (n - 2) + np.eye(n)


def find_ceiling(repeated: NDArray[np.int64]) -> NoiseCeiling | None:
    """Agreement of people, if enough triplets were answered repeatedly."""
    try:
        found = noise_ceiling(repeated, min_answers=_CEILING_ANSWERS)
    except ValueError:
        return None
    return found if found.n_triplets >= _CEILING_TRIPLETS else None


def _discover(settings: Settings, S: Similarity) -> Discovery:
    is_few = S.weights is not None
    ranks = settings.pick(
        (2, 4),
        (2, 4, 6, 10) if is_few else (10, 35, 66),
        (1, 2, 3, 4, 5, 6, 8, 10, 15) if is_few else (5, 15, 25, 35, 45, 66),
    )
    return discover(
        S,
        alpha=0.0,
        ranks=[rank for rank in ranks if rank < S.n_items // 3],
        sampling=settings.pick(0.5, 0.5, None),
        n_repeats=settings.pick(1, 1, None),
        n_runs=settings.pick(2, 5, 30),
        **settings.options(f"things-{settings.size}-{settings.seed}"),
    )


def _fit_simulated(settings: Settings, data: Data) -> tuple[int, int, float, float]:
    """A fit with the published rank to simulated answers from SPoSE, as many as in the paper.

    Returns the number of answers, the rank, the accuracy, and the correlation for the 48 objects.
    """
    n_answers = settings.pick(20_000, 1_000_000, 4_200_000)
    rank = min(settings.pick(5, RANK, RANK), len(data.spose) // 3)
    answers = simulate.triplet_answers(data.spose, n_answers, random_state=seed_of(settings.seed, _ANSWERS))
    fit = SRF(rank, random_state=settings.seed, max_iter=settings.pick(30, 500, 500))
    W = fit.fit(build(answers, len(data.spose))).embedding_
    return len(answers), rank, triplet_accuracy(W, data.test), data.correlation_48(data.products_48(W))


def _by_answers(settings: Settings, data: Data, rank: int) -> pd.DataFrame:
    """Accuracy of one fit at the selected rank to a subset of the training answers."""
    order = np.random.RandomState(seed_of(settings.seed, _SHARES)).permutation(len(data.train))
    rows = []
    for share in settings.pick((0.5, 1.0), (0.25, 0.5, 1.0), (0.125, 0.25, 0.5, 1.0)):
        part = data.train[order[: round(share * len(order))]]
        fit = SRF(rank, random_state=settings.seed).fit(build(part, len(data.spose)))
        rows.append((len(part), rank, triplet_accuracy(fit.embedding_, data.test)))
    return pd.DataFrame(rows, columns=["answers", "dimensions", "accuracy"])


def _table(
    data: Data, W: NDArray[np.float64], accuracy: float, simulated: tuple[int, int, float, float]
) -> pd.DataFrame:
    """How well each source predicts held-out answers and the similarities of 48 objects."""
    spose, n_spose = triplet_accuracy(data.spose, data.test), data.spose.shape[1]
    by_products, by_choices = data.products_48(data.spose), choice_similarity(data.spose[data.rows_48])
    ours = data.correlation_48(data.products_48(W))
    rows = [
        ("chance", "-", 1 / 3, "-"),
        (f"SRF, {len(data.train):,} answers", W.shape[1], accuracy, ours),
        (f"SRF, {simulated[0]:,} simulated answers", *simulated[1:]),
        ("SPoSE, products of loadings", n_spose, spose, data.correlation_48(by_products)),
        ("SPoSE, choices among the 48", n_spose, spose, data.correlation_48(by_choices)),
    ]
    return pd.DataFrame(rows, columns=["predicted by", "dimensions", "accuracy", "r, 48 objects"])


def _curve(found: Discovery) -> pd.DataFrame:
    """Errors of rank selection: of averaged fits, by which select_rank chooses, and of single fits."""
    selection = found.selection
    assert selection is not None  # several ranks were given
    alone = selection.scores.groupby("rank")["error_alone"].mean()
    table = selection.curve[["rank", "error"]].assign(alone=alone.to_numpy())
    return table.rename(columns={"error": "error, averaged fits", "alone": "error, single fits"})


def _claims(
    settings: Settings, data: Data, table: pd.DataFrame, spread: float, ceiling: NoiseCeiling | None
) -> list[Claim]:
    _, rank, rank_simulated, *_ = table["dimensions"]
    _, ours, simulated, _, spose = table["accuracy"]
    error = float(np.sqrt(ours * (1 - ours) / len(data.test)))
    reached = (ours - 1 / 3) / ((ceiling.ceiling if ceiling else CEILING) - 1 / 3)
    whose = "of the ceiling of these answers" if ceiling else f"of the published ceiling, {CEILING:.2%}"
    of = f"from {len(data.train):,} answers"

    def if_all(holds: bool) -> bool | None:
        """A verdict that requires as many answers as the paper had."""
        return settings.verdict(holds) if data.is_all else None

    return [
        Claim(
            "Dimensions chosen on the training answers",
            f"{RANK} from 4.7 million answers (SPoSE: 66)",
            f"{rank} {of}",
            if_all(abs(rank - RANK) <= 10),
        ),
        Claim(
            "Accuracy on held-out answers",
            f"{ACCURACY:.2%} ± 0.02%",
            f"{ours:.2%} ± {spread:.2%} over runs (standard error over answers {error:.2%}), {of}",
            if_all(abs(ours - ACCURACY) <= _SRF_MARGIN),
        ),
        Claim(
            "Accuracy above chance",
            "33.33% is chance",
            f"{(ours - 1 / 3) / error:.0f} standard errors above it",
            settings.verdict(ours - 1 / 3 > 5 * error),
        ),
        Claim(
            "SRF on answers drawn from SPoSE, predicting people's held-out answers",
            f"{ACCURACY:.2%} from 4.7 million real answers, against {SPOSE_ACCURACY:.2%} of SPoSE",
            f"{simulated:.2%}, against {spose:.2%} of SPoSE ({rank_simulated} dimensions)",
            None,
        ),
        Claim(
            "SPoSE's accuracy on held-out answers",
            f"{SPOSE_ACCURACY:.2%}",
            f"{spose:.2%}",
            settings.verdict(abs(spose - SPOSE_ACCURACY) <= _ACCURACY_MARGIN),
        ),
        Claim(
            "Part of the way from chance to the noise ceiling",
            f"{REACHED:.2%} of {CEILING:.2%}",
            f"{reached:.1%} {whose}",
            if_all(abs(reached - REACHED) <= 0.05) if ceiling else None,
        ),
        *_claims_48(settings, data, table),
    ]


def _claims_48(settings: Settings, data: Data, table: pd.DataFrame) -> list[Claim]:
    _, ours, simulated, _, spose = table["r, 48 objects"]
    near = [abs(r - CORRELATION_48) <= _CORRELATION_MARGIN for r in (ours, spose)]
    published = f"r = {CORRELATION_48:.2f}"
    return [
        Claim(
            "48 objects: correlation of predicted and human similarities",
            published,
            f"r = {ours:.2f} from {len(data.train):,} answers; r = {simulated:.2f} from those drawn from SPoSE",
            settings.verdict(near[0]) if data.is_all else None,
        ),
        Claim("48 objects: SPoSE", published, f"r = {spose:.2f} by choices among them", settings.verdict(near[1])),
    ]


def _remarks(data: Data, S: Similarity, curve: pd.DataFrame, rank: int, ceiling: NoiseCeiling | None) -> list[str]:
    smallest = curve["rank"].to_numpy()[curve["error, single fits"].to_numpy().argmin()]
    weighted = ", so pairs are weighted by their answers" if S.weights is not None else ""
    remarks = [
        f"{len(data.train):,} answers to fit and {len(data.test):,} to predict; {S.density:.1%} of the pairs were "
        f"shown, with {S.info['answers_per_shown_pair']:.1f} answers each{weighted}.",
        f"The smallest error of single fits, the paper's rule, is at {smallest} dimensions; select_rank takes {rank}.",
    ]
    if not data.is_all:
        remarks.append(
            "The published values are from 4.7 million answers. So few as these support only a few dimensions."
        )
    if ceiling is None:
        remarks.append(
            f"No noise ceiling of these answers: fewer than {_CEILING_TRIPLETS} triplets were answered "
            f"{_CEILING_ANSWERS} times or more. It requires the repeated triplets of the release, testset1.txt."
        )
    else:
        remarks.append(f"People: {ceiling}.")
    return remarks


def _draw(
    data: Data,
    table: pd.DataFrame,
    shares: pd.DataFrame,
    n_simulated: int,
    ceiling: NoiseCeiling | None,
    predicted: NDArray[np.floating],
) -> Figure:
    """Fig. S1c and b, and accuracy by the number of answers."""
    figure = new_figure(7.0, 2.5)
    accuracies, of_48, by_answers = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
    _draw_accuracies(accuracies, table, ceiling)
    pairs = np.triu_indices(len(data.human_48), 1)
    of_48.scatter(predicted[pairs], data.human_48[pairs], s=2, color=MAIN, alpha=0.5, linewidths=0)
    r = data.correlation_48(predicted)
    of_48.text(0.04, 0.96, f"r = {r:.2f}", transform=of_48.transAxes, fontsize=SMALL, va="top")
    tidy(of_48, "Predicted similarity, 48 objects", "Human similarity")
    _draw_shares(by_answers, table, shares, n_simulated)
    return figure


def _draw_accuracies(ax: Axes, table: pd.DataFrame, ceiling: NoiseCeiling | None) -> None:
    chance, *percent = 100 * table["accuracy"].drop(index=3)
    ranks = table["dimensions"][[1, 2, 4]]
    for place, (value, colour) in enumerate(zip(percent, (MAIN, TINT, OTHER), strict=True)):
        ax.bar(place, value, 0.62, color=colour)
        ax.text(place, value + 0.6, f"{value:.1f}", ha="center", va="bottom", fontsize=TINY)
    tidy(ax, "", "Held-out answers predicted (%)")
    names = [f"{name}\n{rank} dim." for name, rank in zip(("SRF", "SRF,\nsimulated", "SPoSE"), ranks, strict=True)]
    ax.set_xticks(range(3), names)
    top = 100 * (ceiling.ceiling if ceiling else CEILING)
    ax.axhline(top, color=ACCENT, linewidth=0.9, linestyle="--")
    label = "noise ceiling" if ceiling else "noise ceiling (published)"
    ax.text(-0.3, top + 0.6, label, fontsize=TINY, color=ACCENT, va="bottom")
    ax.axhline(chance, color=QUIET, linewidth=0.9, linestyle=":")
    ax.text(2.45, chance + 0.5, "chance", fontsize=TINY, color=QUIET, va="bottom", ha="right")
    ax.set_ylim(30, max(top, percent[-1]) + 5)


def _draw_shares(ax: Axes, table: pd.DataFrame, shares: pd.DataFrame, n_simulated: int) -> None:
    simulated, spose = 100 * table["accuracy"][2], 100 * table["accuracy"][4]
    ax.plot(shares["answers"], 100 * shares["accuracy"], color=MAIN, marker="o", markersize=3, linewidth=1)
    ax.scatter(n_simulated, simulated, s=14, color=TINT, edgecolors=MAIN, linewidths=0.7)
    ax.axhline(spose, color=OTHER, linewidth=0.9)
    ax.text(0.03, spose + 0.3, "SPoSE", transform=ax.get_yaxis_transform(), fontsize=TINY, va="bottom")
    tidy(ax, "Answers that were fitted", "Held-out answers predicted (%)")
    log_ticks(ax, [10**k for k in range(3, 8)], ["1,000", "10,000", "100,000", "1 million", "10 million"])
    answers = [*shares["answers"], n_simulated]
    ax.set_xlim(min(answers) / 2, 2 * max(answers))
