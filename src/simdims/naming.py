"""label_dimensions: suggest a name for each dimension from the properties of the items.

A line fitted to the training items predicts the loadings y of held-out items from a property x. The cross-validated
correlations of all permutations follow from sums over the training and held-out items of each fold, without fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from simdims._cells import is_missing, number
from simdims._parallel import root_seed
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    as_float,
    plural,
    require_between,
    require_count,
    shortlist,
    warn,
)
from simdims.metrics._embedding import Names, as_embedding, below_one, dimension_names, embedding_table, refuse_repeated
from simdims.metrics._pairs import row_blocks
from simdims.similarity import is_default_axis, is_frame, refuse_other_numbers

N_FOLDS = 5
#: Numeric properties and levels with fewer items than this are not tested.
FEWEST = 5
#: Smallest correlation of a further property, as a share of the first one's.
COMPARABLE = 0.5
#: Largest number of properties in a suggestion.
N_SUGGESTED = 3
#: Permutations computed at a time.
BLOCK = 250

#: Levels of a category that are meaningless without its name.
ANSWERS = {"yes", "no", "y", "n", "true", "false", "t", "f"}

COLUMNS = ["dimension", "property", "correlation", "unique", "pvalue", "pvalue_adjusted"]


class Properties(NamedTuple):
    """Columns of numbers, zero for missing values, and whether they are numeric or 0/1 indicators of a category."""

    values: NDArray[np.float64]
    known: NDArray[np.bool_]
    is_category: NDArray[np.bool_]


def label_dimensions(
    W: Any,
    properties: Any,
    *,
    min_correlation: float = 0.2,
    n_permutations: int = 1000,
    alpha: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
) -> pd.DataFrame:
    """Find the properties of items that describe each dimension, and suggest names.

    The first property of a dimension is the one with the highest cross-validated correlation, if significant. Up to two
    more follow if they correlate at least half as highly and still predict the dimension after the previous ones are
    partialled out, so redundant properties appear only once.

    Parameters
    ----------
    W : array-like or DataFrame of shape (n_items, n_components), Discovery, Consensus or fitted SRF
        The dimensions, or a result that contains them.
    properties : DataFrame, or mapping of names to columns
        One column per property: numbers, 0 and 1, or text for categories, each level of which is a property. Missing
        values (NaN, None) are ignored. If both sides name the items, properties are looked up by name.
    min_correlation : float, default=0.2
        Smallest cross-validated correlation of a suggestion: with many items, much weaker ones are significant.
    n_permutations : int, default=1000
        Number of permutations of the items.
    alpha : float, default=0.05
        Significance level. The expected share of dimensions with a suggestion, among those unrelated to all properties,
        is at most alpha.
    random_state : int, RandomState or None, default=None
        Seed of the folds and permutations.

    Returns
    -------
    pandas.DataFrame
        One row per suggested property: `dimension`, `property`, `correlation` (cross-validated; negative if low values
        correspond to high loadings), `unique` (the same with the properties above it partialled out), `pvalue` and
        `pvalue_adjusted`. Dimensions without a suggestion have no row. `suggested_names` turns the table into names.

    Notes
    -----
    The p-value compares a correlation with the maximum over all properties in each permutation of the items, so it is
    adjusted for the number of properties. `pvalue_adjusted` is also adjusted over dimensions (Benjamini-Hochberg,
    applied to the best property of each).

    P-values assume that missing values do not depend on the loadings. Otherwise they are slightly too small: if a
    property is unknown for the 60% of the items with the highest loadings, about 9% instead of 5% of unrelated
    properties are significant.

    A category describes a dimension only if its items have high loadings; a numeric property may also correlate
    negatively. Categories, levels and numbers known for fewer than 5 items are not tested.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import label_dimensions
    >>> rng = np.random.default_rng(0)
    >>> W = rng.gamma(0.3, size=(100, 3))
    >>> properties = {"animal": W[:, 0] > 0.5, "size": W[:, 2] + 0.1 * rng.normal(size=100)}
    >>> label_dimensions(W, properties, random_state=0)[["dimension", "property"]]
        dimension property
    0  dimension1   animal
    1  dimension3     size
    """
    require_count("n_permutations", n_permutations)
    require_between("min_correlation", min_correlation, 0, 1)
    require_between("alpha", alpha, 0, 1, strictly=True)
    loadings, items = as_embedding(W)
    loadings = below_one(loadings)
    names = dimension_names(embedding_table(W), loadings.shape[1])
    labels, table = read_properties(properties, len(loadings), items)
    rng = np.random.default_rng(root_seed(random_state))
    fold = rng.permutation(np.arange(len(loadings)) % N_FOLDS)
    orders = rng.permuted(np.tile(np.arange(len(loadings)), (n_permutations, 1)), axis=1)
    firsts = [describe(y, table, fold, orders) for y in loadings.T]
    adjusted = false_discovery_control([first.pvalues.min() for first in firsts], method="bh")
    rows = []
    for y, name, first, level in zip(loadings.T, names, firsts, adjusted, strict=True):
        if level <= alpha and first.statistic.max() >= min_correlation:
            chosen = _distinct(y, table, first, fold, orders, alpha, min_correlation)
            rows += [(name, labels[j], first.signed[j], unique, first.pvalues[j], max(level, first.pvalues[j]))
                     for j, unique in chosen]  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(COLUMNS[2:], float))


def suggested_names(table: pd.DataFrame, *, numbers: bool = True) -> dict[str, str]:
    """Suggest one name per dimension from a table of `label_dimensions`.

    Parameters
    ----------
    table : DataFrame
        The output of `label_dimensions`.
    numbers : bool, default=True
        Whether to add the correlations, as in "animal (0.83), lives (0.79)".

    Returns
    -------
    dict of str to str
        Dimension to suggestion. A prefix up to a colon, as in "category: animal", is removed from property names,
        unless two properties would then share a name or only a number, a code such as "A" or "HO", or "yes" would
        remain. A numeric property with a negative correlation is preceded by "low". Without correlations, suggestions
        that several dimensions share are followed by a number from the second on, as in "animal 2", because names must
        differ.

    Examples
    --------
    >>> import pandas as pd
    >>> from simdims.naming import suggested_names
    >>> rows = [("dimension1", "category: animal", 0.83), ("dimension1", "size", -0.41)]
    >>> table = pd.DataFrame(rows, columns=["dimension", "property", "correlation"])
    >>> suggested_names(table)
    {'dimension1': 'animal (0.83), low size (0.41)'}
    """
    if not is_frame(table) or not {"dimension", "property", "correlation"} <= set(table.columns):
        rule = "must be a table of label_dimensions, with columns dimension, property and correlation"
        raise ParameterTypeError("table", rule, type(table).__name__)
    if len(table) and (not _is_numeric(table["correlation"]) or table["correlation"].isna().any()):
        raise ParameterTypeError("table", "must have numbers in its column correlation", "text or missing values")
    full = {str(name) for name in table["property"]}
    short = {name: _without_prefix(name) for name in full}
    taken = [name for name in short.values() if list(short.values()).count(name) > 1]
    found: dict[str, list[str]] = {}
    for dimension, name, r in zip(table["dimension"], table["property"], table["correlation"], strict=True):
        words = str(name) if short[str(name)] in taken else short[str(name)]
        words = words if r >= 0 else f"low {words}"
        found.setdefault(str(dimension), []).append(f"{words} ({abs(r):.2f})" if numbers else words)
    names = {dimension: ", ".join(words) for dimension, words in found.items()}
    return names if numbers else _told_apart(names)


def _told_apart(names: dict[str, str]) -> dict[str, str]:
    """Names that all differ: repeated ones are numbered from the second on."""
    taken = set(names.values())
    distinct: dict[str, str] = {}
    for dimension, name in names.items():
        free, number = name, 1
        while free in distinct.values() or (number > 1 and free in taken):
            number += 1
            free = f"{name} {number}"
        distinct[dimension] = free
    return distinct


def _without_prefix(name: str) -> str:
    """Remove a prefix up to a colon if the rest is meaningful by itself."""
    level = name.rpartition(": ")[2].strip()
    is_code = level.isascii() and (len(level) == 1 or (level.isupper() and len(level) < 4))
    return level if any(map(str.isalpha, level)) and not is_code and level.lower() not in ANSWERS else name


class Described(NamedTuple):
    """How well each property describes one dimension."""

    statistic: NDArray[np.float64]  # the statistic compared with permutations; -1 if undefined
    signed: NDArray[np.float64]
    pvalues: NDArray[np.float64]


def describe(
    y: NDArray[np.float64], properties: Properties, fold: NDArray[np.intp], orders: NDArray[np.intp]
) -> Described:
    """Cross-validated correlations of a column with properties, and p-values adjusted for their number."""
    observed, sign = _statistics(y[:, None], properties, fold)
    blocks = (y[orders[rows]].T for rows in row_blocks(len(orders), BLOCK))
    largest = np.concatenate([_statistics(block, properties, fold)[0].max(axis=0) for block in blocks])
    statistic = observed[:, 0]
    as_large = np.count_nonzero(largest >= statistic[:, None] - 1e-10, axis=1)
    return Described(statistic, statistic * sign[:, 0], (1 + as_large) / (1 + len(orders)))


def _statistics(
    Y: NDArray[np.float64], properties: Properties, fold: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cross-validated correlations (n_properties, n_columns), and the signs of the relations."""
    r, slope = cross_validated_correlations(Y, properties.values, properties.known, fold)
    # Low loadings in a category do not describe a dimension.
    r = np.where(properties.is_category[:, None] & (slope < 0), -1.0, r)
    return r, np.where(slope < 0, -1.0, 1.0)


