"""What newcomers get wrong: one sentence in the command line's own words, the right exit status, nothing written."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_examples import made, sorted_embedding
from scipy import sparse
from scipy.io import savemat

from simdims import Similarity
from simdims.cli import main

N = 30
LABELS = [f"item {i}" for i in range(N)]
RATED = "--item1 left --item2 right --rating rating"

#: Words of Python that mean nothing on a command line, outside quotations.
PYTHON = re.compile(
    r"\bNone\b|\bTrue\b|\bFalse\b|\bnp\.|DataFrame|\bSeries\b|Errno|\w=|\w\(\.\.\.|\bDiscovery\b|\bSimilarity\b"
    r"|\b[a-z]+_[a-z_]+\b|\bint\b|\bfloat\b|\*\*|\bas_similarity\b"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind, good and bad, and two results of 3 and of 30 dimensions."""
    place = tmp_path_factory.mktemp("mistakes")
    rng = np.random.default_rng(0)
    W = sorted_embedding(N, 3)
    S = W @ W.T
    Similarity(S, labels=LABELS).save(place / "S.npz")
    pd.DataFrame(S, index=LABELS, columns=LABELS).to_csv(place / "S.csv")
    np.save(place / "D.npy", (1 - S) * (1 - np.eye(N)))
    np.save(place / "graph.npy", (S > 0.3) * (1.0 - np.eye(N)))
    np.save(place / "asymmetric.npy", rng.random((N, N)))
    pd.DataFrame(rng.random((60, 60))).to_csv(place / "wide.csv", index=False, header=False)
    negative = S.copy()
    negative[0, 1] = negative[1, 0] = -0.5
    np.save(place / "negative.npy", negative)
    sparse.save_npz(place / "sparse.npz", sparse.csr_array(np.where(S > 0.3, S, 0)))
    savemat(place / "two.mat", {"A": S, "B": S})
    answers = np.array([rng.choice(N, 3, replace=False) for _ in range(40)])
    np.save(place / "answers.npy", answers)
    pd.DataFrame([[LABELS[i] for i in row] for row in answers], columns=["a", "b", "odd"]).to_csv(
        place / "answers.csv", index=False
    )
    np.save(place / "twice.npy", np.array([[0, 1, 2], [3, 3, 4]]))
    (place / "mixed.csv").write_text("a,b,c\ncat,0.5,1\ndog,0.25,2\n")
    pairs = [(LABELS[i], LABELS[j], 1 + (i * j) % 7, "x") for i in range(N) for j in range(i)]
    pd.DataFrame(pairs, columns=["left", "right", "rating", "subject"]).to_csv(place / "ratings.csv", index=False)
    counts = pd.DataFrame(pairs, columns=["cue", "response", "count", "who"]).drop(columns="who")
    counts.to_csv(place / "associations.csv", index=False)
    pd.DataFrame(rng.normal(size=(N, 4)), index=LABELS, columns=list("wxyz")).rename_axis("name").to_csv(
        place / "features.csv"
    )
    pd.DataFrame({"name": LABELS, "first": W[:, 0], "same": 1.0}).to_csv(place / "properties.csv", index=False)
    others = pd.DataFrame({"name": [*LABELS[1:], "stranger"], "first": W[:, 0]})
    others.to_csv(place / "others.csv", index=False)
    pd.DataFrame(W, columns=["k1", "k2", "k3"]).assign(item=LABELS).to_csv(place / "W.csv", index=False)
    np.save(place / "W.npy", W)
    made(W, labels=tuple(LABELS)).save(place / "found")
    made(sorted_embedding(40, 30)).save(place / "many")
    (place / "ten.txt").write_text("\n".join(LABELS[:10]))
    (place / "empty.csv").write_text("")
    (place / "blank.csv").write_text("\n \n")
    (place / "bytes.csv").write_bytes(bytes(range(256)))
    (place / "notes.doc").write_text("notes")
    (place / "folder").mkdir()
    (place / "folder" / "mine.txt").write_text("mine")
    (place / "名前.csv").write_text("")
    return place


