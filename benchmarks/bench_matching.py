"""Error rates of joint matching with other hypotheses that are true, and the power cost of separate matching.

    python benchmarks/bench_matching.py [--quick] [--datasets 600] [--jobs 2]

Rejection rates at 0.05 for a hypothesis unrelated to the embedding, under either matching: together with four related
ones (conservative), and as a component of related ones (anticonservative). Also the power of both in the factorial
design with noise on the features. Prints a Markdown table and writes every number to benchmarks/results/matching.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from simdims import SRF, dimension_test, simulate

N_PERMUTATIONS = 99  # 0.05 is a multiple of 1 / 100, so the exact level is attainable


def beside_true_ones(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four hypotheses that are dimensions with noise, and a fifth that is noise; five dimensions, 50 items."""
    rng = np.random.default_rng([seed, 1])
    W = rng.standard_normal((50, 5))
    return W, np.column_stack([W[:, :4] + 0.3 * rng.standard_normal((50, 4)), rng.standard_normal(50)])


def part_of_three(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A hypothesis e and three of the form 0.6 w + 0.8 e; eight dimensions, 50 items."""
    rng = np.random.default_rng([seed, 2])
    W, e = rng.standard_normal((50, 8)), rng.standard_normal(50)
    return W, np.column_stack([0.6 * W[:, :3] + 0.8 * e[:, None], e])


def part_of_nine(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A hypothesis e and nine of the form 0.5 w + 0.87 e; 40 dimensions, 200 items."""
    rng = np.random.default_rng([seed, 3])
    W, e = rng.standard_normal((200, 40)), rng.standard_normal(200)
    return W, np.column_stack([0.5 * W[:, :9] + 0.87 * e[:, None], e])


def rejects(design, seed: int, matching: str) -> bool:
    """Whether the last hypothesis, which is unrelated to W, is rejected at 0.05."""
    W, X = design(seed)
    tests = dimension_test(W, X, n_permutations=N_PERMUTATIONS, matching=matching, random_state=seed)
    return bool(tests.pvalue[-1] <= 0.05)


def power(snr: float, seed: int, matching: str) -> float:
    """Share of the columns of four factors that are significant after adjustment, with noise on the features."""
    X = simulate.factorial([3, 3, 3, 3])
    noisy = simulate.add_feature_noise(X, snr, random_state=seed)
    S = np.maximum(noisy @ noisy.T, 0)
    W = SRF(X.shape[1], random_state=seed, tol=1e-3).fit(S).embedding_
    tests = dimension_test(W, X, n_permutations=500, matching=matching, random_state=seed)
    return float(np.mean(tests.significant))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few data sets, to see that it runs")
    parser.add_argument("--datasets", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    n = 4 if options.quick else options.datasets
    results: dict = {"datasets": n}
    print("| an unrelated hypothesis | joint | separate |\n|---|---|---|")
    parallel = Parallel(options.jobs)
    for design in (beside_true_ones, part_of_three, part_of_nine):
        n_designs = n if design is not part_of_nine else max(n // 3, 2)
        levels = {
            matching: float(np.mean(parallel(delayed(rejects)(design, s, matching) for s in range(n_designs))))
            for matching in ("joint", "separate")
        }
        results[design.__name__] = {"datasets": n_designs, **levels}
        print(f"| {design.__name__} ({n_designs}) | {levels['joint']:.3f} | {levels['separate']:.3f} |", flush=True)
    n_power = max(n // 20, 2)
    for snr in (0.05, 0.1):
        found = {
            matching: float(np.mean(parallel(delayed(power)(snr, s, matching) for s in range(n_power))))
            for matching in ("joint", "separate")
        }
        results[f"power at {snr}"] = {"datasets": n_power, **found}
        print(f"| power, SNR {snr} ({n_power}) | {found['joint']:.2f} | {found['separate']:.2f} |", flush=True)
    path = Path(__file__).parent / "results" / "matching.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
