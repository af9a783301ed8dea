"""What a file holds before any fit: `simdims check`, --dry-run, and configs that repeat a run."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simdims import Discovery, Similarity, __version__, simulate
from simdims.cli import main

N = 24
NAMES = [f"item {i}" for i in range(N)]
QUICK = ["--ranks", "2,3", "--runs", "2", "--repeats", "1"]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def truth():
    W = simulate.dirichlet(N, 3, alpha=0.3, random_state=0)
    return simulate.add_noise(W @ W.T, 0.8, random_state=0)


@pytest.fixture
def square(truth):
    pd.DataFrame(truth, index=NAMES, columns=NAMES).to_csv("S.csv")
    return "S.csv"


def ratings(truth):
    """Two people's ratings of all pairs but one, one of them missing and one repeated."""
    rows = [
        (NAMES[i], NAMES[j], 1 + round(6 * truth[i, j]), person, 100 * i + j)
        for i in range(N)
        for j in range(i)
        for person in ("p1", "p2")
        if (i, j) != (1, 0)
    ]
    table = pd.DataFrame(rows, columns=["left", "right", "rating", "person", "latency"])
    table["rating"] = table["rating"].clip(1, 7).astype(float)
    table.loc[3, "rating"] = np.nan
    return pd.concat([table, table.tail(1)])


def checked(capsys, *words):
    """What `simdims check` finds, as JSON."""
    assert main(["check", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


# check


def test_check_says_how_each_column_is_used_and_what_is_missing(truth, capsys):
    ratings(truth).to_csv("ratings.csv", index=False)
    found = checked(capsys, "ratings.csv")
    uses = {column["name"]: column["use"] for column in found["columns"]}
    assert uses == {
        "left": "item1",
        "right": "item2",
        "rating": "rating",
        "person": "participant",
        "latency": None,
    }
    assert {column["name"]: column["n_missing"] for column in found["columns"]}["rating"] == 1
    assert found["kind"] == "ratings"
    assert found["n_rows"] == N * (N - 1) - 2 + 1
    assert found["n_repeated_rows"] == 1
    assert found["n_pairs"] == N * (N - 1) // 2
    assert found["density"] == pytest.approx(1 - 1 / found["n_pairs"])
    assert main(["check", "ratings.csv"]) == 0
    said = capsys.readouterr().out
    assert "'latency'  not used" in said
    assert "rescaled from the scale 1 to 7" in said
    assert "Missing: 1 of 276 pairs." in said


def test_check_names_the_option_that_keeps_people_apart(capsys):
    table = pd.DataFrame({"head": list("abcdea"), "winner": list("bcdeab"), "loser": list("cdeabe"), "participant": 1})
    table.to_csv("comparisons.csv", index=False)
    assert main(["check", "comparisons.csv"]) == 0
    assert "'participant'  not used (--by keeps people apart)" in capsys.readouterr().out


def test_check_says_what_a_column_of_groups_could_be_used_for(truth, capsys):
    table = ratings(truth).assign(group="old", condition=np.resize(["one", "two"], len(ratings(truth))))
    table.to_csv("ratings.csv", index=False)
    could = {column["name"]: column["could"] for column in checked(capsys, "ratings.csv")["columns"]}
    assert "--by person" in could.pop("group")
    assert "--by condition" in could.pop("condition")
    assert set(could.values()) == {None}
    assert main(["check", "ratings.csv"]) == 0
    assert "not used (--by condition" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "uses"),
    [
        (["--by", "person"], {"person": "system", "rating": "rating"}),
        (["--as", "ratings", "--rating", "latency"], {"latency": "rating", "rating": None}),
    ],
)
def test_check_reads_with_the_options_of_discover(truth, capsys, words, uses):
    ratings(truth).to_csv("ratings.csv", index=False)
    found = checked(capsys, "ratings.csv", *words)
    assert uses.items() <= {column["name"]: column["use"] for column in found["columns"]}.items()


def test_check_names_the_columns_that_say_something_about_systems(truth, capsys):
    table = ratings(truth)
    table["group"] = table["person"].map(lambda person: f"group of {person}")
    table.to_csv("ratings.csv", index=False)
    uses = {column["name"]: column["use"] for column in checked(capsys, "ratings.csv", "--by", "person")["columns"]}
    assert uses["group"] == "covariate of the systems"
    assert uses["latency"] is None


def test_check_finds_people_with_the_same_answers(truth, capsys):
    table = ratings(truth)
    first = table[table["person"] == table["person"].iloc[0]].assign(person="copy")
    pd.concat([table, first]).to_csv("ratings.csv", index=False)
    (copies,) = checked(capsys, "ratings.csv", "--by", "person")["identical_systems"]
    assert "copy" in copies
    assert len(copies) == 2


