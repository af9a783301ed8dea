"""`power`: how often true properties are found by the dimensions of SRF and by RSA (Fig. 3, Supplement)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims import simulate
from simdims.reproduce.frame import Outcome, Settings
from simdims.reproduce.power_claims import INDEPENDENT_RUN, MIXED, SPOSE, THREES, claims_of
from simdims.reproduce.power_counts import by_variance, curve, interval, power_table, ratio_reaching
from simdims.reproduce.power_figure import draw

if TYPE_CHECKING:
    import pandas as pd

SPOSE_FILE = "things/spose_embedding_66d_sorted.txt"


def run(settings: Settings) -> Outcome:
    """Power by ratio for three designs and two kinds of noise, and by quartile of the columns' variance."""
    embedding, is_spose = _embedding(settings)
    designs: dict[str, Any] = {
        THREES: simulate.factorial([3, 3, 3, 3]),
        MIXED: simulate.factorial([2, 3, 2, 4]),
        SPOSE: partial(simulate.from_embedding, embedding, 50, 5),
    }
    study = _measure(settings, designs, {THREES: "3333", MIXED: "2324", SPOSE: "spose" if is_spose else "stand-in"})
    quartiles = _quartiles(study)
    claims = claims_of(study, quartiles)
    if settings.size == "smoke":
        claims = [claim._replace(agrees=None) for claim in claims]
    elif not is_spose:
        claims = [claim._replace(agrees=None) if SPOSE in claim.what else claim for claim in claims]
    tables = {
        "Power, the share of true columns found (SNR 0: the share with p <= 0.05 before adjustment)": power_table(
            study
        ),
        f"Power by quartile of column variance ({SPOSE}; without noise, and with noise on features)": quartiles,
    }
    remarks = [
        *_remarks_on_counts(study, settings),
        "The paper's text adds noise to the similarities. With independent noise on every pair RSA is the stronger "
        "test where the ratio is low: it averages over all pairs, while the dimensions have to be estimated first. The "
        "advantage of SRF that the paper shows is that of noise on the features, where the error of an item enters all "
        "its similarities. The combined test stays close to the better of the two.",
        *([_remark_on_ratios(study)] if is_spose and settings.size != "smoke" else []),
        f"The paper cites the SPoSE embedding of 49 dimensions; the file that is read here has {embedding.shape[1]}."
        if is_spose
        else "The SPoSE embedding was not at hand: a sparse, correlated embedding stands in for it, and what the paper "
        f"says of SPoSE is not judged. Put {SPOSE_FILE!r} into the data folder to sample from SPoSE itself.",
    ]
    return Outcome(claims, tables, remarks, partial(draw, study, quartiles))


def _embedding(settings: Settings) -> tuple[NDArray[np.float64], bool]:
    """SPoSE, without its few tiny negative values, or the embedding that stands in for it."""
    if settings.data is not None and (settings.data / SPOSE_FILE).exists():
        return np.maximum(np.loadtxt(settings.data / SPOSE_FILE), 0), True
    return simulate.sparse_correlated(1854, 49, random_state=settings.seed), False


def _measure(settings: Settings, designs: dict[str, Any], folders: dict[str, str]) -> pd.DataFrame:
    """A row for each design, noise, ratio, repeat, test and column."""
    import pandas as pd

    snrs = settings.pick([0.1, 0.5], [0.05, 0.1, 0.3, 0.5], [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7])
    n_permutations = _n_permutations(settings)
    parts = []
    for name, design in designs.items():
        study = partial(
            simulate.power_study,
            design,
            n_repeats=settings.pick(6, 60, 160) if name == SPOSE else settings.pick(2, 20, 40),
            n_permutations=n_permutations,
            by_column=True,
            # Another seed or number of permutations is another study.
            checkpoint=settings.folder(f"power-{folders[name]}-{n_permutations}-{settings.seed}"),
            random_state=settings.seed,
            n_jobs=settings.n_jobs,
            progress=settings.progress,
        )
        on_features = study(snrs=[*snrs, 1.0], noise="features")
        on_similarities = study(snrs=snrs, noise="similarities")
        noiseless = on_features[on_features["snr"] == 1].assign(noise="similarities")
        parts.append(pd.concat([on_features, on_similarities, noiseless]).assign(design=name))
    return pd.concat(parts, ignore_index=True)


def _n_permutations(settings: Settings) -> int:
    return settings.pick(49, 200, 1000)


def _quartiles(study: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    sampled = study[(study["design"] == SPOSE) & (study["noise"] == "features")]
    return pd.concat([by_variance(sampled[sampled["snr"] == snr]) for snr in (1.0, 0.5)], ignore_index=True)


def _remarks_on_counts(study: pd.DataFrame, settings: Settings) -> list[str]:
    repeats = study.groupby("design")["repeat"].nunique()
    groups = study[study["snr"] > 0].groupby(["design", "noise", "snr", "test"])
    widest = max(np.ptp(interval(rows["significant"], rows["repeat"])) / 2 for _, rows in groups)
    return [
        "The paper has 1,000 repeats of each point and 1,000 permutations of each test; here there are "
        f"{repeats[THREES]} repeats of each factorial design, {repeats[SPOSE]} of {SPOSE}, and "
        f"{_n_permutations(settings):,} permutations. Every column of X is a hypothesis, SRF has as many dimensions as "
        "there are columns, and power is the share of all columns of all repeats that are significant after "
        "Benjamini-Hochberg adjustment within a data set.",
        "Columns of one data set share its noise. 95% intervals are therefore Wilson's for that number of independent "
        "columns which gives the variance between data sets; on the curves they reach at most "
        f"{100 * widest:.0f} points to either side.",
        "Quartiles are of the variance of a column over the 50 objects of its sample. As a ratio of signal to total "
        "variance, the 1.0 at which the Supplement has them is no noise at all; 0.5 is as much noise as signal.",
    ]


def _remark_on_ratios(study: pd.DataFrame) -> str:
    """Where the powers of the independent run are met here, and at the square of its ratio."""
    reached, powers = [], []
    for design, (rsa, dimension) in INDEPENDENT_RUN.items():
        of_rsa, of_dimension = (
            curve(study, design=design, noise="features", test=test) for test in ("rsa", "dimension")
        )
        reached += [ratio_reaching(of_rsa, rsa), ratio_reaching(of_dimension, dimension)]
        here = [np.interp(0.25, list(of_test), list(of_test.values())) for of_test in (of_rsa, of_dimension)]
        powers.append(f"RSA {here[0]:.0%} and SRF {here[1]:.0%} for {design}")
    return (
        "Ratios here are var(S) / (var(S) + var(error)) over pairs, after clipping. The four powers that the "
        f"independent run has at its SNR of 0.5 are met here between SNR {min(reached):.2f} and {max(reached):.2f}, in "
        "both designs: its data seem to hold more noise at the same number. A ratio of standard deviations instead of "
        f"variances would make its 0.5 a 0.25, where the curves here have {', and '.join(powers)}."
    )
