"""Fig. 2a, b: recovery of the dimensions behind similarities, by complexity and noise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from simdims.metrics import entropy, explained_variance, factor_alignment, hoyer_sparsity
from simdims.reproduce.frame import Cell, Claim, Outcome, Settings, run_each
from simdims.reproduce.simulated import design, fit_seed, simulate_cell, verdict, without_warnings
from simdims.srf import SRF

if TYPE_CHECKING:
    import pandas as pd

#: Up to here complexity is low or moderate, and from there on dimensions are diffuse.
MODERATE, DIFFUSE = 1.0, 10.0

_SNRS = (1.0, 0.7, 0.5, 0.3)
_N_ROTATIONS = 20


def run(settings: Settings) -> Outcome:
    """Fit SRF at the true rank for every alpha and signal-to-noise ratio, and compare with the truth."""
    import pandas as pd

    from simdims.reproduce.recovery_figure import draw

    n_items = settings.pick(60, 150, 200)
    ranks = settings.pick((5,), (5,), (5, 10))
    alphas = settings.pick(
        (0.1, 1.0, 100.0), (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0), (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
    )
    snrs = settings.pick((1.0, 0.3), _SNRS, _SNRS)
    n_repeats = settings.pick(2, 5, 20)
    levels = {"rank": ranks, "alpha": [float(alpha) for alpha in alphas], "snr": snrs}
    cells = design(settings, n_repeats, levels, n_items=n_items)
    runs = pd.DataFrame(run_each(settings, "recovery", measure, cells))
    tables: dict[str, pd.DataFrame] = {}
    for rank in ranks:
        tables |= _tables(runs[runs["rank"] == rank], f"{rank} dimensions")
    remarks = [
        f"{n_items} items, {' and '.join(map(str, ranks))} dimensions, {n_repeats} data sets for every alpha and "
        "ratio, one fit each from a random start; the paper does not say how many of each it had.",
        _on_rotations(runs[runs["rank"] == ranks[0]], ranks[0]),
        _on_clipping(runs[runs["rank"] == ranks[0]]),
    ]
    figure = partial(draw, runs[runs["rank"] == ranks[0]], n_items=min(n_items, 60), rank=ranks[0], seed=settings.seed)
    return Outcome(_claims(settings, runs), tables, remarks, figure)


def measure(cell: Cell) -> Cell:
    """What the true embedding of a data set is like, and how much of it a fit at the true rank finds."""
    W, truth, S = simulate_cell(cell)
    with without_warnings():
        found = SRF(cell["rank"], random_state=fit_seed(cell)).fit(S).embedding_
    pairs = np.triu_indices(len(S), 1)
    return {
        "hoyer_sparsity": hoyer_sparsity(W),
        "entropy": entropy(W),
        "alignment": factor_alignment(found, W).mean,
        "rotated": alignment_of_rotations(W, np.random.RandomState(fit_seed(cell))),
        "explained_variance": explained_variance(truth, found),
        "squared_correlation": float(np.corrcoef(truth[pairs], (found @ found.T)[pairs])[0, 1] ** 2),
        "raised": float((S - truth)[pairs].mean()),
    }


def alignment_of_rotations(W: np.ndarray, rng: np.random.RandomState, n_rotations: int = _N_ROTATIONS) -> float:
    """Mean factor alignment of W Q with W for random orthogonal Q: what the right space alone is worth.

    W Q reconstructs the similarities as well as W does, and its columns mean nothing. They are turned so that their
    means are positive, as those of a non-negative embedding are.
    """
    from scipy.stats import ortho_group

    rotated = (W @ Q for Q in ortho_group.rvs(W.shape[1], size=n_rotations, random_state=rng))
    return float(np.mean([factor_alignment(X * np.sign(X.mean(axis=0)), W).mean for X in rotated]))


def _claims(settings: Settings, runs: pd.DataFrame) -> list[Claim]:
    properties = runs.groupby("alpha")[["hoyer_sparsity", "entropy"]].mean()
    clean = runs[runs["snr"] == 1]
    moderate = clean.loc[clean["alpha"] <= MODERATE, "alignment"].mean()
    diffuse = clean.loc[clean["alpha"] >= DIFFUSE, "alignment"].mean()
    by_snr = runs[runs["alpha"] <= MODERATE].groupby("snr")["alignment"].mean()
    lowest = by_snr.index.min()
    first, last = properties.iloc[0], properties.iloc[-1]
    return [
        Claim(
            "Embeddings by alpha",
            "high Hoyer sparsity and low entropy at low alpha, diffuse at high alpha",
            f"sparsity {first['hoyer_sparsity']:.2f} to {last['hoyer_sparsity']:.2f}, entropy {first['entropy']:.2f} "
            f"to {last['entropy']:.2f} from alpha {properties.index[0]:g} to {properties.index[-1]:g}",
            verdict(
                settings,
                properties["hoyer_sparsity"].is_monotonic_decreasing and properties["entropy"].is_monotonic_increasing,
            ),
        ),
        Claim(
            f"Factor alignment at low and moderate complexity (alpha up to {MODERATE:g}), no noise",
            "accurate",
            f"{moderate:.3f}",
            verdict(settings, moderate > 0.9),
        ),
        Claim(
            f"Factor alignment of diffuse dimensions (alpha from {DIFFUSE:g}), no noise",
            "declines as dimensions become more diffuse and overlapping",
            f"{diffuse:.3f}",
            verdict(settings, diffuse < moderate - 0.1),
        ),
        Claim(
            f"Factor alignment with noise (alpha up to {MODERATE:g})",
            "degrades only modestly as the signal-to-noise ratio decreases",
            ", ".join(f"{value:.3f} at {snr:g}" for snr, value in by_snr.iloc[::-1].items()),
            verdict(settings, by_snr[1.0] - by_snr[lowest] < 0.1),
        ),
    ]


def _tables(runs: pd.DataFrame, name: str) -> dict[str, pd.DataFrame]:
    """Properties and alignment by alpha; explained variance by alpha; a column for each ratio."""
    properties = runs.groupby("alpha")[["hoyer_sparsity", "entropy"]].mean()
    alignment = _by_snr(runs, "alignment")
    rotated = runs.groupby("alpha")["rotated"].mean().rename("any rotation")
    recovery = properties.join(alignment).join(rotated).reset_index()
    names = {"hoyer_sparsity": "Hoyer sparsity"}
    return {
        f"Properties and factor alignment, {name}": recovery.rename(columns=names),
        f"Explained variance of the true similarities, {name}": _by_snr(runs, "explained_variance").reset_index(),
    }


def _by_snr(runs: pd.DataFrame, what: str) -> pd.DataFrame:
    table = runs.pivot_table(index="alpha", columns="snr", values=what).iloc[:, ::-1]
    return table.rename(columns=lambda snr: f"SNR {snr:g}").rename_axis(columns=None)


def _on_rotations(runs: pd.DataFrame, rank: int) -> str:
    diffuse = runs[(runs["alpha"] >= DIFFUSE) & (runs["snr"] == 1)]
    return (
        f"The alignment does not fall to zero: where dimensions are diffuse (alpha from {DIFFUSE:g}, {rank} "
        f"dimensions), fits still explain {diffuse['explained_variance'].mean():.1%} of the variance, so that their "
        f"columns span the right space, and columns that are a random rotation of the true ones have an alignment of "
        f"{diffuse['rotated'].mean():.2f}; those of fits have {diffuse['alignment'].mean():.2f}."
    )


def _on_clipping(runs: pd.DataFrame) -> str:
    alpha, snr = runs["alpha"].min(), runs["snr"].min()
    hardest = runs[(runs["alpha"] == alpha) & (runs["snr"] == snr)]
    return (
        "Explained variance falls with noise where dimensions are sparse, although the dimensions are found: at alpha "
        f"{alpha:g} and SNR {snr:g} it is {hardest['explained_variance'].mean():.2f}, while the squared correlation of "
        f"true and recovered similarities is {hardest['squared_correlation'].mean():.2f}. Clipping at zero raises the "
        f"similarities, by {hardest['raised'].mean():.2f} on average there, and a fit follows."
    )
