"""Ratings of pairs and of items: against scipy and scikit-learn, and nothing known of what is predicted."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from simdims import ParameterError, simulate
from simdims.metrics import pair_correlation, readout

WORDS = [f"word{i}" for i in range(30)]


def pairs_case(seed=0):
    rng = np.random.default_rng(seed)
    W = rng.uniform(size=(30, 4)) * (rng.uniform(size=(30, 4)) < 0.6)
    pairs = rng.integers(30, size=(80, 2))
    return W, pairs, rng.integers(5, size=80).astype(float)


def cosine(one, other):
    lengths = np.linalg.norm(one) * np.linalg.norm(other)
    return one @ other / lengths if lengths else 0.0


@pytest.mark.parametrize(("similarity", "of"), [("cosine", cosine), ("dot", np.dot)])
@pytest.mark.parametrize("seed", range(3))
def test_pair_correlation_is_scipys_spearman_of_similarities(similarity, of, seed):
    W, pairs, ratings = pairs_case(seed)
    W[3] = 0.0
    expected = np.array([of(W[i], W[j]) for i, j in pairs])
    result = pair_correlation(W, pairs, ratings, similarity=similarity)
    np.testing.assert_allclose(result.similarities, expected, atol=1e-11)
    assert result.correlation == pytest.approx(spearmanr(np.round(expected, 9), ratings).statistic, abs=1e-12)
    assert (result.n_found, result.n_pairs, result.not_found) == (80, 80, ())


def test_cosine_is_the_default_and_ignores_the_lengths_of_rows():
    W, pairs, ratings = pairs_case()
    stretched = W * np.random.default_rng(1).uniform(0.1, 9, size=(30, 1))
    assert pair_correlation(stretched, pairs, ratings).correlation == pytest.approx(
        pair_correlation(W, pairs, ratings, similarity="cosine").correlation, abs=1e-12
    )
    dots = [pair_correlation(X, pairs, ratings, similarity="dot").correlation for X in (W, stretched)]
    assert abs(dots[0] - dots[1]) > 0.01


def test_pairs_with_unknown_words_are_counted_and_left_out():
    W, pairs, ratings = pairs_case()
    named = np.array(WORDS, dtype=object)[pairs]
    named[5, 0] = named[9, 1] = "unheard"
    named[9, 0] = "unseen"
    known = np.setdiff1d(np.arange(80), [5, 9])
    expected = pair_correlation(W, pairs[known], ratings[known])
    for given in (named, named.tolist(), pd.DataFrame(named, columns=["word1", "word2"])):
        result = pair_correlation(W, given, pd.Series(ratings), labels=WORDS)
        assert result.correlation == expected.correlation
        assert (result.n_found, result.n_pairs) == (78, 80)
        assert result.not_found == ("unheard", "unseen")
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(result.similarities)), [5, 9])
    assert pair_correlation(pd.DataFrame(W, index=WORDS), named, ratings).correlation == expected.correlation
    assert str(result) == f"Spearman correlation {expected.correlation:.3f} over 78 of 80 pairs"


def test_an_embedding_that_gives_all_pairs_one_similarity_has_no_correlation():
    _, pairs, ratings = pairs_case()
    assert np.isnan(pair_correlation(np.ones((30, 3)), pairs, ratings).correlation)


@pytest.mark.parametrize(
    ("change", "name", "got"),
    [
        ({"similarity": "euclid"}, "similarity", "'euclid'"),
        ({"ratings": np.ones(3)}, "ratings", "(3,)"),
        ({"ratings": np.r_[np.nan, np.arange(79)]}, "ratings", "nan in row 0"),
        ({"ratings": ["high"] * 80}, "ratings", "'high' in row 0"),
        ({"ratings": np.ones(80)}, "ratings", "1 for all"),
        ({"pairs": [["a", "b"]] * 80}, "pairs", "'a'"),
        ({"pairs": [["WORD1", "WORD2"]] * 80, "labels": WORDS}, "pairs", "0 of 80; not among W's names: 'WORD1', but"),
        ({"pairs": [["word1", None]] * 80, "labels": WORDS}, "pairs", "['word1', None] in row 0"),
        ({"pairs": np.full((80, 2), 30)}, "pairs", "[30, 30] in row 0 (80 such rows)"),
        ({"pairs": np.full((80, 2), -1)}, "pairs", "[-1, -1]"),
        ({"pairs": np.ones((80, 2), dtype=bool)}, "pairs", "bool"),
    ],
)
def test_pair_correlation_refuses_bad_arguments(change, name, got):
    W, pairs, ratings = pairs_case()
    with pytest.raises(ParameterError) as caught:
        pair_correlation(**{"W": W, "pairs": pairs, "ratings": ratings, **change})
    assert (caught.value.name, got in caught.value.got) == (name, True)


def rated_case(n=90, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    W = simulate.dirichlet(n, 6, random_state=seed)
    return W, W @ rng.normal(size=6) + noise * rng.normal(size=n) * 0.3


def nested_by_scikit_learn(W, y, seed, alphas, n_folds):
    """The same by a grid search over pipelines inside each fold."""
    predicted = np.empty(len(y))
    folds = KFold(n_folds, shuffle=True, random_state=seed)
    for training, held_out in folds.split(W):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), Ridge()),
            {"ridge__alpha": alphas},
            cv=folds,
            scoring="neg_mean_squared_error",
        )
        predicted[held_out] = search.fit(W[training], y[training]).predict(W[held_out])
    return predicted


@pytest.mark.parametrize(("n_folds", "alphas"), [(5, (0.01, 0.1, 1.0, 10.0, 100.0)), (3, (1.0, 1000.0))])
def test_readout_is_scikit_learns_nested_grid_search(n_folds, alphas):
    W, y = rated_case(225)  # inner folds are of equal size, so that a mean over folds is one over items
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    expected = nested_by_scikit_learn(W, y, seed, alphas, n_folds)
    keywords = {} if n_folds == 5 else {"n_folds": n_folds, "alphas": alphas}
    result = readout(W, y, random_state=0, **keywords)
    np.testing.assert_allclose(result.predictions["rating"], expected, rtol=1e-9)
    assert result.table.loc[0, "correlation"] == pytest.approx(spearmanr(expected, y).statistic, abs=1e-12)


def test_what_can_be_read_out_is_and_noise_is_not():
    W, y = rated_case(200, noise=0.1)
    targets = np.column_stack([y, np.random.default_rng(1).normal(size=200)])
    correlations = readout(W, targets, random_state=0).table["correlation"]
    assert correlations[0] > 0.9
    assert abs(correlations[1]) < 0.25


def test_nothing_leaks_into_predictions():
    """Targets shuffled: correlations around 0 over many seeds, with far more dimensions than a fit can resist."""
    rng = np.random.default_rng(0)
    W, y = rng.normal(size=(60, 40)), rng.normal(size=60)
    correlations = np.array(
        [readout(W, rng.permutation(y), random_state=seed).table.loc[0, "correlation"] for seed in range(60)]
    )
    standard_error = correlations.std(ddof=1) / np.sqrt(60)
    assert abs(correlations.mean()) < 0.1
    assert correlations.mean() < 3 * standard_error


def test_a_held_out_rating_never_reaches_its_own_prediction():
    """Any other value in the first item's place leaves its prediction as it was."""
    W, y = rated_case()
    poisoned = y.copy()
    poisoned[0] = 1e6
    before, after = (readout(W, target, random_state=0).predictions["rating"] for target in (y, poisoned))
    assert after[0] == pytest.approx(before[0], abs=1e-12)
    assert (after != before).sum() > 60


