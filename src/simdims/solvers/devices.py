"""Modules that need PyTorch, imported when a fit uses a device."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def torch_module(name: str, device: str) -> Any:
    """A module of this package, or an error that names the remedy if PyTorch is not installed."""
    try:
        return import_module(f"simdims.solvers.{name}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
    raise ModuleNotFoundError(
        f'device={device!r} needs PyTorch, which is not installed: pip install "simdims[gpu]", or see '
        "pytorch.org for the build that suits your GPU.",
        name="torch",
    )
