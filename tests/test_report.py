"""The page of a Discovery as a file: nothing from outside, nothing that breaks out, every number as it was."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_examples import HOSTILE, made, selection_of, sorted_embedding
from scipy import sparse

from simdims import (
    Discovery,
    ParameterError,
    Similarity,
    SimilaritySet,
    combined_test,
    dimension_test,
    discover,
    lineage,
    rsa_test,
    simulate,
)
from simdims.cli import main
from simdims.report import bundle, pairs, words, write_report
from simdims.report.data import pack_loadings, script_json
from simdims.report.words import checksum, provenance


@pytest.fixture(scope="module")
def found():
    truth = simulate.dirichlet(50, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(truth @ truth.T, 0.9, random_state=0)
    S[3, 7] = S[7, 3] = np.nan
    labels = HOSTILE + [f"item {i}" for i in range(50 - len(HOSTILE))]
    return discover(Similarity(S, labels=labels), ranks=[2, 3, 4], n_repeats=1, n_runs=3, random_state=0)


def decoded(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def read(path):
    """The text of a page, the data elements that its scripts see, and its facts."""
    text = Path(path).read_text(encoding="utf-8")
    data = dict(re.findall(r'<script type="text/plain" id="data-(\w+)">(.*?)</script>', text, flags=re.DOTALL))
    return text, data, json.loads(data["facts"])


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    return read(found.report(tmp_path_factory.mktemp("page") / "page.html"))


def test_the_page_of_an_embedding_shows_nothing_that_was_not_observed(found, tmp_path):
    W = found.embedding_frame().set_axis(["animal", "food", "tool"][: found.n_components], axis=1)
    text, data, facts = read(write_report(W, tmp_path / "page.html"))
    assert (facts["is_observed"], facts["fit"], facts["selection"], data["observed"]) == (False, None, None, "")
    assert [one["reliability"] for one in facts["dimensions"]] == [None] * found.n_components
    assert facts["names"]["given"] == list(W.columns)
    assert json.loads(data["labels"]) == list(found.labels)
    assert "held-out" not in text.split("<noscript>")[0].split("<main>")[1]
    assert "factorized" not in text


def test_an_embedding_for_the_page_has_no_negative_loadings(found, tmp_path):
    W = np.array(found.embedding)
    W[0, 0] = -1e-5
    with pytest.warns(UserWarning, match="1 of .* slightly negative"):
        write_report(W, tmp_path / "page.html")
    with pytest.raises(ParameterError, match="non-negative"):
        write_report(W - 1, tmp_path / "page.html")
    with pytest.raises(ParameterError, match=r"similarities.*discover"):
        write_report(W @ W.T, tmp_path / "page.html")


def test_the_command_line_writes_the_page_of_an_embedding(found, tmp_path, capsys):
    W, names = tmp_path / "W.csv", tmp_path / "names.csv"
    found.embedding_frame().rename_axis("item").to_csv(W)
    names.write_text("dimension,name\n2,animal\n", encoding="utf-8")
    assert main(["report", str(W), "-o", str(tmp_path / "W.html"), "--names", str(names)]) == 0
    _, data, facts = read(tmp_path / "W.html")
    assert (facts["is_observed"], facts["names"]["given"][1]) == (False, "animal")
    assert json.loads(data["labels"]) == list(found.labels)
    for given, needed in ([], "-o"), (["-o", str(tmp_path / "W.html"), "--lineage"], "--lineage needs a folder"):
        assert main(["report", str(W), *given]) == 2
        assert needed in capsys.readouterr().err


def test_the_page_asks_for_nothing_from_outside(page):
    text, _, _ = page
    assert not re.search(r'(?:src|href)\s*=\s*["\']?(?:https?:)?//', text)
    assert "@import" not in text
    assert "url(http" not in text
    assert not re.search(r"\bfetch\(|XMLHttpRequest|importScripts", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_no_label_breaks_out_of_its_place(found, tmp_path):
    text, data, _ = read(found.report(tmp_path / "page.html", title="</title><script>alert(3)</script>"))
    assert len(re.findall(r"<script", text)) == 9  # eight elements of data, and the script
    assert text.count("</script") == 9
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(3)&lt;/script&gt;</title>" in text
    assert json.loads(data["labels"]) == list(found.labels)


@pytest.mark.parametrize("text", ["<", "</script>", "\u2028", "&amp;", "a\ud800b", "\x00", "é🐕"])
def test_json_in_a_script_holds_no_character_that_html_reads(text):
    written = script_json([text])
    assert not set(written) & set("<>&\u2028\u2029")
    expected = text if text.isprintable() or "\ud800" not in text else "a?b"
    assert json.loads(written) == [expected]


def test_loadings_come_back_as_float32(found, page):
    _, data, facts = page
    columns = [decoded(line, "<f4") for line in data["loadings"].split("\n")]
    np.testing.assert_array_equal(np.stack(columns, axis=1), found.embedding.astype(np.float32))
    assert facts["loadings"]["kind"] == "float32"


def test_many_loadings_come_back_to_the_stated_precision(monkeypatch):
    monkeypatch.setattr("simdims.report.data.EXACT_UP_TO", 100)
    W = np.random.default_rng(0).gamma(0.5, size=(200, 4)) * [1, 1e-6, 1e6, 0]
    lines, about = pack_loadings(W)
    assert about["kind"] == "uint16"
    columns = [decoded(line, "<u2") * scale for line, scale in zip(lines.split("\n"), about["scales"], strict=True)]
    assert (np.abs(np.stack(columns, axis=1) - W) <= W.max(axis=0) / 65535).all()
    np.testing.assert_array_equal(columns[3], 0)


def test_observed_similarities_come_back(found, page):
    _, data, facts = page
    steps = decoded(data["observed"], "<u2")
    S = found.similarity.values[np.triu_indices(50, 1)]
    assert ((steps == 65535) == np.isnan(S)).all()
    seen = ~np.isnan(S)
    largest = facts["largest_similarity"]
    np.testing.assert_allclose(steps[seen] * largest / 65534, S[seen], atol=largest / 65534)
    blocks = decoded(data["blocks"], "<u2").reshape(facts["n_components"], facts["n_top"], facts["n_top"])
    items = facts["dimensions"][1]["items"]
    expected = found.similarity.values[np.ix_(items, items)]
    got = blocks[1][: len(items), : len(items)] * largest / 65534
    np.testing.assert_allclose(got[~np.isnan(expected)], expected[~np.isnan(expected)], atol=largest / 65534)


def test_cards_show_the_largest_loadings(found, page):
    _, _, facts = page
    frame = found.dimensions_frame()
    assert len(facts["dimensions"]) == found.n_components
    for k, dimension in enumerate(facts["dimensions"]):
        column = found.embedding[:, k]
        assert dimension["values"] == pytest.approx(np.sort(column)[::-1][: facts["n_top"]])
        assert dimension["share"] == pytest.approx(frame["share"].iloc[k])
        assert dimension["reliability"] == pytest.approx(frame["reliability"].iloc[k])


def test_the_picture_of_the_fit_counts_every_pair(found):
    fit = pairs.observed_against_predicted(found.similarity, found.embedding)
    S, R = found.similarity.values, found.embedding @ found.embedding.T
    i, j = np.triu_indices(50, 1)
    seen = ~np.isnan(S[i, j])
    assert sum(fit["counts"]) == fit["n_pairs"] == seen.sum()
    assert fit["correlation"] == pytest.approx(np.corrcoef(S[i, j][seen], R[i, j][seen])[0, 1])
    assert not fit["sampled"]
    edges = np.linspace(fit["smallest"], fit["largest"], fit["n_cells"] + 1)
    expected, _, _ = np.histogram2d(S[i, j][seen], R[i, j][seen], bins=[edges, edges])
    np.testing.assert_array_equal(expected[fit["rows"], fit["columns"]], fit["counts"])


@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_a_sample_of_pairs_stands_for_all(monkeypatch, absent):
    W = sorted_embedding(120, 4)
    S = W @ W.T
    listed = sparse.csr_array(np.where(S > 0.3, S, 0))
    similarity = Similarity(listed, absent=absent)
    whole = pairs.observed_against_predicted(similarity, W)
    monkeypatch.setattr(pairs, "ALL_PAIRS_UP_TO", 3000)
    monkeypatch.setattr(pairs, "N_SAMPLED", 3000)
    part = pairs.observed_against_predicted(similarity, W)
    assert part["correlation"] == pytest.approx(whole["correlation"], abs=0.05)
    assert sum(part["counts"]) == pytest.approx(sum(whole["counts"]), rel=0.02)


def test_the_curve_of_the_selection_is_there(found, page):
    selection = page[2]["selection"]
    assert (selection["ranks"], selection["rank"]) == ([2, 3, 4], found.selection.rank)
    assert selection["errors"] == pytest.approx(list(found.selection.curve["error"]))
    low, high = found.selection.resampled.interval()
    assert selection["resampled"] == {"low": low, "high": high, "words": found.selection.resampled.words()}
    detected = found.detectable
    assert selection["detectable"] == {"rank": detected.rank, "at_edge": detected.at_edge, "words": detected.words()}


def test_the_tree_of_dimensions_is_shown(found, page, tmp_path):
    assert page[2]["lineage"] is None
    tree = lineage(found, random_state=0)
    _, _, facts = read(found.report(tmp_path / "page.html", lineage=tree))
    nodes = facts["lineage"]["nodes"]
    assert facts["lineage"]["ranks"] == [2, 3, 4]
    assert len(nodes) == 2 + 3 + 4
    for node, row in zip(nodes, tree.table.itertuples(), strict=True):
        assert (node["rank"], node["dimension"]) == (row.rank, row.dimension)
        parent = 0 if node["parent"] is None else nodes[node["parent"]]["dimension"]
        assert parent == row.parent
        assert node["items"] == tree.top_items(row.rank, row.dimension)
        # Only dimensions of this result can be opened.
        assert node["opens"] == (row.dimension - 1 if row.rank == found.n_components else None)


def test_a_tree_of_other_items_is_refused(found, tmp_path):
    names = [f"another {i}" for i in range(found.n_items)]
    other = pd.DataFrame(found.embedding, index=names)
    with pytest.raises(ValueError, match="lineage must name the same items as found"):
        found.report(tmp_path / "page.html", lineage=lineage([other, other.iloc[:, :2]]))


def test_the_command_shows_the_tree(found, tmp_path, capsys):
    found.save(tmp_path / "found")
    assert main(["report", str(tmp_path / "found"), "--lineage", "2:4", "--seed", "0"]) == 0
    told = capsys.readouterr().out
    assert "4 dimensions at the end of 3 fits" in told
    assert len(read(tmp_path / "found" / "report.html")[2]["lineage"]["nodes"]) == 9


@pytest.mark.parametrize("kind", ["dimension", "rsa", "combined"])
def test_tests_of_hypotheses_are_shown(found, tmp_path, kind):
    X = {"first": found.embedding[:, 0], "noise": np.random.default_rng(0).random(50)}
    more = {"n_permutations": 99, "random_state": 0}
    tests = {
        "dimension": lambda: dimension_test(found.embedding, X, **more),
        "rsa": lambda: rsa_test(found.similarity, X, **more),
        "combined": lambda: combined_test(found.similarity, found.embedding, X, **more),
    }[kind]()
    _, _, facts = read(found.report(tmp_path / "page.html", tests=tests))
    rows = facts["tests"]["rows"]
    assert [row["hypothesis"] for row in rows] == ["first", "noise"]
    assert [row["pvalue"] for row in rows] == pytest.approx(list(tests.pvalue))
    assert rows[0]["place"] == (None if kind == "rsa" else 0)
    # One convention: the middle 95% of the permutations, on the page and in figures.
    np.testing.assert_allclose(
        np.array([row["null"] for row in rows], dtype=float).T, tests.null_interval(), rtol=1e-6, equal_nan=True
    )
    low, high = np.nanquantile(tests.null_distribution, [0.025, 0.975], axis=0)
    np.testing.assert_array_equal(tests.null_interval(), [low, high])


def test_the_page_is_small_and_has_its_summary_without_a_script(found, page):
    text, data, _ = page
    head = text.partition('id="dimensions"')[0]
    assert f"50 items can be described by {found.n_components} dimensions" in head
    assert "3 fits from different random starts" in head
    assert len(text.encode()) - sum(len(part.encode()) for part in data.values()) < 200_000


def test_observed_similarities_of_many_items_are_not_all_kept(tmp_path):
    found = made(sorted_embedding(700, 3))
    _, data, facts = read(found.report(tmp_path / "page.html"))
    assert data["observed"] == ""
    assert not facts["has_all_pairs"]


def test_implicit_and_unlabelled_similarities_have_a_page_too(tmp_path):
    W = sorted_embedding(40, 3)
    found = made(W, Similarity.from_factors(W))
    _, data, facts = read(write_report(found, tmp_path / "page.html"))
    assert not facts["labelled"]
    assert json.loads(data["labels"]) == []
    np.testing.assert_allclose(
        decoded(data["observed"], "<u2")[0] * facts["largest_similarity"] / 65534, W[0] @ W[1], atol=1e-4
    )


def test_one_dimension_has_a_page(tmp_path):
    W = np.linspace(0, 1, 12)[:, None]
    text, _, facts = read(made(W).report(tmp_path / "page.html"))
    assert "described by 1 dimension, which explains" in text
    assert facts["dimensions"][0]["items"][0] == 11


def test_a_dimension_that_no_item_has_is_shown_as_empty(tmp_path):
    W = np.hstack([sorted_embedding(20, 2), np.zeros((20, 1))])
    _, _, facts = read(made(W).report(tmp_path / "page.html"))
    assert facts["dimensions"][2] == {"share": 0, "reliability": 0.5, "items": [], "values": []}


def test_a_diagonal_that_is_not_stored_is_unobserved(tmp_path):
    W = sorted_embedding(20, 2)
    S = W @ W.T
    np.fill_diagonal(S, 0)
    _, data, facts = read(made(W, Similarity(sparse.csr_array(S), absent="zero")).report(tmp_path / "page.html"))
    blocks = decoded(data["blocks"], "<u2").reshape(2, facts["n_top"], facts["n_top"])
    assert (np.diagonal(blocks, axis1=1, axis2=2) == 65535).all()
    assert (decoded(data["observed"], "<u2") < 65535).all()


def test_names_are_kept_by_what_the_data_are(found, tmp_path):
    same = read(found.report(tmp_path / "a.html"))[2]["fingerprint"]
    again = read(found.report(tmp_path / "b.html", title="other"))[2]["fingerprint"]
    W = sorted_embedding(40, 3)
    one, other = (read(made(V).report(tmp_path / "c.html"))[2]["fingerprint"] for V in (W, W + 0.001))
    assert same == again
    assert len({same, one, other}) == 3


# -- the whole result ----------------------------------------------------------------------------------------------


def test_the_picture_of_similarities_has_every_pair_in_the_order_of_dimensions(found, page):
    _, data, facts = page
    heat, n = facts["heat"], 50
    cells = decoded(data["heat"], np.uint8).reshape(n, n)
    W, S = found.embedding.astype(float), found.similarity.values
    order = heat["order"]
    largest = W.argmax(axis=1)[order]
    assert (np.diff(largest) >= 0).all()
    assert [tuple(group) for group in heat["groups"]] == [
        (k, int(np.argmax(largest == k))) for k in sorted(set(largest))
    ]
    observed, predicted = S[np.ix_(order, order)], (W @ W.T)[np.ix_(order, order)]
    below, above = np.tril_indices(n, -1), np.triu_indices(n, 1)
    drawn = heat["low"] + cells * (heat["high"] - heat["low"]) / 254
    seen = ~np.isnan(observed[below])
    np.testing.assert_array_equal(cells[below] == 255, ~seen)
    step = heat["high"] / 254
    np.testing.assert_allclose(drawn[below][seen], np.minimum(observed[below][seen], heat["high"]), atol=step)
    np.testing.assert_allclose(drawn[above], np.minimum(predicted[above], heat["high"]), atol=step)
    assert heat["has_missing"]


def test_many_items_have_blocks_and_a_map_of_some(monkeypatch, tmp_path):
    for name, number in (("N_CELLS", 20), ("N_PLACED", 30), ("N_MAPPED", 80)):
        monkeypatch.setattr(f"simdims.report.overview.{name}", number)
    W = sorted_embedding(90, 3)
    _, data, facts = read(made(W).report(tmp_path / "page.html"))
    assert (facts["heat"]["block"], facts["heat"]["side"], facts["heat"]["order"]) == (5, 18, None)
    assert len(decoded(data["heat"], np.uint8)) == 18**2
    about = facts["map"]
    np.testing.assert_array_equal(about["items"], np.sort(np.argsort(-W.max(axis=1), kind="stable")[:80]))
    assert about["largest"] == W.argmax(axis=1)[about["items"]].tolist()
    assert (about["places"], about["n_between"]) == (80, 60)
    places = decoded(data["map"], "<u2").reshape(80, 2)
    assert (places.min(axis=0) == 0).all()
    assert (places.max(axis=0) == 65535).all()


def test_items_of_one_dimension_are_together_on_the_map(tmp_path):
    W = np.kron(np.eye(3), np.linspace(0.5, 1, 20)[:, None])
    _, data, _ = read(made(W).report(tmp_path / "page.html"))
    places = decoded(data["map"], "<u2").reshape(60, 2).astype(float)
    groups = places.reshape(3, 20, 2)
    within = np.linalg.norm(groups - groups.mean(axis=1, keepdims=True), axis=2).max()
    between = np.linalg.norm(groups.mean(axis=1)[[0, 0, 1]] - groups.mean(axis=1)[[1, 2, 2]], axis=1).min()
    assert between > within


@pytest.mark.parametrize("n", [3, 5])
def test_a_few_items_have_a_map_too(tmp_path, n):
    _, data, facts = read(made(np.linspace(0.5, 1, n)[:, None]).report(tmp_path / "page.html"))
    assert facts["map"]["places"] == n
    assert len(decoded(data["map"], "<u2")) == 2 * n


# -- names, methods and provenance ---------------------------------------------------------------------------------


def test_given_names_are_on_the_page_and_tests_find_their_dimension(found, page, tmp_path):
    assert page[2]["names"] is None
    X = {"first": found.embedding[:, 0]}
    before = dimension_test(found, X, n_permutations=20, random_state=0)
    named = found.rename({1: "</script>animal"})
    after = dimension_test(named, X, n_permutations=20, random_state=0)
    for tests in (before, after):
        text, _, facts = read(named.report(tmp_path / "page.html", tests=tests))
        assert facts["names"]["given"] == ["</script>animal", *[""] * (found.n_components - 1)]
        assert facts["tests"]["rows"][0]["place"] == 0
        assert text.count("</script") == 9
    assert facts["fingerprint"] == page[2]["fingerprint"]
    other = read(found.rename({1: "plant"}).report(tmp_path / "page.html"))[2]
    assert other["names"]["key"] != facts["names"]["key"]


def test_the_methods_paragraph_is_on_the_page(found, tmp_path):
    tests = dimension_test(found, {"first": found.embedding[:, 0]}, n_permutations=20, random_state=0)
    text = html.unescape(read(found.report(tmp_path / "page.html", tests=tests))[0])
    paragraph, references = found.methods_text(tests).split("\n\n")
    assert f'<p id="methods-text">{paragraph}</p>' in text
    assert all(f"<li>{line}</li>" in text for line in references.splitlines())


def test_the_checksum_is_that_of_the_similarities_whatever_the_file(tmp_path):
    stored = sparse.csr_array(np.array([[0.0, 0.8, 0.1], [0.8, 0.0, 0.0], [0.1, 0.0, 0.0]]))
    people = SimilaritySet([Similarity(stored, absent="zero"), np.eye(3)])
    people.save(tmp_path / "people.npz")
    assert checksum(SimilaritySet.load(tmp_path / "people.npz")) == checksum(people)
    assert checksum(people[["system1"]]) != checksum(people[["system2"]])


def test_the_provenance_says_where_the_result_comes_from(found, page, tmp_path):
    said = dict(provenance(found))
    assert said["Checksum of the similarities (SHA-256)"] == checksum(found.similarity)
    assert said["Random seed"] == "0"
    assert said["Analysed on"] == found.settings["date"]
    assert f"simdims {found.settings['versions']['simdims']}" in said["Software"]
    assert "dimensions 2 to 4" in said["Settings"]
    assert all(html.escape(text) in page[0] for text in said.values())
    bare = dict(provenance(made(sorted_embedding(20, 2))))
    assert bare["Software"] == bare["Analysed on"] == bare["Random seed"] == "not recorded"


def test_the_checksum_tells_similarities_apart(found):
    S, labels = found.similarity.values.copy(), list(found.labels)
    same = checksum(Similarity(S, labels=labels))
    assert same == checksum(found.similarity)
    changed = S.copy()
    changed[0, 1] = changed[1, 0] = S[0, 1] + 1e-9
    others = [
        checksum(Similarity(changed, labels=labels)),
        checksum(Similarity(S)),
        checksum(Similarity(S, labels=labels, weights=np.full(S.shape, 2.0))),
        checksum(Similarity.from_factors(sorted_embedding(50, 2), labels=labels)),
    ]
    assert len({same, *others}) == 5


def test_the_command_records_the_file(tmp_path, capsys):
    W = sorted_embedding(20, 2)
    file = tmp_path / "animals.csv"
    np.savetxt(file, W @ W.T, delimiter=",")
    arguments = ["--ranks", "2", "--runs", "2", "--repeats", "1", "--seed", "0", "--no-report"]
    assert main(["discover", str(file), "-o", str(tmp_path / "out"), *arguments]) == 0
    said = dict(provenance(Discovery.load(tmp_path / "out")))
    assert said["Data"].startswith("animals.csv: 20 items")
    assert said["Checksum of the file (SHA-256)"] == hashlib.sha256(file.read_bytes()).hexdigest()


# -- images --------------------------------------------------------------------------------------------------------


def opened(uri):
    from io import BytesIO

    from PIL import Image

    return Image.open(BytesIO(base64.b64decode(uri.partition(",")[2])))


@pytest.fixture
def small():
    return made(sorted_embedding(4, 2))


def images_of(found, images, tmp_path):
    pytest.importorskip("PIL")
    return read(found.report(tmp_path / "page.html", images=images))[1]["images"].split("\n")


def test_arrays_become_pictures(small, tmp_path):
    grey = np.linspace(0, 1, 64).reshape(8, 8)
    colour = np.random.default_rng(0).integers(0, 256, (300, 200, 3), dtype=np.uint8)
    uris = images_of(small, [grey, grey * 0.5, colour, np.dstack([colour, colour[:, :, :1]])], tmp_path)
    np.testing.assert_array_equal(np.asarray(opened(uris[0])), np.rint(grey * 255))
    np.testing.assert_array_equal(np.asarray(opened(uris[1])), np.rint(grey * 0.5 * 255))
    assert opened(uris[2]).size == (75, 112)
    assert uris[2].startswith("data:image/jpeg;base64,")
    assert opened(uris[3]).mode == "RGBA"


def test_numbers_beyond_one_are_scaled_together(small, tmp_path):
    uris = images_of(small, np.arange(16.0).reshape(4, 2, 2), tmp_path)
    np.testing.assert_array_equal(np.asarray(opened(uris[3])), np.rint(np.array([[12, 13], [14, 15]]) * 17))


def test_files_and_pil_images_become_pictures(small, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    palette = Image.new("P", (20, 20))
    palette.save(tmp_path / "one.gif")
    uris = images_of(
        small, [tmp_path / "one.gif", palette, Image.new("CMYK", (9, 9)), str(tmp_path / "one.gif")], tmp_path
    )
    assert [opened(uri).size for uri in uris] == [(20, 20), (20, 20), (9, 9), (20, 20)]


@pytest.mark.parametrize(
    ("images", "kind", "got"),
    [
        ("folder", TypeError, "str"),
        ([np.zeros((2, 2))] * 3, ValueError, "3"),
        ([np.zeros((2, 2, 2))] * 4, ValueError, "(2, 2, 2) for image 0"),
        ([np.full((2, 2), np.nan)] * 4, ValueError, "image 0"),
        ([3] * 4, TypeError, "int as image 0"),
        ([np.array([["a"]])] * 4, TypeError, "<U1 in image 0"),
        ([__file__] * 4, ValueError, "test_report.py"),
    ],
)
def test_bad_images_are_refused(small, tmp_path, images, kind, got):
    pytest.importorskip("PIL")
    with pytest.raises(ParameterError) as caught:
        small.report(tmp_path / "page.html", images=images)
    assert isinstance(caught.value, kind)
    assert (caught.value.name, got in caught.value.got) == ("images", True)
    assert not (tmp_path / "page.html").exists()


def test_missing_images_are_named(small, tmp_path):
    pytest.importorskip("PIL")
    with pytest.raises(FileNotFoundError, match=r"no\.png"):
        small.report(tmp_path / "page.html", images=["no.png"] * 4)


# -- files ---------------------------------------------------------------------------------------------------------


def test_only_an_earlier_report_is_replaced_unasked(small, tmp_path):
    target = tmp_path / "page.html"
    assert small.report(target) == target
    before = target.read_text(encoding="utf-8")
    small.report(target, title="Anew")
    assert target.read_text(encoding="utf-8") != before
    target.write_text("<html>mine")
    with pytest.raises(FileExistsError, match="not an earlier report"):
        small.report(target)
    assert target.read_text() == "<html>mine"
    small.report(target, overwrite=True)
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_what_fails_leaves_nothing_behind(small, tmp_path, monkeypatch):
    def fail(**_):
        raise OSError("full")

    target = small.report(tmp_path / "page.html")
    before = target.read_bytes()
    monkeypatch.setattr(bundle, "page", fail)
    with pytest.raises(OSError, match="full"):
        small.report(target)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"path": "page.txt"}, ValueError, "path .*page.txt"),
        ({"path": "none/page.html"}, FileNotFoundError, "'none'"),
        ({"path": 3}, TypeError, "path .*int"),
        ({"path": "a.html", "title": 3}, TypeError, "title .*int"),
        ({"path": "a.html", "tests": 3}, TypeError, "tests .*int"),
        ({"path": "a.html", "lineage": 3}, TypeError, "lineage .*int"),
        ({"path": "a.html", "lineage": lineage([np.eye(90)[:, :2], np.eye(90)[:, :3]])}, ValueError, "lineage .*90"),
        ({"path": "a.html", "overwrite": "yes"}, TypeError, "overwrite .*'yes'"),
        ({"path": "a.html", "found": "W.csv"}, TypeError, "found .*str"),
    ],
)
def test_bad_arguments_are_refused(small, tmp_path, monkeypatch, arguments, kind, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=words):
        write_report(**{"found": small, **arguments})
    assert list(tmp_path.iterdir()) == []


# -- scripts -------------------------------------------------------------------------------------------------------


def test_no_two_scripts_define_the_same_name():
    defined = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", flags=re.MULTILINE)
    names = [name for text in bundle.modules().values() for name in defined.findall(text)]
    assert len(names) == len(set(names))


def test_every_script_is_in_the_page_after_those_it_needs():
    found = list(bundle.modules())
    files = {path.stem for path in (Path(bundle.__file__).parent / "page").glob("*.js")}
    assert set(found) == files
    for name, text in bundle.modules().items():
        for other in re.findall(r'^import .* from "\./(\w+)\.js";$', text, flags=re.MULTILINE):
            assert found.index(other) < found.index(name)
    joined = bundle.joined_scripts()
    assert not re.search(r"^(?:import|export) ", joined, flags=re.MULTILINE)
    assert "</script" not in joined
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", joined)


def test_imported_names_are_defined_where_they_are_imported_from():
    modules = bundle.modules()
    assert sum(text.count("\nimport {") + text.startswith("import {") for text in modules.values()) > 10
    for text in modules.values():
        for names, other in re.findall(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', text, flags=re.MULTILINE):
            for name in names.split(","):
                assert re.search(rf"^export (?:function|const) {name.strip()}\b", modules[other], flags=re.MULTILINE)
                assert len(re.findall(rf"\b{name.strip()}\b", text)) > 1, f"{name} is not used"


# -- command line --------------------------------------------------------------------------------------------------


def test_the_command_writes_the_page_into_the_folder(found, tmp_path, capsys):
    found.save(tmp_path / "found")
    assert main(["report", str(tmp_path / "found")]) == 0
    page = tmp_path / "found" / "report.html"
    assert f"Wrote {page}" in capsys.readouterr().out
    assert page.read_bytes() == found.report(tmp_path / "same.html").read_bytes()
    found.save(tmp_path / "found")
    assert page.exists()


def test_the_command_finds_pictures_by_label(small, tmp_path, capsys):
    Image = pytest.importorskip("PIL.Image")
    labels = ("ant", "bee", "cat", "dog")
    found = made(small.embedding, labels=labels)
    found.save(tmp_path / "found")
    folder = tmp_path / "pictures"
    folder.mkdir()
    for place, label in enumerate(labels):
        Image.new("L", (4, 4), 50 * place).save(folder / f"{label}.png")
    words = ["report", str(tmp_path / "found"), "-o", str(tmp_path / "page.html"), "--images", str(folder)]
    assert main(words) == 0
    uris = read(tmp_path / "page.html")[1]["images"].split("\n")
    assert [opened(uri).getpixel((0, 0)) for uri in uris] == [0, 50, 100, 150]
    (folder / "bee.png").unlink()
    assert main(words) == 1
    assert "'bee'" in capsys.readouterr().err


def test_the_command_says_what_is_wrong_in_a_line(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none")]) == 1
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "page.txt")]) == 1
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()] == ["simdims", "simdims"]


def opening(found, tmp_path):
    """What a reader sees first: the lead, the paragraphs under it, and the figures."""
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    head = page[page.index("<h1>") : page.index("</header>")]
    lead = re.search(r'<p class="lead">(.*?)</p>', head)[1]
    figures = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", head))
    return lead, head, figures


@pytest.mark.parametrize("ranks", [[1, 2], 2])
def test_the_page_says_first_that_there_is_no_evidence(tmp_path, ranks):
    S = np.random.default_rng(0).random((30, 30))
    found = discover((S + S.T) / 2, ranks=ranks, sampling=0.6, n_repeats=1, n_runs=2, random_state=3)
    lead, head, figures = opening(found, tmp_path)
    assert head.startswith("<h1>No evidence of structure")
    assert lead.startswith("No evidence of structure: ")
    assert "can be described by" not in head
    assert "clearly the best" not in head
    assert "Random seed: 3." in head
    r2, error = found.metrics["held_out_r2"], found.metrics["held_out_r2_standard_error"]
    assert figures[f"held-out R2 (standard error {error:.3f})"] == f"{r2:.3f}"


def test_figures_on_the_page_say_whether_they_are_in_sample(tmp_path):
    W = simulate.dirichlet(40, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
    found = discover(S, ranks=[2, 3, 4], sampling=0.6, n_repeats=1, n_runs=2, random_state=0)
    lead, head, figures = opening(found, tmp_path)
    assert "evidence" not in head
    assert "held-out" in lead
    assert "in sample" in lead
    assert figures["in-sample R2"] == f"{found.metrics['explained_variance']:.3f}"
    assert "mean reliability across random starts" in figures
    assert not [name for name in figures if "explained" in name]


def test_the_summary_does_not_compare_the_best_number_with_itself():
    selection = selection_of(15, 20, (20,), (10, 15, 20))
    text = words.paragraphs(replace(made(sorted_embedding(20, 15)), selection=selection), None)[1]
    assert "15: the smallest number not clearly worse than 20, which has the lowest held-out error of the 3" in text
    assert "no other is within one standard error" in text


def test_dimensions_that_explain_nothing_do_not_account_for_a_negative_share():
    found = replace(made(sorted_embedding(20, 2)), metrics={"explained_variance": -1.455})
    lead = words.paragraphs(found, None)[0]
    assert "%" not in lead
    assert "no better than the mean" in lead