@pytest.fixture(autouse=True)
def _here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def everything():
    return {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}


#: What is typed, the exit status, and a part of the sentence.
MISTAKES = [
    # Files that are not what they should be
    ("discover nothing.csv -o out", 1, "No such file: 'nothing.csv'"),
    ("discover folder -o out", 1, "'folder' must be a file, got a folder"),
    ("discover empty.csv -o out", 1, "'empty.csv' must hold data, got an empty file (0 bytes)"),
    ("discover 名前.csv -o out", 1, "'名前.csv' must hold data, got an empty file"),
    ("discover blank.csv -o out", 1, "blank.csv: this must hold a table, got blank lines only"),
    ("discover bytes.csv -o out", 1, "bytes.csv: this must be a text file, got NUL bytes"),
    ("discover notes.doc -o out", 1, "'notes.doc' must end in one of .npy,"),
    ("rsa S.npz folder", 1, "'folder' must be a file, got a folder"),
    ("calibrate nothing.npz", 1, "No such file: 'nothing.npz'"),
    # What a file holds
    ("discover asymmetric.npy -o out", 1, "30 rows and 30 columns that are not symmetric. Pass --as features, or"),
    ("discover wide.csv -o out", 1, "60 rows and 60 columns that are not symmetric. Pass --as features, or"),
    ("discover asymmetric.npy -o out --as matrix", 1, "pass --symmetrize mean or --symmetrize max"),
    ("discover negative.npy -o out", 1, "pass --negative clip to set them to 0, or --negative shift"),
    ("fit negative.npy -n 2 -o o.csv", 1, "pass --negative clip to set them to 0, or --negative shift"),
    (
        "discover features.csv -o out --kernel linear",
        1,
        "use --kernel rbf, which is never negative, or --negative clip",
    ),
    (
        "similarity features features.csv s.npz --labels name --kernel linear",
        1,
        "use --kernel rbf, which is never negative, or --negative clip",
    ),
    ("discover graph.npy -o out", 1, "Use --as dissimilarity, or --as matrix"),
    ("similarity dissimilarity S.csv s.npz", 1, "IN must have a zero diagonal"),
    ("similarity dissimilarity S.csv s.npz", 1, "use `simdims discover`"),
    ("discover sparse.npz -o out", 1, "got none: pass --absent missing"),
    ("discover two.mat -o out", 1, "--key must say which of the 2 square matrices to read, got none: this file"),
    ("fit two.mat -n 2 -o o.csv --key C", 1, "--key must name a variable of this file, got 'C': it holds A (30 x 30)"),
    ("evaluate triplets W.csv mixed.csv", 1, "got 0.5 in row 0, column 1"),
    ("evaluate triplets W.npy answers.csv", 1, "TRIPLETS must hold positions where EMBEDDING does not name its items"),
    ("evaluate triplets W.npy answers.csv", 1, ": pass --item or"),
    ("evaluate triplets W.csv twice.npy", 1, "TRIPLETS must name three different items in every row, got [3, 3, 4]"),
    ("evaluate triplets asymmetric.npy answers.npy", 1, "EMBEDDING must have fewer dimensions than items, or be"),
    ("evaluate triplets features.csv answers.csv", 1, "If it names the items, pass --item name."),
    ("evaluate pairs W.csv ratings.csv --item1 left --item2 right --rating subject", 1, "Column 'subject' must hold"),
    ("evaluate pairs W.csv properties.csv --item1 name --item2 name --rating first", 1, "PAIRS must vary"),
    ("test W.csv others.csv --labels name", 1, "PROPERTIES must name the same items as EMBEDDING, got no 'item 0' in"),
    ("report found --tests others.csv --labels name", 1, "--tests must name the same items as FOLDER"),
    ("report found --tests properties.csv --labels name", 1, "--tests must vary over the items, got 1 for every item"),
    ("report nofolder", 1, "FOLDER must be one that `simdims discover` wrote, got 'nofolder', which is not there"),
    ("evaluate readout folder properties.csv", 1, "EMBEDDING must be one that `simdims discover` wrote, got 'folder'"),
    ("plot calibration found -o p.svg", 1, "FOLDER must hold a rank selection, got a result whose rank was given"),
    # Columns
    (f"discover ratings.csv -o out {RATED.replace('left', 'up')}", 1, "--item1 must name a column of FILE, got 'up'"),
    ("similarity associations ratings.csv s.npz", 1, "--cue must name a column of IN, got 'cue'"),
    (f"similarity ratings ratings.csv s.npz {RATED.replace('right', 'left')}", 1, "--item2 and --item1 must name two"),
    ("similarity triplets answers.csv s.npz --label-file ten.txt", 1, "name items that are in --label-file, got 'item"),
    ("similarity triplets answers.csv s.npz --n-items 5", 1, "got 5: pass --label-file."),
    ("evaluate readout W.csv properties.csv --labels nam", 1, "--labels must name a column of this file, got 'nam'"),
    ("test W.csv properties.csv --labels name --item nam", 1, "--item must name a column of this file, got 'nam'"),
    # Numbers
    ("discover S.npz -o out --seed -1", 1, "--seed must lie between 0 and 4294967295, got -1."),
    ("fit S.npz -n 3 -o o.csv --seed -1", 1, "--seed must lie between 0 and 4294967295, got -1."),
    ("calibrate S.npz --seed 4294967296", 1, "--seed must lie between 0 and 4294967295, got 4294967296."),
    ("calibrate S.npz --jobs 0", 1, "--jobs must be a number of processes, or -1 for one a core, got 0."),
    ("consensus S.npz -n 3 -o o.csv --splits 99999999999999999999", 1, "--splits must be at most 1,000,000,000, got"),
    ("demo --items 0", 1, "--items must lie between 40 and 1797, got 0."),
    (f"discover ratings.csv -o out {RATED} --low 9 --high 1", 1, "--low must be less than --high, got --low 9 and --h"),
    (f"similarity ratings ratings.csv s.npz {RATED} --low 1 --high 3", 1, "must lie between --low 1 and --high 3, got"),
    (f"similarity ratings ratings.csv s.npz {RATED} --low -1e3 --high -1e2", 1, "must lie between --low -1000 and"),
    (
        f"similarity ratings ratings.csv s.npz {RATED} --low nan",
        1,
        "--low must be finite, got nan",
    ),
    ("similarity associations associations.csv s.npz --absent perhaps", 1, "--absent must be 'missing', 'zero' or"),
    ("similarity dissimilarity D.npy s.npz --sigma 2", 1, "--sigma must be left out unless --method gaussian"),
    ("similarity features features.csv s.npz --labels name --bandwidth 1e-320", 1, "must be of a size"),
    ("fit S.npz -n 31 -o o.csv", 1, "--components must be between 1 and 30, the number of items, got 31."),
    ("select-rank S.npz --ranks 2:40", 1, "--ranks must lie between 1 and 29, the number of items less 1, got 30."),
    ("plot dimensions found -o p.svg --page 9", 1, "--page must be 1, as 3 dimensions take 1 page, got 9."),
    (
        "plot dimensions many -o p.svg --page 0",
        1,
        "--page must be between 1 and 3, as 30 dimensions take 3 pages of 12",
    ),
    ("fit S.npz -n three -o o.csv", 2, "-n/--components: must be a whole number, got 'three' (see simdims fit --help)"),
    ("select-rank S.npz --sampling half", 2, "--sampling: must be a number, got 'half'"),
    ("select-rank S.npz --ranks 2:9999999999999", 2, "--ranks: must name at most 10,000 numbers"),
    # Options that do not go with the rest
    ("discover S.csv -o out --key S", 1, "--key must be left out for .csv files (it is for .npz,"),
    ("discover S.csv -o out --absent zero", 1, "--absent must be left out for dense values"),
    ("discover S.npz -o out --absent zero", 1, "--absent must be left out for a file that simdims wrote"),
    ("fit S.npz -n 2 -o o.csv --label-file ten.txt", 1, "--label-file must be left out for a file that simdims wrote"),
    ("calibrate S.npz --form long", 1, "--form must be left out for .npz files"),
    (
        "similarity dissimilarity D.npy s.npz --negative clip",
        1,
        "--negative must be left out unless --method correlation",
    ),
    ("similarity features features.csv s.npz --labels name --landmarks 5", 1, "with --kernel rbf and no --implicit."),
    (
        "similarity features features.csv s.npz --labels name --implicit --kernel cosine",
        1,
        "--kernel linear or --kernel rbf,",
    ),
    ("discover S.csv -o out --no-report --title Mine", 2, "--title must be left out with --no-report"),
    ("report found --labels name", 2, "--labels must be left out without --tests, which it is for."),
    ("report found --permutations 5", 2, "--permutations must be left out without --tests, which it is for."),
    ("evaluate triplets found answers.csv --item name", 2, "--item must be left out where EMBEDDING is a folder"),
    ("plot map found -o p.svg --images folder", 2, "--images must be left out for map: it is for dimensions."),
    ("fit S.npz -n 2 -o o.csv --solver admm --device torch-cpu", 2, "--solver admm must run on --device cpu, got"),
    ("plot map found -o p.svg --title Mine", 2, "unrecognized arguments: --title Mine (see simdims plot --help)"),
    ("discover S.csv", 2, "the following arguments are required: -o/--out (see simdims discover --help)"),
    # Where results should go
    ("discover S.csv -o folder", 1, "FOLDER must be new, empty, or of an earlier result, got"),
    ("discover S.csv -o S.npz", 1, "which is a file"),
    ("discover S.csv -o found", 1, "which holds an earlier result: choose another name, or pass --overwrite."),
    ("discover S.csv -o out --checkpoint S.npz", 1, "--checkpoint must be a folder, got 'S.npz', which is a file."),
    ("fit S.npz -n 2 -o nowhere/o.csv", 1, "OUT must lie in a folder that is there, got 'nowhere/o.csv'"),
    ("fit S.npz -n 2 -o W.csv", 1, "OUT must be new, got 'W.csv', which is there already"),
    ("evaluate readout W.csv properties.csv -o properties.csv", 1, "OUT must be another file than RATINGS"),
]


