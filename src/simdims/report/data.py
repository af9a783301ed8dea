"""The data of the page: facts as JSON that is safe to embed in HTML, and arrays as base64."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims import __version__
from simdims._parameters import ParameterError
from simdims.consensus import Lineage
from simdims.discovery.names import identity
from simdims.discovery.result import Discovery, custom_names
from simdims.inference import HypothesisTests
from simdims.naming import suggested_names
from simdims.selection import DetectableDimensions, RankSelection

if TYPE_CHECKING:
    import pandas as pd

#: Top items per dimension that the page contains, for its card and its block of similarities.
N_TOP = 16

#: Up to this many loadings are stored as float32; more as 16-bit fractions of each dimension's largest loading.
EXACT_UP_TO = 500_000

#: Code of a missing similarity; the other codes are multiples of 1/65534 of the largest.
MISSING = 65535


def facts(
    found: Discovery, tests: HypothesisTests | None, lineage: Lineage | None, tops: list[NDArray[np.intp]], title: str
) -> dict[str, Any]:
    """The page's facts, except arrays, labels and images."""
    table = found.dimensions_frame()
    return {
        "title": title,
        "version": __version__,
        "fingerprint": identity(found),
        "names": _names_facts(found),
        "n_items": found.n_items,
        "n_components": found.n_components,
        "n_top": N_TOP,
        "dimensions": [
            {
                "share": _number(table["share"].iloc[k]),
                "reliability": _number(table["reliability"].iloc[k]),
                "items": top.tolist(),
                "values": rounded(found.embedding[top, k], 7),
            }
            for k, top in enumerate(tops)
        ],
        "selection": None if found.selection is None else _selection_facts(found.selection, found.detectable),
        "lineage": None if lineage is None else _lineage_facts(lineage, found),
        "tests": None if tests is None else _tests_facts(tests, found.dimension_names),
    }


def suggestion_facts(table: pd.DataFrame, dimension_names: tuple[str, ...]) -> list[dict[str, str] | None]:
    """For each dimension the suggested name without and with correlations; None if there is none."""
    names, words = suggested_names(table, numbers=False), suggested_names(table)
    n_components = len(dimension_names)
    places = {_place(dimension, dimension_names): dimension for dimension in names}
    if None in places:
        rule = f"must be about dimension1 to dimension{n_components}"
        raise ParameterError("suggestions", rule, repr(places[None]), "use label_dimensions with this result")
    return [{"name": names[places[k]], "words": words[places[k]]} if k in places else None for k in range(n_components)]


def script_json(value: Any) -> str:
    """JSON that is safe inside a script element: it cannot end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # UTF-8 cannot encode a lone surrogate.
    return text.encode("utf-8", errors="replace").decode("utf-8")


def pack_loadings(W: NDArray) -> tuple[str, dict[str, Any]]:
    """An embedding as base64 lines, one per dimension, so that the page decodes only those that it shows.

    And its facts: the storage ("float32" or "uint16"), step sizes and precision.
    """
    if W.size <= EXACT_UP_TO:
        kind, scales, precision = "float32", np.ones(W.shape[1]), "as 32-bit numbers, about 7 digits"
    else:
        kind, scales = "uint16", W.max(axis=0).astype(np.float64) / 65535
        scales[scales == 0] = 1.0
        precision = "in 65,535 steps from 0 to the largest loading of each dimension, so to within 0.001% of that"
    lines = []
    for column, scale in zip(W.T, scales, strict=True):
        steps = column.astype(np.float64) / scale
        lines.append(as_base64(steps.astype(np.float32) if kind == "float32" else np.rint(steps).astype(np.uint16)))
    return "\n".join(lines), {"kind": kind, "scales": scales.tolist(), "precision": precision}


def pack_similarities(values: NDArray, largest: float) -> str:
    """Similarities between 0 and `largest` as 16-bit steps; NaN is missing."""
    steps = np.rint(np.nan_to_num(values) * ((MISSING - 1) / (largest or 1.0)))
    return as_base64(np.where(np.isnan(values), MISSING, steps).astype(np.uint16))


def rounded(values: Any, digits: int = 5) -> list[float | None]:
    """Numbers rounded for display; None if they are not finite."""
    numbers = np.asarray(values, dtype=np.float64)
    return [float(f"{number:.{digits}g}") if np.isfinite(number) else None for number in numbers]


def as_base64(array: NDArray) -> str:
    """The bytes of an array, little-endian, row by row."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return base64.b64encode(plain.tobytes()).decode("ascii")


