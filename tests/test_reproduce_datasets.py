"""`simdims reproduce datasets`: every recipe on a small file of its format, the channels, the words about it."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from simdims import simulate
from simdims.reproduce import dataset_files, datasets, datasets_claims
from simdims.reproduce.frame import Settings
from simdims.reproduce.recipes import RECIPES, TABLE

N = 30
FEATURES = np.random.RandomState(1).normal(size=(3, 8))


def similarity(n=N):
    W = simulate.dirichlet(n, 3, alpha=0.3, random_state=0)
    S = W @ W.T
    return S / S.max()


def write_square(path, scale=1.0):
    S = similarity()
    np.fill_diagonal(S, 1)
    np.savetxt(path, scale * S, delimiter=",") if path.suffix == ".csv" else np.save(path, scale * S)


def write_features(path, n=N):
    W = simulate.dirichlet(n, 3, alpha=0.3, random_state=0)
    np.save(path, W @ FEATURES + 0.05 * np.random.RandomState(0).normal(size=(n, 8)))


def write_arranged(path):
    D = 1 - similarity()
    np.fill_diagonal(D, 0)
    people = np.array([(D,), (D**2,)], dtype=[("RDM", object)])
    savemat(path, {"rdms_behav_92": people})


def write_distances(path):
    r = np.corrcoef(np.random.RandomState(0).normal(size=(N, 40)))
    D = 1 - (r + r.T) / 2
    np.fill_diagonal(D, 0)
    np.savetxt(path, D, delimiter=",")


def write_turk(path):
    S = 10 * similarity()
    np.fill_diagonal(S, 10)
    savemat(path, {"simMatrix": S, "simMatrixFirstBatch": S / 2})


def write_recordings(path):
    """Six channels that answer to the stimuli, and two that do not."""
    rng = np.random.RandomState(0)
    signal = simulate.dirichlet(N, 3, alpha=0.3, random_state=0) @ rng.normal(size=(3, 6))
    repeats = np.concatenate([signal + 0.02 * rng.normal(size=(6, N, 6)), rng.normal(size=(6, N, 2))], axis=2)
    np.savez(path, repeats=repeats) if path.suffix == ".npz" else np.save(path, repeats)


def answers(n_items=N, n=4000, seed=0):
    W = 3 * simulate.dirichlet(n_items, 3, alpha=0.2, random_state=0)
    rng = np.random.RandomState(seed)
    rows = np.array([rng.choice(n_items, 3, replace=False) for _ in range(n)])
    a, b, c = rows.T
    S = W @ W.T
    odd = np.argmax(np.stack([S[b, c], S[a, c], S[a, b]], axis=1) + rng.gumbel(size=(n, 3)), axis=1)
    return np.array([[*np.delete(row, k), row[k]] for row, k in zip(rows, odd, strict=True)])


def write_triplets(path):
    found = answers()
    np.save(path, found.astype(np.int16)) if path.suffix == ".npy" else np.savetxt(path, found, fmt="%d")


def words(cue, response, count):
    """Three topics of ten words; the last two words are called null and NA."""
    names = [f"w{i:02d}" for i in range(N - 2)] + ["null", "NA"]
    rng = np.random.RandomState(0)
    rows = [
        (names[i], names[j], 1 + rng.randint(9))
        for i in range(N)
        for j in range(N)
        if i != j and (i % 3 == j % 3 or rng.rand() < 0.03)
    ]
    return pd.DataFrame(rows, columns=[cue, response, count])


def write_swow(path):
    words("cue", "response", "R123").assign(N=100).to_csv(path, sep="\t", index=False)


def write_usf(path):
    words("cue", "target", "P").assign(G=100, normed="YES").to_csv(path, index=False)


WRITERS = {
    "mur92/similarity.npy": write_square,
    "mur92/similarity.csv": write_square,
    "mur92/responses.npy": write_features,
    "mur92/92_behavRDMs.mat": write_arranged,
    "mur92/rdm_humanIT_2008.csv": write_distances,
    "peterson_animals/turkResults_CogSci2016.mat": write_turk,
    "peterson_animals/animals_similarity.npy": write_square,
    "peterson_various/various_similarity.npy": lambda path: write_square(path, 10.0),
    "peterson_various/various_similarity.csv": write_square,
    "clip/features.npy": write_features,
    "macaque_it/recordings.npz": write_recordings,
    "macaque_it/recordings.npy": write_recordings,
    "things/trainset.txt": write_triplets,
    "things/triplets.npy": write_triplets,
    "things/triplets_100k.npy": write_triplets,
    "words/strength.SWOW-EN.R123.csv": write_swow,
    "words/strength.SWOW-EN.R123.20180827.csv": write_swow,
    "words/usf_appendixA.csv": write_usf,
    "nsd/subj01_responses.npy": write_features,
}


def write(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[name](path)
    return path


def settings(folder=None, *, only=None, size="smoke", **options):
    return Settings(size=size, data=folder, only=only, n_jobs=1, progress=False, **options)


@pytest.fixture(scope="module")
def without_files():
    return datasets.run(settings())


def test_every_row_of_the_papers_table_has_a_recipe():
    own = {name: recipe.published for name, recipe in RECIPES.items() if not recipe.other_data}
    assert own == TABLE
    assert {file for recipe in RECIPES.values() for file in recipe.files} == set(WRITERS)


def test_the_published_rank_is_among_those_tried():
    for name, recipe in RECIPES.items():
        assert recipe.other_data or recipe.published.rank in recipe.ranks, name


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_on_a_file_of_its_format(name, tmp_path):
    write(tmp_path, RECIPES[name].files[0])
    outcome = datasets.run(settings(tmp_path, only=(name,)))
    ranks, fits = outcome.tables["Number of dimensions"], outcome.tables["Fit and reliability"]
    assert ranks["data set"].tolist() == [name]
    assert ranks["items"][0] == N
    assert ranks["rank (published)"][0] == RECIPES[name].published.rank
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
    assert S.n_items == N


def test_ratings_are_divided_by_ten_once(tmp_path):
    by_ten = dataset_files.ratings(write(tmp_path, "peterson_animals/turkResults_CogSci2016.mat"))
    as_they_are = dataset_files.ratings(write(tmp_path, "peterson_various/various_similarity.csv"))
    np.testing.assert_allclose(by_ten.values, as_they_are.values)
    assert by_ten.values.max() == 1
    np.save(tmp_path / "large.npy", 50 * similarity())
    with pytest.raises(ValueError, match="between 0 and 10"):
        dataset_files.ratings(tmp_path / "large.npy")


def test_words_called_null_and_na_stay(tmp_path):
    for file, build in (("words/usf_appendixA.csv", dataset_files.usf), (RECIPES["swow"].files[0], dataset_files.swow)):
        assert {"null", "NA"} <= set(build(write(tmp_path, file)).labels)


def slow_reliability(repeats, orders):
    half = len(repeats) // 2
    found = []
    for channel in range(repeats.shape[2]):
        r = [
            np.corrcoef(repeats[order[:half], :, channel].mean(0), repeats[order[half:], :, channel].mean(0))[0, 1]
            for order in orders
        ]
        found.append(2 * np.mean(r) / (1 + np.mean(r)))
    return np.array(found)


def test_channel_reliability_is_the_corrected_mean_correlation_of_halves():
    rng = np.random.RandomState(0)
    repeats = rng.normal(size=(12, 4)) + 0.5 * rng.normal(size=(5, 12, 4))
    same = np.random.RandomState(3)
    orders = [same.permutation(5) for _ in range(7)]
    found = dataset_files.channel_reliability(repeats, n_splits=7, random_state=3)
    np.testing.assert_allclose(found, slow_reliability(repeats, orders))
    halves = repeats[:2]
    np.testing.assert_allclose(dataset_files.channel_reliability(halves), slow_reliability(halves, [np.array([0, 1])]))


def test_a_channel_that_does_not_vary_has_no_reliability():
    repeats = np.random.RandomState(0).normal(size=(4, 10, 3))
    repeats[:, :, 1] = 7.3
    assert dataset_files.channel_reliability(repeats)[1] == 0


def test_unreliable_channels_do_not_enter_the_similarities(tmp_path):
    path = write(tmp_path, "macaque_it/recordings.npz")
    S = dataset_files.recordings(path)
    assert S.info["n_channels"] == 8
    assert S.info["n_reliable_channels"] == 6
    with np.load(path) as file:
        repeats = file["repeats"].copy()
    repeats[:, :, 6:] = 100 * np.random.RandomState(9).normal(size=repeats[:, :, 6:].shape)
    np.savez(path, repeats=repeats)
    np.testing.assert_array_equal(dataset_files.recordings(path).values, S.values)


def test_responses_to_other_stimuli_are_compared_where_they_are_given(tmp_path):
    path = write(tmp_path, "macaque_it/recordings.npz")
    with np.load(path) as file:
        repeats = file["repeats"]
    responses = np.random.RandomState(2).normal(size=(17, 8))
    np.savez(path, repeats=repeats, responses=responses)
    distances = np.linalg.norm(responses[:, None, :6] - responses[None, :, :6], axis=2)
    sigma = 0.4 * np.median(distances[np.triu_indices(17, 1)])
    np.testing.assert_allclose(dataset_files.recordings(path).values, np.exp(-(distances**2) / (2 * sigma**2)))
    np.savez(path, repeats=repeats, responses=responses[:, :5])
    with pytest.raises(ValueError, match="8 channels"):
        dataset_files.recordings(path)
    np.savez(path, responses=responses)
    with pytest.raises(ValueError, match="called repeats"):
        dataset_files.recordings(path)
    np.savez(path, repeats=np.random.RandomState(0).normal(size=(2, 200, 3)))
    with pytest.raises(ValueError, match=r"above 0\.3, got none"):
        dataset_files.recordings(path)


def test_triplets_read_alike_from_every_kind_of_file(tmp_path):
    found = answers(n=50)
    np.save(tmp_path / "a.npy", found.astype(np.int16))
    np.savetxt(tmp_path / "a.txt", found, fmt="%d")
    np.savetxt(tmp_path / "a.csv", found, fmt="%d", delimiter=",")
    for name in ("a.npy", "a.txt", "a.csv"):
        np.testing.assert_array_equal(dataset_files.read_triplets(tmp_path / name), found)
    np.save(tmp_path / "b.npy", found[:, :2])
    with pytest.raises(ValueError, match="three whole numbers a row"):
        dataset_files.read_triplets(tmp_path / "b.npy")


def test_the_densest_items_are_those_with_most_pairs():
    S = similarity(8)
    S[[1, 4], :] = S[:, [1, 4]] = np.nan
    np.fill_diagonal(S, 1)
    kept = dataset_files.densest_items(datasets.as_similarity(S), 6)
    np.testing.assert_array_equal(kept.values, np.delete(np.delete(S, [1, 4], 0), [1, 4], 1))


def test_without_files_it_says_what_to_get_and_from_where(without_files):
    missing = without_files.tables["Not run, for want of a file in the data folder"]
    assert missing["data set"].tolist() == list(RECIPES)
    for name, recipe in RECIPES.items():
        said = [remark for remark in without_files.remarks if remark.startswith(f"{name} was not run")]
        assert len(said) == 1
        assert all(file in said[0] for file in recipe.files)
        assert recipe.where in said[0]


def test_the_simulated_data_set_runs_without_files(without_files):
    table = without_files.tables["Number of dimensions"]
    assert table["data set"].tolist() == [datasets.SIMULATED]
    assert table["rank"][0] == datasets.SIMULATED_RANK


def test_a_missing_file_that_was_asked_for_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"clip/features\.npy.*github\.com/openai/CLIP"):
        datasets.run(settings(tmp_path, only=("clip",)))


def test_unknown_names_are_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"peterson-animals, .*got dogs"):
        datasets.run(settings(only=("dogs", "clip")))


def test_large_data_sets_are_left_out_at_the_smallest_size(tmp_path):
    write(tmp_path, "words/usf_appendixA.csv")
    outcome = datasets.run(settings(tmp_path))
    assert outcome.tables["Number of dimensions"]["data set"].tolist() == [datasets.SIMULATED]
    assert any("Left out" in remark and "usf-words" in remark for remark in outcome.remarks)


def test_the_same_seed_and_a_resumed_run_give_the_same_tables(tmp_path):
    write(tmp_path, "mur92/92_behavRDMs.mat")
    only = ("mur92-behaviour",)
    first = datasets.run(settings(tmp_path, only=only))
    kept = datasets.run(settings(tmp_path, only=only, checkpoint=tmp_path / "work"))
    resumed = datasets.run(settings(tmp_path, only=only, checkpoint=tmp_path / "work"))
    for heading, table in first.tables.items():
        pd.testing.assert_frame_equal(table, kept.tables[heading])
        pd.testing.assert_frame_equal(table, resumed.tables[heading])


def slow_fisher(embeddings, seed, n_splits):
    rng = np.random.RandomState(seed)
    n_runs, n_items, k = embeddings.shape
    z = []
    for _ in range(n_splits):
        first, second = np.array_split(rng.permutation(n_items), 2)
        for a in range(n_runs):
            for b in range(a + 1, n_runs):
                scores = {
                    order: sum(
                        np.corrcoef(embeddings[a, first, i], embeddings[b, first, j])[0, 1] for i, j in enumerate(order)
                    )
                    for order in itertools.permutations(range(k))
                }
                best = max(scores, key=scores.get)
                z.append(
                    [
                        np.arctanh(np.corrcoef(embeddings[a, second, i], embeddings[b, second, j])[0, 1])
                        for i, j in enumerate(best)
                    ]
                )
    r = np.tanh(np.mean(z, axis=0))
    return np.mean(2 * r / (1 + r))


def test_fisher_reliability_averages_z_over_splits_and_pairs_of_runs():
    rng = np.random.RandomState(0)
    W = simulate.dirichlet(40, 3, random_state=0)
    runs = np.stack([W[:, rng.permutation(3)] + 0.1 * rng.normal(size=W.shape) for _ in range(4)])
    assert datasets.fisher_reliability(runs, 5, n_splits=3) == pytest.approx(slow_fisher(runs, 5, 3))


def found(rank=10, errors=(1.5, 1.0, 1.02, 1.2), ranks=(8, 11, 12, 15), name="peterson-animals", **options):
    values = {
        "name": name,
        "recipe": RECIPES[name],
        "n_items": 120,
        "coverage": 100.0,
        "is_whole": True,
        "sampling": 0.72,
        "rank": rank,
        "curve": pd.DataFrame({"rank": ranks, "error": errors, "standard_error": [0.05] * len(ranks)}),
        "at_edge": False,
        "r2": 0.95,
        "auc": None,
        "reliability": 0.99,
        "r2_published_rank": 0.93,
        "reliability_published_rank": 0.985,
        "fisher_published_rank": 0.995,
    }
    return datasets.Found(**{**values, **options})


def test_the_flat_stretch_is_within_one_standard_error_of_the_smallest():
    one = found()
    assert one.paper_rank == 11
    assert one.flat_stretch == [11, 12]


def test_verdicts_follow_from_the_numbers():
    whole = settings(size="full")
    verdicts = {claim.what: claim.agrees for claim in datasets_claims.claims(whole, [found()])}
    assert verdicts["peterson-animals: number of dimensions"] is True
    assert verdicts["peterson-animals: R2"] is True
    assert verdicts["peterson-animals: p*"] is True
    far = found(rank=12, sampling=0.5, r2_published_rank=0.6, reliability_published_rank=0.9)
    verdicts = {claim.what: claim.agrees for claim in datasets_claims.claims(whole, [far])}
    assert [verdicts[f"peterson-animals: {what}"] for what in ("number of dimensions", "p*", "R2", "reliability")] == [
        False
    ] * 4
    other = datasets_claims.claims(whole, [found(name="mur92-behaviour")])
    assert all(claim.agrees is None for claim in other)


def test_a_reliability_counts_as_published_where_it_is_near_or_above_what_it_exceeds():
    def verdict(name, reliability):
        one = found(name=name, reliability=reliability, reliability_published_rank=None)
        claims = datasets_claims.claims(settings(size="full"), [one])
        return next(claim.agrees for claim in claims if claim.what == f"{name}: reliability")

    assert [verdict("peterson-animals", value) for value in (0.96, 0.98, 1.0)] == [False, True, True]  # > 0.99
    assert [verdict("nsd", value) for value in (0.79, 0.81, 0.99)] == [False, True, False]  # 0.82


def test_other_data_do_not_decide_what_the_paper_says_of_its_own():
    own = [found(name=name, r2=TABLE[name].r2, reliability=0.9) for name in TABLE]
    other = [found(name=name, r2=0.1, reliability=0.1) for name in RECIPES if RECIPES[name].other_data]
    claims = {claim.what: claim for claim in datasets_claims.claims(settings(size="full"), own + other)}
    assert claims["Reliability of every data set"].ours == "at least 0.900 in 8 data sets"
    assert claims["Median R2 of densely sampled data sets"].ours == "0.88 of 7"
    assert claims["Reliability of every data set"].agrees is True
    assert claims["Median R2 of densely sampled data sets"].agrees is True
    lacking = {claim.what: claim for claim in datasets_claims.claims(settings(size="full"), own[1:] + other)}
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
    said = {claim.what: claim.ours for claim in datasets_claims.claims(settings(size="full"), several)}
    assert said["Median R2 of densely sampled data sets"] == "0.85 of 2"


def test_mur92_is_called_what_its_numbers_look_like():
    people = found(name="mur92-behaviour", rank=10, r2_published_rank=0.5)
    brains = found(name="human-it-92", rank=3, r2_published_rank=0.69)
    said = datasets_claims.remarks(settings(size="full"), [people, brains], {}, [])
    assert any("looks more like the responses of human IT" in remark for remark in said)
    said = datasets_claims.remarks(settings(size="full"), [found(name="human-it-92", rank=9)], {}, [])
    assert not any("looks more like" in remark for remark in said)


def test_the_figure_draws(without_files, tmp_path):
    from simdims.reproduce import datasets_figure

    pytest.importorskip("matplotlib")
    without_files.draw().savefig(tmp_path / "a.png")
    several = [
        found(),
        found(name="mur92-behaviour", rank=9),
        found(name="usf-words", rank=150, ranks=(50, 100, 150, 200)),
    ]
    datasets_figure.draw(several).savefig(tmp_path / "b.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert (tmp_path / "b.png").stat().st_size > 10_000


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
    assert abs(fits["R2 at the published rank"]["peterson-animals"] - 0.90) <= datasets_claims.R2_MARGIN
    assert fits["by Fisher's z"]["peterson-animals"] > 0.97
    assert ranks["mur92-behaviour"] > TABLE["mur-92"].rank
