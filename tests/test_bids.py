"""The tables of a result as a BIDS derivative: what is written is what was found, and every column is described."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import refused

from simdims import Discovery, SimilaritySet, discover, simulate
from simdims.cli import main

N = 12
NAMES = [f"item\t{i}" if i == 3 else f"item {i}" for i in range(N)]  # a tab needs quotes
W = simulate.dirichlet(N, 2, alpha=0.3, random_state=0)
QUICK = {"ranks": 2, "n_runs": 2, "random_state": 0}


@pytest.fixture(scope="module")
def found():
    return discover(pd.DataFrame(W @ W.T, NAMES, NAMES), **QUICK)


@pytest.fixture(scope="module")
def of_people():
    people = [pd.DataFrame((W * a) @ W.T, NAMES, NAMES) for a in ([1.2, 0.8], [0.7, 1.3], [1.1, 0.9])]
    return discover(SimilaritySet(people, names=["Anna", "Ben", "Cleo"]), **QUICK)


def read(path):
    return pd.read_csv(path, sep="\t", na_values="n/a", keep_default_na=False, index_col=0)


def test_tables_hold_what_was_found_and_every_column_is_described(of_people, tmp_path):
    folder = of_people.to_bids(tmp_path / "derivatives" / "simdims")
    embedding, weights = read(folder / "embedding.tsv"), read(folder / "weights.tsv")
    assert list(embedding.index) == NAMES
    np.testing.assert_array_equal(embedding.to_numpy(), of_people.embedding)
    np.testing.assert_array_equal(weights.to_numpy(), of_people.weights)
    assert list(weights.index) == ["Anna", "Ben", "Cleo"]
    dimensions = read(folder / "dimensions.tsv")
    np.testing.assert_array_equal(dimensions["share"], of_people.dimensions_frame()["share"])
    for name in ("embedding", "dimensions", "weights"):
        described = json.loads((folder / f"{name}.json").read_text())
        header = (folder / f"{name}.tsv").read_text().splitlines()[0].split("\t")
        assert list(described) == header
        assert all(len(one["Description"]) > 5 for one in described.values())
    assert (
        NAMES[int(of_people.embedding[:, 0].argmax())]
        in json.loads((folder / "embedding.json").read_text())["dimension1"]["Description"]
    )


def test_the_folder_says_that_it_is_a_derivative_and_how_it_was_made(found, tmp_path):
    folder = found.to_bids(tmp_path / "out")
    about = json.loads((folder / "dataset_description.json").read_text())
    assert about["DatasetType"] == "derivative"
    assert about["GeneratedBy"][0]["Name"] == "simdims"
    assert {"Name", "BIDSVersion"} <= set(about)
    assert (folder / "README").read_text().startswith("We factorised")
    assert not (folder / "weights.tsv").exists()


def test_missing_values_are_written_as_bids_has_them(found, tmp_path, monkeypatch):
    frame = found.dimensions_frame().assign(share=[np.nan, 0.5], name=["tools, mostly", None])
    monkeypatch.setattr(Discovery, "dimensions_frame", lambda self: frame)
    folder = found.to_bids(tmp_path / "out")
    rows = [line.split("\t") for line in (folder / "dimensions.tsv").read_text().splitlines()]
    assert (rows[1][1], rows[2][-1]) == ("n/a", "n/a")
    assert json.loads((folder / "dimensions.json").read_text())["name"]["Description"]


def test_an_earlier_export_is_replaced_and_other_folders_are_not(found, of_people, tmp_path):
    of_people.to_bids(tmp_path / "out")
    found.to_bids(tmp_path / "out")
    assert not (tmp_path / "out" / "weights.tsv").exists()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with refused("folder", "neither"):
        found.to_bids(tmp_path / "out")
    assert (tmp_path / "out" / "notes.txt").exists()
    with pytest.raises(ValueError, match="Cannot write"):
        found.to_bids(tmp_path / "out" / "notes.txt" / "further")


def test_the_command_line_exports_a_result(found, tmp_path, capsys):
    found.save(tmp_path / "result")
    words = ["export", str(tmp_path / "result"), "-o", str(tmp_path / "bids")]
    assert main(words) == 0
    assert "embedding.tsv" in capsys.readouterr().out
    np.testing.assert_array_equal(read(tmp_path / "bids" / "embedding.tsv").to_numpy(), found.embedding)
    assert main(words) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main([*words, "--overwrite", "--json"]) == 0
    assert "embedding.json" in json.loads(capsys.readouterr().out)["files"]
