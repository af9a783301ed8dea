"""Time of fits in this version over that in another version, on the problems of bench_small.py and bench_rivals.py.

    OMP_NUM_THREADS=1 python benchmarks/bench_versions.py [OTHER_CHECKOUT/src] [--quick] [--only small] [--rounds 5]

Each version runs in its own process, and both take turns on the same data. Times are in processor time, on which other
programs on the machine have little influence; in each round the shortest of several fits counts, and the ratio of a
problem is that of the shortest times over all rounds. For each row of the tables of the two benchmarks, prints the
geometric mean of the ratios over its problems, their range, the standard deviation of that mean between rounds, and
the mean ratio per iteration. Without another version, this one is compared with itself, which shows the noise.

--only select times select_rank in the same way, with default settings in one process: 120 items, 8 dimensions and two
levels of noise with ranks="auto", and 1,854 items and 20 dimensions with ranks 10, 20, ..., 60. Its ratio "per
iteration" is that per fit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bench_fit
import bench_rivals
import bench_small
import numpy as np

from simdims import simulate

HERE = Path(__file__).resolve().parents[1] / "src"
ADMM = {"solver": "admm", "max_iter": 100, "inner_iter": 10, "tol": 1e-3}

#: The process of a version: for each line with a data file and settings, it fits for a twentieth of a second, or
#: selects the rank once.
WORKER = """
import json, sys, time, warnings
import numpy as np
from simdims import SRF, as_similarity, select_rank
warnings.simplefilter("ignore")
for line in sys.stdin:
    path, settings = json.loads(line)
    data = np.load(path)
    S, times = data["S"], []
    if "ranks" in settings:
        select_rank(S[:40, :40], [2, 3], random_state=0, n_jobs=1, progress=False)
        began = time.process_time()
        found = select_rank(S, random_state=0, n_jobs=1, progress=False, **settings)
        print(json.dumps([time.process_time() - began, len(found.scores)]), flush=True)
        continue
    if "init" in data:
        S, settings["init"] = as_similarity(S), data["init"]
    SRF(**{**settings, "max_iter": 3}).fit(S)
    while not times or sum(times) < 0.05:
        model, began = SRF(**settings), time.process_time()
        model.fit(S)
        times.append(time.process_time() - began)
    print(json.dumps([min(times), model.n_iter_]), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", default=HERE, help="the src folder of the other version")
    parser.add_argument("--quick", action="store_true", help="one round of one small size, to see that it runs")
    parser.add_argument("--only", choices=["small", "rivals", "select"], help="default: small and rivals")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of items; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    problems = {"small": small_problems, "rivals": rival_problems, "select": selections}
    names = ["small"] if options.quick else [options.only] if options.only else ["small", "rivals"]
    sizes, n_rounds = ([40], 1) if options.quick else (options.sizes, options.rounds)
    pair = [start(options.other.resolve()), start(HERE)]
    rows: dict[tuple[str, int, str], list[list[list[list[float]]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        for name in names:
            for labels, arrays, settings in problems[name](sizes):
                np.savez(path, **arrays)
                found = []
                for turn in range(n_rounds):
                    first = turn % 2
                    answers = {which: ask(pair[which], path, settings) for which in (first, 1 - first)}
                    found.append([answers[0], answers[1]])
                for place, label in enumerate(labels):
                    rows.setdefault((name, place, label), []).append(found)
    print("| row | problems | time, ms | ratio | range | sd between rounds | ratio per iteration |")
    print("|---|---|---|---|---|---|---|")
    for name, place, label in sorted(rows, key=lambda row: (names.index(row[0]), row[1])):
        print(summary(f"{name}: {label}", np.array(rows[name, place, label])))


def start(src: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(src)}
    command = [sys.executable, "-c", WORKER]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def ask(process: subprocess.Popen[str], path: Path, settings: dict[str, Any]) -> list[float]:
    """The shortest time and the number of iterations of a fit."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([str(path), settings]) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def small_problems(sizes: list[int] | None) -> Iterator[tuple[list[str], dict[str, np.ndarray], dict[str, Any]]]:
    """The problems of bench_small.py: the rows that they belong to, their arrays and settings."""
    for n in sizes or bench_small.SIZES:
        for kind, S in bench_small.similarities(n, bench_small.SIZES[n], 0):
            for mask in bench_small.MASKS:
                arrays = {"S": bench_small.with_gaps(S, mask, 0)}
                rows = [f"{n} items", mask, kind]
                yield rows, arrays, {"n_components": bench_small.SIZES[n], "random_state": 0}


def rival_problems(sizes: list[int] | None) -> Iterator[tuple[list[str], dict[str, np.ndarray], dict[str, Any]]]:
    """The problems of bench_rivals.py, fitted by both solvers until they converge."""
    for n in sizes or [n for n in bench_rivals.SIZES if n < 5000]:
        r = bench_rivals.SIZES[n]
        for observed in bench_rivals.OBSERVED:
            S = bench_fit.noisy_dirichlet(n, r, observed, 0)
            arrays = {"S": np.array(S.values), "init": bench_fit.random_start(S, r, 0)}
            for name, settings in (("bcd", {}), ("ADMM", ADMM)):
                yield [f"{n} items, {observed:.0%}, {name}"], arrays, {"n_components": r, **settings}


def selections(sizes: list[int] | None) -> Iterator[tuple[list[str], dict[str, np.ndarray], dict[str, Any]]]:
    """Problems of select_rank: the row that each belongs to, its similarities and its ranks."""
    for n, r, snr, ranks in ((120, 8, 0.3, "auto"), (120, 8, 0.7, "auto"), (1854, 20, 0.7, list(range(10, 61, 10)))):
        for seed in range(5 if n == 120 else 1):
            if sizes is None or n in sizes:
                W = simulate.dirichlet(n, r, alpha=0.3, random_state=seed)
                S = np.asarray(simulate.add_noise(W @ W.T, snr, random_state=seed))
                yield [f"{n} items, SNR {snr}"], {"S": S}, {"ranks": ranks}


def summary(name: str, runs: np.ndarray) -> str:
    """A line of the table; `runs` has axes problem, round, version, and time or iterations."""
    shortest = runs[..., 0].min(axis=1)
    ratios = shortest[:, 1] / shortest[:, 0]
    iterations = runs[:, 0, 1, 1] / runs[:, 0, 0, 1]
    rounds = np.exp(np.log(runs[:, :, 1, 0] / runs[:, :, 0, 0]).mean(axis=0))
    mean, per_iteration = np.exp(np.log(ratios).mean()), np.exp(np.log(ratios / iterations).mean())
    old, new = 1e3 * np.exp(np.log(shortest).mean(axis=0))
    return (
        f"| {name} | {len(runs)} | {old:.3g} -> {new:.3g} | {mean:.2f} | {ratios.min():.2f} to {ratios.max():.2f} | "
        f"{rounds.std(ddof=1) if len(rounds) > 1 else np.nan:.2f} | {per_iteration:.2f} |"
    )


if __name__ == "__main__":
    main()
