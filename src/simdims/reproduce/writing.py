"""A reproduction in words and as files."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._journal import replacing

if TYPE_CHECKING:
    import pandas as pd

    from simdims.reproduce import Reproduction


def summary(found: Reproduction) -> str:
    """Published values beside ours, the tables, and remarks."""
    lines = [f"{found.name} ({found.settings.size}): {found.title}", ""]
    for claim in found.outcome.claims:
        lines += [
            f"{claim.what}",
            f"  published: {claim.published}",
            f"  here:      {claim.ours}",
            f"  {claim.verdict}",
            "",
        ]
    for heading, table in found.outcome.tables.items():
        lines += [heading, table.to_string(index=False, float_format=_number), ""]
    lines += found.outcome.remarks
    return "\n".join(lines).rstrip()


def save(found: Reproduction, folder: Path) -> list[Path]:
    """Write NAME.json (all numbers), NAME.md (to be read), and the figure as NAME.png and NAME.pdf."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for ending, text in ((".json", _as_json(found)), (".md", _as_markdown(found))):
        path = folder / f"{found.name}{ending}"
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
        written.append(path)
    if found.outcome.draw is not None:
        from simdims.plots import save_figure

        figure = found.outcome.draw()
        for ending in (".png", ".pdf"):
            path = folder / f"{found.name}{ending}"
            save_figure(figure, path, dpi=200)
            written.append(path)
        _close(figure)
    return written


def about(name: str) -> str:
    """What an analysis does and what to look for."""
    return (files("simdims.reproduce") / "about" / f"{name}.md").read_text(encoding="utf-8").strip()


def _as_json(found: Reproduction) -> str:
    values = found.to_dict()
    values["tables"] = {name: json.loads(table.to_json(orient="records")) for name, table in values["tables"].items()}
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def _as_markdown(found: Reproduction) -> str:
    """The section that docs/reproduction.md takes over."""
    lines = [f"## {found.name}", "", f"{found.title}.", "", about(found.name), ""]
    if found.outcome.claims:
        lines += ["| | published | here | |", "|---|---|---|---|"]
        lines += [
            f"| {_cell(claim.what)} | {_cell(claim.published)} | {_cell(claim.ours)} | {claim.verdict} |"
            for claim in found.outcome.claims
        ]
        lines.append("")
    for heading, table in found.outcome.tables.items():
        lines += [f"{heading}:", "", *_table(table), ""]
    for remark in found.outcome.remarks:
        lines += [remark, ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(table: pd.DataFrame) -> list[str]:
    rows = [" | ".join(_cell(value) for value in row) for row in table.itertuples(index=False)]
    head = " | ".join(_cell(name) for name in table.columns)
    return [f"| {head} |", f"|{'---|' * table.shape[1]}", *(f"| {row} |" for row in rows)]


def _cell(value: Any) -> str:
    text = _number(value) if isinstance(value, float) else "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def _number(value: float) -> str:
    """A number with as many digits as can be read."""
    if value != value:
        return ""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def _close(figure: Any) -> None:
    """Let go of the figure where pyplot keeps it."""
    from matplotlib import pyplot

    pyplot.close(figure)
