"""combined_test: each hypothesis against its dimension and against the similarities, in one p-value."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import shown
from simdims._progress import Callback
from simdims.inference.dimension import (
    check_matching,
    dimension_statistics,
    matched_dimensions,
    resolved_matching,
)
from simdims.inference.hypotheses import Items, Table, clean_embedding, clean_vectors, in_order_of
from simdims.inference.permutations import (
    TIE,
    Statistics,
    check_settings,
    n_defined,
    permute,
    pooled_ranks,
    warn_of_few,
)
from simdims.inference.result import HypothesisTests
from simdims.inference.rsa import check_method, check_similarity, describe_method, rsa_statistics
from simdims.metrics import explained_variance
from simdims.similarity import Similarity, as_similarity

WEIGHTINGS = ("fit", "equal")
# Neither part is ever silenced: a fifth of the level is left to it.
SHARES = (0.2, 0.8)


def combined_test(
    S: Any,
    embedding: Any,
    hypotheses: Any,
    *,
    method: str = "pearson",
    n_permutations: int = 1000,
    alternative: str = "greater",
    matching: str = "auto",
    weighting: str = "fit",
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> HypothesisTests:
    """Test properties against dimensions and against similarities at once, near the better of the two in power.

    Both statistics are converted to permutation p-values; the statistic is the smaller of the two, each divided by
    twice its part's weight, and is calibrated against its own permutation distribution (a weighted Tippett or min-P
    test). It is valid whatever the dependence between the two.

    Permutations in which a hypothesis has no correlation with the similarities (see `rsa_test`) are left out of both
    parts.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities, or a Discovery, which holds them; see `rsa_test`.
    embedding : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus or fitted SRF
        W, or what holds it; see `dimension_test`. Where S and it name items, rows are matched by name.
    hypotheses : array-like, Series, DataFrame of shape (n_items, n_hypotheses), or mapping of names to columns
        A value of each property for each item.
    method : {"pearson", "spearman"}, default="pearson"
        The correlation with the similarities; see `rsa_test`.
    n_permutations : int, default=1000
        Number of permutations B.
    alternative : {"greater", "two-sided"}, default="greater"
        The alternative of both parts.
    matching : {"auto", "joint", "separate"}, default="auto"
        How dimensions are matched; see `dimension_test`.
    weighting : {"fit", "equal"}, default="fit"
        How much each part may say. "equal": 1/2 each. "fit": the dimensions have as weight the share of the variance of
        S that W W^T explains, held between 0.2 and 0.8, and the similarities the rest: where the embedding leaves
        most of S unexplained, S itself is the better witness. The weights do not look at the hypotheses, so that
        they cannot spoil the p-values.
    alpha : float, default=0.05
        False discovery rate at which an adjusted p-value is significant.
    random_state : int, RandomState or None, default=None
        Seed of the permutations; None is fresh entropy. The parts are what `dimension_test` and `rsa_test` give with
        the same one, but for permutations that are left out.
    n_jobs : int or None, default=None
        How many processes share the permutations; the result does not depend on it.
    progress : bool, function or None, default=None
        Whether to show a progress bar; None shows one where a person is likely to be looking. A function is called with
        a `Progress` after every block of permutations.

    Returns
    -------
    HypothesisTests
        Its `parts` hold both tests, and its table their statistics and p-values, and which one decided.

    Examples
    --------
    >>> from simdims import SRF, simulate
    >>> from simdims.inference import combined_test
    >>> X = simulate.factorial([2, 2, 2])
    >>> S = simulate.add_noise(X @ X.T, 0.5, random_state=0)
    >>> W = SRF(6, random_state=0).fit(S).embedding_
    >>> tests = combined_test(S, W, X[:, :2], n_permutations=200, random_state=0)
    >>> list(tests.table.columns[-5:])
    ['statistic_dimension', 'pvalue_dimension', 'statistic_rsa', 'pvalue_rsa', 'decided_by']
    """
    check_settings(n_permutations, alternative, alpha, n_jobs)
    check_method(method)
    check_matching(matching)
    check_weighting(weighting)
    similarity = as_similarity(S, copy=False)
    items = check_similarity(similarity, method)
    table, embedded = clean_embedding(embedding)
    table = Table(in_order_of(items, table, "embedding"), items.labels, table.columns)
    items = items if items.labels is not None else Items(items.number, embedded.labels, "embedding")
    cleaned = clean_vectors(hypotheses, items)
    matching, matched = resolved_matching(matching, cleaned, table, alternative)
    parts = (
        dimension_statistics(table, cleaned, matching, alternative),
        rsa_statistics(similarity, cleaned, method),
    )
    observed, null = permute(
        partial(_both, parts),
        items.number,
        n_permutations,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )
    # Both parts are compared with the same permutations: those in which the similarities have a correlation.
    null = np.where(np.isnan(null).any(axis=1, keepdims=True), np.nan, null)
    warn_of_few(null[:, 0], cleaned.names, alpha)
    p = np.stack([pooled_ranks(observed[part], null[:, part], alternative) for part in range(2)])
    share = 0.5 if weighting == "equal" else _share(similarity, table)
    weighted = p / np.array([2 * share, 2 * (1 - share)])[:, None, None]
    smaller = weighted.min(axis=0)
    by_rsa = describe_method(method)
    dimension = matched_dimensions(table, cleaned, matching, alternative)
    tests = partial(HypothesisTests, hypotheses=cleaned.names, alternative=alternative, alpha=alpha)
    both = {
        name: tests(
            test=name,
            statistic=observed[part].copy(),
            pvalue=p[part, 0],
            null_distribution=null[:, part].copy(),
            dimension=dimension if name == "dimension" else (None,) * len(cleaned.names),
            method=how,
        )
        for part, (name, how) in enumerate((("dimension", matched), ("rsa", by_rsa)))
    }
    return tests(
        test="combined",
        statistic=smaller[0],
        pvalue=np.count_nonzero(smaller <= smaller[0] * (1 + TIE), axis=0) / (1 + n_defined(smaller[1:])),
        null_distribution=smaller[1:],
        dimension=dimension,
        method=f"smaller of two weighted p-values: {matched}, weight {share:.2f}; {by_rsa}, weight {1 - share:.2f}",
        parts=both,
        decided_by=tuple(map(_decider, weighted[0, 0] - weighted[1, 0])),
    )


def _decider(difference: float) -> str:
    """The part whose weighted p-value is smaller, from the difference of both."""
    if difference == 0:
        return "both"
    return "dimension" if difference < 0 else "rsa"


def check_weighting(weighting: str) -> None:
    """Refuse an unknown weighting."""
    if not isinstance(weighting, str) or weighting not in WEIGHTINGS:
        raise ValueError(f'weighting must be "fit" or "equal", got {shown(weighting)}.')


def _share(similarity: Similarity, table: Table) -> float:
    """The weight of the dimensions."""
    with np.errstate(over="ignore", invalid="ignore"):
        explained = explained_variance(similarity, table.values)
    # Where W W^T is so far from S that its error overflows, it explains nothing.
    return float(np.clip(explained, *SHARES)) if np.isfinite(explained) else SHARES[0]


def _both(parts: tuple[Statistics, Statistics], permutations: NDArray[np.integer]) -> NDArray[np.float64]:
    """The statistics of both parts: an array of shape (n_permutations, 2, n_hypotheses)."""
    return np.stack([statistics(permutations) for statistics in parts], axis=1)
