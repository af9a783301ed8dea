"""The command line: the same results as the functions, one line for what is wrong, and never a traceback for input."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

import simdims
from simdims import Similarity, calibrate, load_similarity, simulate
from simdims.associations import from_associations
from simdims.cli import main
from simdims.cli.options import described
from simdims.cli.selection import ranks
from simdims.construct import from_dissimilarity, from_ratings
from simdims.features import from_features
from simdims.triplets import from_triplets

SOURCES = ["features", "triplets", "ratings", "associations", "dissimilarity"]
RATINGS = "left,right,answer,person\ncat,dog,6,a\ndog,cat,7,b\ncat,NA,2,a\ndog,NA,1,b\n"
RATING_COLUMNS = ["--item1", "left", "--item2", "right", "--rating", "answer"]
FEATURES = "name,size,speed\ncat,0.5,2\ndog,1.5,1\nNA,9,3\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys):
    """Run a command and return its exit status, what it wrote to stdout and the lines that it wrote to stderr."""

    def command(*words: str) -> tuple[int, str, list[str]]:
        capsys.readouterr()
        status = main(list(words))
        out, err = capsys.readouterr()
        return status, out, err.splitlines()

    return command


@pytest.fixture
def make(run):
    """Run a command that must work, without a warning, and return the Similarity that it wrote."""

    def command(*words: str) -> Similarity:
        status, out, err = run("similarity", *words, "--overwrite")
        assert (status, err) == (0, [])
        written = load_similarity(words[2])
        assert out == f"Wrote {words[2]}: {described(written)}\n"
        return written

    return command


def write(name: str, text: str | bytes) -> str:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def assert_same(one: Similarity, other: Similarity) -> None:
    assert repr(one) == repr(other)
    assert one.labels == other.labels
    for name in ("values", "weights"):
        matrices = [getattr(S, name) for S in (one, other)]
        if matrices[1] is None:
            assert matrices[0] is None
            continue
        dense = [m if isinstance(m, np.ndarray) else m.toarray() for m in matrices]
        np.testing.assert_array_equal(*dense)


# Each subcommand does what its function does


def test_features_of_an_array(make):
    X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    np.save("x.npy", X)
    assert_same(make("features", "x.npy", "s.npz"), from_features(X))
    S = make("features", "x.npy", "s.npz", "--kernel", "rbf", "--bandwidth", "0.7")
    assert_same(S, from_features(X, kernel="rbf", bandwidth=0.7))
    assert S.values.dtype == np.float32


def test_features_keep_factors_where_asked(make):
    X = np.random.default_rng(0).uniform(size=(6, 3))
    np.save("x.npy", X)
    np.testing.assert_array_equal(make("features", "x.npy", "s.npz", "--implicit").factors, X)
    S = make("features", "x.npy", "s.npz", "--implicit", "--kernel", "rbf")
    np.testing.assert_allclose(S.factors @ S.factors.T, from_features(X, kernel="rbf").values)


def test_features_warn_of_too_few_landmarks(run):
    np.save("x.npy", np.random.default_rng(0).uniform(size=(6, 3)))
    status, _, err = run(
        "similarity", "features", "x.npy", "s.npz", "--implicit", "--kernel", "rbf", "--landmarks", "3"
    )
    assert status == 0
    assert err[0].startswith("simdims: warning: The RBF kernel is approximated from 3 landmarks")
    assert load_similarity("s.npz").factors.shape == (6, 3)


def test_features_of_a_table_with_a_column_of_labels(make):
    frame = pd.DataFrame({"size": [0.5, 1.5, 9.0], "speed": [2.0, 1.0, 3.0]}, index=["cat", "dog", "NA"])
    S = make("features", write("x.csv", FEATURES), "s.csv", "--labels", "name")
    assert_same(S, from_features(frame))
    assert S.labels == ("cat", "dog", "NA")


def test_features_of_a_parquet_file(make):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"name": ["cat", "dog"], "size": [0.5, 1.5], "speed": [2.0, 1.0]})
    frame.to_parquet("x.parquet")
    assert_same(make("features", "x.parquet", "s.npz", "--labels", "name"), from_features(frame.set_index("name")))


def test_features_of_one_of_several_arrays_with_the_names_beside_it(make, run):
    X = np.random.default_rng(0).uniform(size=(3, 4))
    np.savez("x.npz", activations=X, names=np.array(["cat", "dog", "car"]))
    expected = from_features(X, labels=["cat", "dog", "car"])
    assert_same(make("features", "x.npz", "s.npz", "--key", "activations"), expected)
    status, _, err = run("similarity", "features", "x.npz", "t.npz")
    assert status == 1
    assert (
        "--key must say which variable of this file holds the features, got none: it holds activations, names" in err[0]
    )
    np.savez("one.npz", X)
    assert_same(make("features", "one.npz", "s.npz"), from_features(X))
    savemat("x.mat", {"layer": X})
    assert_same(make("features", "x.mat", "s.npz", "--key", "layer"), from_features(X))


def test_features_with_names_in_a_file_of_their_own(make):
    X = np.random.default_rng(0).uniform(size=(3, 4))
    np.save("x.npy", X)
    names = write("names.txt", "cat\ncafé\nNA\n".encode("latin-1"))
    S = make("features", "x.npy", "s.npz", "--label-file", names)
    assert_same(S, from_features(X, labels=["cat", "café", "NA"]))


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1,2\n3,4\n", None),  # numbers only
        ("a,b\n1,2\n3,4\n", None),
        (",0,1\n0,1,2\n1,3,4\n", None),  # as pandas writes it
        (",a,b\ncat,1,2\ndog,3,4\n", ("cat", "dog")),
        ("a b\ncat 1 2\ndog 3 4\n", ("cat", "dog")),  # as R writes it
        ("a;b\n1,0;2\n3;4,0\n", None),  # as spreadsheets do where commas are decimal
    ],
)
def test_the_forms_in_which_people_keep_features(make, text, labels):
    assert_same(make("features", write("x.csv", text), "s.npz"), from_features([[1.0, 2.0], [3.0, 4.0]], labels=labels))


def test_a_first_row_that_could_be_a_header_or_data_has_to_be_told(run, make):
    table = write("x.csv", "0,1\n3,4\n1,1\n")
    status, _, err = run("similarity", "features", table, "s.npz")
    assert status == 1
    assert "Cannot tell whether the first row is a header or data: it holds the numbers 0 to 1" in err[0]
    assert make("features", table, "s.npz", "--header").n_items == 2
    assert make("features", table, "s.npz", "--no-header").n_items == 3


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("missing", ["", "N/A", "#N/A", "#NV", "null", "NA", "n/a", "NaN", "None", "-", ".", "NONE"])
def test_properties_and_ratings_of_items_share_the_words_for_missing_values(run, separator, encoding, missing):
    rng = np.random.default_rng(0)
    names = [f"item {i}" for i in range(20)]
    pd.DataFrame(rng.random((20, 3)), index=names).rename_axis("item").to_csv("w.csv")
    decimal = "." if separator == "," else ","
    rating = [f"{value:.2f}".replace(".", decimal) for value in rng.random(20)]
    rating[4] = missing
    pd.DataFrame({"word": names, "size": rating}).to_csv("r.csv", index=False, sep=separator, encoding=encoding)
    status, out, _ = run("evaluate", "readout", "w.csv", "r.csv", "--labels", "word", "--seed", "0", "--json")
    assert status == 0
    assert json.loads(out)["readout"][0]["n_items"] == 19
    status, _, err = run("test", "w.csv", "r.csv", "--labels", "word", "--permutations", "9")
    assert status == 1
    assert "must be finite, got nan in row 'item 4', column 'size'" in err[0]


def test_numbers_beside_semicolons_that_could_be_thousands_are_refused(run):
    write("x.csv", "name;size;speed\ncat;1.234;0,5\ndog;12;0,25\n")
    status, _, err = run("similarity", "features", "x.csv", "s.npz", "--labels", "name")
    assert status == 1
    assert "'1.234'" in err[0]
    assert "thousands separators" in err[0]


def test_a_row_of_names_and_numbers_is_no_header(make):
    S = make("features", write("x.csv", "cat,1,2\ndog,3,4\ncow,5,6\n"), "s.npz", "--labels", "0")
    assert S.labels == ("cat", "dog", "cow")


TRIPLETS = [[0, 1, 2], [3, 1, 0], [2, 3, 1], [0, 3, 2]]


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n0,1,2\n3,1,0\n2,3,1\n0,3,2\n",
        "trial\ta\tb\tc\n1\t0\t1\t2\n2\t3\t1\t0\n3\t2\t3\t1\n4\t0\t3\t2\n",
    ],
)
def test_triplets_of_a_table(make, text):
    columns = ["--columns", "a", "b", "c"] if "trial" in text else []
    table = write("t.tsv", text)
    assert_same(make("triplets", table, "s.npz", *columns), from_triplets(TRIPLETS))
    assert_same(make("triplets", table, "s.npz", "--odd", "b", *columns), from_triplets(TRIPLETS, odd=1))
    assert_same(make("triplets", table, "s.npz", "--odd", "0", *columns), from_triplets(TRIPLETS, odd=0))


def test_triplets_without_a_header(make):
    table = write("t.txt", "3 1 0\n2 3 1\n0 3 2\n")
    assert_same(make("triplets", table, "s.npz"), from_triplets(TRIPLETS[1:]))


def test_triplets_of_an_array_with_every_option(make):
    np.save("t.npy", np.array(TRIPLETS, dtype=np.int16))
    names = write("names.txt", "cat\ndog\ncar\nbus\n")
    S = make("triplets", "t.npy", "s.npz", "--weights", "counts", "--smoothing", "0.5", "--label-file", names)
    expected = from_triplets(TRIPLETS, weights="counts", smoothing=0.5, labels=["cat", "dog", "car", "bus"])
    assert_same(S, expected)


def test_triplets_may_name_an_item_by_any_word(make):
    S = make("triplets", write("t.csv", "a,b,c\nNA,null,cat\ncat,dog,NA\nnull,dog,cat\n"), "s.npz")
    assert S.labels == ("NA", "cat", "dog", "null")


def test_ratings_of_a_table(make):
    table = write("r.csv", RATINGS)
    frame = pd.DataFrame(
        {"left": ["cat", "dog", "cat", "dog"], "right": ["dog", "cat", "NA", "NA"], "answer": [6, 7, 2, 1]}
    ).assign(person=["a", "b", "a", "b"])
    columns = {"item1": "left", "item2": "right", "rating": "answer"}
    S = make("ratings", table, "s.csv", *RATING_COLUMNS, "--low", "1", "--high", "7")
    assert_same(S, from_ratings(frame, **columns, low=1, high=7))
    words = ["--participant", "person", "--low", "0", "--high", "10", "--weights", "counts"]
    S = make("ratings", table, "s.npz", *RATING_COLUMNS, *words)
    assert_same(S, from_ratings(frame, **columns, participant="person", low=0, high=10, weights="counts"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_tables_in_other_encodings(make, encoding):
    table = write("r.csv", "left,right,answer\ncafé,thé,3\nthé,bière,1\n".encode(encoding))
    S = make("ratings", table, "s.npz", *RATING_COLUMNS, "--low", "1", "--high", "5")
    assert S.labels == ("bière", "café", "thé")


ASSOCIATIONS = "cue,target,P\ncat,dog,3\ndog,cat,2\ndog,null,1\nnull,dog,2\ncat,fur,9\n"


@pytest.mark.parametrize("absent", ["missing", "zero", 0.1, None])
def test_associations_of_a_table(make, absent):
    frame = pd.DataFrame(
        {
            "cue": ["cat", "dog", "dog", "null", "cat"],
            "target": ["dog", "cat", "null", "dog", "fur"],
            "P": [3, 2, 1, 2, 9],
        }
    )
    table = write("a.csv", ASSOCIATIONS)
    words = [] if absent is None else ["--absent", str(absent)]
    S = make("associations", table, "s.npz", "--response", "target", "--count", "P", *words)
    expected = from_associations(frame, response="target", count="P", **({} if absent is None else {"absent": absent}))
    assert_same(S, expected)
    S = make("associations", table, "s.npz", "--response", "target", "--no-count")
    assert_same(S, from_associations(frame, response="target", count=None))


def random_rdm(n_items: int, seed: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).uniform(0.1, 1.5, (n_items, n_items)), 1)
    return upper + upper.T


def test_dissimilarity_of_a_matrix_a_vector_and_a_stack(make):
    stack = np.stack([random_rdm(4, seed) for seed in range(3)])
    for D in (stack[0], stack[0][np.triu_indices(4, 1)], stack):
        np.save("d.npy", D)
        assert_same(make("dissimilarity", "d.npy", "s.npz"), from_dissimilarity(D))
    S = make("dissimilarity", "d.npy", "s.npz", "--method", "gaussian", "--sigma", "0.5", "--weights", "counts")
    assert_same(S, from_dissimilarity(stack, method="gaussian", sigma=0.5, weights="counts"))


def test_dissimilarity_of_a_mat_file(make):
    rdm = random_rdm(4, 0)
    savemat("d.mat", {"rdm": rdm, "n": 4})
    names = write("names.txt", "cat\ndog\ncar\nbus\n")
    S = make("dissimilarity", "d.mat", "s.npz", "--label-file", names)
    assert_same(S, from_dissimilarity(rdm, labels=["cat", "dog", "car", "bus"]))
    savemat("d.mat", {"rdm": rdm, "other": random_rdm(4, 1)})
    assert_same(make("dissimilarity", "d.mat", "s.npz", "--key", "rdm"), from_dissimilarity(rdm))


def test_dissimilarity_of_a_labelled_table(make, run):
    rdm = pd.DataFrame(random_rdm(3, 0), index=["cat", "dog", "car"], columns=["cat", "dog", "car"])
    rdm.to_csv("d.csv")
    assert_same(make("dissimilarity", "d.csv", "s.npz"), from_dissimilarity(rdm))
    names = write("names.txt", "cat\ncar\ndog\n")
    status, _, err = run("similarity", "dissimilarity", "d.csv", "t.npz", "--label-file", names)
    assert status == 1
    assert "must name the same items" in err[0]


def test_dissimilarity_beyond_one_is_an_error_by_default_and_a_warning_where_it_is_clipped(run):
    np.save("d.npy", random_rdm(4, 0))
    words = ["similarity", "dissimilarity", "d.npy", "s.npz", "--method", "correlation"]
    status, out, err = run(*words)
    assert (status, out, len(err)) == (1, "", 1)
    status, out, err = run(*words, "--negative", "clip", "--overwrite")
    assert (status, len(err)) == (0, 1)
    assert err[0].startswith("simdims: warning: ")
    assert out.startswith("Wrote s.npz: 4 items, 100.0% of the pairs observed")


# What it says


def test_the_version(run):
    assert run("--version") == (0, f"simdims {simdims.__version__}\n", [])


@pytest.mark.parametrize("source", SOURCES)
def test_help_shows_an_example_that_is_a_command(run, source):
    status, out, err = run("similarity", source, "--help")
    assert (status, err) == (0, [])
    assert "\nexample:\n  simdims similarity " + source in out
    words = out.partition("example:\n")[2].split()[1:]
    options = [word for word in words if word.startswith("--")]
    assert all(option in out.partition("example:")[0] for option in options)
    # Everything is right about the example but that its file is not there.
    status, _, err = run(*words)
    assert status == 1
    assert err == [f"simdims: error: No such file: {words[2]!r}."]


def test_warnings_are_one_line_each(run):
    table = write("r.csv", RATINGS + "cat,car,NA,a\n")
    status, out, err = run("similarity", "ratings", table, "s.npz", *RATING_COLUMNS)
    assert status == 0
    assert len(err) >= 2
    assert all(line.startswith("simdims: warning: ") for line in err)
    assert any("The scale of the ratings was not given" in line for line in err)
    assert out.count("\n") == 1


def test_verbose_says_what_was_found(run):
    table = write("a.csv", ASSOCIATIONS)
    words = ["similarity", "associations", table, "s.npz", "--response", "target", "--count", "P"]
    _, quiet_out, quiet = run(*words)
    status, out, err = run(*words, "--verbose", "--overwrite")
    assert status == 0
    assert quiet == []
    assert out == quiet_out
    assert err
    assert all(line.startswith("simdims: from_associations") for line in err)
    assert run(*words, "--overwrite")[2] == []


# What is wrong


def test_no_command_is_one_line(run):
    for words in ([], ["similarity"], ["similarity", "features"], ["nonsense"]):
        status, out, err = run(*words)
        assert (status, out, len(err)) == (2, "", 1)
        assert err[0].startswith("simdims: error: ")
        assert "--help)" in err[0]


BAD = {
    "a file that is not there": ("features nowhere.npy s.npz", "No such file: 'nowhere.npy'"),
    "a folder": ("features folder.npy s.npz", "'folder.npy' must be a file, got a folder"),
    "an unknown type": ("features x.doc s.npz", "'x.doc' must end in one of .npy, .npz,"),
    "an empty file": ("features empty.csv s.npz", "'empty.csv' must hold data, got an empty file (0 bytes)"),
    "blank lines": ("features blank.csv s.npz", "blank.csv: this must hold a table, got blank lines only"),
    "a damaged file": ("features damaged.npz s.npz", "damaged.npz: this must be a .npz file, got one that is damaged"),
    "a cut .npy": ("features cut.npy s.npz", "cut.npy: this must be a .npy file, got one that is damaged"),
    "pickled objects": (
        "features objects.npy s.npz",
        "objects.npy: this must hold an array of numbers, got Python objects",
    ),
    "rows of two lengths": ("features ragged.csv s.npz", "Expected 2 fields in line 3, saw 3"),
    "text among the features": (
        "features x.csv s.npz",
        "x.csv: Column 'name' must hold numbers, got the texts 'cat' in row 2; 'dog' in row 3 (2 of 3 cells)",
    ),
    "a missing feature": ("features hole.csv s.npz", "got NaN or infinity in row 1"),
    "labels in no column": (
        "features x.csv s.npz --labels nam",
        "x.csv: --labels must name a column of this file, got 'nam': it has 'name', 'size', 'speed'.",
    ),
    "labels of an array": ("features x.npy s.npz --labels name", "--labels must be left out for .npy files"),
    "a key of a table": ("features x.csv s.npz --key a", "--key must be left out for .csv files"),
    "two kinds of labels": (
        "features x.csv s.npz --labels name --label-file b",
        "--labels and --label-file must not both be given",
    ),
    "names for other items": (
        "features x.npy s.npz --label-file x.csv",
        "--label-file must have one name for each of the 3",
    ),
    "an unknown kernel": ("features x.npy s.npz --kernel cubic", "argument --kernel: invalid choice: 'cubic'"),
    "a bandwidth of 0": (
        "features x.npy s.npz --bandwidth 0",
        "--bandwidth must be positive and finite, got 0.0",
    ),
    "a number that is none": (
        "features x.npy s.npz --bandwidth wide",
        "argument --bandwidth: must be a number, got 'wide'",
    ),
    "an unknown option": ("features x.npy s.npz --colour red", "unrecognized arguments: --colour red"),
    "triplets of two": (
        "triplets x.npy s.npz",
        "triplets must have 3 columns, one for each item of a triplet, got shape (3, 2)",
    ),
    "a column that is not there": (
        "triplets x.csv s.npz --columns name size weight",
        "x.csv: --columns must name columns of this file, got 'weight': it has 'name', 'size', 'speed'.",
    ),
    "an unknown odd one": ("triplets x.csv s.npz --odd colour", "--odd must be the position of a column"),
    "ratings without columns": ("ratings r.csv s.npz --item1 left", "are required: --item2, --rating"),
    "a rating that is text": (
        "ratings text.csv s.npz --item1 left --item2 right --rating answer",
        "Column 'answer' must hold numbers, got the text 'much' in row 3",
    ),
    "a column of ratings that is not there": (
        "ratings r.csv s.npz --item1 left --item2 right --rating score",
        "--rating must name a column of IN, got 'score'",
    ),
    "a rating off the scale": (
        "ratings r.csv s.npz --item1 left --item2 right --rating answer --low 1 --high 5",
        "must lie between --low 1 and --high 5",
    ),
    "an array of ratings": ("ratings x.npy s.npz --item1 a --item2 b --rating c", "'x.npy' must end in one of .csv"),
    "an unknown absent": ("associations a.csv s.npz --absent perhaps", "--absent must be 'missing', 'zero' or"),
    "an absent beyond one": ("associations a.csv s.npz --absent 2", "--absent must be 'missing', 'zero' or"),
    "a negative distance": ("dissimilarity negative.npy s.npz", "must be non-negative"),
    "an odd shape": ("dissimilarity x.npy s.npz", "IN must be a square matrix"),
    "a key of an array": ("dissimilarity x.npy s.npz --key a", "--key must be left out for .npy files"),
    "weights of distances": ("dissimilarity weighted.csv s.npz", "dissimilarities must not have weights"),
    "an unknown output": ("features x.npy s.doc", "OUT must end in .npz or .csv, got 's.doc'"),
    "an output that is a folder": (
        "features x.npy folder.npz",
        "OUT must be a file, got 'folder.npz', which is a folder",
    ),
    "an output nowhere": ("features x.npy no/where.npz", "OUT must lie in a folder that is there, got 'no/where.npz'"),
    "the same file twice": ("features x.csv ./x.csv --labels name", "OUT must be another file than IN, got 'x.csv'"),
    "weights in a .csv": ("triplets t.csv s.csv --weights counts", "OUT must end in .npz with --weights counts"),
    "factors in a .csv": ("features x.npy s.csv --implicit", "OUT must end in .npz with --implicit"),
    "absent pairs in a .csv": ("associations a.csv s.csv", "OUT must end in .npz with --absent 0.03"),
}


# Wrong whatever the files hold.
NOT_UNDERSTOOD = {
    "two kinds of labels",
    "an unknown kernel",
    "a number that is none",
    "an unknown option",
    "ratings without columns",
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(run, case):
    for folder in ("folder.npy", "folder.npz"):
        Path(folder).mkdir()
    np.save("x.npy", np.arange(6.0).reshape(3, 2))
    np.save("negative.npy", random_rdm(3, 0) - 0.5 * (1 - np.eye(3)))
    np.save("objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    write("cut.npy", Path("x.npy").read_bytes()[:-9])
    write("damaged.npz", b"PK\x03\x04 and so on")
    write("x.csv", FEATURES)
    write("x.doc", FEATURES)
    write("empty.csv", "")
    write("blank.csv", "\n\n")
    write("ragged.csv", "a,b\n1,2\n3,4,5\n")
    write("hole.csv", "a,b\n1,2\n,4\n")
    write("r.csv", RATINGS)
    write("text.csv", "left,right,answer\ncat,dog,1\ncat,car,much\n")
    write("a.csv", ASSOCIATIONS.replace("target,P", "response,count"))
    write("weighted.csv", "item1,item2,value,weight\ncat,dog,0.5,1\ncat,car,0.7,2\n")
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    words, sentence = BAD[case]
    status, out, err = run("similarity", *words.split())
    assert (status, out, len(err)) == (2 if case in NOT_UNDERSTOOD else 1, "", 1), err
    assert err[0].startswith("simdims: error: ")
    assert sentence in err[0]
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_a_missing_library_is_one_line(run, monkeypatch):
    write("x.parquet", b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    status, _, err = run("similarity", "features", "x.parquet", "s.npz")
    assert status == 1
    assert err == [
        'simdims: error: Reading .parquet files needs pyarrow, which is not installed: pip install "simdims[io]".'
    ]


def test_too_little_memory_is_one_line(run, monkeypatch):
    np.save("x.npy", np.ones((5000, 2)))
    monkeypatch.setattr("simdims._memory.available_bytes", lambda: 2**20)
    status, _, err = run("similarity", "features", "x.npy", "s.npz")
    assert (status, len(err)) == (1, 1)
    assert "5000 x 5000" in err[0]


def test_an_interrupt_is_quiet(run, monkeypatch):
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    np.save("x.npy", np.ones((3, 2)))
    monkeypatch.setattr("simdims.features.from_features", interrupt)
    assert run("similarity", "features", "x.npy", "s.npz") == (130, "", [])


def test_an_error_of_the_program_itself_is_not_hidden(run, monkeypatch):
    np.save("x.npy", np.ones((3, 2)))
    monkeypatch.setattr("simdims.features.from_features", lambda *arguments, **options: {}["bug"])
    with pytest.raises(KeyError):
        run("similarity", "features", "x.npy", "s.npz")


def test_an_output_that_exists_is_replaced_only_on_request(make, run):
    write("s.npz", "something else")
    np.save("x.npy", np.ones((3, 2)))
    status, out, err = run("similarity", "features", "x.npy", "s.npz")
    assert (status, out, len(err)) == (1, "", 1)
    assert "OUT must be new, got 's.npz', which is there already: choose another name, or pass --overwrite" in err[0]
    assert Path("s.npz").read_text() == "something else"
    assert make("features", "x.npy", "s.npz", "--overwrite").n_items == 3


# As a program of its own


def program(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "simdims", *words], capture_output=True, text=True)


def test_the_module_runs_as_a_program():
    write("x.csv", FEATURES)
    done = program("similarity", "features", "x.csv", "s.npz", "--labels", "name")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Wrote s.npz: 3 items, 100.0% of the pairs observed, with names\n"
    done = program("similarity", "features", "x.csv", "t.npz")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("simdims: error: x.csv: Column 'name' must hold numbers")
    assert done.stderr.count("\n") == 1


def test_help_is_quick_because_it_loads_no_heavy_library():
    code = (
        "import sys; from simdims.cli import main; main(['similarity', 'features', '--help']); "
        "print([m for m in ('numpy', 'pandas', 'scipy', 'sklearn', 'numba') if m in sys.modules])"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert time.perf_counter() - start < 5  # a bound that only a heavy import on a busy machine could break


# The real files


def test_real_animals_come_from_the_mat_file_as_the_function_makes_them(data_path, make):
    rdm = str(data_path("things/RDM48_triplet.mat"))
    names = str(data_path("things/names48.txt"))
    S = make("dissimilarity", rdm, "s.npz", "--method", "correlation", "--label-file", names)
    assert S.n_items == 48
    assert S.labels[:2] == ("pizza", "beaver")


def test_real_triplets(data_path, make):
    triplets, names = data_path("things/triplets_100k.npy"), data_path("things/unique_id.txt")
    S = make("triplets", str(triplets), "s.npz", "--label-file", str(names), "--weights", "counts")
    assert S.n_items == 1854
    assert_same(S, from_triplets(np.load(triplets), labels=names.read_text().split(), weights="counts"))


def test_real_word_associations(data_path, make):
    norms = str(data_path("words/usf_appendixA.csv"))
    S = make("associations", norms, "s.npz", "--response", "target", "--count", "P")
    assert S.absent == 0.03
    assert S.n_items > 4000
    assert "CAT" in S.labels


@pytest.fixture
def clean_similarities(tmp_path):
    W = simulate.dirichlet(40, 3, alpha=0.2, random_state=0)
    path = tmp_path / "S.npz"
    Similarity(W @ W.T).save(path)
    return path


def test_calibrate_prints_and_writes_what_calibrate_finds(clean_similarities, tmp_path, capsys):
    out = tmp_path / "calibration.json"
    words = ["--bootstraps", "5", "--seed", "0", "--eigenpairs", "8", "-o", str(out)]
    assert main(["calibrate", str(clean_similarities), *words]) == 0
    expected = calibrate(load_similarity(clean_similarities), n_bootstraps=5, n_eigenpairs=8, random_state=0)
    assert f"sampling {expected.sampling:.4f}" in capsys.readouterr().out
    assert json.loads(out.read_text())["cutoff"] == expected.cutoff


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_select_rank_writes_every_fit(clean_similarities, tmp_path, capsys, ending):
    out, folder = tmp_path / f"ranks.{ending}", tmp_path / "checkpoint"
    words = ["--ranks", "2:4", "--sampling", "0.6", "--repeats", "1", "--seed", "0", "--checkpoint", str(folder)]
    assert main(["select-rank", str(clean_similarities), *words, "--quiet", "-o", str(out)]) == 0
    assert "\nrank 3\n" in capsys.readouterr().out
    fits = json.loads(out.read_text())["scores"] if ending == "json" else pd.read_csv(out).to_dict(orient="records")
    assert [fit["rank"] for fit in fits] == [2] * 5 + [3] * 5 + [4] * 5
    assert (folder / "journal.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("auto", "auto"), ("2:5", [2, 3, 4, 5]), ("5:20:5", [5, 10, 15, 20]), ("2,4,8:10", [2, 4, 8, 9, 10]), ("7", [7])],
)
def test_ranks_are_read_with_both_ends(text, expected):
    assert ranks(text) == expected


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["--ranks", "2:x"], "2:30, got '2:x'"),
        (["--ranks", "5:2"], "ranges that rise, got '5:2'"),
        (["--ranks", "2:5:0"], "got '2:5:0'"),
        (["--ranks", "0:3"], "--ranks must lie between 1 and 39, the number of items less 1, got 0"),
        (["--folds", "1"], "--folds must be at least 2, got 1"),
        (["--sampling", "1.5"], "--sampling must lie strictly between 0 and 1, got 1.5"),
        (["-o", "ranks.txt"], "OUT must end in .json or .csv"),
        (["-o", "nowhere/ranks.json"], "OUT must lie in a folder that is there"),
    ],
)
def test_what_is_wrong_with_select_rank_is_said_in_one_line(clean_similarities, capsys, words, fragment):
    assert main(["select-rank", str(clean_similarities), *words]) == (2 if "2:" in words[1] or "5:2" in words[1] else 1)
    error = capsys.readouterr().err
    assert fragment in error
    assert error.count("\n") == 1
