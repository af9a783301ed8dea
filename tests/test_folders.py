"""Folders with one file per system: what is read, how files and rows are matched, and errors that name the file."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform

from simdims import ParameterError, SimilaritySet, as_similarity, from_dissimilarity

ITEMS = ["cat", "dog", "car", "bus", "tree"]


def table(seed, items=ITEMS):
    points = np.random.default_rng(seed).normal(size=(len(items), 3))
    values = np.exp(-squareform(pdist(points)))
    return pd.DataFrame(values, index=items, columns=items)


@pytest.fixture
def folder(tmp_path):
    for number in (1, 2, 10):
        table(number).to_csv(tmp_path / f"sub-{number}.csv")
    return tmp_path


def test_each_file_is_a_system_in_natural_order(folder):
    as_similarity(table(11)).save(folder / "sub-11.npz")
    table(12).rename_axis("i").reset_index().melt("i").to_csv(folder / "sub-12.csv", index=False)
    np.savetxt(folder / ".hidden.csv", np.eye(3))
    made = SimilaritySet.load(folder)
    assert made.names == ("sub-1", "sub-2", "sub-10", "sub-11", "sub-12")
    assert set(made.labels) == set(ITEMS)
    for name, S in made.items():
        expected = table(int(name.removeprefix("sub-"))).loc[list(S.labels), list(S.labels)].to_numpy(copy=True)
        known = ~np.isnan(S.values)
        np.testing.assert_allclose(S.values[known], expected[known])
        assert known[~np.eye(5, dtype=bool)].all()


def test_items_without_a_value_are_lacking_with_and_without_names(folder):
    short = table(2)
    short.loc["car"] = short["car"] = np.nan
    short.to_csv(folder / "sub-2.csv")
    made = SimilaritySet.load(folder)
    assert made["sub-2"].labels == ("cat", "dog", "bus", "tree")
    assert made.labels == tuple(ITEMS)
    for file in folder.iterdir():
        np.save(file.with_suffix(".npy"), pd.read_csv(file, index_col=0).to_numpy())
        file.unlink()
    plain = SimilaritySet.load(folder)
    assert plain.labels is None
    np.testing.assert_array_equal(plain.positions[1], [0, 1, 3, 4])
    np.testing.assert_allclose(plain["sub-2"].values, made["sub-2"].values)


@pytest.mark.parametrize("where", ["participants.tsv", "elsewhere", "frame"])
def test_a_table_beside_the_files_becomes_info(folder, tmp_path_factory, where):
    rows = pd.DataFrame(
        {
            "id": ["sub-10", "sub-1.csv", "sub-2"],
            "age": [30, np.nan, 25],
            "day": ["2024-03-01", "2024-01-01", "2024-02-01"],
        }
    )
    if where == "frame":
        given = rows.assign(day=pd.to_datetime(rows["day"])).set_index("id")
    else:
        given = folder / where if "." in where else tmp_path_factory.mktemp("other") / "ages.tsv"
        rows.to_csv(given, sep="\t", index=False)
    made = SimilaritySet.load(folder, info=None if where == "participants.tsv" else given)
    assert list(made.info.index) == ["sub-1", "sub-2", "sub-10"]
    np.testing.assert_array_equal(made.info["age"], [np.nan, 25, 30])
    assert made.info["day"].dt.month.tolist() == [1, 2, 3]


def test_numbers_as_names_stay_text(tmp_path):
    for name in ("007", "010"):
        table(0).to_csv(tmp_path / f"{name}.csv")
    (tmp_path / "info.csv").write_text("id,group\n010,a\n007,b\n")
    assert SimilaritySet.load(tmp_path).info["group"].to_dict() == {"007": "b", "010": "a"}


def test_a_folder_of_dissimilarities_is_read_with_by(folder):
    for number in (1, 2, 10):
        (-np.log(table(number))).round(12).to_csv(folder / f"sub-{number}.csv")
    (folder / "info.csv").write_text("id,group\nsub-1,a\nsub-2,b\nsub-10,b\n")
    made = from_dissimilarity(folder, by="person")
    assert made.names == ("sub-1", "sub-2", "sub-10")
    assert made.info["group"].tolist() == ["a", "b", "b"]
    distances = -np.log(table(2).to_numpy())
    expected = 1 - distances / distances.max()
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(made["sub-2"].values, expected, atol=1e-10)
    with pytest.warns(UserWarning, match=r"3 of 3 files look like dissimilarities: sub-1\.csv"):
        SimilaritySet.load(folder)
    with pytest.raises(ParameterError, match="by must say what the files of a folder are"):
        from_dissimilarity(folder)
    table(2).to_csv(folder / "sub-2.csv")
    with pytest.raises(ParameterError, match=r"^sub-2\.csv: .*zero diagonal"):
        from_dissimilarity(folder, by="person")


def test_options_apply_to_all_files_and_others_are_refused(folder):
    made = SimilaritySet.load(folder, low=0, high=2)
    np.testing.assert_allclose(made["sub-1"].values, table(1) / 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lowest'"):
        SimilaritySet.load(folder, lowest=0)
    made.save(folder / "set.npz")
    with pytest.raises(ParameterError, match="low must be None unless path= is a folder"):
        SimilaritySet.load(folder / "set.npz", low=0)


def test_other_files_and_rows_without_a_file_are_pointed_out(folder):
    (folder / "README.md").write_text("about")
    (folder / "raw").mkdir()
    (folder / "info.csv").write_text("id,age\nsub-1,1\nsub-2,2\nsub-3,3\nsub-10,10\n")
    with (
        pytest.warns(UserWarning, match=r"README\.md, raw"),
        pytest.warns(UserWarning, match="1 row without a file: sub-3"),
    ):
        SimilaritySet.load(folder)


def damaged(path):
    (path / "sub-3.csv").write_text(",a,b\na,1,x\nb,x,1\n")


def empty(path):
    (path / "sub-3.csv").write_text("")


def no_pair(path):
    pd.DataFrame(np.eye(2) + [[0, np.nan], [np.nan, 0]], index=["cat", "dog"], columns=["cat", "dog"]).to_csv(
        path / "sub-3.csv"
    )


def apart(path):
    table(3, ["x", "y", "z"]).to_csv(path / "sub-3.csv")


def twice(path):
    np.save(path / "sub-2.npy", table(2))


def no_row(path):
    (path / "info.csv").write_text("id,age\nsub-1,1\nsub-10,10\n")


def two_rows(path):
    (path / "info.csv").write_text("id,age\nsub-1,1\nsub-1,2\nsub-2,2\nsub-10,10\n")


def two_tables(path):
    for name in ("info.csv", "participants.tsv"):
        (path / name).write_text("id,age\nsub-1,1\nsub-2,2\nsub-10,10\n")


def nothing(path):
    for file in path.iterdir():
        file.unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damaged, r"sub-3\.csv: .*'x'"),
        (empty, r"sub-3\.csv.*empty"),
        (no_pair, r"sub-3"),
        (apart, r"must share items.*none in common between 'sub-1' and 'sub-3'"),
        (twice, r"'sub-2\.csv' and 'sub-2\.npy'"),
        (no_row, r"info\.csv: info must have a row for each file.*none for 'sub-2\.csv'"),
        (two_rows, r"info\.csv: info must have one row per system, got several for 'sub-1'"),
        (two_tables, r"info must be given .*'info\.csv', 'participants\.tsv'"),
        (nothing, r"path must hold one file of similarities per system"),
    ],
)
def test_errors_name_the_file(folder, spoil, words):
    spoil(folder)
    with pytest.raises(ValueError, match=words):
        SimilaritySet.load(folder)
