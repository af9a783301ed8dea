"""Fits on a GPU: time to 0.1% of the best objective, many fits at once, and the largest problems.

    python benchmarks/bench_gpu.py [--quick] [--device cuda] [--only many joint] [--alone] [--out FILE]

One observed fit of 9,841 items, 62% of the pairs, 78 dimensions, and 25 of them; one complete fit of 30,000 items and
80 dimensions; one of a million items given by 512 features and 50 dimensions; one of 100,000 items and ten million
listed pairs, the others missing or zeros of a weight, and 30 dimensions; select_rank and fit_consensus with 1,854
items, on one GPU and on all; what select_rank does around its fits; and joint fits of several complete systems. Data
are Dirichlet(0.3) loadings with noise at SNR 0.7. The best objective is that of three long fits (tol 1e-7), the first
from the timed start. Times are those of whole calls of SRF.fit on a Similarity, including the transfer to the device
and the final metrics in float64, but not the first use of the device. Prints every number and writes it to a JSON file.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from simdims import SRF, JointSRF, Similarity, SimilaritySet, fit_consensus, select_rank, simulate, solvers
from simdims._threads import n_cores
from simdims.srf import solve_many

warnings.simplefilter("ignore", ConvergenceWarning)  # fits are stopped early on purpose


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small problems, to see that it runs")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="*", help="some of: observed complete implicit listed many around joint")
    parser.add_argument("--alone", action="store_true", help="leave out the processor, and long fits of lists")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "gpu.json")
    options = parser.parse_args()
    SRF(2, device=options.device, max_iter=3).fit(np.ones((8, 8)))  # initialise the device
    measures = {
        "observed": observed,
        "complete": complete,
        "implicit": implicit,
        "listed": listed,
        "many": many,
        "around": around,
        "joint": joint,
    }
    results: dict = {"device": describe(options.device)}
    for name, measure in measures.items():
        if options.only and name not in options.only:
            continue
        results[name] = measure(options.device, options.quick, options.alone)
        print(name, json.dumps(results[name]), flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1))
    print(f"\nWritten to {options.out}")


def observed(device: str, quick: bool, alone: bool) -> dict:
    n, rank = (300, 5) if quick else (9841, 78)
    S = Similarity(noisy(n, rank, 0.62, device))
    found = to_best(S, rank, device)
    problem = solvers.as_problem(S.values, S.weights)
    found["25 fits together, seconds"] = []
    for _ in range(2):
        start = time.perf_counter()
        fits = solve_many(SRF(device=device), [problem] * 25, rank, range(25))
        found["25 fits together, seconds"].append(time.perf_counter() - start)
    found["25 fits together, largest objective over best"] = (
        max(fit.objective for fit in fits) / found["best_objective"]
    )
    found["25 fits together, converged"] = all(fit.converged for fit in fits)
    start = time.perf_counter()
    fit_consensus(S, rank, n_runs=25, n_splits=2, estimator=SRF(device=device), random_state=0, progress=False)
    found["fit_consensus with 25 runs, seconds"] = time.perf_counter() - start
    return found


def complete(device: str, quick: bool, alone: bool) -> dict:
    n, rank = (300, 5) if quick else (30_000, 80)
    start = time.perf_counter()
    S = Similarity(noisy(n, rank, 1.0, device))
    made = time.perf_counter() - start
    return {"data_seconds": made, **to_best(S, rank, device)}


def implicit(device: str, quick: bool, alone: bool) -> dict:
    n, d, rank = (2000, 20, 5) if quick else (1_000_000, 512, 50)
    rng = np.random.default_rng(0)
    mixing = rng.gamma(0.3, size=(rank, d)).astype(np.float32)
    features = np.concatenate(
        [
            rng.dirichlet(np.full(rank, 0.3), size=min(100_000, n)).astype(np.float32) @ mixing
            for _ in range(0, n, 100_000)
        ]
    )
    features += 0.05 * rng.random(features.shape, dtype=np.float32)
    start = time.perf_counter()
    S = Similarity.from_factors(features)
    made = time.perf_counter() - start
    return {"from_factors_seconds": made, **to_best(S, rank, device, starts=1)}


def listed(device: str, quick: bool, alone: bool) -> dict:
    n, n_pairs, rank = (2000, 40_000, 5) if quick else (100_000, 10_000_000, 30)
    rng = np.random.default_rng(0)
    W = simulate.dirichlet(n, rank, alpha=0.3, random_state=0)
    keys = np.unique(np.sort(rng.integers(n, size=(n_pairs + n_pairs // 50, 2)), axis=1) @ [n, 1])
    i, j = np.divmod(rng.permutation(keys)[:n_pairs], n)
    blocks = [slice(first, first + 1_000_000) for first in range(0, len(i), 1_000_000)]
    values = np.concatenate([np.einsum("ek,ek->e", W[i[some]], W[j[some]]) for some in blocks])
    values += rng.normal(0, values.std() * np.sqrt(1 / 0.7 - 1), size=len(values))
    stored = sparse.coo_array((np.maximum(values, 0).astype(np.float32), (i, j)), shape=(n, n))
    found: dict = {}
    for name, absent in (("others missing", "missing"), ("others zeros of weight 0.01", 0.01)):
        S = Similarity(stored, absent=absent)
        found[name] = {} if alone else to_best(S, rank, device, starts=1)
        if device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats(device)
            fit = SRF(rank, device=device, random_state=0, max_iter=20, tol=0.0)
            found[name]["20 iterations, seconds"] = [timed(fit, S) for _ in range(2)]
            found[name]["peak GiB on the device"] = torch.cuda.max_memory_allocated(device) / 2**30
            default = SRF(rank, device=device, random_state=0)
            found[name]["default fit, seconds"] = timed(default, S)
            found[name]["default fit"] = [default.n_iter_, default.converged_, default.kkt_residual_]
        if not alone:
            cpu = SRF(rank, random_state=0, max_iter=5, tol=0.0)
            found[name]["5 sweeps on the processor, seconds"] = timed(cpu, S)
    return found


def many(device: str, quick: bool, alone: bool) -> dict:
    n, rank = (100, 4) if quick else (1854, 40)
    S = Similarity(noisy(n, rank, 1.0, device).astype(np.float64))
    found = {}
    for n_gpus in sorted({1, torch.cuda.device_count()} - {0}) if device == "cuda" else []:
        estimator = SRF(device=device, tol=1e-2, max_iter=300, alpha=0.05)
        ranks = [rank // 2, 3 * rank // 4, rank]
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            select_rank(S, ranks, sampling=0.7, estimator=estimator, random_state=0, n_jobs=n_gpus, progress=False)
            seconds.append(time.perf_counter() - start)
        found[f"select_rank, penalised, 48 fits, {n_gpus} GPUs, seconds"] = seconds
    places = {"device": device} if alone else {"device": device, "cpu": "cpu"}
    for name, place in places.items():
        estimator = None if name == "cpu" else SRF(device=place, tol=1e-2, max_iter=300)
        seconds = []
        for _ in range(3 if name == "device" else 1):
            start = time.perf_counter()
            settings = {"sampling": 0.7, "estimator": estimator, "random_state": 0, "n_jobs": 1, "progress": False}
            selection = select_rank(S, [rank // 2, rank], **settings)
            seconds.append(time.perf_counter() - start)
        found[f"select_rank, 50 fits, {name}, seconds"] = seconds
        found[f"select_rank, {name}, errors"] = selection.curve["error"].tolist()
    start = time.perf_counter()
    selection = select_rank(S, estimator=SRF(device=device, tol=1e-2, max_iter=300, alpha="auto"), random_state=0)
    found["select_rank, default search, seconds"] = time.perf_counter() - start
    found["select_rank, default search, fits"] = len(selection.scores)
    for name, place in places.items():
        estimator = SRF(device=place, max_iter=2000)
        runs = 30 if name == "device" else 4
        start = time.perf_counter()
        consensus = fit_consensus(
            S, rank, n_runs=runs, n_splits=2, estimator=estimator, random_state=0, n_jobs=1, progress=False
        )
        found[f"fit_consensus, {runs} runs, {name}, seconds"] = time.perf_counter() - start
        found[f"fit_consensus, {name}, objective"] = float(np.median(consensus.objectives))
    return found


def around(device: str, quick: bool, alone: bool) -> dict:
    """select_rank without its fits, which return their starts: splits and scores, on the processor."""
    from simdims.solvers import torch as on_device

    n, ranks = (100, [2, 3]) if quick else (1854, [20, 25, 30, 35, 40])
    S = Similarity(noisy(n, ranks[-1], 1.0, device).astype(np.float64))
    fit_together = on_device.fit_together
    on_device.fit_together = lambda problems, starts, **_: [
        solvers.Solution(W, 1.0, 1.0, np.ones(2), 1, True, 0.0) for W in starts
    ]
    found = {"cores": n_cores()}
    for name, alpha in (("penalised", 0.05), ("averaged", 0.0)):
        estimator = SRF(device=device, alpha=alpha)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            select_rank(S, ranks, sampling=0.7, estimator=estimator, random_state=0, progress=False)
            seconds.append(time.perf_counter() - start)
        found[f"{name}, seconds"] = seconds
    on_device.fit_together = fit_together
    return found


def joint(device: str, quick: bool, alone: bool) -> dict:
    """Seconds of joint fits of complete systems with penalties given: three calls each, on the device and without."""
    found = {}
    for n_systems, n, rank in [(4, 30, 3)] if quick else [(16, 92, 8), (50, 300, 10), (10, 1000, 20), (20, 1854, 40)]:
        rng = np.random.default_rng(0)
        W = simulate.dirichlet(n, rank, alpha=0.3, random_state=0)
        a = rng.gamma(2.0, 0.5, size=(n_systems, rank))
        noise = rng.normal(0, 0.05, size=(n_systems, n, n))
        systems = np.einsum("ik,mk,jk->mij", W, a / a.mean(axis=0), W, optimize=True)
        systems = SimilaritySet(np.maximum(systems + (noise + noise.transpose(0, 2, 1)) / np.sqrt(2), 0))
        for place in (device,) if alone else (device, "cpu"):
            fit = JointSRF(rank, alpha=0.05, shrinkage=0.01, random_state=0, device=place)
            seconds = [timed(fit, systems) for _ in range(3)]
            name = f"{n_systems} systems of {n} items, {rank} dimensions, {place}"
            found[name] = {"seconds": seconds, "iterations": fit.n_iter_, "objective": fit.objective_}
    return found


def to_best(S: Similarity, rank: int, device: str, starts: int = 3) -> dict:
    """Seconds of a default fit, and of one stopped within 0.1% of the best objective."""
    long = [SRF(rank, device=device, random_state=seed, tol=1e-7, max_iter=3000).fit(S) for seed in range(starts)]
    best = min(fit.objective_ for fit in long)
    reached = np.flatnonzero(long[0].history_ <= 1.001 * best)
    found = {"n_items": S.n_items, "n_components": rank, "best_objective": best}
    found["long fits over best"] = [fit.objective_ / best for fit in long]
    if reached.size:
        found["iterations to 0.1%"] = int(reached[0])
        cut = {"max_iter": max(int(reached[0]), 1), "tol": 0.0}
        found["seconds to 0.1%"] = [timed(SRF(rank, device=device, random_state=0, **cut), S) for _ in range(3)]
    default = SRF(rank, device=device, random_state=0)
    found["default fit, seconds"] = [timed(default, S) for _ in range(3)]
    found["default fit"] = [default.n_iter_, default.converged_, default.objective_ / best, default.kkt_residual_]
    return found


def timed(estimator: SRF | JointSRF, S: Similarity | SimilaritySet) -> float:
    start = time.perf_counter()
    estimator.fit(S)
    return time.perf_counter() - start


def noisy(n: int, rank: int, share: float, device: str) -> np.ndarray:
    """Float32 similarities of Dirichlet loadings with noise, generated on the device for speed."""
    place = torch.device(device.removeprefix("torch-"))
    W = torch.tensor(simulate.dirichlet(n, rank, alpha=0.3, random_state=0), dtype=torch.float32, device=place)
    generator = torch.Generator(place).manual_seed(0)
    S = W @ W.T
    noise = torch.randn(n, n, generator=generator, device=place).triu_()
    S += noise.add_(noise.triu(1).T) * float(S.std() * np.sqrt(1 / 0.7 - 1))
    S.clamp_(min=0)
    if share < 1:
        keep = torch.rand(n, n, generator=generator, device=place).triu_(1)
        S[keep + keep.T >= share] = torch.nan
    return S.cpu().numpy()


def describe(device: str) -> dict:
    name = torch.cuda.get_device_name() if device.startswith("cuda") else device
    return {"name": name, "torch": torch.__version__, "threads": torch.get_num_threads()}


if __name__ == "__main__":
    main()
