"""Fig. 5 and Supplement: dimensions of word associations, and what they predict.

Files under words/ in the data folder: strength.SWOW-EN.R123.csv or usf_appendixA.csv (associations), SimLex-999.txt and
wordsim353_combined.csv (ratings of pairs), and GlasgowNorms.csv (ratings of words, as published with two header rows,
of which the means are used, or with one header row, words in the first column and mean ratings in the others).
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from paper.figures import ACCENT, COLOURS, MAIN, OTHER, QUIET, SECOND, SMALL, TINY, legend, new_figure, tidy
from paper.harness import Cell, Claim, Outcome, Settings, run_each, seed_of
from paper.recipes import RECIPES, densest_items
from simdims import SRF, Similarity, from_associations
from simdims.metrics import PairCorrelation, hold_out_links, link_auc, pair_correlation, readout
from simdims.plots import word_cloud
from simdims.solvers import admm, as_problem, observed_range, random_start

#: The default weight of absent pairs in from_associations.
SMALL_WEIGHT = 0.03
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
#: The Glasgow Norms' short names of their scales.
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
#: Solvers followed over their iterations: name, weight of absent pairs, ADMM's start (None: bcd), colour and line.
SOLVERS = (
    ("ADMM, Z₀ = zero-filled", 0.0, "data", ACCENT, "-"),
    ("ADMM, Z₀ = W Wᵀ", 0.0, "product", COLOURS[3], "-"),
    ("bcd, absent missing", 0.0, None, QUIET, "--"),
    ("bcd, absent 0.03", SMALL_WEIGHT, None, MAIN, "-"),
    ("bcd, absent zero", 1.0, None, SECOND, "-"),
)

#: Measured before on the USF norms, by weight: held-out AUC, SimLex-999, WordSim-353 (rank 150, 30 sweeps).
EARLIER = {0.0: (0.39, 0.39, 0.31), SMALL_WEIGHT: (0.898, 0.558, 0.736)}
#: Paper, Supplementary Table and Methods: words, pairs with a positive similarity, rank, link AUC.
PAPER_WORDS, PAPER_LINKS, PAPER_RANK, PAPER_AUC = 8647, 476_383, 268, 0.95
#: Paper, Fig. 5c: the lowest and the highest correlation.
PAPER_RATINGS = {"familiarity": 0.59, "valence": 0.84}

#: ADMM's penalty (the paper's) and its sweeps per outer iteration.
_RHO, _INNER = 3.0, 10
#: How far a number may be from another one measured on the same words: AUCs, and rank correlations.
_NEAR_AUC, _NEAR_RHO = 0.03, 0.05
#: Ranks by source and size; for made-up words the number of topics.
_RANKS = {"USF": (20, 100, 150), "SWOW": (20, 100, PAPER_RANK), "made up": (15, 25, 40)}
#: ADMM, which needs all pairs, is run on all words up to this many.
_MOST_WORDS = 6000
#: Benchmarks with fewer pairs among the words are not used.
_FEWEST_PAIRS = 10
#: Word clouds, words in each, and scales in the figure.
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
    def n_links(self) -> int:
        """Pairs with a positive similarity."""
        return int(self.similarity.values.nnz - self.similarity.n_items) // 2

    @property
    def linked(self) -> str:
        """The share of pairs that are links, in words."""
        n = self.similarity.n_items
        return f"{self.n_links / (n * (n - 1) / 2):.2%}"

    def digest(self) -> str:
        """A name for these data, so that a checkpoint of other data is not mistaken for one of these."""
        values: Any = self.similarity.values
        tables = [*self.benchmarks.values(), *([] if self.ratings is None else [self.ratings])]
        parts = [values.indptr.tobytes(), values.indices.tobytes(), values.data.tobytes()]
        parts += [repr(self.similarity.labels).encode(), *(table.to_csv().encode() for table in tables)]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def run(settings: Settings) -> Outcome:
    """Fit the associations, and measure what the dimensions predict by the weight of absent pairs."""
    words = load_words(settings)
    measured = run_each(settings, "words", partial(measure, words), cells_of(settings, words))
    seen = Seen(words, settings, *(_of_kind(measured, kind) for kind in ("all links", "held out", "iterations")))
    weights = held_out_table(seen.held_out)
    tables = {
        f"All links fitted, rank {seen.all_links[0]['rank']}": all_links_table(seen.all_links),
        "One link in ten held out, by the weight of absent pairs": weights,
        "Solvers over their iterations, the words with most links": iterations_table(seen.iterations),
    }
    if seen.all_links[0]["ratings"]:
        tables["Ratings of words, read out by ridge regression (Spearman)"] = ratings_table(seen.all_links)
    claims = [*paper_claims(seen), *(claim._replace(in_paper=False) for claim in earlier_claims(seen))]
    remarks = [*words.missing, _on_data(seen), _on_absent(seen), _on_admm(seen)]
    return Outcome(claims, tables, remarks, partial(_draw, seen, weights))


def _of_kind(cells: list[Cell], kind: str) -> list[Cell]:
    return [cell for cell in cells if cell["kind"] == kind]


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


def read_associations(path: Path) -> tuple[str, Similarity]:
    """The source and the similarities of a file of SWOW or of the USF norms, told apart by their names."""
    source, name = ("SWOW", "swow") if path.name.startswith("strength.") else ("USF", "usf-words")
    S = RECIPES[name].build(path)
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
    """Names in lower case, except those that would then be the name of another."""
    given = list(names or ()) if not isinstance(names, pd.Series) else names.tolist()
    times = Counter(name.lower() for name in given)
    return [name.lower() if times[name.lower()] == 1 else name for name in given]


def made_up_words(n_words: int, n_topics: int, *, seed: int) -> Words:
    """Associations of words that do not exist, by topic and popularity, with ratings and pairs that follow the topics.

    Each word is 0.8 of one topic and 0.2 of another (possibly the same). To each cue, 15 people name a word with a
    probability proportional to 0.9 times the product of the two words' topics, plus a little for all words, times its
    popularity: its place in a random order to the power -0.8.
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
    # Most random pairs share no topic: take as many of them as there are words.
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
            # bcd is fitted anew for each number of sweeps and has long converged after a hundred.
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
        sweeps = settings.pick(20, 20, 30)
        cells += [{**common, "kind": "held out", "weight": weight, "sweeps": sweeps, "hold_out": h} for h in hold_outs]
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
    """Follow a solver on the words with most links: AUC, and what `predictions` measures."""
    S = densest_items(words.similarity, cell["n_words"])
    if cell["all_words"]:
        # Half the memory of the matrices that ADMM needs.
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

    `misfit` is sum (S_ij - w_i . w_j)^2 / sum S_ij^2 over the stored pairs that are not held out, diagonal included:
    the objective if absent pairs are missing.
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
    """Numbers with as many digits as a figure shows."""
    return [float(f"{value:.4g}") for value in values]


