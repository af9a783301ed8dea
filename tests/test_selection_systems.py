"""select_rank of a SimilaritySet: pairs are held out within every system, and what weights are worth."""

import numpy as np
import pytest
from scipy import sparse

from simdims import SRF, JointSRF, ParameterError, Similarity, SimilaritySet, select_rank, simulate
from simdims.joint import problem_of_set
from simdims.selection import joint_fits
from simdims.selection.comparison import SystemsComparison, compare
from simdims.selection.detection import joint_structure_beyond_one
from simdims.selection.fits import Design, Task
from simdims.selection.residuals import summed_residuals
from simdims.selection.systems import compare_systems, joint_fold_estimator
from simdims.solvers import penalised_jointly

pytestmark = pytest.mark.filterwarnings("ignore:Systems seem to be on different scales")

DESIGN = Design(0.76, 5, 2, 7)
QUICK = {"n_repeats": 1, "random_state": 0, "progress": False}


def stack_of(alike=False, observed=0.5, seed=0, n_systems=8, n_items=30, rank=3, snr=0.7):
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(n_items, rank, alpha=0.3, random_state=seed)
    a = np.ones((n_systems, rank)) if alike else rng.uniform(0.0, 2.0, size=(n_systems, rank))
    made = [simulate.add_noise((W * a_m) @ W.T, snr, random_state=100 * seed + m) for m, a_m in enumerate(a)]
    return np.stack([simulate.mask_pairs(S, observed, random_state=m, keep_diagonal=False) for m, S in enumerate(made)])


def of_kinds():
    """One matrix of all pairs, one of most, one of few, and one with zeros that are not stored."""
    stack = stack_of(observed=1.0, n_systems=4, n_items=20)
    stack[1] = simulate.mask_pairs(stack[1], 0.8, random_state=1, keep_diagonal=False)
    stack[2] = simulate.mask_pairs(stack[2], 0.3, random_state=2, keep_diagonal=False)
    links = np.where(np.nan_to_num(stack[3]) > np.nanquantile(stack[3], 0.7), stack[3], 0.0)
    return SimilaritySet([*stack[:3], Similarity(sparse.csr_array(links), absent="zero")])


@pytest.fixture(scope="module")
def people():
    return SimilaritySet(stack_of())


@pytest.fixture(scope="module")
def selection(people):
    return select_rank(people, range(1, 6), **QUICK)


def test_each_pair_of_a_system_may_be_held_out_once_with_its_value_and_weight():
    systems = of_kinds()
    pairs = joint_fits.draw_pairs(problem_of_set(systems), 0)
    for m in range(3):
        own = pairs.systems == m
        i, j = np.nonzero(np.triu(~np.isnan(systems[m].values), 1))
        assert set(zip(i, j, strict=True)) == set(zip(pairs.rows[own], pairs.columns[own], strict=True))
        np.testing.assert_array_equal(pairs.values[own], systems[m].values[pairs.rows[own], pairs.columns[own]])
        np.testing.assert_array_equal(pairs.weights[own], 1.0)
    own, links = pairs.systems == 3, np.triu(systems[3].values.toarray(), 1)
    is_link = pairs.values[own] > 0
    assert is_link.sum() == np.count_nonzero(links)
    assert (~is_link).sum() == min(is_link.sum(), 190 - is_link.sum())
    assert np.all(links[pairs.rows[own], pairs.columns[own]] == pairs.values[own])
    assert pairs.weights[own].sum() == pytest.approx(190)  # the zeros that are drawn stand for all of them


def test_folds_cut_the_pairs_of_each_system_into_equal_parts():
    pairs = joint_fits.draw_pairs(problem_of_set(of_kinds()), 0)
    folds = joint_fits.draw_folds(pairs, 4, DESIGN, 0)
    for m in range(4):
        own = folds[pairs.systems == m]
        counts = np.bincount(own[own >= 0], minlength=5)
        assert np.ptp(counts) <= 1
        assert np.mean(own >= 0) == pytest.approx(0.95, abs=0.05)
    again = joint_fits.draw_folds(pairs, 4, DESIGN, 1)
    assert np.mean(again == folds) < 0.5


