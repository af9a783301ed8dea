"""What notebooks show of a result: a summary, a small picture and a table; without matplotlib, the words alone."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from simdims.plots._style import one_line, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simdims.consensus import Consensus
    from simdims.discovery import Discovery
    from simdims.inference import HypothesisTests
    from simdims.selection import RankSelection
    from simdims.similarity import Similarity

_DPI = 110
#: Rows of a table, and items or blocks of items of a heatmap.
_MOST_ROWS, _MOST_CELLS = 30, 200


def of_similarity(similarity: Similarity) -> str:
    """A heatmap, items as they come."""
    from simdims.plots.heatmap import similarity_heatmap

    picture = _picture(
        lambda ax: similarity_heatmap(similarity, max_items=_MOST_CELLS, ax=ax), 3.4, 2.8, "Similarities"
    )
    return _words(repr(similarity)) + picture


def of_selection(selection: RankSelection) -> str:
    """The curve."""
    from simdims.plots.selection import rank_selection

    return _picture(lambda ax: rank_selection(selection, ax=ax), 4.2, 2.6, "Rank selection") + _words(
        selection.summary()
    )


def of_consensus(consensus: Consensus) -> str:
    """The reliability of each dimension."""
    from simdims.plots.agreement import reliability

    return _picture(lambda ax: reliability(consensus, ax=ax), 4.2, 2.0, "Reliability") + _words(consensus.summary())


def of_discovery(discovery: Discovery) -> str:
    """What was found, in words, the curve, and a row for each dimension."""
    from simdims.plots.agreement import reliability
    from simdims.plots.selection import rank_selection

    if discovery.selection is None:
        picture = _picture(lambda ax: reliability(discovery, ax=ax), 4.2, 2.0, "Reliability")
    else:
        picture = _picture(lambda ax: rank_selection(discovery, ax=ax), 4.2, 2.6, "Rank selection")
    frame = discovery.dimensions_frame()
    rows = (
        (k + 1, f"{row.share:.1%}", f"{row.reliability:.2f}", shown(str(row.top_items), 120))
        for k, row in enumerate(frame.head(_MOST_ROWS).itertuples())
    )
    table = _table(("dimension", "share", "reliability across random starts", "top items"), rows, len(frame))
    return _words(repr(discovery)) + picture + table


def of_tests(tests: HypothesisTests) -> str:
    """Statistics beside what chance gives, and the table."""
    from simdims.plots.inference import hypothesis_tests

    n = min(len(tests.hypotheses), _MOST_ROWS)
    draw: Callable[[Axes], Any] = lambda ax: hypothesis_tests(tests, n_shown=_MOST_ROWS, ax=ax)  # noqa: E731
    picture = _picture(draw, 4.2, 0.75 + 0.17 * n, "Hypothesis tests")
    frame = tests.table.head(_MOST_ROWS)
    rows = (
        tuple(f"{cell:.3g}" if isinstance(cell, float) else shown(str(cell), 40) for cell in row)
        for row in frame.itertuples(index=False)
    )
    return picture + _table(tuple(frame.columns), rows, len(tests.hypotheses))


def _picture(draw: Callable[[Axes], Any], width: float, height: float, what: str) -> str:
    """A drawing as an inline PNG; nothing where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    draw(figure.add_subplot())
    written = io.BytesIO()
    figure.savefig(written, format="png", facecolor="white")
    data = base64.b64encode(written.getvalue()).decode("ascii")
    return f'<img alt="{html.escape(what)}" src="data:image/png;base64,{data}" style="max-width: 100%">'


def _words(text: str) -> str:
    lines = [html.escape(shown(line, 400)) for line in text.splitlines()]
    return f'<p style="white-space: pre-line">{"<br>".join(lines)}</p>'


def _table(header: Sequence[Any], rows: Iterable[Sequence[Any]], n_all: int) -> str:
    def cells(row: Sequence[Any], tag: str) -> str:
        return "".join(f'<{tag} style="text-align: left">{html.escape(one_line(str(cell)))}</{tag}>' for cell in row)

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    rest = f"<p>and {n_all - _MOST_ROWS} more</p>" if n_all > _MOST_ROWS else ""
    return f"<table><thead><tr>{cells(header, 'th')}</tr></thead><tbody>{body}</tbody></table>{rest}"
