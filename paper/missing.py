"""Fig. 2c: recovery from incomplete similarities, by SRF and after imputation."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import r2_score

from paper.figures import (
    ACCENT,
    COLOURS,
    MAIN,
    OTHER,
    QUIET,
    SMALL,
    legend,
    log_ticks,
    mean_and_spread,
    new_figure,
    noise_name,
    tidy,
)
from paper.harness import Cell, Claim, Outcome, Settings, design, run_each, simulate_cell
from simdims import SRF
from simdims.metrics import explained_variance, factor_alignment

BCD, ADMM, KNN, MEDIAN = "SRF (bcd)", "SRF (admm)", "KNN", "median"
METHODS = (BCD, ADMM, KNN, MEDIAN)
SOLVERS, IMPUTATIONS = METHODS[:2], METHODS[2:]

#: Measures and their names.
MEASURES = {
    "explained_variance": "Held-out explained variance",
    "correlation": "Held-out correlation",
    "alignment": "Factor alignment",
}

#: Share of levels that counts as "nearly all".
_NEARLY_ALL = 0.8


def run(settings: Settings) -> Outcome:
    """Remove pairs at random, predict them and recover the dimensions, from few observed pairs to nearly all."""
    n_items, rank = settings.pick((84, 2), (210, 5), (210, 5))
    densities = settings.pick(
        (0.5, 2.0, 20.0),
        (0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0),
        (0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0),
    )
    alphas = settings.pick((0.3,), (0.3,), (0.3, 1.0))
    snrs = settings.pick((1.0,), (1.0, 0.5), (1.0, 0.5))
    n_repeats = settings.pick(1, 3, 10)
    max_iter, inner_iter = settings.pick((50, 5), (200, 10), (200, 50))  # full: the settings of Algorithm 1
    levels: dict[str, tuple] = {"rank": (rank,), "alpha": alphas, "snr": snrs, "density": densities}
    admm = {"max_iter": max_iter, "inner_iter": inner_iter}
    cells = design(settings, n_repeats, levels, n_items=n_items, admm=admm)
    runs = pd.DataFrame(
        {"density": row["density"], "snr": row["snr"], "method": method, **row[method]}
        for row in run_each(settings, "missing", measure, cells)
        for method in METHODS
    )
    tables = {
        f"{words}, {noise_name(snr)}": _by_density(runs[runs["snr"] == snr], key)
        for snr in snrs
        for key, words in MEASURES.items()
    }
    clean = runs[runs["snr"] == 1]
    remarks = [
        f"{n_items} items and {rank} dimensions, so {densities[-1]:g} similarities per parameter are "
        f"{share_observed(densities[-1], n_items, rank):.0%} of the pairs. {n_repeats} data sets per level and alpha "
        f"({' and '.join(f'{alpha:g}' for alpha in alphas)}). bcd with its defaults, admm with at most {max_iter} "
        f"outer iterations of {inner_iter} sweeps. The paper does not report the numbers of items and dimensions.",
        *_on_few_pairs(clean),
        *_on_admm(clean),
    ]
    return Outcome(_claims(settings, clean), tables, remarks, partial(_draw, runs))


def share_observed(density: float, n_items: int, rank: int) -> float:
    """The share of pairs that gives `density` observed similarities for each of the n r loadings."""
    share = density * n_items * rank / (n_items * (n_items - 1) / 2)
    if share > 1:
        raise ValueError(
            f"density must be at most {density / share:g} for {n_items} items of rank {rank}, got {density}."
        )
    return share


def measure(cell: Cell) -> Cell:
    """How well each method predicts the removed pairs of a data set and recovers the dimensions."""
    share = share_observed(cell["density"], cell["n_items"], cell["rank"])
    W, truth, S, seed = simulate_cell({**cell, "observed": share})
    held_out = np.triu(np.isnan(S), k=1)
    solvers = {
        BCD: SRF(cell["rank"], random_state=seed),
        ADMM: SRF(cell["rank"], solver="admm", random_state=seed, **cell["admm"]),
    }
    found = {}
    with warnings.catch_warnings(action="ignore"):
        for method, solver in solvers.items():
            embedding = solver.fit(S).embedding_
            quality = _quality(embedding @ embedding.T, embedding, truth, W, held_out)
            found[method] = {**quality, "fitted": explained_variance(S, embedding)}
        for method in IMPUTATIONS:
            filled = impute(S, method)
            embedding = SRF(cell["rank"], random_state=seed).fit(filled).embedding_
            found[method] = _quality(filled, embedding, truth, W, held_out)
    return found


def impute(S: NDArray[np.float64], method: str) -> NDArray[np.float64]:
    """The similarities with missing values imputed from the nearest items or the medians of columns, symmetrised.

    The imputation ignores the diagonal: no pair is as similar as an item is to itself. An item without observed pairs
    gets zeros in its column.
    """
    pairs = S.copy()
    np.fill_diagonal(pairs, np.nan)
    options = {"keep_empty_features": True}
    imputer = KNNImputer(**options) if method == KNN else SimpleImputer(strategy="median", **options)
    filled = imputer.fit_transform(pairs)
    return np.where(np.isnan(S), (filled + filled.T) / 2, S)


def _quality(predicted: NDArray, embedding: NDArray, truth: NDArray, W: NDArray, held_out: NDArray) -> dict[str, float]:
    true_pairs, predicted_pairs = truth[held_out], predicted[held_out]
    varies = predicted_pairs.std() > 0
    return {
        "explained_variance": float(r2_score(true_pairs, predicted_pairs)),
        "correlation": float(np.corrcoef(true_pairs, predicted_pairs)[0, 1]) if varies else 0.0,
        "alignment": factor_alignment(embedding, W).mean,
    }


def _by_density(runs: pd.DataFrame, key: str) -> pd.DataFrame:
    table = runs.pivot_table(index="density", columns="method", values=key)[list(METHODS)]
    return table.rename_axis(columns=None).rename_axis("observed per parameter").reset_index()


def levels_above(runs: pd.DataFrame, key: str, method: str) -> pd.Series:
    """For every density, whether a method is above both imputations on average."""
    mean = runs.pivot_table(index="density", columns="method", values=key)
    return mean[method] > mean[list(IMPUTATIONS)].max(axis=1)


def _claims(settings: Settings, runs: pd.DataFrame) -> list[Claim]:
    claims = []
    for method in SOLVERS:
        for key, words in MEASURES.items():
            above = levels_above(runs, key, method)
            determined = above[above.index >= 1]
            ours = (
                f"above at {above.sum()} of {len(above)} levels, {determined.sum()} of the {len(determined)} from 1 on"
            )
            if not above.all():
                ours += "; not at " + ", ".join(f"{density:g}" for density in above.index[~above])
            published = "above both imputations at nearly all levels of missingness"
            verdict = settings.verdict(above.mean() >= _NEARLY_ALL)
            claims.append(Claim(f"{words} of {method}, no noise", published, ours, verdict))
    return claims


def _on_few_pairs(runs: pd.DataFrame) -> list[str]:
    """The methods' results at the levels at which SRF explains less than an imputation."""
    above = levels_above(runs, "explained_variance", BCD)
    if above.all():
        return []
    lost = runs[runs["density"].isin(above.index[~above])]
    mean = lost.groupby("method")[list(MEASURES)].mean()
    shown = "; ".join(
        f"{method} {variance:.2f}, {correlation:.2f}, {alignment:.2f}"
        for method, variance, correlation, alignment in mean.loc[list(METHODS)].itertuples(name=None)
    )
    return [
        "Mean explained variance, correlation and alignment at the levels at which SRF (bcd) does not explain more "
        f"than both imputations: {shown}."
    ]


