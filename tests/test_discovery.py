"""discover: one call from similarities to dimensions, the same numbers as its parts, and a folder that loads back."""

import json
import logging
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from simdims import (
    SRF,
    Discovery,
    Similarity,
    _memory,
    datasets,
    dimension_test,
    discover,
    fit_consensus,
    from_dissimilarity,
    from_features,
    from_triplets,
    load_similarity,
    metrics,
    select_rank,
    simulate,
)
from simdims._inputs import read_features
from simdims._journal import sealed
from simdims._parallel import root_seed, seed_of
from simdims.discovery import estimate, storage
from simdims.discovery.estimate import in_words


def noisy(n_items=50, n_components=3, seed=0):
    W = simulate.dirichlet(n_items, n_components, alpha=0.3, random_state=seed)
    S = simulate.add_noise(W @ W.T, 0.8, random_state=seed)
    return Similarity(S, labels=[f"item {i}" for i in range(n_items)])


QUICK = {"ranks": [2, 3, 4], "sampling": 0.6, "n_repeats": 1, "n_runs": 3, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def found():
    return discover(noisy(), **QUICK)


def same(one: Discovery, other: Discovery) -> None:
    assert np.array_equal(one.embedding, other.embedding)
    assert np.array_equal(one.consensus.embeddings, other.consensus.embeddings)
    assert np.array_equal(one.consensus.reliability, other.consensus.reliability)
    assert one.metrics == other.metrics
    assert one.labels == other.labels
    if one.selection is None or other.selection is None:
        assert one.selection is other.selection
        return
    assert one.selection.rank == other.selection.rank
    pd.testing.assert_frame_equal(one.selection.curve, other.selection.curve, check_exact=True)
    columns = [name for name in one.selection.scores if name != "seconds"]
    pd.testing.assert_frame_equal(one.selection.scores[columns], other.selection.scores[columns], check_exact=True)


def test_it_does_what_its_parts_do(found):
    S, root = noisy(), root_seed(0)
    selection = select_rank(S, [2, 3, 4], sampling=0.6, n_repeats=1, random_state=seed_of(root, 0), progress=False)
    consensus = fit_consensus(S, selection.rank, n_runs=3, random_state=seed_of(root, 1), progress=False)
    assert found.selection is not None
    assert found.selection.rank == selection.rank == 3
    assert np.array_equal(found.embedding, consensus.embedding)
    assert found.metrics["explained_variance"] == metrics.explained_variance(S, consensus.embedding)
    assert found.metrics["mean_reliability"] == consensus.mean_reliability


def test_a_given_number_of_dimensions_is_not_selected():
    found = discover(noisy(), **{**QUICK, "ranks": 4})
    assert found.selection is None
    assert found.n_components == 4


def test_sparse_similarities_with_zeros_get_an_auc():
    found = discover(datasets.load_miserables(), **{**QUICK, "ranks": 5})
    assert 0.8 < found.metrics["link_auc"] <= 1


@pytest.mark.parametrize("kind", ["missing", "weighted", "implicit", "float32"])
def test_every_kind_of_similarities_is_taken(kind):
    W = simulate.dirichlet(30, 2, alpha=0.3, random_state=0)
    S = {
        "missing": lambda: Similarity(simulate.mask_pairs(W @ W.T, 0.7, random_state=0)),
        "weighted": lambda: Similarity(W @ W.T, weights=np.full((30, 30), 2.0)),
        "implicit": lambda: Similarity.from_factors(W),
        "float32": lambda: Similarity((W @ W.T).astype(np.float32)),
    }[kind]()
    found = discover(S, **{**QUICK, "ranks": [1, 2, 3]})
    assert found.n_components == 2
    assert found.labels is None


def test_the_summary_names_what_was_found(found):
    text = str(found)
    for fragment in ("3 dimensions", "Reliability", "of the variance", "item "):
        assert fragment in text
    frame = found.dimensions_frame()
    assert frame["share"].sum() == pytest.approx(1)
    assert list(frame.index) == ["dimension1", "dimension2", "dimension3"]
    W = found.embedding
    assert frame.loc["dimension1", "top_items"].split(", ")[0] == f"item {np.argmax(W[:, 0])}"


def test_what_is_saved_loads_back_equal(found, tmp_path):
    found.save(tmp_path / "folder")
    again = Discovery.load(tmp_path / "folder")
    same(found, again)
    assert again.settings == found.settings
    assert again.estimated_seconds == found.estimated_seconds
    assert np.array_equal(again.similarity.values, found.similarity.values)
    table = pd.read_csv(tmp_path / "folder" / "embedding.csv", index_col="item")
    pd.testing.assert_frame_equal(table, found.embedding_frame().rename_axis("item"), rtol=1e-14)


def test_one_with_a_calibration_and_one_without_selection_load_back_equal(tmp_path):
    S = noisy(24, 2)
    for name, changes in (("calibrated", {"sampling": None, "ranks": [1, 2, 3]}), ("given", {"ranks": 2})):
        found = discover(S, **{**QUICK, **changes})
        found.save(tmp_path / name)
        again = Discovery.load(tmp_path / name)
        same(found, again)
        if found.selection is not None:
            assert again.selection.calibration.to_dict() == found.selection.calibration.to_dict()
            assert again.selection.summary() == found.selection.summary()


def test_a_sparse_discovery_loads_back_equal(tmp_path):
    found = discover(datasets.load_miserables(), **{**QUICK, "ranks": 4})
    found.save(tmp_path / "folder")
    again = Discovery.load(tmp_path / "folder")
    same(found, again)
    assert sparse.issparse(again.similarity.values)
    assert again.similarity.absent == "zero"


def test_saving_again_replaces_and_leaves_nothing_behind(found, tmp_path):
    found.save(tmp_path / "folder")
    found.save(tmp_path / "folder")
    same(found, Discovery.load(tmp_path / "folder"))
    assert os.listdir(tmp_path) == ["folder"]


def test_other_files_are_never_overwritten(found, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("words")
    with pytest.raises(ValueError, match="holds other files"):
        found.save(tmp_path / "thesis")
    (tmp_path / "file").write_text("words")
    with pytest.raises(ValueError, match="which is a file"):
        found.save(tmp_path / "file")
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "words"


@pytest.mark.parametrize(
    "name", ["discovery.json", "arrays.npz", "similarity.npz", "embedding.csv", "selection_fits.csv"]
)
def test_a_folder_that_lacks_a_file_is_refused(found, tmp_path, name):
    found.save(tmp_path / "folder")
    (tmp_path / "folder" / name).unlink()
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        Discovery.load(tmp_path / "folder")


@pytest.mark.parametrize("name", ["discovery.json", "arrays.npz", "similarity.npz"])
def test_a_folder_with_a_damaged_file_is_refused(found, tmp_path, name):
    found.save(tmp_path / "folder")
    path = tmp_path / "folder" / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="damaged"):
        Discovery.load(tmp_path / "folder")


def test_a_newer_format_is_refused(found, tmp_path):
    found.save(tmp_path / "folder")
    path = tmp_path / "folder" / "discovery.json"
    manifest = {name: value for name, value in json.loads(path.read_text()).items() if name != "checksum"}
    path.write_text(sealed({**manifest, "format": 99}, indent=1))
    with pytest.raises(ValueError, match="format 2, got 99"):
        Discovery.load(tmp_path / "folder")


def test_tables_hold_no_formulas_and_are_read_back(tmp_path):
    labels = ["=cmd|' /C calc'!A0", "+x", "-y", "@z", "a\rb", "a\nb", *(f"item {i}" for i in range(14))]
    found = discover(Similarity(noisy(20).values, labels), ranks=2, n_runs=2, random_state=0, progress=False)
    found.save(tmp_path / "folder")
    table = pd.read_csv(tmp_path / "folder" / "embedding.csv", encoding="utf-8-sig")
    assert table["item"].tolist() == [*(f"'{label}" for label in labels[:4]), *labels[4:]]
    np.testing.assert_array_equal(table[["dimension1", "dimension2"]], found.embedding)
    assert read_features(tmp_path / "folder" / "embedding.csv", "item", None, None).index.tolist() == labels
    assert Discovery.load(tmp_path / "folder").labels == tuple(labels)
    assert not [
        line for line in (tmp_path / "folder" / "dimensions.csv").read_text().splitlines() if line[:1] in "=+-@"
    ]


def test_a_result_of_a_file_with_an_odd_name_can_be_saved_and_shown(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.npy")
    try:
        np.save(path, noisy(20).values)
    except OSError:
        pytest.skip("this disk takes names in UTF-8 only")
    found = discover(load_similarity(path), ranks=2, n_runs=2, random_state=0, progress=False)
    found.save(tmp_path / "folder")
    assert Discovery.load(tmp_path / "folder").similarity.info["file"] == path.name
    found.report(tmp_path / "page.html", title=path.name)


def test_a_folder_of_the_first_format_is_read(found, tmp_path):
    found.save(tmp_path / "folder")
    path = tmp_path / "folder" / "discovery.json"
    manifest = {name: value for name, value in json.loads(path.read_text()).items() if name != "checksum"}
    path.write_text(json.dumps({**manifest, "format": 1}, indent=1))
    same(found, Discovery.load(tmp_path / "folder"))


def test_a_number_that_was_changed_in_the_manifest_is_noticed(found, tmp_path):
    found.save(tmp_path / "folder")
    path = tmp_path / "folder" / "discovery.json"
    seconds = json.dumps(found.estimated_seconds)
    assert path.read_text().count(seconds) == 1
    path.write_text(path.read_text().replace(seconds, f"1{seconds}"))
    with pytest.raises(ValueError, match=r"discovery\.json is damaged"):
        Discovery.load(tmp_path / "folder")


def test_a_folder_that_is_not_there_is_said_to_be(tmp_path):
    with pytest.raises(FileNotFoundError, match="which is not there"):
        Discovery.load(tmp_path / "nowhere")


def test_a_failed_save_leaves_the_earlier_one(found, tmp_path, monkeypatch):
    found.save(tmp_path / "folder")

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space"):
        found.save(tmp_path / "folder")
    monkeypatch.undo()
    same(found, Discovery.load(tmp_path / "folder"))
    assert os.listdir(tmp_path) == ["folder"]


def test_a_save_replaces_a_link_to_nowhere(found, tmp_path):
    (tmp_path / "folder").symlink_to(tmp_path / "nowhere")
    found.save(tmp_path / "folder")
    same(found, Discovery.load(tmp_path / "folder"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_process_forked_during_a_save_holds_up_no_other(found, tmp_path):
    with storage._in_turn(tmp_path / "folder"):
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
    try:
        start = time.perf_counter()
        found.save(tmp_path / "folder")
        assert time.perf_counter() - start < 30
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_what_memory_is_too_small_for_is_refused_before_the_estimate(monkeypatch):
    S = noisy()
    monkeypatch.setattr(_memory, "available_bytes", lambda: 1000)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)
    monkeypatch.setattr(estimate, "draw_pairs", lambda *_: pytest.fail("pairs were drawn"))
    with pytest.raises(MemoryError, match="A fit of 50 items with pairs left out"):
        discover(S, **QUICK)


def test_a_checkpoint_gives_the_same_result_and_is_used(found, tmp_path):
    first = discover(noisy(), **QUICK, checkpoint=tmp_path / "work")
    same(first, found)
    calls = []
    again = discover(noisy(), **{**QUICK, "progress": calls.append}, checkpoint=tmp_path / "work")
    same(again, found)
    assert {call.stage for call in calls} == {"reliability"}  # no fit is made again


def test_a_checkpoint_without_a_seed_goes_on_with_the_first_one(tmp_path):
    settings = {**QUICK, "random_state": None, "ranks": 2}
    first = discover(noisy(), **settings, checkpoint=tmp_path / "work")
    same(first, discover(noisy(), **settings, checkpoint=tmp_path / "work"))
    with pytest.raises(ValueError, match="same random_state"):
        discover(noisy(), **{**settings, "random_state": 5}, checkpoint=tmp_path / "work")


def test_a_checkpoint_of_other_data_or_of_other_files_is_refused(tmp_path):
    discover(noisy(), **QUICK, checkpoint=tmp_path / "work")
    with pytest.raises(ValueError, match="other similarities"):
        discover(noisy(seed=1), **QUICK, checkpoint=tmp_path / "work")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("words")
    with pytest.raises(ValueError, match=r"letter\.txt"):
        discover(noisy(), **QUICK, checkpoint=tmp_path / "home")


def test_a_killed_discovery_continues_and_ends_the_same(found, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_discovery import QUICK, noisy\n"
        "from simdims import discover\n"
        "discover(noisy(), **QUICK, checkpoint=sys.argv[2]).save(sys.argv[3])\n"
    )
    here = os.path.dirname(__file__)
    command = [sys.executable, "-c", code, here, str(tmp_path / "work"), str(tmp_path / "out")]
    journal = tmp_path / "work" / "selection" / "journal.jsonl"
    process = subprocess.Popen(command)
    end = time.monotonic() + 60
    while not (journal.exists() and journal.stat().st_size) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out").exists() or process.returncode == 0
    subprocess.run(command, check=True)
    same(found, Discovery.load(tmp_path / "out"))


def test_how_long_it_will_take_is_said_before_it_starts(caplog):
    with caplog.at_level(logging.INFO, logger="simdims"):
        found = discover(noisy(), **{**QUICK, "ranks": 2})
    assert any(record.message.startswith("discover: about") for record in caplog.records)
    assert found.estimated_seconds > 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "a second"), (42, "42 seconds"), (60, "1 minute"), (150, "2 minutes"), (7300, "2 hours"), (90000, "1 day")],
)
def test_times_are_said_as_people_say_them(seconds, words):
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("changes", "error", "fragment"),
    [
        ({"ranks": "all"}, ValueError, 'ranks must be "auto"'),
        ({"ranks": 0}, ValueError, "ranks must lie between 1 and n_items - 1 = 49, got 0"),
        ({"ranks": []}, ValueError, "at least one"),
        ({"sampling": 1.5}, ValueError, "sampling must lie strictly between 0 and 1, got 1.5"),
        ({"n_repeats": 0}, ValueError, "n_repeats must be at least 1, got 0"),
        ({"n_runs": 1}, ValueError, "n_runs must be at least 2"),
        ({"n_runs": "many"}, TypeError, "n_runs must be an integer, got 'many'"),
        ({"ranks": 2, "sampling": 7}, ValueError, "sampling must lie strictly between 0 and 1, got 7"),
        ({"estimator": SRF(init="spectral")}, ValueError, "estimator must start from init='random'"),
        ({"estimator": "fast"}, TypeError, "estimator must be an SRF, got 'fast'"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"progress": 3}, TypeError, "progress must be"),
    ],
)
def test_bad_arguments_are_said(changes, error, fragment, tmp_path):
    with pytest.raises(error, match=fragment.replace("(", r"\(")):
        discover(noisy(), **{**QUICK, "checkpoint": tmp_path / "work", **changes})
    assert not (tmp_path / "work").exists()  # nothing was begun


