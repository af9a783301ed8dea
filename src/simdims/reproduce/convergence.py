"""Supplement, "Convergence and the lower bound on rho": the augmented Lagrangian of ADMM over iterations.

L_rho(W, Z, dual) = 1/2 |M o (S - Z)|^2 + <dual, Z - W W^T> + rho / 2 |Z - W W^T|^2
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simdims import simulate
from simdims._parallel import seed_of
from simdims.features import from_features
from simdims.reproduce.frame import Cell, Claim, Outcome, Settings, run_each
from simdims.solvers import admm, as_problem, random_start

if TYPE_CHECKING:
    import pandas as pd

#: The paper's threshold, and the penalty of all its experiments.
THRESHOLD, PUBLISHED_RHO = float(np.sqrt(2)), 3.0
RHOS = (0.1, 0.3, 0.5, 1.0, THRESHOLD, PUBLISHED_RHO, 10.0)
KINDS = ("linear", "RBF")
_OBSERVED, _SNR, _INNER = 0.5, 0.5, 10

#: A step counts as a rise where it is more than rounding: beyond this share of the first value.
_ROUNDING = 1e-10
#: The projection counts as rarely active below this mean share of the entries.
_RARELY = 0.01


def run(settings: Settings) -> Outcome:
    """Follow the Lagrangian with and without the box, for rho below and above the square root of 2."""
    sizes: list[tuple[int, int]] = settings.pick([(30, 3)], [(60, 5)], [(60, 5), (150, 10)])
    rhos = settings.pick((0.1, THRESHOLD, PUBLISHED_RHO), RHOS, RHOS)
    n_seeds, n_iter = settings.pick(1, 5, 10), settings.pick(40, 200, 200)
    cells = [
        {"kind": kind, "n_items": n, "n_components": r, "rho": rho, "box": box, "n_iter": n_iter, "seed": seed}
        for n, r in sizes
        for kind in KINDS
        for seed in (seed_of(settings.seed, number) for number in range(n_seeds))
        for rho in rhos
        for box in (False, True)
    ]
    traces = run_each(settings, "convergence", measure, cells, stage="iterations of ADMM")
    for trace in traces:
        above_rounding = rises(np.array(trace["lagrangian"]))
        trace["n_rises"], trace["largest_rise"] = len(above_rounding), float(max(above_rounding, default=0.0))
    return Outcome(
        claims=_claims(traces, settings),
        tables={
            "Steps at which the Lagrangian rises, from the second iteration on": by_rho(traces),
            f"Entries of Z that the box cuts off, rho = {PUBLISHED_RHO:g}": by_kind(traces),
        },
        remarks=_remarks(traces, n_seeds, n_iter),
        draw=partial(_draw, traces),
    )


def measure(cell: Cell) -> Cell:
    """One run of ADMM on simulated similarities, half of them missing."""
    S = draw_similarities(cell["kind"], cell["n_items"], cell["n_components"], cell["seed"])
    problem: Any = as_problem(S)
    W = random_start(problem, cell["n_components"], np.random.RandomState(cell["seed"]))
    bounds = (float(np.nanmin(S)), float(np.nanmax(S))) if cell["box"] else None
    return follow(S, W, rho=cell["rho"], bounds=bounds, n_iter=cell["n_iter"])


def draw_similarities(kind: str, n_items: int, n_components: int, seed: int) -> np.ndarray:
    """Dimensions' products with noise ("linear"), or a Gaussian kernel of them ("RBF"); half of the pairs observed."""
    W = simulate.dirichlet(n_items, n_components, alpha=0.5, random_state=seed)
    if kind == "linear":
        S = simulate.add_noise(W @ W.T, _SNR, random_state=seed)
    else:
        S = np.asarray(from_features(W, kernel="rbf").values)
    return simulate.mask_pairs(S, _OBSERVED, random_state=seed)


def follow(S: np.ndarray, W: np.ndarray, *, rho: float, bounds: tuple[float, float] | None, n_iter: int) -> Cell:
    """Iterate ADMM from W and record what the theorem is about.

    `lagrangian` has the start and one value an iteration; the other lists one value an iteration: `projected`, the
    share of the entries that the box moves, and `threshold`, the rho that the paper asks for with so many of them,
    sqrt(8 projected) sup |W|_op, over all iterations and the start. `kkt_gap` is the largest entry of
    dual - M o (S - Z), ever.
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
        share = float(np.mean((free < low) | (free > high)))
        values.append(lagrangian(S, state))
        projected.append(share)
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
    """The steps up from the second iteration on, as shares of the value after the first; values[0] is the start."""
    steps = np.diff(values[1:]) / abs(values[1])
    return steps[steps > _ROUNDING]


def by_rho(traces: list[Cell]) -> pd.DataFrame:
    """Steps that rise, for each rho, without and with the box."""
    import pandas as pd

    rows = []
    for rho in sorted({trace["rho"] for trace in traces}):
        row: dict[str, Any] = {"rho": rho}
        for box, name in ((False, "no box"), (True, "box")):
            runs = [trace for trace in traces if trace["rho"] == rho and trace["box"] == box]
            row[f"steps ({name})"] = sum(len(trace["lagrangian"]) - 2 for trace in runs)
            row[f"rises ({name})"] = sum(trace["n_rises"] for trace in runs)
            row[f"largest rise ({name})"] = max(trace["largest_rise"] for trace in runs)
        rows.append(row)
    return pd.DataFrame(rows)


def by_kind(traces: list[Cell]) -> pd.DataFrame:
    """The share of projected entries at the paper's rho: at the start, at the end, and over all iterations."""
    import pandas as pd

    rows = []
    for kind, n in sorted({(trace["kind"], trace["n_items"]) for trace in traces}):
        runs = [trace for trace in _boxed(traces) if (trace["kind"], trace["n_items"]) == (kind, n)]
        shares = np.array([trace["projected"] for trace in runs])
        rows.append(
            {
                "kernel": kind,
                "items": n,
                "first iteration (%)": round(100 * float(shares[:, 0].mean()), 3),
                "last iteration (%)": round(100 * float(shares[:, -1].mean()), 3),
                "mean (%)": round(100 * float(shares.mean()), 3),
                "largest (%)": round(100 * float(shares.max()), 3),
                "largest rho that the paper asks for": float(max(max(trace["threshold"]) for trace in runs)),
            }
        )
    return pd.DataFrame(rows)


