"""An embedding without observed similarities, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims import __version__
from simdims._parameters import ParameterError, plural, warn
from simdims.consensus import Consensus
from simdims.discovery.methods import SIMDIMS, describe_tests
from simdims.discovery.result import Discovery, check_resampled
from simdims.plots._sources import loadings_of
from simdims.similarity import Similarity

if TYPE_CHECKING:
    from simdims.inference import HypothesisTests
    from simdims.uncertainty import Bootstrap

#: Negative loadings up to this share of the largest one are rounding errors.
_ROUNDING = 1e-3


class GivenEmbedding(Discovery):
    """An embedding that `discover` did not fit. Its similarities are the predicted ones, W W^T."""

    def methods_text(self, tests: HypothesisTests | None = None, uncertainty: Bootstrap | None = None) -> str:
        """The Methods paragraph, with what simdims did."""
        if uncertainty is not None:
            check_resampled(self, uncertainty)
        tested = [] if tests is None else describe_tests(tests)
        given = f"We inspected a given embedding of {counted(self)} with simdims {__version__} [simdims]."
        return f"{' '.join([given, *tested])}\n\n{SIMDIMS.format(version=__version__)}"


def given_embedding(result: Any, labels: Sequence[str] | None = None) -> GivenEmbedding:
    """An embedding as an array, a DataFrame, a Consensus or a fitted SRF, for the page."""
    shown = loadings_of(result, labels, name="found")
    if shown.W.shape[0] == shown.W.shape[1] and np.array_equal(shown.W, shown.W.T):
        got = f"a symmetric table of shape {shown.W.shape}, which are similarities"
        raise ParameterError("found", "must be an embedding, one row per item", got, "pass them to {discover()}")
    W = _non_negative(shown.W)
    n = W.shape[1]
    consensus = Consensus(
        embeddings=W[None],
        selected=0,
        reliability=np.full(n, np.nan) if shown.reliability is None else shown.reliability,
        agreement=np.ones((1, 1)),
        objectives=np.full(1, np.nan),
        converged=np.ones(1, dtype=bool),
        n_iter=np.zeros(1, dtype=int),
        seeds=np.zeros(1, dtype=np.int64),
        n_splits=0,
        labels=shown.labels,
    )
    found = GivenEmbedding(Similarity.from_factors(W, shown.labels), None, consensus, metrics={}, settings={})
    return found if shown.names is None else found.rename(dict(enumerate(shown.names, start=1)))  # type: ignore[return-value]


def counted(found: Discovery) -> str:
    """The numbers of dimensions and items in words."""
    n = found.n_components
    return f"{n} {plural('dimension', n)} of {found.n_items:,} {plural('item', found.n_items)}"


def _non_negative(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loadings whose negative values, if they are rounding errors, are 0."""
    least, largest = float(W.min()), float(W.max())
    if least >= 0:
        return W
    if least < -_ROUNDING * largest:
        remedy = "principal components and other embeddings with signs cannot be shown"
        raise ParameterError("found", "must have non-negative loadings", f"{least:.3g}", remedy)
    n = int(np.count_nonzero(W < 0))
    warn(f"{n:,} of {W.size:,} loadings are slightly negative (down to {least:.2g}) and are shown as 0.")
    return np.maximum(W, 0.0)
