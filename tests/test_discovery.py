"""discover: one call from similarities to dimensions, the same numbers as its parts, and a folder that loads back."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from simdims import (
    SRF,
    Discovery,
    ParameterError,
    Similarity,
    _memory,
    align,
    combined_test,
    datasets,
    detectable_dimensions,
    dimension_test,
    discover,
    fit_consensus,
    from_dissimilarity,
    from_features,
    from_triplets,
    load_similarity,
    metrics,
    plots,
    rsa_test,
    select_rank,
    simulate,
)
from simdims._journal import sealed
from simdims._parallel import root_seed, seed_of
from simdims.discovery import estimate, run, storage
from simdims.discovery.estimate import in_words
from simdims.io.raw import read_features


def noisy(n_items=50, n_components=3, seed=0):
    W = simulate.dirichlet(n_items, n_components, alpha=0.3, random_state=seed)
    S = simulate.add_noise(W @ W.T, 0.8, random_state=seed)
    return Similarity(S, labels=[f"item {i}" for i in range(n_items)])


QUICK = {"ranks": [2, 3, 4], "sampling": 0.6, "n_repeats": 1, "n_runs": 3, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def found():
    return discover(noisy(), **QUICK)


@pytest.fixture
def folder(found, tmp_path):
    """The folder of a saved result."""
    found.save(tmp_path / "folder")
    return tmp_path / "folder"


def change_manifest(folder, change, *, seal=True):
    """Let a function change the manifest of a result; without a seal it is written as earlier versions did."""
    path = folder / "discovery.json"
    manifest = {name: value for name, value in json.loads(path.read_text()).items() if name != "checksum"}
    change(manifest)
    path.write_text(sealed(manifest, indent=1) if seal else json.dumps(manifest, indent=1))


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
    assert one.selection.resampled == other.selection.resampled
    assert (one.detectable is None) == (other.detectable is None)
    if one.detectable is not None:
        assert one.detectable.summary() == other.detectable.summary()
        pd.testing.assert_frame_equal(one.detectable.table, other.detectable.table, check_exact=True)
        assert np.array_equal(one.detectable.null_distribution, other.detectable.null_distribution, equal_nan=True)


def test_it_does_what_its_parts_do(found):
    S, root = noisy(), root_seed(0)
    selection = select_rank(S, [2, 3, 4], sampling=0.6, n_repeats=1, random_state=seed_of(root, 0), progress=False)
    options = {"n_runs": 3, "random_state": seed_of(root, 1), "progress": False}
    consensus = fit_consensus(S, selection.rank, alpha=selection.alpha, **options)
    assert found.selection is not None
    assert found.selection.rank == selection.rank == 3
    assert np.array_equal(found.embedding, consensus.embedding)
    assert found.metrics["explained_variance"] == metrics.explained_variance(S, consensus.embedding)
    assert found.metrics["mean_reliability"] == consensus.mean_reliability


def test_a_given_number_of_dimensions_is_not_selected_but_cross_validated():
    found = discover(noisy(), **{**QUICK, "ranks": 4, "n_repeats": 2})
    assert found.selection is None
    assert found.n_components == 4
    assert found.settings["held_out"]["n_repeats"] == 2
    folds = {"sampling": 0.6, "n_folds": 5, "n_repeats": 2}
    one = select_rank(noisy(), [4], **folds, random_state=seed_of(root_seed(0), 3), progress=False)
    assert found.metrics["held_out_r2"] == one.held_out_r2
    assert found.metrics["held_out_r2_standard_error"] == one.held_out_r2_standard_error
    most = discover(noisy(), **{**QUICK, "ranks": 4, "sampling": None})
    assert most.settings["held_out"]["training_share"] == pytest.approx(0.76)
    assert np.array_equal(found.embedding, most.embedding)


def test_held_out_r2_stands_beside_every_figure_in_sample(found):
    assert found.metrics["held_out_r2"] == found.selection.held_out_r2
    for one in (found, discover(noisy(), **{**QUICK, "ranks": 4})):
        assert one.evidence_of_structure is True
        for text in (one.summary(), repr(one), one.methods_text()):
            assert f"{one.metrics['held_out_r2']:.3f}" in text
            assert "in sample" in text.lower().replace("-", " ")
            assert "evidence" not in text


@pytest.mark.parametrize("ranks", [[1, 2], 2])
def test_no_evidence_of_structure_comes_first_everywhere(ranks, tmp_path):
    S = np.random.default_rng(0).random((30, 30))
    S = (S + S.T) / 2
    found = discover(S, **{**QUICK, "ranks": ranks})
    assert found.evidence_of_structure is False
    assert found.summary().count("No evidence") == 1
    for text in (found.summary(), repr(found), found.methods_text()):
        assert "no evidence of structure" in text[:40].lower()
    assert "no evidence of structure" in found._repr_html_()
    found.save(tmp_path / "found")
    assert Discovery.load(tmp_path / "found").summary() == found.summary()


@pytest.mark.parametrize("given", [0, 209652396, None, "RandomState", "Generator"])
@pytest.mark.parametrize("ranks", [[2, 3], 2])
def test_the_recorded_seed_gives_the_same_result_and_itself(given, ranks):
    state = {"RandomState": np.random.RandomState(5), "Generator": np.random.default_rng(5)}.get(given, given)
    first = discover(noisy(24, 2), **{**QUICK, "ranks": ranks, "n_runs": 2, "random_state": state})
    seed = first.settings["seed"]
    assert first.seed == seed
    assert type(seed) is int
    if isinstance(given, int):
        assert seed == given
    again = discover(noisy(24, 2), **{**QUICK, "ranks": ranks, "n_runs": 2, "random_state": seed})
    same(first, again)
    if given is None:
        assert discover(noisy(12, 2), **{**QUICK, "ranks": 2, "n_runs": 2, "random_state": None}).seed != seed
    assert again.settings == first.settings
    assert f"The random seed was {seed}." in first.methods_text()


def test_a_checkpoint_of_an_earlier_version_resumes_and_claims_no_seed(found, tmp_path):
    work = tmp_path / "work"
    discover(noisy(), **QUICK, checkpoint=work)
    (work / "seed").write_text(f"{root_seed(0)}\n")  # all that earlier versions kept
    unknown = discover(noisy(), **{**QUICK, "random_state": None}, checkpoint=work)
    same(unknown, found)
    assert unknown.seed is None
    assert "seed" not in unknown.methods_text()
    known = discover(noisy(), **QUICK, checkpoint=work)
    assert known.seed == 0
    with pytest.raises(ValueError, match="same seed"):
        discover(noisy(), **{**QUICK, "random_state": root_seed(0)}, checkpoint=work)


def test_a_folder_of_an_earlier_version_loads_and_claims_neither_seed_nor_verdict(folder, tmp_path):
    def as_it_was(manifest):
        manifest |= {"estimated_seconds": 12.5, "format": 1}
        manifest["settings"]["seed"] = root_seed(0)
        del manifest["settings"]["held_out"], manifest["consensus"]["seed"], manifest["selection"]["seed"]
        for name in ("held_out_r2", "held_out_r2_standard_error"):
            del manifest["metrics"][name], manifest["selection"][name]

    change_manifest(folder, as_it_was, seal=False)
    earlier = Discovery.load(folder)
    assert earlier.estimated_seconds == 12.5
    assert earlier.seed is None
    assert earlier.evidence_of_structure is None
    assert "held-out R2 not known" in repr(earlier)
    assert "Held-out R2 is not known" in earlier.summary()
    assert "seed" not in earlier.methods_text()
    earlier.report(tmp_path / "earlier.html")


def test_what_cannot_be_cross_validated_says_why():
    constant = discover(0.3 + 0.7 * np.eye(20), **{**QUICK, "ranks": 1})
    assert "Held-out R2 is not known: the similarities do not vary" in constant.summary()
    few = np.full((5, 5), np.nan)
    few[[0, 1, 2, 3], [1, 2, 3, 4]] = few[[1, 2, 3, 4], [0, 1, 2, 3]] = [0.1, 0.4, 0.2, 0.9]
    found = discover(few, **{**QUICK, "ranks": 1})
    assert "held_out_r2" not in found.metrics
    for text in (found.summary(), found.methods_text()):
        assert "Held-out R2 is not known: S must have at least one observed pair" in text
    with pytest.raises(ValueError, match="one observed pair per fold"):
        discover(few, **{**QUICK, "ranks": [1, 2]})


def test_of_many_implicit_similarities_some_items_are_cross_validated(monkeypatch):
    W = simulate.dirichlet(120, 3, alpha=0.3, random_state=0)
    S = Similarity.from_factors(W)
    options = {**QUICK, "ranks": 3, "sampling": None, "alpha": 0.01}
    whole = discover(S, **options)
    assert whole.settings["held_out"]["n_items"] == 120
    monkeypatch.setattr(run, "_MOST_IMPLICIT", 50)
    part = discover(S, **options)
    assert part.settings["held_out"]["n_items"] == 50
    assert "over pairs of 50 items drawn at random" in part.methods_text()
    assert part.metrics["held_out_r2"] == pytest.approx(whole.metrics["held_out_r2"], abs=0.02)
    assert np.array_equal(part.embedding, whole.embedding)


def test_the_library_makes_no_timing_trials(monkeypatch):
    monkeypatch.setattr(estimate, "_seconds_of", lambda *_: pytest.fail("a trial was timed"))
    assert discover(noisy(24, 2), **{**QUICK, "ranks": 2}).estimated_seconds is None


def test_sparse_similarities_with_zeros_get_an_auc():
    found = discover(datasets.load_miserables(), **{**QUICK, "ranks": 5})
    assert 0.8 < found.metrics["link_auc"] <= 1
    (line,) = [line for line in found.summary().splitlines() if "AUC" in line]
    assert line.startswith("In sample")
    assert f"held-out R2 {found.metrics['held_out_r2']:.3f}" in line


def test_dimensions_that_fit_worse_than_the_mean_explain_none_of_the_variance():
    found = discover(noisy(), **{**QUICK, "ranks": 2})
    worse = replace(found, metrics={**found.metrics, "explained_variance": -0.25})
    assert "they explain none (R2 -0.25) of the variance" in worse.summary()


@pytest.mark.parametrize("kind", ["missing", "weighted", "implicit", "float32"])
def test_every_kind_of_similarities_is_taken(kind):
    W = simulate.dirichlet(30, 2, alpha=0.3, random_state=0)
    S = {
        "missing": Similarity(simulate.mask_pairs(W @ W.T, 0.7, random_state=0)),
        "weighted": Similarity(W @ W.T, weights=np.full((30, 30), 2.0)),
        "implicit": Similarity.from_factors(W),
        "float32": Similarity((W @ W.T).astype(np.float32)),
    }[kind]
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


def test_what_is_saved_loads_back_equal_and_saving_again_leaves_nothing_behind(found, folder):
    found.save(folder)
    assert os.listdir(folder.parent) == ["folder"]
    again = Discovery.load(folder)
    same(found, again)
    assert again.settings == found.settings
    assert again.estimated_seconds == found.estimated_seconds
    assert np.array_equal(again.similarity.values, found.similarity.values)
    table = pd.read_csv(folder / "embedding.csv", index_col="item")
    pd.testing.assert_frame_equal(table, found.embedding_frame().rename_axis("item"), rtol=1e-14)


@pytest.mark.parametrize(
    ("S", "changes"),
    [
        (noisy(24, 2), {"sampling": None, "alpha": 0.0, "ranks": [1, 2, 3]}),
        (noisy(24, 2), {"ranks": 2}),
        (datasets.load_miserables(), {"ranks": 4}),
    ],
    ids=["calibrated", "without a selection", "sparse"],
)
def test_every_form_of_a_result_loads_back_equal(S, changes, tmp_path):
    found = discover(S, **{**QUICK, **changes})
    found.save(tmp_path / "folder")
    again = Discovery.load(tmp_path / "folder")
    same(found, again)
    assert again.similarity.absent == S.absent
    assert sparse.issparse(again.similarity.values) == sparse.issparse(S.values)
    if found.selection is not None:
        assert again.selection.calibration.to_dict() == found.selection.calibration.to_dict()
        assert again.selection.summary() == found.selection.summary()


def test_other_files_are_never_overwritten(found, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("words")
    (tmp_path / "file").write_text("words")
    for name in ("thesis", "file"):
        with pytest.raises(ParameterError, match=name) as caught:
            found.save(tmp_path / name)
        assert caught.value.name == "folder"
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "words"


@pytest.mark.parametrize(
    "name", ["discovery.json", "arrays.npz", "similarity.npz", "embedding.csv", "selection_fits.csv"]
)
def test_a_folder_that_lacks_a_file_or_has_a_damaged_one_is_refused(folder, name):
    path = folder / name
    if not name.endswith(".csv"):  # tables are for people, who may change them
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(ValueError, match="damaged"):
            Discovery.load(folder)
    path.unlink()
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        Discovery.load(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda manifest: manifest.update(format=99), "format 99"),
        (lambda manifest: manifest["consensus"].update(selected=99), "damaged"),
        (lambda manifest: manifest.update(consensus={}), "damaged"),
        (lambda manifest: manifest.update(metrics=None, consensus=3), "damaged"),
        (lambda manifest: manifest.update(files=[]), "damaged"),
        (lambda manifest: manifest.update(selection="x"), "damaged"),
    ],
    ids=["a newer format", "a run that does not exist", "no runs", "a number", "no files", "a text"],
)
def test_a_manifest_that_makes_no_sense_is_refused(folder, change, words):
    change_manifest(folder, change)
    with pytest.raises(ValueError, match=words):
        Discovery.load(folder)


def test_tables_contain_no_formulas_and_are_read_back(tmp_path):
    labels = ["=cmd|' /C calc'!A0", "+x", "-y", "@z", "a\rb", "a\nb", *(f"item {i}" for i in range(14))]
    found = discover(Similarity(noisy(20).values, labels), ranks=2, n_runs=2, random_state=0, progress=False)
    found.save(tmp_path / "folder")
    table = pd.read_csv(tmp_path / "folder" / "embedding.csv", encoding="utf-8-sig")
    assert table["item"].tolist() == [*(f"'{label}" for label in labels[:4]), *labels[4:]]
    np.testing.assert_array_equal(table[["dimension1", "dimension2"]], found.embedding)
    assert read_features(tmp_path / "folder" / "embedding.csv", "item").index.tolist() == labels
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


def test_a_folder_of_the_first_format_is_read(found, folder):
    change_manifest(folder, lambda manifest: manifest.update(format=1), seal=False)
    same(found, Discovery.load(folder))


def test_a_number_that_was_changed_in_the_manifest_is_noticed(found, folder):
    path = folder / "discovery.json"
    number = json.dumps(found.metrics["hoyer_sparsity"])
    assert path.read_text().count(number) == 1
    path.write_text(path.read_text().replace(number, f"1{number}"))
    with pytest.raises(ValueError, match=r"discovery\.json' is damaged"):
        Discovery.load(folder)


def test_a_folder_that_does_not_exist_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Discovery.load(tmp_path / "nowhere")


def test_a_failed_save_leaves_the_earlier_one(found, folder, monkeypatch):
    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space"):
        found.save(folder)
    monkeypatch.undo()
    same(found, Discovery.load(folder))
    assert os.listdir(folder.parent) == ["folder"]


def test_a_save_replaces_a_link_to_nowhere(found, tmp_path):
    (tmp_path / "folder").symlink_to(tmp_path / "nowhere")
    found.save(tmp_path / "folder")
    same(found, Discovery.load(tmp_path / "folder"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_process_forked_during_a_save_does_not_block_others(found, tmp_path):
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
    for work in (run.expected_seconds, discover):
        with pytest.raises(MemoryError, match="A fit of 50 items with pairs left out"):
            work(S, ranks=[2, 3, 4])


def test_a_checkpoint_gives_the_same_result_and_is_used(found, tmp_path):
    first = discover(noisy(), **QUICK, checkpoint=tmp_path / "work")
    same(first, found)
    calls = []
    again = discover(noisy(), **{**QUICK, "progress": calls.append}, checkpoint=tmp_path / "work")
    same(again, found)
    assert {call.stage for call in calls} == {"reliability"}  # no fit is made again


# --- dimensions that can be told from noise ------------------------------------------------------------------------


def test_dimensions_that_can_be_told_from_noise_stand_beside_those_selected(found, tmp_path):
    detected = detectable_dimensions(
        noisy(), start=found.n_components, max_rank=2 * found.n_components + 10, random_state=seed_of(root_seed(0), 4)
    )
    assert found.detectable is not None
    pd.testing.assert_frame_equal(found.detectable.table, detected.table, check_exact=True)
    sentence = f"Cross-validation supports {found.n_components}; at least {detected.rank} can be told from noise."
    assert sentence == found.detected()
    assert sentence in found.summary()
    assert f"At least {detected.rank} dimensions could be told from noise" in found.methods_text()
    assert "in at least 90% of the resamples" in found.methods_text()
    page = found.report(tmp_path / "page.html").read_text()
    assert sentence in page
    assert found.selection.resampled.words() in page


def test_a_given_number_is_not_compared_with_noise():
    for ranks in (3, [3]):
        found = discover(noisy(), **{**QUICK, "ranks": ranks})
        assert found.detectable is None
        assert found.detected() == ""
        assert "told from noise" not in found.summary() + found.methods_text()


def test_without_memory_for_residuals_there_is_no_count(monkeypatch, found):
    def refuse(*_, **__):
        raise MemoryError("too large")

    monkeypatch.setattr(run, "detectable_dimensions", refuse)
    without = discover(noisy(), **QUICK)
    assert without.detectable is None
    assert np.array_equal(without.embedding, found.embedding)


def test_a_damaged_count_in_a_checkpoint_is_made_again(found, tmp_path):
    discover(noisy(), **QUICK, checkpoint=tmp_path / "work")
    kept = tmp_path / "work" / f"detectable-{found.n_components}"
    kept.write_text(kept.read_text().replace("0.01", "0.02"))
    same(discover(noisy(), **QUICK, checkpoint=tmp_path / "work"), found)
    assert "0.02" not in kept.read_text()


def test_a_folder_without_counts_and_resamples_loads(folder, found):
    def as_it_was(manifest):
        del manifest["detectable"]
        del manifest["selection"]["resampled"]

    change_manifest(folder, as_it_was)
    earlier = Discovery.load(folder)
    assert earlier.detectable is None
    assert earlier.selection.resampled is None
    assert earlier.selection.rank == found.selection.rank
    for text in (earlier.summary(), earlier.methods_text()):
        assert "told from noise" not in text
        assert "resample" not in text
    plots.rank_selection(earlier)


def test_a_checkpoint_without_a_seed_resumes_with_the_first_one(tmp_path):
    settings = {**QUICK, "random_state": None, "ranks": 2}
    first = discover(noisy(), **settings, checkpoint=tmp_path / "work")
    same(first, discover(noisy(), **settings, checkpoint=tmp_path / "work"))
    with pytest.raises(ValueError, match="same seed"):
        discover(noisy(), **{**settings, "random_state": 5}, checkpoint=tmp_path / "work")


def test_a_checkpoint_of_other_data_or_of_other_files_is_refused(tmp_path):
    discover(noisy(), **QUICK, checkpoint=tmp_path / "work")
    with pytest.raises(ValueError, match="similarities"):
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


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "a second"), (42, "42 seconds"), (60, "1 minute"), (150, "2 minutes"), (7300, "2 hours"), (90000, "1 day")],
)
def test_times_are_written_in_words(seconds, words):
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ranks", 0),
        ("sampling", 1.5),
        ("n_repeats", 0),
        ("n_runs", 1),
        ("estimator", SRF(init="spectral")),
        ("estimator", "fast"),
        ("n_jobs", 0),
        ("progress", 3),
    ],
)
@pytest.mark.parametrize("ranks", ["auto", 2])
def test_bad_arguments_are_named_before_any_work(ranks, name, value, tmp_path):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must"):
        discover(noisy(), **{**QUICK, "ranks": ranks, "checkpoint": tmp_path / "work", name: value})
    assert not (tmp_path / "work").exists()


def test_one_dimension_has_no_sparsity_and_is_found_all_the_same(tmp_path):
    one = discover(noisy(), **{**QUICK, "ranks": 1})
    held_out = {"held_out_r2", "held_out_r2_standard_error"}
    assert set(one.metrics) == {"mean_reliability", "explained_variance"} | held_out
    assert "1 dimension of 50 items" in repr(one)
    assert "it explains" in one.summary()
    one.save(tmp_path / "folder")
    same(one, Discovery.load(tmp_path / "folder"))


def test_links_without_zeros_have_no_auc():
    full = Similarity(sparse.csr_array(noisy().values + 0.01), absent="zero")
    assert "link_auc" not in discover(full, **{**QUICK, "ranks": 2}).metrics


def test_saving_again_keeps_what_others_put_there(folder):
    (folder / "notes.txt").write_text("words")
    discover(noisy(), **{**QUICK, "ranks": 2}).save(folder)
    assert (folder / "notes.txt").read_text() == "words"
    assert not (folder / "selection_fits.csv").exists()
    assert os.listdir(folder.parent) == ["folder"]


@pytest.mark.parametrize("text", ["", "junk", "-5", '{"seed": 5}', sealed({"seed": 5}).replace("5", "6", 1)])
def test_a_damaged_seed_is_refused(tmp_path, text):
    (tmp_path / "seed").write_text(text)
    with pytest.raises(ValueError, match="seed' is damaged"):
        discover(noisy(), **{**QUICK, "checkpoint": tmp_path})


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
        (from_triplets(TRIPLETS), "Similarities of items with themselves were set to 1."),
        (from_triplets(TRIPLETS, diagonal="missing"), "Similarities of items with themselves were left out."),
        (from_dissimilarity(LINE), "1 minus dissimilarities divided by the largest."),
        (from_dissimilarity(np.stack([LINE, LINE])), "divided by the largest, averaged over 2 matrices."),
        (Similarity(CHAIN, absent=0.03), "10% had a similarity, and all others were treated as zeros of weight 0.03."),
        (Similarity(CHAIN, absent="zero"), "all others were treated as observed zeros."),
        (Similarity(CHAIN, absent="missing"), "with 10% of their pairs observed; no other pair entered the fit."),
    ],
)
def test_the_methods_say_where_the_similarities_come_from(S, said):
    assert said in discover(S, ranks=2, n_runs=3, random_state=0).methods_text()


def test_the_methods_contain_the_numbers_of_the_run(tmp_path):
    truth = simulate.dirichlet(50, 3, alpha=0.3, random_state=0)
    S = simulate.mask_pairs(simulate.add_noise(truth @ truth.T, 0.8, random_state=0), 0.7, random_state=0)
    found = discover(S, ranks=[1, 2, 3, 5], n_repeats=2, n_runs=4, alpha=0.0, random_state=0)
    text = found.methods_text()
    selection, consensus = found.selection, found.consensus
    for said in (
        f"{100 * found.similarity.density:.3g}%",
        f"p* = {selection.sampling:.2f}",
        f"{selection.calibration.cutoff} stable",
        "5-fold",
        "2 repeats",
        "1-3, 5 dimensions",
        f"{selection.rank} dimensions",
        "4 random",
        f"{consensus.mean_reliability:.2f} on average",
        f"R2 = {found.metrics['explained_variance']:.3f}",
    ):
        assert said in text
    for matching in ("joint", "separate"):
        tests = dimension_test(found.embedding, truth, n_permutations=49, matching=matching, random_state=0)
        for said in ("49 joint permutations", "one-sided", "Benjamini-Hochberg", tests.method):
            assert said in found.methods_text(tests)
        assert f"{tests.significant.sum()} of 3" in found.methods_text(tests)
    found.save(tmp_path / "found")
    assert (tmp_path / "found" / "methods.txt").read_text(encoding="utf-8") == text + "\n"
    assert Discovery.load(tmp_path / "found").methods_text() == text


# Where an embedding or similarities are asked for


@pytest.mark.parametrize("held_by", ["discovery", "consensus", "srf"])
def test_functions_of_an_embedding_take_results(held_by, found):
    srf = SRF(3, random_state=0).fit(found.similarity)
    result = {"discovery": found, "consensus": found.consensus, "srf": srf}[held_by]
    frame, S = result.embedding_frame(), found.similarity
    options = {"n_permutations": 20, "random_state": 0}
    properties = (frame.iloc[::-1, :2] > 0.3).astype(float)  # matched by name
    triplets = [["item 1", "item 2", "item 3"], ["item 5", "item 9", "item 30"]]
    pairs = [one[:2] for one in triplets]
    ratings = frame["dimension1"] + np.random.default_rng(0).random(len(frame))
    calls = [
        lambda W: dimension_test(W, properties, **options).table,
        lambda W: combined_test(S, W, properties, **options).table,
        lambda W: align(W, frame[["dimension2", "dimension1", "dimension3"]]).embedding,
        lambda W: align(frame, W).embedding,
        lambda W: metrics.triplet_accuracy(W, triplets),
        lambda W: metrics.triplet_probabilities(W, triplets),
        lambda W: metrics.explained_variance(S, W),
        lambda W: metrics.hoyer_sparsity(W),
        lambda W: metrics.entropy(W),
        lambda W: metrics.factor_alignment(W, frame).mean,
        lambda W: metrics.pair_correlation(W, [*pairs, ["item 1", "item 9"]], [1, 2, 3]).correlation,
        lambda W: metrics.readout(W, ratings, random_state=0).table,
        lambda W: metrics.link_auc(S, W, random_state=0),
    ]
    for number, call in enumerate(calls):
        expected, same = call(frame), call(result)
        if isinstance(expected, pd.DataFrame):
            pd.testing.assert_frame_equal(same, expected)
        else:
            np.testing.assert_array_equal(same, expected, err_msg=str(number))


def test_functions_of_similarities_take_a_discovery(found):
    properties = (found.embedding_frame() > 0.3).iloc[::-1].astype(float)
    options = {"n_permutations": 20, "random_state": 0}
    for test in (
        lambda S: rsa_test(S, properties, **options),
        lambda S: combined_test(S, found, properties, **options),
    ):
        pd.testing.assert_frame_equal(test(found).table, test(found.similarity).table)
    assert metrics.explained_variance(found, found) == found.metrics["explained_variance"]
    with pytest.raises(TypeError, match="Consensus"):
        rsa_test(found.consensus, properties)
