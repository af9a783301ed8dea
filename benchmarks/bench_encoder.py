"""DimensionEncoder against oracles: correlations with the true loadings, for many and few items and features.

    python benchmarks/bench_encoder.py [--repeats 5] [--quick]

Features are linear in five Dirichlet dimensions plus noise ("equal"), the same in single precision or sparse, or linear
in six gamma dimensions that they reflect to different degrees, the first not at all, with correlated noise ("unequal").
Columns, all means over dimensions and data sets:

best map      the best linear map if the distribution were known, on 5,000 new items; no encoder can reach it
best penalty  ridge with the penalty of highest correlation, per dimension, on the new items
encoder       the encoder on the new items
cv, best      ridge with the penalty of highest cross-validated correlation, per dimension, on the encoder's folds:
              looked up afterwards, so too high with few items
cv            `scores_`

Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy import sparse  # noqa: E402
from sklearn.model_selection import KFold  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from simdims import DimensionEncoder, simulate  # noqa: E402

#: Penalties of the oracles, relative to the mean eigenvalue; finer and wider than the encoder's.
PENALTIES = np.logspace(-6, 5, 45)
N_NEW = 5000
Array = NDArray[np.float64]


class Data(NamedTuple):
    """Features and loadings of the items of a study and of new items, and the best map's predictions of these."""

    X: Array
    W: Array
    X_new: Array
    W_new: Array
    mapped: Array | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    grid = [(n, d, noise) for n in (50, 100, 300, 1854) for d in (10, 100, 1000) for noise in (0.5, 2.0, 4.0)]
    settings = [("equal", *one) for one in grid]
    settings += [("unequal", n, d, noise) for n in (50, 100, 300) for d in (20, 200) for noise in (0.5, 2.0)]
    settings += [(kind, 100, 100, 2.0) for kind in ("single precision", "sparse")]
    names = ["best map", "best penalty", "encoder", "cv, best", "cv"]
    print("| data | items | features | noise | " + " | ".join(names) + " |\n" + "|---" * (4 + len(names)) + "|")
    for kind, n, d, noise in [("equal", 50, 10, 0.5)] if options.quick else settings:
        rows = [scores(kind, n, d, noise, seed) for seed in range(options.repeats)]
        cells = " | ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
        print(f"| {kind} | {n} | {d} | {noise:g} | {cells} |", flush=True)


def scores(kind: str, n_items: int, n_features: int, noise: float, seed: int) -> list[float]:
    """The columns of the table for one data set."""
    data = unequal(n_items, n_features, noise, seed) if kind == "unequal" else equal(n_items, n_features, noise, seed)
    if kind == "single precision":
        data = data._replace(X=data.X.astype(np.float32), X_new=data.X_new.astype(np.float32))
    if kind == "sparse":
        data = data._replace(X=data.X * (data.X > 1), X_new=data.X_new * (data.X_new > 1), mapped=None)
    form = sparse.csr_array if kind == "sparse" else np.asarray
    encoder = DimensionEncoder(random_state=seed).fit(form(data.X), data.W)
    best = np.max([correlations(p, data.W_new) for p in ridge_path(data.X, data.W, data.X_new)], axis=0)
    gains = np.empty((len(PENALTIES), *data.W.shape))
    for training, held in KFold(5, shuffle=True, random_state=seed).split(data.X):
        path = ridge_path(data.X[training], data.W[training], data.X[held])
        gains[:, held] = path - data.W[training].mean(axis=0)
    best_cv = np.max([correlations(one, data.W) for one in gains], axis=0)
    mapped = np.nan if data.mapped is None else correlations(data.mapped, data.W_new).mean()
    found = correlations(encoder.predict(form(data.X_new)), data.W_new)
    return [float(mapped), *(float(np.mean(one)) for one in (best, found, best_cv, np.nan_to_num(encoder.scores_)))]


def equal(n_items: int, n_features: int, noise: float, seed: int, n_components: int = 5) -> Data:
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(n_items + N_NEW, n_components, alpha=0.3, random_state=seed)
    mixing = rng.normal(size=(n_components, n_features))
    X = W @ mixing + noise * rng.normal(size=(len(W), n_features))
    # Moments of the symmetric Dirichlet distribution with parameter 0.3.
    mean = np.full(n_components, 1 / n_components)
    covariance = (np.diag(mean) - np.outer(mean, mean)) / (0.3 * n_components + 1)
    best = np.linalg.solve(mixing.T @ covariance @ mixing + noise**2 * np.eye(n_features), mixing.T @ covariance)
    mapped = np.maximum(mean + (X - mean @ mixing) @ best, 0.0)
    return Data(X[:n_items], W[:n_items], X[n_items:], W[n_items:], mapped[n_items:])


def unequal(n_items: int, n_features: int, noise: float, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    strengths = 0.4 * np.array([0, 0.3, 0.6, 1, 1.5, 3])
    W = rng.gamma(0.5, 1 / np.sqrt(0.5), size=(n_items + N_NEW, len(strengths)))
    mixing = strengths[:, None] * rng.normal(size=(len(strengths), n_features))
    spread = np.diag(noise * rng.gamma(1.0, size=n_features))
    shared = rng.normal(size=(20, n_features)) * np.logspace(0, -1, n_features)
    X = W @ mixing + rng.normal(size=(len(W), n_features)) @ spread + rng.normal(size=(len(W), 20)) @ shared
    best = np.linalg.solve(mixing.T @ mixing + spread**2 + shared.T @ shared, mixing.T)
    mean = np.full(len(strengths), np.sqrt(0.5))
    mapped = np.maximum(mean + (X - mean @ mixing) @ best, 0.0)
    return Data(X[:n_items], W[:n_items], X[n_items:], W[n_items:], mapped[n_items:])


def ridge_path(X: Array, W: Array, X_new: Array) -> Array:
    """Non-negative predictions (n_penalties, n_items, n_components) of ridge regressions on standardised features."""
    scaler = StandardScaler().fit(X.astype(float))
    left, values, axes = np.linalg.svd(scaler.transform(X.astype(float)), full_matrices=False)
    keep = values > 1e-7 * values[0]
    left, values, axes = left[:, keep], values[keep], axes[keep]
    scores, products = scaler.transform(X_new.astype(float)) @ axes.T, left.T @ (W - W.mean(axis=0))
    penalties = PENALTIES * np.mean(values**2)
    shrunk = [(values / (values**2 + penalty))[:, None] * products for penalty in penalties]
    return np.array([np.maximum(scores @ coef + W.mean(axis=0), 0.0) for coef in shrunk])


def correlations(A: Array, B: Array) -> Array:
    """Correlations of columns; 0 where one is constant."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    size = np.sqrt(np.sum(A**2, axis=0) * np.sum(B**2, axis=0))
    return np.where(size > 0, np.sum(A * B, axis=0) / np.where(size > 0, size, 1.0), 0.0)


if __name__ == "__main__":
    main()
