"""`simdims reproduce power`: power per column, its counts against slow versions, and the analysis itself."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from simdims import simulate
from simdims._journal import sealed
from simdims.reproduce import power, power_claims, power_counts
from simdims.reproduce.frame import Settings

# power_study by column

DESIGN = partial(simulate.from_embedding, simulate.sparse_correlated(100, 6, random_state=0), 20, 4)
QUICK = {"snrs": [0.3, 1.0], "n_repeats": 3, "n_permutations": 39, "random_state": 1}


@pytest.fixture(scope="module")
def by_column():
    return simulate.power_study(DESIGN, by_column=True, **QUICK)


def test_columns_that_are_found_make_up_the_power_of_a_data_set(by_column):
    study = simulate.power_study(DESIGN, **QUICK)
    data_sets = ["noise", "snr", "repeat", "test"]
    assert len(by_column) == 4 * len(study)
    groups = by_column.assign(small=by_column["pvalue"] <= 0.05).groupby(data_sets)[["significant", "small"]].mean()
    expected = study.set_index(data_sets).sort_index()
    np.testing.assert_array_equal(groups["significant"], expected["power"])
    np.testing.assert_array_equal(groups["small"], expected["power_unadjusted"])


def test_every_column_has_the_variance_of_its_draw(by_column):
    from simdims._parallel import root_seed, seed_of

    for repeat, rows in by_column.groupby("repeat"):
        X = DESIGN(random_state=seed_of(root_seed(1), repeat, 0))
        np.testing.assert_allclose(rows["variance"], X.var(axis=0)[rows["column"]])


def test_a_checkpoint_serves_both_tables(by_column, tmp_path, monkeypatch):
    study = simulate.power_study(DESIGN, checkpoint=tmp_path, **QUICK)
    monkeypatch.setattr("simdims.simulate.power._simulate", None)
    pd.testing.assert_frame_equal(simulate.power_study(DESIGN, by_column=True, checkpoint=tmp_path, **QUICK), by_column)
    pd.testing.assert_frame_equal(simulate.power_study(DESIGN, checkpoint=tmp_path, **QUICK), study)


def test_a_checkpoint_without_columns_is_read_and_completed(by_column, tmp_path, monkeypatch):
    study = simulate.power_study(DESIGN, checkpoint=tmp_path, **QUICK)
    journal = tmp_path / "journal.jsonl"
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    kept = ("noise", "snr", "repeat", "found")
    journal.write_text("".join(sealed({name: record[name] for name in kept}) + "\n" for record in records))
    with monkeypatch.context() as patched:
        patched.setattr("simdims.simulate.power._simulate", None)
        pd.testing.assert_frame_equal(simulate.power_study(DESIGN, checkpoint=tmp_path, **QUICK), study)
    completed = simulate.power_study(DESIGN, by_column=True, checkpoint=tmp_path, **QUICK)
    pd.testing.assert_frame_equal(completed, by_column)


# counts


def wilson(n_found, n):
    found = binomtest(n_found, n).proportion_ci(method="wilson")
    return found.low, found.high


@pytest.mark.parametrize("n_found", [0, 1, 7, 20])
def test_the_interval_of_independent_columns_is_wilsons(n_found):
    found = np.arange(20) < n_found
    np.testing.assert_allclose(power_counts.interval(found, np.arange(20)), wilson(n_found, 20), atol=1e-4)


@pytest.mark.parametrize("n_found", [0, 3, 10])
def test_columns_that_are_found_together_count_once(n_found):
    found, data_set = np.repeat(np.arange(10) < n_found, 6), np.repeat(np.arange(10), 6)
    np.testing.assert_allclose(power_counts.interval(found, data_set), wilson(n_found, 10), atol=1e-4)


def test_the_interval_covers_the_share_of_clustered_columns():
    """Data sets of 8 columns whose chances differ: about 95% of the intervals hold the mean chance, 0.5."""
    rng = np.random.default_rng(0)
    data_set = np.repeat(np.arange(40), 8)
    n_covered, n_covered_binomial = 0, 0
    for _ in range(400):
        found = rng.random(320) < rng.beta(0.5, 0.5, 40)[data_set]
        low, high = power_counts.interval(found, data_set)
        n_covered += low <= 0.5 <= high
        low, high = wilson(int(found.sum()), 320)
        n_covered_binomial += low <= 0.5 <= high
    assert 0.91 <= n_covered / 400 <= 0.98
    assert n_covered_binomial / 400 < 0.75


def random_study(seed=0):
    """A study in two designs whose findings are drawn by chance, three columns a data set."""
    rng = np.random.default_rng(seed)
    rows = [
        {"design": design, "noise": noise, "snr": snr, "repeat": repeat, "test": test, "column": column}
        for design in ("a", "b")
        for noise in ("features", "similarities")
        for snr in (0.0, 0.1, 0.5)
        for repeat in range(8)
        for test in power_counts.TESTS
        for column in range(3)
    ]
    study = pd.DataFrame(rows)
    variance = rng.random((8, 3))
    study["variance"] = variance[study["repeat"], study["column"]]
    study["pvalue"] = rng.random(len(study)) ** 3
    study["significant"] = study["pvalue"] < 0.02
    return study


def test_the_table_holds_shares_and_levels():
    study = random_study()
    table = power_counts.power_table(study)
    assert list(table.columns) == ["design", "noise on", "test", "SNR 0", "SNR 0.1", "SNR 0.5"]
    assert len(table) == 2 * 2 * 3
    for row in table.to_dict("records"):
        for snr in (0.0, 0.1, 0.5):
            here = [
                entry
                for entry in study.to_dict("records")
                if (entry["design"], entry["noise"], entry["test"], entry["snr"])
                == (row["design"], row["noise on"], row["test"], snr)
            ]
            found = [entry["significant"] if snr else entry["pvalue"] <= 0.05 for entry in here]
            assert row[f"SNR {snr:g}"] == pytest.approx(np.mean(found))


def test_quartiles_count_every_column_once_in_the_order_of_variance():
    study = random_study()
    study = study[(study["design"] == "a") & (study["noise"] == "features") & (study["snr"] == 0.5)]
    table = power_counts.by_variance(study)
    for test in power_counts.TESTS:
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
    mean, error = power_counts.advantage(study, "b", "features", (0.1, 0.5))
    differences = []
    for repeat in range(8):
        shares = {}
        for test in ("dimension", "rsa"):
            here = study[(study["design"] == "b") & (study["noise"] == "features") & (study["snr"] > 0)]
            shares[test] = here[(here["repeat"] == repeat) & (here["test"] == test)]["significant"].mean()
        differences.append(shares["dimension"] - shares["rsa"])
    assert mean == pytest.approx(np.mean(differences))
    assert error == pytest.approx(np.std(differences, ddof=1) / np.sqrt(8))


@pytest.mark.parametrize(
    ("share", "snr", "words"),
    [(0.2, 0.1, "<= 0.1"), (0.5, 0.25, "0.25"), (0.7, 0.4, "0.40"), (0.9, np.inf, "> 0.6")],
)
def test_the_ratio_at_which_a_curve_reaches_a_power(share, snr, words):
    curve = {0.1: 0.2, 0.3: 0.6, 0.5: 0.8, 0.6: 0.7}
    assert power_counts.ratio_reaching(curve, share) == pytest.approx(snr)
    assert power_claims._where(curve, share) == words


def test_a_difference_is_judged_where_its_interval_leaves_zero():
    assert power_claims._is_above(0.2, 0.05) is True
    assert power_claims._is_above(-0.2, 0.05) is False
    assert power_claims._is_above(0.2, 0.15) is None
    assert power_claims._is_above(0.0, 0.0) is None


# the analysis

SMOKE = Settings(size="smoke", progress=False)


@pytest.fixture(scope="module")
def smoke():
    return power.run(SMOKE)


def test_smoke_runs_and_judges_nothing(smoke):
    assert len(smoke.claims) == 12
    assert all(claim.published and claim.ours and claim.agrees is None for claim in smoke.claims)
    assert any("stands in" in remark for remark in smoke.remarks)
    shares, quartiles = smoke.tables.values()
    assert len(shares) == 18
    assert len(quartiles) == 24
    assert np.isfinite(shares.select_dtypes("number")).all(axis=None)
    assert np.isfinite(quartiles.select_dtypes("number")).all(axis=None)
    assert shares.select_dtypes("number").stack().between(0, 1).all()


def test_smoke_draws(smoke, tmp_path):
    import matplotlib.pyplot as plt

    figure = smoke.draw()
    figure.savefig(tmp_path / "power.png")
    assert (tmp_path / "power.png").stat().st_size > 10_000
    assert len(figure.axes) == 8
    plt.close(figure)


def test_a_run_with_a_checkpoint_is_the_same_and_goes_on_from_it(smoke, tmp_path, monkeypatch):
    settings = Settings(size="smoke", progress=False, checkpoint=tmp_path)
    first = power.run(settings)
    assert {path.name for path in tmp_path.iterdir()} == {"power-3333-49-0", "power-2324-49-0", "power-stand-in-49-0"}
    monkeypatch.setattr("simdims.simulate.power._simulate", None)
    resumed = power.run(settings)
    for outcome in (first, resumed):
        assert outcome.claims == smoke.claims
        assert outcome.remarks == smoke.remarks
        for heading, table in smoke.tables.items():
            pd.testing.assert_frame_equal(outcome.tables[heading], table)


def test_the_embedding_is_read_and_clipped(tmp_path):
    W = np.random.default_rng(0).normal(0.3, 0.4, (30, 6))
    (tmp_path / power.SPOSE_FILE).parent.mkdir()
    np.savetxt(tmp_path / power.SPOSE_FILE, W)
    embedding, is_spose = power._embedding(Settings(data=tmp_path))
    assert is_spose
    np.testing.assert_allclose(embedding, np.where(W > 0, W, 0))


@pytest.mark.parametrize("data", [None, "empty"])
def test_without_spose_something_like_it_stands_in(data, tmp_path):
    embedding, is_spose = power._embedding(Settings(data=None if data is None else tmp_path))
    assert not is_spose
    assert embedding.shape == (1854, 49)


@pytest.mark.slow
def test_quick_shows_where_each_test_is_the_better_one():
    folder = Path(os.environ.get("SIMDIMS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    data = folder if (folder / power.SPOSE_FILE).exists() else None
    outcome = power.run(Settings(size="quick", data=data, n_jobs=2, progress=False))
    shares, quartiles = outcome.tables.values()
    shares = shares.set_index(["noise on", "design", "test"]).sort_index()
    designs = [power_claims.THREES, power_claims.MIXED]
    if data is not None:  # an embedding that is made up has too few different dimensions for a difference at SNR 0.1
        designs.append(power_claims.SPOSE)
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
