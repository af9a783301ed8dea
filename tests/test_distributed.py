"""Fits on a cluster: the same numbers to the last bit, even if a worker dies; the similarities are sent once."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
import traceback
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

from simdims import SRF, Discovery, Similarity, _parallel, discover, fit_consensus, select_rank, simulate

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore:(The lowest held-out error|A fit to)")

RANKS = range(2, 6)
SETTINGS = {"sampling": 0.6, "n_folds": 3, "n_repeats": 2, "random_state": 0}
N_FITS = 4 * 3 * 2
N_WORKERS = 4
DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module", name="S")
def fixture_similarities():
    W = simulate.dirichlet(60, 4, alpha=0.3, random_state=0)
    return simulate.add_noise(W @ W.T, 0.7, random_state=0)


@pytest.fixture(scope="module", name="serial")
def fixture_serial(S):
    return select_rank(S, RANKS, **SETTINGS)


@contextmanager
def started(n_workers=N_WORKERS):
    """Worker processes of one thread each."""
    settings = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(processes=True, **settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module", name="client")
def fixture_client():
    with started() as client:
        yield client


@pytest.fixture(name="own_client")
def fixture_own_client():
    """For tests that kill workers: these are started again some time later, for which no other test should wait."""
    with started() as client:
        yield client


def same(one, other):
    frames = [each.scores.drop(columns="seconds") for each in (one, other)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)
    pd.testing.assert_frame_equal(one.curve, other.curve, check_exact=True)
    assert (one.rank, one.valley, one.sampling) == (other.rank, other.valley, other.sampling)


# Functions inside a test are sent as a whole: workers need not import this file to run them.


def test_tasks_run_on_the_cluster_and_on_all_of_it(client):
    def where(_, task):
        time.sleep(0.02)
        return task, os.getpid()

    with joblib.parallel_config("dask"):
        found = dict(_parallel.run_tasks(where, (None,), range(40), one_by_one=True))
    assert set(found) == set(range(40))
    assert set(found.values()) == set(client.run(os.getpid).values())


def test_workers_of_a_cluster_do_not_count_as_workers_of_this_machine(client):
    with joblib.parallel_config("dask"):
        assert _parallel.workers_here(None) == 1
        assert _parallel.n_workers(None) == N_WORKERS
    assert _parallel.n_workers(3) == _parallel.workers_here(3) == 3


def test_a_cluster_gives_the_same_numbers_as_one_process(client, S, serial):
    with joblib.parallel_config("dask"):
        same(select_rank(S, RANKS, **SETTINGS), serial)


def test_a_cluster_of_one_worker_gives_the_same_numbers(S, serial):
    with started(1) as own, joblib.parallel_config("dask"):
        same(select_rank(S, RANKS, **SETTINGS), serial)
        arrays = _parallel._attempt(lambda *given: given, 0, 0, (own.scatter(np.ones(3)), 7))[1]
    np.testing.assert_array_equal(arrays[0], np.ones(3))
    assert arrays[1] == 7


def test_calibration_on_a_cluster_gives_the_same_numbers_too(client, S):
    settings = {**SETTINGS, "sampling": None, "alpha": 0.0}
    with joblib.parallel_config("dask"):
        spread = select_rank(S, [3], **settings)
    one = select_rank(S, [3], **settings)
    same(spread, one)
    np.testing.assert_array_equal(spread.calibration.signal_loss, one.calibration.signal_loss)


def test_fits_of_torch_run_in_batches_on_all_workers(client, S):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    estimator = SRF(device="torch-cpu", tol=1e-2, max_iter=100)
    here = select_rank(S, RANKS, estimator=estimator, **SETTINGS)
    runs = fit_consensus(S, 3, n_runs=8, estimator=estimator, random_state=0)

    def fits_here():
        import simdims.solvers.torch as on_device

        return on_device.n_fits

    def count_fits():
        import simdims.solvers.torch as on_device

        fit_together, on_device.n_fits = on_device.fit_together, 0

        def counted(problems, *arguments, **keywords):
            on_device.n_fits += len(problems)
            return fit_together(problems, *arguments, **keywords)

        on_device.fit_together = counted

    client.run(count_fits)
    with joblib.parallel_config("dask"):
        there = select_rank(S, RANKS, estimator=estimator, **SETTINGS)
        fitted = fit_consensus(S, 3, n_runs=8, estimator=estimator, random_state=0)
    n_fits = client.run(fits_here).values()
    assert sum(n_fits) == N_FITS + 8
    assert min(n_fits) > 0
    np.testing.assert_allclose(there.curve["error"], here.curve["error"], rtol=0.02)
    np.testing.assert_allclose(fitted.objectives, runs.objectives, rtol=0.01)


def test_similarities_are_sent_once(client, S, monkeypatch):
    # The array is scattered once for all fits; what is sent for each fit is small in comparison.
    scattered, sizes = [], []
    scatter, submit = distributed.Client.scatter, distributed.Client.submit

    def counted_scatter(self, data, *arguments, **keywords):
        scattered.append(data)
        return scatter(self, data, *arguments, **keywords)

    def counted_submit(self, function, *arguments, **keywords):
        tasks = [[part for part in args if isinstance(part, np.ndarray)] for _, args, _ in keywords.get("tasks", [])]
        sizes.append(len(pickle.dumps(tasks)))
        return submit(self, function, *arguments, **keywords)

    monkeypatch.setattr(distributed.Client, "scatter", counted_scatter)
    monkeypatch.setattr(distributed.Client, "submit", counted_submit)
    with joblib.parallel_config("dask"):
        select_rank(S, RANKS, **SETTINGS)
    arrays = [one for data in scattered for one in data if one.nbytes == S.nbytes]
    assert len(arrays) == 1
    assert sizes
    assert max(sizes) < S.nbytes / 10


@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_dies_in_the_middle_changes_nothing(own_client, S, serial, victim):
    pids = sorted(own_client.run(os.getpid).values())
    assert len(pids) == N_WORKERS
    told = []

    def tell(progress):
        told.append(progress)
        if len(told) == 4:
            os.kill(pids[victim], signal.SIGKILL)

    with joblib.parallel_config("dask"):
        same(select_rank(S, RANKS, progress=tell, **SETTINGS), serial)
    assert [progress.done for progress in told] == list(range(1, N_FITS + 1))


def test_a_worker_that_dies_while_data_are_sent_changes_nothing(client, S, serial, monkeypatch):
    scatter, failed = distributed.Client.scatter, []

    def lose_one(self, data, *arguments, **keywords):
        if not failed:
            failed.append(True)
            raise distributed.comm.CommClosedError("Stream is closed")
        return scatter(self, data, *arguments, **keywords)

    monkeypatch.setattr(distributed.Client, "scatter", lose_one)
    with joblib.parallel_config("dask"):
        same(select_rank(S, RANKS, **SETTINGS), serial)
    assert failed


def test_discover_survives_the_loss_of_a_worker_in_each_of_its_steps(own_client, S):
    settings = {"ranks": [3, 4], "sampling": 0.6, "n_repeats": 2, "n_runs": 6, "random_state": 0}
    alone = discover(S, **settings)
    pids, killed = sorted(own_client.run(os.getpid).values()), []

    def kill_one(progress):
        if progress.stage in ("select rank", "consensus") and progress.stage not in killed and progress.done > 1:
            os.kill(pids[len(killed)], signal.SIGKILL)
            killed.append(progress.stage)

    with joblib.parallel_config("dask"):
        spread = discover(S, progress=kill_one, **settings)
    assert len(killed) == 2
    np.testing.assert_array_equal(spread.consensus.embeddings, alone.consensus.embeddings)
    assert spread.metrics == alone.metrics
    same(spread.selection, alone.selection)


def test_a_checkpoint_of_a_cluster_is_finished_by_one_process(client, S, tmp_path):
    settings = {"n_runs": 6, "random_state": 0, "checkpoint": tmp_path / "work"}
    whole = fit_consensus(S, 3, **{**settings, "checkpoint": None})

    def stop(progress):
        if progress.done == 3:
            raise KeyboardInterrupt

    with joblib.parallel_config("dask"), pytest.raises(KeyboardInterrupt):
        fit_consensus(S, 3, progress=stop, **settings)
    np.testing.assert_array_equal(fit_consensus(S, 3, **settings).embeddings, whole.embeddings)


# The page about clusters


def blocks():
    return re.findall(r"^```\n(.*?)^```$", (DOCS / "big-data.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_script_in_the_docs_runs_on_a_cluster_that_is_started_as_there(S, tmp_path):
    """Scheduler and workers are those of the SLURM file, one of which is killed while the script runs."""
    (script,) = [block for block in blocks() if block.startswith("# cluster.py")]
    (batch,) = [block for block in blocks() if "#SBATCH" in block]
    (tmp_path / "cluster.py").write_text(script)
    Similarity(S).save(tmp_path / "S.npz")
    scheduler, worker, run = (
        line.partition("dask ")[2].removesuffix(" &").replace('"$SCHEDULER"', "scheduler.json").split()
        if "dask" in line
        else line.replace('"$SCHEDULER"', "scheduler.json").split()
        for line in batch.splitlines()
        if line.startswith(("dask", "srun", "python"))
    )
    assert run == ["python", "cluster.py", "animals.npz", "animals", "scheduler.json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    quiet = {"cwd": tmp_path, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with ExitStack() as stack:
        started = []
        for words in (scheduler, *[worker] * N_WORKERS):
            command = [sys.executable, "-m", "dask", *words, *(["--port", "0"] if words is scheduler else [])]
            started.append(stack.enter_context(subprocess.Popen(command, start_new_session=True, **quiet)))
            stack.callback(end, started[-1])
        done = subprocess.Popen(
            [sys.executable, "cluster.py", "S.npz", "found", "scheduler.json"],
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(done.kill)
        wait_for(lambda: any((tmp_path / "found-work" / "selection").glob("fit-*")), done)
        end(started[-1])
        errors = done.communicate(timeout=300)[1]
        assert done.returncode == 0, errors
    alone = discover(S, random_state=0)
    found = Discovery.load(tmp_path / "found")
    np.testing.assert_array_equal(found.consensus.embeddings, alone.consensus.embeddings)


def end(process):
    """Kill a process and those that it has started, which are of its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)


