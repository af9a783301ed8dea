"""Fig. 5 and Supplement: dimensions of word associations, and what they predict.

Files under words/ in the data folder: strength.SWOW-EN.R123.csv or usf_appendixA.csv (associations), SimLex-999.txt and
wordsim353_combined.csv (ratings of pairs), and GlasgowNorms.csv (ratings of words, as published with two header rows,
of which the means are used, or with one header row, words in the first column and mean ratings in the others).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from paper.figures import ACCENT, COLOURS, MAIN, OTHER, QUIET, SECOND, SMALL, TINY, legend, new_figure, tidy
from paper.harness import Cell, Claim, Outcome, Settings, run_each, seed_of
from paper.recipes import RECIPES, SMALL_WEIGHT, densest_items, read_associations, read_benchmark, read_ratings
from simdims import SRF, Similarity, from_associations
from simdims.metrics import PairCorrelation, hold_out_links, link_auc, pair_correlation, readout
from simdims.plots import word_cloud
from simdims.solvers import admm, as_problem, observed_range, random_start

#: Share of the links that are held out.
HELD_OUT = 0.1
#: Name of a benchmark: file, separator, columns of the words and of the rating, and where to get it.
BENCHMARKS = {
    "SimLex-999": (
        "words/SimLex-999.txt",
        "\t",
        ["word1", "word2", "SimLex999"],
        "https://fh295.github.io/simlex.html",
    ),
    "WordSim-353": (
        "words/wordsim353_combined.csv",
        ",",
        ["Word 1", "Word 2", "Human (mean)"],
        "the file combined.csv of WordSim-353",
    ),
}
RATINGS_FILE = "words/GlasgowNorms.csv"
#: Solvers whose iterations are followed: name, weight of absent pairs, ADMM's start (None: bcd), colour and line.
SOLVERS = (
    ("ADMM, Z₀ = zero-filled", 0.0, "data", ACCENT, "-"),
    ("ADMM, Z₀ = W Wᵀ", 0.0, "product", COLOURS[3], "-"),
    ("bcd, absent missing", 0.0, None, QUIET, "--"),
    ("bcd, absent 0.03", SMALL_WEIGHT, None, MAIN, "-"),
    ("bcd, absent zero", 1.0, None, SECOND, "-"),
)

#: Earlier results for the USF norms with absent pairs missing and with a small weight (rank 150, 30 sweeps).
EARLIER = {"held-out AUC": (0.39, 0.898), "SimLex-999": (0.39, 0.558), "WordSim-353": (0.31, 0.736)}
#: Paper, Supplementary Table and Methods: words, pairs with a positive similarity, rank, link AUC.
PAPER_WORDS, PAPER_LINKS, PAPER_RANK, PAPER_AUC = 8647, 476_383, 268, 0.95
#: Paper, Fig. 5c: the lowest and the highest correlation.
PAPER_RATINGS = {"familiarity": 0.59, "valence": 0.84}

#: ADMM's penalty (the paper's) and its sweeps per outer iteration.
_RHO, _INNER = 3.0, 10
#: Largest difference between numbers measured on the same words: AUCs, and rank correlations.
_NEAR_AUC, _NEAR_RHO = 0.03, 0.05
#: Ranks by source and size; for made-up words the number of topics.
_RANKS = {"USF": (20, 100, 150), "SWOW": (20, 100, PAPER_RANK), "made up": (15, 25, 40)}
#: Sweeps of fits with held-out links, by size.
_SWEEPS = (20, 20, 30)
#: ADMM, which needs all pairs, is run on all words up to this many.
_MOST_WORDS = 6000
#: Benchmarks with fewer pairs among the words are skipped.
_FEWEST_PAIRS = 10
#: Number of word clouds, of words in each, and of scales in the figure.
_N_CLOUDS, _N_CLOUD_WORDS, _MOST_SCALES = 4, 18, 9


@dataclass(frozen=True, eq=False)
class Words:
    """Words, their associations, and other data about them.

    `source` is "SWOW", "USF" or "made up"; `benchmarks` have the columns one, other and rating; `ratings` has words in
    rows and scales in columns; `missing` says which files were not found, and where to get them.
    """

    source: str
    similarity: Similarity
    benchmarks: dict[str, pd.DataFrame]
    ratings: pd.DataFrame | None
    missing: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the source for text."""
        return "made-up words" if self.source == "made up" else self.source

    @property
    def n_links(self) -> int:
        """Pairs with a positive similarity."""
        return int(self.similarity.values.nnz - self.similarity.n_items) // 2

    @property
    def linked(self) -> str:
        """The share of pairs that are links, as text."""
        n = self.similarity.n_items
        return f"{self.n_links / (n * (n - 1) / 2):.2%}"

    def digest(self) -> str:
        """An identifier of these data, so that a checkpoint of other data is not reused."""
        values: Any = self.similarity.values
        tables = [*self.benchmarks.values(), *([] if self.ratings is None else [self.ratings])]
        parts = [values.indptr.tobytes(), values.indices.tobytes(), values.data.tobytes()]
        parts += [repr(self.similarity.labels).encode(), *(table.to_csv().encode() for table in tables)]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


