"""Fig. 5 and Supplement "Semantic similarity benchmarks": dimensions of word associations, and what they predict.

Associations become similarities (positive pointwise mutual information) of which nearly all are absent. What absent
means decides what is found; see `words_data` for the files that are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from simdims._parallel import seed_of
from simdims.metrics import link_auc
from simdims.reproduce import words_claims, words_figure
from simdims.reproduce.frame import Cell, Outcome, Settings, run_each
from simdims.reproduce.words_data import MADE_UP, SMALL_WEIGHT, Words, load_words
from simdims.reproduce.words_fits import measure

#: Solvers that are followed over their iterations: name, weight of absent pairs, ADMM's start (None: descent on f).
SOLVERS = (
    ("ADMM, Z₀ = zero-filled", 0.0, "data"),
    ("ADMM, Z₀ = W Wᵀ", 0.0, "product"),
    ("bcd, absent missing", 0.0, None),
    ("bcd, absent 0.03", SMALL_WEIGHT, None),
    ("bcd, absent zero", 1.0, None),
)

#: Sweeps of one outer iteration of ADMM.
_INNER = 10

#: Words up to which ADMM, which needs all pairs, is also started on all of them.
_MOST_WORDS = 6000

_RANKS = {"USF": (20, 100, 150), "SWOW": (20, 100, 268)}


@dataclass(frozen=True)
class Plan:
    """How much is fitted: see `plan`."""

    rank: int
    weights: tuple[float, ...]
    n_hold_outs: int
    sweeps: int
    sweeps_all: int
    n_words: int
    rank_words: int
    iterations: tuple[int, ...]
    iterations_all: tuple[int, ...]


def run(settings: Settings) -> Outcome:
    """Fit the associations, and measure what the dimensions predict by what an absent pair counts."""
    words = load_words(settings)
    planned = plan(settings, words)
    cells = cells_of(settings, words, planned)
    measured = run_each(settings, "words", partial(measure, words), cells, stage="fits")
    kinds = {
        kind: [cell for cell in measured if cell["kind"] == kind] for kind in ("all links", "held out", "iterations")
    }
    tables = {
        f"All links fitted, rank {planned.rank}": all_links_table(kinds["all links"]),
        "One link in ten held out, by the weight of absent pairs": held_out_table(kinds["held out"]),
        "Solvers over their iterations, the words with most links": iterations_table(kinds["iterations"]),
    }
    ratings = ratings_table(kinds["all links"])
    if len(ratings):
        tables["Ratings of words, read out by ridge regression (Spearman)"] = ratings
    seen = words_claims.Seen(words, settings.size, kinds["all links"], kinds["held out"], kinds["iterations"])
    return Outcome(
        claims=words_claims.claims(seen),
        tables=tables,
        remarks=[*words.missing, *words_claims.remarks(seen, rarity_auc(words, settings.seed))],
        draw=partial(words_figure.draw, kinds["all links"][0], tables, kinds["iterations"], words.source),
    )


def plan(settings: Settings, words: Words) -> Plan:
    """How much a size fits of some words; the paper's rank for SWOW, and 150 for the USF norms."""
    ranks = _RANKS.get(words.source, tuple(topics for _, topics in MADE_UP))
    n_words = words.similarity.n_items
    is_small_enough = words.source != "made up" and n_words <= _MOST_WORDS
    return Plan(
        rank=settings.pick(*ranks),
        weights=settings.pick(
            (0.0, SMALL_WEIGHT, 1.0), (0.0, SMALL_WEIGHT, 1.0), (0.0, 0.01, SMALL_WEIGHT, 0.1, 0.3, 1.0)
        ),
        n_hold_outs=settings.pick(1, 1, 1 if words.source == "SWOW" else 3),
        sweeps=settings.pick(20, 20, 30),
        sweeps_all=settings.pick(20, 20, 60),
        n_words=min(n_words, settings.pick(150, 400, 1000)),
        rank_words=settings.pick(10, 30, 50),
        iterations=settings.pick((1, 3, 10), (1, 3, 10, 30, 100), (1, 2, 5, 10, 20, 50, 100, 200, 400)),
        iterations_all=settings.pick((), (), (1, 3, 10)) if is_small_enough else (),
    )


