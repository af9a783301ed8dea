"""Format the results of bench_rivals.py as Markdown tables and a figure."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

# Of "admm over bcd", from the same start, by items and observed share.
GOALS = {
    (120, 1.0): 4,
    (120, 0.7): 8,
    (120, 0.3): 10,
    (120, 0.1): 30,
    (1854, 1.0): 5,
    (1854, 0.7): 8,
    (1854, 0.3): 15,
    (1854, 0.1): 100,
}

NAMES = {"admm": "ADMM", "bcd": "bcd", "lbfgs": "L-BFGS-B", "nmf": "NMF (W H)"}
COLORS = {"admm": "#7f7f7f", "bcd": "#0072b2", "lbfgs": "#e69f00", "nmf": "#cc79a7"}


def print_tables(results: dict[str, Any]) -> None:
    machine = results["machine"]
    print(f"\n{machine['cores']} cores, {machine['processor']}, Python {machine['python']}, NumPy {machine['numpy']}\n")
    print("Seconds to ADMM's final objective, and how many times faster than ADMM; medians.\n")
    print("| n | r | observed | ADMM | bcd | goal | L-BFGS-B | NMF (W H) | bcd over the best rival |")
    print("|---|---|---|---|---|---|---|---|---|")
    for race in results["races"]:
        goal = GOALS.get((race["n_items"], race["observed"]))
        print(
            f"| {race['n_items']:,} | {race['n_components']} | {race['observed']:.0%} | {seconds(race, 'admm')} | "
            f"{timed(race, 'bcd')} | {f'{goal}x' if goal else '-'} | {timed(race, 'lbfgs')} | {timed(race, 'nmf')} | "
            f"{over_best_rival(race)} |"
        )
    print("\nFinal objectives over ADMM's, each at its own stopping rule, and peak memory beside S in MB; medians.\n")
    print("| n | observed | bcd | L-BFGS-B | NMF, of W H | NMF, symmetrised | MB: ADMM | bcd | L-BFGS-B | NMF |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for race in results["races"]:
        ratios = [number(median(race, name, "objective_over_admm"), ".4f") for name in ("bcd", "lbfgs", "nmf")]
        memory = [number(median(race, name, "megabytes"), ".0f") for name in NAMES]
        print(
            f"| {race['n_items']:,} | {race['observed']:.0%} | {' | '.join(ratios)} | {symmetrised_ratio(race)} | "
            f"{' | '.join(memory)} |"
        )
    print_products(results["products"])


def print_products(products: list[dict[str, Any]]) -> None:
    print("\nComplete data, a default fit beside as many bare products S @ W as it has sweeps.\n")
    print(
        "| n | r | sweeps | fit, s | BLAS threads | S @ W, GFLOP/s | dgemm, GFLOP/s | fit / bare products | "
        "bare products' share of the fit | products' rate in the fit / dgemm |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in products:
        for threads in ("one_thread", "all_threads"):
            found = row[threads]
            print(
                f"| {row['n_items']:,} | {row['n_components']} | {row['sweeps']} | {row['fit_seconds']:.3g} | "
                f"{threads.split('_')[0]} | {found['product_gigaflops']:.1f} | {found['square_gigaflops']:.1f} | "
                f"{found['fit_over_products']:.2f} | {found['share_of_fit_in_products']:.0%} | "
                f"{found['fit_fraction_of_dgemm']:.0%} |"
            )


def median(race: dict[str, Any], method: str, field: str) -> float | None:
    """The median over data sets; None if a method was not run or did not finish in half of them."""
    values = [run[method][field] for run in race["runs"] if method in run]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and 2 * len(known) > len(values) else None


def number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def seconds(race: dict[str, Any], method: str) -> str:
    return number(median(race, method, "seconds"), ".3g")


def timed(race: dict[str, Any], method: str) -> str:
    """Seconds and the speed-up over ADMM, from runs with the same data and start."""
    if method not in race["runs"][0]:
        return "-"
    if median(race, method, "seconds") is None:
        return "not reached"
    return f"{seconds(race, method)} ({number(median(race, method, 'speedup_over_admm'), '.3g')}x)"


def over_best_rival(race: dict[str, Any]) -> str:
    """The shortest time of any other method for the same model, divided by that of bcd."""
    ratios = []
    for run in race["runs"]:
        others = [run[name]["seconds"] for name in ("admm", "lbfgs") if run[name]["seconds"]]
        if run["bcd"]["seconds"]:
            ratios.append(min(others) / run["bcd"]["seconds"])
    return f"{statistics.median(ratios):.3g}x" if ratios else "not reached"


def symmetrised_ratio(race: dict[str, Any]) -> str:
    if "nmf" not in race["runs"][0]:
        return "-"
    ratios = [run["nmf"]["symmetrised_objective"] / run["admm"]["objective"] for run in race["runs"]]
    return f"{statistics.median(ratios):.4f}"


def draw(results: dict[str, Any], path: Path) -> None:
    """Seconds to ADMM's final objective against the observed share, one panel per number of items."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    sizes = sorted({race["n_items"] for race in results["races"]})
    figure = Figure(figsize=(3.2 * len(sizes), 3.4), layout="constrained")
    panels = figure.subplots(1, len(sizes), squeeze=False)[0]
    for panel, n_items in zip(panels, sizes, strict=True):
        races = [race for race in results["races"] if race["n_items"] == n_items]
        for method, name in NAMES.items():
            points = [(place, median(race, method, "seconds")) for place, race in enumerate(races)]
            known = [point for point in points if point[1] is not None]
            if known:
                places, values = zip(*known, strict=True)
                panel.plot(places, values, "o-", color=COLORS[method], label=name, markersize=4)
        panel.set_xticks(range(len(races)), [f"{race['observed']:.0%}" for race in races])
        panel.set(title=f"{n_items:,} items, {races[0]['n_components']} dimensions", xlabel="pairs observed")
        panel.set_yscale("log")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("seconds to ADMM's final objective")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=120)
