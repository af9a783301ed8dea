"""Supplement, "Identifiability when r is misspecified": the error of dimensions fitted in a wrong number.

E|W* - W2 P|^2 / E|W*|^2 >= (1 - (r2 / r*)^(1/4))^2, with the best order P of the columns and zeros for missing ones.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from simdims import simulate
from simdims._parallel import seed_of
from simdims.reproduce.frame import Cell, Claim, Outcome, Settings, run_each
from simdims.srf import SRF

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_ALPHA = 0.3
_TOL, _MAX_ITER = 1e-5, 1000
#: The measured |W2|^2 / |W*|^2 counts as the derived one up to this relative difference.
_CLOSE = 0.05


def run(settings: Settings) -> Outcome:
    """Fit simulated similarities with too few and too many dimensions."""
    n_items, true_rank = settings.pick((40, 4), (100, 8), (150, 8))
    ranks = settings.pick((2, 3, 4, 5, 6), (1, 2, 4, 6, 7, 8, 9, 10, 12, 14, 16), tuple(range(1, 17)))
    snrs, n_seeds = settings.pick((1.0,), (1.0, 0.5), (1.0, 0.5)), settings.pick(2, 6, 20)
    cells = [
        {"n_items": n_items, "true_rank": true_rank, "rank": rank, "snr": snr, "seed": seed}
        for seed in (seed_of(settings.seed, number) for number in range(n_seeds))
        for snr in snrs
        for rank in sorted(ranks, reverse=True)
    ]
    fits = run_each(settings, "misspecified-rank", measure, cells, stage="fits")
    table = summarise(fits)
    headings = {1.0: "Without noise"}
    return Outcome(
        claims=_claims(table, settings),
        tables={
            headings.get(snr, f"SNR {snr:g}"): table[table["snr"] == snr].drop(columns=["snr", "true rank"])
            for snr in snrs
        },
        remarks=_remarks(table, n_items, true_rank, n_seeds),
        draw=partial(_draw, table),
    )


def measure(cell: Cell) -> Cell:
    """One data set, one fit: |W* - W2 P|^2, |W*|^2, |W2|^2, and the squared misfit as a share of |S|^2."""
    W = simulate.dirichlet(cell["n_items"], cell["true_rank"], alpha=_ALPHA, random_state=cell["seed"])
    S = simulate.add_noise(W @ W.T, cell["snr"], random_state=cell["seed"])
    srf = SRF(cell["rank"], tol=_TOL, max_iter=_MAX_ITER, random_state=cell["seed"])
    with warnings.catch_warnings():
        # Superfluous dimensions shrink for ever; the error is settled long before.
        warnings.simplefilter("ignore")
        found = srf.fit(S).embedding_
    return {
        "error": squared_distance(W, found),
        "true_norm": float(np.sum(W**2)),
        "norm": float(np.sum(found**2)),
        "misfit": float(np.sum((S - found @ found.T) ** 2) / np.sum(S**2)),
    }


def squared_distance(true: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    """|W* - W2 P|^2 with the order P of the columns that makes it smallest; the narrower one gets columns of zeros."""
    width = max(true.shape[1], found.shape[1])
    wide_true, wide_found = (np.pad(W, ((0, 0), (0, width - W.shape[1]))) for W in (true, found))
    rows, columns = linear_sum_assignment(wide_true.T @ wide_found, maximize=True)
    return float(np.sum((wide_true[:, rows] - wide_found[:, columns]) ** 2))


def lower_bound(rank: float, true_rank: float) -> float:
    """(1 - (r2 / r*)^(1/4))^2."""
    return float((1 - (rank / true_rank) ** 0.25) ** 2)


def summarise(fits: list[Cell]) -> pd.DataFrame:
    """For each number of dimensions the ratios of means over data sets, beside what the paper derives."""
    import pandas as pd

    rows = []
    for snr, true_rank, rank in sorted({(-fit["snr"], fit["true_rank"], fit["rank"]) for fit in fits}):
        same = [f for f in fits if (-f["snr"], f["true_rank"], f["rank"]) == (snr, true_rank, rank)]
        true_norm = np.mean([fit["true_norm"] for fit in same])
        errors = np.array([fit["error"] for fit in same]) / true_norm
        rows.append(
            {
                "snr": -snr,
                "true rank": true_rank,
                "dimensions": rank,
                "error": float(errors.mean()),
                "standard deviation": float(errors.std(ddof=1)),
                "bound": lower_bound(rank, true_rank),
                "squared norm, ratio": float(np.mean([fit["norm"] for fit in same]) / true_norm),
                "derived ratio": float(np.sqrt(rank / true_rank)),
                "misfit": float(np.mean([fit["misfit"] for fit in same])),
            }
        )
    return pd.DataFrame(rows)


def is_monotone(table: pd.DataFrame) -> bool:
    """Whether the mean error grows with the distance to the true number of dimensions, on both sides of it."""
    for _, one in table.groupby("snr"):
        errors = one.set_index("dimensions")["error"]
        true_rank = int(one["true rank"].iloc[0])
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
    smoke = settings.size == "smoke"
    return [
        Claim(
            "relative error of the dimensions against the lower bound",
            "at least (1 - (r2 / r*)^(1/4))^2",
            f"{excess.min():,.0f} to {excess.max():,.0f} times the bound",
            bool((wrong["error"] >= wrong["bound"]).all()),
        ),
        Claim(
            "the error where the number is wrong",
            "strictly positive whenever r2 is not r*",
            f"{wrong['error'].min():.3f} to {wrong['error'].max():.3f}; with the right number "
            + _each(right["error"], right["snr"]),
            bool((wrong["error"] > reached).all()) if not smoke else None,
        ),
        Claim(
            "its growth with the distance of r2 from r*",
            "monotone in |r2 - r*|",
            "monotone on both sides" if is_monotone(table) else "not monotone",
            is_monotone(table) if not smoke else None,
        ),
        Claim(
            "|W2|^2 relative to |W*|^2",
            "sqrt(r2 / r*), by the assumptions",
            f"{worst['squared norm, ratio']:.2f} where {worst['derived ratio']:.2f} was derived, at the farthest "
            f"({worst['dimensions']:.0f} dimensions, SNR {worst['snr']:g})",
            bool(off.max() < _CLOSE),
        ),
    ]


def _each(values: pd.Series, snrs: pd.Series) -> str:
    return ", ".join(f"{value:.3f} (SNR {snr:g})" for value, snr in zip(values, snrs, strict=True))


def _remarks(table: pd.DataFrame, n_items: int, true_rank: int, n_seeds: int) -> list[str]:
    clean = table[table["snr"] == 1.0].set_index("dimensions")
    most = clean.index.max()
    return [
        f"Simulated: {n_items} items, {true_rank} dimensions, Dirichlet alpha {_ALPHA:g}, {n_seeds} data sets, one fit "
        "from a random start for each number. The paper proves the bound and shows no simulation of it. W* is the "
        "truth here; errors are means over data sets, divided by the mean of |W*|^2.",
        "The bound compares the lengths of W* and W2 alone, which says little about their columns: this is why errors "
        "are many times larger. With too few dimensions the first assumption fails, that both fit S equally well "
        "(column 'misfit').",
        "The assumptions cannot hold together where r2 is not r*: equal expectations of W W^T (A2) have equal traces, "
        "and these are the expectations of |W|^2, while equal columns that hardly overlap (A3, A5) make the ratio of "
        "the two sqrt(r2 / r*). Without noise fits with too many dimensions meet A1 and A2, so that the ratio is 1 (at "
        f"{most} dimensions {clean.loc[most, 'squared norm, ratio']:.2f}, not {clean.loc[most, 'derived ratio']:.2f}): "
        "superfluous columns share a true one, w, as cos(t) w and sin(t) w, or are zero. The splitting is what the "
        "error measures there. A fit that left them at zero would have the error 0, below the bound.",
    ]


def _draw(table: pd.DataFrame) -> Figure:
    """The error by |r2 - r*| with its bound, for each noise; and the squared norm."""
    from simdims.plots._style import ACCENT, MAIN, QUIET, key, several_axes, tidy, tiny, whole_ticks

    snrs = sorted(table["snr"].unique(), reverse=True)
    axes = several_axes(None, len(snrs) + 1, size=(7.0, 2.4), columns=len(snrs) + 1)
    top = 1.05 * float((table["error"] + table["standard deviation"]).max())
    for ax, snr in zip(axes, snrs, strict=False):
        one = table[table["snr"] == snr]
        for few, colour, name in ((True, ACCENT, "too few"), (False, MAIN, "too many")):
            part = one[(one["dimensions"] <= one["true rank"]) if few else (one["dimensions"] >= one["true rank"])]
            distance = (part["dimensions"] - part["true rank"]).abs()
            style: dict[str, Any] = {"color": colour, "linewidth": 1}
            ax.errorbar(
                distance, part["error"], part["standard deviation"], fmt="o-", markersize=2.5, elinewidth=0.6, **style,
                label=f"{name} dimensions",
            )  # fmt: skip
            ax.plot(*_sorted(distance, part["bound"]), linestyle=":", **style, label=f"bound, {name}")
        ax.set_ylim(-0.02 * top, top)
        ax.set_title("No noise" if snr == 1.0 else f"SNR {snr:g}", fontsize=tiny())
        tidy(ax, "|r2 - r*|", "Relative error of W" if snr == snrs[0] else "")
        whole_ticks(ax)
    key(axes[0], loc="upper left")
    last = axes[-1]
    for snr, colour in zip(snrs, (MAIN, ACCENT), strict=False):
        one = table[table["snr"] == snr]
        name = "no noise" if snr == 1.0 else f"SNR {snr:g}"
        ratio = one["squared norm, ratio"]
        last.plot(one["dimensions"], ratio, "o-", color=colour, markersize=2.5, linewidth=1, label=name)
    one = table[table["snr"] == snrs[0]]
    last.plot(one["dimensions"], one["derived ratio"], ":", color=QUIET, linewidth=1, label="sqrt(r2 / r*)")
    last.axvline(one["true rank"].iloc[0], color=QUIET, linewidth=0.6, linestyle="--")
    tidy(last, "Fitted dimensions r2", "Squared norm of W2, relative")
    whole_ticks(last)
    key(last)
    return last.figure


def _sorted(x: pd.Series, y: pd.Series) -> tuple[pd.Series, pd.Series]:
    order = np.argsort(x.to_numpy())
    return x.iloc[order], y.iloc[order]
