"""The commands that fit, evaluate and test give the same numbers as the functions."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simdims import (
    SRF,
    Discovery,
    Similarity,
    dimension_test,
    fit_consensus,
    load_similarity,
    metrics,
    rsa_test,
    simulate,
)
from simdims.cli import main

LABELS = [f"item {i}" for i in range(40)]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    W = simulate.dirichlet(40, 3, alpha=0.2, random_state=0)
    Similarity(simulate.add_noise(W @ W.T, 0.8, random_state=0), labels=LABELS).save("S.npz")
    rng = np.random.default_rng(0)
    pd.DataFrame({"name": LABELS, "first": W[:, 0], "noise": rng.random(40)}).to_csv("properties.csv", index=False)
    rows = [rng.choice(40, 3, replace=False) for _ in range(60)]
    pd.DataFrame([[LABELS[i] for i in row] for row in rows], columns=["a", "b", "odd"]).to_csv("t.csv", index=False)
    pairs = [(LABELS[i], LABELS[j], float(W[i] @ W[j])) for i, j, _ in rows]
    pd.DataFrame(pairs, columns=["one", "two", "rating"]).to_csv("pairs.csv", index=False)


def embedding(path="W.csv"):
    return pd.read_csv(path, index_col="item")


def fitted():
    assert main(["fit", "S.npz", "-n", "3", "--seed", "0", "-o", "W.csv"]) == 0
    return embedding()


def test_fit_writes_the_embedding_that_srf_fits():
    expected = SRF(3, random_state=0).fit(load_similarity("S.npz")).embedding_frame()
    pd.testing.assert_frame_equal(fitted(), expected.rename_axis("item"), rtol=1e-12)


def test_consensus_writes_the_central_run(capsys):
    words = ["--runs", "3", "--splits", "5", "--seed", "0", "--quiet", "-o", "W.csv", "--checkpoint", "work"]
    assert main(["consensus", "S.npz", "-n", "3", *words]) == 0
    expected = fit_consensus(load_similarity("S.npz"), 3, n_runs=3, n_splits=5, random_state=0, progress=False)
    pd.testing.assert_frame_equal(embedding(), expected.embedding_frame().rename_axis("item"), rtol=1e-12)
    assert expected.summary() in capsys.readouterr().out


def test_discover_writes_a_folder_and_says_how_long_it_will_take(capsys):
    words = ["--ranks", "2:4", "--sampling", "0.6", "--repeats", "1", "--runs", "3", "--seed", "0", "--quiet"]
    assert main(["discover", "S.npz", "-o", "found", *words]) == 0
    said = capsys.readouterr()
    found = Discovery.load("found")
    assert found.n_components == 3
    assert "Read S.npz as similarities that simdims wrote" in said.err
    assert "Estimated time: " in said.err
    assert said.out.startswith("3 dimensions of 40 items")
    assert f"mean reliability across random starts {found.consensus.mean_reliability:.2f}" in said.out
    assert said.out.endswith("Results: found\nReport: found/report.html\nSeed: 0\n")
    assert found.estimated_seconds > 0
    assert Path("found/report.html").exists()
    assert list(embedding("found/embedding.csv").index) == LABELS


def test_evaluate_triplets_by_name(capsys):
    W = fitted()
    assert main(["evaluate", "triplets", "W.csv", "t.csv", "--odd", "odd"]) == 0
    expected = metrics.triplet_accuracy(W, pd.read_csv("t.csv"))
    assert f"accuracy {expected:.6f}" in capsys.readouterr().out


def test_evaluate_takes_the_folder_of_a_discovery(capsys):
    assert main(["discover", "S.npz", "-o", "found", "--ranks", "3", "--runs", "2", "--quiet", "--seed", "0"]) == 0
    assert main(["evaluate", "triplets", "found", "t.csv"]) == 0
    expected = metrics.triplet_accuracy(Discovery.load("found").embedding_frame(), pd.read_csv("t.csv"))
    assert f"accuracy {expected:.6f}" in capsys.readouterr().out


def test_an_embedding_without_names_is_read_by_position(capsys):
    W = np.random.default_rng(0).random((5, 2))
    pd.DataFrame(W, columns=["a", "b"]).rename_axis("item").reset_index().to_csv("W.csv", index=False)
    np.save("t.npy", np.array([[0, 1, 2], [3, 4, 0]]))
    assert main(["evaluate", "triplets", "W.csv", "t.npy"]) == 0
    assert f"accuracy {metrics.triplet_accuracy(W, np.load('t.npy')):.6f}" in capsys.readouterr().out


def test_evaluate_pairs(capsys):
    W = fitted()
    assert (
        main(["evaluate", "pairs", "W.csv", "pairs.csv", "--item1", "one", "--item2", "two", "--rating", "rating"]) == 0
    )
    table = pd.read_csv("pairs.csv")
    expected = metrics.pair_correlation(W, table[["one", "two"]], table["rating"])
    assert f"correlation {expected.correlation:.6f}" in capsys.readouterr().out


def test_evaluate_readout_writes_its_table():
    W = fitted()
    assert (
        main(["evaluate", "readout", "W.csv", "properties.csv", "--labels", "name", "--seed", "0", "-o", "r.csv"]) == 0
    )
    expected = metrics.readout(W, pd.read_csv("properties.csv", index_col="name"), random_state=0).table
    pd.testing.assert_frame_equal(pd.read_csv("r.csv"), expected, check_dtype=False, rtol=1e-9)


def test_the_dimension_test_writes_its_table():
    W = fitted()
    words = ["--labels", "name", "--seed", "0", "--permutations", "99", "--quiet", "-o", "tests.csv"]
    assert main(["test", "W.csv", "properties.csv", *words]) == 0
    properties = pd.read_csv("properties.csv", index_col="name")
    expected = dimension_test(W, properties, n_permutations=99, random_state=0, progress=False).table
    found = pd.read_csv("tests.csv")
    assert list(found["hypothesis"]) == ["first", "noise"]
    np.testing.assert_allclose(found["pvalue"], expected["pvalue"])


def test_labels_of_an_embedding_come_from_a_file(capsys):
    W = fitted()
    capsys.readouterr()
    np.savetxt("bare.txt", W.to_numpy())
    Path("labels.txt").write_text("\n".join(W.index))
    pd.read_csv("properties.csv").sample(frac=1, random_state=0).to_csv("shuffled.csv", index=False)
    words = ["shuffled.csv", "--labels", "name", "--seed", "0", "--permutations", "99", "--quiet", "--json"]
    assert main(["test", "W.csv", *words]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main(["test", "bare.txt", *words, "--label-file", "labels.txt"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["statistic"] for row in found["tests"]] == pytest.approx(
        [row["statistic"] for row in expected["tests"]]
    )
    Path("labels.txt").write_text("a\nb")
    assert main(["test", "bare.txt", *words, "--label-file", "labels.txt"]) == 1
    assert "--label-file must have one label for each of the" in capsys.readouterr().err
    assert main(["test", "W.csv", *words, "--label-file", "labels.txt"]) == 2


def test_categories_are_tested_by_level(capsys):
    fitted()
    table = pd.read_csv("properties.csv").assign(kind=np.resize(["one", "two"], 40), first=None)
    table.loc[0, "kind"] = "rare"
    table.dropna(axis=1).to_csv("words.csv", index=False)
    words = ["--labels", "name", "--seed", "0", "--permutations", "99", "--quiet", "-o", "tests.csv", "--overwrite"]
    for command in ["test", "W.csv"], ["rsa", "S.npz"]:
        assert main([*command, "words.csv", *words]) == 0
        assert "'kind' is a category: 2 levels with 5 or more items; left out 1" in capsys.readouterr().err
        found = pd.read_csv("tests.csv", index_col="hypothesis")
        assert set(found.index) == {"noise", "kind: one", "kind: two"}
    is_one = {"kind: one": (table["kind"] == "one").to_numpy()}
    expected = rsa_test(load_similarity("S.npz"), is_one, n_permutations=99, random_state=0, progress=False)
    assert found["statistic"]["kind: one"] == pytest.approx(expected.table["statistic"][0])
    assert main(["test", "W.csv", "words.csv", "--nuisance", "kind", *words]) == 0
    assert main(["test", "W.csv", "words.csv", *words[2:]]) == 1
    assert "in 'name': if it names the items, pass its name as --labels" in capsys.readouterr().err


def test_the_rsa_test_writes_its_table():
    words = "--labels name --seed 0 --permutations 99 --quiet --method spearman -o r.csv"
    assert main(["rsa", "S.npz", "properties.csv", *words.split()]) == 0
    properties = pd.read_csv("properties.csv", index_col="name")
    expected = rsa_test(
        load_similarity("S.npz"), properties, method="spearman", n_permutations=99, random_state=0, progress=False
    ).table
    np.testing.assert_allclose(pd.read_csv("r.csv")["statistic"], expected["statistic"])
