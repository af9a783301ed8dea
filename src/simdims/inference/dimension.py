"""dimension_test: each hypothesis against the dimension that matches it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from simdims._parameters import shown
from simdims._progress import Callback
from simdims.inference.hypotheses import Hypotheses, Table, clean_embedding, clean_vectors
from simdims.inference.matching import aligned_correlations, match, standardise
from simdims.inference.permutations import Statistics, check_settings, permute, pvalues
from simdims.inference.result import HypothesisTests

MATCHINGS = ("joint", "separate")


def dimension_test(
    embedding: Any,
    hypotheses: Any,
    *,
    n_permutations: int = 1000,
    alternative: str = "greater",
    matching: str = "joint",
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> HypothesisTests:
    """Test whether properties of the items are carried by dimensions of an embedding.

    Every hypothesis gets the dimension that matches it best, for each item from the other items only, so that no item
    takes part in choosing the dimension it is tested on. The statistic is the correlation of the hypothesis with the
    column so aligned. Its null distribution comes from permuting the items of all hypotheses together and matching
    again.

    Parameters
    ----------
    embedding : array-like or DataFrame of shape (n_items, n_components)
        W. The index and the columns of a DataFrame name items and dimensions.
    hypotheses : array-like, Series, DataFrame of shape (n_items, n_hypotheses), or mapping of names to columns
        A value of each property for each item: 0 and 1 for a category, numbers for a degree. Where both name items,
        rows are matched by name.
    n_permutations : int, default=1000
        Number of permutations B. The smallest possible p-value is 1 / (1 + B).
    alternative : {"greater", "two-sided"}, default="greater"
        "greater": large loadings go with large values of the property; dimensions are matched on correlations.
        "two-sided": or with small values; they are matched on absolute correlations.
    matching : {"joint", "separate"}, default="joint"
        "joint": one dimension a hypothesis, chosen together (Hungarian algorithm), as in the paper; there must be at
        least as many dimensions as hypotheses. "separate": each hypothesis has its own best dimension, whatever the
        others have.
    alpha : float, default=0.05
        False discovery rate at which an adjusted p-value is significant.
    random_state : int, RandomState or None, default=None
        Seed of the permutations; None is fresh entropy.
    n_jobs : int or None, default=None
        How many processes share the permutations; the result does not depend on it.
    progress : bool, function or None, default=None
        Whether to show a progress bar; None shows one where a person is likely to be looking. A function is called with
        a `Progress` after every block of permutations.

    Returns
    -------
    HypothesisTests

    Notes
    -----
    A p-value with matching="separate" is valid for its hypothesis whatever the others are. With "joint" it is valid if
    none of the hypotheses has to do with the embedding. If some do and others do not, it is not exact: in simulations
    it was mostly conservative, because the dimensions were taken, but too small for a hypothesis that is unrelated to
    the embedding and is itself a part of hypotheses that are related to it (see the page on inference).

    A dimension or an aligned column that is constant has correlation 0 with everything.

    References
    ----------
    SRF, Methods, "Statistical power comparison".

    Examples
    --------
    >>> from simdims import simulate
    >>> from simdims.inference import dimension_test
    >>> W = simulate.dirichlet(40, 3, random_state=0)
    >>> tests = dimension_test(W, W[:, [2, 0]] > 0.5, random_state=0)
    >>> tests
    2 of 2 properties are carried by a dimension of their own.
    ...
    >>> tests.dimension
    ('dimension3', 'dimension1')
    """
    check_settings(n_permutations, alternative, alpha, n_jobs)
    check_matching(matching)
    table, items = clean_embedding(embedding)
    cleaned = clean_vectors(hypotheses, items)
    check_enough_dimensions(cleaned, table, matching)
    statistics = dimension_statistics(table, cleaned, matching, alternative)
    observed, null = permute(
        statistics, items.number, n_permutations, random_state=random_state, n_jobs=n_jobs, progress=progress
    )
    return HypothesisTests(
        test="dimension",
        hypotheses=cleaned.names,
        statistic=observed,
        pvalue=pvalues(observed, null, alternative),
        dimension=matched_dimensions(table, cleaned, matching, alternative),
        null_distribution=null,
        alternative=alternative,
        alpha=alpha,
        method=describe_matching(matching),
    )


def dimension_statistics(table: Table, hypotheses: Hypotheses, matching: str, alternative: str) -> Statistics:
    """The function from permutations to correlations with the aligned columns."""
    assert hypotheses.vectors is not None
    return partial(
        aligned_correlations,
        standardise(hypotheses.vectors),
        standardise(table.values),
        table.values,
        joint=matching == "joint",
        absolute=alternative == "two-sided",
    )


def matched_dimensions(table: Table, hypotheses: Hypotheses, matching: str, alternative: str) -> tuple[str, ...]:
    """The name of the dimension that all items together give each hypothesis."""
    assert hypotheses.vectors is not None
    assert table.columns is not None
    C = standardise(hypotheses.vectors).values.T @ standardise(table.values).values
    matched = match(C, joint=matching == "joint", absolute=alternative == "two-sided")
    return tuple(table.columns[place] for place in matched)


def describe_matching(matching: str) -> str:
    """The method in a result's words."""
    return f"Leave-one-out matching with dimensions ({matching})"


def check_matching(matching: str) -> None:
    """Refuse an unknown matching."""
    if not isinstance(matching, str) or matching not in MATCHINGS:
        raise ValueError(f'matching must be "joint" or "separate", got {shown(matching)}.')


def check_enough_dimensions(hypotheses: Hypotheses, table: Table, matching: str) -> None:
    """Refuse to give more hypotheses than dimensions a dimension of their own."""
    n_components = table.values.shape[1]
    if matching == "joint" and len(hypotheses.names) > n_components:
        raise ValueError(
            f'hypotheses must be at most as many as the {n_components} dimensions for matching="joint", which gives '
            f'each a dimension of its own, got {len(hypotheses.names)}: pass matching="separate".'
        )
