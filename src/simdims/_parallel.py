"""The only joblib file: seeds for tasks, and a map over tasks that runs wherever joblib is configured to run them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless `n_jobs` is None or an integer other than 0."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs must be None or an integer, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of workers, or -1 for one a core, got 0.")


def root_seed(random_state: Any) -> int:
    """One number from which the seeds of all tasks follow; None is fresh entropy."""
    from sklearn.utils import check_random_state

    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0] >> 1)
    return int(check_random_state(random_state).randint(2**31 - 1))


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

    To stop early, close the iterator: the processes that work for it end.
    """
    from joblib import Parallel, delayed

    parallel = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", batch_size=1 if one_by_one else "auto", pre_dispatch="2*n_jobs"
    )
    results = parallel(delayed(function)(*shared, task) for task in tasks)
    try:
        yield from results
    finally:
        results.close()
