"""Promises about the package as a whole: which way imports point, what loads when, what the files hold."""

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import simdims

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "simdims"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# A module-level import may only name modules further left. The package's own __init__ resolves names lazily
# and has no place in the order.
ORDER = [
    "_cells",
    "_memory",
    "_parameters",
    "_threads",
    "_parallel",
    "_progress",
    "_dependencies",
    "solvers",
    "_journal",
    "similarity",
    "systems",
    "_tables",
    "_by_system",
    "_answers",
    "triplets",
    "comparisons",
    "metrics",
    "encoder",
    "naming",
    "srf",
    "joint",
    "features",
    "construct",
    "associations",
    "io",
    "simulate",
    "_downloads",
    "datasets",
    "selection",
    "consensus",
    "uncertainty",
    "planning",
    "inference",
    "discovery",
    "plots",
    "report",
    "cli",
    "__main__",
]

# Library -> the files that may import it, at any depth.
ONLY_IN = {
    "numba": {"solvers/kernels.py", "solvers/accelerated.py", "solvers/joint_kernels.py"},
    "torch": {"solvers/torch.py", "solvers/listed_torch.py", "solvers/joint_torch.py"},
    "joblib": {"_parallel.py"},
}

SOLVERS_MAY_IMPORT = {"numpy", "scipy", "numba", "torch"} | sys.stdlib_module_names

# Solvers may ask what the machine has and name a bad argument, but know nothing of what data mean.
MACHINE = {"simdims._memory", "simdims._parameters", "simdims._threads"}

LOADED_ON_USE = ["numba", "pandas", "sklearn", "scipy", "torch", "matplotlib"]

