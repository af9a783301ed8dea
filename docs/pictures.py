"""Make the pictures of the README and of the pages: `make pictures`, or python docs/pictures.py [report | gallery].

`report` is a screenshot of the page that `make demo` writes, taken with Chromium; `gallery` makes the figures of those
gallery programs that pages show. All are kept in docs/images, so that the pages can be read without building the site.
"""

import re
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
#: Width and height of the screenshot.
SIZE = (1240, 1128)
_DPI = 130


def main() -> None:
    """Make those that are asked for, or all."""
    makers = {"report": make_report, "gallery": make_gallery}
    for name in sys.argv[1:] or makers:
        for path in makers[name]():
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1000:.0f} kB\n")


def make_report() -> list[Path]:
    """The top of the demo's page; what the demo found is kept as text in the picture."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo
    from playwright.sync_api import sync_playwright

    from simdims import Discovery
    from simdims.cli import main as simdims

    path = DOCS / "images" / "report.png"
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as api:
        folder = Path(name) / "digits"
        if simdims(["demo", "-o", str(folder), "--quiet"]) != 0:
            sys.exit("The demo failed.")
        chromium = api.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.goto((folder / "report.html").as_uri())
        page.screenshot(path=path)
        chromium.close()
        found = PngInfo()
        found.add_text("dimensions", str(Discovery.load(folder).n_components))
    with Image.open(path) as picture:
        picture.convert("RGB").save(path, optimize=True, pnginfo=found)
    return [path]


def make_gallery() -> list[Path]:
    """The pictures images/gallery/PROGRAM_NUMBER.png that pages name."""
    from matplotlib import pyplot

    named = {found for page in DOCS.rglob("*.md") for found in _named(page)}
    folder = DOCS / "images" / "gallery"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    pyplot.switch_backend("agg")
    written = []
    for program in sorted({program for program, _ in named}):
        shown = _shown_by(DOCS / "gallery" / f"{program}.py")
        for number in sorted(number for name, number in named if name == program):
            written.append(folder / f"{program}_{number}.png")
            shown[number - 1].savefig(written[-1], dpi=_DPI, metadata={"Software": None})
        pyplot.close("all")
    return written


def _named(page: Path) -> list[tuple[str, int]]:
    found = re.findall(r"images/gallery/(\w+)_(\d+)\.png", page.read_text(encoding="utf-8"))
    return [(program, int(number)) for program, number in found]


def _shown_by(program: Path) -> list:
    """The figures that a program shows, in order."""
    import matplotlib
    from matplotlib import pyplot

    figures = []

    def show() -> None:
        figures.extend(pyplot.figure(number) for number in pyplot.get_fignums() if pyplot.figure(number) not in figures)

    real, pyplot.show = pyplot.show, show
    try:
        with matplotlib.rc_context():
            runpy.run_path(str(program))
            for figure in figures:
                figure.canvas.draw()
    finally:
        pyplot.show = real
    return figures


if __name__ == "__main__":
    main()
