"""docs/reproduction.md out of the folder that `simdims reproduce NAME -o FOLDER` has filled.

    for name in $(simdims reproduce list --json | python -c 'import json, sys; print(*json.load(sys.stdin))'); do
        simdims reproduce $name --data DATA --jobs 2 --checkpoint work/$name -o reproduced
    done
    python benchmarks/reproduction_page.py reproduced --commit $(git rev-parse --short HEAD)

Every number of the page comes out of that folder; figures are copied beside the page, at a size for the screen. Where
runs were of different commits, or resumed, add "commit": "..." or "resumed": true to their NAME.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from PIL import Image

from simdims.reproduce import ANALYSES
from simdims.reproduce.writing import about

DOCS = Path(__file__).resolve().parents[1] / "docs"
WIDEST = 1400

HEAD = """# Does it give the published results?

`simdims reproduce NAME` runs an analysis of the paper, prints the published value beside ours, and with `-o FOLDER`
writes the figure and all numbers. `--smoke` takes seconds and shows that it runs, `--quick` takes a minute or two and
shows the direction of the result; without either it is the run that this page is made of. `--checkpoint DIR` keeps
finished work, so that a run that was stopped goes on.

```
simdims reproduce list
simdims reproduce recovery --quick -o reproduced
```

"As published" and "differs" are decided by rules in the code (`src/simdims/reproduce/`). They are no blind test: most
were written when smaller runs had been seen, and some were made stricter after full runs; none was made more lenient.
No seed was chosen. Where we differ, the text says by how much, and why as far as we know. The table counts statements
of the paper alone.

| analysis | published statements | agree | differ | cannot be told | seconds |
|---|---|---|---|---|---|
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commit", required=True, help="of the code that made the folder")
    options = parser.parse_args()
    names = [name for name in ANALYSES if (options.folder / f"{name}.json").exists()]
    results = {name: json.loads((options.folder / f"{name}.json").read_text(encoding="utf-8")) for name in names}
    text = HEAD + "".join(in_short(name, results[name]) for name in names)
    for name in names:
        text += "\n" + section(options.folder, name, results[name], options.commit)
    (DOCS / "reproduction.md").write_text(text, encoding="utf-8")


def in_short(name: str, result: dict) -> str:
    verdicts = [claim["agrees"] for claim in result["claims"] if claim.get("in_paper", True)]
    counts = [len(verdicts), verdicts.count(True), verdicts.count(False), verdicts.count(None)]
    return f"| [{name}](#{name}) | {' | '.join(map(str, counts))} | {seconds_of(result)} |\n"


def seconds_of(result: dict) -> str:
    """How long it took; the time of a run that was resumed says little."""
    return "resumed" if result.get("resumed") else f"{result['seconds']:,.0f}"


def section(folder: Path, name: str, result: dict, commit: str) -> str:
    text = (folder / f"{name}.md").read_text(encoding="utf-8")
    size = "" if result["size"] == "full" else f" --{result['size']}"
    data = " --data DATA" if result.get("data") else ""
    only = " --only " + " ".join(result["only"]) if result.get("only") else ""
    took = "resumed several times" if result.get("resumed") else f"{result['seconds']:,.0f} s"
    made = (
        f"`simdims reproduce {name}{size}{only}{data} --seed {result['seed']} --jobs 2`, {took} on two busy cores, "
        f"commit {result.get('commit', commit)}.\n"
    )
    if about(name) not in text:  # written by a commit before the text
        text = text.replace(f"{result['title']}.\n", f"{result['title']}.\n\n{about(name)}\n", 1)
    if not (folder / f"{name}.png").exists():
        return f"{text}\n{made}"
    target = DOCS / "images" / "reproduction" / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(folder / f"{name}.png") as picture:
        picture.thumbnail((WIDEST, WIDEST))
        picture.convert("RGB").quantize(128).save(target, optimize=True)
    figure = f"![{result['title']}](images/reproduction/{name}.png)\n"
    return f"{text}\n{figure}\n{made}"


if __name__ == "__main__":
    main()
