"""Strategies for choosing pairs, and accuracy of plans from small pilots, by replaying complete sets of ratings.

    python benchmarks/bench_planning.py [choice | pilots] [--data ../shared/data]

choice: pairs of complete ratings are revealed step by step: at random, balanced over items, or by the variance of
predictions over an ensemble of fits (the most uncertain first, or drawn with probabilities that increase with the
uncertainty). R2 is on a random 30% of the pairs, the same for all strategies, that are never revealed.

pilots: a plan is made from a random subset of the pairs; the R2 that it predicts for larger studies is compared with
that of real fits to the same number of real pairs.

Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from simdims import SRF, SimilaritySet, as_similarity, from_dissimilarity, plan_study

#: Shares of the pairs at which strategies are compared; the first ones are random for all.
SHARES = (0.1, 0.15, 0.2, 0.3, 0.4)
N_STARTS = 5
#: Share of the pairs that are never revealed and test all strategies.
TEST = 0.3
Pairs = tuple[np.ndarray, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["choice", "pilots"])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SIMDIMS_DATA", "../shared/data")))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = complete_sets(options.data)
    if options.what != "pilots":
        compare_choices(sets, options.repeats)
    if options.what != "choice":
        check_pilots(sets, options.repeats)


def complete_sets(folder: Path) -> dict[str, tuple[np.ndarray, int]]:
    """Complete similarities and the number of dimensions to fit."""
    animals = np.load(folder / "peterson_animals" / "animals_similarity.npy").astype(float)
    people = from_dissimilarity(folder / "mur92" / "92_behavRDMs.mat", by="person")
    images = people.mean() if isinstance(people, SimilaritySet) else people
    brain = from_dissimilarity(folder / "mur92" / "rdm_humanIT_2008.csv")
    found = {
        "animals, ratings": (animals, 10),
        "images, arranged": (dense(images), 10),
        "images, brain": (dense(brain), 6),
    }
    for S, _ in found.values():
        np.fill_diagonal(S, np.nan)
    return found


def dense(S: object) -> np.ndarray:
    return as_similarity(S).to_frame().to_numpy(dtype=float, copy=True)


def compare_choices(sets: dict[str, tuple[np.ndarray, int]], n_repeats: int) -> None:
    """R2 of test pairs, by strategy."""
    strategies: dict[str, Callable] = {
        "random": random_pairs,
        "balanced": balanced_pairs,
        "most uncertain": most_uncertain,
        "uncertain, drawn": drawn_by_uncertainty,
    }
    print("| data | pairs | " + " | ".join(strategies) + " |\n|---" * 1 + "|---" * (1 + len(strategies)) + "|")
    for name, (S, rank) in sets.items():
        scores = {
            strategy: np.mean([replay(S, rank, choose, seed) for seed in range(n_repeats)], axis=0)
            for strategy, choose in strategies.items()
        }
        n_pairs = len(S) * (len(S) - 1) // 2
        for k, share in enumerate(SHARES[1:]):
            cells = " | ".join(f"{score[k]:.2f}" for score in scores.values())
            print(f"| {name} | {share * n_pairs:,.0f} of {n_pairs:,} | {cells} |", flush=True)


def replay(S: np.ndarray, rank: int, choose: Callable, seed: int) -> list[float]:
    """R2 after each step."""
    rng = np.random.default_rng(seed)
    rows, columns = np.triu_indices(len(S), 1)
    n_pairs = len(rows)
    order = rng.permutation(n_pairs)
    test, pool = np.split(order, [round(TEST * n_pairs)])
    rows, columns, true = rows[pool], columns[pool], S[rows[test], columns[test]]
    at = np.triu_indices(len(S), 1)[0][test], np.triu_indices(len(S), 1)[1][test]
    shown = np.arange(len(pool)) < SHARES[0] * n_pairs
    scores = []
    for share in SHARES[1:]:
        n_new = round(share * n_pairs) - int(shown.sum())
        shown[choose(S, (rows, columns), shown, n_new, rank, rng)] = True
        W = fit(S, (rows, columns), shown, rank, seed)
        scores.append(1 - np.mean((true - (W @ W.T)[at]) ** 2) / true.var())
    return scores


def fit(S: np.ndarray, pairs: Pairs, shown: np.ndarray, rank: int, seed: int) -> np.ndarray:
    known = np.full(S.shape, np.nan)
    for one, other in (pairs, pairs[::-1]):
        known[one[shown], other[shown]] = S[one[shown], other[shown]]
    return SRF(rank, alpha="auto", random_state=seed).fit(known).embedding_


def random_pairs(S, pairs, shown, n_new, rank, rng):
    return rng.permutation(np.flatnonzero(~shown))[:n_new]


def balanced_pairs(S, pairs, shown, n_new, rank, rng):
    """Add one pair at a time, of the items with the fewest pairs."""
    counts = np.bincount(np.concatenate([side[shown] for side in pairs]), minlength=len(S)).astype(float)
    left, chosen = set(np.flatnonzero(~shown).tolist()), []
    for _ in range(n_new):
        some = rng.choice(list(left), min(200, len(left)), replace=False)
        best = some[np.argmin(counts[pairs[0][some]] + counts[pairs[1][some]])]
        counts[[pairs[0][best], pairs[1][best]]] += 1
        left.remove(int(best))
        chosen.append(int(best))
    return np.array(chosen)


def uncertainty(S, pairs, shown, rank, rng):
    """Variance of the predictions of fits to random four fifths of the known pairs."""
    predictions = []
    for _ in range(N_STARTS):
        some = shown & (rng.random(len(shown)) < 0.8)
        counts = np.bincount(np.concatenate([side[some] for side in pairs]), minlength=len(S))
        some |= shown & ((counts[pairs[0]] == 0) | (counts[pairs[1]] == 0))
        W = fit(S, pairs, some, rank, int(rng.integers(2**31)))
        predictions.append((W @ W.T)[pairs])
    return np.where(shown, 0.0, np.var(predictions, axis=0))


def most_uncertain(S, pairs, shown, n_new, rank, rng):
    return np.argsort(-uncertainty(S, pairs, shown, rank, rng))[:n_new]


def drawn_by_uncertainty(S, pairs, shown, n_new, rank, rng):
    weights = uncertainty(S, pairs, shown, rank, rng)
    return rng.choice(len(weights), n_new, replace=False, p=weights / weights.sum())


def check_pilots(sets: dict[str, tuple[np.ndarray, int]], n_repeats: int) -> None:
    """Compare predictions of plans from small pilots with actual results."""
    print("\n| data | pilot | study | R2 planned | R2 found |\n|---|---|---|---|---|")
    for name, (S, _) in sets.items():
        for pilot_share in (0.2, 0.4):
            planned, found = [], []
            for seed in range(n_repeats):
                rng = np.random.default_rng(100 + seed)
                pairs = np.triu_indices(len(S), 1)
                place = np.empty(len(pairs[0]), dtype=int)
                place[rng.permutation(len(place))] = np.arange(len(place))
                pilot = np.full(S.shape, np.nan)
                judged = place < pilot_share * len(place)
                for one, other in (pairs, pairs[::-1]):
                    pilot[one[judged], other[judged]] = S[one[judged], other[judged]]
                plan = plan_study(pilot, pairs=[0.6, 0.9], answers=1, n_repeats=2, random_state=seed)
                planned.append(plan.table["reported_r2"].to_numpy())
                real = []
                for share in (0.6, 0.9):
                    shown = place < share * len(place)
                    W = fit(S, pairs, shown, plan.n_components, seed)
                    rest, predicted = S[pairs][~shown], (W @ W.T)[pairs][~shown]
                    real.append(1 - np.mean((rest - predicted) ** 2) / rest.var())
                found.append(real)
            for k, share in enumerate((0.6, 0.9)):
                one, other = np.mean(planned, axis=0)[k], np.mean(found, axis=0)[k]
                print(f"| {name} | {pilot_share:.0%} | {share:.0%} | {one:.2f} | {other:.2f} |", flush=True)


if __name__ == "__main__":
    main()
