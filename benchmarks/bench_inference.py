"""Speed of the hypothesis tests, and their power against RSA where the noise is in the features or in the similarities.

    python benchmarks/bench_inference.py [--quick] [--only speed|power] [--out benchmarks/results/inference.json]

Speed: one process, one BLAS thread (set OMP_NUM_THREADS=1), whole calls. The naive way recomputes the correlations and
solves an assignment for every item of every permutation; it is timed on a few permutations and scaled up.

Power: shares of true properties found after Benjamini-Hochberg adjustment, in the paper's two designs: factorial
(3 x 3 x 3 x 3), and 50 items and 5 dimensions sampled from SPoSE (in SIMDIMS_DATA or ../shared/data) or from a sparse,
correlated stand-in. At SNR 0 nothing is true, and the share at or below 0.05 before adjustment is the level.

Prints Markdown tables and writes every number to a JSON file, and the curves to a PNG file beside it where matplotlib
is there. A power study that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from simdims import simulate
from simdims.inference import combined_test, dimension_test, matching, rsa_test

SNRS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
SPOSE = "things/spose_embedding_66d_sorted.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small problems, to see that it runs")
    parser.add_argument("--only", choices=["speed", "power"])
    parser.add_argument("--repeats", type=int, default=60, help="data sets for each point of a power curve")
    parser.add_argument("--jobs", type=int, default=1, help="processes of the power studies")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "inference.json")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    results["machine"] = describe_machine()
    if options.only != "power":
        results["speed"] = measure_speed(options.quick)
        print_speed(results["speed"])
    if options.only != "speed":
        results["power"] = measure_power(options)
        print_power(results["power"]["rows"])
        draw_power(results["power"]["rows"], options.out.with_name("power.png"))
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
            "dimension_test": partial(dimension_test, W, X, **options),
            "dimension_test, separate": partial(dimension_test, W, X, matching="separate", **options),
            "dimension_test, two-sided": partial(dimension_test, W, X, alternative="two-sided", **options),
            "rsa_test": partial(rsa_test, S, X, **options),
            "rsa_test, 30% observed": partial(rsa_test, simulate.mask_pairs(S, 0.3, random_state=0), X, **options),
            "combined_test": partial(combined_test, S, W, X, **options),
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


def measure_power(options: argparse.Namespace) -> dict:
    n_repeats, n_permutations, snrs = (2, 99, (0.0, 0.1, 0.5)) if options.quick else (options.repeats, 500, SNRS)
    embedding, source = spose_or_stand_in()
    designs = {
        "factorial": simulate.factorial([3, 3, 3, 3]),
        "spose": partial(simulate.from_embedding, embedding, 50, 5),
    }
    rows = []
    for design, features in designs.items():
        for weighting in ("fit", "equal"):
            checkpoint = options.out.with_name(f"power-{design}-{weighting}{'-quick' if options.quick else ''}")
            study = simulate.power_study(
                features,
                snrs,
                n_repeats,
                n_permutations,
                weighting=weighting,
                checkpoint=checkpoint,
                random_state=0,
                n_jobs=options.jobs,
            )
            groups = study.groupby(["noise", "snr", "test"])[["power", "power_unadjusted"]]
            summary = groups.mean().join(groups.sem().add_suffix("_error")).reset_index()
            if weighting == "equal":
                summary = summary[summary["test"] == "combined"].assign(test="combined, equal weights")
            rows += [{"design": design, **entry} for entry in summary.to_dict("records")]
    return {"n_repeats": n_repeats, "n_permutations": n_permutations, "spose": source, "rows": rows}


def spose_or_stand_in() -> tuple[np.ndarray, str]:
    folder = Path(os.environ.get("SIMDIMS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if (folder / SPOSE).exists():
        return np.maximum(np.loadtxt(folder / SPOSE), 0), "SPoSE, 66 dimensions"
    return simulate.sparse_correlated(1854, 49, random_state=0), "sparse, correlated stand-in"


def seconds_of(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def describe_machine() -> dict:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}


def print_speed(rows: list[dict]) -> None:
    print("\n| test | n | k | B | seconds |\n|---|---|---|---|---|")
    for entry in rows:
        print(f"| {entry['test']} | {entry['n']} | {entry['k']} | {entry['B']} | {entry['seconds']:.2f} |")


def print_power(rows: list[dict]) -> None:
    tests = ("dimension", "rsa", "combined", "combined, equal weights")
    print("\nPower (at SNR 0: level, the share at or below 0.05 before adjustment)\n")
    print(f"| design | noise on | SNR | {' | '.join(tests)} |\n|---|---|---|{'---|' * len(tests)}")
    for design, noise, snr in sorted({(entry["design"], entry["noise"], entry["snr"]) for entry in rows}):
        value = "power_unadjusted" if snr == 0 else "power"
        here = {
            entry["test"]: entry[value]
            for entry in rows
            if (entry["design"], entry["noise"], entry["snr"]) == (design, noise, snr)
        }
        print(f"| {design} | {noise} | {snr:g} | {' | '.join(f'{here[test]:.2f}' for test in tests)} |")


def draw_power(rows: list[dict], path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(8, 6), sharex=True, sharey=True)
    for axis_row, design in zip(axes, ("factorial", "spose"), strict=True):
        for ax, noise in zip(axis_row, ("features", "similarities"), strict=True):
            for test, style in (("dimension", "C0-o"), ("rsa", "C1-s"), ("combined", "k--")):
                curve = sorted(
                    (entry["snr"], entry["power"], entry["power_error"])
                    for entry in rows
                    if (entry["design"], entry["noise"], entry["test"]) == (design, noise, test)
                )
                snr, power, error = map(np.array, zip(*curve, strict=True))
                ax.plot(snr, power, style, label=test, markersize=4)
                ax.fill_between(snr, power - error, power + error, color=style[:2].rstrip("-"), alpha=0.2, lw=0)
            ax.set_title(f"{design}, noise on {noise}", fontsize=10)
            ax.axhline(0.05, color="0.7", lw=0.8, ls=":")
    for ax in axes[1]:
        ax.set_xlabel("signal-to-noise ratio")
    for ax in axes[:, 0]:
        ax.set_ylabel("power")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
