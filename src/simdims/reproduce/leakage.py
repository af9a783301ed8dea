"""Supplement, information leakage: held-out similarities that follow from the others, and what it does to CV."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simdims import simulate
from simdims._parallel import seed_of
from simdims.reproduce.frame import Cell, Claim, Outcome, Settings, run_each
from simdims.reproduce.leakage_algebra import degrees_of_freedom, measure_completion, measure_identifiability
from simdims.selection import calibrate, select_rank
from simdims.selection.result import NEGLIGIBLE
from simdims.selection.splits import MOST_SAMPLING

if TYPE_CHECKING:
    import pandas as pd

SCHEMES = ("entrywise", "restricted")
_ALPHA, _FOLDS = 0.3, 5
#: A curve is flat where its error at twice the true number is above the smallest one by less than this share.
_FLAT = 0.05
#: Each fit of ordinary 5-fold cross-validation trains on so many of the pairs; the pool holds what its cap allows.
ENTRYWISE = MOST_SAMPLING * (_FOLDS - 1) / _FOLDS


def run(settings: Settings) -> Outcome:
    """Completion without noise, local identifiability of random patterns, and both schemes of cross-validation."""
    seeds = [seed_of(settings.seed, number) for number in range(settings.pick(2, 10, 20))]
    n_items, ranks = settings.pick((16, (2, 3)), (30, (2, 3, 5)), (40, (2, 4, 8)))
    cells = [{"n_items": n_items, "rank": rank, "seed": seed} for rank in ranks for seed in seeds]
    completed = run_each(settings, "nystroem", measure_completion, cells, stage="completion")
    patterns = run_each(settings, "identifiability", measure_identifiability, cells, stage="patterns")
    validated = run_each(settings, "leakage", measure_validation, _data_sets(settings), stage="cross-validation")
    tables = {
        "Held-out similarities by Nystroem completion (largest error, relative to the largest similarity)": completion(
            completed
        ),
        "Observed values (diagonal included) that determine all similarities locally": identifiability(patterns),
        "Held-out error without noise, relative to the variance": curves([c for c in validated if c["snr"] == 1]),
        "Held-out error with noise, relative to the variance": curves([c for c in validated if c["snr"] < 1]),
        "Number of dimensions with the smallest error": choices(validated),
    }
    return Outcome(
        claims=_claims(completed, patterns, validated, settings),
        tables=tables,
        remarks=_remarks(validated),
        draw=partial(_draw, patterns, validated),
    )


def _data_sets(settings: Settings) -> list[Cell]:
    """Without noise a few; with noise in several sizes, because the rise beyond the true number depends on it."""
    true_rank = settings.pick(3, 5, 5)
    sizes: list[tuple[int, float]] = settings.pick(
        [(40, 1.0), (40, 0.9)],
        [(60, 1.0), (100, 0.9), (200, 0.9), (100, 0.5)],
        [(100, 1.0), (300, 0.9), *((n, snr) for n in (100, 200) for snr in (0.9, 0.5, 0.3))],
    )
    return [
        {"n_items": n, "true_rank": true_rank, "snr": snr, "n_repeats": settings.pick(1, 1, 2), "seed": seed}
        for n, snr in sizes
        for seed in (seed_of(settings.seed, number) for number in range(settings.pick(1, 4, 10)))
    ]


def measure_validation(cell: Cell) -> Cell:
    """Both schemes on one data set: their errors, relative to the variance of the similarities, and their choices."""
    n_items, true_rank, seed = cell["n_items"], cell["true_rank"], cell["seed"]
    W = simulate.dirichlet(n_items, true_rank, alpha=_ALPHA, random_state=seed)
    S = simulate.add_noise(W @ W.T, cell["snr"], random_state=seed)
    variance = float(S[np.triu_indices(n_items, 1)].var())
    ranks = list(range(max(1, true_rank - 3), 2 * true_rank + 1))
    found: Cell = {"ranks": ranks}
    with warnings.catch_warnings():
        # Where a curve is flat the smallest error may sit at the end of the ranks: that is what is looked for.
        warnings.simplefilter("ignore")
        shares = {"entrywise": ENTRYWISE, "restricted": calibrate(S, random_state=seed, n_jobs=1).sampling}
        for scheme, share in shares.items():
            selection = select_rank(
                S,
                ranks,
                sampling=share,
                n_folds=_FOLDS,
                n_repeats=cell["n_repeats"],
                random_state=seed,
                n_jobs=1,
                progress=False,
            )
            errors = selection.scores.groupby("rank")["error_alone"].mean() / variance
            found[scheme] = {
                "share": float(selection.training_share),
                "errors": [float(error) for error in errors],
                "smallest": ranks[int(np.argmin(errors))],
                "chosen": selection.rank,
            }
    return found


def completion(completed: list[Cell]) -> pd.DataFrame:
    """Largest errors for each number of dimensions."""
    import pandas as pd

    rows = []
    for rank in sorted({cell["rank"] for cell in completed}):
        same = [cell for cell in completed if cell["rank"] == rank]
        n = same[0]["n_items"]
        rows.append(
            {
                "items": n,
                "dimensions": rank,
                "observed pairs": n * rank - rank * (rank + 1) // 2,
                "of all": n * (n - 1) // 2,
                "from r columns": max(cell["error"] for cell in same),
                "from r - 1 columns": min(cell["error_one_less"] for cell in same),
                "largest condition number": max(cell["condition"] for cell in same),
            }
        )
    return pd.DataFrame(rows)


def identifiability(patterns: list[Cell]) -> pd.DataFrame:
    """For each number of dimensions the degrees of freedom, and how many values random patterns need beyond."""
    import pandas as pd

    rows = []
    for rank in sorted({cell["rank"] for cell in patterns}):
        same = [cell for cell in patterns if cell["rank"] == rank]
        n = same[0]["n_items"]
        full = degrees_of_freedom(n, rank)
        first = np.array([cell["first_full"] for cell in same])
        rows.append(
            {
                "items": n,
                "dimensions": rank,
                "n r - r (r - 1) / 2": full,
                "rank, all observed": min(cell["rank_of_all"] for cell in same),
                "full rank from (median)": float(np.median(first)),
                "full rank from (largest)": int(first.max()),
                "5-fold training": round(n + ENTRYWISE * n * (n - 1) / 2),
            }
        )
    return pd.DataFrame(rows)


def curves(validated: list[Cell]) -> pd.DataFrame:
    """Errors below, at and at twice the true number; with noise, the rise from the smallest one to the last."""
    import pandas as pd

    rows = []
    for n, snr, same in _grouped(validated):
        true_rank, true = same[0]["true_rank"], same[0]["ranks"].index(same[0]["true_rank"])
        for scheme in SCHEMES:
            errors = np.array([cell[scheme]["errors"] for cell in same]).mean(axis=0)
            share = float(np.mean([cell[scheme]["share"] for cell in same]))
            row = {
                "items": n,
                "SNR": snr,
                "scheme": scheme,
                "training share": share,
                "at r* - 1": errors[true - 1],
                "at r*": errors[true],
                "at 2 r*": errors[-1],
            }
            if snr < 1:
                row["rise to 2 r* (%)"] = 100 * float(rise(same, scheme).mean())
                row["counted rise (%)"] = 100 * true_rank * n / (share * n * (n - 1) / 2)
            rows.append(row)
    return pd.DataFrame(rows)


def rise(cells: list[Cell], scheme: str) -> np.ndarray:
    """For each data set how much larger the error at twice the true number is than the smallest one, as a share."""
    return np.array([cell[scheme]["errors"][-1] / min(cell[scheme]["errors"]) - 1 for cell in cells])


def choices(validated: list[Cell]) -> pd.DataFrame:
    """How often each scheme finds the true number, and how far it is off, by the paper's rule and by select_rank's."""
    import pandas as pd

    rows = []
    for n, snr, same in _grouped(validated):
        for scheme in SCHEMES:
            row: dict[str, Any] = {"items": n, "SNR": snr, "data sets": len(same), "scheme": scheme}
            for rule, name in (("smallest", "smallest error"), ("chosen", "select_rank")):
                off = misses(same, scheme, rule)
                row[f"right, {name}"] = int((off == 0).sum())
                row[f"MAE, {name}"] = float(off.mean())
            rows.append(row)
    return pd.DataFrame(rows)


def misses(cells: list[Cell], scheme: str, rule: str = "smallest") -> np.ndarray:
    """How far the number of dimensions is off, for each data set."""
    return np.array([abs(cell[scheme][rule] - cell["true_rank"]) for cell in cells])


def is_larger(one: np.ndarray, other: np.ndarray) -> bool | None:
    """Whether values are larger than others of the same data sets; None where the 95% interval holds 0."""
    difference = one - other
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return None if abs(difference.mean()) <= 1.96 * error else bool(difference.mean() > 0)


def plateau(cells: list[Cell], scheme: str) -> float:
    """The largest error from the true number to twice it, as a share of the variance."""
    return max(max(cell[scheme]["errors"][cell["ranks"].index(cell["true_rank"]) :]) for cell in cells)


def _grouped(validated: list[Cell]) -> list[tuple[int, float, list[Cell]]]:
    groups = sorted({(-cell["snr"], cell["n_items"]) for cell in validated})
    return [(n, -snr, [c for c in validated if (-c["snr"], c["n_items"]) == (snr, n)]) for snr, n in groups]


def _claims(completed: list[Cell], patterns: list[Cell], validated: list[Cell], settings: Settings) -> list[Claim]:
    smoke = settings.size == "smoke"
    clean = [cell for cell in validated if cell["snr"] == 1]
    noisy = [cell for cell in validated if cell["snr"] < 1]
    error = max(cell["error"] for cell in completed)
    rounding = max(cell["error"] / cell["condition"] for cell in completed) / np.finfo(float).eps
    table = identifiability(patterns)
    full_rank = bool((table["rank, all observed"] == table["n r - r (r - 1) / 2"]).all())
    needed = (table["full rank from (largest)"] / table["n r - r (r - 1) / 2"]).max()
    in_training = bool((table["full rank from (largest)"] <= table["5-fold training"]).all())
    below = min(cell["entrywise"]["errors"][cell["ranks"].index(cell["true_rank"]) - 1] for cell in clean)
    rises = {scheme: rise(noisy, scheme).mean() for scheme in SCHEMES}
    off = {scheme: misses(noisy, scheme) for scheme in SCHEMES}
    return [
        Claim(
            "held-out similarities from r observed columns, without noise",
            "exact (Nystroem)",
            f"largest error {error:.1g}: {rounding:.0f} times rounding and the condition of the block",
            bool(rounding < 100),
        ),
        Claim(
            "rank of the Jacobian",
            "n r - r (r - 1) / 2 where all pairs are observed",
            "as large for every W" if full_rank else "smaller for some W",
            full_rank,
        ),
        Claim(
            "random patterns that determine the rest locally",
            "sufficiently large ones do",
            f"all with {needed:.1f} times as many values as degrees of freedom; 5-fold training has "
            + ("more" if in_training else "less"),
            in_training,
        ),
        Claim(
            "entrywise cross-validation without noise, from r* to 2 r*",
            "error zero at r*; plateaus at and above it",
            f"at most {plateau(clean, 'entrywise'):.1g} of the variance ({below:.1g} or more at r* - 1)",
            plateau(clean, "entrywise") < NEGLIGIBLE,
        ),
        Claim(
            "error at 2 r* above the smallest one, with noise",
            "derived without noise: flat for entrywise cross-validation, a minimum for the restricted one",
            f"entrywise {rises['entrywise']:.0%}, restricted {rises['restricted']:.0%}",
            None if smoke else bool(rises["entrywise"] < _FLAT <= rises["restricted"]),
        ),
        Claim(
            "entrywise cross-validation as a way to find r*, with noise",
            "unreliable",
            f"mean absolute error {off['entrywise'].mean():.2f}, restricted {off['restricted'].mean():.2f}",
            None if smoke else is_larger(off["entrywise"], off["restricted"]),
        ),
    ]


def _remarks(validated: list[Cell]) -> list[str]:
    clean = [cell for cell in validated if cell["snr"] == 1]
    n, true_rank = clean[0]["n_items"], clean[0]["true_rank"]
    share = float(np.mean([cell["restricted"]["share"] for cell in clean]))
    seen = n + share * n * (n - 1) / 2
    return [
        f"Cross-validation: Dirichlet alpha {_ALPHA:g}, r* = {true_rank}, {_FOLDS} folds, errors of single fits. "
        f"'Entrywise' has all pairs in its pool, but for the {1 - MOST_SAMPLING:.0%} that the paper's cap leaves out; "
        "'restricted' has the calibrated pool. Both see the same data.",
        f"Without noise the restricted scheme has a plateau too ({plateau(clean, 'restricted'):.1g} of the variance): "
        f"its fits see {seen / degrees_of_freedom(n, true_rank):.1f} times as many values as W W^T has degrees of "
        f"freedom at r*, and {seen / degrees_of_freedom(n, 2 * true_rank):.1f} times at 2 r*. Which number has the "
        "smallest error there is decided by where the fits stop; select_rank takes the smallest number that is not "
        "clearly worse.",
        "With noise neither curve is flat. A superfluous dimension spends n loadings on noise and raises the error by "
        "about n / (training pairs) of itself (column 'counted rise', for r* of them): the fewer pairs train, the "
        "steeper the rise, and the more items, the flatter. The paper's plateau is the limit of no noise, or of many "
        "items.",
    ]


def _draw(patterns: list[Cell], validated: list[Cell]) -> Any:
    from simdims.reproduce.leakage_figure import draw

    return draw(patterns, validated)
