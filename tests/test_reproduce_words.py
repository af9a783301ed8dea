"""`simdims reproduce words`: the files it reads, what it measures, and what comes out."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simdims import SRF, Similarity, solvers
from simdims._arrays import arrays_of, problem_of
from simdims.metrics import hold_out_links
from simdims.reproduce import reproduce, words
from simdims.reproduce.frame import Settings
from simdims.reproduce.words_data import load_words, made_up_words, plain_names, read_associations, read_ratings
from simdims.reproduce.words_fits import absent_of, measure, predictions

HELD_OUT = "One link in ten held out, by the weight of absent pairs"
ITERATIONS = "Solvers over their iterations, the words with most links"
RATINGS = "Ratings of words, read out by ridge regression (Spearman)"


@pytest.fixture(autouse=True)
def _no_data(monkeypatch):
    monkeypatch.delenv("SIMDIMS_DATA", raising=False)


@pytest.fixture(scope="module")
def smoke():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SIMDIMS_DATA", raising=False)
        return reproduce("words", size="smoke", progress=False)


@pytest.fixture
def folder(tmp_path):
    """Files of every format, of 120 words in six topics; the data in the files are synthetic."""
    rng = np.random.default_rng(1)
    names = np.array([f"word{i}" for i in range(120)])
    topic = np.arange(120) % 6
    alike = topic[:, None] == topic
    counts = rng.poisson(np.where(alike, 0.8, 0.05))
    np.fill_diagonal(counts, 0)
    cue, response = np.nonzero(counts)
    said = counts[cue, response]
    (tmp_path / "words").mkdir()
    usf = {"cue": np.char.upper(names[cue]), "target": np.char.upper(names[response]), "normed": "YES", "G": 150}
    usf |= {"P": said, "FSG": said / 150, "BSG": ""}
    pd.DataFrame(usf).to_csv(tmp_path / "words/usf_appendixA.csv", index=False)
    one, other = rng.integers(120, size=(2, 60))
    rating = np.round(5.0 * alike[one, other] + rng.uniform(size=60), 2)
    simlex = {"word1": names[one], "word2": names[other], "POS": "N", "SimLex999": rating}
    pd.DataFrame(simlex).to_csv(tmp_path / "words/SimLex-999.txt", sep="\t", index=False)
    wordsim = {"Word 1": names[one], "Word 2": np.char.capitalize(names[other]), "Human (mean)": rating}
    pd.DataFrame(wordsim).to_csv(tmp_path / "words/wordsim353_combined.csv", index=False)
    glasgow = ["Words,Length,VAL,,,AOA,,", ",,M,SD,N,M,SD,N"]
    for name, k in zip(names, topic, strict=True):
        glasgow.append(f"{name},{len(name)},{k + rng.normal(scale=0.3):.3f},1.1,33,{rng.normal():.3f},0.9,32")
    (tmp_path / "words/GlasgowNorms.csv").write_text("\n".join(glasgow) + "\n")
    return tmp_path


def as_swow(folder: Path) -> Path:
    """The associations of the USF file in SWOW's format."""
    table = pd.read_csv(folder / "words/usf_appendixA.csv", keep_default_na=False)
    swow = pd.DataFrame({"cue": table["cue"].str.lower(), "response": table["target"].str.lower(), "R123": table["P"]})
    path = folder / "words/strength.SWOW-EN.R123.csv"
    swow.assign(N=100, **{"R123.Strength": swow["R123"] / 100}).to_csv(path, sep="\t", index=False)
    return path


def follow(start=None, weight=0.0, iterations=(1, 4)):
    common = {"kind": "iterations", "hold_out": 3, "seed": 5, "n_words": 60, "rank": 4, "inner": 3, "all_words": False}
    return {**common, "start": start, "weight": weight, "iterations": list(iterations)}


def training_of(made):
    return hold_out_links(words_with_most_links(made.similarity, 60), 0.1, random_state=3)


def words_with_most_links(S, n):
    order = sorted(range(S.n_items), key=lambda i: (-len(S.values[[i]].indices), i))[:n]
    kept = sorted(order)
    return Similarity(S.values[kept][:, kept], [S.labels[i] for i in kept], absent=S.absent)


def test_without_data_a_smoke_run_says_that_its_words_are_made_up(smoke, tmp_path):
    outcome = smoke.outcome
    assert "MADE UP" in outcome.remarks[0]
    assert all(claim.agrees is None for claim in outcome.claims)
    assert any("0.95" in claim.published for claim in outcome.claims)
    assert any("familiarity" in claim.published for claim in outcome.claims)
    assert all(np.isfinite(table.select_dtypes("number")).all(axis=None) for table in outcome.tables.values())
    files = smoke.save(tmp_path)
    assert {path.suffix for path in files} == {".json", ".md", ".png", ".pdf"}
    assert all(path.stat().st_size > 0 for path in files)


