"""weight_test: whether the weights of systems differ between groups, or follow a score."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._parallel import root_seed
from simdims._parameters import ParameterError, ParameterTypeError, plural, require_count, shortlist, shown, warn
from simdims.consensus import Consensus
from simdims.inference.permutations import check_settings, pvalues
from simdims.inference.result import HypothesisTests
from simdims.joint import JointSRF
from simdims.similarity import is_frame

if TYPE_CHECKING:
    import pandas as pd


class Predictor(NamedTuple):
    """What is tested: columns that are permuted together, and what their relation to weights is called."""

    columns: NDArray[np.float64]
    codes: NDArray[np.intp]
    words: str


class Values(NamedTuple):
    """One value per system, and the order of its distinct values where it is given."""

    values: NDArray[Any]
    levels: list[Any] | None

    def at(self, chosen: NDArray[np.bool_]) -> Values:
        """Those of some systems."""
        return Values(self.values[chosen], self.levels)

    def codes(self) -> tuple[NDArray[np.intp], list[Any]]:
        """The values as numbers of their distinct ones, and these in order."""
        found = set(self.values.tolist())
        if self.levels is None:
            distinct = sorted(found, key=lambda one: (type(one).__name__, one))
        else:
            distinct = [level for level in self.levels if level in found]
        place = {value: number for number, value in enumerate(distinct)}
        return np.array([place[value] for value in self.values.tolist()], dtype=np.intp), distinct

    def missing(self) -> NDArray[np.bool_]:
        """Which systems have none."""
        import pandas as pd

        return np.asarray(pd.isna(self.values))


def weight_test(
    result: Any,
    by: Any,
    *,
    within: Any = None,
    n_permutations: int = 10_000,
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
) -> HypothesisTests:
    """Test which dimensions have weights that differ between groups of systems, or follow a score.

    For two groups and for scores the statistic is the correlation of the weights with the group or the score; for more
    groups it is the correlation ratio, the root of the share of the variance between groups. Its null distribution
    comes from permuting the systems, and p-values are adjusted over dimensions by the Benjamini-Hochberg procedure.

    Parameters
    ----------
    result : fitted JointSRF, Consensus of a SimilaritySet, or array-like or DataFrame (n_systems, n_components)
        The weights, or a result that contains them. The index of a DataFrame names the systems.
    by : column name, or sequence with one value per system
        Groups (text, or True and False) or scores (numbers): a column of `info` of the set that was fitted, or values.
        A Series is matched by name if its index names the systems. Systems without a value are left out with a warning.
    within : column name, or sequence with one value per system, optional
        For paired designs: which systems belong together, as two sessions of one person. Systems are then permuted
        within persons only, and the mean of each person is taken out of weights and scores first.
    n_permutations : int, default=10000
        Number of permutations. Where there are no more different ones than that, all of them are used and the p-values
        are exact.
    alpha : float, default=0.05
        False discovery rate at which an adjusted p-value is significant.
    random_state : int, RandomState or None, default=None
        Seed of the permutations.

    Returns
    -------
    HypothesisTests
        One hypothesis per dimension; with two groups, a positive statistic means larger weights in the second one, in
        sorted order or in that of the categories.

    Notes
    -----
    The test is exact if systems could be exchanged under the null hypothesis. They cannot if groups differ in how many
    pairs they have: shrinkage then draws the weights of one group to 1 more strongly, and its weights vary less.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims.inference import weight_test
    >>> weights = np.random.default_rng(0).uniform(0.8, 1.2, size=(12, 2))
    >>> weights[:6, 1] -= 0.5
    >>> weight_test(weights, ["deficient"] * 6 + ["normal"] * 6)
    The weights of 1 of 2 dimensions are significantly related to the groups.
    ...
    """
    check_settings(n_permutations, "two-sided", alpha, None)
    weights, names, dimensions, info = weights_of_systems(result)
    values = values_of_systems("by", by, names, info)
    blocks = None if within is None else values_of_systems("within", within, names, info)
    known = ~values.missing() if blocks is None else ~(values.missing() | blocks.missing())
    if not known.all():
        left_out = [name for name, one in zip(names, known, strict=True) if not one]
        what = "{by}" if blocks is None else "{by} or {within}"
        warn(f"Left out {len(left_out)} {plural('system', len(left_out))} without a value: {shortlist(left_out)}.",
             f"This is about {what}.")  # fmt: skip
        weights, values = weights[known], values.at(known)
        blocks = None if blocks is None else blocks.at(known)
    predictor = _predictor(values)
    of_block = np.zeros(len(weights), dtype=np.intp) if blocks is None else blocks.codes()[0]
    _require_variation(predictor, of_block, weights, paired=blocks is not None)
    statistics = partial(_relations, _standardised(weights, of_block), predictor.columns, of_block)
    observed = statistics(np.arange(len(weights))[None])[0]
    drawn, is_exact = _permutations(predictor.codes, of_block, n_permutations, random_state)
    null = np.concatenate([statistics(part) for part in np.array_split(drawn, max(len(drawn) // 1000, 1))])
    paired = "" if blocks is None else ", within sets of systems"
    exact = " (exact: all assignments)" if is_exact else ""
    return HypothesisTests(
        test="weights",
        hypotheses=dimensions,
        statistic=observed,
        pvalue=pvalues(observed, null, "two-sided"),
        dimension=dimensions,
        null_distribution=null,
        alternative="two-sided",
        alpha=alpha,
        method=f"{predictor.words}{paired}{exact}",
    )


def weights_of_systems(result: Any) -> tuple[NDArray[np.float64], list[str], tuple[str, ...], pd.DataFrame | None]:
    """The weights, the names of systems and dimensions, and what is known about the systems."""
    if isinstance(result, JointSRF):
        if not hasattr(result, "weights_"):
            raise ParameterError("result", "must be fitted", "a JointSRF that is not", "call its fit first")
        frame, info = result.weights_frame(), result.info_
        if np.ptp(result.weights_) == 0:
            rule = "must have weights that differ between systems"
            remedy = "fit with a finite {shrinkage}; auto found that weights do not help to predict held-out pairs"
            raise ParameterError("result", rule, f"weights of 1 (shrinkage {result.shrinkage_:g})", remedy)
        return frame.to_numpy(), list(frame.index), tuple(frame.columns), info
    if isinstance(result, Consensus) and result.weights is not None:
        frame = result.weights_frame()
        return frame.to_numpy(), list(frame.index), tuple(frame.columns), result.system_info
    if is_frame(result):
        table, names = result.to_numpy(), [str(name) for name in result.index]
        dimensions = tuple(map(str, result.columns))
    else:
        table = np.asarray(result)
        names = [f"system{m + 1}" for m in range(len(table))] if table.ndim else []
        dimensions = tuple(f"dimension{k + 1}" for k in range(table.shape[1])) if table.ndim == 2 else ()
    if table.ndim != 2 or table.dtype.kind not in "biuf" or not table.size:
        rule = "must be a fitted JointSRF, or numbers of shape (n_systems, n_components)"
        raise ParameterTypeError("result", rule, shown(result))
    if not np.isfinite(table).all():
        raise ParameterError("result", "must hold finite weights", "infinity or missing values")
    return table.astype(np.float64), names, dimensions, None


def values_of_systems(name: str, given: Any, systems: list[str], info: pd.DataFrame | None) -> Values:
    """One value per system: a column of what is known about them, or values that are given."""
    import pandas as pd

    if isinstance(given, str):
        columns = [] if info is None else [str(column) for column in info.columns]
        if info is None or given not in columns:
            known = shortlist(list(map(repr, columns))) or "none"
            raise ParameterError(name, "must name a column of the info of the systems", f"{given!r}: there are {known}")
        given = info[given]
    if isinstance(given, pd.Series) and set(map(str, given.index)) == set(systems):
        given = given.set_axis([str(one) for one in given.index]).loc[systems]
    if isinstance(given, dict) or not hasattr(given, "__len__"):
        raise ParameterTypeError(name, "must be the name of a column, or one value per system", shown(given))
    column = pd.Series(getattr(given, "array", given))
    if np.ndim(column) != 1 or len(column) != len(systems):
        raise ParameterError(name, f"must have one value for each of the {len(systems)} systems", f"{len(column)}")
    levels = list(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else None
    return Values(column.to_numpy(dtype=object), levels)


def _predictor(given: Values) -> Predictor:
    codes, distinct = given.codes()
    is_number = all(
        isinstance(one, int | float | np.number) and not isinstance(one, bool | np.bool_) for one in distinct
    )
    if is_number:
        scores = given.values.astype(np.float64)
        if not np.isfinite(scores).all():
            raise ParameterError("by", "must hold finite scores", "infinity")
        return Predictor(scores[:, None], codes, "correlation of the weights with the scores")
    if len(distinct) == 2:
        one, two = map(str, distinct)
        words = f"correlation of the weights with being in group {two!r} rather than {one!r}"
        return Predictor(codes[:, None].astype(np.float64), codes, words)
    indicators = (codes[:, None] == np.arange(len(distinct))).astype(np.float64)
    return Predictor(indicators, codes, f"correlation ratio of the weights between {len(distinct)} groups")


def _require_variation(
    predictor: Predictor, of_block: NDArray[np.intp], weights: NDArray[np.float64], *, paired: bool
) -> None:
    if len(weights) < 3:
        raise ParameterError("by", "must have a value for at least three systems", f"{len(weights)}")
    if predictor.codes.min() == predictor.codes.max():
        raise ParameterError("by", "must have at least two different values", "one")
    if paired and not any(np.ptp(predictor.codes[of_block == block]) for block in np.unique(of_block)):
        raise ParameterError("within", "must leave differences in {by} within its values", "none")
    if predictor.columns.shape[1] == len(weights):
        raise ParameterError("by", "must have groups of more than one system", f"{len(weights)} groups")


def _centred(table: NDArray[np.float64], of_block: NDArray[np.intp]) -> NDArray[np.float64]:
    """Columns less their means within blocks."""
    sizes = np.bincount(of_block)
    sums = np.stack([np.bincount(of_block, weights=column) for column in table.T], axis=1)
    return table - (sums / sizes[:, None])[of_block]


def _standardised(weights: NDArray[np.float64], of_block: NDArray[np.intp]) -> NDArray[np.float64]:
    """Weights centred within blocks, of length 1; zeros where they are constant."""
    centred = _centred(weights, of_block)
    norms = np.linalg.norm(centred, axis=0)
    return np.where(norms > 1e-12 * np.linalg.norm(weights, axis=0), centred / np.where(norms > 0, norms, 1.0), 0.0)


def _relations(
    weights: NDArray[np.float64], columns: NDArray[np.float64], of_block: NDArray[np.intp], orders: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Correlations of weights with a permuted column, or with the best combination of several, per permutation."""
    basis = _centred(columns, of_block)
    if columns.shape[1] == 1:
        return np.einsum("bm,mk->bk", (basis[:, 0] / np.linalg.norm(basis))[orders], weights)
    left, sizes, _ = np.linalg.svd(basis, full_matrices=False)
    basis = left[:, sizes > 1e-10 * sizes.max()]
    return np.sqrt(np.sum(np.einsum("bmc,mk->bck", basis[orders], weights) ** 2, axis=1))


