"""Checkpoints: completed work survives any kill, and a resumed run gives the result of one never stopped."""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simdims import SRF, ParameterError, select_rank, simulate
from simdims._journal import Journal, fingerprint, sealed
from simdims.selection import calibration, crossvalidation

pytestmark = pytest.mark.filterwarnings(
    "ignore:(The lowest held-out error|A fit to)", "ignore:The share of pairs to train on"
)

RANKS = [1, 2, 4]
QUICK = {"sampling": 0.6, "n_folds": 2, "n_repeats": 2, "random_state": 0}


def similarities(n=24, seed=0):
    W = simulate.dirichlet(n, 3, alpha=0.3, random_state=seed)
    return simulate.add_noise(W @ W.T, 0.8, random_state=seed)


def same(one, other):
    """Whether two selections are the same to the last bit, but for the time they took and the order of trying."""
    frames = [each.scores.drop(columns="seconds") for each in (one, other)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)
    pd.testing.assert_frame_equal(one.curve, other.curve, check_exact=True)
    left, right = one.to_dict(), other.to_dict()
    for name in ("scores", "curve"):
        left.pop(name), right.pop(name)
    assert left == right


@pytest.fixture(name="fits")
def fixture_fits(monkeypatch):
    """The tasks of all fits that are made from here on, with n_jobs=1."""
    made = []
    fit_fold = crossvalidation.fit_fold

    def counted(*arguments):
        made.append(arguments[-1])
        return fit_fold(*arguments)

    monkeypatch.setattr(crossvalidation, "fit_fold", counted)
    return made


# --- the journal itself ------------------------------------------------------------------------------------------


def test_what_was_appended_is_there_when_the_folder_is_opened_again(tmp_path):
    records = [{"kind": "fit", "value": 0.1 + 0.2}, {"kind": "rank", "value": float("nan"), "text": "ä\n"}]
    with Journal(tmp_path / "new" / "deep", {"seed": 1}) as journal:
        assert journal.records == []
        for record in records:
            journal.append(record)
    with Journal(tmp_path / "new" / "deep", {"seed": 1}) as journal:
        assert journal.records[0] == records[0]
        assert np.isnan(journal.records[1]["value"])
        assert journal.records[1]["text"] == records[1]["text"]


def test_a_record_is_on_disk_when_append_returns(tmp_path):
    with Journal(tmp_path, {"seed": 1}) as journal:
        journal.append({"kind": "fit", "number": 7})
        assert json.loads((tmp_path / "journal.jsonl").read_text()).items() >= {"kind": "fit", "number": 7}.items()


