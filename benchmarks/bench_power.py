"""Power of the hypothesis tests against RSA, with noise on features or on similarities.

    python benchmarks/bench_power.py [--quick] [--repeats 60] [--jobs 2] [--out benchmarks/results/power.json]

Shares of true properties found after Benjamini-Hochberg adjustment, in the paper's two designs: factorial (3 x 3 x 3 x
3), and 50 items and 5 dimensions sampled from SPoSE (in SIMDIMS_DATA or ../shared/data) or from a sparse, correlated
stand-in. At SNR 0 all hypotheses are null, and the share of unadjusted p-values up to 0.05 is the level.

Prints Markdown tables and writes every number to a JSON file and, if matplotlib is installed, the curves to a PNG file
beside it. An interrupted power study resumes.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path

import numpy as np
from bench_fit import describe_machine

from simdims import simulate

SNRS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
SPOSE = "things/spose_embedding_66d_sorted.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few data sets, to see that it runs")
    parser.add_argument("--repeats", type=int, default=60, help="data sets for each point of a power curve")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "power.json")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = {"machine": describe_machine(), "power": measure_power(options)}
    print_power(results["power"]["rows"])
    draw_power(results["power"]["rows"], options.out.with_suffix(".png"))
    options.out.write_text(json.dumps(results, indent=2))
    print(f"\nWritten to {options.out}")


def measure_power(options: argparse.Namespace) -> dict:
    n_repeats, n_permutations, snrs = (2, 99, (0.0, 0.1, 0.5)) if options.quick else (options.repeats, 500, SNRS)
    embedding, source = spose_or_stand_in()
    designs = {
        "factorial": simulate.factorial([3, 3, 3, 3]),
        "spose": partial(simulate.from_embedding, embedding, 50, 5),
    }
    rows = []
    for design, features in designs.items():
        for weighting in ("fit", "equal"):
            checkpoint = options.out.with_name(f"power-{design}-{weighting}{'-quick' if options.quick else ''}")
            study = simulate.power_study(
                features,
                snrs,
                n_repeats,
                n_permutations,
                weighting=weighting,
                checkpoint=checkpoint,
                random_state=0,
                n_jobs=options.jobs,
            )
            groups = study.groupby(["noise", "snr", "test"])[["power", "power_unadjusted"]]
            summary = groups.mean().join(groups.sem().add_suffix("_error")).reset_index()
            if weighting == "equal":
                summary = summary[summary["test"] == "combined"].assign(test="combined, equal weights")
            rows += [{"design": design, **entry} for entry in summary.to_dict("records")]
    return {"n_repeats": n_repeats, "n_permutations": n_permutations, "spose": source, "rows": rows}


def spose_or_stand_in() -> tuple[np.ndarray, str]:
    folder = Path(os.environ.get("SIMDIMS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if (folder / SPOSE).exists():
        return np.maximum(np.loadtxt(folder / SPOSE), 0), "SPoSE, 66 dimensions"
    return simulate.sparse_correlated(1854, 49, random_state=0), "sparse, correlated stand-in"


def print_power(rows: list[dict]) -> None:
    tests = ("dimension", "rsa", "combined", "combined, equal weights")
    print("\nPower (at SNR 0: level, the share at or below 0.05 before adjustment)\n")
    print(f"| design | noise on | SNR | {' | '.join(tests)} |\n|---|---|---|{'---|' * len(tests)}")
    for design, noise, snr in sorted({(entry["design"], entry["noise"], entry["snr"]) for entry in rows}):
        value = "power_unadjusted" if snr == 0 else "power"
        here = {
            entry["test"]: entry[value]
            for entry in rows
            if (entry["design"], entry["noise"], entry["snr"]) == (design, noise, snr)
        }
        print(f"| {design} | {noise} | {snr:g} | {' | '.join(f'{here[test]:.2f}' for test in tests)} |")


def draw_power(rows: list[dict], path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(8, 6), sharex=True, sharey=True)
    for axis_row, design in zip(axes, ("factorial", "spose"), strict=True):
        for ax, noise in zip(axis_row, ("features", "similarities"), strict=True):
            for test, style in (("dimension", "C0-o"), ("rsa", "C1-s"), ("combined", "k--")):
                curve = sorted(
                    (entry["snr"], entry["power"], entry["power_error"])
                    for entry in rows
                    if (entry["design"], entry["noise"], entry["test"]) == (design, noise, test)
                )
                snr, power, error = map(np.array, zip(*curve, strict=True))
                ax.plot(snr, power, style, label=test, markersize=4)
                ax.fill_between(snr, power - error, power + error, color=style[:2].rstrip("-"), alpha=0.2, lw=0)
            ax.set_title(f"{design}, noise on {noise}", fontsize=10)
            ax.axhline(0.05, color="0.7", lw=0.8, ls=":")
    for ax in axes[1]:
        ax.set_xlabel("signal-to-noise ratio")
    for ax in axes[:, 0]:
        ax.set_ylabel("power")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
