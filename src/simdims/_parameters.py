"""What a parameter must be: a choice, a count, a number, a range, a device; a sentence for each that is not."""

from __future__ import annotations

import numbers
import re
from typing import Any

import numpy as np


def shown(value: Any) -> str:
    """A value as sentences show it: in one line, or by its type where that is long."""
    text = repr(value)
    return text if len(text) <= 200 and "\n" not in text else f"{type(value).__name__} that is not"


def require_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    if not isinstance(value, str | None) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {shown(value)}.")


def require_device(device: Any) -> None:
    known = isinstance(device, str) and re.fullmatch(r"cpu|cuda(:\d+)?|mps|torch-cpu", device)
    if not known:
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:<number>', 'mps' or 'torch-cpu', got {shown(device)}.")


def is_whole(value: object) -> bool:
    """Say whether a value is a whole number of any integer type."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def require_count(name: str, value: Any, at_least: int = 1, at_most: int = 10**9) -> None:
    if not is_whole(value):
        raise TypeError(f"{name} must be an integer, got {shown(value)}.")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value}.")
    if value > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {shown(value)}.")


def require_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}.")


def require_real(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {shown(value)}.")


def require_number(name: str, value: Any, rule: str) -> None:
    require_real(name, value)
    number = as_float(value)
    if not (np.isfinite(number) and (number > 0 if rule == "positive" else number >= 0)):
        raise ValueError(f"{name} must be {rule} and finite, got {value}.")


def as_float(value: numbers.Real) -> float:
    """A number as a float, infinite where it is beyond the floats."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf  # type: ignore[operator]


def as_range(bounds: Any, name: str = "bounds", others: str = "'auto', 'data', None") -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be {others} or a pair (low, high), got {shown(bounds)}.") from None
    if not low < high:
        raise ValueError(f"{name} must be a pair with low < high, got {shown(bounds)}.")
    return low, high
