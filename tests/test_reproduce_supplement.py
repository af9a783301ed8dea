"""The supplement's analyses: a wrong number of dimensions, leakage, and the convergence of ADMM."""

import itertools

import numpy as np
import pandas as pd
import pytest

from simdims import simulate
from simdims.reproduce import reproduce
from simdims.reproduce.convergence import THRESHOLD, _counted, draw_similarities, follow, lagrangian, rises
from simdims.reproduce.leakage import ENTRYWISE, identifiability, is_larger, measure_validation
from simdims.reproduce.leakage_algebra import (
    degrees_of_freedom,
    jacobian,
    measure_identifiability,
    nystroem,
)
from simdims.reproduce.misspecified_rank import is_monotone, lower_bound, squared_distance
from simdims.solvers import admm, as_problem

NAMES = ("misspecified-rank", "leakage", "convergence")


@pytest.fixture(scope="module")
def smoke():
    """Every analysis once."""
    return {name: reproduce(name, size="smoke", progress=False) for name in NAMES}


def same_tables(one, other):
    assert list(one.outcome.tables) == list(other.outcome.tables)
    for heading, table in one.outcome.tables.items():
        pd.testing.assert_frame_equal(table, other.outcome.tables[heading])


@pytest.mark.parametrize("name", NAMES)
def test_a_smoke_run_says_and_draws_something(smoke, name, tmp_path):
    found = smoke[name]
    assert found.outcome.claims
    assert all(claim.published and claim.ours for claim in found.outcome.claims)
    for heading, table in found.outcome.tables.items():
        assert len(table), heading
        assert np.isfinite(table.select_dtypes("number").to_numpy()).all(), heading
    for path in found.save(tmp_path):
        assert path.stat().st_size > 0
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert found.outcome.claims[0].what in found.summary()


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_was_stopped_goes_on_and_ends_as_one_from_scratch(smoke, name, tmp_path):
    def stop(progress):
        if progress.done == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        reproduce(name, size="smoke", checkpoint=tmp_path, progress=stop)
    steps = []
    same_tables(reproduce(name, size="smoke", checkpoint=tmp_path, progress=steps.append), smoke[name])
    assert steps[0].done == 3  # two were there
    steps.clear()
    same_tables(reproduce(name, size="smoke", checkpoint=tmp_path, progress=steps.append), smoke[name])
    assert steps == []


def test_another_seed_gives_other_data(smoke):
    other = reproduce("misspecified-rank", size="smoke", random_state=1, progress=False)
    ours, theirs = (next(iter(found.outcome.tables.values()))["error"] for found in (smoke["misspecified-rank"], other))
    assert not np.allclose(ours, theirs)


def test_the_first_claim_of_convergence_is_the_theorem(smoke):
    claim = smoke["convergence"].outcome.claims[0]
    assert claim.what == "the Lagrangian never rises from the second iteration on for rho >= sqrt 2"
    assert claim.agrees


@pytest.mark.parametrize("n_found", [2, 3, 4])
def test_the_distance_is_the_smallest_over_all_orders_of_columns(n_found):
    rng = np.random.default_rng(n_found)
    true, found = rng.uniform(size=(10, 3)), rng.uniform(size=(10, n_found))
    width = max(3, n_found)
    padded = np.zeros((10, width)), np.zeros((10, width))
    padded[0][:, :3], padded[1][:, :n_found] = true, found
    by_hand = min(np.sum((padded[0] - padded[1][:, order]) ** 2) for order in itertools.permutations(range(width)))
    assert squared_distance(true, found) == pytest.approx(by_hand)
    assert squared_distance(true, true[:, [2, 0, 1]]) == 0


def test_the_bound_is_that_of_two_lengths():
    """(1 - (r2 / r*)^(1/4))^2 is the distance of two aligned vectors whose squared lengths have the ratio sqrt."""
    for rank, true_rank in ((4, 4), (2, 8), (16, 4)):
        longer = (rank / true_rank) ** 0.5
        assert lower_bound(rank, true_rank) == pytest.approx((1 - np.sqrt(longer)) ** 2)


def test_errors_must_grow_on_both_sides_to_be_monotone():
    table = pd.DataFrame(
        {"snr": 1.0, "true rank": 3, "dimensions": [1, 2, 3, 4, 5], "error": [0.5, 0.2, 0.0, 0.1, 0.3]}
    )
    assert is_monotone(table)
    assert not is_monotone(table.assign(error=[0.1, 0.2, 0.0, 0.1, 0.3]))
    assert not is_monotone(table.assign(error=[0.5, 0.2, 0.0, 0.3, 0.1]))


