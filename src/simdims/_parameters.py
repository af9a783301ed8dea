"""Checks of parameters, and errors and warnings that spell arguments for Python or for the command line."""

from __future__ import annotations

import difflib
import math
import numbers
import re
import string
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

#: How many names a sentence lists before "and 7 more".
N_NAMED = 5

#: Up to this many columns of a table are all listed.
_MOST_COLUMNS = 12

#: How an argument is written for the reader: (name, value or None) -> text.
Spelling = Callable[[str, str | None], str]


def in_python(name: str, value: str | None = None) -> str:
    """An argument as in a Python call, name= or name='value'; a function, `from_ratings()`, by its name."""
    if value is None:
        return name.removesuffix("()") if name.endswith("()") else f"{name}="
    return f"{name}={value if re.fullmatch(r'None|True|False|[-+.0-9e]+', value) else repr(value)}"


def spelled(template: str, spelling: Spelling = in_python) -> str:
    """A sentence in which {name}, {name=value} and {function()} are written as the reader has to type them."""
    parts = []
    for text, field, _, _ in string.Formatter().parse(template):
        parts.append(text)
        if field:
            name, has_value, value = field.partition("=")
            parts.append(spelling(name, value if has_value else None))
    return "".join(parts)


class ParameterError(ValueError):
    """An argument that breaks a rule: its name, the rule, what was found instead, and what to do.

    Reads as "<name> <rule>, got <got>: <remedy>." `rule` and `remedy` are templates for `spelled`: other arguments in
    them are written as keywords in Python and as options on the command line. `got` is used as is. An error about the
    content of a file, or of one of several systems, begins with its name, `file`.

    Examples
    --------
    >>> from simdims import SRF, ParameterError
    >>> try:
    ...     SRF(n_components=0).fit([[1, 0.5], [0.5, 1]])
    ... except ParameterError as error:
    ...     print(error.name, error.got)
    n_components 0
    """

    def __init__(self, name: str, rule: str, got: str | None = None, remedy: str | None = None) -> None:
        super().__init__(name, rule, got, remedy)  # all of them, for pickling
        self.name, self.rule, self.got, self.remedy = name, rule, got, remedy
        self.file: str | None = None

    def sentence(self, name: str, spelling: Spelling = in_python, *, shows_none: bool = True) -> str:
        """The sentence, with the argument called `name`; a value of None is shown unless `shows_none` is False."""
        file = "" if self.file is None else f"{self.file}: "
        is_hidden = self.got is None or (self.got == "None" and not shows_none)
        got = "" if is_hidden else f", got {self.got}"
        remedy = "" if self.remedy is None else f": {spelled(self.remedy, spelling)}"
        return f"{file}{name} {spelled(self.rule, spelling)}{got}{remedy}."

    def __str__(self) -> str:
        return self.sentence(self.name)


class ParameterTypeError(ParameterError, TypeError):
    """An argument of a wrong type."""


class SimdimsWarning(UserWarning):
    """What was found, verbatim, and what to do about it, a template for `spelled`; reads as "<found> <remedy>"."""

    def __init__(self, found: str, remedy: str | None = None) -> None:
        super().__init__(found, remedy)
        self.found, self.remedy = found, remedy

    def sentence(self, spelling: Spelling = in_python) -> str:
        """The warning, with arguments written as the reader has to type them."""
        return self.found if self.remedy is None else f"{self.found} {spelled(self.remedy, spelling)}"

    def __str__(self) -> str:
        return self.sentence()


