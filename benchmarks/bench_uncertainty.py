"""Coverage of bootstrap intervals, calibration of comparisons and population tests, and the time of a bootstrap.

    python benchmarks/bench_uncertainty.py [coverage] [compare] [population] [speed] [--jobs 8] [--data-sets 200]

coverage: simulated people, S_m = W diag(a_m) W^T + noise; 30 people; the share of true values that 95% intervals
contain. Loadings are those whose true value is above 0.1, scaled so that the mean weight of these people is 1. compare:
two independent embeddings, and two that share 5 of 10 dimensions. population: people who encode a property to varying
degrees, with zero and nonzero mean. speed: 200 resamples of 16 people, 92 items and 9 dimensions.

Requires only numpy, scipy, numba and scikit-learn. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

try:
    import pandas  # noqa: F401
except ImportError:  # only needed for the table of people, which is empty here
    stub = types.ModuleType("pandas")
    empty = {"__init__": lambda self, *_, **__: None}
    for name in ("Index", "DataFrame", "Series", "MultiIndex", "RangeIndex"):
        setattr(stub, name, type(name, (), empty))
    sys.modules["pandas"] = stub

import numpy as np  # noqa: E402

from simdims import JointSRF, SimilaritySet, bootstrap, compare_embeddings, population_test  # noqa: E402
from simdims.consensus import align  # noqa: E402

#: Items, dimensions, people, noise, concentration of the Dirichlet loadings, and settings of the fits.
DESIGNS = {
    "40 items, 4 dimensions, noise 0.05, penalties chosen": (40, 4, 30, 0.05, 1.0, {}),
    "40 items, 4 dimensions, noise 0.05, no penalties": (40, 4, 30, 0.05, 1.0, {"alpha": 0.0, "shrinkage": 0.0}),
    "40 items, 4 dimensions, noise 0.05, sparse loadings": (40, 4, 30, 0.05, 0.5, {}),
    "60 items, 6 dimensions, noise 0.03, penalties chosen": (60, 6, 30, 0.03, 1.0, {}),
    "40 items, 4 dimensions, noise 0.1 (4% of similarities clipped at 0)": (40, 4, 30, 0.1, 1.0, {}),
}


QUANTITIES = (
    "loadings above 0.1",
    "shares",
    "weights",
    "loadings below 0.1, not marked",
    "loadings marked as at zero",
)


def people(
    seed: int, n_items: int, rank: int, n_people: int, sigma: float, concentration: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True loadings, weights with mean 1 over these people, and noisy similarities without a diagonal."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(rank, concentration), size=n_items)
    a = rng.gamma(4.0, 0.25, size=(n_people, rank))
    W, a = W * np.sqrt(a.mean(axis=0)), a / a.mean(axis=0)
    noise = np.triu(rng.normal(0.0, sigma, (n_people, n_items, n_items)), 1)
    S = np.maximum(np.einsum("ik,mk,jk->mij", W, a, W) + noise + noise.transpose(0, 2, 1), 0.0)
    S[:, np.arange(n_items), np.arange(n_items)] = np.nan
    return W, a, S


def covered(task: tuple[str, str, int, int]) -> dict[tuple[str, str], float]:
    """The share of true values in the intervals of one data set, for each quantity and method."""
    design, over, n_resamples, seed = task
    *size, settings = DESIGNS[design]
    W, a, S = people(seed, *size)
    model = JointSRF(W.shape[1], max_iter=2000, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sure = bootstrap(
            SimilaritySet(S), over, estimator=model, n_resamples=n_resamples, random_state=seed, progress=False
        )
    order = align(sure.embedding, W).permutation
    shares = np.sum(W**2, axis=0) / np.sum(W**2)
    marked = sure.at_zero[:, order]
    found = {("came back", ""): float(sure.came_back.mean()), ("loadings marked", ""): float(marked.mean())}
    for method in ("percentile", "bias-corrected"):
        low, high = sure.interval("loadings", method=method)[..., order]
        inside = (low <= W) & (high >= W)
        found["loadings above 0.1", method] = float(inside[W > 0.1].mean())
        found["loadings below 0.1, not marked", method] = _mean(inside[(W <= 0.1) & ~marked])
        found["loadings marked as at zero", method] = _mean(inside[marked])
        for what, truth in (("shares", shares), ("weights", a)):
            low, high = sure.interval(what, method=method)[..., order]
            found[what, method] = float(np.mean((low <= truth) & (high >= truth)))
    return found


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else np.nan


def coverage(
    run: Callable[..., Iterable], n_sets: int, n_resamples: int, overs: list[str], n_designs: int, first_seed: int
) -> None:
    print(f"## Coverage of 95% intervals ({n_sets} data sets, {n_resamples} resamples each)\n")
    for over in overs:
        for design in list(DESIGNS)[:n_designs]:
            began = time.perf_counter()
            tasks = [(design, over, n_resamples, first_seed + seed) for seed in range(n_sets)]
            found = list(run(covered, tasks))
            print(f"### Resampled {over}: {design}\n")
            print("| quantity | percentile | bias-corrected |\n|---|---|---|")
            for what in QUANTITIES:
                print(f"| {what} | {_cell(found, what, 'percentile')} | {_cell(found, what, 'bias-corrected')} |")
            back = np.mean([one["came back", ""] for one in found])
            marked = np.mean([one["loadings marked", ""] for one in found])
            seconds = time.perf_counter() - began
            print(
                f"\nDimensions came back in {back:.1%}; {marked:.0%} of loadings marked; {seconds:.0f} s.\n", flush=True
            )


def _cell(found: list[dict], what: str, method: str) -> str:
    """Mean and standard error over data sets."""
    values = np.array([one[what, method] for one in found])
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return "none"
    return f"{values.mean():.1%} ± {values.std(ddof=1) / np.sqrt(len(values)):.1%}"


def compared(task: tuple[str, int]) -> tuple[np.ndarray, int]:
    """P-values and the number of shared dimensions of two embeddings."""
    kind, seed = task
    rng = np.random.default_rng(seed)
    one, other = rng.dirichlet(np.full(10, 0.3), size=(2, 100))
    if kind.startswith("5 of 10"):
        noise = float(kind.rpartition(" ")[2]) * one.std()
        other[:, :5] = np.maximum(one[:, :5] + noise * rng.standard_normal((100, 5)), 0.0)
    found = compare_embeddings(one, other, n_permutations=999, random_state=seed)
    return found.pvalue, found.n_shared


def compare(run: Callable[..., Iterable], n_sets: int) -> None:
    print(f"## compare_embeddings ({n_sets} pairs of embeddings, 100 items, 10 dimensions)\n")
    print("| embeddings | p <= 0.05 | p <= 0.5 | shared: mean (4 to 6 in) |\n|---|---|---|---|")
    for kind in (
        "independent",
        "5 of 10 shared, noise of 0.5",
        "5 of 10 shared, noise of 1",
        "5 of 10 shared, noise of 2",
    ):
        found = list(run(compared, [(kind, 20_000 + seed) for seed in range(n_sets)]))
        p, shared = np.array([one for one, _ in found]), np.array([one for _, one in found])
        inside = np.mean((shared >= 4) & (shared <= 6))
        print(f"| {kind} | {np.mean(p <= 0.05):.1%} | {np.mean(p <= 0.5):.1%} | {shared.mean():.2f} ({inside:.0%}) |")
    print(flush=True)


def populated(task: tuple[int, float, float, bool, int]) -> dict[str, bool]:
    """Which tests reject, for people who encode a property to degrees with the given mean and standard deviation."""
    n_people, mean, spread, with_dimensions, seed = task
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(4, 0.5), size=30)
    h = rng.normal(size=30)
    size = (W @ W.T)[np.triu_indices(30, 1)].std()
    degrees = size * (mean + spread * rng.normal(size=n_people))
    noise = np.triu(rng.normal(0.0, 0.5 * size, (n_people, 30, 30)), 1)
    S = W @ W.T + degrees[:, None, None] * np.outer(h, h) + noise + noise.transpose(0, 2, 1)
    S = S - S.min() + 0.01
    S[:, np.arange(30), np.arange(30)] = np.nan
    systems, found = SimilaritySet(S), {}
    for generalize in ("both", "items"):
        embedding = W if with_dimensions else None
        settings = {"n_permutations": 199, "random_state": seed, "progress": False}
        test = population_test(systems, h, embedding=embedding, generalize=generalize, **settings)
        found[generalize] = bool(test.pvalue[0] <= 0.05)
    return found


def population(run: Callable[..., Iterable], n_sets: int) -> None:
    print(f"## population_test at 5% ({n_sets} data sets, 30 items)\n")
    print("| people | effect: mean, standard deviation | statistic | both | items only |\n|---|---|---|---|---|")
    for n_people, mean, spread in ((12, 0.0, 0.4), (12, 0.0, 0.1), (30, 0.0, 0.4), (12, 0.3, 0.4), (30, 0.3, 0.4)):
        for with_dimensions in (False, True):
            tasks = [(n_people, mean, spread, with_dimensions, 30_000 + seed) for seed in range(n_sets)]
            found = list(run(populated, tasks))
            both, items = (np.mean([one[name] for one in found]) for name in ("both", "items"))
            statistic = "matched dimension" if with_dimensions else "similarities"
            print(f"| {n_people} | {mean:g}, {spread:g} | {statistic} | {both:.1%} | {items:.1%} |", flush=True)
    print()


def speed(n_jobs: int) -> None:
    print(f"## 200 resamples of 16 people x 92 items x 9 dimensions, {n_jobs} processes\n")
    print("| resampled | seconds |\n|---|---|")
    _, _, S = people(0, 92, 9, 16, 0.05, 0.5)
    systems = SimilaritySet(S)
    for over in ("systems", "items", "pairs"):
        began = time.perf_counter()
        bootstrap(systems, over, n_components=9, random_state=0, n_jobs=n_jobs, progress=False)
        print(f"| {over} | {time.perf_counter() - began:.0f} |", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("coverage", "compare", "population", "speed")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=list(parts))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data-sets", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--over", nargs="+", default=["systems"], choices=["systems", "items", "pairs"])
    parser.add_argument("--designs", type=int, default=len(DESIGNS), help="only the first of the designs of coverage")
    parser.add_argument("--first-seed", type=int, default=40_000, help="of the data sets of coverage")
    given = parser.parse_args()
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        if "coverage" in given.parts:
            coverage(pool.map, given.data_sets, given.resamples, given.over, given.designs, given.first_seed)
        if "compare" in given.parts:
            compare(pool.map, 5 * given.data_sets)
        if "population" in given.parts:
            population(pool.map, 10 * given.data_sets)
    if "speed" in given.parts:
        speed(min(given.jobs, 2))


if __name__ == "__main__":
    main()