def test_the_completion_is_exact_from_as_many_columns_as_dimensions_and_not_from_fewer():
    W = simulate.dirichlet(15, 3, alpha=1.0, random_state=0)
    S = W @ W.T
    items = np.array([2, 7, 11])
    np.testing.assert_allclose(nystroem(S, items), S, atol=1e-12)
    assert np.abs(nystroem(S, items[:2]) - S).max() > 0.01


def test_the_completion_reads_observed_columns_only():
    W = simulate.dirichlet(12, 3, alpha=1.0, random_state=1)
    S = W @ W.T
    items = np.array([0, 4, 9])
    hidden = S.copy()
    others = np.setdiff1d(np.arange(12), items)
    hidden[np.ix_(others, others)] = np.nan
    np.testing.assert_array_equal(nystroem(hidden, items), nystroem(S, items))


def test_the_jacobian_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    W = rng.uniform(size=(6, 3))
    rows, columns = np.array([0, 1, 2, 4, 5]), np.array([0, 3, 5, 4, 0])
    found = jacobian(W, rows, columns)
    step = 1e-6
    for k in range(W.size):
        change = np.zeros(W.size)
        change[k] = step
        up, down = W + change.reshape(W.shape), W - change.reshape(W.shape)
        slope = (np.sum(up[rows] * up[columns], axis=1) - np.sum(down[rows] * down[columns], axis=1)) / (2 * step)
        np.testing.assert_allclose(found[:, k], slope, atol=1e-8)


@pytest.mark.parametrize(("n_items", "rank"), [(8, 1), (8, 3), (12, 5)])
def test_the_jacobian_of_all_pairs_misses_the_rotations(n_items, rank):
    W = np.random.default_rng(rank).normal(size=(n_items, rank))
    found = jacobian(W, *np.triu_indices(n_items))
    assert np.linalg.matrix_rank(found) == degrees_of_freedom(n_items, rank) == n_items * rank - rank * (rank - 1) / 2
    turn = np.random.default_rng(0).normal(size=(rank, rank))
    np.testing.assert_allclose(found @ (W @ (turn - turn.T)).ravel(), 0, atol=1e-10)


