"""Overlap between hypotheses: near duplicates, linear dependence and shared variance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from simdims._parameters import N_NAMED, shortlist, warn
from simdims.inference.hypotheses import Hypotheses
from simdims.inference.mantel import near_one
from simdims.inference.matching import standardise

# Hypotheses that correlate at least this highly cannot be distinguished.
DUPLICATE = 0.95
# A hypothesis is linearly dependent on others if they leave at most this share of its variance unexplained.
DEPENDENT = 1e-8
# If the others explain at least this share of a hypothesis's variance, joint matching is no longer nearly exact.
SHARED = 0.25


def warn_of_duplicates(hypotheses: Hypotheses, correlations: NDArray[np.float64], what: str, *, absolute: bool) -> None:
    """Warn of groups of hypotheses that are nearly the same."""
    strength = np.abs(correlations) if absolute else correlations
    groups: list[str] = []
    seen: set[int] = set()
    for first in range(len(strength)):
        others = [other for other in range(first + 1, len(strength)) if strength[first, other] >= DUPLICATE]
        if not others or seen.issuperset([first, *others]):
            continue
        seen.update([first, *others])
        values = ", ".join(f"{correlations[first, other]:.2f}" for other in others[:N_NAMED])
        groups.append(f"{shortlist([repr(hypotheses.names[k]) for k in (first, *others)])} (r = {values})")
    if groups:
        more = f", and {len(groups) - N_NAMED} more groups" if len(groups) > N_NAMED else ""
        size = f"{'|r|' if absolute else 'r'} of {DUPLICATE} or more"
        found = f"Some hypotheses are nearly the same {what} ({size}): {'; '.join(groups[:N_NAMED])}{more}."
        warn(found, "Their results are one finding, not several: keep one hypothesis of each group.")


def warn_of_dependence(hypotheses: Hypotheses, *, absolute: bool) -> None:
    """Warn of hypotheses that are linear combinations of others, except for the levels of one category."""
    Z = standardise(hypotheses.vectors).values
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
        others = [kept[k] for k in parts]
        if not is_duplicate and not _are_levels(hypotheses.vectors[:, [*others, place]]):
            name, named = hypotheses.names[place], shortlist([repr(hypotheses.names[k]) for k in others])
            found = f"Hypothesis {name!r} is a linear combination of {named}: their results are not independent."
            warn(found, "Leave one of them out, or do not count them as separate findings.")


def _are_levels(X: NDArray[np.float64]) -> bool:
    """Whether columns are the dummy coding of one category."""
    highest, lowest = (np.equal(X, extreme) for extreme in (X.max(axis=0), X.min(axis=0)))
    return bool((highest.sum(axis=1) == 1).all() and (highest | lowest).all())


def model_correlations(hypotheses: Hypotheses) -> NDArray[np.float64]:
    """Correlations between models of pairs, over the pairs that both cover; a property x gives the model x x^T."""
    matrices = hypotheses.matrices
    count, one, square, product = _matrix_sums(matrices) if matrices else _vector_sums(hypotheses.vectors)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = square - one**2 / count
        r = (product - one * one.T / count) / np.sqrt(spread * spread.T)
    return np.nan_to_num(r, posinf=0.0, neginf=0.0)


def _vector_sums(X: NDArray[np.float64]) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Number of pairs, and sums over pairs of h, h^2 and h g for models h and g, without building a model."""
    # With m the median of x and z = x - m, the model x x^T is h = m (z_i + z_j) + z_i z_j plus a constant.
    X = X / np.abs(X).max(axis=0)
    m = np.median(X, axis=0)
    Z, n = X - m, len(X)
    s, P, Q = Z.sum(axis=0), Z.T @ Z, (Z**2).T @ Z
    of_sums = np.outer(m, m) * ((n - 2) * P + np.outer(s, s))
    mixed = m[:, None] * (s * P - Q.T)
    product = of_sums + mixed + mixed.T + (P**2 - (Z**2).T @ Z**2) / 2
    total = m * (n - 1) * s + (s**2 - np.diag(P)) / 2
    ones = np.ones_like(P)
    return ones * n * (n - 1) / 2, total[:, None] * ones, np.diag(product)[:, None] * ones, product


def _matrix_sums(matrices: tuple[NDArray[np.float64], ...]) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """The same sums for model matrices, over the pairs that both models cover."""
    models = [near_one(matrix) for matrix in matrices]
    means = np.array([np.nanmean(model) if np.isfinite(model).any() else 0.0 for model in models])[:, None]
    count, one, square, product = np.zeros((4, len(models), len(models)))
    for row in range(len(models[0]) - 1):
        h = np.stack([model[row, row + 1 :] for model in models]) - means
        known = ~np.isnan(h)
        h, weight = np.where(known, h, 0.0), known.astype(np.float64)
        count += weight @ weight.T
        one += h @ weight.T
        square += h**2 @ weight.T
        product += h @ h.T
    return count, one, square, product


def shared_variance(X: NDArray[np.float64], *, absolute: bool) -> NDArray[np.float64]:
    """The share of each column's variance that the others explain by a linear combination."""
    # Matched on signed correlations, opposite hypotheses do not compete for a dimension: weights are non-negative.
    Z: NDArray[np.float64] = np.asarray(np.linalg.qr(standardise(X).values, mode="r"))  # keeps products of columns
    shares = np.zeros(Z.shape[1])
    for place, z in enumerate(Z.T if Z.shape[1] > 1 else ()):
        others = np.delete(Z, place, axis=1)
        weights = np.linalg.lstsq(others, z, rcond=None)[0] if absolute else nnls(others, z, maxiter=1000 * len(Z.T))[0]
        shares[place] = 1 - np.sum((z - others @ weights) ** 2) / np.sum(z**2)
    return shares