class Found(NamedTuple):
    """The words, the fits to all links by the weight of absent pairs, mean results for held-out links, and traces.

    `weights` has one row per weight. `traces` has one row per listed iteration of each solver, and with "all words" on
    the words with most links or on all of them.
    """

    words: Words
    settings: Settings
    fits: dict[float, Cell]
    weights: pd.DataFrame
    traces: pd.DataFrame

    def trace(self, start: str | None, weight: float = 0.0, *, all_words: bool = False) -> pd.DataFrame:
        """The iterations of one solver."""
        start_is = self.traces["start"].isna() if start is None else self.traces["start"] == start
        return self.traces[start_is & (self.traces["weight"] == weight) & (self.traces["all_words"] == all_words)]


def run(settings: Settings) -> Outcome:
    """Fit the associations, and measure what the dimensions predict by the weight of absent pairs."""
    words = load_words(settings)
    measured = run_each(settings, "words", partial(measure, words), cells_of(settings, words))
    fits = {cell["weight"]: cell for cell in measured if cell["kind"] == "all links"}
    weights = held_out_table([cell for cell in measured if cell["kind"] == "held out"])
    traces = pd.DataFrame([{**cell, **at} for cell in measured if cell["kind"] == "iterations" for at in cell["trace"]])
    found = Found(words, settings, fits, weights.set_index("weight of absent pairs"), traces)
    tables = {
        f"All links fitted, rank {fits[0.0]['rank']}": all_links_table(fits),
        "One link in ten held out, by the weight of absent pairs": weights,
        "Solvers over their iterations, the words with most links": iterations_table(traces),
    }
    if fits[0.0]["ratings"]:
        tables["Ratings of words, read out by ridge regression (Spearman)"] = ratings_table(fits)
    claims = [*paper_claims(found), *earlier_claims(found)]
    remarks = [*words.missing, _on_data(found), _on_absent(found), _on_admm(found)]
    return Outcome(claims, tables, remarks, partial(_draw, found))


# Reading


def load_words(settings: Settings) -> Words:
    """The words in the data folder; made-up ones without a folder, or in a smoke run without associations."""
    where = (
        "https://smallworldofwords.org/en/project/research (SWOW-EN, association strengths R123), or Appendix A of the "
        "USF norms from http://w3.usf.edu/FreeAssociation"
    )
    folder, files = settings.data, [*RECIPES["swow"].files, *RECIPES["usf-words"].files]
    if folder is None or (settings.is_smoke and not any((folder / file).exists() for file in files)):
        made_up = made_up_words(settings.pick(300, 500, 800), settings.pick(*_RANKS["made up"]), seed=settings.seed)
        remark = (
            "THESE WORDS ARE MADE UP, with topics planted in their associations, because no data folder with real "
            f"was given. Nothing here can be compared with the paper. Put {files[0]} or {files[-1]} into the folder "
            f"that --data names; get it from {where}."
        )
        return replace(made_up, missing=[remark])
    path = settings.find_file(*files, what="free associations of words, SWOW or the USF norms", where=where)
    missing, benchmarks, ratings = [], {}, None
    for name, (file, separator, columns, source) in BENCHMARKS.items():
        if (folder / file).exists():
            benchmarks[name] = read_benchmark(folder / file, separator, columns)
        else:
            missing.append(f"{name} was left out: the data folder has no {file} ({source}).")
    if (folder / RATINGS_FILE).exists():
        ratings = read_ratings(folder / RATINGS_FILE)
    else:
        supplement = "the supplement of Scott et al. (2019), https://doi.org/10.3758/s13428-018-1099-3"
        missing.append(f"Ratings were left out: the data folder has no {RATINGS_FILE} ({supplement}).")
    source, S = read_associations(path)
    return Words(source, densest_items(S, 400) if settings.is_smoke else S, benchmarks, ratings, missing)


