"""Every plot with long labels, 3 and 66 dimensions, and images: nothing clips, and no text covers another."""

from dataclasses import replace
from itertools import combinations

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.legend import Legend
from matplotlib.text import Text

from simdims import (
    ParameterError,
    Similarity,
    calibrate,
    combined_test,
    compare_embeddings,
    detectable_dimensions,
    discover,
    lineage,
    plots,
    simulate,
)
from simdims.inference import HypothesisTests
from simdims.planning.result import StudyPlan
from simdims.selection.resampling import Resampled
from simdims.uncertainty import Bootstrap

FUNCTIONS = [name for name in plots.__all__ if name != "save_figure"]

#: Pixels that a text may reach beyond the figure, and the share of its box, which has blank margins, in another's.
PIXEL, COVERED = 1.0, 0.15
KINDS = ("long labels", "3 dimensions", "66 dimensions")


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    pyplot.close("all")


class Example:
    """An embedding of one kind and what belongs to it."""

    def __init__(self, kind):
        self.n_dimensions = 66 if kind == "66 dimensions" else 3 if kind == "3 dimensions" else 6
        self.is_long = kind == "long labels"
        self.n_items = 80 if self.n_dimensions == 66 else 50
        self.W = np.random.default_rng(0).gamma(0.3, size=(self.n_items, self.n_dimensions))
        self.labels = self.names("item", self.n_items)
        columns = self.names("dimension", self.n_dimensions) if self.is_long else None
        self.frame = pd.DataFrame(self.W, index=self.labels, columns=columns)
        self.similarity = Similarity(self.W @ self.W.T, self.labels)

    def names(self, what, n):
        if self.is_long:
            return [f"{i}: quite a long name of one particular {what}, with WIDE letters, {i}" for i in range(n)]
        return [f"{what} {i}" for i in range(n)]

    def other(self):
        """Another embedding, with some dimensions in common."""
        rng = np.random.default_rng(1)
        noise = rng.gamma(0.3, size=self.W.shape)
        half = self.n_dimensions // 2 + 1
        return pd.DataFrame(np.hstack([self.W[:, :half], noise[:, half:]]), index=self.labels)


def made_tests(example, test, n):
    rng = np.random.default_rng(0)
    null = rng.normal(0, 0.1, size=(200, n))
    pvalue = np.geomspace(1e-5, 1, n)
    own = {"dimension": tuple(example.frame.columns.map(str)[:n]), "population": ("dimension12",) * n}
    dimensions = own.get(test, (None,) * n)
    statistic = rng.uniform(-0.3, 0.9, n)
    return HypothesisTests(
        test, tuple(example.names("property", n)), statistic, pvalue, dimensions, null, "greater", 0.05, "r"
    )


def combined(example):
    own = combined_test(
        example.W @ example.W.T, example.W, example.frame.iloc[:, :3], n_permutations=19, random_state=0
    )
    return replace(own, hypotheses=tuple(example.names("property", len(own.hypotheses))))


def bootstrap_of(example):
    rng = np.random.default_rng(0)
    n, (n_items, k) = 100, example.W.shape
    noisy = example.W * rng.uniform(0.7, 1.3, size=(n, 1, 1))
    shares = np.sort(rng.dirichlet(np.ones(k), size=n))[:, ::-1]
    one = np.ones((n, 1, k))
    return Bootstrap(
        "items", example.W, np.ones((1, k)), 0.8, noisy, one, shares, np.full(n, 0.8), rng.uniform(0.5, 1, (n, k)),
        0.7, 0.1, 0.1, n_items, n_items**2, np.ones(n, dtype=bool), 0, labels=tuple(example.labels),
    )  # fmt: skip


def plan_of(example):
    """All combinations of pairs, answers and people."""
    cells = pd.MultiIndex.from_product(
        [(0.02, 0.05, 0.8, 0.9, 1.0), (1, 3), (10, 25)], names=["pairs", "answers", "people"]
    )
    table = cells.to_frame(index=False)
    n_pairs = example.n_items * (example.n_items - 1) / 2
    values = {"n_pairs": (table["pairs"] * n_pairs).round(), "alignment": 0.5 + 0.5 * table["pairs"] ** 0.5}
    table = table.assign(**values, alignment_se=0.02, n_answers=1000)
    return StudyPlan(table, "alignment", 0.9, example.n_items, example.n_dimensions, 0.5, 0.3, None, 5, 0)


