"""Accuracy and speed of finding the number of dimensions.

    python benchmarks/bench_selection.py accuracy [--quick] [--jobs -1] [--limit SECONDS] [--first-seed 4] [--alone]
    python benchmarks/bench_selection.py noise    [--quick] [--jobs -1] [--limit SECONDS] [--first-seed 4]
    python benchmarks/bench_selection.py admm     [--quick] [--jobs -1] [--limit SECONDS]
    python benchmarks/bench_selection.py speed    [--quick]

accuracy: simulations of the paper (150 items, Dirichlet loadings, Gaussian noise on S, all or half of the pairs
observed); the mean absolute error of the rank found by select_rank, the paper's protocol, the scree test, parallel
analysis and detectable_dimensions ("told from noise"), and of the detectable rank, which limits all of them. --alone
leaves out all other rules, which takes a third of the time. noise: the same for other kinds of noise, weights and
structure. admm: the same with the paper's solver at its settings (200 x 50 iterations) on a subset, against bcd on the
same splits and candidates. speed: select_rank with bcd against admm, and calibrate. Prints Markdown tables and writes
every number to benchmarks/results/selection_*.json; --add keeps the runs that the file has.

Problems that have not started after --limit seconds are skipped, and the tables report how many.
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

from simdims import (
    SRF,
    Similarity,
    calibrate,
    detectable_dimensions,
    parallel_analysis,
    scree_test,
    select_rank,
    simulate,
)

RESULTS = Path(__file__).parent / "results"
N_ITEMS = 150
DESIGN = {"rank": (3, 6, 9, 12, 16, 20), "alpha": (0.1, 0.3, 0.5, 1, 2), "snr": (0.3, 0.5, 0.7, 1.0)}
ADMM_DESIGN = {"rank": (3, 6, 12), "alpha": (0.1, 0.5), "snr": (0.3, 0.5, 0.7, 1.0)}
#: Offset between seeds of fits and of data: a random start must not reuse the numbers behind the loadings.
FIT_SEEDS = 1_000_000
PAPER = {"solver": "admm", "max_iter": 200, "inner_iter": 50}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["accuracy", "noise", "admm", "speed"])
    parser.add_argument("--quick", action="store_true", help="a few small problems, to see that it runs")
    parser.add_argument("--jobs", type=int, default=-1, help="processes over which the problems are spread")
    parser.add_argument("--seeds", type=int, default=2, help="data sets of each kind")
    parser.add_argument("--first-seed", type=int, default=4, help="rules were made with seeds 0 to 3 in view")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which no problem is begun")
    parser.add_argument("--out", type=Path, help="folder of the JSON file")
    parser.add_argument("--add", action="store_true", help="keep the runs that the JSON file has")
    parser.add_argument("--alone", action="store_true", help="leave out all rules but select_rank")
    options = parser.parse_args()
    run, show = {
        "accuracy": (accuracy, show_accuracy),
        "noise": (other_noise, show_noise),
        "admm": (against_admm, show_admm),
        "speed": (speed, show_speed),
    }[options.what]
    results = {"cores": os.cpu_count(), "processor": platform.processor(), "runs": run(options)}
    folder = options.out or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"selection_{options.what}.json"
    if options.add and path.exists():
        results["runs"] = json.loads(path.read_text())["runs"] + results["runs"]
    path.write_text(json.dumps(results, indent=1))
    show(results["runs"])
    print(f"\nWritten to {path}")


def problems(design: dict, seeds: range, quick: bool) -> list[dict]:
    """Every cell of the design, in an order in which any initial part is a fair sample."""
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
        measure_default if options.alone else measure_accuracy,
        problems(DESIGN, range(options.first_seed, options.first_seed + options.seeds), options.quick),
        options,
    )


def measure_default(cell: dict) -> dict:
    """The rank that select_rank finds, and the detectable rank."""
    S = similarities(cell)
    start = time.perf_counter()
    selection = select_rank(S, random_state=FIT_SEEDS + cell["seed"], n_jobs=1, progress=False)
    W = simulate.dirichlet(N_ITEMS, cell["rank"], alpha=cell["alpha"], random_state=cell["seed"])
    return {
        "select_rank": selection.rank,
        "detectable": simulate.detectable_rank(W, snr=cell["snr"], observed=cell["observed"]),
        "seconds": time.perf_counter() - start,
        "resampled": selection.resampled.interval(),
        "valley": selection.valley,
        "tried": selection.tried,
        "curve": selection.curve.to_dict("list"),
    }


def measure_accuracy(cell: dict) -> dict:
    """The rank that each method finds, and the eigenvalues of the last true dimension and the one after it."""
    S = similarities(cell)
    seed = FIT_SEEDS + cell["seed"]
    default = measure_default(cell)
    start = time.perf_counter()
    plain = select_rank(S, alpha=0.0, random_state=seed, n_jobs=1, progress=False)
    seconds_plain = time.perf_counter() - start
    alone = plain.scores.groupby("rank")["error_alone"].mean()
    eigenvalues = np.linalg.eigvalsh(np.nan_to_num(S))[::-1]
    return default | {
        "without penalty": plain.rank,
        "smallest averaged error": plain.minimum,
        "paper's protocol": int(alone.idxmin()),
        "scree": scree_test(S),
        "parallel 95%": parallel_analysis(S, random_state=0),
        "parallel median": parallel_analysis(S, quantile=0.5, random_state=0),
        "told from noise": detectable_dimensions(S, random_state=seed).rank,
        "seconds without penalty": seconds_plain,
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
    methods = [method for method in METHODS if all(method in run for run in runs)]

    def row(name: str, chosen: list[dict]) -> None:
        if chosen:
            errors = [np.mean([abs(run[method] - run["rank"]) for run in chosen]) for method in methods]
            print(f"| {name} | {len(chosen)} | " + " | ".join(f"{error:.2f}" for error in errors) + " |")

    print("Mean absolute error of the number of dimensions\n")
    print("| simulations | n | " + " | ".join(methods) + " |")
    print("|---" * (2 + len(methods)) + "|")
    row("all", runs)
    row("SNR >= 0.5, alpha <= 0.5, rank <= 12", [run for run in runs if is_core(run)])
    for name in ("observed", "snr", "alpha", "rank"):
        for level in sorted({run[name] for run in runs}):
            row(f"{name} {level:g}", [run for run in runs if run[name] == level])
    print("\nMean difference to select_rank (and its standard error), all simulations\n")
    ours = np.array([abs(run["select_rank"] - run["rank"]) for run in runs])
    for method in methods[1:]:
        differences = np.array([abs(run[method] - run["rank"]) for run in runs]) - ours
        print(f"- {method}: {differences.mean():+.2f} ({differences.std(ddof=1) / len(runs) ** 0.5:.2f})")
    inside = np.mean([run["resampled"][0] <= run["detectable"] <= run["resampled"][1] for run in runs])
    print(f"\nThe 90% range over resamples contains the detectable rank in {inside:.0%} of the simulations.")
    if "scree" not in methods:
        return
    times = np.array([[run["seconds"], run["seconds without penalty"]] for run in runs])
    ratio = np.median(times[:, 0] / times[:, 1])
    print(
        f"select_rank took {np.median(times[:, 0]):.1f} s (median), without a penalty {np.median(times[:, 1]):.1f} s "
        f"(median of the ratios {ratio:.2f}), one process each."
    )
    show_rows_lost(runs)
    hidden = [run for run in runs if run["rank"] > 12 and run["snr"] <= 0.5]
    if hidden:
        gaps = [run["eigenvalues"][0] / run["eigenvalues"][1] for run in hidden]
        print(
            f"Rank > 12 at SNR <= 0.5: the eigenvalue of the last true dimension is {np.median(gaps):.3f} times the "
            "next one (median): the two are hard to tell apart."
        )


def show_rows_lost(runs: list[dict]) -> None:
    """List marginal rows in which another rule is better, in standard errors of the paired difference."""
    print("\nRows in which another rule is better than select_rank, in standard errors of the paired difference:\n")
    for name in ("observed", "snr", "alpha", "rank"):
        for level in sorted({run[name] for run in runs}):
            chosen = [run for run in runs if run[name] == level]
            ours = np.array([abs(run["select_rank"] - run["rank"]) for run in chosen])
            for method in ("scree", "parallel 95%", "parallel median", "paper's protocol"):
                gains = ours - np.array([abs(run[method] - run["rank"]) for run in chosen])
                error = gains.std(ddof=1) / len(gains) ** 0.5
                if gains.mean() > 0:
                    print(f"- {name} {level:g}: {method}, by {gains.mean():.2f} ({gains.mean() / error:.1f})")


#: Structure and noise beyond the paper's simulations.
NOISES = ("Gaussian", "on features", "counts of choices", "uneven weights", "RBF kernel")


def other_noise(options: argparse.Namespace) -> list[dict]:
    seeds = range(options.first_seed, options.first_seed + (1 if options.quick else 4 * options.seeds))
    ranks, snrs = ((3,), (0.5,)) if options.quick else ((4, 8, 12), (0.3, 0.5, 0.7))
    keys = itertools.product(NOISES, ranks, snrs, seeds)
    cells = [dict(zip(("noise", "rank", "snr", "seed"), key, strict=True)) for key in keys]
    order = np.random.default_rng(0).permutation(len(cells))
    return spread_over(measure_noise, [cells[at] for at in order], options)


def measure_noise(cell: dict) -> dict:
    S, W = noisy(cell)
    seed = FIT_SEEDS + cell["seed"]
    plain = np.asarray(S.values)
    return {
        "select_rank": select_rank(S, random_state=seed, n_jobs=1, progress=False).rank,
        "without penalty": select_rank(S, alpha=0.0, random_state=seed, n_jobs=1, progress=False).rank,
        "told from noise": detectable_dimensions(S, random_state=seed).rank,
        "scree": scree_test(plain),
        "parallel 95%": parallel_analysis(plain, random_state=0),
        "parallel median": parallel_analysis(plain, quantile=0.5, random_state=0),
        "detectable": simulate.detectable_rank(W, snr=cell["snr"], observed=1.0),
    }


def noisy(cell: dict) -> tuple[Similarity, np.ndarray]:
    """Similarities of 120 items with one kind of noise, all pairs observed, and their true loadings.

    "on features": Gaussian noise on the loadings, with the SNR as share of signal in their variance, so that all pairs
    of an item share it. "counts of choices": every pair is judged alike with a probability given by its similarity, in
    3, 10 or 40 answers at SNR 0.3, 0.5 and 0.7. "uneven weights": pairs were judged 1 to 50 times, which determines
    their noise and weights. "RBF kernel": of the loadings as features, which is not low-rank; with Gaussian noise.
    """
    rng = np.random.default_rng(10_000 + cell["seed"])
    W = simulate.dirichlet(120, cell["rank"], alpha=0.3, random_state=cell["seed"])
    clean, snr = W @ W.T, cell["snr"]
    spread = clean[np.triu_indices(len(W), 1)].std()
    sigma = spread * (1 / snr - 1) ** 0.5
    if cell["noise"] == "on features":
        features = W + rng.normal(size=W.shape) * W.std() * (1 / snr - 1) ** 0.5
        return Similarity(np.clip(features @ features.T, 0, None)), W
    if cell["noise"] == "counts of choices":
        n_answers = {0.3: 3, 0.5: 10, 0.7: 40}[snr]
        counts = np.triu(rng.binomial(n_answers, np.clip(clean, 0, 1)), 1)
        return Similarity((counts + counts.T) / n_answers + np.eye(len(W))), W
    if cell["noise"] == "uneven weights":
        counts = np.triu(np.ceil(50 ** rng.random(clean.shape)), 1)
        counts = counts + counts.T + np.diag(np.full(len(W), 50.0))
        noise = np.triu(rng.normal(size=clean.shape), 1) * sigma * 7**0.5 / counts**0.5
        return Similarity(np.clip(clean + noise + noise.T, 0, None), weights=counts), W
    if cell["noise"] == "RBF kernel":
        distances = np.square(W[:, None] - W[None]).sum(axis=-1)
        clean = np.exp(-distances / np.median(distances))
    return Similarity(np.asarray(simulate.add_noise(clean, snr, random_state=cell["seed"]))), W


def show_noise(runs: list[dict]) -> None:
    methods = ["select_rank", "without penalty", "told from noise", "scree", "parallel 95%", "parallel median"]
    methods += ["detectable"]
    print("Mean absolute error of the number of dimensions, and in brackets the mean of the number less the true one\n")
    print("| noise | n | " + " | ".join(methods) + " |")
    print("|---" * (2 + len(methods)) + "|")
    for noise in NOISES:
        for snr in sorted({run["snr"] for run in runs}):
            chosen = [run for run in runs if run["noise"] == noise and run["snr"] == snr]
            errors = [np.array([run[method] - run["rank"] for run in chosen]) for method in methods]
            shown = " | ".join(f"{np.abs(error).mean():.2f} ({error.mean():+.1f})" for error in errors)
            print(f"| {noise}, SNR {snr:g} | {len(chosen)} | {shown} |")


def is_core(run: dict) -> bool:
    return run["snr"] >= 0.5 and run["alpha"] <= 0.5 and run["rank"] <= 12


def against_admm(options: argparse.Namespace) -> list[dict]:
    return spread_over(
        measure_admm, problems(ADMM_DESIGN, range(options.first_seed, options.first_seed + 1), options.quick), options
    )


def measure_admm(cell: dict) -> dict:
    """Both solvers on the same splits and candidates, one repeat each by the paper's protocol; and the default."""
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
    results: dict = {"rules": rules(options.quick), "large": large(options.quick)}
    results["calibrate"] = calibration(options.quick)
    path = Path(os.environ.get("SIMDIMS_DATA", "../shared/data")) / "peterson_animals" / "animals_similarity.npy"
    if path.exists():
        results["peterson"] = peterson(np.load(path), options.quick)
    else:
        print(f"{path} is not there: the animals of Peterson et al. are left out.")
    return results


