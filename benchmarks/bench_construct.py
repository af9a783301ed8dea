"""Time of the constructors, from tables of millions of rows to a Similarity.

    python benchmarks/bench_construct.py [--quick] [--out benchmarks/results/construct.json]

Each case is built once and then timed several times in one process. Prints a Markdown table of the shortest and the
longest time and writes every number to a JSON file. Run with taskset -c 0 for single-core times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simdims.associations import from_associations
from simdims.construct import from_dissimilarity, from_ratings
from simdims.triplets import from_triplets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows, to see that it runs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "construct.json")
    options = parser.parse_args()
    results = {
        "machine": describe_machine(),
        "cases": [
            {"case": name, "goal_seconds": goal, "seconds": timed(call, options.repeats)}
            for name, goal, call in cases(100 if options.quick else 1)
        ],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2))
    print_table(results)
    print(f"\nWritten to {options.out}")


def cases(divisor: int) -> list[tuple[str, float | None, Callable[[], Any]]]:
    """Name, target in seconds (if any), and the function to time."""
    triplets = random_triplets(5_000_000 // divisor, 1854)
    names = np.array([f"item {i}" for i in range(1854)], dtype=object)
    words = pd.DataFrame(names[triplets], columns=["left", "right", "odd"])
    associations = random_associations(500_000 // divisor, 40_000 // divisor)
    ratings = random_ratings(500_000 // divisor)
    scale = {"item1": "first", "item2": "second", "rating": "rating", "low": 1, "high": 7}
    people = random_distances(20, 1854 // min(divisor, 10))
    n_triplets, n_rows = f"{len(triplets):,}", f"{len(associations):,}"
    return [
        (f"from_triplets, {n_triplets} x 1,854 items, int16", 3.0, lambda: from_triplets(triplets)),
        (f"from_triplets, {n_triplets}, int64, counts", 3.0, lambda: from_triplets(big(triplets), weights="counts")),
        (f"from_triplets, {n_triplets}, labels in a DataFrame", None, lambda: from_triplets(words, odd="odd")),
        (f"from_associations, {n_rows} rows", 5.0, lambda: from_associations(associations)),
        (f"from_ratings, {n_rows} rows", None, lambda: from_ratings(ratings, **scale)),
        (f"from_ratings, {n_rows} rows, people", None, lambda: from_ratings(ratings, participant="person", **scale)),
        (f"from_dissimilarity, {len(people)} people", None, lambda: from_dissimilarity(people)),
    ]


def big(triplets: np.ndarray) -> np.ndarray:
    return triplets.astype(np.int64)


def random_triplets(n_triplets: int, n_items: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    drawn = rng.integers(n_items, size=(n_triplets * 11 // 10, 3), dtype=np.int16)
    a, b, c = drawn.T
    return drawn[(a != b) & (a != c) & (b != c)][:n_triplets]


def random_associations(n_rows: int, n_words: int) -> pd.DataFrame:
    """Cues uniform over three tenths of the words, responses Zipf-like over all, counts mostly small."""
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"word{i}" for i in range(n_words)])
    shares = 1 / np.arange(1, n_words + 1)
    return pd.DataFrame(
        {
            "cue": vocabulary[rng.integers(3 * n_words // 10, size=n_rows)],
            "response": vocabulary[rng.choice(n_words, size=n_rows, p=shares / shares.sum())],
            "count": rng.geometric(0.4, size=n_rows),
        }
    )


def random_ratings(n_rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    names = np.array([f"item {i}" for i in range(500)])
    first = rng.integers(500, size=n_rows)
    second = (first + rng.integers(1, 500, size=n_rows)) % 500
    columns = {"first": names[first], "second": names[second]}
    return pd.DataFrame({**columns, "rating": rng.integers(1, 8, n_rows), "person": rng.integers(400, size=n_rows)})


def random_distances(n_people: int, n_items: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(size=(n_people, n_items * (n_items - 1) // 2))


def timed(call: Callable[[], Any], repeats: int) -> list[float]:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def describe_machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": cores, "machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__}


def print_table(results: dict[str, Any]) -> None:
    machine = results["machine"]
    print(f"\n{machine['cores']} core(s), Python {machine['python']}, NumPy {machine['numpy']}\n")
    print("| constructor | shortest, s | longest, s | goal, s |")
    print("|---|---|---|---|")
    for case in results["cases"]:
        goal = "-" if case["goal_seconds"] is None else f"{case['goal_seconds']:g}"
        print(f"| {case['case']} | {min(case['seconds']):.2f} | {max(case['seconds']):.2f} | {goal} |")


if __name__ == "__main__":
    main()
