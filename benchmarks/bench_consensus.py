"""Time of a consensus: many parallel fits, and the split-half reliability of their dimensions.

    python benchmarks/bench_consensus.py [--quick] [--jobs 2] [--out benchmarks/results/consensus.json]

The reliability of 30 runs x 100 splits with 1854 items and 40 dimensions should take less than a minute on two cores.
Also measures how much of a sweep would be saved by stacking the products of several runs, S [W_1 ... W_m] (processor
time, one thread).
Prints Markdown tables and writes every number to a JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from simdims import SRF, _threads, simulate, solvers
from simdims.consensus import fit_consensus, split_half_reliability
from simdims.solvers import kernels
from simdims.solvers.complete import N_PASSES, CompleteSweeps
from simdims.solvers.sweeps import BLOCK, row_terms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small problem, to see that it runs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "consensus.json")
    options = parser.parse_args()
    n_items, n_components, n_runs, n_splits = (200, 8, 6, 10) if options.quick else (1854, 40, 30, 100)
    truth = simulate.dirichlet(n_items, n_components, alpha=0.3, random_state=0)
    S = simulate.add_noise(truth @ truth.T, 0.9, random_state=0)
    results = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        "size": {"n_items": n_items, "n_components": n_components, "n_runs": n_runs, "n_splits": n_splits},
        "times": measure_times(S, truth, n_components, n_runs, n_splits, options.jobs),
        "stacking": measure_stacking(S, n_components, (1, 5, 15)),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2))
    print_tables(results)
    print(f"\nWritten to {options.out}")


def measure_times(
    S: np.ndarray, truth: np.ndarray, n_components: int, n_runs: int, n_splits: int, n_jobs: int
) -> list[dict]:
    rng = np.random.default_rng(0)
    spread = 0.5 * truth.std()
    runs = np.stack([truth + rng.normal(scale=spread, size=truth.shape) for _ in range(n_runs)])
    SRF(n_components, max_iter=2, tol=1.0).fit(S)  # compile
    rows = []
    for jobs in dict.fromkeys([1, n_jobs]):
        seconds, _ = timed(lambda jobs=jobs: split_half_reliability(runs, n_splits=n_splits, n_jobs=jobs))
        rows.append({"what": "reliability alone", "jobs": jobs, "seconds": seconds})
        say(rows[-1])
        seconds, consensus = timed(
            lambda jobs=jobs: fit_consensus(
                S, n_components, n_runs=n_runs, n_splits=n_splits, random_state=0, n_jobs=jobs, progress=False
            )
        )
        rows.append(
            {
                "what": "whole consensus",
                "jobs": jobs,
                "seconds": seconds,
                "median_sweeps": float(np.median(consensus.n_iter)),
                "mean_reliability": consensus.mean_reliability,
            }
        )
        say(rows[-1])
    return rows


def measure_stacking(S: np.ndarray, n_components: int, sizes: tuple[int, ...]) -> list[dict]:
    """Processor milliseconds per sweep of one run, alone and with the products of `size` runs in one call."""
    problem = solvers.as_problem(S)
    rows = []
    with _threads.one_blas_thread():
        for size in sizes:
            starts = [solvers.random_start(problem, n_components, np.random.RandomState(i)) for i in range(size)]
            sweeps = {"alone_ms": sweep_alone, "stacked_ms": sweep_stacked}
            row: dict = {"runs": size}
            for name, sweep in sweeps.items():
                sweep(problem, [start.copy() for start in starts])
                row[name] = min(1e3 * cpu_seconds(sweep, problem, starts) / size for _ in range(5))
            rows.append(row)
            print(f"  {row}", file=sys.stderr, flush=True)
    return rows


def cpu_seconds(sweep: Callable, problem: solvers.Problem, starts: list[np.ndarray]) -> float:
    copies = [start.copy() for start in starts]
    before = time.process_time()
    sweep(problem, copies)
    return time.process_time() - before


def sweep_alone(problem: solvers.Problem, runs: list[np.ndarray]) -> None:
    for W in runs:
        CompleteSweeps(problem).sweep(W)


def sweep_stacked(problem: solvers.Problem, runs: list[np.ndarray]) -> None:
    S = problem.values
    n, n_components = runs[0].shape
    stack = np.hstack(runs)
    grams = [W.T @ W for W in runs]
    for start in range(0, n, BLOCK):
        rows = slice(start, min(start + BLOCK, n))
        products, within = S[rows] @ stack, np.ascontiguousarray(S[rows, rows])
        for place, (W, gram) in enumerate(zip(runs, grams, strict=True)):
            columns = slice(place * n_components, (place + 1) * n_components)
            own = np.ascontiguousarray(products[:, columns])
            kernels.update_block(within, own, *row_terms(problem), W, gram, start, N_PASSES)
            stack[rows, columns] = W[rows]


def timed(function: Callable) -> tuple[float, object]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def say(row: dict) -> None:
    print(f"  {row['what']}, {row['jobs']} jobs: {row['seconds']:.1f} s", file=sys.stderr, flush=True)


def print_tables(results: dict) -> None:
    size = ", ".join(f"{name} = {value}" for name, value in results["size"].items())
    print(f"\n{results['machine']['cores']} cores; {size}\n")
    print("| what | jobs | seconds | median sweeps | mean reliability |\n|---|---|---|---|---|")
    for row in results["times"]:
        fits = f"{row['median_sweeps']:.0f} | {row['mean_reliability']:.3f}" if "median_sweeps" in row else " | "
        print(f"| {row['what']} | {row['jobs']} | {row['seconds']:.1f} | {fits} |")
    print("\nProcessor time of one sweep of one run, one thread\n")
    print("| runs stacked | alone, ms | stacked, ms |\n|---|---|---|")
    for row in results["stacking"]:
        print(f"| {row['runs']} | {row['alone_ms']:.1f} | {row['stacked_ms']:.1f} |")


if __name__ == "__main__":
    main()
