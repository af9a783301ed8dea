"""The provenance of a result: data and their checksum, versions, seed, date and settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from simdims._journal import fingerprint
from simdims.discovery.result import Discovery
from simdims.report.words import percent
from simdims.similarity import Similarity
from simdims.systems import SimilaritySet

_NOT_RECORDED = "not recorded"

#: Settings of `discover` listed on the page, with their display names.
_SETTINGS = {
    "ranks": "dimensions",
    "sampling": "sampling",
    "n_repeats": "repeats",
    "n_runs": "runs",
    "alpha": "penalty alpha",
    "shrinkage": "shrinkage",
    "estimator": "estimator",
    "device": "device",
}


def provenance(found: Discovery) -> list[tuple[str, str]]:
    """Names and values that identify the result."""
    settings, versions = found.settings, found.settings.get("versions", {})
    data = settings.get("data", {})
    seed = _NOT_RECORDED if found.seed is None else str(found.seed)
    rows = [
        ("Data", _source(found, data)),
        ("Checksum of the file (SHA-256)", str(data.get("sha256", ""))),
        ("Checksum of the similarities (SHA-256)", checksum(found.similarity)),
        ("Analysed on", str(settings.get("date", _NOT_RECORDED))),
        ("Software", ", ".join(f"{name} {version}" for name, version in versions.items()) or _NOT_RECORDED),
        ("Random seed", seed),
        ("Settings", "; ".join(_settings(settings)) or _NOT_RECORDED),
    ]
    return [(name, text) for name, text in rows if text]


def checksum(similarity: Similarity | SimilaritySet) -> str:
    """SHA-256 of values, weights and labels: the same for equal similarities, whatever the file."""
    digest = hashlib.sha256()
    for one in similarity if isinstance(similarity, SimilaritySet) else [similarity]:
        arrays: list[Any] = []
        parts: tuple[Any, Any] = (one.values if one.factors is None else one.factors, one.weights)
        for part in parts:
            arrays += [part.data, part.indices, part.indptr] if sparse.issparse(part) else [part]
        digest.update(fingerprint(*arrays, np.float64(one.absent_weight or 0.0)).encode())
        digest.update("\0".join(one.labels or ()).encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()


def _source(found: Discovery, data: Mapping[str, Any]) -> str:
    """The file, or how the similarities were made, and the number of items."""
    info: Any = found.similarity.info if isinstance(found.similarity, Similarity) else {}
    made = data.get("file") or info.get("file") or (f"from {info['source']}" if info.get("source") else "an array")
    systems = "" if found.weights is None else f" in {len(found.weights):,} systems"
    density = found.similarity.density
    pairs = "all pairs" if density == 1 else f"{percent(density)} of the pairs"
    return f"{made}: {found.n_items:,} items{systems}, {pairs} observed"


def _settings(settings: Mapping[str, Any]) -> list[str]:
    return [f"{said} {_short(settings[name])}" for name, said in _SETTINGS.items() if settings.get(name) is not None]


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 2 and value == list(range(value[0], value[-1] + 1)):
        return f"{value[0]} to {value[-1]}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