def test_held_out_values_never_reach_a_fit():
    """With other values for all pairs that a fold does not train on, its fit is the same, number for number."""
    stack, task = stack_of(observed=0.8), Task(3, 1, 2)
    stack[4:] = [simulate.mask_pairs(S, 0.5, random_state=1, keep_diagonal=False) for S in stack[4:]]
    model = JointSRF(alpha=0.05, shrinkage=0.3, tol=1e-2, max_iter=50)
    problem = problem_of_set(SimilaritySet(stack))
    assert 0 < len(problem.dense) < 8  # both kinds of storage
    pairs = joint_fits.draw_pairs(problem, DESIGN.root)
    folds = joint_fits.draw_folds(pairs, 8, DESIGN, task.repeat)
    held = (folds < 0) | (folds == task.fold)
    other, at = stack.copy(), (pairs.systems[held], pairs.rows[held], pairs.columns[held])
    other[at] = other[at[0], at[2], at[1]] = np.random.default_rng(0).uniform(0, 3, size=held.sum())
    one, two = (
        joint_fits.fit_fold(problem_of_set(SimilaritySet(given)), DESIGN, model, None, task) for given in (stack, other)
    )
    np.testing.assert_array_equal(one.W, two.W)
    assert (one.low, one.high) == (two.low, two.high)


def test_a_chosen_shrinkage_draws_weights_as_strongly_at_every_rank(people):
    """mu is the same at the rank of its choice and at others."""
    problem = problem_of_set(people)
    chosen = penalised_jointly(problem, 12, 0.1, 0.0, 0.4).mu
    assert penalised_jointly(problem, 3, 0.1, 0.0, joint_fits.shrinkage_at(0.4, 3, 12)).mu == pytest.approx(chosen)
    assert np.isinf(joint_fits.shrinkage_at(np.inf, 3, 12))
    model = JointSRF(alpha=0.05, shrinkage=0.4, tol=1e-2, max_iter=50)
    given = joint_fits.fit_fold(problem, DESIGN, model, None, Task(3, 0, 0))
    same = joint_fits.fit_fold(problem, DESIGN, model, 3, Task(3, 0, 0))
    weaker = joint_fits.fit_fold(problem, DESIGN, model, 12, Task(3, 0, 0))
    np.testing.assert_allclose(given.W, same.W, rtol=1e-9, atol=1e-12)
    assert np.var(weaker.W[30:]) > np.var(given.W[30:])


def test_the_score_is_the_mean_squared_error_of_the_pairs_held_out(people):
    problem = problem_of_set(people)
    model = JointSRF(alpha=0.05, shrinkage=0.3, tol=1e-2, max_iter=50)
    tasks = [Task(2, repeat, fold) for repeat in range(2) for fold in range(5)]
    fits = [joint_fits.fit_fold(problem, DESIGN, model, None, task) for task in tasks]
    score, of_mean = joint_fits.score_fits(problem, DESIGN, fits), joint_fits.score_mean(problem, DESIGN)
    pairs = joint_fits.draw_pairs(problem, DESIGN.root)
    means = [np.nanmean(S[np.triu_indices(30, 1)]) for S in stack_of()]
    parts, of_items, of_pairs = np.zeros((2, 8)), np.zeros(30), {}
    for number, fit in enumerate(fits):
        W, a = fit.W[:30], fit.W[30:]
        those = np.flatnonzero(joint_fits.draw_folds(pairs, 8, DESIGN, fit.task.repeat) == fit.task.fold)
        total = 0.0
        for e in those:
            m, i, j, value = pairs.systems[e], pairs.rows[e], pairs.columns[e], pairs.values[e]
            square = (np.clip(np.sum(W[i] * a[m] * W[j]), fit.low, fit.high) - value) ** 2 / len(those)
            total += square
            parts[:, m] += np.array([square, (value - means[m]) ** 2 / len(those)]) / 10
            of_items[[i, j]] += square / 10
            of_pairs[i, j] = of_pairs.get((i, j), 0.0) + square / 10
        assert score.fits[number]["error_alone"] == pytest.approx(total, rel=1e-10)
    np.testing.assert_allclose([score.systems[0], *of_mean.systems], [parts[0], parts[1], parts[1]], rtol=1e-10)
    np.testing.assert_allclose(score.items[1], of_items, rtol=1e-10)
    np.testing.assert_allclose(np.sort(score.sample[1]), np.sort(list(of_pairs.values())), rtol=1e-10)
    assert score.pairs_per_sampled == 1.0


