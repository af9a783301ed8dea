"""The definitions behind the paper's simulations, against slow versions, and what their quick runs show."""

import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ortho_group

from paper import Settings, convergence, leakage, missing, power, rank, recovery, reproduce
from paper.convergence import THRESHOLD, draw_similarities, follow, lagrangian, rises
from paper.leakage import ENTRYWISE, degrees_of_freedom, identifiability, jacobian, measure_identifiability
from paper.misspecified_rank import is_monotone, lower_bound, squared_distance
from simdims import select_rank, simulate
from simdims.solvers import admm, as_problem


def test_the_alignment_of_rotations_is_that_of_the_best_permutation():
    W = simulate.dirichlet(30, 3, alpha=1.0, random_state=0)
    expected = []
    for Q in ortho_group.rvs(3, size=4, random_state=np.random.RandomState(7)):
        X = W @ Q
        np.testing.assert_allclose(X @ X.T, W @ W.T)
        X = X * np.where(X.mean(axis=0) > 0, 1, -1)
        correlations = np.corrcoef(W.T, X.T)[:3, 3:]
        expected.append(max(correlations[range(3), list(order)].mean() for order in itertools.permutations(range(3))))
    found = recovery.alignment_of_rotations(W, np.random.RandomState(7), n_rotations=4)
    assert found == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(("n_items", "n_components"), [(84, 2), (210, 5)])
def test_the_share_observed_gives_that_many_similarities_a_parameter(n_items, n_components):
    S = np.ones((n_items, n_items))
    for density in (0.5, 3.0, 20.0):
        share = missing.share_observed(density, n_items, n_components)
        masked = simulate.mask_pairs(S, share, random_state=0)
        n_observed = np.count_nonzero(~np.isnan(masked[np.triu_indices(n_items, 1)]))
        assert n_observed / (n_items * n_components) == pytest.approx(density, rel=0.15)

    with pytest.raises(ValueError, match=r"density .*2\.25 .*10 items .*rank 2.*3"):
        missing.share_observed(3, 10, 2)


def incomplete(n_items: int = 14) -> np.ndarray:
    W = simulate.dirichlet(n_items, 3, alpha=0.5, random_state=1)
    return simulate.mask_pairs(W @ W.T, 0.7, random_state=2)


def slow_median(pairs: np.ndarray, i: int, j: int) -> float:
    return float(np.nanmedian(pairs[:, j]))


def slow_neighbours(pairs: np.ndarray, i: int, j: int) -> float:
    """The mean of the five nearest items that have a value; distances over what two items share, scaled to all."""
    near = []
    for k in range(len(pairs)):
        if np.isnan(pairs[k, j]):
            continue
        squares = [(a - b) ** 2 for a, b in zip(pairs[i], pairs[k], strict=True) if not np.isnan(a + b)]
        near.append((len(pairs) / len(squares) * sum(squares), pairs[k, j]))
    return float(np.mean([value for _, value in sorted(near)[:5]]))


@pytest.mark.parametrize(("method", "slow"), [(missing.MEDIAN, slow_median), (missing.KNN, slow_neighbours)])
def test_imputation_fills_what_is_missing_without_looking_at_the_diagonal(method, slow):
    S = incomplete()
    filled = missing.impute(S, method)
    observed = ~np.isnan(S)
    np.testing.assert_array_equal(filled[observed], S[observed])
    np.testing.assert_array_equal(filled, filled.T)
    pairs = S.copy()
    np.fill_diagonal(pairs, np.nan)
    for i, j in zip(*np.nonzero(~observed), strict=True):
        assert filled[i, j] == pytest.approx((slow(pairs, i, j) + slow(pairs, j, i)) / 2)


def test_a_level_counts_where_a_method_is_above_both_imputations():
    rows = []
    for density, values in {0.5: (0.1, 0.4, 0.2, 0.0), 2.0: (0.9, 0.5, 0.6, 0.1)}.items():
        for method, value in zip(missing.METHODS, values, strict=True):
            rows += [{"density": density, "method": method, "alignment": value + shift} for shift in (-0.05, 0.05)]
    runs = pd.DataFrame(rows)
    assert missing.levels_above(runs, "alignment", missing.BCD).to_dict() == {0.5: False, 2.0: True}
    assert missing.levels_above(runs, "alignment", missing.ADMM).to_dict() == {0.5: True, 2.0: False}


