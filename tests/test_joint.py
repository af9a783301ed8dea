"""JointSRF: the objective against its definition, the minimum against other methods, recovery, and real people."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse
from scipy.stats import rankdata

from simdims import SRF, JointSRF, ParameterError, Similarity, SimilaritySet, align, fit_consensus, simulate, solvers
from simdims.joint import problem_of_set
from simdims.similarity.arrays import arrays_of, problem_of
from simdims.solvers import joint_start, penalised_jointly, solve_jointly
from simdims.solvers.joint import JointSweeps, evaluate_jointly
from simdims.solvers.joint_kernels import share_out
from simdims.solvers.joint_pairs import one_system, without_pairs

# Weights are drawn down to zero, and with few dimensions a whole system may be small.
pytestmark = pytest.mark.filterwarnings("ignore:Systems seem to be on different scales")


def simulated(n_systems=20, n_items=60, rank=6, observed=0.15, snr=0.5, seed=0, *, diagonal=False, alike=False):
    """Similarities of systems with missing pairs, the dimensions, and the weights (mean 1 per dimension)."""
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(n_items, rank, alpha=0.3, random_state=seed)
    a = np.ones((n_systems, rank)) if alike else rng.uniform(0, 2, size=(n_systems, rank))
    a /= a.mean(axis=0)
    stack = np.empty((n_systems, n_items, n_items))
    for m in range(n_systems):
        S = simulate.add_noise((W * a[m]) @ W.T, snr, random_state=1000 * seed + m)
        stack[m] = simulate.mask_pairs(S, observed, random_state=2000 * seed + m, keep_diagonal=diagonal)
    return stack, W, a


def definition(stack, W, a, problem, weights=None):
    """F, term by term, from its definition."""
    total = 0.0
    for m, S in enumerate(stack):
        residual = S - W @ np.diag(a[m]) @ W.T
        omega = np.ones_like(S) if weights is None else weights[m]
        total += 0.5 * np.nansum(omega * residual**2)
    penalty = problem.penalty.ridge * np.sum(W**2) + 2 * problem.penalty.lasso * np.sum(W)
    return total + penalty + 0.5 * problem.mu * np.sum((a - 1) ** 2)


def recovered(joint, W, a):
    """The mean correlation of the dimensions with the true ones, and of the weights."""
    found = align(joint.embedding_, W)
    correlations = [np.corrcoef(a[:, k], joint.weights_[:, j])[0, 1] for k, j in enumerate(found.permutation)]
    return float(np.mean(found.similarity)), float(np.mean(correlations))


STORAGES = {
    "dense": {"observed": 1.0, "diagonal": True},
    "dense without diagonal": {"observed": 1.0, "diagonal": False},
    "missing": {"observed": 0.4, "diagonal": True},
    "missing without diagonal": {"observed": 0.4, "diagonal": False},
    "few missing": {"observed": 0.8, "diagonal": True},
    "few missing without diagonal": {"observed": 0.8, "diagonal": False},
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("alpha", "l1_ratio", "shrinkage"), [(0.0, 0.0, 0.0), (0.1, 0.4, 0.2), (0.1, 0.0, np.inf)])
def test_each_sweep_lowers_the_objective_by_what_it_says(storage, alpha, l1_ratio, shrinkage):
    stack, *_ = simulated(5, 40, 3, **STORAGES[storage])
    problem = penalised_jointly(problem_of_set(SimilaritySet(stack)), 4, alpha, l1_ratio, shrinkage)
    rng = np.random.default_rng(1)
    W, sweeps = rng.uniform(size=(40, 4)), JointSweeps(problem, 4)
    plain = penalised_jointly(problem, 4, alpha, l1_ratio, 0.0 if np.isinf(shrinkage) else shrinkage)
    before = definition(stack, W, sweeps.weights, plain)
    assert sweeps.objective(W) == pytest.approx(before, rel=1e-12)
    for _ in range(12):
        change = sweeps.sweep(W)
        after = definition(stack, W, sweeps.weights, plain)
        assert change <= 0
        assert after - before == pytest.approx(change, rel=1e-6, abs=1e-10 * before)
        assert after <= before * (1 + 1e-13)
        np.testing.assert_allclose(sweeps.weights.mean(axis=0), 1.0, rtol=1e-12)
        assert sweeps.weights.min() >= 0
        assert W.min() >= 0
        before = after


@pytest.mark.parametrize("storage", STORAGES)
def test_the_history_is_the_objective_and_never_increases(storage):
    stack, *_ = simulated(5, 40, 3, **STORAGES[storage])
    joint = JointSRF(4, alpha=0.05, shrinkage=0.1, random_state=0, tol=1e-7).fit(stack)
    problem = penalised_jointly(problem_of_set(SimilaritySet(stack)), 4, 0.05, 0.0, 0.1)
    assert joint.objective_ == pytest.approx(definition(stack, joint.embedding_, joint.weights_, problem), rel=1e-10)
    assert len(joint.history_) == joint.n_iter_ + 1
    assert np.all(np.diff(joint.history_) <= 1e-13 * joint.history_[0])
    assert joint.history_[-1] == joint.objective_
    assert joint.converged_
    assert joint.kkt_residual_ < 1e-3
    assert joint.solver_ == "bcd"


def test_the_kkt_residual_is_the_projected_gradient_of_the_definition():
    stack, *_ = simulated(3, 12, 2, observed=0.7)
    problem = penalised_jointly(problem_of_set(SimilaritySet(stack)), 2, 0.1, 0.3, 0.2)
    rng = np.random.default_rng(0)
    W, a = rng.uniform(size=(12, 2)), rng.uniform(0.5, 1.5, size=(3, 2))
    a /= a.mean(axis=0)
    in_W = optimize.approx_fprime(W.ravel(), lambda x: definition(stack, x.reshape(12, 2), a, problem), 1e-7)
    in_a = optimize.approx_fprime(a.ravel(), lambda x: definition(stack, W, x.reshape(3, 2), problem), 1e-7)
    in_a = in_a.reshape(3, 2) - in_a.reshape(3, 2).mean(axis=0)
    known = np.nan_to_num(stack)
    pull = sum(S @ W * a_m for S, a_m in zip(known, a, strict=True))
    y = np.array([[W[:, k] @ S @ W[:, k] for k in range(2)] for S in known])
    expected = max(np.linalg.norm(in_W) / (2 * np.linalg.norm(pull)), np.linalg.norm(in_a) / np.linalg.norm(y))
    assert evaluate_jointly(problem, W, a).kkt_residual == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("diagonal", [True, False])
def test_no_other_method_finds_a_lower_minimum(diagonal):
    stack, *_ = simulated(3, 10, 2, observed=0.8, diagonal=diagonal)
    problem = penalised_jointly(problem_of_set(SimilaritySet(stack)), 2, 0.05, 0.2, 0.1)
    rng = np.random.default_rng(0)
    ours, others = [], []
    for _ in range(4):
        W0 = rng.uniform(size=(10, 2))
        solution = solve_jointly(problem, W0, max_iter=5000, tol=1e-12)
        ours.append(solution.objective)

        def objective(x):
            return definition(stack, x[:20].reshape(10, 2), x[20:].reshape(3, 2), problem)

        constraints = [{"type": "eq", "fun": lambda x, k=k: x[20 + k :: 2].sum() - 3} for k in range(2)]
        for start in (
            np.concatenate([W0.ravel(), np.ones(6)]),
            np.concatenate([solution.W.ravel(), solution.weights.ravel()]),
        ):
            found = optimize.minimize(
                objective, start, method="SLSQP", bounds=[(0, None)] * 26, constraints=constraints,
                options={"maxiter": 2000, "ftol": 1e-13},
            )  # fmt: skip
            others.append(found.fun)
            if start[0] == solution.W[0, 0]:
                assert found.fun >= solution.objective * (1 - 1e-7)
    assert min(ours) <= min(others) * (1 + 1e-6)


def test_shares_of_a_sum_are_the_minimum():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(2, 9))
        curvature, pull, total = rng.uniform(0.01, 3, n), rng.normal(size=n), float(rng.uniform(0.5, 10))
        x = np.empty(n)
        share_out(curvature, pull, total, x)

        def excess(nu, c=curvature, p=pull, t=total):
            return np.sum(np.maximum(p - nu, 0) / c) - t

        nu = optimize.brentq(excess, pull.min() - total * curvature.max() - 1, pull.max())
        np.testing.assert_allclose(x, np.maximum(pull - nu, 0) / curvature, atol=1e-9)


def test_one_system_is_srf_from_the_same_start():
    stack, *_ = simulated(1, 40, 3, observed=0.6)
    for settings in ({"alpha": 0.0}, {"alpha": 0.1, "l1_ratio": 0.5}, {"alpha": "auto"}):
        joint = JointSRF(4, random_state=3, **settings).fit(stack)
        alone = SRF(4, random_state=3, **settings).fit(stack[0])
        np.testing.assert_array_equal(joint.embedding_, alone.embedding_)
        np.testing.assert_array_equal(joint.weights_, np.ones((1, 4)))
        assert (joint.objective_, joint.alpha_) == (alone.objective_, alone.alpha_)


@pytest.mark.parametrize("storage", STORAGES)
def test_the_sweeps_of_a_joint_fit_reach_the_minimum_of_srf_with_one_system(storage):
    """The same with the joint solver, which the estimator leaves out for one system."""
    stack, *_ = simulated(1, 40, 3, **STORAGES[storage])
    start = np.random.default_rng(0).uniform(size=(40, 3)) * 0.5
    problem = penalised_jointly(problem_of_set(SimilaritySet(stack)), 3, 0.1, 0.2)
    joint = solve_jointly(problem, start, max_iter=5000, tol=1e-10)
    alone = SRF(3, alpha=0.1, l1_ratio=0.2, init=start, max_iter=5000, tol=1e-10).fit(stack[0])
    assert joint.objective == pytest.approx(alone.objective_, rel=1e-7)
    assert align(joint.W, alone.embedding_).similarity.min() > 0.9999


def test_infinite_shrinkage_is_the_fit_to_the_average():
    stack, *_ = simulated(4, 30, 3, observed=0.7)
    systems = SimilaritySet(stack)
    joint = JointSRF(3, alpha=0.0, shrinkage=np.inf, random_state=0, tol=1e-10, max_iter=5000).fit(systems)
    np.testing.assert_allclose(joint.weights_, 1.0)
    average = SRF(3, init=joint.embedding_, tol=1e-10, max_iter=5000).fit(systems.mean())
    assert align(joint.embedding_, average.embedding_).similarity.min() > 0.99999
    strong = JointSRF(3, alpha=0.0, shrinkage=1e6, random_state=0, tol=1e-10, max_iter=5000).fit(systems)
    np.testing.assert_allclose(strong.weights_, 1.0, atol=1e-3)
    np.testing.assert_allclose(strong.embedding_, joint.embedding_, atol=1e-3)


def test_every_storage_gives_the_same_fit():
    """Complete, as lists, as zeros that are not stored, with some of the items, and in another order of them."""
    stack, *_ = simulated(4, 24, 3, observed=1.0, snr=0.9, diagonal=True)
    stack = np.where(stack < 0.15, 0.0, stack) + 0.2 * np.eye(24)  # a zero on the diagonal would not be stored
    labels = [f"item {i}" for i in range(24)]
    start = np.random.default_rng(0).uniform(size=(24, 3))
    settings = {"alpha": 0.1, "shrinkage": 0.1, "init": start, "tol": 1e-9, "max_iter": 3000}
    dense = JointSRF(3, **settings).fit(stack)
    as_zeros = [Similarity(sparse.csr_array(np.triu(S)), labels, absent="zero") for S in stack]
    with_weights = [Similarity(S, labels, np.full(S.shape, 5.0)) for S in stack]
    mixed = [Similarity(stack[0], labels), *as_zeros[1:3], Similarity(stack[3], labels, np.ones((24, 24)))]
    order = np.random.default_rng(1).permutation(24)
    reordered = [Similarity(stack[0], labels)]
    reordered += [Similarity(S[np.ix_(order, order)], [labels[i] for i in order]) for S in stack[1:]]
    listed = [Similarity(sparse.csr_array(np.triu(S + 1.0)), labels, absent="missing") for S in stack]
    listed = [Similarity(_less(one.values, 1.0), labels, absent="missing") for one in listed]
    for systems in (as_zeros, with_weights, mixed, reordered, listed):
        other = JointSRF(3, **settings).fit(systems)
        np.testing.assert_allclose(other.embedding_, dense.embedding_, atol=2e-4)
        np.testing.assert_allclose(other.weights_, dense.weights_, atol=2e-3)


def _less(matrix, constant):
    other = matrix.copy()
    other.data = other.data - constant
    return other


def test_items_that_a_system_lacks_are_missing_there():
    stack, *_ = simulated(4, 20, 3, observed=0.8)
    labels = [f"item {i}" for i in range(20)]
    stack[1, :5] = stack[1, :, :5] = np.nan
    few = Similarity(stack[1][5:, 5:], labels[5:])
    parts = [few if m == 1 else Similarity(S, labels) for m, S in enumerate(stack)]
    settings = {"alpha": 0.1, "shrinkage": 0.1, "random_state": 0}
    np.testing.assert_allclose(
        JointSRF(3, **settings).fit(parts).weights_, JointSRF(3, **settings).fit(stack).weights_, atol=1e-8
    )


def test_weights_say_how_much_a_pair_counts():
    stack, *_ = simulated(3, 20, 2, observed=1.0, diagonal=True)
    rng = np.random.default_rng(0)
    omega = rng.uniform(0.1, 4.0, size=stack.shape)
    omega = omega + omega.transpose(0, 2, 1)
    systems = [Similarity(S, weights=w) for S, w in zip(stack, omega, strict=True)]
    joint = JointSRF(2, alpha=0.0, shrinkage=0.0, random_state=0, tol=1e-8).fit(systems)
    problem = penalised_jointly(problem_of_set(SimilaritySet(systems)), 2, 0.0)
    expected = definition(stack, joint.embedding_, joint.weights_, problem, omega)
    assert joint.objective_ == pytest.approx(expected, rel=1e-9)
    assert joint.kkt_residual_ < 1e-3


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_the_scale_of_similarities_does_not_matter(factor):
    stack, *_ = simulated(4, 30, 3, observed=0.5)
    one = JointSRF(3, random_state=0).fit(stack)
    other = JointSRF(3, random_state=0).fit(stack * factor)
    assert (other.alpha_, other.shrinkage_) == (one.alpha_, one.shrinkage_)
    np.testing.assert_allclose(
        other.embedding_, one.embedding_ * np.sqrt(factor), rtol=1e-3, atol=1e-4 * np.sqrt(factor)
    )
    np.testing.assert_allclose(other.weights_, one.weights_, atol=1e-3)


def test_dimensions_and_weights_are_recovered():
    stack, W, a = simulated(seed=1)
    joint = JointSRF(6, random_state=0).fit(stack)
    alignment, correlation = recovered(joint, W, a)
    assert alignment > 0.95
    assert correlation > 0.9


def with_an_absent_dimension(seed, observed):
    """Systems of which half lack the third dimension, the dimensions, and the weights."""
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(60, 6, alpha=0.3, random_state=seed)
    a = rng.uniform(0, 2, size=(20, 6))
    a[:10, 2] = 0.0
    a /= a.mean(axis=0)
    seeds = [100 * seed + m for m in range(20)]
    stack = [simulate.add_noise((W * a_m) @ W.T, 0.5, random_state=one) for a_m, one in zip(a, seeds, strict=True)]
    stack = [
        simulate.mask_pairs(S, observed, random_state=one, keep_diagonal=False)
        for S, one in zip(stack, seeds, strict=True)
    ]
    return np.stack(stack), W, a


@pytest.mark.slow
def test_dimensions_and_weights_are_recovered_from_eight_seeds():
    """20 systems, 60 items, 6 dimensions, 15% of the pairs each, SNR 0.5; best of 10 starts by objective."""
    found = []
    for seed in range(8):
        stack, W, a = simulated(seed=seed)
        first = JointSRF(6, random_state=0).fit(stack)
        settings = {"alpha": first.alpha_, "shrinkage": first.shrinkage_}
        fits = [JointSRF(6, random_state=start, **settings).fit(stack) for start in range(10)]
        found.append(recovered(min(fits, key=lambda fit: fit.objective_), W, a))
    alignment, correlation = np.mean(found, axis=0)
    assert alignment >= 0.95
    assert correlation >= 0.9


def test_a_dimension_that_half_of_the_systems_lack_has_small_weights_there():
    stack, W, _ = with_an_absent_dimension(0, 0.3)
    joint = JointSRF(6, random_state=0).fit(stack)
    place = align(joint.embedding_, W).permutation[2]
    assert np.median(joint.weights_[:10, place]) < 0.15
    assert np.median(joint.weights_[10:, place]) > 1.0


@pytest.mark.slow
def test_a_dimension_that_half_of_the_systems_lack_has_small_weights_there_from_eight_seeds():
    """15% of the pairs each, as in the test of recovery."""
    medians = []
    for seed in range(8):
        stack, W, _ = with_an_absent_dimension(seed, 0.15)
        joint = JointSRF(6, random_state=0).fit(stack)
        medians.append(np.median(joint.weights_[:10, align(joint.embedding_, W).permutation[2]]))
    assert np.mean(medians) < 0.1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_systems_that_do_not_differ_get_the_same_weights(seed):
    stack, *_ = simulated(8, 40, 4, observed=0.4, alike=True, seed=seed)
    held = np.random.default_rng(0).uniform(size=stack.shape) < 0.1
    held = np.triu(held, 1) | np.triu(held, 1).transpose(0, 2, 1)
    training = np.where(held, np.nan, stack)
    auto = JointSRF(4, random_state=0).fit(training)
    shared = JointSRF(4, random_state=0, alpha=auto.alpha_, shrinkage=np.inf).fit(training)

    def error(joint):
        predicted = np.stack([joint.reconstruct(m) for m in range(8)])
        return np.nanmean((predicted - stack)[held] ** 2)

    assert error(auto) <= 1.01 * error(shared)


def test_a_given_value_holds_beside_auto():
    stack, *_ = simulated(4, 30, 3, observed=0.5)
    assert JointSRF(3, alpha=0.07, random_state=0).fit(stack).alpha_ == 0.07
    assert JointSRF(3, shrinkage=0.7, random_state=0).fit(stack).shrinkage_ == 0.7


def test_pairs_that_are_held_out_do_not_reach_the_fit_that_chooses():
    """Values of pairs held out may change what is chosen, but not the fits along the way."""
    from simdims.solvers.joint_path import hold_out_jointly

    stack, *_ = simulated(4, 30, 3, observed=0.4)
    problem = problem_of_set(SimilaritySet(stack))
    training, held = hold_out_jointly(problem, np.random.RandomState(0))
    assert 0.05 < len(held.rows) / (problem.n_known / 2) < 0.15
    values = problem.listed.values.copy()
    values[training.listed.weights == 0] = 1e6
    poisoned = training.__class__(**{**vars(training), "listed": training.listed._replace(values=values)})
    start = np.random.default_rng(0).uniform(size=(30, 3))
    one, other = (solve_jointly(given, start, max_iter=20, tol=1e-3) for given in (training, poisoned))
    np.testing.assert_array_equal(one.W, other.W)
    for m, i, j, value in zip(held.systems, held.rows, held.columns, held.values, strict=True):
        assert stack[m, i, j] == value
    assert training.n_known == problem.n_known - 2 * len(held.rows)


@pytest.mark.parametrize("kind", ["dense", "zeros"])
def test_the_choice_looks_at_the_same_pairs_whatever_their_storage(kind):
    stack, *_ = simulated(4, 24, 3, observed=1.0, snr=0.9, diagonal=True)
    stack = np.where(stack < 0.15, 0.0, stack) + 0.2 * np.eye(24)  # a zero on the diagonal would not be stored
    if kind == "dense":
        systems = [Similarity(S, weights=np.ones_like(S) * np.array([1.0])) for S in stack]
    else:
        systems = [Similarity(sparse.csr_array(np.triu(S)), absent="zero") for S in stack]
    one, other = JointSRF(3, random_state=0).fit(stack), JointSRF(3, random_state=0).fit(systems)
    assert (one.alpha_, one.shrinkage_) == (other.alpha_, other.shrinkage_)


def test_many_pairs_are_chosen_by_some_of_the_items(monkeypatch):
    from simdims.solvers import joint_path

    stack, *_ = simulated(4, 60, 3, observed=1.0, snr=0.9)
    monkeypatch.setattr(joint_path, "_MOST_WORK", 2000 * 9)
    problem = problem_of_set(SimilaritySet(stack))
    some, W = joint_path._some_items(problem, np.ones((60, 3)), np.random.RandomState(0))
    assert 20 < some.n_items < 40
    assert len(W) == some.n_items
    assert some.n_known == 4 * some.n_items * (some.n_items - 1)
    assert JointSRF(3, random_state=0).fit(stack).alpha_ > 0


def test_weights_of_a_new_system():
    stack, W, _ = simulated(12, 40, 4, observed=1.0, snr=1.0)
    joint = JointSRF(4, alpha=0.0, shrinkage=0.0, random_state=0, tol=1e-9, max_iter=2000).fit(stack)
    np.testing.assert_allclose(joint.weights_for(SimilaritySet(stack)), joint.weights_, atol=0.02)
    new = np.array([2.0, 0.0, 1.0, 0.5])
    found = joint.weights_for((W * new) @ W.T)
    np.testing.assert_allclose(found[list(align(joint.embedding_, W).permutation)], new, atol=0.02)


def test_a_new_system_on_another_scale_is_warned_of():
    stack, *_ = simulated(4, 20, 2, observed=1.0)
    joint = JointSRF(2, random_state=0).fit(stack)
    with pytest.warns(UserWarning, match=r"different scales: the largest similarity of the fitted ones .* in 'new'"):
        joint.weights_for(100 * stack[0])
    with pytest.warns(UserWarning, match="'a'.*'b'"):
        joint.weights_for(SimilaritySet({"a": 100 * stack[0], "b": 100 * stack[1]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint.weights_for(stack[0])


@pytest.mark.parametrize(("l1_ratio", "n_systems"), [(0.0, 4), (1.0, 4), (0.0, 1)])
def test_a_penalty_that_leaves_nothing_is_warned_of(l1_ratio, n_systems):
    stack, *_ = simulated(n_systems, 20, 2, observed=1.0)
    with pytest.warns(UserWarning, match="All loadings are zero: the penalty, alpha = 50, is stronger"):
        joint = JointSRF(2, alpha=50.0, shrinkage=0.1, l1_ratio=l1_ratio, random_state=0).fit(stack)
    assert not joint.embedding_.any()
    np.testing.assert_allclose(joint.weights_, 1.0)
    assert joint.kkt_residual_ == 0
    assert joint.objective_ == joint.data_objective_ == pytest.approx(0.5 * np.nansum(stack**2))


def test_weights_of_a_new_system_minimise_its_own_objective():
    stack, *_ = simulated(6, 20, 3, observed=0.6)
    joint = JointSRF(3, alpha=0.05, shrinkage=0.3, random_state=0).fit(stack[:5])
    mu = penalised_jointly(problem_of_set(SimilaritySet(stack[:5])), 3, 0.05, 0.0, 0.3).mu
    W, S = joint.embedding_, stack[5]

    def objective(a):
        return 0.5 * np.nansum((S - (W * a) @ W.T) ** 2) + 0.5 * mu * np.sum((a - 1) ** 2)

    expected = optimize.minimize(objective, np.ones(3), bounds=[(0, None)] * 3, options={"ftol": 1e-15, "gtol": 1e-10})
    np.testing.assert_allclose(joint.weights_for(S), expected.x, atol=1e-4)


def test_weights_of_a_new_system_with_some_of_the_items():
    stack, *_ = simulated(5, 20, 3, observed=0.9)
    labels = [f"item {i}" for i in range(20)]
    joint = JointSRF(3, random_state=0).fit([Similarity(S, labels) for S in stack])
    order = np.random.default_rng(0).permutation(20)[:15]
    few = Similarity(stack[0][np.ix_(order, order)], [labels[i] for i in order])
    rest = np.setdiff1d(np.arange(20), order)
    gaps = stack[0].copy()
    gaps[rest] = gaps[:, rest] = np.nan
    np.testing.assert_allclose(
        joint.weights_for(few), joint.weights_for(pd.DataFrame(gaps, labels, labels)), atol=1e-10
    )
    with pytest.raises(ParameterError, match="'other'"):
        joint.weights_for(Similarity(stack[0][:2, :2], ["item 0", "other"]))


def test_items_of_a_new_system_may_have_no_pair():
    W = simulate.dirichlet(20, 2, alpha=0.3, random_state=0)
    joint = JointSRF(2, random_state=0).fit(np.stack([(W * a) @ W.T for a in ([1.5, 0.5], [0.5, 1.5])]))
    S = (W * [0.4, 1.2]) @ W.T
    some = S.copy()
    some[:5] = some[:, :5] = np.nan
    lacking = joint.weights_for(some)
    np.fill_diagonal(some, np.nan)
    some[np.arange(5), np.arange(5)] = S.diagonal()[:5]  # known on the diagonal only
    np.testing.assert_allclose(joint.weights_for(some), lacking, atol=0.05)
    np.testing.assert_allclose(lacking, joint.weights_for(S), atol=0.05)


def test_systems_that_do_not_exist_are_named():
    joint = JointSRF(1, alpha=0.1, shrinkage=0.1, random_state=0).fit(simulated(2, 10, 2, observed=1.0)[0])
    np.testing.assert_array_equal(joint.reconstruct(-1), joint.reconstruct("system2"))
    with pytest.raises(IndexError, match="system 2 does not exist: there are 2"):
        joint.reconstruct(2)
    with pytest.raises(ParameterError, match=r"system must be the place or the name of a system, got 0\.5"):
        joint.reconstruct(0.5)


def test_the_score_of_each_system_is_its_share_of_variance():
    stack, *_ = simulated(4, 30, 3, observed=0.6)
    joint = JointSRF(3, random_state=0).fit(stack)
    for m, score in enumerate(joint.score(stack)):
        pairs = np.triu(~np.isnan(stack[m]), 1)
        error, values = (joint.reconstruct(m) - stack[m])[pairs], stack[m][pairs]
        assert score == pytest.approx(1 - np.sum(error**2) / np.sum((values - values.mean()) ** 2))
    some = SimilaritySet(stack)[["system3", "system2"]]
    np.testing.assert_allclose(joint.score(some), joint.score(stack)[[2, 1]])
    with pytest.raises(ParameterError, match="'x'"):
        joint.score(SimilaritySet(stack[:1], names=["x"]))


def test_systems_that_do_not_vary_have_no_score():
    stack, *_ = simulated(4, 20, 2, observed=1.0)
    stack[1] = 0.5
    stack[2] = np.nan
    stack[2, 0, 1] = stack[2, 1, 0] = 0.5
    scores = JointSRF(2, alpha=0.05, shrinkage=0.1, random_state=0).fit(stack).score(stack)
    np.testing.assert_array_equal(np.isnan(scores), [False, True, True, False])


def test_zeros_alone_have_no_dimension():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint = JointSRF(2, random_state=0).fit(np.zeros((3, 8, 8)))
    assert not joint.embedding_.any()
    assert joint.shrinkage_ == np.inf


@pytest.mark.parametrize("shrinkage", [0.0, 0.03, np.inf])
def test_a_start_for_a_weak_penalty_reaches_the_same_minimum_from_everywhere(shrinkage):
    """Under free weights, random starts of few noisy pairs end in many minima."""
    stack, *_ = simulated(20, 60, 6, 0.15, 0.5, seed=5)
    problem = penalised_jointly(problem_of_set(SimilaritySet(stack)), 6, 0.02, 0.0, shrinkage)
    starts = [joint_start(problem, 6, np.random.RandomState(seed)) for seed in range(4)]
    found = [
        solve_jointly(problem, solvers.approach_jointly(problem, W, 0.02), max_iter=1000, tol=1e-6).objective
        for W in starts
    ]
    assert max(found) <= (1 + 1e-3) * min(found)
    random = [solve_jointly(problem, W, max_iter=1000, tol=1e-6).objective for W in starts]
    assert min(found) <= (1 + 1e-4) * min(random)


def test_dimensions_that_vanish_under_a_strong_penalty_come_back():
    """A start must not lose a dimension on the way: the third of these vanishes at first."""
    stack, *_ = simulated(16, 16, 3, 0.4, 0.9, seed=0)
    problem = penalised_jointly(problem_of_set(SimilaritySet(stack)), 3, 0.02, 0.0, 0.003)
    for seed in range(5):
        start = solvers.approach_jointly(problem, joint_start(problem, 3, np.random.RandomState(seed)), 0.02)
        assert np.all(np.square(start).sum(axis=0) > 0)


def test_frames_have_names():
    stack, *_ = simulated(3, 20, 2, observed=1.0)
    labels = [f"item {i}" for i in range(20)]
    systems = SimilaritySet({name: Similarity(S, labels) for name, S in zip("abc", stack, strict=True)})
    joint = JointSRF(2, random_state=0).fit(systems)
    assert joint.weights_frame().index.tolist() == ["a", "b", "c"]
    assert joint.embedding_frame().index.tolist() == labels
    assert joint.embedding_frame().columns.tolist() == joint.weights_frame().columns.tolist()


def test_too_few_pairs_are_told():
    stack, *_ = simulated(3, 12, 2, observed=1.0)
    few = np.full_like(stack[0], np.nan)
    few[0, 1] = few[1, 0] = 0.5
    with pytest.warns(UserWarning, match=r"Fewer observed pairs than the 2 dimensions in 1 system: c \(1\)"):
        JointSRF(2, alpha=0.0, shrinkage=0.0).fit({"a": stack[0], "b": stack[1], "c": few})
    with pytest.warns(UserWarning, match="underdetermined"):
        JointSRF(12, alpha=0.1, shrinkage=0.1).fit({"a": few * 0 + 0.5, "b": stack[1]})


def test_loadings_that_the_pairs_of_all_systems_do_not_determine_are_told_as_in_srf():
    stack, *_ = simulated(3, 30, 4, observed=0.1)
    with pytest.warns(UserWarning, match="180 loadings from") as caught:
        joint = JointSRF(6, alpha=0.0, shrinkage=np.inf, random_state=0).fit(stack)
    said = " ".join(str(one.message) for one in caught)
    counts = np.sum(~np.isnan(stack), axis=(0, 1))
    short = np.flatnonzero(counts < 6)
    assert f"180 loadings from {counts.sum() // 2} observed" in said
    assert f"{short.size} items have fewer observed similarities than the 6 dimensions: {short[0]} " in said
    excess = np.square(joint.embedding_).sum(axis=1) / np.nanmax(stack)
    assert f"For {np.sum(excess > 3)} items without an observed self-similarity" in said
    assert f"{excess.argmax()} ({excess.max():.0f} times)" in said
    assert "(alpha='auto')" in said


@pytest.mark.parametrize("form", [np.asarray, lambda S: Similarity(sparse.csr_array(np.nan_to_num(S)), absent="zero")])
def test_loadings_of_joint_fits_at_their_limit_are_found(form):
    stack, *_ = simulated(2, 12, 2, observed=0.9)
    stack[1, 3, 3] = 0.5
    problem = penalised_jointly(problem_of_set(SimilaritySet([form(S) for S in stack])), 2, 0.0)
    W = np.full((12, 2), 0.1)
    W[[3, 5], 1] = limit = 10 * np.sqrt(np.nanmax(stack))
    found = solvers.determinacy_jointly(problem, W, 0)
    assert (found.capped.tolist(), found.limit) == ([5], pytest.approx(limit))
    assert found.excessive.tolist() == [5]
    known = ~np.isnan(stack) if form is np.asarray else np.broadcast_to(~np.eye(12, dtype=bool), stack.shape)
    assert found.n_values == np.triu(known, 1).sum() + 1


def test_a_consensus_warns_of_what_its_fits_warn_of():
    people = SimilaritySet(simulated(3, 20, 2, observed=0.1)[0])
    with pytest.warns(UserWarning, match="160 loadings from .* items have fewer observed similarities"):
        fit_consensus(people, 8, n_runs=2, random_state=0, estimator=JointSRF(alpha=0.0, shrinkage=np.inf))
    with pytest.warns(UserWarning, match="All loadings are zero"):
        fit_consensus(people, 2, n_runs=2, random_state=0, alpha=50.0)


def test_a_system_that_says_nothing_about_a_dimension_keeps_its_weight():
    """Free weights, and a system that knows only items without a loading on the other dimension."""
    W = np.zeros((8, 2))
    W[:4, 0], W[4:, 1] = 1.0, 1.0
    full = W @ W.T
    part = full[:4, :4]
    labels = list("abcdefgh")
    systems = [Similarity(full, labels), Similarity(0.5 * full, labels), Similarity(part, labels[:4])]
    joint = JointSRF(2, alpha=0.0, shrinkage=0.0, init=W + 0.01, tol=1e-12, max_iter=2000).fit(systems)
    assert joint.data_objective_ < 1e-6
    np.testing.assert_allclose(joint.weights_.mean(axis=0), 1.0)


def test_helms_red_green_deficient_people_fall_out_blind(data_path):
    """16 matrices of 10 colours: the five of the deficient people have the smallest weights on red-purple."""
    systems = helm(data_path("helm/helm_1959.csv"))
    best = min((JointSRF(4, random_state=seed).fit(systems) for seed in range(5)), key=lambda fit: fit.objective_)
    deficient = np.array([name.startswith("CD") for name in systems.names])
    items = best.embedding_frame()
    red_purple = int(np.argmax(items.loc["RPur"].to_numpy() * items.loc["Red"].to_numpy()))
    ranks = rankdata(-best.weights_[:, red_purple])
    n, others = deficient.sum(), (~deficient).sum()
    auc = (ranks[deficient].sum() - n * (n + 1) / 2) / (n * others)
    assert auc >= 0.95


def test_helms_held_out_pairs_are_predicted_better_with_weights(data_path):
    systems = helm(data_path("helm/helm_1959.csv"))
    stack = np.stack([one.values for one in systems])
    fold = np.random.default_rng(0).integers(5, size=(16, 45))
    pairs = np.triu_indices(10, 1)
    errors, values = {"shared": [], "weighted": []}, []
    for number in range(5):
        training = stack.copy()
        for m in range(16):
            rows, columns = (side[fold[m] == number] for side in pairs)
            training[m, rows, columns] = training[m, columns, rows] = np.nan
            values += list(stack[m, rows, columns])
        for name, shrinkage in (("shared", np.inf), ("weighted", "auto")):
            joint = JointSRF(4, shrinkage=shrinkage, random_state=0).fit(training)
            for m in range(16):
                rows, columns = (side[fold[m] == number] for side in pairs)
                errors[name] += list((joint.reconstruct(m) - stack[m])[rows, columns] ** 2)
    r2 = {name: 1 - np.mean(error) / np.var(values) for name, error in errors.items()}
    assert r2["weighted"] >= r2["shared"] + 0.05
    assert r2["weighted"] > 0.8


def helm(path):
    table = pd.read_csv(path)
    labels = list(dict.fromkeys([*table["item1"], *table["item2"]]))
    systems = {}
    for name, rows in table.groupby("subject", sort=False):
        square = pd.DataFrame(np.nan, labels, labels)
        for one, two, distance in zip(rows["item1"], rows["item2"], rows["dissimilarity"], strict=True):
            square.loc[one, two] = square.loc[two, one] = distance
        systems[name] = 1 - square / rows["dissimilarity"].max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return SimilaritySet(systems)


def of_kinds(n_items=24):
    """A set with a complete system, one with few missing pairs, one with few known ones, and one with zeros."""
    stack, *_ = simulated(4, n_items, 3, observed=1.0, diagonal=True)
    few = simulate.mask_pairs(stack[1], 0.8, random_state=1)
    listed = simulate.mask_pairs(stack[2], 0.3, random_state=2, keep_diagonal=False)
    links = np.where(stack[3] > np.quantile(stack[3], 0.8), stack[3], 0.0)
    zeros = Similarity(sparse.csr_array(links), absent="zero")
    return SimilaritySet([stack[0], few, listed, zeros])


def test_a_problem_without_some_pairs_is_that_of_similarities_without_them():
    systems = of_kinds()
    problem = problem_of_set(systems)
    rng = np.random.default_rng(0)
    parts, held, weights = [], [], []
    for m, one in enumerate(systems):
        values = one.values.toarray() if sparse.issparse(one.values) else one.values.copy()
        i, j = np.nonzero(np.triu(~np.isnan(values), 1))
        out = rng.permutation(len(i))[: len(i) // 4]
        values[i[out], j[out]] = values[j[out], i[out]] = np.nan
        held.append((np.full(len(out), m), i[out], j[out]))
        omega = (~np.isnan(values)).astype(float)
        if sparse.issparse(one.values):  # its diagonal is not stored where it is zero, and then it is missing
            np.fill_diagonal(omega, one.values.diagonal() > 0)
            values[np.diag_indices(len(values))] = np.where(np.diagonal(omega) > 0, np.diagonal(values), np.nan)
        parts.append(values)
        weights.append(omega)
    left = without_pairs(problem, *(np.concatenate(column) for column in zip(*held, strict=True)))
    plain = problem_of_set(SimilaritySet(parts))
    for name in ("squares", "largest", "n_known"):
        assert getattr(left, name) == pytest.approx(getattr(plain, name), rel=1e-12)
    np.testing.assert_allclose(left.noise, plain.noise, rtol=1e-10)
    W, a = rng.uniform(size=(24, 3)), rng.uniform(0.5, 1.5, size=(4, 3))
    given = penalised_jointly(left, 3, 0.1, 0.2, 0.3)
    found = evaluate_jointly(given, W, a)
    assert found.objective == pytest.approx(definition(parts, W, a, given, weights), rel=1e-12)
    start = joint_start(plain, 3, np.random.RandomState(0))
    one, other = (
        solve_jointly(penalised_jointly(each, 3, 0.1, 0.0, 0.3), start, max_iter=200, tol=1e-9)
        for each in (left, plain)
    )
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-8)
    np.testing.assert_allclose(one.W, other.W, atol=1e-4)


@pytest.mark.parametrize("m", range(4))
def test_the_problem_of_one_system_is_that_of_a_set_with_it_alone(m):
    systems = of_kinds()
    one, plain = one_system(problem_of_set(systems), m), problem_of_set(systems[[m]])
    np.testing.assert_allclose([*one.noise, one.squares], [*plain.noise, plain.squares], rtol=1e-12)
    W, a = np.random.default_rng(0).uniform(size=(24, 3)), np.ones((1, 3))
    assert evaluate_jointly(one, W, a) == pytest.approx(evaluate_jointly(plain, W, a), rel=1e-12)


def test_the_noise_of_a_set_is_that_of_its_systems():
    problem = problem_of_set(of_kinds())
    edges = [solvers.noise_scale(problem_of(arrays_of(one)))[0] for one in of_kinds()]
    assert problem.noise[0] == pytest.approx(np.sqrt(np.sum(np.square(edges))), rel=1e-12)
