"""How notebooks show results: a summary, a small picture and a table; without matplotlib, the text alone."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from simdims import plots
from simdims.plots._style import one_line, shown

if TYPE_CHECKING:
    from simdims.consensus import Consensus
    from simdims.discovery import Discovery
    from simdims.inference import HypothesisTests
    from simdims.selection import RankSelection
    from simdims.similarity import Similarity

_DPI = 110
#: Rows of a table, and items or blocks of items of a heatmap.
_MOST_ROWS, _MOST_CELLS = 30, 200


def of_similarity(similarity: Similarity) -> str:
    picture = _picture(plots.similarity_heatmap, similarity, (3.4, 2.8), "Similarities", max_items=_MOST_CELLS)
    return _paragraph(repr(similarity)) + picture


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
    rows = (
        (_numbered(k, row), f"{row.share:.1%}", f"{row.reliability:.2f}", shown(str(row.top_items), 120))
        for k, row in enumerate(frame.head(_MOST_ROWS).itertuples())
    )
    table = _table(("dimension", "share", "reliability across random starts", "top items"), rows, len(frame))
    return _paragraph(repr(discovery)) + picture + table


def _numbered(k: int, row: Any) -> str:
    """The number of a dimension, and its name if it has one."""
    name = getattr(row, "name", "")
    return f"{k + 1}: {shown(name, 40)}" if name else str(k + 1)


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
    """A plot as an inline PNG; nothing without matplotlib."""
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
