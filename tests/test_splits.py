"""The pool, its folds and the problem that is left: what trains, what scores, and what stays out of both."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse, stats

from simdims import Similarity, simulate
from simdims.selection import splits
from simdims.solvers.problem import MatrixProblem, PairProblem

N = 24


def dense_values(seed=0, dtype=np.float64):
    W = simulate.dirichlet(N, 3, random_state=seed)
    return simulate.mask_pairs(W @ W.T, 0.8, random_state=seed).astype(dtype)


def sparse_values(stored=0.3, seed=0, dtype=np.float64):
    """A CSR matrix with about `stored` of the pairs and the whole diagonal."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((N, N)) < stored, 1)
    values = np.where(upper, rng.uniform(0.1, 1.0, (N, N)), 0.0)
    return sparse.csr_array(values + values.T + np.eye(N)).astype(dtype)


def some_weights(values, seed=0):
    drawn = np.triu(np.random.default_rng(seed).uniform(0.5, 3.0, (N, N)))
    drawn += np.triu(drawn, 1).T
    if not sparse.issparse(values):
        return drawn
    rows, columns = values.nonzero()
    return sparse.csr_array((drawn[rows, columns], (rows, columns)), shape=(N, N))


def with_unobserved(values, absent):
    """Sparse similarities in which pair (0, 1) is stored without a value and pair (2, 3) with weight 0."""
    lil = values.tolil()
    lil[0, 1] = lil[1, 0] = 0.5
    lil[2, 3] = lil[3, 2] = 0.7
    values = sparse.csr_array(lil.tocsr())
    weights = values.copy()
    weights.data[:] = 1.0
    for i, j, value, weight in ((0, 1, np.nan, 1.0), (2, 3, 0.7, 0.0)):
        for a, b in ((i, j), (j, i)):
            at = values.indptr[a] + np.flatnonzero(values.indices[values.indptr[a] : values.indptr[a + 1]] == b)[0]
            values.data[at], weights.data[at] = value, weight
    return Similarity(values, weights=weights, absent=absent)


CASES = {
    "dense": Similarity(dense_values()),
    "dense float32": Similarity(dense_values(dtype=np.float32)),
    "dense weighted": Similarity(dense_values(), weights=some_weights(dense_values())),
    "sparse missing": Similarity(sparse_values(), absent="missing"),
    "sparse zero": Similarity(sparse_values(), absent="zero"),
    "sparse light zeros": Similarity(sparse_values(), absent=0.1),
    "sparse float32": Similarity(sparse_values(dtype=np.float32), absent=0.25),
    "sparse weighted": Similarity(sparse_values(), weights=some_weights(sparse_values()), absent=0.1),
    "sparse unobserved missing": with_unobserved(sparse_values(), "missing"),
    "sparse unobserved zeros": with_unobserved(sparse_values(), 0.1),
    "sparse mostly stored": Similarity(sparse_values(stored=0.8), absent="zero"),
    "sparse complete": Similarity(sparse.csr_array(np.full((N, N), 0.5)), absent="zero"),
    "sparse diagonal unobserved": Similarity(sparse.csr_array(sparse_values() - sparse.eye_array(N)), absent="missing"),
}


@pytest.fixture(params=CASES, name="similarity")
def fixture_similarity(request):
    return CASES[request.param]


def as_dense(similarity):
    """Values (NaN = unobserved), weights, and what is stored, as square arrays: the slow, obvious reading."""
    values, weights = similarity.values, similarity.weights
    if not sparse.issparse(values):
        omega = np.ones((N, N)) if weights is None else np.array(weights)
        return np.where(omega > 0, values, np.nan), np.where(np.isnan(values), 0.0, omega), np.ones((N, N), dtype=bool)
    S = np.full((N, N), 0.0 if similarity.absent_weight else np.nan)
    omega = np.full((N, N), similarity.absent_weight)
    np.fill_diagonal(S, np.nan)
    np.fill_diagonal(omega, 0.0)
    stored = np.zeros((N, N), dtype=bool)
    for i in range(N):
        for e in range(values.indptr[i], values.indptr[i + 1]):
            j = values.indices[e]
            weight = 1.0 if weights is None else weights.data[e]
            weight = 0.0 if np.isnan(values.data[e]) else weight
            stored[i, j] = True
            omega[i, j] = weight
            S[i, j] = values.data[e] if weight > 0 else np.nan
    return S, omega, stored


def problem_as_dense(problem):
    """The values (NaN = unknown) and weights of a problem, in the caller's units."""
    if isinstance(problem, MatrixProblem):
        values = problem.values.astype(float).copy()
        weights = np.ones((N, N)) if not problem.weights.size else problem.weights.astype(float).copy()
        weights = np.where(np.isnan(values), 0.0, weights)
    else:
        assert isinstance(problem, PairProblem)
        values = np.full((N, N), 0.0 if problem.background else np.nan)
        weights = np.full((N, N), problem.background)
        for i in range(N):
            for e in range(problem.starts[i], problem.starts[i + 1]):
                j = problem.partners[e]
                weights[i, j] = problem.weights[e]
                values[i, j] = problem.values[e] if problem.weights[e] > 0 else np.nan
    np.fill_diagonal(values, np.where(problem.diagonal_weights > 0, problem.diagonal, np.nan))
    np.fill_diagonal(weights, problem.diagonal_weights)
    return values, weights * problem.scale


