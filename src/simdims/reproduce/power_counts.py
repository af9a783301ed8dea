"""Shares of true columns found, counted from a power study by column: tables, intervals, curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd

TESTS = ("dimension", "rsa", "combined")
_Z = 1.96


def interval(found: ArrayLike, data_set: ArrayLike) -> tuple[float, float]:
    """The 95% interval of a share: Wilson's, for as many independent columns as the data sets are worth.

    Columns of one data set share their noise. The variance of the share is taken between data sets, and the number of
    columns reduced to that for which the binomial one is the same; to the number of data sets where all or none are
    found.
    """
    values, (labels, place) = np.asarray(found, dtype=np.float64), np.unique(data_set, return_inverse=True)
    n, share = len(values), float(values.mean())
    binomial = share * (1 - share) / n
    if binomial > 0:
        between = float((np.bincount(place, values - share) ** 2).sum()) / n**2
        n_worth = n * binomial / max(between, binomial)
    else:
        n_worth = len(labels)
    spread = _Z**2 / n_worth
    middle = (share + spread / 2) / (1 + spread)
    half = np.sqrt(share * (1 - share) * spread + spread**2 / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def power_table(study: pd.DataFrame) -> pd.DataFrame:
    """A row for each design, noise and test, a column for each ratio; at 0 the share with p <= 0.05."""
    shares = study.assign(share=study["significant"].where(study["snr"] > 0, study["pvalue"] <= 0.05).astype(float))
    table = shares.pivot_table(index=["design", "noise", "test"], columns="snr", values="share", sort=False)
    table = table[sorted(table.columns)]
    table.columns = [f"SNR {snr:g}" for snr in table.columns]
    return table.reset_index().rename(columns={"noise": "noise on"})


def by_variance(study: pd.DataFrame, n_groups: int = 4) -> pd.DataFrame:
    """Power of each test by quartile of the columns' variance, with intervals; of one design, noise and ratio."""
    import pandas as pd

    variance = study.loc[study["test"] == TESTS[0], "variance"].to_numpy()
    edges = np.quantile(variance, np.linspace(0, 1, n_groups + 1))
    group = np.searchsorted(edges[1:-1], study["variance"], side="left")
    rows = []
    for number in range(n_groups):
        for test in TESTS:
            here = study[(group == number) & (study["test"] == test)]
            low, high = interval(here["significant"], here["repeat"])
            rows.append(
                {
                    "SNR": float(study["snr"].iloc[0]),
                    "quartile": number + 1,
                    "variance from": edges[number],
                    "to": edges[number + 1],
                    "test": test,
                    "columns": len(here),
                    "power": float(here["significant"].mean()),
                    "95% from": low,
                    "95% to": high,
                }
            )
    return pd.DataFrame(rows)


def curve(study: pd.DataFrame, **where: str) -> dict[float, float]:
    """Power at every ratio above 0, ascending, of the rows with these values: design, noise, test."""
    chosen = study[study["snr"] > 0]
    for name, value in where.items():
        chosen = chosen[chosen[name] == value]
    power = chosen.groupby("snr")["significant"].mean()
    return dict(zip(power.index.to_numpy().tolist(), power.to_numpy().tolist(), strict=True))


def advantage(study: pd.DataFrame, design: str, noise: str, snrs: tuple[float, float]) -> tuple[float, float]:
    """Power of the dimension test minus that of RSA over a range of ratios, and its standard error over repeats."""
    chosen = study[(study["design"] == design) & (study["noise"] == noise) & study["snr"].between(*snrs)]
    power = chosen.groupby(["repeat", "test"])["significant"].mean().unstack()
    difference = power["dimension"].to_numpy() - power["rsa"].to_numpy()
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def ratio_reaching(power: dict[float, float], share: float) -> float:
    """The lowest ratio at which a curve has this power, on a line between its points; infinite where it never has.

    It is the first ratio of the curve where power is as large there already.
    """
    snrs, values = list(power), list(power.values())
    above = [place for place, value in enumerate(values) if value >= share]
    if not above:
        return float("inf")
    last, before = above[0], max(above[0] - 1, 0)
    return float(np.interp(share, [values[before], values[last]], [snrs[before], snrs[last]]))
