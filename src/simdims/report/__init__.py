"""report: one self-contained HTML page out of a Discovery, to open from disk and explore.

`writer` checks and writes; `facts`, `words`, `pairs` and `pictures` say what the page shows; `encoding` packs arrays
and texts so that HTML can hold them; `bundle` puts them together with the template, the style and the scripts of
`page/`.
"""

from simdims.report.writer import write_report

__all__ = ["write_report"]