def wait_for(is_there, process, seconds=120):
    deadline = time.monotonic() + seconds
    while not is_there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def on_dask():
    return joblib.parallel_config("dask")


@pytest.mark.parametrize(("n_jobs", "place"), [(None, on_dask), (2, nullcontext), (1, nullcontext)])
# joblib's executor, when it is ended in the middle, may meet a task that it has already dropped.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_a_task_is_raised_with_its_origin_and_not_tried_again(client, tmp_path, n_jobs, place):
    def fail(folder, task):
        if task == 3:
            with open(os.path.join(folder, "attempts"), "a") as file:
                file.write("x")
            raise LookupError("task 3 has a fault of its own")
        return task

    with place(), pytest.raises(LookupError, match="task 3 has a fault of its own") as caught:
        list(_parallel.run_tasks(fail, (str(tmp_path),), range(8), n_jobs=n_jobs, one_by_one=True))
    assert "in fail\n" in "".join(traceback.format_exception(caught.value))
    assert (tmp_path / "attempts").read_text() == "x"


def test_processes_that_die_without_a_cluster_are_replaced(tmp_path, caplog):
    def die_once(folder, task):
        trace = os.path.join(folder, "died")
        if task == 2 and not os.path.exists(trace):
            open(trace, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    assert sorted(_parallel.run_tasks(die_once, (str(tmp_path),), range(6), n_jobs=2)) == list(range(6))
    assert "Workers were lost (TerminatedWorkerError" in caplog.text


def test_processes_that_always_die_are_an_error():
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    def die(_, task):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(TerminatedWorkerError):
        list(_parallel.run_tasks(die, (None,), range(4), n_jobs=2))
