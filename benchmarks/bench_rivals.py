"""Time to a common objective: block coordinate descent against the paper's ADMM, L-BFGS-B and scikit-learn's NMF.

    python benchmarks/bench_rivals.py [--quick] [--large] [--repeats 3] [--out benchmarks/results/rivals.json]

All start from the same W on the same data, in one process. The common objective is ADMM's final one (SRF(solver="admm",
max_iter=100, inner_iter=10, tol=1e-3)); its time is that of the whole fit. The time of another method is the time until
its objective is no larger: for bcd that of a whole SRF.fit with the required number of sweeps, for L-BFGS-B (scipy, the
same f with its gradient) the clock at the first such iteration, for NMF (scikit-learn, solver "cd") the sum of its
iterations up to the first such one. Runs shorter than a second are repeated at least three times, and the shortest
counts. A method that stops early or does not reach the objective within five times ADMM's time is "not reached". NMF
needs all pairs and fits another model, W H with two factors: its objective is that of W H, and f of its symmetrised
factors is also reported. bcd and ADMM choose their BLAS threads themselves; the others run with one and with all
threads, and the faster run counts.

For complete data, a default fit is also compared with the same number of bare products S @ W on the same number of BLAS
threads. Prints Markdown tables, writes every number to a JSON file and, if matplotlib is installed, a figure beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench_fit import describe_machine, noisy_dirichlet, random_start, timed_fit
from rivals_report import draw, print_tables
from scipy.optimize import minimize
from sklearn.decomposition import non_negative_factorization
from threadpoolctl import threadpool_limits

from simdims import SRF, Similarity

warnings.simplefilter("ignore")  # fits are stopped early on purpose

OBSERVED = (1.0, 0.7, 0.3, 0.1)
SIZES = {120: 10, 500: 20, 1854: 40, 5000: 50}

# A method is stopped if it has not reached ADMM's objective after this many times ADMM's seconds, or a second.
PATIENCE = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small problems, to see that it runs")
    parser.add_argument("--large", action="store_true", help="5,000 items too")
    parser.add_argument("--sizes", type=int, nargs="+", choices=list(SIZES), help="numbers of items; all by default")
    parser.add_argument("--repeats", type=int, default=3, help="data sets and starts of each size")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "rivals.json")
    parser.add_argument("--figure", type=Path, help="where to draw (.png and .svg); beside the JSON file by default")
    options = parser.parse_args()
    chosen = options.sizes or [n for n in SIZES if n < 5000 or options.large]
    sizes = {60: 4, 150: 6} if options.quick else {n: SIZES[n] for n in chosen}
    repeats = 1 if options.quick else options.repeats
    results: dict[str, Any] = {"machine": describe_machine(), "races": [], "products": []}
    for n_items, n_components in sizes.items():
        for observed in OBSERVED:
            results["races"].append(race(n_items, n_components, observed, repeats))
        results["products"].append(compare_with_products(n_items, n_components))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2))
    print_tables(results)
    draw(results, options.figure or options.out.with_suffix(""))
    print(f"\nWritten to {options.out}")


def race(n_items: int, n_components: int, observed: float, repeats: int) -> dict[str, Any]:
    """Run all methods on the same data from the same start, for several data sets."""
    runs = []
    for seed in range(repeats):
        S = noisy_dirichlet(n_items, n_components, observed, seed)
        start = random_start(S, n_components, seed)
        runs.append(race_once(S, start))
        told = {name: round(found["seconds"], 4) if found["seconds"] else None for name, found in runs[-1].items()}
        print(f"  n = {n_items}, {observed:.0%}, seed {seed}: {told}", file=sys.stderr, flush=True)
    return {"n_items": n_items, "n_components": n_components, "observed": observed, "runs": runs}


def race_once(S: Similarity, start: np.ndarray) -> dict[str, dict[str, Any]]:
    """For each method: seconds to ADMM's final objective, its own final objective and its peak memory."""
    n_components = start.shape[1]
    SRF(n_components, init=start, max_iter=2).fit(S)  # compile
    SRF(n_components, init=start, solver="admm", max_iter=1).fit(S)
    memory = measure_memory(S, start)
    admm = shortest_of(run_admm, S, start)
    target, patience = admm["objective"], max(PATIENCE * admm["seconds"], 1.0)
    found = {"admm": admm}
    methods: dict[str, Callable[..., dict[str, Any]]] = {"bcd": race_bcd, "lbfgs": race_lbfgs}
    if S.density == 1:
        methods["nmf"] = race_nmf
    for name, method in methods.items():
        runs = []
        for threads in (None,) if name == "bcd" else (1, None):
            with threadpool_limits(threads, user_api="blas"):
                runs.append(shortest_of(method, S, start, target, patience))
        result = min(runs, key=arrival)
        reached = result["seconds"]
        result["speedup_over_admm"] = admm["seconds"] / reached if reached else None
        result["objective_over_admm"] = result["objective"] / target
        found[name] = result
    for name, megabytes in memory.items():
        found[name]["megabytes"] = megabytes
    return found


