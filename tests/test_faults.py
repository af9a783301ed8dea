"""Full and read-only disks, killed processes, two runs at once: completed work stays, and is undamaged."""

import errno
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from simdims import (
    Discovery,
    ParameterError,
    Similarity,
    discover,
    fit_consensus,
    load_similarity,
    select_rank,
    simulate,
)
from simdims._journal import Journal, name_beside
from simdims.discovery import storage
from simdims.selection import calibration, crossvalidation

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.skipif(
        sys.platform != "linux", reason="processes are forked to be killed, which is safe on Linux only"
    ),
]


def similarities(seed=0):
    W = simulate.dirichlet(16, 2, alpha=0.3, random_state=seed)
    return Similarity(simulate.add_noise(W @ W.T, 0.8, random_state=seed), labels=[f"item {i}" for i in range(16)])


QUICK = {"sampling": 0.6, "n_folds": 2, "n_repeats": 2, "random_state": 0}


@pytest.fixture(scope="module")
def two():
    """Two results that can be told apart: the one has a selection, and so more files."""
    settings = {"n_runs": 2, "progress": False, "random_state": 0}
    return (
        discover(similarities(0), ranks=[1, 2], sampling=0.6, n_repeats=1, **settings),
        discover(similarities(1), ranks=2, **settings),
    )


def which(folder, two):
    """Which of two results a folder holds, bit for bit."""
    found = Discovery.load(folder)
    for number, one in enumerate(two):
        if np.array_equal(found.consensus.embeddings, one.consensus.embeddings):
            assert np.array_equal(found.similarity.values, one.similarity.values)
            assert found.metrics == one.metrics
            assert (found.selection is None) == (one.selection is None)
            return number
    return pytest.fail("the folder holds a result that nobody saved")


def start(work):
    """Run something in a process of its own, and return its number."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    return pid


def status_of(pid):
    """Wait for a process: 0, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def killed_at(step, folder, work):
    """Run something in a process that is killed before its n-th change of what is in a folder; whether it was."""

    def changing():
        left = [step]
        changes = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.truncate"}

        def before(event, arguments):
            is_change = event in changes or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR))
            if is_change and str(folder) in str(arguments[0]):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(before)
        work()

    status = status_of(start(changing))
    assert status in (0, -signal.SIGKILL)
    return status != 0


