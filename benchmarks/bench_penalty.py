"""Benefit of a penalty on the loadings, quality of its choice by alpha="auto", and the cost of that choice.

    python benchmarks/bench_penalty.py simulated [--quick] [--seeds 8] [--first-seed 1000] [--jobs 1]
    python benchmarks/bench_penalty.py complete  [--quick] [--seeds 4] [--first-seed 1000] [--jobs 1]
    python benchmarks/bench_penalty.py answers   [--quick] [--seeds 2] [--first-seed 1000]
    python benchmarks/bench_penalty.py words     [--quick] [--seeds 1] [--first-seed 1000]
    python benchmarks/bench_penalty.py time      [--quick] [--seeds 5] [--first-seed 1000]
    python benchmarks/bench_penalty.py diagonal  [--quick] [--seeds 4] [--first-seed 1000] [--jobs 1]

simulated: few and noisy pairs of 150 items, diagonal missing and observed; alignment with the true dimensions and
squared error over all off-diagonal pairs, relative to their variance before noise. complete: the same with all pairs
observed and little noise, where no penalty is needed. answers: odd-one-out answers about 1,854 THINGS objects, four
fifths of them fitted and the rest predicted. words: USF free associations; SimLex-999, WordSim-353 and held-out links.
time: what choosing alpha adds to a fit, in fits of the training pairs with the chosen penalty and without one; in
processor time, whose ratios are robust on a busy machine. diagonal: under alpha="auto", an unmeasured diagonal set to 1
against a missing one, on simulated ratings, dissimilarities and odd-one-out answers and on real data.

The last four need the real data in SIMDIMS_DATA (or ../shared/data), and skip missing files. Prints Markdown tables and
writes every number to benchmarks/results/penalty_*.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_fit import describe_machine
from joblib import Parallel, delayed

from simdims import SRF, Similarity, from_dissimilarity, from_triplets, select_rank, simulate
from simdims.datasets import (
    fetch_mur92_behaviour,
    fetch_peterson_animals,
    fetch_things_48,
    fetch_things_spose,
    fetch_word_similarity,
    read_usf,
)
from simdims.metrics import (
    factor_alignment,
    hold_out_links,
    link_auc,
    pair_correlation,
    triplet_accuracy,
)

RESULTS = Path(__file__).parent / "results"
DATA = Path(os.environ.setdefault("SIMDIMS_DATA", str(Path(__file__).resolve().parents[2] / "shared" / "data")))
N_ITEMS = 150

#: Rank, Dirichlet concentration, SNR and share of observed pairs.
FEW_AND_NOISY = (
    (10, 0.3, 0.3, 0.5),
    (16, 0.5, 0.5, 0.5),
    (10, 0.3, 0.7, 0.2),
    (10, 0.3, 1.0, 0.15),
    (10, 0.3, 1.0, 0.1),
    (5, 0.3, 0.7, 0.1),
)
COMPLETE = tuple((10, concentration, snr, 1.0) for concentration in (0.1, 0.3, 0.5, 1, 2) for snr in (0.7, 0.8, 0.9, 1))
TIMED = (*FEW_AND_NOISY, (10, 0.3, 0.7, 0.5), (10, 0.3, 0.7, 1.0))

#: Ranks of fits with alpha="auto", and of fits without a penalty, of which the best is compared.
ANSWER_RANKS, RIVAL_RANKS = (10, 20, 40), (2, 3, 4, 5, 6, 8, 10, 15, 20)
N_TEST = 20_000

#: Rank and sweeps of fits to word associations, as in paper/words.py.
WORD_RANK, WORD_SWEEPS = 150, 60

SHARES = (0.4, 0.7, 1.0)

#: Offset between seeds of fits and of data: a random start must not reuse the numbers behind the loadings.
FIT_SEEDS = 1_000_000


def main() -> None:
    parts: dict[str, tuple[int, Callable, Callable]] = {
        "simulated": (8, measure_simulated, show_simulated),
        "complete": (4, measure_complete, show_complete),
        "answers": (2, measure_answers, show_answers),
        "words": (1, measure_words, show_words),
        "time": (5, measure_time, show_time),
        "diagonal": (4, measure_diagonal, show_diagonal),
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(parts))
    parser.add_argument("--quick", action="store_true", help="small problems, to see that it runs")
    parser.add_argument("--seeds", type=int, help="data sets of each kind")
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1, help="processes over which simulations are spread")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the JSON file")
    options = parser.parse_args()
    n_seeds, measure, show = parts[options.what]
    n_seeds = 1 if options.quick else options.seeds or n_seeds
    options.seeds = range(options.first_seed, options.first_seed + n_seeds)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        runs = measure(options)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"penalty_{options.what}.json"
    path.write_text(json.dumps({"machine": describe_machine(), "runs": runs}, indent=1))
    show(pd.DataFrame(runs))
    print(f"\nWritten to {path}")


# Simulated similarities


def simulated(cell: dict) -> tuple[np.ndarray, np.ndarray]:
    """True loadings, and noisy similarities in which each pair is kept with a given probability.

    The noise has the standard deviation sd(S) sqrt((1 - snr) / snr), over off-diagonal pairs, before similarities are
    clipped at 0.
    """
    n = cell.get("n_items", N_ITEMS)
    W = simulate.dirichlet(n, cell["rank"], alpha=cell["concentration"], random_state=cell["seed"])
    S = W @ W.T
    rng = np.random.default_rng(cell["seed"])
    deviation = S[np.triu_indices(n, 1)].std() * np.sqrt((1 - cell["snr"]) / cell["snr"])
    noise = np.triu(rng.normal(scale=deviation, size=(n, n))) if deviation else np.zeros((n, n))
    S = np.maximum(S + noise + np.triu(noise, 1).T, 0)
    kept = np.triu(rng.uniform(size=(n, n)) < cell["observed"], 1)
    kept |= kept.T
    np.fill_diagonal(kept, cell["diagonal"] == "observed")
    return W, np.where(kept, S, np.nan)


def cells_of(rows: Iterable[tuple], options: argparse.Namespace) -> list[dict]:
    names = ("rank", "concentration", "snr", "observed")
    small = {"n_items": 60} if options.quick else {}
    return [
        {**dict(zip(names, row, strict=True)), "diagonal": diagonal, "seed": seed, **small}
        for row in (list(rows)[:1] if options.quick else rows)
        for diagonal in ("missing", "observed")
        for seed in options.seeds
    ]


def spread_over(function: Callable[[dict], list[dict]], cells: list[dict], options: argparse.Namespace) -> list[dict]:
    tasks = (delayed(quietly)(function, cell) for cell in cells)
    return [run for runs in Parallel(n_jobs=options.jobs, batch_size=1)(tasks) for run in runs]


def quietly(function: Callable[[dict], list[dict]], cell: dict) -> list[dict]:
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return function(cell)


def measure_simulated(options: argparse.Namespace) -> list[dict]:
    return spread_over(fit_simulated, cells_of(FEW_AND_NOISY, options), options)


def measure_complete(options: argparse.Namespace) -> list[dict]:
    return spread_over(fit_simulated, cells_of(COMPLETE, options), options)


def fit_simulated(cell: dict) -> list[dict]:
    """Alignment and error of a fit without a penalty and of one with alpha="auto"."""
    W, S = simulated(cell)
    return [
        {**cell, "alpha": str(alpha), "chosen": fit.alpha_, **recovery(fit.embedding_, W)}
        for alpha in (0.0, "auto")
        for fit in [SRF(cell["rank"], alpha=alpha, random_state=FIT_SEEDS + cell["seed"]).fit(S)]
    ]


def recovery(W: np.ndarray, W_true: np.ndarray) -> dict[str, float]:
    pairs = np.triu_indices(len(W), 1)
    signal, predicted = (W_true @ W_true.T)[pairs], (W @ W.T)[pairs]
    error = float(np.mean((predicted - signal) ** 2) / signal.var())
    return {"alignment": factor_alignment(W, W_true).mean, "error": error}


def show_simulated(runs: pd.DataFrame) -> None:
    print("Means (and their standard errors); alpha is the median of what was chosen\n")
    print("| rank, Dirichlet, SNR, observed | diagonal | alignment, alpha=0 | auto | error, alpha=0 | auto | alpha |")
    print("|---|---|---|---|---|---|---|")
    for (*row, diagonal), group in runs.groupby(
        ["rank", "concentration", "snr", "observed", "diagonal"], sort=False, observed=True
    ):
        none, auto = group[group["alpha"] == "0.0"], group[group["alpha"] == "auto"]
        columns = [mean_and_error(part[name]) for name in ("alignment", "error") for part in (none, auto)]
        print(f"| {design(row)} | {diagonal} | {' | '.join(columns)} | {spread(auto['chosen'])} |")


def show_complete(runs: pd.DataFrame) -> None:
    print("Complete data: alignment with alpha='auto' less that without a penalty\n")
    print(
        "| Dirichlet, SNR | diagonal | alignment, alpha=0 | auto less that | lowest | error, alpha=0 | auto | alpha |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (concentration, snr, diagonal), group in runs.groupby(["concentration", "snr", "diagonal"], sort=False):
        none, auto = (group[group["alpha"] == name].set_index("seed") for name in ("0.0", "auto"))
        gain = auto["alignment"] - none["alignment"]
        print(
            f"| {concentration:g}, {snr:g} | {diagonal} | {none['alignment'].mean():.3f} | {gain.mean():+.4f} | "
            f"{gain.min():+.4f} | {none['error'].mean():.4f} | {auto['error'].mean():.4f} | {spread(auto['chosen'])} |"
        )


def design(row: Iterable[float]) -> str:
    rank, concentration, snr, observed = row
    return f"{rank:g}, {concentration:g}, {snr:g}, {observed:.0%}"


def mean_and_error(values: pd.Series) -> str:
    mean = values.mean()
    shown = f"{mean:.0f}" if mean > 10 else f"{mean:.3f}"
    return shown if len(values) < 2 else f"{shown} ({values.sem():.3f})"


def spread(values: pd.Series) -> str:
    return f"{values.median():.3g} ({values.min():.3g} to {values.max():.3g})"


# Odd-one-out answers


def measure_answers(options: argparse.Namespace) -> list[dict]:
    path = DATA / "things" / "triplets_100k.npy"
    if not path.exists():
        print(f"No such file: {path}. The answers about THINGS are left out.")
        return []
    answers, runs = np.load(path), []
    n_items = int(answers.max()) + 1
    ranks, rivals = ((10,), (4,)) if options.quick else (ANSWER_RANKS, RIVAL_RANKS)
    fits = [("auto", rank) for rank in ranks] + [(0.0, rank) for rank in rivals]
    for seed in options.seeds:
        training, test = split_answers(answers, seed)
        S = from_triplets(training, n_items=n_items, weights="counts")
        for alpha, rank in fits:
            fit = SRF(rank, alpha=alpha, random_state=FIT_SEEDS + seed).fit(S)
            run = {"seed": seed, "rank": rank, "alpha": str(alpha), "chosen": fit.alpha_}
            runs.append({**run, **predicted_answers(fit.embedding_, test)})
    return runs


def split_answers(answers: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(answers))
    return answers[order[N_TEST:]], answers[order[:N_TEST]]


def predicted_answers(W: np.ndarray, test: np.ndarray) -> dict[str, float]:
    """Accuracy on other answers, and the correlation with judgements of all triplets of 48 objects."""
    rows = np.loadtxt(DATA / "things" / "idx48_in_1854.txt", dtype=int)
    pairs = np.triu_indices(len(rows), 1)
    judged, predicted = np.asarray(fetch_things_48().values), W[rows] @ W[rows].T
    correlation = float(np.corrcoef(predicted[pairs], judged[pairs])[0, 1])
    return {"accuracy": triplet_accuracy(W, test), "correlation_48": correlation}


def show_answers(runs: pd.DataFrame) -> None:
    print(f"THINGS, {N_TEST:,} of 100,000 answers predicted from the others; means over splits\n")
    print("| alpha | rank | accuracy | less the best rank without a penalty | correlation, 48 objects | chosen |")
    print("|---|---|---|---|---|---|")
    if not len(runs):
        return
    best = runs[runs["alpha"] == "0.0"].groupby("seed")["accuracy"].max()
    for (alpha, rank), group in runs.groupby(["alpha", "rank"], sort=False):
        gains = group.set_index("seed")["accuracy"] - best
        print(
            f"| {alpha} | {rank} | {group['accuracy'].mean():.4f} | {gains.mean():+.4f} (lowest {gains.min():+.4f}) | "
            f"{group['correlation_48'].mean():.3f} | {spread(group['chosen'])} |"
        )


# Word associations


def measure_words(options: argparse.Namespace) -> list[dict]:
    path = DATA / "words" / "usf_appendixA.csv"
    if not path.exists():
        print(f"No such file: {path}. The word associations are left out.")
        return []
    S = read_usf(path)
    S = replace(S, labels=[word.lower() for word in S.labels])
    rank, sweeps = (5, 3) if options.quick else (WORD_RANK, WORD_SWEEPS)
    runs = []
    for seed in options.seeds:
        training, pairs = hold_out_links(S, 0.1, random_state=seed)
        for alpha in (0.0, "auto"):
            fit = SRF(rank, alpha=alpha, max_iter=sweeps, random_state=FIT_SEEDS + seed)
            start = time.process_time()
            W = fit.fit(training).embedding_frame()
            run = {"seed": seed, "rank": rank, "alpha": str(alpha), "chosen": fit.alpha_}
            run |= {"seconds": time.process_time() - start, "sweeps": fit.n_iter_}
            run |= {name: word_correlation(W, name) for name in ("simlex999", "wordsim353")}
            runs.append({**run, "held_out_links": link_auc(S, W, pairs=pairs, random_state=seed)})
    return runs


def word_correlation(W: pd.DataFrame, name: str) -> float:
    table = fetch_word_similarity(name)
    words = table[["word1", "word2"]].apply(lambda column: column.str.lower())
    known = words.isin(W.index).all(axis=1) & (words["word1"] != words["word2"])
    return float(pair_correlation(W, words[known], table["rating"][known]).correlation)


def show_words(runs: pd.DataFrame) -> None:
    print("USF associations, a tenth of the links held out; rank correlations, AUC of the links held out\n")
    print("| alpha | SimLex-999 | WordSim-353 | held-out links | chosen | processor time |\n|---|---|---|---|---|---|")
    if not len(runs):
        return
    base = runs.loc[runs["alpha"] == "0.0", "seconds"].mean()
    for alpha, group in runs.groupby("alpha", sort=False):
        columns = [f"{group[name].mean():.3f}" for name in ("simlex999", "wordsim353", "held_out_links")]
        ratio = f"{group['seconds'].mean() / base:.1f} x"
        print(f"| {alpha} | {' | '.join(columns)} | {spread(group['chosen'])} | {ratio} |")


# Time


def measure_time(options: argparse.Namespace) -> list[dict]:
    runs = []
    for cell in cells_of(TIMED, options):
        _, S = simulated(cell)
        runs.append({**cell, "data": "simulated", **timed(S, cell["rank"], cell["seed"])})
    if not (DATA / "things" / "spose_embedding_66d_sorted.txt").exists():
        print("No SPoSE embedding under SIMDIMS_DATA: its similarities are left out.")
        return runs
    F = fetch_things_spose().to_numpy()[: 200 if options.quick else None]
    for observed in (1.0, 0.2):
        for seed in options.seeds[:2]:
            S = simulate.mask_pairs(F @ F.T, observed, random_state=seed)
            cell = {"data": "SPoSE", "n_items": len(F), "rank": 40, "observed": observed, "seed": seed}
            runs.append({**cell, "diagonal": "observed", **timed(S, 40, seed)})
    return runs


def timed(S: np.ndarray, rank: int, seed: int) -> dict[str, float]:
    """Processor seconds of alpha="auto", of its final fit, and of two fits to 90% of the pairs."""
    training = simulate.mask_pairs(S, 0.9, random_state=seed)
    if np.isnan(S.diagonal()).all():
        np.fill_diagonal(training, np.nan)
    SRF(rank, alpha=0.1, max_iter=2, random_state=0).fit(S)  # compile
    auto, seconds = seconds_of(SRF(rank, alpha="auto", random_state=FIT_SEEDS + seed), S)
    same, penalised, unpenalised = (
        seconds_of(SRF(rank, alpha=alpha, random_state=FIT_SEEDS + seed), X)[1]
        for alpha, X in ((auto.alpha_, S), (auto.alpha_, training), (0.0, training))
    )
    return {
        "auto": seconds,
        "last_fit": same,
        "training_fit": penalised,
        "training_fit_unpenalised": unpenalised,
        "chosen": auto.alpha_,
    }


def seconds_of(estimator: SRF, S: np.ndarray) -> tuple[SRF, float]:
    start = time.process_time()
    estimator.fit(S)
    return estimator, time.process_time() - start


def show_time(runs: pd.DataFrame) -> None:
    print("Processor time that choosing alpha adds to the last fit, in fits of 90% of the pairs\n")
    print("| data | diagonal | with the chosen penalty | without a penalty | whole fit / unpenalised fit | alpha |")
    print("|---|---|---|---|---|---|")
    by = ["data", "rank", "concentration", "snr", "observed", "diagonal"]
    for (data, rank, concentration, snr, observed, diagonal), group in runs.groupby(by, sort=False, dropna=False):
        row = design((rank, concentration, snr, observed)) if data == "simulated" else f"{rank}, {observed:.0%}"
        sums = group[["auto", "last_fit", "training_fit", "training_fit_unpenalised"]].sum()
        extra = sums["auto"] - sums["last_fit"]
        print(
            f"| {data}, {row} | {diagonal} | {extra / sums['training_fit']:.1f} | "
            f"{extra / sums['training_fit_unpenalised']:.1f} | {sums['auto'] / sums['training_fit_unpenalised']:.1f} | "
            f"{spread(group['chosen'])} |"
        )


# Unmeasured diagonal


def measure_diagonal(options: argparse.Namespace) -> list[dict]:
    small = {"n_items": 60} if options.quick else {}
    cells = [
        {"kind": kind, "observed": observed, "seed": seed, **small}
        for kind in ("ratings", "dissimilarities", "answers")
        for observed in (SHARES[-1:] if options.quick else SHARES)
        for seed in options.seeds
    ]
    runs = spread_over(compare_simulated, cells, options)
    for name, S in real_judgements():
        for observed in SHARES[-1:] if options.quick else SHARES:
            cells = [{"kind": name, "observed": observed, "seed": seed} for seed in options.seeds]
            runs += spread_over(lambda cell, S=S: compare_real(S, cell), cells, options)
    return runs if options.quick else runs + compare_answers(options)


def real_judgements() -> list[tuple[str, np.ndarray]]:
    found = []
    if (DATA / "peterson_animals" / "turkResults_CogSci2016.mat").exists():
        found.append(("Peterson animals", np.array(fetch_peterson_animals().values)))
    if (DATA / "mur92" / "92_behavRDMs.mat").exists():
        found.append(("Mur-92", np.array(fetch_mur92_behaviour().similarity.values)))
    return found


def compare_simulated(cell: dict) -> list[dict]:
    """10 dimensions, SNR 0.7: results with a diagonal of 1 and with a missing one."""
    made = {"rank": 10, "concentration": 0.3, "snr": 0.7, "diagonal": "missing", **cell}
    if cell["kind"] == "answers":
        W, S, test = simulated_answers(made)
    else:
        W, S = simulated(made)
        test = None
        if cell["kind"] == "dissimilarities":
            S = simulated_dissimilarities(W, made)
    return [
        {**cell, "diagonal": diagonal, **judge(with_diagonal(S, diagonal), cell["seed"], W, test)}
        for diagonal in ("one", "missing")
    ]


def simulated_answers(cell: dict) -> tuple[np.ndarray, Similarity, np.ndarray]:
    """Loadings, similarities from answers that show the given share of pairs, and test answers.

    A share of 1 means ten answers per pair.
    """
    n, share = cell.get("n_items", N_ITEMS), cell["observed"]
    W = simulate.dirichlet(n, cell["rank"], alpha=cell["concentration"], random_state=cell["seed"])
    answers_per_pair = 10 if share == 1 else -np.log(1 - share)
    n_answers = round(answers_per_pair * n * (n - 1) / 6)
    answers = simulate.triplet_answers(3 * W, n_answers + N_TEST, random_state=cell["seed"])
    S = from_triplets(answers[:n_answers], n_items=n, weights="counts")
    return W, S, answers[n_answers:]


def simulated_dissimilarities(W: np.ndarray, cell: dict) -> Similarity:
    """1 - d / max(d) of noisy distances between the loadings."""
    rng = np.random.default_rng(cell["seed"])
    distances = np.linalg.norm(W[:, None] - W, axis=2)
    pairs = np.triu_indices(len(W), 1)
    deviation = distances[pairs].std() * np.sqrt((1 - cell["snr"]) / cell["snr"])
    noisy = np.maximum(distances[pairs] + rng.normal(scale=deviation, size=len(pairs[0])), 0)
    noisy[rng.uniform(size=len(noisy)) >= cell["observed"]] = np.nan
    return from_dissimilarity(noisy)


def compare_real(S: np.ndarray, cell: dict) -> list[dict]:
    S = simulate.mask_pairs(S, cell["observed"], random_state=cell["seed"])
    return [
        {**cell, "diagonal": diagonal, **judge(with_diagonal(S, diagonal), cell["seed"])}
        for diagonal in ("one", "missing")
    ]


def with_diagonal(S: np.ndarray | Similarity, diagonal: str) -> Similarity:
    similarity = S if isinstance(S, Similarity) else Similarity(S)
    values = np.array(similarity.values)
    np.fill_diagonal(values, 1.0 if diagonal == "one" else np.nan)
    return replace(similarity, values=values)


def judge(
    S: Similarity, seed: int, W: np.ndarray | None = None, test: np.ndarray | None = None
) -> dict[str, float | None]:
    """The selected rank, the held-out R2 at 10 dimensions, and metrics relative to the truth."""
    found: dict[str, Any] = {}
    selection = select_rank(S, n_repeats=2, random_state=FIT_SEEDS + seed, n_jobs=1, progress=False)
    found["selected"] = selection.rank
    values = np.array(S.values)
    held = np.triu(np.random.default_rng(seed).uniform(size=values.shape) < 0.1, 1)
    held |= held.T
    training = replace(S, values=np.where(held, np.nan, values))
    fit = SRF(10, alpha="auto", random_state=FIT_SEEDS + seed).fit(training)
    found["chosen"] = fit.alpha_
    pairs = np.nonzero(np.triu(held & ~np.isnan(values), 1))
    errors = (fit.embedding_ @ fit.embedding_.T)[pairs] - values[pairs]
    found["held_out"] = float(1 - np.mean(errors**2) / values[pairs].var())
    if W is not None:
        whole = SRF(10, alpha="auto", random_state=FIT_SEEDS + seed).fit(S).embedding_
        found["alignment"] = factor_alignment(whole, W).mean
        if test is not None:
            found["accuracy"] = triplet_accuracy(whole, test)
    return found


def compare_answers(options: argparse.Namespace) -> list[dict]:
    """THINGS: accuracy on other answers."""
    path = DATA / "things" / "triplets_100k.npy"
    if not path.exists():
        return []
    answers, runs = np.load(path), []
    for seed in options.seeds[:2]:
        training, test = split_answers(answers, seed)
        S = from_triplets(training, n_items=int(answers.max()) + 1, weights="counts")
        for diagonal in ("one", "missing"):
            for rank in ANSWER_RANKS:
                fit = SRF(rank, alpha="auto", random_state=FIT_SEEDS + seed).fit(with_diagonal(S, diagonal))
                run = {"kind": f"THINGS answers, rank {rank}", "observed": S.density, "seed": seed}
                run |= {"diagonal": diagonal, "chosen": fit.alpha_}
                runs.append({**run, **predicted_answers(fit.embedding_, test)})
    return runs


def show_diagonal(runs: pd.DataFrame) -> None:
    print("A diagonal of 1 / a missing one, alpha='auto'; means\n")
    print("| data | observed | alignment | held-out R2 | selected rank | accuracy | alpha |")
    print("|---" * 7 + "|")
    for (kind, observed), group in runs.groupby(["kind", "observed"], sort=False):
        one, missing = (group[group["diagonal"] == name] for name in ("one", "missing"))
        columns = []
        for name, digits in (("alignment", 3), ("held_out", 3), ("selected", 1), ("accuracy", 4), ("chosen", 3)):
            pair = [part[name].mean() if name in part else np.nan for part in (one, missing)]
            columns.append("" if np.isnan(pair[0]) else f"{pair[0]:.{digits}f} / {pair[1]:.{digits}f}")
        print(f"| {kind} | {observed:.0%} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
