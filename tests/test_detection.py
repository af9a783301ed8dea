"""detectable_dimensions: residuals against residuals with random signs."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from similarity_examples import as_csr, similarities
from test_selection_of_noise import KINDS, noise

from simdims import DetectableDimensions, Similarity, as_similarity, detectable_dimensions, simulate, solvers
from simdims.selection import detection, residuals
from simdims.selection.detection import largest_testable, smallest_sufficient


def noisy(n=60, r=4, snr=0.6, observed=1.0, seed=0, alpha=0.3):
    return similarities(n=n, r=r, snr=snr, observed=observed, seed=seed, alpha=alpha)


def slow_residuals(similarity, W):
    """Omega_ij (S_ij - w_i . w_j) by loops, weights relative to the largest, zero where there is no pair."""
    n = similarity.n_items
    values, weights = similarity.values, similarity.weights
    E, omega = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            stored = not sparse.issparse(values) or j in values.indices[values.indptr[i] : values.indptr[i + 1]]
            value, weight = (values[i, j], 1.0) if stored else (0.0, similarity.absent_weight)
            if stored and weights is not None:
                weight = weights[i, j]
            if weight > 0 and not np.isnan(value):
                omega[i, j] = weight
                E[i, j] = weight * (value - W[i] @ W[j])
    largest = max(omega.max(), 0.0 if weights is None else weights.max())
    return E / largest


def cases():
    rng = np.random.default_rng(0)
    S = noisy(n=30)
    weights = np.triu(rng.integers(0, 5, size=S.shape).astype(float), 1)
    weights += weights.T + np.eye(30)
    absent = as_csr(np.where(np.quantile(S, 0.6) < S, S, np.nan))
    empty = S.copy()
    np.fill_diagonal(empty, np.nan)
    return {
        "complete": Similarity(S),
        "missing": Similarity(noisy(n=30, observed=0.6)),
        "no diagonal": Similarity(empty),
        "weighted": Similarity(S, weights=weights),
        "sparse": Similarity(as_csr(noisy(n=30, observed=0.6)), absent="missing"),
        "zeros": Similarity(absent, absent="zero"),
        "light zeros": Similarity(absent, absent=0.3),
    }


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("listed", [False, True])
def test_residuals_are_their_definition(name, listed, monkeypatch):
    similarity = cases()[name]
    if listed:
        monkeypatch.setattr(residuals, "_DENSE", 0)
    W = np.random.default_rng(1).uniform(size=(30, 3))
    problem = detection.problem_of(detection.plain(similarity))
    found = residuals.compare_with_noise(problem, W, 3, np.random.default_rng(0))
    E = slow_residuals(similarity, W)
    assert found.eigenvalue == pytest.approx(np.linalg.eigvalsh(E)[-1], rel=1e-8)
    assert found.norm == pytest.approx(np.linalg.norm(E), rel=1e-8)
    assert len(found.flipped) == 3
    assert np.all(found.flipped > 0)


@pytest.mark.parametrize("n", [5, 64, 65, 200])
def test_random_signs_change_signs_alone_and_keep_the_symmetry(n):
    rng = np.random.default_rng(n)
    E = rng.standard_normal((n, n))
    E = np.triu(E, 1) + np.triu(E, 1).T
    flipped = E.copy()
    residuals._flip(flipped, rng)
    np.testing.assert_array_equal(flipped, flipped.T)
    np.testing.assert_array_equal(np.abs(flipped), np.abs(E))
    changed = (flipped != E)[np.triu_indices(n, 1)]
    assert abs(changed.mean() - 0.5) < 4 * 0.5 / np.sqrt(changed.size)


def test_listed_and_dense_residuals_meet_the_same_noise():
    S = noisy(n=220, observed=0.4, seed=3)
    W = np.random.default_rng(1).uniform(size=(220, 3)) * 0.3
    null = []
    for similarity in (Similarity(S), Similarity(as_csr(S), absent="missing")):
        problem = detection.problem_of(detection.plain(similarity))
        null.append(residuals.compare_with_noise(problem, W, 40, np.random.default_rng(0)).flipped)
    spread = np.std(null[0])
    assert abs(np.mean(null[0]) - np.mean(null[1])) < 4 * spread * np.sqrt(2 / 40)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_sample_of_the_absent_pairs_stands_for_all_of_them(share, monkeypatch):
    W = simulate.dirichlet(400, 5, alpha=0.5, random_state=0)
    S = np.asarray(simulate.add_noise(W @ W.T, 0.5, random_state=0))
    similarity = Similarity(as_csr(np.where(np.quantile(S, 1 - share) < S, S, np.nan)), absent="zero")
    problem = detection.problem_of(detection.plain(similarity))
    fitted = solvers.solve(
        problem, solvers.random_start(problem, 3, np.random.RandomState(0)), tol=1e-3, max_iter=100
    ).W
    dense = residuals.compare_with_noise(problem, fitted, 30, np.random.default_rng(0))
    monkeypatch.setattr(residuals, "_DENSE", 0)
    listed = residuals.compare_with_noise(problem, fitted, 30, np.random.default_rng(0))
    assert listed.eigenvalue == pytest.approx(dense.eigenvalue, rel=1e-3)
    assert listed.norm == pytest.approx(dense.norm, rel=1e-6)
    assert listed.flipped.mean() == pytest.approx(dense.flipped.mean(), rel=0.03)


@pytest.mark.parametrize("first", [1, 3, 9, 20])
@pytest.mark.parametrize("truth", [1, 2, 4, 9, 16, 20, 21])
def test_the_smallest_sufficient_number_is_found_in_few_tests(truth, first):
    asked = []

    def is_too_few(rank):
        asked.append(rank)
        return rank < truth

    assert smallest_sufficient(is_too_few, first, 20) == truth
    assert len(asked) == len(set(asked)) <= 11
    assert 1 <= min(asked) <= max(asked) <= 20
    assert asked[0] == first


# --- the count ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("r", "alpha", "observed"), [(1, 1.0, 1.0), (3, 0.3, 1.0), (6, 1.0, 0.6), (10, 0.1, 1.0)])
def test_without_noise_all_dimensions_are_counted_and_no_more(r, alpha, observed):
    S = similarities(n=80, r=r, snr=1.0, observed=observed, seed=r, alpha=alpha) if r > 1 else np.ones((80, 80))
    found = detectable_dimensions(S, random_state=0)
    assert found.rank == r
    assert found.table.set_index("rank").loc[r, "unexplained"] < 1e-6
    assert "rounding errors" in found.summary()


def test_no_noise_and_next_to_none_agree():
    W = simulate.dirichlet(80, 6, alpha=1.0, random_state=0)
    S = W @ W.T
    nearly = simulate.add_noise(S, 0.99999, random_state=0)
    assert detectable_dimensions(S, random_state=0).rank == detectable_dimensions(nearly, random_state=0).rank == 6


@pytest.mark.parametrize("kind", ["dense", "missing", "no diagonal", "sparse", "float32"])
def test_strong_dimensions_are_counted_however_similarities_are_stored(kind):
    S = noisy(n=100, r=5, snr=0.7, observed=0.5 if kind in ("missing", "sparse") else 1.0, seed=1)
    if kind == "no diagonal":
        np.fill_diagonal(S, np.nan)
    if kind == "float32":
        S = S.astype(np.float32)
    similarity = Similarity(as_csr(S), absent="missing") if kind == "sparse" else as_similarity(S)
    assert detectable_dimensions(similarity, random_state=0).rank == 5


def test_weights_count_as_in_the_fit():
    """Half of the pairs are measured precisely, the others hardly at all: weights tell them apart."""
    rng = np.random.default_rng(0)
    W = simulate.dirichlet(80, 6, alpha=0.3, random_state=0)
    S = W @ W.T
    deviation = np.where(rng.uniform(size=S.shape) < 0.5, 0.05, 1.5)
    noise = np.triu(deviation * rng.standard_normal(S.shape), 1)
    deviation = np.triu(deviation, 1)
    weights = 1 / (deviation + deviation.T + np.eye(80)) ** 2
    values = np.maximum(S + noise + noise.T, 0)
    assert detectable_dimensions(Similarity(values, weights=weights), random_state=0).rank == 6
    assert detectable_dimensions(values, random_state=0).rank < 6


def test_the_scale_of_similarities_and_weights_does_not_matter():
    S = noisy(seed=2)
    weights = np.full(S.shape, 2.0)
    reference = detectable_dimensions(S, random_state=0)
    for scaled, factor in ((1e6 * S, 1e6), (1e-6 * S, 1e-6), (Similarity(S, weights=weights), 1.0)):
        found = detectable_dimensions(scaled, random_state=0)
        assert found.rank == reference.rank
        np.testing.assert_allclose(found.table["eigenvalue"], factor * reference.table["eigenvalue"], rtol=1e-3)
        np.testing.assert_allclose(found.table["pvalue"], reference.table["pvalue"], atol=0.03)


def test_implicit_similarities_are_those_of_their_matrix():
    W = simulate.dirichlet(60, 4, random_state=0)
    assert detectable_dimensions(Similarity.from_factors(W), random_state=0).rank == 4


def test_the_same_seed_gives_the_same_result():
    S = noisy(seed=4)
    one, other = (detectable_dimensions(S, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(one.null_distribution, other.null_distribution)
    drawn = detectable_dimensions(S)
    again = detectable_dimensions(S, random_state=drawn.seed)
    np.testing.assert_array_equal(drawn.null_distribution, again.null_distribution)


def test_where_the_search_starts_hardly_matters():
    S = noisy(n=80, r=6, snr=0.5, seed=5)
    assert {detectable_dimensions(S, start=start, random_state=0).rank for start in (1, 4, 12, 500)} == {6}


def test_the_table_and_its_null_distribution_agree():
    found = detectable_dimensions(noisy(seed=6), n_flips=39, random_state=0)
    assert found.n_flips == 39
    assert found.null_distribution.shape == (len(found.table), 39)
    for (_, row), null in zip(found.table.iterrows(), found.null_distribution, strict=True):
        assert row["null_mean"] == pytest.approx(null.mean())
        assert row["null_standard_deviation"] == pytest.approx(null.std(ddof=1))
        assert row["null_quantile"] == pytest.approx(np.quantile(null, 0.95))
        assert row["pvalue"] == (1 + np.sum(null >= row["eigenvalue"])) / 40
        assert row["too_few"] == (row["pvalue"] <= 0.05) == (row["rank"] < found.rank)
    assert list(found.table["rank"]) == sorted(found.table["rank"])


def test_a_limit_on_the_numbers_tested_is_said():
    S = noisy(n=80, r=6, snr=0.9, seed=0)
    found = detectable_dimensions(S, max_rank=3, random_state=0)
    assert (found.rank, found.at_edge) == (4, True)
    assert found.table["rank"].max() == 3
    assert "At least 4 dimensions" in found.summary()
    assert "largest number tested" in found.summary()
    assert detectable_dimensions(S, random_state=0).at_edge is False


def test_no_more_dimensions_are_tested_than_leave_noise_to_compare_with():
    few = noisy(n=60, r=3, observed=0.1, seed=1)
    known = np.count_nonzero(~np.isnan(few[np.triu_indices(60, 1)]))
    limit = largest_testable(solvers.as_problem(few))
    assert limit * 60 <= 0.75 * known < (limit + 1) * 60
    assert largest_testable(solvers.as_problem(noisy(n=31))) == 10


def test_a_result_says_what_it_is():
    found = detectable_dimensions(noisy(seed=1), random_state=0)
    assert isinstance(found, DetectableDimensions)
    assert str(found) == found.summary()
    assert f"rank={found.rank}" in repr(found)
    assert found.words() == f"at least {found.rank} can be told from noise"
    written = found.to_dict()
    assert written["table"][0]["rank"] == 1
    assert len(written["null_distribution"]) == len(found.table)
    exact = detectable_dimensions(np.ones((10, 10)), random_state=0)
    assert exact.words() == "no more than one can be told from noise"
    assert exact.to_dict()["table"][0]["pvalue"] is None
    for one in (found, exact):
        again = DetectableDimensions.from_dict(json.loads(json.dumps(one.to_dict())))
        assert (again.rank, again.at_edge, again.level, again.seed) == (one.rank, one.at_edge, one.level, one.seed)
        pd.testing.assert_frame_equal(again.table, one.table, check_exact=True)
        np.testing.assert_array_equal(again.null_distribution, one.null_distribution)


def test_progress_is_told_after_every_number():
    told = []
    found = detectable_dimensions(noisy(), random_state=0, progress=told.append)
    assert [one.done for one in told] == list(range(1, len(found.table) + 1))
    assert {int(one.detail.removeprefix("rank ")) for one in told} == set(found.table["rank"])


# --- calibration -------------------------------------------------------------------------------------------------


def rejects_the_truth(n, r, alpha, snr, observed, seed, diagonal):
    """Whether the true number of dimensions is taken to be too few."""
    W = simulate.dirichlet(n, r, alpha=alpha, random_state=seed)
    S = simulate.add_noise(W @ W.T, snr, random_state=10_000 + seed)
    S = np.array(simulate.mask_pairs(S, observed, random_state=20_000 + seed, keep_diagonal=diagonal))
    return detectable_dimensions(S, start=r, max_rank=r, random_state=seed).at_edge


def test_the_true_number_is_rarely_too_few():
    wrong = [rejects_the_truth(60, 4, 0.5, 0.6, 1.0, seed, True) for seed in range(20)]
    assert sum(wrong) <= 4  # 0.3% with a level of 5%


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "r", "alpha", "snr", "observed", "diagonal"),
    [
        (150, 3, 2.0, 0.5, 1.0, True),
        (150, 12, 0.3, 0.7, 1.0, True),
        (150, 6, 0.3, 0.7, 0.5, True),
        (100, 6, 0.5, 0.6, 1.0, False),
        (40, 3, 0.3, 0.7, 1.0, True),
        (20, 2, 0.5, 0.8, 1.0, False),
    ],
)
def test_the_true_number_is_too_few_as_often_as_the_level_says(n, r, alpha, snr, observed, diagonal):
    wrong = np.mean([rejects_the_truth(n, r, alpha, snr, observed, seed, diagonal) for seed in range(200)])
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_has_no_more_than_one_dimension(kind):
    found = [detectable_dimensions(noise(kind, 60, seed), random_state=seed).rank for seed in range(20, 26)]
    assert sum(rank > 1 for rank in found) <= 2  # 0.2% with a level of 5%


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_noise_has_more_than_one_dimension_as_often_as_the_level_says(kind):
    found = np.mean([detectable_dimensions(noise(kind, 60, seed), random_state=seed).rank > 1 for seed in range(200)])
    assert found <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_weak_dimensions_are_not_taken_for_more_than_they_are():
    """The count hardly ever exceeds what is there, and finds what is well above the limit of detection."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(4):
            W = simulate.dirichlet(100, 8, alpha=0.3, random_state=seed)
            S = simulate.add_noise(W @ W.T, 0.4, random_state=seed)
            sigma = (S - W @ W.T)[np.triu_indices(100, 1)].std()
            clearly = simulate.detectable_rank(W, sigma=1.5 * sigma)
            assert clearly <= detectable_dimensions(S, random_state=seed).rank <= 9
