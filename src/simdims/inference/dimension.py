"""dimension_test: each hypothesis against the dimension that matches it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from simdims._parallel import root_seed
from simdims._parameters import ParameterError, warn
from simdims._progress import Callback
from simdims.inference import collinearity
from simdims.inference.hypotheses import Hypotheses, Table, clean_embedding, clean_vectors
from simdims.inference.matching import aligned_correlations, match, standardise
from simdims.inference.nuisance import Resampling, clean_nuisance, dimension_correlations, permute_given, resampling
from simdims.inference.permutations import Statistics, check_settings, permute
from simdims.inference.result import HypothesisTests, permutation_tests


def dimension_test(
    embedding: Any,
    hypotheses: Any,
    *,
    nuisance: Any = None,
    n_permutations: int = 1000,
    alternative: str = "greater",
    matching: str = "auto",
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> HypothesisTests:
    """Test which properties of the items the dimensions of an embedding encode.

    Each hypothesis is matched with the dimension that correlates best with it. To avoid circularity, the matching for
    an item uses only the other items (leave-one-out); the statistic is the correlation of the hypothesis with the
    resulting composite column. Its null distribution comes from permuting the items of all hypotheses together and
    matching again.

    Parameters
    ----------
    embedding : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus or fitted SRF
        W, or a result that contains it. The index and the columns of a DataFrame name items and dimensions.
    hypotheses : array-like, Series, DataFrame of shape (n_items, n_hypotheses), or mapping of names to columns
        One value per item and property: 0 and 1 for a category, or numbers. Rows are matched by name if the embedding
        also names its items.
    nuisance : array-like, Series, DataFrame or mapping, optional
        Properties that are known to matter, in the form of `hypotheses`. The test is then whether a hypothesis is
        related to the dimensions beyond them: they are partialled out of both sides, and hypotheses are resampled
        given them (see Notes). Matching is separate.
    n_permutations : int, default=1000
        Number of permutations B. The smallest possible p-value is 1 / (1 + B).
    alternative : {"greater", "two-sided"}, default="greater"
        "greater": high loadings correspond to large values of the property; dimensions are matched on correlations.
        "two-sided": the relation may also be negative; dimensions are matched on absolute correlations.
    matching : {"auto", "joint", "separate"}, default="auto"
        "joint": one-to-one assignment of hypotheses to dimensions (Hungarian algorithm), as in the paper; there must be
        at least as many dimensions as hypotheses. "separate": each hypothesis takes its best dimension, which may be
        shared. "auto": joint, unless a hypothesis shares at least a quarter of its variance with the others or there
        are more hypotheses than dimensions; `method` of the result reports the choice and the reason.
    alpha : float, default=0.05
        False discovery rate at which an adjusted p-value is significant.
    random_state : int, RandomState or None, default=None
        Seed of the permutations; None draws one.
    n_jobs : int or None, default=None
        Number of processes; the result does not depend on it.
    progress : bool, function or None, default=None
        Whether to show a progress bar; None shows one in terminals and notebooks. A function is called with a
        `Progress` after each block of permutations.

    Returns
    -------
    HypothesisTests

    Warns
    -----
    UserWarning
        If hypotheses correlate 0.95 or more (in absolute value if two-sided); if one is a linear combination of
        others, unless they are all levels of one category; and, with matching="joint", if the others explain at least
        a quarter of the variance of a hypothesis.

    Notes
    -----
    With matching="separate", each p-value is valid regardless of the other hypotheses. With "joint" it is exact if no
    hypothesis is related to the embedding. Otherwise it is conservative for a hypothesis that shares no variance with
    the related ones, because they take good dimensions, and too small for one that shares variance with them but is
    itself unrelated to the embedding. The choice of "auto" depends only on the hypotheses, which permutations do not
    change, so the p-values remain valid.

    With `nuisance`, the null hypothesis is that a property is related to the dimensions only through the nuisance. A
    binary property is permuted with the odds of a logistic regression on the nuisance (a conditional permutation
    test); for other properties, the residuals of a linear regression are permuted. The test is valid if that
    regression describes how the property depends on the nuisance, regardless of what the dimensions depend on.

    A constant dimension or composite column has correlation 0 with all hypotheses.

    References
    ----------
    SRF, Methods, "Statistical power comparison". Berrett, T. B., et al. (2020). The conditional permutation test for
    independence while controlling for confounders. JRSS B 82, 175-197.

    Examples
    --------
    >>> from simdims import simulate
    >>> from simdims.inference import dimension_test
    >>> W = simulate.dirichlet(40, 3, random_state=0)
    >>> tests = dimension_test(W, W[:, [2, 0]] > 0.5, random_state=0)
    >>> tests
    2 of 2 properties correlate significantly with their assigned dimension.
    ...
    >>> tests.dimension
    ('dimension3', 'dimension1')
    """
    check_settings(n_permutations, alternative, alpha, n_jobs, matching=matching)
    table, items = clean_embedding(embedding)
    cleaned = clean_vectors(hypotheses, items)
    matching, method = resolved_matching(matching, cleaned, table, alternative, has_nuisance=nuisance is not None)
    known = clean_nuisance(nuisance, items)
    if nuisance is None:
        statistics = dimension_statistics(table, cleaned, matching, alternative)
        observed, null = permute(statistics, items.number, n_permutations, random_state, n_jobs, progress)
    else:
        seed = root_seed(random_state)
        given = resampling(cleaned, known, seed)
        table, statistics = partial_statistics(table, given, alternative)
        observed, null = permute_given(given, statistics, n_permutations, seed, n_jobs, progress)
        cleaned = replace(cleaned, vectors=given.residuals)
    names, matched = cleaned.names, matched_dimensions(table, cleaned, matching, alternative)
    return permutation_tests(
        "dimension", names, observed, null, alternative, alpha, known.describe(method), matched, nuisance=known.names
    )


def dimension_statistics(table: Table, hypotheses: Hypotheses, matching: str, alternative: str) -> Statistics:
    """The function from permutations to correlations with the matched columns."""
    return partial(
        aligned_correlations,
        standardise(hypotheses.vectors),
        standardise(table.values),
        table.values,
        joint=matching == "joint",
        absolute=alternative == "two-sided",
    )


def partial_statistics(table: Table, given: Resampling, alternative: str) -> tuple[Table, Statistics]:
    """The embedding with the nuisance partialled out, and the function from resampled hypotheses to correlations."""
    left = given.without_nuisance(table.values)
    lengths = np.maximum(np.linalg.norm(table.values, axis=0), 1e-300)
    if not (np.linalg.norm(left, axis=0) > 1e-7 * lengths).any():
        raise ParameterError("embedding", "must vary beyond the {nuisance}", "none of its dimensions does")
    table = replace(table, values=left)
    return table, partial(dimension_correlations, given, table.values, alternative == "two-sided")


def matched_dimensions(table: Table, hypotheses: Hypotheses, matching: str, alternative: str) -> tuple[str, ...]:
    """The name of the dimension matched with each hypothesis over all items."""
    C = standardise(hypotheses.vectors).values.T @ standardise(table.values).values
    matched = match(C, joint=matching == "joint", absolute=alternative == "two-sided")
    return tuple(table.columns[place] for place in matched)


def resolved_matching(
    matching: str, hypotheses: Hypotheses, table: Table, alternative: str, *, has_nuisance: bool = False
) -> tuple[str, str]:
    """Choose "joint" or "separate" matching, warn about the hypotheses and describe the method."""
    if has_nuisance:  # each hypothesis is resampled separately
        if matching == "joint":
            raise ParameterError("matching", "must be 'auto' or 'separate' with {nuisance}", "'joint'")
        matching = "separate"
    absolute = alternative == "two-sided"
    n_hypotheses, n_components = len(hypotheses.names), table.values.shape[1]
    if matching == "joint" and n_hypotheses > n_components:
        rule = f"must not outnumber the {n_components} dimensions with {{matching=joint}}"
        raise ParameterError("hypotheses", rule, f"{n_hypotheses}", "use {matching=separate}")
    Z = standardise(hypotheses.vectors).values
    collinearity.warn_of_duplicates(hypotheses, Z.T @ Z, "property", absolute=absolute)
    collinearity.warn_of_dependence(hypotheses, absolute=absolute)
    reason = None
    if matching != "separate" and n_hypotheses > n_components:
        reason = f"there are {n_hypotheses} hypotheses and {n_components} dimensions"
    elif matching != "separate":
        shares = collinearity.shared_variance(hypotheses.vectors, absolute=absolute)
        if shares.max() >= collinearity.SHARED:
            most = hypotheses.names[int(shares.argmax())]
            reason = f"the other hypotheses explain {shares.max():.0%} of the variance of {most!r}"
    if matching == "joint" and reason is not None:
        why = "hypotheses that share variance compete for dimensions in a way that permutations do not reproduce"
        found = f"Joint matching is not exact here: {reason}, and {why}."
        warn(found, "Use {matching=separate} or {matching=auto}.")
    if matching == "joint" or (matching == "auto" and reason is None):
        return "joint", "correlation with the leave-one-out matched dimension (joint assignment)"
    because = "" if reason is None else f", because {reason}"
    return "separate", f"correlation with the leave-one-out matched dimension (separate matching{because})"