def made_up_words(n_words: int, n_topics: int, *, seed: int) -> Words:
    """Simulated associations by topic and popularity, with ratings and pairs that follow the topics.

    Each word is 0.8 of one topic and 0.2 of another (possibly the same). For each cue, 15 people name a word with a
    probability proportional to 0.9 times the product of the two words' topics, plus a small constant, times its
    popularity: its rank in a random order to the power -0.8.
    """
    rng = np.random.default_rng(seed)
    topics = np.zeros((n_words, n_topics))
    first = rng.integers(n_topics, size=n_words)
    topics[np.arange(n_words), first] += 0.8
    topics[np.arange(n_words), rng.integers(n_topics, size=n_words)] += 0.2
    popularity = rng.permutation(1.0 / np.arange(1, n_words + 1) ** 0.8)
    chances = (0.9 * topics @ topics.T + 0.1 / n_topics) * popularity
    np.fill_diagonal(chances, 0.0)
    counts = np.stack([rng.multinomial(15, row / row.sum()) for row in chances])
    names = np.array([f"t{topic + 1}.{place + 1}" for place, topic in enumerate(first)])
    cue, response = np.nonzero(counts)
    table = {"cue": names[cue], "response": names[response], "count": counts[cue, response]}
    S = from_associations(table, absent=SMALL_WEIGHT)

    scales = topics @ rng.normal(size=(n_topics, 3)) + rng.normal(scale=0.3, size=(n_words, 3))
    ratings = pd.DataFrame(scales, index=names, columns=["property A", "property B", "property C"])
    one, other = rng.integers(n_words, size=(2, 10 * n_words))
    alike = np.sum(topics[one] * topics[other], axis=1)
    # Most random pairs share no topic: draw as many of them as there are words.
    chosen = np.concatenate([np.flatnonzero((alike > 0) & (one != other)), np.flatnonzero(alike == 0)[:n_words]])
    rating = alike[chosen] + rng.normal(scale=0.2, size=len(chosen))
    pairs = pd.DataFrame({"one": names[one[chosen]], "other": names[other[chosen]], "rating": rating})
    return Words("made up", S, {"made-up pairs": pairs}, ratings)


# Fitting


def cells_of(settings: Settings, words: Words) -> list[Cell]:
    """Everything to fit, the longest first."""
    n_words, is_swow = words.similarity.n_items, words.source == "SWOW"
    common = {"data": words.digest(), "seed": seed_of(settings.seed, 0)}
    hold_outs = [seed_of(settings.seed, 1, k) for k in range(settings.pick(1, 1, 1 if is_swow else 3))]
    cells: list[Cell] = []

    def follow(iterations: tuple[int, ...], n_words: int, *, all_words: bool) -> None:
        for name, weight, start, *_ in SOLVERS:
            # bcd is refitted for each number of sweeps and converges well within a hundred.
            listed = [k for k in iterations if start is not None or (k <= 100 and not all_words)]
            if listed:
                solver = {"solver": name, "weight": weight, "start": start, "iterations": listed}
                size = {"n_words": n_words, "rank": settings.pick(10, 30, 50), "all_words": all_words}
                cells.append({**common, "kind": "iterations", **solver, **size, "hold_out": hold_outs[0]})

    if words.source != "made up" and n_words <= _MOST_WORDS:
        follow(settings.pick((), (), (1, 3, 10)), n_words, all_words=True)
    listed = settings.pick((1, 3, 10), (1, 3, 10, 30, 100), (1, 2, 5, 10, 20, 50, 100, 200, 400))
    follow(listed, min(n_words, settings.pick(150, 400, 1000)), all_words=False)
    common["rank"] = settings.pick(*_RANKS[words.source])
    for weight in (SMALL_WEIGHT, 0.0):
        cells.append({**common, "kind": "all links", "weight": weight, "sweeps": settings.pick(20, 20, 60)})
    few = (0.0, SMALL_WEIGHT, 1.0)
    for weight in settings.pick(few, few, (0.0, 0.01, SMALL_WEIGHT, 0.1, 0.3, 1.0)):
        held_out = {**common, "kind": "held out", "weight": weight, "sweeps": settings.pick(*_SWEEPS)}
        cells += [{**held_out, "hold_out": seed} for seed in hold_outs]
    return cells