# Tables


def all_links_table(cells: list[Cell]) -> pd.DataFrame:
    """AUC of the links that were fitted, and the benchmarks."""
    rows = []
    for cell in cells:
        row: dict[str, Any] = {"weight of absent pairs": cell["weight"], "link AUC": cell["auc"]}
        for name, found in cell["benchmarks"].items():
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


def iterations_table(cells: list[Cell]) -> pd.DataFrame:
    """What each solver predicts after 1, 10, 100 and its last iteration."""
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
    rows = [
        {"solver": cell["solver"], "n_words": cell["n_words"], **at}
        for cell in sorted(cells, key=lambda cell: cell["n_words"])
        for at in cell["trace"]
        if at["iteration"] in (1, 10, 100, cell["trace"][-1]["iteration"])
    ]
    return pd.DataFrame(rows)[list(columns)].rename(columns=columns)


def ratings_table(cells: list[Cell]) -> pd.DataFrame:
    """Spearman correlations of ratings with their out-of-fold predictions, for each weight of absent pairs."""
    rows = [
        {"scale": found["scale"], "words": found["n_words"], "weight": cell["weight"], "rho": found["correlation"]}
        for cell in cells
        for found in cell["ratings"]
    ]
    wide = pd.DataFrame(rows).pivot(index=["scale", "words"], columns="weight", values="rho")
    wide = wide.rename(columns="absent weight {:g}".format).rename_axis(columns=None)
    return wide.sort_values(f"absent weight {SMALL_WEIGHT:g}").reset_index()


# Claims


