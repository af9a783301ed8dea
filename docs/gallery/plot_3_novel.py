"""
A graph: the characters of a novel
==================================

The number of times two characters of *Les Misérables* appear together is a similarity. The dimensions are social
groups, and a character may belong to several.
"""

# %%
# The novel is known completely, so characters who never meet are observed zeros (``absent="zero"``). The diagonal is
# unobserved and not used.

from matplotlib import pyplot

from simdims import SRF, datasets, metrics, plots

pyplot.rcParams["font.size"] = 13  # for screens; the default suits a journal column

S = datasets.load_miserables()
srf = SRF(n_components=6, max_iter=3000, random_state=0).fit(S)
auc = metrics.link_auc(S, srf.embedding_, random_state=0)
print(f"In-sample AUC of linked and unlinked pairs: {auc:.2f}")

figure, axes = pyplot.subplots(2, 3, figsize=(8, 3.8), layout="constrained")
plots.dimension_grid(srf, axes=axes)
pyplot.show()

# %%
# The graph, with the loadings of each character as a pie chart.

figure, ax = pyplot.subplots(figsize=(8, 7), layout="constrained")
plots.graph(S, srf, n_neighbors=2, n_labels=40, ax=ax)
pyplot.show()

# sphinx_gallery_thumbnail_number = 2
