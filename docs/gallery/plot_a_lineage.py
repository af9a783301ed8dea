"""
How dimensions split as their number grows
==========================================

Four groups of items consist of two smaller groups each. With few dimensions, a fit finds the large groups; with more,
it finds the small ones.
"""

# %%
# Similarities with noise. Item names contain the large and the small group.

import numpy as np
from matplotlib import pyplot

from simdims import Similarity, fit_consensus, lineage, plots, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

rng = np.random.default_rng(0)
fine = np.repeat(np.arange(8), 10)
coarse = fine // 2
W = np.zeros((80, 12))
W[np.arange(80), coarse] = rng.uniform(0.6, 1.2, 80)
W[np.arange(80), 4 + fine] = rng.uniform(0.6, 1.2, 80)
names = [f"{'ABCD'[c]}{f % 2 + 1} no. {i}" for i, (c, f) in enumerate(zip(coarse, fine, strict=True))]
S = Similarity(simulate.add_noise(W @ W.T, 0.7, random_state=0), labels=names)

# %%
# Fits with two to ten dimensions, and a summary of the tree that links them.

fits = {rank: fit_consensus(S, rank, n_runs=10, alpha="auto", random_state=0) for rank in range(2, 11)}
tree = lineage(fits)
print(tree)

# %%
# The tree as a figure. Stable dimensions are coloured.

figure, ax = pyplot.subplots(figsize=(8, 4), layout="constrained")
plots.lineage(tree, ax=ax)
pyplot.show()
