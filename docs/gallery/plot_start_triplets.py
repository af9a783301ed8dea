"""
A whole analysis: triplets
==========================

From a table of odd-one-out choices to dimensions, their accuracy and a figure for a paper. The choices are simulated;
to analyse your own, replace the table.
"""

# %%
# In each trial a person sees three objects and chooses the odd one out, which is in the last column. Your own table:
# ``trials = pd.read_csv("triplets.csv")``.

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import discover, from_triplets, metrics, plots, simulate

truth = simulate.dirichlet(40, 3, alpha=0.3, random_state=0)
names = np.array([f"object {i:02d}" for i in range(40)])
rng = np.random.default_rng(0)
shown = np.array([rng.choice(40, 3, replace=False) for _ in range(12_000)])
odd = [rng.choice(3, p=p) for p in metrics.triplet_probabilities(truth, shown, temperature=0.2)]
choices = np.array([np.roll(triplet, 2 - place) for triplet, place in zip(shown, odd, strict=True)])
trials = pd.DataFrame(names[choices], columns=["one", "other", "odd"])
print(trials.head())

# %%
# Similarities from all but the last 2,000 answers: how often two objects are kept together when shown. Pairs are
# weighted by how often they were shown.

S = from_triplets(trials[:10_000], weights="counts")
print(S)

# %%
# Number of dimensions, dimensions, and their reliability. The default settings take longer and are more precise.

found = discover(S, ranks=range(1, 7), n_repeats=1, n_runs=8, random_state=0)
print(found.summary())

# %%
# Accuracy on the held-out answers; chance is one third.

rows = pd.Series(range(found.n_items), index=found.labels)
unseen = trials[10_000:].map(rows.get).to_numpy()
print(f"Accuracy on new answers: {metrics.triplet_accuracy(found.embedding, unseen):.1%}")
print(f"Accuracy of the true dimensions: {metrics.triplet_accuracy(truth, choices[10_000:]):.1%}")

# %%
# A figure for a paper. ``plots.save_figure(figure, "figure1.pdf")`` writes it to a file, ``found.save("objects")`` all
# results, and ``found.report("objects.html")`` a page to explore.

figure = plots.figure_panel(found)
pyplot.show()
