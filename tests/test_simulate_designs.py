"""Designs and noise on features, and the study that tests them: definitions and promises."""

import json
import re
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

from simdims import SRF, ParameterError, simulate
from simdims._journal import sealed
from simdims._parallel import root_seed, seed_of
from simdims.inference import combined_test
from simdims.metrics import triplet_probabilities

# factorial


@pytest.mark.parametrize("levels", [[3, 3, 3, 3], [2, 3, 2, 4], [2]])
def test_factorial_crosses_all_levels(levels):
    X = simulate.factorial(levels)
    expected = [
        np.concatenate([np.eye(n)[level] for n, level in zip(levels, combination, strict=True)])
        for combination in product(*(range(n) for n in levels))
    ]
    np.testing.assert_array_equal(X, expected)


def test_replicates_repeat_every_combination():
    X = simulate.factorial([2, 3], n_replicates=4)
    assert X.shape == (24, 5)
    rows, counts = np.unique(X, axis=0, return_counts=True)
    assert len(rows) == 6
    assert (counts == 4).all()


# sparse_correlated and from_embedding


def test_sparse_correlated_is_what_its_name_says():
    W = simulate.sparse_correlated(20_000, 4, density=0.2, correlation=0.5, random_state=0)
    assert W.min() == 0
    np.testing.assert_allclose((W > 0).mean(axis=0), 0.2, atol=0.02)
    assert (np.corrcoef(W.T)[np.triu_indices(4, 1)] > 0.2).all()
    assert (np.diff(W.std(axis=0)) < 0).all()
    alone = simulate.sparse_correlated(20_000, 2, correlation=0.0, random_state=0)
    assert abs(np.corrcoef(alone.T)[0, 1]) < 0.03