def test_one_dimension_has_no_sparsity_and_is_found_all_the_same(tmp_path):
    one = discover(noisy(), **{**QUICK, "ranks": 1})
    assert set(one.metrics) == {"mean_reliability", "explained_variance"}
    assert "1 dimension of 50 items" in repr(one)
    assert "It explains" in one.summary()
    one.save(tmp_path / "folder")
    same(one, Discovery.load(tmp_path / "folder"))


def test_links_without_zeros_have_no_auc():
    full = Similarity(sparse.csr_array(noisy().values + 0.01), absent="zero")
    assert "link_auc" not in discover(full, **{**QUICK, "ranks": 2}).metrics


def test_saving_again_keeps_what_others_put_there(found, tmp_path):
    found.save(tmp_path / "folder")
    (tmp_path / "folder" / "notes.txt").write_text("words")
    discover(noisy(), **{**QUICK, "ranks": 2}).save(tmp_path / "folder")
    assert (tmp_path / "folder" / "notes.txt").read_text() == "words"
    assert not (tmp_path / "folder" / "selection_fits.csv").exists()
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize(
    "change", [{"consensus": {}}, {"metrics": None, "consensus": 3}, {"files": []}, {"selection": "x"}]
)
def test_a_manifest_that_was_changed_is_refused(found, tmp_path, change):
    found.save(tmp_path / "folder")
    file = tmp_path / "folder" / "discovery.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ValueError, match=r"whose discovery\.json is damaged"):
        Discovery.load(tmp_path / "folder")


