"""combined_test: test hypotheses against both dimensions and similarities, with one p-value each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from simdims._parallel import root_seed
from simdims._progress import Callback
from simdims.inference.dimension import dimension_statistics, matched_dimensions, partial_statistics, resolved_matching
from simdims.inference.hypotheses import Items, Table, clean_embedding, clean_vectors, in_order_of
from simdims.inference.nuisance import check_observed, clean_nuisance, pair_statistics, permute_given, resampling
from simdims.inference.permutations import TIE, check_settings, n_defined, permute, pooled_ranks, stacked, warn_of_few
from simdims.inference.result import HypothesisTests, permutation_tests
from simdims.inference.rsa import check_similarity, describe_method, rsa_statistics
from simdims.metrics import explained_variance
from simdims.similarity import Similarity, as_similarity

# The level of either part is at least a fifth of the total.
SHARES = (0.2, 0.8)


def combined_test(
    S: Any,
    embedding: Any,
    hypotheses: Any,
    *,
    nuisance: Any = None,
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
    """Test properties against dimensions and similarities at once, with nearly the power of the better test.

    Both statistics are converted to permutation p-values. The statistic is the smaller of the two, each divided by
    twice the weight of its part, and is calibrated against its own permutation distribution (a weighted Tippett or
    min-P test). It is valid for any dependence between the parts.

    Permutations in which a hypothesis has no correlation with the similarities (see `rsa_test`) are excluded from both
    parts.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities, or a Discovery; see `rsa_test`.
    embedding : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus or fitted SRF
        W, or a result that contains it; see `dimension_test`. Rows are matched by name if S names its items too.
    hypotheses : array-like, Series, DataFrame of shape (n_items, n_hypotheses), or mapping of names to columns
        One value per item and property.
    nuisance : array-like, Series, DataFrame or mapping, optional
        Properties that are known to matter, which are partialled out; see `dimension_test`.
    method : {"pearson", "spearman"}, default="pearson"
        The correlation with the similarities; see `rsa_test`.
    weighting : {"fit", "equal"}, default="fit"
        The weights of the parts. "equal": 1/2 each. "fit": the weight of the dimensions is the share of the variance
        of S that W W^T explains, limited to the range from 0.2 to 0.8, because an embedding that explains little of S
        is less informative than S. The weights do not depend on the hypotheses, so the p-values remain valid.
    n_permutations, alternative, matching, alpha, random_state, n_jobs, progress
        As in `dimension_test`. With the same `random_state`, the parts equal the results of `dimension_test` and
        `rsa_test`, except for excluded permutations.

    Returns
    -------
    HypothesisTests
        `parts` contains both tests; the table adds their statistics and p-values, and which part decided.

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
    check_settings(n_permutations, alternative, alpha, n_jobs, matching=matching, method=method, weighting=weighting)
    similarity = as_similarity(S, copy=False)
    items = check_similarity(similarity, method)
    table, embedded = clean_embedding(embedding)
    table = Table(in_order_of(items, table, "embedding"), items.labels, table.columns)
    items = items if items.labels is not None else Items(items.number, embedded.labels, "embedding")
    cleaned = clean_vectors(hypotheses, items)
    share = 0.5 if weighting == "equal" else _share(similarity, table)
    matching, matched = resolved_matching(matching, cleaned, table, alternative, has_nuisance=nuisance is not None)
    known = clean_nuisance(nuisance, items)
    if nuisance is None:
        parts = dimension_statistics(table, cleaned, matching, alternative), rsa_statistics(similarity, cleaned, method)
        observed, null = permute(partial(stacked, parts), items.number, n_permutations, random_state, n_jobs, progress)
    else:
        seed = root_seed(random_state)
        given = resampling(cleaned, known, seed)
        table, of_dimensions = partial_statistics(table, given, alternative)
        both = partial(stacked, (of_dimensions, pair_statistics(similarity, known, method)))
        observed, null = permute_given(given, both, n_permutations, seed, n_jobs, progress)
        check_observed(observed[1], cleaned.names)
        cleaned = replace(cleaned, vectors=given.residuals)
    matched, correlation = known.describe(matched), known.describe(describe_method(method))
    # Both parts use the same permutations: those for which the correlation with the similarities is defined.
    null = np.where(np.isnan(null).any(axis=1, keepdims=True), np.nan, null)
    warn_of_few(null[:, 0], cleaned.names, alpha)
    p = np.stack([pooled_ranks(observed[part], null[:, part], alternative) for part in range(2)])
    weighted = p / np.array([2 * share, 2 * (1 - share)])[:, None, None]
    smaller = weighted.min(axis=0)
    dimension = matched_dimensions(table, cleaned, matching, alternative)
    names, tests = cleaned.names, {}
    for part, (name, how, own) in enumerate((("dimension", matched, dimension), ("rsa", correlation, None))):
        statistic, under = observed[part].copy(), null[:, part].copy()
        tests[name] = permutation_tests(
            name, names, statistic, under, alternative, alpha, how, own, p[part, 0], nuisance=known.names
        )
    smaller_p = np.count_nonzero(smaller <= smaller[0] * (1 + TIE), axis=0) / (1 + n_defined(smaller[1:]))
    weights = f"{matched}, weight {share:.2f}; {correlation}, weight {1 - share:.2f}"
    described = f"smaller of two weighted p-values: {weights}"
    deciders = ("both" if one == other else "dimension" if one < other else "rsa" for one, other in weighted[:, 0].T)
    others = {"parts": tests, "decided_by": tuple(deciders), "nuisance": known.names}
    return permutation_tests(
        "combined", names, smaller[0], smaller[1:], alternative, alpha, described, dimension, smaller_p, **others
    )


def _share(similarity: Similarity, table: Table) -> float:
    """The weight of the dimension test."""
    with np.errstate(over="ignore", invalid="ignore"):
        explained = explained_variance(similarity, table.values)
    # If the error of W W^T overflows, it explains nothing.
    return float(np.clip(explained, *SHARES)) if np.isfinite(explained) else SHARES[0]