def _on_admm(runs: pd.DataFrame) -> list[str]:
    """The variance of fitted pairs that each solver explains, at the levels at which admm predicts less."""
    mean = runs.pivot_table(index="density", columns="method", values=["explained_variance", "fitted"])
    behind = mean.index[mean["explained_variance", ADMM] < mean["explained_variance", BCD] - 0.05]
    if not len(behind):
        return []
    fitted = ", ".join(
        f"{mean.loc[density, ('fitted', ADMM)]:.3f} and {mean.loc[density, ('fitted', BCD)]:.3f} at {density:g}"
        for density in behind
    )
    return [
        "At the levels at which SRF (admm) predicts less than SRF (bcd), it has not converged: of the variance of the "
        f"observed pairs, the two explain {fitted}."
    ]


def _draw(runs: pd.DataFrame) -> Figure:
    """Fig. 2c, with one row per signal-to-noise ratio; grey if parameters outnumber observations."""
    snrs = sorted(runs["snr"].unique(), reverse=True)
    figure = new_figure(7.2, 0.5 + 1.9 * len(snrs))
    axes = figure.subplots(len(snrs), len(MEASURES), sharex=True, squeeze=False)
    for row, snr in zip(axes, snrs, strict=True):
        for ax, (key, words) in zip(row, MEASURES.items(), strict=True):
            _draw_panel(ax, runs[runs["snr"] == snr], key)
            tidy(ax, "Observed similarities per parameter" if snr == snrs[-1] else "", words)
        row[0].set_title(noise_name(snr), fontsize=SMALL, loc="left", pad=3)
    legend(axes[0, 1], loc="upper left")
    return figure


def _draw_panel(ax: Axes, runs: pd.DataFrame, key: str) -> None:
    fewest, most = runs["density"].min(), runs["density"].max()
    ax.axvspan(0.8 * fewest, 1, color="0.92", linewidth=0, zorder=0)
    ax.axhline(0, color=OTHER, linewidth=0.6, zorder=1)
    for method, marker, colour in zip(METHODS, "os^D", (MAIN, COLOURS[5], ACCENT, QUIET), strict=True):
        part = runs[runs["method"] == method]
        mean_and_spread(ax, part, "density", key, color=colour, label=method, marker=marker)
    log_ticks(ax, [0.2, 0.5, 1, 2, 5, 10, 20])
    ax.set(xlim=(0.8 * fewest, 1.2 * most), ylim=(-0.6 if key == "explained_variance" else -0.05, 1.05))
