"""How well and how fast the number of dimensions is found.

    python benchmarks/bench_selection.py accuracy [--quick] [--jobs -1] [--limit SECONDS] [--first-seed 2]
    python benchmarks/bench_selection.py admm     [--quick] [--jobs -1] [--limit SECONDS]
    python benchmarks/bench_selection.py speed    [--quick]

accuracy: simulations of the paper (150 items, Dirichlet loadings, Gaussian noise on S, all or half of the pairs
observed); the mean absolute error of the rank that select_rank, the paper's protocol, the scree test, parallel analysis
and detectable_dimensions ("told from noise") find, and of the detectable rank, the limit for all of them. admm: the same with the paper's solver at its settings (200 x 50 iterations) on a subset, against bcd on
the same splits and candidates. speed: select_rank with bcd against admm, and calibrate. Prints Markdown tables and
writes every number to benchmarks/results/selection_*.json.

A problem that has not begun when --limit seconds are over is left out, and the tables say how many there are.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from simdims import SRF, calibrate, detectable_dimensions, parallel_analysis, scree_test, select_rank, simulate

RESULTS = Path(__file__).parent / "results"
N_ITEMS = 150
DESIGN = {"rank": (3, 6, 9, 12, 16, 20), "alpha": (0.1, 0.3, 0.5, 1, 2), "snr": (0.3, 0.5, 0.7, 1.0)}
ADMM_DESIGN = {"rank": (3, 6, 12), "alpha": (0.1, 0.5), "snr": (0.3, 0.5, 0.7, 1.0)}
PAPER = {"solver": "admm", "max_iter": 200, "inner_iter": 50}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["accuracy", "admm", "speed"])
    parser.add_argument("--quick", action="store_true", help="a few small problems, to see that it runs")
    parser.add_argument("--jobs", type=int, default=-1, help="processes over which the problems are spread")
    parser.add_argument("--seeds", type=int, default=2, help="data sets of each kind")
    parser.add_argument("--first-seed", type=int, default=2, help="the rule was made with seeds 0 and 1 in view")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which no problem is begun")
    parser.add_argument("--out", type=Path, help="folder of the JSON file")
    options = parser.parse_args()
    run, show = {
        "accuracy": (accuracy, show_accuracy),
        "admm": (against_admm, show_admm),
        "speed": (speed, show_speed),
    }[options.what]
    results = {"cores": os.cpu_count(), "processor": platform.processor(), "runs": run(options)}
    folder = options.out or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"selection_{options.what}.json"
    path.write_text(json.dumps(results, indent=1))
    show(results["runs"])
    print(f"\nWritten to {path}")


def problems(design: dict, seeds: range, quick: bool) -> list[dict]:
    """Every cell of the design, in an order that makes a part of it a fair sample."""
    keys = itertools.product(*design.values(), (1.0, 0.5), seeds)
    cells = [dict(zip([*design, "observed", "seed"], key, strict=True)) for key in keys]
    order = np.random.default_rng(0).permutation(len(cells))
    chosen = [cells[at] for at in order]
    return [cell for cell in chosen if cell["rank"] <= 6][:4] if quick else chosen


def similarities(cell: dict) -> np.ndarray:
    W = simulate.dirichlet(N_ITEMS, cell["rank"], alpha=cell["alpha"], random_state=cell["seed"])
    S = W @ W.T
    if cell["snr"] < 1:
        S = simulate.add_noise(S, cell["snr"], random_state=cell["seed"])
    if cell["observed"] < 1:
        S = simulate.mask_pairs(S, cell["observed"], random_state=cell["seed"])
    return np.asarray(S)


def spread_over(function: Callable[[dict], dict], cells: list[dict], options: argparse.Namespace) -> list[dict]:
    end = time.time() + options.limit
    tasks = (delayed(within)(function, cell, end) for cell in cells)
    return [result for result in Parallel(n_jobs=options.jobs, batch_size=1)(tasks) if result is not None]


def within(function: Callable[[dict], dict], cell: dict, end: float) -> dict | None:
    if time.time() > end:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {**cell, **function(cell)}


def accuracy(options: argparse.Namespace) -> list[dict]:
    return spread_over(
        measure_accuracy,
        problems(DESIGN, range(options.first_seed, options.first_seed + options.seeds), options.quick),
        options,
    )


def measure_accuracy(cell: dict) -> dict:
    """The rank that each method finds, and the eigenvalue of the last true dimension beside the one after it."""
    S = similarities(cell)
    start = time.perf_counter()
    selection = select_rank(S, random_state=cell["seed"], n_jobs=1, progress=False)
    seconds = time.perf_counter() - start
    plain = select_rank(S, alpha=0.0, random_state=cell["seed"], n_jobs=1, progress=False)
    alone = plain.scores.groupby("rank")["error_alone"].mean()
    W = simulate.dirichlet(N_ITEMS, cell["rank"], alpha=cell["alpha"], random_state=cell["seed"])
    eigenvalues = np.linalg.eigvalsh(np.nan_to_num(S))[::-1]
    return {
        "select_rank": selection.rank,
        "without penalty": plain.rank,
        "smallest averaged error": plain.minimum,
        "paper's protocol": int(alone.idxmin()),
        "scree": scree_test(S),
        "parallel 95%": parallel_analysis(S, random_state=0),
        "parallel median": parallel_analysis(S, quantile=0.5, random_state=0),
        "told from noise": detectable_dimensions(S, random_state=cell["seed"]).rank,
        "detectable": simulate.detectable_rank(W, snr=cell["snr"], observed=cell["observed"]),
        "seconds": seconds,
        "sampling": selection.sampling,
        "cutoff": selection.calibration.cutoff,
        "valley": selection.valley,
        "tried": selection.tried,
        "curve": selection.curve.to_dict("list"),
        "eigenvalues": eigenvalues[cell["rank"] - 1 : cell["rank"] + 1].tolist(),
    }


METHODS = [
    "select_rank",
    "without penalty",
    "smallest averaged error",
    "paper's protocol",
    "scree",
    "parallel 95%",
    "parallel median",
    "told from noise",
    "detectable",
]


def show_accuracy(runs: list[dict]) -> None:
    def row(name: str, chosen: list[dict]) -> None:
        if chosen:
            errors = [np.mean([abs(run[method] - run["rank"]) for run in chosen]) for method in METHODS]
            print(f"| {name} | {len(chosen)} | " + " | ".join(f"{error:.2f}" for error in errors) + " |")

    print("Mean absolute error of the number of dimensions\n")
    print("| simulations | n | " + " | ".join(METHODS) + " |")
    print("|---" * (2 + len(METHODS)) + "|")
    row("all", runs)
    row("SNR >= 0.5, alpha <= 0.5, rank <= 12", [run for run in runs if is_core(run)])
    for name in ("observed", "snr", "alpha", "rank"):
        for level in sorted({run[name] for run in runs}):
            row(f"{name} {level:g}", [run for run in runs if run[name] == level])
    print("\nMean difference to select_rank (and its standard error), all simulations\n")
    ours = np.array([abs(run["select_rank"] - run["rank"]) for run in runs])
    for method in METHODS[1:]:
        differences = np.array([abs(run[method] - run["rank"]) for run in runs]) - ours
        print(f"- {method}: {differences.mean():+.2f} ({differences.std(ddof=1) / len(runs) ** 0.5:.2f})")
    print(f"\nselect_rank took {np.median([run['seconds'] for run in runs]):.1f} s (median), one process each.")
    hidden = [run for run in runs if run["rank"] > 12 and run["snr"] <= 0.5]
    if hidden:
        gaps = [run["eigenvalues"][0] / run["eigenvalues"][1] for run in hidden]
        print(
            f"Rank > 12 at SNR <= 0.5: the eigenvalue of the last true dimension is {np.median(gaps):.3f} times the "
            "next one (median): the two are hard to tell apart."
        )


def is_core(run: dict) -> bool:
    return run["snr"] >= 0.5 and run["alpha"] <= 0.5 and run["rank"] <= 12


def against_admm(options: argparse.Namespace) -> list[dict]:
    return spread_over(
        measure_admm, problems(ADMM_DESIGN, range(options.first_seed, options.first_seed + 1), options.quick), options
    )


def measure_admm(cell: dict) -> dict:
    """Both solvers on the same splits and candidates, one repeat, each by the paper's protocol; and the default."""
    S = similarities(cell)
    sampling = calibrate(S, n_bootstraps=20, random_state=0).sampling
    ranks = sorted({max(1, cell["rank"] + step) for step in (-6, -4, -2, -1, 0, 1, 2, 4)})
    found = {}
    default = select_rank(S, ranks, sampling=sampling, random_state=0, n_jobs=1, progress=False)
    found["default"] = default.rank
    for name, estimator in (("bcd", None), ("admm", SRF(**PAPER))):
        start = time.perf_counter()
        selection = select_rank(
            S,
            ranks,
            sampling=sampling,
            n_repeats=1,
            protocol="paper",
            estimator=estimator,
            random_state=0,
            n_jobs=1,
            progress=False,
        )
        found |= {name: selection.rank, f"{name}_seconds": time.perf_counter() - start}
        found[f"{name}_error"] = selection.curve["error"].tolist()
    return found


