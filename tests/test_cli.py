"""The command line: the same results as the functions, one line for what is wrong, and never a traceback for input."""

import json
import re
import subprocess
import sys
import time
import warnings
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
from simdims.cli.steps import ranks
from simdims.construct import from_dissimilarity, from_ratings
from simdims.features import from_features
from simdims.triplets import from_triplets


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


def random_rdm(n_items: int, seed: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).uniform(0.1, 1.5, (n_items, n_items)), 1)
    return upper + upper.T


NAMES = ["cat", "café", "NA", "bus"]
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
TABLE = pd.DataFrame({"name": ["cat", "dog", "NA"], "size": [0.5, 1.5, 9.0], "speed": [2.0, 1.0, 3.0]})
TRIPLETS = [[0, 1, 2], [3, 1, 0], [2, 3, 1], [0, 3, 2]]
TRIALS = pd.DataFrame(
    {"left": ["cat", "dog", "cat", "dog"], "right": ["dog", "cat", "NA", "NA"], "answer": [6, 7, 2, 1]}
).assign(person=["a", "b", "a", "b"])
COUNTS = pd.DataFrame(
    {"cue": ["cat", "dog", "dog", "null", "cat"], "target": ["dog", "cat", "null", "dog", "fur"], "P": [3, 2, 1, 2, 9]}
)
RDMS = np.stack([random_rdm(4, seed) for seed in range(3)])
RDM_TABLE = pd.DataFrame(RDMS[0], index=NAMES, columns=NAMES)
COLUMNS = {"item1": "left", "item2": "right", "rating": "answer"}
RATED = " ".join(f"--{role} {name}" for role, name in COLUMNS.items())


def write_files() -> None:
    np.save("x.npy", X)
    np.savez("x.npz", activations=X, names=np.array(NAMES))
    np.savez("one.npz", X)
    savemat("x.mat", {"layer": X})
    TABLE.to_csv("x.csv", index=False)
    write("names.txt", "\n".join(NAMES).encode("latin-1"))
    np.save("t.npy", np.array(TRIPLETS, dtype=np.int16))
    pd.DataFrame(TRIPLETS, columns=list("abc")).to_csv("t.csv", index=False)
    pd.DataFrame(TRIPLETS, columns=list("abc")).rename_axis("trial").to_csv("t.tsv", sep="\t")
    np.savetxt("t.txt", TRIPLETS[1:], fmt="%d")
    TRIALS.to_csv("r.csv", index=False)
    COUNTS.to_csv("a.csv", index=False)
    np.save("d.npy", RDMS[0])
    np.save("vector.npy", RDMS[0][np.triu_indices(4, 1)])
    np.save("stack.npy", RDMS)
    savemat("d.mat", {"rdm": RDMS[0], "n": 4})
    savemat("two.mat", {"rdm": RDMS[0], "other": RDMS[1]})
    RDM_TABLE.to_csv("d.csv")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("features x.npy s.npz", lambda: from_features(X)),
        ("features x.npy s.npz --kernel rbf --bandwidth 0.7", lambda: from_features(X, kernel="rbf", bandwidth=0.7)),
        ("features x.npy s.npz --label-file names.txt", lambda: from_features(X, labels=NAMES)),
        ("features x.npz s.npz --key activations", lambda: from_features(X, labels=NAMES)),
        ("features one.npz s.npz", lambda: from_features(X)),
        ("features x.mat s.npz --key layer", lambda: from_features(X)),
        ("features x.csv s.csv --labels name", lambda: from_features(TABLE.set_index("name"))),
        ("triplets t.csv s.npz", lambda: from_triplets(TRIPLETS)),
        ("triplets t.csv s.npz --odd b", lambda: from_triplets(TRIPLETS, odd=1)),
        ("triplets t.tsv s.npz --odd 0 --columns a b c", lambda: from_triplets(TRIPLETS, odd=0)),
        ("triplets t.tsv s.npz --columns c b a", lambda: from_triplets(TRIPLETS, odd=0)),
        ("triplets t.txt s.npz", lambda: from_triplets(TRIPLETS[1:])),
        (
            "triplets t.npy s.npz --weights counts --smoothing 0.5 --label-file names.txt",
            lambda: from_triplets(TRIPLETS, weights="counts", smoothing=0.5, labels=NAMES),
        ),
        (f"ratings r.csv s.csv {RATED} --low 1 --high 7", lambda: from_ratings(TRIALS, **COLUMNS, low=1, high=7)),
        (
            f"ratings r.csv s.npz {RATED} --participant person --low 0 --high 10 --weights counts",
            lambda: from_ratings(TRIALS, **COLUMNS, participant="person", low=0, high=10, weights="counts"),
        ),
        *[
            (
                f"associations a.csv s.npz --response target --count P --absent {absent}",
                lambda absent=absent: from_associations(COUNTS, response="target", count="P", absent=absent),
            )
            for absent in ("missing", "zero", 0.1)
        ],
        (
            "associations a.csv s.npz --response target --no-count",
            lambda: from_associations(COUNTS, response="target", count=None),
        ),
        ("dissimilarity d.npy s.npz", lambda: from_dissimilarity(RDMS[0])),
        ("dissimilarity vector.npy s.npz", lambda: from_dissimilarity(RDMS[0])),
        ("dissimilarity stack.npy s.npz", lambda: from_dissimilarity(RDMS)),
        (
            "dissimilarity stack.npy s.npz --method gaussian --sigma 0.5 --weights counts",
            lambda: from_dissimilarity(RDMS, method="gaussian", sigma=0.5, weights="counts"),
        ),
        ("dissimilarity d.mat s.npz --label-file names.txt", lambda: from_dissimilarity(RDMS[0], labels=NAMES)),
        ("dissimilarity two.mat s.npz --key rdm", lambda: from_dissimilarity(RDMS[0])),
        ("dissimilarity d.csv s.npz", lambda: from_dissimilarity(RDM_TABLE)),
    ],
)
def test_each_command_makes_the_similarities_of_its_function(make, words, expected):
    write_files()
    assert_same(make(*words.split()), expected())