def test_check_names_the_odd_one_out_and_labels_and_features(capsys):
    rng = np.random.default_rng(0)
    answers = pd.DataFrame([rng.choice(NAMES, 3, replace=False) for _ in range(400)], columns=["odd", "b", "c"])
    answers.to_csv("t.csv", index=False)
    assert [column["use"] for column in checked(capsys, "t.csv")["columns"]] == ["odd one out", "item", "item"]
    assert [column["use"] for column in checked(capsys, "t.csv", "--odd", "1")["columns"]][1] == "odd one out"
    features = pd.DataFrame(rng.random((N, 3)), index=NAMES, columns=list("xyz"))
    features.rename_axis("name").to_csv("f.csv")
    assert [column["use"] for column in checked(capsys, "f.csv")["columns"]] == ["labels", *["feature"] * 3]


def test_check_finds_items_that_cannot_be_told_apart(truth, capsys):
    S = truth.copy()
    S[:, 1], S[1, :] = S[:, 0], S[0, :]
    S[1, 1] = S[0, 1] = S[1, 0] = S[0, 0]
    Similarity(S, labels=NAMES).save("S.npz")
    assert checked(capsys, "S.npz")["identical_items"] == NAMES[:2]
    Similarity(truth, labels=NAMES).save("other.npz")
    assert checked(capsys, "other.npz")["identical_items"] == []


def test_check_says_what_becomes_of_sides_that_differ(truth, capsys):
    S = truth.copy()
    S[0, 1] += 0.2
    pd.DataFrame(S, index=NAMES, columns=NAMES).to_csv("S.csv")
    assert main(["check", "S.csv"]) == main(["discover", "S.csv", "-o", "out"]) == 1
    refused = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert refused[0] == refused[1]
    assert checked(capsys, "S.csv", "--symmetrize", "mean")["symmetry"] == "mean"


@pytest.mark.parametrize("settings", [QUICK, ["--ranks", "3", "--runs", "2"], ["--ranks", "2:3", "--alpha", "0"]])
def test_the_plan_is_what_discover_does(square, capsys, settings):
    settings = [*settings, "--sampling", "0.6"]
    plan = checked(capsys, square, *settings)["plan"]
    assert main(["discover", square, "-o", "out", *settings, "--seed", "0", "--quiet", "--no-report"]) == 0
    found = Discovery.load("out")
    held = found.settings["held_out"]
    assert (plan["n_folds"], plan["n_repeats"]) == (held["n_folds"], held["n_repeats"])
    assert plan["n_runs"] == found.consensus.n_runs
    assert plan["candidates"] == (list(found.selection.tried) if found.selection else [found.n_components])
    assert plan["n_fits"] == len(plan["candidates"]) * held["n_folds"] * held["n_repeats"] + plan["n_runs"]


def test_the_plan_of_several_systems(truth, capsys):
    ratings(truth).to_csv("ratings.csv", index=False)
    found = checked(capsys, "ratings.csv", "--by", "person", "--ranks", "2")
    assert found["n_systems"] == 2
    assert found["plan"]["candidates"] == [2]
    assert found["plan"]["estimated_seconds"] > 0


def test_averaged_matrices_are_mentioned(truth, capsys):
    D = np.abs(truth[:, :1] - truth[:, 0])
    np.save("rdms.npy", np.stack([D, D, D]))
    for by, said in (((), True), (("--by", "person"), False)):
        assert main(["check", "rdms.npy", "--as", "dissimilarity", "--ranks", "2", *by]) == 0
        assert ("Averaged 3 matrices. Pass --by person" in capsys.readouterr().err) is said


def test_by_keeps_matrices_apart_that_are_clearly_dissimilarities(truth, capsys):
    np.save("rdms.npy", np.stack([np.abs(column[:, None] - column) for column in truth.T]))
    found = checked(capsys, "rdms.npy", "--by", "person", "--ranks", "2")
    assert (found["kind"], found["n_systems"]) == ("dissimilarity", truth.shape[1])
    np.save("stack.npy", np.stack([truth @ truth.T] * 2))
    assert main(["check", "stack.npy", "--by", "person"]) == 2
    assert "--by does not apply to FILE" in capsys.readouterr().err


# --dry-run


@pytest.mark.parametrize(
    ("words", "function"),
    [
        (["discover", "S.csv", "-o", "out", *QUICK], "simdims.discovery.discover"),
        (["select-rank", "S.csv", "-o", "r.json", "--ranks", "2:3"], "simdims.selection.select_rank"),
        (["consensus", "S.csv", "-n", "3", "-o", "c.csv"], "simdims.consensus.fit_consensus"),
    ],
)
def test_a_dry_run_fits_and_writes_nothing(square, capsys, monkeypatch, words, function):
    def refuse(*arguments, **options):
        raise AssertionError("a fit was started")

    monkeypatch.setattr(function, refuse)
    before = sorted(Path().rglob("*"))
    assert main([*words, "--dry-run"]) == 0
    assert "Estimated time" in capsys.readouterr().out
    assert sorted(Path().rglob("*")) == before