@dataclass(frozen=True, eq=False)
class Seen:
    """The words, the settings, and the measured cells of each kind."""

    words: Words
    settings: Settings
    all_links: list[Cell]
    held_out: list[Cell]
    iterations: list[Cell]

    @property
    def name(self) -> str:
        """The source of the words."""
        return "made-up words" if self.words.source == "made up" else self.words.source

    @property
    def n_followed(self) -> int:
        """The number of words on which solvers are followed over their iterations."""
        return min(int(cell["n_words"]) for cell in self.iterations)

    def fit(self, weight: float) -> Cell:
        """The fit to all links with that weight of absent pairs."""
        return next(cell for cell in self.all_links if cell["weight"] == weight)

    def held_out_auc(self, weight: float) -> float:
        """Mean AUC of held-out links with that weight of absent pairs."""
        return float(np.mean([cell["held_out_auc"] for cell in self.held_out if cell["weight"] == weight]))

    def held_out_benchmark(self, weight: float, name: str) -> float | None:
        """Mean correlation with a benchmark when links are held out; None if it was not measured."""
        cells = [cell for cell in self.held_out if cell["weight"] == weight and name in cell["benchmarks"]]
        return float(np.mean([cell["benchmarks"][name]["correlation"] for cell in cells])) if cells else None

    def path(self, start: str | None, weight: float = 0.0, *, all_words: bool = False) -> list[Cell]:
        """The trace of a solver; empty if it was not run."""
        key = (start, weight, all_words)
        cells = [cell for cell in self.iterations if (cell["start"], cell["weight"], cell["all_words"]) == key]
        return cells[0]["trace"] if cells else []


def paper_claims(seen: Seen) -> list[Claim]:
    """The paper's numbers, for SWOW."""
    is_same = seen.words.source == "SWOW" and seen.settings.size == "full"
    n, n_links = seen.words.similarity.n_items, seen.words.n_links
    small, missing = seen.fit(SMALL_WEIGHT), seen.fit(0.0)

    def verdict(holds: bool) -> bool | None:
        return bool(holds) if is_same else None

    made = [
        Claim(
            "Words, and pairs with a positive similarity",
            f"SWOW: {PAPER_WORDS:,} words, {PAPER_LINKS:,} pairs (1.27%)",
            f"{seen.name}: {n:,} words, {n_links:,} pairs ({seen.words.linked})",
            verdict(abs(n / PAPER_WORDS - 1) < 0.01 and abs(n_links / PAPER_LINKS - 1) < 0.01),
        ),
        Claim(
            "Link prediction, AUC of the links that were fitted",
            f"SWOW: {PAPER_AUC:.2f}",
            f"{seen.name}: {small['auc']:.2f} with absent pairs of weight {SMALL_WEIGHT:g}, {missing['auc']:.2f} with "
            "absent pairs missing",
            verdict(abs(small["auc"] - PAPER_AUC) <= _NEAR_AUC),
        ),
    ]
    if small["benchmarks"]:
        found = small["benchmarks"].items()
        ours = [f"{name} {one['correlation']:.2f} ({one['n_pairs']} pairs)" for name, one in found]
        made.append(
            Claim(
                "Cosines of words against human ratings of pairs (Spearman)",
                "SWOW: SimLex-999 and WordSim-353 strongly predicted (numbers in a figure only)",
                f"{seen.name}: {', '.join(ours)}",
                verdict(all(one["correlation"] > 0.5 for _, one in found)),
            )
        )
    if small["ratings"]:
        rho = {one["scale"]: one["correlation"] for one in small["ratings"]}
        low, high = min(rho, key=rho.__getitem__), max(rho, key=rho.__getitem__)
        both = [scale for scale in PAPER_RATINGS if scale in rho]
        named = "; " + ", ".join(f"{scale} {rho[scale]:.2f}" for scale in both) if both else ""
        near = [abs(rho[scale] - PAPER_RATINGS[scale]) <= _NEAR_RHO for scale in both]
        made.append(
            Claim(
                "Ratings of words read out from the dimensions (Spearman)",
                "SWOW, nine Glasgow scales: 0.59 (familiarity) to 0.84 (valence)",
                f"{seen.name}, {len(rho)} scales: {rho[low]:.2f} ({low}) to {rho[high]:.2f} ({high}){named}",
                verdict(all(near)) if near else None,
            )
        )
    return made