def rules(quick: bool) -> list[dict]:
    """Processor time of the selection with a penalty over that without one, each with its own folds and repeats."""
    found = []
    for n, k, ranks in ((60, 4, [2, 4]),) if quick else ((120, 8, "auto"), (1854, 20, [10, 20, 40])):
        W = simulate.dirichlet(n, k, alpha=0.3, random_state=0)
        S = np.asarray(simulate.add_noise(W @ W.T, 0.7, random_state=0))
        seconds = {}
        for alpha in ("auto", 0.0):
            select_rank(S[:40, :40], [2, 3], alpha=alpha, random_state=0, n_jobs=1, progress=False)  # compile
            start = time.process_time()
            selection = select_rank(S, ranks, alpha=alpha, random_state=0, n_jobs=1, progress=False)
            seconds[str(alpha)] = time.process_time() - start
            found.append({"n_items": n, "alpha": str(alpha), "seconds": seconds[str(alpha)], "rank": selection.rank})
        print(f"{n} items: with a penalty {seconds['auto'] / seconds['0.0']:.2f} times as long as without")
    return found


def peterson(S: np.ndarray, quick: bool) -> dict:
    """The selection on two processes with either solver, one repeat of five folds; and the complete default."""
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
                "sampling": calibrate(S, random_state=seed).sampling,
                "rank": selection.rank,
                "valley": selection.valley,
            }
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["r2_at_10"] = SRF(10, random_state=0).fit(S).score(S)
    return found


def large(quick: bool) -> dict:
    """One repeat at n = 1854: bcd in full, and the first tenth of admm's iterations, which gives a lower bound."""
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
