"""Time, memory and accuracy of joint fits of several systems.

    python benchmarks/bench_joint.py [--quick] [--parts PART ...] [--seed SEED] [--out benchmarks/results/joint.json]

People: 683 people, 93 items, about 130 ratings each, 8 dimensions, default settings; should take less than 20 s and 1
GB. Systems: dense matrices of a few hundred items. Recovery: 20 systems, 60 items, 6 dimensions, 15% of the pairs each
at SNR 0.5, best of ten starts: alignment of the dimensions and correlation of the weights with the true ones. Absent:
the same, with ten systems that lack the third dimension: their median weight on it. Recovery and absent use eight
seeds from SEED on. Rule: held-out error of shrinkage="auto" relative to equal weights, for people who do and do not
differ. Selection: the number of dimensions found by select_rank.
Prints Markdown tables and writes every number to a JSON file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simdims import JointSRF, SimilaritySet, align, from_ratings, select_rank, simulate

PARTS = ("people", "systems", "recovery", "absent", "rule", "selection")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small problems, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "joint.json")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument("--seed", type=int, default=0, help="first seed of the parts recovery and absent")
    options = parser.parse_args()
    sizes = [(8, 60, 4)] if options.quick else [(16, 92, 8), (16, 92, 20), (50, 300, 10), (10, 1000, 20)]
    seeds = range(options.seed, options.seed + (1 if options.quick else 8))
    n_starts = 2 if options.quick else 10
    parts: dict[str, Callable[[], Any]] = {
        "people": lambda: measure_people(*((40, 30, 60, 3) if options.quick else (683, 93, 127, 8))),
        "systems": lambda: [measure_systems(*size) for size in sizes],
        "recovery": lambda: measure_recovery(seeds, n_starts),
        "absent": lambda: measure_absent(seeds, n_starts),
        "rule": lambda: measure_rule(range(900, 901 if options.quick else 910)),
        "selection": lambda: measure_selection(range(950, 951 if options.quick else 953), options.quick),
    }
    results: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        **{part: parts[part]() for part in PARTS if part in options.parts},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2))
    print_tables(results)
    print(f"\nWritten to {options.out}")


def measure_people(n_people: int, n_items: int, n_ratings: int, rank: int) -> dict[str, Any]:
    """Ratings of pairs by many people: from the table to the weights."""
    rng = np.random.default_rng(0)
    W = simulate.dirichlet(n_items, rank, alpha=0.3, random_state=0)
    a = rng.gamma(2.0, 0.5, size=(n_people, rank))
    a /= a.mean(axis=0)
    first, second = np.triu_indices(n_items, 1)
    chosen = np.concatenate([rng.choice(len(first), size=n_ratings, replace=False) for _ in range(n_people)])
    person, i, j = np.repeat(np.arange(n_people), n_ratings), first[chosen], second[chosen]
    ratings = np.maximum(np.sum(W[i] * a[person] * W[j], axis=1) + 0.15 * rng.normal(size=len(i)), 0.0)
    table = pd.DataFrame({"i": i, "j": j, "rating": ratings, "person": person})
    start, processor = time.perf_counter(), time.process_time()
    people = from_ratings(table, item1="i", item2="j", rating="rating", low=0, high=float(ratings.max()), by="person")
    read = time.perf_counter()
    joint = JointSRF(rank, random_state=0).fit(people)
    found = align(joint.embedding_, W)
    correlations = [np.corrcoef(a[:, k], joint.weights_[:, p])[0, 1] for k, p in enumerate(found.permutation)]
    return {
        "size": [n_people, n_items, len(table), rank],
        "seconds_set": read - start,
        "seconds_fit": time.perf_counter() - read,
        "seconds_processor": time.process_time() - processor,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "alpha": joint.alpha_,
        "shrinkage": joint.shrinkage_,
        "alignment": float(np.mean(found.similarity)),
        "correlation": float(np.mean(correlations)),
    }


def measure_systems(n_systems: int, n_items: int, rank: int) -> dict[str, Any]:
    """Complete matrices: fits with given and with automatic penalties."""
    stack, *_ = simulated(n_systems, n_items, rank, 1.0, 0.8, 0)
    systems = SimilaritySet(stack)
    JointSRF(rank, alpha=0.05, shrinkage=0.1, max_iter=20, tol=1.0, random_state=0).fit(systems)  # compile
    row: dict[str, Any] = {"size": [n_systems, n_items, rank]}
    for name, settings in (("given", {"alpha": 0.05, "shrinkage": 0.1}), ("auto", {})):
        start, processor = time.perf_counter(), time.process_time()
        joint = JointSRF(rank, random_state=0, **settings).fit(systems)
        row |= {f"seconds_{name}": time.perf_counter() - start, f"processor_{name}": time.process_time() - processor}
        row[f"sweeps_{name}"] = joint.n_iter_
    return row


def best_fit(stack: np.ndarray, n_starts: int) -> JointSRF:
    """The best of several starts by objective, with the penalty and the shrinkage chosen for the first."""
    first = JointSRF(6, random_state=0).fit(stack)
    settings = {"alpha": first.alpha_, "shrinkage": first.shrinkage_}
    fits = [first, *(JointSRF(6, random_state=start, **settings).fit(stack) for start in range(1, n_starts))]
    return min(fits, key=lambda fit: fit.objective_)


def measure_recovery(seeds: range, n_starts: int) -> dict[str, Any]:
    """Alignment and correlation for the best of several starts by objective."""
    rows = []
    for seed in seeds:
        stack, W, a = simulated(20, 60, 6, 0.15, 0.5, seed)
        best = best_fit(stack, n_starts)
        found = align(best.embedding_, W)
        correlations = [np.corrcoef(a[:, k], best.weights_[:, p])[0, 1] for k, p in enumerate(found.permutation)]
        rows.append([float(np.mean(found.similarity)), float(np.mean(correlations)), best.alpha_, best.shrinkage_])
    return {"seeds": rows, "mean": np.mean(rows, axis=0).tolist()}


def measure_absent(seeds: range, n_starts: int) -> dict[str, Any]:
    """The median weight on the third dimension in ten systems that lack it, and in ten that have it."""
    rows = []
    for seed in seeds:
        stack, W, _ = simulated(20, 60, 6, 0.15, 0.5, seed, n_absent=10)
        best = best_fit(stack, n_starts)
        weights = best.weights_[:, align(best.embedding_, W).permutation[2]]
        rows.append([float(np.median(weights[:10])), float(np.median(weights[10:])), best.alpha_, best.shrinkage_])
    return {"seeds": rows, "mean": np.mean(rows, axis=0).tolist()}


#: Systems, items, dimensions, share of pairs observed and SNR of the sets for evaluating the shrinkage rule.
RULE_SETS = [(8, 20, 3, 1.0, 0.5), (20, 40, 4, 0.3, 0.5), (20, 60, 6, 0.15, 0.5), (100, 40, 4, 0.1, 0.3)]


def measure_rule(seeds: range) -> list[dict[str, Any]]:
    """Held-out error of shrinkage="auto" and of free weights, relative to equal weights; a fifth of pairs held out."""
    rows = []
    for size in RULE_SETS:
        for spread in (0.0, 0.3, 1.0):
            ratios: dict[str, list[float]] = {"auto": [], "free": []}
            chosen = []
            for seed in seeds:
                stack, *_ = simulated(*size, seed, spread)
                held = np.random.default_rng(seed).uniform(size=stack.shape) < 0.2
                held = np.triu(held, 1) & ~np.isnan(stack)
                training = np.where(held | held.transpose(0, 2, 1), np.nan, stack)
                errors = {}
                for name, shrinkage in (("equal", np.inf), ("auto", "auto"), ("free", 0.0)):
                    joint = JointSRF(size[2], shrinkage=shrinkage, random_state=seed).fit(training)
                    predicted = np.stack([joint.reconstruct(m) for m in range(size[0])])
                    errors[name] = float(np.mean((predicted[held] - stack[held]) ** 2))
                    if name == "auto":
                        chosen.append(joint.shrinkage_)
                for name, found in ratios.items():
                    found.append(errors[name] / errors["equal"] - 1)
            row = {f"{name}_{of}": float(f(found)) for name, found in ratios.items() for of, f in SUMMARIES.items()}
            equal = float(np.mean(np.isinf(chosen)))
            rows.append({"size": list(size), "spread": spread, "equal": equal, **row, "chosen": list(map(str, chosen))})
    return rows


def measure_selection(seeds: range, quick: bool) -> list[dict[str, Any]]:
    """The number of dimensions that select_rank finds in ten systems of 40 items, and the true one."""
    designs = itertools.product((3, 6), (0.2, 0.6), (0.3, 0.6), (0.0, 1.0))
    rows = []
    for rank, observed, snr, spread in [(3, 0.6, 0.6, 1.0)] if quick else designs:
        found = []
        for seed in seeds:
            stack, *_ = simulated(10, 40, rank, observed, snr, seed, spread)
            candidates = [rank - 2, rank - 1, rank, rank + 1, rank + 2, rank + 4, 2 * rank + 3]
            selection = select_rank(SimilaritySet(stack), candidates, n_repeats=2, random_state=seed, progress=False)
            found.append(selection.rank)
        rows.append({"rank": rank, "observed": observed, "snr": snr, "spread": spread, "found": found})
    return rows


SUMMARIES = {"mean": np.mean, "worst": np.max}


def simulated(
    n_systems: int,
    n_items: int,
    rank: int,
    observed: float,
    snr: float,
    seed: int,
    spread: float = 1.0,
    *,
    n_absent: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Similarities with missing pairs, the dimensions, and weights between 1 - spread and 1 + spread.

    The first `n_absent` systems lack the third dimension.
    """
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(n_items, rank, alpha=0.3, random_state=seed)
    a = rng.uniform(1 - spread, 1 + spread, size=(n_systems, rank))
    if n_absent:
        a[:n_absent, 2] = 0.0
    a /= a.mean(axis=0)
    stack = np.empty((n_systems, n_items, n_items))
    for m in range(n_systems):
        S = simulate.add_noise((W * a[m]) @ W.T, snr, random_state=1000 * seed + m)
        stack[m] = simulate.mask_pairs(S, observed, random_state=2000 * seed + m, keep_diagonal=observed == 1.0)
    return stack, W, a