def test_samples_are_rows_and_columns_of_the_embedding_without_replacement():
    W = np.arange(200.0).reshape(20, 10)
    sample = simulate.from_embedding(W, 7, 4, random_state=0)
    rows = (sample[:, 0] // 10).astype(int)
    columns = (sample[0] % 10).astype(int)
    assert len(set(rows)) == 7
    assert len(set(columns)) == 4
    np.testing.assert_array_equal(sample, W[np.ix_(rows, columns)])
    np.testing.assert_array_equal(sample, simulate.from_embedding(W, 7, 4, random_state=0))


def test_no_sampled_dimension_is_constant():
    W = np.zeros((100, 3))
    W[:10] = np.random.default_rng(0).random((10, 3))
    for seed in range(30):
        assert (np.ptp(simulate.from_embedding(W, 15, 3, random_state=seed), axis=0) > 0).all()


# add_feature_noise


@pytest.mark.parametrize("snr", [0.02, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_feature_noise_meets_the_ratio_of_similarities(snr, scale):
    X = scale * simulate.sparse_correlated(40, 5, random_state=0)
    noisy = simulate.add_feature_noise(X, snr, random_state=1)
    pairs = [(i, j) for i in range(40) for j in range(40) if i != j]
    signal = np.array([X[i] @ X[j] for i, j in pairs])
    error = np.array([noisy[i] @ noisy[j] for i, j in pairs]) - signal
    assert signal.var() / (signal.var() + error.var()) == pytest.approx(snr, abs=1e-6)
    assert noisy.min() >= 0


def test_feature_noise_is_one_draw_scaled_and_clipped():
    X = simulate.factorial([3, 3, 3])
    draws = [simulate.add_feature_noise(X, snr, random_state=3) - X for snr in (0.3, 0.8)]
    kept = (draws[0] > 0) & (draws[1] > 0)
    ratio = draws[0][kept] / draws[1][kept]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert ratio[0] > 1


def test_the_ends_of_feature_noise():
    X = simulate.factorial([3, 3, 3])
    clean = simulate.add_feature_noise(X, 1, random_state=0)
    np.testing.assert_array_equal(clean, X)
    assert clean is not X
    noise = simulate.add_feature_noise(X, 0, random_state=0)
    upper = np.triu_indices(27, 1)
    assert (noise @ noise.T)[upper].std() == pytest.approx((X @ X.T)[upper].std())
    assert abs(np.corrcoef((noise @ noise.T)[upper], (X @ X.T)[upper])[0, 1]) < 0.2


# power_study

DESIGN = simulate.factorial([2, 2, 3])
QUICK = {"n_repeats": 2, "n_permutations": 39, "random_state": 3}


@pytest.fixture(scope="module")
def study():
    return simulate.power_study(DESIGN, [0.2, 0.6], **QUICK)


def test_a_study_has_a_row_for_each_data_set_and_test(study):
    assert list(study.columns) == ["noise", "snr", "repeat", "test", "power", "power_unadjusted"]
    assert len(study) == 2 * 2 * 2 * 3
    assert set(study["test"]) == {"dimension", "rsa", "combined"}
    assert study["power"].between(0, 1).all()
    assert (study["power_unadjusted"] >= study["power"]).all()
    assert (study["power_unadjusted"] > study["power"]).any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_power_is_what_the_tests_find():
    """One data set made, fitted and tested by hand, with the seeds that the study gives it."""
    study = simulate.power_study(DESIGN, [0.6], noise="features", **QUICK)
    root = root_seed(3)
    noisy = simulate.add_feature_noise(DESIGN, 0.6, random_state=seed_of(root, 1, 1))
    S = noisy @ noisy.T
    W = SRF(7, random_state=seed_of(root, 1, 2)).fit(S).embedding_
    tests = combined_test(S, W, DESIGN, n_permutations=39, random_state=seed_of(root, 1, 3))
    rows = study[study["repeat"] == 1].set_index("test")["power"]
    assert rows["combined"] == tests.significant.mean()
    assert rows["rsa"] == tests.parts["rsa"].significant.mean()
    assert rows["dimension"] == tests.parts["dimension"].significant.mean()


def test_a_study_that_was_stopped_ends_with_the_same_result(study, tmp_path):
    simulate.power_study(DESIGN, [0.2], checkpoint=tmp_path, **{**QUICK, "n_repeats": 1})
    with (tmp_path / "journal.jsonl").open("a") as stream:
        stream.write('{"noise": "features", "snr')  # killed while it wrote
    resumed = simulate.power_study(DESIGN, [0.2, 0.6], checkpoint=tmp_path, **QUICK)
    pd.testing.assert_frame_equal(resumed, study)
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 8


def test_fresh_entropy_is_kept_in_the_checkpoint(tmp_path):
    options = {"n_repeats": 1, "n_permutations": 39, "noise": "features", "checkpoint": tmp_path}
    first = simulate.power_study(DESIGN, [0.3], **options)
    both = simulate.power_study(DESIGN, [0.3, 0.6], **options)
    pd.testing.assert_frame_equal(both[both["snr"] == 0.3], first)


def test_a_study_does_not_depend_on_n_jobs(study):
    pd.testing.assert_frame_equal(simulate.power_study(DESIGN, [0.2, 0.6], n_jobs=2, **QUICK), study)


def test_a_design_may_be_drawn_for_every_repeat():
    W = simulate.sparse_correlated(200, 8, random_state=0)
    design = partial(simulate.from_embedding, W, 20, 3)
    study = simulate.power_study(design, [1.0], n_repeats=3, n_permutations=99, noise="features", random_state=0)
    assert study.loc[study["test"] == "dimension", "power"].mean() > 0.5


@pytest.mark.parametrize(
    ("name", "value", "got"),
    [
        ("snrs", [2.0], "2.0"),
        ("snrs", [], "none"),
        ("snrs", "0.5", "'0.5'"),
        ("snrs", b"0.5", "b'0.5'"),
        ("snrs", np.array(0.5), "array"),
        ("snrs", np.eye(2), "array"),
        ("snrs", [None], "None"),
        ("snrs", [float("nan")], "nan"),
        ("snrs", [0.5, 0.5], "0.5 more than once"),
        ("noise", 5, "5"),
        ("noise", [["features"]], "['features']"),
        ("noise", "pixels", "'pixels'"),
        ("noise", ["features", "features"], "'features' more than once"),
        ("by_column", 1, "1"),
        ("checkpoint", 5, "5"),
        ("design", [["a"]], "'a' in row 0"),
        ("design", None, r"\(\)"),
        ("design", np.ones(4), r"\(4,\)"),
        ("n_repeats", 0, "0"),
        ("n_permutations", -1, "-1"),
        ("matching", "none", "'none'"),
        ("method", "none", "'none'"),
        ("weighting", "none", "'none'"),
    ],
)
def test_bad_studies_are_refused_before_they_begin(name, value, got, tmp_path):
    arguments = {"design": DESIGN, "snrs": [0.5], "checkpoint": tmp_path / "study", **QUICK, name: value}
    with pytest.raises((TypeError, ValueError), match=f"{name} .*{got if '(' in got else re.escape(got)}"):
        simulate.power_study(**arguments)
    assert not (tmp_path / "study").exists()


def test_a_checkpoint_of_another_study_is_refused(tmp_path):
    options = {**QUICK, "n_repeats": 1, "noise": "features", "checkpoint": tmp_path}
    simulate.power_study(DESIGN, [0.5], **options)
    with pytest.raises(ValueError, match=r"n_permutations .*39.*40"):
        simulate.power_study(DESIGN, [0.5], **{**options, "n_permutations": 40})
    with pytest.raises(ValueError, match="where design is"):
        simulate.power_study(DESIGN[:, :3], [0.5], **options)


@pytest.mark.parametrize("scale", [1e-140, 1e-13, 1e-9, 1e9, 1e140])
@pytest.mark.parametrize("snr", [0, 0.5])
def test_feature_noise_is_the_same_in_all_units(scale, snr):
    X = simulate.factorial([3, 3])
    expected = scale * simulate.add_feature_noise(X, snr, random_state=0)
    np.testing.assert_allclose(simulate.add_feature_noise(scale * X, snr, random_state=0), expected, rtol=1e-6)


def test_every_repeat_has_noise_of_its_own_and_every_ratio_the_same(monkeypatch):
    seeds = {}
    plain = simulate.add_feature_noise

    def noticing(X, snr, *, random_state):
        seeds.setdefault(snr, []).append(random_state)
        return plain(X, snr, random_state=random_state)

    monkeypatch.setattr("simdims.simulate.power.add_feature_noise", noticing)
    simulate.power_study(
        simulate.factorial([2, 3]), [0.3, 0.6], n_repeats=3, n_permutations=9, noise="features", random_state=0
    )
    assert seeds[0.3] == seeds[0.6]
    assert len(set(seeds[0.3])) == 3


# power_study by column

SAMPLED = partial(simulate.from_embedding, simulate.sparse_correlated(100, 6, random_state=0), 20, 4)
QUICK_STUDY = {"snrs": [0.3, 1.0], "n_repeats": 3, "n_permutations": 39, "random_state": 1}


@pytest.fixture(scope="module")
def by_column():
    return simulate.power_study(SAMPLED, by_column=True, **QUICK_STUDY)


def test_columns_that_are_found_make_up_the_power_of_a_data_set(by_column):
    study = simulate.power_study(SAMPLED, **QUICK_STUDY)
    data_sets = ["noise", "snr", "repeat", "test"]
    assert len(by_column) == 4 * len(study)
    groups = by_column.assign(small=by_column["pvalue"] <= 0.05).groupby(data_sets)[["significant", "small"]].mean()
    expected = study.set_index(data_sets).sort_index()
    np.testing.assert_array_equal(groups["significant"], expected["power"])
    np.testing.assert_array_equal(groups["small"], expected["power_unadjusted"])


def test_every_column_has_the_variance_of_its_draw(by_column):
    for repeat, rows in by_column.groupby("repeat"):
        X = SAMPLED(random_state=seed_of(root_seed(1), repeat, 0))
        np.testing.assert_allclose(rows["variance"], X.var(axis=0)[rows["column"]])


def test_a_checkpoint_serves_both_tables(by_column, tmp_path, monkeypatch):
    study = simulate.power_study(SAMPLED, checkpoint=tmp_path, **QUICK_STUDY)
    monkeypatch.setattr("simdims.simulate.power._simulate", None)
    pd.testing.assert_frame_equal(
        simulate.power_study(SAMPLED, by_column=True, checkpoint=tmp_path, **QUICK_STUDY), by_column
    )
    pd.testing.assert_frame_equal(simulate.power_study(SAMPLED, checkpoint=tmp_path, **QUICK_STUDY), study)


def test_a_checkpoint_without_columns_is_read_and_completed(by_column, tmp_path, monkeypatch):
    study = simulate.power_study(SAMPLED, checkpoint=tmp_path, **QUICK_STUDY)
    journal = tmp_path / "journal.jsonl"
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    kept = ("noise", "snr", "repeat", "found")
    journal.write_text("".join(sealed({name: record[name] for name in kept}) + "\n" for record in records))
    with monkeypatch.context() as patched:
        patched.setattr("simdims.simulate.power._simulate", None)
        pd.testing.assert_frame_equal(simulate.power_study(SAMPLED, checkpoint=tmp_path, **QUICK_STUDY), study)
    completed = simulate.power_study(SAMPLED, by_column=True, checkpoint=tmp_path, **QUICK_STUDY)
    pd.testing.assert_frame_equal(completed, by_column)


# triplet_answers


def test_answers_have_the_probabilities_of_the_embedding():
    W = 2 * simulate.dirichlet(4, 2, alpha=0.5, random_state=0)
    answers = simulate.triplet_answers(W, 40_000, random_state=0)
    assert answers.shape == (40_000, 3)
    triplets, counts = np.unique(np.sort(answers, axis=1), axis=0, return_counts=True)
    np.testing.assert_array_equal(triplets, [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
    np.testing.assert_allclose(counts, 10_000, rtol=0.05)
    probabilities = triplet_probabilities(W, triplets)
    for triplet, expected in zip(triplets, probabilities, strict=True):
        odd = answers[(np.sort(answers, axis=1) == triplet).all(axis=1), 2]
        np.testing.assert_allclose([np.mean(odd == item) for item in triplet], expected, atol=0.02)


def test_answers_follow_from_the_seed():
    W = simulate.dirichlet(10, 2, random_state=0)
    one, same, other = (simulate.triplet_answers(W, 50, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_answers_are_as_many_as_asked_for_across_chunks(monkeypatch):
    monkeypatch.setattr("simdims.simulate.answers._CHUNK", 7)
    answers = simulate.triplet_answers(np.eye(3), 100, random_state=0)
    assert answers.shape == (100, 3)
    assert (np.sort(answers, axis=1) == [0, 1, 2]).all()


# bad arguments


@pytest.mark.parametrize(
    ("function", "arguments", "name", "got"),
    [
        (simulate.factorial, ([3, 1],), "levels", "1"),
        (simulate.factorial, ([],), "levels", "none"),
        (simulate.factorial, ([2.5],), "levels", "2.5"),
        (simulate.factorial, ([True, 2],), "levels", "True"),
        (simulate.factorial, (3,), "levels", "int"),
        (simulate.from_embedding, (np.eye(20)[:, :5], 21), "n_items", "21"),
        (simulate.from_embedding, (np.eye(20)[:, :5], 5, 0), "n_components", "0"),
        (simulate.from_embedding, (-np.ones((20, 5)), 5, 2), "W", "-1"),
        (simulate.from_embedding, (np.ones((20, 5)), 5, 2), "W", "constant"),
        (simulate.from_embedding, (np.ones(5), 5, 2), "W", "(5,)"),
        (simulate.sparse_correlated, (5, 2), "correlation", "1"),
        (simulate.add_feature_noise, (-np.eye(4), 0.5), "X", "-1"),
        (simulate.add_feature_noise, ([[1, np.nan], [0, 1]], 0.5), "X", "nan"),
        (simulate.add_feature_noise, (np.ones((4, 2)), 0.5), "X", "equal"),
        (simulate.add_feature_noise, (np.ones(4), 0.5), "X", "(4,)"),
        (simulate.add_feature_noise, (np.eye(4), 1.5), "snr", "1.5"),
        (simulate.triplet_answers, (np.ones((2, 3)), 5), "W", "(2, 3)"),
        (simulate.triplet_answers, (np.ones(5), 5), "W", "(5,)"),
        (simulate.triplet_answers, ([[1.0, np.nan], [0, 1], [1, 1]], 5), "W", "1 values"),
        (simulate.triplet_answers, (np.ones((3, 2)), 0), "n_answers", "0"),
        (simulate.triplet_answers, (np.ones((3, 2)), 2.5), "n_answers", "2.5"),
    ],
)
def test_bad_arguments_are_refused(function, arguments, name, got):
    with pytest.raises(ParameterError) as caught:
        function(*arguments, **({"correlation": 1} if name == "correlation" else {}))
    assert (caught.value.name, got in caught.value.got) == (name, True)
