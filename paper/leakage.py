"""Supplement, information leakage: held-out similarities that follow from the others, and the effect on CV.

Nystroem completion from r columns, the rank of the Jacobian of W -> W W^T on the observed pairs, and cross-validation
of the number of dimensions with all pairs and with a calibrated share of them.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from paper.figures import ACCENT, COLOURS, MAIN, MARKS, QUIET, TINY, legend, new_figure, noise_name, tidy, whole_ticks
from paper.harness import Cell, Claim, Outcome, Settings, is_positive, run_each
from simdims import calibrate, select_rank, simulate

#: Numbers of observed values at which patterns are tried, in units of the degrees of freedom.
MULTIPLES = (0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)
#: The largest share of pairs in the pool (the paper's cap), and the share that each of 5 folds then trains on.
MOST_SAMPLING, N_FOLDS = 0.95, 5
ENTRYWISE = MOST_SAMPLING * (N_FOLDS - 1) / N_FOLDS
SCHEMES = ("entrywise", "restricted")

#: Concentration of the rows: with a density, as the lemma on invertible blocks requires, and for cross-validation.
_ALPHA_ALGEBRA, _ALPHA = 1.0, 0.3
#: A curve is flat if its error at twice the true number exceeds the smallest by less than the first share, and zero if
#: it is below the second share of the variance.
_FLAT, _NEGLIGIBLE = 0.05, 1e-3


def run(settings: Settings) -> Outcome:
    """Completion without noise, local identifiability of random patterns, and both schemes of cross-validation."""
    n_items, ranks = settings.pick((16, (2, 3)), (30, (2, 3, 5)), (40, (2, 4, 8)))
    seeds = settings.seeds(2, 10, 20)
    cells = [{"n_items": n_items, "rank": rank, "seed": seed} for rank in ranks for seed in seeds]
    completed = pd.DataFrame(run_each(settings, "nystroem", measure_completion, cells))
    patterns = pd.DataFrame(run_each(settings, "identifiability", measure_identifiability, cells))
    validated = by_scheme(run_each(settings, "leakage", measure_validation, _data_sets(settings)))
    is_clean = validated["snr"] == 1
    identifiable = identifiability(patterns)
    tables = {
        "Held-out similarities by Nystroem completion (largest error, relative to the largest similarity)": (
            completion(completed)
        ),
        "Observed values (diagonal included) that determine all similarities locally": identifiable,
        "Held-out error without noise, relative to the variance": curves(validated[is_clean]),
        "Held-out error with noise, relative to the variance": curves(validated[~is_clean]),
        "Number of dimensions with the smallest error": choices(validated),
    }
    claims = [*_algebra_claims(completed, identifiable), *_validation_claims(validated, settings)]
    return Outcome(claims, tables, _remarks(validated[is_clean]), partial(_draw, patterns, validated))


def _data_sets(settings: Settings) -> list[Cell]:
    """A few without noise; several sizes with noise, because the rise beyond the true number depends on the size."""
    sizes: list[tuple[int, float]] = settings.pick(
        [(40, 1.0), (40, 0.9)],
        [(60, 1.0), (100, 0.9), (200, 0.9), (100, 0.5)],
        [(100, 1.0), (300, 0.9), *((n, snr) for n in (100, 200) for snr in (0.9, 0.5, 0.3))],
    )
    common = {"true_rank": settings.pick(3, 5, 5), "n_repeats": settings.pick(1, 1, 2)}
    seeds = settings.seeds(1, 4, 10)
    return [{"n_items": n, "snr": snr, "seed": seed, **common} for n, snr in sizes for seed in seeds]


def degrees_of_freedom(n_items: int, rank: int) -> int:
    """Degrees of freedom n r - r (r - 1) / 2: the entries of W, minus the rotations that leave W W^T unchanged."""
    return n_items * rank - rank * (rank - 1) // 2


def nystroem(S: NDArray[np.float64], items: NDArray[np.intp]) -> NDArray[np.float64]:
    """All similarities from the columns of some items: S_pI S_II^-1 S_Iq."""
    columns = S[:, items]
    return columns @ np.linalg.solve(S[np.ix_(items, items)], columns.T)


def jacobian(W: NDArray[np.float64], rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
    """The derivatives of w_i . w_j by all loadings, one row per pair (i, j); (i, i) is allowed."""
    n_items, rank = W.shape
    pairs = np.arange(len(rows))
    found = np.zeros((len(rows), n_items, rank))
    found[pairs, rows] += W[columns]
    found[pairs, columns] += W[rows]
    return found.reshape(len(rows), n_items * rank)


def measure_completion(cell: Cell) -> Cell:
    """Largest relative errors of held-out pairs, from the columns of r random items and of r - 1."""
    n_items, rank, seed = cell["n_items"], cell["rank"], cell["seed"]
    W = simulate.dirichlet(n_items, rank, alpha=_ALPHA_ALGEBRA, random_state=seed)
    S = W @ W.T
    items = np.random.default_rng(seed).permutation(n_items)[:rank]
    errors = []
    for observed in (items, items[:-1]):
        held_out = np.ones((n_items, n_items), dtype=bool)
        held_out[observed] = held_out[:, observed] = False
        errors.append(float(np.abs(nystroem(S, observed) - S)[held_out].max() / S.max()))
    condition = float(np.linalg.cond(S[np.ix_(items, items)]))
    return {"error": errors[0], "error_one_less": errors[1], "condition": condition}


def measure_identifiability(cell: Cell) -> Cell:
    """The Jacobian's rank as pairs are observed in random order after the diagonal, and when it is full."""
    n_items, rank, seed = cell["n_items"], cell["rank"], cell["seed"]
    W = simulate.dirichlet(n_items, rank, alpha=_ALPHA_ALGEBRA, random_state=seed)
    upper = np.stack(np.triu_indices(n_items, 1))
    diagonal = np.tile(np.arange(n_items), (2, 1))
    order = np.random.default_rng(seed).permutation(upper.shape[1])
    rows, columns = np.concatenate([diagonal, upper[:, order]], axis=1)
    full = degrees_of_freedom(n_items, rank)

    def rank_after(n_observed: int) -> int:
        with threadpool_limits(1, user_api="blas"):
            return int(np.linalg.matrix_rank(jacobian(W, rows[:n_observed], columns[:n_observed])))

    counts = [round(multiple * full) for multiple in MULTIPLES if round(multiple * full) <= len(rows)]
    low, high = full - 1, len(rows)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rank_after(middle) == full else (middle, high)
    ranks = [rank_after(count) for count in counts]
    return {"counts": counts, "ranks": ranks, "rank_of_all": rank_after(len(rows)), "first_full": high}


