"""Plots: what is drawn, where, in which order, and what is written beside it."""

import html
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.figure import Figure
from scipy import sparse

import simdims
from simdims import (
    SRF,
    ParameterError,
    Similarity,
    SimilaritySet,
    bootstrap,
    calibrate,
    combined_test,
    compare_embeddings,
    detectable_dimensions,
    discover,
    lineage,
    plan_study,
    plots,
    simulate,
)
from simdims.inference import HypothesisTests
from simdims.plots._style import all_fitted, all_shown, fitted, fitted_list, text_size
from simdims.plots.dimensions import arrange
from simdims.plots.similarities import _some_pairs, observed_means
from simdims.selection.resampling import Resampled

ODD = ["$5 and $x_1^", "<script>alert(1)</script>", "two\nlines\tand tabs", "%&_#{}\\", "Ærøskøbing", "x" * 300]


@pytest.fixture(autouse=True)
def no_figures_left():
    before = dict(matplotlib.rcParams)
    yield
    pyplot.close("all")
    assert dict(matplotlib.rcParams) == before, "a plot changed matplotlib's settings"


@pytest.fixture(scope="module")
def found():
    truth = simulate.dirichlet(40, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(truth @ truth.T, 0.8, random_state=0)
    labels = [*ODD, *(f"item {i}" for i in range(len(ODD), 40))]
    return discover(Similarity(S, labels), ranks=range(1, 6), n_repeats=1, n_runs=4, random_state=0)


@pytest.fixture(scope="module")
def tests_made():
    X = simulate.factorial([3, 3])
    noise = np.random.default_rng(0).random(9)
    hypotheses = {"$red$": X[:, 0], "<b>green</b>": X[:, 1], "noise": noise}
    return combined_test(X @ X.T, X, hypotheses, n_permutations=99, random_state=0)


def drawn(axes):
    """Draw everything, as a file would; a label that is parsed as a formula would fail here."""
    first = np.ravel(np.asarray(axes, dtype=object))[0]
    first.figure.canvas.draw()
    return axes


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def line_of(ax, label):
    """The coordinates of the line with a label."""
    line = next(line for line in ax.lines if line.get_label() == label)
    return np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()


def many_tests(n, n_permutations):
    rng = np.random.default_rng(0)
    names = tuple(f"hypothesis {i}" for i in range(n))
    null = rng.random((n_permutations, n))
    return HypothesisTests("rsa", names, rng.random(n), rng.random(n), (None,) * n, null, "greater", 0.05, "r")


def every_plot(result, S, W):
    return {
        "similarity_heatmap": lambda: plots.similarity_heatmap(S, W),
        "dimension_grid": lambda: plots.dimension_grid(result),
        "word_cloud": lambda: plots.word_cloud(result),
        "reconstruction": lambda: plots.reconstruction(S, W),
        "item_fingerprint": lambda: plots.item_fingerprint(result, 0),
        "embedding_map": lambda: plots.embedding_map(result, coordinates=np.random.default_rng(0).random((len(W), 2))),
        "graph": lambda: plots.graph(S, W),
        "reliability": lambda: plots.reliability(np.linspace(0.5, 1, W.shape[1])),
        "alignment": lambda: plots.alignment(W, W),
    }


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("n_dimensions", [1, 2, 300])
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("name", sorted(every_plot(None, None, np.ones((2, 2)))))
def test_every_plot_draws_1_to_300_dimensions_with_and_without_labels(name, labelled, n_dimensions):
    W = np.random.default_rng(0).gamma(0.3, size=(320, n_dimensions))[: 20 if n_dimensions < 300 else 320]
    labels = [*ODD, *(f"item {i}" for i in range(len(W) - len(ODD)))] if labelled else None
    result = W if labels is None else pd.DataFrame(W, index=labels)
    drawn(every_plot(result, Similarity(W @ W.T, labels), W)[name]())


def test_every_kind_of_result_gives_the_same_embedding(found):
    srf = SRF(3, random_state=0).fit(found.similarity)
    results = [(result, found.embedding) for result in (found, found.consensus, found.embedding_frame())]
    for result, W in [*results, (found.embedding, found.embedding), (srf, srf.embedding_)]:
        ax = plots.item_fingerprint(result, 7)
        assert sorted(bar.get_width() for bar in ax.patches) == pytest.approx(sorted(w for w in W[7] if w))


def test_given_axes_are_drawn_into_and_no_figure_is_made(found, tests_made):
    figure = Figure()
    axes = figure.subplots(2, 1)
    calibrated = calibrate(found.similarity, n_bootstraps=3, random_state=0)
    assert list(plots.calibration(calibrated, axes=axes)) == list(axes)
    ax = figure.subplots()
    for name in ("similarity_heatmap", "word_cloud", "rank_selection", "reliability", "reconstruction", "graph"):
        assert getattr(plots, name)(found, ax=ax) is ax
    assert plots.hypothesis_tests(tests_made, ax=ax) is ax
    assert pyplot.get_fignums() == []


def test_new_figures_are_as_wide_as_a_column_with_text_of_six_to_seven_points(found):
    ax = plots.rank_selection(found)
    assert ax.figure.get_size_inches()[0] == 3.5
    sizes = [ax.xaxis.label.get_size(), *(text.get_size() for text in ax.get_xticklabels())]
    assert min(sizes) == pytest.approx(6)
    assert max(sizes) == pytest.approx(7)
    with matplotlib.rc_context({"font.size": 20}):
        assert plots.rank_selection(found).xaxis.label.get_size() == pytest.approx(14)


def test_files_hold_text_as_text(found, tmp_path):
    plots.save_figure(plots.dimension_grid(found), tmp_path / "grid.svg")
    written = (tmp_path / "grid.svg").read_text(encoding="utf-8")
    assert "Dimension 1" in written
    assert "<script>" not in written
    plots.save_figure(plots.reliability(found), tmp_path / "reliability.pdf")
    written_pdf = (tmp_path / "reliability.pdf").read_bytes()
    assert b"/CIDFontType2" in written_pdf  # a TrueType font, which editors take as text
    assert b"/Type3" not in written_pdf


def test_import_of_the_package_does_not_load_matplotlib():
    code = "import sys, simdims; simdims.plots.reliability; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None\n"
        "from simdims import plots, Similarity\n"
        "print('<img' in Similarity([[1, 0.5], [0.5, 1]])._repr_html_())\n"
        "try: plots.reliability([0.5])\n"
        "except ImportError as error: print(error)"
    )
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.splitlines()
    assert lines[0] == "False"
    assert "pip install matplotlib" in lines[1]


