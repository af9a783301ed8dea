"""plots.system_weights and weight_courses: what is drawn is the weights, their means and intervals."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from simdims import JointSRF, SimilaritySet, discover, plots, simulate
from simdims.metrics import explained_variance

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


@pytest.mark.parametrize(("largest", "extend"), [(9.0, "max"), (1.0, "neither")])
def test_the_key_of_a_heat_map_says_whether_weights_exceed_it(largest, extend):
    ax = plots.system_weights(np.vstack([np.ones((60, 2)), [[1.0, largest]]]), kind="heatmap")
    assert ax.images[0].colorbar.extend == extend


@pytest.mark.parametrize(("names", "label"), [(["1", "2", "3"], "System"), (["anna", "ben", "3"], "")])
def test_the_axis_of_a_heatmap_says_what_numbers_are(names, label):
    weights = pd.DataFrame(np.ones((3, 2)), index=names, columns=["dimension1", "dimension2"])
    assert plots.system_weights(weights).get_ylabel() == label


def test_a_score_is_not_drawn_as_groups():
    with pytest.raises(ValueError, match=r"at most 7 groups, got 9: .*weight_test"):
        plots.system_weights(np.ones((9, 2)), by=np.arange(9))


def test_groups_come_from_info_in_the_order_of_their_categories_and_missing_ones_are_not_drawn():
    W = simulate.dirichlet(12, 2, random_state=0)
    rng = np.random.default_rng(0)
    stack = np.stack([(W * a) @ W.T for a in rng.uniform(0.5, 1.5, size=(5, 2))])
    group = pd.Categorical(["x", "y", "x", None, "y"], categories=["y", "x"])
    joint = JointSRF(2, alpha=0.0, shrinkage=0.01, random_state=0).fit(SimilaritySet(stack, info={"group": group}))
    ax = plots.system_weights(joint, by="group")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["y (2)", "x (2)"]
    assert len(plots.system_weights(joint).images) == 1


def test_the_r2_of_a_reconstruction_of_several_systems_is_that_of_the_average_it_draws():
    W = simulate.dirichlet(16, 2, random_state=0)
    noisy = [simulate.add_noise(W @ W.T, 0.4, random_state=seed) for seed in range(6)]
    found = discover(SimilaritySet(noisy), ranks=2, n_runs=2, random_state=0)
    ax = plots.reconstruction(found)
    R2 = explained_variance(found.mean_similarity, found.embedding)
    assert found.metrics["explained_variance"] < R2 - 0.1
    assert f"{R2:.2f}" in ax.get_title()
    assert "mean of 6 systems" in ax.get_ylabel()


def test_names_that_begin_alike_keep_their_ends():
    W = simulate.dirichlet(6, 2, random_state=0)
    labels = [f"a label that is far too long for its panel, number {i}" for i in range(6)]
    texts = [text.get_text() for text in plots.dimension_grid(W, labels=labels)[0].texts]
    assert sorted(text[-1] for text in texts) == list("012345")
    assert all("…" in text for text in texts)


def test_two_systems_have_a_mean_without_an_interval():
    ax = plots.system_weights(WEIGHTS[:5], by=list("aabbb"))
    first, second = ax.containers
    assert not first.has_yerr
    assert second.has_yerr


def test_long_names_stay_apart_and_groups_have_their_colours():
    names = [f"person with a long name number {m}" for m in range(11)]
    ax = plots.system_weights(pd.DataFrame(WEIGHTS, index=names), by=GROUPS, kind="heatmap")
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert len(set(shown)) == 11
    assert max(map(len, shown)) <= 22
    colours = {text.get_color() for text in ax.get_yticklabels()}
    assert len(colours) == 2
    many = plots.system_weights(np.tile(WEIGHTS, (8, 1)), by=GROUPS * 8, kind="heatmap")
    assert [text.get_text() for text in many.get_yticklabels()] == ["a", "b"]


def test_courses_are_means_at_each_place_with_intervals_over_systems():
    rng = np.random.default_rng(0)
    weights = rng.gamma(2.0, 0.5, size=(24, 2))
    time, group = np.tile([0, 50, 100, 150], 6), np.repeat(list("aaabbb"), 4)
    person = np.repeat(np.arange(6), 4)
    axes = plots.weight_courses(weights, time, by=group, within=person)
    for k, ax in enumerate(axes):
        lines = {line.get_label(): line for line in ax.lines}
        thin = [line for line in ax.lines if line.get_linewidth() == 0.4]
        assert len(thin) == 6
        np.testing.assert_allclose(thin[0].get_ydata(), weights[:4, k])
        for number, name in enumerate("ab"):
            table = weights[group == name, k].reshape(3, 4)
            np.testing.assert_allclose(lines[name].get_xdata(), [0, 50, 100, 150])
            np.testing.assert_allclose(lines[name].get_ydata(), table.mean(axis=0))
            low, high = stats.t.interval(0.95, 2, table.mean(axis=0), stats.sem(table, axis=0))
            drawn = ax.collections[number].get_paths()[0].vertices[:, 1]
            assert drawn.min() == pytest.approx(low.min())
            assert drawn.max() == pytest.approx(high.max())
    texts = axes[0].figure.legends[0].get_texts()
    assert [text.get_text() for text in texts] == ["a", "b"]


def test_two_systems_at_one_place_have_no_band():
    weights = np.random.default_rng(0).gamma(2.0, 0.5, size=(8, 1))
    ax = plots.weight_courses(weights, np.tile([0, 1, 2, 3], 2))[0]
    assert not ax.collections
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), weights.reshape(2, 4).mean(axis=0))


def test_one_series_is_a_line_in_the_order_of_its_names_numbers_or_systems():
    layers = ["input", "conv", "dense", "output"]
    weights = pd.DataFrame(WEIGHTS[:4], columns=["colour", "shape", "size"])
    axes = plots.weight_courses(weights, layers)
    assert [text.get_text() for text in axes[0].get_xticklabels()] == layers
    assert [ax.get_title() for ax in axes] == ["colour", "shape", "size"]
    np.testing.assert_allclose(axes[1].lines[-1].get_ydata(), WEIGHTS[:4, 1])
    assert not axes[1].collections
    backwards = pd.Categorical(layers, categories=layers[::-1])
    np.testing.assert_allclose(plots.weight_courses(weights, backwards)[0].lines[-1].get_ydata(), WEIGHTS[3::-1, 0])
    np.testing.assert_allclose(
        plots.weight_courses(weights, [3, 1, 2, np.nan])[0].lines[-1].get_ydata(), WEIGHTS[[1, 2, 0], 0]
    )
    plain = plots.weight_courses(weights)
    assert plain[0].get_xlabel() == "System"
    np.testing.assert_allclose(plain[2].lines[-1].get_ydata(), WEIGHTS[:4, 2])
