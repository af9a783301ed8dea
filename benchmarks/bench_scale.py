"""Large problems: time and peak memory of fits whose n x n matrix would not fit, each in a separate process.

    python benchmarks/bench_scale.py [--quick] [--workers N] [--out benchmarks/results/scale.json]

Cases: similarities X X^T of 100,000 items that are never built; 100,000 items with one, three and ten million observed
pairs, the others missing or zero; an RBF kernel of 50,000 items through landmarks. A case generates its data, builds
the Similarity and fits it. The peak is that of the whole process (interpreter, libraries and data included), and the
seconds per sweep are the difference between fits of many and of few sweeps. Whole default fits are timed only for
implicit similarities, because the number of sweeps for pairs depends on how well they determine the fit. With
--workers, only select_rank is timed: in one process, in N of joblib, on a dask cluster of N, and on one that loses a
worker; it reports seconds per fit and the overhead. Prints Markdown tables, writes every number to a JSON file and, if
matplotlib is installed, a figure of the seconds per sweep against the number of pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from bench_fit import describe_machine
from scipy import sparse

from simdims import SRF, Similarity, from_features, select_rank, simulate

warnings.simplefilter("ignore")  # fits are stopped early on purpose

RANK = 30
LIMITS_GB = {"linear": 8.0, "missing": 4.0, "zero": 4.0, "rbf": 8.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the size, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "scale.json")
    parser.add_argument("--workers", type=int, help="compare one process with this many, and with a dask cluster")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(**json.loads(options.case))))
        return
    if options.workers:
        results = {"machine": describe_machine(), "spread": spread(options.workers, options.quick)}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2))
        print(f"\nWritten to {options.out}")
        return
    results = {"machine": describe_machine(), "cases": [in_subprocess(case) for case in cases(options.quick)]}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2))
    print_tables(results)
    draw(results["cases"], options.out.with_suffix(".png"))
    print(f"\nWritten to {options.out}")


def spread(n_workers: int, quick: bool) -> list[dict[str, Any]]:
    """select_rank in one process, in several, on a cluster, and on one that loses a worker; results must agree."""
    from distributed import Client, LocalCluster

    n, ranks = (60, [3]) if quick else (1000, [5, 10, 15, 20])
    W = simulate.dirichlet(n, ranks[-1], alpha=0.3, random_state=0)
    S = Similarity(simulate.add_noise(W @ W.T, 0.7, random_state=0))
    rows, errors = [], []

    def measured(name: str, workers: int, progress: Any = False, n_jobs: int | None = None) -> None:
        start = time.perf_counter()
        found = select_rank(S, ranks, sampling=0.7, alpha=0.05, random_state=0, n_jobs=n_jobs, progress=progress)
        wall, in_fits, n_fits = time.perf_counter() - start, found.scores["seconds"].sum(), len(found.scores)
        at_once = min(workers, os.cpu_count() or 1)
        overhead = (wall * at_once - in_fits) / n_fits
        rows.append({"where": name, "workers": workers, "fits": n_fits, "wall": wall, "fit": in_fits / n_fits})
        rows[-1]["overhead"] = overhead
        errors.append(found.curve["error"].tolist())
        print(f"| {name} | {workers} | {n_fits} | {wall:.2f} | {in_fits / n_fits:.3f} | {overhead:.3f} |", flush=True)

    print(
        "| where | workers | fits | s in all | s per fit | overhead per fit (s of a core) |\n|---|---|---|---|---|---|"
    )
    select_rank(S, ranks[:1], sampling=0.7, alpha=0.05, n_repeats=1, random_state=0, progress=False)  # compile
    measured("one process", 1)
    measured("joblib's processes", n_workers, n_jobs=n_workers)
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        measured("dask, first use", n_workers)
        measured("dask", n_workers)

        victim = max(client.run(os.getpid).values())

        def kill_one(progress: Any) -> None:
            if progress.done == 3:
                os.kill(victim, signal.SIGKILL)

        measured("dask, a worker is killed", n_workers, kill_one)
    assert all(one == errors[0] for one in errors), "results depend on where fits run"
    return rows


def cases(quick: bool) -> list[dict[str, Any]]:
    part = 100 if quick else 1
    n = 100_000 // part
    listed = [
        {"kind": kind, "n_items": n, "n_pairs": n_pairs // part}
        for kind in ("missing", "zero")
        for n_pairs in (1_000_000, 3_000_000, 10_000_000)
    ]
    return [
        {"kind": "linear", "n_items": n, "n_features": 256},
        *listed,
        {"kind": "rbf", "n_items": n // 2, "n_features": 64},
    ]


def in_subprocess(case: dict[str, Any]) -> dict[str, Any]:
    """Measure a case in a separate process, because a process's peak never decreases."""
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"  {found}", file=sys.stderr, flush=True)
    return found


