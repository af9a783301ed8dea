"""What a parameter must be: a choice, a count, a number, a range, a device; a sentence for each that is not."""

from __future__ import annotations

import numbers
import re
from typing import Any

import numpy as np


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def require_device(device: Any) -> None:
    known = isinstance(device, str) and re.fullmatch(r"cpu|cuda(:\d+)?|mps|torch-cpu", device)
    if not known:
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:<number>', 'mps' or 'torch-cpu', got {device!r}.")


def require_count(name: str, value: Any, at_least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value}.")


def require_number(name: str, value: Any, rule: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    number = float(value)
    if not (np.isfinite(number) and (number > 0 if rule == "positive" else number >= 0)):
        raise ValueError(f"{name} must be {rule} and finite, got {value}.")


def as_range(bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be 'auto', 'data', None or a pair (low, high), got {bounds!r}.") from None
    if not low < high:
        raise ValueError(f"bounds must be a pair with low < high, got {bounds!r}.")
    return low, high