def one_split(similarity, seed=0, sampling=0.6, n_folds=4, fold=1):
    matrix = splits.plain(similarity)
    pairs = splits.draw_pairs(matrix, np.random.default_rng(seed))
    folds = splits.assign_folds(len(pairs.rows), sampling, n_folds, np.random.default_rng(seed + 1))
    return matrix, pairs, folds, (folds >= 0) & (folds != fold)


# --- pool and folds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [0.6, 0.9])
@pytest.mark.parametrize("n_folds", [3, 5, 10])
def test_a_fit_trains_on_the_wanted_share_of_the_pairs_unless_the_pool_is_at_its_cap(n_folds, sampling):
    n_pairs = 400_000
    folds = splits.assign_folds(n_pairs, sampling, n_folds, np.random.default_rng(0))
    trained = [np.mean((folds >= 0) & (folds != fold)) for fold in range(n_folds)]
    pool = min(sampling * n_folds / (n_folds - 1), 0.95)
    assert splits.pool_sampling(sampling, n_folds) == pytest.approx(pool)
    # Four standard deviations of a share of that many independent draws.
    atol = 4 * np.sqrt(0.25 / n_pairs)
    assert np.mean(folds >= 0) == pytest.approx(pool, abs=atol)
    np.testing.assert_allclose(trained, pool * (n_folds - 1) / n_folds, atol=atol)


@pytest.mark.parametrize("n_pairs", [7, 100, 1001])
@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_are_disjoint_cover_the_pool_and_are_of_equal_size(n_pairs, n_folds):
    folds = splits.assign_folds(n_pairs, 0.5, n_folds, np.random.default_rng(n_pairs))
    in_pool = np.flatnonzero(folds != splits.OUTSIDE_POOL)
    members = [np.flatnonzero(folds == fold) for fold in range(n_folds)]
    assert np.array_equal(np.sort(np.concatenate(members)), in_pool)  # each pair of the pool in exactly one fold
    sizes = [len(those) for those in members]
    assert max(sizes) - min(sizes) <= 1


def test_a_fold_is_a_random_part_of_the_pool():
    folds = np.array([splits.assign_folds(40, 0.9, 4, np.random.default_rng(seed)) for seed in range(2000)])
    shares = np.mean(folds == 2, axis=0)  # of each pair
    np.testing.assert_allclose(shares, 0.95 / 4, atol=0.05)


# --- the pairs that may be held out ------------------------------------------------------------------------------


def test_the_pairs_are_the_observed_ones_once_each_and_never_the_diagonal(similarity):
    matrix, pairs, *_ = one_split(similarity)
    S, omega, stored = as_dense(similarity)
    expected = {(i, j) for i in range(N) for j in range(i + 1, N) if stored[i, j] and not np.isnan(S[i, j])}
    found = list(zip(pairs.rows[: pairs.n_stored].tolist(), pairs.columns[: pairs.n_stored].tolist(), strict=True))
    assert np.all(pairs.rows < pairs.columns)
    assert len(found) == len(set(found))
    assert set(found) == expected
    np.testing.assert_array_equal(pairs.values, S[pairs.rows, pairs.columns])
    first = slice(0, pairs.n_stored)
    np.testing.assert_array_equal(pairs.weights[first], omega[pairs.rows[first], pairs.columns[first]])
    if not matrix.absent_weight:
        assert len(pairs.rows) == pairs.n_stored


def test_sampled_absent_pairs_are_distinct_zeros_that_are_not_stored_and_count_for_all_of_them(similarity):
    matrix, pairs, *_ = one_split(similarity)
    _, _, stored = as_dense(similarity)
    rows, columns = pairs.rows[pairs.n_stored :], pairs.columns[pairs.n_stored :]
    n_absent = np.count_nonzero(~stored[np.triu_indices(N, 1)])
    assert len(rows) == (min(pairs.n_stored, n_absent) if matrix.absent_weight else 0)
    assert not stored[rows, columns].any()
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
    assert np.all(pairs.values[pairs.n_stored :] == 0)
    each = pairs.weights[pairs.n_stored :]
    assert np.sum(each) == pytest.approx(matrix.absent_weight * n_absent)
    assert np.all(each == each[:1])


@pytest.mark.parametrize("n_sampled", [3, 9])
def test_every_absent_pair_is_equally_likely(n_sampled):
    n, taken = 7, np.array([1, 2 * 7 + 5, 4 * 7 + 6])  # (0, 1), (2, 5), (4, 6): 18 are absent
    n_draws = 3000
    counts = np.zeros(n * n)
    for seed in range(n_draws):
        counts[splits.sample_absent(n, taken, n_sampled, np.random.default_rng(seed))] += 1
    absent = [i * n + j for i in range(n) for j in range(i + 1, n) if i * n + j not in taken]
    assert counts.sum() == counts[absent].sum() == n_draws * n_sampled
    # Without replacement the counts vary less than the chi-square assumes, so its upper tail is safe.
    assert stats.chisquare(counts[absent]).pvalue > 1e-3