def measure_validation(cell: Cell) -> Cell:
    """Both schemes on one data set: errors relative to the variance of the similarities, and selected numbers."""
    n_items, true_rank, seed = cell["n_items"], cell["true_rank"], cell["seed"]
    W = simulate.dirichlet(n_items, true_rank, alpha=_ALPHA, random_state=seed)
    S = simulate.add_noise(W @ W.T, cell["snr"], random_state=seed)
    variance = float(S[np.triu_indices(n_items, 1)].var())
    ranks = list(range(max(1, true_rank - 3), 2 * true_rank + 1))
    found: Cell = {"ranks": ranks}
    options = {"n_folds": N_FOLDS, "n_repeats": cell["n_repeats"], "random_state": seed, "n_jobs": 1, "progress": False}
    # A flat curve may have its smallest error at the last rank, which is measured here.
    with warnings.catch_warnings(action="ignore"):
        shares = (ENTRYWISE, calibrate(S, random_state=seed, n_jobs=1).sampling)
        for scheme, share in zip(SCHEMES, shares, strict=True):
            selection = select_rank(S, ranks, sampling=share, alpha=0.0, **options)
            errors = selection.scores.groupby("rank")["error_alone"].mean() / variance
            found[scheme] = {
                "share": float(selection.training_share),
                "errors": [float(error) for error in errors],
                "smallest": ranks[int(np.argmin(errors))],
                "chosen": selection.rank,
            }
    return found


