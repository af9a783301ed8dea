"""The penalty on the loadings: its definition, every storage and solver, and the choice of its strength."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, minimize

from simdims import (
    SRF,
    Discovery,
    ParameterError,
    Similarity,
    discover,
    fit_consensus,
    from_dissimilarity,
    from_ratings,
    from_triplets,
    load_similarity,
    select_rank,
    simulate,
    solvers,
)
from simdims.cli import main
from simdims.similarity.arrays import arrays_of, problem_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RATIOS = [0.0, 0.5, 1.0]
N, RANK, ALPHA = 40, 3, 0.2


def example(seed=0, n=N, rank=RANK, snr=0.7):
    W = simulate.dirichlet(n, rank, alpha=0.3, random_state=seed)
    return simulate.add_noise(W @ W.T, snr, random_state=seed + 1000)


def masked(S, share=0.5, *, diagonal=True, seed=3):
    gone = np.triu(np.random.RandomState(seed).uniform(size=S.shape) > share, 1)
    S = np.where(gone | gone.T, np.nan, S)
    if not diagonal:
        np.fill_diagonal(S, np.nan)
    return S


def counts(n=N, seed=5):
    weights = np.triu(np.random.RandomState(seed).randint(1, 6, size=(n, n)), 1).astype(float)
    return weights + weights.T + np.eye(n)


def stored(S, share=0.3):
    """The largest entries of S as a sparse matrix, with its diagonal."""
    keep = (np.quantile(S, 1 - share) < S) | np.eye(len(S), dtype=bool)
    return sparse.csr_array(np.where(keep, S, 0.0))


FACTORS = np.abs(np.random.RandomState(9).normal(size=(N, 5)))
PROBLEMS = {
    "complete": lambda: Similarity(example()),
    "no diagonal": lambda: Similarity(masked(example(), 1.1, diagonal=False)),
    "half": lambda: Similarity(masked(example())),
    "half, no diagonal": lambda: Similarity(masked(example(), diagonal=False)),
    "few": lambda: Similarity(masked(example(), 0.15)),
    "counts": lambda: Similarity(masked(example()), weights=counts()),
    "listed": lambda: Similarity(stored(example()), absent="missing"),
    "zeros of a weight": lambda: Similarity(stored(example()), absent=0.1),
    "zeros": lambda: Similarity(stored(example()), absent="zero"),
    "factors": lambda: Similarity.from_factors(FACTORS),
}


def dense(similarity):
    """S and Omega by definition: NaN and 0 where nothing is known."""
    if similarity.factors is not None:
        F = similarity.factors
        return F @ F.T, np.ones((len(F), len(F)))
    if not sparse.issparse(similarity.values):
        S = np.array(similarity.values, dtype=float)
        weights = np.ones_like(S) if similarity.weights is None else np.array(similarity.weights, dtype=float)
        return S, np.where(np.isnan(S), 0.0, weights)
    S = similarity.values.toarray().astype(float)
    known = (similarity.values != 0).toarray()
    absent = similarity.absent_weight
    return S, np.where(known, 1.0, absent)


def penalty_of(S, omega, alpha):
    """lambda and s by definition, over pairs of different items."""
    off = omega * ~np.eye(len(S), dtype=bool)
    values = np.where(off > 0, S, 0.0)
    mean = np.sum(off * values) / off.sum()
    spread = np.sum(off**2 * (values - mean) ** 2, axis=1)
    deviation = np.sqrt(np.sum(off * (values - mean) ** 2) / off.sum())
    return 2 * alpha * 2 * np.sqrt(spread.mean()), np.sqrt(deviation)


def slow_objective(W, S, omega, alpha, l1_ratio):
    strength, s = penalty_of(S, omega, alpha)
    residual = np.where(omega > 0, S - W @ W.T, 0.0)
    data = 0.5 * np.sum(omega * residual**2)
    return data, data + strength * ((1 - l1_ratio) / 2 * np.sum(W**2) + l1_ratio * s * np.sum(W))


def slow_gradient(W, S, omega, alpha, l1_ratio):
    strength, s = penalty_of(S, omega, alpha)
    residual = np.where(omega > 0, S - W @ W.T, 0.0)
    return -2 * (omega * residual) @ W + strength * ((1 - l1_ratio) * W + l1_ratio * s)


def alignment(truth, W):
    correlations = np.nan_to_num(np.corrcoef(truth.T, W.T)[: truth.shape[1], truth.shape[1] :])
    rows, columns = linear_sum_assignment(-correlations)
    return correlations[rows, columns].mean()


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_objective_is_the_penalised_one_and_never_rises(name, l1_ratio):
    similarity = PROBLEMS[name]()
    S, omega = dense(similarity)
    srf = SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, random_state=0, tol=1e-9, max_iter=3000).fit(similarity)
    data, whole = slow_objective(srf.embedding_, S, omega, ALPHA, l1_ratio)
    assert srf.objective_ == pytest.approx(whole, rel=1e-9)
    assert srf.data_objective_ == pytest.approx(data, rel=1e-9, abs=1e-9 * whole)
    size = slow_objective(np.zeros((N, 1)), S, omega, ALPHA, l1_ratio)[0]
    assert np.diff(srf.history_).max() <= 1e-13 * size
    assert srf.kkt_residual_ < 1e-3
    # The KKT residual by definition: the projected gradient over its data part.
    slope = slow_gradient(srf.embedding_, S, omega, ALPHA, l1_ratio)
    slope = np.where(srf.embedding_ > 0, slope, np.minimum(slope, 0))
    pull = 2 * np.linalg.norm((omega * np.where(omega > 0, S, 0)) @ srf.embedding_)
    assert srf.kkt_residual_ == pytest.approx(np.linalg.norm(slope) / pull, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("name", ["complete", "half", "half, no diagonal", "zeros of a weight"])
def test_every_value_of_the_history_is_the_objective_after_so_many_sweeps(name):
    similarity = PROBLEMS[name]()
    S, omega = dense(similarity)
    start = np.random.RandomState(1).uniform(size=(N, RANK)) * 0.3
    settings = {"alpha": ALPHA, "l1_ratio": 0.3, "init": start, "tol": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = SRF(RANK, max_iter=60, **settings).fit(similarity).history_
        for n_sweeps in (1, 2, 5, 20, 60):
            W = SRF(RANK, max_iter=n_sweeps, **settings).fit(similarity).embedding_
            assert history[n_sweeps] == pytest.approx(slow_objective(W, S, omega, ALPHA, 0.3)[1], rel=1e-7)


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_fit_ends_no_higher_than_a_projected_gradient_and_lbfgs_from_where_it_ends(name, l1_ratio):
    """Obvious minimisers cannot lower what the solver found."""
    similarity = PROBLEMS[name]()
    S, omega = dense(similarity)
    srf = SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, random_state=0, tol=1e-10, max_iter=5000).fit(similarity)
    given = (S, omega, ALPHA, l1_ratio)
    W, step = srf.embedding_.copy(), 1e-2
    value = slow_objective(W, *given)[1]
    for _ in range(200):
        moved = np.maximum(W - step * slow_gradient(W, *given), 0)
        found = slow_objective(moved, *given)[1]
        W, value, step = (moved, found, 1.1 * step) if found <= value else (W, value, 0.5 * step)
    assert srf.objective_ <= value * (1 + 1e-6)
    other = minimize(
        lambda x: slow_objective(x.reshape(N, RANK), *given)[1],
        srf.embedding_.ravel(),
        jac=lambda x: slow_gradient(x.reshape(N, RANK), *given).ravel(),
        bounds=[(0, None)] * (N * RANK),
        method="L-BFGS-B",
    )
    assert srf.objective_ <= other.fun * (1 + 1e-6)


@pytest.mark.parametrize("l1_ratio", RATIOS)
def test_the_best_of_some_starts_is_as_low_as_that_of_lbfgs(l1_ratio):
    S = masked(example(n=25), 0.6, diagonal=False)
    omega = (~np.isnan(S)).astype(float)
    given = (S, omega, ALPHA, l1_ratio)
    own = min(
        SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, random_state=seed, tol=1e-9, max_iter=3000).fit(S).objective_
        for seed in range(5)
    )
    others = [
        minimize(
            lambda x: slow_objective(x.reshape(25, RANK), *given)[1],
            np.random.RandomState(seed).uniform(size=25 * RANK) * 0.5,
            jac=lambda x: slow_gradient(x.reshape(25, RANK), *given).ravel(),
            bounds=[(0, None)] * (25 * RANK),
            method="L-BFGS-B",
        ).fun
        for seed in range(5)
    ]
    assert own <= min(others) * (1 + 1e-4)


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("name", ["complete", "no diagonal", "half", "half, no diagonal", "counts"])
def test_admm_reaches_the_same_minimum(name, l1_ratio):
    similarity = PROBLEMS[name]()
    start = SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, random_state=0, tol=1e-9, max_iter=3000).fit(similarity)
    admm = SRF(
        RANK,
        alpha=ALPHA,
        l1_ratio=l1_ratio,
        solver="admm",
        bounds=None,
        init=start.embedding_ * 1.1 + 0.01,
        tol=1e-8,
        max_iter=3000,
    ).fit(similarity)
    assert admm.objective_ == pytest.approx(start.objective_, rel=1e-4)


@pytest.mark.parametrize("l1_ratio", RATIOS)
def test_storages_of_the_same_data_have_the_same_minimum(l1_ratio):
    S = masked(example(), 0.4)
    known = ~np.isnan(S)
    rows, columns = np.nonzero(known)
    listed = Similarity(sparse.csr_array((S[rows, columns], (rows, columns)), shape=S.shape), absent="missing")
    alike = {
        "dense": Similarity(S),
        "lists": listed,
        "weights": Similarity(np.nan_to_num(S), weights=known.astype(float)),
        "float32": Similarity(S.astype(np.float32)),
    }
    start = np.random.RandomState(2).uniform(size=(N, RANK)) * 0.3
    found = {
        name: SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, init=start, tol=1e-8, max_iter=4000).fit(one).objective_
        for name, one in alike.items()
    }
    for name, value in found.items():
        assert value == pytest.approx(found["dense"], rel=1e-4), name
    F = Similarity.from_factors(FACTORS)
    one, other = (
        SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, init=start, tol=1e-9, max_iter=4000).fit(given).objective_
        for given in (F, FACTORS @ FACTORS.T)
    )
    assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("factor", [1e-3, 50.0])
def test_the_penalty_is_free_of_the_scale_of_similarities_and_weights(factor, l1_ratio):
    S, weights = masked(example(), diagonal=False), counts()
    settings = {"alpha": ALPHA, "l1_ratio": l1_ratio, "random_state": 0, "tol": 1e-8, "max_iter": 2000}
    W = SRF(RANK, **settings).fit(Similarity(S, weights=weights)).embedding_
    scaled = SRF(RANK, **settings).fit(Similarity(factor * S, weights=weights)).embedding_
    np.testing.assert_allclose(scaled, np.sqrt(factor) * W, rtol=1e-4, atol=1e-4 * np.sqrt(factor))
    weighted = SRF(RANK, **settings).fit(Similarity(S, weights=factor * weights)).embedding_
    np.testing.assert_allclose(weighted, W, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_scale_of_the_penalty_is_that_of_the_definition(name):
    similarity = PROBLEMS[name]()
    S, omega = dense(similarity)
    penalty = solvers.penalised(_problem(similarity), 1.0, 0.5).penalty
    strength, s = penalty_of(S, omega, 1.0)
    unit = omega.max()  # solvers divide the weights by their largest
    assert penalty.ridge == pytest.approx(0.5 * strength / 2 / unit, rel=1e-9)
    assert penalty.lasso == pytest.approx(0.5 * s * strength / 2 / unit, rel=1e-9)


def test_alpha_of_one_leaves_nothing_of_shuffled_similarities():
    """Their largest eigenvalue beyond the mean is the edge of the noise, which the penalty takes away."""
    rng = np.random.RandomState(0)
    noise = np.triu(rng.normal(size=(300, 300)), 1)
    noise = 1.0 + 0.1 * (noise + noise.T)
    np.fill_diagonal(noise, np.nan)
    edge, _ = solvers.noise_scale(solvers.as_problem(noise))
    filled = np.nan_to_num(noise - 1.0)
    assert np.linalg.eigvalsh(filled)[-1] == pytest.approx(edge, rel=0.05)


@pytest.mark.parametrize("l1_ratio", RATIOS)
def test_a_fitted_item_is_embedded_where_it_was_fitted(l1_ratio):
    S = masked(example(), diagonal=False)
    srf = SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, random_state=0, tol=1e-10, max_iter=5000).fit(S)
    np.testing.assert_allclose(srf.transform(S), srf.embedding_, atol=1e-4)


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_new_items_have_the_penalty_of_pairs_that_weigh_the_same(is_sparse, l1_ratio):
    """One pair with a large weight changes what other weights mean, not how unweighted rows are embedded."""
    S, weights = example() + 0.01, np.full((N, N), 0.1)
    weights[0, 1] = weights[1, 0] = 10.0
    kind = sparse.csr_array if is_sparse else np.array
    similarity = Similarity(kind(S), weights=kind(weights), absent="missing" if is_sparse else None)
    srf = SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, random_state=0).fit(similarity)
    strength, s = penalty_of(S, np.ones_like(S), ALPHA)
    W, new = srf.embedding_, srf.transform(S)
    slope = -2 * (S - new @ W.T) @ W + strength * ((1 - l1_ratio) * new + l1_ratio * s)
    np.testing.assert_allclose(np.where(new > 0, slope, np.minimum(slope, 0.0)), 0.0, atol=1e-6)


def test_an_l1_penalty_makes_loadings_sparse_and_ridge_makes_them_small():
    S = example(snr=0.5)
    plain, ridge, sparse_ = (
        SRF(RANK, alpha=alpha, l1_ratio=l1_ratio, random_state=0).fit(S).embedding_
        for alpha, l1_ratio in ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0))
    )
    assert np.mean(sparse_ == 0) > np.mean(plain == 0)
    assert np.sum(ridge**2) < np.sum(plain**2)


def test_no_loading_has_a_limit_under_a_penalty():
    """A hub and its spokes without a diagonal run into the limit; any penalty bounds them."""
    S = np.full((12, 12), 0.0)
    S[0, 1:] = S[1:, 0] = 1.0
    np.fill_diagonal(S, np.nan)
    with pytest.warns(UserWarning, match="limit"):
        SRF(1, random_state=0, tol=1e-12, max_iter=20_000).fit(S)
    srf = SRF(1, alpha=0.05, random_state=0, tol=1e-10, max_iter=20_000).fit(S)
    assert srf.embedding_.max() < 5
    assert srf.kkt_residual_ < 1e-4


# --- the choice of the penalty -----------------------------------------------------------------------------------


def sparse_noisy(seed, *, n=100, rank=5, snr=0.8, share=0.14):
    W = simulate.dirichlet(n, rank, alpha=0.3, random_state=seed)
    S = simulate.add_noise(W @ W.T, snr, random_state=seed + 1000)
    return W, masked(S, share, diagonal=False, seed=seed + 2000)


def test_the_chosen_penalty_recovers_dimensions_that_few_pairs_do_not_show_without_it():
    pairs = [sparse_noisy(seed) for seed in range(3)]
    plain = [alignment(W, SRF(5, random_state=7).fit(S).embedding_) for W, S in pairs]
    chosen = [alignment(W, SRF(5, alpha="auto", random_state=7).fit(S).embedding_) for W, S in pairs]
    assert np.mean(chosen) > 0.75
    assert np.mean(chosen) > np.mean(plain) + 0.2


@pytest.mark.parametrize(("concentration", "snr"), [(0.3, 0.9), (2.0, 0.7)])
def test_complete_data_with_little_noise_hardly_need_a_penalty(concentration, snr):
    lost = []
    for seed in range(4):
        W = simulate.dirichlet(100, 5, alpha=concentration, random_state=seed)
        S = simulate.add_noise(W @ W.T, snr, random_state=seed + 1000)
        plain = SRF(5, random_state=7).fit(S)
        chosen = SRF(5, alpha="auto", random_state=7).fit(S)
        assert chosen.alpha_ < 0.05
        lost.append(alignment(W, plain.embedding_) - alignment(W, chosen.embedding_))
    assert np.mean(lost) < 0.002


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_penalty_can_be_chosen_in_every_storage_and_again(name):
    similarity = PROBLEMS[name]()
    one, other = (SRF(RANK, alpha="auto", random_state=3).fit(similarity) for _ in range(2))
    assert 0 <= one.alpha_ <= 1
    assert one.alpha_ == other.alpha_
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


def test_a_penalty_is_chosen_by_held_out_pairs_alone():
    """What the path is judged by is not in what it is fitted to, in any storage."""
    for name, make in PROBLEMS.items():
        similarity = make()
        if similarity.factors is not None:
            continue
        S, omega = dense(similarity)
        problem = _problem(similarity)
        training, held = solvers.path.hold_out(problem, np.random.RandomState(0))
        assert len(held.rows), name
        W = np.random.RandomState(1).uniform(size=(N, 2))
        seen = omega / omega.max()
        seen[held.rows, held.columns] = seen[held.columns, held.rows] = 0.0
        expected = 0.5 * np.sum(seen * np.where(seen > 0, S - W @ W.T, 0.0) ** 2)
        found = solvers.criterion.data_objective(training, W) * training.scale
        assert found == pytest.approx(expected, rel=1e-9), name
        np.testing.assert_allclose(held.values, S[held.rows, held.columns])


def test_held_out_pairs_are_judged_as_predicted_and_by_a_regression_on_predictions_and_item_means():
    S = masked(example(), 0.6, diagonal=False)
    _, held = solvers.path.hold_out(_problem(Similarity(S, weights=counts())), np.random.RandomState(0))
    W = np.abs(SRF(RANK, random_state=0).fit(S).embedding_ + 0.1 * np.random.RandomState(1).normal(size=(N, RANK)))
    predicted = np.sum(W[held.rows] * W[held.columns], axis=1)
    of_items = (W @ W.T).mean(axis=1)
    spread = np.cov(held.values, aweights=held.weights, ddof=0)
    raw, rescaled = held.judge(W, -np.inf, np.inf)
    assert raw == pytest.approx(np.average((predicted - held.values) ** 2, weights=held.weights) / spread)
    X = np.column_stack([np.ones_like(predicted), of_items[held.rows] + of_items[held.columns], predicted])
    root = np.sqrt(held.weights)
    coefficients = np.linalg.lstsq(root[:, None] * X, root * held.values, rcond=None)[0]
    left = np.average((X @ coefficients - held.values) ** 2, weights=held.weights) / spread
    assert rescaled == pytest.approx(left, rel=1e-9)
    # Scales of the two parts do not matter, and equal predictions explain nothing.
    assert held.judge(3.0 * W, -np.inf, np.inf)[1] == pytest.approx(rescaled, rel=1e-9)
    assert held.judge(np.ones((N, RANK)), -np.inf, np.inf)[1] == 1.0


def _problem(similarity):
    if similarity.factors is not None:
        return solvers.factor_problem(similarity.factors)
    if sparse.issparse(similarity.values):
        return solvers.as_problem(similarity.values, similarity.weights, similarity.absent_weight)
    return solvers.as_problem(similarity.values, similarity.weights)


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_a_penalty_can_be_chosen_for_a_handful_of_items(n):
    W = np.kron(np.eye(2), np.ones((n, 1)))[:n] * np.linspace(0.8, 1, n)[:, None]
    for seed in range(20):
        srf = SRF(2, alpha="auto", random_state=seed).fit(W @ W.T)
        assert 0 <= srf.alpha_ < 2


def test_a_handful_of_items_is_not_left_without_a_penalty_because_no_pair_was_drawn():
    for n in (4, 5):
        for seed in range(10):
            S = masked(example(seed, n, 2), 1.1, diagonal=False)
            assert SRF(2, alpha="auto", random_state=seed).fit(S).alpha_ > 0


@pytest.mark.parametrize("factor", [1e-90, 1e90])
def test_a_penalty_is_chosen_at_every_scale_that_can_be_fitted(factor):
    S = masked(example(), diagonal=False)
    one, other = (SRF(RANK, alpha="auto", random_state=0).fit(scale * S) for scale in (1.0, factor))
    assert other.alpha_ == pytest.approx(one.alpha_)
    np.testing.assert_allclose(other.embedding_ / np.sqrt(factor), one.embedding_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("alpha", ["auto", 0.3])
def test_no_penalty_is_advised_where_every_penalty_is_none(alpha):
    S = masked(np.full((N, N), 0.5), 0.3, diagonal=False)
    with pytest.warns(UserWarning, match="underdetermined") as caught:
        SRF(10, alpha=alpha, random_state=0).fit(S)
    assert not any("Penalise" in str(warning.message) for warning in caught)
    problem = _problem(Similarity(S))
    assert solvers.penalised(problem, 0.3) is problem  # and its limits stay


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_a_penalty_that_leaves_nothing_is_warned_of_before_loadings_underflow(kind, l1_ratio):
    with pytest.warns(UserWarning, match="All loadings are zero: the penalty, alpha = 50, is stronger"):
        srf = SRF(RANK, alpha=50.0, l1_ratio=l1_ratio, random_state=0).fit(PROBLEMS[kind]())
    assert srf.embedding_.max() < 1e-6


@pytest.mark.parametrize("kind", ["counts", "zeros of a weight"])
def test_the_scale_that_a_problem_keeps_is_not_that_of_its_copy_with_other_weights(kind):
    problem = solvers.penalised(problem_of(arrays_of(PROBLEMS[kind]())), 0.1)
    fresh = problem_of(arrays_of(PROBLEMS[kind]()))
    assert solvers.noise_scale(problem) == solvers.noise_scale(fresh)
    other = replace(problem, weights=problem.weights**2 + 1)
    assert solvers.noise_scale(other) != solvers.noise_scale(problem)
    assert solvers.noise_scale(other) == solvers.noise_scale(replace(fresh, weights=fresh.weights**2 + 1))


def test_equal_similarities_get_no_penalty():
    S = np.full((12, 12), 0.5)
    assert SRF(1, alpha="auto", random_state=0).fit(S).alpha_ == 0.0
    assert SRF(1, alpha=0.5, random_state=0).fit(S).objective_ == pytest.approx(0.0, abs=1e-8)


# --- selection, consensus, discovery, command line ---------------------------------------------------------------


def test_consensus_chooses_the_penalty_once_and_a_checkpoint_keeps_it(tmp_path):
    S = example()
    whole = fit_consensus(S, RANK, n_runs=4, n_splits=4, alpha="auto", random_state=0)
    assert whole.alpha > 0
    assert "alpha" in whole.summary()
    fit_consensus(S, RANK, n_runs=2, n_splits=4, alpha="auto", random_state=0, checkpoint=tmp_path)
    resumed = fit_consensus(S, RANK, n_runs=4, n_splits=4, alpha="auto", random_state=0, checkpoint=tmp_path)
    assert resumed.alpha == whole.alpha
    np.testing.assert_array_equal(resumed.embedding, whole.embedding)
    # A run is an SRF with that penalty.
    one = SRF(RANK, alpha=whole.alpha, max_iter=2000, random_state=int(whole.seeds[whole.selected])).fit(S)
    np.testing.assert_allclose(one.embedding_, whole.embedding, rtol=1e-12)
    assert fit_consensus(S, RANK, n_runs=2, n_splits=4, random_state=0).alpha == 0.0


def test_a_checkpoint_takes_the_same_penalty_as_another_kind_of_number(tmp_path):
    S, settings = example(), {"n_runs": 2, "n_splits": 2, "random_state": 0, "checkpoint": tmp_path}
    first = fit_consensus(S, RANK, alpha=1, **settings)
    for alpha in (1.0, np.float64(1.0)):
        np.testing.assert_array_equal(fit_consensus(S, RANK, alpha=alpha, **settings).embedding, first.embedding)
    with pytest.raises(ParameterError, match="alpha"):
        fit_consensus(S, RANK, alpha=0.5, **settings)


QUICK = {"ranks": range(1, 6), "n_repeats": 1, "random_state": 0}


def test_rank_selection_chooses_the_penalty_with_the_rank(tmp_path):
    S = example(n=60, rank=4)
    found = select_rank(S, **QUICK)
    assert (found.protocol, found.rank) == ("penalised", 4)
    assert found.alpha > 0
    assert found.comparison_alpha > 0
    assert found.training_share == pytest.approx(0.875)
    assert "alpha" in found.summary()
    stopped = select_rank(S, **{**QUICK, "ranks": [4, 5]}, checkpoint=tmp_path / "c")
    again = select_rank(S, **QUICK, checkpoint=tmp_path / "c")
    assert again.comparison_alpha == stopped.comparison_alpha == found.comparison_alpha
    assert (again.rank, again.alpha) == (found.rank, found.alpha)


def test_without_a_penalty_ranks_are_selected_as_in_the_paper():
    S = example(n=60, rank=4)
    found = select_rank(S, **QUICK, alpha=0.0)
    assert (found.protocol, found.alpha, found.comparison_alpha) == ("averaged", 0.0, 0.0)
    by_paper = select_rank(S, **QUICK, protocol="paper")
    assert (by_paper.protocol, by_paper.alpha) == ("paper", 0.0)
    estimator = SRF(tol=1e-2, max_iter=300, alpha=0.1)
    assert select_rank(S, **QUICK, estimator=estimator).alpha == 0.1


@pytest.mark.parametrize(
    ("function", "given", "value"),
    [
        (select_rank, {"alpha": 0.1, "protocol": "paper"}, "0.1"),
        (select_rank, {"estimator": SRF(alpha=0.1), "protocol": "paper"}, "0.1"),
        (select_rank, {"alpha": 0.0, "protocol": "penalised"}, "0.0"),
        (select_rank, {"alpha": 0.1, "estimator": SRF()}, "0.1"),
        (select_rank, {"alpha": "much"}, "much"),
        (discover, {"alpha": 0.1, "estimator": SRF()}, "0.1"),
        (discover, {"alpha": -1.0}, "-1"),
    ],
)
def test_penalties_that_contradict_each_other_are_refused(function, given, value):
    with pytest.raises(ParameterError) as caught:
        function(example(), **given)
    assert caught.value.name == "alpha"
    assert value in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("alpha", -0.1), ("alpha", np.nan), ("l1_ratio", 1.5), ("l1_ratio", -1)])
def test_bad_penalties_are_refused(name, value):
    with pytest.raises(ParameterError) as caught:
        SRF(2, **{name: value}).fit(example())
    assert caught.value.name == name


def test_a_discovery_keeps_its_penalty_and_says_so(tmp_path):
    S = example(n=60, rank=4)
    found = discover(S, **QUICK, n_runs=3)
    assert found.consensus.alpha == found.selection.alpha > 0
    assert found.settings["alpha"] == "auto"
    for text in (str(found), found.methods_text()):
        assert "alpha" in text
    found.save(tmp_path / "found")
    loaded = Discovery.load(tmp_path / "found")
    assert loaded.consensus.alpha == found.consensus.alpha
    assert loaded.selection.comparison_alpha == found.selection.comparison_alpha
    plain = discover(S, **QUICK, n_runs=3, alpha=0.0)
    assert plain.consensus.alpha == 0.0
    assert "alpha" not in plain.methods_text()


def test_the_command_line_has_the_penalty_and_the_level_of_tests(tmp_path, capsys):
    Similarity(example()).save(tmp_path / "S.npz")
    words = ["fit", str(tmp_path / "S.npz"), "-n", "3", "--alpha", "0.2", "--seed", "0", "-o", str(tmp_path / "W.csv")]
    assert main(words) == 0
    assert "0.2" in capsys.readouterr().out
    words = ["discover", str(tmp_path / "S.npz"), "--ranks", "3", "--runs", "2", "--repeats", "1", "--seed", "0"]
    assert main([*words, "-o", str(tmp_path / "found")]) == 0
    alpha = Discovery.load(tmp_path / "found").consensus.alpha
    assert f"with a penalty alpha = {alpha:.3g} on the loadings" in capsys.readouterr().out
    assert main([*words, "--json", "-o", str(tmp_path / "again")]) == 0
    assert json.loads(capsys.readouterr().out)["alpha"] == pytest.approx(alpha)
    properties = tmp_path / "P.csv"
    properties.write_text("size\n" + "\n".join(str(value) for value in range(N)))
    for flag, is_deprecated in (("--fdr", False), ("--alpha", True)):
        test = ["test", str(tmp_path / "W.csv"), str(properties), flag, "0.2", "--permutations", "20", "--seed", "0"]
        assert main([*test, "--json"]) == 0
        said = capsys.readouterr()
        assert '"alpha": 0.2' in said.out
        assert ("deprecated" in said.err) == is_deprecated


def test_the_diagonal_that_nobody_judged_is_one_or_missing(tmp_path, capsys):
    table = {"a": ["cat", "dog", "car"], "b": ["dog", "car", "cat"], "rating": [6.0, 2.0, 1.0]}
    columns = {"item1": "a", "item2": "b", "rating": "rating", "low": 1, "high": 7}
    D = 1.0 - example(n=6)
    np.fill_diagonal(D, 0.0)
    triplets = np.array([[0, 1, 2], [1, 2, 3], [0, 3, 1]])
    for make, given, options in (
        (from_ratings, table, columns),
        (from_dissimilarity, D, {}),
        (from_triplets, triplets, {"weights": "counts"}),
    ):
        one, missing = (make(given, **options, diagonal=diagonal) for diagonal in ("one", "missing"))
        assert (np.diagonal(one.values) == 1).all()
        assert np.isnan(np.diagonal(missing.values)).all()
        off = ~np.eye(one.n_items, dtype=bool)
        np.testing.assert_array_equal(one.values[off], missing.values[off])
        with pytest.raises(ParameterError) as caught:
            make(given, **options, diagonal="two")
        assert caught.value.name == "diagonal"
    np.save(tmp_path / "t.npy", triplets)
    words = ["similarity", "triplets", str(tmp_path / "t.npy"), str(tmp_path / "S.npz"), "--diagonal", "missing"]
    assert main(words) == 0
    assert np.isnan(np.diagonal(load_similarity(tmp_path / "S.npz").values)).all()


@pytest.mark.parametrize(
    ("options", "said"), [({}, "1"), ({"diagonal": "missing"}, "missing"), ({"by": "who"}, "missing")]
)
def test_ratings_of_an_item_with_itself_are_said_to_be_what_the_diagonal_is(options, said):
    table = {"a": ["cat", "dog", "car", "cat"], "b": ["dog", "car", "cat", "cat"], "rating": [6.0, 2.0, 1.0, 7.0]}
    columns = {"item1": "a", "item2": "b", "rating": "rating", "low": 1, "high": 7}
    with pytest.warns(UserWarning, match=f"with itself, .*{said}"):
        from_ratings({**table, "who": ["x", "x", "x", "x"]}, **columns, **options)


@pytest.mark.parametrize("l1_ratio", RATIOS)
def test_a_penalty_that_leaves_nothing_is_warned_of_with_its_strength(l1_ratio):
    estimator = SRF(RANK, alpha=25.0, l1_ratio=l1_ratio, random_state=0)
    with pytest.warns(UserWarning, match="alpha = 25, .*Lower alpha"):
        assert not estimator.fit(masked(example())).embedding_.any()
    with pytest.warns(UserWarning, match="alpha = 25, "):
        fit_consensus(masked(example()), RANK, n_runs=2, n_splits=2, estimator=estimator, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SRF(RANK, alpha=ALPHA, l1_ratio=l1_ratio, random_state=0).fit(masked(example()))
    assert not any("zero" in str(warning.message) for warning in caught)


def test_a_checkpoint_of_another_penalty_is_refused_by_the_name_of_the_penalty(tmp_path):
    S = example()
    settings = {"n_repeats": 1, "random_state": 0, "checkpoint": tmp_path}
    select_rank(S, [2, 3], **settings)
    with pytest.raises(ParameterError, match=r"alpha of the estimator is 'auto', not 0\.0"):
        select_rank(S, [2, 3], alpha=0.0, **settings)


def test_a_warning_of_one_item_speaks_of_one():
    S = example(n=10)
    S[0, 2:] = S[2:, 0] = np.nan
    with pytest.warns(UserWarning, match=r"1 item has fewer .*: 0 \(2\)\. The data do not determine its loadings"):
        SRF(3, alpha=0.1, random_state=0).fit(S)
