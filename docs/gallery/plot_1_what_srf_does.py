"""
What SRF does
=============

This example simulates the similarities of eighteen things from four properties and recovers the properties with SRF. A
thing may have several properties, and the similarity of two things is the sum of what they share.
"""

# %%
# Items and similarities
# ----------------------
# Each thing has a true loading on four properties: animal, vehicle, food and round. The similarity of two things is the
# dot product of their loadings, plus noise. SRF sees only the matrix on the left.

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import SRF, Similarity, plots, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

truth = pd.DataFrame(
    {
        "animal": {"dog": 1.0, "cat": 1.0, "horse": 0.95, "lion": 0.95, "crab": 0.8, "fish": 0.9},
        "vehicle": {"car": 1.0, "bus": 1.0, "boat": 0.85, "bicycle": 0.8, "wheel": 0.5, "horse": 0.35},
        "food": {"bread": 1.0, "cheese": 0.95, "cake": 0.9, "apple": 0.75, "orange": 0.75, "fish": 0.55, "crab": 0.45},
        "round": {"ball": 1.0, "coin": 0.9, "wheel": 0.8, "orange": 0.65, "apple": 0.6, "bicycle": 0.35},
    }
).fillna(0.0)
truth = truth.sample(frac=1, random_state=3)  # shuffle the items

values = simulate.add_noise(truth.to_numpy() @ truth.to_numpy().T, 0.95, random_state=0)
S = Similarity(values, labels=list(truth.index))

srf = SRF(n_components=4, random_state=0).fit(S)
W = srf.embedding_frame()

figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
plots.similarity_heatmap(S, ax=axes[0], colorbar=False)
plots.similarity_heatmap(S, W, ax=axes[1])
axes[0].set_title("What is measured", fontsize=10)
axes[1].set_title("The same, ordered by what SRF found", fontsize=10)
pyplot.show()

# %%
# The dimensions
# --------------
# Each column of the embedding W is a dimension with non-negative loadings. SRF does not name the dimensions; here, each
# one is labelled with the true property that it correlates with most.

names = truth.columns[np.argmax(np.corrcoef(W.T, truth.T)[:4, 4:], axis=1)]
named = W.set_axis(list(names), axis="columns")
figure, axes = pyplot.subplots(2, 2, figsize=(5.6, 3.6), layout="constrained")
plots.dimension_grid(named, n_items=6, axes=axes)
pyplot.show()

# %%
# Similarity is a sum
# -------------------
# One dimension w predicts the similarities w wᵀ: a block of the things that load on it. The blocks of all dimensions
# add up to the similarities, S ≈ W Wᵀ, so each dimension can be interpreted on its own.

order = np.lexsort((-W.max(axis=1), np.argmax(W, axis=1)))
figure, axes = pyplot.subplots(1, 5, figsize=(8, 1.95), layout="constrained")
for ax, name in zip(axes, names, strict=False):
    part = np.outer(named[name], named[name])[np.ix_(order, order)]
    ax.imshow(part, vmin=0, vmax=1.1)
    ax.set_title(name, fontsize=10)
axes[4].imshow(srf.reconstruct()[np.ix_(order, order)], vmin=0, vmax=1.1)
axes[4].set_title("sum of the four", fontsize=10)
for ax, sign in zip(axes, ["+", "+", "+", "=", ""], strict=True):
    ax.set(xticks=[], yticks=[])
    ax.text(1.1, 0.5, sign, transform=ax.transAxes, va="center", ha="center", fontsize=12)
pyplot.show()

# %%
# Why are two things similar?
# ---------------------------
# All terms of the sum are non-negative. The contribution of a dimension to a predicted similarity is therefore a
# meaningful proportion.

pairs = [("fish", "crab"), ("apple", "orange"), ("bicycle", "wheel"), ("horse", "car")]
shares = pd.DataFrame({f"{a} ~ {b}": named.loc[a] * named.loc[b] for a, b in pairs}).T
shares = shares.div(shares.sum(axis=1), axis=0)

figure, ax = pyplot.subplots(figsize=(6.2, 2.2), layout="constrained")
left = np.zeros(len(pairs))
for name, colour in zip(shares, ["#0072B2", "#E69F00", "#009E73", "#CC79A7"], strict=True):
    ax.barh(shares.index, shares[name], left=left, height=0.65, color=colour, label=name)
    left += shares[name]
ax.invert_yaxis()
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_xlabel("Share of the predicted similarity", fontsize=10)
ax.tick_params(labelsize=9)
ax.legend(fontsize=9, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
ax.spines[["top", "right"]].set_visible(False)
pyplot.show()

# sphinx_gallery_thumbnail_number = 3