@pytest.mark.parametrize(("typed", "status", "sentence"), MISTAKES, ids=[f"{n} {m[0]}" for n, m in enumerate(MISTAKES)])
def test_a_mistake_is_one_sentence_in_the_words_of_the_command_line(capsys, typed, status, sentence):
    before = everything()
    assert main(typed.split()) == status
    said = capsys.readouterr()
    *remarks, error = said.err.splitlines()
    assert said.out == ""
    assert error.startswith("simdims: error: ")
    assert sentence in error
    assert not PYTHON.search(re.sub(r"(?<!\w)'[^']*'(?!\w)", "", error)), error
    assert all(line.startswith("simdims: ") and "error" not in line for line in remarks)
    assert everything() == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc, in which nobody can write, here")
@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("discover S.csv -o /proc/x", "FOLDER"),
        ("discover S.csv -o /proc/x/y", "FOLDER"),
        ("discover S.csv -o out --checkpoint /proc/x", "--checkpoint"),
        ("demo -o /proc/x", "FOLDER"),
        ("report found -o /proc/x.html", "FILE"),
        ("plot map found -o /proc/x.svg", "OUT"),
        ("similarity features features.csv /proc/x.npz --labels name", "OUT"),
        ("calibrate S.npz -o /proc/x.json", "OUT"),
        ("select-rank S.npz -o /proc/x.csv", "OUT"),
        ("fit S.npz -n 2 -o /proc/x.csv", "OUT"),
        ("consensus S.npz -n 2 -o /proc/x.csv", "OUT"),
        ("evaluate readout W.csv properties.csv --labels name -o /proc/x.csv", "OUT"),
        ("test W.csv properties.csv --labels name -o /proc/x.csv", "OUT"),
        ("rsa S.npz properties.csv --labels name -o /proc/x.json", "OUT"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_refused_before_anything_is_read(capsys, monkeypatch, typed, name):
    def read(*arguments, **options):
        raise AssertionError("this comes after the check")

    for reader in ("io.load_similarity", "_inputs.read_features", "cli.kinds.guess", "datasets.load_digits_similarity"):
        monkeypatch.setattr(f"simdims.{reader}", read)
    before = everything()
    assert main(typed.split()) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"simdims: error: {name} must lie where files can be written, got '/proc/x")
    assert everything() == before