def test_every_public_name_is_documented():
    for name in plots.__all__:
        text = getattr(plots, name).__doc__
        assert "Parameters\n" in text
        assert ">>>" in text
    assert simdims.plots is plots


# ---------------------------------------------------------------- similarity_heatmap


def test_heatmap_orders_items_by_dimension_and_then_by_loading():
    W = np.array([[0.0, 0.9], [0.5, 0.0], [0.9, 0.1], [0.0, 0.0], [0.1, 0.4]])
    ax = plots.similarity_heatmap(W @ W.T, W, labels=list("abcde"))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["c", "b", "a", "e", "d"]
    order = [2, 1, 0, 4, 3]
    np.testing.assert_allclose(ax.images[0].get_array(), (W @ W.T)[np.ix_(order, order)])


def test_missing_pairs_are_masked_and_named():
    S = np.full((6, 6), 0.5)
    S[1, 4] = S[4, 1] = np.nan
    ax = plots.similarity_heatmap(S, order=None)
    cells = ax.images[0].get_array()
    assert np.argwhere(np.ma.getmaskarray(cells)).tolist() == [[1, 4], [4, 1]]
    assert tuple(ax.images[0].cmap.get_bad()) == (1, 1, 1, 1)
    legends = [axes.get_legend() for axes in ax.figure.axes if axes.get_legend() is not None]
    assert [text.get_text() for legend in legends for text in legend.get_texts()] == ["missing"]

    weights = np.where(np.isnan(S), 0.0, 1.0)  # a weight of 0 is missing, too
    weighted = plots.similarity_heatmap(Similarity(np.full((6, 6), 0.5), weights=weights), order=None)
    np.testing.assert_array_equal(np.ma.getmaskarray(weighted.images[0].get_array()), np.ma.getmaskarray(cells))


def test_both_has_observed_below_and_predicted_above():
    W = np.array([[0.9, 0.0], [0.8, 0.1], [0.0, 0.7]])
    S = W @ W.T + 0.05
    cells = plots.similarity_heatmap(S, W, values="both").images[0].get_array()
    np.testing.assert_allclose(np.tril(cells), np.tril(S))
    np.testing.assert_allclose(np.triu(cells, 1), np.triu(W @ W.T, 1))