def test_features_of_a_parquet_file(make):
    pytest.importorskip("pyarrow")
    TABLE.to_parquet("x.parquet")
    assert_same(make("features", "x.parquet", "s.npz", "--labels", "name"), from_features(TABLE.set_index("name")))


def test_features_keep_factors_if_requested_and_warn_of_too_few_landmarks(make, run):
    np.save("x.npy", abs(X))
    np.testing.assert_array_equal(make("features", "x.npy", "s.npz", "--implicit").factors, abs(X))
    words = ["features", "x.npy", "s.npz", "--implicit", "--kernel", "rbf"]
    S = make(*words)
    np.testing.assert_allclose(S.factors @ S.factors.T, from_features(abs(X), kernel="rbf").values, rtol=1e-6)
    status, _, err = run("similarity", *words, "--landmarks", "2", "--overwrite")
    assert status == 0
    assert "from 2 landmarks" in err[0]
    assert load_similarity("s.npz").factors.shape == (4, 2)


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
    assert re.search("header.*0 to 1", err[0])
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
    assert re.search("missing value.*'item 4'.*'size'", err[0])


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("features x.npz t.npz", "key.*activations, names"),
        ("features thousands.csv t.npz --labels name", "'1.234'.*thousands"),
        ("dissimilarity d.csv t.npz --label-file other.txt", "same items"),
        ("dissimilarity d.npy t.npz --method correlation", "negative"),
    ],
)
def test_data_that_need_a_decision_are_refused(run, words, pattern):
    write_files()
    write("thousands.csv", "name;size;speed\ncat;1.234;0,5\ndog;12;0,25\n")
    write("other.txt", "cat\nNA\ncafé\nbus\n")
    status, _, err = run("similarity", *words.split())
    assert (status, len(err)) == (1, 1)
    assert re.search(pattern, err[0])


