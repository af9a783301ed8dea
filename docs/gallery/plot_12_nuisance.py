"""
Beyond what is known
====================

A property may relate to a representation only through a correlated property. This example tests what it adds.
"""

# %%
# Size determines one of the dimensions of 60 items. Weight correlates with size and has no other relation to the
# dimensions. Colour has a dimension of its own.

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import SRF, dimension_test, plots, rsa_regression, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

rng = np.random.default_rng(0)
truth = rng.gamma(0.5, size=(60, 4))
size = truth[:, 0] + 0.5 * rng.normal(size=60)
properties = pd.DataFrame({"weight": size + rng.normal(size=60), "colour": (truth[:, 1] > 0.5).astype(float)})
S = simulate.add_noise(truth @ truth.T, 0.7, random_state=0)
W = SRF(n_components=4, random_state=0).fit(S).embedding_

alone = dimension_test(W, properties, random_state=0)
beyond = dimension_test(W, properties, nuisance={"size": size}, random_state=0)
print(beyond)

# %%
# A regression on all models estimates the unique contribution of each.

models = rsa_regression(S, properties.assign(size=size), random_state=0)
print(models)

# %%
# Weight correlates with a dimension, but has no effect beyond size.

figure, axes = pyplot.subplots(3, 1, figsize=(7, 7.5), layout="constrained")
titles = ["dimension_test", "dimension_test, nuisance: size", "rsa_regression"]
for ax, tests, title in zip(axes, [alone, beyond, models], titles, strict=True):
    plots.hypothesis_tests(tests, ax=ax)
    ax.set_title(title, fontsize=11, pad=20)
pyplot.show()