def shortest_of(method: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The fastest run of a method: of at least three if one takes less than a second, at most 30 in a second."""
    began = time.perf_counter()
    runs = [method(*arguments)]
    if time.perf_counter() - began < 1:
        while len(runs) < 3 or (time.perf_counter() - began < 1 and len(runs) < 30):
            runs.append(method(*arguments))
    return min(runs, key=arrival)


def arrival(run: dict[str, Any]) -> float:
    return run["seconds"] or np.inf


def run_admm(S: Similarity, start: np.ndarray) -> dict[str, Any]:
    """The paper's algorithm, 100 outer x 10 inner iterations."""
    admm = SRF(start.shape[1], init=start, solver="admm", max_iter=100, inner_iter=10, tol=1e-3)
    seconds = timed_fit(admm, S)
    return {
        "seconds": seconds,
        "objective": admm.objective_,
        "iterations": admm.n_iter_,
        "converged": admm.converged_,
    }


def race_bcd(S: Similarity, start: np.ndarray, target: float, patience: float) -> dict[str, Any]:
    """Find the number of sweeps with a default fit, then time whole fits with that number."""
    del patience  # a default fit is short
    full = SRF(start.shape[1], init=start)
    full_seconds = timed_fit(full, S)
    reached = np.flatnonzero(full.history_ <= target)
    sweeps = max(int(reached[0]), 1) if reached.size else None
    seconds = None
    if sweeps is not None:
        cut_off = SRF(start.shape[1], init=start, max_iter=sweeps, tol=0.0)
        seconds = timed_fit(cut_off, S)
    return {
        "seconds": seconds,
        "sweeps": sweeps,
        "objective": full.objective_,
        "seconds_of_fit": full_seconds,
        "sweeps_of_fit": full.n_iter_,
        "converged": full.converged_,
    }


def race_lbfgs(S: Similarity, start: np.ndarray, target: float, patience: float) -> dict[str, Any]:
    """L-BFGS-B of scipy on f itself, with bounds W >= 0; time is recorded after every iteration."""
    evaluate = squared_error(S, start.shape)
    history: list[tuple[float, float]] = []

    def note(intermediate_result: Any) -> None:
        history.append((time.perf_counter() - began, float(intermediate_result.fun)))
        if history[-1][0] > patience:
            raise StopIteration

    began = time.perf_counter()
    minimise(evaluate, start, max_iter=5000, callback=note)
    reached = [seconds for seconds, value in history if value <= target]
    return {
        "seconds": reached[0] if reached else None,
        "objective": min(value for _, value in history),
        "iterations": len(history),
        "seconds_of_fit": history[-1][0],
    }


def minimise(evaluate: Callable[..., Any], start: np.ndarray, *, max_iter: int, callback: Any = None) -> None:
    options = {"maxiter": max_iter, "maxfun": 10_000, "ftol": 1e-7}
    limits = [(0.0, None)] * start.size
    minimize(evaluate, start.ravel(), jac=True, method="L-BFGS-B", bounds=limits, callback=callback, options=options)


def squared_error(S: Similarity, shape: tuple[int, int]) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """f(W) = 1/2 |M * (S - W W^T)|^2 and its gradient -2 (M * (S - W W^T)) W, with one matrix of working memory."""
    complete = S.density == 1
    values = S.values if complete else np.nan_to_num(S.values)
    known = None if complete else (~np.isnan(S.values)).astype(np.float64)
    residual = np.empty_like(values)

    def evaluate(w: np.ndarray) -> tuple[float, np.ndarray]:
        W = w.reshape(shape)
        np.matmul(W, W.T, out=residual)
        np.subtract(values, residual, out=residual)
        if known is not None:
            np.multiply(residual, known, out=residual)
        gradient = residual @ W
        gradient *= -2.0
        return 0.5 * float(np.vdot(residual, residual)), gradient.ravel()

    return evaluate


def race_nmf(S: Similarity, start: np.ndarray, target: float, patience: float) -> dict[str, Any]:
    """scikit-learn's coordinate descent on |S - W H|^2, one iteration at a time to record its objective.

    Without shuffling, an iteration depends only on W and H, so these are the iterations of one fit. It stops when ten
    of them reduce the objective by less than 1e-4 of its value, as for bcd.
    """
    W, H = start.copy(), np.ascontiguousarray(start.T)
    spent, seconds, objectives = 0.0, None, [0.5 * float(np.sum((S.values - W @ H) ** 2))]
    while spent < patience and len(objectives) <= 500:
        began = time.perf_counter()
        W, H = one_nmf_iteration(S.values, W, H)
        spent += time.perf_counter() - began
        objectives.append(0.5 * float(np.sum((S.values - W @ H) ** 2)))
        if seconds is None and objectives[-1] <= target:
            seconds = spent
        if len(objectives) > 10 and objectives[-11] - objectives[-1] <= 1e-4 * objectives[-1]:
            break
    symmetric = symmetrised(W, H)
    return {
        "seconds": seconds,
        "objective": objectives[-1],
        "symmetrised_objective": 0.5 * float(np.sum((S.values - symmetric @ symmetric.T) ** 2)),
        "iterations": len(objectives) - 1,
        "seconds_of_fit": spent,
    }


def one_nmf_iteration(S: np.ndarray, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    settings: dict[str, Any] = {"n_components": W.shape[1], "init": "custom", "solver": "cd", "max_iter": 1}
    return non_negative_factorization(S, W, H, tol=0.0, **settings)[:2]


def symmetrised(W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """The mean of W and H^T, after rescaling each column to the same norm in both."""
    balance = np.sqrt(np.linalg.norm(H, axis=1) / np.maximum(np.linalg.norm(W, axis=0), 1e-300))
    return 0.5 * (W * balance + H.T / np.maximum(balance, 1e-300))


def compare_with_products(n_items: int, n_components: int) -> dict[str, Any]:
    """A default fit of complete data against the same number of bare products S @ W, with one and all BLAS threads."""
    S = noisy_dirichlet(n_items, n_components, 1.0, 0)
    start = random_start(S, n_components, 0)
    estimator = SRF(n_components, init=start)
    estimator.fit(S)
    fit_seconds = min(timed_fit(estimator, S) for _ in range(3))
    found: dict[str, Any] = {
        "n_items": n_items,
        "n_components": n_components,
        "sweeps": estimator.n_iter_,
        "fit_seconds": fit_seconds,
    }
    flops = 2.0 * n_items**2 * n_components
    for name, threads in (("one_thread", 1), ("all_threads", None)):
        with threadpool_limits(threads, user_api="blas"):
            product = shortest(lambda: S.values @ start)
            square = shortest(lambda: S.values @ S.values)
        found[name] = {
            "product_seconds": product,
            "product_gigaflops": flops / product / 1e9,
            "square_gigaflops": 2.0 * n_items**3 / square / 1e9,
            "fit_over_products": fit_seconds / (estimator.n_iter_ * product),
            "share_of_fit_in_products": estimator.n_iter_ * product / fit_seconds,
            "fit_fraction_of_dgemm": estimator.n_iter_ * flops / fit_seconds / (2.0 * n_items**3 / square),
        }
    return found


def shortest(call: Callable[[], Any]) -> float:
    """Seconds of the shortest of five calls or, for short calls, of all that fit into a fifth of a second."""
    seconds: list[float] = []
    while len(seconds) < 5 or sum(seconds) < 0.2:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure_memory(S: Similarity, start: np.ndarray) -> dict[str, float]:
    """Peak megabytes of NumPy arrays in a few iterations of each method, in addition to S and the start.

    All iterations need the same memory, and L-BFGS-B has all of its corrections after ten.
    """
    rank = start.shape[1]
    calls: dict[str, Callable[[], Any]] = {
        "admm": lambda: SRF(rank, init=start, solver="admm", max_iter=2).fit(S),
        "bcd": lambda: SRF(rank, init=start, max_iter=3).fit(S),
        "lbfgs": lambda: minimise(squared_error(S, start.shape), start, max_iter=12),
        "nmf": lambda: one_nmf_iteration(S.values, start.copy(), np.ascontiguousarray(start.T)),
    }
    if S.density < 1:
        del calls["nmf"]
    found = {}
    for name, call in calls.items():
        tracemalloc.start()
        call()
        found[name] = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    return found


if __name__ == "__main__":
    main()
