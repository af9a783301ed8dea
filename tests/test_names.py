"""Names of dimensions: wherever they come from, they are in every table, figure, test and text that follows."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from report_examples import made, sorted_embedding

from simdims import (
    Bootstrap,
    Discovery,
    ParameterError,
    Similarity,
    bootstrap,
    compare_embeddings,
    dimension_test,
    label_dimensions,
    plots,
    simulate,
)
from simdims.cli import main
from simdims.discovery.names import identity
from simdims.naming import suggested_names

LABELS = [f"item {i}" for i in range(40)]
GIVEN = {1: "animal", "dimension3": '=food, "raw"'}
NAMES = ("animal", "dimension2", '=food, "raw"')


@pytest.fixture(scope="module")
def found():
    return made(sorted_embedding(40, 3), labels=LABELS)


@pytest.fixture(scope="module")
def named(found):
    return found.rename(GIVEN)


def test_a_renamed_result_is_a_new_one(found, named):
    assert named.dimension_names == NAMES
    assert found.dimension_names == ("dimension1", "dimension2", "dimension3")
    np.testing.assert_array_equal(named.embedding, found.embedding)
    assert named.rename({"animal": None, NAMES[2]: "animal"}).dimension_names == ("dimension1", "dimension2", "animal")
    assert named.rename({"animal": NAMES[2], NAMES[2]: "animal"}).dimension_names == (NAMES[2], "dimension2", "animal")
    assert named.rename({"dimension1": "x", "3": "y", np.int64(2): " a \n b "}).dimension_names == ("x", "a b", "y")


def test_names_are_in_tables_tests_and_texts(found, named):
    assert tuple(named.embedding_frame().columns) == NAMES
    frame = named.dimensions_frame()
    assert list(frame.index) == ["dimension1", "dimension2", "dimension3"]
    assert list(frame["name"]) == ["animal", "", NAMES[2]]
    assert "name" not in found.dimensions_frame()
    X = {"first": named.embedding[:, 0]}
    assert dimension_test(named, X, n_permutations=20, random_state=0).dimension == ("animal",)
    assert label_dimensions(named, X, n_permutations=50, random_state=0)["dimension"].iloc[0] == "animal"
    assert compare_embeddings(named, found, n_permutations=20, random_state=0).dimensions1 == NAMES
    assert 'animal (dimension 1) and =food, "raw" (dimension 3)' in named.methods_text()
    assert "named" not in found.methods_text()


def test_suggestions_are_names(found):
    is_tame = found.embedding.argmax(axis=1) == 1
    table = label_dimensions(found, {"kind: tame": is_tame}, n_permutations=99, random_state=0)
    assert found.rename(suggested_names(table, numbers=False)).dimension_names == ("dimension1", "tame", "dimension3")


def test_names_are_in_figures_and_notebooks(named):
    titles = [ax.get_title(loc="left") for ax in plots.dimension_grid(named)]
    assert titles[:2] == ["animal", "Dimension 2"]
    for by_name in ("animal", "dimension1"):
        assert plots.word_cloud(named, by_name).get_title() == "animal"
    texts = [text.get_text() for text in plots.item_fingerprint(named, "item 3").get_yticklabels()]
    assert set(texts) <= {"1: animal", "2: item 6, item 12, item 34", f"3: {NAMES[2]}"}
    assert "1: animal" in named._repr_html_()


def test_resamples_have_the_names(tmp_path):
    W = simulate.dirichlet(20, 2, random_state=0)
    named = made(W, Similarity(W @ W.T)).rename({2: "food"})
    with pytest.warns(UserWarning, match="too few"):
        sure = bootstrap(named, over="pairs", n_resamples=20, random_state=0)
    sure.save(tmp_path / "sure.npz")
    sure = Bootstrap.load(tmp_path / "sure.npz")
    assert sure.dimensions_frame()["dimension"].tolist() == ["dimension1", "food"]
    assert plots.uncertainty(sure, of="loadings", dimension="food").get_xlabel().splitlines()[0] == "Loading on food"


def test_an_encoder_predicts_named_dimensions(found):
    X = np.random.default_rng(0).normal(size=(40, 5))
    named = found.with_encoder(X).rename(GIVEN)
    assert tuple(named.encode(X).columns) == NAMES
    assert tuple(named.encoder.scores_frame().index) == NAMES


def test_the_folder_has_the_names(named, tmp_path):
    named.save(tmp_path / "named")
    again = Discovery.load(tmp_path / "named")
    assert again.dimension_names == NAMES
    assert tuple(pd.read_csv(tmp_path / "named" / "embedding.csv").columns) == (
        "item",
        "animal",
        "dimension2",
        f"'{NAMES[2]}",
    )
    rows = list(csv.DictReader((tmp_path / "named" / "dimensions.csv").open(encoding="utf-8-sig")))
    assert [row["name"] for row in rows] == ["animal", "", f"'{NAMES[2]}"]
    assert "animal (dimension 1)" in (tmp_path / "named" / "methods.txt").read_text()


def test_a_folder_without_names_says_nothing_of_them(found, tmp_path):
    found.save(tmp_path / "found")
    assert "dimension_names" not in (tmp_path / "found" / "discovery.json").read_text()
    assert Discovery.load(tmp_path / "found").dimension_names == found.dimension_names


def test_files_of_names_are_read(found, named, tmp_path):
    named.save(tmp_path / "named")
    saved = {"fingerprint": identity(found), "names": {"dimension2": "plant"}}
    (tmp_path / "page.json").write_text(json.dumps(saved))
    (tmp_path / "plain.json").write_text('{"2": "plant"}')
    (tmp_path / "names.csv").write_text('dimension,name\n2,"a ""b"", c"\ndimension1,\n')
    assert found.rename(tmp_path / "named" / "dimensions.csv").dimension_names == NAMES
    # The file of a page has all its names, so what it leaves out has none.
    assert named.rename(tmp_path / "page.json").dimension_names == ("dimension1", "plant", "dimension3")
    assert named.rename(str(tmp_path / "plain.json")).dimension_names == ("animal", "plant", NAMES[2])
    assert named.rename(tmp_path / "names.csv").dimension_names == ("dimension1", 'a "b", c', NAMES[2])


@pytest.mark.parametrize(
    ("names", "kind", "words"),
    [
        ({4: "x"}, ValueError, "from 1 to 3.* got 4"),
        ({0: "x"}, ValueError, "got 0"),
        ({True: "x"}, ValueError, "got True"),
        ({"tool": "x"}, ValueError, "got 'tool'"),
        ({1: "x", 2: "x"}, ValueError, "'x' for dimensions 1 and 2"),
        ({1: "dimension2"}, ValueError, "'dimension2' for dimension1"),
        ({1: " "}, ValueError, "empty.*dimension 1"),
        ({1: "Item"}, ValueError, "'Item' for dimension 1"),
        ({1: 3}, TypeError, "3 for dimension 1"),
        (["x"], TypeError, "mapping"),
        ("none.json", FileNotFoundError, "none.json"),
        ("other.json", ValueError, "page of another result"),
        ("list.json", ValueError, "list.json.*JSON"),
        ("broken.json", ValueError, "broken.json.*not JSON"),
        ("label.csv", ValueError, "label.csv.*'property'"),
        ("names.docx", ValueError, "names.docx"),
    ],
)
def test_bad_names_are_refused(found, tmp_path, monkeypatch, names, kind, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text('{"fingerprint": "0", "names": {"dimension1": "x"}}')
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "label.csv").write_text("dimension,property\n1,x\n")
    (tmp_path / "names.docx").write_text("x")
    with pytest.raises(kind, match=words) as caught:
        found.rename(names)
    assert isinstance(caught.value, ParameterError | FileNotFoundError) or "Unsupported" in str(caught.value)


def test_the_command_names_dimensions_on_the_page_and_in_the_folder(found, tmp_path, capsys):
    folder = tmp_path / "found"
    found.save(folder)
    (folder / "run.toml").write_text("[discover]")  # as simdims discover writes it
    (tmp_path / "names.json").write_text(json.dumps({"dimension1": "animal"}))
    assert main(["report", str(folder), "--names", str(tmp_path / "names.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dimension_names"] == ["animal", "dimension2", "dimension3"]
    assert (folder / "report.html").exists()
    assert Discovery.load(folder).dimension_names[0] == "animal"
    assert (folder / "run.toml").exists()
    (tmp_path / "bad.json").write_text(json.dumps({"dimension9": "animal"}))
    assert main(["report", str(folder), "--names", str(tmp_path / "bad.json")]) == 1
    told = capsys.readouterr().err
    assert "bad.json: --names" in told or "--names" in told
    assert "'dimension9'" in told
