"""The paper's analyses as a whole: each runs at its smallest size, resumes, is written, and uses public names only."""

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import paper_files
import pytest

from paper import ANALYSES, Claim, Reproduction, Settings, harness, page, reproduce
from paper.__main__ import main
from paper.harness import design, is_positive, run_each, simulate_cell

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = sorted((REPOSITORY / "paper").glob("*.py"))
#: Analyses whose smoke run judges some claims: they are theorems, or do not depend on size.
JUDGED_IN_SMOKE = {"misspecified-rank", "leakage", "convergence"}


@pytest.fixture(autouse=True)
def _no_data(monkeypatch):
    monkeypatch.delenv("SIMDIMS_DATA", raising=False)


@pytest.fixture(scope="module")
def things_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    paper_files.write_things(folder)
    return folder


@pytest.fixture(scope="module")
def smoke(things_folder) -> Callable[..., Reproduction]:
    """Run an analysis at its smallest size; without further options, only once."""
    done: dict[str, Reproduction] = {}

    def run(name: str, **options) -> Reproduction:
        options |= {"data": things_folder} if name == "things" else {}
        if options.keys() - {"data"}:
            return reproduce(name, size="smoke", progress=False, **options)
        if name not in done:
            done[name] = reproduce(name, size="smoke", progress=False, **options)
        return done[name]

    return run


def same_tables(one: Reproduction, other: Reproduction) -> None:
    assert list(one.outcome.tables) == list(other.outcome.tables)
    for heading, table in one.outcome.tables.items():
        pd.testing.assert_frame_equal(table, other.outcome.tables[heading])


@pytest.mark.parametrize("name", ANALYSES)
def test_a_smoke_run_has_claims_tables_and_a_figure(name, smoke, tmp_path):
    found = smoke(name)
    assert found.outcome.claims
    assert all(claim.what and claim.published and claim.ours for claim in found.outcome.claims)
    if name not in JUDGED_IN_SMOKE:
        assert all(claim.agrees is None for claim in found.outcome.claims)
    for heading, table in found.outcome.tables.items():
        assert len(table), heading
        assert np.isfinite(table.select_dtypes("number").to_numpy(dtype=float)).all(), heading
    assert all(remark.endswith(".") for remark in found.outcome.remarks)
    assert found.outcome.claims[0].what in found.summary()
    written = found.save(tmp_path)
    assert [path.name for path in written] == [f"{name}.{ending}" for ending in ("json", "txt", "png", "pdf")]
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) == found.to_dict() | {"only": None}


@pytest.mark.parametrize("name", ANALYSES)
def test_a_resumed_run_equals_one_from_scratch(name, smoke, tmp_path):
    kept = smoke(name, checkpoint=tmp_path)
    resumed = smoke(name, checkpoint=tmp_path)
    assert (kept.resumed, resumed.resumed) == (False, True)
    same_tables(kept, smoke(name))
    same_tables(resumed, smoke(name))


def test_another_seed_gives_other_data(smoke):
    other = smoke("recovery", random_state=1)
    for heading, table in other.outcome.tables.items():
        assert not table.equals(smoke("recovery").outcome.tables[heading])


def double(cell):
    return {"twice": 2 * cell["x"]}


def test_an_interrupted_loop_measures_only_what_is_missing(tmp_path):
    settings = Settings(checkpoint=tmp_path, progress=False)
    cells = [{"x": x} for x in range(5)]

    def interrupted(cell):
        if cell["x"] == 2:
            raise KeyboardInterrupt
        return double(cell)

    with pytest.raises(KeyboardInterrupt):
        run_each(settings, "part", interrupted, cells)
    again = []
    found = run_each(settings, "part", lambda cell: again.append(cell["x"]) or double(cell), cells)
    assert found == [{"x": x, "twice": 2 * x} for x in range(5)]
    assert again == [2, 3, 4]


@pytest.mark.slow
def test_the_result_of_a_loop_does_not_depend_on_the_number_of_processes():
    cells = [{"x": x} for x in range(4)]
    assert run_each(Settings(n_jobs=2, progress=False), "part", double, cells) == [{**c, **double(c)} for c in cells]


