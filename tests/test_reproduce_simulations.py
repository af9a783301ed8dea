"""The paper's simulations of Fig. 2: recovery, missing pairs and the number of dimensions."""

import itertools
import json
import time
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from simdims import select_rank, simulate
from simdims.reproduce import Claim, Reproduction, Settings, missing, rank, recovery, reproduce
from simdims.reproduce.simulated import design, simulate_cell, verdict

NAMES = ["recovery", "missing", "rank"]


@pytest.fixture(scope="module")
def smoke() -> Callable[[str], Reproduction]:
    """Every analysis at its smallest size, run once."""
    done: dict[str, Reproduction] = {}

    def run(name: str) -> Reproduction:
        if name not in done:
            done[name] = reproduce(name, size="smoke", progress=False)
        return done[name]

    return run


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_has_words_and_every_table_numbers(name, smoke):
    outcome = smoke(name).outcome
    assert outcome.claims
    assert all(claim.what and claim.published and claim.ours for claim in outcome.claims)
    assert all(claim.agrees is None for claim in outcome.claims)
    assert outcome.tables
    for table in outcome.tables.values():
        assert len(table)
        assert np.isfinite(table.select_dtypes("number").to_numpy(dtype=float)).all()
    assert all(remark.endswith(".") for remark in outcome.remarks)


@pytest.mark.parametrize("name", NAMES)
def test_the_figure_is_drawn_and_written(name, smoke, tmp_path):
    written = smoke(name).save(tmp_path)
    assert {path.suffix for path in written} == {".json", ".md", ".png", ".pdf"}
    assert all(path.stat().st_size > 0 for path in written)
    assert json.loads((tmp_path / f"{name}.json").read_text())["size"] == "smoke"


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_was_stopped_goes_on_and_ends_as_one_that_was_not(name, smoke, tmp_path, monkeypatch):
    module = import_module(f"simdims.reproduce.{name}")
    measure, seen = module.measure, []

    def stop_at_the_second(cell):
        if seen:
            raise KeyboardInterrupt
        seen.append(cell)
        return measure(cell)

    def run_again():
        return reproduce(name, size="smoke", checkpoint=tmp_path, progress=False)

    monkeypatch.setattr(module, "measure", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        run_again()
    measured_after = []
    monkeypatch.setattr(module, "measure", lambda cell: measured_after.append(cell) or measure(cell))
    resumed = run_again()
    assert seen[0] not in measured_after
    assert measured_after
    expected = smoke(name).outcome.tables
    assert list(resumed.outcome.tables) == list(expected)
    for heading, table in resumed.outcome.tables.items():
        pd.testing.assert_frame_equal(table, expected[heading])


def test_another_seed_gives_other_data(smoke):
    other = reproduce("recovery", size="smoke", random_state=1, progress=False)
    for heading, table in other.outcome.tables.items():
        assert not table.equals(smoke("recovery").outcome.tables[heading])


def test_the_time_of_a_run_that_was_stopped_counts(tmp_path):
    def stop(progress):
        time.sleep(0.2)
        if progress.done == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        reproduce("recovery", size="smoke", checkpoint=tmp_path, progress=stop)
    first = reproduce("recovery", size="smoke", checkpoint=tmp_path, progress=False)
    again = reproduce("recovery", size="smoke", checkpoint=tmp_path, progress=False)
    assert again.seconds > first.seconds > 0.4
    other = reproduce("recovery", size="smoke", checkpoint=tmp_path, random_state=1, progress=False)
    assert other.seconds < again.seconds


def test_a_folder_of_the_environment_must_be_there(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMDIMS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="SIMDIMS_DATA must be a folder"):
        reproduce("datasets", size="smoke", progress=False)


def test_a_design_changes_noise_and_pairs_but_not_the_embedding():
    levels = {"rank": (2, 3), "alpha": (0.1, 1.0), "snr": (1.0, 0.5), "observed": (1.0, 0.5)}
    cells = design(Settings(seed=4), 2, levels, n_items=40)
    assert len(cells) == 32
    assert json.loads(json.dumps(cells)) == cells
    embeddings = {}
    for cell in cells:
        key = cell["rank"], cell["alpha"], cell["seed"]
        W, truth, S = simulate_cell(cell)
        np.testing.assert_array_equal(W, embeddings.setdefault(key, W))
        np.testing.assert_array_equal(truth, W @ W.T)
        pairs = np.triu_indices(40, 1)
        share = 1 - np.isnan(S[pairs]).mean()
        assert abs(share - cell["observed"]) < 0.1
        if cell["observed"] == 1:
            error = (S - truth)[pairs].var()
            assert truth[pairs].var() / (truth[pairs].var() + error) == pytest.approx(cell["snr"], abs=1e-6)
    assert len(embeddings) == len({key[2] for key in embeddings}) == 8


def test_what_the_paper_does_not_say_is_not_called_published():
    said = Claim("a", "b", "c", True)
    assert said.verdict == "as published"
    assert said._replace(in_paper=False).verdict == "agrees, not in the paper"
    assert said._replace(agrees=False).verdict == "differs"
    assert said._replace(agrees=None, in_paper=False).verdict == "cannot be told from this run"


def test_only_the_smallest_size_leaves_a_verdict_open():
    assert verdict(Settings(size="smoke"), True) is None
    assert verdict(Settings(size="quick"), np.bool_(True)) is True
    assert verdict(Settings(size="full"), False) is False


def test_the_alignment_of_rotations_is_that_of_the_best_permutation():
    W = simulate.dirichlet(30, 3, alpha=1.0, random_state=0)
    from scipy.stats import ortho_group

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


def test_more_similarities_than_there_are_pairs_are_refused():
    with pytest.raises(ValueError, match=r"density must be at most 2\.25 for 10 items of rank 2, got 3"):
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
