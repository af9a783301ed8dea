"""
Few pairs, noisy pairs
======================

With few measured pairs, a fit can explain all of them and still predict the others badly. A penalty on the loadings
prevents this. Its strength is chosen by held-out pairs.
"""

# %%
# Four data sets of 100 items with five dimensions and noise. Models are fitted to different shares of the pairs, with
# and without a penalty, and the predictions of the other pairs are compared with their true similarities.

import warnings

import numpy as np
from matplotlib import pyplot

from simdims import SRF, align, simulate

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

n_items, n_dimensions = 100, 5
shares = [0.08, 0.1, 0.13, 0.17, 0.22, 0.3, 0.45, 0.7]


def error_on_unseen_pairs(seed, share, alpha, keep_diagonal):
    """Mean squared error over the pairs that were not observed, relative to the variance of their similarities."""
    truth = simulate.dirichlet(n_items, n_dimensions, alpha=0.3, random_state=seed)
    clean = truth @ truth.T
    noisy = simulate.add_noise(clean, 0.7, random_state=seed)
    S = simulate.mask_pairs(noisy, share, keep_diagonal=keep_diagonal, random_state=seed)
    srf = SRF(n_dimensions, alpha=alpha, max_iter=2000, random_state=0).fit(S)
    unseen = np.triu(np.isnan(S), 1)
    return np.mean((srf.reconstruct() - clean)[unseen] ** 2) / clean[unseen].var()


# %%
# Left: without measured self-similarities, as is usual for judgements. Right: with self-similarities.

figure, axes = pyplot.subplots(1, 2, figsize=(8.5, 3.6), sharey=True, layout="constrained")
styles = {0.0: ("C3", "s--", "no penalty"), "auto": ("C0", "o-", 'alpha="auto"')}
for ax, keep_diagonal in zip(axes, [False, True], strict=True):
    for alpha, (color, style, label) in styles.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits to so few pairs warn that they are underdetermined
            errors = [
                [error_on_unseen_pairs(seed, share, alpha, keep_diagonal) for share in shares] for seed in range(4)
            ]
        ax.plot(shares, np.transpose(errors), color=color, linewidth=0.7, alpha=0.4)
        ax.plot(shares, np.median(errors, axis=0), style, color=color, label=label)
    ax.axhline(1, color="0.5", linewidth=1)
    as_many = 2 * n_dimensions / (n_items - 1)
    ax.axvline(as_many, color="0.7", linestyle=":", linewidth=1)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(shares, labels=[f"{share:.0%}" for share in shares])
    ax.minorticks_off()
    ax.tick_params(labelsize=9)
    ax.set_xlabel("Share of the pairs that are observed", fontsize=10)
    ax.set_title(f"Diagonal {'observed' if keep_diagonal else 'missing'}", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].text(shares[-1], 1.15, "predicting the mean", fontsize=9, color="0.4", ha="right")
axes[1].text(as_many * 1.04, 20, "as many pairs\nas loadings", fontsize=9, color="0.4", va="bottom")
axes[0].set_ylabel("Error on unseen pairs / variance", fontsize=10)
axes[1].legend(fontsize=9, frameon=False)
pyplot.show()

# %%
# Ridge (the default) shrinks loadings, and l1 sets many of them to zero. Here each item has few dimensions, and 25% of
# the pairs are observed. The figure shows all loadings, with the items sorted by their true dimensions.

truth = simulate.dirichlet(n_items, n_dimensions, alpha=0.05, random_state=0)
noisy = simulate.add_noise(truth @ truth.T, 0.7, random_state=0)
S = simulate.mask_pairs(noisy, 0.25, keep_diagonal=False, random_state=0)
loadings = {"true": truth}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for name, penalty in {
        "no penalty": {},
        "ridge": {"alpha": "auto"},
        "l1": {"alpha": "auto", "l1_ratio": 1.0},
    }.items():
        srf = SRF(n_dimensions, max_iter=2000, random_state=0, **penalty).fit(S)
        loadings[name] = align(srf.embedding_, truth).embedding

order = np.lexsort((truth.max(axis=1), truth.argmax(axis=1)))
figure, axes = pyplot.subplots(1, 4, figsize=(7, 3.8), sharey=True, layout="constrained")
for ax, (name, W) in zip(axes, loadings.items(), strict=True):
    shown = ax.imshow(W[order], aspect="auto", interpolation="none", cmap="magma_r", vmin=0, vmax=1)
    ax.set_title(f"{name}\n{np.mean(W < 1e-3):.0%} below 0.001", fontsize=10)
    ax.set_xticks(range(n_dimensions), labels=range(1, n_dimensions + 1))
    ax.set_xlabel("Dimension", fontsize=10)
    ax.tick_params(labelsize=9)
axes[0].set_ylabel("Item", fontsize=10)
figure.colorbar(shown, ax=axes, extend="max").set_label("Loading", fontsize=10)
pyplot.show()
