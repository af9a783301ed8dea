"""Comparisons with a head: similarities by a dictionary count, accuracy and ceiling by their definitions."""

import json
import warnings
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from simdims import (
    SRF,
    ParameterError,
    as_similarity,
    discover,
    from_comparisons,
    from_ratings,
    from_triplets,
    load_similarity,
    metrics,
    simulate,
)
from simdims.cli import main
from simdims.discovery.methods import _origin
from simdims.io.sniffing import guess

COLUMNS = ["head", "winner", "loser"]


def random_answers(n_answers=300, n_items=7, seed=0):
    rng = np.random.default_rng(seed)
    items = rng.permuted(np.tile(np.arange(n_items), (n_answers, 1)), axis=1)[:, :3]
    return pd.DataFrame(items, columns=COLUMNS)


def answers_of(W, n_answers, seed):
    """Answers to random questions with the probabilities exp(s_ab) / (exp(s_ab) + exp(s_ac))."""
    rng = np.random.default_rng(seed)
    items = random_answers(n_answers, len(W), seed).to_numpy(copy=True)
    a, b, c = items.T
    S = W @ W.T
    is_swapped = rng.random(n_answers) > 1 / (1 + np.exp(S[a, c] - S[a, b]))
    items[is_swapped, 1:] = items[is_swapped, :0:-1]
    return pd.DataFrame(items, columns=COLUMNS)


def expected_values(table, n_items, smoothing):
    won, judged = Counter(), Counter()
    for head, winner, loser in table[COLUMNS].itertuples(index=False):
        won[frozenset([head, winner])] += 1
        judged[frozenset([head, winner])] += 1
        judged[frozenset([head, loser])] += 1
    S = np.full((n_items, n_items), np.nan)
    counts = np.zeros((n_items, n_items))
    for i, j in product(range(n_items), repeat=2):
        pair = frozenset([i, j])
        if i != j and judged[pair]:
            S[i, j] = (won[pair] + smoothing) / (judged[pair] + 2 * smoothing)
            counts[i, j] = judged[pair]
    return S, counts


# Similarities


@pytest.mark.parametrize("smoothing", [0, 0.5, 1])
@pytest.mark.parametrize("n_answers", [12, 400])
def test_values_and_weights_are_those_of_a_dictionary_count(n_answers, smoothing):
    table = random_answers(n_answers, 8)
    S = from_comparisons(table, smoothing=smoothing, n_items=8, diagonal="missing", weights="counts")
    values, counts = expected_values(table, 8, smoothing)
    np.testing.assert_allclose(S.values, values, rtol=1e-15)
    off_diagonal = ~np.eye(8, dtype=bool)
    np.testing.assert_array_equal(S.weights[off_diagonal], counts[off_diagonal])
    assert (from_comparisons(table, n_items=8).values.diagonal() == 1).all()
    assert S.info["n_comparisons"] == n_answers
    assert S.info["answers_per_shown_pair"] == 2 * n_answers / S.info["n_pairs_shown"]
    assert str(n_answers) in _origin(S.info)


@pytest.mark.parametrize("weights", [None, "counts"])
def test_answers_of_each_person_are_those_of_their_own_table(weights):
    table = random_answers().map(lambda item: f"item{item}")
    table["who"] = np.random.default_rng(1).choice(["x", "y"], size=len(table))
    table["group"] = table["who"].map({"x": "old", "y": "young"})
    people = from_comparisons(table, "head", "winner", "loser", by="who", weights=weights)
    assert people.names == ("x", "y")
    assert people.info["group"].tolist() == ["old", "young"]
    for name, own in people.items():
        alone = from_comparisons(table[table["who"] == name], diagonal="missing", weights=weights)
        pd.testing.assert_frame_equal(own.to_frame(), alone.to_frame(), check_names=False)
        if weights:
            np.testing.assert_array_equal(own.weights.toarray(), np.where(np.isnan(alone.values), 0, alone.weights))


def test_either_item_of_a_pair_may_be_the_head_and_the_order_of_answers_does_not_matter():
    table = random_answers(100)
    shuffled = table.sample(frac=1, random_state=0)
    np.testing.assert_array_equal(from_comparisons(shuffled).values, from_comparisons(table).values)
    one = from_comparisons({"head": [0, 1], "winner": [1, 0], "loser": [2, 2]}).values
    assert one[0, 1] == 3 / 4
    assert one[0, 2] == one[1, 2] == 1 / 3


def test_columns_of_any_name_and_labels_in_any_order():
    table = random_answers(100)
    named = table.map(lambda item: "abcdefg"[item]).rename(columns=dict(zip(COLUMNS, "xyz", strict=True)))
    S = from_comparisons(named.to_dict("list"), "x", "y", "z", labels=list("gfedcba"))
    np.testing.assert_array_equal(S.values[::-1, ::-1], from_comparisons(table).values)
    assert S.labels == tuple("gfedcba")


