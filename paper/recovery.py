"""Fig. 2a, b: recovery of the dimensions underlying similarities, by complexity and noise."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import ortho_group

from paper.figures import (
    ACCENT,
    COLOURS,
    MAIN,
    MARKS,
    QUIET,
    SMALL,
    legend,
    log_ticks,
    mean_and_spread,
    new_figure,
    tidy,
)
from paper.harness import Cell, Claim, Outcome, Settings, design, run_each, simulate_cell
from simdims import SRF, simulate
from simdims.metrics import entropy, explained_variance, factor_alignment, hoyer_sparsity

#: Complexity is low or moderate up to the first alpha, and dimensions are diffuse from the second.
MODERATE, DIFFUSE = 1.0, 10.0

_SNRS = (1.0, 0.7, 0.5, 0.3)
_EXAMPLES = (0.1, 1.0, 100.0)
_N_ROTATIONS = 20


def run(settings: Settings) -> Outcome:
    """Fit SRF at the true rank for every alpha and signal-to-noise ratio, and compare with the truth."""
    n_items, n_repeats = settings.pick(60, 150, 200), settings.pick(2, 5, 20)
    ranks = settings.pick((5,), (5,), (5, 10))
    alphas = settings.pick(
        (0.1, 1.0, 100.0),
        (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0),
        (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    )
    levels = {"rank": ranks, "alpha": alphas, "snr": settings.pick((1.0, 0.3), _SNRS, _SNRS)}
    cells = design(settings, n_repeats, levels, n_items=n_items)
    runs = pd.DataFrame(run_each(settings, "recovery", measure, cells))
    tables: dict[str, pd.DataFrame] = {}
    for rank in ranks:
        tables |= _tables(runs[runs["rank"] == rank], f"{rank} dimensions")
    first = runs[runs["rank"] == ranks[0]]
    remarks = [
        f"{n_items} items, {' and '.join(map(str, ranks))} dimensions, {n_repeats} data sets per alpha and ratio, one "
        "fit each from a random start. The paper does not report these numbers.",
        _on_rotations(first, ranks[0]),
        _on_clipping(first),
    ]
    draw = partial(_draw, first, n_items=min(n_items, 60), rank=ranks[0], seed=settings.seed)
    return Outcome(_claims(settings, runs), tables, remarks, draw)


def measure(cell: Cell) -> Cell:
    """Properties of a data set's true embedding, and how much of it a fit at the true rank recovers."""
    W, truth, S, seed = simulate_cell(cell)
    with warnings.catch_warnings(action="ignore"):
        found = SRF(cell["rank"], random_state=seed).fit(S).embedding_
    pairs = np.triu_indices(len(S), 1)
    return {
        "hoyer_sparsity": hoyer_sparsity(W),
        "entropy": entropy(W),
        "alignment": factor_alignment(found, W).mean,
        "rotated": alignment_of_rotations(W, np.random.RandomState(seed)),
        "explained_variance": explained_variance(truth, found),
        "squared_correlation": float(np.corrcoef(truth[pairs], (found @ found.T)[pairs])[0, 1] ** 2),
        "raised": float((S - truth)[pairs].mean()),
    }


def alignment_of_rotations(W: np.ndarray, rng: np.random.RandomState, n_rotations: int = _N_ROTATIONS) -> float:
    """Mean factor alignment of W Q with W for random orthogonal Q: the alignment expected from the correct subspace.

    W Q reconstructs the similarities as well as W. Its columns are flipped to have positive means, like those of a
    non-negative embedding.
    """
    rotated = (W @ Q for Q in ortho_group.rvs(W.shape[1], size=n_rotations, random_state=rng))
    return float(np.mean([factor_alignment(X * np.sign(X.mean(axis=0)), W).mean for X in rotated]))


def _claims(settings: Settings, runs: pd.DataFrame) -> list[Claim]:
    properties = runs.groupby("alpha")[["hoyer_sparsity", "entropy"]].mean()
    clean = runs[runs["snr"] == 1]
    moderate = clean.loc[clean["alpha"] <= MODERATE, "alignment"].mean()
    diffuse = clean.loc[clean["alpha"] >= DIFFUSE, "alignment"].mean()
    by_snr = runs[runs["alpha"] <= MODERATE].groupby("snr")["alignment"].mean()
    first, last = properties.iloc[0], properties.iloc[-1]
    is_ordered = properties["hoyer_sparsity"].is_monotonic_decreasing and properties["entropy"].is_monotonic_increasing
    return [
        Claim(
            "Embeddings by alpha",
            "high Hoyer sparsity and low entropy at low alpha, diffuse at high alpha",
            f"sparsity {first['hoyer_sparsity']:.2f} to {last['hoyer_sparsity']:.2f}, entropy {first['entropy']:.2f} "
            f"to {last['entropy']:.2f} from alpha {properties.index[0]:g} to {properties.index[-1]:g}",
            settings.verdict(is_ordered),
        ),
        Claim(
            f"Factor alignment at low and moderate complexity (alpha up to {MODERATE:g}), no noise",
            "accurate",
            f"{moderate:.3f}",
            settings.verdict(moderate > 0.9),
        ),
        Claim(
            f"Factor alignment of diffuse dimensions (alpha from {DIFFUSE:g}), no noise",
            "declines as dimensions become more diffuse and overlapping",
            f"{diffuse:.3f}",
            settings.verdict(diffuse < moderate - 0.1),
        ),
        Claim(
            f"Factor alignment with noise (alpha up to {MODERATE:g})",
            "degrades only modestly as the signal-to-noise ratio decreases",
            ", ".join(f"{value:.3f} at {snr:g}" for snr, value in by_snr.iloc[::-1].items()),
            settings.verdict(by_snr[1.0] - by_snr[by_snr.index.min()] < 0.1),
        ),
    ]