def warn(found: str, remedy: str | None = None, category: type[SimdimsWarning] = SimdimsWarning) -> None:
    """Warn at the first calling line outside simdims; `remedy` is a template for names of arguments."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "simdims":
        frame, level = frame.f_back, level + 1
    warnings.warn(category(found, remedy), stacklevel=level)


def warn_again(caught: Iterable[warnings.WarningMessage]) -> None:
    """Give recorded warnings, at the lines where they arose."""
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def shortlist(names: list[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - N_NAMED
    return ", ".join(names[:N_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def columns_in_words(present: Sequence[Any]) -> str:
    """The columns of a table: all of a few, else the first ones."""
    names = list(map(repr, present))
    return shortlist(names) if len(names) > _MOST_COLUMNS else ", ".join(names) or "none"


def listed_columns(column: Any, present: Sequence[Any]) -> str:
    """A column that a table lacks, and its columns: all of a few, else those with the most similar names."""
    names = list(map(repr, present))
    by_lower = {name.casefold(): name for name in names}
    alike = difflib.get_close_matches(repr(column).casefold(), by_lower, N_NAMED, cutoff=0.5)
    close = [by_lower[name] for name in alike]
    likely = _likely(repr(column).casefold(), alike)
    listed = f"did you mean {by_lower[likely]}? The columns are" if likely is not None else "the columns are"
    first = [*close, *(name for name in names if name not in close)]
    return f"{column!r}; {listed} {columns_in_words(present) if len(names) <= _MOST_COLUMNS else shortlist(first)}"


def _likely(name: str, alike: list[str]) -> str | None:
    """The name that was probably meant: much like the one given, and clearly more so than the others."""
    ratios = {other: difflib.SequenceMatcher(None, other, name).ratio() for other in alike}
    likely = [other for other in alike if ratios[other] >= max(0.8, max(ratios.values()) - 0.1)]
    return likely[0] if len(likely) == 1 else None


def shown(value: Any) -> str:
    """A value as shown in messages: on one line, or by its type if that is long."""
    text = repr(value)
    return text if len(text) <= 200 and "\n" not in text else f"an object of type {type(value).__name__}"


def require_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    if not isinstance(value, str | None) or value not in choices:
        raise ParameterError(name, f"must be one of {', '.join(map(repr, choices))}", shown(value))


def require_device(device: Any) -> None:
    known = isinstance(device, str) and re.fullmatch(r"cpu|cuda(:\d+)?|mps|torch-cpu", device)
    if not known:
        raise ParameterError("device", "must be 'cpu', 'cuda', 'cuda:<number>', 'mps' or 'torch-cpu'", shown(device))


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number of any integer type."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def require_count(name: str, value: Any, at_least: int = 1, at_most: int = 10**9) -> None:
    if not is_whole(value):
        raise ParameterTypeError(name, "must be an integer", shown(value))
    if value < at_least:
        raise ParameterError(name, f"must be at least {at_least}", shown(value))
    if value > at_most:
        raise ParameterError(name, f"must be at most {at_most}", shown(value))


def require_components(n_components: Any, n_items: int) -> None:
    require_count("n_components", n_components)
    if n_components > n_items:
        raise ParameterError("n_components", f"must be between 1 and n_items = {n_items}", shown(n_components))


def require_flag(name: str, value: Any) -> None:
    import numpy as np  # here, because `simdims --help` loads this module

    if not isinstance(value, bool | np.bool_):
        raise ParameterTypeError(name, "must be True or False", shown(value))


def require_real(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterTypeError(name, "must be a number", shown(value))


def require_number(name: str, value: Any, rule: str) -> None:
    require_real(name, value)
    number = as_float(value)
    if not (math.isfinite(number) and (number > 0 if rule == "positive" else number >= 0)):
        raise ParameterError(name, f"must be {rule} and finite", f"{value}")


def as_float(value: numbers.Real) -> float:
    """A number as a float, infinite if it is out of range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def as_range(bounds: Any, name: str = "bounds", others: str = "'auto', 'data', None") -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(name, f"must be {others} or a pair (low, high)", shown(bounds)) from None
    if not low < high:
        raise ParameterError(name, "must be a pair with low < high", shown(bounds))
    return low, high


def require_between(name: str, value: Any, low: float, high: float, *, strictly: bool = False) -> None:
    require_real(name, value)
    if not (low < value < high if strictly else low <= value <= high):
        raise ParameterError(name, f"must be {'strictly ' if strictly else ''}between {low} and {high}", shown(value))


def require_type(name: str, value: Any, kinds: Any, what: str) -> None:
    if not isinstance(value, kinds):
        raise ParameterTypeError(name, f"must be {what}", type(value).__name__)
