"""
From comparisons to dimensions
==============================

In each trial, a person sees three items and judges which of two is more like the third, the head. Dimensions of the
similarities estimated from these answers predict new answers.
"""

# %%
# Simulated answers from three true dimensions of 30 items.

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import SRF, from_comparisons, metrics, plots, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

truth = 2 * simulate.dirichlet(30, 3, alpha=0.3, random_state=0)
S_true = truth @ truth.T
rng = np.random.default_rng(0)


def answers(n_trials):
    """One answer per row: head, winner and loser."""
    head, one, other = np.array([rng.choice(30, 3, replace=False) for _ in range(n_trials)]).T
    first = rng.random(n_trials) < 1 / (1 + np.exp(S_true[head, other] - S_true[head, one]))
    return pd.DataFrame({"head": head, "winner": np.where(first, one, other), "loser": np.where(first, other, one)})


test = answers(4000)
best = metrics.comparison_accuracy(truth, test)  # accuracy of the true embedding

# %%
# Accuracy on new answers by the number of training answers.

numbers = [200, 400, 800, 1600, 3200, 6400]
accuracy = []
for n_trials in numbers:
    S = from_comparisons(answers(n_trials), n_items=30, weights="counts", diagonal="missing")
    srf = SRF(3, alpha="auto", max_iter=2000, random_state=0).fit(S)
    accuracy.append(metrics.comparison_accuracy(srf, test))

figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].plot(numbers, accuracy, "o-")
axes[0].axhline(best, color="0.4", linestyle="--", label="true dimensions")
axes[0].axhline(0.5, color="0.7", linestyle=":", label="chance")
axes[0].set(xscale="log", xlabel="Number of answers", ylabel="Answers predicted", ylim=(0.45, None))
axes[0].set_xticks(numbers, labels=map(str, numbers))
axes[0].minorticks_off()
axes[0].legend(fontsize=8, frameon=False)
plots.alignment(srf, truth, ax=axes[1])
pyplot.show()