def test_a_dry_run_refuses_what_the_run_would_refuse(square, capsys):
    pairs = pd.DataFrame([(NAMES[i], NAMES[i + 1], 0.5 + i / 100) for i in range(5)], columns=["a", "b", "similarity"])
    pairs.to_csv("pairs.csv", index=False)
    for words in (["pairs.csv", "--ranks", "1:2"], [square, "--ranks", "40"], [square, "--runs", "1"]):
        errors = []
        for dry in ([], ["--dry-run"]):
            assert main(["discover", *words, "-o", "out", *dry]) == 1
            errors.append([line for line in capsys.readouterr().err.splitlines() if "error" in line])
        assert errors[0] == errors[1] != []


# --config


def test_the_config_in_a_result_repeats_the_run_exactly(square, monkeypatch, capsys):
    config = ['title = "a \\"quoted\\" title é"', "ranks = [2, 3]", "runs = 2", "repeats = 1", f'file = "{square}"']
    Path("mine.toml").write_text("\n".join(config), encoding="utf-8")
    assert main(["discover", "--config", "mine.toml", "-o", "first", "--no-report", "--quiet"]) == 2
    assert main(["discover", "--config", "mine.toml", "-o", "first", "--quiet"]) == 0
    written = tomllib.loads(Path("first/run.toml").read_text(encoding="utf-8"))
    assert written["version"] == __version__
    assert written["file"] == str(Path(square).absolute())
    assert written["seed"] == Discovery.load("first").seed
    assert written["ranks"] == [2, 3]
    assert written["title"] == 'a "quoted" title é'
    Path("elsewhere").mkdir()
    first = Path("first").absolute()
    monkeypatch.chdir("elsewhere")
    assert main(["discover", "--config", str(first / "run.toml"), "-o", "second", "--quiet"]) == 0
    for name in ("embedding.csv", "dimensions.csv", "run.toml"):
        assert Path("second", name).read_bytes() == (first / name).read_bytes()
    again = Discovery.load("second").consensus.embeddings
    np.testing.assert_array_equal(again, Discovery.load(first).consensus.embeddings)


def test_every_option_about_data_survives_the_config(truth, capsys):
    ratings(truth).to_csv("ratings.csv", index=False)
    words = [
        "--as",
        "ratings",
        "--item1",
        "left",
        "--item2",
        "right",
        "--rating",
        "rating",
        "--low",
        "1",
        "--high",
        "9",
    ]
    words += ["--by", "person", "--alpha", "0.05", "--seed", "3", "--ranks", "2", "--runs", "2", "--repeats", "1"]
    assert main(["discover", "ratings.csv", "-o", "first", *words, "--quiet", "--no-report"]) == 0
    assert main(["discover", "--config", "first/run.toml", "-o", "second", "--quiet"]) == 0
    assert Path("second/embedding.csv").read_bytes() == Path("first/embedding.csv").read_bytes()
    assert Path("second/run.toml").read_bytes() == Path("first/run.toml").read_bytes()
    assert not Path("second/report.html").exists()


def test_the_command_line_overrides_the_config(square, truth, capsys):
    Similarity(truth[:20, :20]).save("other.npz")
    Path("c.toml").write_text(f'file = "{square}"\nranks = 3\nruns = 2\nseed = 1\nquiet = true\nno-report = true\n')
    assert main(["discover", "other.npz", "--config", "c.toml", "--ranks", "2", "-o", "out"]) == 0
    found = Discovery.load("out")
    assert (found.n_items, found.n_components, found.seed) == (20, 2, 1)
    assert not Path("out/report.html").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rank = 3", "'rank' is not an option of simdims discover; did you mean 'ranks'"),
        ("runs = 2.5", "'runs' must be an integer, got '2.5'"),
        ("ranks = true", "'ranks' must be text or a number, got true"),
        ('ranks = "x"', "'ranks' must be auto, or numbers and ranges"),
        ('as = "pairs"', "'as' must be one of matrix, .*, got \"pairs\""),
        ('columns = ["a"]', "'columns' must be a list of 3 values"),
        ("low = [1]", "'low' must be one value"),
        ("no-report = 1", "'no-report' must be true or false"),
        ('alpha = "many"', "'alpha' must be a number or 'auto', got 'many'"),
        ("runs = 1", "'runs' must be"),
        ('config = "other.toml"', "'config' is not an option"),
        ("not toml", "not a TOML file"),
    ],
)
def test_an_error_in_a_config_names_the_key_and_the_file(square, capsys, line, said):
    Path("bad.toml").write_text(line + "\n")
    assert main(["discover", square, "--config", "bad.toml", "-o", "out"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "bad.toml" in error
    assert re.search(said, error), error
    assert not Path("out").exists()


def test_a_config_of_another_version_is_said(square, capsys):
    Path("old.toml").write_text('version = "0.0.1"\n')
    assert main(["discover", square, "--config", "old.toml", "-o", "out", "--dry-run", *QUICK]) == 0
    assert "old.toml was written by simdims 0.0.1" in capsys.readouterr().err
    Path("old.toml").write_text(f'version = "{__version__}"\n')
    assert main(["discover", square, "--config", "old.toml", "-o", "out", "--dry-run", *QUICK]) == 0
    assert "was written by" not in capsys.readouterr().err
