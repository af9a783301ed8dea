"""`simdims check`: what a file contains, how each column is used, and what discover would do with it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simdims._parameters import plural, shortlist
from simdims.cli import discover
from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.sources import COLUMNS

if TYPE_CHECKING:
    from simdims.io.tables import Table
    from simdims.similarity import Similarity
    from simdims.systems import SimilaritySet

#: Options that name one column each, and how these are then used.
_ROLES = (*(name for name in COLUMNS if name not in ("columns", "odd")), "labels")

#: Columns of a list of pairs by position; the value is named after the kind of data.
_OF_LISTS = ("item1", "item2", "", "weight")

#: Kinds of data whose rows --by can divide into systems, and the largest number of groups that it is suggested for.
_WITH_SYSTEMS, _MOST_GROUPS = ("triplets", "comparisons", "ratings", "dissimilarity"), 20

#: Up to this many columns with the same use are listed individually.
_MOST_LISTED = 8


def add(commands: Any) -> None:
    summary = "show the contents of a file and what discover would do with it, without fitting"
    details = "FILE is read as by `simdims discover`, with the same options."
    example = "simdims check animals.csv"
    parser = shared.add_command(commands, "check", _check, summary=summary, details=details, example=example)
    discover.add_source(parser)
    discover.add_settings(parser)
    shared.add_jobs(parser)
    parser.set_defaults(own=discover.add_data_options(parser), quiet=True)
    parser.usage = "%(prog)s FILE [options]"


def _check(options: argparse.Namespace) -> Findings:
    from simdims.discovery.methods import describe_data

    read = discover.read_data(options)
    S = read.similarity
    columns = [] if read.table is None else _columns(read, read.table)
    facts = {**_coverage(S), **_scale(S)}
    if read.kind in ("matrix", "dissimilarity"):
        facts["symmetry"] = read.options.symmetrize or "equal sides"
    facts |= _duplicates(S, read.table)
    planned = discover.plan(S, options)
    rows = {} if read.table is None else {"n_rows": read.table.n_rows, "n_columns": read.table.width}
    values = {"file": options.source, "kind": read.kind, "why": read.why, **rows, "columns": columns, **facts}
    values["plan"] = discover.plan_values(planned, S)
    counted = "" if not rows else f" ({rows['n_rows']:,} rows, {rows['n_columns']:,} columns)"
    words = [f"{options.source.name}: {read.why}{counted}.", *_columns_in_words(columns, read.table)]
    words += [f"Data: {' '.join(describe_data(S))}", *_facts_in_words(facts, S)]
    words.append(discover.plan_in_words(planned, options))
    return Findings("\n".join(words), values)


def _columns(read: discover.Read, table: Table) -> list[dict[str, Any]]:
    """Each column of a table with its use and its number of missing cells."""
    uses = _uses(read, table)
    n_read = len(table.numbered)
    rest = {place: _possible_use(read, table, place) for place in range(table.width) if place not in uses}
    return [
        {
            "name": name,
            "use": uses.get(place),
            "could": rest.get(place),
            "n_missing": n_read - table.n_given[place],
            "n_read": n_read,
        }
        for place, name in enumerate(table.columns)
    ]


def _uses(read: discover.Read, table: Table) -> dict[int, str]:
    """The use of each column of a table, by position."""
    given, n_items = vars(read.options), read.similarity.n_items
    places = {name: place for place, name in reversed(list(enumerate(table.columns)))}
    covariates = getattr(read.similarity, "info", ()) if given.get("by") else ()
    named = {place: "covariate of the systems" for name, place in places.items() if name in covariates}
    named |= {places[given[role]]: role for role in _ROLES if given.get(role) in places}
    if given.get("by") in places:
        named[places[given["by"]]] = "system"
    if read.kind == "features":
        return {place: named.get(place, "feature") for place in range(table.width)}
    if read.kind == "triplets":
        return named | _places_of_triplets(given, table, [place for place in range(table.width) if place not in named])
    if "dissimilarity" in named.values():
        return named
    if read.kind in ("matrix", "dissimilarity"):
        if table.n_rows >= n_items and table.width - n_items in (0, 1):
            labelled = table.width - n_items
            return {place: "labels" if place < labelled else "values of one item" for place in range(table.width)}
        value = "similarity" if read.kind == "matrix" else "dissimilarity"
        rest = [place for place in range(table.width) if place not in named]
        return named | {place: name or value for place, name in zip(rest, _OF_LISTS, strict=False)}
    return named


def _places_of_triplets(given: Mapping[str, Any], table: Table, rest: list[int]) -> dict[int, str]:
    """The three item columns, and which of them has the odd one out: a name, or a position among the three."""
    chosen = [table.columns.index(name) for name in given.get("columns") or () if name in table.columns] or rest
    odd = given.get("odd")
    at = table.columns.index(odd) if odd in table.columns else chosen[odd] if isinstance(odd, int) else None
    return {place: "odd one out" if place == at else "item" for place in chosen}


def _columns_in_words(columns: list[dict[str, Any]], table: Table | None) -> list[str]:
    """Columns and their uses, line by line; many columns with the same use share a line."""
    by_use: dict[str, list[dict[str, Any]]] = {}
    for column in columns:
        could = f" ({column['could']})" if column["could"] else ""
        by_use.setdefault(column["use"] or f"not used{could}", []).append(column)
    sampled = table is not None and bool(columns) and columns[0]["n_read"] < table.n_rows
    beginning = f" in the first {columns[0]['n_read']:,} rows" if sampled else ""
    lines = []
    for use, those in by_use.items():
        groups = [those] if len(those) > _MOST_LISTED else [[one] for one in those]
        for group in groups:
            names = repr(group[0]["name"])
            names += f" to {group[-1]['name']!r} ({len(group):,} columns)" if len(group) > 1 else ""
            n_missing = sum(one["n_missing"] for one in group)
            missing = f" ({n_missing:,} {plural('cell', n_missing)} missing{beginning})" if n_missing else ""
            lines.append((columns.index(group[0]), names, f"{use}{missing}"))
    width = max((len(names) for _, names, _ in lines), default=0)
    return ["Columns:", *(f"  {names:<{width}}  {use}" for _, names, use in sorted(lines))] if lines else []


def _possible_use(read: discover.Read, table: Table, place: int) -> str | None:
    """What --by could do with a column without a use: keep people or groups apart, or describe people."""
    from simdims.io.sniffing import PEOPLE

    name, cells = table.columns[place], table.column(place)
    if PEOPLE.fullmatch(name.strip().lower()):
        return "--by keeps people apart"
    if read.kind not in _WITH_SYSTEMS or read.options.by is not None:
        return None
    for other, person in enumerate(table.columns):
        people = table.column(other)
        if PEOPLE.fullmatch(person.strip().lower()) and len({*people}) == len({*zip(people, cells, strict=True)}):
            return f"describes people: --by {person} keeps it for `simdims weights`"
    has_groups = not table.has_numbers(place) and 1 < len({*cells}) <= _MOST_GROUPS
    return f"--by {name} keeps its groups apart" if has_groups else None


def _coverage(S: Similarity | SimilaritySet) -> dict[str, Any]:
    """The number of items, and how many pairs and diagonal entries were observed."""
    from numpy import isnan

    from simdims.similarity import Similarity

    n = S.n_items
    facts: dict[str, Any] = {"n_items": n, "labelled": S.labels is not None, "n_pairs": n * (n - 1) // 2}
    if not isinstance(S, Similarity):
        return {**facts, "n_systems": S.n_systems, "density": S.density}
    n_own = n if S.factors is not None else n - int(isnan(S.values.diagonal()).sum())
    return {**facts, "density": S.density, "absent": S.absent, "n_self_similarities": n_own}


def _scale(S: Similarity | SimilaritySet) -> dict[str, Any]:
    from simdims.similarity import Similarity
    from simdims.similarity.entries import value_range

    ends = value_range(S.values) if isinstance(S, Similarity) and S.factors is None else None
    return {} if ends is None else {"smallest": ends[0], "largest": ends[1]}


def _duplicates(S: Similarity | SimilaritySet, table: Table | None) -> dict[str, Any]:
    """Duplicate rows of a narrow table, and items with identical similarities."""
    from scipy import sparse

    from simdims.similarity import Similarity
    from simdims.systems import SimilaritySet, identical_systems

    facts: dict[str, Any] = {}
    if isinstance(S, SimilaritySet):
        facts["identical_systems"] = [list(names) for names in identical_systems(S)]
    if table is not None and len(table.numbered) == table.n_rows:
        facts["n_repeated_rows"] = table.n_rows - len(set(map(tuple, table.body)))
    values = None if not isinstance(S, Similarity) else S.values if S.factors is None else S.factors
    if values is not None and not sparse.issparse(values):
        counts = Counter(row.tobytes() for row in values + 0.0)  # merges 0.0 and -0.0
        repeated = [i for i, row in enumerate(values + 0.0) if counts[row.tobytes()] > 1]
        facts["identical_items"] = [i if S.labels is None else S.labels[i] for i in repeated]
    return facts


def _facts_in_words(facts: Mapping[str, Any], S: Similarity | SimilaritySet) -> list[str]:
    words = []
    n_missing = round((1 - facts["density"]) * facts["n_pairs"])
    if "n_self_similarities" in facts:
        own = facts["n_self_similarities"]
        present = "none" if not own else "all" if own == S.n_items else f"{own:,} of {S.n_items:,}"
        unlisted = "" if facts["absent"] in (None, "missing") else "; pairs that are not listed count as zeros"
        missing = f"{n_missing:,} of {facts['n_pairs']:,} pairs{unlisted}"
        words.append(f"Missing: {missing}. Similarities of items with themselves: {present} present.")
    else:
        words.append(f"Missing: {1 - facts['density']:.1%} of the pairs of all systems.")
    if "smallest" in facts:
        ends = f"{facts['smallest']:.3g} to {facts['largest']:.3g}"
        words.append(f"Scale: similarities of two different items range from {ends}.")
    if "symmetry" in facts:
        same = facts["symmetry"] == "equal sides"
        how = "both sides of each pair are equal" if same else f"where sides differ, the {facts['symmetry']} is taken"
        words.append(f"Symmetry: {how}.")
    identical, repeated = facts.get("identical_items", []), facts.get("n_repeated_rows", 0)
    said = [f"{repeated:,} {'row repeats' if repeated == 1 else 'rows repeat'} another row"] if repeated else []
    if identical:
        named = shortlist([str(item) for item in identical])
        said.append(f"{len(identical):,} items have the same similarities as another item: {named}")
    if groups := facts.get("identical_systems", []):
        named = "; ".join(shortlist(names) for names in groups)
        said.append(f"systems with identical similarities: {named}")
    words.append(f"Duplicates: {'; '.join(said) or 'none'}.")
    return words
