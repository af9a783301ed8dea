"""What a file holds, told by looking at it: similarities, triplets, ratings, associations or features."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from simdims._cells import is_missing
from simdims._tables import what_else
from simdims.cli.columns import (
    CUES,
    NUMBERS,
    ODD,
    RATINGS,
    RESPONSES,
    count_of,
    first,
    in_columns,
    is_list,
    named_ratings,
    place_of,
    rated_pairs,
    refuse_other_measures,
    repeats,
    sides,
    texts_of,
)
from simdims.cli.sources import KINDS
from simdims.io.tables import MOST_ROWS, Table, look_at

#: Rows and columns of a square array that are compared with each other.
_MOST_COMPARED = 1000


class Guess(NamedTuple):
    """A kind, the options that follow from what the columns are called, and why, in words."""

    kind: str
    options: dict[str, Any]
    why: str


def guess(
    path: Path,
    key: str | None,
    header: bool | None,
    known: Mapping[str, Any] | None = None,
    kind: str | None = None,
) -> Guess:
    """What a file holds; a file that could be several things is refused with the option that says it.

    Parameters
    ----------
    path : Path
    key : str or None
        The variable of a file of several arrays.
    header : bool or None
        Whether the first row of a text file names the columns; None finds out.
    known : mapping, optional
        Columns that were named already, by their roles (item1, rating, count, ...).
    kind : str, optional
        What the file holds, where that is known: then its columns alone are looked for.
    """
    from simdims import io

    io.check_file(path)
    known = known or {}
    with io.named_in_errors(path):
        if kind is None:
            return _kind_of_file(path, key, header, known)
        if kind in _FINDERS and path.suffix.lower() in io.TABLES:
            found = _FINDERS[kind](look_at(path, header), known)
            return found or Guess(kind, {}, _IN_WORDS[kind])
        with suppress(ValueError):  # what else it could be has been settled
            found = _kind_of_file(path, key, header, known)
            if found.kind == kind:
                return found
    return Guess(kind, {}, _IN_WORDS[kind])


def _kind_of_file(path: Path, key: str | None, header: bool | None, known: Mapping[str, Any]) -> Guess:
    from simdims import io

    suffix = path.suffix.lower()
    if suffix in io.TABLES:
        return _kind_of_table(look_at(path, header), known)
    if suffix in (".npy", ".npz"):
        return _kind_of_arrays(path, key)
    if key is not None:
        return _kind_of_array(io.NAMED_ARRAYS[suffix](path, key, None).values, {"key": key})
    return Guess("matrix", {}, "similarities")


# Tables. Each rule looks for one kind, by the names of the columns first and by what they hold second.


def _kind_of_table(table: Table, known: Mapping[str, Any]) -> Guess:
    for rule in _RULES:
        if (found := rule(table, known)) is not None:
            return found
    listed = ", ".join(map(repr, table.spelled[:8])) + (", ..." if table.width > 8 else "")
    raise _question(f"a table of {_many(table.n_rows, 'row')} and {_many(table.width, 'column')} ({listed})")


def _associations(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Word associations: columns called cue and response."""
    cue = place_of(table, known, "cue", CUES)
    response = place_of(table, known, "response", RESPONSES)
    if cue is None or response is None:
        return None
    columns: dict[str, Any] = {"cue": table.spelled[cue], "response": table.spelled[response]}
    if "count" in known:
        columns["count"] = known["count"]
    else:
        count = count_of(table, cue, response)
        columns["count"] = False if count is None else table.spelled[count]
    return Guess("associations", columns, f"word associations: {in_columns(columns)}")


