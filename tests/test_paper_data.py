"""The paper's analyses of empirical data: files of every format, definitions against slow versions, and verdicts."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from paper_files import N_THINGS, WRITERS, N, similarity, write, write_things, write_words

from paper import Settings, datasets, recipes, reproduce, things, words
from paper.recipes import RECIPES, TABLE, lower_names, read_associations, read_ratings
from paper.words import made_up_words, measure, predictions
from simdims import SRF, Similarity, as_similarity, simulate, solvers
from simdims.metrics import hold_out_links, triplet_accuracy, triplet_probabilities

HELD_OUT = "One link in ten held out, by the weight of absent pairs"
ITERATIONS = "Solvers over their iterations, the words with most links"
RATINGS = "Ratings of words, read out by ridge regression (Spearman)"
MISSING = "Not run, because no file was found in the data folder"
MEDIAN_R2 = "Median R2 of densely sampled data sets"


@pytest.fixture(autouse=True)
def _no_data(monkeypatch):
    monkeypatch.delenv("SIMDIMS_DATA", raising=False)


@pytest.fixture(scope="module")
def things_outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_things(folder)
    return things.run(settings(folder))


@pytest.fixture(scope="module")
def made_up():
    return words.run(Settings("smoke", progress=False))


@pytest.fixture
def folder(tmp_path):
    write_words(tmp_path)
    return tmp_path


def embedding():
    return 3 * simulate.dirichlet(N_THINGS, 4, alpha=0.2, random_state=0)


def settings(folder=None, *, only=None, size="smoke", **options):
    return Settings(size=size, data=folder, only=only, n_jobs=1, progress=False, **options)


@pytest.fixture(scope="module")
def without_files():
    return datasets.run(settings())


def test_every_row_of_the_papers_table_has_a_recipe_that_tries_its_rank():
    own = {name: recipe.published for name, recipe in RECIPES.items() if not recipe.other_data}
    assert own == TABLE
    assert all(recipe.published.rank in recipe.ranks for recipe in RECIPES.values() if not recipe.other_data)
    assert {file for recipe in RECIPES.values() for file in recipe.files} == set(WRITERS)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_on_a_file_of_its_format(name, tmp_path):
    write(tmp_path, RECIPES[name].files[0])
    outcome = datasets.run(settings(tmp_path, only=(name,)))
    ranks, fits = outcome.tables["Number of dimensions"], outcome.tables["Fit and reliability"]
    n_items = 40 if "words/" in RECIPES[name].files[0] else N
    published = ranks[["data set", "items", "rank (published)"]].to_numpy().tolist()
    assert published == [[name, n_items, RECIPES[name].published.rank]]
    assert ranks["rank"][0] in (1, 2, 4, 6)
    assert 0 < ranks["p*"][0] < 1
    assert 0 < fits["reliability"][0] <= 1
    measured = "AUC" if name in ("swow", "usf-words") else "R2"
    assert 0 < fits[measured][0] <= 1
    assert all(claim.agrees is None for claim in outcome.claims)


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, recipe in RECIPES.items() for file in recipe.files[1:]]
)
def test_every_other_file_of_a_recipe_gives_similarities(name, file, tmp_path):
    S = RECIPES[name].build(write(tmp_path, file))
    assert S.n_items == (120 if file.startswith("words/") else N)


def test_ratings_are_divided_by_ten_once(tmp_path):
    by_ten = recipes.ratings(write(tmp_path, "peterson_animals/turkResults_CogSci2016.mat"))
    as_they_are = recipes.ratings(write(tmp_path, "peterson_various/various_similarity.csv"))
    np.testing.assert_allclose(by_ten.values, as_they_are.values)
    assert by_ten.values.max() == 1
    np.save(tmp_path / "large.npy", 50 * similarity())
    with pytest.raises(ValueError, match="between 0 and 10"):
        recipes.ratings(tmp_path / "large.npy")


def slow_reliability(repeats, orders):
    half = len(repeats) // 2
    found = []
    for channel in np.moveaxis(repeats, 2, 0):
        r = np.mean(
            [np.corrcoef(channel[order[:half]].mean(0), channel[order[half:]].mean(0))[0, 1] for order in orders]
        )
        found.append(2 * r / (1 + r))
    return np.array(found)


def test_channel_reliability_is_the_corrected_mean_correlation_of_halves():
    rng = np.random.RandomState(0)
    repeats = rng.normal(size=(12, 4)) + 0.5 * rng.normal(size=(5, 12, 4))
    same = np.random.RandomState(3)
    orders = [same.permutation(5) for _ in range(7)]
    found = recipes.channel_reliability(repeats, n_splits=7, random_state=3)
    np.testing.assert_allclose(found, slow_reliability(repeats, orders))
    halves = repeats[:2]
    np.testing.assert_allclose(recipes.channel_reliability(halves), slow_reliability(halves, [np.array([0, 1])]))

    constant = np.full((4, 10, 1), 7.3)
    assert recipes.channel_reliability(constant) == [0]


def test_unreliable_channels_do_not_enter_the_similarities(tmp_path):
    path = write(tmp_path, "macaque_it/recordings.npz")
    S = recipes.recordings(path)
    assert S.info["n_channels"] == 8
    assert S.info["n_reliable_channels"] == 6
    with np.load(path) as file:
        repeats = file["repeats"].copy()
    repeats[:, :, 6:] = 100 * np.random.RandomState(9).normal(size=repeats[:, :, 6:].shape)
    np.savez(path, repeats=repeats)
    np.testing.assert_array_equal(recipes.recordings(path).values, S.values)


def test_responses_to_other_stimuli_are_compared_where_they_are_given(tmp_path):
    path = write(tmp_path, "macaque_it/recordings.npz")
    with np.load(path) as file:
        repeats = file["repeats"]
    responses = np.random.RandomState(2).normal(size=(17, 8))
    np.savez(path, repeats=repeats, responses=responses)
    distances = np.linalg.norm(responses[:, None, :6] - responses[None, :, :6], axis=2)
    sigma = 0.4 * np.median(distances[np.triu_indices(17, 1)])
    np.testing.assert_allclose(recipes.recordings(path).values, np.exp(-(distances**2) / (2 * sigma**2)))
    unreliable = np.random.RandomState(0).normal(size=(2, 200, 3))
    for arrays, said in (
        ({"repeats": repeats, "responses": responses[:, :5]}, "8 channels"),
        ({"responses": responses}, "repeats"),
        ({"repeats": unreliable}, "none"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=said):
            recipes.recordings(path)


def test_triplets_read_alike_from_every_kind_of_file(tmp_path):
    found = simulate.triplet_answers(embedding(), 50, random_state=0)
    np.save(tmp_path / "a.npy", found.astype(np.int16))
    np.savetxt(tmp_path / "a.txt", found, fmt="%d")
    np.savetxt(tmp_path / "a.csv", found, fmt="%d", delimiter=",")
    for name in ("a.npy", "a.txt", "a.csv"):
        np.testing.assert_array_equal(recipes.read_triplets(tmp_path / name), found)
    np.save(tmp_path / "b.npy", found[:, :2])
    with pytest.raises(ValueError, match="three integers per row"):
        recipes.read_triplets(tmp_path / "b.npy")


def test_the_densest_items_are_those_with_most_pairs():
    S = similarity(8)
    S[[1, 4], :] = S[:, [1, 4]] = np.nan
    np.fill_diagonal(S, 1)
    kept = recipes.densest_items(as_similarity(S), 6)
    np.testing.assert_array_equal(kept.values, np.delete(np.delete(S, [1, 4], 0), [1, 4], 1))


def test_without_files_it_says_what_to_get_and_from_where(without_files):
    missing = without_files.tables[MISSING]
    assert missing["data set"].tolist() == list(RECIPES)
    for name, recipe in RECIPES.items():
        (said,) = [remark for remark in without_files.remarks if remark.startswith(f"{name} was not run")]
        assert all(words in said for words in (*recipe.files, recipe.where))
    table = without_files.tables["Number of dimensions"]
    assert table["data set"].tolist() == [datasets.SIMULATED]
    assert table["rank"][0] == datasets.SIMULATED_RANK


def test_missing_files_and_unknown_names_that_were_asked_for_are_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"clip/features\.npy.*github\.com/openai/CLIP"):
        datasets.run(settings(tmp_path, only=("clip",)))
    with pytest.raises(ValueError, match=r"peterson-animals, .*got dogs"):
        datasets.run(settings(only=("dogs", "clip")))


def test_large_data_sets_are_left_out_at_the_smallest_size(tmp_path):
    write(tmp_path, "words/usf_appendixA.csv")
    outcome = datasets.run(settings(tmp_path))
    assert outcome.tables["Number of dimensions"]["data set"].tolist() == [datasets.SIMULATED]
    assert any("Left out" in remark and "usf-words" in remark for remark in outcome.remarks)


def slow_fisher(embeddings, seed, n_splits):
    rng = np.random.RandomState(seed)

    def correlations(one, other, items, order):
        return np.array([np.corrcoef(one[items, i], other[items, j])[0, 1] for i, j in enumerate(order)])

    z = []
    for _ in range(n_splits):
        first, second = np.array_split(rng.permutation(embeddings.shape[1]), 2)
        for one, other in itertools.combinations(embeddings, 2):
            orders = itertools.permutations(range(embeddings.shape[2]))
            best = max(orders, key=lambda order: correlations(one, other, first, order).sum())
            z.append(np.arctanh(correlations(one, other, second, best)))
    r = np.tanh(np.mean(z, axis=0))
    return np.mean(2 * r / (1 + r))


def test_fisher_reliability_averages_z_over_splits_and_pairs_of_runs():
    rng = np.random.RandomState(0)
    W = simulate.dirichlet(40, 3, random_state=0)
    runs = np.stack([W[:, rng.permutation(3)] + 0.1 * rng.normal(size=W.shape) for _ in range(4)])
    assert datasets.fisher_reliability(runs, 5, n_splits=3) == pytest.approx(slow_fisher(runs, 5, 3))


def found(rank=10, errors=(1.5, 1.0, 1.02, 1.2), ranks=(8, 11, 12, 15), name="peterson-animals", **options):
    curve = pd.DataFrame({"rank": ranks, "error": errors, "standard_error": 0.05})
    data = {"name": name, "recipe": RECIPES[name], "n_items": 120, "coverage": 100.0, "is_whole": True}
    values = data | {"sampling": 0.72, "rank": rank, "curve": curve, "at_edge": False, "auc": None}
    values |= {"r2": 0.95, "reliability": 0.99, "r2_published_rank": 0.93, "reliability_published_rank": 0.985}
    values |= {"fisher_published_rank": 0.995}
    return datasets.Found(**{**values, **options})


def test_the_flat_ranks_is_within_one_standard_error_of_the_smallest():
    one = found()
    assert one.paper_rank == 11
    assert one.flat_ranks == [11, 12]


def test_verdicts_follow_from_the_numbers():
    whole = settings(size="full")
    verdicts = {claim.what: claim.agrees for claim in datasets.claims(whole, [found()])}
    judged = [f"peterson-animals: {what}" for what in ("number of dimensions", "p*", "R2", "reliability")]
    assert all(verdicts[what] is True for what in judged)
    far = found(rank=12, sampling=0.5, r2_published_rank=0.6, reliability_published_rank=0.9)
    verdicts = {claim.what: claim.agrees for claim in datasets.claims(whole, [far])}
    assert all(verdicts[what] is False for what in judged)
    other = datasets.claims(whole, [found(name="mur92-behaviour")])
    assert all(claim.agrees is None for claim in other)


def test_a_reliability_counts_as_published_where_it_is_near_or_above_what_it_exceeds():
    def verdict(name, reliability):
        one = found(name=name, reliability=reliability, reliability_published_rank=None)
        claims = datasets.claims(settings(size="full"), [one])
        return next(claim.agrees for claim in claims if claim.what == f"{name}: reliability")

    assert [verdict("peterson-animals", value) for value in (0.96, 0.98, 1.0)] == [False, True, True]  # > 0.99
    assert [verdict("nsd", value) for value in (0.79, 0.81, 0.99)] == [False, True, False]  # 0.82


def test_other_data_do_not_decide_what_the_paper_says_of_its_own():
    own = [found(name=name, r2=TABLE[name].r2, reliability=0.9) for name in TABLE]
    other = [found(name=name, r2=0.1, reliability=0.1) for name in RECIPES if RECIPES[name].other_data]
    claims = {claim.what: claim for claim in datasets.claims(settings(size="full"), own + other)}
    reliability, r2 = (claims[what] for what in ("Reliability of every data set", MEDIAN_R2))
    assert (reliability.ours, reliability.agrees) == ("at least 0.900 in 8 data sets", True)
    assert (r2.ours, r2.agrees) == ("0.88 of 7", True)
    lacking = {claim.what: claim for claim in datasets.claims(settings(size="full"), own[1:] + other)}
    assert lacking["Reliability of every data set"].agrees is None


def test_a_checkpoint_serves_several_seeds(tmp_path):
    kept = [
        datasets.run(settings(only=("simulated",), seed=seed, checkpoint=tmp_path)).tables["Number of dimensions"]
        for seed in (0, 1)
    ]
    fresh = datasets.run(settings(only=("simulated",), seed=1)).tables["Number of dimensions"]
    pd.testing.assert_frame_equal(kept[1], fresh)
    assert kept[0]["p*"][0] != kept[1]["p*"][0]


def test_the_median_r2_is_that_of_densely_sampled_data_sets():
    several = [found(r2=0.8), found(r2=0.9), found(name="things-100k", r2=0.1, coverage=16.0)]
    said = {claim.what: claim.ours for claim in datasets.claims(settings(size="full"), several)}
    assert said[MEDIAN_R2] == "0.85 of 2"


def test_mur92_is_called_what_its_numbers_look_like():
    people = found(name="mur92-behaviour", rank=10, r2_published_rank=0.5)
    brains = found(name="human-it-92", rank=3, r2_published_rank=0.69)
    said = datasets.remarks([people, brains], {}, [])
    assert any("looks more like the responses of human IT" in remark for remark in said)
    said = datasets.remarks([found(name="human-it-92", rank=9)], {}, [])
    assert not any("looks more like" in remark for remark in said)


def test_the_figure_draws_several_data_sets(tmp_path):
    words_found = found(name="usf-words", rank=150, ranks=(50, 100, 150, 200))
    datasets.draw([found(), found(name="mur92-behaviour", rank=9), words_found]).savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_peterson_animals_runs_on_the_real_file(data_path):
    folder = data_path("peterson_animals/turkResults_CogSci2016.mat").parents[1]
    outcome = datasets.run(settings(folder, only=("peterson-animals",)))
    assert outcome.tables["Number of dimensions"]["items"][0] == 40
    assert outcome.tables["Fit and reliability"]["R2"][0] > 0.5


@pytest.mark.slow
def test_peterson_animals_at_quick_size_has_the_published_fit(data_path):
    folder = data_path("peterson_animals/turkResults_CogSci2016.mat").parents[1]
    outcome = datasets.run(settings(folder, only=("simulated", "peterson-animals", "mur92-behaviour"), size="quick"))
    ranks = outcome.tables["Number of dimensions"].set_index("data set")["rank"]
    fits = outcome.tables["Fit and reliability"].set_index("data set")
    assert ranks["simulated"] == datasets.SIMULATED_RANK
    assert 8 <= ranks["peterson-animals"] <= 17
    assert abs(fits["R2 at the published rank"]["peterson-animals"] - 0.90) <= datasets.R2_MARGIN
    assert fits["by Fisher's z"]["peterson-animals"] > 0.97
    assert ranks["mur92-behaviour"] > TABLE["mur-92"].rank


def test_held_out_answers_are_predicted_above_chance_and_below_their_own_model(things_outcome):
    table = things_outcome.tables["Held-out answers, and similarities of 48 objects"].set_index("predicted by")
    accuracy = table["accuracy"]
    ours = accuracy.filter(like="answers").iloc[0]
    assert accuracy["chance"] == pytest.approx(1 / 3)
    assert 0.45 < ours < accuracy["SPoSE, choices among the 48"]
    # The ten objects' similarities are the choices of the embedding that stands for SPoSE.
    assert table["r, 48 objects"]["SPoSE, choices among the 48"] == pytest.approx(1)
    assert table["r, 48 objects"].iloc[1] > 0.7


def test_claims_say_whose_answers_they_are_from(things_outcome):
    assert "10,800 answers" in things_outcome.claims[1].ours
    assert any("4.7 million" in remark for remark in things_outcome.remarks)
    assert any("No noise ceiling" in remark for remark in things_outcome.remarks)


def test_a_tenth_is_held_out_and_no_answer_is_lost(tmp_path):
    answers = write_things(tmp_path)
    train, test, repeated = things.split(tmp_path / "things/triplets_100k.npy", 3)
    assert len(test) == 1200
    both = np.concatenate([train, test])
    np.testing.assert_array_equal(both[np.lexsort(both.T)], answers[np.lexsort(answers.T)])
    np.testing.assert_array_equal(repeated, answers)
    again = things.split(tmp_path / "things/triplets_100k.npy", 3)
    np.testing.assert_array_equal(again[1], test)
    assert not np.array_equal(things.split(tmp_path / "things/triplets_100k.npy", 4)[1], test)


def test_the_release_brings_its_own_split_and_its_ceiling(tmp_path):
    answers = write_things(tmp_path, release=True)
    data = things.read(settings(tmp_path))
    np.testing.assert_array_equal(data.train, answers[:6000])
    np.testing.assert_array_equal(data.test, answers[6000:])
    outcome = things.run(settings(tmp_path))
    reached = next(claim for claim in outcome.claims if "ceiling" in claim.what)
    assert "of the ceiling of these answers" in reached.ours
    # Ten of twelve answers to every triplet are the same.
    assert any("noise ceiling 83.33%" in remark for remark in outcome.remarks)


def test_a_ceiling_needs_triplets_that_were_answered_often():
    often = np.repeat([[0, 1, 2]], 50, axis=0)
    assert things.find_ceiling(often) is None
    assert things.find_ceiling(simulate.triplet_answers(embedding(), 500, random_state=0)) is None


def test_pairs_count_by_their_answers_only_where_these_are_few():
    many = things.build(simulate.triplet_answers(embedding(), 12_000, random_state=0), N_THINGS)
    few = things.build(simulate.triplet_answers(embedding(), 600, random_state=0), N_THINGS)
    assert many.weights is None
    assert few.weights is not None
    assert few.weights[0, 1] == round(few.weights[0, 1])


def test_choice_similarity_is_the_mean_probability_to_stay_together():
    W = embedding()[:7]
    found = things.choice_similarity(W)
    for i, j in itertools.combinations(range(7), 2):
        others = [k for k in range(7) if k not in (i, j)]
        stay = triplet_probabilities(W, [[i, j, k] for k in others])[:, 2]
        assert found[i, j] == pytest.approx(stay.mean())
        assert found[j, i] == pytest.approx(found[i, j])


@pytest.mark.parametrize(
    "file", ["triplets_100k.npy", "spose_embedding_66d_sorted.txt", "RDM48_triplet.mat", "idx48_in_1854.txt"]
)
def test_a_missing_file_is_named_with_where_to_get_it(file, tmp_path):
    write_things(tmp_path, n=100)
    (tmp_path / "things" / file).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{file}.*osf\.io"):
        things.run(settings(tmp_path))


def test_without_a_folder_it_says_what_to_get():
    with pytest.raises(FileNotFoundError, match=r"trainset\.txt.*No data folder was given.*osf\.io/f5rn6"):
        things.run(settings(None))


def test_spose_predicts_the_real_48_objects_as_published(data_path):
    folder = data_path("things/triplets_100k.npy").parents[1]
    for file in ("spose_embedding_66d_sorted.txt", "RDM48_triplet.mat", "idx48_in_1854.txt"):
        data_path(f"things/{file}")
    data = things.read(settings(folder))
    assert data.spose.shape == (1854, 66)
    of_48 = data.spose[data.rows_48]
    assert data.correlation_48(things.choice_similarity(of_48)) == pytest.approx(0.90, abs=0.02)
    assert triplet_accuracy(data.spose, data.test) == pytest.approx(things.SPOSE_ACCURACY, abs=0.015)


@pytest.mark.slow
def test_more_answers_predict_more_of_the_real_ones(data_path):
    folder = data_path("things/triplets_100k.npy").parents[1]
    outcome = things.run(settings(folder, size="quick"))
    table = outcome.tables["Held-out answers, and similarities of 48 objects"]
    chance, ours, simulated, _, spose = table["accuracy"]
    assert chance + 0.15 < ours < simulated < spose
    shares = outcome.tables["Accuracy by the number of training answers"]["accuracy"]
    assert shares.is_monotonic_increasing
    verdicts = {claim.what: claim.agrees for claim in outcome.claims}
    assert verdicts["Accuracy above chance"] is True
    assert verdicts["Accuracy on held-out answers"] is None


def follow(start=None, weight=0.0, iterations=(1, 4)):
    common = {"kind": "iterations", "hold_out": 3, "seed": 5, "n_words": 60, "rank": 4, "all_words": False}
    return {**common, "start": start, "weight": weight, "iterations": list(iterations)}


def training_of(made):
    return hold_out_links(words_with_most_links(made.similarity, 60), 0.1, random_state=3)


def words_with_most_links(S, n):
    order = sorted(range(S.n_items), key=lambda i: (-len(S.values[[i]].indices), i))[:n]
    kept = sorted(order)
    return Similarity(S.values[kept][:, kept], [S.labels[i] for i in kept], absent=S.absent)


def test_without_data_a_smoke_run_says_that_its_words_are_made_up(made_up):
    assert "MADE UP" in made_up.remarks[0]
    assert any("0.95" in claim.published for claim in made_up.claims)
    assert any("familiarity" in claim.published for claim in made_up.claims)


def test_ignoring_absent_pairs_fails_on_made_up_words_too(made_up):
    table = made_up.tables[HELD_OUT].set_index("weight of absent pairs")
    assert table.loc[0.0, "held-out AUC"] < 0.5
    assert table.loc[0.03, "held-out AUC"] > 0.7
    ratings = made_up.tables[RATINGS]
    assert (ratings["absent weight 0.03"] > ratings["absent weight 0"] + 0.2).all()


def test_admm_predicts_links_from_the_zero_filled_start_alone(made_up):
    table = made_up.tables[ITERATIONS].set_index(["solver", "iteration"])["held-out AUC"]
    assert table["ADMM, Z₀ = zero-filled", 10] > 0.7
    assert table["ADMM, Z₀ = W Wᵀ", 10] < 0.6


def test_all_files_of_the_folder_are_read(folder):
    found = reproduce("words", size="smoke", data=folder, progress=False)
    assert not any("left out" in remark or "MADE UP" in remark for remark in found.outcome.remarks)
    table = found.outcome.tables[RATINGS]
    assert set(table["scale"]) == {"valence", "age of acquisition"}
    correlations = table.set_index("scale")["absent weight 0.03"]
    assert correlations["valence"] > 0.6 > correlations["age of acquisition"]
    benchmarks = found.outcome.tables["All links fitted, rank 20"]
    assert {"SimLex-999", "WordSim-353"} <= set(benchmarks.columns)
    assert benchmarks["SimLex-999"].equals(benchmarks["WordSim-353"])  # the same pairs, once in other letters


@pytest.mark.slow
def test_a_full_run_has_every_weight_and_admm_on_all_words(folder):
    found = reproduce("words", size="full", data=folder, progress=False)
    table = found.outcome.tables[HELD_OUT]
    assert list(table["weight of absent pairs"]) == [0.0, 0.01, 0.03, 0.1, 0.3, 1.0]
    assert found.outcome.tables[ITERATIONS]["solver"].str.startswith("ADMM").sum() == 2 * (4 + 2)
    claims = {claim.what: claim for claim in found.outcome.claims}
    on_all_words = next(claim for what, claim in claims.items() if "Z from the zero-filled data" in what)
    assert "after 10 iterations" in on_all_words.ours
    assert found.outcome.draw is not None


def test_files_that_are_not_there_are_named(folder):
    for name in ("SimLex-999.txt", "GlasgowNorms.csv"):
        (folder / "words" / name).unlink()
    found = words.load_words(Settings("smoke", data=folder))
    assert list(found.benchmarks) == ["WordSim-353"]
    assert found.ratings is None
    assert all(
        name in remark for name, remark in zip(("SimLex-999.txt", "GlasgowNorms.csv"), found.missing, strict=True)
    )
    (folder / "words/usf_appendixA.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"strength\.SWOW-EN\.R123\.csv.*usf_appendixA\.csv.*smallworldofwords"):
        words.load_words(Settings("quick", data=folder))
    assert words.load_words(Settings("smoke", data=folder)).source == "made up"


def test_swow_and_usf_files_give_the_same_similarities_and_swow_goes_first(folder):
    source, of_usf = read_associations(folder / "words/usf_appendixA.csv")
    swow, of_swow = read_associations(write(folder, RECIPES["swow"].files[0]))
    assert (source, swow) == ("USF", "SWOW")
    assert of_usf.labels == of_swow.labels
    assert {"null", "na"} <= set(of_usf.labels)
    assert abs(of_usf.values - of_swow.values).max() == 0
    assert of_usf.absent == of_swow.absent == 0.03
    settings = Settings("full", data=folder)
    found = words.load_words(settings)
    assert found.source == "SWOW"
    assert words.cells_of(settings, found)[-1]["rank"] == 268


def test_ratings_are_read_with_one_or_two_rows_of_names(tmp_path):
    two = tmp_path / "two.csv"
    two.write_text(
        "Words,Length,AROU,,,GEND,,\n,,M,SD,N,M,SD,N\nAbbey,5,3.5,1,33,2.5,1,33\nbank (money),12,,1,33,4,1,33\n"
    )
    found = read_ratings(two)
    assert list(found.columns) == ["arousal", "gender"]
    assert list(found.index) == ["abbey", "bank (money)"]
    np.testing.assert_array_equal(found, [[3.5, 2.5], [np.nan, 4.0]])
    one = tmp_path / "one.csv"
    one.write_text("word,arousal,gender\nAbbey,3.5,2.5\nbank (money),NA,4\n")
    pd.testing.assert_frame_equal(read_ratings(one), found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,valence\ncat,high\n", "'high' in row 2, column 'valence'"),
        ("word,valence\ncat,1\ncat,2\n", "every word once, got 'cat'"),
        ("word\ncat\n", "columns of mean ratings"),
    ],
)
def test_bad_ratings_get_a_sentence(tmp_path, text, message):
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_ratings(path)


def test_names_that_small_letters_would_mix_up_stay():
    assert lower_names(["CAT", "Polish", "polish", "Paris"]) == ["cat", "Polish", "polish", "paris"]


def test_other_data_are_other_work():
    made = made_up_words(60, 4, seed=0)
    others = [
        made_up_words(60, 4, seed=1),
        replace(made, ratings=None),
        replace(made, ratings=made.ratings + 1),
        replace(made, benchmarks={}),
    ]
    assert made_up_words(60, 4, seed=0).digest() == made.digest()
    assert len({made.digest(), *(other.digest() for other in others)}) == 5


def test_predictions_are_means_over_pairs():
    made = made_up_words(80, 5, seed=2)
    S = words_with_most_links(made.similarity, 60)
    training, pairs = training_of(made)
    W = np.random.default_rng(0).uniform(size=(60, 3))
    dense, seen, known = S.values.toarray(), training.values.toarray(), W @ W.T
    held_out = {tuple(pair) for pair in pairs.tolist()}
    sums = {"links": [], "held": [], "absent": []}
    missed = total = 0.0
    for i, j in itertools.combinations(range(60), 2):
        kind = "absent" if dense[i, j] == 0 else "held" if (i, j) in held_out else "links"
        sums[kind].append(known[i, j])
        if kind == "links":
            missed += 2 * (seen[i, j] - known[i, j]) ** 2
            total += 2 * seen[i, j] ** 2
    for i in range(60):
        missed += (seen[i, i] - known[i, i]) ** 2
        total += seen[i, i] ** 2
    found = predictions(S, training, pairs, W)
    expected = {"misfit": missed / total, "of_links": np.mean(sums["links"])}
    expected |= {"of_held_out": np.mean(sums["held"]), "of_absent": np.mean(sums["absent"])}
    assert found == pytest.approx(expected)


def test_the_iterations_of_admm_are_those_of_the_estimator():
    made = made_up_words(80, 5, seed=2)
    training, pairs = training_of(made)
    S = words_with_most_links(made.similarity, 60)
    trace = measure(made, follow("product"))["trace"]
    for at in trace:
        srf = SRF(4, solver="admm", max_iter=at["iteration"], inner_iter=10, tol=0, random_state=5)
        with pytest.warns(UserWarning, match="did not converge"):
            W = srf.fit(replace(training, absent="missing")).embedding_
        expected = predictions(S, training, pairs, W)
        assert {name: at[name] for name in expected} == pytest.approx(expected, rel=1e-8)


def test_the_first_iteration_from_the_zero_filled_start_fits_absent_pairs_as_zeros():
    """The explanation that the remarks give: ten sBSUM sweeps on the data with zeros for what is missing."""
    made = made_up_words(80, 5, seed=2)
    training, pairs = training_of(made)
    S = words_with_most_links(made.similarity, 60)
    stored = training.values.tocoo()
    seen = np.full(stored.shape, np.nan)
    seen[stored.row, stored.col] = stored.data
    W0 = solvers.random_start(solvers.as_problem(seen), 4, np.random.RandomState(5))
    srf = SRF(4, solver="admm", bounds=None, init=W0, max_iter=1, inner_iter=10, tol=0)
    with pytest.warns(UserWarning, match="did not converge"):
        W = srf.fit(np.nan_to_num(training.values.toarray())).embedding_
    at = measure(made, follow("data", iterations=[1]))["trace"][0]
    expected = predictions(S, training, pairs, W)
    assert {name: at[name] for name in expected} == pytest.approx(expected, rel=1e-8)


def test_descent_is_followed_to_the_listed_sweeps():
    made = made_up_words(80, 5, seed=2)
    trace = measure(made, follow(iterations=[1, 3, 30]))["trace"]
    assert [at["iteration"] for at in trace] == [1, 3, 30]
    assert trace[0]["misfit"] > trace[1]["misfit"] > trace[2]["misfit"]


@pytest.mark.slow
def test_quick_on_usf_a_small_weight_predicts_links_that_ignoring_absent_pairs_does_not(data_path):
    folder = data_path("words/usf_appendixA.csv").parents[1]
    found = reproduce("words", size="quick", data=folder, progress=False)
    table = found.outcome.tables[HELD_OUT].set_index("weight of absent pairs")
    assert table.loc[0.0, "held-out AUC"] < 0.6
    assert table.loc[0.03, "held-out AUC"] > 0.8
    claim = next(claim for claim in found.outcome.claims if claim.what.startswith("Held-out link AUC"))
    assert claim.agrees


@pytest.mark.slow
def test_quick_on_made_up_words_has_the_same_direction():
    found = reproduce("words", size="quick", progress=False)
    table = found.outcome.tables[HELD_OUT].set_index("weight of absent pairs")
    assert table.loc[0.0, "held-out AUC"] < 0.6
    assert table.loc[0.03, "held-out AUC"] > 0.8
    paths = found.outcome.tables[ITERATIONS].set_index(["solver", "iteration"])["held-out AUC"]
    assert paths["ADMM, Z₀ = zero-filled", 100] > paths["ADMM, Z₀ = W Wᵀ", 100] + 0.1