def print_tables(results: dict[str, Any]) -> None:
    """Print Markdown tables of the parts that were measured."""
    for part, show in TABLES.items():
        if part in results:
            show(results[part])


def print_people(people: dict[str, Any]) -> None:
    print("| people | items | ratings | dimensions | set (s) | fit (s) | processor (s) | GB | alignment | weights |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    times = [people[name] for name in ("seconds_set", "seconds_fit", "seconds_processor", "peak_gb")]
    figures = [*times, people["alignment"], people["correlation"]]
    print(f"| {' | '.join(map(str, people['size']))} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")


def print_systems(rows: list[dict[str, Any]]) -> None:
    print("\n| systems | items | dimensions | given penalties (s) | sweeps | chosen penalties (s) |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        size = " | ".join(map(str, row["size"]))
        print(f"| {size} | {row['seconds_given']:.2f} | {row['sweeps_given']} | {row['seconds_auto']:.2f} |")


def print_recovery(recovery: dict[str, Any]) -> None:
    alignment, correlation, *_ = recovery["mean"]
    n_seeds = len(recovery["seeds"])
    print(f"\nRecovery over {n_seeds} seeds: alignment {alignment:.3f}, correlation of weights {correlation:.3f}")


def print_absent(absent: dict[str, Any]) -> None:
    lacking, others, *_ = absent["mean"]
    each = ", ".join(f"{row[0]:.3f}" for row in absent["seeds"])
    print(f"\nMedian weight on a dimension that half of the systems lack: {lacking:.3f} ({each}), others {others:.3f}")


def print_rule(rows: list[dict[str, Any]]) -> None:
    print("\n| systems, items, dimensions, observed, SNR | weights | equal chosen | auto | worst | free |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        figures = [row[name] for name in ("equal", "auto_mean", "auto_worst", "free_mean")]
        size = ", ".join(map(str, row["size"]))
        print(f"| {size} | 1 ± {row['spread']} | {' | '.join(f'{figure:+.1%}' for figure in figures)} |")


def print_selection(rows: list[dict[str, Any]]) -> None:
    print("\n| dimensions | observed | SNR | weights | found |")
    print("|---|---|---|---|---|")
    for row in rows:
        found = ", ".join(map(str, row["found"]))
        print(f"| {row['rank']} | {row['observed']:.0%} | {row['snr']} | 1 ± {row['spread']} | {found} |")


TABLES: dict[str, Callable[[Any], None]] = {
    "people": print_people,
    "systems": print_systems,
    "recovery": print_recovery,
    "absent": print_absent,
    "rule": print_rule,
    "selection": print_selection,
}


if __name__ == "__main__":
    main()
