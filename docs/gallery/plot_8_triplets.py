"""
From odd-one-out choices to dimensions
======================================

In each trial, a person sees three items and chooses the odd one out. A few thousand choices suffice to estimate
similarities and dimensions that predict new choices.
"""

# %%
# Simulated choices from three true dimensions of 30 items, with some randomness.

import numpy as np
from matplotlib import pyplot

from simdims import SRF, from_triplets, metrics, plots, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

truth = simulate.dirichlet(30, 3, alpha=0.3, random_state=0)
rng = np.random.default_rng(0)


def answers(n_trials):
    """Triplets with the odd one out in the last column."""
    shown = np.array([rng.choice(30, 3, replace=False) for _ in range(n_trials)])
    odd = [rng.choice(3, p=p) for p in metrics.triplet_probabilities(truth, shown, temperature=0.2)]
    return np.array([np.roll(triplet, 2 - o) for triplet, o in zip(shown, odd, strict=True)])


test = answers(4000)
best = metrics.triplet_accuracy(truth, test)  # accuracy of the true embedding

# %%
# Accuracy by the number of answers. With few answers per pair, ``weights="counts"`` weights pairs by how often they
# were shown.

numbers = [200, 400, 800, 1600, 3200, 6400]
accuracy = []
for n_trials in numbers:
    S = from_triplets(answers(n_trials), n_items=30, weights="counts")
    srf = SRF(n_components=3, max_iter=2000, random_state=0).fit(S)
    accuracy.append(metrics.triplet_accuracy(srf.embedding_, test))

figure, axes = pyplot.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained", width_ratios=[1.3, 1])
axes[0].semilogx(numbers, accuracy, "o-")
axes[0].axhline(best, color="0.5", linestyle="--", linewidth=1)
axes[0].axhline(1 / 3, color="0.5", linestyle=":", linewidth=1)
axes[0].text(numbers[0], best + 0.008, "knowing the truth", fontsize=9, color="0.4")
axes[0].text(numbers[0], 1 / 3 + 0.008, "chance", fontsize=9, color="0.4")
axes[0].set_xlabel("Answers", fontsize=10)
axes[0].set_ylabel("New answers predicted", fontsize=10)
axes[0].set_xticks(numbers, labels=[f"{n:,}" for n in numbers], minor=False)
axes[0].minorticks_off()
axes[0].yaxis.set_major_formatter("{x:.0%}")
axes[0].tick_params(labelsize=8)
axes[0].spines[["top", "right"]].set_visible(False)
plots.alignment(srf, truth, ax=axes[1])
axes[1].set_title("Found from 6,400 answers, and true", fontsize=10)
pyplot.show()