def test_a_run_that_is_not_there_cannot_be_the_central_one(found, tmp_path):
    found.save(tmp_path / "folder")
    file = tmp_path / "folder" / "discovery.json"
    manifest = json.loads(file.read_text())
    del manifest["checksum"]
    manifest["consensus"]["selected"] = 99
    file.write_text(sealed(manifest, indent=1))
    with pytest.raises(ValueError, match="damaged"):
        Discovery.load(tmp_path / "folder")


@pytest.mark.parametrize("text", ["", "junk", "-5", '{"seed": 5}', sealed({"seed": 5}).replace("5", "6", 1)])
def test_a_damaged_seed_is_refused(tmp_path, text):
    (tmp_path / "seed").write_text(text)
    with pytest.raises(ValueError, match=r"checkpoint must be readable, got .*seed', which is damaged"):
        discover(noisy(), **{**QUICK, "checkpoint": tmp_path})


def test_the_seed_of_an_earlier_version_is_read(found, tmp_path):
    discover(noisy(), **{**QUICK, "checkpoint": tmp_path})
    (tmp_path / "seed").write_text(f"{json.loads((tmp_path / 'seed').read_text())['seed']}\n")
    same(found, discover(noisy(), **{**QUICK, "checkpoint": tmp_path}))


def test_a_seed_that_a_kill_cut_short_is_drawn_again(found, tmp_path):
    (tmp_path / ".seed.0123.part").write_text("")
    same(found, discover(noisy(), **{**QUICK, "checkpoint": tmp_path}))


