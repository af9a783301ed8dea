"""
How sure are the dimensions?
============================

Resampled groups of people show which dimensions would come back with other people, and how much their loadings vary.
"""

# %%
# Twenty people share three dimensions; only two of them have a fourth one.

import numpy as np
from matplotlib import pyplot

from simdims import SimilaritySet, bootstrap, plots

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

rng = np.random.default_rng(0)
W = rng.dirichlet([0.5] * 4, size=30)
weights = rng.gamma(4, 0.25, size=(20, 4))
weights[2:, 3] = 0
weights[:2, 3] = 3
noise = np.triu(rng.normal(0, 0.1, (20, 30, 30)), 1)
S = np.maximum((W * weights[:, None]) @ W.T + noise + noise.transpose(0, 2, 1), 0)
sure = bootstrap(SimilaritySet(S), n_components=4, n_resamples=100, random_state=0)

figure, axes = pyplot.subplots(1, 2, figsize=(9, 3), layout="constrained", width_ratios=[1, 1.2])
plots.uncertainty(sure, ax=axes[0])
plots.uncertainty(sure, "loadings", dimension=1, n_rows=10, ax=axes[1])
pyplot.show()

# %%
# The weights of the people on the rare dimension. Open marks are at zero, where intervals are not calibrated.

figure, ax = pyplot.subplots(figsize=(5, 3.4), layout="constrained")
rare = int(np.argmin(sure.came_back))
plots.uncertainty(sure, "weights", dimension=rare + 1, n_rows=20, ax=ax)
pyplot.show()