def test_ignoring_absent_pairs_fails_on_made_up_words_too(smoke):
    table = smoke.outcome.tables[HELD_OUT].set_index("weight of absent pairs")
    assert table.loc[0.0, "held-out AUC"] < 0.5
    assert table.loc[0.03, "held-out AUC"] > 0.7
    ratings = smoke.outcome.tables[RATINGS]
    assert (ratings["absent weight 0.03"] > ratings["absent weight 0"] + 0.2).all()


def test_admm_predicts_links_from_the_zero_filled_start_alone(smoke):
    table = smoke.outcome.tables[ITERATIONS].set_index(["solver", "iteration"])["held-out AUC"]
    assert table["ADMM, Z₀ = zero-filled", 10] > 0.7
    assert table["ADMM, Z₀ = W Wᵀ", 10] < 0.6


def test_a_run_that_was_stopped_ends_as_one_that_was_not(smoke, tmp_path):
    first = reproduce("words", size="smoke", progress=False, checkpoint=tmp_path)
    journal = tmp_path / "words" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    assert len(lines) == len(words.cells_of(smoke.settings, load_words(smoke.settings), plan_of(smoke.settings)))
    journal.write_text("".join(lines[:4]))
    resumed = reproduce("words", size="smoke", progress=False, checkpoint=tmp_path)
    for heading, table in smoke.outcome.tables.items():
        pd.testing.assert_frame_equal(first.outcome.tables[heading], table)
        pd.testing.assert_frame_equal(resumed.outcome.tables[heading], table)


def plan_of(settings):
    return words.plan(settings, load_words(settings))


def test_all_files_of_the_folder_are_read(folder):
    found = reproduce("words", size="smoke", data=folder, progress=False)
    assert not any("left out" in remark or "MADE UP" in remark for remark in found.outcome.remarks)
    table = found.outcome.tables[RATINGS]
    assert set(table["scale"]) == {"valence", "age of acquisition"}
    valence, nothing = (
        table.loc[table["scale"] == s, "absent weight 0.03"].item() for s in ("valence", "age of acquisition")
    )
    assert valence > 0.6 > nothing
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
    found = load_words(Settings("smoke", data=folder))
    assert list(found.benchmarks) == ["WordSim-353"]
    assert found.ratings is None
    assert all(
        name in remark for name, remark in zip(("SimLex-999.txt", "GlasgowNorms.csv"), found.missing, strict=True)
    )
    (folder / "words/usf_appendixA.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"strength\.SWOW-EN\.R123\.csv.*usf_appendixA\.csv.*smallworldofwords"):
        load_words(Settings("quick", data=folder))
    assert load_words(Settings("smoke", data=folder)).source == "made up"


def test_swow_and_usf_files_give_the_same_similarities_and_swow_goes_first(folder):
    source, of_usf = read_associations(folder / "words/usf_appendixA.csv")
    swow, of_swow = read_associations(as_swow(folder))
    assert (source, swow) == ("USF", "SWOW")
    assert of_usf.labels == of_swow.labels
    assert abs(of_usf.values - of_swow.values).max() == 0
    assert of_usf.absent == of_swow.absent == 0.03
    settings = Settings("full", data=folder)
    found = load_words(settings)
    assert found.source == "SWOW"
    assert words.plan(settings, found).rank == 268


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
    assert plain_names(["CAT", "Polish", "polish", "Paris"]) == ["cat", "Polish", "polish", "paris"]


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
        srf = SRF(4, solver="admm", max_iter=at["iteration"], inner_iter=3, tol=0, random_state=5)
        with pytest.warns(UserWarning, match="did not converge"):
            W = srf.fit(replace(training, absent="missing")).embedding_
        expected = predictions(S, training, pairs, W)
        assert {name: at[name] for name in expected} == pytest.approx(expected, rel=1e-8)


def test_the_first_iteration_from_the_zero_filled_start_fits_absent_pairs_as_zeros():
    """The explanation that the remarks give: three sBSUM sweeps on the data with zeros for what is missing."""
    made = made_up_words(80, 5, seed=2)
    training, pairs = training_of(made)
    S = words_with_most_links(made.similarity, 60)
    missing = problem_of(arrays_of(replace(training, absent="missing")))
    W0 = solvers.random_start(missing, 4, np.random.RandomState(5))
    srf = SRF(4, solver="admm", bounds=None, init=W0, max_iter=1, inner_iter=3, tol=0)
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


def test_weights_have_the_names_that_similarities_know():
    assert [absent_of(weight) for weight in (0.0, 0.03, 1.0)] == ["missing", 0.03, "zero"]


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
