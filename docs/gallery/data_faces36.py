"""
Emotion or identity
===================

Twenty-six people judged which of two faces is more similar to a third one. Some rely on the expression, others on the
identity. This example needs the file answers.csv in the folder faces36 of SIMDIMS_DATA: answers about 36 faces of the
Chicago Face Database, from the R package tripletTools.
"""

# %%
# Each row is an answer: the winner is the face that is more like the head. The names of the faces contain the group
# (black or white, female or male), the person, and the expression: happy (HO), angry (A) or fearful (F).

import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot

from simdims import JointSRF, from_comparisons

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

answers = pd.read_csv(Path(os.environ["SIMDIMS_DATA"], "faces36", "answers.csv"))
people = from_comparisons(answers, by="participant", weights="counts")
print(f"{len(answers):,} answers: {people}")
parts = pd.DataFrame([label.split("-") for label in people.labels], index=people.labels)
about = pd.DataFrame(
    {"group": parts[1].str[0], "sex": parts[1].str[1], "person": parts[1] + parts[2], "expression": parts[4]}
)

# %%
# One joint fit with six dimensions, the best of three starts. The table shows the share of the variance of the loadings
# between the values of each property: three dimensions reflect expressions, and three reflect persons, two of which
# separate black and white faces and one female and male ones.

fits = [JointSRF(6, max_iter=2000, random_state=seed).fit(people) for seed in range(3)]
joint = min(fits, key=lambda fit: fit.objective_)
W, weights = joint.embedding_frame(), joint.weights_frame()


def share_between(loadings, values):
    return loadings.groupby(values).transform("mean").var() / loadings.var()


shares = pd.DataFrame(
    {name: [share_between(W[k], values) for k in W] for name, values in about.items()}, index=W.columns
)
print(shares.round(2))
emotional = shares["expression"] > 0.5

# %%
# How strongly each person uses both kinds of dimensions. Some people use almost only expressions, others almost only
# persons. That one weight falls as the other rises is a property of the task: in each answer one pair wins and one
# loses, so all people have the same mean similarity. To test whether the differences exceed noise, weights are
# estimated again from each half of the answers, with fixed dimensions.

order = answers.groupby("participant").cumcount() % 2
halves = [
    joint.weights_for(from_comparisons(part, by="participant", weights="counts", labels=list(people.labels)))
    for _, part in answers.groupby(order)
]


def preference(a):
    """The mean weight on expressions less that on identities."""
    return a[:, emotional].mean(axis=1) - a[:, ~emotional].mean(axis=1)


one, two = (preference(half) for half in halves)
reliability = np.corrcoef(one, two)[0, 1]
emotion, identity = weights.loc[:, emotional].mean(axis=1), weights.loc[:, ~emotional].mean(axis=1)
print(f"Split-half correlation of the preference: {reliability:.2f}")
print(f"Correlation of both weights over people: {np.corrcoef(emotion, identity)[0, 1]:.2f}")

figure, axes = pyplot.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
axes[0].scatter(emotion, identity, color="C0")
for name in weights.index:
    axes[0].annotate(name, (emotion[name], identity[name]), xytext=(3, 3), textcoords="offset points", fontsize=8)
axes[0].set_xlabel("Mean weight on expressions", fontsize=11)
axes[0].set_ylabel("Mean weight on identities", fontsize=11)
axes[1].scatter(one, two, color="C1")
axes[1].axline((0, 0), slope=1, color="0.7", linewidth=1)
axes[1].set_xlabel("Expressions less identities, half of the answers", fontsize=11)
axes[1].set_ylabel("The other half", fontsize=11)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=9)
pyplot.show()