def test_the_check_of_a_place_leaves_no_folder_behind(capsys):
    before = set(Path().rglob("*"))
    assert main(["discover", "nothing.csv", "-o", "new/newer/out", "--checkpoint", "some/work"]) == 1
    assert set(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("typed", "function"),
    [
        ("discover S.csv -o out --ranks 2", "simdims.discovery.discover"),
        ("fit S.npz -n 2 -o o.csv", "simdims.srf.SRF.fit"),
        ("consensus S.npz -n 2 -o o.csv", "simdims.consensus.fit_consensus"),
        ("select-rank S.npz -o r.json", "simdims.selection.select_rank"),
        ("calibrate S.npz -o c.json", "simdims.selection.calibrate"),
        ("evaluate readout W.csv properties.csv --labels name -o r.csv", "simdims.metrics.readout"),
        ("test W.csv properties.csv --labels name -o t.csv", "simdims.inference.dimension_test"),
        ("rsa S.npz properties.csv --labels name -o t.csv", "simdims.inference.rsa_test"),
        ("plot map found -o p.svg", "simdims.plots.save_figure"),
        ("report found -o r.html", "simdims.report.writer.replacing_file"),
    ],
)
def test_an_interrupt_leaves_nothing_and_no_traceback(capsys, monkeypatch, typed, function):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    if function.startswith("simdims.plots"):
        pytest.importorskip("matplotlib")
    monkeypatch.setattr(function, interrupt)
    before = everything()
    assert main(typed.split()) == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert everything() == before


def test_what_the_system_refuses_is_said_without_its_numbers(capsys, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device", "o.csv")

    monkeypatch.setattr("simdims.cli.fits.write_result", full)
    assert main(["fit", "S.npz", "-n", "2", "-o", "o.csv", "--seed", "0"]) == 1
    assert capsys.readouterr().err == (
        "simdims: error: 'o.csv' could not be read or written: no space left on device.\n"
    )


def test_too_little_memory_without_a_word_of_it_is_still_a_sentence(capsys, monkeypatch):
    def exhausted(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("simdims.io.load_similarity", exhausted)
    assert main(["fit", "S.npz", "-n", "2", "-o", "o.csv"]) == 1
    assert capsys.readouterr().err == "simdims: error: this must fit into memory, and does not.\n"


def test_an_interrupt_that_compiled_code_turned_into_an_error_is_an_interrupt(monkeypatch, capsys):
    """Importing NumPy's C interface, for one, answers an interrupt with an ImportError."""
    import signal

    from simdims.cli import evaluate

    def swallow(options):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.multiarray failed to import") from None

    monkeypatch.setattr(evaluate, "_triplets", swallow)
    assert main(["evaluate", "triplets", "W.csv", "answers.csv"]) == 130
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