@pytest.mark.parametrize("storage", ["dense", "missing", "sparse-zero", "sparse-missing", "implicit"])
def test_many_items_are_drawn_as_means_of_blocks(storage):
    rng = np.random.default_rng(0)
    F = rng.random((10, 4))
    S = F @ F.T
    dense = S.copy()
    if storage == "missing":
        gone = np.triu(rng.random((10, 10)) < 0.4, 1)
        dense[gone | gone.T] = np.nan
        given = Similarity(dense)
    elif storage.startswith("sparse"):
        gone = np.triu(rng.random((10, 10)) < 0.5, 1)
        stored = np.where(gone | gone.T, 0, S)
        np.fill_diagonal(stored, 0)
        absent = storage.removeprefix("sparse-")
        given = Similarity(sparse.csr_array(stored), absent=absent)
        dense = np.where(stored > 0, stored, np.nan if absent == "missing" else 0.0)
        np.fill_diagonal(dense, np.nan)
    else:
        given = Similarity.from_factors(F) if storage == "implicit" else Similarity(dense)
    block = np.arange(10) // 3
    blocks = [[dense[np.ix_(block == a, block == b)] for b in range(4)] for a in range(4)]
    expected = [[np.nanmean(cells) if np.isfinite(cells).any() else np.nan for cells in row] for row in blocks]
    if storage.startswith("sparse"):  # the last block is one item with itself, which is not observed
        assert np.isnan(expected[3][3])
    np.testing.assert_allclose(observed_means(given, block), expected)
    ax = plots.similarity_heatmap(given, max_items=4)
    assert ax.get_xlabel() == "10 items, means of blocks of 3 × 3"
    assert ax.images[0].get_array().shape == (4, 4)


# ---------------------------------------------------------------- dimension_grid, word_cloud


def test_pages_of_300_dimensions():
    W = np.random.default_rng(0).random((50, 300))
    axes = plots.dimension_grid(W, page=25)
    assert [ax.get_title(loc="left") for ax in axes] == [f"Dimension {k}" for k in range(289, 301)]
    with pytest.raises(ParameterError, match=r"page .* 25 .*26"):
        plots.dimension_grid(W, page=26)


def test_bars_are_the_largest_loadings_with_their_names_and_nothing_without_loading():
    W = np.array([[0.2, 0.0], [0.9, 0.4], [0.0, 0.0], [0.5, 0.0]])
    first, second = plots.dimension_grid(W, labels=["ant", "$bee$", "cat", "dog"])
    assert texts_of(first) == ["$bee$", "dog", "ant"]
    assert [bar.get_width() for bar in first.patches] == [0.9, 0.5, 0.2]
    assert texts_of(second) == ["$bee$"]
    assert first.get_xlim() == second.get_xlim()


def test_named_dimensions_can_be_asked_for_by_name():
    frame = pd.DataFrame(np.eye(3), columns=["animal", "food", "tool"])
    axes = plots.dimension_grid(frame, dimensions=["tool", 1])
    assert [ax.get_title(loc="left") for ax in axes] == ["tool", "animal"]


def test_pictures_stand_in_the_order_of_their_loadings(tmp_path):
    images = np.arange(4)[:, None, None] * np.ones((4, 5, 5))
    W = np.array([[0.1], [0.9], [0.0], [0.5]])
    (ax,) = plots.dimension_grid(W, images=images)
    assert [image.get_array()[0, 0] for image in ax.images] == [1, 3, 0]
    assert [round(image.get_extent()[0]) for image in ax.images] == [0, 1, 2]
    paths = []
    for i in range(4):
        paths.append(tmp_path / f"{i}.png")
        pyplot.imsave(paths[-1], np.full((400, 300, 3), i / 4))
    (ax,) = plots.dimension_grid(W, images=paths)
    assert max(ax.images[0].get_array().shape[:2]) <= 320


def test_titles_and_names_fit_their_panels():
    columns = ["a very long name of a dimension " * 4, *"bcd"]
    index = [f"{i} a very long name of an item " * 5 for i in range(9)]
    frame = pd.DataFrame(np.random.default_rng(0).random((9, 4)), index=index, columns=columns)
    for ax in drawn(plots.dimension_grid(frame)):
        panel = ax.get_window_extent()
        assert ax.texts
        for text in ax.texts:
            assert text.get_window_extent().x1 <= panel.x1 + 1
        left, right = ax._left_title.get_window_extent(), ax._right_title.get_window_extent()
        assert left.x1 <= right.x0


def overlaps(boxes):
    def overlap(a, b):
        return a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1

    return [pair for pair in combinations(boxes, 2) if overlap(*pair)]