def test_predictions_are_adjusted_to_the_scale_of_a_system_by_a_line_through_its_other_folds(people):
    problem = problem_of_set(people)
    model = JointSRF(alpha=0.05, shrinkage=0.3, tol=1e-2, max_iter=50)
    fits = [joint_fits.fit_fold(problem, DESIGN, model, None, Task(2, 0, fold)) for fold in range(5)]
    score = joint_fits.score_fits(problem, DESIGN, fits)
    pairs = joint_fits.draw_pairs(problem, DESIGN.root)
    folds = joint_fits.draw_folds(pairs, 8, DESIGN, 0)
    x = np.full(len(folds), np.nan)
    for fit in fits:
        for e in np.flatnonzero(folds == fit.task.fold):
            product = fit.W[pairs.rows[e]] * fit.W[30 + pairs.systems[e]] * fit.W[pairs.columns[e]]
            x[e] = np.clip(product.sum(), fit.low, fit.high)
    expected = np.zeros(8)
    for e in np.flatnonzero(folds >= 0):
        m = pairs.systems[e]
        others = (pairs.systems == m) & (folds >= 0) & (folds != folds[e])
        slope = max(0.0, np.polyfit(x[others], pairs.values[others], 1)[0])
        line = pairs.values[others].mean() + slope * (x[e] - x[others].mean())
        predicted = (others.sum() * line + 10 * x[e]) / (others.sum() + 10)
        expected[m] += (predicted - pairs.values[e]) ** 2 / np.sum(folds == folds[e]) / 5
    np.testing.assert_allclose(score.systems[1], expected, rtol=1e-9)


def test_the_true_number_is_selected_with_a_penalty_and_a_shrinkage(people, selection):
    assert selection.rank == 3
    assert selection.protocol == "penalised"
    assert selection.alpha > 0
    assert selection.comparison_alpha > 0
    assert np.isfinite(selection.shrinkage)
    assert selection.evidence_of_structure
    assert selection.resampled.ranks
    assert list(selection.systems.index) == list(people.names)
    error, of_mean = (selection.systems[name].sum() for name in ("error", "error_of_mean"))
    assert selection.held_out_r2 == pytest.approx(1 - error / of_mean, rel=1e-10)
    assert "in each of 8 systems" in selection.summary()
    assert "shrinkage" in selection.summary()
    assert selection.to_dict()["shrinkage"] == selection.shrinkage


@pytest.mark.parametrize(("n_items", "seed"), [(20, 4), (16, 7)])
def test_one_dimension_is_not_enough_where_its_residuals_have_structure(n_items, seed):
    """With few items, the errors of one dimension and of three differ by few of their standard errors."""
    stack = stack_of(seed=seed, n_systems=16, n_items=n_items, observed=0.4, snr=0.9)
    found = select_rank(SimilaritySet(stack), [1, 2, 3, 4], **QUICK)
    assert found.rank == 3
    assert found.evidence_of_structure


def test_residuals_of_systems_are_summed_with_their_weights():
    systems = of_kinds()
    rng = np.random.default_rng(0)
    W, a = rng.uniform(size=(20, 2)), rng.uniform(size=(4, 2))
    expected = np.zeros((20, 20))
    for one, a_m in zip(systems, a, strict=True):
        S = one.values.toarray() if sparse.issparse(one.values) else one.values
        expected += np.nan_to_num(S - (W * a_m) @ W.T)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(summed_residuals(problem_of_set(systems), W, a), expected, atol=1e-12)


def test_one_dimension_and_noise_leave_no_structure():
    """At a level of 5%; systems use the dimension to different degrees."""
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        w, a = rng.uniform(0.6, 1.0, size=(20, 1)), rng.uniform(0.5, 1.5, size=8)
        noise = rng.normal(0, 0.05, size=(8, 20, 20))
        stack = np.maximum(a[:, None, None] * (w @ w.T) + noise + noise.transpose(0, 2, 1), 0.0)
        stack = [simulate.mask_pairs(S, 0.5, random_state=8 * seed + m) for m, S in enumerate(stack)]
        problem = problem_of_set(SimilaritySet(stack))
        found.append(joint_structure_beyond_one(problem, 0.01, seed))
    assert np.mean(found) <= 0.12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 64))
