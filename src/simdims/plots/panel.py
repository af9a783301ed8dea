"""figure_panel: a multi-panel summary figure of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from simdims._parameters import require_choice, require_count, require_type
from simdims.discovery import Discovery
from simdims.inference import HypothesisTests
from simdims.plots import _style as style
from simdims.plots.agreement import reliability
from simdims.plots.dimensions import dimension_grid
from simdims.plots.inference import hypothesis_tests
from simdims.plots.selection import rank_selection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Heights in inches: of a row of dimensions with labels or images, of the part below, and of panel letters.
_LABELLED, _PICTURED, _REST, _LETTER = 0.98, 0.78, 0.45, 0.15
_SELECTION, _RELIABILITY = 2.5, 1.7
_N_ITEMS, _MOST_HYPOTHESES = 6, 15


def figure_panel(
    result: Discovery,
    tests: HypothesisTests | None = None,
    *,
    images: Sequence[Any] | NDArray | None = None,
    n_dimensions: int = 8,
    width: str = "double",
) -> Figure:
    """Draw a summary figure for a paper: top items, rank selection, reliability, and hypotheses.

    Parameters
    ----------
    result : Discovery
        The output of `discover`.
    tests : HypothesisTests, optional
        Tests of the same result, for the last panel.
    images : array or sequence with one image per item, optional
        Images as in `dimension_grid`; by default labels are drawn.
    n_dimensions : int, default=8
        Number of dimensions whose top items are drawn, the largest first.
    width : {"double", "single"}, default="double"
        Two journal columns wide (7 inches), or one (3.5 inches) with all panels below each other.

    Returns
    -------
    matplotlib Figure
        Lettered panels. There is none for rank selection if the number of dimensions was given, and none for hypotheses
        without `tests`. At most 15 hypotheses are drawn, those with the smallest p-values.

    Examples
    --------
    >>> from simdims import discover, plots, simulate
    >>> W = simulate.dirichlet(30, 3, alpha=0.3, random_state=0)
    >>> found = discover(W @ W.T, ranks=range(1, 6), n_repeats=1, n_runs=3, random_state=0)
    >>> figure = plots.figure_panel(found)
    >>> plots.save_figure(figure, "figure1.pdf")  # doctest: +SKIP
    """
    require_type("result", result, Discovery, "what discover returned")
    if tests is not None:
        require_type("tests", tests, HypothesisTests, "HypothesisTests")
    require_count("n_dimensions", n_dimensions)
    require_choice("width", width, ("double", "single"))
    n_shown = min(n_dimensions, result.n_components)
    columns, row = (2, _LABELLED) if images is None else (1, _PICTURED)
    heights = [_REST + row * -(-n_shown // columns), _SELECTION, _RELIABILITY]
    draw: list[Callable[[Any], Any]] = [
        lambda part: _draw_items(part, result, images, n_shown, columns),
        lambda part: rank_selection(result, ax=part.subplots()),
        lambda part: reliability(result, ax=part.subplots()),
    ]
    if result.selection is None:
        del heights[1], draw[1]
    if tests is not None:
        heights.append(0.75 + 0.17 * min(len(tests.hypotheses), _MOST_HYPOTHESES))
        draw.append(lambda part: hypothesis_tests(tests, n_shown=_MOST_HYPOTHESES, ax=part.subplots()))
    figure, parts = _parts(heights, width, has_tests=tests is not None)
    for letter, part, draw_panel in reversed(list(zip("abcd", parts, draw, strict=False))):
        part.suptitle(letter, x=0.0, ha="left", fontsize=style.small() + 1, fontweight="bold")
        draw_panel(part)  # top items last, because their names must fit the final layout
    return figure


def _parts(heights: list[float], width: str, *, has_tests: bool) -> tuple[Figure, list[Any]]:
    """A figure and a subfigure per panel: in one column, or with top items on the left and tests below."""
    heights = [height + _LETTER for height in heights]
    if width == "single":
        figure = style.new_figure(style.COLUMN, sum(heights))
        return figure, list(figure.subfigures(len(heights), 1, height_ratios=heights))
    n_right = len(heights) - 1 - has_tests
    upper, lower = max(heights[0], sum(heights[1 : 1 + n_right])), heights[1 + n_right :]
    figure = style.new_figure(2 * style.COLUMN, upper + sum(lower))
    rows = figure.subfigures(1 + has_tests, 1, height_ratios=[upper, *lower], squeeze=False)[:, 0]
    left, right = rows[0].subfigures(1, 2)
    column = right.subfigures(n_right, 1, height_ratios=heights[1 : 1 + n_right], squeeze=False)[:, 0]
    return figure, [left, *column, *rows[1:]]


def _draw_items(part: Any, result: Discovery, images: Any, n_shown: int, columns: int) -> None:
    """The top items of the largest dimensions."""
    axes = part.subplots(-(-n_shown // columns), columns, squeeze=False).ravel()
    for ax in axes[n_shown:]:
        ax.remove()
    chosen: dict[str, Any] = {"dimensions": range(1, n_shown + 1), "per_page": n_shown, "columns": columns}
    dimension_grid(result, images=images, n_items=_N_ITEMS, axes=axes[:n_shown], **chosen)