@pytest.mark.parametrize("n", [1, 5, 60])
def test_no_words_overlap_and_larger_loadings_are_larger_words(n):
    rng = np.random.default_rng(n)
    loadings = np.sort(rng.random((n, 1)) + 0.1, axis=0)[::-1]
    labels = [f"word{i}" + "s" * int(rng.integers(9)) for i in range(n)]
    sizes, places = arrange(labels, np.linspace(1, 0, n), 240.0, 160.0, smallest=4.0)
    assert len(places) == n
    boxes = []
    for word, size, (x, y) in zip(labels, sizes, places, strict=True):
        width, height, depth = text_size(word, size)
        boxes.append(matplotlib.transforms.Bbox.from_bounds(x, y - depth, width, height))
        assert 0 <= x <= x + width <= 240
        assert 0 <= y - depth <= y - depth + height <= 160
    assert overlaps(boxes) == []
    ax = plots.word_cloud(loadings, labels=labels, n_words=n)
    assert texts_of(ax) == labels
    drawn_sizes = [text.get_size() for text in ax.texts]
    assert drawn_sizes == sorted(drawn_sizes, reverse=True)
    again = plots.word_cloud(loadings, labels=labels, n_words=n)
    assert [text.get_position() for text in again.texts] == [text.get_position() for text in ax.texts]


def test_words_with_tiny_loadings_are_not_drawn():
    ax = plots.word_cloud([[1.0], [0.5], [0.06], [0.04]], labels=["dog", "cat", "cow", "car"])
    assert texts_of(ax) == ["dog", "cat", "cow"]


def test_words_that_do_not_fit_are_a_warning():
    ax = Figure(figsize=(0.5, 0.4)).subplots()
    with pytest.warns(UserWarning, match=r"word_cloud draws \d+ of 30 words"):
        plots.word_cloud(np.ones((30, 1)), labels=[f"a long word {i}" for i in range(30)], ax=ax)


# ---------------------------------------------------------------- rank_selection, calibration


def lines_at(ax):
    """Where upright lines stand, by their label."""
    return {
        str(line.get_label()): float(line.get_xdata()[0])
        for line in ax.lines
        if len(line.get_xdata()) == 2 and line.get_xdata()[0] == line.get_xdata()[1]
    }


def test_rank_selection_marks_the_choice_the_valley_and_baselines(found):
    selection = found.selection
    ax = plots.rank_selection(selection, baselines={"$scree$": 2})
    assert lines_at(ax) == {f"chosen: {selection.rank}": selection.rank, "$scree$: 2": 2}
    curve = next(line for line in ax.lines if len(line.get_xdata()) == len(selection.curve))
    np.testing.assert_allclose(curve.get_ydata(), selection.curve["error"])
    assert tuple(line_of(ax, "within 1 s.e. of best")[0]) == selection.valley
    drawn(ax)


def spans_of(ax):
    """Where upright bands begin and end, by their label."""
    rectangles = [patch for patch in ax.patches if patch.get_label() and not patch.get_label().startswith("_")]
    return {patch.get_label(): (patch.get_x(), patch.get_x() + patch.get_width()) for patch in rectangles}


def test_rank_selection_marks_resamples_and_where_noise_begins(found):
    resampled = Resampled((3, 4, 5), (0.2, 0.7, 0.1), 1000)
    selection = replace(found.selection, resampled=resampled)
    last = selection.curve["rank"].max()
    detected = detectable_dimensions(found.similarity, random_state=0)
    one = replace(found, selection=selection, detectable=replace(detected, rank=3, at_edge=False))
    ax = plots.rank_selection(one)
    spans = spans_of(ax)
    assert spans["90% of resamples: 3 to 5"] == pytest.approx((2.65, 5.35))
    assert spans["not told from noise"] == pytest.approx((3.35, last + 0.35))
    assert lines_at(ax)["told from noise: 3 or more"] == 3
    drawn(ax)
    bounded = plots.rank_selection(replace(one, detectable=replace(detected, rank=3, at_edge=True)))
    assert "not told from noise" not in spans_of(bounded)
    alone = replace(one, detectable=replace(detected, rank=1))
    assert lines_at(plots.rank_selection(alone))["told from noise: no more than 1"] == 1
    assert spans_of(plots.rank_selection(replace(selection, resampled=None))) == {}


def test_relative_errors_begin_at_one_and_bands_are_those_of_the_table(found):
    ax = plots.rank_selection(found, relative=True)
    smallest = found.selection.curve["error"].min()
    curve = next(line for line in ax.lines if len(line.get_xdata()) == len(found.selection.curve))
    assert min(curve.get_ydata()) == pytest.approx(1)
    for band, column in zip(ax.collections, ("standard_deviation", "standard_error_of_difference"), strict=True):
        heights = [vertex for vertex in band.get_paths()[0].vertices if vertex[0] == 1]
        span = np.ptp([y for _, y in heights])
        assert span == pytest.approx(2 * found.selection.curve.set_index("rank")[column][1] / smallest)
    assert len(plots.rank_selection(found, bands=None).collections) == 0


