"""plan_study: simulated studies against their definitions, plans from pilots against plans from the truth."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from simdims import ParameterError, SimilaritySet, as_similarity, metrics, plan_study, plots, simulate
from simdims.cli import main
from simdims.planning import StudyPlan, study
from simdims.planning.result import METRICS
from simdims.planning.study import Study, pair_order
from simdims.planning.world import Pilot, World, designed, fitted, pilot_of, r_squared

W = simulate.dirichlet(30, 3, alpha=0.3, random_state=0)


def pilot_from(world, share, answers, seed):
    """Judgements of random pairs as a matrix, with the numbers of answers as weights."""
    rng = np.random.default_rng(seed)
    n = len(world.W)
    order = pair_order(n, rng)
    k = round(share * len(order[0]))
    pairs = order[0][:k], order[1][:k]
    values, weights = np.full((n, n), np.nan), np.zeros((n, n))
    for one, other in (pairs, pairs[::-1]):
        values[one, other] = world.judgements(pairs, answers, None, np.random.default_rng(seed + 1))
        weights[one, other] = answers
    return as_similarity(values, weights=weights)


# Worlds


@pytest.mark.parametrize("n", [7, 10])
def test_the_order_of_pairs_has_each_once_and_every_item_first(n):
    rows, columns = pair_order(n, np.random.default_rng(0))
    assert {tuple(sorted(pair)) for pair in zip(rows, columns, strict=True)} == {
        (i, j) for j in range(n) for i in range(j)
    }
    assert len(rows) == n * (n - 1) // 2
    first = -(-n // 2)
    assert set(rows[:first]) | set(columns[:first]) == set(range(n))


def test_noise_has_the_signal_to_noise_ratio_that_was_asked_for():
    world = designed(W, 0.3, 0.0)
    true = (W @ W.T)[np.triu_indices(30, 1)]
    assert true.var() / (true.var() + world.noise**2) == pytest.approx(0.3)
    assert world.snr == pytest.approx(0.3)


@pytest.mark.parametrize(("spread", "answers"), [(0.0, 1), (0.0, 4), (0.6, 1), (0.6, 4)])
def test_judgements_have_the_mean_and_the_variance_of_the_model(spread, answers):
    loadings = np.array([[5.0, 1.0], [4.0, 3.0], [1.0, 6.0]])
    world = World(loadings, 1.5, spread)
    pairs = np.repeat([0, 0, 1], 4000), np.repeat([1, 2, 2], 4000)
    values = world.judgements(pairs, answers, None, np.random.default_rng(0)).reshape(3, 4000)
    for row, i, j in ((0, 0, 1), (1, 0, 2), (2, 1, 2)):
        products = loadings[i] * loadings[j]
        variance = (1.5**2 + spread**2 * np.sum(products**2)) / answers
        assert values[row].mean() == pytest.approx(products.sum(), abs=5 * np.sqrt(variance / 4000))
        assert values[row].var() == pytest.approx(variance, rel=0.15)


def test_with_a_few_people_the_error_of_a_dimension_is_shared_by_all_pairs():
    loadings = np.full((40, 1), 2.0)
    pairs = np.triu_indices(40, 1)
    means = [
        World(loadings, 0.0, 0.5).judgements(pairs, 5, people, np.random.default_rng(seed)).mean()
        for people in (5, 500)
        for seed in range(200)
    ]
    few, many = np.reshape(means, (2, 200)) / 4
    assert few.std() == pytest.approx(0.5 / np.sqrt(5), rel=0.2)
    assert many.std() == pytest.approx(0.5 / np.sqrt(500), rel=0.2)
    # Each of 5 people answers once about each pair, so that all pairs have the same mean.
    assert np.ptp(World(loadings, 0.0, 0.5).judgements(pairs, 5, 5, np.random.default_rng(0))) < 1e-12


def test_pairs_that_were_not_judged_never_reach_a_fit():
    order = pair_order(30, np.random.default_rng(0))
    values = designed(W, 0.5, 0.0).judgements(order, 1, None, np.random.default_rng(0))
    judged = Pilot(order, values, np.ones(len(values)), 30)
    used = np.arange(len(values)) < 200
    poisoned = np.where(used, values, 1e6)
    one, other = (fitted(judged, some, used, 3, seed=0) for some in (values, poisoned))
    np.testing.assert_array_equal(one, other)


def test_measures_of_a_study_are_those_of_their_definitions(monkeypatch):
    world, root = designed(W, 0.5, 0.0), 7
    seen = {}
    real = study.fitted

    def remember(judged, values, used, n_components, seed):
        found = real(judged, values, used, n_components, seed)
        seen[int(used.sum())] = judged, values, used, found
        return found

    monkeypatch.setattr(study, "fitted", remember)
    _, few = study._simulate(world, root, Study(0.4, 2, None, 0))
    ((judged, values, used, found),) = seen.values()
    assert used.sum() == round(0.4 * 435)
    rest = judged.pairs[0][~used], judged.pairs[1][~used]
    true, predicted = (W @ W.T)[rest], (found @ found.T)[rest]
    assert few["held_out_r2"] == pytest.approx(1 - np.mean((true - predicted) ** 2) / true.var())
    noisy = values[~used]
    assert few["reported_r2"] == pytest.approx(1 - np.mean((noisy - predicted) ** 2) / noisy.var())
    assert few["alignment"] == metrics.factor_alignment(found, W).mean
    # Where all pairs are judged, a tenth is held out of a second fit.
    seen.clear()
    study._simulate(world, root, Study(1.0, 2, None, 0))
    assert sorted(seen) == [391, 435]


def test_a_perfect_study_finds_everything():
    plan = plan_study(W, pairs=[1.0], answers=1, snr=1.0, n_repeats=1, random_state=0)
    row = plan.table.iloc[0]
    assert row["alignment"] > 0.98
    assert row["held_out_r2"] > 0.95
    assert row["triplet_accuracy"] > 0.95


# Plans


def test_larger_studies_are_better_and_everything_can_be_reproduced():
    settings = {"pairs": [0.15, 0.5, 1.0], "answers": [1, 4], "snr": 0.4, "n_repeats": 3, "random_state": 3}
    plan = plan_study(W, **settings)
    assert plan.table["n_pairs"].tolist() == [65, 218, 435] * 2
    assert (plan.table["n_answers"] == plan.table["n_pairs"] * plan.table["answers"]).all()
    for metric in METRICS:
        by_pairs = plan.table.pivot(index="pairs", columns="answers", values=metric)
        assert (by_pairs.diff().iloc[1:] > 0).all(axis=None)
        assert (by_pairs[4] > by_pairs[1]).all()
    pd.testing.assert_frame_equal(plan_study(W, **settings, n_jobs=2).table, plan.table)
    assert plan_study(W, **{**settings, "random_state": plan.seed}).table.equals(plan.table)


def by_hand(means, errors, sizes=(100, 200, 400), n_repeats=4):
    """A plan with given learning curves, one row of means per number of answers."""
    rows = [
        {"pairs": size / 1000, "n_pairs": size, "answers": m + 1, "people": np.nan, "n_answers": size * (m + 1)}
        | {name: value for metric in METRICS for name, value in ((metric, mean), (f"{metric}_se", error))}
        for m, (line, spread) in enumerate(zip(means, errors, strict=True))
        for size, mean, error in zip(sizes, line, spread, strict=True)
    ]
    facts = {"n_items": 50, "n_components": 3, "snr": 0.5, "spread": 0.0, "pilot": None, "seed": 0}
    return StudyPlan(pd.DataFrame(rows), "alignment", 0.9, n_repeats=n_repeats, **facts)


def test_numbers_needed_are_interpolated_and_never_extrapolated():
    plan = by_hand([[0.5, 0.8, 0.85], [0.5, 0.8, 1.0], [0.95, 0.97, 0.99]], np.zeros((3, 3)))
    needed = plan.needed()
    assert np.isnan(needed["n_pairs"].iloc[0])
    assert needed["n_pairs"].iloc[1] == np.ceil(200 * 2**0.5)
    assert needed["n_pairs"].iloc[2] == 100
    assert needed["n_answers"].iloc[1] == 2 * np.ceil(200 * 2**0.5)
    assert plan.needed(target=0.65)["n_pairs"].tolist() == [np.ceil(100 * 2**0.5)] * 2 + [100]
    assert "not reached with 400 pairs" in str(plan)
    assert "283 of 1,225 pairs (95%" in str(plan)
    assert "100 of 1,225 pairs or fewer" in str(plan)  # the smallest number tried


def test_intervals_of_numbers_needed_are_those_of_the_curves():
    plan = by_hand([[0.5, 0.8, 1.0]], [[0.01, 0.02, 0.005]])
    row = plan.needed().iloc[0]
    t = stats.t.ppf(0.975, 3)
    low, high = ([0.5 + s * t * 0.01, 0.8 + s * t * 0.02, 1.0 + s * t * 0.005] for s in (1, -1))
    for name, curve in (("low", low), ("high", high)):
        at = np.exp(np.interp(0.9, curve, np.log([100, 200, 400])))
        assert row[name] == np.ceil(at)


def test_one_repeat_has_no_interval():
    plan = replace(by_hand([[0.5, 0.8, 1.0]], [[np.nan] * 3]), n_repeats=1)
    row = plan.needed().iloc[0]
    assert row["n_pairs"] == 283
    assert np.isnan([row["low"], row["high"]]).all()
    assert "95%" not in str(plan)
    assert plots.study_plan(plan).lines


def test_a_curve_that_falls_by_chance_is_made_monotone():
    plan = by_hand([[0.92, 0.8, 1.0]], np.zeros((1, 3)))
    # The first two sizes are averaged: 0.86, and 0.9 lies on the way from there to 1.
    assert plan.needed()["n_pairs"].iloc[0] == np.ceil(200 * 2 ** ((0.9 - 0.86) / 0.14))


def test_numbers_of_answers_and_of_people_can_be_asked_for():
    settings = {"pairs": [0.4, 1.0], "answers": [1, 2, 8], "spread": 0.4, "people": [8, 30], "n_repeats": 2}
    plan = plan_study(W, **settings, snr=0.4, metric="held_out_r2", target=0.6, random_state=0)
    assert len(plan.table) == 12
    of_answers = plan.needed(of="answers")
    assert len(of_answers) == 4
    assert of_answers["answers"].between(1, 8).all()
    of_people = plan.needed(target=0.3, of="people")
    assert len(of_people) == 6
    assert set(of_people["people"].dropna()) <= {float(n) for n in range(8, 31)}
    assert "of 30 people" in str(plan)


# Pilots


def test_answers_of_a_pilot_are_its_weights_or_its_people():
    S = W @ W.T
    np.fill_diagonal(S, np.nan)
    S[0, 1] = S[1, 0] = np.nan
    assert (pilot_of(as_similarity(S)).answers == 1).all()
    assert pilot_of(as_similarity(S)).share == 434 / 435
    counts = np.where(np.isnan(S), 0, 3.0)
    assert (pilot_of(as_similarity(S, weights=counts)).answers == 3).all()
    other = S.copy()
    other[2, 3] = other[3, 2] = np.nan
    people = pilot_of(SimilaritySet([S, S, other]))
    assert np.sort(people.answers).tolist() == [2] + [3] * 433
    np.testing.assert_allclose(people.values, (W @ W.T)[people.pairs])


@pytest.mark.parametrize(("share", "answers", "seed"), [(0.6, 4, 1), (1.0, 1, 2)])
def test_a_pilot_gives_the_noise_and_the_number_of_pairs_of_the_truth(share, answers, seed):
    loadings = simulate.dirichlet(50, 4, alpha=0.3, random_state=seed)
    world = designed(loadings, 0.4, 0.0)
    pilot = pilot_from(world, share, answers, seed)
    settings = {"pairs": [0.1, 0.2, 0.4, 1.0], "answers": [2], "n_repeats": 3, "random_state": 0}
    true = plan_study(loadings, snr=0.4, **settings)
    found = plan_study(pilot, n_components=4, **settings)
    assert found.pilot["pairs"] == pytest.approx(share, abs=0.01)
    assert found.pilot["answers"] == answers
    assert found.snr == pytest.approx(0.4, abs=0.1)
    one, other = (plan.needed("alignment", 0.85)["n_pairs"].iloc[0] for plan in (true, found))
    assert 0.7 < other / one < 1.4


def test_simulated_pilots_predict_held_out_pairs_as_well_as_the_real_one():
    loadings = simulate.dirichlet(40, 3, alpha=0.3, random_state=3)
    pilot = pilot_from(designed(loadings, 0.5, 0.0), 0.7, 2, 3)
    plan = plan_study(pilot, pairs=[0.56], answers=2, n_components=3, n_repeats=8, random_state=0)
    # Four fifths of 70% of the pairs train a fold, as in a study with 56% of them.
    row = plan.table.iloc[0]
    assert row["reported_r2"] == pytest.approx(plan.pilot["held_out_r2"], abs=0.1)


def test_people_who_differ_have_a_spread():
    rng = np.random.default_rng(0)
    loadings = simulate.dirichlet(25, 3, alpha=0.3, random_state=0)
    weights = rng.gamma(4, 1 / 4, (12, 3))
    systems = [np.maximum((loadings * a) @ loadings.T + 0.02 * rng.standard_normal((25, 25)), 0) for a in weights]
    systems = [(S + S.T) / 2 for S in systems]
    plan = plan_study(SimilaritySet(systems), pairs=[1.0], answers=[2], people=[12], n_components=3, n_repeats=1)
    assert 0.3 < plan.spread < 0.6
    assert plan.pilot["answers"] == 12


def test_a_pilot_of_noise_is_refused():
    noise = np.random.default_rng(0).random((20, 20))
    with pytest.raises(ParameterError, match="held-out pairs can be predicted"):
        plan_study((noise + noise.T) / 2, n_components=3, random_state=0)


def test_r_squared_is_that_of_the_weighted_mean():
    values, weights = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0])
    assert r_squared(values, np.full(3, 2.75), weights) == 0
    assert r_squared(values, values, weights) == 1


def test_the_scale_of_a_design_does_not_matter():
    settings = {"pairs": [0.5], "answers": 1, "n_repeats": 1, "random_state": 0}
    expected = plan_study(W, **settings).table
    for scale in (2.0**-400, 2.0**400):
        pd.testing.assert_frame_equal(plan_study(scale * W, **settings).table, expected, check_exact=True)


def test_a_single_held_out_pair_has_no_r2():
    row = plan_study(W[:4], pairs=[1.0], answers=1, n_repeats=1, random_state=0).table.iloc[0]
    assert np.isnan([row["held_out_r2"], row["reported_r2"]]).all()
    assert 0 <= row["alignment"] <= 1


# The figure and the command


def test_the_figure_has_a_curve_per_number_of_answers_and_marks_what_is_needed():
    plan = by_hand([[0.5, 0.8, 0.85], [0.5, 0.8, 1.0]], np.full((2, 3), 0.01))
    ax = plots.study_plan(plan)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1 answer per pair", "2 answers per pair"]
    (mark,) = (line for line in ax.lines if line.get_marker() == "D")
    assert mark.get_xdata()[0] == 283
    assert mark.get_ydata()[0] == 0.9
    assert not any(line.get_marker() == "D" for line in plots.study_plan(plan, metric="triplet_accuracy").lines)
    assert [text.get_text() for text in plots.study_plan(plan, against="answers").get_xticklabels()] == ["1", "2"]
    with pytest.raises(ParameterError, match="against"):
        plots.study_plan(plan, against="people")
    wide = plots.study_plan(by_hand([[0.5, 0.8, 1.0]], [[2.0, 0.01, 0.01]]))  # as with two repeats
    assert 0.4 < wide.get_ylim()[0] < 0.5
    assert 1.0 < wide.get_ylim()[1] < 1.1


def test_the_command_plans_from_a_design_and_from_a_pilot(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    quick = ["--pairs", "0.3", "1", "--answers", "1", "--repeats", "2", "--seed", "4", "--quiet"]
    assert main(["plan", "--items", "30", "--dimensions", "3", "--snr", "0.7", *quick, "-o", "plan.csv"]) == 0
    truth = simulate.dirichlet(30, 3, alpha=0.3, random_state=4)
    expected = plan_study(truth, pairs=[0.3, 1], answers=[1], snr=0.7, n_repeats=2, random_state=4)
    assert str(expected) in capsys.readouterr().out
    pd.testing.assert_frame_equal(pd.read_csv("plan.csv"), expected.table, check_dtype=False)
    pilot_from(designed(W, 0.6, 0.0), 0.9, 2, 0).save("pilot.npz")
    assert main(["plan", "pilot.npz", "--dimensions", "3", *quick, "-o", "plan.json"]) == 0
    assert json.loads((tmp_path / "plan.json").read_text())["pilot"]["answers"] == 2
    assert main(["plan", "pilot.npz", "--dimensions", "3", *quick, "-o", "plan.svg"]) == 0
    assert "<svg" in (tmp_path / "plan.svg").read_text()
    assert main(["plan", "pilot.npz", "--dimensions", "3", *quick[:2], *quick[3:], "-o", "plan.png"]) == 2
    assert "several numbers as --pairs or --answers" in capsys.readouterr().err
    one_share = ["--items", "10", "--dimensions", "2", "--pairs", "1", "--answers", "1", "2", *quick[5:]]
    assert main(["plan", *one_share, "-o", "plan.png"]) == 0
    for wrong, words in (
        (["--items", "3"], "--items must be at least 4"),
        (["--dimensions", "0"], "--dimensions must"),
    ):
        assert main(["plan", *one_share, *wrong]) == 1
        assert words in capsys.readouterr().err


def test_the_command_takes_a_set_of_people_as_pilot(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, (6, 3))
    people = SimilaritySet([(W * a) @ W.T + 0.01 for a in weights])
    people.save("people.npz")
    quick = ["--pairs", "0.3", "1", "--answers", "2", "--people", "4", "--repeats", "2", "--seed", "4", "--quiet"]
    assert main(["plan", "people.npz", "--dimensions", "3", *quick]) == 0
    sizes = {"pairs": [0.3, 1], "answers": [2], "people": [4]}
    expected = plan_study(people, n_components=3, **sizes, n_repeats=2, random_state=4)
    assert expected.spread > 0
    assert str(expected) in capsys.readouterr().out


# Checkpoints

SMALL = {"pairs": [0.3, 1.0], "answers": [1, 2], "n_repeats": 2}


def interrupted(source, folder, n_done, **settings):
    """Start a plan, and interrupt it after some studies."""

    def stop(progress):
        if progress.done == n_done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan_study(source, checkpoint=folder, progress=stop, **settings)


@pytest.mark.parametrize("kind", ["design", "pilot", "people"])
def test_an_interrupted_plan_resumes_with_the_same_result_and_can_be_extended(tmp_path, monkeypatch, kind):
    people = [np.maximum((W * a) @ W.T + 0.05, 0) for a in np.random.default_rng(0).uniform(0.5, 1.5, (4, 3))]
    source = {"design": W, "pilot": pilot_from(designed(W, 0.7, 0.0), 0.9, 2, 0), "people": SimilaritySet(people)}[kind]
    settings = {**SMALL, "random_state": 5} | ({} if kind == "design" else {"n_components": 3})
    expected = plan_study(source, **settings)
    interrupted(source, tmp_path / "work", 3, **settings)
    monkeypatch.setattr(study, "estimated", None)  # the pilot is not fitted again
    steps = []
    call = {**settings, "checkpoint": tmp_path / "work"}
    again = plan_study(source, progress=steps.append, **call)
    assert [step.done for step in steps] == [4, 5, 6, 7, 8]
    pd.testing.assert_frame_equal(again.table, expected.table, check_exact=True)
    assert (again.snr, again.spread, again.pilot) == (expected.snr, expected.spread, expected.pilot)
    more = plan_study(source, **{**call, "pairs": [0.3, 0.6, 1.0], "n_repeats": 3}, progress=steps.append)
    assert len(steps) == 5 + 10
    monkeypatch.undo()
    pd.testing.assert_frame_equal(
        more.table, plan_study(source, **{**settings, "pairs": [0.3, 0.6, 1.0], "n_repeats": 3}).table, check_exact=True
    )
    for other in ({"snr": 0.3}, {"spread": 0.1}, {"random_state": 6}):
        with pytest.raises(ParameterError, match="checkpoint must be of the same data and settings"):
            plan_study(source, **{**call, **other})
    with pytest.raises(ParameterError, match="checkpoint must be of the same data"):
        plan_study(W**2, **{**call, "n_components": None})


def test_a_checkpoint_keeps_the_seed(tmp_path):
    interrupted(W, tmp_path / "work", 3, **SMALL)
    again = plan_study(W, checkpoint=tmp_path / "work", **SMALL)
    pd.testing.assert_frame_equal(again.table, plan_study(W, **SMALL, random_state=again.seed).table, check_exact=True)


def test_a_plan_that_is_killed_resumes_with_the_same_result(tmp_path):
    code = (
        "from simdims import plan_study, simulate\nimport os, signal\n"
        "W = simulate.dirichlet(30, 3, alpha=0.3, random_state=0)\n"
        "def kill(progress):\n    if progress.done == 3:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        f"plan_study(W, checkpoint={str(tmp_path / 'work')!r}, progress=kill, random_state=5, **{SMALL!r})\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode != 0
    steps = []
    again = plan_study(W, checkpoint=tmp_path / "work", progress=steps.append, random_state=5, **SMALL)
    assert len(steps) == 5
    pd.testing.assert_frame_equal(again.table, plan_study(W, random_state=5, **SMALL).table, check_exact=True)


@pytest.mark.parametrize("source", [["--items", "30", "--dimensions", "3"], ["pilot.npz", "--dimensions", "3"]])
def test_the_command_resumes_with_the_seed_of_its_checkpoint(tmp_path, monkeypatch, capsys, source):
    monkeypatch.chdir(tmp_path)
    pilot_from(designed(W, 0.7, 0.0), 0.9, 2, 0).save("pilot.npz")
    typed = ["plan", *source, "--pairs", "0.3", "1", "--answers", "1", "--repeats", "2", "--quiet"]
    assert main([*typed, "--checkpoint", "work", "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[-1])
    monkeypatch.setattr(study, "_simulate", None)  # nothing is left to do
    assert main([*typed, "--checkpoint", "work", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == first
    assert main([*typed, "--checkpoint", "work", "--seed", str(first["seed"] + 1)]) == 1
    assert "--checkpoint must be of the same data and settings" in capsys.readouterr().err