def test_dissimilarity_beyond_one_is_clipped_with_a_warning(run):
    np.save("d.npy", RDMS[0])
    words = "similarity dissimilarity d.npy s.npz --method correlation --negative clip"
    status, out, err = run(*words.split())
    assert (status, len(err)) == (0, 1)
    assert err[0].startswith("simdims: warning: ")
    assert out.startswith("Wrote s.npz: 4 items, 100.0% of the pairs observed")


def test_labels_are_text_as_it_stands(make):
    S = make("features", write("x.csv", "cat,1,2\ndog,3,4\ncow,5,6\n"), "s.npz", "--labels", "0")
    assert S.labels == ("cat", "dog", "cow")  # the first row is no header
    S = make("triplets", write("t.csv", "a,b,c\nNA,null,cat\ncat,dog,NA\nnull,dog,cat\n"), "s.npz")
    assert S.labels == ("NA", "cat", "dog", "null")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_tables_in_other_encodings(make, encoding):
    table = write("r.csv", "left,right,answer\ncafé,thé,3\nthé,bière,1\n".encode(encoding))
    assert make("ratings", table, "s.npz", *RATED.split(), "--low", "1", "--high", "5").labels == (
        "bière",
        "café",
        "thé",
    )


# What it says


def test_the_version(run):
    assert run("--version") == (0, f"simdims {simdims.__version__}\n", [])


def test_warnings_are_one_line_each(run):
    pd.concat([TRIALS, pd.DataFrame({"left": ["cat"], "right": ["car"], "answer": ["NA"]})]).to_csv(
        "r.csv", index=False
    )
    status, out, err = run("similarity", "ratings", "r.csv", "s.npz", *RATED.split())
    assert status == 0
    assert len(err) >= 2
    assert all(line.startswith("simdims: warning: ") for line in err)
    assert any("The scale of the ratings was not given" in line for line in err)
    assert out.count("\n") == 1


def test_a_repeated_warning_is_printed_once(run, monkeypatch):
    TRIALS.to_csv("r.csv", index=False)
    twice = lambda _: [warnings.warn("Seen before.", UserWarning, stacklevel=1) for _ in range(2)]  # noqa: E731
    monkeypatch.setattr("simdims.construct.warn_of_other_measure", twice)
    err = run("similarity", "ratings", "r.csv", "s.npz", *RATED.split())[2]
    assert err.count("simdims: warning: Seen before.") == 1


def test_verbose_says_what_was_found(run):
    COUNTS.to_csv("a.csv", index=False)
    words = ["similarity", "associations", "a.csv", "s.npz", "--response", "target", "--count", "P"]
    _, quiet_out, quiet = run(*words)
    status, out, err = run(*words, "--verbose", "--overwrite")
    assert status == 0
    assert quiet == []
    assert out == quiet_out
    assert err
    assert all(line.startswith("simdims: from_associations") for line in err)
    assert run(*words, "--overwrite")[2] == []


# What is wrong


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
    assert "--overwrite" in err[0]
    assert Path("s.npz").read_text() == "something else"
    assert make("features", "x.npy", "s.npz", "--overwrite").n_items == 3


# As a program of its own


def program(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "simdims", *words], capture_output=True, text=True)


def test_the_module_runs_as_a_program():
    TABLE.to_csv("x.csv", index=False)
    done = program("similarity", "features", "x.csv", "s.npz", "--labels", "name")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Wrote s.npz: 3 items, 100.0% of the pairs observed, labelled\n"
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
    assert [fit["rank"] for fit in fits] == [2] * 8 + [3] * 8 + [4] * 8
    assert (folder / "journal.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("auto", "auto"), ("2:5", [2, 3, 4, 5]), ("5:20:5", [5, 10, 15, 20]), ("2,4,8:10", [2, 4, 8, 9, 10]), ("7", [7])],
)
def test_ranks_are_read_with_both_ends(text, expected):
    assert ranks(text) == expected
