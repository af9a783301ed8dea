"""
Dimensions of new items
=======================

Similarities cover the items that people compared. An encoder predicts the dimensions of other items from features.
"""

# %%
# 300 items have noisy similarities and 60 features. Another 200 items have only features.

import numpy as np
from matplotlib import pyplot

from simdims import SRF, DimensionEncoder, align, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

rng = np.random.default_rng(0)
truth = simulate.dirichlet(500, 5, alpha=0.3, random_state=0)
features = truth @ rng.normal(size=(5, 60)) + 1.5 * rng.normal(size=(500, 60))
S = simulate.add_noise(truth[:300] @ truth[:300].T, 0.5, random_state=0)

fitted = SRF(n_components=5, random_state=0).fit(S).embedding_
encoder = DimensionEncoder(random_state=0).fit(features[:300], fitted)
print(encoder.scores_frame().round(2))

# %%
# Left: the cross-validated score of each dimension with its 95% interval. Right: predicted loadings of the new items
# against their true ones.

permutation = align(fitted, truth[:300]).permutation
predicted = encoder.predict(features[300:])[:, permutation]  # in the order of the true dimensions
scores, (low, high) = encoder.scores_[permutation], encoder.scores_interval_[:, permutation]
places = np.arange(1, 6)

figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
left.errorbar(places, scores, [scores - low, high - scores], fmt="o", capsize=3)
left.set(xlabel="Dimension", ylabel="Correlation, items left out", ylim=(0, 1), xticks=places)
for k in range(5):
    right.plot(truth[300:, k], predicted[:, k], "o", markersize=3, alpha=0.5, label=f"dimension {k + 1}")
right.set(xlabel="True loading, new items", ylabel="Predicted loading")
right.legend(frameon=False, fontsize=9, markerscale=2)
pyplot.show()
