"""calibrate: the procedure against a plain one written from its definition, and that only data and seed decide."""

import inspect
import re
import warnings
from functools import partial

import numpy as np
import pytest
import similarity_examples
from scipy import sparse
from scipy.sparse.linalg import eigsh
from similarity_examples import as_csr

from simdims import ParameterError, Similarity, _parallel, calibrate, simulate
from simdims.selection import calibration
from simdims.selection.calibration import _BOOTSTRAP, best_split
from simdims.solvers import spectra

similarities = partial(similarity_examples.similarities, snr=0.7)


# --- the definition ----------------------------------------------------------------------------------------------


def uniform_numbers(seed, number, n_draws):
    """The numbers that decide which pairs bootstrap `number` keeps, in the order of the upper triangle."""
    root = _parallel.root_seed(seed)
    return np.random.default_rng(_parallel.seed_of(root, _BOOTSTRAP, number)).random(n_draws)


def straight_line(S, *, seed, n_eigenpairs, n_bootstraps, tolerance=0.10, drawn=None):
    """k_cut, p*, floor and the curves by dense eigendecompositions and plain loops.

    `drawn` lists the pairs (i < j) that have a number of their own, in order; all of them by default.
    """
    n = len(S)
    grid = [0.05 + 0.9 * g / 19 for g in range(20)]
    filled = np.array([[0.0 if np.isnan(S[i, j]) else S[i, j] for j in range(n)] for i in range(n)])
    drawn = [(i, j) for i in range(n) for j in range(i + 1, n)] if drawn is None else drawn

    def leading(matrix):
        eigenvalues, eigenvectors = np.linalg.eigh(matrix)
        order = np.argsort(eigenvalues)[::-1][:n_eigenpairs]
        return eigenvalues[order], eigenvectors[:, order]

    eigenvalues, u = leading(filled)
    coherence = np.zeros((n_bootstraps, len(grid), n_eigenpairs))
    quadratic = np.zeros((n_bootstraps, len(grid), n_eigenpairs))
    for b in range(n_bootstraps):
        chances = uniform_numbers(seed, b, len(drawn))
        for g, p in enumerate(grid):
            kept = np.diag(np.diag(filled))
            for chance, (i, j) in zip(chances, drawn, strict=True):
                if chance < p:
                    kept[i, j] = kept[j, i] = filled[i, j] / p
            _, v = leading(kept)
            for k in range(n_eigenpairs):
                coherence[b, g, k] = sum((v[:, j] @ u[:, k]) ** 2 for j in range(k + 1))
                quadratic[b, g, k] = v[:, k] @ filled @ v[:, k]

    dense = [g for g in range(len(grid)) if grid[g] >= np.quantile(grid, 0.85)]
    leakage = []
    for k in range(n_eigenpairs):
        scaled = [(1 - np.median(coherence[:, g, k])) * grid[g] / (1 - grid[g]) for g in dense]
        leakage.append(np.median(scaled))

    best, cutoff = -np.inf, None
    for first in range(2, n_eigenpairs - 1):
        one, other = leakage[:first], leakage[first:]
        m1, m2, m = np.mean(one), np.mean(other), np.mean(leakage)
        between = len(one) * (m1 - m) ** 2 + len(other) * (m2 - m) ** 2
        within = sum((x - m1) ** 2 for x in one) + sum((x - m2) ** 2 for x in other)
        f = between / (within / (n_eigenpairs - 2))
        if f > best:
            best, cutoff = f, first

    recovered = [np.median(quadratic[:, g, :cutoff].sum(axis=1)) / sum(eigenvalues[:cutoff]) for g in range(len(grid))]
    monotone = pool_adjacent_violators(recovered)
    wanted = 1 - tolerance
    sampling = grid[-1]
    for g in range(len(grid)):
        if monotone[g] >= wanted:
            sampling = grid[0] if g == 0 else np.interp(wanted, monotone[g - 1 : g + 1], grid[g - 1 : g + 1])
            break
    ratio = eigenvalues[cutoff] / eigenvalues[cutoff - 1]
    floor = ratio**2 / (1 + ratio**2)
    return cutoff, max(sampling, floor), floor, np.array(leakage), 1 - np.array(monotone)


def pool_adjacent_violators(values):
    blocks = [[value, 1] for value in values]
    at = 0
    while at < len(blocks) - 1:
        if blocks[at][0] > blocks[at + 1][0]:
            total = blocks[at][1] + blocks[at + 1][1]
            mean = (blocks[at][0] * blocks[at][1] + blocks[at + 1][0] * blocks[at + 1][1]) / total
            blocks[at : at + 2] = [[mean, total]]
            at = max(at - 1, 0)
        else:
            at += 1
    return [mean for mean, count in blocks for _ in range(count)]


