"""Optional libraries, imported where they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def library(name: str, what: str, install: str) -> Any:
    """Import an optional library, or raise an error that says that `what` needs it and how to install it."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0].replace("PIL", "Pillow")
        raise ImportError(f"{what} needs {package}, which is not installed: pip install {install}.") from None
