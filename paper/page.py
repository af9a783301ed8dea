"""Update docs/reproduction.md and docs/notes/reproduction.md from the results of `python -m paper NAME -o DIR`.

    for name in $(python -m paper list | cut -d' ' -f1); do
        python -m paper $name --data DATA --jobs 2 --checkpoint work/$name -o results
    done
    python -m paper.page results --commit $(git rev-parse --short HEAD)

The prose of docs/reproduction.md is written by hand; only its tables are replaced. The notes are regenerated. If runs
are from different commits, add "commit": "..." to their NAME.json.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from paper.harness import ANALYSES, Claim, as_text

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTES = """# Reproduction: all numbers

The tables behind [Reproduction](../reproduction.md), as `python -m paper NAME` prints them.
"""
_WIDEST = 1400


def main() -> None:
    """Read a folder of results and write both pages and the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commit", required=True, help="commit of the code that wrote the folder")
    options = parser.parse_args()
    paths = {name: options.folder / f"{name}.json" for name in ANALYSES}
    results = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}
    page = DOCS / "reproduction.md"
    page.write_text(updated(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    notes = NOTES + "".join(notes_of(name, result, options.commit) for name, result in results.items())
    (DOCS / "notes").mkdir(exist_ok=True)
    (DOCS / "notes" / "reproduction.md").write_text(notes, encoding="utf-8")
    for name in results:
        if (options.folder / f"{name}.png").exists():
            with Image.open(options.folder / f"{name}.png") as picture:
                picture.thumbnail((_WIDEST, _WIDEST))
                smaller = picture.convert("RGB").quantize(128)
                smaller.save(DOCS / "images" / "reproduction" / f"{name}.png", optimize=True)


def updated(page: str, results: dict[str, Any]) -> str:
    """The page with updated rows in its summary, and updated claims in its sections."""
    for name, result in results.items():
        page = re.sub(rf"^\| \[{name}\].*$", _literal(summary_row(name, result)), page, flags=re.MULTILINE)
    head, *sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    for place, section in enumerate(sections):
        name = section[3:].splitlines()[0]
        if name in results:
            table = claims_table([Claim(**claim) for claim in results[name]["claims"]])
            sections[place] = re.sub(r"(^\|.*\n)+", _literal(table), section, count=1, flags=re.MULTILINE)
    return head + "".join(sections)


def _literal(text: str) -> str:
    """Escape a text for use as a replacement in re.sub."""
    return text.replace("\\", r"\\")


def summary_row(name: str, result: dict[str, Any]) -> str:
    """How many statements of the paper agree, and how long the run took."""
    verdicts = [claim["agrees"] for claim in result["claims"] if claim["in_paper"]]
    counts = [len(verdicts), verdicts.count(True), verdicts.count(False), verdicts.count(None)]
    seconds = "resumed" if result["resumed"] else f"{result['seconds']:,.0f}"
    return f"| [{name}](#{name}) | {' | '.join(map(str, counts))} | {seconds} |"


def claims_table(claims: list[Claim]) -> str:
    """Published values next to ours."""
    columns = ["statement", "published", "here", "verdict"]
    rows = [(claim.what, claim.published, claim.ours, claim.verdict) for claim in claims]
    return markdown_table(pd.DataFrame(rows, columns=columns))


def notes_of(name: str, result: dict[str, Any], commit: str) -> str:
    """The section of an analysis in the notes: how it was run, remarks and tables."""
    size = "" if result["size"] == "full" else f" --{result['size']}"
    data = " --data DATA" if result["data"] else ""
    only = " --only " + " ".join(result["only"]) if result["only"] else ""
    run = f"`python -m paper {name}{size}{only}{data} --seed {result['seed']}`, commit {result.get('commit', commit)}."
    parts = [f"\n## {name}\n", f"{result['title']}. {run}\n", *(f"{remark}\n" for remark in result["remarks"])]
    for heading, rows in result["tables"].items():
        parts += [f"{heading}:\n", markdown_table(pd.DataFrame(rows))]
    return "\n".join(parts)


def markdown_table(table: pd.DataFrame) -> str:
    """A table in Markdown."""
    rows = [list(table.columns), ["---"] * table.shape[1], *table.itertuples(index=False)]
    cells = [[as_text(value).replace("|", "\\|").replace("\n", " ") for value in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


if __name__ == "__main__":
    main()