@pytest.fixture(scope="module")
def small():
    truth = simulate.dirichlet(30, 3, alpha=0.3, random_state=0)
    S = Similarity(simulate.add_noise(truth @ truth.T, 0.8, random_state=0))
    return discover(S, ranks=range(1, 6), n_repeats=1, n_runs=3, random_state=0)


@pytest.fixture(scope="module")
def calibrated():
    W = simulate.dirichlet(60, 3, random_state=0)
    return calibrate(W @ W.T, n_bootstraps=5, random_state=0)


def discovery_of(example, small):
    """As if it had been found by discover."""
    k = example.n_dimensions
    ranks = np.arange(1, k + 4)
    error = 0.1 + 0.9 / ranks
    deviation = {"standard_deviation": 0.2 * error, "standard_error": 0.03, "standard_error_of_difference": 0.03}
    curve = pd.DataFrame({"rank": ranks, "error": error, **deviation})
    resampled = Resampled((k - 1, k, k + 1), (0.2, 0.7, 0.1), 1000)
    valley = tuple(range(k, k + 4))
    selection = replace(small.selection, curve=curve, rank=k, valley=valley, tried=tuple(ranks), resampled=resampled)
    noise = 35 if k == 3 else k  # beyond the ranks that were tried
    detected = replace(detectable_dimensions(small.similarity, random_state=0), rank=noise, at_edge=False)
    runs = {"embeddings": example.W[None], "selected": 0, "labels": tuple(example.labels)}
    consensus = replace(small.consensus, reliability=np.linspace(1, 0.6, k), dimension_names=(), **runs)
    similarity = Similarity(example.W @ example.W.T, example.labels)
    return replace(small, similarity=similarity, selection=selection, consensus=consensus, detectable=detected)


def power_table():
    levels = [("features", "similarities"), (0.1, 0.3), (0, 1), ("dimension", "rsa", "combined")]
    cells = pd.MultiIndex.from_product(levels, names=["noise", "snr", "repeat", "test"]).to_frame(index=False)
    return cells.assign(power=cells["snr"] * (1 + cells["repeat"]))