def _names_facts(found: Discovery) -> dict[str, Any] | None:
    """The names in the result, and the key under which the browser stores changes; None without names."""
    given = custom_names(found)
    if not any(given):
        return None
    key = hashlib.sha256("\0".join(given).encode("utf-8", errors="surrogatepass")).hexdigest()[:12]
    return {"key": key, "given": given}


def _selection_facts(selection: RankSelection, detectable: DetectableDimensions | None) -> dict[str, Any]:
    curve, resampled = selection.curve, selection.resampled if len(selection.tried) > 1 else None
    ends = None if resampled is None else resampled.interval()
    return {
        "rank": int(selection.rank),
        "minimum": int(selection.minimum),
        "n_fits": int(selection.n_folds * selection.n_repeats),
        "training_share": _number(selection.training_share),
        "ranks": [int(rank) for rank in curve["rank"]],
        "errors": rounded(curve["error"], 7),
        "standard_errors": rounded(curve["standard_error"], 7),
        "explained": rounded(curve["explained_variance"], 7),
        "in_valley": [bool(value) for value in curve["in_valley"]],
        "resampled": ends and resampled and {"low": ends[0], "high": ends[1], "words": resampled.words()},
        "detectable": detectable
        and {"rank": detectable.rank, "at_edge": detectable.at_edge, "words": detectable.words()},
    }


def _lineage_facts(lineage: Lineage, found: Discovery) -> dict[str, Any]:
    """The tree: its nodes in the order of their fits, with the indices of their parents in the list."""
    table = lineage.table
    stable = set(lineage.branches.loc[lineage.branches["stable"], "branch"])
    numbers = {place: k for k, place in enumerate(zip(table["rank"], table["dimension"], strict=True))}
    is_own = [W.shape == found.embedding.shape and np.array_equal(W, found.embedding) for W in lineage.embeddings]
    nodes = []
    for row, place in zip(table.to_dict(orient="records"), lineage.places(), strict=True):
        column, dimension = lineage.ranks.index(row["rank"]), int(row["dimension"])
        parent = numbers[lineage.ranks[column - 1], row["parent"]] if row["parent"] > 0 else None
        nodes.append(
            {
                "rank": int(row["rank"]),
                "column": column,
                "place": _number(place),
                "dimension": dimension,
                "parent": parent,
                "correlation": _number(row["correlation"]),
                "same": parent is not None and bool(table["branch"].iloc[parent] == row["branch"]),
                "stable": row["branch"] in stable,
                "share": _number(row["share"]),
                "items": lineage.top_items(row["rank"], dimension),
                "opens": dimension - 1 if is_own[column] else None,
            }
        )
    said = (
        f"Fits with {lineage.ranks[0]} to {lineage.ranks[-1]} dimensions. Thick lines: the same dimension in the next "
        "fit. Thin lines: what a dimension splits into. Dimensions that stay the same up to the largest fit, over at "
        f"least a third of all fits, stand out ({len(stable)} of {lineage.ranks[-1]})."
    )
    return {"ranks": list(lineage.ranks), "said": said, "nodes": nodes}


def _tests_facts(tests: HypothesisTests, dimension_names: tuple[str, ...]) -> dict[str, Any]:
    intervals = tests.null_interval().T
    rows = [
        {
            "hypothesis": str(row["hypothesis"]),
            "statistic": _number(row["statistic"]),
            "pvalue": _number(row["pvalue"]),
            "adjusted": _number(row["pvalue_adjusted"]),
            "significant": bool(row["significant"]),
            "dimension": None if row["dimension"] is None else str(row["dimension"]),
            "place": _place(row["dimension"], dimension_names),
            "null": rounded(interval, 7),
            **{key: _number(row[key]) for key in ("statistic_dimension", "statistic_rsa") if key in row},
            **({"decided_by": str(row["decided_by"])} if "decided_by" in row else {}),
        }
        for row, interval in zip(tests.table.to_dict(orient="records"), intervals, strict=True)
    ]
    said = tests.summary().splitlines()[:2]
    return {"test": tests.test, "alternative": tests.alternative, "said": said, "rows": rows}


def _number(value: Any) -> float | None:
    return rounded([value], 7)[0]


def _place(name: Any, dimension_names: tuple[str, ...]) -> int | None:
    """The index of the dimension that a test names, or None."""
    if name in dimension_names:
        return dimension_names.index(name)
    n_components = len(dimension_names)
    found = re.fullmatch(r"dimension([1-9]\d{0,5})", str(name))
    return int(found[1]) - 1 if found and int(found[1]) <= n_components else None
