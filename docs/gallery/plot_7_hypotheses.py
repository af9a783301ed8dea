"""
Testing hypotheses
==================

Is a property of the items carried by a dimension? Is it reflected in the similarities? Three tests, side by side.
"""

# %%
# 81 items, all combinations of four properties with three levels each; measured features are noisy, so that every
# similarity is. One more property has nothing to do with the items.

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import SRF, combined_test, dimension_test, plots, rsa_test, simulate

pyplot.rcParams["font.size"] = 13  # for a screen; the default suits a column of a journal

X = simulate.factorial([3, 3, 3, 3])
noisy = simulate.add_feature_noise(X, 0.15, random_state=0)
S = noisy @ noisy.T
W = SRF(n_components=12, max_iter=5000, random_state=0).fit(S).embedding_

names = [f"{kind} {level}" for kind in ("colour", "shape", "size", "texture") for level in (1, 2, 3)]
properties = pd.DataFrame(X, columns=names)[["colour 1", "shape 1", "size 1", "texture 1"]]
properties["unrelated"] = np.random.default_rng(0).permutation(X[:, 0])

dimension = dimension_test(W, properties, random_state=0)
rsa = rsa_test(S, properties, random_state=0)
combined = combined_test(S, W, properties, random_state=0)
print(combined)

# %%
# Grey is what chance gives: the middle 95% of a thousand permutations of the items. The dimension test finds what
# is diluted in the matrix as a whole, where each property is one of four.

figure, axes = pyplot.subplots(3, 1, figsize=(7, 7.5), layout="constrained")
for ax, tests in zip(axes, [dimension, rsa, combined], strict=True):
    plots.hypothesis_tests(tests, ax=ax)
    ax.set_title(f"{tests.test}_test", fontsize=11, pad=20)
pyplot.show()