def test_a_target_does_not_depend_on_the_others_or_on_missing_ratings_of_them():
    W, y = rated_case()
    holed = rated_case(seed=1)[1]
    holed[10:40] = np.nan
    frame = pd.DataFrame({"size": y, "valence": holed})
    together = readout(W, frame, random_state=3)
    alone = readout(W, frame["size"], random_state=3)
    kept = ~np.isnan(holed)
    without = readout(W[kept], holed[kept], random_state=3)
    assert together.table["target"].tolist() == ["size", "valence"]
    assert together.table["n_items"].tolist() == [90, 60]
    pd.testing.assert_series_equal(together.predictions["size"], alone.predictions["size"])
    np.testing.assert_array_equal(together.predictions["valence"][kept], without.predictions["rating"])
    assert together.predictions["valence"][~kept].isna().all()
    assert together.table.loc[1, "correlation"] == without.table.loc[0, "correlation"]


def test_ratings_with_names_are_looked_up():
    W, y = rated_case()
    names = [f"item{i}" for i in range(90)]
    expected = readout(W[:70], y[:70], random_state=0)
    ratings = pd.Series(np.r_[y[:70], 1.0, np.nan], index=[*names[:70], "other", "unrated"], name="size")
    shuffled = ratings.sample(frac=1, random_state=0)
    for embedding, keywords in ((pd.DataFrame(W, index=names), {}), (W, {"labels": names})):
        result = readout(embedding, shuffled, random_state=0, **keywords)
        assert result.table.iloc[0].tolist() == ["size", expected.table.loc[0, "correlation"], 70, 1]
        assert result.predictions.index.tolist() == names
        np.testing.assert_array_equal(result.predictions["size"][:70], expected.predictions["rating"])


