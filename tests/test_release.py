"""What a release promises: one version everywhere, and an install that works without the extras and read-only."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import simdims

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
RECIPE = (REPOSITORY / "conda" / "recipe.yaml").read_text()

#: The extras that users need when simdims runs; `completion` is for shells.
RUN_EXTRAS = ("plot", "report", "io", "data", "distributed", "gpu")

#: What needs an extra, and the distribution that has to be installed for it.
NEEDS = {
    **{f"plots.{name}": "matplotlib" for name in simdims.plots.__all__},
    "plot": "matplotlib", "graph layout": "networkx", "load_miserables": "networkx",
    "demo --words": "networkx", ".graphml": "networkx", "to_networkx": "networkx",
    "report": "pillow", "--images": "pillow", ".h5": "h5py", ".mat": "h5py", ".parquet": "pyarrow",
    ".xlsx": "openpyxl", ".feather": "pyarrow", ".rds": "rdata", ".h5ad": "h5py", "to_xarray": "xarray",
    "to_anndata": "anndata",
    "parquet tables": "pyarrow", "completion": "argcomplete", "fetch": "pooch", "device": "torch",
    "to_rsatoolbox": "rsatoolbox",
}  # fmt: skip


def lowest(requirements: list[str]) -> dict[str, Version]:
    """The version from which on each library is allowed."""
    found = {}
    for requirement in map(Requirement, requirements):
        for bound in requirement.specifier:
            if bound.operator == ">=":
                found[requirement.name] = Version(bound.version)
    return found


def test_the_oldest_set_is_the_lower_end_of_what_is_allowed():
    extras = PROJECT["optional-dependencies"]
    used = [
        *PROJECT["dependencies"],
        *(one for name in ("plot", "report", "io", "data", "distributed", "completion") for one in extras[name]),
    ]
    allowed = lowest(used)
    lines = (REPOSITORY / ".ci" / "oldest.txt").read_text().splitlines()
    pinned = {name: Version(version) for name, version in (line.split("==") for line in lines if "==" in line)}
    assert pinned.keys() == allowed.keys()
    for name, version in allowed.items():
        assert pinned[name].release[: len(version.release)] == version.release, name


def test_the_conda_recipe_says_what_pyproject_says():
    assert f'version: "{simdims.__version__}"' in RECIPE
    run = re.search(r"\n  run:\n(.*?)\n  run_constraints:", RECIPE, flags=re.DOTALL)[1]
    listed = [line.strip(" -").replace(" >=", ">=") for line in run.splitlines() if "python >=" not in line]
    assert listed == PROJECT["dependencies"]


def test_the_conda_recipe_constrains_the_extras_that_pyproject_has():
    conda_names = {"matplotlib": "matplotlib-base", "dask": "dask-core", "torch": "pytorch"}
    extras = [one for name, extra in PROJECT["optional-dependencies"].items() for one in extra if name in RUN_EXTRAS]
    expected = {f"{conda_names.get(one.name, one.name)} {one.specifier}" for one in map(Requirement, extras)}
    listed = re.search(r"\n  run_constraints:\n(.*?)\n\n", RECIPE, flags=re.DOTALL)[1]
    assert {line.strip(" -") for line in listed.splitlines()} == expected


@pytest.mark.slow
def test_the_conda_recipe_installs_the_sdist_without_an_index(tmp_path):
    """By the recipe's own command, with what it has for building."""
    for name in re.search(r"\n  host:\n(.*?)\n  run:", RECIPE, flags=re.DOTALL)[1].splitlines()[1:]:
        pytest.importorskip(name.split()[1])
    dist = tmp_path / "dist"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(dist)]
    subprocess.run(build, check=True, cwd=REPOSITORY, capture_output=True)
    source = re.search(r"\n  path: \.\./(.+)\n", RECIPE)[1].replace("${{ version }}", simdims.__version__)
    with tarfile.open(tmp_path / source) as archive:
        archive.extractall(tmp_path, filter="data")
    script = re.search(r"\n  script: (.+)\n", RECIPE)[1].replace("${{ PYTHON }}", sys.executable)
    target = tmp_path / "site"
    environment = {**os.environ, "PIP_NO_INDEX": "1"}
    command = [*script.split(), "--target", str(target)]
    folder = tmp_path / f"simdims-{simdims.__version__}"
    made = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    own = {path.relative_to(target) for path in (target / "simdims").rglob("*.py")}
    package = Path(simdims.__file__).parent
    assert own == {path.relative_to(package.parent) for path in package.rglob("*.py")}
    assert (folder / "LICENSE").exists()
    assert (target / "bin" / "simdims").exists() or (target / "Scripts").exists()


def test_the_citation_is_of_this_version_and_marks_what_is_no_doi_yet():
    text = (REPOSITORY / "CITATION.cff").read_text()
    assert f"\nversion: {simdims.__version__}\n" in text
    doi, said = re.search(r"- type: doi\n +value: (\S+)\n +description: \"(.+)\"", text).groups()
    assert ("0000000" in doi) == said.startswith("Placeholder")


