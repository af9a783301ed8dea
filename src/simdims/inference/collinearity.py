"""Hypotheses that overlap: which are nearly the same, which depend on others, and how much variance they share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from simdims._checks import _warn
from simdims.inference.hypotheses import Hypotheses
from simdims.inference.mantel import near_one
from simdims.inference.matching import standardise

# Hypotheses that correlate this highly are one hypothesis for all that data can tell.
DUPLICATE = 0.95
# A hypothesis depends on others if they leave no more than this share of its variance unexplained.
DEPENDENT = 1e-8
# From this share of variance in common with the others, joint matching is no longer nearly exact.
SHARED = 0.25
N_NAMED = 5


def warn_of_duplicates(hypotheses: Hypotheses, correlations: NDArray[np.float64], what: str, *, absolute: bool) -> None:
    """Warn of groups of hypotheses that are nearly the same, by name."""
    strength = np.abs(correlations) if absolute else correlations
    said: list[str] = []
    seen: set[int] = set()
    for first in range(len(strength)):
        others = [other for other in range(first + 1, len(strength)) if strength[first, other] >= DUPLICATE]
        if not others or seen.issuperset([first, *others]):
            continue
        seen.update([first, *others])
        values = ", ".join(f"{correlations[first, other]:.2f}" for other in others[:N_NAMED])
        said.append(f"{_listed([hypotheses.names[k] for k in (first, *others)])} (r = {values})")
    if said:
        more = f", and {len(said) - N_NAMED} more groups" if len(said) > N_NAMED else ""
        size = f"{'|r|' if absolute else 'r'} of {DUPLICATE} or more"
        _warn(
            f"Some hypotheses are nearly the same {what} ({size}): {'; '.join(said[:N_NAMED])}{more}. Their results "
            "are one finding, not several: keep one hypothesis of each group."
        )


def warn_of_dependence(hypotheses: Hypotheses, *, absolute: bool) -> None:
    """Warn of hypotheses that are linear combinations of others, by name; the levels of a category may sum to one."""
    Z = standardise(_vectors(hypotheses)).values
    kept: list[int] = []
    for place, z in enumerate(Z.T):
        if len(kept) >= len(Z) - 2:  # as many columns explain everything
            return
        weights = np.linalg.lstsq(Z[:, kept], z, rcond=None)[0] if kept else np.zeros(0)
        if np.sum((z - Z[:, kept] @ weights) ** 2) > DEPENDENT:
            kept.append(place)
            continue
        parts = np.flatnonzero(np.abs(weights) > 1e-4)
        is_duplicate = len(parts) == 1 and (absolute or weights[parts[0]] > 0)
        if not is_duplicate:
            _warn_of_combination(hypotheses, place, [kept[k] for k in parts])


def _warn_of_combination(hypotheses: Hypotheses, place: int, parts: list[int]) -> None:
    if not _are_levels(_vectors(hypotheses)[:, [*parts, place]]):
        others = _listed([hypotheses.names[k] for k in parts])
        _warn(
            f"Hypothesis {hypotheses.names[place]!r} is a linear combination of {others}: their results are not "
            "independent of each other. Leave one of them out, or do not count them as separate findings."
        )


def _are_levels(X: NDArray[np.float64]) -> bool:
    """Whether columns say for each item which one of several values a category has."""
    highest, lowest = (np.equal(X, extreme) for extreme in (X.max(axis=0), X.min(axis=0)))
    return bool((highest.sum(axis=1) == 1).all() and (highest | lowest).all())


def vector_correlations(hypotheses: Hypotheses) -> NDArray[np.float64]:
    """Correlations between properties, over items."""
    Z = standardise(_vectors(hypotheses)).values
    return Z.T @ Z


def model_correlations(hypotheses: Hypotheses) -> NDArray[np.float64]:
    """Correlations between models of pairs, over all pairs that both know; x x^T for a property x."""
    rows_of = _model_rows(hypotheses)
    n = len(hypotheses.names)
    count, one, square, product = np.zeros((4, n, n))
    for row in range(len(hypotheses.matrices[0] if hypotheses.vectors is None else hypotheses.vectors) - 1):
        model = rows_of(row)
        known = ~np.isnan(model)
        model, weight = np.where(known, model, 0.0), known.astype(np.float64)
        count += weight @ weight.T
        one += model @ weight.T
        square += model**2 @ weight.T
        product += model @ model.T
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = square - one**2 / count
        return np.nan_to_num((product - one * one.T / count) / np.sqrt(spread * spread.T), posinf=0.0, neginf=0.0)


def _model_rows(hypotheses: Hypotheses) -> Callable[[int], NDArray[np.float64]]:
    """A function from an item to its pairs with later items, one row per model, about a middle value."""
    if hypotheses.vectors is not None:
        X = hypotheses.vectors / np.abs(hypotheses.vectors).max(axis=0)
        middle = np.median(X, axis=0) ** 2
        return lambda row: (X[row] * X[row + 1 :] - middle).T
    models = [near_one(matrix) for matrix in hypotheses.matrices]
    means = np.array([np.nanmean(model) if np.isfinite(model).any() else 0.0 for model in models])[:, None]
    return lambda row: np.stack([model[row, row + 1 :] for model in models]) - means


def shared_variance(X: NDArray[np.float64], *, absolute: bool) -> NDArray[np.float64]:
    """The share of each column's variance that the others explain.

    By any linear combination where hypotheses are matched on absolute correlations, by one without negative weights
    where they are matched on signed ones: opposite hypotheses do not compete for a dimension then.
    """
    Z: NDArray[np.float64] = np.asarray(np.linalg.qr(standardise(X).values, mode="r"))  # keeps products of columns
    shares = np.zeros(Z.shape[1])
    for place, z in enumerate(Z.T if Z.shape[1] > 1 else ()):
        others = np.delete(Z, place, axis=1)
        weights = np.linalg.lstsq(others, z, rcond=None)[0] if absolute else nnls(others, z, maxiter=1000 * len(Z.T))[0]
        shares[place] = 1 - np.sum((z - others @ weights) ** 2) / np.sum(z**2)
    return shares


def _vectors(hypotheses: Hypotheses) -> NDArray[np.float64]:
    assert hypotheses.vectors is not None
    return hypotheses.vectors


def _listed(names: list[str]) -> str:
    quoted = [repr(name) for name in names[:N_NAMED]]
    if len(names) > N_NAMED:
        return f"{', '.join(quoted)} and {len(names) - N_NAMED} more"
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}" if len(quoted) > 1 else quoted[0]
