"""rsa_test: each hypothesis, as a model matrix, against the similarities (the Mantel test)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from simdims._memory import require
from simdims._parameters import shown
from simdims._progress import Callback
from simdims.inference.collinearity import model_correlations, warn_of_duplicates
from simdims.inference.hypotheses import FEWEST_ITEMS, Hypotheses, Items, clean_hypotheses
from simdims.inference.mantel import (
    WAYS_OUT,
    as_forms,
    as_model,
    as_pairs,
    form_correlations,
    form_spreads,
    near_one,
    pair_correlations,
    pair_spreads,
)
from simdims.inference.permutations import Statistics, check_settings, permute, pvalues, warn_of_few
from simdims.inference.result import HypothesisTests
from simdims.similarity import Similarity, as_similarity

METHODS = ("pearson", "spearman")


def rsa_test(
    S: Any,
    hypotheses: Any,
    *,
    method: str = "pearson",
    n_permutations: int = 1000,
    alternative: str = "greater",
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> HypothesisTests:
    """Test whether properties of the items are reflected in their similarities (representational similarity analysis).

    The Mantel test: the similarities are correlated, over the observed pairs of two different items, with the model
    matrix of each hypothesis, x x^T for a property x, and the null distribution comes from permuting the items of the
    hypotheses, rows and columns together.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities, or a Discovery, which holds them. Weights, those of absent pairs too, count in the sums of
        Pearson's correlation.
    hypotheses : array-like, Series or DataFrame of shape (n_items, n_hypotheses), or list, stack or mapping of matrices
        A value of each property for each item, or for each hypothesis a symmetric model matrix, larger for pairs that
        it takes to be more similar, NaN where it says nothing. Where both name items, they are matched by name.
    method : {"pearson", "spearman"}, default="pearson"
        The correlation. Spearman's needs the list of all pairs, and no weights.
    n_permutations : int, default=1000
        Number of permutations B. The smallest possible p-value is 1 / (1 + B).
    alternative : {"greater", "two-sided"}, default="greater"
        Whether only positive correlations speak for a hypothesis.
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
        Its `dimension` is None for every hypothesis.

    Warns
    -----
    UserWarning
        If few permutations can be compared with (see Notes), or if the models of two hypotheses correlate 0.95 or more.

    Notes
    -----
    Missing pairs are left out on both sides and stay where they are: under every permutation the observed similarities
    are correlated with what the permuted model says about the same pairs.

    Where many pairs are missing, a permuted model may have the same value for every observed pair: a property of few
    items, no two of which have an observed pair. It then has no correlation, and the permutation is left out:
    p = (1 + m) / (1 + M) for M permutations that have a correlation, of which m are at least as large as the observed
    one. This is exact, given that the model varies as it was observed, which is required. `null_distribution` is NaN
    for the others; where few are left, a warning says how many.

    References
    ----------
    SRF, Methods, "Statistical power comparison". Mantel, N. (1967). Cancer Research 27, 209-220.

    Examples
    --------
    >>> from simdims import simulate
    >>> from simdims.inference import rsa_test
    >>> W = simulate.dirichlet(40, 3, random_state=0)
    >>> tests = rsa_test(W @ W.T, {"first": W[:, 0], "last": W[:, 2]}, random_state=0)
    >>> tests
    2 of 2 properties correlate significantly with the similarities.
    ...
    """
    check_settings(n_permutations, alternative, alpha, n_jobs)
    check_method(method)
    similarity = as_similarity(S, copy=False)
    items = check_similarity(similarity, method)
    cleaned = clean_hypotheses(hypotheses, items)
    both_sides = alternative == "two-sided"
    warn_of_duplicates(cleaned, model_correlations(cleaned), "model of the similarities", absolute=both_sides)
    statistics = rsa_statistics(similarity, cleaned, method)
    observed, null = permute(
        statistics, items.number, n_permutations, random_state=random_state, n_jobs=n_jobs, progress=progress
    )
    warn_of_few(null, cleaned.names, alpha)
    return HypothesisTests(
        test="rsa",
        hypotheses=cleaned.names,
        statistic=observed,
        pvalue=pvalues(observed, null, alternative),
        dimension=(None,) * len(cleaned.names),
        null_distribution=null,
        alternative=alternative,
        alpha=alpha,
        method=describe_method(method),
    )


def rsa_statistics(similarity: Similarity, hypotheses: Hypotheses, method: str) -> Statistics:
    """The function from permutations to correlations with the similarities, both sides checked to vary."""
    if hypotheses.vectors is not None and method == "pearson":
        X = hypotheses.vectors / np.abs(hypotheses.vectors).max(axis=0)
        forms = as_forms(similarity)
        _check_spreads(*form_spreads(forms, X), hypotheses)
        return partial(form_correlations, forms, X)
    matrices = hypotheses.matrices
    # All pairs and their places, values, weights and ranks; and each model matrix, scaled and ranked.
    n_arrays = 6 + 3 * len(hypotheses.names)
    require(8 * n_arrays * similarity.n_items**2, "Correlating the pairs of S with model matrices", WAYS_OUT)
    if hypotheses.vectors is not None:
        matrices = tuple(np.outer(x, x) for x in map(near_one, hypotheses.vectors.T))
    pairs = as_pairs(similarity, ranks=method == "spearman")
    matrices = tuple(map(near_one, matrices))
    _check_spreads(*pair_spreads(pairs, matrices), hypotheses)
    return partial(pair_correlations, pairs, tuple(as_model(matrix, pairs) for matrix in matrices))


def describe_method(method: str) -> str:
    """The method in a result's words."""
    return f"{method.capitalize()} correlation with the similarities over observed pairs"


def check_method(method: str) -> None:
    """Refuse an unknown correlation."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f'method must be "pearson" or "spearman", got {shown(method)}.')


def check_similarity(similarity: Similarity, method: str) -> Items:
    """Refuse similarities that cannot be correlated, and return their items."""
    if similarity.n_items < FEWEST_ITEMS:
        raise ValueError(f"S must have at least {FEWEST_ITEMS} items, got {similarity.n_items}.")
    if method == "spearman" and (similarity.weights is not None or 0 < similarity.absent_weight < 1):
        raise ValueError(
            'method must be "pearson" where pairs of S have weights, because ranks cannot be weighed, got "spearman".'
        )
    labels = None if similarity.labels is None else tuple(similarity.labels)
    return Items(similarity.n_items, labels, "S")


def _check_spreads(varies: bool, models_vary: np.ndarray, hypotheses: Hypotheses) -> None:
    if not varies:
        raise ValueError(
            "S must vary over its observed pairs to be correlated with anything, got equal values or none."
        )
    if not models_vary.all():
        name = hypotheses.names[int(np.argmin(models_vary))]
        raise ValueError(
            "hypotheses must vary over the observed pairs of S as model matrices (x x^T for a property x), and S over "
            f"the pairs that they cover, got the same value for all of them in {name!r}. A property of few items needs "
            "an observed pair of two items that have it."
        )
