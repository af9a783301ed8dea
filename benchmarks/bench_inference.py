"""Speed of the hypothesis tests.

    OMP_NUM_THREADS=1 python benchmarks/bench_inference.py [--quick] [--out benchmarks/results/inference.json]

One process, one BLAS thread, whole calls. The naive method recomputes the correlations and solves an assignment for
every item of every permutation; its time is extrapolated from a few permutations. Prints a Markdown table and writes
every number to a JSON file. Power is measured by bench_power.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from bench_fit import describe_machine
from scipy.optimize import linear_sum_assignment

from simdims import simulate
from simdims.inference import combined_test, dimension_test, matching, rsa_test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small problems, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "inference.json")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = {"machine": describe_machine(), "speed": measure_speed(options.quick)}
    print_speed(results["speed"])
    options.out.write_text(json.dumps(results, indent=2))
    print(f"\nWritten to {options.out}")


def measure_speed(quick: bool) -> list[dict]:
    sizes = [(50, 5, 1000), (81, 12, 1000)] + ([] if quick else [(1854, 40, 1000)])
    rows = []
    for n_items, n_components, n_permutations in sizes:
        W = simulate.sparse_correlated(n_items, n_components, random_state=0)
        S = simulate.add_noise(W @ W.T, 0.5, random_state=0)
        X = np.random.default_rng(0).permutation(W) + 0.1
        options = {"n_permutations": n_permutations, "random_state": 0}
        tests: dict[str, Callable[[], object]] = {
            "dimension_test": partial(dimension_test, W, X, matching="joint", **options),
            "dimension_test, separate": partial(dimension_test, W, X, matching="separate", **options),
            "dimension_test, two-sided": partial(
                dimension_test, W, X, matching="joint", alternative="two-sided", **options
            ),
            "rsa_test": partial(rsa_test, S, X, **options),
            "rsa_test, 30% observed": partial(rsa_test, simulate.mask_pairs(S, 0.3, random_state=0), X, **options),
            "combined_test": partial(combined_test, S, W, X, matching="joint", **options),
        }
        if n_items < 1000:
            tests["rsa_test, spearman"] = partial(rsa_test, S, X, method="spearman", **options)
        for name, test in tests.items():
            rows.append(row(name, n_items, n_components, n_permutations, seconds_of(test)))
            print(f"  {name}, n = {n_items}: {rows[-1]['seconds']:.2f} s", file=sys.stderr, flush=True)
        few = 1 if n_items > 1000 else 5
        naive = seconds_of(partial(naive_alignment, X, W, few)) * n_permutations / few
        rows.append(row("dimension_test, naive", n_items, n_components, n_permutations, naive))
        rows[-1]["assignments_solved"] = share_solved(X, W)
    return rows


def row(test: str, n_items: int, n_components: int, n_permutations: int, seconds: float) -> dict:
    return {"test": test, "n": n_items, "k": n_components, "B": n_permutations, "seconds": seconds}


def naive_alignment(X: np.ndarray, W: np.ndarray, n_permutations: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(n_permutations):
        x = rng.permutation(X)
        for item in range(len(W)):
            others = np.arange(len(W)) != item
            C = np.corrcoef(x[others].T, W[others].T)[: X.shape[1], X.shape[1] :]
            linear_sum_assignment(C, maximize=True)


def share_solved(X: np.ndarray, W: np.ndarray) -> float:
    """The share of items for which the dual certificate fails under random permutations."""
    rng, solved, n_permutations = np.random.default_rng(0), 0, 5
    w = matching.standardise(W)
    for _ in range(n_permutations):
        x = matching.standardise(rng.permutation(X))
        C = x.values.T @ w.values
        own = matching.match(C, joint=True, absolute=False)
        net = matching._scores_without(C, x, w, slice(None), False) - matching._prices(C, own)
        solved += int((net.max(axis=2) > net[:, np.arange(len(own)), own] + matching.TIE).any(axis=1).sum())
    return solved / (n_permutations * len(W))


def seconds_of(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def print_speed(rows: list[dict]) -> None:
    print("\n| test | n | k | B | seconds |\n|---|---|---|---|---|")
    for entry in rows:
        print(f"| {entry['test']} | {entry['n']} | {entry['k']} | {entry['B']} | {entry['seconds']:.2f} |")


if __name__ == "__main__":
    main()