def test_calibration_marks_its_share_and_its_cutoff():
    W = simulate.dirichlet(60, 3, random_state=0)
    calibration = calibrate(W @ W.T, n_bootstraps=5, random_state=0)
    loss, leakage = plots.calibration(calibration)
    assert calibration.sampling in lines_at(loss).values()
    assert calibration.cutoff + 0.5 in lines_at(leakage).values()
    assert len(line_of(leakage, f"stable: {calibration.cutoff}")[0]) == calibration.cutoff


# ---------------------------------------------------------------- the others


def test_reliability_sets_low_values_apart():
    ax = plots.reliability([0.9, 0.5, 0.95, 0.7])
    assert line_of(ax, "below 0.8") == ([2, 4], [0.5, 0.7])
    assert "mean 0.76" in texts_of(ax)


def test_alignment_shows_matched_correlations_in_the_order_of_the_reference():
    W = simulate.dirichlet(50, 4, random_state=0)
    ax = plots.alignment(W[:, [2, 0]], W)
    matched = ax.lines[0]
    assert matched.get_xdata().tolist() == [1, 3]
    assert matched.get_ydata() == pytest.approx([1, 1])
    assert line_of(ax, "no partner")[0] == [2, 4]


def test_reconstruction_draws_each_observed_pair_once_and_hexagons_at_scale():
    W = np.random.default_rng(0).random((20, 2))
    S = W @ W.T
    S[0, 1] = S[1, 0] = np.nan
    ax = plots.reconstruction(S, W)
    points = ax.lines[0]
    assert len(points.get_xdata()) == 20 * 19 / 2 - 1
    np.testing.assert_allclose(points.get_xdata(), points.get_ydata())
    assert ax.get_title() == "In-sample R² = 1.00, 189 pairs"
    W = np.random.default_rng(0).random((100, 2))
    ax = plots.reconstruction(W @ W.T, W)
    assert ax.collections[0].get_array().sum() == 100 * 99 / 2
    ax = plots.reconstruction(W @ W.T, W, max_pairs=2500)
    assert ax.get_title().endswith("random pairs")
    assert ax.collections[0].get_array().sum() > 1500


def test_sampled_pairs_are_pairs_of_two_items():
    (first, second), n = _some_pairs(Similarity(np.ones((3000, 3000))), 100_000)
    assert n == 3000 * 2999 // 2
    assert (first < second).all()
    assert first.min() >= 0
    assert second.max() < 3000
    assert len(np.unique(first * 3000 + second)) == len(first)


def test_a_fingerprint_has_no_bars_that_are_too_short_to_see():
    ax = plots.item_fingerprint([[0.6, 0.4, 1e-6], [0, 1, 1]], 0)
    assert [bar.get_width() for bar in ax.patches] == [0.6, 0.4]


def test_a_fingerprint_is_sorted_and_says_what_it_leaves_out():
    ax = plots.item_fingerprint([[0.1, 0.6, 0.0, 0.3], [1, 0, 0, 0]], "ape", labels=["ape", "bat"], n_dimensions=2)
    assert [bar.get_width() for bar in ax.patches] == [0.6, 0.3]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["2: ape", "4: ape"]
    assert ax.get_xlabel() == "Loading\n2 of 4 dimensions,\n90% of all loadings"


def test_the_map_colours_items_by_their_largest_dimension():
    W = np.eye(9)[[0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8]]
    xy = np.arange(34).reshape(17, 2)
    ax = plots.embedding_map(W, coordinates=xy)
    groups = {collection.get_label(): collection.get_offsets().tolist() for collection in ax.collections}
    assert groups["Dimension 1"] == xy[:3].tolist()
    assert groups["2 others"] == xy[-2:].tolist()
    assert ax.get_legend().get_texts()[-1].get_text() == "2 others"


