"""What the paper and earlier measurements say of word associations, beside what was found, and why it differs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simdims.reproduce.frame import Cell, Claim
from simdims.reproduce.words_data import SMALL_WEIGHT, Words

#: Measured before on the USF norms, by weight: held-out AUC, SimLex-999, WordSim-353 (rank 150, 30 sweeps).
EARLIER = {0.0: (0.39, 0.39, 0.31), SMALL_WEIGHT: (0.898, 0.558, 0.736)}

#: Paper, Supplementary Table and Methods: words, pairs with a positive similarity, rank, link AUC.
PAPER_WORDS, PAPER_LINKS, PAPER_RANK, PAPER_AUC = 8647, 476_383, 268, 0.95

#: Paper, Fig. 5c: the lowest and the highest correlation.
PAPER_RATINGS = {"familiarity": 0.59, "valence": 0.84}

#: How far a number may be from another one measured on the same words: AUCs, and rank correlations.
_NEAR_AUC, _NEAR_RHO = 0.03, 0.05


@dataclass(frozen=True, eq=False)
class Seen:
    """What was run: the words, the size, and the cells of each kind."""

    words: Words
    size: str
    all_links: list[Cell]
    held_out: list[Cell]
    iterations: list[Cell]

    def fit(self, weight: float) -> Cell:
        """The fit to all links with that weight of absent pairs."""
        return next(cell for cell in self.all_links if cell["weight"] == weight)

    def held_out_auc(self, weight: float) -> float:
        """Mean AUC of the links held out with that weight of absent pairs."""
        return float(np.mean([cell["held_out_auc"] for cell in self.held_out if cell["weight"] == weight]))

    def held_out_benchmark(self, weight: float, name: str) -> float | None:
        """Mean correlation with a benchmark where links were held out; None where it was not measured."""
        cells = [cell for cell in self.held_out if cell["weight"] == weight and name in cell["benchmarks"]]
        return float(np.mean([cell["benchmarks"][name]["correlation"] for cell in cells])) if cells else None

    def path(self, start: str | None, weight: float = 0.0) -> list[Cell]:
        """A solver over its iterations, on the words with most links."""
        return next(
            cell["trace"]
            for cell in self.iterations
            if (cell["start"], cell["weight"], cell["all_words"]) == (start, weight, False)
        )

    def on_all_words(self, start: str) -> Cell | None:
        """The last iteration of ADMM on all words, where it was run."""
        found = [cell for cell in self.iterations if cell["start"] == start and cell["all_words"]]
        return {**found[0]["trace"][-1], "rank": found[0]["rank"]} if found else None


def claims(seen: Seen) -> list[Claim]:
    """The paper's numbers, of SWOW; then those measured before on the USF norms."""
    return [*_paper_claims(seen), *(claim._replace(in_paper=False) for claim in _earlier_claims(seen))]


def remarks(seen: Seen, rarity_auc: float) -> list[str]:
    """What was run, what absent pairs do, and why ADMM scores as it does."""
    return [_about_data(seen), _about_absent(seen, rarity_auc), _about_admm(seen)]


