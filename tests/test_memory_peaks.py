"""How many n x n arrays a fit holds beside its input, measured as the peak of a process of its own."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from simdims import SRF, Similarity, from_features, simulate

N_ITEMS = 3000

# Blocks of rows and the embedding: what is no matrix of all pairs, in such matrices.
SMALL = 0.6

MOST_ARRAYS = {
    "complete": 0,
    "complete, float32": 0,
    "complete, integers": 1,  # the copy in floats
    "complete, unequal triangles": 1,  # the copy in which they are equal
    "complete, diagonal unknown": 1,
    "observed, 70%": 2,
    "observed, 70%, float32": 2,
    "observed, 70%, spectral": 2,
    "observed, 10%": 2,
    "observed, 90%, two dimensions": 2,
    "weighted": 2,
    "bounds": 2,
    "admm": 2,
    "sparse, missing": 0,
    "sparse, zero": 0,
    "sparse, 0.03": 0,
    "factors": 0,
    "landmarks": 0,
    "linear kernel": 1,  # the matrix that is asked for
    "rbf kernel": 1.5,  # and the distances of all pairs, for their median
}

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is read from Linux' /proc"
)


@needs_proc
@pytest.mark.parametrize("case", MOST_ARRAYS)
def test_a_fit_holds_no_more_matrices_than_promised(case):
    done = subprocess.run([sys.executable, __file__, case], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MOST_ARRAYS[case] + SMALL


def measure(case: str) -> float:
    """The peak of a fit or a construction above the memory before it, in matrices of all pairs."""
    warnings.simplefilter("ignore")
    work(case, make(case, 200))  # imports and compiles
    if "complete" in case or case == "factors":
        work(case, make(case, 1100))  # large enough to start from a sample
    data = make(case, N_ITEMS)
    itemsize = 4 if "float32" in case else 8
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here
    before = bytes_of("VmRSS")
    work(case, data)
    return (bytes_of("VmHWM") - before) / (itemsize * N_ITEMS**2)


def work(case, data) -> None:
    if case in ("linear kernel", "rbf kernel"):
        from_features(data)
    elif case == "landmarks":
        SRF(8, max_iter=12, random_state=0).fit(from_features(data, implicit=True, n_landmarks=100))
    else:
        options = {"admm": {"solver": "admm"}, "bounds": {"bounds": (0, 1)}}.get(case, {})
        options |= {"init": "spectral"} if "spectral" in case else {}
        n_components = 2 if "two dimensions" in case else 8
        SRF(n_components, max_iter=12, tol=0.0, random_state=0, **options).fit(data)


def make(case, n_items):
    W = simulate.dirichlet(n_items, 8, alpha=0.3, random_state=0)
    if case.startswith("sparse"):
        absent = case.removeprefix("sparse, ")
        return Similarity(few_pairs(W), absent=0.03 if absent == "0.03" else absent)
    if case == "factors":
        return Similarity.from_factors(W)
    if case == "linear kernel":
        return W
    if case in ("rbf kernel", "landmarks"):
        return W - 0.1
    S = np.empty((n_items, n_items), np.float32 if "float32" in case else np.float64)
    np.matmul(W, W.T, out=S, casting="same_kind")
    S = np.minimum(S, S.T)
    if case == "complete, integers":
        return (100 * S).astype(np.int64)
    if case == "complete, unequal triangles":
        S[0, 1] = np.nan
    if case == "complete, diagonal unknown":
        np.fill_diagonal(S, np.nan)
    share = {"observed, 10%": 0.1, "observed, 90%, two dimensions": 0.9}.get(case, 0.7)
    if not case.startswith("complete"):
        S = simulate.mask_pairs(S, share, random_state=0)
    if case == "weighted":
        counts = np.random.default_rng(0).integers(1, 6, size=S.shape).astype(np.float64)
        return Similarity(S, weights=np.maximum(counts, counts.T))
    return S


def few_pairs(W):
    rng = np.random.default_rng(0)
    i = rng.integers(len(W), size=20 * len(W))
    j = (i + rng.integers(1, len(W), size=len(i))) % len(W)
    both = sparse.coo_array((np.ones(len(i)), (np.minimum(i, j), np.maximum(i, j))), shape=(len(W), len(W))).tocsr()
    both.data[:] = np.einsum("ek,ek->e", W[np.repeat(np.arange(len(W)), np.diff(both.indptr))], W[both.indices])
    return sparse.csr_array(both + both.T + sparse.diags_array(np.einsum("ik,ik->i", W, W)))


def bytes_of(field: str) -> int:
    """VmRSS (now) or VmHWM (the peak since the last reset) of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    print(measure(sys.argv[1]))  # noqa: T201