@contextmanager
def small_disk(folder, options="size=64k"):
    """A disk of its own at a folder, where this process may mount one."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


needs_mount = pytest.mark.skipif(shutil.which("mount") is None, reason="this system has no mount command")


# --- a full disk -------------------------------------------------------------------------------------------------


@needs_mount
def test_a_journal_on_a_full_disk_keeps_its_records_and_resumes_when_there_is_space(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        filler = disk / "filler"
        filler.write_bytes(b"x" * 40_000)
        done = []
        with Journal(disk / "run", {"n": 1}) as journal:

            def append_until_full():
                for number in range(10_000):
                    journal.append({"number": number, "text": "x" * 50})
                    done.append(number)

            with pytest.raises(OSError, match="No space left"):
                append_until_full()
            assert done
            with pytest.raises(OSError):  # noqa: PT011
                journal.keep("W", np.ones((100, 100)))
            assert journal.kept("W") is None
            filler.unlink()
            journal.append({"number": -1})
        with Journal(disk / "run", {"n": 1}) as journal:
            assert [record["number"] for record in journal.records] == [*done, -1]


def test_half_a_line_is_taken_back_so_that_the_next_one_is_whole(tmp_path, monkeypatch):
    """The same without the right to mount: a write that ends in the middle of a record."""
    write = os.write

    def full(handle, line):
        write(handle, bytes(line)[: len(line) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Journal(tmp_path, {}) as journal:
        journal.append({"number": 0})
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OSError, match="No space left"):
                journal.append({"number": 1})
        journal.append({"number": 2})
    with Journal(tmp_path, {}) as journal:
        assert [record["number"] for record in journal.records] == [0, 2]


def test_a_folder_is_free_again_when_its_last_write_failed(tmp_path, monkeypatch):
    journal = Journal(tmp_path, {})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
        with pytest.raises(OSError, match="No space left"):
            journal.close()
    Journal(tmp_path, {}).close()


@needs_mount
def test_a_selection_whose_disk_fills_up_resumes_when_there_is_space(tmp_path, monkeypatch):
    fitted = []
    fit_fold = crossvalidation.fit_fold
    monkeypatch.setattr(crossvalidation, "fit_fold", lambda *a: fitted.append(a[-1]) or fit_fold(*a))
    S = similarities()
    expected = select_rank(S, [1, 2, 3], **QUICK)
    with small_disk(tmp_path / "disk", "size=24k") as disk:
        fitted.clear()
        with pytest.raises(OSError):  # noqa: PT011
            select_rank(S, [1, 2, 3], checkpoint=disk / "run", **QUICK)
        before = len(fitted)
        assert 0 < before < 12
        remount(disk, "size=1m")
        found = select_rank(S, [1, 2, 3], checkpoint=disk / "run", **QUICK)
    assert len(fitted) - before <= 12 - (before - 1)  # only the one that did not fit is made again
    assert found.rank == expected.rank
    np.testing.assert_array_equal(found.scores["error"], expected.scores["error"])


@needs_mount
def test_a_result_that_does_not_fit_leaves_the_earlier_one(tmp_path, two):
    with small_disk(tmp_path / "disk", "size=1m") as disk:
        two[1].save(disk / "folder")
        needed = sum(path.stat().st_blocks * 512 for path in disk.rglob("*")) // 1024
        two[0].save(disk / "folder")
        used = sum(path.stat().st_blocks * 512 for path in disk.rglob("*")) // 1024
        for free in range(0, needed, 4):
            remount(disk, f"size={used + free}k")
            with pytest.raises(OSError):  # noqa: PT011
                two[1].save(disk / "folder")
            assert os.listdir(disk) == ["folder"]
            assert which(disk / "folder", two) == 0
        remount(disk, "size=1m")
        two[1].save(disk / "folder")
        assert which(disk / "folder", two) == 1


@needs_mount
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_a_similarity_that_does_not_fit_leaves_the_earlier_one(tmp_path, suffix):
    large = Similarity(np.eye(120) + 0.1)
    with small_disk(tmp_path / "disk") as disk:
        similarities().save(disk / f"S{suffix}")
        with pytest.raises(OSError):  # noqa: PT011
            large.save(disk / f"S{suffix}")
        assert os.listdir(disk) == [f"S{suffix}"]
        np.testing.assert_array_equal(load_similarity(disk / f"S{suffix}").values, similarities().values)


@pytest.mark.parametrize("failing", range(4))
def test_a_result_whose_files_cannot_be_moved_leaves_the_earlier_one(tmp_path, monkeypatch, two, failing):
    """Without the right to mount: the n-th move of a file or folder fails, whichever that is."""
    two[0].save(tmp_path / "folder")
    (tmp_path / "folder" / "notes.txt").write_text("words")
    replace, calls = os.replace, []

    def fails(one, other):
        calls.append(one)
        if len(calls) == failing + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replace(one, other)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        try:
            two[1].save(tmp_path / "folder")
            expected = 1
        except OSError:
            expected = 0
    assert which(tmp_path / "folder", two) == expected
    assert (tmp_path / "folder" / "notes.txt").read_text() == "words"
    assert os.listdir(tmp_path) == ["folder"]
    two[1].save(tmp_path / "folder")
    assert which(tmp_path / "folder", two) == 1


# --- a disk that takes nothing -----------------------------------------------------------------------------------


def refuse_all(folder, two):
    """Every function that writes raises an error before any work if nothing can be written in a folder."""
    S = similarities()
    calls = []
    for write in (
        lambda: two[0].save(folder / "result"),
        lambda: S.save(folder / "S.npz"),
        lambda: S.save(folder / "S.csv"),
        lambda: two[0].report(folder / "page.html"),
        lambda: Journal(folder / "run", {}),
        lambda: discover(S, ranks=2, n_runs=2, progress=calls.append, checkpoint=folder / "run"),
        lambda: select_rank(S, [1, 2], progress=calls.append, checkpoint=folder / "run", **QUICK),
    ):
        with pytest.raises((ValueError, OSError), match=f"'{folder}"):
            write()
    assert not calls


@needs_mount
def test_a_read_only_folder_is_refused_before_any_work_and_what_is_there_can_be_read(tmp_path, two):
    with small_disk(tmp_path / "disk", "size=1m") as disk:
        two[0].save(disk / "old")
        similarities().save(disk / "old.npz")
        remount(disk, "ro")
        refuse_all(disk, two)
        with pytest.raises((ValueError, OSError), match="disk/old'"):
            two[1].save(disk / "old")
        assert which(disk / "old", two) == 0
        assert load_similarity(disk / "old.npz").n_items == 16
        remount(disk, "rw")


def test_a_folder_that_may_not_be_written_to_is_refused(tmp_path, monkeypatch, two):
    """Without the right to mount: the system says no, as it does to everyone but root."""
    mkdir, opened = os.mkdir, os.open

    def refusing(function):
        def call(path, *arguments, **more):
            if str(tmp_path) in str(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path, *arguments, **more)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_, **__: False)
        patch.setattr(os, "mkdir", refusing(mkdir))
        patch.setattr(os, "open", refusing(opened))
        refuse_all(tmp_path, two)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_what_no_file_can_be_called_is_refused(tmp_path, two, name):
    for write in (
        two[0].save,
        Discovery.load,
        lambda path: similarities().save(f"{path}.npz"),
        lambda path: load_similarity(f"{path}.npz"),
        lambda path: Journal(path, {}),
        lambda path: discover(similarities(), ranks=2, n_runs=2, checkpoint=path),
    ):
        with pytest.raises(ParameterError) as caught:
            write(f"{tmp_path}/{name}")
        assert caught.value.name in ("folder", "path", "checkpoint")
    assert not os.listdir(tmp_path)


# --- killed ------------------------------------------------------------------------------------------------------


def test_a_save_that_is_killed_at_any_step_leaves_the_old_or_the_new_result(tmp_path, two):
    steps, found = 0, []
    while True:
        folder = tmp_path / str(steps) / "folder"
        two[0].save(folder)
        (folder / "notes").mkdir()
        (folder / "notes" / "words.txt").write_text("words")
        was_killed = killed_at(steps, folder.parent, lambda folder=folder: two[1].save(folder))
        found.append(which(folder, two))
        assert os.listdir(folder.parent) == ["folder"]  # reading it has cleared away what the kill left
        two[1].save(folder)  # whatever was left behind is no obstacle
        assert which(folder, two) == 1
        assert (folder / "notes" / "words.txt").read_text() == "words"
        assert os.listdir(folder.parent) == ["folder"]
        if not was_killed:
            break
        steps += 1
    assert steps > 10
    assert found == sorted(found)  # the old one, until at one moment it is the new one
    assert set(found) == {0, 1}


def test_a_first_save_that_is_killed_at_any_step_is_whole_or_not_there(tmp_path, two):
    steps = 0
    while killed_at(steps, tmp_path, lambda: two[0].save(tmp_path / "folder")):
        if (tmp_path / "folder").exists():
            assert which(tmp_path / "folder", two) == 0
            shutil.rmtree(tmp_path / "folder")
        else:
            with pytest.raises(FileNotFoundError, match="folder"):
                Discovery.load(tmp_path / "folder")
        steps += 1
    assert steps > 5
    assert which(tmp_path / "folder", two) == 0


def test_saves_that_are_killed_at_random_moments_leave_one_of_the_results(tmp_path, two):
    rng = random.Random(0)
    two[0].save(tmp_path / "folder")
    for _ in range(12):
        pid = start(lambda: [one.save(tmp_path / "folder") for one in itertools.cycle(two)])
        time.sleep(rng.uniform(0.01, 0.08))
        kill(pid)
        which(tmp_path / "folder", two)
        assert os.listdir(tmp_path) == ["folder"]  # reading it has cleared away what the kill left


def test_what_a_process_that_is_alive_has_in_hand_is_left_alone(tmp_path, two):
    two[0].save(tmp_path / "folder")
    similarities().save(tmp_path / "S.npz")
    reader, writer = os.pipe()

    def begin():
        name_beside(tmp_path / "folder", "part").mkdir()
        name_beside(tmp_path / "S.npz", "part").touch()
        os.write(writer, b".")
        time.sleep(60)

    pid = start(begin)
    os.read(reader, 1)
    try:
        two[1].save(tmp_path / "folder")
        which(tmp_path / "folder", two)
        similarities(1).save(tmp_path / "S.npz")
        assert len(os.listdir(tmp_path)) == 4
    finally:
        kill(pid)
    foreign = tmp_path / f".folder.0a1b2c3d-{pid}-00000000.part"  # a process of another machine may well be alive
    foreign.mkdir()
    which(tmp_path / "folder", two)
    similarities(1).save(tmp_path / "S.npz")
    assert sorted(os.listdir(tmp_path)) == [foreign.name, "S.npz", "folder"]


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_a_file_whose_writer_is_killed_at_any_step_is_the_old_or_the_new_one(tmp_path, suffix):
    path, old, new = tmp_path / f"S{suffix}", similarities(0), similarities(1)
    old.save(path)
    steps = 0
    while killed_at(steps, tmp_path, lambda: new.save(path)):
        values = load_similarity(path).values
        assert any(np.array_equal(values, one.values) for one in (old, new))
        old.save(path)
        assert os.listdir(tmp_path) == [path.name]
        steps += 1
    assert steps >= 2
    np.testing.assert_array_equal(load_similarity(path).values, new.values)


def test_what_a_journal_was_told_is_there_after_any_kill(tmp_path):
    """The child says what it has finished before the parent kills it; the parent must find all of that, and whole."""
    rng = random.Random(1)
    for number in range(8):
        folder = tmp_path / str(number)
        reader, writer = os.pipe()

        def fill(folder=folder, writer=writer):
            with Journal(folder, {}) as journal:
                for k in range(10**6):
                    journal.keep(f"W-{k % 50}", np.full((20, 3), float(k)))
                    journal.append({"number": k, "text": "x" * rng.randint(0, 5000)})
                    os.write(writer, b".")

        pid = start(fill)
        os.close(writer)
        os.read(reader, 1)
        time.sleep(rng.uniform(0, 0.03))
        kill(pid)
        told = 1
        while got := os.read(reader, 65536):
            told += len(got)
        os.close(reader)
        with Journal(folder, {}) as journal:
            numbers = [record["number"] for record in journal.records]
            assert numbers == list(range(len(numbers)))
            assert len(numbers) >= told
            for k in numbers[-10:]:
                kept = journal.kept(f"W-{k % 50}")
                assert kept is not None
                assert kept.shape == (20, 3)
                assert kept[0, 0] >= k
                assert np.ptp(kept) == 0


def test_a_journal_that_is_killed_at_any_step_can_be_opened(tmp_path):
    def work():
        with Journal(tmp_path / "run", {"n": 1}) as journal:
            journal.append({"number": 1})
            journal.keep("W", np.ones(3))
            journal.drop("W")

    steps = 0
    while killed_at(steps, tmp_path, work):
        with Journal(tmp_path / "run", {"n": 1}) as journal:
            assert all(record == {"number": 1} for record in journal.records)
            kept = journal.kept("W")
            assert kept is None or np.array_equal(kept, np.ones(3))
        shutil.rmtree(tmp_path / "run")
        steps += 1
    assert steps > 5


# --- damaged files -----------------------------------------------------------------------------------------------


def damaged(content, rng, n_each=6):
    """What disks, power cuts and careless editors make of a file; each different from it."""
    places = [rng.randrange(len(content)) for _ in range(n_each)]
    found = [content[:place] for place in places]
    for place in places:
        flipped, zeroed = bytearray(content), bytearray(content)
        flipped[place] ^= 1 << rng.randrange(8)
        end = min(len(content), place + rng.choice([8, 64, len(content)]))
        zeroed[place:end] = bytes(end - place)
        found += [bytes(flipped), bytes(zeroed)]
    digits = [place for place, byte in enumerate(content) if byte in b"0123456789"]
    for place in rng.sample(digits, min(n_each, len(digits))):  # which no parser takes for damage
        found.append(content[:place] + str((int(content[place : place + 1]) + 1) % 10).encode() + content[place + 1 :])
    lines = content.splitlines(keepends=True)
    one, other = sorted(rng.choices(range(len(lines)), k=2))
    found += [
        b"".join([*lines[:one], lines[other], *lines[one + 1 : other], lines[one], *lines[other + 1 :]]),
        b"".join([*lines[:one], lines[one], *lines[one:]]),
        b"".join([*lines[:one], *lines[one + 1 :]]),
    ]
    return [each for each in found if each != content]


def outcomes(folder, spare, resume, expected, n_each=6):
    """Damage every file in turn; count files that were refused by name, and those whose damage changed nothing."""
    rng = random.Random(0)
    refused, unchanged = {}, {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock"):
        for content in damaged(path.read_bytes(), rng, n_each):
            shutil.rmtree(spare, ignore_errors=True)
            shutil.copytree(folder, spare)
            (spare / path.relative_to(folder)).write_bytes(content)
            try:
                found = resume(spare)
            except ValueError as error:
                assert path.name in str(error), error  # noqa: PT017
                refused[path.name] = refused.get(path.name, 0) + 1
            else:
                assert found == expected, (path.name, content)
                unchanged[path.name] = unchanged.get(path.name, 0) + 1
    return refused, unchanged


def numbers_of(result):
    """All that a result says, to compare; but not how long it took."""
    if isinstance(result, Discovery):
        parts = [numbers_of(part) for part in (result.consensus, result.selection) if part is not None]
        return [*parts, result.metrics, result.settings, result.similarity.values.tobytes(), result.labels]
    if hasattr(result, "embeddings"):
        return [getattr(result, name).tobytes() for name in ("embeddings", "reliability", "objectives", "seeds")]
    return [result.rank, result.scores.drop(columns="seconds").to_dict(), result.curve.to_dict(), result.sampling]


def stop_after(n_steps):
    steps = []

    def stop(progress):
        steps.append(progress)
        if len(steps) == n_steps:
            raise KeyboardInterrupt

    return stop


def test_a_damaged_checkpoint_of_a_selection_changes_nothing_or_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "few_bootstraps", lambda n_items: 3)
    S, settings = similarities(), {**QUICK, "sampling": None, "n_repeats": 1}

    def run(folder=None, progress=None):
        return numbers_of(select_rank(S, [1, 2, 3], checkpoint=folder, progress=progress, **settings))

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", stop_after(3 + 3))  # one rank has ended, and of another there is a fit
    assert list((tmp_path / "run").glob("*.npy"))
    refused, unchanged = outcomes(tmp_path / "run", tmp_path / "spare", run, run())
    assert set(refused) == {"settings.json"}
    assert "settings.json" not in unchanged


def test_a_damaged_checkpoint_of_a_consensus_changes_nothing_or_is_refused(tmp_path):
    S = similarities()

    def run(folder=None):
        return numbers_of(fit_consensus(S, 2, n_runs=3, n_splits=2, checkpoint=folder, random_state=0))

    run(tmp_path / "run")
    refused, unchanged = outcomes(tmp_path / "run", tmp_path / "spare", run, run())
    assert set(refused) == {"settings.json"}
    assert set(unchanged) == {"journal.jsonl", "run-0.npy", "run-1.npy", "run-2.npy"}


@pytest.mark.parametrize("random_state", [0, None])
def test_a_damaged_checkpoint_of_a_discovery_changes_nothing_or_is_refused(tmp_path, random_state, monkeypatch):
    monkeypatch.setattr("simdims.discovery.run.expected_seconds", lambda *_, **__: 1.0)
    settings = {"ranks": [1, 2], "sampling": 0.6, "n_repeats": 1, "n_runs": 2, "random_state": random_state}

    def run(folder):
        return numbers_of(discover(similarities(), checkpoint=folder, progress=False, **settings))

    expected = run(tmp_path / "run")
    refused, unchanged = outcomes(tmp_path / "run", tmp_path / "spare", run, expected, n_each=2)
    assert set(refused) == {"settings.json", "seed"}
    assert set(unchanged) == {"journal.jsonl", "run-0.npy", "run-1.npy", "detectable-2"}


def test_a_damaged_folder_of_a_result_is_refused_but_for_its_tables(tmp_path, two):
    two[0].save(tmp_path / "result")
    expected = numbers_of(two[0])
    refused, unchanged = outcomes(
        tmp_path / "result", tmp_path / "spare", lambda folder: numbers_of(Discovery.load(folder)), expected
    )
    assert set(refused) == {"discovery.json", "arrays.npz", "similarity.npz"}
    assert all(name.endswith((".csv", ".txt")) for name in unchanged)


# --- two at once -------------------------------------------------------------------------------------------------


def test_two_processes_that_save_to_one_folder_end_with_a_whole_result(tmp_path, two):
    pids = [start(lambda one=one: [one.save(tmp_path / "folder") for _ in range(15)]) for one in two]
    read = 0
    while pids:
        pid, status = os.waitpid(pids[-1], os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            pids.pop()
        try:
            which(tmp_path / "folder", two)
            read += 1
        except (ValueError, FileNotFoundError) as error:
            assert "folder" in str(error)  # noqa: PT017
    assert read
    which(tmp_path / "folder", two)
    assert os.listdir(tmp_path) == ["folder"]


def test_two_selections_on_one_folder_do_not_mix(tmp_path):
    S = similarities()
    expected = select_rank(S, [1, 2, 3], **QUICK)
    reader, writer = os.pipe()

    def slow(progress):
        os.write(writer, b".")
        time.sleep(0.05)

    pid = start(lambda: select_rank(S, [1, 2, 3], checkpoint=tmp_path / "run", progress=slow, **QUICK))
    os.read(reader, 1)
    with pytest.raises(ParameterError, match="another run"):
        select_rank(S, [1, 2, 3], checkpoint=tmp_path / "run", **QUICK)
    assert status_of(pid) == 0
    found = select_rank(S, [1, 2, 3], checkpoint=tmp_path / "run", **QUICK)
    np.testing.assert_array_equal(found.scores["error"], expected.scores["error"])


def test_discoveries_that_begin_at_once_agree_on_one_seed(tmp_path):
    """Without a seed each would draw its own; a folder has one, whoever comes first."""
    S = similarities()
    for attempt in range(3):
        folder, moment = tmp_path / str(attempt), time.time() + 0.1

        def begin(folder=folder, moment=moment):
            time.sleep(max(0, moment - time.time()))
            try:
                discover(S, ranks=2, n_runs=2, checkpoint=folder)
            except ParameterError as error:
                if "another run" not in str(error):
                    raise

        assert [status_of(pid) for pid in [start(begin) for _ in range(3)]] == [0, 0, 0]
        one, other = (discover(S, ranks=2, n_runs=2, checkpoint=folder) for _ in range(2))
        assert np.array_equal(one.consensus.embeddings, other.consensus.embeddings)


def test_an_earlier_result_that_a_kill_has_set_aside_is_found_under_its_name(tmp_path, two):
    two[0].save(tmp_path / "folder[1]")
    os.replace(tmp_path / "folder[1]", tmp_path / ".folder[1].0a1b2c3d.old")
    assert which(tmp_path / "folder[1]", two) == 0
    assert os.listdir(tmp_path) == ["folder[1]"]
    assert not storage.is_saved(tmp_path / "folder[2]")
    with pytest.raises(FileNotFoundError, match="folder"):
        Discovery.load(tmp_path / "folder[2]")
    two[1].save(tmp_path / "folder[1]")
    assert which(tmp_path / "folder[1]", two) == 1
    assert os.listdir(tmp_path) == ["folder[1]"]
