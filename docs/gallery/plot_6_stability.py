"""
Which dimensions can be trusted?
================================

From another random start a fit may end elsewhere. A dimension that all runs find is a property of the data; one
that each run finds differently is an accident.
"""

# %%
# Data with five dimensions, fitted ten times with five, and ten times with eight.

from matplotlib import pyplot

from simdims import fit_consensus, plots, simulate

pyplot.rcParams["font.size"] = 13  # for a screen; the default suits a column of a journal

truth = simulate.dirichlet(80, 5, alpha=0.3, random_state=0)
S = simulate.add_noise(truth @ truth.T, 0.5, random_state=0)
right = fit_consensus(S, 5, n_runs=10, random_state=0)
too_many = fit_consensus(S, 8, n_runs=10, random_state=0)

figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for ax, consensus in zip(axes, [right, too_many], strict=True):
    plots.reliability(consensus, ax=ax)
    ax.set_title(f"{consensus.n_components} dimensions where 5 are true", fontsize=10, pad=24)
pyplot.show()

# %%
# With the right number every run ends with the same dimensions, and they are the true ones.

figure, ax = pyplot.subplots(figsize=(5, 2.7), layout="constrained")
plots.alignment(right, truth, ax=ax)
pyplot.show()
