"""Supplement, "Identifiability when r is misspecified": the error of dimensions fitted with a wrong rank.

E|W* - W2 P|^2 / E|W*|^2 >= (1 - (r2 / r*)^(1/4))^2, with the best order P of the columns and zeros for missing ones.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from paper.figures import ACCENT, MAIN, MARKS, QUIET, TINY, legend, new_figure, noise_name, tidy, whole_ticks
from paper.harness import Cell, Claim, Outcome, Settings, run_each
from simdims import SRF, simulate

_ALPHA = 0.3
_TOL, _MAX_ITER = 1e-5, 1000
#: Largest relative difference at which the measured |W2|^2 / |W*|^2 counts as the derived one.
_CLOSE = 0.05


def run(settings: Settings) -> Outcome:
    """Fit simulated similarities with too few and too many dimensions."""
    n_items, true_rank = settings.pick((40, 4), (100, 8), (150, 8))
    ranks = settings.pick((2, 3, 4, 5, 6), (1, 2, 4, 6, 7, 8, 9, 10, 12, 14, 16), tuple(range(1, 17)))
    snrs, seeds = settings.pick((1.0,), (1.0, 0.5), (1.0, 0.5)), settings.seeds(2, 6, 20)
    cells = [
        {"n_items": n_items, "true_rank": true_rank, "rank": rank, "snr": snr, "seed": seed}
        for seed in seeds
        for snr in snrs
        for rank in sorted(ranks, reverse=True)
    ]
    table = summarise(pd.DataFrame(run_each(settings, "misspecified-rank", measure, cells)))
    tables = {
        "Without noise" if snr == 1 else f"SNR {snr:g}": table[table["snr"] == snr].drop(columns=["snr", "true rank"])
        for snr in snrs
    }
    clean = table[table["snr"] == 1.0].set_index("dimensions")
    most = clean.index.max()
    remarks = [
        f"Simulated: {n_items} items, {true_rank} dimensions, Dirichlet alpha {_ALPHA:g}, {len(seeds)} data sets, one "
        "fit from a random start for each number. W* is the truth; errors are means over data sets, divided by the "
        "mean of |W*|^2.",
        f"Without noise, the squared norm ratio at {most} dimensions is {clean.loc[most, 'squared norm, ratio']:.2f}, "
        f"not {clean.loc[most, 'derived ratio']:.2f}.",
    ]
    return Outcome(_claims(table, settings), tables, remarks, partial(_draw, table))


def measure(cell: Cell) -> Cell:
    """One data set, one fit: |W* - W2 P|^2, |W*|^2, |W2|^2, and the squared misfit as a share of |S|^2."""
    W = simulate.dirichlet(cell["n_items"], cell["true_rank"], alpha=_ALPHA, random_state=cell["seed"])
    S = simulate.add_noise(W @ W.T, cell["snr"], random_state=cell["seed"])
    srf = SRF(cell["rank"], tol=_TOL, max_iter=_MAX_ITER, random_state=cell["seed"])
    # Superfluous dimensions keep shrinking long after the error has settled.
    with warnings.catch_warnings(action="ignore"):
        found = srf.fit(S).embedding_
    return {
        "error": squared_distance(W, found),
        "true_norm": float(np.sum(W**2)),
        "norm": float(np.sum(found**2)),
        "misfit": float(np.sum((S - found @ found.T) ** 2) / np.sum(S**2)),
    }


def squared_distance(true: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    """|W* - W2 P|^2 for the best order P of the columns; the narrower matrix gets columns of zeros."""
    width = max(true.shape[1], found.shape[1])
    wide_true, wide_found = (np.pad(W, ((0, 0), (0, width - W.shape[1]))) for W in (true, found))
    rows, columns = linear_sum_assignment(wide_true.T @ wide_found, maximize=True)
    return float(np.sum((wide_true[:, rows] - wide_found[:, columns]) ** 2))


def lower_bound(rank: float, true_rank: float) -> float:
    """(1 - (r2 / r*)^(1/4))^2."""
    return float((1 - (rank / true_rank) ** 0.25) ** 2)


def summarise(fits: pd.DataFrame) -> pd.DataFrame:
    """Ratios of means over data sets for each number of dimensions, next to those the paper derives."""
    rows = []
    for _, same in fits.groupby([-fits["snr"], "true_rank", "rank"]):
        true_rank, rank = int(same["true_rank"].iloc[0]), int(same["rank"].iloc[0])
        true_norm = same["true_norm"].mean()
        errors = same["error"] / true_norm
        rows.append(
            {
                "snr": same["snr"].iloc[0],
                "true rank": true_rank,
                "dimensions": rank,
                "error": errors.mean(),
                "standard deviation": errors.std(ddof=1),
                "bound": lower_bound(rank, true_rank),
                "squared norm, ratio": same["norm"].mean() / true_norm,
                "derived ratio": float(np.sqrt(rank / true_rank)),
                "misfit": same["misfit"].mean(),
            }
        )
    return pd.DataFrame(rows)


def is_monotone(table: pd.DataFrame) -> bool:
    """Whether the mean error grows with the distance to the true number of dimensions, on both sides of it."""
    for _, one in table.groupby("snr"):
        errors, true_rank = one.set_index("dimensions")["error"], one["true rank"].iloc[0]
        if (errors[errors.index <= true_rank].diff().dropna() >= 0).any():
            return False
        if (errors[errors.index >= true_rank].diff().dropna() <= 0).any():
            return False
    return True


def _claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    wrong = table[table["dimensions"] != table["true rank"]]
    excess = wrong["error"] / wrong["bound"]
    right = table[table["dimensions"] == table["true rank"]]
    reached = wrong["snr"].map(right.set_index("snr")["error"])
    off = (table["squared norm, ratio"] / table["derived ratio"] - 1).abs()
    worst = table.iloc[int(np.argmax(off))]
    errors = ", ".join(f"{error:.3f} (SNR {snr:g})" for error, snr in zip(right["error"], right["snr"], strict=True))
    return [
        Claim(
            "Relative error of the dimensions, compared with the lower bound",
            "at least (1 - (r2 / r*)^(1/4))^2",
            f"{excess.min():,.0f} to {excess.max():,.0f} times the bound",
            bool((wrong["error"] >= wrong["bound"]).all()),
        ),
        Claim(
            "Error when the number is wrong",
            "strictly positive whenever r2 is not r*",
            f"{wrong['error'].min():.3f} to {wrong['error'].max():.3f}; with the right number {errors}",
            settings.verdict((wrong["error"] > reached).all()),
        ),
        Claim(
            "Growth of the error with the distance of r2 from r*",
            "monotone in |r2 - r*|",
            "monotone on both sides" if is_monotone(table) else "not monotone",
            settings.verdict(is_monotone(table)),
        ),
        Claim(
            "|W2|^2 relative to |W*|^2",
            "sqrt(r2 / r*), by the assumptions",
            f"{worst['squared norm, ratio']:.2f} instead of the derived {worst['derived ratio']:.2f} in the worst case "
            f"({worst['dimensions']:.0f} dimensions, SNR {worst['snr']:g})",
            bool(off.max() < _CLOSE),
        ),
    ]


def _draw(table: pd.DataFrame) -> Figure:
    """The error by |r2 - r*| with its bound for each noise level, and the squared norm."""
    snrs = sorted(table["snr"].unique(), reverse=True)
    figure = new_figure(7.0, 2.4)
    *panels, norms = figure.subplots(1, len(snrs) + 1)
    top = 1.05 * float((table["error"] + table["standard deviation"]).max())
    for ax, snr in zip(panels, snrs, strict=True):
        _draw_errors(ax, table[table["snr"] == snr])
        ax.set_ylim(-0.02 * top, top)
        ax.set_title(noise_name(snr), fontsize=TINY)
        tidy(ax, "|r2 - r*|", "Relative error of W" if snr == snrs[0] else "")
        whole_ticks(ax)
    legend(panels[0], loc="upper left")
    for snr, colour in zip(snrs, (MAIN, ACCENT), strict=False):
        one = table[table["snr"] == snr]
        norms.plot(one["dimensions"], one["squared norm, ratio"], "o-", color=colour, label=noise_name(snr), **MARKS)
    one = table[table["snr"] == snrs[0]]
    norms.plot(one["dimensions"], one["derived ratio"], ":", color=QUIET, linewidth=1, label="sqrt(r2 / r*)")
    norms.axvline(one["true rank"].iloc[0], color=QUIET, linewidth=0.6, linestyle="--")
    tidy(norms, "Fitted dimensions r2", "Squared norm of W2, relative")
    whole_ticks(norms)
    legend(norms)
    return figure


def _draw_errors(ax: Axes, table: pd.DataFrame) -> None:
    difference = table["dimensions"] - table["true rank"]
    for name, is_part, colour in (("too few", difference <= 0, ACCENT), ("too many", difference >= 0, MAIN)):
        part = table[is_part].assign(distance=difference.abs()).sort_values("distance")
        ax.errorbar(
            part["distance"],
            part["error"],
            part["standard deviation"],
            fmt="o-",
            elinewidth=0.6,
            color=colour,
            label=f"{name} dimensions",
            **MARKS,
        )
        ax.plot(part["distance"], part["bound"], ":", color=colour, linewidth=1, label=f"bound, {name}")
