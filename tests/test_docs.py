"""The documentation: its code runs, its links lead somewhere, it names every public name, and it builds in silence."""

import ast
import doctest
import importlib.util
import inspect
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import simdims
from simdims.cli import main

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
PAGES = [
    REPOSITORY / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.relative_to(DOCS).parts),
]
WRITTEN = [*PAGES, *(REPOSITORY / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"))]
GALLERY = sorted((DOCS / "gallery").glob("plot_*.py"))
DATA_GALLERY = sorted((DOCS / "gallery").glob("data_*.py"))  # each named after the folder of its files
TOOLS = ["sphinx", "pydata_sphinx_theme", "numpydoc", "myst_parser", "sphinx_gallery"]
MODULES = ["metrics", "simulate", "datasets", "plots"]


def name_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def python_of(page: Path) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))


def prose_of(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links_of(page: Path) -> list[tuple[str, str]]:
    """Where links and pictures of a page lead within the repository: file, and anchor in it."""
    prose = re.sub(r"`[^`\n]*`", "", prose_of(page))
    found = re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", prose)
    found += [(target, "") for target in re.findall(r"\{(?:figure|image)\} (\S+)", page.read_text(encoding="utf-8"))]
    return [(target, anchor) for target, anchor in found if not target.startswith(("http", "mailto:"))]


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges and the build make them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def n_pictures(program: Path) -> int:
    return program.read_text(encoding="utf-8").count("pyplot.show()")


def public_names() -> list[str]:
    """Every public name that is no module, those of public modules with the module's name before them."""
    names = [name for name in simdims.__all__ if name != "__version__" and name not in MODULES]
    for room in MODULES:
        module = getattr(simdims, room)
        members = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
        names += [f"{room}.{name}" for name in members]
    return names


def resolve(name: str) -> object:
    value: object = simdims
    for part in name.split("."):
        if inspect.ismodule(value) and not hasattr(value, part):
            importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    return value


def listed_names() -> list[str]:
    """What the tables of the API reference list."""
    text = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    tables = re.findall(r"\.\. autosummary::\n(?:   :.*\n)*\n((?:   .+\n)+)", text)
    return [line.strip() for table in tables for line in table.splitlines()]


@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=name_of)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    exec(compile(python_of(page), str(page), "exec"), {})
    pyplot.close("all")


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_links_and_pictures_of_pages_are_in_the_repository(page):
    """Not in what a build writes: pages are read where nothing was built."""
    for target, anchor in links_of(page):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        assert "_build" not in file.relative_to(REPOSITORY).parts, target
        assert not anchor or anchor in anchors_of(file), f"{target}#{anchor}"


def test_links_and_pictures_of_pages_are_found():
    """Otherwise the test above has nothing to look at."""
    targets = {target for page in WRITTEN for target, _ in links_of(page)}
    assert len(targets) > 60
    assert {"docs/images/report.png", "images/report.png", "images/gallery/plot_5_how_many_1.png"} <= targets
    assert {"docs/quickstart.md", "../gallery/plot_3_novel.py", "CITATION.cff"} <= targets


def test_pictures_are_small_and_each_is_shown():
    shown = {(page.parent / target).resolve() for page in WRITTEN for target, _ in links_of(page)}
    pictures = sorted(DOCS.joinpath("images").rglob("*.*"))
    assert pictures
    for picture in pictures:
        assert picture in shown, name_of(picture)
        assert picture.stat().st_size < 300_000, name_of(picture)


@pytest.mark.slow
def test_the_picture_of_the_demo_shows_what_the_demo_finds(tmp_path):
    """`make pictures` keeps the number of dimensions that the demo found as text in the picture."""
    image = pytest.importorskip("PIL.Image")
    assert main(["demo", "-o", str(tmp_path / "digits"), "--quiet"]) == 0
    found = simdims.Discovery.load(tmp_path / "digits")
    with image.open(DOCS / "images" / "report.png") as picture:
        assert picture.text["dimensions"] == str(found.n_components)


def test_there_are_enough_programs_in_the_gallery():
    assert len(GALLERY) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("program", DATA_GALLERY, ids=name_of)
