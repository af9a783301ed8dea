"""What the paper says about power, and what a study says to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simdims.reproduce.frame import Claim
from simdims.reproduce.power_counts import advantage, curve, ratio_reaching

if TYPE_CHECKING:
    import pandas as pd

#: The paper's factors of three or more levels, those of its authors' code, and samples of a real embedding.
THREES, MIXED, SPOSE = "3x3x3x3", "2x3x2x4", "SPoSE, 50 x 5"
#: The middle range of ratios.
MIDDLE = (0.1, 0.5)
#: Power of RSA and SRF at a ratio of 0.5 with noise on the features.
INDEPENDENT_RUN = {MIXED: (0.08, 0.94), SPOSE: (0.51, 0.80)}
#: Powers that are so close count as the same, and curves that are so high as full.
CLOSE, FULL = 0.1, 0.95
#: What counts as a sharp drop of power between quartiles, and what as high power.
DROP, HIGH = 0.3, 0.8


def claims_of(study: pd.DataFrame, quartiles: pd.DataFrame) -> list[Claim]:
    """Every statement of the paper about power, and the numbers of an independent run."""
    return [
        *[
            _direction(study, design, noise)
            for noise in ("features", "similarities")
            for design in (THREES, MIXED, SPOSE)
        ],
        *[_reach(study, design) for design in (THREES, MIXED)],
        _larger_for_spose(study),
        *[_independent_run(study, design) for design in INDEPENDENT_RUN],
        _by_variance(quartiles),
    ]


def _direction(study: pd.DataFrame, design: str, noise: str) -> Claim:
    low, high = MIDDLE
    mean, error = advantage(study, design, noise, MIDDLE)
    dimension, rsa = _curves(study, design, noise)
    powers = [f"{dimension[snr]:.0%} and {rsa[snr]:.0%} at SNR {snr:g}" for snr in dimension if low <= snr <= high]
    return Claim(
        f"{design}, noise on {noise}: power from SNR {low:g} to {high:g}",
        "SRF above RSA (Fig. 3c)" if design == SPOSE else "SRF above RSA across noise levels (Fig. 3b)",
        f"SRF and RSA {', '.join(powers)}; SRF minus RSA {_points(mean, error)}",
        _is_above(mean, error),
    )


def _reach(study: pd.DataFrame, design: str) -> Claim:
    dimension, rsa = _curves(study, design, "features")
    shares = (0.5, FULL)
    return Claim(
        f"{design}, noise on features: SNR needed",
        "SRF detects the true factors at substantially lower signal-to-noise ratios than RSA (Fig. 3b)",
        "; ".join(f"{share:.0%} power: SRF {_where(dimension, share)}, RSA {_where(rsa, share)}" for share in shares),
        all(ratio_reaching(dimension, share) < ratio_reaching(rsa, share) for share in shares),
    )


def _larger_for_spose(study: pd.DataFrame) -> Claim:
    sampled, factorial = (advantage(study, design, "features", MIDDLE) for design in (SPOSE, THREES))
    ratios = [snr for snr in curve(study) if MIDDLE[0] <= snr <= MIDDLE[1]]
    each = [[100 * advantage(study, design, "features", (snr, snr))[0] for design in (SPOSE, THREES)] for snr in ratios]
    by_ratio = [f"{a:+.0f} and {b:+.0f} at SNR {snr:g}" for (a, b), snr in zip(each, ratios, strict=True)]
    return Claim(
        f"{SPOSE} and {THREES}, noise on features: SRF minus RSA from SNR {MIDDLE[0]:g} to {MIDDLE[1]:g}",
        "the advantage of SRF is even more pronounced for SPoSE, particularly at low SNR (Fig. 3c)",
        f"{_points(*sampled)} and {_points(*factorial)}; {', '.join(by_ratio)}",
        _is_above(sampled[0] - factorial[0], math.hypot(sampled[1], factorial[1])),
    )


def _independent_run(study: pd.DataFrame, design: str) -> Claim:
    dimension, rsa = _curves(study, design, "features")
    their_rsa, their_dimension = INDEPENDENT_RUN[design]
    return Claim(
        f"{design}, noise on features: power at SNR 0.5",
        f"RSA {their_rsa:.0%}, SRF {their_dimension:.0%} (an independent run of the design, not in the paper)",
        f"RSA {rsa[0.5]:.0%}, SRF {dimension[0.5]:.0%}; "
        f"{their_rsa:.0%} and {their_dimension:.0%} at SNR {_where(rsa, their_rsa)} and "
        f"{_where(dimension, their_dimension)}",
        abs(rsa[0.5] - their_rsa) <= CLOSE and abs(dimension[0.5] - their_dimension) <= CLOSE,
        in_paper=False,
    )


def _by_variance(quartiles: pd.DataFrame) -> Claim:
    noiseless = quartiles[quartiles["SNR"] == 1]
    rsa, dimension = ([*noiseless.loc[noiseless["test"] == test, "power"]] for test in ("rsa", "dimension"))
    words = [" / ".join(f"{power:.0%}" for power in powers) for powers in (rsa, dimension)]
    return Claim(
        f"{SPOSE}, no noise: power from the lowest to the highest quartile of column variance",
        "RSA drops sharply for dimensions with low variance, SRF keeps high rates throughout (Supplement, SNR = 1.0)",
        f"RSA {words[0]}, SRF {words[1]}",
        bool(rsa[-1] - rsa[0] >= DROP and min(dimension) >= HIGH),
    )


def _curves(study: pd.DataFrame, design: str, noise: str) -> tuple[dict[float, float], dict[float, float]]:
    """Of the dimension test and of RSA."""
    return (
        curve(study, design=design, noise=noise, test="dimension"),
        curve(study, design=design, noise=noise, test="rsa"),
    )


def _is_above(mean: float, error: float) -> bool | None:
    """Whether a difference is above 0, or below; None where its 95% interval holds 0."""
    return None if abs(mean) <= 1.96 * error else mean > 0


def _points(mean: float, error: float) -> str:
    return f"{100 * mean:+.0f} ± {196 * error:.0f} points"


def _where(power: dict[float, float], share: float) -> str:
    """The ratio at which a curve has a power, with a sign where it lies outside the ratios that were run."""
    snr = ratio_reaching(power, share)
    if math.isinf(snr):
        return f"> {max(power):g}"
    return f"<= {snr:g}" if snr == min(power) else f"{snr:.2f}"