def _paper_claims(seen: Seen) -> list[Claim]:
    same = seen.words.source == "SWOW" and seen.size == "full"
    n, n_links = seen.words.similarity.n_items, _n_links(seen.words)
    small, missing = seen.fit(SMALL_WEIGHT), seen.fit(0.0)
    made = [
        Claim(
            "Words, and pairs with a positive similarity",
            f"SWOW: {PAPER_WORDS:,} words, {PAPER_LINKS:,} pairs (1.27%)",
            f"{_name(seen)}: {n:,} words, {n_links:,} pairs ({_share(n_links, n)})",
            abs(n / PAPER_WORDS - 1) < 0.01 and abs(n_links / PAPER_LINKS - 1) < 0.01 if same else None,
        ),
        Claim(
            "Link prediction, AUC of the links that were fitted",
            f"SWOW: {PAPER_AUC:.2f}",
            f"{_name(seen)}: {small['auc']:.2f} with absent pairs of weight {SMALL_WEIGHT:g}, {missing['auc']:.2f} "
            "with absent pairs missing",
            abs(small["auc"] - PAPER_AUC) <= _NEAR_AUC if same else None,
        ),
    ]
    if small["benchmarks"]:
        ours = [
            f"{name} {found['correlation']:.2f} ({found['n_pairs']} pairs)"
            for name, found in small["benchmarks"].items()
        ]
        made.append(
            Claim(
                "Cosines of words against human ratings of pairs (Spearman)",
                "SWOW: SimLex-999 and WordSim-353 strongly predicted (numbers in a figure only)",
                f"{_name(seen)}: {', '.join(ours)}",
                all(found["correlation"] > 0.5 for found in small["benchmarks"].values()) if same else None,
            )
        )
    if small["ratings"]:
        rho = {found["scale"]: found["correlation"] for found in small["ratings"]}
        low, high = min(rho, key=rho.__getitem__), max(rho, key=rho.__getitem__)
        named = [f"{scale} {rho[scale]:.2f}" for scale in PAPER_RATINGS if scale in rho]
        near = [abs(rho[scale] - value) <= _NEAR_RHO for scale, value in PAPER_RATINGS.items() if scale in rho]
        made.append(
            Claim(
                "Ratings of words read out of the dimensions (Spearman)",
                "SWOW, nine Glasgow scales: 0.59 (familiarity) to 0.84 (valence)",
                f"{_name(seen)}, {len(rho)} scales: {rho[low]:.2f} ({low}) to {rho[high]:.2f} ({high})"
                + (f"; {', '.join(named)}" if named else ""),
                all(near) if same and near else None,
            )
        )
    return made


def _earlier_claims(seen: Seen) -> list[Claim]:
    """Not of the paper: what was measured on the USF norms when absent pairs got their weight."""
    is_usf, full = seen.words.source == "USF", seen.size == "full"
    before, after = EARLIER[0.0], EARLIER[SMALL_WEIGHT]
    missing, small = seen.held_out_auc(0.0), seen.held_out_auc(SMALL_WEIGHT)
    rises = missing < 0.6 and small > 0.8
    near = abs(missing - before[0]) <= _NEAR_AUC and abs(small - after[0]) <= _NEAR_AUC
    made = [
        Claim(
            f"Held-out link AUC, absent pairs missing / of weight {SMALL_WEIGHT:g}",
            f"not in the paper; measured earlier on the USF norms: {before[0]:.2f} / {after[0]:.2f}",
            f"{_name(seen)}: {missing:.2f} / {small:.2f}",
            None if not is_usf or seen.size == "smoke" else rises and near if full else rises,
        )
    ]
    for place, name in enumerate(("SimLex-999", "WordSim-353"), start=1):
        low, high = seen.held_out_benchmark(0.0, name), seen.held_out_benchmark(SMALL_WEIGHT, name)
        if low is not None and high is not None:
            near = abs(low - before[place]) <= _NEAR_RHO and abs(high - after[place]) <= _NEAR_RHO
            made.append(
                Claim(
                    f"{name} (Spearman), absent pairs missing / of weight {SMALL_WEIGHT:g}, links held out",
                    f"not in the paper; measured earlier on the USF norms: {before[place]:.2f} / {after[place]:.2f}",
                    f"{_name(seen)}: {low:.2f} / {high:.2f}",
                    near if is_usf and full else None,
                )
            )
    data, product = seen.on_all_words("data"), seen.on_all_words("product")
    if data is not None and product is not None:
        made.append(
            Claim(
                f"Link AUC of ADMM with Z from the zero-filled data (rank {data['rank']}) / of a converged fit, both "
                "with absent pairs missing",
                "not in the paper; measured earlier on the USF norms, rank 50: 0.96 / 0.42",
                f"{_name(seen)}: {data['auc']:.2f} after {data['iteration']} iterations ({product['auc']:.2f} from "
                f"Z = W Wᵀ) / {seen.fit(0.0)['auc']:.2f}",
                data["auc"] > 0.9 and seen.fit(0.0)["auc"] < 0.5 if is_usf else None,
            )
        )
    return made


def _about_data(seen: Seen) -> str:
    n, n_links, fit = seen.words.similarity.n_items, _n_links(seen.words), seen.all_links[0]
    return (
        f"Here: {_name(seen)}, {n:,} words, {n_links:,} pairs with a positive similarity ({_share(n_links, n)} of "
        f"all), rank {fit['rank']}, {fit['sweeps']} sweeps over the words ({seen.held_out[0]['sweeps']} where links "
        f"are held out). The paper: SWOW, {PAPER_WORDS:,} words, {PAPER_LINKS:,} pairs (1.27%), rank {PAPER_RANK}, "
        "ADMM of up to 200 x 50 iterations, absent pairs missing; its AUC is of links that were fitted."
    )


