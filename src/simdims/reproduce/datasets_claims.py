"""The words of `datasets`: published values beside ours, tables, and what to get where a file is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simdims.reproduce.datasets import SIMULATED_RANK, Found
from simdims.reproduce.frame import Claim, Settings
from simdims.reproduce.recipes import RECIPES, Recipe

if TYPE_CHECKING:
    import pandas as pd

#: How far a value may be from the published one to count as the same.
SAMPLING_MARGIN, R2_MARGIN, AUC_MARGIN, RELIABILITY_MARGIN = 0.05, 0.05, 0.03, 0.02

#: The paper: mean reliability of every data set is above this, and the median R2 of dense ones is that.
LEAST_RELIABILITY, MEDIAN_R2 = 0.82, 0.88

#: Percentage of pairs from which on a data set is densely sampled.
DENSE = 90.0


def claims(settings: Settings, found: list[Found]) -> list[Claim]:
    """What the paper says of each data set, and of all."""
    return [claim for one in found for claim in _of_one(settings, one)] + _of_all(settings, found)


def _of_one(settings: Settings, one: Found) -> list[Claim]:
    """The number of dimensions and, where the data are the paper's, all that its table says."""
    said = (
        f"{one.rank} by select_rank, {one.paper_rank} by the smallest error, {_stretch(one.flat_stretch)} within one "
        "standard error of it"
    )
    if one.published is None:
        agrees = None if settings.size == "smoke" else one.rank == SIMULATED_RANK
        return [Claim("Simulated: number of dimensions", f"{SIMULATED_RANK} (the truth)", said, agrees, in_paper=False)]
    row = one.published
    note = _note(one)
    can_tell = one.is_comparable and settings.size != "smoke"

    def agreed(holds: bool) -> bool | None:
        return bool(holds) if can_tell else None

    claims = [
        Claim(
            f"{one.name}: number of dimensions{note}",
            str(row.rank),
            said,
            agreed(row.rank in {one.rank, *one.flat_stretch}),
        )
    ]
    if not one.is_comparable:
        return claims
    off = abs(one.sampling - row.sampling)
    claims.append(
        Claim(f"{one.name}: p*", f"{row.sampling:.2f}", f"{one.sampling:.2f}", agreed(off <= SAMPLING_MARGIN))
    )
    at_published = one.r2_published_rank is not None
    at = f" at rank {row.rank if at_published else one.rank}"
    if row.r2 is not None:
        ours = one.r2_published_rank if at_published else one.r2
        holds = ours is not None and abs(ours - row.r2) <= R2_MARGIN
        claims.append(Claim(f"{one.name}: R2", f"{row.r2:.2f}", f"{_text(ours)}{at}", agreed(holds)))
    if row.auc is not None:
        holds = one.auc is not None and abs(one.auc - row.auc) <= AUC_MARGIN
        claims.append(Claim(f"{one.name}: AUC of links", f"{row.auc:.2f}", _text(one.auc), agreed(holds)))
    again = one.reliability_published_rank
    reliability = one.reliability if again is None else again
    above = reliability - row.least_reliability
    holds = above >= -RELIABILITY_MARGIN if row.is_least else abs(above) <= RELIABILITY_MARGIN
    fisher = f" ({one.fisher_published_rank:.3f} by Fisher's z)" if one.fisher_published_rank is not None else ""
    claims.append(Claim(f"{one.name}: reliability", row.reliability, f"{reliability:.3f}{at}{fisher}", agreed(holds)))
    return claims


def _of_all(settings: Settings, found: list[Found]) -> list[Claim]:
    """What the paper says of all data sets together; only all of them could tell."""
    real = [one for one in found if one.published is not None]
    if not real:
        return []
    comparable = [one for one in real if one.is_comparable]
    all_there = settings.size != "smoke" and {one.name for one in comparable} == {
        name for name, recipe in RECIPES.items() if not recipe.other_data
    }
    # Other data than the paper's must not decide what it says of its own.
    real = comparable if all_there else real
    dense = [one.r2 for one in real if one.r2 is not None and one.coverage > DENSE]
    least = min(one.reliability for one in real)
    return [
        Claim(
            "Reliability of every data set",
            f"above {LEAST_RELIABILITY}",
            f"at least {least:.3f} in {len(real)} data sets",
            least >= LEAST_RELIABILITY if all_there else None,
        ),
        *(
            [
                Claim(
                    "Median R2 of densely sampled data sets",
                    f"{MEDIAN_R2}",
                    f"{np.median(dense):.2f} of {len(dense)}",
                    bool(abs(np.median(dense) - MEDIAN_R2) <= R2_MARGIN) if all_there else None,
                )
            ]
            if dense
            else []
        ),
    ]


