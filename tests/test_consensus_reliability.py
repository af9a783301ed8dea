"""split_half_reliability, against the obvious double loop and the promises that it makes."""

import time

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment

from simdims import _parallel, simulate
from simdims.consensus import align, central_run, fit_consensus, spearman_brown, split_half_reliability


def noisy_runs(n_runs, n_items=40, n_components=4, noise=0.1, seed=0):
    """Runs that share their dimensions up to noise and the order of columns."""
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(n_items, n_components, random_state=seed)
    runs = [W + rng.normal(scale=noise, size=W.shape) for _ in range(n_runs)]
    return np.stack([run[:, rng.permutation(n_components)] for run in runs])


def slow_reliability(runs, n_splits, random_state):
    """Every split, every pair of runs and every dimension in turn."""
    central = runs[central_run(runs)]
    aligned = [align(run, central).embedding for run in runs]
    n_items, n_components = central.shape
    root = _parallel.root_seed(random_state)
    values = [[] for _ in range(n_components)]
    for split in range(n_splits):
        order = np.random.default_rng(_parallel.seed_of(root, 0, split)).permutation(n_items)
        one, other = order[: n_items // 2], order[n_items // 2 :]
        for first in range(len(aligned)):
            for second in range(first + 1, len(aligned)):
                a, b = aligned[first], aligned[second]
                C = np.array([[np.corrcoef(x, y)[0, 1] for y in b[one].T] for x in a[one].T])
                partner = linear_sum_assignment(-C)[1]
                for k in range(n_components):
                    values[k].append(np.corrcoef(a[other, k], b[other, partner[k]])[0, 1])
    means = np.array([np.mean(of_dimension) for of_dimension in values])
    return 2 * means / (1 + np.abs(means))


@pytest.mark.parametrize("noise", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("n_items", [20, 31])
def test_it_is_what_a_double_loop_finds(noise, n_items):
    runs = noisy_runs(5, n_items, 3, noise)
    np.testing.assert_allclose(split_half_reliability(runs, n_splits=4, random_state=7), slow_reliability(runs, 4, 7))


@pytest.mark.parametrize("n_items", [12, 60])
@pytest.mark.parametrize("n_components", [1, 6])
def test_identical_runs_are_reliable(n_items, n_components):
    """Also where columns are so sparse that one half of the items does not have some of them."""
    rng = np.random.default_rng(0)
    W = np.maximum(rng.normal(size=(n_items, n_components)) - 0.8, 0)
    W[:2] += 1e-3 * np.arange(1, n_components + 1) * np.array([[1], [2]])
    runs = [W[:, rng.permutation(n_components)] for _ in range(4)]
    np.testing.assert_allclose(split_half_reliability(runs, random_state=0), 1.0, rtol=1e-12)


def test_unrelated_runs_are_not():
    runs = np.random.default_rng(0).random((8, 200, 6))
    values = split_half_reliability(runs, n_splits=20, random_state=0)
    assert abs(values.mean()) < 0.15


def test_pairs_that_disagree_show_beside_pairs_at_the_same_optimum():
    """Twenty at r = 1, ten at 0.2: five equal runs and one other are ten and five pairs, in two splits."""
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=(2, 100_000, 1))
    runs = [shared] * 5 + [0.2 * shared + np.sqrt(1 - 0.2**2) * own]
    value = split_half_reliability(runs, n_splits=2, random_state=0)
    mean = (20 * 1.0 + 10 * 0.2) / 30
    assert value == pytest.approx(2 * mean / (1 + mean), abs=0.005)
    assert value < 0.86


def test_an_unstable_dimension_is_named_by_the_central_run():
    rng = np.random.default_rng(3)
    runs = noisy_runs(6, 100, 4, noise=0.02, seed=3)
    central = central_run(runs)
    for place, run in enumerate(runs):
        if place != central:
            partners = align(run, runs[central]).permutation
            run[:, partners[2]] = rng.permutation(run[:, partners[2]])
    assert central_run(runs) == central
    values = split_half_reliability(runs, n_splits=20, random_state=0)
    assert abs(values[2]) < 0.3
    assert np.delete(values, 2).min() > 0.95


def test_spearman_brown_predicts_the_correlation_of_doubled_tests():
    """Two measures that share a part: the correlation of sums of two of each is what the formula says."""
    rng = np.random.default_rng(0)
    for shared in (0.2, 0.5, 0.9):
        truth = rng.normal(size=200_000) * np.sqrt(shared)
        a, b, c, d = truth + rng.normal(size=(4, 200_000)) * np.sqrt(1 - shared)
        assert spearman_brown(np.corrcoef(a, b)[0, 1]) == pytest.approx(np.corrcoef(a + b, c + d)[0, 1], abs=0.01)


def test_spearman_brown_is_bounded_and_odd():
    r = np.linspace(0, 1, 101)
    np.testing.assert_allclose(spearman_brown(r), 2 * r / (1 + r))
    np.testing.assert_allclose(spearman_brown(-r), -spearman_brown(r))
    assert (np.diff(spearman_brown(np.linspace(-1, 1, 101))) > 0).all()


@pytest.mark.parametrize("kind", [list, tuple, np.stack, lambda runs: [pd.DataFrame(run) for run in runs]])
def test_runs_may_come_in_any_shape(kind):
    runs = noisy_runs(4)
    before = runs.copy()
    expected = split_half_reliability(runs, n_splits=5, random_state=0)
    np.testing.assert_array_equal(split_half_reliability(kind(list(runs)), n_splits=5, random_state=0), expected)
    np.testing.assert_array_equal(runs, before)


def test_a_consensus_gives_its_own_reliability_again():
    W = simulate.dirichlet(40, 4, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.5, random_state=0)
    consensus = fit_consensus(S, 5, n_runs=5, n_splits=7, random_state=3)
    again = split_half_reliability(consensus, n_splits=7, random_state=3)
    np.testing.assert_array_equal(again, consensus.reliability)
    np.testing.assert_allclose(
        split_half_reliability(consensus.embeddings, n_splits=7, random_state=3), consensus.reliability
    )


def test_a_seed_fixes_the_splits_and_workers_do_not_change_them():
    runs = noisy_runs(5, noise=0.3)
    one = split_half_reliability(runs, n_splits=10, random_state=0)
    np.testing.assert_array_equal(split_half_reliability(runs, n_splits=10, random_state=0), one)
    np.testing.assert_array_equal(split_half_reliability(runs, n_splits=10, random_state=0, n_jobs=2), one)
    assert (split_half_reliability(runs, n_splits=10, random_state=1) != one).any()


def test_a_dead_dimension_has_none_and_leaves_the_others_alone():
    runs = np.concatenate([noisy_runs(4, noise=0.02), np.zeros((4, 40, 1))], axis=2)
    values = split_half_reliability(runs, n_splits=10, random_state=0)
    assert values[-1] == 0
    np.testing.assert_allclose(values[:-1], split_half_reliability(runs[:, :, :-1], n_splits=10, random_state=0))


def test_a_dimension_that_some_runs_lack_is_less_reliable():
    W = simulate.dirichlet(60, 3, random_state=0)
    without = W.copy()
    without[:, 1] = 0
    values = split_half_reliability([without, W, W, W], n_splits=10, random_state=0)
    np.testing.assert_allclose(values, [1, spearman_brown(3 / 6), 1])


def test_a_dimension_of_a_single_item_has_no_reliability():
    runs = noisy_runs(3, noise=0.02)
    lone = np.zeros((3, 40, 1))
    lone[:, 5] = 1
    values = split_half_reliability(np.concatenate([runs, lone], axis=2), n_splits=20, random_state=0)
    assert values[-1] == 0


NAMED = [pd.DataFrame(run, index=[f"item {i}" for i in range(40)]) for run in noisy_runs(2)]


@pytest.mark.parametrize(
    "embeddings",
    [
        noisy_runs(1),
        noisy_runs(2)[0],
        NAMED[0],
        3,
        [noisy_runs(2)[0], noisy_runs(2, n_components=3)[0]],
        noisy_runs(2) * np.nan,
        [NAMED[0], NAMED[1].iloc[::-1]],
        noisy_runs(2, n_items=3),
    ],
    ids=["one run", "two-dimensional", "a table", "a number", "other shapes", "nan", "another order", "three items"],
)
def test_unsuitable_runs_are_refused(embeddings):
    with pytest.raises((ValueError, TypeError), match=r"^embeddings(\[\d\])? must"):
        split_half_reliability(embeddings)


@pytest.mark.slow
def test_thirty_large_runs_take_less_than_a_minute():
    runs = noisy_runs(30, 1854, 40, noise=0.05)
    start = time.perf_counter()
    split_half_reliability(runs, n_splits=100, random_state=0, n_jobs=2)
    assert time.perf_counter() - start < 60
