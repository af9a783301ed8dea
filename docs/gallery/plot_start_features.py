"""
A whole analysis: features
==========================

From features of items, as responses of voxels, activations of a network or pixels, to dimensions and a figure for a
paper. The items are 120 handwritten digits; to analyse your own features, replace the table.
"""

# %%
# A row for each item and a column for each feature. Your own table:
# ``X = pd.read_csv("features.csv", index_col=0)``.

import pandas as pd
from matplotlib import pyplot
from sklearn.datasets import load_digits

from simdims import dimension_test, discover, from_features, plots

digits = load_digits(n_class=4)
X, images = digits.data[:120], digits.images[:120]
kinds = pd.get_dummies(digits.target[:120]).add_prefix("digit ").astype(float)

# %%
# Similarities: cosines, because pixels are not negative. For features with negative values, ``kernel="rbf"`` is a
# Gaussian kernel; by default, the kernel is chosen by the signs of the features.

S = from_features(X, kernel="cosine")
print(S)

# %%
# The number of dimensions, the dimensions, and how reproducible they are. The default settings take longer and are more
# precise.

found = discover(S, ranks=range(1, 11), n_repeats=1, n_runs=6, random_state=0)
print(found.summary())

# %%
# Do the dimensions encode known properties, which the similarities are not told of?

tests = dimension_test(found, kinds, n_permutations=999, random_state=0)
print(tests.summary())

# %%
# A figure for a paper, with images. ``plots.save_figure(figure, "figure1.pdf")`` writes it to a file,
# ``found.save("digits")`` all results, and ``found.report("digits.html", images=images)`` a page to explore.

figure = plots.figure_panel(found, tests, images=images)
pyplot.show()