# --- the problem of a fold ---------------------------------------------------------------------------------------


def test_a_fold_trains_on_its_pairs_and_the_diagonal_and_on_nothing_else(similarity):
    matrix, pairs, _, trains = one_split(similarity)
    S, omega, stored = as_dense(similarity)
    # Everything that was drawn and does not train is unknown; so is all that was not drawn, but for the zeros.
    values, weights = np.full((N, N), np.nan), np.zeros((N, N))
    if matrix.absent_weight:
        values[~stored], weights[~stored] = 0.0, matrix.absent_weight
    for e in range(len(pairs.rows)):
        i, j = pairs.rows[e], pairs.columns[e]
        for a, b in ((i, j), (j, i)):
            values[a, b] = S[a, b] if trains[e] else np.nan
            weights[a, b] = omega[a, b] if trains[e] else 0.0
    np.fill_diagonal(values, np.diagonal(S))
    np.fill_diagonal(weights, np.diagonal(omega))
    problem = splits.training_problem(matrix, pairs, trains)
    assert problem.dtype == similarity.values.dtype
    found_values, found_weights = problem_as_dense(problem)
    np.testing.assert_array_equal(found_values, values)
    np.testing.assert_allclose(found_weights, weights, rtol=1e-6)
    np.testing.assert_array_equal(found_values, found_values.T)


@pytest.mark.parametrize("absent", ["zero", 0.1])
def test_held_out_pairs_of_either_kind_are_listed_without_weight(absent):
    matrix, pairs, _, trains = one_split(Similarity(sparse_values(), absent=absent))
    problem = splits.training_problem(matrix, pairs, trains)
    listed = {}
    for i in range(N):
        for e in range(problem.starts[i], problem.starts[i + 1]):
            listed[i, int(problem.partners[e])] = problem.weights[e]
    held = np.flatnonzero(~trains)
    assert (held < pairs.n_stored).any()
    assert (held >= pairs.n_stored).any()
    for e in held:
        assert listed[pairs.rows[e], pairs.columns[e]] == listed[pairs.columns[e], pairs.rows[e]] == 0
    in_training = pairs.n_stored + np.flatnonzero(trains[pairs.n_stored :])
    for e in in_training:  # a zero that trains need not be listed: what is not is a zero of its weight
        assert listed.get((pairs.rows[e], pairs.columns[e]), problem.background) == problem.background
    assert problem.background * problem.scale == pytest.approx(1.0 if absent == "zero" else absent)


@pytest.mark.parametrize("absent", ["missing", 0.1])
def test_a_pair_that_is_stored_but_not_observed_neither_trains_nor_scores(absent):
    similarity = with_unobserved(sparse_values(), absent)
    for seed in range(10):
        matrix, pairs, _, trains = one_split(similarity, seed=seed)
        _, weights = problem_as_dense(splits.training_problem(matrix, pairs, trains))
        for i, j in ((0, 1), (2, 3)):
            assert weights[i, j] == weights[j, i] == 0
            assert not np.any((pairs.rows == i) & (pairs.columns == j))


def test_zero_filled_is_what_was_observed(similarity):
    S, _, _ = as_dense(similarity)
    found = splits.zero_filled(splits.plain(similarity))
    found = found if isinstance(found, np.ndarray) else found.toarray()
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.nan_to_num(S))


def test_implicit_similarities_become_the_matrix_they_stand_for():
    F = simulate.dirichlet(N, 3, random_state=0)
    matrix = splits.plain(Similarity.from_factors(F))
    np.testing.assert_allclose(matrix.values, F @ F.T)
    np.testing.assert_array_equal(matrix.values, matrix.values.T)


@pytest.mark.parametrize("absent", ["missing", "zero", 0.03])
@pytest.mark.filterwarnings("ignore:Observed on the diagonal")
def test_no_square_array_is_built_for_sparse_similarities(absent):
    n, n_pairs = 20_000, 5000
    rng = np.random.default_rng(0)
    i, j = rng.integers(n, size=(2, n_pairs))
    i, j = i[i != j], j[i != j]
    upper = sparse.csr_array((rng.random(len(i)), (np.minimum(i, j), np.maximum(i, j))), shape=(n, n))
    similarity = Similarity(sparse.csr_array(upper + upper.T + sparse.eye_array(n)), absent=absent)
    tracemalloc.start()
    try:
        matrix = splits.plain(similarity)
        pairs = splits.draw_pairs(matrix, np.random.default_rng(0))
        folds = splits.assign_folds(len(pairs.rows), 0.6, 5, np.random.default_rng(1))
        splits.training_problem(matrix, pairs, (folds >= 0) & (folds != 0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n * n / 8  # a square of single bits would be more