def earlier_claims(seen: Seen) -> list[Claim]:
    """Not in the paper: what was measured on the USF norms when the weight of absent pairs was introduced."""
    is_usf, is_full = seen.words.source == "USF", seen.settings.size == "full"
    before, after = EARLIER[0.0], EARLIER[SMALL_WEIGHT]
    earlier = "not in the paper; measured earlier on the USF norms"
    missing, small = seen.held_out_auc(0.0), seen.held_out_auc(SMALL_WEIGHT)
    holds = missing < 0.6 and small > 0.8
    if is_full:
        holds &= abs(missing - before[0]) <= _NEAR_AUC and abs(small - after[0]) <= _NEAR_AUC
    made = [
        Claim(
            f"Held-out link AUC, absent pairs missing / of weight {SMALL_WEIGHT:g}",
            f"{earlier}: {before[0]:.2f} / {after[0]:.2f}",
            f"{seen.name}: {missing:.2f} / {small:.2f}",
            seen.settings.verdict(holds) if is_usf else None,
        )
    ]
    for place, name in enumerate(BENCHMARKS, start=1):
        low, high = seen.held_out_benchmark(0.0, name), seen.held_out_benchmark(SMALL_WEIGHT, name)
        if low is not None and high is not None:
            near = abs(low - before[place]) <= _NEAR_RHO and abs(high - after[place]) <= _NEAR_RHO
            made.append(
                Claim(
                    f"{name} (Spearman), absent pairs missing / of weight {SMALL_WEIGHT:g}, links held out",
                    f"{earlier}: {before[place]:.2f} / {after[place]:.2f}",
                    f"{seen.name}: {low:.2f} / {high:.2f}",
                    near if is_usf and is_full else None,
                )
            )
    data, product = seen.path("data", all_words=True), seen.path("product", all_words=True)
    if data and product:
        rank = next(cell["rank"] for cell in seen.iterations if cell["all_words"])
        converged = seen.fit(0.0)["auc"]
        made.append(
            Claim(
                f"Link AUC of ADMM with Z from the zero-filled data (rank {rank}) / of a converged fit, both with "
                "absent pairs missing",
                f"{earlier}, rank 50: 0.96 / 0.42",
                f"{seen.name}: {data[-1]['auc']:.2f} after {data[-1]['iteration']} iterations "
                f"({product[-1]['auc']:.2f} from Z = W Wᵀ) / {converged:.2f}",
                data[-1]["auc"] > 0.9 and converged < 0.5 if is_usf else None,
            )
        )
    return made


def _on_data(seen: Seen) -> str:
    fit, n = seen.all_links[0], seen.words.similarity.n_items
    return (
        f"Here: {seen.name}, {n:,} words, {seen.words.n_links:,} pairs with a positive similarity ({seen.words.linked} "
        f"of all), rank {fit['rank']}, {fit['sweeps']} sweeps over the words ({seen.held_out[0]['sweeps']} when links "
        f"are held out). The paper: SWOW, {PAPER_WORDS:,} words, {PAPER_LINKS:,} pairs (1.27%), rank {PAPER_RANK}, "
        "ADMM with up to 200 x 50 iterations, absent pairs missing; its AUC is that of fitted links."
    )


def _on_absent(seen: Seen) -> str:
    """Why a fit that ignores absent pairs does not predict links."""
    S = seen.words.similarity
    per_parameter = (seen.words.n_links + S.n_items) / (S.n_items * seen.all_links[0]["rank"])
    paper = (PAPER_LINKS + PAPER_WORDS) / (PAPER_WORDS * PAPER_RANK)
    # The diagonal is -log2 p of each word.
    rarity_auc = link_auc(S, S.values.diagonal()[:, None], random_state=seen.settings.seed)
    end = seen.path(None)[-1]
    return (
        f"If absent pairs are missing, there are {per_parameter:.2f} similarities per parameter (in the paper "
        f"{paper:.2f}), all of them positive. Frequent words have small similarities and most of the links: as a score "
        f"links, rarity alone, the product of the two words' -log2 p, has an AUC of {rarity_auc:.2f}. A fit to the "
        f"predicts {end['of_held_out']:.2f} on average for held-out links and {end['of_absent']:.2f} for absent pairs "
        f"{seen.n_followed:,} words with most links). Held-out AUC on all words: {seen.held_out_auc(0.0):.2f} with "
        f"absent pairs missing, {seen.held_out_auc(SMALL_WEIGHT):.2f} with zeros of weight {SMALL_WEIGHT:g}."
    )


