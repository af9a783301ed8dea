"""
Who sees red and green differently
==================================

Fourteen people, four of them red-green deficient, judged how different ten colours are. One fit to all people estimates
dimensions of colour and how strongly each person uses them, without using the groups.
"""

# %%
# The dissimilarities of Helm (1959), *A multidimensional ratio scaling analysis of color relations*, as included in the
# R package smacof. N: normal colour vision; CD: red-green deficient. Two people judged twice (a and b). Each name is
# followed by 45 dissimilarities, one per pair of colours, row by row of the upper triangle.

from matplotlib import pyplot

from simdims import JointSRF, from_dissimilarity, plots, weight_test

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

table = """
N1   6.8 12.5 13.8 14.2 12.5 11 8.6 5.5 3.5 5.4 8.3 10.4 11.6 13.8 14.3 11.8 8.9 5.2 7.2 9.5 11.3 13.5 14.6 14.1 3.7
     5.9 10.1 11.1 12.3 12.5 4.2 6.9 10.2 12.1 11.2 4.3 6.8 9.9 10.7 4.8 7.4 8.7 4.5 6.1 3.6
N2   5.9 11.1 18.8 17.3 16.6 16.5 8.3 5.7 4.2 4.9 10.6 14.3 16.6 17.3 14.5 9.5 7.3 4.8 8.3 13.2 14.6 16.1 14 13.8 3.6
     5.3 8.2 14.5 17 17.3 3.5 6.8 11 15.8 15.8 3.8 7.4 13.8 15.1 5.7 10.9 13.9 5 6 3.5
N3   7.1 10.2 11.1 12.5 11.8 9.9 8.6 4.3 2.9 5.7 11.5 10.7 11.8 11.2 12.5 9.2 8.2 6.7 8.9 9.4 11.3 12.5 11.9 10.5 3.7
     5.9 10.3 11.6 10.9 11.5 3.6 8.2 9.8 11.3 11.1 5.1 8.1 10.2 10.6 4.9 8.7 9.7 6.3 7.5 3
N4   7.5 10.3 10.7 11.6 10.6 9.7 8.4 5.8 3.6 6.9 8.5 10.7 11.1 12.2 10.8 9.9 8 4.9 6.6 8.7 10.6 11.7 11.1 12 3.5 6.3
     7.8 10.4 11.6 11.3 4.1 6.5 8.6 10 10.8 5 7.4 9.1 10.7 5.9 8.7 9.6 5.6 6.7 3.5
N5   6.6 10.5 10.2 9.6 10.8 9.7 8.5 4.9 3.5 5.5 9.6 9.3 9.9 11.7 11.6 10.3 8 7.2 8.3 9.3 11.3 11.9 11.8 11.5 4.7 6.2
     8.9 10.3 11.6 10.2 3.3 6.3 9.1 11.1 10.4 4.2 8.9 9.4 10.6 6.6 8.9 9.2 5.8 7.3 2.9
N6a  5.2 9.4 11.4 13.3 12 12.3 10.6 4.9 3.5 6.2 11.2 13.5 12.9 12 11.5 8.2 6.3 5.6 8.2 9.6 12.7 13.7 13.4 11.7 4 5.8
     6.8 9.3 10.5 12.2 3.8 5.4 7.9 9.9 13.2 3.6 5.6 9 10.4 4.2 8.2 9.8 5.1 6.8 3.8
N6b  5.8 10.5 13.4 14 13.2 11.7 10.2 6.4 3.5 4.9 12.2 14.8 14.6 14.1 13.4 9.7 7.9 4.6 8.3 10.7 12.8 14.1 12.9 10.9
     3.5 4.7 8.8 11 11.8 11.7 3.6 6.9 9.4 12.4 13.7 4.1 6.9 10.6 12.2 4.1 10 11.1 4.1 6.9 3.4
N7   6.2 10.8 9.9 11.1 10.3 8.8 7.6 5.8 3 7.5 8.9 10.7 10.8 10.6 10.4 9 7.5 6.3 8.7 9.6 10.1 10.8 11.7 9.4 3.9 6.8
     9.4 9.7 10.4 9.7 5 8.3 9 10.9 9.6 4.3 7.3 9 8.8 4.9 7.2 7.6 4.7 5.6 3.5
N8   7.5 9.1 10.2 12.1 12.5 9.7 9.8 8.3 6.7 4.4 7.9 10.4 11.2 12.6 11.4 11.3 10.4 5.7 8.3 10.2 11.3 12.2 11.9 10.7
     3.9 6.5 8.7 10.3 10.7 12.6 4.6 7.8 9.9 11.2 11.6 6.3 9.6 10.6 11.6 4.8 6.8 9.1 4.6 7.4 5.2
N9   6 9.4 9.5 9.5 9.8 8.7 6.7 4.9 4.1 7.1 9.5 9.5 9.9 10.6 10.6 8.5 7.9 7.6 8.9 9.8 10.5 10.7 9.7 10.2 3.8 5.3 7.3
     7.6 9.2 10.1 4.8 6.2 8.2 9.1 9.7 4.7 6.7 8.8 9.9 4.5 7.2 6.8 4 5.3 3.4
N10  9.2 10.8 9.7 10.1 10.3 9.7 9 6.6 4.6 5.5 8.2 9.4 10.1 10.5 10.8 11.2 10.5 4.6 6.7 9.8 11.3 11.9 11.5 10.2 3.7
     6.6 8.7 10.6 10 7.7 4 7.5 9.9 10.9 10.6 5.4 9.3 9.9 9.7 5.6 8.2 9.7 5.3 6.3 3.4
CD1  11.5 13.1 12.6 10.6 10.6 10.8 7.3 5.4 5 6 7.9 8.4 9.4 10.2 11.3 11.5 11.5 6.2 8.4 9.9 10.3 12.7 12.9 10.7 5.2
     6.5 8.8 11.2 11.7 10.2 4.1 7 10.4 10.8 10.6 6.4 9.9 9.4 10.1 4.2 8.4 8.1 4.5 6.4 3
CD2a 9.3 10.7 10.7 11.9 11 9.8 8.9 8.9 5.1 6.5 8 8.2 8.9 9.3 10.7 10.1 9.6 4.4 7 10.8 10.4 11.8 11.6 10.2 4.6 9.6
     10.8 11.9 11.3 10.9 5.8 8 10.5 10.4 10.7 7.7 9.6 10.6 10.7 7.4 9 8.7 4.5 7 4.5
CD2b 9 10 10.4 10 9.3 8.6 8.8 7.5 5.8 6.9 8.9 8.4 8.3 9.7 11.1 10.6 10.3 6 6.8 8.2 10.9 11.6 9.6 10.5 4.2 7.3 10.1
     10.2 10.6 10.3 5.2 7.6 9.2 10.3 10.3 6.4 9.5 10 9.6 7 7.9 8.7 4.8 6.7 4.3
CD3  10.4 12.4 12.8 13.7 11.8 4.3 4 5.5 4.1 8.1 10.8 10.4 4.6 9.6 12.3 14.2 13 3.5 4.3 7.9 13 13.8 14.8 13.9 3.5 9
     12.3 12.3 12.9 14.5 7 13.1 13.1 13.6 14.1 9.9 11.3 13.6 12.3 3.9 5.3 6.4 4.7 3.2 2.4
CD4  9.9 13.2 12.3 11.1 8.7 5.6 7.4 6.4 5.8 7.3 7.9 6.9 6.8 9.9 13.1 12.7 12.1 4.5 5.3 9.7 11.5 13.7 14.1 13.4 5.3
     8.6 12.5 13.4 14.1 13.1 6.9 9 12.2 12.5 13.4 6.7 9.7 11.3 9.9 5.5 7.4 5.4 4.2 4 4.3
"""
colours = {
    "red-purple": "#b8336a", "red": "#d62f2f", "yellow": "#e6c619", "green-yellow 1": "#b5cc3a",
    "green-yellow 2": "#7fb83d", "green": "#2e9e5b", "blue": "#2f7fc1", "blue-purple": "#5a55b8",
    "purple 1": "#8246a8", "purple 2": "#9c3f93",
}  # fmt: skip
judged = {}
for word in table.split():
    if word[0].isalpha():
        judged[word] = []
    else:
        list(judged.values())[-1].append(float(word))