def test_the_software_paper_is_short_and_cites_what_it_lists():
    folder = REPOSITORY / "paper" / "joss"
    text = (folder / "paper.md").read_text()
    head, body = text.split("---\n", 2)[1:]
    for key in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
        assert f"{key}:" in head
    assert len(body.split()) <= 1000
    listed = re.findall(r"^@\w+\{(\w+),", (folder / "paper.bib").read_text(), flags=re.MULTILINE)
    assert len(set(listed)) == len(listed)
    assert set(re.findall(r"@(\w+)", body)) == set(listed)
    pictures = re.findall(r"\]\((\S+\.png)\)", body)
    assert pictures
    script = (folder / "figures.py").read_text()
    for picture in pictures:
        assert (folder / picture).exists()
        assert picture in script


def test_forms_of_issues_have_the_keys_that_forges_require():
    yaml = pytest.importorskip("yaml")
    forms = sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) >= 3
    for form in forms:
        found = yaml.safe_load(form.read_text())
        if form.name == "config.yml":
            continue
        assert {"name", "description", "body"} <= set(found), form.name
        for field in found["body"]:
            assert field["type"] in {"textarea", "input", "dropdown", "checkboxes"}
            assert field["attributes"]["label"]
        ids = [field["id"] for field in found["body"]]
        assert len(set(ids)) == len(ids)


def test_the_version_stands_in_one_place():
    assert PROJECT["dynamic"] == ["version"]
    said = subprocess.run([sys.executable, "-m", "simdims", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"simdims {simdims.__version__}\n"


def test_importing_warns_of_nothing():
    code = f"import importlib, simdims\nfor name in {simdims.__all__}: getattr(simdims, name)"
    said = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")


def test_ci_runs_the_commands_of_the_readme_before_anything_is_installed():
    """In a bare environment, and what needs PyTorch after them, by name."""
    script = (REPOSITORY / ".ci" / "run").read_text()
    commands = re.findall(r"^(make \w+) +#", (REPOSITORY / "README.md").read_text(), flags=re.MULTILINE)
    assert commands == ["make demo", "make test"]
    lines = [line for line in script.splitlines() if re.match(r"(if ! )?bare ", line)]
    assert lines[:2] == [f"bare {command}" for command in commands]
    assert "torch==" in lines[2]
    assert "-k torch" in lines[-1]
    assert 'env -i "${kept[@]}"' in script


def test_what_needs_torch_has_it_in_its_name():
    """By which CI finds it."""
    for path in Path(__file__).parent.glob("test_*.py"):
        tree = ast.parse(path.read_text())
        for test in tree.body:
            if "importorskip('torch'" in ast.unparse(test):
                assert "torch" in f"{path.name} {getattr(test, 'name', '')}", f"{path.name}: {test.lineno}"


def installed_with(names: list[str]) -> set[str]:
    """These distributions and all that they require, by the names under which they are installed."""
    found: set[str] = set()
    wanted = list(names)
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name in found:
            continue
        try:
            required = [Requirement(one) for one in requires(name) or []]
        except PackageNotFoundError:  # for another system or Python
            continue
        found.add(name)
        wanted += [one.name for one in required if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def core_only(tmp_path_factory):
    """What tests/core_only.py found with the core dependencies alone."""
    folder = tmp_path_factory.mktemp("core")
    core = installed_with([Requirement(one).name for one in PROJECT["dependencies"]])
    assert core.isdisjoint(NEEDS.values())
    program = Path(__file__).with_name("core_only.py")
    inherited = {name: value for name, value in os.environ.items() if name != "SIMDIMS_DATA"}
    environment = {**inherited, "XDG_CACHE_HOME": str(folder / "cache")}  # where no file was downloaded before
    run = subprocess.run(
        [sys.executable, str(program), str(folder), *core], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_without_extras_everything_else_works(core_only):
    works = dict(core_only["works"])
    assert {"simdims.srf", "simdims.plots.graphs", "simdims.io.arrays", "simdims.cli.demo"} <= set(works.pop("modules"))
    assert works.pop("page") > 20_000
    assert works == {
        "loaded": True, "fitted": [20, 2], "tested": 2, "shown": True, "program": [0, True],
    }  # fmt: skip


@pytest.mark.parametrize("feature", NEEDS)
def test_what_needs_an_extra_says_what_to_install(core_only, feature):
    kind, text = core_only["needs"][feature]
    assert kind in ("ImportError", "ModuleNotFoundError", "SystemExit"), text
    install = re.search(r'which is not installed: pip install (?:"simdims\[(\w+)\]"|([\w-]+))', text)
    assert install, text
    extra, name = install.groups()
    said = [Requirement(one).name for one in PROJECT["optional-dependencies"][extra]] if extra else [name]
    assert NEEDS[feature] in said, text


def test_what_needs_an_extra_is_refused_before_anything_is_written(core_only):
    assert core_only["needs"]["written"] == []


@pytest.mark.slow
def test_kernels_are_cached_in_a_folder_of_the_user_where_the_package_cannot_be_written(tmp_path):
    """A file in the place of __pycache__ keeps out even those whom permissions do not bind."""
    package = tmp_path / "site" / "simdims"
    shutil.copytree(Path(simdims.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "solvers" / "__pycache__").write_text("")
    code = "import numpy as np, simdims; print(simdims.SRF(2).fit(np.eye(6) + 1).embedding_.shape, simdims.__file__)"
    home = tmp_path / "home"
    unset = {"NUMBA_CACHE_DIR", "PYTHONPATH", "XDG_CACHE_HOME"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    environment = {**inherited, "HOME": str(home), "PYTHONPATH": str(package.parent)}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert said.stdout.startswith(f"(6, 2) {package}"), said.stderr
    assert list(home.rglob("*.nbi"))
