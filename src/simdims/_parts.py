"""What readers of files and of other libraries' objects hand over, and the libraries that they need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple


class Parts(NamedTuple):
    """The parts of a Similarity as they were found; as_similarity checks them and puts them together.

    `named_by` says in a sentence what gave the labels; labels of another name or order beside it are refused.
    `value_column` is what a list of pairs calls its values.
    """

    values: Any
    labels: tuple[str, ...] | None = None
    weights: Any = None
    absent: str | float | None = None
    named_by: str = "the file"
    value_column: str | None = None
    info: Mapping[str, Any] = MappingProxyType({})


def library(name: str, what: str, install: str) -> Any:
    """Import an optional library, or say which one `what` needs and how it is installed."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ImportError(f"{what} needs {package}, which is not installed: pip install {install}.") from None