def _on_admm(seen: Seen) -> str:
    """Why ADMM predicts links although the minimum of its own objective does not."""
    data, product = seen.path("data"), seen.path("product")[-1]
    descent, small, zero = (seen.path(None, weight)[-1] for weight in (0.0, SMALL_WEIGHT, 1.0))
    best, last = max(data, key=lambda at: at["held_out_auc"]), data[-1]
    linked = next(cell["linked"] for cell in seen.iterations if not cell["all_words"])
    return (
        f"ADMM on the {seen.n_followed:,} words with most links, Z starting as the zero-filled data: after "
        f"{last['iteration']} iterations it predicts {last['of_absent']:.2f} on average for absent pairs and "
        f"{last['of_links']:.2f} for links, with a misfit of {last['misfit']:.2%} of the squares of the fitted pairs. "
        f"Descent on the same objective has a misfit of {descent['misfit']:.2%}, with {descent['of_absent']:.2f} and "
        f"{descent['of_links']:.2f}. Held-out AUC from the zero-filled start: {data[0]['held_out_auc']:.2f} after "
        f"iteration {data[0]['iteration']}, {best['held_out_auc']:.2f} at its best (iteration {best['iteration']}), "
        f"{last['held_out_auc']:.2f} at iteration {last['iteration']}. From Z = W Wᵀ: {product['held_out_auc']:.2f}. "
        f"Descent: {descent['held_out_auc']:.2f}; with absent pairs as zeros {small['held_out_auc']:.2f} with weight "
        f"{SMALL_WEIGHT:g} and {zero['held_out_auc']:.2f} with weight 1. Among these words {linked:.1%} of the pairs "
        f"are linked, among all {seen.words.linked}."
    )


# Figure


def _draw(seen: Seen, weights: pd.DataFrame) -> Figure:
    """Fig. 5b, c, the benchmarks, and the effect of the weight of absent pairs and of ADMM's start."""
    fit = seen.all_links[0]
    heights = [1.35, 2.0] + [1.35] * (len(fit["ratings"]) > 0)
    figure = new_figure(7.2, sum(heights) + 0.2)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    made_up = " (made-up words)" if seen.words.source == "made up" else ""
    for ax, cloud in zip(parts[0].subplots(1, len(fit["clouds"]), squeeze=False)[0], fit["clouds"], strict=True):
        loadings = np.array(cloud["loadings"])[:, None]
        word_cloud(loadings, n_words=len(loadings), labels=cloud["words"], ax=ax)
        ax.set_title(f"dimension {cloud['dimension']}{made_up}", fontsize=SMALL, pad=3)
    n_scatters = len(fit["scatter"])
    axes = parts[1].subplots(1, n_scatters + 2, width_ratios=[1.0] * n_scatters + [1.3, 1.3])
    for ax, (name, (rated, cosines)) in zip(axes, fit["scatter"].items(), strict=False):
        found = fit["benchmarks"][name]
        _draw_scatter(ax, rated, cosines, f"{name}: ρ = {found['correlation']:.2f} (n = {found['n_pairs']})")
        tidy(ax, "human rating", "cosine" if ax is axes[0] else "")
        ax.set_ylim(-0.03, 1.03)
    _draw_weights(axes[-2], weights)
    _draw_iterations(axes[-1], seen)
    shown = fit["ratings"][:_MOST_SCALES]
    panels = parts[2].subplots(1, len(shown), squeeze=False)[0] if shown else []
    for ax, found in zip(panels, shown, strict=True):
        name = "AoA" if found["scale"] == "age of acquisition" else found["scale"][:16]
        _draw_scatter(ax, found["rated"], found["predicted"], f"{name}\nρ = {found['correlation']:.2f}")
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
    weights = table["weight of absent pairs"]
    places = np.arange(len(weights))
    ax.axhline(0.5, color=OTHER, linewidth=0.6, linestyle=":")
    columns = table.columns.drop(["weight of absent pairs", "link AUC"])
    for name, colour in zip(columns, (MAIN, SECOND, COLOURS[4]), strict=False):
        label = name if name == "held-out AUC" else f"{name}, ρ"
        ax.plot(places, table[name], "o-", color=colour, linewidth=1.0, markersize=2.5, label=label)
    ax.set_xticks(places, [{0.0: "0\n(missing)", 1.0: "1\n(zero)"}.get(weight, f"{weight:g}") for weight in weights])
    ax.set_ylim(0, 1)
    tidy(ax, "weight of absent pairs", "one link in ten held out")
    legend(ax, loc="lower right")


def _draw_iterations(ax: Axes, seen: Seen) -> None:
    ax.axhline(0.5, color=OTHER, linewidth=0.6, linestyle=":")
    for name, weight, start, colour, line in SOLVERS:
        trace = pd.DataFrame(seen.path(start, weight))
        style: dict[str, Any] = {"color": colour, "linewidth": 1.0, "markersize": 2.0}
        ax.plot(trace["iteration"], trace["held_out_auc"], line, marker="o", label=name, **style)
    ax.set_xscale("log")
    ax.set_ylim(0, 1)
    tidy(ax, "iteration or sweep", f"held-out AUC, {seen.n_followed:,} words")
    legend(ax, loc="lower left", labelspacing=0.12)
