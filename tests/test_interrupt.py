"""Ctrl-C: a selection on several processes ends promptly, leaves none of them behind, and can be resumed."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager, suppress
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


def stat_of(pid):
    """State, parent and so on of a process; None once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields


def descendants(pid):
    """Ids of the processes that a process has started, and those have started."""
    ids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    parents = {one: int(stat[1]) for one in ids if (stat := stat_of(one)) is not None}
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def workers(pids):
    """Of these processes those that work for joblib and still run."""
    running = [pid for pid in pids if stat_of(pid) is not None]
    with suppress(OSError):
        return [pid for pid in running if b"popen_loky" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return workers(running)  # one of them has just ended


def is_busy(pid):
    """Whether a process has spent some seconds computing."""
    stat = stat_of(pid)
    return stat is not None and int(stat[11]) > 2 * os.sysconf("SC_CLK_TCK")


@contextmanager
def ended(process, started):
    """End a process, and those it has started, whatever happens."""
    try:
        yield
    finally:
        for pid in (process.pid, *started):
            if stat_of(pid) is not None:
                os.kill(pid, signal.SIGKILL)
        process.wait()


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


def test_workers_end_soon_after_their_parent_was_killed():
    process = subprocess.Popen([sys.executable, "-c", LONG], start_new_session=True)
    started = set()
    with ended(process, started):
        assert wait_until(lambda: sum(map(is_busy, workers(descendants(process.pid)))) == 2, seconds=90)
        started |= descendants(process.pid)
        process.kill()
        process.wait()
        assert wait_until(lambda: not workers(started), seconds=10)


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
    with ended(process, started):
        for line in process.stdout:
            if line.startswith(f"{stage} 10"):
                break
        started |= descendants(process.pid)
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
        # The program still runs; its workers do not.
        assert wait_until(lambda: not workers(started | descendants(process.pid)))
        _, errors = process.communicate("\n", timeout=10)
        assert process.returncode == 130
        assert "could benefit from adjusting" not in errors
        assert wait_until(lambda: not any(map(stat_of, started)))
    if checkpointed and stage == "select rank":
        steps = []
        W = simulate.dirichlet(60, 3, alpha=0.3, random_state=0)
        S = simulate.add_noise(W @ W.T, 0.8, random_state=0)
        ranks = range(2, 22)
        select_rank(S, ranks, random_state=0, progress=steps.append, checkpoint=tmp_path / "run", **settings)
        assert told <= steps[0].done - 1 <= told + 2  # what was reported is kept, and at most one more per process
        assert steps[-1].done == len(ranks) * 12
