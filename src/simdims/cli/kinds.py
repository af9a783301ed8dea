"""What a file holds, told by looking at it: similarities, triplets, ratings, associations or features."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any, NamedTuple

KINDS = ("matrix", "triplets", "ratings", "associations", "features", "dissimilarity")

# What columns are called by those who keep such tables.
_CUES, _RESPONSES = ("cue",), ("response", "target", "associate", "association")
_COUNTS = ("count", "counts", "frequency", "freq", "n", "p")
_RATINGS = ("rating", "ratings", "score", "answer", "similarity", "judgement", "judgment", "value", "response")
_ODD = ("odd", "odd_one", "odd_one_out", "odd_item", "oddone", "choice", "chosen")
_PEOPLE = re.compile(r"(participant|subject|person|worker|user|rater|annotator)s?([ _]?(id|nr|number))?|subj|sub|pid")
_NUMBERS = ("id", "index", "item", "item_id", "itemid", "nr", "no", "number", "row")
_SIDES = (("left", "right"), ("first", "second"), ("item_a", "item_b"), ("a", "b"), ("source", "target"))

#: Rows that are looked at, and columns beyond which a table is a square or features.
_MOST_ROWS, _MOST_LONG = 200_000, 20


class Guess(NamedTuple):
    """A kind, the options that follow from what the columns are called, and why, in words."""

    kind: str
    options: dict[str, Any]
    why: str


class Table(NamedTuple):
    """The cells of a table, as text: all rows of a narrow one, a few of a wide one; `n_rows` counts all."""

    header: list[str] | None
    body: list[list[str]]
    n_rows: int
    is_number: list[bool]

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.is_number)

    def column(self, place: int) -> list[str]:
        """The cells of a column."""
        return [row[place].strip() for row in self.body]


def guess(path: Path, key: str | None, header: bool | None) -> Guess:
    """What a file holds; a file that could be several things is refused with the option that says it."""
    from simdims import _inputs, io

    _inputs._check_file(path, io.LOADED)
    suffix = path.suffix.lower()
    with io._named_in_errors(path):
        if suffix in io.TABLES:
            return _kind_of_table(_parquet_table(path) if suffix == ".parquet" else _text_table(path, header))
        if suffix in (".npy", ".npz"):
            return _kind_of_arrays(path, key)
        if key is not None:
            return _kind_of_array(io.NAMED_ARRAYS[suffix](path, key, None).values, {"key": key})
    return Guess("matrix", {}, "similarities")


def _kind_of_table(table: Table) -> Guess:
    spelled = table.header or [str(place) for place in range(table.width)]
    names = [name.strip().lower() for name in table.header or ()]
    texts = [place for place in range(table.width) if not table.is_number[place]]
    cue, response = _first(names, _CUES), _first(names, _RESPONSES)
    if cue is not None and response is not None:
        count = _count_of(table, names, cue, response)
        columns: dict[str, Any] = {"cue": spelled[cue], "response": spelled[response]}
        columns["count"] = False if count is None else spelled[count]
        return Guess("associations", columns, "word associations, by the names of its columns")
    if _is_square(table):
        return Guess("matrix", {}, "a square table of similarities")
    if (found := _kind_of_pairs(table, names, texts)) is not None:
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
        return Guess("features", named, "features, a row for each item")
    listed = ", ".join(map(repr, spelled[:8])) + (", ..." if len(spelled) > 8 else "")
    raise _question(f"a table of {table.n_rows} rows with the columns {listed}")


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
    assert table.header is not None
    listed = ", ".join(repr(table.header[place]) for place in numbers[:8])
    raise ValueError(
        f"this must be told which column counts the responses, got {listed}: pass --count COLUMN, or --no-count."
    )


def _kind_of_pairs(table: Table, names: list[str], texts: list[int]) -> Guess | None:
    """Ratings or a list of pairs, if it is either: two columns of items and one of numbers."""
    sides = _sides(names)
    value = _first([name if number else "" for name, number in zip(names, table.is_number, strict=False)], _RATINGS)
    if value is None and table.width == 3 and _are_triplets([table.column(place) for place in range(3)]):
        return None
    if sides is not None and value is None:  # whatever it is called, if it is the only column of numbers
        numbers = [place for place in range(table.width) if table.is_number[place] and place not in sides]
        value = numbers[0] if len(numbers) == 1 else None
    if sides is not None and value is not None and value not in sides:
        assert table.header is not None
        columns = {role: table.header[place] for role, place in zip(("item1", "item2"), sides, strict=True)}
        columns["rating"] = table.header[value]
        person = next((name for name, low in zip(table.header, names, strict=True) if _PEOPLE.fullmatch(low)), None)
        if person is not None:
            columns["participant"] = person
        is_list = table.width in (3, 4) and person is None and not names[value].startswith("rating")
        if not is_list or _repeats(table, *sides):
            return Guess("ratings", columns, "ratings of pairs, by the names of its columns")
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
    """Whether a table has a row and a column for each item; one of few numbers that could be is refused."""
    has_names = not table.is_number[0]
    if not all(table.is_number[has_names:]) or table.n_rows < 2:
        return False
    first, header = table.column(0), [name.strip() for name in table.header or ()]
    if has_names or (header and first == header[1 : len(first) + 1]):
        are_columns = not header or set(first) <= set(header[1:])
        return table.n_rows == table.width - 1 and are_columns
    if table.n_rows != table.width:
        return False
    if len(table.body) == table.n_rows and not _is_symmetric(table.body):
        raise _question(f"as many rows as columns, {table.width}, that are not symmetric")
    return True


def _is_symmetric(body: list[list[str]]) -> bool:
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


def _text_table(path: Path, header: bool | None) -> Table:
    from simdims.io.text import find_dialect, is_text, rows

    dialect = find_dialect(path)
    all_rows = (cells for _, cells in rows(path, dialect))
    kept = list(islice(all_rows, 2))
    if not kept:
        raise ValueError("this must hold a table, got blank lines only.")
    width = len(kept[-1])
    kept += islice(all_rows, _MOST_ROWS if width <= _MOST_LONG else 50)
    n_rows = len(kept) + sum(1 for _ in all_rows)
    top, below = kept[0], [row for row in kept[1:] if len(row) == width]
    is_number = [not any(is_text(row[place], dialect) for row in below[:1000]) for place in range(width)]
    if header is None:
        header = len(top) == width - 1 or _is_header(top, below, is_number, dialect)
    if not header:
        is_number = [number and not is_text(cell, dialect) for number, cell in zip(is_number, top, strict=False)]
        return Table(None, [top, *below], n_rows, is_number)
    return Table(top if len(top) == width else ["", *top], below, n_rows - 1, is_number)


def _is_header(top: list[str], below: list[list[str]], is_number: list[bool], dialect: Any) -> bool:
    """Whether the first row names the columns: by text above numbers, or by words that do not come again."""
    from simdims.io.text import is_text

    if not below or len(top) != len(is_number):
        return False
    above = [cell.strip() for cell, number in zip(top, is_number, strict=True) if number and cell.strip()]
    if above:
        numbered = not top[0].strip() and above == [str(number) for number in range(len(above))]
        return numbered or all(is_text(cell, dialect) for cell in above)
    words = {cell.strip() for row in below for cell in row}
    return not all(cell.strip() in words for cell in top)


def _parquet_table(path: Path) -> Table:
    from simdims import _inputs

    frame = _inputs._read_frame(path, None, None)
    named = frame.reset_index() if frame.index.dtype.kind not in "iu" else frame
    body = named.head(_MOST_ROWS if named.shape[1] <= _MOST_LONG else 50).astype(str).to_numpy().tolist()
    return Table(
        [str(name) for name in named.columns], body, len(named), [dtype.kind in "biuf" for dtype in named.dtypes]
    )


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
    if not hasattr(values, "ndim") or values.ndim != 2:
        shape = " x ".join(map(str, getattr(values, "shape", ())))
        raise _question(f"an array of shape {shape}")
    if values.shape[0] == values.shape[1]:
        return Guess("matrix", options, "a square array of similarities")
    if values.shape[1] == 3 and values.dtype.kind in "iu" and _are_triplets(_columns_of(values)):
        return Guess("triplets", {}, "triplets, the odd one out last")
    return Guess("features", options, "features, a row for each item")


def _columns_of(values: Any) -> list[list[str]]:
    return [[str(number) for number in column] for column in values[:_MOST_ROWS].T.tolist()]


def _question(what: str) -> ValueError:
    return ValueError(f"this must be told to hold {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {what}: pass --as KIND.")


def _first(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The place of the first of some names that is there."""
    return next((names.index(name) for name in wanted if name in names), None)
