"""by= in the functions that make similarities of judgements: systems kept apart are what each gives by itself."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from simdims import (
    JointSRF,
    ParameterError,
    SimilaritySet,
    from_comparisons,
    from_dissimilarity,
    from_ratings,
    from_triplets,
    metrics,
)
from simdims.discovery.methods import describe_data
from simdims.io.raw import read_triplets


def without_diagonal(S):
    values = S.to_frame().to_numpy(copy=True)
    np.fill_diagonal(values, np.nan)
    return pd.DataFrame(values, S.labels, S.labels)


def ratings(seed=0, n=200):
    rng = np.random.default_rng(seed)
    pairs = rng.permuted(np.tile(np.arange(8), (n, 1)), axis=1)[:, :2]
    person = rng.integers(4, size=n)
    return pd.DataFrame(
        {
            "a": [f"item{i}" for i in pairs[:, 0]],
            "b": [f"item{i}" for i in pairs[:, 1]],
            "rating": rng.integers(1, 8, size=n),
            "who": [f"p{m}" for m in person],
            "group": [["old", "young"][m % 2] for m in person],
            "trial": np.arange(n),
        }
    )


COLUMNS = {"item1": "a", "item2": "b", "rating": "rating", "low": 1, "high": 7}


@pytest.mark.parametrize("weights", [None, "counts"])
def test_ratings_of_each_person_are_those_of_their_own_table(weights):
    table = ratings()
    people = from_ratings(table, **COLUMNS, weights=weights, by="who")
    assert people.names == ("p0", "p1", "p2", "p3")
    assert people.info["group"].tolist() == ["old", "young", "old", "young"]
    assert list(people.info.columns) == ["group"]
    for name, own in people.items():
        assert sparse.issparse(own.values)
        alone = from_ratings(table[table["who"] == name], **COLUMNS, weights=weights)
        pd.testing.assert_frame_equal(own.to_frame(), without_diagonal(alone), check_names=False)
        if weights:
            expected = np.where(np.isnan(without_diagonal(alone)), 0.0, alone.weights)
            np.testing.assert_array_equal(own.weights.toarray(), expected)


def test_participants_within_a_group_count_the_same():
    table = ratings()
    groups = from_ratings(table, **COLUMNS, participant="who", by="group")
    for name, own in groups.items():
        alone = from_ratings(table[table["group"] == name], **COLUMNS, participant="who")
        pd.testing.assert_frame_equal(own.to_frame(), without_diagonal(alone), check_names=False)


def test_people_share_the_scale_of_the_table():
    table = ratings()
    table.loc[table["who"] == "p1", "rating"] = 4
    with pytest.warns(UserWarning, match="low"):
        people = from_ratings(table, item1="a", item2="b", rating="rating", by="who")
    assert set(people["p1"].values.data) == {0.5}


def test_a_person_without_a_rated_pair_is_left_out_with_a_warning():
    table = ratings()
    table["rating"] = table["rating"].astype(float).where(table["who"] != "p2")
    with pytest.warns(UserWarning, match="Left out 1 system without a judged pair: p2"):
        people = from_ratings(table, **COLUMNS, by="who")
    assert people.names == ("p0", "p1", "p3")
    assert people.info["group"].tolist() == ["old", "young", "young"]


def test_items_without_a_rated_pair_are_left_out_with_a_warning():
    table = ratings()
    with_lost = pd.concat([table, table.iloc[[0]].assign(a="lost", rating=np.nan)])
    with pytest.warns(UserWarning, match="Left out 1 item without a judged pair: 'lost'"):
        people = from_ratings(with_lost, **COLUMNS, by="who")
    pd.testing.assert_frame_equal(people.mean().to_frame(), from_ratings(table, **COLUMNS, by="who").mean().to_frame())


def test_a_column_with_several_values_in_few_systems_is_left_out_with_a_warning():
    rows = [{"a": a, "b": b, "rating": 4, "who": f"p{m}", "group": "old"} for m in range(6) for a, b in ("xy", "yz")]
    rows[0]["group"] = "odl"
    with pytest.warns(
        UserWarning, match="Column 'group' is not used .* several values in p0 \\('odl' in 1 row, 'old' in 1 row\\)"
    ):
        people = from_ratings(rows, **COLUMNS, by="who")
    assert "group" not in people.info


def test_names_that_differ_only_in_case_or_spaces_are_reported():
    table = ratings()
    table.loc[0, "a"] = f"{table.loc[0, 'a'].upper()} "
    table.loc[0, "who"] = "P0"
    with pytest.warns(UserWarning, match="Names of items") as caught:
        from_ratings(table, **COLUMNS, by="who")
    said = " ".join(str(one.message) for one in caught)
    assert f"{table.loc[0, 'a']!r}" in said
    assert "Names of systems that differ only in case or spaces are kept apart: 'P0' and 'p0'" in said


def test_a_rare_item_named_nearly_like_a_frequent_one_is_reported():
    table = ratings()
    item = table.loc[0, "a"]
    table.loc[0, "a"] = f"{item}x"
    with pytest.warns(UserWarning, match=f"'{item}x' \\(once; '{item}' is frequent\\)"):
        from_ratings(table, **COLUMNS)


@pytest.mark.parametrize("weights", [None, "counts"])
@pytest.mark.parametrize("as_text", [False, True])
def test_triplets_of_each_person_are_those_of_their_own_table(weights, as_text):
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(7), (300, 1)), axis=1)[:, :3]
    table = pd.DataFrame(items, columns=["one", "two", "odd"])
    if as_text:
        table = table.map(lambda i: f"item{i}")
    table.insert(0, "who", rng.choice(["x", "y"], size=300))
    people = from_triplets(table, odd="odd", by="who", weights=weights, smoothing=0.5)
    assert people.names == ("x", "y")
    for name, own in people.items():
        answers = table[table["who"] == name].drop(columns="who")
        alone = from_triplets(answers, odd="odd", weights=weights, smoothing=0.5)
        expected = alone.values.copy()
        np.fill_diagonal(expected, np.nan)
        np.testing.assert_allclose(own.to_frame().to_numpy(), expected)
        if weights:
            np.testing.assert_array_equal(own.weights.toarray(), np.where(np.isnan(expected), 0.0, alone.weights))


def distances(seed=0, n_people=3, n=6):
    points = np.random.default_rng(seed).normal(size=(n_people, n, 2))
    return np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ("max", "Similarities were 1 minus dissimilarities divided by the largest of each system."),
        ("gaussian", "with sigma = the median of each system."),
        ("correlation", "Similarities were 1 minus dissimilarities."),
    ],
)
def test_the_methods_paragraph_says_how_dissimilarities_of_systems_were_converted(method, sentence):
    stack = np.random.default_rng(0).random((3, 45))
    people = from_dissimilarity(stack, method=method, by="person")
    assert sentence in describe_data(people)[0]


@pytest.mark.parametrize("method", ["max", "gaussian"])
def test_dissimilarities_of_a_stack_are_kept_apart(method):
    stack = distances()
    labels = list("abcdef")
    people = from_dissimilarity(stack, method=method, labels=labels, by="person")
    assert people.names == ("person1", "person2", "person3")
    assert from_dissimilarity(stack, by=["x", "y", "z"]).names == ("x", "y", "z")
    for own, D in zip(people, stack, strict=True):
        alone = from_dissimilarity(D, method=method, labels=labels)
        pd.testing.assert_frame_equal(own.to_frame(), without_diagonal(alone), check_names=False)


def test_tables_of_dissimilarities_may_have_different_items():
    stack = distances()
    parts = [list("abcdef"), list("fedcb"), list("acdf")]
    at = [[list("abcdef").index(item) for item in items] for items in parts]
    tables = [pd.DataFrame(D[np.ix_(i, i)], items, items) for D, i, items in zip(stack, at, parts, strict=True)]
    people = from_dissimilarity(tables, by=["x", "y", "z"])
    assert people.labels == tuple("abcdef")
    for own, table in zip(people, tables, strict=True):
        pd.testing.assert_frame_equal(own.to_frame(), without_diagonal(from_dissimilarity(table)), check_names=False)


def test_the_person_with_the_error_is_named():
    stack = distances()
    stack[1] = 0.0
    with pytest.raises(ParameterError, match=r"^system 'person2': D must have at least one positive"):
        from_dissimilarity(stack, by="person")


def test_a_list_of_dissimilarities_is_a_square_per_person(tmp_path):
    stack = distances()
    stack[1, 2] = stack[1, :, 2] = np.nan
    rows = [
        {"who": f"p{m}", "first": f"i{i}", "second": f"i{j}", "d": stack[m, i, j]}
        for m in range(3) for i in range(6) for j in range(i)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    labels = [f"i{i}" for i in range(6)]
    people = from_dissimilarity(table, by="who")
    assert people.names == ("p0", "p1", "p2")
    assert people["p1"].n_items == 5
    for m in (0, 2):
        alone = without_diagonal(from_dissimilarity(stack[m], labels=labels))
        pd.testing.assert_frame_equal(people[m].to_frame(), alone, check_names=False)
    table.to_csv(tmp_path / "people.csv", index=False)
    again = from_dissimilarity(tmp_path / "people.csv", by="who")
    np.testing.assert_allclose(again.mean().values, people.mean().values)


def test_columns_with_one_value_per_person_are_covariates_of_a_list_of_dissimilarities(tmp_path):
    stack = distances()
    rows = [
        {"who": f"p{m}", "age": 20 + m, "first": f"0{i}", "second": f"0{j}", "d": stack[m, i, j], "site": "x"}
        for m in range(3) for i in range(6) for j in range(i)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    table.to_csv(tmp_path / "people.csv", index=False)
    named = {"item1": "first", "item2": "second", "dissimilarity": "d"}
    for given in (table, tmp_path / "people.csv"):
        for columns in ({}, named):
            people = from_dissimilarity(given, by="who", **columns)
            assert people.labels[0] == "00"
            assert people.info["age"].tolist() == [20, 21, 22]
            assert list(people.info.columns) == ["age", "site"]
    np.testing.assert_allclose(people.mean().values, from_dissimilarity(stack, by="p").mean().values)
    with pytest.raises(ParameterError, match=r"three columns that vary within 'who', .* got 4"):
        from_dissimilarity(table.assign(rt=range(len(table))), by="who")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["P10", "P2", "P1", "P9"], ["P1", "P2", "P9", "P10"]),
        ([10, 2, 1, 9], ["1", "2", "9", "10"]),
        ([1.5, 1.25, -3, 10], ["-3", "1.25", "1.5", "10"]),
        (["s1_b10", "s1_b9", "s10_b1", "s2_b1"], ["s1_b9", "s1_b10", "s2_b1", "s10_b1"]),
    ],
)
def test_systems_are_in_natural_order(names, expected):
    table = ratings().replace({"who": {f"p{m}": name for m, name in enumerate(names)}})
    of = dict(zip(map(str, names), ratings().groupby("who"), strict=True))
    people = from_ratings(table, **COLUMNS, by="who")
    assert list(people.names) == expected
    for name, own in people.items():
        alone = from_ratings(of[name][1], **COLUMNS)
        pd.testing.assert_frame_equal(own.to_frame(), without_diagonal(alone), check_names=False)
    answers = table.assign(c="item9")[["a", "b", "c", "who"]]
    assert list(from_triplets(answers, by="who").names) == expected
    answers.columns = ["head", "winner", "loser", "who"]
    assert list(from_comparisons(answers, by="who").names) == expected
    assert list(from_dissimilarity(table[["a", "b", "rating", "who"]], by="who").names) == expected


def test_helms_file_is_one_call_from_a_fit(data_path):
    people = from_dissimilarity(data_path("helm/helm_1959.csv"), by="subject")
    assert (people.n_systems, people.n_items) == (16, 10)
    assert JointSRF(2, alpha=0.0, shrinkage=0.1, random_state=0).fit(people).weights_.shape == (16, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_ratings(ratings(), **COLUMNS, by="nobody"), "by must name a column of the table, got 'nobody'"),
        (lambda: from_ratings(ratings(), **COLUMNS, by="a"), "by and item1= must name two different columns"),
        (lambda: from_triplets([[0, 1, 2]], by="who"), "by must be None unless triplets are a DataFrame"),
        (lambda: from_triplets(pd.DataFrame([[0, 1, 2]]), by="who"), "by must name a column of triplets"),
        (
            lambda: from_dissimilarity(distances(), by="p", diagonal="one"),
            "diagonal must be None or 'missing' beside by=",
        ),
        (lambda: from_ratings(ratings(), **COLUMNS, by="who", diagonal="one"), "diagonal must be None or 'missing'"),
        (lambda: from_dissimilarity(distances(), by=["x"]), "names must have one name for each of the 3 systems"),
        (lambda: from_dissimilarity(distances(), by="p", weights="counts"), "weights must be None beside by="),
        (
            lambda: from_dissimilarity(pd.DataFrame({"who": ["x"], "a": ["i"], "b": ["j"], "d": [1]}), by="person"),
            "by must name a column of a list of pairs, got 'person': it has 'who', 'a', 'b', 'd'",
        ),
        (
            lambda: from_dissimilarity(pd.DataFrame({"who": ["x"], "a": ["i"], "b": ["j"]}), by="who"),
            "D must have three columns that vary within 'who', .* got 2",
        ),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises((ParameterError, ValueError), match=words):
        call()


def test_one_column_may_say_who_and_which_system():
    assert isinstance(from_ratings(ratings(), **COLUMNS, participant="who", by="who"), SimilaritySet)


def test_covariates_may_have_missing_cells():
    table = ratings()
    first = table.groupby("who").cumcount() == 0
    given = table.assign(
        age=table["who"].map({"p0": 20, "p1": 30, "p2": 40}).where(first),
        trial_notes=[[trial] for trial in table["trial"]],
        empty=np.nan,
    )
    people = from_ratings(given, **COLUMNS, by="who")
    assert list(people.info.columns) == ["group", "age"]
    np.testing.assert_array_equal(people.info["age"], [20, 30, 40, np.nan])


def test_columns_with_one_value_per_person_are_covariates_of_triplets(tmp_path):
    table = ratings()
    table["c"] = ["other" if trial % 2 else "another" for trial in table["trial"]]
    table = table[["group", "a", "b", "c", "who"]]
    people, plain = (from_triplets(given, by="who") for given in (table, table.drop(columns="group")))
    assert people.info["group"].tolist() == ["old", "young", "old", "young"]
    for name, own in plain.items():
        pd.testing.assert_frame_equal(own.to_frame(), people[name].to_frame())
    ceilings = [metrics.noise_ceiling(given, by="who") for given in (table, table.drop(columns="group"))]
    np.testing.assert_array_equal(ceilings[0].lower, ceilings[1].lower)
    table.to_csv(tmp_path / "answers.csv", index=False)
    read = read_triplets(tmp_path / "answers.csv", None, True, by="who")
    pd.testing.assert_frame_equal(from_triplets(read, by="who").info, people.info, check_dtype=False)


def test_people_without_a_dissimilarity_are_left_out_with_a_warning():
    table = ratings().groupby(["who", "a", "b"], as_index=False)[["rating", "group"]].first()
    table = table[["who", "a", "b", "rating", "group"]]
    table["rating"] = table["rating"].astype(float).where(table["who"] != "p1")
    with pytest.warns(UserWarning, match="Left out 1 system without a judged pair: p1"):
        people = from_dissimilarity(table, by="who")
    assert people.names == ("p0", "p2", "p3")
    assert people.info["group"].tolist() == ["old", "old", "young"]


def test_methods_say_how_the_similarities_of_systems_were_made():
    answers = pd.DataFrame({"a": list("abcd"), "b": list("bcda"), "c": list("cdab"), "who": [1, 1, 1, 2]})
    text = " ".join(describe_data(from_triplets(answers, odd="c", by="who")))
    assert "estimated from 4 odd-one-out judgements" in text
    heads = answers.rename(columns={"a": "head", "b": "winner", "c": "loser"})
    people = from_comparisons(heads, by="who")
    assert [one.info["n_comparisons"] for one in people] == [3, 1]
    assert "estimated from 4 comparisons" in " ".join(describe_data(people))
    rated = from_ratings(ratings(), **COLUMNS, by="who")
    assert "rescaled from the scale 1 to 7" in " ".join(describe_data(rated))
    rdms = np.stack([squareform(pdist(points)) for points in np.random.default_rng(0).random((3, 6, 2))])
    judged = from_dissimilarity(rdms, by="person")
    assert "1 minus dissimilarities divided by the largest of each system" in " ".join(describe_data(judged))
    judged = from_dissimilarity(rdms, by="person", method="gaussian")
    assert "with sigma = the median of each system" in " ".join(describe_data(judged))
    judged = from_dissimilarity(rdms, by="person", method="gaussian", sigma=0.5)
    assert "with sigma = 0.5" in " ".join(describe_data(judged))
