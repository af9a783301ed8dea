"""Fig. 3 and Supplement: how often true properties are found by the dimensions of SRF and by RSA."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from paper.figures import ACCENT, MAIN, SECOND, SMALL, TINY, new_figure, tidy
from paper.harness import Claim, Outcome, Settings, is_positive
from simdims import simulate
from simdims.plots import power_curves

SPOSE_FILE = "things/spose_embedding_66d_sorted.txt"
#: The paper's factors of three or more levels, those of its authors' code, and samples of a real embedding.
THREES, MIXED, SPOSE = "3x3x3x3", "2x3x2x4", "SPoSE, 50 x 5"
TESTS = ("dimension", "rsa", "combined")
NOISES = {"features": "Noise on features", "similarities": "Noise on similarities"}

#: The middle range of ratios.
MIDDLE = (0.1, 0.5)
#: Power of RSA and SRF at a ratio of 0.5 with noise on the features, in an independent run.
INDEPENDENT_RUN = {MIXED: (0.08, 0.94), SPOSE: (0.51, 0.80)}
#: Powers closer than this count as equal, and a curve at least this high as full.
CLOSE, FULL = 0.1, 0.95
#: Thresholds for a sharp drop of power between quartiles, and for high power.
DROP, HIGH = 0.3, 0.8


def run(settings: Settings) -> Outcome:
    """Power by ratio for three designs and two kinds of noise, and by quartile of the columns' variance."""
    embedding, is_spose = read_embedding(settings)
    designs: dict[str, Any] = {
        THREES: simulate.factorial([3, 3, 3, 3]),
        MIXED: simulate.factorial([2, 3, 2, 4]),
        SPOSE: partial(simulate.from_embedding, embedding, 50, 5),
    }
    n_permutations = settings.pick(49, 200, 1000)
    folders = {THREES: "3333", MIXED: "2324", SPOSE: "spose" if is_spose else "stand-in"}
    parts = [_measure(settings, name, design, n_permutations, folders[name]) for name, design in designs.items()]
    study = pd.concat(parts, ignore_index=True)
    sampled = study[(study["design"] == SPOSE) & (study["noise"] == "features")]
    quartiles = pd.concat([by_variance(sampled[sampled["snr"] == snr]) for snr in (1.0, 0.5)], ignore_index=True)
    claims = claims_of(study, quartiles)
    if settings.is_smoke or not is_spose:
        claims = [c._replace(agrees=None) if settings.is_smoke or SPOSE in c.what else c for c in claims]
    tables = {
        "Power, the share of true columns found (SNR 0: the share with p <= 0.05 before adjustment)": power_table(
            study
        ),
        f"Power by quartile of column variance ({SPOSE}; without noise, and with noise on features)": quartiles,
    }
    remarks = [
        *_on_counts(study, n_permutations),
        *([_on_ratios(study)] if is_spose and not settings.is_smoke else []),
        f"The paper cites the SPoSE embedding of 49 dimensions; the file used here has {embedding.shape[1]}."
        if is_spose
        else "The SPoSE embedding was not available. A sparse, correlated embedding stands in for it, and the claims "
        f"about SPoSE are not judged. Put {SPOSE_FILE!r} into the data folder to sample from SPoSE itself.",
    ]
    return Outcome(claims, tables, remarks, partial(_draw, study, quartiles))


def read_embedding(settings: Settings) -> tuple[NDArray[np.float64], bool]:
    """SPoSE with its few tiny negative values set to zero, or a stand-in; and whether it is SPoSE."""
    if settings.data is not None and (settings.data / SPOSE_FILE).exists():
        return np.maximum(np.loadtxt(settings.data / SPOSE_FILE), 0), True
    return simulate.sparse_correlated(1854, 49, random_state=settings.seed), False


def _measure(settings: Settings, name: str, design: Any, n_permutations: int, folder: str) -> pd.DataFrame:
    """One row per noise, ratio, repeat, test and column of a design."""
    snrs = settings.pick([0.1, 0.5], [0.05, 0.1, 0.3, 0.5], [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7])
    study = partial(
        simulate.power_study,
        design,
        n_repeats=settings.pick(6, 60, 160) if name == SPOSE else settings.pick(2, 20, 40),
        n_permutations=n_permutations,
        by_column=True,
        # A different seed or number of permutations is a different study.
        **settings.options(f"power-{folder}-{n_permutations}-{settings.seed}"),
    )
    on_features = study(snrs=[*snrs, 1.0], noise="features")
    on_similarities = study(snrs=snrs, noise="similarities")
    noiseless = on_features[on_features["snr"] == 1].assign(noise="similarities")
    return pd.concat([on_features, on_similarities, noiseless]).assign(design=name)


