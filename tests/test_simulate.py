"""Simulated ground truth: the definitions, and what each function promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from simdims import ParameterError, as_similarity, simulate


@pytest.fixture(scope="module")
def signal():
    W = simulate.dirichlet(80, 5, random_state=0)
    return W @ W.T


def signal_to_noise(S, result):
    """The ratio from its definition, entry by entry over the off-diagonal."""
    entries = [(i, j) for i in range(len(S)) for j in range(len(S)) if i != j]
    clean = np.array([float(S[i, j]) for i, j in entries])
    error = np.array([float(result[i, j]) - float(S[i, j]) for i, j in entries])
    return clean.var() / (clean.var() + error.var())


def observed_share(masked):
    pairs = np.triu_indices(len(masked), 1)
    return 1 - np.isnan(masked[pairs]).mean()


# dirichlet


def test_embedding_rows_are_non_negative_and_sum_to_one():
    W = simulate.dirichlet(50, 7, random_state=0)
    assert W.shape == (50, 7)
    assert W.min() >= 0
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0, 10.0])
def test_embedding_has_the_moments_of_the_dirichlet_distribution(alpha):
    n_items, r = 40_000, 4
    W = simulate.dirichlet(n_items, r, alpha=alpha, random_state=1)
    variance = (1 / r) * (1 - 1 / r) / (r * alpha + 1)
    covariance = np.cov(W.T)
    standard_error = np.sqrt(variance / n_items)
    np.testing.assert_allclose(W.mean(axis=0), 1 / r, atol=5 * standard_error)
    np.testing.assert_allclose(np.diag(covariance), variance, rtol=0.05)
    np.testing.assert_allclose(covariance[0, 1], -variance / (r - 1), rtol=0.1)


def test_two_components_are_beta_distributed():
    from scipy.stats import beta, kstest

    W = simulate.dirichlet(5_000, 2, alpha=0.7, random_state=2)
    assert kstest(W[:, 0], beta(0.7, 0.7).cdf).pvalue > 0.01


def test_tiny_concentration_gives_one_dimension_an_item_and_no_nan():
    W = simulate.dirichlet(500, 3, alpha=1e-4, random_state=0)
    assert np.isfinite(W).all()
    assert np.mean(W.max(axis=1) > 0.999) > 0.99


def test_one_component_is_all_ones():
    np.testing.assert_array_equal(simulate.dirichlet(5, 1, random_state=0), np.ones((5, 1)))


@pytest.mark.parametrize(
    ("name", "value"), [("n_items", 0), ("n_items", 2.5), ("n_components", -1), ("alpha", 0), ("alpha", np.nan)]
)
def test_bad_sizes_of_an_embedding_are_refused(name, value):
    with pytest.raises(ParameterError) as caught:
        simulate.dirichlet(**{"n_items": 5, "n_components": 2, name: value})
    assert (caught.value.name, caught.value.got) == (name, str(value))


# add_noise


@pytest.mark.parametrize("snr", [0.001, 0.05, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_noise_meets_the_ratio_after_clipping(signal, snr):
    result = simulate.add_noise(signal, snr, random_state=3)
    assert signal_to_noise(signal, result) == pytest.approx(snr, abs=1e-6)


@given(
    snr=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.05, 5),
    scale=st.floats(1e-8, 1e8),
    n_items=st.integers(6, 25),
)
def test_noise_meets_the_ratio_for_any_signal(snr, seed, alpha, scale, n_items):
    W = simulate.dirichlet(n_items, 3, alpha=alpha, random_state=seed)
    S = scale * (W @ W.T)
    result = simulate.add_noise(S, snr, random_state=seed)
    assert signal_to_noise(S, result) == pytest.approx(snr, abs=1e-6)
    assert result.min() >= 0
    np.testing.assert_array_equal(result, result.T)


def test_noisy_values_are_the_signal_plus_one_scaled_symmetric_gaussian_clipped():
    from scipy.stats import kstest

    rng = np.random.default_rng(4)
    S = 100 + rng.uniform(size=(150, 150))  # so far from zero that nothing is clipped
    S = (S + S.T) / 2
    error = simulate.add_noise(S, 0.2, random_state=5) - S
    np.testing.assert_allclose(error, error.T, atol=1e-12)
    off_diagonal = error[np.triu_indices(150, 1)]
    assert kstest(off_diagonal / off_diagonal.std(), "norm").pvalue > 0.01
    # the diagonal gets noise of the same scale: 150 draws, five standard errors of a standard deviation
    ratio = error.diagonal().std() / off_diagonal.std()
    assert abs(ratio - 1) < 5 / np.sqrt(2 * 150)


def test_clipping_leaves_zeros_only_where_the_noise_was_negative(signal):
    clipped = simulate.add_noise(signal, 0.2, random_state=6)
    lifted = simulate.add_noise(signal + 100, 0.2, random_state=6) - (signal + 100)
    assert (clipped == 0).any()
    assert (lifted[clipped == 0] < 0).all()


def test_ratio_one_is_a_copy(signal):
    result = simulate.add_noise(signal, 1, random_state=0)
    np.testing.assert_array_equal(result, signal)
    assert not np.shares_memory(result, signal)


def test_ratio_zero_is_clipped_noise_alone_on_the_scale_of_the_signal(signal):
    result = simulate.add_noise(signal, 0, random_state=7)
    pairs = np.triu_indices(len(signal), 1)
    assert result[pairs].std() == pytest.approx(signal[pairs].std())
    assert result.min() == 0
    np.testing.assert_array_equal(result, result.T)
    # the signal leaves no trace: 3,160 pairs, four standard errors of a correlation
    assert abs(np.corrcoef(result[pairs], signal[pairs])[0, 1]) < 4 / np.sqrt(len(pairs[0]))
    # half of a Gaussian is clipped
    assert np.mean(result[pairs] == 0) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("share", [-0.1, 1.5, np.nan])
def test_ratios_and_shares_outside_their_range_are_refused(signal, share):
    for function, name in ((simulate.add_noise, "snr"), (simulate.mask_pairs, "observed")):
        with pytest.raises(ParameterError) as caught:
            function(signal, share)
        assert (caught.value.name, caught.value.got) == (name, str(share))


def test_signals_that_are_constant_or_incomplete_have_no_ratio(signal):
    constant = [np.full((10, 10), value) for value in (0.0, 0.1, 3.0)]
    for S in [*constant, simulate.mask_pairs(signal, 0.5, random_state=0)]:
        with pytest.raises(ParameterError, match=r"^S "):
            simulate.add_noise(S, 0.5)


def test_ratio_that_clipping_puts_out_of_reach_is_an_error():
    S = np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]])
    pairs = np.triu_indices(3, 1)

    def draws_negative_noise_only(seed):
        lifted = S + 100
        return ((simulate.add_noise(lifted, 0.5, random_state=seed) - lifted)[pairs] < 0).all()

    seed = next(seed for seed in range(200) if draws_negative_noise_only(seed))
    for snr in (0, 0.1):
        with pytest.raises(ParameterError, match=f"snr .*all 3 pairs.*{snr}"):
            simulate.add_noise(S, snr, random_state=seed)
    result = simulate.add_noise(S, 0.9, random_state=seed)
    assert signal_to_noise(S, result) == pytest.approx(0.9, abs=1e-6)


# mask_pairs


@pytest.mark.parametrize("observed", [0.0, 0.03, 0.3, 0.7, 1.0])
def test_pairs_stay_with_the_given_probability(observed):
    n_items = 300
    S = np.ones((n_items, n_items))
    masked = simulate.mask_pairs(S, observed, random_state=8)
    n_pairs = n_items * (n_items - 1) / 2
    standard_error = np.sqrt(observed * (1 - observed) / n_pairs)
    assert observed_share(masked) == pytest.approx(observed, abs=4 * standard_error + 1e-12)


def test_pairs_stay_independently_of_each_other():
    """Over many masks each pair's count, and the number two pairs of one item share, are binomial."""
    masks = [~np.isnan(simulate.mask_pairs(np.ones((6, 6)), 0.4, random_state=seed)) for seed in range(2_000)]
    kept = np.array([mask[np.triu_indices(6, 1)] for mask in masks])
    np.testing.assert_allclose(kept.mean(axis=0), 0.4, atol=5 * np.sqrt(0.4 * 0.6 / 2_000))
    correlations = np.corrcoef(kept.T)[np.triu_indices(15, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(2_000)


def test_both_triangles_lose_the_same_pairs_and_values_stay(signal):
    masked = simulate.mask_pairs(signal, 0.4, random_state=9)
    missing = np.isnan(masked)
    np.testing.assert_array_equal(missing, missing.T)
    np.testing.assert_array_equal(masked[~missing], signal[~missing])


def test_diagonal_stays_unless_told_otherwise(signal):
    kept = simulate.mask_pairs(signal, 0.4, random_state=10)
    dropped = simulate.mask_pairs(signal, 0.4, random_state=10, keep_diagonal=False)
    np.testing.assert_array_equal(kept.diagonal(), signal.diagonal())
    assert np.isnan(dropped.diagonal()).all()
    off_diagonal = ~np.eye(len(signal), dtype=bool)
    np.testing.assert_array_equal(kept[off_diagonal], dropped[off_diagonal])


def test_fewer_pairs_are_a_subset_of_more_under_one_seed(signal):
    few = ~np.isnan(simulate.mask_pairs(signal, 0.2, random_state=11))
    more = ~np.isnan(simulate.mask_pairs(signal, 0.6, random_state=11))
    assert np.all(more[few])


def test_pairs_already_missing_stay_missing(signal):
    once = simulate.mask_pairs(signal, 0.5, random_state=12)
    twice = simulate.mask_pairs(once, 0.5, random_state=13)
    assert np.isnan(twice[np.isnan(once)]).all()
    assert observed_share(twice) == pytest.approx(0.25, abs=0.05)


# all of them

FROM_SIMILARITY = {
    "add_noise": lambda S, seed: simulate.add_noise(S, 0.5, random_state=seed),
    "no_noise": lambda S, seed: simulate.add_noise(S, 1, random_state=seed),
    "mask_pairs": lambda S, seed: simulate.mask_pairs(S, 0.5, random_state=seed),
}
RANDOM = {
    "dirichlet": lambda S, seed: simulate.dirichlet(20, 3, random_state=seed),
    "add_noise": FROM_SIMILARITY["add_noise"],
    "mask_pairs": FROM_SIMILARITY["mask_pairs"],
}


@pytest.mark.parametrize("function", RANDOM.values(), ids=RANDOM)
def test_same_seed_same_result_other_seed_another(signal, function):
    np.testing.assert_array_equal(function(signal, 0), function(signal, 0))
    np.testing.assert_array_equal(function(signal, 0), function(signal, np.random.RandomState(0)))
    assert not np.array_equal(function(signal, 0), function(signal, 1), equal_nan=True)
    assert not np.array_equal(function(signal, None), function(signal, None), equal_nan=True)


@pytest.mark.parametrize("function", FROM_SIMILARITY.values(), ids=FROM_SIMILARITY)
def test_input_is_never_changed_and_float32_stays_float32(signal, function):
    before = signal.copy()
    result = function(signal, 0)
    np.testing.assert_array_equal(signal, before)
    assert not np.shares_memory(result, signal)
    assert result.flags.writeable
    for given_type, result_type in (("f4", "f4"), ("f8", "f8"), ("i8", "f8")):
        assert function(np.round(100 * signal).astype(given_type), 0).dtype == result_type


@pytest.mark.parametrize("function", FROM_SIMILARITY.values(), ids=FROM_SIMILARITY)
def test_only_dense_similarity_matrices_are_taken(signal, function):
    lopsided = signal.copy()
    lopsided[0, 1] += 1
    stored = as_similarity(sparse.csr_array(signal), absent="zero")
    for S, words in ((signal[:10], "square"), (lopsided, "symmetric"), (signal - 1, "negative"), (stored, "dense")):
        with pytest.raises((ValueError, TypeError), match=words):
            function(S, 0)


@pytest.mark.parametrize("seed", ["abc", -1, 1.5, 2**32])
def test_bad_seeds_are_refused(seed):
    W = simulate.dirichlet(20, 3, random_state=0)
    for draw in (
        lambda: simulate.dirichlet(20, 3, random_state=seed),
        lambda: simulate.from_embedding(W, 10, 2, random_state=seed),
        lambda: simulate.add_noise(W @ W.T, 0.5, random_state=seed),
        lambda: simulate.add_feature_noise(W, 0.5, random_state=seed),
        lambda: simulate.mask_pairs(W @ W.T, 0.5, random_state=seed),
        lambda: simulate.triplet_answers(W, 10, random_state=seed),
    ):
        with pytest.raises(ValueError, match=f"random_state .*{seed}"):
            draw()


@pytest.mark.parametrize("generator", [np.random.default_rng, np.random.RandomState])
def test_generators_are_seeds_too(generator):
    one, other = (simulate.dirichlet(5, 2, random_state=generator(0)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    one, other = (simulate.triplet_answers(one, 10, random_state=generator(0)) for _ in range(2))
    np.testing.assert_array_equal(one, other)


# detectable_rank


def slow_detectable_rank(W, noisy, observed):
    """The definition: eigenvalues of the true similarities beyond the noise that was really added."""
    S = W @ W.T
    n = len(S)
    errors = [noisy[i, j] - S[i, j] for i in range(n) for j in range(n) if i != j]
    return sum(theta > np.std(errors) * np.sqrt(n / observed) for theta in np.linalg.eigvalsh(S))


@pytest.mark.parametrize("snr", [0.2, 0.4, 0.8])
@pytest.mark.parametrize("observed", [1.0, 0.3])
def test_the_detectable_rank_is_its_definition_with_the_noise_of_add_noise(snr, observed):
    found = []
    for seed in range(5):
        W = simulate.dirichlet(60, 8, alpha=0.5, random_state=seed)
        noisy = simulate.add_noise(W @ W.T, snr, random_state=seed)
        found.append(simulate.detectable_rank(W, snr=snr, observed=observed))
        assert found[-1] == slow_detectable_rank(W, noisy, observed)
        sigma = (noisy - W @ W.T)[np.triu_indices(60, 1)].std()
        assert found[-1] == simulate.detectable_rank(W, sigma=sigma, observed=observed)
    assert max(found) > 1


def test_more_noise_and_fewer_pairs_never_make_more_dimensions_detectable():
    W = simulate.dirichlet(100, 12, alpha=0.3, random_state=0)
    by_noise = [simulate.detectable_rank(W, snr=snr) for snr in (0, 0.05, 0.1, 0.3, 0.6, 1)]
    by_pairs = [simulate.detectable_rank(W, snr=0.3, observed=share) for share in (0.05, 0.2, 0.5, 1)]
    assert by_noise == sorted(by_noise)
    assert by_pairs == sorted(by_pairs)
    assert by_noise[0] == 0
    assert by_noise[-1] == 12
    assert by_pairs[0] < by_pairs[-1]


def test_without_noise_the_detectable_rank_is_the_rank():
    W = simulate.dirichlet(50, 4, random_state=0)
    repeated = np.column_stack([W, W])
    assert simulate.detectable_rank(repeated, snr=1) == simulate.detectable_rank(repeated, sigma=0) == 4
    assert simulate.detectable_rank(np.zeros((5, 2)), sigma=0) == 0


@pytest.mark.parametrize("observed", [1.0, 0.5])
@pytest.mark.parametrize(("excess", "seen"), [(0.8, False), (1.5, True)])
def test_eigenvectors_of_noisy_similarities_show_detectable_dimensions_only(excess, seen, observed):
    """A single dimension, below and above the limit: the squared overlap of its eigenvector, 1 - 1 / excess^2 or 0."""
    rng = np.random.default_rng(0)
    n = 1500
    W = np.sqrt(rng.uniform(size=(n, 1)))
    theta = float(np.sum(W**2))
    sigma = theta / excess / np.sqrt(n / observed)
    assert simulate.detectable_rank(W, sigma=sigma, observed=observed) == seen
    noise = np.triu(sigma * rng.standard_normal((n, n)), 1)
    noisy = np.triu(W @ W.T, 1) + noise
    noisy[rng.uniform(size=(n, n)) > observed] = 0
    _, vectors = np.linalg.eigh(noisy + noisy.T)
    overlap = float(vectors[:, -1] @ W[:, 0]) ** 2 / theta
    assert overlap == pytest.approx(1 - 1 / excess**2 if seen else 0, abs=0.1)