@pytest.mark.parametrize(("observed", "seed"), [(1.0, 0), (0.6, 1)])
def test_it_is_the_straight_line_procedure(observed, seed):
    S = similarities(observed=observed, seed=seed)
    expected = straight_line(S, seed=seed, n_eigenpairs=15, n_bootstraps=4)
    found = calibrate(S, n_bootstraps=4, random_state=seed)
    assert len(found.eigenvalues) == 15  # a quarter of the items
    assert found.cutoff == expected[0]
    assert found.sampling == pytest.approx(expected[1], abs=1e-6)
    assert found.floor == pytest.approx(expected[2], abs=1e-9)
    np.testing.assert_allclose(found.leakage, expected[3], atol=1e-8)
    np.testing.assert_allclose(found.signal_loss, expected[4], atol=1e-8)


def test_sparse_input_is_the_straight_line_procedure_too():
    S = similarities(observed=0.6, seed=2)
    stored = [(i, j) for i in range(60) for j in range(i + 1, 60) if not np.isnan(S[i, j])]
    expected = straight_line(S, seed=0, n_eigenpairs=15, n_bootstraps=3, drawn=stored)
    for absent in ("missing", "zero", 0.1):
        found = calibrate(Similarity(as_csr(S), absent=absent), n_bootstraps=3, random_state=0)
        assert found.cutoff == expected[0]
        assert found.sampling == pytest.approx(expected[1], abs=1e-6)
        np.testing.assert_allclose(found.leakage, expected[3], atol=1e-6)


def test_sparse_input_that_stores_everything_is_its_dense_twin():
    S = np.nan_to_num(similarities(observed=0.6))
    dense = calibrate(S, n_bootstraps=4, random_state=0)
    stored = calibrate(Similarity(as_csr(S), absent="missing"), n_bootstraps=4, random_state=0)
    assert stored.cutoff == dense.cutoff
    assert stored.sampling == pytest.approx(dense.sampling, abs=1e-6)
    np.testing.assert_allclose(stored.signal_loss, dense.signal_loss, atol=1e-6)


def test_pairs_without_weight_are_missing():
    S = similarities()
    left_out = np.isnan(simulate.mask_pairs(S, 0.7, random_state=1))
    weighted = calibrate(Similarity(S, weights=np.where(left_out, 0.0, 2.0)), n_bootstraps=3, random_state=0)
    masked = calibrate(np.where(left_out, np.nan, S), n_bootstraps=3, random_state=0)
    assert weighted.sampling == masked.sampling
    np.testing.assert_array_equal(weighted.leakage, masked.leakage)


def test_a_sparse_matrix_stays_sparse(monkeypatch):
    S = Similarity(as_csr(similarities(n=80, observed=0.4)), absent=0.1)

    def refuse(*_, **__):
        raise AssertionError("a dense matrix was built")

    for name in ("toarray", "todense", "__array__"):
        monkeypatch.setattr(sparse.csr_array, name, refuse, raising=False)
        monkeypatch.setattr(sparse.coo_array, name, refuse, raising=False)
    monkeypatch.setattr(np, "eye", refuse)
    assert 0 < calibrate(S, n_bootstraps=2, random_state=0).sampling < 1


def test_a_share_that_recovers_less_than_a_smaller_one_is_smoothed_with_it():
    grid = np.array([0.2, 0.4, 0.6, 0.8])
    recovered = [0.5, 0.95, 0.75, 1.0]  # of which the middle two are 0.85 together
    eigenvalues = np.array([3.0, 1.0])
    curves = [(np.ones((4, 2)), np.outer(recovered, eigenvalues))]
    found = calibration.conclude(curves, eigenvalues, grid, 0.10)
    np.testing.assert_allclose(found.signal_loss, 1 - np.array(pool_adjacent_violators(recovered)))
    assert found.sampling == pytest.approx(0.6 + 0.2 * (0.90 - 0.85) / (1.0 - 0.85))


@pytest.mark.parametrize("split", [2, 3, 7, 10])
def test_the_split_of_a_profile_with_one_step_is_the_step(split):
    profile = np.where(np.arange(12) < split, 0.1, 0.9) + 0.01 * np.sin(np.arange(12))
    assert best_split(profile) == split


@pytest.mark.parametrize("profile", [[], [0.1], [0.1, 0.2], [0.1, 0.1, 0.9], [0.1, 0.9, 0.9, 0.9], [0.5] * 9])
def test_the_split_is_never_below_two(profile):
    assert best_split(np.array(profile)) == min(2, len(profile))


