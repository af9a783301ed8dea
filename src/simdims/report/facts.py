"""Everything small that the page shows, as plain values that become its JSON."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims import __version__
from simdims._journal import fingerprint
from simdims.discovery.result import Discovery
from simdims.inference import HypothesisTests
from simdims.selection import RankSelection

#: Items of a dimension that are kept with it, for its card and its block of similarities.
N_TOP = 16


def facts(found: Discovery, tests: HypothesisTests | None, tops: list[NDArray[np.intp]], title: str) -> dict[str, Any]:
    """The page's facts but for arrays, labels and images."""
    table = found.dimensions_frame()
    W = found.embedding
    return {
        "title": title,
        "version": __version__,
        "fingerprint": data_fingerprint(found),
        "n_items": found.n_items,
        "n_components": found.n_components,
        "n_top": N_TOP,
        "dimensions": [
            {
                "share": number(table["share"].iloc[k]),
                "reliability": number(table["reliability"].iloc[k]),
                "items": top.tolist(),
                "values": [number(W[item, k]) for item in top],
            }
            for k, top in enumerate(tops)
        ],
        "selection": None if found.selection is None else selection_facts(found.selection),
        "tests": None if tests is None else tests_facts(tests, found.n_components),
    }


def data_fingerprint(found: Discovery) -> str:
    """A text that is the same for the same items and dimensions; names of dimensions are kept under it."""
    digest = hashlib.sha256(fingerprint(found.embedding).encode())
    for label in found.labels or ():
        digest.update(label.encode("utf-8", errors="surrogatepass") + b"\0")
    return digest.hexdigest()[:20]


def selection_facts(selection: RankSelection) -> dict[str, Any]:
    """The curve of rank selection."""
    curve = selection.curve
    return {
        "rank": int(selection.rank),
        "minimum": int(selection.minimum),
        "n_fits": int(selection.n_folds * selection.n_repeats),
        "training_share": number(selection.training_share),
        "ranks": [int(rank) for rank in curve["rank"]],
        "errors": [number(value) for value in curve["error"]],
        "standard_errors": [number(value) for value in curve["standard_error"]],
        "explained": [number(value) for value in curve["explained_variance"]],
        "in_valley": [bool(value) for value in curve["in_valley"]],
    }


def tests_facts(tests: HypothesisTests, n_components: int) -> dict[str, Any]:
    """The tests of hypotheses, a row each."""
    low, high = tests.null_interval()
    rows = [
        {
            "hypothesis": str(row["hypothesis"]),
            "statistic": number(row["statistic"]),
            "pvalue": number(row["pvalue"]),
            "adjusted": number(row["pvalue_adjusted"]),
            "significant": bool(row["significant"]),
            "dimension": None if row["dimension"] is None else str(row["dimension"]),
            "place": _place(row["dimension"], n_components),
            "null": [number(low[place]), number(high[place])],
            **{
                key: number(row[key]) if key != "decided_by" else str(row[key])
                for key in ("statistic_dimension", "statistic_rsa", "decided_by")
                if key in row
            },
        }
        for place, row in enumerate(tests.table.to_dict(orient="records"))
    ]
    lines = tests.summary().splitlines()
    return {"test": tests.test, "alternative": tests.alternative, "said": lines[:2], "rows": rows}


def number(value: Any) -> float | None:
    """A number with the digits that a reader may want; None where there is none."""
    value = float(value)
    return float(f"{value:.7g}") if np.isfinite(value) else None


def _place(name: Any, n_components: int) -> int | None:
    """Which dimension a test means by its name, if that is one of the page's own."""
    found = re.fullmatch(r"dimension([1-9]\d{0,5})", str(name))
    return int(found[1]) - 1 if found and int(found[1]) <= n_components else None
