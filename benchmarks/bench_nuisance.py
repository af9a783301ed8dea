"""Tests with nuisance variables: false positive rates and power.

    python benchmarks/bench_nuisance.py --jobs 16                       # the full study
    python benchmarks/bench_nuisance.py --datasets 200 --sizes 40       # a look

Null: a nuisance z scales one dimension by exp(z) and raises another by max(z, 0). The hypothesis x correlates 0 or 0.7
with z and is otherwise unrelated: a number with normal or skewed errors, or a category (x above 0.5). Between 4% and 6%
of these hypotheses should be rejected at 5%. "without" is the test without the nuisance.

Power: z is unrelated, and the hypothesis raises a third dimension. The test should retain 0.9 of its power.

Regression: rsa_regression on the models of x and z.

Matrices: similarities, nuisance and hypothesis are models of pairs. The hypothesis is a sum of the nuisance, with which
it correlates 0 or 0.7, and a model of other properties.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from functools import partial
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed

from simdims import combined_test, rsa_regression, rsa_test

KINDS = ("number", "skewed", "category")
RESULTS = Path(__file__).parent / "results"
LEVEL = 0.05


def symmetric_noise(n_items, rng):
    noise = rng.normal(size=(n_items, n_items))
    return (noise + noise.T) / np.sqrt(2)


def world(n_items, correlation, kind, effect, rng):
    """Nuisance, hypothesis, embedding and similarities."""
    z = rng.normal(size=n_items)
    errors = rng.exponential(size=n_items) - 1 if kind == "skewed" else rng.normal(size=n_items)
    x = correlation * z + np.sqrt(1 - correlation**2) * errors
    x = (x > 0.5).astype(float) if kind == "category" else x
    W = rng.gamma(0.5, size=(n_items, 5))
    if correlation or not effect:
        W[:, 0] *= np.exp(z) / 2
        W[:, 1] += np.maximum(z, 0)
    W[:, 2] += effect * (x - x.min()) / x.std()
    S = W @ W.T
    return z, x, W, np.maximum(S + 0.5 * S.std() * symmetric_noise(n_items, rng), 0)


def dataset(seed, n_items, correlation, kind, effect, n_permutations):
    """P-values of the tests with and without the nuisance."""
    rng = np.random.default_rng(seed)
    while True:
        z, x, W, S = world(n_items, correlation, kind, effect, rng)
        if kind != "category" or 4 <= x.sum() <= n_items - 4:
            break
    settings = {"n_permutations": n_permutations, "random_state": seed, "progress": False}
    found = {}
    for name, nuisance in (("", {"z": z}), (" without", None)):
        tests = combined_test(S, W, {"x": x}, nuisance=nuisance, **settings)
        found[f"combined{name}"] = tests.pvalue[0]
        # With one hypothesis these equal dimension_test and rsa_test.
        found |= {f"{part}{name}": one.pvalue[0] for part, one in tests.parts.items()}
    return found


def regression_dataset(seed, n_items, correlation, kind, n_permutations):
    """P-values of the models of the hypothesis and of the nuisance, which is also tested."""
    rng = np.random.default_rng(seed)
    z, x, _, S = world(n_items, correlation, kind, 0.0, rng)
    while kind == "category" and not 4 <= x.sum() <= n_items - 4:
        z, x, _, S = world(n_items, correlation, kind, 0.0, rng)
    settings = {"n_permutations": n_permutations, "random_state": seed, "progress": False}
    found = {}
    for name, signed in (("non-negative", False), ("signed", True)):
        x_and_z = rsa_regression(S, {"x": x, "z": z}, signed=signed, **settings).pvalue
        found |= {name: x_and_z[0], f"{name}, true model": x_and_z[1]}
    return found


def matrix_dataset(seed, n_items, correlation, n_permutations):
    """P-values of tests in which all variables are models of pairs."""
    rng = np.random.default_rng(seed)
    parts = [rng.gamma(0.5, size=(n_items, 4)) for _ in range(3)]
    nuisance, own, other = ((P @ P.T) / np.std((P @ P.T)[np.triu_indices(n_items, 1)]) for P in parts)
    model = correlation * nuisance + np.sqrt(1 - correlation**2) * own
    S = nuisance + other + 0.5 * np.abs(symmetric_noise(n_items, rng))
    settings = {"n_permutations": n_permutations, "random_state": seed, "progress": False}
    return {
        "rsa": rsa_test(S, {"model": model}, nuisance={"z": nuisance}, **settings).pvalue[0],
        "rsa without": rsa_test(S, {"model": model}, **settings).pvalue[0],
    }


def rejected(run, arguments, first_seed):
    rows = run(delayed(arguments)(first_seed + number) for number in range(rejected.n_datasets))
    return {name: float(np.mean([row[name] <= LEVEL for row in rows])) for name in rows[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--permutations", type=int, default=199)
    parser.add_argument("--sizes", type=int, nargs="+", default=[40, 100])
    parser.add_argument("--effect", type=float, default=0.25, help="of the hypothesis, in the study of power")
    parser.add_argument("--only", choices=["null", "power", "regression", "matrices"], help="one of the studies")
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a few small data sets, to see that it runs")
    parser.add_argument("--out", type=Path, default=RESULTS / "nuisance.json")
    options = parser.parse_args()
    if options.quick:
        options.datasets, options.permutations, options.sizes = 2, 19, [20]
    rejected.n_datasets = options.datasets
    rows = []

    def study(name, size, seed, one, **settings):
        start = time.perf_counter()
        shares = rejected(run, partial(one, n_items=size, n_permutations=options.permutations, **settings), seed)
        rows.append({"study": name, "n_items": size, **settings, **shares})
        listed = ", ".join(f"{test} {share:.4f}" for test, share in shares.items())
        print(f"{name} {size} {settings}: {listed} ({time.perf_counter() - start:.0f} s)", flush=True)

    with Parallel(n_jobs=options.jobs) as run:
        for number, (size, correlation, kind) in enumerate(product(options.sizes, (0.0, 0.7), KINDS)):
            seed = options.seed + 100_000 * number
            if options.only in (None, "null"):
                study("null", size, seed, dataset, correlation=correlation, kind=kind, effect=0.0)
            if options.only in (None, "power") and correlation == 0:
                study("power", size, seed + 50_000, dataset, correlation=0.0, kind=kind, effect=options.effect)
            if options.only in (None, "regression"):
                study("regression", size, seed + 20_000, regression_dataset, correlation=correlation, kind=kind)
        for number, (size, correlation) in enumerate(product(options.sizes, (0.0, 0.7))):
            if options.only in (None, "matrices"):
                study(
                    "matrices",
                    size,
                    options.seed + 5_000_000 + 100_000 * number,
                    matrix_dataset,
                    correlation=correlation,
                )
    options.out.parent.mkdir(exist_ok=True)
    facts = {"datasets": options.datasets, "permutations": options.permutations, "seed": options.seed, "rows": rows}
    options.out.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
