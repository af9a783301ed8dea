"""
Handwritten digits: dimensions in pictures
==========================================

Two images of 8 x 8 pixels are similar where their pixels are. Which digit an image shows is not used, and yet the
dimensions are ways of writing one.
"""

# %%
# 200 of scikit-learn's digits, the Gaussian kernel of their pixels, and ten dimensions of them.

from matplotlib import pyplot
from sklearn.datasets import load_digits

from simdims import SRF, from_features, plots

pyplot.rcParams["font.size"] = 13  # for a screen; the default suits a column of a journal

digits = load_digits()
S = from_features(digits.data[:200], kernel="rbf")
srf = SRF(n_components=10, max_iter=2000, random_state=0).fit(S)
print(f"R2 over all pairs: {srf.score(S):.2f}")

# %%
# A row for each dimension: the images that have most of it. The percentage is its share of all squared loadings.

axes = plots.dimension_grid(srf, images=digits.images[:200], image_cmap="gray_r", n_items=10)
pyplot.show()