def test_a_computed_map_is_the_same_every_time():
    W = simulate.dirichlet(30, 3, random_state=0)
    one, other = (plots.embedding_map(W).collections[0].get_offsets() for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_numbers_on_a_map_do_not_hide_the_items_of_a_small_group():
    W = np.repeat(np.eye(2), 4, axis=0)
    xy = np.concatenate([np.zeros((4, 2)), np.full((4, 2), 10.0)])
    ax = drawn(plots.embedding_map(W, coordinates=xy))
    numbers = [text.get_window_extent() for text in ax.texts if text.get_text() in ("1", "2")]
    assert len(numbers) == 2
    assert not any(box.contains(*place) for box in numbers for place in ax.transData.transform(xy))


def test_names_on_a_map_lie_over_no_other():
    W = simulate.dirichlet(150, 3, random_state=0)
    xy = np.random.default_rng(0).random((150, 2))
    ax = drawn(plots.embedding_map(W, coordinates=xy, labels=[f"a name {i}" for i in range(150)]))
    names = [text for text in ax.texts if text.get_text().startswith("a name")]
    assert len(names) > 10
    assert overlaps([text.get_window_extent().shrunk(0.95, 0.8) for text in names]) == []


def test_numbers_on_a_map_cover_no_item_of_a_few():
    W = np.repeat(np.eye(3), [5, 3, 1], axis=0)
    xy = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [5, 5], [5, 6], [6, 5], [-4, 5]])
    ax = drawn(plots.embedding_map(W, coordinates=xy))
    assert [text.get_text() for text in ax.texts] == ["1", "2", "3"]
    marks = ax.transData.transform(xy)
    boxes = [text.get_bbox_patch().get_window_extent() for text in ax.texts]
    assert not any(box.contains(x, y) for box in boxes for x, y in marks)


def test_the_graph_keeps_what_is_connected_and_each_items_strongest_edges():
    W = np.kron(np.eye(2), np.ones((4, 1)))
    S = W @ W.T
    S[3, 4] = S[4, 3] = 0.01  # the one bridge
    ax = plots.graph(S, W, n_neighbors=1)
    xy = np.array([rim.vertices.mean(axis=0) for rim in ax.collections[1].get_paths()])
    assert len(xy) == 8
    assert len(ax.collections[0].get_segments()) == 7  # a spanning tree
    assert ax.get_xlabel() == "8 items, 7 of 13 edges"


def test_nodes_of_a_graph_are_pies_of_loadings():
    W = np.array([[1.0, 3.0], [1.0, 0.0]])
    ax = plots.graph([[1, 0.5], [0.5, 1]], W, positions={"a": (0, 0), "b": (1, 0)}, labels=["a", "b"])
    assert len(ax.collections[2].get_paths()) == 3  # two parts and one whole
    np.testing.assert_allclose(ax.collections[0].get_segments()[0], [[0, 0], [1, 0]])


def test_hypotheses_show_statistic_chance_and_adjusted_p(tests_made):
    test = tests_made.parts["dimension"]
    ax = drawn(plots.hypothesis_tests(test))
    bars = ax.patches
    low, high = np.quantile(test.null_distribution, [0.025, 0.975], axis=0)
    np.testing.assert_allclose([bar.get_x() for bar in bars], low)
    np.testing.assert_allclose([bar.get_x() + bar.get_width() for bar in bars], high)
    assert [text.get_text().split(" (")[0] for text in ax.get_yticklabels()] == ["$red$", "<b>green</b>", "noise"]
    assert sorted(line_of(ax, "significant")[0]) == sorted(test.statistic[test.significant])
    assert texts_of(ax)[:3] == [f"{p:.3f}" for p in test.pvalue_adjusted]
    combined = drawn(plots.hypothesis_tests(tests_made))
    assert combined.get_xscale() == "log"
    assert len(combined.collections) == 3


def test_many_hypotheses_are_thinned_and_said_to_be():
    tests = many_tests(100, 50)
    ax = plots.hypothesis_tests(tests, n_shown=10)
    smallest = {tests.hypotheses[i] for i in np.argsort(tests.pvalue)[:10]}
    assert {text.get_text() for text in ax.get_yticklabels()} == smallest
    assert "10 of 100 hypotheses" in ax.get_xlabel()


def test_power_curves_have_a_panel_for_each_noise_and_a_line_for_each_test():
    levels = [("features", "similarities"), (0.1, 0.3), (0, 1), ("dimension", "rsa")]
    cells = pd.MultiIndex.from_product(levels, names=["noise", "snr", "repeat", "test"]).to_frame(index=False)
    axes = plots.power_curves(cells.assign(power=cells["snr"] * (1 + cells["repeat"])))
    assert [ax.get_title() for ax in axes] == ["Noise on features", "Noise on similarities"]
    assert [line.get_label() for line in axes[0].lines] == ["dimensions (SRF)", "similarities (RSA)"]
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), [0.15, 0.45])


# ---------------------------------------------------------------- what bad input gets


W32, S3 = np.ones((3, 2)), np.eye(3) + 0.1


