"""What several test files share: errors about arguments, warnings as errors, and memory that a block allocates."""

import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from simdims import ParameterError


@contextmanager
def refused(name: str, *values: str, error: type[Exception] = ParameterError) -> Iterator[None]:
    """Expect a ParameterError about the argument `name` whose sentence shows all `values`."""
    with pytest.raises(error) as caught:
        yield
    assert caught.value.name == name
    for value in values:
        assert value in str(caught.value)


@contextmanager
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextmanager
def traced_memory() -> Iterator[Callable[[], int]]:
    """Trace allocations; call the result inside the block for the peak in bytes."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
