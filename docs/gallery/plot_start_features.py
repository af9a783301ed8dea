"""
A whole analysis: features
==========================

From features of items, such as voxel responses, network activations or pixels, to dimensions and a figure for a paper.
The items are 120 handwritten digits; to analyse your own features, replace the table.
"""

# %%
# One row per item and one column per feature. Your own table:
# ``X = pd.read_csv("features.csv", index_col=0)``.

import pandas as pd
from matplotlib import pyplot
from sklearn.datasets import load_digits

from simdims import dimension_test, discover, from_features, plots

digits = load_digits(n_class=4)
X, images = digits.data[:120], digits.images[:120]
kinds = pd.get_dummies(digits.target[:120]).add_prefix("digit ").astype(float)

# %%
# Similarities are cosines, because pixels are non-negative. For features with negative values, use a Gaussian kernel,
# ``kernel="rbf"``. The default chooses the kernel by the signs of the features.

S = from_features(X, kernel="cosine")
print(S)

# %%
# Number of dimensions, dimensions, and their reliability. The default settings take longer and are more precise.

found = discover(S, ranks=range(1, 11), n_repeats=1, n_runs=6, random_state=0)
print(found.summary())

# %%
# Do the dimensions encode known properties that were not used to compute the similarities?

tests = dimension_test(found, kinds, n_permutations=999, random_state=0)
print(tests.summary())

# %%
# A figure for a paper, with images. ``plots.save_figure(figure, "figure1.pdf")`` writes it to a file,
# ``found.save("digits")`` all results, and ``found.report("digits.html", images=images)`` a page to explore.

figure = plots.figure_panel(found, tests, images=images)
pyplot.show()
