"""Text on a terminal: nothing invisible reaches it, and JSON stays JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simdims import Similarity, simulate
from simdims._progress import Progress
from simdims.cli import main
from simdims.cli.terminal import LoggedProgress, visible

#: Labels that turn the writing, colour the terminal, ring, break the line, or are nothing.
ODD = ["\u202egnirts", "\x1b[31mred", "a\u2069b", "\x07bell", "two\nlines", "\x9bc1", "", "  "]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    W = simulate.dirichlet(len(ODD), 2, alpha=0.5, random_state=0)
    Similarity(W @ W.T, labels=ODD).save("S.npz")


def test_a_log_file_has_a_line_about_a_run_each_minute_and_then_fewer(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    progress = LoggedProgress()
    for step in range(24 * 60 * 6):
        clock[0] = 10.0 * step
        progress(Progress("runs", step, 10_000, "", clock[0], 125.0))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        f"simdims: runs: {done} of 10,000 done, about 2 minutes left of this stage" for done in (6, 12)
    ]
    assert 20 < len(lines) < 100


def test_a_line_in_a_log_file_names_the_last_task(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    progress = LoggedProgress()
    clock[0] = 100.0
    progress(Progress("select rank", 148, 160, "rank 61", 100.0, None))
    assert capsys.readouterr().err == "simdims: select rank: 148 of 160 done (last: rank 61)\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, é, 漢字, \u0634\u0627\u0629, 👩\u200d🌾", "plain, é, 漢字, \u0634\u0627\u0629, 👩\u200d🌾"),
        ("a\u202eb", "a\\u202eb"),
        ("\x1b[2J\x9b2J", "\\u001b[2J\\u009b2J"),
        ("two\nlines\tand a tab", "two\nlines\\tand a tab"),
        ("no\u00a0break", "no\u00a0break"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\udb40\\udc41"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text, expected):
    assert visible(text) == expected


def test_json_stays_the_same_json():
    values = {"label": "\u202e\x9b\x1b\U000e0041é", "path": "\udcff"}
    assert json.loads(visible(json.dumps(values, ensure_ascii=False))) == values
    assert json.loads(visible(json.dumps(values, ensure_ascii=False), "ascii")) == values


def test_a_terminal_of_few_letters_gets_all_words():
    assert visible("Misérables 漢", "ascii") == "Mis\\u00e9rables \\u6f22"
    assert visible("Misérables 漢", "latin-1") == "Misérables \\u6f22"


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_labels_cannot_steer_the_terminal(words, capsys):
    assert (
        main(["discover", "S.npz", "-o", "out", "--ranks", "2", "--runs", "2", "--seed", "0", "--quiet", *words]) == 0
    )
    said = capsys.readouterr()
    text = (said.out + said.err).replace("\n", "")
    assert not [letter for letter in text if not letter.isprintable()]
    if words:
        assert json.loads(said.out)["n_items"] == len(ODD)


def test_items_without_a_name_are_called_by_their_number(capsys):
    W = np.array([[1.0, 0], [0.9, 0], [0, 1], [0, 0.9]])
    Similarity(W @ W.T, labels=["", " ", "a", "b"]).save("T.npz")
    assert main(["discover", "T.npz", "-o", "out", "--ranks", "2", "--runs", "2", "--seed", "0", "--quiet"]) == 0
    assert "(item 0, no name), (item 1, no name)" in capsys.readouterr().out


def test_a_stdout_of_few_letters_does_not_lose_the_result():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    np.save("x.npy", np.ones((3, 2)))
    for words in (["名.npz"], ["é.npz", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "simdims", "similarity", "features", "x.npy", *words],
            capture_output=True,
            text=True,
            env=environment,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert Path(words[0]).exists()
    assert json.loads(done.stdout)["written"] == "é.npz"
