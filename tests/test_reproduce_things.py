"""`simdims reproduce things`: answers split, predicted and simulated; SPoSE and the 48 objects; what is missing."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from simdims import simulate
from simdims.metrics import triplet_probabilities
from simdims.reproduce import things, things_data
from simdims.reproduce.frame import Settings

N = 60


def embedding():
    return 3 * simulate.dirichlet(N, 4, alpha=0.2, random_state=0)


def write(folder, *, release=False, n=12_000):
    """An embedding in place of SPoSE, answers drawn from it, and ten objects in place of the 48."""
    (folder / "things").mkdir()
    W = embedding()
    np.savetxt(folder / "things/spose_embedding_66d_sorted.txt", W)
    rows = np.arange(0, N, 6)
    np.savetxt(folder / "things/idx48_in_1854.txt", rows, fmt="%d")
    of_48 = things_data.choice_similarity(W[rows])
    savemat(folder / "things/RDM48_triplet.mat", {"RDM48_triplet": 1 - of_48})
    answers = things_data.simulated_answers(W, n, 1)
    if release:
        np.savetxt(folder / "things/trainset.txt", answers[: n // 2], fmt="%d")
        np.savetxt(folder / "things/validationset.txt", answers[n // 2 :], fmt="%d")
        few = np.array(list(itertools.combinations(range(5), 3)))[:4]
        often = np.repeat(np.concatenate([few, few + 10, few + 20, few + 30, few + 40, few + 50]), 12, axis=0)
        often[::6] = often[::6][:, [0, 2, 1]]  # a sixth of the answers to each triplet is another one
        np.savetxt(folder / "things/testset1.txt", often, fmt="%d")
    else:
        np.save(folder / "things/triplets_100k.npy", answers.astype(np.int16))
    return answers


def settings(folder, size="smoke", **options):
    return Settings(size=size, data=folder, n_jobs=1, progress=False, **options)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write(folder)
    return things.run(settings(folder))


def test_held_out_answers_are_predicted_above_chance_and_below_their_own_model(outcome):
    table = outcome.tables["Held-out answers, and similarities of 48 objects"].set_index("predicted by")
    accuracy = table["accuracy"]
    ours = accuracy.filter(like="answers").iloc[0]
    assert accuracy["chance"] == pytest.approx(1 / 3)
    assert 0.45 < ours < accuracy["SPoSE, choices among the 48"]
    # The ten objects' similarities are the choices of the embedding that stands for SPoSE.
    assert table["r, 48 objects"]["SPoSE, choices among the 48"] == pytest.approx(1)
    assert table["r, 48 objects"].iloc[1] > 0.7


def test_claims_say_whose_answers_they_are_from(outcome):
    assert all(claim.agrees is None for claim in outcome.claims)
    assert "10,800 answers" in outcome.claims[1].ours
    assert any("4.7 million" in remark for remark in outcome.remarks)
    assert any("No noise ceiling" in remark for remark in outcome.remarks)
    for table in outcome.tables.values():
        assert np.isfinite(table.select_dtypes("number").to_numpy()).all()


def test_a_tenth_is_held_out_and_no_answer_is_lost(tmp_path):
    answers = write(tmp_path)
    train, test, repeated = things_data.split(tmp_path / "things/triplets_100k.npy", 3)
    assert len(test) == 1200
    both = np.concatenate([train, test])
    np.testing.assert_array_equal(both[np.lexsort(both.T)], answers[np.lexsort(answers.T)])
    np.testing.assert_array_equal(repeated, answers)
    again = things_data.split(tmp_path / "things/triplets_100k.npy", 3)
    np.testing.assert_array_equal(again[1], test)
    assert not np.array_equal(things_data.split(tmp_path / "things/triplets_100k.npy", 4)[1], test)


def test_the_release_brings_its_own_split_and_its_ceiling(tmp_path):
    answers = write(tmp_path, release=True)
    data = things_data.read(settings(tmp_path))
    np.testing.assert_array_equal(data.train, answers[:6000])
    np.testing.assert_array_equal(data.test, answers[6000:])
    outcome = things.run(settings(tmp_path))
    reached = next(claim for claim in outcome.claims if "ceiling" in claim.what)
    assert "of the ceiling of these answers" in reached.ours
    # Ten of twelve answers to every triplet are the same.
    assert any("noise ceiling 83.33%" in remark for remark in outcome.remarks)


def test_a_ceiling_needs_triplets_that_were_answered_often():
    often = np.repeat([[0, 1, 2]], 50, axis=0)
    assert things._ceiling(often) is None
    assert things._ceiling(things_data.simulated_answers(embedding(), 500, 0)) is None


def test_pairs_count_by_their_answers_only_where_these_are_few():
    many = things_data.build(things_data.simulated_answers(embedding(), 12_000, 0), N)
    few = things_data.build(things_data.simulated_answers(embedding(), 600, 0), N)
    assert many.weights is None
    assert few.weights is not None
    assert few.weights[0, 1] == round(few.weights[0, 1])


def test_choice_similarity_is_the_mean_probability_to_stay_together():
    W = embedding()[:7]
    found = things_data.choice_similarity(W)
    for i, j in itertools.combinations(range(7), 2):
        others = [k for k in range(7) if k not in (i, j)]
        stay = triplet_probabilities(W, [[i, j, k] for k in others])[:, 2]
        assert found[i, j] == pytest.approx(stay.mean())
        assert found[j, i] == pytest.approx(found[i, j])


def test_choice_similarity_of_large_loadings_is_finite():
    assert np.isfinite(things_data.choice_similarity(100 * embedding())).all()


def test_simulated_answers_have_the_probabilities_of_the_embedding():
    W = 2 * simulate.dirichlet(4, 2, alpha=0.5, random_state=0)
    answers = things_data.simulated_answers(W, 40_000, 0)
    assert answers.shape == (40_000, 3)
    assert (np.sort(answers, axis=1)[:, 1:] != np.sort(answers, axis=1)[:, :-1]).all()
    of_triplet = answers[(np.sort(answers, axis=1) == [0, 1, 3]).all(axis=1)]
    shares = [np.mean(of_triplet[:, 2] == item) for item in (0, 1, 3)]
    np.testing.assert_allclose(shares, triplet_probabilities(W, [[0, 1, 3]])[0], atol=0.02)


@pytest.mark.parametrize(
    "file", ["triplets_100k.npy", "spose_embedding_66d_sorted.txt", "RDM48_triplet.mat", "idx48_in_1854.txt"]
)
def test_a_missing_file_is_named_with_where_to_get_it(file, tmp_path):
    write(tmp_path, n=100)
    (tmp_path / "things" / file).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{file}.*osf\.io"):
        things.run(settings(tmp_path))


def test_without_a_folder_it_says_what_to_get():
    with pytest.raises(FileNotFoundError, match=r"trainset\.txt.*no folder was given.*osf\.io/f5rn6"):
        things.run(settings(None))


def test_the_same_seed_and_a_resumed_run_give_the_same_tables(outcome, tmp_path):
    write(tmp_path)
    kept = things.run(settings(tmp_path, checkpoint=tmp_path / "work"))
    resumed = things.run(settings(tmp_path, checkpoint=tmp_path / "work"))
    for heading, table in outcome.tables.items():
        pd.testing.assert_frame_equal(table, kept.tables[heading])
        pd.testing.assert_frame_equal(table, resumed.tables[heading])


def test_the_figure_draws(outcome, tmp_path):
    pytest.importorskip("matplotlib")
    outcome.draw().savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_spose_predicts_the_real_48_objects_as_published(data_path):
    folder = data_path("things/triplets_100k.npy").parents[1]
    for file in ("spose_embedding_66d_sorted.txt", "RDM48_triplet.mat", "idx48_in_1854.txt"):
        data_path(f"things/{file}")
    data = things_data.read(settings(folder))
    assert data.spose.shape == (1854, 66)
    of_48 = data.spose[data.rows_48]
    assert things._correlation(things_data.choice_similarity(of_48), data) == pytest.approx(0.90, abs=0.02)
    assert things.triplet_accuracy(data.spose, data.test) == pytest.approx(things.SPOSE_ACCURACY, abs=0.015)


@pytest.mark.slow
def test_more_answers_predict_more_of_the_real_ones(data_path):
    folder = data_path("things/triplets_100k.npy").parents[1]
    outcome = things.run(settings(folder, "quick"))
    table = outcome.tables["Held-out answers, and similarities of 48 objects"]
    chance, ours, simulated, _, spose = table["accuracy"]
    assert chance + 0.15 < ours < simulated < spose
    shares = outcome.tables["Accuracy by the number of training answers"]["accuracy"]
    assert shares.is_monotonic_increasing
    verdicts = {claim.what: claim.agrees for claim in outcome.claims}
    assert verdicts["Accuracy above chance"] is True
    assert verdicts["Accuracy on held-out answers"] is None
