"""Profile of a fit of 1,854 items and 40 dimensions: complete, and with 30% of the pairs missing.

    python benchmarks/profile_fit.py

cProfile over ten fits: the functions with at least 2% of the time. Each compiled kernel counts as one function; work of
a second thread appears as waiting.
"""

from __future__ import annotations

import cProfile
import pstats
import warnings

from bench_fit import noisy_dirichlet, random_start

from simdims import SRF

N_ITEMS, N_COMPONENTS, N_FITS = 1854, 40, 10


def main() -> None:
    warnings.simplefilter("ignore")
    for observed in (1.0, 0.7):
        S = noisy_dirichlet(N_ITEMS, N_COMPONENTS, observed, 0)
        estimator = SRF(N_COMPONENTS, init=random_start(S, N_COMPONENTS, 0))
        estimator.fit(S)  # compile
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(N_FITS):
            estimator.fit(S)
        profile.disable()
        stats = pstats.Stats(profile).stats
        total = sum(own for _, _, own, _, _ in stats.values())
        print(f"\n{observed:.0%} observed: {1e3 * total / N_FITS:.0f} ms a fit, {estimator.n_iter_} sweeps\n")
        print("| function | calls a fit | its own time | with what it calls |\n|---|---|---|---|")
        rows = sorted(stats.items(), key=lambda item: -item[1][2])
        for (path, _, name), (_, calls, own, whole, _) in rows:
            if own >= 0.02 * total:
                room = path.split("simdims/")[-1] if "simdims" in path else ""
                print(f"| {room} {name} | {calls / N_FITS:.0f} | {own / total:.0%} | {whole / total:.0%} |")


if __name__ == "__main__":
    main()
