"""What a file holds, told by looking at it: similarities, triplets, ratings, associations or features."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from simdims.cli.tables import MOST_ROWS, Table, parquet_table, text_table

KINDS = ("matrix", "triplets", "ratings", "associations", "features", "dissimilarity")

# What columns are called by those who keep such tables.
_CUES, _RESPONSES = ("cue",), ("response", "target", "associate", "association")
_COUNTS = ("count", "counts", "frequency", "freq", "n", "p")
_RATINGS = ("rating", "ratings", "score", "answer", "similarity", "judgement", "judgment", "value", "response")
_ODD = ("odd", "odd_one", "odd_one_out", "odd_item", "oddone", "choice", "chosen")
_PEOPLE = re.compile(r"(participant|subject|person|worker|user|rater|annotator)s?([ _]?(id|nr|number))?|subj|sub|pid")
_NUMBERS = ("id", "index", "item", "item_id", "itemid", "nr", "no", "number", "row")
_SIDES = (("left", "right"), ("first", "second"), ("item_a", "item_b"), ("a", "b"), ("source", "target"))

#: Rows and columns of a square array that are compared with each other.
_MOST_COMPARED = 1000


class Guess(NamedTuple):
    """A kind, the options that follow from what the columns are called, and why, in words."""

    kind: str
    options: dict[str, Any]
    why: str


def guess(path: Path, key: str | None, header: bool | None, known: Mapping[str, Any] | None = None) -> Guess:
    """What a file holds; a file that could be several things is refused with the option that says it.

    Parameters
    ----------
    path : Path
    key : str or None
        The variable of a file of several arrays.
    header : bool or None
        Whether the first row of a text file names the columns; None finds out.
    known : mapping, optional
        Columns that were named already, by their roles: of these, `count` and `rating` need not be told.
    """
    from simdims import _inputs, io

    _inputs._check_file(path, io.LOADED)
    suffix = path.suffix.lower()
    with io._named_in_errors(path):
        if suffix in io.TABLES:
            table = parquet_table(path) if suffix == ".parquet" else text_table(path, header)
            return _kind_of_table(table, known or {})
        if suffix in (".npy", ".npz"):
            return _kind_of_arrays(path, key)
        if key is not None:
            return _kind_of_array(io.NAMED_ARRAYS[suffix](path, key, None).values, {"key": key})
    return Guess("matrix", {}, "similarities")


def _kind_of_table(table: Table, known: Mapping[str, Any]) -> Guess:
    spelled = table.spelled
    names = [name.strip().lower() for name in table.header or ()]
    texts = [place for place in range(table.width) if not table.is_number[place]]
    cue, response = _first(names, _CUES), _first(names, _RESPONSES)
    if cue is not None and response is not None:
        columns: dict[str, Any] = {"cue": spelled[cue], "response": spelled[response]}
        if "count" not in known:
            count = _count_of(table, names, cue, response)
            columns["count"] = False if count is None else spelled[count]
        return Guess("associations", columns, f"word associations ({_in_columns(columns)})")
    if _is_square(table):
        return Guess("matrix", {}, "a square table of similarities")
    if (found := _kind_of_pairs(table, names, texts, known)) is not None:
        return found
    if table.width == 3 and _are_triplets([table.column(place) for place in range(3)]):
        odd = _first(names, _ODD)
        which = "last" if odd is None else f"in column {spelled[odd]!r}"
        return Guess("triplets", {} if odd is None else {"odd": odd}, f"triplets, the odd one out {which}")
    if table.width - len(texts) >= 2 and (not texts or (len(texts) == 1 and _are_distinct(table.column(texts[0])))):
        if not texts and _could_be_trials(table):
            raise _question("columns of whole numbers that could be items of pairs or triplets, or features")
        named = {"labels": spelled[texts[0]]} if texts and spelled[texts[0]].strip() else {}
        numbered = _first(names, _NUMBERS)
        if numbered is not None and table.is_number[numbered] and _are_distinct(table.column(numbered)):
            if texts:
                raise _question(f"a column {spelled[numbered]!r} that seems to number the items, and is no feature")
            return Guess(
                "features", {"labels": spelled[numbered]}, f"features, a row for each item of {spelled[numbered]!r}"
            )
        by = f", named by {named['labels']!r}" if named else ""
        return Guess("features", named, f"features, a row for each item{by}")
    listed = ", ".join(map(repr, spelled[:8])) + (", ..." if len(spelled) > 8 else "")
    raise _question(f"a table of {_many(table.n_rows, 'row')}, with {_many(table.width, 'column')} ({listed})")


def _count_of(table: Table, names: list[str], cue: int, response: int) -> int | None:
    """The column that counts how often a response was given to a cue; None where each row is one response."""
    numbers = [
        place
        for place, name in enumerate(names)
        if table.is_number[place] and name not in _NUMBERS and not _PEOPLE.fullmatch(name)
    ]
    count = _first([name if place in numbers else "" for place, name in enumerate(names)], _COUNTS)
    # Some tables call the total of a cue N, and several have shares beside counts.
    is_clear = count is not None and (len(numbers) == 1 or names[count] not in ("n", "p"))
    if is_clear or not numbers or (count is None and _repeats(table, cue, response)):
        return count
    named = [table.spelled[place] for place in numbers]
    raise _which_column("counts the responses", named, "--count COLUMN, or --no-count")


def _kind_of_pairs(table: Table, names: list[str], texts: list[int], known: Mapping[str, Any]) -> Guess | None:
    """Ratings or a list of pairs, if it is either: two columns of items and one of numbers."""
    sides = _sides(names)
    if sides is not None and "rating" in known:  # whether there is such a column is told when it is read
        value = next((place for place in range(table.width) if place not in sides), None)
    else:
        value = _first([name if number else "" for name, number in zip(names, table.is_number, strict=False)], _RATINGS)
    if value is None and table.width == 3 and _are_triplets([table.column(place) for place in range(3)]):
        return None
    if sides is not None and value is None:  # whatever it is called, if it is the only column of numbers
        numbers = [place for place in range(table.width) if table.is_number[place] and place not in sides]
        value = numbers[0] if len(numbers) == 1 else None
        if value is None and numbers and set(sides) <= set(texts) and table.width > 4:
            raise _which_column("rates the pairs", [table.spelled[place] for place in numbers], "--rating COLUMN")
    if sides is not None and value is not None and value not in sides:
        assert table.header is not None
        columns = {role: table.header[place] for role, place in zip(("item1", "item2"), sides, strict=True)}
        columns |= {} if "rating" in known else {"rating": table.header[value]}
        person = next((name for name, low in zip(table.header, names, strict=True) if _PEOPLE.fullmatch(low)), None)
        if person is not None:
            columns["participant"] = person
        is_list = table.width in (3, 4) and person is None and not names[value].startswith("rating")
        if not is_list or "rating" in known or _repeats(table, *sides):
            return Guess("ratings", columns, f"ratings of pairs ({_in_columns(columns)})")
    if table.width not in (3, 4) or any(place > 1 for place in texts) or _repeats(table, 0, 1):
        return None
    is_named = sides == (0, 1) or _first(names[2:3], _RATINGS) is not None
    are_named = (texts == [0, 1] and (is_named or not set(table.column(0)).isdisjoint(table.column(1)))) or (
        not texts and is_named
    )
    are_numbered = not texts and not names and _are_items(table.column(0), table.column(1))
    if are_named or (are_numbered and any(map(_has_fraction, table.column(2)))):
        return Guess("matrix", {}, "a list of pairs and their similarities")
    return None


def _is_square(table: Table) -> bool:
    """Whether a table has a row and a column for each item; one without names that is not symmetric is asked about."""
    has_names = not table.is_number[0]
    if not all(table.is_number[has_names:]) or table.n_rows < 2:
        return False
    first, header = table.column(0), [name.strip() for name in table.header or ()]
    if has_names or (header and first == header[1 : len(first) + 1]):
        are_columns = not header or set(first) <= set(header[1:])
        return table.n_rows == table.width - 1 and are_columns
    if table.n_rows != table.width:
        return False
    if not _is_symmetric(table.body):
        raise _not_symmetric(table.width)
    return True


def _is_symmetric(body: list[list[str]]) -> bool:
    """Whether those rows that were read have equal triangles, as far as both are known."""
    cells = [[cell.strip().replace(",", ".") for cell in row] for row in body]
    blank = {"", "na", "nan"}
    pairs = ((cells[i][j], cells[j][i]) for i in range(len(cells)) for j in range(i))
    return all(
        one.lower() in blank or two.lower() in blank or math.isclose(float(one), float(two), rel_tol=1e-6, abs_tol=1e-9)
        for one, two in pairs
    )


def _are_triplets(columns: list[list[str]]) -> bool:
    """Whether three columns hold three different items a row, and much the same items in all columns."""
    if any(_has_fraction(cell) or not cell for column in columns for cell in column):
        return False
    if len({all(cell.isdigit() for cell in column) for column in columns}) > 1:  # people beside words
        return False
    if not all(one != two != three != one for one, two, three in zip(*columns, strict=True)):
        return False
    pair, odd = set(columns[0]) | set(columns[1]), set(columns[2])
    are_numbers = all(cell.isdigit() for cell in pair | odd)
    # Whole numbers could be values as well, of which there are fewer than items.
    return 2 * len(pair & odd) >= len(pair | odd if are_numbers else odd)


def _are_items(one: list[str], other: list[str]) -> bool:
    """Whether two columns hold positions of the same items."""
    first, second = set(one), set(other)
    return all(cell.isdigit() for cell in first | second) and 2 * len(first & second) >= min(len(first), len(second))


def _could_be_trials(table: Table) -> bool:
    """Whether two columns of a narrow table hold the same few whole numbers, and never the same one in a row."""
    if table.width > 5:
        return False
    columns = [table.column(place) for place in range(table.width)]
    return any(
        _are_items(one, other)
        and len({*one, *other}) < len(one)
        and all(first != second for first, second in zip(one, other, strict=True))
        for one, other in combinations(columns, 2)
    )


def _are_distinct(column: list[str]) -> bool:
    return len(set(column)) == len(column)


def _has_fraction(cell: str) -> bool:
    return re.fullmatch(r"-\d+|[+-]?\d*[.,]\d+(e[+-]?\d+)?", cell, flags=re.IGNORECASE) is not None


def _repeats(table: Table, one: int, other: int) -> bool:
    """Whether a pair occurs twice in one order."""
    pairs = list(zip(table.column(one), table.column(other), strict=True))
    return len(set(pairs)) < len(pairs)


def _sides(names: Sequence[str]) -> tuple[int, int] | None:
    """The two columns of items: left and right, word1 and word2, ..."""
    for one, other in _SIDES:
        if one in names and other in names:
            return names.index(one), names.index(other)
    for place, name in enumerate(names):
        for end, next_end in (("1", "2"), ("a", "b")):
            partner = name.removesuffix(end) + next_end
            if len(name) > 1 and name.endswith(end) and partner in names and f"{name[:-1]}3" not in names:
                return place, names.index(partner)
    return None


def _kind_of_arrays(path: Path, key: str | None) -> Guess:
    """What an .npy or .npz file holds."""
    import numpy as np

    from simdims.io.arrays import read_npy, reading
    from simdims.io.native import load_npz

    if path.suffix.lower() == ".npy":
        return _kind_of_array(read_npy(path).values, {})
    if load_npz(path) is not None:
        return Guess("matrix", {}, "similarities that simdims wrote")
    with reading(".npz"), np.load(path, allow_pickle=False) as file:
        names = [key] if key in file.files else [name for name in file.files if file[name].ndim > 1]
        if {"format", "shape", "data"} <= set(file.files) or len(names) != 1:
            return Guess("matrix", {}, "similarities")
        return _kind_of_array(file[names[0]], {"key": names[0]})


def _kind_of_array(values: Any, options: dict[str, Any]) -> Guess:
    if getattr(values, "ndim", 0) == 3 and values.shape[1] in (values.shape[0], values.shape[2]):
        return Guess("matrix", options, "a stack of square matrices of similarities, averaged")
    if not hasattr(values, "ndim") or values.ndim != 2:
        shape = " x ".join(map(str, getattr(values, "shape", ())))
        raise _question(f"an array of shape {shape}")
    if values.shape[0] == values.shape[1]:
        if not _has_equal_triangles(values):
            raise _not_symmetric(len(values))
        return Guess("matrix", options, "a square array of similarities")
    if values.shape[1] == 3 and values.dtype.kind in "iu" and _are_triplets(_columns_of(values)):
        return Guess("triplets", {}, "triplets, the odd one out last")
    return Guess("features", options, "features, a row for each item")


def _has_equal_triangles(values: Any) -> bool:
    """Whether the first rows and columns of an array are symmetric, as far as both sides are known."""
    import numpy as np

    if values.dtype.kind not in "biuf":
        return True
    corner = values[:_MOST_COMPARED, :_MOST_COMPARED].astype(float)
    with np.errstate(invalid="ignore"):
        return bool((np.isclose(corner, corner.T, rtol=1e-6, atol=1e-9) | np.isnan(corner) | np.isnan(corner.T)).all())


def _columns_of(values: Any) -> list[list[str]]:
    return [[str(number) for number in column] for column in values[:MOST_ROWS].T.tolist()]


def _in_columns(columns: dict[str, Any]) -> str:
    """Which column is what: item1 in 'left', item2 in 'right'."""
    named = [f"{role} in {name!r}" for role, name in columns.items() if name is not False]
    return ", ".join([*named, *(["each row counted once"] if columns.get("count") is False else [])])


def _which_column(does_what: str, names: list[str], option: str) -> ValueError:
    listed = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    return ValueError(f"this must be told which column {does_what}, got {listed}: pass {option}.")


def _not_symmetric(n: int) -> ValueError:
    return ValueError(
        f"this must be told to hold features or similarities, got {n} rows and {n} columns that are not symmetric: "
        "pass --as features, or --symmetrize mean for similarities whose two sides differ."
    )


def _question(what: str) -> ValueError:
    return ValueError(f"this must be told to hold {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {what}: pass --as KIND.")


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _first(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The place of the first of some names that is there."""
    return next((names.index(name) for name in wanted if name in names), None)
