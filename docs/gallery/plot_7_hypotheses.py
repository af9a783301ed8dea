"""
Testing hypotheses
==================

Does a dimension encode a property of the items? Do the similarities reflect it? This example compares three tests.
"""

# %%
# The 81 items are all combinations of four properties with three levels each. Noise on the features affects all
# similarities. A fifth property is unrelated to the items.

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import SRF, combined_test, dimension_test, plots, rsa_test, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

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
# Grey bars show the central 95% of the null distribution, from 1,000 permutations of the items. The dimension test is
# more sensitive here, because each property accounts for only part of the similarities.

figure, axes = pyplot.subplots(3, 1, figsize=(7, 7.5), layout="constrained")
for ax, tests in zip(axes, [dimension, rsa, combined], strict=True):
    plots.hypothesis_tests(tests, ax=ax)
    ax.set_title(f"{tests.test}_test", fontsize=11, pad=20)
pyplot.show()
