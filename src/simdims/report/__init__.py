"""report: a Discovery as one self-contained HTML page, to open from disk and explore.

`writer` checks and writes; `words` has the summary, `data`, `pairs` and `pictures` what the scripts show; `bundle` puts
them together with the template, the style and the scripts of `page/`.
"""

from simdims.report.writer import write_report

__all__ = ["write_report"]
