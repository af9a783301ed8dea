"""
Handwritten digits
==================

The similarity of two 8 x 8 images is computed from their pixels alone. The labels of the digits are not used, yet each
dimension corresponds to a way of writing a digit.
"""

# %%
# Fit ten dimensions to an RBF kernel of 200 of scikit-learn's digits.

from matplotlib import pyplot
from sklearn.datasets import load_digits

from simdims import SRF, from_features, plots

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

digits = load_digits()
S = from_features(digits.data[:200], kernel="rbf")
srf = SRF(n_components=10, max_iter=2000, random_state=0).fit(S)
print(f"R2 over all pairs: {srf.score(S):.2f}")

# %%
# Each row shows the top-loading images of a dimension. The percentage is its share of all squared loadings.

axes = plots.dimension_grid(srf, images=digits.images[:200], image_cmap="gray_r", n_items=10)
pyplot.show()