def _about_absent(seen: Seen, rarity_auc: float) -> str:
    """Why a fit that ignores absent pairs does not predict links."""
    n, n_links, rank = seen.words.similarity.n_items, _n_links(seen.words), seen.all_links[0]["rank"]
    end = seen.path(None)[-1]
    paper = (PAPER_LINKS + PAPER_WORDS) / (PAPER_WORDS * PAPER_RANK)
    return (
        f"Where absent pairs are missing, {(n_links + n) / (n * rank):.2f} similarities are left for each parameter "
        f"(in the paper {paper:.2f}), all of them positive: nothing says which words are unrelated. Frequent words "
        "have small similarities and most of the links, so that rarity alone, the product of the two words' -log2 p, "
        f"as a score of links has an AUC of {rarity_auc:.2f}. A fit to the links inherits this: it predicts "
        f"{end['of_held_out']:.2f} on average for links held out and {end['of_absent']:.2f} for absent pairs (the "
        f"{_n_followed(seen):,} words with most links). Held-out AUC on all words: {seen.held_out_auc(0.0):.2f} with "
        f"absent pairs missing, {seen.held_out_auc(SMALL_WEIGHT):.2f} with zeros of weight {SMALL_WEIGHT:g}. Pairs are "
        "absent because nobody made the association, not because nobody was asked; a small weight tells the fit."
    )


def _about_admm(seen: Seen) -> str:
    """Why ADMM predicts links where the minimum of its own objective does not."""
    data, product = seen.path("data"), seen.path("product")[-1]
    descent, small, zero = (seen.path(None, weight)[-1] for weight in (0.0, SMALL_WEIGHT, 1.0))
    best, last = max(data, key=lambda at: at["held_out_auc"]), data[-1]
    n, n_links = seen.words.similarity.n_items, _n_links(seen.words)
    linked = next(cell["linked"] for cell in seen.iterations if not cell["all_words"])
    return (
        f"Why ADMM can predict links although it calls absent pairs missing (the {_n_followed(seen):,} words with most "
        "links): where its auxiliary matrix Z starts as the zero-filled data, the first W is a fit in which absent "
        "pairs are zeros of full weight; from then on Z follows W there, so the zeros fade only as fast as W leaves "
        f"them. After {last['iteration']} iterations it predicts {last['of_absent']:.2f} on average for absent pairs "
        f"and {last['of_links']:.2f} for links, and misses {last['misfit']:.2%} of the squares of what it was to fit; "
        f"descent on the same objective misses {descent['misfit']:.2%}, with {descent['of_absent']:.2f} and "
        f"{descent['of_links']:.2f}. Held-out AUC from the zero-filled start: {data[0]['held_out_auc']:.2f} after "
        f"iteration {data[0]['iteration']}, {best['held_out_auc']:.2f} at its best (iteration {best['iteration']}), "
        f"{last['held_out_auc']:.2f} at iteration {last['iteration']}; from the start of the paper's Algorithm 1, "
        f"Z = W Wᵀ: {product['held_out_auc']:.2f}; descent: {descent['held_out_auc']:.2f}. The score is that of the "
        "start and of stopping early, not of the objective. Zeros with a weight stand in the objective, which can be "
        f"minimised to the end: {small['held_out_auc']:.2f} with weight {SMALL_WEIGHT:g}, {zero['held_out_auc']:.2f} "
        f"with weight 1 (among these words {linked:.1%} of the pairs are linked, among all {_share(n_links, n)})."
    )


def _name(seen: Seen) -> str:
    return "made-up words" if seen.words.source == "made up" else seen.words.source


def _n_followed(seen: Seen) -> int:
    return min(int(cell["n_words"]) for cell in seen.iterations)


def _share(n_links: int, n_words: int) -> str:
    return f"{n_links / (n_words * (n_words - 1) / 2):.2%}"


def _n_links(words: Words) -> int:
    return int(words.similarity.values.nnz - words.similarity.n_items) // 2
