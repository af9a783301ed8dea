"""Threads: one BLAS thread if more would cost more than they gain, and a second thread for independent work."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")

_lock = threading.Lock()
_inside = 0
_many = 0
_limit: list[tuple[Any, int | None]] = []
_n_forks = 0


@contextmanager
def one_blas_thread(*, for_one_fit: bool = False) -> Iterator[None]:
    """Run the body with one BLAS thread; `for_one_fit` if it is a single fit, which may use a second thread of its own.

    The setting is process-wide, so bodies in several threads share it: the first sets it, and the last restores it.
    """
    global _inside, _many, _limit
    process = _n_forks
    with _lock:
        _many += not for_one_fit
        if _inside == 0:
            _limit = [(library, library.get_num_threads()) for library in _blas()]
            _set_threads([(library, 1) for library, _ in _limit])
        _inside += 1
    try:
        yield
    finally:
        if process == _n_forks:
            with _lock:
                _many -= not for_one_fit
                _inside -= 1
                if _inside == 0:
                    _set_threads(_limit)
                    _limit = []


def _reset_after_fork() -> None:
    """Reset in a forked process, which does not inherit the threads that would unlock and restore."""
    global _lock, _inside, _many, _limit, _n_forks
    _set_threads(_limit)
    _lock, _inside, _many, _limit, _n_forks = threading.Lock(), 0, 0, [], _n_forks + 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


@contextmanager
def second_thread(is_worth_it: bool = True) -> Iterator[Executor | None]:
    """A thread beside this one, or None if no core is free for it."""
    if not is_worth_it or _many or n_cores() < 2:
        yield None
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool


class Done(Generic[T]):
    """Stands in for a Future whose value is known, without its locks."""

    def __init__(self, value: T) -> None:
        self.value = value

    def result(self) -> T:
        """The value."""
        return self.value


def begin(second: Executor | None, function: Callable[..., T], *arguments: Any) -> Future[T] | Done[T]:
    """Call a function in the second thread, or immediately if there is none."""
    return Done(function(*arguments)) if second is None else second.submit(function, *arguments)


def mapped(function: Callable[[S], T], items: Sequence[S], n_threads: int) -> Generator[T, None, None]:
    """function(item) for every item, in their order, with up to `n_threads` of them at a time."""
    if n_threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        begun: deque[Future[T]] = deque()
        for item in items:
            if len(begun) == n_threads:
                yield begun.popleft().result()
            begun.append(pool.submit(function, item))
        while begun:
            yield begun.popleft().result()


def n_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _set_threads(of_libraries: list[tuple[Any, int | None]]) -> None:
    for library, n_threads in of_libraries:
        library.set_num_threads(n_threads)


@cache
def _blas() -> list[Any]:
    """The BLAS libraries of this process; NumPy and SciPy may have one each."""
    from threadpoolctl import ThreadpoolController

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
