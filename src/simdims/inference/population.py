"""population_test: test whether effects generalise to the populations of systems and items."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdims import solvers
from simdims._parallel import root_seed, seed_of
from simdims._parameters import ParameterError, require_choice, require_type
from simdims._progress import Callback
from simdims.inference.dimension import matched_dimensions, resolved_matching
from simdims.inference.hypotheses import FEWEST_ITEMS, Items, Table, clean_embedding, clean_hypotheses, clean_vectors
from simdims.inference.matching import Columns, leave_one_out_matching, standardise
from simdims.inference.permutations import Statistics, check_settings, permute, stacked
from simdims.inference.result import HypothesisTests, permutation_tests
from simdims.inference.rsa import rsa_statistics
from simdims.joint import problem_of_set
from simdims.metrics.structure import standard_columns
from simdims.similarity import Similarity
from simdims.similarity.ownership import frozen
from simdims.solvers.joint_resampling import place_items, resampled_systems
from simdims.systems import SimilaritySet, dense_parts

#: Smallest number of systems: with fewer, no pattern of signs could be significant.
_FEWEST_SYSTEMS = 6


def population_test(
    systems: SimilaritySet,
    hypotheses: Any,
    *,
    embedding: Any = None,
    generalize: str = "both",
    n_permutations: int = 1000,
    alternative: str = "greater",
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> HypothesisTests:
    """Test whether properties of items are encoded in the population of systems, of items, or of both.

    Each system (person, brain, model) has its own effect: the correlation of its similarities with the model of a
    property or, with `embedding`, the correlation of the property with the system's own version of the matched
    dimension. The statistic is the mean effect over systems. By contrast, `rsa_test` and `dimension_test` on averaged
    similarities test whether the property is encoded in these particular systems; an effect in a few of them can
    suffice.

    Parameters
    ----------
    systems : SimilaritySet
        The similarities of at least 6 systems.
    hypotheses : array-like, Series, DataFrame of shape (n_items, n_hypotheses), or mapping of names to columns
        One value per item and property, as in `dimension_test`; without `embedding` also model matrices, as in
        `rsa_test`.
    embedding : fitted JointSRF, Consensus, Discovery, or array-like or DataFrame (n_items, n_components), optional
        The dimensions that the systems share. A system's version of a dimension has the loadings that fit its own
        similarities best, with the loadings of all other items fixed at those of the embedding.
    generalize : {"both", "systems", "items"}, default="both"
        The population to generalise to. "systems": other people, the same items. "items": the same people, other
        items. "both": other people and other items.
    n_permutations : int, default=1000
        Number of permutations of the items, or of sign flips.
    alternative, alpha, random_state, n_jobs, progress
        As in `dimension_test`.

    Returns
    -------
    HypothesisTests
        `statistic` is the mean effect.

    Notes
    -----
    "systems": the sign of each system's effect is flipped at random. This is exact if effects are symmetric about
    zero under the null hypothesis. With fixed items, a property unrelated to the dimensions correlates with them by
    chance, and in the same direction in all people. The test detects this as an effect if there are enough people;
    use "both" unless only these items are of interest.

    "items": items are permuted, as in `rsa_test` and `dimension_test`.

    "both": the mean effect under permuted items, plus a random deviation for the sampling of systems. It follows
    Student's t, and its variance is the variance of the effects beyond that under permuted items, divided by the
    number of systems.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import SimilaritySet, population_test, simulate
    >>> W = simulate.dirichlet(30, 3, random_state=0)
    >>> people = [simulate.add_noise(W @ W.T, 0.5, random_state=seed) for seed in range(8)]
    >>> population_test(SimilaritySet(people), {"first": W[:, 0]}, random_state=0)
    1 of 1 property is found in the population of systems and items.
    ...
    """
    check_settings(n_permutations, alternative, alpha, n_jobs)
    require_choice("generalize", generalize, ("both", "systems", "items"))
    require_type("systems", systems, SimilaritySet, "a SimilaritySet")
    if systems.n_systems < _FEWEST_SYSTEMS:
        raise ParameterError("systems", f"must be at least {_FEWEST_SYSTEMS}", f"{systems.n_systems}")
    if systems.n_items < FEWEST_ITEMS:
        raise ParameterError("systems", f"must have at least {FEWEST_ITEMS} items", f"{systems.n_items}")
    items = Items(systems.n_items, systems.labels, "systems")
    if embedding is None:
        statistics, names, dimensions = _similarity_effects(systems, hypotheses, items)
    else:
        statistics, names, dimensions = _dimension_effects(systems, hypotheses, items, embedding, alternative)
    seed = root_seed(random_state)
    n_drawn = 1 if generalize == "systems" else n_permutations
    observed, permuted = permute(statistics, systems.n_items, n_drawn, seed, n_jobs, progress)
    null = _null(observed, permuted, generalize, n_permutations, seed_of(seed, 1))
    what = "the similarities" if embedding is None else "the matched dimension"
    population = "systems and items" if generalize == "both" else generalize
    method = f"mean over {systems.n_systems} systems of correlations with {what}, generalised to {population}"
    mean = observed.mean(axis=0)
    return permutation_tests("population", names, mean, null, alternative, alpha, method, dimensions)


def _null(
    observed: NDArray[np.float64], permuted: NDArray[np.float64], generalize: str, n_draws: int, seed: int
) -> NDArray[np.float64]:
    """Mean effects under the null hypothesis, of shape (draws, hypotheses), from effects (systems, hypotheses)."""
    rng, n_systems = np.random.default_rng(seed), len(observed)
    if generalize == "systems":
        signs = rng.choice([-1.0, 1.0], size=(n_draws, n_systems))
        return signs @ observed / n_systems
    means = permuted.mean(axis=1)
    if generalize == "items":
        return means
    # Variance of the effects between systems beyond their own noise under permuted items.
    beyond = np.maximum(observed.var(axis=0, ddof=1) - np.nanmean(permuted.var(axis=1, ddof=1), axis=0), 0.0)
    return means + np.sqrt(beyond / n_systems) * rng.standard_t(n_systems - 1, size=means.shape)


def _similarity_effects(
    systems: SimilaritySet, hypotheses: Any, items: Items
) -> tuple[Statistics, tuple[str, ...], tuple[str | None, ...]]:
    cleaned = clean_hypotheses(hypotheses, items)
    parts = []
    for m, name in enumerate(systems.names):
        try:
            parts.append(rsa_statistics(_of_all_items(systems, m), cleaned, "pearson"))
        except ValueError as error:
            error.add_note(f"This is about system {name!r}.")
            raise
    return partial(stacked, tuple(parts)), cleaned.names, (None,) * len(cleaned.names)


def _of_all_items(systems: SimilaritySet, m: int) -> Similarity:
    """The similarities of a system between all items, with missing values for items it lacks."""
    one, at, n = list(systems)[m], systems.positions[m], systems.n_items
    if np.array_equal(at, np.arange(n)):
        return one
    values, weights = np.full((n, n), np.nan), np.zeros((n, n))
    own, omega = dense_parts(one)
    values[np.ix_(at, at)], weights[np.ix_(at, at)] = np.where(omega > 0, own, np.nan), omega
    lacking = np.setdiff1d(np.arange(n), at)
    values[lacking, lacking] = weights[lacking, lacking] = 1.0  # an item needs a value; no test uses the diagonal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about items without pairs
        return Similarity(frozen(values), systems.labels, frozen(weights))


def _dimension_effects(
    systems: SimilaritySet, hypotheses: Any, items: Items, embedding: Any, alternative: str
) -> tuple[Statistics, tuple[str, ...], tuple[str | None, ...]]:
    table = _in_order(clean_embedding(embedding)[0], systems)
    cleaned = clean_vectors(hypotheses, items)
    matching, _ = resolved_matching("auto", cleaned, table, alternative)
    statistics = partial(
        _version_correlations,
        standardise(cleaned.vectors),
        standardise(table.values),
        versions_of(systems, table.values),
        joint=matching == "joint",
        absolute=alternative == "two-sided",
    )
    return statistics, cleaned.names, matched_dimensions(table, cleaned, matching, alternative)


def _in_order(table: Table, systems: SimilaritySet) -> Table:
    """An embedding with rows in the order of the systems' items."""
    if table.rows is None or systems.labels is None:
        if len(table.values) != systems.n_items:
            rule = f"must have one row for each of the {systems.n_items} items"
            raise ParameterError("embedding", rule, f"{len(table.values)}")
        return table
    place = {name: at for at, name in enumerate(table.rows)}
    missing = [label for label in systems.labels if label not in place]
    if missing:
        raise ParameterError("embedding", "must have the items of the systems", f"no {missing[0]!r}")
    return Table(table.values[[place[label] for label in systems.labels]], systems.labels, table.columns)