def interval(found: ArrayLike, data_set: ArrayLike) -> tuple[float, float]:
    """The 95% Wilson interval of a share, for the effective number of independent columns.

    Columns of one data set share their noise. The effective number is the one whose binomial variance equals the
    variance between data sets; it is the number of data sets if all columns or none are found.
    """
    values, (labels, place) = np.asarray(found, dtype=np.float64), np.unique(data_set, return_inverse=True)
    n, share = len(values), float(values.mean())
    binomial = share * (1 - share) / n
    if binomial > 0:
        between = float((np.bincount(place, values - share) ** 2).sum()) / n**2
        n_effective = n * binomial / max(between, binomial)
    else:
        n_effective = len(labels)
    spread = 1.96**2 / n_effective
    middle = (share + spread / 2) / (1 + spread)
    half = np.sqrt(share * (1 - share) * spread + spread**2 / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def power_table(study: pd.DataFrame) -> pd.DataFrame:
    """One row per design, noise and test, and one column per ratio; at 0 the share with p <= 0.05."""
    shares = study.assign(share=study["significant"].where(study["snr"] > 0, study["pvalue"] <= 0.05).astype(float))
    table = shares.pivot_table(index=["design", "noise", "test"], columns="snr", values="share", sort=False)
    table = table[sorted(table.columns)].rename(columns="SNR {:g}".format).rename_axis(columns=None)
    return table.reset_index().rename(columns={"noise": "noise on"})


def by_variance(study: pd.DataFrame, n_groups: int = 4) -> pd.DataFrame:
    """Power of each test by quartile of the columns' variance, with intervals, for one design, noise and ratio."""
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
    """Power at each positive ratio, ascending, for the given design, noise and test."""
    chosen = study[study["snr"] > 0]
    for name, value in where.items():
        chosen = chosen[chosen[name] == value]
    power = chosen.groupby("snr")["significant"].mean()
    return dict(zip(power.index.to_numpy().tolist(), power.to_numpy().tolist(), strict=True))


def both_curves(study: pd.DataFrame, design: str, noise: str = "features") -> list[dict[float, float]]:
    """The curves of the dimension test and of RSA."""
    return [curve(study, design=design, noise=noise, test=test) for test in ("dimension", "rsa")]


def advantage(study: pd.DataFrame, design: str, noise: str, snrs: tuple[float, float]) -> tuple[float, float]:
    """Power of the dimension test minus that of RSA over a range of ratios, and its standard error over repeats."""
    chosen = study[(study["design"] == design) & (study["noise"] == noise) & study["snr"].between(*snrs)]
    power = chosen.groupby(["repeat", "test"])["significant"].mean().unstack()
    difference = power["dimension"].to_numpy() - power["rsa"].to_numpy()
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def ratio_reaching(power: dict[float, float], share: float) -> float:
    """The lowest ratio at which a curve reaches this power, interpolated; infinite if it never does.

    If the first ratio already has this power, it is returned.
    """
    snrs, values = list(power), list(power.values())
    above = [place for place, value in enumerate(values) if value >= share]
    if not above:
        return float("inf")
    last, before = above[0], max(above[0] - 1, 0)
    return float(np.interp(share, [values[before], values[last]], [snrs[before], snrs[last]]))


def ratio_text(power: dict[float, float], share: float) -> str:
    """The ratio at which a curve reaches a power, with an inequality sign if it is outside the tested ratios."""
    snr = ratio_reaching(power, share)
    if math.isinf(snr):
        return f"> {max(power):g}"
    return f"<= {snr:g}" if snr == min(power) else f"{snr:.2f}"


def claims_of(study: pd.DataFrame, quartiles: pd.DataFrame) -> list[Claim]:
    """Every statement of the paper about power, and the numbers of an independent run."""
    return [
        *[_direction(study, design, noise) for noise in NOISES for design in (THREES, MIXED, SPOSE)],
        *[_reach(study, design) for design in (THREES, MIXED)],
        _larger_for_spose(study),
        *[_independent_run(study, design) for design in INDEPENDENT_RUN],
        _lost_with_variance(quartiles),
    ]


def _direction(study: pd.DataFrame, design: str, noise: str) -> Claim:
    low, high = MIDDLE
    mean, error = advantage(study, design, noise, MIDDLE)
    dimension, rsa = both_curves(study, design, noise)
    powers = [f"{dimension[snr]:.0%} and {rsa[snr]:.0%} at SNR {snr:g}" for snr in dimension if low <= snr <= high]
    return Claim(
        f"{design}, noise on {noise}: power from SNR {low:g} to {high:g}",
        "SRF above RSA (Fig. 3c)" if design == SPOSE else "SRF above RSA across noise levels (Fig. 3b)",
        f"SRF and RSA {', '.join(powers)}; SRF minus RSA {_points(mean, error)}",
        is_positive(mean, error),
    )


def _reach(study: pd.DataFrame, design: str) -> Claim:
    dimension, rsa = both_curves(study, design)
    shares = (0.5, FULL)
    needed = [
        f"{share:.0%} power: SRF {ratio_text(dimension, share)}, RSA {ratio_text(rsa, share)}" for share in shares
    ]
    return Claim(
        f"{design}, noise on features: SNR needed",
        "SRF detects the true factors at substantially lower signal-to-noise ratios than RSA (Fig. 3b)",
        "; ".join(needed),
        all(ratio_reaching(dimension, share) < ratio_reaching(rsa, share) for share in shares),
    )


def _larger_for_spose(study: pd.DataFrame) -> Claim:
    sampled, factorial = (advantage(study, design, "features", MIDDLE) for design in (SPOSE, THREES))
    by_ratio = []
    for snr in curve(study):
        if MIDDLE[0] <= snr <= MIDDLE[1]:
            a, b = (100 * advantage(study, design, "features", (snr, snr))[0] for design in (SPOSE, THREES))
            by_ratio.append(f"{a:+.0f} and {b:+.0f} at SNR {snr:g}")
    return Claim(
        f"{SPOSE} and {THREES}, noise on features: SRF minus RSA from SNR {MIDDLE[0]:g} to {MIDDLE[1]:g}",
        "the advantage of SRF is even more pronounced for SPoSE, particularly at low SNR (Fig. 3c)",
        f"{_points(*sampled)} and {_points(*factorial)}; {', '.join(by_ratio)}",
        is_positive(sampled[0] - factorial[0], math.hypot(sampled[1], factorial[1])),
    )


def _independent_run(study: pd.DataFrame, design: str) -> Claim:
    dimension, rsa = both_curves(study, design)
    their_rsa, their_dimension = INDEPENDENT_RUN[design]
    return Claim(
        f"{design}, noise on features: power at SNR 0.5",
        f"RSA {their_rsa:.0%}, SRF {their_dimension:.0%} (an independent run of the design, not in the paper)",
        f"RSA {rsa[0.5]:.0%}, SRF {dimension[0.5]:.0%}; {their_rsa:.0%} and {their_dimension:.0%} at SNR "
        f"{ratio_text(rsa, their_rsa)} and {ratio_text(dimension, their_dimension)}",
        abs(rsa[0.5] - their_rsa) <= CLOSE and abs(dimension[0.5] - their_dimension) <= CLOSE,
        in_paper=False,
    )


def _lost_with_variance(quartiles: pd.DataFrame) -> Claim:
    noiseless = quartiles[quartiles["SNR"] == 1]
    rsa, dimension = ([*noiseless.loc[noiseless["test"] == test, "power"]] for test in ("rsa", "dimension"))
    words = [" / ".join(f"{power:.0%}" for power in powers) for powers in (rsa, dimension)]
    return Claim(
        f"{SPOSE}, no noise: power from the lowest to the highest quartile of column variance",
        "RSA drops sharply for dimensions with low variance, SRF keeps high rates throughout (Supplement, SNR = 1.0)",
        f"RSA {words[0]}, SRF {words[1]}",
        bool(rsa[-1] - rsa[0] >= DROP and min(dimension) >= HIGH),
    )


def _points(mean: float, error: float) -> str:
    return f"{100 * mean:+.0f} ± {196 * error:.0f} points"


def _on_counts(study: pd.DataFrame, n_permutations: int) -> list[str]:
    repeats = study.groupby("design")["repeat"].nunique()
    groups = study[study["snr"] > 0].groupby(["design", "noise", "snr", "test"])
    widest = max(np.ptp(interval(rows["significant"], rows["repeat"])) / 2 for _, rows in groups)
    return [
        f"The paper has 1,000 repeats per point and 1,000 permutations per test. Here, each factorial design has "
        f"{repeats[THREES]} repeats, {SPOSE} has {repeats[SPOSE]}, and each test has {n_permutations:,} permutations.",
        "Columns of one data set share its noise. The 95% intervals are therefore Wilson intervals for the effective "
        f"number of independent columns; on the curves they reach at most {100 * widest:.0f} points to either side.",
    ]


def _on_ratios(study: pd.DataFrame) -> str:
    """The ratios at which the powers of the independent run are reached here, and the powers at its squared ratio."""
    reached, powers = [], []
    for design, (rsa, dimension) in INDEPENDENT_RUN.items():
        of_dimension, of_rsa = both_curves(study, design)
        reached += [ratio_reaching(of_rsa, rsa), ratio_reaching(of_dimension, dimension)]
        here = [np.interp(0.25, list(of_test), list(of_test.values())) for of_test in (of_rsa, of_dimension)]
        powers.append(f"RSA {here[0]:.0%} and SRF {here[1]:.0%} for {design}")
    return (
        "Ratios here are var(S) / (var(S) + var(error)) over pairs, after clipping. The four powers of the independent "
        f"at SNR 0.5 are reached here between SNR {min(reached):.2f} and {max(reached):.2f}, in both designs. With a "
        f"ratio of standard deviations instead of variances, its 0.5 would be 0.25, where the curves here have "
        f"{', and '.join(powers)}."
    )


def _draw(study: pd.DataFrame, quartiles: pd.DataFrame) -> Figure:
    """One column per design and one row per kind of noise; the last column has the quartiles, one panel per ratio."""
    designs = list(dict.fromkeys(study["design"]))
    figure = new_figure(7.2, 3.5)
    axes = figure.subplots(len(NOISES), len(designs) + 1, width_ratios=[1] * len(designs) + [1.05])
    for column, design in enumerate(designs):
        panels = axes[:, column]
        power_curves(_by_data_set(study[study["design"] == design]), axes=panels)
        panels[-1].get_legend().remove()
        for ax, words in zip(panels, NOISES.values(), strict=True):
            ax.axhline(0.05, color="0.6", linewidth=0.6, linestyle=":", zorder=0)
            ax.set(xlim=(0, 1.03), xticks=[0, 0.5, 1])
            ax.set_title(design if ax is panels[0] else "", fontsize=SMALL, pad=3)
            tidy(ax, "Signal-to-noise ratio" if ax is panels[-1] else "", f"{words}\nPower" if column == 0 else "")
    for ax, (snr, rows) in zip(axes[:, -1], quartiles.groupby("SNR", sort=False), strict=True):
        _draw_quartiles(ax, rows)
        words = "no noise" if snr == 1 else f"features, SNR {snr:g}"
        ax.set_title(f"{designs[-1]}: {words}", fontsize=TINY, pad=3)
        tidy(ax, "Quartile of column variance" if ax is axes[-1, -1] else "")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=TINY, frameon=False, handlelength=2.2)
    return figure


