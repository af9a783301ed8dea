"""The error for devices that need PyTorch if it is not installed."""

from __future__ import annotations


def without_torch(device: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error that names the remedy, or the original error if another module is missing."""
    if error.name != "torch":
        return error
    return ModuleNotFoundError(
        f'device={device!r} needs PyTorch, which is not installed: pip install "simdims[gpu]", or see '
        "pytorch.org for the build that suits your GPU.",
        name="torch",
    )
