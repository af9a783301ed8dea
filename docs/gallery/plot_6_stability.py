"""
Which dimensions are reproducible?
==================================

Fits from different random starts may reach different solutions. Reliability measures how well each dimension is
reproduced across starts.
"""

# %%
# Data with five dimensions, fitted ten times with five dimensions and ten times with eight.

from matplotlib import pyplot

from simdims import fit_consensus, plots, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

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
# With the correct number, all runs find the same dimensions, and these match the true ones.

figure, ax = pyplot.subplots(figsize=(5, 2.7), layout="constrained")
plots.alignment(right, truth, ax=ax)
pyplot.show()