def measure(words: Words, cell: Cell) -> Cell:
    """Measure a cell of any kind."""
    kinds = {"all links": measure_all, "held out": measure_held_out, "iterations": measure_iterations}
    # The number of sweeps is part of the cell.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return kinds[cell["kind"]](words, cell)


def measure_all(words: Words, cell: Cell) -> Cell:
    """Fit all links: AUC as in the paper, ratings of pairs and of words, and the words of some dimensions."""
    S = words.similarity
    W = _fit(S, cell["weight"], cell["rank"], cell["sweeps"], cell["seed"]).embedding_frame()
    found = _known_pairs(words, W)
    measured: Cell = {
        "auc": link_auc(S, W, random_state=cell["seed"]),
        "benchmarks": _correlations(found),
        "scatter": {name: [_short(rated), _short(one.similarities)] for name, (rated, one) in found.items()},
        "ratings": [],
        "clouds": _clouds(W),
    }
    if words.ratings is not None:
        read = readout(W, words.ratings, random_state=cell["seed"])
        for row in read.table.itertuples():
            predicted = read.predictions[row.target].dropna()
            rated = words.ratings[row.target].reindex(predicted.index)
            scale = {"scale": row.target, "correlation": row.correlation, "n_words": row.n_items}
            measured["ratings"].append({**scale, "rated": _short(rated), "predicted": _short(predicted)})
    return measured


def measure_held_out(words: Words, cell: Cell) -> Cell:
    """Fit nine links in ten, and predict the rest."""
    S = words.similarity
    training, pairs = hold_out_links(S, HELD_OUT, random_state=cell["hold_out"])
    W = _fit(training, cell["weight"], cell["rank"], cell["sweeps"], cell["seed"]).embedding_frame()
    return {
        "auc": link_auc(S, W, random_state=cell["seed"]),
        "held_out_auc": link_auc(S, W, pairs=pairs, random_state=cell["seed"]),
        "benchmarks": _correlations(_known_pairs(words, W)),
    }


def measure_iterations(words: Words, cell: Cell) -> Cell:
    """Follow a solver on the words with the most links: AUC, and the output of `predictions`."""
    S = densest_items(words.similarity, cell["n_words"])
    if cell["all_words"]:
        # Halves the memory of ADMM's matrices.
        S = replace(S, values=S.values.astype(np.float32))
    training, pairs = hold_out_links(S, HELD_OUT, random_state=cell["hold_out"])
    trace = []
    for iteration, W in _embeddings(training, cell):
        auc = link_auc(S, W, random_state=cell["seed"])
        held_out_auc = link_auc(S, W, pairs=pairs, random_state=cell["seed"])
        measured = {"iteration": iteration, "auc": auc, "held_out_auc": held_out_auc}
        trace.append({**measured, **predictions(S, training, pairs, W)})
    n = S.n_items
    return {"n_words": n, "linked": (S.values.nnz - n) / (n * (n - 1)), "trace": trace}


def predictions(S: Similarity, training: Similarity, pairs: NDArray[np.int64], W: NDArray[np.floating]) -> Cell:
    """The mean of w_i . w_j over fitted links, held-out links and absent pairs, and the misfit of fitted pairs.

    `misfit` is sum (S_ij - w_i . w_j)^2 / sum S_ij^2 over the stored pairs that are not held out, including the
    diagonal: the objective if absent pairs are missing.
    """
    W = W.astype(np.float64)
    stored = training.values.tocoo()
    product = np.einsum("ir,ir->i", W[stored.row], W[stored.col])
    seen = ~np.isnan(stored.data)
    held_out = np.einsum("ir,ir->i", W[pairs[:, 0]], W[pairs[:, 1]])
    # The sum over absent pairs is that over all pairs minus that over the stored ones.
    column_sums = W.sum(axis=0)
    n_absent = len(W) ** 2 - S.values.nnz
    return {
        "misfit": float(np.sum((stored.data[seen] - product[seen]) ** 2) / np.sum(stored.data[seen] ** 2)),
        "of_links": float(product[seen & (stored.row != stored.col)].mean()),
        "of_held_out": float(held_out.mean()),
        "of_absent": float((column_sums @ column_sums - product.sum()) / n_absent),
    }


