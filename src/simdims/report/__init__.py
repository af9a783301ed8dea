"""report: a Discovery as one self-contained, interactive HTML page.

`writer` checks and writes; `words` makes the texts, `data`, `pairs` and `pictures` the data of the scripts; `bundle`
combines them with the template, style and scripts in `page/`.
"""

from simdims.report.writer import write_report

__all__ = ["write_report"]