# --- what decides, and what does not -----------------------------------------------------------------------------


def same(one, other):
    assert one.sampling == other.sampling
    assert one.cutoff == other.cutoff
    for name in ("grid", "signal_loss", "leakage", "eigenvalues"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("stored", [False, True])
def test_the_same_seed_gives_the_same_numbers_on_any_number_of_processes(stored):
    S = similarities(observed=0.7)
    before = S.copy()
    given = Similarity(as_csr(S), absent="missing") if stored else S
    one = calibrate(given, n_bootstraps=6, random_state=3)
    same(one, calibrate(given, n_bootstraps=6, random_state=3))
    same(one, calibrate(given, n_bootstraps=6, random_state=3, n_jobs=2))
    for other in (4, None):
        assert not np.array_equal(one.leakage, calibrate(given, n_bootstraps=6, random_state=other).leakage)
    np.testing.assert_array_equal(S, before)


def test_the_iterative_solver_agrees_within_the_bootstraps_own_spread(monkeypatch):
    S = similarities(n=120, r=5)
    spread = [calibrate(S, n_bootstraps=5, random_state=seed) for seed in range(4)]
    monkeypatch.setattr(spectra, "_REDUCED_SIZE", 0)
    iterative = calibrate(S, n_bootstraps=5, random_state=0)
    # The same subsamples, another solver: closer by far than other subsamples are.
    assert iterative.cutoff == spread[0].cutoff
    shares = [each.sampling for each in spread]
    assert abs(iterative.sampling - spread[0].sampling) < 1e-6 < np.ptp(shares)
    np.testing.assert_allclose(iterative.eigenvalues, spread[0].eigenvalues, rtol=1e-8)


def test_single_precision_is_precise_enough():
    S = similarities()
    single, double = (calibrate(S.astype(dtype), n_bootstraps=3, random_state=0) for dtype in (np.float32, np.float64))
    assert single.cutoff == double.cutoff
    assert single.sampling == pytest.approx(double.sampling, abs=1e-4)


def test_settings_are_followed():
    S = similarities()
    found = calibrate(S, n_eigenpairs=8, grid=[0.3, 0.6, 0.9], tolerance=0.2, n_bootstraps=3, random_state=0)
    assert len(found.eigenvalues) == len(found.leakage) == 8
    assert found.grid.tolist() == [0.3, 0.6, 0.9]
    assert len(found.signal_loss) == 3
    assert (found.tolerance, found.n_bootstraps) == (0.2, 3)
    looser, stricter = (calibrate(S, tolerance=t, n_bootstraps=3, random_state=0).sampling for t in (0.3, 0.05))
    assert looser < stricter


@pytest.mark.parametrize(("n", "expected"), [(3, 2), (8, 2), (12, 3), (60, 15), (399, 99), (400, 100), (5000, 100)])
def test_the_default_is_a_quarter_of_the_items(n, expected):
    assert calibration.default_eigenpairs(n) == expected


# --- what is reported --------------------------------------------------------------------------------------------


def test_more_pairs_lose_less():
    found = calibrate(similarities(), n_bootstraps=5, random_state=0)
    assert np.all(np.diff(found.signal_loss) <= 1e-12)
    assert np.interp(found.sampling, found.grid, found.signal_loss) == pytest.approx(found.tolerance, abs=1e-6)


def test_the_summary_has_the_numbers():
    found = calibrate(similarities(), n_bootstraps=5, random_state=0)
    for number in (f"the {found.cutoff} stable", f"{found.sampling:.1%}", "90%", "5 random", "20 shares"):
        assert number in found.summary()
    assert re.fullmatch(r"Calibration\(sampling=0\.\d{3}, cutoff=\d+, floor=0\.\d{3}\)", repr(found))


@pytest.mark.filterwarnings("error::UserWarning")
def test_sampling_is_not_below_the_floor():
    # Two leading directions of nearly the same size as the third: the floor is near 1/2, above what 90% needs.
    S = np.kron(np.diag([1.0, 0.99, 0.98]), np.ones((20, 20)))
    found = calibrate(S, n_eigenpairs=3, tolerance=0.5, n_bootstraps=3, random_state=0)
    assert found.cutoff == 2
    ratio = found.eigenvalues[2] / found.eigenvalues[1]
    assert found.floor == pytest.approx(ratio**2 / (1 + ratio**2))
    assert found.sampling == found.floor > 0.49
    assert found.signal_loss[0] < 1


def test_a_grid_that_is_never_enough_is_a_warning_that_names_what_was_taken():
    with pytest.warns(UserWarning, match=r"90% .* 0\.20, .*%") as caught:
        found = calibrate(similarities(snr=0.3), grid=[0.1, 0.15, 0.2], n_bootstraps=3, random_state=0)
    assert found.sampling == max(0.2, found.floor)
    assert caught[0].filename == __file__


def test_real_animals_keep_nine_directions_in_seventy_percent_of_the_pairs(data_path):
    S = np.load(data_path("peterson_animals/animals_similarity.npy"))
    found = calibrate(S, n_eigenpairs=30, n_bootstraps=20, random_state=0)
    assert found.cutoff == 9
    assert found.sampling == pytest.approx(0.70, abs=0.02)


# --- corner cases ------------------------------------------------------------------------------------------------


def rank_one(n):
    return np.outer(np.arange(1, n + 1), np.arange(1, n + 1)) / n**2


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("n", [3, 4, 5, 9, 40])
@pytest.mark.parametrize("make", [np.eye, rank_one, lambda n: np.ones((n, n))])
def test_small_and_degenerate_similarities_give_finite_numbers(make, n, stored):
    S = make(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        found = calibrate(Similarity(as_csr(S), absent="zero") if stored else S, n_bootstraps=3, random_state=0)
    assert found.cutoff >= 2
    assert 0 < found.sampling < 1
    assert 0 <= found.floor <= 0.5  # an eigenvalue is not larger than the one before
    if n == 40 and make is not np.eye:  # rounding errors do not make a floor
        assert found.floor == 0.0
    assert np.isfinite(found.signal_loss).all()
    assert np.isfinite(found.leakage).all()


@pytest.mark.filterwarnings("ignore:values looks like")
@pytest.mark.parametrize("seed", [85, 103, 108])
def test_all_leading_eigenpairs_are_found_where_many_are_equal(seed):
    # LAPACK's choice of some eigenvalues returns fewer than asked for of these, without an error.
    rng = np.random.default_rng(seed)
    S = np.eye(20)
    for _ in range(8):
        i, j = rng.choice(20, 2, replace=False)
        S[i, j] = S[j, i] = round(rng.uniform(0.3, 8), 2)
    values, vectors = spectra.leading_eigenpairs(S, 5, np.random.RandomState(0))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(S)[::-1][:5], atol=1e-10)
    np.testing.assert_allclose(S @ vectors, vectors * values, atol=1e-10)


def test_zeros_have_no_structure_to_keep():
    with pytest.warns(UserWarning, match=r"keeps 0\.0%"):
        found = calibrate(np.zeros((12, 12)), n_bootstraps=2, random_state=0)
    assert found.sampling == 0.95
    assert found.floor == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("grid", grid) for grid in ([0.5], [], [[0.1, 0.2], [0.3, 0.4]], 0.5, [0.4, 0.4], [0.0, 0.5], [0.5, 1.0])],
        *[("grid", grid) for grid in ([0.5, np.nan], "fine", ["a", "b"])],
        ("n_eigenpairs", 61),
        ("tolerance", 1.0),
        ("n_bootstraps", 2.5),
        ("S", np.ones((2, 2))),
    ],
)
def test_bad_input_is_named_before_any_work(monkeypatch, name, value):
    monkeypatch.setattr(calibration, "reference", lambda *_: pytest.fail("work was started"))
    with pytest.raises(ParameterError) as caught:
        calibrate(**{"S": similarities(), name: value})
    assert caught.value.name == name


def test_a_grid_may_be_any_iterable():
    shares = [0.2, 0.5, 0.9]
    lists = calibrate(similarities(), grid=shares, n_bootstraps=2, random_state=0)
    same(lists, calibrate(similarities(), grid=(share for share in shares), n_bootstraps=2, random_state=0))
    same(lists, calibrate(similarities(), grid=np.array(shares), n_bootstraps=2, random_state=0))


def test_leading_eigenpairs_of_sparse_groups_are_found():
    group = np.random.default_rng(59).integers(0, 3, 96)
    S = (group[:, None] == group) - np.eye(96)
    values, _ = spectra.leading_eigenpairs(sparse.csr_array(S), 12, np.random.RandomState(0))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(S)[::-1][:12], atol=1e-8)
    if "rng" in inspect.signature(eigsh).parameters:
        again = [spectra.leading_eigenpairs(sparse.csr_array(S), 12, np.random.RandomState(0)) for _ in range(5)]
        assert all(np.array_equal(again[0][1], vectors) for _, vectors in again)