def test_a_file_is_replaced_only_once_it_is_complete(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    harness.write_text(path, "one")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(harness.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        harness.write_text(path, "two")
    assert path.read_text() == "one"


def test_a_design_changes_noise_and_pairs_but_not_the_embedding():
    levels = {"rank": (2, 3), "alpha": (0.1, 1.0), "snr": (1.0, 0.5), "observed": (1.0, 0.5)}
    cells = design(Settings(seed=4), 2, levels, n_items=40)
    assert len(cells) == 32
    assert json.loads(json.dumps(cells)) == cells
    embeddings = {}
    for cell in cells:
        key = cell["rank"], cell["alpha"], cell["seed"]
        W, truth, S, _ = simulate_cell(cell)
        np.testing.assert_array_equal(W, embeddings.setdefault(key, W))
        np.testing.assert_array_equal(truth, W @ W.T)
        pairs = np.triu_indices(40, 1)
        assert abs(1 - np.isnan(S[pairs]).mean() - cell["observed"]) < 0.1
        if cell["observed"] == 1:
            error = (S - truth)[pairs].var()
            assert truth[pairs].var() / (truth[pairs].var() + error) == pytest.approx(cell["snr"], abs=1e-6)
    assert len(embeddings) == len({key[2] for key in embeddings}) == 8


def test_verdicts_say_what_is_published_and_leave_smoke_runs_open():
    said = Claim("a", "b", "c", True)
    assert said.verdict == "as published"
    assert said._replace(in_paper=False).verdict == "agrees, not in the paper"
    assert said._replace(agrees=False).verdict == "differs"
    assert said._replace(agrees=None, in_paper=False).verdict == "undecided"
    assert Settings(size="smoke").verdict(True) is None
    assert Settings(size="quick").verdict(np.bool_(True)) is True
    assert Settings(size="full").verdict(False) is False


def test_a_difference_is_judged_if_its_interval_excludes_zero():
    judged = [is_positive(*both) for both in ((0.2, 0.05), (-0.2, 0.05), (0.2, 0.15), (0.0, 0.0))]
    assert judged == [True, False, None, None]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"name": "everything"}, ValueError, "name .*'everything'"),
        ({"name": "recovery", "size": "tiny"}, ValueError, "size .*'tiny'"),
        ({"name": "recovery", "only": ["clip"]}, ValueError, "only .*'recovery'"),
        ({"name": "recovery", "random_state": -1}, ValueError, "random_state .*-1"),
        ({"name": "datasets", "data": "nowhere"}, FileNotFoundError, "nowhere"),
    ],
)
def test_bad_arguments_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        reproduce(**options)


def test_a_data_folder_of_the_environment_must_exist(monkeypatch):
    monkeypatch.setenv("SIMDIMS_DATA", "nowhere")
    with pytest.raises(FileNotFoundError, match=r"nowhere.*SIMDIMS_DATA"):
        reproduce("datasets", size="smoke")


def test_the_command_line_lists_runs_and_writes(capsys, tmp_path):
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ANALYSES)
    assert main(["convergence", "--smoke", "--seed", "3", "--json", "--quiet", "-o", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["size"], found["seed"]) == ("smoke", 3)
    assert (tmp_path / "convergence.png") in [Path(file) for file in found["files"]]
    assert main(["things", "--smoke", "--quiet"]) == 1
    assert "triplets_100k.npy" in capsys.readouterr().err


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_only_public_names_are_imported(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        private = [name for name in names if name.startswith("_") and name not in ("__future__", "__version__")]
        assert not private, f"{path.name}:{node.lineno}"
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            assert node.attr in ("_asdict", "_replace"), f"{path.name}:{node.lineno}"


def test_the_page_has_every_analysis_and_takes_over_new_results(smoke):
    text = (REPOSITORY / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE)[2:] == list(ANALYSES)
    found = smoke("convergence").to_dict()
    updated = page.updated(text, {"convergence": found})
    before, after = (one.split("## convergence\n") for one in (text, updated))
    changed = [new for old, new in zip(before[0].splitlines(), after[0].splitlines(), strict=True) if old != new]
    assert changed == [page.summary_row("convergence", found)]
    claims = [line for line in after[1].splitlines() if line.startswith("|")][2:]
    for claim, line in zip(found["claims"], claims, strict=True):
        assert claim["ours"].replace("|", "\\|") in line
    assert page.updated(updated, {"convergence": found}) == updated


def test_the_package_does_not_know_the_paper():
    for path in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = getattr(node, "module", None) or node.names[0].name
                assert module.split(".")[0] != "paper", path