def _tables(runs: pd.DataFrame, name: str) -> dict[str, pd.DataFrame]:
    """Properties and alignment by alpha, and explained variance by alpha, with one column per ratio."""
    by_alpha = runs.groupby("alpha")
    properties = by_alpha[["hoyer_sparsity", "entropy"]].mean().rename(columns={"hoyer_sparsity": "Hoyer sparsity"})
    rotated = by_alpha["rotated"].mean().rename("any rotation")
    return {
        f"Properties and factor alignment, {name}": (
            properties.join(_by_snr(runs, "alignment")).join(rotated).reset_index()
        ),
        f"Explained variance of the true similarities, {name}": _by_snr(runs, "explained_variance").reset_index(),
    }


def _by_snr(runs: pd.DataFrame, what: str) -> pd.DataFrame:
    table = runs.pivot_table(index="alpha", columns="snr", values=what).iloc[:, ::-1]
    return table.rename(columns=lambda snr: f"SNR {snr:g}").rename_axis(columns=None)


def _on_rotations(runs: pd.DataFrame, rank: int) -> str:
    diffuse = runs[(runs["alpha"] >= DIFFUSE) & (runs["snr"] == 1)]
    return (
        f"When dimensions are diffuse (alpha from {DIFFUSE:g}, {rank} dimensions), fits explain "
        f"{diffuse['explained_variance'].mean():.1%} of the variance, so their columns span the right space. A random "
        f"rotation of the true columns has an alignment of {diffuse['rotated'].mean():.2f}; fits have "
        f"{diffuse['alignment'].mean():.2f}."
    )


def _on_clipping(runs: pd.DataFrame) -> str:
    alpha, snr = runs["alpha"].min(), runs["snr"].min()
    hardest = runs[(runs["alpha"] == alpha) & (runs["snr"] == snr)]
    return (
        f"At alpha {alpha:g} and SNR {snr:g}, explained variance is {hardest['explained_variance'].mean():.2f}, while "
        f"the squared correlation of true and recovered similarities is {hardest['squared_correlation'].mean():.2f}. "
        f"Clipping at zero raises the similarities by {hardest['raised'].mean():.2f} on average."
    )


def _draw(runs: pd.DataFrame, *, n_items: int, rank: int, seed: int) -> Figure:
    """Fig. 2a (three embeddings and their similarities) and 2b (properties, recovery, reconstruction)."""
    figure = new_figure(7.2, 2.5)
    examples, curves = figure.subfigures(1, 2, width_ratios=(1, 2.15), wspace=0.03)
    _draw_examples(examples, n_items, rank, seed)
    properties, alignment, variance = curves.subplots(1, 3)
    means = runs.groupby("alpha")[["hoyer_sparsity", "entropy", "rotated"]].mean()
    properties.plot(means.index, means["hoyer_sparsity"], color=MAIN, marker="o", label="Hoyer sparsity", **MARKS)
    properties.plot(means.index, means["entropy"], color=ACCENT, marker="o", label="entropy", **MARKS)
    for snr, colour in zip(sorted(runs["snr"].unique(), reverse=True), COLOURS, strict=False):
        part = runs[runs["snr"] == snr]
        for ax, y in ((alignment, "alignment"), (variance, "explained_variance")):
            mean_and_spread(ax, part, "alpha", y, color=colour, label=f"SNR {snr:g}")
    alignment.plot(
        means.index, means["rotated"], color=QUIET, linewidth=0.8, linestyle=":", label="any rotation", zorder=1
    )
    _finish(properties, "Property of the true W")
    _finish(alignment, "Factor alignment")
    _finish(variance, "Explained variance of true S")
    legend(properties, loc="center right")
    legend(alignment, loc="lower left")
    return figure


def _draw_examples(part: Any, n_items: int, rank: int, seed: int) -> None:
    """Factors above and similarities below, items sorted by their largest dimension."""
    axes = part.subplots(2, len(_EXAMPLES))
    for column, alpha in zip(axes.T, _EXAMPLES, strict=True):
        W = simulate.dirichlet(n_items, rank, alpha=alpha, random_state=seed)
        W = W[np.lexsort((-W.max(axis=1), W.argmax(axis=1)))]
        for ax, values, aspect in zip(column, (W, W @ W.T), ("auto", "equal"), strict=True):
            ax.imshow(values, cmap="Greys", vmin=0, vmax=1, aspect=aspect, interpolation="nearest")
            tidy(ax)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(True)
        column[0].set_title(f"α = {alpha:g}", fontsize=SMALL, pad=3)
    axes[0, 0].set_ylabel("W", fontsize=SMALL)
    axes[1, 0].set_ylabel("S = W Wᵀ", fontsize=SMALL)


def _finish(ax: Axes, label: str) -> None:
    tidy(ax, "Dirichlet α", label)
    log_ticks(ax, [0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1000"])
    ax.set_ylim(0, 1.04)