def test_results_compare_by_identity(found):
    other = discover(noisy(), **QUICK)
    assert (found.selection == other.selection) is False
    assert found.selection == found.selection


RNG = np.random.default_rng(0)
CHAIN = sparse.csr_array(np.eye(20) + np.eye(20, k=1) + np.eye(20, k=-1))
TRIPLETS = RNG.permuted(np.tile(np.arange(20), (400, 1)), axis=1)[:, :3]
LINE = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))


@pytest.mark.parametrize(
    ("S", "said"),
    [
        (0.5 + 0.5 * np.eye(20), "The data were 20 items, with all pairs observed."),
        (from_features(RNG.random((20, 5))), "dot products of 5 features."),
        (from_features(RNG.normal(size=(20, 5))), "Gaussian kernels (bandwidth sigma = "),
        (from_triplets(TRIPLETS), "400 odd-one-out judgements"),
        (from_dissimilarity(LINE), "1 minus dissimilarities divided by the largest."),
        (from_dissimilarity(np.stack([LINE, LINE])), "divided by the largest, averaged over 2 matrices."),
        (Similarity(CHAIN, absent=0.03), "10% had a similarity, and all others were treated as zeros of weight 0.03."),
        (Similarity(CHAIN, absent="zero"), "all others were treated as observed zeros."),
        (Similarity(CHAIN, absent="missing"), "with 10% of their pairs observed; no other pair entered the fit."),
    ],
)
def test_the_methods_say_where_the_similarities_come_from(S, said):
    assert said in discover(S, ranks=2, n_runs=3, random_state=0).methods_text()


