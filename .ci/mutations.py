"""Break formulas one at a time in a copy of the package; the tests that guard each one have to fail.

python .ci/mutations.py [number ...]

docs/testing.md has the table. A formula that can be broken without a test failing ends this with status 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]


class Mutation(NamedTuple):
    """What is broken: a file, a piece of it, what stands there instead, and the tests that should notice."""

    what: str
    file: str
    right: str
    wrong: str
    tests: str


MUTATIONS = [
    Mutation(
        "the cubic of the scalar step loses x^2",
        "solvers/kernels.py",
        "p = curvature - omega_ii * (s_ii - squared_norm + x * x)",
        "p = curvature - omega_ii * (s_ii - squared_norm)",
        "test_kernels.py",
    ),
    Mutation(
        "listed pairs pull without their weights",
        "solvers/kernels.py",
        "pull = weights[e] * values[e]\n        if pull",
        "pull = values[e]\n        if pull",
        "test_invariants.py",
    ),
    Mutation(
        "ADMM's Z-step forgets the weight in its denominator",
        "solvers/kernels.py",
        "/ (rho + weight)",
        "/ (rho + 1.0)",
        "test_admm.py",
    ),
    Mutation(
        "leakage without the odds of the sampling",
        "selection/calibration.py",
        "odds = grid[dense] / (1 - grid[dense])",
        "odds = grid[dense]",
        "test_calibration.py",
    ),
    Mutation(
        "the pool of pairs is not enlarged by k / (k - 1)",
        "selection/splits.py",
        "sampling * n_folds / (n_folds - 1)",
        "sampling",
        "test_splits.py",
    ),
    Mutation(
        "p-values can be zero",
        "inference/permutations.py",
        "return (1 + np.count_nonzero(null >= observed - TIE, axis=0)) / (1 + len(null))",
        "return np.count_nonzero(null >= observed - TIE, axis=0) / len(null)",
        "test_inference_rsa.py",
    ),
    Mutation(
        "Laplace smoothing adds one answer too few to the denominator",
        "triplets.py",
        "values /= shown + 2 * float(smoothing)",
        "values /= shown + float(smoothing)",
        "test_triplets.py",
    ),
    Mutation(
        "mutual information in natural units",
        "associations.py",
        "information = np.log2(",
        "information = np.log(",
        "test_associations.py",
    ),
    Mutation(
        "the Gaussian kernel without its 1/2",
        "features.py",
        "-0.5 / sigma**2",
        "-1.0 / sigma**2",
        "test_features.py",
    ),
    Mutation(
        "the signal-to-noise ratio as signal over noise",
        "simulate/noise.py",
        "clean.var() * (1 - snr) / snr",
        "clean.var() / snr",
        "test_simulate_designs.py",
    ),
    Mutation(
        "reliability without the Spearman-Brown correction",
        "consensus/reliability.py",
        "return 2.0 * r / (1.0 + np.abs(r))",
        "return r",
        "test_consensus_reliability.py",
    ),
    Mutation(
        "explained variance compares with zero instead of the mean",
        "metrics/variance.py",
        "spread = squares - total**2 / weight",
        "spread = squares",
        "test_metrics.py",
    ),
    Mutation(
        "all rows together follow half of what W^T W pulls",
        "solvers/descents.py",
        "x = 2.0 * gram[k, m]\n",
        "x = gram[k, m]\n",
        "test_kernels.py",
    ),
    Mutation(
        "a row does not see the last of those that moved before it in its block",
        "solvers/kernels.py",
        "for before in range(e):",
        "for before in range(e - 1):",
        "test_kernels.py",
    ),
]


def main() -> None:
    """Break and test."""
    chosen = [int(number) for number in sys.argv[1:]] or range(1, len(MUTATIONS) + 1)
    unnoticed = [number for number in chosen if not is_noticed(number, MUTATIONS[number - 1])]
    if unnoticed:
        sys.exit(f"No test noticed: {', '.join(MUTATIONS[number - 1].what for number in unnoticed)}")


def is_noticed(number: int, mutation: Mutation) -> bool:
    """Whether a test fails on a copy in which the formula is broken, and passes on a copy in which it is not."""
    broken = tested(mutation, mutation.wrong, mutation.tests)
    failed = next((line for line in broken.stdout.splitlines() if line.startswith("FAILED")), None)
    if broken.returncode != 1 or failed is None:
        noticed, said = False, "no test"
    else:
        test = failed.removeprefix("FAILED tests/").split(" - ")[0]
        noticed = tested(mutation, mutation.right, test).returncode == 0
        said = test if noticed else f"{test}, which fails on the right formula too"
    sys.stdout.write(f"{number:2d}. {mutation.what}: {said}\n")
    sys.stdout.flush()
    return noticed


def tested(mutation: Mutation, formula: str, tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests on a copy of the package in which a formula stands in the place of the right one."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for part in ("src", "tests", "pyproject.toml"):
            source = REPOSITORY / part
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, copy / part, ignore=ignored) if source.is_dir() else shutil.copy(source, copy)
        file = copy / "src" / "simdims" / mutation.file
        text = file.read_text(encoding="utf-8")
        assert text.count(mutation.right) == 1, f"{mutation.file} does not hold {mutation.right!r} once"
        file.write_text(text.replace(mutation.right, formula), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"tests/{tests}"]
        environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "NUMBA_CACHE_DIR": str(copy / "numba")}
        return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)


if __name__ == "__main__":
    main()
