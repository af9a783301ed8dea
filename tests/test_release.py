"""What a release promises: one version everywhere, and an install that works without the extras and read-only."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
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
