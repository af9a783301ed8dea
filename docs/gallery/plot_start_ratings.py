"""
A whole analysis: ratings
=========================

From a table of pairwise ratings to dimensions, tests and a figure for a paper. The ratings are simulated; to analyse
your own, replace the table.
"""

# %%
# Twelve people rate how similar two animals are, from 1 to 7. Nobody rates all pairs. Your own table:
# ``trials = pd.read_csv("ratings.csv")``.

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import dimension_test, discover, from_ratings, plots

animals = {
    "fierce": "lion tiger wolf bear shark eagle crocodile hawk",
    "sea": "shark whale dolphin crocodile seal tuna crab penguin",
    "flies": "eagle hawk penguin duck sparrow bat bee owl",
    "farm": "duck cow horse sheep pig hen goat bee",
}
properties = pd.DataFrame({name: dict.fromkeys(items.split(), 1.0) for name, items in animals.items()}).fillna(0.0)
rng = np.random.default_rng(0)
truth = (properties * rng.uniform(0.6, 1.0, properties.shape)).to_numpy()
rows = []
for person in range(12):
    for _ in range(40):
        i, j = rng.choice(len(truth), 2, replace=False)
        rating = np.clip(np.round(1 + 5 * truth[i] @ truth[j] + rng.normal(0, 0.7)), 1, 7)
        rows.append({"left": properties.index[i], "right": properties.index[j], "rating": rating, "person": person})
trials = pd.DataFrame(rows)
print(trials.head())

# %%
# Similarities: means over people, scaled from 0 to 1. Pairs that nobody rated are missing.

S = from_ratings(
    trials, item1="left", item2="right", rating="rating", participant="person", low=1, high=7, weights="counts"
)
print(S)

# %%
# ``discover`` selects the number of dimensions by held-out pairs, fits them from several random starts and measures how
# reproducible they are. The default settings take longer and are more precise.

found = discover(S, ranks=range(1, 7), n_repeats=1, n_runs=8, random_state=0)
print(found.summary())

# %%
# Do the dimensions encode known properties of the items? Permutation tests, adjusted for the number of properties.

tests = dimension_test(found, properties, n_permutations=999, random_state=0)
print(tests.summary())

# %%
# A figure for a paper. ``plots.save_figure(figure, "figure1.pdf")`` writes it to a file, ``found.save("animals")`` all
# results, and ``found.report("animals.html")`` a page to explore.

figure = plots.figure_panel(found, tests)
pyplot.show()