def cross_validated_correlations(
    Y: NDArray[np.float64], X: NDArray[np.float64], known: NDArray[np.bool_], fold: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Correlations of Y with predictions from X by lines fitted to the other folds, and slopes over all items."""
    # Both of shape (columns of X, columns of Y); -1 if predictions are constant. X is zero for missing values.
    Y = Y - Y.mean(axis=0)
    weight = np.ones((len(X), 1)) if known.all() else known.astype(np.float64)
    # Per fold: count, and sums of x, x^2, y, y^2 and x y.
    sums = []
    for one in range(N_FOLDS):
        rows = fold == one
        m, x, y = weight[rows], X[rows], Y[rows]
        per_property = (m.sum(axis=0), x.sum(axis=0), np.sum(x**2, axis=0))
        sums.append((*(part[:, None] for part in per_property), m.T @ y, m.T @ y**2, x.T @ y))
    total = [sum(parts) for parts in zip(*sums, strict=True)]
    p_sum = pp_sum = py_sum = 0.0
    for held in sums:
        n, sx, sxx, sy, _, sxy = (everything - part for everything, part in zip(total, held, strict=True))
        slope = _ratio(sxy - sx * sy / np.maximum(n, 1), sxx - sx**2 / np.maximum(n, 1), sxx)
        level = (sy - slope * sx) / np.maximum(n, 1)
        n, sx, sxx, sy, _, sxy = held
        p_sum = p_sum + n * level + slope * sx
        pp_sum = pp_sum + n * level**2 + 2 * level * slope * sx + slope**2 * sxx
        py_sum = py_sum + level * sy + slope * sxy
    n, sx, sxx, sy, syy, sxy = total
    spread = np.maximum(pp_sum - p_sum**2 / n, 0.0) * np.maximum(syy - sy**2 / n, 0.0)
    varies = spread > 1e-20 * np.maximum(syy, 1e-300) ** 2
    r = np.where(varies, (py_sum - p_sum * sy / n) / np.sqrt(np.where(varies, spread, 1.0)), -1.0)
    return r, _ratio(sxy - sx * sy / n, sxx - sx**2 / n, sxx)


def _ratio(covariance: NDArray, spread: NDArray, squares: NDArray) -> NDArray[np.float64]:
    """The slope of a line; 0 if x is constant."""
    varies = spread > 1e-12 * squares
    return np.where(varies, covariance / np.where(varies, spread, 1.0), 0.0)


def _distinct(
    y: NDArray[np.float64],
    properties: Properties,
    first: Described,
    fold: NDArray[np.intp],
    orders: NDArray[np.intp],
    alpha: float,
    min_correlation: float,
) -> list[tuple[int, float]]:
    """The indices of the suggested properties, and their correlations with the previous ones partialled out."""
    order = np.argsort(-first.statistic, kind="stable")
    best = order[0]
    chosen = [(int(best), float(first.signed[best]))]
    least = max(COMPARABLE * first.statistic[best], min_correlation)
    left = [j for j in order[1:] if first.pvalues[j] <= alpha and first.statistic[j] >= least]
    while left and len(chosen) < N_SUGGESTED:
        basis = np.linalg.qr(_centred(properties.values[:, [j for j, _ in chosen]]))[0]
        columns, known = properties.values[:, left], properties.known[:, left]
        residuals = _centred(columns) - basis @ (basis.T @ _centred(columns))
        # A combination of the previous properties leaves only rounding errors.
        is_new = np.linalg.norm(residuals, axis=0) > 1e-8 * np.linalg.norm(columns, axis=0)
        rest = Properties(np.where(known & is_new, residuals, 0.0), known, properties.is_category[left])
        partial = describe(_centred(y) - basis @ (basis.T @ _centred(y)), rest, fold, orders)
        # A partial correlation of the opposite sign does not describe the dimension.
        describes = (partial.statistic > 0) & (partial.signed * first.signed[left] > 0) & (partial.pvalues <= alpha)
        found = [k for k in np.argsort(-partial.statistic) if describes[k]]
        if not found:
            break
        chosen.append((int(left[found[0]]), float(partial.signed[found[0]])))
        left = [left[k] for k in found[1:]]
    return chosen


def _centred(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return x - x.mean(axis=0)


def read_properties(properties: Any, n_items: int, items: Names) -> tuple[list[str], Properties]:
    """The names of properties, and their standardised values in the order of the items."""
    frame = _as_frame(properties, n_items, items)
    names, values, is_category, skipped = [], [], [], []
    for name in frame.columns:
        column = frame[name]
        levels = {str(name): _numbers(column, str(name))} if _is_numeric(column) else levels_of(column, str(name))
        for level, numbers in levels.items():
            kept, is_01 = numbers[~np.isnan(numbers)], set(np.unique(numbers[~np.isnan(numbers)])) <= {0.0, 1.0}
            rare = is_01 and min(np.sum(kept == 0), np.sum(kept == 1)) < FEWEST
            if len(kept) < 2 * FEWEST or np.ptp(kept) <= 1e-12 * np.abs(kept).max() or rare:
                skipped.append(level)
                continue
            names.append(level)
            unit = np.ldexp(1.0, np.frexp(np.abs(kept).max())[1] - 1)  # so that squares are in range
            values.append((numbers / unit - np.mean(kept / unit)) / np.std(kept / unit))
            is_category.append(is_01)
    refuse_repeated(names, "properties", "must have distinct names")
    if not names:
        n_columns = frame.shape[1]
        got = f"{n_columns} {plural('column', n_columns)}, constant or known for too few items"
        raise ParameterError("properties", "must vary over the items", got)
    if skipped:
        what = f"{len(skipped)} {'property that is' if len(skipped) == 1 else 'properties that are'}"
        warn(f"Left out {what} constant or known for too few items: {shortlist([repr(one) for one in skipped])}.")
    table = np.column_stack(values)
    known = ~np.isnan(table)
    return names, Properties(np.where(known, table, 0.0), known, np.array(is_category))


def _is_numeric(column: pd.Series) -> bool:
    """Whether a column holds numbers or booleans, apart from missing values."""
    if column.dtype == object:
        kind = pd.api.types.infer_dtype(column, skipna=True)
        return kind in ("boolean", "integer", "floating", "mixed-integer-float", "complex")
    return bool(pd.api.types.is_numeric_dtype(column))


def _numbers(column: pd.Series, name: str) -> NDArray[np.float64]:
    """A numeric column, NaN for missing values."""
    try:
        if column.dtype == object:
            pairs = zip(column, column.isna(), strict=True)
            numbers = np.array([np.nan if is_missing else as_float(value) for value, is_missing in pairs])
        else:
            numbers = column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    except TypeError:
        raise ParameterTypeError("properties", "must be real numbers or words", f"complex ones in {name!r}") from None
    if np.isinf(numbers).any():
        raise ParameterError("properties", "must be finite", f"infinity in {name!r}")
    return numbers


def levels_of(column: pd.Series, name: str) -> dict[str, NDArray[Any]]:
    """One 0/1 column per level of a category, missing if the category is."""
    known = column.notna().to_numpy()
    texts = column[known].map(str)
    counts = texts.value_counts()
    if len(counts) > max(len(texts) / 2, 2):
        got = f"{len(counts)} different ones for {len(texts)} items in {name!r}"
        remedy = "if it names the items, make it the index; if it holds numbers, convert it"
        raise ParameterError("properties", "must have few categories", got, remedy)
    if column.dtype != "category":
        _warn_of_numbers(texts, name)
    result: dict[str, NDArray[Any]] = {}
    for level in sorted(counts[counts >= FEWEST].index):
        indicator = np.full(len(column), np.nan)
        indicator[known] = (texts == level).to_numpy(dtype=np.float64)
        result[f"{name}: {level}"] = indicator
    return result if len(counts) else {name: np.full(len(column), np.nan)}


def _warn_of_numbers(texts: pd.Series, name: str) -> None:
    """Warn of a numeric property that is read as categories because of a few words or of its type."""
    words = [text for text in texts if number(text) is None or is_missing(text)]
    if 2 * len(words) < len(texts):
        held = f"numbers and words such as {words[0]!r}" if words else "numbers stored as text"
        warn(f"{name!r} holds {held}, and is read as categories.",
             "If it is numeric, convert it to numbers, with missing values (NaN, empty cells) for words.")  # fmt: skip


def _as_frame(properties: Any, n_items: int, items: Names) -> pd.DataFrame:
    """Properties as a DataFrame with one row per item, NaN for items that are not in it."""
    if isinstance(properties, Mapping):
        lengths = {len(column) if hasattr(column, "__len__") else -1 for column in properties.values()}
        if lengths != {n_items} and not all(isinstance(column, pd.Series) for column in properties.values()):
            raise ParameterError("properties", f"must have one value for each of {n_items} items", f"{sorted(lengths)}")
        properties = pd.DataFrame(dict(properties))
    if not is_frame(properties):
        rule = "must be a DataFrame or a mapping of names to columns"
        raise ParameterTypeError("properties", rule, type(properties).__name__)
    refuse_repeated(properties.columns, "properties", "must have distinct columns")
    own = None if is_default_axis(properties.index) else [str(name) for name in properties.index]
    if items is None or own is None:
        refuse_other_numbers(items, "W")
        refuse_other_numbers(own, "properties")
        if len(properties) != n_items:
            remedy = "name the items of both in an index to look them up"
            rule = f"must have one row for each of the {n_items} items of the dimensions"
            raise ParameterError("properties", rule, f"{len(properties)} rows", remedy)
        return properties
    refuse_repeated(own, "properties", "must name each item once", " in its index")
    if not set(items) & set(own):
        wanted, other = (shortlist([repr(str(name)) for name in names]) for names in (items, own))
        raise ParameterError("properties", "must share items with the dimensions", f"{other}, but they have {wanted}")
    rows = set(own)
    unknown = [repr(str(name)) for name in items if name not in rows]
    if unknown:
        warn(f"Properties of {len(unknown)} of {n_items} items are missing: no row is called {shortlist(unknown)}.")
    return properties.set_axis(own).reindex(list(items))