def measure(kind: str, n_items: int, n_pairs: int = 0, n_features: int = 0) -> dict[str, Any]:
    """Generate data, build a Similarity and fit it; return seconds and megabytes."""
    make = {"linear": linear_data, "rbf": rbf_data}.get(kind, lambda n, _: random_pairs(n, n_pairs))
    data = make(n_items, n_features)
    start = time.perf_counter()
    S = build(kind, data)
    building = time.perf_counter() - start
    del data
    sweep = seconds_per_sweep(S)
    whole = S.factors is not None
    estimator = SRF(RANK, random_state=0) if whole else SRF(RANK, random_state=0, max_iter=2)
    fitting = timed_fit(estimator, S)
    return {
        "kind": kind,
        "n_items": n_items,
        "n_pairs": n_pairs,
        "n_features": S.factors.shape[1] if S.factors is not None else 0,
        "n_components": RANK,
        "dtype": str(estimator.embedding_.dtype),
        "seconds_to_build": building,
        "seconds_per_sweep": sweep,
        "seconds_of_fit": fitting if whole else None,
        "sweeps": estimator.n_iter_ if whole else None,
        "converged": estimator.converged_ if whole else None,
        "explained_variance": estimator.score(S),
        "peak_gigabytes": peak_kilobytes() / 1e6,
        "limit_gigabytes": LIMITS_GB[kind],
        "matrix_gigabytes": n_items**2 * estimator.embedding_.itemsize / 1e9,
        "approximation_error": dict(S.info).get("approximation_error"),
    }


def build(kind: str, data: Any) -> Similarity:
    if kind == "linear":
        return from_features(data, kernel="linear", implicit=True)
    if kind == "rbf":
        return from_features(data, kernel="rbf", implicit=True)
    return Similarity(data, absent=kind)


def seconds_per_sweep(S: Similarity) -> float:
    """The difference between two fits that differ only in their number of sweeps, which excludes other costs."""
    few, many = 2, 8
    SRF(RANK, random_state=0, max_iter=1, tol=0.0).fit(S)  # compile
    seconds = [timed_fit(SRF(RANK, random_state=0, max_iter=count, tol=0.0), S) for count in (few, many)]
    return (seconds[1] - seconds[0]) / (many - few)


def timed_fit(estimator: SRF, S: Similarity) -> float:
    start = time.perf_counter()
    estimator.fit(S)
    return time.perf_counter() - start