def tables(found: list[Found], missing: dict[str, Recipe]) -> dict[str, pd.DataFrame]:
    """Ranks, fits, and what was not run."""
    import pandas as pd

    ranks = [
        {
            "data set": one.name,
            "row of the table": one.published.title if one.published else "-",
            "other data": "yes" if one.recipe is None or one.recipe.other_data else "",
            "items (published)": _of(one, "n_items"),
            "items": one.n_items,
            "coverage % (published)": _of(one, "coverage"),
            "coverage %": one.coverage,
            "p* (published)": _of(one, "sampling"),
            "p*": one.sampling,
            "rank (published)": _of(one, "rank"),
            "rank": one.rank,
            "smallest error": one.paper_rank,
            "within one standard error": _stretch(one.flat_stretch),
        }
        for one in found
    ]
    fits = [
        {
            "data set": one.name,
            "R2 (published)": _of(one, "r2"),
            "R2": _dash(one.r2),
            "R2 at the published rank": _dash(one.r2_published_rank),
            "AUC (published)": _of(one, "auc"),
            "AUC": _dash(one.auc),
            "reliability (published)": _of(one, "reliability"),
            "reliability": one.reliability,
            "at the published rank": _dash(one.reliability_published_rank),
            "by Fisher's z": _dash(one.fisher_published_rank),
        }
        for one in found
    ]
    found_tables = {"Number of dimensions": pd.DataFrame(ranks), "Fit and reliability": pd.DataFrame(fits)}
    if missing:
        rows = [{"data set": name, "file": " or ".join(recipe.files)} for name, recipe in missing.items()]
        found_tables["Not run, for want of a file in the data folder"] = pd.DataFrame(rows)
    return found_tables


def remarks(settings: Settings, found: list[Found], missing: dict[str, Recipe], left_out: list[str]) -> list[str]:
    """What was run, where it differs, and what to get."""
    said = [
        "The paper takes the number of dimensions with the smallest error of single fits ('smallest error'); "
        "select_rank averages fits and takes the smallest number that is not clearly worse. R2, AUC and reliability "
        "are those of the rank that select_rank chose."
    ]
    if any(one.fisher_published_rank is not None for one in found):
        said.append(
            "Reliability is the plain mean of the correlations between runs. A mean of Fisher's z of them, which pairs "
            "of runs that reach the same optimum decide, stands beside it; the paper does not say which it took."
        )
    said += [
        f"{one.name}{_note(one)}: {one.recipe.how}; ranks tried: {_listed(one.curve['rank'].tolist())}."
        for one in found
        if one.recipe is not None
    ]
    said += [
        f"{one.name}: the smallest error is that of the largest number of dimensions tried, {max(one.curve['rank'])}; "
        "more may be better."
        for one in found
        if one.at_edge
    ]
    said += _on_mur92(found)
    if left_out:
        said.append(f"Left out at this size, as they are large: {', '.join(left_out)}.")
    said += [
        f"{name} was not run: it needs {' or '.join(recipe.files)}, {recipe.what}; get it from {recipe.where}."
        for name, recipe in missing.items()
    ]
    return said


def _on_mur92(found: list[Found]) -> list[str]:
    """Whether the row called Mur-92 looks like judgements or like brain responses; the paper calls it the former."""
    by_name = {one.name: one for one in found}
    people, brains = by_name.get("mur92-behaviour"), by_name.get("human-it-92")
    if people is None or brains is None or people.r2_published_rank is None or brains.r2_published_rank is None:
        return []
    row = RECIPES["mur-92"].published
    nearer = "the responses of human IT" if _is_nearer(brains, people) else "the judgements"
    return [
        f"The paper's text calls Mur-92 judgements of people who arranged images. Its row has {row.rank} dimensions "
        f"and an R2 of {row.r2}. The judgements have {people.rank} dimensions, of which {row.rank} explain "
        f"{people.r2_published_rank:.2f}; the responses of human IT to the same images have {brains.rank}, and "
        f"{row.rank} explain {brains.r2_published_rank:.2f}. The row looks more like {nearer}."
    ]


def _is_nearer(one: Found, other: Found) -> bool:
    """Whether the rank of the first and the R2 at the published rank are both nearer to the row than the second's."""
    row = RECIPES["mur-92"].published
    ranks = [abs(found.rank - row.rank) for found in (one, other)]
    fits = [abs((found.r2_published_rank or 0.0) - (row.r2 or 0.0)) for found in (one, other)]
    return ranks[0] < ranks[1] and fits[0] < fits[1]


def _note(one: Found) -> str:
    """What is different about the data."""
    if one.recipe is None:
        return ""
    notes = [f"other data than {one.recipe.published.title}"] if one.recipe.other_data else []
    if not one.is_whole:
        notes.append(f"{one.n_items} of its items")
    return f" ({', '.join(notes)})" if notes else ""


def _of(one: Found, name: str) -> Any:
    return _dash(None if one.published is None else getattr(one.published, name))


def _dash(value: Any) -> Any:
    return "-" if value is None else value


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _stretch(ranks: list[int]) -> str:
    """The first and the last."""
    return str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]} to {ranks[-1]}"


def _listed(ranks: list[int]) -> str:
    """All of them, or the first and the last where none is left out between."""
    return _stretch(ranks) if len(ranks) == ranks[-1] - ranks[0] + 1 else ", ".join(map(str, ranks))
