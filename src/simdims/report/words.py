"""The summary on the page, as sentences and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simdims.consensus.result import LOW, low_values
from simdims.discovery.result import Discovery
from simdims.inference import HypothesisTests

if TYPE_CHECKING:
    from simdims.uncertainty import Bootstrap

#: Dimensions that come back less often than this are named.
_OFTEN = 0.8


def heading(found: Discovery) -> str:
    """The default title of a page."""
    title = f"{_count(found.n_components, 'dimension')} of {_count(found.n_items, 'item')}{_in_systems(found)}"
    return f"No evidence of structure: {title}" if found.evidence_of_structure is False else title


def paragraphs(
    found: Discovery, tests: HypothesisTests | None = None, uncertainty: Bootstrap | None = None
) -> list[str]:
    """Summarise the result, its resamples and the tests."""
    texts = [_fit(found), _number(found), _stability(found)]
    texts += [] if uncertainty is None else [_resampled(uncertainty)]
    if found.systems is not None:
        texts.insert(1, " ".join([found.systems.summary(), found.noise_ceiling_words]).rstrip())
    if tests is not None:
        n, n_significant = len(tests.hypotheses), int(tests.significant.sum())
        verb = "was" if n_significant == 1 else "were"
        how_many = f"{n_significant or 'None'} of {_count(n, 'hypothesis', 'hypotheses')} {verb}"
        if n_significant == n > 1:
            how_many = f"All {n} hypotheses were"
        texts.append(f"{how_many} significant (false discovery rate {tests.alpha:g}).")
    if found.seed is not None:
        texts.append(f"Random seed: {found.seed}.")
    return texts


def figures(found: Discovery) -> list[tuple[str, str]]:
    """The numbers at the top of the page, with their names."""
    shown = [(f"{found.n_items:,}", "items"), (f"{found.n_components}", _word(found.n_components, "dimension"))]
    if found.weights is not None:
        shown.insert(1, (f"{len(found.weights):,}", _word(len(found.weights), "system")))
    if found.held_out is not None:
        shown.append((f"{found.held_out.r2:.3f}", f"held-out R2 (standard error {found.held_out.standard_error:.3f})"))
    if found.average_r2 is not None and found.noise_ceiling is not None and found.noise_ceiling.upper > 0:
        share = f"{found.average_r2 / found.noise_ceiling.upper:.0%}"
        r2 = f"held-out R2 {found.average_r2:.3f} of {found.noise_ceiling.upper:.3f}, upper bound"
        shown.append((share, f"of the noise ceiling, reached by the average for everyone ({r2})"))
    if "explained_variance" in found.metrics:
        shown.append((f"{found.metrics['explained_variance']:.3f}", "in-sample R2"))
    if "link_auc" in found.metrics:
        shown.append((f"{found.metrics['link_auc']:.2f}", "in-sample AUC of linked against other pairs"))
    shown.append((f"{found.consensus.mean_reliability:.2f}", "mean reliability across random starts"))
    if found.similarity.density < 1:
        shown.append((percent(found.similarity.density), "of the pairs observed"))
    return shown


def _fit(found: Discovery) -> str:
    n, held = found.n_components, found.held_out
    explained = found.metrics.get("explained_variance")
    in_sample = "" if explained is None else f"{percent(max(explained, 0.0))} of the variance in sample"
    if held is not None and not held.is_evidence:
        fitted = f" Fitted nevertheless, {_count(n, 'dimension')} {_word(n, 'explains', 'explain')} {in_sample}."
        return held.verdict() + (fitted if in_sample else "")
    items = f"{found.n_items:,} items{_in_systems(found)}"
    text = f"The similarities of {items} can be described by {_count(n, 'dimension')}"
    if held is not None:
        better = f"{percent(held.r2)} of the variance of held-out similarities"
        beside = f" ({in_sample})" if in_sample else ""
        return f"{text}, which {_word(n, 'explains', 'together explain')} {better}{beside}."
    if explained is None:
        return f"{text}. {found.held_out_words}."
    if explained <= 0:
        return f"{text}, but they predict them no better than the mean of all pairs. {found.held_out_words}."
    return f"{text}, which {_word(n, 'explains', 'together explain')} {in_sample}. {found.held_out_words}."


def _in_systems(found: Discovery) -> str:
    return "" if found.weights is None else f" in {_count(len(found.weights), 'system')}"


def _number(found: Discovery) -> str:
    selection = found.selection
    if selection is None:
        given = f"The number of dimensions, {found.n_components}, was given, not chosen from the data."
        return f"{given} {_penalty(found)}".rstrip()
    if len(selection.tried) == 1:
        return f"The number of dimensions, {selection.rank}, is {selection.choice()}."
    number = f"{selection.rank}{selection.resamples()}: {selection.choice()}"
    sentences = [f"Cross-validation chose the number of dimensions, {number}."]
    sentences += [selection.edge(), found.detected(), _penalty(found)]
    return " ".join(sentence for sentence in sentences if sentence)


def _penalty(found: Discovery) -> str:
    alpha = found.consensus.alpha
    if alpha == 0:
        return ""
    chosen = ", chosen by held-out pairs" if found.settings.get("alpha") == "auto" else ""
    return f"Fits had a penalty on the loadings (alpha = {alpha:.3g}{chosen})."


def _stability(found: Discovery) -> str:
    consensus = found.consensus
    low = low_values(consensus.reliability)
    runs = "1 fit" if consensus.n_runs == 1 else f"{consensus.n_runs} fits from different random starts"
    mean = "mean reliability of the dimensions" if found.n_components > 1 else "reliability of the dimension"
    text = f"Across {runs}, the {mean} is {consensus.mean_reliability:.2f} (1: identical in all fits)."
    if found.evidence_of_structure is False:
        return f"{text} This is no evidence of structure: fits to noise agree as well."
    if not low:
        return text + (f" None is below {LOW}." if found.n_components > 1 else "")
    if len(low) == found.n_components:
        return text + f" {'All are' if len(low) > 1 else 'It is'} below {LOW}: interpret with care."
    named = ", ".join(f"{k + 1} ({shown})" for k, shown in list(low.items())[:4])
    more = f" and {len(low) - 4} more" if len(low) > 4 else ""
    return text + f" Interpret with care: {_word(len(low), 'dimension')} {named}{more}."


def _resampled(sure: Bootstrap) -> str:
    """How often dimensions came back, and which ones did so in few resamples."""
    back = sure.came_back
    low, high = f"{back.min():.0%}", f"{back.max():.0%}"
    share = low if low == high else f"{low} to {high}"
    rare = [f"{k + 1} ({back[k]:.0%})" for k in back.argsort(kind="stable") if back[k] < _OFTEN]
    text = (
        f"In {sure.n_resamples} resampled {sure.resampled_words}, the dimensions came back "
        f"(r >= {sure.threshold:g}) in {share} of the resamples."
    )
    if not rare:
        return text
    more = f" and {len(rare) - 4} more" if len(rare) > 4 else ""
    return f"{text} Less often than in {_OFTEN:.0%}: {_word(len(rare), 'dimension')} {', '.join(rare[:4])}{more}."


def _count(number: int, what: str, many: str | None = None) -> str:
    return f"{number:,} {_word(number, what, many)}"


def _word(number: int, what: str, many: str | None = None) -> str:
    return what if number == 1 else many or f"{what}s"


def percent(share: float) -> str:
    """A share in percent, with more digits near 0 and 1."""
    return f"{share:.0%}" if 0.1 <= share <= 0.99 else f"{share:.1%}"
