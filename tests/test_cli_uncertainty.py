"""`simdims bootstrap`, `simdims compare` and their sections of `simdims report`, with the numbers of Python."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simdims import Bootstrap, SimilaritySet, bootstrap, compare_embeddings, discover, simulate
from simdims.cli import main

pytestmark = pytest.mark.filterwarnings("ignore:.*too few for 95% intervals")
QUICK = {"n_runs": 2, "n_repeats": 1, "random_state": 0, "progress": False}
ITEMS = [f"item {i:02d}" for i in range(16)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A result of six people, one of their mean, and the folder with both."""
    W = simulate.dirichlet(16, 3, alpha=0.3, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=(6, 3))
    stack = [
        pd.DataFrame(simulate.add_noise((W * a) @ W.T, 0.9, random_state=m), index=ITEMS, columns=ITEMS)
        for m, a in enumerate(weights)
    ]
    people = discover(SimilaritySet(stack), ranks=3, **QUICK)
    mean = discover(people.mean_similarity, ranks=2, **QUICK)
    folder = tmp_path_factory.mktemp("results")
    people.save(folder / "people")
    mean.save(folder / "mean")
    return people, mean, folder


@pytest.fixture(autouse=True)
def _folder(results, monkeypatch, tmp_path):
    for name in ("people", "mean"):
        (tmp_path / name).symlink_to(results[2] / name)
    monkeypatch.chdir(tmp_path)


def done(*words):
    return main([str(word) for word in words])


@pytest.mark.parametrize(("folder", "over"), [("people", "systems"), ("mean", "items"), ("people", "pairs")])
def test_bootstrap_gives_the_intervals_of_python(results, capsys, folder, over):
    found = results[0] if folder == "people" else results[1]
    expected = bootstrap(found, over, n_resamples=20, random_state=3, progress=False)
    given = ["--over", over] if over == "pairs" else []  # the others are what is resampled by default
    words = ["bootstrap", folder, *given, "--resamples", 20, "--seed", 3, "--quiet", "-o"]
    assert done(*words, "sure.npz", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    again = Bootstrap.load("sure.npz")
    np.testing.assert_array_equal(again.embeddings, expected.embeddings)
    assert told["over"] == over
    assert told["seed"] == 3
    assert [row["came_back"] for row in told["dimensions"]] == expected.came_back.tolist()
    lows = np.array([row["low"] for row in told["loadings"]], dtype=float)  # null where a dimension was not found
    np.testing.assert_allclose(lows, expected.interval()[0].ravel())
    assert (told["weights"] is None) == (folder == "mean")
    assert done(*words, "sure.csv") == 0
    pd.testing.assert_frame_equal(pd.read_csv("sure.csv"), expected.dimensions_frame())
    assert done(*words, "sure.json") == 0
    assert json.loads(Path("sure.json").read_text()) == told


def test_intervals_are_drawn(capsys):
    pytest.importorskip("matplotlib")
    assert done("bootstrap", "people", "--resamples", 20, "--seed", 0, "--quiet", "-o", "sure.npz") == 0
    words = ["plot", "uncertainty", "people", "--uncertainty", "sure.npz"]
    assert done(*words, "-o", "shares.svg") == 0
    assert "came back" in Path("shares.svg").read_text()
    assert done(*words, "--dimension", 2, "-o", "loadings.svg") == 0
    assert "Loading on dimension 2" in Path("loadings.svg").read_text()
    capsys.readouterr()
    for mistake, status, said in (
        (["plot", "uncertainty", "people"], 2, "needs --uncertainty"),
        ([*words, "--dimension", 9], 1, "--dimension"),
        (["plot", "uncertainty", "mean", "--uncertainty", "sure.npz"], 1, "--uncertainty must be of this result"),
        (["plot", "map", "people", "--uncertainty", "sure.npz"], 2, "--uncertainty only applies to"),
    ):
        assert done(*mistake, "-o", "x.svg") == status
        assert said in capsys.readouterr().err


def test_compare_gives_the_pairs_of_python(results, capsys):
    people, mean, _ = results
    expected = compare_embeddings(
        people, mean, S1=people.mean_similarity, S2=mean.similarity, n_permutations=200, random_state=1
    )
    words = ["compare", "people", "mean", "--permutations", 200, "--seed", 1]
    assert done(*words, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    pairs = pd.DataFrame(told["pairs"])
    pd.testing.assert_frame_equal(pairs.drop(columns="shared"), expected.table)
    assert pairs["shared"].tolist() == expected.is_shared.tolist()
    assert told["only1"] == list(expected.only1)
    assert told["explained"][0]["all"] == pytest.approx(expected.explained.loc["S1", "all"])
    assert done(*words, "-o", "shared.csv") == 0
    assert len(pd.read_csv("shared.csv")) == 2
    assert done(*words, "-o", "shared.svg") == 0
    assert "mean" in Path("shared.svg").read_text()
    mean.embedding_frame().rename_axis("item").to_csv("mean.csv")
    assert done("compare", "people", "mean.csv", *words[3:], "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["n_shared"] == expected.n_shared


def test_the_page_has_resamples_and_comparisons(capsys):
    assert done("bootstrap", "people", "--resamples", 20, "--seed", 0, "--quiet", "-o", "sure.npz") == 0
    words = ["report", "people", "-o", "page.html", "--uncertainty", "sure.npz", "--compare", "mean", "--seed", 0]
    capsys.readouterr()
    assert done(*words, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["came_back"] for row in told["dimensions"]] == Bootstrap.load("sure.npz").came_back.tolist()
    assert told["comparisons"]["mean"]["n_shared"] == 2
    page = Path("page.html").read_text(encoding="utf-8")
    assert '"name":"mean"' in page
    assert "In 20 resampled groups of systems" in page


def test_an_embedding_of_other_items_is_refused(capsys):
    pd.DataFrame({"item": list("abcdef"), "x": np.arange(6.0)}).to_csv("few.csv", index=False)
    assert done("compare", "mean", "few.csv") == 1
    assert "OTHER must share at least 4 items with the first embedding, got 0" in capsys.readouterr().err


def test_resamples_of_another_result_name_the_command(capsys):
    assert done("bootstrap", "people", "--resamples", 20, "--seed", 0, "--quiet", "-o", "sure.npz") == 0
    assert done("report", "mean", "-o", "page.html", "--uncertainty", "sure.npz") == 1
    said = capsys.readouterr().err
    assert "--uncertainty must be of this result" in said
    assert "`simdims bootstrap`" in said


def test_files_to_compare_may_call_their_labels_differently(results, capsys):
    people = results[0]
    people.embedding_frame().rename_axis("item").to_csv("first.csv")
    people.embedding_frame().iloc[::-1].rename_axis("name").to_csv("second.csv")
    for pair in (("people", "second.csv"), ("second.csv", "people"), ("first.csv", "second.csv")):
        assert done("compare", *pair, "--item", "name", "--seed", 1) == 0
        assert "3 dimensions shared" in capsys.readouterr().out
    assert done("report", "people", "--compare", "second.csv", "mean", "--item", "name", "-o", "page.html") == 0
    for wrong in (("compare", "people", "mean"), ("report", "people", "--compare", "mean"), ("report", "people")):
        assert done(*wrong, "--item", "name") == 2
    assert done("compare", "people", "second.csv", "--item", "nothing") == 1
    assert "--item must name a column of this file, got 'nothing'" in capsys.readouterr().err
