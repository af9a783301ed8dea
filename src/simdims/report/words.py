"""The summary of the page, in plain words and a few figures."""

from __future__ import annotations

from simdims.discovery.result import Discovery
from simdims.inference import HypothesisTests

#: Reliabilities below this are worth a word.
_LOW = 0.8


def paragraphs(found: Discovery, tests: HypothesisTests | None) -> list[str]:
    """What was found, a reader's first minute."""
    texts = [_lead(found), _number(found), _stability(found)]
    if tests is not None:
        n, n_significant = len(tests.hypotheses), int(tests.significant.sum())
        verb = "was" if n_significant == 1 else "were"
        how_many = f"{n_significant or 'None'} of {_count(n, 'hypothesis', 'hypotheses')} {verb}"
        if n_significant == n > 1:
            how_many = f"All {n} hypotheses were"
        texts.append(f"{how_many} significant (false discovery rate {tests.alpha:g}).")
    return texts


def figures(found: Discovery) -> list[tuple[str, str]]:
    """The numbers at the head of the page, each with what it is."""
    shown = [(f"{found.n_items:,}", "items"), (f"{found.n_components}", _word(found.n_components, "dimension"))]
    if "explained_variance" in found.metrics:
        shown.append((_percent(max(found.metrics["explained_variance"], 0.0)), "of the variance explained"))
    if "link_auc" in found.metrics:
        shown.append((f"{found.metrics['link_auc']:.2f}", "AUC of telling linked pairs from others"))
    shown.append((f"{found.consensus.mean_reliability:.2f}", "mean reliability"))
    if found.similarity.density < 1:
        shown.append((_percent(found.similarity.density), "of the pairs observed"))
    return shown


def _lead(found: Discovery) -> str:
    n = found.n_components
    text = f"The similarities of {found.n_items:,} items can be described by {_count(n, 'dimension')}"
    explained = found.metrics.get("explained_variance")
    if explained is None:
        return f"{text}."
    if explained <= 0:
        return f"{text}, but they predict them no better than one number for all pairs would."
    they = "together account" if n > 1 else "accounts"
    return f"{text}, which {they} for {_percent(explained)} of how the similarities vary."


def _number(found: Discovery) -> str:
    selection = found.selection
    if selection is None:
        return f"The number of dimensions, {found.n_components}, was given, not chosen from the data."
    text = (
        "The number of dimensions was chosen by how well similarities are predicted that a fit has not seen: of "
        f"{len(selection.tried)} numbers tried, "
    )
    if selection.rank == selection.minimum:
        text += f"{selection.rank} did best"
    else:
        text += f"{selection.minimum} did best, and {selection.rank} is the smallest that is not clearly worse"
    others = [rank for rank in selection.valley if rank not in (selection.rank, selection.minimum)]
    if others:
        text += f"; the data cannot tell {_range(selection.valley)} from the best"
    text += "."
    if selection.at_edge:
        text += f" No more than {selection.minimum} were tried, and more may be better."
    return text


def _stability(found: Discovery) -> str:
    consensus = found.consensus
    shown = consensus.reliability.round(2)
    low = [k for k in consensus.reliability.argsort(kind="stable") if shown[k] < _LOW]
    text = (
        f"Fitted {_times(consensus.n_runs)}, the dimensions come back with a mean "
        f"reliability of {consensus.mean_reliability:.2f}, where 1 would be the same every time."
    )
    if not low:
        return text + (f" None is below {_LOW}." if found.n_components > 1 else "")
    if len(low) == found.n_components:
        return text + f" All are below {_LOW}: read them with care."
    named = ", ".join(f"{k + 1} ({consensus.reliability[k]:.2f})" for k in low[:4])
    more = f" and {len(low) - 4} more" if len(low) > 4 else ""
    return text + f" Read with care: {_word(len(low), 'dimension')} {named}{more}."


def _times(n_runs: int) -> str:
    return "once" if n_runs == 1 else f"{n_runs} times from different random starts"


def _range(ranks: tuple[int, ...]) -> str:
    if len(ranks) == 1:
        return str(ranks[0])
    if ranks == tuple(range(min(ranks), max(ranks) + 1)):
        return f"{min(ranks)} to {max(ranks)}"
    return ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}"


def _count(number: int, what: str, many: str | None = None) -> str:
    return f"{number:,} {_word(number, what, many)}"


def _word(number: int, what: str, many: str | None = None) -> str:
    return what if number == 1 else many or f"{what}s"


def _percent(share: float) -> str:
    return f"{share:.0%}" if 0.1 <= share <= 0.99 else f"{share:.1%}"
