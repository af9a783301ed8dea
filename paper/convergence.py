"""Supplement, "Convergence and the lower bound on rho": the augmented Lagrangian of ADMM over iterations.

L_rho(W, Z, dual) = 1/2 |M o (S - Z)|^2 + <dual, Z - W W^T> + rho / 2 |Z - W W^T|^2
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper.figures import ACCENT, COLOURS, MAIN, OTHER, QUIET, SECOND, TINY, legend, log_ticks, new_figure, tidy
from paper.harness import Cell, Claim, Outcome, Settings, run_each
from simdims import from_features, simulate
from simdims.solvers import admm, as_problem, random_start

#: The paper's threshold, and the penalty in all its experiments.
THRESHOLD, PUBLISHED_RHO = float(np.sqrt(2)), 3.0
RHOS = (0.1, 0.3, 0.5, 1.0, THRESHOLD, PUBLISHED_RHO, 10.0)
KERNELS = ("linear", "RBF")

_OBSERVED, _SNR, _INNER = 0.5, 0.5, 10
#: A step counts as a rise if it exceeds rounding: this share of the first value.
_ROUNDING = 1e-10
#: Projection counts as rare below this mean share of the entries.
_RARE = 0.01
#: Iterations shown in the first panel.
_SHOWN = 60


def run(settings: Settings) -> Outcome:
    """Follow the Lagrangian with and without the box, for rho below and above the square root of 2."""
    sizes: list[tuple[int, int]] = settings.pick([(30, 3)], [(60, 5)], [(60, 5), (150, 10)])
    seeds, n_iter = settings.seeds(1, 5, 10), settings.pick(40, 200, 200)
    cells = [
        {"kind": kind, "n_items": n, "n_components": r, "rho": rho, "box": box, "n_iter": n_iter, "seed": seed}
        for n, r in sizes
        for kind in KERNELS
        for seed in seeds
        for rho in settings.pick((0.1, THRESHOLD, PUBLISHED_RHO), RHOS, RHOS)
        for box in (False, True)
    ]
    traces = pd.DataFrame(run_each(settings, "convergence", measure, cells))
    steps = [rises(np.array(values)) for values in traces["lagrangian"]]
    traces = traces.assign(
        n_steps=[len(values) - 2 for values in traces["lagrangian"]],
        n_rises=[len(rising) for rising in steps],
        largest_rise=[float(max(rising, default=0.0)) for rising in steps],
        asked=traces["threshold"].map(max),
    )
    tables = {
        "Steps at which the Lagrangian rises, from the second iteration on": by_rho(traces),
        f"Entries of Z that the box projects, rho = {PUBLISHED_RHO:g}": by_kernel(traces),
    }
    return Outcome(
        _claims(traces, settings), tables, _remarks(traces, sizes, len(seeds), n_iter), partial(_draw, traces)
    )


def measure(cell: Cell) -> Cell:
    """One run of ADMM on simulated similarities with half of the pairs missing."""
    S = draw_similarities(cell["kind"], cell["n_items"], cell["n_components"], cell["seed"])
    W = random_start(as_problem(S), cell["n_components"], np.random.RandomState(cell["seed"]))
    bounds = (float(np.nanmin(S)), float(np.nanmax(S))) if cell["box"] else None
    return follow(S, W, rho=cell["rho"], bounds=bounds, n_iter=cell["n_iter"])


def draw_similarities(kernel: str, n_items: int, n_components: int, seed: int) -> np.ndarray:
    """Products of loadings with noise ("linear"), or a Gaussian kernel of them ("RBF"), with half of the pairs."""
    W = simulate.dirichlet(n_items, n_components, alpha=0.5, random_state=seed)
    if kernel == "linear":
        S = simulate.add_noise(W @ W.T, _SNR, random_state=seed)
    else:
        S = np.asarray(from_features(W, kernel="rbf").values)
    return simulate.mask_pairs(S, _OBSERVED, random_state=seed)


def follow(S: np.ndarray, W: np.ndarray, *, rho: float, bounds: tuple[float, float] | None, n_iter: int) -> Cell:
    """Iterate ADMM from W and record the quantities in the theorem.

    `lagrangian` has the value at the start and after each iteration. `projected` is the share of entries that the box
    moves in each iteration, and `threshold` the rho that the paper requires for it, sqrt(8 projected) sup |W|_op over
    all iterations and the start. `kkt_gap` is the largest entry of dual - M o (S - Z) in any iteration.
    """
    observed = ~np.isnan(S)
    known = np.nan_to_num(S)
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    problem: Any = as_problem(S)
    state = admm.initial_state(problem, W.copy(), rho=rho)
    values, projected, kkt_gap = [lagrangian(S, state)], [], 0.0
    longest = float(np.linalg.norm(W, 2))
    for _ in range(n_iter):
        dual = state.dual.copy()
        admm.iterate(problem, state, inner_iter=_INNER, bounds=bounds)
        free = (known + rho * (state.W @ state.W.T) - dual) / (rho + observed)
        values.append(lagrangian(S, state))
        projected.append(float(np.mean((free < low) | (free > high))))
        longest = max(longest, float(np.linalg.norm(state.W, 2)))
        kkt_gap = max(kkt_gap, float(np.abs(state.dual - observed * (known - state.Z)).max()))
    thresholds = [float(np.sqrt(8 * share)) * longest for share in projected]
    return {"lagrangian": values, "projected": projected, "threshold": thresholds, "kkt_gap": kkt_gap}


def lagrangian(S: np.ndarray, state: admm.State) -> float:
    """The augmented Lagrangian of feasible W and Z; NaN in S is a missing pair."""
    gap = state.Z - state.W @ state.W.T
    misfit = 0.5 * np.nansum((S - state.Z) ** 2)
    return float(misfit + np.sum(state.dual * gap) + 0.5 * state.rho * np.sum(gap**2))


def rises(values: np.ndarray) -> np.ndarray:
    """Increases from the second iteration on, as shares of the value after the first; values[0] is the start."""
    steps = np.diff(values[1:]) / abs(values[1])
    return steps[steps > _ROUNDING]


def by_rho(traces: pd.DataFrame) -> pd.DataFrame:
    """Number of increasing steps for each rho, without and with the box."""
    table = traces.groupby(["rho", "box"]).agg(
        steps=("n_steps", "sum"), rises=("n_rises", "sum"), largest=("largest_rise", "max")
    )
    names = {"steps": "steps", "rises": "rises", "largest": "largest rise"}
    columns = {
        f"{words} ({'box' if box else 'no box'})": table[name].xs(box, level="box")
        for box in (False, True)
        for name, words in names.items()
    }
    return pd.DataFrame(columns).reset_index()


def by_kernel(traces: pd.DataFrame) -> pd.DataFrame:
    """The share of projected entries at the paper's rho: at the start, at the end, and over all iterations."""
    rows = []
    for (kernel, n), runs in _boxed(traces).groupby(["kind", "n_items"]):
        shares = 100 * np.array(runs["projected"].tolist())
        rows.append(
            {
                "kernel": kernel,
                "items": n,
                "first iteration (%)": round(shares[:, 0].mean(), 3),
                "last iteration (%)": round(shares[:, -1].mean(), 3),
                "mean (%)": round(shares.mean(), 3),
                "largest (%)": round(shares.max(), 3),
                "largest rho that the paper requires": runs["asked"].max(),
            }
        )
    return pd.DataFrame(rows)


