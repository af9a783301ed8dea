"""
How many dimensions?
====================

As many as predict pairs best that no fit has seen. Two older rules, which look at eigenvalues, stand beside it.
"""

# %%
# 80 items with five dimensions and noise: how many does the matrix support?

from matplotlib import pyplot

from simdims import parallel_analysis, plots, scree_test, select_rank, simulate

pyplot.rcParams["font.size"] = 13  # for a screen; the default suits a column of a journal

truth = simulate.dirichlet(80, 5, alpha=0.3, random_state=1)
S = simulate.add_noise(truth @ truth.T, 0.6, random_state=1)
selection = select_rank(S, range(1, 11), n_repeats=3, random_state=0)
print(selection)

# %%
# The error falls as long as a dimension adds something that other pairs bear out, and stops falling when it does
# not. Filled marks are the valley: all numbers that cannot be told from the best.

others = {"scree test": scree_test(S), "parallel analysis": parallel_analysis(S, random_state=0)}
figure, ax = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
plots.rank_selection(selection, relative=True, baselines=others, ax=ax)
pyplot.show()

# %%
# Why not simply leave out a tenth of the pairs? Because pairs imply each other: where a fit sees too many, it
# knows the others already, and predicting them tests nothing. The share that a fit may see is found first, from
# the matrix alone.

figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
plots.calibration(selection, axes=axes)
pyplot.show()
