"""
A half-empty matrix
===================

Measuring all pairs of many items is often impossible. SRF fits the measured pairs, without imputing the others, and
then predicts the missing ones.
"""

# %%
# 80 items with five dimensions, noise, and 30% of the pairs measured.

import numpy as np
from matplotlib import pyplot

from simdims import SRF, metrics, plots, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

truth = simulate.dirichlet(80, 5, alpha=0.3, random_state=0)
clean = truth @ truth.T
noisy = simulate.add_noise(clean, 0.9, random_state=0)
S = simulate.mask_pairs(noisy, 0.3, random_state=0)  # NaN where a pair is missing
srf = SRF(n_components=5, random_state=0).fit(S)

figure, axes = pyplot.subplots(1, 3, figsize=(8, 2.9), layout="constrained")
shown = {"measured": S, "predicted": srf.reconstruct(), "the truth": clean}
for ax, (title, matrix) in zip(axes, shown.items(), strict=True):
    plots.similarity_heatmap(matrix, truth, values="observed", limits=(0, 0.8), colorbar=False, ax=ax)
    ax.set_title(title, fontsize=10)
pyplot.show()

# %%
# Prediction of missing pairs and recovery of the dimensions, by the fraction of pairs measured:

shares = [0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8]
explained, recovered = [], []
for share in shares:
    masked = simulate.mask_pairs(noisy, share, random_state=1)
    W = SRF(n_components=5, max_iter=2000, random_state=0).fit(masked).embedding_
    unseen = np.where(np.isnan(masked), clean, np.nan)
    explained.append(metrics.explained_variance(np.where(np.eye(80), 1.0, unseen), W))
    recovered.append(metrics.factor_alignment(W, truth).mean)

figure, ax = pyplot.subplots(figsize=(5.6, 3.2), layout="constrained")
ax.plot(shares, np.maximum(explained, 0), "o-", label="variance of unseen pairs explained")
ax.plot(shares, recovered, "s--", label="correlation with the true dimensions")
ax.axvline(5 / 79 * 2, color="0.7", linewidth=1)
ax.text(5 / 79 * 2 + 0.01, 0.03, "as many pairs as loadings", fontsize=9, color="0.4")
ax.set_xlabel("Share of the pairs that are measured", fontsize=10)
ax.set_ylim(0, 1.02)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.tick_params(labelsize=9)
ax.legend(fontsize=9, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.15))
ax.spines[["top", "right"]].set_visible(False)
pyplot.show()
