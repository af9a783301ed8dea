"""Time to the same objective: block coordinate descent against the paper's ADMM, and the cost of small and sparse fits.

    python benchmarks/bench_fit.py [--quick] [--out benchmarks/results/fit.json]

Both solvers start from the same W and are called through SRF. ADMM runs as in bench_rivals.py (100 outer x 10 inner
iterations, tol 1e-3); its time is that of the whole fit. The time of bcd is that of a whole fit with the number of
sweeps that it needs to reach ADMM's final objective. Ratios are computed within a repeat and are more reliable than the
seconds, which vary between machines. Prints Markdown tables and writes every number to a JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from simdims import SRF, Similarity, as_similarity, simulate

warnings.simplefilter("ignore", ConvergenceWarning)  # fits are stopped early on purpose

OBSERVED = (1.0, 0.7, 0.3, 0.1, 0.03)
GOALS = {1.0: 3, 0.7: 4, 0.3: 8, 0.1: 60, 0.03: 60}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small problem, to see that it runs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "fit.json")
    parser.add_argument("--sparse-memory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sparse_memory:
        print(json.dumps(measure_sparse(options.sparse_memory)))
        return
    n_items, n_components = (300, 8) if options.quick else (1854, 40)
    results = {
        "machine": describe_machine(),
        "race": [race(n_items, n_components, observed, options.repeats) for observed in OBSERVED],
        "small": measure_small(),
        "sparse": in_subprocess(*((2000, 10) if options.quick else (8647, 50))),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2))
    print_tables(results, n_items, n_components)
    print(f"\nWritten to {options.out}")


def race(n_items: int, n_components: int, observed: float, repeats: int) -> dict:
    """Fit the same data from the same start with both solvers, several times."""
    runs = []
    for seed in range(repeats):
        S = noisy_dirichlet(n_items, n_components, observed, seed)
        start = random_start(S, n_components, seed)
        SRF(n_components, init=start, max_iter=2).fit(S)  # compile
        SRF(n_components, init=start, solver="admm", max_iter=1).fit(S)
        admm = SRF(n_components, init=start, solver="admm", max_iter=100, inner_iter=10, tol=1e-3)
        admm_seconds = timed_fit(admm, S)
        bcd = SRF(n_components, init=start)
        full_seconds = timed_fit(bcd, S)
        reached = np.flatnonzero(bcd.history_ <= admm.objective_)
        sweeps = int(reached[0]) if reached.size else None
        seconds = None
        if sweeps is not None:
            seconds = timed_fit(SRF(n_components, init=start, max_iter=max(sweeps, 1), tol=0.0), S)
        runs.append(
            {
                "seed": seed,
                "admm_seconds": admm_seconds,
                "admm_iterations": admm.n_iter_,
                "admm_converged": admm.converged_,
                "admm_objective": admm.objective_,
                "bcd_seconds_to_admm_objective": seconds,
                "bcd_sweeps_to_admm_objective": sweeps,
                "bcd_seconds": full_seconds,
                "bcd_sweeps": bcd.n_iter_,
                "bcd_converged": bcd.converged_,
                "bcd_objective": bcd.objective_,
                "bcd_kkt_residual": bcd.kkt_residual_,
                "speedup": admm_seconds / seconds if seconds else None,
                "objective_ratio": bcd.objective_ / admm.objective_,
            }
        )
        print(f"  {observed:.0%} observed, seed {seed}: {runs[-1]['speedup']}x", file=sys.stderr, flush=True)
    return {"observed": observed, "runs": runs}


def measure_small() -> dict:
    """Milliseconds of one fit of 120 items, 10 dimensions, 70% observed, one core."""
    milliseconds = []
    for seed in range(30):
        S = noisy_dirichlet(120, 10, 0.7, seed)
        SRF(10, random_state=seed).fit(S)
        milliseconds.append(1e3 * timed_fit(SRF(10, random_state=seed), S))
    return {"median_ms": statistics.median(milliseconds), "largest_ms": max(milliseconds)}


def in_subprocess(n_items: int, n_components: int) -> dict:
    """Measure the memory of a sparse fit in a separate process, because a process's peak never decreases."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{n_components}.npz"
        sparse.save_npz(path, random_pairs(n_items, 0.0127))
        command = [sys.executable, __file__, "--sparse-memory", str(path)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_sparse(path: Path) -> dict:
    """Peak memory of loading and fitting a sparse matrix, beyond an interpreter with loaded kernels."""
    tiny = sparse.random_array((50, 50), density=0.2, rng=np.random.default_rng(0))
    SRF(2, max_iter=2).fit(as_similarity(tiny, absent="missing", symmetrize="max"))
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here
    before = memory_kilobytes("VmRSS")
    S = Similarity(sparse.load_npz(path), absent="missing")
    estimator = SRF(int(path.stem), random_state=0, max_iter=20, tol=0.0)
    seconds = timed_fit(estimator, S)
    return {
        "n_items": S.n_items,
        "n_components": estimator.n_components,
        "stored_pairs": int(S.values.nnz),
        "megabytes_above": (memory_kilobytes("VmHWM") - before) / 1e3,
        "dense_matrix_megabytes": 8 * S.n_items**2 / 1e6,
        "seconds_per_sweep": seconds / estimator.n_iter_,
    }


def noisy_dirichlet(n_items: int, n_components: int, observed: float, seed: int) -> Similarity:
    """Dirichlet(0.3) ground truth, noise at SNR 0.9, pairs missing at random."""
    W = simulate.dirichlet(n_items, n_components, alpha=0.3, random_state=seed)
    S = simulate.add_noise(W @ W.T, 0.9, random_state=seed)
    return as_similarity(simulate.mask_pairs(S, observed, random_state=seed))


def random_start(S: Similarity, n_components: int, seed: int) -> np.ndarray:
    """Uniform numbers whose reconstruction has the mean of the data."""
    W = np.random.default_rng(seed).uniform(size=(S.n_items, n_components))
    return W * np.sqrt(np.nanmean(S.values) / np.mean(W @ W.T))


def random_pairs(n_items: int, share: float) -> sparse.csr_array:
    """Random pairs of a Dirichlet similarity matrix, computed without the full matrix."""
    rng = np.random.default_rng(0)
    count = int(share * n_items * (n_items - 1) / 2)
    drawn = rng.integers(n_items, size=(2, count))
    W = simulate.dirichlet(n_items, 50, alpha=0.3, random_state=0)
    i, j = np.unique(np.sort(drawn, axis=0)[:, drawn[0] != drawn[1]], axis=1)
    values = np.einsum("ek,ek->e", W[i], W[j])
    upper = sparse.coo_array((values, (i, j)), shape=(n_items, n_items))
    return sparse.csr_array(upper + upper.T + sparse.diags_array(np.einsum("ik,ik->i", W, W)))


def timed_fit(estimator: SRF, S: Similarity) -> float:
    start = time.perf_counter()
    estimator.fit(S)
    return time.perf_counter() - start


def memory_kilobytes(field: str) -> int:
    """VmRSS (now) or VmHWM (the peak since the last reset) of this process, on Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def describe_machine() -> dict:
    return {
        "cores": os.cpu_count(),
        "processor": processor_name(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def processor_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def print_tables(results: dict, n_items: int, n_components: int) -> None:
    machine = results["machine"]
    print(f"\n{machine['cores']} cores, {machine['processor']}; n = {n_items}, r = {n_components}; medians (range)\n")
    print("| observed | admm, s | bcd to admm's objective, s | speed-up | goal | final objective, bcd / admm |")
    print("|---|---|---|---|---|---|")
    for row in results["race"]:
        goal = f"{GOALS[row['observed']]}x"
        print(
            f"| {row['observed']:.0%} | {spread(row, 'admm_seconds')} | "
            f"{spread(row, 'bcd_seconds_to_admm_objective')} | {spread(row, 'speedup')}x | {goal} | "
            f"{spread(row, 'objective_ratio', '.3f')} |"
        )
    small, large = results["small"], results["sparse"]
    print(
        f"\nOne fit of 120 items, 10 dimensions, 70% observed: {small['median_ms']:.1f} ms "
        f"(longest {small['largest_ms']:.1f})."
    )
    print(
        f"Sparse, {large['n_items']} items, {large['stored_pairs']:,} stored pairs, r = {large['n_components']}: "
        f"{large['megabytes_above']:.0f} MB above the interpreter (a dense matrix alone would be "
        f"{large['dense_matrix_megabytes']:.0f} MB), {large['seconds_per_sweep']:.2f} s a sweep."
    )


def spread(row: dict, name: str, form: str = ".2f") -> str:
    values = sorted(run[name] for run in row["runs"] if run[name] is not None)
    if not values:
        return "not reached"
    return f"{statistics.median(values):{form}} ({values[0]:{form}}-{values[-1]:{form}})"


if __name__ == "__main__":
    main()