def versions_of(systems: SimilaritySet, W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each system's version of the dimensions: the loadings of each item that fit its pairs best, with others fixed."""
    problem = problem_of_set(systems)
    lists = solvers.as_lists(problem, np.arange(systems.n_items)) if problem.zeros.any() else problem
    weights = solvers.weights_of(lists, np.ascontiguousarray(W))  # fitted to all pairs
    items, once = np.arange(systems.n_items), np.ones(systems.n_items)
    versions = []
    for m in range(systems.n_systems):
        alone = resampled_systems(lists, np.array([m]))
        versions.append(place_items(alone, W, weights[[m]], items, once))
    return np.stack(versions)


def _version_correlations(
    hypotheses: Columns,
    dimensions: Columns,
    versions: NDArray[np.float64],
    permutations: NDArray[np.integer],
    *,
    joint: bool,
    absolute: bool,
) -> NDArray[np.float64]:
    """Correlations of permuted hypotheses with each system's version of the leave-one-out matched dimensions."""
    items = np.arange(versions.shape[1])[:, None]
    found = np.empty((len(permutations), len(versions), hypotheses.values.shape[1]))
    for place, permutation in enumerate(permutations):
        x = Columns(hypotheses.values[permutation], hypotheses.stretch[permutation])
        matched = leave_one_out_matching(x, dimensions, joint=joint, absolute=absolute)
        for m, version in enumerate(versions):
            columns = version[items, matched]
            columns = standard_columns(columns) if columns.any() else columns
            found[place, m] = np.einsum("ij,ij->j", x.values, columns)
    return found