def show_admm(runs: list[dict]) -> None:
    print("Mean absolute error, paper's protocol, 5 folds x 1 repeat, candidates around the truth\n")
    print("| simulations | n | default | bcd | admm (200 x 50) | smallest error, bcd / admm | time, admm / bcd |")
    print("|---|---|---|---|---|---|---|")

    def row(name: str, chosen: list[dict]) -> None:
        if not chosen:
            return
        errors = [np.mean([abs(run[solver] - run["rank"]) for run in chosen]) for solver in ("default", "bcd", "admm")]
        ratio = np.median([min(run["bcd_error"]) / min(run["admm_error"]) for run in chosen if run["snr"] < 1] or [1])
        times = np.median([run["admm_seconds"] / run["bcd_seconds"] for run in chosen])
        shown = " | ".join(f"{error:.2f}" for error in errors)
        print(f"| {name} | {len(chosen)} | {shown} | {ratio:.3f} | {times:.0f} |")

    row("all", runs)
    for name in ("observed", "snr", "alpha", "rank"):
        for level in sorted({run[name] for run in runs}):
            row(f"{name} {level:g}", [run for run in runs if run[name] == level])


def speed(options: argparse.Namespace) -> dict:
    results: dict = {"large": large(options.quick), "calibrate": calibration(options.quick)}
    path = Path(os.environ.get("SIMDIMS_DATA", "../shared/data")) / "peterson_animals" / "animals_similarity.npy"
    if path.exists():
        results["peterson"] = peterson(np.load(path), options.quick)
    else:
        print(f"{path} is not there: the animals of Peterson et al. are left out.")
    return results


