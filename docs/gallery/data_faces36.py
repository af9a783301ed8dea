"""
Emotion or identity
===================

Twenty-six people were shown a face and asked which of two others is more like it. Some go by the expression, others by
who it is. This example needs the file answers.csv of the folder faces36 of SIMDIMS_DATA: answers about 36 faces of the
Chicago Face Database, from the R package tripletTools.
"""

# %%
# Each row is an answer: of two faces, the winner is more like the head. The names of the faces have the group (black or
# white, female or male), the person, and the expression: happy (HO), angry (A) or fearful (F).

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
# One joint fit with six dimensions, the best of three starts. What are they about? The share of the variance of the
# loadings that lies between the values of a property: three dimensions are expressions, and three are persons, two of
# which separate black and white faces. None is about sex.

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
# How much each person uses both kinds of dimensions. People range from those who see little but expressions to those
# who see little but persons. That one weight falls as the other rises is a property of the task: in every answer one
# pair wins and one loses, so that the mean similarity is the same for everybody. To see if the differences are more
# than noise, weights are computed again from either half of the answers, with the dimensions as they are.

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