def _boxed(traces: list[Cell]) -> list[Cell]:
    return [trace for trace in traces if trace["box"] and trace["rho"] == PUBLISHED_RHO]


def _claims(traces: list[Cell], settings: Settings) -> list[Claim]:
    above = [trace for trace in traces if trace["rho"] >= THRESHOLD]
    free, boxed = [t for t in above if not t["box"]], [t for t in above if t["box"]]
    covered = [trace for trace in boxed if trace["rho"] >= max(trace["threshold"])]
    others = [trace for trace in boxed if trace["rho"] < max(trace["threshold"])]
    below = [trace for trace in traces if trace["rho"] < THRESHOLD and not trace["box"]]
    rising = sorted({trace["rho"] for trace in below if trace["n_rises"]})
    silent = sorted({trace["rho"] for trace in below} - set(rising))
    shares = {
        kind: np.array([trace["projected"] for trace in _boxed(traces) if trace["kind"] == kind]) for kind in KINDS
    }
    kkt_gap = max(trace["kkt_gap"] for trace in traces if not trace["box"])
    return [
        Claim(
            "the Lagrangian never rises from the second iteration on for rho >= sqrt 2",
            "non-increasing where the projection is inactive",
            _counted(free),
            not any(trace["n_rises"] for trace in free),
        ),
        Claim(
            "with the box of the data range: for rho >= sqrt(8 s) sup |W|_op too, of the share s of projected entries",
            "still holds",
            _counted(covered) + (f"; with a smaller rho {_counted(others)}" if others else ""),
            not any(trace["n_rises"] for trace in covered) if covered else None,
        ),
        Claim(
            "rho below sqrt 2",
            "no guarantee",
            f"rises at rho = {_listed(rising)}" + (f", not at {_listed(silent)}" if silent else ""),
            bool(rising),
        ),
        Claim(
            f"share of entries that the projection moves, rho = {PUBLISHED_RHO:g}",
            "unlikely to occur",
            "; ".join(f"{kind} kernel: {share.mean():.2%} (mean of iterations)" for kind, share in shares.items()),
            None if settings.size == "smoke" else all(bool(s.mean() < _RARELY) for s in shares.values()),
        ),
        Claim(
            "the dual is M o (S - Z) where the projection is inactive",
            "an identity",
            f"largest difference {kkt_gap:.1g}",
            kkt_gap < 1e-10,
        ),
    ]


def _counted(traces: list[Cell]) -> str:
    n_steps = sum(len(trace["lagrangian"]) - 2 for trace in traces)
    n_rises = sum(trace["n_rises"] for trace in traces)
    largest = max((trace["largest_rise"] for trace in traces), default=0.0)
    size = f", by at most {largest:.1g} of the value after the first iteration" if n_rises else ""
    return f"{n_rises:,} of {n_steps:,} steps rise{size}"


def _listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers) or "none"


def _remarks(traces: list[Cell], n_seeds: int, n_iter: int) -> list[str]:
    first = [trace["lagrangian"][1] > trace["lagrangian"][0] for trace in traces if trace["rho"] >= THRESHOLD]
    sizes = sorted({(trace["n_items"], trace["n_components"]) for trace in traces})
    asked = max(max(trace["threshold"]) for trace in _boxed(traces))
    shapes = ", and ".join(f"{n} items and {r} dimensions" for n, r in sizes)
    return [
        f"Simulated for each kernel: {shapes}, data sets of each size: {n_seeds}, half of the pairs missing, "
        f"{n_iter} iterations of {_INNER} sBSUM sweeps. The linear kernel has noise (SNR {_SNR:g}); the RBF kernel has "
        "ones on its diagonal, as the paper's argument about the projection supposes.",
        f"The theorem says every iteration; the first one rises in {sum(first)} of {len(first)} runs with rho >= sqrt "
        "2. Its proof needs the dual of the iteration before to be M o (S - Z), which the zero dual of the start is "
        "not. From the second iteration on it applies.",
        "The threshold is sufficient and not sharp: the dual changes on observed pairs alone, where the Z-problem is "
        "strongly convex with rho + 1 instead of rho. Put into the paper's proof, this asks for "
        "1 / rho <= (rho + 1) / 2, which is rho >= 1.",
        "The projection is not rare where the kernel is nowhere zero: two items that share no dimension have the "
        "product 0, which is less than the smallest similarity, so that Z is held at the lower end of the box. These "
        "entries are moved by little, and what the Lagrangian rises by is as small, but the dual of such an entry "
        "grows with every iteration until W has given way."
        + (
            f" With so many of them the paper asks for a rho of up to {asked:.1f}, more than its {PUBLISHED_RHO:g}."
            if asked > PUBLISHED_RHO
            else ""
        ),
    ]


def _draw(traces: list[Cell]) -> Any:
    from simdims.reproduce.convergence_figure import draw

    return draw(traces)
