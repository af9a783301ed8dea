"""The help, completion in real shells, the demo, pages and pictures of saved results, and the words of errors."""

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simdims import Discovery, ParameterError, Similarity, dimension_test, load_similarity, simulate
from simdims._parameters import SimdimsWarning
from simdims.cli import main, parser
from simdims.cli.contents import CHAPTERS, subcommands
from simdims.cli.outputs import as_json
from simdims.cli.spelling import in_options
from simdims.io import named_in_errors

LABELS = [f"item {i}" for i in range(30)]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of results, and properties of its items."""
    folder = tmp_path_factory.mktemp("saved")
    W = simulate.dirichlet(30, 3, alpha=0.2, random_state=0)
    Similarity(simulate.add_noise(W @ W.T, 0.9, random_state=0), labels=LABELS).save(folder / "S.npz")
    words = ["--ranks", "2:4", "--repeats", "1", "--runs", "2", "--seed", "0", "--quiet"]
    assert main(["discover", str(folder / "S.npz"), "-o", str(folder / "found"), *words]) == 0
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"name": LABELS, "first": W[:, 0], "noise": rng.random(30)})
    table.to_csv(folder / "properties.csv", index=False)
    rows = [[LABELS[i] for i in rng.choice(30, 3, replace=False)] for _ in range(40)]
    pd.DataFrame(rows, columns=["a", "b", "odd"]).to_csv(folder / "t.csv", index=False)
    pairs = pd.DataFrame(rows, columns=["one", "two", "value"]).assign(value=rng.random(40))
    pairs.to_csv(folder / "pairs.csv", index=False)
    return folder


# The table of contents


def test_without_a_command_the_help_is_shown(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert main(["--help"]) == 0
    assert shown == capsys.readouterr().out


def test_help_lists_every_command_once(capsys):
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    commands = subcommands(parser())
    assert sorted(name for names in CHAPTERS.values() for name in names) == sorted(commands)
    for name, (summary, command) in commands.items():
        assert f"\n  {name:<16}{summary[:60]}" in said
        for inner in subcommands(command):
            assert f"\n    {inner}" in said
    assert all(f"\n  {status} " in said for status in ("0  ", "1  ", "2  ", "130"))
    assert max(map(len, said.splitlines())) <= 110


def test_every_command_shows_an_example_and_every_one_with_findings_has_json(capsys):
    for path in paths(parser()):
        assert main([*path, "--help"]) == 0
        said = capsys.readouterr().out
        options, _, example = said.partition("\nexample:\n  ")
        assert all(word in options for word in example.split() if word.startswith("--"))
        assert ("--json" in said) == (path != ("completion",))


def paths(command, path=()):
    """The words that lead to each command."""
    below = subcommands(command)
    return [found for name, (_, inner) in below.items() for found in paths(inner, (*path, name))] if below else [path]


# JSON on stdout and nothing else


def test_json_of_every_command_is_one_object(saved):
    found, S = saved / "found", saved / "S.npz"
    np.save("x.npy", np.random.default_rng(0).random((5, 3)))
    commands = {
        ("similarity", "features", "x.npy", "s.npz"): "density",
        ("check", S): "plan",
        ("discover", S, "-o", "never", "--dry-run"): "candidates",
        ("calibrate", S, "--bootstraps", "3", "--eigenpairs", "6"): "sampling",
        ("select-rank", S, "--ranks", "2:3", "--sampling", "0.6", "--repeats", "1"): "rank",
        ("fit", S, "-n", "2", "-o", "W.csv"): "objective",
        ("consensus", S, "-n", "2", "--runs", "2", "-o", "C.csv"): "reliability",
        ("evaluate", "triplets", found, saved / "t.csv"): "accuracy",
        ("evaluate", "pairs", found, saved / "pairs.csv", "--item1", "one", "--item2", "two", "--rating", "value"): (
            "correlation"
        ),
        ("evaluate", "readout", found, saved / "properties.csv", "--labels", "name"): "readout",
        ("test", found, saved / "properties.csv", "--labels", "name", "--permutations", "20"): "tests",
        ("rsa", S, saved / "properties.csv", "--labels", "name", "--permutations", "20"): "tests",
        ("encode", found, saved / "properties.csv", "--labels", "name"): "scores",
        ("label", found, saved / "properties.csv", "--labels", "name", "--permutations", "20"): "suggestions",
        ("report", found, "-o", "page.html"): "report",
        ("plot", "reliability", found, "-o", "r.png"): "written",
    }
    code = (
        "import sys, json; from simdims.cli import main\n"
        "for words in json.loads(sys.argv[1]):\n    assert main(words) == 0, words"
    )
    lines = json.dumps([[*map(str, words), "--json"] for words in commands])
    done = subprocess.run([sys.executable, "-c", code, lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = done.stdout.splitlines()
    assert len(written) == len(commands)
    for line, key in zip(written, commands.values(), strict=True):
        assert key in json.loads(line, parse_constant=pytest.fail)


def test_json_has_null_for_numbers_that_are_none():
    values = {"a": np.float64("nan"), "b": np.array([1.0, np.inf]), "c": Path("x"), "d": np.int64(3), "é": None}
    assert json.loads(as_json(values)) == {"a": None, "b": [1.0, None], "c": "x", "d": 3, "é": None}


def test_tests_are_saved_as_json(saved):
    words = ["--labels", "name", "--permutations", "50", "--seed", "0", "-o", "tests.json"]
    assert main(["test", str(saved / "found"), str(saved / "properties.csv"), *words]) == 0
    properties = pd.read_csv(saved / "properties.csv", index_col="name")
    W = Discovery.load(saved / "found").embedding_frame()
    expected = dimension_test(W, properties, n_permutations=50, random_state=0)
    found = json.loads(Path("tests.json").read_text())
    assert found == {**json.loads(json.dumps(expected.to_dict())), "seed": 0}
    assert found["n_permutations"] == 50
    assert [row["hypothesis"] for row in found["tests"]] == ["first", "noise"]


# The page and pictures of saved results


def test_the_page_shows_tests_of_properties(saved, capsys):
    words = ["--tests", str(saved / "properties.csv"), "--labels", "name", "--permutations", "99", "--seed", "0"]
    assert main(["report", str(saved / "found"), "-o", "page.html", *words]) == 0
    assert "1 of 2 properties correlates significantly with its assigned dimension" in capsys.readouterr().out
    page = Path("page.html").read_text()
    assert "1 of 2 hypotheses was significant" in page
    assert '"hypothesis":"first"' in page


@pytest.mark.parametrize("picture", ["dimensions", "rank-selection", "reliability", "similarities", "panel"])
def test_pictures_are_drawn(saved, picture):
    pytest.importorskip("matplotlib")
    assert main(["plot", picture, str(saved / "found"), "-o", "p.svg"]) == 0
    assert "<svg" in Path("p.svg").read_text()


def test_the_calibration_is_drawn_by_calibrate(saved, capsys):
    pytest.importorskip("matplotlib")
    assert main(["plot", "calibration", str(saved / "found"), "-o", "p.svg"]) == 1
    assert "calibrate the similarities with `simdims calibrate`." in capsys.readouterr().err
    assert main(["calibrate", str(saved / "S.npz"), "--bootstraps", "3", "--eigenpairs", "6", "-o", "p.svg"]) == 0
    assert "<svg" in Path("p.svg").read_text()


def test_a_panel_has_the_tests_of_properties(saved, capsys):
    pytest.importorskip("matplotlib")
    words = ["--tests", str(saved / "properties.csv"), "--labels", "name", "--permutations", "99", "--seed", "0"]
    assert main(["plot", "panel", str(saved / "found"), "-o", "p.svg", "--width", "single", *words]) == 0
    drawn = Path("p.svg").read_text()
    assert "first (dim." in drawn
    assert ">d<" in drawn
    assert "Seed: 0" in capsys.readouterr().out


# The demo


def test_the_demo_of_digits_writes_a_page_with_pictures(capsys):
    pytest.importorskip("PIL")
    assert main(["demo", "--items", "60", "--jobs", "1", "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.out.endswith("Report: demo_output/digits/report.html\nSeed: 0\n")
    assert "60 of the 1,797 handwritten digits" in said.err
    assert "15 dimensions, 1 x 5 folds, 5 random starts" in said.err
    found = Discovery.load("demo_output/digits")
    assert (found.n_items, found.n_components, found.consensus.n_runs) == (60, 15, 5)
    page = Path("demo_output/digits/report.html").read_text()
    assert page.count("data:image/png") == 60
    assert main(["demo", "--items", "60", "--jobs", "1", "--quiet"]) == 0  # it replaces itself


def test_the_demo_of_words(capsys):
    pytest.importorskip("networkx")
    assert main(["demo", "--words", "--jobs", "1", "--quiet", "-o", "miserables"]) == 0
    found = Discovery.load("miserables")
    assert "Valjean" in capsys.readouterr().out
    assert found.labels is not None
    assert len(found.labels) == 77
    assert main(["demo", "--words", "--quiet", "-o", "miserables"]) == 1
    assert "pass --overwrite" in capsys.readouterr().err


# Completion


SHELLS = {
    "simdims ": {"discover", "fit", "report", "completion"},
    "simdims dis": {"discover"},
    "simdims similarity ": {"features", "triplets", "ratings", "associations", "dissimilarity"},
    "simdims similarity features --ker": {"--kernel"},
    "simdims similarity features x.csv --kernel ": {"auto", "linear", "rbf", "cosine"},
    "simdims discover data.csv --as ": {"matrix", "triplets", "ratings", "associations", "features", "dissimilarity"},
    "simdims plot ": {"dimensions", "rank-selection"},
    "simdims completion ": {"bash", "zsh", "fish"},
    "simdims discover my-d": {"my-data.csv"},
    "simdims discover my-data.csv --checkpoint my-": {"my-data.csv"},
}


@pytest.fixture
def program():
    """The program on the path, as pip installs it, and a file to complete."""
    Path("bin").mkdir()
    Path("bin/simdims").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m simdims "$@"\n')
    Path("bin/simdims").chmod(0o755)
    Path("my-data.csv").touch()
    return {**os.environ, "PATH": f"{Path('bin').resolve()}{os.pathsep}{os.environ['PATH']}"}


def script_of(shell):
    done = subprocess.run([sys.executable, "-m", "simdims", "completion", shell], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("line", SHELLS)
def test_bash_completes(line, program):
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    words = " ".join(f"'{word}'" for word in line.split(" "))
    script = (
        f"{script_of('bash')}\nCOMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_TYPE=9; COMP_WORDS=({words}); "
        "_python_argcomplete simdims; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, env=program)
    found = set(done.stdout.split())
    assert SHELLS[line] <= found
    if not line.endswith(" "):
        assert all(word.startswith(line.split(" ")[-1]) for word in found)


@pytest.mark.parametrize("line", SHELLS)
def test_fish_completes(line, program):
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    script = f"{script_of('fish')}\ncomplete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True, env=program
    )
    assert SHELLS[line] <= {row.split("\t")[0].strip() for row in done.stdout.splitlines()}


def test_there_is_a_script_for_zsh():
    assert "compdef" in script_of("zsh")


# The words of errors


@pytest.fixture
def spell():
    """A template as a command spells it."""

    def spelled_by(words: str, template: str, **given) -> str:
        top = parser()
        command = top
        for word in words.split():
            command = subcommands(command)[word][1]
        return in_options(SimdimsWarning("", template), top, argparse.Namespace(command=command, **given)).strip()

    return spelled_by


@pytest.mark.parametrize(
    ("command", "template", "expected"),
    [
        ("fit", "Pass {absent=missing} or {absent}.", "Pass --absent missing or --absent."),
        ("fit", "Raise {n_components}, {max_iter=900} or {n_jobs}.", "Raise --components, --max-iter 900 or --jobs."),
        ("fit", "{S} needs {labels}.", "IN needs --label-file."),
        ("test", "{W} needs {labels}.", "EMBEDDING needs --labels."),
        ("report", "Pass {overwrite=True} or another {path}.", "Pass --overwrite or another FILE."),
        ("report", "{folder} and {hypotheses}", "RESULT and --tests"),
        ("discover", "{folder}, {path}, {triplets}", "FOLDER, FILE, FILE"),
        ("evaluate triplets", "{W}, {triplets}", "EMBEDDING, TRIPLETS"),
        ("evaluate readout", "{folder} of {Discovery.save()}", "EMBEDDING of `simdims discover`"),
        ("similarity features", "{implicit=False} or {header=False}", "no --implicit or --no-header"),
        ("similarity associations", "{count=None}", "--no-count"),
        ("discover", "{from_features()} {kernel=rbf}, {load_similarity()}", "--as features --kernel rbf, --as matrix"),
        ("rsa", "{from_features()} {kernel=rbf}", "`simdims similarity features` --kernel rbf"),
        ("fit", "{inner_iter=3}, {copy} and {{absent}}", "inner_iter=3, copy= and {absent}"),  # no options
    ],
)
def test_arguments_and_functions_are_spelled_as_options_and_commands(spell, command, template, expected):
    assert spell(command, template) == expected


def test_a_label_is_blamed_on_the_option_that_gave_it():
    top = parser()
    command = subcommands(top)["fit"][1]
    error = ParameterError("labels", "must be distinct", "'{a}'")
    for given, expected in ((None, "labels"), ("names.txt", "--label-file")):
        options = argparse.Namespace(command=command, label_file=given)
        assert in_options(error, top, options) == f"{expected} must be distinct, got '{{a}}'."


def test_an_option_that_was_not_given_has_no_value_to_show():
    top = parser()
    options = argparse.Namespace(command=subcommands(top)["fit"][1])
    error = ParameterError("absent", "must be given for sparse input", "None", "pass {absent=zero}")
    assert in_options(error, top, options) == "--absent must be given for sparse input: pass --absent zero."
    assert str(error) == "absent must be given for sparse input, got None: pass absent='zero'."


def test_warnings_keep_what_was_found_verbatim():
    warning = SimdimsWarning("{a} is missing.", "Pass {low=1} or {from_ratings()}.")
    assert str(pickle.loads(pickle.dumps(warning))) == "{a} is missing. Pass low=1 or from_ratings."


def test_errors_in_a_file_begin_with_its_name():
    error = ParameterError("key", "must name a variable of this file", "'C'")
    with pytest.raises(ParameterError, match=r"^two\.mat: key must") as caught, named_in_errors(Path("some/two.mat")):
        raise error
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.name, again.got) == (str(error), "key", "'C'")


def test_a_reader_who_leaves_early_gets_no_traceback(saved):
    words = f"{sys.executable} -m simdims plot --help | true; {sys.executable} -m simdims test {saved / 'found'} "
    words += f"{saved / 'properties.csv'} --labels name --permutations 20 | true"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_similarities_of_the_real_entry_point(tmp_path):
    """The command that pip installs, beside this Python."""
    program = Path(sys.executable).with_name("simdims")
    if not program.exists():
        pytest.skip("simdims is not installed beside this Python")
    np.save("x.npy", np.random.default_rng(0).random((5, 3)))
    done = subprocess.run(
        [program, "similarity", "features", "x.npy", "s.npz", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["n_items"] == load_similarity("s.npz").n_items == 5
    assert subprocess.run([program, "nonsense"], capture_output=True).returncode == 2
    assert subprocess.run([program, "similarity", "features", "no.npy", "t.npz"], capture_output=True).returncode == 1