def drawings(example, small, calibrated):
    """Every plot, in every form that looks different."""
    e = example
    xy = np.random.default_rng(0).random((e.n_items, 2))
    weights = np.random.default_rng(0).gamma(2.0, 0.5, size=(12, e.n_dimensions))
    systems = pd.DataFrame(weights, index=e.names("person", 12), columns=e.frame.columns)
    if not e.is_long:
        systems.columns = [f"dimension{k + 1}" for k in range(e.n_dimensions)]
    groups = np.array(e.names("group", 3))[np.arange(12) % 3]
    found = discovery_of(e, small)
    images = np.random.default_rng(0).random((e.n_items, 8, 8))
    two = e.names("embedding", 2)
    missing = np.where(np.eye(e.n_items, k=3) + np.eye(e.n_items, k=-3), np.nan, e.similarity.values)
    half = e.W[:, : e.n_dimensions // 2 + 1]
    return {
        "similarity_heatmap": lambda: plots.similarity_heatmap(Similarity(missing, e.labels), e.frame),
        "similarity_heatmap both": lambda: plots.similarity_heatmap(e.similarity, e.frame, values="both"),
        "dimension_grid": lambda: plots.dimension_grid(found if not e.is_long else e.frame),
        "dimension_grid images": lambda: plots.dimension_grid(e.frame, images=images),
        "dimension_grid bootstrap": lambda: plots.dimension_grid(bootstrap_of(e)),
        "word_cloud": lambda: plots.word_cloud(e.frame),
        "item_fingerprint": lambda: plots.item_fingerprint(e.frame, 0),
        "embedding_map": lambda: plots.embedding_map(e.frame, coordinates=xy),
        "graph": lambda: plots.graph(e.similarity, e.frame, positions=xy),
        "reconstruction": lambda: plots.reconstruction(e.similarity, e.frame),
        "reconstruction few": lambda: plots.reconstruction(Similarity(e.similarity.values[:30, :30]), e.W[:30]),
        "rank_selection": lambda: plots.rank_selection(found, baselines={e.names("method", 3)[2]: 3, "b": 4}),
        "calibration": lambda: plots.calibration(calibrated),
        "reliability": lambda: plots.reliability(found),
        "alignment": lambda: plots.alignment(half, e.W),
        "embedding_comparison": lambda: plots.embedding_comparison(
            compare_embeddings(e.frame, e.other(), n_permutations=199, random_state=0), names=(two[0], two[1])
        ),
        "lineage": lambda: plots.lineage(lineage([e.frame.iloc[:, :1], pd.DataFrame(half, e.labels), e.frame])),
        "hypothesis_tests dimension": lambda: plots.hypothesis_tests(made_tests(e, "dimension", e.n_dimensions)),
        "hypothesis_tests rsa": lambda: plots.hypothesis_tests(made_tests(e, "rsa", 1)),
        "hypothesis_tests regression": lambda: plots.hypothesis_tests(made_tests(e, "regression", e.n_dimensions)),
        "hypothesis_tests combined": lambda: plots.hypothesis_tests(combined(e)),
        "power_curves": lambda: plots.power_curves(power_table()),
        "power_curves one": lambda: plots.power_curves(power_table().query("noise == 'features'")),
        "study_plan": lambda: plots.study_plan(plan_of(e)),
        "uncertainty shares": lambda: plots.uncertainty(bootstrap_of(e)),
        "uncertainty loadings": lambda: plots.uncertainty(bootstrap_of(e), "loadings"),
        "system_weights heatmap": lambda: plots.system_weights(systems),
        "system_weights heatmap groups": lambda: plots.system_weights(systems, by=groups, kind="heatmap"),
        "system_weights strip": lambda: plots.system_weights(systems, by=groups),
        "weight_courses": lambda: plots.weight_courses(systems, np.repeat(e.names("layer", 4), 3), by=groups),
        "figure_panel": lambda: plots.figure_panel(found, made_tests(e, "dimension", e.n_dimensions)),
        "figure_panel images": lambda: plots.figure_panel(found, images=images, width="single"),
    }


def figure_of(made):
    first = np.ravel(np.asarray(made, dtype=object))[0]
    return first if hasattr(first, "savefig") else first.figure


def texts_drawn(figure, monkeypatch):
    """The texts that drawing a figure draws, which are fewer than those it holds."""
    drawn, draw = [], Text.draw

    def record(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn.append(text)
        draw(text, renderer)

    figure.canvas.draw()
    with monkeypatch.context() as patch:
        patch.setattr(Text, "draw", record)
        figure.canvas.draw()
    return drawn


def is_outside(box, figure):
    whole = figure.bbox
    beyond = (whole.x0 - box.x0, box.x1 - whole.x1, whole.y0 - box.y0, box.y1 - whole.y1)
    return max(beyond) > PIXEL


def covered(one, other):
    """The share of the smaller of two boxes that lies in the other."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    smaller = min(one.width * one.height, other.width * other.height)
    return width * height / smaller if width > 0 and height > 0 and smaller else 0.0


def flaws(figure, monkeypatch):
    """What is cut off at the edge of a figure, and texts that cover each other."""
    texts = texts_drawn(figure, monkeypatch)
    boxes = [text.get_window_extent() for text in texts]
    found = [f"cut off: {text.get_text()!r}" for text, box in zip(texts, boxes, strict=True) if is_outside(box, figure)]
    found += ["cut off: a legend" for one in figure.findobj(Legend) if is_outside(one.get_window_extent(), figure)]
    straight = [(text, box) for text, box in zip(texts, boxes, strict=True) if text.get_rotation() % 90 == 0]
    for (one, box), (other, other_box) in combinations(straight, 2):
        if covered(box, other_box) > COVERED:
            found.append(f"covered: {one.get_text()!r} and {other.get_text()!r}")
    return found


@pytest.fixture(scope="module", params=KINDS)
def forms(request, small, calibrated):
    return drawings(Example(request.param), small, calibrated)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_cut_off_and_no_text_covers_another(function, forms, monkeypatch):
    own = {name: draw for name, draw in forms.items() if name.split()[0] == function}
    assert own
    for name, draw in own.items():
        assert flaws(figure_of(draw()), monkeypatch) == [], name


def test_flaws_are_found(monkeypatch):
    figure, ax = pyplot.subplots(figsize=(2, 2))
    ax.set_axis_off()
    ax.text(0.2, 0.5, "one text")
    assert flaws(figure, monkeypatch) == []
    ax.text(0.3, 0.5, "another")
    ax.plot([0, 1], label="a long name of a line")
    ax.legend(loc="lower left", bbox_to_anchor=(0.9, 0.1))
    assert flaws(figure, monkeypatch) == [
        "cut off: 'a long name of a line'", "cut off: a legend", "covered: 'one text' and 'another'",
    ]  # fmt: skip


def test_a_panel_has_a_letter_for_each_part_that_there_is(small):
    example = Example("3 dimensions")
    found = discovery_of(example, small)

    def letters(figure):
        return "".join(sorted(text.get_text() for text in figure.findobj(Text) if text.get_text() in set("abcd")))

    tests = made_tests(example, "rsa", 3)
    assert letters(plots.figure_panel(found, tests)) == "abcd"
    assert letters(plots.figure_panel(found)) == "abc"
    given = replace(found, selection=None)
    assert letters(plots.figure_panel(given, tests, width="single")) == "abc"
    assert letters(plots.figure_panel(given, width="single")) == "ab"


@pytest.mark.parametrize(("width", "inches"), [("single", 3.5), ("double", 7.0)])
def test_a_panel_is_as_wide_as_columns_and_says_which_dimensions_it_shows(small, width, inches):
    figure = plots.figure_panel(discovery_of(Example("66 dimensions"), small), width=width, n_dimensions=5)
    assert figure.get_figwidth() == inches
    labels = [ax.get_xlabel() for ax in figure.axes]
    assert sum("Dimensions 1 to 5 of 66" in label for label in labels) == 1
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [title for title in titles if title] == [f"Dimension {k}" for k in range(1, 6)]


def test_a_panel_refuses_what_is_no_result(small):
    for call, name in (
        (lambda: plots.figure_panel(np.eye(3)), "result"),
        (lambda: plots.figure_panel(small, tests=3), "tests"),
        (lambda: plots.figure_panel(small, n_dimensions=0), "n_dimensions"),
        (lambda: plots.figure_panel(small, width=3.5), "width"),
    ):
        with pytest.raises(ParameterError) as caught:
            call()
        assert caught.value.name == name
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("last", "ticks"),
    [(3, [1, 2, 3]), (12, list(range(1, 13))), (20, [1, 5, 10, 15, 20]), (66, [1, 10, 20, 30, 40, 50, 60])],
)
def test_ticks_are_at_dimensions(last, ticks):
    assert plots.reliability(np.linspace(1, 0.5, last)).get_xticks().tolist() == ticks
    weights = plots.system_weights(np.ones((3, last)), kind="heatmap")
    at = [int(text.get_text()) - 1 for text in weights.get_xticklabels()]
    assert at == weights.get_xticks().tolist()


def test_a_grid_says_which_dimensions_it_leaves_out():
    W = Example("66 dimensions").W

    def note(**options):
        return plots.dimension_grid(W, **options)[-1].get_xlabel()

    assert note(per_page=66) == "Loading"
    assert note(page=6) == "Loading\nDimensions 61 to 66 of 66,\npage 6 of 6"
    assert note(dimensions=[3]) == "Loading\n1 dimension of 66"
    assert note(dimensions=[3, 9]) == "Loading\n2 dimensions of 66"
    images = np.ones((len(W), 2, 2))
    assert note(images=images, dimensions=[5, 6]) == "Dimensions 5 to 6 of 66"


@pytest.mark.parametrize("common_scale", [True, False])
def test_bars_of_a_grid_have_a_scale(common_scale):
    axes = plots.dimension_grid(Example("3 dimensions").W, common_scale=common_scale)
    assert [ax.get_xlabel() for ax in axes] == ["", "Loading", "Loading"]
    has_scale = [bool(len(ax.get_xticks())) for ax in axes]
    assert has_scale == [not common_scale, True, True]


def test_labels_of_a_heatmap_that_nobody_could_read_are_left_out(small):
    example = Example("3 dimensions")
    large = plots.similarity_heatmap(example.similarity, example.frame)
    sizes = {text.get_size() for text in large.get_yticklabels()}
    assert len(large.get_yticks()) == 50
    assert min(sizes) >= 3.9
    _, ax = pyplot.subplots(figsize=(2, 2), layout="constrained")
    plots.similarity_heatmap(example.similarity, example.frame, ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1", "2", "3"]


def test_shared_dimensions_have_their_null_interval():
    example = Example("3 dimensions")
    result = compare_embeddings(example.frame, example.other(), n_permutations=199, random_state=0)
    ax = plots.embedding_comparison(result)
    intervals, bars = ax.containers
    low, high = np.quantile(result.null_distribution[:, result.is_shared], [0.025, 0.975], axis=0)
    np.testing.assert_allclose([bar.get_x() for bar in intervals], low)
    np.testing.assert_allclose([bar.get_x() + bar.get_width() for bar in intervals], high)
    np.testing.assert_allclose([bar.get_width() for bar in bars], result.correlation[result.is_shared])
    assert "95% null interval" in ax.get_xlabel()
