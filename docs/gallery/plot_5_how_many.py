"""
How many dimensions?
====================

``select_rank`` chooses the number of dimensions by cross-validation. This example compares it with two criteria based
on eigenvalues.
"""

# %%
# 80 items with five dimensions and noise.

from matplotlib import pyplot

from simdims import calibrate, parallel_analysis, plots, scree_test, select_rank, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

truth = simulate.dirichlet(80, 5, alpha=0.3, random_state=1)
S = simulate.add_noise(truth @ truth.T, 0.6, random_state=1)
selection = select_rank(S, range(1, 11), n_repeats=3, random_state=0)
print(selection)

# %%
# The error decreases as long as an additional dimension predicts held-out pairs. Filled markers show the valley: all
# numbers of dimensions within one standard error of the minimum.

others = {"scree test": scree_test(S), "parallel analysis": parallel_analysis(S, random_state=0)}
figure, ax = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
plots.rank_selection(selection, relative=True, baselines=others, ax=ax)
pyplot.show()

# %%
# The calibration finds the smallest fraction of pairs that keeps the leading eigenvectors of the matrix stable. Fits
# without a penalty train on it. ``ranks="auto"`` begins near the number of these eigenvectors.

figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
plots.calibration(calibrate(S, random_state=0), axes=axes)
pyplot.show()
