"""hypothesis_tests and power_curves: results and power of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, ParameterTypeError, require_choice, require_count, require_type
from simdims.inference import HypothesisTests
from simdims.plots import _style as style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_TESTS = {
    "dimension": ("dimensions (SRF)", style.MAIN, "o", "-"),
    "rsa": ("similarities (RSA)", style.ACCENT, "s", "--"),
    "combined": ("combined", style.SECOND, "D", "-."),
}
#: Maximum share of the width for the names of hypotheses, and of that for the name of a dimension.
_NAMES, _DIMENSION = 0.42, 0.4
_NOISES = {"features": "Noise on features", "similarities": "Noise on similarities"}


def hypothesis_tests(tests: HypothesisTests, *, n_shown: int = 40, ax: Axes | None = None) -> Axes:
    """Draw the statistic of each hypothesis on its null distribution, and its p-value.

    Parameters
    ----------
    tests : HypothesisTests
        The output of `dimension_test`, `rsa_test`, `combined_test` or `rsa_regression`.
    n_shown : int, default=40
        Maximum number of hypotheses; those with the smallest p-values are drawn.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of column width.

    Returns
    -------
    matplotlib Axes
        One row per hypothesis: the middle 95% of the null distribution in grey, a mark (filled if significant after
        adjustment), and the adjusted p-value. A combined test has no correlation of its own: its rows show the
        unadjusted p-values of both parts and of their combination.

    Examples
    --------
    >>> from simdims import dimension_test, plots, simulate
    >>> X = simulate.factorial([3, 3])
    >>> ax = plots.hypothesis_tests(dimension_test(X, X[:, :2], n_permutations=99, random_state=0))
    >>> ax.get_xlabel()
    'Correlation with the matched dimension'
    """
    require_type("tests", tests, HypothesisTests, "HypothesisTests")
    require_count("n_shown", n_shown)
    n = len(tests.hypotheses)
    chosen = np.arange(n) if n <= n_shown else np.sort(np.argsort(tests.pvalue, kind="stable")[:n_shown])
    ax = style.one_axes(ax, 0.75 + 0.17 * len(chosen))
    rows = np.arange(len(chosen))
    (_draw_pvalues if tests.parts else _draw_statistics)(ax, tests, chosen, rows)
    style.key(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)  # beside the heading of the p-values
    names = _names(tests, chosen, _NAMES * style.outer_width(ax))
    ax.set_yticks(rows, labels=names, fontsize=style.tiny(), **style.PLAIN)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    if len(chosen) < n:
        ax.set_xlabel(f"{ax.get_xlabel()}\n{len(chosen)} of {n} hypotheses,\nthose with the smallest p")
    _write_pvalues(ax, tests, chosen, rows)
    return ax


def power_curves(study: pd.DataFrame, *, column: str = "power", axes: Any = None) -> NDArray[np.object_]:
    """Draw the power of tests against the signal-to-noise ratio.

    Parameters
    ----------
    study : DataFrame
        The output of `power_study`.
    column : {"power", "power_unadjusted"}, default="power"
        The share of properties that are significant after or before adjustment for multiple tests.
    axes : sequence of matplotlib Axes, optional
        One per kind of noise; by default a new figure of column width.

    Returns
    -------
    ndarray of matplotlib Axes
        Means over repeats, with 95% intervals (1.96 standard errors).

    Examples
    --------
    >>> import pandas as pd
    >>> from simdims import plots
    >>> study = pd.DataFrame({"noise": "features", "snr": [0.1, 0.3], "repeat": 0, "test": "rsa", "power": [0.0, 0.6]})
    >>> plots.power_curves(study)[0].get_title()
    'Noise on features'
    """
    require_choice("column", column, ("power", "power_unadjusted"))
    if not hasattr(study, "columns") or not hasattr(study, "groupby"):
        raise ParameterTypeError("study", "must be the DataFrame of power_study", type(study).__name__)
    missing = sorted({"noise", "snr", "test", column} - set(study.columns))
    if missing:
        raise ParameterError("study", f"must have the column {missing[0]!r}", str(list(study.columns)))
    if not len(study):
        raise ParameterError("study", "must have at least one row", "none")
    noises = list(dict.fromkeys(study["noise"]))
    width = style.COLUMN if len(noises) > 1 else 0.72 * style.COLUMN
    made = style.several_axes(axes, len(noises), size=(width, 1.95), columns=len(noises))
    ylabel = "Power" if column == "power" else "Share with p ≤ α"
    for ax, noise in zip(made, noises, strict=True):
        of_noise = study[study["noise"] == noise]
        for test in dict.fromkeys(study["test"]):
            name, colour, mark, line = _TESTS.get(test, (str(test), style.QUIET, "^", ":"))
            by_ratio = of_noise[of_noise["test"] == test].groupby("snr")[column]
            mean, error = by_ratio.mean(), by_ratio.sem().fillna(0.0)
            x = mean.index.to_numpy(dtype=np.float64)
            low, high = (np.clip(mean + side * 1.96 * error, 0, 1) for side in (-1, 1))
            ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
            ax.plot(x, mean, color=colour, linestyle=line, marker=mark, ms=2.8, linewidth=1.0, label=name)
        style.tidy(ax, "Signal-to-noise ratio", ylabel if ax is made[0] else "")
        ax.set_title(_NOISES.get(noise, style.shown(str(noise))), fontsize=style.small(), pad=3, **style.PLAIN)
        ax.set(ylim=(-0.03, 1.03), yticks=[0, 0.5, 1])
    style.shared_key(made, is_new=axes is None, columns=3 if width > 3 else 1, handlelength=2.2)
    return made


def _draw_statistics(ax: Axes, tests: HypothesisTests, chosen: NDArray, rows: NDArray) -> None:
    significant = tests.significant[chosen]
    low, high = tests.null_interval()[:, chosen]
    ax.barh(rows, high - low, left=low, height=0.55, color="0.85", linewidth=0, label="95% null interval")
    ax.axvline(0, color="0.5", linewidth=0.6)
    statistic = tests.statistic[chosen]
    ax.plot(statistic[significant], rows[significant], "o", ms=4, color=style.MAIN, label="significant")
    hollow: dict[str, Any] = {"mfc": "white", "mec": style.MAIN, "mew": 0.8}
    ax.plot(statistic[~significant], rows[~significant], "o", ms=4, label="not significant", **hollow)
    what = {
        "dimension": "Correlation with the matched dimension",
        "weights": "Relation to the weights",
        "regression": "Unique contribution (held-out R²)",
    }
    style.tidy(ax, what.get(tests.test, "Correlation with the similarities"))
    drawn = np.concatenate([statistic, low[~np.isnan(low)], high[~np.isnan(high)]])
    ax.set_xlim(min(1.1 * float(drawn.min()), 0.0), 1.08 * max(float(np.abs(drawn).max()), 1e-3))


def _draw_pvalues(ax: Axes, tests: HypothesisTests, chosen: NDArray, rows: NDArray) -> None:
    offsets = {"dimension": -0.28, "rsa": 0.28, "combined": 0.0}
    significant = tests.significant[chosen]
    for name, test in {**tests.parts, "combined": tests}.items():
        words, colour, mark, _ = _TESTS[name]
        face = [colour if name != "combined" or found else "white" for found in significant]
        look: dict[str, Any] = {"marker": mark, "facecolors": face, "edgecolors": colour, "linewidths": 0.8}
        size = 16 if name == "combined" else 8
        ax.scatter(test.pvalue[chosen], rows + offsets[name], s=size, label=words, zorder=3, **look)
    ax.axvline(tests.alpha, color=style.QUIET, linewidth=0.7, linestyle="--")
    ax.set_xscale("log")
    style.tidy(ax, f"p-value (dashed: {tests.alpha:g})")
    ax.set_xlim(1.25, 0.7 / (1 + len(tests.null_distribution)))


def _write_pvalues(ax: Axes, tests: HypothesisTests, chosen: NDArray, rows: NDArray) -> None:
    across = ax.get_yaxis_transform()
    for row, p, found in zip(rows, tests.pvalue_adjusted[chosen], tests.significant[chosen], strict=True):
        text = f"{p:.2g}" if p < 0.001 else f"{p:.3f}"
        weight = "bold" if found else "normal"
        ax.text(1.02, row, text, transform=across, fontsize=style.tiny(), fontweight=weight, va="center_baseline")
    style.write_beside(ax, "p adj.", (1.02, 1.0), (0, 2), "axes fraction", color=style.QUIET, va="bottom")


def _names(tests: HypothesisTests, chosen: NDArray, width: float) -> list[str]:
    """Hypotheses, with their dimensions if any, at most `width` points wide."""
    if tests.test in ("rsa", "weights", "regression"):
        return style.all_fitted([tests.hypotheses[i] for i in chosen], style.tiny(), width)
    dimensions = style.all_fitted([_dimension(tests.dimension[i]) for i in chosen], style.tiny(), _DIMENSION * width)
    alike = style.shared_starts([tests.hypotheses[i] for i in chosen])
    names = []
    for i, dimension in zip(chosen, dimensions, strict=True):
        name, end = style.one_line(tests.hypotheses[i]), f" ({dimension})"
        rest = width - style.text_size(end, style.tiny())[0]
        names.append(style.fitted(name, style.tiny(), rest, alike=alike[name]) + end)
    return names


def _dimension(name: str | None) -> str:
    """Abbreviate dimension7 as dim. 7; other names are unchanged."""
    number = str(name).removeprefix("dimension")
    return f"dim. {number}" if number.isdigit() else str(name)