def _by_data_set(study: pd.DataFrame) -> pd.DataFrame:
    """Shares of each data set, in the order of the panels, as `power_curves` expects them."""
    groups = study.groupby(["noise", "snr", "repeat", "test"], sort=False)["significant"]
    shares = groups.mean().rename("power").reset_index()
    return shares.sort_values("noise", key=lambda noise: noise.map(list(NOISES).index), kind="stable")


def _draw_quartiles(ax: Axes, rows: pd.DataFrame) -> None:
    looks = {"dimension": (MAIN, "o"), "rsa": (ACCENT, "s"), "combined": (SECOND, "D")}
    for place, (test, of_test) in enumerate(rows.groupby("test", sort=False)):
        colour, mark = looks[str(test)]
        x, power = of_test["quartile"].to_numpy() + 0.16 * (place - 1), of_test["power"].to_numpy()
        ends = np.abs(of_test[["95% from", "95% to"]].to_numpy().T - power)
        ax.errorbar(x, power, yerr=ends, color=colour, fmt=mark, ms=3, capsize=1.5, elinewidth=0.8, capthick=0.8)
    ax.set_xticks([1, 2, 3, 4], labels=["lowest", "2", "3", "highest"])
    ax.set(xlim=(0.5, 4.5), ylim=(-0.03, 1.03), yticks=[0, 0.5, 1])
