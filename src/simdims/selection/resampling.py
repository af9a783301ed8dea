"""How much the choice of a rank depends on the sample of items: the choice is repeated with items resampled.

No fit is repeated. The errors of all ranks are sums over pairs, and the contribution of each item to them is known.
Resampling items changes the difference of two errors by the sum of the items' contributions, each times the change in
how often the item is drawn. A pair contributes to two items, which makes that sum vary too much; it is scaled to the
standard error of the difference (`difference` in result.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from simdims.selection.result import Rule, Score, choose, contributions, difference

_N_RESAMPLES = 1000

#: Counts of items drawn at a time.
_CHUNK = 2**22


class Resampled(NamedTuple):
    """The ranks chosen with items resampled, and how often.

    Attributes
    ----------
    ranks : tuple of int
        The ranks chosen in at least one resample, ascending.
    frequencies : tuple of float
        The share of the resamples in which each was chosen.
    n_resamples : int
    """

    ranks: tuple[int, ...]
    frequencies: tuple[float, ...]
    n_resamples: int

    def interval(self, share: float = 0.9) -> tuple[int, int]:
        """The range of ranks after excluding the lowest and the highest (1 - share) / 2 of the resamples."""
        up_to, tail, rounding = np.cumsum(self.frequencies), (1 - share) / 2, 1e-9
        low, high = np.argmax(up_to > tail + rounding), np.argmax(up_to >= 1 - tail - rounding)
        return self.ranks[low], self.ranks[high]

    def words(self, share: float = 0.9) -> str:
        """The interval in words: "90% of resamples: 8 to 11"."""
        low, high = self.interval(share)
        return f"{share:.0%} of resamples: {low}" + ("" if low == high else f" to {high}")


def resample_choice(scores: Mapping[int, Score], rule: Rule, rng: np.random.Generator) -> Resampled:
    """The ranks that `choose` selects with the items resampled."""
    protocol = rule.protocol
    ranks = np.array(sorted(scores))
    base = int(np.flatnonzero(ranks == choose(scores, rule)[0])[0])
    errors = np.array([scores[rank].errors(protocol).mean() for rank in ranks])
    of_gaps = [[difference(scores[one], scores[other], protocol)[1] for other in ranks] for one in ranks]
    standard_errors = np.array(of_gaps)
    parts = np.array([contributions(scores[rank], scores[ranks[base]], protocol)[1] for rank in ranks])
    size = np.sqrt(np.sum(parts**2, axis=1))
    parts *= np.divide(standard_errors[:, base], size, out=np.zeros(len(ranks)), where=size > 0)[:, None]
    chosen = np.zeros(len(ranks), dtype=np.int64)
    for counts in _draw_counts(parts.shape[1], rng):
        drawn = errors + (counts - 1.0) @ parts.T
        places = rule.choose(ranks, drawn, standard_errors[drawn.argmin(axis=1)])
        chosen += np.bincount(places, minlength=len(ranks))
    found = np.flatnonzero(chosen)
    shares = tuple(float(count) / _N_RESAMPLES for count in chosen[found])
    return Resampled(tuple(int(rank) for rank in ranks[found]), shares, _N_RESAMPLES)


def _draw_counts(n_items: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each item is drawn, one row per resample."""
    left = _N_RESAMPLES
    while left:
        n_rows = min(left, max(1, _CHUNK // n_items))
        yield rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=n_rows)
        left -= n_rows