def by_scheme(validated: list[Cell]) -> pd.DataFrame:
    """One row per data set and scheme, with its errors below, at and after the true number."""
    rows = []
    for cell in validated:
        true = cell["ranks"].index(cell["true_rank"])
        for scheme in SCHEMES:
            errors = cell[scheme]["errors"]
            rows.append(
                {
                    **{name: cell[name] for name in ("n_items", "snr", "seed", "true_rank", "ranks")},
                    "scheme": scheme,
                    **cell[scheme],
                    "below": errors[true - 1],
                    "at": errors[true],
                    "twice": errors[-1],
                    "plateau": max(errors[true:]),
                    "rise": errors[-1] / min(errors) - 1,
                }
            )
    return pd.DataFrame(rows)


def completion(completed: pd.DataFrame) -> pd.DataFrame:
    """Largest errors for each number of dimensions."""
    table = completed.groupby(["n_items", "rank"], as_index=False).agg(
        error=("error", "max"), one_less=("error_one_less", "min"), condition=("condition", "max")
    )
    n, rank = table["n_items"], table["rank"]
    return pd.DataFrame(
        {
            "items": n,
            "dimensions": rank,
            "observed pairs": n * rank - rank * (rank + 1) // 2,
            "of all": n * (n - 1) // 2,
            "from r columns": table["error"],
            "from r - 1 columns": table["one_less"],
            "largest condition number": table["condition"],
        }
    )


def identifiability(patterns: pd.DataFrame) -> pd.DataFrame:
    """Degrees of freedom for each number of dimensions, and how many values random patterns need."""
    table = patterns.groupby(["n_items", "rank"], as_index=False).agg(
        all_observed=("rank_of_all", "min"), median=("first_full", "median"), largest=("first_full", "max")
    )
    n, rank = table["n_items"], table["rank"]
    return pd.DataFrame(
        {
            "items": n,
            "dimensions": rank,
            "n r - r (r - 1) / 2": n * rank - rank * (rank - 1) // 2,
            "rank, all observed": table["all_observed"],
            "full rank from (median)": table["median"],
            "full rank from (largest)": table["largest"],
            "5-fold training": (n + ENTRYWISE * n * (n - 1) / 2).round().astype(int),
        }
    )


def curves(validated: pd.DataFrame) -> pd.DataFrame:
    """Mean errors below, at and at twice the true number; with noise, the rise from the smallest to the last."""
    rows = []
    for n, snr, scheme, same in _grouped(validated):
        row = {
            "items": n,
            "SNR": snr,
            "scheme": scheme,
            "training share": same["share"].mean(),
            "at r* - 1": same["below"].mean(),
            "at r*": same["at"].mean(),
            "at 2 r*": same["twice"].mean(),
        }
        if snr < 1:
            row["rise to 2 r* (%)"] = 100 * same["rise"].mean()
            row["counted rise (%)"] = 100 * same["true_rank"].iloc[0] * n / (same["share"].mean() * n * (n - 1) / 2)
        rows.append(row)
    return pd.DataFrame(rows)


def choices(validated: pd.DataFrame) -> pd.DataFrame:
    """How often each scheme finds the true number and how far off it is, by the paper's rule and by select_rank's."""
    rows = []
    for n, snr, scheme, same in _grouped(validated):
        row = {"items": n, "SNR": snr, "data sets": len(same), "scheme": scheme}
        for rule, name in (("smallest", "smallest error"), ("chosen", "select_rank")):
            off = (same[rule] - same["true_rank"]).abs()
            row |= {f"right, {name}": int((off == 0).sum()), f"MAE, {name}": off.mean()}
        rows.append(row)
    return pd.DataFrame(rows)


