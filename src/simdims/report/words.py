"""The texts of the page: the summary, as sentences and figures, and the provenance of the result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from simdims import __version__
from simdims._journal import fingerprint
from simdims.consensus.result import LOW, low_values
from simdims.discovery.result import Discovery
from simdims.inference import HypothesisTests
from simdims.report.given import GivenEmbedding, counted
from simdims.selection.comparison import MODELS
from simdims.similarity import Similarity
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    from simdims.uncertainty import Bootstrap

#: Dimensions that come back less often than this are named.
_OFTEN = 0.8

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


def heading(found: Discovery) -> str:
    """The default title of a page."""
    title = f"{_count(found.n_components, 'dimension')} of {_count(found.n_items, 'item')}{_in_systems(found)}"
    return f"No evidence of structure: {title}" if found.evidence_of_structure is False else title


def paragraphs(
    found: Discovery, tests: HypothesisTests | None = None, uncertainty: Bootstrap | None = None
) -> list[str]:
    """Summarise the result, its resamples and the tests."""
    texts = (
        [_fit(found), _number(found), _stability(found)] if not isinstance(found, GivenEmbedding) else [_given(found)]
    )
    texts += [] if uncertainty is None else [_resampled(uncertainty)]
    if found.systems is not None:
        texts.insert(1, f"{found.systems.verdict()} {found.systems.limits()}".rstrip())
    if tests is not None:
        n, n_significant = len(tests.hypotheses), int(tests.significant.sum())
        verb = "was" if n_significant == 1 else "were"
        how_many = f"{n_significant or 'None'} of {_count(n, 'hypothesis', 'hypotheses')} {verb}"
        if n_significant == n > 1:
            how_many = f"All {n} hypotheses were"
        texts.append(f"{how_many} significant (false discovery rate {tests.alpha:g}).")
    if found.seed is not None:
        texts.append(f"Random seed: {found.seed}.")
    return texts


def figures(found: Discovery) -> list[tuple[str, str]]:
    """The numbers at the top of the page, with their names."""
    shown = [(f"{found.n_items:,}", "items"), (f"{found.n_components}", _word(found.n_components, "dimension"))]
    if found.weights is not None:
        shown.insert(1, (f"{len(found.weights):,}", _word(len(found.weights), "system")))
    if found.held_out is not None:
        shown.append((f"{found.held_out.r2:.3f}", f"held-out R2 (standard error {found.held_out.standard_error:.3f})"))
    if found.share_of_ceiling is not None and found.noise_ceiling is not None:
        r2 = f"held-out R2 {found.common_r2:.3f} of {found.noise_ceiling.upper:.3f}, upper bound"
        shown.append((f"{found.share_of_ceiling:.0%}", f"of the noise ceiling, reached by {MODELS['scale']} ({r2})"))
    if "explained_variance" in found.metrics:
        shown.append((f"{found.metrics['explained_variance']:.3f}", "in-sample R2"))
    if "link_auc" in found.metrics:
        shown.append((f"{found.metrics['link_auc']:.2f}", "in-sample AUC of linked against other pairs"))
    if not np.isnan(found.consensus.mean_reliability):
        shown.append((f"{found.consensus.mean_reliability:.2f}", "mean reliability across random starts"))
    if found.similarity.density < 1:
        shown.append((percent(found.similarity.density), "of the pairs observed"))
    return shown


def provenance(found: Discovery) -> list[tuple[str, str]]:
    """Names and values that identify the result."""
    if isinstance(found, GivenEmbedding):
        return [
            ("Data", f"a given embedding: {counted(found)}"),
            ("Checksum of the embedding (SHA-256)", fingerprint(found.embedding)),
            ("Software", f"simdims {__version__}"),
        ]
    settings, versions = found.settings, found.settings.get("versions", {})
    data = settings.get("data", {})
    chosen = [f"{said} {_short(settings[name])}" for name, said in _SETTINGS.items() if settings.get(name) is not None]
    rows = [
        ("Data", _source(found, data)),
        ("Checksum of the file (SHA-256)", str(data.get("sha256", ""))),
        ("Checksum of the similarities (SHA-256)", checksum(found.similarity)),
        ("Analysed on", str(settings.get("date", _NOT_RECORDED))),
        ("Software", ", ".join(f"{name} {version}" for name, version in versions.items()) or _NOT_RECORDED),
        ("Random seed", _NOT_RECORDED if found.seed is None else str(found.seed)),
        ("Settings", "; ".join(chosen) or _NOT_RECORDED),
    ]
    return [(name, text) for name, text in rows if text]


def checksum(similarity: Similarity | SimilaritySet) -> str:
    """SHA-256 of values, weights and labels: the same for equal similarities, whatever the file."""
    digest = hashlib.sha256()
    for one in similarity if isinstance(similarity, SimilaritySet) else [similarity]:
        arrays: list[Any] = []
        parts: tuple[Any, Any] = (one.values if one.factors is None else one.factors, one.weights)
        for part in parts:
            if sparse.issparse(part):
                # The type of the indices depends on how the matrix was made.
                arrays += [part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64)]
            else:
                arrays.append(part)
        digest.update(fingerprint(*arrays, np.float64(one.absent_weight or 0.0)).encode())
        digest.update("\0".join(one.labels or ()).encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()


def _given(found: GivenEmbedding) -> str:
    return (
        f"This page shows {counted(found)} that were given without observed similarities. All similarities on it are "
        "predicted: sums over dimensions of the products of two items' loadings."
    )


def _fit(found: Discovery) -> str:
    n, held = found.n_components, found.held_out
    explained = found.metrics.get("explained_variance")
    in_sample = "" if explained is None else f"{percent(max(explained, 0.0))} of the variance in sample"
    if held is not None and not held.is_evidence:
        fitted = f" Fitted nevertheless, {_count(n, 'dimension')} {_word(n, 'explains', 'explain')} {in_sample}."
        return held.verdict() + (fitted if in_sample else "")
    items = f"{found.n_items:,} items{_in_systems(found)}"
    text = f"The similarities of {items} can be described by {_count(n, 'dimension')}"
    if held is not None:
        better = f"{percent(held.r2)} of the variance of held-out similarities"
        beside = f" ({in_sample})" if in_sample else ""
        return f"{text}, which {_word(n, 'explains', 'together explain')} {better}{beside}."
    if explained is None:
        return f"{text}. {found.held_out_words}."
    if explained <= 0:
        return f"{text}, but they predict them no better than the mean of all pairs. {found.held_out_words}."
    return f"{text}, which {_word(n, 'explains', 'together explain')} {in_sample}. {found.held_out_words}."


def _in_systems(found: Discovery) -> str:
    return "" if found.weights is None else f" in {_count(len(found.weights), 'system')}"


def _number(found: Discovery) -> str:
    selection = found.selection
    if selection is None:
        given = f"The number of dimensions, {found.n_components}, was given, not chosen from the data."
        return f"{given} {_penalty(found)}".rstrip()
    if len(selection.tried) == 1:
        return f"The number of dimensions, {selection.rank}, is {selection.choice()}."
    number = f"{selection.rank}{selection.resamples()}: {selection.choice()}"
    sentences = [f"Cross-validation chose the number of dimensions, {number}."]
    sentences += [selection.edge(), found.detected(), _penalty(found)]
    return " ".join(sentence for sentence in sentences if sentence)


def _penalty(found: Discovery) -> str:
    alpha = found.consensus.alpha
    if alpha == 0:
        return ""
    chosen = ", chosen by held-out pairs" if found.settings.get("alpha") == "auto" else ""
    return f"Fits had a penalty on the loadings (alpha = {alpha:.3g}{chosen})."


def _stability(found: Discovery) -> str:
    consensus = found.consensus
    low = low_values(consensus.reliability)
    runs = "1 fit" if consensus.n_runs == 1 else f"{consensus.n_runs} fits from different random starts"
    mean = "mean reliability of the dimensions" if found.n_components > 1 else "reliability of the dimension"
    text = f"Across {runs}, the {mean} is {consensus.mean_reliability:.2f} (1: identical in all fits)."
    if found.evidence_of_structure is False:
        return f"{text} This is no evidence of structure: fits to noise agree as well."
    if not low:
        return text + (f" None is below {LOW}." if found.n_components > 1 else "")
    if len(low) == found.n_components:
        return text + f" {'All are' if len(low) > 1 else 'It is'} below {LOW}: interpret with care."
    named = ", ".join(f"{k + 1} ({shown})" for k, shown in list(low.items())[:4])
    more = f" and {len(low) - 4} more" if len(low) > 4 else ""
    return text + f" Interpret with care: {_word(len(low), 'dimension')} {named}{more}."


def _resampled(sure: Bootstrap) -> str:
    """How often dimensions came back, and which ones did so in few resamples."""
    back = sure.came_back
    low, high = f"{back.min():.0%}", f"{back.max():.0%}"
    share = low if low == high else f"{low} to {high}"
    rare = [f"{k + 1} ({back[k]:.0%})" for k in back.argsort(kind="stable") if back[k] < _OFTEN]
    text = (
        f"In {sure.n_resamples} resampled {sure.resampled_words}, the dimensions came back "
        f"(r >= {sure.threshold:g}) in {share} of the resamples."
    )
    if not rare:
        return text
    more = f" and {len(rare) - 4} more" if len(rare) > 4 else ""
    return f"{text} Less often than in {_OFTEN:.0%}: {_word(len(rare), 'dimension')} {', '.join(rare[:4])}{more}."


def _count(number: int, what: str, many: str | None = None) -> str:
    return f"{number:,} {_word(number, what, many)}"


def _word(number: int, what: str, many: str | None = None) -> str:
    return what if number == 1 else many or f"{what}s"


def percent(share: float) -> str:
    """A share in percent, with more digits near 0 and 1."""
    return f"{share:.0%}" if 0.1 <= share <= 0.99 else f"{share:.1%}"


def _source(found: Discovery, data: Mapping[str, Any]) -> str:
    """The file, or how the similarities were made, and the number of items."""
    info: Any = found.similarity.info if isinstance(found.similarity, Similarity) else {}
    made = data.get("file") or info.get("file") or (f"from {info['source']}" if info.get("source") else "an array")
    systems = "" if found.weights is None else f" in {len(found.weights):,} systems"
    density = found.similarity.density
    pairs = "all pairs" if density == 1 else f"{percent(density)} of the pairs"
    return f"{made}: {found.n_items:,} items{systems}, {pairs} observed"


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 2 and value == list(range(value[0], value[-1] + 1)):
        return f"{value[0]} to {value[-1]}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