people = from_dissimilarity(list(judged.values()), by=list(judged), labels=list(colours))
print(people)

# %%
# One fit to all 16 matrices, the best of five starts, without the groups.

fits = [JointSRF(4, random_state=seed).fit(people) for seed in range(5)]
joint = min(fits, key=lambda fit: fit.objective_)
loadings = joint.embedding_frame()

figure, axes = pyplot.subplots(1, 4, figsize=(9, 3), sharey=True, layout="constrained")
for ax, (name, column) in zip(axes, loadings.items(), strict=True):
    ax.barh(list(colours), column, color=list(colours.values()))
    ax.set_title(name.replace("dimension", "Dimension "), fontsize=11)
    ax.tick_params(labelsize=9)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
figure.supxlabel("Loading", fontsize=10)
pyplot.show()

# %%
# Each row is a matrix, sorted by group, and each column a dimension. A weight of 1 is average.

groups = ["deficient" if name.startswith("CD") else "normal" for name in people.names]
ax = plots.system_weights(joint, by=groups, kind="heatmap")
ax.figure.set_size_inches(5, 5)
pyplot.show()

# %%
# Deficient people have smaller weights on the red-purple and green dimensions, and larger weights on the yellow one.
# The test excludes the second judgements of two people, so each person counts once. It uses all 1,001 ways to choose 4
# of 14 people, so the p-values are exact. Intervals are for the difference between mean weights.

weights = joint.weights_frame().drop(["N6b", "CD2b"])
groups = ["deficient" if name.startswith("CD") else "normal" for name in weights.index]
tests = weight_test(weights, groups)
print(tests)

ax = plots.system_weights(weights, by=groups)
ax.figure.set_size_inches(6, 3.6)
pyplot.show()
