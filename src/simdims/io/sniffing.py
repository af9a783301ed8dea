"""Detect what a data file contains: similarities, triplets, ratings, features or other kinds of data.

Column names take precedence over column contents. An ambiguous file is refused, and the error names the options that
resolve it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from simdims import io
from simdims._cells import number
from simdims._parameters import ParameterError, Spelling, in_python, listed_columns, plural, spelled
from simdims._tables import what_else
from simdims.io.arrays import has_pairs, read_named_arrays, read_npy, reading
from simdims.io.native import load_npz
from simdims.io.tables import MOST_ROWS, PLAIN, Reading, Table, sample_table

# Rows and columns of a square array that are checked for symmetry.
MOST_COMPARED = 1000

# Recognised column names, the most specific first.
CUES, RESPONSES = ("cue",), ("response", "target", "associate", "association")
COUNTS = ("count", "counts", "frequency", "freq", "n", "p")
RATINGS = ("rating", "ratings", "score", "answer", "similarity", "judgement", "judgment", "value", "response")
WEIGHTS = ("weight", "weights", "count", "counts", "n")
ODD = ("odd", "odd_one", "odd_one_out", "odd_item", "oddone", "choice", "chosen")
HEADS = ("head", "anchor", "reference", "probe", "query")
WINNERS = ("winner", "closer", "chosen", "more_similar", "positive")
LOSERS = ("loser", "farther", "further", "unchosen", "not_chosen", "less_similar", "negative")
PEOPLE = re.compile(r"(participant|subject|person|worker|user|rater|annotator)s?([ _]?(id|nr|number))?|subj|sub|pid")
IDENTIFIERS = ("id", "index", "item", "item_id", "itemid", "nr", "no", "number", "row")
ORDER = ("trial", "trials", "block", "session", "run", "order", "age", "trial_index", "trial_number", "trial_nr")
SIDES = (("left", "right"), ("first", "second"), ("item_a", "item_b"), ("a", "b"), ("source", "target"))

#: From this number of columns of numbers on, a table with one row per person is wide.
_MANY_COLUMNS = 10

#: The kinds of data, in words.
KINDS = {
    "matrix": "similarities",
    "features": "features, one row per item",
    "triplets": "triplets",
    "comparisons": "comparisons with a head",
    "ratings": "ratings of pairs",
    "associations": "word associations",
    "dissimilarity": "dissimilarities",
}


class Guess(NamedTuple):
    """A kind of data, the options implied by column names, a description, and the cells of a table."""

    kind: str
    options: dict[str, Any]
    why: str
    table: Table | None = None


class AmbiguousError(ParameterError):
    """A file that could contain several kinds of data: what was found, and the options that tell which."""

    def __init__(self, got: str, remedy: str) -> None:
        super().__init__("kind", "must be given", got, remedy)
        self.args = (got, remedy)  # for pickling

    def sentence(self, name: str, spelling: Spelling = in_python, *, shows_none: bool = True) -> str:
        """The sentence, with arguments written as the reader has to type them."""
        file = "this file" if self.file is None else repr(self.file)
        return f"Cannot tell what {file} contains: {self.got}. Use {spelled(str(self.remedy), spelling)}."


def guess(
    path: Path,
    how: Reading = PLAIN,
    header: bool | None = None,
    known: Mapping[str, Any] | None = None,
    kind: str | None = None,
) -> Guess:
    """Detect the contents of a file or, if `kind` is given, its columns.

    `header` says whether the first row of a text file names the columns, and None detects it; `known` has the columns
    already named by the user, by role (item1, rating, count, ...).
    """
    io.check_file(path)
    known = known or {}
    with io.named_in_errors(path):
        if kind is None:
            return _kind_of_file(path, how, header, known)
        if kind in _FINDERS and path.suffix.lower() in io.TABLES:
            table = sample_table(path, header, how)
            _require_columns(table, known)
            return (_FINDERS[kind](table, known) or Guess(kind, {}, KINDS[kind]))._replace(table=table)
        with suppress(ValueError):  # other interpretations do not matter
            found = _kind_of_file(path, how, header, known)
            return found if found.kind == kind else Guess(kind, {}, KINDS[kind], found.table)
    return Guess(kind, {}, KINDS[kind])


def _kind_of_file(path: Path, how: Reading, header: bool | None, known: Mapping[str, Any]) -> Guess:
    suffix, key = path.suffix.lower(), how.key
    if suffix in io.TABLES:
        table = sample_table(path, header, how)
        try:
            return _kind_of_table(table, known)._replace(table=table)
        except AmbiguousError:
            _require_columns(table, known)  # a typing error may be why
            raise
    if suffix == ".npy":
        return _kind_of_array(read_npy(path).values, {})
    if suffix == ".npz":
        return _kind_of_npz(path, key)
    if suffix == ".h5ad" and (key == "X" or (key is None and not has_pairs(path))):
        return Guess("features", {}, f"{KINDS['features']} (X of AnnData)")
    if key is not None:
        return _kind_of_array(read_named_arrays(path, key, None).values, {"key": key})
    return Guess("matrix", {}, KINDS["matrix"])


def _require_columns(table: Table, known: Mapping[str, Any]) -> None:
    """Refuse the name of a column that the table lacks; `odd` may be a position, and `columns` are checked later."""
    for role, name in known.items():
        if role not in ("odd", "columns") and isinstance(name, str) and name not in table.columns:
            raise ParameterError(role, "must name a column of the table", listed_columns(name, table.columns))


def _kind_of_table(table: Table, known: Mapping[str, Any]) -> Guess:
    for rule in _RULES:
        if (found := rule(table, known)) is not None:
            return found
    if (person := _one_row_per_person(table)) is not None:
        raise _wide(person)
    rows, columns = (f"{n} {plural(noun, n)}" for n, noun in ((table.n_rows, "row"), (table.width, "column")))
    raise _undecided(f"a table of {rows} and {columns} ({_listed(table.columns)})")


def _associations(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Word associations: columns called cue and response."""
    cue = _place_of(table, known, "cue", CUES)
    response = _place_of(table, known, "response", RESPONSES)
    if cue is None or response is None:
        return None
    columns: dict[str, Any] = {"cue": table.columns[cue], "response": table.columns[response]}
    if "count" in known:
        columns["count"] = known["count"]
    else:
        count = _count_column(table, cue, response)
        columns["count"] = False if count is None else table.columns[count]
    return Guess("associations", columns, f"word associations: {_roles(columns)}")


