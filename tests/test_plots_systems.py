"""plots.system_weights: what is drawn is the weights, their means and intervals."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from simdims import JointSRF, SimilaritySet, plots, simulate

mpl.use("Agg")

WEIGHTS = np.random.default_rng(0).gamma(2.0, 0.5, size=(11, 3))
GROUPS = list("aababbabaab")


@pytest.fixture(autouse=True)
def close():
    yield
    mpl.pyplot.close("all")


def test_a_strip_has_one_mark_per_system_and_the_mean_and_interval_of_each_group():
    ax = plots.system_weights(WEIGHTS, by=GROUPS)
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    assert sum(len(line.get_ydata()) for line in marks) == WEIGHTS.size
    for number, group in enumerate("ab"):
        own = WEIGHTS[np.array(GROUPS) == group]
        means, _, (bars,) = ax.containers[number].lines
        np.testing.assert_allclose(means.get_ydata(), own.mean(axis=0))
        low, high = stats.t.interval(0.95, len(own) - 1, own.mean(axis=0), stats.sem(own, axis=0))
        drawn = np.array([path.vertices[:, 1] for path in bars.get_paths()])
        np.testing.assert_allclose(drawn, np.stack([low, high], axis=1))
        for k, line in enumerate(marks[3 * number : 3 * number + 3]):
            np.testing.assert_allclose(np.sort(line.get_ydata()), np.sort(own[:, k]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a (6)", "b (5)"]


def test_a_heat_map_has_the_weights_of_each_system_sorted_by_group():
    ax = plots.system_weights(pd.DataFrame(WEIGHTS, index=[f"p{m}" for m in range(11)]), by=GROUPS, kind="heatmap")
    order = np.argsort(GROUPS, kind="stable")
    np.testing.assert_allclose(ax.images[0].get_array(), WEIGHTS[order])
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"p{m}" for m in order]


def test_groups_come_from_info_in_the_order_of_their_categories_and_missing_ones_are_not_drawn():
    W = simulate.dirichlet(12, 2, random_state=0)
    rng = np.random.default_rng(0)
    stack = np.stack([(W * a) @ W.T for a in rng.uniform(0.5, 1.5, size=(5, 2))])
    group = pd.Categorical(["x", "y", "x", None, "y"], categories=["y", "x"])
    joint = JointSRF(2, alpha=0.0, shrinkage=0.01, random_state=0).fit(SimilaritySet(stack, info={"group": group}))
    ax = plots.system_weights(joint, by="group")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["y (2)", "x (2)"]
    assert len(plots.system_weights(joint).images) == 1
