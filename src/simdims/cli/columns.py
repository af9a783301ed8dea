"""Which column of a table is what, told by the names of the columns before what they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from simdims._tables import what_else
from simdims.io.tables import Table

# What columns are called by those who keep such tables.
CUES, RESPONSES = ("cue",), ("response", "target", "associate", "association")
_COUNTS = ("count", "counts", "frequency", "freq", "n", "p")
RATINGS = ("rating", "ratings", "score", "answer", "similarity", "judgement", "judgment", "value", "response")
WEIGHTS = ("weight", "weights", "count", "counts", "n")
ODD = ("odd", "odd_one", "odd_one_out", "odd_item", "oddone", "choice", "chosen")
_PEOPLE = re.compile(r"(participant|subject|person|worker|user|rater|annotator)s?([ _]?(id|nr|number))?|subj|sub|pid")
NUMBERS = ("id", "index", "item", "item_id", "itemid", "nr", "no", "number", "row")
_ORDER = ("trial", "trials", "block", "session", "run", "order", "age", "trial_index", "trial_number", "trial_nr")
_SIDES = (("left", "right"), ("first", "second"), ("item_a", "item_b"), ("a", "b"), ("source", "target"))


def rated_pairs(table: Table, known: Mapping[str, Any]) -> dict[str, str] | None:
    """The columns of ratings: two of items, one that rates them, and one of people if there is one."""
    items = _sides_of(table, known)
    if items is None:
        return None
    columns = {role: table.spelled[place] for role, place in zip(("item1", "item2"), items, strict=True)}
    if "rating" in known:  # whether there is such a column is told when it is read
        columns["rating"] = known["rating"]
    else:
        rating = _rating_of(table, items)
        if rating is None:
            return None
        columns["rating"] = table.spelled[rating]
    person = next((place for place, name in enumerate(table.names) if _PEOPLE.fullmatch(name)), None)
    if "participant" in known or person is not None:
        columns["participant"] = known.get("participant", person if person is None else table.spelled[person])
    return columns


def _rating_of(table: Table, items: tuple[int, int]) -> int | None:
    """The column of ratings: by its name, or as the only one of numbers that could be one."""
    rest = [place for place in range(table.width) if place not in items and not _is_count(table, place)]
    named = [place for place in named_ratings(table) if place in rest]
    with_numbers = [place for place in named if table.has_numbers(place)]
    if with_numbers:
        table.refuse_texts(with_numbers[0])
        return with_numbers[0]
    if not set(items) <= set(texts_of(table)):  # columns a, b and c may as well be features
        return None
    numbers = [place for place in rest if table.is_number[place] and table.has_numbers(place)]
    others = [place for place in numbers if what_else(table.spelled[place]) is None]
    if named and numbers:
        text, row = next(iter(table.texts(named[0])), ("", "every row"))
        raise ValueError(
            f"Column {table.spelled[named[0]]!r} must hold numbers, got the text {text!r} in {row}: if another column "
            "holds the ratings, pass --rating COLUMN."
        )
    if len(others) == 1:
        table.refuse_texts(others[0])
        return others[0]
    if len(others) > 1 and table.width > 4:
        raise which_column("rates the pairs", [table.spelled[place] for place in others], "--rating COLUMN")
    if not others:
        refuse_other_measures(table, numbers)
    return None


def refuse_other_measures(table: Table, places: Sequence[int]) -> None:
    """Refuse columns that hold, by their names, response times or dissimilarities."""
    for place in places:
        name = table.spelled[place]
        if (kind := what_else(name)) is not None:
            reverse = "Reverse them (largest - value) in a column called similarity, or pass --rating COLUMN"
            ways = {
                "response times": "Pass --rating COLUMN",
                "dissimilarities": "Pass --as dissimilarity, or --rating COLUMN" if is_list(table) else reverse,
            }
            raise ValueError(
                f"Column {name!r} seems to hold {kind}, not similarities. {ways[kind]} to use a column as it is, "
                "larger values meaning more similar."
            )


def is_list(table: Table) -> bool:
    """Say whether a table has the columns of a list of pairs: item, item, value and perhaps weight."""
    return table.width == 3 or (table.width == 4 and table.names[3:] != [] and table.names[3] in WEIGHTS)


def named_ratings(table: Table) -> list[int]:
    """Columns called ratings, in the order in which the names are preferred."""
    exact = [table.names.index(name) for name in RATINGS if name in table.names]
    partly = [
        place
        for place, name in enumerate(table.names)
        if place not in exact
        and what_else(table.spelled[place]) is None
        and set(re.findall("[a-z]+", name)) & {"rating", "ratings", "similarity", "similarities"}
    ]
    return [*exact, *partly]


def _is_count(table: Table, place: int) -> bool:
    """Whether a column numbers people, trials or the like."""
    if not table.names:
        return False
    name = table.names[place]
    return name in NUMBERS or name in _ORDER or not name or _PEOPLE.fullmatch(name) is not None


def count_of(table: Table, cue: int, response: int) -> int | None:
    """The column that counts how often a response was given to a cue; None where each row is one response."""
    names = table.names
    numbers = [
        place
        for place, name in enumerate(names)
        if table.is_number[place] and name not in NUMBERS and not _PEOPLE.fullmatch(name)
    ]
    count = first([name if place in numbers else "" for place, name in enumerate(names)], _COUNTS)
    # Some tables call the total of a cue N, and several have shares beside counts.
    is_clear = count is not None and (len(numbers) == 1 or names[count] not in ("n", "p"))
    if count is not None and is_clear:
        table.refuse_texts(count)
    if is_clear or not numbers or (count is None and repeats(table, cue, response)):
        return count
    named = [table.spelled[place] for place in numbers]
    raise which_column("counts the responses", named, "--count COLUMN, or --no-count")


def _sides_of(table: Table, known: Mapping[str, Any]) -> tuple[int, int] | None:
    """The two columns of items: those that were named, or by what they are called."""
    given = [known.get(role) for role in ("item1", "item2")]
    if all(name in table.spelled for name in given):
        one, other = (table.spelled.index(str(name)) for name in given)
        return one, other
    return sides(table.names) if given == [None, None] else None


def sides(names: Sequence[str]) -> tuple[int, int] | None:
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


def place_of(table: Table, known: Mapping[str, Any], role: str, names: Sequence[str]) -> int | None:
    """The place of a column: the one that was named for this role, or one of these names."""
    if role in known:
        return table.spelled.index(known[role]) if known[role] in table.spelled else None
    return first(table.names, names)


def texts_of(table: Table) -> list[int]:
    """The columns that do not hold numbers."""
    return [place for place in range(table.width) if not table.is_number[place]]


def repeats(table: Table, one: int, other: int) -> bool:
    """Whether a pair occurs twice in one order."""
    pairs = list(zip(table.column(one), table.column(other), strict=True))
    return len(set(pairs)) < len(pairs)


def first(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The place of the first of some names that is there."""
    return next((names.index(name) for name in wanted if name in names), None)


def in_columns(columns: dict[str, Any]) -> str:
    """Which column is what: item1 in 'left', item2 in 'right'."""
    named = [f"{role} in {name!r}" for role, name in columns.items() if name is not False]
    return ", ".join([*named, *(["each row counted once"] if columns.get("count") is False else [])])


def which_column(does_what: str, names: list[str], option: str) -> ValueError:
    """A question for the column of a role."""
    listed = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    return ValueError(f"Cannot tell which column {does_what}: {listed}. Pass {option}.")
