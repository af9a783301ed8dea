"""HTML display of results in notebooks: a summary, a small picture and a table; without matplotlib, only the text.

Estimators use scikit-learn's display; results that are a few numbers use their repr.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from simdims import plots
from simdims._parameters import ParameterError
from simdims.discovery.result import custom_names
from simdims.planning.result import AXES
from simdims.plots._style import one_line, shown

if TYPE_CHECKING:
    from simdims.consensus import Consensus, Lineage
    from simdims.discovery import Discovery
    from simdims.inference import EmbeddingComparison, HypothesisTests
    from simdims.planning import StudyPlan
    from simdims.selection import Calibration, RankSelection
    from simdims.similarity import Similarity
    from simdims.systems import SimilaritySet
    from simdims.uncertainty import Bootstrap

_DPI = 110
#: Maximum rows of a table, and items or blocks of items of a heatmap.
_MOST_ROWS, _MOST_CELLS = 30, 200


def of_similarity(similarity: Similarity) -> str:
    picture = _picture(plots.similarity_heatmap, similarity, (3.4, 2.8), "Similarities", max_items=_MOST_CELLS)
    return _paragraph(repr(similarity)) + picture


def of_set(systems: SimilaritySet) -> str:
    mean = systems.mean()
    picture = _picture(plots.similarity_heatmap, mean, (3.4, 2.8), "Mean similarities", max_items=_MOST_CELLS)
    return _paragraph(f"{systems!r}\nThe mean over systems:") + picture


def of_calibration(found: Calibration) -> str:
    def draw(calibration: Calibration, ax: Any) -> None:
        ax.set_axis_off()
        plots.calibration(calibration, axes=ax.figure.subplots(1, 2))

    return _picture(draw, found, (4.2, 2.1), "Calibration") + _paragraph(found.summary())


def of_selection(selection: RankSelection) -> str:
    picture = _picture(plots.rank_selection, selection, (4.2, 2.6), "Rank selection")
    return picture + _paragraph(selection.summary())


def of_consensus(consensus: Consensus) -> str:
    return _picture(plots.reliability, consensus, (4.2, 2.0), "Reliability") + _paragraph(consensus.summary())


def of_discovery(discovery: Discovery) -> str:
    if discovery.selection is None:
        picture = _picture(plots.reliability, discovery, (4.2, 2.0), "Reliability")
    else:
        picture = _picture(plots.rank_selection, discovery, (4.2, 2.6), "Rank selection")
    frame = discovery.dimensions_frame()
    numbers = [f"{k}: {shown(name, 40)}" if name else k for k, name in enumerate(custom_names(discovery), start=1)]
    rows = (
        (number, f"{row.share:.1%}", f"{row.reliability:.2f}", shown(str(row.top_items), 120))
        for number, row in zip(numbers, frame.head(_MOST_ROWS).itertuples(), strict=False)
    )
    table = _table(("dimension", "share", "reliability across random starts", "top items"), rows, len(frame))
    return _paragraph(repr(discovery)) + picture + table


def of_bootstrap(sure: Bootstrap) -> str:
    size = (4.2, 0.9 + 0.15 * min(sure.n_components, _MOST_ROWS))
    return _picture(plots.uncertainty, sure, size, "Uncertainty", n_rows=_MOST_ROWS) + _paragraph(sure.summary())


def of_lineage(tree: Lineage) -> str:
    size = (max(4.2, 1.5 + 0.28 * len(tree.ranks)), 0.6 + 0.16 * (tree.ranks[-1] + 1))
    return _picture(plots.lineage, tree, size, "Lineage") + _paragraph(tree.summary())


def of_plan(plan: StudyPlan) -> str:
    varied = [axis for axis, (column, _) in AXES.items() if plan.table[column].nunique() > 1]
    try:
        picture = _picture(plots.study_plan, plan, (4.2, 2.6), "Study plan", against=varied[0]) if varied else ""
    except ParameterError:  # more curves than colours
        picture = ""
    return picture + _paragraph(plan.summary())


def of_comparison(compared: EmbeddingComparison) -> str:
    n_rows = min(len(compared.dimensions1) + len(compared.dimensions2), 2 * _MOST_ROWS)
    size = (7.0, 0.6 + 0.17 * n_rows)
    return _picture(plots.embedding_comparison, compared, size, "Comparison") + _paragraph(compared.summary())


def of_tests(tests: HypothesisTests) -> str:
    n = len(tests.hypotheses)
    size = (4.2, 0.75 + 0.17 * min(n, _MOST_ROWS))
    picture = _picture(plots.hypothesis_tests, tests, size, "Hypothesis tests", n_shown=_MOST_ROWS)
    frame = tests.table.head(_MOST_ROWS)
    rows = (
        tuple(f"{cell:.3g}" if isinstance(cell, float) else shown(str(cell), 40) for cell in row)
        for row in frame.itertuples(index=False)
    )
    return picture + _table(tuple(frame.columns), rows, n)


def _picture(draw: Callable[..., Any], result: Any, size: tuple[float, float], title: str, **options: Any) -> str:
    """A plot as an inline PNG; empty without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    draw(result, ax=figure.add_subplot(), **options)
    written = io.BytesIO()
    figure.savefig(written, format="png", facecolor="white")
    data = base64.b64encode(written.getvalue()).decode("ascii")
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}" style="max-width: 100%">'


def _paragraph(text: str) -> str:
    lines = [html.escape(shown(line, 400)) for line in text.splitlines()]
    return f'<p style="white-space: pre-line">{"<br>".join(lines)}</p>'


def _table(header: Sequence[Any], rows: Iterable[Sequence[Any]], n_all: int) -> str:
    def cells(row: Sequence[Any], tag: str) -> str:
        return "".join(f'<{tag} style="text-align: left">{html.escape(one_line(str(cell)))}</{tag}>' for cell in row)

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    rest = f"<p>and {n_all - _MOST_ROWS} more</p>" if n_all > _MOST_ROWS else ""
    return f"<table><thead><tr>{cells(header, 'th')}</tr></thead><tbody>{body}</tbody></table>{rest}"