def _grouped(validated: pd.DataFrame) -> list[tuple[int, float, str, pd.DataFrame]]:
    """Data sets of one size, noise level and scheme, the least noise first."""
    groups = validated.groupby([-validated["snr"], "n_items", "scheme"])
    return [(*same[["n_items", "snr", "scheme"]].iloc[0], same) for _, same in groups]


def _algebra_claims(completed: pd.DataFrame, table: pd.DataFrame) -> list[Claim]:
    largest = completed["error"].max()
    rounding = (completed["error"] / completed["condition"]).max() / np.finfo(float).eps
    is_full = bool((table["rank, all observed"] == table["n r - r (r - 1) / 2"]).all())
    needed = (table["full rank from (largest)"] / table["n r - r (r - 1) / 2"]).max()
    in_training = bool((table["full rank from (largest)"] <= table["5-fold training"]).all())
    return [
        Claim(
            "Held-out similarities from r observed columns, without noise",
            "exact (Nystroem)",
            f"largest error {largest:.1g}: {rounding:.0f} times rounding and the condition of the block",
            bool(rounding < 100),
        ),
        Claim(
            "Rank of the Jacobian",
            "n r - r (r - 1) / 2 where all pairs are observed",
            "the same for every W" if is_full else "smaller for some W",
            is_full,
        ),
        Claim(
            "Random patterns that determine the rest locally",
            "sufficiently large ones do",
            f"all with {needed:.1f} times as many values as degrees of freedom; 5-fold training has "
            + ("more" if in_training else "fewer"),
            in_training,
        ),
    ]


def _validation_claims(validated: pd.DataFrame, settings: Settings) -> list[Claim]:
    noisy = validated[validated["snr"] < 1]
    clean = validated[(validated["snr"] == 1) & (validated["scheme"] == "entrywise")]
    entrywise, restricted = (noisy[noisy["scheme"] == scheme].reset_index() for scheme in SCHEMES)
    rises = [part["rise"].mean() for part in (entrywise, restricted)]
    off = [(part["smallest"] - part["true_rank"]).abs() for part in (entrywise, restricted)]
    difference = off[0] - off[1]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return [
        Claim(
            "Entrywise cross-validation without noise, from r* to 2 r*",
            "error zero at r*; plateaus at and above it",
            f"at most {clean['plateau'].max():.1g} of the variance ({clean['below'].min():.1g} or more at r* - 1)",
            bool(clean["plateau"].max() < _NEGLIGIBLE),
        ),
        Claim(
            "Error at 2 r* above the smallest one, with noise",
            "derived without noise: flat for entrywise cross-validation, a minimum for the restricted scheme",
            f"entrywise {rises[0]:.0%}, restricted {rises[1]:.0%}",
            settings.verdict(rises[0] < _FLAT <= rises[1]),
        ),
        Claim(
            "Entrywise cross-validation as a way to find r*, with noise",
            "unreliable",
            f"mean absolute error {off[0].mean():.2f}, restricted {off[1].mean():.2f}",
            None if settings.is_smoke else is_positive(difference.mean(), error),
        ),
    ]


def _remarks(clean: pd.DataFrame) -> list[str]:
    n, true_rank = int(clean["n_items"].iloc[0]), int(clean["true_rank"].iloc[0])
    restricted = clean[clean["scheme"] == "restricted"]
    seen = n + restricted["share"].mean() * n * (n - 1) / 2
    return [
        f"Cross-validation: Dirichlet alpha {_ALPHA:g}, r* = {true_rank}, {N_FOLDS} folds, errors of single fits; both "
        f"schemes see the same data. The cap leaves out {1 - MOST_SAMPLING:.0%} of the pairs.",
        f"Without noise, the restricted scheme has a plateau at {restricted['plateau'].max():.1g} of the variance. Its "
        f"fits see {seen / degrees_of_freedom(n, true_rank):.1f} times as many values as W W^T has degrees of freedom "
        f"at r*, and {seen / degrees_of_freedom(n, 2 * true_rank):.1f} times as many at 2 r*.",
    ]


