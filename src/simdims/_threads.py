"""BLAS threads, set on purpose: one where waiting for the others costs more than they help."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the body with one BLAS thread in this process.

    The setting belongs to the process, so bodies that run side by side in threads share it: the first one in sets it
    and the last one out restores what was there before.
    """
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
                _limit = None


@cache
def _controller() -> Any:
    # Both libraries bring a BLAS; it must be loaded to be found.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