def test_an_error_about_a_default_column_does_not_claim_that_it_was_given():
    table = random_answers(20).rename(columns={"head": "anchor {}"})
    with pytest.raises(ParameterError, match=r"head must be given.*the columns 'anchor \{\}', 'winner', 'loser'"):
        from_comparisons(table)
    with pytest.raises(ParameterError, match="head must name a column of the table, got 'anker'"):
        from_comparisons(table, head="anker")


def test_a_column_is_suggested_if_one_is_clearly_the_most_similar():
    table = pd.DataFrame({"odour 1": ["a", "b"], "odour 2": ["b", "c"], "rating": [1, 2]})
    with pytest.raises(ParameterError, match="'odour1'; did you mean 'odour 1'"):
        from_ratings(table, item1="odour1", item2="odour 2", rating="rating")
    with pytest.raises(ParameterError, match="'odour'; the columns are"):
        from_ratings(table, item1="odour", item2="odour 2", rating="rating")


def test_dimensions_are_found_from_comparisons_as_from_triplets():
    W = simulate.dirichlet(40, 4, random_state=5) * 3
    comparisons = answers_of(W, 30_000, seed=5)
    triplets = simulate.triplet_answers(W, 30_000, random_state=5)
    found = {}
    for name, S in {
        "comparisons": from_comparisons(comparisons, diagonal="missing"),
        "triplets": from_triplets(triplets, diagonal="missing"),
    }.items():
        fit = SRF(4, alpha="auto", random_state=0).fit(S)
        found[name] = metrics.factor_alignment(fit, W).mean
    assert found["comparisons"] > 0.93
    assert found["triplets"] > 0.93


# Accuracy


def accuracy_by_definition(S, table):
    credit = 0.0
    for head, winner, loser in table[COLUMNS].itertuples(index=False):
        won, lost = S[head, winner], S[head, loser]
        credit += 0.5 if np.isnan(won - lost) or won == lost else float(won > lost)
    return credit / len(table)


def test_accuracy_is_that_of_a_loop_for_embeddings_and_similarities():
    W = np.random.default_rng(0).random((7, 3))
    table = random_answers()
    products = W @ W.T
    norms = np.linalg.norm(W, axis=1)
    assert metrics.comparison_accuracy(W, table) == pytest.approx(accuracy_by_definition(products, table))
    cosines = products / np.outer(norms, norms)
    assert metrics.comparison_accuracy(W, table, similarity="cosine") == pytest.approx(
        accuracy_by_definition(cosines, table)
    )
    assert metrics.comparison_accuracy(as_similarity(products), table) == metrics.comparison_accuracy(W, table)


def test_ties_and_missing_similarities_count_one_half():
    table = random_answers()
    assert metrics.comparison_accuracy(np.ones((7, 2)), table) == 0.5
    S = np.random.default_rng(0).random((7, 7))
    S = (S + S.T) / 2
    S[0, 1] = S[1, 0] = np.nan
    with pytest.warns(UserWarning, match="count 1/2"):
        accuracy = metrics.comparison_accuracy(as_similarity(S), table)
    assert accuracy == pytest.approx(accuracy_by_definition(S, table))


def test_accuracy_takes_names_from_the_embedding():
    table = random_answers()
    W = pd.DataFrame(np.random.default_rng(0).random((7, 3)), index=list("abcdefg"))
    named = table.map(lambda item: "abcdefg"[item])
    expected = metrics.comparison_accuracy(W.to_numpy(), table)
    assert metrics.comparison_accuracy(W, named) == expected
    assert metrics.comparison_accuracy(W.to_numpy(), named, labels=list("abcdefg")) == expected


# Ceiling


def test_ceiling_is_the_share_of_the_more_frequent_answer():
    table = random_answers(2000, 5)
    ceiling = metrics.comparison_ceiling(table, min_answers=2)
    answers = Counter()
    for head, winner, loser in table.itertuples(index=False):
        answers[head, frozenset([winner, loser]), winner] += 1
    shares, lower = [], []
    for head, pair in {(head, pair) for head, pair, _ in answers}:
        one, other = (answers[head, pair, item] for item in pair)
        n = one + other
        if n < 2:
            continue
        shares.append(max(one, other) / n)
        right = 0.0
        for count, rest in ((one, other), (other, one)):
            right += count * (0.5 if count - 1 == rest else float(count - 1 > rest))
        lower.append(right / n)
    assert ceiling.ceiling == pytest.approx(np.mean(shares))
    assert ceiling.lower == pytest.approx(np.mean(lower))
    assert ceiling.n_triplets == len(shares)
    assert ceiling.chance == 0.5
    assert ceiling.fraction(0.5) == 0
    assert ceiling.fraction(ceiling.ceiling) == 1