def test_a_line_that_a_kill_cut_short_is_dropped_and_written_over(tmp_path):
    with Journal(tmp_path, {}) as journal:
        journal.append({"number": 1})
        journal.append({"number": 2})
    whole = (tmp_path / "journal.jsonl").read_bytes()
    for length in range(len(whole) // 2 + 1, len(whole)):
        (tmp_path / "journal.jsonl").write_bytes(whole[:length])
        with Journal(tmp_path, {}) as journal:
            assert journal.records == [{"number": 1}]
            journal.append({"number": 3})
        with Journal(tmp_path, {}) as journal:
            assert journal.records == [{"number": 1}, {"number": 3}]


@pytest.mark.parametrize(
    "damage", [b"{ no json", b"\xff\xfe", b"17", b"[1, 2]", b"", b"null", b"\0" * 40, b'{"number": 1}', b"[" * 100_000]
)
def test_a_damaged_line_in_the_middle_is_named_and_dropped(tmp_path, damage):
    with Journal(tmp_path, {}) as journal:
        journal.append({"number": 1})
        journal.append({"number": 2})
    first, second = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(first + damage + b"\n" + second)
    with pytest.warns(UserWarning, match=r"journal\.jsonl' is damaged in line 2 "):
        journal = Journal(tmp_path, {})
    with journal:
        assert journal.records == [{"number": 1}, {"number": 2}]
        journal.append({"number": 3})
    with Journal(tmp_path, {}) as journal:  # and not named again
        assert journal.records == [{"number": 1}, {"number": 2}, {"number": 3}]


@pytest.mark.parametrize(
    ("one", "other", "fragment"),
    [
        *[(None, text, "damaged") for text in ("", "{", "[]", "3", "\0" * 30)],
        *[(text, other, "damaged") for text, other in (("123", "124"), ("checksum", "chocksum"), ("format", "Format"))],
        (None, sealed({"format": 99}, indent=1), "format 99.*newer"),
    ],
)
def test_damaged_settings_and_those_of_a_newer_format_are_refused(tmp_path, one, other, fragment):
    Journal(tmp_path, {"seed": 123}).close()
    text = (tmp_path / "settings.json").read_text()
    (tmp_path / "settings.json").write_text(text.replace(one or text, other))
    with pytest.raises(ParameterError, match=rf"checkpoint.*settings\.json' ?.*{fragment}"):
        Journal(tmp_path, {"seed": None})


def test_a_folder_of_an_earlier_version_is_read_and_has_checksums_from_then_on(tmp_path):
    (tmp_path / "settings.json").write_text(json.dumps({"seed": 7, "n": 1}, indent=1))
    (tmp_path / "journal.jsonl").write_text('{"number": 1}\n{"number": 2, "value": NaN}\n{"numb')
    np.save(tmp_path / "W.npy", np.arange(3.0))
    (tmp_path / "V.npy").write_bytes((tmp_path / "W.npy").read_bytes()[:-5])
    with pytest.warns(UserWarning, match="earlier simdims without checksums"):
        journal = Journal(tmp_path, {"seed": None, "n": 1})
    with journal:
        assert [record["number"] for record in journal.records] == [1, 2]
        np.testing.assert_array_equal(journal.kept("W"), np.arange(3.0))
        with pytest.warns(UserWarning, match=r"V\.npy' is damaged"):
            assert journal.kept("V") is None
    with Journal(tmp_path, {"seed": 7, "n": 1}) as journal:
        assert [record["number"] for record in journal.records] == [1, 2]
    content = (tmp_path / "journal.jsonl").read_text()
    (tmp_path / "journal.jsonl").write_text(content.replace('"number": 2', '"number": 3'))
    with pytest.warns(UserWarning, match="damaged in line 2 "), Journal(tmp_path, {"seed": 7, "n": 1}) as journal:
        assert [record["number"] for record in journal.records] == [1]


@pytest.mark.parametrize(
    ("found", "wanted", "fragment"),
    [
        ({"n": 3}, {"n": 4}, "where n is 3, not 4"),
        ({"n": 3, "old": True}, {"n": 3}, "where old is True, not None"),
        ({"n": 3}, {"n": 3, "new": "yes"}, "where new is None, not 'yes'"),
        ({"data": "abc"}, {"data": "abd"}, "which was written for other similarities"),
        ({"fit": {"a": "1", "b": "2"}}, {"fit": {"a": "1", "b": "3"}}, "where b of the fit is 2, not 3"),
        ({"seed": 1}, {"seed": 2}, "random seed"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path, found, wanted, fragment):
    Journal(tmp_path, found).close()
    with pytest.raises(ParameterError, match=f"^checkpoint .*{fragment}"):
        Journal(tmp_path, wanted)
    Journal(tmp_path, found).close()


def test_a_seed_of_none_is_the_first_one(tmp_path):
    with Journal(tmp_path, {"seed": None, "n": 1}) as journal:
        drawn = journal.settings["seed"]
    assert isinstance(drawn, int)
    with Journal(tmp_path, {"seed": None, "n": 1}) as journal:
        assert journal.settings["seed"] == drawn
    Journal(tmp_path, {"seed": drawn, "n": 1}).close()


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.docx").write_text("precious")
    with pytest.raises(ParameterError, match=r"^checkpoint .*'thesis\.docx'"):
        Journal(tmp_path, {})
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "lock") == ["thesis.docx"]
    assert (tmp_path / "thesis.docx").read_text() == "precious"


@pytest.mark.parametrize("folder", [3, b"x", "", "a\0b", __file__])
def test_what_is_no_folder_is_refused(folder):
    with pytest.raises(ParameterError) as caught:
        Journal(folder, {})
    assert caught.value.name == "checkpoint"
    assert isinstance(caught.value, TypeError) == (folder in (3, b"x"))


def test_two_runs_on_one_folder_are_refused(tmp_path):
    with Journal(tmp_path, {"n": 1}), pytest.raises(ParameterError, match="another run"):
        Journal(tmp_path, {"n": 1})
    Journal(tmp_path, {"n": 1}).close()  # free again


def test_a_process_that_is_killed_lets_go_of_the_folder(tmp_path):
    code = f"from simdims._journal import Journal; j = Journal({str(tmp_path)!r}, {{}}); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "1\n"
        with pytest.raises(ParameterError, match="another run"):
            Journal(tmp_path, {})
        process.kill()
    Journal(tmp_path, {}).close()


def test_arrays_are_whole_or_absent(tmp_path, monkeypatch):
    array = np.arange(12.0).reshape(3, 4)
    with Journal(tmp_path, {}) as journal:
        assert journal.kept("W") is None
        journal.keep("W", array)
        np.testing.assert_array_equal(journal.kept("W"), array)

        def fail(file, *_, **__):
            file.write(b"half of it")
            raise OSError("disk full")

        monkeypatch.setattr(np, "save", fail)
        for name in ("W", "V"):
            with pytest.raises(OSError, match="disk full"):
                journal.keep(name, array + 1)
        np.testing.assert_array_equal(journal.kept("W"), array)  # the old one is still whole
        assert journal.kept("V") is None
        journal.drop("W")
        journal.drop("W")
        assert journal.kept("W") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.jsonl", "lock", "settings.json"]


def test_a_damaged_array_and_that_of_another_task_are_dropped(tmp_path):
    with Journal(tmp_path, {}) as journal:
        journal.keep("W", np.ones(30))
        journal.keep("V", np.zeros(30))
        pickled = io.BytesIO()
        np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        whole = (tmp_path / "W.npy").read_bytes()
        changed = bytearray(whole)
        changed[-100] ^= 1
        bad = [bytes(changed), (tmp_path / "V.npy").read_bytes(), b"\0" * len(whole), pickled.getvalue()]
        for content in [*bad, *(whole[:length] for length in (0, 3, 60, 200, len(whole) - 1))]:
            (tmp_path / "W.npy").write_bytes(content)
            with pytest.warns(UserWarning, match=r"W\.npy' is damaged"):
                assert journal.kept("W") is None
        (tmp_path / "W.npy").write_bytes(whole)
        np.testing.assert_array_equal(journal.kept("W"), np.ones(30))
        with pytest.raises(ValueError, match="Object arrays cannot be saved"):
            journal.keep("V", np.array([{"a": 1}], dtype=object))


def test_halves_of_files_that_a_kill_left_are_cleared_away(tmp_path):
    Journal(tmp_path, {}).close()
    (tmp_path / ".fit-2-0-0.npy.0a1b2c3d.part").write_bytes(b"half")
    Journal(tmp_path, {}).close()
    assert not list(tmp_path.glob(".*"))


def test_a_kill_before_the_settings_were_written_leaves_a_folder_that_can_be_used(tmp_path):
    (tmp_path / "lock").touch()
    (tmp_path / ".settings.json.0a1b2c3d.part").write_text("{")
    with Journal(tmp_path, {"n": 1}) as journal:
        assert journal.records == []


def test_fingerprints_differ_where_arrays_do():
    a = np.arange(6.0)
    texts = [
        fingerprint(a),
        fingerprint(a + 1e-15),
        fingerprint(a.reshape(2, 3)),
        fingerprint(a.astype(np.float32)),
        fingerprint(a, None),
        fingerprint(None, a),
        fingerprint(a, 0.5),
        fingerprint(a[:3], a[3:]),
    ]
    assert len(set(texts)) == len(texts)
    assert fingerprint(a) == fingerprint(a.copy())
    assert fingerprint(np.asfortranarray(a.reshape(2, 3))) == fingerprint(a.reshape(2, 3))


# --- select_rank with a checkpoint -------------------------------------------------------------------------------


def test_a_checkpoint_changes_nothing_and_a_completed_run_leaves_only_its_journal(tmp_path):
    same(select_rank(similarities(), RANKS, **QUICK), select_rank(similarities(), RANKS, checkpoint=tmp_path, **QUICK))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.jsonl", "lock", "settings.json"]


def test_a_finished_run_makes_no_fit_when_it_is_run_again(tmp_path, fits):
    first = select_rank(similarities(), RANKS, checkpoint=tmp_path, **QUICK)
    assert len(fits) == len(RANKS) * 4
    fits.clear()
    again = select_rank(similarities(), RANKS, checkpoint=str(tmp_path), **QUICK)
    assert fits == []
    same(first, again)
    np.testing.assert_array_equal(first.scores["seconds"], again.scores["seconds"])


def test_only_new_ranks_are_fitted(tmp_path, fits):
    select_rank(similarities(), [2, 4], checkpoint=tmp_path, **QUICK)
    fits.clear()
    more = select_rank(similarities(), [1, 2, 4, 5], checkpoint=tmp_path, **QUICK)
    assert {task.rank for task in fits} == {1, 5}
    assert len(fits) == 2 * 4
    same(more, select_rank(similarities(), [1, 2, 4, 5], **QUICK))


def test_a_rank_that_was_tried_with_another_penalty_is_tried_again(tmp_path, fits):
    alone = select_rank(similarities(), [2], checkpoint=tmp_path, **QUICK)
    fits.clear()
    more = select_rank(similarities(), [2, 4], checkpoint=tmp_path, **QUICK)
    assert more.comparison_alpha != alone.comparison_alpha
    assert {task.rank for task in fits} == {2, 4}
    same(more, select_rank(similarities(), [2, 4], **QUICK))


def test_the_other_protocol_needs_no_new_fits(tmp_path, fits):
    select_rank(similarities(), RANKS, checkpoint=tmp_path, alpha=0.0, **QUICK)
    fits.clear()
    paper = select_rank(similarities(), RANKS, protocol="paper", checkpoint=tmp_path, **QUICK)
    assert fits == []
    same(paper, select_rank(similarities(), RANKS, protocol="paper", **QUICK))


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"S": similarities(seed=1)}, "other similarities"),
        ({"n_folds": 3}, "n_folds is 2, not 3"),
        ({"n_repeats": 3}, "n_repeats is 2, not 3"),
        ({"sampling": 0.5}, r"sampling is 0\.6, not 0\.5"),
        ({"estimator": SRF(solver="admm")}, "max_iter of the estimator is "),
        ({"random_state": 1}, "random seed"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_checkpoint_of_other_data_or_settings_is_refused(tmp_path, fits, change, fragment):
    select_rank(similarities(), [2], checkpoint=tmp_path, **QUICK)
    fits.clear()
    arguments = {"S": similarities(), **QUICK, **change}
    with pytest.raises(ParameterError, match=f"^checkpoint .*{fragment}"):
        select_rank(arguments.pop("S"), [2], checkpoint=tmp_path, **arguments)
    assert fits == []


def test_without_a_seed_a_resumed_run_has_that_of_the_first(tmp_path, fits):
    settings = {**QUICK, "random_state": None}
    first = select_rank(similarities(), [2, 3], checkpoint=tmp_path, **settings)
    fits.clear()
    again = select_rank(similarities(), [2, 3, 4], checkpoint=tmp_path, **settings)
    assert {task.rank for task in fits} == {4}
    np.testing.assert_array_equal(first.scores["error"], again.scores["error"][:8])


def test_progress_counts_what_was_done_before(tmp_path):
    select_rank(similarities(), [2, 3], checkpoint=tmp_path, **QUICK)
    told = []
    select_rank(similarities(), [2, 3, 4], checkpoint=tmp_path, progress=told.append, **QUICK)
    assert [(step.done, step.total) for step in told] == [(done, 12) for done in range(9, 13)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_that_was_stopped_at_any_line_ends_with_the_same_result(tmp_path, monkeypatch, n_jobs):
    monkeypatch.setattr(calibration, "few_bootstraps", lambda n_items: 3)
    settings = {**QUICK, "sampling": None}
    S = similarities()
    expected = select_rank(S, RANKS, **settings)
    states = []

    def copying(method):
        def changed(journal, *arguments):
            method(journal, *arguments)
            states.append(shutil.copytree(journal.folder, tmp_path / str(len(states))))

        return changed

    with monkeypatch.context() as patch:
        for name in ("append", "keep", "drop"):
            patch.setattr(Journal, name, copying(getattr(Journal, name)))
        same(select_rank(S, RANKS, checkpoint=tmp_path / "run", n_jobs=n_jobs, **settings), expected)
    assert len(states) == 3 + 12 + 12 + 3 + 12 + 2  # bootstraps, arrays, fits, ranks, arrays dropped, penalties
    for number, state in enumerate(states):
        if number % 2:  # half of them stopped while they wrote the next line
            with open(state / "journal.jsonl", "ab") as file:
                file.write(b'{"kind": "fit", "task": [4, 0')
        same(select_rank(S, RANKS, checkpoint=state, **settings), expected)
        assert sorted(path.name for path in state.iterdir()) == ["journal.jsonl", "lock", "settings.json"]


def test_a_resumed_run_makes_only_the_fits_that_are_missing(tmp_path, fits):
    def stop(progress):
        if progress.done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select_rank(similarities(), RANKS, checkpoint=tmp_path, progress=stop, **QUICK)
    assert len(fits) == 7
    done = set(fits)
    fits.clear()
    select_rank(similarities(), RANKS, checkpoint=tmp_path, **QUICK)
    assert len(fits) == 12 - 7
    assert not done & set(fits)


# --- killed without warning --------------------------------------------------------------------------------------

SCRIPT = textwrap.dedent(
    """
    import sys
    from simdims import SRF, select_rank, simulate

    W = simulate.dirichlet(60, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
    select_rank(
        S, [2, 3, 5, 8], sampling=0.6, n_folds=4, n_repeats=3, estimator=SRF(tol=0.0, max_iter=600),
        checkpoint=sys.argv[1], random_state=0, n_jobs=int(sys.argv[2]),
    )
    """
)
N_FITS = 4 * 4 * 3


def n_lines(folder):
    path = Path(folder) / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def run_and_kill(folder, n_jobs, rng):
    """Start the script and kill it, and all it has started, a little after some more lines are written."""
    wanted = n_lines(folder) + rng.randint(1, 12)
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(n_jobs)], stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        while n_lines(folder) < wanted and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.wait()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, process.stderr.read().decode()


def kill_and_resume(folder, n_jobs, n_kills, seed):
    W = simulate.dirichlet(60, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
    settings = {
        "sampling": 0.6, "n_folds": 4, "n_repeats": 3, "estimator": SRF(tol=0.0, max_iter=600), "random_state": 0
    }  # fmt: skip
    rng = random.Random(seed)
    done = [0]
    for _ in range(n_kills):
        code, stderr = run_and_kill(folder, n_jobs, rng)
        done.append(n_lines(folder))
        if code == 0 and len(done) > 2:  # the last ones are sometimes done before they are killed
            break
        assert code == -signal.SIGKILL, stderr
    assert done == sorted(done)
    assert 0 < done[1] < N_FITS + 4  # it was killed in the middle
    told = []
    resumed = select_rank(S, [2, 3, 5, 8], checkpoint=folder, n_jobs=n_jobs, progress=told.append, **settings)
    assert len(told) < N_FITS  # and did not begin again
    same(resumed, select_rank(S, [2, 3, 5, 8], **settings))


SLOW = [pytest.param(n_jobs, 4, 100 + seed, marks=pytest.mark.slow) for n_jobs in (1, 2) for seed in range(8)]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no process groups to kill")
@pytest.mark.parametrize(("n_jobs", "n_kills", "seed"), [(1, 3, 1), (2, 1, 2), *SLOW])
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_result(tmp_path, n_jobs, n_kills, seed):
    kill_and_resume(tmp_path, n_jobs, n_kills, seed)
