"""RankSelection.resampled: what would be chosen with other items."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from similarity_examples import similarities

from simdims import select_rank
from simdims.selection import resampling
from simdims.selection.resampling import Resampled, resample_choice
from simdims.selection.result import (
    CLEARLY,
    LEAST_SHARE,
    MOST_WORSE,
    NEGLIGIBLE,
    ONE_IS_ENOUGH,
    Rule,
    Score,
    choose,
    difference,
)


def score_of(errors):
    """The score of one rank from the errors of all pairs (i < j), each held out once and of the same weight."""
    n = len(errors)
    pairs = np.triu_indices(n, 1)
    share = 1 / len(pairs[0])
    items, sample = np.zeros((3, n)), np.zeros((3, len(pairs[0])))
    for at, (i, j) in enumerate(zip(*pairs, strict=True)):
        for row, part in enumerate((share * errors[i, j], share * errors[i, j], share)):
            items[row, i] += part
            items[row, j] += part
            sample[row, at] = part
    mean = float(errors[pairs].mean())
    return Score([{"error": mean, "error_alone": mean}], items, sample, 1.0)


def simulated_scores(seed, gaps, n=60, spread=0.2, by_item=0.05):
    """Errors of pairs with common, item-wise and own parts, and mean differences to the first rank."""
    rng = np.random.default_rng(seed)
    common = rng.exponential(size=(n, n))
    found = {}
    for rank, gap in gaps.items():
        of_items = by_item * rng.standard_normal(n)
        found[rank] = score_of(1 + common + gap + spread * rng.standard_normal((n, n)) + of_items[:, None] + of_items)
    return found


def slow_resamples(scores, protocol, variance, rng):
    """By loops, with the same random numbers."""
    ranks = sorted(scores)
    minimum = choose(scores, Rule(protocol, variance))[0]
    row = 1 if protocol == "paper" else 0
    n = scores[minimum].items.shape[1]
    errors = {rank: float(np.mean([fit["error"] for fit in scores[rank].fits])) for rank in ranks}
    found = dict.fromkeys(ranks, 0)
    for counts in rng.multinomial(n, np.full(n, 1 / n), size=1000):
        drawn = {}
        for rank in ranks:
            gap, error = difference(scores[rank], scores[minimum], protocol)
            parts = [
                scores[rank].items[row, i] - scores[minimum].items[row, i] - gap * scores[rank].items[2, i]
                for i in range(n)
            ]
            size = np.sqrt(sum(part**2 for part in parts))
            change = sum((counts[i] - 1) * parts[i] for i in range(n))
            drawn[rank] = errors[rank] + (change * error / size if size > 0 else 0.0)
        best = min(ranks, key=lambda rank: drawn[rank])
        errors_of_gaps = {rank: difference(scores[rank], scores[best], protocol)[1] for rank in ranks}
        if protocol == "averaged":
            chosen = min(
                rank
                for rank in ranks
                if drawn[rank] - drawn[best]
                <= max(min(CLEARLY * errors_of_gaps[rank], MOST_WORSE * drawn[best]), NEGLIGIBLE * variance)
            )
        elif drawn[1] - drawn[best] <= ONE_IS_ENOUGH[None] * errors_of_gaps[1]:
            chosen = 1
        else:
            price = LEAST_SHARE * max(0.0, variance - drawn[best])
            chosen = min(ranks, key=lambda rank: drawn[rank] + price * rank)
        found[chosen] += 1
    return {rank: count / 1000 for rank, count in found.items() if count}


@pytest.mark.parametrize("protocol", ["penalised", "averaged"])
def test_choices_are_those_of_the_obvious_loops(protocol):
    scores = simulated_scores(0, {1: 0.11, 2: 0.1, 3: 0.02, 4: 0.0, 6: 0.01}, n=20)
    found = resample_choice(scores, Rule(protocol, 3.0), np.random.default_rng(3))
    expected = slow_resamples(scores, protocol, 3.0, np.random.default_rng(3))
    assert dict(zip(found.ranks, found.frequencies, strict=True)) == pytest.approx(expected)
    assert len(found.ranks) > 1


def test_the_papers_choice_is_the_smallest_error_of_each_resample():
    scores = simulated_scores(1, {2: 0.0, 5: 0.0})
    gap, error = difference(scores[2], scores[5], "paper")
    found = resample_choice(scores, Rule("paper", 1.0), np.random.default_rng(0))
    expected = norm.cdf(-gap / error)  # that the resampled difference is negative
    assert dict(zip(found.ranks, found.frequencies, strict=True))[2] == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("by_item", [0.0, 0.3])
@pytest.mark.parametrize("gap", [0.0, 0.01, 0.04])
def test_resampled_differences_spread_as_their_standard_error_says(gap, by_item):
    """Of two ranks, the smaller is chosen where its resampled error exceeds the other by at most what is allowed."""
    scores = simulated_scores(2, {3: gap, 7: 0.0}, by_item=by_item, spread=0.5)
    mean, error = difference(scores[3], scores[7], "averaged")
    allowed = max(2 * error, 1e-3)
    found = resample_choice(scores, Rule("averaged", 1.0), np.random.default_rng(0))
    share = dict(zip(found.ranks, found.frequencies, strict=True)).get(3, 0.0)
    assert share == pytest.approx(norm.cdf((allowed - mean) / error), abs=0.05)


def test_many_items_are_drawn_in_parts(monkeypatch):
    scores = simulated_scores(3, {2: 0.01, 3: 0.0})
    whole = resample_choice(scores, Rule("penalised", 1.0), np.random.default_rng(0))
    monkeypatch.setattr(resampling, "_CHUNK", 60 * 70)
    assert resample_choice(scores, Rule("penalised", 1.0), np.random.default_rng(0)) == whole


def test_intervals_leave_out_the_same_share_at_either_end():
    found = Resampled((7, 8, 9, 11, 15), (0.05, 0.1, 0.7, 0.1, 0.05), 1000)
    assert found.interval() == (8, 11)
    assert found.interval(0.5) == (9, 9)
    assert found.interval(0.98) == (7, 15)
    assert found.words() == "90% of resamples: 8 to 11"
    assert found.words(0.5) == "50% of resamples: 9"
    assert Resampled((4,), (1.0,), 1000).interval() == (4, 4)


def test_selections_say_what_resamples_choose():
    S = similarities(n=40, snr=0.5)
    selection = select_rank(S, range(1, 7), sampling=0.6, n_folds=3, n_repeats=2, random_state=0)
    found = selection.resampled
    assert sum(found.frequencies) == pytest.approx(1.0)
    assert set(found.ranks) <= set(selection.tried)
    low, high = found.interval()
    assert low <= selection.rank <= high
    assert f"selected ({found.words()}): " in selection.summary()
    assert selection.to_dict()["resampled"] == found._asdict()
    again = select_rank(S, range(1, 7), sampling=0.6, n_folds=3, n_repeats=2, random_state=0)
    assert again.resampled == found
    assert "resamples" not in replace(selection, resampled=None).summary()


def test_a_single_number_leaves_nothing_to_resample():
    selection = select_rank(similarities(n=40), [3], sampling=0.6, n_folds=3, n_repeats=1, random_state=0)
    assert selection.resampled.ranks == (3,)
    assert "resamples" not in selection.summary()


@pytest.mark.slow
def test_intervals_contain_what_other_data_sets_choose():
    """Fits are not repeated, so that intervals are rather short: at least two thirds contain the typical choice."""
    options = {"alpha": 0.3, "n_repeats": 2, "progress": False}
    found = [
        select_rank(similarities(n=80, r=5, snr=0.35, seed=seed), range(1, 11), random_state=seed, **options)
        for seed in range(16)
    ]
    typical = np.median([one.rank for one in found])
    held = [low <= typical <= high for low, high in (one.resampled.interval() for one in found)]
    assert np.mean(held) >= 2 / 3
    clear = select_rank(similarities(n=80, r=5, snr=0.8), range(1, 11), random_state=0, **options)
    assert clear.resampled.interval() == (5, 5)