def test_readout_repeats_with_its_seed_and_changes_nothing():
    W, y = rated_case()
    copies = W.copy(), y.copy()
    one, same, other = (readout(W, y, random_state=seed).table.loc[0, "correlation"] for seed in (0, 0, 1))
    assert one == same != other
    np.testing.assert_array_equal(W, copies[0])
    np.testing.assert_array_equal(y, copies[1])


def test_units_of_ratings_and_dimensions_do_not_matter():
    W, y = rated_case()
    scaled = readout(W * [1, 10, 100, 1e-3, 5, 7] + 3, 1000 * y - 5, random_state=0).table.loc[0, "correlation"]
    assert scaled == pytest.approx(readout(W, y, random_state=0).table.loc[0, "correlation"], abs=1e-9)


@pytest.mark.parametrize(
    ("change", "name", "got"),
    [
        ({"ratings": np.ones(90)}, "ratings", "1 for every item in 'rating'"),
        ({"ratings": np.r_[np.arange(9), np.full(81, np.nan)]}, "ratings", "9 in 'rating'"),
        ({"ratings": np.r_[np.inf, np.arange(89)]}, "ratings", "infinity in 'rating'"),
        ({"ratings": np.arange(80.0)}, "ratings", "80"),
        ({"ratings": np.ones((90, 2, 2))}, "ratings", "(90, 2, 2)"),
        ({"ratings": np.ones((90, 0))}, "ratings", "(90, 0)"),
        ({"alphas": []}, "alphas", "[]"),
        ({"alphas": [0.0, 1.0]}, "alphas", "[0.0, 1.0]"),
        ({"alphas": 1.0}, "alphas", "1.0"),
        ({"n_folds": 1}, "n_folds", "1"),
        ({"n_folds": 2.5}, "n_folds", "2.5"),
        ({"W": np.ones(90)}, "W", "(90,)"),
    ],
)
def test_readout_refuses_bad_arguments(change, name, got):
    W, y = rated_case()
    with pytest.raises(ParameterError) as caught:
        readout(**{"W": W, "ratings": y, **change})
    assert (caught.value.name, got in caught.value.got) == (name, True)


def test_a_bad_seed_is_refused():
    with pytest.raises(ValueError, match=r"random_state .*'a'"):
        readout(np.eye(20), np.arange(20.0), random_state="a")
