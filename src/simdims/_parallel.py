"""Parallel tasks, run by joblib as it is configured, and their seeds. The only file that imports joblib."""

from __future__ import annotations

import logging
import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np

from simdims._parameters import ParameterError, ParameterTypeError, is_whole, shown

logger = logging.getLogger("simdims")

# Number of workers lost in a row, without a result in between, that raises an error.
_MOST_LOSSES = 3

# Seconds after a loss before tasks are repeated, so that a cluster notices which worker is gone.
_AFTER_LOSS = 0.5

# Seconds between a worker's checks that its parent process is alive.
_CHECK_EVERY = 1.0

# The process in which a thread makes these checks; a forked one starts without.
_watching = 0

# Larger numbers of workers are assumed to be typing errors.
_MOST_JOBS = 100_000


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse values that are neither None nor a possible number of processes."""
    if n_jobs is None:
        return
    rule = "must be a number of processes, or -1 for all cores"
    if not is_whole(n_jobs):
        raise ParameterTypeError("n_jobs", rule, shown(n_jobs))
    if n_jobs == 0 or abs(int(n_jobs)) > _MOST_JOBS:
        raise ParameterError("n_jobs", rule, shown(n_jobs))


def run_here() -> bool:
    """Whether tasks run on this machine, rather than where joblib is configured to run them."""
    from joblib.parallel import get_active_backend

    return type(get_active_backend()[0]).__module__ == "joblib._parallel_backends"  # that of dask is in joblib._dask


def n_workers(n_jobs: int | None) -> int:
    """How many tasks run at a time, on this machine or elsewhere."""
    from joblib import effective_n_jobs

    return max(1, int(effective_n_jobs(n_jobs)))


def workers_here(n_jobs: int | None) -> int:
    """How many tasks run at a time in this machine's memory; 1 if joblib is configured to run them elsewhere."""
    return n_workers(n_jobs) if run_here() else 1


def root_seed(random_state: Any) -> int:
    """The number from which the seeds of all tasks are derived; None is fresh entropy."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0] >> 1)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(generator_of(random_state).randint(2**31 - 1))


def generator_of(random_state: Any) -> np.random.RandomState:
    """The generator of a seed, by scikit-learn convention; None uses fresh entropy."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(root_seed(random_state))
    try:
        if isinstance(random_state, int | np.integer):
            generator = np.random.RandomState(np.random.MT19937(_Unseeded(0)))
            generator.seed(random_state)
            return generator
        return check_random_state(random_state)
    except ValueError:
        rule = "must be None, an integer from 0 to 2**32 - 1, a RandomState or a Generator"
        raise ParameterError("random_state", rule, shown(random_state)) from None


class _Unseeded(np.random.SeedSequence):
    """The state of a generator that is seeded next; RandomState(seed) would first draw one, which takes longer."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """Zeros."""
        return np.zeros(n_words, dtype)


def settle_seed(random_state: Any) -> int:
    """The integer with the same results as this random_state: itself, or one drawn from None or a generator."""
    root = root_seed(random_state)
    return int(random_state) if isinstance(random_state, int | np.integer) else root


def seed_of(root: int, *task: int) -> int:
    """The seed of the task named by these integers, independent of where and in which order tasks run."""
    return int(np.random.SeedSequence(root, spawn_key=task).generate_state(1, np.uint32)[0])


def run_tasks(
    function: Callable[..., Any],
    shared: tuple[Any, ...],
    tasks: Iterable[Any],
    *,
    n_jobs: int | None = None,
    one_by_one: bool = False,
) -> Generator[Any, None, None]:
    """Yield function(*shared, task) for every task, in the order in which they finish.

    Tasks run in `n_jobs` processes on this machine or, inside ``joblib.parallel_config("dask")`` and the like, on a
    cluster. Arrays among `shared` are sent once. With `one_by_one` results are not collected in batches.

    Tasks of a worker that dies are repeated. To stop early, close the iterator: its processes end. They also end, in
    the middle of their tasks, soon after this process is killed.
    """
    from joblib import Parallel

    left = dict(enumerate(tasks))
    n_losses = 0
    batch_size: int | str = 1 if one_by_one else "auto"
    while left:
        parallel = Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", batch_size=batch_size, pre_dispatch="2*n_jobs"
        )
        results = _results(parallel, function, shared, left)
        try:
            for number, result, failure in results:
                if failure is not None:
                    raise failure
                del left[number]
                n_losses = 0
                yield result
        except _Failure as failure:
            raise failure.error() from None
        except Exception as error:
            n_losses += 1
            if n_losses > _MOST_LOSSES:
                raise
            logger.warning("Workers were lost (%s: %s); their tasks are repeated.", type(error).__name__, error)
            time.sleep(_AFTER_LOSS)
        finally:
            results.close()


def _results(
    parallel: Any, function: Callable[..., Any], shared: tuple[Any, ...], tasks: dict[int, Any]
) -> Generator[tuple[int, Any, _Failure | None], None, None]:
    """The results of `_attempt` in the order in which they finish."""
    from joblib import delayed

    attempt, here, sent = delayed(_attempt), os.getpid(), _send(shared)
    results = parallel(attempt(function, here, number, (*sent, task)) for number, task in list(tasks.items()))
    try:
        for result in results:  # noqa: UP028 - `yield from` would close them before warnings are off
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of unfinished tasks, which are dropped on purpose
            results.close()


def _send(shared: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with their arrays replaced by futures on a dask cluster.

    joblib would send arrays too, except those in tuples, but never returns if a worker dies while it does.
    """
    from joblib.parallel import get_active_backend

    client = getattr(get_active_backend()[0], "client", None)
    arrays = [one for one in shared if isinstance(one, np.ndarray)]
    if client is None or not arrays or n_workers(None) == 1:
        return shared
    futures = iter(client.scatter(arrays, hash=False))
    return tuple(next(futures) if isinstance(one, np.ndarray) else one for one in shared)


class _Failure(Exception):  # noqa: N818
    """The error of a task and its traceback, as opposed to the loss of its worker."""

    def error(self) -> Exception:
        """The error, with its traceback as a note if it comes from another process."""
        error, trace = self.args
        if error.__traceback__ is None:
            error.add_note(f"In a worker:\n{trace}")
        return error


def _attempt(
    function: Callable[..., Any], parent: int, number: int, arguments: tuple[Any, ...]
) -> tuple[int, Any, _Failure | None]:
    """The number and the result of a task, or its failure."""
    _end_with(parent)
    if any(map(_is_sent, arguments)):  # joblib runs the tasks here while a cluster has one worker
        arguments = tuple(one.result() if _is_sent(one) else one for one in arguments)
    try:
        return number, function(*arguments), None
    except Exception as error:
        return number, None, _Failure(error, traceback.format_exc())


def _is_sent(argument: Any) -> bool:
    """Whether an argument is on a dask cluster."""
    return type(argument).__module__ == "distributed.client"


def _end_with(parent: int) -> None:
    """Let a worker process end soon after its parent, even if that was killed."""
    global _watching
    if os.name != "posix" or os.getppid() != parent or _watching == os.getpid():
        return
    _watching = os.getpid()
    threading.Thread(target=_watch, args=(parent,), name="simdims-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_CHECK_EVERY)
    os._exit(1)