def test_true_accuracy_lies_between_the_two_estimates():
    W = simulate.dirichlet(6, 2, random_state=0) * 2
    table = answers_of(W, 4000, seed=1)
    best = metrics.comparison_accuracy(W, answers_of(W, 40_000, seed=2))
    ceiling = metrics.comparison_ceiling(table)
    assert ceiling.lower - 3 * ceiling.lower_standard_error < best < ceiling.ceiling + 3 * ceiling.standard_error


def test_with_people_only_answers_of_the_same_person_are_compared():
    # Each person always gives the same answer, and the two disagree.
    rows = [(0, 1, 2, "x")] * 10 + [(0, 2, 1, "y")] * 10
    table = pd.DataFrame(rows, columns=[*COLUMNS, "who"])
    assert metrics.comparison_ceiling(table).ceiling == 0.5
    own = metrics.comparison_ceiling(table, by="who")
    assert own.ceiling == own.lower == 1
    assert own.n_triplets == 2


# Files and the command line


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["head", "winner", "loser"], "comparisons"),
        (["participant", "head", "winner", "loser"], "comparisons"),
        (["anchor", "positive", "negative"], "comparisons"),
        (["a", "b", "c"], "triplets"),
        (["one", "two", "odd"], "triplets"),
    ],
)
def test_names_of_columns_tell_comparisons_from_triplets(columns, kind, tmp_path):
    table = random_answers().map(lambda item: f"item{item}")
    if len(columns) == 4:
        table.insert(0, "participant", 1)
    table.columns = columns
    table.to_csv(tmp_path / "answers.csv", index=False)
    assert guess(tmp_path / "answers.csv").kind == kind


@pytest.mark.parametrize("text", [True, False])
def test_the_command_line_makes_the_same_similarities(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = random_answers()
    if text:
        table = table.map(lambda item: f"item{item}")
    table.rename(columns={"head": "h"}).to_csv("answers.csv", index=False)
    options = ["--head", "h", "--weights", "counts", "--smoothing", "0.5"]
    assert main(["similarity", "comparisons", "answers.csv", "s.npz", *options]) == 0
    expected = from_comparisons(table, weights="counts", smoothing=0.5)
    made = load_similarity("s.npz")
    np.testing.assert_array_equal(made.values, expected.values)
    np.testing.assert_array_equal(made.weights, expected.weights)
    assert made.labels == expected.labels


def test_the_command_line_says_how_many_answers_of_each_person_are_predicted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = random_answers().map(lambda item: f"item{item}")
    table["who"] = np.random.default_rng(1).choice(["x", "y"], size=len(table))
    table.to_csv("answers.csv", index=False)
    W = pd.DataFrame(np.random.default_rng(0).random((7, 3)), index=[f"item{i}" for i in range(7)])
    W.to_csv("W.csv")
    assert main(["evaluate", "comparisons", "W.csv", "answers.csv", "--by", "who"]) == 0
    told = capsys.readouterr().out
    for own in (table, *(rows for _, rows in table.groupby("who"))):
        assert f"{metrics.comparison_accuracy(W, own):.1%}" in told


def test_a_result_of_several_people_is_also_evaluated_with_their_weights(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = random_answers().map(lambda item: f"item{item}")
    table["who"] = np.random.default_rng(1).choice(["x", "y"], size=len(table))
    table.to_csv("answers.csv", index=False)
    found = discover(from_comparisons(table, by="who"), ranks=2, n_runs=2, random_state=0)
    consensus = replace(found.consensus, weights=np.tile([[1.8, 0.2], [0.2, 1.8]], (2, 1, 1)))
    replace(found, consensus=consensus).save("people")
    assert main(["evaluate", "comparisons", "people", "answers.csv", "--by", "who", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    for name, weights in {"x": [1.8, 0.2], "y": [0.2, 1.8]}.items():
        own = found.embedding_frame() * np.sqrt(weights)
        expected = metrics.comparison_accuracy(own, table[table["who"] == name])
        assert values["weighted_accuracies"][name] == pytest.approx(expected)


# Real answers


def test_faces_are_predicted_nearly_as_well_as_repeated_answers_allow(data_path):
    table = pd.read_csv(data_path("faces36/answers.csv"))
    fold = np.random.default_rng(0).integers(5, size=len(table))
    train, test = table[fold > 0], table[fold == 0]
    fit = SRF(9, alpha="auto", random_state=0).fit(from_comparisons(train, weights="counts", diagonal="missing"))
    accuracy = metrics.comparison_accuracy(fit, test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ceiling = metrics.comparison_ceiling(table)
    assert 0.69 < accuracy < ceiling.ceiling