def peterson(S: np.ndarray, quick: bool) -> dict:
    """The selection on two processes with either solver, one repeat of five folds; and the whole of it by itself."""
    ranks = range(2, 6) if quick else range(2, 31)
    found: dict = {"ranks": list(ranks)}
    for name, estimator in (("bcd", None), ("admm", SRF(**PAPER))):
        select_rank(S, [2], sampling=0.7, n_repeats=1, estimator=estimator, n_jobs=2, progress=False)  # compile
        start = time.perf_counter()
        selection = select_rank(
            S,
            ranks,
            sampling=0.7,
            n_repeats=1,
            estimator=estimator,
            random_state=0,
            n_jobs=2,
            progress=False,
        )
        found[name] = {"seconds": time.perf_counter() - start, "rank": selection.rank, "minimum": selection.minimum}
        found[name]["smallest_alone"] = int(selection.scores.groupby("rank")["error_alone"].mean().idxmin())
    found["auto"] = []
    for seed in range(1 if quick else 3):
        start = time.perf_counter()
        selection = select_rank(S, random_state=seed, n_jobs=2, progress=False)
        found["auto"].append(
            {
                "seconds": time.perf_counter() - start,
                "sampling": selection.sampling,
                "rank": selection.rank,
                "valley": selection.valley,
            }
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["r2_at_10"] = SRF(10, random_state=0).fit(S).score(S)
    return found


def large(quick: bool) -> dict:
    """One repeat at n = 1854: bcd in full; of admm the first tenth of its iterations, a bound from below."""
    n, step = (300, 5) if quick else (1854, 10)
    W = simulate.dirichlet(n, 2 * step, alpha=0.3, random_state=0)
    S = np.asarray(simulate.add_noise(W @ W.T, 0.7, random_state=0))
    ranks = range(step, 7 * step, step) if not quick else (5, 10)
    found: dict = {"n_items": n, "ranks": list(ranks)}
    short = {**PAPER, "max_iter": PAPER["max_iter"] // 10}
    for name, estimator, folds in (("bcd", None, 5), ("admm, a tenth", SRF(**short), 5)):
        start = time.perf_counter()
        selection = select_rank(
            S,
            ranks,
            sampling=0.7,
            n_folds=folds,
            n_repeats=1,
            protocol="paper",
            estimator=estimator,
            random_state=0,
            n_jobs=2,
            progress=False,
        )
        found[name] = {
            "seconds": time.perf_counter() - start,
            "rank": selection.rank,
            "converged": float(selection.scores["converged"].mean()),
        }
    return found


def calibration(quick: bool) -> dict:
    n = 300 if quick else 1854
    W = simulate.dirichlet(n, 40, alpha=0.3, random_state=0)
    S = np.asarray(simulate.add_noise(W @ W.T, 0.7, random_state=0))
    seconds = []
    for seed in range(1 if quick else 2):
        start = time.perf_counter()
        found = calibrate(S, n_eigenpairs=min(100, n // 4), n_bootstraps=20, random_state=seed, n_jobs=2)
        seconds.append(time.perf_counter() - start)
    return {"n_items": n, "seconds": seconds, "cutoff": found.cutoff, "sampling": found.sampling}


def show_speed(results: dict) -> None:
    big, calibrated = results["large"], results["calibrate"]
    short = big["admm, a tenth"]
    print(
        f"n = {big['n_items']}, ranks {big['ranks']}, 5 folds x 1 repeat, 2 processes: bcd {big['bcd']['seconds']:.0f} "
        f"s; a tenth of admm's iterations {short['seconds']:.0f} s ({short['converged']:.0%} of its fits had "
        f"converged by then): at least {short['seconds'] / big['bcd']['seconds']:.1f}x."
    )
    print(
        f"calibrate, n = {calibrated['n_items']}, 20 shares x 20 bootstraps, 2 processes: "
        f"{statistics.median(calibrated['seconds']):.0f} s; cutoff {calibrated['cutoff']}, p* "
        f"{calibrated['sampling']:.2f}."
    )
    if "peterson" in results:
        animals = results["peterson"]
        ratio = animals["admm"]["seconds"] / animals["bcd"]["seconds"]
        print(
            f"Peterson animals, ranks {animals['ranks'][0]} to {animals['ranks'][-1]}, 5 folds, 2 processes: bcd "
            f"{animals['bcd']['seconds']:.1f} s, admm {animals['admm']['seconds']:.0f} s: {ratio:.0f}x; R2 at 10 "
            f"dimensions {animals['r2_at_10']:.3f}."
        )
        for auto in animals["auto"]:
            print(
                f"  auto: {auto['seconds']:.1f} s, p* {auto['sampling']:.3f}, rank {auto['rank']}, valley "
                f"{auto['valley']}"
            )


if __name__ == "__main__":
    main()