def test_the_rank_is_full_from_the_number_that_the_search_finds_and_not_before():
    n_items, rank, seed = 12, 3, 5
    found = measure_identifiability({"n_items": n_items, "rank": rank, "seed": seed})
    W = simulate.dirichlet(n_items, rank, alpha=1.0, random_state=seed)
    upper = np.stack(np.triu_indices(n_items, 1))[
        :, np.random.default_rng(seed).permutation(n_items * (n_items - 1) // 2)
    ]
    pairs = np.concatenate([np.tile(np.arange(n_items), (2, 1)), upper], axis=1)
    ranks = [np.linalg.matrix_rank(jacobian(W, *pairs[:, :count])) for count in range(1, pairs.shape[1] + 1)]
    assert found["first_full"] == 1 + ranks.index(degrees_of_freedom(n_items, rank))
    assert found["ranks"] == [ranks[count - 1] for count in found["counts"]]
    assert found["rank_of_all"] == ranks[-1] == degrees_of_freedom(n_items, rank)


def test_entrywise_cross_validation_trains_on_all_pairs_but_a_fold_and_the_cap():
    cell = {"n_items": 30, "true_rank": 2, "snr": 0.9, "n_repeats": 1, "seed": 3}
    found = measure_validation(cell)
    assert found["entrywise"]["share"] == pytest.approx(ENTRYWISE) == pytest.approx(0.95 * 4 / 5)
    assert found["restricted"]["share"] < ENTRYWISE
    assert found["entrywise"]["smallest"] == found["ranks"][int(np.argmin(found["entrywise"]["errors"]))]


def test_one_deficient_jacobian_is_enough_to_be_told():
    cell = {"n_items": 10, "rank": 2, "first_full": 25}
    full = degrees_of_freedom(10, 2)
    table = identifiability([{**cell, "rank_of_all": full}, {**cell, "rank_of_all": full - 1}])
    assert table["rank, all observed"][0] == full - 1


def test_a_larger_error_is_told_from_chance():
    few = np.array([0, 1, 0, 0, 1, 0, 0, 0, 1, 0])
    assert is_larger(few + 1 - few, few) is True
    assert is_larger(few, 1 - few + few) is False
    assert is_larger(few, few) is None
    assert is_larger(np.roll(few, 1), few) is None


def test_no_run_has_no_rise():
    assert _counted([]) == "0 of 0 steps rise"


def test_the_lagrangian_is_its_definition():
    S = draw_similarities("linear", 20, 3, 0)
    rng = np.random.default_rng(0)
    state = admm.initial_state(as_problem(S), rng.uniform(size=(20, 3)), rho=2.0)
    admm.iterate(as_problem(S), state, inner_iter=2, bounds=(0.1, 0.3))
    Z, total = state.Z, 0.0
    for i, j in itertools.product(range(20), range(20)):
        gap = Z[i, j] - state.W[i] @ state.W[j]
        total += state.dual[i, j] * gap + 0.5 * 2.0 * gap**2
        if not np.isnan(S[i, j]):
            total += 0.5 * (S[i, j] - Z[i, j]) ** 2
    assert lagrangian(S, state) == pytest.approx(total)


def test_an_entry_counts_as_projected_where_the_box_moves_it():
    S = draw_similarities("linear", 20, 3, 1)
    W = np.random.default_rng(1).uniform(size=(20, 3))
    low, high, rho = 0.2, 0.5, 3.0
    found = follow(S, W, rho=rho, bounds=(low, high), n_iter=3)
    problem = as_problem(S)
    free, boxed = (admm.initial_state(problem, W.copy(), rho=rho) for _ in range(2))
    admm.iterate(problem, free, inner_iter=10, bounds=None)
    admm.iterate(problem, boxed, inner_iter=10, bounds=(low, high))
    moved = ~np.isclose(free.Z, boxed.Z, atol=1e-12)
    assert 0 < moved.mean() < 1
    assert found["projected"][0] == pytest.approx(moved.mean())
    assert found["lagrangian"][1] == pytest.approx(lagrangian(S, boxed))
    lengths = [np.linalg.svd(W)[1][0], np.linalg.svd(boxed.W)[1][0]]
    for _ in range(2):
        admm.iterate(problem, boxed, inner_iter=10, bounds=(low, high))
        lengths.append(np.linalg.svd(boxed.W)[1][0])
    np.testing.assert_allclose(found["threshold"], np.sqrt(8 * np.array(found["projected"])) * max(lengths))
    assert np.ptp(lengths) > 0.1
    wide = follow(S, W, rho=rho, bounds=None, n_iter=3)
    assert wide["projected"] == [0, 0, 0]
    assert wide["kkt_gap"] < 1e-12 < found["kkt_gap"]


def test_only_steps_from_the_second_iteration_on_count_as_rises():
    np.testing.assert_allclose(rises(np.array([1.0, 2.0, 1.0, 1.5, 1.5 + 1e-12, 1.0])), [0.25])
    assert len(rises(np.array([1.0, 5.0, 4.0, 3.0]))) == 0


def test_a_small_rho_does_let_the_lagrangian_rise():
    S = draw_similarities("linear", 30, 3, 2)
    W = 0.3 * np.random.default_rng(2).uniform(size=(30, 3))
    steps = {
        rho: rises(np.array(follow(S, W, rho=rho, bounds=None, n_iter=30)["lagrangian"])) for rho in (0.1, THRESHOLD)
    }
    assert len(steps[0.1]) > 0
    assert len(steps[THRESHOLD]) == 0


@pytest.mark.slow
def test_quick_errors_stay_above_the_bound_and_grow():
    tables = reproduce("misspecified-rank", size="quick", n_jobs=2, progress=False).outcome.tables
    for table in tables.values():
        errors = table.set_index("dimensions")["error"]
        assert (errors >= table.set_index("dimensions")["bound"]).all()
        assert errors.idxmin() == 8
        assert errors[errors.index < 8].is_monotonic_decreasing
        assert errors[errors.index > 8].is_monotonic_increasing


@pytest.mark.slow
def test_quick_entrywise_cross_validation_has_a_plateau_where_the_restricted_one_rises():
    tables = reproduce("leakage", size="quick", n_jobs=2, progress=False).outcome.tables
    clean = tables["Held-out error without noise, relative to the variance"].set_index("scheme").loc["entrywise"]
    assert clean["at 2 r*"] < 1e-4 < 0.01 < clean["at r* - 1"]
    noisy = tables["Held-out error with noise, relative to the variance"]
    rise = noisy.pivot_table(index=["items", "SNR"], columns="scheme", values="rise to 2 r* (%)")
    assert (rise["entrywise"] < rise["restricted"]).all()
    assert rise.loc[(200, 0.9), "entrywise"] < 10 < 15 < rise.loc[(200, 0.9), "restricted"]
    assert rise.loc[(200, 0.9), "entrywise"] < rise.loc[(100, 0.9), "entrywise"]


@pytest.mark.slow
def test_quick_the_lagrangian_falls_above_the_threshold_and_not_far_below():
    found = reproduce("convergence", size="quick", n_jobs=2, progress=False).outcome
    assert found.claims[0].agrees
    steps = next(iter(found.tables.values())).set_index("rho")
    assert (steps.loc[steps.index >= THRESHOLD, "rises (no box)"] == 0).all()
    assert (steps.loc[[0.1, 0.3], "rises (no box)"] > 0).all()
