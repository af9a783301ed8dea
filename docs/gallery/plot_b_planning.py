"""
How many pairs are needed?
==========================

Simulated studies show how recovery of the dimensions depends on the number of pairs and of answers per pair.
"""

# %%
# The truth: 60 items with five dimensions. Half of the variance of a single answer is noise.

from matplotlib import pyplot

from simdims import plan_study, plots, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

truth = simulate.dirichlet(60, 5, alpha=0.3, random_state=0)
plan = plan_study(truth, snr=0.5, answers=[1, 2, 5], n_repeats=4, random_state=0)

# %%
# The number of pairs needed for an alignment of 0.9 with the true dimensions.

print(plan)

# %%
# Learning curves: alignment with the true dimensions and triplet accuracy against the number of pairs.

figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
plots.study_plan(plan, ax=axes[0])
plots.study_plan(plan, metric="triplet_accuracy", ax=axes[1])
pyplot.show()
