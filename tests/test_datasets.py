"""Data sets: what they hold, and that a fetched file is downloaded once, checked, and refused where it is not right."""

import hashlib
import io
import logging
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pooch
import pytest
from scipy import sparse
from scipy.io import savemat

from simdims import SRF, Similarity, _downloads, datasets, from_associations
from simdims._downloads import FILES, RemoteFile, find

NAME = "words/pairs.csv"
CONTENT = b"word1,word2,rating\ncoast,shore,9\n"
REMOTE = "/owner/project/0a1b2c/some%20data/pairs.csv"


def register(monkeypatch: pytest.MonkeyPatch, contents: dict[str, bytes]) -> None:
    """Make these the known files, each with the checksum of its content."""
    files = {
        name: RemoteFile("owner/project", "0a1b2c", f"some data/{Path(name).name}", hashlib.sha256(content).hexdigest())
        for name, content in contents.items()
    }
    monkeypatch.setattr(_downloads, "FILES", files)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    """An empty cache, and no settings of the person who runs the tests."""
    for variable in ("SIMDIMS_DATA", "SIMDIMS_DATA_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    return tmp_path / "cache" / "simdims"


@pytest.fixture
def known(monkeypatch) -> None:
    register(monkeypatch, {NAME: CONTENT})


class Server(ThreadingHTTPServer):
    """Answers with `status`, `content` and perhaps a length that is not its own, and remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.content, self.length = 200, CONTENT, None
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(self.server.length or len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch):
    with Server() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("SIMDIMS_DATA_URL", server.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield server
        server.shutdown()
        thread.join()


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def says_what_to_do(error: BaseException) -> bool:
    """Whether the sentence names the variable and the file that help where a download does not."""
    return "SIMDIMS_DATA" in str(error) and f"as {NAME}." in str(error) and "\n" not in str(error)


# Downloads


@pytest.mark.usefixtures("known")
def test_a_file_is_downloaded_once_and_then_read_from_the_cache(server, cache):
    path = find(NAME)
    assert path == cache / NAME
    assert path.read_bytes() == CONTENT
    assert find(NAME) == path
    assert server.asked == [REMOTE]


@pytest.mark.usefixtures("known", "server")
def test_a_download_is_logged_and_nothing_is_printed(caplog, capfd):
    level = pooch.get_logger().level
    with caplog.at_level(logging.INFO, logger="simdims"):
        find(NAME)
        find(NAME)
    assert len(caplog.messages) == 1
    assert REMOTE in caplog.messages[0]
    assert capfd.readouterr() == ("", "")
    assert pooch.get_logger().level == level


@pytest.mark.usefixtures("known")
def test_a_corrupted_download_is_refused_and_not_kept(server, cache):
    server.content = CONTENT[:-2] + b"1\n"
    with pytest.raises(ValueError, match=rf"{NAME} must have SHA-256 \w{{64}}, got another file from http") as caught:
        find(NAME)
    assert says_what_to_do(caught.value)
    assert files_in(cache) == []
    server.content = CONTENT
    assert find(NAME).read_bytes() == CONTENT


@pytest.mark.usefixtures("known")
def test_a_download_that_breaks_off_is_refused_and_not_kept(server, cache):
    server.content, server.length = CONTENT[:10], len(CONTENT)
    with pytest.raises((ConnectionError, ValueError)) as caught:
        find(NAME)
    assert says_what_to_do(caught.value)
    assert files_in(cache) == []


@pytest.mark.usefixtures("known")
def test_a_damaged_file_in_the_cache_is_downloaded_again(server):
    find(NAME).write_bytes(b"")
    assert find(NAME).read_bytes() == CONTENT
    assert len(server.asked) == 2


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("status", "words"), [(404, "404 Not Found"), (500, "500 Internal Server Error")])
def test_an_error_of_the_server_is_reported(server, cache, status, words):
    server.status = status
    with pytest.raises(ConnectionError, match=rf"{server.url}{REMOTE} .*{words}") as caught:
        find(NAME)
    assert says_what_to_do(caught.value)
    assert files_in(cache) == []


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "nowhere"])  # the discard port, on which nothing listens
def test_no_connection_is_reported(monkeypatch, url):
    monkeypatch.setenv("SIMDIMS_DATA_URL", url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(ConnectionError, match=f"from {url}{REMOTE}") as caught:
        find(NAME)
    assert says_what_to_do(caught.value)


@pytest.mark.usefixtures("known", "server")
def test_a_cache_that_cannot_be_written_is_reported(cache):
    cache.parent.mkdir()
    cache.write_text("a file where a folder belongs")
    with pytest.raises(OSError, match=f"{NAME} could not be stored in {cache}") as caught:
        find(NAME)
    assert says_what_to_do(caught.value)


@pytest.mark.usefixtures("known")
def test_a_missing_pooch_is_named_with_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(
        ImportError, match=re.escape('needs pooch, which is not installed: pip install "simdims[data]"')
    ):
        find(NAME)


# Local copies


def copy_to(folder: Path, contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setenv("SIMDIMS_DATA", str(folder))


@pytest.mark.usefixtures("known")
def test_a_local_copy_is_used_and_nothing_is_downloaded(server, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    copy_to(tmp_path / "mine", {NAME: CONTENT}, monkeypatch)
    assert find(NAME) == tmp_path / "mine" / NAME
    assert server.asked == []


@pytest.mark.usefixtures("known")
def test_a_local_copy_that_is_not_the_original_is_refused(server, tmp_path, monkeypatch):
    other = CONTENT + b"cup,coffee,5\n"
    copy_to(tmp_path, {NAME: other}, monkeypatch)
    checksums = [hashlib.sha256(content).hexdigest() for content in (CONTENT, other)]
    with pytest.raises(ValueError, match=f"with SHA-256 {checksums[0]}, got {checksums[1]}: replace it"):
        find(NAME)
    assert server.asked == []


@pytest.mark.usefixtures("known")
def test_a_file_that_the_folder_does_not_hold_is_downloaded(server, tmp_path, monkeypatch, cache):
    monkeypatch.setenv("SIMDIMS_DATA", str(tmp_path))
    assert find(NAME) == cache / NAME
    assert server.asked == [REMOTE]


@pytest.mark.usefixtures("known")
def test_a_folder_that_is_not_there_is_an_error_and_not_a_download(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SIMDIMS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"SIMDIMS_DATA must name a folder of data files, got '.*nowhere'"):
        find(NAME)
    assert server.asked == []


@pytest.mark.parametrize("name", FILES)
def test_every_known_file_lies_on_github_at_a_full_commit(name):
    file = FILES[name]
    assert re.fullmatch(r"[0-9a-f]{40}", file.commit)
    assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
    assert file.url() == f"https://raw.githubusercontent.com/{file.repository}/{file.commit}/{file.path}"


# What ships with other libraries


def test_digits_are_cosines_of_pixels_with_pictures_beside_them():
    digits = datasets.load_digits_similarity()
    assert digits.images.shape == (1797, 8, 8)
    assert digits.target.shape == (1797,)
    assert digits.similarity.n_items == len(set(digits.similarity.labels)) == 1797
    for i, j in [(0, 1), (17, 900), (1796, 3), (5, 5)]:
        a, b = digits.images[i].ravel(), digits.images[j].ravel()
        cosine = a @ b / np.sqrt((a @ a) * (b @ b))
        assert digits.similarity.values[i, j] == pytest.approx(cosine, abs=1e-12)
    assert digits.similarity.labels[1796] == f"1796: {digits.target[1796]}"
    assert digits.similarity.labels[7] == f"0007: {digits.target[7]}"


def test_miserables_are_counts_of_common_appearances_with_an_unobserved_diagonal():
    networkx = pytest.importorskip("networkx")
    S = datasets.load_miserables()
    graph = networkx.les_miserables_graph()
    assert sparse.issparse(S.values)
    assert S.absent == "zero"
    assert S.labels == tuple(graph)
    assert S.values.nnz == 2 * graph.number_of_edges()
    place = {name: i for i, name in enumerate(S.labels)}
    for one, other, weight in graph.edges(data="weight"):
        assert S.values[place[one], place[other]] == S.values[place[other], place[one]] == weight
    assert SRF(3, random_state=0).fit(S).embedding_.shape == (77, 3)


def test_miserables_without_networkx_name_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match="needs networkx, which is not installed: pip install networkx"):
        datasets.load_miserables()


# What is fetched, from small files of the same form


@pytest.fixture
def provide(monkeypatch, tmp_path):
    """Put files into the folder of SIMDIMS_DATA and make their checksums the known ones."""

    def put(contents: dict[str, bytes]) -> None:
        register(monkeypatch, contents)
        copy_to(tmp_path / "data", contents, monkeypatch)

    return put


def mat(**variables: object) -> bytes:
    file = io.BytesIO()
    savemat(file, variables)
    return file.getvalue()


def random_rdm(n_items: int, seed: int) -> np.ndarray:
    halves = np.triu(np.random.default_rng(seed).uniform(0.1, 0.9, (n_items, n_items)), 1)
    return halves + halves.T


def arrangements(rdms: np.ndarray) -> bytes:
    people = np.zeros((1, len(rdms)), dtype=[("RDM", object), ("name", object)])
    for place, rdm in enumerate(rdms):
        people[0, place] = (rdm, f"person {place}")
    return mat(rdms_behav_92=people)


@pytest.mark.parametrize("names", [None, ("hand", "camel", "stove", "tree")])
def test_mur92_keeps_each_person_averages_them_and_takes_names_from_a_local_table(provide, names):
    rdms = np.stack([random_rdm(4, seed) for seed in range(3)])
    files = {"mur92/92_behavRDMs.mat": arrangements(rdms)}
    if names is not None:
        files["mur92/stimuli92.csv"] = "\n".join(
            ["index,name", *(f"{k},{name}" for k, name in enumerate(names))]
        ).encode()
    provide(files)
    images = datasets.fetch_mur92_behaviour()
    np.testing.assert_array_equal(images.rdms, rdms)
    mean = (rdms[0] + rdms[1] + rdms[2]) / 3
    np.testing.assert_allclose(images.similarity.values, 1 - mean / mean.max(), atol=1e-12)
    assert images.similarity.labels == names


def test_peterson_ratings_are_divided_by_ten(provide):
    whole, first, second = (10 - random_rdm(5, seed) * 10 for seed in range(3))
    content = mat(simMatrix=whole, simMatrixFirstBatch=first, simMatrixSecondBatch=second)
    provide({"peterson_animals/turkResults_CogSci2016.mat": content})
    for half, ratings in ((None, whole), (1, first), (2, second)):
        np.testing.assert_array_equal(datasets.fetch_peterson_animals(half).values, ratings / 10)


def test_spose_is_named_on_both_sides_and_never_negative(provide):
    provide(
        {
            "things/spose_embedding_66d_sorted.txt": b"0.5\t-0.0001\n0.25\t2\n0\t1\n",
            "things/unique_id.txt": b"aardvark\nabacus\nzucchini\n",
            "things/labels_short.txt": b"metallic/artificial\nfood-related\n",
        }
    )
    W = datasets.fetch_things_spose()
    objects, dimensions = ["aardvark", "abacus", "zucchini"], ["metallic/artificial", "food-related"]
    pd.testing.assert_frame_equal(W, pd.DataFrame([[0.5, 0.0], [0.25, 2.0], [0.0, 1.0]], objects, dimensions))


@pytest.mark.parametrize("names", [None, b"pizza\nbeaver\nclothes\n"])
def test_things_48_is_one_minus_the_dissimilarity_with_names_where_there_are_any(provide, names):
    rdm = random_rdm(3, seed=0)
    files = {"things/RDM48_triplet.mat": mat(RDM48_triplet=rdm)}
    provide(files if names is None else {**files, "things/names48.txt": names})
    S = datasets.fetch_things_48()
    np.testing.assert_allclose(S.values, 1 - rdm, atol=1e-12)
    assert S.labels == (None if names is None else ("pizza", "beaver", "clothes"))
    assert S.info["dataset"] == FILES["things/RDM48_triplet.mat"].url()


def test_tables_of_word_similarity_have_the_same_first_columns(provide):
    provide(
        {
            "words/SimLex-999.txt": b"word1\tword2\tPOS\tSimLex999\nold\tnew\tA\t1.58\n",
            "words/wordsim353_combined.csv": b"Word 1,Word 2,Human (mean)\ntiger,cat,7.35\n",
        }
    )
    simlex, wordsim = datasets.fetch_word_similarity("simlex999"), datasets.fetch_word_similarity("wordsim353")
    assert simlex.to_dict("list") == {"word1": ["old"], "word2": ["new"], "rating": [1.58], "POS": ["A"]}
    assert list(simlex) == ["word1", "word2", "rating", "POS"]
    assert wordsim.to_dict("list") == {"word1": ["tiger"], "word2": ["cat"], "rating": [7.35]}


# The real files


@pytest.fixture
def real(data_path, monkeypatch):
    """Use the real file of this name, or skip."""

    def use(name: str) -> Path:
        path = data_path(name)
        monkeypatch.setenv("SIMDIMS_DATA", str(path.parents[1]))
        return path

    return use


@pytest.mark.parametrize("name", FILES)
def test_real_files_have_the_known_checksums(real, name):
    path = real(name)
    assert find(name) == path


def test_real_mur92_has_16_people_and_92_images(real):
    real("mur92/92_behavRDMs.mat")
    images = datasets.fetch_mur92_behaviour()
    assert images.rdms.shape == (16, 92, 92)
    mean = images.rdms.mean(axis=0)
    np.testing.assert_allclose(images.similarity.values, 1 - mean / mean.max(), atol=1e-12)


def test_real_peterson_animals_equal_the_converted_matrix(real):
    converted = np.load(real("peterson_animals/animals_similarity.npy"))
    real("peterson_animals/turkResults_CogSci2016.mat")
    S = datasets.fetch_peterson_animals()
    assert isinstance(S, Similarity)
    np.testing.assert_array_equal(S.values, converted)
    halves = [datasets.fetch_peterson_animals(half).values for half in (1, 2)]
    np.testing.assert_allclose((halves[0] + halves[1]) / 2, S.values, atol=1e-12)


def test_real_spose_embedding_has_names_and_no_negative_value(real):
    real("things/spose_embedding_66d_sorted.txt")
    W = datasets.fetch_things_spose()
    assert W.shape == (1854, 66)
    assert W.index.is_unique
    assert W.columns.is_unique
    assert W.to_numpy().min() == 0
    assert W.loc["aardvark"].idxmax() == "animal-related"


def test_real_things_48_are_complete_and_named(real):
    names = real("things/names48.txt").read_text().splitlines()
    S = datasets.fetch_things_48()
    assert S.labels == tuple(names)
    assert S.density == 1
    assert S.values.min() == pytest.approx(0.01)
    np.testing.assert_array_equal(S.values.diagonal(), 1)


@pytest.mark.parametrize(("name", "n_pairs"), [("simlex999", 999), ("wordsim353", 353)])
def test_real_word_ratings_lie_between_0_and_10(real, name, n_pairs):
    real("words/SimLex-999.txt")
    table = datasets.fetch_word_similarity(name)
    assert len(table) == n_pairs
    assert table["rating"].between(0, 10).all()


@pytest.mark.parametrize(
    ("read", "columns", "separator"),
    [(datasets.read_swow, ["cue", "response", "R123"], "\t"), (datasets.read_usf, ["cue", "target", "P"], ",")],
)
def test_association_files_are_read_with_words_called_null_and_na(read, columns, separator, tmp_path):
    rows = [("null", "NA", 3), ("NA", "null", 2), ("NA", "dog", 4), ("dog", "NA", 1), ("dog", "lonely", 5)]
    table = pd.DataFrame(rows, columns=columns)
    table.assign(other=1).to_csv(tmp_path / "words.csv", sep=separator, index=False)
    S = read(tmp_path / "words.csv")
    expected = from_associations(table, cue=columns[0], response=columns[1], count=columns[2])
    assert S.labels == expected.labels == ("NA", "dog", "null")
    assert abs(S.values - expected.values).max() == 0
    assert S.absent == expected.absent
    assert S.info["dataset"] == "words.csv"


@pytest.mark.parametrize(("read", "column"), [(datasets.read_swow, "response"), (datasets.read_usf, "target")])
def test_association_files_without_a_column_are_refused(read, column, tmp_path):
    (tmp_path / "words.csv").write_text("cue,P,R123\na,1,1\n")
    with pytest.raises(ValueError, match=f"{column}|cue"):
        read(tmp_path / "words.csv")