def _embeddings(training: Similarity, cell: Cell) -> Iterator[tuple[int, NDArray[np.floating]]]:
    """The embedding after each of the iterations that the cell lists."""
    if cell["start"] is None:
        for sweeps in cell["iterations"]:
            yield sweeps, _fit(training, cell["weight"], cell["rank"], sweeps, cell["seed"], tol=0.0).embedding_
        return
    stored = training.values.tocoo()
    S = np.full(stored.shape, np.nan, dtype=stored.dtype)
    S[stored.row, stored.col] = stored.data
    problem: Any = as_problem(S)
    W = random_start(problem, min(cell["rank"], len(S)), np.random.RandomState(cell["seed"]))
    state = admm.initial_state(problem, W, rho=_RHO, start=cell["start"])
    bounds = observed_range(problem)
    for iteration in range(1, max(cell["iterations"]) + 1):
        admm.iterate(problem, state, inner_iter=_INNER, bounds=bounds)
        if iteration in cell["iterations"]:
            yield iteration, state.W


def _fit(S: Similarity, weight: float, rank: int, sweeps: int, seed: int, tol: float = 1e-4) -> SRF:
    absent: Any = {0.0: "missing", 1.0: "zero"}.get(weight, weight)
    return SRF(min(rank, S.n_items), max_iter=sweeps, tol=tol, random_state=seed).fit(replace(S, absent=absent))


def _known_pairs(words: Words, W: pd.DataFrame) -> dict[str, tuple[pd.Series, PairCorrelation]]:
    """For each benchmark with enough pairs among the words: their ratings, and their correlation with the embedding."""
    found = {}
    for name, pairs in words.benchmarks.items():
        known = pairs[pairs["one"].isin(W.index) & pairs["other"].isin(W.index)]
        if len(known) >= _FEWEST_PAIRS:
            found[name] = known["rating"], pair_correlation(W, known[["one", "other"]], known["rating"])
    return found


def _correlations(found: dict[str, tuple[pd.Series, PairCorrelation]]) -> dict[str, Cell]:
    return {name: {"correlation": one.correlation, "n_pairs": one.n_found} for name, (_, one) in found.items()}


def _clouds(W: pd.DataFrame) -> list[Cell]:
    """The words with the largest loadings on some dimensions, at even steps from the largest to the smallest."""
    values = W.to_numpy()
    used = np.flatnonzero(values.any(axis=0))
    clouds = []
    for k in used[np.unique(np.linspace(0, len(used) - 1, _N_CLOUDS).astype(int))]:
        top = np.argsort(-values[:, k], kind="stable")[:_N_CLOUD_WORDS]
        top = top[values[top, k] > 0]
        clouds.append({"dimension": int(k) + 1, "words": list(W.index[top]), "loadings": _short(values[top, k])})
    return clouds


def _short(values: Iterable[float]) -> list[float]:
    """Numbers rounded for a figure."""
    return [float(f"{value:.4g}") for value in values]


# Tables


def all_links_table(fits: dict[float, Cell]) -> pd.DataFrame:
    """AUC of the fitted links, and the benchmarks."""
    rows = []
    for weight, fit in fits.items():
        row = {"weight of absent pairs": weight, "link AUC": fit["auc"]}
        for name, found in fit["benchmarks"].items():
            row |= {name: found["correlation"], f"{name}, pairs": found["n_pairs"]}
        rows.append(row)
    return pd.DataFrame(rows)


def held_out_table(cells: list[Cell]) -> pd.DataFrame:
    """Means over hold-outs, for each weight."""
    rows = []
    for cell in cells:
        row = {"weight of absent pairs": cell["weight"], "held-out AUC": cell["held_out_auc"], "link AUC": cell["auc"]}
        rows.append({**row, **{name: found["correlation"] for name, found in cell["benchmarks"].items()}})
    return pd.DataFrame(rows).groupby("weight of absent pairs", as_index=False).mean()


def iterations_table(traces: pd.DataFrame) -> pd.DataFrame:
    """Predictions of each solver after 1, 10, 100 and its last iteration."""
    columns = {
        "solver": "solver",
        "n_words": "words",
        "iteration": "iteration",
        "held_out_auc": "held-out AUC",
        "auc": "link AUC",
        "misfit": "misfit of links",
        "of_links": "mean w·w of links",
        "of_held_out": "of held-out links",
        "of_absent": "of absent pairs",
    }
    is_last = traces["iteration"] == traces.groupby(["solver", "n_words"])["iteration"].transform("max")
    shown = traces[traces["iteration"].isin([1, 10, 100]) | is_last].sort_values("n_words", kind="stable")
    return shown[list(columns)].rename(columns=columns).reset_index(drop=True)