def test_about_the_true_number_is_selected_from_few_pairs_of_each_system(seed):
    stack = stack_of(seed=seed, n_systems=20, n_items=40, rank=5, observed=0.2, snr=0.5)
    found = select_rank(SimilaritySet(stack), [2, 3, 4, 5, 6, 7, 9, 12], n_repeats=2, random_state=0, progress=False)
    assert abs(found.rank - 5) <= 1


def test_workers_change_nothing(people, selection):
    again = select_rank(people, range(1, 6), n_jobs=2, **QUICK)
    columns = [name for name in selection.scores if name != "seconds"]
    assert again.scores[columns].equals(selection.scores[columns])
    assert again.seed == selection.seed


def test_one_system_selects_as_one_matrix():
    S = stack_of(n_systems=1, observed=0.9, alike=True, n_items=40)
    found = select_rank(SimilaritySet(S), range(1, 6), **QUICK)
    assert found.rank == 3
    assert np.isinf(found.shrinkage)
    settings = {"estimator": joint_fold_estimator(None, "auto"), "checkpoint": None, "n_jobs": None, "progress": False}
    compared = compare_systems(SimilaritySet(S), found, **settings)
    assert compared.better_than("average") is None
    assert not compared.worthwhile
    assert "one system" in compared.summary()


def test_noise_is_no_evidence():
    rng = np.random.default_rng(3)
    noise = rng.uniform(size=(6, 20, 20))
    found = select_rank(SimilaritySet((noise + noise.transpose(0, 2, 1)) / 2), range(1, 4), **QUICK)
    assert not found.evidence_of_structure


def test_systems_with_different_means_and_no_structure_are_no_evidence():
    """The baseline is the mean of each system, so that weights are not praised for what the means tell."""
    rng = np.random.default_rng(4)
    noise = rng.normal(0, 0.02, size=(6, 20, 20)) + np.linspace(0.2, 0.8, 6)[:, None, None]
    found = select_rank(SimilaritySet((noise + noise.transpose(0, 2, 1)) / 2), range(1, 4), **QUICK)
    assert not found.evidence_of_structure


@pytest.mark.parametrize("alike", [False, True])
def test_weights_are_worth_having_where_systems_differ_and_only_there(alike):
    systems = SimilaritySet(stack_of(alike=alike, seed=11, n_systems=12))
    found = select_rank(systems, [3], **QUICK)
    settings = {"estimator": joint_fold_estimator(None, "auto"), "checkpoint": None, "n_jobs": None, "progress": False}
    compared = compare_systems(systems, found, **settings)
    r2 = compared.comparison["r2"]
    assert r2["weights"] == pytest.approx(found.held_out_r2, rel=1e-10)
    assert compared.worthwhile is not alike
    assert r2["alone"] < r2["weights"]
    assert compared.better_than("alone")
    assert ("Weights of systems improve predictions" in compared.summary()) is not alike
    for _, shown, against in compared.rows():
        assert shown in {f"{value:.3f}" for value in r2}
        assert against == "" or against.startswith("weights are better by")
    if alike:
        assert r2["average"] == r2["weights"]


def test_a_system_alone_is_fitted_to_the_same_pairs_without_the_others():
    """Other systems may have any similarities: what one predicts by itself does not change."""
    stack = stack_of(n_systems=3, observed=0.7)
    other = stack.copy()
    other[1:] = np.sqrt(other[1:])
    model = JointSRF(alpha="auto", tol=1e-2, max_iter=100)
    one, two = (
        joint_fits.fit_alone(problem_of_set(SimilaritySet(given)), DESIGN, model, 2, 0) for given in (stack, other)
    )
    assert one == two
    assert joint_fits.fit_alone(problem_of_set(SimilaritySet(stack)), DESIGN, model, 2, 1)[1] != pytest.approx(one[1])


