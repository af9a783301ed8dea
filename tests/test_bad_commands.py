"""Bad words on the command line: one line on stderr, a status that says so, nothing on stdout, and no file."""

import argparse

import numpy as np
import pandas as pd
import pytest

from simdims import discover, simulate
from simdims.cli import main, parser

TABLE = [
    # command, status, a part of the sentence
    ("discover nowhere.csv -o out", 1, "nowhere.csv"),
    ("discover empty.csv -o out", 1, "empty"),
    ("discover S.csv", 2, "-o"),
    ("discover S.csv -o thesis", 1, "thesis"),
    ("discover S.csv -o empty.csv", 1, "empty.csv"),
    ("discover S.csv -o out --ranks 0", 1, "got 0"),
    ("discover S.csv -o out --ranks 2 --runs 1", 1, "--runs must be at least 2"),
    ("discover S.csv -o out --device tpu", 1, "device must be"),
    ("discover S.csv -o out --checkpoint thesis", 1, "chapter.txt"),
    ("discover negative.csv -o out", 1, "negative"),
    ("discover asymmetric.csv -o out", 1, "must be symmetric"),
    ("discover text.csv -o out --as matrix", 1, "'much'"),
    ("demo poems -o out", 2, "poems"),
    ("report nowhere", 1, "nowhere"),
    ("report thesis", 1, "discovery.json"),
    ("plot dimensions nowhere -o a.png", 1, "nowhere"),
    ("plot clocks found -o a.png", 2, "clocks"),
    ("similarity features nowhere.csv out.npz", 1, "nowhere.csv"),
    ("similarity features text.csv out.npz", 1, "the texts 'cat' in row 2"),
    ("similarity features features.csv out.docx", 1, ".npz or .csv"),
    ("similarity features features.csv out.npz --kernel gauss", 2, "gauss"),
    ("similarity triplets repeated.csv out.npz", 1, "three different items"),
    ("similarity triplets empty.csv out.npz", 1, "empty"),
    ("similarity ratings ratings.csv out.npz --item1 x --item2 b --rating r", 1, "'x'"),
    ("similarity associations ratings.csv out.npz", 1, "cue"),
    ("similarity dissimilarity S.csv out.npz", 1, "zero diagonal"),
    ("calibrate S.csv --tolerance 2", 1, "--tolerance must lie strictly between 0 and 1, got 2"),
    ("calibrate asymmetric.csv", 1, "must be symmetric"),
    ("select-rank S.csv --ranks 2:99", 1, "got 12"),
    ("select-rank S.csv --sampling 7", 1, "--sampling must lie strictly between 0 and 1, got 7"),
    ("fit S.csv", 2, "--components"),
    ("fit S.csv --components 99 -o out.csv", 1, "99"),
    ("fit S.csv --components 2 -o no/out.csv", 1, "out.csv"),
    ("consensus S.csv --components 2 --runs 1 -o out.csv", 1, "--runs must be at least 2"),
    ("evaluate triplets nowhere.csv repeated.csv", 1, "nowhere.csv"),
    ("evaluate triplets features.csv repeated.csv", 1, "three different items"),
    ("evaluate pairs features.csv nowhere.csv --item1 a --item2 b --rating r", 1, "nowhere.csv"),
    ("evaluate readout features.csv nowhere.csv", 1, "nowhere.csv"),
    ("test features.csv nowhere.csv", 1, "nowhere.csv"),
    ("test features.csv features.csv --alpha 2", 1, "alpha must be between 0 and 1"),
    ("rsa S.csv nowhere.csv", 1, "nowhere.csv"),
    ("rsa S.csv features.csv --permutations 0", 1, "--permutations must be"),
    ("completion tcsh", 2, "tcsh"),
    ("frobnicate", 2, "frobnicate"),
    ("", 2, "COMMAND"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of good and bad files."""
    folder = tmp_path_factory.mktemp("files")
    W = simulate.dirichlet(12, 2, random_state=0)
    S = W @ W.T

    def square(name, values):
        names = [f"item{i}" for i in range(12)]
        pd.DataFrame(values, index=names, columns=names).to_csv(folder / f"{name}.csv", index_label="item")

    square("S", S)
    square("negative", np.where(np.eye(12), S, S - 0.5))
    square("asymmetric", np.triu(S) + 0.5 * np.tril(S, -1))
    (folder / "empty.csv").touch()
    (folder / "text.csv").write_text("item,cat,dog\ncat,1,much\ndog,0.5,1\n")
    (folder / "repeated.csv").write_text("0,1,1\n2,3,4\n")
    (folder / "ratings.csv").write_text("a,b,r\ncat,dog,1\ndog,car,2\n")
    pd.DataFrame(W, columns=["x", "y"]).to_csv(folder / "features.csv", index=False)
    (folder / "thesis").mkdir()
    (folder / "thesis" / "chapter.txt").write_text("words")
    discover(S, ranks=2, n_runs=2, random_state=0, progress=False).save(folder / "found")
    return folder


def contents(folder):
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(("command", "status", "fragment"), TABLE, ids=[row[0] or "nothing" for row in TABLE])
def test_bad_words_get_one_line(files, monkeypatch, capsys, command, status, fragment):
    monkeypatch.chdir(files)
    before = contents(files)
    assert main(command.split()) == status
    said = capsys.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if "warning:" not in line]
    assert lines[-1].startswith("simdims: error: ")
    assert fragment in lines[-1]
    assert "Traceback" not in said.err
    assert contents(files) == before


def test_every_command_is_in_the_table():
    commands = set()

    def walk(parser, words):
        inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if not inner:
            commands.add(" ".join(words))
        for action in inner:
            for word, other in action.choices.items():
                walk(other, [*words, word])

    walk(parser(), [])
    covered = {command for command in commands for row in TABLE if f"{row[0]} ".startswith(f"{command} ")}
    assert commands == covered