def cells_of(settings: Settings, words: Words, planned: Plan) -> list[Cell]:
    """Everything to fit, the longest first."""
    common = {"data": words.digest(), "seed": seed_of(settings.seed, 0)}
    follow = {
        **common,
        "kind": "iterations",
        "rank": planned.rank_words,
        "inner": _INNER,
        "hold_out": seed_of(settings.seed, 1, 0),
    }
    cells: list[Cell] = [
        {**follow, "solver": name, "weight": weight, "start": start, "n_words": words.similarity.n_items,
         "iterations": list(planned.iterations_all), "all_words": True}
        for name, weight, start in SOLVERS
        if planned.iterations_all and start is not None
    ]  # fmt: skip
    for name, weight, start in SOLVERS:
        # Descent is fitted anew up to each of its listed sweeps, and has long settled after a hundred.
        iterations = [k for k in planned.iterations if start is not None or k <= 100]
        cells.append(
            {**follow, "solver": name, "weight": weight, "start": start, "n_words": planned.n_words,
             "iterations": iterations, "all_words": False}
        )  # fmt: skip
    fit = {**common, "rank": planned.rank}
    cells += [
        {**fit, "kind": "all links", "weight": weight, "sweeps": planned.sweeps_all, "n_clouds": 4}
        for weight in (SMALL_WEIGHT, 0.0)
    ]
    cells += [
        {
            **fit,
            "kind": "held out",
            "weight": weight,
            "sweeps": planned.sweeps,
            "hold_out": seed_of(settings.seed, 1, k),
        }
        for weight in planned.weights
        for k in range(planned.n_hold_outs)
    ]
    return cells


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
    """Means over the links held out, for each weight."""
    rows = [
        {
            "weight of absent pairs": cell["weight"],
            "held-out AUC": cell["held_out_auc"],
            "link AUC": cell["auc"],
            **{name: found["correlation"] for name, found in cell["benchmarks"].items()},
        }
        for cell in cells
    ]
    return pd.DataFrame(rows).groupby("weight of absent pairs", as_index=False).mean()


def iterations_table(cells: list[Cell]) -> pd.DataFrame:
    """What each solver predicts after 1, 10, 100 and its last iteration."""
    rows = [
        {
            "solver": cell["solver"],
            "words": cell["n_words"],
            "iteration": at["iteration"],
            "held-out AUC": at["held_out_auc"],
            "link AUC": at["auc"],
            "misfit of links": at["misfit"],
            "mean w·w of links": at["of_links"],
            "of held-out links": at["of_held_out"],
            "of absent pairs": at["of_absent"],
        }
        for cell in sorted(cells, key=lambda cell: cell["n_words"])
        for at in cell["trace"]
        if at["iteration"] in (1, 10, 100, cell["trace"][-1]["iteration"])
    ]
    return pd.DataFrame(rows)


def ratings_table(cells: list[Cell]) -> pd.DataFrame:
    """Spearman correlations of ratings with their out-of-fold predictions, for each weight of absent pairs."""
    table = pd.DataFrame(
        [
            {"scale": found["scale"], "words": found["n_words"], "weight": cell["weight"], "rho": found["correlation"]}
            for cell in cells
            for found in cell["ratings"]
        ]
    )
    if not len(table):
        return table
    table["weight"] = table["weight"].map("absent weight {:g}".format)
    wide = table.pivot(index=["scale", "words"], columns="weight", values="rho").rename_axis(columns=None)
    return wide.sort_values(f"absent weight {SMALL_WEIGHT:g}").reset_index()


def rarity_auc(words: Words, seed: int) -> float:
    """AUC of links where a pair scores the product of its words' -log2 p, which are on the diagonal."""
    S = words.similarity
    return link_auc(S, S.values.diagonal()[:, None], random_state=seed)