def test_the_comparison_follows_from_the_errors_of_systems():
    rng = np.random.default_rng(0)
    baseline = rng.uniform(1, 2, size=400)
    errors = {"scale": 0.25 * baseline, "weights": 0.2 * baseline, "alone": 0.3 * baseline}
    errors["weights on line"] = 0.18 * baseline
    errors["average"] = errors["weights"] + 0.1 * baseline + rng.normal(0, 0.05, size=400)
    found = compare(errors, baseline, tuple(map(str, range(400))), 3, 0.1)
    assert found.comparison.loc["weights", "r2"] == pytest.approx(0.8)
    assert found.comparison.loc["scale", "gain"] == pytest.approx(0.07)
    gain, error = found.comparison.loc["average", ["gain", "standard_error"]]
    difference = errors["average"] - errors["weights"]
    assert gain == pytest.approx(difference.sum() / baseline.sum())
    without = np.array([np.delete(difference, m).sum() / np.delete(baseline, m).sum() for m in range(400)])
    assert error == pytest.approx(np.sqrt(399 * without.var()), rel=1e-2)  # the jackknife
    assert found.comparison.loc["alone", "standard_error"] == pytest.approx(0, abs=1e-12)
    again = SystemsComparison.from_dict(found.to_dict())
    assert again.comparison.equals(found.comparison)
    assert "differ in more than the weights" not in found.summary()
    assert found.limits() == ""
    better_alone = compare({**errors, "alone": 0.1 * baseline}, baseline, tuple(map(str, range(400))), 3, 0.1)
    assert "differ in more than the weights" in better_alone.summary()
    assert "differ in more than the weights" in better_alone.limits()
    assert again.r2.equals(found.r2)
    assert again.summary() == found.summary()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimator": SRF()}, "estimator must be a JointSRF for a SimilaritySet"),
        ({"estimator": JointSRF(), "alpha": 0.1}, "alpha cannot be given beside an estimator="),
        ({"estimator": JointSRF(init=np.ones((30, 3)))}, "estimator must have init='random'"),
        ({"estimator": JointSRF(alpha=0.0)}, "alpha must be positive or 'auto' for a SimilaritySet"),
        ({"alpha": 0.0}, "alpha must be positive or 'auto' for a SimilaritySet"),
        ({"protocol": "averaged"}, "protocol must be 'penalised' for a SimilaritySet"),
        ({"protocol": "paper"}, "protocol must be 'penalised' for a SimilaritySet"),
        ({"ranks": [30]}, "ranks must lie between 1 and 29"),
        ({"sampling": 2.0}, "sampling"),
        ({"n_folds": 1}, "n_folds must be at least 2"),
    ],
)
def test_bad_input_is_refused(people, settings, words):
    with pytest.raises((ParameterError, TypeError), match=words):
        select_rank(people, **{"ranks": [2], **settings})


def test_too_few_pairs_are_refused():
    few = np.full((2, 4, 4), np.nan)
    few[:, 0, 1] = few[:, 1, 0] = few[:, 2, 3] = few[:, 3, 2] = 0.5
    few[:, 1, 2] = few[:, 2, 1] = 0.2
    with pytest.raises(ValueError, match="one observed pair per fold"):
        select_rank(SimilaritySet(few), [1], n_folds=7)


def test_systems_with_a_single_pair_do_no_harm():
    """In the folds that hold it out they have none, and weights of 1."""
    stack = stack_of(n_systems=6, observed=0.6)
    stack[5] = np.nan
    stack[5, 0, 1] = stack[5, 1, 0] = 0.4
    systems = SimilaritySet(stack)
    found = select_rank(systems, [2, 3], **QUICK)
    settings = {"estimator": joint_fold_estimator(None, "auto"), "checkpoint": None, "n_jobs": None, "progress": False}
    compared = compare_systems(systems, found, **settings)
    assert np.isnan(compared.r2.iloc[5]).all()
    assert np.isfinite(compared.comparison.to_numpy()).all()


def test_too_little_memory_is_refused_before_any_fit(people, monkeypatch):
    monkeypatch.setattr("simdims._memory.available_bytes", lambda: 2**20)
    words = "A joint fit of 8 systems with pairs held out, 2000 at a time, .* fewer n_jobs"
    with pytest.raises(MemoryError, match=words):
        select_rank(people, [2], n_jobs=2000)


def test_many_people_with_few_pairs_each_stay_lists():
    """No fold holds a matrix per person."""
    rng = np.random.default_rng(0)
    stack = stack_of(n_systems=1, observed=1.0, n_items=40)[0]
    people = [simulate.mask_pairs(stack, 0.05, random_state=m, keep_diagonal=False) for m in range(60)]
    problem = problem_of_set(SimilaritySet(np.stack(people)))
    pairs = joint_fits.draw_pairs(problem, 0)
    held = rng.random(len(pairs.rows)) < 0.3
    left = joint_fits.leave_out(problem, pairs, held)
    assert not left.dense
    assert len(left.listed.values) == len(problem.listed.values) == 2 * len(pairs.rows)