def _square(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Similarities: as many rows as columns of numbers."""
    return Guess("matrix", {}, "a square table of similarities") if _is_square(table) else None


def _triplets(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Triplets: three columns of the same items, none of which is called a rating."""
    is_rated = "rating" in known or any(table.has_numbers(place) for place in named_ratings(table))
    if table.width != 3 or is_rated:
        return None
    return _columns_of_triplets(table, known) if _are_triplets([table.column(place) for place in range(3)]) else None


def _columns_of_triplets(table: Table, known: Mapping[str, Any]) -> Guess:
    odd = first(table.names, ODD)
    if table.width != 3 or "odd" in known or "columns" in known:
        return Guess("triplets", {}, "triplets" + _named_triplets(known))
    which = "last" if odd is None else f"in column {table.spelled[odd]!r}"
    return Guess("triplets", {} if odd is None else {"odd": odd}, f"triplets, the odd one out {which}")


def _distances(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Dissimilarities: a list of pairs that come once, with values that are called so."""
    if "rating" in known or not table.header or not is_list(table) or repeats(table, 0, 1):
        return None
    if what_else(table.spelled[2]) != "dissimilarities":
        return None
    table.refuse_texts(2)
    columns = in_columns(dict(zip(("item1", "item2", "dissimilarity"), table.spelled, strict=False)))
    return Guess("dissimilarity", {}, f"a list of pairs and their dissimilarities: {columns}")


def _ratings(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Ratings: two columns of items and one of ratings, with people, other columns or pairs that come again."""
    found = _columns_of_ratings(table, known)
    if found is None or "rating" in known or "participant" in found.options:
        return found
    items = (table.spelled.index(found.options[role]) for role in ("item1", "item2"))
    are_ratings = found.options["rating"].strip().lower().startswith("rating") or repeats(table, *items)
    return found if are_ratings or not is_list(table) else None


def _columns_of_ratings(table: Table, known: Mapping[str, Any]) -> Guess | None:
    columns = rated_pairs(table, known)
    return None if columns is None else Guess("ratings", columns, f"ratings of pairs: {in_columns(columns)}")


def _pairs(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Similarities: a list of pairs that come once, with the columns item, item, value and perhaps weight."""
    texts = texts_of(table)
    if table.width not in (3, 4) or any(place > 1 for place in texts) or repeats(table, 0, 1):
        return None
    is_named = sides(table.names) == (0, 1) or first(table.names[2:3], RATINGS) is not None
    share_items = not set(table.column(0)).isdisjoint(table.column(1))
    if texts == [0, 1]:
        are_pairs = is_named or share_items
    elif texts:
        are_pairs = False
    elif table.header:
        are_pairs = is_named
    else:
        are_pairs = _are_items(table.column(0), table.column(1)) and any(map(_has_fraction, table.column(2)))
    if not are_pairs:
        return None
    if table.header:
        refuse_other_measures(table, [2])
    table.refuse_texts(2)
    columns = in_columns(dict(zip(("item1", "item2", "similarity", "weight"), table.spelled, strict=False)))
    return Guess("matrix", {}, f"a list of pairs and their similarities{f': {columns}' if table.header else ''}")


def _features(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Features: columns of numbers, beside at most one that names the items."""
    texts, spelled = texts_of(table), table.spelled
    names_items = len(texts) == 1 and _are_distinct(table.column(texts[0]))
    if table.width - len(texts) < 2 or (texts and not names_items):
        return None
    if not texts and _could_be_trials(table):
        raise _question("columns of whole numbers that could be items of pairs or triplets, or features")
    numbered = first(table.names, NUMBERS)
    if numbered is not None and table.is_number[numbered] and _are_distinct(table.column(numbered)):
        if texts:
            raise _question(f"a column {spelled[numbered]!r} that seems to number the items, and is no feature")
        texts = [numbered]
    if not texts or not spelled[texts[0]].strip():
        return Guess("features", {}, "features, one row per item")
    labels = spelled[texts[0]]
    return Guess("features", {"labels": labels}, f"features, one row per item, named by {labels!r}")


#: The rules in the order in which they are tried: names of columns decide before what the columns hold.
_RULES = (_associations, _square, _triplets, _distances, _ratings, _pairs, _features)

#: What finds the columns of a kind that was said.
_FINDERS: dict[str, Callable[[Table, Mapping[str, Any]], Guess | None]] = {
    "ratings": _columns_of_ratings,
    "associations": _associations,
    "triplets": _columns_of_triplets,
}

_IN_WORDS = {
    "matrix": "similarities",
    "triplets": "triplets",
    "ratings": "ratings of pairs",
    "associations": "word associations",
    "features": "features, one row per item",
    "dissimilarity": "dissimilarities",
}


# What columns hold.


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
    cells = [[_value(cell) for cell in row] for row in body]
    pairs = ((cells[i][j], cells[j][i]) for i in range(len(cells)) for j in range(i))
    return all(
        math.isnan(one) or math.isnan(two) or math.isclose(one, two, rel_tol=1e-6, abs_tol=1e-9) for one, two in pairs
    )


def _value(cell: str) -> float:
    """A cell as a number; NaN where it is none, which is told when the file is read."""
    try:
        return math.nan if is_missing(cell) else float(cell.strip().replace(",", "."))
    except ValueError:
        return math.nan


def _are_triplets(columns: list[list[str]]) -> bool:
    """Whether three columns hold three different items in each row, and much the same items in all columns."""
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


# Arrays.


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
    return Guess("features", options, "features, one row per item")


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


# Sentences.


def _named_triplets(known: Mapping[str, Any]) -> str:
    """The columns of triplets that were named."""
    columns = " in columns " + ", ".join(map(repr, known["columns"])) if "columns" in known else ""
    return columns + (f", the odd one out in {known['odd']!r}" if "odd" in known else ", the odd one out last")


def _not_symmetric(n: int) -> ValueError:
    return ValueError(
        f"Cannot tell whether this file contains features or similarities: it has {n} rows and {n} columns that are "
        "not symmetric. Pass --as features, or --symmetrize mean for similarities whose two sides differ."
    )


def _question(what: str) -> ValueError:
    ways = ", ".join(f"--as {kind}" for kind in KINDS[:-1])
    return ValueError(f"Cannot tell what this file contains: {what}. Pass {ways} or --as {KINDS[-1]}.")


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
