"""
Sixteen people and four brains
==============================

Sixteen people arranged 92 images by similarity (Mur et al., 2013), and four others saw them in a scanner, in two
sessions each (Kriegeskorte et al., 2008). One joint fit relates behaviour to inferior temporal (IT) cortex. Are the two
sessions of a person more similar than sessions of different people? This example needs the files 92_behavRDMs.mat and
92_brainRDMs.mat from the rsatoolbox demo, and a table of names, stimuli92.csv, in the folder mur92 of SIMDIMS_DATA.
"""

# %%
# A MATLAB struct array with one RDM per person or session becomes a set with one system each.

import os
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import JointSRF, SimilaritySet, from_dissimilarity, plots, weight_test

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

folder = Path(os.environ["SIMDIMS_DATA"], "mur92")
names = pd.read_csv(folder / "stimuli92.csv")["name"].tolist()
people = from_dissimilarity(folder / "92_behavRDMs.mat", by="person", labels=names)
sessions = from_dissimilarity(folder / "92_brainRDMs.mat", by="session", labels=names)
systems = {f"behaviour {m + 1}": S for m, S in enumerate(people)}
systems |= {f"IT {name.split(' | ')[1]}, session {name[-1]}": S for name, S in sessions.items()}
info = pd.DataFrame(
    {
        "measure": ["behaviour"] * 16 + ["IT"] * 8,
        "person": [name.removesuffix(", session 1").removesuffix(", session 2") for name in systems],
    },
    index=list(systems),
)
both = SimilaritySet(systems, info=info)
print(both)

# %%
# Cross-validation selects 16 dimensions or more, because judgements are rich. Eight suffice for a figure.

fits = [JointSRF(8, max_iter=2000, random_state=seed).fit(both) for seed in range(2)]
joint = min(fits, key=lambda fit: fit.objective_)
for name, column in joint.embedding_frame().items():
    print(f"{name}: {', '.join(column.nlargest(4).index)}")

ax = plots.system_weights(joint, by="measure", kind="heatmap")
ax.figure.set_size_inches(6, 6.5)
pyplot.show()

# %%
# Compared with behaviour, IT has a larger weight on the dimension of human faces and body parts, and smaller weights on
# fruit and vegetables and on one of the two building dimensions. Sessions are averaged first: each of the 20 people
# counts once.

by_person = joint.weights_frame().groupby(info["person"], sort=False).mean()
print(
    weight_test(by_person, ["IT" if name.startswith("IT") else "behaviour" for name in by_person.index], random_state=0)
)

# %%
# The distance between the weights of two sessions, within and between people. There are 24 ways to assign second to
# first sessions, so the smallest possible p-value is 1/24.


def distances_of_sessions(weights):
    """Distances between first (rows) and second sessions (columns), and the exact p-value of the diagonal."""
    first, second = weights[::2], weights[1::2]
    distances = np.linalg.norm(first[:, None] - second[None], axis=2)
    every = [distances[range(4), list(order)].mean() for order in permutations(range(4))]
    return distances, np.mean(np.array(every) <= every[0] + 1e-12)


own = np.eye(4, dtype=bool)
rows = []
for n_components in (4, 8, 16):
    fit = joint if n_components == 8 else JointSRF(n_components, max_iter=2000, random_state=0).fit(both)
    distances, pvalue = distances_of_sessions(fit.weights_[16:])
    rows.append([n_components, distances[own].mean(), distances[~own].mean(), pvalue])
print(pd.DataFrame(rows, columns=["dimensions", "within", "between", "p"]).round(3).to_string(index=False))

# %%
# Sessions of one person are more similar on average, but with four people the difference is not significant. The same
# holds for the matrices themselves: correlations of 0.23 within and 0.18 between people (p = 0.08).

values = np.stack([S.values[np.triu_indices(92, 1)] for S in sessions])
correlations = np.corrcoef(values)[::2, 1::2]
figure, axes = pyplot.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
titles = {
    "Distance between weights": distances_of_sessions(joint.weights_[16:])[0],
    "Correlation of RDMs": correlations,
}
brains = [name.split(" | ")[1] for name in sessions.names[::2]]
for ax, (title, table) in zip(axes, titles.items(), strict=True):
    image = ax.imshow(table, cmap="magma_r" if title.startswith("Dist") else "magma")
    ax.set_xticks(range(4), labels=brains)
    ax.set_yticks(range(4), labels=brains)
    ax.set(xlabel="Second session", ylabel="First session")
    ax.set_title(title, fontsize=11)
    figure.colorbar(image, ax=ax, shrink=0.8)
pyplot.show()
