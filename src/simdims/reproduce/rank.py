"""Fig. 2d: the number of dimensions that cross-validation, the scree test and parallel analysis find."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from simdims.reproduce.frame import Cell, Claim, Outcome, Settings, run_each
from simdims.reproduce.simulated import design, fit_seed, simulate_cell, verdict, without_warnings
from simdims.selection import parallel_analysis, scree_test, select_rank

if TYPE_CHECKING:
    import pandas as pd

OURS, PAPERS = "select_rank", "paper's protocol"
PARALLEL, MEDIAN, SCREE = "parallel 95%", "parallel median", "scree test"
METHODS = (OURS, PAPERS, PARALLEL, MEDIAN, SCREE)


def run(settings: Settings) -> Outcome:
    """Let every method find the rank of data sets that differ in rank, sparsity, noise and pairs observed."""
    import pandas as pd

    from simdims.reproduce.rank_figure import draw

    n_items = settings.pick(30, 150, 150)
    levels = {
        "rank": settings.pick((3,), (3, 6), (3, 6, 10, 15)),
        "alpha": settings.pick((0.1,), (0.1, 2.0), (0.1, 0.5, 2.0)),
        "snr": settings.pick((0.5, 0.7), (0.3, 0.7), (0.3, 0.5, 0.7, 1.0)),
        "observed": settings.pick((1.0,), (1.0, 0.5), (1.0, 0.5)),
    }
    cells = design(settings, 1, levels, n_items=n_items, cv_repeats=settings.pick(2, 5, 5))
    runs = pd.DataFrame(run_each(settings, "rank", measure, cells))
    tables = {"Mean absolute error of the number of dimensions": errors_by_level(runs)}
    return Outcome(_claims(settings, runs), tables, _remarks(runs, n_items), partial(draw, runs))


def measure(cell: Cell) -> Cell:
    """The rank that each method finds in one data set."""
    S = simulate_cell(cell).S
    seed = fit_seed(cell)
    with without_warnings():
        selection = select_rank(S, n_repeats=cell["cv_repeats"], random_state=seed, n_jobs=1, progress=False)
        return {
            OURS: selection.rank,
            PAPERS: rank_of_single_fits(selection.scores),
            PARALLEL: parallel_analysis(S, random_state=seed),
            MEDIAN: parallel_analysis(S, quantile=0.5, random_state=seed),
            SCREE: scree_test(S),
        }


def rank_of_single_fits(scores: pd.DataFrame) -> int:
    """The rank with the smallest mean error of single fits: the paper's choice."""
    errors = scores.groupby("rank")["error_alone"].mean()
    return int(errors.index[int(errors.to_numpy().argmin())])


def errors_by_level(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute error of every method, over all data sets and by sparsity, ratio, pairs observed and true rank."""
    import pandas as pd

    rows = [{"data sets": "all", "n": len(runs), **_mean_errors(runs)}]
    for name, words in (("alpha", "alpha"), ("snr", "SNR"), ("observed", "observed"), ("rank", "rank")):
        for level, part in runs.groupby(name):
            shown = f"{level:.0%}" if name == "observed" else f"{level:g}"
            rows.append({"data sets": f"{words} {shown}", "n": len(part), **_mean_errors(part)})
    return pd.DataFrame(rows)


def _mean_errors(runs: pd.DataFrame) -> dict[str, float]:
    return {method: float(_errors(runs, method).mean()) for method in METHODS}


def _errors(runs: pd.DataFrame, method: str) -> pd.Series:
    return (runs[method] - runs["rank"]).abs()


def _claims(settings: Settings, runs: pd.DataFrame) -> list[Claim]:
    claims = []
    for method in (OURS, PAPERS):
        for other in (SCREE, PARALLEL, MEDIAN):
            gain = _errors(runs, other) - _errors(runs, method)
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            claims.append(
                Claim(
                    f"Mean absolute error, {method} against {other}",
                    "cross-validation identified the true dimensionality more accurately",
                    f"{_errors(runs, method).mean():.2f} against {_errors(runs, other).mean():.2f} (difference "
                    f"{gain.mean():.2f}, standard error {error:.2f})",
                    None if abs(gain.mean()) <= 1.96 * error else verdict(settings, gain.mean() > 0),
                )
            )
    return claims


def _remarks(runs: pd.DataFrame, n_items: int) -> list[str]:
    remarks = [
        f"{n_items} items, one data set for each combination of true rank, alpha, signal-to-noise ratio and share of "
        "pairs observed; the paper does not say how many items it had, nor which ranks. No method is told which ranks "
        "to try.",
        "select_rank predicts a held-out pair by the mean of all fits that have not seen it and takes the smallest "
        "rank that is not clearly worse than the best; the paper's protocol, read off the same fits, takes the rank "
        "with the smallest mean error of single fits. Missing pairs enter the scree test and parallel analysis as "
        "zeros. Random data of parallel analysis are the observed similarities in random places; eigenvalues are "
        "compared with their 95% quantile or with their median.",
    ]
    lost = []
    for name, words in (("alpha", "alpha"), ("snr", "SNR"), ("observed", "share observed")):
        for level, part in runs.groupby(name):
            errors = _mean_errors(part)
            best = min(errors, key=lambda method: errors[method])
            if errors[best] < errors[OURS]:
                lost.append(f"{words} {level:g} ({best}: {errors[best]:.2f} against {errors[OURS]:.2f})")
    if lost:
        remarks.append("Another method has a smaller error than select_rank at " + ", ".join(lost) + ".")
    return remarks