def _boxed(traces: pd.DataFrame) -> pd.DataFrame:
    return traces[traces["box"] & (traces["rho"] == PUBLISHED_RHO)]


def _claims(traces: pd.DataFrame, settings: Settings) -> list[Claim]:
    above, box = traces["rho"] >= THRESHOLD, traces["box"]
    free = traces[above & ~box]
    covered = traces[above & box & (traces["rho"] >= traces["asked"])]
    others = traces[above & box & (traces["rho"] < traces["asked"])]
    small_rhos = traces[~above & ~box].groupby("rho")["n_rises"].sum()
    rising = ", ".join(f"{rho:g}" for rho, count in small_rhos.items() if count)
    silent = ", ".join(f"{rho:g}" for rho, count in small_rhos.items() if not count)
    boxed = _boxed(traces)
    shares = {kernel: np.mean(boxed.loc[boxed["kind"] == kernel, "projected"].tolist()) for kernel in KERNELS}
    kkt_gap = traces.loc[~box, "kkt_gap"].max()
    return [
        Claim(
            "The Lagrangian never rises from the second iteration on for rho >= sqrt 2",
            "non-increasing where the projection is inactive",
            counted(free),
            not free["n_rises"].any(),
        ),
        Claim(
            "With the box of the data range: the same for rho >= sqrt(8 s) sup |W|_op, with the share s of projections",
            "still holds",
            counted(covered) + (f"; with a smaller rho {counted(others)}" if len(others) else ""),
            not covered["n_rises"].any() if len(covered) else None,
        ),
        Claim(
            "rho below sqrt 2",
            "no guarantee",
            f"rises at rho = {rising or 'none'}" + (f", not at {silent}" if silent else ""),
            bool(rising),
        ),
        Claim(
            f"Share of entries that are projected, rho = {PUBLISHED_RHO:g}",
            "unlikely to occur",
            "; ".join(f"{kernel} kernel: {share:.2%} (mean over iterations)" for kernel, share in shares.items()),
            settings.verdict(all(share < _RARE for share in shares.values())),
        ),
        Claim(
            "The dual equals M o (S - Z) where the projection is inactive",
            "an identity",
            f"largest difference {kkt_gap:.1g}",
            bool(kkt_gap < 1e-10),
        ),
    ]