@pytest.mark.parametrize(
    ("call", "name", "got"),
    [
        (lambda: plots.similarity_heatmap(S3, values="predicted"), "values", "'predicted'"),
        (lambda: plots.similarity_heatmap(S3, values="odd"), "values", "'odd'"),
        (lambda: plots.similarity_heatmap(S3, np.ones((4, 2))), "embedding", "(4, 2)"),
        (lambda: plots.similarity_heatmap(SRF(2).fit(S3), W32), "embedding", "second"),
        (lambda: plots.similarity_heatmap(S3, order=[0, 1, 1]), "order", "another"),
        (lambda: plots.dimension_grid(W32, labels=["a"]), "labels", "1"),
        (lambda: plots.dimension_grid(W32, labels="abc"), "labels", "'abc'"),
        (lambda: plots.dimension_grid(W32, images=[1]), "images", "1"),
        (lambda: plots.dimension_grid(W32, images=3), "images", "int"),
        (lambda: plots.dimension_grid(W32, images=np.ones((3, 4))), "images", "shape (4,) for item 0"),
        (lambda: plots.dimension_grid(W32, axes=[1]), "axes", "1"),
        (lambda: plots.dimension_grid(W32, page=0), "page", "0"),
        (lambda: plots.dimension_grid(W32, dimensions="dimension1"), "dimensions", "'dimension1'"),
        (lambda: plots.dimension_grid(W32, dimensions=3), "dimensions", "3"),
        (lambda: plots.dimension_grid(W32, dimensions=np.eye(2)), "dimensions", "array"),
        (lambda: plots.dimension_grid(W32, dimensions=[]), "dimensions", "none"),
        (lambda: plots.word_cloud(W32, 3), "dimension", "3"),
        (lambda: plots.word_cloud(W32, "third"), "dimension", "'third'"),
        (lambda: plots.word_cloud(W32, 1.5), "dimension", "1.5"),
        (lambda: plots.word_cloud(np.zeros((3, 2))), "dimension", "none in dimension 1"),
        (lambda: plots.rank_selection(3), "result", "int"),
        (lambda: plots.calibration(3), "result", "int"),
        (lambda: plots.reliability("high"), "result", "str"),
        (lambda: plots.reliability([[0.5]]), "result", "(1, 1)"),
        (lambda: plots.reliability([0.5], threshold=2), "threshold", "2"),
        (lambda: plots.reliability([0.5], ax=3), "ax", "int"),
        (lambda: plots.reconstruction(S3), "embedding", "None"),
        (lambda: plots.reconstruction(SRF(2).fit(S3)), "result", "SRF"),
        (lambda: plots.item_fingerprint(W32, "cat"), "item", "'cat'"),
        (lambda: plots.item_fingerprint(W32, 3), "item", "3"),
        (lambda: plots.item_fingerprint(W32, 1.5), "item", "1.5"),
        (lambda: plots.item_fingerprint(W32, "cap", labels=["cat", "dog", "{}"]), "item", "closest label is 'cat'"),
        (lambda: plots.item_fingerprint(W32, "cat", labels=["cat", "cat", "dog"]), "item", "the label of 2"),
        (lambda: plots.embedding_map(W32, coordinates=[1, 2]), "coordinates", "(2,)"),
        (lambda: plots.embedding_map(W32, coordinates=np.full((3, 2), np.inf)), "coordinates", "inf"),
        (lambda: plots.embedding_map(W32, n_colours=9), "n_colours", "9"),
        (lambda: plots.embedding_map(Similarity(S3)), "result", "Similarity"),
        (lambda: plots.graph(S3), "embedding", "None"),
        (lambda: plots.graph(S3, W32, positions={0: (0, 0)}), "positions", "none for 1"),
        (lambda: plots.hypothesis_tests(3), "tests", "int"),
        (lambda: plots.power_curves(pd.DataFrame({"noise": []})), "study", "noise"),
        (lambda: plots.alignment(W32), "reference", "None"),
        (lambda: plots.save_figure(3, "figure.png"), "axes", "int"),
        (lambda: plots.save_figure(Figure(), "figure.xyz"), "path", "figure.xyz"),
    ],
)
def test_bad_input_is_refused_before_a_figure_is_made(call, name, got):
    with pytest.raises(ParameterError) as caught:
        call()
    assert caught.value.name == name
    assert got in caught.value.got
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: plots.similarity_heatmap(SRF(2)), ValueError, "not fitted yet"),
        (lambda: plots.dimension_grid(W32, images=["no.png"] * 3), FileNotFoundError, "'no.png'"),
        (lambda: plots.save_figure(Figure(), "nowhere/picture.png"), FileNotFoundError, "'nowhere'"),
    ],
)
def test_missing_fits_and_files_are_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
    assert pyplot.get_fignums() == []