def ratings_table(fits: dict[float, Cell]) -> pd.DataFrame:
    """Spearman correlations of ratings with their out-of-fold predictions, for each weight of absent pairs."""
    rows = [
        {"scale": found["scale"], "words": found["n_words"], "weight": weight, "rho": found["correlation"]}
        for weight, fit in fits.items()
        for found in fit["ratings"]
    ]
    wide = pd.DataFrame(rows).pivot(index=["scale", "words"], columns="weight", values="rho")
    wide = wide.rename(columns="absent weight {:g}".format).rename_axis(columns=None)
    return wide.sort_values(f"absent weight {SMALL_WEIGHT:g}").reset_index()


# Claims


def paper_claims(found: Found) -> list[Claim]:
    """The paper's numbers, for SWOW."""
    words, is_same = found.words, found.words.source == "SWOW" and found.settings.size == "full"
    small, missing = found.fits[SMALL_WEIGHT], found.fits[0.0]
    n = words.similarity.n_items

    def verdict(holds: bool) -> bool | None:
        return bool(holds) if is_same else None

    claims = [
        Claim(
            "Words, and pairs with a positive similarity",
            f"SWOW: {PAPER_WORDS:,} words, {PAPER_LINKS:,} pairs (1.27%)",
            f"{words.name}: {n:,} words, {words.n_links:,} pairs ({words.linked})",
            verdict(abs(n / PAPER_WORDS - 1) < 0.01 and abs(words.n_links / PAPER_LINKS - 1) < 0.01),
        ),
        Claim(
            "Link prediction, AUC of the links that were fitted",
            f"SWOW: {PAPER_AUC:.2f}",
            f"{words.name}: {small['auc']:.2f} with absent pairs of weight {SMALL_WEIGHT:g}, {missing['auc']:.2f} with "
            "absent pairs missing",
            verdict(abs(small["auc"] - PAPER_AUC) <= _NEAR_AUC),
        ),
    ]
    if small["benchmarks"]:
        ours = [f"{k} {one['correlation']:.2f} ({one['n_pairs']} pairs)" for k, one in small["benchmarks"].items()]
        claims.append(
            Claim(
                "Cosines of words against human ratings of pairs (Spearman)",
                "SWOW: SimLex-999 and WordSim-353 strongly predicted (numbers in a figure only)",
                f"{words.name}: {', '.join(ours)}",
                verdict(all(one["correlation"] > 0.5 for one in small["benchmarks"].values())),
            )
        )
    if small["ratings"]:
        rho = {one["scale"]: one["correlation"] for one in small["ratings"]}
        low, high = min(rho, key=rho.__getitem__), max(rho, key=rho.__getitem__)
        both = [scale for scale in PAPER_RATINGS if scale in rho]
        named = "; " + ", ".join(f"{scale} {rho[scale]:.2f}" for scale in both) if both else ""
        near = [abs(rho[scale] - PAPER_RATINGS[scale]) <= _NEAR_RHO for scale in both]
        claims.append(
            Claim(
                "Ratings of words read out from the dimensions (Spearman)",
                "SWOW, nine Glasgow scales: 0.59 (familiarity) to 0.84 (valence)",
                f"{words.name}, {len(rho)} scales: {rho[low]:.2f} ({low}) to {rho[high]:.2f} ({high}){named}",
                verdict(all(near)) if near else None,
            )
        )
    return claims


def earlier_claims(found: Found) -> list[Claim]:
    """Not in the paper: results on the USF norms when the weight of absent pairs was introduced."""
    is_usf, is_full, name = found.words.source == "USF", found.settings.size == "full", found.words.name
    earlier = "not in the paper; measured earlier on the USF norms"
    claims = []
    for column, (before, after) in EARLIER.items():
        if column not in found.weights.columns:
            continue
        missing, small = (float(found.weights[column][weight]) for weight in (0.0, SMALL_WEIGHT))
        margin = _NEAR_AUC if column == "held-out AUC" else _NEAR_RHO
        is_near = abs(missing - before) <= margin and abs(small - after) <= margin
        what = f"{column} (Spearman), absent pairs missing / of weight {SMALL_WEIGHT:g}, links held out"
        verdict = is_near if is_full else None
        if column == "held-out AUC":
            what = f"Held-out link AUC, absent pairs missing / of weight {SMALL_WEIGHT:g}"
            verdict = found.settings.verdict(missing < 0.6 and small > 0.8 and (is_near or not is_full))
        published, ours = f"{earlier}: {before:.2f} / {after:.2f}", f"{name}: {missing:.2f} / {small:.2f}"
        claims.append(Claim(what, published, ours, verdict if is_usf else None, in_paper=False))
    data, product = found.trace("data", all_words=True), found.trace("product", all_words=True)
    if len(data):
        last, converged = data.iloc[-1], found.fits[0.0]["auc"]
        claims.append(
            Claim(
                f"Link AUC of ADMM with Z from the zero-filled data (rank {last['rank']}) / of a converged fit, both "
                "with absent pairs missing",
                f"{earlier}, rank 50: 0.96 / 0.42",
                f"{name}: {last['auc']:.2f} after {last['iteration']} iterations ({product.iloc[-1]['auc']:.2f} from "
                f"Z = W Wᵀ) / {converged:.2f}",
                bool(last["auc"] > 0.9 and converged < 0.5) if is_usf else None,
                in_paper=False,
            )
        )
    return claims