def _square(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Similarities: as many rows as columns of numbers."""
    return Guess("matrix", {}, "a square table of similarities") if _is_square(table) else None


def _comparisons(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Comparisons: columns called head, winner and loser, or synonyms."""
    roles = {"head": HEADS, "winner": WINNERS, "loser": LOSERS}
    places = {role: _place_of(table, known, role, names) for role, names in roles.items()}
    columns = {role: table.columns[place] for role, place in places.items() if place is not None}
    if len(columns) < len(roles):
        return None
    return Guess("comparisons", columns, f"comparisons with a head: {_roles(columns)}")


def _triplets(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Triplets: three columns with the same items, none of which is called a rating."""
    is_rated = "rating" in known or any(table.has_numbers(place) for place in _rating_names(table))
    if table.width != 3 or is_rated or not _are_triplets([table.column(place) for place in range(3)]):
        return None
    return _triplet_columns(table, known)


def _triplet_columns(table: Table, known: Mapping[str, Any]) -> Guess:
    odd = _first(table.lower, ODD)
    if table.width != 3 or "odd" in known or "columns" in known:
        columns = " in columns " + ", ".join(map(repr, known["columns"])) if "columns" in known else ""
        which = f"in {known['odd']!r}" if "odd" in known else "last"
        return Guess("triplets", {}, f"triplets{columns}, the odd one out {which}")
    which = "last" if odd is None else f"in column {table.columns[odd]!r}"
    return Guess("triplets", {} if odd is None else {"odd": odd}, f"triplets, the odd one out {which}")


def _distances(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Dissimilarities: a list of pairs with one column named as a dissimilarity, and none of ratings."""
    if "rating" in known or not table.header or any(table.has_numbers(place) for place in _rating_names(table)):
        return None
    if _is_pair_list(table) and not _repeats(table, 0, 1) and what_else(table.columns[2]) == "dissimilarities":
        table.refuse_texts(2)
        columns = _roles(dict(zip(("item1", "item2", "dissimilarity"), table.columns, strict=False)))
        return Guess("dissimilarity", {}, f"a list of pairs and their dissimilarities: {columns}")
    return _distance_columns(table, known) if _named_distances(table) else None


def _named_distances(table: Table) -> list[int]:
    return [place for place, name in enumerate(table.columns) if what_else(name) == "dissimilarities"]


def _distance_columns(table: Table, known: Mapping[str, Any]) -> Guess | None:
    columns = _pair_columns(table, known, "dissimilarity", _distance_column)
    return None if columns is None else Guess("dissimilarity", columns, f"dissimilarities of pairs: {_roles(columns)}")


def _distance_column(table: Table, items: tuple[int, int]) -> int | None:
    places = _named_distances(table)
    return places[0] if len(places) == 1 else None


def _ratings(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Ratings: two columns of items and one of ratings, with people, other columns or repeated pairs."""
    found = _rating_columns(table, known)
    if found is None or "rating" in known or "participant" in found.options:
        return found
    items = (table.columns.index(found.options[role]) for role in ("item1", "item2"))
    are_ratings = found.options["rating"].strip().lower().startswith("rating") or _repeats(table, *items)
    return found if are_ratings or not _is_pair_list(table) else None


def _rating_columns(table: Table, known: Mapping[str, Any]) -> Guess | None:
    columns = _pair_columns(table, known, "rating", _rating_column)
    return None if columns is None else Guess("ratings", columns, f"ratings of pairs: {_roles(columns)}")


def _pair_columns(
    table: Table, known: Mapping[str, Any], role: str, find: Callable[[Table, tuple[int, int]], int | None]
) -> dict[str, Any] | None:
    """Two columns of items, one of values with this role, which `find` looks for, and optionally one of people."""
    items = _item_columns(table, known)
    if items is None:
        return None
    columns: dict[str, Any] = {"item1": table.columns[items[0]], "item2": table.columns[items[1]]}
    if role in known:  # reading the file checks that the column exists
        columns[role] = known[role]
    elif (place := find(table, items)) is not None:
        table.refuse_texts(place)
        columns[role] = table.columns[place]
    else:
        return None
    people = [table.columns[place] for place, name in enumerate(table.lower) if PEOPLE.fullmatch(name)]
    if "participant" in known or people:
        columns["participant"] = known["participant"] if "participant" in known else people[0]
    return columns


def _pairs(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Similarities: a list of distinct pairs with the columns item, item, value and optionally weight."""
    texts = _text_columns(table)
    if table.width not in (3, 4) or any(place > 1 for place in texts) or _repeats(table, 0, 1):
        return None
    is_named = _named_sides(table.lower) == (0, 1) or _first(table.lower[2:3], RATINGS) is not None
    if texts == [0, 1]:
        are_pairs = is_named or not set(table.column(0)).isdisjoint(table.column(1))
    elif texts or table.header:
        are_pairs = not texts and is_named
    else:
        are_pairs = _are_items(table.column(0), table.column(1)) and any(map(_has_fraction, table.column(2)))
    if not are_pairs:
        return None
    if table.header:
        _refuse_other_measures(table, [2])
    table.refuse_texts(2)
    columns = _roles(dict(zip(("item1", "item2", "similarity", "weight"), table.columns, strict=False)))
    return Guess("matrix", {}, f"a list of pairs and their similarities{f': {columns}' if table.header else ''}")


def _features(table: Table, known: Mapping[str, Any]) -> Guess | None:
    """Features: numeric columns, and at most one that names the items."""
    texts = _text_columns(table)
    if (person := _one_row_per_person(table)) is not None:
        raise _wide(person)
    names_items = len(texts) == 1 and _are_distinct(table.column(texts[0]))
    if table.width - len(texts) < 2 or (texts and not names_items):
        return None
    if not texts and _could_be_trials(table):
        raise _undecided("columns of whole numbers that could be items of pairs or triplets, or features")
    identifier = _first(table.lower, IDENTIFIERS)
    if identifier is not None and table.is_number[identifier] and _are_distinct(table.column(identifier)):
        if texts:
            raise _undecided(f"a column {table.columns[identifier]!r} that seems to number the items, not a feature")
        texts = [identifier]
    if not texts or not table.columns[texts[0]].strip():
        return Guess("features", {}, KINDS["features"])
    labels = table.columns[texts[0]]
    return Guess("features", {"labels": labels}, f"{KINDS['features']}, named by {labels!r}")


def _one_row_per_person(table: Table) -> str | None:
    """The column of people of a wide table, which has one row per person and many columns of numbers."""
    places = [place for place, name in enumerate(table.lower) if PEOPLE.fullmatch(name)]
    if not table.header or len(places) != 1 or sum(table.is_number) < _MANY_COLUMNS:
        return None
    names = table.column(places[0])
    return table.columns[places[0]] if len(set(names)) > 0.9 * len(names) else None


def _wide(person: str) -> AmbiguousError:
    got = f"it has one row per person (in {person!r}) and many columns of numbers"
    remedy = "{kind=features} if the people are the items; otherwise, rearrange the table to one judgement per row"
    return AmbiguousError(got, f"{remedy}, with columns for the person, the items and the answer")


#: The rules, of which each recognises one kind, in the order in which they are tried.
_RULES = (_associations, _comparisons, _square, _triplets, _distances, _ratings, _pairs, _features)

#: Functions that find the columns of a given kind.
_FINDERS: dict[str, Callable[[Table, Mapping[str, Any]], Guess | None]] = {
    "ratings": _rating_columns,
    "associations": _associations,
    "triplets": _triplet_columns,
    "comparisons": _comparisons,
    "dissimilarity": _distance_columns,
}


def _place_of(table: Table, known: Mapping[str, Any], role: str, names: Sequence[str]) -> int | None:
    """The position of a column: the one given for this role, or the first with one of these names."""
    if role in known:
        return table.columns.index(known[role]) if known[role] in table.columns else None
    return _first(table.lower, names)


def _item_columns(table: Table, known: Mapping[str, Any]) -> tuple[int, int] | None:
    given = [known.get(role) for role in ("item1", "item2")]
    if all(name in table.columns for name in given):
        one, other = (table.columns.index(str(name)) for name in given)
        return one, other
    return _named_sides(table.lower) if given == [None, None] else None


def _named_sides(names: Sequence[str]) -> tuple[int, int] | None:
    """Two columns of items: left and right, word1 and word2, ..."""
    for one, other in SIDES:
        if one in names and other in names:
            return names.index(one), names.index(other)
    for place, name in enumerate(names):
        for end, next_end in (("1", "2"), ("a", "b")):
            partner = name.removesuffix(end) + next_end
            if len(name) > 1 and name.endswith(end) and partner in names and f"{name[:-1]}3" not in names:
                return place, names.index(partner)
    return None


def _rating_column(table: Table, items: tuple[int, int]) -> int | None:
    """The column of ratings: by name, or the only numeric column that could be one."""
    rest = [place for place in range(table.width) if place not in items and not _is_running_number(table, place)]
    named = [place for place in _rating_names(table) if place in rest]
    with_numbers = [place for place in named if table.has_numbers(place)]
    if with_numbers:
        return with_numbers[0]
    if not set(items) <= set(_text_columns(table)):  # columns a, b and c could also be features
        return None
    numbers = [place for place in rest if table.is_number[place] and table.has_numbers(place)]
    others = [place for place in numbers if what_else(table.columns[place]) is None]
    if named and numbers:
        text, row = next(iter(table.texts(named[0])), ("", "every row"))
        remedy = "if another column holds the ratings, pass {rating=COLUMN}"
        raise ParameterError(_named(table, named[0]), "must hold numbers", f"the text {text!r} in {row}", remedy)
    if len(others) == 1:
        return others[0]
    if len(others) > 1 and table.width > 4:
        raise _which_column("rating", table, others, "pass {rating=COLUMN}")
    if not others:
        _refuse_other_measures(table, numbers)
    return None


def _rating_names(table: Table) -> list[int]:
    """Columns named as ratings, in order of preference."""
    exact = [table.lower.index(name) for name in RATINGS if name in table.lower]
    partly = [
        place
        for place, name in enumerate(table.lower)
        if place not in exact
        and what_else(table.columns[place]) is None
        and set(re.findall("[a-z]+", name)) & {"rating", "ratings", "similarity", "similarities"}
    ]
    return [*exact, *partly]


def _is_running_number(table: Table, place: int) -> bool:
    """Whether a column numbers people, trials or the like."""
    if not table.lower:
        return False
    name = table.lower[place]
    return name in IDENTIFIERS or name in ORDER or not name or PEOPLE.fullmatch(name) is not None


def _count_column(table: Table, cue: int, response: int) -> int | None:
    """The column of response counts; None if each row is one response."""
    names = table.lower
    others = [name in IDENTIFIERS or PEOPLE.fullmatch(name) is not None for name in names]
    numbers = [place for place in range(len(names)) if table.is_number[place] and not others[place]]
    count = _first([name if place in numbers else "" for place, name in enumerate(names)], COUNTS)
    # Some tables call the total of a cue N, and several have proportions in addition to counts.
    is_clear = count is not None and (len(numbers) == 1 or names[count] not in ("n", "p"))
    if count is not None and is_clear:
        table.refuse_texts(count)
    if is_clear or not numbers or (count is None and _repeats(table, cue, response)):
        return count
    raise _which_column("count", table, numbers, "pass {count=COLUMN}, or {count=False} to count each row once")


def _refuse_other_measures(table: Table, places: Sequence[int]) -> None:
    """Refuse columns named as response times or dissimilarities."""
    for place in places:
        if (kind := what_else(table.columns[place])) is None:
            continue
        way = ""
        if kind == "dissimilarities":
            reverse = "reverse them (largest - value) in a column called similarity, or "
            way = "pass {kind=dissimilarity}, or " if _is_pair_list(table) else reverse
        use = "pass {rating=COLUMN} to use a column as it is, larger values meaning more similar"
        raise ParameterError(_named(table, place), "must hold similarities", f"{kind}, by its name", way + use)


def _is_pair_list(table: Table) -> bool:
    """Whether a table has the columns of a list of pairs: item, item, value and optionally weight."""
    return table.width == 3 or (table.width == 4 and table.lower[3:] != [] and table.lower[3] in WEIGHTS)


def _text_columns(table: Table) -> list[int]:
    return [place for place in range(table.width) if not table.is_number[place]]


def _repeats(table: Table, one: int, other: int) -> bool:
    """Whether a pair occurs twice in the same order."""
    return not _are_distinct(list(zip(table.column(one), table.column(other), strict=True)))


def _first(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The position of the first wanted name that occurs."""
    return next((names.index(name) for name in wanted if name in names), None)


def _is_square(table: Table) -> bool:
    """Whether a table has one row and column per item; undecided if it has no names and is not symmetric."""
    has_names = not table.is_number[0]
    first, header = table.column(0), [name.strip() for name in table.header or ()]
    if table.n_rows < 2:
        return False
    if has_names and header and table.n_rows == table.width - 1 and first == header[1 : len(first) + 1]:
        return True  # whatever the cells are: a word among them is refused when the file is read
    if not all(table.is_number[has_names:]):
        return False
    if has_names or (header and first == header[1 : len(first) + 1]):
        if header:
            _refuse_other_names(table, first, header[1:])
        return table.n_rows == table.width - 1 and (not header or set(first) <= set(header[1:]))
    if table.n_rows != table.width:
        return False
    n = len(table.body)
    if not _is_symmetric(np.array([[_value(cell) for cell in row[:n]] for row in table.body])):
        raise _not_symmetric(table.width)
    return True


def _refuse_other_names(table: Table, first: list[str], others: list[str]) -> None:
    """Refuse tables that seem to be square, but do not have the same names for their rows and columns."""
    if set(first) == set(others) or len(others) < 2 or len(first) < table.n_rows:
        return
    if table.n_rows == len(others) and not set(first) <= set(others):
        if _is_symmetric(np.array([[_value(cell) for cell in row[1:]] for row in table.body])):
            different = next((row, column) for row, column in zip(first, others, strict=True) if row != column)
            names = "{!r} and {!r}".format(*different)
            raise _undecided(f"a symmetric table whose rows and columns have different names, such as {names}")
    elif table.n_rows != len(others) and (set(first) < set(others) or set(others) < set(first)):
        rows, columns = len(first), len(others)
        raise _undecided(f"a table of {rows} rows and {columns} columns with names of the same items")


def _value(cell: str) -> float:
    """A cell as a number; NaN for text, which is refused when the file is read."""
    value = number(cell.replace(",", "."))
    return math.nan if value is None else value


def _is_symmetric(values: Any) -> bool:
    """Whether the first rows and columns of an array are symmetric, where both sides are known."""
    if values.dtype.kind not in "biuf":
        return True
    corner = values[:MOST_COMPARED, :MOST_COMPARED].astype(float)
    with np.errstate(invalid="ignore"):
        return bool((np.isclose(corner, corner.T, rtol=1e-6, atol=1e-9) | np.isnan(corner) | np.isnan(corner.T)).all())


def _are_triplets(columns: list[list[str]]) -> bool:
    """Whether three columns hold three different items in each row, and largely the same items in all columns."""
    if any(_has_fraction(cell) or not cell for column in columns for cell in column):
        return False
    if len({all(cell.isdigit() for cell in column) for column in columns}) > 1:  # people beside words
        return False
    if not all(one != two != three != one for one, two, three in zip(*columns, strict=True)):
        return False
    pair, odd = set(columns[0]) | set(columns[1]), set(columns[2])
    are_numbers = all(cell.isdigit() for cell in pair | odd)
    # Integers could also be values, which have fewer distinct ones than items.
    return 2 * len(pair & odd) >= len(pair | odd if are_numbers else odd)


def _are_items(one: list[str], other: list[str]) -> bool:
    """Whether two columns hold positions of the same items."""
    first, second = set(one), set(other)
    return all(cell.isdigit() for cell in first | second) and 2 * len(first & second) >= min(len(first), len(second))


def _could_be_trials(table: Table) -> bool:
    """Whether two columns of a narrow table hold the same few integers, never equal within a row."""
    if table.width > 5:
        return False
    columns = [table.column(place) for place in range(table.width)]
    return any(
        _are_items(one, other)
        and len({*one, *other}) < len(one)
        and all(first != second for first, second in zip(one, other, strict=True))
        for one, other in combinations(columns, 2)
    )


def _are_distinct(values: Sequence[Any]) -> bool:
    return len(set(values)) == len(values)


def _has_fraction(cell: str) -> bool:
    return re.fullmatch(r"-\d+|[+-]?\d*[.,]\d+(e[+-]?\d+)?", cell, flags=re.IGNORECASE) is not None


def _kind_of_npz(path: Path, key: str | None) -> Guess:
    if load_npz(path) is not None:
        return Guess("matrix", {}, "similarities that simdims wrote")
    with reading(".npz"), np.load(path, allow_pickle=False) as file:
        names = [key] if key in file.files else [name for name in file.files if file[name].ndim > 1]
        if {"format", "shape", "data"} <= set(file.files) or len(names) != 1:
            return Guess("matrix", {}, KINDS["matrix"])
        values = file[names[0]]
    return _kind_of_array(values, {"key": names[0]})


def _kind_of_array(values: Any, options: dict[str, Any]) -> Guess:
    if getattr(values, "ndim", 0) == 3 and values.shape[1] in (values.shape[0], values.shape[2]):
        return Guess("matrix", options, "a stack of square matrices of similarities, averaged")
    if not hasattr(values, "ndim") or values.ndim != 2:
        raise _undecided(f"an array of shape {' x '.join(map(str, getattr(values, 'shape', ())))}")
    if values.shape[0] == values.shape[1]:
        if sparse.issparse(values):
            return Guess("matrix", options, "a sparse matrix of similarities")
        if not _is_symmetric(values):
            raise _not_symmetric(len(values))
        return Guess("matrix", options, "a square array of similarities")
    if values.shape[1] == 3 and values.dtype.kind in "iu":
        columns = [[str(number) for number in column] for column in values[:MOST_ROWS].T.tolist()]
        if _are_triplets(columns):
            return Guess("triplets", {}, "triplets, the odd one out last")
    return Guess("features", options, KINDS["features"])


def _roles(columns: dict[str, Any]) -> str:
    """Describe the roles of columns: item1 in 'left', item2 in 'right'."""
    named = [f"{role} in {name!r}" for role, name in columns.items() if name is not False]
    return ", ".join([*named, *(["each row counted once"] if columns.get("count") is False else [])])


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def _named(table: Table, place: int) -> str:
    return f"Column {table.columns[place]!r}"


def _which_column(role: str, table: Table, places: Sequence[int], remedy: str) -> ParameterError:
    listed = _listed([table.columns[place] for place in places])
    return ParameterError(role, "could be any of several columns", listed, remedy)


def _not_symmetric(n: int) -> AmbiguousError:
    got = f"{n} rows and {n} columns that are not symmetric"
    return AmbiguousError(got, "{kind=features}, or {symmetrize=mean} for similarities whose two sides differ")


def _undecided(what: str) -> AmbiguousError:
    *ways, last = (f"{{kind={kind}}}" for kind in KINDS)
    return AmbiguousError(what, f"{', '.join(ways)} or {last}")
