"""
Suggested names
===============

Which properties of the items describe each dimension? This example names the dimensions of 400 handwritten digits.
"""

# %%
# Similarities are cosines of the pixels. Properties are the digit itself (a category) and three numbers, one of which
# is noise.

import numpy as np
import pandas as pd
from matplotlib import pyplot
from sklearn.datasets import load_digits

from simdims import SRF, from_features, label_dimensions
from simdims.naming import suggested_names

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

digits = load_digits()
images, kinds = digits.images[:400], digits.target[:400]
S = from_features(images.reshape(400, -1), kernel="cosine")
W = SRF(n_components=8, random_state=0).fit(S).embedding_

words = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
columns = images.sum(axis=1)
properties = pd.DataFrame(
    {
        "digit": words[kinds],
        "ink": images.sum(axis=(1, 2)),
        "width": columns @ np.abs(np.arange(8) - 3.5) / columns.sum(axis=1),
        "noise": np.random.default_rng(0).normal(size=400),
    }
)
table = label_dimensions(W, properties, random_state=0)
print(table.round(3).to_string(index=False))

# %%
# A suggestion lists properties with their cross-validated correlations. Each property adds to the previous ones.

names = suggested_names(table)
figure, axes = pyplot.subplots(4, 2, figsize=(8.5, 5.5), layout="constrained")
for k, ax in enumerate(axes.flat):
    top = np.argsort(-W[:, k])[:8]
    ax.imshow(np.hstack(images[top]), cmap="gray_r")
    ax.set_title(names.get(f"dimension{k + 1}", "no suggestion"), fontsize=10)
    ax.set_axis_off()
pyplot.show()
