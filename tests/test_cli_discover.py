"""`simdims discover`: every kind of file is told, or asked about; what it writes and says; what it never does."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from simdims import Discovery, Similarity, from_dissimilarity, from_features, from_ratings, from_triplets, simulate
from simdims.associations import from_associations
from simdims.cli import main

N = 24
NAMES = [f"item {i}" for i in range(N)]
QUICK = ["--ranks", "3", "--runs", "2", "--seed", "0", "--quiet"]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def truth():
    return simulate.dirichlet(N, 3, alpha=0.3, random_state=0)


@pytest.fixture
def trials(truth):
    """Odd-one-out answers of all items, by position."""
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(N, 3, replace=False) for _ in range(400)])
    return np.array([_odd_last(truth, row) for row in rows])


def _odd_last(W, row):
    kept = max(((0, 1), (0, 2), (1, 2)), key=lambda pair: W[row[pair[0]]] @ W[row[pair[1]]])
    odd = ({0, 1, 2} - set(kept)).pop()
    return [row[kept[0]], row[kept[1]], row[odd]]


# What a file holds


def test_what_could_be_several_things_is_asked(capsys):
    Path("x.csv").write_text("name,colour,size\ncat,black,1\ndog,brown,2\ncow,brown,3\n")
    assert main(["discover", "x.csv", "-o", "out", *QUICK]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(
        r"simdims: error: Cannot tell what 'x.csv' contains: a table of .*\. Use --as matrix, .*\n", said.err
    )
    assert not Path("out").exists()


@pytest.mark.parametrize("name", ["x.csv", "headed.csv", "x.npy", "x.npz", "wide.txt"])
def test_a_square_that_is_not_symmetric_may_hold_features(name, capsys):
    X = np.random.default_rng(0).random((5, 5))
    np.savetxt("x.csv", X, delimiter=",")
    pd.DataFrame(X, columns=list("abcde")).to_csv("headed.csv", index=False)
    np.save("x.npy", X)
    np.savez("x.npz", X)
    np.savetxt("wide.txt", np.random.default_rng(0).random((70, 70)))
    assert main(["discover", name, "-o", "out", *QUICK]) == 1
    said = capsys.readouterr().err
    assert "columns that are not symmetric. Use --as features, or --symmetrize mean for similarities" in said
    assert "Read" not in said
    assert main(["discover", name, "-o", "out", "--as", "features", *QUICK]) == 0
    assert main(["discover", name, "-o", "sides", "--symmetrize", "mean", *QUICK]) == 0


def test_a_column_that_is_named_leaves_the_others_to_be_found(capsys):
    norms = pd.DataFrame([(a, b, 3, 1, 0.5) for a in "abcdef" for b in "abcdef" if a != b])
    norms.set_axis(["cue", "target", "G", "P", "FSG"], axis=1).to_csv("norms.csv", index=False)
    assert main(["discover", "norms.csv", "-o", "out", *QUICK]) == 1
    assert (
        "--count could be any of several columns, got 'G', 'P', 'FSG': pass --count COLUMN" in capsys.readouterr().err
    )
    assert main(["discover", "norms.csv", "-o", "out", "--count", "P", *QUICK]) == 0
    words = pd.DataFrame([(a, b, "N", ord(a) + ord(b) - 190, 4) for a in "abcdef" for b in "abcdef" if a < b])
    words.set_axis(["word1", "word2", "POS", "SimLex", "conc"], axis=1).to_csv("words.csv", index=False)
    assert main(["discover", "words.csv", "-o", "out2", *QUICK]) == 1
    assert "could be any of several columns, got 'SimLex', 'conc': pass --rating COLUMN" in capsys.readouterr().err
    assert main(["discover", "words.csv", "-o", "out2", "--rating", "SimLex", *QUICK]) == 0
    assert main(["discover", "words.csv", "-o", "out3", "--rating", "colour", *QUICK]) == 1
    assert re.search("rating.*'colour'", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "left,right,rating,subject\ncat,dog,6,a\ncat,dog,7,b\ncat,car,2,a\ndog,car,1,a\nbee,cat,3,a\n",
            "ratings of pairs: item1 in 'left', item2 in 'right', rating in 'rating', participant in 'subject'",
        ),
        (
            "person,cue,response\n1,cat,dog\n2,dog,cat\n1,cow,cat\n2,cat,cow\n2,dog,cow\n1,bee,cat\n2,cat,bee\n",
            "word associations: cue in 'cue', response in 'response', each row counted once",
        ),
        ("name,x,y\ncat,1.5,-2\ndog,2,1\ncow,4,4\nbee,0,1\n", "features, one row per item, named by 'name'"),
    ],
)
def test_it_says_which_columns_it_took(text, said, capsys):
    Path("x.csv").write_text(text)
    assert main(["discover", "x.csv", "-o", "out", "--ranks", "2", "--runs", "2", "--seed", "0", "--quiet"]) == 0
    err = capsys.readouterr().err
    assert f"Read x.csv as {said} (override with --as)." in err
    assert ("similar by an RBF kernel of 2 features" in err) == ("name," in text)


@pytest.mark.parametrize("name", ["d.npy", "my_rdm.csv", "pairs.csv", "people.mat"])
def test_distances_that_are_clear_by_name_or_diagonal_are_taken_as_such_and_it_is_said(truth, capsys, name):
    D = 1 - truth @ truth.T
    np.fill_diagonal(D, 0 if name == "d.npy" else np.nan)
    first, second = np.triu_indices(len(D), 1)
    if name == "d.npy":
        np.save(name, D)
    elif name == "my_rdm.csv":
        np.savetxt(name, D, delimiter=",")
    elif name == "pairs.csv":
        frame = pd.DataFrame({"item1": first, "item2": second, "distance": D[first, second]})
        frame.to_csv(name, index=False)
    else:
        savemat(name, {"RDMs": np.stack([D, D], axis=-1)})
    assert main(["discover", name, "-o", "out", *QUICK]) == 0
    said = capsys.readouterr().err
    assert f"Read {name} as " in said
    assert "dissimilarities" in said
    np.testing.assert_allclose(Discovery.load("out").similarity.values, from_dissimilarity(D).values)


def test_what_could_be_distances_is_asked_about(truth, capsys):
    D = 1 - truth @ truth.T
    np.fill_diagonal(D, np.nan)
    np.save("d.npy", D)  # small values are transitive, but nothing else speaks for distances
    np.save("rdm.npy", np.where(np.isnan(D), np.nan, 1 - D))  # called one thing, and looks like the other
    np.save("graph.npy", (D < 0.5) * 1.0)  # a zero diagonal alone could be either
    for name in ("d.npy", "rdm.npy", "graph.npy"):
        assert main(["discover", name, "-o", "out", *QUICK]) == 1
        assert "Use --as dissimilarity, or --as matrix" in capsys.readouterr().err
        assert not Path("out").exists()
    assert main(["discover", "rdm.npy", "-o", "out", "--as", "matrix", *QUICK]) == 0
    np.testing.assert_array_equal(Discovery.load("out").similarity.values, 1 - D)


def test_a_direction_that_nothing_shows_is_said(truth, capsys):
    noise = np.random.default_rng(0).random((N, N))
    for name, values, diagonal, is_said in (
        ("noise.npy", noise + noise.T, np.nan, True),
        ("similarity.npy", noise + noise.T, np.nan, False),
        ("noise-1.npy", noise + noise.T, 2.0, False),
        ("structure.npy", truth @ truth.T, np.nan, False),
    ):
        np.fill_diagonal(values, diagonal)
        np.save(name, values)
        assert main(["discover", name, "-o", f"out-{name}", *QUICK]) == 0
        assert ("If it means dissimilar, pass --as dissimilarity" in capsys.readouterr().err) is is_said


@pytest.mark.parametrize("negative", ["clip", "shift"])
def test_negative_correlations_go_through_and_what_was_done_is_said_and_kept(truth, capsys, negative):
    R = np.corrcoef(np.random.default_rng(0).normal(size=(N, 5)) + 3 * truth[:, :1])
    np.save("r.npy", R)
    assert main(["discover", "r.npy", "-o", "out", *QUICK]) == 1
    assert main(["discover", "r.npy", "-o", "out", "--negative", negative, *QUICK]) == 0
    n_negative = np.count_nonzero(R[np.triu_indices(N, 1)] < 0)
    share = n_negative / (N * (N - 1) / 2)
    found = Discovery.load("out")
    expected = np.maximum(R, 0) if negative == "clip" else (1 + R) / 2
    np.testing.assert_allclose(found.similarity.values, expected, rtol=0, atol=1e-12)
    assert found.similarity.info["n_pairs_negative"] == n_negative
    said, methods = capsys.readouterr().err, Path("out/methods.txt").read_text()
    assert f"{share:.2%}" in said
    if negative == "clip":
        assert f"Set {n_negative} negative similarities" in said
        assert f"Negative similarities ({n_negative}, " in methods
    else:
        assert "(1 + r)/2" in said
        assert "(1 + r) / 2" in methods


def test_why_features_get_an_rbf_kernel_is_said(truth, capsys):
    X = truth.copy()
    X[0, 0] = -1e-4
    np.savetxt("x.txt", X)
    assert main(["discover", "x.txt", "-o", "out", "--as", "features", *QUICK]) == 0
    said = capsys.readouterr().err
    assert "because 1 value is negative" in said
    assert "negative" in said
    assert Discovery.load("out").similarity.info["kernel"] == "rbf"
    assert (
        main(["discover", "x.txt", "-o", "out", "--overwrite", "--as", "features", "--negative", "clip", *QUICK]) == 0
    )
    assert "Set 1 negative value " in capsys.readouterr().err
    assert Discovery.load("out").similarity.info["kernel"] == "linear"
    assert "Negative feature values (1, " in Path("out/methods.txt").read_text()


# Columns and cells


@pytest.fixture
def rated(truth):
    """Ratings from 1 to 7 of pairs by two people, beside response times."""
    rng = np.random.default_rng(0)
    rows = [
        (p, NAMES[i], NAMES[j], round(1 + 6 * truth[i] @ truth[j])) for p in "xy" for i in range(N) for j in range(i)
    ]
    frame = pd.DataFrame(rows, columns=["person", "left", "right", "rating"])
    return frame.assign(RT=rng.gamma(5, 0.3, len(frame)).round(3)).astype({"rating": object})


@pytest.mark.parametrize("words", [[], ["--as", "ratings"], ["--rating", "rating"]])
@pytest.mark.parametrize("cell", ["no answer", "100%", "1,5", "?"])
def test_one_text_cell_is_named_and_makes_no_other_column_the_ratings(rated, capsys, words, cell):
    rated.loc[300, "rating"] = cell
    rated.to_csv("r.csv", index=False)
    assert main(["discover", "r.csv", "-o", "out", *words, *QUICK]) == 1
    said = capsys.readouterr().err
    assert f"Column 'rating' must hold numbers, got the text {cell!r} in row 302 (1 of {len(rated)} cells)" in said
    assert "rating in 'RT'" not in said
    assert not Path("out").exists()


def test_ratings_in_words_make_no_other_column_the_ratings(rated, capsys):
    rated.assign(rating="very similar").to_csv("r.csv", index=False)
    assert main(["discover", "r.csv", "-o", "out", *QUICK]) == 1
    assert "Column 'rating' must hold numbers, got the text 'very similar' in row 2" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["", "N/A", "#N/A", "null", "NULL", "NA", "n/a", "NaN", "None", "none", "-", "."])
def test_missing_ratings_are_left_out_and_counted(rated, capsys, missing):
    rated.loc[300, "rating"] = missing
    rated.to_csv("r.csv", index=False)
    words = ["--item1", "left", "--item2", "right", "--rating", "rating", "--low", "1", "--high", "7"]
    assert main(["similarity", "ratings", "r.csv", "s.npz", *words]) == 0
    assert f"1 of the {len(rated)} rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["RT", "rt_ms", "reaction time", "ResponseTime", "latency", "distance", "Dissimilarity"]
)
def test_times_and_distances_are_no_similarities(rated, capsys, name):
    rated.drop(columns="rating").rename(columns={"RT": name}).to_csv("r.csv", index=False)
    rated.drop_duplicates(["left", "right"])[["left", "right", "RT"]].rename(columns={"RT": name}).to_csv(
        "pairs.csv", index=False
    )
    is_distance = name[0] in "dD"
    for file in ("r.csv", "pairs.csv"):
        for words in ([], ["--as", "ratings"]):
            if is_distance and not words:
                assert main(["discover", file, "-o", "distances", "--overwrite", *QUICK]) == 0
                assert f"item1 in 'left', item2 in 'right', dissimilarity in {name!r}" in capsys.readouterr().err
                continue
            assert main(["discover", file, "-o", "out", *words, *QUICK]) == 1
            said = capsys.readouterr().err
            assert f"Column {name!r} must hold similarities" in said
            assert "--rating COLUMN" in said
            assert ("--as dissimilarity" in said) == (is_distance and file == "pairs.csv")
            assert ("reverse them" in said) == (is_distance and file == "r.csv")
    assert main(["discover", "pairs.csv", "-o", "out", "--as", "dissimilarity", *QUICK]) == 0
    assert main(["discover", "r.csv", "-o", "named", "--rating", name, *QUICK]) == 0
    assert f"Column {name!r} is read as similarities, but" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("x,y,s,t\ncat,dog,6,1\ncat,car,2,3\ndog,car,1,2\n", "--as ratings --item1 x --item2 y --rating s",
         "ratings of pairs: item1 in 'x', item2 in 'y', rating in 's'"),
        ("left,right,score,t\ncat,dog,6,1\ncat,car,2,3\ndog,car,1,2\n", "--as ratings",
         "ratings of pairs: item1 in 'left', item2 in 'right', rating in 'score'"),
        ("cue,response,n\ncat,dog,1\ndog,cat,2\ncat,cow,2\ncow,cat,1\ndog,cow,1\n", "--as associations",
         "word associations: cue in 'cue', response in 'response', count in 'n'"),
        ("a,odd,c\ncat,dog,cow\ndog,cow,cat\ncow,cat,dog\n", "--as triplets",
         "triplets, the odd one out in column 'odd'"),
    ],
)  # fmt: skip
def test_columns_are_said_though_the_kind_is_given(capsys, text, words, said):
    Path("x.csv").write_text(text)
    main(["discover", "x.csv", "-o", "out", *words.split(), *QUICK])  # three items are too few for more
    assert f"Read x.csv as {said}.\n" in capsys.readouterr().err


def test_a_text_cell_in_a_square_or_among_features_is_named(truth, capsys):
    frame = pd.DataFrame((truth @ truth.T).round(3), index=NAMES, columns=NAMES).astype(object)
    frame.iloc[2, 4] = "oops"
    frame.to_csv("s.csv")
    features = pd.DataFrame(truth.round(3), columns=["f", "g", "h"]).astype(object)
    features.loc[3, "g"] = "oops"
    features.assign(name=NAMES).to_csv("x.csv", index=False)
    for file, where in (("s.csv", "row 4 ('item 2'), column 6 ('item 4')"), ("x.csv", "row 5 (1 of 24 cells)")):
        assert main(["discover", file, "-o", "out", *QUICK]) == 1
        said = capsys.readouterr().err
        assert f"got the text 'oops' in {where}" in said
    assert "Column 'g'" in said


@pytest.mark.parametrize(("sign", "advice"), [("%", "without the % sign"), (",000", "without thousands separators")])
def test_columns_of_percentages_and_thousands_are_named(truth, capsys, sign, advice):
    S = pd.DataFrame((9 * truth @ truth.T).round().astype(int) + 1, index=NAMES, columns=NAMES)
    S.map(lambda value: f"{value}{sign}").to_csv("s.csv")
    pd.DataFrame((9 * truth).round().astype(int) + 1, index=NAMES).map(lambda value: f"{value}{sign}").rename_axis(
        "name"
    ).to_csv("x.csv")
    for file in ("s.csv", "x.csv"):
        assert main(["discover", file, "-o", "out", *QUICK]) == 1
        said = capsys.readouterr().err
        assert sign in said
        assert advice in said


def test_triplets_without_a_header_keep_their_first_row(trials):
    pd.DataFrame([[NAMES[i] for i in row] for row in trials]).to_csv("t.csv", index=False, header=False)
    assert main(["discover", "t.csv", "-o", "out", *QUICK]) == 0
    assert Discovery.load("out").similarity.info["n_triplets"] == len(trials)


@pytest.mark.parametrize("cell", ["NA", "-", "n/a", "first"])
def test_a_cell_of_triplets_that_is_no_position_is_named(trials, capsys, cell):
    frame = pd.DataFrame(trials, columns=["a", "b", "c"]).astype(object)
    frame.iloc[7, 1] = cell
    frame.to_csv("t.csv", index=False)
    assert main(["discover", "t.csv", "-o", "out", "--as", "triplets", *QUICK]) == 1
    said = capsys.readouterr().err
    assert "Column 'b' must" in said
    assert f"got the text {cell!r} in row 9" in said


def test_a_matrix_of_ratings_has_a_scale_as_a_table_has(rated, capsys):
    wide = rated.drop_duplicates(["left", "right"]).pivot_table("rating", "left", "right", aggfunc="first")
    names = sorted({*wide.index, *wide.columns})
    matrix = wide.reindex(index=names, columns=names)
    matrix = matrix.combine_first(matrix.T)
    matrix.to_csv("m.csv")
    assert main(["discover", "m.csv", "-o", "plain", *QUICK]) == 0
    said = capsys.readouterr().err
    assert "Similarities range from 1 to 7 and are not rescaled; for a rating scale, pass its ends as --low and" in said
    assert "ranged from 1 to 7 and were not rescaled" in Discovery.load("plain").methods_text()
    assert main(["discover", "m.csv", "-o", "scaled", "--low", "1", "--high", "7", *QUICK]) == 0
    assert "Ratings on a scale from 1 to 7 were rescaled to 0-1" in capsys.readouterr().err
    found = Discovery.load("scaled")
    assert "Ratings on a scale from 1 to 7 were rescaled to the range 0 to 1" in found.methods_text()
    rated.drop_duplicates(["left", "right"]).to_csv("r.csv", index=False)
    assert main(["discover", "r.csv", "-o", "long", "--low", "1", "--high", "7", *QUICK]) == 0
    assert "Ratings on a scale from 1 to 7 were rescaled to 0-1" in capsys.readouterr().err
    pairs = np.triu_indices(N, 1)
    long = Discovery.load("long").similarity
    assert found.similarity.labels == long.labels
    np.testing.assert_array_equal(found.similarity.values[pairs], long.values[pairs])
    for command in (["fit", "m.csv", "-n", "2", "-o", "w.csv"], ["rsa", "m.csv", "x.csv", "--permutations", "9"]):
        pd.DataFrame({"f": range(N)}, index=names).rename_axis("name").to_csv("x.csv")
        labels = ["--labels", "name"] if command[0] == "rsa" else []
        assert main([*command, *labels, "--low", "1", "--high", "7"]) == 0
        assert "Ratings on a scale from 1 to 7 were rescaled to 0-1" in capsys.readouterr().err


# The same similarities as the constructors make


def test_each_kind_becomes_the_similarities_of_its_constructor(truth, trials):
    np.savetxt("t.txt", trials, fmt="%d")
    pairs = [(NAMES[i], NAMES[j]) for i in range(N) for j in range(i)]
    scores = [float(truth[int(a.split()[1])] @ truth[int(b.split()[1])]) * 6 for a, b in pairs]
    ratings = pd.DataFrame(pairs, columns=["left", "right"]).assign(rating=scores, subject="a")
    ratings.to_csv("r.csv", index=False)
    X = pd.DataFrame(truth, index=NAMES, columns=list("abc"))
    X.rename_axis("name").to_csv("x.csv")
    counts = pd.DataFrame(pairs, columns=["cue", "target"]).assign(n=np.round(np.array(scores) * 10) + 1)
    both = pd.concat([counts, counts.rename(columns={"cue": "target", "target": "cue"})])
    both.to_csv("a.csv", index=False)
    columns = {"item1": "left", "item2": "right", "rating": "rating", "participant": "subject"}
    cases = {
        "t.txt": (["--weights", "counts"], from_triplets(trials, weights="counts")),
        "r.csv": (["--low", "0", "--high", "6"], from_ratings(pd.read_csv("r.csv"), **columns, low=0, high=6)),
        "x.csv": (["--kernel", "rbf"], from_features(X, kernel="rbf")),
        "a.csv": (["--absent", "zero"], from_associations(both, response="target", count="n", absent="zero")),
    }
    for name, (words, expected) in cases.items():
        assert main(["discover", name, "-o", f"out-{name}", "--no-report", *words, *QUICK]) == 0, name
        found = Discovery.load(f"out-{name}").similarity
        assert repr(found) == repr(expected)
        assert found.labels == expected.labels
        one, other = (S.values if isinstance(S.values, np.ndarray) else S.values.toarray() for S in (found, expected))
        np.testing.assert_allclose(one, other, rtol=1e-12)
        assert not Path(f"out-{name}", "report.html").exists()


def test_as_overrules_what_a_file_looks_like(truth):
    S = truth @ truth.T
    np.save("s.npy", S)
    assert main(["discover", "s.npy", "-o", "out", "--as", "features", "--kernel", "linear", *QUICK]) == 0
    np.testing.assert_allclose(Discovery.load("out").similarity.values, S @ S.T)


def test_an_option_of_one_kind_says_the_kind(trials, capsys):
    frame = pd.DataFrame(trials, columns=["a", "b", "c"]).assign(trial=1)
    frame.to_csv("t.csv", index=False)
    assert main(["discover", "t.csv", "-o", "out", "--columns", "a", "b", "c", *QUICK]) == 0
    assert "Read t.csv as triplets in columns 'a', 'b', 'c', the odd one out last." in capsys.readouterr().err


# What it writes and says


@pytest.fixture
def similarities(truth):
    Similarity(simulate.add_noise(truth @ truth.T, 0.9, random_state=0), labels=NAMES).save("S.npz")
    return "S.npz"


def program(*words, **options):
    return subprocess.run([sys.executable, "-m", "simdims", *words], capture_output=True, text=True, **options)


def test_json_is_all_that_goes_to_stdout(similarities):
    words = ["--ranks", "2:4", "--sampling", "0.6", "--repeats", "1", "--runs", "2", "--seed", "0", "--json"]
    done = program("discover", similarities, "-o", "out", *words)
    assert done.returncode == 0
    found, values = Discovery.load("out"), json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert values["n_components"] == found.n_components == values["selection"]["rank"]
    assert values["metrics"] == found.metrics
    assert values["folder"] == "out"
    assert Path(values["report"]).read_text().startswith("<!doctype html><!-- simdims report -->")
    assert len(values["findings"]) == 3
    assert [row["reliability"] for row in values["dimensions"]] == found.consensus.reliability.tolist()
    assert all(line.startswith("simdims: ") for line in done.stderr.splitlines())


def test_the_three_findings(similarities, capsys):
    words = ["--ranks", "2:4", "--sampling", "0.6", "--repeats", "1", "--runs", "2", "--seed", "0", "--quiet"]
    assert main(["discover", similarities, "-o", "out", *words]) == 0
    found = Discovery.load("out")
    number, explained, about, *places = capsys.readouterr().out.splitlines()
    assert number.startswith(f"{found.n_components} dimensions of {N} items")
    assert f"{found.metrics['explained_variance']:.1%} of the variance" in explained
    assert f"lowest {found.consensus.reliability.min():.2f}" in explained
    top = np.argsort(-found.embedding[:, 0])[:3]
    assert (
        f"dimension 1 ({found.dimensions_frame()['share'].iloc[0]:.0%}): {', '.join(NAMES[i] for i in top)};" in about
    )
    assert f"Held-out R2 {found.metrics['held_out_r2']:.3f}" in explained
    assert places == ["Results: out", "Report: out/report.html", "Seed: 0"]


@pytest.mark.parametrize("ranks", ["1:2", "2"])
def test_noise_is_said_to_be_no_evidence_before_anything_else(ranks, capsys):
    S = np.random.default_rng(0).random((30, 30))
    Similarity((S + S.T) / 2).save("noise.npz")
    words = ["discover", "noise.npz", "-o", "out", "--ranks", ranks, "--repeats", "1", "--runs", "2", "--quiet"]
    assert main([*words, "--sampling", "0.6", "--seed", "0"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("No evidence of structure: ")
    assert "clearly the best" not in said
    assert main([*words, "--sampling", "0.6", "--seed", "0", "--overwrite", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["evidence_of_structure"] is False
    assert values["findings"][0].startswith("No evidence of structure: ")
    assert values["metrics"]["held_out_r2"] < 2 * values["metrics"]["held_out_r2_standard_error"]


def seed_said(text):
    return re.search(r"^Seed: (\d+)$", text, flags=re.MULTILINE)[1]


@pytest.mark.parametrize(
    "words",
    [
        "discover S.npz -o out --ranks 2 --runs 2 --repeats 1 --overwrite --no-report",
        "discover S.npz -o out --ranks 2 --runs 2 --repeats 1 --overwrite --no-report --checkpoint work",
        "select-rank S.npz --ranks 2:3 --repeats 1 --sampling 0.6",
        "select-rank S.npz --ranks 2:3 --repeats 1 --sampling 0.6 --checkpoint work",
        "calibrate S.npz --bootstraps 3",
        "fit S.npz -n 2 -o W.csv --overwrite --max-iter 5",
        "consensus S.npz -n 2 -o W.csv --runs 2 --splits 2 --overwrite",
        "rsa S.npz properties.csv --labels name --permutations 20",
    ],
)
def test_a_seed_that_is_drawn_is_said_and_gives_the_same_again(truth, words, capsys):
    Similarity(simulate.add_noise(truth @ truth.T, 0.8, random_state=0), labels=NAMES).save("S.npz")
    pd.DataFrame({"name": NAMES, "x": np.arange(float(N))}).to_csv("properties.csv", index=False)
    command = [*words.split(), *([] if words.startswith("fit ") else ["--quiet"])]
    assert main(command) == 0
    first = capsys.readouterr().out
    written = Path("W.csv").read_bytes() if "W.csv" in words else b""
    assert main([*command, "--seed", seed_said(first)]) == 0
    assert capsys.readouterr().out == first
    assert not written or Path("W.csv").read_bytes() == written
    assert main([*command, "--seed", seed_said(first), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] == int(seed_said(first))
    if "--checkpoint" not in words:
        assert main(command) == 0
        assert seed_said(capsys.readouterr().out) != seed_said(first)


def test_pictures_are_looked_for_before_the_work(similarities, capsys):
    Path("pictures").mkdir()
    assert main(["discover", similarities, "-o", "out", "--images", "pictures", *QUICK]) == 1
    said = capsys.readouterr().err
    assert re.search("--images .*'item 0'", said)
    assert "Estimated" not in said


def test_the_page_shows_the_pictures(similarities):
    image = pytest.importorskip("PIL.Image")
    Path("pictures").mkdir()
    for place, name in enumerate(NAMES):
        image.new("L", (4, 4), place).save(f"pictures/{name}.png")
    assert main(["discover", similarities, "-o", "out", "--images", "pictures", "--title", "My items", *QUICK]) == 0
    page = Path("out/report.html").read_text()
    assert page.count("data:image/png") == N
    assert ">My items<" in page


def test_fits_on_a_device_of_torch(similarities):
    pytest.importorskip("torch")
    assert main(["discover", similarities, "-o", "out", "--device", "torch-cpu", *QUICK]) == 0
    assert Discovery.load("out").settings["device"] == "torch-cpu"
    for words in (["fit", "-n", "2"], ["consensus", "-n", "2", "--runs", "2", "--quiet"]):
        command, *rest = words
        out = ["-o", f"{command}.csv", "--device", "torch-cpu", "--seed", "0"]
        assert main([command, similarities, *rest, *out]) == 0
    words = ["--ranks", "2:3", "--sampling", "0.6", "--repeats", "1", "--quiet", "--device", "torch-cpu"]
    assert main(["select-rank", similarities, *words]) == 0


# What it never does


def test_an_earlier_result_is_replaced_only_on_request(similarities, capsys):
    assert main(["discover", similarities, "-o", "out", *QUICK]) == 0
    before = Path("out/discovery.json").read_bytes()
    assert main(["discover", similarities, "-o", "out", "--ranks", "2", "--runs", "2", "--quiet"]) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert Path("out/discovery.json").read_bytes() == before
    Path("out/notes.txt").write_text("mine")
    words = ["--overwrite", "--ranks", "2", "--runs", "2", "--quiet"]
    assert main(["discover", similarities, "-o", "out", *words]) == 0
    assert Discovery.load("out").n_components == 2
    assert Path("out/notes.txt").read_text() == "mine"


def test_a_page_of_someone_elses_is_kept(similarities, capsys):
    assert main(["discover", similarities, "-o", "out", *QUICK]) == 0
    Path("out/report.html").write_text("my own page")
    assert main(["discover", similarities, "-o", "out", "--overwrite", *QUICK]) == 1
    assert "report.html' is not an earlier report" in capsys.readouterr().err
    assert Path("out/report.html").read_text() == "my own page"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_checkpoint_and_the_same_command_goes_on(similarities, capsys, number):
    words = ["discover", similarities, "-o", "out", "--checkpoint", "work", "--seed", "0", "--sampling", "0.6"]
    words += ["--ranks", "2:8", "--repeats", "30", "--runs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "simdims", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    journal, until = Path("work/selection/journal.jsonl"), time.monotonic() + 60
    while not (journal.exists() and journal.stat().st_size) and time.monotonic() < until and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the run ended before the interrupt came")
    assert (process.returncode, out) == (128 + number, "")
    assert err.splitlines()[-1] == "simdims: interrupted; run the same command again to resume from work"
    assert "Traceback" not in err
    assert journal.exists()
    assert not Path("out").exists()
    assert "Resuming" not in err
    assert main([*words, "--quiet"]) == 0
    assert "Resuming from work" in capsys.readouterr().err
    assert Discovery.load("out").selection.n_repeats == 30


def test_findings_keep_labels_with_commas_whole(truth, capsys):
    Similarity(truth @ truth.T, labels=[f"{name}, tame" for name in NAMES]).save("S.npz")
    assert main(["discover", "S.npz", "-o", "found", *QUICK]) == 0
    about = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("Largest first"))
    assert about.count(", tame") == 9


def test_results_and_options_outlast_a_page_that_fails(similarities, monkeypatch, capsys):
    def failing(*_, **__):
        raise MemoryError("no room for the page")

    monkeypatch.setattr("simdims.discovery.result.Discovery.report", failing)
    assert main(["discover", str(similarities), "-o", "kept", *QUICK]) == 1
    assert "Results: kept. The page was not written" in capsys.readouterr().err
    assert Path("kept/run.toml").exists()
    assert Discovery.load("kept").n_components
