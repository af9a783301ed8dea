"""discover of a SimilaritySet: dimensions, weights, what these are worth, and all of it saved, resumed and reported."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from simdims import (
    SRF,
    Discovery,
    JointSRF,
    SimilaritySet,
    discover,
    fit_consensus,
    from_dissimilarity,
    plots,
    simulate,
)
from simdims._journal import Journal
from simdims.discovery.run import expected_seconds

pytestmark = pytest.mark.filterwarnings("ignore:Systems seem to be on different scales")

QUICK = {"ranks": [2, 3], "n_repeats": 1, "n_runs": 3, "random_state": 0, "progress": False}
COUNTS = {"n_runs": 3, "n_splits": 5, "progress": False}


def people(seed=0, alike=False):
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(24, 3, alpha=0.3, random_state=seed)
    a = np.ones((6, 3)) if alike else rng.uniform(0.0, 2.0, size=(6, 3))
    stack = [simulate.add_noise((W * a_m) @ W.T, 0.8, random_state=m) for m, a_m in enumerate(a)]
    stack = [simulate.mask_pairs(S, 0.7, random_state=m, keep_diagonal=False) for m, S in enumerate(stack)]
    stack[5] = simulate.mask_pairs(stack[5], 0.6, random_state=1)  # stored as a list, the others as matrices
    return SimilaritySet(np.stack(stack), names=["Ä", *"bcdef"], info={"group": list("xyxyxy"), "age": range(6)})


@pytest.fixture(scope="module")
def found():
    with pytest.warns(UserWarning, match="lowest held-out error is at the largest rank"):
        return discover(people(), **QUICK)


def same(one, other):
    """Every number that does not tell the time."""
    for name in ("embeddings", "weights", "reliability", "objectives", "n_iter", "seeds"):
        np.testing.assert_array_equal(getattr(one.consensus, name), getattr(other.consensus, name))
    assert one.consensus.shrinkage == other.consensus.shrinkage
    assert one.consensus.systems == other.consensus.systems
    assert one.consensus.system_info.equals(other.consensus.system_info)
    assert one.metrics == other.metrics
    assert one.systems.comparison.equals(other.systems.comparison)
    assert one.systems.r2.equals(other.systems.r2)
    if one.selection is not None:
        assert one.selection.systems.equals(other.selection.systems)
        assert one.selection.shrinkage == other.selection.shrinkage
        assert one.selection.comparison_shrinkage == other.selection.comparison_shrinkage
        assert one.selection.curve.equals(other.selection.curve)
    assert one.methods_text() == other.methods_text()
    assert one.summary() == other.summary()


def test_it_has_dimensions_weights_and_what_they_are_worth(found):
    assert found.n_components == found.selection.rank == 3
    assert found.weights.shape == (6, 3)
    np.testing.assert_allclose(found.weights.mean(axis=0), 1.0)
    assert list(found.weights_frame().index) == ["Ä", *"bcdef"]
    assert found.consensus.alpha == found.selection.alpha
    assert found.consensus.shrinkage == found.selection.shrinkage
    assert found.systems.shrinkage == found.selection.comparison_shrinkage
    assert found.systems.comparison.loc["weights", "r2"] == pytest.approx(found.metrics["held_out_r2"], rel=1e-10)
    assert found.systems.worthwhile
    assert found.systems.better_than("alone")
    for text in (found.summary(), found.methods_text()):
        assert f"{found.systems.comparison.loc['average', 'r2']:.3f}" in text
        assert f"{found.systems.comparison.loc['alone', 'r2']:.3f}" in text
    assert "in 6 systems" in repr(found)
    assert "24 items in 6 systems" in found.methods_text()
    assert found.detectable is None
    assert "rescaled by a regression" not in found.methods_text()


def test_the_share_explained_in_sample_is_that_of_all_systems(found):
    W, a, residual, spread = found.embedding, found.weights, 0.0, 0.0
    for m, one in enumerate(found.similarity):
        observed = one.values[np.triu_indices(24, 1)]
        predicted = ((W * a[m]) @ W.T)[np.triu_indices(24, 1)]
        residual += np.nansum((observed - predicted) ** 2)
        spread += np.nansum((observed - np.nanmean(observed)) ** 2)
    assert found.metrics["explained_variance"] == pytest.approx(1 - residual / spread, rel=1e-10)


def test_r2_is_reported_as_a_share_of_the_noise_ceiling(found):
    """The definition: squared correlations with the mean of standardised systems, of all the variance there is."""
    i, j = np.triu_indices(24, 1)
    values = np.stack([np.asarray(one.values)[i, j] for one in found.similarity])
    z = (values - np.nanmean(values, axis=1, keepdims=True)) / np.nanstd(values, axis=1, keepdims=True)
    explained, spread = np.zeros(2), 0.0
    for m in range(6):
        for side, chosen in enumerate((np.delete(z, m, axis=0), z)):
            known = ~np.isnan(values[m]) & ~np.isnan(chosen).all(axis=0)
            r = np.corrcoef(values[m][known], np.nanmean(chosen[:, known], axis=0))[0, 1]
            explained[side] += r**2 * np.nanvar(values[m]) * np.sum(~np.isnan(values[m]))
        spread += np.nanvar(values[m]) * np.sum(~np.isnan(values[m]))
    np.testing.assert_allclose(found.noise_ceiling, explained / spread)
    common = found.systems.comparison.loc["scale", "r2"]
    assert common < found.noise_ceiling.upper < found.metrics["held_out_r2"]
    share = f"{common / found.noise_ceiling.upper:.0%} of the upper bound"
    assert share in found.summary()
    assert share in found.methods_text()
    assert "beyond what" in found.summary()
    assert "beyond what" in found.methods_text()
    alike = discover(people(alike=True), **{**QUICK, "ranks": 3})
    assert alike.metrics["held_out_r2"] < alike.noise_ceiling.upper
    assert "beyond what" not in alike.summary()


def test_the_share_of_the_noise_ceiling_does_not_depend_on_the_use_of_the_scale():
    W = simulate.dirichlet(24, 3, random_state=0)
    rng = np.random.default_rng(0)
    scales = rng.uniform([0.3, 0.0], [1.0, 0.5], size=(8, 2))
    systems = SimilaritySet([slope * (W @ W.T) + intercept for slope, intercept in scales])
    found = discover(systems, **{**QUICK, "ranks": 4})
    assert found.systems.comparison.loc["average", "r2"] < 0.2
    assert found.noise_ceiling.lower == pytest.approx(1.0)
    assert 0.9 < found.share_of_ceiling < 1.0


def test_systems_without_common_pairs_have_no_noise_ceiling():
    W = simulate.dirichlet(14, 2, alpha=0.3, random_state=0)
    stack = np.stack([W @ W.T] * 2)
    apart = np.triu(np.random.default_rng(0).uniform(size=(14, 14)) < 0.5, 1)
    apart |= apart.T
    stack[0][apart], stack[1][~apart] = np.nan, np.nan
    found = discover(SimilaritySet(stack), **{**QUICK, "ranks": 2})
    assert found.noise_ceiling is None
    assert found.noise_ceiling_words == ""
    assert "oise ceiling" not in found.summary() + found.methods_text()


def test_its_runs_are_those_of_fit_consensus(found):
    settings = {"alpha": found.consensus.alpha, "shrinkage": found.consensus.shrinkage, "max_iter": 2000}
    again = fit_consensus(people(), 3, n_runs=3, estimator=JointSRF(**settings), random_state=found.consensus.seed)
    np.testing.assert_array_equal(again.weights, found.consensus.weights)


def test_it_saves_and_loads_and_reports(found, tmp_path):
    found.save(tmp_path / "folder")
    again = Discovery.load(tmp_path / "folder")
    same(found, again)
    assert again.similarity.names == found.similarity.names
    assert again.similarity.info.equals(found.similarity.info)
    assert (tmp_path / "folder" / "weights.csv").read_text(encoding="utf-8-sig").startswith("system,dimension1")
    assert "Ä" in (tmp_path / "folder" / "systems.csv").read_text(encoding="utf-8-sig")
    again.save(tmp_path / "folder")  # an earlier result is replaced
    page = again.report(tmp_path / "page.html").read_text()
    assert "3 dimensions of 24 items" in page
    assert plots.similarity_heatmap(again) is not None
    assert "<table" in again._repr_html_()


def test_a_single_number_is_compared_but_not_selected(tmp_path):
    one = discover(people(alike=True), **{**QUICK, "ranks": 3})
    assert one.selection is None
    assert np.isinf(one.consensus.shrinkage)
    np.testing.assert_array_equal(one.weights, 1.0)
    assert not one.systems.worthwhile
    assert "all of them are 1" in one.summary()
    assert "All weights were 1, chosen by held-out pairs." in one.methods_text()
    one.save(tmp_path / "folder")
    same(one, Discovery.load(tmp_path / "folder"))


def test_an_estimator_gives_the_settings_of_all_fits():
    model = JointSRF(alpha=0.05, shrinkage=0.0, tol=1e-2, max_iter=100)
    one = discover(people(), **{**QUICK, "ranks": 2}, estimator=model)
    assert (one.consensus.alpha, one.consensus.shrinkage) == (0.05, 0.0)
    assert "JointSRF" in one.settings["estimator"]
    assert "shrinkage" not in one.methods_text().replace("shrinkage=0.0", "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ranks", 0),
        ("sampling", 1.5),
        ("n_repeats", 0),
        ("n_runs", 1),
        ("alpha", 0.0),
        ("device", "gpu"),
        ("estimator", SRF()),
        ("estimator", JointSRF(init=np.ones((24, 3)))),
        ("n_jobs", 0),
        ("progress", 3),
    ],
)
@pytest.mark.parametrize("ranks", ["auto", 2])
def test_bad_arguments_are_named_before_any_work(ranks, name, value, tmp_path):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must"):
        discover(people(), **{**QUICK, "ranks": ranks, "checkpoint": tmp_path / "work", name: value})
    assert not (tmp_path / "work").exists()


def test_one_matrix_takes_no_joint_estimator():
    with pytest.raises(TypeError, match="estimator must be an SRF unless S is a SimilaritySet"):
        discover(people()[0], estimator=JointSRF())


@pytest.mark.filterwarnings("ignore:The lowest held-out error")
def test_a_call_that_was_stopped_at_any_line_ends_with_the_same_result(found, tmp_path, monkeypatch):
    states = []

    def copying(method):
        def changed(journal, *arguments):
            method(journal, *arguments)
            states.append(shutil.copytree(journal.folder.parent, tmp_path / str(len(states))))

        return changed

    with monkeypatch.context() as patch:
        for name in ("append", "keep", "drop"):
            patch.setattr(Journal, name, copying(getattr(Journal, name)))
        same(discover(people(), **QUICK, checkpoint=tmp_path / "run"), found)
    kinds = [path.name for path in (tmp_path / "run").iterdir()]
    assert sorted(kinds) == ["consensus-3", "lock", "seed", "selection", "systems-3"]
    # Penalties at two ranks; arrays, fits, ranks and arrays dropped; the same for the average; systems; runs.
    assert len(states) == 2 + (10 + 10 + 2 + 10) + (5 + 5 + 1 + 5) + 6 + (1 + 3 + 3)
    for number in range(3, len(states), 7):
        same(discover(people(), **QUICK, checkpoint=tmp_path / str(number)), found)


@pytest.mark.filterwarnings("ignore:The lowest held-out error")
def test_a_killed_discovery_continues_and_ends_the_same(found, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_discovery_systems import QUICK, people\n"
        "from simdims import discover\n"
        "discover(people(), **QUICK, checkpoint=sys.argv[2]).save(sys.argv[3])\n"
    )
    here = os.path.dirname(__file__)
    command = [sys.executable, "-W", "ignore", "-c", code, here, str(tmp_path / "work"), str(tmp_path / "out")]
    journal = tmp_path / "work" / "systems-3" / "journal.jsonl"
    process = subprocess.Popen(command)
    end = time.monotonic() + 120
    while not (journal.exists() and journal.stat().st_size) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert journal.exists()
    subprocess.run(command, check=True)
    same(found, Discovery.load(tmp_path / "out"))


def test_runs_can_be_added_to_a_checkpoint_of_a_set(tmp_path):
    few = fit_consensus(people(), 3, alpha="auto", random_state=0, checkpoint=tmp_path, **{**COUNTS, "n_runs": 2})
    steps = []
    settings = {**COUNTS, "alpha": "auto", "random_state": 0}
    more = fit_consensus(people(), 3, checkpoint=tmp_path, **{**settings, "progress": steps.append})
    assert [step.done for step in steps if step.stage == "consensus"] == [3]
    fresh = fit_consensus(people(), 3, **settings)
    for name in ("weights", "embeddings", "alpha", "shrinkage", "reliability"):
        np.testing.assert_array_equal(getattr(more, name), getattr(fresh, name))
    assert few.n_runs == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"S": people(seed=1)}, "similarities"),
        ({"n_components": 2}, "n_components .*3.*2"),
        ({"random_state": 1}, "seed"),
        ({"estimator": JointSRF(max_iter=31)}, "max_iter"),
        ({"estimator": JointSRF(max_iter=30, shrinkage=0.0)}, "shrinkage"),
    ],
)
def test_a_checkpoint_of_other_work_is_refused(tmp_path, change, words):
    call = {"S": people(), "n_components": 3, "random_state": 0, "estimator": JointSRF(max_iter=30), **COUNTS}
    fit_consensus(**call, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=words):
        fit_consensus(**{**call, **change}, checkpoint=tmp_path)


def test_its_time_can_be_estimated():
    few, many = (expected_seconds(people(), ranks=ranks, n_repeats=1, n_runs=3) for ranks in (3, range(1, 9)))
    assert 0 < few < 600
    assert many > 0


def test_weights_are_worth_having_for_helms_colours(data_path):
    """Four dimensions: weights predict held-out pairs better by at least 0.05, and the deficient people fall out."""
    colours = from_dissimilarity(data_path("helm/helm_1959.csv"), by="subject")
    helm = discover(colours, ranks=4, n_repeats=2, n_runs=5, random_state=0, progress=False)
    assert helm.systems.worthwhile
    assert helm.systems.comparison.loc["average", "gain"] >= 0.05
    deficient = np.array([name.startswith("CD") for name in colours.names])
    separated = [np.mean(column[deficient][:, None] < column[~deficient]) for column in helm.weights.T]
    assert max(separated) >= 0.95