def test_the_papers_protocol_is_read_off_the_same_fits():
    W = simulate.dirichlet(40, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.5, random_state=0)
    options = {"sampling": 0.6, "n_repeats": 2, "random_state": 0, "progress": False}
    averaged = select_rank(S, range(1, 7), **options)
    papers = select_rank(S, range(1, 7), protocol="paper", **options)
    assert rank.rank_of_single_fits(averaged.scores) == papers.rank


def test_errors_are_means_of_absolute_differences():
    runs = pd.DataFrame({"alpha": [0.1, 0.1, 2.0], "snr": [1.0, 0.5, 0.5], "observed": [1.0, 0.5, 0.5], "rank": 4})
    for place, method in enumerate(rank.METHODS):
        runs[method] = [4, 6 + place, 1]
    table = rank.errors_by_level(runs).set_index("data sets")
    assert table["n"].to_dict() == {
        "all": 3, "alpha 0.1": 2, "alpha 2": 1, "SNR 0.5": 2, "SNR 1": 1, "observed 50%": 2, "observed 100%": 1,
        "rank 4": 3,
    }  # fmt: skip
    for place, method in enumerate(rank.METHODS):
        assert table.loc["all", method] == pytest.approx((0 + 2 + place + 3) / 3)
        assert table.loc["SNR 0.5", method] == pytest.approx((2 + place + 3) / 2)
        assert table.loc["alpha 2", method] == 3


@pytest.mark.slow
def test_dimensions_are_recovered_until_they_are_diffuse():
    outcome = reproduce("recovery", size="quick", progress=False).outcome
    alignment = outcome.tables["Properties and factor alignment, 5 dimensions"].set_index("alpha")
    assert (alignment.loc[[0.1, 0.3, 1.0], "SNR 1"] > 0.95).all()
    assert (alignment.loc[[0.1, 0.3, 1.0], "SNR 0.3"] > 0.85).all()
    assert (alignment.loc[[10.0, 100.0, 1000.0], ["SNR 1", "SNR 0.3"]] < 0.85).all(axis=None)
    assert all(claim.agrees for claim in outcome.claims)


@pytest.mark.slow
def test_leaving_pairs_out_of_the_fit_is_better_than_imputing_them():
    outcome = reproduce("missing", size="quick", n_jobs=2, progress=False).outcome
    for measure, words in missing.MEASURES.items():
        table = outcome.tables[f"{words}, no noise"].set_index("observed per parameter")
        determined = table[table.index >= 1]
        above = determined[missing.BCD] > determined[list(missing.IMPUTATIONS)].max(axis=1)
        assert above.mean() >= 0.8, measure
    variance = outcome.tables["Held-out explained variance, no noise"].set_index("observed per parameter")
    assert (variance.loc[variance.index >= 2, missing.BCD] > 0.95).all()
    assert variance[missing.MEDIAN].max() < 0.1


@pytest.mark.slow
def test_cross_validation_finds_the_rank_better_than_the_scree_test():
    table = reproduce("rank", size="quick", n_jobs=2, progress=False).outcome.tables
    errors = table["Mean absolute error of the number of dimensions"].set_index("data sets").loc["all"]
    assert errors[rank.OURS] < errors[rank.SCREE]


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
    for fitted, true_rank in ((4, 4), (2, 8), (16, 4)):
        longer = (fitted / true_rank) ** 0.5
        assert lower_bound(fitted, true_rank) == pytest.approx((1 - np.sqrt(longer)) ** 2)


def test_errors_must_grow_on_both_sides_to_be_monotone():
    table = pd.DataFrame(
        {"snr": 1.0, "true rank": 3, "dimensions": [1, 2, 3, 4, 5], "error": [0.5, 0.2, 0.0, 0.1, 0.3]}
    )
    assert is_monotone(table)
    assert not is_monotone(table.assign(error=[0.1, 0.2, 0.0, 0.1, 0.3]))
    assert not is_monotone(table.assign(error=[0.5, 0.2, 0.0, 0.3, 0.1]))