DATA_SUFFIXES = {
    ".arrow", ".csv", ".feather", ".gz", ".h5", ".hdf5", ".joblib", ".mat", ".npy", ".npz", ".parquet",
    ".pickle", ".pkl", ".rds", ".tsv", ".xls", ".xlsx", ".zip",
}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def statements(node: ast.AST, *, at_import: bool) -> Iterator[ast.AST]:
    """Every node below this one; with `at_import`, only those that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if at_import and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if at_import and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for branch in child.orelse:
                yield branch
                yield from statements(branch, at_import=at_import)
            continue
        yield child
        yield from statements(child, at_import=at_import)


def imported_modules(source: str, path: Path, *, at_import: bool) -> set[str]:
    """Full names of the modules that a file imports; names out of ``simdims`` count as their modules."""
    package = ["simdims", *path.relative_to(PACKAGE).parent.parts]
    found = set()
    for node in statements(ast.parse(source), at_import=at_import):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join(base + ([node.module] if node.module else []))
            if origin.split(".")[0] != "simdims":
                found.add(origin)
                continue
            for alias in node.names:
                name = simdims._DEFINED_IN.get(alias.name, alias.name) if origin == "simdims" else alias.name
                inside = PACKAGE.joinpath(*origin.split(".")[1:], name)
                is_module = inside.is_dir() or inside.with_suffix(".py").exists()
                found.add(f"{origin}.{name}" if is_module else origin)
    return found


def rooms_imported(source: str, path: Path) -> set[str]:
    modules = imported_modules(source, path, at_import=True)
    return {module.split(".")[1] for module in modules if module.startswith("simdims.")}


def wrong_way_imports(source: str, path: Path) -> list[str]:
    place = ORDER.index(room_of(path))
    others = rooms_imported(source, path) - {room_of(path)}
    return sorted(room for room in others if room not in ORDER or ORDER.index(room) >= place)


@pytest.mark.parametrize("path", [p for p in SOURCES if p != PACKAGE / "__init__.py"], ids=name_of)
def test_imports_point_left(path):
    assert room_of(path) in ORDER, f"{name_of(path)} has no place in ORDER: give it one"
    assert wrong_way_imports(path.read_text(), path) == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("from simdims.srf import SRF", ["srf"]),
        ("from simdims import SRF", ["srf"]),
        ("from simdims import srf", ["srf"]),
        ("import simdims.srf", ["srf"]),
        ("from .srf import SRF", ["srf"]),
        ("from . import srf", ["srf"]),
        ("try:\n    from simdims.srf import SRF\nexcept ImportError:\n    pass", ["srf"]),
        ("class A:\n    from simdims.srf import SRF", ["srf"]),
        ("def save():\n    from simdims.srf import SRF", []),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from simdims.srf import SRF", []),
        ("import numpy as np", []),
    ],
)
def test_the_walk_sees_every_form_of_import(source, wrong):
    assert wrong_way_imports(source, PACKAGE / "triplets.py") == wrong


@pytest.mark.parametrize("path", sorted((PACKAGE / "solvers").glob("*.py")), ids=name_of)
def test_solvers_know_arrays_only(path):
    modules = imported_modules(path.read_text(), path, at_import=False)
    allowed = {m for m in modules if m.split(".")[0] in SOLVERS_MAY_IMPORT or m.startswith("simdims.solvers")}
    assert modules - allowed - MACHINE == set()


@pytest.mark.parametrize("library", ONLY_IN)
def test_each_heavy_library_is_imported_where_it_belongs(library):
    users = {
        name_of(path)
        for path in SOURCES
        for module in imported_modules(path.read_text(), path, at_import=False)
        if module.split(".")[0] == library
    }
    assert users <= ONLY_IN[library]


def test_import_simdims_loads_no_heavy_library():
    code = f"import sys, simdims; print([m for m in {LOADED_ON_USE} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


@pytest.mark.parametrize("name", simdims.__all__)
def test_every_public_name_resolves(name):
    assert getattr(simdims, name) is not None
    assert name in dir(simdims)


def test_public_names_are_listed_once():
    assert set(simdims.__all__) == {"__version__", *simdims._DEFINED_IN}


def test_the_citation_names_this_version():
    assert f"\nversion: {simdims.__version__}\n" in (REPOSITORY / "CITATION.cff").read_text()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = simdims.nonsense


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_file_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_file_is_longer_than_700_lines(path):
    assert len(path.read_text().splitlines()) <= 700


def private_names(path: Path) -> set[str]:
    """Private names of other modules that a file uses, imported by name or reached through their module."""
    tree = ast.parse(path.read_text())
    found, modules = set(), {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("simdims"):
            continue
        for alias in node.names:
            place = PACKAGE.parent / node.module.replace(".", "/") / alias.name
            if place.with_suffix(".py").exists() or place.is_dir():
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif alias.name.startswith("_") and not alias.name.startswith("__"):
                found.add(f"{node.module}.{alias.name}")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        if node.value.id in modules and node.attr.startswith("_") and not node.attr.startswith("__"):
            found.add(f"{modules[node.value.id]}.{node.attr}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_module_uses_private_names_of_another(path):
    assert private_names(path) == set()


def test_private_names_are_seen_at_every_depth(tmp_path):
    source = tmp_path / "x.py"
    source.write_text(
        "from simdims.similarity import _a\ndef f():\n    from simdims._cells import _b\n"
        "    from simdims import io\n    io._c()\n    from simdims import __version__, _cells\n"
    )
    assert private_names(source) == {"simdims.similarity._a", "simdims._cells._b", "simdims.io._c"}


def lengths(path: Path) -> dict[str, int]:
    """Lines of the body of each function, without its docstring."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    bodies = {node.name: node.body[1:] if ast.get_docstring(node) else node.body for node in functions}
    return {name: body[-1].end_lineno - body[0].lineno + 1 for name, body in bodies.items() if body}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_function_is_longer_than_60_lines(path):
    assert {name: length for name, length in lengths(path).items() if length > 60} == {}


def test_the_repository_holds_no_data_files():
    """In every folder of the project but the hidden ones and those that the commands write."""
    written = {"demo_output", "results", "build", "dist", "_build", "venv"}
    found = [
        path.relative_to(REPOSITORY).as_posix()
        for path in REPOSITORY.rglob("*")
        if path.suffix.lower() in DATA_SUFFIXES
        and not any(part.startswith(".") or part in written for part in path.relative_to(REPOSITORY).parts)
    ]
    assert found == []


def test_mutations_by_hand_fit_the_code_that_they_break(monkeypatch):
    spec = importlib.util.spec_from_file_location("mutations", REPOSITORY / ".ci" / "mutations.py")
    mutations = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutations", mutations)
    spec.loader.exec_module(mutations)
    for mutation in mutations.BY_HAND:
        text = (PACKAGE / mutation.file).read_text()
        assert mutation.broken(text) != text
        assert (REPOSITORY / "tests" / mutation.tests.split()[0].partition("::")[0]).is_file()
