"""Ctrl-C: a selection on several processes ends promptly, leaves none of them behind, and can be resumed."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from simdims import select_rank, simulate

pytestmark = [
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc, which is missing"
    ),
    pytest.mark.filterwarnings("ignore:(The lowest held-out error|A fit to)"),
]

SCRIPT = textwrap.dedent(
    """
    import sys, time
    from simdims import SRF, select_rank, simulate

    W = simulate.dirichlet(60, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.8, random_state=0)

    def tell(progress):
        print(progress.stage, progress.done, flush=True)

    arguments = eval(sys.argv[1])
    try:
        select_rank(S, range(2, 22), random_state=0, n_jobs=2, progress=tell, **arguments)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.stdin.readline()  # stays, as a notebook does
        sys.exit(130)
    """
)


def descendants(pid):
    """Ids of the processes that a process has started, and those have started; the dead that wait are left out."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(folder.name)] = int(parent)
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def workers(pids):
    """Of these processes those that work for joblib and still run."""
    running = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if state != "Z" and b"popen_loky" in command:
            running.append(pid)
    return running


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


# Fits of some minutes each.
LONG = """
from simdims import SRF, fit_consensus, simulate

W = simulate.dirichlet(900, 3, alpha=0.3, random_state=0)
S = simulate.add_noise(W @ W.T, 0.5, random_state=0)
fit_consensus(S, 90, n_runs=3, estimator=SRF(tol=0.0, max_iter=10**7), n_jobs=2, progress=False)
"""


def is_busy(pid):
    """Whether a process has spent some seconds computing."""
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]
    except OSError:
        return False
    return int(ticks) > 2 * os.sysconf("SC_CLK_TCK")


def test_workers_end_soon_after_their_parent_was_killed():
    process = subprocess.Popen([sys.executable, "-c", LONG], start_new_session=True)
    started = set()
    try:
        busy = lambda: [pid for pid in workers(descendants(process.pid)) if is_busy(pid)]  # noqa: E731
        assert wait_until(lambda: len(busy()) == 2, seconds=90)
        started = descendants(process.pid)
        process.kill()
        process.wait()
        assert wait_until(lambda: not workers(started), seconds=10)
    finally:
        for pid in (process.pid, *started):
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    ("group", "stage", "checkpointed"),
    [
        (False, "select rank", True),
        (True, "select rank", True),
        pytest.param(True, "select rank", False, marks=pytest.mark.slow),
        pytest.param(False, "calibrate", True, marks=pytest.mark.slow),
        pytest.param(True, "calibrate", False, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_ends_at_once_and_leaves_no_process(tmp_path, group, stage, checkpointed):
    settings = {"n_folds": 4, "n_repeats": 3}
    if stage == "select rank":
        settings["sampling"] = 0.6
    arguments = {**settings, "checkpoint": str(tmp_path / "run") if checkpointed else None}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, repr(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    started = set()
    try:
        for line in process.stdout:
            if line.startswith(f"{stage} 10"):
                break
        started = descendants(process.pid)
        assert len(workers(started)) == 2
        began = time.monotonic()
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        told = 10
        for line in process.stdout:
            if line.startswith("interrupted"):
                break
            told += 1
        else:
            pytest.fail(process.stderr.read())
        assert time.monotonic() - began < 5
        # While the program goes on, no worker does.
        assert wait_until(lambda: not workers(started | descendants(process.pid)))
        _, errors = process.communicate("\n", timeout=10)
        assert process.returncode == 130
        assert "could benefit from adjusting" not in errors
        assert wait_until(lambda: not any(map(is_alive, started)))
    finally:
        for pid in (process.pid, *started):
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    if checkpointed and stage == "select rank":
        steps = []
        W = simulate.dirichlet(60, 3, alpha=0.3, random_state=0)
        S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
        ranks = range(2, 22)
        select_rank(S, ranks, random_state=0, progress=steps.append, checkpoint=tmp_path / "run", **settings)
        assert told <= steps[0].done - 1 <= told + 2  # what was told is kept, and at most one more a process
        assert steps[-1].done == len(ranks) * 12