def counted(traces: pd.DataFrame) -> str:
    """How many steps increase, and by how much."""
    n_rises, largest = traces["n_rises"].sum(), traces["largest_rise"].max()
    size = f", by at most {largest:.1g} of the value after the first iteration" if n_rises else ""
    return f"{n_rises:,} of {traces['n_steps'].sum():,} steps rise{size}"


def _remarks(traces: pd.DataFrame, sizes: list[tuple[int, int]], n_seeds: int, n_iter: int) -> list[str]:
    first = [values[1] > values[0] for values in traces.loc[traces["rho"] >= THRESHOLD, "lagrangian"]]
    asked = _boxed(traces)["asked"].max()
    shapes = ", and ".join(f"{n} items and {r} dimensions" for n, r in sizes)
    remarks = [
        f"Simulated for each kernel: {shapes}, {n_seeds} data sets of each size, half of the pairs missing, {n_iter} "
        f"iterations of {_INNER} sBSUM sweeps. The linear kernel has noise (SNR {_SNR:g}). The RBF kernel has ones on "
        "its diagonal, as the paper's argument about the projection assumes.",
        f"The first iteration rises in {sum(first)} of {len(first)} runs with rho >= sqrt 2.",
    ]
    if asked > PUBLISHED_RHO:
        remarks.append(
            f"With so many projections, the paper requires a rho of up to {asked:.1f}, more than its {PUBLISHED_RHO:g}."
        )
    return remarks


def _draw(traces: pd.DataFrame) -> Figure:
    """The Lagrangian over iterations, the share of increases by rho, and the share of projected entries."""
    figure = new_figure(7.0, 2.4)
    left, middle, right = figure.subplots(1, 3)
    first = traces[traces["kind"] == "linear"].iloc[0]
    is_same = (traces[["kind", "n_items", "seed"]] == first[["kind", "n_items", "seed"]]).all(axis=1)
    same = traces[is_same & ~traces["box"]]
    for rho, values, colour in zip(same["rho"], same["lagrangian"], COLOURS, strict=False):
        label = "sqrt 2" if np.isclose(rho, THRESHOLD) else f"{rho:g}"
        shown = values[1 : _SHOWN + 1]
        left.plot(range(1, len(shown) + 1), shown, color=colour, linewidth=1, label=label)
    tidy(left, "Iteration", "Augmented Lagrangian")
    legend(left, title="rho", title_fontsize=TINY, ncols=2)
    _draw_rises(middle, by_rho(traces))
    _draw_projected(right, _boxed(traces))
    return figure


def _draw_rises(ax: Axes, table: pd.DataFrame) -> None:
    for name, colour, style in (("no box", MAIN, "o-"), ("box", ACCENT, "s--")):
        shares = 100 * table[f"rises ({name})"] / table[f"steps ({name})"]
        ax.plot(table["rho"], shares, style, color=colour, markersize=3, linewidth=1, label=name)
    ax.axvline(THRESHOLD, color=QUIET, linewidth=0.6, linestyle=":")
    ax.text(1.5, 0.75 * ax.get_ylim()[1], "sqrt 2", fontsize=TINY, color=QUIET)
    shown = [rho for rho in table["rho"] if not 1 < rho < 2]
    log_ticks(ax, shown)
    tidy(ax, "rho", "Steps that rise (%)")
    legend(ax)


def _draw_projected(ax: Axes, boxed: pd.DataFrame) -> None:
    """The mean share over data sets; each data set as a pale line."""
    for kernel, colour in zip(KERNELS, (SECOND, MAIN), strict=True):
        shares = 100 * np.array(boxed.loc[boxed["kind"] == kernel, "projected"].tolist())
        iterations = np.arange(1, shares.shape[1] + 1)
        ax.plot(iterations, shares.T, color=OTHER, linewidth=0.3)
        ax.plot(iterations, shares.mean(axis=0), color=colour, linewidth=1.2, label=f"{kernel} kernel", zorder=3)
    log_ticks(ax, [tick for tick in (1, 3, 10, 30, 100) if tick <= iterations[-1]])
    tidy(ax, "Iteration", "Projected entries of Z (%)")
    legend(ax)