def _on_data(found: Found) -> str:
    words, fit = found.words, found.fits[0.0]
    return (
        f"Here: {words.name}, {words.similarity.n_items:,} words, {words.n_links:,} pairs with a positive similarity "
        f"({words.linked} of all), rank {fit['rank']}, {fit['sweeps']} sweeps over the words "
        f"({found.settings.pick(*_SWEEPS)} when links are held out). The paper: SWOW, {PAPER_WORDS:,} words, "
        f"{PAPER_LINKS:,} pairs (1.27%), rank {PAPER_RANK}, ADMM with up to 200 x 50 iterations, absent pairs missing; "
        "its AUC is that of fitted links."
    )


def _on_absent(found: Found) -> str:
    """Why a fit that ignores absent pairs does not predict links."""
    S, held_out_auc = found.words.similarity, found.weights["held-out AUC"]
    per_parameter = (found.words.n_links + S.n_items) / (S.n_items * found.fits[0.0]["rank"])
    paper = (PAPER_LINKS + PAPER_WORDS) / (PAPER_WORDS * PAPER_RANK)
    # The diagonal is -log2 p of each word.
    rarity_auc = link_auc(S, S.values.diagonal()[:, None], random_state=found.settings.seed)
    end = found.trace(None).iloc[-1]
    return (
        f"If absent pairs are missing, there are {per_parameter:.2f} similarities per parameter (in the paper "
        f"{paper:.2f}), all of them positive. Frequent words have small similarities and most of the links: as a score "
        f"of links, rarity alone, the product of the two words' -log2 p, has an AUC of {rarity_auc:.2f}. A fit to the "
        f"links predicts {end['of_held_out']:.2f} on average for held-out links and {end['of_absent']:.2f} for absent "
        f"pairs (the {end['n_words']:,} words with most links). Held-out AUC on all words: {held_out_auc[0.0]:.2f} "
        f"with absent pairs missing, {held_out_auc[SMALL_WEIGHT]:.2f} with zeros of weight {SMALL_WEIGHT:g}."
    )


def _on_admm(found: Found) -> str:
    """Why ADMM predicts links although the minimum of its own objective does not."""
    data, product = found.trace("data"), found.trace("product").iloc[-1]
    descent, small, zero = (found.trace(None, weight).iloc[-1] for weight in (0.0, SMALL_WEIGHT, 1.0))
    first, best, last = data.iloc[0], data.iloc[int(data["held_out_auc"].argmax())], data.iloc[-1]
    return (
        f"ADMM on the {last['n_words']:,} words with most links, Z starting as the zero-filled data: after "
        f"{last['iteration']} iterations it predicts {last['of_absent']:.2f} on average for absent pairs and "
        f"{last['of_links']:.2f} for links, with a misfit of {last['misfit']:.2%} of the squares of the fitted pairs. "
        f"Descent on the same objective has a misfit of {descent['misfit']:.2%}, with {descent['of_absent']:.2f} and "
        f"{descent['of_links']:.2f}. Held-out AUC from the zero-filled start: {first['held_out_auc']:.2f} after "
        f"iteration {first['iteration']}, {best['held_out_auc']:.2f} at its best (iteration {best['iteration']}), "
        f"{last['held_out_auc']:.2f} at iteration {last['iteration']}. From Z = W Wᵀ: {product['held_out_auc']:.2f}. "
        f"Descent: {descent['held_out_auc']:.2f}; with absent pairs as zeros {small['held_out_auc']:.2f} with weight "
        f"{SMALL_WEIGHT:g} and {zero['held_out_auc']:.2f} with weight 1. Among these words {last['linked']:.1%} of the "
        f"pairs are linked, among all {found.words.linked}."
    )


