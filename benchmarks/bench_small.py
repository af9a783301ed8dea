"""Benefit of updating all rows at once: whole fits of small problems, compared with only sequential row updates.

    python benchmarks/bench_small.py [--quick] [--sizes 40 120] [--out benchmarks/results/small.json]

Seven kinds of data, complete or with pairs missing at random, in a block or far from the diagonal, from random starts
with default settings. For each size, mask and kind: the ratios of time (rows in turn over all rows at once) and of the
final objectives (geometric means; values below a millionth of sum S^2 count as exact), the number of remaining
dimensions, and the share of converged fits. With missing pairs, sequential updates use a filled matrix, or lists if
those are faster.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bench_fit import describe_machine

from simdims import SRF
from simdims.solvers import plan

warnings.simplefilter("ignore")  # some fits do not converge

SIZES = {40: 5, 120: 10, 300: 15, 500: 20}
MASKS = ("complete", "70%", "35%", "block", "band")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small size, to see that it runs")
    parser.add_argument("--sizes", type=int, nargs="+", choices=list(SIZES), help="numbers of items; all by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "small.json")
    options = parser.parse_args()
    runs = []
    for n_items in options.sizes or ([40] if options.quick else SIZES):
        n_components = SIZES[n_items]
        for seed in range(1 if options.quick else 3):
            for kind, S in similarities(n_items, n_components, seed):
                for mask in MASKS:
                    found = compare(with_gaps(S, mask, seed), n_components, seed)
                    runs.append({"n_items": n_items, "kind": kind, "mask": mask, **found})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"machine": describe_machine(), "runs": runs}, indent=2))
    for by in ("n_items", "mask", "kind"):
        print_table(runs, by)
    print(f"\nWritten to {options.out}")


def similarities(n: int, r: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Data of different kinds: with and without noise, easy and slow, of few and of many dimensions."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(r, 0.3), n)
    yield "Dirichlet, exact", W @ W.T
    noise = rng.standard_normal((n, n)) / n
    yield "Dirichlet, noisy", np.maximum(W @ W.T + noise + noise.T, 0)
    groups = rng.integers(0, r, n)
    yield "groups", (groups[:, None] == groups).astype(float)
    X = rng.standard_normal((n, 5))
    yield "RBF kernel", np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 10)
    yield "correlations", np.maximum(np.corrcoef(rng.standard_normal((n, 50))), 0)
    U = rng.uniform(size=(n, n))
    yield "noise", (U + U.T) / 2
    W = np.exp(1.5 * rng.standard_normal((n, r)))
    yield "heavy tails", W @ W.T


def with_gaps(S: np.ndarray, mask: str, seed: int) -> np.ndarray:
    """S with NaN where pairs are missing."""
    n, rng = len(S), np.random.default_rng(seed)
    missing = np.zeros((n, n), bool)
    if mask.endswith("%"):
        missing = rng.random((n, n)) > float(mask[:-1]) / 100
    elif mask == "block":
        missing[: n // 2, : n // 2] = rng.random((n // 2, n // 2)) > 0.2
    elif mask == "band":
        missing = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > 0.3 * n
    missing = np.triu(missing, 1)
    return np.where(missing | missing.T, np.nan, S)


def compare(S: np.ndarray, n_components: int, seed: int) -> dict[str, Any]:
    """The same fit both ways, three times each in turn; the shortest time counts."""
    ways = {"at_once": (plan._COMPLETE, plan._MISSING)}
    ways["in_turn"] = tuple(how._replace(largest=0) for how in ways["at_once"])
    found: dict[str, Any] = {name: {"seconds": np.inf} for name in ways}
    for _ in range(3):
        for name, hows in ways.items():
            plan._COMPLETE, plan._MISSING = hows
            model = SRF(n_components, random_state=seed)
            began = time.perf_counter()
            model.fit(S)
            found[name] = {
                "seconds": min(found[name]["seconds"], time.perf_counter() - began),
                "objective": model.objective_,
                "dimensions": int(np.count_nonzero(model.embedding_.max(axis=0))),
                "iterations": model.n_iter_,
                "converged": model.converged_,
            }
    plan._COMPLETE, plan._MISSING = ways["at_once"]
    found["rounding"] = 1e-6 * float(np.nansum(S**2))
    return found


def print_table(runs: list[dict[str, Any]], by: str) -> None:
    print(f"\n| {by} | times faster (range) | objective, at once / in turn | dimensions | converged |")
    print("|---|---|---|---|---|")
    for value in dict.fromkeys(run[by] for run in runs):
        some = [run for run in runs if run[by] == value]
        speed = [run["in_turn"]["seconds"] / run["at_once"]["seconds"] for run in some]
        left, right = (
            np.log([run[way]["objective"] + run["rounding"] for run in some]) for way in ("at_once", "in_turn")
        )
        both = {
            what: " / ".join(f"{np.mean([run[way][what] for run in some]):.3g}" for way in ("at_once", "in_turn"))
            for what in ("dimensions", "converged")
        }
        print(
            f"| {value} | {np.exp(np.mean(np.log(speed))):.2f} ({min(speed):.2f} to {max(speed):.1f}) | "
            f"{np.exp(np.mean(left - right)):.3f} | {both['dimensions']} | {both['converged']} |"
        )


if __name__ == "__main__":
    main()