def test_texts_are_shortened_to_fit():
    assert fitted("short", 6, 100) == "short"
    cut = fitted("a text that is much too long", 6, 40)
    assert cut.endswith("…")
    assert text_size(cut, 6)[0] <= 40
    assert fitted("two\nlines", 6, 100) == "two lines"


@pytest.mark.parametrize("ending", ["", " (seen from the side)"])
def test_texts_that_begin_alike_keep_what_tells_them_apart(ending):
    texts = [f"a face photographed outdoors, number {i}{ending}" for i in range(6)]
    for cut in (all_fitted(texts, 6, 60), all_shown(texts, 20)):
        assert [re.search(r"…[^…]*(\d)", text)[1] for text in cut] == list("012345")
        assert all(text.endswith("…") == bool(ending) for text in cut)
        assert all(len(text) <= 20 or text_size(text, 6)[0] <= 60 for text in cut)
    assert all_shown(["apple juice with sugar", "pear juice with sugar"], 12) == ["apple juice…", "pear juice…"]


def test_a_list_is_shortened_by_its_items():
    items = ["cat", "dog", "a mouse with a long tail"]
    assert fitted_list(items[:2], 6, 100, start="1: ") == "1: cat, dog"
    assert fitted_list(items, 6, 50, start="1: ") == "1: cat, dog, …"
    assert fitted_list(items[2:], 6, 50, start="1: ").endswith("…")


@pytest.mark.parametrize("draw", [plots.item_fingerprint, plots.embedding_map, plots.graph])
def test_names_in_figures_keep_what_tells_them_apart(draw):
    W = simulate.dirichlet(20, 3, alpha=0.1, random_state=0)
    labels = [f"a face with a long name that begins alike_{i:02d}" for i in range(20)]
    data = {
        plots.item_fingerprint: (W, int(W.min(axis=1).argmax())),
        plots.embedding_map: (W,),
        plots.graph: (W @ W.T, W),
    }[draw]
    ax = draw(*data, labels=labels)
    legend = [] if ax.get_legend() is None else ax.get_legend().get_texts()
    texts = [text.get_text() for text in [*ax.texts, *ax.get_yticklabels(), *legend]]
    texts = [text for text in texts if "face" in text or "…" in text]
    assert len(texts) >= 3
    assert all(re.search(r"_\d\d$", text) for text in texts)


# ---------------------------------------------------------------- notebooks


def test_notebooks_show_a_picture_or_a_table_of_each_result(found, tests_made):
    W = found.embedding.astype(float)
    pairs = plan_study(W, pairs=[0.5, 1.0], answers=1, n_repeats=2, random_state=0)
    others = (
        SimilaritySet([found.similarity, found.similarity]),
        calibrate(found.similarity, n_bootstraps=3, random_state=0),
        bootstrap(found.similarity, "items", n_components=2, n_resamples=100, random_state=0),
        lineage([W[:, :2], W]),
        pairs,
        compare_embeddings(W, W[:, ::-1], n_permutations=99, random_state=0),
    )
    for result in (found.similarity, found.selection, found.consensus, found, tests_made, *others):
        text = result._repr_html_()
        assert "data:image/png;base64," in text
        assert len(text) < 300_000
    assert pyplot.get_fignums() == []


def test_a_plan_that_cannot_be_drawn_is_shown_as_text(found):
    W = found.embedding.astype(float)
    one = plan_study(W, pairs=1.0, answers=1, n_repeats=2, random_state=0)
    assert "<img" not in one._repr_html_()
    assert "<p" in one._repr_html_()


def test_labels_are_escaped_in_notebooks(found, tests_made):
    page = found._repr_html_()
    assert "<script>" not in page
    names = ["<script>" in name for name in found.dimensions_frame()["top_items"]]
    assert (html.escape("<script>") in page) == any(names)
    table = tests_made._repr_html_()
    assert "<b>green</b>" not in table
    assert "&lt;b&gt;green&lt;/b&gt;" in table


def test_large_results_stay_small_in_notebooks():
    W = np.random.default_rng(0).gamma(0.2, size=(3000, 5))
    assert len(Similarity.from_factors(W)._repr_html_()) < 300_000
    page = many_tests(2000, 9)._repr_html_()
    assert len(page) < 300_000
    assert page.count("<tr>") == 31
    assert "and 1970 more" in page
