"""The page's data on several systems: weights, group differences, and typical and unusual systems."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, plural, shortlist
from simdims.discovery.result import Discovery
from simdims.inference import weight_test
from simdims.inference.effects import mean_intervals
from simdims.inference.systems import Values, values_of_systems
from simdims.report.data import rounded

if TYPE_CHECKING:
    import pandas as pd

#: Limits on the number of `info` columns and of groups on the page, and permutations per test.
_MOST_COLUMNS, _MOST_GROUPS, _N_PERMUTATIONS = 8, 7, 10_000

#: Fewest systems for outlier detection by Tukey's fences, 1.5 interquartile ranges beyond the quartiles.
_FEWEST_FOR_OUTLIERS, _FENCE = 8, 1.5

#: Fewest systems for an interval of a group mean.
_FEWEST_FOR_INTERVAL = 3


def systems_facts(found: Discovery) -> dict[str, Any] | None:
    """The facts about systems; None for one system."""
    if found.weights is None or found.consensus.systems is None:
        return None
    weights, names = found.weights, list(found.consensus.systems)
    table = unusual_systems(found)
    differ = bool(np.ptp(weights) > 0)
    has_columns = differ and found.consensus.system_info is not None
    return {
        "names": names,
        "weights": [rounded(row) for row in weights],
        "differ": differ,
        "said": _said(found, table, differ=differ),
        "models": [] if found.systems is None else [list(row) for row in found.systems.rows()],
        "distances": rounded(table["distance"]),
        "r2": None if found.systems is None else rounded(table["r2"]),
        "unusual": [bool(one) for one in table["unusual"]],
        "columns": _columns(found) if has_columns else [],
    }


def unusual_systems(found: Discovery) -> pd.DataFrame:
    """For each system: distance of its weights from 1, held-out R2, and whether either is an outlier.

    The distance is the root mean square over dimensions of the weight minus 1, the mean over systems.
    """
    import pandas as pd

    frame = found.weights_frame()
    distance = np.sqrt(np.mean((frame.to_numpy() - 1.0) ** 2, axis=1))
    r2 = np.full(len(frame), np.nan) if found.systems is None else found.systems.r2["weights"].to_numpy(dtype=float)
    columns = {"distance": distance, "r2": r2, "unusual": _beyond(distance), "poor": _beyond(-r2)}
    return pd.DataFrame(columns, index=frame.index)


def outliers_in_words(table: pd.DataFrame) -> list[str]:
    """The outliers in a table made by unusual_systems."""
    far, poor = (list(map(str, table.index[table[column]])) for column in ("unusual", "poor"))
    said = [f"Outliers in their weights: {shortlist(far)}."] if far else []
    if poor:
        they = plural("system", len(poor))
        said.append(f"Predicted worse than the others, by R2 of held-out pairs: {they} {shortlist(poor)}.")
    return said


def _beyond(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which values lie above Tukey's upper fence."""
    known = values[np.isfinite(values)]
    if len(known) < _FEWEST_FOR_OUTLIERS:
        return np.zeros(len(values), dtype=bool)
    low, high = np.quantile(known, [0.25, 0.75])
    return np.nan_to_num(values, nan=-np.inf) > high + _FENCE * (high - low) + 1e-12


def _said(found: Discovery, table: pd.DataFrame, *, differ: bool) -> list[str]:
    said = [] if found.systems is None else [found.systems.headline()]
    said += [found.noise_ceiling_words] if found.noise_ceiling_words else []
    if not differ or len(table) < 2:
        return said
    typical, unusual = table["distance"].idxmin(), table["distance"].idxmax()
    said.append(
        f"The most typical system is {typical} (its weights differ from 1 by {table['distance'].min():.2f}, root mean "
        f"square), and the most unusual one is {unusual} ({table['distance'].max():.2f})."
    )
    if len(table) >= _FEWEST_FOR_OUTLIERS and not table["unusual"].any():
        said.append("No system is an outlier in its weights.")
    return [*said, *outliers_in_words(table)]


def _columns(found: Discovery) -> list[dict[str, Any]]:
    """Columns by which systems can be grouped or tested, with their groups or scores, and tests."""
    info: Any = found.consensus.system_info
    names = list(map(str, found.consensus.systems or ()))
    shown = []
    for name in map(str, info.columns):
        values = values_of_systems("by", name, names, info)
        groups, tests = _groups(found, values), _tests(found, name)
        if groups is not None or tests is not None:
            scores = None if groups is not None or tests is None else _scores(values)
            shown.append({"name": name, "groups": groups, "scores": scores, "tests": tests})
        if len(shown) == _MOST_COLUMNS:
            break
    return shown


def _groups(found: Discovery, values: Values) -> dict[str, Any] | None:
    """The group of each system (None if missing), and means and intervals of groups; None if there are too many."""
    known = ~values.missing()
    if not known.any() or found.weights is None:
        return None
    codes, distinct = values.at(known).codes()
    if not 2 <= len(distinct) <= min(_MOST_GROUPS, known.sum() - 1):
        return None
    every = np.full(len(known), None)
    every[known] = codes
    rows = []
    for number, level in enumerate(distinct):
        own = found.weights[known][codes == number]
        low, high = mean_intervals(own)
        has_interval = len(own) >= _FEWEST_FOR_INTERVAL
        means = {"mean": rounded(own.mean(axis=0)), "n": len(own), "level": str(level)}
        rows.append({**means, "low": rounded(low) if has_interval else None, "high": rounded(high)})
    return {"codes": every.tolist(), "levels": rows}


def _scores(values: Values) -> list[float | None] | None:
    """The score of each system (None if missing); None for names and dates."""
    known = ~values.missing()
    scores = values.at(known).scores()
    if scores is None or values.are_times():
        return None
    every = np.full(len(known), np.nan)
    every[known] = scores
    return rounded(every)


def _tests(found: Discovery, name: str) -> dict[str, Any] | None:
    """The test of each dimension; None if a column cannot be tested."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tests = weight_test(found, name, n_permutations=_N_PERMUTATIONS, random_state=0)
        except ParameterError:  # a single value, or as many groups as systems
            return None
    columns = ["contrast", "effect", "effect_low", "effect_high", "statistic", "pvalue", "pvalue_adjusted"]
    table = tests.table[[*columns, "significant"]]
    rows = [{key: _plain(value) for key, value in row.items()} for row in table.to_dict(orient="records")]
    notes = [str(one.message) for one in caught]
    return {"said": tests.summary().splitlines()[:2], "notes": notes, "rows": rows}


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | str) else rounded([value])[0]