# Figure


def _draw(found: Found) -> Figure:
    """Fig. 5b, c, the benchmarks, and the effect of the weight of absent pairs and of ADMM's start."""
    fit = found.fits[SMALL_WEIGHT]
    heights = [1.35, 2.0] + [1.35] * (len(fit["ratings"]) > 0)
    figure = new_figure(7.2, sum(heights) + 0.2)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    made_up = " (made-up words)" if found.words.source == "made up" else ""
    for ax, cloud in zip(parts[0].subplots(1, len(fit["clouds"]), squeeze=False)[0], fit["clouds"], strict=True):
        loadings = np.array(cloud["loadings"])[:, None]
        word_cloud(loadings, n_words=len(loadings), labels=cloud["words"], ax=ax)
        ax.set_title(f"dimension {cloud['dimension']}{made_up}", fontsize=SMALL, pad=3)
    n_scatters = len(fit["scatter"])
    axes = parts[1].subplots(1, n_scatters + 2, width_ratios=[1.0] * n_scatters + [1.3, 1.3])
    for ax, (name, (rated, cosines)) in zip(axes, fit["scatter"].items(), strict=False):
        one = fit["benchmarks"][name]
        _draw_scatter(ax, rated, cosines, f"{name}: ρ = {one['correlation']:.2f} (n = {one['n_pairs']})")
        tidy(ax, "human rating", "cosine" if ax is axes[0] else "")
        ax.set_ylim(-0.03, 1.03)
    _draw_weights(axes[-2], found.weights)
    _draw_iterations(axes[-1], found)
    shown = fit["ratings"][:_MOST_SCALES]
    panels = parts[2].subplots(1, len(shown), squeeze=False)[0] if shown else []
    for ax, one in zip(panels, shown, strict=True):
        name = "AoA" if one["scale"] == "age of acquisition" else one["scale"][:16]
        _draw_scatter(ax, one["rated"], one["predicted"], f"{name}\nρ = {one['correlation']:.2f}")
        tidy(ax, "rating", "predicted" if ax is panels[0] else "")
        ax.set(xticks=[], yticks=[])
    return figure


def _draw_scatter(ax: Axes, x: list[float], y: list[float], title: str) -> None:
    """Points and the least-squares line."""
    alpha = 0.35 if len(x) > 1000 else 0.6
    ax.plot(x, y, ".", color=MAIN, markersize=2.2, alpha=alpha, markeredgewidth=0, rasterized=True)
    slope, intercept = np.polyfit(x, y, 1)
    ends = np.array([min(x), max(x)])
    ax.plot(ends, intercept + slope * ends, color=QUIET, linewidth=0.8, linestyle="--")
    ax.set_title(title, fontsize=TINY, pad=3)


def _draw_weights(ax: Axes, table: pd.DataFrame) -> None:
    places = np.arange(len(table))
    ax.axhline(0.5, color=OTHER, linewidth=0.6, linestyle=":")
    columns = table.columns.drop("link AUC")
    for name, colour in zip(columns, (MAIN, SECOND, COLOURS[4]), strict=False):
        label = name if name == "held-out AUC" else f"{name}, ρ"
        ax.plot(places, table[name], "o-", color=colour, linewidth=1.0, markersize=2.5, label=label)
    ax.set_xticks(
        places, [{0.0: "0\n(missing)", 1.0: "1\n(zero)"}.get(weight, f"{weight:g}") for weight in table.index]
    )
    ax.set_ylim(0, 1)
    tidy(ax, "weight of absent pairs", "one link in ten held out")
    legend(ax, loc="lower right")


def _draw_iterations(ax: Axes, found: Found) -> None:
    ax.axhline(0.5, color=OTHER, linewidth=0.6, linestyle=":")
    for name, weight, start, colour, line in SOLVERS:
        trace = found.trace(start, weight)
        style: dict[str, Any] = {"color": colour, "linewidth": 1.0, "markersize": 2.0}
        ax.plot(trace["iteration"], trace["held_out_auc"], line, marker="o", label=name, **style)
    ax.set_xscale("log")
    ax.set_ylim(0, 1)
    tidy(ax, "iteration or sweep", f"held-out AUC, {trace['n_words'].iloc[0]:,} words")
    legend(ax, loc="lower left", labelspacing=0.12)
