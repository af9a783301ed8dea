"""What a data file contains is recognised by its columns and cells, or asked about."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from simdims import Similarity, load_similarity, simulate
from simdims.io.sniffing import guess

N = 24
NAMES = [f"item {i}" for i in range(N)]
W = simulate.dirichlet(N, 3, alpha=0.3, random_state=0)
S = W @ W.T
TRIALS = np.array([np.random.default_rng(seed).choice(N, 3, replace=False) for seed in range(400)])
ROW_PAIRS = [(a, b) for a in "abcdef" for b in "abcdef" if a != b]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def found(name):
    return guess(Path(name))


def sniffed(text, name="x.csv"):
    Path(name).write_text(text)
    return found(name)


def columns(*names):
    return dict(zip(("item1", "item2", "rating", "participant"), names, strict=False))


def norms(*names):
    return dict(zip(("cue", "response", "count"), names, strict=True))


def text_of(rows, header):
    return pd.DataFrame(rows, columns=header.split(",")).to_csv(index=False)


@pytest.mark.parametrize(
    ("text", "kind", "options"),
    [
        # Lists of pairs.
        ("item1,item2,similarity\ncat,dog,0.8\ndog,car,0.1\ncat,car,0.2\n", "matrix", {}),
        ("cat,dog,0.8\ndog,car,0.1\ncat,car,0.2\ncat,bus,0\nbus,car,0.9\n", "matrix", {}),
        ("a;b;value;weight\ncat;dog;0,8;2\ndog;car;0,1;1\ncat;car;0,2;5\n", "matrix", {}),
        ("0 1 0.8\n1 2 0.1\n0 2 0.25\n2 3 0.5\n0 3 0.5\n", "matrix", {}),
        # Ratings: by their names, because pairs repeat, or because people gave them.
        ("left,right,rating\ncat,dog,6\ncat,car,2\ndog,car,1\n", "ratings", columns("left", "right", "rating")),
        ("Word1,Word2,Score\ncat,dog,6\ncat,dog,7\ncat,car,2\n", "ratings", columns("Word1", "Word2", "Score")),
        ("first,second,answer\ncat,dog,6\ncat,dog,7\ncat,car,2\n", "ratings", columns("first", "second", "answer")),
        (
            "Word 1,Word 2,Human (mean)\ncat,dog,6\ncat,dog,7\ncat,car,2\n",
            "ratings",
            columns("Word 1", "Word 2", "Human (mean)"),
        ),
        (
            "subject_id,item1,item2,similarity,rt\na,cat,dog,6,1.5\nb,cat,car,2,0.5\n",
            "ratings",
            columns("item1", "item2", "similarity", "subject_id"),
        ),
        # Response times are no weights.
        (
            "left,right,similarity,RT\ncat,dog,6,1.5\ncat,car,2,0.7\ndog,car,2,0.5\n",
            "ratings",
            columns("left", "right", "similarity"),
        ),
        # Word associations.
        ("cue,response,count\ncat,dog,3\ndog,cat,2\n", "associations", norms("cue", "response", "count")),
        ("cue,target,P\ncat,dog,.3\ndog,cat,.2\n", "associations", norms("cue", "target", "P")),
        ("person,cue,response\n1,cat,dog\n2,dog,cat\n", "associations", norms("cue", "response", False)),
        # Features.
        ("name,size,speed\ncat,1.5,3\ndog,2,4.5\n", "features", {"labels": "name"}),
        (text_of(np.c_[W, np.arange(N)], "f1,f2,f3,id"), "features", {"labels": "id"}),
    ],
)  # fmt: skip
def test_tables_are_recognised_by_their_columns(text, kind, options):
    assert sniffed(text)[:2] == (kind, options)


def test_square_tables_and_arrays_are_similarities():
    frame = pd.DataFrame(S, index=NAMES, columns=NAMES)
    frame.to_csv("both.csv")
    frame.to_csv("above.tsv", sep="\t", index=False)
    frame.to_csv("beside.csv", header=False)
    np.savetxt("plain.txt", S)
    pd.DataFrame(S).to_csv("numbered.csv")
    frame.iloc[:4, :4].to_csv("small.csv")
    np.save("s.npy", S)
    np.savez("s.npz", S)
    Similarity(S).save("own.npz")
    savemat("s.mat", {"S": S})
    Path("g.edgelist").write_text("cat dog 2\ncat car 1\n")
    gaps = S.copy()  # one side of a pair is missing, another is rounded
    gaps[0, 1] = np.nan
    gaps[2, 3] *= 1 + 1e-9
    np.save("gaps.npy", gaps)
    pd.DataFrame(gaps).to_csv("gaps.csv", header=False, index=False, na_rep="NA")
    for path in Path().iterdir():
        assert found(path).kind == "matrix", path


def test_a_square_table_with_a_word_for_a_similarity_is_square_and_the_word_is_named(tmp_path):
    path = tmp_path / "typed.csv"
    path.write_text(",a,b,c\na,1,.4,.2\nb,.4,1,oops\nc,.2,.1,1\n")
    assert guess(path).kind == "matrix"
    with pytest.raises(ValueError, match=r"'oops' in row 3 \('b'\), column 4"):
        load_similarity(path)


def test_features_are_rows_of_numbers_with_names_or_without():
    X = np.random.default_rng(0).normal(size=(N, 5))
    np.save("x.npy", X)
    np.savetxt("x.txt", X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.to_csv("plain.csv", index=False)
    frame.set_index(pd.Index(NAMES)).to_csv("indexed.csv")
    for path in Path().iterdir():
        assert found(path)[:2] == ("features", {}), path
    np.savez("x.npz", activations=X, names=np.array(NAMES))
    assert found("x.npz")[:2] == ("features", {"key": "activations"})
    frame.assign(name=NAMES).to_csv("named.csv", index=False)
    assert found("named.csv")[:2] == ("features", {"labels": "name"})


def test_triplets_have_the_same_items_in_every_column():
    named = [[NAMES[i] for i in row] for row in TRIALS]
    pd.DataFrame(named).to_csv("bare.csv", index=False, header=False)
    np.savetxt("numbers.txt", TRIALS, fmt="%d")
    np.save("t.npy", TRIALS)
    Path("named.csv").write_text(text_of(named, "a,b,c"))
    Path("positions.csv").write_text(text_of(TRIALS, "a,b,c"))
    for path in Path().iterdir():
        assert found(path)[:3] == ("triplets", {}, "triplets, the odd one out last"), path
    for place, header in enumerate(("odd,b,c", "left,odd,right", "left,right,odd")):
        assert sniffed(text_of(TRIALS, header))[:2] == ("triplets", {"odd": place})


def test_parquet_is_recognised_as_text_is():
    pytest.importorskip("pyarrow")
    pd.DataFrame({"left": ["cat"] * 2, "right": ["dog"] * 2, "rating": [6.0, 7.0]}).to_parquet("r.parquet")
    assert found("r.parquet").kind == "ratings"
    pd.DataFrame({"name": ["cat", "dog", "car"], "a": [1.0, 2, 3], "b": [4.0, 5, 7]}).to_parquet("x.parquet")
    assert found("x.parquet")[:2] == ("features", {"labels": "name"})


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("name,colour,size\ncat,black,1\ndog,brown,2\ncow,brown,3\n", "kind='matrix'"),
        ("trial,a,b,odd\n1,cat,dog,car\n2,dog,cat,bus\n", "kind='matrix'"),
        ("only\n1\n2\n", "kind='matrix'"),
        ("some words\nand more words below\n", "kind='matrix'"),
        # Rows and columns that do not name the same items.
        (",A,B,C\na,1,2,3\nb,2,1,4\nc,3,4,1\n", "different names, such as 'a' and 'A'.*kind='matrix'"),
        (",a,b\na,1,2\nb,2,1\nc,3,4\n", "3 rows and 2 columns with names of the same items.*kind='matrix'"),
        # Whole numbers could be items of pairs or triplets, or features.
        (text_of(np.c_[np.arange(len(TRIALS)), TRIALS], "trial,i,j,k"), "kind='triplets'"),
        ("".join(f"{i},{j},{(i * j) % 7 + 1}\n" for i in range(12) for j in range(i)), "kind='features'"),
        # People, cues and answers are no triplets.
        (text_of([(n, *pair) for n, pair in enumerate(ROW_PAIRS)], "id,cue,R1"), "kind='associations'"),
        # A column of counts is neither guessed nor left out.
        (text_of([(*pair, 1) for pair in ROW_PAIRS], "cue,response,R1"), "count='COLUMN', or count=False"),
        (text_of([(*pair, 1, 2, 3) for pair in ROW_PAIRS], "cue,response,R1,N,R1.Strength"), "count='COLUMN'"),
        (text_of([(*pair, 1, 2) for pair in ROW_PAIRS], "cue,response,FSG,BSG"), "count='COLUMN'"),
        (text_of([(*pair, "N", 3, 4) for pair in ROW_PAIRS], "word1,word2,POS,SimLex,conc"), "rating='COLUMN'"),
    ],
)
def test_what_could_be_several_things_is_asked(text, option):
    with pytest.raises(
        ValueError,
        match=rf"^(x\.csv: .* could be any of several columns|Cannot tell what 'x\.csv' contains: ).*{option}",
    ):
        sniffed(text)


@pytest.mark.parametrize("other", [[], ["old"]])
def test_a_table_with_one_row_per_person_is_not_read_as_features_of_people(other):
    wide = [(f"P{person}", *other, *range(person, person + 12)) for person in range(9)]
    header = ",".join(["participant", *(["age group"] if other else []), *(f"cat - dog{k}" for k in range(12))])
    with pytest.raises(
        ValueError, match=r"one row per person \(in 'participant'\).*kind='features'.*one judgement per row"
    ):
        sniffed(text_of(wide, header))