def _permutations(
    codes: NDArray[np.intp], of_block: NDArray[np.intp], n_permutations: int, random_state: Any
) -> tuple[NDArray[np.intp], bool]:
    """Permutations within blocks, one per row, and whether they are all that differ, but for the observed one."""
    require_count("n_permutations", n_permutations)
    blocks = [np.flatnonzero(of_block == block) for block in np.unique(of_block)]
    if sum(_log_count(codes[places]) for places in blocks) <= math.log(n_permutations + 1) + 1e-9:
        return _all_permutations(codes, blocks), True
    rng = np.random.default_rng(root_seed(random_state))
    orders = np.tile(np.arange(len(codes)), (n_permutations, 1))
    for places in blocks:
        orders[:, places] = rng.permuted(np.tile(places, (n_permutations, 1)), axis=1)
    return orders, False


def _log_count(codes: NDArray[np.intp]) -> float:
    """The logarithm of the number of different orders."""
    return math.lgamma(len(codes) + 1) - sum(math.lgamma(count + 1) for count in np.bincount(codes))


def _all_permutations(codes: NDArray[np.intp], blocks: list[NDArray[np.intp]]) -> NDArray[np.intp]:
    """One permutation for each way to assign the values within blocks, but for the observed one."""
    ways = [[_order_of(codes, places, way) for way in _arrangements(codes[places].tolist())] for places in blocks]
    orders = []
    for way in product(*ways):
        order = np.empty(len(codes), dtype=np.intp)
        for places, sources in zip(blocks, way, strict=True):
            order[places] = sources
        if not np.array_equal(codes[order], codes):
            orders.append(order)
    return np.array(orders, dtype=np.intp).reshape(len(orders), len(codes))


def _order_of(codes: NDArray[np.intp], places: NDArray[np.intp], way: list[int]) -> list[int]:
    """Places to take values from so that they come in a given way."""
    left = {code: [int(place) for place in places if codes[place] == code] for code in set(way)}
    return [left[code].pop() for code in way]


def _arrangements(codes: list[int]) -> Iterator[list[int]]:
    """All different orders of codes."""
    if not codes:
        yield []
    for first in sorted(set(codes)):
        rest = codes.copy()
        rest.remove(first)
        for order in _arrangements(rest):
            yield [first, *order]