def test_a_program_with_real_data_ends_in_a_picture(program, tmp_path, monkeypatch, data_path):
    folder = data_path(program.stem.removeprefix("data_")).parent
    monkeypatch.setenv("SIMDIMS_DATA", str(folder))
    test_a_program_of_the_gallery_ends_in_a_picture(program, tmp_path, monkeypatch)


@pytest.mark.parametrize("program", GALLERY, ids=name_of)
def test_a_program_of_the_gallery_ends_in_a_picture(program, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    pyplot.close("all")
    shown = []

    def show():
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            figure.canvas.draw()
            shown.append(any(ax.has_data() for ax in figure.axes))
        pyplot.close("all")

    monkeypatch.setattr(pyplot, "show", show)
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context():
        runpy.run_path(str(program))
    assert len(shown) == n_pictures(program)
    assert all(shown)
    assert ast.unparse(ast.parse(program.read_text(encoding="utf-8")).body[-1]) == "pyplot.show()"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ratings", "triplets", "features"])
def test_a_notebook_of_a_whole_analysis_runs_as_it_is(name, tmp_path):
    """As the site offers it; what its first cell installs is there already."""
    for tool in ("sphinx_gallery", "nbclient", "ipykernel"):
        pytest.importorskip(tool)
    import nbformat
    from nbclient import NotebookClient
    from sphinx_gallery import gen_gallery, notebook, py_source_parser

    program = DOCS / "gallery" / f"plot_start_{name}.py"
    blocks = py_source_parser.split_code_and_text_blocks(str(program))[1]
    settings = gen_gallery.DEFAULT_GALLERY_CONF | runpy.run_path(str(DOCS / "conf.py"))["sphinx_gallery_conf"]
    notebook.save_notebook(notebook.jupyter_notebook(blocks, settings, str(tmp_path)), tmp_path / "notebook.ipynb")
    book = nbformat.read(tmp_path / "notebook.ipynb", as_version=4)
    assert "%pip install" in book.cells[0].source
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == n_pictures(program)
    said = "".join(output.get("text", "") for output in outputs)
    assert "dimensions selected" in said
    assert "%|" in said + str(outputs)  # a progress bar


def test_the_reference_lists_every_public_name_once():
    listed = listed_names()
    assert len(set(listed)) == len(listed)
    assert set(public_names()) <= set(listed)
    for name in listed:
        assert callable(resolve(name)), name


def test_every_name_of_the_reference_has_an_example():
    """In its docstring, or, for what functions return, on the page of results."""
    shown = (DOCS / "api" / "results.rst").read_text(encoding="utf-8")
    without = [
        name
        for name in listed_names()
        if ">>>" not in (inspect.getdoc(resolve(name)) or "") and f":py:obj:`{name}`" not in shown
    ]
    assert without == []


def test_the_examples_of_results_run():
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(DOCS / "api" / "results.rst"), module_relative=False, optionflags=options)
    assert tried > 30
    assert failed == 0


def test_the_readme_names_its_two_commands_and_stays_short():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
    assert len(text.splitlines()) < 120
    code = [line for line in python_of(REPOSITORY / "README.md").splitlines() if line.strip()]
    assert len(code) <= 11


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_without_the_network(tmp_path):
    missing = [tool for tool in TOOLS if importlib.util.find_spec(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: make docs installs what builds the site")
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("_build"))
    shutil.copy(REPOSITORY / "CHANGELOG.md", tmp_path)
    site = tmp_path / "docs" / "_build" / "html"
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-d",
        str(tmp_path / "doctrees"),
        "-W",
        "--keep-going",
        "-n",
    ]
    built = subprocess.run([*command, str(tmp_path / "docs"), str(site)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-4000:]
    assert built.stderr.strip() == ""
    for name in listed_names():
        assert (site / "_build" / "api" / f"simdims.{name}.html").exists(), name
    outside = r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=.(?:https?:)?//"
    for page in site.rglob("*.html"):
        assert re.search(outside, page.read_text(encoding="utf-8")) is None, page.relative_to(site)
