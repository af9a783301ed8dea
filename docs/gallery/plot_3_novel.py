"""
A graph: the characters of a novel
==================================

How often two characters of *Les Misérables* appear together is a similarity, and dimensions are the circles in
which they move. A character may belong to several.
"""

# %%
# Characters who never meet are an observed zero (``absent="zero"``): the novel is known completely. On the
# diagonal there is nothing, and nothing is assumed.

from matplotlib import pyplot

from simdims import SRF, datasets, metrics, plots

pyplot.rcParams["font.size"] = 13  # for a screen; the default suits a column of a journal

S = datasets.load_miserables()
srf = SRF(n_components=6, max_iter=3000, random_state=0).fit(S)
auc = metrics.link_auc(S, srf.embedding_, random_state=0)
print(f"Linked pairs are told from others with an AUC of {auc:.2f}")

figure, axes = pyplot.subplots(2, 3, figsize=(8, 3.8), layout="constrained")
plots.dimension_grid(srf, axes=axes)
pyplot.show()

# %%
# The graph: every character is a pie of the dimensions that it has.

figure, ax = pyplot.subplots(figsize=(8, 7), layout="constrained")
plots.graph(S, srf, n_neighbors=2, n_labels=40, ax=ax)
pyplot.show()

# sphinx_gallery_thumbnail_number = 2