def test_the_methods_hold_the_numbers_of_the_run(tmp_path):
    truth = simulate.dirichlet(50, 3, alpha=0.3, random_state=0)
    S = simulate.mask_pairs(simulate.add_noise(truth @ truth.T, 0.8, random_state=0), 0.7, random_state=0)
    found = discover(S, ranks=[1, 2, 3, 5], n_repeats=2, n_runs=4, random_state=0)
    text = found.methods_text()
    selection, consensus = found.selection, found.consensus
    for said in (
        f"{100 * found.similarity.density:.3g}% of their pairs observed",
        f"p* = {selection.sampling:.2f}",
        f"{selection.calibration.cutoff} stable eigendirections",
        "5-fold cross-validation over pairs with 2 repeats",
        "Candidates were 1-3, 5 dimensions",
        f"{selection.rank} dimensions (smallest error at {selection.minimum}",
        "4 random initializations",
        f"was {consensus.mean_reliability:.2f} on average",
        f"R2 = {found.metrics['explained_variance']:.2f}",
    ):
        assert said in text
    tests = dimension_test(found.embedding, truth, n_permutations=49, random_state=0)
    assert "with 49 joint permutations of the items (one-sided); p-values were adjusted by the Benjamini-Hochberg" in (
        found.methods_text(tests)
    )
    apart = dimension_test(found.embedding, truth, n_permutations=49, matching="separate", random_state=0)
    assert "Leave-one-out matching with dimensions (separate)." in found.methods_text(apart)
    assert f"{tests.significant.sum()} of 3" in found.methods_text(tests)
    found.save(tmp_path / "found")
    assert (tmp_path / "found" / "methods.txt").read_text(encoding="utf-8") == text + "\n"
    assert Discovery.load(tmp_path / "found").methods_text() == text
