"""Weights of systems and information about the systems, for tests and plots."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simdims._parameters import ParameterError, ParameterTypeError, listed_columns, shown
from simdims.consensus import Consensus
from simdims.joint import JointSRF
from simdims.similarity import is_frame


class Values(NamedTuple):
    """One value per system, and the order of the distinct values if it is defined."""

    values: NDArray[Any]
    levels: list[Any] | None

    def at(self, chosen: NDArray[np.bool_]) -> Values:
        """The values of selected systems."""
        return Values(self.values[chosen], self.levels)

    def codes(self) -> tuple[NDArray[np.intp], list[Any]]:
        """The values as integer codes, and the distinct values in order."""
        found = set(self.values.tolist())
        if self.levels is None:
            return self._numbered(sorted(found, key=lambda one: (type(one).__name__, one)))
        return self._numbered([level for level in self.levels if level in found])

    def codes_as_they_come(self) -> tuple[NDArray[np.intp], list[Any]]:
        """Like `codes`, in the order of the categories, if any, or of first appearance."""
        return self.codes() if self.levels is not None else self._numbered(list(dict.fromkeys(self.values.tolist())))

    def _numbered(self, distinct: list[Any]) -> tuple[NDArray[np.intp], list[Any]]:
        place = {value: number for number, value in enumerate(distinct)}
        return np.array([place[value] for value in self.values.tolist()], dtype=np.intp), distinct

    def scores(self) -> NDArray[np.float64] | None:
        """The values as numbers (dates in days since the first); None for groups."""
        if self.are_times():
            times: Any = pd.to_timedelta(self.values) if self._kind() == "timedelta" else pd.to_datetime(self.values)
            return np.asarray((times - times.min()).total_seconds(), dtype=np.float64) / 86_400
        is_number = [isinstance(one, int | float | np.number) and not isinstance(one, bool) for one in self.values]
        return self.values.astype(np.float64) if all(is_number) else None

    def are_times(self) -> bool:
        """Whether the values are dates or durations."""
        return self._kind() in ("date", "datetime", "datetime64", "timedelta")

    def _kind(self) -> str:
        return pd.api.types.infer_dtype(self.values, skipna=True)

    def missing(self) -> NDArray[np.bool_]:
        """Which systems have no value."""
        return np.asarray(pd.isna(self.values))


def weights_of_systems(result: Any) -> tuple[NDArray[np.float64], list[str], tuple[str, ...], pd.DataFrame | None]:
    """The weights, the names of systems and dimensions, and the information about the systems."""
    result = getattr(result, "consensus", result)  # of a Discovery
    if isinstance(result, JointSRF):
        if not hasattr(result, "weights_"):
            raise ParameterError("result", "must be fitted", "a JointSRF that is not", "call its fit first")
        frame, info = result.weights_frame(), result.info_
        if np.ptp(result.weights_) == 0:
            rule = "must have weights that differ between systems"
            if len(result.names_) == 1:
                raise ParameterError("result", rule, "a single system")
            remedy = "fit with a finite {shrinkage}; auto found that weights do not help to predict held-out pairs"
            raise ParameterError("result", rule, f"weights of 1 (shrinkage {result.shrinkage_:g})", remedy)
        return frame.to_numpy(), list(frame.index), tuple(frame.columns), info
    if isinstance(result, Consensus):
        if result.weights is None:
            rule, remedy = "must be of several systems, which have weights", "run {discover()} on several systems"
            raise ParameterError("result", rule, "a result of one system", remedy)
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
        rule = "must be a fitted JointSRF, a result of several systems, or numbers of shape (n_systems, n_components)"
        raise ParameterTypeError("result", rule, shown(result))
    if not np.isfinite(table).all():
        raise ParameterError("result", "must hold finite weights", "infinity or missing values")
    return table.astype(np.float64), names, dimensions, None


def values_of_systems(name: str, given: Any, systems: list[str], info: pd.DataFrame | None) -> Values:
    """One value per system: a column of `info`, or the values given."""
    if isinstance(given, str):
        columns = [] if info is None else [str(column) for column in info.columns]
        if info is None or given not in columns:
            got = listed_columns(given, columns) if columns else f"{given!r}; there are no columns"
            remedy = "pass a table with this column as {info}"
            raise ParameterError(name, "must name a column of the info of the systems", got, remedy)
        given = info[given]
    if isinstance(given, pd.Series) and set(map(str, given.index)) == set(systems):
        given = given.set_axis([str(one) for one in given.index]).loc[systems]
    if isinstance(given, dict) or not hasattr(given, "__len__"):
        raise ParameterTypeError(name, "must be the name of a column, or one value per system", shown(given))
    column = pd.Series(getattr(given, "array", given))
    if np.ndim(column) != 1 or len(column) != len(systems):
        raise ParameterError(name, f"must have one value for each of the {len(systems)} systems", f"{len(column)}")
    odd = [one for one in column if not isinstance(one, Hashable) or isinstance(one, complex)]
    if odd:
        raise ParameterTypeError(name, "must hold text, booleans, numbers or dates", shown(odd[0]))
    levels = list(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else None
    return Values(column.to_numpy(dtype=object), levels)
