"""Several systems on the command line: --by, folders, saved sets and `simdims weights`, with the numbers of Python."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simdims import (
    Discovery,
    SimilaritySet,
    discover,
    from_comparisons,
    from_dissimilarity,
    from_ratings,
    from_triplets,
    simulate,
    weight_test,
)
from simdims.cli import main

N = 14
ITEMS = [f"item {i:02d}" for i in range(N)]
QUICK = ["--ranks", "2", "--runs", "2", "--repeats", "1", "--seed", "0", "--quiet", "--no-report"]
COLUMNS = {"item1": "left", "item2": "right", "rating": "rating"}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def matrices():
    W = simulate.dirichlet(N, 2, alpha=0.3, random_state=0)
    weights = np.random.default_rng(0).uniform(0.3, 1.7, size=(6, 2))
    return {f"p{m:02d}": (W * a) @ W.T for m, a in enumerate(weights)}


@pytest.fixture(scope="module")
def ratings(matrices):
    i, j = np.triu_indices(N, 1)
    people = [
        pd.DataFrame({"participant": name, "left": np.take(ITEMS, i), "right": np.take(ITEMS, j),
                      "rating": (50 * S[i, j]).round(), "group": "ab"[m % 2]})
        for m, (name, S) in enumerate(matrices.items())
    ]  # fmt: skip
    return pd.concat(people, ignore_index=True)


def done(*words):
    return main([str(word) for word in words])


def same(folder, people):
    found = Discovery.load(folder)
    expected = discover(people, ranks=2, n_runs=2, n_repeats=1, random_state=0)
    np.testing.assert_allclose(found.weights, expected.weights)
    np.testing.assert_allclose(found.embedding, expected.embedding)
    return found


def test_ratings_of_several_people_are_kept_apart(ratings, capsys):
    ratings.to_csv("people.csv", index=False)
    scale = ["--low", 0, "--high", 100]
    assert done("discover", "people.csv", "--by", "participant", "-o", "out", *scale, *QUICK, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    people = from_ratings(ratings, **COLUMNS, by="participant", low=0, high=100)
    found = same("out", people)
    assert found.similarity.info["group"].tolist() == list("ababab")
    assert [row["system"] for row in told["weights"]] == list(people.names)
    assert told["systems"]["systems"] == list(people.names)
    assert any("Held-out R2" in line and "systems" in line for line in told["findings"])
    assert told["noise_ceiling"]["share"] == found.systems.comparison.loc["scale", "r2"] / found.noise_ceiling.upper
    assert any("of the upper bound" in line for line in told["findings"])


def test_a_list_of_dissimilarities_of_several_people(ratings, capsys):
    table = ratings.assign(dissimilarity=100 - ratings["rating"])[["participant", "left", "right", "dissimilarity"]]
    table.to_csv("people.csv", index=False)
    assert done("discover", "people.csv", "--by", "participant", "-o", "out", *QUICK) == 0
    assert "dissimilarit" in capsys.readouterr().err
    same("out", from_dissimilarity(table, by="participant"))


def test_triplets_of_several_people(matrices, capsys):
    rng = np.random.default_rng(0)
    rows = []
    for name, S in matrices.items():
        for _ in range(150):
            a, b, c = sorted(rng.choice(N, 3, replace=False))
            odd = max(((a, b, c), (a, c, b), (b, c, a)), key=lambda one, S=S: S[one[0], one[1]])
            rows.append([*(ITEMS[one] for one in odd), name])
    table = pd.DataFrame(rows, columns=["one", "two", "odd", "who"])
    table.to_csv("answers.csv", index=False)
    options = ["--as", "triplets", "--columns", "one", "two", "odd", "--odd", "odd"]
    assert done("discover", "answers.csv", *options, "--by", "who", "-o", "out", *QUICK) == 0
    same("out", from_triplets(table, odd="odd", by="who"))


def test_comparisons_of_several_people(matrices, capsys):
    rng = np.random.default_rng(0)
    rows = []
    for name, S in matrices.items():
        for _ in range(150):
            head, a, b = rng.choice(N, 3, replace=False)
            winner, loser = (a, b) if S[head, a] > S[head, b] else (b, a)
            rows.append([ITEMS[head], ITEMS[winner], ITEMS[loser], name])
    table = pd.DataFrame(rows, columns=["head", "winner", "loser", "who"])
    table.to_csv("answers.csv", index=False)
    assert done("discover", "answers.csv", "--as", "comparisons", "--by", "who", "-o", "out", *QUICK) == 0
    same("out", from_comparisons(table, by="who"))
    assert done("evaluate", "comparisons", "out", "answers.csv", "--by", "who") == 0
    _, header, *rows, _, _ = capsys.readouterr().out.splitlines()[-10:]
    assert header.split() == ["who", "shared", "own", "weights"]
    assert [len(row.split()) for row in rows] == [3] * 6


@pytest.mark.parametrize("kind", ["similarities", "dissimilarities"])
def test_a_folder_has_one_file_per_system(matrices, kind, capsys):
    folder = Path("people")
    folder.mkdir()
    for name, S in matrices.items():
        values = S if kind == "similarities" else S.max() - S
        np.fill_diagonal(values := values.copy(), 1.0 if kind == "similarities" else 0.0)
        pd.DataFrame(values, index=ITEMS, columns=ITEMS).to_csv(folder / f"{name}.csv")
    assert done("discover", folder, "-o", "out", *QUICK) == 0
    assert f"Read people as {kind}" in capsys.readouterr().err
    same("out", SimilaritySet.load(folder) if kind == "similarities" else from_dissimilarity(folder, by="person"))


def test_a_saved_set_is_read_and_similarity_makes_one(ratings, capsys):
    ratings.to_csv("people.csv", index=False)
    columns = [word for name, column in COLUMNS.items() for word in (f"--{name}", column)]
    words = ["similarity", "ratings", "people.csv", "people.npz", *columns, "--low", 0, "--high", 100]
    assert done(*words, "--by", "participant", "--json") == 0
    assert json.loads(capsys.readouterr().out)["systems"] == [f"p{m:02d}" for m in range(6)]
    assert done("discover", "people.npz", "-o", "out", *QUICK) == 0
    same("out", from_ratings(ratings, **COLUMNS, by="participant", low=0, high=100))


@pytest.fixture
def result(matrices):
    info = {"group": list("ababab"), "score": [3, 1, 4, 1, 5, 9], "person": list("xxyyzz")}
    people = SimilaritySet(matrices, info=info)
    discover(people, ranks=2, n_runs=2, n_repeats=1, random_state=0).save("result")
    return Discovery.load("result")


def test_weights_are_tested_with_the_same_numbers_as_in_python(result, capsys):
    for words, expected in (
        (["--by", "group"], weight_test(result, "group", random_state=0)),
        (["--by", "score"], weight_test(result, "score", random_state=0)),
        (["--by", "group", "--within", "person"], weight_test(result, "group", within="person", random_state=0)),
    ):
        assert done("weights", "result", *words, "--seed", 0, "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert told["test"] == "weights"
        np.testing.assert_allclose([row["pvalue"] for row in told["tests"]], expected.pvalue)
        np.testing.assert_allclose([row["effect"] for row in told["tests"]], expected.effect)
    assert done("weights", "result", "--by", "group", "-o", "tests.csv", "--seed", 0) == 0
    assert list(pd.read_csv("tests.csv")["contrast"]) == ["b - a"] * 2


def test_a_table_of_the_systems_may_come_later(result, capsys):
    Path("ages.tsv").write_text("id\tage\n" + "".join(f"p{m:02d}\t{20 + m**2}\n" for m in reversed(range(6))))
    assert done("weights", "result", "--by", "age", "--info", "ages.tsv", "--seed", 0, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    expected = weight_test(result, [20 + m**2 for m in range(6)])
    np.testing.assert_allclose([row["pvalue"] for row in told["tests"]], expected.pvalue)


def test_without_a_column_weights_are_listed(result, capsys):
    assert done("weights", "result", "--json", "-o", "weights.csv") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["columns"] == ["group", "score", "person"]
    np.testing.assert_allclose(pd.read_csv("weights.csv", index_col=0), result.weights)
    assert done("weights", "result") == 0
    assert "Columns for --by: group, score, person." in capsys.readouterr().out


def test_weights_are_drawn(result, capsys):
    assert done("plot", "weights", "result", "--by", "group", "-o", "weights.png") == 0
    Path("ages.tsv").write_text("id\tage\n" + "".join(f"p{m:02d}\t{20 + m**2}\n" for m in range(6)))
    assert done("plot", "weights", "result", "--by", "age", "--info", "ages.tsv", "-o", "ages.png") == 0
    assert Path("weights.png").stat().st_size > 1000


def test_mistakes_are_named_with_the_options(result, ratings, matrices, capsys):
    ratings.to_csv("people.csv", index=False)
    np.save("one.npy", matrices["p00"])
    Path("ages.csv").write_text("id,age\np00,1\n")
    Path("twice.csv").write_text("id,age\np00,1\np00,2\n")
    cases = [
        (["weights", "result", "--by", "colour"], 1, "--by must name a column of the info"),
        (["plot", "weights", "result", "--by", "colour", "-o", "f.png"], 1, "pass a table with this column as --info"),
        (["plot", "weights", "result", "--info", "ages.csv", "-o", "f.png"], 2, "--info only applies with --by"),
        (["weights", "result", "--within", "person"], 2, "--within only applies with --by"),
        (["weights", "result", "--by", "age", "--info", "ages.csv"], 1, "ages.csv: --info must have a row"),
        (["weights", "result", "--by", "size", "--info", "ages.csv"], 1, "ages.csv: --info must have the column"),
        (["weights", "result", "--by", "age", "--info", "twice.csv"], 1, "twice.csv: --info must have one row"),
        (["weights", "result", "--by", "person", "--fdr", "3"], 1, "--fdr must be"),
        (["discover", "people.csv", "--by", "colour", "-o", "x", *QUICK], 1, "'colour'"),
        (["discover", "one.npy", "--by", "person", "-o", "x", *QUICK], 2, "--by does not apply to FILE"),
        (["discover", "one.npy", "--labels", "name", "--by", "p", "-o", "x"], 2, "as features because of --labels"),
        (["discover", "result", "-o", "x"], 1, "FILE must hold data, got 'result', a result of `simdims discover`"),
        (["plot", "map", "result", "--by", "group", "-o", "x.png"], 2, "--by only applies to the figure weights"),
        (["discover", "people.csv", "--by", "participant", "--diagonal", "one", "-o", "x", *QUICK], 1, "--diagonal"),
    ]  # fmt: skip
    for words, status, expected in cases:
        assert done(*words) == status, words
        assert expected in capsys.readouterr().err
    discover(matrices["p00"], ranks=2, n_runs=2, n_repeats=1, random_state=0).save("single")
    assert done("weights", "single") == 1
    assert "RESULT must be of several systems" in capsys.readouterr().err
