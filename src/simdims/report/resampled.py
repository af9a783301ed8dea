"""The page's data on resamples of a result, and on its comparison with other embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, ParameterTypeError, shown
from simdims.discovery.result import Discovery
from simdims.inference import EmbeddingComparison
from simdims.plots._sources import Loadings, given_names
from simdims.report.data import rounded
from simdims.uncertainty.intervals import FEWEST

if TYPE_CHECKING:
    from simdims.uncertainty import Bootstrap

#: Number of top items that describe a dimension of another embedding.
_N_ITEMS = 3


def uncertainty_facts(found: Discovery, sure: Bootstrap | None, tops: list[NDArray[np.intp]]) -> dict[str, Any] | None:
    """How often each dimension came back, and intervals of its share and of its top items; `sure` has been checked."""
    if sure is None:
        return None
    shares, loadings = sure.interval("shares"), sure.interval("loadings")
    dimensions = [
        {
            "came_back": float(sure.came_back[k]),
            "words": sure.words(k),
            "share": rounded(shares[:, k]),
            "low": rounded(loadings[0, top, k]),
            "high": rounded(loadings[1, top, k]),
            "at_zero": sure.at_zero[top, k].tolist(),
        }
        for k, top in enumerate(tops)
    ]
    said = (
        f"Came back: the share of {sure.n_resamples} resampled {sure.resampled_words} in which a dimension correlates "
        f"{sure.threshold:g} or more with its match. "
    )
    without = int(np.isnan(shares[0]).sum())
    if without < len(dimensions):
        said += "Lines on bars are 95% intervals; dashed ones are of loadings at zero and not calibrated. "
    if without:
        whose, have = ("dimension", "has") if without == 1 else (f"{without} dimensions", "have")
        said += f"The {whose} that came back in fewer than {FEWEST} resamples {have} no intervals."
    said = said.strip()
    return {"said": said, "dimensions": dimensions}


def comparison_facts(
    found: Discovery, comparison: EmbeddingComparison | Mapping[str, EmbeddingComparison] | None
) -> list[dict[str, Any]]:
    """Each comparison from the side of this result: shared pairs by correlation, and unmatched dimensions."""
    if comparison is None:
        return []
    if isinstance(comparison, EmbeddingComparison):
        comparison = {"the other embedding": comparison}
    if not isinstance(comparison, Mapping):
        raise ParameterTypeError("comparison", "must be what compare_embeddings returned", shown(comparison))
    return [_compared(found, str(name), one) for name, one in comparison.items()]


def _compared(found: Discovery, name: str, compared: Any) -> dict[str, Any]:
    if not isinstance(compared, EmbeddingComparison):
        raise ParameterTypeError("comparison", "must be what compare_embeddings returned", shown(compared))
    own = _own_side(found, compared)
    other = 1 - own
    W, dimensions = ((compared.embedding1, compared.dimensions1), (compared.embedding2, compared.dimensions2))[other]
    loadings = Loadings(W, compared.labels, given_names(dimensions))
    texts = [loadings.describe(k, _N_ITEMS) for k in range(W.shape[1])]
    shared = compared.is_shared
    pairs = compared.pairs[shared]
    figures = np.stack([compared.correlation, compared.pvalue, compared.pvalue_adjusted], axis=1)[shared]
    n = len(pairs)
    return {
        "name": name,
        "said": f"{n or 'None'} of the {found.n_components} dimensions here and the {len(texts)} of {name} "
        f"{'is' if n == 1 else 'are'} shared ({len(compared.embedding1):,} items, "
        f"{len(compared.null_distribution):,} permutations, false discovery rate {compared.alpha:g}).",
        "explained": _explained(compared, own, name),
        "shared": [
            {"own": int(pair[own]), "other": texts[pair[other]], **dict(zip(("r", "p", "adjusted"), row, strict=True))}
            for pair, row in zip(pairs, map(rounded, figures), strict=True)
        ],
        "only_own": np.setdiff1d(np.arange(found.n_components), pairs[:, own]).tolist(),
        "only_other": [text for k, text in enumerate(texts) if k not in pairs[:, other]],
    }


def _explained(compared: EmbeddingComparison, own: int, name: str) -> list[str]:
    """How much of each side's similarities the dimensions explain, as text."""
    if compared.explained is None:
        return []
    sides = {f"S{own + 1}": "the similarities here", f"S{2 - own}": f"the similarities behind {name}"}
    return [
        f"Of the variance of {words}, their own dimensions explain {row['all']:.0%}, the shared ones "
        f"{row['shared']:.0%}, and the counterparts of these {row['counterparts']:.0%}."
        for side, words in sides.items()
        if side in compared.explained.index
        for row in [compared.explained.loc[side]]
    ]


def _own_side(found: Discovery, compared: EmbeddingComparison) -> int:
    """Which of the two embeddings is from this result."""
    W = found.embedding
    if compared.labels is not None and found.labels is not None:
        place = {label: i for i, label in enumerate(found.labels)}
        rows = [place[label] for label in compared.labels if label in place]
        W = W[rows]
    for side, own in enumerate((compared.embedding1, compared.embedding2)):
        if own.shape == W.shape and np.allclose(own, W):
            return side
    rule = "must be of this result and another embedding"
    got = f"one of {' and '.join(str(len(one)) for one in (compared.dimensions1, compared.dimensions2))} dimensions"
    raise ParameterError("comparison", rule, got, "pass this result to {compare_embeddings()}")
