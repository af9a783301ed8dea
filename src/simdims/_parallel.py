"""The only joblib file: seeds for tasks, and a map over tasks that runs wherever joblib is configured to run them."""

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

from simdims._parameters import shown

logger = logging.getLogger("simdims")

#: So often in a row, without a result in between, workers may be lost before their loss is an error.
_MOST_LOSSES = 3

#: So often a worker looks whether the process that it works for is still there (seconds).
_LOOK_EVERY = 1.0

#: The process in which a thread looks after that; a forked one begins without.
_watching = 0

#: More workers than this is a slip of the hand.
_MOST_JOBS = 100_000


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless `n_jobs` is None or an integer other than 0, and no slip of the hand."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs must be None or an integer, got {n_jobs!r}.")
    if n_jobs == 0 or abs(int(n_jobs)) > _MOST_JOBS:
        raise ValueError(f"n_jobs must be a number of workers, or -1 for one a core, got {n_jobs}.")


def workers_here(n_jobs: int | None) -> int:
    """How many tasks run side by side in this machine's memory; 1 where joblib is configured to send them away."""
    from joblib import effective_n_jobs
    from joblib.parallel import get_active_backend

    is_local = type(get_active_backend()[0]).__module__.startswith("joblib.")
    return max(1, int(effective_n_jobs(n_jobs))) if is_local else 1


def root_seed(random_state: Any) -> int:
    """One number from which the seeds of all tasks follow; None is fresh entropy."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0] >> 1)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(generator_of(random_state).randint(2**31 - 1))


def generator_of(random_state: Any) -> np.random.RandomState:
    """The generator that a seed or a generator stands for, as scikit-learn has it; None is fresh entropy."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(root_seed(random_state))
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state must be None, an integer from 0 to 2**32 - 1, a RandomState or a Generator, got "
            f"{shown(random_state)}."
        ) from None


def settle_seed(random_state: Any) -> int:
    """The number that repeats what is done with this random_state when it is passed as random_state itself.

    An integer is that number; None and generators draw one.
    """
    root = root_seed(random_state)
    return int(random_state) if isinstance(random_state, int | np.integer) else root


def seed_of(root: int, *task: int) -> int:
    """The seed of the task that is named by some integers: the same in whatever order and place tasks are run."""
    return int(np.random.SeedSequence(root, spawn_key=task).generate_state(1, np.uint32)[0])


def run_tasks(
    function: Callable[..., Any],
    shared: tuple[Any, ...],
    tasks: Iterable[Any],
    *,
    n_jobs: int | None = None,
    one_by_one: bool = False,
) -> Generator[Any, None, None]:
    """Yield function(*shared, task) for every task, in the order in which they end.

    joblib's own configuration says where: without one, `n_jobs` processes on this machine; inside
    ``joblib.parallel_config("dask")`` and its like, on a cluster. Arrays among `shared` travel once. With `one_by_one`
    every result is handed over when it is there, and not a batch of them when the last one is.

    What a worker takes with it when it dies is done again. To stop early, close the iterator: the processes that work
    for it end. They also end, in the middle of their tasks, soon after this process was killed.
    """
    from joblib import Parallel, delayed

    left = dict(enumerate(tasks))
    n_losses = 0
    while left:
        parallel = Parallel(
            n_jobs=n_jobs,
            return_as="generator_unordered",
            batch_size=1 if one_by_one else "auto",
            pre_dispatch="2*n_jobs",
        )
        attempt, here = delayed(_attempt), os.getpid()
        results = parallel(attempt(function, here, number, *shared, task) for number, task in list(left.items()))
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
            logger.warning(
                "Workers were lost (%s: %s); what they had in hand is done again.", type(error).__name__, error
            )
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that unfinished tasks are dropped: what else would stopping be
                results.close()


class _Failure(Exception):  # noqa: N818
    """An error of a task's own, told from the loss of its worker, and where it arose."""

    def error(self) -> Exception:
        """The error; one that has travelled has lost its traceback, and gets it as a note."""
        error, trace = self.args
        if error.__traceback__ is None:
            error.add_note(f"In a worker:\n{trace}")
        return error


def _attempt(
    function: Callable[..., Any], parent: int, number: int, *arguments: Any
) -> tuple[int, Any, _Failure | None]:
    """The number and the result of a task, or its failure."""
    _end_with(parent)
    try:
        return number, function(*arguments), None
    except Exception as error:
        return number, None, _Failure(error, traceback.format_exc())


def _end_with(parent: int) -> None:
    """Have a worker process end when its parent has, which cannot tell it so if it was killed."""
    global _watching
    if os.name != "posix" or os.getppid() != parent or _watching == os.getpid():
        return
    _watching = os.getpid()
    threading.Thread(target=_watch, args=(parent,), name="simdims-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    os._exit(1)
