"""rsa_test: correlate the model matrix of each hypothesis with the similarities (the Mantel test)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from simdims._memory import require
from simdims._parallel import root_seed
from simdims._parameters import ParameterError
from simdims._progress import Callback
from simdims.inference import mantel
from simdims.inference.collinearity import model_correlations, warn_of_duplicates
from simdims.inference.hypotheses import FEWEST_ITEMS, Hypotheses, Items, clean_hypotheses
from simdims.inference.nuisance import clean_nuisance, permute_pairs_given
from simdims.inference.permutations import Statistics, check_settings, permute, warn_of_few
from simdims.inference.result import HypothesisTests, permutation_tests
from simdims.similarity import Similarity, as_similarity


def rsa_test(
    S: Any,
    hypotheses: Any,
    *,
    nuisance: Any = None,
    method: str = "pearson",
    n_permutations: int = 1000,
    alternative: str = "greater",
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> HypothesisTests:
    """Test whether properties of the items are reflected in their similarities (representational similarity analysis).

    The Mantel test: the similarities are correlated, over the observed pairs of different items, with the model
    matrix of each hypothesis (x x^T for a property x). The null distribution comes from permuting the rows and
    columns of the models together.

    Parameters
    ----------
    S : Similarity or anything `as_similarity` takes, n_items x n_items
        The similarities, or a Discovery. Pearson's correlation uses their weights, including those of absent pairs.
    hypotheses : array-like, Series or DataFrame of shape (n_items, n_hypotheses), or list, stack or mapping of matrices
        One value per item and property, or one symmetric model matrix per hypothesis, with larger values for pairs
        that are predicted to be more similar and NaN for pairs without a prediction. Items are matched by name if
        both sides name them.
    nuisance : columns or model matrices in the form of `hypotheses`, optional
        Known influences. The test is then whether a hypothesis is related to the similarities beyond them, by partial
        correlation (see Notes).
    method : {"pearson", "spearman"}, default="pearson"
        The correlation. Spearman's requires a list of all pairs and does not support weights.
    alternative : {"greater", "two-sided"}, default="greater"
        Whether only positive correlations support a hypothesis.
    n_permutations, alpha, random_state, n_jobs, progress
        As in `dimension_test`.

    Returns
    -------
    HypothesisTests
        `dimension` is None.

    Warns
    -----
    UserWarning
        If few permutations have a statistic (see Notes), or if the models of two hypotheses correlate 0.95 or more.

    Notes
    -----
    Missing pairs are excluded on both sides: under each permutation, the observed similarities are correlated with the
    values of the permuted model for the same pairs.

    If many pairs are missing, a permuted model may be constant over the observed pairs, for example for a property of
    few items, no two of which form an observed pair. It then has no correlation, and the permutation is excluded: p =
    (1 + m) / (1 + M) for M permutations with a correlation, of which m are at least as large as the observed one.
    This is exact, provided that the unpermuted model varies, which is required. `null_distribution` is NaN for the
    excluded permutations; a warning is given if few remain.

    With `nuisance`, the models of the nuisance (z_i z_j and z_i + z_j for a column z) are partialled out of
    similarities and models. If hypotheses and nuisance are columns, hypotheses are resampled given the nuisance as in
    `dimension_test`, and the test is valid under the same condition. If either is given as matrices, the rows and
    columns of the models' residuals are permuted together (double semi-partialling). This is valid if the part of a
    model that the nuisance does not explain is unrelated to the items of the nuisance. It is not valid for models
    that share item properties, such as x x^T and z z^T for correlated x and z: pass x and z as columns instead.

    References
    ----------
    SRF, Methods, "Statistical power comparison". Mantel, N. (1967). Cancer Research 27, 209-220. Dekker, D.,
    Krackhardt, D. & Snijders, T. A. B. (2007). Psychometrika 72, 563-581.

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
    check_settings(n_permutations, alternative, alpha, n_jobs, method=method)
    similarity = as_similarity(S, copy=False)
    items = check_similarity(similarity, method)
    cleaned = clean_hypotheses(hypotheses, items)
    both_sides = alternative == "two-sided"
    warn_of_duplicates(cleaned, model_correlations(cleaned), "model of the similarities", absolute=both_sides)
    known = clean_nuisance(nuisance, items, matrices=True)
    if nuisance is None:
        statistics = rsa_statistics(similarity, cleaned, method)
        observed, null = permute(statistics, items.number, n_permutations, random_state, n_jobs, progress)
    else:
        settings = (n_permutations, root_seed(random_state), n_jobs, progress)
        observed, null = permute_pairs_given(similarity, cleaned, known, method, settings)
    warn_of_few(null, cleaned.names, alpha)
    described = known.describe(describe_method(method))
    return permutation_tests("rsa", cleaned.names, observed, null, alternative, alpha, described, nuisance=known.names)


def rsa_statistics(similarity: Similarity, hypotheses: Hypotheses, method: str) -> Statistics:
    """The function from permutations to correlations with the similarities, after checking that both sides vary."""
    if not hypotheses.matrices and method == "pearson":
        X = hypotheses.vectors / np.abs(hypotheses.vectors).max(axis=0)
        forms = mantel.as_forms(similarity)
        _check_spreads(*mantel.form_spreads(forms, X), hypotheses)
        return partial(mantel.form_correlations, forms, X)
    # All pairs with items, values, weights and ranks, and each model matrix, scaled and ranked.
    n_arrays = 6 + 3 * len(hypotheses.names)
    require(8 * n_arrays * similarity.n_items**2, "Correlating the pairs of S with model matrices", mantel.WAYS_OUT)
    models = hypotheses.matrices or (np.outer(x, x) for x in map(mantel.near_one, hypotheses.vectors.T))
    pairs, matrices = mantel.as_pairs(similarity, ranks=method == "spearman"), tuple(map(mantel.near_one, models))
    _check_spreads(*mantel.pair_spreads(pairs, matrices), hypotheses)
    return partial(mantel.pair_correlations, pairs, tuple(mantel.as_model(matrix, pairs) for matrix in matrices))


def describe_method(method: str) -> str:
    """The method as a result describes it."""
    return f"{method.capitalize()} correlation with the similarities over observed pairs"


def check_similarity(similarity: Similarity, method: str) -> Items:
    """Refuse similarities without a defined correlation, and return their items."""
    if similarity.n_items < FEWEST_ITEMS:
        raise ParameterError("S", f"must have at least {FEWEST_ITEMS} items", f"{similarity.n_items}")
    if method == "spearman" and mantel.is_weighted(similarity):
        raise ParameterError("method", "must be 'pearson' for weighted similarities", "'spearman'")
    labels = None if similarity.labels is None else tuple(similarity.labels)
    return Items(similarity.n_items, labels, "S")


def _check_spreads(varies: bool, models_vary: np.ndarray, hypotheses: Hypotheses) -> None:
    if not varies:
        raise ParameterError("S", "must vary over its observed pairs", "equal values or none")
    if not models_vary.all():
        rule = (
            "must vary over the observed pairs as model matrices (x x^T for a property x), and the similarities over "
            "the pairs that they cover"
        )
        got = f"the same value for all of them in {hypotheses.names[int(np.argmin(models_vary))]!r}"
        remedy = "a property of few items needs an observed pair of two items that have it"
        raise ParameterError("hypotheses", rule, got, remedy)
