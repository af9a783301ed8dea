"""Meadows exports: the dissimilarities of multiple arrangements, of one or several participants.

The variable names in .mat files and the structure of .json files follow rsatoolbox.io.meadows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import squareform

from simdims._memory import require
from simdims.io.arrays import ArrayFile, reading
from simdims.similarity import Parts
from simdims.similarity.symmetry import n_items_of

PAIRS, STIMULI = "rdmutv", "stimuli"

#: Stimuli are named after their files, without the extension.
_FILE_TYPE = re.compile(r"\.(png|jpe?g|gif|bmp|svg|webp|tiff?|mp[34]|m4[av]|wav|ogg|webm|mov|txt)", re.IGNORECASE)


class Arrangement(NamedTuple):
    """The dissimilarities of one person's items: the pairs above the diagonal, row by row."""

    person: str
    items: list[str]
    pairs: NDArray[np.float64]


def read_mat(file: ArrayFile) -> Parts | None:
    """The arrangements in a .mat file, or None if it is not from Meadows."""
    people = [name.removeprefix(PAIRS) for name in file.variables if name.partition("_")[0] == PAIRS]
    if not people or any(STIMULI + person not in file.variables for person in people):
        return None
    with reading(".mat"):
        found = []
        for person in people:
            items = [str(item) for item in file.texts(STIMULI + person)]
            pairs = np.asarray(file.read(PAIRS + person), dtype=np.float64).ravel()
            found.append(Arrangement(person.lstrip("_").replace("_", "-"), items, pairs))
        return _stacked(found)


def read_json(path: Path) -> Parts:
    """The arrangements in a Meadows .json file: of one task, one participant or several participants."""
    with reading("Meadows .json"):
        found = list(_arrangements(json.loads(path.read_text(encoding="utf-8-sig")), ""))
    if not found:
        raise ValueError("the file must be a tree of Meadows with a task of type multiarrange, got another one.")
    with reading("Meadows .json"):
        return _stacked(found)


def _arrangements(tree: Any, person: str) -> Iterator[Arrangement]:
    """The arrangements of a task, of a participant with tasks, or of several participants."""
    if not isinstance(tree, Mapping):
        return
    if isinstance(tree.get("tasks"), list):
        several = [one for task in tree["tasks"] for one in _arrangements(task, "")]
        for one in several:
            task = one.person if len(several) > 1 or not person else ""
            yield one._replace(person=" ".join(name for name in (person, task) if name))
    elif "rdm" in tree and STIMULI in tree:
        items = [str(stimulus["name"]) for stimulus in tree[STIMULI]]
        name = str(tree.get("task", {}).get("name", person))
        yield Arrangement(name, items, np.asarray(tree["rdm"], dtype=np.float64).ravel())
    else:
        for name, one in tree.items():
            if isinstance(one, Mapping) and isinstance(one.get("tasks"), list):
                yield from _arrangements(one, str(name))


def _stacked(arrangements: Sequence[Arrangement]) -> Parts:
    """One matrix per arrangement over the items of all; pairs missing from an arrangement are NaN."""
    labels = list(dict.fromkeys(item for one in arrangements for item in one.items))
    n, n_people = len(labels), len(arrangements)
    require(8 * n * n * n_people, f"{n_people} matrices of {n} items", "read fewer participants")
    place = {item: at for at, item in enumerate(labels)}
    stack = np.full((n_people, n, n), np.nan)
    for square, one in zip(stack, arrangements, strict=True):
        if len(set(one.items)) != len(one.items) or n_items_of(one.pairs.size) != len(one.items):
            raise ValueError(f"{one.pairs.size} dissimilarities of {len(one.items)} stimuli")
        at = [place[item] for item in one.items]
        square[np.ix_(at, at)] = squareform(one.pairs, checks=False)
    stack[:, range(n), range(n)] = 0.0
    short = [_FILE_TYPE.sub("", item) for item in labels]
    names = tuple(short if len(set(short)) == n else labels)
    info: dict[str, Any] = {"found": f"multiple arrangements of Meadows, rdm of {n} items", "variable": "rdm"}
    if n_people > 1:
        info["people"] = [one.person for one in arrangements]
    return Parts(stack if n_people > 1 else stack[0], names, named_by="the stimuli", info=info)
