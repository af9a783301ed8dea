"""Files of other programs, each written by that program's library or by one that is widely used for it."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import refused
from scipy import sparse
from scipy.io import savemat
from scipy.spatial.distance import squareform

from simdims import (
    Similarity,
    SimilaritySet,
    as_similarity,
    from_dissimilarity,
    from_features,
    load_similarity,
    simulate,
)
from simdims.cli import main
from simdims.io.frames import read_frame
from simdims.io.raw import read_trials
from simdims.io.sniffing import guess
from simdims.io.tables import Reading

NAMES = ["cat", "dog", "car", "bus", "van"]
N = len(NAMES)
W = simulate.dirichlet(N, 2, alpha=0.5, random_state=0)
S = W @ W.T
SQUARE = pd.DataFrame(S, index=NAMES, columns=NAMES)
FIRST, SECOND = np.triu_indices(N, 1)
PAIRS = pd.DataFrame(
    {"item1": np.array(NAMES)[FIRST], "item2": np.array(NAMES)[SECOND], "similarity": S[FIRST, SECOND]}
)
FEATURES = pd.DataFrame({"word": NAMES, "size": [1.0, 2, 3, 4, 5], "speed": [5.0, 4, 3, 2, 0]})
RATINGS = pd.DataFrame(
    {"left": PAIRS["item1"], "right": PAIRS["item2"], "rating": range(1, 11), "participant": ["p1"] * 5 + ["p2"] * 5}
)


# pandas 4 will not have this option.
pytestmark = pytest.mark.filterwarnings("ignore:.*infer_string")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys):
    def command(*words):
        capsys.readouterr()
        status = main(list(map(str, words)))
        out, err = capsys.readouterr()
        return status, out, err

    return command


# --- spreadsheets -------------------------------------------------------------------------------------------------


def write_sheets(path, **sheets):
    """Write tables into one file with the library of its type: openpyxl for .xlsx, odfpy for .ods."""
    suffix = Path(path).suffix
    pytest.importorskip("openpyxl" if suffix == ".xlsx" else "odf")
    with pd.ExcelWriter(path, engine="openpyxl" if suffix == ".xlsx" else "odf") as file:
        for name, table in sheets.items():
            is_square = table.index.dtype.kind not in "iu"
            table.to_excel(file, sheet_name=name, index=is_square)
    return path


@pytest.fixture(params=[".xlsx", ".ods"])
def kind(request):
    return request.param


def test_a_sheet_of_a_square_or_of_pairs_is_read_as_a_csv_file_is(kind):
    SQUARE.to_csv("s.csv")
    for table in (SQUARE, PAIRS):
        found = load_similarity(write_sheets(f"s{kind}", table=table))
        assert found.labels == tuple(NAMES)
        known = ~np.isnan(found.values)
        np.testing.assert_allclose(found.values[known], S[known], rtol=1e-14)
        assert "sheet 'table'" in found.info["found"]
    assert guess(Path(f"s{kind}")).kind == "matrix"


def test_the_sheet_is_chosen_by_name_and_must_be_where_several_have_cells(kind):
    path = write_sheets(f"s{kind}", trials=RATINGS, matrix=SQUARE)
    np.testing.assert_allclose(load_similarity(path, sheet="matrix").values, S, rtol=1e-14)
    with refused("sheet", "'trials', 'matrix'"):
        load_similarity(path)
    with refused("sheet", "'other'"):
        load_similarity(path, sheet="other")
    assert guess(Path(path), Reading("trials")).kind == "ratings"


def test_sheets_without_cells_need_no_choice(kind):
    path = write_sheets(f"s{kind}", matrix=SQUARE, notes=pd.DataFrame())
    assert load_similarity(path).labels == tuple(NAMES)
    with pytest.raises(ValueError, match="must contain a table"):
        load_similarity(write_sheets(f"e{kind}", notes=pd.DataFrame()))


def test_errors_name_the_row_as_the_spreadsheet_numbers_it():
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row, cells in enumerate([("item1", "item2", "similarity"), ("cat", "dog", 0.5), ("dog", "car", "high")]):
        for column, cell in enumerate(cells):
            book.active.cell(5 + row, 3 + column, cell)  # below and right of blank cells
    book.save("s.xlsx")
    with pytest.raises(ValueError, match=r"'high' in row 7"):
        load_similarity("s.xlsx")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0,5", "2", 1, "1,234"], [0.5, 2, 1, 1.234]),
        (["0,5", 0.25, 1, 2], "'0,5' in row 2.*decimal point"),
        (["1,235", "1,234", "1,500", 2], "unambiguous, got '1,235'"),
        (["1,235", "1,234", "1,500", "3,100"], "unambiguous, got '1,235'"),
    ],
)
def test_decimal_commas_in_texts_of_a_sheet_are_read_unless_they_could_separate_thousands(kind, cells, expected):
    table = pd.DataFrame({"left": list("abcd"), "right": list("bcda"), "rating": pd.Series(cells, dtype=object)})
    path = write_sheets(f"r{kind}", trials=table)
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            read_trials(Path(path), ["left", "right"], "rating")
    else:
        np.testing.assert_array_equal(read_trials(Path(path), ["left", "right"], "rating")["rating"], expected)


def test_cells_of_a_sheet_are_what_a_csv_file_of_it_has():
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["item", 1, 2.0])  # whole numbers name items, however they are stored
    book.active.append([1, 1, None])
    book.active.append([2, "#N/A", 1])
    book.active.append([None, None, " "])
    book.save("s.xlsx")
    found = load_similarity("s.xlsx")
    assert found.labels == ("1", "2")
    np.testing.assert_array_equal(found.values, [[1, np.nan], [np.nan, 1]])


def test_repeated_cells_and_comments_of_a_sheet_are_read_as_they_show():
    pytest.importorskip("odf")
    from odf.office import Annotation
    from odf.opendocument import OpenDocumentSpreadsheet
    from odf.table import Table, TableCell, TableRow
    from odf.text import P, S

    def cell(text=None, value=None, **repeats):
        made = TableCell(valuetype="string" if value is None else "float", value=value, **repeats)
        if text is not None:
            made.addElement(P(text=text))
        return made

    document, table = OpenDocumentSpreadsheet(), Table(name="one")
    header, commented = TableRow(), TableCell(valuetype="string")
    note = Annotation()
    note.addElement(P(text="a comment"))
    commented.addElement(note)
    spaced = P(text="big")
    spaced.addElement(S(c=2))
    spaced.addText("dog")
    commented.addElement(spaced)
    for one in (cell("item"), cell("cat"), commented):
        header.addElement(one)
    table.addElement(header)
    for name in ("cat", "big  dog"):
        row = TableRow()
        row.addElement(cell(name))
        row.addElement(cell("0.5", value=0.5, numbercolumnsrepeated=2))
        row.addElement(cell(numbercolumnsrepeated=16381))
        table.addElement(row)
    table.addElement(TableRow(numberrowsrepeated=1048000))
    document.spreadsheet.addElement(table)
    document.save("s.ods")
    found = load_similarity("s.ods")
    assert found.labels == ("cat", "big  dog")
    np.testing.assert_array_equal(found.values, np.full((2, 2), 0.5))


@pytest.mark.parametrize("attribute", ["columns", "rows"])
def test_an_ods_file_that_claims_more_cells_than_there_can_be_is_refused(attribute):
    path = write_sheets("s.ods", matrix=SQUARE)
    import zipfile

    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    tag = b"<table:table-cell " if attribute == "columns" else b"<table:table-row>"
    claim = f'table:number-{attribute}-repeated="99999999999"'.encode()
    assert tag in parts["content.xml"]
    new = tag.rstrip(b" >") + b" " + claim + (b" " if attribute == "columns" else b">")
    parts["content.xml"] = parts["content.xml"].replace(tag, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises((ValueError, MemoryError), match=r"must be a valid \.ods|would need"):
        load_similarity(path)


# --- tables of R and Arrow ----------------------------------------------------------------------------------------


def r_file(name):
    """A file that R wrote, among those that rdata is tested with."""
    rdata = pytest.importorskip("rdata")
    path = Path(str(rdata.TESTDATA_PATH), name)
    if not path.exists():
        pytest.skip(f"this version of rdata comes without {name}")
    return path


def write_feather(table, path):
    pytest.importorskip("pyarrow")
    table.to_feather(path)


def plain(table):
    """The table with texts as objects, as rdata and anndata write them with every version of pandas."""
    return table.astype({name: object for name, dtype in table.dtypes.items() if dtype.kind not in "biuf"})


def write_rds(table, path):
    pytest.importorskip("rdata").write_rds(path, plain(table))


@pytest.mark.parametrize(("suffix", "write"), [(".feather", write_feather), (".rds", write_rds)])
def test_tables_of_arrow_and_r_are_read_as_a_csv_file_is(suffix, write):
    labelled = SQUARE.reset_index(names="item")
    for table in (labelled, PAIRS):
        write(table, f"s{suffix}")
        found = load_similarity(f"s{suffix}")
        assert found.labels == tuple(NAMES)
        known = ~np.isnan(found.values)
        np.testing.assert_array_equal(found.values[known], S[known])
    write(RATINGS, f"r{suffix}")
    assert guess(Path(f"r{suffix}")).options["participant"] == "participant"
    write(FEATURES, f"f{suffix}")
    assert guess(Path(f"f{suffix}")).options == {"labels": "word"}


def test_data_frames_and_matrices_that_r_wrote_keep_their_names():
    frame = read_frame(r_file("generated/test_dataframe_rownames__binary__version_3.rds"), None)
    assert list(frame.index) == ["Madrid", "Frankfurt", "Herzberg am Harz"]
    assert list(frame["class"]) == ["a", "b", "b"]  # a factor
    matrix = read_frame(r_file("generated/test_full_named_matrix__binary__version_3.rds"), None)
    np.testing.assert_array_equal(matrix.to_numpy(), [[1, 2, 3], [4, 5, 6]])
    assert list(matrix.columns) == ["dim1_0", "dim1_1", "dim1_2"]
    values = read_frame(r_file("test_dataframe.rda"), None)["value"]
    assert values.tolist() == [1, 2, 3]
    assert values.dtype.kind == "i"
    assert read_frame(r_file("generated/test_dataframe_dtypes_with_na__binary__version_3.rds"), None)["int"].isna()[3]


def test_one_of_several_objects_of_r_is_chosen_by_key():
    rdata = pytest.importorskip("rdata")
    rdata.write_rda("s.rda", {"pairs": plain(PAIRS), "trials": plain(RATINGS), "note": "x"})
    found = load_similarity("s.rda", key="pairs")
    assert found.labels == tuple(NAMES)
    assert guess(Path("s.rda"), Reading(key="trials")).kind == "ratings"
    with refused("key", "pairs, trials"):
        load_similarity("s.rda")
    with refused("key", "note"):
        load_similarity("s.rda", key="note")
    rdata.write_rds("n.rds", ["a", "b"])
    with pytest.raises(ValueError, match="data frame, a matrix or a dist"):
        load_similarity("n.rds")


def test_what_dist_of_r_returns_are_labelled_dissimilarities():
    rdata = pytest.importorskip("rdata")
    from rdata.conversion import to_r

    points = np.random.default_rng(0).normal(size=(N, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    # R keeps the lower triangle, column by column.
    lower = np.concatenate([distances[k + 1 :, k] for k in range(N)])

    def as_dist(_, converter):
        attributes = {"Size": np.array([N]), "Labels": np.array(NAMES), "class": np.array(["dist"])}
        plain_object = converter.convert_to_r_object(lower)
        described = converter.convert_to_r_attributes(attributes)
        return to_r.build_r_object(
            plain_object.info.type, value=plain_object.value, is_object=True, attributes=described
        )

    class Dist:
        pass

    rdata.write_rds("d.rds", Dist(), constructor_dict={Dist: as_dist})
    found = from_dissimilarity("d.rds")
    assert found.labels == tuple(NAMES)
    np.testing.assert_allclose(found.values, 1 - distances / distances.max(), atol=1e-12)


# --- AnnData ------------------------------------------------------------------------------------------------------


@pytest.fixture
def anndata():
    with pd.option_context("future.infer_string", False):  # texts as anndata writes them with every version of pandas
        yield pytest.importorskip("anndata")


@pytest.fixture
def annotated(anndata):
    observations = pd.DataFrame(
        {"kind": pd.Categorical(["a", "b", "a", "b", "a"])}, index=pd.Index(NAMES, dtype=object)
    )
    return anndata.AnnData(FEATURES[["size", "speed"]].to_numpy(), obs=observations)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_pairs_of_observations_are_read_from_objects_and_files(annotated, stored):
    annotated.obsp["similarity"] = stored(S)
    annotated.write_h5ad("s.h5ad")
    absent = None if stored is np.asarray else "zero"
    for found in (as_similarity(annotated, absent=absent), load_similarity("s.h5ad", absent=absent)):
        assert found.labels == tuple(NAMES)
        np.testing.assert_allclose(found.to_frame().to_numpy(), S, rtol=1e-12)


def test_one_of_several_matrices_of_pairs_is_named(annotated):
    annotated.obsp["similarity"] = S
    annotated.obsp["distances"] = sparse.csr_matrix(1 - np.eye(N))
    annotated.write_h5ad("s.h5ad")
    np.testing.assert_array_equal(
        load_similarity("s.h5ad", key="similarity").values, load_similarity("s.h5ad", key="obsp/similarity").values
    )
    with refused("key", "obsp/distances", "obsp/similarity"):
        load_similarity("s.h5ad")
    with refused("AnnData", "'distances'", "data.obsp[NAME]"):
        as_similarity(annotated)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_matrix])
def test_x_are_features_of_the_observations(annotated, stored, run):
    annotated.X = stored(annotated.X)
    annotated.write_h5ad("x.h5ad")
    expected = from_features(FEATURES.set_index("word"))
    found = from_features(annotated)
    assert found.labels == tuple(NAMES)
    np.testing.assert_allclose(found.values, expected.values)
    assert guess(Path("x.h5ad")).kind == "features"
    assert run("similarity", "features", "x.h5ad", "x.npz")[0] == 0
    assert load_similarity("x.npz").labels == tuple(NAMES)
    np.testing.assert_allclose(load_similarity("x.npz").values, expected.values)


def test_similarities_come_back_from_anndata(anndata):
    listed = sparse.csr_array(np.triu(S))
    weights = sparse.csr_array((np.arange(1.0, 16), listed.nonzero()), shape=(N, N))
    for given in (
        Similarity(S, NAMES),
        Similarity(S, NAMES, weights=S),
        Similarity(listed, NAMES, weights, absent=0.5),
    ):
        given.to_anndata().write_h5ad("s.h5ad")
        back = as_similarity(anndata.read_h5ad("s.h5ad"))
        assert (back.labels, back.absent) == (given.labels, given.absent)
        pd.testing.assert_frame_equal(back.to_frame(), given.to_frame())
        assert (back.weights is None) == (given.weights is None)
        if given.weights is not None:
            np.testing.assert_array_equal(_full(back.weights), _full(given.weights))


def _full(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


# --- xarray -------------------------------------------------------------------------------------------------------


def test_data_arrays_are_read_with_their_coordinates_and_come_back():
    xarray = pytest.importorskip("xarray")
    given = Similarity(np.where(np.eye(N), np.nan, S), NAMES)
    array = given.to_xarray()
    assert (array.dims, list(array["item1"].values)) == (("item1", "item2"), NAMES)
    for one in (array, array.isel(item2=[3, 1, 0, 2, 4])):  # labels are aligned, as those of a DataFrame
        back = as_similarity(one)
        assert back.labels == tuple(NAMES)
        np.testing.assert_array_equal(back.values, given.values)
    assert as_similarity(xarray.DataArray(S)).labels is None
    features = xarray.DataArray(FEATURES[["size", "speed"]], {"word": NAMES}, ("word", "feature"))
    assert from_features(features).labels == tuple(NAMES)
    distances = from_dissimilarity(xarray.DataArray(1 - np.eye(N), {"a": NAMES, "b": NAMES}, ("a", "b")))
    assert distances.labels == tuple(NAMES)


def test_a_data_array_of_several_systems_has_them_first_and_comes_back():
    pytest.importorskip("xarray")
    people = SimilaritySet({"Anna": SQUARE, "Ben": SQUARE.iloc[1:, 1:]})
    array = people.to_xarray()
    assert array.dims == ("system", "item1", "item2")
    assert np.isnan(array.sel(system="Ben", item1="cat")).all()
    back = SimilaritySet(array)
    assert (back.names, back.labels) == (people.names, people.labels)
    assert back["Ben"].labels == tuple(NAMES[1:])


# --- rsatoolbox ---------------------------------------------------------------------------------------------------


def test_descriptors_of_an_rdm_are_kept_both_ways():
    rdm = pytest.importorskip("rsatoolbox.rdm")
    given = rdm.RDMs(
        squareform(1 - S, checks=False)[None],
        dissimilarity_measure="euclidean",
        descriptors={"experiment": "faces"},
        rdm_descriptors={"subject": ["s01"], "run": [3]},
        pattern_descriptors={"stimulus": NAMES, "category": ["animal", "animal", "thing", "thing", "thing"]},
    )
    S1 = as_similarity(given)
    assert S1.labels == tuple(NAMES)
    assert S1.info["descriptors"] == {"experiment": "faces"}
    assert S1.info["rdm_descriptors"] == {"subject": "s01", "run": 3}
    assert S1.info["pattern_descriptors"] == {"category": ["animal", "animal", "thing", "thing", "thing"]}
    S1.save("s.npz")  # they are plain values
    back = load_similarity("s.npz").to_rsatoolbox()
    assert back.descriptors["experiment"] == "faces"
    assert list(back.rdm_descriptors["subject"]) == ["s01"]
    assert list(back.pattern_descriptors["category"]) == ["animal", "animal", "thing", "thing", "thing"]
    assert list(back.pattern_descriptors["labels"]) == NAMES


def test_sets_of_systems_become_rdms_with_their_info_and_come_back(tmp_path):
    rdm = pytest.importorskip("rsatoolbox.rdm")
    ben = pd.DataFrame(S + np.eye(N), NAMES, NAMES).iloc[1:, 1:]
    people = SimilaritySet({"Anna": SQUARE, "Ben": ben}, info={"age": [31, 25], "group": ["a", "b"]})
    rdms = people.to_rsatoolbox()
    assert rdms.n_rdm == 2
    assert list(rdms.rdm_descriptors["name"]) == ["Anna", "Ben"]
    rdms.save(str(tmp_path / "rdms.h5"), file_type="hdf5")
    for one in (rdms, rdm.load_rdm(str(tmp_path / "rdms.h5"))):
        back = SimilaritySet(one)
        assert back.names == ("Anna", "Ben")
        assert back["Ben"].labels == tuple(NAMES[1:])
        assert list(back.info["age"]) == [31, 25]
        assert list(back.info.columns) == ["age", "group"]
        for name, system in back.items():
            np.testing.assert_allclose(system.values, people[name].values, atol=1e-12)


# --- Meadows ------------------------------------------------------------------------------------------------------

MA = {
    name: np.random.default_rng(seed).uniform(0.1, 1, N * (N - 1) // 2) for seed, name in enumerate(("a-fly", "b-koi"))
}
FILES = [f"{name}.png" for name in NAMES]


def task(name, pairs, items=NAMES):
    stimuli = [{"id": f"x{k}", "name": item} for k, item in enumerate(items)]
    return {"task": {"name": name, "task_type": "multiarrange"}, "stimuli": stimuli, "rdm": list(pairs), "trials": []}


def meadows_reads(path):
    """What rsatoolbox reads of the same file, as a stack of matrices of the items in the order of NAMES."""
    meadows = pytest.importorskip("rsatoolbox.io.meadows")
    rdms = meadows.load_rdms(path, sort=False)
    assert list(rdms.pattern_descriptors["conds"]) == NAMES
    return rdms.get_matrices(), list(rdms.rdm_descriptors["participant"])


def test_one_and_several_arrangements_of_meadows_are_read_as_rsatoolbox_reads_them():
    savemat("Meadows_myExp_v_v1_cuddly-bunny_3_1D.mat", {"rdmutv": MA["a-fly"][None], "stimuli": np.array(FILES)})
    several = {f"rdmutv_{name.replace('-', '_')}": pairs[None] for name, pairs in MA.items()}
    several |= {f"stimuli_{name.replace('-', '_')}": np.array(FILES) for name in MA}
    savemat("Meadows_myExp_v_v1_arrangement_1D.mat", several)
    tree = {
        "participation": {},
        "tasks": [{"task": {"name": "consent"}}, *(task(f"ma{k}", MA[n]) for k, n in enumerate(MA))],
    }
    Path("Meadows_two_v_v1_informed-mole_tree.json").write_text(json.dumps(tree))
    for path in sorted(Path().iterdir()):
        stack, people = meadows_reads(str(path))
        found, expected = from_dissimilarity(path), from_dissimilarity(stack)
        assert found.labels == tuple(NAMES)
        np.testing.assert_allclose(found.values, expected.values)
        if len(people) > 1:
            apart = from_dissimilarity(path, by="person")
            names = people if path.suffix == ".mat" else ["ma0", "ma1"]
            assert list(apart.names) == names
            np.testing.assert_allclose(apart[0].values[FIRST, SECOND], 1 - stack[0][FIRST, SECOND] / stack[0].max())


def test_a_tree_of_several_participants_names_them_and_aligns_their_stimuli():
    shuffled = [NAMES[k] for k in (3, 0, 1)]
    tree = {"a-fly": {"tasks": [task("ma", MA["a-fly"])]}, "b-koi": {"tasks": [task("ma", [0.1, 0.2, 0.3], shuffled)]}}
    Path("tree.json").write_text(json.dumps(tree))
    apart = from_dissimilarity("tree.json", by="person")
    assert apart.names == ("a-fly", "b-koi")
    assert apart["b-koi"].labels == ("cat", "dog", "bus")
    np.testing.assert_allclose(apart["b-koi"].to_frame().loc["bus", ["cat", "dog"]], [1 - 1 / 3, 1 - 2 / 3])


def test_similarities_of_meadows_are_noticed_to_be_dissimilarities(run):
    Path("tree.json").write_text(json.dumps({"tasks": [task("ma", MA["a-fly"])]}))
    with pytest.warns(UserWarning, match="dissimilar"):
        load_similarity("tree.json")
    status, _, err = run(
        "discover", "tree.json", "-o", "out", "--ranks", "1", "--runs", "2", "--seed", "0", "--no-report"
    )
    assert status == 0, err
    assert "which become similarities 1 - d/max(d)" in err


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"tasks": []}', '{"tasks": [{"rdm": [1], "stimuli": 3}]}', "{", '{"a": 1}']
)
def test_other_json_files_are_refused(content):
    Path("x.json").write_text(content)
    with pytest.raises(ValueError, match=r"must be a (tree of Meadows|valid Meadows)"):
        load_similarity("x.json")


# --- lists of dissimilarities -------------------------------------------------------------------------------------

LISTED = pd.DataFrame(
    {
        "participant": ["p1", "p1", "p1", "p2", "p2", "p2"],
        "left": ["cat", "dog", "cat", "dog", "car", "car"],
        "right": ["dog", "car", "car", "cat", "dog", "cat"],
        "distance": [1.0, 2.0, 4.0, 3.0, np.nan, 4.0],
        "rt": [500, 510, 520, 530, 540, 550],
    }
)
COLUMNS = {"item1": "left", "item2": "right", "dissimilarity": "distance"}


def test_a_list_of_dissimilarities_is_averaged_over_its_participants(run):
    LISTED.to_csv("d.csv", index=False)
    expected = 1 - np.array([[0, 2, 4], [2, 0, 2], [4, 2, 0]]) / 4  # cat, dog, car
    for D in (LISTED, LISTED.to_dict("list"), "d.csv"):
        found = from_dissimilarity(D, **COLUMNS, participant="participant", labels=["cat", "dog", "car"])
        np.testing.assert_array_equal(found.values, expected)
        assert found.info["n_people"] == 2
    assert guess(Path("d.csv")).options == {**COLUMNS, "participant": "participant"}
    options = [word for role, name in {**COLUMNS, "participant": "participant"}.items() for word in (f"--{role}", name)]
    assert run("similarity", "dissimilarity", "d.csv", "d.npz", *options)[0] == 0
    np.testing.assert_array_equal(load_similarity("d.npz")[["cat", "dog", "car"]].values, expected)


def test_a_list_of_dissimilarities_is_kept_apart_by_any_column():
    apart = from_dissimilarity(LISTED, **COLUMNS, by="participant")
    assert apart.names == ("p1", "p2")
    assert apart["p2"].to_frame().loc["cat", "dog"] == 1 - 3 / 4
    with refused("dissimilarity", "None"):
        from_dissimilarity(LISTED, item1="left", item2="right")
    with refused("D", "item1"):
        from_dissimilarity(LISTED, by="participant")  # five columns


def test_discover_reads_a_list_of_dissimilarities_as_such(run):
    pairs = PAIRS[["item1", "item2"]].set_axis(["left", "right"], axis=1).assign(distance=MA["a-fly"], rt=500)
    both = [pairs.assign(participant=name, distance=MA[key]) for name, key in (("p1", "a-fly"), ("p2", "b-koi"))]
    listed = pd.concat(both)
    listed.to_csv("d.csv", index=False)
    quick = ["--ranks", "1", "--runs", "2", "--seed", "0", "--no-report", "--quiet"]
    status, _, err = run("discover", "d.csv", "-o", "out", *quick)
    assert status == 0, err
    assert "dissimilarity in 'distance'" in err
    assert "participant in 'participant'" in err
    listed.rename(columns={"distance": "x"}).to_csv("x.csv", index=False)
    words = [
        "--as",
        "dissimilarity",
        "--item1",
        "left",
        "--item2",
        "right",
        "--dissimilarity",
        "x",
        "--by",
        "participant",
    ]
    status, _, err = run("discover", "x.csv", "-o", "apart", *words, *quick)
    assert status == 0, err
    assert "2 systems" in err


# --- marks of missing values --------------------------------------------------------------------------------------

MARKED = SQUARE.copy()
MARKED.iloc[0, 1] = MARKED.iloc[1, 0] = -99


def square_files():
    """A square table with -99 for a missing pair, in every type of table."""
    MARKED.to_csv("s.csv")
    MARKED.to_csv("e.csv", sep=";", decimal=",")
    yield from ("s.csv", "e.csv")
    labelled = MARKED.reset_index(names="item")
    for name, module, write in (
        ("s.xlsx", "openpyxl", lambda path: MARKED.to_excel(path)),
        ("s.parquet", "pyarrow", labelled.to_parquet),
        ("s.feather", "pyarrow", labelled.to_feather),
        ("s.rds", "rdata", lambda path: write_rds(labelled, path)),
    ):
        if module in sys.modules or pytest.importorskip(module):
            write(name)
            yield name


@pytest.mark.parametrize("mark", [-99, "-99", -99.0, ["missing", "-99.0"]])
def test_further_marks_of_missing_values_hold_in_every_table(mark):
    for path in square_files():
        found = load_similarity(path, na_values=mark)
        assert np.isnan(found.values[0, 1]), path
        assert np.count_nonzero(np.isnan(found.values)) == 2, path


def test_marks_of_missing_values_do_not_concern_items():
    Path("p.csv").write_text("item1,item2,similarity\n9,1,0.5\n1,2,9\n9,2,0.25\n")
    found = load_similarity("p.csv", na_values=9)
    assert found.labels == ("9", "1", "2")
    np.testing.assert_array_equal(found.values[0, 1:], [0.5, 0.25])
    assert np.isnan(found.values[1, 2])
    Path("g.edges").write_text("a b 0.5\nb c 9\na c 0.25\n")
    assert np.isnan(load_similarity("g.edges", na_values="9").values[1, 2])


def test_words_for_missing_values_and_sheets_are_options_of_the_command_line(run):
    table = RATINGS.astype({"rating": object})
    table.loc[0, "rating"] = "dont know"
    write_sheets("r.xlsx", notes=FEATURES, trials=table)
    words = ["--item1", "left", "--item2", "right", "--rating", "rating", "--low", "1", "--high", "10"]
    status, _, err = run(
        "similarity", "ratings", "r.xlsx", "r.npz", *words, "--sheet", "trials", "--na-values", "dont know"
    )
    assert status == 0, err
    assert np.isnan(load_similarity("r.npz").values).sum() == 2
    status, _, err = run("similarity", "ratings", "r.xlsx", "q.npz", *words, "--sheet", "trials")
    assert status == 1
    assert "'dont know' in row 2" in err
    status, _, err = run("similarity", "ratings", "r.xlsx", "q.npz", *words)
    assert status == 1
    assert "--sheet" in err
    status, _, err = run(
        "discover", "r.xlsx", "-o", "o", "--sheet", "notes", "--ranks", "1", "--runs", "2", "--no-report"
    )
    assert status == 0, err
    assert "named by 'word'" in err
    RATINGS.to_csv("r.csv")
    status, _, err = run("similarity", "ratings", "r.csv", "q.npz", *words, "--sheet", "trials")
    assert status == 1
    assert "--sheet" in err


def test_properties_may_be_a_sheet(run):
    pd.DataFrame(W, index=NAMES, columns=["dimension1", "dimension2"]).to_csv("w.csv", index_label="item")
    write_sheets("p.xlsx", notes=RATINGS, properties=FEATURES)
    words = ["evaluate", "readout", "w.csv", "p.xlsx", "--labels", "word", "--seed", "0"]
    status, _, err = run(*words, "--sheet", "properties")
    assert "sheet" not in err
    assert run(*words)[0] == 1
    assert status in (0, 1)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"sheet": "x"}, "sheet"), ({"sheet": 1}, "sheet"), ({"na_values": {1}}, "na_values"), ({"key": "x"}, "key")],
)
def test_options_that_a_file_does_not_have_are_refused(options, name):
    SQUARE.to_csv("s.csv")
    with refused(name):
        load_similarity("s.csv", **options)
    np.save("s.npy", S)
    with refused("na_values", ".csv"):
        load_similarity("s.npy", na_values=0)


# --- labels and parts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_columns_in_another_order_than_rows_are_aligned_and_this_is_said(suffix, run):
    shuffled = SQUARE.iloc[:, [3, 1, 4, 0, 2]]
    if suffix == ".csv":
        shuffled.to_csv("s.csv")
    else:
        pytest.importorskip("pyarrow")
        getattr(shuffled.reset_index(names="item"), f"to_{suffix[1:]}")(f"s{suffix}")
    found = load_similarity(f"s{suffix}")
    assert found.labels == tuple(NAMES)
    np.testing.assert_array_equal(found.values, S)
    assert "order of the rows" in found.info["aligned"]
    status, _, err = run("fit", f"s{suffix}", "-n", "1", "--seed", "0", "-o", "w.csv")
    assert status == 0, err
    assert "order of the rows" in err


def test_items_are_chosen_by_labels_places_slices_and_masks():
    given = Similarity(S, NAMES, weights=np.arange(25.0).reshape(N, N) + np.arange(25.0).reshape(N, N).T)
    assert len(given) == N
    for key in (["car", "cat"], [2, 0], np.array([2, 0]), [-3, 0], pd.Index(["car", "cat"])):
        part = given[key]
        assert part.labels == ("car", "cat")
        np.testing.assert_array_equal(part.values, S[np.ix_([2, 0], [2, 0])])
        np.testing.assert_array_equal(part.weights, given.weights[np.ix_([2, 0], [2, 0])])
    mask = np.array([True, False, True, False, True])
    assert given[mask].labels == given[list(mask)].labels == given[::2].labels == ("cat", "car", "van")
    assert given[pd.Series(mask)].info["chosen"] == "3 of 5 items"
    assert part.to_frame().loc["car", "cat"] == S[2, 0]


def test_parts_of_sparse_and_implicit_similarities_stay_so():
    listed = Similarity(sparse.csr_array(np.triu(S)), NAMES, absent="zero")
    part = listed[["van", "cat", "dog"]]
    assert sparse.issparse(part.values)
    assert part.absent == "zero"
    np.testing.assert_allclose(part.values.toarray(), S[np.ix_([4, 0, 1], [4, 0, 1])])
    implicit = Similarity.from_factors(W, NAMES)[3:]
    np.testing.assert_array_equal(implicit.factors, W[3:])


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("cat", TypeError), (0, TypeError), (("cat", "dog"), TypeError), (["cow"], KeyError), ([9], IndexError),
        ([True, False], ValueError), ([], ValueError), (["cat", 0], ValueError), ([1.5], TypeError), (None, TypeError),
    ],
)  # fmt: skip
def test_what_names_no_items_is_refused(key, error):
    with pytest.raises(error):
        Similarity(S, NAMES)[key]


def test_a_similarity_is_no_sequence():
    with pytest.raises(TypeError, match="not iterable"):
        iter(Similarity(S))
    assert np.asarray(Similarity(S)).shape == (N, N)


# --- libraries that are missing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "module"),
    [(".xlsx", "openpyxl"), (".rds", "rdata"), (".rda", "rdata"), (".feather", "pyarrow"), (".h5ad", "h5py")],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(suffix, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    Path(f"s{suffix}").write_bytes(b"x")
    with pytest.raises(ImportError, match=rf"{module}.*pip install \"simdims\[io\]\""):
        load_similarity(f"s{suffix}")


def test_an_ods_file_needs_no_library(monkeypatch):
    path = write_sheets("s.ods", matrix=SQUARE)
    for module in ("odf", "openpyxl", "pyarrow", "rdata"):
        monkeypatch.setitem(sys.modules, module, None)
    assert load_similarity(path).labels == tuple(NAMES)