def linear_data(n_items: int, n_features: int) -> np.ndarray:
    """Non-negative features of items that share 30 dimensions, with multiplicative noise."""
    rng = np.random.default_rng(0)
    W = simulate.dirichlet(n_items, RANK, alpha=0.3, random_state=0).astype(np.float32)
    X = W @ rng.gamma(0.1, size=(RANK, n_features)).astype(np.float32)
    for rows in np.array_split(X, max(n_items // 1000, 1)):
        rows *= np.exp(rng.standard_normal(size=rows.shape, dtype=np.float32))
    return X


def rbf_data(n_items: int, n_features: int) -> np.ndarray:
    """Signed features of items in 30 clusters."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(RANK, n_features))
    X = rng.standard_normal(size=(n_items, n_features), dtype=np.float32)
    X += centres[rng.integers(RANK, size=n_items)].astype(np.float32)
    return X


def random_pairs(n_items: int, n_pairs: int) -> sparse.csr_array:
    """Noisy random pairs of a Dirichlet similarity matrix and its diagonal, without the full matrix; float32."""
    rng = np.random.default_rng(0)
    W = simulate.dirichlet(n_items, RANK, alpha=0.3, random_state=0).astype(np.float32)
    i = rng.integers(n_items, size=n_pairs, dtype=np.int32)
    j = ((i + rng.integers(1, n_items, size=n_pairs, dtype=np.int64)) % n_items).astype(np.int32)
    pairs = (np.minimum(i, j), np.maximum(i, j))
    upper = sparse.coo_array((np.ones(n_pairs, np.float32), pairs), shape=(n_items, n_items)).tocsr()
    del i, j, pairs
    rows = np.repeat(np.arange(n_items, dtype=np.int32), np.diff(upper.indptr))
    for start in range(0, upper.nnz, 2**18):
        e = slice(start, start + 2**18)
        noise = 1 + 0.3 * rng.standard_normal(len(rows[e]), dtype=np.float32)
        upper.data[e] = np.einsum("ek,ek->e", W[rows[e]], W[upper.indices[e]]) * np.maximum(noise, 0)
    return sparse.csr_array(upper + upper.T + sparse.diags_array(np.einsum("ik,ik->i", W, W)).tocsr())


def peak_kilobytes() -> int:
    """Peak memory of this process; VmHWM on Linux."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)


def print_tables(results: dict[str, Any]) -> None:
    machine = results["machine"]
    print(f"\n{machine['cores']} cores, Python {machine['python']}, NumPy {machine['numpy']}; r = {RANK}, float32\n")
    print("| data | n | build, s | a sweep, s | whole fit, s (sweeps) | peak, GB (limit) | the matrix alone, GB |")
    print("|---|---|---|---|---|---|---|")
    for case in results["cases"]:
        fit = f"{case['seconds_of_fit']:.1f} ({case['sweeps']})" if case["sweeps"] else "-"
        print(
            f"| {describe(case)} | {case['n_items']:,} | {case['seconds_to_build']:.1f} | "
            f"{case['seconds_per_sweep']:.3g} | {fit} | {case['peak_gigabytes']:.2f} ({case['limit_gigabytes']:g}) | "
            f"{case['matrix_gigabytes']:.1f} |"
        )
    print("\n| pairs | a sweep, others missing, s | a million pairs, s | others zero, s | a million pairs, s |")
    print("|---|---|---|---|---|")
    by_kind = {(case["kind"], case["n_pairs"]): case["seconds_per_sweep"] for case in results["cases"]}
    for n_pairs in sorted({pairs for _, pairs in by_kind if pairs}):
        missing, zero = by_kind["missing", n_pairs], by_kind["zero", n_pairs]
        print(
            f"| {n_pairs:,} | {missing:.3g} | {1e6 * missing / n_pairs:.3g} | {zero:.3g} | {1e6 * zero / n_pairs:.3g} |"
        )


def describe(case: dict[str, Any]) -> str:
    if case["kind"] == "linear":
        return f"implicit, {case['n_features']} features"
    if case["kind"] == "rbf":
        error = case["approximation_error"]
        accuracy = f"error {error['rms']:.2g} of sd {error['similarity_sd']:.2g}"
        return f"implicit RBF, {case['n_features']} landmarks ({accuracy})"
    return f"{case['n_pairs']:,} pairs, others {case['kind']}"


def draw(cases: list[dict[str, Any]], path: Path) -> None:
    """Seconds per sweep against the number of pairs, with the line through the origin and the largest case."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for kind, color in (("missing", "tab:blue"), ("zero", "tab:orange")):
        points = [(case["n_pairs"] / 1e6, case["seconds_per_sweep"]) for case in cases if case["kind"] == kind]
        pairs, seconds = map(np.array, zip(*points, strict=True))
        axes.plot(pairs, seconds, "o", color=color, label=f"others {kind}")
        axes.plot([0, pairs[-1]], [0, seconds[-1]], "--", color=color, linewidth=1)
    axes.set(xlabel="observed pairs, millions", ylabel="seconds a sweep", xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