def _draw(patterns: pd.DataFrame, validated: pd.DataFrame) -> Figure:
    """Patterns that determine the rest, and the curves of both schemes without and with noise."""
    figure = new_figure(7.0, 2.4)
    left, middle, right = figure.subplots(1, 3)
    _draw_patterns(left, patterns)
    _draw_clean(middle, validated[validated["snr"] == 1])
    noisy = validated[validated["snr"] < 1]
    noisy = noisy[noisy["snr"] == noisy["snr"].max()]
    _draw_noisy(right, noisy[noisy["n_items"] == noisy["n_items"].max()])
    return figure


def _draw_patterns(ax: Axes, patterns: pd.DataFrame) -> None:
    """The share of patterns whose Jacobian has full rank, by the number of observed values."""
    for (_, same), colour in zip(patterns.groupby("rank"), COLOURS, strict=False):
        rank = int(same["rank"].iloc[0])
        full = degrees_of_freedom(int(same["n_items"].iloc[0]), rank)
        reached = 100 * np.mean([np.array(ranks) == full for ranks in same["ranks"]], axis=0)
        ax.plot(
            np.array(same["counts"].iloc[0]) / full, reached, "o-", color=colour, label=f"{rank} dimensions", **MARKS
        )
    ax.axvline(1, color=QUIET, linewidth=0.6, linestyle=":")
    tidy(ax, "Observed values per degree of freedom", "Patterns that determine S locally (%)")
    legend(ax, loc="lower right")


def _draw_clean(ax: Axes, cells: pd.DataFrame) -> None:
    """Geometric means over data sets; each data set as a pale line."""
    for scheme, colour in zip(SCHEMES, (ACCENT, MAIN), strict=True):
        same = cells[cells["scheme"] == scheme]
        errors = np.maximum(np.array(same["errors"].tolist()), 1e-16)
        ax.plot(same["ranks"].iloc[0], errors.T, color=colour, linewidth=0.3, alpha=0.5)
        middle = np.exp(np.log(errors).mean(axis=0))
        ax.plot(same["ranks"].iloc[0], middle, "o-", color=colour, label=scheme, **MARKS)
    ax.set_yscale("log")
    _finish(ax, cells, "Held-out error / variance")


def _draw_noisy(ax: Axes, cells: pd.DataFrame) -> None:
    """Errors relative to the smallest of each data set: mean and standard deviation."""
    true = cells["ranks"].iloc[0].index(cells["true_rank"].iloc[0])
    highest = 0.0
    for scheme, colour in zip(SCHEMES, (ACCENT, MAIN), strict=True):
        same = cells[cells["scheme"] == scheme]
        errors = np.array(same["errors"].tolist())
        errors /= errors.min(axis=1, keepdims=True)
        mean, spread = errors.mean(axis=0), errors.std(axis=0)
        ax.plot(same["ranks"].iloc[0], mean, "o-", color=colour, label=scheme, **MARKS)
        ax.fill_between(same["ranks"].iloc[0], mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        highest = max(highest, float((mean + spread)[true:].max()))
    ax.set_ylim(1 - 0.1 * (highest - 1), 1 + 1.6 * (highest - 1))
    _finish(ax, cells, "Held-out error / smallest")


def _finish(ax: Axes, cells: pd.DataFrame, ylabel: str) -> None:
    first = cells.iloc[0]
    ax.axvline(first["true_rank"], color=QUIET, linewidth=0.6, linestyle=":")
    ax.set_title(f"{first['n_items']} items, {noise_name(first['snr'])}", fontsize=TINY)
    tidy(ax, "Number of dimensions", ylabel)
    whole_ticks(ax)
    legend(ax, loc="upper right")