def test_the_completion_needs_as_many_columns_as_dimensions_and_reads_no_others():
    W = simulate.dirichlet(15, 3, alpha=1.0, random_state=0)
    S = W @ W.T
    items = np.array([2, 7, 11])
    np.testing.assert_allclose(leakage.nystroem(S, items), S, atol=1e-12)
    assert np.abs(leakage.nystroem(S, items[:2]) - S).max() > 0.01
    hidden = S.copy()
    others = np.setdiff1d(np.arange(15), items)
    hidden[np.ix_(others, others)] = np.nan
    np.testing.assert_array_equal(leakage.nystroem(hidden, items), leakage.nystroem(S, items))


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
    order = np.random.default_rng(seed).permutation(n_items * (n_items - 1) // 2)
    upper = np.stack(np.triu_indices(n_items, 1))[:, order]
    pairs = np.concatenate([np.tile(np.arange(n_items), (2, 1)), upper], axis=1)
    ranks = [np.linalg.matrix_rank(jacobian(W, *pairs[:, :count])) for count in range(1, pairs.shape[1] + 1)]
    assert found["first_full"] == 1 + ranks.index(degrees_of_freedom(n_items, rank))
    assert found["ranks"] == [ranks[count - 1] for count in found["counts"]]
    assert found["rank_of_all"] == ranks[-1] == degrees_of_freedom(n_items, rank)


def test_entrywise_cross_validation_trains_on_all_pairs_but_a_fold_and_the_cap():
    cell = {"n_items": 30, "true_rank": 2, "snr": 0.9, "n_repeats": 1, "seed": 3}
    found = leakage.measure_validation(cell)
    assert found["entrywise"]["share"] == pytest.approx(ENTRYWISE) == pytest.approx(0.95 * 4 / 5)
    assert found["restricted"]["share"] < ENTRYWISE
    assert found["entrywise"]["smallest"] == found["ranks"][int(np.argmin(found["entrywise"]["errors"]))]


def test_one_deficient_jacobian_is_enough_to_be_told():
    cell = {"n_items": 10, "rank": 2, "first_full": 25}
    full = degrees_of_freedom(10, 2)
    table = identifiability(pd.DataFrame([{**cell, "rank_of_all": full}, {**cell, "rank_of_all": full - 1}]))
    assert table["rank, all observed"][0] == full - 1


def test_no_run_has_no_rise():
    nothing = pd.DataFrame({"n_rises": [], "n_steps": [], "largest_rise": []}, dtype=int)
    assert convergence.counted(nothing) == "0 of 0 steps rise"


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
    small, large = (follow(S, W, rho=rho, bounds=None, n_iter=30)["lagrangian"] for rho in (0.1, THRESHOLD))
    assert len(rises(np.array(small))) > 0 == len(rises(np.array(large)))


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


def wilson(n_found, n):
    found = binomtest(n_found, n).proportion_ci(method="wilson")
    return found.low, found.high


@pytest.mark.parametrize("n_columns", [1, 6])
@pytest.mark.parametrize("n_found", [0, 1, 7, 20])
def test_the_interval_of_columns_that_are_found_together_is_wilsons(n_found, n_columns):
    found, data_set = np.repeat(np.arange(20) < n_found, n_columns), np.repeat(np.arange(20), n_columns)
    np.testing.assert_allclose(power.interval(found, data_set), wilson(n_found, 20), atol=1e-4)


def test_the_interval_covers_the_share_of_clustered_columns():
    """Data sets of 8 columns whose chances differ: about 95% of the intervals hold the mean chance, 0.5."""
    rng = np.random.default_rng(0)
    data_set = np.repeat(np.arange(40), 8)
    n_covered, n_covered_binomial = 0, 0
    for _ in range(400):
        found = rng.random(320) < rng.beta(0.5, 0.5, 40)[data_set]
        low, high = power.interval(found, data_set)
        n_covered += low <= 0.5 <= high
        low, high = wilson(int(found.sum()), 320)
        n_covered_binomial += low <= 0.5 <= high
    assert 0.91 <= n_covered / 400 <= 0.98
    assert n_covered_binomial / 400 < 0.75


def random_study(seed=0):
    """A study in two designs whose findings are drawn by chance, three columns a data set."""
    rng = np.random.default_rng(seed)
    names = ["design", "noise", "snr", "repeat", "test", "column"]
    levels = [("a", "b"), ("features", "similarities"), (0.0, 0.1, 0.5), range(8), power.TESTS, range(3)]
    study = pd.DataFrame(itertools.product(*levels), columns=names)
    variance = rng.random((8, 3))
    study["variance"] = variance[study["repeat"], study["column"]]
    study["pvalue"] = rng.random(len(study)) ** 3
    study["significant"] = study["pvalue"] < 0.02
    return study


def test_the_table_holds_shares_and_levels():
    study = random_study()
    table = power.power_table(study)
    assert list(table.columns) == ["design", "noise on", "test", "SNR 0", "SNR 0.1", "SNR 0.5"]
    assert len(table) == 2 * 2 * 3
    for row in table.to_dict("records"):
        cell = study[
            study["design"].eq(row["design"]) & study["noise"].eq(row["noise on"]) & study["test"].eq(row["test"])
        ]
        for snr, here in cell.groupby("snr"):
            found = here["significant"] if snr else here["pvalue"] <= 0.05
            assert row[f"SNR {snr:g}"] == pytest.approx(found.mean())


def test_quartiles_count_every_column_once_in_the_order_of_variance():
    study = random_study()
    study = study[(study["design"] == "a") & (study["noise"] == "features") & (study["snr"] == 0.5)]
    table = power.by_variance(study)
    for test in power.TESTS:
        ordered = study[study["test"] == test].sort_values("variance")
        rows = table[table["test"] == test]
        for number, row in enumerate(rows.to_dict("records")):
            quarter = ordered.iloc[6 * number : 6 * number + 6]
            assert (row["quartile"], row["columns"]) == (number + 1, 6)
            assert row["power"] == pytest.approx(quarter["significant"].mean())
            assert row["variance from"] <= quarter["variance"].min()
            assert quarter["variance"].max() <= row["to"]
            assert row["95% from"] <= row["power"] <= row["95% to"]


def test_the_advantage_is_paired_by_repeat():
    study = random_study()
    mean, error = power.advantage(study, "b", "features", (0.1, 0.5))
    here = study[(study["design"] == "b") & (study["noise"] == "features") & (study["snr"] > 0)]
    shares = here.groupby(["test", "repeat"])["significant"].mean()
    differences = shares["dimension"] - shares["rsa"]
    assert mean == pytest.approx(np.mean(differences))
    assert error == pytest.approx(np.std(differences, ddof=1) / np.sqrt(8))


@pytest.mark.parametrize(
    ("share", "snr", "words"),
    [(0.2, 0.1, "<= 0.1"), (0.5, 0.25, "0.25"), (0.7, 0.4, "0.40"), (0.9, np.inf, "> 0.6")],
)
def test_the_ratio_at_which_a_curve_reaches_a_power(share, snr, words):
    curve = {0.1: 0.2, 0.3: 0.6, 0.5: 0.8, 0.6: 0.7}
    assert power.ratio_reaching(curve, share) == pytest.approx(snr)
    assert power.ratio_text(curve, share) == words


def test_the_embedding_is_read_and_clipped_and_without_a_file_simulated(tmp_path):
    W = np.random.default_rng(0).normal(0.3, 0.4, (30, 6))
    for data in (None, tmp_path):
        embedding, is_spose = power.read_embedding(Settings(data=data))
        assert (is_spose, embedding.shape) == (False, (1854, 49))
    (tmp_path / power.SPOSE_FILE).parent.mkdir()
    np.savetxt(tmp_path / power.SPOSE_FILE, W)
    embedding, is_spose = power.read_embedding(Settings(data=tmp_path))
    assert is_spose
    np.testing.assert_allclose(embedding, np.where(W > 0, W, 0))


@pytest.mark.slow
def test_quick_shows_where_each_test_is_the_better_one():
    folder = Path(os.environ.get("SIMDIMS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    data = folder if (folder / power.SPOSE_FILE).exists() else None
    outcome = power.run(Settings(size="quick", data=data, n_jobs=2, progress=False))
    shares, quartiles = outcome.tables.values()
    shares = shares.set_index(["noise on", "design", "test"]).sort_index()
    designs = [power.THREES, power.MIXED]
    if data is not None:  # an embedding that is made up has too few different dimensions for a difference at SNR 0.1
        designs.append(power.SPOSE)
    for design in designs:
        features, similarities = (shares.loc[noise, design] for noise in ("features", "similarities"))
        middle, low = ["SNR 0.1", "SNR 0.3", "SNR 0.5"], ["SNR 0.05", "SNR 0.1"]
        assert (features.loc["dimension", middle] > features.loc["rsa", middle]).all()
        assert features.loc["dimension", middle].mean() > features.loc["rsa", middle].mean() + 0.1
        assert (similarities.loc["dimension", low] < similarities.loc["rsa", low]).all()
    if data is None:
        pytest.skip("the rest needs SPoSE's embedding, which is not there")
    clean = quartiles[quartiles["SNR"] == 1].pivot_table(index="quartile", columns="test", values="power")
    assert clean["rsa"][4] > clean["rsa"][1] + 0.3
    assert (clean["dimension"] > 0.8).all()
    directions = {claim.what.split(":")[0]: claim.agrees for claim in outcome.claims[:6]}
    assert directions["3x3x3x3, noise on features"] is True
    assert directions["3x3x3x3, noise on similarities"] is False
